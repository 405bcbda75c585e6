//! The engine's adapters over the audited stores.

use engine::domain::payment::captures::Listing;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::Offer;
use engine::ports::messages::QueueMessage;
use engine::ports::{Ports, Queue, Stored};
use shared::dynamodb::{DynamoCatalogue, DynamoCursors, DynamoOrders};
use shared::providers::Providers;
use shared::redis::{RedisGate, RedisSeats};

/// The engine's adapters, with queues that lose everything: what a message would bring about, the
/// test does itself.
pub(super) struct Engine {
    pub(super) seats: RedisSeats,
    pub(super) gate: RedisGate,
    pub(super) orders: DynamoOrders,
    pub(super) catalogue: DynamoCatalogue,
    pub(super) queue: Nowhere,
    pub(super) provider: Providers,
    pub(super) cursors: DynamoCursors,
}

pub(super) struct Nowhere;

impl Queue for Nowhere {
    async fn send(&self, _: &QueueMessage, _: Option<i32>) -> Stored<()> {
        Ok(())
    }
}

impl Ports for Engine {
    type Seats = RedisSeats;
    type Gate = RedisGate;
    type Orders = DynamoOrders;
    type Catalogue = DynamoCatalogue;
    type Queue = Nowhere;
    type Provider = Providers;
    type Cursors = DynamoCursors;

    fn seats(&self) -> &RedisSeats {
        &self.seats
    }
    fn gate(&self) -> &RedisGate {
        &self.gate
    }
    fn orders(&self) -> &DynamoOrders {
        &self.orders
    }
    fn catalogue(&self) -> &DynamoCatalogue {
        &self.catalogue
    }
    fn queue(&self) -> &Nowhere {
        &self.queue
    }
    fn provider(&self) -> &Providers {
        &self.provider
    }
    fn cursors(&self) -> &DynamoCursors {
        &self.cursors
    }
    fn grace(&self) -> Grace {
        Grace::NONE
    }
    fn listings(&self) -> Vec<Listing> {
        Vec::new()
    }
    fn offers(&self) -> Vec<Offer> {
        self.provider.offers()
    }
    fn started_elsewhere(&self) -> bool {
        true
    }
}
