//! Challenges at the gate: what lets a buyer through, once, and what never does.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::challenge::{SiteverifyProvider, Stage};
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use fake_siteverify::{
    HCAPTCHA_SECRET, HCAPTCHA_TOKEN, RECAPTCHA_SECRET, Siteverify, TURNSTILE_FAILS,
    TURNSTILE_PASSES, TURNSTILE_SPENT, TURNSTILE_TOKEN,
};
use futures_util::future::join;
use serde_json::{Value, json};
use shared::challenges;
use shared::challenges::proof_of_work::{ProofOfWork, solve};
use shared::http::identity::Buyer;
use shared::redis::Topology;
use shared::runtime::app::App;
use shared::runtime::config::{Secret, SiteverifyApi};

use super::{CHALLENGE_SECRET, Fixture, Got, Sender, hall, request, send};

const ADMISSIONS: &str = "/sales/hall/admissions";

/// The hall, with challenges at its gate.
fn asking(challenges: &Value) -> Value {
    let mut file = hall();
    file["challenges"] = challenges.clone();
    file
}

fn proof_of_work() -> Value {
    json!({ "at": ["visit"], "kind": "proof_of_work", "easiest_ms": 100, "hardest_ms": 100 })
}

fn question() -> Value {
    let questions = json!([{ "question": "Our city?", "answers": ["Porto", "Oporto"] }]);
    json!({ "at": ["visit"], "kind": "question", "questions": questions })
}

fn siteverify(provider: &str) -> Value {
    let account = json!({ "provider": provider, "site_key": "1x00000000000000000000AA" });
    json!({ "at": ["visit"], "kind": "siteverify", "siteverify": account })
}

/// Asks for an admission, with an answer or without one.
async fn ask(app: &App, buyer: &str, target: &str, answer: Option<&Value>) -> Got {
    let body = match answer {
        Some(answer) => json!({ "tickets": 1, "challenge": answer }),
        None => json!({ "tickets": 1 }),
    };
    let headers = json!({ "content-type": "application/json" });
    send(app, request(Sender::Buyer(buyer), "POST", target, headers, &body.to_string())).await
}

/// The challenge that a buyer without an answer is given.
async fn challenge(app: &App, buyer: &str) -> Value {
    let refused = ask(app, buyer, ADMISSIONS, None).await.problem(403, "challenge-required");
    refused["challenge"].clone()
}

/// The answer to a proof of work.
fn solved(challenge: &Value) -> Value {
    assert_eq!(challenge["kind"], "proof_of_work");
    let work: ProofOfWork = serde_json::from_value(challenge["altcha"].clone()).unwrap();
    json!({ "answer": solve(&work, 2000).unwrap() })
}

fn answered(challenge: &Value, answer: &str) -> Value {
    json!({ "token": challenge["token"], "answer": answer })
}

/// Refused, with another challenge than before.
fn fails(got: Got, why: &str) -> Value {
    let refused = got.problem(403, "challenge-failed");
    assert_eq!(refused["detail"], why, "{refused:#}");
    refused["challenge"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_solved_challenge_admits_once_and_only_its_buyer_to_its_sale() {
    let fixture = Fixture::start().await;
    let app = &fixture.app;
    fixture.publish(&asking(&proof_of_work())).await.ok(200);
    let mut other = asking(&proof_of_work());
    other["sale"] = json!("other");
    fixture.publish(&other).await.ok(200);

    let given = challenge(app, "alice").await;
    let answer = solved(&given);
    let why = "the challenge was given to another buyer";
    fails(ask(app, "bob", ADMISSIONS, Some(&answer)).await, why);
    let elsewhere = ask(app, "alice", "/sales/other/admissions", Some(&answer)).await;
    fails(elsewhere, "the challenge is for something else");
    let wrong = json!({ "answer": STANDARD.encode("{}") });
    let fresh =
        fails(ask(app, "alice", ADMISSIONS, Some(&wrong)).await, "the answer cannot be read");
    assert_ne!(fresh["altcha"]["signature"], given["altcha"]["signature"]);

    ask(app, "alice", ADMISSIONS, Some(&answer)).await.ok(201);
    let another = fixture.another_process().await;
    for app in [app, &another] {
        let again = ask(app, "alice", ADMISSIONS, Some(&answer)).await;
        fails(again, "the challenge was answered before");
    }
    // The challenge in a refusal is as good as another.
    ask(app, "alice", ADMISSIONS, Some(&solved(&fresh))).await.ok(201);
    // What Redis has forgotten is good again, for the same buyer.
    fixture.lose_redis().await;
    fixture.publish(&asking(&proof_of_work())).await.ok(200);
    let forgotten = ask(&another, "alice", ADMISSIONS, Some(&answer)).await;
    assert_ne!(forgotten.status, 403, "the control: Redis is what remembers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_devices_with_one_answer_one_gets_in() {
    let fixture = Fixture::start().await;
    fixture.publish(&asking(&proof_of_work())).await.ok(200);
    let another = fixture.another_process().await;
    for buyer in ["alice", "bob", "carol", "dave", "eve"] {
        let answer = solved(&challenge(&fixture.app, buyer).await);
        let (one, two) = join(
            ask(&fixture.app, buyer, ADMISSIONS, Some(&answer)),
            ask(&another, buyer, ADMISSIONS, Some(&answer)),
        )
        .await;
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 403], "{buyer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_not_lost_to_a_gate_that_says_later() {
    let fixture = Fixture::start().await;
    let mut file = asking(&proof_of_work());
    file["gate"]["user_lock_ms"] = json!(600_000);
    fixture.publish(&file).await.ok(200);
    let app = &fixture.app;
    let first = solved(&challenge(app, "alice").await);
    ask(app, "alice", ADMISSIONS, Some(&first)).await.ok(201);
    let second = solved(&challenge(app, "alice").await);
    for _ in 0..3 {
        let locked = ask(app, "alice", ADMISSIONS, Some(&second)).await;
        locked.problem(429, "too-many-requests");
    }
    fails(ask(app, "alice", ADMISSIONS, Some(&first)).await, "the challenge was answered before");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_anyway_asks_for_no_challenge() {
    let fixture = Fixture::start().await;
    let mut file = asking(&proof_of_work());
    file["state"] = json!("paused");
    fixture.publish(&file).await.ok(200);
    let app = &fixture.app;
    ask(app, "alice", ADMISSIONS, None).await.problem(403, "sale-closed");
    let body = json!({ "tickets": 9 });
    let invalid = fixture.json(Sender::Buyer("alice"), "POST", ADMISSIONS, &body).await;
    invalid.problem(422, "invalid");
    // And where none is asked, an answer is not looked at.
    fixture.publish(&hall()).await.ok(200);
    let nonsense = json!({ "token": "x", "answer": "y" });
    ask(&fixture.another_process().await, "alice", ADMISSIONS, Some(&nonsense)).await.ok(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guess_uses_its_question_up() {
    let fixture = Fixture::start().await;
    fixture.publish(&asking(&question())).await.ok(200);
    let app = &fixture.app;
    let given = challenge(app, "alice").await;
    assert_eq!(given["question"], "Our city?");
    let fresh = ask(app, "alice", ADMISSIONS, Some(&answered(&given, "Lisbon"))).await;
    let fresh = fails(fresh, "the answer is wrong");
    assert_ne!(fresh["token"], given["token"]);
    let late = ask(app, "alice", ADMISSIONS, Some(&answered(&given, "Porto"))).await;
    fails(late, "the challenge was answered before");
    let no_token = json!({ "answer": "Porto" });
    fails(ask(app, "alice", ADMISSIONS, Some(&no_token)).await, "the answer cannot be read");
    ask(app, "alice", ADMISSIONS, Some(&answered(&fresh, " OPORTO"))).await.ok(201);
    // The answers are in no public answer.
    let shown = fixture.get(Sender::Nobody, "/sales/hall").await.ok(200).to_string();
    assert!(!shown.contains("Porto") && !shown.contains("Our city?"), "{shown}");
}

/// A key for one use, as `shared::challenges::keys` says.
fn derived(purpose: &str) -> String {
    let tag = sign(&Key::new(HMAC_SHA256, CHALLENGE_SECRET), purpose.as_bytes());
    tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tag(purpose: &str, text: &str) -> String {
    let key = Key::new(HMAC_SHA256, derived(purpose).as_bytes());
    URL_SAFE_NO_PAD.encode(sign(&key, text.as_bytes()))
}

/// The token of an image for alice that shows `characters`, made apart from the engine.
fn image_token(number: &str, characters: &str, seconds: i64) -> String {
    let answer = tag("onsale challenge: answer", &format!("{number}.{characters}"));
    let claims = json!({
        "iss": "onsale", "aud": "onsale-challenges", "sub": "alice", "sale": "hall", "stage": "visit",
        "kind": "image", "jti": number, "exp": Timestamp::now().ms() / 1000 + seconds, "answer": answer
    });
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(json!({ "alg": "HS256", "typ": "JWT" })), part(claims));
    format!("{signed}.{}", tag("onsale challenge: token", &signed))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_is_answered_with_its_characters_in_time() {
    let fixture = Fixture::start().await;
    let image = json!({ "at": ["visit"], "kind": "image" });
    fixture.publish(&asking(&image)).await.ok(200);
    let app = &fixture.app;
    let given = challenge(app, "alice").await;
    assert!(given["image"].as_str().unwrap().starts_with("data:image/png;base64,"));
    let guess = ask(app, "alice", ADMISSIONS, Some(&answered(&given, "AAAAA"))).await;
    fails(guess, "the answer is wrong");

    let answer = |token: String, text: &str| json!({ "token": token, "answer": text });
    let late = answer(image_token("one", "acd47", -1), "ACD47");
    fails(ask(app, "alice", ADMISSIONS, Some(&late)).await, "the challenge has expired");
    let good = answer(image_token("two", "acd47", 60), "Acd47");
    let bobs = ask(app, "bob", ADMISSIONS, Some(&good)).await;
    fails(bobs, "the challenge was given to another buyer");
    ask(app, "alice", ADMISSIONS, Some(&good)).await.ok(201);
    let again = ask(app, "alice", ADMISSIONS, Some(&good)).await;
    fails(again, "the challenge was answered before");
    // The operator asks something else by now.
    fixture.publish(&asking(&question())).await.ok(200);
    let other = fixture.another_process().await;
    let old = answer(image_token("three", "acd47", 60), "ACD47");
    let refused = fails(
        ask(&other, "alice", ADMISSIONS, Some(&old)).await,
        "the challenge is of another kind",
    );
    assert_eq!(refused["kind"], "question");
}

/// Pixels across the image of a challenge: 40 for each character, and 8.
fn width_of(challenge: &Value) -> u32 {
    let file = STANDARD.decode(challenge["image"].as_str().unwrap().split_once(',').unwrap().1);
    // The header of a PNG: after its signature, a length and a name.
    u32::from_be_bytes(file.unwrap()[16..20].try_into().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_asks_too_often_gets_harder_challenges_and_others_do_not() {
    let fixture = Fixture::start().await;
    let mut file = asking(&json!({ "at": ["visit"], "kind": "image" }));
    file["limits"] = json!({ "device_harder_over": 1 });
    fixture.publish(&file).await.ok(200);
    let mut widest = 0;
    // Counted by minutes of the clock: of so many requests eight are in one of them.
    for _ in 0..16 {
        let headers = json!({ "content-type": "application/json", "x-device-hint": "phone" });
        let body = json!({ "tickets": 1 }).to_string();
        let asked = request(Sender::Buyer("alice"), "POST", ADMISSIONS, headers, &body);
        let refused = send(&fixture.app, asked).await.problem(403, "challenge-required");
        widest = widest.max(width_of(&refused["challenge"]));
    }
    assert_eq!(widest, 7 * 40 + 8);
    assert_eq!(width_of(&challenge(&fixture.app, "bob").await), 5 * 40 + 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn images_have_more_characters_the_more_buyers_ask() {
    let fixture = Fixture::start().await;
    let mut file = asking(&json!({ "at": ["visit"], "kind": "image" }));
    file["gate"]["rate_per_second"] = json!(1);
    fixture.publish(&file).await.ok(200);
    let sale = SaleId::new("hall").unwrap();
    let published = fixture.app.ports.catalogue().sale(&sale, Freshness::Cached).await;
    let published = published.unwrap().unwrap();
    let asked = request(Sender::Buyer("alice"), "POST", ADMISSIONS, json!({}), "");
    let buyer = Buyer::from_request(&asked).unwrap();
    let width = async |now: Timestamp| {
        let (app, stage) = (&fixture.app, Stage::Visit);
        let refused = challenges::check(app, &published, &buyer, stage, None, 0, now).await;
        let refused = serde_json::to_value(refused.unwrap_err()).unwrap();
        width_of(&refused["challenge"])
    };
    let (calm, now) = (5 * 40 + 8, Timestamp::from_ms(1_800_000_000_000));
    let mut widths = Vec::new();
    for _ in 0..10 {
        widths.push(width(now).await);
    }
    assert_eq!((widths[0], widths[8], widths[9]), (calm, calm, 7 * 40 + 8));
    // So it is in the ten seconds after, and then no more; nor was it before.
    assert_eq!(width(now.plus_seconds(10)).await, 7 * 40 + 8);
    assert_eq!(width(now.plus_seconds(30)).await, calm);
    assert_eq!(width(now.plus_seconds(-20)).await, calm);
}

impl Fixture {
    /// An instance of a function that has an account at a provider of challenges, with this secret.
    async fn verifying(&self, provider: SiteverifyProvider, url: String, secret: &str) -> App {
        let mut config = self.config.clone();
        let secret = Secret(secret.as_bytes().to_vec());
        config.challenges.siteverify = vec![SiteverifyApi { provider, url: Some(url), secret }];
        App::from_config(&config).await.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_of_challenges_is_asked_and_nobody_passes_without_it() {
    use SiteverifyProvider::{Hcaptcha, Recaptcha, Turnstile};
    let fixture = Fixture::start().await;
    let fake = Siteverify::start().await.unwrap();
    let cases = [
        (Turnstile, "turnstile", TURNSTILE_PASSES, TURNSTILE_TOKEN, 201),
        (Turnstile, "turnstile", TURNSTILE_PASSES, "real & forged", 403),
        (Turnstile, "turnstile", TURNSTILE_FAILS, TURNSTILE_TOKEN, 403),
        (Turnstile, "turnstile", TURNSTILE_SPENT, TURNSTILE_TOKEN, 403),
        (Turnstile, "turnstile", TURNSTILE_PASSES, "", 403),
        (Hcaptcha, "hcaptcha", HCAPTCHA_SECRET, HCAPTCHA_TOKEN, 201),
        (Recaptcha, "recaptcha", RECAPTCHA_SECRET, "anything", 201),
        // Mistakes of ours, and a provider that does not answer as it should.
        (Turnstile, "turnstile", "other", TURNSTILE_TOKEN, 503),
        (Hcaptcha, "hcaptcha", "other", HCAPTCHA_TOKEN, 503),
        (Turnstile, "down", TURNSTILE_PASSES, TURNSTILE_TOKEN, 503),
        (Turnstile, "none/such", TURNSTILE_PASSES, TURNSTILE_TOKEN, 503),
    ];
    for (provider, path, secret, response, status) in cases {
        fixture.publish(&asking(&siteverify(provider.as_str()))).await.ok(200);
        let app = fixture.verifying(provider, fake.url(path), secret).await;
        let given = challenge(&app, "alice").await;
        assert_eq!(given["provider"], provider.as_str());
        let before = fake.calls();
        let got = ask(&app, "alice", ADMISSIONS, Some(&answered(&given, response))).await;
        assert_eq!(got.status, status, "{path} {secret} {response}");
        assert!(fake.calls() <= before + 1);
    }
    // Nobody listens, and there is no account.
    fixture.publish(&asking(&siteverify("turnstile"))).await.ok(200);
    let nobody = "http://127.0.0.1:1".to_owned();
    let silent = fixture.verifying(Turnstile, nobody, TURNSTILE_PASSES).await;
    let given = challenge(&silent, "alice").await;
    let answer = answered(&given, TURNSTILE_TOKEN);
    let refused = ask(&silent, "alice", ADMISSIONS, Some(&answer)).await;
    refused.problem(503, "unavailable");
    let none = fixture.another_process().await;
    ask(&none, "alice", ADMISSIONS, Some(&answer)).await.problem(500, "internal");
    // The provider had said nothing: the same response is good where it does.
    let app = fixture.verifying(Turnstile, fake.url("turnstile"), TURNSTILE_PASSES).await;
    ask(&app, "alice", ADMISSIONS, Some(&answer)).await.ok(201);
    // A token of a provider is good once, and so is ours, whatever comes with it.
    fake.issue("real");
    let given = challenge(&app, "alice").await;
    ask(&app, "alice", ADMISSIONS, Some(&answered(&given, "real"))).await.ok(201);
    let again = ask(&app, "alice", ADMISSIONS, Some(&answered(&given, TURNSTILE_TOKEN))).await;
    let fresh = fails(again, "the challenge was answered before");
    let spent = ask(&app, "alice", ADMISSIONS, Some(&answered(&fresh, "real"))).await;
    fails(spent, "the answer is wrong");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_redis_or_a_key_nobody_passes() {
    let fixture = Fixture::start().await;
    fixture.publish(&asking(&question())).await.ok(200);
    let given = challenge(&fixture.app, "alice").await;
    let answer = answered(&given, "Porto");
    let mut config = fixture.config.clone();
    config.redis.topology = Topology::Single("redis://127.0.0.1:1".to_owned());
    let cut_off = App::from_config(&config).await.unwrap();
    for answer in [None, Some(&answer)] {
        ask(&cut_off, "alice", ADMISSIONS, answer).await.problem(503, "unavailable");
    }
    let mut config = fixture.config.clone();
    config.challenges.keys.clear();
    let keyless = App::from_config(&config).await.unwrap();
    ask(&keyless, "alice", ADMISSIONS, None).await.problem(500, "internal");
    let refused = ask(&keyless, "alice", ADMISSIONS, Some(&answer)).await;
    refused.problem(500, "internal");
    // While a key is replaced, what the old one signed is accepted.
    let mut config = fixture.config.clone();
    config.challenges.keys.insert(0, ("k2".to_owned(), Secret(vec![9; 32])));
    let rotated = App::from_config(&config).await.unwrap();
    ask(&rotated, "alice", ADMISSIONS, Some(&answer)).await.ok(201);
}

/// `altcha` of PyPI solves what the gate asks, verifies it with our keys, and what it sends is accepted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn altchas_own_package_solves_and_verifies_what_the_gate_asks() {
    const SCRIPT: &str = "
import json, sys
from altcha.v2 import Challenge, Payload, solve_challenge, verify_solution
asked = json.load(sys.stdin)
challenge = Challenge.from_dict(asked['altcha'])
payload = Payload(challenge, solve_challenge(challenge)).to_base64()
def verified(payload, key):
    return verify_solution(payload, key, hmac_key_secret=asked['solution']).verified
json.dump([payload, verified(payload, asked['work']), verified(payload, 'x')], sys.stdout)
";
    let fixture = Fixture::start().await;
    fixture.publish(&asking(&proof_of_work())).await.ok(200);
    let buyer = "auth0|张三 \"a\\b\"";
    let given = challenge(&fixture.app, buyer).await;
    let (work, solution) = ("onsale challenge: proof of work", "onsale challenge: solution");
    let asked = json!({
        "altcha": given["altcha"], "work": derived(work), "solution": derived(solution)
    });
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut child = Command::new(root.join(".venv/bin/python"))
        .args(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the Python environment is missing: run `make setup`");
    child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "the script failed");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&said[1], &said[2]), (&json!(true), &json!(false)));
    let answer = json!({ "answer": said[0] });
    ask(&fixture.app, buyer, ADMISSIONS, Some(&answer)).await.ok(201);
}
