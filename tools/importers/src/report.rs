//! What an import found: every defect with its places, its remedy, and an account of the seats.

use std::collections::BTreeMap;
use std::fmt;

use engine::domain::ids::{SaleId, SeatName, TierId};
use engine::domain::sale::TierFile;
use serde::Serialize;

/// Where something stands in a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// A path into a JSON document, or a file and a line.
    pub at: String,
    /// What stands there, as people know it.
    pub label: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.at, self.label)
    }
}

/// What is wrong in a source that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceDefect {
    /// Two seats have the key that should be one seat's own.
    #[error("seat {key} stands twice: {first} and {again}")]
    DuplicateSeat {
        /// The key.
        key: String,
        /// Where it stands first.
        first: Place,
        /// Where it stands again.
        again: Place,
    },
    /// A seat has no key, or one that cannot name a seat.
    #[error("{at} has no usable key: {why}")]
    UnusableKey {
        /// Which seat.
        at: Place,
        /// What a key must be.
        why: String,
    },
    /// A category, class, coach or station is named that the source does not declare.
    #[error("{at} names {what}, which is not declared")]
    Undeclared {
        /// What is named.
        what: String,
        /// Who names it; the first, if many do.
        at: Place,
    },
    /// A category, a station or a stop is declared twice.
    #[error("{what} is declared twice: {first} and {again}")]
    DeclaredTwice {
        /// What it is.
        what: String,
        /// Where first.
        first: Place,
        /// Where again.
        again: Place,
    },
    /// Two seats of a row lie at one point, so that nobody can tell who sits beside whom.
    #[error("two seats lie at one point: {first} and {again}")]
    SamePoint {
        /// The one.
        first: Place,
        /// The other.
        again: Place,
    },
    /// Two parts of the source contradict each other.
    #[error("{first} and {again} disagree: {how}")]
    Disagreement {
        /// The one.
        first: Place,
        /// The other.
        again: Place,
        /// How they differ.
        how: String,
    },
    /// A fare is between stops that are no journey of this train.
    #[error("{at} is no journey of this train")]
    NoJourney {
        /// Which fare.
        at: Place,
    },
    /// A class has fares and no seat.
    #[error("class {class} has {fares} fares and no seat; the first: {at}")]
    FaresWithoutSeats {
        /// The class.
        class: String,
        /// How many fares.
        fares: usize,
        /// The first of them.
        at: Place,
    },
    /// A class has seats and no fare.
    #[error("class {class} has {seats} seats and no fare; the first: {at}")]
    SeatsWithoutFares {
        /// The class.
        class: String,
        /// How many seats.
        seats: usize,
        /// The first of them.
        at: Place,
    },
    /// There is no seat at all.
    #[error("{at} has no seats{}", declared_note(*declared))]
    NoSeats {
        /// Whose seats are missing.
        at: Place,
        /// How many the source says there should be.
        declared: u64,
    },
    /// A trip does not run on the day that is asked for.
    #[error("{at} does not run on {day}: {why}")]
    DoesNotRun {
        /// Which trip.
        at: Place,
        /// The day.
        day: String,
        /// Why it does not.
        why: String,
    },
    /// Something is to be sold as a train that is none.
    #[error("{at} is {what}, not a train")]
    NotATrain {
        /// What.
        at: Place,
        /// What it is instead.
        what: String,
    },
    /// One train runs as two trips with different rules; two sales would sell its seats twice.
    #[error("train {number} runs as two trips: {first} and {again}; {how}")]
    SameTrain {
        /// The train's number.
        number: String,
        /// The trip that was asked for.
        first: Place,
        /// The other one.
        again: Place,
        /// How they differ.
        how: String,
    },
    /// The rules of the stops, or the fares, leave no journey.
    #[error("no journey of {at} can be sold")]
    NothingToSell {
        /// Of what.
        at: Place,
    },
    /// A train stops more often than a sale may have legs.
    #[error("{at} has {stops} stops; a sale has at most 65")]
    TooManyStops {
        /// Which train.
        at: Place,
        /// How many stops it has.
        stops: usize,
    },
    /// A train that stops fewer than two times goes nowhere.
    #[error("{at} has {stops} stops; a journey needs two")]
    TooFewStops {
        /// Which train.
        at: Place,
        /// How many stops it has.
        stops: usize,
    },
}

impl SourceDefect {
    /// The name of the kind, as in JSON.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::DuplicateSeat { .. } => "duplicate_seat",
            Self::UnusableKey { .. } => "unusable_key",
            Self::Undeclared { .. } => "undeclared",
            Self::DeclaredTwice { .. } => "declared_twice",
            Self::SamePoint { .. } => "same_point",
            Self::Disagreement { .. } => "disagreement",
            Self::NoJourney { .. } => "no_journey",
            Self::FaresWithoutSeats { .. } => "fares_without_seats",
            Self::SeatsWithoutFares { .. } => "seats_without_fares",
            Self::NoSeats { .. } => "no_seats",
            Self::DoesNotRun { .. } => "does_not_run",
            Self::NotATrain { .. } => "not_a_train",
            Self::SameTrain { .. } => "same_train",
            Self::NothingToSell { .. } => "nothing_to_sell",
            Self::TooManyStops { .. } => "too_many_stops",
            Self::TooFewStops { .. } => "too_few_stops",
        }
    }
}

fn declared_note(declared: u64) -> String {
    if declared == 0 { String::new() } else { format!(" of the {declared} that are declared") }
}

/// What resolving a defect does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Remedy {
    /// Both are real: the second is sold under another name.
    Rename {
        /// The name it gets.
        to: SeatName,
    },
    /// The thing is not part of the sale.
    LeaveOut {
        /// What is left out.
        what: Place,
        /// How many seats that are.
        seats: usize,
    },
    /// One of two statements is believed.
    Believe {
        /// Which.
        what: String,
    },
    /// Nothing can be done: the import is refused either way.
    None,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rename { to } => write!(f, "both are kept; the second is called {to}"),
            Self::LeaveOut { what, seats: 0 } => write!(f, "{what} is left out"),
            Self::LeaveOut { what, seats } => {
                let plural = if *seats == 1 { "" } else { "s" };
                write!(f, "{what} is left out ({seats} seat{plural})")
            }
            Self::Believe { what } => f.write_str(what),
            Self::None => f.write_str("nothing resolves this"),
        }
    }
}

/// A defect and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub defect: SourceDefect,
    /// What resolving it does.
    pub remedy: Remedy,
}

/// How an import ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The source has no defect.
    Clean,
    /// It has defects, and every remedy of the report was applied.
    Resolved,
    /// It has defects, and no sale file was made.
    Refused,
}

/// The seats of one tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TierCount {
    /// The tier.
    pub tier: TierId,
    /// Its name.
    pub name: String,
    /// How many seats it has.
    pub seats: usize,
}

impl TierCount {
    /// Counts the seats that an importer placed in a tier.
    pub(super) fn of(tier: &TierFile) -> Self {
        let seats: usize = tier.sections.iter().map(|section| section.seats(&tier.columns)).sum();
        let seats = seats + tier.general_admission.unwrap_or(0) as usize;
        Self { tier: tier.tier.clone(), name: tier.name.clone(), seats }
    }
}

/// The account of one import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What was read.
    pub source: String,
    /// The sale that was made of it, if one could be.
    pub sale: Option<SaleId>,
    /// How it ended.
    pub outcome: Outcome,
    /// How many seats stand in the source.
    pub seats_read: usize,
    /// How many of them the sale has (or would have, if the import was refused).
    pub seats_placed: usize,
    /// How many it has not; each is part of a finding whose remedy is `leave_out`.
    pub seats_left_out: usize,
    /// Where the placed seats are.
    pub tiers: Vec<TierCount>,
    /// The number of the defects of each kind, by the kind's name in JSON.
    pub defects_by_kind: BTreeMap<&'static str, usize>,
    /// Every defect.
    pub findings: Vec<Finding>,
    /// What is no defect, and yet good to know.
    pub notes: Vec<String>,
}

/// Gathers findings while an importer reads.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn add(&mut self, defect: SourceDefect, remedy: Remedy) {
        self.0.push(Finding { defect, remedy });
    }

    /// How many seats the remedies leave out.
    pub(super) fn left_out(&self) -> usize {
        let seats = |finding: &Finding| match &finding.remedy {
            Remedy::LeaveOut { seats, .. } => *seats,
            Remedy::Rename { .. } | Remedy::Believe { .. } | Remedy::None => 0,
        };
        self.0.iter().map(seats).sum()
    }

    /// The number of the defects of each kind.
    pub(super) fn by_kind(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for finding in &self.0 {
            *counts.entry(finding.defect.kind()).or_default() += 1;
        }
        counts
    }

    /// True if some defect has no remedy.
    pub(super) fn hopeless(&self) -> bool {
        self.0.iter().any(|finding| finding.remedy == Remedy::None)
    }
}

impl Report {
    /// The report as text: the sum and the defects by kind first, then every defect with its remedy.
    #[must_use]
    pub fn to_text(&self) -> String {
        let details = self.details();
        let details = details.lines().map(|line| format!("  {line}"));
        self.summary()
            .into_iter()
            .chain(details)
            .chain(self.closing())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The report as text, with the place of its details instead of them.
    #[must_use]
    pub fn to_text_without_details(&self, place: &str) -> String {
        let details = (!self.findings.is_empty()).then(|| format!("  details: {place}"));
        self.summary()
            .into_iter()
            .chain(details)
            .chain(self.closing())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Every defect with its remedy, two lines each.
    #[must_use]
    pub fn details(&self) -> String {
        let verb = match self.outcome {
            Outcome::Clean | Outcome::Resolved => "resolved",
            Outcome::Refused => "--resolve",
        };
        let lines = self.findings.iter().enumerate().map(|(index, Finding { defect, remedy })| {
            format!("defect {}: {defect}\n  {verb}: {remedy}\n", index + 1)
        });
        lines.collect()
    }

    /// The account of the seats, the defects by kind, the tiers and the notes.
    fn summary(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "{}: {} seats read, {} placed, {} left out",
            self.source, self.seats_read, self.seats_placed, self.seats_left_out
        )];
        let count = self.findings.len();
        let kinds = || self.kinds_in_text();
        lines.push(match self.outcome {
            Outcome::Clean | Outcome::Resolved | Outcome::Refused if count == 0 => {
                "no defects".to_owned()
            }
            Outcome::Clean | Outcome::Resolved => format!("resolved, {count} defects: {}", kinds()),
            Outcome::Refused => format!("refused, {count} defects: {}", kinds()),
        });
        for tier in &self.tiers {
            lines.push(format!("  tier {} ({}): {} seats", tier.tier, tier.name, tier.seats));
        }
        lines.extend(self.notes.iter().map(|note| format!("  note: {note}")));
        lines
    }

    /// The kinds of the defects with their numbers, the most frequent first.
    fn kinds_in_text(&self) -> String {
        let mut kinds: Vec<_> = self.defects_by_kind.iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let kinds: Vec<String> =
            kinds.into_iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        kinds.join(", ")
    }

    /// What to do about the defects, if there are any.
    fn closing(&self) -> Option<String> {
        let count = self.findings.len();
        let hopeless = self.findings.iter().any(|finding| finding.remedy == Remedy::None);
        match self.outcome {
            Outcome::Clean | Outcome::Resolved | Outcome::Refused if count == 0 => None,
            Outcome::Clean | Outcome::Resolved => {
                Some(format!("{count} defects, each resolved as said above"))
            }
            Outcome::Refused if hopeless => {
                Some(format!("refused: {count} defects, some of which nothing resolves"))
            }
            Outcome::Refused => {
                Some(format!("refused: {count} defects; --resolve does what each line says"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(at: &str) -> Place {
        Place { at: at.to_owned(), label: "label".to_owned() }
    }

    /// One defect of each kind.
    fn defects() -> Vec<SourceDefect> {
        let (at, first, again) = (|| place("at"), || place("first"), || place("again"));
        let text = || "text".to_owned();
        vec![
            SourceDefect::DuplicateSeat { key: text(), first: first(), again: again() },
            SourceDefect::UnusableKey { at: at(), why: text() },
            SourceDefect::Undeclared { what: text(), at: at() },
            SourceDefect::DeclaredTwice { what: text(), first: first(), again: again() },
            SourceDefect::SamePoint { first: first(), again: again() },
            SourceDefect::Disagreement { first: first(), again: again(), how: text() },
            SourceDefect::NoJourney { at: at() },
            SourceDefect::FaresWithoutSeats { class: text(), fares: 1, at: at() },
            SourceDefect::SeatsWithoutFares { class: text(), seats: 1, at: at() },
            SourceDefect::NoSeats { at: at(), declared: 1 },
            SourceDefect::DoesNotRun { at: at(), day: text(), why: text() },
            SourceDefect::NotATrain { at: at(), what: text() },
            SourceDefect::SameTrain { number: text(), first: first(), again: again(), how: text() },
            SourceDefect::NothingToSell { at: at() },
            SourceDefect::TooManyStops { at: at(), stops: 66 },
            SourceDefect::TooFewStops { at: at(), stops: 1 },
        ]
    }

    #[test]
    fn a_kind_is_called_as_it_is_in_json() {
        let defects = defects();
        for defect in &defects {
            let json = serde_json::to_value(defect).unwrap();
            assert_eq!(json["kind"], defect.kind(), "{defect}");
        }
        let kinds: std::collections::HashSet<_> = defects.iter().map(SourceDefect::kind).collect();
        assert_eq!(kinds.len(), 16, "each kind is listed once");
    }

    #[test]
    fn a_report_begins_with_its_sum() {
        let mut findings = Findings::default();
        let leave_out = || Remedy::LeaveOut { what: place("at"), seats: 1 };
        for defect in [0, 1, 1, 2].map(|index: usize| defects()[index].clone()) {
            findings.add(defect, leave_out());
        }
        let mut report = Report {
            source: "plan".to_owned(),
            sale: None,
            outcome: Outcome::Refused,
            seats_read: 5,
            seats_placed: 1,
            seats_left_out: findings.left_out(),
            tiers: Vec::new(),
            defects_by_kind: findings.by_kind(),
            findings: findings.0,
            notes: vec!["nothing".to_owned()],
        };
        let text = report.to_text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..4],
            [
                "plan: 5 seats read, 1 placed, 4 left out",
                "refused, 4 defects: unusable_key 2, duplicate_seat 1, undeclared 1",
                "  note: nothing",
                "  defect 1: seat text stands twice: first (label) and again (label)",
            ]
        );
        assert_eq!(lines[4], "    --resolve: at (label) is left out (1 seat)");
        assert_eq!(lines.len(), 3 + 2 * 4 + 1);
        let short = report.to_text_without_details("defects.txt");
        let lines: Vec<&str> = short.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "  note: nothing",
                "  details: defects.txt",
                "refused: 4 defects; --resolve does what each line says"
            ]
        );
        assert_eq!(report.details().lines().count(), 8);

        report.outcome = Outcome::Clean;
        report.findings.clear();
        assert_eq!(report.to_text().lines().nth(1), Some("no defects"));
        assert_eq!(report.to_text(), report.to_text_without_details("defects.txt"));
    }
}
