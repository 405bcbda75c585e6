//! The rules: pure, without Redis, DynamoDB, SQS or HTTP. Time and randomness are arguments.
//!
//! Read the rooms from the ground up: each builds only on rooms before it, and none on ports or flows. A test holds
//! that order (`tests/text/architecture/rooms.rs`).
//!
//! 1. [`basics`]: ids, times, money and other values; the guards.
//! 2. [`sale`]: the sale file and all of its terms.
//! 3. [`inventory`]: the seats, and the commands on them.
//! 4. [`admission`]: who is let in to buy, when, and how many at a time.
//! 5. [`order`]: the order and its records.
//! 6. [`payment`]: the decisions on an order's money.
//! 7. [`ledger`]: accounts, wallets, points, statistics and the log, all derived from the facts of orders.
//! 8. [`ticket`]: ticket codes and check-in.
//!
//! Records stand below decisions: `order` holds what an order *has*, `payment` and `ticket` decide what *changes* it.

pub mod admission;
pub mod basics;
pub mod inventory;
pub mod ledger;
pub mod order;
pub mod payment;
pub mod sale;
pub mod ticket;
