//! The queues: how messages ([`engine::ports::messages`]) are sent ([`SqsQueue`]) and taken ([`batch`]).
//!
//! A message is a hint and never the truth: each is delivered at least once, in any order, and may
//! be lost with the process that was about to send it. Consumers decide by the items in DynamoDB, and
//! the sweeper finds the work whose message was lost. `docs/queues.md` describes the formats.

pub mod batch;
mod dead_letters;
mod outbox;
mod queue;
mod throttle;

pub use queue::{QueueConfig, QueueUrls, SqsQueue};
