//! A rehearsal: a deployment is loaded below a ceiling, over TLS, after its host was confirmed, until an abort.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use cold::certificates::Authority;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::SaleFile;
use loadtest::arrivals::Shape;
use loadtest::credentials::Credentials;
use loadtest::demo;
use loadtest::profile::LoadProfile;
use loadtest::rehearsal::abort::AbortSwitch;
use loadtest::rehearsal::{Rehearsal, Target};
use loadtest::report::Report;
use loadtest::{CallbackRepeats, Load, LoadTestError, Options};
use local::up::{self, Engine};
use serde_json::{Value, json};
use shared::runtime::connections::Trust;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::backends;
use crate::program::onsale;

/// Time that anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(300);

fn field() -> Value {
    json!({
        "sale": "field", "title": "A field", "currency": "EUR",
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 600, "gate": { "rate_per_second": 20000 },
        "tiers": [{ "tier": "field", "name": "Field", "price_minor": 900, "general_admission": 500 }]
    })
}

/// A program in `dir` that runs these lines of shell.
fn program(dir: &TempDir, lines: &str) -> PathBuf {
    let file = dir.path().join("token");
    fs::write(&file, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    file
}

fn rehearsal(url: &str, token_command: PathBuf, per_second: u32) -> Rehearsal {
    Rehearsal {
        target: Target::read(url).unwrap().confirm(Some("127.0.0.1")).unwrap(),
        trust: Trust::public(),
        per_second,
        token_command,
        abort: Arc::new(AbortSwitch::default()),
        abort_file: None,
        max_error_percent: 100,
    }
}

async fn rehearse(arrivals: u64, rehearsal: Rehearsal) -> Result<Report, LoadTestError> {
    let options = Options {
        url: rehearsal.target.url().to_owned(),
        sales: vec!["field".to_owned()],
        load: Load::Open { arrivals, within_seconds: 0.1, shape: Shape::Steady, connections: 100 },
        profile: LoadProfile::Rehearsal,
        seed: 5,
        most: DEADLINE,
        may_take_longer: false,
        ledger: None,
        progress: false,
        callback_repeats: CallbackRepeats::default(),
        pages: None,
        grace: Grace::NONE,
        endpoints: None,
        rehearsal: Some(rehearsal),
        crowd: loadtest::people::plan::Crowd::default(),
    };
    let run = loadtest::run(&options, Credentials::none());
    tokio::time::timeout(DEADLINE, run).await.expect("the rehearsal ends")
}

/// A gateway that shows the sale and answers everything else as a test wants.
struct Stub {
    url: String,
    requests: Arc<AtomicU64>,
}

impl Stub {
    async fn start(answers: impl Fn(u64) -> Response + Clone + Send + Sync + 'static) -> Self {
        let requests = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&requests);
        let answer = move |request: Request| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            let is_sale = request.uri().path() == "/sales/field";
            let answers = answers.clone();
            async move {
                if is_sale {
                    json!({ "file": field() }).to_string().into_response()
                } else {
                    answers(number)
                }
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        Self { url, requests }
    }

    fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

fn problem(status: StatusCode, kind: &str) -> Response {
    (status, json!({ "type": format!("/problems/{kind}") }).to_string()).into_response()
}

fn sold_out() -> Response {
    problem(StatusCode::CONFLICT, "sold-out")
}

/// Ends TLS before the gateway, as the front of a deployment does.
async fn behind_tls(gateway: &str, authority: &Authority) -> String {
    let tls = TlsAcceptor::from(authority.server(&["127.0.0.1"]).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let gateway = gateway.trim_start_matches("http://").to_owned();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (tls, gateway) = (tls.clone(), gateway.clone());
            tokio::spawn(async move {
                // A client that does not trust us goes away.
                let mut outside = tls.accept(stream).await?;
                let mut inside = TcpStream::connect(gateway).await?;
                tokio::io::copy_bidirectional(&mut outside, &mut inside).await
            });
        }
    });
    url
}

/// A program that prints tokens of an engine on this machine.
fn tokens_of(engine: &Engine, dir: &TempDir) -> PathBuf {
    let data_dir = engine.data_dir().display();
    let onsale = onsale().display().to_string();
    program(dir, &format!("exec {onsale} --data-dir {data_dir} token --user rehearsal-$1"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deployment_behind_tls_is_rehearsed_and_nothing_stays_sold() {
    let engine = Engine::start(backends::engine(up::Options::ephemeral())).await.unwrap();
    let sale: SaleFile = serde_json::from_value(field()).unwrap();
    demo::publish(&engine, &[sale]).await.unwrap();
    let (dir, authority) = (tempfile::tempdir().unwrap(), Authority::new().unwrap());
    let url = behind_tls(engine.url(), &authority).await;
    let token_command = tokens_of(&engine, &dir);

    // Whoever does not trust the authority sends nothing, and does not begin.
    let untrusted = rehearse(12, rehearsal(&url, token_command.clone(), 1000)).await;
    assert!(matches!(untrusted, Err(LoadTestError::Sale(_))), "{untrusted:?}");

    let trust = Trust::only(authority.pem().into()).unwrap();
    let trusted = Rehearsal { trust, ..rehearsal(&url, token_command, 1000) };
    let report = rehearse(12, trusted).await.unwrap();
    println!("{}", report.tables());
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert!(report.is_good());
    assert_eq!((report.buyers, report.orders, report.cancelled, report.paid), (12, 12, 12, 0));
    let json: Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(
        json["rehearsal"],
        json!({ "host": "127.0.0.1", "per_second": 1000, "aborted": null })
    );
    let left = format!("{}/sales/field/availability", engine.url());
    let left: Value = reqwest::get(left).await.unwrap().json().await.unwrap();
    assert_eq!(left["tiers"][0]["available"], json!(500), "every seat is back");
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ceiling_is_held() {
    const PER_SECOND: u32 = 40;
    let stub = Stub::start(|_| sold_out()).await;
    let dir = tempfile::tempdir().unwrap();
    // Sixty come at once. The first request shows the sale, before the clock of the report starts.
    let report = rehearse(60, rehearsal(&stub.url, program(&dir, "echo a.b.c"), PER_SECOND)).await;
    let report = report.unwrap();
    assert_eq!((stub.requests(), report.requests), (61, 61));
    assert_eq!(report.refusals["sold-out"], 60);
    // Between the first and the last of sixty are fifty-nine gaps: a busy machine only makes them longer.
    let least = 59.0 / f64::from(PER_SECOND);
    assert!(report.seconds >= least, "{} requests in {} s", report.requests, report.seconds);
    // Waiting for the ceiling is not the target's time: otherwise half of them would have waited for half of it.
    let latency = report.latency["token-gate"];
    let waited_ms = latency.response.p50_ms - latency.service.p50_ms;
    assert!(waited_ms < least * 500.0, "{latency:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_fails_is_spared() {
    // It answers thirty well, and then nothing but errors.
    let stub = Stub::start(|number| match number {
        0..30 => sold_out(),
        _ => problem(StatusCode::INTERNAL_SERVER_ERROR, "internal"),
    });
    let stub = stub.await;
    let dir = tempfile::tempdir().unwrap();
    let command = program(&dir, "echo a.b.c");
    let guarded = Rehearsal { max_error_percent: 10, ..rehearsal(&stub.url, command, 10_000) };
    let report = rehearse(2_000, guarded).await.unwrap();
    let reason = report.rehearsal.as_ref().unwrap().aborted.clone().unwrap();
    assert!(reason.contains("more than 10 %"), "{reason}");
    assert!(!report.is_good() && report.tables().contains("ABORTED"), "{}", report.tables());
    // Four errors are too many after thirty answers; a hundred requests may be under way meanwhile.
    assert!(stub.requests() < 250, "{} requests", stub.requests());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_ends_a_rehearsal_and_so_does_its_switch() {
    let stub = Stub::start(|_| sold_out()).await;
    let dir = tempfile::tempdir().unwrap();
    let command = program(&dir, "echo a.b.c");
    // At one request a second these would take half an hour.
    let file = dir.path().join("stop");
    let slow = || rehearsal(&stub.url, command.clone(), 1);
    let by_file = Rehearsal { abort_file: Some(file.clone()), ..slow() };
    let (report, ()) = tokio::join!(rehearse(2_000, by_file), async {
        until(|| stub.requests() >= 2).await;
        fs::write(&file, "").unwrap();
    });
    let report = report.unwrap();
    let reason = report.rehearsal.as_ref().unwrap().aborted.clone().unwrap();
    assert!(reason.ends_with("stop exists"), "{reason}");
    // The last one may have been on its way.
    let sent = report.requests;
    assert!((stub.requests()..=stub.requests() + 1).contains(&sent), "{sent} requests");

    let before = stub.requests();
    let by_hand = slow();
    let switch = Arc::clone(&by_hand.abort);
    let (report, ()) = tokio::join!(rehearse(2_000, by_hand), async {
        until(|| stub.requests() >= before + 2).await;
        switch.abort("Ctrl-C");
    });
    let aborted = report.unwrap().rehearsal.unwrap().aborted;
    assert_eq!(aborted.as_deref(), Some("Ctrl-C"));

    // Whatever is thrown before it begins sends nothing.
    let before = stub.requests();
    let thrown = slow();
    thrown.abort.abort("too soon");
    let refused = rehearse(5, thrown).await;
    assert!(matches!(&refused, Err(LoadTestError::Aborted(_))), "{refused:?}");
    assert_eq!(stub.requests(), before);
}

async fn until(condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, waited).await.expect("it happens in time");
}

fn run(arguments: &[&str], token: &Path) -> Output {
    let mut command = Command::new(onsale());
    command.args(["rush", "--sale", "field", "--token-command"]).arg(token).args(arguments);
    command.env_remove("ONSALE_URL").stdin(std::process::Stdio::null());
    command.output().unwrap()
}

#[test]
fn the_command_forecasts_the_bill_and_loads_no_host_that_is_not_confirmed() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("asked");
    let token = program(&dir, &format!("touch {}; echo a.b.c", log.display()));
    let target = "https://tickets.invalid";
    for (arguments, said) in [
        (&["--target", target][..], "confirm with --confirm-host tickets.invalid"),
        (&["--target", target, "--confirm-host", "ticket.invalid"], "ticket.invalid was confirmed"),
        (&["--target", "http://10.0.0.1", "--confirm-host", "10.0.0.1"], "plain http"),
    ] {
        let done = run(arguments, &token);
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let only = ["--target", target, "--forecast", "--arrivals", "1000", "--max-rate", "50"];
    let done = run(&[&only[..], &["--most-seconds", "100", "--json"]].concat(), &token);
    assert!(done.status.success());
    let forecast: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(forecast["plan"]["max_requests"], json!(5000.0));
    let (expected, most) = (&forecast["expected"]["total"], &forecast["at_most"]);
    assert!(expected.as_f64().unwrap() > 0.0 && most.as_f64() > expected.as_f64(), "{forecast}");
    assert!(!log.exists(), "nobody was asked for a token");
}
