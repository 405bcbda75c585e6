//! Wallets: money of buyers that the platform keeps, in each currency one for each buyer.
//!
//! A wallet is filled by orders of a sale whose merchant is [`WALLET`], which are paid at a provider as any other
//! and buy money instead of tickets, and it pays orders of sales that take it, as the provider of that name. Money
//! that goes back of an order which a wallet has paid goes back into it; an order that has filled it is refunded
//! from it, the way it was paid.
//!
//! The facts of a buyer's orders change the wallet, in the transactions that record them, so that each fact changes it
//! exactly once. The change is a function of the order. In the ledger the accounts of the merchant and the provider
//! called [`WALLET`] have, with opposite signs, the sum of all wallets.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::Balance;
use crate::domain::basics::ids::{InvalidId, PaymentId, ProviderId, SaleId};
use crate::domain::basics::money::{Currency, MinorUnits};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::reserved::WALLET;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::fact::{Actor, Fact, FactKind};
use crate::domain::order::order_refund::RefundNumber;
use crate::domain::order::{Capture, Order, PaymentKey};
use crate::domain::payment::pay::CaptureFault;

/// What one fact of an order changes of its buyer's wallet in the order's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WalletChange {
    /// What comes in, or goes out below 0; never nothing.
    pub amount_minor: MinorUnits,
    /// True if it is taken whatever the wallet has: it is gone already.
    pub is_gone: bool,
}

impl WalletChange {
    /// The change as a balance counts it.
    #[must_use]
    pub fn entry(&self) -> Balance {
        let amount = i128::from(self.amount_minor);
        Balance { incoming: amount.max(0), outgoing: (-amount).max(0) }
    }

    /// What the wallet must have.
    #[must_use]
    pub fn needs(&self) -> Option<i128> {
        let taken = -i128::from(self.amount_minor);
        (taken > 0 && !self.is_gone).then_some(taken)
    }
}

/// The name of an entry among those of all wallets: a fact that no order tells twice.
///
/// Its text is `<order>-paid`, or with a refund `<order>-r1-refund_made`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WalletEntryName {
    pub order: OrderNumber,
    /// What the fact is.
    pub kind: FactKind,
    /// The refund that it speaks of.
    pub refund: Option<RefundNumber>,
}

/// One change of a wallet. Never changed itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WalletEntry {
    pub name: WalletEntryName,
    /// The sale of its order.
    pub sale: SaleId,
    pub change: WalletChange,
    pub at: Timestamp,
}

/// A wallet in one currency, with everything that has moved it, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Wallet {
    pub balance: Balance,
    /// What has moved it.
    pub entries: Vec<WalletEntry>,
}

/// The wallets of a buyer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct WalletStatement {
    /// One for each currency.
    pub wallets: BTreeMap<Currency, Wallet>,
}

impl WalletStatement {
    /// Puts the entries of each wallet in their order: by time, and those of one moment by name.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        for wallet in self.wallets.values_mut() {
            wallet.entries.sort_by_key(|entry| (entry.at, entry.name));
        }
        self
    }
}

impl fmt::Display for WalletEntryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-", self.order)?;
        if let Some(refund) = self.refund {
            write!(f, "r{refund}-")?;
        }
        f.write_str(self.kind.as_str())
    }
}

impl FromStr for WalletEntryName {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = || InvalidId { kind: "wallet entry", rule: "the name of an entry" };
        let (order, rest) = text.split_once('-').ok_or_else(invalid)?;
        let refund = rest.strip_prefix('r').and_then(|rest| rest.split_once('-'));
        let number = refund.and_then(|(digits, _)| digits.parse::<u8>().ok());
        let (refund, kind) = match (refund, number) {
            (Some((_, kind)), Some(number)) => {
                (Some(RefundNumber::try_from(number).map_err(|_| invalid())?), kind)
            }
            _ => (None, rest),
        };
        let kind = FactKind::ALL.into_iter().find(|known| known.as_str() == kind);
        let order = order.parse().map_err(|_| invalid())?;
        Ok(Self { order, kind: kind.ok_or_else(invalid)?, refund })
    }
}

impl Capture {
    /// The payment of an order from its buyer's wallet: one for each order.
    ///
    /// # Errors
    /// [`CaptureFault`] if it cannot be named.
    pub fn from_wallet(order: &Order) -> Result<Self, CaptureFault> {
        let broken = |error: InvalidId| CaptureFault::Name(order.number, error);
        let provider = ProviderId::new(WALLET).map_err(broken)?;
        let payment = PaymentId::new(order.number.to_string()).map_err(broken)?;
        let key = PaymentKey { provider, payment };
        Ok(Self { key, order: order.number, amount: order.total, attempt: None })
    }
}

impl Order {
    /// True if the order fills its buyer's wallet when it is paid; such an order is never paid from a wallet.
    #[must_use]
    pub fn tops_up(&self) -> bool {
        self.merchant.merchant.is_wallet()
    }

    /// True if a wallet's money has paid it.
    #[must_use]
    pub fn is_paid_from_wallet(&self) -> bool {
        self.payment.as_ref().is_some_and(|payment| payment.provider.is_wallet())
    }

    /// The change of the buyer's wallet by a fact of the order; `None` if the fact changes nothing.
    #[must_use]
    pub fn wallet_change(&self, fact: &Fact) -> Option<WalletChange> {
        let moved = fact.cause.moved.as_ref()?;
        let amount = moved.amount.amount_minor;
        let is_from_wallet = moved.payment.provider.is_wallet();
        let amount_minor = match fact.kind {
            FactKind::Paid | FactKind::Rescued if self.tops_up() => amount,
            // The money of replaced tickets has left the wallet before.
            FactKind::Paid | FactKind::Rescued
                if is_from_wallet && !self.is_moved(&moved.payment) =>
            {
                MinorUnits::ZERO - amount
            }
            FactKind::RefundMade if self.tops_up() => MinorUnits::ZERO - amount,
            FactKind::Refunded if is_from_wallet => amount,
            FactKind::Paid
            | FactKind::Rescued
            | FactKind::RefundMade
            | FactKind::Refunded
            | FactKind::RefundUndone
            | FactKind::Made
            | FactKind::Cancelled
            | FactKind::Expired
            | FactKind::RefundDue
            | FactKind::CaptureRefused
            | FactKind::DisputeOpened
            | FactKind::DisputeWon
            | FactKind::DisputeLost => MinorUnits::ZERO,
        };
        // A provider that makes a refund tells of a lost dispute, or of one that was made outside.
        let is_gone = fact.kind == FactKind::RefundMade && fact.cause.by == Actor::Provider;
        (amount_minor != MinorUnits::ZERO).then_some(WalletChange { amount_minor, is_gone })
    }

    /// The change by the order's last fact.
    #[must_use]
    pub fn wallet_change_now(&self) -> Option<WalletChange> {
        self.wallet_change(self.facts.all.last()?)
    }

    /// [`Self::wallet_change_now`] as the wallet keeps it.
    #[must_use]
    pub fn wallet_entry_now(&self) -> Option<WalletEntry> {
        self.wallet_entry(self.facts.all.last()?)
    }

    /// The changes by all facts of the order.
    pub fn wallet_entries(&self) -> impl Iterator<Item = WalletEntry> {
        self.facts.all.iter().filter_map(|fact| self.wallet_entry(fact))
    }

    fn wallet_entry(&self, fact: &Fact) -> Option<WalletEntry> {
        let change = self.wallet_change(fact)?;
        let name = WalletEntryName { order: self.number, kind: fact.kind, refund: fact.refund() };
        Some(WalletEntry { name, sale: self.sale.clone(), change, at: fact.at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::basics::ids::MerchantId;
    use crate::domain::basics::money::Money;
    use crate::domain::ledger::transfers::tests::order;
    use crate::domain::order::fact::Cause;
    use crate::domain::sale::MerchantTerms;

    /// An order that costs something.
    fn paying() -> Order {
        let order = order(0, &[]);
        let total = Money { amount_minor: MinorUnits(500), ..order.total };
        Order { total, ..order }
    }

    fn change_after(merchant: &str, kind: FactKind, payment: &str, by: Actor) -> Option<i64> {
        let merchant = MerchantId::new(merchant).unwrap();
        let merchant = MerchantTerms { merchant, ..MerchantTerms::house() };
        let order = Order { merchant, ..paying() };
        let (provider, id) = payment.split_once('/').unwrap();
        let key = PaymentKey {
            provider: ProviderId::new(provider).unwrap(),
            payment: PaymentId::new(id).unwrap(),
        };
        let capture = Capture { key, order: order.number, amount: order.total, attempt: None };
        let cause = Cause { by, ..Cause::capture(&capture, None) };
        let change = order.append_fact(kind, cause, order.created_at).wallet_change_now()?;
        let needs = change.needs().map(|needs| i64::try_from(needs).unwrap());
        assert!(change.is_gone || needs == Some(-change.amount_minor.0).filter(|taken| *taken > 0));
        assert!(!change.is_gone || needs.is_none());
        assert_eq!(change.entry().left(), i128::from(change.amount_minor));
        Some(change.amount_minor.0)
    }

    #[test]
    fn only_what_fills_or_pays_moves_a_wallet() {
        let all = paying().total.amount_minor.0;
        for kind in FactKind::ALL {
            let by = Actor::Buyer;
            let or = |other, amount| (kind == other).then_some(amount);
            let pays = if kind.sells() { Some(-all) } else { or(FactKind::Refunded, all) };
            let fills = if kind.sells() { Some(all) } else { or(FactKind::RefundMade, -all) };
            assert_eq!(change_after("opera", kind, "stripe/pi_1", by), None, "{kind:?}");
            assert_eq!(change_after("opera", kind, "wallet/1", by), pays, "{kind:?}");
            assert_eq!(change_after("wallet", kind, "stripe/pi_1", by), fills, "{kind:?}");
        }
        // The amount of a lost dispute is gone.
        let lost = change_after("wallet", FactKind::RefundMade, "stripe/pi_1", Actor::Provider);
        assert_eq!(lost, Some(-all));
    }

    #[test]
    fn an_entry_has_one_name_and_is_read_as_it_is_written() {
        let order = paying().number;
        for kind in FactKind::ALL {
            for refund in [None, Some(RefundNumber::FIRST), RefundNumber::try_from(50).ok()] {
                let name = WalletEntryName { order, kind, refund };
                assert_eq!(name.to_string().parse(), Ok(name));
            }
        }
        for text in ["", "1", "1-", "x-paid", "1-r0-refunded", "1-r51-refunded", "1-r1", "1-bought"]
        {
            assert!(text.parse::<WalletEntryName>().is_err(), "{text}");
        }
    }
}
