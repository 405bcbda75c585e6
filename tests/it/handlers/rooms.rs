//! Waiting rooms over HTTP: published with their sale.

use engine::domain::ids::SaleId;
use engine::domain::room::bytes::Secret;
use engine::domain::sale::{Sale, SaleFile};
use engine::domain::time::Timestamp;
use engine::flows::room::{publish, published};
use engine::ports::{RoomPorts as _, Rooms as _};
use serde_json::{Value, json};
use shared::beacon::signature::QUICKNET;

use super::{Fixture, Sender, hall};

/// A hall with a room, on sale in a distant future.
fn waiting(id: &str) -> Value {
    let mut file = hall();
    file["sale"] = json!(id);
    file["opens_at"] = json!("2099-01-01T00:00:00Z");
    file["room"] = json!({ "visit_seconds": 900 });
    file
}

fn sale(file: &Value) -> Sale {
    let file: SaleFile = serde_json::from_value(file.clone()).unwrap();
    Sale::new(file).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_published_before_its_sale_and_never_changes() {
    let fixture = Fixture::start().await;
    let ports = &fixture.app.ports;
    let file = waiting("hall");
    let id = sale(&file).id().clone();
    fixture.publish(&file).await.ok(200);
    let room = published(ports, &id).await.unwrap().unwrap();
    assert_eq!(Some(&room.settings), sale(&file).room().as_ref());
    let secret = ports.rooms().secret(&id).await.unwrap().unwrap();
    assert_eq!(room.draw.commitment, secret.commitment());
    assert_ne!(secret, Secret([0; 32]));

    let with = |name: &str, value: Value| {
        let mut file = file.clone();
        file[name] = value;
        file
    };
    for same in [
        file.clone(),
        with("title", json!("The hall")),
        with("limit_per_buyer", json!(3)),
        with("closes_at", json!("2101-01-01T00:00:00Z")),
        file.clone(),
    ] {
        fixture.publish(&same).await.ok(200);
    }
    let mut without = file.clone();
    without.as_object_mut().unwrap().remove("room");
    for other in [
        with("room", json!({})),
        with("room", json!({ "visit_seconds": 900, "beacon": fake_beacon::hash() })),
        with("opens_at", json!("2099-01-01T00:00:01Z")),
        with("limit_per_buyer", json!(5)),
        without,
    ] {
        fixture.publish(&other).await.problem(409, "room-differs");
    }
    assert_eq!(ports.rooms().last_record(&id).await.unwrap().unwrap().number, 0);
    assert_eq!(ports.rooms().secret(&id).await, Ok(Some(secret)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_leaves_no_room_behind() {
    let fixture = Fixture::start().await;
    let ports = &fixture.app.ports;
    let room_of = async |id: &str| published(ports, &SaleId::new(id).unwrap()).await.unwrap();

    // A sale gets its room while its draw is not closed.
    let mut open = hall();
    fixture.publish(&open).await.ok(200);
    open["room"] = json!({});
    fixture.publish(&open).await.problem(409, "room-differs");
    assert_eq!(room_of("hall").await, None);
    let mut later = waiting("later");
    later.as_object_mut().unwrap().remove("room");
    fixture.publish(&later).await.ok(200);
    let mut moved = waiting("later");
    moved["tiers"].as_array_mut().unwrap().pop();
    fixture.publish(&moved).await.problem(409, "seats-differ");
    assert_eq!(room_of("later").await, None);
    fixture.publish(&waiting("later")).await.ok(200);
    assert!(room_of("later").await.is_some());

    // The rounds of its beacon could not be verified.
    let mut unknown = waiting("unknown");
    unknown["room"] = json!({ "beacon": "ab".repeat(32) });
    let refused = fixture.publish(&unknown).await.problem(422, "invalid");
    assert!(refused.to_string().contains("room.beacon"), "{refused}");
    assert_eq!(room_of("unknown").await, None);
    for known in [QUICKNET, fake_beacon::hash()] {
        unknown["sale"] = json!(format!("known-{}", &known.to_string()[..8]));
        unknown["room"] = json!({ "beacon": known });
        fixture.publish(&unknown).await.ok(200);
    }

    // A publication that died behind the room's: who sees the sale could join.
    let file = waiting("died");
    let sale = sale(&file);
    let settings = sale.room().unwrap();
    let now = Timestamp::now();
    let secret = Secret([1; 32]);
    publish::publish(ports, sale.id(), &settings, None, &secret, now).await.unwrap();
    fixture.get(Sender::Nobody, "/sales/died").await.problem(404, "not-found");
    let mut other = file.clone();
    other["room"] = json!({});
    fixture.publish(&other).await.problem(409, "room-differs");
    fixture.publish(&file).await.ok(200);
    assert_eq!(ports.rooms().secret(sale.id()).await, Ok(Some(secret)));
}
