//! The edge: the distribution in front of the API, or the local gateway in its place.
//!
//! The edge adds a secret to each request. A function that knows the secret refuses the requests of buyers and of
//! anyone that lack it, before it looks at anything else. It also believes the sender's address in a request that has
//! the secret.

use std::net::IpAddr;

use futures_util::future::{Either, lazy};
use lambda_http::{Body, Request, Response};

use crate::http::callback::source;
use crate::http::respond::refuse;
use crate::http::routes::{Access, Row};
use crate::runtime::app::App;
use crate::runtime::edge::EdgeSecrets;
use crate::runtime::functions::Function;

/// The header in which the edge sends its secret.
pub const SECRET_HEADER: &str = "x-onsale-edge";
/// The header in which the edge puts the sender's address: an IP address, without a port.
pub const VIEWER_HEADER: &str = "x-onsale-viewer";

/// The refusal of a request that had to come through the edge, and did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the API answers at the address of its pages, below /api")]
pub struct PastTheEdge;

/// Answers a request by `work`, or refuses the request before `work` begins if it had to come through the edge and did
/// not. Every function of the API answers its requests with this.
pub fn answer(
    app: &App,
    function: Function,
    request: &Request,
    work: impl Future<Output = Response<Body>>,
) -> impl Future<Output = Response<Body>> {
    let answered = match check(&app.edge, request) {
        Ok(()) => Either::Left(work),
        // The refusal is made when it is awaited, so that the metrics count it.
        Err(past) => Either::Right(lazy(move |_| refuse(past))),
    };
    app.metrics.of(function, answered)
}

/// Refuses a request that had to come through the edge and has none of its secrets.
///
/// # Errors
/// Returns [`PastTheEdge`].
pub fn check(edge: &EdgeSecrets, request: &Request) -> Result<(), PastTheEdge> {
    if edge.is_empty() || is_through(edge, request) {
        return Ok(());
    }
    let needs_edge = Row::of(request).is_some_and(|row| row.access.is_through_the_edge());
    if needs_edge { Err(PastTheEdge) } else { Ok(()) }
}

/// The address of the sender of a request; `None` if it is unknown. API Gateway sees only the edge's address, so the
/// edge sends the sender's in [`VIEWER_HEADER`]. The header counts only together with the secret: without the secret
/// anybody could write it, and API Gateway's address counts.
#[must_use]
pub fn viewer(edge: &EdgeSecrets, request: &Request) -> Option<IpAddr> {
    if !is_through(edge, request) {
        return source(request);
    }
    request.headers().get(VIEWER_HEADER)?.to_str().ok()?.parse().ok()
}

fn is_through(edge: &EdgeSecrets, request: &Request) -> bool {
    request.headers().get(SECRET_HEADER).is_some_and(|secret| edge.has(secret.as_bytes()))
}

impl Access {
    /// True if the requests of these callers must come through the edge, where one is configured. Operators with an
    /// IAM identity do not, because their signature does not survive the edge; payment providers have an entry of
    /// their own.
    #[must_use]
    pub const fn is_through_the_edge(self) -> bool {
        match self {
            Self::Anyone
            | Self::Buyer
            | Self::Watch
            | Self::Operate
            | Self::Refund
            | Self::Scan => true,
            Self::Operator | Self::Provider | Self::ProviderWithKey => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::routes::ROUTES;

    const NEW: &str = "0123456789abcdefghijklmnopqrstuv";
    const OLD: &str = "the-secret-that-is-being-replaced";

    fn secrets() -> EdgeSecrets {
        EdgeSecrets::new(vec![NEW.to_owned(), OLD.to_owned()]).unwrap()
    }

    fn request(method: &str, path: &str, secret: &str, viewer: &str) -> Request {
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
            "headers": { SECRET_HEADER: secret, VIEWER_HEADER: viewer }, "isBase64Encoded": false,
            "requestContext": {
                "stage": "$default", "timeEpoch": 0,
                "http": { "method": method, "path": path, "sourceIp": "198.51.100.1" }
            }
        });
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn each_route_by_each_way_in() {
        let joined = format!("{NEW},{OLD}");
        for row in ROUTES {
            let path = row.path.replace(['{', '}'], "");
            let check =
                |edge: &EdgeSecrets, secret| check(edge, &request(row.method, &path, secret, ""));
            for secret in [NEW, OLD] {
                assert_eq!(check(&secrets(), secret), Ok(()), "{}", row.key);
            }
            let past = match row.access {
                Access::Anyone
                | Access::Buyer
                | Access::Watch
                | Access::Operate
                | Access::Refund
                | Access::Scan => Err(PastTheEdge),
                Access::Operator | Access::Provider | Access::ProviderWithKey => Ok(()),
            };
            for secret in ["", "invented", &NEW.to_uppercase(), &joined] {
                assert_eq!(check(&secrets(), secret), past, "{} {secret}", row.key);
                assert_eq!(check(&EdgeSecrets::default(), secret), Ok(()), "{}", row.key);
            }
        }
        assert_eq!(check(&secrets(), &request("GET", "/nothing", "", "")), Ok(()));
    }

    #[test]
    fn only_the_edge_says_where_a_request_came_from() {
        let viewer = |secret, address| {
            let viewer = viewer(&secrets(), &request("GET", "/sales", secret, address));
            viewer.map(|address| address.to_string())
        };
        let is = |address: &str| Some(address.to_owned());
        assert_eq!(viewer(NEW, "203.0.113.7"), is("203.0.113.7"));
        assert_eq!(viewer(OLD, "2001:db8::7"), is("2001:db8::7"));
        assert_eq!(viewer("invented", "203.0.113.7"), is("198.51.100.1"));
        assert_eq!(viewer("", "203.0.113.7"), is("198.51.100.1"));
        // The edge's own address is everybody's.
        for unreadable in ["", "203.0.113.7:46532", "203.0.113.7,192.0.2.1", "nonsense"] {
            assert_eq!(viewer(NEW, unreadable), None, "{unreadable}");
        }
        let none = EdgeSecrets::default();
        let request = request("GET", "/sales", NEW, "203.0.113.7");
        assert_eq!(super::viewer(&none, &request).unwrap().to_string(), "198.51.100.1");
    }
}
