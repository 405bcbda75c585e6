//! Refusals of the gateway, before any function is invoked.
//!
//! API Gateway answers `{"message": …}` here. The local gateway answers with problem documents, as the
//! functions do. One answer is neither: input that is not HTTP never gets here, and hyper answers it
//! with a bare 400, 414 or 431.

use axum::response::Response;
use http::HeaderValue;
use http::header::{ALLOW, WWW_AUTHENTICATE};
use shared::http::identity::Scope;
use shared::http::problem::{Kind, Problem};
use shared::http::respond::refuse;

use super::event;

/// Milliseconds to wait before a request that took too long is repeated.
const RETRY_MS: i64 = 1000;

/// Why no function is invoked, or none has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is no such path.
    NoRoute,
    /// The path is for these methods only.
    OtherMethods(Vec<&'static str>),
    /// There is no valid bearer token.
    NoToken,
    /// A buyer calls a route for operators.
    NotOperator,
    /// A route for signed requests is called through the edge, which no signature survives.
    NotSigned,
    /// The operator's token does not have the scope of the route.
    NoScope(Scope),
    /// The body is larger than this many bytes.
    TooLarge(usize),
    /// The request cannot be read.
    BadRequest(&'static str),
    Failed,
    /// The function did not answer in time.
    TooSlow,
    /// More requests come than the gateway takes.
    Throttled,
    /// The request line and the headers are too large.
    HeadTooLarge,
    /// No instance of the function is free, and there is no new one.
    NoConcurrency,
}

impl Refusal {
    /// The HTTP response, a problem document.
    pub(super) fn into_response(self) -> Response {
        match self {
            Self::NoRoute => problem(Problem::new(Kind::NotFound, "There is nothing here.")),
            Self::OtherMethods(methods) => {
                let methods = methods.join(", ");
                let detail = format!("This path is for {methods}.");
                let mut response = problem(Problem::new(Kind::MethodNotAllowed, detail));
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
                problem(Problem::new(Kind::NotPermitted, detail))
            }
            Self::NotSigned => {
                let detail = "A signature does not survive the edge: programs of operators call the API at its \
                              own address, without /api.";
                problem(Problem::new(Kind::NotPermitted, detail))
            }
            Self::NoScope(scope) => {
                let detail = format!("The token must have the scope {}.", scope.as_str());
                problem(Problem::new(Kind::NotPermitted, detail))
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
            // Limits have answers of their own; without limits none of these is.
            Self::Throttled | Self::HeadTooLarge | Self::NoConcurrency => {
                let detail = "there is too much to do; the same request again, later";
                problem(Problem::new(Kind::Unavailable, detail).retry_after_ms(RETRY_MS))
            }
            Self::TooSlow => {
                let detail = "it may have happened; the same request again finds out";
                problem(Problem::new(Kind::OutcomeUnknown, detail).retry_after_ms(RETRY_MS))
            }
        }
    }
}

fn problem(problem: Problem) -> Response {
    event::answer(refuse(problem))
}
