//! What lets the crowd act as buyers, and as the provider that captures their money.

use engine::domain::basics::time::Timestamp;
use http::HeaderValue;

use fake_identity::{Identity, Role};
use local::data_dir::Secrets;
use local::payment;

use super::client::Bearer;

/// Time that a buyer's token is good for: longer than any load test.
const TOKEN_SECONDS: u32 = 24 * 3600;
/// Secret that forgers sign with.
const FORGED: &[u8] = b"a secret that the engine does not have";

/// What the crowd signs with, and what it was told.
#[derive(Debug, Default)]
pub struct Credentials {
    own: Option<Own>,
    answer: Option<String>,
}

/// The development secrets of a local engine, put to use.
#[derive(Debug)]
struct Own {
    identity: Identity,
    forged: Identity,
    secrets: Secrets,
    entry: String,
}

impl Credentials {
    /// Acts with the secrets of an engine.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        let identity = Identity::new(secrets.identity.as_bytes());
        let (forged, entry) = (Identity::new(FORGED), payment::entry_path(secrets));
        let own = Own { identity, forged, secrets: secrets.clone(), entry };
        Self { own: Some(own), answer: None }
    }

    /// Signs nothing: a rehearsal has no secret of its deployment.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The same, told the answer to the questions of the sales.
    #[must_use]
    pub fn told(self, answer: &str) -> Self {
        Self { answer: Some(answer.to_owned()), ..self }
    }

    /// The answer to the questions of the sales, if the crowd was told.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        self.answer.as_deref()
    }

    fn own(&self) -> Result<&Own, String> {
        self.own.as_ref().ok_or_else(|| "there is no secret to sign with".to_owned())
    }

    /// The path of the entry of callbacks, which a provider is given.
    ///
    /// # Errors
    /// There are no secrets.
    pub fn entry_path(&self) -> Result<&str, String> {
        Ok(&self.own()?.entry)
    }

    /// The authorization header of a buyer.
    ///
    /// # Errors
    /// Says why the token cannot be signed or sent.
    pub fn buyer(&self, user: &str, now: Timestamp) -> Result<Bearer, String> {
        Self::bearer(&self.own()?.identity, user, now)
    }

    /// The authorization header of somebody who pretends to be a buyer.
    ///
    /// # Errors
    /// As [`Credentials::buyer`].
    pub fn impostor(&self, user: &str, now: Timestamp) -> Result<Bearer, String> {
        Self::bearer(&self.own()?.forged, user, now)
    }

    fn bearer(identity: &Identity, user: &str, now: Timestamp) -> Result<Bearer, String> {
        let token = identity.token(user, Role::Buyer, now, TOKEN_SECONDS);
        let token = token.map_err(|refused| refused.to_string())?;
        Bearer::new(&token).map_err(|invalid| invalid.to_string())
    }

    /// The signature header of a payment callback.
    ///
    /// # Errors
    /// Says why it cannot be sent.
    pub fn signature(&self, body: &[u8], now: Timestamp) -> Result<HeaderValue, String> {
        let signature = payment::sign(&self.own()?.secrets, body, now);
        HeaderValue::try_from(signature).map_err(|invalid| invalid.to_string())
    }

    /// A signature header that is well formed and signs nothing.
    ///
    /// # Errors
    /// As [`Credentials::signature`].
    pub fn forged_signature(&self, now: Timestamp) -> Result<HeaderValue, String> {
        let seconds = now.ms().div_euclid(1000);
        let signature = format!("t={seconds},v1={}", "5a".repeat(32));
        HeaderValue::try_from(signature).map_err(|invalid| invalid.to_string())
    }
}
