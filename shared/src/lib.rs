//! The engine of Onsale.
//!
//! - [`domain`] holds the rules: ids, sales, the seat grid, choosing, holding, the order's states.
//! - [`ports`] says what the flows need from the world.

pub mod domain;
pub mod ports;
