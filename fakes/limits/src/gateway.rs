//! The throttle of an HTTP API: one bucket for all routes of the account, and one for each route that has a
//! share of its own.

use std::collections::HashMap;

use crate::Now;
use crate::bucket::Bucket;
use crate::table::{GATEWAY_BURST, GATEWAY_HEAD_BYTES, GATEWAY_RATE};

/// Reason under which a refusal is counted whose function was throttled.
pub const FUNCTION_THROTTLED: &str = "500: the function was throttled";
/// Reason under which an answer is counted whose function failed. It has the bytes of that refusal, so that
/// only the count tells the two apart.
pub const FUNCTION_FAILED: &str = "500: the function failed";

/// The share of the requests that a route has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Its name, unique in the gateway.
    pub name: &'static str,
    pub rate: u32,
    /// Requests that may come at once.
    pub burst: u32,
}

/// The meter of an account's HTTP APIs.
#[derive(Debug)]
pub struct Gateway {
    account: Bucket,
    shares: HashMap<&'static str, Bucket>,
}

impl Gateway {
    /// A gateway that nobody has used yet.
    #[must_use]
    pub fn new(now: Now) -> Self {
        let account = Bucket::full(GATEWAY_RATE.rate(), GATEWAY_BURST.rate(), now);
        Self { account, shares: HashMap::new() }
    }

    /// True if a request is passed on: its route's share comes first, and what that refuses is none of the
    /// account's. Source: the order in "Throttle requests to your REST APIs"; for HTTP APIs not published.
    pub fn admit(&mut self, share: Option<Share>, now: Now) -> bool {
        if let Some(Share { name, rate, burst }) = share {
            let new = || Bucket::full(f64::from(rate), f64::from(burst), now);
            if !self.shares.entry(name).or_insert_with(new).try_take(1.0, now) {
                return false;
            }
        }
        self.account.try_take(1.0, now)
    }
}

/// Bytes of a request line and its headers: `line` is the method, the path with its query, and the
/// version; `headers` are names and values.
#[must_use]
pub fn head_bytes<'h>(line: &[&str], headers: impl Iterator<Item = (&'h str, &'h [u8])>) -> usize {
    // Blanks between the words and the end of the line; a colon, a blank and the end of a line.
    let line: usize = line.iter().map(|word| word.len() + 1).sum::<usize>() + 1;
    line + headers.map(|(name, value)| name.len() + value.len() + 4).sum::<usize>()
}

/// True if a request line and headers of that size are passed on.
#[must_use]
pub fn fits(head_bytes: usize) -> bool {
    head_bytes <= GATEWAY_HEAD_BYTES.size()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_five_thousand_then_ten_thousand_a_second() {
        let mut gateway = Gateway::new(Now::ZERO);
        assert_eq!((0..9000).filter(|_| gateway.admit(None, Now::ZERO)).count(), 5000);
        let admitted = (1..=2000)
            .map(|ms| (0..100).filter(|_| gateway.admit(None, Now::from_millis(ms))).count());
        assert_eq!(admitted.sum::<usize>(), 20_000);
    }

    #[test]
    fn what_a_share_refuses_takes_nothing_of_the_others() {
        let mut gateway = Gateway::new(Now::ZERO);
        let flooded = Some(Share { name: "flooded", rate: 1000, burst: 500 });
        let other = Some(Share { name: "other", rate: 500, burst: 250 });
        assert_eq!((0..100_000).filter(|_| gateway.admit(flooded, Now::ZERO)).count(), 500);
        assert_eq!((0..1000).filter(|_| gateway.admit(other, Now::ZERO)).count(), 250);
        assert_eq!((0..9000).filter(|_| gateway.admit(None, Now::ZERO)).count(), 4250);
        let later = Now::from_millis(500);
        assert_eq!((0..100_000).filter(|_| gateway.admit(flooded, later)).count(), 500);
    }

    #[test]
    fn the_request_line_counts_with_the_headers() {
        let headers = [("host", b"a".as_slice())];
        assert_eq!(head_bytes(&["GET", "/", "HTTP/1.1"], headers.into_iter()), 16 + 9);
        assert!(fits(10_240) && !fits(10_241));
    }
}
