//! The provider's file: one change a line, appended before it is answered.
//!
//! A write that fails halfway, on a full disk say, is cut off again, so that the file always ends with
//! a whole line and the next change can be written as soon as there is space.

use std::fmt::Debug;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::Error;

/// Where lines are appended.
pub(crate) trait Medium: Write + Debug + Send {
    /// Cuts off everything behind the first `bytes` bytes.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

impl Medium for File {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }
}

/// The file while it is written.
#[derive(Debug)]
pub(crate) struct Journal {
    medium: Box<dyn Medium>,
    /// Length of the whole lines in bytes; what lies behind was not answered.
    whole_bytes: u64,
    /// True if something may lie behind them.
    is_torn: bool,
}

impl Journal {
    /// Opens a file, creating it if it is absent, and has each line of it read. Half a line at its end
    /// is a change that was never answered, and is cut off.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened, [`Error::Line`] if a line cannot be read.
    pub(crate) fn open<E: std::fmt::Display>(
        path: &Path,
        mut read: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Self, Error> {
        let opening = || Error::io(format!("opening {}", path.display()));
        let options = || File::options().create(true).append(true).read(true).clone();
        let mut file = options().open(path).map_err(opening())?;
        let text = std::fs::read(path).map_err(opening())?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for (index, line) in text[..whole].split(|byte| *byte == b'\n').enumerate() {
            if line.is_empty() {
                continue;
            }
            read(line).map_err(|why| Error::Line {
                path: path.to_owned(),
                line: index + 1,
                why: why.to_string(),
            })?;
        }
        let whole_bytes = length(whole);
        if text.len() > whole {
            let bytes = text.len() - whole;
            tracing::warn!(
                file = %path.display(), bytes,
                "the last line is torn: it was never answered, and is dropped"
            );
            file.cut(whole_bytes).map_err(opening())?;
        }
        Ok(Self::on(Box::new(file), whole_bytes))
    }

    /// A journal on a medium that has this many bytes of whole lines.
    pub(crate) fn on(medium: Box<dyn Medium>, whole_bytes: u64) -> Self {
        Self { medium, whole_bytes, is_torn: false }
    }

    /// Appends whole lines: all of them, or none.
    ///
    /// # Errors
    /// They could not be written; the next call tries again to have a whole file.
    pub(crate) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.medium.cut(self.whole_bytes)?;
        }
        self.is_torn = true;
        let written = self.medium.write_all(lines);
        match written {
            Ok(()) => self.whole_bytes += length(lines.len()),
            Err(_) => self.medium.cut(self.whole_bytes)?,
        }
        self.is_torn = false;
        written
    }
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A disk that takes so many bytes, and then the part of a write that still fits.
    #[derive(Debug, Clone)]
    pub(crate) struct SmallDisk {
        path: PathBuf,
        space: Arc<AtomicU64>,
    }

    impl SmallDisk {
        pub(crate) fn new(path: &Path, space: u64) -> Self {
            Self { path: path.to_owned(), space: Arc::new(space.into()) }
        }

        /// The disk is no longer full.
        pub(crate) fn grow(&self) {
            self.space.store(u64::MAX, Ordering::Relaxed);
        }

        pub(crate) fn medium(&self) -> Box<dyn Medium> {
            let file = File::options().create(true).append(true).open(&self.path).unwrap();
            Box::new(OnSmallDisk { file, disk: self.clone() })
        }
    }

    #[derive(Debug)]
    struct OnSmallDisk {
        file: File,
        disk: SmallDisk,
    }

    impl Write for OnSmallDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = self.file.metadata()?.len();
            let left = self.disk.space.load(Ordering::Relaxed).saturating_sub(taken);
            let fits = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.file.write(&bytes[..fits])
        }

        fn flush(&mut self) -> io::Result<()> {
            self.file.flush()
        }
    }

    impl Medium for OnSmallDisk {
        fn cut(&mut self, bytes: u64) -> io::Result<()> {
            self.file.set_len(bytes)
        }
    }
}
