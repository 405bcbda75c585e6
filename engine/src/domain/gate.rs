//! The admission gate of one sale, shard by shard: the rules of `lua/admit.lua`.
//!
//! A shard admits a buyer if the sale is not known to be exhausted, the buyer was not admitted a moment
//! ago, the shard's rate allows it, and its budget is not used up. The budget is a share of what is
//! left, in tickets; when it is used up, the caller reads what is really left and tops it up, so
//! that a gate never strands tickets. Over-admission is harmless: the hold refuses.

use std::collections::BTreeMap;

use super::ids::{SaleId, UserId};
use super::time::Timestamp;

/// Ask one shard for an admission.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Admit {
    /// Id of the sale.
    pub sale: SaleId,
    /// Index of the shard, which the buyer decides (see [`shard_of`]).
    pub shard: u16,
    /// The buyer who asks.
    pub user: UserId,
    /// Most tickets that the buyer will order.
    pub tickets: u16,
    /// The time now.
    pub now: Timestamp,
    /// Time between two admissions of a buyer, in milliseconds.
    pub user_lock_ms: u32,
    /// Most admissions a second of this shard.
    pub rate_per_second: u32,
    /// The budget of a shard that has none yet, in tickets.
    pub first_budget: i64,
    /// A new budget, if the shard is still in the generation that was found exhausted.
    pub top_up: Option<TopUp>,
}

/// A new budget for a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopUp {
    /// The generation that was found exhausted: of many callers that saw it, one tops up.
    pub generation: u64,
    /// The new budget, in tickets. Zero makes the shard exhausted for a while.
    pub budget: i64,
    /// Time for which a shard without budget answers `exhausted` without another top-up, in milliseconds.
    pub exhausted_ms: u32,
    /// True if orders still hold seats that may come back: `exhausted` then means waiting, not sold out.
    pub holds: bool,
}

/// The reply of `admit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AdmitReply {
    /// The buyer may order.
    Admitted,
    /// The sale had nothing left at the last top-up.
    Exhausted {
        /// Milliseconds after which asking again is worth it.
        retry_ms: i64,
        /// True if seats are held that may come back.
        holds: bool,
    },
    /// The buyer was admitted less than the buyer's lock ago.
    Locked {
        /// Milliseconds until the lock ends.
        retry_ms: i64,
    },
    /// The shard's rate for this second is used up.
    TooFast {
        /// Milliseconds until the next second.
        retry_ms: i64,
    },
    /// The shard's budget is used up: read what is left and top up.
    BudgetUsedUp {
        /// The generation of that budget, which a top-up must name.
        generation: u64,
    },
}

/// The shard that a buyer's admissions go through.
#[must_use]
pub fn shard_of(user: &UserId, shards: u16) -> u16 {
    super::number::Gene::from_text(user.as_str()).get() % shards.max(1)
}

/// The state of one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct GateShard {
    /// Tickets that may still be admitted; `None` before the first admission.
    pub budget: Option<i64>,
    /// Number of top-ups.
    pub generation: u64,
    /// The second that `admitted` counts.
    pub second: i64,
    /// Admissions in that second.
    pub admitted: u32,
    /// End of the time in which the shard answers `exhausted`.
    pub exhausted_until: Option<Timestamp>,
    /// True if seats were held when the shard became exhausted.
    pub holds: bool,
    /// End of each buyer's lock.
    pub locks: BTreeMap<UserId, Timestamp>,
}

impl GateShard {
    /// Admits a buyer, or says why not.
    pub fn admit(&mut self, command: &Admit) -> AdmitReply {
        let now = command.now;
        let budget = self.budget.unwrap_or(command.first_budget);
        let top_up = command.top_up.filter(|top_up| top_up.generation == self.generation);
        if let Some(top_up) = top_up {
            self.budget = Some(top_up.budget);
            self.generation += 1;
            self.exhausted_until =
                (top_up.budget <= 0).then(|| now.plus_ms(i64::from(top_up.exhausted_ms)));
            self.holds = top_up.holds;
        } else {
            self.budget = Some(budget);
        }
        if let Some(until) = self.exhausted_until.filter(|until| *until > now) {
            return AdmitReply::Exhausted { retry_ms: until.ms_since(now), holds: self.holds };
        }
        if let Some(until) = self.locks.get(&command.user).filter(|until| **until > now) {
            return AdmitReply::Locked { retry_ms: until.ms_since(now) };
        }
        let second = now.ms().div_euclid(1000);
        let admitted = if self.second == second { self.admitted } else { 0 };
        if admitted >= command.rate_per_second {
            return AdmitReply::TooFast { retry_ms: (second + 1) * 1000 - now.ms() };
        }
        let budget = self.budget.unwrap_or(0);
        if budget <= 0 {
            return AdmitReply::BudgetUsedUp { generation: self.generation };
        }
        self.budget = Some(budget - i64::from(command.tickets));
        self.second = second;
        self.admitted = admitted + 1;
        self.locks.insert(command.user.clone(), now.plus_ms(i64::from(command.user_lock_ms)));
        AdmitReply::Admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(user: &str, now_ms: i64) -> Admit {
        Admit {
            sale: SaleId::new("s").unwrap(),
            shard: 0,
            user: UserId::new(user).unwrap(),
            tickets: 2,
            now: Timestamp::from_ms(now_ms),
            user_lock_ms: 5000,
            rate_per_second: 2,
            first_budget: 3,
            top_up: None,
        }
    }

    #[test]
    fn each_refusal_has_its_reason() {
        let mut shard = GateShard::default();
        assert_eq!(shard.admit(&ask("a", 0)), AdmitReply::Admitted);
        assert_eq!(shard.admit(&ask("a", 10)), AdmitReply::Locked { retry_ms: 4990 });
        assert_eq!(
            shard.admit(&ask("b", 20)),
            AdmitReply::Admitted,
            "a last ticket is not stranded"
        );
        assert_eq!(shard.admit(&ask("c", 30)), AdmitReply::TooFast { retry_ms: 970 });
        assert_eq!(shard.admit(&ask("c", 1000)), AdmitReply::BudgetUsedUp { generation: 0 });
    }

    #[test]
    fn asking_again_does_not_prolong_a_lock() {
        let mut shard = GateShard::default();
        assert_eq!(shard.admit(&ask("a", 0)), AdmitReply::Admitted);
        for now_ms in [1, 2500, 4999] {
            assert_eq!(
                shard.admit(&ask("a", now_ms)),
                AdmitReply::Locked { retry_ms: 5000 - now_ms }
            );
        }
        assert_eq!(shard.admit(&ask("a", 5000)), AdmitReply::Admitted);
    }

    #[test]
    fn of_many_that_saw_it_exhausted_one_tops_up() {
        let mut shard = GateShard { budget: Some(0), ..GateShard::default() };
        let top_up =
            |budget| Some(TopUp { generation: 0, budget, exhausted_ms: 1000, holds: false });
        let refill = Admit { top_up: top_up(10), ..ask("a", 0) };
        assert_eq!(shard.admit(&refill), AdmitReply::Admitted);
        let late = Admit { top_up: top_up(10), ..ask("b", 1) };
        assert_eq!(shard.admit(&late), AdmitReply::Admitted);
        assert_eq!((shard.budget, shard.generation), (Some(6), 1));
    }

    #[test]
    fn an_exhausted_shard_refuses_quickly_for_a_while() {
        let mut shard = GateShard { budget: Some(0), ..GateShard::default() };
        let nothing = TopUp { generation: 0, budget: 0, exhausted_ms: 1000, holds: true };
        assert_eq!(
            shard.admit(&Admit { top_up: Some(nothing), ..ask("a", 0) }),
            AdmitReply::Exhausted { retry_ms: 1000, holds: true }
        );
        assert_eq!(
            shard.admit(&ask("b", 400)),
            AdmitReply::Exhausted { retry_ms: 600, holds: true }
        );
        assert_eq!(shard.admit(&ask("b", 1000)), AdmitReply::BudgetUsedUp { generation: 1 });
    }
}
