//! The text form of a hold in Redis: `deadline|content|tickets|lines|user`, as `lua/include/record.lua`
//! and `lua/include/lines.lua` read and write it.
//!
//! The deadline is in milliseconds, the content is the fingerprint of the request. Lines are
//! `tier,from,to,seat.seat` joined by `;`. The user comes last because it is free text.

use std::fmt::Write as _;

use engine::domain::basics::ids::{Legs, RequestFingerprint, Seat, TierId, UserId};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{HeldLine, HoldRecord};

/// The text in Redis is not a hold record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a hold record: {0:?}")]
pub struct MalformedRecord(pub String);

/// Writes a hold as text.
#[must_use]
pub fn to_text(record: &HoldRecord) -> String {
    let HoldRecord { user, fingerprint, deadline, lines } = record;
    let (deadline, tickets) = (deadline.ms(), record.tickets());
    format!("{deadline}|{}|{tickets}|{}|{user}", fingerprint.as_str(), lines_to_text(lines))
}

/// Reads what [`to_text`] wrote.
///
/// # Errors
/// Returns the text if it is anything else, or counts other tickets than its lines have.
pub fn from_text(text: &str) -> Result<HoldRecord, MalformedRecord> {
    let read = || {
        let mut parts = text.splitn(5, '|');
        let deadline = Timestamp::from_ms(parts.next()?.parse().ok()?);
        let fingerprint = RequestFingerprint::new(parts.next()?).ok()?;
        let tickets: Tickets = parts.next()?.parse().ok()?;
        let lines = lines_from_text(parts.next()?).ok()?;
        let user = UserId::new(parts.next()?).ok()?;
        let record = HoldRecord { user, fingerprint, deadline, lines };
        (record.tickets() == tickets).then_some(record)
    };
    read().ok_or_else(|| MalformedRecord(text.to_owned()))
}

/// Writes lines as `tier,from,to,seat.seat` joined by `;`.
#[must_use]
pub fn lines_to_text(lines: &[HeldLine]) -> String {
    let mut text = String::new();
    for HeldLine { tier, legs, seats } in lines {
        let separator = if text.is_empty() { "" } else { ";" };
        let (from, to, seats) = (legs.from(), legs.to(), seats_to_text(seats));
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{tier},{from},{to},{seats}");
    }
    text
}

/// Reads what [`lines_to_text`] wrote.
///
/// # Errors
/// Returns the text if it is anything else.
pub fn lines_from_text(text: &str) -> Result<Vec<HeldLine>, MalformedRecord> {
    let line = |text: &str| {
        let mut parts = text.split(',');
        let tier = TierId::new(parts.next()?).ok()?;
        let legs = Legs::new(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)?;
        let seats = seats_from_text(parts.next()?)?;
        parts.next().is_none().then_some(HeldLine { tier, legs, seats })
    };
    let malformed = || MalformedRecord(text.to_owned());
    text.split(';').map(line).collect::<Option<_>>().ok_or_else(malformed)
}

/// Writes seats as `seat.seat`.
pub(super) fn seats_to_text(seats: &[Seat]) -> String {
    let texts: Vec<String> = seats.iter().map(|seat| seat.0.to_string()).collect();
    texts.join(".")
}

/// Reads what [`seats_to_text`] wrote.
pub(super) fn seats_from_text(text: &str) -> Option<Vec<Seat>> {
    text.split('.').map(|seat| seat.parse().ok().map(Seat)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_being_text() {
        let line = |tier: &str, to: u16, seats: &[u32]| HeldLine {
            tier: TierId::new(tier).unwrap(),
            legs: Legs::new(0, to).unwrap(),
            seats: seats.iter().copied().map(Seat).collect(),
        };
        let record = HoldRecord {
            user: UserId::new("auth0|x;y,z").unwrap(),
            fingerprint: RequestFingerprint::new("00000000000000aa").unwrap(),
            deadline: Timestamp::from_ms(1_795_000_000_000),
            lines: vec![line("a", 2, &[0, 1]), line("b", 1, &[0])],
        };
        let text = to_text(&record);
        let written = "1795000000000|00000000000000aa|3|a,0,2,0.1;b,0,1,0|auth0|x;y,z";
        assert_eq!(text, written);
        assert_eq!(from_text(&text), Ok(record));
        for bad in [
            "",
            "1|2",
            &text.replace("|3|", "|2|"),
            &text.replace("a,0,2", "a,2,0"),
            &text.replace("0.1", "0.x"),
            &text.replace("00000000000000aa", "aa"),
        ] {
            assert_eq!(from_text(bad), Err(MalformedRecord(bad.to_owned())));
        }
    }
}
