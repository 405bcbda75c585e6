//! The map of a sale over HTTP: what names it, who may keep it, and what changes it.

use std::io::Read as _;

use engine::domain::basics::ids::{Epoch, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::archive::Lifecycle;
use engine::flows::cancel_sale;
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use flate2::read::GzDecoder;
use importers::{Terms, stadium::stadium};
use lambda_http::Body;
use local::handlers::sales;
use serde_json::{Value, json};
use shared::http::respond::IMMUTABLE;

use super::{Fixture, Sender, hall, request};

fn with_map(seats: u32) -> Value {
    let file = stadium(seats, &Terms::opening(Timestamp::from_ms(0))).unwrap().accept(false);
    let mut file = serde_json::to_value(file.unwrap().0).unwrap();
    file["sale"] = json!("arena");
    file["opens_at"] = json!("2020-01-01T00:00:00Z");
    file["closes_at"] = json!("2099-01-01T00:00:00Z");
    file
}

async fn hash(fixture: &Fixture) -> Value {
    let sale = fixture.get(Sender::Nobody, "/sales/arena").await.ok(200);
    assert_eq!(sale["file"].get("map"), sale.get("map"));
    sale.get("map").map_or(Value::Null, |map| map["hash"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_is_kept_for_ever_under_its_hash_and_for_no_time_without() {
    let fixture = Fixture::start().await;
    let file = with_map(700);
    let published = fixture.publish(&file).await.ok(200);
    let first = hash(&fixture).await;
    assert_eq!(published["map"]["hash"], first);
    let show =
        async |query: &str| fixture.get(Sender::Nobody, &format!("/sales/arena/map{query}")).await;
    let named = format!("?v={}", first.as_str().unwrap());
    let map = show(&named).await;
    assert_eq!((map.caching(), &map.body), (IMMUTABLE, &file["map"]));
    let map = show("").await;
    assert_eq!((map.caching(), &map.body), ("no-store", &file["map"]));
    let none = format!("?v={}", "0".repeat(32));
    for (query, status, slug) in [
        (none.as_str(), 404, "not-found"),
        ("?v=", 422, "invalid"),
        ("?v=0", 422, "invalid"),
        (&format!("{named}&v=1"), 422, "invalid"),
        (&named.to_uppercase().replace("?V", "?v"), 422, "invalid"),
    ] {
        let refused = show(query).await;
        assert_eq!(refused.caching(), "no-store");
        refused.problem(status, slug);
    }

    // The same seats, and the same map in other words: nothing has changed.
    let mut same = file.clone();
    same["map"]["width"] = json!(same["map"]["width"].as_f64().unwrap());
    assert_eq!(fixture.publish(&same).await.ok(200)["version"], 1);
    // Another map while the sale sells.
    let mut other = file.clone();
    other["map"]["outlines"] = json!([]);
    let published = fixture.publish(&other).await.ok(200);
    assert_eq!(published["version"], 2);
    let second = hash(&fixture).await;
    assert_ne!(second, first);
    show(&named).await.problem(404, "not-found");
    let map = show(&format!("?v={}", second.as_str().unwrap())).await.ok(200);
    assert_eq!(map.get("outlines"), None);
    // New terms keep the map's name; a file without it takes it away.
    other["title"] = json!("The arena");
    fixture.publish(&other).await.ok(200);
    assert_eq!(hash(&fixture).await, second);
    other.as_object_mut().unwrap().remove("map");
    assert_eq!(fixture.publish(&other).await.ok(200)["version"], 4);
    assert_eq!(hash(&fixture).await, Value::Null);
    show("").await.problem(404, "not-found");
    fixture.publish(&hall()).await.ok(200);
    fixture.get(Sender::Nobody, "/sales/hall/map").await.problem(404, "not-found");
    fixture.get(Sender::Nobody, "/sales/nowhere/map").await.problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_read_is_published_with_the_map_that_it_names() {
    let fixture = Fixture::start().await;
    let own = with_map(100);
    fixture.publish(&own).await.ok(200);
    let first = hash(&fixture).await;
    let mut read = fixture.get(Sender::Nobody, "/sales/arena").await.ok(200)["file"].clone();
    assert_eq!(read["map"], json!({ "hash": first }));
    assert_eq!(fixture.publish(&read).await.ok(200)["version"], 1, "nothing has changed");
    read["title"] = json!("The arena");
    assert_eq!(fixture.publish(&read).await.ok(200)["version"], 2);
    let map = fixture.get(Sender::Nobody, "/sales/arena/map").await;
    assert_eq!((hash(&fixture).await, &map.body), (first.clone(), &own["map"]));

    // Another map's name: an old one of this sale, or nobody's. Nothing changes.
    let mut other = own.clone();
    other["map"]["outlines"] = json!([]);
    fixture.publish(&other).await.ok(200);
    let second = hash(&fixture).await;
    read["title"] = json!("Nobody's arena");
    for wrong in [first.as_str().unwrap(), &"0".repeat(32)] {
        read["map"]["hash"] = json!(wrong);
        let refused = fixture.publish(&read).await.problem(422, "invalid");
        assert_eq!(refused["defects"][0]["at"], "map.hash", "{wrong}");
    }
    read["map"]["hash"] = second.clone();
    read["map"]["width"] = json!(3);
    fixture.publish(&read).await.problem(422, "invalid");
    read["map"] = json!({ "hash": "XYZ" });
    fixture.publish(&read).await.problem(422, "invalid");
    let shown = fixture.get(Sender::Nobody, "/sales/arena").await.ok(200);
    assert_eq!((&shown["version"], &shown["map"]["hash"]), (&json!(3), &second));
    // A sale that has no map, and one that is not there.
    let mut hall = hall();
    hall["map"] = json!({ "hash": second });
    fixture.publish(&hall).await.problem(422, "invalid");
    fixture.get(Sender::Nobody, "/sales/hall").await.problem(404, "not-found");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_of_sixty_thousand_seats_is_small_and_compressed() {
    let fixture = Fixture::start().await;
    let file = with_map(60_000);
    fixture.publish(&file).await.ok(200);
    let sale = fixture.get(Sender::Nobody, "/sales/arena").await.ok(200);
    assert!(sale.to_string().len() < 10_000, "{}", sale.to_string().len());
    let headers = json!({ "accept-encoding": "gzip, br" });
    let asked = request(Sender::Nobody, "GET", "/sales/arena/map", headers, "");
    let response = sales::handle(&fixture.app, asked).await;
    assert_eq!(response.headers()["content-encoding"], "gzip");
    let Body::Binary(packed) = response.into_body() else { panic!("not compressed") };
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut text).unwrap();
    println!("a map of 60,000 seats: {} bytes, {} compressed", text.len(), packed.len());
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), file["map"]);
    assert!(text.len() < 200_000 && packed.len() < 60_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_sale_keeps_its_map() {
    let fixture = Fixture::start().await;
    fixture.publish(&with_map(100)).await.ok(200);
    let before = hash(&fixture).await;
    let (id, epoch) = (SaleId::new("arena").unwrap(), Epoch::new("stop").unwrap());
    let ports = &fixture.app.ports;
    cancel_sale::stop(ports, &id, &epoch, Timestamp::now()).await.unwrap();
    assert_eq!(hash(&fixture).await, before);
    let kept = ports.catalogue().sale(&id, Freshness::Fresh).await.unwrap().unwrap();
    assert_eq!(
        (kept.version, kept.lifecycle, kept.sale.file().map.as_ref()),
        (2, Lifecycle::Listed, None)
    );
}
