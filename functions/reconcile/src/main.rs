//! Wiring of reconcile.
fn main() {}
