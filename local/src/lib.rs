//! Onsale on one machine.
