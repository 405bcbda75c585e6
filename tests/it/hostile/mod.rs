//! Requests that nobody means well, over real sockets, byte by byte: each has its exact refusal, none
//! is answered 500, and when they are all through nothing is held and no rule is broken.

mod admissions;
mod bodies;
mod callbacks;
mod framing;
mod identities;
mod lines;
mod orders;
mod paths;
mod payments;
mod refunds;
mod request;
mod rooms;
mod sale_files;
mod tickets;

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::domain::admission::room::slot::Asking;
use engine::domain::basics::ids::{SaleId, UserId};
use engine::domain::basics::number::{Mint, OrderNumber};
use engine::domain::basics::time::Timestamp;
use local::up::{Engine, Options};
use ops::audit;
use serde_json::{Value, json};
use shared::http::tokens::Grant;

use crate::backends;
use crate::described::{Answer, Description};
use Expected::{Fine, Outcome, Problem};
use request::Raw;

/// The longest time until an answer.
const DEADLINE: Duration = Duration::from_secs(120);

/// Refused by the parser of HTTP, before any of our code: no body, and so no type.
const BARE: &str = "";

/// The answer that is expected.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// This status, and a problem of this type.
    Problem(u16, &'static str),
    /// `200`, and this outcome of a payment, with its reason.
    Outcome(&'static str, Option<&'static str>),
    /// This status, and no problem: the control of its neighbours.
    Fine(u16),
}

type Case = (String, Raw, Expected);

fn case(name: &str, request: Raw, expected: Expected) -> Case {
    (name.to_owned(), request, expected)
}

/// The engine and those who use it.
struct Fixture {
    engine: Engine,
    alice: String,
    bob: String,
    operator: String,
    mint: Mint,
}

fn hall(id: &str, change: Value) -> Value {
    let row = |row: &str| json!({ "row": row, "seats": { "prefix": format!("{row}-"), "first": 1, "count": 8 } });
    let mut file = json!({
        "sale": id, "title": "Hall", "currency": "EUR",
        "opens_at": "2020-01-01T00:00:00Z", "closes_at": "2100-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 900,
        "gate": { "shards": 1, "user_lock_ms": 600_000, "budget_percent": 1000 },
        "tiers": [
            { "tier": "stalls", "name": "Stalls", "price_minor": 2500, "sections": [{ "section": "A", "rows": [row("A"), row("B")] }] },
            { "tier": "standing", "name": "Standing", "price_minor": 1000, "general_admission": 30 }
        ]
    });
    file.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    file
}

fn train() -> Value {
    let named = json!(["1A", "1B", null, "1D"]);
    let tier = json!({
        "tier": "second", "name": "Second", "columns": ["A", "B", null, "D"],
        "fares": [{ "from": "X", "to": "Y", "price_minor": 100 }, { "from": "X", "to": "Z", "price_minor": 300 }],
        "sections": [{ "section": "1", "rows": [{ "row": "1", "seats": named }] }]
    });
    let stop = |stop: &str| json!({ "stop": stop, "name": stop });
    hall("train", json!({ "stops": [stop("X"), stop("Y"), stop("Z")], "tiers": [tier] }))
}

impl Fixture {
    async fn start() -> Self {
        let engine = Engine::start(backends::engine(Options::ephemeral())).await.unwrap();
        let alice = engine.token("alice").unwrap();
        let bob = engine.token("bob").unwrap();
        let operator = engine.operator_token().unwrap();
        let fixture = Self { engine, alice, bob, operator, mint: Mint::new(4095) };
        let tiny =
            json!([{ "tier": "stalls", "name": "S", "price_minor": 1, "general_admission": 1 }]);
        for file in [
            hall("hall", json!({})),
            hall("over", json!({ "closes_at": "2021-01-01T00:00:00Z" })),
            hall("later", json!({ "opens_at": "2099-01-01T00:00:00Z" })),
            hall("paused", json!({ "state": "paused" })),
            hall("full", json!({ "tiers": tiny })),
            train(),
            hall("room", json!({ "opens_at": "2099-01-01T00:00:00Z", "room": {} })),
        ] {
            let put = fixture.put(file["sale"].as_str().unwrap(), file.to_string());
            let published = fixture.send(&put).await;
            assert_eq!(published.status, 200, "{:#}", published.json());
        }
        fixture
    }

    fn address(&self) -> &str {
        self.engine.url().strip_prefix("http://").unwrap()
    }

    async fn send(&self, request: &Raw) -> Answer {
        request.send(self.address()).await
    }

    fn put(&self, sale: &str, body: impl AsRef<[u8]>) -> Raw {
        Raw::new("PUT", format!("/sales/{sale}")).bearer(&self.operator).json(body)
    }

    /// A good admission of a buyer, unless the grant is changed; and the number of its order.
    fn admission(&self, buyer: &str, change: impl FnOnce(&mut Grant)) -> (String, OrderNumber) {
        let now = Timestamp::now();
        let user = UserId::new(buyer).unwrap();
        let mut grant = Grant {
            sale: SaleId::new("hall").unwrap(),
            order: self.mint.mint(now, &user),
            user,
            tickets: 4,
            expires_at: now.plus_seconds(600),
            entry: None,
            asking: Asking::default(),
        };
        change(&mut grant);
        let order = grant.order;
        (self.engine.app().admissions.sign(&grant, now).unwrap(), order)
    }

    fn order(&self, bearer: &str, sale: &str, token: &Value, lines: &Value) -> Raw {
        let body = json!({ "admission": token, "lines": lines }).to_string();
        Raw::new("POST", format!("/sales/{sale}/orders")).bearer(bearer).json(body)
    }

    /// An order that a buyer makes as everyone should.
    async fn buy(&self, buyer: &str, lines: &Value) -> Value {
        let (token, _) = self.admission(buyer, |_| {});
        let bearer = self.engine.token(buyer).unwrap();
        let made = self.send(&self.order(&bearer, "hall", &json!(token), lines)).await;
        assert_eq!(made.status, 201, "{:#}", made.json());
        let mut order = made.json();
        order["admission"] = json!(token);
        order
    }

    /// A JSON Web Token of any header and claims, signed with HMAC-SHA256 and any secret.
    fn token(secret: &[u8], header: Value, claims: Value) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }
}

/// The fault of an answer, if it has one.
fn fault(expected: Expected, answer: &Answer, is_head: bool) -> Option<String> {
    let said = String::from_utf8_lossy(&answer.body);
    let (status, right) = match expected {
        Problem(status, BARE) => (status, said.is_empty()),
        Problem(status, _) if is_head => (status, said.is_empty()),
        // `json` below may not be asked of an answer that is none.
        Problem(status, _) if answer.status != status => (status, true),
        Outcome(..) if answer.status != 200 => (200, true),
        Problem(status, slug) => {
            let is_problem = answer.header("content-type") == Some("application/problem+json");
            (status, is_problem && answer.json()["type"] == format!("/problems/{slug}"))
        }
        Outcome(outcome, reason) => {
            let body = answer.json();
            (200, body["outcome"] == outcome && body["reason"].as_str() == reason)
        }
        Fine(status) => (status, true),
    };
    (answer.status != status || !right).then(|| format!("{expected:?}: {} {said}", answer.status))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hostile_request_has_its_exact_answer_and_leaves_nothing_behind() {
    let fixture = Fixture::start().await;
    let description = Description::new();
    let mut cases = fixture.framing();
    cases.extend(fixture.paths());
    cases.extend(fixture.bearers());
    cases.extend(fixture.bodies());
    cases.extend(fixture.files());
    cases.extend(fixture.admissions());
    cases.extend(fixture.rooms());
    cases.extend(fixture.lines());
    cases.extend(fixture.orders().await);
    cases.extend(fixture.callbacks().await);
    cases.extend(fixture.refunds().await);
    cases.extend(fixture.tickets().await);
    cases.extend(fixture.payments().await);
    let mut faults = Vec::new();
    let mut refused = 0;
    for (name, request, expected) in &cases {
        let answer = fixture.send(request).await;
        assert!(
            answer.status < 500,
            "{name}: {} {}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
        let is_head = request.method == "HEAD";
        faults.extend(fault(*expected, &answer, is_head).map(|fault| format!("{name}: {fault}")));
        refused += usize::from(answer.status >= 400);
        // What is a request at all is answered as the document says.
        let target = String::from_utf8_lossy(&request.target);
        // The pages are no part of it.
        let is_api = target.starts_with('/') && target != "/";
        if request.instead.is_none() && !answer.body.is_empty() && is_api {
            description.check_answer(name, &request.method, &target, &answer);
        }
    }
    assert!(faults.is_empty(), "{} of {}: {faults:#?}", faults.len(), cases.len());
    println!("{} hostile requests, {refused} of them refused", cases.len());
    assert!(cases.len() >= 400 && refused >= 370, "cases were lost");
    assert_eq!(description.faults(), [""; 0]);

    // What was bought on the way is given up again; then nothing is held.
    for buyer in ["alice", "bob", "zo\u{eb}"] {
        let bearer = fixture.engine.token(buyer).unwrap();
        let listed =
            fixture.send(&Raw::new("GET", "/orders?limit=100").bearer(&bearer)).await.json();
        let pending = listed["orders"].as_array().unwrap().iter();
        for order in pending.filter(|order| order["state"] == "pending") {
            let path = format!("/orders/{}/cancel", order["order"].as_str().unwrap());
            let cancelled = fixture.send(&Raw::new("POST", path).bearer(&bearer)).await;
            assert_eq!(cancelled.status, 200);
        }
    }
    let free = fixture.send(&Raw::new("GET", "/sales/hall/availability")).await.json();
    let free = |tier: usize| free["tiers"][tier]["available"].clone();
    assert_eq!(free(0), 16, "all stalls are free");
    assert_eq!(free(1), 26, "erin and grace have paid for two each");
    let train =
        fixture.send(&Raw::new("GET", "/sales/train/availability?from=X&to=Z")).await.json();
    assert_eq!(train["tiers"][0]["available"], 3);

    let deadline = std::time::Instant::now() + DEADLINE;
    loop {
        let options = audit::Options::at(Timestamp::now());
        let report =
            audit::run(&backends::audited(fixture.engine.endpoints()), &options).await.unwrap();
        if report.clean {
            break;
        }
        // Paid orders are counted a moment later.
        assert!(std::time::Instant::now() < deadline, "{report}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fixture.engine.stop().await.unwrap();
}
