//! The HTTP/1.1 client, plain or over TLS, for requests to AWS and to payment providers.
//!
//! A sandbox that was frozen wakes up with sockets whose other side is long gone, perhaps several in
//! the pool, and nobody says so: each would cost a request its time limit. So a request that is
//! given up, broken off or answered by an ill server takes the whole pool with it, and the next
//! attempt connects anew. A connection that rested for long is not used again in the first place.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector as SdkConnector, HttpConnectorFuture, HttpConnectorSettings,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use super::trust::Trust;

/// Time limit of connecting, without the TLS handshake; an attempt's own limit covers both.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest time that a connection may rest in the pool. Networks forget silent ones after 350 seconds.
const MAX_REST: Duration = Duration::from_secs(60);
/// Silence after which an idle connection is probed.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(15);
/// Longest time that the other side may leave what was sent unacknowledged.
const MAX_UNACKNOWLEDGED: Duration = Duration::from_secs(1);
/// Most bytes of an answer: the largest page of DynamoDB is a sixteenth of it.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

type Pooled = Client<HttpsConnector<HttpConnector>, SdkBody>;

/// A pool of connections to any host; clones share it.
#[derive(Clone)]
pub struct Https(Arc<Shared>);

struct Shared {
    connector: HttpsConnector<HttpConnector>,
    current: Mutex<Current>,
}

/// The pool of now, and how many there were: whoever gets no answer drops that one only.
struct Current {
    generation: u64,
    pool: Pooled,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("connecting")]
    Unsent(#[source] hyper_util::client::legacy::Error),
    /// It may have arrived.
    #[error("no answer")]
    OnTheWay(#[source] hyper_util::client::legacy::Error),
    /// Its answer broke off, or was too long.
    #[error("half an answer")]
    Half(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Https {
    /// A pool that trusts these certificate authorities. Nothing is connected.
    #[must_use]
    pub fn new(trust: &Trust) -> Self {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        tcp.set_keepalive(Some(KEEPALIVE_AFTER));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(MAX_UNACKNOWLEDGED));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust.client_config())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let current = Mutex::new(Current { generation: 0, pool: pool(connector.clone()) });
        Self(Arc::new(Shared { connector, current }))
    }

    /// Makes one request and reads its answer to the end. Without an answer, or given up (by
    /// dropping the future), it leaves no connection behind that rested meanwhile.
    ///
    /// # Errors
    /// [`Broken`] says how far it got.
    pub async fn request(&self, request: Request<SdkBody>) -> Result<Response<Bytes>, Broken> {
        self.request_within(request, MAX_ANSWER_BYTES).await
    }

    /// [`Https::request`] of whom not much is expected: an answer of more bytes than these is broken off.
    ///
    /// # Errors
    /// As [`Https::request`].
    pub async fn request_within(
        &self,
        request: Request<SdkBody>,
        max_bytes: usize,
    ) -> Result<Response<Bytes>, Broken> {
        let (generation, pool) = self.pool();
        let doubt = Doubt { https: self, generation };
        let answer = pool.request(request).await.map_err(|error| match error.is_connect() {
            true => Broken::Unsent(error),
            false => Broken::OnTheWay(error),
        })?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, max_bytes).collect().await.map_err(Broken::Half)?;
        if !head.status.is_server_error() {
            std::mem::forget(doubt);
        }
        Ok(Response::from_parts(head, body.to_bytes()))
    }

    fn pool(&self) -> (u64, Pooled) {
        let current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        (current.generation, current.pool.clone())
    }

    fn drop_generation(&self, generation: u64) {
        let mut current = self.0.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.generation == generation {
            *current = Current { generation: generation + 1, pool: pool(self.0.connector.clone()) };
        }
    }
}

fn pool(connector: HttpsConnector<HttpConnector>) -> Pooled {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(MAX_REST)
        .build(connector)
}

/// Drops the pool unless the request it stands for was answered well.
struct Doubt<'h> {
    https: &'h Https,
    generation: u64,
}

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        self.https.drop_generation(self.generation);
    }
}

impl fmt::Debug for Https {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Https")
    }
}

impl SdkConnector for Https {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let https = self.clone();
        HttpConnectorFuture::new(async move {
            let request = request.try_into_http1x().map_err(|e| ConnectorError::user(e.into()))?;
            // Whatever is wrong with a connection, another may be fine: all of it may be tried again.
            let answer = https.request(request).await.map_err(|e| ConnectorError::io(e.into()))?;
            HttpResponse::try_from(answer.map(SdkBody::from))
                .map_err(|error| ConnectorError::other(error.into(), None))
        })
    }
}

impl HttpClient for Https {
    fn http_connector(
        &self,
        _settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Barrier;

    use super::*;

    /// Number of connections that rest in the pool when they die.
    const RESTING: usize = 6;

    /// A server whose first connections die: each takes one more request then, and answers nothing.
    struct Server {
        url: String,
        connections: Arc<AtomicUsize>,
        dead: Arc<AtomicUsize>,
    }

    impl Server {
        async fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            let (connections, dead) = (Arc::new(AtomicUsize::new(0)), Arc::default());
            // Nobody is answered before all have connected: so that none can share a connection.
            let all = Arc::new(Barrier::new(RESTING));
            let server = Self { url, connections: Arc::clone(&connections), dead };
            let dead = Arc::clone(&server.dead);
            tokio::spawn(async move {
                while let Ok((client, _)) = listener.accept().await {
                    let number = connections.fetch_add(1, Ordering::SeqCst);
                    let all = Arc::clone(&all);
                    tokio::spawn(serve(client, number, all, Arc::clone(&dead)));
                }
            });
            server
        }

        fn request(&self) -> Request<SdkBody> {
            Request::get(&self.url).body(SdkBody::empty()).unwrap()
        }
    }

    async fn serve(
        mut client: TcpStream,
        number: usize,
        all: Arc<Barrier>,
        dead: Arc<AtomicUsize>,
    ) {
        let mut request = [0; 1024];
        let mut is_first = true;
        while client.read(&mut request).await.is_ok_and(|bytes| bytes > 0) {
            if number < dead.load(Ordering::SeqCst) {
                return;
            }
            if number < RESTING && is_first {
                all.wait().await;
            }
            is_first = false;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            client.write_all(answer).await.unwrap();
        }
    }

    /// Number of attempts that it takes to be answered when all connections in the pool are dead.
    async fn attempts(mut attempt: impl AsyncFnMut(&Https, Request<SdkBody>) -> bool) -> usize {
        let server = Server::start().await;
        let https = Https::new(&Trust::public());
        let first = join_all((0..RESTING).map(|_| https.request(server.request()))).await;
        assert!(first.iter().all(Result::is_ok));
        assert_eq!(server.connections.load(Ordering::SeqCst), RESTING);
        server.dead.store(RESTING, Ordering::SeqCst);
        let mut attempts = 1;
        while !attempt(&https, server.request()).await {
            attempts += 1;
        }
        attempts
    }

    #[tokio::test]
    async fn one_disappointment_empties_the_pool() {
        let with = attempts(async |https, request| https.request(request).await.is_ok()).await;
        assert_eq!(with, 2);
        // Without the rule, by the same pool: every connection in it is tried.
        let without =
            attempts(async |https, request| https.pool().1.request(request).await.is_ok());
        let without = without.await;
        assert!(without > 2, "{without} attempts");
    }
}
