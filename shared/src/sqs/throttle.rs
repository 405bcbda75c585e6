//! Bounds how often this process requests a load or a draw of a sale. When Redis has lost a sale, or the time of its
//! draw has come, every request notices it and would send a message.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine::domain::basics::ids::SaleId;

/// The least time between two requests for one sale.
const PERIOD: Duration = Duration::from_secs(1);
/// Most sales that are remembered.
const MAX_REMEMBERED: usize = 1024;

/// Time of the last request for each sale.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<HashMap<SaleId, Instant>>);

impl Throttle {
    /// True if a request for the sale may be sent now; it then counts as sent.
    pub(super) fn admits(&self, sale: &SaleId, now: Instant) -> bool {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_early = |last: &Instant| now.saturating_duration_since(*last) < PERIOD;
        if asked.get(sale).is_some_and(is_early) {
            return false;
        }
        if asked.len() >= MAX_REMEMBERED {
            asked.retain(|_, last| is_early(last));
        }
        if asked.len() >= MAX_REMEMBERED {
            // Better to ask too often than to remember without bound.
            asked.clear();
        }
        asked.insert(sale.clone(), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(index: usize) -> SaleId {
        SaleId::new(format!("s{index}")).unwrap()
    }

    #[test]
    fn each_sale_is_asked_for_once_a_second() {
        let throttle = Throttle::default();
        let start = Instant::now();
        let after_ms = |ms| start + Duration::from_millis(ms);
        assert!(throttle.admits(&sale(1), start));
        assert!(!throttle.admits(&sale(1), after_ms(999)));
        assert!(throttle.admits(&sale(2), after_ms(999)), "another sale is another matter");
        assert!(throttle.admits(&sale(1), after_ms(1000)));
        assert!(!throttle.admits(&sale(1), after_ms(1999)), "a second since the last request");
    }

    #[test]
    fn it_remembers_no_more_than_its_bound() {
        let throttle = Throttle::default();
        let start = Instant::now();
        for index in 0..3 * MAX_REMEMBERED {
            assert!(throttle.admits(&sale(index), start));
        }
        assert!(throttle.0.lock().unwrap().len() <= MAX_REMEMBERED);
    }
}
