//! Payments that were started.

use aws_sdk_dynamodb::types::AttributeValue;

use super::LATER;
use super::corruption::{Change, Corruptions, Item, Snapshot, number, text, with};
use super::fixture::Numbers;

fn attempts(states: &[(u8, &str)]) -> AttributeValue {
    let attempt = |(of_order, state): &(u8, &str)| {
        let attributes = [("number", number(of_order)), ("state", text(state))];
        AttributeValue::M(with(Item::new(), attributes))
    };
    AttributeValue::L(states.iter().map(attempt).collect())
}

/// The rule `attempts`.
pub(super) fn wrong_attempts(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, pending, .. } = orders;
    let put = |order, all| Change::Put("orders", with(snapshot.order(order), all));
    vec![
        (
            Change::Put(
                "orders",
                with(
                    snapshot.order(*paid),
                    [
                        ("attempts", attempts(&[(1, "closed"), (2, "open")])),
                        ("changed_ms", number(LATER.plus_seconds(-400).ms())),
                    ],
                ),
            ),
            vec![format!("attempts g1: order {paid} is paid and has payment [2] open")],
        ),
        (
            put(*pending, [("attempts", attempts(&[(1, "open"), (2, "open")]))]),
            vec![format!("attempts g1: order {pending} has payments [1, 2] open at once")],
        ),
        (
            put(*pending, [("attempts", attempts(&[(2, "closed")]))]),
            vec![format!("attempts g1: order {pending} has started payments [2]")],
        ),
        (
            put(*paid, [("paid_attempt", number(1))]),
            vec![format!(
                "attempts g1: order {paid} was paid by payment 1, which was never started"
            )],
        ),
    ]
}
