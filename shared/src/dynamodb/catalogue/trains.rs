//! The calls of trains, by which they are found: an item for each stop at which a train can be boarded, in the
//! partition of that stop and day, sorted by time. A stop has two if its name is not its id.
//!
//! An item says that a train may be worth looking at, and no more: whoever finds it reads the sale, which the
//! function has in memory, and passes over it if the train has other times by now. So an item too many costs a
//! look and is no mistake, and items are written before the publication that needs them and deleted after one
//! that does not. Each has the highest version that wrote it, which no other publication lowers, and whoever
//! deletes it does so under its own version: what a later publication needs stays.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use super::super::dynamo::Dynamo;
use super::super::expressions::{conditional, keyed_and_filtered, removed};
use super::super::items::{Fields, Item, item, number, text};
use super::NOT_LATER;
use engine::domain::basics::calendar::Day;
use engine::domain::basics::ids::StopId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::MAX_LEGS;
use engine::domain::sale::timetable::{CallMark, StopLabel, TrainCall, TrainsPage};
use engine::ports::Stored;

/// Most items that one search reads, 1 MB at 500 bytes each: a page ends there, however few of them call at the
/// other stop.
const MAX_EXAMINED: usize = 2_000;
/// Items that one query reads.
const PER_QUERY: usize = 500;
/// Items that a publication writes or deletes at once.
const AT_ONCE: usize = 32;
/// Most bytes of a label: lower case may be longer than what it was made from.
const MAX_LABEL_BYTES: usize = 3 * StopId::MAX_BYTES;

// Two labels of each later stop, in an item of 400 KB; and a partition key of 2,048 bytes.
// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html>
const _: () = assert!(2 * MAX_LEGS * MAX_LABEL_BYTES + 4 * 1024 < 400 * 1024);
const _: () = assert!(MAX_LABEL_BYTES + 32 < 2_048);

/// The partition of a stop on a day; no sale id has a `#`.
fn partition(day: Day, stop: &StopLabel) -> String {
    format!("#trains#{day}#{stop}")
}

/// The item of a call that a version of its sale has written.
#[must_use]
pub fn train_call_item(call: &TrainCall, version: u64) -> Item {
    let mut item = key(call);
    item.extend([("later".to_owned(), later(call)), ("version".to_owned(), number(version))]);
    item.extend(call.departs.map(|departs| ("departs".to_owned(), number(departs.ms()))));
    item
}

fn later(call: &TrainCall) -> AttributeValue {
    AttributeValue::Ss(call.later.iter().map(ToString::to_string).collect())
}

fn key(call: &TrainCall) -> Item {
    item([("pk", text(partition(call.day, &call.stop))), ("sk", text(&call.mark))])
}

/// Writes the calls of a train, of a version that is to be published.
pub(super) async fn write(db: &Dynamo, calls: &[TrainCall], version: u64) -> Stored<()> {
    for some in calls.chunks(AT_ONCE) {
        let writes: Vec<_> = some.iter().map(|call| write_call(db, call, version)).collect();
        try_join_all(writes).await?;
    }
    Ok(())
}

async fn write_call(db: &Dynamo, call: &TrainCall, version: u64) -> Stored<()> {
    let update = db.client().update_item().table_name(&db.tables().sales);
    let mut with = vec![("later", later(call)), ("version", number(version))];
    with.extend(call.departs.map(|departs| ("departs", number(departs.ms()))));
    let set = match call.departs {
        Some(_) => "SET #later = :later, #version = :version, #departs = :departs",
        None => "SET #later = :later, #version = :version REMOVE #departs",
    };
    let update = conditional(update.set_key(Some(key(call))), set, NOT_LATER, with);
    // Another publication has taken a later version: this one will not come about.
    db.update(update).await.map(drop)
}

/// Deletes the calls of a train that the sale does not have in `version`.
pub(super) async fn delete(
    db: &Dynamo,
    calls: &[TrainCall],
    kept: &[TrainCall],
    version: u64,
) -> Stored<()> {
    let is_obsolete = |call: &&TrainCall| !kept.iter().any(|kept| key(kept) == key(call));
    let obsolete: Vec<&TrainCall> = calls.iter().filter(is_obsolete).collect();
    for some in obsolete.chunks(AT_ONCE) {
        let deletes: Vec<_> = some.iter().map(|call| delete_call(db, call, version)).collect();
        try_join_all(deletes).await?;
    }
    Ok(())
}

async fn delete_call(db: &Dynamo, call: &TrainCall, version: u64) -> Stored<()> {
    let delete = db.client().delete_item().table_name(&db.tables().sales);
    let with = [("version", number(version))];
    db.delete(removed(delete.set_key(Some(key(call))), NOT_LATER, with)).await
}

/// A page of the trains that call at `from` on a day, have not left there, and call at `to` later, as they were a moment
/// ago.
pub(super) async fn find(
    db: &Dynamo,
    day: Day,
    from: &StopLabel,
    to: &StopLabel,
    after: Option<&CallMark>,
    now: Timestamp,
    most: u16,
) -> Stored<TrainsPage> {
    let mut page = TrainsPage::default();
    let mut after = after.cloned();
    for _ in 0..MAX_EXAMINED / PER_QUERY {
        let query = query(db, day, from, to, after.as_ref(), now);
        let (found, last) = db.query_once(query, PER_QUERY).await?;
        for item in &found {
            let call: CallMark = Fields::from_item(item).text("sk")?;
            if page.calls.len() == usize::from(most) {
                page.next = page.calls.last().cloned();
                return Ok(page);
            }
            page.calls.push(call);
        }
        let Some(last) = last else { return Ok(page) };
        after = Some(Fields::from_item(&last).text("sk")?);
    }
    page.next = after;
    Ok(page)
}

fn query(
    db: &Dynamo,
    day: Day,
    from: &StopLabel,
    to: &StopLabel,
    after: Option<&CallMark>,
    now: Timestamp,
) -> QueryFluentBuilder {
    let table = db.client().query().table_name(&db.tables().sales);
    // Of calls that an earlier release wrote, and of clocks that nobody has named, it is not known when they are over.
    let filter = "contains(#later, :to) AND (attribute_not_exists(#departs) OR #departs > :now)";
    let mut with = vec![
        ("partition", text(partition(day, from))),
        ("to", text(to)),
        ("now", number(now.ms())),
    ];
    match after {
        None => keyed_and_filtered(table, "#pk = :partition", filter, with),
        Some(after) => {
            with.push(("after", text(after)));
            keyed_and_filtered(table, "#pk = :partition AND #sk > :after", filter, with)
        }
    }
}
