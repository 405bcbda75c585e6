//! A request for metrics, and what CloudWatch refuses of it.

use std::collections::{BTreeMap, BTreeSet};

use fake_limits::table;
use serde_json::Value;

use crate::values::{Named, Statistic};

/// Longest id of a query, in characters.
const MAX_ID_CHARS: usize = 255;
/// Most dimensions of a metric.
const MAX_DIMENSIONS: usize = 30;

/// A metric that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// What it is called in the answer.
    pub id: String,
    pub namespace: String,
    pub metric: String,
    pub dimensions: BTreeMap<String, String>,
    pub period_seconds: i64,
    pub statistic: String,
}

/// A request that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What it asked for.
    pub queries: Vec<Query>,
    /// The first moment, in milliseconds since 1970.
    pub start_ms: i64,
    /// The first moment that it does not ask for, likewise.
    pub end_ms: i64,
    /// The page that it asked for; `None` for the first.
    pub token: Option<String>,
}

impl Query {
    pub(crate) fn named(&self) -> Named {
        (self.namespace.clone(), self.metric.clone(), self.dimensions.clone())
    }
}

impl Asked {
    /// Reads a request.
    ///
    /// # Errors
    /// Returns the rule that it breaks.
    pub(crate) fn read(body: &Value) -> Result<Self, String> {
        let given = body["MetricDataQueries"].as_array().cloned().unwrap_or_default();
        let most = table::METRIC_QUERIES.size();
        if given.is_empty() || given.len() > most {
            return Err(format!(
                "MetricDataQueries: between 1 and {most}, and not {}",
                given.len()
            ));
        }
        let queries: Vec<Query> = given.iter().map(query).collect::<Result<_, _>>()?;
        let ids: BTreeSet<&str> = queries.iter().map(|query| query.id.as_str()).collect();
        if ids.len() < queries.len() {
            return Err("MetricDataQueries: each id once".to_owned());
        }
        let (start_ms, end_ms) = (time(&body["StartTime"])?, time(&body["EndTime"])?);
        if start_ms >= end_ms {
            return Err("StartTime: before EndTime".to_owned());
        }
        let token = body["NextToken"].as_str().map(str::to_owned);
        Ok(Self { queries, start_ms, end_ms, token })
    }
}

fn query(given: &Value) -> Result<Query, String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let id = text(&given["Id"]);
    let is_id = id.len() <= MAX_ID_CHARS
        && id.starts_with(|first: char| first.is_ascii_lowercase())
        && id.chars().all(|one| one.is_ascii_alphanumeric() || one == '_');
    if !is_id {
        return Err(format!("Id: {id:?} is none"));
    }
    let statistic = &given["MetricStat"];
    let metric = &statistic["Metric"];
    let period_seconds = statistic["Period"].as_i64().unwrap_or_default();
    // Of metrics whose resolution is a minute, as these are.
    if period_seconds <= 0 || period_seconds % 60 != 0 {
        return Err(format!("Period: a multiple of 60, and not {period_seconds}"));
    }
    let named = text(&statistic["Stat"]);
    if Statistic::read(&named).is_none() {
        return Err(format!("Stat: {named:?} is none"));
    }
    let dimensions = metric["Dimensions"].as_array().cloned().unwrap_or_default();
    if dimensions.len() > MAX_DIMENSIONS {
        return Err(format!("Dimensions: {MAX_DIMENSIONS} at most"));
    }
    let of = |dimension: &Value| (text(&dimension["Name"]), text(&dimension["Value"]));
    let query = Query {
        id,
        namespace: text(&metric["Namespace"]),
        metric: text(&metric["MetricName"]),
        dimensions: dimensions.iter().map(of).collect(),
        period_seconds,
        statistic: named,
    };
    let has_all = !query.namespace.is_empty() && !query.metric.is_empty();
    let is_empty = |(name, value): (&String, &String)| name.is_empty() || value.is_empty();
    if !has_all || query.dimensions.iter().any(is_empty) {
        return Err(
            "Metric: a namespace, a name, and dimensions with a name and a value".to_owned()
        );
    }
    Ok(query)
}

/// A time in milliseconds.
fn time(value: &Value) -> Result<i64, String> {
    let seconds = value.as_f64().ok_or("StartTime and EndTime: both")?;
    let ms = format!("{:.0}", seconds * 1000.0);
    ms.parse().map_err(|_| format!("a time, and not {seconds}"))
}
