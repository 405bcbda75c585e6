//! The table of problems, and each refusal with its problem.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Kind, Problem, no_such_order, not_loaded};
use crate::http::{checks, identity, routes, tokens};
use crate::providers::SignatureDefect;
use engine::domain::ids::{AttendeeId, SeatName, TierId};
use engine::domain::order::OrderState;
use engine::domain::sale::Defect;
use engine::domain::time::Timestamp;
use engine::flows::{admit, cancel, publish, reserve};
use engine::ports::StoreError;

fn pages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/problems")
}

#[test]
fn every_type_has_its_page_and_every_page_its_type() {
    let page = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".md").expect("a page of another format").to_owned()
    };
    let pages_found: BTreeSet<String> = std::fs::read_dir(pages()).unwrap().map(page).collect();
    let types: BTreeSet<String> = Kind::ALL.iter().map(|kind| kind.slug().to_owned()).collect();
    assert_eq!(types.len(), Kind::ALL.len(), "two types share a slug");
    assert_eq!(pages_found, types);
}

#[test]
fn every_page_shows_the_document_as_it_is() {
    for kind in Kind::ALL {
        let path = pages().join(kind.slug()).with_extension("md");
        let page = std::fs::read_to_string(&path).unwrap();
        let slug = kind.slug();
        assert!(page.starts_with(&format!("# {}\n", kind.title())), "{slug}: title");
        let (_, example) = page.split_once("```json\n").expect(slug);
        let (example, _) = example.split_once("\n```").expect(slug);
        let example: Value = serde_json::from_str(example).expect(slug);
        assert_eq!(example["type"], json!(format!("/problems/{slug}")), "{slug}");
        assert_eq!(example["status"], json!(kind.status().as_u16()), "{slug}");
        assert_eq!(example["title"], json!(kind.title()), "{slug}");
        let status = kind.status().as_u16();
        let second = page.lines().nth(2);
        assert_eq!(second, Some(format!("`/problems/{slug}`, status {status}.").as_str()));
        let has_retry = kind.has_retry_after();
        assert_eq!(page.contains("Retry-After"), has_retry, "{slug}: when to come back");
        assert_eq!(example.get("retry_after_seconds").is_some(), has_retry, "{slug}");
        for heading in ["## When", "## What to do", "## Example"] {
            assert!(page.contains(heading), "{slug}: {heading}");
        }
    }
}

/// What of a problem a table can show: status, slug, seconds to wait, extension members.
fn shown(problem: impl Into<Problem>) -> (u16, &'static str, Option<u32>, Value) {
    let problem = problem.into();
    let members = Value::Object(problem.extensions.clone());
    let kind = problem.kind;
    assert_eq!(problem.retry_after_seconds.is_some(), kind.has_retry_after(), "{kind:?}");
    (problem.kind.status().as_u16(), problem.kind.slug(), problem.retry_after_seconds, members)
}

fn stores() -> [(StoreError, u16, &'static str, Option<u32>); 3] {
    let text = || "10.0.0.7 refused hunter2".to_owned();
    [
        (StoreError::Unavailable(text()), 503, "unavailable", Some(1)),
        (StoreError::Unknown(text()), 503, "outcome-unknown", Some(1)),
        (StoreError::Contract(text()), 500, "internal", None),
    ]
}

#[test]
fn what_failed_inside_is_never_returned() {
    for (error, status, slug, retry) in stores() {
        let through: [Problem; 5] = [
            error.clone().into(),
            checks::Refusal::Store(error.clone()).into(),
            admit::Refusal::Store(error.clone()).into(),
            reserve::Refusal::Store(error.clone()).into(),
            publish::Refusal::Store(error).into(),
        ];
        for problem in through {
            let text = serde_json::to_string(&problem).unwrap();
            assert!(!text.contains("hunter2") && !text.contains("10.0.0.7"), "{text}");
            assert_eq!(shown(problem), (status, slug, retry, json!({})));
        }
    }
}

#[test]
fn every_refusal_of_a_reservation() {
    use reserve::Refusal;
    let tier = || TierId::new("vip").unwrap();
    let seats = vec![SeatName::new("A-1").unwrap(), SeatName::new("A-2").unwrap()];
    let attendee = AttendeeId::new("p1").unwrap();
    let none = || json!({});
    let table = [
        (Refusal::NotLoaded, (503, "not-loaded", Some(2), none())),
        (Refusal::SaleClosed, (403, "sale-closed", None, none())),
        (
            Refusal::LimitReached { remaining: 1 },
            (403, "limit-reached", None, json!({ "remaining_allowance": 1 })),
        ),
        (
            Refusal::SeatTaken(tier(), seats),
            (409, "seat-taken", None, json!({ "tier": "vip", "seats": ["A-1", "A-2"] })),
        ),
        (Refusal::SoldOut(tier()), (409, "sold-out", None, json!({ "tier": "vip" }))),
        (Refusal::NoAdjacent(tier()), (409, "no-adjacent", None, json!({ "tier": "vip" }))),
        (Refusal::TokenReused, (422, "token-reused", None, none())),
        (Refusal::HoldExpired, (410, "hold-expired", None, none())),
        (
            Refusal::Resolved(OrderState::RefundDue),
            (409, "order-resolved", None, json!({ "state": "refund_due" })),
        ),
        (
            Refusal::AttendeeTaken(attendee),
            (409, "attendee-taken", None, json!({ "attendee": "p1" })),
        ),
        (Refusal::NumberClash, (403, "not-admitted", None, none())),
        (Refusal::Contended, (503, "unavailable", Some(1), none())),
    ];
    for (refusal, expected) in table {
        assert_eq!(shown(refusal), expected);
    }
}

#[test]
fn every_other_refusal() {
    let none = || json!({});
    let opens_at = Timestamp::from_ms(1_800_000_000_000);
    let defects = serde_json::from_value::<engine::domain::sale::SaleFile>(json!({
        "sale": "s", "title": "", "currency": "EUR", "limit_per_buyer": 1,
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2027-01-01T00:00:00Z",
        "pay_window_seconds": 60, "tiers": []
    }));
    let defects: Vec<Defect> = engine::domain::sale::Sale::new(defects.unwrap()).unwrap_err();
    let count = defects.len();
    let table = [
        (
            shown(admit::Refusal::NotOpen(opens_at)),
            (403, "sale-closed", None, json!({ "opens_at": "2027-01-15T08:00:00.000Z" })),
        ),
        (shown(admit::Refusal::SaleClosed), (403, "sale-closed", None, none())),
        (shown(admit::Refusal::SoldOut), (409, "sold-out", None, none())),
        (shown(admit::Refusal::Waiting { retry_ms: 0 }), (429, "waiting", Some(1), none())),
        (
            shown(admit::Refusal::TooFast { retry_ms: 4001 }),
            (429, "too-many-requests", Some(5), none()),
        ),
        (shown(cancel::Refusal::NotFound), (404, "not-found", None, none())),
        (
            shown(cancel::Refusal::Resolved(OrderState::Paid)),
            (409, "order-resolved", None, json!({ "state": "paid" })),
        ),
        (shown(publish::Refusal::SeatsDiffer), (409, "seats-differ", None, none())),
        (shown(publish::Refusal::Busy), (503, "unavailable", Some(2), none())),
        (shown(checks::Refusal::TooLarge(9)), (413, "too-large", None, json!({ "most_bytes": 9 }))),
        (shown(checks::Refusal::NotJson), (415, "unsupported-media-type", None, none())),
        (shown(checks::Refusal::Malformed("x".into())), (400, "malformed", None, none())),
        (shown(checks::Refusal::Shape("x".into())), (422, "invalid", None, none())),
        (
            shown(checks::Refusal::invalid("lines[0]", "must be")),
            (422, "invalid", None, json!({ "at": "lines[0]" })),
        ),
        (shown(checks::Refusal::NoSuchSale), (404, "not-found", None, none())),
        (shown(routes::NoRoute), (404, "not-found", None, none())),
        (shown(identity::Unknown::Buyer), (401, "not-authenticated", None, none())),
        (shown(identity::Unknown::Operator), (401, "not-authenticated", None, none())),
        (shown(tokens::Defect::Missing), (403, "not-admitted", None, none())),
        (shown(tokens::Defect::Malformed), (403, "not-admitted", None, none())),
        (shown(tokens::Defect::NotOurs), (403, "not-admitted", None, none())),
        (shown(tokens::Defect::OtherSale), (403, "not-admitted", None, none())),
        (shown(tokens::Defect::OtherBuyer), (403, "not-admitted", None, none())),
        (shown(tokens::Defect::Expired), (403, "not-admitted", None, none())),
        (
            shown(tokens::Defect::TooManyTickets(2)),
            (403, "not-admitted", None, json!({ "most_tickets": 2 })),
        ),
        (shown(tokens::NoKey), (500, "internal", None, none())),
        (shown(SignatureDefect::UnknownProvider), (404, "not-found", None, none())),
        (shown(SignatureDefect::Missing), (401, "not-authenticated", None, none())),
        (shown(SignatureDefect::Malformed), (401, "not-authenticated", None, none())),
        (shown(SignatureDefect::OutsideTolerance), (401, "not-authenticated", None, none())),
        (shown(SignatureDefect::Mismatch), (401, "not-authenticated", None, none())),
        (shown(not_loaded()), (503, "not-loaded", Some(2), none())),
        (shown(no_such_order()), (404, "not-found", None, none())),
    ];
    for (found, expected) in table {
        assert_eq!(found, expected);
    }
    let (status, slug, _, members) = shown(checks::Refusal::Defects(defects));
    assert_eq!((status, slug), (422, "invalid"));
    assert_eq!(members["defects"].as_array().map(Vec::len), Some(count));
    assert_eq!(members["defects"][0]["at"], json!("title"));
}

#[test]
fn a_problem_is_a_flat_document() {
    let problem = Problem::from(reserve::Refusal::LimitReached { remaining: 0 });
    assert_eq!(
        serde_json::to_value(&problem).unwrap(),
        json!({
            "type": "/problems/limit-reached", "title": "The limit of tickets is reached",
            "status": 403, "detail": "the limit allows 0 more tickets",
            "remaining_allowance": 0
        })
    );
}
