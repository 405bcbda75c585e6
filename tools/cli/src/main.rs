//! `onsale`: see `onsale --help`.

use std::process::ExitCode;

/// The engine and its fakes make and drop small texts all day, on several threads: a sixth to a
/// quarter of their time goes to the allocator. Functions on Lambda keep the system's, which is
/// smaller and starts faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    cli::run(std::env::args_os()).await
}
