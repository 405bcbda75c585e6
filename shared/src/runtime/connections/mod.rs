//! What lies below the adapters: whom a connection trusts, and HTTP to AWS and the payment providers.
//!
//! - [`trust`] says which certificate authorities are trusted, the same for Redis, AWS and providers;
//! - [`https`] makes requests, and forgets connections that may be dead;
//! - [`pause`] says how long to wait before another attempt.

mod ciphers;
mod entropy;
pub mod https;
pub mod pause;
pub mod trust;

pub use https::Https;
pub use trust::Trust;
