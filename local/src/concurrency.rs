//! Lambda's concurrency, for the gateway and the event sources alike.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fake_limits::lambda::{Account, Throttle};
use fake_limits::table::Service;
use fake_limits::{Enforced, Throttles};
use shared::runtime::functions::Function;

/// The invocations that functions have to themselves, as `template.yaml` reserves them unless its parameters
/// say otherwise. Those of the two routes of callbacks, at ten requests a second each, are what API Gateway lets
/// through to them.
pub const RESERVED: [(Function, u32); 7] = [
    (Function::PayCallback, 50),
    (Function::TakeCallback, 100),
    (Function::ExpireOrders, 20),
    (Function::LoadSale, 2),
    (Function::DecidePayment, 10),
    (Function::Draw, 2),
    (Function::Reconcile, 1),
];

/// What an account may run at once; everything without limits. Clones are of the same account.
#[derive(Debug, Clone, Default)]
pub struct Concurrency(Option<Arc<Metered>>);

#[derive(Debug)]
struct Metered {
    account: Mutex<Account>,
    throttles: Throttles,
    started: Instant,
}

impl Metered {
    fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An invocation under way; it ends when this is dropped.
#[derive(Debug)]
pub struct Invocation(Option<(Arc<Metered>, Function)>);

impl Drop for Invocation {
    fn drop(&mut self) {
        if let Some((metered, function)) = &self.0 {
            metered.account().end(function.as_str());
        }
    }
}

impl Concurrency {
    /// The concurrency of a new account under these limits.
    #[must_use]
    pub fn new(limits: Option<&Enforced>) -> Self {
        Self(limits.map(|limits| {
            let throttles = limits.throttles.clone();
            let reserved = RESERVED.map(|(function, own)| (function.as_str(), own));
            let account = Mutex::new(Account::reserving(reserved, Duration::ZERO));
            Arc::new(Metered { account, throttles, started: Instant::now() })
        }))
    }

    /// Begins an invocation.
    ///
    /// # Errors
    /// Why it is throttled.
    pub fn begin(&self, function: Function) -> Result<Invocation, Throttle> {
        let Some(metered) = &self.0 else { return Ok(Invocation(None)) };
        let begun = metered.account().begin(function.as_str(), metered.started.elapsed());
        match begun {
            Ok(()) => Ok(Invocation(Some((Arc::clone(metered), function)))),
            Err(throttle) => {
                let reason = format!("{}: {}", function.as_str(), throttle.reason());
                metered.throttles.one(Service::Lambda.name(), &reason);
                Err(throttle)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use fake_limits::table::ENVIRONMENT_RATE;
    use shared::http::routes::ROUTES;

    use super::*;

    #[test]
    fn callbacks_that_the_gateway_lets_through_find_an_environment() {
        for route in ROUTES {
            let own = RESERVED.iter().find(|(function, _)| *function == route.function);
            if let Some((_, own)) = own {
                let carried = u64::from(*own) * ENVIRONMENT_RATE.count();
                assert!(carried >= u64::from(route.throttle.rate), "{}", route.key);
            }
        }
    }

    #[test]
    fn an_invocation_ends_when_it_is_dropped() {
        let enforced = Enforced::default();
        let account = Concurrency::new(Some(&enforced));
        let running: Vec<_> =
            std::iter::from_fn(|| account.begin(Function::Reserve).ok()).take(2000).collect();
        let reserved: usize = RESERVED.iter().map(|(_, own)| *own as usize).sum();
        assert_eq!(running.len(), 1000 - reserved);
        assert!(account.clone().begin(Function::Orders).is_err(), "the same account");
        drop(running);
        assert!(account.begin(Function::Orders).is_ok());
        assert_eq!(enforced.throttles.rows().len(), 2);
        assert!((0..5000).all(|_| Concurrency::default().begin(Function::Reserve).is_ok()));
    }
}
