//! Orders from admission to payment, and the list of a buyer's orders.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::admission::room::slot::Asking;
use engine::domain::basics::ids::{SaleId, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::statistics::TierTotals;
use engine::ports::{Catalogue as _, Orders as _, Ports as _};
use local::handlers::{reconcile, sync_db};
use serde_json::{Value, json};
use shared::http::tokens::Grant;

use super::{Fixture, Sender, best, failures, hall, records, train};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_are_bought_from_admission_to_payment() {
    let fixture = Fixture::start().await;
    let published = fixture.publish(&hall()).await.ok(200);
    assert_eq!((&published["state"], &published["version"]), (&json!("open"), &json!(1)));
    assert_eq!(published["tiers"][0]["row_bytes"], json!(1));
    let again = fixture.publish(&hall()).await.ok(200);
    assert_eq!(again["version"], json!(1), "the same file is no new version");

    let listed = fixture.get(Sender::Nobody, "/sales").await;
    assert_eq!(listed.cache_control, "public, max-age=1");
    assert_eq!(listed.ok(200)["sales"][0]["sale"], json!("hall"));
    assert_eq!(fixture.get(Sender::Nobody, "/sales/hall").await.ok(200)["file"]["title"], "Hall");

    let admission = fixture.admission("alice", "hall", 2).await;
    let bought = fixture.order("alice", "hall", &admission["token"], best("vip", 2)).await;
    assert_eq!(bought.cache_control, "no-store");
    let order = bought.ok(201);
    assert_eq!(order["order"], admission["order"]);
    assert_eq!(order["state"], "pending");
    let tickets = json!([{ "seat": "vip-1-4" }, { "seat": "vip-1-5" }]);
    let line = json!({ "tier": "vip", "price_minor": 2500, "tickets": tickets });
    assert_eq!(order["lines"], json!([line]));
    assert_eq!((&order["amount_minor"], &order["currency"]), (&json!(5000), &json!("EUR")));
    assert_eq!(order["remaining_allowance"], json!(2));
    assert_eq!(fixture.waiting(&fixture.queues.expiry.url).await, 1);

    let left = fixture.get(Sender::Nobody, "/sales/hall/availability").await;
    assert_eq!(left.cache_control, "public, max-age=1");
    let left = left.ok(200);
    assert_eq!(left["tiers"][0]["available"], json!(14));
    let free = STANDARD.decode(left["tiers"][0]["free"].as_str().unwrap()).unwrap();
    assert_eq!(free, [0b1110_0111, 0xff]);

    let accepted = json!({ "outcome": "accepted" });
    assert_eq!(fixture.callback("pi_1", &order["order"], 5000).await.ok(200), accepted);
    assert_eq!(fixture.callback("pi_1", &order["order"], 5000).await.ok(200), accepted);
    let second = fixture.callback("pi_2", &order["order"], 5000).await.ok(200);
    assert_eq!(second, json!({ "outcome": "refund", "reason": "second_payment" }));
    assert_eq!(fixture.waiting(&fixture.queues.refund.url).await, 1);

    let target = format!("/orders/{}", order["order"].as_str().unwrap());
    let shown = fixture.get(Sender::Buyer("alice"), &target).await.ok(200);
    assert_eq!(shown["state"], "paid");
    let payments: Vec<Value> = shown["payments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|payment| json!([payment["payment"], payment["outcome"], payment["reason"]]))
        .collect();
    let both = [json!(["pi_1", "accepted", null]), json!(["pi_2", "refund", "second_payment"])];
    assert_eq!(payments, both);
    let repeated =
        fixture.order("alice", "hall", &admission["token"], best("vip", 2)).await.ok(201);
    assert_eq!((&repeated["state"], &repeated["lines"]), (&json!("paid"), &order["lines"]));
    let cancel = format!("{target}/cancel");
    let cancelled = fixture.json(Sender::Buyer("alice"), "POST", &cancel, &json!({})).await;
    assert_eq!(cancelled.problem(409, "order-resolved")["state"], "paid");

    let synced = sync_db::handle(&fixture.app, fixture.batch(&fixture.queues.sync.url).await).await;
    assert_eq!(failures(&synced), 0);
    let number: OrderNumber = order["order"].as_str().unwrap().parse().unwrap();
    let again = [json!({ "order": number }), json!("not json"), json!({ "order": number })];
    let synced = sync_db::handle(&fixture.app, records(&again)).await;
    assert_eq!(failures(&synced), 1, "only what is malformed fails");
    let hall = SaleId::new("hall").unwrap();
    let counted = fixture.app.ports.orders().statistics(&hall).await.unwrap();
    let once = TierTotals { tickets: 2, revenue_minor: MinorUnits(5000) };
    assert_eq!(counted, [(TierId::new("vip").unwrap(), once)]);

    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    let event = serde_json::from_value(event).unwrap();
    let report = reconcile::handle(&fixture.app, event).await.unwrap();
    assert!(report.is_quiet(), "{report:?}");

    // Each run keeps a snapshot of the gate's tokens.
    let before = Timestamp::now().plus_seconds(-3600);
    let kept = fixture.app.ports.catalogue().kept_tokens(&hall, before).await.unwrap();
    let [kept] = kept.as_slice() else { panic!("{kept:?}") };
    assert_eq!((kept.counts.used(), kept.bought), (2, 2), "{kept:?}");
}

/// What a freeze brings about: the sender gives a request up while it stands still, a copy of it is
/// refused, other seats are asked for, and the request that was given up is carried out first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_whose_abandoned_request_made_the_order_is_told_which() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let seats = || json!([{ "tier": "vip", "seats": ["vip-1-1", "vip-1-2"] }]);
    let others = fixture.admission("bob", "hall", 2).await;
    let taken = fixture.order("bob", "hall", &others["token"], seats()).await.ok(201);
    let admission = fixture.admission("alice", "hall", 2).await;
    let token = &admission["token"];

    let copy = fixture.order("alice", "hall", token, seats()).await;
    copy.problem(409, "seat-taken");
    let cancel = format!("/orders/{}/cancel", taken["order"].as_str().unwrap());
    fixture.json(Sender::Buyer("bob"), "POST", &cancel, &json!({})).await.ok(200);
    let abandoned = fixture.order("alice", "hall", token, seats()).await.ok(201);

    let instead = json!([{ "tier": "vip", "best": { "count": 1 } }]);
    let refused = fixture.order("alice", "hall", token, instead.clone()).await;
    let problem = refused.problem(422, "token-reused");
    assert_eq!(problem["order"], abandoned["order"]);
    assert_eq!((&problem["order"], &problem["state"]), (&admission["order"], &json!("pending")));
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("it has made your order"), "{detail}");
    // And the order that is named is there to be paid or cancelled.
    let target = format!("/orders/{}", problem["order"].as_str().unwrap());
    let shown = fixture.get(Sender::Buyer("alice"), &target).await.ok(200);
    assert_eq!(shown["lines"], abandoned["lines"]);
    let cancel = format!("{target}/cancel");
    fixture.json(Sender::Buyer("alice"), "POST", &cancel, &json!({})).await.ok(200);
    let refused = fixture.order("alice", "hall", token, instead).await;
    assert_eq!(refused.problem(422, "token-reused")["state"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_token_is_one_order() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let admission = fixture.admission("alice", "hall", 2).await;
    let token = &admission["token"];

    // A refused attempt does not use the token up.
    let too_many = fixture.order("alice", "hall", token, best("vip", 3)).await;
    assert_eq!(too_many.problem(403, "not-admitted")["most_tickets"], json!(2));
    let seats = |names: [&str; 2]| json!([{ "tier": "vip", "seats": names }]);
    let first = fixture.order("alice", "hall", token, seats(["vip-1-2", "vip-1-1"])).await.ok(201);
    let again = fixture.order("alice", "hall", token, seats(["vip-1-1", "vip-1-2"])).await.ok(201);
    assert_eq!((&first["order"], &first["lines"]), (&again["order"], &again["lines"]));
    let other = fixture.order("alice", "hall", token, seats(["vip-1-3", "vip-1-4"])).await;
    let problem = other.problem(422, "token-reused");
    let named = (&problem["order"], &problem["state"]);
    assert_eq!(named, (&first["order"], &json!("pending")), "it is the buyer's own");

    // A token that has run out still finds its order, and makes no other.
    let run_out = |order: &str, user: &str| {
        let grant = Grant {
            sale: SaleId::new("hall").unwrap(),
            user: UserId::new(user).unwrap(),
            order: order.parse().unwrap(),
            tickets: 2,
            expires_at: Timestamp::from_ms(1_600_000_000_000),
            entry: None,
            asking: Asking::default(),
        };
        json!(fixture.app.admissions.sign(&grant, Timestamp::from_ms(0)).unwrap())
    };
    let number = first["order"].as_str().unwrap();
    let late = run_out(number, "alice");
    let found = fixture.order("alice", "hall", &late, seats(["vip-1-1", "vip-1-2"])).await.ok(201);
    assert_eq!(found["order"], first["order"]);
    let differs = fixture.order("alice", "hall", &late, seats(["vip-2-1", "vip-2-2"])).await;
    differs.problem(422, "token-reused");
    let unused = run_out("1024", "alice");
    let refused = fixture.order("alice", "hall", &unused, seats(["vip-2-1", "vip-2-2"])).await;
    refused.problem(403, "not-admitted");

    // Other people's tokens and orders.
    let stolen = fixture.order("bob", "hall", token, best("vip", 2)).await;
    stolen.problem(403, "not-admitted");
    let target = format!("/orders/{number}");
    fixture.get(Sender::Buyer("bob"), &target).await.problem(404, "not-found");
    let cancel = format!("{target}/cancel");
    let theirs = fixture.json(Sender::Buyer("bob"), "POST", &cancel, &json!({})).await;
    theirs.problem(404, "not-found");

    // Cancelled, and cancelled again; its seats are free for the next.
    let alice = Sender::Buyer("alice");
    let cancelled = fixture.json(alice, "POST", &cancel, &json!({})).await.ok(200);
    assert_eq!(cancelled["state"], "cancelled");
    fixture.json(alice, "POST", &cancel, &json!({})).await.ok(200);
    let ended = fixture.order("alice", "hall", token, seats(["vip-1-1", "vip-1-2"])).await;
    assert_eq!(ended.problem(409, "order-resolved")["state"], "cancelled");
    let next = fixture.buy("bob", "hall", seats(["vip-1-1", "vip-1-2"])).await.ok(201);
    assert_eq!(next["state"], "pending");

    // Money for the cancelled order whose seats are gone goes back.
    let late = fixture.callback("pi_late", &json!(number), 5000).await.ok(200);
    assert_eq!(late, json!({ "outcome": "refund", "reason": "cancelled" }));
    assert_eq!(fixture.get(alice, &target).await.ok(200)["state"], "refund_due");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_listed_newest_first_by_pages() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(fixture.buy("7", "hall", best("vip", 1)).await.ok(201)["order"].clone());
    }
    fixture.buy("1031", "hall", best("vip", 1)).await.ok(201);
    let seven = Sender::Buyer("7");
    let page = fixture.get(seven, "/orders?limit=2").await.ok(200);
    let numbers = |page: &Value| -> Vec<Value> {
        page["orders"].as_array().unwrap().iter().map(|order| order["order"].clone()).collect()
    };
    assert_eq!(numbers(&page), [made[2].clone(), made[1].clone()]);
    // What the buyer may still have counts every live order, also those of other pages.
    let allowance = |held: u16, limit: u16| json!([{ "sale": "hall", "held": held, "remaining": limit.saturating_sub(held), "limit": limit }]);
    assert_eq!(page["allowances"], allowance(3, 4));
    let next = format!("/orders?limit=2&before={}", page["next"].as_str().unwrap());
    let page = fixture.get(seven, &next).await.ok(200);
    assert_eq!(numbers(&page), [made[0].clone()]);
    assert_eq!(page.get("next"), None);
    assert_eq!(page["allowances"], allowance(3, 4));
    let cancel = format!("/orders/{}/cancel", made[0].as_str().unwrap());
    fixture.json(seven, "POST", &cancel, &json!({})).await.ok(200);
    let page = fixture.get(seven, "/orders").await.ok(200);
    assert_eq!(
        (page["orders"].as_array().unwrap().len(), &page["allowances"]),
        (3, &allowance(2, 4))
    );
    let none = fixture.get(Sender::Buyer("9"), "/orders").await.ok(200);
    assert_eq!(none, json!({ "orders": [], "allowances": [] }));
    fixture.get(seven, "/orders?limit=0").await.problem(422, "invalid");
    fixture.get(seven, "/orders?limit=x").await.problem(422, "invalid");
    fixture.get(seven, "/orders?before=x").await.problem(422, "invalid");
    fixture.get(Sender::Nobody, "/orders").await.problem(401, "not-authenticated");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_train_sells_journeys_with_attendees() {
    let fixture = Fixture::start().await;
    fixture.publish(&train()).await.ok(200);
    let line = |from: &str, to: &str, seat: &str, attendee: &str| json!([{ "tier": "second", "from": from, "to": to, "seats": [seat], "attendees": [attendee] }]);
    let first = fixture.buy("a", "g35", line("VNP", "JGK", "01-1A", "p1")).await.ok(201);
    assert_eq!(
        (&first["lines"][0]["from"], &first["amount_minor"]),
        (&json!("VNP"), &json!(18500))
    );
    let second = fixture.buy("b", "g35", line("JGK", "NGH", "01-1A", "p2")).await.ok(201);
    assert_eq!(second["lines"][0]["tickets"][0], json!({ "seat": "01-1A", "attendee": "p2" }));
    let whole = fixture.buy("c", "g35", line("VNP", "NGH", "01-1A", "p3")).await;
    let problem = whole.problem(409, "seat-taken");
    assert_eq!((&problem["tier"], &problem["seats"]), (&json!("second"), &json!(["01-1A"])));
    let twice = fixture.buy("d", "g35", line("JGK", "NGH", "01-1B", "p1")).await;
    assert_eq!(twice.problem(409, "attendee-taken")["attendee"], "p1");
    let pattern = json!([{
        "tier": "second", "from": "VNP", "to": "NGH", "attendees": ["q1", "q2"],
        "pattern": [{ "column": "C" }, { "column": "D", "row": 1 }]
    }]);
    let pattern = fixture.buy("e", "g35", pattern).await.ok(201);
    let tickets = json!([
        { "seat": "01-1C", "attendee": "q1" }, { "seat": "01-2D", "attendee": "q2" }
    ]);
    assert_eq!(pattern["lines"][0]["tickets"], tickets);

    let on = |query: &str| format!("/sales/g35/availability{query}");
    let left = fixture.get(Sender::Nobody, &on("?from=VNP&to=JGK")).await.ok(200);
    let tier = &left["tiers"][0];
    assert_eq!((&tier["available"], &tier["price_minor"]), (&json!(7), &json!(18500)));
    assert_eq!((&left["from"], &left["to"]), (&json!("VNP"), &json!("JGK")));
    fixture.get(Sender::Nobody, &on("")).await.problem(422, "invalid");
    fixture.get(Sender::Nobody, &on("?from=JGK&to=VNP")).await.problem(422, "invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_of_sales_is_paged_and_leaves_out_what_is_archived() {
    let fixture = Fixture::start().await;
    for name in ["a", "b", "c", "d"] {
        let mut file = hall();
        file["sale"] = json!(name);
        if name == "b" {
            file["opens_at"] = json!("2020-01-01T00:00:00Z");
            file["closes_at"] = json!("2020-01-02T00:00:00Z");
        }
        fixture.publish(&file).await.ok(200);
    }
    let page = async |query: &str| fixture.get(Sender::Nobody, &format!("/sales{query}")).await;
    let names = |page: &Value| -> Vec<String> {
        let listed = page["sales"].as_array().unwrap().iter();
        listed.map(|sale| sale["sale"].as_str().unwrap().to_owned()).collect()
    };
    let all = page("").await.ok(200);
    assert_eq!(
        (names(&all), &all["next"]),
        (["a", "b", "c", "d"].map(str::to_owned).to_vec(), &Value::Null)
    );
    assert_eq!(
        (&all["sales"][1]["state"], &all["sales"][0]["state"]),
        (&json!("closed"), &json!("open"))
    );
    let first = page("?limit=3").await.ok(200);
    assert_eq!(names(&first), ["a", "b", "c"]);
    let next = first["next"].as_str().unwrap();
    let last = page(&format!("?limit=3&cursor={next}")).await.ok(200);
    assert_eq!((names(&last), &last["next"]), (vec!["d".to_owned()], &Value::Null));
    for wrong in
        ["?cursor=d", "?cursor=", "?cursor=%23", "?limit=0", "?limit=201", "?cursor=a&cursor=b"]
    {
        page(wrong).await.problem(422, "invalid");
    }

    let b = SaleId::new("b").unwrap();
    let now = Timestamp::now();
    let token = shared::runtime::app::new_epoch(now).unwrap();
    let archived = engine::flows::archive::archive(&fixture.app.ports, &b, &token, now).await;
    assert!(archived.is_ok(), "{archived:?}");
    assert_eq!(names(&page("").await.ok(200)), ["a", "c", "d"]);
    let shown = fixture.get(Sender::Nobody, "/sales/b").await.ok(200);
    assert_eq!(shown["state"], "archived");
    fixture.get(Sender::Nobody, "/sales/b/availability").await.problem(410, "sale-archived");
    let mut again = hall();
    again["sale"] = json!("b");
    fixture.publish(&again).await.problem(410, "sale-archived");
}
