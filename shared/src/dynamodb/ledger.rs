//! The accounts of the ledger in DynamoDB: counted by [settling](super::DynamoOrders) in the transaction that
//! appends the transfers to the log.
//!
//! A part of an account is written by the batches of one shard of the log, and those come one after another: each
//! appends under the condition that nobody has its position. So what it adds needs no condition of its own, and
//! nobody reads a part to write it.
//!
//! A capture for which there is no order is counted with its own record, on a part that only such captures write.
//!
//! Postings come from anywhere at any time. They have a part of their own, which is written under the balance and the
//! version that were read, in one transaction with the posting itself.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::dynamo::Dynamo;
use super::expressions::{Value, keyed, put_under, update};
use super::items::{Fields, Item, item, number, read_money, text};
use super::tables;
use super::transaction::{Reason, Transacted};
use crate::runtime::metrics::{Metric, count};
use engine::domain::basics::ids::PostingKey;
use engine::domain::basics::money::Currency;
use engine::domain::ledger::log::{LogRecord, LogShard};
use engine::domain::ledger::posting::Posting;
use engine::domain::ledger::{Account, Balance, Transfer, TransferCode, entries};
use engine::ports::{Accounts, PostReply, SeenAccount, Stored};

/// What an account has in one currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AccountSum {
    pub has: Balance,
    /// What of it was posted.
    pub posted: Balance,
}

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
            self.add(&account, &tables::account_part_key(currency, shard), balance)
        });
        counted.collect()
    }

    /// What counts a transfer that no order tells of, on a part of its own of both accounts. It needs no condition: it
    /// is written with what makes it once, and neither account has a limit.
    pub(super) fn count_of_no_order(&self, transfer: &Transfer) -> Stored<Vec<TransactWriteItem>> {
        let part = tables::of_no_order_part_key(transfer.amount.currency);
        let counted = entries([transfer]).into_iter();
        counted.map(|((account, _), balance)| self.add(&account, &part, balance)).collect()
    }

    /// What adds to a part of an account.
    fn add(&self, account: &Account, part: &str, more: Balance) -> Stored<TransactWriteItem> {
        let key = item([("account", text(account)), ("part", text(part))]);
        update(self.table(), key, ADD_BALANCE, "", added(more))
    }

    /// What writes the part of an account that postings write, one posting later.
    fn move_on(
        &self,
        account: &Account,
        currency: Currency,
        seen: SeenAccount,
        more: Balance,
    ) -> Stored<TransactWriteItem> {
        let key =
            item([("account", text(account)), ("part", text(tables::posted_part_key(currency)))]);
        let posted = seen.posted.with(more);
        let mut with = vec![
            ("in", number(posted.incoming)),
            ("out", number(posted.outgoing)),
            ("left", number(posted.left())),
            ("next", number(seen.version + 1)),
        ];
        let set =
            "SET #in_minor = :in, #out_minor = :out, #balance_minor = :left, #version = :next";
        if seen.version == 0 {
            return update(self.table(), key, set, "attribute_not_exists(#version)", with);
        }
        with.extend([("balance", number(seen.posted.left())), ("version", number(seen.version))]);
        let as_read = "#balance_minor = :balance AND #version = :version";
        update(self.table(), key, set, as_read, with)
    }

    /// What an account has in each currency, all its parts together, strongly consistent; empty if nothing was
    /// ever booked on it.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn balances(&self, account: &Account) -> Stored<BTreeMap<Currency, Balance>> {
        let sums = self.sums(account).await?;
        Ok(sums.into_iter().map(|(currency, sum)| (currency, sum.has)).collect())
    }

    /// The same, and what of it was posted.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn sums(&self, account: &Account) -> Stored<BTreeMap<Currency, AccountSum>> {
        let mut sums: BTreeMap<Currency, AccountSum> = BTreeMap::new();
        for item in self.parts(account).await? {
            let fields = Fields::from_item(&item);
            let part: String = fields.text("part")?;
            let currency = tables::currency_of_part(&part);
            let currency = currency.ok_or_else(|| fields.broken("part", "has no currency"))?;
            let of_part = balance(&fields)?;
            let sum = sums.entry(currency).or_default();
            sum.has = sum.has.with(of_part);
            if part == tables::posted_part_key(currency) {
                sum.posted = of_part;
            }
        }
        Ok(sums)
    }

    /// The parts of an account in every currency, strongly consistent.
    async fn parts(&self, account: &Account) -> Stored<Vec<Item>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#account = :account",
            [("account", text(account))],
        );
        self.db.query(query.consistent_read(true), usize::MAX).await
    }
}

/// Adds what [`added`] says to what an item has.
pub(super) const ADD_BALANCE: &str =
    "ADD #in_minor :in, #out_minor :out, #balance_minor :left, #version :one";

/// The values of [`ADD_BALANCE`].
pub(super) fn added(more: Balance) -> Vec<Value> {
    vec![
        ("in", number(more.incoming)),
        ("out", number(more.outgoing)),
        ("left", number(more.left())),
        ("one", number(1)),
    ]
}

/// What an item of an account, or of a wallet, has.
pub(super) fn balance(fields: &Fields<'_>) -> Stored<Balance> {
    Ok(Balance { incoming: fields.number("in_minor")?, outgoing: fields.number("out_minor")? })
}

fn posting_item_key(key: &PostingKey) -> Item {
    item([("account", text(tables::posting_key(key))), ("part", text(tables::POSTING))])
}

fn posting_item(posting: &Posting) -> Item {
    let Posting { key, transfer: Transfer { from, to, code, amount }, at } = posting;
    let mut written = posting_item_key(key);
    written.extend(item([
        ("from", text(from)),
        ("to", text(to)),
        ("code", text(code.as_str())),
        ("amount_minor", number(amount.amount_minor)),
        ("currency", text(amount.currency)),
        ("at_ms", number(at.ms())),
    ]));
    written
}

fn read_posting(key: &PostingKey, item: &Item) -> Stored<Posting> {
    let fields = Fields::from_item(item);
    let code: String = fields.text("code")?;
    let code = TransferCode::ALL.into_iter().find(|known| known.as_str() == code);
    let code = code.ok_or_else(|| fields.broken("code", "is none"))?;
    let (from, to) = (fields.text("from")?, fields.text("to")?);
    let transfer = Transfer { from, to, code, amount: read_money(&fields)? };
    Ok(Posting { key: key.clone(), transfer, at: fields.time("at_ms")? })
}

impl Accounts for DynamoLedger {
    async fn account(&self, account: &Account, currency: Currency) -> Stored<SeenAccount> {
        let mut seen = SeenAccount::default();
        let posted = tables::posted_part_key(currency);
        for item in self.parts(account).await? {
            let fields = Fields::from_item(&item);
            let part: String = fields.text("part")?;
            if tables::currency_of_part(&part) != Some(currency) {
                continue;
            }
            let of_part = balance(&fields)?;
            seen.has += of_part.left();
            if part == posted {
                seen = SeenAccount { posted: of_part, version: fields.number("version")?, ..seen };
            }
        }
        Ok(seen)
    }

    async fn posting(&self, key: &PostingKey) -> Stored<Option<Posting>> {
        let found = self.db.get(self.table(), posting_item_key(key)).await?;
        found.as_ref().map(|item| read_posting(key, item)).transpose()
    }

    async fn post(&self, posting: &Posting, seen: [SeenAccount; 2]) -> Stored<PostReply> {
        let Transfer { from, to, amount, .. } = &posting.transfer;
        let moved = i128::from(amount.amount_minor);
        let falls = Balance { outgoing: moved, ..Balance::default() };
        let rises = Balance { incoming: moved, ..Balance::default() };
        let new = "attribute_not_exists(#account)";
        let items = vec![
            put_under(self.table(), posting_item(posting), new)?,
            self.move_on(from, amount.currency, seen[0], falls)?,
            self.move_on(to, amount.currency, seen[1], rises)?,
        ];
        let Transacted::Cancelled(reasons) = self.db.transact_as_read(items).await? else {
            return Ok(PostReply::Made);
        };
        if let Some(Reason::ConditionalCheckFailed(made)) = reasons.first() {
            return read_posting(&posting.key, made).map(PostReply::Known);
        }
        // One that met another transaction is counted there.
        if !reasons.contains(&Reason::TransactionConflict) {
            count(None, Metric::VersionConflicts, 1);
        }
        Ok(PostReply::Conflict)
    }
}
