//! The progress of subscribers in DynamoDB: beside the sales, in a partition for each subscriber.
//!
//! The item of a shard of the log has the position, and the lease with its reader and its end. Each order whose facts
//! wait has an item of its own. Both kinds change in one transaction, under the reader's name.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::dynamo::Dynamo;
use super::expressions::{Value, conditional, delete, keyed, put_under, update};
use super::items::{Fields, Item, item, number, text};
use super::lease::IS_READERS;
use super::tables::{self, subscriber_key};
use super::transaction::Transacted;
use engine::domain::basics::ids::{ReaderId, SubscriberId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LogShard;
use engine::domain::ledger::subscriber::{Failing, Progress, Subscription, WaitingOrder};
use engine::ports::{ChangeReply, MAX_WAITING_CHANGES, Stored, Subscriptions, TakeReply, Waiting};

/// Seconds for which an operator's command has a shard to itself: thousands of orders may wait in it.
const CHANGE_SECONDS: i64 = 120;

/// How far subscribers were told, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoSubscriptions {
    db: Dynamo,
}

/// One shard of a subscriber, as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardState {
    pub shard: LogShard,
    /// How far it was told.
    pub progress: Progress,
    /// The orders that wait, also those that were given up.
    pub waiting: Vec<WaitingOrder>,
}

fn shard_item_key(of: &Subscription) -> Item {
    let sk = tables::subscriber_shard_key(of.shard);
    item([("pk", text(subscriber_key(&of.subscriber))), ("sk", text(sk))])
}

fn waiting_item_key(of: &Subscription, order: OrderNumber) -> Item {
    let sk = tables::waiting_order_key(of.shard, order);
    item([("pk", text(subscriber_key(&of.subscriber))), ("sk", text(sk))])
}

/// The attributes of a failure, which are absent where nothing fails.
fn failing_attributes(failing: &Failing) -> Vec<Value> {
    let mut attributes = vec![
        ("failing_since_ms", number(failing.since.ms())),
        ("failing_tries", number(failing.tries)),
    ];
    if let Some(next) = failing.next {
        attributes.push(("failing_next_ms", number(next.ms())));
    }
    attributes
}

fn read_failing(fields: &Fields<'_>) -> Stored<Option<Failing>> {
    let Some(since) = fields.maybe_number("failing_since_ms")? else { return Ok(None) };
    let next: Option<i64> = fields.maybe_number("failing_next_ms")?;
    Ok(Some(Failing {
        since: Timestamp::from_ms(since),
        tries: fields.number("failing_tries")?,
        next: next.map(Timestamp::from_ms),
    }))
}

/// The progress of an item; `None` if it was only taken.
fn read_progress(item: &Item) -> Stored<Option<Progress>> {
    let fields = Fields::from_item(item);
    let Some(position) = fields.maybe_number("position")? else { return Ok(None) };
    Ok(Some(Progress { position, failing: read_failing(&fields)? }))
}

fn waiting_item(of: &Subscription, waiting: &WaitingOrder) -> Item {
    let WaitingOrder { order, from, to, failing } = waiting;
    let mut item = waiting_item_key(of, *order);
    let own = [
        ("order", number(order.get())),
        ("from_fact", number(from.get())),
        ("to_fact", number(to.get())),
    ];
    let all = own.into_iter().chain(failing_attributes(failing));
    item.extend(all.map(|(name, value)| (name.to_owned(), value)));
    item
}

fn read_waiting(item: &Item) -> Stored<WaitingOrder> {
    let fields = Fields::from_item(item);
    let failing = read_failing(&fields)?;
    Ok(WaitingOrder {
        order: fields.number("order")?,
        from: fields.number("from_fact")?,
        to: fields.number("to_fact")?,
        failing: failing.ok_or_else(|| fields.broken("failing_since_ms", "is absent"))?,
    })
}

impl DynamoSubscriptions {
    /// The subscriptions behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    fn table(&self) -> &str {
        &self.db.tables().sales
    }

    /// What is kept of every shard of a subscriber that was ever told something, strongly consistent.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn state(&self, subscriber: &SubscriberId) -> Stored<Vec<ShardState>> {
        let mut states = Vec::new();
        for shard in LogShard::all() {
            let of = Subscription { subscriber: subscriber.clone(), shard };
            let Some(found) = self.db.get(self.table(), shard_item_key(&of)).await? else {
                continue;
            };
            let Some(progress) = read_progress(&found)? else { continue };
            states.push(ShardState { shard, progress, waiting: self.waiting(&of).await? });
        }
        Ok(states)
    }

    /// Has everything that fails tried again at once, also what was given up. Nobody tells meanwhile: `reader` takes
    /// each shard first, and one that another has is left for its teller.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn retry(
        &self,
        subscriber: &SubscriberId,
        reader: &ReaderId,
        now: Timestamp,
    ) -> Stored<Vec<LogShard>> {
        let again = Failing { since: now, tries: 0, next: Some(now) };
        self.change(subscriber, reader, now, |_, progress, waiting| {
            let failing = progress.failing.map(|_| again);
            let waiting = waiting.iter().map(|order| WaitingOrder { failing: again, ..*order });
            (Progress { failing, ..progress }, waiting.collect())
        })
        .await
    }

    /// Goes back to positions, from which everything is told once more, under the same names.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn rewind(
        &self,
        subscriber: &SubscriberId,
        reader: &ReaderId,
        now: Timestamp,
        to: impl Fn(LogShard) -> u64,
    ) -> Stored<Vec<LogShard>> {
        self.change(subscriber, reader, now, |shard, progress, _| {
            let position = to(shard).min(progress.position);
            (Progress { position, failing: None }, Vec::new())
        })
        .await
    }

    /// Changes each shard that nobody tells at the moment; those that somebody does.
    async fn change(
        &self,
        subscriber: &SubscriberId,
        reader: &ReaderId,
        now: Timestamp,
        change: impl Fn(LogShard, Progress, &[WaitingOrder]) -> (Progress, Vec<WaitingOrder>),
    ) -> Stored<Vec<LogShard>> {
        let mut held = Vec::new();
        for shard in LogShard::all() {
            let of = Subscription { subscriber: subscriber.clone(), shard };
            let until = now.plus_seconds(CHANGE_SECONDS);
            match self.take(&of, reader, now, until).await? {
                TakeReply::Held => held.push(shard),
                // It begins where it would have begun.
                TakeReply::Taken(None) => {}
                TakeReply::Taken(Some(progress)) => {
                    let waiting = self.waiting(&of).await?;
                    let (progress, waiting) = change(shard, progress, &waiting);
                    let waiting: Vec<Waiting> = waiting.into_iter().map(Waiting::Keep).collect();
                    let mut is_held = false;
                    for some in waiting.chunks(MAX_WAITING_CHANGES) {
                        let kept = self.keep(&of, reader, &progress, some, until).await?;
                        is_held |= kept == ChangeReply::Conflict;
                    }
                    let kept = self.keep(&of, reader, &progress, &[], now).await?;
                    if is_held || kept == ChangeReply::Conflict {
                        held.push(shard);
                    }
                }
            }
        }
        Ok(held)
    }

    /// Forgets all of a subscriber.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn forget(&self, subscriber: &SubscriberId) -> Stored<()> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :pk",
            [("pk", text(subscriber_key(subscriber)))],
        );
        let query = query.consistent_read(true).projection_expression("pk, sk");
        for found in self.db.query(query, usize::MAX).await? {
            let delete = self.db.client().delete_item().table_name(self.table());
            self.db.delete(delete.set_key(Some(found))).await?;
        }
        Ok(())
    }

    /// The item that says how far a shard was told, and who tells.
    fn kept(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        progress: &Progress,
        until: Timestamp,
    ) -> (Item, String, Vec<Value>) {
        let mut with = vec![
            ("position", number(progress.position)),
            ("until", number(until.ms())),
            ("reader", text(reader)),
        ];
        let mut set = "SET #position = :position, #reader_until_ms = :until".to_owned();
        let failing = progress.failing.as_ref().map(failing_attributes).unwrap_or_default();
        let all = ["failing_since_ms", "failing_tries", "failing_next_ms"];
        let gone = all.into_iter().filter(|name| failing.iter().all(|(known, _)| known != name));
        let gone: Vec<String> = gone.map(|name| format!("#{name}")).collect();
        for (name, _) in &failing {
            set.push_str(&format!(", #{name} = :{name}"));
        }
        if !gone.is_empty() {
            set.push_str(&format!(" REMOVE {}", gone.join(", ")));
        }
        with.extend(failing);
        (shard_item_key(of), set, with)
    }
}

impl Subscriptions for DynamoSubscriptions {
    async fn take(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<TakeReply> {
        match self.db.take_lease(self.table(), shard_item_key(of), reader, now, until).await? {
            Some(taken) => read_progress(&taken).map(TakeReply::Taken),
            None => Ok(TakeReply::Held),
        }
    }

    async fn keep(
        &self,
        of: &Subscription,
        reader: &ReaderId,
        progress: &Progress,
        waiting: &[Waiting],
        until: Timestamp,
    ) -> Stored<ChangeReply> {
        let (key, set, with) = self.kept(of, reader, progress, until);
        let table = self.table();
        if waiting.is_empty() {
            let update = self.db.client().update_item().table_name(table).set_key(Some(key));
            let kept = self.db.update(conditional(update, &set, IS_READERS, with)).await?;
            return Ok(kept.map_or(ChangeReply::Conflict, |_| ChangeReply::Done));
        }
        let mut items: Vec<TransactWriteItem> = vec![update(table, key, &set, IS_READERS, with)?];
        for change in waiting {
            items.push(match change {
                Waiting::Keep(order) => put_under(table, waiting_item(of, order), "")?,
                Waiting::Told(order) => delete(table, waiting_item_key(of, *order), "", [])?,
            });
        }
        Ok(match self.db.transact(1, items).await? {
            Transacted::Done => ChangeReply::Done,
            Transacted::Cancelled(_) => ChangeReply::Conflict,
        })
    }

    async fn waiting(&self, of: &Subscription) -> Stored<Vec<WaitingOrder>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :pk AND begins_with(#sk, :prefix)",
            [
                ("pk", text(subscriber_key(&of.subscriber))),
                ("prefix", text(tables::waiting_prefix(of.shard))),
            ],
        );
        let found = self.db.query(query.consistent_read(true), usize::MAX).await?;
        found.iter().map(read_waiting).collect()
    }
}

#[cfg(test)]
mod tests {
    use engine::ports::StoreError;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_amiss_is_named() -> Result<(), StoreError> {
        let of = Subscription {
            subscriber: SubscriberId::new("erp").unwrap(),
            shard: LogShard::all().next().unwrap(),
        };
        let [since, next] = [1, 9].map(Timestamp::from_ms);
        let user = engine::domain::basics::ids::UserId::new("7").unwrap();
        let order = engine::domain::basics::number::Mint::new(0)
            .mint(Timestamp::from_ms(1_800_000_000_000), &user);
        let fact = |number| std::num::NonZeroU32::new(number).unwrap();
        for next in [None, Some(next)] {
            let failing = Failing { since, tries: 3, next };
            let waiting = WaitingOrder { order, from: fact(2), to: fact(5), failing };
            let mut item = waiting_item(&of, &waiting);
            assert_eq!(read_waiting(&item)?, waiting);
            item.remove("failing_since_ms");
            assert!(read_waiting(&item).is_err());
        }
        let mut item = shard_item_key(&of);
        assert_eq!(read_progress(&item)?, None);
        item.insert("position".to_owned(), number(4));
        assert_eq!(read_progress(&item)?, Some(Progress { position: 4, failing: None }));
        item.insert("failing_since_ms".to_owned(), number(1));
        assert!(read_progress(&item).is_err(), "without the tries it is none of ours");
        Ok(())
    }
}
