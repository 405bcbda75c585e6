//! `onsale openapi`: the API, described for programs.

use std::process::ExitCode;

use clap::Args;

use super::{Failure, out};

/// Print the OpenAPI 3.1 document of the API, as a running engine serves it at /openapi.json.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onsale openapi > docs/openapi.json      after a change of what the API reads or writes")]
pub struct OpenapiCommand {}

impl OpenapiCommand {
    /// Prints the document.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn run(self) -> Result<ExitCode, Failure> {
        out(&openapi::print().trim_end())
    }
}
