//! The client: time limits, attempts, and single requests.
//!
//! The SDK's own retries are off. It reports only how the last attempt failed; but a request whose
//! first attempt got no answer and whose second was throttled *may have happened*, and the caller must learn
//! so. So one loop here makes every attempt and remembers.

use std::time::{Duration, Instant};

use aws_config::SdkConfig;
use aws_lc_rs::rand;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::StalledStreamProtectionConfig;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::delete_item::builders::DeleteItemFluentBuilder;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use futures_util::FutureExt as _;

use super::errors::{Failure, failure};
use super::expressions::built;
use super::items::{Item, item, number, text};
use super::tables::{SALES_LIST, Tables};
use crate::hex::to_hex;
use crate::runtime::connections::pause;
use engine::flows::load::MAX_REQUEST_MS;
use engine::ports::{StoreError, Stored};

/// Most keys of one `BatchGetItem` (a quota of DynamoDB).
/// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>
const MAX_BATCH_GET_KEYS: usize = 100;

/// Time limit of one attempt, in milliseconds.
const ATTEMPT_TIMEOUT_MS: u64 = 1_500;
/// Time after which no further attempt of a call is begun, in milliseconds.
const CALL_TIMEOUT_MS: u64 = 5_000;
// A loader's lease outlives its longest request: a batch of orders of which some were left out until the
// time was over, and then once more as long with one last attempt.
const _: () = assert!((2 * CALL_TIMEOUT_MS + ATTEMPT_TIMEOUT_MS).cast_signed() <= MAX_REQUEST_MS);
/// Most bytes of the sales that a process remembers, unless configured: a quarter of the memory of a
/// function (`template.yaml`).
pub const DEFAULT_CATALOGUE_BYTES: usize = 64 * 1024 * 1024;

/// A sort key that no item has.
const NOTHING: &str = "#";

/// How the adapters talk to DynamoDB.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    pub tables: Tables,
    /// Address of DynamoDB; `None` for the one of the SDK's configuration.
    pub endpoint: Option<String>,
    /// Time limit of one attempt.
    pub attempt_timeout: Duration,
    /// Time after which no further attempt of a call is begun. Together with one attempt it must
    /// stay below the function's own deadline.
    pub call_timeout: Duration,
    /// Most attempts of one call.
    pub attempts: u32,
    /// The longest pause after the first failed attempt; it doubles with each, up to 500 ms, and
    /// the pause taken is a random share of it.
    pub backoff: Duration,
    /// Maximum age of a cached catalogue entry.
    pub cache_for: Duration,
    /// Most bytes of the sales that a process remembers.
    pub catalogue_bytes: usize,
}

impl StoreConfig {
    /// Times that suit a function with a deadline of ten seconds.
    #[must_use]
    pub fn new(tables: Tables) -> Self {
        Self {
            tables,
            endpoint: None,
            attempt_timeout: Duration::from_millis(ATTEMPT_TIMEOUT_MS),
            call_timeout: Duration::from_millis(CALL_TIMEOUT_MS),
            attempts: 12,
            backoff: Duration::from_millis(20),
            cache_for: Duration::from_secs(2),
            catalogue_bytes: DEFAULT_CATALOGUE_BYTES,
        }
    }
}

/// DynamoDB, with what every request to it needs. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Dynamo {
    client: Client,
    config: StoreConfig,
}

/// The attempts and the time that one call has left.
pub(super) struct RetryBudget<'a> {
    config: &'a StoreConfig,
    since: Instant,
    made: u32,
}

impl RetryBudget<'_> {
    /// Pauses before the next attempt; false if the budget is spent.
    pub(super) async fn pause(&mut self) -> bool {
        self.made += 1;
        let longest = self.config.backoff.saturating_mul(1 << self.made.min(16).saturating_sub(1));
        let pause = pause::between(Duration::ZERO, longest.min(Duration::from_millis(500)));
        let spent = self.since.elapsed() + pause;
        if self.made >= self.config.attempts || spent >= self.config.call_timeout {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }
}

/// True if an update was refused by its condition.
fn is_conditional(error: &SdkError<UpdateItemError>) -> bool {
    let refused = UpdateItemError::is_conditional_check_failed_exception;
    error.as_service_error().is_some_and(refused)
}

/// True if a delete was refused by its condition.
fn is_refused(error: &SdkError<DeleteItemError>) -> bool {
    let refused = DeleteItemError::is_conditional_check_failed_exception;
    error.as_service_error().is_some_and(refused)
}

/// The key of no order.
fn no_order() -> Item {
    item([("gene", number(0)), ("sk", text(NOTHING))])
}

/// Random hexadecimal digits, two for each of `bytes`.
pub(super) fn random_hex(bytes: usize) -> Stored<String> {
    let mut random = vec![0; bytes];
    rand::fill(&mut random)
        .map_err(|_| StoreError::Unavailable("the system gives no entropy".to_owned()))?;
    Ok(to_hex(&random))
}

impl Dynamo {
    /// Builds a client from the SDK's configuration.
    #[must_use]
    pub fn new(sdk: &SdkConfig, config: StoreConfig) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(config.attempt_timeout)
            .operation_attempt_timeout(config.attempt_timeout)
            .operation_timeout(config.attempt_timeout)
            .build();
        let mut builder = aws_sdk_dynamodb::config::Builder::from(sdk)
            .timeout_config(timeouts)
            .retry_config(RetryConfig::disabled())
            // Answers are small and each attempt has its time limit: watching how fast bytes come
            // in adds nothing but work.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(endpoint) = &config.endpoint {
            builder = builder.endpoint_url(endpoint);
        }
        Self { client: Client::from_conf(builder.build()), config }
    }

    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    #[must_use]
    pub fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// Reads what no sale is, to be connected before the first request and to have signed once.
    ///
    /// # Errors
    /// As any read.
    pub async fn read_a_sale(&self) -> Stored<()> {
        let key = item([("pk", text(SALES_LIST)), ("sk", text(NOTHING))]);
        self.get(&self.config.tables.sales, key).await.map(drop)
    }

    /// The same of an order.
    ///
    /// # Errors
    /// As any read.
    pub async fn read_an_order(&self) -> Stored<()> {
        self.get(&self.config.tables.orders, no_order()).await.map(drop)
    }

    /// The same of orders, in a batch.
    ///
    /// # Errors
    /// As any read.
    pub async fn read_orders(&self) -> Stored<()> {
        self.get_many(&self.config.tables.orders, vec![no_order()]).await.map(drop)
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.config.tables
    }

    pub(super) fn retry_budget(&self) -> RetryBudget<'_> {
        RetryBudget { config: &self.config, since: Instant::now(), made: 0 }
    }

    /// Makes a request that may be repeated without harm, until it is answered. Each attempt is on the
    /// heap: the SDK's futures are large, and every flow would have room for them.
    async fn ask<T, E, F>(&self, attempt: impl Fn() -> F + Send + Sync) -> Result<T, Failure>
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
        T: Send,
    {
        let mut budget = self.retry_budget();
        let mut lost = None;
        loop {
            let text = match attempt().boxed().await.map_err(|error| failure(&error)) {
                Ok(answer) => return Ok(answer),
                Err(broken @ Failure::Broken(_)) => return Err(broken),
                Err(Failure::Lost(text)) => {
                    lost = Some(text.clone());
                    text
                }
                Err(Failure::Busy(text)) => text,
            };
            if !budget.pause().await {
                return Err(lost.map_or(Failure::Busy(text), Failure::Lost));
            }
        }
    }

    /// Makes a request that only reads.
    pub(super) async fn read<T, E, F>(&self, attempt: impl Fn() -> F + Send + Sync) -> Stored<T>
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
        T: Send,
    {
        self.ask(attempt).await.map_err(Failure::of_read)
    }

    /// Makes a request that writes the same thing however often it is made.
    pub(super) async fn write<T, E, F>(&self, attempt: impl Fn() -> F + Send + Sync) -> Stored<T>
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
        T: Send,
    {
        self.ask(attempt).await.map_err(Failure::of_write)
    }

    /// One item, strongly consistent.
    pub(super) async fn get(&self, table: &str, key: Item) -> Stored<Option<Item>> {
        self.get_as(table, key, true).await
    }

    /// One item, strongly consistent or, at half the price, as it was a moment ago.
    pub(super) async fn get_as(
        &self,
        table: &str,
        key: Item,
        is_consistent: bool,
    ) -> Stored<Option<Item>> {
        let get = self.client.get_item().table_name(table).set_key(Some(key));
        let get = get.consistent_read(is_consistent);
        Ok(self.read(|| get.clone().send()).await?.item)
    }

    /// Updates one item under its condition: the item as it is then, or `None` if the condition does not
    /// hold. An attempt whose answer is lost is repeated, so that a condition must hold again after it, or
    /// the caller take `None` for an update that may have happened.
    pub(super) async fn update(&self, update: UpdateItemFluentBuilder) -> Stored<Option<Item>> {
        let attempt = || {
            let update = update.clone();
            async move {
                match update.send().await {
                    Ok(updated) => Ok(Some(updated.attributes.unwrap_or_default())),
                    Err(error) if is_conditional(&error) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        };
        self.write(attempt).await
    }

    /// Deletes one item if its condition holds; else nothing.
    pub(super) async fn delete(&self, delete: DeleteItemFluentBuilder) -> Stored<()> {
        let attempt = || {
            let delete = delete.clone();
            async move {
                match delete.send().await {
                    Ok(_) => Ok(()),
                    Err(error) if is_refused(&error) => Ok(()),
                    Err(error) => Err(error),
                }
            }
        };
        self.write(attempt).await
    }

    /// Many items of one table, strongly consistent, in any order; absent ones are left out. No
    /// key may be duplicated.
    pub(super) async fn get_many(&self, table: &str, keys: Vec<Item>) -> Stored<Vec<Item>> {
        use aws_sdk_dynamodb::types::KeysAndAttributes;
        let mut found = Vec::with_capacity(keys.len());
        for batch in keys.chunks(MAX_BATCH_GET_KEYS) {
            let mut left = batch.to_vec();
            let mut budget = self.retry_budget();
            while !left.is_empty() {
                let requested = KeysAndAttributes::builder()
                    .set_keys(Some(std::mem::take(&mut left)))
                    .consistent_read(true)
                    .build()
                    .map_err(built)?;
                let request = self.client.batch_get_item().request_items(table, requested);
                let mut answer = self.read(|| request.clone().send()).await?;
                let mut items = answer.responses.take().unwrap_or_default();
                found.extend(items.remove(table).unwrap_or_default());
                let mut rest = answer.unprocessed_keys.take().unwrap_or_default();
                left = rest.remove(table).map_or_else(Vec::new, |rest| rest.keys);
                if !left.is_empty() && !budget.pause().await {
                    let text = format!("{} of {} keys were not read", left.len(), batch.len());
                    return Err(StoreError::Unavailable(text));
                }
            }
        }
        Ok(found)
    }

    /// One page of a query that reads at most `most` items: those that its filter lets through, and the key of
    /// the last that was read if there may be more.
    pub(super) async fn query_once(
        &self,
        query: QueryFluentBuilder,
        most: usize,
    ) -> Stored<(Vec<Item>, Option<Item>)> {
        let page = query.set_limit(i32::try_from(most).ok());
        let mut answer = self.read(|| page.clone().send()).await?;
        let found = answer.items.take().unwrap_or_default();
        Ok((found, answer.last_evaluated_key.take()))
    }

    /// Every item of a query, page by page, but at most `most`.
    pub(super) async fn query(&self, query: QueryFluentBuilder, most: usize) -> Stored<Vec<Item>> {
        let mut found: Vec<Item> = Vec::new();
        let mut after = None;
        loop {
            // A page never asks for more than is still to come; DynamoDB's limit is a 32-bit one.
            let limit = i32::try_from(most.saturating_sub(found.len())).ok();
            let page = query.clone().set_limit(limit).set_exclusive_start_key(after);
            let mut answer = self.read(|| page.clone().send()).await?;
            found.extend(answer.items.take().unwrap_or_default());
            after = answer.last_evaluated_key.take();
            if after.is_none() || found.len() >= most {
                found.truncate(most);
                return Ok(found);
            }
        }
    }
}
