//! `onsale bench`: what the engine costs on this machine.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};

use super::{Failure, out};
use bench::{draw, growth, http, reload, room, sales, scripts, seats, trains};
use local::servers::Flavour;

/// Measure what the engine costs on this machine.
#[derive(Debug, Args)]
pub struct BenchCommand {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    Scripts(ScriptsCommand),
    Http(HttpCommand),
    Sales(SalesCommand),
    Growth(GrowthCommand),
    Reload(ReloadCommand),
    Room(RoomCommand),
    Draw(DrawCommand),
    Seats(SeatsCommand),
    Trains(TrainsCommand),
    /// The draw that `bench draw` measures, in a process of its own.
    #[command(hide = true)]
    DrawProcess {
        /// Address of DynamoDB.
        url: String,
    },
    /// The engine that `bench http` measures, in a process of its own.
    #[command(hide = true)]
    HttpEngine,
}

/// Which server to measure.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Server {
    Valkey,
    Redis,
}

/// What each script costs the server, by the server's own count, beside a script that does nothing
/// and beside the usual way (one JSON value a seat).
#[derive(Debug, Args)]
#[command(after_help = "\
It starts a server of its own, fills theatres and a train through the real scripts, and measures
each script in each state. Build it with ONSALE_PROFILE=measure, and leave the machine alone.

Examples:
  onsale bench scripts
  onsale bench scripts --seats 2000 --fills 0,99 --rounds 3
  onsale bench scripts --grow
  onsale bench scripts --parts")]
pub struct ScriptsCommand {
    /// The server to measure.
    #[arg(long, value_enum, default_value = "valkey")]
    server: Server,
    /// Sizes of the theatres, in seats; with --grow the largest tier.
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    seats: Option<Vec<u32>>,
    /// How full they are, in per cent, ascending [default: 0,50,90,99; with --grow 0,90]
    #[arg(long, value_name = "N,N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(0..=99))]
    fills: Option<Vec<u32>>,
    /// Leave the train out.
    #[arg(long)]
    no_train: bool,
    /// How often everything is measured; the best and the median round are reported.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    rounds: usize,
    /// How many calls of each kind a round has at most.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    calls: usize,
    /// Seed of the crowd.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Compare the throughput over these numbers of connections; 0 leaves it out.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1,50")]
    connections: Vec<usize>,
    /// Requests under way on each connection.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    depth: usize,
    /// How a hold grows with seats, tiers and legs instead.
    #[arg(long)]
    grow: bool,
    /// What each part of a hold costs instead: the script is cut off after each of them.
    #[arg(long, conflicts_with_all = ["grow", "seats", "fills", "no_train"])]
    parts: bool,
}

/// What each endpoint takes at the gateway, beside a function that does nothing behind the same
/// gateway: requests a second, latencies, processor time.
#[derive(Debug, Args)]
#[command(after_help = "\
It starts an engine of its own in another process. Each round sends every endpoint a batch of
requests, each for a buyer or an order of its own, as fast as they are answered; the empty function
gets as many before each. Build it with ONSALE_PROFILE=measure, and leave the machine alone: then
look at the ratios, which mean the same on another machine.

Examples:
  onsale bench http
  onsale bench http --connections 1        latencies without a queue
  onsale bench http --json > http.json")]
pub struct HttpCommand {
    /// How many requests a batch has.
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = at_least_one)]
    requests: usize,
    /// How many batches each endpoint gets.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = at_least_one)]
    rounds: usize,
    /// How many requests are under way at a time.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = at_least_one)]
    connections: usize,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(error.to_string()),
    }
}

impl BenchCommand {
    /// Measures and prints the report.
    ///
    /// # Errors
    /// Fails if it cannot be measured.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        match self.bench {
            Bench::Scripts(command) => command.run(json).await,
            Bench::Http(command) => command.run(json).await,
            Bench::Sales(command) => command.run(json).await,
            Bench::Growth(command) => command.run(json).await,
            Bench::Reload(command) => command.run(json).await,
            Bench::Room(command) => command.run(json),
            Bench::Draw(command) => command.run(json).await,
            Bench::Seats(command) => command.run(json),
            Bench::Trains(command) => command.run(json).await,
            Bench::DrawProcess { url } => draw::serve(&url).await.map(|()| ExitCode::SUCCESS),
            Bench::HttpEngine => http::serve(data_dir).await.map(|()| ExitCode::SUCCESS),
        }
    }
}

impl ScriptsCommand {
    fn options(self) -> scripts::Options {
        let Self { connections, depth, grow, .. } = self;
        let (seats, fills): (&[u32], &[u32]) = match grow {
            true => (&[1_000_000], &[0, 90]),
            false => (&[2_000, 10_000, 50_000], &[0, 50, 90, 99]),
        };
        let mut fills = self.fills.unwrap_or_else(|| fills.into());
        fills.sort_unstable();
        scripts::Options {
            server: match self.server {
                Server::Valkey => Flavour::Valkey,
                Server::Redis => Flavour::Redis,
            },
            seats: self.seats.unwrap_or_else(|| seats.into()),
            train: !self.no_train,
            fills,
            rounds: self.rounds,
            calls: self.calls,
            seed: self.seed,
            throughput: connections
                .into_iter()
                .filter(|connections| *connections > 0)
                .map(|connections| scripts::Load { connections, depth })
                .collect(),
            subject: match (grow, self.parts) {
                (true, _) => scripts::Subject::Growth,
                (false, true) => scripts::Subject::Parts,
                (false, false) => scripts::Subject::Scripts,
            },
        }
    }

    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let report = scripts::run(&self.options()).await?;
        out(&if json { report.json() } else { report.tables() })
    }
}

impl HttpCommand {
    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { requests, rounds, connections } = self;
        let report = http::run(&http::Options { requests, rounds, connections }).await?;
        out(&if json { report.json() } else { report.table() })
    }
}

/// Whole sales a second: admission, order, payment and count, with every server and the crowd on
/// this machine, and where its processors' time goes.
#[derive(Debug, Args)]
#[command(after_help = "\
It starts an engine of its own with servers in memory. Build it with ONSALE_PROFILE=measure, and
leave the machine alone.

Examples:
  onsale bench sales
  onsale bench sales --orders 2000 --at-once 16")]
pub struct SalesCommand {
    /// How many orders, of two seats each.
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    orders: u64,
    /// How many buyers are on the site at once.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = at_least_one)]
    at_once: usize,
    /// How many sales they are spread over.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one)]
    sales: usize,
}

impl SalesCommand {
    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { orders, at_once, sales } = self;
        let report = sales::run(sales::Options { orders, at_once, sales }).await?;
        if json { out(&report.json()) } else { out(&report) }
    }
}

/// How the engine grows: 1,000 to a million seats in a sale, 1 to 100 sales at once, 1 to 64 legs.
#[derive(Debug, Args)]
#[command(after_help = "\
Each point has an engine of its own with servers in memory, and its cost is processor time. Build it
with ONSALE_PROFILE=measure.

Examples:
  onsale bench growth
  onsale bench growth --quick --json")]
pub struct GrowthCommand {
    /// Small points only, to see that it runs.
    #[arg(long)]
    quick: bool,
    /// Orders at each point.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    orders: Option<u64>,
}

impl GrowthCommand {
    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let options = if self.quick { growth::Options::quick() } else { growth::Options::whole() };
        let orders = self.orders.unwrap_or(options.orders);
        let report = growth::run(&growth::Options { orders, ..options }).await?;
        out(&if json { report.json() } else { report.tables() })
    }
}

/// How long nobody can buy after a total loss of Redis, by the size of the sale.
#[derive(Debug, Args)]
#[command(after_help = "\
Each size has an engine of its own with servers in memory, which sells a part of a hall: three orders
in four are paid. While eight buyers go on, Redis is emptied; the clock stops when an order is
acknowledged that was asked for after that. Then reconcile runs, and the audit must be clean. Build
it with ONSALE_PROFILE=measure to measure the engine, not its debug build.

Examples:
  onsale bench reload
  onsale bench reload --seats 60000 --rounds 5 --json")]
pub struct ReloadCommand {
    /// Sizes of the hall, in seats [default: 1000,20000,60000,120000,200000]
    #[arg(long, value_name = "N,N", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    seats: Option<Vec<u32>>,
    /// How much of it is taken before, in per cent.
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(0..=95))]
    fill: u32,
    /// How often Redis is lost at each size.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_one)]
    rounds: usize,
}

impl ReloadCommand {
    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let whole = reload::Options::whole();
        let options = reload::Options {
            seats: self.seats.unwrap_or(whole.seats),
            fill_percent: self.fill,
            rounds: self.rounds,
        };
        let report = reload::run(&options).await?;
        out(&if json { report.json() } else { report.table() })
    }
}

/// What the rules by which a waiting room serves do to a sale, simulated: compared with a fixed rate and with a
/// rule of one class.
#[derive(Debug, Args)]
#[command(after_help = "\
It needs no server, and its figures are the same on every machine. What people do is assumed; the report says
what.

Examples:
  onsale bench room
  onsale bench room --seats 500 --people-per-seat 100
  onsale bench room --seats 500 --publish published      then: onsale verify-draw published")]
pub struct RoomCommand {
    /// Seats of the sales.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "18000,150000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seats: Vec<u32>,
    /// People in the room for each seat.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    people_per_seat: u32,
    /// Seed of what people do.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// Write what a room publishes of the first of these sales, for onsale verify-draw to check.
    #[arg(long, value_name = "DIR")]
    publish: Option<PathBuf>,
}

impl RoomCommand {
    fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { seats, people_per_seat, seed, publish } = self;
        let options = room::Options { seats, people_per_seat, seed, publish };
        let report = room::run(&options)?;
        if json { out(&report.json()) } else { out(&report) }
    }
}

/// What the rule for the best seats leaves over, beside the left edge of the first row: how far from the middle the first
/// buyers sit, single seats at 90 and 99 %, seats that nobody buys.
#[derive(Debug, Args)]
#[command(after_help = "\
It needs no server, and its figures are the same on every machine.

Examples:
  onsale bench seats
  onsale bench seats --pictures pictures    an SVG of each house at 10, 50 and 90 %, by both rules")]
pub struct SeatsCommand {
    /// Seed of the first crowd.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
    /// How many crowds buy each house; means are printed.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    crowds: u64,
    /// Write a picture of each house into this folder, as the first crowd leaves it.
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
}

impl SeatsCommand {
    fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { seed, crowds, pictures } = self;
        let report = seats::run(&seats::Options { seed, crowds, pictures })?;
        if json { out(&report.json()) } else { out(&report) }
    }
}

/// What the draw of a large waiting room takes: seconds from closing to seed without the beacon's wait, and memory.
#[derive(Debug, Args)]
#[command(after_help = "\
The members are written into an emulated DynamoDB, and another process draws the room. Build it with
ONSALE_PROFILE=measure. With --kill-at a first draw is killed on the way, and the one that is measured
goes on; the root is compared with that of the members in either case.

Examples:
  onsale bench draw
  onsale bench draw --places 1000000 --kill-at 50")]
pub struct DrawCommand {
    /// Indices that were given; one in fifty is nobody's.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    places: u32,
    /// Share of the leaves' chunks after which a first draw is killed, in per cent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=99))]
    kill_at: Option<u32>,
}

impl DrawCommand {
    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let options = draw::Options { places: self.places, kill_at_percent: self.kill_at };
        let report = draw::run(&options).await?;
        if json { out(&report.json()) } else { out(&report) }
    }
}

/// What a search for trains takes among all of a day: processor time, and what it asks the stores for; the same
/// found by a scan.
#[derive(Debug, Args)]
#[command(after_help = "\
It starts servers of its own in memory, fills the index of one day, and puts the trains of the journey
on sale. Build it with ONSALE_PROFILE=measure to measure the engine, not its debug build.

Examples:
  onsale bench trains
  onsale bench trains --trains 500 --rounds 3 --json")]
pub struct TrainsCommand {
    /// Trains of the day.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    trains: u32,
    /// How many searches find everything too old.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
}

impl TrainsCommand {
    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { trains, rounds } = self;
        let report = trains::run(trains::Options { trains, rounds }).await?;
        if json { out(&report.json()) } else { out(&report) }
    }
}
