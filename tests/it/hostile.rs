//! Requests that nobody means well, over real sockets, byte by byte: each has its exact refusal, none
//! is answered 500, and when they are all through nothing is held and no rule is broken.

use std::time::Duration;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::domain::ids::{SaleId, UserId};
use engine::domain::number::{Mint, OrderNumber};
use engine::domain::time::Timestamp;
use engine::flows::expire::expire;
use local::identity::{AUDIENCE, ISSUER, Identity, Role};
use local::up::{Engine, Options};
use ops::audit;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use shared::http::tokens::Grant;
use shared::providers::stripe::signature;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::backends;
use super::described::{Answer, Description};

/// How long an answer may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// Refused by the parser of HTTP, before any of our code: no body, and so no type.
const BARE: &str = "";

/// A request, byte by byte.
#[derive(Debug, Clone)]
struct Raw {
    method: String,
    target: Vec<u8>,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    /// What is sent in the end, if it is not made of the above.
    instead: Option<Vec<u8>>,
    /// Whether the sender says that nothing more will come.
    ends: bool,
}

impl Raw {
    fn new(method: &str, target: impl AsRef<[u8]>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.as_ref().to_vec(),
            headers: Vec::new(),
            body: Vec::new(),
            instead: None,
            ends: false,
        }
    }

    /// Bytes that are no request of ours.
    fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self { instead: Some(bytes.as_ref().to_vec()), ..Self::new("", "") }
    }

    /// The same, and nothing more will come.
    fn ending(self) -> Self {
        Self { ends: true, ..self }
    }

    fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    fn bearer(self, token: &str) -> Self {
        self.header("Authorization", format!("Bearer {token}"))
    }

    /// A body with its length.
    fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body = body.as_ref().to_vec();
        let length = self.body.len().to_string();
        self.header("Content-Length", length)
    }

    fn json(self, body: impl AsRef<[u8]>) -> Self {
        self.header("Content-Type", "application/json").body(body)
    }

    fn written(&self) -> Vec<u8> {
        if let Some(bytes) = &self.instead {
            return bytes.clone();
        }
        let mut bytes = [self.method.as_bytes(), b" ", &self.target, b" HTTP/1.1\r\n"].concat();
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            bytes.extend(b"Host: tickets.example\r\n");
        }
        for (name, value) in &self.headers {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        bytes.extend(b"Connection: close\r\n\r\n");
        bytes.extend(&self.body);
        bytes
    }

    /// Sends it on a connection of its own and reads the answer to the end.
    async fn send(&self, address: &str) -> Answer {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The engine may refuse before it has read everything.
        let _refused_early = stream.write_all(&self.written()).await;
        if self.ends {
            let _gone = stream.shutdown().await;
        }
        let mut answer = Vec::new();
        let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "the connection stays open: {:?}", String::from_utf8_lossy(&answer));
        parse(&answer)
    }
}

/// An answer as it stands on the wire; ours all say how long they are.
fn parse(bytes: &[u8]) -> Answer {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Answer { status: 0, headers: HeaderMap::new(), body: bytes.to_vec() };
    };
    let head = std::str::from_utf8(&bytes[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        headers.append(name.parse::<HeaderName>().unwrap(), value.parse::<HeaderValue>().unwrap());
    }
    Answer { status, headers, body: bytes[end + 4..].to_vec() }
}

/// What must be answered.
#[derive(Debug, Clone, Copy)]
enum Expected {
    /// This status, and a problem of this type.
    Problem(u16, &'static str),
    /// `200`, and this outcome of a payment, with its reason.
    Outcome(&'static str, Option<&'static str>),
    /// This status, and no problem: the control of its neighbours.
    Fine(u16),
}
use Expected::{Fine, Outcome, Problem};

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
        "gate": { "shards": 1, "user_lock_ms": 600_000 },
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

    /// Alice asks for an admission.
    fn ask(&self, sale: &str, body: impl AsRef<[u8]>) -> Raw {
        Raw::new("POST", format!("/sales/{sale}/admissions")).bearer(&self.alice).json(body)
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
        };
        change(&mut grant);
        let order = grant.order;
        (self.engine.app().admissions.sign(&grant, now).unwrap(), order)
    }

    /// Somebody orders.
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

    fn callback(&self, body: impl AsRef<[u8]>, signature: &str) -> Raw {
        let post = Raw::new("POST", "/payments/stripe/callback");
        post.header("Stripe-Signature", signature).json(body)
    }

    /// A callback that is signed as it should be, whatever it says.
    fn signed(&self, body: impl AsRef<[u8]>) -> Raw {
        let signature = self.engine.sign_payment(body.as_ref());
        self.callback(body, &signature)
    }

    /// A good callback of a capture.
    fn captured(&self, payment: &str, order: &Value, amount: i64, currency: &str) -> Raw {
        self.signed(event(payment, order, json!(amount), currency).to_string())
    }

    /// A JSON Web Token of any header and claims, signed with HMAC-SHA256 and any secret.
    fn token(secret: &[u8], header: Value, claims: Value) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
    }

    /// Bearer tokens that are none, and one that is: the control.
    fn bearers(&self) -> Vec<Case> {
        let secret = self.engine.secrets().identity.as_bytes();
        let now = Timestamp::now();
        let exp = now.ms() / 1000 + 600;
        let header = |alg: &str| json!({ "alg": alg, "typ": "JWT" });
        let claims = |change: Value| {
            let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "exp": exp });
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            claims
        };
        let good = |change: Value| Self::token(secret, header("HS256"), claims(change));
        let list = |authorization: String| {
            Raw::new("GET", "/orders").header("Authorization", authorization)
        };
        let with = |token: String| Raw::new("GET", "/orders").bearer(&token);
        let unknown = Problem(401, "not-authenticated");
        let unsigned = {
            let token = Self::token(secret, header("none"), claims(json!({})));
            format!("{}.", token.rsplit_once('.').unwrap().0)
        };
        let old = Identity::new(secret).token("alice", Role::Buyer, now.plus_seconds(-60), 60);
        let foreign = Identity::new(b"guessed").token("alice", Role::Buyer, now, 600);
        vec![
            case("bearer: the control", with(good(json!({}))), Fine(200)),
            case("bearer: none", Raw::new("GET", "/orders"), unknown),
            case("bearer: another scheme", list("Basic YWxpY2U6".to_owned()), unknown),
            case("bearer: empty", list("Bearer ".to_owned()), unknown),
            case("bearer: garbage", list("Bearer \u{fffd}.x.y".to_owned()), unknown),
            case("bearer: two", with(good(json!({}))).bearer(&self.bob), unknown),
            case("bearer: expired", with(old.unwrap()), unknown),
            case("bearer: foreign key", with(foreign.unwrap()), unknown),
            case("bearer: alg none", with(unsigned), unknown),
            case(
                "bearer: alg RS256",
                with(Self::token(secret, header("RS256"), claims(json!({})))),
                unknown,
            ),
            case(
                "bearer: alg HS512",
                with(Self::token(secret, header("HS512"), claims(json!({})))),
                unknown,
            ),
            case("bearer: issuer", with(good(json!({ "iss": "https://evil.example" }))), unknown),
            case("bearer: audience", with(good(json!({ "aud": "another" }))), unknown),
            case("bearer: no expiry", with(good(json!({ "exp": null }))), unknown),
            case("bearer: expiry as text", with(good(json!({ "exp": exp.to_string() }))), unknown),
            case("bearer: sub with #", with(good(json!({ "sub": "a#b" }))), unknown),
            case("bearer: sub empty", with(good(json!({ "sub": "" }))), unknown),
            case(
                "bearer: sub missing",
                with(good(json!({ "sub": null }))).header("X", "y"),
                Fine(200),
            ),
            case("bearer: sub too long", with(good(json!({ "sub": "a".repeat(129) }))), unknown),
            case("bearer: sub with NUL", with(good(json!({ "sub": "al\u{0}ice" }))), unknown),
            case("bearer: an admission", with(self.admission("alice", |_| {}).0), unknown),
            case("operator: nobody", Raw::new("PUT", "/sales/hall").json("{}"), unknown),
            case(
                "operator: a buyer",
                Raw::new("PUT", "/sales/hall").bearer(&self.alice).json("{}"),
                Problem(403, "not-permitted"),
            ),
            case(
                "operator: a list of roles",
                Raw::new("PUT", "/sales/hall")
                    .bearer(&good(json!({ "role": ["operator"] })))
                    .json("{}"),
                Problem(403, "not-permitted"),
            ),
        ]
    }

    /// Paths and methods that there are not, however they are spelt.
    fn paths(&self) -> Vec<Case> {
        let nothing = Problem(404, "not-found");
        let method = Problem(405, "method-not-allowed");
        let get = |target: &str| Raw::new("GET", target);
        let mine = |target: &str| Raw::new("GET", target).bearer(&self.alice);
        let post =
            |target: &str| Raw::new("POST", target).bearer(&self.alice).json(r#"{"tickets":1}"#);
        let long = format!("/sales/{}", "a".repeat(65));
        let mut cases = vec![
            case("path: the control", get("/sales/hall"), Fine(200)),
            case("path: absolute", get("http://elsewhere.example/sales/hall"), Fine(200)),
            case("path: length of 60 kB", get(&format!("/{}", "a".repeat(60_000))), nothing),
            case("path: connect", Raw::new("CONNECT", "tickets.example:443"), nothing),
            case("path: asterisk", Raw::new("OPTIONS", "*"), nothing),
            case("path: post with dots", post("/sales/../admissions"), nothing),
            case("path: post with %2f", post("/sales/hall%2f..%2ffull/admissions"), nothing),
            case("path: an order with dots", post("/orders/../cancel"), nothing),
            case("path: provider with dots", post("/payments/%2e%2e/callback"), nothing),
            case("path: no such provider", post("/payments/paypal/callback"), nothing),
            case("path: no such sale", post("/sales/nowhere/admissions"), nothing),
            case("path: get where one posts", get("/sales/../orders"), method),
            case("path: raw NUL", get("/sales/hall\0"), Problem(400, BARE)),
            case("path: raw blank", get("/sales/ha ll"), Problem(400, BARE)),
        ];
        for target in [
            "/",
            "//sales",
            "/sales/",
            "/SALES",
            "/sales;v=1",
            "/sales/Hall",
            "/sales/hall%00",
            "/sales/hall%20",
            "/sales/h%61ll",
            "/sales/..",
            "/sales/%2e%2e/availability",
            "/sales/..%2f..%2fetc%2fpasswd/availability",
            "/sales/hall%5c..",
            "/sales/%ff%fe",
            "/sales/%EF%BD%88all",
            "/sales/-hall",
            "/openapi.yaml",
            "/openapi.json/",
            "/sales/hall/availability/",
            "/sales/%7Bsale%7D",
            "/sales/hall%0d%0aX:%20y",
            "/.git/config",
            &long,
        ] {
            cases.push(case(&format!("path: {target}"), get(target), nothing));
        }
        for number in [
            "007",
            "-1",
            "+1",
            "1.0",
            "1e3",
            "0x10",
            "9223372036854775808",
            "18446744073709551616",
            "1%00",
            "%31",
            "%EF%BC%91",
            "1",
            "9223372036854775807",
        ] {
            cases.push(case(
                &format!("path: order {number}"),
                mine(&format!("/orders/{number}")),
                nothing,
            ));
        }
        for name in ["DELETE", "HEAD", "OPTIONS", "TRACE", "PATCH", "get", "QUERY", "PROPFIND"] {
            cases.push(case(&format!("method: {name}"), Raw::new(name, "/sales/hall"), method));
        }
        cases.push(case("method: post", post("/orders"), method));
        let tunnelled = post("/sales").header("X-HTTP-Method-Override", "GET");
        cases.push(case("method: tunnelled", tunnelled, method));
        cases
    }

    /// What is no HTTP, or hardly.
    fn framing(&self) -> Vec<Case> {
        let bare = Problem(400, BARE);
        let malformed = Problem(400, "malformed");
        let ask = |rest: &str| {
            let token = &self.bob;
            Raw::bytes(format!(
                "POST /sales/hall/admissions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
                 Content-Type: application/json\r\nConnection: close\r\n{rest}"
            ))
        };
        let get = |rest: &str| Raw::bytes(format!("GET /sales HTTP/1.1\r\nHost: x\r\n{rest}"));
        let many: String = (0..150).map(|index| format!("X-{index}: y\r\n")).collect();
        let huge = format!("X: {}\r\n\r\n", "y".repeat(600_000));
        vec![
            case("framing: noise", Raw::bytes(b"\x00\x01\x02\xff\r\n\r\n"), bare),
            case(
                "framing: TLS",
                Raw::bytes(b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n"),
                bare,
            ),
            case("framing: HTTP/0.9", Raw::bytes("GET /sales\r\n\r\n"), bare),
            case("framing: HTTP/3.0", Raw::bytes("GET /sales HTTP/3.0\r\n\r\n"), bare),
            case("framing: negative length", ask("Content-Length: -1\r\n\r\n"), bare),
            case("framing: length is text", ask("Content-Length: two\r\n\r\n{}"), bare),
            case(
                "framing: two lengths",
                ask("Content-Length: 2\r\nContent-Length: 13\r\n\r\n{}"),
                bare,
            ),
            case(
                "framing: length of 2^64",
                ask("Content-Length: 18446744073709551616\r\n\r\n{}"),
                bare,
            ),
            case(
                "framing: a length and chunks",
                ask("Content-Length: 13\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                malformed,
            ),
            case("framing: unknown coding", ask("Transfer-Encoding: gzip\r\n\r\n{}"), bare),
            case("framing: a name with a blank", get("X Y: z\r\n\r\n"), bare),
            case("framing: a value with NUL", get("X: y\0z\r\n\r\n"), bare),
            case("framing: no colon", get("nonsense\r\n\r\n"), bare),
            case("framing: 150 headers", get(&format!("{many}\r\n")), Problem(431, BARE)),
            case("framing: a header of 600 kB", get(&huge), Problem(431, BARE)),
            case(
                "framing: a target of 70 kB",
                Raw::new("GET", format!("/{}", "a".repeat(70_000))),
                Problem(414, BARE),
            ),
            case(
                "framing: chunk without a size",
                ask("Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
                malformed,
            ),
            case(
                "framing: chunk of 2^68",
                ask("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}"),
                malformed,
            ),
            case(
                "framing: body breaks off",
                ask("Content-Length: 100\r\n\r\n{\"tickets\"").ending(),
                malformed,
            ),
            case(
                "framing: chunks break off",
                ask("Transfer-Encoding: chunked\r\n\r\n5\r\n{\"ti").ending(),
                malformed,
            ),
            case("framing: two hosts", get("Host: y\r\nConnection: close\r\n\r\n"), malformed),
            case(
                "framing: host is none",
                Raw::new("GET", "/sales").header("Host", "a[b"),
                malformed,
            ),
            case(
                "framing: port is none",
                Raw::new("GET", "/sales").header("Host", "a:99999"),
                malformed,
            ),
            case(
                "framing: 10 MB announced",
                ask("Content-Length: 10485761\r\n\r\n{}"),
                Problem(413, "too-large"),
            ),
        ]
    }

    /// Bodies of a request for an admission.
    fn bodies(&self) -> Vec<Case> {
        let malformed = Problem(400, "malformed");
        let invalid = Problem(422, "invalid");
        let media = Problem(415, "unsupported-media-type");
        let large = Problem(413, "too-large");
        let two = r#"{"tickets":2}"#;
        let typed = |content_type: &str| {
            let post = Raw::new("POST", "/sales/hall/admissions").bearer(&self.alice);
            post.header("Content-Type", content_type).body(two)
        };
        let bare = Raw::new("POST", "/sales/hall/admissions").bearer(&self.alice);
        let deep = |open: &str, count| open.repeat(count);
        let utf16: Vec<u8> = two.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let zipped =
            b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xabV*\xc9L\xceN-)V\xb22\xaa\x05\x00";
        let padded = |bytes: usize| format!("{two}{}", " ".repeat(bytes - two.len()));
        let mut cases = vec![
            case("type: none", bare.clone().body(two), media),
            case("type: text", typed("text/plain"), media),
            case("type: a form", typed("application/x-www-form-urlencoded"), media),
            case("type: multipart", typed("multipart/form-data; boundary=x"), media),
            case("type: another JSON", typed("application/json-seq"), media),
            case(
                "type: two",
                typed("application/json").header("Content-Type", "text/plain"),
                media,
            ),
            case(
                "type: not text",
                bare.clone().header("Content-Type", b"application/j\xffson").body(two),
                media,
            ),
            case("body: 64 KiB and one", self.ask("hall", padded(64 * 1024 + 1)), large),
            case("body: 6 MB and one", self.ask("hall", padded(6 * 1024 * 1024 + 1)), large),
            case("body: none", bare.header("Content-Type", "application/json"), malformed),
            case("body: UTF-16", self.ask("hall", utf16), malformed),
            case(
                "body: gzip",
                self.ask("hall", zipped).header("Content-Encoding", "gzip"),
                malformed,
            ),
            case("body: BOM", self.ask("hall", format!("\u{feff}{two}")), malformed),
            case("body: bad UTF-8", self.ask("hall", b"{\"tick\xffets\":2}"), malformed),
            case("body: 10,000 lists", self.ask("hall", deep("[", 10_000)), invalid),
            case("body: 10,000 objects", self.ask("hall", deep("{\"a\":", 10_000)), invalid),
            case(
                "body: 10,000 lists deep down",
                self.ask("hall", format!("{{\"tickets\":{}", deep("[", 10_000))),
                invalid,
            ),
        ];
        for text in [
            "   ",
            "{",
            "}",
            "{\"tickets\":",
            "{\"tickets\":2,}",
            "{'tickets':2}",
            "{tickets:2}",
            "{\"tickets\":2}x",
            "{\"tickets\":2}{\"tickets\":2}",
            "{\"tickets\":NaN}",
            "{\"tickets\":Infinity}",
            "{\"tickets\":02}",
            "{\"tickets\":+2}",
            "{\"tickets\":0x2}",
            "{\"tickets\":1e400}",
            "{\"tickets\":2/*two*/}",
            "tickets=2",
            "{\"tickets\":\"\\ud800\"}",
            "{\"\\ud800\":2}",
            "{\"a\tb\":2}",
            "<tickets>2</tickets>",
            "\0",
        ] {
            cases.push(case(&format!("body: {text:?}"), self.ask("hall", text), malformed));
        }
        for text in [
            "null",
            "true",
            "2",
            "\"2\"",
            "[]",
            "[2]",
            "[{\"tickets\":2}]",
            "{}",
            "{\"tickets\":null}",
            "{\"tickets\":true}",
            "{\"tickets\":\"2\"}",
            "{\"tickets\":[2]}",
            "{\"tickets\":{}}",
            "{\"tickets\":2.0}",
            "{\"tickets\":2.5}",
            "{\"tickets\":2e0}",
            "{\"tickets\":-0}",
            "{\"tickets\":-1}",
            "{\"tickets\":0}",
            "{\"tickets\":5}",
            "{\"tickets\":65536}",
            "{\"tickets\":65538}",
            "{\"tickets\":4294967298}",
            "{\"tickets\":9223372036854775808}",
            "{\"tickets\":18446744073709551616}",
            "{\"tickets\":2,\"tickets\":2}",
            "{\"tickets\":2,\"\\u0074ickets\":1}",
            "{\"Tickets\":2}",
            "{\"tickets \":2}",
            "{\"tickets\":2,\"user\":\"bob\"}",
            "{\"tickets\":2,\"__proto__\":{}}",
            "{\"tickets\":2,\"\":0}",
            "{\"tickets\":2,\"ti\u{200d}ckets\":1}",
        ] {
            cases.push(case(&format!("body: {text:?}"), self.ask("hall", text), invalid));
        }
        let closed = Problem(403, "sale-closed");
        for sale in ["over", "later", "paused"] {
            cases.push(case(&format!("sale: {sale}"), self.ask(sale, r#"{"tickets":1}"#), closed));
        }
        cases.extend([
            case("body: the control", self.ask("hall", two), Fine(201)),
            case("body: again at once", self.ask("hall", two), Problem(429, "too-many-requests")),
            case(
                "body: JSON with a charset",
                typed("application/json; charset=utf-8"),
                Problem(429, "too-many-requests"),
            ),
        ]);
        cases
    }

    /// Admissions that are none, or another's.
    fn admissions(&self) -> Vec<Case> {
        let refused = Problem(403, "not-admitted");
        let secret = self.engine.secrets().admission.as_bytes();
        let now = Timestamp::now();
        let number = |buyer: &str| self.mint.mint(now, &UserId::new(buyer).unwrap());
        let one = json!([{ "tier": "standing", "best": { "count": 1 } }]);
        let with = |token: &str| self.order(&self.alice, "hall", &json!(token), &one);
        let claims = |change: Value| {
            let seconds = now.ms() / 1000;
            let mut claims = json!({
                "iss": "onsale", "aud": "onsale-orders", "sub": "alice", "sale": "hall", "jti": number("alice"),
                "tickets": 1, "iat": seconds, "exp": seconds + 600
            });
            claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            claims
        };
        let header = |alg: &str, kid: Value| json!({ "alg": alg, "typ": "JWT", "kid": kid });
        let forged = |header: Value, change: Value| Self::token(secret, header, claims(change));
        let local = || header("HS256", json!("local"));
        let good = self.admission("alice", |_| {}).0;
        let (signed, _) = good.rsplit_once('.').unwrap();
        let expired = self.admission("alice", |grant| grant.expires_at = now.plus_seconds(-1)).0;
        let elsewhere =
            self.admission("alice", |grant| grant.sale = SaleId::new("full").unwrap()).0;
        let bobs = self.admission("bob", |_| {}).0;
        let few = self.admission("alice", |grant| grant.tickets = 2).0;
        let three = json!([{ "tier": "standing", "best": { "count": 3 } }]);
        let bare = json!({ "lines": one }).to_string();
        let bare = || Raw::new("POST", "/sales/hall/orders").bearer(&self.alice).json(&bare);
        let foreign = Self::token(b"another secret of 32 bytes......", local(), claims(json!({})));
        vec![
            case("admission: none", bare(), refused),
            case("admission: null", self.order(&self.alice, "hall", &Value::Null, &one), refused),
            case("admission: empty", with(""), refused),
            case("admission: garbage", with("a.b.c"), refused),
            case("admission: 10 kB", with(&"a".repeat(10_000)), refused),
            case("admission: the bearer token", with(&self.alice), refused),
            case("admission: foreign key", with(&foreign), refused),
            case("admission: no signature", with(&format!("{signed}.")), refused),
            case("admission: two parts", with(signed), refused),
            case(
                "admission: alg none",
                with(&format!(
                    "{}.",
                    forged(header("none", json!("local")), json!({})).rsplit_once('.').unwrap().0
                )),
                refused,
            ),
            case(
                "admission: alg RS256",
                with(&forged(header("RS256", json!("local")), json!({}))),
                refused,
            ),
            case(
                "admission: alg HS384",
                with(&forged(header("HS384", json!("local")), json!({}))),
                refused,
            ),
            case("admission: no kid", with(&forged(json!({ "alg": "HS256" }), json!({}))), refused),
            case(
                "admission: unknown kid",
                with(&forged(header("HS256", json!("../../dev/null")), json!({}))),
                refused,
            ),
            case("admission: issuer", with(&forged(local(), json!({ "iss": ISSUER }))), refused),
            case(
                "admission: audience",
                with(&forged(local(), json!({ "aud": "onsale" }))),
                refused,
            ),
            case("admission: number", with(&forged(local(), json!({ "jti": "-1" }))), refused),
            case(
                "admission: number of 2^63",
                with(&forged(local(), json!({ "jti": "9223372036854775808" }))),
                refused,
            ),
            case("admission: tickets", with(&forged(local(), json!({ "tickets": -1 }))), refused),
            case("admission: no expiry", with(&forged(local(), json!({ "exp": null }))), refused),
            case("admission: sub", with(&forged(local(), json!({ "sub": "a#b" }))), refused),
            case("admission: expired", with(&expired), refused),
            case("admission: of another sale", with(&elsewhere), refused),
            case("admission: of another buyer", with(&bobs), refused),
            case(
                "admission: for fewer tickets",
                self.order(&self.alice, "hall", &json!(few), &three),
                refused,
            ),
            case(
                "admission: two headers",
                bare().header("Admission", &good).header("Admission", &good),
                refused,
            ),
            case(
                "admission: at another sale",
                self.order(
                    &self.alice,
                    "full",
                    &json!(good),
                    &json!([{ "tier": "stalls", "best": { "count": 1 } }]),
                ),
                refused,
            ),
            case(
                "admission: a number",
                self.order(&self.alice, "hall", &json!(1), &one),
                Problem(422, "invalid"),
            ),
        ]
    }

    /// Lines that cannot be meant, with a good admission, which none of them uses up.
    fn lines(&self) -> Vec<Case> {
        let invalid = Problem(422, "invalid");
        let token = json!(self.admission("alice", |_| {}).0);
        let in_hall = |lines: Value| self.order(&self.alice, "hall", &token, &lines);
        let on_train =
            json!(self.admission("alice", |grant| grant.sale = SaleId::new("train").unwrap()).0);
        let in_train = |lines: Value| self.order(&self.alice, "train", &on_train, &lines);
        let stalls = |change: Value| {
            let mut line = json!({ "tier": "stalls" });
            line.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            in_hall(json!([line]))
        };
        let travel = |change: Value| {
            let mut line = json!({ "tier": "second", "from": "X", "to": "Z" });
            line.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            in_train(json!([line]))
        };
        let best = json!({ "count": 1 });
        let raw =
            |body: String| Raw::new("POST", "/sales/hall/orders").bearer(&self.alice).json(body);
        let seats = |names: Value| stalls(json!({ "seats": names }));
        let mut cases: Vec<Case> = vec![
            case("lines: none", in_hall(json!([])), invalid),
            case(
                "lines: an object",
                in_hall(json!({ "0": { "tier": "stalls", "best": best } })),
                invalid,
            ),
            case("lines: null", in_hall(Value::Null), invalid),
            case(
                "lines: five",
                in_hall(json!([1, 2, 3, 4, 5].map(|_| json!({ "tier": "stalls", "best": best })))),
                invalid,
            ),
            case(
                "lines: 1,000",
                in_hall(json!(vec![json!({ "tier": "stalls", "best": best }); 1000])),
                invalid,
            ),
            case(
                "lines: a line is a list",
                in_hall(json!([["stalls", null, null, null, best]])),
                invalid,
            ),
            case(
                "lines: one tier twice",
                in_hall(
                    json!([{ "tier": "stalls", "best": best }, { "tier": "stalls", "best": best }]),
                ),
                invalid,
            ),
            case(
                "lines: given twice",
                raw(format!(
                    "{{\"admission\":{token},\"lines\":[],\"lines\":[{{\"tier\":\"stalls\",\"best\":{best}}}]}}"
                )),
                invalid,
            ),
            case(
                "lines: the order as a list",
                raw(format!("[{token},[{{\"tier\":\"stalls\",\"best\":{best}}}]]")),
                invalid,
            ),
            case(
                "tier: another sale's",
                in_hall(json!([{ "tier": "second", "best": best }])),
                invalid,
            ),
            case(
                "tier: in capitals",
                in_hall(json!([{ "tier": "STALLS", "best": best }])),
                invalid,
            ),
            case("tier: a number", in_hall(json!([{ "tier": 1, "best": best }])), invalid),
            case(
                "tier: with a colon",
                in_hall(json!([{ "tier": "stalls}:sold:{x", "best": best }])),
                invalid,
            ),
            case("choice: none", stalls(json!({})), invalid),
            case("choice: two", stalls(json!({ "best": best, "seats": ["A-1"] })), invalid),
            case(
                "choice: nothing but nulls",
                stalls(json!({ "best": null, "seats": null, "pattern": null })),
                invalid,
            ),
            case("best: a list", stalls(json!({ "best": [1, "required"] })), invalid),
            case("best: 0", stalls(json!({ "best": { "count": 0 } })), invalid),
            case("best: 11", stalls(json!({ "best": { "count": 11 } })), invalid),
            case("best: 2^64", stalls(json!({ "best": { "count": u64::MAX } })), invalid),
            case(
                "best: maybe",
                stalls(json!({ "best": { "count": 1, "together": "maybe" } })),
                invalid,
            ),
            case("seats: none", seats(json!([])), invalid),
            case("seats: twice the same", seats(json!(["A-1", "A-1"])), invalid),
            case(
                "seats: eleven",
                seats(json!((1..=11).map(|seat| format!("A-{seat}")).collect::<Vec<_>>())),
                invalid,
            ),
            case("seats: the other tier's", seats(json!(["standing-1"])), invalid),
            case(
                "seats: of a standing tier",
                in_hall(json!([{ "tier": "standing", "seats": ["standing-1"] }])),
                invalid,
            ),
            case("seats: one text", seats(json!("A-1")), invalid),
            case("seats: numbers", seats(json!([1])), invalid),
            case(
                "pattern: no columns here",
                stalls(json!({ "pattern": [{ "column": "A" }] })),
                invalid,
            ),
            case(
                "attendees: too few",
                stalls(json!({ "best": { "count": 2 }, "attendees": ["p"] })),
                invalid,
            ),
            case(
                "attendees: twice the same",
                stalls(json!({ "best": { "count": 2 }, "attendees": ["p", "p"] })),
                invalid,
            ),
            case(
                "attendees: with #",
                stalls(json!({ "best": best, "attendees": ["p#1"] })),
                invalid,
            ),
            case(
                "attendees: NUL",
                stalls(json!({ "best": best, "attendees": ["p\u{0}"] })),
                invalid,
            ),
            case(
                "attendees: blank",
                stalls(json!({ "best": best, "attendees": ["\u{3000}"] })),
                invalid,
            ),
            case(
                "attendees: 65 bytes",
                stalls(json!({ "best": best, "attendees": ["é".repeat(33)] })),
                invalid,
            ),
            case(
                "price: the buyer's own",
                stalls(json!({ "best": best, "price_minor": 1 })),
                invalid,
            ),
            case(
                "journey: on a concert",
                stalls(json!({ "best": best, "from": "X", "to": "Z" })),
                invalid,
            ),
            case(
                "journey: none on a train",
                in_train(json!([{ "tier": "second", "best": best }])),
                invalid,
            ),
            case(
                "journey: half of one",
                in_train(json!([{ "tier": "second", "from": "X", "best": best }])),
                invalid,
            ),
            case(
                "journey: backwards",
                travel(json!({ "from": "Z", "to": "X", "best": best })),
                invalid,
            ),
            case(
                "journey: nowhere",
                travel(json!({ "from": "X", "to": "X", "best": best })),
                invalid,
            ),
            case("journey: not sold", travel(json!({ "from": "Y", "best": best })), invalid),
            case(
                "pattern: no such column",
                travel(json!({ "pattern": [{ "column": "C" }] })),
                invalid,
            ),
            case("pattern: the aisle", travel(json!({ "pattern": [{ "column": "" }] })), invalid),
            case(
                "pattern: row 2",
                travel(json!({ "pattern": [{ "column": "A" }, { "column": "A", "row": 2 }] })),
                invalid,
            ),
            case("pattern: a place as a list", travel(json!({ "pattern": [["A", 0]] })), invalid),
            case(
                "sale: another's lines",
                self.order(&self.alice, "nowhere", &token, &json!([])),
                Problem(404, "not-found"),
            ),
        ];
        for (what, name) in [
            ("right to left", "\u{202e}1-A"),
            ("joiner", "A\u{200d}-1"),
            ("full width", "Ａ-1"),
            ("combining", "A\u{301}-1"),
            ("lower case", "a-1"),
            ("NUL", "A-1\u{0}"),
            ("line feed", "A-1\n"),
            ("blank", " A-1"),
            ("empty", ""),
            ("too long", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
            ("replacement", "A-1\u{fffd}"),
            ("BOM", "\u{feff}A-1"),
        ] {
            cases.push(case(&format!("seats: {what}"), seats(json!([name])), invalid));
        }
        cases
    }

    /// Orders of others, and what is done twice.
    async fn orders(&self) -> Vec<Case> {
        let best = json!([{ "tier": "stalls", "best": { "count": 2 } }]);
        let nothing = Problem(404, "not-found");
        let invalid = Problem(422, "invalid");
        let bobs = self.buy("bob", &best).await;
        let number = bobs["order"].as_str().unwrap();
        let seat = bobs["lines"][0]["tickets"][0]["seat"].clone();
        let token = json!(self.admission("alice", |_| {}).0);
        let taken = json!([{ "tier": "stalls", "seats": [seat] }]);
        let again = &bobs["admission"];
        let other = json!([{ "tier": "stalls", "best": { "count": 1 } }]);
        let more = json!(self.admission("bob", |_| {}).0);
        let three = json!([{ "tier": "standing", "best": { "count": 3 } }]);
        let all = json!([{ "tier": "stalls", "best": { "count": 4, "together": "required" } }]);

        let cancelled = self.buy("carol", &other).await;
        let carol = self.engine.token("carol").unwrap();
        let path = format!("/orders/{}/cancel", cancelled["order"].as_str().unwrap());
        let cancel = |bearer: &str, path: &str| Raw::new("POST", path).bearer(bearer).json("");
        assert_eq!(self.send(&cancel(&carol, &path)).await.status, 200);

        let late = self.buy("dave", &other).await;
        let dave = self.engine.token("dave").unwrap();
        let later = Timestamp::now().plus_seconds(3600);
        let late_number = late["order"].as_str().unwrap().parse().unwrap();
        let sale = SaleId::new("hall").unwrap();
        expire(&self.engine.app().ports, &sale, late_number, later).await.unwrap();

        // One who is called the same in another normal form is somebody else.
        let composed = self.buy("zo\u{eb}", &other).await;
        let composed_number = composed["order"].as_str().unwrap();
        let decomposed = self.engine.token("zoe\u{308}").unwrap();

        let shown = format!("/orders/{number}");
        let get = |bearer: &str, path: &str| Raw::new("GET", path).bearer(bearer);
        let mut cases = vec![
            case("order: the control", get(&self.bob, &shown), Fine(200)),
            case("order: another's", get(&self.alice, &shown), nothing),
            case(
                "order: another's, cancelled",
                cancel(&self.alice, &format!("{shown}/cancel")),
                nothing,
            ),
            case(
                "order: cancelled by nobody",
                Raw::new("POST", format!("{shown}/cancel")),
                Problem(401, "not-authenticated"),
            ),
            case(
                "order: of one called alike",
                get(&decomposed, &format!("/orders/{composed_number}")),
                nothing,
            ),
            case("order: cancelled again", cancel(&carol, &path), Fine(200)),
            case("order: repeated", self.order(&self.bob, "hall", again, &best), Fine(201)),
            case(
                "order: repeated with other lines",
                self.order(&self.bob, "hall", again, &other),
                Problem(422, "token-reused"),
            ),
            case(
                "order: repeated after its end",
                self.order(&carol, "hall", &cancelled["admission"], &other),
                Problem(409, "order-resolved"),
            ),
            case(
                "order: repeated too late",
                self.order(&dave, "hall", &late["admission"], &other),
                Problem(410, "hold-expired"),
            ),
            case(
                "order: over the limit",
                self.order(&self.bob, "hall", &more, &three),
                Problem(403, "limit-reached"),
            ),
            case(
                "order: a taken seat",
                self.order(&self.alice, "hall", &token, &taken),
                Problem(409, "seat-taken"),
            ),
            case("page: before the first", get(&self.alice, "/orders?before=0"), Fine(200)),
            case(
                "sale: paused",
                self.order(
                    &self.alice,
                    "paused",
                    &json!(
                        self.admission("alice", |grant| grant.sale =
                            SaleId::new("paused").unwrap())
                            .0
                    ),
                    &other,
                ),
                Problem(403, "sale-closed"),
            ),
            case(
                "sale: over",
                self.order(
                    &self.alice,
                    "over",
                    &json!(
                        self.admission("alice", |grant| grant.sale = SaleId::new("over").unwrap())
                            .0
                    ),
                    &other,
                ),
                Problem(403, "sale-closed"),
            ),
            case(
                "sale: too small",
                self.order(
                    &self.alice,
                    "full",
                    &json!(
                        self.admission("alice", |grant| grant.sale = SaleId::new("full").unwrap())
                            .0
                    ),
                    &best,
                ),
                Problem(409, "sold-out"),
            ),
            case(
                "order: four side by side",
                self.order(&self.alice, "hall", &token, &all),
                Fine(201),
            ),
        ];
        for query in [
            "limit=-1",
            "limit=0",
            "limit=101",
            "limit=abc",
            "limit=1.0",
            "limit=65537",
            "limit=",
            "limit",
            "limit=1&limit=2",
            "limit=%D9%A3",
            "limit=+1%00",
            "limit=1e1",
            "before=-1",
            "before=abc",
            "before=01",
            "before=9223372036854775808",
            "before=",
            "before=1&before=1",
            "before=1%2C2",
            "before=%ff",
        ] {
            cases.push(case(
                &format!("page: {query}"),
                get(&self.alice, &format!("/orders?{query}")),
                invalid,
            ));
        }
        for query in [
            "from=X",
            "to=Z",
            "from=Z&to=X",
            "from=X&to=X",
            "from=X&to=Q",
            "from=&to=Z",
            "from=X&from=X&to=Z",
            "from=X%00&to=Z",
            "from=%ff&to=Z",
            "from=X&to=Z%0a",
            "from=x&to=z",
            "",
        ] {
            let target = format!("/sales/train/availability?{query}");
            cases.push(case(&format!("journey: {query}"), Raw::new("GET", target), invalid));
        }
        cases.push(case(
            "journey: in a hall",
            Raw::new("GET", "/sales/hall/availability?from=X&to=Z"),
            invalid,
        ));
        cases
    }

    /// Sale files.
    fn files(&self) -> Vec<Case> {
        let invalid = Problem(422, "invalid");
        let with = |change: Value| self.put("hall", hall("hall", change).to_string());
        let rows = |seats: Value| {
            with(
                json!({ "tiers": [{ "tier": "t", "name": "T", "price_minor": 1, "sections": [{ "section": "s", "rows": [{ "row": "1", "seats": seats }] }] }] }),
            )
        };
        let tier = |change: Value| {
            let mut tier = json!({ "tier": "t", "name": "T", "general_admission": 1 });
            tier.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            with(json!({ "tiers": [tier] }))
        };
        let text = hall("hall", json!({})).to_string();
        vec![
            case("file: the control", self.put("hall", &text), Fine(200)),
            case("file: another sale's", self.put("full", &text), invalid),
            case("file: a list", self.put("hall", format!("[{text}]")), invalid),
            case(
                "file: given a name twice",
                self.put("hall", text.replacen('{', "{\"title\":\"x\",", 1)),
                invalid,
            ),
            case(
                "file: 5 MiB and one",
                self.put("hall", format!("{text}{}", " ".repeat(5 * 1024 * 1024 + 1 - text.len()))),
                Problem(413, "too-large"),
            ),
            case("file: other seats", rows(json!(["1", "2"])), Problem(409, "seats-differ")),
            case("file: a run as a list", rows(json!(["A", 1, 5])), invalid),
            case("file: a run without count", rows(json!({ "prefix": "A", "first": 1 })), invalid),
            case(
                "file: a run of 2^32 - 1",
                rows(json!({ "prefix": "A", "first": 1, "count": u32::MAX })),
                invalid,
            ),
            case(
                "file: a run past 2^32",
                rows(json!({ "prefix": "A", "first": u32::MAX, "count": 2 })),
                invalid,
            ),
            case("file: a row of text", rows(json!("A1")), invalid),
            case("file: a seat with a line feed", rows(json!(["A\n1"])), invalid),
            case("file: a tier as a list", with(json!({ "tiers": [["t", "T", 1]] })), invalid),
            case("file: a gate as a list", with(json!({ "gate": [1, 75, 1, 1, 300] })), invalid),
            case("file: no tiers", with(json!({ "tiers": [] })), invalid),
            case("file: a price of -1", tier(json!({ "price_minor": -1 })), invalid),
            case(
                "file: a price of 2^63",
                tier(json!({ "price_minor": 9_223_372_036_854_775_808_u64 })),
                invalid,
            ),
            case("file: a price of 0.5", tier(json!({ "price_minor": 0.5 })), invalid),
            case(
                "file: 10^6 + 1 spots",
                tier(json!({ "price_minor": 1, "general_admission": 1_000_001 })),
                invalid,
            ),
            case("file: a currency of four", with(json!({ "currency": "EURO" })), invalid),
            case(
                "file: closes before it opens",
                with(json!({ "closes_at": "2019-01-01T00:00:00Z" })),
                invalid,
            ),
            case(
                "file: a time without an offset",
                with(json!({ "opens_at": "2020-01-01T00:00:00" })),
                invalid,
            ),
            case("file: 30 February", with(json!({ "opens_at": "2020-02-30T00:00:00Z" })), invalid),
            case("file: no limit", with(json!({ "limit_per_buyer": 0 })), invalid),
            case("file: a title of escapes", with(json!({ "title": "\u{1b}[31mred" })), invalid),
            case("file: an unknown field", with(json!({ "free": true })), invalid),
        ]
    }

    /// Callbacks that are not believed, or cannot be read, or come twice, or in the wrong order.
    async fn callbacks(&self) -> Vec<Case> {
        let unsigned = Problem(401, "not-authenticated");
        let invalid = Problem(422, "invalid");
        let now = Timestamp::now();
        let secret = self.engine.secrets().stripe.as_bytes();
        let best = json!([{ "tier": "standing", "best": { "count": 2 } }]);
        let paid = self.buy("erin", &best).await;
        let (order, amount) = (&paid["order"], paid["amount_minor"].as_i64().unwrap());
        let good = event("pi_good", order, json!(amount), "eur").to_string();
        let sign_at = |at: Timestamp| signature::sign(secret, good.as_bytes(), at);
        let fresh = sign_at(now);
        let (time, tag) = fresh.split_once(',').unwrap();
        let says = |change: &dyn Fn(&mut Value)| {
            let mut event = event("pi_bad", order, json!(amount), "eur");
            change(&mut event);
            self.signed(event.to_string())
        };
        let object = |field: &'static str, value: Value| {
            says(&move |event| event["data"]["object"][field] = value.clone())
        };
        let twice = good.replacen("\"type\"", "\"type\":\"x\",\"type\"", 1);
        let deep = format!("{},\"deep\":{}", &good[..good.len() - 1], "[".repeat(10_000));
        let to_nobody = Raw::new("POST", "/payments/paypal/callback")
            .header("Stripe-Signature", &fresh)
            .json(&good);

        let cancelled = self.buy("frank", &best).await;
        let frank = self.engine.token("frank").unwrap();
        let cancel = format!("/orders/{}/cancel", cancelled["order"].as_str().unwrap());
        let cancel = Raw::new("POST", cancel).bearer(&frank);
        let money_first = self.buy("grace", &best).await;
        let grace = self.engine.token("grace").unwrap();
        let cancel_paid = format!("/orders/{}/cancel", money_first["order"].as_str().unwrap());
        vec![
            case("callback: no signature", Raw::new("POST", "/payments/stripe/callback").json(&good), unsigned),
            case("callback: empty signature", self.callback(&good, ""), unsigned),
            case("callback: garbage", self.callback(&good, "t=,v1="), unsigned),
            case("callback: no time", self.callback(&good, tag), unsigned),
            case("callback: no tag", self.callback(&good, time), unsigned),
            case("callback: the older scheme", self.callback(&good, &fresh.replace("v1=", "v0=")), unsigned),
            case("callback: another secret", self.callback(&good, &signature::sign(b"whsec_other", good.as_bytes(), now)), unsigned),
            case("callback: another body", self.callback(format!("{good} "), &fresh), unsigned),
            case("callback: another amount", self.callback(good.replace(&amount.to_string(), "1"), &fresh), unsigned),
            case("callback: stale", self.callback(&good, &sign_at(now.plus_seconds(-310))), unsigned),
            case("callback: from the future", self.callback(&good, &sign_at(now.plus_seconds(400))), unsigned),
            case("callback: time of 2^63", self.callback(&good, &format!("t=9223372036854775808,{tag}")), unsigned),
            case("callback: time moved", self.callback(&good, &format!("t={},{tag}", now.ms() / 1000 - 5)), unsigned),
            case("callback: two times", self.callback(&good, &format!("{time},{fresh}")), unsigned),
            case("callback: two headers", self.callback(&good, &fresh).header("Stripe-Signature", &fresh), unsigned),
            case("callback: bad header before the good", self.callback(&good, "t=1,v1=00").header("Payment-Signature", &fresh), unsigned),
            case("callback: a header of 5 kB", self.callback(&good, &format!("{fresh},v1={}", "0".repeat(5000))), unsigned),
            case("callback: no such provider", to_nobody, Problem(404, "not-found")),
            case("callback: 64 KiB and one", self.signed(" ".repeat(64 * 1024 + 1)), Problem(413, "too-large")),
            case("callback: nothing", self.signed(""), invalid),
            case("callback: a list", self.signed("[]"), invalid),
            case("callback: fields as a list", self.signed(format!("[\"payment_intent.succeeded\",{{\"object\":[\"pi\",{amount},\"eur\",[{order}]]}}]")), invalid),
            case("callback: no type", says(&|event| event["type"] = Value::Null), invalid),
            case("callback: two types", self.signed(&twice), invalid),
            case("callback: 10,000 deep", self.signed(&deep), invalid),
            case("callback: no data", says(&|event| event["data"] = Value::Null), invalid),
            case("callback: no payment", object("id", Value::Null), invalid),
            case("callback: payment with #", object("id", json!("pi#1")), invalid),
            case("callback: payment of 129 bytes", object("id", json!("p".repeat(129))), invalid),
            case("callback: amount as text", object("amount_received", json!("5000")), invalid),
            case("callback: amount of -1", object("amount_received", json!(-1)), invalid),
            case("callback: amount of 0.5", object("amount_received", json!(0.5)), invalid),
            case("callback: amount of 2^63", object("amount_received", json!(9_223_372_036_854_775_808_u64)), invalid),
            case("callback: amount of 1e400", self.signed(good.replace(&format!("{amount},"), "1e400,")), invalid),
            case("callback: no currency", object("currency", Value::Null), invalid),
            case("callback: currency of two", object("currency", json!("EU")), invalid),
            case("callback: order is a number", object("metadata", json!({ "order": 1 })), invalid),
            case("callback: order is no number", object("metadata", json!({ "order": "first" })), invalid),
            case("callback: order in full width", object("metadata", json!({ "order": "１" })), invalid),
            case("callback: another event", says(&|event| event["type"] = json!("charge.failed")), Outcome("ignored", None)),
            case("callback: no order", object("metadata", json!({})), Outcome("ignored", None)),
            case("callback: unknown order", self.captured("pi_1", &json!("1"), amount, "eur"), Outcome("refund", Some("unknown_order"))),
            case("callback: too little", self.captured("pi_2", order, amount - 1, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: too much", self.captured("pi_3", order, amount + 1, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: nothing at all", self.captured("pi_4", order, 0, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: all there is", self.captured("pi_5", order, i64::MAX, "eur"), Outcome("refund", Some("wrong_amount"))),
            case("callback: another currency", self.captured("pi_6", order, amount, "cny"), Outcome("refund", Some("wrong_currency"))),
            case("callback: the control", self.callback(&good, &fresh), Outcome("accepted", None)),
            case("callback: replayed", self.callback(&good, &fresh), Outcome("accepted", None)),
            case("callback: signed anew", self.signed(&good), Outcome("accepted", None)),
            case("callback: a second payment", self.captured("pi_7", order, amount, "eur"), Outcome("refund", Some("second_payment"))),
            case("callback: paid, then cancelled", self.captured("pi_8", &money_first["order"], amount, "eur"), Outcome("accepted", None)),
            case("callback: cancelled after it", Raw::new("POST", cancel_paid).bearer(&grace), Problem(409, "order-resolved")),
            case("callback: cancelled before it", cancel, Fine(200)),
            case("callback: wrong amount after the end", self.captured("pi_9", &cancelled["order"], 1, "eur"), Outcome("refund", Some("wrong_amount"))),
        ]
    }
}

/// The event of a capture.
fn event(payment: &str, order: &Value, amount: Value, currency: &str) -> Value {
    json!({
        "id": "evt_1", "object": "event", "type": "payment_intent.succeeded",
        "data": { "object": {
            "id": payment, "amount_received": amount, "currency": currency, "metadata": { "order": order }
        } }
    })
}

/// What is wrong with an answer, if anything is.
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
    cases.extend(fixture.lines());
    cases.extend(fixture.orders().await);
    cases.extend(fixture.callbacks().await);
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
        if request.instead.is_none() && !answer.body.is_empty() && target.starts_with('/') {
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
