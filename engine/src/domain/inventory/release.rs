//! Releasing: the seats of an order's hold become free.

use super::{HoldRecord, Inventory, TierGrid};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::InventoryId;
use crate::domain::basics::number::OrderNumber;

/// Give a hold back, if it still is what the caller saw.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    pub inventory: InventoryId,
    /// Number of the order.
    pub order: OrderNumber,
    /// The hold that the caller saw.
    pub record: HoldRecord,
}

/// The reply of `release`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReleaseReply {
    /// The seats are free again, but for those that are sold.
    Released,
    /// The order holds nothing.
    NotHeld,
    /// The order holds something else than the caller saw; nothing was written.
    Conflict,
}

impl Inventory {
    /// Gives a hold back: by order number, only from held, never a seat that is sold.
    pub fn release(&mut self, command: &Release) -> ReleaseReply {
        match self.holds.get(&command.order) {
            None if stands(Guard::ReleaseOnlyHeld) => return ReleaseReply::NotHeld,
            Some(record) if stands(Guard::ReleaseSeen) && *record != command.record => {
                return ReleaseReply::Conflict;
            }
            None | Some(_) => {}
        }
        self.holds.remove(&command.order);
        self.for_each_seat_leg(&command.record.lines, TierGrid::free);
        self.count_freed(&command.record.lines);
        self.add_bought(&command.record.user, -i32::from(command.record.tickets()));
        ReleaseReply::Released
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{NOW, ask, best, bought, held, line, loaded, release, sell, tier};
    use super::super::{Freed, HeldLine, Sell, SellReply};
    use super::*;
    use crate::domain::basics::ids::{Leg, Seat};

    #[test]
    fn a_release_gives_back_once_and_only_what_the_caller_saw() {
        let mut inventory = loaded();
        let fresh = inventory.clone();
        let hold = ask(1, "u", vec![line("a", (0, 2), best(2))]);
        let record = held(&mut inventory, &hold);
        let other = HoldRecord { deadline: NOW, ..record.clone() };
        assert_eq!(inventory.release(&release(1, &other)), ReleaseReply::Conflict);
        assert_eq!(inventory.release(&release(2, &record)), ReleaseReply::NotHeld);
        assert_eq!(inventory.release(&release(1, &record)), ReleaseReply::Released);
        assert_eq!(inventory.tiers[&tier("a")].taken, fresh.tiers[&tier("a")].taken);
        assert_eq!(inventory.tiers[&tier("a")].freed, Freed::from_counters([1]));
        assert_eq!(bought(&inventory, "u"), None);
        // Another order takes the seats; a second release must not give those back.
        held(&mut inventory, &ask(2, "v", vec![line("a", (0, 2), best(2))]));
        let before = inventory.clone();
        assert_eq!(inventory.release(&release(1, &record)), ReleaseReply::NotHeld);
        assert_eq!(inventory, before);
    }

    #[test]
    fn a_release_never_frees_what_is_sold() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let first_seat = vec![HeldLine { seats: vec![Seat(0)], ..record.lines[0].clone() }];
        let freed = Some(vec![vec![0]]);
        let part = Sell { lines: first_seat, freed, ..sell(1, &record) };
        assert_eq!(inventory.sell(&part), SellReply::Sold);
        assert_eq!(inventory.holds.len(), 1, "other seats were sold than the hold's");
        assert_eq!(inventory.release(&release(1, &record)), ReleaseReply::Released);
        let grid = &inventory.tiers[&tier("a")];
        assert!(grid.is_taken(Leg(0), Seat(0)) && grid.is_sold(Leg(1), Seat(0)));
        assert!(!grid.is_taken(Leg(0), Seat(1)));
    }
}
