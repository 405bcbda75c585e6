//! A request, byte by byte, and the answer to it.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::DEADLINE;
use crate::described::Answer;

/// A request, byte by byte.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) method: String,
    pub(super) target: Vec<u8>,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    /// What is sent in the end, if it is not made of the above.
    pub(super) instead: Option<Vec<u8>>,
    /// True if the sender says that nothing more will come.
    pub(super) ends: bool,
}

impl Raw {
    pub(super) fn new(method: &str, target: impl AsRef<[u8]>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.as_ref().to_vec(),
            headers: Vec::new(),
            body: Vec::new(),
            instead: None,
            ends: false,
        }
    }

    /// Bytes that are no request of ours.
    pub(super) fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self { instead: Some(bytes.as_ref().to_vec()), ..Self::new("", "") }
    }

    /// The same, and nothing more will come.
    pub(super) fn ending(self) -> Self {
        Self { ends: true, ..self }
    }

    pub(super) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    pub(super) fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    /// A body with its length.
    pub(super) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        let length = self.body.len().to_string();
        self.header("Content-Length", length)
    }

    pub(super) fn json(self, body: impl AsRef<[u8]>) -> Self {
        self.header("Content-Type", "application/json").body(body)
    }

    pub(super) fn written(&self) -> Vec<u8> {
        if let Some(bytes) = &self.instead {
            return bytes.clone();
        }
        let mut bytes = [self.method.as_bytes(), b" ", &self.target, b" HTTP/1.1\r\n"].concat();
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            bytes.extend(b"Host: tickets.example\r\n");
        }
        for (name, value) in &self.headers {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        bytes.extend(b"Connection: close\r\n\r\n");
        bytes.extend(&self.body);
        bytes
    }

    /// Sends it on a connection of its own and reads the answer to the end.
    pub(super) async fn send(&self, address: &str) -> Answer {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The engine may refuse before it has read everything.
        let _refused_early = stream.write_all(&self.written()).await;
        if self.ends {
            let _gone = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the connection stays open: {:?}", String::from_utf8_lossy(&answer));
        parse(&answer)
    }
}

/// An answer as it stands on the wire; ours all say how long they are.
fn parse(bytes: &[u8]) -> Answer {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Answer { status: 0, headers: HeaderMap::new(), body: bytes.to_vec() };
    };
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        headers.append(name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap());
    }
    Answer { status, headers, body: bytes[end + 4..].to_vec() }
}
