//! Why a provider's callback is refused, and the proof that one was verified.

use engine::domain::basics::ids::ProviderId;

/// Why a callback is not trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureDefect {
    /// No callbacks are taken from this provider.
    #[error("there is no such payment provider")]
    UnknownProvider,
    /// There is no signature header.
    #[error("a signature header is needed")]
    Missing,
    /// The header has no time, or no signature of a known version.
    #[error("the signature header cannot be read")]
    Malformed,
    /// The signature is too old, or from the future.
    #[error("the signature's time is outside the tolerance")]
    OutsideTolerance,
    /// No secret of ours gives this signature.
    #[error("the signature does not fit")]
    Mismatch,
}

/// A signed event that cannot be acted upon. The money it speaks of, if any, is for a person to find.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the event cannot be read: {0}")]
pub struct EventDefect(pub(super) String);

/// The proof that a body came from its provider: made only where a signature is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedCallback<'a> {
    provider: &'a ProviderId,
    body: &'a [u8],
}

impl<'a> VerifiedCallback<'a> {
    pub(super) fn new(provider: &'a ProviderId, body: &'a [u8]) -> Self {
        Self { provider, body }
    }

    #[must_use]
    pub fn provider(&self) -> &'a ProviderId {
        self.provider
    }

    /// The bytes that were signed.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}
