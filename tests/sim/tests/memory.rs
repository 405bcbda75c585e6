//! The memory of the largest comparison and of the largest load, as `docs/performance.md` states it: the
//! flows run on a store that makes its answers up, so that nothing but what they keep is counted.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "the store answers what these flows ask, and no more"
)]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use engine::domain::basics::ids::{
    Epoch, Leg, Legs, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{Freed, HoldRecord, LoadReply, TierGrid};
use engine::domain::order::attempt::Attempts;
use engine::domain::order::{Issue, Order, OrderLine, OrderState, Ticket};
use engine::domain::sale::Sale;
use engine::domain::sale::archive::Lifecycle;
use engine::flows::load::{Loaded, load, terms};
use engine::flows::reconcile::dry_run;
use engine::ports::{
    BlockClaims, ChangeReply, Claim, Published, SEATS_PER_BLOCK, StoreError, Stored,
};
use model_stores::{Call, Caller, Driver, Reply};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// The number of the first order.
const FIRST: u64 = 123_456_789_012_345_670;

/// A sale of which every two neighbouring seats are an order, the first ones pending.
struct Full {
    sale: Arc<Sale>,
    tiers: Vec<TierId>,
    seats_a_tier: u32,
    pending: u64,
    epoch: Option<Epoch>,
    parts: Mutex<usize>,
}

impl Full {
    fn new(tiers: u32, seats_a_tier: u32, pending: u64, epoch: Option<&str>) -> Self {
        let ids: Vec<TierId> =
            (0..tiers).map(|index| TierId::new(format!("tier-{index}")).unwrap()).collect();
        let tier = |id: &TierId| json!({ "tier": id, "name": "T", "price_minor": 500, "general_admission": seats_a_tier });
        let tiers: Vec<Value> = ids.iter().map(tier).collect();
        let file = json!({
            "sale": "full", "title": "Full", "currency": "EUR",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 60, "tiers": tiers,
        });
        let sale = Arc::new(Sale::new(serde_json::from_value(file).unwrap()).unwrap());
        let epoch = epoch.map(|epoch| Epoch::new(epoch).unwrap());
        Self { sale, tiers: ids, seats_a_tier, pending, epoch, parts: Mutex::new(0) }
    }

    fn orders(&self) -> u64 {
        self.tiers.len() as u64 * u64::from(self.seats_a_tier) / 2
    }

    fn number(index: u64) -> OrderNumber {
        (FIRST + index).to_string().parse().unwrap()
    }

    fn order(&self, number: OrderNumber) -> Order {
        let index = number.to_string().parse::<u64>().unwrap() - FIRST;
        let tier = index * 2 / u64::from(self.seats_a_tier);
        let first = (index * 2 % u64::from(self.seats_a_tier)) as u32;
        let ticket = |seat: u32| Ticket {
            seat: Seat(seat),
            name: SeatName::new(format!("Spot {seat}")).unwrap(),
            attendee: None,
            refund: None,
            issue: Issue::FIRST,
            checked_in: None,
        };
        let line = OrderLine {
            tier: self.tiers[tier as usize].clone(),
            legs: Legs::ONE,
            price_minor: MinorUnits(500),
            terms: None,
            exchange: None,
            tickets: vec![ticket(first), ticket(first + 1)],
        };
        let is_pending = index < self.pending;
        Order {
            number,
            sale: self.sale.id().clone(),
            user: UserId::new(format!("auth0|{index:024}")).unwrap(),
            state: if is_pending { OrderState::Pending } else { OrderState::Paid },
            lines: vec![line],
            total: self.sale.money(MinorUnits(1000)),
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: NOW.plus_seconds(60),
            changed_at: NOW,
            payment: None,
            attempts: Attempts::default(),
            facts: engine::domain::order::fact::Facts::made(NOW),
            refunds: engine::domain::order::order_refund::RefundCounts::default(),
            merchant: engine::domain::sale::MerchantTerms::house(),
            exchange: None,
        }
    }

    fn claims(&self, tier: &TierId, block: u32) -> Vec<Claim> {
        let place = self.tiers.iter().position(|other| other == tier).unwrap() as u64;
        let first = block * SEATS_PER_BLOCK;
        let seats = first..(first + SEATS_PER_BLOCK).min(self.seats_a_tier);
        let order =
            |seat: u32| Self::number((place * u64::from(self.seats_a_tier) + u64::from(seat)) / 2);
        seats.map(|seat| Claim { seat: Seat(seat), leg: Leg(0), order: order(seat) }).collect()
    }

    fn grid(&self, tier: &TierId) -> TierGrid {
        let layout = &self.sale.tier(tier).unwrap().layout;
        let mut grid = TierGrid {
            tier: tier.clone(),
            row_bytes: layout.row_bytes(),
            middles: layout.middles(),
            taken: vec![layout.initial().to_vec()],
            sold: vec![vec![0; layout.initial().len()]],
            freed: Freed::default(),
        };
        for block in 0..self.seats_a_tier.div_ceil(SEATS_PER_BLOCK) {
            for claim in self.claims(tier, block) {
                let is_paid = self.order(claim.order).state == OrderState::Paid;
                grid.claim(claim.leg, claim.seat, is_paid);
            }
        }
        grid
    }

    fn holds(&self) -> Vec<(OrderNumber, HoldRecord)> {
        let numbers = (0..self.pending).map(Self::number);
        numbers.map(|number| (number, self.order(number).hold_record())).collect()
    }
}

impl Driver for &Full {
    async fn call(&self, call: Call) -> Stored<Reply> {
        let published = || Published {
            sale: Arc::clone(&self.sale),
            map: None,
            epoch: self.epoch.clone(),
            version: 1,
            lifecycle: Lifecycle::Listed,
        };
        Ok(match call {
            Call::Sales {} => Reply::Sales(vec![self.sale.id().clone()]),
            Call::Sale { .. } => Reply::Sale(Some(published())),
            Call::Epoch { .. } => Reply::Epoch(None),
            Call::Head { .. } => {
                Reply::Head(self.epoch.clone().map(|epoch| (epoch, terms(&self.sale))))
            }
            Call::Lease { .. } => Reply::Lease(ChangeReply::Done),
            Call::Prolong { .. } => Reply::Prolong(ChangeReply::Done),
            Call::Loaded { .. } => Reply::Loaded(ChangeReply::Done),
            Call::Due { .. } => Reply::Due(Vec::new()),
            Call::HoldsDue { .. } => Reply::HoldsDue(Vec::new()),
            Call::Claims { tier, block, .. } => Reply::Claims(BlockClaims {
                claims: self.claims(&tier, block),
                returned: Vec::new(),
            }),
            Call::ManyOrders { numbers } => {
                Reply::ManyOrders(numbers.into_iter().map(|number| self.order(number)).collect())
            }
            Call::Grid { tier, .. } => Reply::Grid(self.grid(&tier)),
            Call::Holds { .. } => Reply::Holds(self.holds()),
            Call::Load { part } => {
                *self.parts.lock().unwrap() += 1;
                Reply::Load(if part.is_last { LoadReply::Loaded } else { LoadReply::Staged })
            }
            other => return Err(StoreError::Contract(format!("nobody expects {}", other.name()))),
        })
    }
}

/// Runs a flow whose calls are all answered at once.
fn run<T>(flow: impl Future<Output = T>) -> T {
    let mut flow = pin!(flow);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = flow.as_mut().poll(&mut context) {
            return done;
        }
    }
}

/// What the process has of memory, in KiB, by the name of the line in `/proc/self/status`.
fn memory_kib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let fields: BTreeMap<&str, &str> =
        status.lines().filter_map(|line| line.split_once(':')).collect();
    fields[name].trim().trim_end_matches(" kB").parse().unwrap()
}

/// The most memory that some work takes besides what there was, in MiB.
fn peak_mib(work: impl FnOnce()) -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory_kib("VmRSS");
    work();
    (memory_kib("VmHWM").saturating_sub(before)) / 1024
}

/// Runs a measurement of this file in a process of its own, and returns the MiB that it prints.
fn alone(name: &str) -> u64 {
    let test = std::env::current_exe().unwrap();
    let run = Command::new(test).args(["--exact", name, "--ignored", "--nocapture"]).output();
    let output = String::from_utf8(run.unwrap().stdout).unwrap();
    let said = output.lines().find_map(|line| line.strip_prefix("MiB: "));
    said.unwrap_or_else(|| panic!("{output}")).parse().unwrap()
}

#[test]
#[ignore = "needs a process of its own, which `cargo test -p sim --test memory` starts"]
fn a_comparison_of_64_tiers_and_50_000_holds() {
    let full = Full::new(64, 1_564, 50_000, Some("e"));
    println!(
        "\nMiB: {}",
        peak_mib(|| {
            let found = run(dry_run(&Caller(&full), NOW)).unwrap();
            assert_eq!(found.found, []);
            assert_eq!(found.available, [(SaleId::new("full").unwrap(), 0)]);
        })
    );
}

#[test]
#[ignore = "needs a process of its own, which `cargo test -p sim --test memory` starts"]
fn a_load_of_500_000_orders() {
    let full = Full::new(1, 1_000_000, 50_000, None);
    let epoch = Epoch::new("e").unwrap();
    println!(
        "\nMiB: {}",
        peak_mib(|| {
            let loaded = run(load(&Caller(&full), full.sale.id(), &epoch, NOW)).unwrap();
            assert_eq!(loaded, Loaded::Now { orders: 500_000 });
            assert_eq!(full.orders(), 500_000);
            let parts = *full.parts.lock().unwrap();
            assert!((550..600).contains(&parts), "{parts} parts");
        })
    );
}

/// The functions that compare and load have 1,024 MiB.
#[test]
fn the_largest_comparison_and_the_largest_load_keep_their_bounds() {
    let comparison = alone("a_comparison_of_64_tiers_and_50_000_holds");
    let load = alone("a_load_of_500_000_orders");
    println!(
        "64 tiers and 50,000 holds compared: {comparison} MiB; 500,000 orders loaded: {load} MiB"
    );
    assert!((10..150).contains(&comparison), "{comparison}");
    assert!((10..400).contains(&load), "{load}");
}
