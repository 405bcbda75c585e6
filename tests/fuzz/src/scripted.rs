//! A server on the loopback interface that speaks Redis' protocol and answers every command with the
//! same reply: the adapter reads replies from a connection, and from nowhere else.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use crate::must;

/// A server of Redis' protocol with a given reply.
#[derive(Debug)]
pub(crate) struct Scripted {
    /// The URL at which it listens.
    pub(crate) url: String,
    reply: Arc<Mutex<Vec<u8>>>,
}

impl Scripted {
    /// Starts it; it ends with the process.
    pub(crate) fn start() -> Self {
        let listener = must(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)), "a free port");
        let url = format!("redis://{}", must(listener.local_addr(), "its address"));
        let reply: Arc<Mutex<Vec<u8>>> = Arc::default();
        let answers = reply.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answers = answers.clone();
                std::thread::spawn(move || serve(&stream, &answers));
            }
        });
        Self { url, reply }
    }

    /// From now on it answers with a list of texts.
    pub(crate) fn answer_list(&self, texts: &[&str]) {
        let texts = texts.iter().map(|text| bulk(text));
        self.answer(format!("*{}\r\n{}", texts.len(), texts.collect::<String>()));
    }

    /// From now on it answers with a text.
    pub(crate) fn answer_text(&self, text: &str) {
        self.answer(bulk(text));
    }

    fn answer(&self, reply: String) {
        *self.reply.lock().unwrap_or_else(PoisonError::into_inner) = reply.into_bytes();
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Answers the commands of a connection until it ends. What sets a connection up is welcome.
fn serve(stream: &TcpStream, answers: &Mutex<Vec<u8>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut writer = stream;
    let mut reader = BufReader::new(stream);
    loop {
        let verb = command(&mut reader)?;
        let reply = match verb.as_slice() {
            b"CLIENT" | b"HELLO" | b"SELECT" => b"+OK\r\n".to_vec(),
            _ => answers.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        writer.write_all(&reply).ok()?;
    }
}

/// Reads a command, a list of texts, and gives its first.
fn command(reader: &mut BufReader<&TcpStream>) -> Option<Vec<u8>> {
    let count = number(reader, '*')?;
    let mut first = None;
    for _ in 0..count {
        let bytes = number(reader, '$')?;
        let mut text = vec![0; bytes + 2];
        reader.read_exact(&mut text).ok()?;
        text.truncate(bytes);
        first.get_or_insert(text);
    }
    first
}

/// Reads a line of a mark and a number.
fn number(reader: &mut BufReader<&TcpStream>, mark: char) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(mark)?.parse().ok()
}
