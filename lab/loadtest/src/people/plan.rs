//! Who comes, and when: a pure, seeded plan.
//!
//! No per-second trace of a real on-sale was ever published, only totals; what each class does is our reading of
//! those, and the table says which.

use std::ops::Range;
use std::time::Duration;

use clap::ValueEnum;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde::Serialize;

use super::Class;
use crate::arrivals::Shape;

/// Accounts of one person who has ten.
pub const COLLECTOR_ACCOUNTS: u64 = 10;
/// Accounts of one farm.
pub const FARM_ACCOUNTS: u64 = 50;
/// Time in which the accounts of one collector come, one after the other, in microseconds.
const COLLECTOR_MICROS: u64 = 30_000_000;
/// Time in which the accounts of one farm come, in microseconds.
const FARM_MICROS: u64 = 1_000_000;
/// Time after the opening in which scripts come, in microseconds.
pub const SCRIPT_MICROS: u64 = 100_000;
/// Time that a solver takes for a challenge, in microseconds: the generator is told the answer and waits as long.
/// Solving services name means of ten to twenty seconds.
pub const SOLVER_MICROS: Range<u64> = 10_000_000..20_000_000;

/// Which classes come, and how many of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Crowd {
    /// People who come at the opening and afterwards.
    #[default]
    People,
    /// People of all kinds, and as many bots.
    Mixed,
    /// The same, and a quarter who look at the seats when it is their turn and never order: half of these are bots.
    /// Whoever else is no bot looks before ordering.
    Looking,
}

/// Accounts in a thousand of [`Crowd::Looking`] that never order, of each of both classes.
const NEVER_ORDER_PER_MILLE: u32 = 125;

impl Crowd {
    /// Accounts of a class in a thousand.
    #[must_use]
    pub fn per_mille(self, class: Class) -> u32 {
        match (self, class) {
            (Self::People, Class::Person) => 1000,
            (Self::People, _) => 0,
            (Self::Mixed, class) => class.row().per_mille,
            (Self::Looking, Class::Looker | Class::Gazer) => NEVER_ORDER_PER_MILLE,
            (Self::Looking, class) => {
                class.row().per_mille * (1000 - 2 * NEVER_ORDER_PER_MILLE) / 1000
            }
        }
    }

    /// The class of the account that draws this number below 1,000.
    fn class(self, mut drawn: u32) -> Class {
        let is_here = |class: &Class| {
            let share = self.per_mille(*class);
            let here = drawn < share;
            drawn = drawn.saturating_sub(share);
            here
        };
        Class::ALL.into_iter().find(is_here).unwrap_or(Class::Person)
    }
}

/// One account that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Arrival {
    /// When, in microseconds from the beginning.
    pub micros: u64,
    pub class: Class,
    /// Number of the person or bot whose account it is.
    pub owner: u32,
}

/// What a plan is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    pub crowd: Crowd,
    pub accounts: u64,
    /// Distribution of those who come at the opening or afterwards.
    pub shape: Shape,
    /// Time in which they come.
    pub within: Duration,
    /// The opening, from the beginning; zero if the sale is open already, so that nobody can come before it.
    pub opening: Duration,
    /// True if places of a waiting room can be had from the beginning on: half of everybody comes from then on, and
    /// not from the opening on.
    pub has_room: bool,
    pub seed: u64,
}

/// The accounts of a crowd, in the order of their coming: the same terms make the same plan.
#[must_use]
pub fn plan(terms: &Terms) -> Vec<Arrival> {
    let mut random = StdRng::seed_from_u64(terms.seed);
    let mut arrivals = Vec::new();
    let mut owner = 0;
    while reporting::count(arrivals.len()) < terms.accounts {
        let class = terms.crowd.class(random.random_range(0..1000));
        let (accounts, span) = accounts_of(class);
        // Accounts are drawn, and come with all others of their owner: one in so many begins an owner.
        if random.random_range(0..accounts) > 0 {
            continue;
        }
        let left = terms.accounts - reporting::count(arrivals.len());
        let first = first_micros(class, terms, &mut random);
        for account in 0..accounts.min(left) {
            let later = if account == 0 { 0 } else { random.random_range(0..span) };
            arrivals.push(Arrival { micros: first + later, class, owner });
        }
        owner += 1;
    }
    arrivals.sort_unstable();
    arrivals
}

/// Number of accounts of an owner of a class, and the time within which they come, in microseconds.
fn accounts_of(class: Class) -> (u64, u64) {
    match class {
        Class::Collector => (COLLECTOR_ACCOUNTS, COLLECTOR_MICROS),
        Class::Farm => (FARM_ACCOUNTS, FARM_MICROS),
        Class::Nobody
        | Class::Person
        | Class::Early
        | Class::Leaver
        | Class::Sleeper
        | Class::Sharer
        | Class::Solver
        | Class::Script
        | Class::Hammer
        | Class::Looker
        | Class::Gazer
        | Class::Late => (1, 1),
    }
}

/// When somebody of a class comes, in microseconds from the beginning.
fn first_micros(class: Class, terms: &Terms, random: &mut StdRng) -> u64 {
    let micros = |time: Duration| crate::stopwatch::micros(time);
    let (opening, within) = (micros(terms.opening), micros(terms.within));
    let part: f64 = random.random();
    let is_first = terms.has_room && random.random();
    let ready = if is_first { 0 } else { opening };
    match class {
        // Ever more come as the opening comes near.
        Class::Early => (opening as f64 * part.sqrt()) as u64,
        Class::Script => ready + (part * SCRIPT_MICROS as f64) as u64,
        // All of a farm's accounts are ready at once.
        Class::Farm => ready,
        Class::Solver => ready + random.random_range(SOLVER_MICROS),
        Class::Nobody
        | Class::Person
        | Class::Leaver
        | Class::Sleeper
        | Class::Sharer
        | Class::Collector
        | Class::Hammer
        | Class::Looker
        | Class::Gazer
        | Class::Late => ready + (terms.shape.time_of(part) * within as f64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn terms(crowd: Crowd, accounts: u64, seed: u64) -> Terms {
        let (within, opening) = (Duration::from_secs(60), Duration::from_secs(20));
        Terms { crowd, accounts, shape: Shape::Opening, within, opening, has_room: false, seed }
    }

    #[test]
    fn the_same_terms_make_the_same_plan() {
        for crowd in [Crowd::People, Crowd::Mixed, Crowd::Looking] {
            assert_eq!(plan(&terms(crowd, 500, 7)), plan(&terms(crowd, 500, 7)));
            assert_ne!(plan(&terms(crowd, 500, 7)), plan(&terms(crowd, 500, 8)));
            for accounts in [0, 1, 9, 1234] {
                let plan = plan(&terms(crowd, accounts, 3));
                assert_eq!(u64::try_from(plan.len()), Ok(accounts));
                assert!(plan.is_sorted_by_key(|arrival| arrival.micros));
            }
        }
    }

    #[test]
    fn a_crowd_is_a_thousand_people() {
        for crowd in [Crowd::People, Crowd::Mixed] {
            let all: u32 = Class::ALL.iter().map(|class| crowd.per_mille(*class)).sum();
            assert_eq!(all, 1000, "{crowd:?}");
        }
        // What rounding leaves over are people.
        let looking = |class| Crowd::Looking.per_mille(class);
        assert!((995..=1000).contains(&Class::ALL.into_iter().map(looking).sum::<u32>()));
        assert_eq!(looking(Class::Looker) + looking(Class::Gazer), 250);
    }

    #[test]
    fn each_class_comes_when_it_should() {
        const OPENING: u64 = 20_000_000;
        let plan = plan(&terms(Crowd::Mixed, 100_000, 1));
        let mut owners: BTreeMap<u32, Vec<Arrival>> = BTreeMap::new();
        for arrival in &plan {
            let micros = arrival.micros;
            let is_good = match arrival.class {
                Class::Early => micros <= OPENING,
                Class::Script => (OPENING..=OPENING + SCRIPT_MICROS).contains(&micros),
                Class::Solver => SOLVER_MICROS.contains(&(micros - OPENING)),
                Class::Farm => (OPENING..OPENING + FARM_MICROS).contains(&micros),
                Class::Collector => micros <= OPENING + 60_000_000 + COLLECTOR_MICROS,
                Class::Nobody | Class::Hammer | Class::Looker | Class::Gazer | Class::Late => false,
                Class::Person | Class::Leaver | Class::Sleeper | Class::Sharer => {
                    (OPENING..=OPENING + 60_000_000).contains(&micros)
                }
            };
            assert!(is_good, "{arrival:?}");
            owners.entry(arrival.owner).or_default().push(*arrival);
        }
        // With a room half of them come from the beginning on.
        let with_room = super::plan(&Terms { has_room: true, ..terms(Crowd::Mixed, 100_000, 1) });
        for class in [Class::Script, Class::Farm] {
            let of = || with_room.iter().filter(|one| one.class == class);
            assert!(of().all(|one| one.micros % OPENING < FARM_MICROS));
            let first = of().filter(|one| one.micros < OPENING).count() as f64;
            assert!((first / of().count() as f64 - 0.5).abs() < 0.05, "{class:?}: {first}");
        }
        let people = || with_room.iter().filter(|one| one.class == Class::Person);
        assert!(
            people().any(|one| one.micros < OPENING) && people().any(|one| one.micros > 60_000_000)
        );
        // Shares are of accounts, whatever an owner has of them.
        for class in Class::ALL {
            let share = plan.iter().filter(|one| one.class == class).count() as f64 / 100.0;
            let wanted = f64::from(Crowd::Mixed.per_mille(class));
            assert!((share - wanted).abs() < 20.0, "{class:?}: {share} of 1,000, {wanted} wanted");
        }
        // The last owner may have fewer.
        owners.pop_last();
        for accounts in owners.values() {
            let classes: BTreeSet<Class> = accounts.iter().map(|account| account.class).collect();
            assert_eq!(classes.len(), 1, "an owner has one class");
            let (count, _) = accounts_of(accounts[0].class);
            assert_eq!(u64::try_from(accounts.len()), Ok(count));
        }
        // Half of the early ones come in the last third of the time before the opening.
        let early: Vec<u64> =
            plan.iter().filter(|one| one.class == Class::Early).map(|one| one.micros).collect();
        let last = early.iter().filter(|micros| **micros > OPENING * 7 / 10).count() as f64;
        assert!((last / early.len() as f64 - 0.51).abs() < 0.02, "{last} of {}", early.len());
    }
}
