//! All of it in one value.

use std::collections::BTreeMap;

use engine::domain::admission::gate::GateShard;
use engine::domain::basics::ids::SaleId;

use crate::board::BoardModel;
use crate::catalogue::CatalogueModel;
use crate::cursors::CursorsModel;
use crate::orders::OrdersModel;
use crate::provider::ProviderModel;
use crate::queues::QueuesModel;
use crate::rooms::{BeaconModel, RoomsModel};
use crate::seats::SeatsModel;

/// Everything that outlives a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Stores {
    /// The inventory, in Redis.
    pub seats: SeatsModel,
    /// The shards of the gates, in Redis.
    pub gate: BTreeMap<(SaleId, u16), GateShard>,
    /// The orders, in DynamoDB.
    pub orders: OrdersModel,
    /// The catalogue, in DynamoDB.
    pub catalogue: CatalogueModel,
    pub queues: QueuesModel,
    pub provider: ProviderModel,
    /// How far its list of captures was read, in DynamoDB.
    pub cursors: CursorsModel,
    /// The waiting rooms, in DynamoDB.
    pub rooms: RoomsModel,
    /// The beacon of their draws.
    pub beacon: BeaconModel,
    /// Their boards, in Redis.
    pub boards: BTreeMap<SaleId, BoardModel>,
}

impl Stores {
    /// The board of a room.
    pub fn board(&mut self, sale: &SaleId) -> &mut BoardModel {
        self.boards.entry(sale.clone()).or_default()
    }

    /// Redis loses everything it knows.
    pub fn lose_redis(&mut self) {
        self.seats = SeatsModel::default();
        self.gate.clear();
        self.boards.clear();
    }
}
