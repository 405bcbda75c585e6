//! What is derived from the facts of orders: money in double entry, wallets, points, statistics, takings, and the log
//! that webhooks read.
//!
//! Each entry is a function of an order and one of its facts, so it is booked once and can be computed again.
//!
//! Builds on [`basics`](super::basics), [`sale`](super::sale), [`inventory`](super::inventory), [`order`](super::order)
//! and [`payment`](super::payment).

pub mod debts;
pub mod log;
pub mod points;
pub mod posting;
pub mod statistics;
pub mod subscriber;
pub mod takings;
mod transfers;
pub mod wallet;

pub use transfers::{
    Account, Balance, Transfer, TransferCode, booked, entries, of_no_order, of_no_order_decided,
    of_no_order_ended, transfers,
};
