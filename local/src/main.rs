//! `onsale`.
fn main() {}
