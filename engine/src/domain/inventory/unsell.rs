//! Unselling: the seats of refunded tickets become free.

use super::{HeldLine, Inventory, tickets};
use crate::domain::basics::ids::{Epoch, InventoryId, UserId};

/// Free sold seats that nobody claims any more, and take them off what their buyer has bought.
///
/// A sold seat has no owner in Redis. So it is freed only by somebody who saw it sold and then nobody claim
/// it, and only while no seat of its block was freed since: then nobody can have held it meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unsell {
    pub inventory: InventoryId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    /// The buyer who had the tickets.
    pub user: UserId,
    pub lines: Vec<HeldLine>,
    /// For each line, the counters of the blocks of its seats ([`Freed::of`](super::Freed::of)) before the
    /// caller saw them sold and then nobody claim them.
    pub freed: Vec<Vec<u32>>,
}

/// The reply of `unsell`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnsellReply {
    /// The seats are free, and off what the buyer has bought.
    Unsold,
    /// Not all of them are sold: nothing was done.
    NotSold,
    /// Seats of these blocks were freed since the caller read the tiers: nothing was done.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

impl Inventory {
    /// Frees sold seats, all or none, unless a seat of their blocks was freed since the caller saw them.
    /// Running it twice frees and counts once.
    pub fn unsell(&mut self, command: &Unsell) -> UnsellReply {
        if !self.knows(&command.epoch) {
            return UnsellReply::NotLoaded;
        }
        let lines = &command.lines;
        if !self.is_unfreed(lines, &command.freed) {
            return UnsellReply::Conflict;
        }
        let mut all_sold = true;
        self.for_each_seat_leg(lines, |grid, leg, seat| {
            all_sold &= grid.is_sold(leg, seat) && grid.is_taken(leg, seat);
        });
        if !all_sold {
            return UnsellReply::NotSold;
        }
        self.for_each_seat_leg(lines, |grid, leg, seat| {
            grid.set_taken(leg, seat, false);
            grid.set_sold(leg, seat, false);
        });
        self.count_freed(lines);
        self.add_bought(&command.user, -i32::from(tickets(lines)));
        UnsellReply::Unsold
    }
}

#[cfg(test)]
mod tests {
    use super::super::HoldRecord;
    use super::super::fixtures::{
        ask, best, bought, epoch, held, inventory_id, line, loaded, sell, tier,
    };
    use super::*;
    use crate::domain::basics::ids::{Leg, Seat};

    fn unsell(record: &HoldRecord, seats: &[u32], freed: u32) -> Unsell {
        let seats = seats.iter().copied().map(Seat).collect();
        Unsell {
            inventory: inventory_id(),
            epoch: epoch(),
            user: record.user.clone(),
            lines: vec![HeldLine { seats, ..record.lines[0].clone() }],
            freed: vec![vec![freed]],
        }
    }

    #[test]
    fn a_part_of_what_was_sold_becomes_free_once() {
        let mut inventory = loaded();
        let fresh = inventory.clone();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let early = unsell(&record, &[0], 0);
        assert_eq!(inventory.unsell(&early), UnsellReply::NotSold, "it is held");
        inventory.sell(&sell(1, &record));
        let wrong = Unsell { epoch: Epoch::new("e2").unwrap(), ..early.clone() };
        assert_eq!(inventory.unsell(&wrong), UnsellReply::NotLoaded);
        assert_eq!(inventory.unsell(&early), UnsellReply::Unsold);
        assert_eq!(bought(&inventory, "u"), Some(1));
        let grid = &inventory.tiers[&tier("a")];
        assert!(!grid.is_taken(Leg(0), Seat(0)) && !grid.is_sold(Leg(1), Seat(0)));
        assert!(grid.is_taken(Leg(0), Seat(1)) && grid.is_sold(Leg(1), Seat(1)));
        let before = inventory.clone();
        assert_eq!(inventory.unsell(&early), UnsellReply::Conflict);
        assert_eq!(inventory.unsell(&unsell(&record, &[0], 1)), UnsellReply::NotSold);
        assert_eq!(inventory, before);
        assert_eq!(inventory.unsell(&unsell(&record, &[1], 1)), UnsellReply::Unsold);
        assert_eq!(bought(&inventory, "u"), None);
        assert_eq!(inventory.tiers[&tier("a")].taken, fresh.tiers[&tier("a")].taken);
    }

    #[test]
    fn a_late_one_does_not_touch_the_next_buyers_seat() {
        let mut inventory = loaded();
        let wish = |order: u64, user: &str| ask(order, user, vec![line("a", (0, 2), best(1))]);
        let record = held(&mut inventory, &wish(1, "u"));
        inventory.sell(&sell(1, &record));
        let late = unsell(&record, &[0], 0);
        assert_eq!(inventory.unsell(&late), UnsellReply::Unsold);
        let next = held(&mut inventory, &wish(2, "v"));
        inventory.sell(&sell(2, &next));
        let before = inventory.clone();
        assert_eq!(inventory.unsell(&late), UnsellReply::Conflict);
        assert_eq!(inventory, before);
    }
}
