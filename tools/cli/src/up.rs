//! `onsale up`: the engine until it is stopped.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use shared::redis::Topology;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::limits::LimitsArgs;
use super::pages::BuiltPagesArgs;
use super::{Failure, on_heap};
use local::data_dir;
use local::payment::{MAX_SEARCH_LAG_SECONDS, SEARCH_LAG_SECONDS};
use local::queues::Redelivery;
use local::servers::External;
use local::up::{Engine, Options, PORT, PREFIX, RECONCILE_SECONDS};

/// Run the whole engine in this process, with the servers it needs.
///
/// The HTTP API, the queues' consumers and the schedule run here; Redis or Valkey is started as a
/// child. State lives in the data directory: it is there again after a crash or kill -9.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale up                      on http://127.0.0.1:8080, state in .onsale/data
  onsale up --ephemeral          state in memory, gone when it ends
  onsale up --port 0 --json      on a free port; prints where everything is as JSON
  onsale up --dynamodb-url http://127.0.0.1:4566 --sqs-url http://127.0.0.1:4566
                                 on an emulator of AWS that runs already
  onsale up --redis-url redis://127.0.0.1:7001,redis://127.0.0.1:7002 --redis-cluster
                                 on a Redis or Valkey cluster that runs already")]
pub struct UpCommand {
    /// Keep the state in memory only. Secrets and endpoints are in the data directory all the same.
    #[arg(long)]
    ephemeral: bool,
    /// The port of the API on 127.0.0.1; 0 for a free one.
    #[arg(long, env = "ONSALE_PORT", default_value_t = PORT)]
    port: u16,
    /// How often reconcile runs, in seconds.
    #[arg(long, value_name = "N", default_value_t = RECONCILE_SECONDS,
          value_parser = clap::value_parser!(u32).range(1..))]
    reconcile_seconds: u32,
    /// A Redis or Valkey to use instead of the engine's own; of a cluster some of its nodes,
    /// separated by commas. What is in it stays there when the engine ends.
    #[arg(long, value_name = "URL", value_parser = redis_url, value_delimiter = ',')]
    redis_url: Vec<String>,
    /// The Redis is a cluster.
    #[arg(long, requires = "redis_url")]
    redis_cluster: bool,
    /// A DynamoDB to use instead of the engine's own: one that checks no credentials, such as
    /// DynamoDB Local or ministack. Its tables stay there when the engine ends.
    #[arg(long, value_name = "URL", value_parser = server_url)]
    dynamodb_url: Option<String>,
    /// An SQS to use instead of the engine's own: one that checks no credentials.
    #[arg(long, value_name = "URL", value_parser = server_url)]
    sqs_url: Option<String>,
    /// After how many seconds a message that was given out and not finished is given out again; by
    /// default as in a deployment.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=43_200))]
    redelivery_seconds: Option<u64>,
    /// How long the search of the payment provider lags, in seconds. Unpaid orders wait three seconds
    /// longer past their deadline; not at all if it is 0.
    #[arg(long, value_name = "N", default_value_t = SEARCH_LAG_SECONDS,
          value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_SEARCH_LAG_SECONDS)))]
    search_lag_seconds: u32,
    /// What the names of the tables and queues begin with; engines that share a server need
    /// different ones.
    #[arg(long, value_name = "TEXT", default_value = PREFIX)]
    prefix: String,
    /// Begin with empty tables though Redis or the payment provider's book knows of orders. Without it
    /// the engine does not start then: the file of its database is gone.
    #[arg(long)]
    accept_lost_orders: bool,
    #[command(flatten)]
    limits: LimitsArgs,
    #[command(flatten)]
    built: BuiltPagesArgs,
    /// Refuse requests of buyers and of anyone that do not come through the edge, which is below /api, as a
    /// deployment does.
    #[arg(long)]
    edge_only: bool,
}

/// The address of a server: `http://host:port`, and nothing behind it.
fn server_url(text: &str) -> Result<String, String> {
    let wrong = || format!("{text} is not of the form http://host:port");
    let url = reqwest::Url::parse(text).map_err(|_unreadable| wrong())?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let is_server = matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare;
    if is_server { Ok(text.trim_end_matches('/').to_owned()) } else { Err(wrong()) }
}

/// The address of a Redis: `redis://…` or `rediss://…`.
fn redis_url(text: &str) -> Result<String, String> {
    match redis::parse_redis_url(text) {
        Some(_readable) => Ok(text.to_owned()),
        None => Err(format!("{text} is not of the form redis://host:port")),
    }
}

impl UpCommand {
    /// The Redis that runs already, if one was named.
    fn redis(&self) -> Result<Option<Topology>, String> {
        match (self.redis_url.as_slice(), self.redis_cluster) {
            ([], _) => Ok(None),
            (nodes, true) => Ok(Some(Topology::Cluster(nodes.to_vec()))),
            ([url], false) => Ok(Some(Topology::Single(url.clone()))),
            ([_, _, ..], false) => {
                Err("several addresses are a cluster's: --redis-cluster is missing".to_owned())
            }
        }
    }

    /// Runs until Ctrl-C or SIGTERM, or until a part of the engine is lost for good.
    ///
    /// # Errors
    /// Why the engine did not start, could not go on, or did not stop in good order.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        // Before anything is started, so that no signal finds the default behaviour.
        let mut signals = Signals::new()?;
        let external = External {
            redis: self.redis()?,
            dynamodb_url: self.dynamodb_url,
            sqs_url: self.sqs_url,
        };
        let usual = Redelivery::default();
        let visibility = self.redelivery_seconds.map_or(usual.visibility, Duration::from_secs);
        let state = State { ephemeral: self.ephemeral, external: external.clone() };
        let pages = self.built.directory();
        let has_pages = pages.is_some();
        let options = Options {
            ephemeral: self.ephemeral,
            port: self.port,
            reconcile_seconds: self.reconcile_seconds,
            redelivery: Redelivery { visibility, ..usual },
            search_lag_seconds: self.search_lag_seconds,
            external,
            prefix: self.prefix,
            accept_lost_orders: self.accept_lost_orders,
            limits: self.limits.limits(),
            pages,
            edge_only: self.edge_only,
            ..Options::persistent(data_dir)
        };
        let engine = tokio::select! {
            engine = on_heap(|| Engine::start(options)) => engine?,
            () = signals.next() => return Ok(ExitCode::SUCCESS),
        };
        let said = if json {
            serde_json::to_string(engine.endpoints())?
        } else {
            banner(&engine, &state, data_dir, has_pages)
        };
        // Whoever started us may not listen; the engine runs all the same.
        let _unheard = writeln!(std::io::stdout(), "{said}");
        let lost = tokio::select! {
            () = signals.next() => None,
            lost = engine.watch() => Some(lost),
        };
        match &lost {
            None => tracing::info!("stopping; once more to stop at once"),
            Some(lost) => tracing::error!(%lost, "the engine cannot go on, and stops"),
        }
        let stopped = tokio::select! {
            stopped = engine.stop() => stopped,
            () = signals.next() => {
                tracing::warn!("stopped at once");
                Ok(())
            }
        };
        match lost {
            Some(lost) => Err(lost.into()),
            None => Ok(stopped.map(|()| ExitCode::SUCCESS)?),
        }
    }
}

/// The two signals that stop the engine.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Where the state of an engine is.
struct State {
    ephemeral: bool,
    external: External,
}

impl State {
    fn text(&self, data_dir: &Path) -> String {
        let own = if self.ephemeral {
            "in memory; gone when this ends".to_owned()
        } else {
            format!("{}; survives kill -9", data_dir.display())
        };
        let External { redis, dynamodb_url, sqs_url } = &self.external;
        let elsewhere = [
            ("seats and holds", redis.is_some()),
            ("tables", dynamodb_url.is_some()),
            ("messages", sqs_url.is_some()),
        ];
        let elsewhere: Vec<&str> =
            elsewhere.into_iter().filter_map(|(what, is_so)| is_so.then_some(what)).collect();
        match elsewhere.as_slice() {
            [] => own,
            some => format!("{own}; {} on the servers named", some.join(", ")),
        }
    }
}

/// Where everything is, and what to do next.
fn banner(engine: &Engine, state: &State, path: &Path, has_pages: bool) -> String {
    let endpoints = engine.endpoints();
    let url = engine.url();
    let state = state.text(engine.data_dir());
    // Commands find the engine by its data directory: name it where it is not the usual one.
    let here = if path == Path::new(data_dir::DEFAULT) {
        String::new()
    } else {
        format!(" --data-dir {}", path.display())
    };
    let pages =
        if has_pages { format!("{url}/") } else { "not built; make demo builds them".to_owned() };
    format!(
        "\
Onsale is up at {url}

  Pages      {pages}
  Redis      {redis}
  DynamoDB   {dynamodb}
  SQS        {sqs}
  Provider   {provider}
  State      {state}

Next, in another terminal:
  onsale{here} sale put sales/demo-stadium.json     put a sale on sale
  onsale{here} sale list                            what is on sale
  onsale{here} token --user alice                   a buyer's bearer token, for curl
  onsale{here} audit                                check every invariant

Ctrl-C stops it.",
        redis = endpoints.redis,
        dynamodb = endpoints.dynamodb,
        sqs = endpoints.sqs,
        provider = endpoints.provider,
    )
}
