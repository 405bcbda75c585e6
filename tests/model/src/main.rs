//! Explores scenarios by name; the large ones if none is named.

use clap::Parser;
use engine::domain::basics::guard::Guard;
use model::{explore::explore, room, scenario::Scenario, scenarios};

/// States are made and dropped all the time: a third of the time goes to the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Explores every state of small scenarios and says what it found.
#[derive(Parser)]
struct Arguments {
    /// Scenarios whose name contains this, small or large; the large ones if it is not given.
    name: Option<String>,
    /// A guard to take away.
    #[arg(long)]
    without: Option<Guard>,
    /// Number of faults of processes and calls that may come together.
    #[arg(long)]
    faults: Option<u8>,
    /// Number of messages that are delivered twice.
    #[arg(long)]
    copies: Option<u8>,
    /// Number of callbacks of each payment.
    #[arg(long)]
    callbacks: Option<u8>,
    /// Number of times that Redis forgets.
    #[arg(long)]
    losses: Option<u8>,
    /// Number of further runs of the sweeper.
    #[arg(long)]
    sweeps: Option<u8>,
    /// Number of runs of the reader of the provider's list.
    #[arg(long)]
    reads: Option<u8>,
    /// Number of threads that explore; one finds the shortest way to what is broken.
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

impl Arguments {
    /// The scenario with what the command line says of it.
    fn adapt(&self, mut scenario: Scenario) -> Scenario {
        let budget = &mut scenario.budget;
        let settings = [
            (&mut budget.faults, self.faults),
            (&mut budget.copies, self.copies),
            (&mut budget.callbacks, self.callbacks),
            (&mut budget.losses, self.losses),
            (&mut budget.sweeps, self.sweeps),
            (&mut budget.reads, self.reads),
        ];
        for (setting, value) in settings {
            *setting = value.unwrap_or(*setting);
        }
        Scenario { without: self.without, ..scenario }
    }

    /// The same of a scenario of a room, which has faults, but none of the other things.
    fn adapt_room(&self, scenario: room::Scenario) -> room::Scenario {
        let faults = self.faults.unwrap_or(scenario.faults);
        room::Scenario { without: self.without, faults, ..scenario }
    }
}

fn main() {
    let arguments = Arguments::parse();
    let scenarios: Vec<Scenario> = match &arguments.name {
        None => scenarios::large(),
        Some(name) => {
            let all = scenarios::small().into_iter().chain(scenarios::large());
            all.filter(|scenario| scenario.name.contains(name)).collect()
        }
    };
    for scenario in scenarios {
        println!("{}", explore(arguments.adapt(scenario), arguments.threads));
    }
    let rooms: Vec<room::Scenario> = match &arguments.name {
        None => vec![room::Scenario::large()],
        Some(name) => {
            let all = room::Scenario::small().into_iter().chain([room::Scenario::large()]);
            all.filter(|scenario| scenario.name.contains(name)).collect()
        }
    };
    for scenario in rooms {
        println!("{}", room::steps::explore(arguments.adapt_room(scenario), arguments.threads));
    }
}
