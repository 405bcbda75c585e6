//! Alarms, dashboard and runbook, held against each other and against the metrics that the code
//! writes. Each check is shown at work on a planted mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use shared::http::problem::Kind;
use shared::runtime::metrics::{Function, Metric, NAMESPACE};

use crate::program::onsale;

/// Emitted metrics that neither an alarm nor the dashboard uses, on purpose.
const UNUSED: [&str; 0] = [];

/// What AWS publishes of what we deploy: namespace, metric, dimensions.
const OF_AWS: [(&str, &str, &[&str]); 15] = [
    ("AWS/SQS", "ApproximateAgeOfOldestMessage", &["QueueName"]),
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible", &["QueueName"]),
    ("AWS/ApiGateway", "5xx", &["ApiId"]),
    ("AWS/Lambda", "Errors", &["FunctionName"]),
    ("AWS/Lambda", "Throttles", &["FunctionName"]),
    ("AWS/Lambda", "ConcurrentExecutions", &["FunctionName"]),
    ("AWS/DynamoDB", "ReadThrottleEvents", &["TableName"]),
    ("AWS/DynamoDB", "WriteThrottleEvents", &["TableName"]),
    ("AWS/DynamoDB", "ReadThrottleEvents", &["TableName", "GlobalSecondaryIndexName"]),
    ("AWS/DynamoDB", "WriteThrottleEvents", &["TableName", "GlobalSecondaryIndexName"]),
    ("AWS/ElastiCache", "ThrottledCmds", &["clusterId"]),
    ("AWS/ElastiCache", "Evictions", &["clusterId"]),
    ("AWS/ElastiCache", "ElastiCacheProcessingUnits", &["clusterId"]),
    ("AWS/ElastiCache", "EngineCPUUtilization", &["ReplicationGroupId", "Role"]),
    (
        "AWS/ElastiCache",
        "DatabaseMemoryUsageCountedForEvictPercentage",
        &["ReplicationGroupId", "Role"],
    ),
];

/// What an alarm must ask, by its section of the runbook: comparison and threshold.
const BOUNDS: [(&str, &str, f64); 9] = [
    ("queue-backlog", "GreaterThanThreshold", 1000.0),
    ("dead-letters", "GreaterThanThreshold", 0.0),
    ("transaction-failures", "GreaterThanThreshold", 0.1),
    ("claim-conflicts", "GreaterThanThreshold", 1.0),
    ("version-conflicts", "GreaterThanThreshold", 5.0),
    ("pending-past-bound", "GreaterThanThreshold", 0.0),
    ("drift-found", "GreaterThanThreshold", 0.0),
    ("payments-unreadable", "GreaterThanThreshold", 0.0),
    ("internal-errors", "GreaterThanThreshold", 0.0),
];

/// What one graph or another must show: a metric by one dimension.
const SHOWN: [(&str, &str); 10] = [
    ("Admitted", "Sale"),
    ("Waiting", "Sale"),
    ("HeldTickets", "Sale"),
    ("PaidTickets", "Sale"),
    ("Expired", "Sale"),
    ("Cancelled", "Sale"),
    ("Available", "Sale"),
    ("Refused", "Reason"),
    ("Latency", "Function"),
    ("ColdStarts", "Function"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Reads templates with SAM's own parser, in its environment of `make setup`.
const PARSER: &str = "
import json, sys
from samcli.yamlhelper import yaml_parse
json.dump([yaml_parse(text) for text in json.load(sys.stdin)], sys.stdout)";

/// Some templates, read.
fn parsed(templates: &[String]) -> Vec<Value> {
    let mut python = Command::new(root().join(".onsale/tools/sam/bin/python"))
        .args(["-c", PARSER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("scripts/setup installs it");
    let input = json!(templates).to_string();
    python.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A value as it is after deployment to stage `dev`; what only AWS knows is `<resource>`.
fn text(value: &Value) -> String {
    let sub = |text: &str| {
        let mut parts = text.split("${");
        let mut resolved = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (name, rest) = part.split_once('}').unwrap();
            resolved += &of_name(name);
            resolved += rest;
        }
        resolved
    };
    match (value["Ref"].as_str(), value["Fn::Sub"].as_str(), value["Fn::GetAtt"][0].as_str()) {
        (Some(name), _, _) | (_, _, Some(name)) => of_name(name),
        (_, Some(text), _) => sub(text),
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

fn of_name(name: &str) -> String {
    if name == "Stage" { "dev".to_owned() } else { format!("<{name}>") }
}

/// A use of a metric: by an alarm or a widget, of a name and dimensions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MetricUse {
    by: String,
    namespace: String,
    name: String,
    dimensions: Vec<(String, String)>,
}

impl MetricUse {
    fn dimension(&self, name: &str) -> Option<&str> {
        let found = self.dimensions.iter().find(|(dimension, _)| dimension == name);
        found.map(|(_, value)| value.as_str())
    }

    /// What is wrong with it: nobody writes such a metric, or of nothing that is deployed.
    fn faults(&self, resources: &Value) -> Vec<String> {
        let Self { by, namespace, name, .. } = self;
        let names: Vec<&str> = self.dimensions.iter().map(|(name, _)| name.as_str()).collect();
        let is_emitted = if namespace == NAMESPACE {
            let metric = Metric::ALL.into_iter().find(|metric| metric.row().name == name);
            metric.is_some_and(|metric| metric.row().dimensions.sets().contains(&names.as_slice()))
        } else {
            OF_AWS.iter().any(|(space, metric, dimensions)| {
                space == namespace && metric == name && *dimensions == names.as_slice()
            })
        };
        let mut faults = Vec::new();
        if !is_emitted {
            faults.push(format!("{by}: nobody writes {namespace} {name} by {names:?}"));
        }
        let types = [
            ("QueueName", "AWS::SQS::Queue"),
            ("FunctionName", "AWS::Serverless::Function"),
            ("TableName", "AWS::DynamoDB::Table"),
            ("ApiId", "AWS::Serverless::HttpApi"),
        ];
        for (dimension, value) in &self.dimensions {
            let is_known = match dimension.as_str() {
                "Stage" => value == "dev",
                "Function" => Function::ALL.iter().any(|function| value == function.as_str()),
                "Reason" => Kind::ALL.iter().any(|kind| value == kind.slug()),
                "Sale" => value == "-",
                other => match types.iter().find(|(name, _)| *name == other) {
                    Some((_, kind)) => of_type(resources, kind, value),
                    None => true,
                },
            };
            if !is_known {
                faults.push(format!("{by}: {name} by {dimension} {value}, which there is not"));
            }
        }
        faults
    }
}

/// True if a resource of this type is referred to, or has this name.
fn of_type(resources: &Value, kind: &str, value: &str) -> bool {
    resources.as_object().unwrap().iter().any(|(id, resource)| {
        let name = text(&resource["Properties"]["QueueName"]);
        resource["Type"] == kind && (value == format!("<{id}>") || value == name)
    })
}

fn ids(resources: &Value, kind: &str) -> Vec<String> {
    let resources = resources.as_object().unwrap().iter();
    let of_kind = resources.filter(|(_, resource)| resource["Type"] == kind);
    of_kind.map(|(id, _)| id.clone()).collect()
}

fn metric(by: &str, stat: &Value) -> MetricUse {
    let dimension = |one: &Value| (text(&one["Name"]), text(&one["Value"]));
    MetricUse {
        by: by.to_owned(),
        namespace: text(&stat["Namespace"]),
        name: text(&stat["MetricName"]),
        dimensions: stat["Dimensions"].as_array().into_iter().flatten().map(dimension).collect(),
    }
}

/// An alarm's metrics, and what is wrong with how it puts them together.
fn of_alarm(id: &str, alarm: &Value) -> (Vec<MetricUse>, Vec<String>) {
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
fn faults_of_alarm(id: &str, alarm: &Value, sections: &BTreeMap<String, String>) -> Vec<String> {
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

/// The sections of the runbook: an anchor and what stands below it.
fn sections(runbook: &str) -> BTreeMap<String, String> {
    let parts = runbook.split("\n## ").skip(1).filter_map(|part| part.split_once('\n'));
    parts.map(|(title, body)| (title.to_owned(), body.to_owned())).collect()
}

/// The metrics of a widget: arrays of which `.` and `...` are not used, and expressions.
fn of_widget(title: &str, widget: &Value) -> (Vec<MetricUse>, Vec<String>) {
    let (mut used, mut faults) = (Vec::new(), Vec::new());
    for row in widget["properties"]["metrics"].as_array().into_iter().flatten() {
        let cells: Vec<&str> = row.as_array().unwrap().iter().filter_map(Value::as_str).collect();
        if let Some(expression) = row[0]["expression"].as_str() {
            match searched(title, expression) {
                Some(found) => used.push(found),
                None => faults.push(format!("{title}: cannot read {expression}")),
            }
            continue;
        }
        let [namespace, name, dimensions @ ..] = cells.as_slice() else {
            faults.push(format!("{title}: {row}"));
            continue;
        };
        let pairs = dimensions.chunks(2).map(|pair| match pair {
            [name, value] => ((*name).to_owned(), (*value).to_owned()),
            _ => ("?".to_owned(), "?".to_owned()),
        });
        used.push(MetricUse {
            by: title.to_owned(),
            namespace: (*namespace).to_owned(),
            name: (*name).to_owned(),
            dimensions: pairs.collect(),
        });
    }
    (used, faults)
}

/// The metric of `SEARCH('{Namespace,Dimension,…} Stage="dev" MetricName="Name"', 'Sum', 60)`, and
/// of what a list is filled from.
fn searched(by: &str, expression: &str) -> Option<MetricUse> {
    let (schema, rest) = expression.split_once('{')?.1.split_once('}')?;
    let (namespace, dimensions) = schema.split_once(',')?;
    let name = rest.split_once("MetricName=\"")?.1.split_once('"')?.0;
    rest.contains("Stage=\"dev\"").then_some(())?;
    let any = |dimension: &str| match dimension {
        "Stage" => "dev".to_owned(),
        "Function" => "reserve".to_owned(),
        "Reason" => "waiting".to_owned(),
        _ => "-".to_owned(),
    };
    let dimensions = dimensions.split(',').map(|name| (name.to_owned(), any(name))).collect();
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Some(MetricUse { by: by.to_owned(), namespace, name, dimensions })
}

/// The dashboard's metrics, and what CloudWatch would not take of it.
fn of_dashboard(body: &str) -> (Vec<MetricUse>, Vec<String>) {
    let Ok(dashboard) = serde_json::from_str::<Value>(body) else {
        return (Vec::new(), vec!["the dashboard is no JSON".to_owned()]);
    };
    let (mut used, mut faults) = (Vec::new(), Vec::new());
    let mut taken = BTreeSet::new();
    let widgets = dashboard["widgets"].as_array().cloned().unwrap_or_default();
    for widget in &widgets {
        let properties = &widget["properties"];
        let title = properties["title"].as_str().or(properties["markdown"].as_str()).unwrap_or("?");
        let [x, y, width, height] =
            ["x", "y", "width", "height"].map(|name| widget[name].as_u64().unwrap_or(99));
        let cells = (x..x + width).flat_map(|x| (y..y + height).map(move |y| (x, y)));
        let covered = cells.filter(|cell| !taken.insert(*cell)).count();
        if x + width > 24 || covered > 0 {
            faults.push(format!("{title}: lies over another widget, or beyond the edge"));
        }
        match widget["type"].as_str() {
            Some("text") => {}
            Some("metric") => {
                let needed = ["title", "region", "view", "period", "stat", "metrics"];
                let missing = needed.iter().find(|name| properties.get(**name).is_none());
                faults.extend(missing.map(|name| format!("{title}: no {name}")));
                let (metrics, wrong) = of_widget(title, widget);
                used.extend(metrics);
                faults.extend(wrong);
            }
            _ => faults.push(format!("{title}: no widget")),
        }
    }
    let variable = &dashboard["variables"][0];
    let chooses = [("type", "property"), ("property", "Sale"), ("populateFrom", "Sale")];
    if !chooses.iter().all(|(name, value)| variable[name] == *value) {
        faults.push("the dashboard does not choose a sale".to_owned());
    }
    match searched("the list of sales", variable["search"].as_str().unwrap_or_default()) {
        Some(found) => used.push(found),
        None => faults.push("the list of sales has no metric".to_owned()),
    }
    for (name, dimension) in SHOWN {
        let is_it = |one: &MetricUse| one.name == name && one.dimension(dimension).is_some();
        if !used.iter().any(is_it) {
            faults.push(format!("the dashboard does not show {name} by {dimension}"));
        }
    }
    for stat in ["p50", "p99"] {
        let has = |row: &Value| row[1] == "Latency" && row[6]["stat"] == stat;
        let mut rows = widgets.iter().filter_map(|one| one["properties"]["metrics"].as_array());
        if !rows.any(|rows| rows.iter().any(has)) {
            faults.push(format!("the dashboard shows no {stat}"));
        }
    }
    (used, faults)
}

/// Everything that is wrong with the alarms and the dashboard of a template, and with the runbook.
fn faults(template: &Value, runbook: &str) -> Vec<String> {
    let resources = &template["Resources"];
    let sections = sections(runbook);
    let mut faults = Vec::new();
    let mut alarmed = Vec::new();
    let mut names = BTreeSet::new();
    let mut anchors = BTreeSet::new();
    for id in ids(resources, "AWS::CloudWatch::Alarm") {
        let alarm = &resources[&id]["Properties"];
        faults.extend(faults_of_alarm(&id, alarm, &sections));
        let (metrics, wrong) = of_alarm(&id, alarm);
        faults.extend(wrong);
        alarmed.extend(metrics);
        if !names.insert(text(&alarm["AlarmName"])) {
            faults.push(format!("{id}: another alarm has its name"));
        }
        anchors.extend(text(&alarm["AlarmDescription"]).split('#').next_back().map(str::to_owned));
    }
    for (section, body) in &sections {
        if !anchors.contains(section) {
            faults.push(format!("section {section} is of no alarm"));
        }
        for part in ["**Means.**", "**Look at.**", "**Do.**"] {
            if body.matches(part).count() != 1 {
                faults.push(format!("section {section} lacks {part}"));
            }
        }
    }
    let body = text(&resources["Dashboard"]["Properties"]["DashboardBody"]);
    let (shown, wrong) = of_dashboard(&body);
    faults.extend(wrong);
    let used: Vec<&MetricUse> = alarmed.iter().chain(&shown).collect();
    faults.extend(used.iter().flat_map(|one| one.faults(resources)));

    for metric in Metric::ALL.map(|metric| metric.row().name) {
        let is_used = used.iter().any(|one| one.namespace == NAMESPACE && one.name == metric);
        if is_used == UNUSED.contains(&metric) {
            faults.push(format!("{metric} is written and not used, or used and listed as unused"));
        }
    }
    let mut watched = |kind: &str, dimension: &str, metrics: &[&str]| {
        for id in ids(resources, kind) {
            let is_dead = id.ends_with("DeadLetterQueue");
            for metric in metrics.iter().filter(|name| !is_dead || name.ends_with("Visible")) {
                let is_it = |one: &&MetricUse| {
                    one.name == **metric && one.dimension(dimension) == Some(&format!("<{id}>"))
                };
                if !alarmed.iter().any(|one| is_it(&one)) {
                    faults.push(format!("no alarm watches {metric} of {id}"));
                }
            }
        }
    };
    let of_queue = ["ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"];
    watched("AWS::SQS::Queue", "QueueName", &of_queue);
    watched("AWS::Serverless::Function", "FunctionName", &["Errors", "Throttles"]);
    let of_table = ["ReadThrottleEvents", "WriteThrottleEvents"];
    watched("AWS::DynamoDB::Table", "TableName", &of_table);

    let variables = &template["Globals"]["Function"]["Environment"]["Variables"];
    if variables["ONSALE_METRICS"] != "emf"
        || variables["ONSALE_STAGE"] != json!({ "Ref": "Stage" })
    {
        faults.push("the functions write no metrics of the stage".to_owned());
    }
    // Lambda takes a record, which has no level, for INFO.
    let levels = template["Parameters"]["LogLevel"]["AllowedValues"].as_array();
    let is_low = |level: &Value| ["TRACE", "DEBUG", "INFO"].iter().any(|low| level == low);
    if !levels.is_some_and(|levels| levels.iter().all(is_low)) {
        faults.push("a log level would drop the metrics".to_owned());
    }
    let topic = &resources["AlarmTopic"]["Properties"];
    if topic["KmsMasterKeyId"] != json!({ "Ref": "AlarmKey" }) {
        faults.push("the topic is not encrypted by a key that lets alarms publish".to_owned());
    }
    let statements = resources["AlarmKey"]["Properties"]["KeyPolicy"]["Statement"].as_array();
    let lets_publish = |statement: &Value| {
        statement["Principal"]["Service"] == "cloudwatch.amazonaws.com"
            && statement["Action"] == json!(["kms:Decrypt", "kms:GenerateDataKey"])
    };
    if !statements.is_some_and(|all| all.iter().any(lets_publish)) {
        faults.push("the key lets no alarm publish".to_owned());
    }
    faults
}

/// The template.
fn template() -> &'static Value {
    static TEMPLATE: OnceLock<Value> = OnceLock::new();
    TEMPLATE.get_or_init(|| parsed(&[read("template.yaml")]).remove(0))
}

#[test]
fn alarms_dashboard_and_runbook_are_of_one_piece() {
    let found = faults(template(), &read("docs/runbook.md"));
    assert_eq!(found, Vec::<String>::new(), "{found:#?}");
    let alarms = ids(&template()["Resources"], "AWS::CloudWatch::Alarm").len();
    assert!(alarms > 30, "{alarms} alarms");
}

/// The controls: each mistake is found.
#[test]
fn each_mistake_is_found() {
    // What is replaced, where it first stands in the section; and what is then said.
    let mistakes = [
        ("MetricName: DriftFound", "MetricName: Drift", "nobody writes Onsale Drift"),
        (
            "MetricName: TransactionFailures",
            "MetricName: Failures",
            "nobody writes Onsale Failures",
        ),
        (
            "{ Name: Reason, Value: invalid }",
            "{ Name: Sale, Value: invalid }",
            "nobody writes Onsale PaymentsRefused",
        ),
        (
            "{ Name: Reason, Value: invalid }",
            "{ Name: Reason, Value: wrong }",
            "Reason wrong, which there is not",
        ),
        (
            "{ Name: Function, Value: reserve }",
            "{ Name: Function, Value: buy }",
            "Function buy, which there is not",
        ),
        (
            "docs/runbook.md#drift-found",
            "docs/runbook.md#drift",
            "DriftFound: no section of the runbook",
        ),
        ("Threshold: 1000", "Threshold: 10000", "ExpiryQueueBacklog: another threshold"),
        ("Threshold: 0.1", "Threshold: 1", "TransactionFailures: another threshold"),
        ("100 * failures / transactions", "100 * failed / transactions", "TransactionFailures: IF"),
        ("{ Id: held, ReturnData: false,", "{ Id: held,", "more than the expression is returned"),
        (
            "Name: QueueName, Value: !GetAtt RefundQueue.QueueName",
            "Name: QueueName, Value: !GetAtt SyncQueue.QueueName",
            "of RefundQueue",
        ),
        (
            "Name: FunctionName, Value: !Ref OrdersFunction",
            "Name: FunctionName, Value: !Ref SalesFunction",
            "no alarm watches Errors of OrdersFunction",
        ),
        ("DatapointsToAlarm: 2", "DatapointsToAlarm: 4", "more data points than periods"),
        (
            "TreatMissingData: breaching",
            "TreatMissingData: ignore",
            "ReconcileMissing: missing data",
        ),
        ("-onsale-sync-queue-old", "-onsale-expiry-queue-old", "another alarm has its name"),
        (
            "KmsMasterKeyId: !Ref AlarmKey",
            "KmsMasterKeyId: alias/aws/sns",
            "the topic is not encrypted",
        ),
        (
            "Action: [kms:Decrypt, kms:GenerateDataKey]",
            "Action: kms:Decrypt",
            "the key lets no alarm publish",
        ),
        ("\"HeldTickets\"", "\"Tickets\"", "nobody writes Onsale Tickets"),
        (
            "\"Sale\", \"-\", {\"label\": \"tickets sold\"",
            "{\"label\": \"tickets sold\"",
            "does not show PaidTickets by Sale",
        ),
        ("MetricName=\\\"Refused\\\"", "MetricName=\\\"Held\\\"", "nobody writes Onsale Held"),
        ("\"stat\": \"p99\"", "\"stat\": \"p90\"", ""),
        ("\"property\": \"Sale\"", "\"property\": \"Function\"", "does not choose a sale"),
        ("\"x\": 8, ", "\"x\": 7, ", "lies over another widget"),
        ("\"view\": \"timeSeries\", ", "", "no view"),
        ("\"start\": \"-PT3H\",", "\"start\": \"-PT3H\"", "the dashboard is no JSON"),
        ("ONSALE_METRICS: emf", "ONSALE_METRICS: none", "the functions write no metrics"),
        ("AllowedValues: [DEBUG, INFO]", "AllowedValues: [INFO, WARN]", "a log level would drop"),
    ];
    let text = read("template.yaml");
    let (above, section) = text.split_once("- alarms and dashboard\n").unwrap();
    let edited = |(from, to, _): &(&str, &str, &str)| {
        if section.contains(from) {
            return format!("{above}- alarms and dashboard\n{}", section.replacen(from, to, 1));
        }
        assert!(above.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let runbook = read("docs/runbook.md");
    let templates: Vec<String> = mistakes.iter().map(edited).collect();
    for ((from, to, expected), template) in mistakes.iter().zip(parsed(&templates)) {
        let found = faults(&template, &runbook);
        let is_said = found.iter().any(|fault| fault.contains(expected));
        // One p99 of three is no fault.
        assert!(is_said != expected.is_empty(), "{from} -> {to}: {found:#?}");
    }

    let mistakes = [
        ("## cold-starts\n", "## cold-start\n", "ColdStarts: no section of the runbook"),
        (
            "# Stores\n",
            "## sleep\n\n**Means.** **Look at.** **Do.**\n",
            "section sleep is of no alarm",
        ),
        ("**Do.** Raise the quota", "Raise the quota", "section function-throttles lacks **Do.**"),
    ];
    for (from, to, expected) in mistakes {
        assert!(runbook.contains(from), "{from}");
        let found = faults(template(), &runbook.replacen(from, to, 1));
        assert!(found.iter().any(|fault| fault.contains(expected)), "{from} -> {to}: {found:#?}");
    }
}

/// Every command of the runbook is one that `onsale` has, with these options.
#[test]
fn the_runbook_names_commands_that_there_are() {
    let runbook = read("docs/runbook.md");
    let blocks = runbook.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let commands: Vec<&str> = lines.filter_map(|line| line.strip_prefix("onsale ")).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    let is_known = |command: &str| {
        let mut run = Command::new(onsale());
        run.args(command.split(' ')).arg("--help").stdout(Stdio::null()).stderr(Stdio::null());
        run.status().unwrap().success()
    };
    for command in commands {
        assert!(is_known(command), "onsale {command}");
    }
    assert!(!is_known("reconcile --wet-run --from-environment"), "the control");
    assert!(!is_known("repair --from-environment"), "the control");
}
