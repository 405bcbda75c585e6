//! The order itself: what a buyer asked for and was given.

use std::collections::BTreeSet;

use super::attempt::{Attempt, Attempts};
use super::attendee::{Attendee, AttendeeHash};
use super::exchange::Exchange;
use super::fact::{Cause, FactKind, Facts};
use super::order_refund::{RefundCounts, RefundNumber};
use super::{Capture, OrderEvent, OrderLine, OrderState, PaymentKey, Ticket, transition};
use crate::domain::basics::ids::{RequestFingerprint, SaleId, UserId};
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::{HeldLine, HoldRecord};
use crate::domain::sale::MerchantTerms;

/// Seconds after an order's last change of state by which the messages should have finished what follows; the sweeper
/// leaves the order alone until then.
pub const FOLLOW_UP_SECONDS: i64 = 60;

/// An order. One without lines is a tombstone: it says that its number will never be an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Order {
    /// Its number, unique among all sales.
    pub number: OrderNumber,
    pub sale: SaleId,
    pub user: UserId,
    pub state: OrderState,
    /// Its lines, one a tier; empty for a tombstone.
    pub lines: Vec<OrderLine>,
    pub total: Money,
    /// The fingerprint of the request.
    pub fingerprint: RequestFingerprint,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// End of its payment window; [`Order::payable_until`] is its deadline.
    pub pay_by: Timestamp,
    /// Time of its last change of state.
    pub changed_at: Timestamp,
    /// The payment that paid it; `None` before.
    pub payment: Option<PaymentKey>,
    /// The payments that were started for it.
    pub attempts: Attempts,
    /// What happened to it, and how much of that is settled.
    pub facts: Facts,
    /// Number of its refunds, and of those whose money is back.
    pub refunds: RefundCounts,
    /// Whose money it is, as its sale said when it was made.
    pub merchant: MerchantTerms,
    pub exchange: Option<Exchange>,
}

impl Order {
    /// Each live ticket, with its line.
    pub fn live_tickets(&self) -> impl Iterator<Item = (&OrderLine, &Ticket)> {
        self.lines.iter().flat_map(|line| line.live().map(move |ticket| (line, ticket)))
    }

    /// True if it has a live ticket.
    #[must_use]
    pub fn has_live_tickets(&self) -> bool {
        self.live_tickets().next().is_some()
    }

    /// Number of its live tickets.
    #[must_use]
    pub fn tickets(&self) -> Tickets {
        self.lines.iter().map(OrderLine::count).sum()
    }

    /// The order after an event, with the event's fact; `None` if the event is impossible in this state.
    #[must_use]
    pub fn after(&self, event: OrderEvent, cause: Cause, now: Timestamp) -> Option<Self> {
        let state = transition(self.state, event)?;
        let facts = self.facts.with(FactKind::of(event), now, cause);
        let attempts = self.attempts.clone().without_steps();
        Some(Self { state, changed_at: now, facts, attempts, ..self.clone() })
    }

    /// The order with one more fact, in the same state.
    #[must_use]
    pub fn append_fact(&self, kind: FactKind, cause: Cause, now: Timestamp) -> Self {
        Self { facts: self.facts.with(kind, now, cause), ..self.clone() }
    }

    /// True if a capture comes by an attempt of this order whose step was given to nobody, which breaks I14.
    #[must_use]
    pub fn is_paid_unhanded(&self, capture: &Capture) -> bool {
        let by = capture.attempt.and_then(|number| self.attempts.get(number));
        by.is_some_and(|attempt| !attempt.may_be_handed())
    }

    /// The time at which work on it is overdue: while it is pending, its deadline; after that
    /// [`FOLLOW_UP_SECONDS`] after its last change of state if it has an open attempt, after the expiry of one that is
    /// absent, and as long after its last fact if one is not settled; or when an attempt that was given up is asked about
    /// again.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        if self.state == OrderState::Pending {
            return Some(self.payable_until());
        }
        let open_since = self.attempts.open_since(self.changed_at);
        let since = open_since.into_iter().chain(self.unsettled_since()).min();
        let late = since.map(|since| since.plus_seconds(FOLLOW_UP_SECONDS));
        late.into_iter().chain(self.attempts.asked_at()).min()
    }

    /// The attempts about which providers are asked now: those that may still bring money, and once the order is not pending
    /// any more those that were given up, when it is their time.
    pub fn attempts_to_ask(&self, now: Timestamp) -> impl Iterator<Item = &Attempt> {
        let is_pending = self.state == OrderState::Pending;
        let again = self.attempts.asked_again(now).filter(move |_| !is_pending);
        self.attempts.open().chain(again)
    }

    /// The time since which the order's facts should be settled; `None` if they are. The facts of a cancelled order are
    /// settled when its expiry message comes: cancelling sends no message.
    #[must_use]
    pub fn unsettled_since(&self) -> Option<Timestamp> {
        let last = self.facts.last_at().filter(|_| !self.facts.are_settled())?;
        Some(match self.state {
            OrderState::Cancelled => last.max(self.payable_until()),
            OrderState::Pending
            | OrderState::Paid
            | OrderState::Expired
            | OrderState::RefundDue
            | OrderState::Refunded => last,
        })
    }

    /// The deadline of its payment: the end of its payment window or, if a place has extended it, the later time. Its hold
    /// in Redis keeps the end of the window, which nothing but the comparison reads.
    #[must_use]
    pub fn payable_until(&self) -> Timestamp {
        self.attempts.extended_to.map_or(self.pay_by, |extended_to| self.pay_by.max(extended_to))
    }

    /// True for an order of 0: it is paid as it is made.
    #[must_use]
    pub fn costs_nothing(&self) -> bool {
        self.total.amount_minor == MinorUnits::ZERO && !self.is_tombstone()
    }

    /// True for a tombstone: the order only blocks its number.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.lines.is_empty()
    }

    /// The seats of its live tickets, as the inventory knows them.
    #[must_use]
    pub fn held_lines(&self) -> Vec<HeldLine> {
        let live = self.lines.iter().filter_map(|line| line.held_line_of(line.live()));
        live.collect()
    }

    /// The seats of all its tickets, also of those that are refunded.
    #[must_use]
    pub fn all_lines(&self) -> Vec<HeldLine> {
        self.lines.iter().filter_map(|line| line.held_line_of(line.tickets.iter())).collect()
    }

    /// The hold that Redis should have while the order is pending.
    #[must_use]
    pub fn hold_record(&self) -> HoldRecord {
        HoldRecord {
            user: self.user.clone(),
            fingerprint: self.fingerprint.clone(),
            deadline: self.pay_by,
            lines: self.held_lines(),
        }
    }

    /// Every attendee that a live ticket names.
    pub fn attendees(&self) -> impl Iterator<Item = &Attendee> {
        self.live_tickets().filter_map(|(_, ticket)| ticket.attendee.as_ref())
    }

    /// The hashes that the order claims for its attendees: for each attendee one hash by each key.
    pub fn attendee_claims(&self) -> impl Iterator<Item = AttendeeHash> {
        let claims = self.claims_its_people();
        let hashes = self.attendees().flat_map(|attendee| &attendee.hashes).copied();
        hashes.filter(move |_| claims)
    }

    /// The hashes by which the order's attendees count against the number of people whom its buyer may name.
    #[must_use]
    pub fn named(&self) -> BTreeSet<AttendeeHash> {
        self.attendees().filter_map(Attendee::counting_hash).collect()
    }
}

impl Order {
    /// The lines of the tickets that a refund took back, whole tickets and no others.
    #[must_use]
    pub fn lines_of(&self, refund: RefundNumber) -> Vec<OrderLine> {
        let of_refund = |line: &OrderLine| {
            let tickets: Vec<Ticket> = line
                .tickets
                .iter()
                .filter(|ticket| ticket.refund == Some(refund))
                .cloned()
                .collect();
            (!tickets.is_empty()).then(|| OrderLine { tickets, ..line.clone() })
        };
        self.lines.iter().filter_map(of_refund).collect()
    }

    /// The seats of the tickets that a refund took back, as the inventory knows them.
    #[must_use]
    pub fn seats_of(&self, refund: RefundNumber) -> Vec<HeldLine> {
        let of_refund = |line: &OrderLine| {
            line.held_line_of(line.tickets.iter().filter(|ticket| ticket.refund == Some(refund)))
        };
        self.lines.iter().filter_map(of_refund).collect()
    }
}
