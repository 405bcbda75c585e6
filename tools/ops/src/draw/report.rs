//! The report of a check.

use std::fmt;

use engine::domain::basics::ids::{GroupId, SaleId};
use reporting::grouped;
use serde::Serialize;

use super::violation::Violation;

/// Most violations that the text names; JSON names all.
const MAX_NAMED: usize = 40;

/// What decided a draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedBy {
    /// A round of the beacon.
    Beacon {
        /// Its number.
        round: u64,
    },
    /// The revealed secret.
    Secret,
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
    /// Later windows.
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
    /// True if nothing is wrong.
    pub clean: bool,
    /// The sale; none if the log does not begin with its publication.
    pub sale: Option<SaleId>,
    /// Records of the log.
    pub records: u64,
    /// Records whose arithmetic was done again.
    pub turns: u64,
    /// The groups.
    pub groups: Vec<Group>,
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

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sale = self.sale.as_ref().map_or("an unknown sale", SaleId::as_str);
        writeln!(f, "The draw of {sale}: {} records", grouped(self.records))?;
        let number = |number: u32| grouped(u64::from(number));
        for group in &self.groups {
            let decided = match group.decided_by {
                Some(DecidedBy::Beacon { round }) => {
                    format!("drawn by round {round} of the beacon")
                }
                Some(DecidedBy::Secret) => {
                    "drawn by the operator's secret, which is weaker than a beacon".to_owned()
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
        match self.clean {
            true => write!(f, "Everything is as the rules make it from what was published."),
            false => write!(f, "{} violations", self.violations.len()),
        }
    }
}
