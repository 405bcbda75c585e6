//! The check of a draw and of the serving after it, from what was published: no store, no network.

pub mod export;
pub mod publication;
pub mod report;
mod verify;
pub mod violation;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub use verify::{Own, verify};
