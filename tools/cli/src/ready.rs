//! `onsale ready`: what is missing before an on-sale.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench::cost::{Prices, read_json};
use capacity::endpoints::Endpoints;
use capacity::ready::{Alarms, Facts, Finding, InStores, Keys, Verdict, assess, worst};
use capacity::{Crowd, Deployment, Plan, forecast};
use clap::Args;
use engine::domain::admission::room::draw::Terms;
use engine::domain::admission::room::serving::Room;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::published;
use engine::ports::{Beacon as _, RoomPorts as _};
use engine::ports::{Catalogue as _, Freshness, Ports as _, Published, Seats as _};
use loadtest::arrivals::Shape;
use local::queues::depth_at;
use ops::stuck;
use shared::runtime::config::Config;
use shared::runtime::functions::QueueName;
use shared::runtime::merchants::MerchantsSource;

use super::engine::{EngineArgs, Reached};
use super::{DECLINED, Failure, out};

/// Say what is missing before a sale opens: quotas, secrets, clocks, the cache, queues, alarms.
///
/// Quotas and settings are held against what the simulation of `onsale capacity` needs. Nothing is changed.
///
/// Exit code 1: something would make the sale suffer.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale ready autumn --visitors 2000000
  aws cloudwatch describe-alarms --alarm-name-prefix prod-onsale > alarms.json
  stripe webhook_endpoints list > endpoints.json
  onsale ready autumn --from-environment --deployment ours.json --alarms alarms.json --endpoints endpoints.json")]
pub struct ReadyCommand {
    /// The sale.
    #[arg(value_name = "SALE")]
    sale: SaleId,
    /// How many people are expected.
    #[arg(long, value_name = "N", default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    visitors: u64,
    /// What the engine is deployed on, as JSON: quotas and settings (docs/capacity.md); what it leaves out is a new
    /// account's.
    #[arg(long, value_name = "FILE")]
    deployment: Option<PathBuf>,
    /// The crowd, as JSON (docs/capacity.md).
    #[arg(long, value_name = "FILE")]
    crowd: Option<PathBuf>,
    /// What `aws cloudwatch describe-alarms` prints.
    #[arg(long, value_name = "FILE")]
    alarms: Option<PathBuf>,
    /// What `stripe webhook_endpoints list` prints.
    #[arg(long, value_name = "FILE")]
    endpoints: Option<PathBuf>,
    #[command(flatten)]
    engine: EngineArgs,
}

impl ReadyCommand {
    /// Looks at everything, and prints the list.
    ///
    /// # Errors
    /// The engine cannot be reached, or a file cannot be read.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        // What is wrong with a file is said before anything is asked.
        let deployment = self.deployment.as_deref().map(Deployment::read).transpose()?;
        let crowd = self.crowd.as_deref().map(Crowd::read).transpose()?.unwrap_or_default();
        let crowd = Crowd { visitors: self.visitors, ..crowd };
        crowd.check()?;
        let alarms = self.alarms.as_deref().map(read_json::<Alarms>).transpose()?;
        let endpoints = self.endpoints.as_deref().map(read_json::<Endpoints>).transpose()?;
        let reached = self.engine.reach(data_dir).await?;
        let published = reached.app.ports.catalogue().sale(&self.sale, Freshness::Fresh).await?;
        let stores = match &published {
            Some(published) => Some(in_stores(&reached, published).await?),
            None => None,
        };
        let simulated = match &published {
            Some(published) => {
                let plan = Plan {
                    sale: published.sale.as_ref().clone(),
                    sales: 1,
                    crowd,
                    shape: Shape::Opening,
                    grace: reached.config.providers.grace,
                    hours: 24.0,
                    seed: 7,
                };
                Some(forecast(&plan, &deployment.unwrap_or_default(), &Prices::published()?)?)
            }
            None => None,
        };
        let ahead_ms = {
            let redis = self.engine.target(data_dir)?.redis_now().await?;
            redis.ms_since(Timestamp::now())
        };
        let now = Timestamp::now();
        let bound_seconds = reached.config.providers.grace.bound_seconds();
        let ports = &reached.app.ports;
        let mut late = stuck::find(ports, &reached.dead_letters(), bound_seconds, now).await?;
        stuck::add_bills(&mut late, ports.bills(), &ports.provider().accounts()).await?;
        let findings = assess(&Facts {
            sale: published.as_ref().map(|published| published.sale.as_ref()),
            stores,
            now,
            clocks: vec![("Redis", ahead_ms)],
            queues: queues(&reached).await?,
            stuck: late.stuck.len(),
            keys: keys(&reached.config),
            alarms,
            endpoints,
            has_stripe: has_stripe(&reached.config),
            beacon: beacon(&reached, &self.sale, now).await?,
            forecast: simulated.as_ref(),
        });
        out(&if json { reporting::json(&findings) } else { table(&findings) })?;
        let is_ready = worst(&findings) < Verdict::Fail;
        Ok(if is_ready { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}

/// Whether the beacon that decides the draw of a sale's room gives the round of a minute ago, which is out; none if no
/// beacon decides one.
async fn beacon(
    reached: &Reached,
    sale: &SaleId,
    now: Timestamp,
) -> Result<Option<Result<(), String>>, Failure> {
    let ports = &reached.app.ports;
    let Some(Room { draw: Terms::Beacon(named), .. }) = published(ports, sale).await? else {
        return Ok(None);
    };
    let round = named.chain().last_by(now.plus_seconds(-60).ms());
    Ok(Some(match ports.beacon().round(named.chain, round).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(format!("round {round} is a minute late")),
        Err(error) => Err(error.to_string()),
    }))
}

/// Whether Redis has each inventory of a sale as it was loaded last.
async fn in_stores(reached: &Reached, published: &Published) -> Result<InStores, Failure> {
    let inventories = published.sale.inventories();
    let mut loaded = 0;
    for inventory in &inventories {
        let epoch = reached.app.ports.seats().epoch(inventory).await?;
        loaded += usize::from(epoch.is_some() && epoch == published.epoch);
    }
    Ok(InStores { is_over: published.lifecycle.is_over(), loaded: (loaded, inventories.len()) })
}

/// The messages of every queue, and of its dead-letter queue.
async fn queues(reached: &Reached) -> Result<BTreeMap<&'static str, (u64, u64)>, Failure> {
    let sqs = reached.app.ports.queue().0.client();
    let dead = reached.dead_letters().list_all(1).await?;
    let mut queues = BTreeMap::new();
    for which in QueueName::ALL {
        let url = reached.config.sqs.urls.get(which).to_owned();
        let dead = dead.iter().find(|list| list.queue == which).map_or(0, |list| list.count);
        queues.insert(which.as_str(), (depth_at(sqs, which.as_str(), &url).await?, dead));
    }
    Ok(queues)
}

/// Accounts of merchants are at WeChat Pay or Alipay; every other provider is Stripe, or answers as Stripe does.
fn has_stripe(config: &Config) -> bool {
    !config.providers.apis.is_empty()
}

fn keys(config: &Config) -> Keys {
    let has_merchants = !matches!(config.providers.merchants, MerchantsSource::Absent);
    Keys {
        admission: config.admission.keys.len(),
        attendees: config.attendees.keys.len(),
        tickets: usize::from(!config.tickets.is_empty()),
        challenges: config.challenges.keys.len(),
        edge: usize::from(!config.edge.is_empty()),
        providers: config.providers.apis.len() + usize::from(has_merchants),
        callbacks: config.payments.secrets.len(),
    }
}

fn table(findings: &[Finding]) -> String {
    let mut table = reporting::table(["", "check", "found", "page"]);
    for Finding { check, verdict, what, page } in findings {
        table.add_row([verdict.as_str(), check, what.as_str(), page.as_str()]);
    }
    let count = |of: Verdict| findings.iter().filter(|finding| finding.verdict == of).count();
    let (pass, warn, fail) = (count(Verdict::Pass), count(Verdict::Warn), count(Verdict::Fail));
    format!("{table}\n{pass} passed, {warn} to look at, {fail} failed")
}
