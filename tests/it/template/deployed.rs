//! The engine as it is deployed: each function with an engine of its own, which reaches its stores
//! under its own name, and Redis as the cache's user.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aws_lambda_events::event::sqs::{SqsBatchResponse, SqsEvent};
use aws_lambda_events::eventbridge::EventBridgeEvent;
use aws_sdk_dynamodb::types::AttributeValue;
use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use engine::domain::admission::room::code::Code;
use engine::domain::admission::room::document::Left;
use engine::domain::admission::room::draw::{LATE_ROUNDS, Terms};
use engine::domain::admission::room::join::{BUCKETS, Index, Membership, bucket_of};
use engine::domain::admission::room::log::Record;
use engine::domain::admission::room::serving::Room;
use engine::domain::basics::bytes::{Nonce, Secret};
use engine::domain::basics::ids::{GroupId, InventoryId, Legs, SaleId, TierId, UserId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::ledger::subscriber::Wishes;
use engine::domain::order::exchange::ExchangeRequest;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, PaymentKey, TicketName};
use engine::domain::payment::ours::Reported;
use engine::domain::sale::serving::Settings;
use engine::flows;
use engine::flows::expire::Expiry;
use engine::flows::reserve::Reservation;
use engine::flows::room::awaited::AwaitedTurns;
use engine::ports::messages::ClosePayments;
use engine::ports::{
    Catalogue as _, Freshness, Orders as _, Ports as _, RoomPorts, Rooms as _, StoreError,
};
use fake_cloudwatch::CloudWatch as FakeCloudWatch;
use fake_eventbridge::EventBridge as FakeEventBridge;
use fake_payments::{API_KEY, Fault, Metadata};
use lambda_http::{Body, Response};
use local::endpoints::Endpoints;
use local::handlers::consume;
use local::handlers::{
    award_points, cancel, decide_payment, draw, expire_orders, figures, load_sale, operator,
    orders, pay_callback, read_bills, read_captures, reconcile, refund, reserve, sales,
    send_events, sync_db, take_callback, token_gate, waiting_room,
};
use local::handlers::{close_payments, pay_from_wallet, refund_order, start_payment};
use local::queues::Queues;
use local::servers::{FakeBeacon, PaymentProvider, Stack};
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use shared::beacon::{Chain, DrandBeacon};
use shared::dynamodb::{Dynamo, DynamoRooms, DynamoSubscriptions, DynamoWebhooks};
use shared::events::EventBus;
use shared::events::Webhook;
use shared::events::eventbridge::EventBridge;
use shared::figures::FigureSource;
use shared::figures::cloudwatch::CloudWatch;
use shared::providers::stripe::signature::sign;
use shared::runtime::app::{App, new_epoch};
use shared::runtime::config::Config;
use shared::runtime::functions::{Function, QueueName};
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::recorder::Recorder;
use crate::backends::{self, Servers, deployment};
use crate::flows::crashing::{Crashing, Cut};
use crate::handlers::{ENTRY_KEY, OPERATOR_ISSUER, Sender, callback_signed_with, request};

/// Every function, by the name of its program.
pub const FUNCTIONS: [&str; Function::ALL.len()] = Function::NAMES;
const PAYMENT_SECRET: &str = "whsec_deployed";
const SALE: &str = "hall";
/// A number of no order.
const NO_ORDER: &str = "1024";
/// The price of a ticket, in cents.
/// The event bus.
pub const BUS: &str = "orders";
const PRICE: MinorUnits = MinorUnits(2500);

/// More places than a room with two members and what a process has in stock.
const PLACES: u32 = 40;

/// All functions on the same servers.
pub struct Deployed {
    pub recorder: Recorder,
    pub redis: MultiplexedConnection,
    apps: BTreeMap<&'static str, App>,
    sqs: aws_sdk_sqs::Client,
    queues: Queues,
    provider: PaymentProvider,
    beacon: FakeBeacon,
    dynamo: Dynamo,
    _cloudwatch: FakeCloudWatch,
    eventbridge: FakeEventBridge,
    _stack: Stack,
}

/// Rooms that are reached past the recorder.
struct Unrecorded<'a> {
    rooms: DynamoRooms,
    beacon: &'a DrandBeacon,
}

/// The chain of the fake beacon, as it is configured.
fn local_chain() -> String {
    Chain { rounds: fake_beacon::rounds(), key: fake_beacon::key() }.to_string()
}

impl RoomPorts for Unrecorded<'_> {
    type Rooms = DynamoRooms;
    type Beacon = DrandBeacon;

    fn rooms(&self) -> &DynamoRooms {
        &self.rooms
    }

    fn beacon(&self) -> &DrandBeacon {
        self.beacon
    }
}

/// What a payment of this deployment carries, of the order that it names.
fn marks(order: &str) -> [(&'static str, String); 2] {
    [("onsale_deployment", deployment().to_string()), ("onsale_order", order.to_owned())]
}

/// An order as its buyer was told.
#[derive(Debug, Clone)]
pub struct Made {
    number: String,
    user: String,
    admission: Value,
}

impl Made {
    fn number(&self) -> OrderNumber {
        self.number.parse().unwrap()
    }
}

impl Deployed {
    /// Starts the servers, with a user of Redis who may do what `access` says.
    pub async fn start(access: &str) -> Self {
        let Servers { stack, provider, beacon, endpoints, queues, sqs, dynamo } =
            backends::servers().await;
        let mut redis = stack.redis().unwrap().connect().await.unwrap();
        user(&mut redis, "engine", access).await;
        let () = redis::cmd("CONFIG").arg("RESETSTAT").query_async(&mut redis).await.unwrap();

        let prefix = endpoints.table_prefix.clone();
        let cloudwatch = FakeCloudWatch::start().await.unwrap();
        let eventbridge = FakeEventBridge::start(BUS).await.unwrap();
        let Endpoints { dynamodb, sqs: queues_at, .. } = &endpoints;
        let (metrics_at, bus_at) = (cloudwatch.url(), eventbridge.url());
        let servers = [dynamodb.as_str(), queues_at, &metrics_at, &bus_at];
        let recorder = Recorder::start(servers, &prefix).await;
        let url = endpoints.redis.replace("://", "://engine:secret@");
        let mut apps = BTreeMap::new();
        for function in FUNCTIONS {
            let endpoint = recorder.endpoint(function);
            let mut variables = BTreeMap::from([
                ("ONSALE_REDIS_URL", url.clone()),
                ("ONSALE_TABLE_PREFIX", prefix.clone()),
                ("ONSALE_DYNAMODB_ENDPOINT", endpoint.clone()),
                ("ONSALE_SQS_ENDPOINT", endpoint),
                ("ONSALE_ADMISSION_KEYS", format!("k:{}", "A".repeat(64))),
                ("ONSALE_ATTENDEE_KEYS", format!("k:{}", "B".repeat(64))),
                ("ONSALE_CHALLENGE_KEYS", format!("k:{}", "C".repeat(64))),
                ("ONSALE_TICKET_KEYS", format!("[\"{}\"]", "t".repeat(64))),
                ("ONSALE_WEBHOOK_KEYS", format!("[\"{}\"]", "w".repeat(64))),
                ("ONSALE_WEBHOOK_ADDRESSES", "any".to_owned()),
                ("ONSALE_PAYMENT_SECRETS", format!("stripe:{PAYMENT_SECRET}")),
                ("ONSALE_CALLBACK_KEYS", ENTRY_KEY.to_owned()),
                ("ONSALE_PROVIDER_KEYS", format!("stripe:{API_KEY}")),
                ("ONSALE_DEPLOYMENT_ID", deployment().as_str().to_owned()),
                ("ONSALE_BEACON_URLS", beacon.url()),
                ("ONSALE_BEACON_CHAINS", local_chain()),
                ("ONSALE_PROVIDER_URLS", format!("stripe:{}", provider.url())),
                ("ONSALE_RETURN_ORIGINS", "https://shop.example".to_owned()),
                ("ONSALE_OPERATOR_ISSUER", OPERATOR_ISSUER.to_owned()),
            ]);
            let url = |queue: QueueName| (queue.url_variable(), queues.get(queue).url.clone());
            variables.extend(QueueName::ALL.map(url));
            if function == Function::Figures.as_str() {
                let endpoint = recorder.endpoint(function);
                variables.extend([
                    ("ONSALE_METRICS", "emf".to_owned()),
                    ("ONSALE_STAGE", "prod".to_owned()),
                    ("ONSALE_CLOUDWATCH_ENDPOINT", endpoint),
                ]);
            }
            if function == Function::SendEvents.as_str() {
                variables.extend([
                    ("ONSALE_EVENT_BUS", BUS.to_owned()),
                    ("ONSALE_EVENTBRIDGE_ENDPOINT", recorder.endpoint(function)),
                ]);
            }
            let config = Config::read(|name| variables.get(name).cloned()).unwrap();
            let told = EventBridge::from_config(&config).await.unwrap();
            let told = told.map(|bus| Arc::new(bus) as Arc<dyn EventBus>);
            let read = CloudWatch::from_config(&config).await.unwrap();
            let app = App::from_config(&config).await.unwrap();
            let read = read.map(|read| Arc::new(read) as Arc<dyn FigureSource>);
            apps.insert(function, app.with_figures(read).with_bus(told));
        }
        let (_cloudwatch, _stack) = (cloudwatch, stack);
        Self {
            recorder,
            redis,
            apps,
            sqs,
            queues,
            provider,
            beacon,
            dynamo,
            _cloudwatch,
            eventbridge,
            _stack,
        }
    }

    fn app(&self, function: &str) -> &App {
        &self.apps[function]
    }

    async fn http(&self, function: &str, sender: Sender<'_>, line: &str, body: &Value) -> Value {
        let (method, target) = line.split_once(' ').unwrap();
        let headers = json!({ "content-type": "application/json" });
        let request = request(sender, method, target, headers, &body.to_string());
        let app = self.app(function);
        let response: Response<Body> = match function {
            "cancel" => cancel::handle(app, request).await,
            "figures" => figures::handle(app, request).await,
            "operator" => operator::handle(app, request).await,
            "orders" => orders::handle(app, request).await,
            "pay-from-wallet" => pay_from_wallet::handle(app, request).await,
            "refund-order" => refund_order::handle(app, request).await,
            "reserve" => reserve::handle(app, request).await,
            "sales" => sales::handle(app, request).await,
            "start-payment" => start_payment::handle(app, request).await,
            "token-gate" => token_gate::handle(app, request).await,
            "waiting-room" => waiting_room::handle(app, request).await,
            other => panic!("{other} takes no such requests"),
        };
        // The log is lines.
        let parsed: Option<Value> = serde_json::from_slice(response.body()).ok();
        let mut answer = parsed.filter(Value::is_object).unwrap_or_else(|| json!({}));
        answer["status"] = json!(response.status().as_u16());
        answer
    }

    async fn publish(&self, title: &str) {
        self.put(&self.file(title)).await;
    }

    fn file(&self, title: &str) -> Value {
        let attendees = "optional";
        let row = |row: u32| json!({ "row": row.to_string(), "seats": { "prefix": format!("{row}-"), "first": 1, "count": 20 } });
        let rows: Vec<Value> = (1..=4).map(row).collect();
        json!({
            "sale": SALE, "title": title, "currency": "EUR",
            "points": { "per_minor": 1, "points": 1 },
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900, "attendees": attendees,
            "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
            "tiers": [{ "tier": "vip", "name": "vip", "price_minor": PRICE,
                "sections": [{ "section": "a", "rows": rows }] }]
        })
    }

    async fn put(&self, file: &Value) {
        let line = format!("PUT /sales/{}", file["sale"].as_str().unwrap());
        let put = self.http("sales", Sender::Operator, &line, file).await;
        assert_eq!(put["status"], 200, "{put:#}");
    }

    async fn ask(&self, user: &str, sale: &str, tickets: u16) -> Value {
        let line = format!("POST /sales/{sale}/admissions");
        let body = json!({ "tickets": tickets });
        self.http("token-gate", Sender::Buyer(user), &line, &body).await
    }

    /// A request that a limit refuses, which is counted.
    async fn limited(&self) {
        let file = json!({
            "sale": "limited", "title": "Limited", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900, "limits": { "asks_per_buyer": 1 },
            "tiers": [{ "tier": "ga", "name": "ga", "price_minor": PRICE, "general_admission": 9 }]
        });
        self.put(&file).await;
        assert_eq!(self.ask("dave", "limited", 1).await["status"], 201);
        let refused = self.ask("dave", "limited", 1).await;
        assert_eq!(refused["type"], "/problems/refused-by-rule", "{refused:#}");
    }

    async fn admission(&self, user: &str) -> Value {
        let answer = self.ask(user, SALE, 1).await;
        assert_eq!(answer["status"], 201, "{answer:#}");
        answer["token"].clone()
    }

    async fn reserve(&self, user: &str, admission: &Value, seat: &str, attendee: &str) -> Value {
        let line = json!({ "tier": "vip", "seats": [seat], "attendees": [attendee] });
        let body = json!({ "admission": admission, "lines": [line] });
        self.http("reserve", Sender::Buyer(user), "POST /sales/hall/orders", &body).await
    }

    async fn buy(&self, user: &str, seat: &str) -> Made {
        let admission = self.admission(user).await;
        let answer = self.reserve(user, &admission, seat, user).await;
        assert_eq!(answer["status"], 201, "{answer:#}");
        let number = answer["order"].as_str().unwrap().to_owned();
        Made { number, user: user.to_owned(), admission }
    }

    async fn cancel(&self, made: &Made) {
        let line = format!("POST /orders/{}/cancel", made.number);
        let answer = self.http("cancel", Sender::Buyer(&made.user), &line, &json!({})).await;
        assert_eq!(answer["status"], 200, "{answer:#}");
    }

    /// The provider's callback to `pay-callback`; what was decided.
    async fn callback(&self, payment: &str, order: &str, amount_minor: MinorUnits) -> Value {
        let (function, target) = ("pay-callback", "/payments/stripe/callback");
        self.callback_to(function, target, payment, order, amount_minor).await
    }

    async fn callback_to(
        &self,
        function: &str,
        target: &str,
        payment: &str,
        order: &str,
        amount_minor: MinorUnits,
    ) -> Value {
        let secret = PAYMENT_SECRET.as_bytes();
        let metadata = BTreeMap::from(marks(order));
        let (headers, body) =
            callback_signed_with(secret, payment, &json!(metadata), amount_minor.0);
        let request = request(Sender::Nobody, "POST", target, headers, &body);
        let app = self.app(function);
        let response = match function {
            "pay-callback" => pay_callback::handle(app, request).await,
            _ => take_callback::handle(app, request).await,
        };
        assert_eq!(response.status(), 200, "{response:?}");
        serde_json::from_slice(response.body()).unwrap()
    }

    /// The provider tells of a refund, which is to be read in its list.
    async fn told_of_a_refund(&self, function: &str, target: &str) {
        let event = json!({ "id": "evt_2", "type": "refund.created", "data": { "object": {} } });
        let body = event.to_string();
        let signature = sign(PAYMENT_SECRET.as_bytes(), body.as_bytes(), Timestamp::now());
        let headers = json!({ "stripe-signature": signature });
        let request = request(Sender::Nobody, "POST", target, headers, &body);
        let app = self.app(function);
        let response = match function {
            "pay-callback" => pay_callback::handle(app, request).await,
            _ => take_callback::handle(app, request).await,
        };
        assert_eq!(response.status(), 200, "{response:?}");
    }

    /// A capture that a function cannot decide, because DynamoDB answers nothing, and keeps.
    async fn kept(&self, function: &str, payment: &str, order: &str) {
        let capture = Capture {
            key: PaymentKey {
                provider: "stripe".parse().unwrap(),
                payment: payment.parse().unwrap(),
            },
            order: order.parse().unwrap(),
            amount: Money { amount_minor: PRICE, currency: Currency::new("EUR").unwrap() },
            attempt: None,
        };
        let away = Err(StoreError::Unavailable("away".to_owned()));
        let answered =
            flows::pay::answer(&self.app(function).ports, &Reported::ours(capture), away).await;
        assert_eq!(answered, Ok(flows::pay::Answered::Kept));
    }

    /// A capture that comes another way than to `pay-callback`.
    async fn report(&self, by: Function, payment: &str, order: &str) {
        if by == Function::TakeCallback {
            let target = format!("/callbacks/{ENTRY_KEY}/stripe");
            self.callback_to(by.as_str(), &target, payment, order, PRICE).await;
            return;
        }
        let message = json!({
            "provider": "stripe", "payment": payment, "order": order, "amount_minor": PRICE,
            "currency": "EUR", "ours": true,
        });
        let record = json!({ "messageId": "1", "body": message.to_string() });
        let batch: SqsEvent = serde_json::from_value(json!({ "Records": [record] })).unwrap();
        all_done(&decide_payment::handle(self.app(by.as_str()), batch).await);
    }

    fn captured(&self, payment: &str, order: OrderNumber) {
        let euros = Money { amount_minor: PRICE, currency: Currency::new("EUR").unwrap() };
        self.provider.capture(payment, order, euros, Timestamp::now()).unwrap();
    }

    fn captured_of_no_order(&self, payment: &str) {
        let euros = Money { amount_minor: PRICE, currency: Currency::new("EUR").unwrap() };
        let metadata = Metadata::new(marks(NO_ORDER));
        self.provider.capture_of_others(payment, metadata, euros, Timestamp::now()).unwrap();
    }

    /// What a queue has now, as Lambda would hand it over.
    async fn batch(&self, url: &str) -> SqsEvent {
        let receive = self.sqs.receive_message().queue_url(url).max_number_of_messages(10);
        let messages = receive.send().await.unwrap().messages.unwrap_or_default();
        assert!(!messages.is_empty(), "{url} is empty");
        let record = |message: aws_sdk_sqs::types::Message| json!({ "messageId": message.message_id, "body": message.body });
        let records: Vec<Value> = messages.into_iter().map(record).collect();
        serde_json::from_value(json!({ "Records": records })).unwrap()
    }

    /// Ends orders at another time than that of the clock; what failed.
    async fn expire_at(&self, orders: &[OrderNumber], now: Timestamp) -> Vec<StoreError> {
        let due: Vec<_> = orders.iter().map(|number| due_for(*number, now)).collect();
        let ports = &self.app("expire-orders").ports;
        let outcomes = flows::expire::expire_or_requeue(ports, &due, now).await;
        outcomes.into_iter().filter_map(Result::err).collect()
    }

    async fn lose_redis(&mut self) {
        let () = redis::cmd("FLUSHALL").query_async(&mut self.redis).await.unwrap();
    }

    /// Everything that a function does in the usual case and in each of the others.
    pub async fn everything(&mut self) {
        self.publish("Hall").await;
        self.publish("The hall").await;
        self.rooms().await;
        for line in ["GET /sales", "GET /sales/hall", "GET /sales/hall/availability"] {
            let shown = self.http("sales", Sender::Nobody, line, &json!({})).await;
            assert_eq!(shown["status"], 200, "{shown:#}");
        }
        self.challenges().await;
        self.buyers().await;
        self.journeys().await;
        self.payments().await;
        self.points().await;
        self.given_back().await;
        self.operators().await;
        self.starts().await;
        self.gift().await;
        self.exchanges().await;
        self.wallets().await;
        self.kept("pay-callback", "pi_kept", NO_ORDER).await;
        self.kept("take-callback", "pi_kept", NO_ORDER).await;
        self.told_of_a_refund("pay-callback", "/payments/stripe/callback").await;
        let entry = format!("/callbacks/{ENTRY_KEY}/stripe");
        self.told_of_a_refund("take-callback", &entry).await;
        self.other_payments(Function::DecidePayment, 2).await;
        self.other_payments(Function::TakeCallback, 3).await;
        self.ends().await;
        self.losses().await;
        Box::pin(self.bills()).await;
        self.reads().await;
        self.webhook().await;
        self.bus().await;
        self.repairs().await;
        self.draws().await;
        self.sample_events().await;
    }

    /// A sale is published with its room, also where an earlier attempt has kept a secret and died.
    async fn rooms(&self) {
        let rooms = self.app("sales").ports.rooms();
        rooms.keep_secret(&SaleId::new("club").unwrap(), &Secret([7; 32])).await.unwrap();
        self.put(&json!({
            "sale": "club", "title": "Club", "currency": "EUR",
            "opens_at": "2099-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900, "room": { "beacon": "operator" },
            "tiers": [{ "tier": "all", "name": "all", "price_minor": PRICE, "general_admission": 2 }]
        }))
        .await;
        self.waiting_room().await;
    }

    /// A room is joined by two, drawn by somebody whom nobody records, shown and run.
    async fn waiting_room(&self) {
        self.put(&json!({
            "sale": "open", "title": "Open", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900, "room": { "beacon": "operator" },
            "tiers": [{ "tier": "all", "name": "all", "price_minor": PRICE, "general_admission": 9 }]
        }))
        .await;
        let send = async |sender, line: &str, body: Value| {
            let answer = self.http("waiting-room", sender, line, &body).await;
            answer["status"].as_u64().unwrap()
        };
        for user in ["alice", "bob", "alice"] {
            let joined = send(Sender::Buyer(user), "POST /sales/open/places", json!({})).await;
            assert_eq!(joined, 201, "{user}");
        }
        let rooms = DynamoRooms::new(self.dynamo.clone());
        let unrecorded = Unrecorded { rooms, beacon: self.app("draw").ports.beacon() };
        let open = SaleId::new("open").unwrap();
        // Who comes before anything is shown is refused by the log; who asks for the room requests the draw.
        let alice = Sender::Buyer("alice");
        let joined = self.http("waiting-room", alice, "POST /sales/open/places", &json!({})).await;
        let claim = |place: u32| json!({ "tickets": 1, "place": { "place": place, "token": joined["place_token"] } });
        let admissions = "POST /sales/open/admissions";
        let early = self.http("token-gate", alice, admissions, &claim(0)).await;
        assert_eq!(early["type"], "/problems/place-not-due", "{early:#}");
        assert_eq!(send(Sender::Nobody, "GET /sales/open/room", json!({})).await, 200);
        assert_eq!(self.batch(&self.queues.draw.url).await.records.len(), 1);
        let drawn = flows::room::draw::draw(&unrecorded, &open, Timestamp::now()).await;
        assert_eq!(drawn, Ok(flows::room::draw::Drawing::Drawn));
        // Who had joined looks up in the tree whether it was in time.
        assert_eq!(send(alice, "POST /sales/open/places", json!({})).await, 201);
        for line in ["", "/log", "/leaves/all/0", "/windows/all/1"] {
            let line = format!("GET /sales/open/room{line}");
            assert_eq!(send(Sender::Nobody, &line, json!({})).await, 200, "{line}");
        }
        // A turn is made a second after the draw at the earliest: this one is by a clock that is ahead.
        let ports = &self.app("waiting-room").ports;
        let room = flows::room::published(ports, &open).await.unwrap().unwrap();
        let later = Timestamp::now().plus_seconds(10);
        let left = Left { free: 100, holds: false, tiers: vec![100], is_held_back: false };
        let turned = flows::room::turn::turn(ports, &room, async { Some(left) }, later).await;
        let turned = turned.unwrap();
        let group = &turned.shown.view.groups[0];
        // What a process had in stock is a gap, and has a place.
        assert!(group.serving == group.window_end && group.window_end <= PLACES, "{turned:?}");
        self.visit(&claim).await;
        self.code(&unrecorded.rooms).await;
        let line = "POST /sales/open/room/commands";
        assert_eq!(send(Sender::Operator, line, json!({ "command": "pause" })).await, 200);
        // Reconcile makes the turn that nobody asks for, at a time by which one is due.
        let later = later.plus_seconds(10);
        let turns = flows::room::awaited::make_turns(&self.app("reconcile").ports, later).await;
        assert_eq!(turns.unwrap(), AwaitedTurns { open: 1, failed: 0 });
    }

    /// A group is joined with a code.
    async fn code(&self, rooms: &DynamoRooms) {
        let (sale, group) = (SaleId::new("coded").unwrap(), GroupId::new("fans").unwrap());
        let mut file = self.file("Coded");
        file["sale"] = json!(sale);
        file["opens_at"] = json!("2099-01-01T00:00:00Z");
        file["room"] = json!({ "groups": [{ "group": group, "codes": true }] });
        self.put(&file).await;
        let code = "FANS-2026";
        let hash = Code::new(code).unwrap().hash(&sale, &group);
        rooms.add_code(&sale, &group, hash, 1).await.unwrap();
        let line = "POST /sales/coded/places";
        for (user, status) in [("alice", 201), ("bob", 403)] {
            let body = json!({ "group": group, "code": code });
            let joined = self.http("waiting-room", Sender::Buyer(user), line, &body).await;
            assert_eq!(joined["status"], status, "{joined:#}");
        }
    }

    /// Somebody with a due place is let in, and orders; Redis has forgotten the room in between.
    async fn visit(&self, claim: &impl Fn(u32) -> Value) {
        let alice = Sender::Buyer("alice");
        // What a gate remembers is a second old at most.
        let mut answer = json!({});
        for place in (0..50).flat_map(|_| 0..PLACES) {
            let line = "POST /sales/open/admissions";
            answer = self.http("token-gate", alice, line, &claim(place)).await;
            if answer["status"] == 201 {
                break;
            }
            if place + 1 == PLACES {
                sleep(Duration::from_millis(200)).await;
            }
        }
        assert_eq!(answer["status"], 201, "{answer:#}");
        let forget = redis::cmd("UNLINK").arg("{room:open}:board").to_owned();
        let forgotten: u64 = forget.query_async(&mut self.redis.clone()).await.unwrap();
        assert_eq!(forgotten, 1);
        let line = json!({ "tier": "all", "best": { "count": 1 } });
        let body = json!({ "admission": answer["token"], "lines": [line] });
        let order = self.http("reserve", alice, "POST /sales/open/orders", &body).await;
        assert_eq!(order["status"], 201, "{order:#}");
    }

    /// A room that reconcile finds due, by the beacon; and one by its secret.
    async fn draws(&self) {
        let rooms = DynamoRooms::new(self.dynamo.clone());
        let now = Timestamp::now();
        let secret = Secret([4; 32]);
        for (name, has_beacon) in [("drawn", true), ("drawn-alone", false)] {
            let sale = SaleId::new(name).unwrap();
            let mut file = self.file("Drawn");
            file["sale"] = json!(sale);
            self.put(&file).await;
            let group = GroupId::new("all").unwrap();
            let settings = Settings::new(group.clone(), now.plus_seconds(60).ms(), 4);
            let earlier = now.plus_seconds(-3_600);
            let Settings { closes_at_ms, opens_at_ms, .. } = settings;
            let draw = if has_beacon {
                let chain = fake_beacon::rounds();
                Terms::Beacon(chain.name(closes_at_ms, opens_at_ms, earlier.ms()).unwrap())
            } else {
                rooms.keep_secret(&sale, &secret).await.unwrap();
                Terms::Secret(secret.commitment())
            };
            let room = Room::new(sale.clone(), draw, 2, settings);
            rooms.append(&sale, &Record::first(room, earlier.ms())).await.unwrap();
            let taken = rooms.take_indices(&sale, &group, 1).await.unwrap();
            let buyer = UserId::new("wren").unwrap();
            let bucket = bucket_of(&buyer, BUCKETS);
            let index = Index { number: taken.first, window: taken.window };
            let nonce = Nonce([7; 16]);
            let (joined_at, more_time, rejoined, visit, earlier) =
                (now, false, 0, None, Vec::new());
            let member = Membership {
                sale,
                group,
                buyer,
                index,
                nonce,
                joined_at,
                more_time,
                rejoined,
                visit,
                earlier,
            };
            rooms.join(&member, bucket, None).await.unwrap();
        }
        // An earlier draw of one of them died when it had closed the counter.
        let (sale, group) = (SaleId::new("drawn-alone").unwrap(), GroupId::new("all").unwrap());
        rooms.close_window(&sale, &group).await.unwrap();
        let event = EventBridgeEvent::<Value>::default();
        reconcile::handle(self.app("reconcile"), event).await.unwrap();
        let batch = self.batch(&self.queues.draw.url).await;
        assert_eq!(batch.records.len(), 2);
        all_done(&draw::handle(self.app("draw"), batch.clone()).await);
        // The closing is late: a round of the series decides.
        let latest = fake_beacon::rounds().last_by(Timestamp::now().ms());
        self.beacon.advance(latest + LATE_ROUNDS - self.beacon.latest());
        all_done(&draw::handle(self.app("draw"), batch).await);
        for name in ["drawn", "drawn-alone"] {
            let last = rooms.last_record(&SaleId::new(name).unwrap()).await.unwrap().unwrap();
            assert!(last.state.groups[0].seed.is_some(), "{name}");
        }
    }

    /// Each consumer gets its sample event: a consumer that calls nothing else needs no step here.
    async fn sample_events(&self) {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../events");
        for function in Function::ALL {
            let Some(consumer) = function.consumer() else { continue };
            let path = format!("{directory}/{}.json", function.as_str());
            let event = std::fs::read_to_string(path).unwrap();
            let event: SqsEvent = serde_json::from_str(&event).unwrap();
            consume(self.app(function.as_str()), consumer.queue, event).await;
        }
    }

    /// Challenges: asked for, answered wrongly, and answered for an admission that the gate then refuses.
    async fn challenges(&self) {
        let mut file = self.file("Asked first");
        file["sale"] = json!("asked");
        file["gate"]["user_lock_ms"] = json!(600_000);
        file["challenges"] = json!({ "at": ["visit"], "kind": "question",
            "questions": [{ "question": "Our city?", "answers": ["Porto"] }] });
        self.put(&file).await;
        for (given, then) in [("Lisbon", 403), ("Porto", 201), ("Porto", 429)] {
            let asked = self.ask("alice", "asked", 1).await;
            assert_eq!(asked["type"], "/problems/challenge-required", "{asked:#}");
            let answer = json!({ "token": asked["challenge"]["token"], "answer": given });
            let body = json!({ "tickets": 1, "challenge": answer });
            let (line, alice) = ("POST /sales/asked/admissions", Sender::Buyer("alice"));
            let answered = self.http("token-gate", alice, line, &body).await;
            assert_eq!(answered["status"], then, "{answered:#}");
        }
    }

    /// Orders: made, repeated, refused, shown, cancelled.
    async fn buyers(&mut self) {
        let made = self.buy("alice", "1-1").await;
        let again = self.reserve("alice", &made.admission, "1-1", "alice").await;
        assert_eq!(again["order"], json!(made.number));
        let admission = self.admission("bob").await;
        let taken = self.reserve("bob", &admission, "1-2", "alice").await;
        assert_eq!(taken["type"], "/problems/attendee-taken");
        // Redis has the seat as free, and is corrected.
        let mut free = redis::cmd("SETBIT");
        let () =
            free.arg("{hall}:taken:vip").arg(0).arg(0).query_async(&mut self.redis).await.unwrap();
        let taken = self.reserve("bob", &admission, "1-1", "bob").await;
        assert_eq!(taken["type"], "/problems/seat-taken", "{taken:#}");
        self.limited().await;
        self.callback("pi_shown", &made.number, PRICE - MinorUnits(1)).await;
        let alice = Sender::Buyer("alice");
        for line in [format!("GET /orders/{}", made.number), "GET /orders".to_owned()] {
            let shown = self.http("orders", alice, &line, &json!({})).await;
            assert_eq!(shown["status"], 200, "{shown:#}");
        }
        self.cancel(&made).await;
        self.cancel(&made).await;
        let late = self.reserve("alice", &made.admission, "1-1", "alice").await;
        assert_eq!(late["type"], "/problems/order-resolved");
    }

    /// A journey of two legs in a sale of two places: the best are searched, and the gate is exhausted.
    async fn journeys(&self) {
        let stop = |stop: &str| json!({ "stop": stop, "name": stop });
        let file = json!({
            "sale": "tram", "title": "Tram", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900,
            "gate": { "shards": 1, "budget_percent": 67 },
            "stops": [stop("A"), stop("B"), stop("C")],
            "tiers": [{ "tier": "all", "name": "all", "price_minor": PRICE, "general_admission": 2 }]
        });
        self.put(&file).await;
        let mut first = None;
        for user in ["tom", "vic"] {
            let admission = self.ask(user, "tram", 2).await["token"].clone();
            let best = json!({ "tier": "all", "from": "A", "to": "C", "best": { "count": 2 } });
            let body = json!({ "admission": admission, "lines": [best] });
            let line = "POST /sales/tram/orders";
            let made = self.http("reserve", Sender::Buyer(user), line, &body).await;
            let number = made["order"].as_str().map(str::to_owned);
            first =
                first.or(number.map(|number| Made { number, user: user.to_owned(), admission }));
        }
        assert_eq!(self.ask("uma", "tram", 1).await["type"], "/problems/waiting");
        // Seats are free again that a search has passed.
        self.cancel(&first.unwrap()).await;
    }

    /// Payments, whatever the order is, and the way of one back.
    async fn payments(&self) {
        let paid = self.buy("carol", "2-1").await;
        for payment in ["pi_1", "pi_1", "pi_2"] {
            self.callback(payment, &paid.number, PRICE).await;
        }
        all_done(
            &sync_db::handle(self.app("sync-db"), self.batch(&self.queues.sync.url).await).await,
        );
        let rescued = self.buy("dave", "2-2").await;
        self.end(&rescued).await;
        let decided = self.callback("pi_3", &rescued.number, PRICE).await;
        assert_eq!(decided["outcome"], "accepted");
        let late = self.buy("erin", "2-3").await;
        self.end(&late).await;
        self.buy("frank", "2-3").await;
        let decided = self.callback("pi_4", &late.number, PRICE).await;
        assert_eq!(decided["reason"], "too_late");
        let unmatched = self.callback("pi_5", NO_ORDER, PRICE).await;
        assert_eq!(unmatched["outcome"], "unmatched", "{unmatched:#}");
        let entry = format!("/callbacks/{ENTRY_KEY}/stripe");
        self.callback_to("take-callback", &entry, "pi_63", NO_ORDER, PRICE).await;
        self.report(Function::DecidePayment, "pi_64", NO_ORDER).await;
        for (payment, order) in [("pi_2", &paid), ("pi_4", &late)] {
            self.captured(payment, order.number());
        }
        self.captured_of_no_order("pi_5");
        self.captured("pi_shown", paid.number());
        for (payment, word) in [("pi_5", "send_back"), ("pi_63", "explain")] {
            let body = json!({
                "order": NO_ORDER, "provider": "stripe", "payment": payment, "word": word,
                "reason": "a backup lost the order"
            });
            let scopes = "onsale/watch onsale/refund";
            let sender = Sender::Token(OPERATOR_ISSUER, scopes);
            let told = self.http("refund-order", sender, "POST /operator/unmatched", &body).await;
            assert_eq!(told["status"], 200, "{told:#}");
        }
        let batch = self.batch(&self.queues.refund.url).await;
        refund::handle(self.app("refund"), batch).await;
    }

    /// Refunds of paid orders: of money, of the ticket with its attendee, and again; by its buyer.
    async fn given_back(&self) {
        let refund = async |sender, path: &str, made: &Made, body: Value, status: u16| {
            let line = format!("POST {}", path.replace("{order}", &made.number));
            let answer = self.http("refund-order", sender, &line, &body).await;
            assert_eq!(answer["status"], status, "{answer:#}");
        };
        let operators = "/orders/{order}/refunds/operator";
        let paid = self.buy("gil", "2-15").await;
        self.callback("pi_60", &paid.number, PRICE).await;
        self.captured("pi_60", paid.number());
        let some = json!({ "number": 1, "tickets": [], "amount_minor": 500, "currency": "EUR" });
        let whole = json!({ "number": 2, "tickets": "all" });
        for body in [&some, &whole, &whole] {
            refund(Sender::Operator, operators, &paid, body.clone(), 200).await;
        }
        let line = format!("GET /orders/{}/refunds", paid.number);
        let listed = self.http("orders", Sender::Buyer("gil"), &line, &json!({})).await;
        assert_eq!(listed["next"], 3, "{listed:#}");
        let other = self.buy("gus", "2-16").await;
        self.callback("pi_61", &other.number, PRICE).await;
        refund(
            Sender::Buyer("gus"),
            "/orders/{order}/refunds",
            &other,
            json!({ "number": 1, "tickets": "all" }),
            403,
        )
        .await;
        // The second is too early after the first, and comes again.
        let batch = self.batch(&self.queues.refund.url).await;
        assert!(batch.records.len() >= 2, "{batch:?}");
        all_done(&refund::handle(self.app("refund"), batch).await);
        all_done(
            &sync_db::handle(self.app("sync-db"), self.batch(&self.queues.sync.url).await).await,
        );
    }

    /// What the settled orders give is written.
    async fn points(&self) {
        let batch = self.batch(&self.queues.points.url).await;
        all_done(&award_points::handle(self.app("award-points"), batch).await);
        let shown = self.http("orders", Sender::Buyer("carol"), "GET /points", &json!({})).await;
        assert_eq!(shown["points"], PRICE.0, "{shown:#}");
    }

    /// What operators see and do with a token.
    async fn operators(&self) {
        let scopes = "onsale/watch onsale/operate onsale/refund onsale/scan";
        let sender = Sender::Token(OPERATOR_ISSUER, scopes);
        let send = async |function: &str, line: String, body: Value, status: u16| {
            let answer = self.http(function, sender, &line, &body).await;
            assert_eq!(answer["status"], status, "{line} {answer:#}");
            answer
        };
        let file = self.file("Hall");
        send("sales", format!("PUT /operator/sales/{SALE}"), file, 200).await;
        let pause = json!({ "command": "pause" });
        send("waiting-room", "POST /operator/sales/hall/room/commands".to_owned(), pause, 404)
            .await;
        let made = self.buy("hal", "2-17").await;
        let orders = format!("/operator/orders/{}", made.number);
        let whole = json!({ "number": 1, "tickets": "all" });
        send("refund-order", format!("POST {orders}/refunds"), whole, 409).await;
        let none = || json!({});
        let seen =
            async |target: String| send("operator", format!("GET {target}"), none(), 200).await;
        seen(orders.clone()).await;
        for query in [
            format!("order={}", made.number),
            "buyer=hal".to_owned(),
            format!("sale={SALE}&tier=vip&seat=2-17"),
            format!("sale={SALE}&attendee=hal"),
        ] {
            let found = seen(format!("/operator/orders?{query}")).await;
            assert_eq!(found["orders"][0]["order"], made.number.as_str(), "{query}");
        }
        seen(format!("/operator/sales/{SALE}/board")).await;
        let takings = seen(format!("/operator/sales/{SALE}/takings?minutes=60")).await;
        assert_ne!(takings["tiers"], json!([]), "what was paid is settled");
        let line = format!("GET /operator/sales/{SALE}/figures");
        send("figures", line, none(), 200).await;
        seen("/operator/stuck".to_owned()).await;
        let accounts = seen("/operator/accounts".to_owned()).await;
        assert_ne!(accounts["accounts"], json!([]));
        seen(format!("/operator/accounts?sale={SALE}")).await;
        seen("/operator/accounts?debts=true".to_owned()).await;
        seen("/operator/webhooks".to_owned()).await;
        seen("/operator/disputes?state=over".to_owned()).await;
        seen("/operator/unmatched".to_owned()).await;
        self.doors(&send).await;
        send("cancel", format!("POST {orders}/cancel"), none(), 200).await;
        let actions = seen("/operator/actions".to_owned()).await;
        let kinds = actions["actions"].as_array().unwrap().iter();
        let kinds: Vec<&str> = kinds.map(|action| action["action"].as_str().unwrap()).collect();
        assert_eq!(kinds[..4], ["cancel", "reissue", "refund", "publish"]);
    }

    /// Tickets are shown, issued anew and checked in at two doors, and the list of what is void is asked for.
    async fn doors(&self, send: &impl AsyncFn(&str, String, Value, u16) -> Value) {
        let paid = self.buy("ida", "2-18").await;
        self.callback("pi_62", &paid.number, PRICE).await;
        let shown = async |line: &str| {
            let answer = self.http("orders", Sender::Buyer("ida"), line, &json!({})).await;
            assert_eq!(answer["status"], 200, "{line} {answer:#}");
            answer
        };
        let reissue = format!("POST /operator/orders/{}/tickets/reissue", paid.number);
        send("operator", reissue, json!({ "tickets": [1] }), 200).await;
        let tickets = shown(&format!("GET /orders/{}/tickets", paid.number)).await;
        let code = tickets["tickets"][0]["code"].clone();
        let (line, now) = (format!("/operator/sales/{SALE}/check-ins"), Timestamp::now());
        for door in ["north", "south"] {
            let body = json!({ "check_ins": [{ "code": code, "door": door, "at": now }] });
            send("operator", format!("POST {line}"), body, 200).await;
        }
        let board = send("operator", format!("GET {line}?conflicts=true"), json!({}), 200).await;
        assert_eq!((&board["admitted"], &board["doubles"]), (&json!(1), &json!(1)));
        shown(&format!("GET /sales/{SALE}/revoked")).await;
        shown("GET /ticket-keys").await;
    }

    /// Ends an order as the queue of its expiry would.
    async fn end(&self, made: &Made) {
        let later = Timestamp::now().plus_seconds(2000);
        assert_eq!(self.expire_at(&[made.number()], later).await, []);
    }

    /// Begins to pay an order; the provider's name of the payment.
    async fn begin(&self, made: &Made, method: &str) -> String {
        let mut body = json!({ "provider": "stripe", "method": method });
        if method == "page" {
            body["return_url"] = json!("https://shop.example/back");
        }
        let line = format!("POST /orders/{}/payments", made.number);
        let begun = self.http("start-payment", Sender::Buyer(&made.user), &line, &body).await;
        let url = begun["url"].as_str().and_then(|url| url.rsplit('/').next());
        let secret = begun["client_secret"].as_str();
        let name = url.or_else(|| secret.and_then(|secret| secret.strip_suffix("_secret_onsale")));
        name.unwrap_or_else(|| panic!("{begun:#}")).to_owned()
    }

    /// Has an order's payments closed at another time than that of the clock.
    async fn close_at(&self, number: OrderNumber, now: Timestamp) {
        let at = InventoryId::whole(sale());
        flows::close::close(&self.app("close-payments").ports, &at, number, now).await.unwrap();
    }

    /// Payments are begun, in another way, paid meanwhile, given up, and found after the end.
    async fn starts(&self) {
        let paid = self.buy("nora", "4-8").await;
        self.begin(&paid, "page").await;
        let form = self.begin(&paid, "form").await;
        self.provider.pay(&form, Timestamp::now()).unwrap().unwrap();
        let body = json!({ "provider": "stripe", "return_url": "https://shop.example/back" });
        let line = format!("POST /orders/{}/payments", paid.number);
        let refused = self.http("start-payment", Sender::Buyer("nora"), &line, &body).await;
        assert_eq!(refused["state"], "paid", "{refused:#}");

        let cancelled = self.buy("nick", "4-9").await;
        self.begin(&cancelled, "page").await;
        self.cancel(&cancelled).await;
        let batch = self.batch(&self.queues.close.url).await;
        all_done(&close_payments::handle(self.app("close-payments"), batch).await);

        let rescued = self.buy("nils", "4-10").await;
        let page = self.begin(&rescued, "page").await;
        self.end(&rescued).await;
        self.provider.pay(&page, Timestamp::now()).unwrap().unwrap();
        let later = Timestamp::now().plus_seconds(2000);
        self.close_at(rescued.number(), later).await;

        let unheard = self.buy("nino", "4-11").await;
        self.provider.next(Fault::FailSearch);
        let message = ClosePayments::new(&InventoryId::whole(sale()), unheard.number());
        let ports = &self.app("close-payments").ports;
        let soon = Timestamp::now().plus_seconds(1000);
        assert_eq!(flows::close::close_or_requeue(ports, &message, soon).await, Ok(()));
        let other = self.buy("nell", "4-12").await;
        self.begin(&other, "page").await;
        self.callback("pi_40", &other.number, PRICE).await;
    }

    /// What costs nothing is paid as it is made.
    async fn gift(&self) {
        self.put(&json!({
            "sale": "gift", "title": "Gift", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900, "gate": { "shards": 1 },
            "tiers": [{ "tier": "all", "name": "all", "price_minor": 0, "general_admission": 8 }]
        }))
        .await;
        let admission = self.ask("gina", "gift", 1).await["token"].clone();
        let body =
            json!({ "admission": admission, "lines": [{ "tier": "all", "best": { "count": 1 } }] });
        let line = "POST /sales/gift/orders";
        let made = self.http("reserve", Sender::Buyer("gina"), line, &body).await;
        assert_eq!(made["state"], "paid", "{made:#}");
    }

    /// A ticket of `sale`, for that of another order perhaps; the answer.
    async fn swap(&self, user: &str, old: Option<&Value>, sale: &str, tier: &str) -> Value {
        let admission = self.ask(user, sale, 1).await["token"].clone();
        let line = json!({ "tier": tier, "best": { "count": 1 }, "attendees": [user] });
        let mut body = json!({ "admission": admission, "lines": [line] });
        if let Some(old) = old {
            let line = &old["lines"][0];
            let ticket = json!({ "tier": line["tier"], "seat": line["tickets"][0]["seat"] });
            body["exchange"] = json!({ "order": old["order"], "tickets": [ticket] });
        }
        let line = format!("POST /sales/{sale}/orders");
        let made = self.http("reserve", Sender::Buyer(user), &line, &body).await;
        assert_eq!(made["status"], 201, "{made:#}");
        made
    }

    /// An exchange that the old money pays, and whose reservation died before it was paid.
    async fn left_pending(&self, user: &str, old: &Value) -> String {
        let (app, sale) = (self.app("reserve"), SaleId::new("swap-2").unwrap());
        let published = app.ports.catalogue().sale(&sale, Freshness::Fresh).await.unwrap().unwrap();
        let (user, now) = (UserId::new(user).unwrap(), Timestamp::now());
        let number = app.mint.mint(now, &user);
        let choice = Choice::Best { count: 1, together: Together::Preferred };
        let line = Line { tier: TierId::new("cheap").unwrap(), legs: Legs::ONE, choice };
        let price_minor = MinorUnits(PRICE.0 / 2);
        // Those of the same person in another sale.
        let lines = vec![RequestedLine { line, price_minor, attendees: Vec::new() }];
        let name = &old["lines"][0]["tickets"][0]["seat"];
        let seat = name.as_str().unwrap().parse().unwrap();
        let tickets = vec![TicketName { tier: TierId::new("dear").unwrap(), seat }];
        let order = old["order"].as_str().unwrap().parse().unwrap();
        let exchange = Some(ExchangeRequest { order, tickets });
        let reservation = Reservation { published, number, user, lines, exchange };
        for call in 0.. {
            let crashing = Crashing::at(&app.ports, call, Cut::BeforeTheCall);
            let _ = flows::reserve::reserve(&crashing, &reservation, now).await;
            if app.ports.orders().get(number).await.unwrap().is_some() {
                break;
            }
        }
        number.to_string()
    }

    /// Tickets are exchanged for those of another sale, of whoever hears that the new ones are paid.
    async fn exchanges(&self) {
        for sale in ["swap", "swap-2"] {
            let tier = |tier: &str, price_minor: MinorUnits| {
                json!({ "tier": tier, "name": tier, "price_minor": price_minor,
                    "general_admission": 50 })
            };
            self.put(&json!({
                "sale": sale, "title": sale, "currency": "EUR",
                "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
                "limit_per_buyer": 4, "pay_window_seconds": 900, "gate": { "shards": 1 },
                "attendees": "optional", "exchange_group": "swaps", "wallet": true,
                "exchanges": { "until": "2099-01-01T00:00:00Z", "fee_minor": 1 },
                "tiers": [tier("dear", PRICE), tier("cheap", MinorUnits(PRICE.0 / 2))]
            }))
            .await;
        }
        let ways = ["callback", "take", "decide", "start", "close", "expire", "left", "old money"];
        for (index, way) in ways.into_iter().enumerate() {
            let user = format!("swapper_{index}");
            let old = self.swap(&user, None, "swap", "dear").await;
            self.callback(&format!("pi_old_{index}"), old["order"].as_str().unwrap(), PRICE).await;
            let number = match way {
                "left" => self.left_pending(&user, &old).await,
                _ => {
                    let tier = if way == "old money" { "cheap" } else { "dear" };
                    let new = self.swap(&user, Some(&old), "swap-2", tier).await;
                    new["order"].as_str().unwrap().to_owned()
                }
            };
            let made = Made { number, user: user.clone(), admission: json!(null) };
            let payment = format!("pi_new_{index}");
            let (at, now) = (InventoryId::whole("swap-2".parse().unwrap()), Timestamp::now());
            let later = now.plus_seconds(2000);
            match way {
                "callback" => drop(self.callback(&payment, &made.number, PRICE).await),
                "take" => self.report(Function::TakeCallback, &payment, &made.number).await,
                "decide" => self.report(Function::DecidePayment, &payment, &made.number).await,
                "start" => {
                    self.begin(&made, "page").await;
                    let form = self.begin(&made, "form").await;
                    self.provider.pay(&form, now).unwrap().unwrap();
                    let body =
                        json!({ "provider": "stripe", "return_url": "https://shop.example/back" });
                    let line = format!("POST /orders/{}/payments", made.number);
                    let sender = Sender::Buyer(&made.user);
                    let refused = self.http("start-payment", sender, &line, &body).await;
                    assert_eq!(refused["state"], "paid", "{refused:#}");
                }
                "close" | "expire" | "left" => {
                    if way != "left" {
                        let form = self.begin(&made, "form").await;
                        self.provider.pay(&form, now).unwrap().unwrap();
                    }
                    if way == "close" {
                        let ports = &self.app("close-payments").ports;
                        flows::close::close(ports, &at, made.number(), later).await.unwrap();
                    }
                    let due = Expiry { at, number: made.number(), heard_at: Some(later) };
                    let ports = &self.app("expire-orders").ports;
                    flows::expire::expire_or_requeue(ports, &[due], later).await;
                }
                _ => {}
            }
            let line = format!("GET /orders/{}", made.number);
            let shown = self.http("orders", Sender::Buyer(&user), &line, &json!({})).await;
            if way != "expire" {
                assert_eq!(shown["state"], "paid", "{way}: {shown:#}");
            }
        }
        all_done(
            &sync_db::handle(self.app("sync-db"), self.batch(&self.queues.sync.url).await).await,
        );
    }

    /// Fills a buyer's wallet with a hundred tickets' worth.
    async fn fill(&self, user: &str) {
        let order = self.swap(user, None, "top-ups", "hundred").await;
        let number = order["order"].as_str().unwrap();
        self.callback(&format!("pi_fill_{user}"), number, MinorUnits(100 * PRICE.0)).await;
    }

    async fn pay_from_wallet(&self, user: &str, number: &str) -> Value {
        let line = format!("POST /orders/{number}/payments/wallet");
        self.http("pay-from-wallet", Sender::Buyer(user), &line, &json!({})).await
    }

    /// A wallet that is filled, pays and is refunded into, and exchanges that one pays, once while another payment is
    /// open and once for a ticket that is gone.
    async fn wallets(&self) {
        self.put(&json!({
            "sale": "top-ups", "title": "Top-ups", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900, "gate": { "shards": 1 },
            "merchant": { "merchant": "wallet" },
            "tiers": [{ "tier": "hundred", "name": "100", "price_minor": 100 * PRICE.0,
                "general_admission": 50 }]
        }))
        .await;
        for (user, is_gone) in [("purse", false), ("pouch", true)] {
            self.fill(user).await;
            let old = self.swap(user, None, "swap", "dear").await;
            let number = old["order"].as_str().unwrap();
            assert_eq!(self.pay_from_wallet(user, number).await["state"], "paid");
            let new = self.swap(user, Some(&old), "swap-2", "dear").await;
            let number = new["order"].as_str().unwrap();
            let made =
                Made { number: number.to_owned(), user: user.to_owned(), admission: json!(null) };
            self.begin(&made, "page").await;
            if is_gone {
                let old = old["order"].as_str().unwrap();
                let line = format!("POST /orders/{old}/refunds/operator");
                let whole = json!({ "number": 1, "tickets": "all" });
                let back = self.http("refund-order", Sender::Operator, &line, &whole).await;
                assert_eq!(back["status"], 200, "{back:#}");
                let refused = self.pay_from_wallet(user, number).await;
                assert_eq!(refused["state"], "cancelled", "{refused:#}");
            } else {
                assert_eq!(self.pay_from_wallet(user, number).await["state"], "paid");
            }
        }
        all_done(
            &refund::handle(self.app("refund"), self.batch(&self.queues.refund.url).await).await,
        );
        let shown = self.http("orders", Sender::Buyer("pouch"), "GET /wallets", &json!({})).await;
        assert_eq!(shown["wallets"][0]["balance_minor"], 100 * PRICE.0, "{shown:#}");
    }

    /// Captures that come another way, whatever their order is.
    async fn other_payments(&self, by: Function, row: u32) {
        let seat = |seat: u32| format!("{row}-{seat}");
        let [user, payment] =
            ["buyer", "pi"].map(|kind| move |index: u32| format!("{kind}_{row}{index}"));
        let paid = self.buy(&user(1), &seat(11)).await;
        self.begin(&paid, "page").await;
        for index in [1, 1, 2] {
            self.report(by, &payment(index), &paid.number).await;
        }
        let rescued = self.buy(&user(2), &seat(12)).await;
        self.end(&rescued).await;
        self.report(by, &payment(3), &rescued.number).await;
        let late = self.buy(&user(3), &seat(13)).await;
        self.end(&late).await;
        self.buy(&user(4), &seat(13)).await;
        self.report(by, &payment(4), &late.number).await;
        for (index, order) in [(2, &paid), (4, &late)] {
            self.captured(&payment(index), order.number());
        }
    }

    /// Orders whose time is up: they are requeued, end, are paid or refunded after all, or never were.
    async fn ends(&self) {
        let later = Timestamp::now().plus_seconds(2000);
        let ends = self.buy("grace", "3-1").await;
        let message =
            json!({ "sale": SALE, "order": ends.number, "due_at": "2020-01-01T00:00:00.000Z" });
        let record = json!({ "messageId": "1", "body": message.to_string() });
        let batch: SqsEvent = serde_json::from_value(json!({ "Records": [record] })).unwrap();
        all_done(&expire_orders::handle(self.app("expire-orders"), batch).await);
        let captured = self.buy("heidi", "3-2").await;
        self.captured("pi_6", captured.number());
        self.captured("pi_7", captured.number());
        let held = self.hold_without_order("ivan").await;
        let soon = Timestamp::now().plus_seconds(1000);
        let overdue = Expiry { heard_at: None, ..due_for(ends.number(), soon) };
        let ports = &self.app("expire-orders").ports;
        assert_eq!(flows::expire::expire_or_requeue(ports, &[overdue], soon).await, [Ok(())]);
        // One that cannot be read with the others is read alone.
        flows::expire::expire(ports, &InventoryId::whole(sale()), ends.number(), soon)
            .await
            .unwrap();
        self.close_at(captured.number(), soon).await;
        let due = [ends.number(), captured.number(), held];
        assert_eq!(self.expire_at(&due, later).await, []);
    }

    /// Redis loses everything while it is needed.
    async fn losses(&mut self) {
        let later = Timestamp::now().plus_seconds(2000);
        let pays = self.buy("judy", "3-3").await;
        let kept = self.buy("judith", "3-6").await;
        let taken = self.buy("jude", "3-7").await;
        let captured = self.buy("kim", "3-4").await;
        self.captured("pi_8", captured.number());
        let admission = self.admission("leo").await;
        self.fill("satchel").await;
        let from_wallet = self.swap("satchel", None, "swap", "dear").await;
        self.lose_redis().await;
        let line = "GET /sales/hall/availability";
        let lost = Instant::now();
        let mut left = self.http("sales", Sender::Nobody, line, &json!({})).await;
        // The process tells for a second what it has seen before.
        while left["type"] != "/problems/not-loaded" {
            assert!(lost.elapsed() < Duration::from_secs(120), "{left}");
            sleep(Duration::from_millis(50)).await;
            left = self.http("sales", Sender::Nobody, line, &json!({})).await;
        }
        let refused = self.reserve("leo", &admission, "3-5", "leo").await;
        assert_eq!(refused["type"], "/problems/not-loaded");
        self.callback("pi_9", &pays.number, PRICE).await;
        let paid = self.pay_from_wallet("satchel", from_wallet["order"].as_str().unwrap()).await;
        assert_eq!(paid["state"], "paid", "{paid:#}");
        self.report(Function::DecidePayment, "pi_35", &kept.number).await;
        self.report(Function::TakeCallback, "pi_36", &taken.number).await;
        // It is paid, and comes again to be sold.
        self.close_at(captured.number(), later).await;
        let comes_again = self.expire_at(&[captured.number()], later).await;
        assert_eq!(comes_again.len(), 1);
        self.ask("mia", SALE, 1).await;
        let batch = self.batch(&self.queues.load.url).await;
        all_done(&load_sale::handle(self.app("load-sale"), batch).await);
        // A publication loads it too.
        self.lose_redis().await;
        self.publish("The hall again").await;
    }

    /// What is left undone is the sweeper's.
    async fn repairs(&mut self) {
        self.buy("olga", "4-1").await;
        let captured = self.buy("pat", "4-2").await;
        self.captured("pi_10", captured.number());
        self.captured("pi_11", captured.number());
        let uncounted = self.buy("quin", "4-3").await;
        self.callback("pi_12", &uncounted.number, PRICE).await;
        let refunded = Capture {
            key: PaymentKey {
                provider: "stripe".parse().unwrap(),
                payment: "pi_13".parse().unwrap(),
            },
            order: uncounted.number(),
            amount: Money { amount_minor: PRICE, currency: Currency::new("EUR").unwrap() },
            attempt: None,
        };
        let now = Timestamp::now();
        // The process dies when the payment is decided and its refund not yet asked for.
        let dying = Crashing::at(&self.app("pay-callback").ports, 2, Cut::BeforeTheCall);
        flows::pay::pay(&dying, &refunded, now).await.unwrap_err();
        self.hold_without_order("rita").await;
        self.reconcile_at(now.plus_seconds(1050)).await;
        // An order that was due and is paid by now, without Redis knowing.
        let at = InventoryId::whole(sale());
        let ports = &self.app("reconcile").ports;
        let afar = self.buy("quill", "4-13").await;
        self.captured("pi_15", afar.number());
        self.close_at(afar.number(), now.plus_seconds(1000)).await;
        flows::expire::expire(ports, &at, afar.number(), now).await.unwrap();
        let later = now.plus_seconds(2000);
        self.reconcile_at(later).await;

        // Redis has lost the sale, and again while somebody else is loading it.
        self.lose_redis().await;
        self.reconcile_at(later).await;
        let captured = self.buy("sam", "4-4").await;
        self.captured("pi_14", captured.number());
        self.lose_redis().await;
        let catalogue = self.app("load-sale").ports.catalogue();
        let until = later.plus_seconds(60);
        catalogue.lease(&sale(), &new_epoch(now).unwrap(), later, until).await.unwrap();
        self.reconcile_at(later).await;
        self.archive("gone").await;
        let event = EventBridgeEvent::<Value>::default();
        reconcile::handle(self.app("reconcile"), event).await.unwrap();
    }

    /// Captures that no callback reported are read: an order that is paid, one that is rescued, and money that goes
    /// back, once there is a turn for it; and a dispute that was lost.
    async fn reads(&self) {
        let paid = self.buy("tess", "4-5").await;
        self.begin(&paid, "page").await;
        let rescued = self.buy("uri", "4-6").await;
        self.end(&rescued).await;
        self.captured("pi_20", paid.number());
        self.captured("pi_21", rescued.number());
        self.captured_of_no_order("pi_29");
        self.buy("vera", "4-7").await;
        let reading = read_captures::read(self.app("read-captures")).await.unwrap();
        assert!(reading.decided >= 3 && reading.unfinished == 0, "{reading:?}");
        // The bank takes one back.
        let dispute = self.provider.open_dispute("pi_20", PRICE, false, Timestamp::now()).unwrap();
        self.provider.close_dispute(&dispute, false, Timestamp::now()).unwrap();
        let reading = read_captures::read(self.app("read-captures")).await.unwrap();
        assert!(reading.disputes == 1 && reading.unreadable == 0, "{reading:?}");

        let key = [("pk", "#provider#stripe"), ("sk", "calls#list-refunds")];
        let batch = self.batch(&self.queues.refund.url).await;
        let next_us = Timestamp::now().plus_seconds(9).ms() * 1000;
        let mut put = self.dynamo.client().put_item();
        for (name, value) in key {
            put = put.item(name, AttributeValue::S(value.to_owned()));
        }
        let put = put.item("next_us", AttributeValue::N(next_us.to_string()));
        put.table_name(&self.dynamo.config().tables.sales).send().await.unwrap();
        all_done(&refund::handle(self.app("refund"), batch).await);
    }

    /// The bill of today is read tomorrow: captures of which nothing else has told, money that went back by hand, and what
    /// nobody knows of.
    async fn bills(&self) {
        let paid = self.buy("wes", "4-14").await;
        self.begin(&paid, "page").await;
        let rescued = self.buy("xia", "4-15").await;
        self.end(&rescued).await;
        self.captured("pi_40", paid.number());
        self.captured("pi_41", rescued.number());
        self.captured_of_no_order("pi_42");
        let known = self.buy("yan", "4-16").await;
        self.captured("pi_43", known.number());
        self.callback("pi_43", &known.number, PRICE).await;
        // A second payment goes back by hand before it is sent.
        self.captured("pi_44", known.number());
        self.callback("pi_44", &known.number, PRICE).await;
        for (payment, amount) in
            [("pi_42", MinorUnits(100)), ("pi_43", MinorUnits(100)), ("pi_44", PRICE)]
        {
            self.provider.refund_by_hand(payment, amount, Timestamp::now()).unwrap();
        }
        let tomorrow = Timestamp::now().plus_seconds(25 * 3600);
        let reading = read_bills::read(self.app("read-bills"), tomorrow).await.unwrap();
        assert!(reading.decided >= 3 && reading.days == 1 && reading.failed == 0, "{reading:?}");
    }

    /// A webhook is told; of what it does not take some orders wait, and are told later.
    async fn webhook(&self) {
        let is_picky = Arc::new(AtomicBool::new(true));
        let picky = Arc::clone(&is_picky);
        let hear = move |body: Bytes| {
            let body: Value = serde_json::from_slice(&body).unwrap();
            // Of the facts of one order in two none is taken.
            let order = body["data"]["order"].as_str().unwrap_or_default();
            let number: u64 = order.parse().unwrap_or_default();
            let is_taken = (number >> 12).is_multiple_of(2) || !picky.load(Ordering::Relaxed);
            ready(if is_taken { StatusCode::OK } else { StatusCode::CONFLICT })
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let routes = Router::new().route("/", post(hear));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        let app = self.app("send-events");
        let webhook = Webhook {
            id: "erp".parse().unwrap(),
            url: url.parse().unwrap(),
            wishes: Wishes::default(),
            secret: app.webhooks.keys.next(None, Timestamp::now()).unwrap(),
            former: None,
            since: Timestamp::from_ms(0),
        };
        // An operator's commands, which are no function.
        DynamoWebhooks::new(self.dynamo.clone()).put(&webhook).await.unwrap();
        let told = send_events::tell(app).await.unwrap();
        assert!(told.told > 0 && told.waiting > 0, "{told:?}");
        is_picky.store(false, Ordering::Relaxed);
        let (now, operator) = (Timestamp::now(), "operator".parse().unwrap());
        let subscriptions = DynamoSubscriptions::new(self.dynamo.clone());
        let held = subscriptions.retry(&webhook.id, &operator, now).await;
        assert_eq!(held, Ok(Vec::new()));
        let told = send_events::tell(app).await.unwrap();
        assert!(told.told > 0 && told.waiting == 0, "{told:?}");
        serving.abort();
    }

    /// The bus is told what was settled since it was told first.
    async fn bus(&self) {
        let paid = self.buy("wanda", "4-9").await;
        self.callback("pi_30", &paid.number, PRICE).await;
        // This one alone: what else is not settled is what the repairs find.
        let ports = &self.app("sync-db").ports;
        flows::sync::sync(ports, &[paid.number()], Timestamp::now()).await.unwrap();
        send_events::tell(self.app("send-events")).await.unwrap();
        assert!(!self.eventbridge.taken().is_empty());
    }

    async fn reconcile_at(&self, now: Timestamp) {
        let ports = &self.app("reconcile").ports;
        flows::reconcile::reconcile(ports, &new_epoch(now).unwrap(), now).await.unwrap();
    }

    /// A sale that was over long ago is archived.
    async fn archive(&self, id: &str) {
        let file = json!({
            "sale": id, "title": "Gone", "currency": "EUR",
            "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2020-01-02T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900,
            "tiers": [{ "tier": "all", "name": "all", "price_minor": PRICE, "general_admission": 2 }]
        });
        self.put(&file).await;
        let ports = &self.app("reconcile").ports;
        let now = Timestamp::now();
        let over = [(SaleId::new(id).unwrap(), "2020-01-02T00:00:00Z".parse().unwrap())];
        let token = || new_epoch(now);
        let archived = flows::archive::by_age(ports, &over, 30, token, now, std::future::pending());
        assert_eq!(archived.await, Ok(vec![over[0].0.clone()]));
    }

    /// A hold whose reservation died before it made the order.
    async fn hold_without_order(&self, user: &str) -> OrderNumber {
        let app = self.app("reserve");
        let published = app.ports.catalogue().sale(&sale(), Freshness::Fresh).await.unwrap();
        let user = UserId::new(user).unwrap();
        let number = app.mint.mint(Timestamp::now(), &user);
        let choice = Choice::Best { count: 1, together: Together::Preferred };
        let line = Line { tier: TierId::new("vip").unwrap(), legs: Legs::ONE, choice };
        let lines = vec![RequestedLine { line, price_minor: PRICE, attendees: Vec::new() }];
        let reservation =
            Reservation { published: published.unwrap(), number, user, lines, exchange: None };
        let dying = Crashing::at(&app.ports, 0, Cut::AfterTheCall);
        flows::reserve::reserve(&dying, &reservation, Timestamp::now()).await.unwrap_err();
        number
    }
}

/// Makes a user of Redis whose password is `secret`, and who may do what `access` says.
pub async fn user(redis: &mut MultiplexedConnection, name: &str, access: &str) {
    let mut user = redis::cmd("ACL");
    user.arg("SETUSER").arg(name).arg(">secret");
    for rule in access.split(' ') {
        user.arg(rule);
    }
    let () = user.query_async(redis).await.unwrap();
}

fn sale() -> SaleId {
    SaleId::new(SALE).unwrap()
}

/// An order whose providers were heard.
fn due_for(number: OrderNumber, now: Timestamp) -> Expiry {
    Expiry { at: InventoryId::whole(sale()), number, heard_at: Some(now) }
}

fn all_done(response: &SqsBatchResponse) {
    assert_eq!(response.batch_item_failures.len(), 0, "{response:?}");
}
