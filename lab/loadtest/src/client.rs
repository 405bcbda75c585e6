//! The crowd's side of HTTP: connections that are kept alive, in one thread, and no more work a request
//! than it needs, because the crowd shares its processors with what it measures.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::domain::basics::number::OrderNumber;
use fake_limits::table::GATEWAY_FAILED;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, InvalidHeaderValue, RETRY_AFTER,
};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use shared::http::problem::Kind;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::controller::Controller;
use super::people::{Class, Traffic};
use super::rehearsal::Rehearsal;
use super::rehearsal::abort::{AbortSwitch, ErrorGuard};
use super::rehearsal::ceiling::Ceiling;
use super::stopwatch::{Endpoint, Stopwatch};
use super::transport::{Stream, Transport};

pub use super::transport::BadAddress;

/// Longest wait for one answer; the gateway gives up earlier.
const TIMEOUT: Duration = Duration::from_secs(35);
/// What a refusal for want of capacity is called that is no problem document.
pub const THROTTLED: &str = "throttled";
/// What the gateway's refusal is called whose function was throttled. One whose function failed has the same
/// bytes: those are in the gateway's own counts ([`Report::record_throttled`](super::report::Report)).
pub const FUNCTION_THROTTLED: &str = "function-throttled";
/// What a request is counted as that had no answer.
pub const NO_ANSWER: &str = "no-answer";
/// What stands in place of an answer where nothing is sent any more.
const ABORTED: &str = "aborted";
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A request, ready to be sent any number of times.
#[derive(Debug, Clone)]
pub struct Call {
    /// Endpoint under which its time is counted.
    pub endpoint: Endpoint,
    /// Class of whoever sends it.
    pub class: Class,
    pub method: Method,
    /// Its path and query.
    pub uri: Uri,
    /// The header that says who sends it.
    pub credential: Option<(HeaderName, HeaderValue)>,
    /// Another header.
    pub extra: Option<(HeaderName, HeaderValue)>,
    /// Its body, which is JSON; empty for none.
    pub body: Bytes,
}

impl Call {
    /// A query that anybody may send.
    ///
    /// # Errors
    /// The path is none.
    pub fn get(path: &str) -> Result<Self, http::Error> {
        Ok(Self {
            endpoint: Endpoint::Query,
            class: Class::Nobody,
            method: Method::GET,
            uri: path.parse::<Uri>()?,
            credential: None,
            extra: None,
            body: Bytes::new(),
        })
    }

    /// A request with a body.
    ///
    /// # Errors
    /// The path is none.
    pub fn post(
        endpoint: Endpoint,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Self, http::Error> {
        let body = body.into();
        Ok(Self { endpoint, method: Method::POST, body, ..Self::get(path)? })
    }

    /// The same with a bearer token, counted for the class of its bearer.
    #[must_use]
    pub fn by(self, bearer: &Bearer) -> Self {
        let credential = Some((AUTHORIZATION, bearer.value.clone()));
        Self { credential, class: bearer.class, ..self }
    }

    /// The same with another header.
    #[must_use]
    pub fn with(self, name: HeaderName, value: HeaderValue) -> Self {
        Self { extra: Some((name, value)), ..self }
    }
}

/// The value of an authorization header, and the class of whoever sends it.
#[derive(Debug, Clone)]
pub struct Bearer {
    value: HeaderValue,
    class: Class,
}

impl Bearer {
    /// Of a token.
    ///
    /// # Errors
    /// The token has bytes that no header may have.
    pub fn new(token: &str) -> Result<Self, InvalidHeaderValue> {
        let value = HeaderValue::try_from(format!("Bearer {token}"))?;
        Ok(Self { value, class: Class::Nobody })
    }

    /// The same, of somebody of this class.
    #[must_use]
    pub fn of_class(self, class: Class) -> Self {
        Self { class, ..self }
    }

    /// Class of whoever sends it.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }
}

#[derive(Debug, Clone)]
pub enum Reply {
    /// A 2xx with its body.
    Ok(Bytes),
    /// A `problem+json`.
    Problem(Refused),
    /// No answer, or none that can be understood: the request may or may not have been acted on.
    Lost(String),
}

#[derive(Debug, Clone)]
pub struct Refused {
    pub status: StatusCode,
    /// The last part of the problem's type, such as `seat-taken`.
    pub kind: Cow<'static, str>,
    /// Delay before the next attempt, if the server names one.
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

impl Refused {
    /// The order of the caller's own that a refused request has made before.
    #[must_use]
    pub fn order(&self) -> Option<OrderNumber> {
        #[derive(Deserialize)]
        struct Named {
            order: OrderNumber,
        }
        let named = (self.kind == Kind::TokenReused.slug()).then_some(&self.body)?;
        serde_json::from_slice::<Named>(named).ok().map(|named| named.order)
    }
}

impl Reply {
    /// What a 2xx says, if it can be read so.
    #[must_use]
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        match self {
            Self::Ok(body) => serde_json::from_slice(body).ok(),
            Self::Problem(_) | Self::Lost(_) => None,
        }
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ok(body) => write!(formatter, "done: {}", String::from_utf8_lossy(body)),
            Self::Problem(refused) => {
                write!(formatter, "{} {}", refused.status, String::from_utf8_lossy(&refused.body))
            }
            Self::Lost(why) => formatter.write_str(why),
        }
    }
}

/// What the crowd reads of a problem document.
#[derive(Deserialize)]
struct Problem<'document> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'document, str>,
}

/// A place among the requests that may be under way at once.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "held, not read")] OwnedSemaphorePermit);

/// A client with its stopwatch.
#[derive(Debug)]
pub struct Client {
    transport: Transport,
    ceiling: Option<Ceiling>,
    abort: Option<Arc<AbortSwitch>>,
    errors: RefCell<ErrorGuard>,
    places: Arc<Semaphore>,
    idle: RefCell<Vec<SendRequest<Full<Bytes>>>>,
    connections: Cell<u64>,
    under_way: Cell<u64>,
    sent: Cell<u64>,
    stopwatch: RefCell<Stopwatch>,
    traffic: RefCell<Traffic>,
    controller: Option<Arc<Controller>>,
}

impl Client {
    /// A client of the gateway at `base`, such as `http://127.0.0.1:8080`, that has at most
    /// `connections` requests under way at once, each on a connection of its own.
    ///
    /// # Errors
    /// `base` is no such address.
    pub fn new(base: &str, connections: usize) -> Result<Self, BadAddress> {
        Ok(Self::over(Transport::new(base, None)?, connections))
    }

    /// A client of a deployment, below the ceiling of its rehearsal and with its switch.
    ///
    /// # Errors
    /// Its address is none.
    pub fn rehearsing(rehearsal: &Rehearsal, connections: usize) -> Result<Self, BadAddress> {
        let transport = Transport::new(rehearsal.target.url(), Some(&rehearsal.trust))?;
        Ok(Self {
            ceiling: Some(Ceiling::new(rehearsal.per_second)),
            abort: Some(Arc::clone(&rehearsal.abort)),
            errors: RefCell::new(ErrorGuard::new(rehearsal.max_error_percent)),
            ..Self::over(transport, connections)
        })
    }

    fn over(transport: Transport, connections: usize) -> Self {
        Self {
            transport,
            ceiling: None,
            abort: None,
            errors: RefCell::new(ErrorGuard::new(100)),
            places: Arc::new(Semaphore::new(connections.clamp(1, Semaphore::MAX_PERMITS))),
            idle: RefCell::default(),
            connections: Cell::default(),
            under_way: Cell::default(),
            sent: Cell::default(),
            stopwatch: RefCell::default(),
            traffic: RefCell::default(),
            controller: None,
        }
    }

    /// The same, whose answers are reported to a controller.
    #[must_use]
    pub fn watched(self, controller: Option<Arc<Controller>>) -> Self {
        Self { controller, ..self }
    }

    /// A place for a request, at once or not at all.
    #[must_use]
    pub fn place_now(&self) -> Option<Place> {
        Arc::clone(&self.places).try_acquire_owned().ok().map(Place)
    }

    /// A place for a request, when there is one and it is our turn.
    pub fn place(&self) -> impl Future<Output = Option<Place>> + use<> {
        let places = Arc::clone(&self.places);
        // Nobody closes the semaphore; were it closed, there would be no limit.
        async move { places.acquire_owned().await.ok().map(Place) }
    }

    /// Sends a request that is due now.
    pub async fn send(&self, call: &Call) -> Reply {
        self.send_due(call, Instant::now(), None).await
    }

    /// Sends a request that was due at a moment, in the `place` that its sender has already or when
    /// there is one.
    pub async fn send_due(&self, call: &Call, due: Instant, place: Option<Place>) -> Reply {
        let place = match place {
            Some(place) => Some(place),
            None => {
                let asked = Instant::now();
                let place = self.place().await;
                self.stopwatch.borrow_mut().waited(asked, Instant::now());
                place
            }
        };
        let Some(held_up) = self.may_send().await else {
            return Reply::Lost(ABORTED.to_owned());
        };
        // The ceiling is ours, whatever the target does: waiting for it is not the target's time.
        let due = due + held_up;
        self.under_way.set(self.under_way.get() + 1);
        self.sent.set(self.sent.get() + 1);
        self.traffic.borrow_mut().sent(call.class);
        let sent = Instant::now();
        let reply = match tokio::time::timeout(TIMEOUT, self.exchange(call)).await {
            Ok(reply) => reply,
            Err(_elapsed) => Reply::Lost(format!("no answer within {} s", TIMEOUT.as_secs())),
        };
        self.under_way.set(self.under_way.get() - 1);
        drop(place);
        if let Some(controller) = &self.controller {
            controller.saw(call.endpoint, &reply);
        }
        self.spare(&reply);
        let now = Instant::now();
        self.stopwatch.borrow_mut().answered(call.endpoint, due, sent, now);
        let refused = match &reply {
            Reply::Ok(_) => None,
            Reply::Problem(refused) => Some(refused.kind.clone()),
            Reply::Lost(_) => Some(Cow::Borrowed(NO_ANSWER)),
        };
        self.traffic.borrow_mut().answered(call.class, now.saturating_duration_since(due), refused);
        reply
    }

    /// Waits for the ceiling, and says for how long; `None` once the switch was thrown: nothing is sent then.
    async fn may_send(&self) -> Option<Duration> {
        let asked = Instant::now();
        if let Some(ceiling) = &self.ceiling {
            ceiling.pass().await;
        }
        let is_over = self.abort.as_ref().is_some_and(|abort| abort.is_thrown());
        (!is_over).then(|| asked.elapsed())
    }

    /// Throws the switch once too many of the last answers were errors.
    fn spare(&self, reply: &Reply) {
        let Some(abort) = &self.abort else { return };
        let is_error = match reply {
            Reply::Ok(_) => false,
            Reply::Problem(refused) => refused.status.is_server_error(),
            Reply::Lost(_) => true,
        };
        if let Some(reason) = self.errors.borrow_mut().answered(is_error) {
            abort.abort(reason);
        }
    }

    async fn exchange(&self, call: &Call) -> Reply {
        match self.answer(call).await {
            Ok(reply) => reply,
            Err(why) => Reply::Lost(why),
        }
    }

    async fn answer(&self, call: &Call) -> Result<Reply, String> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.uri.clone();
        let headers = request.headers_mut();
        headers.insert(HOST, self.transport.authority().clone());
        for (name, value) in call.credential.iter().chain(&call.extra) {
            headers.insert(name.clone(), value.clone());
        }
        if !call.body.is_empty() {
            headers.insert(CONTENT_TYPE, JSON);
        }
        let mut connection = self.connection().await?;
        let response = connection.send_request(request).await.map_err(|error| shown(&error))?;
        let status = response.status();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(seconds);
        let body = response.into_body().collect().await.map_err(|error| shown(&error))?.to_bytes();
        if !connection.is_closed() {
            self.idle.borrow_mut().push(connection);
        }
        if status.is_success() {
            return Ok(Reply::Ok(body));
        }
        let kind =
            kind(status, &body).ok_or_else(|| format!("{status} without a problem document"))?;
        Ok(Reply::Problem(Refused { status, kind, retry_after, body }))
    }

    /// A connection that is ready: the one that was used last, or a new one.
    async fn connection(&self) -> Result<SendRequest<Full<Bytes>>, String> {
        loop {
            let idle = self.idle.borrow_mut().pop();
            let Some(mut connection) = idle else { break };
            // The gateway may have closed it meanwhile.
            if connection.ready().await.is_ok() {
                return Ok(connection);
            }
        }
        let stream = self.connect().await.map_err(|error| error.to_string())?;
        let (connection, runs) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| shown(&error))?;
        tokio::task::spawn_local(async move {
            // Whoever waits for an answer on it gets the error.
            let _ended = runs.await;
        });
        Ok(connection)
    }

    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = self.transport.connect().await?;
        self.connections.set(self.connections.get() + 1);
        Ok(stream)
    }

    /// Sends a whole request on a connection of its own, and cuts it without waiting for the answer.
    ///
    /// # Errors
    /// It could not be sent.
    pub async fn cut(&self, call: &Call) -> io::Result<()> {
        if self.may_send().await.is_none() {
            return Err(io::Error::other(ABORTED));
        }
        let mut head = format!("{} {} HTTP/1.1\r\n", call.method, call.uri).into_bytes();
        let length = HeaderValue::from(call.body.len());
        let own =
            [(HOST, self.transport.authority()), (CONTENT_TYPE, &JSON), (CONTENT_LENGTH, &length)];
        let stated = call.credential.iter().chain(&call.extra);
        let stated = stated.map(|(name, value)| (name.clone(), value));
        for (name, value) in own.into_iter().chain(stated) {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(&call.body);
        let mut stream = self.connect().await?;
        stream.write_all(&head).await
    }

    /// Number of requests that have been sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Number of connections that have been opened.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.get()
    }

    /// Number of requests that are under way.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        self.under_way.get()
    }

    /// Requests and answers by class of people.
    #[must_use]
    pub fn traffic(&self) -> std::cell::RefMut<'_, Traffic> {
        self.traffic.borrow_mut()
    }

    #[must_use]
    pub fn stopwatch(&self) -> std::cell::RefMut<'_, Stopwatch> {
        self.stopwatch.borrow_mut()
    }
}

fn seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// What a refusal is called; `None` if it is neither a problem document nor one of the gateway's refusals for
/// want of capacity.
fn kind(status: StatusCode, body: &[u8]) -> Option<Cow<'static, str>> {
    if let Ok(problem) = serde_json::from_slice::<Problem<'_>>(body) {
        return Some(slug(&problem.kind));
    }
    match status {
        // API Gateway's own words, or the payment provider's.
        StatusCode::TOO_MANY_REQUESTS => Some(Cow::Borrowed(THROTTLED)),
        StatusCode::INTERNAL_SERVER_ERROR if body == GATEWAY_FAILED.text().as_bytes() => {
            Some(Cow::Borrowed(FUNCTION_THROTTLED))
        }
        _ => None,
    }
}

/// The last part of a problem's type; those that the engine has are not copied.
fn slug(kind: &str) -> Cow<'static, str> {
    let last = kind.rsplit('/').next().unwrap_or(kind);
    let known = Kind::ALL.into_iter().map(Kind::slug).find(|slug| *slug == last);
    known.map_or_else(|| Cow::Owned(last.to_owned()), Cow::Borrowed)
}

/// An error with its causes, which are what hyper's own words leave out.
fn shown(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_that_an_admission_has_made_is_read_from_its_refusal() {
        let refused = |kind: &'static str, body: &'static str| Refused {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            kind: Cow::Borrowed(kind),
            retry_after: None,
            body: Bytes::from_static(body.as_bytes()),
        };
        let body = r#"{"type": "/problems/token-reused", "order": "7", "state": "pending"}"#;
        assert_eq!(refused("token-reused", body).order(), Some("7".parse().unwrap()));
        assert_eq!(refused("token-reused", "{}").order(), None);
        assert_eq!(refused("invalid", body).order(), None);
    }

    #[test]
    fn a_refusal_of_the_gateway_is_known_by_its_bytes() {
        let named =
            |status: u16, body: &str| kind(StatusCode::from_u16(status).unwrap(), body.as_bytes());
        let failed = r#"{"message":"Internal Server Error"}"#;
        assert_eq!(named(429, r#"{"message":"Too Many Requests"}"#).as_deref(), Some(THROTTLED));
        assert_eq!(named(500, failed).as_deref(), Some(FUNCTION_THROTTLED));
        let problem = r#"{"type":"/problems/internal"}"#;
        assert_eq!(named(500, problem).as_deref(), Some("internal"));
        for (status, body) in
            [(500, "{}"), (500, ""), (502, failed), (503, r#"{"message":"Service Unavailable"}"#)]
        {
            assert_eq!(named(status, body), None, "{status} {body}");
        }
    }

    #[test]
    fn a_problem_is_known_by_the_last_part_of_its_type() {
        assert!(matches!(slug("/problems/seat-taken"), Cow::Borrowed("seat-taken")));
        assert_eq!(slug("about:blank"), "about:blank");
    }
}
