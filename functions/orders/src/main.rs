//! Wiring of orders.
fn main() {}
