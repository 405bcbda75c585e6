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

/// What became of invocations that were asked for at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    pub count: u32,
    /// How many of them in an environment that is new.
    pub new: u32,
    /// Why the others did not.
    pub refused: Option<Throttle>,
}

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

    /// An account that may run `limit` invocations at once, in which these functions have as many to themselves, from
    /// `now` on; the others share the rest.
    pub fn with<'f>(
        limit: u32,
        reserved: impl IntoIterator<Item = (&'f str, u32)>,
        now: Now,
    ) -> Self {
        let mut account = Self::new(limit);
        for (function, own) in reserved {
            account.limit = account.limit.saturating_sub(own);
            let of = Function::new(Some(own), own, now);
            account.functions.insert(function.to_owned(), of);
        }
        account
    }

    /// A new account of the usual limit in which these functions have as many invocations to themselves, from
    /// `now` on; the others share the rest.
    #[must_use]
    pub fn reserving<'f>(reserved: impl IntoIterator<Item = (&'f str, u32)>, now: Now) -> Self {
        Self::with(Self::default().limit, reserved, now)
    }

    /// Begins an invocation. Whoever is allowed to calls [`Account::end`] when it is over.
    ///
    /// # Errors
    /// Why it is throttled.
    pub fn begin(&mut self, function: &str, now: Now) -> Result<(), Throttle> {
        self.begin_many(function, 1, now).refused.map_or(Ok(()), Err)
    }

    /// Begins as many of so many invocations as may begin now, as [`Account::begin`] would one after the other.
    pub fn begin_many(&mut self, function: &str, count: u32, now: Now) -> Begun {
        let (limit, busy) = (self.limit, self.busy);
        let new = || Function::new(None, limit, now);
        let of = self.functions.entry(function.to_owned()).or_insert_with(new);
        let whole = |tokens: f64| tokens as u32;
        let (free, why) = match of.reserved {
            Some(own) => (own.saturating_sub(of.busy), Throttle::Reserved),
            None => (limit.saturating_sub(busy), Throttle::Concurrency),
        };
        let idle = of.environments.saturating_sub(of.busy);
        let bounds = [
            (free, why),
            (idle.saturating_add(whole(of.growth.available(now))), Throttle::Growth),
            (whole(of.requests.available(now)), Throttle::Rate),
        ];
        let begun = bounds.iter().fold(count, |least, (bound, _)| least.min(*bound));
        // The first that does not let one more begin is the reason.
        let reason = bounds.iter().find(|(bound, _)| *bound == begun).map(|(_, why)| *why);
        let new = begun.saturating_sub(idle);
        of.growth.take(f64::from(new), now);
        of.requests.take(f64::from(begun), now);
        of.environments += new;
        of.busy += begun;
        if of.reserved.is_none() {
            self.busy += begun;
        }
        Begun { count: begun, new, refused: reason.filter(|_| begun < count) }
    }

    /// Ends an invocation that had begun; its environment is kept.
    pub fn end(&mut self, function: &str) {
        self.end_many(function, 1);
    }

    /// Ends so many invocations that had begun.
    pub fn end_many(&mut self, function: &str, count: u32) {
        let Some(of) = self.functions.get_mut(function) else { return };
        of.busy = of.busy.saturating_sub(count);
        if of.reserved.is_none() {
            self.busy = self.busy.saturating_sub(count);
        }
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
    fn many_at_once_begin_as_one_after_the_other() {
        let account = || Account::with(150, [("take", 20)], NOW);
        for (function, count) in [("take", 50), ("reserve", 200), ("reserve", 100), ("pay", 0)] {
            let (mut single, mut many) = (account(), account());
            let refused = (0..count).map(|_| single.begin(function, NOW)).find_map(Result::err);
            let begun = many.begin_many(function, count, NOW);
            assert_eq!(begun.refused, refused, "{function} {count}");
            let busy = |account: &Account| account.functions.get(function).map_or(0, |of| of.busy);
            assert_eq!((begun.count, busy(&many)), (busy(&single), busy(&single)));
            assert_eq!((begun.new, many.busy), (begun.count, single.busy));
            many.end_many(function, begun.count);
            assert_eq!((busy(&many), many.busy), (0, 0));
            let again = many.begin_many(function, 5, NOW + Now::from_secs(1));
            assert_eq!(again.new, 5_u32.saturating_sub(begun.count), "what is idle is used again");
        }
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
