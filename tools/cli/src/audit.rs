//! `onsale audit`: proves, or refutes, that nothing was oversold, lost or left undecided.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use engine::domain::basics::ids::{PaymentId, ProviderId, SaleId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::PaymentKey;
use engine::domain::payment::grace::Grace;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::payment::PROVIDER;
use serde_json::Value;

use ops::audit::facts::{Book, BookFact, CaptureFact, LedgerFacts};
use ops::audit::{self, DynamoDbTarget, Options, Report, Target};

use super::engine::EngineArgs;
use super::{DECLINED, FAILED, Failure};

/// Check that nothing was oversold, lost or left undecided.
///
/// Reads Redis and DynamoDB without the engine's own code, writes to neither, and checks every
/// invariant of docs/architecture.md. Run it at rest: while orders are being made the two stores
/// are read at different moments and differ.
///
/// Exit code 0: clean. 1: something breaks a rule, and is named. 2: the stores could not be read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale audit
  onsale audit --sale demo-train --wait-seconds 60
  onsale audit --from-environment --json            an engine in AWS")]
pub struct AuditCommand {
    #[command(flatten)]
    engine: EngineArgs,
    /// Redis to audit instead, any node of a cluster.
    #[arg(long, value_name = "URL", conflicts_with = "from_environment")]
    pub redis: Option<String>,
    /// Endpoint of a fake of DynamoDB; with --redis alone it is the DynamoDB of the
    /// environment's AWS account.
    #[arg(long, value_name = "URL", requires = "redis")]
    pub dynamodb: Option<String>,
    /// What the names of the tables begin with.
    #[arg(long, value_name = "TEXT", requires = "redis", default_value = "onsale-")]
    pub table_prefix: String,
    /// Audit this sale only.
    #[arg(long, value_name = "ID")]
    pub sale: Option<SaleId>,
    /// JSON lines of acknowledged orders and captured payments, as `onsale rush --ledger` writes:
    /// each must be in the stores.
    #[arg(long, value_name = "FILE", visible_alias = "captures")]
    pub ledger: Option<PathBuf>,
    /// How long after its deadline an order may still be pending [default: the engine's grace and two
    /// minutes]
    #[arg(long, value_name = "N")]
    pub bound_seconds: Option<u32>,
    /// Audit again until all is clean, for at most this many seconds: messages may still be under
    /// way.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub wait_seconds: u64,
    /// The time (RFC 3339) to audit as of instead of now.
    #[arg(long, value_name = "TIME")]
    pub now: Option<Timestamp>,
}

impl AuditCommand {
    fn target(&self, data_dir: &Path) -> Result<Target, Failure> {
        match (&self.redis, &self.dynamodb) {
            (None, _) => self.engine.target(data_dir),
            (Some(redis), Some(dynamodb)) => Ok(Target::at(redis, dynamodb, &self.table_prefix)),
            (Some(redis), None) => Ok(Target {
                dynamodb: DynamoDbTarget::Aws(None),
                ..Target::at(redis, "", &self.table_prefix)
            }),
        }
    }

    /// What the payment providers of a running `onsale up` have captured; of other engines nothing is known.
    async fn book(&self, data_dir: &Path) -> Result<Book, Failure> {
        if self.redis.is_some() || self.engine.is_from_environment() {
            return Ok(Book::default());
        }
        let Endpoints { provider, wechat, alipay, .. } = Endpoints::read(data_dir)?;
        let mut book =
            Book { own: Some(Secrets::read(data_dir)?.deployment()?), captured: Vec::new() };
        for provider in [provider, wechat, alipay].iter().filter(|url| !url.is_empty()) {
            let url = format!("{provider}/ledger");
            let entries: Vec<Value> = reqwest::get(&url).await?.error_for_status()?.json().await?;
            for entry in &entries {
                let captured = capture(entry);
                let unread = || format!("{url}: an entry cannot be read: {entry}");
                book.captured.push(captured.ok_or_else(unread)?);
            }
        }
        Ok(book)
    }

    /// How long after its deadline an order may still be pending, in seconds. Of stores that are named
    /// only by their addresses the grace is the default.
    fn bound_seconds(&self, data_dir: &Path) -> Result<u32, Failure> {
        Ok(match (self.bound_seconds, &self.redis) {
            (Some(bound_seconds), _) => bound_seconds,
            (None, None) => self.engine.grace(data_dir)?.bound_seconds(),
            (None, Some(_)) => Grace::DEFAULT.bound_seconds(),
        })
    }

    /// Audits what the arguments say: the first clean report, or the last one once the wait is over.
    ///
    /// # Errors
    /// Something cannot be read, or it is not known where the stores are.
    pub async fn report(&self, data_dir: &Path) -> Result<Report, Failure> {
        let ledger = self.ledger.as_deref().map(LedgerFacts::read).transpose()?;
        let target = self.target(data_dir)?;
        let book = self.book(data_dir).await?;
        let bound_seconds = self.bound_seconds(data_dir)?;
        let options = |now| Options {
            sale: self.sale.clone(),
            now: self.now.unwrap_or(now),
            bound_seconds,
            ledger: ledger.clone(),
            book: book.clone(),
        };
        let wait = Duration::from_secs(self.wait_seconds);
        Ok(audit::until_clean(&target, options, wait).await?)
    }

    /// Audits and prints the report (as JSON with every violation). Exit code 0: clean, 1: something
    /// breaks a rule, 2: not known.
    pub async fn run(&self, data_dir: &Path, json: bool) -> ExitCode {
        let outcome = self.report(data_dir).await;
        match &outcome {
            Ok(report) if json => println!("{}", serde_json::json!(report)),
            Ok(report) => println!("{report}"),
            Err(error) => eprintln!("error: {error}"),
        }
        ExitCode::from(code(&outcome))
    }
}

/// An entry of the provider's book.
fn capture(entry: &Value) -> Option<BookFact> {
    let text = |name: &str| entry.get(name)?.as_str();
    let provider = ProviderId::new(text("provider").unwrap_or(PROVIDER)).ok()?;
    let payment = PaymentId::new(text("payment")?).ok()?;
    let capture = CaptureFact {
        key: PaymentKey { provider, payment },
        order: text("order")?.parse().ok()?,
        amount: Money {
            amount_minor: MinorUnits(entry.get("amount_minor")?.as_i64()?),
            currency: Currency::new(text("currency")?).ok()?,
        },
    };
    let refunds = entry.get("refunds").and_then(Value::as_array);
    let sum = |state: &str| {
        let is_it = |refund: &&Value| refund["status"] == state;
        let amounts = refunds.into_iter().flatten().filter(is_it);
        amounts.filter_map(|refund| refund["amount_minor"].as_i64()).map(MinorUnits).sum()
    };
    let back_minor = refunds.map(|_| sum("succeeded"));
    let deployment = text("deployment").map(str::to_owned);
    Some(BookFact { capture, deployment, back_minor, pending_minor: sum("pending") })
}

/// 0 if clean, 1 if something breaks a rule, 2 if that is not known.
fn code(outcome: &Result<Report, Failure>) -> u8 {
    match outcome {
        Ok(report) if report.clean => 0,
        Ok(_) => DECLINED,
        Err(_) => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        audit: AuditCommand,
    }

    #[test]
    fn the_exit_code_says_how_it_went() {
        let report = |clean: bool| Report {
            now: Timestamp::from_ms(0),
            bound_seconds: 240,
            sales: Vec::new(),
            clean,
            findings: Vec::new(),
            sold: Vec::new(),
        };
        let unread = ops::audit::AuditError::DynamoDb("no answer".to_owned());
        assert_eq!(code(&Ok(report(true))), 0);
        assert_eq!(code(&Ok(report(false))), 1);
        assert_eq!(code(&Err(unread.into())), 2);
    }

    #[test]
    fn the_provider_s_book_is_read_entry_by_entry() {
        let entry = serde_json::json!({
            "payment": "pi_7", "order": "7", "amount_minor": 500, "currency": "EUR", "refunds": [],
        });
        let captured = capture(&entry).unwrap();
        assert_eq!(
            (captured.capture.key.payment.as_str(), captured.capture.amount.amount_minor),
            ("pi_7", MinorUnits(500))
        );
        let mut elsewhere = entry;
        elsewhere["provider"] = serde_json::json!("wechat");
        let providers =
            [captured, capture(&elsewhere).unwrap()].map(|fact| fact.capture.key.provider);
        assert_eq!(providers.map(|name| name.to_string()), ["stripe", "wechat"]);
        assert_eq!(capture(&serde_json::json!({ "payment": "pi_7", "order": 7 })), None);
    }

    #[test]
    fn the_stores_are_named_or_found_in_the_data_directory() {
        let parse =
            |args: &[&str]| Cli::try_parse_from([&["audit"], args].concat()).map(|cli| cli.audit);
        let dir = tempfile::tempdir().unwrap();
        assert!(parse(&[]).unwrap().target(dir.path()).is_err());

        let named = ["--redis", "redis://a", "--dynamodb", "http://b", "--table-prefix", "t-"];
        let target = parse(&named).unwrap().target(dir.path()).unwrap();
        assert_eq!(target, Target::at("redis://a", "http://b", "t-"));
        let of_aws = parse(&["--redis", "redis://a"]).unwrap().target(dir.path()).unwrap();
        assert_eq!(of_aws.dynamodb, DynamoDbTarget::Aws(None));
        assert_eq!(of_aws.tables.orders, "onsale-orders");
        assert!(parse(&["--from-environment", "--redis", "redis://a"]).is_err(), "two engines");
        assert!(parse(&["--dynamodb", "http://b"]).is_err(), "half of the stores");

        let all = ["--sale", "s", "--captures", "f", "--now", "2026-01-01T00:00:00Z"];
        let args = parse(&all).unwrap();
        assert!(args.bound_seconds(dir.path()).is_err(), "no engine runs there");
        let bound = |args: &[&str]| parse(args).unwrap().bound_seconds(dir.path()).unwrap();
        assert_eq!((bound(&named), bound(&["--bound-seconds", "7"])), (240, 7));
        assert_eq!(args.now.map(Timestamp::ms), Some(1_767_225_600_000));
        assert!(parse(&["--sale", "Not An Id"]).is_err());
    }
}
