//! Wiring of reserve.
fn main() {}
