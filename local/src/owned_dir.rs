//! Owning a directory: one live process at a time works in it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// The lock on a directory, lifted when this is dropped. The system lifts it too when the process
/// ends, however it ends.
#[derive(Debug)]
pub struct Owner(File);

impl Owner {
    /// Makes this process the owner by the lock file `lock`; `None` while another one is.
    ///
    /// # Errors
    /// Fails if there can be no such file.
    pub fn of(lock: &Path) -> io::Result<Option<Self>> {
        let file = File::create(lock)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Owner {
    /// Closing the file alone would leave the lock to a child that was forked meanwhile and has not
    /// begun its program yet: it still has the file open.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a lock is lifted only when the process ends");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_lifted_by_its_owner_even_while_a_copy_of_its_file_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        let owner = Owner::of(&lock).unwrap().unwrap();
        assert!(Owner::of(&lock).unwrap().is_none());
        // What a child has between fork and exec.
        let copy = owner.0.try_clone().unwrap();
        drop(owner);
        assert!(Owner::of(&lock).unwrap().is_some());
        drop(copy);
    }
}
