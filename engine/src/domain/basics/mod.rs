//! Values that every rule uses: ids, times, money, order numbers, counts of tickets, bytes and bitmaps, the limits of
//! an order. Also the guards: a test can take any of these checks away.
//!
//! Builds on no other room.

pub mod bitmap;
pub mod bytes;
pub mod calendar;
pub mod counting;
pub mod guard;
pub mod ids;
pub mod limits;
pub mod money;
pub mod network;
pub mod number;
pub mod reserved;
pub mod tickets;
pub mod time;
pub mod time_zone;
pub(super) mod within_order;
