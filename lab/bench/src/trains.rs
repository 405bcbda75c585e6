//! What a search for trains takes among all of a day: `onsale bench trains`.
//!
//! The index has the calls of every train; those on the journey that is searched for are on sale as well. The
//! searches are made by a function of its own on a thread of its own, whose processor time is measured; a proxy
//! counts what it asks DynamoDB for. The same is then found by a scan of the table, as it would be without index.

use std::fmt;
use std::time::Duration;

use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use engine::domain::basics::ids::Epoch;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::timetable::calls;
use engine::domain::sale::{Sale, SaleFile};
use engine::flows::publish::publish;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::{Method, StatusCode};
use local::handlers;
use reporting::{count, grouped};
use serde::Serialize;
use serde_json::{Value, json};
use shared::dynamodb::{Dynamo, train_call_item};
use shared::runtime::app::App;
use shared::runtime::functions::Function;
use tokio::task::block_in_place;
use tokio::time::sleep;

use super::cost::{Environment, Look, Who, request};
use super::selling::Failure;

/// Stations of the railway.
const STATIONS: u32 = 300;
/// Stops of a train.
const STOPS: u32 = 12;
/// One train in so many begins at the station that is searched from, and one in so many of those ends at the
/// station that is searched to.
const FROM_EVERY: u32 = 17;
const TO_EVERY: u32 = 10;
/// The day, and the journey by the names that people know.
const DAY: &str = "2026-11-21";
const SEARCH: &str = "/trains?date=2026-11-21&from=Station%200&to=Station%20299";
/// Trains of a page.
const PAGE: usize = 20;
/// Items of a write (a quota of DynamoDB), and pieces of work at once.
const ITEMS_AT_ONCE: usize = 25;
const WORK_AT_ONCE: usize = 4;
/// Time after which a function reads again what it remembers of a sale, and what is left of it.
const AGAIN_AFTER: Duration = Duration::from_millis(2_100);

/// Options of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Trains of the day.
    pub trains: u32,
    /// Searches that find everything too old.
    pub rounds: u32,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Search {
    /// Trains that it found.
    pub trains: usize,
    /// Processor time of the function, in milliseconds.
    pub processor_ms: f64,
    pub requests: f64,
    /// Read units that they took.
    pub read_units: f64,
    /// Bytes that they answered.
    pub bytes: f64,
    pub redis_calls: f64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Trains of the day.
    pub trains: u32,
    /// Items of the index.
    pub calls: u64,
    /// Trains that begin at the first station of the search.
    pub at_stop: u32,
    /// Those of them that call at the other, which are on sale.
    pub on_journey: u32,
    /// The first search of a function.
    pub first: Search,
    /// Searches that find everything too old.
    pub anew: Vec<Search>,
    /// A search a moment after another.
    pub repeated: Search,
    /// The same trains found by a scan of the table, without what is left of them.
    pub scan: Search,
}

impl Report {
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trains, calls, at_stop, on_journey, first, anew, repeated, scan } = self;
        let (trains, calls) = (grouped(u64::from(*trains)), grouped(*calls));
        writeln!(
            f,
            "{trains} trains of a day, {calls} items; {at_stop} trains at the first stop, {on_journey} of them on \
             the journey"
        )?;
        writeln!(f, "{:<26}{first}", "the first search")?;
        let mut by_time = anew.clone();
        by_time.sort_by(|a, b| a.processor_ms.total_cmp(&b.processor_ms));
        if let (Some(median), Some(most)) = (by_time.get(by_time.len() / 2), by_time.last()) {
            writeln!(f, "{:<26}{median}", "everything too old, median")?;
            writeln!(f, "{:<26}{most}", "everything too old, most")?;
        }
        writeln!(f, "{:<26}{repeated}", "a moment later")?;
        write!(f, "{:<26}{scan}", "by a scan")
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trains, processor_ms, requests, read_units, bytes, redis_calls } = self;
        write!(
            f,
            "{processor_ms:>8.2} ms of processor time, {trains} trains, {requests} requests to DynamoDB, \
             {read_units} read units, {:.1} kB, {redis_calls} commands to Redis",
            bytes / 1000.0
        )
    }
}

/// True if a train begins where the search does; and if it is on its journey.
fn place(train: u32) -> (bool, bool) {
    let is_at_stop = train.is_multiple_of(FROM_EVERY);
    (is_at_stop, is_at_stop && (train / FROM_EVERY).is_multiple_of(TO_EVERY))
}

/// A train of twelve stops and 1,190 seats in three classes, with a fare for each journey and class.
fn train(index: u32) -> Result<SaleFile, Failure> {
    let (is_at_stop, is_on_journey) = place(index);
    let (first, step) = (if is_at_stop { 0 } else { 1 + index * 7 % 290 }, 1 + index % 7);
    let departs = 300 + index * 37 % 1_080;
    let clock = |minutes: u32| format!("{:02}:{:02}", minutes / 60, minutes % 60);
    let stop = |place: u32| {
        let station = match place + 1 == STOPS && is_on_journey {
            true => STATIONS - 1,
            false => (first + place * step) % (STATIONS - 1),
        };
        let arrives = (place > 0).then(|| clock(departs + place * 25 - 2));
        let departs = (place + 1 < STOPS).then(|| clock(departs + place * 25));
        let mut stop =
            json!({ "stop": format!("S{station}"), "name": format!("Station {station}") });
        stop["arrives"] = json!(arrives);
        stop["departs"] = json!(departs);
        (format!("S{station}"), stop)
    };
    let (ids, stops): (Vec<String>, Vec<Value>) = (0..STOPS).map(stop).unzip();
    let tier = |(tier, rows, seats, price): (&str, u32, u32, usize)| {
        let fares = (0..ids.len()).flat_map(|from| (from + 1..ids.len()).map(move |to| (from, to)));
        let fares = fares.map(|(from, to)| {
            json!({ "from": ids[from], "to": ids[to], "price_minor": price * (to - from) })
        });
        json!({
            "tier": tier, "name": tier, "fares": fares.collect::<Vec<_>>(),
            "sections": [{ "section": tier, "rows": [{
                "row": "1", "to": rows.to_string(), "seats": { "first": 1, "count": seats },
            }] }],
        })
    };
    let tiers = [("second", 200, 5, 2_000), ("first", 40, 4, 3_200), ("business", 10, 3, 6_000)];
    Ok(serde_json::from_value(json!({
        "sale": format!("train-{index}"), "title": format!("Train {index}"), "currency": "CNY",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-12-31T23:59:59Z",
        "limit_per_buyer": 5, "pay_window_seconds": 900, "runs_on": DAY, "stops": stops,
        "tiers": tiers.map(tier),
    }))?)
}

/// Measures.
///
/// # Errors
/// A server does not start, or a search does not find what is there.
pub async fn run(options: Options) -> Result<Report, Failure> {
    let environment = Environment::start().await?;
    let report = measure(&environment, options).await;
    environment.stop().await?;
    report
}

async fn measure(environment: &Environment, options: Options) -> Result<Report, Failure> {
    let calls = fill(environment, options.trains).await?;
    let places: Vec<(bool, bool)> = (0..options.trains).map(place).collect();
    let at_stop = places.iter().filter(|(is_at_stop, _)| *is_at_stop).count();
    let on_journey = places.iter().filter(|(_, is_on_journey)| *is_on_journey).count();
    // On a thread of its own, whose time is the function's.
    let searched = block_in_place(|| {
        std::thread::scope(|scope| {
            let searches = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(searches(environment, options.rounds))
            });
            searches.join().unwrap_or_else(|_| Err("the searches panicked".into()))
        })
    })?;
    let (first, anew, repeated, scan) = searched;
    let found = on_journey.min(PAGE);
    if first.trains != found || scan.trains != on_journey {
        return Err(format!("{} and {} of {on_journey} trains", first.trains, scan.trains).into());
    }
    Ok(Report {
        trains: options.trains,
        calls,
        at_stop: u32::try_from(at_stop)?,
        on_journey: u32::try_from(on_journey)?,
        first,
        anew,
        repeated,
        scan,
    })
}

/// Puts the trains on the journey on sale, and the others into the index; the number of its items.
async fn fill(environment: &Environment, trains: u32) -> Result<u64, Failure> {
    let app = environment.app().await?;
    let mut items = Vec::new();
    let mut written = 0;
    let mut sold = Vec::new();
    for index in 0..trains {
        let file = train(index)?;
        let calls = calls(&file);
        written += count(calls.len());
        match place(index) {
            (_, true) => sold.push(file),
            (_, false) => items.extend(calls.iter().map(|call| train_call_item(call, 1))),
        }
    }
    let published = sold.into_iter().map(|file| put_on_sale(&app, file));
    stream::iter(published).buffer_unordered(WORK_AT_ONCE).try_collect::<()>().await?;
    let dynamo = environment.dynamo();
    let batches = items.chunks(ITEMS_AT_ONCE).map(|batch| put(dynamo, batch.to_vec()));
    stream::iter(batches).buffer_unordered(WORK_AT_ONCE).try_collect::<()>().await?;
    Ok(written)
}

async fn put_on_sale(app: &App, file: SaleFile) -> Result<(), Failure> {
    let sale = Sale::new(file).map_err(|defects| format!("{defects:?}"))?;
    let epoch = Epoch::new(format!("bench-{}", sale.id()))?;
    publish(&app.ports, &sale, &epoch, Timestamp::now()).await?;
    Ok(())
}

async fn put(
    dynamo: &Dynamo,
    items: Vec<std::collections::HashMap<String, AttributeValue>>,
) -> Result<(), Failure> {
    let put = |item| Ok(PutRequest::builder().set_item(Some(item)).build()?);
    let puts = items.into_iter().map(put).collect::<Result<Vec<_>, Failure>>()?;
    let writes = puts.into_iter().map(|put| WriteRequest::builder().put_request(put).build());
    let table = &dynamo.config().tables.sales;
    let mut left: Vec<WriteRequest> = writes.collect();
    while !left.is_empty() {
        let write = dynamo.client().batch_write_item().request_items(table, left);
        let mut rest = write.send().await?.unprocessed_items.unwrap_or_default();
        left = rest.remove(table).unwrap_or_default();
    }
    Ok(())
}

async fn searches(
    environment: &Environment,
    rounds: u32,
) -> Result<(Search, Vec<Search>, Search, Search), Failure> {
    let app = environment.app().await?;
    let first = search(environment, &app).await?;
    let mut anew = Vec::new();
    for _ in 0..rounds {
        sleep(AGAIN_AFTER).await;
        anew.push(search(environment, &app).await?);
    }
    let repeated = search(environment, &app).await?;
    Ok((first, anew, repeated, scan(environment).await?))
}

/// Processor time of this thread, in milliseconds.
fn thread_ms() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(used).unwrap_or_default().as_secs_f64() * 1000.0
}

impl Search {
    fn new(trains: usize, processor_ms: f64, look: &Look) -> Self {
        let Look { dynamodb, redis_calls, .. } = *look;
        Self {
            trains,
            processor_ms,
            requests: dynamodb.calls,
            read_units: dynamodb.reads,
            bytes: dynamodb.answered,
            redis_calls,
        }
    }
}

/// One search, from the event to the answer.
async fn search(environment: &Environment, app: &App) -> Result<Search, Failure> {
    let event = request(Who::Anybody, (Method::GET, SEARCH), None, None)?;
    let begun = environment.begin().await?;
    let before = thread_ms();
    let answer =
        handlers::answer(app, Function::Sales, lambda_http::request::from_str(&event)?).await;
    let processor_ms = thread_ms() - before;
    let look = environment.end(begun).await?;
    let body = answer.body().as_ref();
    if answer.status() != StatusCode::OK {
        return Err(format!("{}: {}", answer.status(), String::from_utf8_lossy(body)).into());
    }
    let reply: Value = serde_json::from_slice(body)?;
    let trains = reply["trains"].as_array().ok_or("no trains")?;
    let is_left = |train: &Value| train["tiers"][0]["available"].is_u64();
    if !trains.iter().all(is_left) {
        return Err("what is left of a train is not known".into());
    }
    Ok(Search::new(trains.len(), processor_ms, &look))
}

/// The calls of the journey, found in the whole table.
async fn scan(environment: &Environment) -> Result<Search, Failure> {
    let dynamo = environment.dynamo();
    let scan = dynamo
        .client()
        .scan()
        .table_name(&dynamo.config().tables.sales)
        .filter_expression("#pk = :from AND contains(#later, :to)")
        .expression_attribute_names("#pk", "pk")
        .expression_attribute_names("#later", "later")
        .expression_attribute_values(":from", AttributeValue::S(format!("#trains#{DAY}#station 0")))
        .expression_attribute_values(":to", AttributeValue::S("station 299".to_owned()));
    let begun = environment.begin().await?;
    let before = thread_ms();
    let found = scan.into_paginator().items().send().try_collect().await?;
    let processor_ms = thread_ms() - before;
    let look = environment.end(begun).await?;
    Ok(Search::new(found.len(), processor_ms, &look))
}
