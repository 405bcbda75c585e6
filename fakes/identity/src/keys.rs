//! The RSA key of an issuer: made when it is first needed, kept in a file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rand;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::KeyPair as _;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{DecodingKey, EncodingKey};
use serde_json::{Value, json};

use crate::Realm;

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the key of the {realm} issuer: {why}")]
pub struct NoKey {
    realm: &'static str,
    why: String,
}

/// A key and what others may know of it.
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) sign: EncodingKey,
    pub(crate) verify: DecodingKey,
    /// Its public half as RFC 7517 writes it.
    pub(crate) public: Value,
}

/// The key of an issuer, made at its first use.
pub(crate) struct LazyKey {
    realm: Realm,
    file: PathBuf,
    key: OnceLock<Result<Key, NoKey>>,
}

impl std::fmt::Debug for LazyKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("LazyKey").field("file", &self.file).finish_non_exhaustive()
    }
}

impl LazyKey {
    /// The key that is, or will be, in the directory.
    pub(crate) fn new(realm: Realm, dir: &Path) -> Self {
        let file = dir.join(format!("issuer-{}.key", realm.as_str()));
        Self { realm, file, key: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> Result<&Key, NoKey> {
        let key = self.key.get_or_init(|| {
            let why = |why: String| NoKey { realm: self.realm.as_str(), why };
            let der = kept(&self.file).map_err(|error| why(error.to_string()))?;
            Key::from_pkcs8(&der).map_err(|error| why(error.to_string()))
        });
        key.as_ref().map_err(Clone::clone)
    }
}

impl Key {
    fn from_pkcs8(der: &[u8]) -> Result<Self, aws_lc_rs::error::KeyRejected> {
        let pair = KeyPair::from_pkcs8(der)?;
        let public = pair.public_key();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let modulus = public.modulus().big_endian_without_leading_zero().to_vec();
        let exponent = public.exponent().big_endian_without_leading_zero().to_vec();
        let id = part(digest(&SHA256, &modulus).as_ref());
        let id: String = id.chars().take(16).collect();
        let public = json!({
            "kty": "RSA", "use": "sig", "alg": "RS256", "kid": id,
            "n": part(&modulus), "e": part(&exponent),
        });
        let sign = EncodingKey::from_rsa_der(pkcs1(der));
        let verify = DecodingKey::from_rsa_raw_components(&modulus, &exponent);
        Ok(Self { id, sign, verify, public })
    }
}

/// The PKCS#1 key in a PKCS#8 document of RSA, which is its last part: what comes before it, version and
/// algorithm, has always the same length for keys of this size.
fn pkcs1(pkcs8: &[u8]) -> &[u8] {
    const BEFORE: usize = 26;
    pkcs8.get(BEFORE..).unwrap_or_default()
}

/// The key in the file; made now if there is none. Whoever makes one at the same time has the same.
fn kept(file: &Path) -> io::Result<Vec<u8>> {
    match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        read => return read,
    }
    let pair = KeyPair::generate(KeySize::Rsa2048).map_err(io::Error::other)?;
    let der: Pkcs8V1Der<'_> = pair.as_der().map_err(io::Error::other)?;
    let mut random = [0_u8; 8];
    rand::fill(&mut random).map_err(io::Error::other)?;
    let suffix: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let fresh = file.with_extension(suffix);
    let mut options = File::options();
    let mut written = options.write(true).create_new(true).mode(0o600).open(&fresh)?;
    written.write_all(der.as_ref())?;
    written.sync_all()?;
    let linked = fs::hard_link(&fresh, file);
    fs::remove_file(&fresh)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs::read(file),
        linked => linked.map(|()| der.as_ref().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_readable_by_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let first = LazyKey::new(Realm::Buyers, dir.path());
        assert!(!first.file.exists());
        let id = first.get().unwrap().id.clone();
        assert_eq!(LazyKey::new(Realm::Buyers, dir.path()).get().unwrap().id, id);
        assert_ne!(LazyKey::new(Realm::Operators, dir.path()).get().unwrap().id, id);
        let mode = fs::metadata(&first.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_is_no_key_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("issuer-buyers.key"), b"nonsense").unwrap();
        let key = LazyKey::new(Realm::Buyers, dir.path());
        assert!(key.get().is_err_and(|error| error.to_string().contains("buyers")));
    }
}
