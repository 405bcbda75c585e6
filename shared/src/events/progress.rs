//! How far each subscriber was told of what the log has.

use std::collections::BTreeMap;

use engine::domain::basics::ids::{SaleId, SubscriberId};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LogShard;
use engine::domain::ledger::subscriber::{Failing, Wishes};
use engine::domain::order::fact::FactKind;
use engine::ports::{Log as _, StoreError, Stored};
use schemars::JsonSchema;
use serde::Serialize;

use super::bus::bus_subscriber;
use super::webhook::Webhook;
use crate::dynamodb::{DynamoLog, DynamoSubscriptions, DynamoWebhooks, ShardState};

/// A subscriber, and how far it was told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "WebhookProgress")]
pub struct SubscriberProgress {
    /// Its id.
    pub webhook: SubscriberId,
    /// Where it is told; absent for the event bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The kinds of facts that it is told; empty: all.
    #[schemars(with = "Vec<String>")]
    pub kinds: Vec<FactKind>,
    /// The sales of which it is told; empty: all.
    pub sales: Vec<SaleId>,
    /// Records of the log that it was not told yet.
    pub records_behind: u64,
    /// Orders of which it has not taken a fact.
    pub orders_waiting: usize,
    /// How many of those, and of the shards of the log, were given up.
    pub given_up: usize,
    /// Since when it takes nothing at all, if that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// When that is tried again; absent if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tried_again: Option<Timestamp>,
}

/// Every webhook, by id, and then the event bus if it was ever told anything.
///
/// # Errors
/// Fails if DynamoDB does.
pub async fn progress_of_all(
    webhooks: &DynamoWebhooks,
    subscriptions: &DynamoSubscriptions,
    log: &DynamoLog,
) -> Stored<Vec<SubscriberProgress>> {
    let mut last = BTreeMap::new();
    for shard in LogShard::all() {
        last.insert(shard, log.last(shard).await?);
    }
    let of = |webhook: Webhook| (webhook.id, Some(webhook.url.to_string()), webhook.wishes);
    let mut subscribers: Vec<(SubscriberId, Option<String>, Wishes)> =
        webhooks.all().await?.into_iter().map(of).collect();
    let bus = bus_subscriber().map_err(|error| StoreError::Contract(error.to_string()))?;
    subscribers.push((bus, None, Wishes::default()));
    let mut all = Vec::new();
    for (webhook, url, Wishes { kinds, sales }) in subscribers {
        let states = subscriptions.state(&webhook).await?;
        if url.is_none() && states.is_empty() {
            continue;
        }
        let failing = states.iter().filter_map(|state| state.progress.failing);
        let failing = failing.min_by_key(|failing| failing.since);
        all.push(SubscriberProgress {
            webhook,
            url,
            kinds: kinds.into_iter().collect(),
            sales: sales.into_iter().collect(),
            records_behind: states.iter().map(|state| behind(state, &last)).sum(),
            orders_waiting: states.iter().map(|state| state.waiting.len()).sum(),
            given_up: states.iter().map(given_up).sum(),
            failing_since: failing.map(|failing| failing.since),
            tried_again: failing.and_then(|failing| failing.next),
        });
    }
    Ok(all)
}

/// How many records of a shard were not told.
fn behind(state: &ShardState, last: &BTreeMap<LogShard, u64>) -> u64 {
    let last = last.get(&state.shard).copied().unwrap_or_default();
    last.saturating_sub(state.progress.position)
}

/// How many orders of a shard were given up, and the shard itself.
fn given_up(state: &ShardState) -> usize {
    let is_over = |failing: &Failing| failing.next.is_none();
    let orders = state.waiting.iter().filter(|order| is_over(&order.failing)).count();
    orders + usize::from(state.progress.failing.as_ref().is_some_and(is_over))
}
