//! The limits under which a command's engine runs.

use clap::{Args, ValueEnum};
use fake_limits::{Cache, Limits, Quotas};

/// Whose limits are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Enforced {
    /// Those of AWS and of the payment provider (docs/limits.md).
    Aws,
    /// None.
    None,
}

/// The limits of the services, and what of them was raised.
#[derive(Debug, Clone, Copy, Args)]
pub struct LimitsArgs {
    /// Limits that the servers of this machine enforce: docs/limits.md lists them.
    #[arg(long, value_enum, value_name = "WHOSE", default_value_t = Enforced::Aws)]
    limits: Enforced,
    /// Write units a second that the DynamoDB tables are warmed for, as `WarmWrites` of template.yaml;
    /// reads three times as many.
    #[arg(long, value_name = "N", default_value_t = WARM_WRITES,
          value_parser = clap::value_parser!(u32).range(4000..=40_000))]
    warm_writes: u32,
    /// Payments a second that the payment provider lets the account begin; Stripe's limit is 25 unless
    /// more was agreed.
    #[arg(long, value_name = "N", default_value_t = PAYMENTS_PER_SECOND,
          value_parser = clap::value_parser!(u32).range(1..))]
    payments_per_second: u32,
    /// The cache whose limits are enforced: `nodes`, the default of template.yaml, or `serverless`, a
    /// slot of which carries 30,000 processing units a second.
    #[arg(long, value_enum, value_name = "KIND", default_value_t = CacheOf::Nodes)]
    cache: CacheOf,
}

/// The kind of cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CacheOf {
    /// Nodes in cluster mode.
    Nodes,
    /// ElastiCache Serverless.
    Serverless,
}

impl From<CacheOf> for Cache {
    fn from(cache: CacheOf) -> Self {
        match cache {
            CacheOf::Nodes => Self::Nodes,
            CacheOf::Serverless => Self::Serverless,
        }
    }
}

/// Write units a second that tables are warmed for: what a sale of 60,000 seats in a minute takes.
const WARM_WRITES: u32 = 20_000;
/// Payments a second: a sale that is worth a load test has agreed on more than Stripe's 25.
const PAYMENTS_PER_SECOND: u32 = 1000;

impl LimitsArgs {
    #[must_use]
    pub fn limits(&self) -> Limits {
        match self.limits {
            Enforced::None => Limits::None,
            Enforced::Aws => {
                let payments_per_second = self.payments_per_second;
                let cache = self.cache.into();
                let quotas = Quotas { payments_per_second, cache, ..Quotas::default() };
                Limits::Aws(quotas.warmed(self.warm_writes))
            }
        }
    }
}
