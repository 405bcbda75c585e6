//! Roles and what they allow.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::dynamodb::tables::secret_key;
use shared::http::routes::{Access, ROUTES, parameter_names};

use super::{Check, edit, text, unless};
use crate::template::deployed::FUNCTIONS;
use crate::template::permissions::list;
use crate::template::stack::{Stack, name_in};

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "each function has a role of its own, for Lambda",
        faults: roles,
        with: &[],
        mistakes: &[
            edit(
                "  OrdersFunction:",
                "Role: !GetAtt OrdersRole.Arn",
                "Role: !GetAtt SalesRole.Arn",
            ),
            edit("  OrdersRole:", "Service: lambda.amazonaws.com", "AWS: \"*\""),
            edit("  OrdersFunction:", "      Role: !GetAtt OrdersRole.Arn\n", ""),
        ],
    },
    Check {
        rule: "no right is for everything",
        faults: wildcards,
        with: &[],
        mistakes: &[
            edit("  ReserveRole:", "dynamodb:PutItem", "\"dynamodb:*\""),
            edit("  ReserveRole:", "Resource: !GetAtt SeatsTable.Arn", "Resource: \"*\""),
            edit("  FiguresRole:", "cloudwatch:GetMetricData", "cloudwatch:PutMetricData"),
            edit(
                "  ReserveRole:",
                "Resource: !GetAtt SeatsTable.Arn",
                "Resource: !Sub \"${SeatsTable.Arn}/*\"",
            ),
            edit(
                "  ReserveRole:",
                "[!Ref NetworkPolicy]",
                "[!Ref NetworkPolicy, arn:aws:iam::aws:policy/AmazonSQSFullAccess]",
            ),
            edit("  NetworkPolicy:", "          - Effect: Deny", "          - Effect: Allow"),
            edit(
                "  NetworkPolicy:",
                "ec2:DescribeSubnets]",
                "ec2:DescribeSubnets, ec2:RunInstances]",
            ),
            edit("  OperatorPolicy:", "/*/PUT/sales/*", "/*"),
        ],
    },
    Check {
        rule: "nobody but publication and draw may read the secrets of rooms",
        faults: secrets,
        with: &[],
        mistakes: &[
            edit("  ReconcileRole:", "[\"log#*\"]", "[\"log#*\", \"secret#*\"]"),
            edit("  ReconcileRole:", "[\"log#*\"]", "[\"*\"]"),
            edit("  ReconcileRole:", "[\"log#*\"]", "[\"s*\"]"),
            edit("  ReconcileRole:", "ForAllValues:StringLike", "ForAnyValue:StringLike"),
            edit(
                "  OrdersRole:",
                "Resource: !GetAtt OrdersTable.Arn",
                "Resource: !GetAtt RoomsTable.Arn",
            ),
        ],
    },
    Check {
        rule: "who speaks to WeChat Pay and Alipay reads their keys, and nobody else",
        faults: merchants,
        with: &[("MerchantsSecretArn", MERCHANTS)],
        mistakes: &[
            edit("  RefundRole:", "secretsmanager:GetSecretValue", "secretsmanager:ListSecrets"),
            edit("  RefundFunction:", "ONSALE_MERCHANTS_SECRET", "ONSALE_MERCHANTS"),
            edit(
                "  PayCallbackRole:",
                "Resource: !Ref MerchantsSecretArn",
                "Resource: !Ref PaymentSecret",
            ),
            edit(
                "  OrdersRole:",
                "Resource: !GetAtt OrdersLogs.Arn }\n",
                "Resource: !GetAtt OrdersLogs.Arn }\n              - { Effect: Allow, Action: secretsmanager:GetSecretValue, Resource: !Ref MerchantsSecretArn }\n",
            ),
        ],
    },
];

/// A secret with accounts at WeChat Pay and Alipay.
const MERCHANTS: &str = "arn:aws:secretsmanager:eu-central-1:000000000000:secret:merchants";
/// The functions that speak to providers, or believe what those send.
const KNOW_MERCHANTS: [&str; 6] =
    ["start-payment", "close-payments", "read-bills", "refund", "pay-callback", "take-callback"];

/// The one secret that a function reads by itself, if there is one, is told to it and allowed.
fn merchants(stack: &Stack) -> Vec<String> {
    let arn = &stack.parameters["MerchantsSecretArn"];
    let mut faults = Vec::new();
    for (binary, _, function) in stack.functions() {
        let of_secrets: BTreeSet<(Vec<String>, Vec<String>)> = stack
            .statements(function)
            .map(|statement| (list(&statement["Action"]), list(&statement["Resource"])))
            .filter(|(actions, _)| actions.iter().any(|one| one.starts_with("secretsmanager:")))
            .collect();
        let knows = !arn.is_empty() && KNOW_MERCHANTS.contains(&binary);
        let right = (vec!["secretsmanager:GetSecretValue".to_owned()], vec![arn.clone()]);
        let allowed: BTreeSet<_> = knows.then_some(right).into_iter().collect();
        let variables = &function["Environment"]["Variables"];
        let told = if knows { arn.as_str() } else { "" };
        faults.extend(unless(
            binary,
            [
                (of_secrets == allowed, "reads other secrets than it must"),
                (
                    variables["ONSALE_MERCHANTS_SECRET"].as_str().unwrap_or_default() == told,
                    "is told of another secret",
                ),
            ],
        ));
    }
    faults
}

fn roles(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut taken = BTreeSet::new();
    let binaries: BTreeSet<&str> = stack.functions().map(|(binary, ..)| binary).collect();
    faults.extend(unless("functions", [(binaries == FUNCTIONS.into(), "are others")]));
    for (binary, logical, function) in stack.functions() {
        let Some((role, properties)) = stack.behind(&function["Role"]) else {
            faults.push(format!("{binary}: has no role"));
            continue;
        };
        let trust = json!([{
            "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" },
            "Action": "sts:AssumeRole",
        }]);
        // One that SAM makes is called after the function, and has policies of AWS's own.
        let is_made_here = role != format!("{logical}Role");
        faults.extend(unless(
            binary,
            [
                (taken.insert(role), "shares a role"),
                (is_made_here, "has the role that SAM makes"),
                (
                    properties["AssumeRolePolicyDocument"]["Statement"] == trust,
                    "its role is taken by others",
                ),
            ],
        ));
    }
    faults
}

fn wildcards(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let interfaces = "arn:aws:ec2:eu-central-1:000000000000:*/*";
    let mine = ROUTES.iter().filter(|row| row.access == Access::Operator);
    let operator: Vec<String> = mine
        .map(|row| {
            let names = parameter_names(row.path);
            let path = names
                .fold(row.path.to_owned(), |path, name| path.replace(&format!("{{{name}}}"), "*"));
            let route = format!("{}{path}", row.method);
            format!("arn:aws:execute-api:eu-central-1:000000000000:${{Api}}/*/{route}")
        })
        .collect();
    let mut documents: Vec<(String, &Value)> = Vec::new();
    for (name, policy) in stack.all("AWS::IAM::ManagedPolicy") {
        documents.push((name.to_owned(), &policy["PolicyDocument"]));
    }
    for (name, role) in stack.all("AWS::IAM::Role") {
        for policy in role["Policies"].as_array().into_iter().flatten() {
            documents.push((name.to_owned(), &policy["PolicyDocument"]));
        }
        for arn in role["ManagedPolicyArns"].as_array().into_iter().flatten() {
            faults.extend(unless(
                name,
                [(text(arn) == "${NetworkPolicy}", "has a policy of others")],
            ));
        }
    }
    for (name, document) in documents {
        let mut denies = BTreeSet::new();
        let mut allows = BTreeSet::new();
        for statement in document["Statement"].as_array().unwrap() {
            let actions = list(&statement["Action"]);
            if statement["Effect"] == "Deny" {
                denies.extend(actions);
                continue;
            }
            for resource in list(&statement["Resource"]) {
                // What AWS knows no narrower: the template says why.
                let is_known = match name.as_str() {
                    "NetworkPolicy" => {
                        resource == interfaces
                            || actions.iter().all(|action| action.starts_with("ec2:Describe"))
                    }
                    "OperatorPolicy" => operator.contains(&resource),
                    "FiguresRole" if resource == "*" => actions == ["cloudwatch:GetMetricData"],
                    _ => !resource.contains('*'),
                };
                faults.extend(unless(&name, [(is_known, "is for every resource")]));
            }
            let is_wide = actions.iter().any(|action| action.contains('*'));
            faults.extend(unless(&name, [(!is_wide, "allows every action")]));
            allows.extend(actions);
        }
        let is_network = name == "NetworkPolicy";
        let network: BTreeSet<String> = [
            "AssignPrivateIpAddresses",
            "CreateNetworkInterface",
            "DeleteNetworkInterface",
            "DescribeNetworkInterfaces",
            "DescribeSubnets",
            "UnassignPrivateIpAddresses",
        ]
        .map(|action| format!("ec2:{action}"))
        .into();
        faults.extend(unless(
            &name,
            [
                (!is_network || allows == network, "allows more than Lambda asks for"),
                (!is_network || denies == allows, "lets the functions' own code do it too"),
            ],
        ));
    }
    faults
}

/// The functions that may read the secrets of rooms.
const MAY_READ_SECRETS: [&str; 2] = ["draw", "sales"];

/// Everybody else's rights on the table of rooms are for keys that are none of a secret.
fn secrets(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut is_read = false;
    for (binary, _, function) in stack.functions() {
        for statement in stack.statements(function) {
            let is_of_rooms =
                |resource: &String| name_in(resource).is_some_and(|name| name == "RoomsTable");
            if !list(&statement["Resource"]).iter().any(is_of_rooms) {
                continue;
            }
            is_read = true;
            let keys = &statement["Condition"]["ForAllValues:StringLike"]["dynamodb:LeadingKeys"];
            let is_bound = !keys.is_null() && list(keys).iter().all(|key| !may_be_a_secret(key));
            let may = MAY_READ_SECRETS.contains(&binary) || is_bound;
            faults.extend(unless(binary, [(may, "may read the secrets of rooms")]));
        }
    }
    faults.extend(unless("rooms", [(is_read, "are nobody's")]));
    faults
}

/// True if a pattern of keys matches one of a secret.
fn may_be_a_secret(pattern: &str) -> bool {
    let fixed = pattern.split(['*', '?']).next().unwrap_or_default();
    let secret = secret_key(&"s".parse().unwrap());
    let prefix = secret.split_inclusive('#').next().unwrap();
    prefix.starts_with(fixed) || fixed.starts_with(prefix)
}
