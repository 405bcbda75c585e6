//! Many runs, on every core, and what they reached.

use std::fmt;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use engine::domain::basics::guard::Guard;
use model_stores::{seed_in, seed_of_commit};

use crate::fault::Fault;
use crate::random::mix;
use crate::room::RoomPlan;
use crate::run::{Outcome, run};
use crate::tally::Tally;

/// The runs to make.
#[derive(Debug, Clone, Copy)]
pub struct Exploration {
    /// The base that the seeds are derived from.
    pub base: u64,
    /// The number of runs.
    pub runs: u64,
    /// The longest duration, in real time.
    pub for_at_most: Duration,
    /// The guard that is taken away, if one is.
    pub without: Option<Guard>,
    /// The seeds of the base that are run.
    pub of: Of,
}

/// Seeds by what their sales have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Every,
    /// Those whose sale has no waiting room.
    Plain,
    /// Those whose sale has a waiting room.
    Rooms,
}

impl Of {
    fn has(self, seed: u64) -> bool {
        match self {
            Self::Every => true,
            Self::Plain => !RoomPlan::is_of(seed),
            Self::Rooms => RoomPlan::is_of(seed),
        }
    }
}

/// Does something without a guard, if one is named.
///
/// # Panics
/// Panics if one is named in a build that cannot take guards away.
pub fn without_guard<T>(guard: Option<Guard>, act: impl FnOnce() -> T) -> T {
    match guard {
        None => act(),
        #[cfg(debug_assertions)]
        Some(guard) => engine::domain::basics::guard::without(guard, act),
        #[cfg(not(debug_assertions))]
        Some(guard) => panic!("{guard} cannot be taken away in this build"),
    }
}

/// The result of many runs.
#[derive(Debug)]
pub struct Explored {
    /// The outcomes that they reached together.
    pub tally: Tally,
    /// A run that broke a promise, and how many runs it took to find it.
    pub failure: Option<(Outcome, u64)>,
    /// The time that it took.
    pub took: Duration,
}

/// The base of the seeds: `ONSALE_SIM_BASE`, or else the commit, so that every commit explores
/// other seeds and any of them can be repeated.
#[must_use]
pub fn base_seed() -> u64 {
    seed_in("ONSALE_SIM_BASE").unwrap_or_else(seed_of_commit)
}

/// Makes the runs until they are over, or one breaks a promise.
#[must_use]
pub fn explore(exploration: Exploration) -> Explored {
    let Exploration { base, runs, for_at_most, without, of } = exploration;
    let begun = Instant::now();
    // The number of seeds that were looked at, and of runs that were begun.
    let (next, is_over) = (Mutex::new((0, 0)), AtomicBool::new(false));
    let begin = || -> Option<(u64, u64)> {
        let mut next = next.lock().expect("no run panics with the lock");
        let (looked_at, begun) = &mut *next;
        *begun += 1;
        let seed = loop {
            let seed = mix(base, *looked_at);
            *looked_at += 1;
            if of.has(seed) {
                break seed;
            }
        };
        (*begun <= runs).then_some((seed, *begun))
    };
    let all = Mutex::new((Tally::default(), None));
    let work = || {
        let mut tally = Tally::default();
        let mut failure = None;
        while !is_over.load(Ordering::Relaxed) && begun.elapsed() < for_at_most {
            let Some((seed, run_number)) = begin() else { break };
            let outcome = without_guard(without, || run(seed, false));
            tally.add(&outcome.tally);
            if outcome.violation.is_some() {
                is_over.store(true, Ordering::Relaxed);
                failure = Some((outcome, run_number));
            }
        }
        let mut all = all.lock().expect("no run panics with the lock");
        all.0.add(&tally);
        let is_earlier = |failure: &(Outcome, u64)| {
            all.1.as_ref().is_none_or(|other: &(Outcome, u64)| failure.1 < other.1)
        };
        if failure.as_ref().is_some_and(is_earlier) {
            all.1 = failure;
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    let (tally, failure) = all.into_inner().expect("no run panics with the lock");
    Explored { tally, failure, took: begun.elapsed() }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tally, took, .. } = self;
        let seconds = took.as_secs_f64().max(0.001);
        let hours = tally.virtual_ms / 3_600_000;
        writeln!(
            f,
            "{} seeds, {} steps in {seconds:.1} s ({:.0} steps a minute), {hours} hours of virtual \
             time, {} sweeps left out",
            tally.runs,
            tally.steps,
            tally.steps as f64 * 60.0 / seconds,
            tally.skipped
        )?;
        let [one, many] = tally.overrun_ms.map(|ms| ms as f64 / 1000.0);
        writeln!(
            f,
            "pending beyond the payment window at most: {one:.1} s under one kind of fault (bound \
             120), {many:.1} s under several (bound 600)"
        )?;
        let faults: u64 = tally.faults.values().sum();
        writeln!(f, "{faults} faults:")?;
        for fault in Fault::ALL {
            writeln!(f, "  {:>9}  {fault}", tally.faults.get(&fault).copied().unwrap_or(0))?;
        }
        writeln!(f, "reached:")?;
        for (outcome, count) in &tally.reached {
            writeln!(f, "  {count:>9}  {outcome}")?;
        }
        Ok(())
    }
}
