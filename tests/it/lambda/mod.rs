//! The programs of the functions: each under AWS's own emulator of the runtime, behind
//! `cargo lambda watch`, and all of them as one stack on ministack.

mod answers;
mod binaries;
mod event;
mod ministack;
mod rie;
mod sam_local;
mod sample_events;
mod watch;

use serde_json::{Value, json};

/// A sale of some rows of ten seats.
fn hall(sale: &str, rows: u32, pay_window_seconds: u32) -> Value {
    let row = |row: u32| json!({ "row": row.to_string(), "seats": { "prefix": format!("{row}-"), "first": 1, "count": 10 } });
    let rows: Vec<Value> = (1..=rows).map(row).collect();
    json!({
        "sale": sale, "title": "Hall", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": pay_window_seconds,
        "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
        "tiers": [{ "tier": "floor", "name": "Floor", "price_minor": 2500,
            "sections": [{ "section": "A", "rows": rows }] }],
    })
}
