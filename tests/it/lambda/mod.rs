//! The binaries that are deployed, as `scripts/lambda --quick` builds them: each under AWS's own
//! emulator of the runtime, behind `cargo lambda watch`, and all of them as one stack on ministack.

mod answers;
mod binaries;
mod event;
mod ministack;
mod rie;
mod sample_events;
mod watch;
