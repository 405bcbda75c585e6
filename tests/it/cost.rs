//! `onsale cost`, small: every kind of work is counted, and the bills are made of what was counted.

use std::process::Command;

use serde_json::Value;

use crate::program::onsale;

fn report(arguments: &[&str]) -> Result<Value, String> {
    let done = Command::new(onsale()).arg("cost").args(arguments).arg("--json").output().unwrap();
    match done.status.success() {
        true => Ok(serde_json::from_slice(&done.stdout).unwrap()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

/// The sum of the lines of a bill.
fn sum(bill: &Value) -> f64 {
    bill["lines"].as_array().unwrap().iter().map(|line| line["cost"].as_f64().unwrap()).sum()
}

#[test]
fn what_is_used_is_counted_and_what_is_counted_is_paid_for() {
    // Reads are charged by 4 KB: the claims of fewer orders would cost no more than those of none.
    let small =
        ["--seats", "1000", "--visitors", "4000", "--scale", "4", "--within", "2", "--times", "4"];
    // On a busy machine a request may end without an answer, which costs what no answer costs: measured anew.
    let again = |_unknown| report(&small);
    let report = report(&small).or_else(again).or_else(again).unwrap();
    let actions = report["measured"]["actions"].as_array().unwrap();
    let of = |action: &str, unit: &str| -> f64 {
        let found = actions.iter().find(|one| one[0] == action);
        found.unwrap_or_else(|| panic!("{action} was not measured"))[1][unit].as_f64().unwrap()
    };
    for action in [
        "look",
        "admission",
        "not_admitted",
        "reservation",
        "refusal",
        "start",
        "payment",
        "cancellation",
        "order",
        "refund",
        "join",
        "document",
        "turn",
        "not_due",
        "entrance",
    ] {
        assert_eq!(
            (of(action, "http_requests"), of(action, "invocations")),
            (1.0, 1.0),
            "{action}"
        );
        assert!(of(action, "egress_bytes") > 50.0 && of(action, "cpu_ms") > 0.0, "{action}");
    }
    // A flood of people who look and ask to be let in costs DynamoDB and SQS nothing.
    for action in ["look", "admission", "not_admitted"] {
        let nothing = ["write_units", "sqs_requests"].map(|unit| of(action, unit));
        assert_eq!(nothing, [0.0, 0.0], "{action}");
        // Who looks asks for the copy, and once a second may read the sale and write the copy anew.
        // Who asks to be let in is counted by the limits, in one round trip to each slot of theirs at once, and
        // then meets the gate's script.
        let trips = of(action, "redis_trips");
        assert!(trips <= 4.0, "{action}: {trips}");
    }
    // Two tickets: the order and its two indexes, two claims, the buyer's count; twice in a transaction.
    assert!(of("reservation", "write_units") >= 8.0);
    assert_eq!(of("reservation", "sqs_requests"), 1.0, "its expiry message");
    assert!(of("reservation", "cache_units") > 1.0, "a script counts by its time");
    assert_eq!(of("refusal", "sqs_requests"), 0.0);
    assert!(of("start", "write_units") >= 4.0, "the order and the attempt, then what came of it");
    assert!(of("refund", "write_units") >= 4.0 && of("refund", "sqs_requests") >= 1.0);
    assert!(of("payment", "write_units") >= 4.0, "the order and the payment");
    assert_eq!(of("payment", "sqs_requests"), 1.0, "its message to be counted");
    // Ten messages an invocation, received and deleted together.
    for action in ["counting", "expiry_of_paid", "expiry"] {
        assert_eq!(of(action, "invocations"), 0.1, "{action}");
        // What is expired tells of it: ten messages go in one request at best, each in its own at worst.
        let sent = if action == "expiry" { 0.1..=1.0 } else { 0.0..=0.0 };
        let requests = of(action, "sqs_requests") - 0.2;
        let fits = sent.contains(&requests) || (requests - sent.start()).abs() < 1e-9;
        assert!(fits, "{action}: {requests}");
    }
    assert_eq!(of("expiry_of_paid", "write_units"), 0.0, "there is nothing left to do");
    assert!(of("expiry", "write_units") >= 8.0, "what a reservation wrote is taken back");
    assert!(of("reconciliation_of_tickets", "read_units") > 0.0, "every claim is compared");

    // A membership, and a part of the indices that its process took; a visit; a record a turn.
    assert!(of("join", "write_units") > 1.0, "{}", of("join", "write_units"));
    assert!(of("turn", "write_units") >= 1.0 && of("entrance", "write_units") >= 1.0);
    for action in ["document", "not_due"] {
        assert_eq!(of(action, "write_units"), 0.0, "{action}");
    }

    assert_eq!(report["rush"]["tickets"], 250.0, "the rush sells out");
    for bill in ["sale", "room", "month"] {
        let bill = &report[bill];
        assert!((bill["total"].as_f64().unwrap() - sum(bill)).abs() < 1e-9, "{bill}");
    }
    let line = |what: &str, unit: &str| {
        let mut lines = report["sale"]["lines"].as_array().unwrap().iter();
        let found = lines.find(|line| line["what"] == what && line["unit"] == unit).unwrap();
        (found["amount"].as_f64().unwrap(), found["cost"].as_f64().unwrap())
    };
    // At the least: every ticket's order was asked for, made and paid.
    assert!(line("HTTP API", "requests").0 >= 500.0 * 3.0);
    let writes = line("DynamoDB", "write units");
    let price = report["options"]["prices"]["dynamodb_writes_million"].as_f64().unwrap();
    assert!((writes.1 - writes.0 * price / 1e6).abs() < 1e-9);
}

#[test]
fn a_price_table_of_ones_own_is_whole_or_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{ "as_of": "2026-11-21" }"#).unwrap();
    let refused = report(&["--prices", file.path().to_str().unwrap()]).unwrap_err();
    assert!(refused.contains("missing field"), "{refused}");
}
