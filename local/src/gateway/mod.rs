//! The part of API Gateway: it finds the route, authenticates the caller, limits the size and the
//! time of a request, and invokes the function with the same event.
//!
//! One thing differs from a web server on purpose: a function runs to its end when its caller
//! hangs up, as it does in Lambda.

mod connections;
mod edge;
pub mod event;
mod limits;
mod refusal;
mod routes;

pub use edge::{API, EdgeOptions, edge_secret};
pub use routes::{EMPTY_ROUTES, Matched, Route, Routes, Target};

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lambda_events::apigw::{
    ApiGatewayRequestAuthorizer, ApiGatewayRequestAuthorizerIamDescription,
    ApiGatewayRequestAuthorizerJwtDescription,
};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request, State};
use axum::response::Response;
use axum::serve::IncomingStream;
use chrono::Utc;
use engine::domain::basics::time::Timestamp;
use futures_util::StreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, HOST};
use shared::http::identity::Scope;
use shared::http::respond::{Answer, Reply as _};
use shared::http::routes::Access;
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::concurrency::Concurrency;
use crate::event_sources::{Failure, invoke};
use crate::handlers::answer;
use crate::open_files;
use connections::{Deadlines, Progress};
use edge::{Edge, ThroughEdge};
use event::ACCOUNT;
use fake_identity::{Claims, Identity, Refused, Role};
use fake_limits::Enforced;
use limits::Metered;
use refusal::Refusal;

/// The largest request that a function can be invoked with.
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
pub const MAX_BODY_BYTES: usize = 6 * 1024 * 1024;
/// Bytes of a body that is too large that are read and discarded, so that its sender can read
/// the answer; API Gateway's own limit.
const MAX_DRAIN_BYTES: usize = 10 * 1024 * 1024;
/// Time limit of a request: API Gateway gives up after 30 s.
const TIMEOUT: Duration = Duration::from_secs(29);
/// The most connections open at once. With two connections to the stores for each
/// invocation, both ends of which are in this process, it stays below the usual limit of 1,024
/// open files ([`open_files::NEEDED`]).
const MAX_CONNECTIONS: usize = 400;
/// The most connections where fewer files may be open than are needed.
const MIN_CONNECTIONS: usize = 32;
/// The most invocations at once; further ones wait.
const CONCURRENCY: u16 = 64;
/// Invocations reserved for payments besides, so that buyers cannot starve them; payments take a
/// common place as well when one is free first.
const PAYMENT_CONCURRENCY: u16 = 16;
/// The same reserved for the entry of callbacks, so that the callbacks of the API cannot starve it.
const ENTRY_CONCURRENCY: u16 = 16;
/// Seconds that open connections may take to close when the gateway stops.
const STOP_SECONDS: u64 = 5;

/// A running gateway on a port of 127.0.0.1; it stops when dropped.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    state: Arc<GatewayState>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<io::Result<()>>,
}

/// A port of 127.0.0.1 on which nobody answers yet: whoever is to call the gateway can be told where it will
/// be.
#[derive(Debug)]
pub struct Place {
    listener: TcpListener,
    address: SocketAddr,
}

impl Place {
    /// Takes a port; 0 is a free one.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn take(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Its address: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Gateway {
    /// Serves `app` on a port of 127.0.0.1; 0 is a free one.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start(
        app: Arc<App>,
        identity: Identity,
        port: u16,
        routes: Routes,
    ) -> io::Result<Self> {
        Self::start_within(app, identity, port, routes, None, Concurrency::default()).await
    }

    /// [`Gateway::start`], with the limits of API Gateway if they are given, and with functions that run
    /// as `concurrency` allows.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start_within(
        app: Arc<App>,
        identity: Identity,
        port: u16,
        routes: Routes,
        limits: Option<&Enforced>,
        concurrency: Concurrency,
    ) -> io::Result<Self> {
        let place = Place::take(port).await?;
        let edge = EdgeOptions::default();
        Ok(Self::start_at(place, app, identity, routes, limits, concurrency, &edge))
    }

    /// [`Gateway::start_within`], on a port that was taken before, with an edge as it is told.
    #[must_use]
    pub fn start_at(
        place: Place,
        app: Arc<App>,
        identity: Identity,
        routes: Routes,
        limits: Option<&Enforced>,
        concurrency: Concurrency,
        edge: &EdgeOptions,
    ) -> Self {
        let Place { listener, address } = place;
        let state = Arc::new(GatewayState {
            app,
            identity,
            routes,
            started_ms: Utc::now().timestamp_millis(),
            requests: AtomicU64::new(0),
            places: Arc::new(Semaphore::new(CONCURRENCY.into())),
            payment_places: Arc::new(Semaphore::new(PAYMENT_CONCURRENCY.into())),
            entry_places: Arc::new(Semaphore::new(ENTRY_CONCURRENCY.into())),
            metered: limits.map(Metered::new),
            concurrency,
            edge: Edge::new(edge),
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let service = Router::new()
            .fallback(serve)
            .with_state(Arc::clone(&state))
            .into_make_service_with_connect_info::<Peer>();
        let connections = max_connections(open_files::limit());
        let listener = connections::Limited::new(listener, connections, Deadlines::default());
        let server = axum::serve(listener, service).with_graceful_shutdown(async {
            // Resolves when the handle sends or, as it always does, drops its end.
            let _dropped = stopped.await;
        });
        let server = tokio::spawn(async move { server.await });
        Self { address, state, stop: Some(stop), server }
    }

    /// The address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// True if it serves no more though nobody has stopped it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.server.is_finished()
    }

    /// Takes no more requests, and waits until those it took are answered.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        let limit = Duration::from_secs(STOP_SECONDS);
        if tokio::time::timeout(limit, &mut self.server).await.is_err() {
            tracing::warn!("connections that did not close are cut off");
        }
        // Functions whose callers have hung up still run. A place is free when its function ended.
        let all = async {
            let _places = self.state.places.acquire_many(CONCURRENCY.into()).await;
            let _places = self.state.payment_places.acquire_many(PAYMENT_CONCURRENCY.into()).await;
            let _places = self.state.entry_places.acquire_many(ENTRY_CONCURRENCY.into()).await;
        };
        if tokio::time::timeout(limit, all).await.is_err() {
            tracing::warn!("functions that did not end are cut off");
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The state that every request shares.
#[derive(Debug)]
struct GatewayState {
    app: Arc<App>,
    identity: Identity,
    routes: Routes,
    started_ms: i64,
    requests: AtomicU64,
    places: Arc<Semaphore>,
    payment_places: Arc<Semaphore>,
    entry_places: Arc<Semaphore>,
    metered: Option<Metered>,
    concurrency: Concurrency,
    edge: Edge,
}

/// Where a request comes from.
#[derive(Debug, Clone)]
struct Peer {
    address: SocketAddr,
    progress: Progress,
}

impl Connected<IncomingStream<'_, connections::Limited>> for Peer {
    fn connect_info(stream: IncomingStream<'_, connections::Limited>) -> Self {
        Self { address: *stream.remote_addr(), progress: stream.io().progress() }
    }
}

#[cfg(test)]
impl Peer {
    /// A client at this address.
    fn at(address: SocketAddr) -> Self {
        Self { address, progress: Progress::unlimited() }
    }
}

/// The most connections open at once, where so many files may be open.
fn max_connections(open_files: Option<u64>) -> usize {
    let lacking = open_files.map_or(0, |limit| open_files::NEEDED.saturating_sub(limit));
    let lacking = usize::try_from(lacking).unwrap_or(usize::MAX);
    MAX_CONNECTIONS.saturating_sub(lacking).max(MIN_CONNECTIONS)
}

async fn serve(
    State(state): State<Arc<GatewayState>>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
) -> Response {
    peer.progress.reads_body();
    let response = edge::serve(&state, &peer, request).await;
    peer.progress.answered();
    response
}

impl GatewayState {
    /// The answer of the API to a request, in time.
    async fn respond(&self, peer: &Peer, request: Request) -> Response {
        let timeout = self.metered.as_ref().map_or(TIMEOUT, |_| Metered::timeout());
        match tokio::time::timeout(timeout, self.serve(peer, request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(refusal)) => self.refuse(refusal),
            Err(_elapsed) => self.refuse(Refusal::TooSlow),
        }
    }

    async fn serve(&self, peer: &Peer, request: Request) -> Result<Response, Refusal> {
        let (parts, body) = request.into_parts();
        if let Some(metered) = &self.metered {
            metered.check(&parts)?;
        }
        check_host(&parts)?;
        let found = self.find(&parts);
        if let Some(metered) = &self.metered {
            metered.admit(found.as_ref().ok().and_then(|(route, _)| route.throttle))?;
        }
        let (route, path_parameters) = found?;
        if route.access == Access::Operator && parts.extensions.get::<ThroughEdge>().is_some() {
            return Err(Refusal::NotSigned);
        }
        let authorizer = self.authorize(route.access, &parts)?;
        let body = read(&parts, body).await?;
        peer.progress.answers();
        let facts = event::Facts {
            id: self.request_id(),
            route: route.key,
            path_parameters,
            authorizer,
            peer: peer.address,
            at: Utc::now(),
        };
        let request = event::invocation(event::event(&parts, &body, facts));
        self.invoke(route.target, request).await
    }

    /// The route of a request, and its path parameters. A path of the entry of callbacks with a wrong key is
    /// no route: in API Gateway the key is a part of the route.
    fn find(
        &self,
        parts: &http::request::Parts,
    ) -> Result<(Route, HashMap<String, String>), Refusal> {
        match self.routes.find(&parts.method, parts.uri.path()) {
            Matched::Route(route, parameters) => {
                let has_key = || {
                    let key = parameters.get("key");
                    key.is_some_and(|key| self.app.callbacks.has_key(key))
                };
                if route.access == Access::ProviderWithKey && !has_key() {
                    return Err(Refusal::NoRoute);
                }
                Ok((route, parameters))
            }
            Matched::OtherMethods(methods) => Err(Refusal::OtherMethods(methods)),
            Matched::Nothing => Err(Refusal::NoRoute),
        }
    }

    /// The answer that is a refusal.
    fn refuse(&self, refusal: Refusal) -> Response {
        match &self.metered {
            Some(metered) => metered.answer(refusal),
            None => refusal.into_response(),
        }
    }

    /// The deadline of a function: its own where limits are enforced.
    fn deadline(&self, target: Target) -> Duration {
        match target {
            Target::Function(function) if self.metered.is_some() => function.row().timeout,
            Target::Function(_) | Target::Empty => TIMEOUT,
        }
    }

    /// The caller as the route's authorizer describes it; `None` on a public route.
    fn authorize(
        &self,
        access: Access,
        parts: &http::request::Parts,
    ) -> Result<Option<ApiGatewayRequestAuthorizer>, Refusal> {
        if matches!(access, Access::Anyone | Access::Provider | Access::ProviderWithKey) {
            return Ok(None);
        }
        let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
        // API Gateway joins two headers with a comma, and no signature covers that.
        let only = headers.next().filter(|_| headers.next().is_none());
        let header = only.and_then(|value| value.to_str().ok());
        let (scheme, token) = header.and_then(|value| value.split_once(' ')).unwrap_or_default();
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Refusal::NoToken);
        }
        let (token, now) = (token.trim(), Timestamp::now());
        let refuse = |refused: Refused| {
            tracing::debug!(%refused, "a token was refused");
            Refusal::NoToken
        };
        let mut authorizer = ApiGatewayRequestAuthorizer::default();
        if access == Access::Operator {
            let claims = self.identity.verify(token, now).map_err(refuse)?;
            match claims.role() {
                Role::Operator => authorizer.iam = Some(operator(claims.subject())),
                Role::Buyer => return Err(Refusal::NotOperator),
            }
        } else if let Some(scope) = access.scope() {
            let claims = self.identity.verify_operator(token, now).map_err(refuse)?;
            if !claims.has_scope(scope.as_str()) {
                return Err(Refusal::NoScope(scope));
            }
            authorizer.jwt = Some(jwt(claims, Some(scope)));
        } else {
            let claims = self.identity.verify_buyer(token, now).map_err(refuse)?;
            authorizer.jwt = Some(jwt(claims, None));
        }
        Ok(Some(authorizer))
    }

    /// Runs a function when there is a place for it.
    async fn invoke(
        &self,
        target: Target,
        request: lambda_http::Request,
    ) -> Result<Response, Refusal> {
        let common = Arc::clone(&self.places).acquire_owned();
        let own = match target {
            Target::Function(Function::PayCallback) => Some(&self.payment_places),
            Target::Function(Function::TakeCallback) => Some(&self.entry_places),
            Target::Function(_) | Target::Empty => None,
        };
        let place = match own {
            Some(own) => tokio::select! {
                biased;
                place = Arc::clone(own).acquire_owned() => place,
                place = common => place,
            },
            None => common.await,
        };
        let invocation = match target {
            Target::Function(function) => self.concurrency.begin(function),
            Target::Empty => Concurrency::default().begin(Function::Sales),
        };
        let invocation = invocation.map_err(|_throttled| Refusal::NoConcurrency)?;
        let app = Arc::clone(&self.app);
        let answered = invoke(self.deadline(target), async move {
            // Held until the function ends. Nobody closes the semaphores; were one closed, there
            // would be no limit.
            let (_place, _invocation) = (place, invocation);
            match target {
                Target::Function(function) => answer(&app, function, request).await,
                Target::Empty => Answer(serde_json::Map::new()).into_response(),
            }
        });
        match answered.await {
            Ok(response) => Ok(event::answer(response)),
            Err(failure) => {
                tracing::error!(?target, %failure, "an invocation failed");
                Err(match failure {
                    Failure::Panicked => Refusal::Failed,
                    // A function that is ended by its own deadline has failed.
                    Failure::TimedOut(_) if self.metered.is_some() => Refusal::Failed,
                    Failure::TimedOut(_) => Refusal::TooSlow,
                })
            }
        }
    }

    /// A request id, unique in this gateway.
    fn request_id(&self) -> String {
        format!("{:x}-{:x}", self.started_ms, self.requests.fetch_add(1, Ordering::Relaxed))
    }
}

/// The bearer of a token as the JWT authorizer describes them.
fn jwt(claims: Claims, scope: Option<Scope>) -> ApiGatewayRequestAuthorizerJwtDescription {
    let mut jwt = ApiGatewayRequestAuthorizerJwtDescription::default();
    jwt.claims = claims.into_inner();
    jwt.scopes = scope.map(|scope| vec![scope.as_str().to_owned()]);
    jwt
}

/// The operator as the IAM authorizer describes it.
pub fn operator(name: &str) -> ApiGatewayRequestAuthorizerIamDescription {
    let mut iam = ApiGatewayRequestAuthorizerIamDescription::default();
    iam.account_id = Some(ACCOUNT.to_owned());
    iam.caller_id = Some(name.to_owned());
    iam.user_id = Some(name.to_owned());
    iam.user_arn = Some(format!("arn:aws:iam::{ACCOUNT}:user/{name}"));
    iam
}

/// Refuses a `Host` that is none, a second one, and a request of HTTP/1.1 without one (RFC 9112,
/// section 3.2): the Lambda runtime builds a URL from the header without checking it.
fn check_host(parts: &http::request::Parts) -> Result<(), Refusal> {
    let mut hosts = parts.headers.get_all(HOST).iter();
    let Some(host) = hosts.next() else {
        let is_optional = parts.version < http::Version::HTTP_11;
        let missing = Refusal::BadRequest("The Host header is missing.");
        return if is_optional { Ok(()) } else { Err(missing) };
    };
    if hosts.next().is_some() {
        return Err(Refusal::BadRequest("The Host header is given twice."));
    }
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(byte);
    let authority = host.to_str().ok().and_then(|host| host.parse::<http::uri::Authority>().ok());
    // The runtime's parser is stricter: of ports, and of what looks like an IP address.
    let is_in_a_url = |authority: http::uri::Authority| {
        reqwest::Url::parse(&format!("http://{authority}/")).is_ok()
    };
    let is_valid = authority.is_some_and(is_in_a_url) && host.as_bytes().iter().all(is_plain);
    if is_valid { Ok(()) } else { Err(Refusal::BadRequest("The Host header names no host.")) }
}

/// The whole body, if it is not too large.
async fn read(parts: &http::request::Parts, body: Body) -> Result<Bytes, Refusal> {
    let announced = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced: usize = announced.and_then(|text| text.parse().ok()).unwrap_or(0);
    if announced > MAX_DRAIN_BYTES {
        return Err(Refusal::TooLarge(MAX_BODY_BYTES));
    }
    let mut chunks = body.into_data_stream();
    let mut whole = Vec::with_capacity(announced.min(MAX_BODY_BYTES));
    let mut count = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_gone| Refusal::BadRequest("The body ended too early."))?;
        count += chunk.len();
        if count > MAX_DRAIN_BYTES {
            break;
        }
        if count <= MAX_BODY_BYTES {
            whole.extend_from_slice(&chunk);
        }
    }
    if count > MAX_BODY_BYTES { Err(Refusal::TooLarge(MAX_BODY_BYTES)) } else { Ok(whole.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_table_of_limits() {
        use fake_limits::table::{GATEWAY_BODY_BYTES, INVOCATION_BYTES};
        let limits = (INVOCATION_BYTES.size(), GATEWAY_BODY_BYTES.size());
        assert_eq!((MAX_BODY_BYTES, MAX_DRAIN_BYTES), limits);
    }

    #[test]
    fn fewer_files_mean_fewer_connections() {
        let most = |open_files| max_connections(open_files);
        assert_eq!([most(None), most(Some(1024)), most(Some(1_000_000))], [MAX_CONNECTIONS; 3]);
        assert_eq!(most(Some(924)), MAX_CONNECTIONS - 100);
        assert_eq!(most(Some(256)), MIN_CONNECTIONS);
    }

    #[test]
    fn a_request_names_its_host_once_unless_it_is_older_than_that_rule() {
        let check = |version: http::Version, hosts: &[&str]| {
            let mut request = http::Request::get("/sales").version(version);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            check_host(&request.body(()).unwrap().into_parts().0)
        };
        use http::Version;
        assert_eq!(check(Version::HTTP_11, &["localhost:8080"]), Ok(()));
        assert_eq!(check(Version::HTTP_10, &[]), Ok(()));
        for (version, hosts) in [
            (Version::HTTP_11, &[][..]),
            (Version::HTTP_11, &["a", "a"]),
            (Version::HTTP_10, &["a[b"]),
        ] {
            let refused = check(version, hosts);
            assert!(matches!(refused, Err(Refusal::BadRequest(_))), "{version:?} {hosts:?}");
        }
    }
}
