//! A sale on real servers, without the processes around them: time is an argument here.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::ids::{Epoch, InventoryId, Legs, SaleId, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::OrderState;
use engine::domain::order::order_refund::{AskedBy, RefundNumber};
use engine::domain::order::requested::RequestedLine;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::refund::{RefundRequest, RefundedTickets};
use engine::domain::sale::Sale;
use engine::flows::publish::publish;
use engine::flows::reserve::Reservation;
use engine::ports::{Catalogue, Claim, Freshness, Orders, Ports, SEATS_PER_BLOCK};
use local::servers::{FakeBeacon, PaymentProvider, Stack};
use local::up;
use redis::aio::MultiplexedConnection;
use serde_json::json;
use shared::dynamodb::Dynamo;
use shared::redis::Topology;
use shared::runtime::app::{App, LivePorts};
use shared::runtime::callbacks::CallbackEntry;
use shared::runtime::config::{
    AdmissionConfig, AttendeeConfig, BusConfig, ChallengeConfig, Config, DynamoDbConfig,
    MetricsConfig, OperatorsConfig, PaymentConfig, ProvidersConfig, RedisConfig, SalesConfig,
    SiteConfig, SqsConfig, WebhooksConfig,
};
use shared::runtime::edge::EdgeSecrets;
use shared::tickets::TicketSecrets;

use crate::backends::{self, Servers};

/// The time of the tests.
pub const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);
/// The payment window of the sale, in seconds.
pub const PAY_WINDOW_SECONDS: i64 = 60;
const SEATS: u32 = 640;

/// What an operator asks for first: all tickets of an order, and their money.
pub fn whole() -> RefundRequest {
    RefundRequest {
        number: RefundNumber::FIRST,
        tickets: RefundedTickets::All,
        amount: None,
        asked_by: AskedBy::Operator,
        reason: None,
    }
}

/// The engine's ports on real servers.
pub struct Fixture {
    stack: Stack,
    pub ports: LivePorts,
    pub provider: PaymentProvider,
    pub beacon: FakeBeacon,
    /// The servers that the ports were built from.
    pub config: Config,
    pub dynamo: Dynamo,
    mint: Mint,
}

/// The inventory of the sale.
pub fn inventory() -> InventoryId {
    InventoryId::whole(sale_id())
}

pub fn sale_id() -> SaleId {
    SaleId::new("crash").unwrap()
}

fn tier_id() -> TierId {
    TierId::new("hall").unwrap()
}

fn sale() -> Sale {
    let file = json!({
        "sale": sale_id(), "title": "Crash", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": PAY_WINDOW_SECONDS,
        "stops": [{"stop": "A", "name": "a"}, {"stop": "B", "name": "b"}, {"stop": "C", "name": "c"}],
        "tiers": [{ "tier": tier_id(), "name": "Hall", "price_minor": 500,
            "general_admission": SEATS }]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

impl Fixture {
    /// Starts the servers and publishes the sale. An unpaid order ends at its deadline.
    pub async fn start() -> Self {
        Self::with_grace(Grace::NONE).await
    }

    /// [`Fixture::start`], with a grace.
    pub async fn with_grace(grace: Grace) -> Self {
        let Servers { stack, provider, beacon, endpoints, queues, sqs: _, dynamo } =
            Box::pin(backends::servers()).await;
        let config = Config {
            redis: RedisConfig { topology: Topology::Single(endpoints.redis), kind: None },
            sales: SalesConfig::default(),
            dynamodb: DynamoDbConfig {
                tables: dynamo.config().tables.clone(),
                endpoint: Some(endpoints.dynamodb),
            },
            sqs: SqsConfig { urls: queues.urls(), endpoint: Some(endpoints.sqs) },
            admission: AdmissionConfig::default(),
            attendees: AttendeeConfig::default(),
            challenges: ChallengeConfig::default(),
            payments: PaymentConfig { secrets: vec![], tolerance_seconds: 0 },
            callbacks: CallbackEntry::default(),
            edge: EdgeSecrets::default(),
            tickets: TicketSecrets::default(),
            webhooks: WebhooksConfig::default(),
            bus: BusConfig::default(),
            providers: ProvidersConfig { grace, ..backends::providers(&provider) },
            beacon: up::beacon_config(&beacon.url()),
            operators: OperatorsConfig::default(),
            metrics: MetricsConfig::Off,
            site: SiteConfig::default(),
            ca_file: None,
        };
        let ports = Box::pin(App::from_config(&config)).await.unwrap().ports;
        Box::pin(publish(&ports, &sale(), &epoch("first"), NOW)).await.unwrap();
        Self { stack, ports, provider, beacon, config, dynamo, mint: Mint::new(7) }
    }

    /// A reservation of two places over both legs for a buyer who has not been here yet.
    pub async fn reservation(&self, user: &str) -> Reservation {
        self.reservation_of(user, 2).await
    }

    /// A reservation of `count` places over both legs.
    pub async fn reservation_of(&self, user: &str, count: u16) -> Reservation {
        let user = UserId::new(user).unwrap();
        let published =
            self.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await.unwrap().unwrap();
        let choice = Choice::Best { count, together: Together::Required };
        let line = Line { tier: tier_id(), legs: Legs::new(0, 2).unwrap(), choice };
        let requested = RequestedLine { line, price_minor: MinorUnits(500), attendees: vec![] };
        let number: OrderNumber = self.mint.mint(NOW, &user);
        Reservation { published, number, user, lines: vec![requested], exchange: None }
    }

    /// A connection to Redis, to do what no engine does.
    pub async fn redis(&self) -> MultiplexedConnection {
        self.stack.redis().unwrap().connect().await.unwrap()
    }

    /// Everything that Redis knows.
    pub async fn remember(&self) -> BTreeMap<String, Vec<u8>> {
        let mut redis = self.redis().await;
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut redis).await.unwrap();
        let mut memory = BTreeMap::new();
        for key in keys {
            let value = redis::cmd("DUMP").arg(&key).query_async(&mut redis).await.unwrap();
            memory.insert(key, value);
        }
        memory
    }

    /// Everything that DynamoDB knows of sales and orders, by table and key; not the turns of calls to providers,
    /// which asking takes, too.
    pub async fn items(&self) -> BTreeMap<String, HashMap<String, AttributeValue>> {
        let tables = &self.dynamo.config().tables;
        let mut items = BTreeMap::new();
        for table in [&tables.orders, &tables.seats, &tables.sales] {
            let scan = self.dynamo.client().scan().table_name(table).into_paginator().items();
            let of_table: Vec<_> = scan.send().collect::<Result<_, _>>().await.unwrap();
            let is_of_provider = |item: &HashMap<String, AttributeValue>| {
                let partition = item.get("pk").and_then(|partition| partition.as_s().ok());
                partition.is_some_and(|partition| partition.starts_with("#provider#"))
            };
            for item in of_table.into_iter().filter(|item| !is_of_provider(item)) {
                let partition = item.get("gene").or_else(|| item.get("pk"));
                let key = format!("{table} {partition:?} {:?}", item.get("sk"));
                assert_eq!(items.insert(key, item), None, "a key is duplicated");
            }
        }
        items
    }

    /// Redis forgets everything since: what a failover to a late replica does.
    pub async fn forget_since(&self, memory: &BTreeMap<String, Vec<u8>>) {
        self.lose_everything().await;
        let mut redis = self.redis().await;
        for (key, value) in memory {
            let mut restore = redis::cmd("RESTORE");
            let () = restore.arg(key).arg(0).arg(value).query_async(&mut redis).await.unwrap();
        }
    }

    pub async fn lose_everything(&self) {
        let mut redis = self.redis().await;
        let () = redis::cmd("FLUSHALL").query_async(&mut redis).await.unwrap();
    }

    /// Every claim there is.
    async fn claims(&self) -> Vec<Claim> {
        let mut claims = Vec::new();
        let sale = sale();
        let layout = &sale.tiers()[0].layout;
        for block in 0..(layout.initial().len() as u32 * 8).div_ceil(SEATS_PER_BLOCK) {
            let of_block = self.ports.orders().claims(&sale_id(), &tier_id(), block).await;
            claims.extend(of_block.unwrap());
        }
        claims
    }

    /// Claims and live orders correspond one to one, and no seat-leg is claimed twice.
    pub async fn must_be_consistent(&self) {
        let claims = self.claims().await;
        let mut owners: BTreeMap<OrderNumber, usize> = BTreeMap::new();
        for claim in &claims {
            *owners.entry(claim.order).or_default() += 1;
        }
        for (number, claimed) in owners {
            let order =
                self.ports.orders().get(number).await.unwrap().expect("a claim has its order");
            assert!(order.state.is_live(), "order {number} is {:?} and owns seats", order.state);
            let seat_legs: usize =
                order.held_lines().iter().map(|line| line.seat_legs().count()).sum();
            assert_eq!(claimed, seat_legs, "order {number}");
        }
    }

    /// The state of an order.
    pub async fn state(&self, number: OrderNumber) -> Option<OrderState> {
        self.ports.orders().get(number).await.unwrap().map(|order| order.state)
    }
}

/// The name of a load.
pub fn epoch(name: &str) -> Epoch {
    Epoch::new(name).unwrap()
}
