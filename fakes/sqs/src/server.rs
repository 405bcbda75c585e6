//! The HTTP server: requests and replies, the clock, and the receivers that wait.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Request as HttpRequest, Response, StatusCode};
use axum::serve::ListenerExt as _;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::broker::{Broker, Wake};
use crate::error::{ErrorKind, SqsError};
use crate::faults::Faults;
use crate::queue::QueueId;
use crate::store::Store;
use crate::wire::{Receive, Reply, Request};

/// The largest request body, in bytes: a batch of the largest size, escaped as JSON can escape
/// ordinary text.
const BODY_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// The longest the timer sleeps, should the wall clock be set back meanwhile.
const TIMER_SLEEP_MAX: Duration = Duration::from_secs(60);

/// Receivers one change wakes at most; whoever takes messages and leaves some is followed by
/// receivers that look before they wait.
const WAKES_MAX: usize = 1_000;

/// The state that every connection shares.
#[derive(Debug)]
pub(crate) struct Server {
    state: Mutex<Shared>,
    /// Notified when something becomes due earlier than the timer knows.
    timer: Notify,
    store: Option<Store>,
    /// Requests so far: their ids in the replies' headers.
    requests: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    broker: Broker,
    /// For each queue, where its receivers wait.
    waiters: HashMap<QueueId, Arc<Notify>>,
    /// The time until which the timer sleeps, Unix milliseconds.
    timer_ms: Option<u64>,
}

impl Server {
    /// A server around this broker, which writes its changes to `store` if there is one.
    pub fn new(broker: Broker, store: Option<Store>) -> Self {
        let state = Shared { broker, waiters: HashMap::new(), timer_ms: None };
        Server {
            state: Mutex::new(state),
            timer: Notify::new(),
            store,
            requests: AtomicU64::new(0),
        }
    }

    /// Serves connections and runs the timer, until dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) -> std::io::Result<()> {
        tokio::spawn(self.clone().run_timer());
        let listener = listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection keeps its delay");
            }
        });
        axum::serve(listener, Router::new().fallback(handle).with_state(self)).await
    }

    /// Replaces the faults to inject; the draws start at the new seed.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().broker.set_faults(faults);
    }

    async fn answer(&self, headers: &HeaderMap, body: Body) -> Result<Vec<u8>, SqsError> {
        let operation = headers
            .get("x-amz-target")
            .and_then(|target| target.to_str().ok()?.strip_prefix("AmazonSQS."))
            .ok_or_else(|| {
                SqsError::new(
                    ErrorKind::UnknownOperation,
                    "Requests are AWS JSON 1.0: POST with a header X-Amz-Target: AmazonSQS.<operation>.",
                )
            })?;
        let body = to_bytes(body, BODY_BYTES_MAX).await.map_err(|_| {
            SqsError::new(
                ErrorKind::RequestTooLarge,
                format!("A request may have {BODY_BYTES_MAX} bytes."),
            )
        })?;
        let request = Request::parse(operation, &body)?;
        self.check_file()?;
        if let Request::Receive(receive) = &request {
            return Ok(bytes(self.receive(receive).await?, Some(receive)));
        }
        let (reply, written) =
            self.with_broker(|shared, now_ms| shared.broker.call(request, now_ms));
        written.confirmed().await?;
        Ok(bytes(reply?, None))
    }

    /// Refuses a request while the file cannot be written: what it changed could not be confirmed,
    /// and memory would get ever further ahead of the file.
    fn check_file(&self) -> Result<(), SqsError> {
        match &self.store {
            Some(store) if store.is_behind() => Err(not_written()),
            Some(_) | None => Ok(()),
        }
    }

    /// Receives, waiting for the first message for the receive's wait time.
    async fn receive(&self, receive: &Receive) -> Result<Reply, SqsError> {
        let started = Instant::now();
        loop {
            self.check_file()?;
            let (outcome, written) = self.with_broker(|shared, now_ms| {
                let received = shared.broker.receive(receive, now_ms)?;
                // The receiver starts listening before anybody else can change the queue.
                let waiter = shared.waiters.entry(received.queue).or_default().clone();
                let mut notified = Box::pin(waiter.notified_owned());
                if received.deliveries.is_empty() {
                    notified.as_mut().enable();
                }
                Ok((received, notified))
            });
            written.confirmed().await?;
            let (received, notified) = outcome?;
            let deadline = started + Duration::from_secs(received.wait_seconds);
            if !received.deliveries.is_empty() || timeout_at(deadline, notified).await.is_err() {
                return Ok(Reply::Received(received.deliveries));
            }
        }
    }

    /// Lets `act` change the state; then wakes who should look again, sets the timer, and hands
    /// the changes to the file. The second result resolves when they are in the file.
    fn with_broker<T>(&self, act: impl FnOnce(&mut Shared, u64) -> T) -> (T, Written) {
        let mut shared = self.lock();
        let outcome = act(&mut shared, now_ms());
        for wake in shared.broker.take_wakes() {
            match wake {
                Wake::Some(queue, receivers) => {
                    if let Some(waiter) = shared.waiters.get(&queue) {
                        (0..receivers.min(WAKES_MAX)).for_each(|_| waiter.notify_one());
                    }
                }
                Wake::All(queue) => {
                    shared.waiters.remove(&queue).inspect(|waiter| waiter.notify_waiters());
                }
            }
        }
        let due_ms = shared.broker.next_due_ms();
        if due_ms.is_some_and(|due_ms| shared.timer_ms.is_none_or(|timer_ms| due_ms < timer_ms)) {
            shared.timer_ms = due_ms;
            self.timer.notify_one();
        }
        // Handed over under the lock: the file sees the changes in the order they were made.
        let changes = shared.broker.take_changes();
        let written = match &self.store {
            Some(store) if !changes.is_empty() => Some(store.write(changes)),
            Some(_) | None => None,
        };
        (outcome, Written(written))
    }

    /// Does what comes due without a request, at its time.
    async fn run_timer(self: Arc<Self>) {
        loop {
            let (due_ms, _written) = self.with_broker(|shared, now_ms| {
                shared.timer_ms = shared.broker.tick(now_ms);
                shared.timer_ms
            });
            let sleep = due_ms.map_or(TIMER_SLEEP_MAX, |due_ms| {
                Duration::from_millis(due_ms.saturating_sub(now_ms())).min(TIMER_SLEEP_MAX)
            });
            // Either way it looks again: the time has come, or something comes due earlier.
            let _ = timeout_at(Instant::now() + sleep, self.timer.notified()).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic under the lock is a bug of one request; the others go on.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resolves when the changes of a request are in the file, if there is one.
#[must_use]
struct Written(Option<oneshot::Receiver<()>>);

impl Written {
    /// Waits until the changes are in the file.
    async fn confirmed(self) -> Result<(), SqsError> {
        match self.0 {
            None => Ok(()),
            Some(written) => written.await.map_err(|_| not_written()),
        }
    }
}

/// The refusal of a request that is not in the file, or would not be.
fn not_written() -> SqsError {
    let message = "The queue file cannot be written, which is tried again: is its disk full?";
    SqsError::new(ErrorKind::Internal, message)
}

fn bytes(reply: Reply, receive: Option<&Receive>) -> Vec<u8> {
    reply.into_json(receive).to_string().into_bytes()
}

async fn handle(State(server): State<Arc<Server>>, request: HttpRequest<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let request_id = server.requests.fetch_add(1, Ordering::Relaxed);
    let mut response = match server.answer(&head.headers, body).await {
        Ok(reply) => Response::new(Body::from(reply)),
        Err(error) => refusal(&error),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
    if let Ok(id) = HeaderValue::from_str(&format!("00000000-0000-4000-8000-{request_id:012x}")) {
        headers.insert("x-amzn-requestid", id);
    }
    response
}

fn refusal(error: &SqsError) -> Response<Body> {
    let body = json!({ "__type": error.kind.type_name(), "message": error.message });
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() =
        StatusCode::from_u16(error.kind.status()).unwrap_or(StatusCode::BAD_REQUEST);
    let fault = if error.kind.sender_fault() { "Sender" } else { "Receiver" };
    if let Ok(value) = HeaderValue::from_str(&format!("{};{fault}", error.kind.code())) {
        response.headers_mut().insert("x-amzn-query-error", value);
    }
    response
}

/// The wall clock, Unix milliseconds.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
