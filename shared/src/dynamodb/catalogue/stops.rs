//! The stops of a day, among which people choose those of a search: a list in one partition a day, an item a stop, and
//! for each stop of the list the trains that have brought it there, an item each.
//!
//! A stop is written once, by the first train of a day that calls there: a publication reads first, so that ten thousand
//! trains do not write the item of a junction ten thousand times. The last train that goes takes the stop off the list.
//! So that it removes nothing that another train needs, whoever comes writes its train before it reads the stop, and
//! whoever goes marks the stop before it reads the trains: a stop that is marked is written again by whoever comes, and
//! only a stop that still has one's own mark is deleted. What a process that died leaves there is a stop too many, which
//! finds no train.

use std::collections::BTreeSet;

use futures_util::future::try_join_all;

use super::super::dynamo::{Dynamo, random_hex};
use super::super::expressions::{conditional, keyed, removed};
use super::super::items::{Fields, Item, item, number, text};
use super::NOT_LATER;
use engine::domain::basics::calendar::Day;
use engine::domain::basics::ids::{SaleId, StopId};
use engine::domain::sale::timetable::{ListedStop, StopMark, StopsPage};
use engine::ports::{StoreError, Stored};

/// Stops that a publication writes or deletes at once.
const AT_ONCE: usize = 32;

// A sort key of 1,024 bytes, and a partition key of 2,048.
// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html>
const _: () = assert!(StopMark::MAX_BYTES <= 1_024);
const _: () = assert!(StopMark::MAX_BYTES + 32 < 2_048);

/// The stops of each day on which people board a train, or leave it.
pub(super) type StopsByDay = BTreeSet<(Day, ListedStop)>;

/// The partition of a day's list; no sale id has a `#`.
fn list_partition(day: Day) -> String {
    format!("#stops#{day}")
}

fn list_key(day: Day, mark: &StopMark) -> Item {
    item([("pk", text(list_partition(day))), ("sk", text(mark))])
}

/// The partition of the trains of a stop on a day.
fn trains_partition(day: Day, mark: &StopMark) -> String {
    format!("#stops#{day}#{mark}")
}

fn train_key(day: Day, mark: &StopMark, sale: &SaleId) -> Item {
    item([("pk", text(trains_partition(day, mark))), ("sk", text(sale))])
}

/// Writes the stops of a train, of a version that is to be published.
pub(super) async fn write(
    db: &Dynamo,
    sale: &SaleId,
    stops: &StopsByDay,
    version: u64,
) -> Stored<()> {
    let stops: Vec<&(Day, ListedStop)> = stops.iter().collect();
    for some in stops.chunks(AT_ONCE) {
        let writes: Vec<_> =
            some.iter().map(|(day, stop)| write_stop(db, sale, *day, stop, version)).collect();
        try_join_all(writes).await?;
    }
    Ok(())
}

async fn write_stop(
    db: &Dynamo,
    sale: &SaleId,
    day: Day,
    stop: &ListedStop,
    version: u64,
) -> Stored<()> {
    let table = &db.tables().sales;
    let update = db.client().update_item().table_name(table);
    let update = conditional(
        update.set_key(Some(train_key(day, &stop.mark, sale))),
        "SET #version = :version",
        NOT_LATER,
        [("version", number(version))],
    );
    // Another publication has taken a later version: the train is there.
    db.update(update).await?;
    let listed = db.get(table, list_key(day, &stop.mark)).await?;
    if listed.is_some_and(|listed| !listed.contains_key("leaving")) {
        return Ok(());
    }
    let mut listed = list_key(day, &stop.mark);
    listed.extend([("name".to_owned(), text(&stop.name)), ("stop".to_owned(), text(&stop.stop))]);
    let put = db.client().put_item().table_name(table).set_item(Some(listed));
    db.write(|| put.clone().send()).await.map(drop)
}

/// Takes away the stops of a train that the sale does not have in `version`.
pub(super) async fn delete(
    db: &Dynamo,
    sale: &SaleId,
    stops: &StopsByDay,
    kept: &StopsByDay,
    version: u64,
) -> Stored<()> {
    let kept: BTreeSet<(Day, &StopMark)> =
        kept.iter().map(|(day, stop)| (*day, &stop.mark)).collect();
    let obsolete: Vec<(Day, &StopMark)> = stops
        .iter()
        .map(|(day, stop)| (*day, &stop.mark))
        .filter(|stop| !kept.contains(stop))
        .collect();
    for some in obsolete.chunks(AT_ONCE) {
        let deletes: Vec<_> =
            some.iter().map(|(day, mark)| delete_stop(db, sale, *day, mark, version)).collect();
        try_join_all(deletes).await?;
    }
    Ok(())
}

async fn delete_stop(
    db: &Dynamo,
    sale: &SaleId,
    day: Day,
    mark: &StopMark,
    version: u64,
) -> Stored<()> {
    let table = &db.tables().sales;
    let delete = db.client().delete_item().table_name(table);
    let delete = delete.set_key(Some(train_key(day, mark, sale)));
    db.delete(removed(delete, NOT_LATER, [("version", number(version))])).await?;
    if has_trains(db, day, mark).await? {
        return Ok(());
    }
    let leaving = random_hex(8)?;
    let update = db.client().update_item().table_name(table).set_key(Some(list_key(day, mark)));
    let with = [("leaving", text(&leaving))];
    let marked = conditional(update, "SET #leaving = :leaving", "attribute_exists(#name)", with);
    if db.update(marked).await?.is_none() || has_trains(db, day, mark).await? {
        // A mark that stays makes the next train write the stop again, and nothing else.
        return Ok(());
    }
    let delete = db.client().delete_item().table_name(table).set_key(Some(list_key(day, mark)));
    db.delete(removed(delete, "#leaving = :leaving", [("leaving", text(&leaving))])).await
}

/// True if a train calls at a stop on a day.
async fn has_trains(db: &Dynamo, day: Day, mark: &StopMark) -> Stored<bool> {
    let query = keyed(
        db.client().query().table_name(&db.tables().sales),
        "#pk = :partition",
        [("partition", text(trains_partition(day, mark)))],
    );
    Ok(!db.query(query.consistent_read(true), 1).await?.is_empty())
}

/// A page of the stops of a day, as they were a moment ago.
pub(super) async fn find(
    db: &Dynamo,
    day: Day,
    after: Option<&StopMark>,
    most: u16,
) -> Stored<StopsPage> {
    let table = db.client().query().table_name(&db.tables().sales);
    let mut with = vec![("partition", text(list_partition(day)))];
    let query = match after {
        None => keyed(table, "#pk = :partition", with),
        Some(after) => {
            with.push(("after", text(after)));
            keyed(table, "#pk = :partition AND #sk > :after", with)
        }
    };
    // One more than the page, to know if another follows.
    let found = db.query(query, usize::from(most) + 1).await?;
    let is_more = found.len() > usize::from(most);
    let stops = found.iter().take(usize::from(most)).map(read).collect::<Stored<Vec<_>>>()?;
    let next = stops.last().filter(|_| is_more).map(|last: &ListedStop| last.mark.clone());
    Ok(StopsPage { stops, next })
}

fn read(item: &Item) -> Stored<ListedStop> {
    let fields = Fields::from_item(item);
    let (name, stop): (String, StopId) = (fields.text("name")?, fields.text("stop")?);
    let mark: StopMark = fields.text("sk")?;
    let listed = ListedStop::new(&name, &stop).filter(|listed| listed.mark == mark);
    listed.ok_or_else(|| StoreError::Contract(format!("the stop {mark:?} is listed as {name:?}")))
}
