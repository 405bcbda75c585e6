//! The refusals of requests, callers, admissions and payment callbacks as problems.

use super::{Kind, Problem};
use crate::http::{checks, edge, identity, routes, tokens};
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
            Refusal::NoSuchSale
            | Refusal::NoSuchMap
            | Refusal::NoSuchAttachment
            | Refusal::NoRoom
            | Refusal::NotDrawn => Self::new(Kind::NotFound, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<routes::NoRoute> for Problem {
    fn from(refusal: routes::NoRoute) -> Self {
        Self::new(Kind::NotFound, refusal)
    }
}

impl From<edge::PastTheEdge> for Problem {
    fn from(refusal: edge::PastTheEdge) -> Self {
        Self::new(Kind::NotThroughTheEdge, refusal)
    }
}

impl From<identity::Unknown> for Problem {
    fn from(refusal: identity::Unknown) -> Self {
        match refusal {
            identity::Unknown::Buyer
            | identity::Unknown::Operator
            | identity::Unknown::OtherIssuer => Self::new(Kind::NotAuthenticated, refusal),
            identity::Unknown::Scope(_) => Self::new(Kind::NotPermitted, refusal),
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
            | Defect::NotYet
            | Defect::Expired
            | Defect::Replaced
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
        tracing::warn!(%defect, "a payment callback is not authentic");
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::shown;
    use super::*;
    use crate::http::identity::Scope;
    use engine::domain::sale::Defect;

    #[test]
    fn every_refusal_of_a_request() {
        let none = || json!({});
        let defects = serde_json::from_value::<engine::domain::sale::SaleFile>(json!({
            "sale": "s", "title": "", "currency": "EUR", "limit_per_buyer": 1,
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2027-01-01T00:00:00Z",
            "pay_window_seconds": 60, "tiers": []
        }));
        let defects: Vec<Defect> = engine::domain::sale::Sale::new(defects.unwrap()).unwrap_err();
        let count = defects.len();
        let table = [
            (
                shown(checks::Refusal::TooLarge(9)),
                (413, "too-large", None, json!({ "most_bytes": 9 })),
            ),
            (shown(checks::Refusal::NotJson), (415, "unsupported-media-type", None, none())),
            (shown(checks::Refusal::Malformed("x".into())), (400, "malformed", None, none())),
            (shown(checks::Refusal::Shape("x".into())), (422, "invalid", None, none())),
            (
                shown(checks::Refusal::invalid("lines[0]", "must be")),
                (422, "invalid", None, json!({ "at": "lines[0]" })),
            ),
            (shown(checks::Refusal::NoSuchSale), (404, "not-found", None, none())),
            (shown(checks::Refusal::NoSuchAttachment), (404, "not-found", None, none())),
            (shown(checks::Refusal::NoSuchMap), (404, "not-found", None, none())),
            (shown(routes::NoRoute), (404, "not-found", None, none())),
            (shown(edge::PastTheEdge), (403, "not-through-the-edge", None, none())),
            (shown(identity::Unknown::Buyer), (401, "not-authenticated", None, none())),
            (shown(identity::Unknown::Operator), (401, "not-authenticated", None, none())),
            (shown(identity::Unknown::OtherIssuer), (401, "not-authenticated", None, none())),
            (shown(identity::Unknown::Scope(Scope::Watch)), (403, "not-permitted", None, none())),
            (shown(tokens::Defect::Missing), (403, "not-admitted", None, none())),
            (shown(tokens::Defect::Malformed), (403, "not-admitted", None, none())),
            (shown(tokens::Defect::NotOurs), (403, "not-admitted", None, none())),
            (shown(tokens::Defect::OtherSale), (403, "not-admitted", None, none())),
            (shown(tokens::Defect::OtherBuyer), (403, "not-admitted", None, none())),
            (shown(tokens::Defect::Expired), (403, "not-admitted", None, none())),
            (
                shown(tokens::Defect::TooManyTickets(2)),
                (403, "not-admitted", None, json!({ "most_tickets": 2 })),
            ),
            (shown(tokens::NoKey), (500, "internal", None, none())),
            (shown(SignatureDefect::UnknownProvider), (404, "not-found", None, none())),
            (shown(SignatureDefect::Missing), (401, "not-authenticated", None, none())),
            (shown(SignatureDefect::Malformed), (401, "not-authenticated", None, none())),
            (shown(SignatureDefect::OutsideTolerance), (401, "not-authenticated", None, none())),
            (shown(SignatureDefect::Mismatch), (401, "not-authenticated", None, none())),
        ];
        for (found, expected) in table {
            assert_eq!(found, expected);
        }
        let (status, slug, _, members) = shown(checks::Refusal::Defects(defects));
        assert_eq!((status, slug), (422, "invalid"));
        assert_eq!(members["defects"].as_array().map(Vec::len), Some(count));
        assert_eq!(members["defects"][0]["at"], json!("title"));
    }
}
