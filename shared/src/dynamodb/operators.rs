//! The actions of operators in DynamoDB, and the reads that only operators need.
//!
//! An action is written before it is carried out, and once more with its outcome, so that no action is carried out
//! unrecorded. DynamoDB deletes an action after [`ACTIONS_DAYS`].

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::PaymentKey;
use engine::domain::order::attendee::AttendeeHash;
use engine::domain::order::dispute::Dispute;
use engine::ports::{DUE_SHARDS, StoreError, Stored};
use futures_util::future::try_join_all;

use super::dynamo::{Dynamo, random_hex};
use super::expressions::{keyed, placed};
use super::items::{Fields, Item, attendee_key, item, number, read_currency, text};
use super::tables::{ACTIONS, DISPUTES, DUE, UNMATCHED, action_key, dispute_list, payment_of_key};

/// For how many days an action is kept.
pub const ACTIONS_DAYS: i64 = 400;
const SECONDS_PER_DAY: i64 = 86_400;
/// Most overdue items that are counted in one shard of the index.
const MAX_OVERDUE: usize = 1000;

/// Something that an operator did, or tried to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAction {
    /// The time of the request.
    pub at: Timestamp,
    /// Who it was: an ARN, or the `sub` of the operators' issuer.
    pub who: String,
    /// How the operator was known: `iam` or `issuer`.
    pub way: String,
    /// The kind of action.
    pub action: String,
    pub sale: Option<SaleId>,
    pub order: Option<OrderNumber>,
    pub detail: Option<String>,
    /// What came of it: `done`, or the type of the problem; `None` while that is not known.
    pub outcome: Option<String>,
}

/// A page of actions, latest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionsPage {
    pub actions: Vec<KeptAction>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// Work that should have been finished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overdue {
    /// How many items, counted up to 1,000 in each of the 16 shards of the index.
    pub count: usize,
    /// The earliest time at which one was due.
    pub oldest_due_at: Option<Timestamp>,
}

/// A payment that somebody had the bank take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisputedPayment {
    pub payment: PaymentKey,
    /// The order that it has paid.
    pub order: OrderNumber,
    pub currency: Currency,
    pub disputes: Vec<Dispute>,
}

/// A page of disputed payments, latest change first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisputedPage {
    pub payments: Vec<DisputedPayment>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// A page of unmatched captures, latest number first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedPage {
    /// The number of the order that each names, and the payment.
    pub payments: Vec<(OrderNumber, PaymentKey)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<String>,
}

/// What operators did, and what they look up.
#[derive(Debug, Clone)]
pub struct DynamoOperators {
    db: Dynamo,
}

impl DynamoOperators {
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    /// A name for an action at a time, which no other action has.
    ///
    /// # Errors
    /// The system gives no entropy.
    pub fn new_key(at: Timestamp) -> Stored<String> {
        Ok(action_key(at, &random_hex(4)?))
    }

    /// Writes an action under its name, in place of what was written under it before.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn keep(&self, key: &str, action: &KeptAction) -> Stored<()> {
        let put = self.db.client().put_item().table_name(&self.db.tables().sales);
        let put = placed(put.set_item(Some(action_item(key, action))), "", []);
        self.db.write(|| put.clone().send()).await.map(drop)
    }

    /// The actions before a name, latest first, strongly consistent.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn actions(&self, before: Option<&str>, most: u16) -> Stored<ActionsPage> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().sales),
            "#pk = :actions AND #sk < :before",
            // `~` comes after every digit.
            [("actions", text(ACTIONS)), ("before", text(before.unwrap_or("~")))],
        );
        let (found, next) = self.latest(query.consistent_read(true), "sk", most).await?;
        let actions = found.iter().map(read_action).collect::<Stored<_>>()?;
        Ok(ActionsPage { actions, next })
    }

    /// The disputed payments before a mark, latest change first: those of which a dispute is open, or the others. By an
    /// index, which knows of a change some time later.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn disputed_page(
        &self,
        is_open: bool,
        before: Option<&str>,
        most: u16,
    ) -> Stored<DisputedPage> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().orders).index_name(DISPUTES),
            "#dispute_list = :list AND #dispute_at < :before",
            [("list", text(dispute_list(is_open))), ("before", text(before.unwrap_or("~")))],
        );
        let (found, next) = self.latest(query, "dispute_at", most).await?;
        Ok(DisputedPage { payments: found.iter().map(read_disputed).collect::<Stored<_>>()?, next })
    }

    /// The captures of no order before a mark of which no operator has said what becomes of them, latest number first.
    /// By the same index.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn unmatched_page(&self, before: Option<&str>, most: u16) -> Stored<UnmatchedPage> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().orders).index_name(DISPUTES),
            "#dispute_list = :list AND #dispute_at < :before",
            [("list", text(UNMATCHED)), ("before", text(before.unwrap_or("~")))],
        );
        let (found, next) = self.latest(query, "dispute_at", most).await?;
        let payments = found.iter().map(|item| {
            let fields = Fields::from_item(item);
            let sk: String = fields.text("sk")?;
            let key = payment_of_key(&sk).ok_or_else(|| fields.broken("sk", "is no payment's"))?;
            Ok((fields.text("order")?, key))
        });
        Ok(UnmatchedPage { payments: payments.collect::<Stored<_>>()?, next })
    }

    /// The last items that a query finds, the last of them first, and the mark before which the next page begins: the sort
    /// key, `mark`, of the last that is on this one.
    async fn latest(
        &self,
        query: QueryFluentBuilder,
        mark: &str,
        most: u16,
    ) -> Stored<(Vec<Item>, Option<String>)> {
        let most = usize::from(most);
        let mut found = self.db.query(query.scan_index_forward(false), most + 1).await?;
        let is_full = found.len() > most;
        found.truncate(most);
        let last = found.last().filter(|_| is_full);
        let next = last.map(|item| Fields::from_item(item).text(mark)).transpose()?;
        Ok((found, next))
    }

    /// The order that names the attendee of a hash, strongly consistent.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn order_of_attendee(
        &self,
        sale: &SaleId,
        hash: AttendeeHash,
    ) -> Stored<Option<OrderNumber>> {
        let found = self.db.get(&self.db.tables().orders, attendee_key(sale, hash)).await?;
        found.map(|item| Fields::from_item(&item).text("order")).transpose()
    }

    /// Work that was due at a time and is not finished, by the index of due work.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn overdue(&self, at: Timestamp) -> Stored<Overdue> {
        let shards = (0..DUE_SHARDS).map(|shard| self.overdue_of(shard, at));
        let shards = try_join_all(shards).await?;
        Ok(Overdue {
            count: shards.iter().map(|shard| shard.count).sum(),
            oldest_due_at: shards.iter().filter_map(|shard| shard.oldest_due_at).min(),
        })
    }

    async fn overdue_of(&self, shard: u8, at: Timestamp) -> Stored<Overdue> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().orders).index_name(DUE),
            "#due_shard = :shard AND #due_ms <= :at",
            [("shard", number(shard)), ("at", number(at.ms()))],
        );
        let found = self.db.query(query, MAX_OVERDUE).await?;
        let first = found.first().map(|item| Fields::from_item(item).time("due_ms"));
        Ok(Overdue { count: found.len(), oldest_due_at: first.transpose()? })
    }
}

fn action_item(key: &str, action: &KeptAction) -> Item {
    let KeptAction { at, who, way, action, sale, order, detail, outcome } = action;
    let expires_s = at.ms().div_euclid(1000) + ACTIONS_DAYS * SECONDS_PER_DAY;
    let mut made = item([
        ("pk", text(ACTIONS)),
        ("sk", text(key)),
        ("at_ms", number(at.ms())),
        ("who", text(who)),
        ("way", text(way)),
        ("action", text(action)),
        ("expires_s", number(expires_s)),
    ]);
    let more = [
        ("sale", sale.as_ref().map(ToString::to_string)),
        ("order", order.map(|order| order.to_string())),
        ("detail", detail.clone()),
        ("outcome", outcome.clone()),
    ];
    for (name, value) in more {
        if let Some(value) = value {
            made.insert(name.to_owned(), text(value));
        }
    }
    made
}

fn read_disputed(item: &Item) -> Stored<DisputedPayment> {
    let fields = Fields::from_item(item);
    let sk: String = fields.text("sk")?;
    Ok(DisputedPayment {
        payment: payment_of_key(&sk).ok_or_else(|| fields.broken("sk", "is no payment's"))?,
        order: fields.text("order")?,
        currency: read_currency(&fields)?,
        disputes: fields.maybe_json("disputes")?.unwrap_or_default(),
    })
}

fn read_action(item: &Item) -> Result<KeptAction, StoreError> {
    let fields = Fields::from_item(item);
    Ok(KeptAction {
        at: fields.time("at_ms")?,
        who: fields.text("who")?,
        way: fields.text("way")?,
        action: fields.text("action")?,
        sale: fields.maybe_text("sale")?,
        order: fields.maybe_text("order")?,
        detail: fields.maybe_text("detail")?,
        outcome: fields.maybe_text("outcome")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_is_read_as_it_was_written() {
        let action = KeptAction {
            at: Timestamp::from_ms(1_800_000_000_123),
            who: "zhang".to_owned(),
            way: "issuer".to_owned(),
            action: "refund".to_owned(),
            sale: None,
            order: Some("42".parse().unwrap()),
            detail: Some("refund 1".to_owned()),
            outcome: None,
        };
        let key = DynamoOperators::new_key(action.at).unwrap();
        let item = action_item(&key, &action);
        assert_eq!(read_action(&item).unwrap(), action);
        assert!(!item.contains_key("outcome"));
        // Text order is the order in time.
        let later = DynamoOperators::new_key(Timestamp::from_ms(1_800_000_000_124)).unwrap();
        assert!(key < later && later.as_str() < "~");
    }
}
