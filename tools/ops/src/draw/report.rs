//! The report of a check.

use std::fmt;

use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::domain::basics::time::Timestamp;
use reporting::grouped;
use serde::Serialize;

use super::violation::Violation;

/// Most violations that the text names; JSON names all.
const MAX_NAMED: usize = 40;

/// What decided a draw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A round of the beacon.
    Beacon {
        /// Its number.
        round: u64,
    },
    /// The revealed secret.
    Secret,
    /// Fresh randomness, after the beacon was given up.
    GivenUp {
        /// Who said so.
        by: String,
    },
}

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The rules were kept, and watchers saw the root before the round.
    Witnessed,
    /// The rules were kept.
    NotWitnessed,
    /// A rule was broken.
    Wrong,
}

/// Why a draw that keeps the rules is not witnessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// No watcher whom the caller named saw the closing before the round.
    #[error("that the root came first is the operator's word")]
    NotSeen,
    /// A group has no seed.
    #[error("a group is not drawn")]
    NotDrawn,
    /// The round that was named was out at the closing.
    #[error("the closing was late; not verifiable against the operator")]
    Late,
    /// The operator's secret decides.
    #[error("the operator's secret decides; not verifiable against the operator")]
    Secret,
    /// The beacon was given up.
    #[error("the beacon was given up; not verifiable against the operator")]
    GivenUp,
    /// The room was published before.
    #[error("the room is of the rules before these; not verifiable against the operator")]
    #[serde(rename = "rules_1")]
    RulesOfBefore,
}

/// The round that decides a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Round {
    /// The hash of the beacon's chain.
    pub chain: Hash,
    /// Its number.
    pub round: u64,
    /// When it is out, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The draws that may have been looked at before the closing; 0 unless it was late.
    pub looks: u64,
}

/// The seat-legs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stock {
    /// Those that were for sale at the publication.
    pub stock: u64,
    /// Those that orders hold.
    pub held: u64,
    /// Those of them that are the operator's.
    pub operators: u64,
    /// Those that no order holds.
    pub left: u64,
    /// Those that were free by the last record that says so.
    pub last_free: Option<u64>,
}

/// What was checked of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// The group.
    pub group: GroupId,
    /// Indices of the first window, N.
    pub count: u32,
    /// Leaves that are not empty.
    pub held: u64,
    /// What decided the draw; none before it.
    pub decided_by: Option<DecidedBy>,
    /// The round that decides, once the group is closed; none if none was named.
    pub round: Option<Round>,
    /// Later windows, whose order is the operator's word.
    pub later_windows: u64,
    /// Places that are due after the last turn.
    pub due: u32,
    /// Places of the first window among them that nobody held.
    pub due_of_nobody: u64,
    /// Admissions.
    pub admitted: u64,
}

/// What was found of who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwnPlace {
    /// The group.
    pub group: GroupId,
    /// The index.
    pub index: u32,
    /// The place that the draw gave; none if there was no draw of the index.
    pub place: Option<u32>,
    /// The first record by which the place was due.
    pub due_at: Option<u64>,
    /// The record by which the index was admitted.
    pub admitted_at: Option<u64>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What it comes to.
    pub verdict: Verdict,
    /// Why it is not witnessed, if it keeps the rules.
    pub because: Option<Because>,
    /// The sale; none if the log does not begin with its publication.
    pub sale: Option<SaleId>,
    /// Records of the log.
    pub records: u64,
    /// Records whose arithmetic was done again.
    pub turns: u64,
    /// The groups.
    pub groups: Vec<Group>,
    /// The seat-legs; none of a room that was published before.
    pub stock: Option<Stock>,
    /// Who asks.
    pub own: Option<OwnPlace>,
    /// What is wrong.
    pub violations: Vec<Violation>,
}

impl Report {
    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }
}

impl Group {
    /// Writes the round that decides, and how to compare it.
    fn write_round(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Round { chain, round, at_ms, looks }) = self.round else { return Ok(()) };
        let (group, at) = (&self.group, Timestamp::from_ms(at_ms));
        writeln!(f, "group {group}: round {round} decides, which is out at {at}; compare it with")?;
        writeln!(f, "  curl https://api.drand.sh/{chain}/public/{round}")?;
        if looks > 0 {
            writeln!(f, "group {group}: late: the operator may have looked at {looks} draws")?;
        }
        Ok(())
    }
}

impl fmt::Display for Stock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stock, held, operators, left, last_free } = *self;
        write!(
            f,
            "{} seat-legs for sale: orders hold {}, {} of them the operator's, {} are left; by the last turn {} were free",
            grouped(stock),
            grouped(held),
            grouped(operators),
            grouped(left),
            last_free.map_or("an unknown number".to_owned(), grouped),
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sale = self.sale.as_ref().map_or("an unknown sale", SaleId::as_str);
        writeln!(f, "The draw of {sale}: {} records", grouped(self.records))?;
        let number = |number: u32| grouped(u64::from(number));
        for group in &self.groups {
            let decided = match &group.decided_by {
                Some(DecidedBy::Beacon { round }) => {
                    format!("drawn by round {round} of the beacon")
                }
                Some(DecidedBy::Secret) => {
                    "drawn by the operator's secret, who could choose the draw by it".to_owned()
                }
                Some(DecidedBy::GivenUp { by }) => {
                    format!("drawn by the operator's word, as {by} gave the beacon up")
                }
                None => "not drawn".to_owned(),
            };
            writeln!(
                f,
                "group {}: {} indices, {} of them held; {decided}; {} later windows; {} places due, {} of them \
                 nobody's; {} admitted",
                group.group,
                number(group.count),
                grouped(group.held),
                grouped(group.later_windows),
                number(group.due),
                grouped(group.due_of_nobody),
                grouped(group.admitted),
            )?;
            group.write_round(f)?;
        }
        if let Some(stock) = self.stock {
            writeln!(f, "{stock}")?;
        }
        if let Some(OwnPlace { group, index, place, due_at, admitted_at }) = &self.own {
            let or_never = |turn: &Option<u64>| {
                turn.map_or("never".to_owned(), |turn| format!("at turn {turn}"))
            };
            let place =
                place.map_or("no place".to_owned(), |place| format!("place {}", number(place)));
            let (due, admitted) = (or_never(due_at), or_never(admitted_at));
            writeln!(f, "index {index} of group {group}: {place}, due {due}, admitted {admitted}")?;
        }
        for violation in self.violations.iter().take(MAX_NAMED) {
            writeln!(f, "WRONG: {violation}")?;
        }
        if self.violations.len() > MAX_NAMED {
            writeln!(f, "… {} violations in all", self.violations.len())?;
        }
        match (self.verdict, self.because) {
            (Verdict::Witnessed, _) => {
                write!(f, "Witnessed: the rules were kept, and the root was seen before the round.")
            }
            (Verdict::NotWitnessed, because) => {
                let because = because.map_or_else(String::new, |because| because.to_string());
                write!(f, "Not witnessed: the rules were kept; {because}.")
            }
            (Verdict::Wrong, _) => write!(f, "Wrong: {} violations", self.violations.len()),
        }
    }
}
