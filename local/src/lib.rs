//! Onsale on one machine.

pub mod servers;
