//! What an order replaces: tickets of another order of its buyer.

use serde::{Deserialize, Serialize};

use super::{Order, PaymentKey, TicketName};
use crate::domain::basics::ids::{PaymentId, SaleId};
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;

/// What a buyer wants to give up for a new order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExchangeRequest {
    /// The order that has the tickets.
    pub order: OrderNumber,
    pub tickets: Vec<TicketName>,
}

/// What an order replaces, as it was when the order was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Exchange {
    /// The order whose tickets it replaces.
    pub order: OrderNumber,
    pub sale: SaleId,
    pub tickets: Vec<TicketName>,
    /// What they are worth by the terms of their purchase.
    pub value_minor: MinorUnits,
}

impl Exchange {
    /// The tickets that it replaces.
    #[must_use]
    pub fn count(&self) -> Tickets {
        Tickets::of_seats(self.tickets.len())
    }
}

impl Order {
    /// True if the worth of the replaced tickets is enough to pay the order.
    #[must_use]
    pub fn is_covered(&self) -> bool {
        let worth = self.exchange.as_ref().map(|exchange| exchange.value_minor);
        worth.is_some_and(|worth| self.total.amount_minor <= worth)
    }

    /// True if the order needs no payment from its buyer.
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

    /// The number by which the order raises its buyer's limit until it is paid: the tickets that it replaces in its own
    /// sale.
    #[must_use]
    pub fn replaced(&self) -> Tickets {
        let own = self.exchange.as_ref().filter(|exchange| exchange.sale == self.sale);
        own.map_or(Tickets::NONE, Exchange::count)
    }

    /// The id of a payment of it with the money of the tickets that it replaces: no provider gives such a one.
    pub(in crate::domain) fn moved_payment_id(&self) -> Option<String> {
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
