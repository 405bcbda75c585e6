//! The check of a draw and of the serving after it, from what was published: no store, no network.

pub mod export;
pub mod publication;
pub mod report;
mod verify;
pub mod violation;
pub mod watch;
pub mod witness;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use verify::{Own, Seen, verify};
