//! `make sim` and `make sim-hours`: one seed with everything that happens, or as many as time allows.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use engine::domain::basics::guard::Guard;
use sim::{Exploration, Of, base_seed, explore, run, shrink, without_guard};

/// Runs make and drop small values all the time: a tenth of their time goes to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the production flows under every fault, one seed a run.
#[derive(Debug, Parser)]
struct Arguments {
    /// Replays this seed and writes out everything that happens.
    #[arg(long)]
    seed: Option<u64>,
    /// Takes this guard away.
    #[arg(long)]
    without: Option<Guard>,
    /// Runs new seeds for this number of hours.
    #[arg(long, default_value_t = 1.0)]
    hours: f64,
}

fn main() -> ExitCode {
    let Arguments { seed, without, hours } = Arguments::parse();
    if let Some(seed) = seed {
        println!("{}", without_guard(without, || run(seed, true)));
        return show(seed, without);
    }
    let (base, for_at_most) = (base_seed(), Duration::from_secs_f64(hours * 3600.0));
    println!("seeds from base {base} (ONSALE_SIM_BASE={base} repeats them)");
    let runs = u64::MAX;
    let explored = explore(Exploration { base, runs, for_at_most, without, of: Of::Every });
    println!("{explored}");
    explored.failure.map_or(ExitCode::SUCCESS, |(failure, _)| show(failure.seed, without))
}

/// The smallest failure of a seed, if it breaks a promise.
fn show(seed: u64, without: Option<Guard>) -> ExitCode {
    without_guard(without, || shrink(seed)).map_or(ExitCode::SUCCESS, |minimal| {
        println!("{minimal}");
        ExitCode::FAILURE
    })
}
