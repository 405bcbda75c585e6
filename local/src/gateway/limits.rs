//! The limits of API Gateway and of Lambda behind it.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::Response;
use fake_limits::gateway::{FUNCTION_FAILED, FUNCTION_THROTTLED, Gateway, Share, fits, head_bytes};
use fake_limits::table::{
    GATEWAY_FAILED, GATEWAY_SECONDS, GATEWAY_THROTTLED, GATEWAY_TOO_LARGE, GATEWAY_UNAVAILABLE,
    Service,
};
use fake_limits::{Enforced, Now, Throttles};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use shared::http::routes::Throttle;

use super::Refusal;

/// The limits of a gateway.
#[derive(Debug)]
pub(super) struct Metered {
    rate: Mutex<Gateway>,
    throttles: Throttles,
    started: Instant,
}

impl Metered {
    /// Those of an account that nobody has used yet.
    pub(super) fn new(enforced: &Enforced) -> Self {
        let throttles = enforced.throttles.clone();
        Self { rate: Mutex::new(Gateway::new(Duration::ZERO)), throttles, started: Instant::now() }
    }

    /// Time limit of a request.
    pub(super) const fn timeout() -> Duration {
        GATEWAY_SECONDS.seconds()
    }

    /// Refuses a request that comes too early: for its route, if that has a share of its own, or for all
    /// routes. A path without a route counts among all.
    pub(super) fn admit(&self, throttle: Option<Throttle>) -> Result<(), Refusal> {
        self.admit_at(throttle, self.started.elapsed())
    }

    fn admit_at(&self, throttle: Option<Throttle>, now: Now) -> Result<(), Refusal> {
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        let share = throttle.map(|Throttle { rate_parameter, rate, burst }| Share {
            name: rate_parameter,
            rate,
            burst,
        });
        if rate.admit(share, now) { Ok(()) } else { Err(Refusal::Throttled) }
    }

    /// Refuses a request whose head is too large.
    pub(super) fn check(&self, parts: &http::request::Parts) -> Result<(), Refusal> {
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        let headers = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let bytes = head_bytes(&[parts.method.as_str(), target, "HTTP/1.1"], headers);
        if fits(bytes) { Ok(()) } else { Err(Refusal::HeadTooLarge) }
    }

    /// A refusal as API Gateway answers it; those that are no matter of limits are the local gateway's.
    pub(super) fn answer(&self, refusal: Refusal) -> Response {
        let (status, body, reason) = match refusal {
            Refusal::Throttled => (StatusCode::TOO_MANY_REQUESTS, GATEWAY_THROTTLED, "429: rate"),
            Refusal::TooSlow => {
                let reason = "503: no answer in time";
                (StatusCode::SERVICE_UNAVAILABLE, GATEWAY_UNAVAILABLE, reason)
            }
            Refusal::TooLarge(_most) => {
                (StatusCode::PAYLOAD_TOO_LARGE, GATEWAY_TOO_LARGE, "413: payload")
            }
            Refusal::HeadTooLarge => {
                let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                (status, GATEWAY_TOO_LARGE, "431: request line and headers")
            }
            Refusal::NoConcurrency => {
                (StatusCode::INTERNAL_SERVER_ERROR, GATEWAY_FAILED, FUNCTION_THROTTLED)
            }
            Refusal::Failed => (StatusCode::INTERNAL_SERVER_ERROR, GATEWAY_FAILED, FUNCTION_FAILED),
            other @ (Refusal::NoRoute
            | Refusal::OtherMethods(_)
            | Refusal::NoToken
            | Refusal::NotOperator
            | Refusal::NotSigned
            | Refusal::NoScope(_)
            | Refusal::BadRequest(_)) => return other.into_response(),
        };
        self.throttles.one(Service::ApiGateway.name(), reason);
        let mut response = Response::new(Body::from(body.text()));
        *response.status_mut() = status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use shared::http::routes::{ROUTES, RouteName};

    use super::*;

    fn parts(header: &str) -> http::request::Parts {
        let request = http::Request::get("/sales").header("authorization", header);
        request.body(()).unwrap().into_parts().0
    }

    /// Ten seconds in which 20,000 forged callbacks a second come to the API, 2,000 with a wrong key to the
    /// entry, and 50 true ones to each.
    #[test]
    fn a_flood_of_forged_callbacks_takes_nothing_of_the_entrys_share() {
        let share =
            |name: RouteName| ROUTES.iter().find(|row| row.name == name).map(|row| row.throttle);
        let [api, entry] = [RouteName::PaymentCallback, RouteName::TakeCallback].map(share);
        let metered = Metered::new(&Enforced::default());
        let mut refused = [0_u32; 2];
        for ms in 0..10_000 {
            let now = Duration::from_millis(ms);
            for _ in 0..20 {
                let _forged = metered.admit_at(api, now);
            }
            for _ in 0..2 {
                assert_eq!(metered.admit_at(None, now), Ok(()), "the account has room");
            }
            if ms % 20 == 0 {
                for (share, refused) in [api, entry].into_iter().zip(&mut refused) {
                    *refused += u32::from(metered.admit_at(share, now).is_err());
                }
            }
        }
        println!(
            "refused of 500 true callbacks: {} at the API, {} at the entry",
            refused[0], refused[1]
        );
        assert!(refused[0] > 400, "the control: the share of the route is the flood's");
        assert_eq!(refused[1], 0);
    }

    #[tokio::test]
    async fn refusals_are_those_of_the_service_and_are_counted() {
        let enforced = Enforced::default();
        let metered = Metered::new(&enforced);
        let admitted = (0..9000).take_while(|_| metered.admit(None).is_ok()).count();
        assert!((5000..9000).contains(&admitted), "{admitted}");
        let metered = Metered::new(&enforced);
        assert_eq!(metered.check(&parts(&"a".repeat(10_210))), Err(Refusal::HeadTooLarge));
        assert_eq!(metered.check(&parts(&"a".repeat(10_100))), Ok(()));
        for (refusal, status, body) in [
            (Refusal::Throttled, 429, r#"{"message":"Too Many Requests"}"#),
            (Refusal::TooSlow, 503, r#"{"message":"Service Unavailable"}"#),
            (Refusal::NoConcurrency, 500, r#"{"message":"Internal Server Error"}"#),
        ] {
            let response = metered.answer(refusal);
            assert_eq!(response.status(), status);
            assert_eq!(to_bytes(response.into_body(), 100).await.unwrap(), body);
        }
        assert_eq!(metered.answer(Refusal::NoRoute).status(), 404);
        let counted: u64 = enforced.throttles.rows().iter().map(|row| row.times).sum();
        assert_eq!(counted, 3);
    }
}
