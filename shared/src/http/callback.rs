//! What is done with a payment provider's callback, whichever way it came in.

use std::net::IpAddr;
use std::time::Duration;

use lambda_http::request::RequestContext;
use lambda_http::{Body, Request, RequestExt as _, Response};
use tokio::time::timeout;

use crate::http::checks;
use crate::http::payment_reply::CallbackReply;
use crate::http::problem::Problem;
use crate::http::respond::{Answer, PlainText, Reply};
use crate::runtime::app::App;
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::Capture;
use engine::flows::pay;
use engine::ports::{Ports as _, StoreError};

/// Time that a decision may take. The rest of the request's time is enough to keep the capture in a queue.
const MAX_DECIDE: Duration = Duration::from_secs(3);

/// The answer to a callback that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackAnswer {
    /// What became of it.
    Reply(Answer<CallbackReply>),
    /// The text that the provider asks for, as it would call again for any other.
    Text(PlainText),
}

impl Reply for CallbackAnswer {
    fn into_response(self) -> Response<Body> {
        match self {
            Self::Reply(answer) => answer.into_response(),
            Self::Text(text) => text.into_response(),
        }
    }
}

/// The address that a request came from, as API Gateway saw it: a header can say anything.
#[must_use]
pub fn source(request: &Request) -> Option<IpAddr> {
    let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
        return None;
    };
    context.http.source_ip.as_deref()?.parse().ok()
}

/// Trusts a callback if its signature is valid, before any store is asked, and answers with success only
/// when all that follows from its capture is done, or when the capture is kept in a queue: until then the
/// provider calls again.
///
/// # Errors
/// The [`Problem`] that the provider is answered with.
pub async fn accept(
    app: &App,
    provider: &ProviderId,
    request: &Request,
    now: Timestamp,
) -> Result<CallbackAnswer, Problem> {
    checks::check_size(request, checks::MAX_BODY_BYTES)?;
    let providers = app.ports.provider();
    let callback = providers.verify(provider, request.headers(), request.body(), now)?;
    let reply = match providers.capture(&callback)? {
        Some(capture) => decide(app, &capture, now).await?,
        None => CallbackReply::Ignored,
    };
    Ok(match providers.acknowledgement(provider) {
        Some(text) => CallbackAnswer::Text(PlainText(text)),
        None => CallbackAnswer::Reply(Answer(reply)),
    })
}

/// Decides a capture, or keeps it.
async fn decide(app: &App, capture: &Capture, now: Timestamp) -> Result<CallbackReply, Problem> {
    let decision = timeout(MAX_DECIDE, pay::pay(&app.ports, capture, now)).await;
    let decision = decision.unwrap_or_else(|late| Err(StoreError::Unknown(late.to_string())));
    Ok(pay::answer(&app.ports, capture, decision).await?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::respond::MAX_ANSWER;
    use crate::sqs::{QueueConfig, QueueUrls};

    #[test]
    fn a_capture_that_takes_too_long_can_still_be_kept() {
        let queue = QueueConfig::new(QueueUrls::each(|_| String::new()));
        assert!(MAX_DECIDE + queue.call_timeout <= MAX_ANSWER);
    }
}
