//! What a watcher of a waiting room has seen: signed lines by which others tell that a record was shown before the round
//! that decides.

use std::path::Path;
use std::{fmt, fs, io};

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use engine::domain::basics::bytes::Hash;
use serde::{Deserialize, Serialize};
use shared::hex::from_hex;

/// A watcher's public key for Ed25519, in lower-case hexadecimal digits.
pub type Watcher = Hash;

/// A line of a watcher: a record that was shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sighting {
    /// The hash of the record.
    pub hash: Hash,
    /// When it was shown, by the watcher's clock, in milliseconds since the Unix epoch.
    pub at_ms: i64,
    /// The address of the room document that showed it.
    pub address: String,
    /// The watcher's key.
    pub key: Watcher,
    /// The signature over [`Sighting::message`], as two halves of 32 bytes in hexadecimal digits.
    pub signature: String,
}

/// Why the lines of a watcher cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    File {
        /// Its path.
        file: String,
        /// What the system says.
        error: io::Error,
    },
    /// A line is none of a watcher.
    #[error("{file}, line {line}: {error}")]
    Line {
        /// The path of the file.
        file: String,
        /// Its number, from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// A line is not signed by the key that it names.
    #[error("{file}, line {line}: it is not signed by the key that it names")]
    Forged {
        /// The path of the file.
        file: String,
        /// Its number, from 1.
        line: usize,
    },
}

impl Sighting {
    /// What is signed.
    #[must_use]
    pub fn message(hash: &Hash, at_ms: i64, address: &impl fmt::Display) -> String {
        format!("onsale room watch\n{hash}\n{at_ms}\n{address}")
    }

    /// Whether it is signed by the key that it names.
    #[must_use]
    pub fn is_signed(&self) -> bool {
        let Self { hash, at_ms, address, key, signature } = self;
        let message = Self::message(hash, *at_ms, address);
        let key = UnparsedPublicKey::new(&ED25519, key.0);
        from_hex(signature)
            .is_some_and(|signature| key.verify(message.as_bytes(), &signature).is_ok())
    }

    /// Reads the lines of a file that are by one of these watchers. Others are nobody's whom the caller trusts.
    ///
    /// # Errors
    /// The file cannot be read, a line is none, or one of theirs has another signature.
    pub fn read(file: &Path, watchers: &[Watcher]) -> Result<Vec<Self>, Error> {
        let name = || file.display().to_string();
        let text = fs::read_to_string(file).map_err(|error| Error::File { file: name(), error })?;
        let mut sightings = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let sighting: Self = serde_json::from_str(text).map_err(|error| Error::Line {
                file: name(),
                line,
                error,
            })?;
            if !watchers.contains(&sighting.key) {
                continue;
            }
            if !sighting.is_signed() {
                return Err(Error::Forged { file: name(), line });
            }
            sightings.push(sighting);
        }
        Ok(sightings)
    }
}
