//! Providers of challenges: the page shows their widget, and the engine asks them what came of it.
//!
//! Cloudflare Turnstile, hCaptcha and Google reCAPTCHA v2 have one protocol: a form with `secret` and
//! `response` to their `siteverify`, which answers `{"success": …, "error-codes": […]}`. A provider that
//! does not answer lets nobody in.

use std::time::Duration;

use aws_smithy_types::body::SdkBody;
use http::header::CONTENT_TYPE;
use http::{Method, Request};
use serde::Deserialize;

use crate::providers::account::escaped;
use crate::runtime::config::{Secret, SiteverifyApi};
use crate::runtime::connections::Https;
use engine::domain::sale::challenge::SiteverifyProvider;
use engine::ports::{StoreError, Stored};

/// Time limit of one question: a buyer waits for it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// What a provider calls a mistake of ours, not of the buyer's.
/// Source: <https://developers.cloudflare.com/turnstile/get-started/server-side-validation/>,
/// <https://docs.hcaptcha.com/#siteverify-error-codes-table>, <https://developers.google.com/recaptcha/docs/verify>
const OUR_MISTAKES: [&str; 8] = [
    "bad-request",
    "internal-error",
    "invalid-input-secret",
    "missing-input-secret",
    "missing-remoteip",
    "invalid-remoteip",
    "not-using-dummy-passcode",
    "sitekey-secret-mismatch",
];

/// Address of a provider's `siteverify`.
fn default_url(provider: SiteverifyProvider) -> &'static str {
    match provider {
        SiteverifyProvider::Turnstile => {
            "https://challenges.cloudflare.com/turnstile/v0/siteverify"
        }
        SiteverifyProvider::Hcaptcha => "https://api.hcaptcha.com/siteverify",
        SiteverifyProvider::Recaptcha => "https://www.google.com/recaptcha/api/siteverify",
    }
}

/// The accounts at providers of challenges.
pub struct Siteverify {
    accounts: Vec<SiteverifyApi>,
    https: Https,
}

/// What a provider answers, as far as it matters.
#[derive(Debug, Deserialize)]
struct Answer {
    success: bool,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
}

impl Siteverify {
    /// These accounts, asked over `https`. Nothing is connected.
    #[must_use]
    pub fn new(accounts: Vec<SiteverifyApi>, https: Https) -> Self {
        Self { accounts, https }
    }

    /// Asks a provider whether a buyer has passed.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if there is no account, [`StoreError::Unavailable`] if the provider does
    /// not answer or does not accept our account.
    pub async fn verify(&self, provider: SiteverifyProvider, response: &str) -> Stored<bool> {
        let name = provider.as_str();
        let account = self.accounts.iter().find(|account| account.provider == provider);
        let no_account = || StoreError::Contract(format!("there is no account at {name}"));
        let SiteverifyApi { url, secret: Secret(secret), .. } = account.ok_or_else(no_account)?;
        let form = format!(
            "secret={}&response={}",
            escaped(&String::from_utf8_lossy(secret)),
            escaped(response)
        );
        let url = url.as_deref().unwrap_or(default_url(provider));
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(SdkBody::from(form))
            .map_err(|error| StoreError::Contract(format!("{name}: {error}")))?;
        let said = |what: &str| StoreError::Unavailable(format!("{name}: {what}"));
        let answered = tokio::time::timeout(REQUEST_TIMEOUT, self.https.request(request)).await;
        let answered = answered.map_err(|_| said("no answer in time"))?;
        let answered = answered.map_err(|broken| said(&broken.to_string()))?;
        if !answered.status().is_success() {
            return Err(said(answered.status().as_str()));
        }
        let answer: Answer =
            serde_json::from_slice(answered.body()).map_err(|error| said(&error.to_string()))?;
        let mistake = answer.error_codes.iter().find(|code| OUR_MISTAKES.contains(&code.as_str()));
        match mistake.filter(|_| !answer.success) {
            Some(mistake) => Err(said(mistake)),
            None => Ok(answer.success),
        }
    }
}

impl std::fmt::Debug for Siteverify {
    /// Names the providers and shows no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.accounts.iter().map(|account| account.provider.as_str());
        f.debug_list().entries(names).finish()
    }
}
