//! Loading again what Redis has lost, while loaders die and freeze and buyers go on.

use engine::domain::order::Order;
use engine::domain::time::Timestamp;
use engine::flows::load::{LEASE_MS, Loaded, load};
use engine::flows::reconcile::reconcile;
use engine::flows::reserve::reserve;
use engine::ports::{Catalogue, ChangeReply, Freshness, Ports, Seats};
use tokio::sync::Notify;

use super::crashing::{Crashing, Cut};
use super::environment::{Fixture, NOW, epoch, sale_id};

/// More calls than a load of the sale makes.
const MAX_CALLS: i64 = 40;
/// Time at which the lease of a loader that began at [`NOW`] has run out.
const LEASE_OVER: Timestamp = NOW.plus_ms(LEASE_MS);

async fn buy(fixture: &Fixture, user: &str) -> Order {
    reserve(&fixture.ports, &fixture.reservation(user).await, NOW).await.unwrap().order
}

/// True if what Redis has is the load that the catalogue names: what buyers are sold from.
async fn sells(fixture: &Fixture) -> bool {
    let published = fixture.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await.unwrap();
    let current = fixture.ports.seats().epoch(&sale_id()).await.unwrap();
    current.is_some() && current == published.unwrap().epoch
}

/// True if Redis has every seat of the order as taken.
async fn knows(fixture: &Fixture, order: &Order) -> bool {
    let line = &order.held_lines()[0];
    let (sale, tiers) = (sale_id(), [line.tier.clone()]);
    let bits = &fixture.ports.seats().taken(&sale, &tiers, line.legs).await.unwrap()[0];
    let is_taken =
        |at: u32| bits.get(at as usize / 8).is_some_and(|bits| bits & (0x80 >> (at % 8)) != 0);
    line.seats.iter().all(|seat| is_taken(seat.0))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loader_that_dies_is_succeeded_when_its_lease_is_over() {
    let fixture = Fixture::start().await;
    let order = buy(&fixture, "owner").await;
    let mut paused = 0;
    for call in 0..MAX_CALLS {
        let mut died = false;
        for cut in [Cut::BeforeTheCall, Cut::AfterTheCall] {
            fixture.lose_everything().await;
            let name = format!("{call}-{}", u8::from(cut == Cut::AfterTheCall));
            let dying = Crashing::at(&fixture.ports, call, cut);
            let _ = load(&dying, &sale_id(), &epoch(&format!("dead-{name}")), NOW).await;
            died |= dying.has_died();
            // At once, if it had not begun, or had finished; else when its lease is over.
            let soon = epoch(&format!("soon-{name}"));
            if load(&fixture.ports, &sale_id(), &soon, NOW).await.unwrap() == Loaded::Busy {
                paused += 1;
                assert!(!sells(&fixture).await, "{name}");
                let next = epoch(&format!("next-{name}"));
                let next = load(&fixture.ports, &sale_id(), &next, LEASE_OVER).await.unwrap();
                assert_eq!(next, Loaded::Now { orders: 1 }, "{name}");
            }
            assert!(sells(&fixture).await && knows(&fixture, &order).await, "{name}");
        }
        if !died {
            println!("load: cut off at each of {call} calls, {paused} times within its lease");
            assert!(paused > 0);
            assert!(reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap().is_quiet());
            return;
        }
    }
    panic!("a load makes more than {MAX_CALLS} calls");
}

/// The loader is frozen at each of its calls until its lease is over, another has loaded the sale
/// and sold seats, and in the second round Redis has been lost once more.
#[tokio::test(flavor = "multi_thread")]
async fn a_loader_that_resumes_late_never_has_its_old_snapshot_sold_from() {
    let fixture = Fixture::start().await;
    let mut sold_from_without_the_fence = 0;
    for lost_again in [false, true] {
        let mut ended = None;
        for call in 0..MAX_CALLS {
            let name = format!("{}-{call}", u8::from(lost_again));
            let (old, new) = (epoch(&format!("old-{name}")), epoch(&format!("new-{name}")));
            fixture.lose_everything().await;
            let frozen = Crashing::frozen_at(&fixture.ports, call);
            let (resumed, order) = frozen
                .while_frozen(load(&frozen, &sale_id(), &old, NOW), async {
                    load(&fixture.ports, &sale_id(), &new, LEASE_OVER).await.unwrap();
                    let order = buy(&fixture, &format!("buyer-{name}")).await;
                    if lost_again {
                        fixture.lose_everything().await;
                    }
                    order
                })
                .await;
            assert!(!sells(&fixture).await || knows(&fixture, &order).await, "{name}: {resumed:?}");
            if !sells(&fixture).await && !knows(&fixture, &order).await {
                // Without the fence it would be named, and sold from.
                let catalogue = fixture.ports.catalogue();
                let far = LEASE_OVER.plus_ms(LEASE_MS);
                if fixture.ports.seats().epoch(&sale_id()).await.unwrap() == Some(old.clone()) {
                    let taken = catalogue.lease(&sale_id(), &old, far, far).await;
                    assert_eq!(taken, Ok(ChangeReply::Done));
                    catalogue.loaded(&sale_id(), &old).await.unwrap();
                    assert!(sells(&fixture).await && !knows(&fixture, &order).await, "{name}");
                    sold_from_without_the_fence += 1;
                }
            }
            // Whatever was left behind, the next load ends it.
            fixture.lose_everything().await;
            let last = epoch(&format!("last-{name}"));
            let far = LEASE_OVER.plus_ms(10 * LEASE_MS);
            load(&fixture.ports, &sale_id(), &last, far).await.unwrap();
            assert!(sells(&fixture).await && knows(&fixture, &order).await, "{name}");
            if !frozen.has_died() {
                ended = Some(call);
                break;
            }
        }
        println!("lost again {lost_again}: frozen at each of {ended:?} calls");
        assert!(ended.is_some(), "a load makes more than {MAX_CALLS} calls");
    }
    assert!(sold_from_without_the_fence > 0, "the fence has stopped nobody");
    fixture.must_be_consistent().await;
    assert!(reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap().is_quiet());
}

/// A buyer has a hold, Redis is lost, and the order is made while a loader is at each of its calls:
/// if its row was read before, the load does not know it.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_made_while_its_sale_is_loaded_keeps_its_seats() {
    let fixture = Fixture::start().await;
    let mut unknown = 0;
    for call in 0..MAX_CALLS {
        let racing = fixture.reservation(&format!("racing-{call}")).await;
        let (sale, name) = (sale_id(), epoch(&format!("load-{call}")));
        // Call 0 is the hold.
        let buyer = Crashing::frozen_at(&fixture.ports, 1);
        let loader = Crashing::frozen_at(&fixture.ports, call);
        let ordered = Notify::new();
        let buying = async {
            let order = reserve(&buyer, &racing, NOW).await.unwrap().order;
            ordered.notify_one();
            order
        };
        let losing_and_loading = async {
            buyer.reached().await;
            fixture.lose_everything().await;
            let loading = load(&loader, &sale, &name, NOW);
            let (loaded, ()) = loader
                .while_frozen(loading, async {
                    buyer.resume();
                    ordered.notified().await;
                })
                .await;
            assert!(matches!(loaded, Ok(Loaded::Now { .. })), "{call}: {loaded:?}");
        };
        let (order, ()) = tokio::join!(buying, losing_and_loading);
        assert!(sells(&fixture).await);
        unknown += usize::from(!knows(&fixture, &order).await);
        // Its claim decides: nobody else gets its seats, and reconcile restores it.
        let other = buy(&fixture, &format!("other-{call}")).await;
        assert_ne!(other.held_lines(), order.held_lines(), "{call}");
        let report = reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap();
        assert_eq!(report.failed, 0, "{report:?}");
        assert!(knows(&fixture, &order).await, "{call}");
        assert!(reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap().is_quiet());
        if !loader.has_died() {
            println!("load: {unknown} of {call} times the load did not know the order");
            assert!(unknown > 0, "the order was there before its row was read, always");
            fixture.must_be_consistent().await;
            return;
        }
    }
    panic!("a load makes more than {MAX_CALLS} calls");
}
