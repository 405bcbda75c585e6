//! Debts: what a merchant or a buyer owes the platform, by name.
//!
//! A merchant owes of a sale whose account is below nothing: refunds and lost disputes came after it was settled. A wallet owes
//! what a lost dispute has taken that it had spent. The next settlement of a merchant is less by what it owes of its other
//! sales; its account of the same sale says so by itself.

use std::fmt;

use crate::domain::basics::ids::{MerchantId, SaleId, UserId};
use crate::domain::basics::money::Currency;

/// Who owes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Debtor {
    /// A merchant, of a sale.
    Merchant(MerchantId, SaleId),
    /// A buyer's wallet.
    Wallet(UserId),
}

impl fmt::Display for Debtor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Merchant(merchant, sale) => write!(f, "merchant:{merchant}:{sale}"),
            Self::Wallet(user) => write!(f, "wallet:{user}"),
        }
    }
}

/// What somebody owes in one currency.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Debt {
    pub debtor: Debtor,
    pub currency: Currency,
    /// How much, in minor units; more than nothing.
    pub amount_minor: i128,
}

impl Debt {
    /// What a balance below nothing comes to; `None` if it is not.
    #[must_use]
    pub fn of_balance(debtor: Debtor, currency: Currency, balance: i128) -> Option<Self> {
        (balance < 0).then_some(Self { debtor, currency, amount_minor: -balance })
    }
}

/// What is withheld from a settlement of a sale in a currency: what its merchant owes of its other sales.
#[must_use]
pub fn withheld(
    (merchant, sale): (&MerchantId, &SaleId),
    currency: Currency,
    debts: &[Debt],
) -> i128 {
    let is_of_others = |debt: &&Debt| match &debt.debtor {
        Debtor::Merchant(of, other) => of == merchant && other != sale,
        Debtor::Wallet(_) => false,
    };
    let of_it = debts.iter().filter(|debt| debt.currency == currency).filter(is_of_others);
    of_it.map(|debt| debt.amount_minor).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_settlement_is_less_by_what_is_owed_of_other_sales() {
        let [euro, yuan] = ["EUR", "CNY"].map(|code| Currency::new(code).unwrap());
        let merchant = |text: &str| MerchantId::new(text).unwrap();
        let sale = |text: &str| SaleId::new(text).unwrap();
        let of = |owner: &str, of: &str| Debtor::Merchant(merchant(owner), sale(of));
        let debts: Vec<Debt> = [
            (of("opera", "carmen"), euro, -40),
            (of("opera", "tosca"), euro, -7),
            (of("opera", "aida"), euro, 900),
            (of("opera", "carmen"), yuan, -1),
            (of("circus", "ring"), euro, -5),
            (Debtor::Wallet(UserId::new("7").unwrap()), euro, -3),
        ]
        .into_iter()
        .filter_map(|(debtor, currency, balance)| Debt::of_balance(debtor, currency, balance))
        .collect();
        assert_eq!(debts.len(), 5, "who has something owes nothing");
        let from = |of: &str, currency| withheld((&merchant("opera"), &sale(of)), currency, &debts);
        assert_eq!((from("aida", euro), from("carmen", euro), from("aida", yuan)), (47, 7, 1));
        let names: Vec<String> = debts.iter().map(|debt| debt.debtor.to_string()).collect();
        assert!(names.contains(&"merchant:opera:tosca".to_owned()));
        assert!(names.contains(&"wallet:7".to_owned()));
    }
}
