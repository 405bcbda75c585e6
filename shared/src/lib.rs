//! The engine of Onsale.
//!
//! - [`domain`] holds the rules: ids, sales, the seat grid, choosing, holding, the order's states.

pub mod domain;
