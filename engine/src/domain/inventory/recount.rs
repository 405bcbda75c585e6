//! Recounting: the number of tickets that a buyer has is corrected, where Redis has too many.

use super::{HeldLine, Inventory};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, InventoryId, UserId};
use crate::domain::basics::tickets::Tickets;

/// Correct how many tickets a buyer holds or has bought.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recount {
    pub inventory: InventoryId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    pub user: UserId,
    /// The count that Redis had before the caller read the holds, and then the orders.
    pub seen: Tickets,
    /// The count that Redis should have.
    pub tickets: Tickets,
    /// Seats of every hold and order that the buyer had when the caller looked, one line a tier: what has
    /// lowered the number since has freed one of them.
    pub lines: Vec<HeldLine>,
    /// For each line, the counters of the blocks of its seats ([`Freed::of`](super::Freed::of)) before the
    /// caller read the number. If seats of them were freed since, the same number may stand for other
    /// tickets, and nothing is done.
    pub freed: Vec<Vec<u32>>,
}

/// The reply of `recount`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecountReply {
    /// Redis has the right count now.
    Counted,
    /// The buyer has another number by now, or may have other tickets: nothing was done.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

impl Inventory {
    /// Corrects how many tickets a buyer has, unless that has changed since the caller looked.
    pub fn recount(&mut self, command: &Recount) -> RecountReply {
        if !self.knows(&command.epoch) {
            return RecountReply::NotLoaded;
        }
        let has = self.bought_by(&command.user);
        // A tier that is not there has counted nothing: the script looks at its counters alone.
        let counters = |line: &HeldLine| {
            let freed =
                self.tiers.get(&line.tier).map(|grid| grid.freed.clone()).unwrap_or_default();
            freed.of(line.seats.iter().copied())
        };
        let is_unfreed = command.lines.iter().map(counters).eq(command.freed.iter().cloned());
        let is_seen = has == command.seen && is_unfreed;
        if stands(Guard::RecountSeen) && !is_seen {
            return RecountReply::Conflict;
        }
        // Whoever looked when this did, and comes later, must not lower it once more: it may be the same again.
        if command.tickets < has {
            self.count_freed(&command.lines);
        }
        let tickets = i32::from(command.tickets) - i32::from(has);
        self.add_bought(&command.user, tickets);
        RecountReply::Counted
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ask, best, bought, epoch, held, inventory_id, line, loaded};
    use super::*;

    #[test]
    fn a_buyers_tickets_are_corrected_unless_they_changed() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let recount = |seen: u16, tickets: u16| Recount {
            inventory: inventory_id(),
            epoch: epoch(),
            user: record.user.clone(),
            seen: Tickets::new(seen),
            tickets: Tickets::new(tickets),
            lines: record.lines.clone(),
            freed: vec![vec![0]],
        };
        let wrong = Recount { epoch: Epoch::new("e2").unwrap(), ..recount(2, 1) };
        assert_eq!(inventory.recount(&wrong), RecountReply::NotLoaded);
        assert_eq!(inventory.recount(&recount(1, 0)), RecountReply::Conflict);
        let freed = Recount { freed: vec![vec![1]], ..recount(2, 1) };
        assert_eq!(inventory.recount(&freed), RecountReply::Conflict);
        assert_eq!(inventory.recount(&recount(2, 1)), RecountReply::Counted);
        assert_eq!(bought(&inventory, "u"), Some(1));
        // The number is as somebody else has seen it, who looked before that.
        assert_eq!(inventory.recount(&recount(1, 0)), RecountReply::Conflict);
        let later = |seen, tickets| Recount { freed: vec![vec![1]], ..recount(seen, tickets) };
        assert_eq!(inventory.recount(&later(1, 0)), RecountReply::Counted);
        assert_eq!(bought(&inventory, "u"), None);
        let none = Recount { freed: vec![vec![2]], ..recount(0, 0) };
        assert_eq!(inventory.recount(&none), RecountReply::Counted);
        assert_eq!(inventory.recount(&none), RecountReply::Counted, "nothing is lowered");
    }
}
