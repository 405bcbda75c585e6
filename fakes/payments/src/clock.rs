//! Times as WeChat Pay and Alipay write them: those of Beijing, eight hours ahead of UTC all year.

use engine::domain::basics::time::Timestamp;

const AHEAD_SECONDS: i64 = 8 * 60 * 60;
/// Characters of a date and time to the second.
const TO_THE_SECOND: usize = 19;

fn to_the_second(at: Timestamp) -> String {
    at.plus_seconds(AHEAD_SECONDS).to_string().chars().take(TO_THE_SECOND).collect()
}

/// A time as `2027-01-15T16:00:00+08:00`.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    format!("{}+08:00", to_the_second(at))
}

/// A time as `2027-01-15 16:00:00`.
pub(crate) fn plain(at: Timestamp) -> String {
    to_the_second(at).replace('T', " ")
}

/// The time that [`plain`] writes.
pub(crate) fn read_plain(text: &str) -> Option<Timestamp> {
    format!("{}+08:00", text.replace(' ', "T")).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_eight_hours_later_in_beijing() {
        let at: Timestamp = "2027-12-31T16:00:00.999Z".parse().unwrap();
        assert_eq!(rfc3339(at), "2028-01-01T00:00:00+08:00");
        assert_eq!(plain(at), "2028-01-01 00:00:00");
        assert_eq!(read_plain(&plain(at)), "2027-12-31T16:00:00Z".parse().ok());
        assert_eq!(read_plain("tomorrow"), None);
    }
}
