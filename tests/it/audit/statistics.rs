//! I6: statistics.

use aws_sdk_dynamodb::types::AttributeValue;

use super::corruption::{Change, Corruptions, Item, Snapshot, named, number, text, with, without};
use super::fixture::Numbers;

/// I6.
pub(super) fn wrong_statistics(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, quick, .. } = orders;
    let is_counter = |item: &&Item| matches!(item.get("sk"), Some(AttributeValue::S(sk)) if sk.starts_with("counter#a#"));
    let counter = snapshot.tables["sales"].iter().find(is_counter).unwrap().clone();
    vec![
        (
            Change::Put("sales", with(counter.clone(), [("tickets", number(9))])),
            named(["I6 g1: tier a counts 9 tickets for 200 but its paid orders are 4 for 200"]),
        ),
        (
            Change::Delete("sales", counter.clone()),
            named(["I6 g1: tier a counts 0 tickets for 0 but its paid orders are 4 for 200"]),
        ),
        (
            Change::Put("sales", with(counter, [("sk", text("counter#ga#3"))])),
            named(["I6 g1: tier ga counts 4 tickets for 200 but its paid orders are 0 for 0"]),
        ),
        (
            Change::Put("orders", without(snapshot.order(*paid), ["synced"])),
            vec![format!("I6 g1: order {paid} is paid but not counted")],
        ),
        (
            // Paid and counted, and yet cancelled.
            Change::Put("orders", with(snapshot.order(*quick), [("state", text("cancelled"))])),
            vec![
                format!(
                    "I2 g1: seat A3 of tier a on leg 0 is claimed by order {quick}, which is cancelled"
                ),
                "I3 g1: buyer dora has 0 tickets in live orders but a count of 1".to_owned(),
                "I4 g1: seat A3 of tier a on leg 0 is sold in Redis but no paid order has it"
                    .to_owned(),
                format!("I5 g1: order {quick} is cancelled but names payment stripe pi_quick"),
                format!(
                    "I5 g1: payment stripe pi_quick for order {quick} was accepted but its order is cancelled"
                ),
                format!("I6 g1: order {quick} is counted but cancelled"),
                "I6 g1: tier a counts 4 tickets for 200 but its paid orders are 3 for 150"
                    .to_owned(),
            ],
        ),
    ]
}
