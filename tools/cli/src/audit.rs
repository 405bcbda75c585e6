//! `onsale audit`: proves, or refutes, that nothing was oversold, lost or left undecided.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use engine::domain::ids::SaleId;
use engine::domain::time::Timestamp;

use local::endpoints::{Endpoints, EndpointsError};
use ops::audit::facts::LedgerFacts;
use ops::audit::{self, AuditError, BOUND_SECONDS, Options, Report, Target};

/// How long `--wait-seconds` waits between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Check that nothing was oversold, lost or left undecided.
///
/// Reads Redis and DynamoDB without the engine's own code, writes to neither, and checks every
/// invariant of docs/architecture.md. Run it at rest: while orders are being made the two stores
/// are read at different moments and differ.
///
/// Exit code 0: clean. 1: something breaks a rule, and is named. 2: the stores could not be read.
#[derive(Debug, Args)]
pub struct AuditCommand {
    /// Redis to audit instead, any node of a cluster.
    #[arg(long, value_name = "URL")]
    pub redis: Option<String>,
    /// Endpoint of a stand-in for DynamoDB; with --redis alone it is the DynamoDB of the
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
    /// How long after its deadline an order may still be pending.
    #[arg(long, value_name = "N", default_value_t = BOUND_SECONDS)]
    pub bound_seconds: u32,
    /// Look again until all is clean, at most so many seconds: messages may still be on their way.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub wait_seconds: u64,
    /// What time it is (RFC 3339) instead of now.
    #[arg(long, value_name = "TIME")]
    pub now: Option<Timestamp>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not known where the stores are.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// The stores could not be read.
    #[error(transparent)]
    Audit(#[from] AuditError),
}

impl AuditCommand {
    fn target(&self, data_dir: &Path) -> Result<Target, EndpointsError> {
        match &self.redis {
            Some(redis) => Ok(Target {
                redis: redis.clone(),
                dynamodb: self.dynamodb.clone(),
                table_prefix: self.table_prefix.clone(),
            }),
            None => Endpoints::read(data_dir).map(|endpoints| Target::from(&endpoints)),
        }
    }

    /// Audits what the arguments say.
    ///
    /// # Errors
    /// Returns an [`Error`] if something cannot be read.
    pub async fn report(&self, data_dir: &Path) -> Result<Report, Error> {
        let ledger = self.ledger.as_deref().map(LedgerFacts::read).transpose()?;
        let options = Options {
            sale: self.sale.clone(),
            now: self.now.unwrap_or_else(Timestamp::now),
            bound_seconds: self.bound_seconds,
            ledger,
        };
        Ok(audit::run(&self.target(data_dir)?, &options).await?)
    }

    /// The first clean report, or the last one once the wait is over.
    async fn settled_report(&self, data_dir: &Path) -> Result<Report, Error> {
        let until = Instant::now() + Duration::from_secs(self.wait_seconds);
        loop {
            let report = self.report(data_dir).await?;
            if report.clean || Instant::now() >= until {
                return Ok(report);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Audits, prints the report (as JSON with every violation), and says by the exit code how it
    /// went.
    pub async fn run(&self, data_dir: &Path, json: bool) -> ExitCode {
        let outcome = self.settled_report(data_dir).await;
        match &outcome {
            Ok(report) if json => println!("{}", serde_json::json!(report)),
            Ok(report) => println!("{report}"),
            Err(error) => eprintln!("error: {error}"),
        }
        ExitCode::from(code(&outcome))
    }
}

/// 0 if clean, 1 if something breaks a rule, 2 if that is not known.
fn code(outcome: &Result<Report, Error>) -> u8 {
    match outcome {
        Ok(report) if report.clean => 0,
        Ok(_) => 1,
        Err(_) => 2,
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
            bound_seconds: BOUND_SECONDS,
            sales: Vec::new(),
            clean,
            findings: Vec::new(),
        };
        let unread = AuditError::DynamoDb("no answer".to_owned());
        assert_eq!(code(&Ok(report(true))), 0);
        assert_eq!(code(&Ok(report(false))), 1);
        assert_eq!(code(&Err(Error::Audit(unread))), 2);
    }

    #[test]
    fn the_stores_are_named_or_found_in_the_data_directory() {
        let parse =
            |args: &[&str]| Cli::try_parse_from([&["audit"], args].concat()).map(|cli| cli.audit);
        let dir = tempfile::tempdir().unwrap();
        assert!(parse(&[]).unwrap().target(dir.path()).is_err());

        let named = ["--redis", "redis://a", "--dynamodb", "http://b", "--table-prefix", "t-"];
        let target = parse(&named).unwrap().target(dir.path()).unwrap();
        let dynamodb = Some("http://b".to_owned());
        let table_prefix = "t-".to_owned();
        assert_eq!(target, Target { redis: "redis://a".to_owned(), dynamodb, table_prefix });
        assert!(parse(&["--dynamodb", "http://b"]).is_err(), "half of the stores");

        let all = ["--sale", "s", "--captures", "f", "--now", "2026-01-01T00:00:00Z"];
        let args = parse(&all).unwrap();
        assert_eq!(args.bound_seconds, BOUND_SECONDS);
        assert_eq!(args.now.map(Timestamp::ms), Some(1_767_225_600_000));
        assert!(parse(&["--sale", "Not An Id"]).is_err());
    }
}
