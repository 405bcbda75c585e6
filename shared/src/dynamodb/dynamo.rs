//! The client: time limits, attempts, and transactions whose outcome is known.
//!
//! The SDK's own retries are off. It reports only how the last attempt failed; but a request whose
//! first attempt got no answer and whose second was throttled *may have happened*, and we must say
//! so. So one loop here makes every attempt and remembers.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use aws_config::SdkConfig;
use aws_lc_rs::rand;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::StalledStreamProtectionConfig;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{
    AttributeValue, CancellationReason, Delete, Put, ReturnValuesOnConditionCheckFailure,
    TransactWriteItem, Update,
};

use super::errors::{Failure, failure};
use super::items::{Item, item, number, text};
use super::tables::{SALES_LIST, Tables};
use crate::runtime::connections::pause;
use crate::runtime::metrics::{Metric, count};
use engine::ports::{MAX_TRANSACTION_ITEMS, StoreError, Stored};

/// A sort key that no item has.
const NOTHING: &str = "#";

/// How the adapters talk to DynamoDB.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The tables' names.
    pub tables: Tables,
    /// Where DynamoDB is; `None` for the one of the SDK's configuration.
    pub endpoint: Option<String>,
    /// How long one attempt may take.
    pub attempt_timeout: Duration,
    /// After how long no further attempt of a call is begun. Together with one attempt it must
    /// stay below the function's own deadline.
    pub call_timeout: Duration,
    /// Most attempts of one call.
    pub attempts: u32,
    /// The longest pause after the first failed attempt; it doubles with each, up to 500 ms, and
    /// the pause taken is a random share of it.
    pub backoff: Duration,
    /// How old a cached catalogue entry may become.
    pub cache_for: Duration,
}

impl StoreConfig {
    /// Times that suit a function with a deadline of ten seconds.
    #[must_use]
    pub fn new(tables: Tables) -> Self {
        Self {
            tables,
            endpoint: None,
            attempt_timeout: Duration::from_millis(1500),
            call_timeout: Duration::from_secs(5),
            attempts: 12,
            backoff: Duration::from_millis(20),
            cache_for: Duration::from_secs(2),
        }
    }
}

/// DynamoDB, with what every request to it needs. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Dynamo {
    client: Client,
    config: StoreConfig,
}

/// What a transaction came to.
#[derive(Debug)]
pub(super) enum Transacted {
    /// All of it happened.
    Done,
    /// None of it: one verdict for each item, in order.
    Refused(Vec<Verdict>),
}

/// Why one item stood in the way of its transaction.
#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    /// It did not.
    Fine,
    /// Another transaction was at work on it, or its partition was busy.
    Busy,
    /// Its condition failed; the item as it is, empty if there is none.
    Failed(Item),
}

/// The attempts of one call.
struct Patience<'a> {
    config: &'a StoreConfig,
    since: Instant,
    made: u32,
}

impl Patience<'_> {
    /// Pauses before the next attempt; false if there shall be none.
    async fn pause(&mut self) -> bool {
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

/// The key of no order.
fn no_order() -> Item {
    item([("gene", number(0)), ("sk", text(NOTHING))])
}

/// Random hexadecimal digits, two for each of `bytes`.
pub(super) fn random_hex(bytes: usize) -> Stored<String> {
    let mut random = vec![0; bytes];
    rand::fill(&mut random)
        .map_err(|_| StoreError::Unavailable("the system gives no entropy".to_owned()))?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
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

    /// The client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How it was set up.
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

    fn patience(&self) -> Patience<'_> {
        Patience { config: &self.config, since: Instant::now(), made: 0 }
    }

    /// Makes a request that may be repeated without harm, until it is answered.
    async fn ask<T, E, F>(&self, attempt: impl Fn() -> F + Send + Sync) -> Result<T, Failure>
    where
        E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
        F: Future<Output = Result<T, SdkError<E>>> + Send,
        T: Send,
    {
        let mut patience = self.patience();
        let mut lost = None;
        loop {
            let text = match attempt().await.map_err(|error| failure(&error)) {
                Ok(answer) => return Ok(answer),
                Err(broken @ Failure::Broken(_)) => return Err(broken),
                Err(Failure::Lost(text)) => {
                    lost = Some(text.clone());
                    text
                }
                Err(Failure::Busy(text)) => text,
            };
            if !patience.pause().await {
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
        let get = self.client.get_item().table_name(table).set_key(Some(key)).consistent_read(true);
        Ok(self.read(|| get.clone().send()).await?.item)
    }

    /// Many items of one table, strongly consistent, in any order; absent ones are left out. No
    /// key may stand twice.
    pub(super) async fn get_many(&self, table: &str, keys: Vec<Item>) -> Stored<Vec<Item>> {
        use aws_sdk_dynamodb::types::KeysAndAttributes;
        let mut found = Vec::with_capacity(keys.len());
        for batch in keys.chunks(100) {
            let mut left = batch.to_vec();
            let mut patience = self.patience();
            while !left.is_empty() {
                let wanted = KeysAndAttributes::builder()
                    .set_keys(Some(std::mem::take(&mut left)))
                    .consistent_read(true)
                    .build()
                    .map_err(built)?;
                let request = self.client.batch_get_item().request_items(table, wanted);
                let mut answer = self.read(|| request.clone().send()).await?;
                let mut items = answer.responses.take().unwrap_or_default();
                found.extend(items.remove(table).unwrap_or_default());
                let mut rest = answer.unprocessed_keys.take().unwrap_or_default();
                left = rest.remove(table).map_or_else(Vec::new, |rest| rest.keys);
                if !left.is_empty() && !patience.pause().await {
                    let text = format!("{} of {} keys were not read", left.len(), batch.len());
                    return Err(StoreError::Unavailable(text));
                }
            }
        }
        Ok(found)
    }

    /// Every item of a query, page by page, but at most `most`.
    pub(super) async fn query(&self, query: QueryFluentBuilder, most: usize) -> Stored<Vec<Item>> {
        let mut found: Vec<Item> = Vec::new();
        let mut after = None;
        loop {
            // A page never asks for more than is still wanted; DynamoDB's limit is a 32-bit one.
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

    /// Writes all items or none.
    ///
    /// Refusals of the first `leading` items outrank all others: as long as one of those is busy
    /// and none of them has failed, what the others say is not believed, and the transaction is
    /// tried again.
    ///
    /// The client request token makes an attempt whose answer was lost safe to repeat: the server
    /// answers "done" without doing it twice. Each call, and within it each attempt that surely
    /// did nothing, has a fresh one. A token derived from the order would live for ten minutes,
    /// and would answer "done" for an order that was made, cancelled and is tried again meanwhile.
    pub(super) async fn transact(
        &self,
        leading: usize,
        items: Vec<TransactWriteItem>,
    ) -> Stored<Transacted> {
        count(None, Metric::Transactions, 1);
        let outcome = self.carry_out(leading, items).await;
        if outcome.is_err() {
            count(None, Metric::TransactionFailures, 1);
        }
        outcome
    }

    async fn carry_out(&self, leading: usize, items: Vec<TransactWriteItem>) -> Stored<Transacted> {
        if items.len() > MAX_TRANSACTION_ITEMS {
            return Err(StoreError::Contract(format!("a transaction of {} items", items.len())));
        }
        let mut patience = self.patience();
        let mut token = random_hex(16)?;
        let mut lost = None;
        let mut has_met_another = false;
        loop {
            let attempt = self
                .client
                .transact_write_items()
                .client_request_token(&token)
                .set_transact_items(Some(items.clone()));
            let failed = match attempt.send().await {
                Ok(_) => return Ok(Transacted::Done),
                Err(error) => {
                    if !has_met_another && met_another(&error) {
                        has_met_another = true;
                        count(None, Metric::VersionConflicts, 1);
                    }
                    match cancelled(&error, leading) {
                        Some(Ok(verdicts)) => return Ok(Transacted::Refused(verdicts)),
                        Some(Err(failed)) => failed,
                        None => failure(&error),
                    }
                }
            };
            let text = match failed {
                Failure::Lost(text) => {
                    lost = Some(text.clone());
                    text
                }
                Failure::Busy(text) => text,
                Failure::Broken(text) => {
                    return Err(lost.map_or(StoreError::Contract(text), StoreError::Unknown));
                }
            };
            if !patience.pause().await {
                return Err(lost.map_or(StoreError::Unavailable(text), StoreError::Unknown));
            }
            if lost.is_none() {
                token = random_hex(16)?;
            }
        }
    }
}

/// True if another transaction was at work on one of the items.
fn met_another(error: &SdkError<TransactWriteItemsError>) -> bool {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
        error.as_service_error()
    else {
        return false;
    };
    let mut reasons = cancelled.cancellation_reasons().iter();
    reasons.any(|reason| reason.code() == Some("TransactionConflict"))
}

/// Reads why a transaction was cancelled; `None` if it was not, `Some(Err)` if that decides
/// nothing.
fn cancelled(
    error: &SdkError<TransactWriteItemsError>,
    leading: usize,
) -> Option<Result<Vec<Verdict>, Failure>> {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) =
        error.as_service_error()?
    else {
        return None;
    };
    Some(verdicts(cancelled.cancellation_reasons(), leading))
}

fn verdicts(reasons: &[CancellationReason], leading: usize) -> Result<Vec<Verdict>, Failure> {
    let verdict = |reason: &CancellationReason| match reason.code() {
        None | Some("None") => Ok(Verdict::Fine),
        Some("ConditionalCheckFailed") => {
            Ok(Verdict::Failed(reason.item().cloned().unwrap_or_default()))
        }
        Some("TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded") => {
            Ok(Verdict::Busy)
        }
        Some(code) => {
            let message = reason.message().unwrap_or_default();
            Err(Failure::Broken(format!("cancelled: {code}: {message}")))
        }
    };
    let verdicts: Vec<Verdict> = reasons.iter().map(verdict).collect::<Result<_, _>>()?;
    let failed = |verdict: &Verdict| matches!(verdict, Verdict::Failed(_));
    let (first, rest) = verdicts.split_at(leading.min(verdicts.len()));
    if first.iter().any(failed) || (rest.iter().any(failed) && !first.contains(&Verdict::Busy)) {
        Ok(verdicts)
    } else {
        Err(Failure::Busy("cancelled: another transaction was at work".to_owned()))
    }
}

/// An attribute that an expression calls `:name`.
pub(super) type Value = (&'static str, AttributeValue);

fn values(values: impl IntoIterator<Item = Value>) -> Option<HashMap<String, AttributeValue>> {
    let values: HashMap<_, _> =
        values.into_iter().map(|(name, value)| (format!(":{name}"), value)).collect();
    (!values.is_empty()).then_some(values)
}

/// The attributes that expressions call `#name`, by name. Every attribute in our expressions is
/// called so, because a good many names (`state`, `user`) are reserved words.
fn names(expressions: &[&str]) -> Option<HashMap<String, String>> {
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let mut names = HashMap::new();
    for expression in expressions {
        for part in expression.split('#').skip(1) {
            let name = part.split(|c| !is_name(c)).next().unwrap_or_default();
            names.insert(format!("#{name}"), name.to_owned());
        }
    }
    (!names.is_empty()).then_some(names)
}

fn built(error: BuildError) -> StoreError {
    StoreError::Contract(error.to_string())
}

/// Puts an item if there is none with its key.
pub(super) fn put_new(table: &str, item: Item) -> Stored<TransactWriteItem> {
    let condition = "attribute_not_exists(#sk)";
    let put = Put::builder()
        .table_name(table)
        .set_item(Some(item))
        .condition_expression(condition)
        .set_expression_attribute_names(names(&[condition]))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    Ok(TransactWriteItem::builder().put(put.build().map_err(built)?).build())
}

/// Updates an item under a condition; an empty condition always holds.
pub(super) fn update(
    table: &str,
    key: Item,
    expression: &str,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> Stored<TransactWriteItem> {
    let update = Update::builder()
        .table_name(table)
        .set_key(Some(key))
        .update_expression(expression)
        .set_condition_expression((!condition.is_empty()).then(|| condition.to_owned()))
        .set_expression_attribute_names(names(&[expression, condition]))
        .set_expression_attribute_values(values(with))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    Ok(TransactWriteItem::builder().update(update.build().map_err(built)?).build())
}

/// Deletes an item under a condition.
pub(super) fn delete(
    table: &str,
    key: Item,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> Stored<TransactWriteItem> {
    let delete = Delete::builder()
        .table_name(table)
        .set_key(Some(key))
        .condition_expression(condition)
        .set_expression_attribute_names(names(&[condition]))
        .set_expression_attribute_values(values(with))
        .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
    Ok(TransactWriteItem::builder().delete(delete.build().map_err(built)?).build())
}

/// Sets a query's condition on its keys.
pub(super) fn keyed(
    query: QueryFluentBuilder,
    condition: &str,
    with: impl IntoIterator<Item = Value>,
) -> QueryFluentBuilder {
    query
        .key_condition_expression(condition)
        .set_expression_attribute_names(names(&[condition]))
        .set_expression_attribute_values(values(with))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &str) -> CancellationReason {
        CancellationReason::builder().code(code).build()
    }

    fn read(codes: &[&str], leading: usize) -> Result<Vec<Verdict>, Failure> {
        let reasons: Vec<CancellationReason> = codes.iter().map(|code| reason(code)).collect();
        verdicts(&reasons, leading)
    }

    #[test]
    fn a_busy_leader_makes_the_other_refusals_doubtful() {
        let failed = || Verdict::Failed(Item::new());
        let conflict = "TransactionConflict";
        let condition = "ConditionalCheckFailed";
        assert_eq!(read(&["None", condition], 1), Ok(vec![Verdict::Fine, failed()]));
        assert_eq!(read(&[condition, conflict], 1), Ok(vec![failed(), Verdict::Busy]));
        assert_eq!(read(&["None", conflict, condition], 1).map(|all| all.len()), Ok(3));
        for busy in [&[conflict, condition][..], &["None", conflict], &["ThrottlingError", "None"]]
        {
            assert!(matches!(read(busy, 1), Err(Failure::Busy(_))), "{busy:?}");
        }
        assert!(matches!(read(&["ValidationError"], 1), Err(Failure::Broken(_))));
    }

    #[test]
    fn names_are_found_in_expressions() {
        let found = names(&["SET #state = :s, #l4=:o", "attribute_not_exists(#by_user)"]).unwrap();
        let mut found: Vec<&String> = found.values().collect();
        found.sort();
        assert_eq!(found, ["by_user", "l4", "state"]);
        assert_eq!(names(&[""]), None);
    }
}
