//! Figures from CloudWatch, by `GetMetricData`.
//!
//! Every metric is asked for by its name: sales, types of problems and functions are known, so that no search is
//! needed, which may find what is old and is limited more. A process asks once a minute, whoever looks: what it was
//! told is kept until there is a new minute, that of the stage for all sales.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_cloudwatch::Client;
use aws_sdk_cloudwatch::config::StalledStreamProtectionConfig;
use aws_sdk_cloudwatch::config::retry::RetryConfig;
use aws_sdk_cloudwatch::config::timeout::TimeoutConfig;
use aws_sdk_cloudwatch::error::DisplayErrorContext;
use aws_sdk_cloudwatch::primitives::DateTime;
use aws_sdk_cloudwatch::types::{
    Dimension, Metric as Named, MetricDataQuery, MetricDataResult, MetricStat, ScanBy, StatusCode,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;

use super::{
    FigureSource, Figures, Latency, MAX_MINUTES, Minute, OF_SALE, PERIOD_SECONDS, SaleMinute,
    StageMinute,
};
use crate::http::problem::Kind;
use crate::runtime::app::{self, App, Error};
use crate::runtime::config::{Config, MetricsConfig};
use crate::runtime::functions::Function;
use crate::runtime::metrics::{Metric, NAMESPACE};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::{StoreError, Stored};

/// Seconds after the end of a minute until it is shown: what is logged is not counted at once.
pub const DELAY_SECONDS: u32 = 60;
/// Most metrics of one request.
/// Source: <https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html>
const MAX_QUERIES: usize = 500;
/// What is asked of a function's latency.
const P50: &str = "p50";
const P99: &str = "p99";
const STATISTICS: [&str; 3] = ["SampleCount", P50, P99];
/// What the id of a query begins with, before its place.
const ID: &str = "m";
const PERIOD: i32 = 60;
const _: () = assert!(PERIOD as u32 == PERIOD_SECONDS);
/// Metrics of the stage.
const OF_STAGE: usize = Kind::ALL.len() + Function::ALL.len() * STATISTICS.len();
const _: () = assert!(OF_STAGE + OF_SALE.len() <= MAX_QUERIES, "one request asks for everything");
/// Most pages of an answer that are read. One suffices: a page has 100,800 values, and `MAX_QUERIES` metrics have
/// 30,000 in an hour.
const MAX_PAGES: usize = 4;
/// Most sales whose figures a process keeps.
const MAX_SALES: usize = 32;

/// Time limits and attempts: all attempts end before a request must be answered.
const ATTEMPT: Duration = Duration::from_millis(2500);
const CALL: Duration = Duration::from_secs(6);
const ATTEMPTS: u32 = 3;

/// What one process was told, with the latest minute of it.
#[derive(Debug, Default)]
struct Kept {
    stage: Option<(Minute, BTreeMap<Minute, StageMinute>)>,
    sales: BTreeMap<SaleId, (Minute, BTreeMap<Minute, SaleMinute>)>,
}

/// The figures of a stage in CloudWatch.
#[derive(Debug)]
pub struct CloudWatch {
    client: Client,
    stage: String,
    kept: Mutex<Kept>,
}

/// The engine with the figures of CloudWatch, as the environment describes it. Only what reads figures links the client.
///
/// # Errors
/// The configuration is wrong.
pub async fn read_by(app: App) -> Result<App, Error> {
    let read = CloudWatch::from_config(&Config::from_env()?).await?;
    Ok(app.with_figures(read.map(|read| Arc::new(read) as Arc<dyn FigureSource>)))
}

/// What a query asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Asked {
    /// A count of the sale.
    OfSale(Metric),
    /// Requests answered with a problem of this type.
    Problem(Kind),
    /// A statistic of a function's latency.
    Latency(Function, &'static str),
}

impl CloudWatch {
    /// CloudWatch as a configuration describes it; `None` if no metrics are written that it could have, or if the
    /// stores are emulated and it is not: then nothing is asked of the real one.
    ///
    /// # Errors
    /// The configuration is wrong.
    pub async fn from_config(config: &Config) -> Result<Option<Self>, Error> {
        let MetricsConfig::Emf { stage, endpoint } = &config.metrics else { return Ok(None) };
        if endpoint.is_none() && config.dynamodb.endpoint.is_some() {
            return Ok(None);
        }
        let sdk = app::sdk(config).await?;
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(ATTEMPT)
            .operation_attempt_timeout(ATTEMPT)
            .operation_timeout(CALL)
            .build();
        let retries = RetryConfig::standard()
            .with_max_attempts(ATTEMPTS)
            .with_initial_backoff(Duration::from_millis(100));
        let mut builder = aws_sdk_cloudwatch::config::Builder::from(&sdk)
            .timeout_config(timeouts)
            .retry_config(retries)
            // Each attempt has its time limit.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        if let Some(endpoint) = endpoint {
            builder = builder.endpoint_url(endpoint);
        }
        let client = Client::from_conf(builder.build());
        Ok(Some(Self { client, stage: stage.clone(), kept: Mutex::default() }))
    }

    /// The figures of a sale. Who asks while another does waits for what that one is told.
    async fn figures(&self, sale: &SaleId, minutes: u16, now: Timestamp) -> Stored<Figures> {
        let last = Minute::of(now.plus_seconds(-i64::from(DELAY_SECONDS))).before(1);
        let mut kept = self.kept.lock().await;
        let has_stage = matches!(&kept.stage, Some((of, _)) if *of == last);
        let has_sale = matches!(kept.sales.get(sale), Some((of, _)) if *of == last);
        let mut asked = Vec::new();
        if !has_sale {
            asked.extend(OF_SALE.map(Asked::OfSale));
        }
        if !has_stage {
            asked.extend(of_stage());
        }
        if !asked.is_empty() {
            let answered = self.ask(sale, &asked, last).await?;
            let (of_sale, of_stage) = answered.parts();
            if !has_sale {
                kept.keep(sale, last, of_sale);
            }
            if !has_stage {
                kept.stage = Some((last, of_stage));
            }
        }
        Ok(Figures {
            last,
            minutes,
            as_of: last.end(),
            delay_seconds: DELAY_SECONDS,
            sale: kept.sales.get(sale).map(|(_, of)| of.clone()).unwrap_or_default(),
            stage: kept.stage.as_ref().map(|(_, of)| of.clone()).unwrap_or_default(),
        })
    }

    /// Asks for an hour up to a minute. An hour costs what a minute does: CloudWatch charges for metrics.
    async fn ask(&self, sale: &SaleId, asked: &[Asked], last: Minute) -> Stored<Answered> {
        let queries =
            asked.iter().enumerate().map(|(index, asked)| self.query(index, *asked, sale));
        let queries: Vec<MetricDataQuery> = queries.collect();
        let request = self
            .client
            .get_metric_data()
            .set_metric_data_queries(Some(queries))
            .start_time(time(last.before(MAX_MINUTES - 1).start()))
            .end_time(time(last.end()))
            .scan_by(ScanBy::TimestampAscending);
        let mut answered = Answered::default();
        let mut next = None;
        for _ in 0..MAX_PAGES {
            let page = request.clone().set_next_token(next).send().await;
            let page = page
                .map_err(|error| StoreError::Unavailable(DisplayErrorContext(error).to_string()))?;
            for message in page.messages() {
                tracing::warn!(?message, "CloudWatch says");
            }
            for result in page.metric_data_results() {
                answered.take(asked, result)?;
            }
            next = page.next_token;
            if next.is_none() {
                return Ok(answered);
            }
        }
        Err(StoreError::Contract(format!("CloudWatch has more than {MAX_PAGES} pages")))
    }

    /// A query, whose id is its place among those that are asked for.
    fn query(&self, place: usize, asked: Asked, sale: &SaleId) -> MetricDataQuery {
        let (metric, name, value, statistic) = match asked {
            Asked::OfSale(metric) => (metric, "Sale", sale.as_str(), "Sum"),
            Asked::Problem(kind) => (counted_as(kind), "Reason", kind.slug(), "Sum"),
            Asked::Latency(function, statistic) => {
                (Metric::Latency, "Function", function.as_str(), statistic)
            }
        };
        let dimension =
            |name: &str, value: &str| Dimension::builder().name(name).value(value).build();
        let named = Named::builder()
            .namespace(NAMESPACE)
            .metric_name(metric.row().name)
            .dimensions(dimension("Stage", &self.stage))
            .dimensions(dimension(name, value))
            .build();
        let statistic = MetricStat::builder().metric(named).period(PERIOD).stat(statistic).build();
        MetricDataQuery::builder().id(format!("{ID}{place}")).metric_stat(statistic).build()
    }
}

impl FigureSource for CloudWatch {
    fn read<'a>(
        &'a self,
        sale: &'a SaleId,
        minutes: u16,
        now: Timestamp,
    ) -> BoxFuture<'a, Stored<Figures>> {
        self.figures(sale, minutes, now).boxed()
    }
}

impl Kept {
    /// Keeps the figures of a sale, in place of those that are oldest if there are too many.
    fn keep(&mut self, sale: &SaleId, last: Minute, figures: BTreeMap<Minute, SaleMinute>) {
        self.sales.insert(sale.clone(), (last, figures));
        if self.sales.len() > MAX_SALES {
            let oldest =
                self.sales.iter().filter(|(of, _)| *of != sale).min_by_key(|(_, (last, _))| *last);
            if let Some(oldest) = oldest.map(|(of, _)| of.clone()) {
                self.sales.remove(&oldest);
            }
        }
    }
}

/// What is asked of the stage.
fn of_stage() -> impl Iterator<Item = Asked> {
    let of = |function| STATISTICS.map(|statistic| Asked::Latency(function, statistic));
    Kind::ALL.into_iter().map(Asked::Problem).chain(Function::ALL.into_iter().flat_map(of))
}

/// The metric that counts requests with a problem.
fn counted_as(kind: Kind) -> Metric {
    if kind.status().is_server_error() { Metric::ServerErrors } else { Metric::Refused }
}

fn time(at: Timestamp) -> DateTime {
    DateTime::from_millis(at.ms())
}

#[derive(Debug, Default)]
struct Answered {
    sale: BTreeMap<Minute, SaleMinute>,
    problems: BTreeMap<Minute, BTreeMap<Kind, u64>>,
    latency: BTreeMap<Minute, BTreeMap<Function, Latency>>,
}

impl Answered {
    /// Takes the values of one metric.
    fn take(&mut self, asked: &[Asked], result: &MetricDataResult) -> Stored<()> {
        let place = result.id().and_then(|id| id.strip_prefix(ID)?.parse::<usize>().ok());
        let asked = place.and_then(|place| asked.get(place)).ok_or_else(|| {
            StoreError::Contract(format!(
                "CloudWatch answers {:?}, which was not asked",
                result.id()
            ))
        })?;
        match result.status_code() {
            None | Some(StatusCode::Complete | StatusCode::PartialData) => {}
            Some(failed) => {
                return Err(StoreError::Unavailable(format!(
                    "CloudWatch answers {failed:?} of {asked:?}"
                )));
            }
        }
        for (at, value) in result.timestamps().iter().zip(result.values()) {
            let minute = Minute::of(Timestamp::from_ms(at.secs().saturating_mul(1000)));
            self.add(minute, *asked, *value);
        }
        Ok(())
    }

    fn add(&mut self, minute: Minute, asked: Asked, value: f64) {
        match asked {
            Asked::OfSale(metric) => {
                self.sale.entry(minute).or_default().insert(metric, whole(value));
            }
            Asked::Problem(kind) => {
                self.problems.entry(minute).or_default().insert(kind, whole(value));
            }
            Asked::Latency(function, statistic) => {
                let none = Latency { count: 0, p50_ms: 0.0, p99_ms: 0.0 };
                let of = self.latency.entry(minute).or_default().entry(function).or_insert(none);
                match statistic {
                    P50 => of.p50_ms = value,
                    P99 => of.p99_ms = value,
                    _ => of.count = whole(value),
                }
            }
        }
    }

    /// What it says of the sale, and of the stage.
    fn parts(self) -> (BTreeMap<Minute, SaleMinute>, BTreeMap<Minute, StageMinute>) {
        let mut stage: BTreeMap<Minute, StageMinute> = BTreeMap::new();
        for (minute, problems) in self.problems {
            stage.entry(minute).or_default().problems = problems;
        }
        for (minute, latency) in self.latency {
            stage.entry(minute).or_default().latency = latency;
        }
        (self.sale, stage)
    }
}

/// A count, which CloudWatch keeps as a floating-point number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range")]
fn whole(value: f64) -> u64 {
    value.round().clamp(0.0, 9_007_199_254_740_992.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_whole_whatever_comes() {
        for (value, expected) in [(0.0, 0), (2.0, 2), (2.9999, 3), (-1.0, 0), (f64::NAN, 0)] {
            assert_eq!(whole(value), expected, "{value}");
        }
        assert_eq!(whole(f64::INFINITY), 1 << 53);
    }

    /// What `docs/metrics.md` says of the numbers of metrics.
    #[test]
    fn the_documentation_has_the_sums_of_a_request_and_of_all_metrics() {
        let page = include_str!("../../../docs/metrics.md");
        let asked = OF_STAGE + OF_SALE.len();
        let count = u32::try_from(asked * 60).unwrap();
        let with = |set: &[&str]| {
            let sets = Metric::ALL.map(|metric| metric.row().dimensions.sets());
            sets.iter().filter(|sets| sets.contains(&set)).count()
        };
        let (of_all, of_function) = (with(&["Stage"]), with(&["Stage", "Function"]));
        for said in [
            format!("{OF_STAGE} metrics of the stage and {} of the sale", OF_SALE.len()),
            format!("for an hour costs {:.2} USD", f64::from(count) * 0.01 / 1000.0),
            format!("at most {of_all} of `[Stage]`"),
            format!("{} of `[Stage, Function]`", of_function * Function::ALL.len()),
        ] {
            let is_said = page.replace('\n', " ").contains(&said);
            assert!(is_said, "docs/metrics.md does not say: {said}");
        }
    }

    #[test]
    fn a_process_keeps_the_figures_of_the_sales_that_were_asked_for_last() {
        let mut kept = Kept::default();
        let sale = |number: usize| SaleId::new(format!("s{number}")).unwrap();
        for number in 0..=MAX_SALES {
            let minute = Minute::of(Timestamp::from_ms(60_000 * i64::try_from(number).unwrap()));
            kept.keep(&sale(number), minute, BTreeMap::new());
        }
        assert_eq!(kept.sales.len(), MAX_SALES);
        assert!(!kept.sales.contains_key(&sale(0)) && kept.sales.contains_key(&sale(MAX_SALES)));
    }

    #[test]
    fn what_was_not_asked_or_failed_is_no_answer() {
        let asked = [Asked::OfSale(Metric::Paid)];
        let answer =
            |id: &str, status| MetricDataResult::builder().id(id).status_code(status).build();
        let take = |result| Answered::default().take(&asked, &result);
        assert_eq!(take(answer("m0", StatusCode::Complete)), Ok(()));
        for id in ["m1", "m", "0", "x0"] {
            assert!(matches!(take(answer(id, StatusCode::Complete)), Err(StoreError::Contract(_))));
        }
        for status in [StatusCode::InternalError, StatusCode::Forbidden] {
            assert!(matches!(take(answer("m0", status)), Err(StoreError::Unavailable(_))));
        }
    }
}
