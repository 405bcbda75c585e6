//! What one request costs each handler, in instructions and allocations: figures that are the same
//! on a busy machine and on a quiet one, so that a regression is seen without timing anything.
//!
//! A request is what Lambda hands a function: the event as JSON. It is read, handled over real
//! connections to Redis and to the fakes of DynamoDB and SQS, and the answer is written as
//! JSON. The servers do their part in other threads or processes, which nobody counts. Everything
//! of ours is on one thread: the same work in the same order every time.
//!
//! `scripts/handler-costs` counts both and keeps `docs/handler-costs.md`.

pub mod cases;
pub mod environment;
pub mod event;
mod room;

use tokio::runtime::{Builder, Runtime};

use cases::Work;
use environment::Environment;

/// A runtime of one thread.
///
/// # Errors
/// The system gives none.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Does the work of one request. Callgrind counts while this runs, and finds it by its name: it is
/// not generic and not inlined.
#[inline(never)]
pub fn measured(runtime: &Runtime, environment: &Environment, work: &Work) {
    runtime.block_on(work.perform(environment));
}
