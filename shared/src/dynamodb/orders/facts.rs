//! The facts of an order: each change of an order appends its fact in the same write, and settling marks facts under
//! the condition that none was added since they were read.

use aws_sdk_dynamodb::types::AttributeValue;

use crate::dynamodb::expressions::Value;
use crate::dynamodb::items::number;
use crate::dynamodb::told::fact_value;
use engine::domain::order::Order;
use engine::domain::order::fact::Facts;
use engine::ports::{StoreError, Stored};

/// The part of a `SET` that appends a fact to those of an order.
pub(super) const APPEND: &str = "#facts = list_append(#facts, :fact)";
/// The condition that an order has these facts, as far settled.
pub(super) const FACTS_SEEN: &str = "size(#facts) = :known AND #settled = :settled";

/// What [`APPEND`] appends: the last fact of the order as it shall be.
pub(super) fn appended(order: &Order) -> Stored<Value> {
    let nothing = || StoreError::Contract(format!("order {}: changes untold", order.number));
    let last = order.facts.all.last().ok_or_else(nothing)?;
    Ok(("fact", AttributeValue::L(vec![fact_value(last)])))
}

/// What [`FACTS_SEEN`] compares with.
pub(super) fn facts_seen(facts: &Facts) -> [Value; 2] {
    [("known", number(facts.count())), ("settled", number(facts.settled))]
}
