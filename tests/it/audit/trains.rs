//! Trains that no search finds, or that one finds where they do not call.

use aws_sdk_dynamodb::types::AttributeValue;

use super::corruption::{Change, Corruptions, Snapshot, named, number, text, with, without};

/// Trains that no search finds, or that one finds where they do not call.
pub(super) fn wrong_trains(snapshot: &Snapshot) -> Corruptions {
    let call = |stop: &str, mark: &str| {
        snapshot.item("sales", Some(&format!("#trains#2026-11-21#{stop}")), mark)
    };
    let first = call("x", "0805#g1");
    let by_name = call("xanten", "0805#g1");
    let set =
        |stops: &[&str]| AttributeValue::Ss(stops.iter().map(|stop| (*stop).to_owned()).collect());
    let day = "#stops#2026-11-21";
    let listed = snapshot.item("sales", Some(day), "xanten\tx");
    let brought = snapshot.item("sales", Some(&format!("{day}#xanten\tx")), "g1");
    let record = "item #trains#2026-11-21#x/0805#g1 of table sales";
    vec![
        (
            Change::Delete("sales", first.clone()),
            named(["trains g1: the sale is not found at x on 2026-11-21, 0805"]),
        ),
        (
            Change::Delete("sales", by_name),
            named(["trains g1: the sale is not found at xanten on 2026-11-21, 0805"]),
        ),
        (
            Change::Put("sales", with(first.clone(), [("later", set(&["z"]))])),
            named([
                "trains g1: the sale is found at x on 2026-11-21, 0805 on the way to other stops than its own",
            ]),
        ),
        (
            Change::Put("sales", with(first.clone(), [("sk", text("0900#g1"))])),
            named([
                "trains g1: the sale is found at x on 2026-11-21, 0900, and cannot be boarded there",
            ]),
        ),
        (
            Change::Put("sales", with(first.clone(), [("pk", text("#trains#2026-11-22#x"))])),
            named([
                "trains g1: the sale is found at x on 2026-11-22, 0805, and cannot be boarded there",
            ]),
        ),
        (
            Change::Put("sales", without(first.clone(), ["later"])),
            vec![
                format!("records {record} has no set in later"),
                "trains g1: the sale is not found at x on 2026-11-21, 0805".to_owned(),
            ],
        ),
        (
            Change::Delete("sales", listed.clone()),
            named(["trains g1: the sale misses xanten, x in the list of stops of 2026-11-21"]),
        ),
        (
            Change::Delete("sales", brought.clone()),
            named([
                "trains g1: the sale does not keep xanten, x in the list of stops of 2026-11-21",
            ]),
        ),
        (
            Change::Put("sales", with(brought.clone(), [("pk", text(format!("{day}#yard\tq")))])),
            named([
                "trains g1: the sale keeps yard, q in the list of stops of 2026-11-21, and has no such stop",
            ]),
        ),
        (
            Change::Put("sales", with(listed, [("name", text("Yard"))])),
            named([
                "records item #stops#2026-11-21/xanten\tx of table sales is not under its name and id",
            ]),
        ),
        (
            Change::Put("sales", without(brought, ["version"])),
            vec![
                format!("records item {day}#xanten\tx/g1 of table sales has no number in version"),
                "trains g1: the sale does not keep xanten, x in the list of stops of 2026-11-21"
                    .to_owned(),
            ],
        ),
        (
            Change::Put("sales", with(first, [("sk", text("0805#ghost")), ("version", number(1))])),
            named([
                "records item #trains#2026-11-21#x/0805#ghost of table sales is of sale ghost, which is not in the catalogue",
            ]),
        ),
    ]
}
