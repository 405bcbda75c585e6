//! One account at a provider: requests with its key, within its limits and a time limit, and what each
//! answer means.

use std::fmt;
use std::time::Duration;

use aws_smithy_types::body::SdkBody;
use aws_smithy_types::error::display::DisplayErrorContext;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request, StatusCode, request};
use hyper::body::Bytes;
use serde::de::DeserializeOwned;

use super::limit::{Limit, Limits, Operation};
use crate::runtime::config::ProviderApi;
use crate::runtime::connections::Https;
use crate::runtime::connections::https::Broken;
use engine::domain::basics::ids::ProviderId;
use engine::domain::payment::start::Turn;
use engine::ports::{StoreError, Stored};

/// Time limit of one request. A refund may take two, which a queue function has ample time for.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
/// Time limit of a request for a bill or a page of it: a large file, or a hundred entries with all that is behind them.
const BILL_TIMEOUT: Duration = Duration::from_secs(60);

/// Seconds after which a call is made again that came too often for its provider, which does not say when.
const THROTTLED_SECONDS: u32 = 5;

pub(super) struct Account {
    pub(super) provider: ProviderId,
    /// Address of the API, without a slash at its end.
    pub(super) url: String,
    /// The headers that every request has. Among them is the key, unless each request is signed by itself.
    headers: HeaderMap,
    /// Most bytes of an answer; `None` for as many as the client takes.
    max_answer_bytes: Option<usize>,
    https: Https,
    limit: Limit,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// What a request does, and so what it means if its answer is lost.
#[derive(Debug, Clone, Copy)]
pub(super) enum Effect {
    /// It changes nothing, and can be made again.
    Read,
    /// It changes something, perhaps even if there is no answer.
    Write,
}

impl Effect {
    /// The error of an answer that leaves open what happened.
    pub(super) fn lost(self, text: String) -> StoreError {
        match self {
            Self::Read => StoreError::Unavailable(text),
            Self::Write => StoreError::Unknown(text),
        }
    }
}

impl Account {
    /// The account that `api` is a key of, at `default_url` unless another address is configured.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if the key cannot be a header.
    pub(super) fn new(
        api: &ProviderApi,
        default_url: &str,
        https: Https,
        limits: &Limits,
    ) -> Stored<Self> {
        // Text before the key must not be joined with it by `format!`: it would be copied.
        let bearer = [b"Bearer ".as_slice(), &api.key.0].concat();
        let mut authorization = HeaderValue::from_bytes(&bearer).map_err(|_| {
            StoreError::Contract(format!("provider {}: its key cannot be a header", api.provider))
        })?;
        authorization.set_sensitive(true);
        let url = api.url.as_deref().unwrap_or(default_url).trim_end_matches('/').to_owned();
        let provider = api.provider.clone();
        let limit = limits.of(&provider);
        let headers = HeaderMap::from_iter([(AUTHORIZATION, authorization)]);
        Ok(Self { provider, url, headers, max_answer_bytes: None, https, limit })
    }

    /// The account of a provider whose requests are signed one by one, by the caller; answers of more than
    /// `max_answer_bytes` are broken off.
    pub(super) fn unsigned(
        provider: ProviderId,
        url: &str,
        max_answer_bytes: usize,
        https: Https,
        limits: &Limits,
    ) -> Self {
        let limit = limits.of(&provider);
        let url = url.trim_end_matches('/').to_owned();
        let max_answer_bytes = Some(max_answer_bytes);
        let headers = HeaderMap::new();
        Self { provider, url, headers, max_answer_bytes, https, limit }
    }

    /// The same account, every request to which has this header, too.
    pub(super) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// Makes sure that the tables are this deployment's, for what is started without a call.
    ///
    /// # Errors
    /// As [`Limit::own`].
    pub(super) async fn own(&self) -> Stored<()> {
        self.limit.own().await
    }

    /// Takes the next start of a payment, and waits for it if it is a turn. The caller takes it before it writes the
    /// attempt, so [`Account::ask`] does not.
    ///
    /// # Errors
    /// [`StoreError::Limited`] if the next start is later than places are given out.
    pub(super) async fn next_start(&self) -> Stored<Turn> {
        self.limit.start().await
    }

    /// Waits for the turn of a call that starts a payment whose order gets no place.
    ///
    /// # Errors
    /// [`StoreError::Limited`] if its turn would come too late.
    pub(super) async fn turn_to_start(&self) -> Stored<()> {
        self.limit.turn(Operation::StartPayment).await
    }

    /// Makes one request when it is its turn, with the headers of the account added to its head.
    ///
    /// # Errors
    /// As [`Effect`] says, unless the request never left; [`StoreError::Limited`] if its turn would come
    /// too late.
    pub(super) async fn ask(
        &self,
        operation: Operation,
        head: request::Builder,
        body: Bytes,
        effect: Effect,
    ) -> Stored<Answer> {
        let most = self.max_answer_bytes;
        let head = self.headers.iter().fold(head, |head, (name, value)| head.header(name, value));
        self.ask_within(operation, head, body, effect, most).await
    }

    /// [`Account::ask`] of whom an answer of at most so many bytes is expected, without the headers of the account: what is
    /// fetched from an address that the provider has given.
    ///
    /// # Errors
    /// As [`Account::ask`].
    pub(super) async fn fetch(&self, head: request::Builder, max_bytes: usize) -> Stored<Answer> {
        let (operation, body, effect) = (Operation::ReadBill, Bytes::new(), Effect::Read);
        self.ask_within(operation, head, body, effect, Some(max_bytes)).await
    }

    /// [`Account::ask`] for a page of a bill of at most so many bytes.
    ///
    /// # Errors
    /// As [`Account::ask`].
    pub(super) async fn ask_page(
        &self,
        head: request::Builder,
        max_bytes: usize,
    ) -> Stored<Answer> {
        let head = self.headers.iter().fold(head, |head, (name, value)| head.header(name, value));
        self.fetch(head, max_bytes).await
    }

    async fn ask_within(
        &self,
        operation: Operation,
        head: request::Builder,
        body: Bytes,
        effect: Effect,
        max_bytes: Option<usize>,
    ) -> Stored<Answer> {
        let request: Request<SdkBody> = head
            .body(SdkBody::from(body))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        match operation {
            Operation::StartPayment => self.limit.own().await?,
            Operation::ClosePayment
            | Operation::ReadPayment
            | Operation::SearchCaptures
            | Operation::ListCaptures
            | Operation::ReadDispute
            | Operation::ReadBill
            | Operation::ListRefunds
            | Operation::Refund
            | Operation::RefundCapture => self.limit.turn(operation).await?,
        }
        let asked = async {
            match max_bytes {
                Some(most) => self.https.request_within(request, most).await,
                None => self.https.request(request).await,
            }
        };
        let is_bill = operation == Operation::ReadBill;
        let limit = if is_bill { BILL_TIMEOUT } else { REQUEST_TIMEOUT };
        let answered = tokio::time::timeout(limit, asked).await;
        let answered = answered.map_err(|_| effect.lost(format!("no answer within {limit:?}")))?;
        let (head, body) = answered.map_err(|broken| broken_off(broken, effect))?.into_parts();
        Ok(Answer { status: head.status, headers: head.headers, body })
    }

    /// Reads an answer; `why` finds the provider's words in one that is an error.
    ///
    /// # Errors
    /// [`StoreError::Contract`] for an answer that no repetition would change.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        answer: &Answer,
        effect: Effect,
        why: fn(&Answer) -> String,
    ) -> Stored<T> {
        if answer.status.is_success() {
            return serde_json::from_slice(&answer.body)
                .map_err(|error| StoreError::Contract(self.said(answer, &error.to_string())));
        }
        Err(self.error(answer, effect, why))
    }

    /// The error that an answer is which is no success.
    pub(super) fn error(
        &self,
        answer: &Answer,
        effect: Effect,
        why: fn(&Answer) -> String,
    ) -> StoreError {
        let text = self.said(answer, &why(answer));
        match answer.status {
            // Others ask it, too, or a clock here is wrong: as if it had been no turn.
            StatusCode::TOO_MANY_REQUESTS => {
                tracing::warn!(text, "a provider has refused a call that had its turn");
                StoreError::Limited(THROTTLED_SECONDS)
            }
            // A key of ours in use, a key of the account that is not accepted (yet): nothing happened.
            StatusCode::CONFLICT | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                StoreError::Unavailable(text)
            }
            status if status.is_server_error() => effect.lost(text),
            _ => StoreError::Contract(text),
        }
    }

    fn said(&self, answer: &Answer, what: &str) -> String {
        format!("provider {}: {} {what}", self.provider, answer.status)
    }
}

/// The error of a request without an answer.
fn broken_off(broken: Broken, effect: Effect) -> StoreError {
    let is_sent = match broken {
        Broken::Unsent(_) => false,
        Broken::OnTheWay(_) | Broken::Half(_) => true,
    };
    let text = DisplayErrorContext(broken).to_string();
    if is_sent { effect.lost(text) } else { StoreError::Unavailable(text) }
}

/// Text as it may stand in a path, a query or a form.
pub(crate) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(escape).collect()
}

impl fmt::Debug for Account {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account({} at {})", self.provider, self.url)
    }
}
