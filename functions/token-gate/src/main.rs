//! Wiring of token-gate.
fn main() {}
