//! The audit: are the invariants I1 to I7, and what waiting rooms promise, true of what the stores say?
//!
//! It reads Redis and DynamoDB by itself (`read_redis`, `read_dynamodb`, `read_rooms`) and decodes keys and
//! items from their documented format, so that a mistake in the engine's adapters cannot hide
//! itself ([`Target`] says where the stores are). What it read are [`facts`]; [`invariants`] are pure functions of them; a [`Report`] says
//! what was found. Nothing is written anywhere.
//!
//! The stores are compared at rest: while orders are being made the two are read at different
//! moments, and differ.

mod decode;
pub mod facts;
pub mod invariants;
mod read_dynamodb;
mod read_ledger;
mod read_redis;
mod read_rooms;
mod report;
mod room_check;
mod target;
mod violation;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::grace::Grace;
use redis::RedisError;

use self::facts::{Book, Facts, LedgerFacts};
pub use self::report::Report;
pub use self::target::{DynamoDbTarget, RedisTarget, Target, topology_of};
pub use self::violation::{Rule, Subject, Violation};

/// The pause between two audits of [`until_clean`].
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Options of an audit.
#[derive(Debug, Clone)]
pub struct Options {
    /// The only sale to audit; `None` for all.
    pub sale: Option<SaleId>,
    /// The time that deadlines are compared with.
    pub now: Timestamp,
    /// Time after its deadline for which an order may still be pending, in seconds.
    pub bound_seconds: u32,
    /// What the engine acknowledged and payment providers captured, if a ledger was kept.
    pub ledger: Option<LedgerFacts>,
    /// What the payment provider's own book has captured, if it was read: each must be for an order
    /// that exists, or be decided.
    pub book: Book,
}

impl Options {
    /// Everything, at this time, of an engine with the default grace, without a ledger.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        let bound_seconds = Grace::DEFAULT.bound_seconds();
        Self { sale: None, now, bound_seconds, ledger: None, book: Book::default() }
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// Redis did not answer, or has a key of another type.
    #[error("Redis cannot be read: {0}")]
    Redis(#[from] RedisError),
    /// DynamoDB did not answer, or has no such table.
    #[error("DynamoDB cannot be read: {0}")]
    DynamoDb(String),
    /// The chosen sale is not in the catalogue.
    #[error("sale {0} is not in the catalogue")]
    NoSuchSale(SaleId),
    /// The file of certificate authorities cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    NoAuthorities {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file of certificate authorities holds none, or one that cannot be read.
    #[error("the certificate authorities: {0}")]
    Authorities(String),
    /// The ledger cannot be opened.
    #[error("cannot read {}: {source}", path.display())]
    NoLedger {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A line of the ledger cannot be read.
    #[error("{}, line {line}: {what}", path.display())]
    Ledger {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The reason.
        what: String,
    },
}

/// Reads both stores and checks every rule.
///
/// # Errors
/// Returns an [`AuditError`] if something cannot be read; a broken rule is not an error but in the
/// report.
pub async fn run(target: &Target, options: &Options) -> Result<Report, AuditError> {
    let mut facts = read(target, options.sale.as_ref()).await?;
    if let Some(ledger) = &options.ledger {
        facts.add_ledger(ledger.clone());
    }
    facts.book.clone_from(&options.book);
    Ok(judge(&facts, options.now, options.bound_seconds))
}

/// Audits again and again until the report is clean or `wait` is over; the last report.
///
/// Messages that are under way finish what was begun, so a violation may end by itself. `options`
/// makes the options of each audit from the time it begins at.
///
/// # Errors
/// As [`run`].
pub async fn until_clean(
    target: &Target,
    options: impl Fn(Timestamp) -> Options,
    wait: Duration,
) -> Result<Report, AuditError> {
    let until = Instant::now() + wait;
    loop {
        let report = run(target, &options(Timestamp::now())).await?;
        if report.clean || Instant::now() >= until {
            return Ok(report);
        }
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

/// Reads both stores, of one sale or of all.
///
/// # Errors
/// As [`run`].
pub async fn read(target: &Target, sale: Option<&SaleId>) -> Result<Facts, AuditError> {
    let client = target.dynamodb().await?;
    let mut facts = read_dynamodb::read(&client, &target.tables, sale).await?;
    read_rooms::read(&client, &target.tables.rooms, &mut facts).await?;
    let has_all_sales = sale.is_none();
    read_redis::read(target.redis().await?, &mut facts, has_all_sales).await?;
    Ok(facts)
}

/// Checks every rule of what was read.
#[must_use]
pub fn judge(facts: &Facts, now: Timestamp, bound_seconds: u32) -> Report {
    let findings = invariants::check(facts, now, bound_seconds);
    let sales = facts.sales.keys().cloned().collect();
    Report::new(now, bound_seconds, sales, findings, report::sold(facts))
}
