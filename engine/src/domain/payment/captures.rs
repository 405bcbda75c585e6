//! How far the captures that a provider lists were read, and what follows from it.
//!
//! A provider may list what it has captured, newest first, in pages. A **pass** reads that list from a time
//! of the past to the time at which it begins. A capture is listed some time after it was made (the
//! list's **lag**), so a pass may miss the last ones: the next pass begins [`OVERLAP_SECONDS`] before the
//! end of the one before, and only what is older than the lag counts as read.

use super::grace::Grace;
use super::ours::Reported;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{DisputeId, PageMark, PaymentId, ProviderId};
use crate::domain::basics::time::{BoundedSeconds, Timestamp};
use crate::domain::order::Order;

/// Seconds by which each pass overlaps the pass before: no capture may be listed later than that after it was made.
/// Stripe publishes no such lag; its deliveries are a matter of seconds.
pub const OVERLAP_SECONDS: i64 = 300;
/// Seconds for which a provider keeps its list: 29 days, one less than Stripe.
/// Source: <https://docs.stripe.com/api/events/list>
pub const KEPT_SECONDS: i64 = 29 * 24 * 60 * 60;
/// Seconds after the beginning of the last pass for which captures count as being read: two runs of the
/// reader and a pass that takes long.
const READ_LATELY_SECONDS: i64 = 180;

/// Seconds after which a list is read although no order waits for it: the list has disputes too, weeks after a sale.
const READ_AT_LEAST_SECONDS: i64 = 60 * 60;

/// Seconds between two notes that callbacks ask for a list to be read.
pub const ASKED_EVERY_SECONDS: i64 = 30;

/// The longest time by which a provider lists a capture late. A capture that is listed later than that is not read
/// again.
pub type ListLag = BoundedSeconds<240>;

impl ListLag {
    /// A minute, which includes a difference of some seconds between clocks. No provider publishes its lag.
    pub const DEFAULT: Self = Self::new(60);
}

impl Default for ListLag {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A provider that can be asked, and whether it lists its captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    pub provider: ProviderId,
    /// The lag of its list; `None` if it has none and is searched order by order.
    pub lag: Option<ListLag>,
}

/// What a provider is to be asked for again, because it tells of a change: the news is only a hint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    Dispute(DisputeId),
    /// The refunds of a payment.
    Refunds(PaymentId),
}

/// An entry that tells of a dispute or a refund.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedHint {
    /// The mark of the entry: behind it the list goes on.
    pub mark: PageMark,
    pub hint: Hint,
}

/// A part of a provider's list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturePage {
    /// The captures that name an order, whosever it is.
    pub captures: Vec<Reported>,
    /// Disputes and refunds of which something is told, newest first: each is to be asked for.
    pub hints: Vec<ListedHint>,
    /// Entries that say too little to be decided: money for a person to find.
    pub unreadable: u32,
    /// The mark behind which the list goes on, with what is older; `None` at its end.
    pub next: Option<PageMark>,
}

/// A pass over a provider's list that is not at its end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pass {
    /// The oldest captures that it reads.
    pub from: Timestamp,
    /// The time at which it began: later captures are the next pass's.
    pub begun_at: Timestamp,
    /// The mark behind which it goes on; `None` at its first page.
    pub after: Option<PageMark>,
}

/// How far a provider's list was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cursor {
    /// The beginning of what was read without a gap.
    pub since: Timestamp,
    /// The beginning of the last pass that came to its end; before the first one, as `since`.
    pub read_to: Timestamp,
    /// The pass that is under way.
    pub pass: Option<Pass>,
    /// The last time at which a callback told of something that is to be read; `None` if none did.
    pub asked_at: Option<Timestamp>,
}

impl Cursor {
    /// The cursor of a reader that begins now.
    #[must_use]
    pub fn starting(now: Timestamp) -> Self {
        let since = now.plus_seconds(-OVERLAP_SECONDS);
        Self { since, read_to: since, pass: None, asked_at: None }
    }

    /// The pass to go on with, or the next one.
    #[must_use]
    pub fn pass_at(&self, now: Timestamp) -> Pass {
        if let Some(pass) = &self.pass {
            return pass.clone();
        }
        let overlap = if stands(Guard::ReadAgain) { OVERLAP_SECONDS } else { 0 };
        let from = self.read_to.plus_seconds(-overlap).max(self.since);
        Pass { from, begun_at: now, after: None }
    }

    /// The cursor where the provider no longer lists all that follows it: what is gone was not read.
    #[must_use]
    pub fn within_kept(self, now: Timestamp) -> Self {
        let kept = now.plus_seconds(-KEPT_SECONDS);
        if self.read_to >= kept {
            return self;
        }
        Self { since: kept, read_to: kept, pass: None, ..self }
    }

    /// The cursor after a page of a pass, which goes on behind `next` or is over.
    #[must_use]
    pub fn after_page(&self, pass: &Pass, next: Option<PageMark>) -> Self {
        let since = self.since;
        match next {
            Some(_) => Self { pass: Some(Pass { after: next, ..pass.clone() }), ..self.clone() },
            // A clock that was set back does not lower the cursor.
            None => {
                let read_to = pass.begun_at.max(self.read_to);
                Self { since, read_to, pass: None, ..self.clone() }
            }
        }
    }

    /// The time before which every capture since [`Cursor::since`] was read.
    #[must_use]
    pub fn complete_to(&self, lag: ListLag) -> Timestamp {
        let lag = if stands(Guard::ListLag) { lag.seconds() } else { 0 };
        self.read_to.plus_seconds(-i64::from(lag))
    }

    /// True if every capture by which an order could have been paid in time was read. A payment follows
    /// its order's creation.
    #[must_use]
    pub fn covers(&self, order: &Order, lag: ListLag) -> bool {
        self.since <= order.created_at && order.payable_until() <= self.complete_to(lag)
    }

    /// True if the list is to be read though no order waits for it: it was not read for an hour, or a callback has told of
    /// something that it did not list then.
    #[must_use]
    pub fn is_old(&self, now: Timestamp) -> bool {
        // Several callbacks within half a minute are noted once.
        let late = i64::from(ListLag::MAX_SECONDS) + ASKED_EVERY_SECONDS;
        let complete_to = self.read_to.plus_seconds(-late);
        let is_asked = self.asked_at.is_some_and(|at| complete_to <= at);
        is_asked || self.read_to.plus_seconds(READ_AT_LEAST_SECONDS) <= now
    }

    /// True if the list is being read: a pass ended lately.
    #[must_use]
    pub fn is_live(&self, now: Timestamp) -> bool {
        now < self.read_to.plus_seconds(READ_LATELY_SECONDS)
    }
}

/// What is known of the captures of a pending order without asking for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Everything that could have paid it in time was read, and is decided.
    Read,
    /// Its providers' lists are being read, and not yet past its deadline.
    BeingRead,
    /// The providers have to be asked: one of them lists nothing, or nobody reads its list.
    Unread,
}

impl Coverage {
    /// What the cursors of all providers that can be asked say of an order. Without any, nothing is read.
    #[must_use]
    pub fn of_order(order: &Order, read: &[(ListLag, Option<Cursor>)], now: Timestamp) -> Self {
        let is_covered = |(lag, cursor): &(ListLag, Option<Cursor>)| {
            cursor.as_ref().is_some_and(|cursor| cursor.covers(order, *lag))
        };
        let will_be = |(lag, cursor): &(ListLag, Option<Cursor>)| {
            let reads = |cursor: &Cursor| {
                cursor.covers(order, *lag)
                    || cursor.since <= order.created_at && cursor.is_live(now)
            };
            cursor.as_ref().is_some_and(reads)
        };
        match read {
            [] => Self::Unread,
            all if all.iter().all(is_covered) => Self::Read,
            all if all.iter().all(will_be) => Self::BeingRead,
            _ => Self::Unread,
        }
    }
}

impl Grace {
    /// The time at which an unpaid order ends, from what was read of its providers' lists: at its
    /// deadline if every capture by then was read, else when its grace is over.
    #[must_use]
    pub fn end_of(self, order: &Order, coverage: Coverage) -> Timestamp {
        match coverage {
            Coverage::Read => order.payable_until(),
            Coverage::BeingRead | Coverage::Unread => self.end_from(order.payable_until()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::{RequestFingerprint, SaleId, UserId};
    use crate::domain::basics::money::{Currency, MinorUnits, Money};
    use crate::domain::order::OrderState;
    use crate::domain::order::attempt::Attempts;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
    const LAG: ListLag = ListLag::DEFAULT;

    fn at(seconds: i64) -> Timestamp {
        NOW.plus_seconds(seconds)
    }

    fn order() -> Order {
        Order {
            number: "7".parse().unwrap(),
            sale: SaleId::new("s").unwrap(),
            user: UserId::new("u").unwrap(),
            state: OrderState::Pending,
            lines: Vec::new(),
            total: Money { amount_minor: MinorUnits(5), currency: Currency::new("EUR").unwrap() },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: at(60),
            changed_at: NOW,
            payment: None,
            attempts: Attempts::default(),
            facts: crate::domain::order::fact::Facts::default(),
            refunds: crate::domain::order::order_refund::RefundCounts::default(),
            merchant: crate::domain::sale::MerchantTerms::house(),
            exchange: None,
        }
    }

    fn read(since: i64, read_to: i64) -> Cursor {
        Cursor { since: at(since), read_to: at(read_to), pass: None, asked_at: None }
    }

    #[test]
    fn a_pass_reads_the_last_minutes_again_and_goes_on_where_it_stopped() {
        let mark = |mark: &str| Some(PageMark::new(mark).unwrap());
        let first = Cursor::starting(NOW);
        let pass = first.pass_at(at(1));
        assert_eq!(pass, Pass { from: at(-300), begun_at: at(1), after: None });
        let half = first.after_page(&pass, mark("evt_1"));
        assert_eq!((half.read_to, half.since), (at(-300), at(-300)), "it is not at its end");
        let rest = half.pass_at(at(60));
        assert_eq!(rest, Pass { after: mark("evt_1"), ..pass });
        let whole = half.after_page(&rest, None);
        assert_eq!(whole, read(-300, 1));
        assert_eq!(whole.pass_at(at(900)).from, at(-299));
        assert_eq!(read(-300, 1000).pass_at(at(1060)).from, at(700));
        let back = Pass { from: NOW, begun_at: at(-10), after: None };
        assert_eq!(whole.after_page(&back, None), whole, "a clock that was set back");
    }

    #[test]
    fn what_a_provider_no_longer_lists_was_not_read() {
        let cursor = read(0, 60);
        assert_eq!(cursor.clone().within_kept(at(60 + KEPT_SECONDS)), cursor);
        let gone = at(61 + KEPT_SECONDS);
        assert_eq!(cursor.within_kept(gone), read(61, 61));
    }

    #[test]
    fn an_order_is_covered_when_its_deadline_is_older_than_the_lag_of_what_was_read() {
        let of = |cursors: &[Cursor], now: i64| {
            let read: Vec<_> = cursors.iter().map(|cursor| (LAG, Some(cursor.clone()))).collect();
            Coverage::of_order(&order(), &read, at(now))
        };
        assert_eq!(of(&[], 60), Coverage::Unread);
        assert_eq!(of(&[read(0, 119)], 120), Coverage::BeingRead);
        assert_eq!(of(&[read(0, 120)], 120), Coverage::Read);
        assert_eq!(of(&[read(0, 120)], 900_000), Coverage::Read, "that stays true");
        assert_eq!(of(&[read(0, 119)], 119 + 180), Coverage::Unread, "nobody reads");
        assert_eq!(of(&[read(1, 900)], 900), Coverage::Unread, "it is older than the cursor");
        assert_eq!(of(&[read(0, 120), read(0, 119)], 120), Coverage::BeingRead);
        assert_eq!(of(&[read(0, 120), read(1, 900)], 120), Coverage::Unread);
        let none = [(LAG, Some(read(0, 120))), (LAG, None)];
        assert_eq!(Coverage::of_order(&order(), &none, at(120)), Coverage::Unread);

        let ends = |coverage| Grace::DEFAULT.end_of(&order(), coverage);
        assert_eq!(ends(Coverage::Read), at(60));
        assert_eq!((ends(Coverage::BeingRead), ends(Coverage::Unread)), (at(180), at(180)));
    }

    #[test]
    fn a_lag_is_within_what_is_read_again() {
        assert!(i64::from(ListLag::MAX_SECONDS) < OVERLAP_SECONDS);
        assert_eq!(ListLag::from_seconds(240).map(ListLag::seconds), Some(240));
        assert_eq!(ListLag::from_seconds(241), None);
        assert_eq!(ListLag::default(), LAG);
    }
}
