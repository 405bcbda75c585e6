//! Wiring of expire-orders.
fn main() {}
