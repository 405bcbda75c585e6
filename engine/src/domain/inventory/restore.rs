//! Restoring: the hold of a pending order that Redis has forgotten.

use super::{HoldRecord, Inventory};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, InventoryId};
use crate::domain::basics::number::OrderNumber;

/// Write the hold of a pending order that Redis has forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Restore {
    pub inventory: InventoryId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    /// Number of the order.
    pub order: OrderNumber,
    /// The hold to write.
    pub record: HoldRecord,
    /// For each line, the counters of the blocks of its seats ([`Freed::of`](super::Freed::of)) before the
    /// caller read the tier: if seats of them were freed since, the order may have ended and its seats be held by
    /// others, and nothing is done.
    pub freed: Vec<Vec<u32>>,
    /// How many of its seat-legs were sold when the caller read the tier, before it read the order as pending:
    /// not for this order. If that is otherwise by now, the order may be paid, and nothing is done.
    pub sold: SeatsSold,
}

/// The number of some seat-legs that are sold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SeatsSold {
    None,
    /// Some, but not all.
    Some,
    /// All: a Redis that has forgotten how a paid order was refunded says so of the next buyer's seats.
    All,
}

impl SeatsSold {
    /// What each seat-leg comes to.
    #[must_use]
    pub fn of(each: impl IntoIterator<Item = bool>) -> Self {
        let (mut any, mut all) = (false, true);
        for is_sold in each {
            any |= is_sold;
            all &= is_sold;
        }
        match (any, all) {
            (false, _) => Self::None,
            (true, false) => Self::Some,
            (true, true) => Self::All,
        }
    }

    /// The text that the script knows it by.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Some => "some",
            Self::All => "all",
        }
    }
}

/// The reply of `restore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RestoreReply {
    /// The order has a hold, now or already.
    Restored,
    /// Seats of these blocks were freed since the caller read the tiers, or more of these seats are sold: read
    /// them again.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

impl Inventory {
    /// Writes a pending order's hold if there is none under its number, unless the order may have
    /// ended since the caller read it: paid, then more of its seats are sold than the caller saw; else, then
    /// they were freed. What was sold before the order was pending is held now. If
    /// it has this very hold, its seats are taken again: another hold that had them too, because
    /// this one was forgotten when it took them, may have given them back.
    pub fn restore(&mut self, command: &Restore) -> RestoreReply {
        if !self.knows(&command.epoch) {
            return RestoreReply::NotLoaded;
        }
        let lines = &command.record.lines;
        if let Some(held) = self.holds.get(&command.order) {
            if *held == command.record {
                self.for_each_seat_leg(lines, |grid, leg, seat| grid.set_taken(leg, seat, true));
            }
            return RestoreReply::Restored;
        }
        if stands(Guard::RestoreCounter) && !self.is_unfreed(lines, &command.freed) {
            return RestoreReply::Conflict;
        }
        let mut each = Vec::new();
        self.for_each_seat_leg(lines, |grid, leg, seat| {
            // Outside of the grid there is no bit to look at.
            each.extend(grid.has(leg, seat).then(|| grid.is_sold(leg, seat)));
        });
        if stands(Guard::RestoreUnsold) && SeatsSold::of(each) != command.sold {
            return RestoreReply::Conflict;
        }
        self.for_each_seat_leg(lines, |grid, leg, seat| grid.set_sold(leg, seat, false));
        self.put_hold(command.order, &command.record);
        RestoreReply::Restored
    }
}

#[cfg(test)]
mod tests {
    use super::super::Release;
    use super::super::fixtures::{
        ask, best, bought, epoch, held, inventory_id, line, loaded, number, sell, tier,
    };
    use super::*;
    use crate::domain::basics::ids::{Leg, Seat};

    #[test]
    fn a_forgotten_hold_is_restored_once_and_its_seats_again() {
        let mut inventory = loaded();
        let record = held(&mut loaded(), &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let freed = vec![vec![0]];
        let restore = Restore {
            inventory: inventory_id(),
            epoch: epoch(),
            order: number(1),
            record,
            freed,
            sold: SeatsSold::None,
        };
        let wrong = Restore { epoch: Epoch::new("e2").unwrap(), ..restore.clone() };
        assert_eq!(inventory.restore(&wrong), RestoreReply::NotLoaded);
        for _ in 0..2 {
            assert_eq!(inventory.restore(&restore), RestoreReply::Restored);
            assert_eq!(inventory.holds[&number(1)], restore.record);
            assert_eq!(bought(&inventory, "u"), Some(2));
            let grid = inventory.tiers.get_mut(&tier("a")).unwrap();
            assert!(grid.is_taken(Leg(1), Seat(1)));
            // As another hold of the seat does that is given back.
            grid.set_taken(Leg(1), Seat(1), false);
            grid.count_freed([Seat(1)].into_iter());
        }
    }

    #[test]
    fn an_order_that_ended_since_its_snapshot_is_not_restored() {
        let restore = |record: HoldRecord| Restore {
            inventory: inventory_id(),
            epoch: epoch(),
            order: number(1),
            record,
            freed: vec![vec![0]],
            sold: SeatsSold::None,
        };
        let mut paid = loaded();
        let record = held(&mut paid, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        paid.sell(&sell(1, &record));
        assert_eq!(paid.restore(&restore(record.clone())), RestoreReply::Conflict);
        assert_eq!(bought(&paid, "u"), Some(2), "no ticket is counted twice");
        let mut ended = loaded();
        held(&mut ended, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        ended.release(&Release {
            inventory: inventory_id(),
            order: number(1),
            record: record.clone(),
        });
        assert_eq!(ended.restore(&restore(record)), RestoreReply::Conflict);
        assert!(ended.holds.is_empty() && bought(&ended, "u").is_none());
    }

    #[test]
    fn seats_that_were_sold_before_the_order_was_pending_become_held() {
        let mut old = loaded();
        let first = held(&mut old, &ask(1, "u", vec![line("a", (0, 2), best(1))]));
        old.sell(&sell(1, &first));
        let two = held(&mut loaded(), &ask(2, "v", vec![line("a", (0, 2), best(2))]));
        let record = HoldRecord { lines: first.lines.clone(), ..two.clone() };
        let restore = |record: &HoldRecord, sold| Restore {
            inventory: inventory_id(),
            epoch: epoch(),
            order: number(2),
            record: record.clone(),
            freed: vec![vec![0]],
            sold,
        };
        for wrong in [SeatsSold::None, SeatsSold::Some] {
            assert_eq!(old.clone().restore(&restore(&record, wrong)), RestoreReply::Conflict);
        }
        for wrong in [SeatsSold::None, SeatsSold::All] {
            assert_eq!(old.clone().restore(&restore(&two, wrong)), RestoreReply::Conflict);
        }
        assert_eq!(old.clone().restore(&restore(&two, SeatsSold::Some)), RestoreReply::Restored);
        assert_eq!(old.restore(&restore(&record, SeatsSold::All)), RestoreReply::Restored);
        let grid = &old.tiers[&tier("a")];
        assert!(grid.is_taken(Leg(0), Seat(0)) && !grid.is_sold(Leg(0), Seat(0)));
        assert_eq!((bought(&old, "u"), bought(&old, "v")), (Some(1), Some(1)));
    }
}
