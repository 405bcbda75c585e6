//! Every flow is cut off at every call it makes, before it and after it, and then repeated.

use super::ended::ended;
use engine::domain::basics::ids::{PaymentId, ProviderId, Seat};
use engine::domain::basics::tickets::Tickets;
use engine::domain::inventory::choice::Choice;
use engine::domain::order::{Capture, OrderState, PaymentKey, PaymentOutcome};
use engine::domain::sale::{Sale, SaleFile, SaleState};
use engine::flows::cancel::cancel;
use engine::flows::load::load;
use engine::flows::pay::pay;
use engine::flows::publish::publish;
use engine::flows::reconcile::reconcile;
use engine::flows::reserve::{Refusal, Reservation, Reserved, reserve};
use engine::ports::{Ports, Seats};

use super::crashing::{Crashing, Cut};
use super::environment::{Fixture, NOW, PAY_WINDOW_SECONDS, epoch, inventory, sale_id};

/// More calls than any flow makes.
const MAX_CALLS: i64 = 60;

/// What Redis does between the crash and the next attempt.
#[derive(Debug, Clone, Copy)]
enum Redis {
    Remembers,
    ForgetsTheAttempt,
    LosesEverything,
}

/// Runs `attempt` cut off at each of its calls; stops after the run that none cut off. Returns how
/// many calls there were.
pub async fn at_every_call(mut attempt: impl AsyncFnMut(i64, Cut) -> bool) -> i64 {
    for call in 0..MAX_CALLS {
        let mut died = false;
        for cut in [Cut::BeforeTheCall, Cut::AfterTheCall] {
            died |= attempt(call, cut).await;
        }
        if !died {
            return call;
        }
    }
    panic!("a flow makes more than {MAX_CALLS} calls");
}

async fn reserved(fixture: &Fixture, reservation: &Reservation) -> Reserved {
    reserve(&fixture.ports, reservation, NOW).await.expect("the repeated request gets its order")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_token_gets_the_same_order_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    for redis in [Redis::Remembers, Redis::ForgetsTheAttempt, Redis::LosesEverything] {
        let calls = at_every_call(async |call, cut| {
            let user = format!("{redis:?}-{call}-{cut:?}");
            let reservation = fixture.reservation(&user).await;
            let memory = fixture.remember().await;
            let crashing = Crashing::at(&fixture.ports, call, cut);
            let first = reserve(&crashing, &reservation, NOW).await;
            match redis {
                Redis::Remembers => {}
                Redis::ForgetsTheAttempt => fixture.forget_since(&memory).await,
                Redis::LosesEverything => {
                    fixture.lose_everything().await;
                    let again =
                        epoch(&format!("again-{}", user.to_lowercase()).replace("thecall", ""));
                    load(&fixture.ports, &sale_id(), &again, NOW).await.unwrap();
                }
            }
            let second = reserved(&fixture, &reservation).await;
            let third = reserved(&fixture, &reservation).await;
            assert_eq!(second.order.held_lines(), third.order.held_lines(), "{user}");
            assert_eq!(second.order.number, reservation.number, "{user}");
            if let Ok(first) = first {
                assert_eq!(first.order.held_lines(), second.order.held_lines(), "{user}");
            }
            let mut other = reservation.clone();
            other.lines[0].line.legs = engine::domain::basics::ids::Legs::new(0, 1).unwrap();
            let refused = reserve(&fixture.ports, &other, NOW).await;
            let made = Some((third.order.number, third.order.state));
            assert_eq!(refused, Err(Refusal::TokenReused(made)), "{user}");
            crashing.has_died()
        })
        .await;
        println!("{redis:?}: cut off at each of {calls} calls");
        assert!(calls >= 3, "hold, claim and message are calls");
        fixture.must_be_consistent().await;
    }
    // Whatever Redis was made to forget is compensated, and then there is nothing left to do.
    reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
    let quiet = reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
    assert!(quiet.is_quiet(), "{quiet:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_attempt_does_not_burn_the_token() {
    let fixture = Fixture::start().await;
    let mut reservation = fixture.reservation("greedy").await;
    reservation.lines[0].line.choice = engine::domain::inventory::choice::Choice::Best {
        count: 5,
        together: engine::domain::inventory::choice::Together::Required,
    };
    assert_eq!(
        reserve(&fixture.ports, &reservation, NOW).await,
        Err(Refusal::LimitReached { remaining: Tickets::new(4) })
    );
    let modest = fixture.reservation("greedy").await;
    let modest = Reservation { number: reservation.number, ..modest };
    assert_eq!(reserved(&fixture, &modest).await.order.number, reservation.number);
}

/// What an attempt comes to that finds out, after its hold, that one of its seats is another's.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_claim_leaves_all_or_nothing_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    for chosen in [false, true] {
        let calls = at_every_call(async |call, cut| {
            let user = format!("{chosen}-{call}-{cut:?}");
            let memory = fixture.remember().await;
            let owner = fixture.reservation_of(&format!("owner-{user}"), 1).await;
            let lost = reserved(&fixture, &owner).await.order.held_lines()[0].seats[0];
            // Redis gives the owner's seat out again, with the one beside it.
            fixture.forget_since(&memory).await;
            let mut reservation = fixture.reservation(&user).await;
            if chosen {
                let seats = vec![lost, Seat(lost.0 + 1)];
                reservation.lines[0].line.choice = Choice::Seats(seats);
            }
            let crashing = Crashing::at(&fixture.ports, call, cut);
            let _ = reserve(&crashing, &reservation, NOW).await;
            if chosen {
                let again = reserve(&fixture.ports, &reservation, NOW).await;
                assert!(matches!(again, Err(Refusal::SeatTaken(..))), "{user}: {again:?}");
                // The refusal burns nothing: the token is good for other seats.
                reservation.lines = fixture.reservation(&user).await.lines;
            }
            let order = reserved(&fixture, &reservation).await.order;
            assert_eq!(order.tickets().get(), 2, "{user}: {order:?}");
            crashing.has_died()
        })
        .await;
        println!("chosen {chosen}: cut off at each of {calls} calls");
    }
    fixture.must_be_consistent().await;
    reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
    let quiet = reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
    assert!(quiet.is_quiet(), "{quiet:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_carried_out_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let calls = at_every_call(async |call, cut| {
        let user = format!("payer-{call}-{cut:?}");
        let order = reserved(&fixture, &fixture.reservation(&user).await).await.order;
        let key = PaymentKey {
            provider: ProviderId::new("stripe").unwrap(),
            payment: PaymentId::new(format!("pi_{user}")).unwrap(),
        };
        let capture = Capture { key, order: order.number, amount: order.total, attempt: None };
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = pay(&crashing, &capture, NOW).await;
        let record = pay(&fixture.ports, &capture, NOW).await.unwrap();
        assert_eq!(record.outcome, PaymentOutcome::Accepted, "{user}");
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid), "{user}");
        assert_eq!(
            fixture.ports.seats().record(&inventory(), order.number).await.unwrap(),
            None,
            "{user}"
        );
        crashing.has_died()
    })
    .await;
    println!("pay: cut off at each of {calls} calls");
    fixture.must_be_consistent().await;
    // Past the follow-up time of a paid order nobody has counted yet, the sweeper counts it.
    let later = NOW.plus_seconds(PAY_WINDOW_SECONDS * 10);
    let report = reconcile(&fixture.ports, &epoch("later"), later).await.unwrap();
    assert!(report.synced > 0 && report.failed == 0, "{report:?}");
    assert!(reconcile(&fixture.ports, &epoch("later"), later).await.unwrap().is_quiet());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_ends_from_any_crash_point_on_and_its_seats_come_back() {
    let fixture = Fixture::start().await;
    let late = NOW.plus_seconds(PAY_WINDOW_SECONDS);
    let first_seats = reserved(&fixture, &fixture.reservation("probe").await).await;
    let probe = first_seats.order.clone();
    cancel(&fixture.ports, &probe.user, probe.number, NOW).await.unwrap();
    for end in [OrderState::Cancelled, OrderState::Expired] {
        let calls = at_every_call(async |call, cut| {
            let user = format!("{}-{call}-{cut:?}", end.as_str());
            let order = reserved(&fixture, &fixture.reservation(&user).await).await.order;
            assert_eq!(order.held_lines(), probe.held_lines(), "the best seats are free again");
            let crashing = Crashing::at(&fixture.ports, call, cut);
            if end == OrderState::Cancelled {
                let _ = cancel(&crashing, &order.user, order.number, NOW).await;
                cancel(&fixture.ports, &order.user, order.number, NOW).await.unwrap();
            } else {
                let _ = ended(&crashing, &inventory(), order.number, late).await;
                ended(&fixture.ports, &inventory(), order.number, late).await.unwrap();
            }
            assert_eq!(fixture.state(order.number).await, Some(end), "{user}");
            crashing.has_died()
        })
        .await;
        println!("{}: cut off at each of {calls} calls", end.as_str());
    }
    fixture.must_be_consistent().await;
    let quiet = reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
    assert!(quiet.is_quiet(), "{quiet:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_that_was_forgotten_and_doubled_keeps_its_seats() {
    let fixture = Fixture::start().await;
    let memory = fixture.remember().await;
    let order = reserved(&fixture, &fixture.reservation("owner").await).await.order;
    fixture.forget_since(&memory).await;
    // Another buyer is given the same seats, and the process dies before the claim could fail.
    let other = fixture.reservation("other").await;
    let crashing = Crashing::at(&fixture.ports, 0, Cut::AfterTheCall);
    let earlier = NOW.plus_seconds(-10);
    let _ = reserve(&crashing, &other, earlier).await;
    let restored = reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
    assert_eq!(restored.restored, 1, "{restored:?}");
    // The other hold ends, and with it what it had taken.
    let expiry = NOW.plus_seconds(PAY_WINDOW_SECONDS - 10);
    let expired = reconcile(&fixture.ports, &epoch("later"), expiry).await.unwrap();
    assert_eq!(expired.expired, 1, "{expired:?}");
    let line = &order.held_lines()[0];
    let legs = line.legs.to();
    let grid = fixture.ports.seats().grid(&inventory(), &line.tier, legs).await.unwrap();
    let is_taken = |seat: &Seat| line.legs.iter().all(|leg| grid.is_taken(leg, *seat));
    assert!(line.seats.iter().all(is_taken), "{grid:02x?}");
    assert!(reconcile(&fixture.ports, &epoch("later"), expiry).await.unwrap().is_quiet());
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_has_the_terms_of_the_catalogue_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let open = fixture.reservation("first").await.published.sale;
    let file = SaleFile { state: SaleState::Paused, ..open.file().clone() };
    let paused = Sale::new(file).unwrap();
    let calls = at_every_call(async |call, cut| {
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = publish(&crashing, &paused, &epoch("pause"), NOW).await;
        let report = reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
        assert_eq!(report.failed, 0, "{call} {cut:?}");
        let reservation = fixture.reservation(&format!("{call}-{cut:?}")).await;
        let reply = reserve(&fixture.ports, &reservation, NOW).await;
        match reservation.published.sale.file().state {
            SaleState::Paused | SaleState::Cancelled => {
                assert_eq!(reply, Err(Refusal::SaleClosed), "{call} {cut:?}")
            }
            SaleState::Open => assert!(reply.is_ok(), "{call} {cut:?}: {reply:?}"),
        }
        publish(&fixture.ports, &open, &epoch("open"), NOW).await.unwrap();
        crashing.has_died()
    })
    .await;
    println!("publish: cut off at each of {calls} calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_without_an_order_gets_a_tombstone_and_its_late_writer_fails() {
    let fixture = Fixture::start().await;
    let reservation = fixture.reservation("sleeper").await;
    // The process dies after the hold and before the claim.
    let crashing = Crashing::at(&fixture.ports, 0, Cut::AfterTheCall);
    let _ = reserve(&crashing, &reservation, NOW).await;
    let late = NOW.plus_seconds(PAY_WINDOW_SECONDS);
    let report = reconcile(&fixture.ports, &epoch("later"), late).await.unwrap();
    assert_eq!(report.expired, 1, "{report:?}");
    assert_eq!(fixture.state(reservation.number).await, Some(OrderState::Expired));
    assert_eq!(reserve(&fixture.ports, &reservation, late).await, Err(Refusal::HoldExpired));
    fixture.must_be_consistent().await;
}
