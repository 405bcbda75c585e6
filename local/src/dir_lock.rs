//! The lock on a directory: one live process at a time works in it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// A held lock, released when dropped. The system releases it too when the process ends, however it
/// ends.
#[derive(Debug)]
pub struct DirLock(File);

impl DirLock {
    /// Locks the file `lock`; `None` while another process holds it.
    ///
    /// # Errors
    /// The file cannot be created or locked.
    pub fn acquire(lock: &Path) -> io::Result<Option<Self>> {
        let file = File::create(lock)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for DirLock {
    /// Closing the file alone would leave the lock to a child that was forked meanwhile and has not
    /// begun its program yet: it still has the file open.
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a lock is released only when the process ends");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_released_by_its_holder_even_while_a_copy_of_its_file_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("lock");
        let held = DirLock::acquire(&lock).unwrap().unwrap();
        assert!(DirLock::acquire(&lock).unwrap().is_none());
        // What a child has between fork and exec.
        let copy = held.0.try_clone().unwrap();
        drop(held);
        assert!(DirLock::acquire(&lock).unwrap().is_some());
        drop(copy);
    }
}
