//! The decisions on an order's money: pure functions, most of which return a plan of what changes.
//!
//! [`prices`] compares prices with what providers charge. [`start`] begins an attempt, [`ours`] says which captures are
//! this deployment's at all, [`pay`] decides a capture, [`refund`] takes tickets back, [`exchange`] replaces them,
//! [`dispute`] follows a dispute step by step, and [`outside`] records what went back by no request of ours. [`bill`] holds
//! a provider's report of a day against what is known. [`captures`] says how far a provider's list was read, and [`grace`] how
//! long an unpaid order waits for that.
//!
//! Builds on [`basics`](super::basics), [`sale`](super::sale) and [`order`](super::order).

pub mod bill;
pub mod captures;
pub mod dispute;
pub mod exchange;
pub mod grace;
pub mod ours;
pub mod outside;
pub mod pay;
pub mod prices;
pub mod refund;
pub mod start;
