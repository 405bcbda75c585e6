//! I11: refunds of paid orders.

use aws_sdk_dynamodb::types::AttributeValue;

use engine::domain::basics::number::OrderNumber;

use super::corruption::{Change, Corruptions, Item, Snapshot, number, text, with, without};
use super::fixture::Numbers;

/// What makes an item due.
const DUE: [&str; 2] = ["due_ms", "due_shard"];

/// A difference of a bill that tells of a refund of an order's payment.
fn billed(order: OrderNumber) -> Item {
    let item = [
        ("pk", text("#bills#stripe")),
        ("sk", text("2026-11-25#unknown_refund#re_9")),
        ("bill_day", number(20_782)),
        ("kind", text("unknown_refund")),
        ("id", text("re_9")),
        ("order", text(order)),
        ("payment", text("pi_hal")),
        ("amount_minor", number(70)),
        ("currency", text("EUR")),
        ("found_ms", number(1_800_000_000_000_i64)),
    ];
    item.map(|(name, value)| (name.to_owned(), value)).into()
}

/// I11 and I15, with what other rules make of it.
pub(super) fn wrong_refunds(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { returned, other, .. } = orders;
    let refund = snapshot.item("orders", None, &format!("refund#{returned}#01"));
    let of_state = refund.clone();
    let payment = snapshot.item("orders", None, "payment#stripe#pi_hal");
    let paid = format!("payment stripe pi_hal for order {returned}");
    let of = format!("refund 1 of order {returned}");
    vec![
        (
            Change::Delete("orders", refund.clone()),
            vec![
                format!("I11 show: order {returned} says it has 1 refunds, and has []"),
                format!("I11 show: order {returned} has tickets of refund 1, which is not there"),
                format!("I11 show: order {returned} tells refund_made of refunds [1], not []"),
                format!("I11 show: {paid} says that 70 goes back, its refunds come to 0"),
            ],
        ),
        (
            // Asked for once more than the payment knows of.
            Change::Put("orders", with(refund.clone(), [("amount_minor", number(71))])),
            vec![format!("I11 show: {paid} says that 70 goes back, its refunds come to 71")],
        ),
        (
            Change::All(vec![
                Change::Put("orders", with(refund.clone(), [("amount_minor", number(141))])),
                Change::Put("orders", with(payment, [("back_minor", number(141))])),
            ]),
            vec![format!("I11 show: {paid} of 140 EUR has refunds of 141")],
        ),
        (
            Change::Put("orders", with(refund.clone(), [("payment_id", text("pi_other"))])),
            vec![
                format!("I11 show: {paid} says that 70 goes back, its refunds come to 0"),
                format!("I11 show: {of} goes back of another payment than its order's"),
            ],
        ),
        (
            Change::Put(
                "orders",
                with(refund.clone(), [("tickets", AttributeValue::L(Vec::new()))]),
            ),
            vec![format!("I11 show: {of} names other tickets than those that bear its number")],
        ),
        (
            Change::Put("orders", without(refund, DUE)),
            vec![format!(
                "I11 show: {of} is due though its money is back, or not due though it is not"
            )],
        ),
        // I15: it says that the money is back, and its provider has sent nothing.
        (
            Change::Put(
                "orders",
                without(with(of_state.clone(), [("refund_state", text("refunded"))]), DUE),
            ),
            vec![
                format!("I11 show: order {returned} says that 0 refunds are back, and 1 are"),
                format!("I11 show: order {returned} tells refunded of refunds [], not [1]"),
                format!(
                    "I15 {paid} of 140 EUR went back by 0, and its refunds say 70 and 0 under way"
                ),
            ],
        ),
        // What a bill says, and no refund.
        (
            Change::Put("sales", billed(*returned)),
            vec![format!(
                "I15 {paid} went back by 70 EUR, says a bill (stripe 2026-11-25#unknown_refund#re_9), and no refund says so"
            )],
        ),
        // Paid otherwise it is none of the provider's, and owed again it waits for an operator.
        (
            Change::Put("orders", without(with(of_state, [("refund_state", text("settled"))]), DUE)),
            vec![
                format!("I11 show: order {returned} says that 0 refunds are back, and 1 are"),
                format!("I11 show: order {returned} tells refunded of refunds [], not [1]"),
            ],
        ),
        (
            Change::Put("orders", with(snapshot.order(*returned), [("refunds_back", number(1))])),
            vec![format!("I11 show: order {returned} says that 1 refunds are back, and 0 are")],
        ),
        (
            Change::Put(
                "orders",
                with(snapshot.order(*other), [("refunds", number(1)), ("refunds_back", number(0))]),
            ),
            vec![format!("I11 show: order {other} says it has 1 refunds, and has []")],
        ),
        (
            Change::Put("orders", with(snapshot.order(*returned), [("state", text("refunded"))])),
            vec![
                format!(
                    "I2 show: seat floor-2 of tier floor on leg 0 is claimed by order {returned}, which is refunded"
                ),
                "I3 show: buyer hal has 0 tickets in live orders but a count of 1".to_owned(),
                "I4 show: seat floor-2 of tier floor on leg 0 is sold in Redis but no paid order has it"
                    .to_owned(),
                format!(
                    "I11 show: order {returned} is refunded with 1 live tickets and 0 of 1 refunds back"
                ),
            ],
        ),
    ]
}
