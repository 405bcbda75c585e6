//! The waiting rooms in DynamoDB: secrets, logs, counters, memberships, leaves and trees.
//!
//! An item that must never change is put under the condition that it does not exist, and a second writer gets the item
//! that is there: a repeated attempt whose answer was lost finds its own. Every read is strongly consistent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};

use super::codes;
use super::dynamo::Dynamo;
use super::expressions::{Value, conditional, keyed, placed};
use super::items::{Fields, Item, item, number, text};
use super::tables::{self, MARKER};
use engine::domain::admission::room::code::{CodeShard, CodeUses};
use engine::domain::admission::room::join::{
    Index, JoinWindow, Membership, Replaced, TakenIndices, Tree,
};
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::visit::{Admitted, Enter, EnterReply, Entered, Visit};
use engine::domain::basics::bytes::{Hash, Nonce, Secret};
use engine::domain::basics::ids::{GroupId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::serving::MORE_TIME_FACTOR;
use engine::ports::{AppendReply, MembershipPage, Rooms, StoreError, Stored};

/// Most attempts at an admission of a member: another device may be admitted in between.
const MAX_ENTERS: usize = 3;
/// Most first records that a process remembers: they never change, and every join asks for one.
const MAX_REMEMBERED: usize = 100;

/// The rooms, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoRooms {
    db: Dynamo,
    first_records: Arc<Mutex<HashMap<SaleId, Record>>>,
}

pub(super) fn key(pk: String, sk: impl ToString) -> Item {
    item([("pk", text(pk)), ("sk", text(sk))])
}

/// An item of the table with what it says.
fn with<const N: usize>(key: Item, attributes: [(&str, AttributeValue); N]) -> Item {
    key.into_iter().chain(item(attributes)).collect()
}

fn bytes(hashes: &[Hash]) -> AttributeValue {
    AttributeValue::B(Blob::new(hashes.iter().flat_map(|hash| hash.0).collect::<Vec<u8>>()))
}

/// The bytes of an attribute.
fn read_bytes<'a>(item: &'a Item, name: &str) -> Stored<&'a [u8]> {
    match item.get(name) {
        Some(AttributeValue::B(bytes)) => Ok(bytes.as_ref()),
        None | Some(_) => Err(Fields::from_item(item).broken(name, "is no bytes")),
    }
}

/// The hashes of an attribute that [`bytes`] made.
fn read_hashes(item: &Item, name: &str) -> Stored<Vec<Hash>> {
    match read_bytes(item, name)?.as_chunks::<32>() {
        (hashes, []) => Ok(hashes.iter().map(|hash| Hash(*hash)).collect()),
        (_, _) => Err(Fields::from_item(item).broken(name, "has another length")),
    }
}

/// The item of a membership in a bucket: what [`Rooms::join`] puts.
#[must_use]
pub fn membership_item(membership: &Membership, bucket: u16) -> Item {
    let Membership { sale, group, buyer, index, nonce, joined_at, .. } = membership;
    let mut item = with(
        key(tables::members_key(sale, bucket), tables::member_key(buyer)),
        [
            ("group", text(group)),
            ("index", number(index.number)),
            ("window", text(index.window.as_str())),
            ("nonce", AttributeValue::B(Blob::new(nonce.0))),
            ("joined_ms", number(joined_at.ms())),
        ],
    );
    // What nobody asked for, and what has not happened, takes no bytes.
    if membership.more_time {
        item.insert("more_time".to_owned(), AttributeValue::Bool(true));
    }
    if membership.rejoined > 0 {
        item.insert("rejoined".to_owned(), number(membership.rejoined));
    }
    if !membership.earlier.is_empty() {
        item.insert("earlier".to_owned(), text(earlier_text(&membership.earlier)));
    }
    if let Some(Visit { place, turn, began_clock_ms, attempts }) = membership.visit {
        let of_visit = [
            ("place", number(place)),
            ("turn", number(turn)),
            ("began_ms", number(began_clock_ms)),
            ("attempts", number(attempts)),
        ];
        item = with(item, of_visit);
    }
    item
}

/// Visits of before: index, place and turn of each, such as `4:17:230,90:12:1021`.
fn earlier_text(earlier: &[Admitted]) -> String {
    let one = |Admitted { index, place, turn }: &Admitted| format!("{index}:{place}:{turn}");
    earlier.iter().map(one).collect::<Vec<String>>().join(",")
}

fn read_earlier(text: &str) -> Option<Vec<Admitted>> {
    let one = |text: &str| {
        let (index, rest) = text.split_once(':')?;
        let (place, turn) = rest.split_once(':')?;
        let (index, place) = (index.parse().ok()?, place.parse().ok()?);
        Some(Admitted { index, place, turn: turn.parse().ok()? })
    };
    text.split(',').map(one).collect()
}

fn read_visit(item: &Item) -> Stored<Option<Visit>> {
    let fields = Fields::from_item(item);
    let Some(attempts) = fields.maybe_number("attempts")? else { return Ok(None) };
    Ok(Some(Visit {
        place: fields.number("place")?,
        turn: fields.number("turn")?,
        began_clock_ms: fields.number("began_ms")?,
        attempts,
    }))
}

pub(super) fn read_membership(sale: &SaleId, item: &Item) -> Stored<Membership> {
    let fields = Fields::from_item(item);
    let sk: String = fields.text("sk")?;
    let buyer =
        tables::buyer_of_member(&sk).ok_or_else(|| fields.broken("sk", "is no member's"))?;
    let window: String = fields.text("window")?;
    let window = JoinWindow::ALL.into_iter().find(|known| known.as_str() == window);
    let window = window.ok_or_else(|| fields.broken("window", "is no window"))?;
    let nonce = read_bytes(item, "nonce")?;
    let nonce = nonce.try_into().map_err(|_| fields.broken("nonce", "has another length"))?;
    Ok(Membership {
        sale: sale.clone(),
        group: fields.text("group")?,
        buyer,
        index: Index { number: fields.number("index")?, window },
        nonce: Nonce(nonce),
        joined_at: Timestamp::from_ms(fields.number("joined_ms")?),
        more_time: fields.flag("more_time")?,
        rejoined: fields.maybe_number("rejoined")?.unwrap_or(0),
        visit: read_visit(item)?,
        earlier: match fields.maybe_text::<String>("earlier")? {
            Some(text) => read_earlier(&text)
                .ok_or_else(|| fields.broken("earlier", "is no list of visits"))?,
            None => Vec::new(),
        },
    })
}

fn read_record(item: &Item) -> Stored<Record> {
    let fields = Fields::from_item(item);
    let line: String = fields.text("line")?;
    Record::from_line(&line).map_err(|error| fields.broken("line", &error.to_string()))
}

fn read_tree(item: &Item) -> Stored<Tree> {
    let count = Fields::from_item(item).number("count")?;
    Ok(Tree { count, chunk_roots: read_hashes(item, "chunk_roots")? })
}

impl DynamoRooms {
    /// The rooms behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db, first_records: Arc::default() }
    }

    pub(super) fn table(&self) -> &str {
        &self.db.tables().rooms
    }

    pub(super) fn db(&self) -> &Dynamo {
        &self.db
    }

    async fn get(&self, key: Item) -> Stored<Option<Item>> {
        self.db.get(self.table(), key).await
    }

    /// Puts an item under a condition; false if that does not hold, perhaps because an attempt whose answer
    /// was lost has put it.
    pub(super) async fn put(
        &self,
        item: Item,
        condition: &str,
        with: impl IntoIterator<Item = Value>,
    ) -> Stored<bool> {
        let put = self.db.client().put_item().table_name(self.table()).set_item(Some(item));
        let put = placed(put, condition, with);
        let attempt = || {
            let put = put.clone();
            async move {
                match put.send().await {
                    Ok(_) => Ok(true),
                    Err(error) => {
                        let refused = PutItemError::is_conditional_check_failed_exception;
                        let is_refused = error.as_service_error().is_some_and(refused);
                        if is_refused { Ok(false) } else { Err(error) }
                    }
                }
            }
        };
        self.db.write(attempt).await
    }

    /// Puts an item if there is none with its key; the one that is there then.
    async fn keep(&self, item: Item) -> Stored<Item> {
        let of = |name: &str| Some((name.to_owned(), item.get(name)?.clone()));
        let key: Item = ["pk", "sk"].into_iter().filter_map(of).collect();
        if self.put(item.clone(), "attribute_not_exists(#sk)", []).await? {
            return Ok(item);
        }
        let kept = self.get(key).await?;
        kept.ok_or_else(|| StoreError::Unavailable("an item was removed meanwhile".to_owned()))
    }

    /// Adds to the counter of a group; the counter then.
    async fn count(&self, sale: &SaleId, group: &GroupId, count: u16) -> Stored<Item> {
        let update = self.db.client().update_item().table_name(self.table());
        let update = update.set_key(Some(key(tables::room_counter_key(sale), group)));
        // So that every index and their number are 32-bit numbers.
        let condition = "attribute_not_exists(#next) OR #next < :most";
        let most = u32::MAX - u32::from(u16::MAX);
        let with = [("count", number(count)), ("most", number(most))];
        let counter = self.db.update(conditional(update, "ADD #next :count", condition, with));
        let used_up = || StoreError::Contract(format!("the indices of {sale} {group} are used up"));
        counter.await?.ok_or_else(used_up)
    }

    /// The conditional write of an entrance: the visit begins, or has one more attempt; it returns what was there before.
    /// The rule is that of [`Enter::reply`]. Of an entrance that only begins the visit, nothing is written to one that has
    /// begun.
    fn entering(&self, enter: &Enter) -> UpdateItemFluentBuilder {
        let Enter { sale, bucket, buyer, group, index, visit, begun_only, visit_ms, max_attempts } =
            enter;
        let at = key(tables::members_key(sale, *bucket), tables::member_key(buyer));
        let update = self.db.client().update_item().table_name(self.table()).set_key(Some(at));
        let set = "SET #place = if_not_exists(#place, :place), #turn = if_not_exists(#turn, :turn), \
                   #began_ms = if_not_exists(#began_ms, :clock) ADD #attempts :one";
        let begins = "attribute_not_exists(#attempts)";
        let goes_on = "#attempts < :most AND (#began_ms > :after OR \
                       (#more_time = :true AND #began_ms > :long_after))";
        // Parentheses that mean nothing are refused.
        let is_let_in = match (*begun_only, enter.admits()) {
            (true, _) => goes_on.to_owned(),
            (false, true) => format!("({begins} OR ({goes_on}))"),
            (false, false) => begins.to_owned(),
        };
        let condition = format!("#index = :index AND #group = :group AND {is_let_in}");
        let clock = i128::from(visit.began_clock_ms);
        let longer = visit_ms.saturating_mul(MORE_TIME_FACTOR);
        let with = [
            ("place", number(visit.place)),
            ("turn", number(visit.turn)),
            ("clock", number(visit.began_clock_ms)),
            ("one", number(visit.attempts)),
            ("most", number(*max_attempts)),
            ("after", number(clock - i128::from(*visit_ms))),
            ("long_after", number(clock - i128::from(longer))),
            ("true", AttributeValue::Bool(true)),
            ("index", number(*index)),
            ("group", text(group)),
        ];
        // Values that no expression names are refused.
        let is_named = |(name, _): &Value| {
            let name = format!(":{name}");
            set.contains(&name) || condition.contains(&name)
        };
        let with = with.into_iter().filter(is_named);
        conditional(update, set, &condition, with).return_values(ReturnValue::AllOld)
    }

    fn remembered(&self, sale: &SaleId) -> Option<Record> {
        self.first_records.lock().unwrap_or_else(PoisonError::into_inner).get(sale).cloned()
    }

    fn remember(&self, sale: &SaleId, record: &Record) {
        let mut first = self.first_records.lock().unwrap_or_else(PoisonError::into_inner);
        if first.len() >= MAX_REMEMBERED {
            first.clear();
        }
        first.insert(sale.clone(), record.clone());
    }
}

impl Rooms for DynamoRooms {
    async fn keep_secret(&self, sale: &SaleId, secret: &Secret) -> Stored<Secret> {
        let key = key(tables::secret_key(sale), tables::ONLY);
        let kept = self.keep(with(key, [("secret", text(secret))])).await?;
        Fields::from_item(&kept).text("secret")
    }

    async fn secret(&self, sale: &SaleId) -> Stored<Option<Secret>> {
        let kept = self.get(key(tables::secret_key(sale), tables::ONLY)).await?;
        kept.map(|kept| Fields::from_item(&kept).text("secret")).transpose()
    }

    async fn append(&self, sale: &SaleId, record: &Record) -> Stored<AppendReply> {
        let key = key(tables::log_key(sale), tables::record_key(record.number));
        let line = record.line();
        let kept = self.keep(with(key, [("line", text(&line))])).await?;
        let is_ours = Fields::from_item(&kept).text::<String>("line")? == line;
        Ok(if is_ours { AppendReply::Appended } else { AppendReply::Conflict })
    }

    async fn record(&self, sale: &SaleId, number: u64) -> Stored<Option<Record>> {
        if number == 0
            && let Some(first) = self.remembered(sale)
        {
            return Ok(Some(first));
        }
        let kept = self.get(key(tables::log_key(sale), tables::record_key(number))).await?;
        let record = kept.as_ref().map(read_record).transpose()?;
        if let Some(first) = record.as_ref().filter(|record| record.number == 0) {
            self.remember(sale, first);
        }
        Ok(record)
    }

    async fn records(&self, sale: &SaleId, from: u64, most: u16) -> Stored<Vec<Record>> {
        let query = self.db.client().query().table_name(self.table()).consistent_read(true);
        let from = tables::record_key(from);
        let with = [("pk", text(tables::log_key(sale))), ("from", text(from))];
        let query = keyed(query, "#pk = :pk AND #sk >= :from", with);
        let records = self.db.query(query, most.into()).await?;
        records.iter().map(read_record).collect()
    }

    async fn last_record(&self, sale: &SaleId) -> Stored<Option<Record>> {
        let query = self.db.client().query().table_name(self.table());
        let query = query.consistent_read(true).scan_index_forward(false);
        let query = keyed(query, "#pk = :pk", [("pk", text(tables::log_key(sale)))]);
        let last = self.db.query(query, 1).await?;
        last.first().map(read_record).transpose()
    }

    async fn take_indices(
        &self,
        sale: &SaleId,
        group: &GroupId,
        count: u16,
    ) -> Stored<TakenIndices> {
        let counter = self.count(sale, group, count).await?;
        let fields = Fields::from_item(&counter);
        let next: u32 = fields.number("next")?;
        let closed: Option<u32> = fields.maybe_number("closed")?;
        let window = if closed.is_some() { JoinWindow::Later } else { JoinWindow::First };
        let first = next.checked_sub(count.into());
        let first = first.ok_or_else(|| fields.broken("next", "is less than was added"))?;
        Ok(TakenIndices { first, count, window })
    }

    async fn close_window(&self, sale: &SaleId, group: &GroupId) -> Stored<u32> {
        // Where nobody has joined there is no counter yet.
        self.count(sale, group, 0).await?;
        let at = key(tables::room_counter_key(sale), group);
        let update = self.db.client().update_item().table_name(self.table());
        let update = update.set_key(Some(at.clone()));
        let condition = "attribute_not_exists(#closed)";
        let closing = conditional(update, "SET #closed = #next", condition, []);
        let counter = match self.db.update(closing).await? {
            Some(counter) => counter,
            None => self.get(at).await?.unwrap_or_default(),
        };
        Fields::from_item(&counter).number("closed")
    }

    async fn membership(
        &self,
        sale: &SaleId,
        bucket: u16,
        buyer: &UserId,
    ) -> Stored<Option<Membership>> {
        let key = key(tables::members_key(sale, bucket), tables::member_key(buyer));
        self.get(key).await?.map(|kept| read_membership(sale, &kept)).transpose()
    }

    async fn join(
        &self,
        membership: &Membership,
        bucket: u16,
        replaces: Option<Replaced>,
    ) -> Stored<Membership> {
        let Membership { sale, group, buyer, .. } = membership;
        let item = membership_item(membership, bucket);
        let Some(Replaced { index, attempts }) = replaces else {
            return read_membership(sale, &self.keep(item).await?);
        };
        let mut values = vec![("index", number(index)), ("group", text(group))];
        let as_read = match attempts {
            Some(attempts) => {
                values.push(("attempts", number(attempts)));
                "#attempts = :attempts"
            }
            None => "attribute_not_exists(#attempts)",
        };
        let condition = format!("#index = :index AND #group = :group AND {as_read}");
        if self.put(item, &condition, values).await? {
            return Ok(membership.clone());
        }
        let kept = self.membership(sale, bucket, buyer).await?;
        let nothing = || StoreError::Contract("there is no membership to replace".to_owned());
        kept.ok_or_else(nothing)
    }

    async fn code(
        &self,
        sale: &SaleId,
        group: &GroupId,
        shard: CodeShard,
    ) -> Stored<Option<CodeUses>> {
        codes::code(&self.db, sale, group, shard).await
    }

    async fn join_by_code(
        &self,
        membership: &Membership,
        bucket: u16,
        shard: CodeShard,
    ) -> Stored<Option<Membership>> {
        codes::join_by_code(&self.db, membership, bucket, shard).await
    }

    async fn enter(&self, enter: &Enter) -> Stored<EnterReply> {
        let Enter { sale, bucket, buyer, .. } = enter;
        for _ in 0..MAX_ENTERS {
            // Whoever looks begins no visit of a place that has run out: then there is nothing to write.
            if (enter.admits() || !enter.begun_only)
                && let Some(before) = self.db.update(self.entering(enter)).await?
            {
                return Ok(enter.reply(Some(&read_membership(sale, &before)?)));
            }
            let member = self.membership(sale, *bucket, buyer).await?;
            match enter.reply(member.as_ref()) {
                entered @ EnterReply::Entered(Entered { begins: false, .. }) if !enter.admits() => {
                    return Ok(entered);
                }
                // It would be let in as it is now.
                EnterReply::Entered(_) => {}
                refused @ (EnterReply::NotMember
                | EnterReply::RunOut
                | EnterReply::Over
                | EnterReply::TooManyAttempts) => return Ok(refused),
            }
        }
        Err(StoreError::Unavailable("the same buyer enters again and again".to_owned()))
    }

    async fn joined(&self, sale: &SaleId, group: &GroupId) -> Stored<u32> {
        let counter = self.get(key(tables::room_counter_key(sale), group)).await?;
        let next = counter.map(|counter| Fields::from_item(&counter).number("next"));
        Ok(next.transpose()?.unwrap_or(0))
    }

    async fn mark(&self, sale: &SaleId, bucket: u16) -> Stored<()> {
        self.put(key(tables::members_key(sale, bucket), MARKER), "", []).await.map(drop)
    }

    async fn is_marked(&self, sale: &SaleId, bucket: u16) -> Stored<bool> {
        let marker = self.get(key(tables::members_key(sale, bucket), MARKER)).await?;
        Ok(marker.is_some())
    }

    async fn memberships(
        &self,
        sale: &SaleId,
        bucket: u16,
        after: Option<&UserId>,
    ) -> Stored<MembershipPage> {
        let pk = tables::members_key(sale, bucket);
        let start = after.map(|buyer| key(pk.clone(), tables::member_key(buyer)));
        let query = self.db.client().query().table_name(self.table()).consistent_read(true);
        let condition = "#pk = :pk AND begins_with(#sk, :member)";
        let values = [("pk", text(pk)), ("member", text(tables::MEMBER_PREFIX))];
        let query = keyed(query, condition, values).set_exclusive_start_key(start);
        let page = self.db.read(|| query.clone().send()).await?;
        let memberships: Stored<Vec<Membership>> =
            page.items().iter().map(|item| read_membership(sale, item)).collect();
        let next = page.last_evaluated_key().map(|key| {
            let fields = Fields::from_item(key);
            let sk: String = fields.text("sk")?;
            tables::buyer_of_member(&sk).ok_or_else(|| fields.broken("sk", "is no member's"))
        });
        Ok(MembershipPage { memberships: memberships?, next: next.transpose()? })
    }

    async fn keep_chunk(
        &self,
        sale: &SaleId,
        group: &GroupId,
        chunk: u32,
        leaves: &[Hash],
    ) -> Stored<Vec<Hash>> {
        let key = key(tables::chunk_key(sale, group, chunk), tables::ONLY);
        let kept = self.keep(with(key, [("leaves", bytes(leaves))])).await?;
        read_hashes(&kept, "leaves")
    }

    async fn chunk(&self, sale: &SaleId, group: &GroupId, chunk: u32) -> Stored<Option<Vec<Hash>>> {
        let kept = self.get(key(tables::chunk_key(sale, group, chunk), tables::ONLY)).await?;
        kept.map(|kept| read_hashes(&kept, "leaves")).transpose()
    }

    async fn keep_tree(&self, sale: &SaleId, group: &GroupId, tree: &Tree) -> Stored<Tree> {
        let Tree { count, chunk_roots } = tree;
        let attributes = [("count", number(*count)), ("chunk_roots", bytes(chunk_roots))];
        let kept = self.keep(with(key(tables::tree_key(sale), group), attributes)).await?;
        read_tree(&kept)
    }

    async fn tree(&self, sale: &SaleId, group: &GroupId) -> Stored<Option<Tree>> {
        let kept = self.get(key(tables::tree_key(sale), group)).await?;
        kept.as_ref().map(read_tree).transpose()
    }
}
