//! The edge: pages and API on one origin, the secret by which functions know it, and what it caches.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use engine::domain::basics::time::Timestamp;
use fake_identity::{Identity, Issuers, Realm, Role};
use futures_util::future::join_all;
use local::concurrency::Concurrency;
use local::data_dir::DataDir;
use local::gateway::{API, EdgeOptions, Gateway, Place, Routes};
use local::payment;
use local::up::{self, Engine, Options};
use reqwest::header::{AGE, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, DATE};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};
use shared::http::edge::{SECRET_HEADER, VIEWER_HEADER};
use shared::http::routes::{Access, ROUTES, Row};
use shared::runtime::app::App;
use shared::runtime::config::OperatorsConfig;
use shared::runtime::edge::EdgeSecrets;

use crate::backends::{self, Servers};

const NEW: &str = "0123456789abcdefghijklmnopqrstuv";
const OLD: &str = "the-secret-that-is-being-replaced";
/// Where the issuers would be, if they had to be asked for their keys.
const ISSUERS: &str = "http://127.0.0.1:4100";
const INVENTED: &str = "a-secret-that-somebody-has-made-up";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Through the edge, also with a header that only the edge may send.
    Edge,
    /// Past the edge, with this secret.
    Past(Option<&'static str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// That it did not come through the edge.
    PastTheEdge,
    /// That its signature does not survive the edge.
    NotSigned,
    /// Whatever the function says.
    Function,
}

const WAYS: [Way; 5] = [
    Way::Edge,
    Way::Past(None),
    Way::Past(Some(INVENTED)),
    Way::Past(Some(NEW)),
    Way::Past(Some(OLD)),
];

fn expected(row: &Row, way: Way, is_checked: bool) -> Outcome {
    // What stands among the pages is at their address alone, which is the edge's.
    if row.is_among_pages() {
        return Outcome::Function;
    }
    match (row.access, way) {
        (Access::Operator, Way::Edge) => Outcome::NotSigned,
        (
            Access::Anyone
            | Access::Buyer
            | Access::Watch
            | Access::Operate
            | Access::Refund
            | Access::Scan,
            Way::Past(None | Some(INVENTED)),
        ) if is_checked => Outcome::PastTheEdge,
        (
            Access::Anyone
            | Access::Buyer
            | Access::Operator
            | Access::Watch
            | Access::Operate
            | Access::Refund
            | Access::Scan
            | Access::Provider
            | Access::ProviderWithKey,
            Way::Edge | Way::Past(_),
        ) => Outcome::Function,
    }
}

/// A gateway whose functions have these secrets, and whose edge has the old one.
struct Fixture {
    servers: Servers,
    data_dir: DataDir,
    issuers: Arc<Issuers>,
    http: Client,
}

impl Fixture {
    async fn start() -> Self {
        let servers = Box::pin(backends::servers()).await;
        let data_dir = DataDir::temporary().unwrap();
        let issuers = Arc::new(Issuers::new(ISSUERS.to_owned(), data_dir.path()));
        Self { servers, data_dir, issuers, http: Client::new() }
    }

    async fn gateway(&self, secrets: EdgeSecrets) -> Gateway {
        let Servers { stack, endpoints, queues, .. } = &self.servers;
        let own = self.data_dir.secrets().unwrap();
        let mut config = up::config(stack.topology(), endpoints, queues, &own).unwrap();
        config.edge = secrets;
        let issuer = Some(format!("{ISSUERS}/{}", Realm::Operators.as_str()));
        config.operators = OperatorsConfig { issuer };
        let app = Arc::new(Box::pin(App::from_config(&config)).await.unwrap());
        let identity = Identity::new(own.identity.as_bytes());
        let identity = identity.with_issuers(Arc::clone(&self.issuers));
        let account = Concurrency::default();
        let edge = EdgeOptions { secret: Some(OLD.to_owned()), ..EdgeOptions::default() };
        let place = Place::take(0).await.unwrap();
        Gateway::start_at(place, app, identity, Routes::Api, None, account, &edge)
    }

    /// What is answered on a route by a way in.
    async fn ask(&self, gateway: &Gateway, row: &Row, way: Way) -> Outcome {
        let own = self.data_dir.secrets().unwrap();
        let path = row
            .path
            .replace("{key}", &payment::entry_key(&own))
            .replace("{provider}", "stripe")
            .replace("{order}", "42")
            .replace(['{', '}'], "");
        let prefix = if way == Way::Edge { API } else { "" };
        let url = format!("http://{}{prefix}{path}", gateway.address());
        let mut request = self.http.request(row.method.parse().unwrap(), url);
        request = match way {
            Way::Edge => request.header(SECRET_HEADER, INVENTED),
            Way::Past(Some(secret)) => request.header(SECRET_HEADER, secret),
            Way::Past(None) => request,
        };
        let identity = Identity::new(own.identity.as_bytes());
        let role = if row.access == Access::Operator { Role::Operator } else { Role::Buyer };
        let now = Timestamp::now();
        let token = match row.access.scope() {
            Some(scope) => {
                self.issuers.access_token(Realm::Operators, "zhang", scope.as_str(), now)
            }
            None => identity.token("alice", role, now, 60),
        };
        request = request.bearer_auth(token.unwrap());
        if row.method != "GET" {
            request = request.json(&json!({}));
        }
        let reply = request.send().await.unwrap();
        let status = reply.status();
        let text = reply.text().await.unwrap();
        let body: Value = serde_json::from_str(&text).unwrap_or_default();
        match body["type"].as_str() {
            Some("/problems/not-through-the-edge") => {
                assert_eq!(status, StatusCode::FORBIDDEN);
                Outcome::PastTheEdge
            }
            Some("/problems/not-permitted") => Outcome::NotSigned,
            Some(_) | None => Outcome::Function,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_route_by_each_way_in() {
    let fixture = Fixture::start().await;
    let both = EdgeSecrets::new(vec![NEW.to_owned(), OLD.to_owned()]).unwrap();
    // The control: without secrets nothing is refused.
    for (secrets, is_checked) in [(both, true), (EdgeSecrets::default(), false)] {
        let gateway = fixture.gateway(secrets).await;
        for row in ROUTES {
            for way in WAYS {
                let outcome = fixture.ask(&gateway, &row, way).await;
                assert_eq!(outcome, expected(&row, way, is_checked), "{} {way:?}", row.key);
            }
        }
        gateway.stop().await;
    }
}

#[test]
fn the_cache_knows_every_parameter_that_anyone_may_send() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    let document: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let read = ROUTES.iter().filter(|row| row.access == Access::Anyone && row.method == "GET");
    let mut all: BTreeSet<&str> = BTreeSet::new();
    for row in read {
        let parameters = &document["paths"][row.path]["get"]["parameters"];
        let parameters = parameters.as_array().into_iter().flatten();
        let described: BTreeSet<&str> = parameters
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        assert_eq!(BTreeSet::from_iter(row.queries.iter().copied()), described, "{}", row.key);
        all.extend(row.queries);
    }
    assert!((4..=10).contains(&all.len()), "a cache policy has ten at most: {all:?}");
}

fn hall() -> Value {
    let row = |row: &str| json!({ "row": row, "seats": { "prefix": row, "first": 1, "count": 8 } });
    json!({
        "sale": "hall", "title": "Hall", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "gate": { "shards": 1, "user_lock_ms": 1, "budget_percent": 1000 },
        "tiers": [{ "tier": "hall", "name": "Hall", "price_minor": 2500,
            "sections": [{ "section": "all", "rows": [row("a"), row("b")] }] }]
    })
}

/// An engine with the hall, and those who use it.
struct Visitor {
    engine: Engine,
    http: Client,
}

impl Visitor {
    async fn start(options: Options) -> Self {
        let engine = Engine::start(backends::engine(options)).await.unwrap();
        let visitor = Self { engine, http: Client::new() };
        let put = visitor.http.put(format!("{}/sales/hall", visitor.engine.url())).json(&hall());
        let put = put.bearer_auth(visitor.engine.operator_token().unwrap()).send().await.unwrap();
        assert_eq!(put.status(), 200, "{}", put.text().await.unwrap());
        visitor
    }

    async fn get(&self, path: &str) -> Response {
        self.http.get(format!("{}{path}", self.engine.url())).send().await.unwrap()
    }
}

fn header(response: &Response, name: reqwest::header::HeaderName) -> Option<String> {
    Some(response.headers().get(name)?.to_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_may_be_told_to_answer_at_its_edge_only() {
    let visitor = Visitor::start(Options { edge_only: true, ..Options::ephemeral() }).await;
    for (path, status) in [("/sales", 403), ("/api/sales", 200), ("/api/nothing", 404)] {
        assert_eq!(visitor.get(path).await.status(), status, "{path}");
    }
    let buys = |prefix: &str| {
        let url = format!("{}{prefix}/sales/hall/admissions", visitor.engine.url());
        let token = visitor.engine.token("alice").unwrap();
        visitor.http.post(url).bearer_auth(token).json(&json!({ "tickets": 1 }))
    };
    assert_eq!(buys("").send().await.unwrap().status(), 403);
    // What only the edge may say is not believed of anybody else.
    let forged = buys(API).header(VIEWER_HEADER, "203.0.113.7").header(SECRET_HEADER, "x");
    assert_eq!(forged.send().await.unwrap().status(), 201);
    visitor.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_anyone_may_read_is_asked_of_the_origin_once() {
    let visitor = Visitor::start(Options::ephemeral()).await;
    let document = "/api/openapi.json";
    let first = visitor.get(document).await;
    assert_eq!((first.status(), header(&first, AGE)), (StatusCode::OK, None));
    let date = header(&first, DATE).unwrap();
    let others = join_all((0..20).map(|index| visitor.get(document_with(document, index)))).await;
    for again in others {
        assert_eq!(header(&again, DATE), Some(date.clone()), "its time is the origin's");
        assert!(header(&again, AGE).is_some());
        assert_eq!(header(&again, CACHE_CONTROL).unwrap(), "public, max-age=300");
    }
    // The API's own host has no cache, and what is one buyer's is in none.
    assert_eq!(header(&visitor.get("/openapi.json").await, AGE), None);
    let orders = || {
        let request = visitor.http.get(format!("{}/api/orders", visitor.engine.url()));
        request.bearer_auth(visitor.engine.token("alice").unwrap()).send()
    };
    for _ in 0..2 {
        let mine = orders().await.unwrap();
        assert_eq!((mine.status(), header(&mine, AGE)), (StatusCode::OK, None));
    }
    assert_eq!(visitor.get("/api/orders").await.status(), 401);
    // A public answer is nobody's: who asks with a token gets the same one.
    let asks = visitor.http.get(format!("{}{document}", visitor.engine.url()));
    let asks = asks.header(AUTHORIZATION, "Bearer x").send().await.unwrap();
    assert_eq!(header(&asks, DATE), Some(date));
    visitor.engine.stop().await.unwrap();
}

/// The same document with something behind it that no route reads.
fn document_with(document: &str, index: u32) -> &str {
    if index.is_multiple_of(2) { document } else { "/api/openapi.json?token=1&utm=2" }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_api_are_one_origin() {
    let dist = tempfile::tempdir().unwrap();
    fs::create_dir(dist.path().join("assets")).unwrap();
    for (name, text) in [
        ("index.html", "<h1>on sale</h1>"),
        ("robots.txt", "User-agent: *\n"),
        ("assets/sale.js", "2"),
        ("404.html", "<h1>nothing</h1>"),
        ("assets/main-1.js", "1"),
        ("csp.json", r#"{"policy":"default-src 'self'; connect-src 'self'{connect}"}"#),
    ] {
        fs::write(dist.path().join(name), text).unwrap();
    }
    let pages = Some(dist.path().to_owned());
    let visitor = Visitor::start(Options { pages, ..Options::ephemeral() }).await;
    for (path, status, text) in [
        ("/", 200, "on sale"),
        ("/?lang=zh", 200, "on sale"),
        ("/s/hall", 200, "<title>Hall</title>"),
        ("/s/nowhere", 404, "There is no such sale"),
        ("/s/NOWHERE", 404, "There is no such sale"),
        ("/s/", 404, "nothing"),
        ("/s/hall/", 404, "nothing"),
        ("/assets/sale.js", 200, "2"),
        ("/robots.txt", 200, "/sitemap.xml"),
        ("/sitemap.xml", 200, "/s/hall</loc>"),
        ("/assets/main-1.js", 200, "1"),
        ("/s/hall/room", 404, "nothing"),
        ("/nothing", 404, "nothing"),
        ("/assets/%2e%2e/csp.json", 404, "nothing"),
        ("/assets/..%2fcsp.json", 404, "nothing"),
        ("/assets/..%5ccsp.json", 404, "nothing"),
        ("/assets/main-1.js%00", 404, "nothing"),
        ("/assets//etc/passwd", 404, "nothing"),
        ("/csp.json", 404, "nothing"),
        ("/config.json", 200, "stripe"),
        ("/sales/hall", 200, "Hall"),
        ("/api/sales/hall", 200, "Hall"),
        ("/sales/nowhere", 404, "/problems/not-found"),
        ("/api/nothing", 404, "/problems/not-found"),
        ("/api", 404, "/problems/not-found"),
        ("/orders", 401, "/problems/not-authenticated"),
        ("/sales/hall/places", 405, "/problems/method-not-allowed"),
    ] {
        let reply = visitor.get(path).await;
        assert_eq!(reply.status(), status, "{path}");
        let is_page = reply.headers().contains_key("content-security-policy")
            // A document that a browser runs nothing of.
            || path == "/sitemap.xml";
        if path.starts_with("/s/") {
            let policy = reply.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.contains("connect-src 'self' http://127.0.0.1:"), "{path}: {policy}");
            assert_eq!(reply.headers()["x-content-type-options"], "nosniff", "{path}");
            assert_eq!(reply.headers()["cross-origin-opener-policy"], "same-origin", "{path}");
        }
        let said = reply.text().await.unwrap();
        assert!(said.contains(text), "{path}: {said}");
        let is_api = path.starts_with("/api") || path.starts_with("/sales") || path == "/orders";
        assert_eq!(is_page, !is_api, "{path}");
    }
    for (method, path, status) in [
        (Method::POST, "/", 405),
        (Method::DELETE, "/config.json", 405),
        (Method::POST, "/nothing", 404),
        (Method::HEAD, "/", 200),
        (Method::HEAD, "/nothing", 404),
    ] {
        let request =
            visitor.http.request(method.clone(), format!("{}{path}", visitor.engine.url()));
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), status, "{method} {path}");
        if method == Method::HEAD {
            assert_eq!(header(&reply, CONTENT_TYPE).unwrap(), "text/html; charset=utf-8");
            assert!(reply.bytes().await.unwrap().is_empty());
        }
    }
    // Buyers come back from a provider's page to the pages.
    let own = visitor.engine.url().to_owned();
    let origins = &visitor.engine.app().return_origins;
    assert!(origins.iter().any(|origin| origin.to_string() == own), "{origins:?}");
    visitor.engine.stop().await.unwrap();
}
