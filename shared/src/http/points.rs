//! The reply of a buyer's points.

use schemars::JsonSchema;
use serde::Serialize;

use engine::domain::basics::number::OrderNumber;
use engine::domain::ledger::points::{Award, Points, PointsStatement};

/// Most orders that are shown: the newest.
pub const MAX_ORDERS: usize = 100;

/// What the buyer has of points and growth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PointsReply {
    /// The points.
    pub points: u64,
    /// The growth.
    pub growth: u64,
    /// What orders have given, newest first.
    #[schemars(length(max = MAX_ORDERS))]
    pub orders: Vec<OrderPointsReply>,
}

/// What an order has given, without what was taken back with its refunds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OrderPointsReply {
    /// The order.
    pub order: OrderNumber,
    /// The points.
    pub points: u64,
    /// The growth.
    pub growth: u64,
}

impl From<&PointsStatement> for PointsReply {
    fn from(statement: &PointsStatement) -> Self {
        let gave = |(_, award): &(_, &Award)| award.given != Points::default();
        let newest = statement.awards.iter().rev().filter(gave).take(MAX_ORDERS);
        let orders = newest.map(|(order, award)| OrderPointsReply {
            order: *order,
            points: award.given.points,
            growth: award.given.growth,
        });
        let has = statement.has;
        Self { points: has.points, growth: has.growth, orders: orders.collect() }
    }
}
