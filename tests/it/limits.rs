//! The limits of the services, as an engine meets them on this machine.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::capacity::SLOT_UNITS_PER_SECOND;
use engine::domain::order::OrderState;
use engine::domain::sale::SaleFile;
use engine::ports::{MAX_REQUEST_ARGUMENTS, Orders as _, Ports as _};
use fake_limits::{Cache, Limits, Quotas, Throttled, table};
use loadtest::arrivals::Shape;
use loadtest::credentials::Credentials;
use loadtest::profile::LoadProfile;
use loadtest::published::Published;
use loadtest::{CallbackRepeats, Load, demo, replay};
use local::payment;
use local::stores;
use local::throttled;
use local::up::{Engine, Options};
use ops::audit;
use ops::audit::facts::LedgerFacts;
use serde_json::json;
use shared::dynamodb::Dynamo;
use shared::redis::Topology;
use tokio::sync::watch;

use crate::backends;

/// Senders of forged callbacks, each of which sends the next one when the last was answered.
const FORGERS: usize = 32;
/// Number of true callbacks that come to each of the two routes.
const TRUE_CALLBACKS: usize = 20;
/// Time that anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(300);
/// Write units a second that the tables are warmed for that are to be drained: one large write every other
/// second takes as much from each of them, which a slow machine manages as well.
const DRAINED_WRITES: u32 = 800;

/// The quotas with the serverless cache, and with payments at a rate that a crowd of tests needs.
fn quotas() -> Quotas {
    Quotas { payments_per_second: 1000, cache: Cache::Serverless, ..Quotas::default() }
}

/// The limits with these quotas.
fn limits() -> Limits {
    Limits::Aws(quotas())
}

/// Asks until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asked_since = Instant::now();
    while !is_so().await {
        assert!(asked_since.elapsed() < DEADLINE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// An engine under limits that sells from a minute ago on what a sale file says beside its title,
/// currency and times.
async fn selling(limits: Limits, mut sale: serde_json::Value) -> Engine {
    let now = Timestamp::now();
    (sale["title"], sale["currency"]) = (json!("A hall"), json!("EUR"));
    sale["opens_at"] = json!(now.plus_seconds(-60));
    sale["closes_at"] = json!(now.plus_seconds(3600));
    let sale: SaleFile = serde_json::from_value(sale).unwrap();
    let options = Options { limits, ..Options::ephemeral() };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    demo::publish(&engine, &[sale]).await.unwrap();
    engine
}

#[test]
fn the_engine_counts_with_the_limits_that_the_fakes_enforce() {
    let count = |limit: &fake_limits::table::Limit| usize::try_from(limit.count()).unwrap();
    assert_eq!(MAX_REQUEST_ARGUMENTS, count(&table::MAX_ARGUMENTS));
    assert_eq!(SLOT_UNITS_PER_SECOND, u32::try_from(table::SLOT_ECPU.count()).unwrap());
}

fn counted(throttled: &Throttled, service: &str, reason: &str) -> u64 {
    let of = |row: &&fake_limits::Throttle| row.service == service && row.reason.contains(reason);
    throttled.counts.iter().filter(of).map(|row| row.times).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sale_sells_out_under_the_limits_of_aws_and_its_report_says_what_was_throttled() {
    if backends::is_foreign("a replay starts servers of its own") {
        return;
    }
    let options = replay::Options {
        limits: limits(),
        spectators: replay::Spectators::default(),
        published: Published::named("tixcraft-2024").unwrap(),
        scale: 0.001,
        load: Load::Open {
            arrivals: 890,
            within_seconds: 1.0,
            shape: Shape::Opening,
            connections: 100,
        },
        profile: LoadProfile::Paying,
        pages: None,
        seed: 7,
        most: DEADLINE,
        rate_per_second: 1000,
        admission: replay::admission::AdmissionOptions::default(),
        progress: false,
    };
    let outcome = replay::run(&options).await.unwrap();
    let said = outcome.load_test.tables();
    println!("{said}\n{}", outcome.summary());
    assert!(outcome.is_good());
    assert!(
        said.contains("limits of AWS; tables warmed for 4000 write and 12000 read units"),
        "{said}"
    );
    let throttled = outcome.load_test.throttled.unwrap();
    assert_eq!(throttled.limits, limits());
    let json = serde_json::to_value(&throttled).unwrap();
    assert_eq!(json["limits"]["aws"]["warm_writes"], 4000, "{json}");
}

/// Takes the capacity of the tables away, by writes of 390 units whose condition fails: they are charged
/// and change nothing. Returns how many of its own were throttled.
async fn drain(dynamo: &Dynamo, mut stop: watch::Receiver<bool>) -> u64 {
    let tables = &dynamo.config().tables;
    let large = AttributeValue::S("x".repeat(390_000));
    let number = |number: u64| AttributeValue::N(number.to_string());
    let mut throttled = 0;
    for round in 0.. {
        let put = dynamo.client().put_item().item("large", large.clone());
        let put = put.condition_expression("attribute_exists(large)");
        let put = if round % 2 == 0 {
            let put = put.table_name(&tables.orders).item("gene", number(round + 1_000_000));
            put.item("sk", AttributeValue::S("none".to_owned()))
        } else {
            let put = put.table_name(&tables.seats).item("sk", number(round));
            put.item("pk", AttributeValue::S(format!("none#{round}")))
        };
        let refused = put.send().await.unwrap_err().into_service_error();
        throttled += u64::from(matches!(refused, PutItemError::ThrottlingException(_)));
        let pause = tokio::time::sleep(Duration::from_millis(10));
        tokio::select! {
            () = pause => {}
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    throttled
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_buys_while_the_tables_are_throttled_and_nothing_goes_wrong() {
    if backends::is_foreign("limits are those of servers of ours") {
        return;
    }
    let sale = json!({
        "sale": "drained", "limit_per_buyer": 4, "pay_window_seconds": 5,
        "gate": { "user_lock_ms": 500, "rate_per_second": 1000 },
        "tiers": [{ "tier": "hall", "name": "Hall", "price_minor": 2500, "general_admission": 300 }],
    });
    let limits = Limits::Aws(Quotas { warm_writes: DRAINED_WRITES, ..quotas() });
    let engine = selling(limits, sale).await;
    let dynamo = stores::dynamo(engine.endpoints());
    let (stop, stopped) = watch::channel(false);
    let drained = tokio::spawn(async move { drain(&dynamo, stopped).await });
    // Each of ours is one item, in one partition.
    let throttled = || counted(&engine.throttled(), "DynamoDB", "the table has not grown");
    until("the tables are drained", async || throttled() > 0).await;
    let ledger = engine.data_dir().join("ledger.jsonl");
    let crowd = loadtest::Options {
        url: engine.url().to_owned(),
        sales: vec!["drained".to_owned()],
        load: Load::Closed { arrivals: 300, at_once: 30 },
        profile: LoadProfile::Fickle,
        seed: 11,
        most: DEADLINE,
        may_take_longer: false,
        ledger: Some(ledger.clone()),
        progress: false,
        callback_repeats: CallbackRepeats::default(),
        pages: None,
        grace: engine.endpoints().grace(),
        endpoints: Some(engine.endpoints().clone()),
        rehearsal: None,
        crowd: loadtest::people::plan::Crowd::default(),
    };
    let mut report = loadtest::run(&crowd, Credentials::new(engine.secrets())).await.unwrap();
    stop.send_replace(true);
    let own = drained.await.unwrap();
    demo::settle(&engine, Instant::now() + DEADLINE).await.unwrap();
    report.record_throttled(engine.throttled());
    println!("{}\n{}", report.tables(), engine.throttled());
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert!(report.is_good());
    let facts = Some(LedgerFacts::read(&ledger).unwrap());
    let audited = audit::Options { ledger: facts, ..audit::Options::at(Timestamp::now()) };
    let audit = audit::run(&backends::audited(engine.endpoints()), &audited).await.unwrap();
    assert!(audit.clean, "{audit}");
    // On a slow machine all of it may be ours.
    assert!(own > 0 && throttled() >= own, "{} in all, {own} of ours", throttled());
    engine.stop().await.unwrap();
}

/// Sends forged callbacks to the route of the API until it is stopped. Returns the number that was
/// answered with each status.
async fn forge(url: String, stop: watch::Receiver<bool>) -> BTreeMap<u16, u64> {
    let client = reqwest::Client::new();
    let mut answered = BTreeMap::new();
    while !*stop.borrow() {
        let post = client.post(&url).header(payment::SIGNATURE_HEADER, "t=1,v1=00");
        let Ok(reply) = post.body("{}").send().await else { continue };
        *answered.entry(reply.status().as_u16()).or_default() += 1;
    }
    answered
}

/// An order that a buyer has just made.
async fn bought(engine: &Engine, client: &reqwest::Client, buyer: &str) -> (OrderNumber, Money) {
    let token = engine.token(buyer).unwrap();
    let post = |path: &str, body: serde_json::Value| {
        client.post(format!("{}{path}", engine.url())).bearer_auth(&token).json(&body).send()
    };
    let admission = post("/sales/flooded/admissions", json!({ "tickets": 1 })).await.unwrap();
    let admission: serde_json::Value = admission.json().await.unwrap();
    let lines = json!([{ "tier": "hall", "best": { "count": 1 } }]);
    let body = json!({ "admission": admission["token"], "lines": lines });
    let order = post("/sales/flooded/orders", body).await.unwrap();
    let order: serde_json::Value = order.json().await.unwrap();
    let euros = Money { amount_minor: MinorUnits(2500), currency: Currency::new("EUR").unwrap() };
    (order["order"].as_str().unwrap().parse().unwrap(), euros)
}

/// A flood of forged callbacks at the route that everybody knows: those at the entry are decided as ever. A
/// provider repeats what is refused after a minute or more, so one attempt is all that a callback has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_forged_callbacks_leaves_the_true_ones_at_the_entry_decided() {
    if backends::is_foreign("limits are those of servers of ours") {
        return;
    }
    let sale = json!({
        "sale": "flooded", "limit_per_buyer": 1, "pay_window_seconds": 900,
        "gate": { "user_lock_ms": 1, "rate_per_second": 1000 },
        "tiers": [{ "tier": "hall", "name": "Hall", "price_minor": 2500, "general_admission": 100 }],
    });
    let engine = selling(limits(), sale).await;
    let client = reqwest::Client::new();
    let mut orders = Vec::new();
    for buyer in 0..2 * TRUE_CALLBACKS {
        orders.push(bought(&engine, &client, &format!("buyer{buyer}")).await);
    }

    let api = format!("{}{}", engine.url(), payment::callback_path());
    let entry = format!("{}{}", engine.url(), payment::entry_path(engine.secrets()));
    let (stop, stopped) = watch::channel(false);
    let forgers: Vec<_> =
        (0..FORGERS).map(|_| tokio::spawn(forge(api.clone(), stopped.clone()))).collect();
    // The burst of the route is spent first, if the machine is fast enough for that.
    let deadline = Instant::now() + Duration::from_secs(3);
    while counted(&engine.throttled(), "API Gateway", "429") == 0 && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let calls = orders.iter().enumerate().map(|(index, (order, amount))| {
        let url = if index % 2 == 0 { &entry } else { &api };
        let (engine, client) = (&engine, &client);
        async move {
            tokio::time::sleep(Duration::from_millis(50) * u32::try_from(index).unwrap()).await;
            let now = Timestamp::now();
            let body = payment::captured(&format!("pi_{index}"), *order, *amount, now).to_string();
            let signature = engine.sign_payment(body.as_bytes());
            let sent = Instant::now();
            let post = client.post(url).header(payment::SIGNATURE_HEADER, signature);
            let reply = post.body(body).send().await.unwrap();
            (index % 2 == 0, reply.status().as_u16(), sent.elapsed(), reply.text().await.unwrap())
        }
    });
    let answers = futures_util::future::join_all(calls).await;
    stop.send_replace(true);
    let mut forged: BTreeMap<u16, u64> = BTreeMap::new();
    for forger in forgers {
        for (status, times) in forger.await.unwrap() {
            *forged.entry(status).or_default() += times;
        }
    }
    println!("forged, by status: {forged:?}");
    for (name, is_entry) in [("the API", false), ("the entry", true)] {
        let of = answers.iter().filter(|(at_entry, ..)| *at_entry == is_entry);
        let mut statuses: BTreeMap<u16, u32> = BTreeMap::new();
        let mut longest = Duration::ZERO;
        for (_, status, elapsed, _) in of {
            *statuses.entry(*status).or_default() += 1;
            longest = longest.max(*elapsed);
        }
        println!("true callbacks at {name}, by status: {statuses:?}, the longest {longest:?}");
    }
    println!("{}", engine.throttled());
    for (_, status, _, body) in answers.iter().filter(|(at_entry, ..)| *at_entry) {
        // On a slow machine it may be kept, to be decided without being reported again.
        let is_taken = [r#"{"outcome":"accepted"}"#, r#"{"outcome":"kept"}"#].contains(&&**body);
        assert!(*status == 200 && is_taken, "{status} {body}");
    }
    let at_entry = async || {
        let mut states = Vec::new();
        for (order, _) in orders.iter().step_by(2) {
            let order = engine.app().ports.orders().get(*order).await.unwrap().unwrap();
            states.push(order.state);
        }
        states
    };
    until("every order of the entry is decided", async || {
        at_entry().await == [OrderState::Paid; TRUE_CALLBACKS]
    })
    .await;
    let refused = forged.keys().all(|status| [401, 429, 500].contains(status));
    assert!(refused && forged.contains_key(&401), "{forged:?}");
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_service_refuses_as_the_real_one_does() {
    if backends::is_foreign("limits are those of servers of ours") {
        return;
    }
    let options = Options { limits: limits(), ..Options::ephemeral() };
    let engine = Engine::start(backends::engine(options)).await.unwrap();

    // DynamoDB: one partition takes 1,000 units, and three items of 390 KB are more.
    let dynamo = stores::dynamo(engine.endpoints());
    let table = &dynamo.config().tables.seats;
    let large = AttributeValue::S("x".repeat(390_000));
    let put = |sk: u32| {
        let put = dynamo.client().put_item().table_name(table);
        let put = put.item("pk", AttributeValue::S("hot".to_owned()));
        put.item("sk", AttributeValue::N(sk.to_string())).item("large", large.clone()).send()
    };
    // As many at once as are needed, and again where the machine takes seconds for them.
    let mut throttled = None;
    until("a partition is throttled", async || {
        let puts = futures_util::future::join_all((0..4).map(put)).await;
        throttled = puts.into_iter().find_map(Result::err);
        throttled.is_some()
    })
    .await;
    let throttled = throttled.unwrap().into_service_error();
    let PutItemError::ThrottlingException(refusal) = &throttled else {
        panic!("it is throttled: {throttled:?}");
    };
    let reason = refusal.throttling_reasons().first().unwrap();
    assert_eq!(reason.reason(), Some("TableWriteKeyRangeThroughputExceeded"));
    assert!(reason.resource().unwrap().ends_with(table.as_str()), "{reason:?}");

    // Redis: the engine may not do what the serverless cache cannot, and its scripts run.
    let Topology::Single(url) = engine.stack().engine_topology() else { panic!("it is one") };
    let mut connection = backends::redis(&url).await;
    for command in [&["KEYS", "*"][..], &["CONFIG", "GET", "*"], &["CLIENT", "LIST"]] {
        let mut asked = redis::cmd(command[0]);
        let refused = asked.arg(&command[1..]).query_async::<redis::Value>(&mut connection).await;
        assert_eq!(refused.unwrap_err().code(), Some("NOPERM"), "{command:?}");
    }
    let mut script = redis::cmd("EVAL");
    script.arg("return redis.call('SET', KEYS[1], 'v')").arg(1).arg("k");
    script.query_async::<()>(&mut connection).await.unwrap();
    let mut admin = engine.stack().redis().unwrap().connect().await.unwrap();
    let mut policy = redis::cmd("CONFIG");
    policy.arg("GET").arg("maxmemory-policy");
    let policy: (String, String) = policy.query_async(&mut admin).await.unwrap();
    assert_eq!(policy.1, "volatile-lru");

    // A slot has 30,000 units a second: forty megabytes are more than it ever has at once, and wait.
    let large = "v".repeat(40 << 20);
    let mut set = redis::cmd("SET");
    set.arg("{hot}").arg(&large).query_async::<()>(&mut connection).await.unwrap();
    let stored: String = redis::cmd("GET").arg("{hot}").query_async(&mut connection).await.unwrap();
    assert!(stored == large);

    // Stripe: twenty searches a second. Sixty at once are more, unless the machine takes seconds for them.
    let client = reqwest::Client::new();
    let search = format!("{}/v1/payment_intents/search?query=x", engine.provider().url());
    let mut refused = None;
    until("searches are refused", async || {
        let asks = (0..60).map(|_| client.get(&search).bearer_auth(fake_payments::API_KEY).send());
        let replies = futures_util::future::join_all(asks).await;
        refused = replies.into_iter().map(Result::unwrap).find(|reply| reply.status() == 429);
        refused.is_some()
    })
    .await;
    let refused = refused.unwrap();
    assert_eq!(refused.headers()["stripe-rate-limited-reason"], "endpoint-rate");
    let body: serde_json::Value = refused.json().await.unwrap();
    assert_eq!(body["error"]["code"], "rate_limit");

    // API Gateway: headers of more than 10,240 bytes.
    let long = client.get(format!("{}/sales", engine.url())).header("x-long", "y".repeat(10_240));
    assert_eq!(long.send().await.unwrap().status(), 431);

    let said = engine.throttled();
    assert!(counted(&said, "DynamoDB", "one partition") >= 1, "{said}");
    assert!(counted(&said, "Stripe", "endpoint-rate (GET search)") >= 1, "{said}");
    assert_eq!(counted(&said, "API Gateway", "431"), 1, "{said}");
    assert!(counted(&said, "ElastiCache Serverless", "no units left") >= 1, "{said}");
    let file = engine.data_dir().join(throttled::FILE);
    let is_written = || counted(&throttled::read(&file), "API Gateway", "431") > 0;
    until("what was throttled is written to the file", async || is_written()).await;
    engine.stop().await.unwrap();
}
