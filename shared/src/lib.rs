//! The engine of Onsale.
