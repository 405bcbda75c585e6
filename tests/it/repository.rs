//! The repository that the tests are of.

use std::path::{Path, PathBuf};

/// Its folder.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text of one of its files.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}
