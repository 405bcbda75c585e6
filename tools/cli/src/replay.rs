//! `onsale replay`: a published on-sale once more, on this machine.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::crowd::{CrowdArgs, Otherwise};
use super::limits::LimitsArgs;
use super::pages::BuiltPagesArgs;
use super::{DECLINED, Failure, out};
use loadtest::Shares;
use loadtest::page;
use loadtest::people::plan::Crowd;
use loadtest::published::{PUBLISHED, Published};
use loadtest::replay::admission::{Admission, AdmissionOptions};
use loadtest::replay::{self, Outcome, Seen, Spectators, comparison};

/// Replay an on-sale of which figures were published, and prove by audit that nothing went wrong.
#[derive(Debug, Args)]
#[command(after_help = "\
It starts an engine of its own on free ports, with servers in memory, and leaves nothing behind.
--scale 0.01 brings a hundredth of the people for a hundredth of the tickets, as fast as the real ones.

With --pages (scripts/onsale sets it) the pages show it while it runs; with --json the address is told in a line of
JSON on standard error, when the sale can be seen and when it is audited.

With --admission room or challenges the sale has a waiting room; all replays it with the gate alone, with a
room, and with a room that asks for the answer to a challenge, and prints what became of each side by side.

Example:
  onsale replay tixcraft-2024 --scale 0.01 --html replay.html
  onsale replay tixcraft-2024 --scale 0.1 --people mixed --admission all
  onsale replay tixcraft-2024 --scale 0.01 --mix paying --pay-at stripe=1 --payments-per-second 12

Exit code 1 if a seat was left, an invariant is broken, or the crowd met what must never happen.")]
pub struct ReplayCommand {
    /// Which: tixcraft-2024, tixcraft-2024-release, coldplay-2024, glastonbury-2014, comic-con-2010.
    #[arg(value_name = "NAME", default_value = "tixcraft-2024", value_parser = published)]
    published: &'static Published,
    /// Which part of it: people and tickets alike, and the time in which they come.
    #[arg(long, value_name = "PART", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// How many admissions a second the gate gives: about what the engine can sell on this machine.
    #[arg(long, value_name = "N", default_value_t = 600,
          value_parser = clap::value_parser!(u32).range(1..))]
    gate_rate: u32,
    /// Open loop: which classes come: people at and after the opening, or people of all kinds and as many bots.
    #[arg(long, value_name = "CROWD", value_enum, default_value_t, conflicts_with = "at_once")]
    people: Crowd,
    /// How people are let in.
    #[arg(long, value_name = "HOW", value_enum, default_value_t, conflicts_with = "at_once")]
    admission: How,
    /// How many places a waiting room serves a second at most [default: a 300th of the tickets, at most 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    places_per_second: Option<u32>,
    #[command(flatten)]
    crowd: CrowdArgs,
    /// Shares of the buyers who start a payment and pay on the page of each provider, as in stripe=1: then
    /// --payments-per-second bounds the sale [default: nobody opens a page, and the provider calls back]
    #[arg(long, value_name = "SHARES")]
    pay_at: Option<Shares>,
    #[command(flatten)]
    limits: LimitsArgs,
    /// After the audit, keep the engine running for whoever looks on, until standard input ends.
    #[arg(long)]
    stay: bool,
    #[command(flatten)]
    built: BuiltPagesArgs,
    /// Write the report as a page with plots, too; not of all ways of letting people in.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// How people are let in: one way, or each after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum How {
    /// By the gate alone.
    #[default]
    Gate,
    /// By a waiting room.
    Room,
    /// By a waiting room that asks for the answer to a challenge on joining.
    Challenges,
    /// Each of them, one after the other.
    All,
}

impl How {
    /// The one way; `None` for all.
    fn one(self) -> Option<Admission> {
        match self {
            Self::Gate => Some(Admission::Gate),
            Self::Room => Some(Admission::Room),
            Self::Challenges => Some(Admission::Challenges),
            Self::All => None,
        }
    }
}

impl ReplayCommand {
    /// Runs it.
    ///
    /// # Errors
    /// Fails if it cannot be carried out.
    pub async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let options = self.options(json);
        let Some(_) = self.admission.one() else { return compare(&options, json).await };
        let outcome = replay::run(&options).await?;
        if let Some(file) = &self.html {
            page::write(file, &page::of_replay(&outcome)?)?;
        }
        if json {
            out(&serde_json::to_string_pretty(&outcome)?)?;
        } else {
            out(&text(&outcome))?;
        }
        Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }

    fn options(&self, json: bool) -> replay::Options {
        let published = self.published;
        let otherwise = Otherwise {
            arrivals: published.arrivals(self.scale),
            open: Some((published.arrival_seconds(self.scale), published.shape)),
            // Places that nobody uses are waited for, and what is left over is served one by one.
            most_seconds: match self.admission {
                How::Gate => published.most_seconds(),
                How::Room | How::Challenges | How::All => 6 * published.most_seconds(),
            },
        };
        replay::Options {
            published,
            scale: self.scale,
            load: self.crowd.load(otherwise),
            profile: self.crowd.profile(),
            pages: self.pay_at,
            seed: self.crowd.seed(),
            most: self.crowd.most(otherwise),
            rate_per_second: self.gate_rate,
            progress: !json,
            limits: self.limits.limits(),
            spectators: Spectators {
                pages: self.built.directory(),
                on_change: Some(if json { announce_json } else { announce }),
                stay: self.stay,
            },
            admission: AdmissionOptions {
                crowd: self.people,
                admission: self.admission.one().unwrap_or_default(),
                places_per_second: self.places_per_second,
            },
        }
    }
}

/// Replays it with each way of letting people in.
async fn compare(options: &replay::Options, json: bool) -> Result<ExitCode, Failure> {
    let comparison = comparison::compare(options).await?;
    if json {
        out(&serde_json::to_string_pretty(&comparison)?)?;
    } else {
        out(&comparison.table().to_string())?;
    }
    Ok(if comparison.is_good() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
}

/// Says where it is to be seen. Whoever started us may not listen; the replay goes on all the same.
fn announce(seen: &Seen) {
    let Seen { url, sale, data_dir: _, audited } = seen;
    let state = if *audited { "as it ended" } else { "while it runs" };
    let _unheard = writeln!(std::io::stderr(), "{url}/s/{sale} shows it {state}");
}

/// The same for a program.
fn announce_json(seen: &Seen) {
    if let Ok(line) = serde_json::to_string(seen) {
        let _unheard = writeln!(std::io::stderr(), "{line}");
    }
}

fn text(outcome: &Outcome) -> String {
    let figures = comparison::table(&[(outcome.admission.admission, outcome)]);
    let tables = outcome.load_test.tables();
    format!("{tables}\n\n{figures}\n\n{}\n{}", outcome.audit, outcome.summary())
}

fn published(name: &str) -> Result<&'static Published, String> {
    Published::named(name).ok_or_else(|| {
        let names: Vec<&str> = PUBLISHED.iter().map(|published| published.name).collect();
        format!("known are {}", names.join(", "))
    })
}

fn scale(text: &str) -> Result<f64, String> {
    let scale: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let good = scale > 0.0 && scale <= 1.0;
    if good { Ok(scale) } else { Err("more than 0 and at most 1 is needed".to_owned()) }
}
