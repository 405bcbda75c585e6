//! A sale with a waiting room: who was let in, and every way in which its table can be wrong.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::admission::room::draw::Window;
use engine::domain::admission::room::join::{IndexStock, Membership, bucket_of};
use engine::domain::admission::room::serving::{Counts, Given};
use engine::domain::admission::room::visit::{Enter, EnterReply, Visit};
use engine::domain::basics::bytes::{Hash, Secret, Signature};
use engine::domain::basics::ids::{GroupId, UserId};
use engine::domain::order::PaymentOutcome;
use engine::domain::sale::Sale;
use engine::flows::publish::publish;
use engine::flows::room;
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::join::{JoinRequest, join};
use engine::flows::room::publish::DrawBy;
use engine::flows::sync::sync;
use engine::ports::{AppendReply, Beacon, RoomPorts, Rooms as _, StoreError, Stored};
use serde_json::json;
use shared::dynamodb::DynamoRooms;

use super::corruption::{Change, Corruptions, Item, Snapshot, named, number, text, with, without};
use super::fixture::Fixture;
use super::sales::{best, requested};
use super::{LATER, NOW, epoch, id};

/// Those who join; the first two of them are let in, and the first one orders.
const BUYERS: [&str; 3] = ["hal", "ida", "jon"];
const BUCKETS: u16 = 256;

/// The ports of a room without a beacon.
pub(super) struct RoomEngine(pub(super) DynamoRooms);

/// No beacon is named.
pub(super) struct NoBeacon;

impl Beacon for NoBeacon {
    async fn round(&self, _: Hash, _: u64) -> Stored<Option<Signature>> {
        Err(StoreError::Contract("no beacon is named".to_owned()))
    }
    async fn verify(&self, _: Hash, _: u64, _: Signature) -> Stored<bool> {
        Err(StoreError::Contract("no beacon is named".to_owned()))
    }
}

impl RoomPorts for RoomEngine {
    type Rooms = DynamoRooms;
    type Beacon = NoBeacon;

    fn rooms(&self) -> &DynamoRooms {
        &self.0
    }
    fn beacon(&self) -> &NoBeacon {
        &NoBeacon
    }
}

/// Five spots, behind a room.
fn hall() -> Sale {
    let file = json!({
        "sale": "hall", "title": "Hall", "currency": "EUR", "limit_per_buyer": 3,
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
        "pay_window_seconds": 600, "room": { "beacon": "operator" },
        "tiers": [{"tier": "floor", "name": "F", "price_minor": 70, "general_admission": 5}]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

impl Fixture {
    /// Publishes the hall, lets three people join and two of them in; the first has a paid order.
    pub(super) async fn visit_the_hall(&self) {
        let (hall, rooms) = (hall(), &self.rooms);
        let settings = hall.room().unwrap();
        let by = DrawBy::Secret(Secret([4; 32]));
        let of_room = room::publish::publish(rooms, hall.id(), &settings, 5, &by, NOW);
        let published_room = of_room.await.unwrap();
        let published = publish(&self.engine, &hall, &epoch(), NOW).await.unwrap();
        let stock = std::sync::Mutex::new(IndexStock::default());
        let mut members = Vec::new();
        for buyer in BUYERS {
            let request = JoinRequest {
                sale: hall.id().clone(),
                group: GroupId::all(),
                buyer: id(buyer),
                nonce: engine::domain::basics::bytes::Nonce([buyer.as_bytes()[0]; 16]),
                more_time: false,
                code: None,
            };
            members.push(join(rooms, &stock, &request, NOW).await.unwrap().membership);
        }
        assert_eq!(draw(rooms, hall.id(), NOW).await, Ok(Drawing::Drawn));
        let mut last = rooms.0.last_record(hall.id()).await.unwrap().unwrap();
        for second in 1..=3 {
            let (counts, joined) = (Some(Counts::default()), vec![3]);
            let given = Given { free: Some(50), joined, counts, ..Given::default() };
            let at_ms = NOW.plus_seconds(second).ms();
            last = last.next(&published_room, at_ms, Vec::new(), given).unwrap();
            assert_eq!(rooms.0.append(hall.id(), &last).await, Ok(AppendReply::Appended));
        }
        let group = &last.state.groups[0];
        assert_eq!(group.serving, 3, "{last:?}");
        let window = Window::new(group.seed.unwrap(), 0, 3);
        // One is admitted, one only looks, and one never comes.
        for (member, attempts) in members.iter().zip([1, 0]) {
            let place = window.place(member.index.number).unwrap();
            let visit = Visit { place, turn: last.number, began_clock_ms: 0, attempts };
            let entered = rooms.0.enter(&enter(&hall, member, visit)).await;
            assert!(matches!(entered, Ok(EnterReply::Entered(_))), "{entered:?}");
        }
        let line = requested("floor", (0, 1), best(1), 70);
        let order = self.reserve(&published, BUYERS[0], line, LATER).await;
        assert_eq!(self.pay(&hall, order, "pi_hall", 70).await, PaymentOutcome::Accepted);
        assert_eq!(sync(&self.engine, &[order], NOW).await, Ok(1));
    }
}

fn enter(hall: &Sale, member: &Membership, visit: Visit) -> Enter {
    Enter {
        sale: hall.id().clone(),
        bucket: bucket_of(&member.buyer, BUCKETS),
        buyer: member.buyer.clone(),
        group: GroupId::all(),
        index: member.index.number,
        visit,
        begun_only: false,
        visit_ms: 600_000,
        max_attempts: 10,
    }
}

fn member(snapshot: &Snapshot, buyer: &str) -> Item {
    let bucket = bucket_of(&UserId::new(buyer).unwrap(), BUCKETS);
    let sort = format!("buyer#{buyer}");
    snapshot.item("rooms", Some(&format!("members#hall#{bucket}")), &sort)
}

fn record(snapshot: &Snapshot, number: u64) -> Item {
    snapshot.item("rooms", Some("log#hall"), &format!("{number:020}"))
}

fn of<'a>(item: &'a Item, name: &str) -> &'a str {
    let value = &item[name];
    let text = value.as_s().or_else(|_| value.as_n());
    text.unwrap_or_else(|other| panic!("{other:?}"))
}

/// Every way in which the table of a room can be wrong. The log has six records: publication, closing, seed and
/// three turns.
pub(super) fn wrong_rooms(snapshot: &Snapshot) -> Corruptions {
    let put = |item| Change::Put("rooms", item);
    let (hal, ida) = (member(snapshot, "hal"), member(snapshot, "ida"));
    let jon = member(snapshot, "jon");
    let served = record(snapshot, 3);
    let other_state = of(&served, "line").replace("\"sold_out\":false", "\"sold_out\":true");
    let other_text = format!("{} ", of(&served, "line"));
    let leaves = snapshot.item("rooms", Some("leaves#hall#all#0"), "only");
    let other_leaves = AttributeValue::B(Blob::new([7; 96]));
    let counter = snapshot.item("rooms", Some("counter#hall"), "all");
    let (index, place) = (of(&hal, "index").to_owned(), of(&hal, "place").to_owned());
    let other_place = (place.parse::<u32>().unwrap() + 1) % 3;
    let bucket = bucket_of(&UserId::new("jon").unwrap(), BUCKETS);
    vec![
        (
            put(with(served.clone(), [("line", text(other_state))])),
            named(["rooms hall: record 3 of the log is not what the rules make of the one before"]),
        ),
        (
            put(with(served.clone(), [("line", text(other_text))])),
            named(["rooms hall: record 3 of the log is none: it is not written as records are"]),
        ),
        (
            Change::Delete("rooms", served),
            named(["rooms hall: record 3 of the log is missing: the next one is 4"]),
        ),
        (
            put(with(hal.clone(), [("place", number(other_place))])),
            vec![format!(
                "rooms hall: index {index} of group all was let in at place {other_place}, and the draw gave it {place}"
            )],
        ),
        (
            put(with(hal.clone(), [("turn", number(1))])),
            vec![format!(
                "rooms hall: index {index} of group all was let in at place {place} by record 1, when those below 0 were due"
            )],
        ),
        (
            put(with(hal.clone(), [("attempts", number(11))])),
            vec![format!("rooms hall: index {index} of group all was let in 11 times, of 10")],
        ),
        (
            put(with(hal.clone(), [("attempts", number(0))])),
            named(["rooms hall: buyer hal has made 1 orders, and was let in 0 times at most"]),
        ),
        (
            put(without(hal, ["place", "turn", "began_ms", "attempts"])),
            named(["rooms hall: buyer hal has made 1 orders, and was let in 0 times at most"]),
        ),
        (
            put(with(ida.clone(), [("nonce", AttributeValue::B(Blob::new([9; 16])))])),
            vec![
                format!(
                    "rooms hall: index {} of group all is ida's, and the tree has another leaf there",
                    of(&ida, "index")
                ),
                "rooms hall: the sale has 3 leaves, of which 2 are of places that are there, and 0 have joined again".to_owned(),
            ],
        ),
        (
            put(with(leaves, [("leaves", other_leaves)])),
            BUYERS
                .map(|buyer| {
                    format!(
                        "rooms hall: index {} of group all is {buyer}'s, and the tree has another leaf there",
                        of(&member(snapshot, buyer), "index")
                    )
                })
                .into_iter()
                .chain(named([
                    "rooms hall: the sale has 3 leaves, of which 0 are of places that are there, and 0 have joined again",
                    "rooms hall: group all has other leaves in chunk 0 than its tree is over",
                ]))
                .collect(),
        ),
        (
            put(with(counter, [("closed", number(2))])),
            named(["rooms hall: group all was closed at Some(3) by its log, and at Some(2) by its counter"]),
        ),
        (
            put(with(jon, [("window", text("middle"))])),
            vec![
                format!("records hall: item members#hall#{bucket}/buyer#jon of table rooms has window middle"),
                "rooms hall: the sale has 3 leaves, of which 2 are of places that are there, and 0 have joined again".to_owned(),
            ],
        ),
    ]
}
