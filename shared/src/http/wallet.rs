//! The reply of a buyer's wallets.

use schemars::JsonSchema;
use serde::Serialize;

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::wallet::{Wallet, WalletEntry, WalletStatement};
use engine::domain::order::fact::FactKind;

/// Most entries of a wallet that are shown: the newest.
pub const MAX_ENTRIES: usize = 100;

/// The buyer's wallets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WalletsReply {
    /// One for each currency, by its name.
    pub wallets: Vec<WalletReply>,
}

/// A wallet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WalletReply {
    /// The currency.
    pub currency: Currency,
    /// What it has, in minor units; below 0 only after a lost dispute of what had filled it.
    #[schemars(with = "i64")]
    pub balance_minor: i128,
    /// What has moved it, newest first.
    #[schemars(length(max = MAX_ENTRIES))]
    pub entries: Vec<WalletEntryReply>,
}

/// Why an order has moved its buyer's wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WalletMove {
    /// The order has filled it.
    TopUp,
    /// What had filled it goes back the way it came.
    TopUpBack,
    /// It has paid the order.
    Payment,
    /// Money of an order that it has paid is back in it.
    Refund,
}

/// One change of a wallet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WalletEntryReply {
    /// The order.
    pub order: OrderNumber,
    /// Its sale.
    pub sale: SaleId,
    /// Why it has moved the wallet.
    pub kind: WalletMove,
    /// What came in, or went out below 0, in minor units.
    pub amount_minor: i64,
    /// When.
    pub at: Timestamp,
}

impl From<&WalletEntry> for WalletEntryReply {
    fn from(entry: &WalletEntry) -> Self {
        let amount_minor = entry.change.amount_minor.0;
        let kind = match (entry.name.kind, amount_minor > 0) {
            (FactKind::RefundMade, _) => WalletMove::TopUpBack,
            (FactKind::Refunded, _) => WalletMove::Refund,
            (_, true) => WalletMove::TopUp,
            (_, false) => WalletMove::Payment,
        };
        let (order, sale, at) = (entry.name.order, entry.sale.clone(), entry.at);
        Self { order, sale, kind, amount_minor, at }
    }
}

impl From<&WalletStatement> for WalletsReply {
    fn from(statement: &WalletStatement) -> Self {
        let reply = |(currency, wallet): (&Currency, &Wallet)| WalletReply {
            currency: *currency,
            balance_minor: wallet.balance.left(),
            entries: wallet.entries.iter().rev().take(MAX_ENTRIES).map(Into::into).collect(),
        };
        Self { wallets: statement.wallets.iter().map(reply).collect() }
    }
}
