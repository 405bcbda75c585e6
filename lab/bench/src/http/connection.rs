//! One connection that sends requests which are ready to be sent and reads the answers: as little
//! work as a client can do, because it shares the processors with what is measured.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Where a head ends.
const HEAD_END: &[u8] = b"\r\n\r\n";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// A connection that is kept open.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(8192) })
    }

    /// Sends one request and reads its answer, which must say how long it is.
    pub(super) async fn send(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.stream.write_all(request).await?;
        self.read.clear();
        let head_bytes = loop {
            if let Some(end) = self.read.windows(HEAD_END.len()).position(|bytes| bytes == HEAD_END)
            {
                break end + HEAD_END.len();
            }
            self.read_more().await?;
        };
        let (status, body_bytes) = parse_head(&self.read[..head_bytes])
            .ok_or_else(|| io::Error::other("an answer without a status or a length"))?;
        while self.read.len() < head_bytes + body_bytes {
            self.read_more().await?;
        }
        Ok(Answer { status, body: self.read[head_bytes..].to_vec() })
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// The status and the length of the body, in bytes.
fn parse_head(head: &[u8]) -> Option<(u16, usize)> {
    let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = lines.filter_map(|line| line.split_once(':'));
    let (_, length) = headers.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    Some((status, length.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn a_head_has_a_status_and_a_length() {
        let head = b"HTTP/1.1 201 Created\r\nx: y\r\nContent-Length: 12\r\n\r\n";
        assert_eq!(parse_head(head), Some((201, 12)));
        assert_eq!(parse_head(b"HTTP/1.1 200 OK\r\n\r\n"), None);
        assert_eq!(parse_head(b"\r\n\r\n"), None);
    }

    #[tokio::test]
    async fn an_answer_in_pieces_is_one_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4];
            for answer in ["HTTP/1.1 409 Conf|lict\r\ncontent-length: 5\r\n\r|\n12|345", "short"] {
                stream.read_exact(&mut asked).await.unwrap();
                for piece in answer.split('|') {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                    tokio::task::yield_now().await;
                }
            }
        });
        let mut connection = Connection::open(address).await.unwrap();
        let answer = connection.send(b"ask!").await.unwrap();
        assert_eq!(answer, Answer { status: 409, body: b"12345".to_vec() });
        let cut_off = connection.send(b"ask!").await.unwrap_err();
        assert_eq!(cut_off.kind(), io::ErrorKind::UnexpectedEof);
        server.await.unwrap();
    }
}
