//! The certificate authorities that are trusted.
//!
//! The public ones are compiled in (Mozilla's, by `webpki-roots`): reading and parsing those of the
//! system costs a cold start more than its handshakes do (docs/cold-start.md).

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::ciphers;

/// The authorities that every connection of a function trusts: the public ones, or those of a
/// deployment in their place.
#[derive(Debug, Clone)]
pub struct Trust {
    own: Option<Own>,
}

#[derive(Debug, Clone)]
struct Own {
    /// As the Redis client wants them.
    pem: Vec<u8>,
    roots: RootCertStore,
}

/// The text that was to hold certificates does not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it holds no certificate authority in PEM, or one that cannot be read")]
pub struct Unreadable;

impl Trust {
    #[must_use]
    pub fn public() -> Self {
        Self::from_own(None)
    }

    fn from_own(own: Option<Own>) -> Self {
        ciphers::ask_for_aes_128_first();
        Self { own }
    }

    /// The authorities of a PEM text, and no other.
    ///
    /// # Errors
    /// [`Unreadable`] if there is none, or one of them cannot be read: to leave it out would be
    /// noticed only when it is needed.
    pub fn only(pem: Vec<u8>) -> Result<Self, Unreadable> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&pem) {
            roots.add(certificate.map_err(|_| Unreadable)?).map_err(|_| Unreadable)?;
        }
        if roots.is_empty() {
            Err(Unreadable)
        } else {
            Ok(Self::from_own(Some(Own { pem, roots })))
        }
    }

    /// The authorities in place of the public ones, in PEM.
    pub(crate) fn pem(&self) -> Option<&[u8]> {
        self.own.as_ref().map(|own| own.pem.as_slice())
    }

    /// What a TLS client is to check.
    #[must_use]
    pub fn client_config(&self) -> ClientConfig {
        let public = || webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
        let roots = self.own.as_ref().map_or_else(public, |own| own.roots.clone());
        ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_no_authority_is_refused() {
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in ["", "hello", broken] {
            assert_eq!(Trust::only(pem.into()).unwrap_err(), Unreadable, "{pem:?}");
        }
    }
}
