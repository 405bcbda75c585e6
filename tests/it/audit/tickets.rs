//! I12: what is void of a sale, and check-ins.

use super::corruption::{Change, Corruptions, Snapshot, number, text, with, without};
use super::fixture::Numbers;

/// I12, and records of tickets that are none. The order has a ticket that was issued anew and let two in, and one
/// that was refunded.
pub(super) fn wrong_tickets(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { returned, paid, .. } = orders;
    let key = format!("{:019}", returned.get());
    let revoked = snapshot.item("sales", Some("show#revoked"), &key);
    let shard = format!("count#{}", (returned.get() >> 10) % 8);
    let count = snapshot.item("sales", Some("show#check-ins"), &shard);
    let double = format!("double#{key}#01#001800001005000#south");
    let double = snapshot.item("sales", Some("show#check-ins"), &double);
    let says = |ticket: &str, says: &str| {
        format!(
            "I12 show: order {returned} has ticket {ticket}, and the list of revoked tickets says {says}"
        )
    };
    let again =
        format!("I12 show: order {returned} was let in again by ticket 1 at door south, and");
    let counts = |admitted: u8, doubles: u8| {
        format!(
            "I12 show: the sale has 1 tickets that let somebody in and {doubles} check-ins after the first, \
             and counts {admitted} and 1"
        )
    };
    let other = format!("{:019}", paid.get());
    let nobodys = format!("{:019}", returned.get() + 1);
    vec![
        (
            Change::Delete("sales", revoked.clone()),
            vec![says("1, which has issue 2", "nothing"), says("2, which was refunded", "nothing")],
        ),
        (
            Change::Put("sales", with(revoked.clone(), [("t2", number(2))])),
            vec![says("2, which was refunded", "2")],
        ),
        (
            Change::Put("sales", without(revoked.clone(), ["t1"])),
            vec![says("1, which has issue 2", "nothing")],
        ),
        (
            Change::Put("sales", with(revoked.clone(), [("sk", text(&nobodys))])),
            vec![format!(
                "I12 show: order {} is in the list of revoked tickets and does not exist",
                returned.get() + 1
            )],
        ),
        (
            // An order of another sale.
            Change::Put("sales", with(revoked.clone(), [("sk", text(&other))])),
            vec![format!(
                "I12 show: order {paid} is in the list of revoked tickets and does not exist"
            )],
        ),
        (
            Change::Put("sales", with(revoked, [("colour", text("red"))])),
            vec![
                says("1, which has issue 2", "nothing"),
                says("2, which was refunded", "nothing"),
                format!(
                    "records show: item show#revoked/{key} of table sales says more than tickets"
                ),
            ],
        ),
        (Change::Put("sales", with(count, [("admitted", number(2))])), vec![counts(2, 1)]),
        (Change::Delete("sales", double.clone()), vec![counts(1, 0)]),
        (
            Change::Put("sales", with(double, [("first_door", text("east"))])),
            vec![format!("{again} has another first check-in of it")],
        ),
    ]
}
