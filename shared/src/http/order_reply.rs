//! An order as the API shows it to its buyer.

use futures_util::future::try_join;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::payment_reply::PaymentReply;
use engine::domain::basics::ids::{
    AttendeeId, ProviderId, SaleId, SeatName, StopId, TierId, UserId,
};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{MAX_REFUNDS, RefundCounts, RefundNumber};
use engine::domain::order::place::{PLACE_GOOD_SECONDS, Place};
use engine::domain::order::{Order, OrderLine, OrderState, PaymentRecord, Ticket, TicketName};
use engine::domain::sale::{RefundTerms, Sale};
use engine::flows::hold::sale_of;
use engine::flows::reserve::Reserved;
use engine::ports::{Freshness, Orders as _, Ports, Stored};

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OrderReply {
    /// Its number.
    pub order: OrderNumber,
    /// Its sale.
    pub sale: SaleId,
    /// State of the order.
    pub state: OrderState,
    /// Lines of the order, at most one a tier.
    pub lines: Vec<LineReply>,
    /// Price of the order, in minor units.
    pub amount_minor: MinorUnits,
    /// Currency of its amounts.
    pub currency: Currency,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Deadline of its payment: the end of its payment window, or a later time if a payment had to wait for its place.
    pub pay_by: Timestamp,
    /// The times at which its buyer's request starts a payment, where a provider had no free start; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceReply>,
    /// Time of the last change of its state.
    pub changed_at: Timestamp,
    /// Number of tickets that the buyer may still have in this sale; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_allowance: Option<u16>,
    /// Every payment that was captured for it, in the order in which they were decided; only where
    /// one order is shown by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payments: Option<Vec<PaymentReply>>,
    /// Its refunds, counted; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refunds: Option<RefundCountsReply>,
    /// What it replaces, once it is paid; absent of an order that is no exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<ExchangeReply>,
}

/// The tickets that an order replaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Exchange")]
pub struct ExchangeReply {
    /// The order that has them, or had them until this one was paid.
    pub order: OrderNumber,
    /// The tickets.
    pub tickets: Vec<TicketName>,
    /// What they are worth, in minor units: their price without the fee of the exchange.
    pub value_minor: MinorUnits,
    /// True if that pays this order, and nothing is to be paid; what is left of it goes back. Otherwise this order is
    /// paid whole, and all of it goes back.
    pub pays: bool,
}

/// The time of a payment whose provider had no free start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "PaymentPlace")]
pub struct PlaceReply {
    /// The payment provider.
    pub provider: ProviderId,
    /// When the payment can be started.
    pub at: Timestamp,
    /// Until when that place is good; who comes later gets another.
    pub until: Timestamp,
}

impl From<&Place> for PlaceReply {
    fn from(place: &Place) -> Self {
        let Place { provider, at } = place.clone();
        Self { provider, at, until: at.plus_seconds(PLACE_GOOD_SECONDS) }
    }
}

/// How many refunds an order has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RefundCounts")]
pub struct RefundCountsReply {
    /// Refunds that were made: the number of the last.
    #[schemars(range(min = 1, max = MAX_REFUNDS))]
    pub made: u8,
    /// Those of which the money is back.
    #[schemars(range(max = MAX_REFUNDS))]
    pub back: u8,
}

/// Until when a buyer may give a ticket back, or exchange it, and what it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "RefundTerms")]
pub struct RefundTermsReply {
    /// Until when, exclusive.
    pub until: Timestamp,
    /// What is kept of the price of each ticket, in minor units.
    pub fee_minor: MinorUnits,
}

/// Tickets of one tier on one journey at one price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineReply {
    /// Tier id, unique in the sale.
    pub tier: TierId,
    /// Stop where the journey begins; absent for a concert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<StopId>,
    /// Stop where the journey ends; absent for a concert.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<StopId>,
    /// The price of each ticket, in minor units.
    pub price_minor: MinorUnits,
    /// The terms under which its buyer may give its tickets back, as they were when it was made; absent if
    /// never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refundable: Option<RefundTermsReply>,
    /// The terms under which its buyer may exchange its tickets, as they were when it was made; absent if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchangeable: Option<RefundTermsReply>,
    /// The tickets.
    pub tickets: Vec<TicketReply>,
}

/// One ticket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TicketReply {
    /// Its seat.
    pub seat: SeatName,
    /// Attendee who will use it, if named and not erased since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attendee: Option<AttendeeId>,
    /// Number of the refund that took it back; absent while it is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refund: Option<RefundNumber>,
}

/// One page of a buyer's orders, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PageReply {
    /// The orders.
    pub orders: Vec<OrderReply>,
    /// What the buyer may still have in each sale of these orders, by the id of the sale.
    pub allowances: Vec<AllowanceReply>,
    /// Value of `before` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<OrderNumber>,
}

/// What a buyer has, and may still have, in one sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AllowanceReply {
    /// The sale.
    pub sale: SaleId,
    /// Tickets of the buyer's pending and paid orders in the sale.
    pub held: u16,
    /// Number of tickets that the buyer may still have in the sale.
    pub remaining: u16,
    /// The most tickets that the sale allows a buyer.
    pub limit: u16,
}

impl AllowanceReply {
    /// Of a buyer who has `held` tickets. A limit that was lowered below that leaves none.
    #[must_use]
    pub fn new(sale: &Sale, held: Tickets) -> Self {
        let (sale, limit) = (sale.id().clone(), sale.limit());
        let remaining = limit.saturating_sub(held).get();
        Self { sale, held: held.get(), remaining, limit: limit.get() }
    }

    /// Of a buyer in one sale: one read of the buyer's count, and the sale from the catalogue.
    ///
    /// # Errors
    /// Fails if a store does.
    pub async fn read(ports: &impl Ports, sale: &SaleId, user: &UserId) -> Stored<Self> {
        let published = sale_of(ports, sale, Freshness::Cached);
        let (published, held) = try_join(published, ports.orders().tickets_of(sale, user)).await?;
        Ok(Self::new(&published.sale, held))
    }
}

impl OrderReply {
    /// An order of this sale, whose stops give its journeys their names.
    #[must_use]
    pub fn new(sale: &Sale, order: &Order) -> Self {
        Self {
            order: order.number,
            sale: order.sale.clone(),
            state: order.state,
            lines: order.lines.iter().map(|line| LineReply::new(sale, line)).collect(),
            amount_minor: order.total.amount_minor,
            currency: order.total.currency,
            created_at: order.created_at,
            pay_by: order.payable_until(),
            places: order.attempts.places.iter().map(PlaceReply::from).collect(),
            changed_at: order.changed_at,
            remaining_allowance: None,
            payments: None,
            refunds: RefundCountsReply::new(order.refunds),
            exchange: order.exchange.as_ref().map(|exchange| ExchangeReply {
                order: exchange.order,
                tickets: exchange.tickets.clone(),
                value_minor: exchange.value_minor,
                pays: order.is_covered(),
            }),
        }
    }

    /// An order, with its sale from the catalogue.
    ///
    /// # Errors
    /// Fails if the catalogue does.
    pub async fn read(ports: &impl Ports, order: &Order) -> Stored<Self> {
        let published = sale_of(ports, &order.sale, Freshness::Cached).await?;
        Ok(Self::new(&published.sale, order))
    }

    /// The order, with what became of every payment for it.
    #[must_use]
    pub fn with_payments(self, payments: &[PaymentRecord]) -> Self {
        Self { payments: Some(payments.iter().map(PaymentReply::from).collect()), ..self }
    }

    /// An order that was just made or found, with what the buyer may still have.
    #[must_use]
    pub fn reserved(sale: &Sale, reserved: &Reserved) -> Self {
        let remaining_allowance = reserved.allowance.map(Tickets::get);
        Self { remaining_allowance, ..Self::new(sale, &reserved.order) }
    }
}

impl RefundCountsReply {
    /// `None` without any.
    fn new(counts: RefundCounts) -> Option<Self> {
        let RefundCounts { made, back } = counts;
        (made > 0).then_some(Self { made, back })
    }
}

impl From<RefundTerms> for RefundTermsReply {
    fn from(terms: RefundTerms) -> Self {
        let RefundTerms { until, fee_minor } = terms;
        Self { until, fee_minor }
    }
}

impl LineReply {
    fn new(sale: &Sale, line: &OrderLine) -> Self {
        let ticket = |ticket: &Ticket| TicketReply {
            seat: ticket.name.clone(),
            attendee: ticket.attendee.as_ref().and_then(|attendee| attendee.id.clone()),
            refund: ticket.refund,
        };
        Self {
            tier: line.tier.clone(),
            from: sale.stop(line.legs.from()).cloned(),
            to: sale.stop(line.legs.to()).cloned(),
            price_minor: line.price_minor,
            refundable: line.terms.map(RefundTermsReply::from),
            exchangeable: line.exchange.map(RefundTermsReply::from),
            tickets: line.tickets.iter().map(ticket).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::sale::SaleFile;
    use serde_json::json;

    #[test]
    fn what_remains_is_the_limit_without_what_is_held_and_never_negative() {
        let file: SaleFile = serde_json::from_value(json!({
            "sale": "s", "title": "S", "currency": "EUR", "limit_per_buyer": 4,
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
            "pay_window_seconds": 600,
            "tiers": [{ "tier": "t", "name": "T", "price_minor": 1, "general_admission": 10 }]
        }))
        .unwrap();
        let sale = Sale::new(file).unwrap();
        for (held, remaining) in [(0, 4), (3, 1), (4, 0), (6, 0)] {
            let reply =
                serde_json::to_value(AllowanceReply::new(&sale, Tickets::new(held))).unwrap();
            let expected = json!({ "sale": "s", "held": held, "remaining": remaining, "limit": 4 });
            assert_eq!(reply, expected);
        }
    }
}
