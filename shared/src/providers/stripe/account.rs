//! One provider's account: requests with its key, time limits, and what each answer means.

use std::fmt;
use std::time::Duration;

use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::display::DisplayErrorContext;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Bytes;
use serde::de::DeserializeOwned;

use super::forms::{self, List, PaymentIntent, Refund, Refusal, SearchPage};
use crate::runtime::config::ProviderApi;
use crate::runtime::connections::Https;
use crate::runtime::connections::https::Broken;
use engine::domain::ids::ProviderId;
use engine::domain::number::OrderNumber;
use engine::domain::order::{Capture, PaymentRecord};
use engine::domain::refund::RefundReply;
use engine::ports::{StoreError, Stored};

/// Time limit of one request. A refund takes two, which a queue function has ample time for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Address of the API unless configured.
const URL: &str = "https://api.stripe.com";
/// Most pages of one order's payments: more would be no order's.
const MAX_PAGES: usize = 10;

/// One provider's account. Clones share their connections.
pub(super) struct Account {
    provider: ProviderId,
    url: String,
    authorization: HeaderValue,
    https: Https,
}

/// An answer: its status and its body.
struct Answer {
    status: StatusCode,
    body: Bytes,
}

impl Account {
    pub(super) fn new(api: &ProviderApi, https: Https) -> Stored<Self> {
        let broken =
            |why: String| StoreError::Contract(format!("provider {}: {why}", api.provider));
        // Text before the key must not be joined with it by `format!`: it would be copied.
        let bearer = [b"Bearer ".as_slice(), &api.key.0].concat();
        let mut authorization = HeaderValue::from_bytes(&bearer)
            .map_err(|_| broken("its key cannot be a header".to_owned()))?;
        authorization.set_sensitive(true);
        let url = api.url.as_deref().unwrap_or(URL).trim_end_matches('/').to_owned();
        Ok(Self { provider: api.provider.clone(), url, authorization, https })
    }

    /// Every capture of an order that the account finds.
    pub(super) async fn captures(&self, order: OrderNumber) -> Stored<Vec<Capture>> {
        let mut payments = Vec::new();
        let mut next = None;
        for _ in 0..MAX_PAGES {
            let path = forms::search_path(order, next.as_deref());
            let page: SearchPage<PaymentIntent> = self.read(&path).await?;
            payments.extend(page.data);
            next = page.next_page;
            if next.is_none() {
                return Ok(forms::captures(&self.provider, order, payments));
            }
        }
        Err(StoreError::Contract(format!("order {order} has over {MAX_PAGES} pages of payments")))
    }

    /// Sends a payment back, or says how far that is.
    ///
    /// The list is asked first: a repeated request with its idempotency key would only repeat the
    /// first answer, and a day later the key is forgotten. Two at once both find the list empty,
    /// and the key makes their requests one.
    pub(super) async fn refund(&self, record: &PaymentRecord) -> Stored<RefundReply> {
        let captured = record.capture.amount.amount_minor;
        let path = forms::refunds_path(&record.capture.key.payment);
        let refunds: List<Refund> = match self.ask(Method::GET, &path, None).await {
            Ok(answer) if is_refusal(answer.status) => return Ok(refused(&answer)),
            answer => self.parsed(&answer.map_err(Lost::of_read)?)?,
        };
        if let Some(reply) = forms::reply(&refunds.data, captured) {
            return Ok(reply);
        }
        let form = (forms::idempotency_key(&record.capture.key), forms::refund_form(record));
        let answer =
            self.ask(Method::POST, "/v1/refunds", Some(form)).await.map_err(Lost::of_write)?;
        if is_refusal(answer.status) {
            return Ok(refused(&answer));
        }
        let refund: Refund = self.parsed_write(&answer)?;
        // What went back earlier by hand and this together are the whole.
        let all: Vec<Refund> = refunds.data.into_iter().chain([refund]).collect();
        Ok(forms::reply(&all, captured).unwrap_or(RefundReply::Pending))
    }

    async fn read<T: DeserializeOwned>(&self, path: &str) -> Stored<T> {
        let answer = self.ask(Method::GET, path, None).await.map_err(Lost::of_read)?;
        self.parsed(&answer)
    }

    /// Makes one request; `form` is an idempotency key and a body.
    async fn ask(
        &self,
        method: Method,
        path: &str,
        form: Option<(String, String)>,
    ) -> Result<Answer, Lost> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url))
            .header(AUTHORIZATION, &self.authorization);
        let mut body = Bytes::new();
        if let Some((key, form)) = form {
            request = request
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header("idempotency-key", key);
            body = form.into();
        }
        let request =
            request.body(SdkBody::from(body)).map_err(|error| Lost::Unsent(error.to_string()))?;
        let answered = async {
            let (head, body) = self.https.request(request).await?.into_parts();
            Ok(Answer { status: head.status, body })
        };
        let late = |_| Lost::OnTheWay(format!("no answer within {REQUEST_TIMEOUT:?}"));
        tokio::time::timeout(REQUEST_TIMEOUT, answered).await.map_err(late)?
    }

    /// The answer to a request that changes nothing.
    fn parsed<T: DeserializeOwned>(&self, answer: &Answer) -> Stored<T> {
        self.understood(answer, StoreError::Unavailable)
    }

    /// The answer to a request that changes something.
    fn parsed_write<T: DeserializeOwned>(&self, answer: &Answer) -> Stored<T> {
        self.understood(answer, StoreError::Unknown)
    }

    /// Reads an answer; `lost` is what one means that leaves open what happened.
    fn understood<T: DeserializeOwned>(
        &self,
        answer: &Answer,
        lost: fn(String) -> StoreError,
    ) -> Stored<T> {
        let said = |what: &str| format!("provider {}: {} {what}", self.provider, answer.status);
        if answer.status.is_success() {
            return serde_json::from_slice(&answer.body)
                .map_err(|error| StoreError::Contract(said(&error.to_string())));
        }
        let text = said(&error_of(answer).text());
        Err(match answer.status {
            // A key of ours in use, too many requests, a key of the account that is not accepted
            // (yet): nothing happened.
            StatusCode::CONFLICT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN => StoreError::Unavailable(text),
            status if status.is_server_error() => lost(text),
            _ => StoreError::Contract(text),
        })
    }
}

/// True for an answer by which the provider says that it will not do what was asked of this
/// payment, and would not if asked again.
fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_REQUEST | StatusCode::PAYMENT_REQUIRED | StatusCode::NOT_FOUND)
}

/// The reply to a refund that is refused: there is none, unless it is done already.
fn refused(answer: &Answer) -> RefundReply {
    let error = error_of(answer);
    match error.code.as_deref() {
        Some("charge_already_refunded") => RefundReply::Refunded,
        Some(_) | None => RefundReply::Refused(error.text()),
    }
}

fn error_of(answer: &Answer) -> forms::ApiError {
    serde_json::from_slice(&answer.body).map(|Refusal { error }| error).unwrap_or_default()
}

/// A request without an answer.
enum Lost {
    /// It never left.
    Unsent(String),
    /// It may have arrived.
    OnTheWay(String),
}

impl From<Broken> for Lost {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Unsent(_) => Self::Unsent(DisplayErrorContext(broken).to_string()),
            Broken::OnTheWay(_) | Broken::Half(_) => {
                Self::OnTheWay(DisplayErrorContext(broken).to_string())
            }
        }
    }
}

impl Lost {
    fn of_read(self) -> StoreError {
        match self {
            Self::Unsent(text) | Self::OnTheWay(text) => StoreError::Unavailable(text),
        }
    }

    fn of_write(self) -> StoreError {
        match self {
            Self::Unsent(text) => StoreError::Unavailable(text),
            Self::OnTheWay(text) => StoreError::Unknown(text),
        }
    }
}

impl fmt::Debug for Account {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({} at {})", self.provider, self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::config::Secret;
    use crate::runtime::connections::Trust;

    #[test]
    fn an_account_is_asked_at_stripe_unless_told_where() {
        let url_of = |url: Option<&str>| {
            let api = ProviderApi {
                provider: ProviderId::new("stripe").unwrap(),
                url: url.map(str::to_owned),
                key: Secret(b"sk_1".to_vec()),
            };
            Account::new(&api, Https::new(&Trust::public())).unwrap().url
        };
        assert_eq!(url_of(None), "https://api.stripe.com");
        assert_eq!(url_of(Some("http://127.0.0.1:9/")), "http://127.0.0.1:9");
    }
}
