//! I6: statistics.

use aws_sdk_dynamodb::types::AttributeValue;

use super::corruption::{Change, Corruptions, Item, Snapshot, number, text, with};
use super::fixture::Numbers;

pub(super) fn wrong_statistics(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, quick, .. } = orders;
    let is_counter = |item: &&Item| matches!(item.get("sk"), Some(AttributeValue::S(sk)) if sk.starts_with("counter#a#"));
    let counters = snapshot.tables["sales"].iter().filter(is_counter);
    // A counter has as many parts as batches chose: each is wrong by itself.
    let counter = counters.clone().next().unwrap().clone();
    let of = |name: &str| counter[name].as_n().unwrap().parse::<i64>().unwrap();
    let (tickets, revenue) = (of("tickets"), of("revenue_minor"));
    let wrong = |tickets: i64, revenue: i64| {
        format!(
            "I6 g1: tier a counts {tickets} tickets for {revenue} but its paid orders are 4 for 200"
        )
    };
    vec![
        (
            Change::Put("sales", with(counter.clone(), [("tickets", number(9))])),
            vec![wrong(4 - tickets + 9, 200)],
        ),
        (Change::Delete("sales", counter.clone()), vec![wrong(4 - tickets, 200 - revenue)]),
        (
            Change::Put("sales", with(counter, [("sk", text("counter#ga#3"))])),
            vec![format!(
                "I6 g1: tier ga counts {tickets} tickets for {revenue} but its paid orders are 0 for 0"
            )],
        ),
        (
            Change::Put("orders", with(snapshot.order(*paid), [("settled", number(1))])),
            vec![
                format!("I6 g1: order {paid} is paid but not counted"),
                format!(
                    "I10 g1: order {paid} has settled 1 of [made, paid, capture_refused] and the log \
                     says [1 made, 2 paid, 3 capture_refused]"
                ),
                "I10 g1: the sale has 100 EUR booked from provider:stripe to owed as unowned, and its orders tell 0"
                    .to_owned(),
                "I10 g1: the sale has 191 EUR booked from provider:stripe to merchant:rail:g1 as sale, and its orders tell 96"
                    .to_owned(),
                "I10 g1: the sale has 9 EUR booked from provider:stripe to fees as commission, and its orders tell 4"
                    .to_owned(),
            ],
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
