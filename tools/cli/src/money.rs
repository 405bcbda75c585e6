//! `onsale money`: what the ledger says.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::ids::SaleId;
use engine::domain::ledger::{Account, Balance, Transfer, entries};
use engine::domain::money::{Currency, Money};
use engine::domain::time::Timestamp;
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use serde_json::{Value, json};

use super::engine::EngineArgs;
use super::{Failure, out};

/// Print what the ledger says: the money of a sale, or what an account has.
#[derive(Debug, Args)]
pub struct MoneyCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Sale(OfSale),
    Account(OfAccount),
}

/// Print the statement of a sale: what moved between which accounts and what for, and what it left each.
///
/// It is read from the log: what was settled a moment ago may be missing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money sale demo-club
  onsale money sale demo-club --json")]
struct OfSale {
    /// The sale.
    #[arg(value_name = "SALE")]
    sale: SaleId,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Print what an account has in each currency. A provider's is below nothing: it is what the provider has of others.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money account fees
  onsale money account provider:stripe
  onsale money account merchant:city-opera:carmen")]
struct OfAccount {
    /// merchant:MERCHANT:SALE, provider:PROVIDER, fees or owed.
    #[arg(value_name = "ACCOUNT")]
    account: Account,
    #[command(flatten)]
    engine: EngineArgs,
}

/// What accounts have, by account and currency.
type Balances = BTreeMap<(Account, Currency), Balance>;
/// What moved, by accounts, code and currency.
type Moved = BTreeMap<(Account, Account, &'static str, Currency), i128>;

impl MoneyCommand {
    /// Prints what was asked for.
    ///
    /// # Errors
    /// The engine cannot be reached, DynamoDB fails, or there is no such sale.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        match self.action {
            Action::Sale(sale) => sale.run(data_dir, json).await,
            Action::Account(account) => account.run(data_dir, json).await,
        }
    }
}

impl OfSale {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { sale, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let published = reached.app.ports.catalogue().sale(&sale, Freshness::Fresh).await?;
        if published.is_none() {
            return Err(format!("there is no sale {sale}").into());
        }
        let log = reached.app.ports.orders().orders.0.log();
        let mut transfers: Vec<Transfer> = Vec::new();
        log.of_sale(&sale, Timestamp::from_ms(0), |records| {
            transfers.extend(records.into_iter().flat_map(|placed| placed.record.transfers));
        })
        .await?;
        let mut moved = Moved::new();
        for Transfer { from, to, code, amount } in &transfers {
            let Money { amount_minor, currency } = *amount;
            let key = (from.clone(), to.clone(), code.as_str(), currency);
            *moved.entry(key).or_default() += i128::from(amount_minor);
        }
        let balances = entries(&transfers);
        if json {
            let moved: Vec<Value> = moved.into_iter().map(moved_json).collect();
            let balances = balances_json(&balances);
            return out(&json!({ "sale": sale, "moved": moved, "left": balances }));
        }
        for ((from, to, code, currency), amount) in moved {
            out(&format!("{code:16} {amount:>14} {currency}  from {from} to {to}"))?;
        }
        print(&balances)
    }
}

impl OfAccount {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { account, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let found = reached.app.ports.orders().orders.0.ledger().balances(&account).await?;
        let balances: Balances =
            found.into_iter().map(|(currency, has)| ((account.clone(), currency), has)).collect();
        if json {
            return out(&json!({ "account": account, "has": balances_json(&balances) }));
        }
        print(&balances)
    }
}

fn print(balances: &Balances) -> Result<ExitCode, Failure> {
    for ((account, currency), has) in balances {
        let Balance { incoming, outgoing } = has;
        out(&format!("{account}: {} {currency} ({incoming} in, {outgoing} out)", has.left()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn moved_json(
    ((from, to, code, currency), amount): ((Account, Account, &str, Currency), i128),
) -> Value {
    let amount = minor(amount);
    json!({ "from": from, "to": to, "code": code, "amount_minor": amount, "currency": currency })
}

/// An amount as a JSON number, which ends where amounts end.
fn minor(amount: i128) -> i64 {
    let end = if amount < 0 { i64::MIN } else { i64::MAX };
    i64::try_from(amount).unwrap_or(end)
}

fn balances_json(balances: &Balances) -> Vec<Value> {
    let of_one = |((account, currency), has): (&(Account, Currency), &Balance)| {
        json!({
            "account": account,
            "currency": currency,
            "in_minor": minor(has.incoming),
            "out_minor": minor(has.outgoing),
            "balance_minor": minor(has.left()),
        })
    };
    balances.iter().map(of_one).collect()
}
