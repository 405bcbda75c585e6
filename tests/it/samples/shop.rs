//! An engine, and buyers of one of its sales.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::domain::basics::ids::{Legs, Seat, TierId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::layout::Layout;
use engine::domain::sale::{AttendeeRule, GateSettings, Sale, SaleFile, Tier};
use importers::pictures::of_sale_file;
use loadtest::demo;
use local::payment;
use local::up::{Engine, Options};
use ops::audit;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shared::http::journey_query::journey_query;

use crate::backends;

/// The number of buyers that buy at once.
const AT_ONCE: usize = 6;

/// How long what everyone may see can be out of date, and then some.
const DEADLINE: Duration = Duration::from_secs(300);

/// An engine, and buyers of one of its sales.
pub struct Shop {
    pub(super) engine: Engine,
    http: reqwest::Client,
    pub(super) sale: Sale,
    buyers: AtomicU64,
    sold: AtomicU64,
}

/// The result of an attempt to buy.
pub enum Bought {
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

    pub(super) fn problem(self) -> String {
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
        // These buyers ask again and again for more than there is: the gate must not hold them up.
        let gate = GateSettings { budget_percent: 1000, ..file.gate };
        let file = &SaleFile { gate, ..file.clone() };
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sales/pictures");
        let mut value = serde_json::to_value(file).unwrap();
        for picture in of_sale_file(&mut value, Path::new(folder)).unwrap() {
            let body = json!({ "data": STANDARD.encode(&picture.bytes) });
            let put = self.request(Method::PUT, &format!("/pictures/{}", picture.hash()));
            let put = put.json(&body).bearer_auth(self.engine.operator_token().unwrap());
            assert_eq!(answer(put).await.0, StatusCode::OK);
        }
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

    pub(super) fn tier(&self, tier: &str) -> &Tier {
        self.sale.tier(&TierId::new(tier).unwrap()).unwrap()
    }

    /// The legs from one stop to another, by their indexes.
    pub(super) fn legs(from: u16, to: u16) -> Legs {
        Legs::new(from, to).unwrap()
    }

    /// One line of an order.
    pub(super) fn line(
        &self,
        tier: &str,
        legs: Legs,
        choice: (&str, Value),
        count: usize,
    ) -> Value {
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

    pub(super) fn seats(&self, tier: &str, legs: Legs, seats: &[&str]) -> Value {
        self.line(tier, legs, ("seats", json!(seats)), seats.len())
    }

    pub(super) fn pattern(&self, tier: &str, legs: Legs, places: &Value) -> Value {
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
            let price = tier.price_minor(legs).unwrap();
            assert_eq!(line["price_minor"], json!(price), "{line}");
            sum += price.0 * count as i64;
            tickets += count;
        }
        assert_eq!(order["amount_minor"].as_i64(), Some(sum), "{order}");
        tickets
    }

    /// The provider's callback for a whole order.
    async fn pay(&self, order: &Value) -> Value {
        let number = order["order"].as_str().unwrap();
        let amount = Money {
            amount_minor: MinorUnits(order["amount_minor"].as_i64().unwrap()),
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
    pub(super) async fn sell_out(&self, tier: &str, legs: Legs, party: usize) -> usize {
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

    pub(super) fn tickets_sold(&self) -> u64 {
        self.sold.load(Ordering::Relaxed)
    }
}

/// Runs all of them at once on this task.
pub(super) async fn futures<F: Future>(all: impl Iterator<Item = F>) -> Vec<F::Output> {
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
pub(super) fn seats_of(order: &Value) -> Vec<&str> {
    let tickets = order["lines"].as_array().unwrap().iter().map(|line| line["tickets"].as_array());
    tickets.flat_map(Option::unwrap).map(|ticket| ticket["seat"].as_str().unwrap()).collect()
}

/// The first free seats of a tier, by name.
pub(super) fn first_free(layout: &Layout, free: &[u8], count: usize) -> Vec<String> {
    let is_free = |seat: &Seat| free[seat.0 as usize / 8] & (0x80 >> (seat.0 % 8)) != 0;
    let seats = (0..free.len() as u32 * 8).map(Seat).filter(is_free);
    seats.take(count).map(|seat| layout.name(seat).unwrap().to_string()).collect()
}
