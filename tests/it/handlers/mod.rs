//! The functions as they run in Lambda, over real Redis and fakes of DynamoDB and SQS: from an
//! API Gateway event to the response, and what every refusal looks like.

mod accounts;
mod attendees;
mod availability;
mod awaited_turns;
mod buying;
mod challenges;
mod codes;
mod debts;
mod disputes;
mod entry;
mod events;
mod exchanged;
mod exported_orders;
mod exported_rooms;
mod gate_rules;
mod given_back;
mod kept;
mod lost_sales;
mod maps;
mod messages;
mod odd_units;
mod operators;
mod points;
mod redis_refuses;
mod refunds;
mod refusals;
mod rooms;
mod sale_pages;
mod started;
mod takings;
mod tickets;
mod tiers_apart;
mod trains;
mod wallets;

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::types::QueueAttributeName;
use engine::domain::admission::call_rate::CallRate;
use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use lambda_http::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use lambda_http::{Body, Request, Response};
use local::queues::Queues;
use local::servers::{FakeBeacon, PaymentProvider, Stack};
use local::up;
use serde_json::{Value, json};
use shared::http::origin::Origin;
use shared::http::respond::{HTML, NEXT_CURSOR};
use shared::http::routes::Row;
use shared::providers::stripe::signature::sign;
use shared::redis::Topology;
use shared::runtime::app::App;
use shared::runtime::callbacks::CallbackEntry;
use shared::runtime::config::{
    AdmissionConfig, AttendeeConfig, BusConfig, ChallengeConfig, Config, DynamoDbConfig,
    MetricsConfig, OperatorsConfig, PaymentConfig, ProvidersConfig, RedisConfig, SalesConfig,
    Secret, SiteConfig, SqsConfig, WebhooksConfig,
};
use shared::runtime::edge::EdgeSecrets;
use shared::runtime::functions::Function;
use shared::tickets::TicketSecrets;

use crate::backends::{self, Servers};

pub const PAYMENT_SECRET: &[u8] = b"whsec_test";
/// The secret of challenges.
pub const CHALLENGE_SECRET: &[u8] = b"a challenge secret of 32 bytes..";

/// The key of the entry of callbacks.
pub const ENTRY_KEY: &str = "0123456789abcdefghijklmnopqrstuv";

/// Where the pages are.
pub const SITE: &str = "https://tickets.example";
pub const OPERATOR_ISSUER: &str = "https://operators.example";
const OPERATOR: &str = "arn:aws:iam::000000000000:role/operator";

pub struct Fixture {
    pub app: App,
    config: Config,
    sqs: aws_sdk_sqs::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    orders_table: String,
    pub queues: Queues,
    pub provider: PaymentProvider,
    _beacon: FakeBeacon,
    _stack: Stack,
}

#[derive(Debug)]
pub struct Got {
    status: u16,
    content_type: String,
    cache_control: String,
    retry_after: Option<String>,
    /// Its `X-Next-Cursor`.
    pub next: Option<String>,
    /// The body, as JSON or text.
    pub body: Value,
}

impl Got {
    fn from_response(response: Response<Body>) -> Self {
        let header = |name| {
            let value = response.headers().get(name)?;
            Some(value.to_str().unwrap().to_owned())
        };
        let content_type = header(CONTENT_TYPE).unwrap();
        let text = || json!(std::str::from_utf8(response.body()).unwrap());
        let is_document =
            ["application/json", "application/problem+json"].contains(&content_type.as_str());
        let json_body = || serde_json::from_slice(response.body()).unwrap();
        Self {
            status: response.status().as_u16(),
            cache_control: header(CACHE_CONTROL).unwrap(),
            retry_after: header(RETRY_AFTER),
            next: header(HeaderName::from_static(NEXT_CURSOR)),
            body: if is_document { json_body() } else { text() },
            content_type,
        }
    }

    /// The text of an answer of this type.
    pub fn text(&self, content_type: &str) -> &str {
        assert_eq!((self.status, self.content_type.as_str()), (200, content_type), "{}", self.body);
        self.body.as_str().unwrap()
    }

    /// The markup of a page.
    pub fn page(&self) -> &str {
        self.text(HTML)
    }

    /// Its `Cache-Control`.
    pub fn caching(&self) -> &str {
        &self.cache_control
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

/// The sender of a request.
#[derive(Clone, Copy)]
pub enum Sender<'a> {
    Nobody,
    Buyer(&'a str),
    Operator,
    /// By a token of this issuer (`iss`) with these scopes.
    Token(&'a str, &'a str),
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
        Sender::Token(iss, scope) => {
            json!({ "jwt": { "claims": { "iss": iss, "sub": "zhang", "scope": scope } } })
        }
    };
    lambda_http::request::from_str(&event.to_string()).unwrap()
}

/// An API Gateway that routes to the functions. What a function needs of the stack is boxed: a test
/// sends many requests, and would have room for each.
pub async fn send(app: &App, request: Request) -> Got {
    // Of what is no route, each function says the same.
    let function = Row::of(&request).map_or(Function::Sales, |row| row.function);
    let response = Box::pin(local::handlers::answer(app, function, request)).await;
    Got::from_response(response)
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
        "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
        "tiers": [tier("vip", 2, 8), tier("small", 2, 2)]
    })
}

fn train() -> Value {
    json!({
        "sale": "g35", "title": "G35", "currency": "CNY",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 5, "pay_window_seconds": 900, "attendees": "required",
        "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
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

/// What the fixtures' tickets are signed with.
pub fn ticket_secrets() -> TicketSecrets {
    TicketSecrets::new(vec!["the-secret-of-the-tickets-of-the-tests".to_owned()]).unwrap()
}

impl Fixture {
    /// Servers, tables, queues, and the engine on them.
    pub async fn start() -> Self {
        let Servers { stack, provider, beacon, endpoints, queues, sqs, dynamo } =
            Box::pin(backends::servers()).await;
        let tables = dynamo.config().tables.clone();
        let (dynamodb, orders_table) = (dynamo.client().clone(), tables.orders.clone());
        let urls = queues.urls();
        let config = Config {
            redis: RedisConfig { topology: Topology::Single(endpoints.redis), kind: None },
            sales: SalesConfig::default(),
            dynamodb: DynamoDbConfig { tables, endpoint: Some(endpoints.dynamodb) },
            sqs: SqsConfig { urls, endpoint: Some(endpoints.sqs) },
            admission: AdmissionConfig { keys: vec![("k1".to_owned(), Secret(vec![7; 32]))] },
            attendees: AttendeeConfig { keys: vec![("k1".to_owned(), Secret(vec![8; 32]))] },
            challenges: ChallengeConfig {
                keys: vec![("k1".to_owned(), Secret(CHALLENGE_SECRET.to_vec()))],
                siteverify: Vec::new(),
            },
            payments: PaymentConfig {
                secrets: vec![(
                    ProviderId::new("stripe").unwrap(),
                    Secret(PAYMENT_SECRET.to_vec()),
                )],
                tolerance_seconds: 300,
            },
            callbacks: CallbackEntry {
                keys: vec![Secret(ENTRY_KEY.as_bytes().to_vec())],
                sources: vec!["203.0.113.0/24".parse().unwrap()],
            },
            edge: EdgeSecrets::default(),
            tickets: ticket_secrets(),
            webhooks: WebhooksConfig::default(),
            bus: BusConfig::default(),
            providers: backends::providers(&provider),
            beacon: up::beacon_config(&beacon.url()),
            operators: OperatorsConfig { issuer: Some(OPERATOR_ISSUER.to_owned()) },
            metrics: MetricsConfig::Off,
            site: SiteConfig {
                origin: Origin::new(SITE),
                connect: vec![Origin::new("https://issuer.example").unwrap()],
            },
            ca_file: None,
        };
        let app = Box::pin(App::from_config(&config)).await.unwrap();
        Self {
            app,
            config,
            sqs,
            dynamodb,
            orders_table,
            queues,
            provider,
            _beacon: beacon,
            _stack: stack,
        }
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
        send(&self.app, self.callback_request(payment, order, amount_minor)).await
    }

    pub fn callback_request(&self, payment: &str, order: &Value, amount_minor: i64) -> Request {
        let (headers, body) = signed_callback(payment, order, amount_minor);
        request(Sender::Nobody, "POST", "/payments/stripe/callback", headers, &body)
    }

    pub async fn lose_redis(&self) {
        let mut connection = backends::redis(&self._stack.endpoints().redis_url).await;
        let _: () = redis::cmd("FLUSHALL").query_async(&mut connection).await.unwrap();
    }

    /// Another instance of a function, on the same servers.
    pub async fn another_process(&self) -> App {
        Box::pin(App::from_config(&self.config)).await.unwrap()
    }

    /// Another instance of a function, whose providers take so few calls.
    pub async fn at_slow_providers(&self, call_rate: CallRate) -> App {
        let providers = ProvidersConfig { call_rate, ..self.config.providers.clone() };
        let config = Config { providers, ..self.config.clone() };
        Box::pin(App::from_config(&config)).await.unwrap()
    }

    /// Another instance of a function, with these secrets of the edge.
    pub async fn behind_the_edge(&self, edge: EdgeSecrets) -> App {
        let config = Config { edge, ..self.config.clone() };
        Box::pin(App::from_config(&config)).await.unwrap()
    }

    /// How often Redis has run a command.
    pub async fn redis_calls(&self, command: &str) -> u64 {
        let mut connection = backends::redis(&self._stack.endpoints().redis_url).await;
        let info = redis::cmd("INFO").arg("commandstats").clone();
        let info: String = info.query_async(&mut connection).await.unwrap();
        let line =
            info.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
    }

    /// Another instance of a function, of which DynamoDB is out of reach, and unless `has_queues` the queues
    /// as well.
    pub async fn cut_off_process(&self, has_queues: bool) -> App {
        let closed = || Some("http://127.0.0.1:1".to_owned());
        let mut config = self.config.clone();
        config.dynamodb.endpoint = closed();
        if !has_queues {
            config.sqs.endpoint = closed();
        }
        Box::pin(App::from_config(&config)).await.unwrap()
    }

    /// The engine reaches DynamoDB no longer.
    pub async fn lose_dynamodb(&mut self) {
        self.config.dynamodb.endpoint = Some("http://127.0.0.1:1".to_owned());
        self.app = Box::pin(App::from_config(&self.config)).await.unwrap();
    }

    /// Number of messages that wait in a queue, delayed ones included.
    async fn waiting(&self, url: &str) -> u32 {
        use QueueAttributeName as Name;
        let attributes_of =
            self.sqs.get_queue_attributes().queue_url(url).attribute_names(Name::All);
        let attributes = attributes_of.send().await.unwrap().attributes.unwrap();
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

/// The headers and the body of a signed callback.
pub fn signed_callback(payment: &str, order: &Value, amount_minor: i64) -> (Value, String) {
    callback_signed_with(PAYMENT_SECRET, payment, &json!({ "order": order }), amount_minor)
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

/// The headers and the body of a callback about a payment that carries this, signed with this secret.
pub fn callback_signed_with(
    secret: &[u8],
    payment: &str,
    metadata: &Value,
    amount_minor: i64,
) -> (Value, String) {
    let event = json!({
        "id": "evt_1", "object": "event", "type": "payment_intent.succeeded",
        "data": { "object": {
            "id": payment, "amount_received": amount_minor, "currency": "eur",
            "metadata": metadata
        } }
    });
    let body = event.to_string();
    let signature = sign(secret, body.as_bytes(), Timestamp::now());
    (json!({ "stripe-signature": signature }), body)
}
