//! Loading: a sale starts, starts again, or gets other terms.
//!
//! A sale may be too large for one request, and for one script to write quickly, so it is
//! loaded in parts. The first part removes the earlier load from Redis, the last part publishes the sale; in between
//! the sale has no epoch and sells to nobody. A part that is lost or comes twice changes nothing, and the
//! last part publishes only if every part before it is in place.

use std::collections::BTreeMap;

use super::{Freed, HoldRecord, Inventory, Terms, TierGrid};
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, InventoryId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;

/// Everything a sale starts from, or starts again from after Redis lost it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Load {
    pub inventory: InventoryId,
    pub terms: Terms,
    /// The epoch that Redis is expected to have now; `None` if it should have forgotten the sale.
    pub expected: Option<Epoch>,
    /// The epoch from now on.
    pub epoch: Epoch,
    /// The bitmaps of every tier. Whatever was freed of it before, its counters begin at zero.
    pub tiers: Vec<TierGrid>,
    /// The holds of pending orders.
    pub holds: BTreeMap<OrderNumber, HoldRecord>,
    /// The number of tickets that each buyer holds or has bought.
    pub bought: BTreeMap<UserId, Tickets>,
}

/// One part of a load. The parts of one load have the same epoch and terms, and each its share of the
/// tiers, holds and buyers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoadPart {
    /// Place among the parts of its load, from 0.
    pub place: u32,
    /// True for the part that publishes the sale.
    pub is_last: bool,
    /// The share of the load.
    pub load: Load,
}

/// The most that one part of a load carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartLimit {
    /// The most keys and arguments of the part's tiers, holds and buyers together; a tier is never divided.
    pub arguments: usize,
    /// The most bytes of the part's bitmaps, unless one tier alone has more.
    pub bytes: usize,
}

impl PartLimit {
    /// Half of the arguments that a request to the cache may have
    /// ([`MAX_REQUEST_ARGUMENTS`](crate::ports::MAX_REQUEST_ARGUMENTS)): a script that writes this much takes a few
    /// milliseconds.
    pub const STANDARD: Self = Self { arguments: 2_000, bytes: 1024 * 1024 };
    /// Every tier, hold and buyer in a part of its own: a test can interrupt the load between any two.
    pub const SMALLEST: Self = Self { arguments: 1, bytes: 1 };
    /// Arguments of one hold: the order and its record.
    const HOLD_ARGUMENTS: usize = 2;
    /// Arguments of one buyer: the buyer and the tickets.
    const BUYER_ARGUMENTS: usize = 2;

    /// The keys and arguments of a tier: its hash, the key of its counters, its shape, and two bitmaps under two keys.
    pub const TIER_ARGUMENTS: usize = 11;
}

/// The reply of `load`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LoadReply {
    /// This part is in place, now or since it was sent before; the next may follow.
    Staged,
    /// The sale starts from what was given.
    Loaded,
    /// The sale has this epoch already: only its terms were replaced, by the last part.
    Updated,
    /// Nothing was written: Redis has another epoch than expected (`None`: none at all), or does not have
    /// all parts before this one. The load begins again at its first part.
    Stale(Option<Epoch>),
}

/// The parts of an incomplete load that are in place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Staging {
    /// The epoch that the sale will have.
    pub epoch: Epoch,
    /// The place of the part that comes next.
    pub next: u32,
    /// The holds so far.
    pub holds: BTreeMap<OrderNumber, HoldRecord>,
    /// The buyers so far.
    pub bought: BTreeMap<UserId, Tickets>,
}

impl Staging {
    fn new(epoch: Epoch) -> Self {
        Self { epoch, next: 0, holds: BTreeMap::new(), bought: BTreeMap::new() }
    }
}

/// The parts of a load while it is divided.
struct Divided {
    limit: PartLimit,
    empty: Load,
    parts: Vec<Load>,
    arguments: usize,
    bytes: usize,
}

impl Divided {
    /// The part that has room for something more.
    fn with_room_for(&mut self, arguments: usize, bytes: usize) -> &mut Load {
        let is_full = self.arguments + arguments > self.limit.arguments
            || self.bytes + bytes > self.limit.bytes;
        if self.parts.is_empty() || (is_full && self.arguments > 0) {
            self.parts.push(self.empty.clone());
            (self.arguments, self.bytes) = (0, 0);
        }
        self.arguments += arguments;
        self.bytes += bytes;
        let last = self.parts.len() - 1;
        &mut self.parts[last]
    }
}

impl Load {
    /// A load of nothing: it replaces the terms of what has its epoch already, or makes Redis forget
    /// what it had.
    #[must_use]
    pub fn empty(
        inventory: InventoryId,
        terms: Terms,
        expected: Option<Epoch>,
        epoch: Epoch,
    ) -> Self {
        let (tiers, holds, bought) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { inventory, terms, expected, epoch, tiers, holds, bought }
    }

    /// The load as one part, for a load that is known to be small.
    #[must_use]
    pub fn whole(self) -> LoadPart {
        LoadPart { place: 0, is_last: true, load: self }
    }

    /// [`Load::into_parts`] after a part with nothing in it, the fence: once it is in place, Redis has
    /// forgotten the inventory of before, and nobody sells from it while what is to be loaded is read.
    #[must_use]
    pub fn into_fenced_parts(self, limit: PartLimit) -> Vec<LoadPart> {
        let mut parts = vec![self.fence()];
        for LoadPart { place, is_last, load } in self.into_parts(limit) {
            parts.push(LoadPart { place: place + 1, is_last, load });
        }
        parts
    }

    /// The first of [`Load::into_fenced_parts`], which does not depend on what is loaded.
    #[must_use]
    pub fn fence(&self) -> LoadPart {
        let Self { inventory, terms, expected, epoch, .. } = self.clone();
        let load = Self::empty(inventory, terms, expected, epoch);
        LoadPart { place: 0, is_last: false, load }
    }

    /// The load in parts of at most `limit`, at least one, in the order in which they are sent: tiers,
    /// holds, buyers. The same load has the same parts.
    #[must_use]
    pub fn into_parts(self, limit: PartLimit) -> Vec<LoadPart> {
        let Self { inventory, terms, expected, epoch, tiers, holds, bought } = self;
        let empty = Self::empty(inventory, terms, expected, epoch);
        let mut divided = Divided { limit, empty, parts: Vec::new(), arguments: 0, bytes: 0 };
        divided.with_room_for(0, 0);
        for grid in tiers {
            let bitmaps: usize = grid.taken.iter().chain(&grid.sold).map(Vec::len).sum();
            let bytes = bitmaps + 2 * grid.middles.len();
            divided.with_room_for(PartLimit::TIER_ARGUMENTS, bytes).tiers.push(grid);
        }
        for (order, record) in holds {
            divided.with_room_for(PartLimit::HOLD_ARGUMENTS, 0).holds.insert(order, record);
        }
        for (user, tickets) in bought {
            divided.with_room_for(PartLimit::BUYER_ARGUMENTS, 0).bought.insert(user, tickets);
        }
        let count = divided.parts.len();
        let parts = (0_u32..).zip(divided.parts);
        let mut parts: Vec<LoadPart> =
            parts.map(|(place, load)| LoadPart { place, is_last: false, load }).collect();
        if let Some(last) = parts.get_mut(count.saturating_sub(1)) {
            last.is_last = true;
        }
        parts
    }
}

impl Inventory {
    /// Starts a sale, starts it again, or replaces its terms, all of it at once.
    pub fn load(&mut self, command: &Load) -> LoadReply {
        self.load_part(&command.clone().whole())
    }

    /// Puts a part of a load in place, and publishes the sale with the last one.
    pub fn load_part(&mut self, part: &LoadPart) -> LoadReply {
        let LoadPart { place, is_last, load } = part;
        let current = self.loaded.as_ref().map(|(epoch, _)| epoch.clone());
        if current.as_ref() == Some(&load.epoch) {
            if *is_last {
                self.loaded = Some((load.epoch.clone(), load.terms.clone()));
            }
            return LoadReply::Updated;
        }
        let ours = self.staging.as_ref().filter(|staging| staging.epoch == load.epoch);
        let next = ours.map(|staging| staging.next);
        if current.is_none() && next.is_some_and(|next| *place < next) {
            return LoadReply::Staged;
        }
        if *place == 0 {
            if stands(Guard::LoadExpected) && current != load.expected {
                return LoadReply::Stale(current);
            }
            *self = Self { staging: Some(Staging::new(load.epoch.clone())), ..Self::default() };
        } else if current.is_some() || (stands(Guard::LoadComplete) && next != Some(*place)) {
            return LoadReply::Stale(current);
        }
        self.put_part(part)
    }

    fn put_part(&mut self, part: &LoadPart) -> LoadReply {
        let LoadPart { place, is_last, load } = part;
        let mut staging = self.staging.take().unwrap_or_else(|| Staging::new(load.epoch.clone()));
        let fresh = |grid: &TierGrid| TierGrid { freed: Freed::default(), ..grid.clone() };
        let grids = load.tiers.iter().map(|grid| (grid.tier.clone(), fresh(grid)));
        self.tiers.extend(grids);
        let holds = load.holds.iter().map(|(order, record)| (*order, record.clone()));
        staging.holds.extend(holds);
        staging.bought.extend(load.bought.iter().map(|(user, count)| (user.clone(), *count)));
        staging.next = place + 1;
        let named = Some((load.epoch.clone(), load.terms.clone()));
        if !is_last {
            if !stands(Guard::LoadUnnamed) {
                self.loaded = named;
            }
            self.staging = Some(staging);
            return LoadReply::Staged;
        }
        (self.holds, self.bought, self.loaded) = (staging.holds, staging.bought, named);
        LoadReply::Loaded
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{ask, best, epoch, held, line, load, loaded, number, terms, tier};
    use super::*;
    use crate::domain::inventory::HoldReply;

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

    /// A load of two tiers, two holds and their buyers, of which nothing shares a part.
    fn four_parts() -> (Load, Vec<LoadPart>) {
        let mut full = loaded();
        for (order, user) in [(1, "u"), (2, "v")] {
            held(&mut full, &ask(order, user, vec![line("a", (0, 2), best(2))]));
        }
        let Inventory { tiers, holds, bought, .. } = full;
        let load = Load { tiers: tiers.into_values().collect(), holds, bought, ..load() };
        (load.clone(), load.into_parts(PartLimit { arguments: 13, bytes: 8 }))
    }

    #[test]
    fn parts_carry_everything_once_within_the_limit() {
        let (load, parts) = four_parts();
        // 2 tiers of 13 arguments; 2 holds and 2 buyers of 2 each.
        assert_eq!(parts.len(), 3);
        let flags: Vec<_> = parts.iter().map(|part| (part.place, part.is_last)).collect();
        assert_eq!(flags, [(0, false), (1, false), (2, true)]);
        let smallest = load.clone().into_parts(PartLimit::SMALLEST);
        assert_eq!(smallest.len(), 6);
        for parts in [parts, smallest] {
            let mut all = Load {
                tiers: Vec::new(),
                holds: BTreeMap::new(),
                bought: BTreeMap::new(),
                ..load.clone()
            };
            for LoadPart { load: part, .. } in parts {
                all.tiers.extend(part.tiers);
                all.holds.extend(part.holds);
                all.bought.extend(part.bought);
            }
            assert_eq!(all, load);
        }
        assert_eq!(load.clone().into_parts(PartLimit::STANDARD), [load.whole()]);
        let nothing = Load { tiers: Vec::new(), ..super::super::fixtures::load() };
        assert_eq!(nothing.clone().into_parts(PartLimit::SMALLEST), [nothing.whole()]);
    }

    #[test]
    fn a_load_in_parts_is_nobodys_until_the_last_and_then_as_if_it_came_at_once() {
        let (load, parts) = four_parts();
        let mut at_once = Inventory::default();
        assert_eq!(at_once.load(&load), LoadReply::Loaded);
        // Of an empty Redis and of one that has another epoch; each part comes twice.
        for before in [None, Some(Epoch::new("e0").unwrap())] {
            let mut inventory = Inventory::default();
            if let Some(epoch) = &before {
                let old = Load { epoch: epoch.clone(), ..super::super::fixtures::load() };
                assert_eq!(inventory.load(&old), LoadReply::Loaded);
            }
            let mut late = parts.clone();
            late.iter_mut().for_each(|part| part.load.expected = before.clone());
            let (last, others) = late.split_last().unwrap();
            for part in others {
                for _ in 0..2 {
                    assert_eq!(inventory.load_part(part), LoadReply::Staged);
                    inventory.check().unwrap();
                    assert_eq!(inventory.loaded, None);
                    let hold = ask(9, "w", vec![line("a", (0, 1), best(1))]);
                    assert_eq!(inventory.hold(&hold), HoldReply::NotLoaded);
                    assert!(inventory.holds.is_empty() && inventory.bought.is_empty());
                }
            }
            assert_eq!(inventory.load_part(last), LoadReply::Loaded);
            assert_eq!(inventory, at_once);
            assert_eq!(inventory.load_part(last), LoadReply::Updated);
            assert_eq!(inventory.load_part(&others[1]), LoadReply::Updated);
            assert_eq!(inventory, at_once);
            assert!(inventory.holds.contains_key(&number(2)));
        }
    }

    #[test]
    fn a_part_without_those_before_it_writes_nothing() {
        let (_, parts) = four_parts();
        let mut inventory = Inventory::default();
        assert_eq!(inventory.load_part(&parts[2]), LoadReply::Stale(None));
        assert_eq!(inventory, Inventory::default());
        assert_eq!(inventory.load_part(&parts[0]), LoadReply::Staged);
        let one_part = inventory.clone();
        assert_eq!(inventory.load_part(&parts[2]), LoadReply::Stale(None), "one is missing");
        assert_eq!(inventory, one_part);
        // Another loader begins: the first finds that nothing of its own is there, and may begin again.
        let mut other = parts.clone();
        other.iter_mut().for_each(|part| part.load.epoch = Epoch::new("e2").unwrap());
        assert_eq!(inventory.load_part(&other[0]), LoadReply::Staged);
        assert_eq!(inventory.load_part(&parts[1]), LoadReply::Stale(None));
        assert_eq!(inventory.staging.as_ref().unwrap().epoch.as_str(), "e2");
        for part in &other[1..] {
            inventory.load_part(part);
        }
        // Whoever is late finds a sale that it did not expect.
        for part in &parts {
            assert_eq!(
                inventory.load_part(part),
                LoadReply::Stale(Some(other[0].load.epoch.clone()))
            );
        }
        assert!(inventory.tiers.contains_key(&tier("b")));
    }

    #[test]
    fn an_update_never_begins_a_load() {
        let update = Load { expected: Some(epoch()), tiers: Vec::new(), ..load() };
        let mut lost = Inventory::default();
        assert_eq!(lost.load(&update), LoadReply::Stale(None));
        assert_eq!(lost, Inventory::default());
    }

    #[cfg(debug_assertions)]
    #[test]
    fn without_its_guards_a_load_is_published_in_part_or_named_early() {
        use crate::domain::basics::guard::without;
        use crate::domain::inventory::Inconsistency;

        let (_, parts) = four_parts();
        let mut inventory = Inventory::default();
        without(Guard::LoadComplete, || {
            assert_eq!(inventory.load_part(&parts[2]), LoadReply::Loaded);
        });
        assert!(inventory.tiers.is_empty() && inventory.loaded.is_some());
        let mut inventory = Inventory::default();
        without(Guard::LoadUnnamed, || inventory.load_part(&parts[0]));
        assert_eq!(inventory.check(), Err(Inconsistency::NamedEarly));
    }
}
