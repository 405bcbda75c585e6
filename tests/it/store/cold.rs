//! Starting cold: a sale file is read once, compressed, from one of its copies; and what thousands of starts
//! ask of one partition.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use bench::cost::watch::Proxy;
use chaos::proxy::http::{Act, HttpProxy};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::SaleFile;
use engine::ports::{Catalogue, ChangeReply, Freshness};
use futures_util::future::join_all;
use serde_json::json;
use shared::dynamodb::{DynamoCatalogue, StoreConfig};

use super::{Fixture, NOW};
use crate::backends;

/// Listed seats of the hall, and functions that start within ten seconds.
const SEATS: u32 = 60_000;
const STARTS: f64 = 2_000.0;
const WITHIN_SECONDS: f64 = 10.0;
/// Read units a second of one partition.
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html>
const PARTITION: f64 = 3_000.0;

/// A hall each of whose seats is listed by a name of its own, as an arena's are: block, row, seat.
fn hall(id: &str, title: &str, seats: u32, selling: (Timestamp, Timestamp)) -> SaleFile {
    let sections: Vec<_> = (0..seats.div_ceil(1_000))
        .map(|block| {
            let in_block = (seats - block * 1_000).min(1_000);
            let rows: Vec<_> = (0..in_block.div_ceil(40))
                .map(|row| {
                    let in_row = (in_block - row * 40).min(40);
                    // Odd ones on one side, as they are numbered where the aisle is in the middle.
                    let name = |seat: u32| {
                        format!(
                            "{}{}-{}-{}",
                            ["N", "E", "S", "W"][(block % 4) as usize],
                            100 + block,
                            row + 1,
                            1 + (seat * 2) % 41
                        )
                    };
                    let names: Vec<String> = (0..in_row).map(name).collect();
                    json!({ "row": (row + 1).to_string(), "seats": names })
                })
                .collect();
            json!({ "section": format!("block-{block}"), "rows": rows })
        })
        .collect();
    let file = json!({
        "sale": id, "title": title, "currency": "EUR",
        "opens_at": selling.0, "closes_at": selling.1,
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "tiers": [{ "tier": "all", "name": "All", "price_minor": 5000, "sections": sections }],
    });
    serde_json::from_value(file).unwrap()
}

fn now_selling() -> (Timestamp, Timestamp) {
    (NOW, NOW.plus_seconds(3600))
}

impl Fixture {
    /// The catalogue of a process that has just started, behind another endpoint.
    fn cold(&self, endpoint: &str) -> DynamoCatalogue {
        DynamoCatalogue::new(self.db_at(endpoint.to_owned(), 4))
    }

    /// Makes the header what a release wrote that knows of no copies.
    async fn forget_copies(&self, id: &SaleId) {
        let update = self.db.client().update_item().table_name(&self.db.config().tables.sales);
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let update = update.key("pk", key(id.as_str())).key("sk", key("sale"));
        update.update_expression("REMOVE copies, copy_chunks, copies_of").send().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_starts_in_ten_seconds_stay_below_one_partition() {
    if backends::is_foreign("it counts what our DynamoDB says it consumed") {
        return;
    }
    let fixture = Fixture::new().await;
    let proxy = Proxy::start(&fixture.server.url).await.unwrap();
    let file = hall("arena", "Arena", SEATS, now_selling());
    let bytes = serde_json::to_vec(&file).unwrap().len();
    let id = file.sale.clone();
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    assert_eq!(catalogue.publish(&file, None).await, Ok(ChangeReply::Done));

    let start = async || {
        let cold = fixture.cold(proxy.url());
        let before = proxy.counted();
        let found = cold.sale(&id, Freshness::Cached).await.unwrap().unwrap();
        assert_eq!(found.sale.file(), &file);
        let counted = proxy.counted().since(&before);
        (counted.calls, counted.reads)
    };
    let (calls, reads) = start().await;
    let mut copies = 0.0;
    let header = catalogue_header(&fixture, &id).await;
    if let Some(AttributeValue::N(count)) = header.get("copies") {
        copies = count.parse::<f64>().unwrap();
    }
    // As the release before read it: the header with strong consistency, and the file as it is.
    fixture.forget_copies(&id).await;
    let (calls_before, reads_before) = start().await;
    let a_second = STARTS / WITHIN_SECONDS;
    // Eventually consistent, a header of less than 4 KB takes half a unit.
    let header_reads = 0.5;
    let (of_copy, of_header) =
        ((reads - header_reads) * a_second / copies, header_reads * a_second);
    println!(
        "{SEATS} listed seats, {bytes} bytes of JSON; {STARTS} starts in {WITHIN_SECONDS} s; a partition \
         serves {PARTITION} read units a second\n\
         before: {calls_before} requests, {reads_before} read units a start: {:.0} a second, all of one \
         partition\n\
         now:    {calls} requests, {reads} read units a start: {of_copy:.0} a second of each of {copies} \
         copies, {of_header:.0} of the header; {:.0} if all of them shared one partition",
        reads_before * a_second,
        reads * a_second,
    );
    assert!(reads_before * a_second > PARTITION, "the test no longer shows the limit");
    assert!(calls == 2.0 && of_copy < PARTITION / 4.0 && of_header < PARTITION / 4.0);
    let shared = of_copy * copies / 2.0 + of_header;
    assert!(shared < PARTITION, "even if half of the copies lie in one partition");
}

async fn catalogue_header(
    fixture: &Fixture,
    id: &SaleId,
) -> std::collections::HashMap<String, AttributeValue> {
    let get = fixture.db.client().get_item().table_name(&fixture.db.config().tables.sales);
    let key = |text: &str| AttributeValue::S(text.to_owned());
    let get = get.key("pk", key(id.as_str())).key("sk", key("sale")).consistent_read(true);
    get.send().await.unwrap().item.unwrap()
}

/// How often each partition's file was asked for.
fn asked(proxy: &HttpProxy) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for request in proxy.seen("Query") {
        let values = &request.body["ExpressionAttributeValues"];
        let partition = values[":partition"]["S"].as_str().unwrap_or("other").to_owned();
        *asked.entry(partition).or_default() += 1;
    }
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_read_once_a_process_from_any_of_its_copies() {
    let fixture = Fixture::new().await;
    let file = hall("arena", "Arena", 2_000, now_selling());
    let id = file.sale.clone();
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    assert_eq!(catalogue.publish(&file, None).await, Ok(ChangeReply::Done));
    let proxy = HttpProxy::start(&fixture.server.url, |_, _| Act::Forward).await.unwrap();
    // Fifty requests at once in a process that has just started.
    let cold = fixture.cold(&proxy.url());
    let found = join_all((0..50).map(|_| cold.sale(&id, Freshness::Cached))).await;
    assert!(found.into_iter().all(|found| found.unwrap().unwrap().sale.file() == &file));
    assert_eq!(asked(&proxy).values().sum::<usize>(), 1, "{:?}", asked(&proxy));
    // Many processes: every copy is read by some, and the file itself by none.
    const PROCESSES: usize = 160;
    for _ in 1..PROCESSES {
        let cold = fixture.cold(&proxy.url());
        cold.sale(&id, Freshness::Cached).await.unwrap().unwrap();
    }
    let asked = asked(&proxy);
    println!("{PROCESSES} processes have read {asked:?}");
    assert_eq!(asked.values().sum::<usize>(), PROCESSES);
    assert!(asked.len() == 8 && asked.keys().all(|partition| partition.starts_with("arena#copy#")));
    assert!(asked.values().all(|times| *times < PROCESSES / 3), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_behind_or_gone_is_no_harm() {
    let fixture = Fixture::new().await;
    let (old, new) =
        (hall("arena", "Old", 500, now_selling()), hall("arena", "New", 500, now_selling()));
    let id = old.sale.clone();
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    assert_eq!(catalogue.publish(&old, None).await, Ok(ChangeReply::Done));
    // What eventual consistency may show: the header of the new file, and none of its copies yet.
    let proxy = HttpProxy::start(&fixture.server.url, |request, _| {
        let partition = request.body["ExpressionAttributeValues"][":partition"]["S"].as_str();
        match partition.is_some_and(|partition| partition.contains("#copy#")) {
            true => Act::Answer(200, json!({ "Items": [], "Count": 0, "ScannedCount": 0 })),
            false => Act::Forward,
        }
    })
    .await
    .unwrap();
    assert_eq!(catalogue.publish(&new, Some(1)).await, Ok(ChangeReply::Done));
    let found = fixture.cold(&proxy.url()).sale(&id, Freshness::Cached).await.unwrap().unwrap();
    assert_eq!((found.version, found.sale.file()), (2, &new));
    // A release that knows of no copies has replaced the file, and has left what the header says of them.
    let update = fixture.db.client().update_item().table_name(&fixture.db.config().tables.sales);
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let update = update.key("pk", text("arena")).key("sk", text("sale"));
    let update = update.update_expression("SET copies_of = :old");
    update.expression_attribute_values(":old", text("0000000001-old")).send().await.unwrap();
    let plain = HttpProxy::start(&fixture.server.url, |_, _| Act::Forward).await.unwrap();
    let found = fixture.cold(&plain.url()).sale(&id, Freshness::Cached).await.unwrap().unwrap();
    assert_eq!((found.version, found.sale.file()), (2, &new));
    assert_eq!(asked(&plain), BTreeMap::from([("arena".to_owned(), 1)]));
    // The next publication leaves no chunk of another behind, in any partition.
    assert_eq!(catalogue.publish(&old, Some(2)).await, Ok(ChangeReply::Done));
    let scan = fixture.db.client().scan().table_name(&fixture.db.config().tables.sales);
    let items = scan.consistent_read(true).send().await.unwrap().items.unwrap();
    let chunks = items.iter().filter(|item| item["sk"].as_s().unwrap().starts_with("file#"));
    assert_eq!(chunks.count(), 1 + 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_never_goes_back_to_an_older_version() {
    let fixture = Fixture::new().await;
    let (old, new) =
        (hall("arena", "Old", 100, now_selling()), hall("arena", "New", 100, now_selling()));
    let id = old.sale.clone();
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    assert_eq!(catalogue.publish(&old, None).await, Ok(ChangeReply::Done));
    let behind = catalogue_header(&fixture, &id).await;
    let attribute = |value: &AttributeValue| {
        let number = value.as_n().map(|number| json!({ "N": number }));
        number.unwrap_or_else(|_| json!({ "S": value.as_s().unwrap() }))
    };
    let behind: serde_json::Map<_, _> =
        behind.iter().map(|(name, value)| (name.clone(), attribute(value))).collect();
    assert_eq!(catalogue.publish(&new, Some(1)).await, Ok(ChangeReply::Done));
    // Every read that is not consistent is answered by a replica that is behind.
    let proxy = HttpProxy::start(&fixture.server.url, move |request, _| {
        match request.operation == "GetItem" && request.body["ConsistentRead"] == false {
            true => Act::Answer(200, json!({ "Item": behind })),
            false => Act::Forward,
        }
    })
    .await
    .unwrap();
    let config = StoreConfig { cache_for: Duration::ZERO, ..fixture.db.config().clone() };
    let config = StoreConfig { endpoint: Some(proxy.url()), ..config };
    let db = shared::dynamodb::Dynamo::new(&local::stores::sdk_config(), config);
    let reader = DynamoCatalogue::new(db);
    let version = async |freshness| reader.sale(&id, freshness).await.unwrap().unwrap().version;
    assert_eq!(version(Freshness::Fresh).await, 2);
    for _ in 0..3 {
        assert_eq!(version(Freshness::Cached).await, 2, "though a replica says 1");
    }
    // A sale that a replica does not know yet is asked for once more.
    assert!(reader.sale(&SaleId::new("nowhere").unwrap(), Freshness::Cached).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provisioned_process_has_the_open_sales_before_its_first_request() {
    let fixture = Fixture::new().await;
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    let hours = |hours: i64| NOW.plus_seconds(3600 * hours);
    let sales = [
        ("selling", (hours(-1), hours(5))),
        ("tomorrow", (hours(24), hours(30))),
        ("closed", (hours(-9), hours(-1))),
    ];
    for (name, selling) in sales {
        let file = hall(name, name, 100, selling);
        assert_eq!(catalogue.publish(&file, None).await, Ok(ChangeReply::Done));
    }
    let proxy = HttpProxy::start(&fixture.server.url, |_, _| Act::Forward).await.unwrap();
    let started = fixture.cold(&proxy.url());
    assert_eq!(started.preload(NOW).await, Ok(2));
    let requests = || ["Query", "GetItem"].map(|operation| proxy.seen(operation).len());
    let before = requests();
    for name in ["selling", "tomorrow"] {
        let id = SaleId::new(name).unwrap();
        assert!(started.sale(&id, Freshness::Cached).await.unwrap().is_some());
    }
    assert_eq!(requests(), before, "the first requests ask nothing");
    // Half of the memory at most, and the sale that opens nearest first.
    let config = StoreConfig { catalogue_bytes: 1, ..fixture.db.config().clone() };
    let small = shared::dynamodb::Dynamo::new(&local::stores::sdk_config(), config);
    assert_eq!(DynamoCatalogue::new(small).preload(NOW).await, Ok(1));
}
