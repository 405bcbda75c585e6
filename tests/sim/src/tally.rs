//! What runs have reached: a simulator that reaches nothing finds nothing.

use std::collections::BTreeMap;

use crate::fault::Fault;

/// Counts over one run or many.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    pub runs: u64,
    /// Calls that took effect.
    pub steps: u64,
    /// Sweeps that were left out because nothing had changed since a quiet one.
    pub skipped: u64,
    /// The number of times that each kind of fault struck.
    pub faults: BTreeMap<Fault, u64>,
    /// The number of times that each outcome was reached.
    pub reached: BTreeMap<String, u64>,
    /// The longest time that an order was pending beyond its payment window, in milliseconds: under
    /// at most one kind of fault, and under more.
    pub overrun_ms: [i64; 2],
    /// Virtual time, in milliseconds.
    pub virtual_ms: i64,
}

impl Tally {
    pub(crate) fn fault(&mut self, fault: Fault) {
        *self.faults.entry(fault).or_default() += 1;
    }

    pub(crate) fn reach(&mut self, outcome: &str) {
        match self.reached.get_mut(outcome) {
            Some(count) => *count += 1,
            None => {
                self.reached.insert(outcome.to_owned(), 1);
            }
        }
    }

    /// Adds what other runs have reached.
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.skipped += other.skipped;
        self.virtual_ms += other.virtual_ms;
        for (fault, count) in &other.faults {
            *self.faults.entry(*fault).or_default() += count;
        }
        for (outcome, count) in &other.reached {
            *self.reached.entry(outcome.clone()).or_default() += count;
        }
        for (most, theirs) in self.overrun_ms.iter_mut().zip(other.overrun_ms) {
            *most = (*most).max(theirs);
        }
    }
}
