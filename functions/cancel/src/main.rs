//! Wiring of cancel.
fn main() {}
