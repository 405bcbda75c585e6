//! The randomness beacon that a function reaches.

use engine::domain::room::bytes::{Hash, Signature};
use engine::ports::{Beacon, StoreError, Stored};

/// The beacon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveBeacon {
    /// None is configured: it does not answer.
    NotConfigured,
}

impl LiveBeacon {
    fn unavailable<T>(self) -> Stored<T> {
        match self {
            Self::NotConfigured => {
                Err(StoreError::Unavailable("no beacon is configured".to_owned()))
            }
        }
    }
}

impl Beacon for LiveBeacon {
    async fn latest(&self, _: Hash) -> Stored<u64> {
        self.unavailable()
    }

    async fn round(&self, _: Hash, _: u64) -> Stored<Option<Signature>> {
        self.unavailable()
    }
}
