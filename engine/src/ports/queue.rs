//! The port to the queues in SQS.

use std::future::Future;

use super::messages::{self, QueueMessage};
use super::{StoreError, Stored};
use crate::domain::basics::ids::{InventoryId, SaleId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::{Order, PaymentRecord};
use crate::domain::payment::ours::Reported;

/// The longest delay of a message, in seconds (a quota of SQS).
pub const LONGEST_DELAY_SECONDS: i64 = 900;
/// The delay of a message of [`Queue::keep`], in seconds: time for a store to answer again.
const KEEP_SECONDS: i32 = 5;

/// The queues (SQS). Each delivers a message at least once, in any order. An implementation writes
/// [`Queue::send`]; every other method sends one message with it.
///
/// # Errors
/// Every method fails with a [`StoreError`]. The sweeper compensates for a lost message, except for one of
/// [`Queue::keep`]: nothing else may know of its capture.
pub trait Queue: Send + Sync {
    /// Sends a message to its queue, which hides it from consumers for `delay_seconds` (`None`: for the queue's own
    /// delay). A process sends a [`messages::LoadSale`], and a [`messages::Draw`] without a delay, at most once a
    /// second for each sale: further ones would ask for the same.
    fn send(
        &self,
        message: &QueueMessage,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send;

    /// Sends the expiry message of an order, or of its hold in an inventory, to be read at `deadline`. If the deadline
    /// is more than 15 minutes away, the consumer puts the message back until then.
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

    /// Gives a pending order back to the expiry queue at once, whose consumer ends it or lets it wait. The captures
    /// that its providers list up to `heard_at` are decided.
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

    /// Hands an order over to the close queue, whose consumer closes its attempts at their providers.
    fn close(
        &self,
        inventory: &InventoryId,
        order: OrderNumber,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::ClosePayments::new(inventory, order).into();
        async move { self.send(&message, delay_seconds).await }
    }

    /// Requests that the facts of an order are settled, in the statistics of its sale and in the log.
    fn sync(&self, order: OrderNumber) -> impl Future<Output = Stored<()>> + Send {
        async move { self.send(&messages::Sync { order }.into(), None).await }
    }

    /// Requests that the points and the growth that an order gives its buyer are written, by the facts that the order
    /// has now.
    fn award(&self, order: &Order) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::AwardPoints { order: order.number, facts: order.facts.count() };
        async move { self.send(&message.into(), None).await }
    }

    /// Requests a load of a sale that Redis has lost.
    fn load_again(&self, sale: &SaleId) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::LoadSale { sale: sale.clone() }.into();
        async move { self.send(&message, None).await }
    }

    /// Requests the draw of the first window of a sale's room, at once or after a delay of at most 900 seconds.
    fn draw(
        &self,
        sale: &SaleId,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::Draw { sale: sale.clone() }.into();
        async move { self.send(&message, delay_seconds).await }
    }

    /// Keeps a capture whose signature was verified in the callback queue, for its consumer to decide it. Once the
    /// queue has answered with success, the provider need not report the capture again.
    fn keep(&self, reported: &Reported) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::Callback::from(reported.clone()).into();
        async move { self.send(&message, Some(KEEP_SECONDS)).await }
    }

    /// Requests that a refund of a paid order is sent to its provider.
    fn refund_part(
        &self,
        refund: &OrderRefund,
        delay_seconds: Option<i32>,
    ) -> impl Future<Output = Stored<()>> + Send {
        let message = messages::Refund::from(refund).into();
        async move { self.send(&message, delay_seconds).await }
    }

    /// Requests that a whole payment is refunded at its provider. Fails with [`StoreError::Contract`] if the payment
    /// was accepted.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<()>> + Send {
        let accepted = || StoreError::Contract("an accepted payment is not refunded".to_owned());
        let message = messages::Refund::from_record(payment).ok_or_else(accepted);
        async move { self.send(&message?.into(), None).await }
    }
}

/// The delay of a message that is to be read at a deadline, in seconds: 0 to [`LONGEST_DELAY_SECONDS`], rounded up so
/// that a message with a near deadline is not early.
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
