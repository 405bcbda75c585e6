//! Reconcile with something that never answers: each part of a run ends when its time is over, the
//! others are done, what is left is said, and in some later minute comes before what is stuck.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Mutex, PoisonError};

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;
use engine::flows::publish::publish;
use engine::flows::reconcile::{Run, run, run_until};
use engine::ports::{DUE_SHARDS, Stored};
use model_stores::{Call, Caller, Driver, Reply, Stores};
use serde_json::json;
use tokio::sync::Notify;

use super::environment::{NOW, epoch};

const SALES: usize = 6;
/// Minutes that a run takes that is stuck: its place in the order must not come again each time.
const MINUTES_A_RUN: i64 = 5;
/// Until everything else was done once. With five others, each before the stuck one in every second
/// run, one in a million fixtures would need more; the order is the same in each.
const RUNS: i64 = 20;

/// Stores that answer at once, but for one call.
struct Stuck {
    stores: Mutex<Stores>,
    is_it: fn(&Call) -> bool,
    reached: Notify,
    /// The shards that were listed.
    shards: Mutex<BTreeSet<u8>>,
}

impl Driver for Stuck {
    async fn call(&self, call: Call) -> Stored<Reply> {
        if (self.is_it)(&call) {
            self.reached.notify_one();
            pending::<()>().await;
        }
        if let Call::Due { shard, .. } = call {
            self.shards.lock().unwrap_or_else(PoisonError::into_inner).insert(shard);
        }
        self.stores.lock().unwrap_or_else(PoisonError::into_inner).apply(NOW, &call)
    }
}

fn id(index: usize) -> SaleId {
    SaleId::new(format!("sale-{index}")).unwrap()
}

/// Six sales, and one call that is never answered.
async fn stuck_at(is_it: fn(&Call) -> bool) -> Caller<Stuck> {
    let stores = Mutex::default();
    let calm = Stuck { stores, is_it: |_| false, reached: Notify::new(), shards: Mutex::default() };
    let ports = Caller(calm);
    for index in 0..SALES {
        let file = json!({
            "sale": id(index), "title": "One of six", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2040-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 600,
            "tiers": [{ "tier": "all", "name": "All", "price_minor": 1, "general_admission": 4 }],
        });
        let sale = Sale::new(serde_json::from_value(file).unwrap()).unwrap();
        publish(&ports, &sale, &epoch("first"), NOW).await.unwrap();
    }
    assert_eq!(run(&ports, &epoch("calm"), NOW).await.unwrap().available.len(), SALES);
    ports.0.shards.lock().unwrap().clear();
    Caller(Stuck { is_it, ..ports.0 })
}

/// A run whose part `part` ends when it is stuck.
async fn run_at(ports: &Caller<Stuck>, part: usize, now: Timestamp) -> Run {
    let ends = [0, 1, 2].map(|one| async move {
        match one == part {
            true => ports.0.reached.notified().await,
            false => pending().await,
        }
    });
    run_until(ports, &epoch("late"), now, ends).await.unwrap()
}

fn compared(run: &Run) -> BTreeSet<SaleId> {
    run.available.iter().map(|(sale, _)| sale.clone()).collect()
}

fn others() -> BTreeSet<SaleId> {
    (1..SALES).map(id).collect()
}

/// The runs that follow each other while something is stuck.
fn minutes() -> impl Iterator<Item = Timestamp> {
    (0..RUNS).map(|run| NOW.plus_seconds(60 * MINUTES_A_RUN * run))
}

#[tokio::test]
async fn a_sale_that_is_never_compared_keeps_no_other_from_it() {
    let is_it = |call: &Call| matches!(call, Call::Claims { sale, .. } if *sale == id(0));
    let ports = stuck_at(is_it).await;
    let mut done = BTreeSet::new();
    let mut most_left = (0, NOW);
    for now in minutes() {
        let run = run_at(&ports, 2, now).await;
        assert_eq!(run.report.left as usize, SALES - compared(&run).len(), "{run:?}");
        assert!(run.report.left > 0 && !run.report.is_quiet() && run.report.failed == 0);
        most_left = most_left.max((run.report.left, now));
        done.extend(compared(&run));
    }
    assert_eq!(done, others());

    // The control: without another order each time, the last ones are never compared.
    let (left, now) = most_left;
    let mut done = BTreeSet::new();
    for _ in 0..RUNS {
        done.extend(compared(&run_at(&ports, 2, now).await));
    }
    assert!(left > 1 && done.len() == SALES - left as usize, "{done:?}");
}

#[tokio::test]
async fn a_sale_that_cannot_be_looked_at_keeps_no_other_from_it() {
    let is_it =
        |call: &Call| matches!(call, Call::Head { inventory } if *inventory.sale() == id(0));
    let ports = stuck_at(is_it).await;
    let mut done = BTreeSet::new();
    for now in minutes() {
        let run = run_at(&ports, 1, now).await;
        // What was prepared is compared in the same run.
        assert_eq!(run.report.left as usize, SALES - compared(&run).len(), "{run:?}");
        done.extend(compared(&run));
    }
    assert_eq!(done, others());
}

#[tokio::test]
async fn work_that_is_due_and_never_ends_keeps_neither_other_work_nor_a_sale_waiting() {
    let ports = stuck_at(|call| matches!(call, Call::Due { shard: 3, .. })).await;
    for now in minutes() {
        let run = run_at(&ports, 0, now).await;
        assert!((1..=u32::from(DUE_SHARDS)).contains(&run.report.left), "{run:?}");
        assert_eq!(compared(&run).len(), SALES, "the other parts have their own time");
    }
    let listed = ports.0.shards.lock().unwrap().clone();
    assert_eq!(listed, (0..DUE_SHARDS).filter(|shard| *shard != 3).collect());
}
