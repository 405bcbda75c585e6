//! Archiving: refused while anything is undecided, finished from any crash point on, final; what comes
//! late is decided without the sale; and what is open costs the same however many sales there were.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering};

use super::ended::ended;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::{AttributeValue, PutRequest, WriteRequest};
use bench::cost::watch::Proxy;
use engine::domain::basics::ids::{
    InventoryId, Legs, PaymentId, ProviderId, SaleId, TierId, UserId,
};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::Mint;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::Line;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::requested::RequestedLine;
use engine::domain::order::{Capture, Order, OrderState, PaymentKey, PaymentOutcome, RefundReason};
use engine::domain::sale::Sale;
use engine::domain::sale::archive::{Lifecycle, NotYet, Undecided};
use engine::flows::archive::{Archived, Refusal, archive, by_age};
use engine::flows::cancel::cancel;
use engine::flows::expire::Expired;
use engine::flows::load::{Loaded, load};
use engine::flows::pay::pay;
use engine::flows::reconcile::{reconcile_all, run_until};
use engine::flows::refund::refund;
use engine::flows::reserve::{self, Reservation, reserve};
use engine::flows::stuck::stuck;
use engine::flows::sync::sync;
use engine::flows::{admit, publish};
use engine::ports::{Catalogue, CreateReply, Freshness, Orders, Ports, Published, Seats};
use futures_util::future::join_all;
use local::stores::sdk_config;
use ops::audit::{self, Options, Target};
use serde_json::json;
use shared::dynamodb::{Dynamo, StoreConfig};
use shared::runtime::app::{App, LivePorts};

use super::crash_points::at_every_call;
use super::crashing::Crashing;
use super::environment::{Fixture, NOW, epoch};
use crate::backends;

/// When the sales of these tests close, and a time at which whatever was bought before must be paid.
const CLOSES: Timestamp = NOW.plus_seconds(1_000);
const AFTER: Timestamp = NOW.plus_seconds(2_000);
const DAY_SECONDS: i64 = 86_400;

fn id(text: &str) -> SaleId {
    SaleId::new(text).unwrap()
}

fn sale(name: &str) -> Sale {
    let file = json!({
        "sale": name, "title": name, "currency": "EUR",
        "opens_at": "2026-01-01T00:00:00Z", "closes_at": CLOSES,
        "limit_per_buyer": 4, "pay_window_seconds": 60, "gate": { "shards": 2 },
        "tiers": [{ "tier": "hall", "name": "Hall", "price_minor": 500, "general_admission": 8 }]
    });
    Sale::new(serde_json::from_value(file).unwrap()).unwrap()
}

/// A sale among others, and who buys of it.
struct OnSale<'a> {
    fixture: &'a Fixture,
    sale: SaleId,
    mint: Mint,
}

impl<'a> OnSale<'a> {
    async fn publish(fixture: &'a Fixture, name: &str) -> Self {
        let token = epoch(&format!("load-{name}"));
        publish::publish(&fixture.ports, &sale(name), &token, NOW).await.unwrap();
        static PROCESSES: AtomicU16 = AtomicU16::new(100);
        let mint = Mint::new(PROCESSES.fetch_add(1, Ordering::Relaxed).into());
        Self { fixture, sale: id(name), mint }
    }

    fn ports(&self) -> &LivePorts {
        &self.fixture.ports
    }

    async fn published(&self) -> Published {
        self.ports().catalogue().sale(&self.sale, Freshness::Fresh).await.unwrap().unwrap()
    }

    async fn reservation(&self, user: &str) -> Reservation {
        let user = UserId::new(user).unwrap();
        let choice = Choice::Best { count: 1, together: Together::Preferred };
        let line = Line { tier: TierId::new("hall").unwrap(), legs: Legs::ONE, choice };
        let lines = vec![RequestedLine { line, price_minor: MinorUnits(500), attendees: vec![] }];
        let number = self.mint.mint(NOW, &user);
        Reservation { published: self.published().await, number, user, lines, exchange: None }
    }

    async fn buy(&self, user: &str) -> Order {
        reserve(self.ports(), &self.reservation(user).await, NOW).await.unwrap().order
    }

    async fn buy_paid(&self, user: &str) -> Order {
        let order = self.buy(user).await;
        let paid = capture(&order, &format!("pi_{}_{user}", self.sale));
        pay(self.ports(), &paid, NOW).await.unwrap();
        sync(self.ports(), &[order.number], NOW).await.unwrap();
        order
    }

    async fn archive(&self, token: &str, now: Timestamp) -> Result<Archived, Refusal> {
        archive(self.ports(), &self.sale, &epoch(token), now).await
    }

    async fn is_listed(&self) -> bool {
        self.ports().catalogue().sales().await.unwrap().contains(&self.sale)
    }

    /// The keys of the sale in Redis, those of its gate included, but for the locks of buyers, which run
    /// out by themselves.
    async fn keys(&self) -> Vec<String> {
        let mut redis = self.fixture.redis().await;
        let pattern = format!("{{{}*", self.sale);
        let keys: Vec<String> =
            redis::cmd("KEYS").arg(pattern).query_async(&mut redis).await.unwrap();
        // Locks and counters of the gate run out by themselves.
        let stays = |key: &String| !key.contains(":lock:") && !key.contains("/limits/");
        keys.into_iter().filter(stays).collect()
    }
}

fn capture(order: &Order, payment: &str) -> Capture {
    let key = PaymentKey {
        provider: ProviderId::new("stripe").unwrap(),
        payment: PaymentId::new(payment).unwrap(),
    };
    Capture { key, order: order.number, amount: order.total, attempt: None }
}

fn undecided(found: Undecided) -> Result<Archived, Refusal> {
    Err(Refusal::NotYet(NotYet::Undecided(found)))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tier_that_is_kept_apart_leaves_redis() {
    let fixture = Fixture::start().await;
    let mut file = sale("apart").file().clone();
    let mut balcony = file.tiers[0].clone();
    balcony.tier = TierId::new("balcony").unwrap();
    file.tiers.push(balcony);
    file.tiers_apart = true;
    let apart = Sale::new(file).unwrap();
    publish::publish(&fixture.ports, &apart, &epoch("apart"), NOW).await.unwrap();
    let gone = OnSale { fixture: &fixture, sale: id("apart"), mint: Mint::new(99) };
    let published = gone.published().await;
    admit::admit(gone.ports(), &published, &UserId::new("a").unwrap(), 1, NOW).await.unwrap();
    let pending = gone.buy("pending").await;
    let found = Undecided { holds: 1, pending: 1, ..Undecided::default() };
    assert_eq!(gone.archive("a1", AFTER).await, undecided(found), "one of its tiers has a hold");
    let hall = apart.inventory_of(&TierId::new("hall").unwrap());
    assert_eq!(ended(gone.ports(), &hall, pending.number, AFTER).await, Ok(Expired::Ended));
    let keys = gone.keys().await;
    assert!(
        ["{apart/hall}:sale", "{apart/balcony}:sale"]
            .iter()
            .all(|key| keys.contains(&(*key).to_owned())),
        "{keys:?}"
    );
    assert_eq!(gone.archive("a2", AFTER).await, Ok(Archived::Now));
    assert_eq!(gone.keys().await, [""; 0], "Redis knows nothing of any of its tiers");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_undecided_is_archived_and_what_is_archived_stays_so() {
    let fixture = Fixture::start().await;
    let gone = OnSale::publish(&fixture, "gone").await;
    let (ports, none) = (gone.ports(), Undecided::default());
    let stale = gone.published().await;
    admit::admit(ports, &stale, &UserId::new("paid").unwrap(), 1, NOW).await.unwrap();
    let repeated = gone.reservation("paid").await;
    let paid = reserve(ports, &repeated, NOW).await.unwrap().order;
    let pending = gone.buy("pending").await;
    let ended = gone.buy("ended").await;
    cancel(ports, &ended.user, ended.number, NOW).await.unwrap();

    // Each of what is undecided is a reason.
    assert_eq!(gone.archive("a1", NOW).await, Err(NotYet::Sells(CLOSES).into()));
    let found = Undecided { holds: 2, pending: 2, ..none };
    assert_eq!(gone.archive("a2", AFTER).await, undecided(found));
    pay(ports, &capture(&paid, "pi_paid"), NOW).await.unwrap();
    assert_eq!(
        super::ended::ended(ports, &InventoryId::whole(gone.sale.clone()), pending.number, AFTER)
            .await,
        Ok(Expired::Ended)
    );
    assert_eq!(gone.archive("a3", AFTER).await, undecided(Undecided { uncounted: 1, ..none }));
    sync(ports, &[paid.number], AFTER).await.unwrap();
    let twice = fixture.provider.capture("pi_twice", paid.number, paid.total, NOW).unwrap();
    pay(ports, &twice, AFTER).await.unwrap();
    assert_eq!(gone.archive("a4", AFTER).await, undecided(Undecided { refunds: 1, ..none }));
    refund(ports, paid.number, &twice.key, AFTER).await.unwrap();
    // Whoever was refused has given the lease back, and the sale goes on.
    assert_eq!(load(ports, &gone.sale, &epoch("l1"), AFTER).await, Ok(Loaded::Already));
    assert!(gone.keys().await.len() > 3 && gone.is_listed().await);

    assert_eq!(gone.archive("a5", AFTER).await, Ok(Archived::Now));
    assert_eq!(gone.keys().await, [""; 0], "Redis knows nothing of it");
    assert!(!gone.is_listed().await);
    assert_eq!(gone.published().await.lifecycle, Lifecycle::Archived);

    // Nobody sells it, publishes it or loads it any more, whatever they remember.
    let buyer = Reservation { published: stale.clone(), ..gone.reservation("late").await };
    let refused = reserve(ports, &buyer, NOW).await;
    assert_eq!(refused, Err(reserve::Refusal::SaleArchived), "by what Redis and the catalogue say");
    let refused = reserve(ports, &gone.reservation("later").await, NOW).await;
    assert_eq!(refused, Err(reserve::Refusal::SaleArchived), "by what the catalogue says");
    let refused = admit::admit(ports, &gone.published().await, &buyer.user, 1, NOW).await;
    assert_eq!(refused, Err(admit::Refusal::SaleArchived));
    let refused = publish::publish(ports, &sale("gone"), &epoch("p1"), AFTER).await.map(drop);
    assert_eq!(refused, Err(publish::Refusal::Archived));
    assert_eq!(load(ports, &gone.sale, &epoch("l2"), AFTER).await, Ok(Loaded::Archived));
    assert_eq!(gone.archive("a6", AFTER).await, Ok(Archived::Already));

    // Its orders are there, for who asks and for who repeats a request.
    let found = reserve(ports, &repeated, NOW).await.unwrap().order;
    assert_eq!((found.number, found.state), (paid.number, OrderState::Paid));
    assert_eq!(fixture.state(ended.number).await, Some(OrderState::Cancelled));

    // Money that comes late is decided, and nothing is loaded for it.
    let late = pay(ports, &capture(&ended, "pi_late"), AFTER).await.unwrap();
    assert_eq!(late.outcome, PaymentOutcome::Refund(RefundReason::Cancelled));
    assert_eq!(fixture.state(ended.number).await, Some(OrderState::RefundDue));
    let again = pay(ports, &capture(&paid, "pi_again"), AFTER).await.unwrap();
    assert_eq!(again.outcome, PaymentOutcome::Refund(RefundReason::SecondPayment));
    // An order whose process was frozen between its hold and its claim since before the closing.
    for pays in [false, true] {
        let user = UserId::new("frozen").unwrap();
        let late = Order { number: gone.mint.mint(NOW, &user), user, ..ended.clone() };
        assert_eq!(ports.orders().create(&late, Tickets::new(4)).await, Ok(CreateReply::Created));
        if pays {
            let record = pay(ports, &capture(&late, "pi_frozen"), AFTER).await.unwrap();
            assert_eq!(record.outcome, PaymentOutcome::Accepted);
            assert_eq!(sync(ports, &[late.number], AFTER).await, Ok(1));
        } else {
            assert_eq!(
                super::ended::ended(
                    ports,
                    &InventoryId::whole(gone.sale.clone()),
                    late.number,
                    AFTER
                )
                .await,
                Ok(Expired::Ended)
            );
        }
    }
    let later = AFTER.plus_seconds(2 * DAY_SECONDS);
    let swept = reconcile_all(ports, &epoch("sweep"), later).await.unwrap();
    assert!(swept.report.failed == 0 && swept.unread.is_empty(), "{swept:?}");
    assert_eq!(gone.keys().await, [""; 0], "nothing has loaded it");

    let target = Target::from_config(&fixture.config);
    let report = audit::run(&target, &Options::at(later)).await.unwrap();
    assert!(report.clean, "{report}");
    // What is left in Redis of an archived sale is named, and archiving it again removes it.
    let mut redis = fixture.redis().await;
    let mut set = redis::cmd("HSET");
    let () = set.arg("{gone}:sale").arg("loaded").arg("old").query_async(&mut redis).await.unwrap();
    let report = audit::run(&target, &Options::at(later)).await.unwrap();
    assert!(report.to_string().contains("archive it again"), "{report}");
    assert_eq!(gone.archive("a7", AFTER).await, Ok(Archived::Already));
    assert_eq!(gone.keys().await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn archiving_is_finished_from_any_crash_point_on() {
    let fixture = Fixture::start().await;
    let mut resumed = 0;
    let calls = at_every_call(async |call, cut| {
        let name = format!("cut-{call}-{}", format!("{cut:?}").to_lowercase());
        let cut_off = OnSale::publish(&fixture, &name).await;
        cut_off.buy_paid("owner").await;
        let dying = Crashing::at(&fixture.ports, call, cut);
        let died = archive(&dying, &cut_off.sale, &epoch(&format!("d-{name}")), AFTER).await;
        let died = died.is_err() || dying.has_died();
        // Either the sale is as before, or the sweeper finishes what was begun.
        let before = cut_off.published().await.lifecycle;
        // The lease of the one that died is over.
        let later = AFTER.plus_seconds(40);
        let swept = reconcile_all(&fixture.ports, &epoch(&format!("s-{name}")), later).await;
        let swept = swept.unwrap();
        assert_eq!(swept.report.failed, 0, "{name}: {swept:?}");
        match before {
            Lifecycle::Listed => {
                let redis = fixture
                    .ports
                    .seats()
                    .epoch(&InventoryId::whole(cut_off.sale.clone()))
                    .await
                    .unwrap();
                assert!(redis.is_some() && redis == cut_off.published().await.epoch, "{name}");
                assert!(cut_off.is_listed().await);
                let again = cut_off.archive(&format!("again-{name}"), later).await;
                assert_eq!(again, Ok(Archived::Now), "{name}");
            }
            Lifecycle::Unloading => {
                resumed += 1;
                assert_eq!(swept.report.unloaded, 1, "{name}");
            }
            Lifecycle::Archived => {}
        }
        assert_eq!(cut_off.published().await.lifecycle, Lifecycle::Archived, "{name}");
        assert!(!cut_off.is_listed().await && cut_off.keys().await.is_empty(), "{name}");
        died
    })
    .await;
    println!("archiving makes {calls} calls; the sweeper finished {resumed} of {} cuts", 2 * calls);
    assert!(resumed >= 4, "after it is retired there are at least three calls");
}

#[tokio::test(flavor = "multi_thread")]
async fn sales_are_archived_by_their_age() {
    let fixture = Fixture::start().await;
    let (old, held) =
        (OnSale::publish(&fixture, "old").await, OnSale::publish(&fixture, "held").await);
    old.buy_paid("owner").await;
    let pending = held.buy("pending").await;
    let ports = &fixture.ports;
    let days = |days: i64| CLOSES.plus_seconds(days * DAY_SECONDS);
    let by_age_at = async |now: Timestamp, name: &str| {
        let over = reconcile_over(ports, now, name).await;
        let mut tokens = 0;
        let token = || {
            tokens += 1;
            Ok(epoch(&format!("{name}-{tokens}")))
        };
        by_age(ports, &over, 30, token, now, std::future::pending()).await.unwrap()
    };
    assert_eq!(by_age_at(days(30).plus_ms(-1), "young").await, Vec::<SaleId>::new());
    let archived = by_age_at(days(30), "due").await;
    assert!(archived.contains(&old.sale), "{archived:?}");
    assert!(!old.is_listed().await && old.keys().await.is_empty());
    // The sweep has ended the order, after which nothing of its sale is undecided.
    assert_eq!(fixture.state(pending.number).await, Some(OrderState::Expired));
    assert!(archived.contains(&held.sale) && !held.is_listed().await);
    assert!(ports.catalogue().sales().await.unwrap().len() == 1, "the fixture's own sells on");
    // No time: nothing is done.
    let next = OnSale::publish(&fixture, "next").await;
    let over = vec![(next.sale.clone(), CLOSES)];
    let token = || Ok(epoch("no-time"));
    let none = by_age(ports, &over, 30, token, days(40), std::future::ready(())).await.unwrap();
    assert!(none.is_empty() || !next.is_listed().await, "{none:?}");
}

/// The sales that a run of each minute of an hour finds over.
async fn reconcile_over(ports: &LivePorts, now: Timestamp, name: &str) -> Vec<(SaleId, Timestamp)> {
    let mut over = Vec::new();
    for minute in 0..60 {
        let at = now.plus_seconds(60 * minute);
        let ends = [(); 3].map(|()| std::future::pending::<()>());
        let run = run_until(ports, &epoch(&format!("{name}-{minute}")), at, ends).await.unwrap();
        over.extend(run.over);
    }
    over.sort();
    over.dedup();
    over
}

/// Sales that are open, and that were archived at some time.
const OPEN: usize = 200;
const EVER: usize = 10_000;

/// What one path costs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Cost {
    requests: f64,
    read_units: f64,
    redis: u64,
}

/// Puts sales into the catalogue that were archived at some time: a header, a chunk, a counter each.
async fn archived_sales(fixture: &Fixture, count: usize) {
    let tables = &fixture.config.dynamodb.tables;
    let endpoint = fixture.config.dynamodb.endpoint.clone();
    let config = StoreConfig { endpoint, ..StoreConfig::new(tables.clone()) };
    let dynamo = Dynamo::new(&sdk_config(), config);
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let number = |number: i64| AttributeValue::N(number.to_string());
    let mut items: Vec<HashMap<String, AttributeValue>> = Vec::new();
    for index in 0..count {
        let name = format!("past-{index}");
        let json = serde_json::to_vec(sale(&name).file()).unwrap();
        let item = |sk: &str, others: Vec<(&str, AttributeValue)>| {
            let keys = [("pk", text(&name)), ("sk", text(sk))].into_iter().chain(others);
            keys.map(|(name, value)| (name.to_owned(), value)).collect()
        };
        items.push(item(
            "sale",
            vec![
                ("version", number(1)),
                ("file", text("0000000001-aa")),
                ("chunks", number(1)),
                ("lifecycle", text("archived")),
            ],
        ));
        let data = AttributeValue::B(Blob::new(json));
        items.push(item("file#0000000001-aa#000", vec![("data", data)]));
    }
    for batch in items.chunks(25) {
        let put = |item: &HashMap<String, AttributeValue>| {
            let put = PutRequest::builder().set_item(Some(item.clone())).build().unwrap();
            WriteRequest::builder().put_request(put).build()
        };
        let written = dynamo
            .client()
            .batch_write_item()
            .request_items(&tables.sales, batch.iter().map(put).collect())
            .send()
            .await
            .unwrap();
        assert!(written.unprocessed_items.is_none_or(|items| items.is_empty()));
    }
}

/// What each path costs a process that has just started, by name.
async fn costs(fixture: &Fixture, round: &str) -> Vec<(&'static str, Cost)> {
    let endpoint = fixture.config.dynamodb.endpoint.clone().unwrap();
    let proxy = Proxy::start(&endpoint).await.unwrap();
    let mut config = fixture.config.clone();
    config.dynamodb.endpoint = Some(proxy.url().to_owned());
    let mut redis = fixture.redis().await;
    let mut commands = async || {
        let info: String = redis::cmd("INFO").arg("stats").query_async(&mut redis).await.unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        line.unwrap().trim().parse::<u64>().unwrap()
    };
    let mut costs = Vec::new();
    for path in ["list", "sweep", "sweep and repair of all", "stuck", "audit"] {
        let app = App::from_config(&config).await.unwrap();
        let ports = &app.ports;
        let (before, before_redis) = (proxy.counted(), commands().await);
        match path {
            "list" => {
                let first = ports.catalogue().listed(None, 100).await.unwrap();
                let second = ports.catalogue().listed(first.next.as_ref(), 200).await.unwrap();
                assert_eq!(first.sales.len() + second.sales.len(), OPEN + 1);
                assert!(second.next.is_none());
            }
            "sweep" => {
                let ends = [(); 3].map(|()| std::future::pending::<()>());
                let run = run_until(ports, &epoch(round), NOW, ends).await.unwrap();
                assert!(run.report.is_quiet() && run.unread.is_empty(), "{run:?}");
            }
            "sweep and repair of all" => {
                let run = reconcile_all(ports, &epoch(round), NOW).await.unwrap();
                assert!(run.report.is_quiet() && run.unread.is_empty(), "{run:?}");
            }
            "stuck" => assert!(stuck(ports, 120, NOW).await.unwrap().stuck.is_empty()),
            _ => {
                let report = audit::run(&Target::from_config(&config), &Options::at(NOW)).await;
                let report = report.unwrap();
                assert!(report.clean, "{report}");
            }
        }
        let counted = proxy.counted().since(&before);
        // One of them is this count itself.
        let redis = commands().await - before_redis - 1;
        costs.push((path, Cost { requests: counted.calls, read_units: counted.reads, redis }));
    }
    costs
}

#[tokio::test(flavor = "multi_thread")]
async fn no_path_is_linear_in_the_sales_that_ever_were() {
    if backends::is_foreign("it counts what our DynamoDB says it consumed") {
        return;
    }
    let fixture = Fixture::start().await;
    let names: Vec<String> = (0..OPEN).map(|index| format!("open-{index}")).collect();
    for some in names.chunks(16) {
        join_all(some.iter().map(|name| OnSale::publish(&fixture, name))).await;
    }
    let before = costs(&fixture, "before").await;
    archived_sales(&fixture, EVER).await;
    let after = costs(&fixture, "after").await;
    println!("{OPEN} open sales; archived ones: none, then {EVER}");
    for ((path, before), (_, after)) in before.iter().zip(&after) {
        println!("{path:<24} before {before:?}\n{:<24} after  {after:?}", "");
        match *path {
            // It holds every record against the rules: that is what it is for. Redis is asked no more.
            "audit" => assert_eq!(before.redis, after.redis, "{path}"),
            _ => assert_eq!(before, after, "{path}"),
        }
    }
}
