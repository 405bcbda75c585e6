//! A small HTTP proxy in front of DynamoDB or SQS, which decides request by request what becomes of
//! it. Messages have a content length, as those of the AWS SDKs and of their servers have.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Number of requests that are remembered, the newest.
const REMEMBERED: usize = 1000;

/// A request as it came by.
#[derive(Debug, Clone)]
pub struct Request {
    /// The operation, such as `TransactWriteItems`.
    pub operation: String,
    /// The JSON it carried.
    pub body: serde_json::Value,
}

/// Action on a request.
#[derive(Debug, Clone)]
pub enum Act {
    Forward,
    /// Let it through after this time.
    ForwardLate(Duration),
    /// Let it through twice, one after the other, and give the second answer.
    ForwardTwice,
    /// Let it through and cut the connection instead of answering.
    LoseAnswer,
    /// Let it through and cut the connection in the middle of the answer.
    CutAnswer,
    /// Cut the connection before it gets through.
    LoseRequest,
    /// Answer in the server's stead: a status and JSON.
    Answer(u16, serde_json::Value),
}

/// Requests that came by.
#[derive(Debug, Default)]
struct Log {
    counts: HashMap<String, usize>,
    newest: VecDeque<Request>,
}

impl Log {
    /// Records a request; returns the number of earlier ones of the same operation.
    fn record(&mut self, request: Request) -> usize {
        let count = self.counts.entry(request.operation.clone()).or_default();
        *count += 1;
        let before = *count - 1;
        if self.newest.len() == REMEMBERED {
            self.newest.pop_front();
        }
        self.newest.push_back(request);
        before
    }
}

/// Decides on a request, given how many of the same operation came before.
type Decide = dyn Fn(&Request, usize) -> Act + Send + Sync;

/// A running proxy; it stops when dropped.
#[derive(Debug)]
pub struct HttpProxy {
    address: SocketAddr,
    log: Arc<Mutex<Log>>,
    task: JoinHandle<()>,
}

impl HttpProxy {
    /// Starts in front of `upstream` (`http://host:port`). `decide` is given each request and how
    /// many of the same operation came before.
    ///
    /// # Errors
    /// The address is none, or there is no port to listen on.
    pub async fn start(
        upstream: &str,
        decide: impl Fn(&Request, usize) -> Act + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let bare = upstream.trim_start_matches("http://").trim_end_matches('/');
        let upstream: SocketAddr = bare.parse().map_err(io::Error::other)?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let log = Arc::new(Mutex::new(Log::default()));
        let (decide, recorded): (Arc<Decide>, _) = (Arc::new(decide), Arc::clone(&log));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let passage = Passage {
                    upstream,
                    server: None,
                    decide: Arc::clone(&decide),
                    log: Arc::clone(&recorded),
                };
                tokio::spawn(async move {
                    // A connection that ends is the end of its task.
                    let _ended = passage.serve(client).await;
                });
            }
        });
        Ok(Self { address, log, task })
    }

    /// URL at which it listens.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests of an operation so far, as far as they are remembered: the newest thousand of
    /// all.
    #[must_use]
    pub fn seen(&self, operation: &str) -> Vec<Request> {
        let log = lock(&self.log);
        log.newest.iter().filter(|request| request.operation == operation).cloned().collect()
    }
}

impl Drop for HttpProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One message: its head and its body.
struct Message {
    head: Vec<u8>,
    body: Vec<u8>,
}

/// One client's connection, and ours to the server behind.
struct Passage {
    upstream: SocketAddr,
    server: Option<TcpStream>,
    decide: Arc<Decide>,
    log: Arc<Mutex<Log>>,
}

impl Passage {
    async fn serve(mut self, mut client: TcpStream) -> io::Result<()> {
        client.set_nodelay(true)?;
        while let Some(message) = read_message(&mut client).await? {
            match self.decided(&message) {
                Act::LoseRequest => return Ok(()),
                Act::Answer(status, json) => {
                    client.write_all(&answer(status, &json.to_string())).await?;
                }
                Act::Forward => self.pass(&mut client, &message).await?,
                Act::ForwardLate(late) => {
                    tokio::time::sleep(late).await;
                    self.pass(&mut client, &message).await?;
                }
                Act::ForwardTwice => {
                    self.ask(&client, &message).await?;
                    self.pass(&mut client, &message).await?;
                }
                Act::LoseAnswer => return self.ask(&client, &message).await.map(drop),
                Act::CutAnswer => {
                    let Message { mut head, body } = self.ask(&client, &message).await?;
                    head.extend(body);
                    return client.write_all(&head[..head.len() / 2]).await;
                }
            }
        }
        Ok(())
    }

    fn decided(&self, message: &Message) -> Act {
        let target = header(&message.head, "x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let body = serde_json::from_slice(&message.body).unwrap_or_default();
        let request = Request { operation, body };
        let before = lock(&self.log).record(request.clone());
        (self.decide)(&request, before)
    }

    async fn pass(&mut self, client: &mut TcpStream, message: &Message) -> io::Result<()> {
        let answer = self.ask(client, message).await?;
        client.write_all(&answer.head).await?;
        client.write_all(&answer.body).await
    }

    /// Asks the server; gives up with it when the client goes away, so that nothing is fetched for
    /// somebody who is dead.
    async fn ask(&mut self, client: &TcpStream, message: &Message) -> io::Result<Message> {
        let mut server = match self.server.take() {
            Some(server) => server,
            None => TcpStream::connect(self.upstream).await?,
        };
        server.set_nodelay(true)?;
        server.write_all(&message.head).await?;
        server.write_all(&message.body).await?;
        let answer = tokio::select! {
            answer = read_message(&mut server) => answer?,
            () = gone(client) => None,
        };
        let answer = answer.ok_or(io::ErrorKind::ConnectionReset)?;
        let closes = header(&answer.head, "connection").is_some_and(|is| is == "close");
        self.server = Some(server).filter(|_| !closes);
        Ok(answer)
    }
}

/// Returns when the client has closed its connection.
async fn gone(client: &TcpStream) {
    let mut byte = [0];
    if let Ok(1..) = client.peek(&mut byte).await {
        // It sends its next request already, so it is there.
        std::future::pending::<()>().await;
    }
}

fn answer(status: u16, json: &str) -> Vec<u8> {
    let length = json.len();
    format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/x-amz-json-1.0\r\n\
         content-length: {length}\r\n\r\n{json}"
    )
    .into_bytes()
}

fn header(head: &[u8], name: &str) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut named = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim().to_owned())
}

/// One HTTP/1.1 message with a content length.
async fn read_message(stream: &mut TcpStream) -> io::Result<Option<Message>> {
    let mut head = Vec::new();
    let end = loop {
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut head).await? == 0 {
            return Ok(None);
        }
    };
    let mut body = head.split_off(end);
    let length: usize = header(&head, "content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Message { head, body }))
}
