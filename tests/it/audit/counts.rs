//! I3: counts of buyers.

use super::corruption::{Change, Corruptions, Snapshot, named, number, redis, with};
use super::fixture::Numbers;

/// I3, with what Redis makes of it.
pub(super) fn wrong_counts(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let alice = snapshot.item("orders", None, "buyer#g1#alice");
    let uncounted =
        format!("I3 g1: order {} names 2 people who are not counted for its buyer", orders.paid);
    vec![
        (
            Change::Put("orders", with(alice.clone(), [("tickets", number(1))])),
            named([
                "I3 g1: buyer alice has 2 tickets in live orders but a count of 1",
                "I4 g1: buyer alice has bought 2 in Redis but has a count of 1",
            ]),
        ),
        (
            Change::All(vec![
                Change::Delete("orders", alice.clone()),
                redis(["HDEL", "{g1}:sale", "@alice"]),
            ]),
            vec![
                uncounted,
                "I3 g1: buyer alice has 2 tickets in live orders but a count of 0".to_owned(),
            ],
        ),
        (
            Change::Put("orders", with(alice, [("gene", number(5))])),
            named([
                "I3 g1: buyer alice has 2 tickets in live orders but a count of 4",
                "I4 g1: buyer alice has bought 2 in Redis but has a count of 4",
                "records g1: item 5/buyer#g1#alice of table orders belongs in partition 175",
            ]),
        ),
    ]
}
