//! The HTTP interface of the two issuers.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, ORIGIN, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use engine::domain::basics::time::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::authorize::{Authorization, Denied, NotOurs, Parameters, parameters, signed_out};
use crate::codes::{Codes, Grant};
use crate::realm::{OPENID, Realm};
use crate::tokens::{ACCESS_SECONDS, Issuers};
use crate::{Refused, page};

/// Most bytes of a form.
const MAX_FORM_BYTES: usize = 32 * 1024;

/// What every request shares.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) issuers: Arc<Issuers>,
    pub(crate) codes: Codes,
    /// The origins of the pages: they may read the answers, and are called back.
    pub(crate) origins: Vec<String>,
}

impl Shared {
    /// The addresses that the pages are called back at.
    fn callbacks(&self) -> Vec<String> {
        self.origins.iter().map(|origin| format!("{origin}/signed-in")).collect()
    }
}

type At = (Path<String>, State<Arc<Shared>>);

/// Serves connections until it is aborted.
pub(crate) async fn serve(shared: Arc<Shared>, listener: TcpListener) -> io::Result<()> {
    let router = Router::new()
        .route("/{realm}/.well-known/openid-configuration", get(discovery).options(preflight))
        .route("/{realm}/jwks", get(keys).options(preflight))
        .route("/{realm}/authorize", get(ask).post(answer))
        .route("/{realm}/token", post(token).options(preflight))
        .route("/{realm}/logout", get(leave))
        .layer(DefaultBodyLimit::max(MAX_FORM_BYTES))
        .with_state(shared);
    axum::serve(listener, router).await
}

/// A JSON answer that the pages may read.
fn readable(shared: &Shared, headers: &HeaderMap, status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let set = response.headers_mut();
    set.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    set.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    allow(shared, headers, set);
    response
}

/// Lets the pages read the answer, if the request is theirs.
fn allow(shared: &Shared, asked: &HeaderMap, set: &mut HeaderMap) {
    set.insert(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = asked.get(ORIGIN) else { return };
    if shared.origins.iter().any(|known| known.as_bytes() == origin.as_bytes()) {
        set.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        set.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        set.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("accept, content-type"));
    }
}

async fn preflight((_, State(shared)): At, headers: HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    allow(&shared, &headers, response.headers_mut());
    response
}

fn missing() -> Response {
    html(StatusCode::NOT_FOUND, page::refused("There is no such issuer."), &[])
}

/// An HTML page, which runs nothing and stands in nobody's frame. Its form may lead to `origins`.
fn html(status: StatusCode, text: String, origins: &[String]) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self' {}; base-uri 'none'; \
         frame-ancestors 'none'",
        origins.join(" ")
    );
    let set = response.headers_mut();
    let mut put = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            set.insert(name, value);
        }
    };
    put(CONTENT_TYPE, "text/html; charset=utf-8");
    put(CACHE_CONTROL, "no-store");
    put(REFERRER_POLICY, "no-referrer");
    put(X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(CONTENT_SECURITY_POLICY, &policy);
    response
}

fn redirect(to: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(to) else { return missing() };
    let mut response = html(StatusCode::SEE_OTHER, String::new(), &[]);
    response.headers_mut().insert(LOCATION, location);
    response
}

async fn discovery((Path(realm), State(shared)): At, headers: HeaderMap) -> Response {
    let Some(realm) = Realm::from_name(&realm) else { return missing() };
    let issuer = shared.issuers.issuer(realm);
    let scopes = [&[OPENID], realm.scopes()].concat();
    let document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks"),
        "end_session_endpoint": format!("{issuer}/logout"),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code"],
        "subject_types_supported": ["public"],
        "scopes_supported": scopes,
        "id_token_signing_alg_values_supported": ["RS256"],
        "token_endpoint_auth_methods_supported": ["none"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "claims_supported": ["iss", "sub", "aud", "exp", "iat", "nbf", "nonce"],
    });
    readable(&shared, &headers, StatusCode::OK, &document)
}

async fn keys((Path(realm), State(shared)): At, headers: HeaderMap) -> Response {
    let Some(realm) = Realm::from_name(&realm) else { return missing() };
    match shared.issuers.public_keys(realm) {
        Ok(keys) => readable(&shared, &headers, StatusCode::OK, &keys),
        Err(error) => {
            tracing::error!(%error, "an issuer has no key");
            failed(&shared, &headers)
        }
    }
}

fn failed(shared: &Shared, headers: &HeaderMap) -> Response {
    let body = json!({ "error": "server_error" });
    readable(shared, headers, StatusCode::INTERNAL_SERVER_ERROR, &body)
}

/// The request of a query or a form, or what is shown or done in place of an answer to it.
fn read(shared: &Shared, realm: &str, encoded: &[u8]) -> Result<Authorization, Box<Response>> {
    let realm = Realm::from_name(realm).ok_or_else(|| Box::new(missing()))?;
    let request = parameters(encoded)
        .and_then(|parameters| Authorization::read(realm, parameters, &shared.callbacks()));
    let request = request.map_err(|error: NotOurs| {
        Box::new(html(StatusCode::BAD_REQUEST, page::refused(&error.to_string()), &[]))
    })?;
    match request.check() {
        Ok(()) => Ok(request),
        Err(denied) => Err(Box::new(deny(shared, &request, denied))),
    }
}

/// Tells the pages why there is no code.
fn deny(shared: &Shared, request: &Authorization, denied: Denied) -> Response {
    let answer = [("error", denied.error), ("error_description", denied.about)];
    redirect(&request.back(&shared.issuers.issuer(request.realm), &answer))
}

async fn ask((Path(realm), State(shared)): At, RawQuery(query): RawQuery) -> Response {
    match read(&shared, &realm, query.unwrap_or_default().as_bytes()) {
        Ok(request) => html(StatusCode::OK, page::form(&request, false), &shared.origins),
        Err(response) => *response,
    }
}

/// Takes the form, and sends the person back to the pages with a code.
async fn answer((Path(realm), State(shared)): At, body: Bytes) -> Response {
    let request = match read(&shared, &realm, &body) {
        Ok(request) => request,
        Err(response) => return *response,
    };
    if request.given("action") == "leave" {
        let about = "the person did not sign in";
        return deny(&shared, &request, Denied { error: "access_denied", about });
    }
    let Some(grant) = request.grant() else {
        let page = page::form(&request, true);
        return html(StatusCode::UNPROCESSABLE_ENTITY, page, &shared.origins);
    };
    let Some(code) = shared.codes.issue(grant, Timestamp::now()) else {
        return deny(&shared, &request, Denied { error: "server_error", about: "no entropy" });
    };
    redirect(&request.back(&shared.issuers.issuer(request.realm), &[("code", &code)]))
}

/// Sends whoever has signed out back to the pages. There is no session to end: the form is shown for each sign-in.
async fn leave((Path(realm), State(shared)): At, RawQuery(query): RawQuery) -> Response {
    let Some(realm) = Realm::from_name(&realm) else { return missing() };
    let back = parameters(query.unwrap_or_default().as_bytes())
        .and_then(|given| signed_out(realm, &given, &shared.callbacks()));
    match back {
        Ok(to) => redirect(&to),
        Err(error) => html(StatusCode::BAD_REQUEST, page::refused(&error.to_string()), &[]),
    }
}

/// Why a code is not exchanged.
enum NoToken {
    /// An error of RFC 6749, section 5.2.
    Refused(&'static str),
    /// A token cannot be signed.
    Failed(Refused),
}

/// Exchanges a code for tokens.
async fn token((Path(realm), State(shared)): At, headers: HeaderMap, body: Bytes) -> Response {
    let Some(realm) = Realm::from_name(&realm) else { return missing() };
    match exchanged(&shared, realm, &headers, &body, Timestamp::now()) {
        Ok(tokens) => readable(&shared, &headers, StatusCode::OK, &tokens),
        Err(NoToken::Refused(error)) => {
            let body = json!({ "error": error });
            readable(&shared, &headers, StatusCode::BAD_REQUEST, &body)
        }
        Err(NoToken::Failed(error)) => {
            tracing::error!(%error, "a token could not be signed");
            failed(&shared, &headers)
        }
    }
}

fn exchanged(
    shared: &Shared,
    realm: Realm,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<Value, NoToken> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    let is_form = kind.eq_ignore_ascii_case("application/x-www-form-urlencoded");
    let parameters = parameters(body).ok().filter(|_| is_form);
    let parameters = parameters.ok_or(NoToken::Refused("invalid_request"))?;
    let grant = redeemed(shared, realm, &parameters, now).map_err(NoToken::Refused)?;
    let (issuers, subject) = (&shared.issuers, grant.subject.as_str());
    let access =
        issuers.access_token(realm, subject, &grant.scope, now).map_err(NoToken::Failed)?;
    let id = issuers.id_token(realm, subject, &grant.nonce, now).map_err(NoToken::Failed)?;
    Ok(json!({
        "access_token": access, "token_type": "Bearer", "expires_in": ACCESS_SECONDS,
        "scope": grant.scope, "id_token": id,
    }))
}

/// What the code stands for, if everything that must be said again is the same.
fn redeemed(
    shared: &Shared,
    realm: Realm,
    parameters: &Parameters,
    now: Timestamp,
) -> Result<Grant, &'static str> {
    let given = |name: &str| parameters.get(name).map_or("", String::as_str);
    if given("grant_type") != "authorization_code" {
        return Err("unsupported_grant_type");
    }
    if given("client_id") != realm.client_id() {
        return Err("invalid_client");
    }
    let grant = shared.codes.redeem(given("code"), given("code_verifier"), now);
    let is_same =
        |grant: &Grant| grant.realm == realm && grant.redirect_uri == given("redirect_uri");
    grant.filter(is_same).ok_or("invalid_grant")
}
