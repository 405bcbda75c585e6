//! The OpenAPI document against the engine: what it shows can be sent, what comes back is as it says,
//! and it says no more than there is.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::draw::{Drawing, draw};
use local::up::{Engine, Options};
use openapi::{self, problem_component};
use reqwest::Method;
use serde_json::{Value, json};
use shared::http::problem::Kind;

use super::backends;
use super::described::{Answer, Description};
use text::{read, root};

/// Admissions asked for until the rate of a sale refuses one.
const MAX_ADMISSIONS_TRIED: usize = 200;

/// A client that sends the document's examples.
struct Client {
    description: Description,
    engine: Engine,
    http: reqwest::Client,
    sent: BTreeSet<(String, String)>,
    answered: BTreeSet<(String, u16)>,
}

/// The parts of an example that a client fills in.
#[derive(Default)]
struct With<'a> {
    sale: Option<&'a str>,
    order: Option<&'a Value>,
    document: Option<&'a str>,
    query: &'a str,
    /// Another body than the example as it is.
    change: Option<&'a dyn Fn(&mut Value)>,
    buyer: Option<&'a str>,
}

/// Lets a sale of the document be drawn and open at once: by a secret, as no round of a beacon is ahead of it.
fn is_past(file: &mut Value) {
    file["opens_at"] = json!("2020-01-01T00:00:00Z");
    file["room"]["beacon"] = json!("operator");
}

impl Client {
    /// The visit of a place that is due: in the same hall, which is open.
    async fn visit(&mut self) {
        const OPEN: &str = "lanterns-open";
        let none = || With { sale: Some(OPEN), ..With::default() };
        let open = |file: &mut Value| {
            file["sale"] = json!(OPEN);
            is_past(file);
        };
        self.ok(200, "publishSale", "room", With { change: Some(&open), ..none() }).await;
        self.ok(201, "joinRoom", "join", none()).await;
        let sale = SaleId::new(OPEN).unwrap();
        let drawn = draw(&self.engine.app().ports, &sale, Timestamp::now()).await;
        assert_eq!(drawn, Ok(Drawing::Drawn));
        // A function's copy of the room is a second old at most.
        let joined = loop {
            let joined = self.ok(201, "joinRoom", "join", none()).await;
            if joined["place"].is_u64() {
                break joined;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        // A request for the room document makes a turn, one a second.
        let is_due =
            |room: &Value| room["groups"][0]["serving"].as_u64() > joined["place"].as_u64();
        while !is_due(&self.ok(200, "showRoom", "", none()).await) {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let claim = |body: &mut Value| {
            body["place"]["place"] = joined["place"].clone();
            body["place"]["token"] = joined["place_token"].clone();
        };
        // The gate's copy of the room is a second old at most.
        for tries in 0.. {
            let with = With { change: Some(&claim), ..none() };
            let answer = self.send("beginVisit", "place", with).await;
            if answer.status == 200 {
                break;
            }
            let body = String::from_utf8_lossy(&answer.body).into_owned();
            assert!(tries < 50, "the place is due, and no visit begins: {body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(self.send("beginVisit", "place", none()).await.status, 429);
    }

    async fn start() -> Self {
        Self {
            description: Description::new(),
            engine: Engine::start(backends::engine(Options::ephemeral())).await.unwrap(),
            http: reqwest::Client::new(),
            sent: BTreeSet::new(),
            answered: BTreeSet::new(),
        }
    }

    /// An example of the document: of a parameter, or of a body.
    fn example(&self, id: &str, name: &str) -> Value {
        let (_, _, operation) = self.description.operation(id);
        operation["requestBody"]["content"]["application/json"]["examples"][name]["value"].clone()
    }

    /// Sends an operation with one of its examples for a body, if it has any, and holds the answer
    /// against the document.
    async fn send(&mut self, id: &str, example: &str, with: With<'_>) -> Answer {
        let (method, pattern, operation) = self.description.operation(id);
        let mut path = pattern.clone();
        for parameter in
            self.description.document["paths"][&pattern]["parameters"].as_array().unwrap_or(&vec![])
        {
            let name = parameter["name"].as_str().unwrap();
            let given = match name {
                "sale" => with.sale,
                "document" => with.document,
                "order" => with.order.map(|order| order.as_str().unwrap()),
                _ => None,
            };
            let value = given.unwrap_or_else(|| parameter["example"].as_str().unwrap());
            path = path.replace(&format!("{{{name}}}"), value);
        }
        let target = format!("{path}{}", with.query);
        let url = format!("{}{target}", self.engine.url());
        let mut request = self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), url);
        let mut body = String::new();
        if operation.get("requestBody").is_some() {
            let mut value = self.example(id, example);
            assert!(value.is_object(), "{id} has no example {example}");
            if let Some(change) = with.change {
                change(&mut value);
            }
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            self.description.check(&format!("{id} {example}"), schema, &value);
            body = value.to_string();
            request = request.header("content-type", "application/json");
            self.sent.insert((id.to_owned(), example.to_owned()));
        }
        let security = operation["security"].as_array().unwrap();
        let needs = |scheme: &str| security.iter().any(|needed| needed.get(scheme).is_some());
        if needs("buyer") {
            let buyer = with.buyer.unwrap_or("alice");
            request = request.bearer_auth(self.engine.token(buyer).unwrap());
        } else if needs("operator") {
            request = request.bearer_auth(self.engine.operator_token().unwrap());
        } else if needs("operator_token") {
            let scopes = security[0]["operator_token"].as_array().unwrap();
            let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str().unwrap()).collect();
            request =
                request.bearer_auth(self.engine.operator_access_token("zhang", &scopes).unwrap());
        } else if needs("stripe_signature") {
            let signature = self.engine.sign_payment(body.as_bytes());
            request = request.header("Stripe-Signature", signature);
        }
        let answer = Answer::from_reply(request.body(body).send().await.unwrap()).await;
        self.description.check_answer(&format!("{id} {example}"), &method, &target, &answer);
        self.answered.insert((id.to_owned(), answer.status));
        answer
    }

    /// The same, which must be answered with this status.
    async fn ok(&mut self, status: u16, id: &str, example: &str, with: With<'_>) -> Value {
        let answer = self.send(id, example, with).await;
        assert_eq!(answer.status, status, "{id} {example}: {:#}", answer.json());
        answer.json()
    }

    /// Pays an order as the example does.
    async fn pay(&mut self, payment: &str, order: &Value) {
        let captured = |event: &mut Value| {
            let object = &mut event["data"]["object"];
            object["id"] = json!(payment);
            object["metadata"]["order"] = order["order"].clone();
            assert_eq!(object["amount_received"], order["amount_minor"]);
        };
        let with = With { change: Some(&captured), ..With::default() };
        let paid = self.ok(200, "paymentCallback", "captured", with).await;
        assert_eq!(paid, json!({ "outcome": "accepted" }));
    }

    /// A payment that this deployment has started and whose order is not there goes back because an operator says so.
    async fn unmatched(&mut self) {
        let word = self.example("tellUnmatched", "back");
        let deployment = self.engine.secrets().deployment().unwrap();
        let captured = |event: &mut Value| {
            let object = &mut event["data"]["object"];
            object["id"] = word["payment"].clone();
            object["metadata"] =
                json!({ "onsale_deployment": deployment, "onsale_order": word["order"] });
        };
        let with = With { change: Some(&captured), ..With::default() };
        let kept = self.ok(200, "paymentCallback", "captured", with).await;
        assert_eq!(kept, json!({ "outcome": "unmatched" }));
        let listed = self.ok(200, "operatorUnmatched", "", With::default()).await;
        assert_eq!(listed["unmatched"][0]["payment"], word["payment"]);
        let told = self.ok(200, "tellUnmatched", "back", With::default()).await;
        assert_eq!(told["state"], "due");
    }

    /// Refunds a paid order of alice's under the terms of its sale, and one of carol's as operators do.
    async fn refunds(&mut self, alices: &Value, carols: &Value) {
        self.pay("pi_5", carols).await;
        let seat =
            |order: &Value, ticket: usize| order["lines"][0]["tickets"][ticket]["seat"].clone();
        let alices_seat = |body: &mut Value| body["tickets"][0]["seat"] = seat(alices, 0);
        let order = Some(&alices["order"]);
        let with = || With { order, change: Some(&alices_seat), ..With::default() };
        let made = self.ok(200, "giveBack", "ticket", with()).await;
        assert_eq!(made["amount_minor"], 55_575, "less five percent");
        assert_eq!(self.ok(200, "giveBack", "ticket", with()).await["number"], 1);
        let listed = self.ok(200, "listRefunds", "", With { order, ..With::default() }).await;
        assert_eq!(
            (listed["refunds"].as_array().map(Vec::len), &listed["next"]),
            (Some(1), &json!(2))
        );
        let shown = self.ok(200, "showOrder", "", With { order, ..With::default() }).await;
        assert_eq!((&shown["state"], &shown["refunds"]["made"]), (&json!("paid"), &json!(1)));

        let carols_seat = |body: &mut Value| body["tickets"][0]["seat"] = seat(carols, 0);
        for (example, amount) in [("ticket", 58_500), ("amount", 5_000), ("whole", 53_500)] {
            let change = (example == "ticket").then_some(&carols_seat as &dyn Fn(&mut Value));
            let with = With { order: Some(&carols["order"]), change, ..With::default() };
            let refund = self.ok(200, "refundOrder", example, with).await;
            assert_eq!(refund["amount_minor"], amount, "{example}");
        }
        let with = With { order: Some(&carols["order"]), ..With::default() };
        let again = self.send("refundOrder", "amount", with).await;
        assert_eq!(again.status, 200, "{:#}", again.json());
        // By a token it is the same refund.
        for example in ["ticket", "amount", "whole"] {
            let change = (example == "ticket").then_some(&carols_seat as &dyn Fn(&mut Value));
            let with = With { order: Some(&carols["order"]), change, ..With::default() };
            self.ok(200, "operatorRefund", example, with).await;
        }
        // Nothing was refused, so that each stays as it is.
        for operation in ["refundOrder", "operatorRefund"] {
            let with = With { order: Some(&carols["order"]), ..With::default() };
            let again = self.ok(200, operation, "again", with).await;
            assert_eq!(again["amount_minor"], 58_500);
        }
    }

    /// The tickets of a paid order of which one was refunded: shown, issued anew, and checked in at a door.
    async fn tickets(&mut self, paid: &Value) {
        let order = || With { order: Some(&paid["order"]), ..With::default() };
        self.ok(200, "operatorReissue", "one", order()).await;
        let issued = self.ok(200, "operatorReissue", "all", order()).await;
        assert_eq!(issued["tickets"], json!([{ "number": 2, "issue": 3 }]));
        let shown = self.ok(200, "showTickets", "", order()).await;
        let states: Vec<&Value> =
            shown["tickets"].as_array().unwrap().iter().map(|one| &one["state"]).collect();
        assert_eq!(states, ["revoked", "valid"]);
        let (code, now) = (shown["tickets"][1]["code"].clone(), json!(Timestamp::now()));
        let scanned = |body: &mut Value| {
            body["check_ins"][0]["code"] = code.clone();
            body["check_ins"][0]["at"] = now.clone();
        };
        let with = With { change: Some(&scanned), ..With::default() };
        let results = self.ok(200, "operatorCheckIn", "one", with).await;
        assert_eq!(results["results"][0]["outcome"], "admitted");
        let query = With { query: "?conflicts=true", ..With::default() };
        let board = self.ok(200, "operatorCheckIns", "", query).await;
        assert_eq!((&board["admitted"], &board["conflicts"]), (&json!(1), &json!([])));
        self.ok(200, "showTicketKeys", "", With::default()).await;
        self.ok(200, "showRevoked", "", With::default()).await;
    }

    /// A picture, a document, and the sale that names both.
    async fn events(&mut self) {
        let concert = || With { sale: Some("lanterns-lakeside"), ..With::default() };
        self.ok(200, "keepPicture", "grey", With::default()).await;
        self.ok(200, "operatorKeepPicture", "grey", With::default()).await;
        let shown = self.ok(200, "publishSale", "concert", concert()).await;
        assert_eq!(shown.get("warnings"), None, "it says when and where it is");
        self.ok(200, "operatorPublish", "concert", concert()).await;
        for (example, state) in [("pause", "paused"), ("resume", "open"), ("sold_out", "sold_out")]
        {
            assert_eq!(self.ok(200, "operatorSay", example, concert()).await["state"], state);
        }
        let page = self.send("showSalePage", "", concert()).await;
        assert_eq!(page.status, 200);
        let unknown = || With { sale: Some("no-such-sale"), ..With::default() };
        assert_eq!(self.send("showSalePage", "", unknown()).await.status, 404);
        for (query, status) in [("", 200), ("?from=", 200), ("?from=a", 200), ("?from=A", 422)] {
            let with = With { query, ..With::default() };
            assert_eq!(self.send("showSitemap", "", with).await.status, status, "{query}");
        }
        let document = shown["event"]["about"].clone();
        assert_eq!(self.send("showPicture", "", With::default()).await.status, 200);
        let with = With { document: document.as_str(), ..With::default() };
        let about = self.ok(200, "showDocument", "", with).await;
        assert_eq!(about["access"]["en"], "Step-free at gate C");
        let with = With { document: Some(&"00".repeat(32)), ..With::default() };
        assert_eq!(self.send("showDocument", "", with).await.status, 404);
    }

    /// What operators see and do with a token: an order that is paid, and one that is not.
    async fn operators(&mut self, paid: &Value, pending: &Value) {
        self.ok(200, "operatorPublish", "train", With::default()).await;
        let order = Some(&paid["order"]);
        let shown = self.ok(200, "operatorOrder", "", With { order, ..With::default() }).await;
        assert_eq!(
            (&shown["buyer"], &shown["history"][0]["kind"]),
            (&json!("alice"), &json!("made"))
        );
        let ticket = &paid["lines"][0]["tickets"][1];
        let sale = paid["sale"].as_str().unwrap();
        let (number, seat) = (paid["order"].as_str().unwrap(), ticket["seat"].as_str().unwrap());
        for query in [
            format!("?order={number}"),
            "?buyer=alice".to_owned(),
            format!("?sale={sale}&tier=second&seat={seat}"),
        ] {
            let with = With { query: &query, ..With::default() };
            let found = self.ok(200, "operatorOrders", "", with).await;
            assert_eq!(found["orders"][0]["order"], paid["order"], "{query}");
        }
        let order = Some(&pending["order"]);
        let ended = self.ok(200, "operatorCancel", "", With { order, ..With::default() }).await;
        assert_eq!(ended["state"], "cancelled");
        let with = With { query: "?minutes=60", ..With::default() };
        let figures = self.ok(200, "operatorFigures", "", with).await;
        let cancelled = figures["points"].as_array().unwrap().iter();
        let cancelled: u64 = cancelled.map(|point| point["cancelled"].as_u64().unwrap()).sum();
        assert!(figures["delay_seconds"] == 0 && cancelled >= 1, "{figures:#}");
        let board = self.ok(200, "operatorBoard", "", With::default()).await;
        assert_eq!((&board["state"], &board["room"]), (&json!("open"), &Value::Null));
        assert_eq!(self.send("operatorExport", "", With::default()).await.status, 200);
        let stuck = self.ok(200, "operatorStuck", "", With::default()).await;
        assert_eq!(stuck["dead_letters"]["expiry"], 0);
        let accounts = self.ok(200, "operatorAccounts", "", With::default()).await;
        assert!(accounts["accounts"].is_array());
        let with = With { query: "?debts=true", ..With::default() };
        let debts = self.ok(200, "operatorAccounts", "", with).await;
        assert_eq!(debts, json!({ "accounts": [] }));
        let webhooks = self.ok(200, "operatorWebhooks", "", With::default()).await;
        assert_eq!(webhooks, json!({ "webhooks": [] }));
        let disputes = self.ok(200, "operatorDisputes", "?state=over", With::default()).await;
        assert_eq!(disputes, json!({ "disputes": [] }));
        let actions = self.ok(200, "operatorActions", "", With::default()).await;
        let last = &actions["actions"][0];
        assert_eq!((&last["action"], &last["who"]), (&json!("cancel"), &json!("zhang")));
        assert_eq!((&last["outcome"], &last["order"]), (&json!("done"), &pending["order"]));
    }

    /// Fills a wallet and pays an order from it.
    async fn wallets(&mut self) {
        let of_money = || With { sale: Some("top-ups"), buyer: Some("erin"), ..With::default() };
        self.ok(200, "publishSale", "top_ups", of_money()).await;
        self.ok(200, "operatorPublish", "top_ups", of_money()).await;
        let admission = self.ok(201, "admit", "two", of_money()).await;
        let two = |body: &mut Value| {
            body["admission"] = admission["token"].clone();
            body["lines"] = json!([{ "tier": "thousand", "best": { "count": 2 } }]);
        };
        let order =
            self.ok(201, "reserve", "best", With { change: Some(&two), ..of_money() }).await;
        let captured = |event: &mut Value| {
            event["id"] = json!("evt_fill");
            let object = &mut event["data"]["object"];
            object["id"] = json!("pi_fill");
            object["metadata"]["order"] = order["order"].clone();
            object["amount_received"] = order["amount_minor"].clone();
        };
        let with = With { change: Some(&captured), ..With::default() };
        let filled = self.ok(200, "paymentCallback", "captured", with).await;
        assert_eq!(filled, json!({ "outcome": "accepted" }));
        let standing = self.reserve("standing", "erin").await;
        let theirs =
            || With { order: Some(&standing["order"]), buyer: Some("erin"), ..With::default() };
        assert_eq!(self.ok(200, "payFromWallet", "", theirs()).await["state"], "paid");
        let shown = self.ok(200, "showWallets", "", theirs()).await;
        let left = 200_000 - standing["amount_minor"].as_i64().unwrap();
        assert_eq!(shown["wallets"][0]["balance_minor"], left, "{shown:#}");
        let points = self.ok(200, "showPoints", "", theirs()).await;
        assert_eq!(points, json!({ "points": 0, "growth": 0, "orders": [] }));
    }

    /// Sends a reservation of the document with a token of this buyer's own.
    async fn reserve(&mut self, example: &str, buyer: &str) -> Value {
        let with = With { buyer: Some(buyer), ..With::default() };
        let admission = self.ok(201, "admit", "two", with).await;
        let admitted = |body: &mut Value| body["admission"] = admission["token"].clone();
        let with = With { buyer: Some(buyer), change: Some(&admitted), ..With::default() };
        self.ok(201, "reserve", example, with).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_can_be_sent_and_every_answer_is_as_described() {
    let mut client = Client::start().await;
    let none = With::default;
    let served = client.ok(200, "showOpenApi", "", none()).await;
    assert_eq!(served, client.description.document, "what is served is what is described");

    client.ok(200, "publishSale", "train", none()).await;
    client.ok(200, "listSales", "", none()).await;
    client.ok(200, "showSale", "", none()).await;
    let journey = {
        let (_, _, operation) = client.description.operation("showAvailability");
        let given = operation["parameters"].as_array().unwrap().iter();
        let pairs = given.map(|one| {
            format!("{}={}", one["name"].as_str().unwrap(), one["example"].as_str().unwrap())
        });
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    };
    let search = format!("{}&date=2026-11-21", journey);
    let trains = client.ok(200, "listTrains", "", With { query: &search, ..none() }).await;
    assert_eq!(trains["trains"][0]["tiers"][0]["available"], 10);
    let stops = client.ok(200, "listStops", "", With { query: "?date=2026-11-21", ..none() }).await;
    assert_eq!(stops["stops"][0], json!({ "name": "北京南", "stops": ["VNP"] }));
    let available = With { query: &journey, ..none() };
    let available = client.ok(200, "showAvailability", "", available).await;
    assert_eq!(available["tiers"][0]["available"], 10);

    let best = client.reserve("best", "alice").await;
    let seats = client.reserve("seats", "bob").await;
    let pattern = client.reserve("pattern", "carol").await;
    let standing = client.reserve("standing", "dave").await;
    assert_eq!(seats["lines"][0]["tickets"][0]["seat"], "01-2A");

    let order = Some(&best["order"]);
    let captured = |event: &mut Value| {
        event["data"]["object"]["metadata"]["order"] = best["order"].clone();
        assert_eq!(event["data"]["object"]["amount_received"], best["amount_minor"]);
    };
    let with = With { change: Some(&captured), ..none() };
    let paid = client.ok(200, "paymentCallback", "captured", with).await;
    assert_eq!(paid, json!({ "outcome": "accepted" }));
    let ignored = client.ok(200, "paymentCallback", "other", none()).await;
    assert_eq!(ignored, json!({ "outcome": "ignored" }));

    let shown = client.ok(200, "showOrder", "", With { order, ..none() }).await;
    assert_eq!(shown["state"], "paid");
    let listed = client.ok(200, "listOrders", "", With { query: "?limit=1", ..none() }).await;
    // In a list an order is without its payments.
    let mut in_list = shown.clone();
    let payments = in_list.as_object_mut().unwrap().remove("payments").unwrap();
    assert_eq!(
        (&payments[0]["outcome"], payments.as_array().unwrap().len()),
        (&json!("accepted"), 1)
    );
    assert_eq!(listed["orders"], json!([in_list]));
    let refused = client.send("cancelOrder", "", With { order, ..none() }).await;
    assert_eq!(refused.status, 409);
    let bobs = With { order: Some(&seats["order"]), buyer: Some("bob"), ..none() };
    let begins = || With { order: Some(&seats["order"]), buyer: Some("bob"), ..none() };
    let started = client.ok(200, "startPayment", "page", begins()).await;
    assert_eq!((&started["attempt"], &started["method"]), (&json!(1), &json!("page")));
    assert_eq!(client.ok(200, "startPayment", "page", begins()).await, started);
    assert_eq!(client.ok(200, "cancelOrder", "", bobs).await["state"], "cancelled");
    assert_eq!(client.send("startPayment", "page", begins()).await.status, 409);

    client.wallets().await;
    client.events().await;
    client.refunds(&best, &pattern).await;
    client.tickets(&best).await;
    client.operators(&best, &standing).await;

    let lanterns = || With { sale: Some("lanterns-2026-11-21"), ..none() };
    let past = || With { change: Some(&is_past), ..lanterns() };
    client.ok(200, "publishSale", "room", past()).await;
    client.ok(200, "operatorPublish", "room", past()).await;
    let shown = client.ok(200, "showSale", "", lanterns()).await;
    let now = format!("?v={}", shown["map"]["hash"].as_str().unwrap());
    let map = client.ok(200, "showMap", "", With { query: &now, ..lanterns() }).await;
    let other = format!("?v={}", "0".repeat(32));
    let other = client.send("showMap", "", With { query: &other, ..lanterns() }).await;
    assert_eq!((other.status, &map["sections"][0]["tier"]), (404, &json!("floor")));
    let place = client.ok(201, "joinRoom", "join", lanterns()).await;
    assert_eq!((&place["index"], &place["standing"]), (&json!(0), &json!("certain")));
    let bobs = With { buyer: Some("bob"), ..lanterns() };
    client.ok(201, "joinRoom", "time", bobs).await;
    assert_eq!(client.send("showRoomLeaves", "", lanterns()).await.status, 404);
    assert_eq!(client.send("showRoomWindow", "", lanterns()).await.status, 404);
    let sale = SaleId::new("lanterns-2026-11-21").unwrap();
    let drawn = draw(&client.engine.app().ports, &sale, Timestamp::now()).await;
    assert_eq!(drawn, Ok(Drawing::Drawn));
    let leaves = client.ok(200, "showRoomLeaves", "", lanterns()).await;
    let count = leaves["leaves"].as_array().unwrap().len();
    assert!(count >= 2, "{leaves:#}");
    assert_eq!(client.ok(200, "showRoomWindow", "", lanterns()).await["end"], json!(count));
    // No draw awaits the round of the example.
    assert_eq!(client.send("bringRound", "round", lanterns()).await.status, 409);
    for command in ["pause", "rate", "notice"] {
        let shown = client.ok(200, "commandRoom", command, lanterns()).await;
        assert_eq!(shown["state"], "paused");
    }
    assert_eq!(client.ok(200, "showRoom", "", lanterns()).await["notice"], "Doors open at seven.");
    for command in ["pause", "rate", "notice"] {
        client.ok(200, "operatorCommand", command, lanterns()).await;
    }
    let board = client.ok(200, "operatorBoard", "", lanterns()).await;
    assert_eq!(board["room"]["notice"], "Doors open at seven.");
    let takings = client.ok(200, "operatorTakings", "", lanterns()).await;
    assert_eq!(takings["points"].as_array().unwrap().len(), 15);
    assert_eq!(client.send("showPlainRoom", "", lanterns()).await.status, 200);
    let log = client.send("showRoomLog", "", lanterns()).await;
    assert_eq!(log.status, 200);
    assert!(log.body.starts_with(b"{\"number\":0,") && log.body.ends_with(b"\n"));

    client.visit().await;

    // As they stand in the document, without a sale, an order or an admission of their own.
    let unknown = With { sale: Some("no-such-sale"), ..none() };
    assert_eq!(client.send("showSale", "", unknown).await.status, 404);
    assert_eq!(client.send("reserve", "best", none()).await.status, 403);
    assert_eq!(client.send("showOrder", "", none()).await.status, 404);
    assert_eq!(client.send("cancelOrder", "", none()).await.status, 404);
    assert_eq!(client.send("startPayment", "page", none()).await.status, 404);
    assert_eq!(client.send("giveBack", "ticket", none()).await.status, 404);
    assert_eq!(client.send("listRefunds", "", none()).await.status, 404);
    assert_eq!(client.send("refundOrder", "whole", none()).await.status, 404);
    assert_eq!(client.send("operatorOrder", "", none()).await.status, 404);
    assert_eq!(client.send("operatorOrders", "", none()).await.status, 422);
    let others = client.ok(200, "paymentCallback", "captured", none()).await;
    assert_eq!(
        others["outcome"], "ignored",
        "nobody here has the order, and it does not say that it is ours"
    );
    client.unmatched().await;
    // Its rate is one a second, by a clock that does not wait for a busy machine.
    let mut refused = None;
    for _ in 0..MAX_ADMISSIONS_TRIED {
        let again = client.send("admit", "two", none()).await;
        if again.status != 201 {
            refused = Some((again.status, again.header("retry-after").map(str::to_owned)));
            break;
        }
    }
    assert_eq!(refused, Some((429, Some("1".to_owned()))));

    let mut all = BTreeSet::new();
    for (_, _, operation) in client.description.operations() {
        let id = operation["operationId"].as_str().unwrap().to_owned();
        let succeeds =
            [200, 201].iter().any(|status| client.answered.contains(&(id.clone(), *status)));
        assert!(succeeds || id == "bringRound", "{id} was not tried");
        let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
        let names = examples.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        all.extend(names.map(|name| (id.clone(), name)));
    }
    assert_eq!(client.sent, all, "every example of a request was sent");
    assert_eq!(client.description.faults(), [""; 0]);
    client.engine.stop().await.unwrap();
}

#[test]
fn every_reply_that_is_shown_is_of_its_schema() {
    let description = Description::new();
    let mut shown = 0;
    for (_, _, operation) in description.operations() {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = description.resolved(response);
            for content in response["content"].as_object().unwrap().values() {
                for (name, example) in content["examples"].as_object().into_iter().flatten() {
                    let what = format!("{} {status} {name}", operation["operationId"]);
                    description.check(&what, &content["schema"], &example["value"]);
                    shown += 1;
                }
            }
        }
    }
    assert!(shown >= 12, "{shown} replies are shown");
    assert_eq!(description.faults(), [""; 0]);
}

#[test]
fn every_page_of_a_problem_shows_a_document_of_its_schema() {
    let description = Description::new();
    let schemas = description.document["components"]["schemas"].as_object().unwrap();
    for kind in Kind::ALL {
        let page = read(&format!("docs/problems/{}.md", kind.slug()));
        let (_, example) = page.split_once("```json\n").unwrap();
        let (example, _) = example.split_once("\n```").unwrap();
        let schema = &schemas[&problem_component(kind)];
        description.check(kind.slug(), schema, &serde_json::from_str(example).unwrap());
    }
    assert_eq!(description.faults(), [""; 0]);
    // The control: another type's document is noticed, as is a member that there is not.
    let waiting = read("docs/problems/waiting.md");
    let (_, example) = waiting.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    let mut example: Value = serde_json::from_str(example).unwrap();
    let schema = |kind| &schemas[&problem_component(kind)];
    description.check("another", schema(Kind::TooManyRequests), &example);
    example["more"] = json!(1);
    description.check("more", schema(Kind::Waiting), &example);
    let faults = description.faults();
    assert!(faults.iter().any(|fault| fault.starts_with("another: ")), "{faults:?}");
    assert!(faults.iter().any(|fault| fault.starts_with("more: ")), "{faults:?}");

    let described: BTreeSet<&str> =
        schemas.keys().map(String::as_str).filter(|name| name.ends_with("Problem")).collect();
    let kinds = Kind::ALL.map(problem_component);
    assert_eq!(described, kinds.iter().map(String::as_str).collect());
}

/// `docs/api.md` names for each endpoint, by their pages, the problems that are its own.
#[test]
fn the_docs_list_the_same_operations_and_types() {
    let docs = read("docs/api.md");
    let (endpoints, table) = docs.split_once("\n## Problems\n").unwrap();
    for kind in Kind::ALL {
        let row = format!("| {}", kind.status().as_u16());
        let link = format!("[{0}](problems/{0}.md)", kind.slug());
        let listed = table.lines().any(|line| {
            let (status, types) =
                line.trim_start_matches("| ").split_once(" | ").unwrap_or_default();
            let statuses: Vec<&str> = status.split(", ").collect();
            statuses.contains(&row.trim_start_matches("| ")) && types.contains(&link)
        });
        assert!(listed, "{link} under its status");
    }
    let described = Description::new();
    for (method, path, operation) in described.operations() {
        let heading = format!("\n## {method} {path}\n");
        let (_, section) = endpoints.split_once(&heading).unwrap_or_else(|| panic!("{heading}"));
        let section = section.split("\n## ").next().unwrap();
        for response in operation["responses"].as_object().unwrap().values() {
            let description = described.resolved(response)["description"].as_str().unwrap();
            for kind in Kind::ALL {
                let anywhere = matches!(
                    kind,
                    Kind::Malformed
                        | Kind::TooLarge
                        | Kind::Internal
                        | Kind::Unavailable
                        | Kind::OutcomeUnknown
                        | Kind::UnsupportedMediaType
                        | Kind::NotThroughTheEdge
                );
                if !anywhere && description.contains(&format!("`{}`", kind.uri())) {
                    let page = format!("(problems/{}.md)", kind.slug());
                    assert!(section.contains(&page), "{method} {path}: {page}");
                }
            }
        }
    }
}

/// What others make of it: the OpenAPI 3.1 meta-schema, by its own validator.
#[test]
fn the_document_is_openapi() {
    const SCRIPT: &str = "
import json, sys
from openapi_spec_validator import OpenAPIV31SpecValidator
document = json.load(sys.stdin)
errors = [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()]
print(len(errors), *errors)
del document['info']['title']
print(len(list(OpenAPIV31SpecValidator(document).iter_errors())))";
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, openapi::print().as_bytes()).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let output = Command::new(root().join(".venv/bin/python"))
        .args(["-c", SCRIPT])
        .stdin(file)
        .output()
        .expect("the Python environment is missing: run `make setup`");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), "0\n1", "{}", String::from_utf8_lossy(&output.stderr));
}
