//! The commands of `onsale`, one module each.

pub mod audit;
pub mod sale;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Sell tickets for a minute that everyone wants: the engine, on one machine.
#[derive(Debug, Parser)]
#[command(name = "onsale", version)]
pub struct Cli {
    /// Report as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make, check, publish and look at sales.
    Sale(sale::SaleCommand),
    Audit(audit::AuditCommand),
}

impl Cli {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match self.command {
            Command::Sale(command) => command.run(self.json).await,
            Command::Audit(command) => command.run(self.json).await,
        }
    }
}
