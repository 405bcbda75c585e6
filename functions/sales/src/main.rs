//! Wiring of sales.
fn main() {}
