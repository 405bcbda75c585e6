//! The tokens of a rehearsal's buyers: a program prints them, one for each buyer.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::process::Command;

use super::super::client::Bearer;

/// Number of programs that run at once.
const AT_ONCE: usize = 4;
/// Longest time that one may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest token, in bytes: API Gateway takes 10,240 bytes of headers.
const MAX_TOKEN_BYTES: usize = 8_192;

/// Why there is no token for a buyer.
#[derive(Debug, thiserror::Error)]
#[error("no token for buyer {buyer}: {program} {why}")]
pub struct NoToken {
    /// Number of the buyer.
    pub buyer: u64,
    pub program: String,
    /// What it did instead.
    pub why: String,
}

/// The tokens of all buyers, by number. They are made before the clock starts, so that no request waits for one.
#[derive(Debug, Default)]
pub struct Tokens(HashMap<u64, Bearer>);

impl Tokens {
    /// Runs `program NUMBER` once for each buyer, a few at a time.
    ///
    /// # Errors
    /// The program cannot be run, fails, takes too long, or prints no JWT.
    pub async fn make(program: &Path, buyers: u64) -> Result<Self, NoToken> {
        let made = stream::iter(0..buyers).map(|buyer| async move {
            let named = |why| NoToken { buyer, program: program.display().to_string(), why };
            let token = print(program, buyer).await.map_err(named)?;
            Ok((buyer, token))
        });
        made.buffer_unordered(AT_ONCE).try_collect().await.map(Self)
    }

    /// The token of a buyer.
    #[must_use]
    pub fn of(&self, buyer: u64) -> Option<&Bearer> {
        self.0.get(&buyer)
    }
}

async fn print(program: &Path, buyer: u64) -> Result<Bearer, String> {
    let mut command = Command::new(program);
    command.arg(buyer.to_string()).stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    let done = tokio::time::timeout(TIMEOUT, command.output()).await;
    let done = done.map_err(|_elapsed| format!("did not end within {} s", TIMEOUT.as_secs()))?;
    let done = done.map_err(|error| format!("cannot be run: {error}"))?;
    if !done.status.success() {
        return Err(format!("ended with {}", done.status));
    }
    // What was printed is a credential: it is not shown.
    let printed = String::from_utf8(done.stdout).map_err(|_| "printed no text".to_owned())?;
    let token = printed.trim();
    if !is_jwt(token) {
        return Err("printed no JWT".to_owned());
    }
    Bearer::new(token).map_err(|invalid| invalid.to_string())
}

/// True if a text has the form of a signed JWT: three parts in base64url.
fn is_jwt(token: &str) -> bool {
    let is_part = |part: &str| {
        let letters = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !part.is_empty() && part.bytes().all(letters)
    };
    token.len() <= MAX_TOKEN_BYTES && token.split('.').count() == 3 && token.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;

    fn program(dir: &TempDir, text: &str) -> PathBuf {
        let file = dir.path().join("token");
        fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
        file
    }

    #[tokio::test]
    async fn a_program_is_asked_once_for_each_buyer() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("asked");
        let text = format!("echo $1 >> {}; echo a.b$1.c", log.display());
        let tokens = Tokens::make(&program(&dir, &text), 12).await.unwrap();
        let mut asked: Vec<u64> =
            fs::read_to_string(&log).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        asked.sort_unstable();
        assert_eq!(asked, (0..12).collect::<Vec<_>>());
        assert!((0..12).all(|buyer| tokens.of(buyer).is_some()));
        assert!(tokens.of(12).is_none());
    }

    #[tokio::test]
    async fn what_prints_no_token_ends_the_rehearsal_before_it_begins() {
        let dir = tempfile::tempdir().unwrap();
        for (text, why) in [
            ("exit 3", "ended with exit status: 3"),
            ("echo secret", "printed no JWT"),
            ("echo a.b.c; echo d.e.f", "printed no JWT"),
            ("", "printed no JWT"),
        ] {
            let error = Tokens::make(&program(&dir, text), 3).await.unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{text}: {error}");
        }
        let missing = Tokens::make(Path::new("/no/such/program"), 1).await.unwrap_err();
        assert!(missing.why.starts_with("cannot be run"), "{missing}");
    }

    #[test]
    fn a_jwt_has_three_parts() {
        assert!(is_jwt("eyJhbGciOi.eyJz-dW_Ii.c2ln"));
        for token in ["", "a.b", "a..c", "a.b.c.d", "a.b.c d", "Bearer a.b.c"] {
            assert!(!is_jwt(token), "{token}");
        }
    }
}
