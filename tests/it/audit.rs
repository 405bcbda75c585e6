//! The audit against real stores: a fixture that the engine made is clean; each way in which a store
//! can be wrong is named, and only that; once it is put right, the fixture is clean again.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::io::Write as _;
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::choice::{Choice, Together};
use engine::domain::ids::{Epoch, Legs, PaymentId, ProviderId, SaleId, Seat, UserId};
use engine::domain::inventory::{Hold, HoldReply, Line};
use engine::domain::number::{Mint, OrderNumber};
use engine::domain::order::{Capture, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason};
use engine::domain::requested::{RequestedLine, fingerprint};
use engine::domain::sale::Sale;
use engine::domain::time::Timestamp;
use engine::flows::cancel::cancel;
use engine::flows::expire::{Expired, expire};
use engine::flows::pay::pay;
use engine::flows::publish::publish;
use engine::flows::reconcile::reconcile;
use engine::flows::reserve::{Reservation, reserve};
use engine::flows::sync::sync;
use engine::ports::{Ports, Published, Queue, Seats as _, Stored};
use local::servers::{DynamoDb, Flavour, RedisCluster, RedisOptions, RedisServer};
use local::stores::sdk_config;
use ops::audit::facts::LedgerFacts;
use ops::audit::{self, AuditError, Options, RedisTarget, Report, Rule, Target};
use redis::aio::MultiplexedConnection;
use serde_json::json;
use shared::dynamodb::{Dynamo, DynamoCatalogue, DynamoOrders, StoreConfig, Tables, create_tables};
use shared::providers::Providers;
use shared::redis::{Bounds, Connection, RedisGate, RedisSeats, Topology};

use crate::backends::{self, Server};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
const LATER: Timestamp = NOW.plus_seconds(1000);

/// The engine's adapters, with queues that lose everything: what a message would bring about, the
/// test does itself.
struct Engine {
    seats: RedisSeats,
    gate: RedisGate,
    orders: DynamoOrders,
    catalogue: DynamoCatalogue,
    queue: Nowhere,
    provider: Providers,
}

struct Nowhere;

impl Queue for Nowhere {
    async fn expire_later(
        &self,
        _: &SaleId,
        _: OrderNumber,
        _: Timestamp,
        _: Timestamp,
    ) -> Stored<()> {
        Ok(())
    }
    async fn sync(&self, _: OrderNumber) -> Stored<()> {
        Ok(())
    }
    async fn load_again(&self, _: &SaleId) -> Stored<()> {
        Ok(())
    }
    async fn refund(&self, _: &PaymentRecord) -> Stored<()> {
        Ok(())
    }
}

impl Ports for Engine {
    type Seats = RedisSeats;
    type Gate = RedisGate;
    type Orders = DynamoOrders;
    type Catalogue = DynamoCatalogue;
    type Queue = Nowhere;
    type Provider = Providers;

    fn seats(&self) -> &RedisSeats {
        &self.seats
    }
    fn gate(&self) -> &RedisGate {
        &self.gate
    }
    fn orders(&self) -> &DynamoOrders {
        &self.orders
    }
    fn catalogue(&self) -> &DynamoCatalogue {
        &self.catalogue
    }
    fn queue(&self) -> &Nowhere {
        &self.queue
    }
    fn provider(&self) -> &Providers {
        &self.provider
    }
}

fn id<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn epoch() -> Epoch {
    id("e1")
}

/// Two legs. Tier `a` has the row A1 to A4, of which A4 is not for sale; `ga` has five spots.
fn train() -> Sale {
    let stop = |stop: &str| json!({"stop": stop, "name": stop});
    let names = json!(["A1", "A2", "A3", "A4"]);
    let file = json!({
        "sale": "g1", "title": "G1", "currency": "EUR", "limit_per_buyer": 3,
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
        "pay_window_seconds": 600, "stops": [stop("X"), stop("Y"), stop("Z")],
        "tiers": [
            {"tier": "a", "name": "A", "price_minor": 50, "not_for_sale": ["A4"],
             "sections": [{"section": "1", "rows": [{"row": "1", "seats": names}]}]},
            {"tier": "ga", "name": "GA", "price_minor": 20, "general_admission": 5}
        ]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// One leg and three spots.
fn show() -> Sale {
    let file = json!({
        "sale": "show", "title": "Show", "currency": "EUR", "limit_per_buyer": 3,
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2030-01-01T00:00:00Z",
        "pay_window_seconds": 600,
        "tiers": [{"tier": "floor", "name": "F", "price_minor": 70, "general_admission": 3}]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

fn requested(tier: &str, legs: (u16, u16), choice: Choice, price_minor: i64) -> RequestedLine {
    let legs = Legs::new(legs.0, legs.1).unwrap();
    RequestedLine {
        line: Line { tier: id(tier), legs, choice },
        price_minor,
        attendees: Vec::new(),
    }
}

fn seats(seats: &[u32]) -> Choice {
    Choice::Seats(seats.iter().copied().map(Seat).collect())
}

fn best(count: u16) -> Choice {
    Choice::Best { count, together: Together::Preferred }
}

fn payment(name: &str) -> PaymentKey {
    PaymentKey {
        provider: ProviderId::new("stripe").unwrap(),
        payment: PaymentId::new(name).unwrap(),
    }
}

type Item = HashMap<String, AttributeValue>;

fn text(text: impl ToString) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// One way in which a store can be wrong.
enum Change {
    /// A command to Redis.
    Redis(Vec<String>),
    /// An item put into a table.
    Put(&'static str, Item),
    /// An item taken out of a table.
    Delete(&'static str, Item),
    /// Several at once.
    All(Vec<Change>),
}

fn redis<const N: usize>(command: [&str; N]) -> Change {
    Change::Redis(command.map(str::to_owned).into())
}

/// Everything both stores hold.
struct Snapshot {
    redis: Vec<(Vec<u8>, Vec<u8>)>,
    tables: BTreeMap<&'static str, Vec<Item>>,
}

impl Snapshot {
    /// The item with this sort key, in the partition if one is named.
    fn item(&self, table: &str, partition: Option<&str>, sort: &str) -> Item {
        let has = |item: &Item, name: &str, requested: &str| matches!(item.get(name), Some(AttributeValue::S(text) | AttributeValue::N(text)) if text == requested);
        let is_it = |item: &&Item| {
            has(item, "sk", sort) && partition.is_none_or(|partition| has(item, "pk", partition))
        };
        self.tables[table].iter().find(is_it).unwrap_or_else(|| panic!("{table} {sort}")).clone()
    }

    fn order(&self, order: OrderNumber) -> Item {
        self.item("orders", None, &format!("order#{order}"))
    }

    fn seat(&self, tier: &str, seat: u32) -> Item {
        self.item("seats", Some(&format!("g1#{tier}#0")), &seat.to_string())
    }
}

/// The item with some attributes set.
fn with<const N: usize>(mut item: Item, attributes: [(&str, AttributeValue); N]) -> Item {
    item.extend(attributes.map(|(name, value)| (name.to_owned(), value)));
    item
}

/// The item without some attributes.
fn without<const N: usize>(mut item: Item, attributes: [&str; N]) -> Item {
    attributes.iter().for_each(|name| drop(item.remove(*name)));
    item
}

/// The numbers of the world's orders, by what became of them.
struct Numbers {
    /// Alice: A1 and A2 on both legs for attendees p and q, paid and counted.
    paid: OrderNumber,
    /// Bob: a spot on leg 1.
    pending: OrderNumber,
    /// Bob: another spot, cancelled.
    cancelled: OrderNumber,
    /// Carol: A3 on leg 0, expired; paid after dora had the seat.
    late: OrderNumber,
    /// Dora: A3 on leg 0, paid and counted.
    quick: OrderNumber,
    /// Erin: A3 on leg 1, expired, then paid and counted.
    rescued: OrderNumber,
    /// Fay: a hold that never became an order.
    buried: OrderNumber,
    /// An order that never was, but was paid for.
    unknown: OrderNumber,
    /// Alice, in the other sale: a spot, paid and counted.
    other: OrderNumber,
}

async fn connect(url: &str) -> MultiplexedConnection {
    let client = redis::Client::open(url).unwrap();
    client.get_multiplexed_async_connection().await.unwrap()
}

struct Fixture {
    engine: Engine,
    mint: Mint,
    target: Target,
    dynamodb: aws_sdk_dynamodb::Client,
    redis: MultiplexedConnection,
    _redis: Option<RedisServer>,
    _dynamodb: Server<DynamoDb>,
}

impl Fixture {
    async fn start() -> Self {
        let redis = RedisServer::start(RedisOptions::default()).await.unwrap();
        let url = redis.url();
        let fixture = Self::on(&url, &Topology::Single(url.clone())).await;
        Self { _redis: Some(redis), ..fixture }
    }

    /// A fixture whose engine finds Redis by its topology, and whose auditor finds it by one address.
    async fn on(url: &str, topology: &Topology) -> Self {
        let dynamodb = backends::dynamodb();
        let prefix = backends::prefix();
        let sdk = sdk_config();
        let tables = Tables::with_prefix(&prefix);
        let config =
            StoreConfig { endpoint: Some(dynamodb.url.clone()), ..StoreConfig::new(tables) };
        let db = Dynamo::new(&sdk, config);
        create_tables(db.client(), &db.config().tables).await.unwrap();
        let connection = Connection::new(topology, Bounds::default()).unwrap();
        Self {
            engine: Engine {
                seats: RedisSeats::new(connection.clone()),
                gate: RedisGate::new(connection),
                orders: DynamoOrders::new(db.clone()),
                catalogue: DynamoCatalogue::new(db.clone()),
                queue: Nowhere,
                provider: Providers::default(),
            },
            mint: Mint::new(7),
            target: Target::at(url, &dynamodb.url, &prefix),
            dynamodb: db.client().clone(),
            redis: connect(url).await,
            _redis: None,
            _dynamodb: dynamodb,
        }
    }

    fn table(&self, name: &str) -> String {
        let tables = &self.target.tables;
        let names = [&tables.orders, &tables.seats, &tables.sales];
        names.into_iter().find(|table| table.ends_with(name)).unwrap().clone()
    }

    async fn reserve(
        &self,
        published: &Published,
        user: &str,
        line: RequestedLine,
        now: Timestamp,
    ) -> OrderNumber {
        let user = UserId::new(user).unwrap();
        let number = self.mint.mint(now, &user);
        let published = published.clone();
        let reservation = Reservation { published, number, user, lines: vec![line] };
        reserve(&self.engine, &reservation, now).await.unwrap().order.number
    }

    async fn pay(
        &self,
        sale: &Sale,
        order: OrderNumber,
        name: &str,
        amount: i64,
    ) -> PaymentOutcome {
        let capture = Capture { key: payment(name), order, amount: sale.money(amount) };
        pay(&self.engine, &capture, LATER).await.unwrap().outcome
    }

    async fn expire(&self, sale: &Sale, order: OrderNumber) {
        let expired = expire(&self.engine, sale.id(), order, NOW.plus_seconds(600)).await;
        assert_eq!(expired, Ok(Expired::Ended));
    }

    /// Lets everything happen that can happen to an order, through the engine's own flows.
    async fn live(&self) -> Numbers {
        let (train, show) = (train(), show());
        let g1 = publish(&self.engine, &train, &epoch(), NOW).await.unwrap();
        let other = publish(&self.engine, &show, &epoch(), NOW).await.unwrap();

        let mut line = requested("a", (0, 2), seats(&[0, 1]), 50);
        line.attendees = vec![id("p"), id("q")];
        let paid = self.reserve(&g1, "alice", line, NOW).await;
        assert_eq!(self.pay(&train, paid, "pi_1", 100).await, PaymentOutcome::Accepted);
        let second = PaymentOutcome::Refund(RefundReason::SecondPayment);
        assert_eq!(self.pay(&train, paid, "pi_again", 100).await, second);

        let late = self.reserve(&g1, "carol", requested("a", (0, 1), best(1), 50), NOW).await;
        self.expire(&train, late).await;
        let quick = self.reserve(&g1, "dora", requested("a", (0, 1), seats(&[2]), 50), NOW).await;
        assert_eq!(self.pay(&train, quick, "pi_quick", 50).await, PaymentOutcome::Accepted);
        let too_late = PaymentOutcome::Refund(RefundReason::TooLate);
        assert_eq!(self.pay(&train, late, "pi_late", 50).await, too_late);

        let rescued = self.reserve(&g1, "erin", requested("a", (1, 2), seats(&[2]), 50), NOW).await;
        self.expire(&train, rescued).await;
        assert_eq!(self.pay(&train, rescued, "pi_rescue", 50).await, PaymentOutcome::Accepted);

        let buried = self.hold_only(&train, "fay").await;
        self.expire(&train, buried).await;
        let unknown = self.mint.mint(NOW, &id("gil"));
        let nobodys = PaymentOutcome::Refund(RefundReason::UnknownOrder);
        assert_eq!(self.pay(&train, unknown, "pi_unknown", 50).await, nobodys);

        let spot = || requested("ga", (1, 2), best(1), 20);
        let cancelled = self.reserve(&g1, "bob", spot(), LATER).await;
        cancel(&self.engine, &id("bob"), cancelled, LATER).await.unwrap();
        let pending = self.reserve(&g1, "bob", spot(), LATER).await;

        let line = requested("floor", (0, 1), best(1), 70);
        let other = self.reserve(&other, "alice", line, NOW).await;
        assert_eq!(self.pay(&show, other, "pi_other", 70).await, PaymentOutcome::Accepted);
        let synced = sync(&self.engine, &[paid, quick, rescued, other]).await;
        assert_eq!(synced, Ok(4));
        Numbers { paid, pending, cancelled, late, quick, rescued, buried, unknown, other }
    }

    async fn hold_only(&self, sale: &Sale, user: &str) -> OrderNumber {
        let user = UserId::new(user).unwrap();
        let order = self.mint.mint(NOW, &user);
        let lines = [requested("ga", (0, 1), best(2), 20)];
        let hold = Hold {
            sale: sale.id().clone(),
            epoch: epoch(),
            order,
            user,
            fingerprint: fingerprint(&lines),
            now: NOW,
            deadline: NOW.plus_seconds(600),
            lines: lines.map(|requested| requested.line).into(),
        };
        assert!(matches!(self.engine.seats.hold(&hold).await, Ok(HoldReply::Held { .. })));
        order
    }

    async fn audit(&self) -> Report {
        audit::run(&self.target, &Options::at(LATER)).await.unwrap()
    }

    async fn violations(&self) -> Vec<String> {
        self.audit().await.violations().map(ToString::to_string).collect()
    }

    async fn snapshot(&self) -> Snapshot {
        let mut connection = self.redis.clone();
        let keys: Vec<Vec<u8>> =
            redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        let mut dumps = Vec::new();
        for key in keys {
            let dump = redis::cmd("DUMP").arg(&key).query_async(&mut connection).await.unwrap();
            dumps.push((key, dump));
        }
        let mut tables = BTreeMap::new();
        for table in ["orders", "seats", "sales"] {
            tables.insert(table, self.items(table).await);
        }
        Snapshot { redis: dumps, tables }
    }

    async fn items(&self, table: &str) -> Vec<Item> {
        let scan = self.dynamodb.scan().table_name(self.table(table));
        let items = scan.consistent_read(true).into_paginator().items().send();
        items.try_collect().await.unwrap()
    }

    /// Puts both stores back to what they were.
    async fn restore(&self, snapshot: &Snapshot) {
        let mut connection = self.redis.clone();
        let mut commands = redis::pipe();
        commands.cmd("FLUSHALL").ignore();
        for (key, dump) in &snapshot.redis {
            commands.cmd("RESTORE").arg(key).arg(0).arg(dump).ignore();
        }
        commands.query_async::<()>(&mut connection).await.unwrap();
        for (table, before) in &snapshot.tables {
            let now = self.items(table).await;
            for item in now.iter().filter(|item| !before.contains(item)) {
                self.apply(&Change::Delete(table, item.clone())).await;
            }
            for item in before.iter().filter(|item| !now.contains(item)) {
                self.apply(&Change::Put(table, item.clone())).await;
            }
        }
    }

    async fn apply(&self, change: &Change) {
        match change {
            Change::Redis(command) => {
                let mut connection = self.redis.clone();
                let (name, args) = command.split_first().unwrap();
                let done: redis::Value =
                    redis::cmd(name).arg(args).query_async(&mut connection).await.unwrap();
                assert_ne!(done, redis::Value::Nil, "{command:?}");
            }
            Change::Put(table, item) => {
                let put = self.dynamodb.put_item().table_name(self.table(table));
                put.set_item(Some(item.clone())).send().await.unwrap();
            }
            Change::Delete(table, item) => {
                let names = [if *table == "orders" { "gene" } else { "pk" }, "sk"];
                let key = names.map(|name| (name.to_owned(), item[name].clone())).into();
                let delete = self.dynamodb.delete_item().table_name(self.table(table));
                delete.set_key(Some(key)).send().await.unwrap();
            }
            Change::All(changes) => {
                for change in changes {
                    Box::pin(self.apply(change)).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn what_the_engine_makes_is_clean_and_each_corruption_is_named() {
    let fixture = Fixture::start().await;
    let orders = fixture.live().await;
    let report = fixture.audit().await;
    assert!(report.clean, "{report}");
    for finding in &report.findings {
        assert!(finding.checked > 0, "nothing was held against {}", finding.rule.name());
    }

    let snapshot = fixture.snapshot().await;
    let corruptions: Vec<(Change, Vec<String>)> = [
        wrong_claims(&snapshot, &orders),
        wrong_counts(&snapshot, &orders),
        wrong_redis(&orders),
        wrong_money(&snapshot, &orders),
        wrong_statistics(&snapshot, &orders),
        wrong_orders(&snapshot, &orders),
        wrong_records(&snapshot, &orders),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (change, expected) in &corruptions {
        fixture.apply(change).await;
        assert_eq!(&fixture.violations().await, expected);
        fixture.restore(&snapshot).await;
        assert_eq!(fixture.violations().await, [""; 0], "after {expected:?}");
    }
    assert!(corruptions.len() >= 40, "{}", corruptions.len());
}

type Corruptions = Vec<(Change, Vec<String>)>;

fn named<const N: usize>(expected: [&str; N]) -> Vec<String> {
    expected.map(str::to_owned).into()
}

/// I1 and I2, with what Redis makes of it.
fn wrong_claims(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, pending, cancelled, .. } = orders;
    let (a1, spot) = (snapshot.seat("a", 0), snapshot.seat("ga", 0));
    let attendee = snapshot.item("orders", None, "attendee#g1#p");
    vec![
        (
            // Both orders name A1 on leg 1, and their claims lie in two blocks.
            Change::All(vec![
                Change::Put("orders", {
                    let mut order = snapshot.order(*pending);
                    let line = AttributeValue::M(with(HashMap::new(), [
                        ("tier", text("a")),
                        ("from", number(1)),
                        ("to", number(2)),
                        ("price_minor", number(20)),
                        ("tickets", AttributeValue::L(vec![AttributeValue::M(with(
                            HashMap::new(),
                            [("seat", number(0)), ("name", text("A1"))],
                        ))])),
                    ]));
                    order.insert("lines".to_owned(), AttributeValue::L(vec![line]));
                    order
                }),
                Change::Put("seats", without(spot.clone(), ["l1"])),
                Change::Put("seats", with(HashMap::new(), [
                    ("pk", text("g1#a#1")),
("sk", number(0)),
                    ("l1", text(pending)),
                ])),
            ]),
            vec![
                format!("I1 g1: seat A1 of tier a on leg 1 is claimed by orders {paid}, {pending}"),
                format!("I1 g1: seat A1 of tier a on leg 1 is in live orders {paid}, {pending}"),
                "I4 g1: seat ga-1 of tier ga on leg 1 is taken in Redis but nobody claims it".to_owned(),
                format!("I4 g1: order {pending} holds other seats in Redis than it claims"),
                "records g1: item g1#a#1/0 of table seats is in another block than its seat's".to_owned(),
            ],
        ),
        (
            Change::Put("seats", without(spot.clone(), ["l1"])),
            vec![
                format!("I2 g1: seat ga-1 of tier ga on leg 1 is in live order {pending} but nobody claims it"),
                "I4 g1: seat ga-1 of tier ga on leg 1 is taken in Redis but nobody claims it".to_owned(),
            ],
        ),
        (
            Change::Put("seats", with(spot.clone(), [("l0", text(cancelled))])),
            vec![
                format!("I2 g1: seat ga-1 of tier ga on leg 0 is claimed by order {cancelled}, which is cancelled"),
                "I4 g1: seat ga-1 of tier ga on leg 0 is not taken in Redis but is claimed".to_owned(),
            ],
        ),
        (
            Change::Put("seats", with(a1.clone(), [("l1", text(pending))])),
            vec![
                format!("I2 g1: seat A1 of tier a on leg 1 is claimed by order {pending}, which does not have it"),
                format!("I2 g1: seat A1 of tier a on leg 1 is in live order {paid} but is claimed by {pending}"),
            ],
        ),
        (
            Change::Put("seats", with(a1, [("l1", text(7))])),
            vec![
                "I2 g1: seat A1 of tier a on leg 1 is claimed by order 7, which does not exist in this sale".to_owned(),
                format!("I2 g1: seat A1 of tier a on leg 1 is in live order {paid} but is claimed by 7"),
            ],
        ),
        (
            Change::Delete("orders", attendee.clone()),
            vec![format!("I2 g1: attendee p is named by live order {paid} without a claim")],
        ),
        (
            Change::Put("orders", with(attendee, [("order", text(pending))])),
            vec![
                format!("I2 g1: attendee p is claimed by order {pending}, which does not name them"),
                format!("I2 g1: attendee p is named by live order {paid} without a claim"),
            ],
        ),
    ]
}

/// I3, with what Redis makes of it.
fn wrong_counts(snapshot: &Snapshot, _: &Numbers) -> Corruptions {
    let alice = snapshot.item("orders", None, "buyer#g1#alice");
    vec![
        (
            Change::Put("orders", with(alice.clone(), [("tickets", number(1))])),
            named([
                "I3 g1: buyer alice has 2 tickets in live orders but a count of 1",
                "I4 g1: buyer alice has bought 2 in Redis but has a count of 1",
            ]),
        ),
        (
            Change::All(vec![
                Change::Delete("orders", alice.clone()),
                redis(["HDEL", "{g1}:sale", "@alice"]),
            ]),
            named(["I3 g1: buyer alice has 2 tickets in live orders but a count of 0"]),
        ),
        (
            Change::Put("orders", with(alice, [("gene", number(5))])),
            named([
                "I3 g1: buyer alice has 2 tickets in live orders but a count of 4",
                "I4 g1: buyer alice has bought 2 in Redis but has a count of 4",
                "records g1: item 5/buyer#g1#alice of table orders belongs in partition 175",
            ]),
        ),
    ]
}

/// I4: each key of a sale in each way.
fn wrong_redis(orders: &Numbers) -> Corruptions {
    let Numbers { pending, cancelled, .. } = orders;
    let bit = |key: &str, bit: u32, value: u32| {
        let (bit, value) = (bit.to_string(), value.to_string());
        redis(["SETBIT", key, &bit, &value])
    };
    let pending_text = pending.to_string();
    let deadline = LATER.plus_seconds(600).ms().to_string();
    let hold = |order: &str, deadline: &str, spot: &str, user: &str| {
        let record = format!("{deadline}|0123456789abcdef|1|ga,1,2,{spot}|{user}");
        redis(["HSET", "{g1}:sale", order, &record])
    };
    vec![
        (
            bit("{g1}:taken:a:0", 0, 0),
            named(["I4 g1: seat A1 of tier a on leg 0 is not taken in Redis but is claimed"]),
        ),
        (
            bit("{g1}:taken:ga:0", 4, 1),
            named(["I4 g1: seat ga-5 of tier ga on leg 0 is taken in Redis but nobody claims it"]),
        ),
        (
            bit("{g1}:taken:a:1", 3, 0),
            named(["I4 g1: seat A4 of tier a on leg 1 is not taken in Redis but is not for sale"]),
        ),
        (
            bit("{g1}:sold:a:1", 1, 0),
            named(["I4 g1: seat A2 of tier a on leg 1 is not sold in Redis but is paid"]),
        ),
        (
            bit("{g1}:sold:ga:1", 0, 1),
            named(["I4 g1: seat ga-1 of tier ga on leg 1 is sold in Redis but no paid order has it"]),
        ),
        (
            redis(["DEL", "{show}:taken:floor:0"]),
            [
                (3..8)
                    .map(|bit| {
                        format!("I4 show: bit {bit} (no seat) of tier floor on leg 0 is not taken in Redis but is not for sale")
                    })
                    .collect(),
                named(["I4 show: seat floor-1 of tier floor on leg 0 is not taken in Redis but is claimed"]),
            ]
            .concat(),
        ),
        (
            redis(["HDEL", "{g1}:sale", &pending_text]),
            vec![
                format!("I4 g1: order {pending} has a deadline in Redis but no hold"),
                format!("I4 g1: order {pending} is pending but has no hold in Redis"),
            ],
        ),
        (
            Change::All(vec![
                hold(&cancelled.to_string(), &deadline, "0", "bob"),
                hold("7", &deadline, "0", "bob"),
                redis(["ZADD", "{g1}:due", &deadline, "7", &deadline, &cancelled.to_string()]),
            ]),
            vec![
                "I4 g1: order 7 has a hold in Redis but does not exist".to_owned(),
                format!("I4 g1: order {cancelled} has a hold in Redis but is cancelled"),
            ],
        ),
        (
            hold(&pending_text, &deadline, "1", "bob"),
            vec![format!("I4 g1: order {pending} holds other seats in Redis than it claims")],
        ),
        (
            hold(&pending_text, &deadline, "0", "eve"),
            vec![format!("I4 g1: order {pending} is held for buyer eve in Redis but is bob's")],
        ),
        (
            hold(&pending_text, "5", "0", "bob"),
            vec![
                format!("I4 g1: order {pending} has a deadline of {deadline} ms in Redis, not its hold's"),
                format!("I4 g1: order {pending} is held until 1970-01-01T00:00:00.005Z in Redis but may be paid until {}", LATER.plus_seconds(600)),
            ],
        ),
        (
            redis(["ZREM", "{g1}:due", &pending_text]),
            vec![format!("I4 g1: order {pending} has a hold in Redis but no deadline there")],
        ),
        (
            redis(["ZADD", "{g1}:due", "5", "7"]),
            named(["I4 g1: order 7 has a deadline in Redis but no hold"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "@alice", "1"]),
            named(["I4 g1: buyer alice has bought 1 in Redis but has a count of 2"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "@zoe", "1"]),
            named(["I4 g1: buyer zoe has bought 1 in Redis but has a count of 0"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "epoch", "e9"]),
            named(["I4 g1: the sale has epoch e9 in Redis but e1 in the catalogue"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "limit", "9", "state", "paused"]),
            named([
                "I4 g1: the sale has limit 9 in Redis but 3 in the catalogue",
                "I4 g1: the sale has state paused in Redis but open in the catalogue",
            ]),
        ),
        (
            redis(["HSET", "{g1}:tier:a", "row_bytes", "2"]),
            named(["I4 g1: tier a has row_bytes 2 in Redis but 1 in the catalogue"]),
        ),
    ]
}

/// I5.
fn wrong_money(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, cancelled, late, unknown, .. } = orders;
    let item = |name: &str| snapshot.item("orders", None, &format!("payment#stripe#{name}"));
    let elsewhere = |order: &OrderNumber, name: &str| {
        with(
            item("pi_1"),
            [
                ("gene", number(order.gene().get())),
                ("sk", text(format!("payment#stripe#{name}"))),
                ("order", text(order)),
            ],
        )
    };
    let unasked = ("refund_state", text("due"));
    vec![
        (
            Change::Delete("orders", item("pi_1")),
            vec![format!("I5 g1: order {paid} is paid but has 0 accepted payments")],
        ),
        (
            Change::Put("orders", elsewhere(paid, "pi_2")),
            vec![
                format!("I5 g1: order {paid} is paid but has 2 accepted payments"),
                format!(
                    "I5 g1: payment stripe pi_2 for order {paid} was accepted but did not pay its order"
                ),
            ],
        ),
        (
            Change::Put("orders", with(item("pi_again"), [("outcome", text("accepted"))])),
            vec![
                format!("I5 g1: order {paid} is paid but has 2 accepted payments"),
                format!(
                    "I5 g1: payment stripe pi_again for order {paid} was accepted and yet goes back"
                ),
                format!(
                    "I5 g1: payment stripe pi_again for order {paid} was accepted but did not pay its order"
                ),
            ],
        ),
        (
            Change::Put(
                "orders",
                with(
                    item("pi_1"),
                    [
                        ("outcome", text("refund")),
                        ("reason", text("too_late")),
                        ("refund_state", text("requested")),
                    ],
                ),
            ),
            vec![
                format!("I5 g1: order {paid} is paid but has 0 accepted payments"),
                format!(
                    "I5 g1: payment stripe pi_1 for order {paid} is refunded and yet paid its order"
                ),
            ],
        ),
        (
            Change::Put("orders", elsewhere(cancelled, "pi_3")),
            vec![
                format!(
                    "I5 g1: payment stripe pi_3 for order {cancelled} of 100 EUR was accepted for 20 EUR"
                ),
                format!(
                    "I5 g1: payment stripe pi_3 for order {cancelled} was accepted but its order is cancelled"
                ),
            ],
        ),
        (
            Change::Put("orders", with(item("pi_late"), [("refund_state", text("refunded"))])),
            vec![format!(
                "I5 g1: payment stripe pi_late for order {late} is refunded but its order is refund_due"
            )],
        ),
        (
            Change::Put("orders", with(item("pi_1"), [("refund_state", text("requested"))])),
            vec![format!(
                "I5 g1: payment stripe pi_1 for order {paid} was accepted and yet goes back"
            )],
        ),
        (
            Change::Put("orders", with(item("pi_late"), [unasked.clone()])),
            vec![format!(
                "I5 g1: payment stripe pi_late for order {late} is to be refunded but no refund was requested"
            )],
        ),
        (
            Change::Put("orders", with(item("pi_unknown"), [unasked])),
            vec![format!(
                "I5 payment stripe pi_unknown for order {unknown} is to be refunded but no refund was requested"
            )],
        ),
        (
            Change::Delete("orders", item("pi_late")),
            vec![format!("I5 g1: order {late} is refund_due but its payment is not there")],
        ),
    ]
}

/// I6.
fn wrong_statistics(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { paid, quick, .. } = orders;
    let is_counter = |item: &&Item| matches!(item.get("sk"), Some(AttributeValue::S(sk)) if sk.starts_with("counter#a#"));
    let counter = snapshot.tables["sales"].iter().find(is_counter).unwrap().clone();
    let a3 = snapshot.seat("a", 2);
    vec![
        (
            Change::Put("sales", with(counter.clone(), [("tickets", number(9))])),
            named(["I6 g1: tier a counts 9 tickets for 200 but its paid orders are 4 for 200"]),
        ),
        (
            Change::Delete("sales", counter.clone()),
            named(["I6 g1: tier a counts 0 tickets for 0 but its paid orders are 4 for 200"]),
        ),
        (
            Change::Put("sales", with(counter, [("sk", text("counter#ga#3"))])),
            named(["I6 g1: tier ga counts 4 tickets for 200 but its paid orders are 0 for 0"]),
        ),
        (
            Change::Put("orders", without(snapshot.order(*paid), ["synced"])),
            vec![format!("I6 g1: order {paid} is paid but not counted")],
        ),
        (
            Change::Put(
                "seats",
                with(a3.clone(), [("sold", AttributeValue::Ns(vec!["1".to_owned()]))]),
            ),
            named(["I6 g1: seat A3 of tier a on leg 0 is paid but not noted as sold"]),
        ),
        (
            Change::Put(
                "seats",
                with(snapshot.seat("ga", 0), [("sold", AttributeValue::Ns(vec!["1".to_owned()]))]),
            ),
            named([
                "I6 g1: seat ga-1 of tier ga on leg 1 is noted as sold but no paid order has it",
            ]),
        ),
        (
            // Paid and counted, and yet cancelled.
            Change::Put("orders", with(snapshot.order(*quick), [("state", text("cancelled"))])),
            vec![
                format!(
                    "I2 g1: seat A3 of tier a on leg 0 is claimed by order {quick}, which is cancelled"
                ),
                "I3 g1: buyer dora has 0 tickets in live orders but a count of 1".to_owned(),
                "I4 g1: seat A3 of tier a on leg 0 is sold in Redis but no paid order has it"
                    .to_owned(),
                format!("I5 g1: order {quick} is cancelled but names payment stripe pi_quick"),
                format!(
                    "I5 g1: payment stripe pi_quick for order {quick} was accepted but its order is cancelled"
                ),
                "I6 g1: seat A3 of tier a on leg 0 is noted as sold but no paid order has it"
                    .to_owned(),
                format!("I6 g1: order {quick} is counted but cancelled"),
                "I6 g1: tier a counts 4 tickets for 200 but its paid orders are 3 for 150"
                    .to_owned(),
            ],
        ),
    ]
}

/// I7.
fn wrong_orders(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let pending = &orders.pending;
    let order = snapshot.order(*pending);
    let past = LATER.plus_seconds(-121);
    let ms = past.ms().to_string();
    let AttributeValue::S(content) = &order["content"] else { panic!("no content") };
    let record = format!("{ms}|{content}|1|ga,1,2,0|bob");
    vec![
        (
            Change::All(vec![
                redis(["HSET", "{g1}:sale", &pending.to_string(), &record]),
                redis(["ZADD", "{g1}:due", &ms, &pending.to_string()]),
                Change::Put(
                    "orders",
                    with(order.clone(), [("pay_by_ms", number(&ms)), ("due_ms", number(&ms))]),
                ),
            ]),
            vec![format!("I7 g1: order {pending} is pending 121 s after its deadline of {past}")],
        ),
        (
            Change::Put("orders", without(order, ["due_shard"])),
            vec![format!(
                "I7 g1: order {pending} is pending but the index of due work does not have its deadline"
            )],
        ),
    ]
}

/// Records that nobody can read, or that nobody finds.
fn wrong_records(snapshot: &Snapshot, orders: &Numbers) -> Corruptions {
    let Numbers { cancelled, buried, .. } = orders;
    let at =
        |order: &OrderNumber| format!("item {}/order#{order} of table orders", order.gene().get());
    vec![
        (
            Change::Put("orders", with(snapshot.order(*buried), [("state", text("lost"))])),
            vec![format!("records g1: {} has state lost", at(buried))],
        ),
        (
            Change::Put("orders", without(snapshot.order(*cancelled), ["by_user"])),
            vec![format!("records g1: {} is not among its buyer's orders", at(cancelled))],
        ),
        (
            Change::Put("orders", with(snapshot.order(*buried), [("sale", text("nowhere"))])),
            vec![format!(
                "records nowhere: {} is of sale nowhere, which is not in the catalogue",
                at(buried)
            )],
        ),
        (
            Change::Delete("sales", snapshot.item("sales", Some("#sales"), "g1")),
            named(["records g1: item g1/sale of table sales is not in the list of sales"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "@zoe", "many"]),
            named(["records g1: entry \"zoe\" of Redis key {g1}:sale is \"many\""]),
        ),
        (
            redis(["HSET", "{g1}:sale", "7", "nonsense"]),
            named(["records g1: entry \"7\" of Redis key {g1}:sale is \"nonsense\""]),
        ),
    ]
}

#[tokio::test]
async fn a_cluster_is_audited_from_any_of_its_nodes() {
    let cluster = RedisCluster::start(Flavour::Auto).await.unwrap();
    let topology = Topology::Cluster(cluster.urls());
    let fixture = Fixture::on(&cluster.urls()[1], &topology).await;
    fixture.live().await;
    for redis in cluster.urls() {
        let target = Target { redis: RedisTarget::Address(redis), ..fixture.target.clone() };
        let report = audit::run(&target, &Options::at(LATER)).await.unwrap();
        assert!(report.clean, "{report}");
    }
}

#[tokio::test]
async fn one_sale_is_audited_without_the_others() {
    let fixture = Fixture::start().await;
    fixture.live().await;
    let audit = async |sale: &str| {
        let options = Options { sale: Some(id(sale)), ..Options::at(LATER) };
        audit::run(&fixture.target, &options).await
    };
    fixture.apply(&redis(["SETBIT", "{show}:taken:floor:0", "2", "1"])).await;
    assert!(audit("g1").await.unwrap().clean);
    let report = audit("show").await.unwrap();
    assert_eq!(report.broken(), [Rule::I4].into());
    assert_eq!(report.sales, [id::<SaleId>("show")]);
    assert!(matches!(audit("none").await, Err(AuditError::NoSuchSale(_))));

    // What the reconciler repairs is what the audit had found.
    reconcile(&fixture.engine, &epoch(), LATER).await.unwrap();
    assert!(audit("show").await.unwrap().clean);
}

#[tokio::test]
async fn a_ledger_is_held_against_the_stores() {
    let fixture = Fixture::start().await;
    let Numbers { paid, late, rescued, other, unknown, .. } = fixture.live().await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let line = |order: OrderNumber, payment: &str, amount_minor: i64| {
        json!({"event": "captured", "order": order, "provider": "stripe", "payment": payment,
               "amount_minor": amount_minor, "currency": "EUR"})
    };
    for order in [paid, late, rescued, other] {
        writeln!(file, "{}", json!({"event": "acknowledged", "order": order})).unwrap();
    }
    for line in [line(paid, "pi_1", 100), line(paid, "pi_again", 100), line(other, "pi_other", 70)]
    {
        writeln!(file, "{line}").unwrap();
    }
    let audit = async |sale: Option<&str>, file: &tempfile::NamedTempFile| {
        let ledger = Some(LedgerFacts::read(file.path()).unwrap());
        let options = Options { ledger, sale: sale.map(id), ..Options::at(LATER) };
        let report = audit::run(&fixture.target, &options).await.unwrap();
        report.violations().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(audit(None, &file).await, [""; 0]);
    assert_eq!(audit(Some("show"), &file).await, [""; 0]);

    writeln!(file, "{}", json!({"event": "acknowledged", "order": unknown})).unwrap();
    writeln!(file, "{}", line(paid, "pi_lost", 100)).unwrap();
    writeln!(file, "{}", line(rescued, "pi_rescue", 51)).unwrap();
    assert_eq!(
        audit(None, &file).await,
        [
            format!(
                "I5 g1: payment stripe pi_lost for order {paid} of 100 EUR was captured but is not known"
            ),
            format!(
                "I5 g1: payment stripe pi_rescue for order {rescued} of 51 EUR was captured but 50 EUR is recorded"
            ),
            format!("ledger order {unknown} was acknowledged but does not exist"),
        ]
    );
}

#[tokio::test]
async fn stores_that_cannot_be_read_are_an_error() {
    let fixture = Fixture::start().await;
    fixture.live().await;
    let nowhere = Target {
        redis: RedisTarget::Address("redis://127.0.0.1:1".to_owned()),
        ..fixture.target.clone()
    };
    let options = Options::at(LATER);
    assert!(matches!(audit::run(&nowhere, &options).await, Err(AuditError::Redis(_))));
    let empty = Target { tables: Tables::with_prefix("none-"), ..fixture.target.clone() };
    assert!(matches!(audit::run(&empty, &options).await, Err(AuditError::DynamoDb(_))));
    fixture.apply(&redis(["SET", "{g1}:sale", "a string"])).await;
    assert!(matches!(audit::run(&fixture.target, &options).await, Err(AuditError::Redis(_))));
}
