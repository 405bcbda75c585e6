//! The limits of one order.

/// Most lines of an order.
pub const MAX_LINES_PER_ORDER: usize = 4;
/// Most seats of an order: with its claims, its count and its attendees it must fit one
/// DynamoDB transaction of 100 items.
pub const MAX_SEATS_PER_ORDER: usize = 10;
