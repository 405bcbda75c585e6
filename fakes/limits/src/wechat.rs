//! WeChat Pay's rates, which are published for refunds alone, and how it repeats a notification.

use std::time::Duration;

use crate::Now;
use crate::bucket::Bucket;
use crate::table::{WECHAT_FAULTY_REFUNDS, WECHAT_REFUNDS};

/// Seconds between the tries of a notification.
const GAPS_SECONDS: [u64; 15] =
    [15, 15, 30, 180, 600, 1200, 1800, 1800, 1800, 3600, 10800, 10800, 10800, 21600, 21600];

/// The meter of a merchant's refunds.
#[derive(Debug)]
pub struct Refunds {
    all: Bucket,
    faulty: Bucket,
}

impl Refunds {
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self {
            all: Bucket::of_a_second(WECHAT_REFUNDS.rate(), now),
            faulty: Bucket::of_a_second(WECHAT_FAULTY_REFUNDS.rate(), now),
        }
    }

    /// True if a request is taken: within the rate of all, and with less than their rate of faulty ones.
    pub fn admit(&mut self, now: Now) -> bool {
        self.faulty.has(1.0, now) && self.all.try_take(1.0, now)
    }

    /// Counts a request that was answered with an error.
    pub fn fault(&mut self, now: Now) {
        self.faulty.take(1.0, now);
    }
}

/// How long after its n-th failed try, counted from 1, a notification is sent again; `None` when it is given
/// up.
#[must_use]
pub fn notification_gap(attempt: u32) -> Option<Duration> {
    let index = usize::try_from(attempt.checked_sub(1)?).ok()?;
    GAPS_SECONDS.get(index).map(|seconds| Duration::from_secs(*seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::WECHAT_NOTIFIED_SECONDS;

    #[test]
    fn a_notification_is_tried_for_the_time_of_the_table() {
        let gaps: Vec<_> = (1..).map_while(notification_gap).collect();
        assert_eq!(gaps.iter().sum::<Duration>(), WECHAT_NOTIFIED_SECONDS.seconds());
        assert_eq!(notification_gap(0), None);
    }

    #[test]
    fn refunds_have_their_rate_and_faulty_ones_a_lower_one() {
        let now = Now::from_secs(1);
        let mut good = Refunds::new(now);
        assert_eq!((0..500).filter(|_| good.admit(now)).count(), 150);
        let mut faulty = Refunds::new(now);
        let mut taken = 0;
        while faulty.admit(now) {
            faulty.fault(now);
            taken += 1;
        }
        assert_eq!(taken, 6);
    }
}
