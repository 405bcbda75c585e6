//! The pure core of Onsale.
//!
//! - [`domain`] holds the rules: ids, sales, the seat grid, choosing, holding, the order's states.
//! - [`ports`] says what the flows need from the stores, the queues and the provider.
//! - [`flows`] says what happens, step by step, against the ports.
//!
//! No crate of AWS, Redis, HTTP or TLS is in its tree; time and randomness are arguments.

pub mod domain;
pub mod flows;
pub mod ports;
