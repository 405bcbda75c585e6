//! Sale files.

use serde_json::{Value, json};

use super::Expected::{Fine, Problem};
use super::{Case, Fixture, case, hall};

impl Fixture {
    pub(super) fn files(&self) -> Vec<Case> {
        let invalid = Problem(422, "invalid");
        let with = |change: Value| self.put("hall", hall("hall", change).to_string());
        let rows = |seats: Value| {
            with(
                json!({ "tiers": [{ "tier": "t", "name": "T", "price_minor": 1, "sections": [{ "section": "s", "rows": [{ "row": "1", "seats": seats }] }] }] }),
            )
        };
        let tier = |change: Value| {
            let mut tier = json!({ "tier": "t", "name": "T", "general_admission": 1 });
            tier.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            with(json!({ "tiers": [tier] }))
        };
        let map = |points: Value, sections: Value| {
            let outlines = json!([{ "kind": "stage", "points": points }]);
            with(
                json!({ "map": { "width": 9, "height": 9, "outlines": outlines, "sections": sections } }),
            )
        };
        let text = hall("hall", json!({})).to_string();
        vec![
            case("file: the control", self.put("hall", &text), Fine(200)),
            case("file: another sale's", self.put("full", &text), invalid),
            case("file: a list", self.put("hall", format!("[{text}]")), invalid),
            case(
                "file: given a name twice",
                self.put("hall", text.replacen('{', "{\"title\":\"x\",", 1)),
                invalid,
            ),
            case(
                "file: 5 MiB and one",
                self.put("hall", format!("{text}{}", " ".repeat(5 * 1024 * 1024 + 1 - text.len()))),
                Problem(413, "too-large"),
            ),
            case("file: other seats", rows(json!(["1", "2"])), Problem(409, "seats-differ")),
            case("file: nobody's map", with(json!({ "map": { "hash": "0".repeat(32) } })), invalid),
            case(
                "file: a map's name in capitals",
                with(json!({ "map": { "hash": "A".repeat(32) } })),
                invalid,
            ),
            case("file: a map of nothing", with(json!({ "map": {} })), invalid),
            case("file: a day of no train", with(json!({ "runs_on": "2026-11-21" })), invalid),
            case("file: a day of no calendar", with(json!({ "runs_on": "2026-11-31" })), invalid),
            case("file: a run as a list", rows(json!(["A", 1, 5])), invalid),
            case("file: a run without count", rows(json!({ "prefix": "A", "first": 1 })), invalid),
            case(
                "file: a run of 2^32 - 1",
                rows(json!({ "prefix": "A", "first": 1, "count": u32::MAX })),
                invalid,
            ),
            case(
                "file: a run past 2^32",
                rows(json!({ "prefix": "A", "first": u32::MAX, "count": 2 })),
                invalid,
            ),
            case("file: a row of text", rows(json!("A1")), invalid),
            case("file: a seat with a line feed", rows(json!(["A\n1"])), invalid),
            case("file: a tier as a list", with(json!({ "tiers": [["t", "T", 1]] })), invalid),
            case("file: a gate as a list", with(json!({ "gate": [1, 75, 1, 1, 300] })), invalid),
            case("file: a room as a list", with(json!({ "room": [[], 200] })), invalid),
            case("file: a room of no group", with(json!({ "room": { "groups": [] } })), invalid),
            case("file: no tiers", with(json!({ "tiers": [] })), invalid),
            case("file: a price of -1", tier(json!({ "price_minor": -1 })), invalid),
            case(
                "file: a price of 2^63",
                tier(json!({ "price_minor": 9_223_372_036_854_775_808_u64 })),
                invalid,
            ),
            case("file: a price of 0.5", tier(json!({ "price_minor": 0.5 })), invalid),
            case(
                "file: 10^6 + 1 spots",
                tier(json!({ "price_minor": 1, "general_admission": 1_000_001 })),
                invalid,
            ),
            case("file: a currency of four", with(json!({ "currency": "EURO" })), invalid),
            case(
                "file: closes before it opens",
                with(json!({ "closes_at": "2019-01-01T00:00:00Z" })),
                invalid,
            ),
            case(
                "file: a time without an offset",
                with(json!({ "opens_at": "2020-01-01T00:00:00" })),
                invalid,
            ),
            case("file: 30 February", with(json!({ "opens_at": "2020-02-30T00:00:00Z" })), invalid),
            case("file: no limit", with(json!({ "limit_per_buyer": 0 })), invalid),
            case("file: a title of escapes", with(json!({ "title": "\u{1b}[31mred" })), invalid),
            case("file: a map as a list", with(json!({ "map": [1, 1, [], []] })), invalid),
            case("file: a map of nothing", map(json!([]), json!([])), invalid),
            case(
                "file: a map below zero",
                map(json!([[-1, 0], [1, 0], [1, 1]]), json!([])),
                invalid,
            ),
            case(
                "file: a map of many shapes",
                with(json!({ "map": { "width": 1, "height": 1, "sections": [],
                    "outlines": vec![json!({ "kind": "area", "points": [[0, 0], [1, 0], [1, 1]] }); 501] } })),
                invalid,
            ),
            case(
                "file: a map of no such tier",
                map(json!([]), json!([{ "tier": "moon" }])),
                invalid,
            ),
            case("file: an unknown field", with(json!({ "free": true })), invalid),
        ]
    }
}
