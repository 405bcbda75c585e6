//! The engine's adapters over the audited stores.

use engine::domain::grace::Grace;
use engine::domain::ids::SaleId;
use engine::domain::number::OrderNumber;
use engine::domain::order::PaymentRecord;
use engine::domain::time::Timestamp;
use engine::ports::{Ports, Queue, Stored};
use engine::{port_argument, port_methods};
use shared::dynamodb::{DynamoCatalogue, DynamoOrders};
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
}

pub(super) struct Nowhere;

macro_rules! lose {
    (for $port:ident; $($trait:ident by $accessor:ident { $(
        $variant:ident: $name:ident($($args:tt)*) -> $reply:ty;
    )* })*) => {
        $($(lose_one! { $trait $name($($args)*) -> $reply })*)*
    };
}
macro_rules! lose_one {
    (Queue $name:ident($($how:ident $arg:ident: $type:ty),*) -> $reply:ty) => {
        async fn $name(&self, $(_: port_argument!($how $type)),*) -> Stored<$reply> {
            Ok(())
        }
    };
    ($($of_another_port:tt)*) => {};
}

impl Queue for Nowhere {
    port_methods!(lose for Queue);
}

impl Ports for Engine {
    type Seats = RedisSeats;
    type Gate = RedisGate;
    type Orders = DynamoOrders;
    type Catalogue = DynamoCatalogue;
    type Queue = Nowhere;
    type Provider = Providers;

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
    fn grace(&self) -> Grace {
        Grace::NONE
    }
}
