//! An alarm: its metrics, its threshold, and its section of the runbook.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::metric_use::{MetricUse, metric};
use super::template::text;

/// What an alarm must ask, by its section of the runbook: comparison and threshold.
const BOUNDS: [(&str, &str, f64); 15] = [
    ("events-given-up", "GreaterThanThreshold", 0.0),
    ("events-behind", "GreaterThanThreshold", 900.0),
    ("queue-backlog", "GreaterThanThreshold", 1000.0),
    ("dead-letters", "GreaterThanThreshold", 0.0),
    ("transaction-failures", "GreaterThanThreshold", 0.1),
    ("claim-conflicts", "GreaterThanThreshold", 1.0),
    ("version-conflicts", "GreaterThanThreshold", 5.0),
    ("pending-past-bound", "GreaterThanThreshold", 0.0),
    ("drift-found", "GreaterThanThreshold", 0.0),
    ("payments-unreadable", "GreaterThanThreshold", 0.0),
    ("turns-late", "GreaterThanThreshold", 120.0),
    ("rooms-stalled", "GreaterThanThreshold", 5.0),
    ("rooms-tripped", "GreaterThanThreshold", 0.0),
    ("rooms-halted", "GreaterThanThreshold", 0.0),
    ("internal-errors", "GreaterThanThreshold", 0.0),
];

/// An alarm's metrics, and what is wrong with how it puts them together.
pub(super) fn of_alarm(id: &str, alarm: &Value) -> (Vec<MetricUse>, Vec<String>) {
    let Some(metrics) = alarm["Metrics"].as_array() else {
        return (vec![metric(id, alarm)], Vec::new());
    };
    let mut faults = Vec::new();
    let (stats, expressions): (Vec<&Value>, Vec<&Value>) =
        metrics.iter().partition(|query| query.get("MetricStat").is_some());
    if stats.len() > 10 || expressions.len() != 1 {
        faults.push(format!("{id}: ten metrics at most, and one expression"));
    }
    if stats.iter().any(|query| query["ReturnData"] != json!(false)) {
        faults.push(format!("{id}: more than the expression is returned"));
    }
    let names: BTreeSet<&str> = stats.iter().filter_map(|query| query["Id"].as_str()).collect();
    let expression =
        expressions.first().map_or_else(String::new, |query| text(&query["Expression"]));
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric());
    let used: BTreeSet<&str> =
        words.filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase())).collect();
    if !expression.contains("METRICS()") && used != names {
        faults.push(format!("{id}: {expression} of {names:?}"));
    }
    let used = stats.iter().map(|query| {
        let stat = &query["MetricStat"];
        metric(id, &stat["Metric"])
    });
    (used.collect(), faults)
}

/// What is wrong with an alarm by itself.
pub(super) fn faults_of_alarm(
    id: &str,
    alarm: &Value,
    sections: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |holds: bool, fault: &str| {
        if !holds {
            faults.push(format!("{id}: {fault}"));
        }
    };
    let description = text(&alarm["AlarmDescription"]);
    let anchor = description.rsplit_once(" docs/runbook.md#").map(|(_, anchor)| anchor);
    check(anchor.is_some_and(|anchor| sections.contains_key(anchor)), "no section of the runbook");
    let name = text(&alarm["AlarmName"]);
    check(name.starts_with("dev-onsale-"), "its name does not begin with its stage");
    let missing = text(&alarm["TreatMissingData"]);
    check(["breaching", "notBreaching"].contains(&missing.as_str()), "missing data");
    let evaluated = alarm["EvaluationPeriods"].as_u64().unwrap_or(0);
    let needed = alarm["DatapointsToAlarm"].as_u64().unwrap_or(evaluated);
    check((1..=evaluated).contains(&needed), "more data points than periods");
    for to in ["AlarmActions", "OKActions"] {
        let told = json!([{ "Fn::If": ["MakesAlarmTopic", { "Ref": "AlarmTopic" }, { "Ref": "AlarmTopicArn" }] }]);
        check(alarm[to] == told, "tells nobody");
    }
    let bound = BOUNDS.iter().find(|(section, _, _)| Some(*section) == anchor);
    check(
        bound.is_none_or(|(_, comparison, threshold)| {
            alarm["ComparisonOperator"] == *comparison
                && alarm["Threshold"].as_f64() == Some(*threshold)
        }),
        "another threshold than was asked for",
    );
    faults
}
