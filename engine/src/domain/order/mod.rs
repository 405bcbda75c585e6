//! The order and its records. The decisions that change an order are in later modules.
//!
//! An [`Order`] has [lines](OrderLine) of [tickets](Ticket), [attempts](attempt) at paying it and [places](place) to
//! start one, one
//! [payment](PaymentRecord) with its [disputes](dispute), [refunds](order_refund), and a [`fact`] for every change. A
//! record knows its name, its text form, and which of its states may follow which. The files of this room import each
//! other.
//!
//! Builds on [`basics`](super::basics), [`sale`](super::sale), [`inventory`](super::inventory) and
//! [`admission`](super::admission).

mod aggregate;
pub mod attempt;
pub mod attendee;
mod capture;
pub mod dispute;
pub mod exchange;
pub mod fact;
mod lines;
pub mod order_refund;
pub mod place;
pub mod refund;
pub mod requested;
mod state;

pub use aggregate::{FOLLOW_UP_SECONDS, Order};
pub use capture::{Capture, Captured, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason};
pub use lines::{CheckIn, InvalidIssue, Issue, OrderLine, Ticket, TicketName};
pub use state::{OrderEvent, OrderState, transition};
