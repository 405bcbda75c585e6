//! `onsale webhooks`: who is told of facts, and how far.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::basics::ids::{SaleId, SubscriberId};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LogShard;
use engine::domain::ledger::subscriber::Wishes;
use engine::domain::order::fact::FactKind;
use engine::ports::{Log as _, Ports as _};
use serde_json::{Value, json};
use shared::dynamodb::DynamoLog;
use shared::events::{
    BUS_SUBSCRIBER, MAX_WEBHOOKS, SecretName, SubscriberProgress, Webhook, WebhookUrl,
    progress_of_all,
};
use shared::runtime::app::new_reader;

use super::engine::{EngineArgs, Reached};
use super::{DECLINED, Failure, out};

/// Hours for which the former secret signs beside a new one, unless told otherwise.
const FORMER_HOURS: u32 = 24;

/// Have addresses told of what happens to orders: each fact at least once, those of an order in their order, signed as
/// Standard Webhooks says.
#[derive(Debug, Args)]
pub struct WebhooksCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(List),
    Set(Set),
    Secret(OfOne),
    Rotate(Rotate),
    Retry(Retry),
    Replay(Replay),
    Remove(Remove),
}

/// Print every webhook, and how far it was told.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale webhooks list
  onsale webhooks list --json")]
struct List {
    #[command(flatten)]
    engine: EngineArgs,
}

/// Make a webhook, or change where it leads and what it is told. Prints the secret of a new one.
///
/// A new one is told what is settled from now on; `replay` tells it what was before.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale webhooks set erp https://erp.example/hooks/onsale
  onsale webhooks set mail https://mail.example/hooks --kind paid --kind refunded --sale demo-club")]
struct Set {
    /// Its id.
    #[arg(value_name = "ID")]
    id: SubscriberId,
    /// Where it is told: https, and no address of a private network.
    #[arg(value_name = "URL")]
    url: WebhookUrl,
    /// A kind of fact that it is told, such as paid; all kinds unless given.
    #[arg(long = "kind", value_name = "KIND", value_parser = kind)]
    kinds: Vec<FactKind>,
    /// A sale of which it is told; all sales unless given.
    #[arg(long = "sale", value_name = "SALE")]
    sales: Vec<SaleId>,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Print the secret that signs what a webhook is told; the former one too while both sign.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onsale webhooks secret erp")]
struct OfOne {
    /// The webhook.
    #[arg(value_name = "ID")]
    id: SubscriberId,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Give a webhook a new secret, and print it. The former one signs as well for a day.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale webhooks rotate erp
  onsale webhooks rotate erp --former-hours 0")]
struct Rotate {
    /// The webhook.
    #[arg(value_name = "ID")]
    id: SubscriberId,
    /// Hours for which the former secret signs as well.
    #[arg(long, value_name = "HOURS", default_value_t = FORMER_HOURS)]
    former_hours: u32,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Try again at once what a webhook did not take, also what was given up after three days.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onsale webhooks retry erp")]
struct Retry {
    /// The webhook.
    #[arg(value_name = "ID")]
    id: SubscriberId,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Tell a webhook once more everything that was settled since a time, under the same names.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onsale webhooks replay erp --from 2026-11-25T00:00:00Z")]
struct Replay {
    /// The webhook.
    #[arg(value_name = "ID")]
    id: SubscriberId,
    /// The time, as RFC 3339.
    #[arg(long, value_name = "TIME")]
    from: Timestamp,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Forget a webhook, and what it was told.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  onsale webhooks remove erp")]
struct Remove {
    /// The webhook.
    #[arg(value_name = "ID")]
    id: SubscriberId,
    #[command(flatten)]
    engine: EngineArgs,
}

fn kind(text: &str) -> Result<FactKind, String> {
    let known = FactKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    known.ok_or_else(|| format!("is none of {}", FactKind::ALL.map(FactKind::as_str).join(", ")))
}

impl WebhooksCommand {
    /// Does what was asked for.
    ///
    /// # Errors
    /// The engine cannot be reached, DynamoDB fails, or there is no such webhook.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        match self.action {
            Action::List(List { engine }) => list(&engine.reach(data_dir).await?, json).await,
            Action::Set(set) => set.run(data_dir, json).await,
            Action::Secret(OfOne { id, engine }) => {
                let reached = engine.reach(data_dir).await?;
                let webhook = one(&reached, &id).await?;
                for name in webhook.secrets(Timestamp::now()) {
                    show_secret(&reached, &webhook, name, json)?;
                }
                Ok(ExitCode::SUCCESS)
            }
            Action::Rotate(rotate) => rotate.run(data_dir, json).await,
            Action::Retry(Retry { id, engine }) => {
                let reached = engine.reach(data_dir).await?;
                if !is_bus(&id) {
                    one(&reached, &id).await?;
                }
                let now = Timestamp::now();
                let subscriptions = reached.app.ports.subscriptions();
                let held = subscriptions.retry(&id, &new_reader(now)?, now).await?;
                all_but(&held, &format!("{id} is told what it did not take"), json)
            }
            Action::Replay(replay) => replay.run(data_dir, json).await,
            Action::Remove(Remove { id, engine }) => {
                let reached = engine.reach(data_dir).await?;
                one(&reached, &id).await?;
                // Nobody begins to tell it, and then what was told goes.
                reached.app.ports.webhooks().remove(&id).await?;
                reached.app.ports.subscriptions().forget(&id).await?;
                say(json, &format!("{id} is told nothing any more"), json!({ "removed": id }))
            }
        }
    }
}

impl Set {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { id, url, kinds, sales, engine } = self;
        if is_bus(&id) {
            return Err(format!("{id} is the event bus, and the name of no webhook").into());
        }
        let reached = engine.reach(data_dir).await?;
        let webhooks = reached.app.ports.webhooks();
        let keys = &reached.app.webhooks.keys;
        if !reached.app.webhooks.addresses.allow(url.uri()) {
            return Err(format!(
                "{url} may not be called: it must be https, and lead to a public address"
            )
            .into());
        }
        let known = webhooks.get(&id).await?;
        if known.is_none() && webhooks.all().await?.len() >= MAX_WEBHOOKS {
            return Err(format!("there are {MAX_WEBHOOKS} webhooks, and no more can be").into());
        }
        let wishes =
            Wishes { kinds: kinds.into_iter().collect(), sales: sales.into_iter().collect() };
        let webhook = match &known {
            Some(webhook) => Webhook { url, wishes, ..webhook.clone() },
            None => {
                let since = Timestamp::now();
                let secret = keys.next(None, since).ok_or("ONSALE_WEBHOOK_KEYS must be set")?;
                Webhook { id, url, wishes, secret, former: None, since }
            }
        };
        webhooks.put(&webhook).await?;
        if known.is_some() {
            let said = format!("{} is told at {}", webhook.id, webhook.url);
            return say(json, &said, json!({ "webhook": webhook.id, "is_new": false }));
        }
        show_secret(&reached, &webhook, &webhook.secret, json)
    }
}

impl Rotate {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { id, former_hours, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let webhook = one(&reached, &id).await?;
        let now = Timestamp::now();
        let next = reached.app.webhooks.keys.next(Some(&webhook.secret), now);
        let secret = next.ok_or("ONSALE_WEBHOOK_KEYS must be set")?;
        let until = now.plus_seconds(i64::from(former_hours) * 3600);
        let webhook = Webhook { former: Some((webhook.secret, until)), secret, ..webhook };
        reached.app.ports.webhooks().put(&webhook).await?;
        show_secret(&reached, &webhook, &webhook.secret, json)
    }
}

impl Replay {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { id, from, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let webhook = if is_bus(&id) { None } else { Some(one(&reached, &id).await?) };
        let log: DynamoLog = reached.app.ports.orders().orders.0.log();
        let mut positions: BTreeMap<LogShard, u64> = BTreeMap::new();
        for shard in LogShard::all() {
            positions.insert(shard, log.before(shard, from).await?);
        }
        if let Some(webhook) = webhook {
            // Where it was never told anything, it begins there.
            let since = webhook.since.min(from);
            reached.app.ports.webhooks().put(&Webhook { since, ..webhook }).await?;
        }
        let now = Timestamp::now();
        let to = |shard| positions.get(&shard).copied().unwrap_or_default();
        let subscriptions = reached.app.ports.subscriptions();
        let held = subscriptions.rewind(&id, &new_reader(now)?, now, to).await?;
        all_but(&held, &format!("{id} is told again what was settled since {from}"), json)
    }
}

/// True for what is told as the event bus.
fn is_bus(id: &SubscriberId) -> bool {
    id.as_str() == BUS_SUBSCRIBER
}

async fn one(reached: &Reached, id: &SubscriberId) -> Result<Webhook, Failure> {
    let found = reached.app.ports.webhooks().get(id).await?;
    found.ok_or_else(|| format!("there is no webhook {id}").into())
}

fn say(json: bool, text: &str, document: Value) -> Result<ExitCode, Failure> {
    if json { out(&document) } else { out(&text) }
}

/// Says what was done, and of which shards it was not: somebody tells those at this moment.
fn all_but(held: &[LogShard], what: &str, json: bool) -> Result<ExitCode, Failure> {
    let held: Vec<u8> = held.iter().map(|shard| shard.get()).collect();
    say(json, what, json!({ "done": held.is_empty(), "busy_shards": held }))?;
    if held.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !json {
        out(&format!("but for shards {held:?}, which are being told: ask once more"))?;
    }
    Ok(ExitCode::from(DECLINED))
}

fn show_secret(
    reached: &Reached,
    webhook: &Webhook,
    name: &SecretName,
    json: bool,
) -> Result<ExitCode, Failure> {
    let secret = reached.app.webhooks.keys.shown(&webhook.id, name);
    let secret = secret.ok_or("ONSALE_WEBHOOK_KEYS has not the key that made this secret")?;
    let document = json!({ "webhook": webhook.id, "secret": secret, "number": name.generation });
    say(json, &format!("{}: {secret}", webhook.id), document)
}

async fn list(reached: &Reached, json: bool) -> Result<ExitCode, Failure> {
    let ports = &reached.app.ports;
    let log = ports.orders().orders.0.log();
    let webhooks = progress_of_all(ports.webhooks(), ports.subscriptions(), &log).await?;
    if json {
        return out(&json!({ "webhooks": webhooks }));
    }
    for progress in webhooks {
        let SubscriberProgress {
            webhook,
            url,
            records_behind,
            orders_waiting,
            given_up,
            failing_since,
            tried_again,
            ..
        } = progress;
        let failing = failing_since.map_or_else(String::new, |since| {
            let next = tried_again
                .map_or_else(|| "given up".to_owned(), |next| format!("again at {next}"));
            format!(", takes nothing since {since}, {next}")
        });
        let url = url.unwrap_or_else(|| "(EventBridge)".to_owned());
        out(&format!(
            "{webhook} {url}: {records_behind} records behind, {orders_waiting} orders wait, {given_up} given up{failing}"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}
