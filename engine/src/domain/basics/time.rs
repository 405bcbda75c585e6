//! Time as an argument: milliseconds since 1970-01-01 UTC, written as RFC 3339.
//!
//! Nothing in the engine reads a clock; the edges (a Lambda handler, the local gateway, a test)
//! pass `now` in, so that every run can be repeated.

use std::fmt;

use chrono::{DateTime, Datelike as _, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// A moment, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

/// The text is not an RFC 3339 date and time with an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a time must be RFC 3339 with its offset, such as 2026-11-21T10:00:00Z")]
pub struct InvalidTime;

impl Timestamp {
    /// A moment from milliseconds since the Unix epoch.
    #[must_use]
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// The time of the system clock. Only the edges call this: handlers, the local gateway, tests.
    #[must_use]
    pub fn now() -> Self {
        Self(Utc::now().timestamp_millis())
    }

    /// Milliseconds since the Unix epoch.
    #[must_use]
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// The moment `ms` milliseconds later.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// The moment `seconds` seconds later.
    #[must_use]
    pub const fn plus_seconds(self, seconds: i64) -> Self {
        self.plus_ms(seconds.saturating_mul(1000))
    }

    /// Milliseconds from `earlier` to this moment; negative when it is later.
    #[must_use]
    pub const fn ms_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A length of time in whole seconds, from 0 to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoundedSeconds<const MAX: u32>(u32);

impl<const MAX: u32> BoundedSeconds<MAX> {
    /// The longest, in seconds.
    pub const MAX_SECONDS: u32 = MAX;

    /// A length that is known to be within the bound, which the compiler checks where it is a constant.
    pub(crate) const fn new(seconds: u32) -> Self {
        assert!(seconds <= MAX, "it is longer than its bound");
        Self(seconds)
    }

    /// A length of some seconds; `None` if it is longer than the bound.
    #[must_use]
    pub const fn from_seconds(seconds: u32) -> Option<Self> {
        if seconds > MAX { None } else { Some(Self(seconds)) }
    }

    /// The length in seconds.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        self.0
    }
}

/// A clock for work that may take so long that the time must be read again.
///
/// A moment is a clock that stands still: for work that is over before anything changes, and for
/// tests. Edges give `&Timestamp::now`.
pub trait Clock: Send + Sync {
    fn time(&self) -> Timestamp;
}

impl Clock for Timestamp {
    fn time(&self) -> Timestamp {
        *self
    }
}

impl<F: Fn() -> Timestamp + Send + Sync> Clock for F {
    fn time(&self) -> Timestamp {
        self()
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTime;
    fn try_from(text: String) -> Result<Self, InvalidTime> {
        text.parse()
    }
}

impl std::str::FromStr for Timestamp {
    type Err = InvalidTime;
    fn from_str(text: &str) -> Result<Self, InvalidTime> {
        let time = DateTime::parse_from_rfc3339(text).map_err(|_| InvalidTime)?.to_utc();
        // An offset can lead out of the years that have four digits, and so cannot be written.
        if (0..=9999).contains(&time.year()) {
            Ok(Self(time.timestamp_millis()))
        } else {
            Err(InvalidTime)
        }
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> String {
        time.to_string()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::from_timestamp_millis(self.0) {
            Some(time) => f.write_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true)),
            // Beyond chrono's calendar (the year 262,142): no real moment, but never a panic.
            None => write!(f, "{} ms", self.0),
        }
    }
}

impl schemars::JsonSchema for Timestamp {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Timestamp".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_honoured_and_demanded() {
        let utc: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
        let taipei: Timestamp = "2026-11-21T18:00:00+08:00".parse().unwrap();
        assert_eq!(utc, taipei);
        assert_eq!(utc.to_string(), "2026-11-21T10:00:00.000Z");
        assert!("2026-11-21T10:00:00".parse::<Timestamp>().is_err());
    }

    #[test]
    fn what_is_read_can_be_written_and_read_again() {
        for text in ["9999-12-31T23:59:59.999Z", "0000-01-01T00:00:00.000Z"] {
            assert_eq!(text.parse::<Timestamp>().map(|time| time.to_string()).as_deref(), Ok(text));
        }
        // A leap second is the first of the next minute.
        let leap: Timestamp = "2016-12-31T23:59:60Z".parse().unwrap();
        assert_eq!(leap.to_string().parse(), Ok(leap));
        for beyond in ["9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"] {
            assert_eq!(beyond.parse::<Timestamp>(), Err(InvalidTime), "{beyond}");
        }
    }
}
