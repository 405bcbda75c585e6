//! A fake of the `siteverify` endpoints of Cloudflare Turnstile, hCaptcha and Google reCAPTCHA v2: with the
//! test keys that each of them documents, it answers what they document.
//!
//! | path | secret | answer |
//! |---|---|---|
//! | `/turnstile` | [`TURNSTILE_PASSES`] | success for [`TURNSTILE_TOKEN`], once for any other token that it has issued |
//! | | [`TURNSTILE_FAILS`] | `invalid-input-response` |
//! | | [`TURNSTILE_SPENT`] | `timeout-or-duplicate` |
//! | `/hcaptcha` | [`HCAPTCHA_SECRET`] | success for [`HCAPTCHA_TOKEN`], else `not-using-dummy-passcode` |
//! | `/recaptcha` | [`RECAPTCHA_SECRET`] | success |
//! | `/down` | | 503 |
//!
//! Another secret is `invalid-input-secret`, no response `missing-input-response`; anything but a form in a
//! `POST` is `bad-request`. [`Siteverify::issue`] is our own: a token that passes once, as real ones do.
//! Sources: <https://developers.cloudflare.com/turnstile/troubleshooting/testing/>,
//! <https://docs.hcaptcha.com/#integration-testing-test-keys>, <https://developers.google.com/recaptcha/docs/faq>.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Turnstile's secret that always passes.
pub const TURNSTILE_PASSES: &str = "1x0000000000000000000000000000000AA";
/// Turnstile's secret that always fails.
pub const TURNSTILE_FAILS: &str = "2x0000000000000000000000000000000AA";
/// Turnstile's secret whose tokens are spent.
pub const TURNSTILE_SPENT: &str = "3x0000000000000000000000000000000AA";
/// The token that Turnstile's test site keys give.
pub const TURNSTILE_TOKEN: &str = "XXXX.DUMMY.TOKEN.XXXX";
pub const HCAPTCHA_SECRET: &str = "0x0000000000000000000000000000000000000000";
/// The token that hCaptcha's test site key gives.
pub const HCAPTCHA_TOKEN: &str = "10000000-aaaa-bbbb-cccc-000000000001";
pub const RECAPTCHA_SECRET: &str = "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe";

/// A running fake, until it is dropped.
#[derive(Debug)]
pub struct Siteverify {
    address: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    issued: Mutex<BTreeSet<String>>,
    calls: Mutex<u32>,
}

impl Siteverify {
    /// Starts it on a free port of this machine.
    ///
    /// # Errors
    /// Returns why the system gives no port.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let routes =
            Router::new().route("/{provider}", post(answer)).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            // It ends with its task.
            let _ended = axum::serve(listener, routes).await;
        });
        Ok(Self { address, shared, serving })
    }

    /// The address of a provider's endpoint: `turnstile`, `hcaptcha`, `recaptcha` or `down`.
    #[must_use]
    pub fn url(&self, provider: &str) -> String {
        format!("http://{}/{provider}", self.address)
    }

    /// Makes Turnstile accept a token once.
    pub fn issue(&self, token: &str) {
        let mut issued = self.shared.issued.lock().unwrap_or_else(PoisonError::into_inner);
        issued.insert(token.to_owned());
    }

    /// How often it was asked.
    #[must_use]
    pub fn calls(&self) -> u32 {
        *self.shared.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Siteverify {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Path(provider): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> axum::response::Response {
    *shared.calls.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    if provider == "down" {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let is_form = headers
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes() == b"application/x-www-form-urlencoded");
    let field = |name: &str| {
        let mut fields = form_urlencoded::parse(&body);
        fields.find(|(field, _)| field == name).map(|(_, value)| value.into_owned())
    };
    let codes: &[&str] = match (is_form, field("secret"), field("response")) {
        (false, ..) => &["bad-request"],
        (true, None, _) => &["missing-input-secret"],
        (true, Some(_), None) => &["missing-input-response"],
        (true, Some(secret), Some(response)) => verify(&shared, &provider, &secret, &response),
    };
    let says: Value = match codes {
        [] => json!({ "success": true, "challenge_ts": "2026-01-01T00:00:00Z",
            "hostname": "localhost", "error-codes": [] }),
        codes => json!({ "success": false, "error-codes": codes }),
    };
    ([(CONTENT_TYPE, "application/json")], says.to_string()).into_response()
}

/// The error codes of a provider; none for success.
fn verify(
    shared: &Shared,
    provider: &str,
    secret: &str,
    response: &str,
) -> &'static [&'static str] {
    match (provider, secret) {
        _ if response.is_empty() => &["missing-input-response"],
        ("turnstile", TURNSTILE_PASSES) => {
            let mut issued = shared.issued.lock().unwrap_or_else(PoisonError::into_inner);
            let passes = response == TURNSTILE_TOKEN || issued.remove(response);
            if passes { &[] } else { &["timeout-or-duplicate"] }
        }
        ("turnstile", TURNSTILE_FAILS) => &["invalid-input-response"],
        ("turnstile", TURNSTILE_SPENT) => &["timeout-or-duplicate"],
        ("hcaptcha", HCAPTCHA_SECRET) if response == HCAPTCHA_TOKEN => &[],
        ("hcaptcha", HCAPTCHA_SECRET) => &["not-using-dummy-passcode"],
        ("recaptcha", RECAPTCHA_SECRET) => &[],
        _ => &["invalid-input-secret"],
    }
}
