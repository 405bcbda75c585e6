//! A TCP proxy in front of Redis that knows where requests and replies end, so that it can delay or lose
//! one of them, and that follows a promotion as the endpoint of a managed Redis does.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Most bytes of one read.
const READ_BYTES: usize = 64 << 10;

/// Action on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    Forward,
    /// Let it through after this time, and all later ones of the connection behind it.
    ForwardLate(Duration),
    /// Let it through, and hold its reply and all later ones of the connection back for this time.
    ReplyLate(Duration),
    /// Let it through twice, and give the first reply.
    ForwardTwice,
    /// Let it through and cut the connection instead of replying.
    LoseReply,
    /// Let it through and cut the connection in the middle of the reply.
    CutReply,
    /// Cut the connection before it gets through.
    LoseRequest,
    /// Refuse it in the server's stead, with these words.
    Refuse(&'static str),
}

/// What becomes of the next reply of a connection.
#[derive(Debug)]
enum Fate {
    Deliver,
    DeliverLate(Duration),
    Swallow,
    Lose,
    Cut,
    Instead(&'static str),
}

/// A request: a list of strings, as it came.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    bytes: &'r [u8],
    begins_a_trip: bool,
}

impl<'r> Request<'r> {
    /// The request as it came.
    #[must_use]
    pub const fn from_bytes(bytes: &'r [u8]) -> Self {
        Self { bytes, begins_a_trip: true }
    }

    /// It did not come together with the one before it: its sender had nothing more to say until then, as with
    /// the first command of a pipeline.
    #[must_use]
    pub const fn begins_a_trip(self) -> bool {
        self.begins_a_trip
    }

    /// Its length in bytes.
    #[must_use]
    pub const fn size(self) -> usize {
        self.bytes.len()
    }

    /// Its strings: the command and its arguments.
    pub fn strings(self) -> impl Iterator<Item = &'r [u8]> {
        let mut rest = skip_line(self.bytes);
        std::iter::from_fn(move || {
            let (header, body) = line(rest)?;
            let length: usize =
                std::str::from_utf8(header.strip_prefix(b"$")?).ok()?.parse().ok()?;
            let string = body.get(..length)?;
            rest = body.get(length + 2..).unwrap_or_default();
            Some(string)
        })
    }

    /// Its command, in capitals; empty if it has none.
    #[must_use]
    pub fn command(self) -> String {
        let name = self.strings().next().unwrap_or_default();
        String::from_utf8_lossy(name).to_ascii_uppercase()
    }
}

/// The first line of some bytes, without its end, and what follows it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some((&bytes[..end], &bytes[end + 2..]))
}

fn skip_line(bytes: &[u8]) -> &[u8] {
    line(bytes).map_or(&[], |(_, rest)| rest)
}

/// Decides on a request.
type Decide = dyn Fn(Request<'_>) -> Act + Send + Sync;

/// A running proxy; it stops when dropped.
pub struct RedisProxy {
    address: SocketAddr,
    /// The port of the server that it leads to. Whoever is connected when it changes is cut off.
    upstream: watch::Sender<u16>,
    task: JoinHandle<()>,
}

impl std::fmt::Debug for RedisProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisProxy").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RedisProxy {
    /// Starts in front of a port of 127.0.0.1. `decide` is given each request.
    ///
    /// # Errors
    /// There is no port to listen on.
    pub async fn start(
        upstream: u16,
        decide: impl Fn(Request<'_>) -> Act + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (upstream, _) = watch::channel(upstream);
        let (decide, leads): (Arc<Decide>, _) = (Arc::new(decide), upstream.clone());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (decide, leads) = (Arc::clone(&decide), leads.subscribe());
                tokio::spawn(async move {
                    // A connection that ends is the end of its task.
                    let _ended = serve(client, leads, &*decide).await;
                });
            }
        });
        Ok(Self { address, upstream, task })
    }

    /// URL at which it listens.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// The port of 127.0.0.1 on which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Leads to another port from now on, and cuts off everybody who is connected.
    pub fn follow(&self, upstream: u16) {
        self.upstream.send_replace(upstream);
    }
}

impl Drop for RedisProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    client: TcpStream,
    mut leads: watch::Receiver<u16>,
    decide: &Decide,
) -> io::Result<()> {
    let upstream = *leads.borrow_and_update();
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, upstream)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (fates, to_come) = mpsc::unbounded_channel();
    tokio::select! {
        ended = carry_requests(from_client, to_server, decide, &fates) => ended,
        ended = carry_replies(from_server, to_client, to_come) => ended,
        _led_elsewhere = leads.changed() => Ok(()),
    }
}

async fn carry_requests(
    mut client: OwnedReadHalf,
    mut server: OwnedWriteHalf,
    decide: &Decide,
    fates: &mpsc::UnboundedSender<Fate>,
) -> io::Result<()> {
    let (mut bytes, mut begins_a_trip) = (Vec::new(), true);
    loop {
        let Some(length) = value_length(&bytes) else {
            begins_a_trip |= bytes.is_empty();
            // What was sent together is read together.
            bytes.reserve(READ_BYTES);
            if client.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let rest = bytes.split_off(length);
        let request = std::mem::replace(&mut bytes, rest);
        let fated = |fate| fates.send(fate).map_err(io::Error::other);
        let begins = std::mem::replace(&mut begins_a_trip, false);
        match decide(Request { bytes: &request, begins_a_trip: begins }) {
            Act::Forward => fated(Fate::Deliver)?,
            Act::ForwardLate(late) => {
                tokio::time::sleep(late).await;
                fated(Fate::Deliver)?;
            }
            Act::ReplyLate(late) => fated(Fate::DeliverLate(late))?,
            Act::LoseReply => fated(Fate::Lose)?,
            Act::CutReply => fated(Fate::Cut)?,
            Act::ForwardTwice => {
                fated(Fate::Deliver)?;
                server.write_all(&request).await?;
                fated(Fate::Swallow)?;
            }
            Act::LoseRequest => return Ok(()),
            Act::Refuse(words) => {
                fated(Fate::Instead(words))?;
                continue;
            }
        }
        server.write_all(&request).await?;
    }
}

async fn carry_replies(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    mut fates: mpsc::UnboundedReceiver<Fate>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    loop {
        let fate = tokio::select! {
            biased;
            fate = fates.recv() => fate,
            // Nobody has asked: it is gone, or says something to which nobody listens.
            read = server.read_buf(&mut bytes) => match read? {
                0 => None,
                _ => continue,
            },
        };
        let Some(fate) = fate else { return Ok(()) };
        if let Fate::Instead(words) = fate {
            client.write_all(format!("-{words}\r\n").as_bytes()).await?;
            continue;
        }
        let length = loop {
            if let Some(length) = value_length(&bytes) {
                break length;
            }
            if server.read_buf(&mut bytes).await? == 0 {
                return Ok(());
            }
        };
        let rest = bytes.split_off(length);
        let reply = std::mem::replace(&mut bytes, rest);
        match fate {
            Fate::Deliver => client.write_all(&reply).await?,
            Fate::DeliverLate(late) => {
                tokio::time::sleep(late).await;
                client.write_all(&reply).await?;
            }
            Fate::Swallow | Fate::Instead(_) => {}
            Fate::Lose => return Ok(()),
            Fate::Cut => return client.write_all(&reply[..reply.len() / 2]).await,
        }
    }
}

/// Length of the first value in `bytes`, in bytes; `None` if they end before it does.
///
/// Source: <https://redis.io/docs/latest/develop/reference/protocol-spec/>
fn value_length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut left) = (0, 1_usize);
    while left > 0 {
        let rest = bytes.get(at..)?;
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let (kind, count) = rest[..end].split_first()?;
        let count: Option<usize> = std::str::from_utf8(count).ok().and_then(|n| n.parse().ok());
        at += end + 2;
        left -= 1;
        match kind {
            // A negative count is a null, which has nothing behind it.
            b'$' | b'=' | b'!' => at += count.map_or(0, |bytes| bytes + 2),
            b'*' | b'~' | b'>' => left += count.unwrap_or(0),
            b'%' => left += 2 * count.unwrap_or(0),
            // Attributes stand before the value that they belong to.
            b'|' => left += 2 * count.unwrap_or(0) + 1,
            _ => {}
        }
    }
    (at <= bytes.len()).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_it_ends() {
        let values: [&[u8]; 10] = [
            b"+OK\r\n",
            b"-NOSCRIPT no such script\r\n",
            b":12\r\n",
            b"$-1\r\n",
            b"$0\r\n\r\n",
            b"$4\r\n\r\n\r\n\r\n",
            b"*-1\r\n",
            b"*2\r\n$4\r\nheld\r\n*1\r\n:1\r\n",
            b"%1\r\n+a\r\n:1\r\n",
            b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n",
        ];
        for value in values {
            let shown = String::from_utf8_lossy(value);
            let followed = [value, b"+OK\r\n"].concat();
            assert_eq!(value_length(&followed), Some(value.len()), "{shown:?}");
            for shorter in 0..value.len() {
                assert_eq!(value_length(&value[..shorter]), None, "{shown:?} cut at {shorter}");
            }
        }
    }

    #[test]
    fn a_request_says_its_command_and_arguments() {
        let request = Request::from_bytes(b"*3\r\n$7\r\nevalsha\r\n$4\r\n\r\n\r\n\r\n$1\r\na\r\n");
        assert_eq!(request.command(), "EVALSHA");
        let strings: Vec<&[u8]> = request.strings().collect();
        assert_eq!(strings, [b"evalsha".as_slice(), b"\r\n\r\n", b"a"]);
        for broken in [b"".as_slice(), b"PING\r\n", b"*1\r\n$9\r\nshort\r\n", b"*1\r\n:1\r\n"] {
            assert_eq!(Request::from_bytes(broken).command(), "");
        }
    }
}
