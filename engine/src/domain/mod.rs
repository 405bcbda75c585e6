//! The pure core: rules without Redis, DynamoDB, SQS or HTTP. Time and randomness are arguments.

pub mod archive;
pub mod attendee;
pub mod bitmap;
pub mod call_rate;
pub mod capacity;
pub mod captures;
pub mod choice;
pub mod gate;
pub mod grace;
pub mod guard;
pub mod ids;
pub mod inventory;
pub mod layout;
pub mod money;
pub mod number;
pub mod order;
pub mod payment;
pub mod places;
pub mod refund;
pub mod requested;
pub mod room;
mod row_range;
pub mod sale;
pub mod sections;
pub mod tickets;
pub mod time;
