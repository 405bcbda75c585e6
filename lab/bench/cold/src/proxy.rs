//! A proxy before a server: it ends TLS, counts who connects, and can do to the connections it has
//! what happens to those of a sandbox while that is frozen.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// What becomes of every connection there is; later ones are well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severed {
    /// The other side ended it in good order.
    Closed,
    /// The other side has forgotten it, and says so to the next who writes.
    Reset,
    /// What is sent on it is swallowed, and nobody says anything.
    Silent,
}

/// A running proxy; it goes when dropped, and its connections with it.
pub struct Proxy {
    address: SocketAddr,
    is_tls: bool,
    severed: watch::Sender<Option<Severed>>,
    accepted: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Starts before a port of 127.0.0.1, with TLS if a server's certificate is given.
    ///
    /// # Errors
    /// There is no port to listen on.
    pub async fn start(upstream: u16, tls: Option<Arc<ServerConfig>>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (severed, _) = watch::channel(None);
        let accepted = Arc::new(AtomicUsize::new(0));
        let is_tls = tls.is_some();
        let (sever, count) = (severed.clone(), Arc::clone(&accepted));
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (tls, severed) = (tls.clone(), sever.subscribe());
                // A connection that ends is the end of its task.
                connections.spawn(async move { serve(client, upstream, tls, severed).await.ok() });
            }
        });
        Ok(Self { address, is_tls, severed, accepted, task })
    }

    /// Port of 127.0.0.1 on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its address for HTTP.
    #[must_use]
    pub fn http_url(&self) -> String {
        format!("{}://{}", if self.is_tls { "https" } else { "http" }, self.address)
    }

    /// Its address for Redis.
    #[must_use]
    pub fn redis_url(&self) -> String {
        format!("{}://{}", if self.is_tls { "rediss" } else { "redis" }, self.address)
    }

    /// Number of connections that there have been, those included whose handshake failed.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Severs the connections there are.
    pub fn sever(&self, how: Severed) {
        self.severed.send_replace(Some(how));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    client: TcpStream,
    upstream: u16,
    tls: Option<Arc<ServerConfig>>,
    severed: watch::Receiver<Option<Severed>>,
) -> io::Result<()> {
    client.set_nodelay(true)?;
    match tls {
        None => carry(client, |client| client, upstream, severed).await,
        Some(config) => {
            let client = TlsAcceptor::from(config).accept(client).await?;
            carry(client, |client| client.get_ref().0, upstream, severed).await
        }
    }
}

async fn carry<C: AsyncRead + AsyncWrite + Unpin>(
    mut client: C,
    socket: fn(&C) -> &TcpStream,
    upstream: u16,
    mut severed: watch::Receiver<Option<Severed>>,
) -> io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).await?;
    server.set_nodelay(true)?;
    tokio::select! {
        ended = tokio::io::copy_bidirectional(&mut client, &mut server) => return ended.map(drop),
        changed = severed.changed() => changed.map_err(io::Error::other)?,
    }
    let how = *severed.borrow();
    match how {
        None => Ok(()),
        Some(Severed::Closed) => client.shutdown().await,
        Some(Severed::Reset) => {
            let _request = client.read(&mut [0; 1024]).await?;
            socket(&client).set_zero_linger()
        }
        Some(Severed::Silent) => {
            tokio::io::copy(&mut client, &mut tokio::io::sink()).await.map(drop)
        }
    }
}
