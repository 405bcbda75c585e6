//! What is written is of CloudWatch's format and of the table, and holds no text of a caller.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use engine::domain::basics::time::Timestamp;
use serde_json::{Map, Value, json};
use shared::http::problem::Kind;
use shared::runtime::metrics::{Dimensions, Function, Metric, Metrics, NAMESPACE};

use super::STAGE;

/// A sink that can be looked into.
#[derive(Clone, Default)]
pub struct Lines(pub(super) Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// All lines since the last look, as they were written.
    pub fn text(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }

    /// The records since the last look, each checked.
    pub(super) fn take(&self) -> Vec<Value> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        let read = |line: &str| {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(defect(&record), None, "{record:#}");
            assert_eq!(unknown_member(&record), None, "{record:#}");
            record
        };
        text.lines().map(read).collect()
    }

    /// What was counted since the last look: `Name`, or `Name sale` or `Name reason`. How long it took
    /// is always told, and not looked at.
    pub fn counted(&self) -> BTreeMap<String, u64> {
        let mut counted = BTreeMap::new();
        for record in self.take() {
            for metric in Metric::ALL.into_iter().filter(|metric| *metric != Metric::Latency) {
                let Some(number) = record[metric.row().name].as_u64() else { continue };
                let by = match metric.row().dimensions {
                    Dimensions::Sale | Dimensions::EachSale => &record["Sale"],
                    Dimensions::Reason => &record["Reason"],
                    Dimensions::Function | Dimensions::EachFunction => &record["Function"],
                    Dimensions::Stage => &Value::Null,
                };
                let name = metric.row().name;
                let key = by.as_str().map_or_else(|| name.to_owned(), |by| format!("{name} {by}"));
                *counted.entry(key).or_default() += number;
            }
        }
        counted
    }
}

/// What CloudWatch would not take, by
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>,
/// or what our own table does not have.
fn defect(record: &Value) -> Option<String> {
    let Some(root) = record.as_object() else { return Some("no object".to_owned()) };
    let Some(aws) = root.get("_aws").and_then(Value::as_object) else {
        return Some("no _aws".to_owned());
    };
    if record.to_string().len() > 256 * 1024 {
        return Some("too long".to_owned());
    }
    if aws.keys().map(String::as_str).ne(["CloudWatchMetrics", "Timestamp"]) {
        return Some("_aws has other members".to_owned());
    }
    let is_now = |ms: u64| ms.abs_diff(Timestamp::now().ms() as u64) < 3_600_000;
    if !aws["Timestamp"].as_u64().is_some_and(is_now) {
        return Some("the timestamp is not now in milliseconds".to_owned());
    }
    let Some(directives) = aws["CloudWatchMetrics"].as_array().filter(|all| !all.is_empty()) else {
        return Some("no directive".to_owned());
    };
    let mut declared = BTreeSet::new();
    for directive in directives {
        if let Some(defect) = defect_of_directive(root, directive, &mut declared) {
            return Some(defect);
        }
    }
    let of_table = Metric::ALL.into_iter().map(|metric| metric.row().name);
    let written = of_table.filter(|name| root.contains_key(*name));
    let undeclared: Vec<&str> = written.filter(|name| !declared.contains(*name)).collect();
    (!undeclared.is_empty()).then(|| format!("{undeclared:?} without a declaration"))
}

fn defect_of_directive(
    root: &Map<String, Value>,
    directive: &Value,
    declared: &mut BTreeSet<String>,
) -> Option<String> {
    let Some(members) = directive.as_object() else { return Some("no directive".to_owned()) };
    if members.keys().map(String::as_str).ne(["Dimensions", "Metrics", "Namespace"]) {
        return Some("a directive has other members".to_owned());
    }
    if members["Namespace"] != NAMESPACE {
        return Some("another namespace".to_owned());
    }
    let sets = members["Dimensions"].as_array()?;
    for set in sets {
        let Some(set) = set.as_array().filter(|set| set.len() <= 30) else {
            return Some("no set of dimensions".to_owned());
        };
        for name in set {
            let target = name.as_str().and_then(|name| root.get(name)).and_then(Value::as_str);
            if !target.is_some_and(|text| (1..=1024).contains(&text.len()) && text.is_ascii()) {
                return Some(format!("dimension {name} has no target"));
            }
        }
    }
    let Some(metrics) = members["Metrics"].as_array().filter(|all| (1..=100).contains(&all.len()))
    else {
        return Some("no metrics".to_owned());
    };
    for definition in metrics {
        let (name, unit) = (definition["Name"].as_str()?, definition["Unit"].as_str());
        let Some(metric) = Metric::ALL.into_iter().find(|metric| metric.row().name == name) else {
            return Some(format!("{name} is not in the table"));
        };
        if !root.get(name).is_some_and(Value::is_number) {
            return Some(format!("metric {name} has no target"));
        }
        if unit != Some(metric.row().unit) {
            return Some(format!("{name} has another unit"));
        }
        if json!(sets) != json!(metric.row().dimensions.sets()) {
            return Some(format!("{name} has other dimensions"));
        }
        if !declared.insert(name.to_owned()) {
            return Some(format!("{name} is declared twice"));
        }
    }
    None
}

/// A member that the table does not have, or a text that is none of those that there may be.
fn unknown_member(record: &Value) -> Option<String> {
    let sales = ["hall", "tiny", "other", "room"];
    let is_known = |name: &str, value: &Value| match name {
        "_aws" => true,
        "Stage" => value == STAGE,
        "Function" => Function::ALL.iter().any(|function| value == function.as_str()),
        "Sale" => sales.iter().any(|sale| value == sale),
        "Reason" => Kind::ALL.iter().any(|kind| value == kind.slug()),
        name => Metric::ALL.iter().any(|metric| metric.row().name == name) && value.is_number(),
    };
    let mut members = record.as_object()?.iter();
    members.find(|(name, value)| !is_known(name, value)).map(|(name, _)| name.clone())
}

/// The controls: each mistake in a record is found.
#[tokio::test]
async fn a_record_that_is_wrong_is_found() {
    let lines = Lines::default();
    let metrics = Metrics::to(STAGE, lines.clone());
    metrics.of(Function::Reserve, async {}).await;
    let record = lines.take().remove(0);
    type Mistake = fn(&mut Value);
    let mistakes: [(&str, Mistake); 11] = [
        ("no _aws", |record| _ = record.as_object_mut().unwrap().remove("_aws")),
        ("the timestamp is not now in milliseconds", |record| {
            record["_aws"]["Timestamp"] = json!(1_800_000_000);
        }),
        ("_aws has other members", |record| record["_aws"]["Version"] = json!("0")),
        ("no directive", |record| record["_aws"]["CloudWatchMetrics"] = json!([])),
        ("another namespace", |record| {
            record["_aws"]["CloudWatchMetrics"][0]["Namespace"] = json!("Offsale");
        }),
        ("dimension \"Stage\" has no target", |record| record["Stage"] = json!(1)),
        ("metric Latency has no target", |record| record["Latency"] = json!("1")),
        ("Latency has another unit", |record| {
            record["_aws"] = json!({
                "Timestamp": record["_aws"]["Timestamp"],
                "CloudWatchMetrics": [{ "Namespace": "Onsale", "Dimensions": [["Stage", "Function"]],
                    "Metrics": [{ "Name": "Latency", "Unit": "Seconds" }] }]
            })
        }),
        ("ColdStarts has other dimensions", |record| {
            record["_aws"] = json!({
                "Timestamp": record["_aws"]["Timestamp"],
                "CloudWatchMetrics": [{ "Namespace": "Onsale", "Dimensions": [["Stage"]],
                    "Metrics": [{ "Name": "ColdStarts", "Unit": "Count" }] }]
            })
        }),
        ("[\"Held\"] without a declaration", |record| record["Held"] = json!(1)),
        ("Sold is not in the table", |record| {
            record["_aws"] = json!({
                "Timestamp": record["_aws"]["Timestamp"],
                "CloudWatchMetrics": [{ "Namespace": "Onsale", "Dimensions": [["Stage"]],
                    "Metrics": [{ "Name": "Sold", "Unit": "Count" }] }]
            })
        }),
    ];
    for (expected, mistake) in mistakes {
        let mut wrong = record.clone();
        mistake(&mut wrong);
        assert_eq!(defect(&wrong).as_deref(), Some(expected));
    }
    for (name, value) in [("Order", "17"), ("Sale", "invented"), ("Reason", "because alice")] {
        let mut wrong = record.clone();
        wrong[name] = json!(value);
        assert_eq!(unknown_member(&wrong).as_deref(), Some(name));
    }
}

/// `docs/metrics.md` is the table.
#[test]
fn the_document_has_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let document = fs::read_to_string(path).unwrap();
    let found: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    let row = |metric: Metric| {
        let row = metric.row();
        let set = |set: &&[&str]| format!("[{}]", set.join(", "));
        let sets: Vec<String> = row.dimensions.sets().iter().map(set).collect();
        format!("| `{}` | {} | {} | {} |", row.name, row.unit, sets.join(" "), row.means)
    };
    let table: Vec<String> = Metric::ALL.into_iter().map(row).collect();
    assert_eq!(found, table, "the table should be:\n{}", table.join("\n"));
}
