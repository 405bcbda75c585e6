//! The throttle of an HTTP API: one bucket for all routes of the account.

use crate::Now;
use crate::bucket::Bucket;
use crate::table::{GATEWAY_BURST, GATEWAY_HEAD_BYTES, GATEWAY_RATE};

/// The meter of an account's HTTP APIs.
#[derive(Debug)]
pub struct Gateway(Bucket);

impl Gateway {
    /// A gateway that nobody has used yet.
    #[must_use]
    pub fn new(now: Now) -> Self {
        Self(Bucket::full(GATEWAY_RATE.rate(), GATEWAY_BURST.rate(), now))
    }

    /// True if a request is passed on.
    pub fn admit(&mut self, now: Now) -> bool {
        self.0.try_take(1.0, now)
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
        assert_eq!((0..9000).filter(|_| gateway.admit(Now::ZERO)).count(), 5000);
        let admitted =
            (1..=2000).map(|ms| (0..100).filter(|_| gateway.admit(Now::from_millis(ms))).count());
        assert_eq!(admitted.sum::<usize>(), 20_000);
    }

    #[test]
    fn the_request_line_counts_with_the_headers() {
        let headers = [("host", b"a".as_slice())];
        assert_eq!(head_bytes(&["GET", "/", "HTTP/1.1"], headers.into_iter()), 16 + 9);
        assert!(fits(10_240) && !fits(10_241));
    }
}
