//! One run, from its seed to rest.

use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use crate::actors::{Queues, archivist, happen, operator, reader, schedule};
use crate::buyer::buyer;
use crate::environment::{Environment, Violation};
use crate::executor::{self, Executor};
use crate::fault::{Fault, FaultProfile};
use crate::plan::{Plan, Without};
use crate::random::mix;
use crate::room::BeaconPlan;
use crate::room::actors::{bringer, commander, draws, giver_up, onlooker};
use crate::room::visitor::visitor;
use crate::tally::Tally;
use crate::trace::Trace;

/// Result of a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub seed: u64,
    /// The kinds of fault that could strike.
    pub profile: FaultProfile,
    /// The promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// The outcomes that were reached.
    pub tally: Tally,
    /// The faults that struck, by the name of their place.
    pub struck: Vec<(u64, Fault)>,
    /// The number of buyers.
    pub buyers: u64,
    /// The record of what happened; empty if none was requested.
    pub trace: String,
}

/// Runs a seed; `traced` if somebody wants to read what happens.
#[must_use]
pub fn run(seed: u64, traced: bool) -> Outcome {
    run_without(seed, Without::default(), traced)
}

/// Runs a seed and leaves something out.
pub(crate) fn run_without(seed: u64, without: Without, traced: bool) -> Outcome {
    let plan = Plan::from_seed(seed, without);
    let (profile, buyers) = (plan.profile, plan.buyers);
    let executor = Executor::new(Environment::new(plan.clone(), traced.then(Trace::default)));
    let panicked = catch_unwind(AssertUnwindSafe(|| play(&executor, plan))).err();
    let mut environment = executor.environment.lock();
    if let Some(panic) = panicked {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        environment.broken("panic", text.unwrap_or_default());
    }
    environment.tally.runs = 1;
    environment.tally.virtual_ms = environment.elapsed_ms();
    Outcome {
        seed,
        profile,
        violation: environment.violation.clone(),
        tally: environment.tally.clone(),
        struck: environment.struck.clone(),
        buyers,
        trace: environment.trace.as_ref().map(Trace::text).unwrap_or_default(),
    }
}

fn play(executor: &Executor, plan: Plan) {
    executor.act(operator(executor.clone(), plan.sale.clone(), 0x0be1));
    let quiet = Rc::new(RefCell::new(None));
    executor.act_forever(schedule(executor.clone(), Rc::clone(&quiet)));
    if plan.lists {
        executor.act_forever(reader(executor.clone()));
    }
    for index in (0..plan.buyers).filter(|index| !plan.without.buyers.contains(index)) {
        match plan.room {
            None => executor.act(buyer(executor.clone(), index)),
            Some(_) => executor.act(visitor(executor.clone(), index)),
        }
    }
    if let Some(room) = plan.room {
        executor.act(onlooker(executor.clone(), mix(plan.seed, 0x100c)));
        executor.act_forever(draws(executor.clone(), mix(plan.seed, 0x100d)));
        executor.act(commander(executor.clone(), room.commands));
        if matches!(room.beacon, BeaconPlan::SilentFor(None)) {
            executor.act_forever(giver_up(executor.clone(), mix(plan.seed, 0x100f)));
        }
        if room.brings {
            executor.act(bringer(executor.clone(), mix(plan.seed, 0x100e)));
        }
    }
    if let Some(closes_ms) = plan.archives_from_ms {
        executor.act(archivist(executor.clone(), closes_ms, 0xa4c4_0000));
    }
    for (at, place, incident) in plan.incidents {
        executor.act(happen(executor.clone(), at, place, incident));
    }
    let queues = Queues::default();
    executor::run(executor, |executor| {
        queues.take(executor);
        // What orders give is written by its messages and by nobody else, however late they are.
        let is_given = !queues.has_points();
        executor.is_idle() && is_given && is_at_rest(executor, *quiet.borrow())
    });
    let mut environment = executor.environment.lock();
    if environment.violation.is_none() {
        environment.check_rest();
    }
}

/// True if the last sweep found nothing to do, nothing has changed since, and nothing will become
/// due.
fn is_at_rest(executor: &Executor, quiet: Option<u64>) -> bool {
    let environment = executor.environment.lock();
    // What a loader that was frozen has left of an archived sale is under an epoch that nobody names.
    let holds = environment.over().is_none()
        && environment.stores.seats.loaded().any(|(_, inventory)| !inventory.holds.is_empty());
    let due = !environment.stores.orders.due.is_empty();
    environment.now >= environment.plan.calm_from
        && quiet == Some(environment.changes)
        && !holds
        && !due
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, profile, violation, trace, tally, .. } = self;
        writeln!(f, "{trace}")?;
        write!(f, "seed {seed} ({profile}), {} steps: ", tally.steps)?;
        match violation {
            Some(violation) => write!(f, "{} is broken: {}", violation.rule, violation.what),
            None => f.write_str("every promise is kept"),
        }
    }
}
