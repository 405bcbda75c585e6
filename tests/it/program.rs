//! The program under test.

use std::path::PathBuf;

/// Where cargo has put `onsale`: beside the tests.
pub fn onsale() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("onsale");
    assert!(program.exists(), "build the workspace first: this test runs {}", program.display());
    program
}
