//! What operators do with a token, and who is refused: the functions look again at what the gateway let through.

use serde_json::{Value, json};
use shared::http::identity::Scope;
use shared::http::routes::{Access, ROUTES};

use super::{Fixture, Got, OPERATOR_ISSUER, Sender, best, hall};

const ALL: &str = "openid onsale/watch onsale/operate onsale/refund onsale/scan";
const ZHANG: Sender<'_> = Sender::Token(OPERATOR_ISSUER, ALL);
const ALICE: Sender<'_> = Sender::Buyer("alice");

impl Fixture {
    async fn actions(&self) -> Vec<Value> {
        let page = self.get(ZHANG, "/operator/actions").await.ok(200);
        page["actions"].as_array().unwrap().clone()
    }
}

/// A path with something in place of each parameter.
fn filled(path: &str) -> String {
    let hash = "ab".repeat(32);
    path.replace("{sale}", "hall").replace("{order}", "1024").replace("{picture}", &hash)
}

/// Every route that an operator's token opens, with a path, and the scope that it asks for.
fn routes() -> impl Iterator<Item = (&'static str, String, Scope)> {
    ROUTES.iter().filter_map(|row| {
        let path = filled(row.path);
        Some((row.method, path, row.access.scope()?))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_of_operators_refuses_whoever_is_none() {
    let fixture = Fixture::start().await;
    assert!(routes().count() >= 12);
    for (method, path, scope) in routes() {
        let ask = async |sender| -> Got { fixture.json(sender, method, &path, &json!({})).await };
        for (who, sender) in [
            ("nobody", Sender::Nobody),
            ("a buyer", ALICE),
            ("a buyer with an operator's scopes", Sender::Token("https://buyers.example", ALL)),
            ("a token without an issuer", Sender::Token("", ALL)),
            ("an issuer that is nearly the same", Sender::Token("https://operators.example/", ALL)),
            ("IAM", Sender::Operator),
        ] {
            let refused = ask(sender).await.problem(401, "not-authenticated");
            assert!(!refused.to_string().contains(OPERATOR_ISSUER), "{method} {path} {who}");
        }
        let others = Scope::ALL.into_iter().filter(|other| *other != scope);
        let others = others.map(Scope::as_str).collect::<Vec<_>>().join(" ");
        for scopes in ["", "openid", others.as_str()] {
            ask(Sender::Token(OPERATOR_ISSUER, scopes)).await.problem(403, "not-permitted");
        }
        // The control: with the scope it gets further.
        let further = ask(Sender::Token(OPERATOR_ISSUER, scope.as_str())).await;
        assert!(![401, 403].contains(&further.status), "{method} {path} {:#}", further.body);
    }
    // What was refused is no action: this is a control's, of an order that is not there.
    let actions = fixture.actions().await;
    let told = actions.iter().map(|action| (action["action"].as_str(), action["outcome"].as_str()));
    let not_found = Some("not-found");
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(Some("reissue"), not_found), (Some("cancel"), not_found)]
    );
    // A token does not stand for an IAM identity either.
    for row in ROUTES.iter().filter(|row| row.access == Access::Operator) {
        let path = filled(row.path);
        let refused = fixture.json(ZHANG, row.method, &path, &json!({})).await;
        refused.problem(401, "not-authenticated");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_operators_do_by_either_way_is_recorded_with_who_did_it() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    fixture.json(ZHANG, "PUT", "/operator/sales/hall", &hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201);
    let number = order["order"].as_str().unwrap();
    let operators = format!("/operator/orders/{number}");
    let whole = json!({ "number": 1, "tickets": "all" });
    let refund = format!("{operators}/refunds");
    fixture.json(ZHANG, "POST", &refund, &whole).await.problem(409, "order-not-paid");
    let shown = fixture.get(ZHANG, &operators).await.ok(200);
    assert_eq!((&shown["buyer"], &shown["order"]["state"]), (&json!("alice"), &json!("pending")));
    let cancel = format!("{operators}/cancel");
    let ended = fixture.json(ZHANG, "POST", &cancel, &json!({})).await.ok(200);
    assert_eq!(ended["state"], "cancelled");
    let shown = fixture.get(ZHANG, &operators).await.ok(200);
    let history: Vec<(&str, &str)> = shown["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["kind"].as_str().unwrap(), entry["by"].as_str().unwrap()))
        .collect();
    assert_eq!(history, [("made", "buyer"), ("cancelled", "operator")]);

    let actions = fixture.actions().await;
    let told: Vec<(&str, &str, &str, &str)> = actions
        .iter()
        .map(|action| {
            let text = |name: &str| action[name].as_str().unwrap();
            (text("way"), text("who"), text("action"), text("outcome"))
        })
        .collect();
    let arn = "arn:aws:iam::000000000000:role/operator";
    let expected = [
        ("issuer", "zhang", "cancel", "done"),
        ("issuer", "zhang", "refund", "order-not-paid"),
        ("issuer", "zhang", "publish", "done"),
        ("iam", arn, "publish", "done"),
    ];
    assert_eq!(told, expected);
    assert_eq!((&actions[0]["order"], &actions[3]["sale"]), (&order["order"], &json!("hall")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_recorded_is_not_done() {
    let mut fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201);
    let number = order["order"].as_str().unwrap();
    let cancel = format!("/operator/orders/{number}/cancel");
    fixture.lose_dynamodb().await;
    let refused = fixture.json(ZHANG, "POST", &cancel, &json!({})).await;
    assert_eq!(refused.status, 503, "{:#}", refused.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_found_by_number_buyer_seat_and_attendee() {
    let fixture = Fixture::start().await;
    let mut file = hall();
    file["attendees"] = json!("optional");
    fixture.publish(&file).await.ok(200);
    let lines = json!([{ "tier": "vip", "seats": ["vip-1-3"], "attendees": ["P-1"] }]);
    let first = fixture.buy("alice", "hall", lines).await.ok(201);
    let second = fixture.buy("alice", "hall", best("small", 1)).await.ok(201);
    let find = async |query: &str| {
        let found = fixture.get(ZHANG, &format!("/operator/orders?{query}")).await.ok(200);
        let orders = found["orders"].as_array().unwrap().iter();
        orders.map(|order| order["order"].clone()).collect::<Vec<Value>>()
    };
    let number = first["order"].as_str().unwrap();
    let (first, second) = (first["order"].clone(), second["order"].clone());
    assert_eq!(find(&format!("order={number}")).await, std::slice::from_ref(&first));
    assert_eq!(find("order=1024").await, [] as [Value; 0]);
    assert_eq!(find("buyer=alice").await, [second.clone(), first.clone()]);
    let before = second.as_str().unwrap();
    assert_eq!(find(&format!("buyer=alice&before={before}")).await, std::slice::from_ref(&first));
    assert_eq!(find("buyer=bob").await, [] as [Value; 0]);
    assert_eq!(find("sale=hall&tier=vip&seat=vip-1-3").await, std::slice::from_ref(&first));
    assert_eq!(find("sale=hall&tier=vip&seat=vip-1-4").await, [] as [Value; 0]);
    assert_eq!(find("sale=hall&attendee=P-1").await, [first]);
    assert_eq!(find("sale=hall&attendee=P-2").await, [] as [Value; 0]);
    for query in [
        "",
        "order=x",
        "order=1024&buyer=alice",
        "sale=hall",
        "sale=hall&tier=vip",
        "attendee=P-1",
        "sale=hall&tier=vip&seat=nowhere",
        "buyer=a%23b",
        "buyer=alice&buyer=bob",
        "before=1024",
    ] {
        let refused = fixture.get(ZHANG, &format!("/operator/orders?{query}")).await;
        refused.problem(422, "invalid");
    }
    for mark in ["x", "", "1'--", "0000000000000000000000000000000000000000000"] {
        let refused = fixture.get(ZHANG, &format!("/operator/actions?before={mark}")).await;
        refused.problem(422, "invalid");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_board_shows_what_is_left_and_sold_and_nothing_is_stuck() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let board = fixture.get(ZHANG, "/operator/sales/hall/board").await.ok(200);
    assert_eq!((&board["state"], &board["currency"]), (&json!("open"), &json!("EUR")));
    assert_eq!(board["room"], Value::Null);
    let vip = &board["tiers"][0];
    assert_eq!(
        (&vip["seats"], &vip["available"], &vip["sold"]),
        (&json!(16), &json!(14), &json!(0))
    );
    fixture.get(ZHANG, "/operator/sales/nowhere/board").await.problem(404, "not-found");
    let stuck = fixture.get(ZHANG, "/operator/stuck").await.ok(200);
    assert_eq!(stuck["overdue"], 0);
    let letters = stuck["dead_letters"].as_object().unwrap();
    assert!(letters.len() >= 7 && letters.values().all(|count| *count == 0), "{letters:?}");
}
