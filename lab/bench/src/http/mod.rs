//! What a request costs at the gateway: each endpoint under as many requests as it can take, in
//! turns with a function that does nothing behind the very same gateway.
//!
//! The engine runs in a process of its own, so that its processor time is not mixed with the
//! client's. A round sends each endpoint a batch over a number of connections, each of which has
//! one request under way at a time; before each batch, the empty function gets one of the same
//! size, so that whatever else the machine does slows both. The batches of a round live on one
//! another: buyers are let in, reserve what they were let in for, look at it, and cancel or pay.

mod connection;
mod load;
mod report;
mod requests;
mod room;

pub use report::{Cost, Report, Row};

use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use self::load::Sent;
use self::report::Tally;
use self::requests::{Buyer, Made, SALE, SEATS, SOLD_OUT, TIERS, Writer};
use loadtest::cpu::Meter;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::gateway::{EMPTY_ROUTES, Routes};
use local::queues::{self, Queues};
use local::stores;
use local::up::{self, Engine, PREFIX};

/// Reason why it could not be measured, in words.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Time that the counting of paid orders may take between two batches.
const SETTLE: Duration = Duration::from_secs(60);

/// Buyers at the gate of the sale that is sold out, enough for all of its shards.
const KNOCKERS: usize = 64;
/// Most requests of each of them.
const MAX_KNOCKS: usize = 10;
/// The most characters of an unexpected answer that an error quotes.
const TOLD_CHARS: usize = 400;

/// Options of the measurement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Number of requests of a batch.
    pub requests: usize,
    /// Number of batches of each endpoint.
    pub rounds: usize,
    /// Number of requests that are under way at a time.
    pub connections: usize,
}

/// Runs the engine that is measured, with the empty function beside the others: says on standard
/// output where it is, and ends with its standard input.
///
/// # Errors
/// The engine does not start or stop.
pub async fn serve(data_dir: &Path) -> Result<(), Failure> {
    let options = up::Options {
        data_dir: Some(data_dir.to_owned()),
        routes: Routes::WithEmpty,
        ..up::Options::ephemeral()
    };
    let engine = Engine::start(options).await?;
    println!("{}", serde_json::to_string(engine.endpoints())?);
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    ended.await??;
    Ok(engine.stop().await?)
}

/// Measures every endpoint.
///
/// # Errors
/// The engine does not start, or an answer is not the one that the endpoint must give.
pub async fn run(options: &Options) -> Result<Report, Failure> {
    let dir = tempfile::tempdir()?;
    let program = std::env::current_exe()?;
    let mut engine = Command::new(program)
        .args(["bench", "http-engine", "--data-dir"])
        .arg(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let endpoints = first_line(&mut engine).await?;
    let mut bench = Bench::new(&endpoints, dir.path(), options.clone()).await?;
    bench.open(options).await?;
    // Once for nothing: caches fill, connections are made.
    bench.round("warm").await?;
    bench.tally = Tally::default();
    for round in 0..options.rounds {
        bench.round(&format!("r{round}")).await?;
    }
    // Its standard input closes, and it ends.
    drop(engine.stdin.take());
    engine.wait().await?;
    Ok(bench.tally.report(options))
}

async fn first_line(engine: &mut Child) -> Result<Endpoints, Failure> {
    let said = engine.stdout.take().ok_or("the engine has no standard output")?;
    let line = BufReader::new(said).lines().next_line().await?;
    Ok(serde_json::from_str(&line.ok_or("the engine did not start")?)?)
}

/// A measurement under way.
struct Bench {
    options: Options,
    endpoints: Endpoints,
    gateway: SocketAddr,
    sqs: aws_sdk_sqs::Client,
    queues: Queues,
    write: Writer,
    tally: Tally,
}

/// Empty route that an endpoint is compared with: one that anybody may use, or one for buyers.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Anybody,
    Buyer,
}

impl Bench {
    async fn new(endpoints: &Endpoints, dir: &Path, options: Options) -> Result<Self, Failure> {
        let secrets = Secrets::read(dir)?;
        let host = endpoints.gateway.trim_start_matches("http://").to_owned();
        let sqs = stores::sqs(&endpoints.sqs);
        Ok(Self {
            options,
            endpoints: endpoints.clone(),
            gateway: host.parse()?,
            // What is there already is only found.
            queues: Queues::create(&sqs, PREFIX, None).await?,
            sqs,
            write: Writer::new(host, secrets),
            tally: Tally::default(),
        })
    }

    /// Puts both sales on sale, and sells one out.
    async fn open(&self, options: &Options) -> Result<(), Failure> {
        // Twice what is ever held at once, so that no batch is about the last seats.
        let rounds = options.rounds + 1;
        let seats = 2 * SEATS * options.requests * (rounds + 1);
        for file in requests::sales(seats) {
            self.send(vec![self.write.publish(&file)?], 200).await?;
        }
        let buyer = self.write.buyer("last")?;
        let admitted = self.send(vec![self.write.admission(SOLD_OUT, &buyer)], 201).await?;
        let admission = json(&admitted.answers[0].body)?;
        let reserve = self.write.reserve(SOLD_OUT, &buyer, &admission, 0);
        let reserved = self.send(vec![reserve], 201).await?;
        let made = Made::read(&buyer, &reserved.answers[0].body)?;
        self.send(vec![self.write.payment(&made)], 200).await?;
        self.use_up_gate().await?;
        self.open_room().await
    }

    /// Each shard of the gate has a budget of its own from the beginning, which is used up before it
    /// finds out that nothing is left.
    async fn use_up_gate(&self) -> Result<(), Failure> {
        for knock in 0..MAX_KNOCKS {
            let mut asks = Vec::with_capacity(KNOCKERS);
            for index in 0..KNOCKERS {
                let buyer = self.write.buyer(&format!("knock-{knock}-{index}"))?;
                asks.push(self.write.admission(SOLD_OUT, &buyer));
            }
            let sent = load::send(self.gateway, self.options.connections, asks).await?;
            if sent.answers.iter().all(|answer| answer.status == 409) {
                return Ok(());
            }
        }
        Err("the gate of a sale that is sold out goes on letting buyers in".into())
    }

    /// One batch for every endpoint.
    async fn round(&mut self, name: &str) -> Result<(), Failure> {
        use Beside::{Anybody, Buyer};
        let count = self.options.requests;
        let buyers: Vec<_> = (0..2 * count)
            .map(|index| self.write.buyer(&format!("{name}-{index}")))
            .collect::<Result<_, _>>()?;
        let made = self.buy(&buyers).await?;
        let (cancelled, paid) = made.split_at(count);

        let looks = cancelled.iter().map(|made| self.write.order(made)).collect();
        self.measure("order", Buyer, 200, looks).await?;
        let list = |made: &Made| self.write.get("/orders", Some(&made.buyer));
        let lists = cancelled.iter().map(list).collect();
        self.measure("orders", Buyer, 200, lists).await?;
        let cancels = cancelled.iter().map(|made| self.write.cancel(made)).collect();
        self.measure("cancel", Buyer, 200, cancels).await?;
        let payments = paid.iter().map(|made| self.write.payment(made)).collect();
        self.measure("pay-callback", Anybody, 200, payments).await?;

        for (endpoint, path) in [
            ("sales", "/sales".to_owned()),
            ("sale", format!("/sales/{SALE}")),
            ("availability", format!("/sales/{SALE}/availability")),
        ] {
            let reads = vec![self.write.get(&path, None); count];
            self.measure(endpoint, Anybody, 200, reads).await?;
        }

        let late = |buyer: &requests::Buyer| self.write.admission(SOLD_OUT, buyer);
        let late = buyers[..count].iter().map(late).collect();
        self.measure("token-gate: sold out", Buyer, 409, late).await?;
        let path = format!("/sales/{SALE}/orders");
        let wrong = json!({ "admission": "none", "lines": "two" });
        let wrong = |buyer: &requests::Buyer| self.write.post(&path, Some(buyer), &wrong);
        let wrong = buyers[..count].iter().map(wrong).collect();
        self.measure("reserve: invalid body", Buyer, 422, wrong).await?;
        let nobody = vec![self.write.post(&path, None, &json!({ "lines": [] })); count];
        self.measure("reserve: not authenticated", Buyer, 401, nobody).await?;
        self.in_room(&buyers[..count]).await
    }

    /// Every buyer is let in and reserves.
    async fn buy(&mut self, buyers: &[Buyer]) -> Result<Vec<Made>, Failure> {
        let mut made = Vec::with_capacity(buyers.len());
        for buyers in buyers.chunks(self.options.requests) {
            let asks = buyers.iter().map(|buyer| self.write.admission(SALE, buyer)).collect();
            let admitted = self.measure("token-gate", Beside::Buyer, 201, asks).await?;
            let mut reserves = Vec::with_capacity(buyers.len());
            for (index, (buyer, answer)) in buyers.iter().zip(&admitted.answers).enumerate() {
                let admission = json(&answer.body)?;
                reserves.push(self.write.reserve(SALE, buyer, &admission, index % TIERS));
            }
            let reserved = self.measure("reserve", Beside::Buyer, 201, reserves).await?;
            for (buyer, answer) in buyers.iter().zip(&reserved.answers) {
                made.push(Made::read(buyer, &answer.body)?);
            }
        }
        Ok(made)
    }

    /// Measures a batch of an endpoint, and one of the empty function before it.
    async fn measure(
        &mut self,
        endpoint: &'static str,
        beside: Beside,
        status: u16,
        requests: Vec<Vec<u8>>,
    ) -> Result<Sent, Failure> {
        self.settle().await?;
        let [anybody, for_buyers] = EMPTY_ROUTES.map(|route| route.path());
        let empty = match beside {
            Beside::Anybody => self.write.get(anybody, None),
            Beside::Buyer => {
                let buyer = self.write.buyer("nobody in particular")?;
                self.write.post(for_buyers, Some(&buyer), &json!({}))
            }
        };
        let (_, empty) = self.batch(vec![empty; requests.len()], 200).await?;
        let (sent, own) = self.batch(requests, status).await?;
        self.tally.add(endpoint, own, empty);
        Ok(sent)
    }

    /// Sends a batch, and says what it cost.
    async fn batch(
        &self,
        requests: Vec<Vec<u8>>,
        status: u16,
    ) -> Result<(Sent, report::Batch), Failure> {
        let meter = Meter::start(&self.endpoints).await?;
        let sent = self.send(requests, status).await?;
        let shares = meter.read().await?;
        let batch = report::Batch::new(&sent, &shares);
        Ok((sent, batch))
    }

    /// Sends requests, all of which must get this status.
    async fn send(&self, requests: Vec<Vec<u8>>, status: u16) -> Result<Sent, Failure> {
        let sent = load::send(self.gateway, self.options.connections, requests).await?;
        match sent.answers.iter().find(|answer| answer.status != status) {
            None => Ok(sent),
            Some(other) => {
                let text = String::from_utf8_lossy(&other.body);
                let text: String = text.chars().take(TOLD_CHARS).collect();
                Err(format!("answered {} instead of {status}: {text}", other.status).into())
            }
        }
    }

    /// Waits until every paid order is counted: what a batch leaves to the queues must not slow
    /// the next one.
    async fn settle(&self) -> Result<(), Failure> {
        let until = Instant::now() + SETTLE;
        while queues::depth(&self.sqs, &self.queues.sync).await? > 0 {
            if Instant::now() > until {
                return Err("paid orders are not counted".into());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }
}

fn json(body: &[u8]) -> Result<Value, Failure> {
    Ok(serde_json::from_slice(body)?)
}
