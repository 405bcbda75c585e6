//! What the flows need from outside, as traits: the seats in Redis, the gate, the orders and the
//! catalogue in DynamoDB, the queues, the payment provider; for a waiting room its own table and the beacon.
//!
//! The flows are generic over these, so that the very code that runs in Lambda runs against the
//! pure models in a simulator. Implementations write `async fn`; the futures must be `Send`.

pub mod messages;
pub mod methods;

mod accounts;
mod catalogue;
mod cursors;
mod gate;
mod log;
mod orders;
mod provider;
mod queue;
mod room_board;
mod rooms;
mod seats;
mod subscribers;

use crate::domain::inventory::PartLimit;
use crate::domain::payment::captures::Listing;
use crate::domain::payment::grace::Grace;
use crate::domain::payment::start::Offer;

pub use accounts::{Accounts, PostReply, SeenAccount};
pub use catalogue::{
    Catalogue, Freshness, ListedSale, ListedTerms, Published, SalesPage, TOKEN_SNAPSHOTS_DAYS,
};
pub use cursors::{CursorReply, Cursors};
pub use gate::Gate;
pub use log::Log;
pub use orders::{
    BlockClaims, ChangeReply, Claim, CreateReply, DUE_SHARDS, Due, FOLLOW_UP_SECONDS,
    MAX_TRANSACTION_ITEMS, Orders, Page, SEATS_PER_BLOCK, SettleReply, Settlement, block_of,
    due_shard,
};
pub use provider::Provider;
pub use queue::{LONGEST_DELAY_SECONDS, Queue, delay_seconds};
pub use room_board::{Asked, Board, BoardPorts, Came, Shown};
pub use rooms::{AppendReply, Beacon, MembershipPage, RoomPorts, Rooms};
pub use seats::{InventoryCounts, MAX_REQUEST_ARGUMENTS, Seats};
pub use subscribers::{MAX_WAITING_CHANGES, Receiver, Subscriptions, TakeReply, Waiting};

/// Why a store did not answer. The texts are for the log, never for a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StoreError {
    /// It did not happen: ask again later.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// It may have happened: ask again with the same number.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// It did not happen: the limit on calls to a provider is used up. Ask again after these seconds,
    /// with others: it is a wait, and no fault.
    #[error("the limit on calls is used up for {0} s")]
    Limited(u32),
    /// Our own bug, or data that nobody but us writes and that is not what we write.
    #[error("contract broken: {0}")]
    Contract(String),
}

impl StoreError {
    /// Our own bug, as an error of the domain says it.
    #[must_use]
    pub fn contract(error: impl std::fmt::Display) -> Self {
        Self::Contract(error.to_string())
    }

    /// True if the same call may succeed later.
    #[must_use]
    pub fn retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Unknown(_) | Self::Limited(_) => true,
            Self::Contract(_) => false,
        }
    }
}

/// The answer of a store.
pub type Stored<T> = Result<T, StoreError>;

/// All ports at once but those of a waiting room ([`RoomPorts`]), and what the deployment decides about their
/// use: what a flow is given.
pub trait Ports: Send + Sync {
    /// The inventory.
    type Seats: Seats;
    /// The gate.
    type Gate: Gate;
    /// The orders.
    type Orders: Orders;
    /// The catalogue.
    type Catalogue: Catalogue;
    /// The queues.
    type Queue: Queue;
    /// The payment provider.
    type Provider: Provider;
    /// How far the providers' lists were read.
    type Cursors: Cursors;

    /// The inventory.
    fn seats(&self) -> &Self::Seats;
    /// The gate.
    fn gate(&self) -> &Self::Gate;
    /// The orders.
    fn orders(&self) -> &Self::Orders;
    /// The catalogue.
    fn catalogue(&self) -> &Self::Catalogue;
    /// The queues.
    fn queue(&self) -> &Self::Queue;
    /// The payment provider.
    fn provider(&self) -> &Self::Provider;
    /// How far the providers' lists were read.
    fn cursors(&self) -> &Self::Cursors;
    /// How long an unpaid order waits past its deadline.
    fn grace(&self) -> Grace;
    /// How much one part of a load carries; smaller only where loads shall be cut off.
    fn part_limit(&self) -> PartLimit {
        PartLimit::STANDARD
    }
    /// The providers that can be asked, each with the lag of its list if it has one.
    fn listings(&self) -> Vec<Listing>;
    /// The providers by which payments can be started.
    fn offers(&self) -> Vec<Offer>;
    /// True if orders are also paid by payments that were not started here: then an order without an open
    /// attempt may have been paid all the same, and its providers are asked before it ends.
    fn started_elsewhere(&self) -> bool;
}
