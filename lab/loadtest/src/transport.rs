//! Connections to a gateway: plain on one machine, or TLS.

use std::io;
use std::sync::Arc;

use http::{HeaderValue, Uri};
use shared::runtime::connections::Trust;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// An address that the crowd cannot go to.
#[derive(Debug, thiserror::Error)]
#[error("{0} is no address of a gateway: http://HOST:PORT is one")]
pub struct BadAddress(String);

/// A connection, plain or TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// The way to one gateway.
pub(super) struct Transport {
    host: String,
    port: u16,
    authority: HeaderValue,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Transport").field(&self.authority).finish()
    }
}

impl Transport {
    /// The way to the gateway at `base`, such as `http://127.0.0.1:8080`; `https` only where it is said who
    /// is trusted.
    ///
    /// # Errors
    /// `base` is no such address.
    pub(super) fn new(base: &str, trust: Option<&Trust>) -> Result<Self, BadAddress> {
        let bad = || BadAddress(base.to_owned());
        let uri: Uri = base.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let tls = match (uri.scheme_str(), trust) {
            (Some("http"), _) => None,
            (Some("https"), Some(trust)) => {
                let name = ServerName::try_from(host.clone()).map_err(|_| bad())?;
                Some((TlsConnector::from(Arc::new(trust.client_config())), name))
            }
            (Some(_) | None, _) => return Err(bad()),
        };
        let port = authority.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
        let authority = HeaderValue::from_str(authority.as_str()).map_err(|_| bad())?;
        Ok(Self { host, port, authority, tls })
    }

    /// The value of the header `host`.
    pub(super) fn authority(&self) -> &HeaderValue {
        &self.authority
    }

    pub(super) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some((tls, name)) => Ok(Box::new(tls.connect(name.clone(), stream).await?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_http_unless_it_is_said_who_is_trusted() {
        for base in
            ["http://127.0.0.1:8080", "http://127.0.0.1:8080/", "http://[::1]:80", "http://a"]
        {
            assert!(Transport::new(base, None).is_ok(), "{base}");
        }
        for base in ["https://127.0.0.1", "127.0.0.1:8080", "", "/sales", "http://"] {
            assert!(Transport::new(base, None).is_err(), "{base}");
        }
        let trust = Trust::public();
        for (base, port) in
            [("https://127.0.0.1:8443", 8443), ("https://[::1]", 443), ("http://a", 80)]
        {
            assert_eq!(Transport::new(base, Some(&trust)).unwrap().port, port, "{base}");
        }
    }
}
