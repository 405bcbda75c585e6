//! The port to the queues in SQS.

use std::future::Future;

use super::messages::{self, QueueMessage};
use super::{StoreError, Stored};
use crate::domain::basics::ids::{InventoryId, SaleId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::{Capture, Order, PaymentRecord};

/// The longest delay of a message, in seconds (a quota of SQS).
pub const LONGEST_DELAY_SECONDS: i64 = 900;
/// Delay of a capture that is kept, in seconds: time for a store to answer again.
const KEEP_SECONDS: i32 = 5;

/// The queues (SQS). Each delivers at least once, in any order. An implementation writes
/// [`Queue::send`]; each other method is a message that is sent with it.
///
/// # Errors
/// Every method fails with a [`StoreError`]. The sweeper compensates for a message that is lost, but for
/// one of [`Queue::keep`], which may be all that is known of a capture.
pub trait Queue: Send + Sync {
    /// Sends a message into its queue, where nobody sees it for `delay_seconds`. A process sends a
    /// [`messages::LoadSale`] at most once a second for each sale, and a [`messages::Draw`] without a
    /// delay: asking often is no more than asking once.
    fn send(
        &self,
        message: &QueueMessage,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send;

    /// Brings an order, or its hold in an inventory, up again at its deadline; beyond 15 minutes in
    /// several delays.
    fn expire_later(
        &self,
        inventory: &InventoryId,
        order: OrderNumber,
        now: Timestamp,
        deadline: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::Expiry::new(inventory, order, deadline).into();
        async move { self.send(&message, Some(delay_seconds(now, deadline))).await }
    }

    /// Gives an order back at once, to be ended or to wait: what its providers list by `heard_at` is decided.
    fn heard(
        &self,
        inventory: &InventoryId,
        order: OrderNumber,
        heard_at: Timestamp,
        now: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send {
        let heard_at = Some(heard_at);
        let message = messages::Expiry { heard_at, ..messages::Expiry::new(inventory, order, now) };
        async move { self.send(&message.into(), None).await }
    }

    /// Hands an order over to who speaks to its providers.
    fn close(
        &self,
        inventory: &InventoryId,
        order: OrderNumber,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::ClosePayments::new(inventory, order).into();
        async move { self.send(&message, delay_seconds).await }
    }

    /// Counts a paid order.
    fn sync(&self, order: OrderNumber) -> impl Future<Output = Stored<()>> + Send {
        async move { self.send(&messages::Sync { order }.into(), None).await }
    }

    /// Has what an order gives its buyer written, as its facts are.
    fn award(&self, order: &Order) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::AwardPoints { order: order.number, facts: order.facts.count() };
        async move { self.send(&message.into(), None).await }
    }

    /// Loads a sale that Redis has lost.
    fn load_again(&self, sale: &SaleId) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::LoadSale { sale: sale.clone() }.into();
        async move { self.send(&message, None).await }
    }

    /// Draws the first window of a sale's room, now or after a delay.
    fn draw(
        &self,
        sale: &SaleId,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::Draw { sale: sale.clone() }.into();
        async move { self.send(&message, delay_seconds).await }
    }

    /// Keeps a capture whose signature was verified, for its consumer to decide it. Once this is answered
    /// with success its provider need not report it again.
    fn keep(&self, capture: &Capture) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::Callback::from(capture.clone()).into();
        async move { self.send(&message, Some(KEEP_SECONDS)).await }
    }

    /// Requests a refund of a paid order.
    fn refund_part(
        &self,
        refund: &OrderRefund,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::Refund::from(refund).into();
        async move { self.send(&message, delay_seconds).await }
    }

    /// Requests the refund of a payment. One that was accepted breaks the contract.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<()>> + Send {
        let accepted = || StoreError::Contract("an accepted payment is not refunded".to_owned());
        let message = messages::Refund::from_record(payment).ok_or_else(accepted);
        async move { self.send(&message?.into(), None).await }
    }
}

/// The delay of a message, in seconds: until the deadline, in whole seconds rounded up so that it is not
/// early, and at most 15 minutes.
#[must_use]
pub fn delay_seconds(now: Timestamp, deadline: Timestamp) -> i32 {
    let remaining_ms = deadline.ms_since(now).max(0);
    let seconds = remaining_ms.saturating_add(999) / 1000;
    i32::try_from(seconds.min(LONGEST_DELAY_SECONDS)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_until_the_deadline_or_fifteen_minutes() {
        let now = Timestamp::from_ms(1_800_000_000_000);
        let cases =
            [(-5, 0), (0, 0), (1, 1), (1000, 1), (1001, 2), (900_000, 900), (86_400_000, 900)];
        for (remaining_ms, seconds) in cases {
            assert_eq!(delay_seconds(now, now.plus_ms(remaining_ms)), seconds, "{remaining_ms}");
        }
        assert_eq!(delay_seconds(now, Timestamp::from_ms(i64::MAX)), 900);
    }
}
