//! Sixty thousand tickets of a cancelled sale: each order is refunded once, though whoever cancels dies three
//! times, within the rates that Stripe publishes, on a clock that runs as fast as the processor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as WallClock};

use engine::domain::admission::call_rate::{Ahead, CallRate, Take};
use engine::domain::basics::ids::{
    Epoch, InventoryId, Leg, Legs, PaymentId, ProviderId, Seat, TierId, UserId,
};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::Choice;
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, OrderState, PaymentKey};
use engine::domain::sale::Sale;
use engine::flows::cancel_sale::{IN_FLIGHT_SECONDS, Progress, stop, walk};
use engine::flows::pay::pay;
use engine::flows::publish::publish;
use engine::flows::reconcile::reconcile;
use engine::flows::refund::refund_or_requeue;
use engine::flows::reserve::{Reservation, reserve};
use engine::flows::sync::sync;
use engine::ports::{Catalogue as _, Freshness, Ports as _, StoreError, Stored};
use fake_limits::Quotas;
use fake_limits::stripe::{Account, Endpoint};
use model_stores::{Call, Caller, Driver, Message, QueuesModel, Reply, Sent, Stores};
use ops::refund_pace::{RefundPace, default_per_second};
use serde_json::json;
use shared::providers::Operation;
use tokio::sync::Notify;
use tokio::time::{Instant, interval, sleep};

use super::environment::{NOW, epoch, sale_id};
use model_stores::size::sized;

const TICKETS_AN_ORDER: u32 = 4;
/// One answer of the provider in so many is lost.
const LOST: u64 = 97;
/// Functions that consume the refund queue at once.
const CONSUMERS: usize = 8;
/// Time after which a message whose consumer failed is delivered again.
const AGAIN_SECONDS: i64 = 30;

fn tickets() -> u32 {
    sized(60_000)
}

fn orders() -> u32 {
    tickets() / TICKETS_AN_ORDER
}

/// The numbers of refunds after which whoever cancels is killed.
fn killed_after() -> [u64; 3] {
    [1_001, 7_777, 14_000].map(|of_all| of_all * u64::from(orders()) / 15_000)
}

/// Stores in memory, and a provider that keeps to what it publishes.
struct Hall {
    stores: Mutex<Stores>,
    begun: Instant,
    /// What the limiter keeps: the time of the next call that nobody was given.
    next_us: Mutex<Option<i64>>,
    stripe: Mutex<Account>,
    /// The times of the calls that reached the provider, in microseconds since it began.
    calls_us: Mutex<Vec<u128>>,
    throttled: AtomicU64,
    refunds: AtomicU64,
    made_one: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refund_rate() -> CallRate {
    Operation::Refund.rate(CallRate::DEFAULT)
}

impl Hall {
    fn new() -> Self {
        Self {
            stores: Mutex::default(),
            begun: Instant::now(),
            next_us: Mutex::default(),
            stripe: Mutex::new(Account::new(Quotas::default(), Duration::ZERO)),
            calls_us: Mutex::default(),
            throttled: AtomicU64::new(0),
            refunds: AtomicU64::new(0),
            made_one: Notify::new(),
        }
    }

    fn now_us(&self) -> i64 {
        NOW.ms() * 1000 + i64::try_from(self.begun.elapsed().as_micros()).unwrap()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.now_us() / 1000)
    }

    /// The engine's limiter, and then the provider's own.
    async fn ask_provider(&self, call: &Call) -> Stored<Reply> {
        let first_us = {
            let mut next_us = lock(&self.next_us);
            match refund_rate().take(*next_us, 1, Ahead::Turns, self.now_us()) {
                Take::Calls { first_us, next_us: next, .. } => {
                    *next_us = Some(next);
                    first_us
                }
                Take::UsedUp { for_us } => {
                    let seconds = u32::try_from(for_us / 1_000_000 + 1).unwrap();
                    return Err(StoreError::Limited(seconds));
                }
            }
        };
        let wait_us = u64::try_from(first_us - self.now_us()).unwrap_or(0);
        sleep(Duration::from_micros(wait_us)).await;
        let endpoint = Endpoint::Other("POST refunds".to_owned());
        if lock(&self.stripe).admit(&endpoint, self.begun.elapsed()).is_err() {
            self.throttled.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Unavailable("429".to_owned()));
        }
        let count = {
            let mut calls_us = lock(&self.calls_us);
            calls_us.push(self.begun.elapsed().as_micros());
            calls_us.len() as u64
        };
        let reply = lock(&self.stores).apply(self.now(), call)?;
        if count.is_multiple_of(LOST) {
            return Err(StoreError::Unavailable("the answer was lost".to_owned()));
        }
        Ok(reply)
    }

    /// Returns when so many refunds were made.
    async fn made(&self, refunds: u64) {
        while self.refunds.load(Ordering::Relaxed) < refunds {
            self.made_one.notified().await;
        }
    }

    /// Takes a message that is visible now, and of which `wanted` is said; it comes again later unless it is
    /// taken out.
    fn receive(&self, wanted: impl Fn(&Message) -> bool) -> Option<Sent> {
        let now = self.now();
        let mut stores = lock(&self.stores);
        let found = stores.queues.visible(now).find(|sent| wanted(&sent.message)).cloned()?;
        stores.queues.take(&found);
        let again = Sent { visible_at: now.plus_seconds(AGAIN_SECONDS), ..found };
        stores.queues.send(again.visible_at, again.message.clone());
        Some(again)
    }

    fn delete(&self, message: &Sent) {
        lock(&self.stores).queues.take(message);
    }
}

impl Driver for &Hall {
    async fn call(&self, call: Call) -> Stored<Reply> {
        // Whoever is killed is killed here, before or after any call.
        tokio::task::yield_now().await;
        if matches!(call, Call::RefundPart { .. }) {
            return self.ask_provider(&call).await;
        }
        let reply = lock(&self.stores).apply(self.now(), &call);
        if matches!(call, Call::GiveBack { .. }) {
            self.refunds.fetch_add(1, Ordering::Relaxed);
            self.made_one.notify_waiters();
        }
        tokio::task::yield_now().await;
        reply
    }
}

fn sale() -> Sale {
    let row = |row: u32| {
        let seats: Vec<String> = (0..1000).map(|seat| format!("{row}-{seat}")).collect();
        json!({ "row": row.to_string(), "seats": seats })
    };
    let rows: Vec<_> = (0..tickets() / 1000).map(row).collect();
    let file = json!({
        "sale": sale_id(), "title": "Arena", "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 600,
        "tiers": [{ "tier": "arena", "name": "Arena", "price_minor": 5000,
            "sections": [{ "section": "1", "rows": rows }] }]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// The seats of the sale, by order.
fn seats_of_orders(sale: &Sale) -> Vec<Vec<Seat>> {
    let layout = &sale.tiers()[0].layout;
    let places = 0..u32::try_from(layout.initial().len() * 8).unwrap();
    let is_seat = |place: &u32| layout.initial()[(place / 8) as usize] & (0x80 >> (place % 8)) == 0;
    let seats: Vec<Seat> = places.filter(is_seat).map(Seat).collect();
    assert_eq!(seats.len(), tickets() as usize);
    seats.chunks(TICKETS_AN_ORDER as usize).map(<[Seat]>::to_vec).collect()
}

/// Sells every seat, to be paid through Stripe.
async fn sell_out(hall: &Hall, sale: &Sale) {
    let ports = Caller(hall);
    publish(&ports, sale, &epoch("load"), NOW).await.unwrap();
    let published = ports.catalogue().sale(sale.id(), Freshness::Fresh).await.unwrap().unwrap();
    for (number, seats) in (0..).zip(seats_of_orders(sale)) {
        let user = UserId::new(format!("u{number}")).unwrap();
        let tier = TierId::new("arena").unwrap();
        let line = Line { tier, legs: Legs::ONE, choice: Choice::Seats(seats) };
        let line = RequestedLine { line, price_minor: MinorUnits(5000), attendees: vec![] };
        let order = Mint::new(number).mint(NOW, &user);
        let reservation = Reservation {
            published: published.clone(),
            number: order,
            user,
            lines: vec![line],
            exchange: None,
        };
        let order = reserve(&ports, &reservation, NOW).await.unwrap().order;
        let payment = PaymentId::new(format!("pi_{number}")).unwrap();
        let key = PaymentKey { provider: ProviderId::new("stripe").unwrap(), payment };
        let capture = Capture { key, order: order.number, amount: order.total, attempt: None };
        lock(&hall.stores).provider.capture(capture.clone());
        pay(&ports, &capture, NOW).await.unwrap();
        sync(&ports, &[capture.order], NOW).await.unwrap();
    }
    // What was sent meanwhile speaks of orders that are paid and settled.
    lock(&hall.stores).queues = QueuesModel::default();
}

/// A function that consumes the refund queue.
async fn consume_refunds(hall: &Hall) {
    let ports = Caller(hall);
    loop {
        let Some(sent) = hall.receive(|message| matches!(message, Message::Refund(_))) else {
            sleep(Duration::from_secs(1)).await;
            continue;
        };
        let Message::Refund(refund) = sent.message.clone() else { continue };
        if refund_or_requeue(&ports, refund, hall.now()).await.is_ok() {
            hall.delete(&sent);
        }
    }
}

/// The function that settles facts.
async fn consume_sync(hall: &Hall) {
    let ports = Caller(hall);
    loop {
        let sent = hall.receive(|message| matches!(message, Message::Sync(_)));
        let Some((sent, Message::Sync(order))) = sent.map(|sent| (sent.clone(), sent.message))
        else {
            sleep(Duration::from_secs(1)).await;
            continue;
        };
        if sync(&ports, &[order], hall.now()).await.is_ok() {
            hall.delete(&sent);
        }
    }
}

/// The sweeper and the comparison, each minute.
async fn repair(hall: &Hall) {
    let mut minutes = interval(Duration::from_secs(60));
    for minute in 0_u32.. {
        minutes.tick().await;
        let token: Epoch = epoch(&format!("minute-{minute}"));
        let _ = reconcile(&Caller(hall), &token, hall.now()).await;
    }
}

/// Cancels the sale as `onsale sale cancel` does, at the pace of its limiter.
async fn cancel(hall: &Hall, sale: &Sale, run: usize) -> Progress {
    let ports = Caller(hall);
    let token = epoch(&format!("cancel-{run}"));
    let published = stop(&ports, sale.id(), &token, hall.now()).await.unwrap();
    let quiet_at = hall.now().plus_seconds(IN_FLIGHT_SECONDS);
    let turns = RefundPace::per_second(default_per_second());
    let pace = async || turns.turn().await;
    let pause = async || sleep(Duration::from_secs(5)).await;
    walk(&ports, &published.sale, quiet_at, || hall.now(), pace, pause, |_| ()).await.unwrap()
}

/// Kills whoever cancels three times, and lets the fourth come to its end; then waits for the money.
async fn cancel_and_be_killed(hall: &Hall, sale: &Sale) -> (Progress, Duration) {
    for (run, after) in killed_after().into_iter().enumerate() {
        tokio::select! {
            biased;
            () = hall.made(after) => {}
            progress = cancel(hall, sale, run) => panic!("it was not killed: {progress:?}"),
        }
    }
    let progress = cancel(hall, sale, killed_after().len()).await;
    let walked = hall.begun.elapsed();
    let is_left = || {
        let stores = lock(&hall.stores);
        let is_open = |(_, order): (&_, &engine::domain::order::Order)| {
            order.state != OrderState::Refunded || !order.facts.are_settled()
        };
        stores.orders.orders.iter().any(is_open)
    };
    while is_left() {
        sleep(Duration::from_secs(5)).await;
    }
    (progress, walked)
}

/// The most of these times, each later than the one before, that lie within a second.
fn most_in_a_second(times_us: &[u128]) -> usize {
    let within = |(place, from): (usize, &u128)| {
        times_us[place..].iter().take_while(|at| **at < from + 1_000_000).count()
    };
    times_us.iter().enumerate().map(within).max().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn sixty_thousand_tickets_are_refunded_once_at_the_published_rate_though_it_is_killed() {
    let begun = WallClock::now();
    let (hall, sale) = (Hall::new(), sale());
    sell_out(&hall, &sale).await;
    let sold_at = hall.begun.elapsed();
    let consumers = futures_util::future::join_all((0..CONSUMERS).map(|_| consume_refunds(&hall)));
    let (progress, walked) = tokio::select! {
        done = cancel_and_be_killed(&hall, &sale) => done,
        _ = consumers => unreachable!("consumers do not end"),
        () = consume_sync(&hall) => unreachable!("consumers do not end"),
        () = repair(&hall) => unreachable!("repairs do not end"),
    };

    let stores = lock(&hall.stores);
    let calls_us = lock(&hall.calls_us);
    let most = most_in_a_second(&calls_us);
    println!(
        "{} tickets of {} orders: refunds made in {:?}, all money back after {:?} at {} a second; \
         {} calls to the provider, at most {most} in a second (it grants 25), {} throttled, {} answers lost, \
         killed {} times; {:.0} s of processor",
        tickets(),
        orders(),
        walked - sold_at,
        hall.begun.elapsed() - sold_at,
        refund_rate().per_second(),
        calls_us.len(),
        hall.throttled.load(Ordering::Relaxed),
        calls_us.len() as u64 / LOST,
        killed_after().len(),
        begun.elapsed().as_secs_f64(),
    );
    assert_eq!(progress.left, BTreeMap::new());
    assert_eq!(hall.throttled.load(Ordering::Relaxed), 0);
    assert!(most <= 16, "{most} calls in a second");
    // Each exactly once: as many parts as orders, each of its order's whole payment.
    assert_eq!(stores.provider.parts.len(), orders() as usize);
    let price = MinorUnits(5000 * i64::from(TICKETS_AN_ORDER));
    assert!(stores.provider.parts.values().all(|(_, amount)| amount.amount_minor == price));
    assert!(stores.provider.refunded.is_empty() && stores.provider.refunded_again.is_empty());
    assert!(stores.orders.orders.values().all(|order| order.refunds.back == 1));
    assert!(stores.orders.claims.is_empty());
    let (_, sold) = &stores.orders.statistics(sale.id())[0];
    assert_eq!((sold.tickets, sold.revenue_minor), (0, MinorUnits::ZERO));
    drop(stores);
    let tier = TierId::new("arena").unwrap();
    let at = InventoryId::whole(sale.id().clone());
    let grid = lock(&hall.stores).seats.of(&at).tiers[&tier].clone();
    let is_free = |seat: &Seat| !grid.is_taken(Leg(0), *seat);
    assert!(seats_of_orders(&sale).iter().flatten().all(is_free), "seats are left in Redis");
}
