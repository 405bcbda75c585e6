//! The provider's ledger, which the audit reads.

use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::OrderNumber;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    #[serde(default = "stripe")]
    pub provider: String,
    /// Payment id, unique at the provider.
    pub payment: String,
    /// The order it was made for.
    pub order: OrderNumber,
    /// The deployment whose id it carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    pub amount_minor: MinorUnits,
    /// Currency of every amount of the entry.
    pub currency: Currency,
    /// Its refunds, newest first.
    pub refunds: Vec<LedgerRefund>,
}

/// A refund, made or pending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRefund {
    /// Amount, in the payment's currency.
    pub amount_minor: MinorUnits,
    /// `succeeded`, `pending` or `failed`.
    pub status: String,
}

/// What a ledger says that names no provider.
fn stripe() -> String {
    crate::PROVIDER.to_owned()
}
