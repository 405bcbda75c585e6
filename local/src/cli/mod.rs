//! The commands of `onsale`, one module each.

pub mod audit;
