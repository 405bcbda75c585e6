//! Cold starts of the real functions, measured, and what a resumed sandbox meets.
//!
//! - [`certificates`] and [`proxy`] put TLS before a server, and sever its connections;
//! - [`runtime_api`] hands events to a function as Lambda does;
//! - [`sandbox`] runs a function's real binary and reads what it costs;
//! - [`environment`] is the sale that the functions serve, and an event of each;
//! - [`report`] puts the figures side by side.

pub mod certificates;
pub mod environment;
pub mod proxy;
pub mod report;
pub mod runtime_api;
pub mod sandbox;

/// Reason why nothing could be measured.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
