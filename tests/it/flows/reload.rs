//! Loading again what Redis has lost, while loaders die and freeze and buyers go on.

use engine::domain::basics::ids::Seat;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::PartLimit;
use engine::domain::order::Order;
use engine::domain::sale::Sale;
use engine::flows::load::{LEASE_MS, Loaded, MAX_REQUEST_MS, load};
use engine::flows::publish::publish;
use engine::flows::reconcile::reconcile;
use engine::flows::reserve::reserve;
use engine::ports::{Catalogue, ChangeReply, Freshness, Ports, Seats, StoreError};
use serde_json::json;
use tokio::sync::Notify;

use super::crashing::{Crashing, Cut, Refusing};
use super::environment::{Fixture, NOW, epoch, inventory, sale_id};

/// More calls than a load of the sale makes.
const MAX_CALLS: i64 = 60;
/// Calls at which a loader is frozen whose parts are the smallest: every order that is bought meanwhile makes
/// the next load longer, so that there is no last one.
const CALLS_IN_SMALL_PARTS: i64 = 24;
/// Time at which the lease of a loader that began at [`NOW`] has run out.
const LEASE_OVER: Timestamp = NOW.plus_ms(LEASE_MS);

async fn buy(fixture: &Fixture, user: &str) -> Order {
    reserve(&fixture.ports, &fixture.reservation(user).await, NOW).await.unwrap().order
}

/// True if what Redis has is the load that the catalogue names: what buyers are sold from.
async fn sells(fixture: &Fixture) -> bool {
    let published = fixture.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await.unwrap();
    let current = fixture.ports.seats().epoch(&inventory()).await.unwrap();
    current.is_some() && current == published.unwrap().epoch
}

/// True if Redis has every seat of the order as taken.
async fn knows(fixture: &Fixture, order: &Order) -> bool {
    let line = &order.held_lines()[0];
    match fixture.ports.seats().grid(&inventory(), &line.tier, line.legs.to()).await {
        Ok(grid) => {
            let is_taken = |seat: &Seat| line.legs.iter().all(|leg| grid.is_taken(leg, *seat));
            line.seats.iter().all(is_taken)
        }
        // The tier is not loaded.
        Err(StoreError::Unavailable(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loader_that_dies_is_succeeded_when_its_lease_is_over() {
    let fixture = Fixture::start().await;
    let order = buy(&fixture, "owner").await;
    for part_limit in [PartLimit::STANDARD, PartLimit::SMALLEST] {
        dies_at_each_call(&fixture, &order, part_limit).await;
    }
}

async fn dies_at_each_call(fixture: &Fixture, order: &Order, part_limit: PartLimit) {
    let mut paused = 0;
    for call in 0..MAX_CALLS {
        let mut died = false;
        for cut in [Cut::BeforeTheCall, Cut::AfterTheCall] {
            fixture.lose_everything().await;
            let cut_name = u8::from(cut == Cut::AfterTheCall);
            let name = format!("{call}-{cut_name}-{}", part_limit.arguments);
            let dying = Crashing::at(&fixture.ports, call, cut).in_parts(part_limit);
            let _ = load(&dying, &sale_id(), &epoch(&format!("dead-{name}")), NOW).await;
            died |= dying.has_died();
            // At once, if it had not begun, or had finished; else when its lease is over.
            let soon = epoch(&format!("soon-{name}"));
            if load(&fixture.ports, &sale_id(), &soon, NOW).await.unwrap() == Loaded::Busy {
                paused += 1;
                assert!(!sells(fixture).await, "{name}");
                let next = epoch(&format!("next-{name}"));
                let next = load(&fixture.ports, &sale_id(), &next, LEASE_OVER).await.unwrap();
                assert_eq!(next, Loaded::Now { orders: 1 }, "{name}");
            }
            assert!(sells(fixture).await && knows(fixture, order).await, "{name}");
        }
        if !died {
            println!(
                "load in parts of {}: cut off at each of {call} calls, {paused} times within its lease",
                part_limit.arguments
            );
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
    let limits = [PartLimit::STANDARD, PartLimit::SMALLEST];
    let rounds = limits.map(|limit| [false, true].map(|lost_again| (limit, lost_again)));
    for (part_limit, lost_again) in rounds.into_iter().flatten() {
        let mut ended = None;
        for call in 0..MAX_CALLS {
            let name = format!("{}-{call}-{}", u8::from(lost_again), part_limit.arguments);
            let (old, new) = (epoch(&format!("old-{name}")), epoch(&format!("new-{name}")));
            fixture.lose_everything().await;
            let frozen = Crashing::frozen_at(&fixture.ports, call).in_parts(part_limit);
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
                if fixture.ports.seats().epoch(&inventory()).await.unwrap() == Some(old.clone()) {
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
            let is_enough = part_limit == PartLimit::SMALLEST && call == CALLS_IN_SMALL_PARTS;
            if is_enough || !frozen.has_died() {
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

/// A page of claims takes as long as a request may take at all: nobody may begin meanwhile, and the loader
/// goes on as if nothing had been.
#[tokio::test(flavor = "multi_thread")]
async fn a_loader_keeps_its_lease_while_a_page_takes_long() {
    let fixture = Fixture::start().await;
    buy(&fixture, "owner").await;
    let mut waited_out = 0;
    for call in 0..MAX_CALLS {
        fixture.lose_everything().await;
        let frozen = Crashing::frozen_at(&fixture.ports, call).in_parts(PartLimit::SMALLEST);
        let (slow, other) = (epoch(&format!("slow-{call}")), epoch(&format!("other-{call}")));
        let (loaded, meanwhile) = frozen
            .while_frozen(load(&frozen, &sale_id(), &slow, NOW), async {
                let late = NOW.plus_ms(MAX_REQUEST_MS);
                load(&fixture.ports, &sale_id(), &other, late).await.unwrap()
            })
            .await;
        let is_loader = matches!(loaded, Ok(Loaded::Now { .. }));
        // Before the lease was taken, and once it is over, another may.
        assert!(is_loader != matches!(meanwhile, Loaded::Now { .. }), "{call}: {meanwhile:?}");
        waited_out += usize::from(meanwhile == Loaded::Busy);
        assert!(sells(&fixture).await);
        if !frozen.has_died() {
            println!("load: another came at each of {call} calls, {waited_out} times in vain");
            assert!(waited_out > 8);
            return;
        }
    }
    panic!("a load makes more than {MAX_CALLS} calls");
}

/// A store refuses pages of claims and of orders now and then: they are read again, and the load ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_load_outlives_pages_that_a_store_refuses() {
    let fixture = Fixture::start().await;
    let order = buy(&fixture, "owner").await;
    for (refused, ends_well) in [(1, true), (32, true), (33, false)] {
        fixture.lose_everything().await;
        let ports = Refusing::reads(&fixture.ports, refused);
        let name = epoch(&format!("refused-{refused}"));
        let loaded = load(&ports, &sale_id(), &name, NOW).await;
        assert_eq!(loaded.is_ok(), ends_well, "{refused}: {loaded:?}");
        assert_eq!(sells(&fixture).await && knows(&fixture, &order).await, ends_well, "{refused}");
    }
}

/// Reconcile reads the holds of a sale of many tiers once, however many tiers and blocks it has.
#[tokio::test(flavor = "multi_thread")]
async fn reconcile_reads_the_holds_of_a_sale_once() {
    let fixture = Fixture::start().await;
    buy(&fixture, "owner").await;
    let mut redis = fixture.redis().await;
    publish(&fixture.ports, &many_tiers(), &epoch("many"), NOW).await.unwrap();
    let () = redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut redis).await.unwrap();
    assert!(reconcile(&fixture.ports, &epoch("later"), NOW).await.unwrap().is_quiet());
    let stats: String =
        redis::cmd("INFO").arg("commandstats").query_async(&mut redis).await.unwrap();
    // Two sales: what is due, and the numbers of all holds, each once.
    let ranges = stats.lines().find(|line| line.starts_with("cmdstat_zrange:")).unwrap();
    println!("{ranges}");
    assert!(ranges.starts_with("cmdstat_zrange:calls=4,"), "{ranges}");
}

/// A sale of 64 tiers, each of more than a block.
fn many_tiers() -> Sale {
    let tier = |index: usize| json!({ "tier": format!("t{index}"), "name": "T", "price_minor": 500, "general_admission": 300 });
    let tiers: Vec<serde_json::Value> = (0..64).map(tier).collect();
    let file = json!({
        "sale": "many", "title": "Many", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 60, "tiers": tiers,
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
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
