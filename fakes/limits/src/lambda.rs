//! Lambda's concurrency: of the account, reserved for a function, of a function that grows, and of the requests of its
//! environments.

use std::collections::HashMap;

use crate::Now;
use crate::bucket::Bucket;
use crate::table::{CONCURRENCY, CONCURRENCY_GROWTH, ENVIRONMENT_RATE};

/// Seconds in which a function gets its new environments.
const GROWTH_SECONDS: f64 = 10.0;

/// Why an invocation was throttled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// The account runs as many as it may, but for those that are reserved.
    Concurrency,
    /// The function runs as many as are reserved for it.
    Reserved,
    /// The function has no environment that is free, and gets no new one yet.
    Growth,
    /// The environments of the function have as many requests a second as they may.
    Rate,
}

impl Throttle {
    /// The reason as Lambda names it, with what it was for a report.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Concurrency => "ConcurrentInvocationLimitExceeded (account)",
            Self::Reserved => "ReservedFunctionConcurrentInvocationLimitExceeded",
            Self::Growth => "ConcurrentInvocationLimitExceeded (1,000 environments in 10 s)",
            Self::Rate => "FunctionInvocationRateLimitExceeded (10 a second and environment)",
        }
    }
}

/// One function.
#[derive(Debug)]
struct Function {
    /// Invocations that are its own; `None` if it shares those of the account.
    reserved: Option<u32>,
    busy: u32,
    environments: u32,
    /// New environments that it may have.
    growth: Bucket,
    /// Requests that its environments may have.
    requests: Bucket,
}

impl Function {
    /// A function that nobody has invoked, whose environments are at most `most`.
    fn new(reserved: Option<u32>, most: u32, now: Now) -> Self {
        Self {
            reserved,
            busy: 0,
            environments: 0,
            growth: Bucket::full(
                CONCURRENCY_GROWTH.rate() / GROWTH_SECONDS,
                CONCURRENCY_GROWTH.rate(),
                now,
            ),
            // That of all environments that it may have: an idle one is used before a busy one, and a new
            // one before a request is refused.
            requests: Bucket::of_a_second(f64::from(most) * ENVIRONMENT_RATE.rate(), now),
        }
    }
}

/// The meter of an account: what runs, and what each function has.
#[derive(Debug)]
pub struct Account {
    /// What all functions without a reservation may run at once.
    limit: u32,
    /// What they run.
    busy: u32,
    functions: HashMap<String, Function>,
}

impl Default for Account {
    fn default() -> Self {
        Self::new(u32::try_from(CONCURRENCY.count()).unwrap_or(u32::MAX))
    }
}

impl Account {
    /// An account that may run `limit` invocations at once.
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self { limit, busy: 0, functions: HashMap::new() }
    }

    /// A new account of the usual limit in which these functions have as many invocations to themselves, from
    /// `now` on; the others share the rest.
    #[must_use]
    pub fn reserving<'f>(reserved: impl IntoIterator<Item = (&'f str, u32)>, now: Now) -> Self {
        let mut account = Self::default();
        for (function, own) in reserved {
            account.limit = account.limit.saturating_sub(own);
            let of = Function::new(Some(own), own, now);
            account.functions.insert(function.to_owned(), of);
        }
        account
    }

    /// Begins an invocation. Whoever is allowed to calls [`Account::end`] when it is over.
    ///
    /// # Errors
    /// Why it is throttled.
    pub fn begin(&mut self, function: &str, now: Now) -> Result<(), Throttle> {
        let limit = self.limit;
        let new = || Function::new(None, limit, now);
        let of = self.functions.entry(function.to_owned()).or_insert_with(new);
        match of.reserved {
            Some(own) if of.busy >= own => return Err(Throttle::Reserved),
            None if self.busy >= limit => return Err(Throttle::Concurrency),
            Some(_) | None => {}
        }
        let is_new = of.busy >= of.environments;
        if is_new && !of.growth.has(1.0, now) {
            return Err(Throttle::Growth);
        }
        if !of.requests.try_take(1.0, now) {
            return Err(Throttle::Rate);
        }
        if is_new {
            of.growth.take(1.0, now);
            of.environments += 1;
        }
        of.busy += 1;
        self.busy += u32::from(of.reserved.is_none());
        Ok(())
    }

    /// Ends an invocation that had begun; its environment is kept.
    pub fn end(&mut self, function: &str) {
        let Some(of) = self.functions.get_mut(function) else { return };
        of.busy = of.busy.saturating_sub(1);
        self.busy = self.busy.saturating_sub(u32::from(of.reserved.is_none()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now::from_secs(5);

    fn begun(account: &mut Account, function: &str, now: Now) -> usize {
        (0..5000).take_while(|_| account.begin(function, now).is_ok()).count()
    }

    #[test]
    fn an_account_runs_a_thousand_at_once() {
        let mut account = Account::default();
        assert_eq!(begun(&mut account, "reserve", NOW), 1000);
        assert_eq!(account.begin("orders", NOW), Err(Throttle::Concurrency));
        account.end("reserve");
        assert_eq!(account.begin("orders", NOW), Ok(()));
    }

    #[test]
    fn what_is_reserved_is_a_functions_own_and_all_that_it_gets() {
        let mut account = Account::reserving([("take", 50), ("pay", 20)], NOW);
        assert_eq!(begun(&mut account, "pay", NOW), 20);
        assert_eq!(account.begin("pay", NOW), Err(Throttle::Reserved));
        assert_eq!(begun(&mut account, "reserve", NOW), 930);
        assert_eq!(account.begin("orders", NOW), Err(Throttle::Concurrency));
        assert_eq!(begun(&mut account, "take", NOW), 50);
        account.end("pay");
        assert_eq!(
            account.begin("orders", NOW),
            Err(Throttle::Concurrency),
            "its place is its own"
        );
        assert_eq!(account.begin("pay", NOW), Ok(()));
        account.end("pay");
        let ran = (0..1000).take_while(|_| {
            let begun = account.begin("pay", NOW).is_ok();
            account.end("pay");
            begun
        });
        assert!(ran.count() < 200, "ten requests a second for each of twenty environments");
    }

    #[test]
    fn a_function_gets_a_thousand_environments_in_ten_seconds() {
        let mut account = Account::new(3000);
        assert_eq!(begun(&mut account, "reserve", NOW), 1000);
        assert_eq!(account.begin("reserve", NOW), Err(Throttle::Growth));
        assert_eq!(begun(&mut account, "orders", NOW), 1000, "each function by itself");
        let later = NOW + Now::from_secs(5);
        assert_eq!(begun(&mut account, "reserve", later), 500);
    }

    #[test]
    fn an_environment_that_is_free_is_used_again() {
        let mut account = Account::default();
        for _ in 0..5000 {
            account.begin("reserve", NOW).unwrap();
            account.end("reserve");
        }
        assert_eq!(account.functions["reserve"].environments, 1);
    }

    #[test]
    fn environments_have_ten_requests_a_second_each() {
        let mut account = Account::new(100);
        let mut ran = 0;
        while account.begin("reserve", NOW).is_ok() {
            account.end("reserve");
            ran += 1;
        }
        assert_eq!(ran, 1000);
        assert_eq!(account.begin("reserve", NOW), Err(Throttle::Rate));
        assert_eq!(account.begin("reserve", NOW + Now::from_secs(1)), Ok(()));
    }
}
