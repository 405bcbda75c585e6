//! The whole engine over HTTP: a sale from the operator's file to the paid order, what the gateway
//! refuses, what the queues do, and what is still there after `kill -9`.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use fake_identity::{Identity, Role};
use fake_payments::page_of_code;
use local::data_dir::{self, DataDir, Secrets};
use local::endpoints::Endpoints;
use local::open_files;
use local::payment;
use local::queues::Redelivery;
use local::servers::{Signal, signal};
use local::up::{Engine, Error, Options};
use reqwest::header::{ALLOW, CONTENT_TYPE, HOST, LOCATION, WWW_AUTHENTICATE};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::backends;

/// Names the data directory on which [`serve_until_killed`] is to serve.
const SERVE_ON: &str = "ONSALE_TEST_UP_ON";
/// Names what its tables and queues are called.
const SERVE_AS: &str = "ONSALE_TEST_UP_AS";
/// What the engine may have resident while it does nothing, its servers aside, in kB.
const MAX_IDLE_KB: u64 = 150 * 1024;

/// Time that anything may take before the test fails.
const DEADLINE: Duration = Duration::from_secs(120);

/// Asks until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asked_since = Instant::now();
    while !is_so().await {
        assert!(asked_since.elapsed() < DEADLINE, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Somebody who talks to an engine over HTTP, with all its secrets.
struct Caller {
    url: String,
    http: reqwest::Client,
    secrets: Secrets,
    identity: Identity,
}

impl Caller {
    fn new(url: &str, data_dir: &Path) -> Self {
        let secrets = Secrets::read(data_dir).unwrap();
        let identity = Identity::new(secrets.identity.as_bytes());
        Self { url: url.to_owned(), http: reqwest::Client::new(), secrets, identity }
    }

    fn from_engine(engine: &Engine) -> Self {
        Self::new(engine.url(), engine.data_dir())
    }

    fn token(&self, user: &str, role: Role) -> String {
        self.identity.token(user, role, Timestamp::now(), 60).unwrap()
    }

    /// A request of nobody.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.url))
    }

    /// A request of a buyer.
    fn buyer(&self, user: &str, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).bearer_auth(self.token(user, Role::Buyer))
    }

    async fn put_sale(&self, sale: &Value) {
        let path = format!("/sales/{}", sale["sale"].as_str().unwrap());
        let put = self.request(Method::PUT, &path).json(sale);
        let reply = put.bearer_auth(self.token("ops", Role::Operator)).send().await.unwrap();
        assert_eq!(reply.status(), StatusCode::OK, "{}", reply.text().await.unwrap());
    }

    async fn get(&self, path: &str) -> Value {
        body(self.request(Method::GET, path).send().await.unwrap(), StatusCode::OK).await
    }

    /// The number of seats left in the hall.
    async fn available(&self, sale: &str) -> u64 {
        let availability = self.get(&format!("/sales/{sale}/availability")).await;
        availability["tiers"][0]["available"].as_u64().unwrap()
    }

    async fn order_of(&self, user: &str, order: &str) -> Value {
        let request = self.buyer(user, Method::GET, &format!("/orders/{order}"));
        body(request.send().await.unwrap(), StatusCode::OK).await
    }

    /// Admission and order of two seats side by side.
    async fn buy_two(&self, user: &str, sale: &str) -> Value {
        let admission = self.buyer(user, Method::POST, &format!("/sales/{sale}/admissions"));
        let admission = admission.json(&json!({ "tickets": 2 })).send().await.unwrap();
        let admission = body(admission, StatusCode::CREATED).await;
        let order = self.buyer(user, Method::POST, &format!("/sales/{sale}/orders")).json(&json!({
            "admission": admission["token"],
            "lines": [{ "tier": "hall", "best": { "count": 2, "together": "required" } }],
        }));
        let order = body(order.send().await.unwrap(), StatusCode::CREATED).await;
        assert_eq!(order["order"], admission["order"], "the order was named at admission");
        order
    }

    /// The provider's callback for a whole order.
    async fn pay(&self, order: &Value) -> Response {
        let number = order["order"].as_str().unwrap();
        let amount = amount(order);
        let now = Timestamp::now();
        let event =
            payment::captured(&format!("pi_{number}"), number.parse().unwrap(), amount, now);
        let event = event.to_string();
        let signature = payment::sign(&self.secrets, event.as_bytes(), now);
        self.callback(event, &signature).await
    }

    async fn callback(&self, body: String, signature: &str) -> Response {
        let callback = self.request(Method::POST, &payment::callback_path());
        let callback = callback.header(payment::SIGNATURE_HEADER, signature);
        callback.header(CONTENT_TYPE, "application/json").body(body).send().await.unwrap()
    }
}

/// The price of an order.
fn amount(order: &Value) -> Money {
    Money {
        amount_minor: MinorUnits(order["amount_minor"].as_i64().unwrap()),
        currency: Currency::new(order["currency"].as_str().unwrap()).unwrap(),
    }
}

/// The body of a reply, which must have this status.
async fn body(reply: Response, status: StatusCode) -> Value {
    let was = reply.status();
    let text = reply.text().await.unwrap();
    assert_eq!(was, status, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// A hall of four rows of five seats, on sale now.
fn hall(sale: &str, pay_window_seconds: u32) -> Value {
    let row = |row: &str| json!({ "row": row, "seats": { "prefix": format!("{row}-"), "first": 1, "count": 5 } });
    let now = Timestamp::now();
    json!({
        "sale": sale,
        "title": "A small hall",
        "currency": "EUR",
        "opens_at": now.plus_seconds(-60),
        "closes_at": now.plus_seconds(3600),
        "limit_per_buyer": 4,
        "pay_window_seconds": pay_window_seconds,
        "tiers": [{
            "tier": "hall", "name": "Hall", "price_minor": 2500,
            "sections": [{ "section": "A", "rows": [row("A"), row("B"), row("C"), row("D")] }],
        }],
    })
}

async fn ephemeral() -> (Engine, Caller) {
    let engine = Engine::start(backends::engine(Options::ephemeral())).await.unwrap();
    let caller = Caller::from_engine(&engine);
    (engine, caller)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_is_sold_over_http() {
    let (engine, caller) = ephemeral().await;
    caller.put_sale(&hall("hall-1", 300)).await;
    assert_eq!(caller.get("/sales").await["sales"][0]["sale"], "hall-1");
    assert_eq!(caller.available("hall-1").await, 20);

    let order = caller.buy_two("alice", "hall-1").await;
    assert_eq!((&order["state"], &order["amount_minor"]), (&json!("pending"), &json!(5000)));
    let number = order["order"].as_str().unwrap();
    // What everyone may see is a second old at most.
    until("the seats are gone", async || caller.available("hall-1").await == 18).await;

    assert_eq!(caller.pay(&order).await.status(), StatusCode::OK);
    assert_eq!(caller.order_of("alice", number).await["state"], "paid");
    assert_eq!(caller.pay(&order).await.status(), StatusCode::OK, "the same callback again");
    let mine = caller.buyer("alice", Method::GET, "/orders").send().await.unwrap();
    assert_eq!(body(mine, StatusCode::OK).await["orders"][0]["order"], number);

    // Another buyer is not shown it, and the counting consumer finishes it.
    let other = caller.buyer("bob", Method::GET, &format!("/orders/{number}"));
    assert_eq!(other.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    use engine::ports::{Orders as _, Ports as _};
    let orders = engine.app().ports.orders();
    let is_settled = async || {
        let order = orders.get(number.parse().unwrap()).await.unwrap().unwrap();
        order.facts.are_settled()
    };
    until("the order is settled", is_settled).await;
    engine.stop().await.unwrap();
}

/// A person pays a payment that was started: opens its page, and presses the button there.
async fn pay_on_page(engine: &Engine, started: &Value) -> Response {
    let browser = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let page = match (started["url"].as_str(), started["code"].as_str()) {
        (Some(url), None) => url.to_owned(),
        (None, Some(code)) => {
            let each = engine.merchants().iter();
            each.filter_map(|provider| page_of_code(&provider.url(), code)).next().unwrap()
        }
        (_, _) => panic!("{started}"),
    };
    let opened = browser.get(&page).send().await.unwrap();
    let page = match opened.headers().get(LOCATION) {
        Some(to) => opened.url().join(to.to_str().unwrap()).unwrap(),
        None => opened.url().clone(),
    };
    assert!(opened.status().is_success() || opened.status().is_redirection(), "{opened:?}");
    browser.post(page).body("action=pay").send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_pays_on_the_page_of_each_provider_and_its_own_notification_tells() {
    let (engine, caller) = ephemeral().await;
    let mut sale = hall("hall-pages", 300);
    sale["currency"] = json!("CNY");
    caller.put_sale(&sale).await;
    for (provider, method, comes_back) in [
        ("wechat", "code", false),
        ("alipay", "code", false),
        ("alipay", "page", true),
        ("stripe", "page", true),
    ] {
        let user = format!("{provider}-{method}");
        let order = caller.buy_two(&user, "hall-pages").await;
        let number = order["order"].as_str().unwrap();
        let mut choice = json!({ "provider": provider, "method": method });
        let back = format!("https://shop.example/orders/{number}");
        if comes_back {
            choice["return_url"] = json!(back);
        }
        let start = caller.buyer(&user, Method::POST, &format!("/orders/{number}/payments"));
        let started = start.json(&choice).send().await.unwrap();
        let status = started.status();
        let started: Value = started.json().await.unwrap();
        assert!(status.is_success(), "{provider} {method}: {started}");
        let paid = pay_on_page(&engine, &started).await;
        let to = paid.headers().get(LOCATION).map(|to| to.to_str().unwrap().to_owned());
        assert_eq!(to, comes_back.then_some(back), "{provider} {method}");
        let is_paid = async || caller.order_of(&user, number).await["state"] == "paid";
        until("the notification is taken", is_paid).await;
        let shown = caller.order_of(&user, number).await;
        assert_eq!(shown["payments"][0]["provider"], provider, "{shown}");
    }
    // Stripe's own list would tell as well: that its webhook was taken, it says itself.
    let told = async || {
        let merchants = engine.merchants().iter().map(|provider| provider.notified().taken);
        merchants.chain([engine.provider().notified().taken]).all(|taken| taken > 0)
    };
    until("every provider's notification is taken", told).await;
    for provider in engine.merchants().iter() {
        assert_eq!(provider.notified().probes_believed, 0);
    }
    let ledgers = (engine.merchants().ledger().len(), engine.provider().ledger().len());
    assert_eq!(ledgers, (3, 1));
    engine.stop().await.unwrap();
}

/// H6: Alipay has nothing of a page before it is opened, so that nobody can close it. One wrong click is no lost seat.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_was_not_opened_stops_no_other_payment() {
    let (engine, caller) = ephemeral().await;
    let mut sale = hall("hall-absent", 300);
    sale["currency"] = json!("CNY");
    caller.put_sale(&sale).await;
    for comes_back in [false, true] {
        let user = format!("undecided-{comes_back}");
        let order = caller.buy_two(&user, "hall-absent").await;
        let number = order["order"].as_str().unwrap();
        let begin = async |provider: &str| {
            let back = format!("https://shop.example/orders/{number}");
            let choice = json!({ "provider": provider, "method": "page", "return_url": back });
            let start = caller.buyer(&user, Method::POST, &format!("/orders/{number}/payments"));
            let started = start.json(&choice).send().await.unwrap();
            let (status, started) = (started.status(), started.json::<Value>().await.unwrap());
            assert!(status.is_success(), "{provider}: {started}");
            started
        };
        let page = begin("alipay").await;
        let other = begin("stripe").await;
        assert_eq!((&page["attempt"], &other["attempt"]), (&json!(1), &json!(2)));
        let paid = if comes_back {
            let again = begin("alipay").await;
            assert_eq!(again, page, "the same page");
            again
        } else {
            other
        };
        pay_on_page(&engine, &paid).await;
        let is_paid = async || caller.order_of(&user, number).await["state"] == "paid";
        until("the order is paid", is_paid).await;
        let shown = caller.order_of(&user, number).await;
        assert_eq!(shown["payments"][0]["provider"], paid["provider"], "{shown}");
    }
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unpaid_order_expires_by_its_message() {
    let (engine, caller) = ephemeral().await;
    caller.put_sale(&hall("hall-2", 5)).await;
    let order = caller.buy_two("alice", "hall-2").await;
    let number = order["order"].as_str().unwrap();
    let is_expired = async || caller.order_of("alice", number).await["state"] == "expired";
    until("the order expires", is_expired).await;
    until("its seats are back", async || caller.available("hall-2").await == 20).await;
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_callback_is_lost_is_paid_by_what_its_provider_lists() {
    let (engine, caller) = ephemeral().await;
    caller.put_sale(&hall("hall-3", 5)).await;
    let order = caller.buy_two("alice", "hall-3").await;
    let number = order["order"].as_str().unwrap();
    let provider = engine.provider();
    let (payment, captured_at) = (format!("pi_{number}"), Timestamp::now());
    provider.capture(&payment, number.parse().unwrap(), amount(&order), captured_at).unwrap();
    let is_paid = async || caller.order_of("alice", number).await["state"] == "paid";
    until("the provider's list is read", is_paid).await;
    let paid: Timestamp =
        caller.order_of("alice", number).await["changed_at"].as_str().unwrap().parse().unwrap();
    assert!(captured_at <= paid, "{captured_at} {paid}");
    assert!(provider.calls()["list_events"] > 0, "{:?}", provider.calls());
    // The callback comes after all.
    let callback = body(caller.pay(&order).await, StatusCode::OK).await;
    assert_eq!(callback, json!({ "outcome": "accepted" }));
    assert!(provider.ledger()[0].refunds.is_empty());
    assert_eq!(caller.available("hall-3").await, 18);
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_is_paid_in_its_last_second_is_paid_though_the_search_lags() {
    let options = Options { search_lag_seconds: 3, ..Options::ephemeral() };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    let caller = Caller::from_engine(&engine);
    caller.put_sale(&hall("hall-late", 5)).await;
    let order = caller.buy_two("alice", "hall-late").await;
    let number = order["order"].as_str().unwrap();
    let pay_by: Timestamp = order["pay_by"].as_str().unwrap().parse().unwrap();
    let (provider, payment) = (engine.provider(), format!("pi_{number}"));
    // The provider is told before, and shows it to nobody before its lag after that time.
    let captured_at = pay_by.plus_ms(-500);
    provider.capture(&payment, number.parse().unwrap(), amount(&order), captured_at).unwrap();
    // Its callback is lost. The provider lists it late, after the deadline.
    let is_decided = async || caller.order_of("alice", number).await["state"] != "pending";
    until("the order is decided", is_decided).await;
    let decided = caller.order_of("alice", number).await;
    assert_eq!(decided["state"], "paid", "{decided}");
    let changed_at: Timestamp = decided["changed_at"].as_str().unwrap().parse().unwrap();
    let listed_at = captured_at.plus_seconds(provider.list_lag_seconds().into());
    assert!(changed_at >= listed_at && listed_at > pay_by, "{decided}");
    assert!(provider.ledger()[0].refunds.is_empty());
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_comes_too_late_is_sent_back_and_the_buyer_sees_it() {
    let (engine, caller) = ephemeral().await;
    caller.put_sale(&hall("hall-4", 300)).await;
    let order = caller.buy_two("alice", "hall-4").await;
    let number = order["order"].as_str().unwrap();
    let cancel = caller.buyer("alice", Method::POST, &format!("/orders/{number}/cancel"));
    body(cancel.json(&json!({})).send().await.unwrap(), StatusCode::OK).await;
    let other = caller.buy_two("bob", "hall-4").await;
    assert_eq!(other["lines"], order["lines"], "the same seats");

    let provider = engine.provider();
    let payment = format!("pi_{number}");
    provider.capture(&payment, number.parse().unwrap(), amount(&order), Timestamp::now()).unwrap();
    let callback = body(caller.pay(&order).await, StatusCode::OK).await;
    assert_eq!(callback, json!({ "outcome": "refund", "reason": "cancelled" }));
    let is_back = async || caller.order_of("alice", number).await["state"] == "refunded";
    until("the money is back", is_back).await;
    let shown = caller.order_of("alice", number).await;
    assert_eq!(shown["payments"][0]["refund"]["state"], "refunded", "{shown}");
    let ledger = provider.ledger();
    assert_eq!((ledger.len(), ledger[0].refunds.len()), (1, 1));
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_refuses_what_no_function_should_see() {
    let (engine, caller) = ephemeral().await;
    let old = Timestamp::now().plus_seconds(-120);
    let expired = caller.identity.token("alice", Role::Buyer, old, 60).unwrap();
    let forged = Identity::new(b"guessed").token("ops", Role::Operator, Timestamp::now(), 60);
    let buyer = caller.token("alice", Role::Buyer);
    let ask = |method: Method, path: &str| caller.request(method, path);
    for (what, request, status, kind) in [
        ("no token", ask(Method::GET, "/orders"), 401, "/problems/not-authenticated"),
        (
            "an expired token",
            ask(Method::GET, "/orders").bearer_auth(expired),
            401,
            "/problems/not-authenticated",
        ),
        (
            "a forged token",
            ask(Method::PUT, "/sales/x").bearer_auth(forged.unwrap()),
            401,
            "/problems/not-authenticated",
        ),
        (
            "a buyer as operator",
            ask(Method::PUT, "/sales/x").bearer_auth(buyer),
            403,
            "/problems/not-permitted",
        ),
        ("no such path", ask(Method::GET, "/nothing"), 404, "/problems/not-found"),
        ("another method", ask(Method::DELETE, "/sales/x"), 405, "/problems/method-not-allowed"),
        (
            "no such host",
            ask(Method::GET, "/sales").header(HOST, "a[b"),
            400,
            "/problems/malformed",
        ),
        (
            "no such port",
            ask(Method::GET, "/sales").header(HOST, "a:99999"),
            400,
            "/problems/malformed",
        ),
        (
            "no such address",
            ask(Method::GET, "/sales").header(HOST, "256.1.1.1"),
            400,
            "/problems/malformed",
        ),
        (
            "a body over 6 MB",
            ask(Method::POST, "/payments/stripe/callback").body(vec![b' '; 6 * 1024 * 1024 + 1]),
            413,
            "/problems/too-large",
        ),
    ] {
        let reply = request.send().await.unwrap();
        assert_eq!(reply.headers()[CONTENT_TYPE], "application/problem+json", "{what}");
        assert_eq!(reply.headers().contains_key(WWW_AUTHENTICATE), status == 401, "{what}");
        assert_eq!(reply.headers().contains_key(ALLOW), status == 405, "{what}");
        let problem = body(reply, StatusCode::from_u16(status).unwrap()).await;
        assert_eq!(problem["type"], kind, "{what}");
        assert_eq!(problem["status"], status, "{what}");
    }
    // What a function refuses comes through as it is.
    let unsigned = caller.callback("{}".to_owned(), "t=1,v1=00").await;
    assert!(unsigned.status().is_client_error());
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_cannot_be_read_ends_in_the_dead_letter_queue() {
    let redelivery = Redelivery { visibility: Duration::from_secs(1), max_receives: 2 };
    let options = Options { redelivery, ..Options::ephemeral() };
    let engine = Engine::start(backends::engine(options)).await.unwrap();
    let sqs = local::stores::sqs(&engine.endpoints().sqs);
    for queue in [&engine.queues().expiry, &engine.queues().sync] {
        let send = sqs.send_message().queue_url(&queue.url).message_body("poison");
        send.send().await.unwrap();
        let dead = sqs.receive_message().queue_url(&queue.dead_url).wait_time_seconds(1);
        let is_dead = async || {
            let received = dead.clone().send().await.unwrap().messages.unwrap_or_default();
            received.first().is_some_and(|message| message.body() == Some("poison"))
        };
        until(&format!("the poison of {} is dead", queue.name), is_dead).await;
    }
    engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_has_one_engine() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::start(backends::engine(Options::persistent(dir.path()))).await.unwrap();
    for options in [
        Options::persistent(dir.path()),
        Options { data_dir: Some(dir.path().to_owned()), ..Options::ephemeral() },
    ] {
        let second = Engine::start(backends::engine(options)).await;
        assert!(matches!(second, Err(Error::DataDir(data_dir::Error::InUse(_)))));
    }
    assert_eq!(Endpoints::read(dir.path()).unwrap(), *engine.endpoints());
    engine.stop().await.unwrap();
    assert!(Endpoints::read(dir.path()).is_err(), "nobody looks for it any more");
    DataDir::open(dir.path()).unwrap();
}

/// `onsale up` in a process of its own, killed when dropped.
struct Process(Child);

impl Process {
    /// Starts it on `dir`, and waits until it says where it is.
    async fn up(dir: &Path, prefix: &str) -> (Self, Caller) {
        Endpoints::remove(dir).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "up::serve_until_killed", "--nocapture"])
            .env(SERVE_ON, dir)
            .env(SERVE_AS, prefix)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        until("the engine is up", async || {
            assert!(child.try_wait().unwrap().is_none(), "the engine ended by itself");
            Endpoints::read(dir).is_ok()
        })
        .await;
        let url = Endpoints::read(dir).unwrap().gateway;
        (Self(child), Caller::new(&url, dir))
    }

    /// The resident memory, in kB.
    fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Kills it as `kill -9` does.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_survives_kill_9_and_is_paid_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = backends::prefix();
    let (mut process, caller) = Process::up(dir.path(), &prefix).await;
    let resident_kb = process.resident_kb();
    println!("idle: {resident_kb} kB resident");
    assert!(resident_kb < MAX_IDLE_KB, "{resident_kb} kB resident");
    caller.put_sale(&hall("hall-9", 300)).await;
    let order = caller.buy_two("alice", "hall-9").await;
    let number = order["order"].as_str().unwrap();
    let token = caller.token("alice", Role::Buyer);
    process.kill();

    let (_process, caller) = Process::up(dir.path(), &prefix).await;
    let request = caller.request(Method::GET, &format!("/orders/{number}")).bearer_auth(token);
    let kept = body(request.send().await.unwrap(), StatusCode::OK).await;
    assert_eq!((&kept["state"], &kept["lines"]), (&json!("pending"), &order["lines"]));
    assert_eq!(caller.available("hall-9").await, 18, "its seats are still held");
    assert_eq!(caller.pay(&order).await.status(), StatusCode::OK);
    assert_eq!(caller.order_of("alice", number).await["state"], "paid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_dies_is_back_before_the_buyer_has_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let (_process, caller) = Process::up(dir.path(), &backends::prefix()).await;
    caller.put_sale(&hall("hall-10", 300)).await;
    caller.buy_two("alice", "hall-10").await;
    let pid_file = dir.path().join("redis/server.pid");
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    signal(pid.trim(), Signal::Kill).unwrap();
    let killed = Instant::now();
    until("Redis is started again", async || {
        let now = std::fs::read_to_string(&pid_file).unwrap_or_default();
        !now.trim().is_empty() && now != pid
    })
    .await;
    until("the sale can be asked for admissions", async || {
        let path = "/sales/hall-10/admissions";
        let ask = caller.buyer("carol", Method::POST, path).json(&json!({ "tickets": 2 }));
        ask.send().await.unwrap().status() == StatusCode::CREATED
    })
    .await;
    println!("sells again {} ms after Redis was killed", killed.elapsed().as_millis());
    assert_eq!(caller.available("hall-10").await, 18, "it has what was held");
    caller.buy_two("bob", "hall-10").await;
}

#[test]
fn too_few_files_are_said_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", "ulimit -n 200; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "up::serve_until_killed", "--nocapture"])
        .env(SERVE_ON, dir.path())
        .env(SERVE_AS, backends::prefix())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("only 200 files may be open (ulimit -n)"), "{said}");
    assert!(said.contains("ulimit -n 1024") && !output.status.success(), "{said}");
}

/// Sends a request a byte every half second, and connects again when it is hung up on.
async fn trickle(address: String) {
    loop {
        let Ok(mut stream) = TcpStream::connect(&address).await else { return };
        for byte in b"GET /sales HTTP/1.1\r\nHost: localhost\r\n\r\n" {
            if stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_gets_through_500_slow_and_10_000_idle_connections() {
    let dir = tempfile::tempdir().unwrap();
    let (_process, caller) = Process::up(dir.path(), &backends::prefix()).await;
    let mut sale = hall("hall-11", 300);
    // All eight pairs are sold within a second: the gate must not make anybody wait.
    sale["gate"] = json!({ "budget_percent": 1000 });
    caller.put_sale(&sale).await;
    let address = caller.url.trim_start_matches("http://").to_owned();
    // What is left of the files that this process may open, some of which other tests need.
    let files = open_files::limit().unwrap_or(open_files::NEEDED);
    let idle = usize::try_from(files / 2).unwrap().min(10_000);
    let mut slow = tokio::task::JoinSet::new();
    (0..500.min(idle)).for_each(|_| drop(slow.spawn(trickle(address.clone()))));
    let mut silent = Vec::new();
    for _ in 0..idle {
        silent.push(TcpStream::connect(&address).await.unwrap());
    }
    let mut took = Vec::new();
    for buyer in 0..8 {
        let began = Instant::now();
        // A buyer of her own: a new connection for every purchase.
        let caller = Caller::new(&caller.url, dir.path());
        caller.buy_two(&format!("buyer-{buyer}"), "hall-11").await;
        took.push(began.elapsed());
    }
    took.sort();
    let (half, most) = (took[took.len() / 2], took[took.len() - 1]);
    println!("{idle} idle, {} slow: admission and order p50 {half:?}, most {most:?}", slow.len());
    assert!(most < DEADLINE, "{took:?}");
    slow.shutdown().await;
}

/// Not a test by itself: the process in [`an_order_survives_kill_9_and_is_paid_after_it`].
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn serve_until_killed() {
    let Some(dir) = std::env::var_os(SERVE_ON) else {
        return;
    };
    let dir = dir.to_str().unwrap();
    let line = ["onsale", "up", "--port", "0", "--json", "--data-dir", dir].map(str::to_owned);
    let servers = backends::up_arguments(&std::env::var(SERVE_AS).unwrap());
    let code = cli::run(line.into_iter().chain(servers)).await;
    assert_eq!(code, ExitCode::SUCCESS);
}
