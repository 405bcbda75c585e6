//! A request as API Gateway hands it to a function, and the function's answer back as HTTP.
//!
//! The shape is that of HTTP APIs with payload format 2.0:
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>

use std::collections::HashMap;
use std::net::SocketAddr;

use aws_lambda_events::apigw::{
    ApiGatewayRequestAuthorizer, ApiGatewayV2httpRequest, ApiGatewayV2httpRequestContext,
};
use axum::body::Bytes;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use http::header::{CONTENT_TYPE, COOKIE, HOST, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Version};
use lambda_http::request::LambdaRequest;

/// The AWS account id of everything local.
pub const ACCOUNT: &str = "000000000000";
/// The only stage; its name is not part of the path.
const STAGE: &str = "$default";

/// Facts about a request besides the request itself.
#[derive(Debug)]
pub struct Facts {
    /// Request id, unique in the gateway.
    pub id: String,
    /// Route key, `METHOD /path`.
    pub route: &'static str,
    /// Path parameters by name.
    pub path_parameters: HashMap<String, String>,
    /// The caller; `None` on a public route.
    pub authorizer: Option<ApiGatewayRequestAuthorizer>,
    /// Address of the client.
    pub peer: SocketAddr,
    pub at: DateTime<Utc>,
}

/// The event that the function is invoked with.
pub fn event(parts: &Parts, body: &Bytes, facts: Facts) -> ApiGatewayV2httpRequest {
    let text_of = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let query = parts.uri.query().unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let domain = text_of(HOST).unwrap_or("localhost").to_owned();

    let mut context = ApiGatewayV2httpRequestContext::default();
    context.route_key = Some(facts.route.to_owned());
    context.account_id = Some(ACCOUNT.to_owned());
    context.stage = Some(STAGE.to_owned());
    context.request_id = Some(facts.id);
    context.authorizer = facts.authorizer;
    context.apiid = Some("local".to_owned());
    context.domain_prefix = domain.split('.').next().map(str::to_owned);
    context.domain_name = Some(domain);
    context.time = Some(facts.at.format("%d/%b/%Y:%H:%M:%S %z").to_string());
    context.time_epoch = facts.at.timestamp_millis();
    context.http.method = parts.method.clone();
    context.http.path = Some(path.clone());
    context.http.protocol = Some(protocol(parts.version).to_owned());
    context.http.source_ip = Some(facts.peer.ip().to_string());
    context.http.user_agent = text_of(USER_AGENT).map(str::to_owned);

    let mut event = ApiGatewayV2httpRequest::default();
    event.version = Some("2.0".to_owned());
    event.route_key = Some(facts.route.to_owned());
    event.raw_path = Some(path);
    event.raw_query_string = Some(query.to_owned());
    // Parsing a query string cannot fail: what is no pair is a name without a value.
    event.query_string_parameters = query.parse().unwrap_or_default();
    event.path_parameters = facts.path_parameters;
    event.cookies = cookies(&parts.headers);
    event.headers = joined(&parts.headers, &facts.peer);
    event.request_context = context;
    if !body.is_empty() {
        match as_text(&parts.headers, body) {
            Some(text) => event.body = Some(text.to_owned()),
            None => {
                event.body = Some(BASE64_STANDARD.encode(body));
                event.is_base64_encoded = true;
            }
        }
    }
    event
}

/// The request that the Lambda runtime makes of an event.
pub fn invocation(event: ApiGatewayV2httpRequest) -> lambda_http::Request {
    lambda_http::Request::from(LambdaRequest::ApiGatewayV2(event))
}

/// The HTTP answer to what a function returned.
pub fn answer(returned: lambda_http::Response<lambda_http::Body>) -> axum::response::Response {
    returned.map(|body| match body {
        lambda_http::Body::Text(text) => axum::body::Body::from(text),
        lambda_http::Body::Binary(bytes) => axum::body::Body::from(bytes),
        lambda_http::Body::Empty => axum::body::Body::empty(),
        kind => unreachable!("a body of a kind that the runtime does not have: {kind:?}"),
    })
}

fn protocol(version: Version) -> &'static str {
    if version == Version::HTTP_10 { "HTTP/1.0" } else { "HTTP/1.1" }
}

/// The cookies, one by one; `None` without any.
fn cookies(headers: &HeaderMap) -> Option<Vec<String>> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let each = all.flat_map(|line| line.split(';')).map(|cookie| cookie.trim().to_owned());
    let cookies: Vec<String> = each.filter(|cookie| !cookie.is_empty()).collect();
    (!cookies.is_empty()).then_some(cookies)
}

/// The headers with repeated ones joined by commas, without cookies, and with those that API
/// Gateway adds.
fn joined(headers: &HeaderMap, peer: &SocketAddr) -> HeaderMap {
    let mut joined = HeaderMap::with_capacity(headers.keys_len() + 2);
    for name in headers.keys().filter(|name| **name != COOKIE) {
        let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let first = values.next().unwrap_or_default().to_vec();
        let value = values.fold(first, |mut value, next| {
            value.push(b',');
            value.extend_from_slice(next);
            value
        });
        // Values that were allowed one by one are allowed with a comma between them.
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            joined.insert(name, value);
        }
    }
    if let Ok(peer) = HeaderValue::from_str(&peer.ip().to_string()) {
        joined.insert("x-forwarded-for", peer);
    }
    joined.insert("x-forwarded-proto", HeaderValue::from_static("http"));
    joined
}

/// The body as text, if its type is one that API Gateway passes on as text.
fn as_text<'body>(headers: &HeaderMap, body: &'body [u8]) -> Option<&'body str> {
    const TEXT: [&str; 3] = ["application/json", "application/javascript", "application/xml"];
    let text = match headers.get(CONTENT_TYPE).map(HeaderValue::to_str) {
        None => true,
        Some(Err(_)) => false,
        Some(Ok(content)) => {
            let kind = content.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            kind.starts_with("text/") || TEXT.contains(&kind.as_str())
        }
    };
    if text { std::str::from_utf8(body).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use lambda_http::RequestExt as _;

    use super::*;

    fn parts(builder: http::request::Builder) -> Parts {
        builder.body(()).unwrap().into_parts().0
    }

    fn facts() -> Facts {
        Facts {
            id: "r-1".to_owned(),
            route: "POST /sales/{sale}/orders",
            path_parameters: HashMap::from([("sale".to_owned(), "g35".to_owned())]),
            authorizer: None,
            peer: "127.0.0.1:5000".parse().unwrap(),
            at: DateTime::UNIX_EPOCH,
        }
    }

    fn a_request() -> Parts {
        parts(
            http::Request::post("/sales/g35/orders?from=A%20B&from=C")
                .header(HOST, "127.0.0.1:8080")
                .header(CONTENT_TYPE, "application/json; charset=utf-8")
                .header(USER_AGENT, "test")
                .header("admission", "one")
                .header("admission", "two")
                .header(COOKIE, "a=1; b=2"),
        )
    }

    /// The runtime gets events as JSON; what it makes of them is what we make directly.
    #[test]
    fn an_event_means_the_same_with_and_without_the_detour_over_json() {
        let event = event(&a_request(), &Bytes::from_static(b"{\"lines\": []}"), facts());
        let json = serde_json::to_string(&event).unwrap();
        let detour = lambda_http::request::from_str(&json).unwrap();
        let direct = invocation(event);
        assert_eq!(direct.method(), detour.method());
        assert_eq!(direct.uri(), detour.uri());
        assert_eq!(direct.headers(), detour.headers());
        assert_eq!(direct.body(), detour.body());
        assert_eq!(direct.raw_http_path(), detour.raw_http_path());
        assert_eq!(direct.path_parameters(), detour.path_parameters());
        assert_eq!(direct.query_string_parameters(), detour.query_string_parameters());
        let context = |request: &lambda_http::Request| {
            serde_json::to_value(request.request_context_ref()).unwrap()
        };
        assert_eq!(context(&direct), context(&detour));
        assert_eq!(direct.uri().path(), "/sales/g35/orders");
    }

    #[test]
    fn headers_are_joined_and_cookies_set_apart() {
        let event = event(&a_request(), &Bytes::new(), facts());
        assert_eq!(event.headers["admission"], "one,two");
        assert_eq!(event.headers.get(COOKIE), None);
        assert_eq!(event.cookies.unwrap(), ["a=1", "b=2"]);
        assert_eq!(event.body, None);
    }

    #[test]
    fn only_text_travels_as_text() {
        let form = parts(
            http::Request::post("/").header(CONTENT_TYPE, "application/x-www-form-urlencoded"),
        );
        let wrapped = event(&form, &Bytes::from_static(b"{}"), facts());
        assert!(wrapped.is_base64_encoded);
        assert_eq!(wrapped.body.as_deref(), Some("e30="));
        assert_eq!(invocation(wrapped).body().as_ref(), b"{}");

        let bytes = Bytes::from_static(b"\xff\xfe");
        let bare = event(&parts(http::Request::post("/")), &bytes, facts());
        assert!(bare.is_base64_encoded);
        assert_eq!(invocation(bare).body().as_ref(), b"\xff\xfe");
    }
}
