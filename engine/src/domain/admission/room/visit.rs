//! Visits: a visit begins with the first admission of a place that is due, and until its end the gate admits the member
//! again.
//!
//! A visit begins once, whichever device asks first, and is written before the reply to that request. The clock of
//! visits decides its end, and a pause of the room stops that clock.

use super::join::Membership;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};
use crate::domain::sale::serving::MORE_TIME_FACTOR;

/// The visit of a place: from its first admission on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Visit {
    pub place: u32,
    /// The number of a record by which the place was due.
    pub turn: u64,
    /// The beginning of the visit, by the clock of visits, in milliseconds.
    pub began_clock_ms: u64,
    /// Number of admissions that were asked for in it.
    pub attempts: u16,
}

/// What is kept of a visit whose holder has joined again: that an index was admitted stays to be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Admitted {
    pub index: u32,
    pub place: u32,
    /// The number of a record by which the place was due.
    pub turn: u64,
}

/// The admission of a member: begins the visit of a place, or is one more attempt in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Enter {
    pub sale: SaleId,
    /// The bucket of the buyer.
    pub bucket: u16,
    pub buyer: UserId,
    pub group: GroupId,
    /// The index of the membership.
    pub index: u32,
    /// The visit as it begins, with one attempt, unless it has begun.
    pub visit: Visit,
    /// Whether only a visit that has begun goes on: the place has run out.
    pub begun_only: bool,
    /// The length of a visit, in milliseconds; three times as long of who asked for more time.
    pub visit_ms: u64,
    /// Most attempts of a visit.
    pub max_attempts: u16,
}

/// The reply to an admission of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EnterReply {
    /// The visit as it is now, with this attempt.
    Entered(Visit),
    /// The buyer has no membership with this index.
    NotMember,
    /// The place had run out before its visit began.
    RunOut,
    /// The visit is over.
    Over,
    /// The visit has no attempt left.
    TooManyAttempts,
}

/// Whether a visit is over when the clock of visits is here.
#[must_use]
pub fn is_over(visit: &Visit, more_time: bool, visit_ms: u64, clock_ms: u64) -> bool {
    let length = if more_time { visit_ms.saturating_mul(MORE_TIME_FACTOR) } else { visit_ms };
    clock_ms.saturating_sub(visit.began_clock_ms) >= length
}

impl Enter {
    /// The reply to it of who has this membership, if any: what a conditional write has to keep. The clock of
    /// visits is that of the visit as it would begin.
    #[must_use]
    pub fn reply(&self, membership: Option<&Membership>) -> EnterReply {
        let is_it = |member: &&Membership| {
            member.index.number == self.index
                && member.group == self.group
                && member.buyer == self.buyer
        };
        let Some(member) = membership.filter(is_it) else { return EnterReply::NotMember };
        match member.visit {
            None if self.begun_only => EnterReply::RunOut,
            None => EnterReply::Entered(self.visit),
            Some(_) if !stands(Guard::VisitOnce) => EnterReply::Entered(self.visit),
            Some(visit) => {
                let clock_ms = self.visit.began_clock_ms;
                if is_over(&visit, member.more_time, self.visit_ms, clock_ms) {
                    EnterReply::Over
                } else if visit.attempts >= self.max_attempts {
                    EnterReply::TooManyAttempts
                } else {
                    EnterReply::Entered(Visit { attempts: visit.attempts + 1, ..visit })
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::admission::room::join::{Index, JoinWindow};
    use crate::domain::basics::bytes::Nonce;
    use crate::domain::basics::time::Timestamp;

    fn member(visit: Option<Visit>) -> Membership {
        Membership {
            sale: SaleId::new("s").unwrap(),
            group: GroupId::new("all").unwrap(),
            buyer: UserId::new("7").unwrap(),
            index: Index { number: 3, window: JoinWindow::First },
            nonce: Nonce([1; 16]),
            joined_at: Timestamp::from_ms(0),
            more_time: false,
            rejoined: 0,
            visit,
            earlier: Vec::new(),
        }
    }

    fn visit(began_clock_ms: u64, attempts: u16) -> Visit {
        Visit { place: 9, turn: 4, began_clock_ms, attempts }
    }

    fn enter(clock_ms: u64) -> Enter {
        let Membership { sale, group, buyer, index, .. } = member(None);
        Enter {
            sale,
            bucket: 0,
            buyer,
            group,
            index: index.number,
            visit: visit(clock_ms, 1),
            begun_only: false,
            visit_ms: 600_000,
            max_attempts: 2,
        }
    }

    #[test]
    fn a_visit_begins_once_and_ends_by_its_time_or_its_attempts() {
        let begun = member(Some(visit(1_000, 1)));
        let reply = |clock_ms, member: &Membership| enter(clock_ms).reply(Some(member));
        assert_eq!(reply(5_000, &member(None)), EnterReply::Entered(visit(5_000, 1)));
        assert_eq!(reply(5_000, &begun), EnterReply::Entered(visit(1_000, 2)));
        assert_eq!(reply(0, &begun), EnterReply::Entered(visit(1_000, 2)), "an older view");
        assert_eq!(reply(600_999, &begun), EnterReply::Entered(visit(1_000, 2)));
        assert_eq!(reply(601_000, &begun), EnterReply::Over);
        let longer = Membership { more_time: true, ..begun };
        assert_eq!(reply(1_800_999, &longer), EnterReply::Entered(visit(1_000, 2)));
        assert_eq!(reply(1_801_000, &longer), EnterReply::Over);
        let last = member(Some(visit(1_000, 2)));
        assert_eq!(reply(5_000, &last), EnterReply::TooManyAttempts);
    }

    #[test]
    fn a_place_that_has_run_out_begins_no_visit_and_others_have_none() {
        let late = Enter { begun_only: true, ..enter(5_000) };
        assert_eq!(late.reply(Some(&member(None))), EnterReply::RunOut);
        let begun = member(Some(visit(1_000, 1)));
        assert_eq!(late.reply(Some(&begun)), EnterReply::Entered(visit(1_000, 2)));
        assert_eq!(enter(0).reply(None), EnterReply::NotMember);
        let other_index = Enter { index: 4, ..enter(0) };
        let other_group = Enter { group: GroupId::new("b").unwrap(), ..enter(0) };
        let other_buyer = Enter { buyer: UserId::new("8").unwrap(), ..enter(0) };
        for other in [other_index, other_group, other_buyer] {
            assert_eq!(other.reply(Some(&begun)), EnterReply::NotMember);
        }
    }
}
