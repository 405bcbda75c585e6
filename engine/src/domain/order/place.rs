//! Places: the time at which an order's payment is started whose provider has no free start at once.
//!
//! A provider takes a number of starts a second. A start without a turn within seconds gets a place in the same count
//! ([`CallRate`](crate::domain::admission::call_rate)), and its order keeps the place: whoever asks again is answered
//! with it, and starts the payment in it without another turn.

use crate::domain::admission::call_rate::PLACES_AHEAD_SECONDS;
use crate::domain::basics::ids::ProviderId;
use crate::domain::basics::time::Timestamp;

/// Seconds for which a place is good, from its time on. Who comes later takes a turn, or a place at the end.
pub const PLACE_GOOD_SECONDS: i64 = 15;
/// Seconds that an order has to be paid from the time of the place that extends it.
pub const EXTENSION_SECONDS: i64 = 120;
/// Most seconds by which places extend an order past its payment window.
pub const MAX_EXTENSION_SECONDS: i64 = PLACES_AHEAD_SECONDS + EXTENSION_SECONDS;

/// A start of a payment that an order was given.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The provider that has a start then, by whatever method.
    pub provider: ProviderId,
    /// Its time.
    pub at: Timestamp,
}

impl Place {
    /// True before its time.
    #[must_use]
    pub fn is_early(&self, now: Timestamp) -> bool {
        now < self.at
    }

    /// True once it is good no more.
    #[must_use]
    pub fn is_late(&self, now: Timestamp) -> bool {
        self.at.plus_seconds(PLACE_GOOD_SECONDS) <= now
    }
}
