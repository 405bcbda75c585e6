//! What the provider's books say, for the audit.

use engine::domain::money::Currency;
use engine::domain::number::OrderNumber;
use serde::{Deserialize, Serialize};

/// A captured payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// Its name.
    pub payment: String,
    /// The order it was made for.
    pub order: OrderNumber,
    /// How much was captured, in minor units.
    pub amount_minor: i64,
    /// The currency they are units of.
    pub currency: Currency,
    /// Everything that was sent back of it.
    pub refunds: Vec<LedgerRefund>,
}

/// Money that went back, or is to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRefund {
    /// How much, in minor units.
    pub amount_minor: i64,
    /// `succeeded`, `pending` or `failed`.
    pub status: String,
}
