//! How the people of a replay are let in: through the gate alone, or through a waiting room.

use clap::ValueEnum;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::challenge::{ChallengeKind, ChallengeSettings, Question, Stage};
use engine::domain::sale::{RoomSettings, SaleFile};
use serde::Serialize;

use crate::people::plan::Crowd;

/// What the challenge of a replay asks, and what the crowd is told.
const QUESTION: &str = "What is sold here?";
pub const ANSWER: &str = "tickets";
/// How long before the opening the draw closes, in seconds: a replay is short.
const DRAW_LEAD_SECONDS: u32 = 10;
/// How long an unused place stays due, and a visit lasts, in seconds: the least that there is.
const SHOW_UP_SECONDS: u32 = 120;
/// A replay that opens later does so after at least this time, in seconds.
const MIN_LEAD_SECONDS: f64 = 20.0;
/// The time that is added to it at full scale, in seconds: half of the crowd joins before the opening, and two cores
/// take some thousand a second. If it is too short, those who are first in the generator's queue have the first window
/// to themselves, which are the bots.
const LEAD_SECONDS: f64 = 450.0;
/// The time in which what is sold is served by default, in seconds.
const SERVE_SECONDS: u32 = 300;

/// How people are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// By the gate alone.
    #[default]
    Gate,
    /// By a waiting room.
    Room,
    /// By a waiting room that asks for the answer to a challenge on joining.
    Challenges,
}

impl Admission {
    /// Each of them, in the order of a comparison.
    pub const ALL: [Self; 3] = [Self::Gate, Self::Room, Self::Challenges];

    /// Its name in a table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gate => "gate alone",
            Self::Room => "room",
            Self::Challenges => "room, challenges",
        }
    }
}

/// Who comes to a replay, and how they are let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AdmissionOptions {
    pub crowd: Crowd,
    /// How they are let in.
    pub admission: Admission,
    /// Places that a room serves a second at most; `None`: a 300th of the tickets, at most the default of rooms.
    pub places_per_second: Option<u32>,
}

impl AdmissionOptions {
    /// The terms of a sale of so many tickets, of a replay at this scale: with a room, or with people who come
    /// before it opens, it opens later.
    #[must_use]
    pub fn terms(self, file: SaleFile, tickets: u32, scale: f64) -> SaleFile {
        if self.admission == Admission::Gate && self.crowd == Crowd::People {
            return file;
        }
        let lead_ms = ((MIN_LEAD_SECONDS + LEAD_SECONDS * scale) * 1_000.0) as i64;
        let opens_at = Timestamp::now().plus_ms(lead_ms);
        let (room, challenges) = match self.admission {
            Admission::Gate => (None, None),
            Admission::Room => (Some(self.room(tickets)), None),
            Admission::Challenges => (Some(self.room(tickets)), Some(challenges())),
        };
        SaleFile { opens_at, room, challenges, ..file }
    }

    fn room(self, tickets: u32) -> RoomSettings {
        let otherwise = RoomSettings::default();
        let served = tickets.div_ceil(SERVE_SECONDS).min(otherwise.max_per_second);
        RoomSettings {
            max_per_second: self.places_per_second.unwrap_or(served),
            show_up_seconds: SHOW_UP_SECONDS,
            visit_seconds: SHOW_UP_SECONDS,
            draw_lead_seconds: DRAW_LEAD_SECONDS,
            ..otherwise
        }
    }
}

fn challenges() -> ChallengeSettings {
    let question = Question { question: QUESTION.to_owned(), answers: vec![ANSWER.to_owned()] };
    ChallengeSettings {
        at: vec![Stage::Join],
        kind: ChallengeKind::Question,
        easiest_ms: 500,
        hardest_ms: 3_000,
        questions: vec![question],
        siteverify: None,
    }
}

#[cfg(test)]
mod tests {
    use engine::domain::sale::{GateSettings, Sale};

    use super::super::stadium;
    use super::*;

    #[test]
    fn a_replay_can_be_sold_by_each_admission() {
        for admission in Admission::ALL {
            for crowd in [Crowd::People, Crowd::Mixed] {
                let file = stadium::sale("s", "S", 15_000, 20, GateSettings::default()).unwrap();
                let before = file.opens_at;
                let options = AdmissionOptions { crowd, admission, places_per_second: None };
                let file = options.terms(file, 15_000, 0.1);
                let opens_later = admission != Admission::Gate || crowd == Crowd::Mixed;
                assert_eq!(file.opens_at > before.plus_seconds(60), opens_later);
                assert_eq!(file.room.is_some(), admission != Admission::Gate);
                assert_eq!(file.room.as_ref().map_or(50, |room| room.max_per_second), 50);
                assert_eq!(file.challenges.is_some(), admission == Admission::Challenges);
                Sale::new(file).unwrap();
            }
        }
        let rate = |tickets, places_per_second| {
            let options = AdmissionOptions { places_per_second, ..AdmissionOptions::default() };
            options.room(tickets).max_per_second
        };
        assert_eq!([rate(1, None), rate(150_000, None), rate(15, Some(900))], [1, 200, 900]);
    }
}
