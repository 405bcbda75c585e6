//! What operators ask of a running engine, safe on production: the audit, what is stuck, the
//! dead-letter queues, the repair, the pace of refunds, the sales at a gateway, what providers say of the money; and
//! the check of a draw, for anybody.

// Others read it without its code: each public item says what it is.
#![warn(missing_docs)]

pub mod audit;
pub mod dead_letters;
pub mod draw;
pub mod gateway;
pub mod reconcile;
pub mod refund_pace;
pub mod settlement;
pub mod stuck;
