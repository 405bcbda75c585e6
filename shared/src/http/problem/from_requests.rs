//! The refusals of requests, callers, admissions and payment callbacks as problems.

use super::{Kind, Problem};
use crate::http::{checks, identity, routes, tokens};
use crate::providers::{EventDefect, SignatureDefect};
use engine::ports::StoreError;

impl From<checks::Refusal> for Problem {
    fn from(refusal: checks::Refusal) -> Self {
        use checks::Refusal;
        let detail = refusal.to_string();
        match refusal {
            Refusal::TooLarge(most) => Self::new(Kind::TooLarge, detail).with("most_bytes", most),
            Refusal::NotJson => Self::new(Kind::UnsupportedMediaType, detail),
            Refusal::Malformed(_) => Self::new(Kind::Malformed, detail),
            Refusal::Shape(_) => Self::new(Kind::Invalid, detail),
            Refusal::Invalid { at, rule } => Self::new(Kind::Invalid, rule).with("at", at),
            Refusal::Defects(defects) => Self::new(Kind::Invalid, detail).with("defects", defects),
            Refusal::NoSuchSale => Self::new(Kind::NotFound, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<routes::NoRoute> for Problem {
    fn from(refusal: routes::NoRoute) -> Self {
        Self::new(Kind::NotFound, refusal)
    }
}

impl From<identity::Unknown> for Problem {
    fn from(refusal: identity::Unknown) -> Self {
        match refusal {
            identity::Unknown::Buyer | identity::Unknown::Operator => {
                Self::new(Kind::NotAuthenticated, refusal)
            }
        }
    }
}

impl From<tokens::Defect> for Problem {
    fn from(defect: tokens::Defect) -> Self {
        use tokens::Defect;
        let problem = Self::new(Kind::NotAdmitted, &defect);
        match defect {
            Defect::TooManyTickets(most) => problem.with("most_tickets", most),
            Defect::Missing
            | Defect::Malformed
            | Defect::NotOurs
            | Defect::OtherSale
            | Defect::OtherBuyer
            | Defect::Expired
            | Defect::NumberClash => problem,
        }
    }
}

impl From<tokens::NoKey> for Problem {
    fn from(error: tokens::NoKey) -> Self {
        StoreError::Contract(error.to_string()).into()
    }
}

impl From<SignatureDefect> for Problem {
    fn from(defect: SignatureDefect) -> Self {
        use SignatureDefect as Defect;
        tracing::warn!(%defect, "a payment callback was not believed");
        match defect {
            Defect::UnknownProvider => Self::new(Kind::NotFound, defect),
            Defect::Missing | Defect::Malformed | Defect::OutsideTolerance | Defect::Mismatch => {
                Self::new(Kind::NotAuthenticated, defect)
            }
        }
    }
}

impl From<EventDefect> for Problem {
    fn from(defect: EventDefect) -> Self {
        tracing::error!(%defect, "a signed payment event cannot be read: money may be waiting");
        Self::new(Kind::Invalid, defect)
    }
}
