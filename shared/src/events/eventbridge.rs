//! An event bus at Amazon EventBridge, by `PutEvents`.
//!
//! A bus keeps no order, may deliver an event twice, and may refuse some entries of a call and take the others. What it
//! refuses is told again like what a webhook does not take.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::config::StalledStreamProtectionConfig;
use aws_sdk_eventbridge::config::retry::RetryConfig;
use aws_sdk_eventbridge::config::timeout::TimeoutConfig;
use aws_sdk_eventbridge::error::DisplayErrorContext;
use aws_sdk_eventbridge::primitives::DateTime;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::bus::{BusEntry, EventBus, SOURCE};
use crate::runtime::app::{self, App, Error};
use crate::runtime::config::Config;

/// Time limits and attempts: all of them end long before a run must.
const ATTEMPT: Duration = Duration::from_millis(2500);
const CALL: Duration = Duration::from_secs(6);
const ATTEMPTS: u32 = 3;

/// A bus of this account.
#[derive(Debug)]
pub struct EventBridge {
    client: Client,
    bus: String,
}

/// The engine with the bus that the environment names, if it names one. Only what tells a bus links the client.
///
/// # Errors
/// The configuration is wrong.
pub async fn told_by(app: App) -> Result<App, Error> {
    let bus = EventBridge::from_config(&Config::from_env()?).await?;
    Ok(app.with_bus(bus.map(|bus| Arc::new(bus) as Arc<dyn EventBus>)))
}

impl EventBridge {
    /// The bus that a configuration names; `None` if it names none.
    ///
    /// # Errors
    /// The configuration is wrong.
    pub async fn from_config(config: &Config) -> Result<Option<Self>, Error> {
        let Some(bus) = &config.bus.name else { return Ok(None) };
        let sdk = app::sdk(config).await?;
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(ATTEMPT)
            .operation_attempt_timeout(ATTEMPT)
            .operation_timeout(CALL)
            .build();
        let retries = RetryConfig::standard()
            .with_max_attempts(ATTEMPTS)
            .with_initial_backoff(Duration::from_millis(100));
        let mut builder = aws_sdk_eventbridge::config::Builder::from(&sdk)
            .timeout_config(timeouts)
            .retry_config(retries)
            // Each attempt has its time limit.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(endpoint) = &config.bus.endpoint {
            builder = builder.endpoint_url(endpoint);
        }
        Ok(Some(Self { client: Client::from_conf(builder.build()), bus: bus.clone() }))
    }

    fn entry(&self, entry: &BusEntry) -> PutEventsRequestEntry {
        PutEventsRequestEntry::builder()
            .event_bus_name(&self.bus)
            .source(SOURCE)
            .detail_type(&entry.kind)
            .time(DateTime::from_millis(entry.at.ms()))
            .detail(&entry.detail)
            .build()
    }
}

impl EventBus for EventBridge {
    fn put<'a>(&'a self, entries: &'a [BusEntry]) -> BoxFuture<'a, Vec<bool>> {
        let call = self.client.put_events();
        let call = call.set_entries(Some(entries.iter().map(|entry| self.entry(entry)).collect()));
        async move {
            let answer = match call.send().await {
                Ok(answer) => answer,
                Err(error) => {
                    let error = DisplayErrorContext(&error).to_string();
                    tracing::warn!(error, "the event bus has taken nothing");
                    return vec![false; entries.len()];
                }
            };
            let results = answer.entries();
            let refused = results.iter().find_map(|result| result.error_code());
            if let Some(code) = refused {
                let refused = answer.failed_entry_count();
                tracing::info!(code, refused, "the event bus has not taken everything");
            }
            // An entry without an answer was not taken.
            let is_taken = |place: usize| {
                results.get(place).is_some_and(|result| result.error_code().is_none())
            };
            (0..entries.len()).map(is_taken).collect()
        }
        .boxed()
    }
}
