//! What is owed to the platform, looked for a page at a time: by merchants, in the list of sales; by wallets, among the payments
//! of which a dispute is lost.
//!
//! Nobody knows of an account that it has fallen below nothing, so each is read. A page reads a bounded number of them, however
//! many sales and disputes there are.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use engine::domain::basics::ids::{MerchantId, SaleId, UserId};
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::OrderNumber;
use engine::domain::ledger::Account;
use engine::domain::ledger::debts::{Debt, Debtor};
use engine::domain::order::dispute::DisputeState;
use engine::ports::{Catalogue as _, Freshness, Orders as _, Ports as _, Stored};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::dynamodb::{AccountSum, is_mark};
use crate::runtime::app::LivePorts;

/// The most sales, and of each list of disputed payments the most, that one page looks through.
pub const PAGE: u16 = 50;
/// Accounts that are read at a time.
const AT_ONCE: usize = 16;

/// Somebody who owes something, with the account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owing {
    pub debt: Debt,
    pub sum: AccountSum,
}

impl Owing {
    fn of_sum(debtor: Debtor, currency: Currency, sum: AccountSum) -> Option<Self> {
        let debt = Debt::of_balance(debtor, currency, sum.has.left())?;
        Some(Self { debt, sum })
    }
}

/// Where a page begins: after a sale, or before a mark of the payments with an open dispute, or of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    Sales(Option<SaleId>),
    Open(Option<String>),
    Over(Option<String>),
}

impl Start {
    /// The beginning of the first page.
    pub const FIRST: Self = Self::Sales(None);
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sales(after) => {
                write!(f, "sales:{}", after.as_ref().map_or("", SaleId::as_str))
            }
            Self::Open(before) => write!(f, "open:{}", before.as_deref().unwrap_or_default()),
            Self::Over(before) => write!(f, "over:{}", before.as_deref().unwrap_or_default()),
        }
    }
}

/// A text that no page of debts begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no page begins there")]
pub struct NoStart;

impl FromStr for Start {
    type Err = NoStart;

    fn from_str(text: &str) -> Result<Self, NoStart> {
        let (list, mark) = text.split_once(':').ok_or(NoStart)?;
        let mark = (!mark.is_empty()).then_some(mark);
        if list == "sales" {
            let after: Option<Result<SaleId, _>> = mark.map(SaleId::new);
            return after.transpose().map(Self::Sales).map_err(|_| NoStart);
        }
        let before = mark.map(str::to_owned);
        match list {
            _ if !mark.is_none_or(is_mark) => Err(NoStart),
            "open" => Ok(Self::Open(before)),
            "over" => Ok(Self::Over(before)),
            _ => Err(NoStart),
        }
    }
}

/// A page of debts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// By name. A wallet of which several payments are lost may be on several pages.
    pub owing: Vec<Owing>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Start>,
}

/// The debts from a place on: one page of a list, and where it ends the first of the next list.
///
/// # Errors
/// As the [ports](engine::ports).
pub async fn page(ports: &LivePorts, start: Start) -> Stored<Page> {
    let mut owing = Vec::new();
    let mut start = start;
    let next = loop {
        let (found, next, list_behind) = match start {
            Start::Sales(after) => {
                let (found, next) = of_sales(ports, after.as_ref(), None).await?;
                (found, next.map(|after| Start::Sales(Some(after))), Some(Start::Open(None)))
            }
            Start::Open(before) => {
                let (found, next) = of_wallets(ports, true, before.as_deref()).await?;
                (found, next.map(|before| Start::Open(Some(before))), Some(Start::Over(None)))
            }
            Start::Over(before) => {
                let (found, next) = of_wallets(ports, false, before.as_deref()).await?;
                (found, next.map(|before| Start::Over(Some(before))), None)
            }
        };
        owing.extend(found);
        match (next, list_behind) {
            (None, Some(list)) => start = list,
            (next, _) => break next,
        }
    };
    owing.sort_by(|one: &Owing, other| one.debt.cmp(&other.debt));
    owing.dedup_by(|one, other| one.debt == other.debt);
    Ok(Page { owing, next })
}

/// What one merchant owes of all its sales, by name.
///
/// # Errors
/// As the [ports](engine::ports).
pub async fn of_merchant(ports: &LivePorts, merchant: &MerchantId) -> Stored<Vec<Debt>> {
    let mut debts = Vec::new();
    let mut after = None;
    loop {
        let (found, next) = of_sales(ports, after.as_ref(), Some(merchant)).await?;
        debts.extend(found.into_iter().map(|owing| owing.debt));
        after = next;
        if after.is_none() {
            debts.sort();
            return Ok(debts);
        }
    }
}

/// What merchants owe of the sales after a sale, and the last sale that was looked at, unless it was the last of all.
async fn of_sales(
    ports: &LivePorts,
    after: Option<&SaleId>,
    only: Option<&MerchantId>,
) -> Stored<(Vec<Owing>, Option<SaleId>)> {
    let page = ports.catalogue().listed(after, PAGE).await?;
    let each = stream::iter(page.sales).map(|listed| of_sale(ports, listed.sale, only));
    let found: Vec<Vec<Owing>> = each.buffer_unordered(AT_ONCE).try_collect().await?;
    Ok((found.into_iter().flatten().collect(), page.next))
}

async fn of_sale(ports: &LivePorts, sale: SaleId, only: Option<&MerchantId>) -> Stored<Vec<Owing>> {
    let Some(published) = ports.catalogue().sale(&sale, Freshness::Fresh).await? else {
        return Ok(Vec::new());
    };
    let merchant = published.sale.merchant().merchant;
    // Wallets have money of buyers on such an account.
    if merchant.is_wallet() || only.is_some_and(|only| *only != merchant) {
        return Ok(Vec::new());
    }
    let account = Account::Merchant(merchant.clone(), sale.clone());
    let sums = ports.orders().orders.0.ledger().sums(&account).await?;
    let debtor = || Debtor::Merchant(merchant.clone(), sale.clone());
    Ok(sums
        .into_iter()
        .filter_map(|(currency, sum)| Owing::of_sum(debtor(), currency, sum))
        .collect())
}

/// What wallets owe among the disputed payments before a mark, and the mark of the next. Only a lost dispute of an order that
/// filled a wallet leaves a debt.
async fn of_wallets(
    ports: &LivePorts,
    is_open: bool,
    before: Option<&str>,
) -> Stored<(Vec<Owing>, Option<String>)> {
    let page = ports.operators().disputed_page(is_open, before, PAGE).await?;
    let lost = page.payments.iter().filter(|payment| {
        payment.disputes.iter().any(|dispute| dispute.state == DisputeState::Lost)
    });
    let lost: Vec<OrderNumber> = lost.map(|payment| payment.order).collect();
    let orders = ports.orders().get_many(&lost).await?;
    let wallets: BTreeSet<(UserId, Currency)> = orders
        .into_iter()
        .filter(|order| order.tops_up())
        .map(|order| (order.user, order.total.currency))
        .collect();
    let each = stream::iter(wallets).map(|(user, currency)| async move {
        let has = ports.orders().wallet(&user, currency).await?;
        let sum = AccountSum { has, ..AccountSum::default() };
        Stored::Ok(Owing::of_sum(Debtor::Wallet(user), currency, sum))
    });
    let found: Vec<Option<Owing>> = each.buffer_unordered(AT_ONCE).try_collect().await?;
    Ok((found.into_iter().flatten().collect(), page.next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_page_begins_is_read_back_and_nothing_else_is() {
        let sale = SaleId::new("g35-2026-11-21").unwrap();
        let mark = || Some("1800000000123-42".to_owned());
        let starts = [
            Start::FIRST,
            Start::Sales(Some(sale)),
            Start::Open(None),
            Start::Open(mark()),
            Start::Over(None),
            Start::Over(mark()),
        ];
        for start in starts {
            assert_eq!(start.to_string().parse(), Ok(start));
        }
        let long = format!("over:{}", "1".repeat(99));
        for text in ["", "sales", "sales:A B", "open:~", "over:x", "other:", "other:1", &long] {
            assert_eq!(text.parse::<Start>(), Err(NoStart), "{text}");
        }
    }
}
