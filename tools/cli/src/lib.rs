//! The command line of `onsale`: one module a command.

pub mod audit;
pub mod bench;
pub mod capacity;
pub mod chaos;
pub mod cost;
pub mod crowd;
pub mod demo;
pub mod engine;
pub mod environment;
pub mod events;
pub mod gate;
pub mod limits;
mod log;
mod money;
pub mod openapi;
pub mod orders;
pub mod pages;
pub mod pay;
mod payments;
mod ready;
pub mod rehearsal;
pub mod repair;
pub mod replay;
pub mod room;
pub mod rush;
pub mod sale;
pub mod ticket;
pub mod token;
pub mod up;
pub mod verify_draw;
mod webhooks;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use local::data_dir;

/// The exit code when a command did its work and the answer is no.
pub const DECLINED: u8 = 1;
/// The exit code when it could not be carried out.
pub const FAILED: u8 = 2;

/// The default log filter. The fake of DynamoDB warns of every condition that fails, which is how the
/// engine finds out the state of an item.
const LOG: &str = "info,dynoxide=error";

/// The position of the options of every command in the help of one: behind its own.
const LAST: usize = 900;

/// Why a command could not be carried out, in words for whoever ran it.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Sell tickets in the minute in which everyone wants them: the whole engine, on one machine.
#[derive(Debug, Parser)]
#[command(
    name = "onsale",
    version,
    after_help = "\
Begin with:
  onsale up                         run the engine; it says what to do next
  onsale demo                       sell out a stadium and a train, and prove it by audit

Exit codes:
  0  done
  1  carried out, and the answer is no: refused by the engine, a defect, a broken invariant
  2  not carried out: wrong arguments, or something that is needed cannot be reached

ONSALE_LOG sets what is logged to standard error: error, warn, info (default), debug,
or by module, as in warn,local=debug."
)]
pub struct Cli {
    /// Where the engine keeps its state, and where commands look for a running one.
    #[arg(long, global = true, value_name = "DIR", env = "ONSALE_DATA_DIR", default_value = data_dir::DEFAULT,
          display_order = LAST)]
    data_dir: PathBuf,
    #[arg(long, global = true, display_order = LAST)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Up(up::UpCommand),
    Token(token::TokenCommand),
    Pay(pay::PayCommand),
    Sign(pay::SignCommand),
    Sale(sale::SaleCommand),
    Openapi(openapi::OpenapiCommand),
    Environment(environment::EnvironmentCommand),
    Rush(rush::RushCommand),
    Demo(demo::DemoCommand),
    Replay(Box<replay::ReplayCommand>),
    Audit(audit::AuditCommand),
    Reconcile(repair::ReconcileCommand),
    Stuck(repair::StuckCommand),
    DeadLetters(repair::DeadLettersCommand),
    Orders(orders::OrdersCommand),
    Events(events::EventsCommand),
    Money(money::MoneyCommand),
    Payments(payments::PaymentsCommand),
    Webhooks(webhooks::WebhooksCommand),
    Gate(gate::GateCommand),
    Room(room::RoomCommand),
    VerifyDraw(verify_draw::VerifyDrawCommand),
    Ticket(ticket::TicketCommand),
    Bench(bench::BenchCommand),
    Cost(Box<cost::CostCommand>),
    Capacity(Box<capacity::CapacityCommand>),
    Ready(Box<ready::ReadyCommand>),
    Chaos(chaos::ChaosCommand),
    #[command(name = "stand-ins")]
    Fakes(chaos::FakesCommand),
}

impl Command {
    /// What is logged unless ONSALE_LOG says otherwise. The report of a demo or a measurement
    /// stands for itself.
    fn log(&self) -> &'static str {
        match self {
            Self::Demo(_)
            | Self::Replay(_)
            | Self::Bench(_)
            | Self::Cost(_)
            | Self::Capacity(_)
            | Self::Ready(_)
            | Self::Chaos(_) => "error",
            Self::Up(_)
            | Self::Token(_)
            | Self::Pay(_)
            | Self::Sign(_)
            | Self::Sale(_)
            | Self::Openapi(_)
            | Self::Environment(_)
            | Self::Rush(_)
            | Self::Fakes(_)
            | Self::Audit(_)
            | Self::Reconcile(_)
            | Self::Stuck(_)
            | Self::DeadLetters(_)
            | Self::Orders(_)
            | Self::Events(_)
            | Self::Money(_)
            | Self::Payments(_)
            | Self::Webhooks(_)
            | Self::Gate(_)
            | Self::Room(_)
            | Self::VerifyDraw(_)
            | Self::Ticket(_) => LOG,
        }
    }
}

/// Reads the command line and carries it out.
pub async fn run(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> ExitCode {
    match Cli::try_parse_from(arguments) {
        Ok(cli) => {
            log::start(cli.command.log());
            cli.run().await
        }
        // Help and version are errors to the parser; it knows where each goes and what it means.
        Err(said) => {
            let _unheard = said.print();
            ExitCode::from(u8::try_from(said.exit_code()).unwrap_or(FAILED))
        }
    }
}

impl Cli {
    /// Carries the command out.
    async fn run(self) -> ExitCode {
        let Self { data_dir, json, command } = self;
        let done = match command {
            Command::Up(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Token(command) => command.run(&data_dir, json),
            Command::Pay(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Sign(command) => command.run(&data_dir, json),
            Command::Sale(command) => Ok(on_heap(|| command.run(&data_dir, json)).await),
            Command::Openapi(command) => command.run(),
            Command::Environment(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Rush(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Demo(command) => on_heap(|| command.run(json)).await,
            Command::Replay(command) => on_heap(|| command.run(json)).await,
            Command::Audit(command) => Ok(on_heap(|| command.run(&data_dir, json)).await),
            Command::Reconcile(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Stuck(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::DeadLetters(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Orders(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Events(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Money(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Payments(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Webhooks(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Gate(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Room(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::VerifyDraw(command) => command.run(json),
            Command::Ticket(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Bench(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Cost(command) => on_heap(|| command.run(json)).await,
            Command::Capacity(command) => on_heap(|| command.run(json)).await,
            Command::Ready(command) => on_heap(|| command.run(&data_dir, json)).await,
            Command::Chaos(command) => on_heap(|| command.run(json)).await,
            Command::Fakes(command) => on_heap(|| command.run(&data_dir)).await,
        };
        done.unwrap_or_else(|failure| {
            eprintln!("error: {failure}");
            ExitCode::from(FAILED)
        })
    }
}

/// Makes a future on the heap. A function has bytes on its stack for each future that it makes, at once in a build
/// that is not optimised: those of all commands are half of what a thread has. Here they are those of one.
fn on_heap<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}

/// Writes a line to standard output; a reader that has gone away is an error, not a panic.
fn out(text: &impl Display) -> Result<ExitCode, Failure> {
    writeln!(io::stdout(), "{text}")?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_sound_and_says_what_it_is() {
        let mut command = Cli::command();
        command.clone().debug_assert();
        for subcommand in command.get_subcommands_mut() {
            let name = subcommand.get_name().to_owned();
            assert!(subcommand.get_about().is_some(), "{name} says what it does");
        }
    }

    #[test]
    fn an_option_that_cannot_be_meant_is_refused() {
        for line in [
            "onsale up --reconcile-seconds 0",
            "onsale up --dynamodb-url 127.0.0.1:8000",
            "onsale up --sqs-url http://127.0.0.1:4566/queue",
            "onsale up --redis-url 127.0.0.1:6379",
            "onsale up --redis-cluster",
            "onsale chaos --kills 3 --times 2",
            "onsale chaos --faults no-such-fault",
            "onsale chaos --as-deployed --reconcile-seconds 2",
            "onsale events",
            "onsale events seat --sale s A1",
            "onsale orders erase-attendees --sale s --before 2026-01-01T00:00:00Z --order 7",
            "onsale orders erase-attendees --sale s --before yesterday",
            "onsale orders erase-attendees",
            "onsale orders refund 7",
            "onsale orders refund 7 --all --ticket a:1",
            "onsale orders refund 7 --ticket a1",
            "onsale orders refund 7 --amount 5",
            "onsale orders refund 7 --all --number 51",
            "onsale rush --sale s --target https://a.example",
            "onsale rush --sale s --max-rate 5",
            "onsale rush --sale s --target https://a.example --token-command t --max-rate 0",
            "onsale rush --sale s --target https://a.example --token-command t --at-once 5",
            "onsale rush --sale s --target https://a.example --token-command t --mix paying",
            "onsale rush --sale s --target https://a.example --token-command t --url http://127.0.0.1",
            "onsale verify-draw",
            "onsale verify-draw d --index 5",
            "onsale verify-draw d --buyer alice",
            "onsale ticket",
            "onsale ticket verify",
            "onsale ticket verify a --keys",
            "onsale token --user a#b",
            "onsale token --user ",
        ] {
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{line}");
        }
    }

    #[test]
    fn global_options_stand_before_and_after_the_command() {
        for line in [
            "onsale --json --data-dir d token --operator",
            "onsale token --operator --json --data-dir d",
            "onsale audit --json --data-dir d",
            "onsale --data-dir d rush --sale s --json",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            assert!(cli.json, "{line}");
            assert_eq!(cli.data_dir, PathBuf::from("d"), "{line}");
        }
    }
}
