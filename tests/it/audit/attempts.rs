//! Payments that were started, and money that comes by what nobody has (I14).

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

/// What keeps an order's rule `attempts`, and one attempt of it that nobody has.
fn unhanded() -> AttributeValue {
    let attributes = [
        ("number", number(1)),
        ("state", text("closed")),
        ("named_first", AttributeValue::Bool(true)),
    ];
    AttributeValue::L(vec![AttributeValue::M(with(Item::new(), attributes))])
}

/// The rule I14.
pub(super) fn wrong_steps(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, .. } = orders;
    let put = |all| Change::Put("orders", with(snapshot.order(*paid), all));
    let payment =
        with(snapshot.item("orders", None, "payment#stripe#pi_1"), [("attempt", number(1))]);
    let step = AttributeValue::M(with(Item::new(), [("1", text("https://pay.example/1"))]));
    vec![
        (
            Change::All(vec![put([("attempts", unhanded())]), Change::Put("orders", payment)]),
            vec![format!(
                "I14 payment stripe pi_1 for order {paid} of 100 EUR came by payment 1, which nobody has"
            )],
        ),
        (
            put([("steps", step)]),
            vec![format!("I14 g1: order {paid} is paid and keeps the steps of payments [1]")],
        ),
    ]
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
