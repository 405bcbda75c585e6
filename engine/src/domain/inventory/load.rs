//! Loading: a sale starts, starts again, or gets other terms.

use std::collections::BTreeMap;

use super::{HoldRecord, Inventory, Terms, TierGrid};
use crate::domain::guard::{Guard, stands};
use crate::domain::ids::{Epoch, SaleId, UserId};
use crate::domain::number::OrderNumber;
use crate::domain::tickets::Tickets;

/// Everything a sale starts from, or starts again from after Redis lost it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Load {
    /// Id of the sale.
    pub sale: SaleId,
    /// Its terms.
    pub terms: Terms,
    /// The epoch that Redis is expected to have now; `None` if it should have forgotten the sale.
    pub expected: Option<Epoch>,
    /// The epoch from now on.
    pub epoch: Epoch,
    /// The bitmaps of every tier.
    pub tiers: Vec<TierGrid>,
    /// The holds of pending orders.
    pub holds: BTreeMap<OrderNumber, HoldRecord>,
    /// What each buyer has held or bought.
    pub bought: BTreeMap<UserId, Tickets>,
}

/// The reply of `load`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LoadReply {
    /// The sale starts from what was given.
    Loaded,
    /// The sale has this epoch already: only its terms were replaced.
    Updated,
    /// Redis has another epoch than expected (`None`: none at all); nothing was written.
    Stale(Option<Epoch>),
}

impl Inventory {
    /// Starts a sale, starts it again, or replaces its terms.
    pub fn load(&mut self, command: &Load) -> LoadReply {
        let current = self.loaded.as_ref().map(|(epoch, _)| epoch.clone());
        if current.as_ref() == Some(&command.epoch) {
            self.loaded = Some((command.epoch.clone(), command.terms.clone()));
            return LoadReply::Updated;
        }
        if stands(Guard::LoadExpected) && current != command.expected {
            return LoadReply::Stale(current);
        }
        *self = Self {
            loaded: Some((command.epoch.clone(), command.terms.clone())),
            tiers: command.tiers.iter().map(|grid| (grid.tier.clone(), grid.clone())).collect(),
            holds: command.holds.clone(),
            bought: command.bought.clone(),
        };
        LoadReply::Loaded
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ask, best, epoch, held, line, load, loaded, terms};
    use super::*;

    #[test]
    fn a_load_starts_updates_or_is_stale() {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), best(1))]));
        let update = Load { terms: Terms { limit: Tickets::new(9), ..terms() }, ..load() };
        assert_eq!(inventory.load(&update), LoadReply::Updated);
        assert_eq!(inventory.loaded.as_ref().unwrap().1.limit.get(), 9);
        assert_eq!(inventory.holds.len(), 1, "an update leaves the seats alone");
        let before = inventory.clone();
        let other = Load { epoch: Epoch::new("e2").unwrap(), ..load() };
        assert_eq!(inventory.load(&other), LoadReply::Stale(Some(epoch())));
        let unexpected = Load { expected: Some(epoch()), ..other.clone() };
        assert_eq!(Inventory::default().load(&unexpected), LoadReply::Stale(None));
        assert_eq!(inventory, before);
        assert_eq!(inventory.load(&unexpected), LoadReply::Loaded);
        assert!(inventory.holds.is_empty() && inventory.bought.is_empty());
    }
}
