//! `onsale capacity`: what a sale will take, before it opens.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::cost::Prices;
use capacity::{Check, Crowd, Deployment, Plan, check, curves, forecast, of_curves, of_forecast};
use clap::Args;
use clap::builder::PossibleValuesParser;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::grace::Grace;
use engine::domain::sale::{RoomSettings, Sale, SaleFile};
use loadtest::arrivals::Shape;
use loadtest::page;
use loadtest::published::{PUBLISHED, Published};
use serde_json::json;

use super::{DECLINED, Failure, out, sale};

/// The time to pay of the sale that is simulated unless a file is given, in seconds.
const PAY_WINDOW_SECONDS: u32 = 600;

/// What a sale will take: how long it sells, what people see, what throttles first, which quotas to raise, the bill.
#[derive(Debug, Args)]
#[command(after_help = "\
A simulation of the deployed engine on the limits of docs/limits.md; nothing is started, but for --check.
docs/capacity.md says what is modelled and what is assumed.

Examples:
  onsale capacity                                        60,000 seats, a million people, a new account
  onsale capacity --sale-file autumn.json --visitors 10000000 --deployment ours.json
  onsale capacity --curves --html capacity.html
  onsale capacity --check                                beside real runs on this machine")]
pub struct CapacityCommand {
    /// How many people come, over all sales.
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    visitors: u64,
    /// How many seats the sale has, if no file says.
    #[arg(long, value_name = "N", default_value_t = 60_000, conflicts_with = "sale_file",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    seats: u32,
    /// The sale to simulate: a sale file.
    #[arg(long, value_name = "FILE")]
    sale_file: Option<PathBuf>,
    /// The people, the tickets and the time of an on-sale of which figures were published (`onsale replay`); what was
    /// published of it stands before the report.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["sale_file", "seats", "visitors", "within", "curves"],
          value_parser = PossibleValuesParser::new(PUBLISHED.map(|published| published.name)))]
    published: Option<String>,
    /// How many sales like it open at the same moment, and share the account and the people.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sales: u32,
    /// Without a waiting room, if no file says.
    #[arg(long, conflicts_with = "sale_file")]
    no_room: bool,
    /// Places that the room serves a second at most, if no file says.
    #[arg(long, value_name = "N", default_value_t = RoomSettings::default().max_per_second,
          conflicts_with_all = ["sale_file", "no_room"], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    places_per_second: u32,
    /// Time within which those come who come at the opening or afterwards, in seconds.
    #[arg(long, value_name = "SECONDS")]
    within: Option<f64>,
    /// How they are spread over that time.
    #[arg(long, value_enum, value_name = "SHAPE", default_value = "opening")]
    shape: Shape,
    /// The crowd, as JSON: what it leaves out is as docs/capacity.md says.
    #[arg(long, value_name = "FILE")]
    crowd: Option<PathBuf>,
    /// What the engine is deployed on, as JSON: quotas and settings; what it leaves out is a new account's.
    #[arg(long, value_name = "FILE")]
    deployment: Option<PathBuf>,
    /// Prices in place of the built-in ones, in the form of lab/bench/src/cost/prices.json.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// The longest that is simulated after the opening, in hours [default: 24, with --curves 6].
    #[arg(long, value_name = "HOURS")]
    hours: Option<f64>,
    /// Curves for 100 thousand to 100 million people, and for 1 to 1,000 sales at once.
    #[arg(long)]
    curves: bool,
    /// Run small sales on this machine with the limits on, and hold the simulation against them.
    #[arg(long, conflicts_with_all = ["curves", "html"])]
    check: bool,
    /// Write the report as a page with plots, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Seed of the crowd.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

impl CapacityCommand {
    /// Simulates, and prints the report.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or a real run cannot be made.
    pub async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        if self.check {
            let checks = check(self.seed).await?;
            let tables = || checks.iter().map(Check::table).collect::<Vec<_>>().join("\n\n");
            out(&if json { reporting::json(&checks) } else { tables() })?;
            let is_near = checks.iter().all(Check::is_near);
            return Ok(if is_near { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) });
        }
        let prices = self.prices.as_deref().map_or_else(Prices::published, Prices::read)?;
        let deployment = self.deployment.as_deref().map(Deployment::read).transpose()?;
        let (plan, deployment) = (self.plan()?, deployment.unwrap_or_default());
        if self.curves {
            let curves = curves(&plan, &deployment, &prices, |point| {
                eprintln!("{}", point.line());
            })?;
            if let Some(file) = &self.html {
                page::write(file, &of_curves(&curves)?)?;
            }
            return out(&if json { reporting::json(&curves) } else { curves.tables() });
        }
        let forecast = forecast(&plan, &deployment, &prices)?;
        if let Some(Published { sale, words, .. }) = self.published().filter(|_| !json) {
            out(&format!("{sale}: {words}\n"))?;
        }
        if let Some(file) = &self.html {
            page::write(file, &of_forecast(&forecast)?)?;
        }
        out(&if json { forecast.json() } else { forecast.tables() })
    }

    fn published(&self) -> Option<&'static Published> {
        self.published.as_deref().and_then(Published::named)
    }

    fn plan(&self) -> Result<Plan, Failure> {
        let crowd = match &self.crowd {
            Some(file) => Crowd::read(file)?,
            None => Crowd::default(),
        };
        let within_seconds = self.within.unwrap_or(crowd.within_seconds);
        let (visitors, within_seconds, shape) = match self.published() {
            Some(one) => (one.people, one.arrival_seconds(1.0), one.shape),
            None => (self.visitors, within_seconds, self.shape),
        };
        let crowd = Crowd { visitors, within_seconds, ..crowd };
        crowd.check()?;
        let hours = self.hours.unwrap_or(if self.curves { 6.0 } else { 24.0 });
        if !(0.1..=24.0 * 30.0).contains(&hours) {
            return Err("--hours must be 0.1 to 720".into());
        }
        Ok(Plan {
            sale: self.sale()?,
            sales: self.sales,
            crowd,
            shape,
            grace: Grace::DEFAULT,
            hours,
            seed: self.seed,
        })
    }

    fn sale(&self) -> Result<Sale, Failure> {
        if let Some(path) = &self.sale_file {
            return sale::files::read_good(path);
        }
        let seats = self.published().map_or(self.seats, |published| published.tickets);
        let room =
            RoomSettings { max_per_second: self.places_per_second, ..RoomSettings::default() };
        // Places without numbers: which seat it is decides nothing here.
        let file: SaleFile = serde_json::from_value(json!({
            "sale": "hall", "title": "Hall", "currency": "USD",
            "opens_at": Timestamp::now(), "closes_at": Timestamp::now().plus_seconds(30 * 86_400),
            "limit_per_buyer": 4, "pay_window_seconds": PAY_WINDOW_SECONDS,
            "tiers": [{ "tier": "all", "name": "All", "price_minor": 5_000, "general_admission": seats }],
        }))?;
        let file = SaleFile { room: (!self.no_room).then_some(room), ..file };
        Sale::new(file).map_err(|defects| format!("{defects:?}").into())
    }
}
