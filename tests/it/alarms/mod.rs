//! Alarms, dashboard and runbook, held against each other and against the metrics that the code
//! writes. Each check is shown at work on a planted mistake.

mod alarm;
mod dashboard;
mod metric_use;
mod mistakes;
mod template;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use shared::runtime::metrics::{Metric, NAMESPACE};

use self::alarm::{faults_of_alarm, of_alarm};
use self::dashboard::of_dashboard;
use self::metric_use::MetricUse;
use self::template::{ids, parsed, template, text};
use crate::program::onsale;
use text::read;

/// Emitted metrics that neither an alarm nor the dashboard uses, on purpose.
const UNUSED: [&str; 0] = [];

/// The sections of the runbook: an anchor and the text below it.
fn sections(runbook: &str) -> BTreeMap<String, String> {
    let parts = runbook.split("\n## ").skip(1).filter_map(|part| part.split_once('\n'));
    parts.map(|(title, body)| (title.to_owned(), body.to_owned())).collect()
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
    let templates: Vec<String> = mistakes::OF_TEMPLATE.iter().map(edited).collect();
    for ((from, to, expected), template) in mistakes::OF_TEMPLATE.iter().zip(parsed(&templates)) {
        let found = faults(&template, &runbook);
        let is_said = found.iter().any(|fault| fault.contains(expected));
        // One p99 of three is no fault.
        assert!(is_said != expected.is_empty(), "{from} -> {to}: {found:#?}");
    }

    for (from, to, expected) in mistakes::OF_RUNBOOK {
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
