//! Visits: a visit begins when the member of a place that is due first uses the page on which tickets are chosen, or
//! with the first admission of the place if there was no such page. Until the visit's end the gate admits the member.
//!
//! A visit begins once, whichever device asks first, and is written before the reply to that request. The clock of
//! visits decides its end, and a pause of the room stops that clock.

use super::join::Membership;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{GroupId, SaleId, UserId};
use crate::domain::sale::serving::MORE_TIME_FACTOR;

/// The visit of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Visit {
    pub place: u32,
    /// The number of a record by which the place was due.
    pub turn: u64,
    /// The beginning of the visit, by the clock of visits, in milliseconds.
    pub began_clock_ms: u64,
    /// Number of admissions that were asked for in it; 0 while its member only looks.
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

/// The entrance of a member: begins the visit of a place unless it has begun, and may be one more admission in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Enter {
    pub sale: SaleId,
    /// The bucket of the buyer.
    pub bucket: u16,
    pub buyer: UserId,
    pub group: GroupId,
    /// The index of the membership.
    pub index: u32,
    /// The visit as it begins, unless it has begun; its attempts are what this entrance adds: 1 if it asks for an
    /// admission, 0 if it only begins the visit.
    pub visit: Visit,
    /// Whether only a visit that has begun goes on: the place has run out.
    pub begun_only: bool,
    /// The length of a visit, in milliseconds; three times as long of who asked for more time.
    pub visit_ms: u64,
    /// Most attempts of a visit.
    pub max_attempts: u16,
}

/// What an entrance has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entered {
    /// The visit as it is now, with this attempt.
    pub visit: Visit,
    /// Whether this entrance began the visit.
    pub begins: bool,
    /// Whether the member asked for more time when joining.
    pub more_time: bool,
}

/// The reply to an entrance of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EnterReply {
    Entered(Entered),
    /// The buyer has no membership with this index.
    NotMember,
    /// The place had run out before its visit began.
    RunOut,
    /// The visit is over.
    Over,
    /// The visit has no attempt left.
    TooManyAttempts,
}

impl Visit {
    /// What is left of a visit when the clock of visits is here, in milliseconds; 0 if it is over. A visit of somebody
    /// who asked for more time is three times as long.
    #[must_use]
    pub fn left_ms(&self, more_time: bool, visit_ms: u64, clock_ms: u64) -> u64 {
        let length = if more_time { visit_ms.saturating_mul(MORE_TIME_FACTOR) } else { visit_ms };
        length.saturating_sub(clock_ms.saturating_sub(self.began_clock_ms))
    }
}

impl Entered {
    /// Whether this is the first admission of a member who has looked before.
    #[must_use]
    pub fn decides(&self) -> bool {
        !self.begins && self.visit.attempts == 1
    }
}

impl Enter {
    /// Whether it asks for an admission, and does not only begin the visit.
    #[must_use]
    pub fn admits(&self) -> bool {
        self.visit.attempts > 0
    }

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
        let more_time = member.more_time;
        let entered = |visit, begins| EnterReply::Entered(Entered { visit, begins, more_time });
        match member.visit {
            None if self.begun_only => EnterReply::RunOut,
            None => entered(self.visit, true),
            Some(_) if !stands(Guard::VisitOnce) => entered(self.visit, true),
            Some(visit) => {
                let attempts = visit.attempts + self.visit.attempts;
                if visit.left_ms(more_time, self.visit_ms, self.visit.began_clock_ms) == 0 {
                    EnterReply::Over
                } else if self.admits() && attempts > self.max_attempts {
                    EnterReply::TooManyAttempts
                } else {
                    entered(Visit { attempts, ..visit }, false)
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

    /// The reply to an entrance into a visit that began at 1 s.
    fn goes_on(attempts: u16, more_time: bool) -> EnterReply {
        let visit = visit(1_000, attempts);
        EnterReply::Entered(Entered { visit, begins: false, more_time })
    }

    fn begins(visit: Visit) -> EnterReply {
        EnterReply::Entered(Entered { visit, begins: true, more_time: false })
    }

    #[test]
    fn a_visit_begins_once_and_ends_by_its_time_or_its_attempts() {
        let begun = member(Some(visit(1_000, 1)));
        let reply = |clock_ms, member: &Membership| enter(clock_ms).reply(Some(member));
        assert_eq!(reply(5_000, &member(None)), begins(visit(5_000, 1)));
        assert_eq!(reply(5_000, &begun), goes_on(2, false));
        assert_eq!(reply(0, &begun), goes_on(2, false), "an older view");
        assert_eq!(reply(600_999, &begun), goes_on(2, false));
        assert_eq!(reply(601_000, &begun), EnterReply::Over);
        let longer = Membership { more_time: true, ..begun };
        assert_eq!(reply(1_800_999, &longer), goes_on(2, true));
        assert_eq!(reply(1_801_000, &longer), EnterReply::Over);
        let last = member(Some(visit(1_000, 2)));
        assert_eq!(reply(5_000, &last), EnterReply::TooManyAttempts);
    }

    /// Whoever looks uses up no attempt, and whoever has none left may look until the visit is over.
    #[test]
    fn who_looks_begins_the_visit_and_the_first_admission_goes_on_with_it() {
        let look = |clock_ms| Enter { visit: visit(clock_ms, 0), ..enter(clock_ms) };
        let looking = member(Some(visit(1_000, 0)));
        assert_eq!(look(1_000).reply(Some(&member(None))), begins(visit(1_000, 0)));
        assert_eq!(look(300_000).reply(Some(&looking)), goes_on(0, false));
        assert_eq!(look(601_000).reply(Some(&looking)), EnterReply::Over);
        let late = Enter { begun_only: true, ..look(300_000) };
        assert_eq!(late.reply(Some(&member(None))), EnterReply::RunOut);
        let after_four_minutes = Enter { begun_only: true, ..enter(240_000) };
        let EnterReply::Entered(entered) = after_four_minutes.reply(Some(&looking)) else {
            panic!()
        };
        assert_eq!(EnterReply::Entered(entered), goes_on(1, false));
        assert!(entered.decides());
        for (attempts, expected) in [(1, 1), (2, 2)] {
            let member = member(Some(visit(1_000, attempts)));
            assert_eq!(look(2_000).reply(Some(&member)), goes_on(expected, false));
        }
        let EnterReply::Entered(second) = enter(2_000).reply(Some(&member(Some(visit(1_000, 1)))))
        else {
            panic!()
        };
        assert!(!second.decides(), "it came with its first admission");
    }

    #[test]
    fn a_place_that_has_run_out_begins_no_visit_and_others_have_none() {
        let late = Enter { begun_only: true, ..enter(5_000) };
        assert_eq!(late.reply(Some(&member(None))), EnterReply::RunOut);
        let begun = member(Some(visit(1_000, 1)));
        assert_eq!(late.reply(Some(&begun)), goes_on(2, false));
        assert_eq!(enter(0).reply(None), EnterReply::NotMember);
        let other_index = Enter { index: 4, ..enter(0) };
        let other_group = Enter { group: GroupId::new("b").unwrap(), ..enter(0) };
        let other_buyer = Enter { buyer: UserId::new("8").unwrap(), ..enter(0) };
        for other in [other_index, other_group, other_buyer] {
            assert_eq!(other.reply(Some(&begun)), EnterReply::NotMember);
        }
    }
}
