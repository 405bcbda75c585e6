//! The server of the two issuers, on a port of 127.0.0.1.

use std::net::{Ipv4Addr, SocketAddr, TcpListener as StdListener};
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Realm;
use crate::codes::Codes;
use crate::edge::{self, Shared};
use crate::tokens::Issuers;

/// Why the issuers could not be started.
#[derive(Debug, thiserror::Error)]
#[error("listening for the issuers: {0}")]
pub struct Error(#[from] std::io::Error);

/// The running issuers; stopped when dropped.
#[derive(Debug)]
pub struct FakeIssuers {
    address: SocketAddr,
    issuers: Arc<Issuers>,
    server: JoinHandle<std::io::Result<()>>,
}

impl FakeIssuers {
    /// Starts them on this runtime, on a free port. Their keys are kept in the directory `keys`; `origins` are
    /// those of the pages, `http://127.0.0.1:8080`, to which people come back at `/signed-in`.
    ///
    /// # Errors
    /// No port is free.
    pub fn start(keys: &Path, origins: Vec<String>) -> Result<Self, Error> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let listener = TcpListener::from_std(listener)?;
        let issuers = Arc::new(Issuers::new(format!("http://{address}"), keys));
        let shared = Shared { issuers: Arc::clone(&issuers), codes: Codes::default(), origins };
        let server = tokio::spawn(edge::serve(Arc::new(shared), listener));
        Ok(Self { address, issuers, server })
    }

    /// Their address: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The issuer (`iss`) of a realm.
    #[must_use]
    pub fn issuer(&self, realm: Realm) -> String {
        self.issuers.issuer(realm)
    }

    /// Their keys and tokens, for whoever verifies them.
    #[must_use]
    pub fn issuers(&self) -> &Arc<Issuers> {
        &self.issuers
    }

    /// True if they serve no more though nobody has stopped them.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.server.is_finished()
    }
}

impl Drop for FakeIssuers {
    fn drop(&mut self) {
        self.server.abort();
    }
}
