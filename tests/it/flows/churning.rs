//! Reconcile while seats are given back ten times a second: what has leaked is on sale again.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use engine::domain::basics::ids::{
    Epoch, InventoryId, Leg, Legs, RequestFingerprint, SaleId, Seat, TierId, UserId,
};
use engine::domain::basics::number::Mint;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{Hold, HoldReply, Line, Release, ReleaseReply};
use engine::domain::sale::Sale;
use engine::flows::publish::publish;
use engine::flows::reconcile::reconcile;
use engine::ports::Stored;
use model_stores::{Call, Caller, Driver, Reply, Stores};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;

const START: Timestamp = Timestamp::from_ms(1_795_000_000_000);
const SEATS: u32 = 60_000;
/// Holds that are there at a time, and how often one is given back and another made.
const HOLDS: usize = 400;
const RELEASE_MS: i64 = 100;
/// Time that a call of a store takes.
const CALL_MS: i64 = 10;
/// Seats that leaked: anywhere, and among those that are sold at this time.
const SCATTERED: u32 = 200;
const AT_THE_FRONT: u32 = 10;

fn sale_id() -> SaleId {
    SaleId::new("stadium").unwrap()
}

fn inventory_id() -> InventoryId {
    InventoryId::whole(sale_id())
}

fn tier() -> TierId {
    TierId::new("all").unwrap()
}

/// The stores, and a crowd that goes on with every call of them.
struct Crowd {
    stores: Stores,
    now: Timestamp,
    next_release: Timestamp,
    rng: StdRng,
    mint: Mint,
    holds: Vec<Release>,
    releases: usize,
}

impl Crowd {
    /// Holds two of the best seats, or two neighbours somewhere.
    fn hold(&mut self) {
        let user = UserId::new(format!("u{}", self.rng.random::<u32>())).unwrap();
        let choice = if self.rng.random_bool(0.5) {
            Choice::Best { count: 2, together: Together::Preferred }
        } else {
            let first = self.rng.random_range(0..SEATS - 1);
            Choice::Seats(vec![Seat(first), Seat(first + 1)])
        };
        let order = self.mint.mint(self.now, &user);
        let hold = Hold {
            inventory: inventory_id(),
            epoch: Epoch::new("e1").unwrap(),
            order,
            user,
            fingerprint: RequestFingerprint::new("00000000000000aa").unwrap(),
            now: self.now,
            deadline: self.now.plus_seconds(3600),
            replaced: Tickets::NONE,
            lines: vec![Line { tier: tier(), legs: Legs::ONE, choice }],
        };
        let reply = self.stores.seats.of(&inventory_id()).hold(&hold);
        if let HoldReply::Held { record, .. } = reply {
            self.holds.push(Release { inventory: inventory_id(), order, record });
        }
    }

    /// Lets time pass, and with it the crowd.
    fn pass(&mut self, ms: i64) {
        self.now = self.now.plus_ms(ms);
        while self.next_release <= self.now {
            self.next_release = self.next_release.plus_ms(RELEASE_MS);
            let one = self.rng.random_range(0..self.holds.len());
            let release = self.holds.swap_remove(one);
            let inventory = self.stores.seats.of(&inventory_id());
            assert_eq!(inventory.release(&release), ReleaseReply::Released);
            self.releases += 1;
            while self.holds.len() < HOLDS {
                self.hold();
            }
        }
    }

    /// Those of some seats that are taken and in no hold.
    fn leaked(&self, seats: &BTreeSet<Seat>) -> usize {
        let inventory = self.stores.seats.get(&inventory_id()).unwrap();
        let lines = inventory.holds.values().flat_map(|record| &record.lines);
        let held: BTreeSet<Seat> = lines.flat_map(|line| line.seats.iter().copied()).collect();
        let is_leaked = |seat: &&Seat| {
            inventory.tiers[&tier()].is_taken(Leg(0), **seat) && !held.contains(*seat)
        };
        seats.iter().filter(is_leaked).count()
    }
}

struct Churning(Mutex<Crowd>);

impl Churning {
    fn with<T>(&self, act: impl FnOnce(&mut Crowd) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Driver for Churning {
    async fn call(&self, call: Call) -> Stored<Reply> {
        self.with(|crowd| {
            if !crowd.holds.is_empty() {
                crowd.pass(CALL_MS);
            }
            crowd.stores.apply(crowd.now, &call)
        })
    }
}

#[tokio::test]
async fn what_has_leaked_is_on_sale_within_two_minutes_while_ten_holds_a_second_are_given_back() {
    let file = json!({
        "sale": sale_id(), "title": "Stadium", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2040-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 600,
        "tiers": [{ "tier": tier(), "name": "All", "price_minor": 10, "general_admission": SEATS }],
    });
    let sale = Sale::new(serde_json::from_value(file).unwrap()).unwrap();
    let ports = Caller(Churning(Mutex::new(Crowd {
        stores: Stores::default(),
        now: START,
        next_release: START,
        rng: StdRng::seed_from_u64(4),
        mint: Mint::new(1),
        holds: Vec::new(),
        releases: 0,
    })));
    publish(&ports, &sale, &Epoch::new("e1").unwrap(), START).await.unwrap();
    let leaked = ports.0.with(|crowd| {
        let scattered: Vec<u32> =
            (0..SCATTERED).map(|_| crowd.rng.random_range(0..SEATS)).collect();
        let front = (0..AT_THE_FRONT).map(|seat| seat * 20 + 7);
        let seats: BTreeSet<Seat> = scattered.into_iter().chain(front).map(Seat).collect();
        let inventory = crowd.stores.seats.of(&inventory_id());
        let grid = inventory.tiers.get_mut(&tier()).unwrap();
        seats.iter().for_each(|seat| grid.claim(Leg(0), *seat, false));
        while crowd.holds.len() < HOLDS {
            crowd.hold();
        }
        crowd.next_release = crowd.now;
        seats
    });
    assert_eq!(ports.0.with(|crowd| crowd.leaked(&leaked)), leaked.len());
    // Once a minute, as it is scheduled; the last run has its own time within the two minutes.
    for minute in 0..2 {
        let now = ports.0.with(|crowd| {
            let passed = START.plus_seconds(60 * minute).ms_since(crowd.now);
            crowd.pass(passed.max(0));
            crowd.now
        });
        let epoch = Epoch::new(format!("r{minute}")).unwrap();
        let report = reconcile(&ports, &epoch, now).await.unwrap();
        let (after_ms, left, releases) = ports
            .0
            .with(|crowd| (crowd.now.ms_since(START), crowd.leaked(&leaked), crowd.releases));
        println!(
            "{left} of {} seats are leaked after {} s and {releases} releases; freed {}",
            leaked.len(),
            after_ms / 1000,
            report.freed
        );
        assert!(after_ms <= 120_000, "{after_ms}");
    }
    assert_eq!(ports.0.with(|crowd| crowd.leaked(&leaked)), 0);
}
