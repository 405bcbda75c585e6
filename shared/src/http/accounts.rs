//! What accounts of the ledger have, as operators see it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use engine::domain::basics::money::Currency;
use engine::domain::ledger::Account;

use super::cursor::cursor;
use crate::debts::{Owing, Page, Start};
use crate::dynamodb::AccountSum;

cursor! {
    /// Where a page of debts begins. As text it is opaque, checked and not signed: whoever makes one up is shown debts from another
    /// place on.
    DebtsCursor(Start)
}

/// What accounts have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Accounts")]
pub struct AccountsReply {
    /// Those on which something was booked, each once for each currency.
    pub accounts: Vec<AccountReply>,
    /// Of debts, the value of `cursor` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<DebtsCursor>,
}

/// What an account has in one currency, in minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AccountBalance")]
pub struct AccountReply {
    /// Its name: `merchant:<merchant>:<sale>`, `provider:<provider>`, `fees`, `owed`, `bank`, `costs`, `disputed` or `explained`; of a
    /// buyer's wallet `wallet:<buyer>`.
    pub account: String,
    /// The currency.
    pub currency: Currency,
    /// All that came in.
    #[schemars(with = "i64")]
    pub in_minor: i128,
    /// All that went out.
    #[schemars(with = "i64")]
    pub out_minor: i128,
    /// What is left. That of a provider, of `bank`, `costs` and `disputed` is what somebody else has, below 0.
    #[schemars(with = "i64")]
    pub balance_minor: i128,
    /// What of the balance was posted: settlements, payouts and providers' fees.
    #[schemars(with = "i64")]
    pub posted_minor: i128,
}

impl AccountReply {
    fn new(account: String, currency: Currency, AccountSum { has, posted }: AccountSum) -> Self {
        Self {
            account,
            currency,
            in_minor: has.incoming,
            out_minor: has.outgoing,
            balance_minor: has.left(),
            posted_minor: posted.left(),
        }
    }
}

impl AccountsReply {
    /// The accounts in the order given, each with its currencies by name.
    #[must_use]
    pub fn new(found: Vec<(Account, BTreeMap<Currency, AccountSum>)>) -> Self {
        let of_one = |(account, sums): (Account, BTreeMap<Currency, AccountSum>)| {
            let name = account.to_string();
            sums.into_iter()
                .map(move |(currency, sum)| AccountReply::new(name.clone(), currency, sum))
        };
        Self { accounts: found.into_iter().flat_map(of_one).collect(), next: None }
    }
}

impl From<Page> for AccountsReply {
    fn from(page: Page) -> Self {
        let of_one = |Owing { debt, sum }: Owing| {
            AccountReply::new(debt.debtor.to_string(), debt.currency, sum)
        };
        let accounts = page.owing.into_iter().map(of_one).collect();
        Self { accounts, next: page.next.map(DebtsCursor) }
    }
}
