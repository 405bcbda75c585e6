//! The order: what a buyer asked for and was given, and the one table of its states.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use super::payment::{
    Capture, PaymentDecision, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason,
    decide_payment,
};

use crate::domain::attempt::Attempts;
use crate::domain::attendee::{Attendee, AttendeeHash};
use crate::domain::exchange::Exchange;
use crate::domain::fact::{Cause, Fact, FactKind, Facts};
use crate::domain::ids::{Legs, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId};
use crate::domain::inventory::{HeldLine, HoldRecord};
use crate::domain::ledger::MerchantTerms;
use crate::domain::money::{MinorUnits, Money};
use crate::domain::number::OrderNumber;
use crate::domain::order_refund::{RefundCounts, RefundNumber, RefundTerms};
use crate::domain::ticket::{CheckIn, Issue};
use crate::domain::tickets::Tickets;
use crate::domain::time::Timestamp;

/// Time after an order's last change of state by which what follows from it should be finished, in seconds:
/// until then the sweeper leaves it to the messages.
pub const FOLLOW_UP_SECONDS: i64 = 60;

/// The state of an order.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OrderState {
    /// Its seats are claimed; it waits for its payment.
    Pending,
    /// It is paid; its seats are the buyer's.
    Paid,
    /// The buyer cancelled it before paying.
    Cancelled,
    /// It was not paid in time, or never came to be.
    Expired,
    /// Its money must be refunded.
    RefundDue,
    /// Its money was refunded.
    Refunded,
}

impl OrderState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::Paid,
        Self::Cancelled,
        Self::Expired,
        Self::RefundDue,
        Self::Refunded,
    ];

    /// True while the order owns its seats: their claims, and its buyer's count, say so too.
    #[must_use]
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Pending | Self::Paid)
    }

    /// The state as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Paid => "paid",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::RefundDue => "refund_due",
            Self::Refunded => "refunded",
        }
    }
}

/// What can happen to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderEvent {
    /// Its amount was captured in time.
    Pay,
    /// Its buyer gave it up.
    Cancel,
    /// Its payment window ended.
    Expire,
    /// Its amount was captured after it had expired, and its seats could be claimed again.
    Rescue,
    /// Its amount was captured after its end, and goes back: it was cancelled, or its seats are gone.
    PayTooLate,
    /// Some tickets of a paid order, or some of its money, go back.
    RefundPart,
    /// The last tickets of a paid order go back.
    Refund,
    /// The provider confirmed the refund.
    RefundConfirmed,
}

impl OrderEvent {
    /// Every event, for tables and tests.
    pub const ALL: [Self; 8] = [
        Self::Pay,
        Self::Cancel,
        Self::Expire,
        Self::Rescue,
        Self::PayTooLate,
        Self::RefundPart,
        Self::Refund,
        Self::RefundConfirmed,
    ];
}

/// The state after an event; `None` if the event cannot happen to an order in this state.
#[must_use]
pub const fn transition(state: OrderState, event: OrderEvent) -> Option<OrderState> {
    use OrderEvent as Event;
    use OrderState as State;
    match (state, event) {
        (State::Pending, Event::Pay) => Some(State::Paid),
        (State::Pending, Event::Cancel) => Some(State::Cancelled),
        (State::Pending, Event::Expire) => Some(State::Expired),
        (State::Expired, Event::Rescue) | (State::Paid, Event::RefundPart) => Some(State::Paid),
        (State::Cancelled | State::Expired, Event::PayTooLate) | (State::Paid, Event::Refund) => {
            Some(State::RefundDue)
        }
        (State::RefundDue, Event::RefundConfirmed) => Some(State::Refunded),
        (
            State::Pending,
            Event::Rescue
            | Event::PayTooLate
            | Event::RefundPart
            | Event::Refund
            | Event::RefundConfirmed,
        )
        | (
            State::Paid,
            Event::Pay
            | Event::Cancel
            | Event::Expire
            | Event::Rescue
            | Event::PayTooLate
            | Event::RefundConfirmed,
        )
        | (State::Cancelled, Event::Rescue)
        | (
            State::Cancelled | State::Expired,
            Event::Pay
            | Event::Cancel
            | Event::Expire
            | Event::RefundPart
            | Event::Refund
            | Event::RefundConfirmed,
        )
        | (
            State::RefundDue,
            Event::Pay
            | Event::Cancel
            | Event::Expire
            | Event::Rescue
            | Event::PayTooLate
            | Event::RefundPart
            | Event::Refund,
        )
        | (State::Refunded, _) => None,
    }
}

/// One ticket of an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The seat of the line's tier.
    pub seat: Seat,
    /// Its name, as printed.
    pub name: SeatName,
    /// The person who will use it, if named.
    pub attendee: Option<Attendee>,
    /// The refund that took it back; `None` while it lives.
    pub refund: Option<RefundNumber>,
    /// Its issue: only codes of this one are good.
    pub issue: Issue,
    /// The first check-in by it; `None` while it has let nobody in.
    pub checked_in: Option<CheckIn>,
}

impl Ticket {
    /// True until it is refunded.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.refund.is_none()
    }
}

/// Tickets of one tier on one journey at one price.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderLine {
    /// Id of the tier.
    pub tier: TierId,
    /// The legs of the journey.
    pub legs: Legs,
    /// The price of each ticket.
    pub price_minor: MinorUnits,
    /// Until when its buyer may give a ticket back, and for what fee; `None` if never.
    pub terms: Option<RefundTerms>,
    /// Until when its buyer may exchange a ticket, and for what fee; `None` if never.
    pub exchange: Option<RefundTerms>,
    /// The tickets, live and refunded.
    pub tickets: Vec<Ticket>,
}

impl OrderLine {
    /// The tickets that are not refunded.
    pub fn live(&self) -> impl Iterator<Item = &Ticket> {
        self.tickets.iter().filter(|ticket| ticket.is_live())
    }

    /// The seats of some of its tickets, as the inventory knows them; `None` without any.
    pub(crate) fn held<'a>(&self, tickets: impl Iterator<Item = &'a Ticket>) -> Option<HeldLine> {
        let seats: Vec<Seat> = tickets.map(|ticket| ticket.seat).collect();
        let (tier, legs) = (self.tier.clone(), self.legs);
        (!seats.is_empty()).then_some(HeldLine { tier, legs, seats })
    }

    /// Number of its live tickets.
    #[must_use]
    pub fn count(&self) -> Tickets {
        Tickets::of_seats(self.live().count())
    }

    /// The price of its live tickets.
    #[must_use]
    pub fn total_minor(&self) -> MinorUnits {
        self.price_minor * self.count()
    }
}

/// An order. One without lines is a tombstone: it says that its number will never be an order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Order {
    /// Its number, unique among all sales.
    pub number: OrderNumber,
    /// Its sale.
    pub sale: SaleId,
    /// Its buyer.
    pub user: UserId,
    /// Its state.
    pub state: OrderState,
    /// Its lines, one a tier; empty for a tombstone.
    pub lines: Vec<OrderLine>,
    /// Its price.
    pub total: Money,
    /// The fingerprint of the request.
    pub fingerprint: RequestFingerprint,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// End of its payment window.
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
    /// What it replaces.
    pub exchange: Option<Exchange>,
}

impl Order {
    /// Each live ticket, with its line.
    pub fn live_tickets(&self) -> impl Iterator<Item = (&OrderLine, &Ticket)> {
        self.lines.iter().flat_map(|line| line.live().map(move |ticket| (line, ticket)))
    }

    /// Number of its live tickets.
    #[must_use]
    pub fn tickets(&self) -> Tickets {
        self.lines.iter().map(OrderLine::count).sum()
    }

    /// The order after an event, with the fact that tells it; `None` if the event cannot happen to it.
    #[must_use]
    pub fn after(&self, event: OrderEvent, cause: Cause, now: Timestamp) -> Option<Self> {
        let state = transition(self.state, event)?;
        let facts = self.facts.with(FactKind::of(event), now, cause);
        Some(Self { state, changed_at: now, facts, ..self.clone() })
    }

    /// The order after something that leaves its state as it is.
    #[must_use]
    pub fn told(&self, kind: FactKind, cause: Cause, now: Timestamp) -> Self {
        Self { facts: self.facts.with(kind, now, cause), ..self.clone() }
    }

    /// The time at which work on it is overdue: while it is pending, its deadline; after that
    /// [`FOLLOW_UP_SECONDS`] after its last change of state if it has an open attempt, and as long after its
    /// last fact if one is not settled.
    #[must_use]
    pub fn due_at(&self) -> Option<Timestamp> {
        if self.state == OrderState::Pending {
            return Some(self.pay_by);
        }
        let open_since = self.attempts.any_open().then_some(self.changed_at);
        let since = open_since.into_iter().chain(self.unsettled_since()).min();
        since.map(|since| since.plus_seconds(FOLLOW_UP_SECONDS))
    }

    /// Since when its facts should be settled; `None` if they are. What is told of a cancelled order is told
    /// when the message of its deadline comes: cancelling it sends none.
    #[must_use]
    pub fn unsettled_since(&self) -> Option<Timestamp> {
        let last = self.facts.last_at().filter(|_| !self.facts.are_settled())?;
        Some(match self.state {
            OrderState::Cancelled => last.max(self.pay_by),
            OrderState::Pending
            | OrderState::Paid
            | OrderState::Expired
            | OrderState::RefundDue
            | OrderState::Refunded => last,
        })
    }

    /// True for an order of 0: it is paid as it is made.
    #[must_use]
    pub fn costs_nothing(&self) -> bool {
        self.total.amount_minor == MinorUnits::ZERO && !self.is_tombstone()
    }

    /// True if it only blocks its number.
    #[must_use]
    pub fn is_tombstone(&self) -> bool {
        self.lines.is_empty()
    }

    /// The seats of its live tickets, as the inventory knows them.
    #[must_use]
    pub fn held_lines(&self) -> Vec<HeldLine> {
        let live = self.lines.iter().filter_map(|line| line.held(line.live()));
        live.collect()
    }

    /// The seats of all its tickets, also of those that are refunded.
    #[must_use]
    pub fn all_lines(&self) -> Vec<HeldLine> {
        self.lines.iter().filter_map(|line| line.held(line.tickets.iter())).collect()
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

    /// The hashes that it claims for them: of each attendee one by each key.
    pub fn attendee_claims(&self) -> impl Iterator<Item = AttendeeHash> {
        let claims = self.claims_its_people();
        let hashes = self.attendees().flat_map(|attendee| &attendee.hashes).copied();
        hashes.filter(move |_| claims)
    }

    /// The attendees as they are counted against what its buyer may name.
    #[must_use]
    pub fn named(&self) -> BTreeSet<AttendeeHash> {
        self.attendees().filter_map(Attendee::counted).collect()
    }
}

/// What the statistics say of one tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TierTotals {
    /// Tickets that are sold and live.
    pub tickets: u64,
    /// What they cost.
    pub revenue_minor: MinorUnits,
}

/// What some facts add to the statistics of one tier, or take from them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct TierChange {
    /// Tickets.
    pub tickets: i64,
    /// What they cost.
    pub revenue_minor: MinorUnits,
}

/// What settling the rest of some orders' facts does to the statistics, per sale and tier: tickets that are
/// sold are added, those of a refund are taken off.
#[must_use]
pub fn changes<'a>(
    orders: impl IntoIterator<Item = &'a Order>,
) -> BTreeMap<(SaleId, TierId), TierChange> {
    let mut sums = BTreeMap::new();
    for order in orders {
        for (_, fact) in order.facts.unsettled() {
            add_change(&mut sums, order, fact);
        }
    }
    sums
}

/// What the settled facts of some orders come to, per sale and tier.
#[must_use]
pub fn totals<'a>(
    orders: impl IntoIterator<Item = &'a Order>,
) -> BTreeMap<(SaleId, TierId), TierTotals> {
    let mut sums = BTreeMap::new();
    for order in orders {
        for fact in order.facts.settled() {
            add_change(&mut sums, order, fact);
        }
    }
    let total = |TierChange { tickets, revenue_minor }| {
        // An order gives back no more than it has.
        TierTotals { tickets: u64::try_from(tickets).unwrap_or(0), revenue_minor }
    };
    sums.into_iter().map(|(key, sum)| (key, total(sum))).collect()
}

fn add_change(sums: &mut BTreeMap<(SaleId, TierId), TierChange>, order: &Order, fact: &Fact) {
    let (lines, is_sale) = match fact.refund_made() {
        Some(refund) => (order.lines_of(refund), false),
        None if fact.kind.sells() => (order.lines.clone(), true),
        None => return,
    };
    for line in lines {
        let tickets = Tickets::of_seats(line.tickets.len());
        let (count, price) = (i64::from(tickets), line.price_minor * tickets);
        let sum = sums.entry((order.sale.clone(), line.tier)).or_default();
        if is_sale {
            sum.tickets += count;
            sum.revenue_minor += price;
        } else {
            sum.tickets -= count;
            sum.revenue_minor = sum.revenue_minor - price;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state × every event; a blank is refused.
    #[test]
    fn the_table_of_states() {
        const TABLE: &str = "
            pending    : paid cancelled expired - - - - -
            paid       : - - - - - paid refund_due -
            cancelled  : - - - - refund_due - - -
            expired    : - - - paid refund_due - - -
            refund_due : - - - - - - - refunded
            refunded   : - - - - - - - -";
        let rows = TABLE.trim().lines().zip(OrderState::ALL);
        for (row, state) in rows {
            let (name, cells) = row.split_once(':').unwrap();
            assert_eq!(name.trim(), state.as_str());
            let cells: Vec<&str> = cells.split_whitespace().collect();
            assert_eq!(cells.len(), OrderEvent::ALL.len());
            for (cell, event) in cells.into_iter().zip(OrderEvent::ALL) {
                let next = transition(state, event).map_or("-", OrderState::as_str);
                assert_eq!(next, cell, "{state:?} × {event:?}");
            }
        }
    }
}
