//! A model checker over the production flows: every interleaving, every fault at every step, of a
//! scenario so small that all of it can be seen.
//!
//! [`task`] turns a flow into a value, [`scenario`] says what a scenario is made of, [`engine`] what can
//! happen in it, [`check`] what must hold, [`rest`] what must hold once only the sweeper is left.
//! stateright explores breadth first, so that what it finds it finds in the fewest steps; [`trace`]
//! tells those in words. [`room`] is the same for a waiting room: its own scenarios and checks.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a scenario that cannot be built fails where it stands"
)]

pub mod check;
mod direct;
pub mod engine;
pub mod explore;
pub mod flow;
pub mod rest;
pub mod room;
pub mod scenario;
pub mod scenarios;
pub mod state;
pub mod task;
pub mod trace;
