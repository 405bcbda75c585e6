//! The adapter to DynamoDB, whose items decide wherever stores differ: the orders with their claims, the catalogue of
//! sales, the cursors and turns of payment providers, and the waiting rooms.
//!
//! [`tables`] names tables, keys and indexes in one place; [`DynamoOrders`], [`DynamoCatalogue`],
//! [`DynamoCursors`] and [`DynamoRooms`] implement the ports over a shared [`Dynamo`]. `docs/tables.md` describes
//! every item.

pub mod tables;
mod told;

mod bills;
mod calls;
mod catalogue;
mod codes;
mod cursors;
mod dynamo;
mod erase_places;
pub(crate) mod errors;
mod expressions;
mod items;
mod lease;
mod ledger;
mod log;
mod operators;
mod orders;
mod rooms;
mod rules;
mod subscriptions;
mod transaction;
mod webhooks;

pub use bills::{DIFFERENCES_DAYS, DynamoBills, MAX_READ};
pub use calls::DynamoCalls;
pub use catalogue::{DynamoCatalogue, train_call_item};
pub use codes::CodeCounts;
pub use cursors::DynamoCursors;
pub use dynamo::{DEFAULT_CATALOGUE_BYTES, Dynamo, StoreConfig};
pub use erase_places::ErasedPlaces;
pub use ledger::{AccountSum, DynamoLedger};
pub use log::{ALL_TIME, DynamoLog};
pub use operators::{
    ACTIONS_DAYS, ActionsPage, DisputedPage, DisputedPayment, DynamoOperators, KeptAction, Overdue,
    UnmatchedPage,
};
pub use orders::{DynamoOrders, Erased, Selection};
pub use rooms::{DynamoRooms, membership_item};
pub use rules::{AddReply, DynamoRules, RemoveReply};
pub use subscriptions::{DynamoSubscriptions, ShardState};
pub use tables::{Tables, create_tables, is_mark};
pub use webhooks::DynamoWebhooks;
