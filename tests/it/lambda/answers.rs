//! The same request to both fixtures: the deployed binary under AWS's emulator, and the gateway that runs
//! the handlers in this process. Both stand on the same servers, so that each meets what the other has
//! done, and their answers must be the same.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lambda_events::sqs::SqsEvent;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::ports::{Orders as _, Ports as _};
use fake_identity::{Identity, Role};
use local::data_dir::{DataDir, Secrets};
use local::environment::{Variables, variables};
use local::gateway::{Gateway, Routes};
use local::handlers::{expire_orders, reconcile, refund, sync_db};
use local::payment;
use local::queues::{QueuePair, Queues};
use local::servers::{FakeBeacon, PaymentProvider, Stack};
use local::up;
use reqwest::Method;
use serde_json::{Value, json};
use shared::runtime::app::App;
use shared::runtime::config::Config;

use super::event::{Request, Sender, batch, message_id, schedule};
use super::hall;
use super::rie::Sandbox;
use crate::backends::{self, Servers};

const HTML: &str = "text/html";

/// The answer that a caller gets.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    status: u64,
    /// Those that tell a client or a cache what to do.
    headers: BTreeMap<&'static str, String>,
    body: Value,
}

impl Answer {
    /// The answer without what says when it was made.
    fn timeless(mut self) -> Self {
        if let Some(body) = self.body.as_object_mut() {
            body.remove("as_of");
        }
        self
    }
}

const HEADERS: [&str; 4] = ["content-type", "cache-control", "retry-after", "www-authenticate"];

/// Both fixtures, on the same servers. Nothing polls the queues: what either sends stays there until the
/// test hands it on.
struct Fixtures {
    gateway: Gateway,
    app: Arc<App>,
    http: reqwest::Client,
    sqs: aws_sdk_sqs::Client,
    queues: Queues,
    variables: Variables,
    provider: PaymentProvider,
    _beacon: FakeBeacon,
    stack: Stack,
    data_dir: DataDir,
}

impl Fixtures {
    async fn start() -> Self {
        let Servers { stack, provider, beacon, endpoints, queues, sqs, dynamo: _ } =
            Box::pin(backends::servers()).await;
        let data_dir = DataDir::temporary().unwrap();
        let secrets = data_dir.secrets().unwrap();
        let config = up::config(stack.topology(), &endpoints, &queues, &secrets).unwrap();
        let variables = variables(&config);
        // What the functions read is what the gateway runs on.
        let read = Config::read(|name| variables.get(name).cloned()).unwrap();
        let app = Arc::new(Box::pin(App::from_config(&read)).await.unwrap());
        let identity = Identity::new(secrets.identity.as_bytes());
        let gateway = Gateway::start(Arc::clone(&app), identity, 0, Routes::Api).await.unwrap();
        let http = reqwest::Client::new();
        let _beacon = beacon;
        Self { gateway, app, http, sqs, queues, variables, provider, _beacon, stack, data_dir }
    }

    fn secrets(&self) -> Secrets {
        self.data_dir.secrets().unwrap()
    }

    /// The answer of the function in the emulator.
    async fn deployed(&self, function: &Sandbox, route: &str, request: &Request<'_>) -> Answer {
        let returned = function.invoke(&request.event(route)).await;
        let status = returned["statusCode"].as_u64();
        let status = status.unwrap_or_else(|| panic!("{returned}: {}", function.log()));
        assert_eq!(returned["isBase64Encoded"], json!(false), "{returned}");
        let header = |name| {
            let value = returned["headers"][name].as_str()?;
            Some((name, value.to_owned()))
        };
        let body = serde_json::from_str(returned["body"].as_str().unwrap()).unwrap();
        Answer { status, headers: HEADERS.into_iter().filter_map(header).collect(), body }
    }

    /// The answer of the gateway.
    async fn in_process(&self, request: &Request<'_>) -> Answer {
        let method = Method::from_bytes(request.method.as_bytes()).unwrap();
        let mut sent = self
            .http
            .request(method, format!("http://{}{}", self.gateway.address(), request.target));
        let identity = Identity::new(self.secrets().identity.as_bytes());
        let token = |user, role| identity.token(user, role, Timestamp::now(), 60).unwrap();
        sent = match request.sender {
            Sender::Nobody => sent,
            Sender::Buyer(user) => sent.bearer_auth(token(user, Role::Buyer)),
            Sender::Operator => sent.bearer_auth(token("operator", Role::Operator)),
        };
        for (name, value) in &request.headers {
            sent = sent.header(*name, value);
        }
        let reply = sent.body(request.body.clone()).send().await.unwrap();
        let header = |name| {
            let value = reply.headers().get(name)?;
            Some((name, value.to_str().unwrap().to_owned()))
        };
        let headers: BTreeMap<_, _> = HEADERS.into_iter().filter_map(header).collect();
        assert!(!headers["content-type"].starts_with(HTML), "{request:?}");
        let status = u64::from(reply.status().as_u16());
        Answer { status, headers, body: reply.json().await.unwrap() }
    }

    /// Asks the deployed function, then the gateway, and expects the same answer with this status.
    async fn same(
        &self,
        function: &Sandbox,
        route: &str,
        status: u64,
        request: &Request<'_>,
    ) -> Value {
        let deployed = self.deployed(function, route, request).await.timeless();
        let in_process = self.in_process(request).await.timeless();
        assert_eq!(deployed, in_process, "{route} {request:?}");
        assert_eq!(deployed.status, status, "{route} {:#}", deployed.body);
        deployed.body
    }

    async fn sandbox(&self, function: &str) -> Sandbox {
        Sandbox::start(function, &self.variables).await
    }

    async fn publish(&self, file: &Value) {
        let target = format!("/sales/{}", file["sale"].as_str().unwrap());
        let put = Request::json(Sender::Operator, "PUT", target, file);
        assert_eq!(self.in_process(&put).await.status, 200);
    }

    /// An admission that the gateway gave.
    async fn admission(&self, user: &str, sale: &str) -> Value {
        let request = admission(user, sale, 4);
        let given = self.in_process(&request).await;
        assert_eq!(given.status, 201, "{:#}", given.body);
        given.body
    }

    /// An order of the best two seats that the gateway took.
    async fn order(&self, user: &str, sale: &str) -> Value {
        let admission = self.admission(user, sale).await;
        let made = self.in_process(&order(user, sale, &admission["token"], &best(2))).await;
        assert_eq!(made.status, 201, "{:#}", made.body);
        made.body
    }

    /// The provider's signed callback.
    fn callback(&self, event: &Value) -> Request<'static> {
        let body = event.to_string();
        let signature = payment::sign(&self.secrets(), body.as_bytes(), Timestamp::now());
        let headers =
            vec![("content-type", "application/json".to_owned()), ("stripe-signature", signature)];
        let target = payment::callback_path();
        Request { sender: Sender::Nobody, method: "POST", target, headers, body }
    }

    /// The callback of a payment of this much for an order.
    fn paid(&self, payment: &str, order: &Value, amount_minor: i64) -> Request<'static> {
        self.callback(&json!({
            "id": format!("evt_{payment}"), "object": "event", "type": "payment_intent.succeeded",
            "data": { "object": {
                "id": payment, "object": "payment_intent", "amount_received": amount_minor,
                "currency": "eur", "metadata": { "order": order["order"] },
            } },
        }))
    }

    /// The bodies of the messages in a queue, taken out of it.
    async fn sent(&self, queue: &QueuePair) -> Vec<String> {
        let mut bodies = Vec::new();
        loop {
            let receive = self.sqs.receive_message().queue_url(&queue.url);
            let received = receive.max_number_of_messages(10).send().await.unwrap();
            let messages = received.messages.unwrap_or_default();
            if messages.is_empty() {
                assert!(!bodies.is_empty(), "{} is empty", queue.name);
                return bodies;
            }
            bodies.extend(messages.into_iter().filter_map(|message| message.body));
        }
    }

    /// How many paid tickets of the hall have been counted.
    async fn counted(&self) -> u64 {
        let hall = SaleId::new("hall").unwrap();
        let counted = self.app.ports.orders().statistics(&hall).await.unwrap();
        counted.iter().map(|(_, totals)| totals.tickets).sum()
    }

    async fn state(&self, user: &str, order: &Value) -> Value {
        let target = format!("/orders/{}", order["order"].as_str().unwrap());
        let shown = self.in_process(&Request::get(Sender::Buyer(user), target)).await;
        shown.body["state"].clone()
    }
}

fn best(count: u16) -> Value {
    json!([{ "tier": "floor", "best": { "count": count, "together": "required" } }])
}

fn admission<'a>(user: &'a str, sale: &str, tickets: u16) -> Request<'a> {
    let target = format!("/sales/{sale}/admissions");
    Request::json(Sender::Buyer(user), "POST", target, &json!({ "tickets": tickets }))
}

fn order<'a>(user: &'a str, sale: &str, token: &Value, lines: &Value) -> Request<'a> {
    let target = format!("/sales/{sale}/orders");
    let body = json!({ "admission": token, "lines": lines });
    Request::json(Sender::Buyer(user), "POST", target, &body)
}

fn slug(body: &Value) -> &str {
    body["type"].as_str().unwrap_or_default().trim_start_matches("/problems/")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sales_are_published_and_shown_alike() {
    let fixtures = Fixtures::start().await;
    let sales = fixtures.sandbox("sales").await;
    let put = "PUT /sales/{sale}";
    let file = hall("hall", 8, 900);
    let publish = Request::json(Sender::Operator, "PUT", "/sales/hall", &file);
    let published = fixtures.same(&sales, put, 200, &publish).await;
    assert_eq!(published["version"], json!(1), "the gateway found what the function had written");
    let mut defective = file.clone();
    defective["limit_per_buyer"] = json!(0);
    let defective = Request::json(Sender::Operator, "PUT", "/sales/hall", &defective);
    assert_eq!(slug(&fixtures.same(&sales, put, 422, &defective).await), "invalid");
    let torn = Request { body: "{".to_owned(), ..publish.clone() };
    assert_eq!(slug(&fixtures.same(&sales, put, 400, &torn).await), "malformed");

    let get = async |route, status, target: &str| {
        fixtures.same(&sales, route, status, &Request::get(Sender::Nobody, target)).await
    };
    assert_eq!(get("GET /sales", 200, "/sales").await["sales"][0]["sale"], "hall");
    assert_eq!(get("GET /sales/{sale}", 200, "/sales/hall").await["state"], "open");
    assert_eq!(slug(&get("GET /sales/{sale}", 404, "/sales/nowhere").await), "not-found");
    let availability = "GET /sales/{sale}/availability";
    let left = get(availability, 200, "/sales/hall/availability").await;
    assert_eq!(left["tiers"][0]["available"], json!(80));
    get(availability, 422, "/sales/hall/availability?from=A&to=B").await;
    assert_eq!(get("GET /openapi.json", 200, "/openapi.json").await["openapi"], "3.1.1");
    // What the gateway's authorizer keeps away, the function refuses as well.
    let anonymous = Request { sender: Sender::Nobody, ..publish };
    let deployed = fixtures.deployed(&sales, put, &anonymous).await;
    assert_eq!((deployed.status, slug(&deployed.body)), (401, "not-authenticated"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_are_bought_alike() {
    let fixtures = Fixtures::start().await;
    fixtures.publish(&hall("hall", 8, 900)).await;
    let gate = fixtures.sandbox("token-gate").await;
    let reserve = fixtures.sandbox("reserve").await;
    let admit = "POST /sales/{sale}/admissions";
    let make = "POST /sales/{sale}/orders";

    // An admission is a new one each time: what is in it must be alike, and each fixture takes the
    // other's.
    let deployed = fixtures.deployed(&gate, admit, &admission("alice", "hall", 2)).await;
    let in_process = fixtures.in_process(&admission("bob", "hall", 2)).await;
    let shape = |answer: &Answer| {
        let body = answer.body.as_object().unwrap();
        let fields: Vec<String> = body.keys().cloned().collect();
        (answer.status, answer.headers.clone(), fields, body["tickets"].clone())
    };
    assert_eq!(shape(&deployed), shape(&in_process));
    assert_eq!(deployed.status, 201);
    for (tickets, status) in [(0, 422), (99, 422)] {
        fixtures.same(&gate, admit, status, &admission("carol", "hall", tickets)).await;
    }
    fixtures.same(&gate, admit, 404, &admission("carol", "nowhere", 1)).await;
    let torn = Request { body: "{".to_owned(), ..admission("carol", "hall", 1) };
    fixtures.same(&gate, admit, 400, &torn).await;

    // The function makes Alice's order, and the gateway finds it; for Bob the other way round.
    let alice = order("alice", "hall", &deployed.body["token"], &best(2));
    let made = fixtures.same(&reserve, make, 201, &alice).await;
    assert_eq!(made["order"], deployed.body["order"], "the order was named at admission");
    let bob = order("bob", "hall", &in_process.body["token"], &best(2));
    assert_eq!(fixtures.in_process(&bob).await.status, 201);
    fixtures.same(&reserve, make, 201, &bob).await;

    let refusals = [
        (400, "malformed", Request { body: "x".to_owned(), ..alice.clone() }),
        (403, "not-admitted", order("alice", "hall", &json!("a.b.c"), &best(2))),
        (403, "not-admitted", order("mallory", "hall", &deployed.body["token"], &best(2))),
        (422, "token-reused", order("alice", "hall", &deployed.body["token"], &best(1))),
    ];
    for (status, expected, request) in refusals {
        let body = fixtures.same(&reserve, make, status, &request).await;
        assert_eq!(slug(&body), expected, "{body:#}");
    }
    let carol = fixtures.admission("carol", "hall").await;
    let seat = made["lines"][0]["tickets"][0]["seat"].clone();
    let taken = json!([{ "tier": "floor", "seats": [seat] }]);
    let refused =
        fixtures.same(&reserve, make, 409, &order("carol", "hall", &carol["token"], &taken)).await;
    assert_eq!(slug(&refused), "seat-taken", "{refused:#}");

    let orders = fixtures.sandbox("orders").await;
    let number = made["order"].as_str().unwrap();
    let show = |user| Request::get(Sender::Buyer(user), format!("/orders/{number}"));
    let shown = fixtures.same(&orders, "GET /orders/{order}", 200, &show("alice")).await;
    assert_eq!(shown["state"], "pending");
    fixtures.same(&orders, "GET /orders/{order}", 404, &show("bob")).await;
    let mine = Request::get(Sender::Buyer("alice"), "/orders?limit=1");
    let listed = fixtures.same(&orders, "GET /orders", 200, &mine).await;
    assert_eq!(listed["orders"].as_array().unwrap().len(), 1);
    let too_many = Request::get(Sender::Buyer("alice"), "/orders?limit=0");
    fixtures.same(&orders, "GET /orders", 422, &too_many).await;

    let cancel = fixtures.sandbox("cancel").await;
    let given_up = |user| {
        let target = format!("/orders/{number}/cancel");
        Request { method: "POST", ..Request::get(Sender::Buyer(user), target) }
    };
    let route = "POST /orders/{order}/cancel";
    fixtures.same(&cancel, route, 404, &given_up("bob")).await;
    assert_eq!(fixtures.same(&cancel, route, 200, &given_up("alice")).await["state"], "cancelled");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn payments_are_taken_counted_and_sent_back_alike() {
    let fixtures = Fixtures::start().await;
    fixtures.publish(&hall("hall", 8, 900)).await;
    let callback = fixtures.sandbox("pay-callback").await;
    let route = "POST /payments/{provider}/callback";
    let pay = async |status, request: &Request<'static>| {
        fixtures.same(&callback, route, status, request).await
    };
    let mut paid = Vec::new();
    for user in ["alice", "bob"] {
        let order = fixtures.order(user, "hall").await;
        let request = fixtures.paid(&format!("pi_{user}"), &order, 5000);
        // The function takes it, and to the gateway it is the same payment again.
        assert_eq!(pay(200, &request).await["outcome"], "accepted");
        assert_eq!(fixtures.state(user, &order).await, "paid");
        paid.push(order);
    }
    let forged = Request { body: "{}".to_owned(), ..fixtures.paid("pi_m", &paid[0], 5000) };
    assert_eq!(slug(&pay(401, &forged).await), "not-authenticated");
    pay(200, &fixtures.callback(&json!({ "id": "evt_1", "object": "event", "type": "charge.updated", "data": { "object": {} } }))).await;
    let cancel = fixtures.sandbox("cancel").await;
    let number = paid[0]["order"].as_str().unwrap();
    let target = format!("/orders/{number}/cancel");
    let given_up = Request { method: "POST", ..Request::get(Sender::Buyer("alice"), target) };
    fixtures.same(&cancel, "POST /orders/{order}/cancel", 409, &given_up).await;

    // What the function has sent is counted by the deployed consumer, once, and what is no message is
    // reported, by both fixtures in the same words.
    let mut bodies = fixtures.sent(&fixtures.queues.sync).await;
    bodies.insert(1, "not a message".to_owned());
    let event = batch("sync", &bodies);
    let sync = fixtures.sandbox("sync-db").await;
    assert_eq!(fixtures.counted().await, 0);
    let deployed = sync.invoke(&event).await;
    assert_eq!(fixtures.counted().await, 4, "tickets, by the deployed consumer");
    assert_eq!(deployed, json!({ "batchItemFailures": [{ "itemIdentifier": message_id(1) }] }));
    let again = sync_db::handle(&fixtures.app, read(&event)).await;
    assert_eq!(deployed, serde_json::to_value(again).unwrap());
    assert_eq!(fixtures.counted().await, 4, "and once");

    // A payment of too little goes back: the callback asks for it, the deployed consumer sends it.
    let order = fixtures.order("carol", "hall").await;
    let provider = &fixtures.provider;
    let amount = Money { amount_minor: MinorUnits(1), currency: Currency::new("EUR").unwrap() };
    let number = order["order"].as_str().unwrap().parse().unwrap();
    provider.capture("pi_carol", number, amount, Timestamp::now()).unwrap();
    let too_little = pay(200, &fixtures.paid("pi_carol", &order, 1)).await;
    assert_eq!(too_little["outcome"], "refund", "{too_little:#}");
    let event = batch("refund", &fixtures.sent(&fixtures.queues.refund).await);
    let refund = fixtures.sandbox("refund").await;
    assert!(provider.ledger()[0].refunds.is_empty());
    let deployed = refund.invoke(&event).await;
    assert_eq!(deployed, json!({ "batchItemFailures": [] }), "{}", refund.log());
    let again = refund::handle(&fixtures.app, read(&event)).await;
    assert_eq!(deployed, serde_json::to_value(again).unwrap());
    // Nothing else has read the queue: what went back, the deployed function sent back, once.
    let ledger = provider.ledger();
    assert_eq!((ledger.len(), ledger[0].refunds.len()), (1, 1), "{ledger:?}");
}

fn read(event: &Value) -> SqsEvent {
    serde_json::from_value(event.clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_due_or_lost_is_put_right_alike() {
    let fixtures = Fixtures::start().await;
    fixtures.publish(&hall("hall", 8, 5)).await;
    let order = fixtures.order("alice", "hall").await;
    let message = json!({ "sale": "hall", "order": order["order"], "due_at": order["pay_by"] });
    let event = batch("expiry", &["{}".to_owned(), message.to_string()]);
    let expire = fixtures.sandbox("expire-orders").await;
    // Too early, the message is sent again with a delay; when the time is up the order ends.
    let since = Instant::now();
    while fixtures.state("alice", &order).await != "expired" {
        assert!(since.elapsed() < Duration::from_secs(180), "{}", expire.log());
        let deployed = expire.invoke(&event).await;
        assert_eq!(deployed, json!({ "batchItemFailures": [{ "itemIdentifier": message_id(0) }] }));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let again = expire_orders::handle(&fixtures.app, read(&event)).await;
    assert_eq!(expire.invoke(&event).await, serde_json::to_value(again).unwrap());

    // Redis loses everything: both fixtures pause, the deployed consumer loads, both fixtures go on.
    let mut redis = backends::redis(&fixtures.stack.endpoints().redis_url).await;
    let sales = fixtures.sandbox("sales").await;
    let route = "GET /sales/{sale}/availability";
    let availability = Request::get(Sender::Nobody, "/sales/hall/availability");
    let load = fixtures.sandbox("load-sale").await;
    let () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
    let paused = fixtures.deployed(&sales, route, &availability).await;
    assert_eq!((paused.status, slug(&paused.body)), (503, "not-loaded"));
    let event = batch("load", &fixtures.sent(&fixtures.queues.load).await);
    assert_eq!(load.invoke(&event).await, json!({ "batchItemFailures": [] }), "{}", load.log());
    let left = fixtures.same(&sales, route, 200, &availability).await;
    assert_eq!(left["tiers"][0]["available"], json!(80));

    // The schedule: the deployed function finds what there is to do, and leaves nothing.
    let () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
    let reconcile = fixtures.sandbox("reconcile").await;
    let report = reconcile.invoke(&schedule()).await;
    assert_eq!(report["loaded"], json!(1), "{report} {}", reconcile.log());
    let quiet = reconcile.invoke(&schedule()).await;
    let event = serde_json::from_value(schedule()).unwrap();
    let in_process = reconcile::handle(&fixtures.app, event).await.unwrap();
    assert_eq!(quiet, serde_json::to_value(in_process).unwrap());
    fixtures.same(&sales, route, 200, &availability).await;
}

/// The comparison is one: of a function that is given another key, the answers differ.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_function_with_another_key_is_told_apart() {
    let mut fixtures = Fixtures::start().await;
    fixtures.publish(&hall("hall", 8, 900)).await;
    let given = fixtures.admission("alice", "hall").await;
    let other = "local:QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWY=";
    fixtures.variables.insert("ONSALE_ADMISSION_KEYS", other.to_owned());
    let reserve = fixtures.sandbox("reserve").await;
    let request = order("alice", "hall", &given["token"], &best(1));
    let deployed = fixtures.deployed(&reserve, "POST /sales/{sale}/orders", &request).await;
    let in_process = fixtures.in_process(&request).await;
    assert_eq!((deployed.status, in_process.status), (403, 201));
    assert_ne!(deployed.headers, in_process.headers);
}
