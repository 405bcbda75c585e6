//! A wire to a server that loses replies, or lets them rot.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The treatment of the next replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The connection is cut when the reply comes.
    Cut,
    /// Nothing ever comes on this connection again, and nobody says why.
    Silence,
}

/// A proxy in front of one server; it goes when dropped.
#[derive(Debug)]
pub struct Wire {
    address: SocketAddr,
    cuts: Arc<AtomicUsize>,
    silences: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Wire {
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cuts, silences) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (cut, silence) = (Arc::clone(&cuts), Arc::clone(&silences));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (cut, silence) = (Arc::clone(&cut), Arc::clone(&silence));
                tokio::spawn(async move {
                    // The end of either side is the end of the connection.
                    let _ = carry(client, port, &cut, &silence).await;
                });
            }
        });
        Self { address, cuts, silences, task }
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Loses the next replies.
    pub fn lose(&self, loss: Loss, replies: usize) {
        let counter = match loss {
            Loss::Cut => &self.cuts,
            Loss::Silence => &self.silences,
        };
        counter.store(replies, Ordering::SeqCst);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn take_one(counter: &AtomicUsize) -> bool {
    let less = |count: usize| count.checked_sub(1);
    counter.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
}

async fn carry(
    mut client: TcpStream,
    port: u16,
    cuts: &AtomicUsize,
    silences: &AtomicUsize,
) -> std::io::Result<()> {
    let mut server = TcpStream::connect(("127.0.0.1", port)).await?;
    let (mut asked, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut is_silent = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read? {
                0 => return Ok(()),
                bytes => server.write_all(&asked[..bytes]).await?,
            },
            read = server.read(&mut answered) => match read? {
                0 => return Ok(()),
                _ if take_one(cuts) => return Ok(()),
                bytes => {
                    is_silent = is_silent || take_one(silences);
                    if !is_silent {
                        client.write_all(&answered[..bytes]).await?;
                    }
                }
            },
        }
    }
}
