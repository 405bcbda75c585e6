//! The orders and the catalogue against a fake DynamoDB, and against one that misbehaves.

mod catalogue;
mod claims;
mod codes;
mod cold;
mod conflicts;
mod endings;
mod faults;
mod postings;
mod reading;
mod room_board;
mod rooms;
mod statistics;
mod subscriptions;

use std::collections::BTreeSet;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use chaos::proxy::http::{Act, HttpProxy, Request};
use engine::domain::basics::ids::{
    Leg, Legs, PaymentId, ProviderId, RequestFingerprint, SaleId, Seat, SeatName, TierId, UserId,
};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::Mint;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::SeatLeg;
use engine::domain::order::attempt::Attempts;
use engine::domain::order::fact::Cause;
use engine::domain::order::{
    Capture, Issue, Order, OrderEvent, OrderLine, OrderState, PaymentKey, PaymentOutcome,
    PaymentRecord, Ticket,
};
use engine::ports::{Claim, CreateReply, DUE_SHARDS, Due, Orders, SettleReply, Settlement};
use local::servers::DynamoDb;
use local::stores::sdk_config;
use shared::dynamodb::{Dynamo, DynamoOrders, StoreConfig, Tables, create_tables, tables};

use crate::backends::{self, Server};

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

const LIMIT: Tickets = Tickets::new(6);

struct Fixture {
    server: Server<DynamoDb>,
    db: Dynamo,
    orders: DynamoOrders,
    mint: Mint,
}

/// A configuration with long deadlines, for machines that are busy with other tests.
fn config(endpoint: String, tables: Tables) -> StoreConfig {
    StoreConfig {
        endpoint: Some(endpoint),
        backoff: Duration::from_millis(2),
        attempt_timeout: Duration::from_secs(20),
        call_timeout: Duration::from_secs(20),
        // What is remembered is not forgotten because a server is slow.
        cache_for: Duration::from_secs(3600),
        ..StoreConfig::new(tables)
    }
}

impl Fixture {
    async fn new() -> Self {
        let server = backends::dynamodb();
        let tables = Tables::with_prefix(&backends::prefix());
        let db = Dynamo::new(&sdk_config(), config(server.url.clone(), tables));
        create_tables(db.client(), &db.config().tables).await.unwrap();
        // Twice, as at every start of the local stack.
        create_tables(db.client(), &db.config().tables).await.unwrap();
        Self { server, orders: DynamoOrders::new(db.clone()), db, mint: Mint::new(5) }
    }

    /// Orders that reach the same database through a proxy.
    async fn behind(
        &self,
        decide: impl Fn(&Request, usize) -> Act + Send + Sync + 'static,
    ) -> (HttpProxy, DynamoOrders) {
        let proxy = HttpProxy::start(&self.server.url, decide).await.unwrap();
        let orders = DynamoOrders::new(self.db_at(proxy.url(), 4));
        (proxy, orders)
    }

    /// The same tables behind another endpoint.
    fn db_at(&self, endpoint: String, attempts: u32) -> Dynamo {
        let tables = self.db.config().tables.clone();
        Dynamo::new(&sdk_config(), StoreConfig { attempts, ..config(endpoint, tables) })
    }

    fn order(&self, user: &str, lines: Vec<OrderLine>) -> Order {
        let user = UserId::new(user).unwrap();
        let amount_minor = lines.iter().map(|line| MinorUnits(500) * line.count()).sum();
        Order {
            number: self.mint.mint(NOW, &user),
            sale: sale(),
            user,
            state: OrderState::Pending,
            lines,
            total: Money { amount_minor, currency: Currency::new("EUR").unwrap() },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: NOW.plus_seconds(900),
            changed_at: NOW,
            payment: None,
            attempts: Attempts::default(),
            facts: engine::domain::order::fact::Facts::made(NOW),
            refunds: engine::domain::order::order_refund::RefundCounts::default(),
            merchant: engine::domain::sale::MerchantTerms::house(),
            exchange: None,
        }
    }

    async fn create(&self, order: &Order) {
        assert_eq!(self.orders.create(order, LIMIT).await, Ok(CreateReply::Created));
    }

    async fn claims(&self) -> Vec<Claim> {
        self.orders.claims(&sale(), &tier("a"), 0).await.unwrap()
    }

    async fn tickets_of(&self, user: &str) -> String {
        let user = UserId::new(user).unwrap();
        let gene = engine::domain::basics::number::Gene::from_text(user.as_str()).get();
        let count = self
            .db
            .client()
            .get_item()
            .table_name(&self.db.config().tables.orders)
            .key("gene", AttributeValue::N(gene.to_string()))
            .key("sk", AttributeValue::S(tables::buyer_key(&sale(), &user)))
            .consistent_read(true);
        let item = count.send().await.unwrap().item.unwrap_or_default();
        item.get("tickets").map_or_else(|| "none".to_owned(), |n| n.as_n().unwrap().clone())
    }

    async fn due(&self, now: Timestamp) -> BTreeSet<Due> {
        let mut all = BTreeSet::new();
        for shard in 0..DUE_SHARDS {
            all.extend(self.orders.due(shard, now, 100).await.unwrap());
        }
        all
    }

    async fn pay(&self, order: &Order) -> (Order, PaymentRecord) {
        let id = format!("pi-{}", order.number);
        let paid = after(order, OrderEvent::Pay, Some(&id));
        let payment = record(order, &id, PaymentOutcome::Accepted);
        let reply = self.orders.settle(&payment, &Settlement::Pay(paid.clone()), LIMIT).await;
        assert_eq!(reply, Ok(SettleReply::Settled));
        (paid, payment)
    }
}

fn sale() -> SaleId {
    SaleId::new("show").unwrap()
}

fn tier(id: &str) -> TierId {
    TierId::new(id).unwrap()
}

fn line(in_tier: &str, legs: (u16, u16), seats: &[u32]) -> OrderLine {
    let ticket = |seat: &u32| Ticket {
        seat: Seat(*seat),
        name: SeatName::new(format!("s{seat}")).unwrap(),
        attendee: None,
        refund: None,
        issue: Issue::FIRST,
        checked_in: None,
    };
    OrderLine {
        tier: tier(in_tier),
        legs: Legs::new(legs.0, legs.1).unwrap(),
        price_minor: MinorUnits(500),
        terms: None,
        exchange: None,
        tickets: seats.iter().map(ticket).collect(),
    }
}

fn seats(seats: &[u32]) -> Vec<OrderLine> {
    vec![line("a", (0, 1), seats)]
}

fn key(id: &str) -> PaymentKey {
    PaymentKey { provider: ProviderId::new("test").unwrap(), payment: PaymentId::new(id).unwrap() }
}

fn after(order: &Order, event: OrderEvent, payment: Option<&str>) -> Order {
    let captured = |payment| {
        let (key, order, amount) = (key(payment), order.number, order.total);
        Cause::capture(&Capture { key, order, amount, attempt: None }, None)
    };
    let cause = payment.map_or(Cause::BUYER, captured);
    let after = order.after(event, cause, NOW.plus_seconds(5)).unwrap();
    Order { payment: payment.map(key).or(after.payment.clone()), ..after }
}

fn record(order: &Order, id: &str, outcome: PaymentOutcome) -> PaymentRecord {
    let capture = Capture { key: key(id), order: order.number, amount: order.total, attempt: None };
    PaymentRecord::decided(&capture, outcome, NOW.plus_seconds(5))
}

fn seat_leg(seat: u32, leg: u16) -> SeatLeg {
    SeatLeg { tier: tier("a"), leg: Leg(leg), seat: Seat(seat) }
}
