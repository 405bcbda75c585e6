//! Signing in at the local issuers, as the pages do it and as somebody would who is not to come in.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::domain::basics::time::Timestamp;
use fake_identity::{Realm, challenge};
use loadtest::demo;
use local::up::{Engine, Options};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, Url};
use serde_json::{Value, json};
use shared::http::identity::Scope;
use shared::http::routes::{ROUTES, Row};

use super::backends;

const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const FORM: &str = "application/x-www-form-urlencoded";

struct Browser {
    engine: Engine,
    http: Client,
}

/// Parameters by name, changed by others; one that becomes empty is left out.
fn with<'a>(given: &[(&'a str, String)], changes: &[(&'a str, &str)]) -> BTreeMap<&'a str, String> {
    let mut all: BTreeMap<&str, String> = given.iter().cloned().collect();
    all.extend(changes.iter().map(|(name, value)| (*name, (*value).to_owned())));
    all.retain(|_, value| !value.is_empty());
    all
}

fn encoded<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut url = Url::parse("http://x/").unwrap();
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

impl Browser {
    async fn start() -> Self {
        let engine = Engine::start(backends::engine(Options::ephemeral())).await.unwrap();
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { engine, http }
    }

    fn callback(&self) -> String {
        format!("{}/signed-in", self.engine.url())
    }

    /// What the pages send to have somebody sign in.
    fn request(&self, realm: Realm) -> [(&'static str, String); 8] {
        [
            ("response_type", "code".to_owned()),
            ("client_id", realm.client_id().to_owned()),
            ("redirect_uri", self.callback()),
            ("scope", realm.scope()),
            ("state", "the state".to_owned()),
            ("nonce", "the nonce".to_owned()),
            ("code_challenge", challenge(VERIFIER)),
            ("code_challenge_method", "S256".to_owned()),
        ]
    }

    fn at(&self, realm: Realm, path: &str) -> String {
        format!("{}/{path}", self.engine.issuers().issuer(realm))
    }

    async fn ask(&self, realm: Realm, changes: &[(&str, &str)]) -> Response {
        let query = encoded(with(&self.request(realm), changes));
        self.http.get(format!("{}?{query}", self.at(realm, "authorize"))).send().await.unwrap()
    }

    /// Sends the form; the parameters of the address that it leads to.
    async fn sign_in(
        &self,
        realm: Realm,
        changes: &[(&str, &str)],
        chosen: &[&str],
    ) -> BTreeMap<String, String> {
        let form = with(&self.request(realm), changes);
        let chosen = chosen.iter().map(|scope| ("chosen", (*scope).to_owned()));
        let body = encoded(form.into_iter().chain(chosen));
        let sent = self.http.post(self.at(realm, "authorize")).header("content-type", FORM);
        let answer = sent.body(body).send().await.unwrap();
        assert_eq!(answer.status(), 303);
        back(&answer, &self.callback())
    }

    async fn exchange(&self, realm: Realm, code: &str, changes: &[(&str, &str)]) -> Response {
        let given = [
            ("grant_type", "authorization_code".to_owned()),
            ("client_id", realm.client_id().to_owned()),
            ("redirect_uri", self.callback()),
            ("code", code.to_owned()),
            ("code_verifier", VERIFIER.to_owned()),
        ];
        let sent = self.http.post(self.at(realm, "token")).header("content-type", FORM);
        let sent = sent.header("origin", self.engine.url());
        sent.body(encoded(with(&given, changes))).send().await.unwrap()
    }

    async fn tokens(&self, realm: Realm, name: &str, chosen: &[&str]) -> Value {
        let back = self.sign_in(realm, &[("name", name)], chosen).await;
        let answer = self.exchange(realm, &back["code"], &[]).await;
        assert_eq!(answer.status(), 200);
        answer.json().await.unwrap()
    }

    async fn status(&self, method: &str, path: &str, bearer: &str) -> u16 {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let sent = self.http.request(method, format!("{}{path}", self.engine.url()));
        let sent = sent.header("content-type", "application/json").body("{}");
        sent.bearer_auth(bearer).send().await.unwrap().status().as_u16()
    }
}

/// The parameters of the address that an answer leads to.
fn back(answer: &Response, callback: &str) -> BTreeMap<String, String> {
    let to = Url::parse(answer.headers()["location"].to_str().unwrap()).unwrap();
    assert!(to.as_str().starts_with(&format!("{callback}?")), "{to}");
    to.query_pairs().into_owned().collect()
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

fn operators() -> impl Iterator<Item = (&'static Row, Scope, String)> {
    ROUTES.iter().filter_map(|row| {
        let path = row.path.replace("{sale}", "hall").replace("{order}", "1024");
        Some((row, row.access.scope()?, path))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_and_operators_sign_in_as_the_pages_do_it() {
    let browser = Browser::start().await;
    let config = format!("{}/config.json", browser.engine.url());
    let config: Value = browser.http.get(config).send().await.unwrap().json().await.unwrap();
    for (name, realm) in [("buyers", Realm::Buyers), ("operators", Realm::Operators)] {
        let issuer = config[name]["issuer"].as_str().unwrap();
        let found = format!("{issuer}/.well-known/openid-configuration");
        let found: Value = browser.http.get(found).send().await.unwrap().json().await.unwrap();
        assert_eq!(found["issuer"], issuer);
        assert_eq!(found["authorization_endpoint"], browser.at(realm, "authorize"));
        assert_eq!(found["token_endpoint"], browser.at(realm, "token"));
        assert_eq!(found["end_session_endpoint"], browser.at(realm, "logout"));
        let keys = found["jwks_uri"].as_str().unwrap();
        let keys: Value = browser.http.get(keys).send().await.unwrap().json().await.unwrap();
        assert_eq!((&keys["keys"][0]["kty"], &keys["keys"][1]), (&json!("RSA"), &Value::Null));
        assert!(keys["keys"][0]["d"].is_null(), "the private half stays");
    }
    let page = browser.ask(Realm::Operators, &[]).await;
    assert_eq!(page.status(), 200);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    let page = page.text().await.unwrap();
    assert!(page.contains("onsale/refund") && !page.contains("<script"), "{page}");

    let buyers = browser.tokens(Realm::Buyers, "alice", &[]).await;
    let id = claims(buyers["id_token"].as_str().unwrap());
    assert_eq!((&id["nonce"], &id["aud"]), (&json!("the nonce"), &json!("onsale-pages")));
    let access = buyers["access_token"].as_str().unwrap();
    assert_eq!(claims(access)["aud"], "onsale");
    assert_eq!(browser.status("GET", "/orders", access).await, 200);
    // An id token says who somebody is, and opens nothing.
    let id = buyers["id_token"].as_str().unwrap();
    assert_eq!(browser.status("GET", "/orders", id).await, 401);

    let watch = browser.tokens(Realm::Operators, "zhang", &["onsale/watch"]).await;
    assert_eq!(watch["scope"], "openid onsale/watch");
    let access = watch["access_token"].as_str().unwrap();
    assert_eq!(browser.status("GET", "/operator/actions", access).await, 200);
    assert_eq!(browser.status("POST", "/operator/orders/1024/cancel", access).await, 403);
    assert_eq!(browser.status("GET", "/orders", access).await, 401, "an operator is no buyer");
    browser.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_signs_out_comes_back_to_the_pages_and_nowhere_else() {
    let browser = Browser::start().await;
    let callback = browser.callback();
    let given = [
        ("client_id", Realm::Buyers.client_id().to_owned()),
        ("post_logout_redirect_uri", callback.clone()),
        ("id_token_hint", "a.b.c".to_owned()),
    ];
    for (changes, status, to) in [
        (vec![], 303, Some(callback.as_str())),
        (vec![("post_logout_redirect_uri", "https://evil.example/signed-in")], 400, None),
        (vec![("post_logout_redirect_uri", "")], 400, None),
        (vec![("client_id", Realm::Operators.client_id())], 400, None),
        (vec![("client_id", "")], 400, None),
    ] {
        let query = encoded(with(&given, &changes));
        let address = format!("{}?{query}", browser.at(Realm::Buyers, "logout"));
        let answer = browser.http.get(address).send().await.unwrap();
        let location = answer.headers().get("location").map(|to| to.to_str().unwrap().to_owned());
        assert_eq!((answer.status().as_u16(), location.as_deref()), (status, to), "{changes:?}");
    }
    browser.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_opens_a_link_of_the_demo_signs_in_and_has_its_tickets() {
    let browser = Browser::start().await;
    let sale = demo::own_sales().unwrap().remove(0);
    demo::publish(&browser.engine, std::slice::from_ref(&sale)).await.unwrap();
    let said = demo::buy_to_show(&browser.engine, &sale).await.unwrap().to_string();
    // Nothing but what is printed is known here.
    let links = said.split(' ').filter(|word| word.starts_with("http://"));
    let links: Vec<Url> = links.map(|link| link.parse().unwrap()).collect();
    let [tickets, orders] = links.as_slice() else { panic!("{said}") };
    let engine: Url = browser.engine.url().parse().unwrap();
    for link in [tickets, orders] {
        assert_eq!((link.origin(), link.query(), link.fragment()), (engine.origin(), None, None));
    }
    assert_eq!(orders.path(), "/my/orders");
    let order = tickets.path().strip_prefix("/my/tickets/").unwrap();
    let (_, name) = said.rsplit_once("sign in as ").unwrap();

    let buyer = browser.tokens(Realm::Buyers, name, &[]).await;
    let token = buyer["access_token"].as_str().unwrap();
    let get = async |path: &str| {
        let sent = browser.http.get(format!("{}{path}", browser.engine.url()));
        let answer = sent.bearer_auth(token).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.json::<Value>().await.unwrap()
    };
    let shown = get(&format!("/orders/{order}")).await;
    assert_eq!((&shown["sale"], &shown["state"]), (&json!(sale.sale), &json!("paid")));
    assert_eq!(shown["lines"][0]["tickets"].as_array().unwrap().len(), 2);
    let codes = get(&format!("/orders/{order}/tickets")).await;
    assert_eq!(codes["tickets"].as_array().unwrap().len(), 2, "{codes}");
    assert_eq!(get("/orders").await["orders"][0]["order"], order);
    let other = browser.tokens(Realm::Buyers, "somebody", &[]).await;
    let other = other["access_token"].as_str().unwrap();
    assert_eq!(browser.status("GET", &format!("/orders/{order}"), other).await, 404);
    browser.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_not_the_pages_gets_no_code_and_no_token() {
    let browser = Browser::start().await;
    let elsewhere = format!("{}/signed-in/", browser.engine.url());
    let script = "\"><script>alert(1)</script>";
    // Nobody is sent anywhere.
    for changes in [
        [("redirect_uri", "https://evil.example/signed-in")],
        [("redirect_uri", elsewhere.as_str())],
        [("redirect_uri", "")],
        [("client_id", "onsale-operators")],
        [("client_id", "")],
    ] {
        let refused = browser.ask(Realm::Buyers, &changes).await;
        assert_eq!((refused.status().as_u16(), refused.headers().get("location")), (400, None));
    }
    // The pages are told.
    for (changes, error) in [
        ([("response_type", "token")], "unsupported_response_type"),
        ([("code_challenge_method", "plain")], "invalid_request"),
        ([("code_challenge_method", "")], "invalid_request"),
        ([("code_challenge", "")], "invalid_request"),
        ([("code_challenge", "short")], "invalid_request"),
        ([("nonce", "")], "invalid_request"),
        ([("state", "")], "invalid_request"),
        ([("scope", "onsale/watch")], "invalid_scope"),
    ] {
        let refused = browser.ask(Realm::Buyers, &changes).await;
        let told = back(&refused, &browser.callback());
        assert_eq!((told["error"].as_str(), told.get("code")), (error, None), "{changes:?}");
        assert_eq!(told["iss"], browser.engine.issuers().issuer(Realm::Buyers));
    }
    let shown = browser.ask(Realm::Buyers, &[("state", script)]).await.text().await.unwrap();
    assert!(!shown.contains("<script"), "{shown}");
    let left = browser.sign_in(Realm::Buyers, &[("action", "leave"), ("name", "a")], &[]).await;
    assert_eq!(left["error"], "access_denied");
    // A buyer gets no scope that the issuer does not have, and an operator none that was not asked for.
    let buyers = browser.tokens(Realm::Buyers, "mallory", &["onsale/refund"]).await;
    assert_eq!(buyers["scope"], "openid");
    let asked = [("scope", "openid onsale/watch"), ("name", "zhang")];
    let code = browser.sign_in(Realm::Operators, &asked, &["onsale/watch", "onsale/refund"]).await;
    let granted = browser.exchange(Realm::Operators, &code["code"], &[]).await;
    assert_eq!(granted.json::<Value>().await.unwrap()["scope"], "openid onsale/watch");
    browser.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_is_good_once_for_who_asked_for_it() {
    let browser = Browser::start().await;
    let name = [("name", "alice")];
    let code = async || browser.sign_in(Realm::Buyers, &name, &[]).await["code"].clone();
    for changes in [
        [("code_verifier", "another-verifier-of-the-right-length-0123456789")],
        [("code_verifier", "")],
        [("redirect_uri", "https://evil.example/signed-in")],
    ] {
        let code = code().await;
        let refused = browser.exchange(Realm::Buyers, &code, &changes).await;
        assert_eq!(refused.status(), 400, "{changes:?}");
        assert_eq!(refused.json::<Value>().await.unwrap()["error"], "invalid_grant");
        // It is used up all the same.
        assert_eq!(browser.exchange(Realm::Buyers, &code, &[]).await.status(), 400);
    }
    let code = code().await;
    let other = browser.exchange(Realm::Operators, &code, &[]).await;
    assert_eq!(other.status(), 400, "a buyer's code is none of the operators'");
    let code = browser.sign_in(Realm::Buyers, &name, &[]).await["code"].clone();
    let first = browser.exchange(Realm::Buyers, &code, &[]).await;
    assert_eq!(first.headers()["access-control-allow-origin"], browser.engine.url());
    assert_eq!(first.headers()["cache-control"], "no-store");
    assert_eq!(browser.exchange(Realm::Buyers, &code, &[]).await.status(), 400);
    // Other origins may not read the answers.
    let found = browser.at(Realm::Buyers, "jwks");
    let read = browser.http.get(found).header("origin", "https://evil.example").send().await;
    assert_eq!(read.unwrap().headers().get("access-control-allow-origin"), None);
    browser.engine.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gateway_lets_only_operators_tokens_through_to_their_routes() {
    let browser = Browser::start().await;
    let engine = &browser.engine;
    let issuers = engine.issuers();
    let now = Timestamp::now();
    let every: Vec<&str> = Scope::ALL.map(Scope::as_str).into();
    let scopes = every.join(" ");
    let forged = forged(engine, &scopes).await;
    let old = now.plus_seconds(-i64::from(fake_identity::ACCESS_SECONDS));
    let token = |realm, now| issuers.issuers().access_token(realm, "zhang", &scopes, now).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let others = fake_identity::Issuers::new(issuers.url(), elsewhere.path());
    let strangers = [
        ("a buyer's, with every scope", token(Realm::Buyers, now)),
        ("a development token", engine.operator_token().unwrap()),
        ("one that has run out", token(Realm::Operators, old)),
        ("one that is not valid yet", token(Realm::Operators, now.plus_seconds(60))),
        ("of another key", others.access_token(Realm::Operators, "zhang", &scopes, now).unwrap()),
        ("signed with the public key as a secret", forged),
        ("nothing", String::new()),
    ];
    for (row, scope, path) in operators() {
        for (what, token) in &strangers {
            let status = browser.status(row.method, &path, token).await;
            assert_eq!(status, 401, "{} {path}: {what}", row.method);
        }
        let lacking: Vec<&str> =
            every.iter().copied().filter(|one| *one != scope.as_str()).collect();
        let lacking = engine.operator_access_token("zhang", &lacking).unwrap();
        assert_eq!(browser.status(row.method, &path, &lacking).await, 403, "{path}");
        let enough = engine.operator_access_token("zhang", &[scope.as_str()]).unwrap();
        let status = browser.status(row.method, &path, &enough).await;
        assert!(![401, 403].contains(&status), "{} {path}: {status}", row.method);
    }
    browser.engine.stop().await.unwrap();
}

/// A token of the operators' issuer by its claims, signed by HMAC with its public key: who takes the algorithm
/// from the token would accept it.
async fn forged(engine: &Engine, scopes: &str) -> String {
    let keys = engine.issuers().issuers().public_keys(Realm::Operators).unwrap();
    let key = &keys["keys"][0];
    let modulus = URL_SAFE_NO_PAD.decode(key["n"].as_str().unwrap()).unwrap();
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let exp = Timestamp::now().ms() / 1000 + 600;
    let header = json!({ "alg": "HS256", "typ": "at+jwt", "kid": key["kid"] });
    let claims = json!({
        "iss": engine.issuers().issuer(Realm::Operators), "aud": "onsale-operators", "sub": "zhang",
        "exp": exp, "scope": scopes,
    });
    let signed = format!("{}.{}", part(header), part(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &modulus), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}
