//! Examples, as a client would send and get them. A test sends each request, and holds each reply
//! against its schema.

use serde_json::{Value, json};

/// The sale of every example.
pub(super) const SALE: &str = "g35-2026-11-21";
/// First stop of the journey in every example.
pub(super) const FROM: &str = "VNP";
pub(super) const TO: &str = "NGH";
/// The day of the journey.
pub(super) const DAY: &str = "2026-11-21";
/// The order of every example.
pub(super) const ORDER: &str = "169218430493097984";
const TOKEN: &str = "eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiIsImtpZCI6IjIwMjYtMDEifQ.e30.c2lnbmF0dXJl";
const PAYMENT: &str = "pi_3PtQxY2eZvKYlo2C1";

pub(super) fn sale_file() -> Value {
    json!({
        "sale": SALE,
        "title": "G35 Beijing South - Ningbo",
        "currency": "CNY",
        "opens_at": "2026-01-01T00:00:00Z",
        "closes_at": "2096-01-01T00:00:00Z",
        "limit_per_buyer": 5,
        "pay_window_seconds": 600,
        "attendees": "optional",
        "refunds": { "until": "2095-12-31T12:00:00Z", "fee_percent": 5 },
        "wallet": true,
        "runs_on": DAY,
        "stops": [
            { "stop": "VNP", "name": "北京南", "departs": "09:56" },
            { "stop": "JGK", "name": "济南西", "arrives": "11:19", "departs": "11:21" },
            { "stop": "NGH", "name": "宁波", "arrives": "15:14" }
        ],
        "gate": { "shards": 1, "user_lock_ms": 1000 },
        "tiers": [
            {
                "tier": "second", "name": "Second class",
                "columns": ["A", "B", "C", null, "D", "F"],
                "fares": [
                    { "from": "VNP", "to": "JGK", "price_minor": 18500 },
                    { "from": "VNP", "to": "NGH", "price_minor": 58500 }
                ],
                "sections": [{
                    "section": "01",
                    "rows": [
                        { "row": "1", "seats": ["01-1A", "01-1B", "01-1C", null, "01-1D", "01-1F"] },
                        { "row": "2", "seats": ["01-2A", "01-2B", "01-2C", null, "01-2D", "01-2F"] }
                    ]
                }]
            },
            { "tier": "standing", "name": "No seat", "price_minor": 29250, "general_admission": 40 }
        ]
    })
}

/// A sale that fills wallets.
pub(super) fn sale_of_money() -> Value {
    json!({
        "sale": "top-ups", "title": "Money for your wallet", "currency": "CNY",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2096-01-01T00:00:00Z",
        "limit_per_buyer": 100, "pay_window_seconds": 600,
        "merchant": { "merchant": "wallet" },
        "refunds": { "until": "2095-12-31T12:00:00Z" },
        "gate": { "shards": 1, "user_lock_ms": 1000 },
        "tiers": [
            { "tier": "thousand", "name": "1,000 CNY", "price_minor": 100_000, "general_admission": 500_000 }
        ]
    })
}

fn summary() -> Value {
    json!({
        "sale": SALE,
        "title": "G35 Beijing South - Ningbo",
        "opens_at": "2026-01-01T00:00:00.000Z",
        "closes_at": "2096-01-01T00:00:00.000Z",
        "state": "open", "price_from_minor": 18500, "currency": "CNY",
        "route": {
            "from": "北京南", "to": "宁波",
            "departs_at": "2026-11-21T09:56", "arrives_at": "2026-11-21T15:14"
        }
    })
}

pub(super) fn trains() -> Value {
    json!({
        "date": DAY, "from": "vnp", "to": "ngh",
        "trains": [{
            "sale": SALE, "title": "G35 Beijing South - Ningbo", "state": "open",
            "opens_at": "2026-01-01T00:00:00.000Z", "closes_at": "2096-01-01T00:00:00.000Z",
            "from": { "stop": "VNP", "name": "北京南" }, "to": { "stop": "NGH", "name": "宁波" },
            "departs_at": "2026-11-21T09:56", "arrives_at": "2026-11-21T15:14",
            "currency": "CNY",
            "tiers": [
                { "tier": "second", "name": "Second class", "price_minor": 58500, "available": 8 },
                { "tier": "standing", "name": "No seat", "price_minor": 29250, "available": 40 }
            ],
            "as_of": "2026-11-20T02:00:03.120Z"
        }],
        "next": "MTowOTU2I2czNS0yMDI2LTExLTIx"
    })
}

pub(super) fn stops() -> Value {
    json!({
        "date": DAY,
        "stops": [
            { "name": "北京南", "stops": ["VNP"] }, { "name": "宁波", "stops": ["NGH"] },
            { "name": "济南西", "stops": ["JGK"] }
        ],
        "next": "MTrmtY7ljZfopb8Jamdr"
    })
}

pub(super) fn sales() -> Value {
    json!({ "sales": [summary()], "next": "MTpnMzUtMjAyNi0xMS0yMQ" })
}

pub(super) fn sale() -> Value {
    let mut sale = summary();
    sale["version"] = json!(1);
    sale["file"] = sale_file();
    sale["tiers"] = json!([
        { "tier": "second", "rows": 2, "row_bytes": 1, "seats": 10 },
        { "tier": "standing", "rows": 1, "row_bytes": 8, "seats": 40 }
    ]);
    sale
}

pub(super) fn availability() -> Value {
    json!({
        "sale": SALE, "as_of": "2026-11-20T02:00:03.120Z", "max_age_seconds": 1, "from": FROM, "to": TO,
        "tiers": [
            { "tier": "second", "price_minor": 58500, "available": 8, "row_bytes": 1, "free": "LOw=" },
            { "tier": "standing", "price_minor": 29250, "available": 40, "row_bytes": 8, "free": "//////8AAAA=" }
        ]
    })
}

/// The picture of every example: the SHA-256 of [`GREY`].
pub(super) const PICTURE: &str = "8e9aeefc02d24e112255f7a979f4312b0bce3b096dda38b154d0fcae68255e88";
/// A grey JPEG of 8 by 8 pixels, in base64.
const GREY: &str = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";

pub(super) fn picture_body() -> Value {
    json!({ "data": GREY })
}

pub(super) fn picture() -> Value {
    json!({ "sha256": PICTURE, "width": 8, "height": 8, "bytes": 159 })
}

pub(super) fn about() -> Value {
    json!({
        "address": "Am Ufer 1, 1220 Wien", "latitude": 48.23, "longitude": 16.41,
        "access": { "en": "Step-free at gate C", "zh": "C 门无台阶" },
        "description": { "en": "The **closing night** of their tour.", "zh": "巡演**终场**。" },
        "minimum_age": 12, "contact": "box.office@example.org",
        "links": [{ "title": "The band", "url": "https://example.org/lanterns" }],
        "images": [{ "sha256": PICTURE, "alt": "Eight by eight grey pixels", "width": 8, "height": 8 }]
    })
}

pub(super) fn concert() -> Value {
    json!({
        "sale": "lanterns-lakeside", "title": "The Lanterns", "currency": "EUR",
        "event": {
            "starts_at": "2026-11-21T20:00:00+01:00", "doors_at": "2026-11-21T18:30:00+01:00",
            "ends_at": "2026-11-21T23:00:00+01:00", "time_zone": "Europe/Vienna",
            "venue": { "name": "Lakeside Stadium", "city": "Vienna", "country": "AT" },
            "category": "concert", "performers": ["The Lanterns"], "about": about()
        },
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2096-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "tiers": [{ "tier": "floor", "name": "Floor", "price_minor": 8500, "general_admission": 40 }]
    })
}

pub(super) fn map() -> Value {
    json!({
        "width": 400, "height": 300,
        "outlines": [{ "label": "Stage", "kind": "stage", "points": [[100, 0], [300, 0], [280, 40], [120, 40]] }],
        "sections": [
            { "tier": "floor", "outline": [[80, 60], [320, 60], [320, 180], [80, 180]] },
            {
                "tier": "stalls", "section": "Stalls",
                "rows": [
                    { "row": "1", "from": [100, 200], "to": [300, 200] },
                    { "row": "2", "seats": [[100, 220], null, [260, 220], [300, 220]] }
                ]
            }
        ]
    })
}

pub(super) fn visit_body() -> Value {
    json!({ "place": { "group": "all", "place": 4711, "token": TOKEN } })
}

pub(super) fn visit() -> Value {
    json!({ "ends_at": "2026-11-20T02:10:00.000Z" })
}

pub(super) fn admission_body() -> Value {
    json!({ "tickets": 2 })
}

pub(super) fn admission() -> Value {
    json!({ "token": TOKEN, "order": ORDER, "expires_at": "2026-11-20T02:05:00.000Z", "tickets": 2 })
}

pub(super) fn reservations() -> Vec<(&'static str, &'static str, Value)> {
    let order = |choice: Value| {
        let mut line = json!({ "tier": "second", "from": FROM, "to": TO });
        if let (Some(line), Value::Object(choice)) = (line.as_object_mut(), choice) {
            line.extend(choice);
        }
        json!({ "admission": TOKEN, "lines": [line] })
    };
    let best =
        json!({ "best": { "count": 2, "together": "required" }, "attendees": ["P-1", "P-2"] });
    vec![
        ("best", "Two of the best, side by side, for two people", order(best)),
        ("seats", "Exactly these seats", order(json!({ "seats": ["01-2A", "01-2B"] }))),
        (
            "pattern",
            "A seat in column C, and one in column C of the next row",
            order(json!({ "pattern": [{ "column": "C" }, { "column": "C", "row": 1 }] })),
        ),
        (
            "standing",
            "Without a seat",
            json!({
                "admission": TOKEN,
                "lines": [{ "tier": "standing", "from": FROM, "to": TO, "best": { "count": 1 } }]
            }),
        ),
    ]
}

pub(super) fn order_shown(state: &str) -> Value {
    json!({
        "order": ORDER, "sale": SALE, "state": state,
        "lines": [{
            "tier": "second", "from": FROM, "to": TO, "price_minor": 58500,
            "tickets": [
                { "seat": "01-1A", "attendee": "P-1" },
                { "seat": "01-1B", "attendee": "P-2" }
            ]
        }],
        "amount_minor": 117_000, "currency": "CNY",
        "created_at": "2026-11-20T02:00:04.002Z",
        "pay_by": "2026-11-20T02:10:04.002Z",
        "changed_at": "2026-11-20T02:00:04.002Z"
    })
}

pub(super) fn order_reserved() -> Value {
    let mut order = order_shown("pending");
    order["remaining_allowance"] = json!(3);
    order
}

pub(super) fn order_with_payments() -> Value {
    let mut order = order_shown("paid");
    let payment = |payment: &str, outcome: &str, decided_at: &str| {
        json!({
            "provider": "stripe", "payment": payment, "amount_minor": 117_000, "currency": "CNY",
            "outcome": outcome, "decided_at": decided_at
        })
    };
    let accepted = payment("pi_3", "accepted", "2026-11-20T02:03:10.117Z");
    let mut again = payment("pi_4", "refund", "2026-11-20T02:03:12.840Z");
    again["reason"] = json!("second_payment");
    again["refund"] = json!({ "state": "refunded", "changed_at": "2026-11-20T02:03:13.495Z" });
    order["payments"] = json!([accepted, again]);
    order
}

pub(super) fn payment_choice() -> Value {
    json!({ "provider": "stripe", "return_url": "https://shop.example/orders/back" })
}

pub(super) fn payment_started() -> Value {
    json!({
        "order": ORDER, "attempt": 1, "provider": "stripe", "method": "page",
        "url": "https://checkout.stripe.com/c/pay/cs_test_1", "pay_by": "2026-11-20T02:10:04.002Z"
    })
}

pub(super) fn wallets() -> Value {
    json!({ "wallets": [{
        "currency": "EUR", "balance_minor": 4150,
        "entries": [
            { "order": ORDER, "sale": SALE, "kind": "payment", "amount_minor": -5850,
              "at": "2026-11-20T02:00:09.120Z" },
            { "order": "186143527116801031", "sale": "top-ups", "kind": "top_up", "amount_minor": 10000,
              "at": "2026-11-20T01:12:44.871Z" }
        ]
    }] })
}

pub(super) fn points() -> Value {
    json!({ "points": 1110, "growth": 555, "orders": [{ "order": ORDER, "points": 1110, "growth": 555 }] })
}

pub(super) fn refund_of_ticket() -> Value {
    json!({ "number": 1, "tickets": [{ "tier": "second", "seat": "01-1A" }] })
}

/// Requests of operators, in the order in which one order can have them.
pub(super) fn operator_refunds() -> Vec<(&'static str, &'static str, Value)> {
    let mut ticket = refund_of_ticket();
    ticket["reason"] = json!("The passenger is ill.");
    let amount = json!({
        "number": 2, "tickets": [], "amount_minor": 5000, "currency": "CNY",
        "reason": "The train was late."
    });
    vec![
        ("ticket", "One ticket, at its price", ticket),
        ("amount", "Some money; every ticket stays", amount),
        ("whole", "All that is left", json!({ "number": 3, "tickets": "all" })),
        ("again", "Once more, what was refused", json!({ "number": 1, "again": true })),
    ]
}

pub(super) fn order_refund(asked_by: &str) -> Value {
    json!({
        "order": ORDER, "number": 1, "tickets": [{ "tier": "second", "seat": "01-1A" }],
        "amount_minor": 58500, "currency": "CNY", "asked_by": asked_by,
        "made_at": "2026-11-21T09:00:00.000Z",
        "state": "due", "changed_at": "2026-11-21T09:00:00.000Z"
    })
}

pub(super) fn order_refunds() -> Value {
    json!({ "refunds": [order_refund("operator")], "next": 2 })
}

/// Its sale lets tickets be given back, for a fee.
pub(super) fn order_partly_refunded() -> Value {
    let mut order = order_with_payments();
    order["lines"][0]["refundable"] =
        json!({ "until": "2095-12-31T12:00:00.000Z", "fee_minor": 2925 });
    order["lines"][0]["tickets"][0]["refund"] = json!(1);
    order["refunds"] = json!({ "made": 1, "back": 0 });
    order
}

pub(super) fn page() -> Value {
    let allowances = json!([{ "sale": SALE, "held": 2, "remaining": 3, "limit": 5 }]);
    json!({ "orders": [order_shown("paid")], "allowances": allowances, "next": ORDER })
}

pub(super) fn payment_events() -> Vec<(&'static str, &'static str, Value)> {
    let captured = json!({
        "id": "evt_1PtQxZ", "object": "event", "type": "payment_intent.succeeded", "created": 1_795_140_005,
        "data": { "object": {
            "id": PAYMENT, "object": "payment_intent", "status": "succeeded",
            "amount": 117_000, "amount_received": 117_000, "currency": "cny",
            "metadata": { "order": ORDER }
        } }
    });
    let other = json!({ "id": "evt_1PtQxW", "object": "event", "type": "payment_intent.created" });
    vec![
        ("captured", "Money was captured for an order", captured),
        ("other", "Anything else, which is passed over", other),
    ]
}

pub(super) fn callback_replies() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("accepted", "It paid its order", json!({ "outcome": "accepted" })),
        ("refund", "It goes back", json!({ "outcome": "refund", "reason": "too_late" })),
        ("ignored", "It is not about a capture of ours", json!({ "outcome": "ignored" })),
        ("unmatched", "It is ours, and an operator decides", json!({ "outcome": "unmatched" })),
    ]
}
