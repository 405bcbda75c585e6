//! `bench-cold`: what a cold start of each function costs, beside the least function there can be.

use std::path::PathBuf;

use clap::Parser;
use cold::Failure;
use cold::environment::{CONNECTED, Environment, HELLO};
use cold::report::{measure, table};
use shared::runtime::metrics::Function;

/// Starts each function's real binary, lets it do its first work over TLS, and prints what that cost:
/// medians of processor time as the kernel counts it, not of time that passed.
#[derive(Parser)]
struct Args {
    /// Where the binaries are, each under its function's name
    #[arg(long)]
    bin_dir: PathBuf,
    /// How many sandboxes each function is measured in
    #[arg(long, default_value_t = 20)]
    samples: usize,
    /// How many seats the sale has; a sandbox reads its file when it first meets a sale
    #[arg(long, default_value_t = 2000)]
    seats: u32,
    /// The sale's file lists every seat by its name, as those that importers write
    #[arg(long)]
    listed: bool,
    /// Which functions; all of them unless named
    functions: Vec<String>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = Args::parse();
    let is_requested =
        |name: &&str| args.functions.is_empty() || args.functions.iter().any(|one| one == name);
    let mut figures = Vec::new();
    let functions = Function::NAMES.into_iter().filter(is_requested);
    for function in [HELLO, CONNECTED].into_iter().chain(functions) {
        eprintln!("{function} …");
        // A hall of its own: each sandbox makes orders.
        let environment = Environment::start(args.seats, args.listed).await?;
        figures.push(
            measure(&environment, function, &args.bin_dir.join(function), args.samples).await?,
        );
    }
    println!("{}", table(&figures));
    Ok(())
}
