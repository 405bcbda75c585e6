//! The limits of the managed services that a deployment stands on: one table ([`table`]), from which
//! `docs/limits.md` is written ([`page`]) and from which the fakes have their values, and the meters
//! that enforce them. Everything is pure: a meter takes the time as an argument.
//!
//! A fake that enforces them is given an [`Enforced`]: the quotas that the account has, and where
//! refusals are counted.

pub mod alipay;
pub mod bucket;
pub mod dynamodb;
pub mod gateway;
pub mod lambda;
pub mod page;
pub mod redis;
pub mod sqs;
pub mod stripe;
pub mod table;
mod throttles;
pub mod wechat;

pub use throttles::{Throttle, Throttled, Throttles};

use serde::{Deserialize, Serialize};

/// The time that a meter is given: since any moment that stays the same for the meter.
pub type Now = std::time::Duration;

/// The kind of cache that a deployment runs on, as `CacheKind` of the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Nodes in cluster mode: a slot has the whole of its node's thread.
    #[default]
    Nodes,
    /// ElastiCache Serverless: a slot has a number of processing units a second.
    Serverless,
}

impl Cache {
    /// The word that the template and the command line have for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nodes => "nodes",
            Self::Serverless => "serverless",
        }
    }
}

/// What the owner of the account has chosen, and had raised before a sale, beyond the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quotas {
    /// Write units a second that the DynamoDB tables are warmed for, as `WarmWrites` of the template.
    pub warm_writes: u32,
    /// Read units a second that they are warmed for, as `WarmReads` of the template.
    pub warm_reads: u32,
    /// Payments a second that the payment provider lets the account begin. Its limit for every other
    /// endpoint is that of the table.
    pub payments_per_second: u32,
    /// The kind of cache.
    #[serde(default)]
    pub cache: Cache,
}

impl Default for Quotas {
    /// Nothing has been raised.
    fn default() -> Self {
        let of = |limit: table::Limit| u32::try_from(limit.count()).unwrap_or(u32::MAX);
        Self {
            warm_writes: of(table::TABLE_WRITES),
            warm_reads: of(table::TABLE_READS),
            payments_per_second: of(table::STRIPE_ENDPOINT),
            cache: Cache::default(),
        }
    }
}

impl Quotas {
    /// The same, with the tables warmed for that number of write units a second and three times as many read
    /// units, the ratio of a new table.
    #[must_use]
    pub fn warmed(self, warm_writes: u32) -> Self {
        let least = Self::default();
        let warm_reads = warm_writes.saturating_mul(least.warm_reads / least.warm_writes.max(1));
        Self {
            warm_writes: warm_writes.max(least.warm_writes),
            warm_reads: warm_reads.max(least.warm_reads),
            ..self
        }
    }
}

/// The limits under which an engine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limits {
    /// None: the fakes refuse nothing.
    #[default]
    None,
    /// Those of AWS and of the payment provider, with these quotas.
    Aws(Quotas),
}

impl Limits {
    /// The arguments of `onsale` that say the same to another process.
    #[must_use]
    pub fn arguments(self) -> Vec<String> {
        let arguments = match self {
            Self::None => vec![("--limits", "none".to_owned())],
            Self::Aws(quotas) => vec![
                ("--limits", "aws".to_owned()),
                ("--warm-writes", quotas.warm_writes.to_string()),
                ("--payments-per-second", quotas.payments_per_second.to_string()),
                ("--cache", quotas.cache.as_str().to_owned()),
            ],
        };
        arguments.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// What the fakes need to enforce them, with refusals counted in `throttles`; `None` without limits.
    #[must_use]
    pub fn enforced(self, throttles: &Throttles) -> Option<Enforced> {
        match self {
            Self::None => None,
            Self::Aws(quotas) => Some(Enforced { quotas, throttles: throttles.clone() }),
        }
    }
}

/// What a fake needs to enforce limits.
#[derive(Debug, Clone, Default)]
pub struct Enforced {
    /// The quotas of the account.
    pub quotas: Quotas,
    /// Where refusals are counted.
    pub throttles: Throttles,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warming_keeps_the_ratio_of_a_new_table_and_never_lowers() {
        let quotas = Quotas::default();
        assert_eq!((quotas.warm_writes, quotas.warm_reads), (4000, 12_000));
        assert_eq!(quotas.warmed(20_000).warm_reads, 60_000);
        assert_eq!(quotas.warmed(1), quotas);
    }
}
