//! The stores, the engine over them, and what it has made there.

use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::flows::ended::ended;
use engine::domain::admission::gate::{Admit, AdmitReply, Share, shard_of};
use engine::domain::basics::ids::{SeatName, UserId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{Hold, HoldReply};
use engine::domain::ledger::Account;
use engine::domain::ledger::posting::{Posting, PostingKind};
use engine::domain::order::order_refund::{AskedBy, RefundNumber};
use engine::domain::order::requested::{RequestedLine, fingerprint};
use engine::domain::order::{Capture, CheckIn, PaymentOutcome, RefundReason, TicketName};
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::sale::Sale;
use engine::domain::ticket::Serial;
use engine::flows::cancel::cancel;
use engine::flows::check_in::{Outcome, Scan, check_in};
use engine::flows::expire::Expired;
use engine::flows::give_back::give_back;
use engine::flows::pay::pay;
use engine::flows::post::{Posted, post};
use engine::flows::publish::publish;
use engine::flows::reissue::reissue;
use engine::flows::reserve::{Reservation, reserve};
use engine::flows::sync::sync;
use engine::flows::tokens;
use engine::ports::{Catalogue as _, Gate as _, Published, Seats as _};
use local::servers::{DynamoDb, RedisOptions, RedisServer};
use local::stores::sdk_config;
use ops::audit::facts::{Book, BookFact, CaptureFact};
use ops::audit::{self, Options, Report, Target};
use redis::aio::MultiplexedConnection;
use shared::dynamodb::{
    Dynamo, DynamoCatalogue, DynamoCursors, DynamoOrders, DynamoRooms, StoreConfig, Tables,
    create_tables,
};
use shared::providers::Providers;
use shared::redis::{Bounds, Connection, RedisGate, RedisSeats, Topology};

use super::corruption::{Change, Item, Snapshot};
use super::ports::{Engine, Nowhere};
use super::rooms::RoomEngine;
use super::sales::{about, best, payment, requested, seats, show, train};
use super::{LATER, NOW, epoch, id};
use crate::backends::{self, Server};

/// The numbers of the orders in the stores, by their outcome.
pub(super) struct Numbers {
    /// Alice: A1 and A2 on both legs for attendees p and q, paid and counted.
    pub(super) paid: OrderNumber,
    /// Bob: a spot on leg 1.
    pub(super) pending: OrderNumber,
    /// Bob: another spot, cancelled.
    pub(super) cancelled: OrderNumber,
    /// Carol: A3 on leg 0, expired; paid after dora had the seat.
    pub(super) late: OrderNumber,
    /// Dora: A3 on leg 0, paid and counted.
    pub(super) quick: OrderNumber,
    /// Erin: A3 on leg 1, expired, then paid and counted.
    pub(super) rescued: OrderNumber,
    /// Fay: a hold that never became an order.
    pub(super) tombstone: OrderNumber,
    /// An order that never was, but was paid for.
    pub(super) unknown: OrderNumber,
    /// Alice, in the other sale: a spot, paid and counted.
    pub(super) other: OrderNumber,
    /// Hal, in the other sale: two spots, paid, one of them refunded, and counted.
    pub(super) returned: OrderNumber,
}

pub(super) struct Fixture {
    pub(super) engine: Engine,
    pub(super) rooms: RoomEngine,
    pub(super) mint: Mint,
    /// Hal's order, of which a ticket is given back.
    pub(super) returned: OnceLock<OrderNumber>,
    pub(super) target: Target,
    pub(super) dynamodb: aws_sdk_dynamodb::Client,
    pub(super) redis: MultiplexedConnection,
    pub(super) _redis: Option<RedisServer>,
    pub(super) _dynamodb: Server<DynamoDb>,
}

/// A client that waits for as long as a busy machine takes: what a test plants is not a request that somebody waits for.
fn patient(client: &aws_sdk_dynamodb::Client) -> aws_sdk_dynamodb::Client {
    let config = client.config().to_builder().timeout_config(TimeoutConfig::disabled());
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

impl Fixture {
    pub(super) async fn start() -> Self {
        let redis = RedisServer::start(RedisOptions::default()).await.unwrap();
        let url = redis.url();
        let fixture = Self::on(&url, &Topology::Single(url.clone())).await;
        Self { _redis: Some(redis), ..fixture }
    }

    /// A fixture whose engine finds Redis by its topology, and whose auditor finds it by one address.
    pub(super) async fn on(url: &str, topology: &Topology) -> Self {
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
                cursors: DynamoCursors::new(db.clone()),
            },
            rooms: RoomEngine(DynamoRooms::new(db.clone())),
            mint: Mint::new(7),
            returned: OnceLock::new(),
            target: Target::at(url, &dynamodb.url, &prefix),
            dynamodb: patient(db.client()),
            redis: backends::redis(url).await,
            _redis: None,
            _dynamodb: dynamodb,
        }
    }

    pub(super) fn table(&self, name: &str) -> String {
        let tables = &self.target.tables;
        let Tables { orders, seats, sales, rooms, log, accounts } = tables;
        let names = [orders, seats, sales, rooms, log, accounts];
        names.into_iter().find(|table| table.ends_with(name)).unwrap().clone()
    }

    pub(super) async fn reserve(
        &self,
        published: &Published,
        user: &str,
        line: RequestedLine,
        now: Timestamp,
    ) -> OrderNumber {
        let user = UserId::new(user).unwrap();
        let sale = &published.sale;
        let admit = Admit {
            sale: sale.id().clone(),
            shard: shard_of(&user, sale.file().gate.shards),
            user: user.clone(),
            tickets: u16::try_from(line.line.choice.count()).unwrap(),
            now,
            user_lock_ms: 0,
            rate_per_second: u32::MAX,
            first: Share { budget: 1000, left: 1000 },
            top_up: None,
        };
        assert_eq!(self.engine.gate.admit(&admit).await, Ok(AdmitReply::Admitted));
        let number = self.mint.mint(now, &user);
        let published = published.clone();
        let reservation =
            Reservation { published, number, user, lines: vec![line], exchange: None };
        reserve(&self.engine, &reservation, now).await.unwrap().order.number
    }

    pub(super) async fn pay(
        &self,
        sale: &Sale,
        order: OrderNumber,
        name: &str,
        amount: i64,
    ) -> PaymentOutcome {
        let capture = Capture {
            key: payment(name),
            order,
            amount: sale.money(MinorUnits(amount)),
            attempt: None,
        };
        pay(&self.engine, &capture, LATER).await.unwrap().outcome
    }

    pub(super) async fn ended(&self, sale: &Sale, order: OrderNumber) {
        let expired =
            ended(&self.engine, &sale.inventories()[0], order, NOW.plus_seconds(600)).await;
        assert_eq!(expired, Ok(Expired::Ended));
    }

    /// What the provider pays out to the bank.
    async fn pay_out(&self, key: &str, amount: i64) {
        let amount =
            Money { amount_minor: MinorUnits(amount), currency: Currency::new("EUR").unwrap() };
        let provider = Account::Provider(id("stripe"));
        let transfer = PostingKind::Payout.transfer(provider, amount).unwrap();
        let posting = Posting { key: id(key), transfer, at: NOW };
        let posted = post(&self.engine.orders.ledger(), &posting, async |_| ()).await;
        assert_eq!(posted, Ok(Posted::Made));
    }

    /// Lets everything happen that can happen to an order, through the engine's own flows.
    pub(super) async fn live(&self) -> Numbers {
        let (train, show) = (train(), show());
        self.engine.catalogue.keep_attachment(&about()).await.unwrap();
        let g1 = publish(&self.engine, &train, &epoch(), NOW).await.unwrap();
        let other = publish(&self.engine, &show, &epoch(), NOW).await.unwrap();
        for sale in [&train, &show] {
            let (by_hand, earlier) = (id("opening"), NOW.plus_seconds(-10));
            let added = tokens::add(&self.engine, sale.id(), &by_hand, 40, earlier).await;
            assert_eq!(added, Ok(tokens::Added::Now));
        }

        let mut line = requested("a", (0, 2), seats(&[0, 1]), 50);
        line.attendees = ["p", "q"].map(model_stores::attendee).to_vec();
        let paid = self.reserve(&g1, "alice", line, NOW).await;
        assert_eq!(self.pay(&train, paid, "pi_1", 100).await, PaymentOutcome::Accepted);
        let second = PaymentOutcome::Refund(RefundReason::SecondPayment);
        assert_eq!(self.pay(&train, paid, "pi_again", 100).await, second);

        let late = self.reserve(&g1, "carol", requested("a", (0, 1), best(1), 50), NOW).await;
        self.ended(&train, late).await;
        let quick = self.reserve(&g1, "dora", requested("a", (0, 1), seats(&[2]), 50), NOW).await;
        assert_eq!(self.pay(&train, quick, "pi_quick", 50).await, PaymentOutcome::Accepted);
        let too_late = PaymentOutcome::Refund(RefundReason::TooLate);
        assert_eq!(self.pay(&train, late, "pi_late", 50).await, too_late);

        let rescued = self.reserve(&g1, "erin", requested("a", (1, 2), seats(&[2]), 50), NOW).await;
        self.ended(&train, rescued).await;
        assert_eq!(self.pay(&train, rescued, "pi_rescue", 50).await, PaymentOutcome::Accepted);

        let tombstone = self.hold_only(&train, "fay").await;
        self.ended(&train, tombstone).await;
        let unknown = self.mint.mint(NOW, &id("gil"));
        let nobodys = PaymentOutcome::Refund(RefundReason::UnknownOrder);
        assert_eq!(self.pay(&train, unknown, "pi_unknown", 50).await, nobodys);

        self.pay_out("po_1", 60).await;

        let spot = || requested("ga", (1, 2), best(1), 20);
        let cancelled = self.reserve(&g1, "bob", spot(), LATER).await;
        cancel(&self.engine, &id("bob"), cancelled, LATER).await.unwrap();
        let pending = self.reserve(&g1, "bob", spot(), LATER).await;

        let line = requested("floor", (0, 1), best(1), 70);
        let shown = other;
        let other = self.reserve(&shown, "alice", line, NOW).await;
        assert_eq!(self.pay(&show, other, "pi_other", 70).await, PaymentOutcome::Accepted);
        let returned = self.returned(&shown).await;
        let synced = sync(&self.engine, &[paid, quick, rescued, other, returned], NOW).await;
        assert_eq!(synced, Ok(5));
        self.visit_the_hall().await;
        let bought = tokens::Bought { sale: train.id().clone(), shards: 4, tickets: 5 };
        let kept = tokens::keep(&self.engine, &[bought], NOW, std::future::pending()).await;
        assert_eq!(kept, 1);
        Numbers {
            paid,
            pending,
            cancelled,
            late,
            quick,
            rescued,
            tombstone,
            unknown,
            other,
            returned,
        }
    }

    /// Hal buys two spots of the show, and an operator refunds the second.
    async fn returned(&self, show: &Published) -> OrderNumber {
        let order = self.reserve(show, "hal", requested("floor", (0, 1), best(2), 70), NOW).await;
        assert_eq!(self.pay(&show.sale, order, "pi_hal", 140).await, PaymentOutcome::Accepted);
        let ticket = TicketName { tier: id("floor"), seat: SeatName::new("floor-3").unwrap() };
        let request = RefundRequest {
            number: RefundNumber::FIRST,
            tickets: RefundedTickets::Named(vec![ticket]),
            amount: None,
            asked_by: AskedBy::Operator,
            reason: None,
        };
        let made = give_back(&self.engine, None, order, &request, LATER).await.unwrap();
        let _first = self.returned.set(order);
        assert_eq!(made.refund.amount, show.sale.money(MinorUnits(70)));
        // The other one gets a new code, by which two doors let somebody in.
        let order_now = reissue(&self.engine, order, &[]).await.unwrap();
        let ticket = order_now.numbered().next().unwrap();
        let serial = Serial { order, ticket: ticket.number, issue: ticket.ticket.issue };
        let scan = |door: &str, seconds: i64| Scan {
            serial,
            check_in: CheckIn { at: LATER.plus_seconds(seconds), door: id(door) },
        };
        let scans = [scan("north", 0), scan("south", 5)];
        let admitted = check_in(&self.engine, show.sale.id(), &scans).await.unwrap();
        let first = scans[0].check_in.clone();
        assert_eq!(admitted, [Outcome::Admitted, Outcome::AlreadyAdmitted(first)]);
        order
    }

    pub(super) async fn hold_only(&self, sale: &Sale, user: &str) -> OrderNumber {
        let user = UserId::new(user).unwrap();
        let order = self.mint.mint(NOW, &user);
        let lines = [requested("ga", (0, 1), best(2), 20)];
        let hold = Hold {
            inventory: sale.inventories()[0].clone(),
            epoch: epoch(),
            order,
            user,
            fingerprint: fingerprint(&lines, None),
            now: NOW,
            deadline: NOW.plus_seconds(600),
            replaced: Tickets::NONE,
            lines: lines.map(|requested| requested.line).into(),
        };
        assert!(matches!(self.engine.seats.hold(&hold).await, Ok(HoldReply::Held { .. })));
        order
    }

    pub(super) async fn audit(&self) -> Report {
        // What the provider has of this deployment, of another, and of a shop on the same account: of Hal's payment, whose
        // refund was asked for, it has sent nothing yet.
        let captured = |order: &str, payment: &str, deployment: Option<&str>| BookFact {
            capture: CaptureFact {
                key: engine::domain::order::PaymentKey {
                    provider: id("stripe"),
                    payment: id(payment),
                },
                order: id(order),
                amount: Money {
                    amount_minor: MinorUnits(50),
                    currency: Currency::new("EUR").unwrap(),
                },
            },
            deployment: deployment.map(str::to_owned),
            back_minor: None,
            pending_minor: MinorUnits::ZERO,
        };
        let hal = self.returned.get().map(|order| {
            let mut entry = captured(&order.to_string(), "pi_hal", Some("prod1"));
            entry.capture.amount.amount_minor = MinorUnits(140);
            BookFact { back_minor: Some(MinorUnits::ZERO), ..entry }
        });
        let others =
            [captured("1024", "pi_stage", Some("stage")), captured("48151", "pi_shop", None)];
        let book =
            Book { own: Some(id("prod1")), captured: others.into_iter().chain(hal).collect() };
        let options = Options { book, ..Options::at(LATER) };
        audit::run(&self.target, &options).await.unwrap()
    }

    pub(super) async fn violations(&self) -> Vec<String> {
        self.audit().await.violations().map(ToString::to_string).collect()
    }

    pub(super) async fn snapshot(&self) -> Snapshot {
        let mut connection = self.redis.clone();
        let keys: Vec<Vec<u8>> =
            redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        let mut dumps = Vec::new();
        for key in keys {
            let dump = redis::cmd("DUMP").arg(&key).query_async(&mut connection).await.unwrap();
            dumps.push((key, dump));
        }
        let mut tables = BTreeMap::new();
        for table in ["orders", "seats", "sales", "rooms", "log", "accounts"] {
            tables.insert(table, self.items(table).await);
        }
        Snapshot { redis: dumps, tables }
    }

    pub(super) async fn items(&self, table: &str) -> Vec<Item> {
        let scan = self.dynamodb.scan().table_name(self.table(table));
        let items = scan.consistent_read(true).into_paginator().items().send();
        items.try_collect().await.unwrap()
    }

    /// Puts both stores back to what they were.
    pub(super) async fn restore(&self, snapshot: &Snapshot) {
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

    pub(super) async fn apply(&self, change: &Change) {
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
                let names = match *table {
                    "orders" => ["gene", "sk"],
                    "log" => ["shard", "position"],
                    "accounts" => ["account", "part"],
                    _ => ["pk", "sk"],
                };
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
