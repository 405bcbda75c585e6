//! The limit on calls to a provider: a number a second to each of its endpoints, by all processes together.
//!
//! What is kept of an endpoint is one time, in microseconds since 1970: that of the next call that nobody
//! has been given. Whoever takes calls moves it on by their number times the interval between two, and may
//! make them from the old time on, one an interval. So calls are evenly spaced, and a second never has more
//! than its number of them. Calls are given out for the next two seconds; beyond that one has to come back. Starts of
//! payments are given out further ahead ([`Ahead::Places`]), so that whoever waits for one has its time; the turns of
//! those who start at once and these places are one count. Refunds that captures decide have a count of their own, further
//! ahead still ([`Ahead::Refunds`]).

/// Seconds ahead within which a call is a turn, which its caller waits for.
pub const TURNS_AHEAD_SECONDS: i64 = 2;
/// Seconds ahead for which starts of payments are given out.
pub const PLACES_AHEAD_SECONDS: i64 = 120;
/// Seconds ahead for which refunds that captures decide are given turns: a day.
pub const REFUNDS_AHEAD_SECONDS: i64 = 86_400;
/// A time that lies further ahead than calls are given out, by more than these microseconds, was written by a clock that
/// is wrong, and is passed over.
const CLOCKS_US: i64 = 8_000_000;

/// Seconds to the next free start of a payment from which on a gate or a room lets nobody in: who buys a ticket first
/// chooses seats, and is to start within the time that places are given out for.
pub const LETS_IN_SECONDS: i64 = 30;
/// Seconds after its last start for which an account counts as one at which payments are started.
const USED_LATELY_US: i64 = 60_000_000;

/// How far ahead calls are given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// [`TURNS_AHEAD_SECONDS`]: the caller waits.
    Turns,
    /// [`PLACES_AHEAD_SECONDS`]: a call that is no turn is kept for who has asked for it.
    Places,
    /// [`TURNS_AHEAD_SECONDS`], of calls of which others get places.
    TurnsAmongPlaces,
    /// [`REFUNDS_AHEAD_SECONDS`]: a turn that is not now is kept on its payment.
    Refunds,
}

impl Ahead {
    const fn us(self) -> i64 {
        1_000_000
            * match self {
                Self::Turns | Self::TurnsAmongPlaces => TURNS_AHEAD_SECONDS,
                Self::Places => PLACES_AHEAD_SECONDS,
                Self::Refunds => REFUNDS_AHEAD_SECONDS,
            }
    }

    /// The furthest that a right clock writes a time ahead.
    const fn longest_us(self) -> i64 {
        match self {
            Self::Turns => Self::Turns.us(),
            Self::Places | Self::TurnsAmongPlaces => Self::Places.us(),
            Self::Refunds => Self::Refunds.us(),
        }
    }
}

/// Calls a second to one endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    per_second: u32,
}

/// What a taker of calls gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Take {
    /// Some calls, fewer perhaps than were asked for, but one at least.
    Calls {
        /// The number of calls.
        calls: u32,
        /// The time of the first of them.
        first_us: i64,
        /// The time of the next call after them, which is to be kept.
        next_us: i64,
    },
    /// None for so long.
    UsedUp {
        /// Time after which there is one.
        for_us: i64,
    },
}

impl CallRate {
    /// Twenty a second: the lowest limit of an endpoint of Stripe's, that of its search.
    /// Source: <https://docs.stripe.com/rate-limits>
    pub const DEFAULT: Self = Self { per_second: 20 };
    /// The highest, in calls a second.
    pub const MAX_PER_SECOND: u32 = 10_000;

    /// A rate in calls a second; `None` if it is 0 or above [`CallRate::MAX_PER_SECOND`].
    #[must_use]
    pub const fn from_per_second(per_second: u32) -> Option<Self> {
        if per_second == 0 || per_second > Self::MAX_PER_SECOND {
            return None;
        }
        Some(Self { per_second })
    }

    /// The calls of a second.
    #[must_use]
    pub const fn per_second(self) -> u32 {
        self.per_second
    }

    /// A part of these calls, as `share` of `whole`: one a second at least.
    #[must_use]
    pub fn part(self, share: u32, whole: u32) -> Self {
        let calls = u64::from(self.per_second) * u64::from(share) / u64::from(whole.max(1));
        let per_second = u32::try_from(calls).unwrap_or(u32::MAX).clamp(1, Self::MAX_PER_SECOND);
        Self { per_second }
    }

    /// Time between two calls, in microseconds.
    #[must_use]
    pub fn interval_us(self) -> i64 {
        1_000_000 / i64::from(self.per_second)
    }

    /// The time of the next call that nobody has been given, where `kept_us` is the time that is kept.
    #[must_use]
    pub fn next_free(kept_us: Option<i64>, ahead: Ahead, now_us: i64) -> i64 {
        let latest_us = now_us + ahead.longest_us() + CLOCKS_US;
        kept_us.filter(|kept_us| (now_us..=latest_us).contains(kept_us)).unwrap_or(now_us)
    }

    /// Takes up to `calls` calls at `now_us`, where `kept_us` is the time that is kept.
    #[must_use]
    pub fn take(self, kept_us: Option<i64>, calls: u32, ahead: Ahead, now_us: i64) -> Take {
        let interval_us = self.interval_us();
        let first_us = Self::next_free(kept_us, ahead, now_us);
        let free = (now_us + ahead.us() - first_us).div_euclid(interval_us).max(0);
        let calls = calls.max(1).min(u32::try_from(free).unwrap_or(u32::MAX));
        if calls == 0 {
            return Take::UsedUp { for_us: first_us + interval_us - now_us - ahead.us() };
        }
        let next_us = first_us + i64::from(calls) * interval_us;
        Take::Calls { calls, first_us, next_us }
    }
}

/// Milliseconds until the next free start, of accounts of which these times are kept: of those that were used lately the first.
/// `None` if none was.
#[must_use]
pub fn first_free_ms(kept_us: impl IntoIterator<Item = i64>, now_us: i64) -> Option<u32> {
    let used = kept_us.into_iter().filter(|kept_us| now_us - USED_LATELY_US < *kept_us);
    let free = used.map(|kept_us| CallRate::next_free(Some(kept_us), Ahead::Places, now_us)).min();
    free.map(|free_us| u32::try_from((free_us - now_us) / 1000).unwrap_or(u32::MAX))
}

/// Milliseconds for which a gate or a room lets nobody in, where the next start is free in so many; `None` if it lets in.
#[must_use]
pub fn held_back_ms(starts_in_ms: Option<u32>) -> Option<i64> {
    let beyond_ms = i64::from(starts_in_ms?) - LETS_IN_SECONDS * 1000;
    (beyond_ms >= 0).then_some(beyond_ms.max(1))
}

impl Default for CallRate {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000_000;
    const SECOND: i64 = 1_000_000;

    /// Everybody takes as much as there is, in turns of some microseconds: the times of their calls.
    fn calls(rate: CallRate, takers: u32, for_us: i64) -> Vec<i64> {
        let (mut kept, mut now, mut times) = (None, NOW, Vec::new());
        while now < NOW + for_us {
            for _ in 0..takers {
                if let Take::Calls { calls, first_us, next_us } =
                    rate.take(kept, 10, Ahead::Turns, now)
                {
                    times.extend((0..i64::from(calls)).map(|n| first_us + n * rate.interval_us()));
                    kept = Some(next_us);
                }
            }
            now += 7_919;
        }
        times
    }

    #[test]
    fn no_second_has_more_calls_than_its_number_and_none_are_lost() {
        for per_second in [1, 3, 20, 1000] {
            let rate = CallRate::from_per_second(per_second).unwrap();
            let times = calls(rate, 4, 10 * SECOND);
            assert!(times.is_sorted());
            let one_too_many = times.windows(per_second as usize + 2);
            let within = one_too_many.filter(|some| some[some.len() - 1] - some[0] < SECOND);
            assert_eq!(within.count(), 0, "{per_second}");
            let least = per_second as usize * 10;
            assert!(times.len() >= least, "{per_second}: {} of {least}", times.len());
        }
    }

    #[test]
    fn who_comes_too_late_is_told_when_to_come_back() {
        let rate = CallRate::DEFAULT;
        let Take::Calls { calls, first_us, next_us } = rate.take(None, 100, Ahead::Turns, NOW)
        else {
            panic!()
        };
        assert_eq!((calls, first_us, next_us), (40, NOW, NOW + 2 * SECOND));
        assert_eq!(rate.take(Some(next_us), 1, Ahead::Turns, NOW), Take::UsedUp { for_us: 50_000 });
        let later = NOW + 50_000;
        let one = Take::Calls { calls: 1, first_us: next_us, next_us: next_us + 50_000 };
        assert_eq!(rate.take(Some(next_us), 10, Ahead::Turns, later), one);
    }

    #[test]
    fn a_clock_that_is_wrong_stops_nobody_for_long() {
        let one = Take::Calls { calls: 1, first_us: NOW, next_us: NOW + 50_000 };
        for kept in [NOW - SECOND, NOW + 3600 * SECOND] {
            assert_eq!(CallRate::DEFAULT.take(Some(kept), 1, Ahead::Turns, NOW), one, "{kept}");
        }
        let for_us = |ahead| match CallRate::DEFAULT.take(Some(NOW + ahead), 1, Ahead::Turns, NOW) {
            Take::UsedUp { for_us } => for_us,
            Take::Calls { .. } => 0,
        };
        assert!(for_us(9 * SECOND) <= 8 * SECOND);
    }

    #[test]
    fn turns_and_places_are_one_count() {
        let rate = CallRate::DEFAULT;
        let all = rate.take(None, 10_000, Ahead::Places, NOW);
        let next_us = NOW + 120 * SECOND;
        assert_eq!(all, Take::Calls { calls: 2400, first_us: NOW, next_us });
        let used_up = Take::UsedUp { for_us: 50_000 };
        assert_eq!(rate.take(Some(next_us), 1, Ahead::Places, NOW), used_up);
        let later = NOW + 50_000;
        let last = Take::Calls { calls: 1, first_us: next_us, next_us: next_us + 50_000 };
        assert_eq!(rate.take(Some(next_us), 1, Ahead::Places, later), last);
        let free = |kept_us| CallRate::next_free(kept_us, Ahead::Places, NOW);
        assert_eq!((free(None), free(Some(NOW - 1)), free(Some(next_us))), (NOW, NOW, next_us));
        assert_eq!(free(Some(next_us + 9 * SECOND)), NOW, "a clock that is wrong");
        let used_up = Take::UsedUp { for_us: 118 * SECOND + 50_000 };
        assert_eq!(rate.take(Some(next_us), 1, Ahead::TurnsAmongPlaces, NOW), used_up);
    }

    #[test]
    fn nobody_is_let_in_while_the_next_start_is_half_a_minute_away() {
        assert_eq!([None, Some(0), Some(29_999)].map(held_back_ms), [None; 3]);
        assert_eq!([30_000, 42_000].map(|ms| held_back_ms(Some(ms))), [Some(1), Some(12_000)]);
        let free = |kept: &[i64]| first_free_ms(kept.iter().map(|s| NOW + s * SECOND), NOW);
        assert_eq!((free(&[]), free(&[-61])), (None, None), "nobody starts payments there");
        assert_eq!(
            (free(&[-59]), free(&[90, -61]), free(&[90, 40])),
            (Some(0), Some(90_000), Some(40_000))
        );
        assert_eq!(free(&[500]), Some(0), "a clock that is wrong");
    }

    #[test]
    fn a_rate_has_bounds() {
        assert_eq!(CallRate::from_per_second(0), None);
        assert_eq!(CallRate::from_per_second(10_001), None);
        assert_eq!(CallRate::default().per_second(), 20);
        assert!(CallRate::from_per_second(10_000).unwrap().interval_us() > 0);
    }
}
