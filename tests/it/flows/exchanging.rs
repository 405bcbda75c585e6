//! Exchanges on real servers: cut off at every call, dearer and cheaper, of tickets that go meanwhile, never paid,
//! into another sale; and what goes back of money that was moved.

use std::sync::atomic::{AtomicU16, Ordering};

use engine::domain::basics::ids::{
    AttendeeId, DisputeId, InventoryId, Legs, ProviderId, SaleId, TierId, UserId,
};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::Mint;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::attendee::{Attendee, AttendeeHash};
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::order_refund::{AskedBy, OrderRefund};
use engine::domain::order::refund::RefundState;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{
    Capture, Order, OrderState, PaymentOutcome, PaymentRecord, RefundReason, TicketName,
};
use engine::domain::payment::exchange::ExchangeRefusal;
use engine::domain::payment::refund::RefundRefusal;
use engine::domain::sale::Sale;
use engine::flows::dispute::record_dispute;
use engine::flows::expire::Expired;
use engine::flows::give_back::{self, give_back};
use engine::flows::outside::record_sent_back;
use engine::flows::pay::pay;
use engine::flows::publish::publish;
use engine::flows::refund::{Outcome, refund_part};
use engine::flows::reserve::{Refusal, Reservation, reserve};
use engine::ports::{Catalogue as _, Freshness, Orders as _, Ports};
use fake_payments::PROVIDER;
use serde_json::json;

use super::crash_points::at_every_call;
use super::crashing::{Crashing, Cut};
use super::ended::ended;
use super::environment::{Fixture, NOW, PAY_WINDOW_SECONDS, epoch, whole};

/// What is kept of a ticket that is exchanged.
const FEE: i64 = 50;
const FAIR: &str = "fair";

fn sale(name: &str, group: Option<&str>) -> Sale {
    let file = json!({
        "sale": name, "title": name, "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 2, "pay_window_seconds": PAY_WINDOW_SECONDS,
        "exchanges": { "until": "2098-01-01T00:00:00Z", "fee_minor": FEE },
        "exchange_group": group,
        "tiers": [
            { "tier": "hall", "name": "Hall", "price_minor": 500, "general_admission": 300 },
            { "tier": "box", "name": "Box", "price_minor": 800, "general_admission": 300 },
            { "tier": "balcony", "name": "Balcony", "price_minor": 300, "general_admission": 300 },
        ]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// The fixture with the sales.
struct Fair(Fixture);

impl Fair {
    async fn open() -> Self {
        let fixture = Fixture::start().await;
        for (name, group) in [(FAIR, Some("fairs")), ("fair-2", Some("fairs")), ("other", None)] {
            publish(&fixture.ports, &sale(name, group), &epoch(name), NOW).await.unwrap();
        }
        Self(fixture)
    }

    async fn reservation(&self, user: &str, sale: &str, tier: &str, count: u16) -> Reservation {
        static PROCESSES: AtomicU16 = AtomicU16::new(100);
        let mint = Mint::new((PROCESSES.fetch_add(1, Ordering::Relaxed) % 900).into());
        let sale = SaleId::new(sale).unwrap();
        let published = self.0.ports.catalogue().sale(&sale, Freshness::Fresh).await;
        let published = published.unwrap().unwrap();
        let user = UserId::new(user).unwrap();
        let choice = Choice::Best { count, together: Together::Preferred };
        let tier = TierId::new(tier).unwrap();
        let price_minor = published.sale.tier(&tier).unwrap().price_minor(Legs::ONE).unwrap();
        let line = Line { tier, legs: Legs::ONE, choice };
        let lines = vec![RequestedLine { line, price_minor, attendees: vec![] }];
        Reservation { published, number: mint.mint(NOW, &user), user, lines, exchange: None }
    }

    /// A paid order, and its capture.
    async fn bought(&self, user: &str, tier: &str, count: u16) -> (Order, Capture) {
        let reservation = self.reservation(user, FAIR, tier, count).await;
        let order = reserve(&self.0.ports, &reservation, NOW).await.unwrap().order;
        let capture = self.captured(&order);
        pay(&self.0.ports, &capture, NOW).await.unwrap();
        (self.now_is(&order).await, capture)
    }

    fn captured(&self, order: &Order) -> Capture {
        let payment = format!("pi_{}", order.number);
        self.0.provider.capture(&payment, order.number, order.total, NOW).unwrap()
    }

    /// A request to have `count` tickets of a tier for as many of an order.
    async fn exchange(&self, old: &Order, sale: &str, tier: &str, count: usize) -> Reservation {
        let wanted = self.reservation(old.user.as_str(), sale, tier, count as u16).await;
        let tickets = names(old).into_iter().take(count).collect();
        Reservation { exchange: Some(ExchangeRequest { order: old.number, tickets }), ..wanted }
    }

    /// What comes of a request that is cut off, and of its repetition; true if it was.
    async fn ordered_at_last(&self, wanted: &Reservation, call: i64, cut: Cut) -> (Order, bool) {
        let crashing = Crashing::at(&self.0.ports, call, cut);
        let _ = reserve(&crashing, wanted, NOW).await;
        let order = reserve(&self.0.ports, wanted, NOW).await.unwrap().order;
        (order, crashing.has_died())
    }

    /// An operator refunds all of an order.
    async fn refunded_whole(&self, order: &Order) {
        give_back(&self.0.ports, None, order.number, &whole(), NOW).await.unwrap();
    }

    async fn now_is(&self, order: &Order) -> Order {
        self.0.ports.orders().get(order.number).await.unwrap().unwrap()
    }

    async fn refunds(&self, order: &Order) -> Vec<OrderRefund> {
        self.0.ports.orders().order_refunds(order.number).await.unwrap()
    }

    async fn payment(&self, order: &Order) -> PaymentRecord {
        let key = order.payment.clone().unwrap();
        self.0.ports.orders().payment(order.number, &key).await.unwrap().unwrap()
    }

    /// The old tickets went for `new`, once: their claims are free, and this much goes back and is kept.
    async fn must_be_given(&self, old: &Order, new: &Order, back: i64, kept: i64) {
        let refunds = self.refunds(old).await;
        let [refund] = &refunds[..] else { panic!("{refunds:?}") };
        let money = (refund.amount.amount_minor, refund.kept_minor);
        assert_eq!(money, (MinorUnits(back), MinorUnits(kept)));
        assert_eq!(refund.asked_by, AskedBy::Exchange);
        assert_eq!(refund.exchanged_for(), Some(new.number));
        assert_eq!(self.payment(old).await.back, MinorUnits(back + kept));
        let line = &old.lines[0];
        let block = self.0.ports.orders().block_claims(&old.sale, &line.tier, 0).await.unwrap();
        let owned = block.claims.iter().filter(|claim| claim.order == old.number).count();
        let live = self.now_is(old).await.tickets();
        assert_eq!(Tickets::of_seats(owned), live, "order {}", old.number);
    }
}

fn names(order: &Order) -> Vec<TicketName> {
    let of = |line| {
        let line: &engine::domain::order::OrderLine = line;
        line.tickets.iter().map(|ticket| ticket.named(line)).collect::<Vec<_>>()
    };
    order.lines.iter().flat_map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dearer_order_is_paid_whole_and_the_old_tickets_go_from_any_crash_point_on() {
    let fair = Fair::open().await;
    let calls = at_every_call(async |call, cut| {
        let (old, _) = fair.bought(&format!("u{call}{cut:?}"), "hall", 1).await;
        let wanted = fair.exchange(&old, FAIR, "box", 1).await;
        let (new, has_died) = fair.ordered_at_last(&wanted, call, cut).await;
        assert_eq!((new.state, new.total.amount_minor.0), (OrderState::Pending, 800));
        let exchange = new.exchange.as_ref().unwrap();
        assert_eq!(exchange.value_minor, MinorUnits(500 - FEE));
        assert_eq!(fair.now_is(&old).await, old, "nothing is given up before it is paid");

        let capture = fair.captured(&new);
        let paying = Crashing::at(&fair.0.ports, call, cut);
        let _ = pay(&paying, &capture, NOW).await;
        let record = pay(&fair.0.ports, &capture, NOW).await.unwrap();
        assert_eq!(record.outcome, PaymentOutcome::Accepted);
        assert_eq!(fair.now_is(&new).await.state, OrderState::Paid);
        assert_eq!(fair.now_is(&old).await.state, OrderState::RefundDue);
        fair.must_be_given(&old, &new, 500 - FEE, 0).await;
        has_died || paying.has_died()
    })
    .await;
    println!("a dearer exchange: cut off at each of {calls} calls");
    assert!(calls > 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cheaper_order_is_paid_with_the_old_money_from_any_crash_point_on() {
    let fair = Fair::open().await;
    let calls = at_every_call(async |call, cut| {
        let (old, capture) = fair.bought(&format!("u{call}{cut:?}"), "hall", 2).await;
        let wanted = fair.exchange(&old, FAIR, "balcony", 1).await;
        let (new, has_died) = fair.ordered_at_last(&wanted, call, cut).await;
        let new = if new.state == OrderState::Pending {
            // Whoever repeats the request is told of the order; the deadline pays it, as one of 0.
            let late = NOW.plus_seconds(PAY_WINDOW_SECONDS);
            let at = InventoryId::whole(new.sale.clone());
            let over = ended(&fair.0.ports, &at, new.number, late).await.unwrap();
            assert_eq!(over, Expired::Resolved);
            fair.now_is(&new).await
        } else {
            new
        };
        assert_eq!(new.state, OrderState::Paid, "{call} {cut:?}");
        fair.must_be_given(&old, &new, 500 - FEE - 300, 300).await;
        assert_eq!(fair.now_is(&old).await.state, OrderState::Paid);
        let payment = fair.payment(&new).await;
        assert_eq!(payment.at_provider().capture, capture);
        assert_eq!(payment.capture.amount, new.total);
        let again = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
        assert_eq!(again.held_lines(), new.held_lines());
        has_died
    })
    .await;
    println!("a cheaper exchange: cut off at each of {calls} calls");
    assert!(calls > 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_was_moved_goes_back_of_its_capture() {
    let fair = Fair::open().await;
    let (old, capture) = fair.bought("wu", "hall", 1).await;
    let wanted = fair.exchange(&old, FAIR, "balcony", 1).await;
    let new = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    let back = async |order: &Order, now: Timestamp| {
        let refund = fair.refunds(order).await.pop().unwrap();
        match refund_part(&fair.0.ports, refund.key, now).await.unwrap() {
            Outcome::Asked(refund) => refund.state,
            Outcome::TooEarly(at) => panic!("not before {at:?}"),
        }
    };
    assert_eq!(back(&old, NOW).await, RefundState::Refunded);
    assert_eq!(fair.now_is(&old).await.state, OrderState::Refunded);
    // It is exchanged once more, at the same price: nothing goes back, and it costs the fee.
    let wanted = fair.exchange(&new, FAIR, "balcony", 1).await;
    let dearer = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    assert_eq!(dearer.state, OrderState::Pending);
    // An operator gives all of it back: what was captured for the first order.
    fair.refunded_whole(&new).await;
    assert_eq!(back(&new, NOW.plus_seconds(120)).await, RefundState::Refunded);
    let ledger = fair.0.provider.ledger();
    let entry = ledger.iter().find(|entry| entry.payment == capture.key.payment.as_str()).unwrap();
    assert_eq!(entry.refunds.len(), 2, "{entry:?}");
    // The second exchange finds no ticket any more: its money goes back, and it is cancelled.
    let late = fair.captured(&dearer);
    let record = pay(&fair.0.ports, &late, NOW).await.unwrap();
    assert!(matches!(record.outcome, PaymentOutcome::Refund(_)), "{record:?}");
    assert_eq!(fair.now_is(&dearer).await.state, OrderState::RefundDue);
}

/// Finding M1 to its end: a dispute of a part of a payment may have no share in an order that has money of it. Its provider
/// sends nothing back all the same, so that nothing of it is refunded, and no ticket is void for nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_disputed_payment_is_refunded_whichever_order_has_its_money() {
    let fair = Fair::open().await;
    let stripe = ProviderId::new(PROVIDER).unwrap();
    let (old, capture) = fair.bought("few", "hall", 2).await;
    let wanted = fair.exchange(&old, FAIR, "balcony", 1).await;
    let new = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    assert_eq!(fair.now_is(&new).await.state, OrderState::Paid);
    let payment = capture.key.payment.as_str();
    let id = fair.0.provider.open_dispute(payment, MinorUnits(100), false, NOW).unwrap();
    let id = DisputeId::new(id).unwrap();
    record_dispute(&fair.0.ports, &stripe, &id, NOW).await.unwrap();
    assert_eq!(fair.payment(&new).await.open_dispute(), None, "it has no share");
    let refused = give_back(&fair.0.ports, None, new.number, &whole(), NOW).await.map(drop);
    assert_eq!(refused, Err(give_back::Refusal::Refused(RefundRefusal::Disputed)));
    assert_eq!(fair.now_is(&new).await.live_tickets().count(), 1);
}

/// Findings H2 and M1: a dispute of a payment follows its money to the order that has it now. While it is open nothing of that
/// goes back and no ticket goes; once it is lost, the ticket is void.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dispute_follows_the_money_through_an_exchange() {
    let fair = Fair::open().await;
    let stripe = ProviderId::new(PROVIDER).unwrap();
    for (user, is_won) in [("lost", false), ("won", true)] {
        let (old, capture) = fair.bought(user, "hall", 1).await;
        let wanted = fair.exchange(&old, FAIR, "balcony", 1).await;
        let new = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
        assert_eq!(new.state, OrderState::Paid);
        let payment = capture.key.payment.as_str();
        let id = fair.0.provider.open_dispute(payment, MinorUnits(500), false, NOW).unwrap();
        let id = DisputeId::new(id).unwrap();
        let look = async || record_dispute(&fair.0.ports, &stripe, &id, NOW).await.unwrap();
        look().await;
        look().await;
        let open = fair.payment(&new).await;
        assert_eq!(open.open_dispute().map(|open| open.amount_minor), Some(MinorUnits(300)));
        let refused = give_back(&fair.0.ports, None, new.number, &whole(), NOW).await;
        let disputed = give_back::Refusal::Refused(RefundRefusal::Disputed);
        assert_eq!(refused, Err(disputed), "and its ticket lives");
        assert_eq!(fair.now_is(&new).await.live_tickets().count(), 1);
        fair.0.provider.close_dispute(id.as_str(), is_won, NOW).unwrap();
        look().await;
        look().await;
        let live = fair.now_is(&new).await.live_tickets().count();
        assert_eq!(live, usize::from(is_won), "{user}");
        assert_eq!(fair.payment(&new).await.open_dispute(), None);
        let share = |payment: PaymentRecord| {
            payment.disputes.iter().map(|one| one.amount_minor.0).sum::<i64>()
        };
        let shares = [share(fair.payment(&old).await), share(fair.payment(&new).await)];
        assert_eq!(
            shares,
            [200, 300],
            "what the old order has left, and what exceeds both, and the new one"
        );
    }
}

/// A refund in the dashboard of a payment whose money was moved is one of the order that has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_in_the_dashboard_is_of_the_order_that_has_the_money() {
    let fair = Fair::open().await;
    let (old, capture) = fair.bought("zhao", "hall", 1).await;
    let wanted = fair.exchange(&old, FAIR, "balcony", 1).await;
    let new = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    let key = fair.refunds(&old).await.remove(0).key;
    refund_part(&fair.0.ports, key, NOW).await.unwrap();
    let payment = &capture.key.payment;
    fair.0.provider.refund_by_hand(payment.as_str(), MinorUnits(300), NOW).unwrap();
    let stripe = ProviderId::new(PROVIDER).unwrap();
    for _ in 0..2 {
        record_sent_back(&fair.0.ports, &stripe, payment, NOW).await.unwrap();
    }
    let outside = async |order: &Order| {
        let refunds = fair.refunds(order).await;
        let of_it = refunds.iter().filter(|refund| refund.asked_by == AskedBy::Outside);
        of_it.map(|refund| refund.amount.amount_minor.0).collect::<Vec<_>>()
    };
    assert_eq!(outside(&new).await, [300]);
    assert_eq!(fair.payment(&new).await.left().amount_minor, MinorUnits::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_that_go_meanwhile_are_not_given_twice() {
    let fair = Fair::open().await;
    // Two exchanges of one ticket: the first that is paid has it.
    let (old, _) = fair.bought("li", "hall", 1).await;
    let first = fair.exchange(&old, FAIR, "box", 1).await;
    let first = reserve(&fair.0.ports, &first, NOW).await.unwrap().order;
    let second = fair.exchange(&old, "fair-2", "box", 1).await;
    let second = reserve(&fair.0.ports, &second, NOW).await.unwrap().order;
    pay(&fair.0.ports, &fair.captured(&second), NOW).await.unwrap();
    fair.must_be_given(&old, &second, 500 - FEE, 0).await;
    let record = pay(&fair.0.ports, &fair.captured(&first), NOW).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Refund(RefundReason::Cancelled));
    assert_eq!(fair.now_is(&first).await.state, OrderState::RefundDue);
    fair.must_be_given(&old, &second, 500 - FEE, 0).await;

    // Of an order that is never paid nothing is given, and paid too late it buys nothing.
    let (old, _) = fair.bought("sun", "hall", 1).await;
    let wanted = fair.exchange(&old, FAIR, "box", 1).await;
    let new = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    let (late, at) = (NOW.plus_seconds(PAY_WINDOW_SECONDS), InventoryId::whole(new.sale.clone()));
    assert_eq!(ended(&fair.0.ports, &at, new.number, late).await, Ok(Expired::Ended));
    assert_eq!(fair.now_is(&old).await, old);
    let record = pay(&fair.0.ports, &fair.captured(&new), late).await.unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Refund(RefundReason::TooLate));
    assert_eq!(fair.now_is(&old).await, old);
    // The tickets may be given for others then.
    let wanted = fair.exchange(&old, FAIR, "balcony", 1).await;
    let new = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    fair.must_be_given(&old, &new, 500 - FEE - 300, 300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_keep_their_claims_and_move_with_the_ticket() {
    let fair = Fair::open().await;
    let person = |digit: char| Attendee {
        id: Some(AttendeeId::new(digit.to_string()).unwrap()),
        hashes: vec![digit.to_string().repeat(32).parse::<AttendeeHash>().unwrap()],
    };
    let named = async |reservation: Reservation, digit| {
        let mut lines = reservation.lines;
        lines[0].attendees = vec![person(digit)];
        Reservation { lines, ..reservation }
    };
    let wanted = named(fair.reservation("zhao", FAIR, "hall", 1).await, 'a').await;
    let old = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    pay(&fair.0.ports, &fair.captured(&old), NOW).await.unwrap();
    let other = named(fair.exchange(&old, FAIR, "box", 1).await, 'b').await;
    let refused = reserve(&fair.0.ports, &other, NOW).await;
    assert_eq!(refused, Err(Refusal::Exchange(ExchangeRefusal::OtherPeople)));
    let wanted = named(fair.exchange(&old, FAIR, "box", 1).await, 'a').await;
    let new = reserve(&fair.0.ports, &wanted, NOW).await.unwrap().order;
    // Nobody else has the person meanwhile, nor afterwards.
    let rival = || async { named(fair.reservation("rival", FAIR, "hall", 1).await, 'a').await };
    let taken = |reply| assert!(matches!(reply, Err(Refusal::AttendeeTaken(_))), "{reply:?}");
    taken(reserve(&fair.0.ports, &rival().await, NOW).await);
    pay(&fair.0.ports, &fair.captured(&new), NOW).await.unwrap();
    taken(reserve(&fair.0.ports, &rival().await, NOW).await);
    assert_eq!(fair.now_is(&new).await.attendee_claims().count(), 1);
    // A refund of the new order lets them go.
    fair.refunded_whole(&new).await;
    assert!(reserve(&fair.0.ports, &rival().await, NOW).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_exchanged_is_refused_and_holds_nothing() {
    let fair = Fair::open().await;
    let (old, _) = fair.bought("qian", "hall", 2).await;
    let refused =
        async |reservation: &Reservation| match reserve(&fair.0.ports, reservation, NOW).await {
            Err(Refusal::Exchange(refusal)) => refusal,
            other => panic!("{other:?}"),
        };
    let tickets = |refusal| ExchangeRefusal::Tickets(refusal);
    let wanted = fair.exchange(&old, FAIR, "box", 2).await;
    let one = fair.reservation("qian", FAIR, "box", 1).await;
    let fewer = Reservation { exchange: wanted.exchange.clone(), ..one };
    let (given, asked) = (Tickets::new(2), Tickets::new(1));
    assert_eq!(refused(&fewer).await, ExchangeRefusal::OtherCount { given, asked });
    let thief = fair.reservation("thief", FAIR, "box", 2).await;
    let theft = Reservation { exchange: wanted.exchange.clone(), ..thief };
    assert_eq!(refused(&theft).await, ExchangeRefusal::NotFound);
    let elsewhere = fair.exchange(&old, "other", "box", 2).await;
    assert_eq!(refused(&elsewhere).await, ExchangeRefusal::OtherSale(old.sale.clone()));
    let mut twice = fair.exchange(&old, FAIR, "box", 2).await;
    let name = names(&old).remove(0);
    twice.exchange.as_mut().unwrap().tickets = vec![name.clone(), name.clone()];
    assert_eq!(refused(&twice).await, tickets(RefundRefusal::TicketRefunded(name)));
    let pending = fair.reservation("wang", FAIR, "hall", 1).await;
    let pending = reserve(&fair.0.ports, &pending, NOW).await.unwrap().order;
    let unpaid = fair.exchange(&pending, FAIR, "box", 1).await;
    assert_eq!(refused(&unpaid).await, tickets(RefundRefusal::NotPaid(OrderState::Pending)));

    // The limit makes room for what is replaced, once, and for nothing else.
    let plain = fair.reservation("qian", FAIR, "box", 1).await;
    let full = Err(Refusal::LimitReached { remaining: Tickets::NONE });
    assert_eq!(reserve(&fair.0.ports, &plain, NOW).await, full);
    reserve(&fair.0.ports, &wanted, NOW).await.unwrap();
    let again = fair.exchange(&old, FAIR, "balcony", 2).await;
    assert_eq!(reserve(&fair.0.ports, &again, NOW).await, full);
}
