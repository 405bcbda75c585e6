//! Logs: whose, for how long, and of whom.

use std::collections::{BTreeMap, BTreeSet};

use super::{Check, edit, number, text, unless};
use crate::template::stack::Stack;

pub(super) const CHECKS: &[Check] = &[Check {
    rule: "every log is JSON, in a group of its own that ends some day, and names no buyer",
    faults: logs,
    with: &[],
    mistakes: &[
        edit(
            "  OrdersFunction:",
            "LogFormat: JSON, ApplicationLogLevel: !Ref LogLevel",
            "LogFormat: Text",
        ),
        edit("  OrdersFunction:", "LogGroup: !Ref OrdersLogs", "LogGroup: !Ref SalesLogs"),
        edit("  CancelLogs:", ", RetentionInDays: !Ref LogRetentionDays", ""),
        edit(
            "  Api:",
            "\"status\":\"$context.status\"",
            "\"who\":\"$context.authorizer.claims.sub\"",
        ),
    ],
}];

fn logs(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut groups = BTreeSet::new();
    for (binary, _, function) in stack.functions() {
        let logging = &function["LoggingConfig"];
        let group = stack.behind(&logging["LogGroup"]);
        let name = group.map(|(_, group)| text(&group["LogGroupName"]).to_owned());
        let expected = format!("/aws/lambda/{}", text(&function["FunctionName"]));
        faults.extend(unless(
            binary,
            [
                (logging["LogFormat"] == "JSON", "writes no JSON"),
                (name.as_ref() == Some(&expected), "has no log of its own"),
                (groups.insert(name), "shares its log"),
            ],
        ));
    }
    for (name, group) in stack.all("AWS::Logs::LogGroup") {
        faults.extend(unless(
            name,
            [(number(&group["RetentionInDays"]) > Some(0), "is kept for ever")],
        ));
    }
    let (_, stage) = stack.all("AWS::ApiGatewayV2::Stage").next().unwrap();
    let format = text(&stage["AccessLogSettings"]["Format"]);
    let fields: Result<BTreeMap<String, String>, _> = serde_json::from_str(format);
    let names_nobody = ["authorizer", "identity", "header", "path", "sourceIp"]
        .iter()
        .all(|word| !format.contains(word));
    faults.extend(unless(
        "the API's log",
        [
            (stack.behind(&stage["AccessLogSettings"]["DestinationArn"]).is_some(), "is nowhere"),
            (fields.is_ok_and(|fields| fields.contains_key("status")), "is no JSON with a status"),
            (names_nobody, "says who asked"),
        ],
    ));
    faults
}
