//! The Runtime API, by which a function's process asks for its next event and answers it:
//! <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>. One process, one event at a time.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;

use crate::Failure;

/// The time that the function is given, as `Timeout` in `template.yaml` says.
const DEADLINE: Duration = Duration::from_secs(10);
/// Time that anybody waits for a function.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);

/// What a function says of an event, or of its start.
type Outcome = Result<Bytes, Bytes>;

struct Shared {
    /// Number of times that the process has asked for an event.
    asked: watch::Sender<usize>,
    events: Mutex<mpsc::Receiver<(usize, String)>>,
    outcomes: mpsc::Sender<Outcome>,
}

/// A running Runtime API; it stops when dropped.
pub struct RuntimeApi {
    address: SocketAddr,
    asked: watch::Receiver<usize>,
    events: mpsc::Sender<(usize, String)>,
    outcomes: mpsc::Receiver<Outcome>,
    sent: usize,
    task: JoinHandle<()>,
}

impl RuntimeApi {
    /// Starts on a free port.
    ///
    /// # Errors
    /// There is no port to listen on.
    pub async fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (events, receiver) = mpsc::channel(1);
        let (sender, outcomes) = mpsc::channel(1);
        let (asks, asked) = watch::channel(0);
        let shared = Shared { asked: asks, events: Mutex::new(receiver), outcomes: sender };
        let runtime = "/2018-06-01/runtime";
        let router = Router::new()
            .route(&format!("{runtime}/invocation/next"), get(next))
            .route(&format!("{runtime}/invocation/{{id}}/response"), post(answered))
            .route(&format!("{runtime}/invocation/{{id}}/error"), post(failed))
            .route(&format!("{runtime}/init/error"), post(not_started))
            .with_state(Arc::new(shared));
        // It ends with the task.
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap_or(()) });
        Ok(Self { address, asked, events, outcomes, sent: 0, task })
    }

    /// The value of `AWS_LAMBDA_RUNTIME_API` for the process.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Waits until the process asks for an event: at first when it has started, and then when it is
    /// done with the last one.
    ///
    /// # Errors
    /// It does not, or says that it cannot start.
    pub async fn ready(&mut self) -> Result<(), Failure> {
        let asked = self.asked.wait_for(|asked| *asked > self.sent);
        tokio::select! {
            asked = tokio::time::timeout(ANSWER_DEADLINE, asked) => asked?.map(drop).map_err(Failure::from),
            Some(outcome) = self.outcomes.recv() => Err(format!("it did not start: {outcome:?}").into()),
        }
    }

    /// Gives the process an event and waits for its answer, and until it asks for the next.
    ///
    /// # Errors
    /// It does not answer, or says that it failed.
    pub async fn invoke(&mut self, event: String) -> Result<Bytes, Failure> {
        self.ready().await?;
        self.sent += 1;
        self.events.send((self.sent, event)).await?;
        let outcome = tokio::time::timeout(ANSWER_DEADLINE, self.outcomes.recv()).await?;
        let answer = outcome.ok_or("the Runtime API has stopped")?;
        let answer = answer.map_err(|error| String::from_utf8_lossy(&error).into_owned())?;
        self.ready().await?;
        Ok(answer)
    }
}

impl Drop for RuntimeApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn next(State(shared): State<Arc<Shared>>) -> Response {
    shared.asked.send_modify(|asked| *asked += 1);
    let Some((number, event)) = shared.events.lock().await.recv().await else {
        return StatusCode::GONE.into_response();
    };
    let deadline = SystemTime::now() + DEADLINE;
    let deadline_ms =
        deadline.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis();
    let arn = "arn:aws:lambda:us-east-1:000000000000:function:cold";
    let headers = [
        ("lambda-runtime-aws-request-id", format!("00000000-0000-4000-8000-{number:012}")),
        ("lambda-runtime-deadline-ms", deadline_ms.to_string()),
        ("lambda-runtime-invoked-function-arn", arn.to_owned()),
        (
            "lambda-runtime-trace-id",
            "Root=1-00000000-000000000000000000000000;Sampled=0".to_owned(),
        ),
        ("content-type", "application/json".to_owned()),
    ];
    (headers, event).into_response()
}

async fn answered(State(shared): State<Arc<Shared>>, _: Path<String>, body: Bytes) -> StatusCode {
    heard(&shared, Ok(body)).await
}

async fn failed(State(shared): State<Arc<Shared>>, _: Path<String>, body: Bytes) -> StatusCode {
    heard(&shared, Err(body)).await
}

async fn not_started(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    heard(&shared, Err(body)).await
}

async fn heard(shared: &Shared, outcome: Outcome) -> StatusCode {
    // Nobody may be waiting any more.
    let _ = shared.outcomes.send(outcome).await;
    StatusCode::ACCEPTED
}
