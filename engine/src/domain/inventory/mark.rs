//! Marking: after a claim conflict, a hold is freed, except for the seat-legs that other orders own.

use super::{HoldRecord, Inventory, SeatLeg};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::InventoryId;
use crate::domain::basics::number::OrderNumber;

/// After a claim conflict: give a hold back, but leave taken what truly belongs to other orders.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mark {
    pub inventory: InventoryId,
    /// Number of the order that lost its seats.
    pub order: OrderNumber,
    /// The hold that the caller saw.
    pub record: HoldRecord,
    /// The seat-legs that others own, all of them part of the hold.
    pub taken: Vec<SeatLeg>,
}

/// The reply of `mark`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkReply {
    /// The hold has ended; what others own stays taken.
    Marked,
    /// The order holds nothing.
    NotHeld,
    /// The order holds something else than the caller saw; nothing was written.
    Conflict,
}

impl Inventory {
    /// Gives a hold back, as [`Inventory::release`], but leaves taken what others own. All at once:
    /// part of a hold must never be found by a repeated attempt, which would order only that.
    pub fn mark(&mut self, command: &Mark) -> MarkReply {
        match self.holds.get(&command.order) {
            None => return MarkReply::NotHeld,
            Some(record) if stands(Guard::ReleaseSeen) && *record != command.record => {
                return MarkReply::Conflict;
            }
            Some(_) => {}
        }
        self.holds.remove(&command.order);
        self.for_each_seat_leg(&command.record.lines, |grid, leg, seat| {
            let seat_leg = SeatLeg { tier: grid.tier.clone(), leg, seat };
            if !stands(Guard::MarkTaken) || !command.taken.contains(&seat_leg) {
                grid.free(leg, seat);
            }
        });
        self.count_freed(&command.record.lines);
        self.add_bought(&command.record.user, -i32::from(command.record.tickets()));
        MarkReply::Marked
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{
        NOW, ask, best, bought, held, inventory_id, line, loaded, number, tier,
    };
    use super::*;
    use crate::domain::basics::ids::{Leg, Seat};
    use crate::domain::inventory::Freed;

    #[test]
    fn a_mark_gives_a_hold_back_but_for_what_others_own() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let mark = |record: &HoldRecord| Mark {
            inventory: inventory_id(),
            order: number(1),
            record: record.clone(),
            taken: vec![SeatLeg { tier: tier("a"), leg: Leg(0), seat: Seat(0) }],
        };
        let other = HoldRecord { deadline: NOW, ..record.clone() };
        assert_eq!(inventory.mark(&mark(&other)), MarkReply::Conflict);
        assert_eq!(inventory.mark(&mark(&record)), MarkReply::Marked);
        let grid = &inventory.tiers[&tier("a")];
        assert!(grid.is_taken(Leg(0), Seat(0)) && !grid.is_taken(Leg(1), Seat(0)));
        assert!(!grid.is_taken(Leg(0), Seat(1)) && !grid.is_taken(Leg(1), Seat(1)));
        assert_eq!(grid.freed, Freed::from_counters([1]));
        assert_eq!((inventory.holds.len(), bought(&inventory, "u")), (0, None));
        assert_eq!(inventory.mark(&mark(&record)), MarkReply::NotHeld);
    }
}
