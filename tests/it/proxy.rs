//! A small HTTP proxy in front of a stand-in, for what stand-ins never do: lose an answer, say
//! that transactions conflict, throttle, leave keys unprocessed.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request as it came by.
#[derive(Debug, Clone)]
pub struct Request {
    /// The operation, such as `TransactWriteItems`.
    pub operation: String,
    /// The JSON it carried.
    pub body: serde_json::Value,
}

/// What to do with a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// Let it through.
    Forward,
    /// Let it through and cut the connection instead of answering.
    LoseAnswer,
    /// Cut the connection before it gets through.
    LoseRequest,
    /// Answer in the server's stead: a status and JSON.
    Answer(u16, serde_json::Value),
}

/// A running proxy; it stops when dropped.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Starts in front of `upstream` (`http://host:port`). `decide` is given each request and how
    /// many of the same operation came before.
    pub async fn start(
        upstream: &str,
        decide: impl Fn(&Request, usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        let upstream: SocketAddr = upstream.trim_start_matches("http://").parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (decide, log) = (Arc::new(decide), Arc::clone(&seen));
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (decide, log) = (Arc::clone(&decide), Arc::clone(&log));
                tokio::spawn(async move {
                    // A connection that ends is the end of its task.
                    let _ = serve(client, upstream, &*decide, &log).await;
                });
            }
        });
        Self { address, seen, task }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request of an operation so far.
    pub fn seen(&self, operation: &str) -> Vec<Request> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|request| request.operation == operation).cloned().collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut client: TcpStream,
    upstream: SocketAddr,
    decide: &(dyn Fn(&Request, usize) -> Act + Send + Sync),
    log: &Mutex<Vec<Request>>,
) -> std::io::Result<()> {
    while let Some((head, body)) = read_message(&mut client).await? {
        let target = header(&head, "x-amz-target").unwrap_or_default();
        let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
        let json = serde_json::from_slice(&body).unwrap_or_default();
        let request = Request { operation, body: json };
        let before = {
            let mut log = log.lock().unwrap();
            let same = |known: &&Request| known.operation == request.operation;
            let before = log.iter().filter(same).count();
            log.push(request.clone());
            before
        };
        let act = decide(&request, before);
        match act {
            Act::LoseRequest => return Ok(()),
            Act::Answer(status, json) => {
                let json = json.to_string();
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-type: application/x-amz-json-1.0\r\n\
                     content-length: {}\r\n\r\n",
                    json.len()
                );
                client.write_all(head.as_bytes()).await?;
                client.write_all(json.as_bytes()).await?;
            }
            Act::Forward | Act::LoseAnswer => {
                let mut server = TcpStream::connect(upstream).await?;
                server.write_all(&head).await?;
                server.write_all(&body).await?;
                let answer = read_message(&mut server).await?;
                let (Act::Forward, Some((head, body))) = (act, answer) else { return Ok(()) };
                client.write_all(&head).await?;
                client.write_all(&body).await?;
            }
        }
    }
    Ok(())
}

fn header(head: &[u8], name: &str) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    let mut named = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
    named.next().map(|(_, value)| value.trim().to_owned())
}

/// One HTTP/1.1 message with a content length: its head and its body.
async fn read_message(stream: &mut TcpStream) -> std::io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let mut body = bytes.split_off(end);
    let length: usize = header(&bytes, "content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some((bytes, body)))
}
