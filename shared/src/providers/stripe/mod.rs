//! Stripe's form of everything: the signature and the events of its callbacks, and its API.

mod account;
pub mod event;
mod forms;
pub mod signature;

pub(in crate::providers) use account::Account;
