//! Requests and replies as AWS JSON 1.0 carries them.
//!
//! Source: the operations of the Amazon SQS API Reference. A request is parsed and checked as
//! far as that goes without knowing the queues; the broker checks the rest.

mod fields;
mod reply;
mod request;

pub(crate) use reply::{Delivery, MoveStatus, Reply, Sent, sequence_number};
pub(crate) use request::{Entry, Page, Receive, Request, Send};
