//! `onsale`: see `onsale --help`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    local::cli::run(std::env::args_os()).await
}
