//! The part of CloudFront: one origin for the pages and the API.
//!
//! What is below `/api` is the API, with that prefix taken off and the edge's secret added; what anyone may be shown
//! is cached as its origin says. Any other path is the API's if it is one of its routes, as at its own host, and else
//! a page.

mod cache;
mod files;
mod headers;
mod pages;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::response::Response;
use http::header::{COOKIE, HOST};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use shared::hex::to_hex;
use shared::http::edge::{SECRET_HEADER, VIEWER_HEADER};
use shared::http::origin::Origin;
use shared::http::routes::{Access, ROUTES, matched};

use self::cache::{Answer, Asking, Cache, LookUp, Waiting};
use self::pages::{Pages, Target};
use super::{GatewayState, MAX_BODY_BYTES, Matched, Peer, Refusal, Routes, check_host};
use crate::data_dir::Secrets;
use crate::pages_config::PagesConfig;

/// The prefix of the API on the origin of the pages.
pub const API: &str = "/api";
/// What the headers begin with that only the edge may send.
const OWN_HEADERS: [&str; 2] = ["x-onsale-", "cloudfront-"];

/// What the edge is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EdgeOptions {
    /// The directory of the built pages.
    pub pages: Option<PathBuf>,
    /// The settings of the pages.
    pub config: PagesConfig,
    /// The origin of the pages, if it is known.
    pub origin: Option<Origin>,
    /// The secret that it adds to each request.
    pub secret: Option<String>,
}

/// The secret that the edge of an engine adds. It is made from the key of admissions, so that a data directory needs no
/// new secret, and says nothing of it.
#[must_use]
pub fn edge_secret(secrets: &Secrets) -> String {
    let key = hmac::Key::new(HMAC_SHA256, secrets.admission.as_bytes());
    let tag = hmac::sign(&key, b"secret of the edge");
    to_hex(tag.as_ref())
}

/// A request has come through the edge: an extension of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThroughEdge;

/// The edge of a gateway.
#[derive(Debug)]
pub(super) struct Edge {
    pages: Pages,
    secret: Option<HeaderValue>,
    cache: Cache,
}

impl Edge {
    /// An edge with nothing in its cache.
    pub(super) fn new(options: &EdgeOptions) -> Self {
        let origin = options.origin.as_ref();
        let pages = Pages::new(options.pages.as_deref(), &options.config, origin);
        let secret = options.secret.as_deref().and_then(|text| HeaderValue::from_str(text).ok());
        Self { pages, secret, cache: Cache::default() }
    }

    /// The request as its origin gets it: what only the edge may say comes from the edge, and cookies stay behind.
    fn forwarded(&self, mut request: Request, peer: &Peer) -> Request {
        request = without_prefix(request);
        let headers = request.headers_mut();
        let own = |name: &&HeaderName| {
            let is_own = OWN_HEADERS.iter().any(|prefix| name.as_str().starts_with(prefix));
            **name == COOKIE || is_own
        };
        let own: Vec<HeaderName> = headers.keys().filter(own).cloned().collect();
        for name in own {
            headers.remove(name);
        }
        if let Ok(viewer) = HeaderValue::from_str(&peer.address.ip().to_string()) {
            headers.insert(VIEWER_HEADER, viewer);
        }
        self.sign(headers);
        request.extensions_mut().insert(ThroughEdge);
        request
    }

    /// The request for a cached answer: of nobody, with nothing that is not in its key.
    fn anonymous(&self, parts: &Parts, key: &str) -> Result<Request, Refusal> {
        let uri = key.parse().map_err(|_no_uri| Refusal::NoRoute)?;
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = uri;
        *request.version_mut() = parts.version;
        let headers = request.headers_mut();
        if let Some(host) = parts.headers.get(HOST) {
            headers.insert(HOST, host.clone());
        }
        self.sign(headers);
        request.extensions_mut().insert(ThroughEdge);
        Ok(request)
    }

    fn sign(&self, headers: &mut HeaderMap) {
        if let Some(secret) = &self.secret {
            headers.insert(SECRET_HEADER, secret.clone());
        }
    }
}

/// Which part of the origin answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The API, behind the edge.
    EdgeApi,
    /// The API, behind the edge, for what stands among the pages.
    AmongPages,
    /// The API at its own host.
    OwnApi,
    Pages,
    /// The pages, which take no such method.
    PagesOnly,
}

pub(super) async fn serve(state: &Arc<GatewayState>, peer: &Peer, request: Request) -> Response {
    match part(state, request.method(), request.uri().path()) {
        Part::EdgeApi => api(state, peer, state.edge.forwarded(request, peer)).await,
        Part::AmongPages => {
            let path = request.uri().path().to_owned();
            let mut response = api(state, peer, state.edge.forwarded(request, peer)).await;
            headers::set_others(response.headers_mut(), &path);
            response
        }
        Part::OwnApi => state.respond(peer, request).await,
        Part::PagesOnly => Refusal::OtherMethods(vec!["GET", "HEAD"]).into_response(),
        Part::Pages => {
            peer.progress.answers();
            let (parts, _body) = request.into_parts();
            match check_host(&parts) {
                Ok(()) => state.edge.pages.answer(parts.uri.path(), &parts.headers),
                Err(refusal) => refusal.into_response(),
            }
        }
    }
}

/// The part that a request is for.
fn part(state: &GatewayState, method: &Method, path: &str) -> Part {
    if path.strip_prefix(API).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        return Part::EdgeApi;
    }
    match state.routes.find(method, path) {
        Matched::Nothing => {}
        Matched::Route(..) | Matched::OtherMethods(_) if is_among_pages(path) => {
            return Part::AmongPages;
        }
        Matched::Route(..) | Matched::OtherMethods(_) => return Part::OwnApi,
    }
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_page = Target::from_path(path) != Target::Nothing;
    match (state.edge.pages.are_there(), is_read, is_page) {
        (true, true, _) | (false, true, true) => Part::Pages,
        (true, false, true) => Part::PagesOnly,
        (_, false, _) | (false, true, false) => Part::OwnApi,
    }
}

/// True of the path of a route that stands among the pages.
fn is_among_pages(path: &str) -> bool {
    ROUTES.iter().any(|row| row.is_among_pages() && matched(row.path, path).is_some())
}

/// The same request without the prefix.
fn without_prefix(mut request: Request) -> Request {
    let target = request.uri().path_and_query().map_or("", PathAndQuery::as_str);
    let rest = target.strip_prefix(API).unwrap_or(target);
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    if let Ok(uri) = rest.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    request
}

/// Answers a request for the API from the cache, if the cache may have it.
async fn api(state: &Arc<GatewayState>, peer: &Peer, request: Request) -> Response {
    let Some(queries) = cached_by(state.routes, request.method(), request.uri().path()) else {
        return state.respond(peer, request).await;
    };
    peer.progress.answers();
    let (parts, _body) = request.into_parts();
    let key = cache::key(parts.uri.path(), parts.uri.query(), queries);
    let asks = check_host(&parts).and_then(|()| state.edge.anonymous(&parts, &key));
    let request = match asks {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(),
    };
    match state.edge.cache.look_up(&key, Instant::now()) {
        LookUp::Kept(answer, age) => answer.response(Some(age)),
        LookUp::UnderWay(waiting) => shown(waiting).await,
        LookUp::Ask(asking) => {
            let waiting = asking.subscribe();
            let (state, peer) = (Arc::clone(state), peer.clone());
            // It goes on when its client hangs up: others wait for the same answer.
            tokio::spawn(async move { ask(&state, &peer, request, &key, asking).await });
            shown(waiting).await
        }
    }
}

/// The query parameters by which answers of a route differ, if its answers are cached: those that anyone may read.
fn cached_by(routes: Routes, method: &Method, path: &str) -> Option<&'static [&'static str]> {
    match routes.find(method, path) {
        Matched::Route(route, _) if *method == Method::GET && route.access == Access::Anyone => {
            Some(route.queries)
        }
        Matched::Route(..) | Matched::OtherMethods(_) | Matched::Nothing => None,
    }
}

/// Asks the origin, and gives its answer to everybody who waits for it.
async fn ask(state: &Arc<GatewayState>, peer: &Peer, request: Request, key: &str, asking: Asking) {
    let (head, body) = state.respond(peer, request).await.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else { return };
    let answer = Answer::new(head.status, head.headers, body);
    let shown = state.edge.cache.finish(key, answer, Instant::now());
    asking.send_replace(Some(shown));
}

/// The answer that is waited for.
async fn shown(mut waiting: Waiting) -> Response {
    let shown = waiting.wait_for(Option::is_some).await.ok().and_then(|shown| shown.clone());
    match shown {
        Some((answer, age)) => answer.response(age),
        None => Refusal::Failed.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_taken_off_once() {
        for (from, to) in [
            ("/api", "/"),
            ("/api/", "/"),
            ("/api?x=1", "/?x=1"),
            ("/api/sales", "/sales"),
            ("/api/sales/g35?from=a%2Fb", "/sales/g35?from=a%2Fb"),
            ("/api/api/sales", "/api/sales"),
            ("/api//sales", "//sales"),
        ] {
            let request = http::Request::get(from).body(Body::empty()).unwrap();
            assert_eq!(without_prefix(request).uri().to_string(), to, "{from}");
        }
    }

    #[test]
    fn only_what_anyone_may_read_is_cached() {
        let cached = |method: Method, path: &str| cached_by(Routes::Api, &method, path);
        assert_eq!(cached(Method::GET, "/sales"), Some(&["cursor", "limit"][..]));
        assert_eq!(cached(Method::GET, "/sales/g35/room"), Some(&[][..]));
        for (method, path) in [
            (Method::GET, "/orders"),
            (Method::GET, "/orders/42"),
            (Method::HEAD, "/sales"),
            (Method::POST, "/sales/g35/room/beacon"),
            (Method::PUT, "/sales/g35"),
            (Method::GET, "/nothing"),
        ] {
            assert_eq!(cached(method.clone(), path), None, "{method} {path}");
        }
    }

    #[test]
    fn nobody_but_the_edge_speaks_for_the_edge() {
        let options = EdgeOptions { secret: Some("the edge's".to_owned()), ..Default::default() };
        let edge = Edge::new(&options);
        let asked = http::Request::get("/api/sales?limit=1")
            .header(HOST, "localhost")
            .header("Cookie", "a=1")
            .header("X-Onsale-Edge", "invented")
            .header("X-Onsale-Edge", "twice")
            .header("X-Onsale-Viewer", "203.0.113.7")
            .header("CloudFront-Viewer-Country", "XX")
            .header("Authorization", "Bearer x");
        let (parts, body) = asked.body(Body::empty()).unwrap().into_parts();
        let anonymous = edge.anonymous(&parts, "/sales?limit=1").unwrap();
        let names: Vec<&str> = anonymous.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["host", "x-onsale-edge"]);
        assert_eq!(anonymous.uri(), "/sales?limit=1");

        let peer = Peer::at("198.51.100.1:5000".parse().unwrap());
        let forwarded = edge.forwarded(Request::from_parts(parts, body), &peer);
        let headers = forwarded.headers();
        let only = |name: &str| {
            let all: Vec<_> = headers.get_all(name).iter().collect();
            assert_eq!(all.len(), 1, "{name}");
            all[0].to_str().unwrap()
        };
        assert_eq!(only(SECRET_HEADER), "the edge's");
        assert_eq!(only(VIEWER_HEADER), "198.51.100.1");
        assert_eq!(only("authorization"), "Bearer x");
        for gone in ["cookie", "cloudfront-viewer-country"] {
            assert!(!headers.contains_key(gone), "{gone}");
        }
    }
}
