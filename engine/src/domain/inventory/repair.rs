//! Repairing: leaked seat-legs become free.

use super::Inventory;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, InventoryId, Leg, Seat, TierId};

/// Free seat-legs of one tier that are taken though nobody holds or claims them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repair {
    pub inventory: InventoryId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    /// Id of the tier.
    pub tier: TierId,
    /// The counters of the blocks of these seats ([`Freed::of`](super::Freed::of)) before the caller read
    /// the tier: if seats of them were freed since, a seat that seemed leaked may be held again, and
    /// nothing is done.
    pub freed: Vec<u32>,
    /// The seat-legs to free, as leg and seat.
    pub leaked: Vec<(Leg, Seat)>,
}

/// The reply of `repair`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RepairReply {
    /// The seat-legs are free again.
    Repaired,
    /// Seats of these blocks were freed since the caller read the tier: read it again.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

impl Inventory {
    /// Frees leaked seat-legs of one tier, unless a seat of their blocks was freed since the caller read
    /// it.
    pub fn repair(&mut self, command: &Repair) -> RepairReply {
        if !self.knows(&command.epoch) {
            return RepairReply::NotLoaded;
        }
        let Some(grid) = self.tiers.get_mut(&command.tier) else {
            return RepairReply::NotLoaded;
        };
        let seats = || command.leaked.iter().map(|(_, seat)| *seat);
        if stands(Guard::RepairCounter) && grid.freed.of(seats()) != command.freed {
            return RepairReply::Conflict;
        }
        for (leg, seat) in &command.leaked {
            grid.set_taken(*leg, *seat, false);
            grid.set_sold(*leg, *seat, false);
        }
        grid.count_freed(seats());
        RepairReply::Repaired
    }
}

#[cfg(test)]
mod tests {
    use super::super::Freed;
    use super::super::fixtures::{ask, best, epoch, held, inventory_id, line, load, release, tier};
    use super::*;

    /// A sale whose tier has two blocks of 32 seats, the tenth of each leaked: taken, but nobody's.
    fn leaking() -> Inventory {
        let wide = || vec![vec![0; 8]; 2];
        let mut load = load();
        (load.tiers[0].taken, load.tiers[0].sold) = (wide(), wide());
        let mut inventory = Inventory::default();
        inventory.load(&load);
        let grid = inventory.tiers.get_mut(&tier("a")).unwrap();
        grid.set_taken(Leg(0), Seat(10), true);
        grid.set_taken(Leg(1), Seat(42), true);
        inventory
    }

    fn repair(freed: &[u32], leaked: &[(u16, u32)]) -> Repair {
        let leaked = leaked.iter().map(|(leg, seat)| (Leg(*leg), Seat(*seat))).collect();
        Repair {
            inventory: inventory_id(),
            epoch: epoch(),
            tier: tier("a"),
            freed: freed.to_vec(),
            leaked,
        }
    }

    #[test]
    fn a_repair_is_refused_once_a_seat_of_its_block_was_freed_since_its_snapshot() {
        let mut inventory = leaking();
        let early = repair(&[0], &[(0, 10)]);
        let wrong = Repair { epoch: Epoch::new("e2").unwrap(), ..early.clone() };
        assert_eq!(inventory.repair(&wrong), RepairReply::NotLoaded);
        let nowhere = Repair { tier: tier("c"), ..early.clone() };
        assert_eq!(inventory.repair(&nowhere), RepairReply::NotLoaded);
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), best(1))]));
        inventory.release(&release(1, &record));
        let before = inventory.clone();
        assert_eq!(inventory.repair(&early), RepairReply::Conflict);
        let both = repair(&[0, 0], &[(0, 10), (1, 42)]);
        assert_eq!(inventory.repair(&both), RepairReply::Conflict, "one of its blocks will do");
        assert_eq!(inventory, before);
        let again = repair(&[1], &[(0, 10)]);
        assert_eq!(inventory.repair(&again), RepairReply::Repaired);
        assert!(!inventory.tiers[&tier("a")].is_taken(Leg(0), Seat(10)));
        assert_eq!(inventory.repair(&again), RepairReply::Conflict, "a repair counts as freeing");
    }

    #[test]
    fn a_repair_goes_through_however_often_seats_of_other_blocks_were_freed() {
        let mut inventory = leaking();
        for order in 1..100 {
            let wish = ask(order, "u", vec![line("a", (0, 1), best(1))]);
            let record = held(&mut inventory, &wish);
            inventory.release(&release(order, &record));
        }
        assert_eq!(inventory.repair(&repair(&[0], &[(1, 42)])), RepairReply::Repaired);
        assert!(!inventory.tiers[&tier("a")].is_taken(Leg(1), Seat(42)));
        assert_eq!(inventory.tiers[&tier("a")].freed, Freed::from_counters([99, 1]));
    }
}
