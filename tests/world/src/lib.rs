//! Pure models of what stands behind the ports: Redis, DynamoDB, SQS and the payment provider, as
//! values that can be copied, compared and hashed.
//!
//! The simulator and the model checker run the production flows against these.

mod call;
mod catalogue;
mod orders;
mod provider;
mod queues;
mod seats;
mod stores;

pub use call::{Call, Caller, Driver, Reply};
pub use catalogue::{CatalogueModel, Listed};
pub use orders::{OrdersModel, Place};
pub use provider::ProviderModel;
pub use queues::{Message, QueuesModel, Sent};
pub use seats::SeatsModel;
pub use stores::Stores;
