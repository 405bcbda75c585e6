//! Functions: their machines, what is reserved for them, the schedule, and names.

use std::collections::BTreeSet;

use serde_json::json;
use shared::http::routes::ROUTES;

use super::{Check, edit, number, text, unless};
use crate::template::stack::Stack;

/// Time that an HTTP API waits for its function, in seconds. Source: the quotas of API Gateway.
const GATEWAY_TIMEOUT_SECONDS: u64 = 30;

/// What an account may run at once unless its quota is raised, and what of it cannot be reserved.
/// Source: the quotas of Lambda.
const ACCOUNT_CONCURRENCY: u64 = 1_000;

const UNRESERVABLE: u64 = 100;

/// The functions that keep what buyers do from getting lost or stuck.
const NEVER_STARVED: [&str; 7] = [
    "decide-payment",
    "draw",
    "expire-orders",
    "load-sale",
    "pay-callback",
    "reconcile",
    "take-callback",
];

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "buyers cannot starve payments, expiry, loading or repair",
        faults: reserved,
        with: &[],
        mistakes: &[
            edit("  PayCallbackFunction:", "ReservedConcurrentExecutions:", "Tags: # "),
            edit(
                "  ExpireOrdersFunction:",
                "!If [ReservesConcurrency, !Ref ExpireOrdersConcurrency, !Ref AWS::NoValue]",
                "1",
            ),
            edit("  ReconcileFunction:", "[ReservesConcurrency, 1,", "[ReservesConcurrency, 5,"),
            edit(
                "  ReserveFunction:",
                "      VpcConfig:",
                "      ReservedConcurrentExecutions: 100\n      VpcConfig:",
            ),
            edit("  PayCallbackConcurrency:", "Default: 50", "Default: 950"),
        ],
    },
    Check {
        rule: "functions are small arm64 machines that end before their caller gives up",
        faults: machines,
        with: &[],
        mistakes: &[
            edit("  Architecture:", "Default: arm64", "Default: x86_64"),
            edit("  SalesFunction:", "Timeout: 29", "Timeout: 60"),
            edit("Globals:", "provided.al2023", "provided.al2"),
        ],
    },
    Check {
        rule: "sweeper, reader and teller come every minute and the reader of bills every hour, once, by roles that may call them alone",
        faults: schedule,
        with: &[],
        mistakes: &[
            edit("  ReconcileFunction:", "rate(1 minute)", "rate(5 minutes)"),
            edit("  ReadCapturesFunction:", "rate(1 minute)", "rate(5 minutes)"),
            edit("  ReadBillsFunction:", "rate(1 hour)", "rate(1 minute)"),
            edit(
                "  ReadCapturesFunction:",
                "EventInvokeConfig: { MaximumRetryAttempts: 0",
                "EventInvokeConfig: { MaximumRetryAttempts: 2",
            ),
            edit(
                "  ReconcileFunction:",
                "RetryPolicy: { MaximumRetryAttempts: 0 }",
                "RetryPolicy: { MaximumRetryAttempts: 5 }",
            ),
            edit(
                "  ReconcileFunction:",
                "EventInvokeConfig: { MaximumRetryAttempts: 0",
                "EventInvokeConfig: { MaximumRetryAttempts: 2",
            ),
        ],
    },
    Check {
        rule: "stages share an account: every name says whose it is",
        faults: names,
        with: &[],
        mistakes: &[
            edit(
                "  ReconcileFunction:",
                "            Name: !Sub \"${Stage}-onsale-reconcile\"\n",
                "",
            ),
            edit("  RefundQueue:", "\"${Stage}-onsale-refund\"", "onsale-refund"),
        ],
    },
];

pub(super) fn reserved(stack: &Stack) -> Vec<String> {
    let reserves = stack.parameters["ReserveConcurrency"] == "true";
    let mut faults = Vec::new();
    let mut sum = 0;
    for (binary, _, function) in stack.functions() {
        let own = number(&function["ReservedConcurrentExecutions"]);
        sum += own.unwrap_or(0);
        let is_guarded = NEVER_STARVED.contains(&binary);
        let least = if binary == "reconcile" { 1 } else { 2 };
        faults.extend(unless(
            binary,
            [
                (own.is_some() == (is_guarded && reserves), "is starved, or starves"),
                (own.is_none_or(|own| own >= least), "has too little to itself"),
                (binary != "reconcile" || own.is_none_or(|own| own == 1), "runs beside itself"),
            ],
        ));
    }
    let left = sum + UNRESERVABLE <= ACCOUNT_CONCURRENCY / 2;
    faults.extend(unless("all", [(left, "reserve what buyers need")]));
    faults
}

fn schedule(stack: &Stack) -> Vec<String> {
    let schedules: Vec<_> = stack.all("AWS::Scheduler::Schedule").collect();
    let calls: BTreeSet<&str> = schedules
        .iter()
        .filter_map(|(_, schedule)| stack.behind(&schedule["Target"]["Arn"]))
        .map(|(function, _)| function)
        .collect();
    let known =
        ["ReadBillsFunction", "ReadCapturesFunction", "ReconcileFunction", "SendEventsFunction"];
    let all = calls == known.into();
    let mut faults = unless("schedules", [(all && schedules.len() == known.len(), "call others")]);
    faults.extend(
        schedules.into_iter().flat_map(|(name, schedule)| of_schedule(stack, name, schedule)),
    );
    faults
}

fn of_schedule(stack: &Stack, name: &str, schedule: &serde_json::Value) -> Vec<String> {
    let target = &schedule["Target"];
    let (role_name, role) = stack.behind(&target["RoleArn"]).unwrap();
    let policies = role["Policies"].as_array().unwrap();
    let statement = &policies[0]["PolicyDocument"]["Statement"][0];
    let called = stack.behind(&target["Arn"]).map(|(function, _)| function);
    let once = stack.all("AWS::Lambda::EventInvokeConfig").any(|(_, config)| {
        let of = stack.behind(&config["FunctionName"]).map(|(function, _)| function);
        of == called
            && number(&config["MaximumRetryAttempts"]) == Some(0)
            && number(&config["MaximumEventAgeInSeconds"]) <= Some(60)
    });
    let may =
        statement["Action"] == "lambda:InvokeFunction" && statement["Resource"] == target["Arn"];
    let pace = if called == Some("ReadBillsFunction") { "rate(1 hour)" } else { "rate(1 minute)" };
    unless(
        name,
        [
            (schedule["ScheduleExpression"] == pace, "comes at another pace"),
            (number(&target["RetryPolicy"]["MaximumRetryAttempts"]) == Some(0), "is sent again"),
            (once, "waits its turn and runs late"),
            (
                !["ReconcileRole", "ReadBillsRole", "ReadCapturesRole", "SendEventsRole"]
                    .contains(&role_name)
                    && policies.len() == 1
                    && may,
                "its role may do more",
            ),
        ],
    )
}

pub(super) fn names(stack: &Stack) -> Vec<String> {
    // The field that a kind of thing is known by in its account and region.
    let fields = [
        ("AWS::DynamoDB::Table", "TableName"),
        ("AWS::ElastiCache::ReplicationGroup", "ReplicationGroupId"),
        ("AWS::ElastiCache::ServerlessCache", "ServerlessCacheName"),
        ("AWS::ElastiCache::User", "UserId"),
        ("AWS::ElastiCache::UserGroup", "UserGroupId"),
        ("AWS::Lambda::Function", "FunctionName"),
        ("AWS::Logs::LogGroup", "LogGroupName"),
        ("AWS::SQS::Queue", "QueueName"),
        ("AWS::Scheduler::Schedule", "Name"),
    ];
    let stage = &stack.parameters["Stage"];
    let mut taken = BTreeSet::new();
    let mut faults = Vec::new();
    for (kind, field) in fields {
        for (logical, properties) in stack.all(kind) {
            let name = text(&properties[field]);
            let is_ours = name.split(['/', '-']).any(|part| part == stage);
            let is_only = taken.insert((kind, name.to_owned()));
            faults.extend(unless(
                logical,
                [(is_ours, "has a name of every stage"), (is_only, "has another's name")],
            ));
        }
    }
    faults
}

fn machines(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let called: BTreeSet<String> =
        ROUTES.iter().map(|route| route.function.as_str().to_owned()).collect();
    for (binary, _, function) in stack.functions() {
        let timeout = number(&function["Timeout"]).unwrap_or(u64::MAX);
        let is_fitting = !called.contains(binary) || timeout < GATEWAY_TIMEOUT_SECONDS;
        faults.extend(unless(
            binary,
            [
                (function["Architectures"] == json!(["arm64"]), "is no arm64"),
                (function["Runtime"] == "provided.al2023", "has another runtime"),
                (is_fitting, "may take longer than its caller waits"),
            ],
        ));
    }
    faults
}
