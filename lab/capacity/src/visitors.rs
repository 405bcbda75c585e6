//! Who comes when, and what they do: numbers drawn by the seed.

use std::ops::Range;

use engine::domain::sale::Sale;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::clock::{Micros, micros};
use crate::plan::{Plan, TICKETS};
use crate::stock::Taken;

/// Most clumps that a crowd comes in: more people than these come together with others.
const CLUMPS: u64 = 40_000;
/// Most buyers with events of their own, over all that a sale can let in; more stand for several people each.
const BUYERS: u64 = 200_000;

/// What a buyer does with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Pay,
    NeverPay,
    Cancel,
}

/// People who come together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clump {
    /// When, from the beginning.
    pub at: Micros,
    pub people: u64,
}

/// The seeded random numbers of a crowd.
#[derive(Debug)]
pub struct SeededRng(StdRng);

impl SeededRng {
    /// Those of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// True in this share of all cases.
    pub fn chance(&mut self, share: f64) -> bool {
        self.0.random::<f64>() < share
    }

    /// A time between two, in seconds.
    pub fn between(&mut self, (from, to): (f64, f64)) -> Micros {
        let part = self.0.random::<f64>();
        micros(from + (to - from).max(0.0) * part)
    }

    /// How many of so many, each with this chance: drawn one by one while they are few.
    pub fn of(&mut self, people: u64, share: f64) -> u64 {
        const FEW: u64 = 64;
        if people <= FEW {
            return (0..people).filter(|_| self.chance(share)).count() as u64;
        }
        let whole = people as f64 * share.clamp(0.0, 1.0);
        whole as u64 + u64::from(self.chance(whole.fract()))
    }

    fn index(&mut self, range: Range<u32>) -> u32 {
        self.0.random_range(range)
    }

    /// What a buyer does with an order.
    pub fn wish(&mut self, plan: &Plan) -> Wish {
        let drawn = self.0.random::<f64>();
        if drawn < plan.crowd.pays {
            Wish::Pay
        } else if drawn < plan.crowd.pays + plan.crowd.cancels {
            Wish::Cancel
        } else {
            Wish::NeverPay
        }
    }

    /// What a buyer wants: tickets, a tier, and a journey.
    pub fn choice(&mut self, sale: &Sale) -> Taken {
        let (mut drawn, mut tickets) = (self.index(0..TICKETS.iter().sum()), 1);
        for (count, share) in (1..).zip(TICKETS) {
            tickets = count;
            if drawn < share {
                break;
            }
            drawn -= share;
        }
        let tickets = tickets.min(u32::from(sale.file().limit_per_buyer));
        let legs = u32::from(sale.leg_count().max(1));
        let from = self.index(0..legs);
        let to = self.index(from..legs) + 1;
        let short = |number: u32| u16::try_from(number).unwrap_or(0);
        let tier = short(self.tier(sale));
        Taken { tier, from: short(from), to: short(to), tickets }
    }

    /// Some tier, a larger one more often.
    pub fn tier(&mut self, sale: &Sale) -> u32 {
        let tiers = sale.tiers();
        let all: u32 = tiers.iter().map(|tier| tier.layout.sellable()).sum();
        let mut drawn = self.index(0..all.max(1));
        for (index, tier) in (0..).zip(tiers) {
            if drawn < tier.layout.sellable() {
                return index;
            }
            drawn -= tier.layout.sellable();
        }
        0
    }
}

/// When the room or the sale opens, from the beginning: with a room, when those have come who come early.
#[must_use]
pub fn opens_at(plan: &Plan) -> Micros {
    draw_lead(plan).map_or(0, |lead| micros(plan.crowd.early_seconds) + lead)
}

/// The time between the closing of the first draw and the opening; none without a room.
#[must_use]
pub fn draw_lead(plan: &Plan) -> Option<Micros> {
    let settings = plan.sale.room()?;
    let lead_ms = settings.opens_at_ms.saturating_sub(settings.closes_at_ms);
    Some(u64::try_from(lead_ms).unwrap_or(0) * 1_000)
}

/// Everybody who comes, in the order of their coming.
#[must_use]
pub fn arrivals(plan: &Plan) -> Vec<Clump> {
    let crowd = &plan.crowd;
    let has_room = plan.sale.room().is_some();
    let early = if has_room { (crowd.visitors as f64 * crowd.early) as u64 } else { 0 };
    let opens_at = opens_at(plan);
    let mut clumps = clumps(early, |part| micros(part * crowd.early_seconds));
    clumps.extend(self::clumps(crowd.visitors - early, |part| {
        opens_at + micros(plan.shape.time_of(part) * crowd.within_seconds)
    }));
    clumps
}

/// People in clumps of the same size, at the moments of their parts of the crowd.
fn clumps(people: u64, at: impl Fn(f64) -> Micros) -> Vec<Clump> {
    let count = people.min(CLUMPS);
    let to =
        |index: u64| (u128::from(people) * u128::from(index) / u128::from(count.max(1))) as u64;
    (0..count)
        .map(|index| {
            let part = (index as f64 + 0.5) / count as f64;
            Clump { at: at(part), people: to(index + 1) - to(index) }
        })
        .collect()
}

/// The people for whom a buyer stands: one, unless more are let in than have events of their own.
#[must_use]
pub fn weight(plan: &Plan) -> u32 {
    let most = plan.places().min(plan.crowd.visitors);
    u32::try_from(most.div_ceil(BUYERS).max(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_comes_once_and_in_order() {
        for people in [0, 1, 7, CLUMPS, CLUMPS + 1, 100_000_000] {
            let clumps = clumps(people, |part| micros(part * 60.0));
            assert_eq!(clumps.iter().map(|clump| clump.people).sum::<u64>(), people);
            assert!(clumps.iter().is_sorted_by_key(|clump| clump.at));
            assert!(clumps.iter().all(|clump| clump.people > 0 && clump.at <= micros(60.0)));
        }
    }

    #[test]
    fn a_share_is_kept_of_few_and_of_many() {
        let mut rng = SeededRng::new(7);
        for people in [1, 50, 1_000_000] {
            let sum: u64 = (0..1_000).map(|_| rng.of(people, 0.3)).sum();
            let share = sum as f64 / (people * 1_000) as f64;
            assert!((share - 0.3).abs() < 0.05, "{people}: {share}");
        }
    }
}
