//! What lets the crowd act as buyers, and as the provider that captures their money.

use shared::domain::time::Timestamp;

use crate::data_dir::Secrets;
use crate::identity::{Identity, Refused, Role};
use crate::payment;

/// How long a buyer's token is good for: longer than any rush.
const TOKEN_SECONDS: u32 = 24 * 3600;

/// The development secrets of a local engine, put to use.
#[derive(Debug)]
pub struct Credentials {
    identity: Identity,
    secrets: Secrets,
}

impl Credentials {
    /// Acts with the secrets of an engine.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self { identity: Identity::new(secrets.identity.as_bytes()), secrets: secrets.clone() }
    }

    /// The authorization header of a buyer.
    ///
    /// # Errors
    /// As [`Identity::token`].
    pub fn buyer(&self, user: &str, now: Timestamp) -> Result<String, Refused> {
        let token = self.identity.token(user, Role::Buyer, now, TOKEN_SECONDS)?;
        Ok(format!("Bearer {token}"))
    }

    /// The signature header of a payment callback.
    #[must_use]
    pub fn signature(&self, body: &[u8], now: Timestamp) -> String {
        payment::sign(&self.secrets, body, now)
    }
}
