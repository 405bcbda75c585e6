//! Challenges: small tasks that a sale asks of a buyer. A person does one, a bot must do thousands.
//!
//! This module has only the rules: how hard a challenge is at the moment, and which answers count as the same. The
//! sale's [settings](crate::domain::sale::challenge) choose its challenges. The adapters that make and check challenges
//! are in `shared::challenges`.

use crate::domain::sale::challenge::{ChallengeSettings, MAX_PROOF_OF_WORK_MS};

/// Seconds for which a challenge may be answered.
pub const VALID_SECONDS: u32 = 300;

/// Doublings after which a proof of work is as hard as it may be, however easy it was: 100 ms are 3,200.
const MAX_DOUBLINGS: u8 = 5;

/// SHA-256 hashes a second of a slow phone, with all of its workers: a Samsung Galaxy A11 makes the
/// 3,276,800 that are expected of 50 challenges of 16 bits in 4.583 seconds, which is 715,000.
/// Source: <https://capjs.js.org/guide/benchmark.html>
pub const SLOW_PHONE_HASHES_PER_SECOND: u32 = 700_000;
/// Hashes of one iteration of PBKDF2 with HMAC-SHA256: one inner, one outer (RFC 8018, section 5.2).
const HASHES_PER_ITERATION: u32 = 2;
/// Iterations of one attempt at a proof of work. Making a challenge costs us one attempt; fewer would
/// make the browser's own cost of a call count for more than the hashes.
pub const ITERATIONS_PER_ATTEMPT: u32 = 1000;

/// How hard challenges are at the moment, in percent: 0 while nobody asks, 100 while as many ask a
/// second as the gate admits at most; and by how many doublings harder for this buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    percent: u32,
    doublings: u8,
}

impl Pressure {
    /// The pressure of this many requests a second at a gate that admits `max_per_second`.
    #[must_use]
    pub fn from_rate(requests_per_second: u64, max_per_second: u32) -> Self {
        let percent = requests_per_second.saturating_mul(100) / u64::from(max_per_second.max(1));
        Self { percent: u32::try_from(percent.min(100)).unwrap_or(100), doublings: 0 }
    }

    /// The same for a buyer whose challenge is harder by this many doublings.
    #[must_use]
    pub fn harder(self, doublings: u8) -> Self {
        Self { doublings, ..self }
    }

    /// In percent, 0 to 100.
    #[must_use]
    pub const fn percent(self) -> u32 {
        self.percent
    }
}

/// The attempts that a proof of work takes: some number from `min` to `max`, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempts {
    /// Fewest attempts, at least one.
    pub min: u32,
    pub max: u32,
}

impl Attempts {
    /// The attempts that keep a slow phone at work for the time that a sale asks for under this
    /// pressure, and half of them at the least. Never more than [`MAX_PROOF_OF_WORK_MS`].
    #[must_use]
    pub fn new(settings: &ChallengeSettings, pressure: Pressure) -> Self {
        let easiest = u64::from(settings.easiest_ms);
        let added = u64::from(settings.hardest_ms.saturating_sub(settings.easiest_ms));
        let ms = easiest + added * u64::from(pressure.percent()) / 100;
        let factor = 1_u64 << pressure.doublings.min(MAX_DOUBLINGS);
        let ms = (ms * factor).min(u64::from(MAX_PROOF_OF_WORK_MS));
        let hashes = ms * u64::from(SLOW_PHONE_HASHES_PER_SECOND) / 1000;
        let attempts = hashes / u64::from(HASHES_PER_ITERATION * ITERATIONS_PER_ATTEMPT);
        let max = u32::try_from(attempts).unwrap_or(u32::MAX).max(2);
        Self { min: max / 2, max }
    }
}

/// Characters of an image: five, and up to seven under pressure. A doubling is a character.
#[must_use]
pub fn image_characters(pressure: Pressure) -> u8 {
    let characters: u8 = match pressure.percent() {
        0..=33 => 5,
        34..=66 => 6,
        _ => 7,
    };
    characters.saturating_add(pressure.doublings).min(7)
}

/// An answer as it is compared: without case, and without blanks but one between words.
#[must_use]
pub fn normalised(answer: &str) -> String {
    let words: Vec<String> = answer.split_whitespace().map(str::to_lowercase).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn settings(file: Value) -> ChallengeSettings {
        serde_json::from_value(file).unwrap()
    }

    fn proof_of_work() -> Value {
        json!({ "at": ["visit"], "kind": "proof_of_work" })
    }

    #[test]
    fn pressure_rises_with_the_rate_to_that_of_the_gate() {
        let percent = |rate: u64, most: u32| Pressure::from_rate(rate, most).percent();
        assert_eq!(
            [0, 1, 500, 999, 1000, 9999].map(|rate| percent(rate, 1000)),
            [0, 0, 50, 99, 100, 100]
        );
        assert_eq!(percent(u64::MAX, u32::MAX), 100);
        assert_eq!((percent(0, 0), percent(1, 0)), (0, 100));
    }

    #[test]
    fn work_rises_with_the_pressure_and_never_beyond_three_seconds_of_a_slow_phone() {
        let attempts = |file: &ChallengeSettings, rate: u64| {
            Attempts::new(file, Pressure::from_rate(rate, 100))
        };
        let default = settings(proof_of_work());
        // 350 iterations a millisecond, a thousand an attempt.
        assert_eq!(attempts(&default, 0), Attempts { min: 87, max: 175 });
        assert_eq!(attempts(&default, 50), Attempts { min: 306, max: 612 });
        let hardest = Attempts { min: 525, max: 1050 };
        assert_eq!(attempts(&default, 100), hardest);
        let harder =
            |doublings| Attempts::new(&default, Pressure::from_rate(0, 100).harder(doublings)).max;
        assert_eq!([0, 1, 2, 3, 255].map(harder), [175, 350, 700, 1050, 1050]);
        let mut last = 0;
        for rate in 0..=110 {
            let Attempts { min, max } = attempts(&default, rate);
            assert!(min >= 1 && min <= max && max >= last, "{rate}");
            last = max;
        }
        // No file says so, but nothing depends on it.
        let unbounded = ChallengeSettings { hardest_ms: u32::MAX, ..default.clone() };
        assert_eq!(attempts(&unbounded, 100), hardest);
        let reversed = ChallengeSettings { easiest_ms: 100, hardest_ms: 0, ..default };
        assert_eq!(attempts(&reversed, 100), Attempts { min: 17, max: 35 });
    }

    #[test]
    fn images_have_five_to_seven_characters() {
        let characters = |rate| image_characters(Pressure::from_rate(rate, 100));
        assert_eq!([0, 33, 34, 66, 67, 1000].map(characters), [5, 5, 6, 6, 7, 7]);
        let harder = |doublings| image_characters(Pressure::from_rate(0, 100).harder(doublings));
        assert_eq!([0, 1, 2, 3, 255].map(harder), [5, 6, 7, 7, 7]);
    }

    #[test]
    fn case_and_blanks_of_an_answer_do_not_matter() {
        for same in ["old quay", " Old  QUAY\n", "OLD\tquay"] {
            assert_eq!(normalised(same), "old quay");
        }
        assert_ne!(normalised("oldquay"), normalised("old quay"));
        assert_eq!(normalised("ÉCLAIR"), "éclair");
    }
}
