//! The load test (`onsale rush`): a seeded crowd that competes for the seats of some sales over HTTP.
//!
//! In the open loop people come when a shape says so, whether those before them were answered or not.
//! In the closed loop a fixed number is on the site at once, and the next comes when one leaves. Either way,
//! late buyers then take what was cancelled, expired or left over in single seats and single legs,
//! until nothing is left. `docs/rush.md` says what is measured and how.
//!
//! The crowd runs in a thread of its own: its processor time is known apart from the engine's, and nothing
//! in it needs a lock.

pub mod arrivals;
mod behaviour;
pub mod charts;
pub mod client;
pub mod controller;
pub mod cpu;
pub mod credentials;
pub mod demo;
pub mod exchanges;
mod late;
pub mod ledger;
pub mod money_back;
mod neighbours;
mod open_loop;
mod options;
mod pace;
pub mod page;
pub mod pages;
pub mod payment;
pub mod people;
pub mod profile;
mod progress;
mod provider;
pub mod published;
pub mod rehearsal;
pub mod replay;
pub mod report;
mod run;
pub mod seconds;
pub mod series;
pub mod session;
mod shop;
pub mod stopwatch;
pub mod tally;
pub mod thresholds;
mod transport;
pub mod venue;

pub use self::options::{CONNECTIONS, CallbackRepeats, Load, Options};
pub use self::pages::Shares;
pub use self::run::{LoadTestError, run, run_on};
