//! What can be wrong with a publication.

use engine::domain::basics::bytes::Hash;
use engine::domain::basics::ids::GroupId;
use serde::Serialize;

/// The number of the record before.
fn before(number: &u64) -> u64 {
    number.saturating_sub(1)
}

/// What another number of leaves than expected comes from.
fn cause(expected: &u64, found: &u64) -> &'static str {
    if found > expected { "somebody joined late" } else { "entries were dropped" }
}

/// Whose an order is.
fn of(group: Option<&GroupId>, index: Option<&u32>) -> String {
    let both = group.zip(index);
    both.map_or_else(String::new, |(group, index)| format!(" of index {index} of group {group}"))
}

/// A defect of a publication.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "violation", rename_all = "snake_case")]
pub enum Violation {
    /// A line of the log is no record, or not the one that belongs there.
    #[error("record {number}: {reason}")]
    Record {
        /// The number that it should have.
        number: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The log was changed: a record does not have the hash of the one before it.
    #[error("record {number} does not have the hash of record {before}: the log was changed", before = before(.number))]
    Chain {
        /// The number of the record.
        number: u64,
    },
    /// A record has another seed than the one that its source makes.
    #[error("record {number}: group {group} was drawn by another seed than its source makes")]
    Seed {
        /// The number of the record.
        number: u64,
        /// The group.
        group: GroupId,
    },
    /// The arithmetic of a turn comes to another state.
    #[error("record {number}: the rules come to another state from what the turn was given")]
    Arithmetic {
        /// The number of the record.
        number: u64,
    },
    /// The round of the beacon is not accepted.
    #[error("record {number}: round {round} of the beacon: {reason}")]
    Beacon {
        /// The number of the record.
        number: u64,
        /// The number of the round.
        round: u64,
        /// Why it is not accepted.
        reason: String,
    },
    /// The number of leaves is another than N.
    #[error("group {group} has {found} leaves, and {expected} had joined: {cause}", cause = cause(.expected, .found))]
    Leaves {
        /// The group.
        group: GroupId,
        /// N.
        expected: u64,
        /// Number of leaves.
        found: u64,
    },
    /// A chunk does not belong where it stands.
    #[error(
        "chunk {chunk} of group {group} does not lead to the root: an entry was swapped, replaced or dropped"
    )]
    Chunk {
        /// The group.
        group: GroupId,
        /// The number of the chunk.
        chunk: usize,
    },
    /// The leaves have another root than the closing said.
    #[error("the leaves of group {group} have the root {found}, and {expected} was published")]
    Root {
        /// The group.
        group: GroupId,
        /// The root of the closing.
        expected: Hash,
        /// The root of the leaves.
        found: Hash,
    },
    /// Somebody was admitted with an index that was not in a draw by then.
    #[error(
        "index {index} of group {group} was admitted at turn {turn}, and was in no draw by then: it joined late"
    )]
    NotDrawn {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
        /// The turn.
        turn: u64,
    },
    /// Somebody was admitted with another place than the draw gave.
    #[error(
        "index {index} of group {group} was admitted at place {found}, and the draw gave it {expected}"
    )]
    Place {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
        /// The place that the draw gave.
        expected: u32,
        /// The place of the admission.
        found: u32,
    },
    /// Somebody was admitted with an index that nobody held.
    #[error("index {index} of group {group} was admitted, and nobody held it at the draw")]
    Empty {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
    },
    /// Somebody was admitted before the place was due.
    #[error(
        "index {index} of group {group} was admitted at turn {turn}, when places below {serving} were due, and has place {place}"
    )]
    Early {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
        /// The place that the draw gave.
        place: u32,
        /// The turn.
        turn: u64,
        /// The serving number at that turn.
        serving: u32,
    },
    /// Somebody was admitted after the place had run out.
    #[error(
        "index {index} of group {group} was admitted at turn {turn}, when places below {passed} had run out, and has place {place}"
    )]
    RunOut {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
        /// The place that the draw gave.
        place: u32,
        /// The turn.
        turn: u64,
        /// E at that turn.
        passed: u32,
    },
    /// Somebody was admitted twice.
    #[error("index {index} of group {group} was admitted twice")]
    Twice {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
    },
    /// An admission names a group or a turn that is not there.
    #[error(
        "index {index} was admitted to group {group} at turn {turn}, and there is no such group or turn"
    )]
    Unknown {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
        /// The turn.
        turn: u64,
    },
    /// The orders were not published.
    #[error("orders.jsonl is not there: nobody can tell whether admissions were left out")]
    NoOrders,
    /// Seats that neither an order has nor anybody can buy, or that two have.
    #[error(
        "{stock} seat-legs were for sale; {left} are left and orders hold {held}: orders were left out or invented"
    )]
    Stock {
        /// Seat-legs at the publication.
        stock: u64,
        /// Those that no order holds.
        left: u64,
        /// Those that orders hold.
        held: u64,
    },
    /// An order that no admission allows.
    #[error("an order of {seat_legs} seat-legs{} has no admission", of(.group.as_ref(), .index.as_ref()))]
    NoAdmission {
        /// The group, if the order names one.
        group: Option<GroupId>,
        /// The index.
        index: Option<u32>,
        /// What it holds.
        seat_legs: u64,
    },
    /// What somebody saw during the sale is not in the log.
    #[error(
        "{hash} was seen, and is neither the hash of a record nor a root nor the commitment: another log was shown"
    )]
    Unseen {
        /// What was seen.
        hash: Hash,
    },
    /// Who asks was not in the draw.
    #[error("the buyer does not stand at index {index} of group {group}")]
    NotIncluded {
        /// The group.
        group: GroupId,
        /// The index.
        index: u32,
    },
}
