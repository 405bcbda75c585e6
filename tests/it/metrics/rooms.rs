//! What a waiting room does is counted where it is written, and each reason why nobody is served by itself.

use engine::domain::admission::room::counts::ReservationReport;
use engine::domain::admission::room::document::Left;
use engine::domain::admission::room::draw::Window;
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::serving::{Command, Room};
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::published;
use engine::flows::room::request::{Requested, request_due};
use engine::flows::room::turn::{command, turn};
use engine::ports::{AppendReply, Board as _, BoardPorts as _, RoomPorts as _, Rooms as _};
use serde_json::{Value, json};
use shared::runtime::metrics::{self, Function, Metrics};

use super::{Lines, STAGE, counts, start};
use crate::handlers::{Fixture, Sender, best, hall};

/// A sale of one ticket, with a room whose draw is due at once.
const SALE: &str = "room";

fn file() -> Value {
    let mut file = hall();
    file["sale"] = json!(SALE);
    file["opens_at"] = json!("2020-01-01T00:00:00Z");
    file["room"] = json!({ "beacon": "operator" });
    file["tiers"] = json!([{ "tier": "t", "name": "T", "price_minor": 1, "general_admission": 1 }]);
    file
}

fn id() -> SaleId {
    SaleId::new(SALE).unwrap()
}

/// What was counted of rooms since the last look, without what is 0.
fn counted(lines: &Lines) -> Vec<(String, u64)> {
    let is_of_rooms = |name: &str| {
        let starts = ["Turn", "Room", "Joined", "Served", "Came", "AdmittedToNothing"];
        starts.iter().any(|start| name.starts_with(start))
    };
    let counted = lines.counted().into_iter();
    counted.filter(|(name, number)| is_of_rooms(name) && *number > 0).collect()
}

fn expected(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    counts(expected).into_iter().collect()
}

/// Makes a turn at this time, as the function does. Returns its record.
async fn turned(fixture: &Fixture, room: &Room, free: Option<u64>, now: Timestamp) -> Record {
    let app = &fixture.app;
    let left = free.map(|free| Left { free, holds: true, tiers: vec![free], is_held_back: false });
    let work = async { turn(&app.ports, room, async { left }, now).await.unwrap() };
    app.metrics.of(Function::WaitingRoom, Box::pin(work)).await;
    app.ports.rooms().last_record(&id()).await.unwrap().unwrap()
}

impl Fixture {
    /// Joins, and answers the token and the index.
    async fn joins(&self, buyer: &str) -> (Value, u32) {
        let target = format!("/sales/{SALE}/places");
        let got = self.json(Sender::Buyer(buyer), "POST", &target, &json!({})).await.ok(201);
        (got["place_token"].clone(), u32::try_from(got["index"].as_u64().unwrap()).unwrap())
    }

    /// Comes with a place that is due: asks again while the gate's copy of the room is an older one, or its lock
    /// is on.
    async fn comes(&self, buyer: &str, token: &Value, place: u32) -> Value {
        let body = json!({ "tickets": 1, "place": { "token": token, "place": place } });
        let target = format!("/sales/{SALE}/admissions");
        loop {
            let got = self.json(Sender::Buyer(buyer), "POST", &target, &body).await;
            let kind = got.body["type"].as_str().unwrap_or_default();
            if !["/problems/too-many-requests", "/problems/place-not-due"].contains(&kind) {
                break got.ok(201)["token"].clone();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_people_do_in_a_room_is_counted() {
    let (fixture, lines) = start().await;
    fixture.publish(&file()).await.ok(200);
    let room = published(&fixture.app.ports, &id()).await.unwrap().unwrap();
    lines.take();
    let (alice, alices) = fixture.joins("alice").await;
    assert_eq!(counted(&lines), expected(&[("Joined room", 1)]));
    fixture.joins("alice").await;
    assert_eq!(counted(&lines), [], "it is the same membership");
    let (bob, bobs) = fixture.joins("bob").await;
    lines.take();

    let app = &fixture.app;
    let now = Timestamp::now();
    let drawn = app.metrics.of(Function::Draw, Box::pin(draw(&app.ports, &id(), now))).await;
    assert_eq!(drawn, Ok(Drawing::Drawn));
    assert_eq!(counted(&lines), [], "a draw is no turn");
    let last = turned(&fixture, &room, Some(100), now.plus_seconds(10)).await;
    let group = &last.state.groups[0];
    let count = group.closed.unwrap().closing.count;
    assert_eq!((group.serving, last.state.gave.served), (count, count.into()));
    let rate = last.state.limit_milli / 1_000;
    let all = [("Turns", 1), ("Served room", count.into()), ("RoomServing room", count.into())];
    let all: Vec<_> = all.into_iter().chain([("RoomRate room", rate)]).collect();
    assert_eq!(counted(&lines), expected(&all));

    // Both come, and there is one ticket.
    let seed = group.seed.unwrap();
    let place = |index: u32| Window::new(seed, 0, count).place(index).unwrap();
    let mut admissions = Vec::new();
    for (buyer, token, index) in [("alice", alice, alices), ("bob", bob, bobs)] {
        fixture.comes(buyer, &token, place(index)).await;
        assert_eq!(counted(&lines), expected(&[("Came room", 1)]), "{buyer}");
        let again = fixture.comes(buyer, &token, place(index)).await;
        assert_eq!(counted(&lines), [], "{buyer} goes on with the visit {again}");
        admissions.push((buyer, again));
    }
    let [(first, one), (second, other)] = &admissions[..] else { unreachable!() };
    fixture.order(first, SALE, one, best("t", 1)).await.ok(201);
    assert_eq!(counted(&lines), []);
    fixture.order(second, SALE, other, best("t", 1)).await.problem(409, "sold-out");
    assert_eq!(counted(&lines), expected(&[("AdmittedToNothing room", 1)]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_reason_why_nobody_is_served_is_counted() {
    let (mut fixture, lines) = start().await;
    fixture.publish(&file()).await.ok(200);
    let room = published(&fixture.app.ports, &id()).await.unwrap().unwrap();
    let now = Timestamp::now();
    assert_eq!(draw(&fixture.app.ports, &id(), now).await, Ok(Drawing::Drawn));
    fixture.joins("alice").await;
    // The operator's bound lets nobody in.
    let none = Command::Rate(Some(0));
    let commanded = command(&fixture.app.ports, &room, &none, async { None }, now).await;
    commanded.unwrap().unwrap();
    lines.take();
    let of_turns = |lines: &Lines| -> Vec<(String, u64)> {
        counted(lines).into_iter().filter(|(name, _)| name.starts_with("Turn")).collect()
    };
    let at = |seconds: i64| now.plus_seconds(seconds);

    turned(&fixture, &room, None, at(10)).await;
    assert_eq!(of_turns(&lines), expected(&[("Turns", 1), ("TurnsBlind", 1)]));
    for _ in 0..10 {
        let report = ReservationReport { entry: None, held: 0, is_bad: true };
        fixture.app.ports.board().reserved(&id(), &report, at(18)).await.unwrap();
    }
    turned(&fixture, &room, Some(100), at(20)).await;
    assert_eq!(of_turns(&lines), expected(&[("Turns", 1), ("TurnsTripped", 1)]));
    turned(&fixture, &room, Some(100), at(70)).await;
    assert_eq!(of_turns(&lines), expected(&[("Turns", 1)]), "it is less than two minutes");
    let last = turned(&fixture, &room, Some(100), at(130)).await;
    assert_eq!(of_turns(&lines), expected(&[("Turns", 1), ("TurnsHalted", 1)]));

    // Another writer was quicker.
    let app = &fixture.app;
    let mut other = last.clone();
    other.at_ms += 1;
    let (sale, rooms) = (id(), app.ports.rooms());
    let lost = app.metrics.of(Function::WaitingRoom, Box::pin(rooms.append(&sale, &other))).await;
    assert_eq!(lost, Ok(AppendReply::Conflict));
    assert_eq!(counted(&lines), expected(&[("TurnsLost", 1)]));

    // Somebody waits, and no turn is made.
    let late = Timestamp::from_ms(last.at_ms).plus_seconds(200);
    let found = request_due(&app.ports, late).await.unwrap();
    assert_eq!(found, Requested { oldest_turn_ms: 200_000, ..Requested::default() });
    app.metrics.of(Function::Reconcile, Box::pin(async { metrics::rooms_seen(&found) })).await;
    assert_eq!(counted(&lines), expected(&[("TurnAge", 200)]));
    let over = "2100-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(request_due(&app.ports, over).await.unwrap(), Requested::default(), "it is over");
    turned(&fixture, &room, Some(0), at(140)).await;
    let found = request_due(&fixture.app.ports, at(340)).await.unwrap();
    assert_eq!(found, Requested::default(), "nothing was free to serve for");

    // The log cannot be written.
    fixture.lose_dynamodb().await;
    fixture.app.metrics = Metrics::to(STAGE, lines.clone());
    lines.take();
    let app = &fixture.app;
    let (group, rooms) = (GroupId::all(), app.ports.rooms());
    app.metrics.of(Function::WaitingRoom, Box::pin(rooms.append(&sale, &other))).await.unwrap_err();
    app.metrics.of(Function::WaitingRoom, Box::pin(rooms.joined(&sale, &group))).await.unwrap_err();
    assert_eq!(counted(&lines), expected(&[("TurnsFailed", 2)]));
}
