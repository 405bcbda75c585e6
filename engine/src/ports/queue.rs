//! The port to the queues in SQS.

use std::future::Future;

use super::Stored;
use crate::domain::ids::SaleId;
use crate::domain::number::OrderNumber;
use crate::domain::order::PaymentRecord;
use crate::domain::time::Timestamp;

/// The longest delay of a message, in seconds (a quota of SQS).
pub const LONGEST_DELAY_SECONDS: i64 = 900;

/// The queues (SQS). Each delivers at least once, in any order.
///
/// # Errors
/// Every method fails with a [`StoreError`](super::StoreError); the sweeper compensates for a message that is lost.
pub trait Queue: Send + Sync {
    /// Brings an order up again at its deadline; beyond 15 minutes in several delays.
    fn expire_later(
        &self,
        sale: &SaleId,
        order: OrderNumber,
        now: Timestamp,
        deadline: Timestamp,
    ) -> impl Future<Output = Stored<()>> + Send;
    /// Counts a paid order.
    fn sync(&self, order: OrderNumber) -> impl Future<Output = Stored<()>> + Send;
    /// Loads a sale that Redis has lost. Asking often is no more than asking once: a process sends
    /// a request a second for each sale.
    fn load_again(&self, sale: &SaleId) -> impl Future<Output = Stored<()>> + Send;
    /// Requests the refund of a payment.
    fn refund(&self, payment: &PaymentRecord) -> impl Future<Output = Stored<()>> + Send;
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
