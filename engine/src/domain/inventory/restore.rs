//! Restoring: the hold of a pending order that Redis has forgotten.

use super::{HoldRecord, Inventory};
use crate::domain::guard::{Guard, stands};
use crate::domain::ids::{Epoch, InventoryId};
use crate::domain::number::OrderNumber;

/// Write the hold of a pending order that Redis has forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Restore {
    /// The inventory.
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
}

/// The reply of `restore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RestoreReply {
    /// The order has a hold, now or already.
    Restored,
    /// Seats of these blocks were freed since the caller read the tiers, or one of these seats is sold:
    /// read them again.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

impl Inventory {
    /// Writes a pending order's hold if there is none under its number, unless the order may have
    /// ended since the caller read it: paid, then its seats are sold; else, then they were freed. If
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
        let mut is_sold = false;
        self.for_each_seat_leg(lines, |grid, leg, seat| is_sold |= grid.is_sold(leg, seat));
        if stands(Guard::RestoreUnsold) && is_sold {
            return RestoreReply::Conflict;
        }
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
    use crate::domain::ids::Leg;
    use crate::domain::ids::Seat;

    #[test]
    fn a_forgotten_hold_is_restored_once_and_its_seats_again() {
        let mut inventory = loaded();
        let record = held(&mut loaded(), &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let freed = vec![vec![0]];
        let restore =
            Restore { inventory: inventory_id(), epoch: epoch(), order: number(1), record, freed };
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
}
