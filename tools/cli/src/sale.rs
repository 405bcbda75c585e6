//! `onsale sale`: sale files made, checked and published, and sales looked at.
//!
//! `import`, `check` and `schema` work on files alone; `put`, `status` and `list` ask a gateway;
//! `archive`, `tokens` and `codes` work on the stores.
//! Whatever was refused (an import with defects, a file that breaks rules, a request that the
//! gateway declined) makes the exit code 1; what could not be carried out, 2.

mod cancel;
mod codes;
pub(crate) mod files;
mod published;
mod tokens;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::basics::ids::{SaleId, StopId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::prices::AccountBounds;
use engine::domain::sale::{AttendeeRule, GateSettings};
use serde_json::{Value, json};

use fake_identity::{Identity, Refused, Role};
use importers::gtfs::{self, Class, Day, Feed, Train};
use importers::pretix::{self, Event, Point, Prices, RowOrder, Uncategorised};
use importers::stadium;
use importers::train12306::Tables;
use importers::{self, Import, Report, Terms, read_bounded, written};
use local::data_dir::{self, Secrets};
use local::endpoints::{Endpoints, EndpointsError};
use ops::gateway::{self, Gateway};

use super::engine::EngineArgs;
use super::{DECLINED, FAILED, Failure};
use cancel::CancelSale;
use codes::CodesVerb;
use tokens::TokensVerb;

/// How long a token for one request is valid, in seconds.
const TOKEN_SECONDS: u32 = 60;

/// Make, check, publish and look at sales.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale sale import train12306 FOLDER --train G35 --out g35.json
  onsale sale import gtfs FOLDER --trip 198 --date 2016-04-08 --class Second=5x30xAB_CD --out 198.json
  onsale sale import stadium --seats 60000 --out stadium.json
  onsale sale check g35.json
  onsale sale put g35.json
  onsale sale status demo-train --from HBS --to NGT
  onsale sale tokens add demo-train 500
  onsale sale codes add demo-club fans --count 200
  onsale sale archive demo-train")]
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
        /// The smallest amount that your account at Stripe charges, in minor units of the sale's currency [default: that of
        /// an account which is paid out in this currency]
        #[arg(long, value_name = "MINOR")]
        smallest: Option<MinorUnits>,
        /// The largest such amount [default: what most cards take]
        #[arg(long, value_name = "MINOR")]
        largest: Option<MinorUnits>,
    },
    /// Print the JSON schema of sale files.
    Schema,
    /// Publish a sale, or new terms of it.
    Put {
        /// The sale file.
        file: PathBuf,
        /// The folder of the pictures that the file names [default: `pictures` beside the file]
        #[arg(long, value_name = "DIR")]
        images: Option<PathBuf>,
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
    /// List the sales that are not archived.
    List {
        #[command(flatten)]
        at: At,
    },
    /// The tokens of a sale's gate.
    #[command(subcommand)]
    Tokens(TokensVerb),
    /// The codes by which groups of a waiting room are joined.
    #[command(subcommand)]
    Codes(CodesVerb),
    /// Cancel a sale that does not take place: it sells nothing any more, its pending orders end, its paid
    /// orders are refunded whole.
    ///
    /// That is not taken back. Each order is decided in one transaction, and what is still claimed is what is
    /// left to do: a run that was cut off is finished by another, and several at once do nothing twice. The
    /// provider is asked for the money by the consumer of the refund queue; refunds are made no faster than it
    /// may ask. The command ends when a walk over all claims, a minute after the sale was stopped, has found
    /// nothing.
    ///
    /// Exit code 1: there is no such sale, it may not be cancelled, or orders were left that cannot be refunded.
    #[command(after_help = "\
Examples:
  onsale sale cancel demo-train --yes
  onsale sale cancel demo-train --yes --per-second 100 --from-environment")]
    Cancel(CancelSale),
    /// Archive a sale that is over and decided: it leaves Redis, the list, the sweep and the repair for
    /// good. Its orders are still shown, and money that comes late for them is decided.
    Archive {
        /// The sale's id.
        sale: SaleId,
        #[command(flatten)]
        engine: EngineArgs,
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
        prices: Vec<(String, MinorUnits)>,
        /// The price of every category without one of its own.
        #[arg(long, value_name = "MINOR")]
        price_minor: Option<MinorUnits>,
        /// The tier of the seats without a category, and its price in minor units.
        #[arg(long, value_name = "NAME=MINOR", value_parser = tier_price)]
        uncategorised_tier: Option<Uncategorised>,
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
        /// The event that is sold, as pretix's API answers it; of a date of a series the series first, then the date.
        #[arg(long = "event", value_name = "EVENT.json")]
        events: Vec<PathBuf>,
        #[command(flatten)]
        making: Box<Making>,
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
    /// A stadium that is made up: rings of blocks around a pitch, with the map of its seats.
    Stadium {
        /// How many seats it has.
        #[arg(long, value_name = "N")]
        seats: u32,
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
    price_minor: Option<MinorUnits>,
    /// The price of a kilometre, in minor units, by the places of the stops.
    #[arg(long, value_name = "MINOR")]
    per_km: Option<MinorUnits>,
    /// What every journey costs before its kilometres.
    #[arg(long, value_name = "MINOR", requires = "per_km")]
    base_minor: Option<MinorUnits>,
}

impl Rolling {
    fn train(self) -> Train {
        let prices = match (self.price_minor, self.per_km) {
            (Some(minor), _) => gtfs::Prices::Flat(minor),
            (None, Some(per_km_minor)) => {
                let base_minor = self.base_minor.unwrap_or_default();
                gtfs::Prices::ByDistance { base_minor, per_km_minor }
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
    /// Write each defect and its remedy to this file; the report then says where they are. With
    /// --json the file is JSON, and the report keeps them.
    #[arg(long, value_name = "FILE")]
    details: Option<PathBuf>,
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
    /// Tickets admitted at a time for each 100 that are left.
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
        Ok(Gateway::new(&url))
    }
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
        /// The file, or standard output.
        to: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The gateway gave no answer that can be used.
    #[error(transparent)]
    Gateway(#[from] gateway::Error),
    /// The engine cannot be reached.
    #[error("{0}")]
    Engine(Failure),
}

impl Error {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Gateway(gateway::Error::Declined { .. })
            | Self::Import(importers::Error::Rules { .. }) => ExitCode::from(DECLINED),
            Self::Endpoints(_)
            | Self::DataDir(_)
            | Self::Token(_)
            | Self::Import(_)
            | Self::Unwritable { .. }
            | Self::Gateway(_)
            | Self::Engine(_) => ExitCode::from(FAILED),
        }
    }
}

fn tier_price(text: &str) -> Result<Uncategorised, String> {
    let (name, price_minor) =
        price(text).map_err(|why| why.replace("CATEGORY=MINOR", "NAME=MINOR"))?;
    Ok(Uncategorised { name, price_minor })
}

fn price(text: &str) -> Result<(String, MinorUnits), String> {
    // The name may contain a "=", the price cannot.
    let (name, minor) = text.rsplit_once('=').ok_or("give CATEGORY=MINOR")?;
    let minor = minor.trim().parse().map_err(|_| "the price must be whole minor units")?;
    Ok((name.trim().to_owned(), minor))
}

impl SaleCommand {
    /// Carries the command out; `json` asks for reports as JSON. Exit code 1 says that something
    /// was refused, 2 that the command could not be carried out.
    pub async fn run(self, data_dir: &Path, json: bool) -> ExitCode {
        self.dispatch(data_dir, json).await.unwrap_or_else(|error| {
            eprintln!("error: {error}");
            error.exit_code()
        })
    }

    /// # Errors
    /// See [`Error`]. What was checked and found wanting is no error but exit code 1.
    async fn dispatch(self, data_dir: &Path, json: bool) -> Result<ExitCode, Error> {
        match self.verb {
            Verb::Import(source) => import(source, json),
            Verb::Check { files, smallest, largest } => {
                files::check(&files, AccountBounds { smallest, largest }, json)
            }
            Verb::Schema => out(&files::schema()),
            Verb::Put { file, images, at, token } => {
                let token = token.map_or_else(|| operator_token(data_dir), Ok)?;
                published::put(&file, images.as_deref(), &at.gateway(data_dir)?, &token, json).await
            }
            Verb::Status { sale, at, from, to } => {
                let journey = from.as_ref().zip(to.as_ref());
                published::status(&sale, &at.gateway(data_dir)?, journey, json).await
            }
            Verb::List { at } => published::list(&at.gateway(data_dir)?, json).await,
            Verb::Tokens(verb) => verb.run(data_dir, json).await,
            Verb::Codes(verb) => verb.run(data_dir, json).await,
            Verb::Cancel(cancel) => cancel.run(data_dir, json).await,
            Verb::Archive { sale, engine } => {
                published::archive(&sale, &engine, data_dir, json).await
            }
        }
    }
}

/// Writes to standard output; a reader that has gone away is an error, not a panic.
fn out(text: &str) -> Result<ExitCode, Error> {
    let written = std::io::stdout().write_all(text.as_bytes());
    written.map_err(|source| Error::Unwritable { to: "standard output".to_owned(), source })?;
    Ok(ExitCode::SUCCESS)
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn import(source: Source, json: bool) -> Result<ExitCode, Error> {
    let (import, making) = match source {
        Source::Pretix {
            plan,
            prices,
            price_minor,
            uncategorised_tier: uncategorised,
            rows_as_listed,
            best_from,
            events,
            making,
        } => {
            let text = read_bounded(&plan)?;
            let by_category = prices.into_iter().collect();
            let prices = Prices { for_all: price_minor, by_category, uncategorised };
            let order = match best_from {
                Some(point) => RowOrder::NearestTo(point),
                None if rows_as_listed => RowOrder::AsListed,
                None => RowOrder::ByHeight,
            };
            let read = |path: &PathBuf| Ok((path.display().to_string(), read_bounded(path)?));
            let events = events.iter().map(read).collect::<Result<Vec<_>, Error>>()?;
            let event = Event::read(&events)?;
            let name = plan.display().to_string();
            let import =
                pretix::import(&name, &text, &making.terms(), &prices, order, Some(&event))?;
            (import, *making)
        }
        Source::Gtfs { folder, trip, date, rolling, making } => {
            let feed = Feed::read(&folder, Some(&trip))?;
            (feed.import(&trip, date, &rolling.train(), &making.terms())?, making)
        }
        Source::Stadium { seats, making } => (stadium::stadium(seats, &making.terms())?, making),
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
    let details = making.details.as_deref();
    match import.accept(making.resolve) {
        Err(report) => {
            out(&printed(&report, details, json)?)?;
            Ok(ExitCode::FAILURE)
        }
        Ok((file, report)) => {
            let report = printed(&report, details, json)?;
            match &making.out {
                None => {
                    eprint!("{report}");
                    out(&written(&file))
                }
                Some(path) => {
                    write_file(path, &written(&file))?;
                    out(&report)
                }
            }
        }
    }
}

/// The report as it is printed; its details are written to a file if one is named.
fn printed(report: &Report, details: Option<&Path>, json: bool) -> Result<String, Error> {
    if json {
        details.map_or(Ok(()), |path| write_file(path, &pretty(&json!(report.findings))))?;
        return Ok(pretty(&json!(report)));
    }
    let Some(path) = details else { return Ok(format!("{}\n", report.to_text())) };
    write_file(path, &report.details())?;
    Ok(format!("{}\n", report.to_text_without_details(&path.display().to_string())))
}

fn write_file(path: &Path, text: &str) -> Result<(), Error> {
    let unwritable = |source| Error::Unwritable { to: path.display().to_string(), source };
    std::fs::write(path, text).map_err(unwritable)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        command: SaleCommand,
    }

    fn parsed(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(line.split(' '))
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
        assert_eq!(
            (prices, price_minor),
            (vec![("A=B".to_owned(), MinorUnits(12))], Some(MinorUnits(7)))
        );
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
            ("sale import pretix plan.json --uncategorised-tier Hall", "NAME=MINOR"),
            ("sale import pretix plan.json --uncategorised-tier Hall=1.50", "whole minor units"),
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
}
