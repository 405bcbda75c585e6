//! The operator's rules in DynamoDB: one item a rule beside the sale, and a header that counts their changes.
//!
//! A process keeps the rules of a sale and reads the header again when they are a second old; the rules
//! only if it has changed. So a rule is in force everywhere a second after it was written, and a thousand
//! rules cost a request what one does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::dynamo::Dynamo;
use super::expressions::{delete, keyed, put_new, update};
use super::items::{Fields, Item, item, number, text};
use super::tables::{RULE_PREFIX, RULES_HEADER};
use super::transaction::{Reason, Transacted};
use engine::domain::admission::rules::{MAX_RULES, Rule, RuleBook};
use engine::domain::basics::ids::{RuleId, SaleId};
use engine::ports::{StoreError, Stored};

/// Most age of the rules that a process knows.
const REMEMBERED: Duration = Duration::from_secs(1);
/// Most sales whose rules a process remembers; when there are more, it begins again.
const MAX_REMEMBERED: usize = 100;

/// The reply to adding a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddReply {
    /// It is a rule now.
    Added,
    /// The sale has a rule of its id.
    Exists,
    /// The sale has as many rules as it may have.
    Full,
}

/// The reply to removing a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoveReply {
    /// It is a rule no more.
    Removed,
    /// The sale has no such rule.
    Unknown,
}

/// Rules as a process knows them.
#[derive(Debug, Clone)]
struct Known {
    at: Instant,
    version: u64,
    book: Arc<RuleBook>,
}

/// The rules, in DynamoDB, with a short memory.
#[derive(Debug, Clone)]
pub struct DynamoRules {
    db: Dynamo,
    known: Arc<Mutex<HashMap<SaleId, Known>>>,
    reading: Arc<tokio::sync::Mutex<()>>,
}

fn key(sale: &SaleId, sk: impl ToString) -> Item {
    item([("pk", text(sale)), ("sk", text(sk))])
}

fn rule_key(rule: &RuleId) -> String {
    format!("{RULE_PREFIX}{rule}")
}

fn is_refused(reason: Option<&Reason>) -> bool {
    matches!(reason, Some(Reason::ConditionalCheckFailed(_)))
}

impl DynamoRules {
    /// The rules behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db, known: Arc::default(), reading: Arc::default() }
    }

    fn table(&self) -> &str {
        &self.db.tables().sales
    }

    fn known(&self, sale: &SaleId) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(sale).cloned()
    }

    /// The rules of a sale, at most a second old.
    ///
    /// # Errors
    /// Fails if DynamoDB does.
    pub async fn book(&self, sale: &SaleId) -> Stored<Arc<RuleBook>> {
        let young = |known: &Known| known.at.elapsed() < REMEMBERED;
        if let Some(known) = self.known(sale).filter(young) {
            return Ok(known.book);
        }
        let _reading = self.reading.lock().await;
        let known = self.known(sale);
        if let Some(known) = known.clone().filter(young) {
            return Ok(known.book);
        }
        // From before the header is read: what is written after that may be missing.
        let at = Instant::now();
        let version = self.version(sale).await?;
        let book = match known.filter(|known| known.version == version) {
            Some(known) => known.book,
            None if version == 0 => Arc::default(),
            None => Arc::new(RuleBook::new(self.read(sale).await?)),
        };
        let mut memory = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if memory.len() >= MAX_REMEMBERED && !memory.contains_key(sale) {
            memory.clear();
        }
        memory.insert(sale.clone(), Known { at, version, book: Arc::clone(&book) });
        Ok(book)
    }

    /// How often the rules of a sale were changed.
    async fn version(&self, sale: &SaleId) -> Stored<u64> {
        match self.db.get(self.table(), key(sale, RULES_HEADER)).await? {
            Some(header) => Fields::from_item(&header).number("version"),
            None => Ok(0),
        }
    }

    /// The rules of a sale, read now.
    ///
    /// # Errors
    /// Fails if DynamoDB does.
    pub async fn read(&self, sale: &SaleId) -> Stored<Vec<Rule>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :sale AND begins_with(#sk, :rules)",
            [("sale", text(sale)), ("rules", text(RULE_PREFIX))],
        );
        let items = self.db.query(query.consistent_read(true), usize::MAX).await?;
        let rule = |item: &Item| {
            let fields = Fields::from_item(item);
            let json: String = fields.text("rule")?;
            serde_json::from_str(&json).map_err(|error| fields.broken("rule", &error.to_string()))
        };
        items.iter().map(rule).collect()
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// Fails if DynamoDB does; `Unknown` if it may have been added.
    pub async fn add(&self, sale: &SaleId, rule: &Rule) -> Stored<AddReply> {
        let json =
            serde_json::to_string(rule).map_err(|error| StoreError::Contract(error.to_string()))?;
        let mut item = key(sale, rule_key(&rule.rule));
        item.insert("rule".to_owned(), text(json));
        let header = update(
            self.table(),
            key(sale, RULES_HEADER),
            "ADD #version :one, #count :one",
            "attribute_not_exists(#count) OR #count < :max",
            [("one", number(1)), ("max", number(MAX_RULES))],
        )?;
        let written = self.db.transact(2, vec![header, put_new(self.table(), item)?]).await?;
        Ok(match written {
            Transacted::Done => AddReply::Added,
            Transacted::Cancelled(reasons) if is_refused(reasons.get(1)) => AddReply::Exists,
            Transacted::Cancelled(_) => AddReply::Full,
        })
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// Fails if DynamoDB does; `Unknown` if it may have been removed.
    pub async fn remove(&self, sale: &SaleId, rule: &RuleId) -> Stored<RemoveReply> {
        let header = update(
            self.table(),
            key(sale, RULES_HEADER),
            "ADD #version :one, #count :less",
            "",
            [("one", number(1)), ("less", number(-1))],
        )?;
        let rule = key(sale, rule_key(rule));
        let removed = delete(self.table(), rule, "attribute_exists(#sk)", [])?;
        Ok(match self.db.transact(2, vec![header, removed]).await? {
            Transacted::Done => RemoveReply::Removed,
            Transacted::Cancelled(_) => RemoveReply::Unknown,
        })
    }
}
