//! `onsale money debts`: what merchants and wallets owe.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::ids::MerchantId;
use engine::domain::ledger::Account;
use engine::domain::ledger::debts::{Debt, Debtor};
use engine::domain::order::dispute::DisputeState;
use engine::ports::{Catalogue as _, Freshness, Orders as _, Ports as _, Stored};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use shared::runtime::app::LivePorts;

use super::minor;
use crate::engine::EngineArgs;
use crate::{Failure, out};

/// Accounts that are read at a time: of 10,000 sales it reads 20,000 items.
const AT_ONCE: usize = 16;
/// Disputed payments that are read at a time.
const PAGE: u16 = 100;

/// Print what is owed to the platform: by merchants, whose account of a sale is below nothing because refunds or lost disputes
/// came after its settlement, and by wallets, from which a lost dispute has taken what they had spent.
///
/// The next settlement of a merchant is less by what it owes of its other sales.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money debts
  onsale money debts --json")]
pub struct Debts {
    #[command(flatten)]
    engine: EngineArgs,
}

impl Debts {
    /// Prints them.
    ///
    /// # Errors
    /// The engine cannot be reached, or DynamoDB fails.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let reached = self.engine.reach(data_dir).await?;
        let ports = &reached.app.ports;
        let mut debts = of_merchants(ports, None).await?;
        debts.extend(of_wallets(ports).await?);
        if json {
            let all: Vec<Value> = debts.iter().map(shown).collect();
            return out(&json!({ "debts": all }));
        }
        for Debt { debtor, currency, amount_minor } in &debts {
            out(&format!("{amount_minor:>14} {currency}  {debtor}"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(debt: &Debt) -> Value {
    let Debt { debtor, currency, amount_minor } = debt;
    let owed = minor(*amount_minor);
    json!({ "debtor": debtor.to_string(), "currency": currency, "owed_minor": owed })
}

/// What merchants owe of their sales, or one merchant, by name.
///
/// # Errors
/// As the ports.
pub(super) async fn of_merchants(
    ports: &LivePorts,
    only: Option<&MerchantId>,
) -> Stored<Vec<Debt>> {
    let sales = ports.catalogue().sales().await?;
    let each = stream::iter(sales).map(|sale| async move {
        let Some(published) = ports.catalogue().sale(&sale, Freshness::Fresh).await? else {
            return Ok(Vec::new());
        };
        let merchant = published.sale.merchant().merchant.clone();
        // Wallets have money of buyers on such an account.
        if merchant.is_wallet() || only.is_some_and(|only| *only != merchant) {
            return Ok(Vec::new());
        }
        let account = Account::Merchant(merchant.clone(), sale.clone());
        let balances = ports.orders().orders.0.ledger().balances(&account).await?;
        let debtor = || Debtor::Merchant(merchant.clone(), sale.clone());
        let owed = balances
            .into_iter()
            .filter_map(|(currency, balance)| Debt::of_balance(debtor(), currency, balance.left()));
        Ok(owed.collect())
    });
    let found: Vec<Vec<Debt>> = each.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut debts: Vec<Debt> = found.into_iter().flatten().collect();
    debts.sort();
    Ok(debts)
}

/// What wallets owe, by name: only a lost dispute of an order that filled one leaves a debt.
async fn of_wallets(ports: &LivePorts) -> Stored<Vec<Debt>> {
    let mut known = BTreeSet::new();
    for is_open in [true, false] {
        let mut before: Option<String> = None;
        loop {
            let page = ports.operators().disputed_page(is_open, before.as_deref(), PAGE).await?;
            before.clone_from(&page.next);
            for payment in page.payments {
                let is_lost = payment.disputes.iter().any(|one| one.state == DisputeState::Lost);
                if !is_lost {
                    continue;
                }
                let order = ports.orders().get(payment.order).await?;
                if let Some(order) = order.filter(|order| order.tops_up()) {
                    known.insert((order.user, order.total.currency));
                }
            }
            if before.is_none() {
                break;
            }
        }
    }
    let mut debts = Vec::new();
    for (user, currency) in known {
        let balance = ports.orders().wallet(&user, currency).await?.left();
        debts.extend(Debt::of_balance(Debtor::Wallet(user), currency, balance));
    }
    Ok(debts)
}
