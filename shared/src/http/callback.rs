//! Accepts a payment provider's callback, by whichever route it came in.

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
use crate::runtime::metrics;
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::ours::Reported;
use engine::flows::pay::{self, Answered};
use engine::ports::{Cursors as _, Ports as _, StoreError};

/// The time that the decision about a capture may take. The rest of the request's time is enough to keep the capture in
/// the callback queue.
const MAX_DECIDE: Duration = Duration::from_secs(3);

/// The answer to an accepted callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallbackAnswer {
    /// The decision about the capture, as JSON.
    Reply(Answer<CallbackReply>),
    /// The text by which the provider knows that its callback arrived. After any other text it would call again.
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

/// The address from which API Gateway received a request; `None` if it says none. No header is read, because the
/// sender writes the headers.
#[must_use]
pub fn source(request: &Request) -> Option<IpAddr> {
    let Some(RequestContext::ApiGatewayV2(context)) = request.request_context_ref() else {
        return None;
    };
    context.http.source_ip.as_deref()?.parse().ok()
}

/// Verifies a callback's signature before any store is asked, and decides its capture. The answer is a success only
/// once the decision and everything that follows from it is done, or the capture is kept in the callback queue: after
/// any other answer the provider calls again.
///
/// # Errors
/// Returns the [`Problem`] that the provider gets as the answer.
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
        Some(reported) => decide(app, &reported, now).await?,
        None => {
            if providers.tells_of_more(&callback) {
                // The list is read within an hour all the same.
                let asked = app.ports.cursors().ask_to_read(callback.provider(), now).await;
                if let Err(error) = asked {
                    tracing::warn!(%error, "a provider's list is not read before its time");
                }
            }
            CallbackReply::Ignored
        }
    };
    Ok(match providers.acknowledgement(provider) {
        Some(text) => CallbackAnswer::Text(PlainText(text)),
        None => CallbackAnswer::Reply(Answer(reply)),
    })
}

/// Decides a capture within [`MAX_DECIDE`], or keeps it in the callback queue.
async fn decide(app: &App, reported: &Reported, now: Timestamp) -> Result<CallbackReply, Problem> {
    // By itself: each call on the way would copy it, which is longer than all else of a callback.
    let pay = Box::pin(pay::pay_reported(&app.ports, reported, now));
    let decision = timeout(MAX_DECIDE, pay).await;
    let decision = decision.unwrap_or_else(|late| Err(StoreError::Unknown(late.to_string())));
    let answered = pay::answer(&app.ports, reported, decision).await?;
    if answered == Answered::Ignored {
        metrics::capture_of_others();
    }
    Ok(answered.into())
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
