//! The file of a train with two coaches and three stops, for the tests of the sale.

use serde_json::json;

use super::{Defect, Sale, SaleFile};

pub(super) fn train() -> serde_json::Value {
    json!({
        "sale": "g1", "title": "G1", "currency": "CNY",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
        "limit_per_buyer": 5, "pay_window_seconds": 600,
        "stops": [{"stop": "A", "name": "a"}, {"stop": "B", "name": "b"}, {"stop": "C", "name": "c"}],
        "tiers": [{
            "tier": "second", "name": "Second",
            "fares": [{"from": "A", "to": "C", "price_minor": 300}],
            "columns": ["A", null, "B"],
            "sections": [
                {"section": "01", "rows": [{"row": "1", "seats": ["01-1A", null, "01-1B"]}]},
                {"section": "02", "rows": [{"row": "1", "seats": ["02-1A", null, "02-1B"]}]}
            ],
            "not_for_sale": ["02-1B"]
        }]
    })
}

pub(super) fn read(file: serde_json::Value) -> Result<Sale, Vec<String>> {
    let file: SaleFile = serde_json::from_value(file).map_err(|error| vec![error.to_string()])?;
    Sale::new(file).map_err(|defects| defects.iter().map(Defect::to_string).collect())
}
