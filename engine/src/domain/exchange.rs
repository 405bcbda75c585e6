//! Exchange: tickets of a paid order for other tickets.
//!
//! An exchange is a new order that names the tickets it replaces, one for one. Its number, hold, attempts and expiry
//! are those of any other; only the buyer's limit makes room for it, and the people of the same sale stay with the
//! old order until then. What pays it gives the old tickets up in the same transaction: a refund of the old order,
//! like any other but that nobody gives back what the new order keeps. If the new one ends, or the old tickets are
//! not there any more, the old order stands as it is.
//!
//! An order is paid by one payment. One that costs more than the old tickets are worth is paid whole, and their
//! worth goes back the way it came; one that does not is paid with their money at once, and the rest goes back.

use serde::{Deserialize, Serialize};

use super::attendee::AttendeeHash;
use super::ids::{PaymentId, SaleId};
use super::money::{Currency, MinorUnits, Money};
use super::number::OrderNumber;
use super::order::{Capture, Order, PaymentKey, PaymentOutcome, PaymentRecord};
use super::order_refund::{
    AskedBy, OrderRefund, RefundNumber, RefundPlan, RefundRefusal, RefundRequest, RefundedTickets,
    TicketName, decide_refund, decide_refund_keeping,
};
use super::payment::Captured;
use super::requested::RequestedLine;
use super::sale::Sale;
use super::tickets::Tickets;
use super::time::Timestamp;
use crate::ports::{StoreError, Stored};

/// What a buyer wants to give up for a new order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExchangeRequest {
    /// The order that has the tickets.
    pub order: OrderNumber,
    /// The tickets.
    pub tickets: Vec<TicketName>,
}

/// What an order replaces, as it was when the order was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Exchange {
    /// The order whose tickets it replaces.
    pub order: OrderNumber,
    /// That order's sale.
    pub sale: SaleId,
    /// The tickets.
    pub tickets: Vec<TicketName>,
    /// What they are worth by the terms of their purchase.
    pub value_minor: MinorUnits,
}

/// Why tickets cannot be exchanged for those asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExchangeRefusal {
    /// The buyer has no such order.
    #[error("there is no such order")]
    NotFound,
    /// Tickets are exchanged one for one.
    #[error("tickets are exchanged one for one: {given} for {asked}")]
    OtherCount {
        /// Tickets that are given up.
        given: Tickets,
        /// Tickets that are asked for.
        asked: Tickets,
    },
    /// Whom the new tickets name is not whom the old ones do.
    #[error("an exchanged ticket is for the same person")]
    OtherPeople,
    /// The sale does not take tickets of that one.
    #[error("tickets of sale {0} are not exchanged for tickets of this one")]
    OtherSale(SaleId),
    /// The sale is in another currency.
    #[error("the tickets were paid in {0}")]
    OtherCurrency(Currency),
    /// The tickets cannot be given up.
    #[error(transparent)]
    Tickets(#[from] RefundRefusal),
}

impl Exchange {
    /// The tickets that it replaces.
    #[must_use]
    pub fn count(&self) -> Tickets {
        Tickets::of_seats(self.tickets.len())
    }
}

/// The refund of an old order for a new one.
fn asks(
    old: &Order,
    new: OrderNumber,
    tickets: &[TicketName],
    amount: Option<Money>,
) -> Option<RefundRequest> {
    let number = RefundNumber::try_from(old.refunds.made.checked_add(1)?).ok()?;
    Some(RefundRequest {
        number,
        tickets: RefundedTickets::Named(tickets.to_vec()),
        amount,
        asked_by: AskedBy::Exchange,
        reason: Some(new.to_string()),
    })
}

/// Decides if the buyer of an order that is about to be made may give tickets of `old` for it. `payment` is the
/// record of the old order's payment, `old_sale` its sale. Reads nothing but its arguments.
///
/// # Errors
/// The first [`ExchangeRefusal`].
pub fn decide_exchange(
    new: OrderNumber,
    (sale, lines): (&Sale, &[RequestedLine]),
    request: &ExchangeRequest,
    (old_sale, old, payment): (&Sale, &Order, Option<&PaymentRecord>),
    now: Timestamp,
) -> Result<Exchange, ExchangeRefusal> {
    if !sale.takes_tickets_of(old_sale) {
        return Err(ExchangeRefusal::OtherSale(old.sale.clone()));
    }
    if sale.file().currency != old.total.currency {
        return Err(ExchangeRefusal::OtherCurrency(old.total.currency));
    }
    let asked: usize = lines.iter().map(|requested| requested.line.choice.count()).sum();
    let (given, asked) = (Tickets::of_seats(request.tickets.len()), Tickets::of_seats(asked));
    if given != asked {
        return Err(ExchangeRefusal::OtherCount { given, asked });
    }
    let refusal = || ExchangeRefusal::Tickets(RefundRefusal::TooMany);
    let asks = asks(old, new, &request.tickets, None).ok_or_else(refusal)?;
    let plan = decide_refund(old, payment, &asks, now)?;
    if old.sale == *sale.id() && !are_the_same_people(&plan, lines) {
        return Err(ExchangeRefusal::OtherPeople);
    }
    Ok(Exchange {
        order: old.number,
        sale: old.sale.clone(),
        tickets: request.tickets.clone(),
        value_minor: plan.refund.amount.amount_minor,
    })
}

/// True if the lines name the people of the tickets that are taken back, each as often: they have their claims
/// already, and somebody else's could not be compared with them before the old ones go.
fn are_the_same_people(plan: &RefundPlan, lines: &[RequestedLine]) -> bool {
    let taken = plan.taken_back();
    let mut before: Vec<&Vec<AttendeeHash>> =
        taken.attendees().map(|attendee| &attendee.hashes).collect();
    let mut people = lines.iter().flat_map(|requested| &requested.attendees);
    // A person is known by any of the keys in force.
    let is_among = |hashes: &[AttendeeHash], before: &mut Vec<&Vec<AttendeeHash>>| {
        let is_same = |known: &&Vec<AttendeeHash>| known.iter().any(|hash| hashes.contains(hash));
        before.iter().position(is_same).map(|at| before.swap_remove(at)).is_some()
    };
    people.all(|attendee| is_among(&attendee.hashes, &mut before)) && before.is_empty()
}

/// What the payment `by` of an exchange does to the old order: the tickets go, and what the new order does not keep
/// of their worth goes back.
///
/// # Errors
/// The first [`RefundRefusal`]: the old order is not what it was, and stands as it is.
pub fn redeem(
    new: &Order,
    exchange: &Exchange,
    old: &Order,
    payment: Option<&PaymentRecord>,
    by: &PaymentKey,
    now: Timestamp,
) -> Result<RefundPlan, RefundRefusal> {
    let value = Money { amount_minor: exchange.value_minor, ..old.total };
    let asks =
        asks(old, new.number, &exchange.tickets, Some(value)).ok_or(RefundRefusal::TooMany)?;
    let kept = if new.is_moved(by) { new.total.amount_minor } else { MinorUnits::ZERO };
    decide_refund_keeping(old, payment, &asks, kept, now)
}

impl Order {
    /// True if it is to be paid with the money of the tickets that it replaces: their worth is enough.
    #[must_use]
    pub fn is_covered(&self) -> bool {
        let worth = self.exchange.as_ref().map(|exchange| exchange.value_minor);
        worth.is_some_and(|worth| self.total.amount_minor <= worth)
    }

    /// True if it needs no payment of its buyer.
    #[must_use]
    pub fn needs_no_payment(&self) -> bool {
        self.costs_nothing() && self.exchange.is_none() || self.is_covered()
    }

    /// True if it claims the people whom it names: an exchange within a sale does when it is paid.
    #[must_use]
    pub fn claims_its_people(&self) -> bool {
        let waits = |exchange: &Exchange| exchange.sale == self.sale && self.payment.is_none();
        !self.exchange.as_ref().is_some_and(waits)
    }

    /// Its tickets for which the buyer's limit makes room: those that it replaces in its own sale, until it is paid.
    #[must_use]
    pub fn replaced(&self) -> Tickets {
        let own = self.exchange.as_ref().filter(|exchange| exchange.sale == self.sale);
        own.map_or(Tickets::NONE, Exchange::count)
    }

    /// The id of a payment of it with the money of the tickets that it replaces: no provider gives such a one.
    fn moved_payment_id(&self) -> Option<String> {
        self.exchange.as_ref().map(|exchange| format!("{}-for-{}", exchange.order, self.number))
    }

    /// True if this payment of it moved money that was captured for the tickets that it replaces.
    #[must_use]
    pub fn is_moved(&self, payment: &PaymentKey) -> bool {
        self.moved_payment_id().is_some_and(|id| payment.payment.as_str() == id)
    }
}

/// [`Order::is_moved`] by the number of the order alone.
#[must_use]
pub fn is_moved_id(payment: &PaymentId, order: OrderNumber) -> bool {
    let ends = |id: &str| Some(id.strip_suffix(&order.to_string())?.ends_with("-for-"));
    ends(payment.as_str()).unwrap_or(false)
}

impl PaymentRecord {
    /// The payment of `new` with money of this one, which pays the tickets that it replaces.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if it replaces none.
    pub fn moved_to(&self, new: &Order, now: Timestamp) -> Stored<Self> {
        let contract = |why: &str| StoreError::Contract(format!("order {}: {why}", new.number));
        let id = new.moved_payment_id().ok_or_else(|| contract("it replaces nothing"))?;
        let payment = PaymentId::new(id).map_err(|error| contract(&error.to_string()))?;
        let key = PaymentKey { provider: self.capture.key.provider.clone(), payment };
        let capture = Capture { key, order: new.number, amount: new.total, attempt: None };
        let captured = self.captured.clone().unwrap_or_else(|| {
            let (capture, decided_at) = (self.capture.clone(), self.decided_at);
            Box::new(Captured { capture, decided_at })
        });
        let record = Self::decided(&capture, PaymentOutcome::Accepted, now);
        Ok(Self { captured: Some(captured), ..record })
    }

    /// The payment as its provider knows it: the capture whose money it is.
    #[must_use]
    pub fn at_provider(&self) -> Self {
        let Some(captured) = &self.captured else { return self.clone() };
        let Captured { capture, decided_at } = (**captured).clone();
        Self { capture, decided_at, ..self.clone() }
    }

    /// When its money was captured.
    #[must_use]
    pub fn captured_at(&self) -> Timestamp {
        self.captured.as_ref().map_or(self.decided_at, |captured| captured.decided_at)
    }
}

impl OrderRefund {
    /// The order for which its tickets were exchanged.
    #[must_use]
    pub fn exchanged_for(&self) -> Option<OrderNumber> {
        let reason = self.reason.as_deref().filter(|_| self.asked_by == AskedBy::Exchange);
        reason.and_then(|number| number.parse().ok())
    }

    /// What its tickets are worth: what goes back, and what the order keeps that they were exchanged for.
    #[must_use]
    pub fn worth(&self) -> Money {
        Money { amount_minor: self.amount.amount_minor + self.kept_minor, ..self.amount }
    }
}
