//! The sale's slot is asked in rounds: nobody's second question of a second is taken before everybody's first, however
//! many admissions a buyer has; and whoever began an order in this sale without paying it asks in the second round.
//!
//! A new admission of a visit ends the one before, so that a buyer has one at a time. The board keeps the latest of each
//! buyer; if Redis forgets it, an earlier one is taken once more, and still counts as its buyer's question.

use serde::{Deserialize, Serialize};

use super::document::{drop_percent, retry_ms};

/// Buyers a second who may ask the slot whatever the rule says. The rule counts the seats that were free at the
/// last turn, but seats come back between two turns, and admitted buyers have to hear that nothing is left.
pub const LEAST_PER_SECOND: u64 = 10;
/// Time after which a buyer whose question comes too early may ask again, in milliseconds: the next second.
const OWN_RETRY_MS: u64 = 1_000;

/// What an admission says of its buyer's questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Asking {
    /// The number of the admission in its visit, from 1; 0 if it was given before admissions had one.
    #[serde(default)]
    pub attempt: u16,
    /// True if the buyer has an order in this sale that ended unpaid.
    #[serde(default)]
    pub gave_up: bool,
}

/// The questions of one second to the sale's slot in Redis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Asked {
    /// The number of questions of the same buyer, this one included.
    pub own: u64,
    /// The number of buyers who asked.
    pub buyers: u64,
    /// The number of buyers who asked in the second before.
    pub before: u64,
    /// The buyer's latest admission; 0 if none is known.
    pub latest: u16,
}

/// Whether a question may go to the sale's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayAsk {
    Yes,
    /// This second has as many questions as the rule allows.
    No {
        /// Time after which to ask again, in milliseconds.
        retry_ms: u64,
    },
    /// The buyer has a later admission.
    Replaced,
}

impl Asked {
    /// Decides on a question, of which this second may have so many. A second has room for a second round if everybody who
    /// asked in it, or in the one before, could ask twice.
    #[must_use]
    pub fn decide(&self, asking: Asking, per_second: u64) -> MayAsk {
        if asking.attempt > 0 && asking.attempt < self.latest {
            return MayAsk::Replaced;
        }
        let may = per_second.max(LEAST_PER_SECOND);
        let round = self.own + u64::from(asking.gave_up);
        let asked = match round {
            0 | 1 => self.buyers,
            2 => self.buyers.max(self.before).saturating_mul(2),
            _ => return MayAsk::No { retry_ms: OWN_RETRY_MS },
        };
        if asked <= may {
            return MayAsk::Yes;
        }
        // The wait follows the drop percentage, as in the room document: the more are refused, the longer a buyer waits.
        let retry_ms = retry_ms(drop_percent(asked, may));
        MayAsk::No { retry_ms: if self.own > 1 { retry_ms.max(OWN_RETRY_MS) } else { retry_ms } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Asking = Asking { attempt: 1, gave_up: false };

    fn decided(own: u64, buyers: u64, before: u64) -> MayAsk {
        Asked { own, buyers, before, latest: 1 }.decide(FIRST, 100)
    }

    #[test]
    fn everybody_asks_once_before_anybody_asks_twice() {
        assert_eq!(decided(1, 100, 1_000), MayAsk::Yes);
        assert!(matches!(decided(1, 101, 0), MayAsk::No { .. }));
        assert_eq!(decided(2, 50, 50), MayAsk::Yes, "there is room for two of each");
        for (buyers, before) in [(51, 0), (2, 51)] {
            let MayAsk::No { retry_ms } = decided(2, buyers, before) else { panic!("{buyers}") };
            assert!(retry_ms >= OWN_RETRY_MS, "{retry_ms}");
        }
        assert_eq!(decided(3, 1, 1), MayAsk::No { retry_ms: OWN_RETRY_MS });
    }

    #[test]
    fn who_gave_seats_back_asks_after_those_who_did_not() {
        let asking = Asking { gave_up: true, ..FIRST };
        let decide = |own, buyers| Asked { own, buyers, before: 0, latest: 1 }.decide(asking, 100);
        assert_eq!(decide(1, 50), MayAsk::Yes);
        assert!(matches!(decide(1, 51), MayAsk::No { .. }));
        assert!(matches!(decide(2, 1), MayAsk::No { .. }));
    }

    #[test]
    fn a_new_admission_ends_the_one_before_and_what_is_unknown_ends_none() {
        let decide = |attempt, latest| {
            let asked = Asked { own: 1, buyers: 1, before: 0, latest };
            asked.decide(Asking { attempt, gave_up: false }, 0)
        };
        for (attempt, latest, expected) in [
            (1, 2, MayAsk::Replaced),
            (2, 2, MayAsk::Yes),
            (3, 2, MayAsk::Yes),
            (1, 0, MayAsk::Yes),
            (0, 2, MayAsk::Yes),
        ] {
            assert_eq!(decide(attempt, latest), expected, "{attempt} {latest}");
        }
    }

    /// The rule lets ten buyers a second ask in the last minutes: ten admissions of one buyer are one of them.
    #[test]
    fn one_buyer_with_ten_admissions_shuts_nobody_out() {
        let mut questions = 0;
        for second in 0..10_u64 {
            let mut by_buyer = std::collections::BTreeMap::new();
            let bot = (0..10).map(|_| 0_u64);
            for buyer in bot.chain(1..=5) {
                let own = by_buyer.entry(buyer).or_insert(0_u64);
                *own += 1;
                let (own, buyers) = (*own, by_buyer.len() as u64);
                let before = if second == 0 { 0 } else { 6 };
                let may = Asked { own, buyers, before, latest: 0 }.decide(FIRST, 0);
                if buyer > 0 {
                    assert_eq!(may, MayAsk::Yes, "{buyer} in second {second}");
                } else if may == MayAsk::Yes {
                    questions += 1;
                }
            }
        }
        // One a second; two in the first, before which nobody was there.
        assert_eq!(questions, 11);
    }
}
