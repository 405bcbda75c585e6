//! How Alipay repeats a notification. Its rates are not published.

use std::time::Duration;

/// Minutes between the tries of a notification: eight tries within 25 hours.
const GAPS_MINUTES: [u64; 7] = [4, 10, 10, 60, 120, 360, 900];

/// How long after its n-th failed try, counted from 1, a notification is sent again; `None` when it is given
/// up.
#[must_use]
pub fn notification_gap(attempt: u32) -> Option<Duration> {
    let index = usize::try_from(attempt.checked_sub(1)?).ok()?;
    GAPS_MINUTES.get(index).map(|minutes| Duration::from_secs(minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::ALIPAY_NOTIFIED_SECONDS;

    #[test]
    fn a_notification_is_tried_eight_times_in_the_time_of_the_table() {
        let gaps: Vec<_> = (1..).map_while(notification_gap).collect();
        assert_eq!(gaps.len(), 7);
        assert_eq!(gaps.iter().sum::<Duration>(), Duration::from_secs(24 * 3600 + 24 * 60));
        let rest = ALIPAY_NOTIFIED_SECONDS.seconds() - gaps.iter().sum();
        assert!(rest < Duration::from_secs(3600), "{rest:?}");
        assert_eq!(notification_gap(0), None);
    }
}
