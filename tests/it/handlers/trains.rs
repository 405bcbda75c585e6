//! Trains found by day and stops, over HTTP.

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::ids::{Epoch, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::{SaleFile, timetable};
use engine::ports::{Catalogue as _, ChangeReply, Ports as _};
use serde_json::{Value, json};
use shared::dynamodb::train_call_item;

use super::{Fixture, Sender};

/// The search of these tests.
const DAY: &str = "date=2026-11-21&from=VNP&to=NGH";

/// A train of three stops that leaves at a time, on the day or the next.
fn train(id: &str, departs: &str) -> Value {
    let (hours, minutes) = departs.split_once(':').unwrap();
    let later = |by: u32| format!("{:02}:{minutes}", hours.parse::<u32>().unwrap() + by);
    json!({
        "sale": id, "title": id, "currency": "CNY",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 5, "pay_window_seconds": 900, "runs_on": "2026-11-21",
        "stops": [
            { "stop": "VNP", "name": "北京南", "departs": departs },
            { "stop": "JGK", "name": "济南西", "arrives": later(1), "departs": later(1) },
            { "stop": "NGH", "name": "宁波", "arrives": later(5) }
        ],
        "tiers": [
            { "tier": "second", "name": "Second", "general_admission": 12,
              "fares": [{ "from": "VNP", "to": "NGH", "price_minor": 500 }, { "from": "JGK", "to": "NGH", "price_minor": 300 }] },
            { "tier": "first", "name": "First", "price_minor": 900, "general_admission": 2 }
        ]
    })
}

async fn search(fixture: &Fixture, query: &str) -> Value {
    fixture.get(Sender::Nobody, &format!("/trains?{query}")).await.ok(200)
}

fn found(reply: &Value) -> Vec<&str> {
    reply["trains"].as_array().unwrap().iter().map(|one| one["sale"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trains_are_found_by_day_and_stops_with_what_is_left() {
    let fixture = Fixture::start().await;
    for (id, departs) in [("g3", "22:10"), ("g2", "08:05"), ("g1", "08:05"), ("g4", "23:30")] {
        fixture.publish(&train(id, departs)).await.ok(200);
    }
    let all = search(&fixture, DAY).await;
    assert_eq!(found(&all), ["g1", "g2", "g3", "g4"], "by time, then by name");
    assert_eq!(
        (&all["date"], &all["from"], &all["to"], all.get("next")),
        (&json!("2026-11-21"), &json!("vnp"), &json!("ngh"), None)
    );
    let first = &all["trains"][0];
    assert_eq!(first["from"], json!({ "stop": "VNP", "name": "北京南" }));
    assert_eq!(first["to"], json!({ "stop": "NGH", "name": "宁波" }));
    assert_eq!(
        (&first["departs_at"], &first["arrives_at"]),
        (&json!("2026-11-21T08:05"), &json!("2026-11-21T13:05"))
    );
    assert_eq!(all["trains"][2]["arrives_at"], "2026-11-22T03:10");
    let tiers = json!([
        { "tier": "second", "name": "Second", "price_minor": 500, "available": 12 },
        { "tier": "first", "name": "First", "price_minor": 900, "available": 2 }
    ]);
    assert_eq!((&first["tiers"], &first["state"]), (&tiers, &json!("open")));
    assert!(first["as_of"].is_string());
    let reply = fixture.get(Sender::Nobody, &format!("/trains?{DAY}")).await;
    assert_eq!(reply.caching(), "public, max-age=1");

    // By the names that people know, whatever the case; of ids too.
    let by_name = "date=2026-11-21&from=%E5%8C%97%E4%BA%AC%E5%8D%97&to=%E5%AE%81%E6%B3%A2";
    for query in [by_name, "date=2026-11-21&from=vnp&to=%20Ngh"] {
        assert_eq!(search(&fixture, query).await["trains"], all["trains"], "{query}");
    }
    // A day is that of the stop where one boards.
    for (query, expected) in [
        ("date=2026-11-21&from=JGK&to=NGH", ["g1", "g2", "g3"].as_slice()),
        ("date=2026-11-22&from=JGK&to=NGH", &["g4"]),
        ("date=2026-11-20&from=VNP&to=NGH", &[]),
        ("date=2026-11-21&from=NGH&to=VNP", &[]),
        ("date=2026-11-21&from=VNP&to=XXX", &[]),
        ("date=2026-11-21&from=XXX&to=NGH", &[]),
    ] {
        let reply = search(&fixture, query).await;
        assert_eq!((found(&reply), reply.get("next")), (expected.to_vec(), None), "{query}");
    }
    // A journey that one tier sells.
    let short = search(&fixture, "date=2026-11-21&from=VNP&to=JGK").await;
    assert_eq!(short["trains"][0]["tiers"].as_array().unwrap().len(), 1);

    // A page at a time.
    let (mut pages, mut query) = (Vec::new(), format!("{DAY}&limit=3"));
    loop {
        let page = search(&fixture, &query).await;
        pages.push(found(&page).len());
        let Some(next) = page.get("next") else { break };
        query = format!("{DAY}&limit=3&cursor={}", next.as_str().unwrap());
    }
    assert_eq!(pages, [3, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_is_found_as_it_is_then_and_leaves_nothing_behind() {
    let fixture = Fixture::start().await;
    for (id, departs) in [("g1", "08:05"), ("g2", "08:05"), ("g3", "22:10"), ("g4", "23:30")] {
        fixture.publish(&train(id, departs)).await.ok(200);
    }
    assert_eq!(fixture.train_items().await, 4 * 2 * 2, "two stops by id and by name");
    // Other times, another day.
    fixture.publish(&train("g1", "23:45")).await.ok(200);
    assert_eq!(found(&search(&fixture, DAY).await), ["g2", "g3", "g4", "g1"]);
    let after_midnight = search(&fixture, "date=2026-11-22&from=JGK&to=NGH").await;
    assert_eq!(found(&after_midnight), ["g4", "g1"]);
    let mut moved = train("g2", "08:05");
    moved["runs_on"] = json!("2026-11-23");
    fixture.publish(&moved).await.ok(200);
    assert_eq!(found(&search(&fixture, DAY).await), ["g3", "g4", "g1"]);
    assert_eq!(fixture.train_items().await, 16);
    // Paused, and not open yet: shown as such. Closed: not shown.
    let mut paused = train("g3", "22:10");
    paused["state"] = json!("paused");
    fixture.publish(&paused).await.ok(200);
    assert_eq!(search(&fixture, DAY).await["trains"][0]["state"], "paused");
    let mut other = train("g4", "23:30");
    other["opens_at"] = json!("2098-01-01T00:00:00Z");
    fixture.publish(&other).await.ok(200);
    assert_eq!(search(&fixture, DAY).await["trains"][1]["state"], "upcoming");
    other["opens_at"] = json!("2020-01-01T00:00:00Z");
    other["closes_at"] = json!("2020-01-02T00:00:00Z");
    fixture.publish(&other).await.ok(200);
    assert_eq!(found(&search(&fixture, DAY).await), ["g3", "g1"]);
    // Cancelled.
    let mut cancelled = train("g1", "23:45");
    cancelled["state"] = json!("cancelled");
    fixture.publish(&cancelled).await.ok(200);
    assert_eq!(found(&search(&fixture, DAY).await), ["g3"]);
    assert_eq!(fixture.train_items().await, 12);
    // Archived.
    let catalogue = fixture.app.ports.catalogue();
    let (g3, epoch) = (SaleId::new("g3").unwrap(), Epoch::new("over").unwrap());
    let now = Timestamp::now();
    catalogue.lease(&g3, &epoch, now, now.plus_seconds(60)).await.unwrap();
    catalogue.retire(&g3, &epoch, 2).await.unwrap();
    assert_eq!(found(&search(&fixture, DAY).await), [""; 0], "its items are still there");
    catalogue.delist(&g3).await.unwrap();
    assert_eq!(fixture.train_items().await, 8);
    // Without a day no search finds it.
    let mut without = train("g2", "08:05");
    without.as_object_mut().unwrap().remove("runs_on");
    for stop in without["stops"].as_array_mut().unwrap() {
        stop.as_object_mut().unwrap().retain(|name, _| name == "stop" || name == "name");
    }
    fixture.publish(&without).await.ok(200);
    assert_eq!(fixture.train_items().await, 4, "of the train that is closed");
}

/// A hint too many is passed over; a slow publication takes nothing away that a later one needs, and one that
/// comes too late leaves nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leftover_costs_a_look_and_a_late_publication_changes_nothing() {
    let fixture = Fixture::start().await;
    fixture.publish(&train("g1", "08:05")).await.ok(200);
    let file = |departs: &str| serde_json::from_value::<SaleFile>(train("g1", departs)).unwrap();
    let item = |departs: &str| {
        let call = timetable::calls(&file(departs)).remove(0);
        train_call_item(&call, 1)
    };
    // What a process that died left there, and a call of a train that nobody knows.
    let mut ghost = item("07:00");
    ghost.insert("sk".to_owned(), AttributeValue::S("0700#ghost".to_owned()));
    for item in [item("07:00"), ghost] {
        let put = fixture.dynamodb.put_item().table_name(fixture.sales_table());
        put.set_item(Some(item)).send().await.unwrap();
    }
    let reply = search(&fixture, &format!("{DAY}&limit=2")).await;
    assert_eq!(found(&reply), [""; 0], "a page of leftovers");
    let next = reply["next"].as_str().unwrap();
    assert_eq!(found(&search(&fixture, &format!("{DAY}&cursor={next}")).await), ["g1"]);

    // Somebody else publishes other times as the same version: the loser's are gone, the winner's stay.
    let catalogue = fixture.app.ports.catalogue();
    let before = fixture.train_items().await;
    for times in ["09:30", "08:05"] {
        let late = catalogue.publish(&file(times), None).await.unwrap();
        assert_eq!(late, ChangeReply::Conflict);
        assert_eq!(fixture.train_items().await, before, "{times}");
    }
    assert_eq!(found(&search(&fixture, DAY).await), ["g1"]);
}

/// The stops of a day: name and ids of each.
async fn stops(fixture: &Fixture, query: &str) -> Vec<String> {
    let reply = fixture.get(Sender::Nobody, &format!("/stops?{query}")).await.ok(200);
    let text = |stop: &Value| format!("{} {}", stop["name"].as_str().unwrap(), stop["stops"]);
    reply["stops"].as_array().unwrap().iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stops_of_a_day_are_those_of_its_trains() {
    let fixture = Fixture::start().await;
    let (day, next_day) = ("date=2026-11-21", "date=2026-11-22");
    assert_eq!(stops(&fixture, day).await, [""; 0]);
    for (id, departs) in [("g1", "08:05"), ("g2", "08:05"), ("g4", "23:30")] {
        fixture.publish(&train(id, departs)).await.ok(200);
    }
    let all = [r#"北京南 ["VNP"]"#, r#"宁波 ["NGH"]"#, r#"济南西 ["JGK"]"#];
    assert_eq!(stops(&fixture, day).await, all, "where people leave a train, too");
    assert_eq!(stops(&fixture, next_day).await, all[1..], "a night train is boarded there later");
    assert_eq!(stops(&fixture, "date=2026-11-20").await, [""; 0]);
    let reply = fixture.get(Sender::Nobody, &format!("/stops?{day}")).await;
    assert_eq!(reply.caching(), "public, max-age=60");

    // Another station of one name, and one of that name in capitals.
    let mut other = train("g5", "09:00");
    other["stops"][0] = json!({ "stop": "X1", "name": "Neustadt", "departs": "09:00" });
    other["stops"][2] = json!({ "stop": "X2", "name": "NEUSTADT", "arrives": "14:00" });
    let fare = json!([{ "from": "X1", "to": "X2", "price_minor": 500 }]);
    other["tiers"][0]["fares"] = fare;
    fixture.publish(&other).await.ok(200);
    let with_other = [r#"Neustadt ["X1","X2"]"#, all[0], all[1], all[2]];
    assert_eq!(stops(&fixture, day).await, with_other);

    // A page at a time: none ends amid a name.
    for limit in 1..=4 {
        let (mut pages, mut query) = (Vec::new(), format!("{day}&limit={limit}"));
        loop {
            let page = fixture.get(Sender::Nobody, &format!("/stops?{query}")).await.ok(200);
            let names = page["stops"].as_array().unwrap().iter();
            pages.extend(names.map(|stop| stop["name"].as_str().unwrap().to_lowercase()));
            let Some(next) = page.get("next") else { break };
            query = format!("{day}&limit={limit}&cursor={}", next.as_str().unwrap());
        }
        if limit == 1 {
            assert_eq!(pages.remove(0), "neustadt", "a page of one stop is of one name");
        }
        assert_eq!(pages, ["neustadt", "北京南", "宁波", "济南西"], "{limit}");
    }
    for (query, at) in [
        ("", "date"),
        ("date=2026-02-30", "date"),
        ("date=today", "date"),
        ("date=2026-11-21&limit=0", "limit"),
        ("date=2026-11-21&limit=4001", "limit"),
        ("date=2026-11-21&cursor=MTo", "cursor"),
    ] {
        let refused = fixture.get(Sender::Nobody, &format!("/stops?{query}")).await;
        assert_eq!(refused.problem(422, "invalid")["at"], at, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_train_of_a_stop_takes_it_off_the_list() {
    let fixture = Fixture::start().await;
    let day = "date=2026-11-21";
    for id in ["g1", "g2"] {
        fixture.publish(&train(id, "08:05")).await.ok(200);
    }
    // A list of three stops, and two trains at each.
    assert_eq!(fixture.items_under("#stops#").await, 3 + 3 * 2);
    let all = stops(&fixture, day).await;
    let mut cancelled = train("g2", "08:05");
    cancelled["state"] = json!("cancelled");
    fixture.publish(&cancelled).await.ok(200);
    assert_eq!(stops(&fixture, day).await, all, "another train calls there");
    assert_eq!(fixture.items_under("#stops#").await, 3 + 3);
    // It runs on another day from now on.
    let mut moved = train("g1", "08:05");
    moved["runs_on"] = json!("2026-11-23");
    fixture.publish(&moved).await.ok(200);
    assert_eq!(stops(&fixture, day).await, [""; 0]);
    let later = "date=2026-11-23";
    assert_eq!(stops(&fixture, later).await, all);
    // Somebody else was faster: the loser's stops are gone, the winner's stay.
    let catalogue = fixture.app.ports.catalogue();
    for runs_on in ["2026-11-21", "2026-11-23"] {
        let mut late = train("g1", "08:05");
        late["runs_on"] = json!(runs_on);
        let late: SaleFile = serde_json::from_value(late).unwrap();
        assert_eq!(catalogue.publish(&late, None).await.unwrap(), ChangeReply::Conflict);
        assert_eq!(stops(&fixture, day).await, [""; 0], "{runs_on}");
        assert_eq!(stops(&fixture, later).await, all, "{runs_on}");
    }
    assert_eq!(fixture.items_under("#stops#").await, 3 + 3);
    // Archived.
    let (g1, epoch) = (SaleId::new("g1").unwrap(), Epoch::new("over").unwrap());
    let now = Timestamp::now();
    catalogue.lease(&g1, &epoch, now, now.plus_seconds(60)).await.unwrap();
    catalogue.retire(&g1, &epoch, 2).await.unwrap();
    catalogue.delist(&g1).await.unwrap();
    assert_eq!(stops(&fixture, later).await, [""; 0]);
    assert_eq!(fixture.items_under("#stops#").await, 0);
}

/// Trains come and go at once: whatever the order, the list has the stops of those that are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_stays_while_a_train_comes_as_another_goes() {
    let fixture = Fixture::start().await;
    let catalogue = fixture.app.ports.catalogue();
    let file = |id: &str, state: &str| {
        let mut file = train(id, "08:05");
        file["state"] = json!(state);
        serde_json::from_value::<SaleFile>(file).unwrap()
    };
    fixture.publish(&train("g0", "08:05")).await.ok(200);
    for round in 0..20 {
        let (goes, comes) = (format!("g{round}"), format!("g{}", round + 1));
        let (cancelled, coming) = (file(&goes, "cancelled"), file(&comes, "open"));
        let (gone, come) =
            tokio::join!(catalogue.publish(&cancelled, Some(1)), catalogue.publish(&coming, None));
        assert_eq!((gone.unwrap(), come.unwrap()), (ChangeReply::Done, ChangeReply::Done));
        assert_eq!(stops(&fixture, "date=2026-11-21").await.len(), 3, "round {round}");
        assert_eq!(fixture.items_under("#stops#").await, 3 + 3, "round {round}");
    }
}

/// A stop that somebody is about to take away, and did not: it is in the list, and the next train writes it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mark_that_was_left_harms_nothing() {
    let fixture = Fixture::start().await;
    fixture.publish(&train("g1", "08:05")).await.ok(200);
    let update = fixture.dynamodb.update_item().table_name(fixture.sales_table());
    let key = |text: &str| AttributeValue::S(text.to_owned());
    let update = update.key("pk", key("#stops#2026-11-21")).key("sk", key("宁波\tngh"));
    let update = update.update_expression("SET leaving = :by");
    let update = update.expression_attribute_values(":by", key("a process that died"));
    update.send().await.unwrap();
    let day = "date=2026-11-21";
    assert_eq!(stops(&fixture, day).await.len(), 3);
    fixture.publish(&train("g2", "09:05")).await.ok(200);
    let get = fixture.dynamodb.get_item().table_name(fixture.sales_table());
    let get = get.key("pk", key("#stops#2026-11-21")).key("sk", key("宁波\tngh"));
    let written = get.send().await.unwrap().item.unwrap();
    assert!(!written.contains_key("leaving"), "{written:?}");
    assert_eq!(stops(&fixture, day).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_in_the_list_of_sales_says_when_and_where_it_leaves() {
    let fixture = Fixture::start().await;
    fixture.publish(&train("g1", "22:10")).await.ok(200);
    fixture.publish(&super::hall()).await.ok(200);
    let listed = fixture.get(Sender::Nobody, "/sales").await.ok(200);
    let route = json!({
        "from": "北京南", "to": "宁波",
        "departs_at": "2026-11-21T22:10", "arrives_at": "2026-11-22T03:10"
    });
    let mut routes: Vec<Value> =
        listed["sales"].as_array().unwrap().iter().map(|sale| sale["route"].clone()).collect();
    routes.sort_by_key(Value::is_null);
    assert_eq!(routes, [route.clone(), Value::Null]);
    let shown = fixture.get(Sender::Nobody, "/sales/g1").await.ok(200);
    assert_eq!(shown["route"], route);
    // A release that lists no routes replaces the terms and leaves the route, which is of another version then.
    fixture.list_as_of_version("g1", 2).await;
    let listed = fixture.get(Sender::Nobody, "/sales").await.ok(200);
    assert!(listed["sales"].as_array().unwrap().iter().all(|sale| sale["route"].is_null()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_says_from_what_price() {
    let fixture = Fixture::start().await;
    fixture.publish(&train("g1", "08:05")).await.ok(200);
    fixture.publish(&super::hall()).await.ok(200);
    let listed = fixture.get(Sender::Nobody, "/sales").await.ok(200);
    let price = |sale: &Value| (sale["price_from_minor"].clone(), sale["currency"].clone());
    assert_eq!(price(&listed["sales"][0]), (json!(300), json!("CNY")));
    for sale in listed["sales"].as_array().unwrap() {
        let path = format!("/sales/{}", sale["sale"].as_str().unwrap());
        let shown = fixture.get(Sender::Nobody, &path).await.ok(200);
        assert_eq!(price(&shown), price(sale));
        assert!(sale["price_from_minor"].is_u64());
    }
    // A release that lists no prices replaces the terms and leaves the price, which is of another version then.
    fixture.list_as_of_version("g1", 2).await;
    let listed = fixture.get(Sender::Nobody, "/sales").await.ok(200);
    assert_eq!(price(&listed["sales"][0]), (Value::Null, Value::Null));
}

/// A train that left its first stop when today began, and leaves the next one the day after tomorrow.
fn leaving() -> Value {
    let today = Timestamp::now().to_string();
    let mut file = train("g1", "00:00");
    file["runs_on"] = json!(today.split_once('T').unwrap().0);
    file["stops"] = json!([
        { "stop": "VNP", "name": "北京南", "departs": "00:00", "time_zone": "Etc/UTC" },
        { "stop": "JGK", "name": "济南西", "departs": "72:00", "time_zone": "Etc/UTC" },
        { "stop": "NGH", "name": "宁波", "arrives": "73:00", "time_zone": "Etc/UTC" }
    ]);
    file
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_left_is_neither_found_nor_sold() {
    let fixture = Fixture::start().await;
    let mut file = leaving();
    let published = fixture.publish(&file).await.ok(200);
    let day = |days: i64| Timestamp::now().plus_seconds(days * 86_400).to_string()[..10].to_owned();
    let found_from = async |stop: &str, days: i64| {
        let reply = search(&fixture, &format!("date={}&from={stop}&to=NGH", day(days))).await;
        reply["trains"].clone()
    };
    assert_eq!(found_from("VNP", 0).await, json!([]));
    let next = found_from("JGK", 3).await;
    assert_eq!(next[0]["closes_at"], format!("{}T00:00:00.000Z", day(3)), "of this journey");
    assert_eq!(
        (&next[0]["closes_at"], &next[0]["state"]),
        (&published["closes_at"], &json!("open"))
    );
    // The admission of a refused order is good for another journey.
    let token = fixture.admission("ada", "g1", 1).await["token"].clone();
    let from = |stop: &str| json!([{ "tier": "second", "from": stop, "to": "NGH", "best": { "count": 1 } }]);
    let refused = fixture.order("ada", "g1", &token, from("VNP")).await;
    let refused = refused.problem(410, "departed");
    assert_eq!(refused["departed_at"], format!("{}T00:00:00.000Z", day(0)));
    fixture.order("ada", "g1", &token, from("JGK")).await.ok(201);
    // Once it has left for good, the sale is over.
    file["stops"][1]["departs"] = json!("00:00");
    fixture.publish(&file).await.ok(200);
    let shown = fixture.get(Sender::Nobody, "/sales/g1").await.ok(200);
    assert_eq!(shown["state"], "closed");
    let body = json!({ "tickets": 1 });
    let late = fixture.json(Sender::Buyer("bob"), "POST", "/sales/g1/admissions", &body).await;
    late.problem(403, "sale-closed");
}

impl Fixture {
    /// Makes the list say that it repeats another version of a sale.
    async fn list_as_of_version(&self, sale: &str, version: u64) {
        let update = self.dynamodb.update_item().table_name(self.sales_table());
        let key = |text: &str| AttributeValue::S(text.to_owned());
        let update = update.key("pk", key("#sales")).key("sk", key(sale));
        let update = update.update_expression("SET version = :v");
        let version = AttributeValue::N(version.to_string());
        update.expression_attribute_values(":v", version).send().await.unwrap();
    }

    /// How many calls of trains the table has.
    async fn train_items(&self) -> usize {
        self.items_under("#trains#").await
    }

    /// How many items the table has in partitions that begin so.
    async fn items_under(&self, partition: &str) -> usize {
        let scan = self.dynamodb.scan().table_name(self.sales_table());
        let items = scan.send().await.unwrap().items.unwrap_or_default();
        items.iter().filter(|item| item["pk"].as_s().unwrap().starts_with(partition)).count()
    }

    fn sales_table(&self) -> String {
        self.orders_table.replace("orders", "sales")
    }
}
