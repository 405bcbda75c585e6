//! The stops of a day's trains: the query, and the reply.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::Serialize;

use super::checks::{self, Refusal};
use super::cursor::cursor;
use engine::domain::basics::calendar::Day;
use engine::domain::basics::ids::StopId;
use engine::domain::sale::timetable::{NamedStops, StopMark, StopsPage};

/// The number of stops on a page unless the request names another, and the most on a page: more than a country's railway
/// calls at, so that a day is one object in every cache.
pub const STOPS: u16 = 4_000;

// With a name of 255 bytes and an id as long each, twice as long where JSON escapes it, a page stays below the 6 MB of a
// function's reply.
// Source: <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const _: () = assert!(STOPS as usize * (4 * StopId::MAX_BYTES + 32) < 6 * 1024 * 1024);

/// A request for the stops of a day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopsQuery {
    /// The day.
    pub day: Day,
    /// The cursor of the page; `None` for the first page.
    pub cursor: Option<StopsCursor>,
    /// The most stops on the page: 1 to [`STOPS`].
    pub limit: u16,
}

impl StopsQuery {
    /// Reads the query of a request.
    ///
    /// # Errors
    /// Returns the first part of the query that breaks a rule.
    pub fn from_request(request: &Request) -> Result<Self, Refusal> {
        let day = checks::query(request, "date")?;
        let day = day.ok_or_else(|| Refusal::invalid("date", "must be given"))?;
        let cursor = checks::query(request, "cursor")?;
        let limit = checks::query_within(request, "limit", 1..=STOPS)?.unwrap_or(STOPS);
        Ok(Self { day, cursor, limit })
    }
}

cursor! {
    /// Where a page of stops begins: after a stop. As text it is opaque: the base64 of the form and the stop's mark. It is
    /// checked, not signed: whoever makes one up is shown the public stops after another name.
    StopsCursor(StopMark)
}

/// A page of the stops of a day, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StopsReply {
    /// The day.
    pub date: Day,
    /// The stops at which people board a train of the day, or leave it; one entry a name.
    pub stops: Vec<StopsOfName>,
    /// Value of `cursor` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<StopsCursor>,
}

/// The stops of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StopsOfName {
    /// The name people read. As `from` or `to` of a search for trains it finds the trains of all of them.
    pub name: String,
    /// The id of each, as sales and searches know it. A name has more than one where several stations have it, or where
    /// timetables know a station by several ids.
    pub stops: Vec<StopId>,
}

impl StopsReply {
    /// A page of the stops of a day.
    #[must_use]
    pub fn new(date: Day, page: StopsPage) -> Self {
        let (named, next) = page.by_name();
        let of_name = |NamedStops { name, stops }| StopsOfName { name, stops };
        let stops = named.into_iter().map(of_name).collect();
        Self { date, stops, next: next.map(StopsCursor) }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::super::cursor::InvalidCursor;
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is() {
        let cursor = StopsCursor("北京南\tvnp".parse().unwrap());
        let text = cursor.to_string();
        assert_eq!(text.parse(), Ok(cursor));
        let of = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let others = [
            String::new(),
            of("北京南\tvnp"),
            of("2:北京南\tvnp"),
            of("1:"),
            of("1:北京南"),
            of("1:北京南\tVNP"),
            of("1:a\tb\tc"),
            format!("{text}="),
            URL_SAFE_NO_PAD.encode([b'1', b':', 0xff]),
        ];
        for other in others {
            assert_eq!(other.parse::<StopsCursor>(), Err(InvalidCursor), "{other}");
        }
    }
}
