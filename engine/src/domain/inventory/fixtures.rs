//! A sale of two tiers over two legs, for the tests of the commands.

use std::collections::BTreeMap;

use super::choice::{Choice, Together};
use super::{
    Freed, HeldLine, Hold, HoldRecord, HoldReply, Inventory, Line, Load, LoadReply, Release, Sell,
    Terms, TierGrid,
};
use crate::domain::basics::ids::{
    Epoch, InventoryId, Legs, RequestFingerprint, SaleId, Seat, TierId, UserId,
};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::SaleState;

pub(super) const NOW: Timestamp = Timestamp::from_ms(1_000_000);

pub(super) fn tier(name: &str) -> TierId {
    TierId::new(name).unwrap()
}

pub(super) fn epoch() -> Epoch {
    Epoch::new("e1").unwrap()
}

pub(super) fn number(order: u64) -> OrderNumber {
    order.to_string().parse().unwrap()
}

pub(super) fn inventory_id() -> InventoryId {
    InventoryId::whole(SaleId::new("s").unwrap())
}

pub(super) fn terms() -> Terms {
    Terms {
        state: SaleState::Open,
        opens_at: NOW,
        closes_at: NOW.plus_seconds(3600),
        limit: Tickets::new(4),
        leg_count: 2,
    }
}

/// Tiers `a` and `b`, two rows of eight seats each, over two legs.
pub(super) fn load() -> Load {
    let empty = || vec![vec![0; 2]; 2];
    let grid = |name| TierGrid {
        tier: tier(name),
        row_bytes: 1,
        middles: Vec::new(),
        taken: empty(),
        sold: empty(),
        freed: Freed::default(),
    };
    Load {
        inventory: inventory_id(),
        terms: terms(),
        expected: None,
        epoch: epoch(),
        tiers: vec![grid("a"), grid("b")],
        holds: BTreeMap::new(),
        bought: BTreeMap::new(),
    }
}

pub(super) fn loaded() -> Inventory {
    let mut inventory = Inventory::default();
    assert_eq!(inventory.load(&load()), LoadReply::Loaded);
    inventory
}

pub(super) fn line(name: &str, (from, to): (u16, u16), choice: Choice) -> Line {
    Line { tier: tier(name), legs: Legs::new(from, to).unwrap(), choice }
}

pub(super) fn best(count: u16) -> Choice {
    Choice::Best { count, together: Together::Required }
}

pub(super) fn these(seats: &[u32]) -> Choice {
    Choice::Seats(seats.iter().copied().map(Seat).collect())
}

pub(super) fn ask(order: u64, user: &str, lines: Vec<Line>) -> Hold {
    Hold {
        inventory: inventory_id(),
        epoch: epoch(),
        order: number(order),
        user: UserId::new(user).unwrap(),
        fingerprint: RequestFingerprint::new("00000000000000aa").unwrap(),
        now: NOW,
        deadline: NOW.plus_seconds(600),
        replaced: Tickets::NONE,
        lines,
    }
}

/// Holds, and says what is remembered of it.
pub(super) fn held(inventory: &mut Inventory, hold: &Hold) -> HoldRecord {
    let reply = inventory.hold(hold);
    let HoldReply::Held { record, .. } = reply else { panic!("not held: {reply:?}") };
    record
}

pub(super) fn release(order: u64, record: &HoldRecord) -> Release {
    Release { inventory: inventory_id(), order: number(order), record: record.clone() }
}

pub(super) fn sell(order: u64, record: &HoldRecord) -> Sell {
    let (user, lines) = (record.user.clone(), record.lines.clone());
    Sell {
        inventory: inventory_id(),
        epoch: epoch(),
        order: number(order),
        user,
        lines,
        freed: None,
    }
}

pub(super) fn bought(inventory: &Inventory, user: &str) -> Option<u16> {
    inventory.bought.get(&UserId::new(user).unwrap()).map(|tickets| tickets.get())
}

pub(super) fn held_line(name: &str, (from, to): (u16, u16), seats: &[u32]) -> HeldLine {
    let seats = seats.iter().copied().map(Seat).collect();
    HeldLine { tier: tier(name), legs: Legs::new(from, to).unwrap(), seats }
}
