//! The classes of people and bots, each counted apart.
//!
//! - [`plan`] says who comes, and when;
//! - `room` is the way through a waiting room;
//! - [`fairness`] says who got what, [`windows`] whose places were served, [`promises`] how long it took.

mod answers;
pub mod fairness;
pub mod plan;
pub mod promises;
mod room;
pub mod windows;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::series::ClassSample;
use super::stopwatch::{Percentiles, histogram, micros};

/// A class of people, or of bots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Whatever is sent in nobody's name: what is left, which the crowd reads as through one cache, and the
    /// callbacks of the payment provider.
    Nobody,
    /// People who come at the opening and afterwards.
    Person,
    /// People who come before the opening.
    Early,
    /// People who leave when they have to wait.
    Leaver,
    /// People who miss their turn, and come back.
    Sleeper,
    /// People who let somebody else use their place.
    Sharer,
    /// People with ten accounts each.
    Collector,
    /// Bots that solve challenges.
    Solver,
    /// Bots with fifty accounts each.
    Farm,
    /// Bots that come in the first 100 ms.
    Script,
    /// Bots of the behaviour `hammer`.
    Hammer,
    /// People who look at the seats when it is their turn, and never order.
    Looker,
    /// Bots that do.
    Gazer,
    /// Those who come late to take what is left.
    Late,
}

/// What is said of a class in one row.
#[derive(Debug, Clone, Copy)]
struct Row {
    name: &'static str,
    /// Accounts in a thousand of the mixed crowd.
    per_mille: u32,
    is_bot: bool,
    does: &'static str,
}

impl Class {
    /// Every class, in the order of reports.
    pub const ALL: [Self; 14] = [
        Self::Person,
        Self::Early,
        Self::Leaver,
        Self::Sleeper,
        Self::Sharer,
        Self::Collector,
        Self::Solver,
        Self::Farm,
        Self::Script,
        Self::Hammer,
        Self::Looker,
        Self::Gazer,
        Self::Late,
        Self::Nobody,
    ];

    /// Its name in reports and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What its people do, in words.
    #[must_use]
    pub fn does(self) -> &'static str {
        self.row().does
    }

    /// True if it is of bots.
    #[must_use]
    pub fn is_bot(self) -> bool {
        self.row().is_bot
    }

    fn row(self) -> Row {
        let row = |name, per_mille, is_bot, does| Row { name, per_mille, is_bot, does };
        match self {
            Self::Nobody => row("nobody", 0, false, "is read or sent in nobody's name"),
            Self::Person => row("person", 260, false, "comes at the opening or afterwards"),
            Self::Early => {
                row("early", 120, false, "comes before the opening, ever more the nearer it is")
            }
            Self::Leaver => row("leaver", 60, false, "leaves when asked to wait"),
            Self::Sleeper => row("sleeper", 25, false, "misses the turn, and comes back"),
            Self::Sharer => row(
                "sharer",
                10,
                false,
                "lets another account use the place or the admission, which must be refused",
            ),
            Self::Collector => {
                row("collector", 25, false, "one person with ten accounts, within 30 s")
            }
            Self::Solver => row(
                "solver",
                150,
                true,
                "comes 10 to 20 s after the opening: as long as a solver of challenges takes",
            ),
            Self::Farm => {
                row("farm", 250, true, "one bot with fifty accounts, in the first second")
            }
            Self::Script => row("script", 100, true, "comes in the first 100 ms"),
            Self::Hammer => row("hammer", 0, true, "asks twenty times at once"),
            Self::Looker => {
                row("looker", 0, false, "looks at the seats for four minutes, and leaves")
            }
            Self::Gazer => row("gazer", 0, true, "does the same, from a program"),
            Self::Late => row("late", 0, false, "takes what is left"),
        }
    }
}

/// What the people of one class have done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Deeds {
    /// Number of people who came.
    pub arrived: u64,
    /// Number of times that one of them came back because the gate had said so.
    pub returned: u64,
    /// Admissions that they were given.
    pub admitted: u64,
    /// Orders that they made.
    pub orders: u64,
    /// Orders that they paid.
    pub paid: u64,
    /// Tickets that they paid.
    pub tickets: u64,
}

impl Deeds {
    /// What was done since the counts were `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            arrived: self.arrived - before.arrived,
            returned: self.returned - before.returned,
            admitted: self.admitted - before.admitted,
            orders: self.orders - before.orders,
            paid: self.paid - before.paid,
            tickets: self.tickets - before.tickets,
        }
    }

    /// These and others, together.
    #[must_use]
    pub fn and(self, others: Self) -> Self {
        Self {
            arrived: self.arrived + others.arrived,
            returned: self.returned + others.returned,
            admitted: self.admitted + others.admitted,
            orders: self.orders + others.orders,
            paid: self.paid + others.paid,
            tickets: self.tickets + others.tickets,
        }
    }
}

/// Requests and answers of each class since the last sample.
#[derive(Debug, Default)]
pub struct Traffic(BTreeMap<Class, Recent>);

/// Requests and answers of one class since the last sample.
#[derive(Debug)]
struct Recent {
    sent: u64,
    refused: BTreeMap<Cow<'static, str>, u64>,
    response: Histogram<u64>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { sent: 0, refused: BTreeMap::new(), response: histogram() }
    }
}

impl Traffic {
    /// A request was sent.
    pub fn sent(&mut self, class: Class) {
        self.0.entry(class).or_default().sent += 1;
    }

    /// A request was answered, so long after it was due: with a 2xx, or with a refusal of this kind.
    pub fn answered(
        &mut self,
        class: Class,
        response: Duration,
        refused: Option<Cow<'static, str>>,
    ) {
        let recent = self.0.entry(class).or_default();
        recent.response.saturating_record(micros(response));
        if let Some(kind) = refused {
            *recent.refused.entry(kind).or_default() += 1;
        }
    }

    /// Everything since the last call, of every class that has sent anything in this run.
    pub fn sample(&mut self) -> BTreeMap<Class, ClassSample> {
        let sample = |(class, recent): (&Class, &mut Recent)| {
            let response = Percentiles::from_histogram(&recent.response);
            recent.response.reset();
            let sample = ClassSample {
                sent: std::mem::take(&mut recent.sent),
                answered: response.count,
                refused: std::mem::take(&mut recent.refused),
                response_p50_ms: response.p50_ms,
                response_p99_ms: response.p99_ms,
                ..ClassSample::default()
            };
            (*class, sample)
        };
        self.0.iter_mut().map(sample).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_crowd_is_the_crowd() {
        let document = include_str!("../../../../docs/rush.md");
        for class in Class::ALL {
            let Row { name, per_mille, does, .. } = class.row();
            let row = format!("| `{name}` | {per_mille} | {does} |");
            assert!(per_mille == 0 || document.contains(&row), "docs/rush.md lacks {row}");
        }
    }

    #[test]
    fn a_sample_is_of_what_happened_since_the_last() {
        let mut traffic = Traffic::default();
        traffic.sent(Class::Person);
        traffic.answered(Class::Person, Duration::from_millis(20), Some("waiting".into()));
        traffic.sent(Class::Hammer);
        let first = traffic.sample();
        let person = &first[&Class::Person];
        assert_eq!((person.sent, person.answered, person.refused["waiting"]), (1, 1, 1));
        assert!((person.response_p50_ms - 20.0).abs() < 0.1);
        assert_eq!((first[&Class::Hammer].sent, first[&Class::Hammer].answered), (1, 0));
        traffic.sent(Class::Person);
        let second = &traffic.sample()[&Class::Person];
        assert_eq!((second.sent, second.answered, second.refused.len()), (1, 0, 0));
    }
}
