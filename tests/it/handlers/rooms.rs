//! Waiting rooms over HTTP: published with their sale, joined, shown, and run by an operator.

use engine::domain::admission::room::document::Left;
use engine::domain::admission::room::draw::{Terms, Window};
use engine::domain::admission::room::leaves::Chunk;
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::memory::RoomMemory;
use engine::domain::admission::room::tree::{root, root_by_path};
use engine::domain::basics::bytes::{Hash, Secret};
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{Sale, SaleFile};
use engine::flows::room::draw::{Drawing, draw};
use engine::flows::room::publish::DrawBy;
use engine::flows::room::turn::turn;
use engine::flows::room::{publish, published};
use engine::ports::{Board as _, BoardPorts as _, RoomPorts as _, Rooms as _};
use serde_json::{Value, json};
use shared::beacon::signature::QUICKNET;
use shared::http::respond::IMMUTABLE;

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
    // The deployment's beacon decides, by a round that is named; there is no secret.
    let Terms::Beacon(named) = room.draw else { panic!("{room:?}") };
    assert_eq!(named.chain(), fake_beacon::rounds());
    assert_eq!(named.time_ms(named.round), room.settings.opens_at_ms - 60_000);
    assert_eq!(ports.rooms().secret(&id).await, Ok(None));
    assert_eq!(room.stock, Some(sale(&file).seat_legs()));

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
        with("room", json!({ "visit_seconds": 900, "beacon": fake_beacon::hash() })),
        file.clone(),
    ] {
        fixture.publish(&same).await.ok(200);
    }
    let mut without = file.clone();
    without.as_object_mut().unwrap().remove("room");
    for other in [
        with("room", json!({})),
        with("room", json!({ "visit_seconds": 900, "beacon": "operator" })),
        with("room", json!({ "visit_seconds": 900, "beacon": QUICKNET })),
        with("opens_at", json!("2099-01-01T00:00:01Z")),
        with("limit_per_buyer", json!(5)),
        without,
    ] {
        fixture.publish(&other).await.problem(409, "room-differs");
    }
    assert_eq!(ports.rooms().last_record(&id).await.unwrap().unwrap().number, 0);
    // A secret is made where the file asks for one.
    let mut by_secret = waiting("by-secret");
    by_secret["room"] = json!({ "beacon": "operator" });
    fixture.publish(&by_secret).await.ok(200);
    let id = sale(&by_secret).id().clone();
    let room = published(ports, &id).await.unwrap().unwrap();
    let secret = ports.rooms().secret(&id).await.unwrap().unwrap();
    assert_eq!(room.draw, Terms::Secret(secret.commitment()));
    assert_ne!(secret, Secret([0; 32]));
    by_secret["room"] = json!({});
    fixture.publish(&by_secret).await.problem(409, "room-differs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_is_named_ahead_of_everybody() {
    let fixture = Fixture::start().await;
    // Whole seconds, as the local rounds are: a lead of one second has a round within it by other openings.
    let now = Timestamp::from_ms(Timestamp::now().ms() / 1_000 * 1_000);
    let in_seconds = |seconds: i64| now.plus_seconds(seconds);
    let publish = async |id: &str, opens_at: Timestamp, room: Value| {
        let mut file = waiting(id);
        file["opens_at"] = json!(opens_at);
        file["room"] = room;
        fixture.publish(&file).await
    };
    // drand's rounds come to others as well: an hour and four minutes.
    let quicknet = |lead: u32| json!({ "beacon": QUICKNET, "draw_lead_seconds": lead });
    let soon = publish("soon", in_seconds(3_600), quicknet(300)).await.problem(422, "invalid");
    assert_eq!(soon["defects"][0]["at"], "opens_at", "{soon}");
    let short = publish("short", in_seconds(7_200), quicknet(239)).await.problem(422, "invalid");
    assert_eq!(short["defects"][0]["at"], "room.draw_lead_seconds", "{short}");
    publish("right", in_seconds(3_800), quicknet(240)).await.ok(200);
    // The engine's own come each second.
    let local = |lead: u32| json!({ "draw_lead_seconds": lead });
    let none = publish("none", in_seconds(60), local(1)).await.problem(422, "invalid");
    assert_eq!(none["defects"][0]["at"], "room.draw_lead_seconds", "{none}");
    publish("local", in_seconds(60), local(10)).await.ok(200);
    publish("past", in_seconds(-60), local(10)).await.problem(422, "invalid");
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
    let by = DrawBy::Beacon(fake_beacon::rounds());
    let stock = sale.seat_legs();
    publish::publish(ports, sale.id(), &settings, stock, &by, now).await.unwrap();
    fixture.get(Sender::Nobody, "/sales/died").await.problem(404, "not-found");
    let mut other = file.clone();
    other["room"] = json!({});
    fixture.publish(&other).await.problem(409, "room-differs");
    fixture.publish(&file).await.ok(200);
    assert_eq!(ports.rooms().secret(sale.id()).await, Ok(None));
}

impl Fixture {
    async fn join(&self, buyer: &str, sale: &str, body: &Value) -> super::Got {
        self.json(Sender::Buyer(buyer), "POST", &format!("/sales/{sale}/places"), body).await
    }

    /// The place token of a buyer who joins, and the index.
    async fn place_token(&self, buyer: &str, sale: &str) -> (Value, u32) {
        let joined = self.join(buyer, sale, &json!({})).await.ok(201);
        (joined["place_token"].clone(), u32::try_from(joined["index"].as_u64().unwrap()).unwrap())
    }

    async fn command(&self, sale: &str, body: &Value) -> super::Got {
        let target = format!("/sales/{sale}/room/commands");
        self.json(Sender::Operator, "POST", &target, body).await
    }
}

/// A hall with a room that is open: its draw is due at once.
fn open_hall(id: &str) -> Value {
    let mut file = waiting(id);
    file["opens_at"] = json!("2020-01-01T00:00:00Z");
    // No round of a beacon is ahead of it.
    file["room"]["beacon"] = json!("operator");
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_is_joined_drawn_shown_and_checked() {
    let fixture = Fixture::start().await;
    let ports = &fixture.app.ports;
    fixture.publish(&open_hall("hall")).await.ok(200);
    let id = SaleId::new("hall").unwrap();
    let nobody = Sender::Nobody;
    let joining = fixture.get(nobody, "/sales/hall/room").await;
    assert_eq!(joining.caching(), "public, max-age=1");
    assert_eq!(joining.ok(200)["state"], "drawing", "its closing is past");

    // One membership a buyer, from whatever process.
    let alice = fixture.join("alice", "hall", &json!({})).await.ok(201);
    assert_eq!((&alice["index"], &alice["window"]), (&json!(0), &json!("first")));
    assert_eq!((&alice["standing"], alice.get("retry_ms")), (&json!("certain"), None));
    let bob = fixture.join("bob", "hall", &json!({ "more_time": true })).await.ok(201);
    let again = fixture.join("alice", "hall", &json!({ "group": "all" })).await.ok(201);
    assert_eq!([&again["index"], &again["nonce"]], [&alice["index"], &alice["nonce"]]);
    assert_ne!(alice["nonce"], bob["nonce"]);
    let another = fixture.another_process().await;
    let headers = json!({ "content-type": "application/json" });
    let request = super::request(Sender::Buyer("bob"), "POST", "/sales/hall/places", headers, "{}");
    assert_eq!(super::send(&another, request).await.ok(201)["index"], bob["index"]);

    // What is shown of those who have joined is of no record, and the head is that of the last one.
    let first = ports.rooms().last_record(&id).await.unwrap().unwrap();
    let joined = loop {
        let shown = fixture.get(nobody, "/sales/hall/room").await.ok(200);
        if shown["groups"][0]["joined"].as_u64() >= Some(2) {
            break shown;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert_eq!((first.number, &joined["head"]), (0, &json!(first.hash())));

    assert_eq!(draw(ports, &id, Timestamp::now()).await, Ok(Drawing::Drawn));
    let log = fixture.get(nobody, "/sales/hall/room/log").await;
    assert_eq!(log.caching(), "public, max-age=1");
    let lines = log.body.as_str().unwrap().to_owned();
    let records: Vec<Record> = lines.lines().map(|line| Record::from_line(line).unwrap()).collect();
    assert_eq!(records[1].before, Hash::of_parts(&[lines.lines().next().unwrap().as_bytes()]));
    let closing = records.last().unwrap().state.groups[0].closed.unwrap().closing;
    let seed = records.last().unwrap().state.groups[0].seed.unwrap();

    // The own leaf is in a chunk that leads to the root.
    let leaves = fixture.get(nobody, "/sales/hall/room/leaves/all/0").await;
    assert_eq!(leaves.caching(), IMMUTABLE);
    let chunk: Chunk = serde_json::from_value(leaves.ok(200)).unwrap();
    assert_eq!(root_by_path(root(&chunk.leaves), 0, 1, &chunk.path), Some(closing.root));
    let buyer = UserId::new("alice").unwrap();
    let member = engine::domain::admission::room::draw::Member {
        sale: &id,
        group: &chunk.group,
        index: 0,
        buyer: &buyer,
        nonce: alice["nonce"].as_str().unwrap().parse().unwrap(),
    };
    assert_eq!(chunk.leaves[0], member.leaf());

    // The window of an index, from which anybody computes the place.
    let window = fixture.get(nobody, "/sales/hall/room/windows/all/1").await;
    assert_eq!(window.caching(), IMMUTABLE);
    let window = window.ok(200);
    // What a process had in stock is a gap.
    let count = closing.count;
    assert_eq!((&window["first"], &window["end"]), (&json!(0), &json!(count)));
    assert_eq!(window["seed"], seed.to_string());
    assert!(Window::new(seed, 0, count).place(1).is_some_and(|place| place < count));
    let later = format!("windows/all/{count}");
    for missing in ["leaves/all/1", "leaves/club/0", later.as_str(), "windows/club/0"] {
        let target = format!("/sales/hall/room/{missing}");
        fixture.get(nobody, &target).await.problem(404, "not-found");
    }
    fixture.get(nobody, "/sales/hall/room/log?from=x").await.problem(422, "invalid");
    let empty = fixture.get(nobody, "/sales/hall/room/log?from=1000").await;
    assert_eq!(empty.body, json!(""));
}

/// Makes a turn by a clock that is ahead of the others by so much.
async fn turn_ahead(fixture: &Fixture, id: &SaleId, seconds: i64) {
    let ports = &fixture.app.ports;
    let room = published(ports, id).await.unwrap().unwrap();
    let left = Left { free: 100, holds: false, tiers: vec![50, 50], is_held_back: false };
    let now = Timestamp::now().plus_seconds(seconds);
    turn(ports, &room, async { Some(left) }, now).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_a_due_place_is_let_in_and_nobody_else() {
    let fixture = Fixture::start().await;
    let mut file = open_hall("hall");
    file["room"]["max_attempts"] = json!(3);
    fixture.publish(&file).await.ok(200);
    fixture.publish(&open_hall("other")).await.ok(200);
    let id = SaleId::new("hall").unwrap();
    let (alice, alices) = fixture.place_token("alice", "hall").await;
    let (bob, bobs) = fixture.place_token("bob", "hall").await;
    let (elsewhere, _) = fixture.place_token("alice", "other").await;
    let ask = async |buyer: &str, place: Option<(&Value, u32)>| {
        let mut body = json!({ "tickets": 2 });
        if let Some((token, place)) = place {
            body["place"] = json!({ "token": token, "place": place });
        }
        let target = "/sales/hall/admissions";
        // The gate's lock is a millisecond.
        loop {
            let got = fixture.json(Sender::Buyer(buyer), "POST", target, &body).await;
            if got.body["type"] != "/problems/too-many-requests" {
                break got;
            }
        }
    };
    ask("alice", None).await.problem(403, "place-required");
    let early = ask("alice", Some((&alice, 0))).await;
    assert_eq!(early.problem(429, "place-not-due")["ahead"], 0, "nothing is drawn");

    assert_eq!(draw(&fixture.app.ports, &id, Timestamp::now()).await, Ok(Drawing::Drawn));
    turn_ahead(&fixture, &id, 10).await;
    let last = fixture.app.ports.rooms().last_record(&id).await.unwrap().unwrap();
    let group = &last.state.groups[0];
    let (count, seed) = (group.closed.unwrap().closing.count, group.seed.unwrap());
    assert_eq!(group.serving, count, "{last:?}");
    let place = |index: u32| Window::new(seed, 0, count).place(index).unwrap();
    let due = async || ask("alice", Some((&alice, place(alices)))).await;
    *fixture.app.room_memory.lock().unwrap() = RoomMemory::default();
    let admission = due().await.ok(201)["token"].clone();
    let ahead = ask("alice", Some((&alice, count + 6))).await;
    assert_eq!(ahead.problem(429, "place-not-due")["ahead"], 6);
    let forged = json!(format!("{}x", alice.as_str().unwrap()));
    for (buyer, token, claimed) in [
        ("alice", &forged, place(alices)),
        ("alice", &json!("none"), place(alices)),
        ("alice", &admission, place(alices)),
        ("alice", &elsewhere, place(alices)),
        ("alice", &alice, place(bobs)),
        ("alice", &bob, place(bobs)),
        ("bob", &alice, place(alices)),
    ] {
        ask(buyer, Some((token, claimed))).await.problem(403, "place-invalid");
    }

    // An order is counted for the next turn; the visit has three admissions.
    let order = async |admission: &Value| {
        let lines = json!([{ "tier": "vip", "best": { "count": 2 } }]);
        let body = json!({ "admission": admission, "lines": lines });
        loop {
            let target = "/sales/hall/orders";
            let got = fixture.json(Sender::Buyer("alice"), "POST", target, &body).await;
            if got.body["type"] != "/problems/too-many-requests" {
                break got;
            }
        }
    };
    let made = order(&admission).await.ok(201);
    let tally = fixture.app.ports.board().tally(&id, 0, Timestamp::now()).await.unwrap();
    assert_eq!((tally.came, tally.held), (1, 2));
    // A new one ends the one before, which finds what it has made and makes nothing more.
    let second = due().await.ok(201)["token"].clone();
    assert_eq!(order(&admission).await.ok(201)["order"], made["order"]);
    let third = due().await.ok(201)["token"].clone();
    let ended = order(&second).await.problem(403, "not-admitted");
    assert!(ended["detail"].as_str().unwrap().contains("later admission"), "{ended}");
    assert_ne!(order(&third).await.ok(201)["order"], made["order"]);
    due().await.problem(403, "too-many-attempts");

    // Nobody came for bob's place in time: three minutes of the clock of visits, a minute a turn at most.
    for minutes in 1..=5 {
        turn_ahead(&fixture, &id, 60 * minutes).await;
    }
    // As a second later: what the gate remembers is that old at most.
    *fixture.app.room_memory.lock().unwrap() = RoomMemory::default();
    ask("bob", Some((&bob, place(bobs)))).await.problem(410, "place-run-out");
    let again = fixture.join("bob", "hall", &json!({})).await.ok(201);
    assert_eq!(again["window"], "later");
    fixture.command("hall", &json!({ "command": "pause" })).await.ok(200);
    *fixture.app.room_memory.lock().unwrap() = RoomMemory::default();
    ask("alice", Some((&alice, place(alices)))).await.problem(503, "room-paused");
}

/// A buyer at the map does not lose the place while choosing: the first touch begins the visit, which lasts ten minutes
/// and not the three in which a place waits for its buyer. Whoever never came loses the place as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_looks_at_the_map_for_four_minutes_has_a_ticket() {
    let fixture = Fixture::start().await;
    let mut file = open_hall("hall");
    file["room"] = json!({ "visit_seconds": 600, "beacon": "operator" });
    fixture.publish(&file).await.ok(200);
    fixture.publish(&open_hall("other")).await.ok(200);
    let id = SaleId::new("hall").unwrap();
    let (alice, alices) = fixture.place_token("alice", "hall").await;
    let (bob, bobs) = fixture.place_token("bob", "hall").await;
    let (elsewhere, _) = fixture.place_token("alice", "other").await;
    let post = async |buyer: Sender<'_>, what: &str, body: &Value| loop {
        let got = fixture.json(buyer, "POST", &format!("/sales/hall/{what}"), body).await;
        // The gate's lock is a millisecond.
        if got.body["type"] != "/problems/too-many-requests" {
            break got;
        }
    };
    let look = async |buyer: &str, token: &Value, place: u32| {
        let body = json!({ "place": { "token": token, "place": place } });
        post(Sender::Buyer(buyer), "visits", &body).await
    };
    let forget = || *fixture.app.room_memory.lock().unwrap() = RoomMemory::default();
    look("alice", &alice, 0).await.problem(429, "place-not-due");
    assert_eq!(draw(&fixture.app.ports, &id, Timestamp::now()).await, Ok(Drawing::Drawn));
    turn_ahead(&fixture, &id, 10).await;
    forget();
    let last = fixture.app.ports.rooms().last_record(&id).await.unwrap().unwrap();
    let group = &last.state.groups[0];
    let (count, seed) = (group.closed.unwrap().closing.count, group.seed.unwrap());
    let place = |index: u32| Window::new(seed, 0, count).place(index).unwrap();

    let forged = json!(format!("{}x", alice.as_str().unwrap()));
    for (buyer, token, claimed) in [
        ("alice", &forged, place(alices)),
        ("alice", &elsewhere, place(alices)),
        ("alice", &alice, place(bobs)),
        ("bob", &alice, place(alices)),
    ] {
        look(buyer, token, claimed).await.problem(403, "place-invalid");
    }
    let claim = json!({ "place": { "token": alice, "place": place(alices) } });
    post(Sender::Nobody, "visits", &claim).await.problem(401, "not-authenticated");
    post(Sender::Buyer("alice"), "visits", &json!({})).await.problem(422, "invalid");
    let tally = async || fixture.app.ports.board().tally(&id, 0, Timestamp::now()).await.unwrap();
    assert_eq!(tally().await.came, 0, "who is refused has not come");

    // Two devices, and again and again: one visit, whose end stays.
    let began = Timestamp::now();
    let ends_at = |got: super::Got| -> Timestamp {
        got.ok(200)["ends_at"].as_str().unwrap().parse().unwrap()
    };
    let first = ends_at(look("alice", &alice, place(alices)).await);
    assert!((595_000..=605_000).contains(&first.ms_since(began)), "{first} {began}");
    for _ in 0..12 {
        let again = ends_at(look("alice", &alice, place(alices)).await);
        assert!(again.ms_since(first).abs() < 10_000, "{again} {first}");
    }
    let counted = tally().await;
    assert_eq!((counted.came, counted.looked, counted.asked_after_look), (1, 1, 0));

    for minutes in 1..=4 {
        turn_ahead(&fixture, &id, 60 * minutes).await;
    }
    forget();
    look("bob", &bob, place(bobs)).await.problem(410, "place-run-out");
    let late = ends_at(look("alice", &alice, place(alices)).await);
    assert!(
        late.ms_since(first) < -200_000,
        "the clock of visits is four minutes on: {late} {first}"
    );
    let body = json!({ "tickets": 2, "place": claim["place"] });
    let admission =
        post(Sender::Buyer("alice"), "admissions", &body).await.ok(201)["token"].clone();
    let body =
        json!({ "admission": admission, "lines": [{ "tier": "vip", "best": { "count": 2 } }] });
    post(Sender::Buyer("alice"), "orders", &body).await.ok(201);
    let counted = tally().await;
    assert_eq!((counted.came, counted.looked, counted.asked_late), (1, 1, 1));

    for minutes in 5..=11 {
        turn_ahead(&fixture, &id, 60 * minutes).await;
    }
    forget();
    look("alice", &alice, place(alices)).await.problem(410, "visit-over");
    fixture.command("hall", &json!({ "command": "pause" })).await.ok(200);
    forget();
    look("alice", &alice, place(alices)).await.problem(503, "room-paused");
    post(Sender::Buyer("alice"), "visits", &json!({ "place": claim["place"], "x": 1 }))
        .await
        .problem(422, "invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_has_no_script_sees_the_room_as_a_page() {
    let fixture = Fixture::start().await;
    let mut file = open_hall("hall");
    file["title"] = json!("<script>alert(1)</script> & \"Friends\"");
    fixture.publish(&file).await.ok(200);
    let shown = async || fixture.get(Sender::Nobody, "/s/hall/room/plain").await.page().to_owned();
    let drawing = shown().await;
    for part in [
        "<h1>&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;Friends&quot;</h1>",
        "Joining it, choosing seats and paying need a browser with JavaScript",
        "加入等候室、选座和付款需要启用 JavaScript",
        "<p lang=\"en\">Places are being drawn.</p><p lang=\"zh-Hans\">正在抽签。</p>",
        "<meta http-equiv=\"refresh\" content=\"15\">",
        "<html lang=\"en\">",
    ] {
        assert!(drawing.contains(part), "{part}: {drawing}");
    }
    assert!(!drawing.contains("<script"), "{drawing}");
    fixture.join("alice", "hall", &json!({})).await.ok(201);
    let id = SaleId::new("hall").unwrap();
    assert_eq!(draw(&fixture.app.ports, &id, Timestamp::now()).await, Ok(Drawing::Drawn));
    fixture.command("hall", &json!({ "command": "pause" })).await.ok(200);
    let paused = shown().await;
    assert!(paused.contains("主办方已暂停销售"), "{paused}");
    let room = fixture.get(Sender::Nobody, "/sales/hall/room").await.ok(200);
    let group = &room["groups"][0];
    let [serving, passed, joined] = ["serving", "passed", "joined"].map(|name| &group[name]);
    let row = format!("<td>{serving}</td><td>{passed}</td><td>{joined}</td>");
    assert!(paused.contains(&row), "{row}: {paused}");
    fixture.publish(&hall_without_a_room()).await.ok(200);
    fixture.get(Sender::Nobody, "/s/small/room/plain").await.problem(404, "not-found");
    fixture.get(Sender::Nobody, "/s/nowhere/room/plain").await.problem(404, "not-found");
}

/// A sale that has no room.
fn hall_without_a_room() -> Value {
    let mut file = super::hall();
    file["sale"] = json!("small");
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operators_command_is_a_record_and_is_shown_at_once() {
    let fixture = Fixture::start().await;
    fixture.publish(&open_hall("hall")).await.ok(200);
    let id = SaleId::new("hall").unwrap();
    assert_eq!(draw(&fixture.app.ports, &id, Timestamp::now()).await, Ok(Drawing::Drawn));
    let shown = async || fixture.get(Sender::Nobody, "/sales/hall/room").await.ok(200);
    let state = async |body: Value| fixture.command("hall", &body).await.ok(200)["state"].clone();
    assert_eq!(state(json!({ "command": "pause" })).await, "paused");
    assert_eq!(shown().await["state"], "paused");
    assert_eq!(state(json!({ "command": "resume" })).await, "serving");
    let said = json!({ "command": "notice", "notice": "Doors open at seven." });
    fixture.command("hall", &said).await.ok(200);
    assert_eq!(shown().await["notice"], "Doors open at seven.");
    let plain = fixture.get(Sender::Nobody, "/s/hall/room/plain").await;
    assert_eq!(plain.caching(), "public, max-age=1");
    let text = plain.page();
    assert!(text.contains("<blockquote>Doors open at seven.</blockquote>"), "{text}");
    assert_eq!(state(json!({ "command": "sold_out", "sold_out": true })).await, "sold_out");
    assert_eq!(state(json!({ "command": "sold_out", "sold_out": false })).await, "serving");
    let refused = fixture.command("hall", &json!({ "command": "notice", "notice": "a\nb" })).await;
    assert_eq!(refused.problem(422, "invalid")["at"], "notice");
    assert_eq!(state(json!({ "command": "close" })).await, "closed");
    fixture.command("hall", &json!({ "command": "resume" })).await.problem(409, "room-closed");

    // Fifty records are a page that never changes; here they are fewer.
    let log = fixture.get(Sender::Nobody, "/sales/hall/room/log?from=1").await;
    assert!(log.body.as_str().unwrap().contains(r#"{"command":"pause"}"#));
    let records = fixture.app.ports.rooms().last_record(&id).await.unwrap().unwrap().number;
    for _ in records..50 {
        let last = fixture.app.ports.rooms().last_record(&id).await.unwrap().unwrap();
        let room = published(&fixture.app.ports, &id).await.unwrap().unwrap();
        let given = engine::domain::admission::room::serving::Given {
            joined: vec![0],
            ..Default::default()
        };
        let next = last.next(&room, last.at_ms + 1, Vec::new(), given).unwrap();
        fixture.app.ports.rooms().append(&id, &next).await.unwrap();
    }
    let full = fixture.get(Sender::Nobody, "/sales/hall/room/log").await;
    assert_eq!(full.caching(), IMMUTABLE);
    assert_eq!(full.body.as_str().unwrap().lines().count(), 50);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_join_or_run_a_room_is_told_why() {
    let fixture = Fixture::start().await;
    let mut none = hall();
    none["sale"] = json!("none");
    let mut over = waiting("over");
    over["opens_at"] = json!("2020-01-01T00:00:00Z");
    over["room"] = json!({ "beacon": "operator" });
    over["closes_at"] = json!("2021-01-01T00:00:00Z");
    let mut soon = waiting("soon");
    soon["room"] = json!({ "joins_open_at": "2098-12-31T00:00:00Z" });
    let mut late = open_hall("late");
    late["room"] = json!({ "registered_only": true, "beacon": "operator" });
    for file in [none, over, soon, late, waiting("hall")] {
        fixture.publish(&file).await.ok(200);
    }
    let join = async |sale: &str| fixture.join("alice", sale, &json!({})).await;
    join("nowhere").await.problem(404, "not-found");
    join("none").await.problem(404, "not-found");
    join("over").await.problem(403, "sale-closed");
    let early = join("soon").await.problem(403, "joins-not-open");
    assert_eq!(early["joins_open_at"], "2098-12-31T00:00:00.000Z");
    join("late").await.problem(403, "registration-over");
    join("hall").await.ok(201);
    let club = fixture.join("bob", "hall", &json!({ "group": "club" })).await;
    assert_eq!(club.problem(422, "invalid")["at"], "group");
    fixture.join("bob", "hall", &json!({ "index": 0 })).await.problem(422, "invalid");
    let (nobody, alice) = (Sender::Nobody, Sender::Buyer("alice"));
    let places = "/sales/hall/places";
    fixture.json(nobody, "POST", places, &json!({})).await.problem(401, "not-authenticated");
    let commands = "/sales/hall/room/commands";
    let pause = json!({ "command": "pause" });
    for sender in [nobody, alice] {
        fixture.json(sender, "POST", commands, &pause).await.problem(401, "not-authenticated");
    }
    fixture.command("none", &pause).await.problem(404, "not-found");
    fixture.command("nowhere", &pause).await.problem(404, "not-found");
    for sale in ["none", "nowhere"] {
        for target in ["room", "room/log", "room/leaves/all/0", "room/windows/all/0"] {
            let target = format!("/sales/{sale}/{target}");
            fixture.get(nobody, &target).await.problem(404, "not-found");
        }
    }
}
