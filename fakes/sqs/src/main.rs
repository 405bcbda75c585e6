//! Runs the server as a program: `sqs-standin --port 4566 --file queues.db`, until interrupted.

use std::path::PathBuf;

use clap::Parser;
use fake_sqs::{FakeSqs, Options, StartError};

/// A small fake of Amazon SQS on one machine.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// The port on 127.0.0.1; 0 for a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Keep the queues in this file; in memory without it.
    #[arg(long)]
    file: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), StartError> {
    let Arguments { port, file } = Arguments::parse();
    let server = FakeSqs::start(Options { port, file, ..Options::default() })?;
    println!("{}", server.endpoint());
    tokio::signal::ctrl_c().await?;
    server.shutdown().await;
    Ok(())
}
