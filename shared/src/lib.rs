//! The engine of Onsale.
//!
//! - [`domain`] holds the rules: ids, sales, the seat grid, choosing, holding, the order's states.
//! - [`flows`] says what happens, step by step, against the ports.
//! - [`ports`] says what the flows need from the world.

pub mod domain;
pub mod flows;
pub mod ports;
