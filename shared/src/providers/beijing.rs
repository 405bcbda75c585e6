//! Times as WeChat Pay and Alipay write them: those of Beijing, eight hours ahead of UTC all year, to the
//! second, rounded down.

use engine::domain::basics::money::Currency;
use engine::domain::basics::time::Timestamp;

const AHEAD_SECONDS: i64 = 8 * 60 * 60;
/// How far days begin there before those of UTC, in milliseconds.
pub(super) const AHEAD_MS: i64 = AHEAD_SECONDS * 1000;
/// Characters of a date and time to the second.
const TO_THE_SECOND: usize = "2027-01-15T16:00:00".len();

/// A time as RFC 3339, such as `2027-01-15T16:00:00+08:00`.
pub(super) fn rfc3339(at: Timestamp) -> String {
    format!("{}+08:00", to_the_second(at))
}

/// A time such as `2027-01-15 16:00:00`.
pub(super) fn plain(at: Timestamp) -> String {
    to_the_second(at).replace('T', " ")
}

fn to_the_second(at: Timestamp) -> String {
    let text = at.plus_seconds(AHEAD_SECONDS).to_string();
    // Shorter only for a moment beyond the calendar, which no attempt has.
    text.get(..TO_THE_SECOND).unwrap_or(&text).to_owned()
}

/// The only currency that is taken there.
pub(super) fn yuan() -> Vec<Currency> {
    Currency::new("CNY").into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_eight_hours_later_in_beijing() {
        let at: Timestamp = "2027-12-31T16:00:00.999Z".parse().unwrap();
        assert_eq!(rfc3339(at), "2028-01-01T00:00:00+08:00");
        assert_eq!(plain(at), "2028-01-01 00:00:00");
        assert_eq!(rfc3339(at).parse::<Timestamp>(), "2027-12-31T16:00:00Z".parse());
        assert_eq!(
            plain(Timestamp::from_ms(i64::MAX)),
            "9223372036854775807 ms".to_owned().split_off(0)[..19]
        );
    }
}
