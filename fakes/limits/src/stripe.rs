//! Stripe's rates, and how it repeats callbacks.

use std::collections::HashMap;
use std::time::Duration;

use crate::bucket::Bucket;
use crate::table::{
    STRIPE_ALL, STRIPE_CALLBACK_GAP, STRIPE_CALLBACK_SECONDS, STRIPE_ENDPOINT, STRIPE_SEARCH,
};
use crate::{Now, Quotas};

/// The interval after the first callback that fails.
const FIRST_GAP: Duration = Duration::from_secs(60);

/// An endpoint: a named operation, whatever its parameters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Pay,
    Search,
    /// Any other, by its name.
    Other(String),
}

impl Endpoint {
    /// Its name, for a report.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pay => "POST payment_intents",
            Self::Search => "GET search",
            Self::Other(name) => name,
        }
    }
}

/// Why a request was throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// The endpoint has as many as it may.
    Endpoint,
    /// The account has as many as it may.
    Account,
}

impl Throttle {
    /// The value of the header that says so.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint-rate",
            Self::Account => "global-rate",
        }
    }
}

/// The meter of an account.
#[derive(Debug)]
pub struct Account {
    all: Bucket,
    endpoints: HashMap<Endpoint, Bucket>,
    payments: f64,
}

impl Account {
    /// The meter of an account with these quotas. What is agreed for payments beyond the table comes on
    /// top of what the account may do in all.
    #[must_use]
    pub fn new(quotas: Quotas, now: Now) -> Self {
        let payments = f64::from(quotas.payments_per_second).max(1.0);
        let all = STRIPE_ALL.rate() + (payments - STRIPE_ENDPOINT.rate()).max(0.0);
        Self { all: Bucket::of_a_second(all, now), endpoints: HashMap::new(), payments }
    }

    /// Whether a request is taken.
    ///
    /// # Errors
    /// Why it is throttled.
    pub fn admit(&mut self, endpoint: &Endpoint, now: Now) -> Result<(), Throttle> {
        let rate = match endpoint {
            Endpoint::Pay => self.payments,
            Endpoint::Search => STRIPE_SEARCH.rate(),
            Endpoint::Other(_) => STRIPE_ENDPOINT.rate(),
        };
        let of = self.endpoints.entry(endpoint.clone());
        let of = of.or_insert_with(|| Bucket::of_a_second(rate, now));
        if !of.has(1.0, now) {
            return Err(Throttle::Endpoint);
        }
        if !self.all.try_take(1.0, now) {
            return Err(Throttle::Account);
        }
        of.take(1.0, now);
        Ok(())
    }
}

/// How long after its n-th failed attempt, counted from 1, a callback is sent again; `None` when it is
/// given up. The intervals are a choice: they double from a minute to four hours.
#[must_use]
pub fn callback_gap(attempt: u32) -> Option<Duration> {
    let gap = |attempt: u32| {
        let doubled = 2u32.checked_pow(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        FIRST_GAP.saturating_mul(doubled).min(STRIPE_CALLBACK_GAP.seconds())
    };
    let mut passed = Duration::ZERO;
    for before in 1..=attempt {
        passed += gap(before);
        if passed > STRIPE_CALLBACK_SECONDS.seconds() {
            return None;
        }
    }
    Some(gap(attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now::from_secs(1);

    fn other(name: &str) -> Endpoint {
        Endpoint::Other(name.to_owned())
    }

    fn taken(account: &mut Account, endpoint: Endpoint) -> usize {
        (0..500).filter(|_| account.admit(&endpoint, NOW).is_ok()).count()
    }

    #[test]
    fn an_endpoint_has_its_rate_and_the_account_another() {
        let mut account = Account::new(Quotas::default(), NOW);
        assert_eq!(taken(&mut account, Endpoint::Search), 20);
        assert_eq!(account.admit(&Endpoint::Search, NOW), Err(Throttle::Endpoint));
        assert_eq!(taken(&mut account, other("refunds")), 25);
        assert_eq!(taken(&mut account, other("events")), 25);
        assert_eq!(taken(&mut account, Endpoint::Pay), 25);
        assert_eq!(taken(&mut account, other("list")), 5);
        assert_eq!(account.admit(&other("list"), NOW), Err(Throttle::Account));
    }

    #[test]
    fn what_was_agreed_for_payments_leaves_the_rest_as_it_is() {
        let quotas = Quotas { payments_per_second: 300, ..Quotas::default() };
        let mut account = Account::new(quotas, NOW);
        assert_eq!(taken(&mut account, Endpoint::Pay), 300);
        assert_eq!(taken(&mut account, Endpoint::Search), 20);
        assert_eq!(taken(&mut account, other("refunds")), 25);
    }

    #[test]
    fn callbacks_back_off_for_three_days() {
        assert_eq!(callback_gap(1), Some(Duration::from_secs(60)));
        assert_eq!(callback_gap(4), Some(Duration::from_secs(480)));
        assert_eq!(callback_gap(12), Some(Duration::from_secs(4 * 3600)));
        let attempts = (1..100).take_while(|attempt| callback_gap(*attempt).is_some());
        let waited: Duration = attempts.filter_map(callback_gap).sum();
        assert!(waited <= Duration::from_secs(3 * 24 * 3600), "{waited:?}");
        assert!(waited > Duration::from_secs(2 * 24 * 3600), "{waited:?}");
        assert_eq!(callback_gap(u32::MAX), None);
    }
}
