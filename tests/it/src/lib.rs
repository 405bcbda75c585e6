//! Nothing here: the tests are in `main.rs` beside this crate's manifest.
