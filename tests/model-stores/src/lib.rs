//! Pure models of what stands behind the ports: Redis, DynamoDB, SQS, the payment provider and the beacon, as
//! values that can be copied, compared and hashed.
//!
//! The simulator and the model checker run the production flows against these. They answer to the real
//! thing: `engine::domain::inventory` by the property test of the scripts, [`OrdersModel`] and
//! [`CatalogueModel`] by that of the store (`tests/it/store_model/`), [`AccountsModel`] by `tests/it/store/postings.rs`,
//! [`SubscriptionsModel`] by `tests/it/store/subscriptions.rs`, [`RoomsModel`] by the test that both
//! pass (`tests/it/store/rooms.rs`).

#![allow(clippy::too_many_lines, reason = "one arm a method is read at a glance")]

mod accounts;
mod board;
mod call;
mod catalogue;
mod cursors;
mod money;
mod orders;
mod people;
mod provider;
mod queues;
mod rooms;
mod seats;
mod seed;
pub mod size;
mod stored_seeds;
mod stores;
mod subscriptions;
mod tickets;

pub use accounts::AccountsModel;
pub use board::BoardModel;
pub use call::{Call, Caller, Driver, Effect, Reply};
pub use catalogue::{CatalogueModel, Listed};
pub use cursors::{CursorsModel, KeptCursor};
pub use money::{
    accounts_as_told, accounts_at_rest, points_as_given, points_at_rest, wallets_as_told,
};
pub use orders::{OrdersModel, Place};
pub use people::attendee;
pub use provider::{AtProvider, InList, ProviderModel};
pub use queues::{Message, QueuesModel, Sent};
pub use rooms::{BeaconModel, Counter, RoomsModel};
pub use seats::SeatsModel;
pub use seed::{seed_in, seed_of_commit};
pub use stored_seeds::StoredSeeds;
pub use stores::Stores;
pub use subscriptions::SubscriptionsModel;
