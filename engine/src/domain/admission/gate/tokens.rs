//! The tokens of a gate: how many were issued, taken and added by hand; the rules of
//! `lua/add_tokens.lua`, and the snapshots that are kept of the counts.
//!
//! A shard counts the tokens that its budget was given. Admissions have taken the tokens that the budget lacks of them,
//! so an admission writes no counter. Redis may lose the counts; each set of counts has the time of its beginning.

use serde::Serialize;

use super::{GateShard, Share};
use crate::domain::basics::ids::{AdditionId, SaleId};
use crate::domain::basics::time::Timestamp;

/// Most tokens of one addition by hand.
pub const MAX_TOKENS_PER_ADDITION: u32 = 1_000_000;
/// Most additions by hand to one sale: each is remembered, so that it is never made twice.
pub const MAX_ADDITIONS: u16 = 100;

/// Add tokens to one shard by hand.
///
/// They are admitted once, before the next top-up, whatever is left. So a gate at which nothing is left
/// admits for at most as many tickets as were added, and one order more for each shard; then it refuses
/// again. The hold refuses whom it admits in vain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AddTokens {
    /// Id of the sale.
    pub sale: SaleId,
    /// Index of the shard.
    pub shard: u16,
    /// Id of the addition: the same one is made once at each shard.
    pub id: AdditionId,
    /// Tokens of this shard ([`part_of`]).
    pub tokens: u32,
    /// Tokens of the addition, over all shards.
    pub total: u32,
    /// Most additions that the shard remembers; beyond them it takes none.
    pub max_additions: u16,
    /// The share of a shard that has none yet.
    pub first: Share,
    pub now: Timestamp,
}

/// The reply of `add_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddTokensReply {
    Added,
    /// They were added before.
    Known,
    /// The addition of this id was of another number of tokens, over all shards.
    Differs {
        total: u32,
    },
    /// The shard remembers as many additions as it may.
    TooMany,
}

/// The part of a shard in an addition of `total` tokens: the first shards have one more, if it does
/// not divide.
#[must_use]
pub fn part_of(total: u32, shard: u16, shards: u16) -> u32 {
    let shards = u32::from(shards.max(1));
    total / shards + u32::from(u32::from(shard) < total % shards)
}

impl GateShard {
    /// Adds tokens by hand, once for each id.
    pub fn add_tokens(&mut self, command: &AddTokens) -> AddTokensReply {
        match self.additions.get(&command.id) {
            Some(total) if *total == command.total => return AddTokensReply::Known,
            Some(total) => return AddTokensReply::Differs { total: *total },
            None if self.additions.len() >= usize::from(command.max_additions) => {
                return AddTokensReply::TooMany;
            }
            None => {}
        }
        self.begin(command.first, command.now);
        self.additions.insert(command.id.clone(), command.total);
        if command.tokens > 0 {
            let before = self.budget.unwrap_or(0);
            // What the last buyer took too many is no debt of whoever comes now.
            let budget = before.max(0) + i64::from(command.tokens);
            self.issue(budget, command.now);
            self.filled += budget - before;
            self.by_hand += i64::from(command.tokens);
            self.exhausted_until = None;
        }
        AddTokensReply::Added
    }

    /// What the shard has counted; `None` if it has not begun to.
    #[must_use]
    pub fn counts(&self) -> Option<TokenCounts> {
        let (issued, by_hand) = (self.issued, self.by_hand);
        let counts =
            |since| TokenCounts { issued, by_hand, remaining: self.budget.unwrap_or(0), since };
        self.since.map(counts)
    }
}

/// The tokens of a shard, or of all shards of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct TokenCounts {
    /// Tokens that the budget was given: at first, by top-ups and by hand.
    pub issued: i64,
    /// Those of `issued` that were added by hand.
    pub by_hand: i64,
    /// Tokens that the budget still has; less than none by the rest of an order that took the last.
    pub remaining: i64,
    /// Since when all shards have counted: Redis may have lost what was before.
    pub since: Timestamp,
}

impl TokenCounts {
    /// The sum over the shards that count; `None` if none does.
    #[must_use]
    pub fn sum(shards: impl IntoIterator<Item = Self>) -> Option<Self> {
        shards.into_iter().reduce(|sum, shard| Self {
            issued: sum.issued + shard.issued,
            by_hand: sum.by_hand + shard.by_hand,
            remaining: sum.remaining + shard.remaining,
            since: sum.since.max(shard.since),
        })
    }

    /// Tokens that admissions took.
    #[must_use]
    pub fn used(&self) -> i64 {
        self.issued - self.remaining
    }
}

/// The tokens of a sale at one moment, and what had been bought with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct TokenSnapshot {
    /// When the gate was read.
    pub at: Timestamp,
    /// What it had counted.
    #[serde(flatten)]
    pub counts: TokenCounts,
    /// Tickets of orders that are to be paid or are paid, read a moment before the gate: no more than were
    /// used, unless Redis lost counts. The rest was admitted and is not ordered yet, or never will be, or
    /// its order was cancelled or has expired.
    pub bought: u64,
}

impl TokenSnapshot {
    /// Milliseconds between two snapshots: one is kept of each minute.
    pub const MINUTE_MS: i64 = 60_000;

    /// The minute that the snapshot is kept under, counted from 1970-01-01 UTC.
    #[must_use]
    pub fn minute(at: Timestamp) -> i64 {
        at.ms().div_euclid(Self::MINUTE_MS)
    }

    /// Tokens used a minute since an earlier snapshot; `None` if Redis lost counts in between, or no time
    /// has passed.
    #[must_use]
    pub fn used_per_minute(&self, earlier: &Self) -> Option<i64> {
        let (ms, used) = (self.at.ms_since(earlier.at), self.counts.used() - earlier.counts.used());
        let is_continued = ms > 0 && used >= 0 && self.counts.since <= earlier.at;
        is_continued.then(|| used.saturating_mul(Self::MINUTE_MS) / ms)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Admit, AdmitReply, TopUp};
    use super::*;
    use crate::domain::basics::ids::UserId;

    const NOTHING: Share = Share { budget: 0, left: 0 };

    fn add(id: &str, tokens: u32, now_ms: i64) -> AddTokens {
        AddTokens {
            sale: SaleId::new("s").unwrap(),
            shard: 0,
            id: AdditionId::new(id).unwrap(),
            tokens,
            total: tokens,
            max_additions: 2,
            first: Share { budget: 3, left: 3 },
            now: Timestamp::from_ms(now_ms),
        }
    }

    /// Asks for two tickets, with a top-up from a share if one is needed, as [`crate::flows::admit`] does.
    fn ask(shard: &mut GateShard, now_ms: i64, share: Share) -> AdmitReply {
        let mut command = Admit {
            sale: SaleId::new("s").unwrap(),
            shard: 0,
            user: UserId::new("anybody").unwrap(),
            tickets: 2,
            now: Timestamp::from_ms(now_ms),
            user_lock_ms: 0,
            rate_per_second: u32::MAX,
            first: Share { budget: 3, left: 3 },
            top_up: None,
        };
        loop {
            let reply = shard.admit(&command);
            let AdmitReply::BudgetUsedUp { generation } = reply else { return reply };
            command.top_up = Some(TopUp { generation, share, exhausted_ms: 1000, holds: false });
        }
    }

    fn counts(shard: &GateShard) -> (i64, i64, i64, i64) {
        let counts = shard.counts().unwrap();
        (counts.issued, counts.by_hand, counts.remaining, counts.used())
    }

    #[test]
    fn what_is_issued_and_not_there_any_more_was_admitted() {
        let mut shard = GateShard::default();
        assert_eq!(shard.counts(), None);
        let mut admitted = 0;
        for now_ms in (5..60_000).step_by(37) {
            if now_ms % 10 == 0 {
                let id = (now_ms % 3).to_string();
                shard.add_tokens(&add(&id, 4, now_ms));
            }
            let left = (60_000 - now_ms) / 2000;
            let share = Share { budget: left, left };
            admitted += 2 * i64::from(ask(&mut shard, now_ms, share) == AdmitReply::Admitted);
            assert_eq!(shard.counts().unwrap().used(), admitted, "at {now_ms}: {shard:?}");
            assert!(shard.counts().unwrap().remaining > -2);
        }
        assert!(admitted > 50, "{admitted}");
        assert_eq!(shard.counts().unwrap().by_hand, 8, "two additions are remembered, and no more");
        assert_eq!(shard.counts().unwrap().since, Timestamp::from_ms(5));
    }

    #[test]
    fn an_addition_is_made_once_and_before_anybody_came() {
        let mut shard = GateShard::default();
        assert_eq!(shard.add_tokens(&add("a", 4, 0)), AddTokensReply::Added);
        assert_eq!(counts(&shard), (7, 4, 7, 0));
        assert_eq!(shard.add_tokens(&add("a", 4, 1)), AddTokensReply::Known);
        assert_eq!(shard.add_tokens(&add("a", 5, 2)), AddTokensReply::Differs { total: 4 });
        // A shard that has no part in it remembers it too.
        let none = AddTokens { total: 1, ..add("b", 0, 3) };
        assert_eq!(shard.add_tokens(&none), AddTokensReply::Added);
        assert_eq!(shard.add_tokens(&none), AddTokensReply::Known);
        assert_eq!(shard.add_tokens(&add("c", 4, 4)), AddTokensReply::TooMany);
        assert_eq!(counts(&shard), (7, 4, 7, 0));
    }

    #[test]
    fn an_addition_opens_a_gate_at_once_and_for_its_tokens_alone() {
        let mut shard = GateShard::default();
        let sold_out = |reply| matches!(reply, AdmitReply::Exhausted { .. });
        let mut now_ms = 0;
        while !sold_out(ask(&mut shard, now_ms, NOTHING)) {
            now_ms += 1;
        }
        assert_eq!(counts(&shard), (4, 0, 0, 4), "the last token was good for two tickets");
        assert_eq!(shard.add_tokens(&add("a", 5, now_ms)), AddTokensReply::Added);
        assert_eq!(counts(&shard), (9, 5, 5, 4));
        let mut admitted = 0;
        for now_ms in (now_ms..now_ms + 3_600_000).step_by(100) {
            admitted += 2 * i64::from(ask(&mut shard, now_ms, NOTHING) == AdmitReply::Admitted);
        }
        assert_eq!(admitted, 6, "five tokens, and the rest of the last order");
        assert_eq!(counts(&shard), (10, 5, 0, 10));
    }

    #[test]
    fn a_top_up_that_was_under_way_leaves_what_was_added() {
        let mut shard = GateShard::default();
        for _ in 0..2 {
            assert_eq!(ask(&mut shard, 0, NOTHING), AdmitReply::Admitted);
        }
        // Somebody has seen generation 0 used up and reads what is left; the operator adds; then it comes.
        assert_eq!(shard.add_tokens(&add("a", 10, 1)), AddTokensReply::Added);
        let late = |share| Some(TopUp { generation: 0, share, exhausted_ms: 1000, holds: false });
        let mut command = Admit {
            sale: SaleId::new("s").unwrap(),
            shard: 0,
            user: UserId::new("anybody").unwrap(),
            tickets: 2,
            now: Timestamp::from_ms(2),
            user_lock_ms: 0,
            rate_per_second: 100,
            first: NOTHING,
            top_up: late(NOTHING),
        };
        assert_eq!(shard.admit(&command), AdmitReply::Admitted);
        assert_eq!((shard.generation, shard.outstanding), (1, 1), "three of four have reserved");
        assert_eq!(counts(&shard), (14, 10, 8, 6));
        command.top_up = None;
        assert_eq!(shard.admit(&command), AdmitReply::Admitted);
    }

    #[test]
    fn the_parts_of_an_addition_are_all_of_it() {
        for (total, shards, parts) in
            [(10, 4, vec![3, 3, 2, 2]), (3, 4, vec![1, 1, 1, 0]), (7, 1, vec![7])]
        {
            let all: Vec<u32> = (0..shards).map(|shard| part_of(total, shard, shards)).collect();
            assert_eq!(all, parts);
        }
        assert_eq!(part_of(5, 0, 0), 5);
    }

    #[test]
    fn a_rate_needs_counts_that_were_not_lost() {
        let at = |ms: i64, used: i64, since: i64| TokenSnapshot {
            at: Timestamp::from_ms(ms),
            counts: TokenCounts {
                issued: used + 5,
                by_hand: 0,
                remaining: 5,
                since: Timestamp::from_ms(since),
            },
            bought: 0,
        };
        let first = at(1000, 30, 0);
        assert_eq!(at(121_000, 90, 0).used_per_minute(&first), Some(30));
        assert_eq!(at(61_000, 90, 2000).used_per_minute(&first), None, "begun again");
        assert_eq!(at(61_000, 20, 0).used_per_minute(&first), None, "fallen back");
        assert_eq!(first.used_per_minute(&first), None);
        assert_eq!(TokenSnapshot::minute(Timestamp::from_ms(119_999)), 1);
    }

    #[test]
    fn shards_add_up_since_the_last_has_begun() {
        let shard = |issued, since| TokenCounts {
            issued,
            by_hand: 1,
            remaining: 2,
            since: Timestamp::from_ms(since),
        };
        assert_eq!(TokenCounts::sum([]), None);
        let sum = TokenCounts::sum([shard(5, 20), shard(7, 10)]).unwrap();
        assert_eq!((sum.issued, sum.by_hand, sum.remaining, sum.since.ms()), (12, 2, 4, 20));
        assert_eq!(sum.used(), 8);
    }
}
