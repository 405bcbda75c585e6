//! A watcher of a waiting room: it asks for the room document as any page does, and signs each record that it is shown.

use std::io::{self, Write};
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use engine::domain::admission::room::document::{Document, RoomState};
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::time::Timestamp;
use shared::hex::to_hex;
use tokio::time::sleep;

use super::witness::Sighting;

/// Time between two requests while a draw is under way, and before and after, in milliseconds.
const DRAWING_MS: u64 = 2_000;
const OTHERWISE_MS: u64 = 10_000;
/// The longest that an answer may take.
const DEADLINE: Duration = Duration::from_secs(20);

/// Why nobody watches.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No key could be made.
    #[error("no key could be made")]
    Key,
    /// The client of HTTP cannot be made.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// A line cannot be written.
    #[error("writing a line: {0}")]
    File(#[from] io::Error),
}

/// A watcher with a key of its own, which is kept nowhere.
#[derive(Debug)]
pub struct Watch(Ed25519KeyPair);

impl Watch {
    /// A watcher with a new key.
    ///
    /// # Errors
    /// There is no randomness.
    pub fn new() -> Result<Self, Error> {
        Ed25519KeyPair::generate().map(Self).map_err(|_| Error::Key)
    }

    /// The public key by which others know its lines.
    #[must_use]
    pub fn key(&self) -> Hash {
        let key = self.0.public_key().as_ref().try_into();
        Hash(key.unwrap_or_else(|_| unreachable!("a public key has 32 bytes")))
    }

    /// What it signs of a record that an address has shown.
    #[must_use]
    pub fn sign(&self, hash: Hash, at: Timestamp, address: &str) -> Sighting {
        let at_ms = at.ms();
        let signed = self.0.sign(Sighting::message(&hash, at_ms, &address).as_bytes());
        let signature = to_hex(signed.as_ref());
        Sighting { hash, at_ms, address: address.to_owned(), key: self.key(), signature }
    }

    /// Asks an address for its room document, and writes a signed line of each new record that it shows, until places are
    /// drawn; to the end of the room if it `stays`. An answer that does not come, or is none, is asked for again.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn run(
        &self,
        address: &str,
        lines: &mut (impl Write + Send),
        stays: bool,
    ) -> Result<(), Error> {
        let client = reqwest::Client::builder().timeout(DEADLINE).build()?;
        let mut last = None;
        loop {
            let (state, head) = match shown(&client, address).await {
                Ok(document) => (Some(document.state), Some(document.head)),
                Err(error) => {
                    tracing::warn!(%error, "the room is not shown");
                    (None, None)
                }
            };
            if let Some(hash) = head.filter(|_| head != last) {
                let sighting = self.sign(hash, Timestamp::now(), address);
                let line = serde_json::to_string(&sighting).map_err(io::Error::other)?;
                writeln!(lines, "{line}")?;
                lines.flush()?;
                last = head;
            }
            let wait_ms = match state {
                Some(RoomState::Drawing) => DRAWING_MS,
                Some(RoomState::Closed | RoomState::SoldOut) => return Ok(()),
                Some(RoomState::Drawn | RoomState::Serving) if !stays => return Ok(()),
                Some(_) | None => OTHERWISE_MS,
            };
            sleep(Duration::from_millis(wait_ms)).await;
        }
    }
}

async fn shown(client: &reqwest::Client, address: &str) -> Result<Document, reqwest::Error> {
    client.get(address).send().await?.error_for_status()?.json().await
}
