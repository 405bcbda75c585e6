//! `onsale bench http`, small: every endpoint does its work and is told beside the empty function.

use std::process::Command;

use serde_json::Value;

use crate::program::onsale;

#[test]
fn every_endpoint_is_measured_beside_the_empty_function() {
    let bench = ["bench", "http", "--requests", "3", "--rounds", "2", "--connections", "2"];
    let run = |arguments: &[&str]| {
        let done = Command::new(onsale()).args(arguments).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    };
    let report: Value = serde_json::from_str(&run(&[&bench[..], &["--json"]].concat())).unwrap();
    let rows = report["endpoints"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["endpoint"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "token-gate",
            "reserve",
            "order",
            "orders",
            "cancel",
            "pay-callback",
            "sales",
            "sale",
            "availability",
            "token-gate: sold out",
            "reserve: invalid body",
            "reserve: not authenticated",
            "join",
            "join: again",
            "room",
            "token-gate: not due",
            "token-gate: false claim",
        ]
    );
    for row in rows {
        // Buyers are let in and reserve in two batches a round, of which one cancels and one pays.
        let batches = if ["token-gate", "reserve"].contains(&row["endpoint"].as_str().unwrap()) {
            4
        } else {
            2
        };
        assert_eq!(row["requests"], 3 * batches, "{row}");
        assert_eq!(row["empty"]["requests"], row["requests"], "{row}");
        assert!(row["per_second"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["share"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["p50_ms"].as_f64() <= row["p999_ms"].as_f64(), "{row}");
    }
}
