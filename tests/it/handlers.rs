//! The functions as they run in Lambda, over real Redis and stand-ins for DynamoDB and SQS: from an
//! API Gateway event to the response, and what every refusal looks like.

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::ids::{ProviderId, SaleId, TierId, UserId};
use engine::domain::money::{Currency, Money};
use engine::domain::number::OrderNumber;
use engine::domain::order::TierTotals;
use engine::domain::time::Timestamp;
use engine::ports::{Orders as _, Ports as _, Seats as _};
use fake_payments::Fault;
use lambda_http::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use lambda_http::{Body, Request, Response};
use local::queues::Queues;
use local::servers::{PaymentProvider, Stack};
use serde_json::{Value, json};
use shared::http::tokens::Grant;
use shared::providers::stripe::signature::sign;
use shared::redis::Topology;
use shared::runtime::app::App;
use shared::runtime::config::{
    AdmissionConfig, Config, DynamoDbConfig, MetricsConfig, PaymentConfig, RedisConfig, Secret,
    SqsConfig,
};

use crate::backends::{self, Servers};

pub const PAYMENT_SECRET: &[u8] = b"whsec_test";
const OPERATOR: &str = "arn:aws:iam::000000000000:role/operator";

pub struct Fixture {
    pub app: App,
    config: Config,
    sqs: aws_sdk_sqs::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    orders_table: String,
    pub queues: Queues,
    pub provider: PaymentProvider,
    _stack: Stack,
}

/// A response, read.
#[derive(Debug)]
pub struct Got {
    status: u16,
    content_type: String,
    cache_control: String,
    retry_after: Option<String>,
    body: Value,
}

impl Got {
    fn of(response: Response<Body>) -> Self {
        let header = |name| {
            let value = response.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        Self {
            status: response.status().as_u16(),
            content_type: header(CONTENT_TYPE).unwrap(),
            cache_control: header(CACHE_CONTROL).unwrap(),
            retry_after: header(RETRY_AFTER),
            body: serde_json::from_slice(response.body()).unwrap(),
        }
    }

    pub fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{:#}", self.body);
        assert_eq!(self.content_type, "application/json");
        self.body
    }

    /// Checks that this is the problem with this type and status; returns the document.
    pub fn problem(self, status: u16, slug: &str) -> Value {
        assert_eq!(self.body["type"], format!("/problems/{slug}"), "{:#}", self.body);
        assert_eq!((self.status, &self.body["status"]), (status, &json!(status)));
        assert_eq!(self.content_type, "application/problem+json");
        let seconds = self.retry_after.map(|seconds| json!(seconds.parse::<u32>().unwrap()));
        assert_eq!(seconds.as_ref(), self.body.get("retry_after_seconds"));
        self.body
    }
}

/// Who sends a request.
#[derive(Clone, Copy)]
pub enum Sender<'a> {
    Nobody,
    Buyer(&'a str),
    Operator,
}

/// The event that API Gateway's HTTP API sends (payload format 2.0), as the runtime reads it.
pub fn request(
    sender: Sender<'_>,
    method: &str,
    target: &str,
    headers: Value,
    body: &str,
) -> Request {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
        "headers": headers, "body": body, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "000000000000", "apiId": "api", "stage": "$default", "timeEpoch": 0,
            "requestId": "r", "http": { "method": method, "path": path, "protocol": "HTTP/1.1" }
        }
    });
    event["requestContext"]["authorizer"] = match sender {
        Sender::Nobody => Value::Null,
        Sender::Buyer(sub) => json!({ "jwt": { "claims": { "sub": sub }, "scopes": null } }),
        Sender::Operator => json!({ "iam": { "userArn": OPERATOR } }),
    };
    lambda_http::request::from_str(&event.to_string()).unwrap()
}

/// An API Gateway that routes to the functions. What a function needs of the stack is boxed: a test
/// sends many requests, and would have room for each.
pub async fn send(app: &App, request: Request) -> Got {
    let path = request.uri().path().to_owned();
    let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let response = match segments.as_slice() {
        ["sales", _, "admissions"] => Box::pin(token_gate::handle(app, request)).await,
        ["sales", _, "orders"] => Box::pin(reserve::handle(app, request)).await,
        ["sales", ..] => Box::pin(sales::handle(app, request)).await,
        ["orders", _, "cancel"] => Box::pin(cancel::handle(app, request)).await,
        ["orders", ..] => Box::pin(orders::handle(app, request)).await,
        _ => Box::pin(pay_callback::handle(app, request)).await,
    };
    Got::of(response)
}

pub fn hall() -> Value {
    let tier = |id: &str, rows: u32, seats: u32| {
        let row = |row: u32| json!({ "row": row.to_string(), "seats": { "prefix": format!("{id}-{row}-"), "first": 1, "count": seats } });
        let rows: Vec<Value> = (1..=rows).map(row).collect();
        json!({ "tier": id, "name": id, "price_minor": 2500, "sections": [{ "section": id, "rows": rows }] })
    };
    json!({
        "sale": "hall", "title": "Hall", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "gate": { "shards": 1, "user_lock_ms": 1 },
        "tiers": [tier("vip", 2, 8), tier("small", 2, 2)]
    })
}

fn train() -> Value {
    json!({
        "sale": "g35", "title": "G35", "currency": "CNY",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 5, "pay_window_seconds": 900, "attendees": "required",
        "gate": { "shards": 1, "user_lock_ms": 1 },
        "stops": [{ "stop": "VNP", "name": "北京南" }, { "stop": "JGK", "name": "济南西" }, { "stop": "NGH", "name": "宁波" }],
        "tiers": [{
            "tier": "second", "name": "二等座", "columns": ["A", "B", "C", null, "D", "F"],
            "fares": [
                { "from": "VNP", "to": "JGK", "price_minor": 18500 },
                { "from": "JGK", "to": "NGH", "price_minor": 40000 },
                { "from": "VNP", "to": "NGH", "price_minor": 58500 }
            ],
            "sections": [{ "section": "01", "rows": [
                { "row": "1", "seats": ["01-1A", "01-1B", "01-1C", null, "01-1D", "01-1F"] },
                { "row": "2", "seats": ["01-2A", "01-2B", "01-2C", null, "01-2D", "01-2F"] }
            ] }]
        }]
    })
}

impl Fixture {
    /// Servers, tables, queues, and the engine on them.
    pub async fn start() -> Self {
        let Servers { stack, provider, endpoints, queues, sqs, dynamo } = backends::servers().await;
        let tables = dynamo.config().tables.clone();
        let (dynamodb, orders_table) = (dynamo.client().clone(), tables.orders.clone());
        let urls = queues.urls();
        let config = Config {
            redis: RedisConfig { topology: Topology::Single(endpoints.redis) },
            dynamodb: DynamoDbConfig { tables, endpoint: Some(endpoints.dynamodb) },
            sqs: SqsConfig { urls, endpoint: Some(endpoints.sqs) },
            admission: AdmissionConfig { keys: vec![("k1".to_owned(), Secret(vec![7; 32]))] },
            payments: PaymentConfig {
                secrets: vec![(
                    ProviderId::new("stripe").unwrap(),
                    Secret(PAYMENT_SECRET.to_vec()),
                )],
                tolerance_seconds: 300,
            },
            providers: backends::providers(&provider),
            metrics: MetricsConfig::Off,
            ca_file: None,
        };
        let app = App::from_config(&config).await.unwrap();
        Self { app, config, sqs, dynamodb, orders_table, queues, provider, _stack: stack }
    }

    pub async fn json(&self, sender: Sender<'_>, method: &str, target: &str, body: &Value) -> Got {
        let headers = json!({ "content-type": "application/json" });
        send(&self.app, request(sender, method, target, headers, &body.to_string())).await
    }

    pub async fn get(&self, sender: Sender<'_>, target: &str) -> Got {
        send(&self.app, request(sender, "GET", target, json!({}), "")).await
    }

    pub async fn publish(&self, file: &Value) -> Got {
        let target = format!("/sales/{}", file["sale"].as_str().unwrap());
        self.json(Sender::Operator, "PUT", &target, file).await
    }

    /// A token that the gate gave.
    pub async fn admission(&self, buyer: &str, sale: &str, tickets: u16) -> Value {
        let target = format!("/sales/{sale}/admissions");
        let body = json!({ "tickets": tickets });
        self.json(Sender::Buyer(buyer), "POST", &target, &body).await.ok(201)
    }

    pub async fn order(&self, buyer: &str, sale: &str, token: &Value, lines: Value) -> Got {
        let body = json!({ "admission": token, "lines": lines });
        self.json(Sender::Buyer(buyer), "POST", &format!("/sales/{sale}/orders"), &body).await
    }

    /// An admission and its first order.
    pub async fn buy(&self, buyer: &str, sale: &str, lines: Value) -> Got {
        let admission = self.admission(buyer, sale, 4).await;
        self.order(buyer, sale, &admission["token"], lines).await
    }

    pub async fn callback(&self, payment: &str, order: &Value, amount_minor: i64) -> Got {
        let event = json!({
            "id": "evt_1", "object": "event", "type": "payment_intent.succeeded",
            "data": { "object": {
                "id": payment, "amount_received": amount_minor, "currency": "eur",
                "metadata": { "order": order }
            } }
        });
        let body = event.to_string();
        let signature = sign(PAYMENT_SECRET, body.as_bytes(), Timestamp::now());
        let headers = json!({ "stripe-signature": signature });
        let target = "/payments/stripe/callback";
        send(&self.app, request(Sender::Nobody, "POST", target, headers, &body)).await
    }

    /// Redis loses everything.
    pub async fn lose_redis(&self) {
        let client = redis::Client::open(self._stack.endpoints().redis_url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let _: () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    }

    /// The engine reaches DynamoDB no longer.
    pub async fn lose_dynamodb(&mut self) {
        self.config.dynamodb.endpoint = Some("http://127.0.0.1:1".to_owned());
        self.app = App::from_config(&self.config).await.unwrap();
    }

    /// How many messages wait in a queue, delayed ones included.
    async fn waiting(&self, url: &str) -> u32 {
        use QueueAttributeName as Name;
        let asked = self.sqs.get_queue_attributes().queue_url(url).attribute_names(Name::All);
        let attributes = asked.send().await.unwrap().attributes.unwrap();
        let names = [Name::ApproximateNumberOfMessages, Name::ApproximateNumberOfMessagesDelayed];
        names.iter().map(|name| attributes[name].parse::<u32>().unwrap()).sum()
    }

    /// Receives what a queue has, as Lambda would hand it over.
    pub async fn batch(&self, url: &str) -> SqsEvent {
        let receive = self.sqs.receive_message().queue_url(url).max_number_of_messages(10);
        let messages = receive.send().await.unwrap().messages.unwrap_or_default();
        let record = |message: aws_sdk_sqs::types::Message| json!({ "messageId": message.message_id, "body": message.body });
        let records: Vec<Value> = messages.into_iter().map(record).collect();
        serde_json::from_value(json!({ "Records": records })).unwrap()
    }
}

fn failures(response: &SqsBatchResponse) -> usize {
    response.batch_item_failures.len()
}

pub fn records(bodies: &[Value]) -> SqsEvent {
    let record = |(index, body): (usize, &Value)| {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        json!({ "messageId": index.to_string(), "body": body })
    };
    let records: Vec<Value> = bodies.iter().enumerate().map(record).collect();
    serde_json::from_value(json!({ "Records": records })).unwrap()
}

pub fn best(tier: &str, count: u16) -> Value {
    json!([{ "tier": tier, "best": { "count": count } }])
}

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
    let tickets = json!([{ "seat": "vip-1-1" }, { "seat": "vip-1-2" }]);
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
    assert_eq!(free, [0b0011_1111, 0xff]);

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
    let once = TierTotals { tickets: 2, revenue_minor: 5000 };
    assert_eq!(counted, [(TierId::new("vip").unwrap(), once)]);

    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    let event = serde_json::from_value(event).unwrap();
    let report = reconcile::handle(&fixture.app, event).await.unwrap();
    assert!(report.is_quiet(), "{report:?}");
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
    other.problem(422, "token-reused");

    // A token that has run out still finds its order, and makes no other.
    let run_out = |order: &str, user: &str| {
        let grant = Grant {
            sale: SaleId::new("hall").unwrap(),
            user: UserId::new(user).unwrap(),
            order: order.parse().unwrap(),
            tickets: 2,
            expires_at: Timestamp::from_ms(1_600_000_000_000),
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
    assert_eq!(late, json!({ "outcome": "refund", "reason": "too_late" }));
    assert_eq!(fixture.get(alice, &target).await.ok(200)["state"], "refund_due");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_goes_back_is_asked_of_the_provider_and_shown() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let alice = Sender::Buyer("alice");
    let lines = json!([{ "tier": "vip", "seats": ["vip-1-1", "vip-1-2"] }]);
    let order = fixture.buy("alice", "hall", lines.clone()).await.ok(201);
    let number = order["order"].as_str().unwrap();
    let target = format!("/orders/{number}");
    fixture.json(alice, "POST", &format!("{target}/cancel"), &json!({})).await.ok(200);
    fixture.buy("bob", "hall", lines.clone()).await.ok(201);
    fixture.callback("pi_late", &json!(number), 5000).await.ok(200);
    let shown = fixture.get(alice, &target).await.ok(200);
    assert_eq!(
        (&shown["state"], shown["payments"].as_array().unwrap().len()),
        (&json!("refund_due"), 1)
    );
    let payment = &shown["payments"][0];
    assert_eq!((&payment["payment"], &payment["outcome"]), (&json!("pi_late"), &json!("refund")));
    assert_eq!((&payment["reason"], &payment["amount_minor"]), (&json!("too_late"), &json!(5000)));
    assert_eq!(payment["refund"]["state"], "requested");

    let euros = Money { amount_minor: 5000, currency: Currency::new("EUR").unwrap() };
    fixture.provider.capture("pi_late", number.parse().unwrap(), euros, Timestamp::now()).unwrap();
    let batch = fixture.batch(&fixture.queues.refund.url).await;
    fixture.provider.next(Fault::FailRefund);
    assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 1, "it comes again");
    fixture.provider.next(Fault::LeaveRefundPending);
    assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 0);
    let shown = fixture.get(alice, &target).await.ok(200);
    let refund = &shown["payments"][0]["refund"];
    assert_eq!((&shown["state"], &refund["state"]), (&json!("refund_due"), &json!("pending")));
    fixture.provider.settle_refunds("pi_late", true).unwrap();
    for _ in 0..2 {
        assert_eq!(failures(&refund::handle(&fixture.app, batch.clone()).await), 0);
        let done = fixture.get(alice, &target).await.ok(200);
        let refund = &done["payments"][0]["refund"];
        assert_eq!((&done["state"], &refund["state"]), (&json!("refunded"), &json!("refunded")));
    }
    assert_eq!(fixture.provider.ledger()[0].refunds.len(), 1);
    let nonsense = refund::handle(&fixture.app, records(&[json!("not json")])).await;
    assert_eq!(failures(&nonsense), 1, "left to the dead-letter queue");
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
async fn each_refusal_has_its_problem() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let (nobody, alice, operator) = (Sender::Nobody, Sender::Buyer("alice"), Sender::Operator);
    let one = json!({ "tickets": 1 });

    // Who.
    let admissions = "/sales/hall/admissions";
    fixture.json(nobody, "POST", admissions, &one).await.problem(401, "not-authenticated");
    fixture.json(alice, "PUT", "/sales/hall", &hall()).await.problem(401, "not-authenticated");
    fixture
        .json(alice, "POST", "/sales/hall/orders", &json!({ "lines": [] }))
        .await
        .problem(403, "not-admitted");

    // What.
    let raw = async |sender, method: &str, target: &str, content_type: &str, body: &str| {
        let headers = json!({ "content-type": content_type });
        send(&fixture.app, request(sender, method, target, headers, body)).await
    };
    let json_type = "application/json";
    raw(alice, "POST", admissions, json_type, "{").await.problem(400, "malformed");
    raw(alice, "POST", admissions, "text/plain", "{}").await.problem(415, "unsupported-media-type");
    let long = format!("{{\"tickets\":1}}{}", " ".repeat(64 * 1024));
    raw(alice, "POST", admissions, json_type, &long).await.problem(413, "too-large");
    let problem = fixture.json(alice, "POST", admissions, &json!({ "tickets": 5 })).await;
    assert_eq!(problem.problem(422, "invalid")["at"], "tickets");
    fixture.json(alice, "POST", admissions, &json!({})).await.problem(422, "invalid");
    fixture.json(alice, "POST", "/sales/none/admissions", &one).await.problem(404, "not-found");
    fixture.get(nobody, "/sales/none").await.problem(404, "not-found");
    fixture.get(nobody, "/sales/none/availability").await.problem(404, "not-found");
    fixture.get(alice, "/orders/1024").await.problem(404, "not-found");
    fixture.get(alice, "/orders/none").await.problem(404, "not-found");
    fixture.json(alice, "DELETE", "/sales/hall", &json!({})).await.problem(404, "not-found");

    // The operator.
    let mut broken = hall();
    broken["limit_per_buyer"] = json!(0);
    let problem = fixture.publish(&broken).await.problem(422, "invalid");
    assert_eq!(problem["defects"][0]["at"], "limit_per_buyer");
    let other = fixture.json(operator, "PUT", "/sales/other", &hall()).await;
    assert_eq!(other.problem(422, "invalid")["at"], "sale");
    let mut moved = hall();
    moved["tiers"].as_array_mut().unwrap().pop();
    fixture.publish(&moved).await.problem(409, "seats-differ");

    // What is left.
    let required = json!([{ "tier": "small", "best": { "count": 3, "together": "required" } }]);
    fixture.buy("alice", "hall", required).await.problem(409, "no-adjacent");
    let problem = fixture.buy("alice", "hall", json!([{ "tier": "vip", "seats": ["vip-1-99"] }]));
    assert_eq!(problem.await.problem(422, "invalid")["at"], "lines[0].seats[0]");
    fixture.buy("carol", "hall", best("small", 4)).await.ok(201);
    assert_eq!(
        fixture.buy("dave", "hall", best("small", 1)).await.problem(409, "sold-out")["tier"],
        "small"
    );
    let problem = fixture.buy("carol", "hall", best("vip", 1)).await.problem(403, "limit-reached");
    assert_eq!(problem["remaining_allowance"], json!(0));

    // The gate and the window.
    let mut soon = hall();
    soon["sale"] = json!("soon");
    soon["opens_at"] = json!("2099-01-01T00:00:00Z");
    fixture.publish(&soon).await.ok(200);
    let problem = fixture.json(alice, "POST", "/sales/soon/admissions", &one).await;
    assert_eq!(problem.problem(403, "sale-closed")["opens_at"], "2099-01-01T00:00:00.000Z");
    let mut slow = hall();
    slow["sale"] = json!("slow");
    slow["gate"]["user_lock_ms"] = json!(60_000);
    fixture.publish(&slow).await.ok(200);
    fixture.admission("alice", "slow", 1).await;
    let problem = fixture.json(alice, "POST", "/sales/slow/admissions", &one).await;
    assert!(problem.problem(429, "too-many-requests")["retry_after_seconds"].as_u64() <= Some(60));

    // The provider.
    let callback = async |target: &str, headers: Value, body: &str| {
        send(&fixture.app, request(nobody, "POST", target, headers, body)).await
    };
    let stripe = "/payments/stripe/callback";
    callback(stripe, json!({}), "{}").await.problem(401, "not-authenticated");
    let foreign = sign(b"whsec_other", b"{}", Timestamp::now());
    callback(stripe, json!({ "stripe-signature": foreign }), "{}")
        .await
        .problem(401, "not-authenticated");
    let ours = |body: &str| sign(PAYMENT_SECRET, body.as_bytes(), Timestamp::now());
    let headers = json!({ "payment-signature": ours("{}") });
    callback(stripe, headers.clone(), "{}").await.problem(422, "invalid");
    callback("/payments/none/callback", headers, "{}").await.problem(404, "not-found");
    let created = r#"{"type":"payment_intent.created"}"#;
    let ignored = callback(stripe, json!({ "stripe-signature": ours(created) }), created).await;
    assert_eq!(ignored.ok(200), json!({ "outcome": "ignored" }));
    let unknown = fixture.callback("pi_9", &json!("1024"), 1).await.ok(200);
    assert_eq!(unknown, json!({ "outcome": "refund", "reason": "unknown_order" }));
}

/// An expiry message that says that the order's time is up.
fn overdue(order: &Value) -> Value {
    json!({ "sale": "hall", "order": order, "due_at": "2020-01-01T00:00:00Z" })
}

/// Hands a batch to expire-orders; which of its messages failed.
async fn failed_to_expire(fixture: &Fixture, bodies: &[Value]) -> Vec<String> {
    let handled = expire_orders::handle(&fixture.app, records(bodies)).await;
    handled.batch_item_failures.into_iter().map(|one| one.item_identifier).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_expiry_message_hops_on() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201)["order"].clone();
    let expiry = &fixture.queues.expiry.url;
    let before = fixture.waiting(expiry).await;
    let bodies = [overdue(&order), json!("not json"), overdue(&json!("1024"))];
    let failed = failed_to_expire(&fixture, &bodies).await;
    assert_eq!(failed, ["1"], "only what is malformed fails");
    assert_eq!(
        fixture.waiting(expiry).await,
        before + 1,
        "the order has time: its message goes on"
    );
    let target = format!("/orders/{}", order.as_str().unwrap());
    assert_eq!(fixture.get(Sender::Buyer("alice"), &target).await.ok(200)["state"], "pending");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_cannot_be_read_holds_up_no_other_of_its_batch() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let order = fixture.buy("alice", "hall", best("vip", 1)).await.ok(201)["order"].clone();
    let unreadable = fixture.buy("bob", "hall", best("vip", 1)).await.ok(201)["order"].clone();
    let number: u64 = unreadable.as_str().unwrap().parse().unwrap();
    fixture
        .dynamodb
        .update_item()
        .table_name(&fixture.orders_table)
        .key("gene", AttributeValue::N((number % 1024).to_string()))
        .key("sk", AttributeValue::S(format!("order#{number}")))
        .update_expression("SET #state = :nonsense")
        .condition_expression("attribute_exists(sk)")
        .expression_attribute_names("#state", "state")
        .expression_attribute_values(":nonsense", AttributeValue::S("nonsense".to_owned()))
        .send()
        .await
        .unwrap();
    let bodies = [overdue(&unreadable), overdue(&order), overdue(&json!("1024"))];
    let failed = failed_to_expire(&fixture, &bodies).await;
    assert_eq!(failed, ["0"], "the others are looked at by themselves");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_that_redis_has_lost_is_not_loaded_until_it_is_reconciled() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let kept = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    fixture.lose_redis().await;
    fixture.get(Sender::Nobody, "/sales/hall/availability").await.problem(503, "not-loaded");
    let admission = fixture.admission("bob", "hall", 2).await;
    let lost = fixture.order("bob", "hall", &admission["token"], best("vip", 1)).await;
    lost.problem(503, "not-loaded");

    let event = json!({ "detail-type": "Scheduled Event", "source": "aws.events", "detail": {} });
    let event = serde_json::from_value(event).unwrap();
    let report = reconcile::handle(&fixture.app, event).await.unwrap();
    assert_eq!((report.loaded, report.failed), (1, 0));
    let left = fixture.get(Sender::Nobody, "/sales/hall/availability").await.ok(200);
    assert_eq!(left["tiers"][0]["available"], json!(14), "what alice holds is hers still");
    let token = &admission["token"];
    let after = fixture.order("bob", "hall", token, best("vip", 1)).await.ok(201);
    assert_ne!(after["lines"][0]["tickets"][0], kept["lines"][0]["tickets"][0]);
}

/// Nothing but requests, and the messages they send: no schedule comes to help.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_who_meet_a_lost_sale_have_it_loaded_and_payments_stand_meanwhile() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let pending = fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let paid = fixture.buy("carol", "hall", best("vip", 1)).await.ok(201);
    let admission = fixture.admission("bob", "hall", 2).await;
    fixture.lose_redis().await;

    let refused = fixture.order("bob", "hall", &admission["token"], best("vip", 1)).await;
    refused.problem(503, "not-loaded");
    let load = &fixture.queues.load.url;
    assert_eq!(fixture.waiting(load).await, 1);
    fixture
        .order("bob", "hall", &admission["token"], best("vip", 1))
        .await
        .problem(503, "not-loaded");
    assert_eq!(fixture.waiting(load).await, 1, "one request a second");

    // Sales pause; reading does not, and money is taken.
    fixture.get(Sender::Nobody, "/sales/hall").await.ok(200);
    let target = |order: &Value| format!("/orders/{}", order["order"].as_str().unwrap());
    let shown = fixture.get(Sender::Buyer("alice"), &target(&pending)).await.ok(200);
    assert_eq!(shown["state"], "pending");
    let looked_at = fixture.waiting(&fixture.queues.expiry.url).await;
    let accepted = fixture.callback("pi_1", &paid["order"], 2500).await.ok(200);
    assert_eq!(accepted, json!({ "outcome": "accepted" }));
    let shown = fixture.get(Sender::Buyer("carol"), &target(&paid)).await.ok(200);
    assert_eq!(shown["state"], "paid");
    let [sync, expiry] = [&fixture.queues.sync.url, &fixture.queues.expiry.url];
    assert_eq!(fixture.waiting(sync).await, 0, "counted when Redis has it as sold");
    assert_eq!(fixture.waiting(expiry).await, looked_at + 1, "and looked at again for that");
    let due = [overdue(&paid["order"])];
    assert_eq!(failed_to_expire(&fixture, &due).await, ["0"], "too early: the message comes again");

    // What asks twice, late, or for nothing, does no harm.
    let hall = json!({ "sale": "hall" });
    let bodies = [hall.clone(), json!("not json"), json!({ "sale": "none" }), hall.clone()];
    let loaded = load_sale::handle(&fixture.app, records(&bodies)).await;
    let failed: Vec<&str> =
        loaded.batch_item_failures.iter().map(|one| &*one.item_identifier).collect();
    assert_eq!(failed, ["1", "2"], "only what is malformed or of no sale");
    let again = load_sale::handle(&fixture.app, records(&[hall])).await;
    assert_eq!(failures(&again), 0);
    assert_eq!(failed_to_expire(&fixture, &due).await, Vec::<String>::new());
    assert_eq!(fixture.waiting(sync).await, 1, "it is sold, and to be counted");

    let bought = fixture.order("bob", "hall", &admission["token"], best("vip", 1)).await.ok(201);
    for other in [&pending, &paid] {
        assert_ne!(bought["lines"][0]["tickets"][0], other["lines"][0]["tickets"][0]);
    }
    let left = fixture.get(Sender::Nobody, "/sales/hall/availability").await.ok(200);
    assert_eq!(left["tiers"][0]["available"], json!(12));
    let (sale, tier) = (SaleId::new("hall").unwrap(), TierId::new("vip").unwrap());
    let snapshot = fixture.app.ports.seats().snapshot(&sale, &tier, 1).await.unwrap();
    let sold: u32 = snapshot.grid.sold[0].iter().map(|byte| byte.count_ones()).sum();
    assert_eq!(sold, 1, "the load brings what was paid meanwhile as sold");
}
