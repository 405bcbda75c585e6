//! `onsale money`: what the ledger says, what is booked in it by hand, and whether providers say the same.

mod bills;
mod buyer;
mod debts;
mod disputes;
mod reconcile;
mod takings;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use engine::domain::basics::ids::{PostingKey, SaleId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::debts::withheld;
use engine::domain::ledger::posting::{Posting, PostingKind};
use engine::domain::ledger::{Account, Balance, Transfer, TransferCode, entries};
use engine::flows::post::{Posted, Refusal, post_withholding};
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use serde_json::{Value, json};
use shared::debts::of_merchant;
use shared::dynamodb::ALL_TIME;
use shared::runtime::connections::pause;

use super::engine::{EngineArgs, Reached};
use super::{DECLINED, Failure, out};

/// Print what the ledger says: the money of a sale, what it took in each minute, what an account has, or a buyer; or which
/// payments are disputed, and what of providers' bills differs. Book what providers pay out and keep, and what merchants are paid. Hold a provider's own report against what the engine knows.
#[derive(Debug, Args)]
pub struct MoneyCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Sale(OfSale),
    Takings(takings::OfMinutes),
    Account(OfAccount),
    Buyer(buyer::OfBuyer),
    Disputes(disputes::Disputes),
    Debts(debts::Debts),
    Bills(bills::Bills),
    Post(Post),
    Reconcile(reconcile::Reconcile),
}

/// Print the statement of a sale: what moved between which accounts and what for, and what it left each.
///
/// It is read from the log: what was settled a moment ago may be missing. What its merchant was paid is not the
/// sale's, and stands on the merchant's account.
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
    /// merchant:MERCHANT:SALE, provider:PROVIDER, fees, owed, bank or costs.
    #[arg(value_name = "ACCOUNT")]
    account: Account,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Book a transfer that no order tells of: between a provider and the bank, a provider and the costs, or a merchant and
/// the bank.
///
/// With the same key it is booked once, however often it is asked for. A merchant is never paid more than it has, less what
/// it owes of its other sales.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale money post payout provider:stripe 1250000 EUR --key stripe:po_1MtHbE
  onsale money post provider-fee provider:stripe 32 EUR --key stripe:-:fees:EUR:2026-11-25
  onsale money post settlement merchant:city-opera:carmen 965000 EUR --key carmen-2026-11")]
struct Post {
    /// provider-fee, provider-fee-back, payout, payout-back, settlement or settlement-back.
    #[arg(value_name = "KIND", value_parser = kind)]
    kind: PostingKind,
    /// provider:PROVIDER, or merchant:MERCHANT:SALE for settlements.
    #[arg(value_name = "ACCOUNT")]
    account: Account,
    /// How much, in minor units of the currency.
    #[arg(value_name = "AMOUNT_MINOR", allow_negative_numbers = true)]
    amount_minor: i64,
    /// The currency, such as EUR.
    #[arg(value_name = "CURRENCY", value_parser = currency)]
    currency: Currency,
    /// What makes it once: the provider and its id of the payout, say, as `money reconcile --book` has it.
    #[arg(long, value_name = "KEY")]
    key: PostingKey,
    #[command(flatten)]
    engine: EngineArgs,
}

fn kind(text: &str) -> Result<PostingKind, String> {
    let known = PostingKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    known.ok_or_else(|| {
        let names = PostingKind::ALL.map(PostingKind::as_str);
        format!("is none of {}", names.join(", "))
    })
}

fn currency(text: &str) -> Result<Currency, String> {
    Currency::new(text).map_err(|error| error.to_string())
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
            Action::Takings(sale) => sale.run(data_dir, json).await,
            Action::Account(account) => account.run(data_dir, json).await,
            Action::Buyer(buyer) => buyer.run(data_dir, json).await,
            Action::Disputes(disputes) => disputes.run(data_dir, json).await,
            Action::Debts(debts) => debts.run(data_dir, json).await,
            Action::Bills(bills) => bills.run(data_dir, json).await,
            Action::Post(post) => post.run(data_dir, json).await,
            Action::Reconcile(report) => report.run(data_dir, json).await,
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
        log.of_sale(&sale, ALL_TIME, |records| {
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

impl Post {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { kind, account, amount_minor, currency, key, engine } = self;
        let amount = Money { amount_minor: MinorUnits(amount_minor), currency };
        let transfer = kind.transfer(account, amount).map_err(|fault| fault.to_string())?;
        let reached = engine.reach(data_dir).await?;
        let outcome = post_one(&reached, transfer.clone(), key.clone()).await?;
        let Transfer { from, to, code, .. } = &transfer;
        let said = outcome.as_str();
        match outcome {
            Outcome::Refused(_) => {
                out(&if json {
                    json!({ "key": key, "refused": said }).to_string()
                } else {
                    format!("{key}: {said}")
                })?;
                Ok(ExitCode::from(DECLINED))
            }
            Outcome::Posted | Outcome::Before if json => out(&json!({
                "key": key,
                "is_new": matches!(outcome, Outcome::Posted),
                "from": from,
                "to": to,
                "code": code,
                "amount_minor": amount.amount_minor,
                "currency": amount.currency,
            })),
            Outcome::Posted | Outcome::Before => {
                out(&format!("{key}: {said}, {amount} from {from} to {to}"))
            }
        }
    }
}

/// What became of a posting.
enum Outcome {
    Posted,
    Before,
    Refused(String),
}

impl Outcome {
    fn as_str(&self) -> &str {
        match self {
            Self::Posted => "posted",
            Self::Before => "posted before",
            Self::Refused(why) => why,
        }
    }
}

async fn post_one(
    reached: &Reached,
    transfer: Transfer,
    key: PostingKey,
) -> Result<Outcome, Failure> {
    let ports = &reached.app.ports;
    let ledger = ports.orders().orders.0.ledger();
    let owes = match (&transfer.code, &transfer.from) {
        (TransferCode::Settlement, Account::Merchant(merchant, sale)) => {
            let debts = of_merchant(ports, merchant).await?;
            withheld((merchant, sale), transfer.amount.currency, &debts)
        }
        _ => 0,
    };
    let posting = Posting { key, transfer, at: Timestamp::now() };
    let pause = async |longest: Duration| {
        tokio::time::sleep(pause::between(longest / 2, longest)).await;
    };
    match post_withholding(&ledger, &posting, owes, pause).await {
        Ok(Posted::Made) => Ok(Outcome::Posted),
        Ok(Posted::Before) => Ok(Outcome::Before),
        Err(Refusal::Store(error)) => Err(error.into()),
        Err(refusal) => Ok(Outcome::Refused(refusal.to_string())),
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
