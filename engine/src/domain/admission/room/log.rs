//! The log: one record a turn, each with the hash of the one before.
//!
//! A record is one line of JSON without blanks, its fields in the order of the types here, its numbers whole.
//! Its hash is the SHA-256 of that line without the line's end, so that anybody can compute it with
//! `sha256sum`. Another text with the same contents is no record: reading a record and writing it again must give the
//! same text.
//!
//! A record has the whole state after its turn, so that the last one is all that the next turn needs.

use serde::{Deserialize, Serialize};

use super::serving::{Event, Given, Refusal, Room, State};
use crate::domain::basics::bytes::Hash;

/// What stands in place of the hash of the record before the first.
pub const NONE_BEFORE: Hash = Hash([0; 32]);

/// What a record is of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Entry {
    /// The publication of the room: the first record, and no other.
    Published(Room),
    Turn {
        /// What happened since the record before.
        events: Vec<Event>,
        given: Given,
    },
}

/// A record of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its number, from 0.
    pub number: u64,
    /// Its time, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The hash of the record before it; of the first [`NONE_BEFORE`].
    pub before: Hash,
    /// What it is of.
    pub entry: Entry,
    /// The state after it.
    pub state: State,
}

/// The text is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRecord {
    /// It cannot be read.
    #[error("it cannot be read: {0}")]
    Malformed(String),
    /// It is written in another way than records are.
    #[error("it is not written as records are")]
    OtherText,
}

impl Record {
    /// The record of a room's publication.
    #[must_use]
    pub fn first(room: Room, at_ms: i64) -> Self {
        let state = State::first(&room.settings);
        Self { number: 0, at_ms, before: NONE_BEFORE, entry: Entry::Published(room), state }
    }

    /// The record of the next turn.
    ///
    /// # Errors
    /// Refuses what cannot have happened.
    pub fn next(
        &self,
        room: &Room,
        at_ms: i64,
        events: Vec<Event>,
        given: Given,
    ) -> Result<Self, Refusal> {
        let state = self.state.turn(room, self.at_ms, at_ms, &events, &given)?;
        let entry = Entry::Turn { events, given };
        Ok(Self { number: self.number + 1, at_ms, before: self.hash(), entry, state })
    }

    /// The line of the record, without its end.
    #[must_use]
    pub fn line(&self) -> String {
        // Texts, whole numbers and lists: nothing that JSON cannot say.
        serde_json::to_string(self)
            .unwrap_or_else(|error| unreachable!("a record is always JSON: {error}"))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// Refuses what is no record, or not written as one.
    pub fn from_line(line: &str) -> Result<Self, InvalidRecord> {
        let record: Self = serde_json::from_str(line)
            .map_err(|error| InvalidRecord::Malformed(error.to_string()))?;
        if record.line() == line { Ok(record) } else { Err(InvalidRecord::OtherText) }
    }

    /// The hash of the record.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::of_parts(&[self.line().as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Commitment, Terms};
    use super::super::serving::Command;
    use super::*;
    use crate::domain::basics::bytes::Secret;
    use crate::domain::basics::ids::{GroupId, SaleId};
    use crate::domain::sale::serving::Settings;

    fn room() -> Room {
        let draw = Terms::Secret(Secret([4; 32]).commitment());
        let settings = Settings::new(GroupId::new("all").unwrap(), 0, 4);
        Room::new(SaleId::new("s").unwrap(), draw, 500, settings)
    }

    fn given() -> Given {
        Given { joined: vec![0], ..Given::default() }
    }

    #[test]
    fn each_record_has_the_hash_of_the_line_before() {
        let room = room();
        let first = Record::first(room.clone(), 7);
        assert_eq!((first.number, first.before), (0, NONE_BEFORE));
        let events = vec![Event::Command(Command::Rate(Some(5)))];
        let second = first.next(&room, 8, events, given()).unwrap();
        assert_eq!(second.before, Hash::of_parts(&[first.line().as_bytes()]));
        assert_eq!((second.number, second.state.rate), (1, Some(5)));
        for record in [first, second] {
            assert!(!record.line().contains(['\n', ' ']));
            assert_eq!(Record::from_line(&record.line()), Ok(record));
        }
    }

    /// A line is an interface: others hash it.
    #[test]
    fn the_line_of_a_publication_is_fixed() {
        let line = Record::first(room(), 7).line();
        let expected = concat!(
            r#""entry":{"published":{"rules":2,"sale":"s","draw":{"secret":"COMMITMENT"},"stock":500,"#,
            r#""settings":{"groups":[{"group":"all","share":1}],"joins_open_at_ms":null,"closes_at_ms":-300000,"opens_at_ms":0,"#,
            r#""registered_only":false,"max_per_second":200,"provider_per_second":null,"max_requests_per_second":10000,"#,
            r#""max_units":4,"max_attempts":10,"show_up_ms":180000,"visit_ms":600000,"window_ms":60000}}},"#,
        );
        let hash = Secret([4; 32]).commitment();
        let commitment = hash.to_string();
        assert!(line.contains(&expected.replace("COMMITMENT", &commitment)), "{line}");
        // And that of a room of before.
        let before = Commitment { commitment: hash, beacon: None };
        let Room { sale, settings, .. } = room();
        let line = Record::first(Room::before(sale, before, settings), 7).line();
        let entry = format!(
            r#""entry":{{"published":{{"sale":"s","draw":{{"commitment":"{commitment}","beacon":null}},"settings""#
        );
        assert!(line.contains(&entry), "{line}");
        assert_eq!(Record::from_line(&line).map(|record| record.line()), Ok(line));
    }

    #[test]
    fn the_line_of_a_turn_is_fixed() {
        let room = room();
        let record = Record::first(room.clone(), 7).next(&room, 8, vec![], given()).unwrap();
        let expected = concat!(
            r#"{"number":1,"at_ms":8,"#,
            r#""before":"BEFORE","#,
            r#""entry":{"turn":{"events":[],"given":{"free":null,"joined":[0],"counts":null,"reservations":{"all":0,"bad":0}}}},"#,
            r#""state":{"mode":"open","clock_ms":1,"idle_ms":1800000,"rate":null,"notice":null,"sold_out":false,"tripped":false,"limit_milli":160002,"steady_ms":5000,"carry_milli":160,"#,
            r#""comes":{"sum":0,"count":0},"holds":{"sum":0,"count":0},"counters":null,"#,
            r#""groups":[{"serving":0,"passed":0,"joined":0,"closed":null,"seed":null,"window_first":0,"window_end":0,"window_age_ms":0,"marks":[],"pass":0}],"#,
            r#""gave":{"flight":{"waiting":0,"inside":0},"capacity":0,"stock":0,"served":0,"requests_per_second":0}}}"#,
        );
        assert_eq!(record.line(), expected.replace("BEFORE", &record.before.to_string()));
    }

    #[test]
    fn another_text_of_the_same_record_is_refused() {
        let line = Record::first(room(), 7).line();
        let swapped = line.replacen(r#""number":0,"at_ms":7"#, r#""at_ms":7,"number":0"#, 1);
        assert_ne!(swapped, line);
        for other in [swapped, line.replacen(':', ": ", 1), format!("{line} ")] {
            assert_eq!(Record::from_line(&other), Err(InvalidRecord::OtherText), "{other}");
        }
        let unknown = line.replacen('{', r#"{"more":1,"#, 1);
        assert!(matches!(Record::from_line(&unknown), Err(InvalidRecord::Malformed(_))));
    }
}
