//! A load test from its first buyer to its report, in a thread of its own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::domain::basics::ids::Legs;
use engine::domain::basics::time::Timestamp;
use futures_util::stream::{self, StreamExt as _};
use local::endpoints::Endpoints;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use super::arrivals;
use super::client::{BadAddress, Client};
use super::controller::Controller;
use super::cpu::{self, GENERATOR_THREADS, Meter, Shares};
use super::credentials::Credentials;
use super::ledger::Ledger;
use super::options::{Load, Options};
use super::pace::{Limit, MEASURED};
use super::pages::Pages;
use super::people::Class;
use super::people::plan::{self, Arrival, Crowd};
use super::progress::Progress;
use super::rehearsal::tokens::{NoToken, Tokens};
use super::report::{Report, Sold};
use super::series::{self, Series};
use super::session::LoadTest;
use super::tally::Tally;
use super::venue::Venue;

/// Time between two drawings of the progress.
const REDRAW: Duration = Duration::from_millis(250);
/// The longest time at the end of a load test in which nobody begins anything any more, so that what
/// was begun can end.
const LAST_MOST: Duration = Duration::from_secs(5);
/// How long the account of the processors may take to be read, and the sales after the end.
const LOOK_MOST: Duration = Duration::from_secs(2);

/// Why a load test could not begin.
#[derive(Debug, thiserror::Error)]
pub enum LoadTestError {
    /// The gateway's address is none.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// The ledger could not be opened, or the crowd's thread not be started.
    #[error("the crowd cannot begin: {0}")]
    Io(#[from] std::io::Error),
    /// The system has no client of HTTP for those who pay on pages.
    #[error("nobody can open a page: {0}")]
    Browser(#[from] reqwest::Error),
    /// A sale could not be read.
    #[error("{0}")]
    Sale(String),
    /// The gateway did not answer within the time that the whole test may take.
    #[error("the gateway did not show the sales within {} s", .0.as_secs_f32())]
    Silent(Duration),
    /// The token command failed.
    #[error(transparent)]
    NoToken(#[from] NoToken),
    /// The rehearsal was aborted before it began.
    #[error("aborted before it began: {0}")]
    Aborted(String),
    /// The crowd's thread failed.
    #[error("the crowd's thread ended before its time")]
    Ended,
}

/// Runs the crowd, then the late buyers, in a thread of their own.
///
/// # Errors
/// Fails if it cannot begin; what goes wrong on the way is in the report. It takes no longer than
/// [`Options::most`] and some seconds, whatever the engine does: what is under way then is given up.
pub async fn run(options: &Options, credentials: Credentials) -> Result<Report, LoadTestError> {
    in_a_thread(options.clone(), credentials, None).await
}

/// Runs a closed loop without an end, in a thread of its own, until its controller ends it.
/// Nobody sells the rest.
///
/// # Errors
/// As [`run`].
pub async fn run_on(
    options: &Options,
    credentials: Credentials,
    controller: Arc<Controller>,
) -> Result<Report, LoadTestError> {
    in_a_thread(options.clone(), credentials, Some(controller)).await
}

async fn in_a_thread(
    options: Options,
    credentials: Credentials,
    controller: Option<Arc<Controller>>,
) -> Result<Report, LoadTestError> {
    let (mut done, outcome) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(GENERATOR_THREADS.to_owned()).spawn(move || {
        LocalSet::new().block_on(&runtime, async move {
            tokio::select! {
                report = execute(&options, credentials, controller) => {
                    // Whoever asked may have lost interest meanwhile.
                    let _unheard = done.send(report);
                }
                () = done.closed() => {}
            }
        });
    })?;
    outcome.await.map_err(|_gone| LoadTestError::Ended)?
}

/// What the sessions share: the clients, the sales as the gateway shows them, the ledger.
async fn prepare(
    options: &Options,
    credentials: Credentials,
    controller: Option<Arc<Controller>>,
) -> Result<LoadTest, LoadTestError> {
    let connections = options.load.connections();
    let client = match &options.rehearsal {
        Some(rehearsal) => Client::rehearsing(rehearsal, connections)?,
        None => Client::new(&options.url, connections)?.watched(controller.clone()),
    };
    let tokens = match &options.rehearsal {
        Some(rehearsal) => {
            Some(Tokens::make(&rehearsal.token_command, options.load.arrivals()).await?)
        }
        None => None,
    };
    let endpoints = options.endpoints.as_ref();
    let provider = endpoints.map(|endpoints| Client::new(&endpoints.provider, connections));
    let pages = endpoints.zip(options.pages).map(|(at, shares)| Pages::new(at, shares));
    let mut venues = Vec::new();
    for sale in &options.sales {
        venues.push(Venue::read(&client, sale).await.map_err(LoadTestError::Sale)?);
    }
    let ledger =
        options.ledger.as_deref().map_or_else(|| Ok(Ledger::default()), Ledger::in_file)?;
    let weights: Vec<u64> = venues.iter().map(|venue| venue.sale.seat_legs()).collect();
    Ok(LoadTest {
        client,
        provider: provider.transpose()?,
        pages: pages.transpose()?,
        callback_repeats: options.callback_repeats,
        grace: options.grace,
        venues,
        weights,
        tally: Tally::default(),
        ledger,
        credentials,
        tokens,
        arrivals: Vec::new(),
        visits: RefCell::default(),
        members: RefCell::default(),
        promises: RefCell::default(),
        profile: options.profile,
        seed: options.seed,
        people_look: options.crowd == Crowd::Looking,
        unhurried: matches!(options.load, Load::Open { .. }),
        tasks: Rc::default(),
        waiting: Cell::default(),
        gone: Cell::default(),
        controller,
    })
}

async fn execute(
    options: &Options,
    credentials: Credentials,
    controller: Option<Arc<Controller>>,
) -> Result<Report, LoadTestError> {
    let prepared = tokio::time::timeout(options.most, prepare(options, credentials, controller));
    let test = tokio::select! {
        prepared = prepared => prepared.map_err(|_elapsed| LoadTestError::Silent(options.most))??,
        reason = aborted(options) => return Err(LoadTestError::Aborted(reason)),
    };
    let mut test = test;
    let opening = opening(&test);
    test.arrivals = arrivals(options, opening, test.has_room());
    let test = Rc::new(test);
    let seats = test.weights.iter().sum();
    let progress = Progress::new(options.progress, options.load.arrivals(), seats);
    let meter = meter(options.endpoints.as_ref()).await;
    let started = Instant::now();
    let limit = Limit::new(options.most);
    let until = || limit.end() - LAST_MOST.min(options.most / 10);
    let series = RefCell::new(Series::new(started));
    let crowd = async {
        match options.load {
            Load::Open { .. } => test.open_loop(opening, started, until()).await,
            Load::Closed { arrivals, at_once } => test.closed_loop(arrivals, at_once, &until).await,
        }
        match &test.controller {
            None if options.rehearsal.is_none() && !test.has_room() => {
                test.sell_the_rest(options.load.late_at_once(), until()).await
            }
            Some(_) | None => {
                while test.tasks.count() > 0 && Instant::now() < until() {
                    test.tasks.changed().await;
                }
                test.has_room() && options.rehearsal.is_none() && test.is_sold_out().await
            }
        }
    };
    let sold_out = tokio::select! {
        sold_out = crowd => sold_out,
        () = watch(&test, meter.as_ref(), &series, &progress) => false,
        reason = aborted(options) => {
            tracing::warn!(reason, "aborted");
            false
        }
        // An engine that is ill keeps its buyers waiting and repeating for minutes.
        () = over(&test, options, &limit, &progress) => {
            tracing::warn!(requests = test.client.under_way(), "the time is over: given up");
            false
        }
    };
    let took = started.elapsed();
    let cpu = shares(meter.as_ref()).await;
    series.borrow_mut().take(&test, cpu.as_ref());
    progress.finish();
    let sales = if options.rehearsal.is_some() {
        // What else is sold there meanwhile is nothing that this run has done.
        Vec::new()
    } else {
        let sales = tokio::time::timeout(LOOK_MOST, test.sold()).await;
        sales.unwrap_or_else(|_elapsed| test.unseen())
    };
    let samples = series.into_inner().into_samples();
    Ok(Report { cpu, ..Report::from_test(&test, options, started, took, sold_out, sales, samples) })
}

/// Waits until the time of a run is over, and gives more of it where its first seconds show that it is needed.
async fn over(test: &LoadTest, options: &Options, limit: &Limit, progress: &Progress) {
    if options.may_take_longer {
        tokio::time::sleep(MEASURED).await;
        let people = options.load.arrivals();
        if limit.look(test.gone.get(), people) {
            progress.note(&format!(
                "this machine is slow: {} of {people} people in {} s; they may take {} minutes",
                test.gone.get(),
                MEASURED.as_secs(),
                limit.end().duration_since(Instant::now()).as_secs().div_ceil(60),
            ));
        }
    }
    tokio::time::sleep_until(limit.end().into()).await;
}

/// The opening of the sale that opens last, from now; zero if all are open.
fn opening(test: &LoadTest) -> Duration {
    let now = Timestamp::now();
    let until = |venue: &Venue| {
        let ms = u64::try_from(venue.sale.file().opens_at.ms_since(now)).unwrap_or(0);
        Duration::from_millis(ms)
    };
    test.venues.iter().map(until).max().unwrap_or_default()
}

/// Who comes, and when; nobody by the clock in a closed loop.
fn arrivals(options: &Options, opening: Duration, has_room: bool) -> Vec<Arrival> {
    let Load::Open { arrivals: accounts, within_seconds, shape, .. } = options.load else {
        return Vec::new();
    };
    let (within, seed) = (Duration::from_secs_f64(within_seconds), options.seed);
    match options.crowd {
        Crowd::People => {
            let person = |(owner, micros)| Arrival { micros, class: Class::Person, owner };
            (0..).zip(arrivals::plan(shape, accounts, within, seed)).map(person).collect()
        }
        crowd @ (Crowd::Mixed | Crowd::Looking) => {
            plan::plan(&plan::Terms { crowd, accounts, shape, within, opening, has_room, seed })
        }
    }
}

/// Waits until a rehearsal is aborted, by its switch or by its file, and says why; for ever if there is none.
async fn aborted(options: &Options) -> String {
    let Some(rehearsal) = &options.rehearsal else { return std::future::pending().await };
    let abort = &rehearsal.abort;
    let by_file = async {
        let Some(file) = &rehearsal.abort_file else { return std::future::pending().await };
        let mut looks = tokio::time::interval(REDRAW);
        loop {
            looks.tick().await;
            if file.exists() {
                return abort.abort(format!("{} exists", file.display()));
            }
        }
    };
    tokio::select! {
        () = abort.thrown() => {}
        () = by_file => {}
    }
    abort.reason().unwrap_or_default()
}

/// Begins the account of the processors, where there is one to be had.
async fn meter(endpoints: Option<&Endpoints>) -> Option<Meter> {
    account(Meter::start(endpoints?)).await
}

async fn shares(meter: Option<&Meter>) -> Option<Shares> {
    account(meter?.read()).await
}

/// Redis is asked for a part of the account, and may be ill.
async fn account<T>(account: impl Future<Output = Result<T, cpu::Error>>) -> Option<T> {
    match tokio::time::timeout(LOOK_MOST, account).await {
        Ok(account) => {
            account.inspect_err(|error| tracing::warn!(%error, "no account of the processors")).ok()
        }
        Err(_elapsed) => {
            tracing::warn!("no account of the processors: Redis does not answer");
            None
        }
    }
}

/// Samples and draws, for as long as it is let.
async fn watch(
    test: &LoadTest,
    meter: Option<&Meter>,
    series: &RefCell<Series>,
    progress: &Progress,
) {
    let mut ticks = tokio::time::interval(REDRAW);
    let mut sampled = Instant::now();
    loop {
        ticks.tick().await;
        progress.move_on(test);
        if sampled.elapsed() >= series::PERIOD {
            sampled += series::PERIOD;
            let cpu = shares(meter).await;
            progress.say(series.borrow_mut().take(test, cpu.as_ref()));
        }
    }
}

impl LoadTest {
    /// The next one comes when one leaves.
    async fn closed_loop(
        self: &Rc<Self>,
        arrivals: u64,
        at_once: usize,
        until: &impl Fn() -> Instant,
    ) {
        let next = Cell::new(0);
        let places = stream::iter(0..at_once.max(1)).for_each_concurrent(None, |_| async {
            loop {
                let index = next.get();
                let is_over =
                    self.controller.as_ref().is_some_and(|controller| controller.is_over());
                if index >= arrivals || is_over || Instant::now() >= until() {
                    return;
                }
                next.set(index + 1);
                let _turn = self.turn().await;
                self.run_session(self.buyer(index)).await;
                self.gone.set(self.gone.get() + 1);
            }
        });
        places.await;
    }

    /// True if a sale has a waiting room: whoever comes late has no place in it.
    fn has_room(&self) -> bool {
        self.venues.iter().any(Venue::has_room)
    }

    /// The sales of a gateway that does not say what is left: nothing is known to be gone.
    fn unseen(&self) -> Vec<Sold> {
        let unseen = |venue: &Venue| Sold {
            sale: venue.sale.id().to_string(),
            seat_legs: venue.sale.seat_legs(),
            taken: 0,
        };
        self.venues.iter().map(unseen).collect()
    }

    /// Share of each sale that is gone, as far as the gateway says.
    async fn sold(&self) -> Vec<Sold> {
        let mut sales = Vec::new();
        for venue in &self.venues {
            let seat_legs = venue.sale.seat_legs();
            let mut left = 0;
            for leg in venue.sale.whole().iter() {
                let Some(leg) = Legs::new(leg.0, leg.0 + 1) else { continue };
                let tiers = self.left(venue, leg, true).await;
                left += tiers.map_or(seat_legs, |tiers| {
                    tiers.values().map(|tier| u64::from(tier.count)).sum::<u64>()
                });
            }
            let sale = venue.sale.id().to_string();
            sales.push(Sold { sale, seat_legs, taken: seat_legs.saturating_sub(left) });
        }
        sales
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::profile::LoadProfile;
    use super::super::{CallbackRepeats, Load, arrivals::Shape};
    use super::*;
    use local::data_dir::DataDir;

    /// A gateway that shows the sale, if it does that much, and then accepts requests and says nothing.
    async fn ill(shows_the_sale: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(silent(stream, shows_the_sale));
            }
        });
        url
    }

    async fn silent(mut stream: TcpStream, shows_the_sale: bool) -> Result<(), ErrorKind> {
        let mut request = vec![0; 64 * 1024];
        loop {
            let read = stream.read(&mut request).await.map_err(|error| error.kind())?;
            if read == 0 {
                return Ok(());
            }
            if shows_the_sale && request.starts_with(b"GET /sales/stub HTTP") {
                let sale = json!({ "file": {
                    "sale": "stub", "title": "Ill", "currency": "EUR",
                    "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2046-01-02T00:00:00Z",
                    "limit_per_buyer": 4, "pay_window_seconds": 900, "tiers": [
                        { "tier": "field", "name": "F", "price_minor": 1, "general_admission": 20 },
                    ],
                } });
                let sale = sale.to_string();
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{sale}", sale.len());
                let written = stream.write_all(answer.as_bytes()).await;
                written.map_err(|error| error.kind())?;
            }
        }
    }

    async fn run_on_an_ill_one(load: Load, shows: bool) -> (Result<Report, LoadTestError>, f64) {
        let dir = tempfile::tempdir().unwrap();
        let secrets = DataDir::open(dir.path()).unwrap().secrets().unwrap();
        let options = Options {
            url: ill(shows).await,
            sales: vec!["stub".to_owned()],
            load,
            crowd: Crowd::People,
            profile: LoadProfile::Paying,
            seed: 1,
            most: Duration::from_secs(2),
            may_take_longer: false,
            ledger: None,
            progress: false,
            endpoints: None,
            rehearsal: None,
            pages: None,
            callback_repeats: CallbackRepeats::default(),
            grace: engine::domain::payment::grace::Grace::NONE,
        };
        let began = Instant::now();
        let report = run(&options, Credentials::new(&secrets));
        let report = tokio::time::timeout(Duration::from_secs(120), report).await;
        (report.expect("the test ends"), began.elapsed().as_secs_f64())
    }

    /// Seconds after which a load test of two seconds has not ended by its own time, but because a client
    /// has waited long enough for an answer.
    const TOO_LONG: f64 = 30.0;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_time_is_kept_when_the_engine_says_nothing() {
        let shape = Shape::Opening;
        let open = Load::Open { arrivals: 50, within_seconds: 1.0, shape, connections: 20 };
        for load in [open, Load::Closed { arrivals: 50, at_once: 5 }] {
            let (report, took) = run_on_an_ill_one(load, true).await;
            let report = report.unwrap();
            println!("{load:?}: {took:.1} s");
            assert!(!report.is_good() && report.buyers > 0);
            assert!((1.9..TOO_LONG).contains(&took), "{load:?}: {took} s");
            let (refused, took) = run_on_an_ill_one(load, false).await;
            assert!(matches!(refused, Err(LoadTestError::Silent(_))));
            assert!(took < TOO_LONG, "{load:?}: {took} s");
        }
    }
}
