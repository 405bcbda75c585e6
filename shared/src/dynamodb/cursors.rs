//! The cursors in DynamoDB: how far each provider's list of captures was read.
//!
//! A cursor is one item of the table of sales. Its reader's name and the end of its lease stand in it, so
//! that taking and moving it are single conditional updates.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::dynamo::Dynamo;
use super::expressions::{Value, conditional};
use super::items::{Fields, Item, item, number, text};
use super::lease::IS_READERS;
use super::tables::{CURSOR, provider_key};
use engine::domain::basics::ids::{ProviderId, ReaderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::captures::{ASKED_EVERY_SECONDS, Cursor, Pass};
use engine::ports::{ChangeReply, CursorReply, Cursors, Stored};

/// Time for which a process remembers a cursor: a wave of orders that end together asks for it once.
const REMEMBERED: Duration = Duration::from_secs(1);

/// When each cursor was read, and what it was.
type Memory = HashMap<ProviderId, (Instant, Option<Cursor>)>;

/// The cursors, in DynamoDB, with a short memory.
#[derive(Debug, Clone)]
pub struct DynamoCursors {
    db: Dynamo,
    memory: Arc<Mutex<Memory>>,
}

fn cursor_key(provider: &ProviderId) -> Item {
    item([("pk", text(provider_key(provider))), ("sk", text(CURSOR))])
}

fn read_cursor(item: &Item) -> Stored<Option<Cursor>> {
    let fields = Fields::from_item(item);
    // A reader that has taken it, and has not read a page yet, has written nothing else.
    let Some(since) = fields.maybe_number("since_ms")? else { return Ok(None) };
    let pass = match fields.maybe_number("pass_from_ms")? {
        None => None,
        Some(from) => Some(Pass {
            from: Timestamp::from_ms(from),
            begun_at: Timestamp::from_ms(fields.number("pass_begun_ms")?),
            after: fields.maybe_text("pass_after")?,
        }),
    };
    let read_to = Timestamp::from_ms(fields.number("read_to_ms")?);
    let asked_at = fields.maybe_number("asked_ms")?.map(Timestamp::from_ms);
    Ok(Some(Cursor { since: Timestamp::from_ms(since), read_to, pass, asked_at }))
}

impl DynamoCursors {
    /// The cursors behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db, memory: Arc::default() }
    }

    fn table(&self) -> &str {
        &self.db.tables().sales
    }

    fn remembered(&self, provider: &ProviderId) -> Option<Option<Cursor>> {
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, cursor) = memory.get(provider)?;
        (at.elapsed() < REMEMBERED).then(|| cursor.clone())
    }

    fn remember(&self, provider: &ProviderId, cursor: Option<Cursor>) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.insert(provider.clone(), (Instant::now(), cursor));
    }
}

impl Cursors for DynamoCursors {
    async fn cursor(&self, provider: &ProviderId) -> Stored<Option<Cursor>> {
        if let Some(cursor) = self.remembered(provider) {
            return Ok(cursor);
        }
        let found = self.db.get(self.table(), cursor_key(provider)).await?;
        let cursor = found.as_ref().map(read_cursor).transpose()?.flatten();
        self.remember(provider, cursor.clone());
        Ok(cursor)
    }

    async fn take_cursor(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<CursorReply> {
        match self.db.take_lease(self.table(), cursor_key(provider), reader, now, until).await? {
            Some(cursor) => read_cursor(&cursor).map(CursorReply::Taken),
            None => Ok(CursorReply::Held),
        }
    }

    async fn move_cursor(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        cursor: &Cursor,
        until: Timestamp,
    ) -> Stored<ChangeReply> {
        // When it was asked for is written by callbacks alone.
        let Cursor { since, read_to, pass, asked_at: _ } = cursor;
        let mut set: Vec<(&str, Value)> = vec![
            ("#since_ms = :since", ("since", number(since.ms()))),
            ("#read_to_ms = :read_to", ("read_to", number(read_to.ms()))),
            ("#reader_until_ms = :until", ("until", number(until.ms()))),
        ];
        let mut remove = Vec::new();
        match pass {
            Some(Pass { from, begun_at, after }) => {
                set.push(("#pass_from_ms = :from", ("from", number(from.ms()))));
                set.push(("#pass_begun_ms = :begun", ("begun", number(begun_at.ms()))));
                match after {
                    Some(after) => set.push(("#pass_after = :after", ("after", text(after)))),
                    None => remove.push("#pass_after"),
                }
            }
            None => remove.extend(["#pass_from_ms", "#pass_begun_ms", "#pass_after"]),
        }
        let (assigned, mut with): (Vec<&str>, Vec<Value>) = set.into_iter().unzip();
        with.push(("reader", text(reader)));
        let mut expression = format!("SET {}", assigned.join(", "));
        if !remove.is_empty() {
            expression.push_str(&format!(" REMOVE {}", remove.join(", ")));
        }
        let update = self.db.client().update_item().table_name(self.table());
        let update = update.set_key(Some(cursor_key(provider)));
        let update = conditional(update, &expression, IS_READERS, with);
        Ok(match self.db.update(update).await? {
            Some(_) => {
                self.remember(provider, Some(cursor.clone()));
                ChangeReply::Done
            }
            None => ChangeReply::Conflict,
        })
    }

    async fn ask_to_read(&self, provider: &ProviderId, now: Timestamp) -> Stored<()> {
        let before = now.plus_seconds(-ASKED_EVERY_SECONDS);
        let key = cursor_key(provider);
        let at = [("at", number(now.ms())), ("before", number(before.ms()))];
        let update = self.db.client().update_item().table_name(self.table()).set_key(Some(key));
        // One of many callbacks is enough for half a minute.
        let unasked = "attribute_not_exists(#asked_ms) OR #asked_ms < :before";
        let update = conditional(update, "SET #asked_ms = :at", unasked, at);
        self.db.update(update).await?;
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).remove(provider);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_that_was_only_taken_says_nothing() {
        let provider = ProviderId::new("stripe").unwrap();
        let mut item = cursor_key(&provider);
        item.insert("reader".to_owned(), text("r1"));
        item.insert("reader_until_ms".to_owned(), number(5));
        assert_eq!(read_cursor(&item), Ok(None));
        item.insert("since_ms".to_owned(), number(1));
        assert!(read_cursor(&item).is_err(), "without the rest it is none of ours");
        item.insert("read_to_ms".to_owned(), number(2));
        let [since, read_to] = [1, 2].map(Timestamp::from_ms);
        assert_eq!(
            read_cursor(&item),
            Ok(Some(Cursor { since, read_to, pass: None, asked_at: None }))
        );
        item.insert("pass_from_ms".to_owned(), number(3));
        assert!(read_cursor(&item).is_err());
        item.insert("pass_begun_ms".to_owned(), number(4));
        let [from, begun_at] = [3, 4].map(Timestamp::from_ms);
        let pass = Some(Pass { from, begun_at, after: None });
        assert_eq!(read_cursor(&item), Ok(Some(Cursor { since, read_to, pass, asked_at: None })));
    }
}
