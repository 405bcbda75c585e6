//! Repairing: leaked seat-legs become free.

use super::Inventory;
use crate::domain::guard::{Guard, stands};
use crate::domain::ids::{Epoch, Leg, SaleId, Seat, TierId};

/// Free seat-legs of one tier that are taken though nobody holds or claims them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repair {
    /// Id of the sale.
    pub sale: SaleId,
    /// Epoch of the sale as the caller knows it.
    pub epoch: Epoch,
    /// Id of the tier.
    pub tier: TierId,
    /// The tier's `freed` counter before the caller read it: if seats were freed since, a seat that
    /// seemed leaked may be held again, and nothing is done.
    pub freed: u64,
    /// The seat-legs to free, as leg and seat.
    pub leaked: Vec<(Leg, Seat)>,
}

/// The reply of `repair`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RepairReply {
    /// The seat-legs are free again.
    Repaired,
    /// Seats were freed since the caller read the tier: read it again.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

impl Inventory {
    /// Frees leaked seat-legs of one tier, unless any seat of it was freed since the caller read it.
    pub fn repair(&mut self, command: &Repair) -> RepairReply {
        if !self.knows(&command.epoch) {
            return RepairReply::NotLoaded;
        }
        let Some(grid) = self.tiers.get_mut(&command.tier) else {
            return RepairReply::NotLoaded;
        };
        if stands(Guard::RepairCounter) && grid.freed != command.freed {
            return RepairReply::Conflict;
        }
        for (leg, seat) in &command.leaked {
            grid.set_taken(*leg, *seat, false);
            grid.set_sold(*leg, *seat, false);
        }
        grid.freed += 1;
        RepairReply::Repaired
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ask, best, epoch, held, line, loaded, release, sale, tier};
    use super::*;

    #[test]
    fn a_repair_is_refused_once_anything_was_freed_since_its_snapshot() {
        let mut inventory = loaded();
        // A leak: taken, but nobody's.
        let grid = inventory.tiers.get_mut(&tier("a")).unwrap();
        grid.set_taken(Leg(0), Seat(5), true);
        let repair = Repair {
            sale: sale(),
            epoch: epoch(),
            tier: tier("a"),
            freed: 0,
            leaked: vec![(Leg(0), Seat(5))],
        };
        let wrong = Repair { epoch: Epoch::new("e2").unwrap(), ..repair.clone() };
        assert_eq!(inventory.repair(&wrong), RepairReply::NotLoaded);
        let nowhere = Repair { tier: tier("c"), ..repair.clone() };
        assert_eq!(inventory.repair(&nowhere), RepairReply::NotLoaded);
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), best(1))]));
        inventory.release(&release(1, &record));
        let before = inventory.clone();
        assert_eq!(inventory.repair(&repair), RepairReply::Conflict);
        assert_eq!(inventory, before);
        let again = Repair { freed: 1, ..repair };
        assert_eq!(inventory.repair(&again), RepairReply::Repaired);
        assert!(!inventory.tiers[&tier("a")].is_taken(Leg(0), Seat(5)));
        assert_eq!(inventory.repair(&again), RepairReply::Conflict, "a repair counts as freeing");
    }
}
