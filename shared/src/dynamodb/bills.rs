//! The bills of payment providers in DynamoDB: how far those of each account are read, and what of them differs from what is
//! known.
//!
//! A cursor is one item of the table of sales, like that of a list of captures ([`super::cursors`]). Each difference is an item
//! of a partition of its account, under its own name: written again, it is the same item, and what an operator said of it
//! stays. DynamoDB deletes it after [`DIFFERENCES_DAYS`].

use super::dynamo::Dynamo;
use super::expressions::{Value, conditional, keyed};
use super::items::{Fields, Item, item, number, read_money, text};
use super::lease::IS_READERS;
use super::tables::{BILLS, differences_key, provider_key};
use engine::domain::basics::ids::{ProviderId, ReaderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::{BillCursor, BillDay, Difference, DifferenceKind};
use engine::ports::{ChangeReply, Stored, TakeBills};

/// For how many days a difference is kept: those of a quarter's accounts.
pub const DIFFERENCES_DAYS: i64 = 100;
const SECONDS_PER_DAY: i64 = 86_400;
/// The most differences of an account that are read at once.
pub const MAX_READ: usize = 1_000;

/// What is kept of bills, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoBills {
    db: Dynamo,
}

fn cursor_key(provider: &ProviderId) -> Item {
    item([("pk", text(provider_key(provider))), ("sk", text(BILLS))])
}

fn read_cursor(item: &Item) -> Stored<Option<BillCursor>> {
    let fields = Fields::from_item(item);
    // A reader that has taken it, and has read nothing yet, has written nothing else.
    let Some(day) = fields.maybe_number("bill_day")? else { return Ok(None) };
    Ok(Some(BillCursor {
        day: BillDay(day),
        after: fields.maybe_text("bill_after")?,
        line: fields.maybe_number("bill_line")?.unwrap_or_default(),
        kept: fields.maybe_number("bill_kept")?.unwrap_or_default(),
    }))
}

fn read_difference(provider: &ProviderId, item: &Item) -> Stored<Difference> {
    let fields = Fields::from_item(item);
    let kind: String = fields.text("kind")?;
    let is_it = |known: &DifferenceKind| known.as_str() == kind;
    let kind = DifferenceKind::ALL.into_iter().find(is_it);
    let has_amount = fields.maybe_text::<String>("currency")?.is_some();
    Ok(Difference {
        provider: provider.clone(),
        day: BillDay(fields.number("bill_day")?),
        kind: kind.ok_or_else(|| fields.broken("kind", "is no kind of difference"))?,
        id: fields.text("id")?,
        order: fields.maybe_text("order")?,
        payment: fields.maybe_text("payment")?,
        amount: if has_amount { Some(read_money(&fields)?) } else { None },
        what: fields.maybe_text("what")?.unwrap_or_default(),
        found_at: fields.time("found_ms")?,
        done: fields.maybe_text("done")?,
    })
}

impl DynamoBills {
    /// What is kept of bills, behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    fn table(&self) -> &str {
        &self.db.tables().sales
    }

    /// Takes the lease on the bills of an account; see [`Bills::take_bills`](engine::ports::Bills::take_bills).
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn take(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> Stored<TakeBills> {
        match self.db.take_lease(self.table(), cursor_key(provider), reader, now, until).await? {
            Some(cursor) => read_cursor(&cursor).map(TakeBills::Taken),
            None => Ok(TakeBills::Held),
        }
    }

    /// Writes how far the bills of an account are read; see
    /// [`Bills::move_bills`](engine::ports::Bills::move_bills).
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn move_to(
        &self,
        provider: &ProviderId,
        reader: &ReaderId,
        cursor: &BillCursor,
        until: Timestamp,
    ) -> Stored<ChangeReply> {
        let with = [("reader", text(reader)), ("until", number(until.ms()))];
        self.write(provider, cursor, "#reader_until_ms = :until, ", IS_READERS, with).await
    }

    /// Has the bills of an account read from the beginning of a day on, unless a reader has them now.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn read_from(
        &self,
        provider: &ProviderId,
        day: BillDay,
        now: Timestamp,
    ) -> Stored<ChangeReply> {
        let free = "attribute_not_exists(#reader_until_ms) OR #reader_until_ms <= :now";
        let with = [("now", number(now.ms()))];
        self.write(provider, &BillCursor::at(day), "", free, with).await
    }

    async fn write<const N: usize>(
        &self,
        provider: &ProviderId,
        cursor: &BillCursor,
        first: &str,
        condition: &str,
        with: [Value; N],
    ) -> Stored<ChangeReply> {
        let BillCursor { day, after, line, kept } = cursor;
        let mut values = Vec::from(with);
        values.push(("day", number(day.0)));
        values.push(("line", number(*line)));
        values.push(("kept", number(*kept)));
        let mut expression =
            format!("SET {first}#bill_day = :day, #bill_line = :line, #bill_kept = :kept");
        match after {
            Some(after) => {
                expression.push_str(", #bill_after = :after");
                values.push(("after", text(after)));
            }
            None => expression.push_str(" REMOVE #bill_after"),
        }
        let update = self.db.client().update_item().table_name(self.table());
        let update = update.set_key(Some(cursor_key(provider)));
        let update = conditional(update, &expression, condition, values);
        Ok(match self.db.update(update).await? {
            Some(_) => ChangeReply::Done,
            None => ChangeReply::Conflict,
        })
    }

    /// Keeps a difference; see [`Bills::keep_difference`](engine::ports::Bills::keep_difference).
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn keep(&self, difference: &Difference) -> Stored<()> {
        let Difference { provider, day, kind, id, order, payment, amount, what, found_at, .. } =
            difference;
        let expires_s = found_at.ms().div_euclid(1000) + DIFFERENCES_DAYS * SECONDS_PER_DAY;
        let mut set: Vec<(&str, Value)> = vec![
            ("#bill_day = :day", ("day", number(day.0))),
            ("#kind = :kind", ("kind", text(kind.as_str()))),
            ("#id = :id", ("id", text(id))),
            ("#what = :what", ("what", text(what))),
            ("#found_ms = :found", ("found", number(found_at.ms()))),
            ("#expires_s = :expires", ("expires", number(expires_s))),
        ];
        if let Some(order) = order {
            set.push(("#order = :order", ("order", text(order))));
        }
        if let Some(payment) = payment {
            set.push(("#payment = :payment", ("payment", text(payment))));
        }
        if let Some(amount) = amount {
            set.push(("#amount_minor = :amount", ("amount", number(amount.amount_minor.0))));
            set.push(("#currency = :currency", ("currency", text(amount.currency))));
        }
        let (assigned, with): (Vec<&str>, Vec<Value>) = set.into_iter().unzip();
        let expression = format!("SET {}", assigned.join(", "));
        let key = item([("pk", text(differences_key(provider))), ("sk", text(difference.key()))]);
        let update = self.db.client().update_item().table_name(self.table()).set_key(Some(key));
        self.db.update(conditional(update, &expression, "", with)).await.map(drop)
    }

    /// The differences of an account, those of the latest day first, at most [`MAX_READ`]; strongly consistent.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn differences(&self, provider: &ProviderId) -> Stored<Vec<Difference>> {
        let query = self.db.client().query().table_name(self.table());
        let query = keyed(query, "#pk = :of", [("of", text(differences_key(provider)))]);
        let query = query.consistent_read(true).scan_index_forward(false);
        let found = self.db.query(query, MAX_READ).await?;
        found.iter().map(|item| read_difference(provider, item)).collect()
    }

    /// Writes what an operator says of a difference, by its [name](Difference::key); false if there is none.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn explain(&self, provider: &ProviderId, key: &str, words: &str) -> Stored<bool> {
        let key = item([("pk", text(differences_key(provider))), ("sk", text(key))]);
        let update = self.db.client().update_item().table_name(self.table()).set_key(Some(key));
        let with = [("done", text(words))];
        let update = conditional(update, "SET #done = :done", "attribute_exists(#sk)", with);
        self.db.update(update).await.map(|found| found.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bills_that_were_only_taken_are_read_from_nowhere() {
        let provider = ProviderId::new("wechat").unwrap();
        let mut item = cursor_key(&provider);
        item.insert("reader".to_owned(), text("r1"));
        item.insert("reader_until_ms".to_owned(), number(5));
        assert_eq!(read_cursor(&item), Ok(None));
        item.insert("bill_day".to_owned(), number(20_782));
        let cursor = BillCursor::at(BillDay(20_782));
        assert_eq!(read_cursor(&item), Ok(Some(cursor.clone())));
        item.insert("bill_line".to_owned(), number(7));
        item.insert("bill_after".to_owned(), text("txn_1"));
        let after = "txn_1".parse().ok();
        assert_eq!(read_cursor(&item), Ok(Some(BillCursor { line: 7, after, ..cursor })));
    }
}
