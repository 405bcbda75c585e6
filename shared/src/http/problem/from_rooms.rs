//! The refusals of a waiting room at the gate, and of the beacon's round, as problems.

use super::{Kind, Problem};
use crate::http::place_token;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::{bring, enter};

/// Delay before asking again at a room that is paused, in milliseconds.
const PAUSED_RETRY_MS: i64 = 10_000;
/// Least and most delay before asking again with a place that is not due, in milliseconds. Clients wait until the room
/// document shows their place as due, and then ask once. A gate may learn of a turn a second later than the document,
/// so it may refuse a client that comes at once: then a second's delay is enough.
const NOT_DUE_RETRY_MS: (i64, i64) = (1_000, 10_000);
/// What each place that is served before adds to that delay, in milliseconds: a room serves 200 a second by default.
const NOT_DUE_RETRY_MS_EACH: i64 = 5;

impl From<enter::Refusal> for Problem {
    fn from(refusal: enter::Refusal) -> Self {
        use enter::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::Missing => Self::new(Kind::PlaceRequired, detail),
            Refusal::Paused => Self::new(Kind::RoomPaused, detail).retry_after_ms(PAUSED_RETRY_MS),
            Refusal::Closed => Self::new(Kind::SaleClosed, detail),
            Refusal::SoldOut => Self::new(Kind::SoldOut, detail),
            Refusal::UnknownGroup | Refusal::OtherPlace | Refusal::NotMember => {
                Self::new(Kind::PlaceInvalid, detail)
            }
            Refusal::NotDue { ahead } => Self::new(Kind::PlaceNotDue, detail)
                .with("ahead", ahead)
                .retry_after_ms(not_due_retry_ms(ahead)),
            Refusal::RunOut => Self::new(Kind::PlaceRunOut, detail),
            Refusal::Over => Self::new(Kind::VisitOver, detail),
            Refusal::TooManyAttempts => Self::new(Kind::TooManyAttempts, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<place_token::Defect> for Problem {
    fn from(defect: place_token::Defect) -> Self {
        use place_token::Defect;
        match defect {
            Defect::Malformed | Defect::NotOurs | Defect::OtherSale | Defect::OtherBuyer => {
                Self::new(Kind::PlaceInvalid, defect)
            }
        }
    }
}

impl From<bring::Refusal> for Problem {
    fn from(refusal: bring::Refusal) -> Self {
        use bring::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NoRoom => Self::new(Kind::NotFound, detail),
            Refusal::NotAwaited | Refusal::Forged => Self::new(Kind::RoundRefused, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

/// Delay before asking again with a place, from the number of places that are served before it, in milliseconds.
fn not_due_retry_ms(ahead: u32) -> i64 {
    let (least, most) = NOT_DUE_RETRY_MS;
    (least + i64::from(ahead) * NOT_DUE_RETRY_MS_EACH).min(most)
}

/// The sale's slot has as many requests in this second as it may have; there may be fewer after `retry_ms`
/// milliseconds.
#[must_use]
pub fn slot_is_busy(retry_ms: u64) -> Problem {
    let detail = "the sale has as many requests as it may have in this second";
    Problem::new(Kind::TooManyRequests, detail)
        .retry_after_ms(i64::try_from(retry_ms).unwrap_or(i64::MAX))
}

/// The problem that the buyer has tried too many codes, and may try others from `until` on. The reply does not tell which of
/// them was good.
#[must_use]
pub fn too_many_codes(until: Timestamp) -> Problem {
    let detail = "you have tried as many different codes as one may in a day";
    Problem::new(Kind::TooManyGuesses, detail).with("until", until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ports::StoreError;

    #[test]
    fn each_refusal_at_the_gate_has_its_problem() {
        use enter::Refusal;
        let unavailable = StoreError::Unavailable("gone".to_owned());
        for (refusal, status, slug, retry) in [
            (Refusal::Missing, 403, "place-required", None),
            (Refusal::Paused, 503, "room-paused", Some(10)),
            (Refusal::Closed, 403, "sale-closed", None),
            (Refusal::SoldOut, 409, "sold-out", None),
            (Refusal::UnknownGroup, 403, "place-invalid", None),
            (Refusal::OtherPlace, 403, "place-invalid", None),
            (Refusal::NotMember, 403, "place-invalid", None),
            (Refusal::NotDue { ahead: 0 }, 429, "place-not-due", Some(1)),
            (Refusal::NotDue { ahead: 1_000 }, 429, "place-not-due", Some(6)),
            (Refusal::NotDue { ahead: u32::MAX }, 429, "place-not-due", Some(10)),
            (Refusal::RunOut, 410, "place-run-out", None),
            (Refusal::Over, 410, "visit-over", None),
            (Refusal::TooManyAttempts, 403, "too-many-attempts", None),
            (Refusal::Store(unavailable), 503, "unavailable", Some(1)),
        ] {
            let problem = Problem::from(refusal.clone());
            let shown = (problem.kind().status().as_u16(), problem.kind().slug());
            assert_eq!(
                (shown, problem.retry_after_seconds()),
                ((status, slug), retry),
                "{refusal}"
            );
        }
        for defect in [
            place_token::Defect::Malformed,
            place_token::Defect::NotOurs,
            place_token::Defect::OtherSale,
            place_token::Defect::OtherBuyer,
        ] {
            assert_eq!(Problem::from(defect).kind(), Kind::PlaceInvalid);
        }
        let busy = slot_is_busy(2_001);
        assert_eq!((busy.kind(), busy.retry_after_seconds()), (Kind::TooManyRequests, Some(3)));
        assert_eq!(too_many_codes(Timestamp::from_ms(0)).kind(), Kind::TooManyGuesses);
        for (refusal, kind) in [
            (bring::Refusal::NoRoom, Kind::NotFound),
            (bring::Refusal::NotAwaited, Kind::RoundRefused),
            (bring::Refusal::Forged, Kind::RoundRefused),
        ] {
            assert_eq!(Problem::from(refusal).kind(), kind);
        }
    }
}
