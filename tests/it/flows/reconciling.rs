//! Reconcile: a dry run explains every discrepancy and changes nothing; a real one does what the dry
//! run said.

use std::collections::BTreeSet;

use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::{Capture, Order, OrderState, PaymentKey};
use engine::flows::cancel::cancel;
use engine::flows::pay::pay;
use engine::flows::reconcile::{Outcome, Run, dry_run, reconcile, reconcile_all};
use engine::flows::reserve::reserve;
use engine::flows::stuck::{Kind, stuck};
use engine::flows::sync::sync;
use engine::ports::{Catalogue, Freshness, Ports, Seats};
use redis::aio::MultiplexedConnection;

use super::crashing::{Crashing, Cut};
use super::environment::{Fixture, NOW, PAY_WINDOW_SECONDS, epoch, inventory, sale_id};

/// When the repair happens: what was pending at [`NOW`] is late, what came just before is not.
const LATER: Timestamp = NOW.plus_seconds(PAY_WINDOW_SECONDS * 10);
const JUST_BEFORE: Timestamp = LATER.plus_seconds(-1);
/// Runs until all is repaired: what one repair frees, the next run compares.
const RUNS: usize = 3;

/// The call of `pay` at which a payment is decided, and its refund not requested.
const REFUND_MESSAGE: i64 = 2;
/// The call of `cancel` at which the order has ended, and its seats are not free.
const RELEASE: i64 = 2;

async fn buy(fixture: &Fixture, user: &str, now: Timestamp) -> Order {
    reserve(&fixture.ports, &fixture.reservation(user).await, now).await.unwrap().order
}

fn capture(order: &Order, payment: &str) -> Capture {
    let key = PaymentKey {
        provider: ProviderId::new("stripe").unwrap(),
        payment: PaymentId::new(payment).unwrap(),
    };
    Capture { key, order: order.number, amount: order.total, attempt: None }
}

/// What a test does to Redis that no engine does.
struct Vandal(MultiplexedConnection);

impl Vandal {
    async fn from_fixture(fixture: &Fixture) -> Self {
        Self(fixture.redis().await)
    }

    async fn forget_hold(&mut self, number: OrderNumber) {
        let number = number.to_string();
        let () = redis::cmd("HDEL")
            .arg("{crash}:sale")
            .arg(&number)
            .query_async(&mut self.0)
            .await
            .unwrap();
        let () = redis::cmd("ZREM")
            .arg("{crash}:due")
            .arg(&number)
            .query_async(&mut self.0)
            .await
            .unwrap();
    }

    async fn set_bit(&mut self, bitmap: &str, leg: u16, seat: u32, bit: u8) {
        let key = format!("{{crash}}:{bitmap}:hall");
        // The bytes of both legs lie beside each other.
        let place = (seat / 8 * 2 + u32::from(leg)) * 8 + seat % 8;
        let mut set = redis::cmd("SETBIT");
        let () = set.arg(key).arg(place).arg(bit).query_async(&mut self.0).await.unwrap();
    }

    async fn set_limit(&mut self, limit: u16) {
        let mut set = redis::cmd("HSET");
        set.arg("{crash}:sale").arg("limit").arg(limit);
        let () = set.query_async(&mut self.0).await.unwrap();
    }
}

/// A fixture in which everything that reconcile knows of has gone wrong once.
async fn wrecked() -> Fixture {
    let fixture = Fixture::start().await;
    let mut redis = Vandal::from_fixture(&fixture).await;
    let first_seat = |order: &Order| order.held_lines()[0].seats[0].0;

    // Their messages were lost.
    buy(&fixture, "overdue", NOW).await;
    let uncounted = buy(&fixture, "uncounted", NOW).await;
    pay(&fixture.ports, &capture(&uncounted, "pi_1"), NOW).await.unwrap();
    let dying = Crashing::at(&fixture.ports, REFUND_MESSAGE, Cut::BeforeTheCall);
    pay(&dying, &capture(&uncounted, "pi_2"), NOW).await.unwrap_err();
    let dying = Crashing::at(&fixture.ports, 0, Cut::AfterTheCall);
    reserve(&dying, &fixture.reservation("hold-overdue").await, NOW).await.unwrap_err();

    // Processes died between the stores, or Redis has forgotten.
    let differs = buy(&fixture, "hold-differs", JUST_BEFORE).await;
    let dying = Crashing::at(&fixture.ports, RELEASE, Cut::BeforeTheCall);
    cancel(&dying, &differs.user, differs.number, JUST_BEFORE).await.unwrap_err();
    let forgotten = buy(&fixture, "forgotten", JUST_BEFORE).await;
    redis.forget_hold(forgotten.number).await;
    let free = buy(&fixture, "held-and-free", JUST_BEFORE).await;
    redis.set_bit("taken", 1, first_seat(&free), 0).await;
    let unsold = buy(&fixture, "not-sold", JUST_BEFORE).await;
    pay(&fixture.ports, &capture(&unsold, "pi_3"), JUST_BEFORE).await.unwrap();
    sync(&fixture.ports, &[unsold.number], JUST_BEFORE).await.unwrap();
    redis.set_bit("sold", 0, first_seat(&unsold), 0).await;
    redis.set_bit("taken", 0, 639, 1).await;
    redis.set_limit(1).await;
    fixture
}

fn kinds(run: &Run) -> Vec<&'static str> {
    run.found.iter().map(|(discrepancy, _)| discrepancy.explain().kind).collect()
}

const EVERY_KIND: [&str; 10] = [
    "forgotten",
    "held-and-free",
    "hold-differs",
    "hold-overdue",
    "leaked",
    "not-sold",
    "overdue",
    "refund",
    "terms",
    "uncounted",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_explains_every_difference_and_changes_nothing() {
    let fixture = wrecked().await;
    let before = (fixture.remember().await, fixture.items().await);
    let dry = dry_run(&fixture.ports, LATER).await.unwrap();
    assert!((fixture.remember().await, fixture.items().await) == before, "something was changed");

    let mut sorted = kinds(&dry);
    sorted.sort_unstable();
    assert_eq!(sorted, EVERY_KIND, "each once");
    assert!(dry.report.is_quiet() && dry.unread.is_empty());
    let redis_of = |kind: &str| {
        let explained = dry.found.iter().map(|(discrepancy, _)| discrepancy.explain());
        explained.filter(|one| one.kind == kind).map(|one| one.redis).collect::<Vec<_>>()
    };
    assert!(redis_of("overdue")[0].starts_with("holds seats 0, 1 of tier hall until"));
    assert_eq!(redis_of("uncounted"), ["no hold"], "it was sold when it was paid");
    for (discrepancy, outcome) in &dry.found {
        assert_eq!(*outcome, Outcome::Found);
        let explained = discrepancy.explain();
        for said in [&explained.redis, &explained.dynamodb] {
            assert!(!said.is_empty(), "{explained:?}");
        }
        for said in [explained.why, explained.repair] {
            assert!(said.len() > 10, "{explained:?}");
        }
    }

    // A real run finds the same, in the same order, and does it.
    let real = reconcile_all(&fixture.ports, &epoch("real"), LATER).await.unwrap();
    assert_eq!(kinds(&real), kinds(&dry));
    assert_eq!(real.report.failed, 0, "{real:?}");
    let repaired = |(_, outcome): &&(_, Outcome)| *outcome == Outcome::Repaired;
    assert!(real.found.iter().filter(repaired).count() >= 8, "{real:?}");
    for _ in 1..RUNS {
        reconcile_all(&fixture.ports, &epoch("real"), LATER).await.unwrap();
    }
    let left = dry_run(&fixture.ports, LATER).await.unwrap();
    assert!(left.found.is_empty() && left.unread.is_empty(), "{left:?}");
    assert!(reconcile(&fixture.ports, &epoch("real"), LATER).await.unwrap().is_quiet());
    fixture.must_be_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_a_lost_sale_says_so_and_loads_nothing() {
    let fixture = Fixture::start().await;
    buy(&fixture, "owner", NOW).await;
    fixture.lose_everything().await;
    let before = fixture.items().await;
    let dry = dry_run(&fixture.ports, NOW).await.unwrap();
    assert_eq!(kinds(&dry), ["not-loaded"]);
    assert_eq!(dry.found[0].0.explain().redis, "no epoch");
    assert!(fixture.remember().await.is_empty() && fixture.items().await == before);
    let real = reconcile_all(&fixture.ports, &epoch("again"), NOW).await.unwrap();
    assert_eq!((kinds(&real), real.report.loaded), (vec!["not-loaded"], 1));
    assert!(dry_run(&fixture.ports, NOW).await.unwrap().found.is_empty());
}

/// Nothing is written for a sale in order: not even its terms.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_a_sale_in_order_writes_nothing() {
    let fixture = Fixture::start().await;
    buy(&fixture, "owner", NOW).await;
    let before = (fixture.remember().await, fixture.items().await);
    let head = fixture.ports.seats().head(&inventory()).await.unwrap().unwrap();
    assert!(reconcile(&fixture.ports, &epoch("quiet"), NOW).await.unwrap().is_quiet());
    assert!((fixture.remember().await, fixture.items().await) == before, "something was changed");
    let published = fixture.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await.unwrap();
    let published = published.unwrap();
    let terms = engine::flows::load::terms(&published.sale);
    assert_eq!(head, (published.epoch.unwrap(), terms), "what is read is what was loaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_past_its_bound_is_named_with_what_is_known_of_why() {
    let fixture = wrecked().await;
    let before = (fixture.remember().await, fixture.items().await);
    let early =
        stuck(&fixture.ports, 120, NOW.plus_seconds(PAY_WINDOW_SECONDS + 119)).await.unwrap();
    assert!(early.stuck.iter().all(|stuck| stuck.kind != Kind::Pending), "{early:?}");
    let found = stuck(&fixture.ports, 120, LATER).await.unwrap();
    assert!((fixture.remember().await, fixture.items().await) == before, "something was changed");
    let named: BTreeSet<Kind> = found.stuck.iter().map(|stuck| stuck.kind).collect();
    assert_eq!(named.len(), 4, "{found:?}");
    assert_eq!(found.stuck.len(), 4, "what is not late is not stuck: {found:?}");
    let says = |kind: Kind, text: &str| {
        let why =
            found.stuck.iter().filter(|stuck| stuck.kind == kind).flat_map(|stuck| &stuck.why);
        assert!(why.clone().any(|why| why.contains(text)), "{text}: {found:?}");
    };
    says(Kind::Pending, "Redis holds its seats until");
    says(Kind::Pending, "the provider has captured nothing for it");
    says(Kind::Uncounted, "Redis has no hold of it");
    says(Kind::Refund, "its request is not in the queue");
    says(Kind::Hold, "cut off before there was an order");

    for _ in 0..RUNS {
        reconcile(&fixture.ports, &epoch("real"), LATER).await.unwrap();
    }
    let after = stuck(&fixture.ports, 120, LATER).await.unwrap();
    let left: Vec<Kind> = after.stuck.iter().map(|stuck| stuck.kind).collect();
    assert_eq!(left, [Kind::Refund], "requested, and nobody has carried it out: {after:?}");
    assert_eq!(fixture.state(found.stuck[0].order).await, Some(OrderState::Expired));
}
