//! A TCP proxy that can hold back what flows to the client: the link by which a replica follows its
//! primary, made to lag.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The most that is taken in one piece, in bytes.
const PIECE: usize = 16 * 1024;

/// A running proxy; it stops when dropped, and its connections with it.
#[derive(Debug)]
pub struct Pipe {
    port: u16,
    flows: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Pipe {
    /// Starts in front of a port of 127.0.0.1; it flows.
    ///
    /// # Errors
    /// There is no port to listen on.
    pub async fn start(upstream: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (flows, _) = watch::channel(true);
        let watched = flows.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let flows = watched.subscribe();
                tokio::spawn(async move {
                    // A connection that ends is the end of its task.
                    let _ended = carry(client, upstream, flows).await;
                });
            }
        });
        Ok(Self { port, flows, task })
    }

    /// Port of 127.0.0.1 on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on nothing gets through to clients, and nobody notices: connections stay open.
    pub fn hold_back(&self) {
        self.flows.send_replace(false);
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(
    client: TcpStream,
    upstream: u16,
    mut flows: watch::Receiver<bool>,
) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", upstream)).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let down = async {
        let mut piece = Vec::with_capacity(PIECE);
        loop {
            // Whoever holds us back may be gone: then so is the proxy.
            flows.wait_for(|flows| *flows).await.map_err(io::Error::other)?;
            piece.clear();
            tokio::select! {
                read = from_server.read_buf(&mut piece) => if read? == 0 { return Ok(()) },
                _held_back = flows.wait_for(|flows| !*flows) => continue,
            }
            to_client.write_all(&piece).await?;
        }
    };
    tokio::select! {
        ended = down => ended,
        ended = tokio::io::copy(&mut from_client, &mut to_server) => ended.map(drop),
    }
}
