//! What an import found: every defect with its places, its remedy, and an account of the seats.

use std::collections::BTreeMap;
use std::fmt;

use engine::domain::basics::ids::{SaleId, SeatName, TierId};
use engine::domain::sale::TierFile;
use serde::Serialize;

/// A place in a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// A path into a JSON document, or a file and a line.
    pub at: String,
    /// The thing there, as people know it: `Balcony, row 17, seat 17-1`.
    pub label: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.at, self.label)
    }
}

/// A defect of a source that can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceDefect {
    /// Two seats have the key that should be one seat's own.
    #[error("seat {key} is duplicated: {first} and {again}")]
    DuplicateSeat {
        key: String,
        /// Place of the first seat.
        first: Place,
        /// Place of the other seat.
        again: Place,
    },
    /// A seat has no key, or one that cannot name a seat.
    #[error("{at} has no usable key: {why}")]
    UnusableKey {
        at: Place,
        /// The rule that its key breaks.
        why: String,
    },
    /// A category, class, coach or station is named that the source does not declare.
    #[error("{at} names {what}, which is not declared")]
    Undeclared {
        /// The undeclared thing and its name: `category "Boxes"`.
        what: String,
        /// The place that names it; the first of several.
        at: Place,
    },
    /// A category, a station or a stop is declared twice.
    #[error("{what} is declared twice: {first} and {again}")]
    DeclaredTwice {
        /// The thing and its name.
        what: String,
        /// Place of the first declaration.
        first: Place,
        /// Place of the other declaration.
        again: Place,
    },
    /// Two seats of a row lie at one point, so that nobody can tell who sits beside whom.
    #[error("two seats lie at one point: {first} and {again}")]
    SamePoint { first: Place, again: Place },
    /// Two parts of the source contradict each other.
    #[error("{first} and {again} disagree: {how}")]
    Disagreement {
        first: Place,
        again: Place,
        /// Their difference, in words.
        how: String,
    },
    /// A fare is between stops that are no journey of this train.
    #[error("{at} is no journey of this train")]
    NoJourney { at: Place },
    /// A class has fares and no seat.
    #[error("class {class} has {fares} fares and no seat; the first: {at}")]
    FaresWithoutSeats {
        class: String,
        /// Number of its fares.
        fares: usize,
        /// The first of them.
        at: Place,
    },
    /// A class has seats and no fare.
    #[error("class {class} has {seats} seats and no fare; the first: {at}")]
    SeatsWithoutFares {
        class: String,
        /// Number of its seats.
        seats: usize,
        /// The first of them.
        at: Place,
    },
    /// There is no seat at all.
    #[error("{at} has no seats{}", declared_note(*declared))]
    NoSeats {
        /// The plan or train without seats.
        at: Place,
        /// Number of seats that the source declares; 0 if it declares none.
        declared: u64,
    },
    /// A trip does not run on the requested day.
    #[error("{at} does not run on {day}: {why}")]
    DoesNotRun {
        at: Place,
        day: String,
        /// The reason, with its place in the feed.
        why: String,
    },
    /// A trip has no time at its first stop, so that nothing says when it leaves.
    #[error("{at} has no time at its first stop: {stop}")]
    UntimedStart {
        at: Place,
        /// The call at that stop.
        stop: Place,
    },
    /// The route of a trip is not a railway.
    #[error("{at} is {what}, not a train")]
    NotATrain {
        at: Place,
        /// Its kind: `a bus`.
        what: String,
    },
    /// One train runs as two trips; two sales would sell its seats twice.
    #[error("train {number} runs as two trips: {first} and {again}; {how}")]
    SameTrain {
        /// Its number; the trip's id if it has none.
        number: String,
        first: Place,
        again: Place,
        /// The difference of their journeys, in words.
        how: String,
    },
    /// The rules of the stops, or the fares, leave no journey.
    #[error("no journey of {at} can be sold")]
    NothingToSell { at: Place },
    /// A train stops more often than a sale may have legs.
    #[error("{at} has {stops} stops; a sale has at most 65")]
    TooManyStops {
        at: Place,
        /// Number of its stops.
        stops: usize,
    },
    /// A train that stops fewer than two times goes nowhere.
    #[error("{at} has {stops} stops; a journey needs two")]
    TooFewStops {
        at: Place,
        /// Number of its stops.
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
            Self::UntimedStart { .. } => "untimed_start",
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

/// The resolution of a defect.
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
        /// The thing that is left out.
        what: Place,
        /// Number of seats that are left out with it.
        seats: usize,
    },
    /// One of two statements is believed.
    Believe {
        /// The statement that is believed, or its consequence, in words.
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
    pub defect: SourceDefect,
    pub remedy: Remedy,
}

/// The result of an import.
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
    /// Id of the tier.
    pub tier: TierId,
    /// Name of the tier.
    pub name: String,
    /// Number of its seats.
    pub seats: usize,
}

impl TierCount {
    /// Counts the seats that an importer placed in a tier.
    pub(super) fn from_tier(tier: &TierFile) -> Self {
        let seats: usize = tier.sections.iter().map(|section| section.seats(&tier.columns)).sum();
        let places = tier.general_admission.unwrap_or(0);
        let seats = seats + usize::try_from(places).unwrap_or(usize::MAX);
        Self { tier: tier.tier.clone(), name: tier.name.clone(), seats }
    }
}

/// The account of one import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The file or folder that was read, and the train or trip of it.
    pub source: String,
    /// The sale that was made of it, if one could be.
    pub sale: Option<SaleId>,
    pub outcome: Outcome,
    /// Number of seats in the source.
    pub seats_read: usize,
    /// Number of them that the sale has (or would have, if the import was refused).
    pub seats_placed: usize,
    /// Number of them that it has not; each is part of a finding whose remedy is `leave_out`.
    pub seats_left_out: usize,
    /// Number of placed seats of each tier.
    pub tiers: Vec<TierCount>,
    /// The number of the defects of each kind, by the kind's name in JSON.
    pub defects_by_kind: BTreeMap<&'static str, usize>,
    pub findings: Vec<Finding>,
    /// Facts about the import that are no defects.
    pub notes: Vec<String>,
}

/// Gathers findings while an importer reads.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn add(&mut self, defect: SourceDefect, remedy: Remedy) {
        self.0.push(Finding { defect, remedy });
    }

    /// Number of seats that the remedies leave out.
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
    pub(super) fn unresolvable(&self) -> bool {
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

    /// The verdict on the defects, if there are any.
    fn closing(&self) -> Option<String> {
        let count = self.findings.len();
        let unresolvable = self.findings.iter().any(|finding| finding.remedy == Remedy::None);
        match self.outcome {
            Outcome::Clean | Outcome::Resolved | Outcome::Refused if count == 0 => None,
            Outcome::Clean | Outcome::Resolved => {
                Some(format!("{count} defects, each resolved as said above"))
            }
            Outcome::Refused if unresolvable => {
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
            SourceDefect::UntimedStart { at: at(), stop: first() },
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
        assert_eq!(kinds.len(), 17, "each kind is listed once");
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
                "  defect 1: seat text is duplicated: first (label) and again (label)",
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
