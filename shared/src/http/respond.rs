//! Turns the reply of a handler into a response: status, content type, caching.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use lambda_http::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use lambda_http::http::{HeaderMap, HeaderValue, StatusCode};
use lambda_http::{Body, Response};
use serde::Serialize;
use tokio::time::timeout;

use crate::http::problem::Problem;
use crate::runtime::metrics;
use engine::ports::StoreError;

/// The deadline of a request. Each step has a limit of its own, but a chain of steps may take longer than the
/// function's deadline, and then the caller would get no answer at all. At this earlier deadline the caller is told
/// that the outcome is unknown, and can ask for it.
pub const MAX_ANSWER: Duration = Duration::from_secs(8);
/// The deadline of a request that publishes a sale, which is written seat by seat.
pub const MAX_PUBLISH: Duration = Duration::from_secs(27);

/// `200 OK` with a JSON body for this caller only: no cache keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer<T>(pub T);

/// `201 Created` with the created thing as JSON, for this caller only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created<T>(pub T);

/// `200 OK` with a JSON body for everyone, which caches keep for `max_age_seconds`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cacheable<T> {
    /// The value that the body has as JSON.
    pub body: T,
    /// The time for which caches may keep the reply, in seconds.
    pub max_age_seconds: u32,
}

/// `200 OK` with a fixed JSON document for everyone, which caches keep for `max_age_seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Document {
    /// The document's JSON text.
    pub json: &'static str,
    /// The time for which caches may keep the reply, in seconds.
    pub max_age_seconds: u32,
}

/// `200 OK` with a JSON body for everyone that never changes: caches keep it for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Immutable<T>(pub T);

/// `200 OK` with a fixed plain text, such as the acknowledgement that a payment provider asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainText(pub &'static str);

/// `200 OK` with a text that is JSON already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText {
    /// The JSON text of the body.
    pub json: String,
    /// The time for which caches may keep the reply, in seconds; `None`: it is for this caller only.
    pub max_age_seconds: Option<u32>,
}

/// `200 OK` with a page of lines for everyone, each a JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonLines {
    /// The lines, without line feeds.
    pub lines: Vec<String>,
    /// True if no line can be added to the page. Caches then keep the page for good, otherwise for one second.
    pub is_full: bool,
}

/// `200 OK` with a page of a table as comma-separated values (RFC 4180), for this caller only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Csv {
    /// The heading and the lines of the table.
    pub text: String,
    /// The cursor of the next page, which the header [`NEXT_CURSOR`] carries; `None` at the end.
    pub next: Option<String>,
}

/// `200 OK` with an HTML page for everyone, without script, style or anything else to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Html {
    /// The page's markup, in UTF-8.
    pub markup: String,
    /// The time for which caches may keep the reply, in seconds.
    pub max_age_seconds: u32,
}

/// A page for everyone that loads the script and the styles of the pages: `200 OK`, or the status of a problem, which the
/// page then says to people in place of a problem document.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedPage {
    /// The page's markup, in UTF-8.
    pub markup: String,
    /// Its content security policy.
    pub policy: String,
    /// The time for which caches may keep the reply, in seconds. No cache keeps that of a problem.
    pub max_age_seconds: u32,
    /// The problem, if it is the page of one.
    pub problem: Option<Problem>,
}

/// `200 OK` with an XML document for everyone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xml {
    /// The document, in UTF-8.
    pub markup: String,
    /// The time for which caches may keep the reply, in seconds.
    pub max_age_seconds: u32,
}

/// `200 OK` with a long JSON text for everyone, compressed where the caller takes that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeJson {
    /// The JSON text, uncompressed.
    pub json: Arc<str>,
    /// True if the request names this very text: the reply never changes, and caches keep it for good. Otherwise no
    /// cache keeps it.
    pub is_final: bool,
    /// True if the caller takes a body compressed by gzip ([`takes_gzip`]).
    pub may_compress: bool,
}

/// `200 OK` with a file for everyone that never changes: caches keep it for good. A browser that opens it by itself runs
/// nothing of it and takes it for nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFile {
    /// The file's content.
    pub bytes: Vec<u8>,
    /// Its media type.
    pub media_type: &'static str,
}

/// True if the headers of a request say that the caller takes a body compressed by gzip.
/// Source: RFC 9110, section 12.5.3.
#[must_use]
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let listed = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    listed.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q="));
        let is_refused = |weight: &str| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0);
        is_gzip && !weight.is_some_and(is_refused)
    })
}

/// A text compressed by gzip (RFC 1952).
fn gzip(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// The header with the cursor of the next page of a table.
pub const NEXT_CURSOR: &str = "x-next-cursor";
/// The content type of a table.
pub const CSV: &str = "text/csv; charset=utf-8";
/// The content type of a page.
pub const HTML: &str = "text/html; charset=utf-8";
/// The content type of an XML document.
pub const XML: &str = "application/xml; charset=utf-8";
/// The content security policy of a page that loads nothing.
pub const NOTHING_TO_LOAD: &str =
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The content type of lines of JSON.
pub const JSON_LINES: &str = "application/x-ndjson";
/// The caching of a reply that never changes.
/// Source: RFC 8246.
pub const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// A successful reply of a handler, which knows its status, content type and caching.
pub trait Reply {
    /// Makes the response.
    fn into_response(self) -> Response<Body>;
}

impl<T: Serialize> Reply for Answer<T> {
    fn into_response(self) -> Response<Body> {
        json(StatusCode::OK, &self.0)
    }
}

impl<T: Serialize> Reply for Created<T> {
    fn into_response(self) -> Response<Body> {
        json(StatusCode::CREATED, &self.0)
    }
}

impl<T: Serialize> Reply for Cacheable<T> {
    fn into_response(self) -> Response<Body> {
        for_everyone(json(StatusCode::OK, &self.body), self.max_age_seconds)
    }
}

impl Reply for Document {
    fn into_response(self) -> Response<Body> {
        for_everyone(json_text(StatusCode::OK, self.json), self.max_age_seconds)
    }
}

impl<T: Serialize> Reply for Immutable<T> {
    fn into_response(self) -> Response<Body> {
        for_ever(json(StatusCode::OK, &self.0))
    }
}

impl Reply for PlainText {
    fn into_response(self) -> Response<Body> {
        let mut response = json_text(StatusCode::OK, self.0);
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, plain);
        response
    }
}

impl Reply for JsonText {
    fn into_response(self) -> Response<Body> {
        let response = json_text(StatusCode::OK, self.json);
        match self.max_age_seconds {
            Some(seconds) => for_everyone(response, seconds),
            None => response,
        }
    }
}

impl Reply for JsonLines {
    fn into_response(self) -> Response<Body> {
        let text: String = self.lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let mut response = json_text(StatusCode::OK, text);
        let lines = HeaderValue::from_static(JSON_LINES);
        response.headers_mut().insert(CONTENT_TYPE, lines);
        if self.is_full { for_ever(response) } else { for_everyone(response, 1) }
    }
}

impl Reply for Csv {
    fn into_response(self) -> Response<Body> {
        let mut response = json_text(StatusCode::OK, self.text);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(CSV));
        if let Some(next) = self.next.and_then(|next| HeaderValue::from_str(&next).ok()) {
            headers.insert(NEXT_CURSOR, next);
        }
        response
    }
}

impl Reply for Html {
    fn into_response(self) -> Response<Body> {
        let mut response =
            for_everyone(json_text(StatusCode::OK, self.markup), self.max_age_seconds);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING_TO_LOAD));
        response
    }
}

impl Reply for ScriptedPage {
    fn into_response(self) -> Response<Body> {
        let Self { markup, policy, max_age_seconds, problem } = self;
        let mut response = match &problem {
            None => for_everyone(json_text(StatusCode::OK, markup), max_age_seconds),
            Some(problem) => {
                metrics::refused(problem.kind());
                json_text(problem.kind().status(), markup)
            }
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(HTML));
        // A page without its policy would be one that runs anything.
        let policy = HeaderValue::from_str(&policy);
        let policy = policy.unwrap_or(HeaderValue::from_static(NOTHING_TO_LOAD));
        headers.insert(CONTENT_SECURITY_POLICY, policy);
        if let Some(seconds) = problem.and_then(|problem| problem.retry_after_seconds()) {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl Reply for Xml {
    fn into_response(self) -> Response<Body> {
        let mut response =
            for_everyone(json_text(StatusCode::OK, self.markup), self.max_age_seconds);
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(XML));
        response
    }
}

impl Reply for LargeJson {
    fn into_response(self) -> Response<Body> {
        let packed = self.may_compress.then(|| gzip(&self.json)).and_then(Result::ok);
        let is_packed = packed.is_some();
        let body = packed.map_or_else(|| Body::from(self.json.as_ref()), Body::from);
        let mut response = json_text(StatusCode::OK, body);
        let headers = response.headers_mut();
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
        if is_packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if self.is_final { for_ever(response) } else { response }
    }
}

impl Reply for KeptFile {
    fn into_response(self) -> Response<Body> {
        let mut response = for_ever(json_text(StatusCode::OK, self.bytes));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media_type));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING_TO_LOAD));
        response
    }
}

/// The response with a header by which caches keep it for good.
fn for_ever(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE));
    response
}

/// The response with a header by which caches keep it for `max_age_seconds`.
fn for_everyone(mut response: Response<Body>, max_age_seconds: u32) -> Response<Body> {
    if let Ok(caching) = HeaderValue::from_str(&format!("public, max-age={max_age_seconds}")) {
        response.headers_mut().insert(CACHE_CONTROL, caching);
    }
    response
}

/// The response to a request: the handler's reply or its problem, or an unknown outcome after [`MAX_ANSWER`]. A handler
/// may be cut off anywhere: the same request, sent again, finishes its work.
pub fn respond<R: Reply>(
    handler: impl Future<Output = Result<R, Problem>>,
) -> impl Future<Output = Response<Body>> {
    respond_within(MAX_ANSWER, handler)
}

/// [`respond`] with `limit` as the time of the handler.
pub fn respond_within<R: Reply>(
    limit: Duration,
    handler: impl Future<Output = Result<R, Problem>>,
) -> impl Future<Output = Response<Body>> {
    // The handler is boxed here and not when it is awaited: a flow over three clients is a large future, and an async
    // function keeps room for such an argument in each future around it.
    let handler = Box::pin(handler);
    async move {
        match timeout(limit, handler).await {
            Ok(Ok(reply)) => reply.into_response(),
            Ok(Err(problem)) => refuse(problem),
            Err(late) => refuse(StoreError::Unknown(format!("{late} within {limit:?}"))),
        }
    }
}

/// The response to a refused request: a problem document (RFC 9457), with `Retry-After` if trying again is worth it.
pub fn refuse(problem: impl Into<Problem>) -> Response<Body> {
    let problem = problem.into();
    metrics::refused(problem.kind());
    let mut response = json(problem.kind().status(), &problem);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    if let Some(seconds) = problem.retry_after_seconds() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn json(status: StatusCode, body: &impl Serialize) -> Response<Body> {
    // Our replies are structs of text and numbers, which JSON can always carry.
    let text = serde_json::to_string(body)
        .unwrap_or_else(|error| unreachable!("a reply could not be written: {error}"));
    json_text(status, text)
}

fn json_text(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(text.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::problem::Kind;

    fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
        response.headers().get(name).and_then(|value| value.to_str().ok())
    }

    #[tokio::test]
    async fn replies_say_what_they_are_and_how_long_they_keep() {
        let created = respond(async { Ok(Created("x")) }).await;
        assert_eq!(created.status(), 201);
        assert_eq!(header(&created, "content-type"), Some("application/json"));
        assert_eq!(header(&created, "cache-control"), Some("no-store"));
        let cached = Cacheable { body: 1, max_age_seconds: 1 }.into_response();
        assert_eq!(header(&cached, "cache-control"), Some("public, max-age=1"));
        let document = Document { json: "{}", max_age_seconds: 300 }.into_response();
        assert_eq!(header(&document, "content-type"), Some("application/json"));
        assert_eq!(header(&document, "cache-control"), Some("public, max-age=300"));
        assert_eq!(Answer(()).into_response().status(), 200);
        let kept = Immutable(1).into_response();
        assert_eq!(header(&kept, "cache-control"), Some(IMMUTABLE));
        for (max_age_seconds, caching) in [(Some(1), "public, max-age=1"), (None, "no-store")] {
            let text = JsonText { json: "{}".to_owned(), max_age_seconds }.into_response();
            assert_eq!(header(&text, "cache-control"), Some(caching));
        }
        for (is_full, caching) in [(true, IMMUTABLE), (false, "public, max-age=1")] {
            let lines = vec!["1".to_owned(), "2".to_owned()];
            let page = JsonLines { lines, is_full }.into_response();
            assert_eq!(header(&page, "cache-control"), Some(caching));
            assert_eq!(header(&page, "content-type"), Some(JSON_LINES));
            let Body::Text(text) = page.into_body() else { panic!("no text") };
            assert_eq!(text, "1\n2\n");
        }
    }

    #[test]
    fn a_long_text_is_compressed_for_who_takes_it() {
        let of = |accepted: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in accepted {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            takes_gzip(&headers)
        };
        for accepted in ["gzip", "br, GZIP", "deflate;q=1, gzip;q=0.5", "gzip; q=1.0"] {
            assert!(of(&[accepted]), "{accepted}");
        }
        assert!(of(&["br", "gzip"]));
        for refused in ["", "br", "gzip;q=0", "br, gzip; q=0.000", "xgzip"] {
            assert!(!of(&[refused]), "{refused}");
        }
        let text = "[[1,2],[3,4]]".repeat(1_000);
        let reply = |is_final, may_compress| {
            LargeJson { json: text.as_str().into(), is_final, may_compress }.into_response()
        };
        let plain = reply(false, false);
        let said = ["content-encoding", "cache-control", "vary"].map(|name| header(&plain, name));
        assert_eq!(said, [None, Some("no-store"), Some("Accept-Encoding")]);
        let packed = reply(true, true);
        let said = ["content-encoding", "cache-control", "content-type"];
        let said = said.map(|name| header(&packed, name));
        assert_eq!(said, [Some("gzip"), Some(IMMUTABLE), Some("application/json")]);
        let Body::Binary(bytes) = packed.into_body() else { panic!("no bytes") };
        let mut read = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&*bytes), &mut read)
            .unwrap();
        assert!(read == text && bytes.len() * 10 < text.len(), "{}", bytes.len());
    }

    #[tokio::test]
    async fn a_handler_that_takes_too_long_is_left_and_its_outcome_called_unknown() {
        let endless = std::future::pending::<Result<Answer<()>, Problem>>();
        let late = respond_within(Duration::from_millis(1), endless).await;
        assert_eq!(late.status(), 503);
        let Body::Text(text) = late.into_body() else { panic!("no text") };
        assert!(text.contains("/problems/outcome-unknown"), "{text}");
    }

    #[test]
    fn a_problem_says_when_to_come_back() {
        let problem = Problem::new(Kind::Waiting, "later").retry_after_ms(1001);
        let response = refuse(problem);
        assert_eq!(response.status(), 429);
        assert_eq!(header(&response, "content-type"), Some("application/problem+json"));
        assert_eq!(header(&response, "retry-after"), Some("2"));
        assert_eq!(header(&response, "cache-control"), Some("no-store"));
    }
}
