//! Time zones by their names in the IANA database, and the clocks of a place.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use jiff::tz;
use jiff::tz::AmbiguousOffset;
use serde::{Deserialize, Serialize};

use super::calendar::LocalTime;
use super::time::Timestamp;

/// A time zone of the IANA database, such as `Europe/Vienna`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TimeZone(tz::TimeZone);

/// The text names no time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a time zone of the IANA database, such as Europe/Vienna")]
pub struct InvalidTimeZone;

impl TimeZone {
    /// Reads a name, in the case of the database.
    ///
    /// # Errors
    /// Refuses a name that the database does not have.
    pub fn new(name: &str) -> Result<Self, InvalidTimeZone> {
        let zone = tz::db().get(name).map_err(|_| InvalidTimeZone)?;
        if zone.iana_name() == Some(name) && !zone.is_unknown() {
            Ok(Self(zone))
        } else {
            Err(InvalidTimeZone)
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or_default()
    }

    /// The moments at which the clocks of the zone show a local time: the first and the last, which differ where clocks
    /// are put back. A time that the clocks skip is that of a clock which nobody has put on.
    #[must_use]
    pub fn moments(&self, local: LocalTime) -> [Timestamp; 2] {
        let civil = local.civil();
        let offsets = match self.0.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => [offset; 2],
            AmbiguousOffset::Gap { before, .. } => [before; 2],
            AmbiguousOffset::Fold { before, after } => [before, after],
        };
        // Days lie between the years 1900 and 2999, which the library has.
        offsets.map(|offset| {
            let moment = offset.to_timestamp(civil).unwrap_or_default();
            Timestamp::from_ms(moment.as_millisecond())
        })
    }
}

impl TimeZone {
    /// The moment of a local time that is not before another one: where clocks are put back, the second of the two if the
    /// first is.
    #[must_use]
    pub fn moment_after(&self, local: LocalTime, last: Option<Timestamp>) -> Timestamp {
        let [first, second] = self.moments(local);
        if last.is_some_and(|last| first < last) { second } else { first }
    }
}

impl Hash for TimeZone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl FromStr for TimeZone {
    type Err = InvalidTimeZone;
    fn from_str(name: &str) -> Result<Self, InvalidTimeZone> {
        Self::new(name)
    }
}

impl TryFrom<String> for TimeZone {
    type Error = InvalidTimeZone;
    fn try_from(name: String) -> Result<Self, InvalidTimeZone> {
        Self::new(&name)
    }
}

impl From<TimeZone> for String {
    fn from(zone: TimeZone) -> Self {
        zone.to_string()
    }
}

impl fmt::Display for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl schemars::JsonSchema for TimeZone {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "TimeZone".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "a time zone of the IANA database, such as Europe/Vienna",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::calendar::ClockTime;
    use super::*;

    fn at(zone: &str, day: &str, time: &str) -> String {
        let zone = TimeZone::new(zone).unwrap();
        let (time, day): (ClockTime, _) = (time.parse().unwrap(), day.parse().unwrap());
        zone.moments(time.on(day))[0].to_string()
    }

    #[test]
    fn a_zone_is_known_by_its_name_alone() {
        assert_eq!(TimeZone::new("Europe/Vienna").unwrap().to_string(), "Europe/Vienna");
        for bad in [
            "",
            "Europe/Atlantis",
            "+01:00",
            "europe/vienna",
            "Europe/Vienna ",
            "CEST",
            "Etc/Unknown",
        ] {
            assert_eq!(TimeZone::new(bad), Err(InvalidTimeZone), "{bad:?}");
        }
    }

    #[test]
    fn a_local_time_is_a_moment_also_where_clocks_change() {
        assert_eq!(at("Europe/Vienna", "2026-11-21", "20:00"), "2026-11-21T19:00:00.000Z");
        assert_eq!(at("Europe/Vienna", "2026-07-01", "20:00"), "2026-07-01T18:00:00.000Z");
        // Skipped: 02:30 is what a clock shows that nobody put on.
        assert_eq!(at("Europe/Vienna", "2026-03-29", "02:30"), "2026-03-29T01:30:00.000Z");
        assert_eq!(at("Pacific/Auckland", "2026-09-27", "02:30"), "2026-09-26T14:30:00.000Z");
        // Twice.
        assert_eq!(at("Europe/Vienna", "2026-10-25", "02:30"), "2026-10-25T00:30:00.000Z");
        let half_past: ClockTime = "02:30".parse().unwrap();
        let moments = TimeZone::new("Europe/Vienna").unwrap();
        let [first, last] = moments.moments(half_past.on("2026-10-25".parse().unwrap()));
        assert_eq!(last.ms_since(first), 3_600_000);
        assert_eq!(at("Asia/Shanghai", "2026-11-21", "25:10"), "2026-11-21T17:10:00.000Z");
        assert_eq!(at("Pacific/Apia", "2011-12-30", "12:00"), "2011-12-30T22:00:00.000Z");
    }
}
