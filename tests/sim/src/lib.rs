//! The simulator: the production flows (the code that the functions run, generic over their ports)
//! on the pure models of what stands behind them, under every fault. One seed is one run.
//!
//! [`run`] makes one; [`explore`] makes many, on every core; [`shrink`] makes a failure small enough
//! to be read. `README.md` says what is modelled and how to read a trace.

#![allow(clippy::expect_used, reason = "a simulator that is built wrongly must not go on")]
#![allow(clippy::wildcard_enum_match_arm, reason = "most calls are of no interest to most rules")]
#![allow(clippy::too_many_lines, reason = "one arm a call is read at a glance")]

mod actors;
mod buyer;
#[cfg(debug_assertions)]
pub mod controls;
mod crowd;
mod environment;
mod executor;
mod explore;
mod fault;
mod money;
pub mod one_order;
mod oracle;
pub mod people;
mod plan;
mod random;
mod redis_log;
mod room;
mod run;
mod shrink;
mod tally;
mod trace;

pub use crate::environment::Violation;
#[cfg(debug_assertions)]
pub use crowd::each_absence;
pub use crowd::{Client, Flow, each_seed, finish};
pub use executor::let_others_come_between;
pub use explore::{Exploration, Explored, Of, base_seed, explore, without_guard};
pub use fault::{Fault, FaultProfile};
pub use random::SeededRng;
pub use run::{Outcome, run};
pub use shrink::{Minimal, shrink};
pub use tally::Tally;
