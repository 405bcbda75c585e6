//! Wiring of pay-callback.
fn main() {}
