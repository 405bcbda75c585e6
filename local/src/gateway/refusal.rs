//! What the gateway refuses before any function is invoked.
//!
//! API Gateway answers `{"message": …}` here. The local gateway answers with the problem documents
//! of the functions where one of their types says the same, and with type `about:blank` (RFC 9457,
//! section 4.2.1) where only the status speaks.

use axum::response::Response;
use http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use shared::http::problem::{Kind, Problem};
use shared::http::respond::refuse;

use super::event;

/// When to come back after a request that took too long, in milliseconds.
const RETRY_MS: i64 = 1000;

/// Why no function answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no such path.
    NoRoute,
    /// The path is for these methods only.
    OtherMethods(Vec<&'static str>),
    /// There is no bearer token, or none that is good.
    NoToken,
    /// A buyer asks for what operators may do.
    NotOperator,
    /// The body is larger than so many bytes.
    TooLarge(usize),
    /// The request cannot be read.
    BadRequest(&'static str),
    /// The function failed.
    Failed,
    /// The function did not answer in time.
    TooSlow,
}

impl Refusal {
    /// The answer.
    pub(super) fn into_response(self) -> Response {
        match self {
            Self::NoRoute => problem(Problem::new(Kind::NotFound, "There is nothing here.")),
            Self::OtherMethods(methods) => {
                let methods = methods.join(", ");
                let detail = format!("This path is for {methods}.");
                let mut response = blank(StatusCode::METHOD_NOT_ALLOWED, &detail);
                if let Ok(methods) = HeaderValue::from_str(&methods) {
                    response.headers_mut().insert(ALLOW, methods);
                }
                response
            }
            Self::NoToken => {
                let detail = "A bearer token is needed, and one that this engine issued and that has \
                              not run out; onsale token prints one.";
                let mut response = problem(Problem::new(Kind::NotAuthenticated, detail));
                let bearer = HeaderValue::from_static("Bearer");
                response.headers_mut().insert(WWW_AUTHENTICATE, bearer);
                response
            }
            Self::NotOperator => {
                let detail =
                    "Only an operator may do this; onsale token --operator prints a token.";
                blank(StatusCode::FORBIDDEN, detail)
            }
            Self::TooLarge(most) => {
                let detail = format!("the body must have at most {most} bytes");
                problem(Problem::new(Kind::TooLarge, detail).with("most_bytes", most))
            }
            Self::BadRequest(detail) => problem(Problem::new(Kind::Malformed, detail)),
            Self::Failed => {
                let detail = "the fault is ours, and it is logged";
                problem(Problem::new(Kind::Internal, detail))
            }
            Self::TooSlow => {
                let detail = "it may have happened; the same request again finds out";
                problem(Problem::new(Kind::OutcomeUnknown, detail).retry_after_ms(RETRY_MS))
            }
        }
    }
}

/// A problem that functions have as well.
fn problem(problem: Problem) -> Response {
    event::answer(refuse(problem))
}

/// A problem that only a gateway has.
fn blank(status: StatusCode, detail: &str) -> Response {
    let document = serde_json::json!({
        "type": "about:blank",
        "title": status.canonical_reason(),
        "status": status.as_u16(),
        "detail": detail,
    });
    let mut response = Response::new(axum::body::Body::from(document.to_string()));
    *response.status_mut() = status;
    let problem = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert(CONTENT_TYPE, problem);
    response
}
