//! A room that served, exported and checked: everything that happened is in the files, and nothing of who it was.

use std::fs;
use std::path::Path;

use engine::domain::admission::room::document::Left;
use engine::domain::admission::room::memory::RoomMemory;
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::published;
use engine::flows::room::turn::turn;
use engine::ports::{RoomPorts as _, Rooms as _};
use ops::draw::export::{Error, Exported, export};
use ops::draw::publication::{ADMISSIONS, LEAVES, LOG, ORDERS, Publication};
use ops::draw::report::{Because, Report};
use ops::draw::{Seen, verify};
use serde_json::{Value, json};
use shared::beacon::Chains;
use shared::dynamodb::ErasedPlaces;

use super::{Fixture, Sender, hall};

/// A hall with a room of two groups that is open: its draw is due at once.
fn open_hall() -> Value {
    let mut file = hall();
    file["room"] = json!({
        "groups": [{ "group": "all" }, { "group": "fans" }],
        "show_up_seconds": 120, "visit_seconds": 120, "beacon": "operator"
    });
    file
}

fn sale() -> SaleId {
    SaleId::new("hall").unwrap()
}

/// One who has joined.
struct Member {
    buyer: String,
    group: &'static str,
    index: u64,
    token: Value,
}

impl Fixture {
    async fn member(&self, buyer: &str, group: &'static str) -> Member {
        let body = json!({ "group": group });
        let target = "/sales/hall/places";
        let joined = self.json(Sender::Buyer(buyer), "POST", target, &body).await.ok(201);
        let (index, token) = (joined["index"].as_u64().unwrap(), joined["place_token"].clone());
        Member { buyer: buyer.to_owned(), group, index, token }
    }

    /// Makes a turn by a clock that is ahead of the others by so much.
    async fn turn_ahead(&self, seconds: i64) {
        let ports = &self.app.ports;
        let room = published(ports, &sale()).await.unwrap().unwrap();
        let left = Left { free: 1_000, holds: false, tiers: vec![500, 500], is_held_back: false };
        let now = Timestamp::now().plus_seconds(seconds);
        turn(ports, &room, async { Some(left) }, now).await.unwrap();
        // As a second later: what the gate remembers is that old at most.
        *self.app.room_memory.lock().unwrap() = RoomMemory::default();
    }

    /// Lets a member in, whose place anybody can compute.
    async fn let_in(&self, member: &Member) {
        let Member { buyer, group, index, token } = member;
        let window = format!("/sales/hall/room/windows/{group}/{index}");
        let window = self.get(Sender::Nobody, &window).await.ok(200);
        let number = |name: &str| u32::try_from(window[name].as_u64().unwrap()).unwrap();
        let seed = window["seed"].as_str().unwrap().parse().unwrap();
        let drawn = engine::domain::admission::room::draw::Window::new(
            seed,
            number("first"),
            number("end"),
        );
        let place = drawn.place(u32::try_from(*index).unwrap()).unwrap();
        let body =
            json!({ "tickets": 1, "place": { "group": group, "token": token, "place": place } });
        let admitted =
            self.json(Sender::Buyer(buyer), "POST", "/sales/hall/admissions", &body).await.ok(201);
        if buyer == "wren-1" {
            let lines = super::best("vip", 1);
            let body = json!({ "admission": admitted["token"], "lines": lines });
            self.json(Sender::Buyer(buyer), "POST", "/sales/hall/orders", &body).await.ok(201);
        }
    }

    async fn export(&self, folder: &Path) -> Exported {
        export(&self.app.ports, &sale(), folder, Timestamp::now()).await.unwrap()
    }

    async fn records(&self) -> u64 {
        self.app.ports.rooms().last_record(&sale()).await.unwrap().unwrap().number + 1
    }
}

fn checked(folder: &Path) -> Report {
    verify(&Publication::read(folder).unwrap(), &Chains::default(), &Seen::default(), None)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_served_is_exported_and_verified() {
    let fixture = Fixture::start().await;
    fixture.publish(&open_hall()).await.ok(200);
    let folder = tempfile::tempdir().unwrap();
    // A room that is not drawn can be exported as well.
    let early = Exported { records: 1, chunks: 0, admissions: 0, orders: 0 };
    assert_eq!(fixture.export(folder.path()).await, early);
    assert_eq!(checked(folder.path()).because, Some(Because::Secret));

    let mut members = Vec::new();
    for number in 0..12 {
        let group = if number % 3 == 0 { "fans" } else { "all" };
        members.push(fixture.member(&format!("wren-{number}"), group).await);
    }
    let drawn = draw(&fixture.app.ports, &sale(), Timestamp::now()).await;
    assert_eq!(drawn, Ok(Drawing::Drawn));
    fixture.turn_ahead(5).await;
    for member in &members[..8] {
        fixture.let_in(member).await;
    }
    // The visits are over, and the places of the others have run out: two join again, and one of them comes.
    for minutes in 1..=5 {
        fixture.turn_ahead(60 * minutes).await;
    }
    let again = [fixture.member("wren-0", "fans").await, fixture.member("wren-11", "all").await];
    assert!(again[0].index > members[0].index && again[1].index > members[11].index);
    // What another process shows is answered for five seconds.
    fixture.turn_ahead(362).await;
    fixture.turn_ahead(372).await;
    fixture.let_in(&again[0]).await;

    let exported = fixture.export(folder.path()).await;
    let records = fixture.records().await;
    assert_eq!(exported, Exported { records, chunks: 2, admissions: 9, orders: 1 });
    let report = checked(folder.path());
    assert_eq!(report.violations, [], "{report}");
    let stock = report.stock.unwrap();
    assert_eq!((stock.held, stock.left + stock.held), (1, stock.stock), "{report}");
    let admitted: Vec<u64> = report.groups.iter().map(|group| group.admitted).collect();
    assert_eq!((report.records, admitted.iter().sum::<u64>()), (records, 9));
    for file in [LOG, LEAVES, ADMISSIONS, ORDERS] {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(!text.contains("wren"), "{file} says who it was");
    }

    // Somebody admitted at the place of another; a leaf that was replaced; a record that was changed.
    let planted = |file: &str, change: fn(&str) -> String| {
        let path = folder.path().join(file);
        let good = fs::read_to_string(&path).unwrap();
        let changed = change(&good);
        assert_ne!(changed, good);
        fs::write(&path, changed).unwrap();
        let report = checked(folder.path());
        fs::write(&path, good).unwrap();
        let kinds = serde_json::to_value(&report.violations).unwrap();
        kinds[0]["violation"].clone()
    };
    let another_place = |text: &str| {
        let (start, rest) = text.split_once("\"place\":").unwrap();
        let (place, rest) = rest.split_once(',').unwrap();
        format!("{start}\"place\":{},{rest}", place.parse::<u32>().unwrap() + 1)
    };
    assert_eq!(planted(ADMISSIONS, another_place), "place");
    let another_leaf = |text: &str| {
        let (start, rest) = text.split_once("\"leaves\":[\"").unwrap();
        format!("{start}\"leaves\":[\"{}{}", "0".repeat(64), &rest[64..])
    };
    assert_eq!(planted(LEAVES, another_leaf), "chunk");
    let another_record = |text: &str| text.replacen("\"free\":1000", "\"free\":1001", 1);
    assert_eq!(planted(LOG, another_record), "chain");
    let without_admissions = |_: &str| String::new();
    assert_eq!(planted(ADMISSIONS, without_admissions), "no_admission");
    let without_orders = |text: &str| text.lines().next().unwrap().to_owned();
    assert_eq!(planted(ORDERS, without_orders), "stock");
    assert_eq!(checked(folder.path()).violations, []);

    // Who it was is erased; what can be checked of the draw stays.
    let groups = ["all", "fans"].map(|group| GroupId::new(group).unwrap());
    for places in [12, 0] {
        let erased = fixture.app.ports.rooms().0.erase_places(&sale(), &groups).await.unwrap();
        assert_eq!(erased, ErasedPlaces { places, codes: 0 });
    }
    let after = fixture.export(folder.path()).await;
    assert_eq!(after, Exported { admissions: 0, ..exported });
    let kinds = serde_json::to_value(checked(folder.path()).violations).unwrap();
    assert_eq!(kinds[0]["violation"], "no_admission", "export a room before it is erased: {kinds}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_without_a_room_has_nothing_to_export() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let folder = tempfile::tempdir().unwrap();
    let refused = export(&fixture.app.ports, &sale(), folder.path(), Timestamp::now()).await;
    assert!(matches!(refused, Err(Error::NoRoom)), "{refused:?}");
}
