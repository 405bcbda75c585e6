//! Problem details (RFC 9457): the one place where a refusal becomes HTTP.
//!
//! `kinds` is the table of the types. Every refusal of the engine becomes a problem: `from_flows` has those of flows
//! and stores, `from_rooms` those of waiting rooms, `from_requests` those of requests and callers. A new refusal does
//! not compile until it has a type, and a new type does not pass its test until it has a page in `docs/problems/`.
//! The cause of an internal failure is logged here and never returned.

mod from_flows;
mod from_requests;
mod from_rooms;
mod kinds;
#[cfg(test)]
mod tests;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

pub use from_flows::{no_such_order, not_loaded, sale_archived};
pub use from_rooms::{slot_is_busy, too_many_codes};
pub use kinds::{AdmissionFate, Kind};

/// A problem document (RFC 9457): the body of every refusal.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    kind: Kind,
    detail: String,
    extensions: Map<String, Value>,
    retry_after_seconds: Option<u32>,
}

impl Problem {
    /// A problem of a kind, with the cause of this refusal in words for the caller.
    pub fn new(kind: Kind, detail: impl ToString) -> Self {
        let detail = detail.to_string();
        Self { kind, detail, extensions: Map::new(), retry_after_seconds: None }
    }

    /// The problem with one more extension member.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Serialize) -> Self {
        // What we add is text, numbers and lists of them.
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.extensions.insert(member.to_owned(), value);
        self
    }

    /// The problem with a delay before the caller's next attempt, in milliseconds. The reply has whole seconds, rounded
    /// up, at least one.
    #[must_use]
    pub fn retry_after_ms(self, ms: i64) -> Self {
        let seconds = ms.max(1).saturating_add(999) / 1000;
        Self { retry_after_seconds: Some(u32::try_from(seconds).unwrap_or(u32::MAX)), ..self }
    }

    /// The kind of the problem, which decides its type, title and status.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The seconds after which the caller may try again; `None` if trying again does not help.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.retry_after_seconds
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Written as it is: refusals are most of what a gate answers in an on-sale.
        let mut document = serializer.serialize_map(None)?;
        for (member, value) in &self.extensions {
            document.serialize_entry(member, value)?;
        }
        document.serialize_entry("type", &self.kind.uri())?;
        document.serialize_entry("title", self.kind.title())?;
        document.serialize_entry("status", &self.kind.status().as_u16())?;
        document.serialize_entry("detail", &self.detail)?;
        if let Some(seconds) = self.retry_after_seconds {
            document.serialize_entry("retry_after_seconds", &seconds)?;
        }
        document.end()
    }
}
