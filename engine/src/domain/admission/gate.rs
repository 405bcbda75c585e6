//! The admission gate of one sale, shard by shard: the rules of `lua/admit.lua`.
//!
//! A shard admits a buyer if the sale is not known to be exhausted, the buyer was not admitted a moment
//! ago, the shard's rate allows it, and its budget is not used up. When the budget is used up, the
//! caller reads what is really left and tops it up, once a second at most: with a share of what is
//! left, less what is outstanding, which are tickets of buyers who were admitted and have not reserved
//! yet. The shard estimates them: it knows what it has admitted, and takes its part of what the whole
//! sale has lost for what its buyers have reserved. An estimate halves each second, so buyers who
//! never reserve are forgotten and a gate never strands tickets. Over-admission is harmless: the hold
//! refuses.
//!
//! A token is a unit of the budget: one ticket. The shards count those they were given ([`tokens`]): by
//! the first budget, by top-ups and by hand.

pub mod tokens;

use std::collections::BTreeMap;

use crate::domain::basics::ids::{AdditionId, SaleId, UserId};
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::{GateSettings, Sale};

/// Least time between two top-ups of a shard, in milliseconds.
const TOP_UP_MS: i64 = 1000;

/// A shard's share of what is left of a sale, in tickets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Share {
    /// Tickets that the shard may have admitted at a time. Zero only if nothing is left.
    pub budget: i64,
    /// The shard's part of the tickets that are left.
    pub left: i64,
}

impl Share {
    /// The share of a sale with a waiting room, whose turns are the only budget: the shard bounds the rate
    /// alone. No sale has so many tickets, and a double keeps the number exactly.
    pub const BY_TURNS: Self = Self { budget: 1 << 52, left: 1 << 52 };

    /// The share of each shard if `seat_legs` are free in a sale of `leg_count` legs.
    ///
    /// A ticket takes `(leg_count + 2) / 3` seat-legs: the mean over all journeys of a train, and one
    /// in a sale without stops. The budget is never zero while anything is free: a gate must not
    /// strand tickets.
    #[must_use]
    pub fn new(gate: &GateSettings, leg_count: u16, seat_legs: u64) -> Self {
        let tickets = seat_legs * 3 / (u64::from(leg_count) + 2);
        let shards = u64::from(gate.shards.max(1));
        let budget = tickets * u64::from(gate.budget_percent) / 100 / shards;
        let budget = if seat_legs == 0 { 0 } else { budget.max(1) };
        let signed = |tickets: u64| i64::try_from(tickets).unwrap_or(i64::MAX);
        Self { budget: signed(budget), left: signed(tickets / shards) }
    }

    /// The share with which each shard of a sale begins, of which nothing is taken yet; [`Share::BY_TURNS`]
    /// of a sale with a waiting room.
    ///
    /// A train begins with `seats × stops × budget_percent / 100` tokens over all shards, three quarters
    /// of a ticket for each seat and stop by default: as many as could be sold if nearly everybody went
    /// from one stop to the next. Once they are used up, the budget follows what is really free, as in
    /// any other sale ([`Share::new`]).
    #[must_use]
    pub fn opening(sale: &Sale) -> Self {
        let (gate, stops) = (&sale.file().gate, sale.file().stops.len());
        if sale.room().is_some() {
            return Self::BY_TURNS;
        }
        let share = Self::new(gate, sale.leg_count(), sale.seat_legs());
        if stops == 0 {
            return share;
        }
        let seats = sale.seat_legs() / u64::from(sale.leg_count().max(1));
        let budget = Self::of_train(gate, seats, u64::try_from(stops).unwrap_or(u64::MAX));
        Self { budget, ..share }
    }

    /// The first budget of each shard of a train.
    fn of_train(gate: &GateSettings, seats: u64, stops: u64) -> i64 {
        let tokens = seats.saturating_mul(stops).saturating_mul(gate.budget_percent.into()) / 100;
        let budget = tokens / u64::from(gate.shards.max(1));
        let budget = if seats == 0 { 0 } else { budget.max(1) };
        i64::try_from(budget).unwrap_or(i64::MAX)
    }
}

/// The command that asks one shard of a gate for an admission.
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
    pub now: Timestamp,
    /// Time between two admissions of a buyer, in milliseconds.
    pub user_lock_ms: u32,
    /// Most admissions a second of this shard.
    pub rate_per_second: u32,
    /// The share of a shard that has none yet: of the whole sale.
    pub first: Share,
    /// A new budget, if the shard is still in the generation that was found exhausted.
    pub top_up: Option<TopUp>,
}

/// A new budget for a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TopUp {
    /// The generation that was found exhausted: of many callers that saw it, one tops up.
    pub generation: u64,
    /// The shard's share of what is left. If outstanding admissions take all of it, the shard is
    /// exhausted for a while.
    pub share: Share,
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
    /// The sale had nothing left at the last top-up, or what it had is promised to those admitted.
    Exhausted {
        /// Milliseconds after which asking again is worth it.
        retry_ms: i64,
        /// True if seats are held or promised, so that some may come back; false if all are sold.
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
    /// The shard's budget is used up, and the last top-up is a second ago: read what is left and top up.
    BudgetUsedUp {
        /// The generation of that budget, which a top-up must name.
        generation: u64,
    },
}

/// The shard that a buyer's admissions go through.
#[must_use]
pub fn shard_of(user: &UserId, shards: u16) -> u16 {
    crate::domain::basics::number::Gene::from_text(user.as_str()).get() % shards.max(1)
}

/// The state of one shard.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct GateShard {
    /// Tickets that may still be admitted, less than none if the last buyer took more than there were;
    /// `None` before the first admission.
    pub budget: Option<i64>,
    pub generation: u64,
    /// The second that `admitted` counts.
    pub second: i64,
    /// Admissions in that second.
    pub admitted: u32,
    /// End of the time in which the shard answers `exhausted`.
    pub exhausted_until: Option<Timestamp>,
    /// True if seats were held or promised when the shard became exhausted.
    pub holds: bool,
    /// Budget after the last top-up: what `budget` lacks of it was admitted since, in tickets.
    pub filled: i64,
    /// The shard's part of what was left at the last top-up, in tickets.
    pub left: i64,
    /// Estimate at the last top-up of the tickets that were admitted and not reserved.
    pub outstanding: i64,
    /// Time of the last top-up; `None` before the first.
    pub topped_up_at: Option<Timestamp>,
    /// End of each buyer's lock.
    pub locks: BTreeMap<UserId, Timestamp>,
    /// Tokens that the budget was given since `since`; what `budget` lacks of them was admitted.
    pub issued: i64,
    /// Those of `issued` that were added by hand.
    pub by_hand: i64,
    /// Since when the shard counts; `None` before its first budget, and if Redis lost it.
    pub since: Option<Timestamp>,
    /// Tokens of each addition by hand, over all shards.
    pub additions: BTreeMap<AdditionId, u32>,
}

impl GateShard {
    /// Admits a buyer, or says why not.
    pub fn admit(&mut self, command: &Admit) -> AdmitReply {
        let now = command.now;
        match command.top_up.filter(|top_up| top_up.generation == self.generation) {
            Some(top_up) => self.top_up(&top_up, now),
            None => self.begin(command.first, now),
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
            let next = self.topped_up_at.map(|at| at.plus_ms(TOP_UP_MS)).filter(|next| *next > now);
            return match next {
                Some(next) => AdmitReply::Exhausted { retry_ms: next.ms_since(now), holds: true },
                None => AdmitReply::BudgetUsedUp { generation: self.generation },
            };
        }
        self.budget = Some(budget - i64::from(command.tickets));
        self.second = second;
        self.admitted = admitted + 1;
        self.locks.insert(command.user.clone(), now.plus_ms(i64::from(command.user_lock_ms)));
        AdmitReply::Admitted
    }

    /// Gives a shard that has no budget its first one.
    fn begin(&mut self, first: Share, now: Timestamp) {
        if self.budget.is_none() {
            self.issue(first.budget, now);
            (self.filled, self.left) = (first.budget, first.left);
        }
    }

    /// Sets the budget, and counts what it gained as issued.
    fn issue(&mut self, budget: i64, now: Timestamp) {
        match self.since {
            Some(_) => self.issued += budget - self.budget.unwrap_or(0),
            None => (self.issued, self.since) = (budget, Some(now)),
        }
        self.budget = Some(budget);
    }

    /// Replaces a used-up budget by the share, less what is outstanding. Tokens that were added by hand
    /// while the caller read what is left stay.
    ///
    /// What was reserved since the last top-up pays off what was outstanding then, and after it what
    /// was admitted since. What remains of the former halves for each second that has passed.
    fn top_up(&mut self, top_up: &TopUp, now: Timestamp) {
        let granted = self.filled - self.budget.unwrap_or(self.filled);
        let reserved = (self.left - top_up.share.left).max(0);
        let seconds = self.topped_up_at.map_or(1, |at| (now.ms_since(at) / 1000).clamp(1, 62));
        let earlier = (self.outstanding - reserved).max(0) >> seconds;
        let later = (granted - (reserved - self.outstanding).max(0)).max(0);
        self.outstanding = earlier + later;
        let kept = self.budget.unwrap_or(0).max(0);
        let budget = (top_up.share.budget - self.outstanding).max(0) + kept;
        self.issue(budget, now);
        (self.filled, self.left) = (budget, top_up.share.left);
        self.topped_up_at = Some(now);
        self.generation += 1;
        self.exhausted_until = (budget <= 0).then(|| now.plus_ms(i64::from(top_up.exhausted_ms)));
        self.holds = top_up.holds || top_up.share.budget > 0;
    }
}

#[cfg(test)]
mod crowd;

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
            first: Share { budget: 3, left: 3 },
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

    /// Asks with a top-up of this generation while this is left, all of which one shard may admit.
    fn top_up(user: &str, now_ms: i64, generation: u64, left: i64) -> Admit {
        let share = Share { budget: left, left };
        let top_up = TopUp { generation, share, exhausted_ms: 1000, holds: false };
        Admit { top_up: Some(top_up), rate_per_second: 100, ..ask(user, now_ms) }
    }

    #[test]
    fn of_many_that_saw_it_exhausted_one_tops_up() {
        let mut shard = GateShard { budget: Some(0), ..GateShard::default() };
        let refill = top_up("a", 0, 0, 10);
        assert_eq!(shard.admit(&refill), AdmitReply::Admitted);
        let late = top_up("b", 1, 0, 10);
        assert_eq!(shard.admit(&late), AdmitReply::Admitted);
        assert_eq!((shard.budget, shard.generation), (Some(6), 1));
    }

    #[test]
    fn an_exhausted_shard_refuses_quickly_for_a_while() {
        let mut shard = GateShard { budget: Some(0), ..GateShard::default() };
        let share = Share { budget: 0, left: 0 };
        let nothing = TopUp { generation: 0, share, exhausted_ms: 1000, holds: true };
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

    #[test]
    fn a_share_is_in_tickets_and_never_zero_while_anything_is_free() {
        let gate = GateSettings { shards: 4, budget_percent: 75, ..GateSettings::default() };
        assert_eq!(Share::new(&gate, 1, 1000), Share { budget: 187, left: 250 });
        // On a train of four legs a ticket takes two of them in the mean.
        assert_eq!(Share::new(&gate, 4, 1000), Share { budget: 93, left: 125 });
        assert_eq!(Share::new(&gate, 4, 1), Share { budget: 1, left: 0 });
        assert_eq!(Share::new(&gate, 1, 0), Share { budget: 0, left: 0 });
    }

    #[test]
    fn a_train_opens_with_three_quarters_of_a_ticket_for_each_seat_and_stop() {
        let sale = |stops: usize, gate: serde_json::Value| {
            let stops: Vec<_> = (0..stops)
                .map(|stop| serde_json::json!({ "stop": stop.to_string(), "name": "x" }))
                .collect();
            let file = serde_json::json!({
                "sale": "t", "title": "Train", "currency": "CNY", "stops": stops, "gate": gate,
                "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
                "limit_per_buyer": 5, "pay_window_seconds": 600,
                "tiers": [{ "tier": "a", "name": "A", "price_minor": 1, "general_admission": 1000 }]
            });
            Sale::new(serde_json::from_value(file).unwrap()).unwrap()
        };
        let [four, all] = [serde_json::json!({}), serde_json::json!({ "budget_percent": 100 })];
        for (stops, gate, budget, left) in [
            // 1,000 × 16 × 3/4 over four shards; what is left is in tickets of the mean journey.
            (16, &four, 3000, 1000 * 15 * 3 / 17 / 4),
            (6, &four, 1125, 1000 * 5 * 3 / 7 / 4),
            (2, &four, 375, 250),
            (16, &all, 4000, 1000 * 15 * 3 / 17 / 4),
            // A concert has no stops.
            (0, &four, 187, 250),
        ] {
            let share = Share::opening(&sale(stops, gate.clone()));
            assert_eq!(share, Share { budget, left }, "{stops} stops");
        }
        // Whoever has a waiting room is admitted by turns.
        let mut file = sale(16, four.clone()).file().clone();
        file.room = Some(crate::domain::sale::RoomSettings::default());
        assert_eq!(Share::opening(&Sale::new(file).unwrap()), Share::BY_TURNS);
        let gate = GateSettings::default();
        assert_eq!((Share::of_train(&gate, 0, 9), Share::of_train(&gate, 1, 2)), (0, 1));
    }

    #[test]
    fn a_top_up_leaves_to_those_admitted_what_they_have_not_reserved() {
        let mut shard = GateShard::default();
        for (user, now_ms) in [("a", 0), ("b", 1)] {
            assert_eq!(shard.admit(&ask(user, now_ms)), AdmitReply::Admitted);
        }
        // Four tickets are admitted, three are left, and nobody has reserved.
        let full = AdmitReply::Exhausted { retry_ms: 1000, holds: true };
        assert_eq!(shard.admit(&top_up("c", 2, 0, 3)), full);
        assert_eq!((shard.outstanding, shard.budget), (4, Some(0)));
        // One of the two has: what the other was promised halves.
        assert_eq!(shard.admit(&top_up("c", 1002, 1, 1)), full);
        assert_eq!((shard.outstanding, shard.budget), (1, Some(0)));
        assert_eq!(shard.admit(&top_up("c", 2002, 2, 1)), AdmitReply::Admitted);
        assert_eq!((shard.outstanding, shard.budget), (0, Some(-1)));
    }

    #[test]
    fn what_was_reserved_pays_off_what_was_outstanding_first() {
        let filled = |outstanding: i64, granted: i64| GateShard {
            budget: Some(-1),
            filled: granted - 1,
            left: 100,
            outstanding,
            topped_up_at: Some(Timestamp::from_ms(0)),
            ..GateShard::default()
        };
        for (outstanding, granted, left, now_ms, expected) in [
            (8, 10, 100, 1000, 14), // nobody has reserved
            (8, 10, 96, 1000, 12),  // four of the earlier ones have
            (8, 10, 89, 1000, 7),   // all of them, and three of the later ones
            (8, 10, 50, 1000, 0),   // more than this shard has admitted
            (8, 10, 120, 1000, 14), // seats came back
            (8, 0, 100, 1999, 4),   // a second passed, and not two
            (8, 0, 100, 3000, 1),
            (8, 0, 100, 600_000_000, 0),
            (8, 0, 100, -5000, 4), // another process's clock
        ] {
            let mut shard = filled(outstanding, granted);
            let now_ms: i64 = now_ms;
            shard.admit(&top_up("a", now_ms, 0, left));
            assert_eq!(shard.outstanding, expected, "{outstanding} {granted} {left} {now_ms}");
        }
    }

    #[test]
    fn a_shard_is_topped_up_once_a_second() {
        let mut shard = GateShard::default();
        assert_eq!(shard.admit(&top_up("a", 0, 0, 1)), AdmitReply::Admitted);
        let wait = AdmitReply::Exhausted { retry_ms: 400, holds: true };
        assert_eq!(shard.admit(&ask("b", 600)), wait);
        assert_eq!(shard.admit(&ask("b", 1000)), AdmitReply::BudgetUsedUp { generation: 1 });
    }
}
