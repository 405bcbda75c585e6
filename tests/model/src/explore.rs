//! Explores a scenario to its last state.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Model};

use crate::engine::Engine;
use crate::scenario::Scenario;
use crate::trace;

/// The result of exploring a scenario.
#[derive(Debug)]
pub struct Explored {
    pub name: &'static str,
    pub states: usize,
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

/// The property of a model: what its states say is broken, nothing.
pub(crate) const PROPERTY: &str = "nothing is broken";

/// Most steps of a small scenario: one that grows beyond takes minutes, or has no end.
pub const MAX_STEPS_OF_SMALL: usize = 2_000_000;

/// Explores every state of a scenario, or until something is broken. One thread finds the shortest
/// way to it.
#[must_use]
pub fn explore(scenario: Scenario, threads: usize) -> Explored {
    explored(scenario.name, Engine::new(scenario), (threads, None), trace::words)
}

/// As [`explore`], up to [`MAX_STEPS_OF_SMALL`], of which as many steps tell that it is not whole.
#[must_use]
pub fn explore_small(scenario: Scenario) -> Explored {
    let most = Some(MAX_STEPS_OF_SMALL);
    explored(scenario.name, Engine::new(scenario), (1, most), trace::words)
}

/// Explores a model with the one [`PROPERTY`] by threads, at most so many steps; `words` says the way to a state that lacks
/// it.
pub(crate) fn explored<M>(
    name: &'static str,
    model: M,
    (threads, most): (usize, Option<usize>),
    words: impl FnOnce(&M, Vec<(M::State, Option<M::Action>)>) -> Vec<String>,
) -> Explored
where
    M: Model<
            State: Clone + Debug + Hash + PartialEq + Send + Sync,
            Action: Clone + Debug + PartialEq,
        > + Send
        + Sync
        + 'static,
{
    let begun = Instant::now();
    let mut checker = model.checker().threads(threads);
    if let Some(most) = most {
        checker = checker.target_state_count(most);
    }
    let checker = checker.spawn_bfs().join();
    let broken = checker.discovery(PROPERTY);
    let broken = broken.map(|path| words(checker.model(), path.into_vec()));
    Explored {
        name,
        states: checker.unique_state_count(),
        steps: checker.state_count(),
        depth: checker.max_depth(),
        took: begun.elapsed(),
        broken,
    }
}
