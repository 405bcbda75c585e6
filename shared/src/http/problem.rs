//! Problem details (RFC 9457): the one place where a refusal becomes HTTP.
//!
//! Every refusal of the engine is turned into a problem here, exhaustively: a new refusal does not
//! compile until it has its type, and a new type does not pass its test until it has its page in
//! `docs/problems/`. What failed inside is logged here and never returned.

use lambda_http::http::StatusCode;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::http::{checks, identity, routes, tokens};
use crate::providers::stripe::{event, signature};
use engine::domain::ids::{AttendeeId, SeatName, TierId};
use engine::domain::order::OrderState;
use engine::domain::sale::Defect;
use engine::domain::time::Timestamp;
use engine::flows::{admit, cancel, publish, reserve};
use engine::ports::StoreError;

/// When to try again after a store failed, in milliseconds.
const STORE_RETRY_MS: i64 = 1000;
/// When to try again while a sale is being loaded, in milliseconds.
const LOAD_RETRY_MS: i64 = 2000;
/// When to try again after others were quicker, in milliseconds.
const CONTENDED_RETRY_MS: i64 = 1000;

/// The types of problems. Each has a page `docs/problems/<slug>.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The body is not well-formed JSON.
    Malformed,
    /// The body is too large.
    TooLarge,
    /// The body is not declared as JSON.
    UnsupportedMediaType,
    /// The request breaks a rule.
    Invalid,
    /// The admission was used for another request.
    TokenReused,
    /// Nobody we know sent this.
    NotAuthenticated,
    /// The buyer is not admitted.
    NotAdmitted,
    /// The sale takes no reservations now.
    SaleClosed,
    /// The buyer may not have so many tickets.
    LimitReached,
    /// The caller is no operator.
    NotPermitted,
    /// There is no such thing, or it is not the caller's.
    NotFound,
    /// There is something at this path, but not for this method.
    MethodNotAllowed,
    /// The order was not paid in time.
    HoldExpired,
    /// Chosen seats belong to others.
    SeatTaken,
    /// An attendee has a ticket already.
    AttendeeTaken,
    /// Nothing is left that fits.
    SoldOut,
    /// Seats are left, but not side by side.
    NoAdjacent,
    /// The order has ended, or is paid.
    OrderResolved,
    /// The sale's seats, stops and currency cannot change.
    SeatsDiffer,
    /// The caller, or everyone together, asks too often.
    TooManyRequests,
    /// Nothing is left now, but held seats may come back.
    Waiting,
    /// The engine cannot answer now; nothing happened.
    Unavailable,
    /// The engine cannot tell whether it happened; the same request finds out.
    OutcomeUnknown,
    /// The sale is being prepared.
    NotLoaded,
    /// The engine has a bug.
    Internal,
}

impl Kind {
    /// Every type, for tables and tests.
    pub const ALL: [Self; 25] = [
        Self::Malformed,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Invalid,
        Self::TokenReused,
        Self::NotAuthenticated,
        Self::NotAdmitted,
        Self::SaleClosed,
        Self::LimitReached,
        Self::NotPermitted,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::HoldExpired,
        Self::SeatTaken,
        Self::AttendeeTaken,
        Self::SoldOut,
        Self::NoAdjacent,
        Self::OrderResolved,
        Self::SeatsDiffer,
        Self::TooManyRequests,
        Self::Waiting,
        Self::Unavailable,
        Self::OutcomeUnknown,
        Self::NotLoaded,
        Self::Internal,
    ];

    /// The last part of the type's URI, and the name of its page.
    #[must_use]
    pub const fn slug(self) -> &'static str {
        self.row().1
    }

    /// The HTTP status.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        self.row().0
    }

    /// The type in a few words; the same for every occurrence.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().2
    }

    /// Where the type is explained, and what its documents have in `type`.
    #[must_use]
    pub fn uri(self) -> String {
        format!("/problems/{}", self.slug())
    }

    /// True if its documents say when to come back, in a header as well: the same request may then
    /// be answered otherwise.
    #[must_use]
    pub const fn is_passing(self) -> bool {
        match self {
            Self::TooManyRequests
            | Self::Waiting
            | Self::Unavailable
            | Self::OutcomeUnknown
            | Self::NotLoaded => true,
            Self::Malformed
            | Self::TooLarge
            | Self::UnsupportedMediaType
            | Self::Invalid
            | Self::TokenReused
            | Self::NotAuthenticated
            | Self::NotAdmitted
            | Self::SaleClosed
            | Self::LimitReached
            | Self::NotPermitted
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::HoldExpired
            | Self::SeatTaken
            | Self::AttendeeTaken
            | Self::SoldOut
            | Self::NoAdjacent
            | Self::OrderResolved
            | Self::SeatsDiffer
            | Self::Internal => false,
        }
    }

    /// The schema of its documents.
    pub fn schema(self, generator: &mut SchemaGenerator) -> Schema {
        let text = |says: &str| json!({ "type": "string", "description": says });
        let mut properties = Map::new();
        properties.insert("type".to_owned(), json!({ "const": self.uri() }));
        properties.insert("title".to_owned(), json!({ "const": self.title() }));
        properties.insert("status".to_owned(), json!({ "const": self.status().as_u16() }));
        properties.insert("detail".to_owned(), text("What happened this time, for people."));
        let mut required = vec!["type", "title", "status", "detail"];
        if self.is_passing() {
            let seconds = json!({
                "type": "integer", "minimum": 1,
                "description": "After how many seconds to try again, as in Retry-After."
            });
            properties.insert("retry_after_seconds".to_owned(), seconds);
            required.push("retry_after_seconds");
        }
        for Member { name, schema, is_always_there } in self.members(generator) {
            properties.insert(name.to_owned(), schema.to_value());
            required.extend(is_always_there.then_some(name));
        }
        json_schema!({
            "title": self.title(),
            "description": format!("docs{}.md says when this happens and what to do.", self.uri()),
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        })
    }

    /// What its documents have besides the members of every problem.
    fn members(self, generator: &mut SchemaGenerator) -> Vec<Member> {
        let always = |name, schema| Member { name, schema, is_always_there: true };
        let sometimes = |name, schema| Member { name, schema, is_always_there: false };
        let count = || json_schema!({ "type": "integer", "minimum": 0 });
        match self {
            Self::Invalid => vec![
                sometimes(
                    "at",
                    json_schema!({
                        "type": "string",
                        "description": "Which part of the request, as a path such as lines[0].seats[1]."
                    }),
                ),
                sometimes("defects", generator.subschema_for::<Vec<Defect>>()),
            ],
            Self::TooLarge => vec![always("most_bytes", count())],
            Self::NotAdmitted => vec![sometimes("most_tickets", count())],
            Self::SaleClosed => vec![sometimes("opens_at", generator.subschema_for::<Timestamp>())],
            Self::LimitReached => vec![always("remaining_allowance", count())],
            Self::SeatTaken => vec![
                always("tier", generator.subschema_for::<TierId>()),
                always("seats", generator.subschema_for::<Vec<SeatName>>()),
            ],
            Self::AttendeeTaken => {
                vec![always("attendee", generator.subschema_for::<AttendeeId>())]
            }
            Self::SoldOut => vec![sometimes("tier", generator.subschema_for::<TierId>())],
            Self::NoAdjacent => vec![always("tier", generator.subschema_for::<TierId>())],
            Self::OrderResolved => vec![always("state", generator.subschema_for::<OrderState>())],
            Self::Malformed
            | Self::UnsupportedMediaType
            | Self::TokenReused
            | Self::NotAuthenticated
            | Self::NotPermitted
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::HoldExpired
            | Self::SeatsDiffer
            | Self::TooManyRequests
            | Self::Waiting
            | Self::Unavailable
            | Self::OutcomeUnknown
            | Self::NotLoaded
            | Self::Internal => Vec::new(),
        }
    }

    const fn row(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::Malformed => (S::BAD_REQUEST, "malformed", "The body cannot be read"),
            Self::TooLarge => (S::PAYLOAD_TOO_LARGE, "too-large", "The body is too large"),
            Self::UnsupportedMediaType => {
                (S::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body must be JSON")
            }
            Self::Invalid => (S::UNPROCESSABLE_ENTITY, "invalid", "The request breaks a rule"),
            Self::TokenReused => (
                S::UNPROCESSABLE_ENTITY,
                "token-reused",
                "The admission was used for another request",
            ),
            Self::NotAuthenticated => {
                (S::UNAUTHORIZED, "not-authenticated", "The sender is not known")
            }
            Self::NotAdmitted => (S::FORBIDDEN, "not-admitted", "An admission is needed"),
            Self::SaleClosed => (S::FORBIDDEN, "sale-closed", "The sale takes no reservations now"),
            Self::LimitReached => {
                (S::FORBIDDEN, "limit-reached", "The limit of tickets is reached")
            }
            Self::NotPermitted => (S::FORBIDDEN, "not-permitted", "Only an operator may do this"),
            Self::MethodNotAllowed => {
                (S::METHOD_NOT_ALLOWED, "method-not-allowed", "The path has no such method")
            }
            Self::NotFound => (S::NOT_FOUND, "not-found", "There is no such thing"),
            Self::HoldExpired => (S::GONE, "hold-expired", "The order was not paid in time"),
            Self::SeatTaken => (S::CONFLICT, "seat-taken", "Chosen seats are taken"),
            Self::AttendeeTaken => {
                (S::CONFLICT, "attendee-taken", "An attendee has a ticket already")
            }
            Self::SoldOut => (S::CONFLICT, "sold-out", "Nothing is left that fits"),
            Self::NoAdjacent => (S::CONFLICT, "no-adjacent", "No seats are left side by side"),
            Self::OrderResolved => (S::CONFLICT, "order-resolved", "The order is decided"),
            Self::SeatsDiffer => (S::CONFLICT, "seats-differ", "The seats of a sale cannot change"),
            Self::TooManyRequests => {
                (S::TOO_MANY_REQUESTS, "too-many-requests", "Too many requests")
            }
            Self::Waiting => (S::TOO_MANY_REQUESTS, "waiting", "Held seats may come back"),
            Self::Unavailable => (S::SERVICE_UNAVAILABLE, "unavailable", "No answer now"),
            Self::OutcomeUnknown => {
                (S::SERVICE_UNAVAILABLE, "outcome-unknown", "The outcome is not known")
            }
            Self::NotLoaded => (S::SERVICE_UNAVAILABLE, "not-loaded", "The sale is being prepared"),
            Self::Internal => (S::INTERNAL_SERVER_ERROR, "internal", "Something went wrong"),
        }
    }
}

/// An extension member of a type's documents.
struct Member {
    name: &'static str,
    schema: Schema,
    is_always_there: bool,
}

/// A problem document.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    kind: Kind,
    detail: String,
    extensions: Map<String, Value>,
    retry_after_seconds: Option<u32>,
}

impl Problem {
    /// A problem with what happened this time, in words for the caller.
    pub fn new(kind: Kind, detail: impl ToString) -> Self {
        let detail = detail.to_string();
        Self { kind, detail, extensions: Map::new(), retry_after_seconds: None }
    }

    /// The same with an extension member.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Serialize) -> Self {
        // What we add is text, numbers and lists of them.
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.extensions.insert(member.to_owned(), value);
        self
    }

    /// The same, to be tried again after so many milliseconds: whole seconds, at least one.
    #[must_use]
    pub fn retry_after_ms(self, ms: i64) -> Self {
        let seconds = ms.max(1).saturating_add(999) / 1000;
        Self { retry_after_seconds: Some(u32::try_from(seconds).unwrap_or(u32::MAX)), ..self }
    }

    /// Its type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// After how many seconds to try again, if that is worth it.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.retry_after_seconds
    }
}

impl Serialize for Problem {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut document = self.extensions.clone();
        document.insert("type".to_owned(), json!(self.kind.uri()));
        document.insert("title".to_owned(), json!(self.kind.title()));
        document.insert("status".to_owned(), json!(self.kind.status().as_u16()));
        document.insert("detail".to_owned(), json!(self.detail));
        if let Some(seconds) = self.retry_after_seconds {
            document.insert("retry_after_seconds".to_owned(), json!(seconds));
        }
        document.serialize(serializer)
    }
}

impl From<StoreError> for Problem {
    /// What failed is logged here, once; the caller is told no more than whether to come back.
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "a store did not answer");
                let detail = "nothing happened; try the same request again";
                Self::new(Kind::Unavailable, detail).retry_after_ms(STORE_RETRY_MS)
            }
            StoreError::Unknown(_) => {
                tracing::warn!(%error, "a store's answer was lost");
                let detail = "it may have happened; the same request again finds out";
                Self::new(Kind::OutcomeUnknown, detail).retry_after_ms(STORE_RETRY_MS)
            }
            StoreError::Contract(_) => {
                tracing::error!(%error, "a contract is broken");
                Self::new(Kind::Internal, "the fault is ours, and it is logged")
            }
        }
    }
}

impl From<checks::Refusal> for Problem {
    fn from(refusal: checks::Refusal) -> Self {
        use checks::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::TooLarge(most) => Self::new(Kind::TooLarge, detail).with("most_bytes", most),
            Refusal::NotJson => Self::new(Kind::UnsupportedMediaType, detail),
            Refusal::Malformed(_) => Self::new(Kind::Malformed, detail),
            Refusal::Shape(_) => Self::new(Kind::Invalid, detail),
            Refusal::Invalid { at, rule } => Self::new(Kind::Invalid, rule).with("at", at),
            Refusal::Defects(defects) => Self::new(Kind::Invalid, detail).with("defects", defects),
            Refusal::NoSuchSale => Self::new(Kind::NotFound, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<routes::NoRoute> for Problem {
    fn from(refusal: routes::NoRoute) -> Self {
        Self::new(Kind::NotFound, refusal)
    }
}

impl From<identity::Unknown> for Problem {
    fn from(refusal: identity::Unknown) -> Self {
        match refusal {
            identity::Unknown::Buyer | identity::Unknown::Operator => {
                Self::new(Kind::NotAuthenticated, refusal)
            }
        }
    }
}

impl From<tokens::Defect> for Problem {
    fn from(defect: tokens::Defect) -> Self {
        use tokens::Defect;
        let problem = Self::new(Kind::NotAdmitted, &defect);
        match defect {
            Defect::TooManyTickets(most) => problem.with("most_tickets", most),
            Defect::Missing
            | Defect::Malformed
            | Defect::NotOurs
            | Defect::OtherSale
            | Defect::OtherBuyer
            | Defect::Expired
            | Defect::NumberClash => problem,
        }
    }
}

impl From<tokens::NoKey> for Problem {
    fn from(error: tokens::NoKey) -> Self {
        StoreError::Contract(error.to_string()).into()
    }
}

impl From<signature::Defect> for Problem {
    fn from(defect: signature::Defect) -> Self {
        use signature::Defect;
        tracing::warn!(%defect, "a payment callback was not believed");
        match defect {
            Defect::UnknownProvider => Self::new(Kind::NotFound, defect),
            Defect::Missing | Defect::Malformed | Defect::OutsideTolerance | Defect::Mismatch => {
                Self::new(Kind::NotAuthenticated, defect)
            }
        }
    }
}

impl From<event::Defect> for Problem {
    fn from(defect: event::Defect) -> Self {
        tracing::error!(%defect, "a signed payment event cannot be read: money may be waiting");
        Self::new(Kind::Invalid, defect)
    }
}

impl From<admit::Refusal> for Problem {
    fn from(refusal: admit::Refusal) -> Self {
        use admit::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotOpen(opens_at) => {
                Self::new(Kind::SaleClosed, detail).with("opens_at", opens_at)
            }
            Refusal::SaleClosed => Self::new(Kind::SaleClosed, detail),
            Refusal::SoldOut => Self::new(Kind::SoldOut, detail),
            Refusal::Waiting { retry_ms } => {
                Self::new(Kind::Waiting, detail).retry_after_ms(retry_ms)
            }
            Refusal::TooFast { retry_ms } => {
                Self::new(Kind::TooManyRequests, detail).retry_after_ms(retry_ms)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<reserve::Refusal> for Problem {
    fn from(refusal: reserve::Refusal) -> Self {
        use reserve::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotLoaded => not_loaded(),
            Refusal::SaleClosed => Self::new(Kind::SaleClosed, detail),
            Refusal::LimitReached { remaining } => {
                Self::new(Kind::LimitReached, detail).with("remaining_allowance", remaining)
            }
            Refusal::SeatTaken(tier, seats) => {
                Self::new(Kind::SeatTaken, detail).with("tier", tier).with("seats", seats)
            }
            Refusal::SoldOut(tier) => Self::new(Kind::SoldOut, detail).with("tier", tier),
            Refusal::NoAdjacent(tier) => Self::new(Kind::NoAdjacent, detail).with("tier", tier),
            Refusal::TokenReused => Self::new(Kind::TokenReused, detail),
            Refusal::HoldExpired => Self::new(Kind::HoldExpired, detail),
            Refusal::Resolved(state) => resolved(state),
            Refusal::AttendeeTaken(attendee) => {
                Self::new(Kind::AttendeeTaken, detail).with("attendee", attendee)
            }
            Refusal::NumberClash => tokens::Defect::NumberClash.into(),
            Refusal::Contended => {
                Self::new(Kind::Unavailable, detail).retry_after_ms(CONTENDED_RETRY_MS)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<cancel::Refusal> for Problem {
    fn from(refusal: cancel::Refusal) -> Self {
        use cancel::Refusal;
        match refusal {
            Refusal::NotFound => no_such_order(),
            Refusal::Resolved(state) => resolved(state),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<publish::Refusal> for Problem {
    fn from(refusal: publish::Refusal) -> Self {
        use publish::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::SeatsDiffer => Self::new(Kind::SeatsDiffer, detail),
            Refusal::Busy => Self::new(Kind::Unavailable, detail).retry_after_ms(LOAD_RETRY_MS),
            Refusal::Store(error) => error.into(),
        }
    }
}

/// The sale is not in Redis yet, or no longer.
#[must_use]
pub fn not_loaded() -> Problem {
    Problem::new(Kind::NotLoaded, reserve::Refusal::NotLoaded).retry_after_ms(LOAD_RETRY_MS)
}

/// The caller has no such order; another buyer's looks the same.
#[must_use]
pub fn no_such_order() -> Problem {
    Problem::new(Kind::NotFound, cancel::Refusal::NotFound)
}

fn resolved(state: OrderState) -> Problem {
    Problem::new(Kind::OrderResolved, cancel::Refusal::Resolved(state)).with("state", state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::ids::{AttendeeId, SeatName, TierId};
    use engine::domain::sale::Defect;
    use engine::domain::time::Timestamp;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

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
            let passing = kind.is_passing();
            assert_eq!(page.contains("Retry-After"), passing, "{slug}: when to come back");
            assert_eq!(example.get("retry_after_seconds").is_some(), passing, "{slug}");
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
        assert_eq!(problem.retry_after_seconds.is_some(), kind.is_passing(), "{kind:?}");
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
            (
                shown(checks::Refusal::TooLarge(9)),
                (413, "too-large", None, json!({ "most_bytes": 9 })),
            ),
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
            (shown(signature::Defect::UnknownProvider), (404, "not-found", None, none())),
            (shown(signature::Defect::Missing), (401, "not-authenticated", None, none())),
            (shown(signature::Defect::Malformed), (401, "not-authenticated", None, none())),
            (shown(signature::Defect::OutsideTolerance), (401, "not-authenticated", None, none())),
            (shown(signature::Defect::Mismatch), (401, "not-authenticated", None, none())),
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
}
