//! The queues: what their messages say ([`messages`]) and how they are sent ([`SqsQueue`]).
//!
//! A message is a hint and never the truth: each is delivered at least once, in any order, and may
//! be lost with the process that was about to send it. Consumers decide by what DynamoDB says, and
//! the sweeper finds what no message reminded of. `docs/queues.md` describes the formats.

pub mod batch;
pub mod messages;

mod outbox;
mod sqs;
mod throttle;

pub use messages::{Expiry, LoadSale, Malformed, Message, Refund, Sync};
pub use sqs::{QueueConfig, QueueUrls, SqsQueue, delay_seconds};
