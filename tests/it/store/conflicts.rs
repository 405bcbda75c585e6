//! How often transactions stand in each other's way on a busy train.
//!
//! The transactions are those that the adapter sends. What the emulator refuses them for, the time for
//! which a transaction is at work on its items, is measured with the emulator's own meter on a virtual
//! clock: a machine that is busy with other tests does not carry out a hundred orders a second.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chaos::proxy::http::{Act, HttpProxy, Request};
use engine::domain::basics::ids::{Epoch, InventoryId, Legs, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{Freed, Hold, HoldReply, Inventory, Line, Load, Terms, TierGrid};
use engine::domain::order::{Order, OrderEvent, PaymentOutcome};
use engine::domain::sale::SaleState;
use engine::ports::{
    CreateReply, DUE_SHARDS, MAX_TRANSACTION_ITEMS, Orders as _, SettleReply, Settlement,
    StoreError, due_shard,
};
use fake_limits::dynamodb::Conflicts;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use shared::dynamodb::{DynamoOrders, tables};

use model_stores::size::first_of;

use super::{Fixture, LIMIT, NOW, after, line, record, sale, tier};

/// Orders a second, made and paid.
const RATE: f64 = 100.0;
/// A train of 1,200 seats: rows of A B C, the aisle, D F; then padding.
const ROWS: usize = 240;
const COACH_ROW: u8 = 0b0001_0011;
/// The sizes of the stops of a long line: two capitals, a city half way, and smaller ones. Of all
/// journeys, those between two stops are as many as the product of their sizes says.
const STOPS: [u32; 16] = [10, 1, 2, 4, 1, 2, 3, 1, 7, 1, 2, 1, 3, 2, 4, 10];
const LEGS: u16 = 15;
/// Tickets of an order, each with its share.
const PARTIES: [(u16, u32); 4] = [(1, 50), (2, 30), (3, 12), (4, 8)];
/// Milliseconds between hold and transaction, and between the transaction and its payment.
const REQUEST_MS: (f64, f64) = (2.0, 12.0);
const PAYMENT_MS: (f64, f64) = (300.0, 3_000.0);
/// The longest first pause after a conflict, as the adapter has it.
const BACKOFF_MS: f64 = 20.0;
/// The messages that one batch of `sync-db` has at most, and how long it waits for them.
const BATCH: usize = 100;
const BATCH_MS: f64 = 2_000.0;
/// When `reconcile` counts what no message has counted, how long a transaction of it takes with what
/// comes before, and how many it had at once while it counted orders one by one.
const RECONCILE_MS: f64 = 60_000.0;
const COUNTING_MS: (f64, f64) = (8.0, 16.0);
const TOGETHER: usize = 16;
/// The share of refused transactions that is allowed.
const BAR: f64 = 0.01;

/// Journeys of a kind, each with its share.
type Journeys = Vec<((u16, u16), u32)>;

/// Journeys as a timetable has them.
fn of_the_line() -> Journeys {
    let pairs = (0..STOPS.len()).flat_map(|from| (from + 1..STOPS.len()).map(move |to| (from, to)));
    let stop = |index: usize| u16::try_from(index).unwrap();
    pairs.map(|(from, to)| ((stop(from), stop(to)), STOPS[from] * STOPS[to])).collect()
}

/// Journeys of one to three legs alone.
fn short() -> Journeys {
    let all = of_the_line().into_iter();
    all.filter(|((from, to), _)| to - from <= 3).map(|(legs, _)| (legs, 1)).collect()
}

fn drawn<T: Copy>(rng: &mut StdRng, shares: &[(T, u32)]) -> T {
    let mut at = rng.random_range(0..shares.iter().map(|(_, share)| share).sum());
    for (one, share) in shares {
        if at < *share {
            return *one;
        }
        at -= share;
    }
    unreachable!("shares sum up")
}

/// A train of which nothing is sold.
fn train() -> Inventory {
    let legs = usize::from(LEGS);
    let grid = TierGrid {
        tier: tier("a"),
        row_bytes: 1,
        middles: Vec::new(),
        taken: vec![vec![COACH_ROW; ROWS]; legs],
        sold: vec![vec![0; ROWS]; legs],
        freed: Freed::default(),
    };
    let terms = Terms {
        state: SaleState::Open,
        opens_at: NOW,
        closes_at: NOW.plus_seconds(3600),
        limit: LIMIT,
        leg_count: LEGS,
    };
    let epoch = Epoch::new("e").unwrap();
    let (holds, bought) = (BTreeMap::new(), BTreeMap::new());
    let mut inventory = Inventory::default();
    let tiers = vec![grid];
    let id = InventoryId::whole(sale());
    let load = Load { inventory: id, terms, expected: None, epoch, tiers, holds, bought };
    inventory.load(&load);
    inventory
}

/// Orders with the seats that the chooser gives them, each with the time of its hold in milliseconds,
/// until a journey finds no seats any more ten times in a row.
fn orders(fixture: &Fixture, journeys: &Journeys, rng: &mut StdRng) -> Vec<(f64, Order)> {
    let mut inventory = train();
    let (mut orders, mut at, mut refused) = (Vec::new(), 0.0, 0);
    while refused < 10 {
        at += -rng.random_range(f64::MIN_POSITIVE..1.0).ln() * 1000.0 / RATE;
        let ((from, to), count) = (drawn(rng, journeys), drawn(rng, &PARTIES));
        let user = format!("u{}", orders.len());
        let order = fixture.order(&user, vec![]);
        let choice = Choice::Best { count, together: Together::Preferred };
        let legs = Legs::new(from, to).unwrap();
        let hold = Hold {
            inventory: InventoryId::whole(sale()),
            epoch: Epoch::new("e").unwrap(),
            order: order.number,
            user: UserId::new(user).unwrap(),
            fingerprint: order.fingerprint.clone(),
            now: NOW,
            deadline: order.pay_by,
            replaced: Tickets::NONE,
            lines: vec![Line { tier: tier("a"), legs, choice }],
        };
        let HoldReply::Held { record, .. } = inventory.hold(&hold) else {
            refused += 1;
            continue;
        };
        refused = 0;
        let seats: Vec<u32> = record.lines[0].seats.iter().map(|seat| seat.0).collect();
        orders.push((at, Order { lines: vec![line("a", (from, to), &seats)], ..order }));
    }
    orders
}

/// The items that a transaction writes, by table and key.
fn items(request: &Request) -> Vec<String> {
    let item = |action: &Value| {
        let action = action.as_object().unwrap().values().next().unwrap();
        let key = action.get("Key").or_else(|| action.get("Item")).unwrap();
        let (partition, sort) = match key.get("position") {
            Some(position) => (&key["shard"], position),
            None => (key.get("gene").or_else(|| key.get("pk")).unwrap(), &key["sk"]),
        };
        format!("{} {partition} {sort}", action["TableName"])
    };
    request.body["TransactItems"].as_array().unwrap().iter().map(item).collect()
}

/// The adapter in front of a database to which every transaction is welcome, and what it sends.
struct Recorder {
    orders: DynamoOrders,
    sent: Arc<Mutex<Vec<Vec<String>>>>,
    _proxy: HttpProxy,
}

impl Recorder {
    async fn start(fixture: &Fixture) -> Self {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&sent);
        let last = AtomicU64::new(0);
        let (proxy, orders) = fixture
            .behind(move |request, _| {
                if request.operation == "Query" {
                    // The end of the log, which each transaction moves.
                    let last = last.fetch_add(1, Ordering::Relaxed);
                    let position = json!({ "position": { "N": last.to_string() } });
                    return Act::Answer(200, json!({ "Items": [position], "Count": 1 }));
                }
                assert_eq!(request.operation, "TransactWriteItems");
                log.lock().unwrap().push(items(request));
                Act::Answer(200, json!({}))
            })
            .await;
        Self { orders, sent, _proxy: proxy }
    }

    /// The transactions since the last call.
    fn take(&self) -> Vec<Vec<String>> {
        std::mem::take(&mut *self.sent.lock().unwrap())
    }
}

/// A transaction that is due.
#[derive(Debug, Clone)]
struct Due {
    at_ms: f64,
    kind: &'static str,
    items: Vec<String>,
}

/// What is sent for the orders of a sale, and what counting them would be as it was: each transaction
/// also marked its orders' seats as sold, and `reconcile` counted orders one by one.
struct Sent<'a> {
    recorder: &'a Recorder,
    rng: &'a mut StdRng,
    /// The transactions that make orders and pay them.
    selling: Vec<Due>,
    /// The orders, paid, by the time of their payment.
    paid: Vec<(f64, Order)>,
    seats_of: BTreeMap<OrderNumber, Vec<String>>,
}

impl<'a> Sent<'a> {
    async fn new(
        recorder: &'a Recorder,
        orders: &[(f64, Order)],
        rng: &'a mut StdRng,
    ) -> Result<Sent<'a>, StoreError> {
        let (selling, paid, seats_of) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut sent = Self { recorder, rng, selling, paid, seats_of };
        for (at, order) in orders {
            let made_ms = at + sent.between(REQUEST_MS);
            assert_eq!(recorder.orders.create(order, LIMIT).await?, CreateReply::Created);
            let items = recorder.take().concat();
            let is_seat = |item: &&String| item.contains("seats");
            sent.seats_of.insert(order.number, items.iter().filter(is_seat).cloned().collect());
            sent.selling.push(Due { at_ms: made_ms, kind: "create", items });
            let id = format!("pi-{}", order.number);
            let after = after(order, OrderEvent::Pay, Some(&id));
            let payment = record(order, &id, PaymentOutcome::Accepted);
            let settled = Settlement::Pay(after.clone());
            let reply = recorder.orders.settle(&payment, &settled, LIMIT).await?;
            assert_eq!(reply, SettleReply::Settled);
            let at_ms = made_ms + sent.between(PAYMENT_MS);
            sent.selling.push(Due { at_ms, kind: "pay", items: recorder.take().concat() });
            sent.paid.push((at_ms, after));
        }
        sent.paid.sort_by(|one, other| one.0.total_cmp(&other.0));
        Ok(sent)
    }

    fn between(&mut self, (least, most): (f64, f64)) -> f64 {
        self.rng.random_range(least..most)
    }

    /// The items that counting some orders wrote when it marked their seats.
    fn marking(&self, orders: &[Order]) -> Vec<String> {
        let of_order = |order: &Order| {
            let seats = self.seats_of[&order.number].iter().cloned();
            seats.chain([format!("order {}", order.number)]).collect::<Vec<_>>()
        };
        let counter = orders.first().map(|first| tables::counter_key(&tier("a"), first.number));
        orders.iter().flat_map(of_order).chain(counter).collect()
    }

    /// Counts some orders from a time on, one transaction after the other: as it is, and as it was.
    async fn count(
        &mut self,
        mut at_ms: f64,
        orders: &[Order],
        (now, before): (&mut Vec<Due>, &mut Vec<Due>),
    ) -> Result<f64, StoreError> {
        let mut was_ms = at_ms;
        for orders in orders.chunks(20) {
            let items = self.marking(orders);
            before.push(Due { at_ms: was_ms, kind: "count", items });
            was_ms += self.between(COUNTING_MS);
        }
        assert_eq!(self.recorder.orders.sync(orders, NOW).await?.len(), orders.len());
        for items in self.recorder.take() {
            assert!(items.len() <= MAX_TRANSACTION_ITEMS);
            now.push(Due { at_ms, kind: "count", items });
            at_ms += self.between(COUNTING_MS);
        }
        Ok(at_ms)
    }

    /// Counting by messages, in batches.
    async fn by_messages(&mut self) -> Result<(Vec<Due>, Vec<Due>), StoreError> {
        let (mut now, mut before) = (self.selling.clone(), self.selling.clone());
        let paid = self.paid.clone();
        let mut rest = &paid[..];
        while let Some((first, _)) = rest.first() {
            let end = first + BATCH_MS;
            let most = rest.len().min(BATCH);
            let count = rest[..most].iter().take_while(|(at, _)| *at <= end).count();
            let (batch, later) = rest.split_at(count);
            let at_ms = if count == BATCH { batch[count - 1].0 } else { end };
            let batch: Vec<Order> = batch.iter().map(|(_, order)| order.clone()).collect();
            self.count(at_ms, &batch, (&mut now, &mut before)).await?;
            rest = later;
        }
        Ok((now, before))
    }

    /// Counting by `reconcile`, shard by shard, because no message came.
    async fn by_reconcile(&mut self) -> Result<(Vec<Due>, Vec<Due>), StoreError> {
        let (mut now, mut before) = (self.selling.clone(), self.selling.clone());
        let (mut at_ms, mut was_ms) = (RECONCILE_MS, RECONCILE_MS);
        for shard in 0..DUE_SHARDS {
            let paid = self.paid.iter().map(|(_, order)| order.clone());
            let orders: Vec<Order> =
                paid.filter(|order| due_shard(order.number) == shard).collect();
            at_ms = self.count(at_ms, &orders, (&mut now, &mut Vec::new())).await?;
            let mut free_ms = vec![was_ms; TOGETHER];
            for order in &orders {
                free_ms.sort_by(f64::total_cmp);
                free_ms[0] += self.between(COUNTING_MS);
                let items = self.marking(std::slice::from_ref(order));
                before.push(Due { at_ms: free_ms[0], kind: "count", items });
            }
            was_ms = free_ms.into_iter().fold(was_ms, f64::max);
        }
        Ok((now, before))
    }
}

/// Attempts and refusals, by kind.
#[derive(Debug, Default)]
struct Outcome(BTreeMap<&'static str, (u32, u32)>);

impl Outcome {
    /// Refused attempts as a share of all.
    fn share(&self) -> f64 {
        let sum = |of: fn(&(u32, u32)) -> u32| self.0.values().map(of).sum::<u32>();
        f64::from(sum(|(_, refused)| *refused)) / f64::from(sum(|(attempts, _)| *attempts))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} % refused", self.share() * 100.0)?;
        for (kind, (attempts, refused)) in &self.0 {
            write!(f, ", {kind} {refused} of {attempts}")?;
        }
        Ok(())
    }
}

/// Carries transactions out when they are due; whoever meets another one comes again after a pause.
fn carried_out(due: &[Due], rng: &mut StdRng) -> Outcome {
    let time = |ms: f64| Duration::from_secs_f64(ms / 1000.0);
    let mut waiting: BinaryHeap<Reverse<(Duration, usize, i32)>> =
        due.iter().enumerate().map(|(at, one)| Reverse((time(one.at_ms), at, 0))).collect();
    let mut conflicts = Conflicts::default();
    let mut outcome = Outcome::default();
    while let Some(Reverse((now, index, made))) = waiting.pop() {
        let one = &due[index];
        let (attempts, refused) = outcome.0.entry(one.kind).or_default();
        *attempts += 1;
        if conflicts.met(&one.items, true, now).contains(&true) {
            *refused += 1;
            let longest = (BACKOFF_MS * 2_f64.powi(made)).min(500.0);
            let pause = time(rng.random_range(0.0..longest));
            waiting.push(Reverse((now + pause, index, made + 1)));
        }
    }
    outcome
}

/// The largest share of refusals of some sales of a train, as it is and as it was.
async fn shares(name: &str, journeys: Journeys) -> Result<(f64, f64), StoreError> {
    let fixture = Fixture::new().await;
    let recorder = Recorder::start(&fixture).await;
    let mut rng = StdRng::seed_from_u64(1);
    let mut largest = (0.0_f64, 0.0_f64);
    for _ in first_of(&[(); 3], 1) {
        let orders = orders(&fixture, &journeys, &mut rng);
        let mut sent = Sent::new(&recorder, &orders, &mut rng).await?;
        let ways = [
            ("by messages", sent.by_messages().await?),
            ("by reconcile", sent.by_reconcile().await?),
        ];
        for (way, (now, before)) in ways {
            let [now, before] = [now, before].map(|due| carried_out(&due, &mut rng));
            println!("{name}, {} orders, counted {way}: {now}; as it was: {before}", orders.len());
            largest = (largest.0.max(now.share()), largest.1.max(before.share()));
        }
    }
    Ok(largest)
}

#[tokio::test]
async fn a_train_at_a_hundred_paid_orders_a_second_has_few_conflicts() {
    for (name, journeys) in [("journeys of the line", of_the_line()), ("short journeys", short())] {
        let (now, before) = shares(name, journeys).await.unwrap();
        assert!(now < BAR, "{name}: {now}");
        // The control: one by one, and with seats that are marked as sold.
        assert!(before > BAR, "{name}: {before}");
    }
}
