//! The ports: traits for everything that the flows need from outside. Redis has the seats and the gate, DynamoDB
//! the orders and the catalogue, SQS the queues; then the payment provider, and for a waiting room its own table
//! and the beacon.
//!
//! The flows are generic over the ports, so that the very code that runs in Lambda runs against the
//! pure models in a simulator. Implementations write `async fn`; the futures must be `Send`.

// Others read it without its code: each public item says what it is.
#![warn(missing_docs)]

pub mod messages;
pub mod methods;

mod accounts;
mod bills;
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
pub use bills::{Bills, TakeBills};
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
pub use room_board::{Board, BoardPorts, Shown};
pub use rooms::{AppendReply, Beacon, MembershipPage, RoomPorts, Rooms};
pub use seats::{InventoryCounts, MAX_REQUEST_ARGUMENTS, Seats};
pub use subscribers::{MAX_WAITING_CHANGES, Receiver, Subscriptions, TakeReply, Waiting};

/// Why a store did not answer. The texts are for the log, never for a reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StoreError {
    /// The call changed nothing: the caller may repeat it later.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The reply was lost, so the call may have changed something: the caller repeats it with the same number.
    #[error("outcome unknown: {0}")]
    Unknown(String),
    /// The call was not made, because the limit on calls to a provider is used up. The caller may repeat it after
    /// this many seconds, as other callers will: a wait, and no fault.
    #[error("the limit on calls is used up for {0} s")]
    Limited(u32),
    /// The engine has a bug, or the store holds data that only the engine writes and that it never writes so.
    /// Repeating the call does not help.
    #[error("contract broken: {0}")]
    Contract(String),
}

impl StoreError {
    /// [`StoreError::Contract`] with the text of an error of the domain.
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

/// The answer of a store: a value, or the reason why there is none.
pub type Stored<T> = Result<T, StoreError>;

/// What a flow gets: every port but those of a waiting room ([`RoomPorts`]), and the deployment's settings for
/// their use.
pub trait Ports: Send + Sync {
    /// The inventories of seats in Redis.
    type Seats: Seats;
    /// The admission gates in Redis.
    type Gate: Gate;
    /// The orders in DynamoDB.
    type Orders: Orders;
    /// The catalogue of sales in DynamoDB.
    type Catalogue: Catalogue;
    /// The queues in SQS.
    type Queue: Queue;
    /// The payment providers of the deployment, as one.
    type Provider: Provider;
    /// The cursors in DynamoDB: how far each provider's list of captures was read.
    type Cursors: Cursors;

    /// The inventories of seats in Redis.
    fn seats(&self) -> &Self::Seats;
    /// The admission gates in Redis.
    fn gate(&self) -> &Self::Gate;
    /// The orders in DynamoDB.
    fn orders(&self) -> &Self::Orders;
    /// The catalogue of sales in DynamoDB.
    fn catalogue(&self) -> &Self::Catalogue;
    /// The queues in SQS.
    fn queue(&self) -> &Self::Queue;
    /// The payment providers of the deployment, as one.
    fn provider(&self) -> &Self::Provider;
    /// The cursors in DynamoDB: how far each provider's list of captures was read.
    fn cursors(&self) -> &Self::Cursors;
    /// The time that an unpaid order stays pending past its deadline: 0 to 3,600 seconds.
    fn grace(&self) -> Grace;
    /// The most that one part of a load carries. Only tests that cut loads off choose a smaller one than
    /// [`PartLimit::STANDARD`].
    fn part_limit(&self) -> PartLimit {
        PartLimit::STANDARD
    }
    /// The providers that the engine can ask for captures, each with the lag of its list if it has one.
    fn listings(&self) -> Vec<Listing>;
    /// The providers at which the engine can start payments.
    fn offers(&self) -> Vec<Offer>;
    /// True if others than this engine also start payments of its orders. An order without an open attempt may
    /// then have been paid all the same, so the engine asks the order's providers before it ends the order.
    fn started_elsewhere(&self) -> bool;
}
