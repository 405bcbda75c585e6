//! I5: payments.

use engine::domain::basics::number::OrderNumber;

use super::corruption::{Change, Corruptions, Snapshot, number, text, with};
use super::fixture::Numbers;

pub(super) fn wrong_money(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, cancelled, late, unknown, .. } = orders;
    let item = |name: &str| snapshot.item("orders", None, &format!("payment#stripe#{name}"));
    let elsewhere = |order: &OrderNumber, name: &str| {
        with(
            item("pi_1"),
            [
                ("gene", number(order.gene().get())),
                ("sk", text(format!("payment#stripe#{name}"))),
                ("order", text(order)),
            ],
        )
    };
    let unasked = ("refund_state", text("due"));
    vec![
        (
            Change::Delete("orders", item("pi_1")),
            vec![format!("I5 g1: order {paid} is paid but has 0 accepted payments")],
        ),
        (
            Change::Put("orders", elsewhere(paid, "pi_2")),
            vec![
                format!("I5 g1: order {paid} is paid but has 2 accepted payments"),
                format!(
                    "I5 g1: payment stripe pi_2 for order {paid} was accepted but did not pay its order"
                ),
            ],
        ),
        (
            Change::Put("orders", with(item("pi_again"), [("outcome", text("accepted"))])),
            vec![
                format!("I5 g1: order {paid} is paid but has 2 accepted payments"),
                format!(
                    "I5 g1: payment stripe pi_again for order {paid} was accepted and yet goes back"
                ),
                format!(
                    "I5 g1: payment stripe pi_again for order {paid} was accepted but did not pay its order"
                ),
            ],
        ),
        (
            Change::Put(
                "orders",
                with(
                    item("pi_1"),
                    [
                        ("outcome", text("refund")),
                        ("reason", text("too_late")),
                        ("refund_state", text("requested")),
                    ],
                ),
            ),
            vec![
                format!("I5 g1: order {paid} is paid but has 0 accepted payments"),
                format!(
                    "I5 g1: payment stripe pi_1 for order {paid} is refunded and yet paid its order"
                ),
            ],
        ),
        (
            Change::Put("orders", elsewhere(cancelled, "pi_3")),
            vec![
                format!(
                    "I5 g1: payment stripe pi_3 for order {cancelled} of 100 EUR was accepted for 20 EUR"
                ),
                format!(
                    "I5 g1: payment stripe pi_3 for order {cancelled} was accepted but its order is cancelled"
                ),
            ],
        ),
        (
            Change::Put("orders", with(item("pi_late"), [("refund_state", text("refunded"))])),
            vec![format!(
                "I5 g1: payment stripe pi_late for order {late} is refunded but its order is refund_due"
            )],
        ),
        (
            Change::Put("orders", with(item("pi_1"), [("refund_state", text("requested"))])),
            vec![format!(
                "I5 g1: payment stripe pi_1 for order {paid} was accepted and yet goes back"
            )],
        ),
        (
            Change::Put("orders", with(item("pi_late"), [unasked.clone()])),
            vec![format!(
                "I5 g1: payment stripe pi_late for order {late} is to be refunded but no refund was requested"
            )],
        ),
        (
            Change::Put("orders", with(item("pi_unknown"), [unasked])),
            vec![
                format!(
                    "I11 payment stripe pi_unknown for order {unknown} is listed with disputes as unmatched at \
                     {:015}-{}, and belongs as nowhere",
                    unknown.minted_at().ms(),
                    unknown.sortable()
                ),
                format!(
                    "I5 payment stripe pi_unknown for order {unknown} is to be refunded but no refund was requested"
                ),
            ],
        ),
        (
            Change::Delete("orders", item("pi_late")),
            vec![format!("I5 g1: order {late} is refund_due but its payment is not there")],
        ),
    ]
}
