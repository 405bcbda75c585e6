//! I7: orders that pend too long.

use aws_sdk_dynamodb::types::AttributeValue;

use super::LATER;
use super::corruption::{Change, Corruptions, Snapshot, number, redis, with, without};
use super::fixture::Numbers;

pub(super) fn wrong_orders(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let pending = &orders.pending;
    let order = snapshot.order(*pending);
    let past = LATER.plus_seconds(-241);
    let ms = past.ms().to_string();
    let AttributeValue::S(fingerprint) = &order["content"] else { panic!("no content") };
    let record = format!("{ms}|{fingerprint}|1|ga,1,2,0|bob");
    vec![
        (
            Change::All(vec![
                redis(["HSET", "{g1}:sale", &pending.to_string(), &record]),
                redis(["ZADD", "{g1}:due", &ms, &pending.to_string()]),
                Change::Put(
                    "orders",
                    with(order.clone(), [("pay_by_ms", number(&ms)), ("due_ms", number(&ms))]),
                ),
            ]),
            vec![format!("I7 g1: order {pending} is pending 241 s after its deadline of {past}")],
        ),
        (
            Change::Put("orders", without(order, ["due_shard"])),
            vec![format!(
                "I7 g1: order {pending} is pending but the index of due work does not have its deadline"
            )],
        ),
    ]
}
