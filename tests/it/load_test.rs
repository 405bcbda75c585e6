//! The crowd: it comes by the clock whatever becomes of those before it, measures from when a request
//! was due, shows every behaviour of its profile to a real engine, and notices an engine that answers wrongly.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::SaleFile;
use fake_limits::gateway::{FUNCTION_FAILED, FUNCTION_THROTTLED};
use fake_limits::{Limits, Throttle, Throttled};
use loadtest::arrivals::Shape;
use loadtest::credentials::Credentials;
use loadtest::demo;
use loadtest::profile::LoadProfile;
use loadtest::published::{PUBLISHED, Published};
use loadtest::replay::{self, admission::AdmissionOptions};
use loadtest::report::Report;
use loadtest::thresholds::Thresholds;
use loadtest::{CallbackRepeats, Load, Options, Shares, page, seconds};
use local::data_dir::DataDir;
use local::up::{self, Engine};
use ops::audit;
use ops::audit::facts::LedgerFacts;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;

use super::backends;

/// Time that anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(300);

/// A sale of standing places only.
fn standing(sale: &str, spots: u32, pay_window_seconds: u32) -> Value {
    json!({
        "sale": sale, "title": "A field", "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": pay_window_seconds,
        "gate": { "rate_per_second": 20000 },
        "tiers": [{ "tier": "field", "name": "Field", "price_minor": 900, "general_admission": spots }]
    })
}

/// A request as the stub reads it.
#[derive(Debug, Clone)]
struct Heard {
    path: String,
    user: String,
    body: String,
}

/// How the stub answers one request: a status and a body.
type Answers = dyn Fn(&Heard) -> (u16, Value) + Send + Sync;

/// A gateway that has nothing left, and answers admissions as a test wants.
struct Stub {
    url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
    under_way: Arc<Mutex<(usize, usize)>>,
}

/// What holds back the stub's answers to admissions.
#[derive(Clone)]
enum Until {
    /// As many requests are under way at once as the barrier counts.
    AtOnce(Arc<Barrier>),
    /// Some time has passed: an engine that is slow.
    Elapsed(Duration),
}

impl Stub {
    async fn start(
        until: Until,
        answers: impl Fn(&Heard) -> (u16, Value) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stub = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            heard: Arc::default(),
            under_way: Arc::default(),
        };
        let (heard, under_way) = (Arc::clone(&stub.heard), Arc::clone(&stub.under_way));
        let answers: Arc<Answers> = Arc::new(answers);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (heard, under_way) = (Arc::clone(&heard), Arc::clone(&under_way));
                tokio::spawn(serve(stream, until.clone(), Arc::clone(&answers), heard, under_way));
            }
        });
        stub
    }

    /// The users that asked for an admission, in order.
    fn askers(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        let asks = heard.iter().filter(|heard| heard.path.ends_with("/admissions"));
        asks.map(|heard| heard.user.clone()).collect()
    }

    /// The most admissions that were asked for at once.
    fn most_at_once(&self) -> usize {
        self.under_way.lock().unwrap().1
    }
}

async fn serve(
    stream: TcpStream,
    until: Until,
    answers: Arc<Answers>,
    heard: Arc<Mutex<Vec<Heard>>>,
    under_way: Arc<Mutex<(usize, usize)>>,
) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        heard.lock().unwrap().push(request.clone());
        let (status, body) = if request.path.ends_with("/availability") {
            (200, json!({ "tiers": [{ "tier": "field", "available": 0, "free": "AAAA" }] }))
        } else if request.path == "/sales/stub" {
            (200, json!({ "file": standing("stub", 20, 5) }))
        } else {
            {
                let mut under_way = under_way.lock().unwrap();
                under_way.0 += 1;
                under_way.1 = under_way.1.max(under_way.0);
            }
            match &until {
                Until::AtOnce(barrier) => {
                    barrier.wait().await;
                }
                Until::Elapsed(time) => tokio::time::sleep(*time).await,
            }
            under_way.lock().unwrap().0 -= 1;
            answers(&request)
        };
        let retry =
            body.get("retry_after_seconds").map(|after| format!("retry-after: {after}\r\n"));
        let (retry, body) = (retry.unwrap_or_default(), body.to_string());
        let head =
            format!("HTTP/1.1 {status} X\r\n{retry}content-length: {}\r\n\r\n{body}", body.len());
        if stream.get_mut().write_all(head.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Heard> {
    let (mut path, mut user, mut length) = (None, String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        let line = line.trim_end();
        let Some(path) = path.as_ref() else {
            path = Some(line.split(' ').nth(1)?.to_owned());
            continue;
        };
        if line.is_empty() {
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.ok()?;
            let body = String::from_utf8(body).unwrap();
            return Some(Heard { path: String::clone(path), user, body });
        }
        let (name, value) = line.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => {
                let claims = BASE64_URL_SAFE_NO_PAD.decode(value.split('.').nth(1).unwrap());
                let claims: Value = serde_json::from_slice(&claims.unwrap()).unwrap();
                user = claims["sub"].as_str().unwrap().to_owned();
            }
            _ => {}
        }
    }
}

fn sold_out(_: &Heard) -> (u16, Value) {
    (409, json!({ "type": "/problems/sold-out" }))
}

fn open(arrivals: u64, within_seconds: f64, connections: usize) -> Load {
    Load::Open { arrivals, within_seconds, shape: Shape::Opening, connections }
}

async fn run_on(url: &str, load: Load, profile: LoadProfile, seed: u64) -> Report {
    run_repeating(CallbackRepeats::default(), url, load, profile, seed).await
}

async fn run_repeating(
    callback_repeats: CallbackRepeats,
    url: &str,
    load: Load,
    profile: LoadProfile,
    seed: u64,
) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let secrets = DataDir::open(dir.path()).unwrap().secrets().unwrap();
    let options = Options {
        url: url.to_owned(),
        sales: vec!["stub".to_owned()],
        load,
        profile,
        seed,
        most: DEADLINE,
        may_take_longer: false,
        ledger: None,
        progress: false,
        pages: None,
        callback_repeats,
        grace: Grace::NONE,
        endpoints: None,
        rehearsal: None,
        crowd: loadtest::people::plan::Crowd::default(),
    };
    let run = loadtest::run(&options, Credentials::new(&secrets));
    tokio::time::timeout(DEADLINE, run).await.expect("the crowd ends").unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_open_loop_does_not_wait_for_answers() {
    // Nobody is answered before all forty have asked: whoever waits for an answer waits for ever.
    let stub = Stub::start(Until::AtOnce(Arc::new(Barrier::new(40))), sold_out).await;
    let report = run_on(&stub.url, open(40, 0.3, 100), LoadProfile::Paying, 1).await;
    assert_eq!(stub.most_at_once(), 40);
    assert_eq!((report.buyers, report.refusals["sold-out"]), (40, 40));

    // The control: ten in a closed loop are never more than ten.
    let stub = Stub::start(Until::AtOnce(Arc::new(Barrier::new(10))), sold_out).await;
    let closed = Load::Closed { arrivals: 40, at_once: 10 };
    let report = run_on(&stub.url, closed, LoadProfile::Paying, 1).await;
    assert_eq!(stub.most_at_once(), 10);
    assert_eq!(report.buyers, 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_waits_for_a_slow_engine_is_measured_from_when_they_were_due() {
    const SLOW: Duration = Duration::from_millis(20);
    let stub = Stub::start(Until::Elapsed(SLOW), sold_out).await;
    // Twenty are due within 10 ms and go through one connection, 20 ms each.
    let report = run_on(&stub.url, open(20, 0.01, 1), LoadProfile::Paying, 1).await;
    assert_eq!(stub.most_at_once(), 1);
    let latency = report.latency["token-gate"];
    let slow_ms = SLOW.as_secs_f64() * 1000.0;
    let (response, service) = (latency.response, latency.service);
    assert_eq!((response.count, service.count), (20, 20));
    assert!(service.p50_ms >= slow_ms, "{service:?}");
    assert!(response.max_ms >= 20.0 * slow_ms - 10.0, "the last waited for all: {response:?}");
    assert!(response.p50_ms >= 9.0 * slow_ms - 10.0, "half waited for nine others: {response:?}");
    assert!(report.generator.wait.max_ms >= 18.0 * slow_ms, "{:?}", report.generator);
    // A clock that starts when a request is sent sees nothing of it: not even the longest request took as
    // long as the last one waited, behind nineteen others.
    let waited_ms = 19.0 * slow_ms - 10.0;
    let is_unseen = service.max_ms <= 1.01 * response.max_ms - waited_ms;
    assert!(is_unseen, "{service:?} {response:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_seed_brings_the_same_people_in_the_same_order() {
    let mut crowds = Vec::new();
    for seed in [7, 7, 8] {
        let stub = Stub::start(Until::Elapsed(Duration::ZERO), sold_out).await;
        run_on(&stub.url, open(50, 0.05, 1), LoadProfile::Paying, seed).await;
        let bodies: Vec<String> =
            stub.heard.lock().unwrap().iter().map(|heard| heard.body.clone()).collect();
        crowds.push((stub.askers(), bodies));
    }
    assert_eq!(crowds[0], crowds[1]);
    assert_eq!(crowds[0].0.len(), 50);
    assert_ne!(crowds[0].1, crowds[2].1, "another seed wants other numbers of tickets");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_come_back_when_told_to_until_they_give_up() {
    let first = Mutex::new(std::collections::HashSet::new());
    // Whoever comes for the first time is told to come back; whoever does is told that all is gone.
    let stub = Stub::start(Until::Elapsed(Duration::ZERO), move |heard| {
        if first.lock().unwrap().insert(heard.user.clone()) {
            return (
                429,
                json!({ "type": "/problems/too-many-requests", "retry_after_seconds": 1 }),
            );
        }
        sold_out(heard)
    });
    let stub = stub.await;
    let report = run_on(&stub.url, open(200, 0.2, 50), LoadProfile::Paying, 3).await;
    assert_eq!(report.refusals["too-many-requests"], 200);
    assert!(report.returns > 0 && report.gave_up > 0, "{} came back", report.returns);
    assert_eq!(report.returns + report.gave_up, 200);
    assert_eq!(report.refusals["sold-out"], report.returns);
    assert_eq!(stub.askers().len() as u64, 200 + report.returns);
    assert_eq!(report.anomalies, Vec::<String>::new());
}

/// What API Gateway answers when it could not invoke a function, and when the function failed.
fn gateway_500() -> (u16, Value) {
    (500, json!({ "message": "Internal Server Error" }))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_throttled_function_is_waited_out_and_one_that_failed_is_found_by_its_count() {
    let first = Mutex::new(std::collections::HashSet::new());
    let stub = Stub::start(Until::Elapsed(Duration::ZERO), move |heard| {
        if first.lock().unwrap().insert(heard.user.clone()) {
            return gateway_500();
        }
        sold_out(heard)
    });
    let stub = stub.await;
    let mut report = run_on(&stub.url, open(50, 0.1, 50), LoadProfile::Paying, 3).await;
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert_eq!((report.repeats_because["function-throttled"], report.repeats), (50, 50));
    assert_eq!(report.refusals, [("sold-out".into(), 50)].into());
    let counted = |reason: &str| Throttled {
        counts: vec![Throttle {
            service: "API Gateway".to_owned(),
            reason: reason.to_owned(),
            times: 2,
        }],
        ..Throttled::default()
    };
    report.record_throttled(counted(FUNCTION_THROTTLED));
    assert!(report.is_good(), "{:?}", report.anomalies);
    report.record_throttled(counted(FUNCTION_FAILED));
    assert_eq!(report.anomaly_count, 2);
    assert!(!report.is_good() && report.anomalies[0].contains("the function failed"));
}

/// A stub with one order, whose callbacks fail until as many came; what was paid is shown at the second look.
async fn with_failing_callbacks(failing: usize) -> Stub {
    let (calls, looks) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Stub::start(Until::Elapsed(Duration::ZERO), move |heard| {
        if heard.path.ends_with("/admissions") {
            return (201, json!({ "token": "a.b.c", "order": "7" }));
        }
        if heard.path.starts_with("/callbacks/") {
            let fails = calls.fetch_add(1, Ordering::Relaxed) < failing;
            return if fails { gateway_500() } else { (200, json!({ "outcome": "accepted" })) };
        }
        let mut order = json!({
            "order": "7", "state": "pending", "amount_minor": 900, "currency": "EUR",
            "lines": [{ "tickets": [{ "seat": "1" }] }], "pay_by": "2099-01-01T00:00:00Z",
        });
        if heard.path == "/orders/7" {
            let is_read = looks.fetch_add(1, Ordering::Relaxed) > 0;
            let paid = json!([{ "payment": "pi_7", "outcome": "accepted" }]);
            order["payments"] = if is_read { paid } else { json!([]) };
        }
        (201, order)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_that_fails_is_repeated_a_minute_later_and_its_order_shows_the_outcome_before() {
    let one = Load::Closed { arrivals: 1, at_once: 1 };
    let calls = |stub: &Stub| -> Vec<String> {
        let heard = stub.heard.lock().unwrap();
        let calls = heard.iter().filter(|heard| heard.path.contains("callback"));
        calls.map(|heard| heard.path.clone()).collect()
    };
    let stub = with_failing_callbacks(1).await;
    let report = run_on(&stub.url, one, LoadProfile::Paying, 1).await;
    assert_eq!((report.paid, report.anomalies.clone()), (1, Vec::new()));
    assert_eq!((report.failed_callbacks, report.decided_unreported), (1, 1));
    let paths = calls(&stub);
    assert_eq!(paths.len(), 1, "{paths:?}");
    assert!(paths[0].starts_with("/callbacks/") && paths[0].ends_with("/stripe"), "{paths:?}");

    // The controls: one that does not fail, and one that is repeated soon.
    let stub = with_failing_callbacks(0).await;
    let report = run_on(&stub.url, one, LoadProfile::Paying, 1).await;
    assert_eq!((report.paid, report.failed_callbacks, report.decided_unreported), (1, 0, 0));
    let stub = with_failing_callbacks(1).await;
    let soon = CallbackRepeats::Soon;
    let report = run_repeating(soon, &stub.url, one, LoadProfile::Paying, 1).await;
    assert_eq!((report.paid, report.failed_callbacks, calls(&stub).len()), (1, 0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_answers_wrongly_is_found_out() {
    // It lets forgers in, gives bots as much as they ask for, and breaks on every order.
    let stub = Stub::start(Until::Elapsed(Duration::ZERO), |heard| {
        if heard.path.ends_with("/admissions") {
            (201, json!({ "token": "a.b.c", "order": "7", "expires_at": "x", "tickets": 1 }))
        } else {
            (500, json!({ "type": "/problems/internal" }))
        }
    })
    .await;
    let load = Load::Closed { arrivals: 100, at_once: 8 };
    let report = run_on(&stub.url, load, LoadProfile::Even, 5).await;
    assert!(!report.is_good());
    for behaviour in ["forge-identity", "forge-admission", "hammer"] {
        let one = report.behaviours.iter().find(|one| one.behaviour == behaviour).unwrap();
        assert!(one.shown > 0 && one.as_expected == 0, "{one:?}");
        let said = |anomaly: &String| anomaly.starts_with(behaviour);
        assert!(report.anomalies.iter().any(said), "{behaviour}: {:?}", report.anomalies);
    }
    assert!(report.anomalies.iter().any(|anomaly| anomaly.starts_with("reserve: 500")));
}

/// Names of the elements of a page, each closed in its place; fails the test where one is not.
fn elements(page: &str) -> Vec<String> {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let (mut open, mut all) = (Vec::new(), Vec::new());
    let styled = page.find("<style>").unwrap()..page.find("</style>").unwrap();
    let page = page.replace(&page[styled], "<style>");
    for part in page.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "</{name}> closes another element");
        } else {
            all.push(name.to_owned());
            if !VOID.contains(&name) && !tag.ends_with('/') {
                open.push(name.to_owned());
            }
        }
    }
    assert_eq!(open, Vec::<String>::new());
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_is_shown_to_a_real_engine_and_the_audit_is_clean() {
    let report = shown_and_audited(false).await;
    the_report_says_what_is_documented(&report);
    the_page_is_self_contained(&report);
    the_seconds_are_written(&report);
    thresholds_decide(report);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_behaviour_is_shown_where_tiers_are_apart_and_the_audit_is_clean() {
    let report = shown_and_audited(true).await;
    assert!(!report.refusals.contains_key("one-tier-only"), "{:?}", report.refusals);
}

/// Shows every behaviour to a real engine, and audits it at rest.
async fn shown_and_audited(tiers_apart: bool) -> Report {
    let engine = Engine::start(backends::engine(up::Options::ephemeral())).await.unwrap();
    let rows: Vec<Value> = (1..=20)
        .map(|row| json!({ "row": row.to_string(), "seats": { "prefix": format!("{row}-"), "first": 1, "count": 10 } }))
        .collect();
    let mut sale = standing("everything", 400, 10);
    sale["tiers"].as_array_mut().unwrap().push(json!({
        "tier": "hall", "name": "Hall", "price_minor": 2500,
        "columns": ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"],
        "sections": [{ "section": "Hall", "rows": rows }],
    }));
    sale["tiers_apart"] = json!(tiers_apart);
    let sale: SaleFile = serde_json::from_value(sale).unwrap();
    demo::publish(&engine, &[sale]).await.unwrap();
    let ledger = engine.data_dir().join("ledger.jsonl");
    let options = Options {
        url: engine.url().to_owned(),
        sales: vec!["everything".to_owned()],
        load: open(200, 2.0, 100),
        profile: LoadProfile::Even,
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
    let report = loadtest::run(&options, Credentials::new(engine.secrets())).await.unwrap();
    println!("{}", report.tables());
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert!(report.is_good());
    assert_eq!(report.behaviours.len(), 13);
    for one in &report.behaviours {
        assert!(one.shown > 0 && one.shown == one.as_expected, "{one:?}");
    }
    demo::settle(&engine, Instant::now() + DEADLINE).await.unwrap();
    let facts = Some(LedgerFacts::read(&ledger).unwrap());
    let audited = audit::Options { ledger: facts, ..audit::Options::at(Timestamp::now()) };
    let audit = audit::run(&backends::audited(engine.endpoints()), &audited).await.unwrap();
    assert!(audit.clean, "{audit}");
    engine.stop().await.unwrap();
    report
}

fn the_report_says_what_is_documented(report: &Report) {
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    let load = json!({ "loop": "open", "arrivals": 200, "within_seconds": 2.0, "shape": "opening", "connections": 100 });
    assert_eq!((&json["load"], &json["mix"], &json["seed"]), (&load, &json!("even"), &json!(11)));
    for of in ["response", "service"] {
        for figure in ["count", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "p999_ms", "max_ms"] {
            assert!(json["latency"]["reserve"][of][figure].is_number(), "{of} {figure}");
        }
    }
    assert!(
        json["generator"]["lag"]["p99_ms"].is_number() && json["generator"]["kept_up"].is_boolean()
    );
    let series = json["series"].as_array().unwrap();
    for (name, total) in [
        ("arrived", "buyers"),
        ("paid", "paid"),
        ("tickets", "tickets"),
        ("orders", "orders"),
        ("returned", "returns"),
    ] {
        let sum: u64 = series.iter().map(|second| second[name].as_u64().unwrap()).sum();
        assert_eq!(Some(sum), json[total].as_u64(), "the seconds of {name} add up");
    }
    assert_eq!(report.tickets, 600, "every ticket was paid");
    for name in ["arrived", "admitted", "orders", "paid", "tickets"] {
        let of_class = |class: &Value| class[name].as_u64().unwrap();
        let all: u64 = json["people"].as_object().unwrap().values().map(of_class).sum();
        let total = match name {
            "arrived" => "buyers",
            "admitted" => "admissions",
            other => other,
        };
        assert_eq!(Some(all), json[total].as_u64(), "the classes of {name} add up");
    }
}

/// The rows of the CSV of everybody and of the classes both add up to the report.
fn the_seconds_are_written(report: &Report) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("seconds.csv");
    seconds::write(&file, &report.series).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let column = |name: &str| header.iter().position(|column| *column == name).unwrap();
    let (mut everybody, mut classes) = ([0; 4], [0; 4]);
    for row in lines {
        assert_eq!(row.len(), header.len());
        let sums = if row[column("class")] == "all" { &mut everybody } else { &mut classes };
        for (sum, name) in sums.iter_mut().zip(["arrived", "requests", "admitted", "tickets"]) {
            *sum += row[column(name)].parse::<u64>().unwrap();
        }
    }
    assert_eq!(everybody, classes);
    let [arrived, requests, admitted, tickets] = everybody;
    assert_eq!([arrived, admitted, tickets], [report.buyers, report.admissions, report.tickets]);
    // What is left is looked at once more when the seconds are over.
    assert!(requests > 0 && requests <= report.requests);
}

/// A threshold that is missed makes a good report a bad one, and is named.
fn thresholds_decide(mut report: Report) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("thresholds.json");
    for (most, good) in [(600, true), (599, false)] {
        let all = json!([{ "figure": "/tickets", "at_most": most }]);
        std::fs::write(&file, json!({ "thresholds": all }).to_string()).unwrap();
        report.hold_against(&Thresholds::read(&file).unwrap());
        assert_eq!(report.is_good(), good);
        assert_eq!(report.tables().contains("MISSED: /tickets is 600, at most 599"), !good);
        let page = page::of_load_test(&report).unwrap();
        elements(&page);
        assert_eq!(page.contains("a threshold is missed"), !good);
    }
}

fn the_page_is_self_contained(report: &Report) {
    let page = page::of_load_test(report).unwrap();
    let elements = elements(&page);
    let count = |name: &str| elements.iter().filter(|element| *element == name).count();
    assert_eq!(count("svg"), 7, "plots");
    assert_eq!(count("figcaption"), 7);
    assert_eq!((count("script"), count("link"), count("img")), (0, 0, 0));
    assert!(!page.contains("url(") && !page.contains("@import"), "nothing is fetched");
    for one in &report.behaviours {
        assert!(page.contains(one.behaviour), "{}", one.behaviour);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_published_on_sale_is_replayed_in_small() {
    if backends::is_foreign("a replay starts servers of its own") {
        return;
    }
    let published = Published::named("tixcraft-2024").unwrap();
    let options = replay::Options {
        limits: Limits::None,
        spectators: replay::Spectators::default(),
        published,
        scale: 0.001,
        load: open(890, 1.0, 100),
        profile: LoadProfile::Paying,
        pages: Some(Shares { stripe: 1, wechat: 0, alipay: 0 }),
        seed: 7,
        most: DEADLINE,
        rate_per_second: 1000,
        admission: AdmissionOptions::default(),
        progress: false,
    };
    assert_eq!(options.tickets(), 150);
    let outcome = replay::run(&options).await.unwrap();
    println!("{}\n{}", outcome.load_test.tables(), outcome.summary());
    assert!(outcome.is_good());
    assert_eq!(outcome.load_test.tickets, 150);
    // On a busy machine a page answers too late for some, whose orders are paid all the same.
    let on_pages: u64 = outcome.load_test.paid_on_pages.values().sum();
    let paid = outcome.load_test.paid;
    assert!(on_pages <= paid && 2 * on_pages > paid, "{on_pages} of {paid} paid on pages");
    assert_eq!(outcome.against_real(), None, "a part is not compared with the whole");
    let page = page::of_replay(&outcome).unwrap();
    elements(&page);
    assert!(page.contains(published.source));
}

#[test]
fn what_is_replayed_was_published() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/data/load-published-figures/figures.csv"
    );
    let Ok(figures) = std::fs::read_to_string(file) else {
        text::skipped(format_args!("there is no {file}"));
        return;
    };
    for published in &PUBLISHED {
        let of_this =
            |line: &&str| line.contains(published.source) || line.contains(published.sale);
        let lines: Vec<&str> = figures.lines().filter(of_this).collect();
        let text = lines.join("\n").replace(',', "");
        assert!(lines.iter().any(|line| line.contains(published.source)), "{}", published.source);
        for figure in [published.people, u64::from(published.tickets)] {
            // Press writes a million as a word.
            let words = format!("{} million", figure / 1_000_000);
            let stands = text.contains(&figure.to_string()) || text.contains(&words);
            assert!(stands, "{}: {figure} is not in\n{text}", published.name);
        }
    }
}
