//! The data directory: the secrets and the state of one engine, used by one process at a time.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use engine::domain::basics::ids::{DeploymentId, InvalidId};
use serde::{Deserialize, Serialize};
use shared::hex::to_hex;
use tempfile::TempDir;

use crate::dir_lock::DirLock;

/// Default data directory, relative to the current directory.
pub const DEFAULT: &str = ".onsale/data";
/// File that the process which uses the directory has locked.
const LOCK_FILE: &str = "up.lock";
/// File of the secrets, in the data directory.
const SECRETS_FILE: &str = "secrets.json";
/// Length of a secret in bytes.
const SECRET_BYTES: usize = 32;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process runs an engine on it.
    #[error("{} is in use: another onsale up runs on it", .0.display())]
    InUse(PathBuf),
    /// No engine has run on it.
    #[error("{} has no secrets: start onsale up on this directory first", .0.display())]
    NoSecrets(PathBuf),
    /// The secrets are not what [`DataDir::secrets`] writes.
    #[error("{}: {source}", path.display())]
    Malformed { path: PathBuf, source: serde_json::Error },
    /// The system gives no randomness.
    #[error("the system gives no entropy for the secrets")]
    NoEntropy,
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

/// The secrets of an engine on one machine, generated once and kept in the data directory.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Secrets {
    pub admission: String,
    /// Signs the development tokens of buyers and operators.
    pub identity: String,
    /// Signs the callbacks of the payment provider `stripe`; looks as Stripe's do.
    pub stripe: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl Secrets {
    fn generate() -> Result<Self, Error> {
        Ok(Self {
            admission: random_hex()?,
            identity: random_hex()?,
            stripe: format!("whsec_{}", random_hex()?),
        })
    }

    /// The engine's deployment id: eight digits, made from a secret, so that a data directory needs nothing new, and
    /// another one has another.
    ///
    /// # Errors
    /// An id of ours breaks the rules of ids: a defect.
    pub fn deployment(&self) -> Result<DeploymentId, InvalidId> {
        let made_from = format!("deployment:{}", self.identity);
        let digest = digest::digest(&digest::SHA256, made_from.as_bytes());
        DeploymentId::new(to_hex(&digest.as_ref()[..4]))
    }

    /// Reads the secrets of an engine that has run on `dir`.
    ///
    /// # Errors
    /// [`Error::NoSecrets`] if none has.
    pub fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(SECRETS_FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoSecrets(dir.to_owned()));
            }
            Err(source) => return Err(Error::Io { path, source }),
        };
        serde_json::from_slice(&text).map_err(|source| Error::Malformed { path, source })
    }

    /// Writes them in one step, readable by their owner only.
    fn write(&self, dir: &Path) -> Result<(), Error> {
        let path = dir.join(SECRETS_FILE);
        let fresh = dir.join(format!("{SECRETS_FILE}.new"));
        let text = serde_json::to_vec_pretty(self)
            .map_err(|source| Error::Malformed { path: path.clone(), source })?;
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(0o600);
        let mut file = options.open(&fresh).map_err(io_at(&fresh))?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(io_at(&fresh))?;
        fs::rename(&fresh, &path).map_err(io_at(&path))
    }
}

fn random_hex() -> Result<String, Error> {
    let mut random = [0_u8; SECRET_BYTES];
    aws_lc_rs::rand::fill(&mut random).map_err(|_unspecified| Error::NoEntropy)?;
    Ok(to_hex(&random))
}

/// A data directory that this process has locked until it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: DirLock,
    _temporary: Option<TempDir>,
}

impl DataDir {
    /// Locks a directory, creating it if it is absent.
    ///
    /// # Errors
    /// [`Error::InUse`] while another process has it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        fs::create_dir_all(path).map_err(io_at(path))?;
        let path = fs::canonicalize(path).map_err(io_at(path))?;
        let lock = path.join(LOCK_FILE);
        let lock = DirLock::acquire(&lock).map_err(io_at(&lock))?;
        let lock = lock.ok_or_else(|| Error::InUse(path.clone()))?;
        Ok(Self { path, _lock: lock, _temporary: None })
    }

    /// Makes a directory that is removed when this is dropped.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no place for it.
    pub fn temporary() -> Result<Self, Error> {
        let temporary = tempfile::Builder::new().prefix("onsale-").tempdir();
        let temporary = temporary.map_err(io_at(&std::env::temp_dir()))?;
        let mut dir = Self::open(temporary.path())?;
        dir._temporary = Some(temporary);
        Ok(dir)
    }

    /// Path of the directory, without symbolic links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The secrets kept here; made now if there are none.
    ///
    /// # Errors
    /// An [`Error`] if they can be neither read nor written.
    pub fn secrets(&self) -> Result<Secrets, Error> {
        match Secrets::read(&self.path) {
            Err(Error::NoSecrets(_)) => {
                let secrets = Secrets::generate()?;
                secrets.write(&self.path)?;
                Ok(secrets)
            }
            read => read,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn secrets_are_made_once_and_readable_by_their_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Secrets::read(dir.path()), Err(Error::NoSecrets(_))));
        let made = DataDir::open(dir.path()).unwrap().secrets().unwrap();
        assert_eq!(made.admission.len(), 2 * SECRET_BYTES);
        assert_ne!(made.admission, made.identity);
        assert_eq!(DataDir::open(dir.path()).unwrap().secrets().unwrap(), made);
        assert_eq!(Secrets::read(dir.path()).unwrap(), made);
        let mode = fs::metadata(dir.path().join(SECRETS_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!format!("{made:?}").contains(&made.identity));
    }

    #[test]
    fn a_directory_has_one_owner_and_a_temporary_one_is_removed() {
        let temporary = DataDir::temporary().unwrap();
        let path = temporary.path().to_owned();
        assert!(matches!(DataDir::open(&path), Err(Error::InUse(_))));
        drop(temporary);
        assert!(!path.exists());
    }
}
