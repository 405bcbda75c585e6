//! The randomness beacon that a draw is made of: drand over HTTP.
//!
//! - [`drand`] asks its servers for rounds;
//! - [`signature`] verifies what they answer, and the source of a draw that was published.

pub mod drand;
pub mod signature;

pub use drand::DrandBeacon;
pub use signature::{Chain, Chains};
