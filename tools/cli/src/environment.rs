//! `onsale environment`: what functions need that run beside a running engine.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::engine::running;
use super::{Failure, out};
use local::environment::{env_file, variables, with_sample_events};

/// Print the environment of Lambda functions that share the stores of a running engine, for `cargo
/// lambda watch --env-file`. It holds the development secrets of the data directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale environment --sample-events > .onsale/functions.env
  onsale environment --sample-events --json > .onsale/functions.json     for sam local invoke --env-vars")]
pub struct EnvironmentCommand {
    /// Have the functions trust the keys that sign the events in tests/events. They are published:
    /// only to try things out.
    #[arg(long)]
    sample_events: bool,
}

impl EnvironmentCommand {
    /// Prints the variables, one a line.
    ///
    /// # Errors
    /// No engine runs on the data directory.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let config = running(data_dir).await?;
        let config = if self.sample_events { with_sample_events(config) } else { config };
        let variables = variables(&config);
        if json {
            return out(&json!({ "Parameters": variables }));
        }
        out(&env_file(&variables).trim_end())
    }
}
