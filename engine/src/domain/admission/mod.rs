//! Admission: which buyers may enter a sale, when, and how many at a time.
//!
//! The [`gate`] bounds how many buyers are inside, and the waiting [`room`] decides their order. A [`challenge`] keeps
//! bots away, [`rules`] limit the requests of a buyer, an address or a device, and a [`call_rate`] limits the calls to
//! a payment provider.
//!
//! Builds on [`basics`](super::basics) and [`sale`](super::sale).

pub mod call_rate;
pub mod challenge;
pub mod gate;
pub mod room;
pub mod rules;
#[cfg(test)]
mod small_rng;
