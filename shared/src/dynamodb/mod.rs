//! What is right, in DynamoDB: the orders with their claims, and the catalogue of sales.
//!
//! [`tables`] names tables, keys and indexes in one place; [`DynamoOrders`] and
//! [`DynamoCatalogue`] implement the ports over a shared [`Dynamo`]. `docs/tables.md` describes
//! every item.

pub mod tables;

mod catalogue;
mod dynamo;
pub(crate) mod errors;
mod expressions;
mod items;
mod orders;
mod transaction;

pub use catalogue::DynamoCatalogue;
pub use dynamo::{Dynamo, StoreConfig};
pub use orders::DynamoOrders;
pub use tables::{Tables, create_tables};
