//! Sales: published whole, loaded once.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use chaos::proxy::http::{Act, HttpProxy};
use engine::domain::basics::ids::{Epoch, SaleId};
use engine::domain::sale::SaleFile;
use engine::ports::{Catalogue, ChangeReply, Freshness};
use serde_json::json;
use shared::dynamodb::DynamoCatalogue;

use super::{Fixture, NOW};

fn file(id: &str, title: &str, seats: u32) -> SaleFile {
    let name = |seat: u32| format!("stalls-{seat:07}");
    let rows: Vec<_> = (0..seats.div_ceil(100))
        .map(|row| {
            let names: Vec<String> = (row * 100..((row + 1) * 100).min(seats)).map(name).collect();
            json!({ "row": row.to_string(), "seats": names })
        })
        .collect();
    let file = json!({
        "sale": id,
        "title": title,
        "currency": "EUR",
        "opens_at": "2026-11-21T10:00:00Z",
        "closes_at": "2026-11-22T10:00:00Z",
        "limit_per_buyer": 4,
        "pay_window_seconds": 900,
        "tiers": [{
            "tier": "stalls",
            "name": "Stalls",
            "price_minor": 5000,
            "sections": [{ "section": "1", "rows": rows }],
        }],
    });
    serde_json::from_value(file).unwrap()
}

async fn chunks(fixture: &Fixture) -> usize {
    let scan = fixture.db.client().scan().table_name(&fixture.db.config().tables.sales);
    let items = scan.consistent_read(true).send().await.unwrap().items.unwrap();
    // Of the file itself, not of its copies.
    let is_of_file = |item: &&HashMap<String, AttributeValue>| {
        let (pk, sk) = (item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap());
        sk.starts_with("file#") && !pk.contains('#')
    };
    items.iter().filter(is_of_file).count()
}

#[tokio::test]
async fn a_sale_is_published_replaced_and_read() {
    let fixture = Fixture::new().await;
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    let elsewhere = DynamoCatalogue::new(fixture.db.clone());
    let id = SaleId::new("hall").unwrap();
    let read = async |catalogue: &DynamoCatalogue, freshness| {
        catalogue.sale(&id, freshness).await.unwrap()
    };
    assert!(read(&catalogue, Freshness::Fresh).await.is_none());
    assert_eq!(catalogue.sales().await, Ok(vec![]));

    // A megabyte, in several chunks.
    let big = file("hall", "A big hall", 60_000);
    let bytes = serde_json::to_vec(&big).unwrap().len();
    assert!(bytes > 1_000_000, "{bytes}");
    assert_eq!(catalogue.publish(&big, Some(1)).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.publish(&big, None).await, Ok(ChangeReply::Done));
    assert_eq!(catalogue.publish(&big, None).await, Ok(ChangeReply::Conflict));
    assert_eq!(chunks(&fixture).await, bytes.div_ceil(256 * 1024));
    let first = read(&catalogue, Freshness::Cached).await.unwrap();
    assert_eq!((first.version, &first.epoch, first.sale.file()), (1, &None, &big));
    assert_eq!(read(&elsewhere, Freshness::Fresh).await.unwrap().sale.file(), &big);

    // Replaced by another process: the memory here lags, a fresh read does not.
    let small = file("hall", "A small hall", 10);
    assert_eq!(elsewhere.publish(&small, Some(1)).await, Ok(ChangeReply::Done));
    assert_eq!(elsewhere.publish(&big, Some(1)).await, Ok(ChangeReply::Conflict));
    assert_eq!(chunks(&fixture).await, 1);
    assert_eq!(read(&elsewhere, Freshness::Cached).await.unwrap().version, 2);
    assert_eq!(read(&catalogue, Freshness::Cached).await.unwrap().version, 1);
    let fresh = read(&catalogue, Freshness::Fresh).await.unwrap();
    assert_eq!((fresh.version, fresh.sale.file()), (2, &small));
    assert_eq!(read(&catalogue, Freshness::Cached).await.unwrap().version, 2);

    // Unchanged files are not read again.
    let again = read(&catalogue, Freshness::Fresh).await.unwrap();
    assert!(std::sync::Arc::ptr_eq(&again.sale, &fresh.sale));

    assert_eq!(catalogue.publish(&file("arena", "Arena", 5), None).await, Ok(ChangeReply::Done));
    let ids: Vec<String> =
        catalogue.sales().await.unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(ids, ["arena", "hall"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_publications_one_wins_and_is_whole() {
    let fixture = Fixture::new().await;
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    let id = SaleId::new("hall").unwrap();
    assert_eq!(catalogue.publish(&file("hall", "0", 20_000), None).await, Ok(ChangeReply::Done));
    for version in 1..4 {
        let mut publishing = tokio::task::JoinSet::new();
        for rival in 0..6 {
            let db = fixture.db.clone();
            publishing.spawn(async move {
                let catalogue = DynamoCatalogue::new(db);
                let title = format!("{version}-{rival}");
                let file = file("hall", &title, 20_000 + rival);
                let reply = catalogue.publish(&file, Some(version)).await.unwrap();
                (reply == ChangeReply::Done).then_some(title)
            });
        }
        let reader = DynamoCatalogue::new(fixture.db.clone());
        reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
        let winners: Vec<String> = publishing.join_all().await.into_iter().flatten().collect();
        assert_eq!(winners.len(), 1);
        let found = reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
        assert_eq!((found.version, &found.sale.file().title), (version + 1, &winners[0]));
    }
}

#[tokio::test]
async fn a_publication_that_dies_between_chunks_changes_nothing() {
    let fixture = Fixture::new().await;
    let id = SaleId::new("hall").unwrap();
    let healthy = DynamoCatalogue::new(fixture.db.clone());
    let old = file("hall", "Old", 20_000);
    assert_eq!(healthy.publish(&old, None).await, Ok(ChangeReply::Done));
    let before = chunks(&fixture).await;
    assert!(before > 1);

    // The process reads what is there, gets one chunk through and no more.
    let proxy = HttpProxy::start(&fixture.server.url, |request, before| {
        match (request.operation.as_str(), before) {
            ("PutItem", 0) | ("GetItem" | "BatchGetItem" | "Query", _) => Act::Forward,
            _ => Act::LoseRequest,
        }
    })
    .await
    .unwrap();
    let dying = DynamoCatalogue::new(fixture.db_at(proxy.url(), 2));
    let new = file("hall", "New", 25_000);
    assert!(dying.publish(&new, Some(1)).await.unwrap_err().retryable());
    assert_eq!(chunks(&fixture).await, before + 1);
    let reader = DynamoCatalogue::new(fixture.db.clone());
    let found = reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!((found.version, found.sale.file()), (1, &old));

    // The next publication cleans up behind it.
    assert_eq!(healthy.publish(&new, Some(1)).await, Ok(ChangeReply::Done));
    let bytes = serde_json::to_vec(&new).unwrap().len();
    assert_eq!(chunks(&fixture).await, bytes.div_ceil(256 * 1024));
    let found = reader.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!((found.version, found.sale.file()), (2, &new));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_loads_a_sale_and_names_its_epoch() {
    let fixture = Fixture::new().await;
    let catalogue = DynamoCatalogue::new(fixture.db.clone());
    let id = SaleId::new("hall").unwrap();
    let epoch = |text: &str| Epoch::new(text).unwrap();
    let until = NOW.plus_seconds(30);
    let none = catalogue.lease(&id, &epoch("e0"), NOW, until).await;
    assert_eq!(none, Ok(ChangeReply::Conflict), "no sale");
    assert_eq!(catalogue.publish(&file("hall", "Hall", 10), None).await, Ok(ChangeReply::Done));

    let mut leasing = tokio::task::JoinSet::new();
    for rival in 0..8 {
        let (catalogue, id) = (catalogue.clone(), id.clone());
        let rival = epoch(&format!("r{rival}"));
        leasing.spawn(async move { (catalogue.lease(&id, &rival, NOW, until).await, rival) });
    }
    let won: Vec<Epoch> = leasing
        .join_all()
        .await
        .into_iter()
        .filter_map(|(reply, rival)| (reply.unwrap() == ChangeReply::Done).then_some(rival))
        .collect();
    let [winner] = won.as_slice() else { panic!("{won:?} have the lease") };
    assert_eq!(catalogue.loaded(&id, &epoch("e0")).await, Ok(ChangeReply::Conflict));

    // Whoever has it prolongs it; nobody else takes it before it has run out.
    let later = until.plus_seconds(30);
    assert_eq!(catalogue.prolong(&id, winner, later).await, Ok(ChangeReply::Done));
    assert_eq!(catalogue.lease(&id, &epoch("e1"), until, later).await, Ok(ChangeReply::Conflict));

    // It ran out: another takes it, and the first comes too late, also to prolong it.
    let end = later.plus_seconds(30);
    assert_eq!(catalogue.lease(&id, &epoch("e2"), later, end).await, Ok(ChangeReply::Done));
    assert_eq!(catalogue.prolong(&id, winner, end).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.loaded(&id, winner).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.loaded(&id, &epoch("e2")).await, Ok(ChangeReply::Done));
    // It has ended: not even its last holder has it any more.
    assert_eq!(catalogue.prolong(&id, &epoch("e2"), end).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.prolong(&id, winner, end).await, Ok(ChangeReply::Conflict));
    assert_eq!(catalogue.loaded(&id, &epoch("e2")).await, Ok(ChangeReply::Conflict));
    let found = catalogue.sale(&id, Freshness::Cached).await.unwrap().unwrap();
    assert_eq!(found.epoch, Some(epoch("e2")));

    // The lease is free again, also when it was given back, and a new version keeps the epoch.
    for rival in [epoch("e3"), epoch("e4")] {
        assert_eq!(catalogue.lease(&id, &rival, NOW, until).await, Ok(ChangeReply::Done));
        assert_eq!(catalogue.prolong(&id, &rival, NOW).await, Ok(ChangeReply::Done));
    }
    assert_eq!(
        catalogue.publish(&file("hall", "Hall 2", 10), Some(1)).await,
        Ok(ChangeReply::Done)
    );
    let found = catalogue.sale(&id, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!((found.version, found.epoch), (2, Some(epoch("e2"))));
}
