//! The accounts of the ledger in DynamoDB: counted by [settling](super::DynamoOrders) in the transaction that
//! appends the transfers to the log.
//!
//! A part of an account is written by the batches of one shard of the log, and those come one after another: each
//! appends under the condition that nobody has its position. So what it adds needs no condition of its own, and
//! nobody reads a part to write it.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::dynamo::Dynamo;
use super::expressions::{keyed, update};
use super::items::{Fields, item, number, text};
use super::tables;
use engine::domain::ledger::{Account, Balance, entries};
use engine::domain::log::{LogRecord, LogShard};
use engine::domain::money::Currency;
use engine::ports::Stored;

/// The accounts, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoLedger {
    db: Dynamo,
}

impl DynamoLedger {
    /// The accounts behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    fn table(&self) -> &str {
        &self.db.tables().accounts
    }

    /// What counts the transfers of records that are appended to a shard of the log.
    pub(super) fn count(
        &self,
        shard: LogShard,
        records: &[LogRecord],
    ) -> Stored<Vec<TransactWriteItem>> {
        let counted = entries(records.iter().flat_map(|record| &record.transfers)).into_iter();
        let counted = counted.map(|((account, currency), balance)| {
            let part = tables::account_part_key(currency, shard);
            let key = item([("account", text(&account)), ("part", text(part))]);
            let Balance { incoming, outgoing } = balance;
            let with = [
                ("in", number(incoming)),
                ("out", number(outgoing)),
                ("left", number(balance.left())),
                ("one", number(1)),
            ];
            let add = "ADD #in_minor :in, #out_minor :out, #balance_minor :left, #version :one";
            update(self.table(), key, add, "", with)
        });
        counted.collect()
    }

    /// What an account has in each currency, all its parts together, strongly consistent; empty if nothing was
    /// ever booked on it.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn balances(&self, account: &Account) -> Stored<BTreeMap<Currency, Balance>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#account = :account",
            [("account", text(account))],
        );
        let mut balances: BTreeMap<Currency, Balance> = BTreeMap::new();
        for item in self.db.query(query.consistent_read(true), usize::MAX).await? {
            let fields = Fields::from_item(&item);
            let part: String = fields.text("part")?;
            let currency = tables::currency_of_part(&part);
            let currency = currency.ok_or_else(|| fields.broken("part", "has no currency"))?;
            let (incoming, outgoing) = (fields.number("in_minor")?, fields.number("out_minor")?);
            let of_part = Balance { incoming, outgoing };
            let sum = balances.entry(currency).or_default();
            *sum = sum.with(of_part);
        }
        Ok(balances)
    }
}
