//! Selling: an order's seats become the buyer's.

use super::{HeldLine, Inventory, tickets};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, InventoryId, UserId};
use crate::domain::basics::number::OrderNumber;

/// Mark an order's seats sold: those of its hold; if that was forgotten, only by somebody who has read
/// the counters of the seats' blocks and then the order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sell {
    pub inventory: InventoryId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    /// Number of the order.
    pub order: OrderNumber,
    pub user: UserId,
    /// The lines that it bought.
    pub lines: Vec<HeldLine>,
    /// For each line, the counters of the blocks of its seats ([`Freed::of`](super::Freed::of)) before the
    /// caller read the order: if seats of them were freed since, its tickets may be refunded and their seats
    /// be others', and nothing is done. `None` for a caller who has not read them: nothing is done without
    /// the hold.
    pub freed: Option<Vec<Vec<u32>>>,
}

/// The reply of `sell`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SellReply {
    /// The seats are sold, now or already.
    Sold,
    /// The order has no such hold, and the caller has not read the counters.
    NotHeld,
    /// Seats of these blocks were freed since the caller read the tiers: read them, and the order, again.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

impl Inventory {
    /// Marks seats sold. The hold ends if it is of these very seats; a forgotten one is compensated.
    pub fn sell(&mut self, command: &Sell) -> SellReply {
        if !self.knows(&command.epoch) {
            return SellReply::NotLoaded;
        }
        let held = self.holds.get(&command.order);
        if held.is_some_and(|record| record.lines == command.lines) {
            self.holds.remove(&command.order);
        } else {
            let mut all_sold = true;
            self.for_each_seat_leg(&command.lines, |grid, leg, seat| {
                all_sold &= grid.is_sold(leg, seat) || !grid.has(leg, seat);
            });
            if all_sold {
                return SellReply::Sold;
            }
            if stands(Guard::SellCounter) {
                let Some(seen) = &command.freed else { return SellReply::NotHeld };
                if !self.is_unfreed(&command.lines, seen) {
                    return SellReply::Conflict;
                }
            }
            self.add_bought(&command.user, i32::from(tickets(&command.lines)));
        }
        self.for_each_seat_leg(&command.lines, |grid, leg, seat| {
            grid.set_taken(leg, seat, true);
            grid.set_sold(leg, seat, true);
        });
        SellReply::Sold
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ask, best, bought, held, line, loaded, number, sell};
    use super::*;
    use crate::domain::basics::ids::Seat;

    #[test]
    fn a_sale_ends_its_hold_and_counts_once() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let known = |record| Sell { freed: Some(vec![vec![0]]), ..sell(1, record) };
        let wrong = Sell { epoch: Epoch::new("e2").unwrap(), ..sell(1, &record) };
        assert_eq!(inventory.sell(&wrong), SellReply::NotLoaded);
        for _ in 0..2 {
            assert_eq!(inventory.sell(&sell(1, &record)), SellReply::Sold);
            assert!(inventory.holds.is_empty());
            assert_eq!(bought(&inventory, "u"), Some(2));
        }
        let mut forgotten = loaded();
        assert_eq!(forgotten.sell(&sell(1, &record)), SellReply::NotHeld);
        assert_eq!(forgotten, loaded());
        let stale = Sell { freed: Some(vec![vec![1]]), ..sell(1, &record) };
        assert_eq!(forgotten.sell(&stale), SellReply::Conflict);
        assert_eq!(forgotten, loaded());
        for _ in 0..2 {
            assert_eq!(forgotten.sell(&known(&record)), SellReply::Sold);
            assert_eq!(bought(&forgotten, "u"), Some(2));
        }
        assert_eq!(forgotten.sell(&sell(1, &record)), SellReply::Sold, "they are sold");
        assert_eq!(forgotten.tiers, inventory.tiers);
        let mut beyond = Sell { order: number(2), ..known(&record) };
        beyond.lines[0].seats = vec![Seat(99)];
        for _ in 0..2 {
            assert_eq!(forgotten.sell(&beyond), SellReply::Sold);
            assert_eq!(bought(&forgotten, "u"), Some(2), "there is no such place");
        }
    }
}
