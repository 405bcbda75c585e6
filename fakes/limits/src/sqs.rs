//! The event source mapping of a queue: how it grows.

use std::time::Duration;

use crate::table::{MAPPING_GROWTH, MAPPING_MAX, MAPPING_START};

/// After which time of work a mapping makes its n-th invocation at once, counted from 0; `None` if it
/// never does.
#[must_use]
pub fn starts_after(index: usize) -> Option<Duration> {
    if index >= MAPPING_MAX.size() {
        return None;
    }
    let beyond = index.saturating_sub(MAPPING_START.size() - 1);
    let beyond = u32::try_from(beyond).ok()?;
    let minute = Duration::from_secs(60);
    let each = u32::try_from(MAPPING_GROWTH.count()).ok()?;
    Some(minute / each * beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_begins_with_five_and_grows_by_five_a_second() {
        assert_eq!(starts_after(0), Some(Duration::ZERO));
        assert_eq!(starts_after(4), Some(Duration::ZERO));
        assert_eq!(starts_after(5), Some(Duration::from_millis(200)));
        assert_eq!(starts_after(9), Some(Duration::from_secs(1)));
        assert_eq!(starts_after(304), Some(Duration::from_secs(60)));
        assert_eq!(starts_after(1250), None);
    }
}
