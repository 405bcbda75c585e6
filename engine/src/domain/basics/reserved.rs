//! Reserved names of providers and merchants, which nobody can configure: `wallet` and `free`.

use super::ids::{MerchantId, ProviderId};

/// The name of the provider of what wallets pay, and of the merchant whose sales fill them: of no other.
pub const WALLET: &str = "wallet";

impl MerchantId {
    /// True if what is sold for it fills wallets.
    #[must_use]
    pub fn is_wallet(&self) -> bool {
        self.as_str() == WALLET
    }
}

impl ProviderId {
    /// True if what it pays comes from a wallet.
    #[must_use]
    pub fn is_wallet(&self) -> bool {
        self.as_str() == WALLET
    }
}

/// The provider of what costs nothing: the name of no other.
pub const NO_PROVIDER: &str = "free";

impl ProviderId {
    /// True if it is the name of none that can be configured: its payments are made here alone.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.as_str() == NO_PROVIDER || self.is_wallet()
    }
}
