//! How often pages ask for the room document: a tenth of the wait, within the bounds of the document's `poll`
//! (`pages/src/room/poll.ts`).

use engine::domain::admission::room::document::{MIN_POLL_SECONDS, shortest_poll};
use engine::domain::sale::serving::MAX_POLL_MS;

/// The shortest poll of who has a place, in seconds.
pub const SHORTEST: f64 = MIN_POLL_SECONDS as f64;
const LONGEST: f64 = MAX_POLL_MS as f64 / 1_000.0;
/// What counts as the wait where nobody knows it, in seconds.
const UNKNOWN_WAIT: f64 = 60.0;

/// Requests a second of so many who have joined, and do not know their places. `until`: the seconds until the draw
/// closes.
#[must_use]
pub fn before_the_draw(joined: u32, until: f64) -> f64 {
    let shortest = shortest_poll(joined.into(), false) as f64;
    f64::from(joined) / (until / 10.0).clamp(shortest, LONGEST)
}

/// Requests a second of so many whose wait nobody knows: they joined after the draw, or nobody is served.
#[must_use]
pub fn of_unknown_waits(people: f64) -> f64 {
    people / (UNKNOWN_WAIT / 10.0)
}

/// Requests a second of so many whose places are served one after the other, at a rate a second. `until`: the seconds
/// until the opening. The wait of a place is that, and the time of the places before it.
#[must_use]
pub fn of_places(waiting: f64, rate: f64, until: f64) -> f64 {
    if rate <= 0.0 {
        return of_unknown_waits(waiting);
    }
    // So many ask as often as they may, those behind them after a tenth of their wait, and the last ones as seldom.
    let within = |poll: f64| waiting.min((poll * 10.0 - until).max(0.0) * rate);
    let (soon, late) = (within(SHORTEST), within(LONGEST));
    let wait = |places: f64| until + places / rate;
    let between = if late > soon { 10.0 * rate * (wait(late) / wait(soon)).ln() } else { 0.0 };
    soon / SHORTEST + between + (waiting - late) / LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum over each place.
    fn one_by_one(waiting: u32, rate: f64, until: f64) -> f64 {
        let wait = |place: u32| until + f64::from(place) / rate;
        (0..waiting).map(|place| 1.0 / (wait(place) / 10.0).clamp(SHORTEST, LONGEST)).sum()
    }

    #[test]
    fn the_requests_of_places_are_the_sum_of_each() {
        for until in [0.0, 5.0, 20.0, 100.0, 599.0, 900.0] {
            for waiting in [10_u32, 3_000, 50_000, 400_000] {
                let (sum, all) =
                    (one_by_one(waiting, 200.0, until), of_places(waiting.into(), 200.0, until));
                assert!((sum / all - 1.0).abs() < 0.01, "{waiting}, {until} s: {sum}, {all}");
            }
        }
    }

    #[test]
    fn no_crowd_asks_more_often_before_the_draw_than_a_distribution_takes() {
        for joined in [1_000_u32, 100_000, 1_000_000, 5_000_000] {
            assert!(before_the_draw(joined, 0.0) <= 100_000.0, "{joined}");
        }
        assert_eq!(before_the_draw(1_000, 300.0), 1_000.0 / 30.0);
        assert_eq!(before_the_draw(100, 3_600.0), 100.0 / 60.0);
    }
}
