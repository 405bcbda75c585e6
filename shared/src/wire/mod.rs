//! What lies below the adapters: whom a connection trusts, and HTTP to AWS and the payment providers.
//!
//! - [`trust`] says which certificate authorities are believed, the same for Redis, AWS and providers;
//! - [`https`] makes requests, and forgets connections that may be dead.

/// Without it every cold start spends 30 ms on gathering jitter (docs/cold-start.md), and nothing
/// else would show it.
const _: &str = env!(
    "AWS_LC_SYS_NO_JITTER_ENTROPY",
    "build inside the repository, where .cargo/config.toml sets it, or set it to 1"
);

pub mod https;
pub mod trust;

pub use https::Https;
pub use trust::Trust;
