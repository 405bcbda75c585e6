//! The refusals of flows, and the failures of stores, as problems.

use super::{Kind, Problem};
use crate::http::tokens;
use engine::domain::order::OrderState;
use engine::flows::{admit, cancel, publish, reserve};
use engine::ports::StoreError;

/// When to try again after a store failed, in milliseconds.
const STORE_RETRY_MS: i64 = 1000;
/// When to try again while a sale is being loaded, in milliseconds.
const LOAD_RETRY_MS: i64 = 2000;
/// When to try again after others were quicker, in milliseconds.
const CONTENDED_RETRY_MS: i64 = 1000;

impl From<StoreError> for Problem {
    /// What failed is logged here, once; the caller is told no more than whether to come back.
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Unavailable(_) => {
                tracing::warn!(%error, "a store did not answer");
                let detail = "nothing happened; try the same request again";
                Self::new(Kind::Unavailable, detail).retry_after_ms(STORE_RETRY_MS)
            }
            StoreError::Unknown(_) => {
                tracing::warn!(%error, "a store's answer was lost");
                let detail = "it may have happened; the same request again finds out";
                Self::new(Kind::OutcomeUnknown, detail).retry_after_ms(STORE_RETRY_MS)
            }
            StoreError::Contract(_) => {
                tracing::error!(%error, "a contract is broken");
                Self::new(Kind::Internal, "the fault is ours, and it is logged")
            }
        }
    }
}

impl From<admit::Refusal> for Problem {
    fn from(refusal: admit::Refusal) -> Self {
        use admit::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotOpen(opens_at) => {
                Self::new(Kind::SaleClosed, detail).with("opens_at", opens_at)
            }
            Refusal::SaleClosed => Self::new(Kind::SaleClosed, detail),
            Refusal::SoldOut => Self::new(Kind::SoldOut, detail),
            Refusal::Waiting { retry_ms } => {
                Self::new(Kind::Waiting, detail).retry_after_ms(retry_ms)
            }
            Refusal::TooFast { retry_ms } => {
                Self::new(Kind::TooManyRequests, detail).retry_after_ms(retry_ms)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<reserve::Refusal> for Problem {
    fn from(refusal: reserve::Refusal) -> Self {
        use reserve::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotLoaded => not_loaded(),
            Refusal::SaleClosed => Self::new(Kind::SaleClosed, detail),
            Refusal::LimitReached { remaining } => {
                Self::new(Kind::LimitReached, detail).with("remaining_allowance", remaining)
            }
            Refusal::SeatTaken(tier, seats) => {
                Self::new(Kind::SeatTaken, detail).with("tier", tier).with("seats", seats)
            }
            Refusal::SoldOut(tier) => Self::new(Kind::SoldOut, detail).with("tier", tier),
            Refusal::NoAdjacent(tier) => Self::new(Kind::NoAdjacent, detail).with("tier", tier),
            Refusal::TokenReused => Self::new(Kind::TokenReused, detail),
            Refusal::HoldExpired => Self::new(Kind::HoldExpired, detail),
            Refusal::Resolved(state) => resolved(state),
            Refusal::AttendeeTaken(attendee) => {
                Self::new(Kind::AttendeeTaken, detail).with("attendee", attendee)
            }
            Refusal::NumberClash => tokens::Defect::NumberClash.into(),
            Refusal::Contended => {
                Self::new(Kind::Unavailable, detail).retry_after_ms(CONTENDED_RETRY_MS)
            }
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<cancel::Refusal> for Problem {
    fn from(refusal: cancel::Refusal) -> Self {
        use cancel::Refusal;
        match refusal {
            Refusal::NotFound => no_such_order(),
            Refusal::Resolved(state) => resolved(state),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<publish::Refusal> for Problem {
    fn from(refusal: publish::Refusal) -> Self {
        use publish::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::SeatsDiffer => Self::new(Kind::SeatsDiffer, detail),
            Refusal::Busy => Self::new(Kind::Unavailable, detail).retry_after_ms(LOAD_RETRY_MS),
            Refusal::Store(error) => error.into(),
        }
    }
}

/// The sale is not in Redis yet, or no longer.
#[must_use]
pub fn not_loaded() -> Problem {
    Problem::new(Kind::NotLoaded, reserve::Refusal::NotLoaded).retry_after_ms(LOAD_RETRY_MS)
}

/// The caller has no such order; another buyer's looks the same.
#[must_use]
pub fn no_such_order() -> Problem {
    Problem::new(Kind::NotFound, cancel::Refusal::NotFound)
}

fn resolved(state: OrderState) -> Problem {
    Problem::new(Kind::OrderResolved, cancel::Refusal::Resolved(state)).with("state", state)
}
