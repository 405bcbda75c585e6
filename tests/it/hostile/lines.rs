//! Lines of an order that cannot be meant.

use engine::domain::basics::ids::SaleId;
use serde_json::{Value, json};

use super::Expected::Problem;
use super::request::Raw;
use super::{Case, Fixture, case};

impl Fixture {
    /// Lines that cannot be meant, with a good admission, which none of them uses up.
    pub(super) fn lines(&self) -> Vec<Case> {
        let invalid = Problem(422, "invalid");
        let token = json!(self.admission("alice", |_| {}).0);
        let in_hall = |lines: Value| self.order(&self.alice, "hall", &token, &lines);
        let on_train =
            json!(self.admission("alice", |grant| grant.sale = SaleId::new("train").unwrap()).0);
        let in_train = |lines: Value| self.order(&self.alice, "train", &on_train, &lines);
        let stalls = |change: Value| {
            let mut line = json!({ "tier": "stalls" });
            line.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            in_hall(json!([line]))
        };
        let travel = |change: Value| {
            let mut line = json!({ "tier": "second", "from": "X", "to": "Z" });
            line.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            in_train(json!([line]))
        };
        let best = json!({ "count": 1 });
        let raw =
            |body: String| Raw::new("POST", "/sales/hall/orders").bearer(&self.alice).json(body);
        let seats = |names: Value| stalls(json!({ "seats": names }));
        let mut cases: Vec<Case> = vec![
            case("lines: none", in_hall(json!([])), invalid),
            case(
                "lines: an object",
                in_hall(json!({ "0": { "tier": "stalls", "best": best } })),
                invalid,
            ),
            case("lines: null", in_hall(Value::Null), invalid),
            case(
                "lines: five",
                in_hall(json!([1, 2, 3, 4, 5].map(|_| json!({ "tier": "stalls", "best": best })))),
                invalid,
            ),
            case(
                "lines: 1,000",
                in_hall(json!(vec![json!({ "tier": "stalls", "best": best }); 1000])),
                invalid,
            ),
            case(
                "lines: a line is a list",
                in_hall(json!([["stalls", null, null, null, best]])),
                invalid,
            ),
            case(
                "lines: one tier twice",
                in_hall(
                    json!([{ "tier": "stalls", "best": best }, { "tier": "stalls", "best": best }]),
                ),
                invalid,
            ),
            case(
                "lines: given twice",
                raw(format!(
                    "{{\"admission\":{token},\"lines\":[],\"lines\":[{{\"tier\":\"stalls\",\"best\":{best}}}]}}"
                )),
                invalid,
            ),
            case(
                "lines: the order as a list",
                raw(format!("[{token},[{{\"tier\":\"stalls\",\"best\":{best}}}]]")),
                invalid,
            ),
            case(
                "tier: another sale's",
                in_hall(json!([{ "tier": "second", "best": best }])),
                invalid,
            ),
            case(
                "tier: in capitals",
                in_hall(json!([{ "tier": "STALLS", "best": best }])),
                invalid,
            ),
            case("tier: a number", in_hall(json!([{ "tier": 1, "best": best }])), invalid),
            case(
                "tier: with a colon",
                in_hall(json!([{ "tier": "stalls}:sold:{x", "best": best }])),
                invalid,
            ),
            case("choice: none", stalls(json!({})), invalid),
            case("choice: two", stalls(json!({ "best": best, "seats": ["A-1"] })), invalid),
            case(
                "choice: nothing but nulls",
                stalls(json!({ "best": null, "seats": null, "pattern": null })),
                invalid,
            ),
            case("best: a list", stalls(json!({ "best": [1, "required"] })), invalid),
            case("best: 0", stalls(json!({ "best": { "count": 0 } })), invalid),
            case("best: 11", stalls(json!({ "best": { "count": 11 } })), invalid),
            case("best: 2^64", stalls(json!({ "best": { "count": u64::MAX } })), invalid),
            case(
                "best: maybe",
                stalls(json!({ "best": { "count": 1, "together": "maybe" } })),
                invalid,
            ),
            case("seats: none", seats(json!([])), invalid),
            case("seats: twice the same", seats(json!(["A-1", "A-1"])), invalid),
            case(
                "seats: eleven",
                seats(json!((1..=11).map(|seat| format!("A-{seat}")).collect::<Vec<_>>())),
                invalid,
            ),
            case("seats: the other tier's", seats(json!(["standing-1"])), invalid),
            case(
                "seats: of a standing tier",
                in_hall(json!([{ "tier": "standing", "seats": ["standing-1"] }])),
                invalid,
            ),
            case("seats: one text", seats(json!("A-1")), invalid),
            case("seats: numbers", seats(json!([1])), invalid),
            case(
                "pattern: no columns here",
                stalls(json!({ "pattern": [{ "column": "A" }] })),
                invalid,
            ),
            case(
                "attendees: too few",
                stalls(json!({ "best": { "count": 2 }, "attendees": ["p"] })),
                invalid,
            ),
            case(
                "attendees: twice the same",
                stalls(json!({ "best": { "count": 2 }, "attendees": ["p", "p"] })),
                invalid,
            ),
            case(
                "attendees: with #",
                stalls(json!({ "best": best, "attendees": ["p#1"] })),
                invalid,
            ),
            case(
                "attendees: NUL",
                stalls(json!({ "best": best, "attendees": ["p\u{0}"] })),
                invalid,
            ),
            case(
                "attendees: blank",
                stalls(json!({ "best": best, "attendees": ["\u{3000}"] })),
                invalid,
            ),
            case(
                "attendees: 65 bytes",
                stalls(json!({ "best": best, "attendees": ["é".repeat(33)] })),
                invalid,
            ),
            case(
                "price: the buyer's own",
                stalls(json!({ "best": best, "price_minor": 1 })),
                invalid,
            ),
            case(
                "journey: on a concert",
                stalls(json!({ "best": best, "from": "X", "to": "Z" })),
                invalid,
            ),
            case(
                "journey: none on a train",
                in_train(json!([{ "tier": "second", "best": best }])),
                invalid,
            ),
            case(
                "journey: half of one",
                in_train(json!([{ "tier": "second", "from": "X", "best": best }])),
                invalid,
            ),
            case(
                "journey: backwards",
                travel(json!({ "from": "Z", "to": "X", "best": best })),
                invalid,
            ),
            case(
                "journey: nowhere",
                travel(json!({ "from": "X", "to": "X", "best": best })),
                invalid,
            ),
            case("journey: not sold", travel(json!({ "from": "Y", "best": best })), invalid),
            case(
                "pattern: no such column",
                travel(json!({ "pattern": [{ "column": "C" }] })),
                invalid,
            ),
            case("pattern: the aisle", travel(json!({ "pattern": [{ "column": "" }] })), invalid),
            case(
                "pattern: row 2",
                travel(json!({ "pattern": [{ "column": "A" }, { "column": "A", "row": 2 }] })),
                invalid,
            ),
            case("pattern: a place as a list", travel(json!({ "pattern": [["A", 0]] })), invalid),
            case(
                "sale: another's lines",
                self.order(&self.alice, "nowhere", &token, &json!([])),
                Problem(404, "not-found"),
            ),
        ];
        for (what, name) in [
            ("right to left", "\u{202e}1-A"),
            ("joiner", "A\u{200d}-1"),
            ("full width", "Ａ-1"),
            ("combining", "A\u{301}-1"),
            ("lower case", "a-1"),
            ("NUL", "A-1\u{0}"),
            ("line feed", "A-1\n"),
            ("blank", " A-1"),
            ("empty", ""),
            ("too long", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            ("replacement", "A-1\u{fffd}"),
            ("BOM", "\u{feff}A-1"),
        ] {
            cases.push(case(&format!("seats: {what}"), seats(json!([name])), invalid));
        }
        cases
    }
}
