//! `onsale`: see [`local::cli`].

use std::process::ExitCode;

use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    local::cli::Cli::parse().run().await
}
