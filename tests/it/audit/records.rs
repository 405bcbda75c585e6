//! Records that nobody can read, or that nobody finds.

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::number::OrderNumber;

use super::corruption::{Change, Corruptions, Snapshot, named, redis, text, with, without};
use super::fixture::Numbers;
use super::sales::about;

/// Records that nobody can read, or that nobody finds.
pub(super) fn wrong_records(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { cancelled, tombstone, .. } = orders;
    let kept = about().hash();
    let document = snapshot.item("sales", Some(&format!("#attachment#{kept}")), "attachment");
    let missing =
        format!("records g1: item g1/sale of table sales names {kept}, which is not kept");
    let at =
        |order: &OrderNumber| format!("item {}/order#{order} of table orders", order.gene().get());
    vec![
        (Change::Delete("sales", document.clone()), vec![missing.clone()]),
        (
            Change::Put(
                "sales",
                with(document, [("data", AttributeValue::B(b"{ }".to_vec().into()))]),
            ),
            vec![
                missing,
                format!(
                    "records item #attachment#{kept}/attachment of table sales has other bytes"
                ),
            ],
        ),
        (
            Change::Put("orders", with(snapshot.order(*tombstone), [("state", text("lost"))])),
            vec![format!("records g1: {} has state lost", at(tombstone))],
        ),
        (
            Change::Put("orders", without(snapshot.order(*cancelled), ["by_user"])),
            vec![format!("records g1: {} is not among its buyer's orders", at(cancelled))],
        ),
        (
            Change::Put("orders", with(snapshot.order(*tombstone), [("sale", text("nowhere"))])),
            vec![format!(
                "records nowhere: {} is of sale nowhere, which is not in the catalogue",
                at(tombstone)
            )],
        ),
        (
            Change::Delete("sales", snapshot.item("sales", Some("#sales"), "g1")),
            named(["records g1: item g1/sale of table sales is not in the list of sales"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "@zoe", "many"]),
            named(["records g1: entry \"zoe\" of Redis key {g1}:sale is \"many\""]),
        ),
        (
            redis(["HSET", "{g1}:sale", "7", "nonsense"]),
            named(["records g1: entry \"7\" of Redis key {g1}:sale is \"nonsense\""]),
        ),
    ]
}
