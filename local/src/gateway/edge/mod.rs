//! The part of CloudFront: one origin for the pages and the API.
//!
//! What is below `/api` is the API, with that prefix taken off. Any other path is the API's if it is one of
//! its routes, as at its own host, and else a page.

mod files;
mod headers;
mod pages;

use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use http::uri::PathAndQuery;
use http::{Method, Uri};

use self::pages::{Pages, Target};
use super::{GatewayState, Matched, Peer, Refusal, check_host};
use crate::pages_config::PagesConfig;

/// The prefix of the API on the origin of the pages.
pub const API: &str = "/api";

/// What the edge is told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EdgeOptions {
    /// The directory of the built pages.
    pub pages: Option<PathBuf>,
    /// The settings of the pages.
    pub config: PagesConfig,
}

/// The edge of a gateway.
#[derive(Debug)]
pub(super) struct Edge {
    pages: Pages,
}

impl Edge {
    /// An edge with nothing in its cache.
    pub(super) fn new(options: &EdgeOptions) -> Self {
        Self { pages: Pages::new(options.pages.as_deref(), &options.config) }
    }
}

/// Which part of the origin answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The API, behind the edge.
    EdgeApi,
    /// The API at its own host.
    OwnApi,
    /// The pages.
    Pages,
    /// The pages, which take no such method.
    PagesOnly,
}

/// Answers a request.
pub(super) async fn serve(state: &Arc<GatewayState>, peer: &Peer, request: Request) -> Response {
    match part(state, request.method(), request.uri().path()) {
        Part::EdgeApi => state.respond(peer, without_prefix(request)).await,
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
    if state.routes.find(method, path) != Matched::Nothing {
        return Part::OwnApi;
    }
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_page = Target::from_path(path) != Target::Nothing;
    match (state.edge.pages.are_there(), is_read, is_page) {
        (true, true, _) | (false, true, true) => Part::Pages,
        (true, false, true) => Part::PagesOnly,
        (_, false, _) | (false, true, false) => Part::OwnApi,
    }
}

/// The same request as the API gets it: without the prefix.
fn without_prefix(mut request: Request) -> Request {
    let target = request.uri().path_and_query().map_or("", PathAndQuery::as_str);
    let rest = target.strip_prefix(API).unwrap_or(target);
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    if let Ok(uri) = rest.parse::<Uri>() {
        *request.uri_mut() = uri;
    }
    request
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

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
}
