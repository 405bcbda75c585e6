//! The inventory of one sale, or of one tier of a sale that keeps its tiers apart: which orders hold which
//! seat-legs, which seat-legs are taken, and which are sold.
//!
//! These are the rules. [`Inventory`] is the pure model of what Redis keeps in one slot, and each of
//! its methods is one script in `lua/`; a property test runs the same random commands through both
//! and compares every reply and the final state. The simulator and the model checker run it in the
//! place of Redis.
//! Every method checks everything first and then writes everything.
//!
//! Builds on [`basics`](super::basics) and [`sale`](super::sale).

use std::collections::BTreeMap;

pub mod capacity;
mod check;
pub mod choice;
#[cfg(test)]
mod fixtures;
mod freed;
mod grid;
mod hold;
mod load;
mod mark;
mod records;
mod recount;
mod release;
mod repair;
mod restore;
mod sell;
mod unsell;

pub use check::Inconsistency;
pub use freed::{Freed, SEATS_PER_FREED_BLOCK, freed_block_of};
pub use grid::TierGrid;
pub use hold::{Hold, HoldReply};
pub use load::{Load, LoadPart, LoadReply, PartLimit, Staging};
pub use mark::{Mark, MarkReply};
pub use records::{HeldLine, HoldRecord, Line, SeatLeg, Terms, tickets};
pub use recount::{Recount, RecountReply};
pub use release::{Release, ReleaseReply};
pub use repair::{Repair, RepairReply};
pub use restore::{Restore, RestoreReply, SeatsSold};
pub use sell::{Sell, SellReply};
pub use unsell::{Unsell, UnsellReply};

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, Leg, Seat, TierId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;

/// The state of one inventory in Redis ([`InventoryId`](crate::domain::basics::ids::InventoryId)): of one sale, or
/// of one tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// The epoch and terms of the sale; `None` until it is loaded.
    pub loaded: Option<(Epoch, Terms)>,
    /// The parts of an incomplete load that are in place; the inventory then counts as not loaded.
    pub staging: Option<Staging>,
    /// The bitmaps of its tiers, also of a load that is not yet published.
    pub tiers: BTreeMap<TierId, TierGrid>,
    pub holds: BTreeMap<OrderNumber, HoldRecord>,
    /// The number of tickets that each buyer holds or has bought; never zero.
    pub bought: BTreeMap<UserId, Tickets>,
}

impl Inventory {
    fn knows(&self, epoch: &Epoch) -> bool {
        let is_its_epoch = |(current, _): &(Epoch, Terms)| current == epoch;
        !stands(Guard::EpochFence) || self.loaded.as_ref().is_some_and(is_its_epoch)
    }

    /// The number of tickets that a buyer holds or has bought.
    #[must_use]
    pub fn bought_by(&self, user: &UserId) -> Tickets {
        self.bought.get(user).copied().unwrap_or_default()
    }

    fn add_bought(&mut self, user: &UserId, tickets: i32) {
        let now = i32::from(self.bought_by(user)) + tickets;
        match u16::try_from(now.max(0)).unwrap_or(u16::MAX) {
            0 => self.bought.remove(user),
            now => self.bought.insert(user.clone(), Tickets::new(now)),
        };
    }

    fn for_each_seat_leg(
        &mut self,
        lines: &[HeldLine],
        mut act: impl FnMut(&mut TierGrid, Leg, Seat),
    ) {
        for line in lines {
            let Some(grid) = self.tiers.get_mut(&line.tier) else { continue };
            for leg in line.legs.iter() {
                line.seats.iter().for_each(|seat| act(grid, leg, *seat));
            }
        }
    }

    fn count_freed(&mut self, lines: &[HeldLine]) {
        for line in lines {
            if let Some(grid) = self.tiers.get_mut(&line.tier) {
                grid.count_freed(line.seats.iter().copied());
            }
        }
    }

    /// True if no seat of the blocks of some lines was freed since somebody saw their counters, line by line.
    fn is_unfreed(&self, lines: &[HeldLine], seen: &[Vec<u32>]) -> bool {
        let freed = |line: &HeldLine| {
            let grid = self.tiers.get(&line.tier)?;
            Some(grid.freed.of(line.seats.iter().copied()))
        };
        lines.iter().map(freed).eq(seen.iter().cloned().map(Some))
    }

    fn put_hold(&mut self, order: OrderNumber, record: &HoldRecord) {
        self.for_each_seat_leg(&record.lines, |grid, leg, seat| grid.set_taken(leg, seat, true));
        self.add_bought(&record.user, i32::from(record.tickets()));
        self.holds.insert(order, record.clone());
    }

    /// The orders whose deadline has passed, earliest first, at most `most` of them.
    #[must_use]
    pub fn due(&self, now: Timestamp, most: usize) -> Vec<OrderNumber> {
        let mut due: Vec<(Timestamp, OrderNumber)> =
            self.holds.iter().map(|(order, record)| (record.deadline, *order)).collect();
        due.retain(|(deadline, _)| *deadline <= now);
        due.sort();
        due.into_iter().map(|(_, order)| order).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::fixtures::{NOW, ask, best, held, line, loaded, number};
    use super::*;

    #[test]
    fn due_is_by_deadline_and_bounded() {
        let mut inventory = loaded();
        for (order, seconds) in [(3, 10), (1, 30), (2, 20)] {
            let hold = ask(order, "u", vec![line("a", (0, 1), best(1))]);
            held(&mut inventory, &Hold { deadline: NOW.plus_seconds(seconds), ..hold });
        }
        assert_eq!(inventory.due(NOW.plus_seconds(20), 9), [number(3), number(2)]);
        assert_eq!(inventory.due(NOW.plus_seconds(60), 1), [number(3)]);
        assert!(inventory.due(NOW, 9).is_empty());
    }
}
