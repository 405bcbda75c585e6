//! The pace at which whoever cancels a sale makes refunds: no faster than they leave for the provider, so that
//! the refund queue stays short.

use std::time::Duration;

use engine::domain::admission::call_rate::CallRate;
use shared::providers::Operation;
use tokio::sync::Mutex;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Refunds a second that an engine asks a provider for by default (`docs/payments.md`).
#[must_use]
pub fn default_per_second() -> u32 {
    Operation::Refund.rate(CallRate::DEFAULT).per_second()
}

/// Turns at equal distances; what was missed is not made up for.
#[derive(Debug)]
pub struct RefundPace(Mutex<Interval>);

impl RefundPace {
    /// So many turns a second, one at least.
    ///
    /// # Panics
    /// Panics outside of a runtime with a clock.
    #[must_use]
    pub fn per_second(turns: u32) -> Self {
        let mut turns = interval(Duration::from_secs(1) / turns.max(1));
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self(Mutex::new(turns))
    }

    /// Waits for the next turn.
    pub async fn turn(&self) {
        self.0.lock().await.tick().await;
    }
}
