//! The sample sales of `sales/`: each is checked as a file, published, loaded and sold over HTTP, as
//! its buyers would: by best seats, by chosen seats, by pattern, on whole journeys and on parts of
//! them. The small ones are sold to the last place. Afterwards the audit must find nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use engine::domain::ids::{Legs, Seat, TierId};
use engine::domain::layout::Layout;
use engine::domain::money::{Currency, Money};
use engine::domain::requested::MAX_SEATS_PER_ORDER;
use engine::domain::sale::{AttendeeRule, Sale, SaleFile, Tier};
use engine::domain::time::Timestamp;
use importers::written;
use loadtest::demo;
use local::payment;
use local::up::{Engine, Options};
use ops::audit;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shared::http::journey_query::journey_query;

use crate::described::Description;
use crate::{backends, program};

/// How many buyers are in the shop at once.
const AT_ONCE: usize = 6;
/// How long what everyone may see can be out of date, and then some.
const DEADLINE: Duration = Duration::from_secs(20);

/// A sample, and what its description in `sales/README.md` promises.
struct Sample {
    sale: &'static str,
    seats: u32,
    legs: u16,
    tiers: usize,
    most_lines: usize,
}

const STADIUM: Sample =
    Sample { sale: "stadium-kestrel-park", seats: 63_072, legs: 1, tiers: 10, most_lines: 150 };
const THEATRE: Sample =
    Sample { sale: "theatre-old-quay", seats: 782, legs: 1, tiers: 7, most_lines: 150 };
const CLUB: Sample =
    Sample { sale: "club-undertow", seats: 450, legs: 1, tiers: 3, most_lines: 20 };
const G_TRAIN: Sample =
    Sample { sale: "g-train-g1307", seats: 604, legs: 5, tiers: 4, most_lines: 150 };
const NIGHT_TRAIN: Sample =
    Sample { sale: "night-train-nightjar", seats: 348, legs: 20, tiers: 4, most_lines: 430 };

impl Sample {
    fn path(&self) -> PathBuf {
        let sales = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sales");
        PathBuf::from(sales).join(format!("{}.json", self.sale))
    }

    fn file(&self) -> SaleFile {
        serde_json::from_str(&std::fs::read_to_string(self.path()).unwrap()).unwrap()
    }
}

#[test]
fn each_sample_is_a_short_file_without_defects() {
    let readme = std::fs::read_to_string(STADIUM.path().with_file_name("README.md")).unwrap();
    for sample in [STADIUM, THEATRE, CLUB, G_TRAIN, NIGHT_TRAIN] {
        let path = sample.path();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        assert!(lines <= sample.most_lines, "{} has {lines} lines", sample.sale);
        let file = sample.file();
        assert_eq!(written(&file), text, "{} is written as imports are", sample.sale);
        let sale = Sale::new(file).unwrap();
        let seats: u32 = sale.tiers().iter().map(|tier| tier.layout.sellable()).sum();
        assert_eq!(
            (sale.id().as_str(), seats, sale.leg_count(), sale.tiers().len()),
            (sample.sale, sample.seats, sample.legs, sample.tiers)
        );
        assert!(readme.contains(&format!("]({}.json)", sample.sale)), "the README shows it");

        let path = path.to_str().unwrap();
        let check = std::process::Command::new(program::onsale())
            .args(["sale", "check", path, "--json"])
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&check.stdout).unwrap();
        assert!(check.status.success(), "{report}");
        assert_eq!(report[0]["defects"], json!([]));
        assert_eq!(report[0]["seat_legs"], json!(u64::from(seats) * u64::from(sample.legs)));
    }
}

#[test]
fn each_sample_is_of_the_published_schema() {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sale-file.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let description = Description::new();
    let samples = [STADIUM, THEATRE, CLUB, G_TRAIN, NIGHT_TRAIN];
    for sample in &samples {
        let text = std::fs::read_to_string(sample.path()).unwrap();
        description.check(sample.sale, &schema, &serde_json::from_str(&text).unwrap());
    }
    assert_eq!(description.faults(), Vec::<String>::new());
    // The schema knows the short forms, so that it finds fault with what only looks like one.
    let mut broken = serde_json::to_value(STADIUM.file()).unwrap();
    let rows = &mut broken["tiers"][2]["sections"][0]["rows"];
    rows[0]["seats"] = json!("every column");
    description.check("a place that is none", &schema, &broken);
    assert!(!description.faults().is_empty());
    let mut broken = serde_json::to_value(STADIUM.file()).unwrap();
    broken["tiers"][2]["sections"][0]["alike"] = json!("C12");
    description.check("alike is a list", &schema, &broken);
    assert!(!description.faults().is_empty());
}

/// An engine, and buyers of one of its sales.
pub struct Shop {
    engine: Engine,
    http: reqwest::Client,
    sale: Sale,
    buyers: AtomicU64,
    sold: AtomicU64,
}

/// What an attempt to buy came to.
pub enum Bought {
    /// A paid order.
    Order(Value),
    /// The type of the problem, without its path.
    Refused(String),
}

impl Bought {
    pub fn order(self) -> Value {
        match self {
            Self::Order(order) => order,
            Self::Refused(problem) => panic!("refused: {problem}"),
        }
    }

    fn problem(self) -> String {
        match self {
            Self::Order(order) => panic!("sold: {order}"),
            Self::Refused(problem) => problem,
        }
    }
}

impl Shop {
    pub async fn open(file: &SaleFile) -> Self {
        let engine = Engine::start(backends::engine(Options::ephemeral())).await.unwrap();
        let sale = Sale::new(file.clone()).unwrap();
        let (buyers, sold) = (AtomicU64::default(), AtomicU64::default());
        let shop = Self { engine, http: reqwest::Client::new(), sale, buyers, sold };
        shop.publish(file).await;
        shop
    }

    /// The operator puts a sale on sale; it can be bought at once.
    pub async fn publish(&self, file: &SaleFile) {
        let put = self.request(Method::PUT, &format!("/sales/{}", file.sale)).json(file);
        let put = put.bearer_auth(self.engine.operator_token().unwrap());
        let (status, reply) = answer(put).await;
        assert_eq!(status, StatusCode::OK, "{reply}");
        assert_eq!(reply["state"], "open", "{} can be bought when it is published", file.sale);
    }

    /// Sells another sale from now on, which is published.
    pub fn turn_to(&mut self, file: &SaleFile) {
        self.sale = Sale::new(file.clone()).unwrap();
    }

    /// The longest journey that every tier sells.
    pub fn sellable(&self) -> Legs {
        let whole = self.sale.whole();
        let sells =
            |legs: &Legs| self.sale.tiers().iter().all(|tier| tier.price_minor(*legs).is_some());
        let from = |from: u16| (from + 1..=whole.to()).filter_map(move |to| Legs::new(from, to));
        (0..whole.to()).flat_map(from).filter(sells).max_by_key(|legs| legs.count()).unwrap()
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.engine.url()))
    }

    fn id(&self) -> &str {
        self.sale.id().as_str()
    }

    fn tier(&self, tier: &str) -> &Tier {
        self.sale.tier(&TierId::new(tier).unwrap()).unwrap()
    }

    /// The legs from one stop to another, by their indexes.
    fn legs(from: u16, to: u16) -> Legs {
        Legs::new(from, to).unwrap()
    }

    /// One line of an order.
    fn line(&self, tier: &str, legs: Legs, choice: (&str, Value), count: usize) -> Value {
        let mut line = json!({"tier": tier});
        line[choice.0] = choice.1;
        if let (Some(from), Some(to)) = (self.sale.stop(legs.from()), self.sale.stop(legs.to())) {
            line["from"] = json!(from);
            line["to"] = json!(to);
        }
        if self.sale.file().attendees == AttendeeRule::Required {
            let person = |_| format!("P-{}", self.buyers.fetch_add(1, Ordering::Relaxed));
            line["attendees"] = (0..count).map(person).collect();
        }
        line
    }

    pub fn best(&self, tier: &str, legs: Legs, count: usize, together: &str) -> Value {
        self.line(tier, legs, ("best", json!({"count": count, "together": together})), count)
    }

    fn seats(&self, tier: &str, legs: Legs, seats: &[&str]) -> Value {
        self.line(tier, legs, ("seats", json!(seats)), seats.len())
    }

    fn pattern(&self, tier: &str, legs: Legs, places: &Value) -> Value {
        let count = places.as_array().unwrap().len();
        self.line(tier, legs, ("pattern", places.clone()), count)
    }

    /// A new buyer is admitted, orders these lines, and pays.
    pub async fn buy(&self, lines: Vec<Value>, count: usize) -> Bought {
        let buyer = format!("buyer-{}", self.buyers.fetch_add(1, Ordering::Relaxed));
        let token = self.engine.token(&buyer).unwrap();
        let admission = self.request(Method::POST, &format!("/sales/{}/admissions", self.id()));
        let admission = admission.bearer_auth(&token).json(&json!({"tickets": count}));
        let (status, admission) = answer(admission).await;
        if status != StatusCode::CREATED {
            return Bought::Refused(problem(&admission));
        }
        let order = self.request(Method::POST, &format!("/sales/{}/orders", self.id()));
        let order = order
            .bearer_auth(&token)
            .json(&json!({"admission": admission["token"], "lines": lines}));
        let (status, order) = answer(order).await;
        if status != StatusCode::CREATED {
            return Bought::Refused(problem(&order));
        }
        assert_eq!(self.pay(&order).await, json!({"outcome": "accepted"}));
        let tickets = self.check_prices(&order);
        assert_eq!(tickets, count, "{order}");
        self.sold.fetch_add(tickets as u64, Ordering::Relaxed);
        Bought::Order(order)
    }

    /// Each line costs what the file says; how many tickets there are.
    fn check_prices(&self, order: &Value) -> usize {
        let (mut sum, mut tickets) = (0, 0);
        for line in order["lines"].as_array().unwrap() {
            let stop = |field: &str| line[field].as_str().and_then(|stop| stop.parse().ok());
            let journey = stop("from").zip(stop("to"));
            let legs = journey
                .map_or(self.sale.whole(), |(from, to)| self.sale.journey(&from, &to).unwrap());
            let tier = self.tier(line["tier"].as_str().unwrap());
            let count = line["tickets"].as_array().unwrap().len();
            assert_eq!(line["price_minor"].as_i64(), tier.price_minor(legs), "{line}");
            sum += tier.price_minor(legs).unwrap() * count as i64;
            tickets += count;
        }
        assert_eq!(order["amount_minor"].as_i64(), Some(sum), "{order}");
        tickets
    }

    /// The provider's callback for a whole order.
    async fn pay(&self, order: &Value) -> Value {
        let number = order["order"].as_str().unwrap();
        let amount = Money {
            amount_minor: order["amount_minor"].as_i64().unwrap(),
            currency: Currency::new(order["currency"].as_str().unwrap()).unwrap(),
        };
        let payment = format!("pi_{number}");
        let number = number.parse().unwrap();
        let event = payment::captured(&payment, number, amount, Timestamp::now()).to_string();
        let signature = self.engine.sign_payment(event.as_bytes());
        let callback = self.request(Method::POST, &payment::callback_path());
        let callback = callback.header(payment::SIGNATURE_HEADER, signature);
        let callback = callback.header("content-type", "application/json").body(event);
        let (status, reply) = answer(callback).await;
        assert_eq!(status, StatusCode::OK, "{reply}");
        reply
    }

    /// What is left of each tier that sells the journey: the count, and the free seats.
    pub async fn left(&self, legs: Legs) -> BTreeMap<String, (u64, Vec<u8>)> {
        let query = match (self.sale.stop(legs.from()), self.sale.stop(legs.to())) {
            (Some(from), Some(to)) => journey_query(from, to),
            (Some(_) | None, _) => String::new(),
        };
        let ask = self.request(Method::GET, &format!("/sales/{}/availability{query}", self.id()));
        let (status, reply) = answer(ask).await;
        assert_eq!(status, StatusCode::OK, "{reply}");
        let tier = |tier: &Value| {
            let free = base64::engine::general_purpose::STANDARD
                .decode(tier["free"].as_str().unwrap())
                .unwrap();
            let count = tier["available"].as_u64().unwrap();
            assert_eq!(free.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>(), count);
            (tier["tier"].as_str().unwrap().to_owned(), (count, free))
        };
        reply["tiers"].as_array().unwrap().iter().map(tier).collect()
    }

    /// Waits until this many seats are left: what everyone may see is a second old at most.
    pub async fn until_left(&self, tier: &str, legs: Legs, expected: u64) {
        let since = Instant::now();
        loop {
            let left = self.left(legs).await.get(tier).map(|(count, _)| *count);
            if left == Some(expected) {
                return;
            }
            assert!(since.elapsed() < DEADLINE, "{tier} has {left:?} left, not {expected}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Sells a tier's journey to the last place, in parties of this size and then in smaller ones,
    /// to several buyers at once. Returns how many places were sold.
    async fn sell_out(&self, tier: &str, legs: Legs, party: usize) -> usize {
        let since = Instant::now();
        let buyer = async || {
            let (mut sold, mut party) = (0, party);
            while party > 0 {
                assert!(since.elapsed() < DEADLINE, "{tier} is not sold out");
                let lines = vec![self.best(tier, legs, party, "preferred")];
                match self.buy(lines, party).await {
                    Bought::Order(_) => sold += party,
                    Bought::Refused(problem) if problem == "sold-out" => party -= 1,
                    // Another buyer holds the last places of the sale, or has just used up what the
                    // gate had before it looked again.
                    Bought::Refused(problem)
                        if ["waiting", "too-many-requests"].contains(&problem.as_str()) =>
                    {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    Bought::Refused(problem) => panic!("{tier}: {problem}"),
                }
            }
            sold
        };
        let buyers = std::iter::repeat_with(buyer).take(AT_ONCE);
        let sold: usize = futures(buyers).await.iter().sum();
        self.until_left(tier, legs, 0).await;
        sold
    }

    /// Waits until everything that follows from the orders is done, and audits.
    pub async fn close(self) {
        demo::settle(&self.engine, Instant::now() + DEADLINE).await.unwrap();
        let target = backends::audited(self.engine.endpoints());
        let report = audit::run(&target, &audit::Options::at(Timestamp::now())).await.unwrap();
        assert!(report.clean, "{report}");
        self.engine.stop().await.unwrap();
    }

    fn tickets_sold(&self) -> u64 {
        self.sold.load(Ordering::Relaxed)
    }
}

/// Runs all of them at once on this task.
async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
    futures_util::future::join_all(all).await
}

async fn answer(request: reqwest::RequestBuilder) -> (StatusCode, Value) {
    let reply = request.send().await.unwrap();
    let status = reply.status();
    let text = reply.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}

fn problem(body: &Value) -> String {
    let kind = body["type"].as_str().unwrap_or_else(|| panic!("no problem: {body}"));
    kind.trim_start_matches("/problems/").to_owned()
}

/// The seats of an order, by name.
fn seats_of(order: &Value) -> Vec<&str> {
    let tickets = order["lines"].as_array().unwrap().iter().map(|line| line["tickets"].as_array());
    tickets.flat_map(Option::unwrap).map(|ticket| ticket["seat"].as_str().unwrap()).collect()
}

/// The first free seats of a tier, by name.
fn first_free(layout: &Layout, free: &[u8], count: usize) -> Vec<String> {
    let is_free = |seat: &Seat| free[seat.0 as usize / 8] & (0x80 >> (seat.0 % 8)) != 0;
    let seats = (0..free.len() as u32 * 8).map(Seat).filter(is_free);
    seats.take(count).map(|seat| layout.name(seat).unwrap().to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stadium_sells_in_each_tier_and_by_each_way_of_choosing() {
    let shop = Shop::open(&STADIUM.file()).await;
    let all = shop.sale.whole();
    let left = shop.left(all).await;
    let counted: u64 = left.values().map(|(count, _)| count).sum();
    assert_eq!(counted, u64::from(STADIUM.seats), "all of it is loaded and on sale");

    // Two best of every tier, neighbours where there are seats, and two that somebody chose.
    let tiers: Vec<&str> = shop.sale.tiers().iter().map(|tier| tier.tier.as_str()).collect();
    let buyers = tiers.iter().map(async |tier| {
        let best = shop.buy(vec![shop.best(tier, all, 2, "required")], 2).await.order();
        if shop.tier(tier).layout.is_general_admission() {
            return;
        }
        let layout = &shop.tier(tier).layout;
        let seats: Vec<Seat> = seats_of(&best)
            .iter()
            .map(|name| layout.seat(&name.parse().unwrap()).unwrap())
            .collect();
        assert_eq!(seats[0].0 + 1, seats[1].0, "{tier}: side by side");
        let names = first_free(layout, &left[*tier].1, 4);
        let chosen = [names[2].as_str(), names[3].as_str()];
        let order = shop.buy(vec![shop.seats(tier, all, &chosen)], 2).await.order();
        assert_eq!(seats_of(&order), chosen);
        let again = shop.buy(vec![shop.seats(tier, all, &chosen)], 2).await.problem();
        assert_eq!(again, "seat-taken");
    });
    futures(buyers).await;
    // The best seats of the lower ring are the front row of the block that faces the stage.
    let taken = shop.buy(vec![shop.seats("lower-facing", all, &["119-A-1"])], 1).await;
    assert_eq!(taken.problem(), "seat-taken");
    let kept = shop.buy(vec![shop.seats("lower-facing", all, &["119-Z-9"])], 1).await;
    assert_eq!(kept.problem(), "seat-taken", "camera places are not sold");

    // Seats 10 and 11 of row A lie on both sides of the stairs.
    let order = shop.buy(vec![shop.seats("lower-side", all, &["124-A-5"])], 1).await.order();
    assert_eq!(order["amount_minor"], 11_500);
    let six = shop.buy(vec![shop.best("lower-side", all, 6, "required")], 6).await.order();
    assert_eq!(seats_of(&six)[0], "124-A-11", "five are free before the stairs, ten after them");

    // A wheelchair user and a companion, until there is no platform left; and an order over three
    // tiers, all or nothing.
    let pair = json!([{"column": "W"}, {"column": "C"}]);
    let platforms = shop.tier("wheelchair").layout.sellable() as usize / 2;
    for _ in 2..platforms {
        shop.buy(vec![shop.pattern("wheelchair", all, &pair)], 2).await.order();
    }
    let none = shop.buy(vec![shop.pattern("wheelchair", all, &pair)], 2).await;
    assert_eq!(none.problem(), "sold-out");
    let lines = |tiers: [&str; 3]| tiers.map(|tier| shop.best(tier, all, 2, "preferred")).to_vec();
    let over = shop.buy(lines(["upper-end", "pitch", "wheelchair"]), 6).await;
    assert_eq!(over.problem(), "sold-out");
    shop.buy(lines(["upper-end", "pitch", "club"]), 6).await.order();

    shop.until_left("wheelchair", all, 0).await;
    shop.until_left("upper-end", all, left["upper-end"].0 - 6).await;
    let sold = shop.tickets_sold();
    assert_eq!(sold, 10 * 2 + 8 * 2 + 1 + 6 + (platforms as u64 - 2) * 2 + 6);
    let counted: u64 = shop.left(all).await.values().map(|(count, _)| count).sum();
    assert_eq!(counted, u64::from(STADIUM.seats) - sold);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_theatre_sells_to_the_last_seat() {
    let shop = Shop::open(&THEATRE.file()).await;
    let all = shop.sale.whole();
    // Rows A and B are before the stage; the best of the front stalls begin in row C.
    let best = shop.buy(vec![shop.best("stalls-front", all, 2, "required")], 2).await.order();
    assert_eq!(seats_of(&best), ["Stalls-C-1", "Stalls-C-2"]);
    // On the left of the circle the odd numbers go down towards the middle.
    let odd = shop.buy(vec![shop.best("circle", all, 3, "required")], 3).await.order();
    assert_eq!(seats_of(&odd), ["Circle left-A-21", "Circle left-A-19", "Circle left-A-17"]);
    let even = ["Circle right-E-20", "Circle right-E-22"];
    let even = shop.buy(vec![shop.seats("circle", all, &even)], 2).await.order();
    assert_eq!(seats_of(&even).len(), 2);
    // A wheelchair place with the seat of its companion.
    let pair = json!([{"column": "W"}, {"column": "C"}]);
    shop.buy(vec![shop.pattern("wheelchair", all, &pair)], 2).await.order();

    let tiers: Vec<&str> = shop.sale.tiers().iter().map(|tier| tier.tier.as_str()).collect();
    for tier in tiers {
        shop.sell_out(tier, all, 8).await;
    }
    assert_eq!(shop.tickets_sold(), u64::from(THEATRE.seats));
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_club_sells_to_the_last_place_with_a_name_on_each_ticket() {
    let shop = Shop::open(&CLUB.file()).await;
    let all = shop.sale.whole();
    let nameless = json!({"tier": "early", "best": {"count": 1}});
    assert_eq!(shop.buy(vec![nameless], 1).await.problem(), "invalid");
    let chosen = shop.seats("early", all, &["early-1"]);
    assert_eq!(shop.buy(vec![chosen], 1).await.problem(), "invalid", "nobody has a place");
    let mut line = shop.best("early", all, 1, "preferred");
    shop.buy(vec![line.clone()], 1).await.order();
    line["tier"] = json!("door");
    assert_eq!(shop.buy(vec![line], 1).await.problem(), "attendee-taken");
    for tier in ["early", "door", "gallery"] {
        shop.sell_out(tier, all, 4).await;
    }
    assert_eq!(shop.tickets_sold(), u64::from(CLUB.seats));
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_g_train_sells_to_the_last_seat_on_every_leg() {
    let shop = Shop::open(&G_TRAIN.file()).await;
    let whole = shop.sale.whole();
    // A row of five, C and D across the aisle, C and D in neighbouring rows.
    let row = json!([{"column": "A"}, {"column": "B"}, {"column": "C"}, {"column": "D"}, {"column": "F"}]);
    let order = shop.buy(vec![shop.pattern("second", whole, &row)], 5).await.order();
    assert_eq!(seats_of(&order), ["04-01A", "04-01B", "04-01C", "04-01D", "04-01F"]);
    let diagonal = json!([{"column": "C"}, {"column": "D", "row": 1}]);
    let order = shop.buy(vec![shop.pattern("first", whole, &diagonal)], 2).await.order();
    assert_eq!(seats_of(&order), ["02-01C", "02-02D"]);
    // One seat, three buyers one after another along the way, and a fourth who overlaps.
    let seat = ["08-18F"];
    for (from, to) in [(0, 1), (1, 4), (4, 5)] {
        let legs = Shop::legs(from, to);
        shop.buy(vec![shop.seats("second", legs, &seat)], 1).await.order();
    }
    let overlap = shop.buy(vec![shop.seats("second", Shop::legs(3, 5), &seat)], 1).await;
    assert_eq!(overlap.problem(), "seat-taken");
    let crew = shop.buy(vec![shop.seats("second", whole, &["05-01A"])], 1).await;
    assert_eq!(crew.problem(), "seat-taken", "the crew's places are not sold");
    // No three side by side but left of the aisle.
    let three = shop.buy(vec![shop.best("second", whole, 3, "required")], 3).await.order();
    assert_eq!(seats_of(&three), ["04-02A", "04-02B", "04-02C"]);

    // A part of the way first, so that what is left of it is sold in parts as well.
    let part = shop.sell_out("business", Shop::legs(1, 3), 5).await;
    assert_eq!(part, 15);
    for legs in [whole, Shop::legs(0, 1), Shop::legs(3, 5)] {
        for tier in ["business", "first", "second", "standing"] {
            shop.sell_out(tier, legs, 5).await;
        }
    }
    for leg in 0..5 {
        let left = shop.left(Shop::legs(leg, leg + 1)).await;
        assert_eq!(left.len(), 4);
        assert!(left.values().all(|(count, _)| *count == 0), "leg {leg}: {left:?}");
    }
    // Each seat once over the whole way, but business in three parts and one second class seat.
    assert_eq!(shop.tickets_sold(), u64::from(G_TRAIN.seats) + 2 * 15 + 2);
    shop.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_train_sells_berths_by_the_night_and_seats_by_the_leg() {
    let shop = Shop::open(&NIGHT_TRAIN.file()).await;
    let whole = shop.sale.whole();
    // Berths are for a night: who boards in the evening and leaves in the morning.
    let evening = Shop::legs(0, 3);
    let sells: BTreeSet<String> = shop.left(evening).await.into_keys().collect();
    assert_eq!(sells, BTreeSet::from(["bicycle".to_owned(), "seat".to_owned()]));
    let refused = shop.buy(vec![shop.best("couchette", evening, 1, "preferred")], 1).await;
    assert_eq!(refused.problem(), "invalid");
    // The three berths of one side of a compartment, and a whole one.
    let side = json!([{"column": "A"}, {"column": "B"}, {"column": "C"}]);
    let order = shop.buy(vec![shop.pattern("couchette", whole, &side)], 3).await.order();
    assert_eq!(seats_of(&order), ["23-02A", "23-02B", "23-02C"], "the conductor's are in 01");
    let six = json!(["A", "B", "C", "D", "E", "F"].map(|column| json!({"column": column})));
    let order = shop.buy(vec![shop.pattern("couchette", Shop::legs(3, 17), &six)], 6).await;
    assert_eq!(seats_of(&order.order())[0], "23-03A");

    // One seat, sold again on each of the twenty legs.
    for leg in 0..20 {
        let line = shop.seats("seat", Shop::legs(leg, leg + 1), &["27-16D"]);
        shop.buy(vec![line], 1).await.order();
    }
    // All berths of the night, then all seats: two in two parts, the rest on the whole way.
    shop.sell_out("sleeper", whole, 6).await;
    shop.sell_out("couchette", whole, 6).await;
    shop.sell_out("bicycle", whole, 6).await;
    let half = Shop::legs(0, 9);
    let four = shop.buy(vec![shop.best("seat", half, 4, "required")], 4).await;
    assert_eq!(four.problem(), "no-adjacent", "an aisle lies between B and C");
    let two = shop.buy(vec![shop.best("seat", half, 2, "required")], 2).await.order();
    shop.buy(vec![shop.seats("seat", Shop::legs(9, 20), &seats_of(&two))], 2).await.order();
    shop.sell_out("seat", whole, 6).await;
    for leg in 0..20 {
        let left = shop.left(Shop::legs(leg, leg + 1)).await;
        assert_eq!(left["seat"].0, 0, "leg {leg}");
    }
    let berths = shop.left(Shop::legs(7, 13)).await;
    assert_eq!((berths["sleeper"].0, berths["couchette"].0), (0, 0), "no shorter night is left");
    assert_eq!(shop.tickets_sold(), u64::from(NIGHT_TRAIN.seats) + 19 + 2);
    shop.close().await;
}

#[test]
fn no_sample_offers_more_in_one_order_than_an_order_may_have() {
    for sample in [STADIUM, THEATRE, CLUB, G_TRAIN, NIGHT_TRAIN] {
        assert!(
            usize::from(sample.file().limit_per_buyer) <= MAX_SEATS_PER_ORDER,
            "{}",
            sample.sale
        );
    }
}
