//! The figures of the last minutes: the request for them, and the reply.

use lambda_http::Request;
use schemars::JsonSchema;
use serde::Serialize;

use crate::figures::{Figures, MAX_MINUTES, Minute, PERIOD_SECONDS};
use crate::http::checks::{Refusal, query_within};
use crate::http::problem::Kind;
use crate::runtime::metrics::Metric;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;

/// Minutes that are shown unless the request says how many.
pub const DEFAULT_MINUTES: u16 = 15;

/// The number of minutes that a request asks for.
///
/// # Errors
/// Returns [`Refusal::Invalid`] if it is not between 1 and [`MAX_MINUTES`].
pub fn minutes(request: &Request) -> Result<u16, Refusal> {
    Ok(query_within(request, "minutes", 1..=MAX_MINUTES)?.unwrap_or(DEFAULT_MINUTES))
}

/// A minute of a sale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FigurePoint")]
pub struct PointReply {
    /// Its first moment.
    pub at: Timestamp,
    /// Buyers let through the gate.
    pub admitted: u64,
    /// Buyers told to wait at the gate.
    pub waiting: u64,
    /// Orders made.
    pub held: u64,
    /// Orders that became paid.
    pub paid: u64,
    /// Orders that ended because nobody paid in time.
    pub expired: u64,
    /// Orders that their buyers gave up.
    pub cancelled: u64,
    /// Memberships of the waiting room made.
    pub joined: u64,
    /// Places of the waiting room that became due.
    pub served: u64,
    /// Those whose place was due and who came.
    pub came: u64,
}

/// How often requests were answered with a type of problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FigureReason")]
pub struct ReasonReply {
    /// Last part of the problem's type.
    pub reason: String,
    /// The problem's title.
    pub title: String,
    /// Number of requests.
    pub count: u64,
}

/// How long the handlers of a function took.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FigureLatency")]
pub struct LatencyReply {
    /// Name of the function.
    pub function: String,
    /// Milliseconds that half of them took at most: the median of the minutes' medians.
    pub p50_ms: f64,
    /// Milliseconds that 99 of a hundred took at most, in the slowest minute.
    pub p99_ms: f64,
    /// Number of pieces of work.
    pub count: u64,
}

/// What the metrics say of the last minutes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Figures")]
pub struct FiguresReply {
    /// Sale id.
    pub sale: SaleId,
    /// Time up to which everything is counted.
    pub as_of: Timestamp,
    /// Seconds from one point to the next.
    pub period_seconds: u32,
    /// Seconds that the figures are behind at least; 0 if they are live.
    pub delay_seconds: u32,
    /// Each minute of the sale, the earliest first. If the figures are live, the last one is not over.
    pub points: Vec<PointReply>,
    /// Requests of the whole stage that were refused, by the type of the problem, the most frequent first.
    pub refused: Vec<ReasonReply>,
    /// Requests of the whole stage that failed, likewise.
    pub server_errors: Vec<ReasonReply>,
    /// Latency of each function of the stage that worked.
    pub latency: Vec<LatencyReply>,
}

impl FiguresReply {
    /// The figures of a sale.
    #[must_use]
    pub fn new(sale: SaleId, figures: &Figures) -> Self {
        let of_function = figures.latency().into_iter();
        Self {
            sale,
            as_of: figures.as_of,
            period_seconds: PERIOD_SECONDS,
            delay_seconds: figures.delay_seconds,
            points: figures.each_minute().map(|minute| point(figures, minute)).collect(),
            refused: reasons(figures, false),
            server_errors: reasons(figures, true),
            latency: of_function
                .map(|(function, latency)| LatencyReply {
                    function: function.as_str().to_owned(),
                    p50_ms: rounded(latency.p50_ms),
                    p99_ms: rounded(latency.p99_ms),
                    count: latency.count,
                })
                .collect(),
        }
    }
}

fn point(figures: &Figures, minute: Minute) -> PointReply {
    let count = |metric| figures.count(minute, metric);
    PointReply {
        at: minute.start(),
        admitted: count(Metric::Admitted),
        waiting: count(Metric::Waiting),
        held: count(Metric::Held),
        paid: count(Metric::Paid),
        expired: count(Metric::Expired),
        cancelled: count(Metric::Cancelled),
        joined: count(Metric::Joined),
        served: count(Metric::Served),
        came: count(Metric::Came),
    }
}

/// The problems that are errors of the server, or those that are not.
fn reasons(figures: &Figures, of_server: bool) -> Vec<ReasonReply> {
    let is_of = |kind: &Kind| kind.status().is_server_error() == of_server;
    let of_kind = figures.problems().into_iter().filter(|(kind, count)| is_of(kind) && *count > 0);
    let reply = |(kind, count): (Kind, u64)| ReasonReply {
        reason: kind.slug().to_owned(),
        title: kind.title().to_owned(),
        count,
    };
    let mut reasons: Vec<ReasonReply> = of_kind.map(reply).collect();
    reasons.sort_by(|one, other| {
        other.count.cmp(&one.count).then_with(|| one.reason.cmp(&other.reason))
    });
    reasons
}

/// Milliseconds to a hundredth.
fn rounded(ms: f64) -> f64 {
    (ms * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;
    use crate::figures::{Latency, StageMinute};
    use crate::runtime::functions::Function;

    #[test]
    fn figures_are_told_by_the_minute_and_what_is_most_frequent_first() {
        let last = Minute::of(Timestamp::from_ms(1_800_000_000_000));
        let problems = [
            (Kind::SoldOut, 3),
            (Kind::Waiting, 7),
            (Kind::NotAdmitted, 3),
            (Kind::Unavailable, 1),
            (Kind::Invalid, 0),
        ];
        let latency = Latency { count: 4, p50_ms: 1.236, p99_ms: 20.0 };
        let stage = StageMinute {
            problems: problems.into(),
            latency: BTreeMap::from([(Function::Reserve, latency)]),
        };
        let counts = [(Metric::Paid, 2), (Metric::Came, 1)].into();
        let figures = Figures {
            last,
            minutes: 2,
            as_of: last.end(),
            delay_seconds: 60,
            sale: BTreeMap::from([(last, counts)]),
            stage: BTreeMap::from([(last, stage)]),
        };
        let reply = json!(FiguresReply::new(SaleId::new("hall").unwrap(), &figures));
        let point = |at: &str, paid, came| {
            json!({ "at": at, "admitted": 0, "waiting": 0, "held": 0, "paid": paid, "expired": 0,
                "cancelled": 0, "joined": 0, "served": 0, "came": came })
        };
        let reason = |reason: &str, title: &str, count| json!({ "reason": reason, "title": title, "count": count });
        let expected = json!({
            "sale": "hall", "as_of": last.end(), "period_seconds": 60, "delay_seconds": 60,
            "points": [
                point(&String::from(last.before(1).start()), 0, 0),
                point(&String::from(last.start()), 2, 1),
            ],
            "refused": [
                reason("waiting", Kind::Waiting.title(), 7),
                reason("not-admitted", Kind::NotAdmitted.title(), 3),
                reason("sold-out", Kind::SoldOut.title(), 3),
            ],
            "server_errors": [reason("unavailable", Kind::Unavailable.title(), 1)],
            "latency": [{ "function": "reserve", "p50_ms": 1.24, "p99_ms": 20.0, "count": 4 }],
        });
        assert_eq!(reply, expected);
    }
}
