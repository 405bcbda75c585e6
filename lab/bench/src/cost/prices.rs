//! What AWS asks for, with the day on which it did.

use std::fmt::Display;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Failure;

/// The table that the repository brings.
const PUBLISHED: &str = include_str!("prices.json");

/// Prices of one region, in one currency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The day on which they were looked up.
    pub as_of: String,
    /// The region that they are of.
    pub region: String,
    pub currency: String,
    /// Notes on what they include.
    pub note: String,
    /// A million requests to an HTTP API.
    pub http_api_million: f64,
    pub lambda_million: f64,
    /// A gigabyte of a function's memory for a second, on arm64.
    pub lambda_gb_second: f64,
    /// A million read request units, on demand.
    pub dynamodb_reads_million: f64,
    /// A million write request units, on demand.
    pub dynamodb_writes_million: f64,
    /// A million requests to standard queues.
    pub sqs_million: f64,
    /// A million processing units (ECPU) of ElastiCache Serverless for Valkey.
    pub cache_units_million: f64,
    /// A gigabyte in the same for an hour.
    pub cache_gb_hour: f64,
    /// The least that is counted of it, in gigabytes.
    pub cache_least_gb: f64,
    /// A gigabyte of logs, taken in.
    pub logs_gb: f64,
    /// A gigabyte that goes out to the internet.
    pub egress_gb: f64,
    /// A million requests to a distribution, over HTTPS.
    #[serde(default)]
    pub edge_requests_million: f64,
    /// A million calls of the functions of a distribution.
    #[serde(default)]
    pub edge_functions_million: f64,
    /// A NAT gateway for an hour.
    pub nat_gateway_hour: f64,
    /// An interface endpoint in one zone for an hour.
    pub endpoint_hour: f64,
    /// A secret for a month.
    pub secret_month: f64,
    /// An alarm for a month.
    pub alarm_month: f64,
    /// A metric of our own for a month.
    pub metric_month: f64,
    /// A dashboard for a month.
    pub dashboard_month: f64,
}

impl Prices {
    /// Those of the repository.
    ///
    /// # Errors
    /// Never, as a test shows: the table is compiled in.
    pub fn published() -> Result<Self, Failure> {
        Ok(serde_json::from_str(PUBLISHED)?)
    }

    /// Those of a file, in the form of the published ones: every price, and nothing else.
    ///
    /// # Errors
    /// The file cannot be read or lacks a price.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        read_json(path)
    }
}

/// Reads a file of JSON; the error names it.
///
/// # Errors
/// The file cannot be read, or is not of the expected form.
pub fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let named = |error: &dyn Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    Ok(serde_json::from_str(&text).map_err(|error| named(&error))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_table_is_whole_and_nothing_is_free() {
        let prices = serde_json::to_value(Prices::published().unwrap()).unwrap();
        for (name, price) in prices.as_object().unwrap() {
            assert!(price.as_f64().is_none_or(|price| price > 0.0), "{name}");
        }
    }

    #[test]
    fn a_table_that_lacks_a_price_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut prices: serde_json::Value = serde_json::from_str(PUBLISHED).unwrap();
        prices.as_object_mut().unwrap().remove("sqs_million");
        std::fs::write(file.path(), prices.to_string()).unwrap();
        let refused = Prices::read(file.path()).unwrap_err().to_string();
        assert!(refused.contains("sqs_million"), "{refused}");
    }
}
