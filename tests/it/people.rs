//! A crowd of people and bots of all classes: at today's gate, and through a waiting room.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use engine::domain::admission::room::shuffle::Shuffle;
use engine::domain::basics::bytes::Hash;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::SaleFile;
use fake_limits::Limits;
use loadtest::arrivals::Shape;
use loadtest::credentials::Credentials;
use loadtest::demo;
use loadtest::people::Class;
use loadtest::people::plan::Crowd;
use loadtest::profile::LoadProfile;
use loadtest::published::Published;
use loadtest::replay::admission::{Admission, AdmissionOptions};
use loadtest::replay::{self, comparison};
use loadtest::report::Report;
use loadtest::{CallbackRepeats, Load, Options, page};
use local::data_dir::DataDir;
use local::up::{self, Engine};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::backends;

/// Time that anything may take before a test fails.
const DEADLINE: Duration = Duration::from_secs(300);

fn options(url: &str, arrivals: u64, most: Duration) -> Options {
    Options {
        url: url.to_owned(),
        sales: vec!["field".to_owned()],
        load: Load::Open { arrivals, within_seconds: 2.0, shape: Shape::Opening, connections: 100 },
        crowd: Crowd::Mixed,
        profile: LoadProfile::Paying,
        seed: 5,
        most,
        may_take_longer: false,
        ledger: None,
        progress: false,
        callback_repeats: CallbackRepeats::default(),
        pages: None,
        grace: Grace::NONE,
        endpoints: None,
        rehearsal: None,
    }
}

fn field(opens_at: Timestamp) -> Value {
    json!({
        "sale": "field", "title": "A field", "currency": "EUR",
        "opens_at": opens_at, "closes_at": "2099-01-01T00:00:00Z",
        "limit_per_buyer": 4, "pay_window_seconds": 30, "gate": { "rate_per_second": 20000 },
        "tiers": [{ "tier": "field", "name": "Field", "price_minor": 900, "general_admission": 400 }]
    })
}

/// Accounts of the tenths of a report, which are all accounts of its plan.
fn accounts(report: &Report) -> (u64, u64) {
    let deciles = &report.fairness.as_ref().unwrap().deciles;
    (deciles.iter().map(|tenth| tenth.people).sum(), deciles.iter().map(|tenth| tenth.bots).sum())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_class_comes_to_the_gate_and_is_counted_apart() {
    const ACCOUNTS: u64 = 300;
    let engine = Engine::start(backends::engine(up::Options::ephemeral())).await.unwrap();
    let opens_at = Timestamp::now().plus_seconds(4);
    let sale: SaleFile = serde_json::from_value(field(opens_at)).unwrap();
    demo::publish(&engine, &[sale]).await.unwrap();
    let options = Options {
        grace: engine.endpoints().grace(),
        endpoints: Some(engine.endpoints().clone()),
        ..options(engine.url(), ACCOUNTS, DEADLINE)
    };
    let report = loadtest::run(&options, Credentials::new(engine.secrets())).await.unwrap();
    println!("{}", report.tables());
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert!(report.is_good() && report.tickets == 400);
    let (people, bots) = accounts(&report);
    assert_eq!(people + bots, ACCOUNTS);
    let came = |is_bot: bool| -> u64 {
        let of_kind = report.people.iter().filter(|(class, _)| class.is_bot() == is_bot);
        of_kind.filter(|(class, _)| **class != Class::Late).map(|(_, deeds)| deeds.arrived).sum()
    };
    assert_eq!((came(false), came(true)), (people, bots));
    for class in
        [Class::Person, Class::Early, Class::Leaver, Class::Solver, Class::Farm, Class::Script]
    {
        assert!(report.people[&class].arrived > 0, "{class:?}");
    }
    // Whoever came early came back at the opening.
    assert!(report.people[&Class::Early].returned >= report.people[&Class::Early].arrived);
    let fairness = report.fairness.as_ref().unwrap();
    assert_eq!(
        (fairness.bots_of_joined, fairness.waits, fairness.places_served),
        (None, None, None)
    );
    assert!(fairness.bots_of_admitted > 0.0 && fairness.bots_of_admitted < 1.0, "{fairness:?}");
    let page = page::of_load_test(&report).unwrap();
    assert!(page.contains("Fairness") && page.contains("tenth 10"));
    engine.stop().await.unwrap();
}

/// A waiting room by its contract: everybody is drawn in one window, and more places are served at each look.
struct Room {
    /// Whether an account may use the place of another.
    lets_friends_in: bool,
    seed: Hash,
    members: Vec<String>,
    /// Claims to places by account and whether they were let in.
    claims: Vec<(String, bool)>,
    /// Number of orders that each account has asked for.
    orders: BTreeMap<String, u64>,
    serving: u32,
}

/// Indices of the window, which is large enough for all who come.
const COUNT: u32 = 400;
/// Places that are served more at each look.
const STEP: u32 = 40;

impl Room {
    fn new(lets_friends_in: bool) -> Self {
        let seed = Hash([9; 32]);
        let (members, claims, orders) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { lets_friends_in, seed, members, claims, orders, serving: 0 }
    }

    fn join(&mut self, user: &str) -> Response {
        let index = self.members.iter().position(|member| member == user).unwrap_or_else(|| {
            self.members.push(user.to_owned());
            self.members.len() - 1
        });
        let reply = json!({
            "place_token": format!("place-{index}"), "group": "all", "window": "first", "index": index,
            "nonce": "00".repeat(16), "standing": "certain",
        });
        (StatusCode::CREATED, reply.to_string()).into_response()
    }

    fn show(&mut self) -> Response {
        self.serving = (self.serving + STEP).min(COUNT);
        json!({
            "state": "serving", "as_of": Timestamp::now(), "draw_closes_at": Timestamp::now(),
            "opens_at": Timestamp::now(), "rate": STEP, "record": 3, "head": "0".repeat(64),
            "groups": [{
                "group": "all", "serving": self.serving, "passed": 0, "joined": COUNT, "window": COUNT,
                "seed": self.seed, "count": COUNT, "advance": [STEP * 30, STEP * 120],
            }],
            "poll": { "min_seconds": 1, "max_seconds": 1, "jitter_percent": 30 },
        })
        .to_string()
        .into_response()
    }

    /// Lets in who claims the own place, which is due.
    fn admit(&mut self, user: &str, body: &Value) -> Response {
        let token = body["place"]["token"].as_str().unwrap();
        let index: u32 = token.strip_prefix("place-").unwrap().parse().unwrap();
        let place = Shuffle::new(self.seed, COUNT).place(index).unwrap();
        assert_eq!(
            json!(place),
            body["place"]["place"],
            "the crowd computes the places of the gate"
        );
        assert!(place < self.serving, "nobody comes before the turn");
        let is_own = self.members[usize::try_from(index).unwrap()] == user;
        let is_let_in = is_own || self.lets_friends_in;
        self.claims.push((user.to_owned(), is_let_in));
        if !is_let_in {
            return problem(StatusCode::FORBIDDEN, "not-admitted");
        }
        let order = self.claims.len().to_string();
        (StatusCode::CREATED, json!({ "token": "a.b.c", "order": order }).to_string())
            .into_response()
    }
}

fn problem(status: StatusCode, kind: &str) -> Response {
    (status, json!({ "type": format!("/problems/{kind}") }).to_string()).into_response()
}

/// The `sub` of the bearer token of a request.
fn user(request: &Request) -> String {
    let Some(bearer) = request.headers().get("authorization") else { return String::new() };
    let claims = bearer.to_str().unwrap().split('.').nth(1).unwrap();
    let claims: Value =
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    claims["sub"].as_str().unwrap().to_owned()
}

async fn serve(room: Arc<Mutex<Room>>) -> String {
    let answer = move |request: Request| {
        let room = Arc::clone(&room);
        async move {
            let (user, path) = (user(&request), request.uri().path().to_owned());
            let body = to_bytes(request.into_body(), 10_000).await.unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let mut room = room.lock().unwrap();
            match path.strip_prefix("/sales/field").unwrap() {
                "" => {
                    let mut file = field(Timestamp::now());
                    file["room"] = json!({});
                    json!({ "file": file }).to_string().into_response()
                }
                "/places" => room.join(&user),
                "/room" => room.show(),
                "/admissions" => room.admit(&user, &body),
                "/orders" if user.ends_with("-friend") => {
                    problem(StatusCode::FORBIDDEN, "not-admitted")
                }
                "/orders" => {
                    *room.orders.entry(user).or_default() += 1;
                    problem(StatusCode::CONFLICT, "sold-out")
                }
                "/availability" => {
                    json!({ "tiers": [{ "tier": "field", "available": 0, "free": "AAAA" }] })
                        .to_string()
                        .into_response()
                }
                other => panic!("nobody asks for {other}"),
            }
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    url
}

async fn through_a_room(lets_friends_in: bool) -> (Report, Arc<Mutex<Room>>) {
    let room = Arc::new(Mutex::new(Room::new(lets_friends_in)));
    let url = serve(Arc::clone(&room)).await;
    let dir = tempfile::tempdir().unwrap();
    let secrets = DataDir::open(dir.path()).unwrap().secrets().unwrap();
    // Long enough for everybody to come, and shorter than somebody sleeps who misses the turn.
    let options = options(&url, 300, Duration::from_secs(50));
    let report = loadtest::run(&options, Credentials::new(&secrets)).await.unwrap();
    println!("{}", report.tables());
    (report, room)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_class_goes_through_a_waiting_room() {
    let (report, room) = through_a_room(false).await;
    let room = room.lock().unwrap();
    assert_eq!(report.anomalies, Vec::<String>::new());
    let joined: BTreeSet<&String> = room.members.iter().collect();
    assert_eq!(joined.len(), 300, "every account joins");
    let mut claims: BTreeMap<&String, Vec<bool>> = BTreeMap::new();
    for (user, let_in) in &room.claims {
        claims.entry(user).or_default().push(*let_in);
    }
    let friends: Vec<_> = claims.iter().filter(|(user, _)| user.ends_with("-friend")).collect();
    let sharers = report.people[&Class::Sharer].arrived;
    assert_eq!(u64::try_from(friends.len()), Ok(sharers), "every sharer has a friend");
    assert!(sharers > 0 && friends.iter().all(|(_, let_in)| **let_in == [false]), "{friends:?}");
    // Whoever has to wait and leaves never claims the place, and everybody else is let in once.
    let let_in: u64 = claims.values().flatten().map(|let_in| u64::from(*let_in)).sum();
    assert_eq!(let_in, report.admissions);
    let leavers = report.people[&Class::Leaver];
    assert!(
        leavers.arrived > 0 && leavers.admitted + report.gave_up >= leavers.arrived,
        "{leavers:?}"
    );
    let fairness = report.fairness.as_ref().unwrap();
    let (people, bots) = accounts(&report);
    let share = bots as f64 / (people + bots) as f64;
    assert_eq!((fairness.bots_of_accounts, fairness.bots_of_joined), (share, Some(share)));
    // Whoever has tried four times found nothing.
    let nothing = room.orders.values().filter(|attempts| **attempts == 4).count();
    assert_eq!(u64::try_from(nothing), Ok(fairness.admitted_to_nothing));
    assert!(nothing > 0 && fairness.admitted_to_nothing <= report.admissions);
    assert_eq!((fairness.places_served, fairness.tickets), (Some(room.serving.into()), 0));
    assert_eq!(fairness.waits, None, "what is promised in the first minute does not count");
    let [window] = &fairness.windows[..] else { panic!("{:?}", fairness.windows) };
    let place = |index| Shuffle::new(room.seed, COUNT).place(index).unwrap();
    let served = (0..300).filter(|index| place(*index) < room.serving).count();
    assert_eq!((window.first, window.end, window.places, window.bots), (0, COUNT, 300, bots));
    assert_eq!(u64::try_from(served), Ok(window.served));
    assert_eq!(report.late_buyers, 0, "nobody takes what is left without a place");
}

/// The real room: everybody joins with an answer, is drawn in the first window, and is served until nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_with_a_waiting_room_sells_and_says_who_was_served() {
    if backends::is_foreign("a replay starts servers of its own") {
        return;
    }
    // Nobody leaves who is due: a place that runs out takes minutes.
    let admission = AdmissionOptions {
        crowd: Crowd::People,
        admission: Admission::Challenges,
        places_per_second: Some(5),
    };
    let options = replay::Options {
        limits: Limits::None,
        spectators: replay::Spectators::default(),
        published: Published::named("tixcraft-2024").unwrap(),
        scale: 0.0002,
        load: Load::Open {
            arrivals: 60,
            within_seconds: 1.0,
            shape: Shape::Opening,
            connections: 50,
        },
        profile: LoadProfile::Paying,
        pages: None,
        seed: 7,
        // The last tickets wait for the places of those who want none to run out: minutes.
        most: Duration::from_secs(100),
        rate_per_second: 1_000,
        admission,
        progress: false,
    };
    let outcome = replay::run(&options).await.unwrap();
    let report = &outcome.load_test;
    println!("{}", report.tables());
    assert_eq!(report.anomalies, Vec::<String>::new());
    assert!(outcome.audit.clean);
    assert_eq!(outcome.tickets, 30);
    assert!(report.tickets > 0 && report.tickets <= 30, "{}", report.tickets);
    // Whoever is not answered joins with the answer to the question.
    assert_eq!(report.refusals.get("challenge-failed"), None);
    let fairness = report.fairness.as_ref().unwrap();
    assert_eq!(fairness.bots_of_joined, Some(0.0));
    let places: u64 = fairness.windows.iter().map(|window| window.served).sum();
    assert!(fairness.admitted > 0 && fairness.admitted <= places, "{fairness:?}");
    assert!(fairness.places_served >= Some(places), "{fairness:?}");
    assert!(outcome.slot_commands > report.orders, "each order is at least one");
    let figures = comparison::table(&[(Admission::Challenges, &outcome)]).to_string();
    assert!(figures.contains("admitted to nothing") && figures.contains("room, challenges"));
    let json = serde_json::to_value(&outcome).unwrap();
    assert_eq!(json["admission"]["admission"], "challenges");
    assert!(json["rush"]["fairness"]["windows"][0]["ratio"].is_number(), "{json}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_that_lets_a_shared_place_in_is_noticed() {
    let (report, _) = through_a_room(true).await;
    let noticed = report.anomalies.iter().filter(|what| what.contains("with the place of")).count();
    assert_eq!(u64::try_from(noticed), Ok(report.people[&Class::Sharer].arrived));
    assert!(noticed > 0 && !report.is_good(), "{:?}", report.anomalies);
}
