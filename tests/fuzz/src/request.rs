//! Requests as API Gateway hands them to a function, made of untrusted input.

use aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lambda_http::Request;
use lambda_http::http::Uri;
use lambda_http::http::header::HOST;
use serde_json::{Map, Value, json};

pub(crate) const OPERATOR_ISSUER: &str = "https://operators.example";

/// Whom the gateway's authorizers have found the sender to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sender<'a> {
    Nobody,
    /// A buyer, by the `sub` of the token.
    Buyer(&'a str),
    /// An operator, by the ARN of the identity.
    Operator(&'a str),
    /// An operator, by the scopes of a token of the operators' issuer.
    Token(&'a str),
}

/// A request without headers or body.
pub(crate) fn request(method: &str, target: &str, sender: Sender<'_>) -> Request {
    let event = event(method, target, sender, &Map::new(), b"");
    received(&event).unwrap_or_else(|| panic!("{event} is no request"))
}

/// A request as it is written: `METHOD TARGET`, a line `name: value` for each header, a blank line,
/// the body. The headers `buyer`, `operator` and `scopes` say what the authorizers found out.
///
/// `None` if a gateway would not have taken it for a request.
pub(crate) fn read(text: &[u8]) -> Option<Request> {
    let (head, body) = match text.windows(2).position(|end| end == b"\n\n") {
        Some(end) => (&text[..end], &text[end + 2..]),
        None => (text, &b""[..]),
    };
    let mut lines = std::str::from_utf8(head).ok()?.lines();
    let (method, target) = lines.next()?.split_once(' ')?;
    let mut sender = Sender::Nobody;
    let mut headers = Map::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "buyer" => sender = Sender::Buyer(value),
            "operator" => sender = Sender::Operator(value),
            "scopes" => sender = Sender::Token(value),
            // The gateway writes these itself.
            "host" | "x-forwarded-proto" => {}
            name => drop(headers.insert(name.to_owned(), json!(value))),
        }
    }
    received(&event(method, target, sender, &headers, body))
}

/// The request of an event, if a gateway may have written it: the library that makes a request of
/// an event relies on a path and a query of the characters that HTTP allows, on the gateway's own
/// host, and on a body in base64 where it says so.
pub(crate) fn received(event: &str) -> Option<Request> {
    let read: ApiGatewayV2httpRequest = serde_json::from_str(event).ok()?;
    let path = read.raw_path.unwrap_or_default();
    let query = read.raw_query_string.unwrap_or_default();
    let target: Uri = format!("{path}?{query}").parse().ok()?;
    let is_path = path.starts_with('/') && target.path() == path;
    let host = read.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or(read.request_context.domain_name.as_deref()).unwrap_or_default();
    let is_host = host.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'.' | b'-'));
    let protocol = read.headers.get("x-forwarded-proto");
    let is_protocol = protocol.is_none_or(|protocol| protocol == "https" || protocol == "http");
    let stage = read.request_context.stage.unwrap_or_default();
    let is_stage = stage.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"$_-".contains(&byte));
    let body = read.body.as_deref().filter(|_| read.is_base64_encoded).unwrap_or_default();
    let is_body = STANDARD.decode(body).is_ok();
    let may_be =
        is_body && is_path && is_host && is_protocol && is_stage && target.query() == Some(&query);
    may_be.then(|| lambda_http::request::from_str(event).ok()).flatten()
}

fn event(
    method: &str,
    target: &str,
    sender: Sender<'_>,
    headers: &Map<String, Value>,
    body: &[u8],
) -> String {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let authorizer = match sender {
        Sender::Nobody => Value::Null,
        Sender::Buyer(sub) => json!({ "jwt": { "claims": { "sub": sub }, "scopes": null } }),
        Sender::Operator(arn) => json!({ "iam": { "userArn": arn } }),
        Sender::Token(scopes) => json!({ "jwt": { "claims": {
            "iss": OPERATOR_ISSUER, "sub": "zhang", "scope": scopes
        } } }),
    };
    let text = std::str::from_utf8(body).ok();
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
        "headers": headers, "isBase64Encoded": text.is_none(),
        "body": text.map_or_else(|| STANDARD.encode(body), str::to_owned),
        "requestContext": {
            "stage": "$default", "timeEpoch": 0, "authorizer": authorizer,
            "http": { "method": method, "path": path },
        },
    })
    .to_string()
}
