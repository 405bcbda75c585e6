//! Captures are read, not asked for order by order: what callbacks have missed is decided by one reader,
//! unpaid orders end unasked behind it, and calls to the provider keep their limit.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ended::ended;
use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::admission::call_rate::{Ahead, CallRate, Take};
use engine::domain::basics::ids::{PaymentId, ProviderId, ReaderId, RequestFingerprint, UserId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::Mint;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::Attempts;
use engine::domain::order::{Capture, Order, OrderState, PaymentKey, PaymentOutcome, RefundReason};
use engine::domain::payment::captures::{Cursor, ListLag, Listing};
use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::Offer;
use engine::flows::captures::{Reading, read_captures};
use engine::flows::expire::Expired;
use engine::flows::refund::{refund, refund_or_requeue};
use engine::flows::reserve::reserve;
use engine::ports::messages::Refund;
use engine::ports::{CursorReply, Cursors, Due, Orders, Ports, StoreError, Stored};
use fake_payments::{API_KEY, Fault, Lags, PROVIDER};
use local::servers::PaymentProvider;
use model_stores::{Call, Caller, Driver, Reply, Stores};
use shared::dynamodb::DynamoCalls;
use shared::providers::{Operation, Providers, TurnRequest, Turns};
use shared::runtime::config::{PaymentConfig, ProvidersConfig};
use shared::runtime::connections::{Https, Trust};

use super::crash_points::at_every_call;
use super::crashing::Crashing;
use super::environment::{Fixture, NOW, PAY_WINDOW_SECONDS, inventory, sale_id};
use crate::backends;
use model_stores::size::sized;

/// Time at which the payment window of every order is over.
const LATE: Timestamp = NOW.plus_seconds(PAY_WINDOW_SECONDS);
/// Pages enough for every test but those that say otherwise.
const ALL_PAGES: u32 = 1000;

fn stripe() -> ProviderId {
    ProviderId::new(PROVIDER).unwrap()
}

fn reader(name: &str) -> ReaderId {
    ReaderId::new(name).unwrap()
}

fn at(seconds: i64) -> Timestamp {
    NOW.plus_seconds(seconds)
}

impl Fixture {
    async fn ordered(&self, user: &str) -> Order {
        let reservation = self.reservation(user).await;
        reserve(&self.ports, &reservation, NOW).await.unwrap().order
    }

    /// The provider captures what an order costs, and tells nobody.
    fn unreported(&self, payment: &str, order: &Order) -> Capture {
        self.provider.capture(payment, order.number, order.total, NOW).unwrap()
    }

    async fn read(&self, name: &str, now: Timestamp) -> Reading {
        read_captures(&self.ports, &reader(name), now, ALL_PAGES).await.unwrap()
    }

    async fn ended(&self, order: &Order, now: Timestamp) -> Expired {
        ended(&self.ports, &inventory(), order.number, now).await.unwrap()
    }

    fn calls(&self, route: &str) -> u64 {
        self.provider.calls().get(route).copied().unwrap_or_default()
    }

    /// Nobody may call an operation of the provider for some seconds by the clock.
    async fn use_up(&self, operation: &str, seconds: i64) {
        let next_us = Timestamp::now().plus_seconds(seconds).ms() * 1000;
        let text = |value: &str| AttributeValue::S(value.to_owned());
        let put = self.dynamo.client().put_item().table_name(&self.dynamo.config().tables.sales);
        let put = put.item("pk", text("#provider#stripe"));
        let put = put.item("sk", text(&format!("calls#{operation}")));
        let put = put.item("next_us", AttributeValue::N(next_us.to_string()));
        put.send().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_callbacks_missed_is_read_and_unpaid_orders_end_behind_the_reader_unasked() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    assert!(
        !fixture.read("idle", NOW).await.is_pending,
        "nothing is read while nothing is pending"
    );
    assert_eq!(fixture.calls("list_events"), 0);

    let (paid, unpaid) = (fixture.ordered("paid").await, fixture.ordered("unpaid").await);
    let capture = fixture.unreported("pi_paid", &paid);
    let reading = fixture.read("first", at(10)).await;
    let expected =
        Reading { is_pending: true, pages: 1, listed: 1, decided: 1, ..Reading::default() };
    assert_eq!(reading, expected);
    assert_eq!(fixture.state(paid.number).await, Some(OrderState::Paid));
    // Its seats are sold, and it is counted, by the consumer of the expiry queue.
    assert_eq!(fixture.ended(&paid, at(10)).await, Expired::Resolved);
    let again = fixture.read("again", at(30)).await;
    assert_eq!((again.listed, again.decided), (1, 0), "the last minutes are read again");

    // At the deadline nobody is asked: the reader is on its way.
    let lag = i64::from(ListLag::DEFAULT.seconds());
    let looked_at = LATE.plus_seconds(lag + 15);
    assert_eq!(fixture.ended(&unpaid, LATE).await, Expired::NotDue(looked_at));
    let almost = LATE.plus_seconds(lag).plus_ms(-1);
    assert!(fixture.read("almost", almost).await.is_awaited);
    let next = almost.plus_seconds(15);
    assert_eq!(fixture.ended(&unpaid, almost).await, Expired::NotDue(next.plus_ms(1)));
    fixture.read("past", LATE.plus_seconds(lag)).await;
    assert_eq!(fixture.ended(&unpaid, LATE.plus_seconds(lag)).await, Expired::Ended);
    assert_eq!(fixture.calls("search_captures"), 0);
    let record = fixture.ports.orders().payment(paid.number, &capture.key).await.unwrap().unwrap();
    assert_eq!(record.outcome, PaymentOutcome::Accepted);
    fixture.must_be_consistent().await;
}

/// Without a reader, orders are asked for one by one, as before: at the deadline and after the grace.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_has_stopped_is_not_waited_for() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    let end = Grace::DEFAULT.end_from(LATE);
    let order = fixture.ordered("asked").await;
    assert_eq!(fixture.ended(&order, LATE).await, Expired::NotDue(end));
    assert_eq!(fixture.calls("search_captures"), 1, "nobody has ever read");
    fixture.read("once", at(10)).await;
    assert_eq!(fixture.ended(&order, at(179)).await, Expired::NotDue(end));
    assert_eq!(fixture.calls("search_captures"), 1, "it is being read");
    assert_eq!(fixture.ended(&order, end.plus_ms(-1)).await, Expired::NotDue(end));
    assert_eq!(fixture.calls("search_captures"), 1, "still");
    fixture.unreported("pi_asked", &order);
    assert_eq!(fixture.ended(&order, end).await, Expired::Resolved, "found at the end");
    assert_eq!(fixture.calls("search_captures"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_dies_at_any_call_loses_no_capture() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    fixture.ordered("pending").await;
    let mut turn = 0;
    let calls = at_every_call(async |call, cut| {
        // So much later that what the turns before have captured is read no more.
        turn += 1;
        let now = at(400 * turn);
        let name = format!("{call}-{cut:?}").to_lowercase();
        let order = fixture.ordered(&name).await;
        let second = fixture.ordered(&format!("{name}-second")).await;
        let captured = |number: u32, order: &Order| {
            let payment = format!("pi_{number}_{name}");
            fixture.provider.capture(&payment, order.number, order.total, now).unwrap()
        };
        let capture = captured(1, &order);
        captured(2, &second);
        captured(3, &second);
        let crashing = Crashing::at(&fixture.ports, call, cut);
        let _ = read_captures(&crashing, &reader(&format!("dies-{turn}")), now, ALL_PAGES).await;
        // The lease of the dead runs out.
        fixture.read(&format!("lives-{turn}"), now.plus_seconds(31)).await;
        assert_eq!(fixture.state(order.number).await, Some(OrderState::Paid), "{name}");
        assert_eq!(fixture.state(second.number).await, Some(OrderState::Paid), "{name}");
        let record = fixture.ports.orders().payment(order.number, &capture.key).await.unwrap();
        assert_eq!(record.unwrap().outcome, PaymentOutcome::Accepted, "{name}");
        let payments = fixture.ports.orders().payments(second.number).await.unwrap();
        let refunds = payments
            .iter()
            .filter(|one| one.outcome == PaymentOutcome::Refund(RefundReason::SecondPayment));
        assert_eq!(refunds.count(), 1, "{name}");
        crashing.has_died()
    })
    .await;
    println!("the reader was cut off at each of {calls} calls");
    fixture.must_be_consistent().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_is_gone_on_with_page_by_page_and_by_one_reader_at_a_time() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    fixture.ordered("pending").await;
    let nobody = Mint::new(9).mint(NOW, &UserId::new("nobody").unwrap());
    let euro = Money { amount_minor: MinorUnits(100), currency: Currency::new("EUR").unwrap() };
    for number in 0..250 {
        let payment = format!("pi_{number}");
        fixture.provider.capture(&payment, nobody, euro, at(number / 50)).unwrap();
    }
    let cursors = fixture.ports.cursors();
    let mut pages = Vec::new();
    for turn in 0..3 {
        let name = reader(&format!("r{turn}"));
        let reading = read_captures(&fixture.ports, &name, at(10 + turn), 1).await.unwrap();
        pages.push((reading.listed, reading.others, reading.unfinished));
        let cursor = cursors.cursor(&stripe()).await.unwrap().unwrap();
        assert_eq!(cursor.pass.is_none(), turn == 2, "{cursor:?}");
    }
    assert_eq!(pages, [(100, 100, 1), (100, 100, 1), (50, 50, 0)]);
    let cursor = cursors.cursor(&stripe()).await.unwrap().unwrap();
    // It began with the first run, and is complete to there.
    let expected = Cursor { since: at(10 - 300), read_to: at(10), pass: None, asked_at: None };
    assert_eq!(cursor, expected);

    let until = at(60);
    let taken = cursors.take_cursor(&stripe(), &reader("other"), at(30), until).await.unwrap();
    assert_eq!(taken, CursorReply::Taken(Some(expected.clone())));
    let held = fixture.read("late", at(59)).await;
    assert_eq!((held.pages, held.unfinished), (0, 1));
    let moved = Cursor { read_to: at(50), ..expected };
    let of = async |name: &str| cursors.move_cursor(&stripe(), &reader(name), &moved, until).await;
    assert_eq!(of("late").await.unwrap(), engine::ports::ChangeReply::Conflict);
    assert_eq!(fixture.read("next", until).await.pages, 3);
    assert_eq!(of("other").await.unwrap(), engine::ports::ChangeReply::Conflict, "it is fenced");

    fixture.provider.next(Fault::FailList);
    let failed = read_captures(&fixture.ports, &reader("fails"), at(61), ALL_PAGES).await;
    assert!(failed.unwrap_err().retryable());
    assert_eq!(fixture.read("heals", at(61)).await.pages, 3, "the lease was given back");
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_that_are_used_up_delay_an_order_for_less_than_a_minute_and_no_refund() {
    let fixture = Fixture::with_grace(Grace::DEFAULT).await;
    let end = Grace::DEFAULT.end_from(LATE);
    let (waits, ends) = (fixture.ordered("waits").await, fixture.ordered("ends").await);
    let capture = fixture.unreported("pi_waits", &waits);
    // Used up anew before each: they are for seconds by the clock, and a slow machine takes some for it.
    for now in [LATE, end, end.plus_seconds(40)] {
        fixture.use_up("search-captures", 9).await;
        let Expired::NotDue(again) = fixture.ended(&waits, now).await else { panic!("{now}") };
        let wait = now.plus_seconds(5)..=now.plus_seconds(10).min(end.plus_seconds(45));
        assert!(wait.contains(&again), "{now}: {again}");
    }
    fixture.use_up("search-captures", 9).await;
    assert_eq!(fixture.ended(&ends, end.plus_seconds(45)).await, Expired::Ended, "the bound");
    assert_eq!(fixture.calls("search_captures"), 0);

    // Refunds have turns of their own.
    let paid = fixture.ordered("paid").await;
    let first = fixture.unreported("pi_first", &paid);
    let second = fixture.unreported("pi_second", &paid);
    let pay = async |capture| engine::flows::pay::pay(&fixture.ports, capture, NOW).await.unwrap();
    assert_eq!(pay(&first).await.outcome, PaymentOutcome::Accepted);
    let record = pay(&second).await;
    assert_eq!(record.outcome, PaymentOutcome::Refund(RefundReason::SecondPayment));
    let message = Refund::from_record(&record).unwrap();
    fixture.use_up("list-refunds", 9).await;
    assert_eq!(refund_or_requeue(&fixture.ports, message, NOW).await, Ok(None), "it comes again");
    fixture.use_up("list-refunds", -1).await;
    // The process remembers for a moment that there were no turns.
    let refunded = || refund(&fixture.ports, second.order, &second.key, NOW);
    while let Err(StoreError::Limited(_)) = refunded().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(fixture.calls("create_refund"), 1);

    fixture.use_up("search-captures", -1).await;
    let ended = || fixture.ended(&waits, end.plus_seconds(25));
    while let Expired::NotDue(_) = ended().await {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(fixture.state(waits.number).await, Some(OrderState::Paid));
    let record = fixture.ports.orders().payment(waits.number, &capture.key).await.unwrap();
    assert_eq!(record.unwrap().outcome, PaymentOutcome::Accepted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn turns_in_dynamodb_are_given_once_to_many_processes() {
    let fixture = Fixture::start().await;
    let rate = CallRate::from_per_second(20).unwrap();
    let now_us = NOW.ms() * 1000;
    let provider = stripe();
    let processes: Vec<DynamoCalls> =
        (0..8).map(|_| DynamoCalls::new(fixture.dynamo.clone())).collect();
    let take = |process: &DynamoCalls, operation, now_us| {
        let (process, provider) = (process.clone(), provider.clone());
        async move {
            let provider = &provider;
            let ahead = Ahead::Turns;
            let request = TurnRequest { provider, operation, rate, ahead, calls: 3, now_us };
            Turns::take(&process, request).await.unwrap()
        }
    };
    let mut times = Vec::new();
    let mut rounds = 0;
    loop {
        let search = Operation::SearchCaptures;
        let takes = processes.iter().map(|process| take(process, search, now_us));
        let before = times.len();
        for taken in futures_util::future::join_all(takes).await {
            if let Take::Calls { calls, first_us, .. } = taken {
                let turns = 0..i64::from(calls);
                times.extend(turns.map(|turn| first_us + turn * rate.interval_us()));
            }
        }
        rounds += 1;
        if times.len() == before {
            break;
        }
    }
    times.sort_unstable();
    let expected: Vec<i64> = (0..40).map(|turn| now_us + turn * 50_000).collect();
    assert_eq!(times, expected, "two seconds of turns, each given once, in {rounds} rounds");
    let refund = take(&processes[0], Operation::Refund, now_us).await;
    assert!(matches!(refund, Take::Calls { calls: 3, .. }), "{refund:?}");
    let later = take(&processes[0], Operation::SearchCaptures, now_us + 100_000).await;
    assert!(matches!(later, Take::Calls { calls: 2, .. }), "{later:?}");
}

/// Orders in memory, and a provider that is asked over HTTP.
struct Wave {
    model: Caller<Memory>,
    providers: Providers,
}

/// Stores that answer at once.
struct Memory {
    stores: Mutex<Stores>,
    now: Timestamp,
}

impl Memory {
    fn stores(&self) -> MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for Memory {
    async fn call(&self, call: Call) -> Stored<Reply> {
        self.stores().apply(self.now, &call)
    }
}

impl Ports for Wave {
    type Seats = Caller<Memory>;
    type Gate = Caller<Memory>;
    type Orders = Caller<Memory>;
    type Catalogue = Caller<Memory>;
    type Queue = Caller<Memory>;
    type Provider = Providers;
    type Cursors = Caller<Memory>;

    fn seats(&self) -> &Caller<Memory> {
        &self.model
    }
    fn gate(&self) -> &Caller<Memory> {
        &self.model
    }
    fn orders(&self) -> &Caller<Memory> {
        &self.model
    }
    fn catalogue(&self) -> &Caller<Memory> {
        &self.model
    }
    fn queue(&self) -> &Caller<Memory> {
        &self.model
    }
    fn provider(&self) -> &Providers {
        &self.providers
    }
    fn cursors(&self) -> &Caller<Memory> {
        &self.model
    }
    fn grace(&self) -> Grace {
        Grace::DEFAULT
    }
    fn listings(&self) -> Vec<Listing> {
        self.providers.listings(ListLag::DEFAULT)
    }
    fn offers(&self) -> Vec<Offer> {
        self.providers.offers()
    }
    fn started_elsewhere(&self) -> bool {
        true
    }
}

fn order(number: u32, payment: Option<PaymentKey>) -> Order {
    let user = UserId::new(number.to_string()).unwrap();
    let euro = Money { amount_minor: MinorUnits(100), currency: Currency::new("EUR").unwrap() };
    let state = if payment.is_some() { OrderState::Paid } else { OrderState::Pending };
    Order {
        number: Mint::new(number).mint(NOW, &user),
        sale: sale_id(),
        user,
        state,
        lines: Vec::new(),
        total: euro,
        fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
        created_at: NOW,
        pay_by: LATE,
        changed_at: NOW,
        attempts: Attempts::default(),
        payment,
        facts: engine::domain::order::fact::Facts::made(NOW).all_settled(),
        refunds: engine::domain::order::order_refund::RefundCounts::default(),
        merchant: engine::domain::sale::MerchantTerms::house(),
        exchange: None,
    }
}

/// A wave: all orders are made at once and expire at once. Those that are paid are paid by callbacks; that
/// they were has to be known before the others end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_orders_that_expire_at_once_cost_a_call_for_a_hundred_of_them() {
    let paid = sized(50_000);
    let unpaid_orders = paid / 100;
    let provider = PaymentProvider::start_lagging(None, Lags::default()).unwrap();
    let mut stores = Stores::default();
    for number in 0..paid {
        let payment = PaymentId::new(format!("pi_{number}")).unwrap();
        let order =
            order(number, Some(PaymentKey { provider: stripe(), payment: payment.clone() }));
        provider.capture(payment.as_str(), order.number, order.total, NOW).unwrap();
        stores.orders.orders.insert(order.number, order);
    }
    let unpaid: Vec<Order> =
        (paid..paid + unpaid_orders).map(|number| order(number, None)).collect();
    for order in &unpaid {
        stores.orders.due.insert((LATE, Due::Order(order.number)));
        stores.orders.orders.insert(order.number, order.clone());
    }
    let apis: ProvidersConfig = backends::providers(&provider);
    assert_eq!(apis.apis[0].key.0, API_KEY.as_bytes());
    let no_callbacks = PaymentConfig { secrets: Vec::new(), tolerance_seconds: 0 };
    let https = Https::new(&Trust::public());
    let providers = Providers::new(&no_callbacks, &apis, &https).unwrap();
    let model = Caller(Memory { stores: Mutex::new(stores), now: LATE });
    let wave = Wave { model, providers };

    let read_at = LATE.plus_seconds(i64::from(ListLag::DEFAULT.seconds()));
    let reading = read_captures(&wave, &reader("reads"), read_at, ALL_PAGES).await.unwrap();
    assert_eq!((reading.listed, reading.decided, reading.unfinished), (paid, 0, 0));
    for order in &unpaid {
        let ended = ended(&wave, &inventory(), order.number, read_at).await.unwrap();
        assert_eq!(ended, Expired::Ended);
    }
    let calls: BTreeMap<&str, u64> = provider.calls();
    let a_second = u64::from(CallRate::DEFAULT.per_second());
    let seconds = |calls: u64| Duration::from_secs(calls.div_ceil(a_second));
    println!(
        "{paid} captures and {unpaid_orders} unpaid orders: {calls:?}, {:?} at {a_second} a second; a search for \
         each order: {:?}",
        seconds(calls["list_events"]),
        seconds((paid + unpaid_orders).into()),
    );
    assert_eq!(calls, BTreeMap::from([("list_events", u64::from(paid / 100))]));
    assert!(seconds(u64::from(paid / 100)) <= Duration::from_secs(25));
}
