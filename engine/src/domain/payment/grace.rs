//! The grace: how long an unpaid order waits past its deadline for a payment that was made in time.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::time::{BoundedSeconds, Timestamp};

/// Seconds beyond the grace in which an unpaid order must have ended (I7): the sweeper runs every
/// minute, and may fail once.
const SWEEPS_SECONDS: u32 = 120;
/// Seconds past its grace for which an order waits for its providers: the queue's delay, the limit on calls and
/// a few tries. The first sweep after the grace hands it over once more, the second ends it.
pub const FOR_THE_PROVIDER_SECONDS: i64 = 60;
/// Seconds past its grace after which its providers are not asked any more: it is given back in time.
pub const ASKED_FOR_SECONDS: i64 = 45;
const _: () = assert!(ASKED_FOR_SECONDS < FOR_THE_PROVIDER_SECONDS);

/// How long an order stays pending past its deadline unless its payment comes to light.
///
/// A provider may list a capture late, and its callback may be lost. The list at the end of the grace has every capture
/// that was made by the deadline, if the grace is longer than the provider's lag. So an order that was paid in time
/// does not end unpaid. The longest grace is an hour: an outage of the provider's search.
pub type Grace = BoundedSeconds<3600>;

impl Grace {
    /// None: an unpaid order ends at its deadline.
    pub const NONE: Self = Self::new(0);
    /// Twice the minute within which Stripe's search usually has a capture.
    /// Source: <https://docs.stripe.com/search#data-freshness>
    pub const DEFAULT: Self = Self::new(120);

    /// The time at which an unpaid order ends that was to be paid by `pay_by`.
    #[must_use]
    pub fn end_from(self, pay_by: Timestamp) -> Timestamp {
        let seconds = if stands(Guard::Grace) { self.seconds() } else { 0 };
        pay_by.plus_seconds(seconds.into())
    }

    /// Seconds past its deadline after which no order may be pending (I7).
    #[must_use]
    pub const fn bound_seconds(self) -> u32 {
        self.seconds() + SWEEPS_SECONDS
    }
}

impl Default for Grace {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unpaid_order_ends_after_the_grace_and_within_the_bound() {
        let pay_by = Timestamp::from_ms(1_800_000_000_000);
        assert_eq!(Grace::NONE.end_from(pay_by), pay_by);
        assert_eq!(Grace::DEFAULT.end_from(pay_by), pay_by.plus_seconds(120));
        assert_eq!((Grace::NONE.bound_seconds(), Grace::DEFAULT.bound_seconds()), (120, 240));
        assert_eq!(Grace::from_seconds(Grace::MAX_SECONDS).map(Grace::seconds), Some(3600));
        assert_eq!(Grace::from_seconds(Grace::MAX_SECONDS + 1), None);
    }
}
