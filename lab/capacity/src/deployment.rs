//! What the engine is deployed on: the quotas of the account, the settings of the template, and what was agreed with
//! others. A file of it is what `onsale capacity` and `onsale ready` read.

use std::path::Path;

use bench::cost::read_json;
use engine::domain::admission::call_rate::CallRate;
use fake_limits::table;
use fake_limits::{Cache, Quotas};
use serde::{Deserialize, Serialize};
use shared::http::routes::{OTHERS, ROUTES, RouteName};

use crate::Failure;

/// The deployment. What a file leaves out is what a new account and the template have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Deployment {
    /// Requests a second to all HTTP APIs of the account and Region: a quota.
    pub gateway_rate: f64,
    /// The bucket of that rate: a quota.
    pub gateway_burst: f64,
    /// Invocations at once of the account and Region: a quota.
    pub concurrent_executions: u32,
    /// Requests a second of a distribution: a quota.
    pub edge_rate: f64,
    /// Sign-ins a second that the issuer of tokens lets through. Amazon Cognito: 120, a quota.
    pub sign_ins_per_second: f64,
    /// Payments a second that the payment provider lets start: agreed with it.
    pub payments_per_second: u32,
    /// `ProviderCallsPerSecond` of the template, of which starts of payments have five quarters, 10,000 at most.
    pub provider_calls_per_second: u32,
    /// Whether a payment that cannot be started at once gets a place, and nobody is let in while the next is half a minute
    /// away; `false` for a release up to 0.2, which refuses it.
    pub payments_have_places: bool,
    /// `PlaceRate` of the template: joins a second.
    pub place_rate: u32,
    /// `AdmissionRate` of the template.
    pub admission_rate: u32,
    /// `OrderRate` of the template.
    pub order_rate: u32,
    /// `ReadRate` of the template.
    pub read_rate: u32,
    /// `RareRate` of the template, which bounds the starts of payments, and requests for refunds.
    pub rare_rate: u32,
    /// `OtherRate` of the template, which bounds looks at orders and cancellations.
    pub other_rate: u32,
    /// `CallbackEntryRate` of the template.
    pub callback_entry_rate: u32,
    /// `TakeCallbackConcurrency` of the template.
    pub take_callback_concurrency: u32,
    /// `ExpireOrdersConcurrency` of the template.
    pub expire_orders_concurrency: u32,
    /// `WarmWrites` of the template: write units a second that the tables are warmed for.
    pub warm_writes: u32,
    /// `WarmReads` of the template.
    pub warm_reads: u32,
    /// `CacheKind` of the template.
    pub cache: Cache,
    /// `CacheShards` of the template: nodes that the slots are spread over.
    pub cache_shards: u32,
    /// Caches of the distribution that each ask the origin once a second: its places, or one with an origin shield.
    pub edge_caches: u32,
    /// Environments that are kept warm of each function.
    pub warm_environments: u32,
    /// Share of a processor that a function has by its memory.
    pub processor_share: f64,
    /// Round trip to the cache, in milliseconds.
    pub redis_ms: f64,
    /// Round trip to DynamoDB, in milliseconds.
    pub dynamodb_ms: f64,
    /// Round trip to SQS, in milliseconds.
    pub sqs_ms: f64,
    /// A provider's answer, in milliseconds.
    pub provider_ms: f64,
    /// From a visitor to a function and back, in milliseconds: network, edge, gateway, invocation.
    pub network_ms: f64,
    /// A new environment, in milliseconds: the sandbox of the service, and the start of the function.
    pub cold_ms: f64,
}

/// The rate of a route by the table of routes.
fn rate(of: RouteName) -> u32 {
    let row = ROUTES.iter().find(|row| row.name == of);
    row.map_or(0, |row| row.throttle.rate)
}

/// The bucket of a route, by the table of routes.
pub(crate) fn burst(of: RouteName) -> f64 {
    let row = ROUTES.iter().find(|row| row.name == of);
    row.map_or(0.0, |row| f64::from(row.throttle.burst))
}

impl Default for Deployment {
    /// A new account, and the template as it is.
    fn default() -> Self {
        let quotas = Quotas::default();
        Self {
            gateway_rate: table::GATEWAY_RATE.rate(),
            gateway_burst: table::GATEWAY_BURST.rate(),
            concurrent_executions: u32::try_from(table::CONCURRENCY.count()).unwrap_or(u32::MAX),
            edge_rate: table::EDGE_RATE.rate(),
            sign_ins_per_second: 120.0,
            payments_per_second: quotas.payments_per_second,
            provider_calls_per_second: CallRate::DEFAULT.per_second(),
            payments_have_places: true,
            place_rate: rate(RouteName::JoinRoom),
            admission_rate: rate(RouteName::Admit),
            order_rate: rate(RouteName::Reserve),
            read_rate: rate(RouteName::ShowAvailability),
            rare_rate: rate(RouteName::StartPayment),
            other_rate: OTHERS.rate,
            callback_entry_rate: rate(RouteName::TakeCallback),
            take_callback_concurrency: 100,
            expire_orders_concurrency: 20,
            warm_writes: quotas.warm_writes,
            warm_reads: quotas.warm_reads,
            cache: Cache::default(),
            cache_shards: 1,
            edge_caches: 10,
            warm_environments: 0,
            // 256 MB of the 1,769 at which a function has a whole processor.
            processor_share: 256.0 / 1_769.0,
            redis_ms: 1.0,
            dynamodb_ms: 8.0,
            sqs_ms: 10.0,
            provider_ms: 300.0,
            network_ms: 60.0,
            cold_ms: 150.0,
        }
    }
}

impl Deployment {
    /// Reads a file of it.
    ///
    /// # Errors
    /// It cannot be read, or is not one; the error names it.
    pub fn read(file: &Path) -> Result<Self, Failure> {
        let read: Self = read_json(file)?;
        read.check().map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(read)
    }

    /// Checks that every rate can be one.
    ///
    /// # Errors
    /// Names the first that cannot.
    pub fn check(&self) -> Result<(), String> {
        let positive = [
            ("gateway_rate", self.gateway_rate),
            ("gateway_burst", self.gateway_burst),
            ("concurrent_executions", f64::from(self.concurrent_executions)),
            ("edge_rate", self.edge_rate),
            ("sign_ins_per_second", self.sign_ins_per_second),
            ("payments_per_second", f64::from(self.payments_per_second)),
            ("provider_calls_per_second", f64::from(self.provider_calls_per_second)),
            ("place_rate", f64::from(self.place_rate)),
            ("admission_rate", f64::from(self.admission_rate)),
            ("order_rate", f64::from(self.order_rate)),
            ("read_rate", f64::from(self.read_rate)),
            ("rare_rate", f64::from(self.rare_rate)),
            ("other_rate", f64::from(self.other_rate)),
            ("callback_entry_rate", f64::from(self.callback_entry_rate)),
            ("take_callback_concurrency", f64::from(self.take_callback_concurrency)),
            ("expire_orders_concurrency", f64::from(self.expire_orders_concurrency)),
            ("warm_writes", f64::from(self.warm_writes)),
            ("warm_reads", f64::from(self.warm_reads)),
            ("cache_shards", f64::from(self.cache_shards)),
            ("edge_caches", f64::from(self.edge_caches)),
            ("processor_share", self.processor_share),
        ];
        let is_one = |value: f64| value.is_finite() && value > 0.0;
        if let Some((name, _)) = positive.into_iter().find(|(_, value)| !is_one(*value)) {
            return Err(format!("{name} must be more than 0"));
        }
        if CallRate::from_per_second(self.provider_calls_per_second).is_none() {
            let most = CallRate::MAX_PER_SECOND;
            return Err(format!("provider_calls_per_second must be 1 to {most}"));
        }
        let times = [
            ("redis_ms", self.redis_ms),
            ("dynamodb_ms", self.dynamodb_ms),
            ("sqs_ms", self.sqs_ms),
            ("provider_ms", self.provider_ms),
            ("network_ms", self.network_ms),
            ("cold_ms", self.cold_ms),
        ];
        let is_time = |value: f64| (0.0..=60_000.0).contains(&value);
        match times.into_iter().find(|(_, value)| !is_time(*value)) {
            Some((name, _)) => Err(format!("{name} must be 0 to 60,000")),
            None => Ok(()),
        }
    }
}
