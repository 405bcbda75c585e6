//! `onsale sale`: sale files made, checked and published, and sales looked at.
//!
//! `import`, `check` and `schema` work on files alone; `put`, `status` and `list` ask a gateway.
//! Whatever was refused (an import with defects, a file that breaks rules, a request that the
//! gateway declined) makes the exit code 1; what could not be carried out, 2.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use comfy_table::{CellAlignment, Table, presets};
use engine::domain::ids::{SaleId, StopId};
use engine::domain::money::Currency;
use engine::domain::sale::{AttendeeRule, Defect, GateSettings, Sale, SaleFile};
use engine::domain::time::Timestamp;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use importers::gtfs::{self, Class, Day, Feed, Train};
use importers::pretix::{self, Point, Prices, RowOrder};
use importers::train12306::Tables;
use importers::{self, Import, Report, Terms, read_bounded, written};
use local::data_dir::{self, Secrets};
use local::endpoints::{Endpoints, EndpointsError};
use local::identity::{Identity, Refused, Role};

/// How long a token that is made for one request is good, in seconds.
const TOKEN_SECONDS: u32 = 60;
/// How long a gateway may take to answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Make, check, publish and look at sales.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale sale import train12306 FOLDER --train G35 --out g35.json
  onsale sale import gtfs FOLDER --trip 198 --date 2016-04-08 --class Second=5x30xAB_CD --out 198.json
  onsale sale check g35.json
  onsale sale put g35.json
  onsale sale status demo-train --from HBS --to NGT")]
pub struct SaleCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a sale file from a seating plan or a timetable.
    #[command(subcommand)]
    Import(Source),
    /// Check sale files, and say what they sell.
    Check {
        /// Sale files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the JSON schema of sale files.
    Schema,
    /// Publish a sale, or new terms of it.
    Put {
        /// The sale file.
        file: PathBuf,
        #[command(flatten)]
        at: At,
        /// An operator's token [default: one that the engine of the data directory accepts]
        #[arg(long, env = "ONSALE_TOKEN", hide_env_values = true)]
        token: Option<String>,
    },
    /// Show a sale and what is left of it.
    Status {
        /// The sale's id.
        sale: SaleId,
        #[command(flatten)]
        at: At,
        /// What is left from this stop (of a train).
        #[arg(long, requires = "to")]
        from: Option<StopId>,
        /// What is left to this stop.
        #[arg(long, requires = "from")]
        to: Option<StopId>,
    },
    /// List the sales.
    List {
        #[command(flatten)]
        at: At,
    },
}

#[derive(Debug, Subcommand)]
enum Source {
    /// A pretix seating plan (JSON); a category becomes a tier.
    Pretix {
        /// The plan.
        plan: PathBuf,
        /// The price of a category, in minor units; may be repeated.
        #[arg(long = "price", value_name = "CATEGORY=MINOR", value_parser = price)]
        prices: Vec<(String, i64)>,
        /// The price of every category without one of its own.
        #[arg(long, value_name = "MINOR")]
        price_minor: Option<i64>,
        /// Take the rows of a zone from front to back as they are listed, not by their height.
        #[arg(long)]
        rows_as_listed: bool,
        /// Where one sees best, in the units of the plan: zones and rows go by their distance from it.
        #[arg(
            long,
            value_name = "X,Y",
            conflicts_with = "rows_as_listed",
            allow_hyphen_values = true
        )]
        best_from: Option<Point>,
        #[command(flatten)]
        making: Making,
    },
    /// A trip of a GTFS timetable (a folder of tables) on one day; what it costs and what coaches it
    /// has where the timetable does not say.
    Gtfs {
        /// The folder.
        folder: PathBuf,
        /// The trip's id.
        #[arg(long, value_name = "ID")]
        trip: String,
        /// The day of service.
        #[arg(long, value_name = "YYYY-MM-DD")]
        date: Day,
        #[command(flatten)]
        rolling: Rolling,
        #[command(flatten)]
        making: Making,
    },
    /// A train from a folder of tables as the 12306 sample has them (CSV); a class becomes a tier.
    Train12306 {
        /// The folder.
        folder: PathBuf,
        /// The train's number, such as G35.
        #[arg(long)]
        train: String,
        #[command(flatten)]
        making: Making,
    },
}

/// What a timetable does not say about a train.
#[derive(Debug, Args)]
struct Rolling {
    /// A class: NAME=COACHESxROWSxLETTERS such as Second=6x18xABC_DF (_ is the aisle), or NAME=PLACES
    /// for places without a seat, and @PERCENT if it costs more or less than the fare; may be repeated.
    #[arg(long = "class", value_name = "CLASS", required = true)]
    classes: Vec<Class>,
    /// The price of every journey, in minor units [default: the fares of the feed]
    #[arg(long, value_name = "MINOR", conflicts_with = "per_km")]
    price_minor: Option<i64>,
    /// The price of a kilometre, in minor units, by the places of the stops.
    #[arg(long, value_name = "MINOR")]
    per_km: Option<i64>,
    /// What every journey costs before its kilometres.
    #[arg(long, value_name = "MINOR", requires = "per_km")]
    base_minor: Option<i64>,
}

impl Rolling {
    fn train(self) -> Train {
        let prices = match (self.price_minor, self.per_km) {
            (Some(minor), _) => gtfs::Prices::Flat(minor),
            (None, Some(per_km_minor)) => {
                gtfs::Prices::ByDistance { base_minor: self.base_minor.unwrap_or(0), per_km_minor }
            }
            (None, None) => gtfs::Prices::OfTheFeed,
        };
        Train { classes: self.classes, prices }
    }
}

/// How every import is made: terms, consent, and where the file goes.
#[derive(Debug, Args)]
struct Making {
    /// Accept a source with defects, each resolved as the report says.
    #[arg(long)]
    resolve: bool,
    /// Where to write the sale file; without it, it goes to standard output and the report to
    /// standard error.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The sale's id [default: made from the source's name]
    #[arg(long, value_name = "ID", help_heading = "Terms")]
    sale: Option<SaleId>,
    /// The sale's title [default: the source's name]
    #[arg(long, value_name = "TEXT", help_heading = "Terms")]
    title: Option<String>,
    /// The currency of the prices [default: that of the feed's fares, CNY for train12306, else EUR]
    #[arg(long, value_name = "CODE", help_heading = "Terms", value_parser = Currency::new)]
    currency: Option<Currency>,
    /// When selling begins, RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", help_heading = "Terms")]
    opens_at: Option<Timestamp>,
    /// When selling ends [default: when the train leaves, of GTFS; else 30 days after it begins]
    #[arg(long, value_name = "TIME", help_heading = "Terms")]
    closes_at: Option<Timestamp>,
    /// Most tickets of one buyer.
    #[arg(long, value_name = "N", help_heading = "Terms", default_value_t = 5)]
    limit_per_buyer: u16,
    /// How long a buyer has to pay.
    #[arg(long, value_name = "N", help_heading = "Terms", default_value_t = 600)]
    pay_window_seconds: u32,
    /// Require each ticket to name the person who will use it.
    #[arg(long, help_heading = "Terms")]
    require_attendees: bool,
    /// Over how many slots the gate is spread.
    #[arg(long, value_name = "N", help_heading = "Gate", default_value_t = GateSettings::default().shards)]
    gate_shards: u16,
    /// Tickets admitted for each 100 seat-legs that are left.
    #[arg(long, value_name = "N", help_heading = "Gate", default_value_t = GateSettings::default().budget_percent)]
    gate_budget_percent: u16,
    /// Most admissions a second.
    #[arg(long, value_name = "N", help_heading = "Gate", default_value_t = GateSettings::default().rate_per_second)]
    gate_rate_per_second: u32,
    /// How long a buyer waits between two admissions.
    #[arg(long, value_name = "N", help_heading = "Gate", default_value_t = GateSettings::default().user_lock_ms)]
    gate_user_lock_ms: u32,
    /// How long an admission is good for.
    #[arg(long, value_name = "N", help_heading = "Gate", default_value_t = GateSettings::default().token_seconds)]
    gate_token_seconds: u32,
}

#[derive(Debug, Args)]
struct At {
    /// The gateway to ask [default: that of the engine of the data directory]
    #[arg(long, env = "ONSALE_URL")]
    url: Option<String>,
}

impl At {
    /// The gateway that is named, or else that of the engine that runs on `data_dir`.
    fn gateway(self, data_dir: &Path) -> Result<Gateway, Error> {
        let url = match self.url {
            Some(url) => url,
            None => Endpoints::read(data_dir)?.gateway,
        };
        Ok(Gateway { url })
    }
}

/// A gateway to ask.
#[derive(Debug)]
struct Gateway {
    url: String,
}

/// A token by which the engine of a data directory knows its operator.
fn operator_token(data_dir: &Path) -> Result<String, Error> {
    let secrets = Secrets::read(data_dir)?;
    let identity = Identity::new(secrets.identity.as_bytes());
    Ok(identity.token("operator", Role::Operator, Timestamp::now(), TOKEN_SECONDS)?)
}

/// Why a command could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No engine runs on the data directory, and no gateway was named.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// The data directory has no secret to sign a token with, and no token was given.
    #[error(transparent)]
    DataDir(#[from] data_dir::Error),
    /// The token cannot be signed.
    #[error(transparent)]
    Token(#[from] Refused),
    /// A source or a sale file cannot be read.
    #[error(transparent)]
    Import(#[from] importers::Error),
    /// Output cannot be written.
    #[error("cannot write {to}: {source}")]
    Unwritable {
        /// Where to.
        to: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The gateway cannot be reached, or what it says cannot be read.
    #[error("{url} does not answer: {}", root_of(source))]
    Unreachable {
        /// What was asked.
        url: String,
        /// Why there is no answer.
        source: reqwest::Error,
    },
    /// The gateway declined.
    #[error("{}", declined(*status, problem))]
    Declined {
        /// The status of its reply.
        status: StatusCode,
        /// The reply: an RFC 9457 problem, if it comes from Onsale.
        problem: Value,
    },
    /// The gateway answered something that is no sale.
    #[error("{url} answered what is no sale: {why}")]
    Unexpected {
        /// What was asked.
        url: String,
        /// What is wrong with the answer.
        why: String,
    },
}

impl Error {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Declined { .. } | Self::Import(importers::Error::Rules { .. }) => {
                ExitCode::from(1)
            }
            Self::Endpoints(_)
            | Self::DataDir(_)
            | Self::Token(_)
            | Self::Import(_)
            | Self::Unwritable { .. }
            | Self::Unreachable { .. }
            | Self::Unexpected { .. } => ExitCode::from(2),
        }
    }
}

/// The innermost cause: "connection refused" rather than "error sending request".
fn root_of(error: &dyn std::error::Error) -> &dyn std::error::Error {
    error.source().map_or(error, root_of)
}

fn declined(status: StatusCode, problem: &Value) -> String {
    let text = |field: &str| problem.get(field).and_then(Value::as_str);
    match (text("title"), text("detail")) {
        (Some(title), Some(detail)) => format!("{} {title}: {detail}", status.as_u16()),
        (Some(only), None) | (None, Some(only)) => format!("{} {only}", status.as_u16()),
        (None, None) => format!("the gateway answered {status}: {problem}"),
    }
}

fn price(text: &str) -> Result<(String, i64), String> {
    // The name may contain a "=", the price cannot.
    let (name, minor) = text.rsplit_once('=').ok_or("give CATEGORY=MINOR")?;
    let minor = minor.trim().parse().map_err(|_| "the price must be whole minor units")?;
    Ok((name.trim().to_owned(), minor))
}

impl SaleCommand {
    /// Carries the command out; `json` asks for reports as JSON. Exit code 1 says that something
    /// was refused, 2 that the command could not be carried out.
    pub async fn run(self, data_dir: &Path, json: bool) -> ExitCode {
        self.carry_out(data_dir, json).await.unwrap_or_else(|error| {
            eprintln!("error: {error}");
            error.exit_code()
        })
    }

    /// # Errors
    /// See [`Error`]. What was checked and found wanting is no error but exit code 1.
    async fn carry_out(self, data_dir: &Path, json: bool) -> Result<ExitCode, Error> {
        match self.verb {
            Verb::Import(source) => import(source, json),
            Verb::Check { files } => check(&files, json),
            Verb::Schema => out(&schema()),
            Verb::Put { file, at, token } => {
                let token = token.map_or_else(|| operator_token(data_dir), Ok)?;
                put(&file, &at.gateway(data_dir)?, &token, json).await
            }
            Verb::Status { sale, at, from, to } => {
                let journey = from.as_ref().zip(to.as_ref());
                status(&sale, &at.gateway(data_dir)?, journey, json).await
            }
            Verb::List { at } => list(&at.gateway(data_dir)?, json).await,
        }
    }
}

/// The JSON schema of sale files, as `docs/sale-file.schema.json` has it.
#[must_use]
pub fn schema() -> String {
    let mut schema = schemars::schema_for!(SaleFile);
    schema.insert("title".to_owned(), "Onsale sale file".into());
    format!("{:#}\n", schema.as_value())
}

/// Writes to standard output; a reader that has gone away is an error, not a panic.
fn out(text: &str) -> Result<ExitCode, Error> {
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|source| Error::Unwritable { to: "standard output".to_owned(), source })?;
    Ok(ExitCode::SUCCESS)
}

fn import(source: Source, json: bool) -> Result<ExitCode, Error> {
    let (import, making) = match source {
        Source::Pretix { plan, prices, price_minor, rows_as_listed, best_from, making } => {
            let text = read_bounded(&plan)?;
            let prices = Prices { for_all: price_minor, by_category: prices.into_iter().collect() };
            let order = match best_from {
                Some(point) => RowOrder::NearestTo(point),
                None if rows_as_listed => RowOrder::AsListed,
                None => RowOrder::ByHeight,
            };
            let name = plan.display().to_string();
            (pretix::import(&name, &text, &making.terms(), &prices, order)?, making)
        }
        Source::Gtfs { folder, trip, date, rolling, making } => {
            let feed = Feed::read(&folder, Some(&trip))?;
            (feed.import(&trip, date, &rolling.train(), &making.terms())?, making)
        }
        Source::Train12306 { folder, train, making } => {
            (Tables::read(&folder)?.import(&train, &making.terms())?, making)
        }
    };
    finish_import(import, &making, json)
}

impl Making {
    fn terms(&self) -> Terms {
        // Whole seconds, because people will edit the file.
        let now = || Timestamp::from_ms(Timestamp::now().ms() / 1000 * 1000);
        let opening = Terms::opening(self.opens_at.unwrap_or_else(now));
        Terms {
            sale: self.sale.clone(),
            title: self.title.clone(),
            currency: self.currency,
            closes_at: self.closes_at,
            limit_per_buyer: self.limit_per_buyer,
            pay_window_seconds: self.pay_window_seconds,
            attendees: if self.require_attendees {
                AttendeeRule::Required
            } else {
                AttendeeRule::Optional
            },
            gate: GateSettings {
                shards: self.gate_shards,
                budget_percent: self.gate_budget_percent,
                rate_per_second: self.gate_rate_per_second,
                user_lock_ms: self.gate_user_lock_ms,
                token_seconds: self.gate_token_seconds,
            },
            ..opening
        }
    }
}

fn finish_import(import: Import, making: &Making, json: bool) -> Result<ExitCode, Error> {
    let in_words = |report: &Report| {
        if json { pretty(&json!(report)) } else { format!("{}\n", report.to_text()) }
    };
    match import.accept(making.resolve) {
        Err(report) => {
            out(&in_words(&report))?;
            Ok(ExitCode::FAILURE)
        }
        Ok((file, report)) => match &making.out {
            None => {
                eprint!("{}", in_words(&report));
                out(&written(&file))
            }
            Some(path) => {
                let unwritable =
                    |source| Error::Unwritable { to: path.display().to_string(), source };
                std::fs::write(path, written(&file)).map_err(unwritable)?;
                out(&in_words(&report))
            }
        },
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Reads a sale file; what is not JSON of this shape is reported like a broken rule.
fn read_sale(path: &Path) -> Result<Result<Sale, Vec<Defect>>, Error> {
    let bytes = read_bounded(path)?;
    Ok(match serde_json::from_slice::<SaleFile>(&bytes) {
        Ok(file) => Sale::new(file),
        Err(error) => Err(vec![Defect { at: "file".to_owned(), rule: error.to_string() }]),
    })
}

fn check(files: &[PathBuf], json: bool) -> Result<ExitCode, Error> {
    let mut all_good = true;
    let mut reports = Vec::new();
    for path in files {
        let name = path.display();
        match read_sale(path)? {
            Ok(sale) if json => {
                reports.push(json!({
                    "file": name.to_string(), "sale": sale.id(), "defects": [],
                    "tiers": sale.tiers().iter().map(tier_facts).collect::<Vec<_>>(),
                    "legs": sale.leg_count(), "seat_legs": sale.seat_legs(),
                }));
            }
            Ok(sale) => {
                out(&format!("{name}: {}\n{}\n", headline(&sale), tier_table(&sale, None)))?;
            }
            Err(defects) => {
                all_good = false;
                if json {
                    reports.push(refusal_facts(path, &defects));
                } else {
                    out(&refusal(path, &defects))?;
                }
            }
        }
    }
    if json {
        out(&pretty(&Value::Array(reports)))?;
    }
    Ok(if all_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn refusal(path: &Path, defects: &[Defect]) -> String {
    let lines: String = defects.iter().map(|defect| format!("  {defect}\n")).collect();
    let count = defects.len();
    let noun = if count == 1 { "defect" } else { "defects" };
    format!("{}: {count} {noun}\n{lines}", path.display())
}

/// The same as JSON.
fn refusal_facts(path: &Path, defects: &[Defect]) -> Value {
    json!({"file": path.display().to_string(), "defects": defects})
}

fn tier_facts(tier: &engine::domain::sale::Tier) -> Value {
    json!({
        "tier": tier.tier, "name": tier.name, "seats": tier.layout.sellable(),
        "general_admission": tier.layout.is_general_admission(),
    })
}

fn headline(sale: &Sale) -> String {
    let file = sale.file();
    let seats: u64 = sale.tiers().iter().map(|tier| u64::from(tier.layout.sellable())).sum();
    let legs = match sale.leg_count() {
        1 => String::new(),
        legs => format!(" on {legs} legs ({} seat-legs)", sale.seat_legs()),
    };
    format!("{} ({}): {seats} seats{legs} for sale", file.sale, file.title)
}

/// The tiers with their seats and prices, and what is left where that is known.
fn tier_table(sale: &Sale, available: Option<&HashMap<String, u64>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut header = vec!["  tier", "name", "seats", "price (minor units)"];
    if available.is_some() {
        header.push("available");
    }
    table.set_header(header);
    for tier in sale.tiers() {
        let prices: Vec<i64> = tier.fares().into_values().collect();
        let price = match (prices.iter().min(), prices.iter().max()) {
            (Some(least), Some(most)) => format!("{least} to {most}"),
            (None, _) | (_, None) => {
                tier.price_minor(sale.whole()).map_or_else(String::new, |price| price.to_string())
            }
        };
        let mut cells = vec![
            format!("  {}", tier.tier),
            tier.name.clone(),
            tier.layout.sellable().to_string(),
            format!("{price} {}", sale.file().currency),
        ];
        if let Some(available) = available {
            let left = available.get(tier.tier.as_str());
            cells.push(left.map_or_else(|| "not sold".to_owned(), |left| left.to_string()));
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// Asks the gateway; anything but success is an error that carries its problem.
async fn ask(
    gateway: &Gateway,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: Option<&SaleFile>,
) -> Result<Value, Error> {
    let url = format!("{}{path}", gateway.url.trim_end_matches('/'));
    let unreachable = |source| Error::Unreachable { url: url.clone(), source };
    let client = reqwest::Client::builder().timeout(DEADLINE).build().map_err(unreachable)?;
    let mut request = client.request(method, &url);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    if let Some(body) = body {
        request = request.json(body);
    }
    let reply = request.send().await.map_err(unreachable)?;
    let status = reply.status();
    let text = reply.text().await.map_err(unreachable)?;
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if status.is_success() { Ok(value) } else { Err(Error::Declined { status, problem: value }) }
}

async fn put(path: &Path, gateway: &Gateway, token: &str, json: bool) -> Result<ExitCode, Error> {
    let sale = match read_sale(path)? {
        Ok(sale) => sale,
        Err(defects) => {
            let facts = || pretty(&Value::Array(vec![refusal_facts(path, &defects)]));
            out(&if json { facts() } else { refusal(path, &defects) })?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let target = format!("/sales/{}", sale.id());
    let reply = ask(gateway, Method::PUT, &target, Some(token), Some(sale.file())).await?;
    if json { out(&pretty(&reply)) } else { out(&format!("published {}\n", headline(&sale))) }
}

async fn status(
    id: &SaleId,
    gateway: &Gateway,
    journey: Option<(&StopId, &StopId)>,
    json: bool,
) -> Result<ExitCode, Error> {
    let path = format!("/sales/{id}");
    let reply = ask(gateway, Method::GET, &path, None, None).await?;
    let unexpected = |why: String| Error::Unexpected { url: path.clone(), why };
    let file = reply.get("file").cloned().unwrap_or_default();
    let file: SaleFile =
        serde_json::from_value(file).map_err(|error| unexpected(error.to_string()))?;
    let sale = Sale::new(file).map_err(|defects| {
        unexpected(defects.first().map_or_else(String::new, Defect::to_string))
    })?;
    let ends = sale.file().stops.first().zip(sale.file().stops.last());
    let journey = journey.or(ends.map(|(first, last)| (&first.stop, &last.stop)));
    let query = journey.map_or_else(String::new, |(from, to)| {
        format!("?from={}&to={}", percent_encoded(from), percent_encoded(to))
    });
    let left =
        ask(gateway, Method::GET, &format!("{path}/availability{query}"), None, None).await?;
    if json {
        return out(&pretty(&json!({"sale": reply, "availability": left})));
    }
    let text = |value: &Value, field: &str| {
        value.get(field).and_then(Value::as_str).unwrap_or("unknown").to_owned()
    };
    let file = sale.file();
    let between = journey.map_or_else(String::new, |(from, to)| format!(", {from} to {to}"));
    // A tier that does not sell the journey is not part of the answer.
    let listed = left.get("tiers").and_then(Value::as_array);
    let available: HashMap<String, u64> = listed
        .into_iter()
        .flatten()
        .filter_map(|tier| Some((text(tier, "tier"), tier.get("available")?.as_u64()?)))
        .collect();
    out(&format!(
        "{}\n{}, on sale from {} to {}\navailable as of {}{between}:\n{}\n",
        headline(&sale),
        text(&reply, "state"),
        file.opens_at,
        file.closes_at,
        text(&left, "as_of"),
        tier_table(&sale, Some(&available))
    ))
}

/// A stop's id as a query carries it: everything but letters and digits of ASCII is escaped.
fn percent_encoded(stop: &StopId) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    stop.as_str().bytes().map(escape).collect()
}

async fn list(gateway: &Gateway, json: bool) -> Result<ExitCode, Error> {
    let reply = ask(gateway, Method::GET, "/sales", None, None).await?;
    if json {
        return out(&pretty(&reply));
    }
    let listed = reply.get("sales").unwrap_or(&reply).as_array().ok_or_else(|| {
        Error::Unexpected { url: "/sales".to_owned(), why: "there is no list".to_owned() }
    })?;
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let fields = ["sale", "title", "state", "opens_at", "closes_at"];
    table.set_header(fields);
    for sale in listed {
        let cell = |field: &&str| sale.get(*field).and_then(Value::as_str).unwrap_or_default();
        table.add_row(fields.iter().map(cell));
    }
    out(&format!("{table}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        command: SaleCommand,
    }

    fn parsed(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_published_schema_is_the_one_that_is_printed() {
        let published = include_str!("../../../docs/sale-file.schema.json");
        let published: Value = serde_json::from_str(published).unwrap();
        let printed: Value = serde_json::from_str(&schema()).unwrap();
        assert!(
            published == printed,
            "docs/sale-file.schema.json is out of date: write what `onsale sale schema` prints"
        );
    }

    #[test]
    fn flags_become_terms() {
        let line = parsed(
            "sale import pretix plan.json --price A=B=12 --price-minor 7 --sale s --currency twd --opens-at 2026-01-01T00:00:00+08:00 --limit-per-buyer 2 --gate-user-lock-ms 9 --require-attendees",
        );
        let Verb::Import(Source::Pretix { prices, price_minor, making, .. }) =
            line.unwrap().command.verb
        else {
            panic!("not an import of a plan")
        };
        assert_eq!((prices, price_minor), (vec![("A=B".to_owned(), 12)], Some(7)));
        let terms = making.terms();
        assert_eq!(terms.opens_at.to_string(), "2025-12-31T16:00:00.000Z");
        assert_eq!(terms.closes_at, None, "what the source says, or 30 days");
        assert_eq!((terms.limit_per_buyer, terms.gate.user_lock_ms), (2, 9));
        assert_eq!(terms.currency.unwrap().to_string(), "TWD");
        assert_eq!(terms.attendees, AttendeeRule::Required);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        for (line, reason) in [
            ("sale import pretix plan.json --price A", "CATEGORY=MINOR"),
            ("sale import pretix plan.json --price A=1.50", "whole minor units"),
            ("sale import pretix plan.json --sale Bad_Id", "sale id must be"),
            ("sale import pretix plan.json --best-from 5", "X,Y"),
            (
                "sale import pretix plan.json --best-from -5,0 --rows-as-listed",
                "cannot be used with",
            ),
            ("sale import train12306 folder", "--train"),
            ("sale import gtfs folder --trip t --date 2026-5-4 --class A=1", "YYYY-MM-DD"),
            ("sale import gtfs folder --trip t --date 2026-05-04", "--class"),
            (
                "sale import gtfs folder --trip t --date 2026-05-04 --class A=1x1xab",
                "capital letters",
            ),
            (
                "sale import gtfs folder --trip t --date 2026-05-04 --class A=1 --base-minor 5",
                "--per-km",
            ),
            (
                "sale import gtfs folder --trip t --date 2026-05-04 --class A=1 --per-km 5 --price-minor 5",
                "cannot be used with",
            ),
            ("sale status s --from A", "--to"),
            ("sale check", "FILES"),
        ] {
            let error = parsed(line).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    /// Answers one request with `reply` and hands over what was asked.
    async fn gateway(status: &str, reply: &str) -> (Gateway, tokio::task::JoinHandle<String>) {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let reply = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{reply}",
            reply.len()
        );
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = String::new();
            while !asked.ends_with("\r\n\r\n") && !asked.ends_with('}') {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).await.unwrap();
                asked.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
            asked
        });
        (Gateway { url }, asked)
    }

    #[tokio::test]
    async fn a_sale_is_put_as_the_operator() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sales/demo-train.json");
        let sale = read_sale(Path::new(path)).unwrap().unwrap();
        let mut file = sale.file().clone();
        file.tiers.truncate(1);
        let (gateway, asked) = gateway("200 OK", r#"{"version": 1}"#).await;
        let reply = ask(&gateway, Method::PUT, "/sales/demo-train", Some("t0k"), Some(&file)).await;
        assert_eq!(reply.unwrap(), json!({"version": 1}));
        let asked = asked.await.unwrap();
        assert!(asked.starts_with("PUT /sales/demo-train HTTP/1.1\r\n"), "{asked}");
        assert!(asked.contains("authorization: Bearer t0k\r\n"), "{asked}");
        let (_, body) = asked.split_once("\r\n\r\n").unwrap();
        assert_eq!(serde_json::from_str::<SaleFile>(body).unwrap(), file);
    }

    #[tokio::test]
    async fn what_the_gateway_declines_is_an_error() {
        let problem = r#"{"title": "Not found", "detail": "There is no sale s."}"#;
        let (gateway, asked) = gateway("404 Not Found", problem).await;
        let error = list(&gateway, false).await.unwrap_err();
        assert_eq!(error.to_string(), "404 Not found: There is no sale s.");
        assert!(asked.await.unwrap().starts_with("GET /sales HTTP/1.1"));
        let nobody = Gateway { url: "http://127.0.0.1:1".to_owned() };
        let error = list(&nobody, false).await.unwrap_err().to_string();
        assert!(error.starts_with("http://127.0.0.1:1/sales does not answer"), "{error}");
    }

    #[test]
    fn a_problem_is_told_in_its_own_words() {
        let problem = json!({"type": "t", "title": "Not found", "detail": "There is no sale s."});
        let error = Error::Declined { status: StatusCode::NOT_FOUND, problem };
        assert_eq!(error.to_string(), "404 Not found: There is no sale s.");
        let error = Error::Declined { status: StatusCode::BAD_GATEWAY, problem: json!("<html>") };
        assert_eq!(error.to_string(), "the gateway answered 502 Bad Gateway: \"<html>\"");
    }

    #[test]
    fn a_stop_is_escaped_in_a_query() {
        assert_eq!(percent_encoded(&StopId::new("a 北&").unwrap()), "a%20%E5%8C%97%26");
    }
}
