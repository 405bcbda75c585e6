//! Runs every minute: sends the facts of the log to the webhooks, and to the event bus if there is one.

use std::time::Duration;

use aws_lambda_events::event::eventbridge::EventBridgeEvent;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LogShard;
use engine::domain::ledger::subscriber::{Subscription, Wishes};
use engine::flows::tell::{Teller, Telling};
use engine::ports::{Ports as _, Receiver, StoreError, Stored};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use lambda_runtime::Error;
use serde_json::Value;
use shared::events::{BusSender, EventBus, Webhook, WebhookSender, bus_subscriber};
use shared::runtime::app::{App, new_reader};
use shared::runtime::functions::Function;
use shared::runtime::metrics;
use tokio::time::{sleep, timeout};

/// Seconds between two looks at the log while there was something to tell: what is settled comes in bursts.
const PAUSE_SECONDS: i64 = 1;
/// A run ends after this many looks in a row that find nothing; the next minute's run finds the next fact.
const IDLE_LOOKS: u32 = 10;
/// No record is begun later than this after the beginning of the run, in seconds: the next minute's run is near.
const LAST_RECORD_SECONDS: i64 = 45;
/// The longest that a run takes. One that takes longer is cut off, as if the process had died there.
pub const MAX_RUN: Duration = Duration::from_secs(80);

/// Makes the run of one minute, at the time of the system clock. The event only says that a minute is over.
///
/// # Errors
/// Fails if the last look did; the next minute goes on where it stopped.
pub async fn handle(app: &App, _event: EventBridgeEvent<Value>) -> Result<Telling, Error> {
    let run = async {
        match timeout(MAX_RUN, tell_for_a_minute(app)).await {
            Ok(telling) => telling,
            Err(late) => Err(Error::from(late)),
        }
    };
    app.metrics.of(Function::SendEvents, Box::pin(run)).await
}

/// Sends each webhook the facts that it has not received, once. A run does this several times.
///
/// # Errors
/// Fails if a store does for any of them; the next one goes on where it stopped.
pub async fn tell(app: &App) -> Result<Telling, Error> {
    let stop_at = Timestamp::now().plus_seconds(LAST_RECORD_SECONDS);
    let run = async {
        let told = tell_all(app, stop_at).await;
        told.inspect(metrics::webhooks_told)
    };
    Ok(app.metrics.of(Function::SendEvents, Box::pin(run)).await?)
}

/// Looks at the log again and again while there is something to send.
async fn tell_for_a_minute(app: &App) -> Result<Telling, Error> {
    let stop_at = Timestamp::now().plus_seconds(LAST_RECORD_SECONDS);
    let mut all = Telling::default();
    let mut idle = 0;
    loop {
        let told = tell_all(app, stop_at).await;
        idle = if told.as_ref().is_ok_and(|did| did.told > 0) { 0 } else { idle + 1 };
        let is_last = Timestamp::now().plus_seconds(PAUSE_SECONDS) > stop_at;
        match told {
            Ok(did) => {
                all = Telling { told: all.told + did.told, failed: all.failed + did.failed, ..did };
                let is_quiet = all.told == 0 || idle >= IDLE_LOOKS;
                if is_last || is_quiet {
                    // What waits is what the last look has seen.
                    metrics::webhooks_told(&all);
                    tracing::info!(telling = ?all, "webhooks were told");
                    return Ok(all);
                }
            }
            Err(error) if is_last => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "webhooks are told again in a moment"),
        }
        sleep(Duration::from_secs(PAUSE_SECONDS.unsigned_abs())).await;
    }
}

/// Sends the facts of every shard of the log to every webhook and to the bus, side by side: no subscriber waits for a
/// slow one.
async fn tell_all(app: &App, stop_at: Timestamp) -> Stored<Telling> {
    let webhooks = app.ports.webhooks().all().await?;
    let each =
        webhooks.iter().flat_map(|webhook| LogShard::all().map(move |shard| (webhook, shard)));
    let each = each.map(|(webhook, shard)| tell_webhook(app, webhook, shard, stop_at).boxed());
    let of_bus =
        app.bus().into_iter().flat_map(|bus| LogShard::all().map(move |shard| (bus, shard)));
    let of_bus = of_bus.map(|(bus, shard)| tell_bus(app, bus, shard, stop_at).boxed());
    let mut did = Telling::default();
    let mut failed = None;
    for told in join_all(each.chain(of_bus)).await {
        match told {
            Ok(of_one) => did = did.and(of_one),
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(did), Err)
}

async fn tell_webhook(
    app: &App,
    webhook: &Webhook,
    shard: LogShard,
    stop_at: Timestamp,
) -> Stored<Telling> {
    let receiver = WebhookSender {
        webhook,
        keys: &app.webhooks.keys,
        connections: app.ports.webhook_connections(),
        catalogue: app.ports.catalogue(),
    };
    let of = Subscription { subscriber: webhook.id.clone(), shard };
    tell_one(app, &of, (&webhook.wishes, webhook.since), &receiver, stop_at).await
}

/// Tells the bus everything that is settled from when it was first told on.
async fn tell_bus(
    app: &App,
    bus: &dyn EventBus,
    shard: LogShard,
    stop_at: Timestamp,
) -> Stored<Telling> {
    let receiver = BusSender { bus, catalogue: app.ports.catalogue() };
    let subscriber = bus_subscriber().map_err(|error| StoreError::Contract(error.to_string()))?;
    let of = Subscription { subscriber, shard };
    tell_one(app, &of, (&Wishes::default(), Timestamp::now()), &receiver, stop_at).await
}

async fn tell_one(
    app: &App,
    of: &Subscription,
    (wishes, since): (&Wishes, Timestamp),
    receiver: &impl Receiver,
    stop_at: Timestamp,
) -> Stored<Telling> {
    let reader = new_reader(Timestamp::now())?;
    let teller = Teller {
        orders: app.ports.orders(),
        log: &app.ports.orders().orders.0.log(),
        subscriptions: app.ports.subscriptions(),
        receiver,
        wishes,
        since,
        reader: &reader,
    };
    let told = teller.tell(of, Timestamp::now, stop_at).await;
    if let Err(error) = &told {
        let (subscriber, shard) = (&of.subscriber, of.shard.get());
        tracing::warn!(%subscriber, shard, %error, "it was not told");
    }
    told
}
