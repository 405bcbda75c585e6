//! Webhooks, from the program's command to somebody else's server: signed as the published library checks, each fact at
//! least once and those of an order in their order, whatever the server does; and nowhere but where they may lead.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use engine::domain::basics::ids::SubscriberId;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::subscriber::{Event, Wishes};
use engine::domain::order::fact::FactKind;
use engine::ports::{Log as _, Ports as _, Receiver as _};
use local::up::Engine;
use serde_json::{Value, json};
use shared::events::{Addresses, Webhook, WebhookConnections, WebhookKeys, WebhookSender};
use shared::runtime::connections::Trust;
use shared::runtime::listed_secrets::ListedSecrets;
use standardwebhooks::Webhook as Checker;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::money_commands::{hall, order};
use crate::program::{read, read_lines, run};

/// What somebody's server does with what it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Takes,
    Fails,
    Redirects,
    /// It answers more than anybody wants to read.
    Floods,
    /// It takes the request and never answers.
    Stalls,
}

/// What was heard: its id, and what it says.
type Heard = (String, Value);

#[derive(Debug)]
struct Known {
    mood: Mood,
    /// The orders that it refuses.
    refuses: BTreeSet<String>,
    secret: Option<String>,
    heard: Vec<Heard>,
    /// Requests whose signature was not right.
    forged: u32,
    tries: u32,
    /// Requests to where it redirects.
    followed: u32,
}

struct Server {
    url: String,
    known: Arc<Mutex<Known>>,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn locked(known: &Mutex<Known>) -> MutexGuard<'_, Known> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn hear(State(known): State<Arc<Mutex<Known>>>, headers: HeaderMap, body: Bytes) -> Response {
    let mood = {
        let mut known = locked(&known);
        known.tries += 1;
        let said: Value = serde_json::from_slice(&body).unwrap_or_default();
        let order = said["data"]["order"].as_str().unwrap_or_default().to_owned();
        let is_good = known.secret.as_ref().is_some_and(|secret| {
            Checker::new(secret).is_ok_and(|checker| checker.verify(&body, &headers).is_ok())
        });
        if !is_good {
            known.forged += 1;
            return StatusCode::UNAUTHORIZED.into_response();
        }
        if known.mood == Mood::Takes || known.mood == Mood::Floods {
            if known.refuses.contains(&order) {
                return StatusCode::UNPROCESSABLE_ENTITY.into_response();
            }
            let id = headers["webhook-id"].to_str().unwrap_or_default().to_owned();
            known.heard.push((id, said));
        }
        known.mood
    };
    match mood {
        Mood::Takes => StatusCode::NO_CONTENT.into_response(),
        Mood::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Mood::Redirects => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/followed")]).into_response()
        }
        Mood::Floods => "x".repeat(64 << 20).into_response(),
        Mood::Stalls => std::future::pending().await,
    }
}

async fn followed(State(known): State<Arc<Mutex<Known>>>) -> StatusCode {
    locked(&known).followed += 1;
    StatusCode::OK
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hooks?of=onsale", listener.local_addr().unwrap());
        let known = Known {
            mood: Mood::Takes,
            refuses: BTreeSet::new(),
            secret: None,
            heard: Vec::new(),
            forged: 0,
            tries: 0,
            followed: 0,
        };
        let known = Arc::new(Mutex::new(known));
        let routes = Router::new().route("/hooks", post(hear)).route("/followed", post(followed));
        let routes = routes.with_state(Arc::clone(&known));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { url, known, serving }
    }

    fn is(&self, mood: Mood) {
        locked(&self.known).mood = mood;
    }

    fn knows(&self, secret: &Value) {
        locked(&self.known).secret = Some(secret.as_str().unwrap().to_owned());
    }

    /// The numbers of the facts of each order, in the order in which each was first heard.
    fn first_heard(&self) -> BTreeMap<String, Vec<u64>> {
        let mut orders: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (_, said) in &locked(&self.known).heard {
            let order = said["data"]["order"].as_str().unwrap().to_owned();
            let (fact, facts) =
                (said["data"]["fact"].as_u64().unwrap(), orders.entry(order).or_default());
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
        orders
    }

    /// Waits until every fact of the log was heard, and that of each order in its order.
    async fn has_heard_all(&self, dir: &Path) {
        let until = Instant::now() + Duration::from_secs(120);
        loop {
            let told = facts(dir);
            let heard = self.first_heard();
            if !told.is_empty() && heard == told {
                return;
            }
            assert!(Instant::now() < until, "told {told:?}, heard {heard:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn has_tried(&self, times: u32) {
        let before = locked(&self.known).tries;
        let until = Instant::now() + Duration::from_secs(90);
        while locked(&self.known).tries < before + times {
            assert!(Instant::now() < until, "it was not tried");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The numbers of the facts of each order, as the log has them.
fn facts(dir: &Path) -> BTreeMap<String, Vec<u64>> {
    let (facts, code) = read_lines(dir, &["events", "tail", "--all", "--once"]);
    assert_eq!(code, 0);
    let mut orders: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for fact in facts {
        let order = fact["order"].as_str().unwrap().to_owned();
        orders.entry(order).or_default().push(fact["fact"].as_u64().unwrap());
    }
    orders
}

fn list(dir: &Path) -> Value {
    let (said, code) = read(dir, &["webhooks", "list"]);
    assert_eq!(code, 0, "{said}");
    said["webhooks"][0].clone()
}

/// Has it tried again what it did not take: once more while it is being told.
async fn retry(dir: &Path) {
    let until = Instant::now() + Duration::from_secs(60);
    while run(dir, &["webhooks", "retry", "erp"]).1 != 0 {
        assert!(Instant::now() < until, "it is always told");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

async fn start(dir: &Path) -> Engine {
    hall(dir, 60, &json!({})).await
}

async fn paid(engine: &Engine, dir: &Path, buyers: &[&str]) -> Vec<String> {
    let mut orders = Vec::new();
    for buyer in buyers {
        let order = order(engine, buyer, 2).await;
        assert_eq!(run(dir, &["pay", "--order", &order]).1, 0);
        orders.push(order);
    }
    orders
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fact_is_heard_in_the_order_of_its_order_whatever_the_server_does() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let engine = start(dir).await;
    let server = Server::start().await;

    let (made, code) = read(dir, &["webhooks", "set", "erp", &server.url]);
    assert_eq!((&made["webhook"], code), (&json!("erp"), 0), "{made}");
    server.knows(&made["secret"]);
    let first = paid(&engine, dir, &["alice", "bob"]).await;
    server.has_heard_all(dir).await;
    assert_eq!(locked(&server.known).forged, 0);
    let (id, said) = locked(&server.known).heard[0].clone();
    assert_eq!(said["type"], "order.made");
    assert_eq!(id, format!("{}-1", said["data"]["order"].as_str().unwrap()));
    assert_eq!(said["data"]["lines"][0]["seats"].as_array().unwrap().len(), 2, "{said}");
    assert_eq!(said["data"]["total_minor"], 5000);

    // It fails, leads elsewhere, never answers: what happens meanwhile is told when it takes again.
    server.is(Mood::Fails);
    paid(&engine, dir, &["carol"]).await;
    server.has_tried(1).await;
    server.is(Mood::Redirects);
    paid(&engine, dir, &["dave"]).await;
    server.has_tried(1).await;
    assert_eq!(locked(&server.known).followed, 0, "nobody is followed");
    server.is(Mood::Stalls);
    paid(&engine, dir, &["erin"]).await;
    server.has_tried(1).await;
    server.is(Mood::Floods);
    retry(dir).await;
    server.has_tried(1).await;
    server.is(Mood::Takes);
    retry(dir).await;
    server.has_heard_all(dir).await;

    // One order is refused: its next facts wait behind the first, and no other order waits for it.
    let frank = order(&engine, "frank", 2).await;
    locked(&server.known).refuses.insert(frank.clone());
    assert_eq!(run(dir, &["pay", "--order", &frank]).1, 0);
    let heidi = paid(&engine, dir, &["heidi"]).await.remove(0);
    let until = Instant::now() + Duration::from_secs(60);
    while list(dir)["orders_waiting"] != 1
        || server.first_heard().get(&heidi).is_none_or(|facts| facts.len() < 2)
    {
        assert!(Instant::now() < until, "{} {:?}", list(dir), server.first_heard());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(server.first_heard().get(&frank), None);
    locked(&server.known).refuses.clear();
    retry(dir).await;
    server.has_heard_all(dir).await;
    assert_eq!((&list(dir)["orders_waiting"], &list(dir)["given_up"]), (&json!(0), &json!(0)));

    // Two secrets sign while one is replaced; with the old one alone nothing new is believed in the end.
    let (rotated, code) = read(dir, &["webhooks", "rotate", "erp"]);
    assert!(rotated["number"].as_u64() > made["number"].as_u64() && code == 0, "{rotated}");
    assert_ne!(rotated["secret"], made["secret"]);
    for secret in [&made["secret"], &rotated["secret"]] {
        server.knows(secret);
        let buyer = format!("user-{}", secret.as_str().unwrap().len() + server.first_heard().len());
        paid(&engine, dir, &[&buyer]).await;
        server.has_heard_all(dir).await;
    }
    let (both, code) = read_lines(dir, &["webhooks", "secret", "erp"]);
    assert_eq!((both.len(), code), (2, 0), "{both:?}");
    assert_eq!(locked(&server.known).forged, 0);

    // Told again from the beginning, it is the same again, by name and content.
    let told: BTreeSet<(String, String)> = everything(&server);
    locked(&server.known).heard.clear();
    let until = Instant::now() + Duration::from_secs(60);
    while run(dir, &["webhooks", "replay", "erp", "--from", "2020-01-01T00:00:00Z"]).1 != 0 {
        assert!(Instant::now() < until, "it is always told");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    server.has_heard_all(dir).await;
    assert_eq!(everything(&server), told);
    assert!(first.iter().all(|order| server.first_heard().contains_key(order)));

    // The audit reads what is kept of it.
    let (audit, code) = run(dir, &["audit", "--wait-seconds", "60"]);
    assert_eq!(code, 0, "{audit}");
    assert_eq!(run(dir, &["webhooks", "remove", "erp"]).1, 0);
    assert_eq!(run(dir, &["webhooks", "retry", "erp"]).1, 2, "it is not there any more");
}

/// What was heard, each once.
fn everything(server: &Server) -> BTreeSet<(String, String)> {
    let known = locked(&server.known);
    known.heard.iter().map(|(id, said)| (id.clone(), said.to_string())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_told_what_it_wants_to_hear_and_from_its_making() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let engine = start(dir).await;
    let server = Server::start().await;
    paid(&engine, dir, &["alice"]).await;
    let until = Instant::now() + Duration::from_secs(60);
    while facts(dir).values().map(Vec::len).sum::<usize>() < 2 {
        assert!(Instant::now() < until, "{:?}", facts(dir));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let set = ["webhooks", "set", "erp", &server.url, "--kind", "paid", "--sale", "hall"];
    let (made, code) = read(dir, &set);
    assert_eq!(code, 0, "{made}");
    server.knows(&made["secret"]);
    let bob = paid(&engine, dir, &["bob"]).await.remove(0);
    let until = Instant::now() + Duration::from_secs(60);
    while server.first_heard().is_empty() {
        assert!(Instant::now() < until, "nothing is heard");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.first_heard(), [(bob, vec![2])].into());
    for bad in
        ["ftp://erp.example/", "https://me:secret@erp.example/", "erp", "https://erp.example/#x"]
    {
        assert_eq!(run(dir, &["webhooks", "set", "crm", bad]).1, 2, "{bad}");
    }
    for bad in
        [["webhooks", "set", "-", "https://erp.example/"], ["webhooks", "secret", "crm", "--json"]]
    {
        assert_eq!(run(dir, &bad).1, 2, "{bad:?}");
    }
    assert_eq!(
        run(dir, &["webhooks", "set", "crm", "https://erp.example/", "--kind", "lost"]).1,
        2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_leads_to_no_private_network() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let engine = start(dir).await;
    let server = Server::start().await;
    let (made, _) = read(dir, &["webhooks", "set", "erp", &server.url]);
    server.knows(&made["secret"]);
    paid(&engine, dir, &["alice"]).await;
    server.has_heard_all(dir).await;
    let record = engine.app().ports.orders().orders.0.log();
    let mut events = Vec::new();
    for shard in engine::domain::ledger::log::LogShard::all() {
        let from = engine::domain::ledger::log::LogPosition { shard, number: 0 };
        for placed in record.after(from).await.unwrap() {
            events.extend(Event::of_record(&placed.record));
        }
    }
    assert!(!events.is_empty());
    let keys = WebhookKeys(ListedSecrets::new(vec!["k".repeat(32)]).unwrap());
    let port = server.url.split([':', '/']).nth(4).unwrap().to_owned();
    let tell = async |url: String, addresses: Addresses| {
        let webhook = Webhook {
            id: SubscriberId::new("erp").unwrap(),
            url: url.parse().unwrap(),
            wishes: Wishes { kinds: [FactKind::Paid].into(), ..Wishes::default() },
            secret: keys.next(None, Timestamp::now()).unwrap(),
            former: None,
            since: Timestamp::now(),
        };
        server.knows(&json!(keys.shown(&webhook.id, &webhook.secret).unwrap()));
        let connections = WebhookConnections::new(addresses, &Trust::public());
        let sender = WebhookSender {
            webhook: &webhook,
            keys: &keys,
            connections: &connections,
            catalogue: engine.app().ports.catalogue(),
        };
        sender.tell(&events[..1]).await
    };
    let tried = || locked(&server.known).tries;
    let before = tried();
    // By its number, by a name that is resolved at the connection, and without TLS.
    for url in [
        format!("http://127.0.0.1:{port}/hooks"),
        format!("https://127.0.0.1:{port}/hooks"),
        format!("https://[::1]:{port}/hooks"),
        format!("https://localhost:{port}/hooks"),
        format!("http://localhost:{port}/hooks"),
    ] {
        assert_eq!(tell(url.clone(), Addresses::Public).await, [false], "{url}");
    }
    assert_eq!(tried(), before, "nothing was asked");
    assert_eq!(tell(format!("http://localhost:{port}/hooks"), Addresses::Any).await, [true]);
}
