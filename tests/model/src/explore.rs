//! Explores a scenario to its last state.

use std::fmt;
use std::time::{Duration, Instant};

use stateright::{Checker, Model};

use crate::engine::Engine;
use crate::scenario::Scenario;
use crate::trace;

/// The result of exploring a scenario.
#[derive(Debug)]
pub struct Explored {
    /// The scenario.
    pub name: &'static str,
    /// Different states.
    pub states: usize,
    /// Steps between them.
    pub steps: usize,
    /// The longest of the shortest ways to a state.
    pub depth: usize,
    /// The time that it took.
    pub took: Duration,
    /// The fewest steps to something broken, in words, and what it is.
    pub broken: Option<Vec<String>>,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, states, steps, depth, took, broken } = self;
        let end = if broken.is_some() { "BROKEN" } else { "all of it holds" };
        let took = took.as_secs_f64();
        write!(f, "{name}: {states} states, {steps} steps, depth {depth}, {took:.1} s: {end}")?;
        for line in broken.iter().flatten() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// Explores every state of a scenario, or until something is broken. One thread finds the shortest
/// way to it.
#[must_use]
pub fn explore(scenario: Scenario, threads: usize) -> Explored {
    let name = scenario.name;
    let begun = Instant::now();
    let checker = Engine::new(scenario).checker().threads(threads).spawn_bfs().join();
    let broken = checker.discovery("nothing is broken");
    let broken = broken.map(|path| trace::words(checker.model(), path.into_vec()));
    Explored {
        name,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: begun.elapsed(),
        broken,
    }
}
