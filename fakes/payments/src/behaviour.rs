//! How unkind a fake of WeChat Pay or Alipay is.

use std::time::Duration;

use fake_limits::table::WECHAT_CLOSE_SECONDS;

/// What a fake does that a service does in earnest. [`Behaviour::default`] is as kind as a test of one thing
/// needs it; [`Behaviour::published`] is as the services say of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// How late a query shows that a trade is paid. Its close knows at once.
    pub query_lag: Duration,
    /// How long after its making an order may not be closed. WeChat Pay only.
    pub no_close_for: Duration,
    /// How long a payer takes who has begun to pay and is slow: the money comes so much later, whatever
    /// expires meanwhile.
    pub slow_payer_takes: Duration,
    /// By what the published gaps between tries of a notification are divided.
    pub hurry: u32,
    /// True if notifications come twice and out of order, and if WeChat Pay probes whether signatures are
    /// checked.
    pub is_unruly: bool,
}

impl Default for Behaviour {
    /// Nothing lags, nothing is refused, and everything comes once.
    fn default() -> Self {
        Self {
            query_lag: Duration::ZERO,
            no_close_for: Duration::ZERO,
            slow_payer_takes: Duration::from_secs(2),
            hurry: 1,
            is_unruly: false,
        }
    }
}

impl Behaviour {
    /// As the services are, with every time that they publish divided by `hurry`.
    #[must_use]
    pub fn published(query_lag: Duration, hurry: u32) -> Self {
        let hurry = hurry.max(1);
        Self {
            query_lag,
            no_close_for: WECHAT_CLOSE_SECONDS.seconds() / hurry,
            hurry,
            is_unruly: true,
            ..Self::default()
        }
    }
}
