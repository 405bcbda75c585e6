//! Subscribers: the receivers of facts from the log.
//!
//! A subscriber has a position in each shard of the log: every fact before it was told, or waits. A fact that could not
//! be told waits, with the later facts of its order: the facts of an order are told in their order, and no order waits
//! for another. If no fact at all can be told, the position stays. In both cases the teller tries again after longer
//! and longer pauses, and gives up after [three days](GIVE_UP_SECONDS): then an operator has to request another try.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use super::log::{LogRecord, LogShard, Told};
use crate::domain::basics::ids::{SaleId, SubscriberId};
use crate::domain::basics::money::Money;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::HeldLine;
use crate::domain::order::Order;
use crate::domain::order::fact::{Fact, FactKind};

/// Seconds for which it is tried to tell something.
pub const GIVE_UP_SECONDS: i64 = 3 * 86_400;
/// Pauses before it is tried again, in seconds; the last one comes again and again.
const PAUSES_SECONDS: [i64; 7] = [5, 30, 120, 600, 1800, 7200, 14_400];
/// The longest pause of a subscriber to whom nothing can be told: once it answers again, it has much to hear.
const LONGEST_PAUSE_SECONDS: i64 = 900;
/// Failed facts in a row after which the teller takes the subscriber for unreachable.
pub const ENOUGH_FAILED: usize = 5;

/// A subscriber's part of one shard of the log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subscription {
    pub subscriber: SubscriberId,
    pub shard: LogShard,
}

/// A failed delivery: since when it fails, and when it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failing {
    /// When it was tried first.
    pub since: Timestamp,
    /// How often it was tried.
    pub tries: u32,
    /// When it is tried again; `None` if it was given up.
    pub next: Option<Timestamp>,
}

impl Failing {
    /// The state after one more failed try; `before` is `None` at the first one. A pause is at most `longest_seconds`.
    fn after(before: Option<Self>, now: Timestamp, longest_seconds: i64) -> Self {
        let (since, tries) = before.map_or((now, 0), |before| (before.since, before.tries));
        let pause = usize::try_from(tries).ok().and_then(|tries| PAUSES_SECONDS.get(tries));
        let pause = pause.copied().unwrap_or(i64::MAX).min(longest_seconds);
        let is_given_up = now >= since.plus_seconds(GIVE_UP_SECONDS);
        let next = (!is_given_up).then(|| now.plus_seconds(pause));
        Self { since, tries: tries.saturating_add(1), next }
    }

    /// The state after one more failed try to tell facts of an order.
    #[must_use]
    pub fn of_order(before: Option<Self>, now: Timestamp) -> Self {
        Self::after(before, now, PAUSES_SECONDS[PAUSES_SECONDS.len() - 1])
    }

    /// The state after one more failed try to tell anything at all.
    #[must_use]
    pub fn of_all(before: Option<Self>, now: Timestamp) -> Self {
        Self::after(before, now, LONGEST_PAUSE_SECONDS)
    }

    /// True if a try is due at a time.
    #[must_use]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.next.is_some_and(|next| next <= now)
    }
}

/// A subscriber's position in a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The last position of which everything was told, or waits.
    pub position: u64,
    /// Since when nothing at all can be told, if that is so.
    pub failing: Option<Failing>,
}

/// Facts of one order that could not be told, or come after one that could not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WaitingOrder {
    pub order: OrderNumber,
    /// The first fact that waits.
    pub from: NonZeroU32,
    pub to: NonZeroU32,
    /// Since when, and until when.
    pub failing: Failing,
}

/// What a subscriber asked to hear.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Wishes {
    /// The kinds of facts; empty for all.
    pub kinds: BTreeSet<FactKind>,
    /// The sales; empty for all.
    pub sales: BTreeSet<SaleId>,
}

impl Wishes {
    /// True if the subscriber asked for a fact of this kind and sale.
    #[must_use]
    pub fn have(&self, sale: &SaleId, kind: FactKind) -> bool {
        let is_sale = self.sales.is_empty() || self.sales.contains(sale);
        is_sale && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }
}

/// One fact, to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub sale: SaleId,
    pub order: OrderNumber,
    /// What the order costs.
    pub total: Money,
    /// The seats that the fact speaks of.
    pub lines: Vec<HeldLine>,
    /// The fact's number within the order.
    pub number: NonZeroU32,
    pub fact: Fact,
}

impl Event {
    /// The events of a record, in its order.
    pub fn of_record(record: &LogRecord) -> impl Iterator<Item = Self> {
        record.told.iter().flat_map(|told| Self::of_told(&record.sale, told))
    }

    /// The events of an order's facts with these numbers, as the log tells them.
    #[must_use]
    pub fn of_order(order: &Order, from: NonZeroU32, to: NonZeroU32) -> Vec<Self> {
        let told = Told::again(order, from, to);
        Self::of_told(&order.sale, &told).collect()
    }

    fn of_told(sale: &SaleId, told: &Told) -> impl Iterator<Item = Self> {
        told.facts.iter().map(|(number, fact)| Self {
            sale: sale.clone(),
            order: told.order,
            total: told.total,
            lines: told.lines_of(fact).to_vec(),
            number: *number,
            fact: fact.clone(),
        })
    }

    /// Its name, the same however often it is told: the order's number and that of the fact.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}-{}", self.order, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    /// The seconds at which a delivery that never succeeds is tried, and the number of tries.
    fn tried(after: fn(Option<Failing>, Timestamp) -> Failing) -> Vec<i64> {
        let mut failing = after(None, NOW);
        let mut tried = vec![0];
        while let Some(next) = failing.next {
            assert!(!failing.is_due(next.plus_seconds(-1)) && failing.is_due(next));
            tried.push((next.ms() - NOW.ms()) / 1000);
            failing = after(Some(failing), next);
        }
        assert_eq!(usize::try_from(failing.tries), Ok(tried.len()));
        assert!(!failing.is_due(NOW.plus_seconds(i64::from(u32::MAX))), "it was given up");
        tried
    }

    #[test]
    fn what_fails_is_tried_after_longer_and_longer_pauses_for_three_days() {
        let of_order = tried(Failing::of_order);
        assert_eq!(of_order[..5], [0, 5, 35, 155, 755]);
        let gaps: Vec<i64> = of_order.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.is_sorted() && gaps.last() == Some(&14_400), "{gaps:?}");
        let last = *of_order.last().unwrap();
        assert!((GIVE_UP_SECONDS..GIVE_UP_SECONDS + 14_400).contains(&last), "{last}");
        let of_all = tried(Failing::of_all);
        assert!(of_all.windows(2).all(|pair| pair[1] - pair[0] <= LONGEST_PAUSE_SECONDS));
    }

    #[test]
    fn wishes_that_name_nothing_are_for_all() {
        let [opera, circus] = ["opera", "circus"].map(|id| SaleId::new(id).unwrap());
        let all = Wishes::default();
        assert!(all.have(&opera, FactKind::Made));
        let some = Wishes { kinds: [FactKind::Paid].into(), sales: [opera.clone()].into() };
        assert!(some.have(&opera, FactKind::Paid));
        assert!(!some.have(&opera, FactKind::Made) && !some.have(&circus, FactKind::Paid));
    }
}
