//! Postings: transfers of their own, which no order's fact moves.
//!
//! Payouts and fees of providers and settlements with merchants are known from outside. Each is one transfer with a
//! key, so that it is made once: one transaction writes the posting and both accounts, on condition of the balance and
//! the version that were read of each. A posting that loses against another reads again, at most [three
//! times](PAUSES_MS).

use serde::{Deserialize, Serialize};

use super::{Account, Transfer, TransferCode};
use crate::domain::basics::ids::PostingKey;
use crate::domain::basics::money::{MinorUnits, Money};
use crate::domain::basics::time::Timestamp;

/// The longest pauses before a posting that met another is tried again, in milliseconds: then it is refused as busy.
pub const PAUSES_MS: [u64; 3] = [5, 10, 20];

/// A kind of posting: what moves between an account and the one that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PostingKind {
    /// A provider kept this for its service.
    ProviderFee,
    /// A provider gave this back of its fees.
    ProviderFeeBack,
    /// A provider paid this out to the platform's bank.
    Payout,
    /// This payout of a provider came back to it.
    PayoutBack,
    /// A merchant was paid this of a sale.
    Settlement,
    /// This settlement came back from the merchant.
    SettlementBack,
}

/// Why a posting is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PostingFault {
    /// The amount is not above 0.
    #[error("a posting moves more than nothing")]
    Nothing,
    /// Its account has no such money.
    #[error("a {0} is posted on the account of a {1}")]
    Account(&'static str, &'static str),
    /// Its account is what buyers have in their wallets.
    #[error("what is in wallets is its buyers'")]
    Wallets,
}

/// A transfer of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Posting {
    /// Its name among all postings.
    pub key: PostingKey,
    pub transfer: Transfer,
    /// When it was first posted.
    pub at: Timestamp,
}

impl PostingKind {
    pub const ALL: [Self; 6] = [
        Self::ProviderFee,
        Self::ProviderFeeBack,
        Self::Payout,
        Self::PayoutBack,
        Self::Settlement,
        Self::SettlementBack,
    ];

    /// The kind as it is written: that of its transfer, with hyphens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProviderFee => "provider-fee",
            Self::ProviderFeeBack => "provider-fee-back",
            Self::Payout => "payout",
            Self::PayoutBack => "payout-back",
            Self::Settlement => "settlement",
            Self::SettlementBack => "settlement-back",
        }
    }

    /// The transfer of this kind on a provider's or a merchant's account.
    ///
    /// # Errors
    /// [`PostingFault`] says why there is none.
    pub fn transfer(self, account: Account, amount: Money) -> Result<Transfer, PostingFault> {
        if amount.amount_minor <= MinorUnits::ZERO {
            return Err(PostingFault::Nothing);
        }
        // What wallets have moves with the orders that fill them and that they pay.
        let is_of_wallets = match &account {
            Account::Provider(provider) => provider.is_wallet(),
            Account::Merchant(merchant, _) => merchant.is_wallet(),
            Account::Fees
            | Account::Owed
            | Account::Bank
            | Account::Costs
            | Account::Disputed
            | Account::Explained => false,
        };
        if is_of_wallets {
            return Err(PostingFault::Wallets);
        }
        let (owner, is_owners) = match self {
            Self::ProviderFee | Self::ProviderFeeBack | Self::Payout | Self::PayoutBack => {
                ("provider", matches!(account, Account::Provider(_)))
            }
            Self::Settlement | Self::SettlementBack => {
                ("merchant", matches!(account, Account::Merchant(..)))
            }
        };
        if !is_owners {
            return Err(PostingFault::Account(self.as_str(), owner));
        }
        let (from, to, code) = match self {
            Self::ProviderFee => (Account::Costs, account, TransferCode::ProviderFee),
            Self::ProviderFeeBack => (account, Account::Costs, TransferCode::ProviderFeeBack),
            Self::Payout => (Account::Bank, account, TransferCode::Payout),
            Self::PayoutBack => (account, Account::Bank, TransferCode::PayoutBack),
            Self::Settlement => (account, Account::Bank, TransferCode::Settlement),
            Self::SettlementBack => (Account::Bank, account, TransferCode::SettlementBack),
        };
        Ok(Transfer { from, to, code, amount })
    }
}

impl std::fmt::Display for PostingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::money::Currency;

    fn euros(amount: i64) -> Money {
        Money { amount_minor: MinorUnits(amount), currency: Currency::new("EUR").unwrap() }
    }

    #[test]
    fn each_kind_is_posted_on_its_own_kind_of_account_only() {
        let provider: Account = "provider:stripe".parse().unwrap();
        let merchant: Account = "merchant:opera:carmen".parse().unwrap();
        for kind in PostingKind::ALL {
            let on = |account: &Account| kind.transfer(account.clone(), euros(5));
            let is_of_merchant =
                matches!(kind, PostingKind::Settlement | PostingKind::SettlementBack);
            assert_eq!(on(&provider).is_ok(), !is_of_merchant, "{kind}");
            assert_eq!(on(&merchant).is_ok(), is_of_merchant, "{kind}");
            for other in [Account::Fees, Account::Owed, Account::Bank, Account::Costs] {
                assert!(matches!(on(&other), Err(PostingFault::Account(..))), "{kind} {other}");
            }
            let own = if is_of_merchant { merchant.clone() } else { provider.clone() };
            for amount in [0, -1, i64::MIN] {
                let refused = kind.transfer(own.clone(), euros(amount));
                assert_eq!(refused, Err(PostingFault::Nothing), "{kind} {amount}");
            }
            let Ok(Transfer { code, .. }) = kind.transfer(own, euros(1)) else { panic!("{kind}") };
            assert_eq!(code.as_str(), kind.as_str().replace('-', "_"));
        }
    }

    #[test]
    fn what_is_in_wallets_is_not_posted_on() {
        for account in ["provider:wallet", "merchant:wallet:top-ups"] {
            let account: Account = account.parse().unwrap();
            for kind in PostingKind::ALL {
                let refused = kind.transfer(account.clone(), euros(5));
                assert_eq!(refused, Err(PostingFault::Wallets), "{kind} on {account}");
            }
        }
    }

    #[test]
    fn what_comes_back_undoes_what_went() {
        let provider: Account = "provider:stripe".parse().unwrap();
        let of = |kind: PostingKind| kind.transfer(provider.clone(), euros(5)).unwrap();
        let (out, back) = (of(PostingKind::Payout), of(PostingKind::PayoutBack));
        assert_eq!((out.from, out.to), (back.to, back.from));
        assert_eq!(of(PostingKind::ProviderFee).from, Account::Costs);
    }
}
