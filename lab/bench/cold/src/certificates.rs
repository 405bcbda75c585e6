//! A certificate authority of one test, and servers' certificates for 127.0.0.1.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, Error, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// An authority that nobody trusts unless configured to.
#[derive(Debug)]
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A new one, with a key of its own.
    ///
    /// # Errors
    /// No key could be made.
    pub fn new() -> Result<Self, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// Its own certificate, for those who are to trust it.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A server that is who `names` say: host names or addresses.
    ///
    /// # Errors
    /// A name is none, or no key could be made.
    pub fn server(&self, names: &[&str]) -> Result<Arc<ServerConfig>, Error> {
        let key = KeyPair::generate()?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let certificate = CertificateParams::new(names)?.signed_by(&key, &self.issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate.der().clone()], key);
        config.map(Arc::new).map_err(|_| Error::CouldNotParseKeyPair)
    }
}
