//! Selling: an order's seats become the buyer's.

use super::{HeldLine, Inventory, tickets};
use crate::domain::ids::{Epoch, InventoryId, UserId};
use crate::domain::number::OrderNumber;

/// Mark an order's seats sold, also if its hold was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sell {
    /// The inventory.
    pub inventory: InventoryId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    /// Number of the order.
    pub order: OrderNumber,
    /// Its buyer.
    pub user: UserId,
    /// The lines that it bought.
    pub lines: Vec<HeldLine>,
}

/// The reply of `sell`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SellReply {
    /// The seats are sold, now or already.
    Sold,
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
            if !all_sold {
                self.add_bought(&command.user, i32::from(tickets(&command.lines)));
            }
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
    use super::super::fixtures::{ask, best, bought, held, line, loaded, sell};
    use super::*;
    use crate::domain::ids::Seat;

    #[test]
    fn a_sale_ends_its_hold_and_counts_once() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let wrong = Sell { epoch: Epoch::new("e2").unwrap(), ..sell(1, &record) };
        assert_eq!(inventory.sell(&wrong), SellReply::NotLoaded);
        for _ in 0..2 {
            assert_eq!(inventory.sell(&sell(1, &record)), SellReply::Sold);
            assert!(inventory.holds.is_empty());
            assert_eq!(bought(&inventory, "u"), Some(2));
        }
        let mut forgotten = loaded();
        for _ in 0..2 {
            assert_eq!(forgotten.sell(&sell(1, &record)), SellReply::Sold);
            assert_eq!(bought(&forgotten, "u"), Some(2));
        }
        assert_eq!(forgotten.tiers, inventory.tiers);
        let mut beyond = sell(2, &record);
        beyond.lines[0].seats = vec![Seat(99)];
        for _ in 0..2 {
            assert_eq!(forgotten.sell(&beyond), SellReply::Sold);
            assert_eq!(bought(&forgotten, "u"), Some(2), "there is no such place");
        }
    }
}
