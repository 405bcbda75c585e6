//! Attendees: what a stranger learns of them, what is kept of them, and that it can be erased.

use std::collections::BTreeSet;

use engine::domain::basics::ids::{AttendeeId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::ports::Ports as _;
use local::handlers::sync_db;
use ops::audit::{self, Options, Target};
use serde_json::{Value, json};
use shared::dynamodb::{Erased, Selection};
use tracing::Level;

use super::{Fixture, Sender, failures};
use crate::scripts::log::Log;

/// A standing concert at which each buyer may have four tickets.
fn concert(sale: &str) -> Value {
    json!({
        "sale": sale, "title": "Concert", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
        "tiers": [{ "tier": "floor", "name": "Floor", "price_minor": 100, "general_admission": 60 }]
    })
}

fn named(people: &[&str]) -> Value {
    json!([{ "tier": "floor", "best": { "count": people.len() }, "attendees": people }])
}

/// Every attribute of the table of orders, as text.
async fn records(fixture: &Fixture) -> String {
    let scan = fixture.dynamodb.scan().table_name(&fixture.orders_table).consistent_read(true);
    let items: Result<Vec<_>, _> = scan.into_paginator().items().send().try_collect().await;
    format!("{:?}", items.unwrap())
}

async fn assert_clean(fixture: &Fixture) {
    let paid = fixture.batch(&fixture.queues.sync.url).await;
    assert_eq!(failures(&sync_db::handle(&fixture.app, paid).await), 0);
    let target = Target::from_config(&fixture.config);
    let report = audit::run(&target, &Options::at(Timestamp::now())).await.unwrap();
    let violations: Vec<String> = report.violations().map(ToString::to_string).collect();
    assert_eq!(violations, [""; 0]);
}

/// The hashes that a sale claims, by the keys of the items.
fn hashes(records: &str, sale: &str) -> BTreeSet<String> {
    let before = format!("attendee#{sale}#");
    let parts = records.split(&before).skip(1);
    parts.map(|rest| rest.chars().take_while(char::is_ascii_hexdigit).collect()).collect()
}

/// Before there was a bound, all thousand answers said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_who_tries_a_thousand_ids_learns_of_as_many_as_anybody_may_name() {
    const IDS: usize = 1000;
    let fixture = Fixture::start().await;
    fixture.publish(&concert("club")).await.ok(200);
    let ids: Vec<String> = (0..IDS).map(|id| format!("P-{id:04}")).collect();
    // One in fifty has a ticket.
    let there: Vec<&str> = ids.iter().step_by(50).map(String::as_str).collect();
    for (buyer, people) in there.chunks(4).enumerate() {
        fixture.buy(&format!("buyer-{buyer}"), "club", named(people)).await.ok(201);
    }
    fixture.buy("accomplice", "club", named(&["bait"])).await.ok(201);

    // With somebody in each request who is known to have a ticket, no order is ever made.
    let token = fixture.admission("stranger", "club", 4).await["token"].clone();
    let mut learned = Vec::new();
    let mut refusals = BTreeSet::new();
    for id in &ids {
        let got = fixture.order("stranger", "club", &token, named(&[id, "bait"])).await;
        if got.body["type"] == "/problems/attendee-taken" {
            let taken = got.problem(409, "attendee-taken")["attendee"].clone();
            assert_eq!(taken == json!(id), there.contains(&id.as_str()), "{id}");
            learned.push(id.as_str());
        } else {
            // To the byte the same, whether the id has a ticket or not.
            refusals.insert(got.problem(403, "attendee-limit").to_string());
        }
    }
    println!("a stranger tried {IDS} ids and learned of {}, before: {IDS}", learned.len());
    // Three for each of four tickets; the bait is one of them, and a request for two needs room for two.
    assert_eq!(learned.len(), 10);
    assert_eq!(refusals.len(), 1, "{refusals:?}");

    // One more may be named, alone; after that it does not help either.
    let twelfth = fixture.order("stranger", "club", &token, named(&["P-0500"])).await;
    twelfth.problem(409, "attendee-taken");
    let alone = fixture.order("stranger", "club", &token, named(&["P-0999"])).await;
    assert_eq!(alone.problem(403, "attendee-limit")["max_named"], 12);
    // Whom the stranger has named may be named again.
    let again = fixture.order("stranger", "club", &token, named(&[learned[0]])).await;
    again.problem(409, "attendee-taken");
    fixture.order("stranger", "club", &token, named(&[learned[1]])).await.ok(201);
    assert_clean(&fixture).await;
}

#[tokio::test]
async fn an_id_stands_in_its_order_alone_and_is_gone_once_it_is_erased() {
    const IDS: [&str; 3] = ["ID-SECRET-1", "ID-SECRET-2", "ID-SECRET-3"];
    let fixture = Fixture::start().await;
    let (log, _guard) = Log::keep_up_to(Level::DEBUG);
    let mut answers = String::new();
    let mut orders = Vec::new();
    for sale in ["club", "hall-2"] {
        fixture.publish(&concert(sale)).await.ok(200);
        let made = fixture.buy("alice", sale, named(&IDS[..2])).await.ok(201);
        assert_eq!(made["lines"][0]["tickets"][0]["attendee"], IDS[0]);
        let taken = fixture.buy("bob", sale, named(&[IDS[0]])).await.problem(409, "attendee-taken");
        answers += &format!("{made} {taken}");
        orders.push(made["order"].clone());
    }
    fixture.buy("carol", "club", named(&[IDS[2]])).await.ok(201);
    fixture.callback("pi_1", &orders[0], 200).await.ok(200);

    let before = records(&fixture).await;
    assert!(IDS.iter().all(|id| before.contains(id)));
    let (here, there) = (hashes(&before, "club"), hashes(&before, "hall-2"));
    assert_eq!((here.len(), there.len()), (3, 2));
    assert!(here.is_disjoint(&there), "a person can be followed from sale to sale");
    let get = async |order: &Value| {
        let target = format!("/orders/{}", order.as_str().unwrap());
        fixture.get(Sender::Buyer("alice"), &target).await.ok(200)
    };
    answers += &get(&orders[0]).await.to_string();
    let said = log.text();
    assert!(!said.is_empty(), "the log is kept");
    for hash in here.iter().chain(&there) {
        assert!(!answers.contains(hash) && !said.contains(hash), "{hash} is shown");
    }

    let of =
        |sale: &str, before, order| Selection { sale: SaleId::new(sale).unwrap(), before, order };
    let erase = async |selection| {
        fixture.app.ports.orders().orders.0.erase_attendees(&selection).await.unwrap()
    };
    let erased = |looked_at, orders, tickets| Erased { looked_at, orders, tickets };
    // Before any order was made, there is nothing to erase; an order of another sale is not touched.
    let long_ago = Some(Timestamp::from_ms(1));
    let number = Some(orders[1].as_str().unwrap().parse().unwrap());
    assert_eq!(erase(of("club", long_ago, None)).await, erased(0, 0, 0));
    assert_eq!(erase(of("club", None, number)).await, erased(0, 0, 0));
    assert_eq!(erase(of("hall-2", None, number)).await, erased(1, 1, 2));
    assert_eq!(
        erase(of("club", Some(Timestamp::now().plus_seconds(60)), None)).await,
        erased(2, 2, 3)
    );
    // Another run, as after one that was cut off, finds nothing left.
    assert_eq!(erase(of("club", None, None)).await, erased(2, 0, 0));

    let after = records(&fixture).await;
    assert_eq!(IDS.map(|id| after.contains(id)), [false; 3], "an id is still there");
    assert_eq!(hashes(&after, "club"), here, "the claims are gone");
    let shown = get(&orders[0]).await;
    assert_eq!(shown["state"], "paid");
    let tickets = shown["lines"][0]["tickets"].as_array().unwrap();
    assert!(tickets.len() == 2 && tickets.iter().all(|ticket| ticket.get("attendee").is_none()));
    // Nobody gets a second ticket, and an order that ends still frees its people.
    fixture.buy("dora", "club", named(&[IDS[0]])).await.problem(409, "attendee-taken");
    let cancel = format!("/orders/{}/cancel", orders[1].as_str().unwrap());
    fixture.json(Sender::Buyer("alice"), "POST", &cancel, &json!({})).await.ok(200);
    fixture.buy("dora", "hall-2", named(&[IDS[0]])).await.ok(201);
    assert_clean(&fixture).await;
}

/// While a key is replaced, a person is recognised by both; once the old one is dropped, only those who
/// bought since are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_replaced_while_a_sale_goes_on() {
    let mut fixture = Fixture::start().await;
    let [old, new] =
        [8, 9].map(|byte| (format!("k{byte}"), shared::runtime::config::Secret(vec![byte; 32])));
    fixture.publish(&concert("club")).await.ok(200);
    fixture.buy("a", "club", named(&["ada"])).await.ok(201);
    fixture.config.attendees.keys = vec![new.clone(), old];
    fixture.app = shared::runtime::app::App::from_config(&fixture.config).await.unwrap();
    fixture.buy("b", "club", named(&["ada"])).await.problem(409, "attendee-taken");
    fixture.buy("c", "club", named(&["bob"])).await.ok(201);
    fixture.config.attendees.keys = vec![new];
    fixture.app = shared::runtime::app::App::from_config(&fixture.config).await.unwrap();
    fixture.buy("d", "club", named(&["bob"])).await.problem(409, "attendee-taken");
    assert_clean(&fixture).await;
    let id = AttendeeId::new("bob").unwrap();
    let hashed = fixture.app.attendees.attendee(&SaleId::new("club").unwrap(), &id).unwrap();
    assert!(records(&fixture).await.contains(&hashed.hashes[0].to_string()));
}
