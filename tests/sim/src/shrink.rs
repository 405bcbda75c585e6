//! Makes a failure small: leaves out faults and buyers for as long as the same promise is broken.
//!
//! Every decision of a run is a function of the seed and of its place, so a run without one fault or
//! one buyer is the same run otherwise. What remains is written out call by call.

use std::fmt;

use crate::fault::Fault;
use crate::plan::Without;
use crate::run::{Outcome, run_without};

/// Most runs that making a failure small may take.
const MAX_RUNS: usize = 600;

/// A failure that nothing can be left out of.
#[derive(Debug)]
pub struct Minimal {
    /// The run, with its trace.
    pub outcome: Outcome,
    /// Indexes of the buyers that are left.
    pub buyers: Vec<u64>,
}

/// One thing that may be left out.
#[derive(Debug, Clone, Copy)]
enum Item {
    Fault(u64),
    Buyer(u64),
}

fn and_without(without: &Without, items: &[Item]) -> Without {
    let mut without = without.clone();
    for item in items {
        match item {
            Item::Fault(place) => without.faults.insert(*place),
            Item::Buyer(index) => without.buyers.insert(*index),
        };
    }
    without
}

fn items(outcome: &Outcome, without: &Without) -> Vec<Item> {
    let buyers = (0..outcome.buyers).filter(|index| !without.buyers.contains(index));
    let faults = outcome.struck.iter().map(|(place, _)| Item::Fault(*place));
    buyers.map(Item::Buyer).chain(faults).collect()
}

/// The smallest failure that was found of a seed's; `None` if the seed breaks no promise.
#[must_use]
pub fn shrink(seed: u64) -> Option<Minimal> {
    let mut without = Without::default();
    let mut smallest = run_without(seed, without.clone(), false);
    let rule = smallest.violation.as_ref()?.rule;
    let mut runs = 0;
    let mut chunk = items(&smallest, &without).len().max(1);
    while chunk > 0 && runs < MAX_RUNS {
        let left = items(&smallest, &without);
        let mut has_shrunk = false;
        for items in left.chunks(chunk) {
            runs += 1;
            let candidate = and_without(&without, items);
            let outcome = run_without(seed, candidate.clone(), false);
            let is_the_same = outcome.violation.as_ref().is_some_and(|other| other.rule == rule);
            if is_the_same && outcome.struck.len() <= smallest.struck.len() {
                (without, smallest, has_shrunk) = (candidate, outcome, true);
                break;
            }
        }
        if !has_shrunk {
            chunk /= 2;
        }
        chunk = chunk.min(items(&smallest, &without).len());
    }
    let outcome = run_without(seed, without.clone(), true);
    let buyers = (0..outcome.buyers).filter(|index| !without.buyers.contains(index)).collect();
    Some(Minimal { outcome, buyers })
}

impl fmt::Display for Minimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { seed, profile, violation, struck, trace, .. } = &self.outcome;
        let faults: Vec<String> =
            struck.iter().map(|(_, fault): &(u64, Fault)| fault.to_string()).collect();
        writeln!(
            f,
            "seed {seed} ({profile}), made small: buyers {:?}, faults {faults:?}",
            self.buyers
        )?;
        writeln!(f, "{trace}")?;
        if let Some(violation) = violation {
            writeln!(f, "\n{} is broken: {}", violation.rule, violation.what)?;
        }
        writeln!(f, "replay: make sim SEED={seed}")
    }
}
