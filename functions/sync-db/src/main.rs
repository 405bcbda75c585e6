//! Wiring of sync-db.
fn main() {}
