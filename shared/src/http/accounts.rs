//! What accounts of the ledger have, as operators see it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use engine::domain::basics::money::Currency;
use engine::domain::ledger::Account;

use crate::dynamodb::AccountSum;

/// What accounts have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Accounts")]
pub struct AccountsReply {
    /// Those on which something was booked, each once for each currency.
    pub accounts: Vec<AccountReply>,
}

/// What an account has in one currency, in minor units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AccountBalance")]
pub struct AccountReply {
    /// Its name: `merchant:<merchant>:<sale>`, `provider:<provider>`, `fees`, `owed`, `bank`, `costs` or `disputed`.
    #[schemars(with = "String")]
    pub account: Account,
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

impl AccountsReply {
    /// The accounts in the order given, each with its currencies by name.
    #[must_use]
    pub fn new(found: Vec<(Account, BTreeMap<Currency, AccountSum>)>) -> Self {
        let of_one = |(account, sums): (Account, BTreeMap<Currency, AccountSum>)| {
            sums.into_iter().map(move |(currency, AccountSum { has, posted })| AccountReply {
                account: account.clone(),
                currency,
                in_minor: has.incoming,
                out_minor: has.outgoing,
                balance_minor: has.left(),
                posted_minor: posted.left(),
            })
        };
        Self { accounts: found.into_iter().flat_map(of_one).collect() }
    }
}
