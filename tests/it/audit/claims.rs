//! I1 and I2: claims and live orders.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::corruption::{Change, Corruptions, Snapshot, number, text, with, without};
use super::fixture::Numbers;

/// The hash of an attendee, as the fixture makes it.
fn hash_of(name: &str) -> String {
    model_stores::attendee(name).hashes[0].to_string()
}

/// I1 and I2, with what Redis makes of it.
pub(super) fn wrong_claims(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, pending, cancelled, .. } = orders;
    let (a1, spot) = (snapshot.seat("a", 0), snapshot.seat("ga", 0));
    let attendee = snapshot.item("orders", None, &format!("attendee#g1#{}", hash_of("p")));
    let p = hash_of("p");
    vec![
        (
            // Both orders name A1 on leg 1, and their claims lie in two blocks.
            Change::All(vec![
                Change::Put("orders", {
                    let mut order = snapshot.order(*pending);
                    let line = AttributeValue::M(with(HashMap::new(), [
                        ("tier", text("a")),
                        ("from", number(1)),
                        ("to", number(2)),
                        ("price_minor", number(20)),
                        ("tickets", AttributeValue::L(vec![AttributeValue::M(with(
                            HashMap::new(),
                            [("seat", number(0)), ("name", text("A1"))],
                        ))])),
                    ]));
                    order.insert("lines".to_owned(), AttributeValue::L(vec![line]));
                    order
                }),
                Change::Put("seats", without(spot.clone(), ["l1"])),
                Change::Put("seats", with(HashMap::new(), [
                    ("pk", text("g1#a#1")),
("sk", number(0)),
                    ("l1", text(pending)),
                ])),
            ]),
            vec![
                format!("I1 g1: seat A1 of tier a on leg 1 is claimed by orders {paid}, {pending}"),
                format!("I1 g1: seat A1 of tier a on leg 1 is in live orders {paid}, {pending}"),
                "I4 g1: seat ga-1 of tier ga on leg 1 is taken in Redis but nobody claims it".to_owned(),
                format!("I4 g1: order {pending} holds other seats in Redis than it claims"),
                "records g1: item g1#a#1/0 of table seats is in another block than its seat's".to_owned(),
            ],
        ),
        (
            Change::Put("seats", without(spot.clone(), ["l1"])),
            vec![
                format!("I2 g1: seat ga-1 of tier ga on leg 1 is in live order {pending} but nobody claims it"),
                "I4 g1: seat ga-1 of tier ga on leg 1 is taken in Redis but nobody claims it".to_owned(),
            ],
        ),
        (
            Change::Put("seats", with(spot.clone(), [("l0", text(cancelled))])),
            vec![
                format!("I2 g1: seat ga-1 of tier ga on leg 0 is claimed by order {cancelled}, which is cancelled"),
                "I4 g1: seat ga-1 of tier ga on leg 0 is not taken in Redis but is claimed".to_owned(),
            ],
        ),
        (
            Change::Put("seats", with(a1.clone(), [("l1", text(pending))])),
            vec![
                format!("I2 g1: seat A1 of tier a on leg 1 is claimed by order {pending}, which does not have it"),
                format!("I2 g1: seat A1 of tier a on leg 1 is in live order {paid} but is claimed by {pending}"),
            ],
        ),
        (
            Change::Put("seats", with(a1, [("l1", text(7))])),
            vec![
                "I2 g1: seat A1 of tier a on leg 1 is claimed by order 7, which does not exist in this sale".to_owned(),
                format!("I2 g1: seat A1 of tier a on leg 1 is in live order {paid} but is claimed by 7"),
            ],
        ),
        (
            Change::Delete("orders", attendee.clone()),
            vec![format!("I2 g1: attendee {p} is named by live order {paid} without a claim")],
        ),
        (
            Change::Put("orders", with(attendee, [("order", text(pending))])),
            vec![
                format!("I2 g1: attendee {p} is claimed by order {pending}, which does not name them"),
                format!("I2 g1: attendee {p} is named by live order {paid} without a claim"),
            ],
        ),
    ]
}
