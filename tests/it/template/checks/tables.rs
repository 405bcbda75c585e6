//! Tables: kept, keyed and warmed as the engine needs them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::dynamodb::Tables;
use shared::dynamodb::tables::{DISPUTES, Index, Key, KeyKind, TableDefinition};

use super::{Check, edit, is_true, text, unless};
use crate::template::stack::Stack;

const WARM: &[(&str, &str)] = &[("WarmWrites", "20000")];

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "tables are encrypted, can be recovered, and survive the stack; in prod, a slip too",
        faults: table_safety,
        with: &[],
        mistakes: &[
            edit("  OrdersTable:", "InTimeRecoveryEnabled: true", "InTimeRecoveryEnabled: false"),
            edit("  SeatsTable:", "SSEEnabled: true", "SSEEnabled: false"),
            edit("  SalesTable:", "DeletionPolicy: RetainExceptOnCreate", "DeletionPolicy: Delete"),
            edit("  SalesTable:", "DeletionPolicy: RetainExceptOnCreate", "DeletionPolicy: Retain"),
            edit("  OrdersTable:", "!If [Protects, true, false]", "false"),
            edit("  IsProd:", "!Ref Stage, prod", "!Ref Stage, production"),
            edit("  SeatsTable:", "BillingMode: PAY_PER_REQUEST", "BillingMode: PROVISIONED"),
        ],
    },
    Check {
        rule: "a first deployment that fails takes its tables with it",
        faults: first_deployment,
        with: &[("Protect", "false")],
        mistakes: &[edit("  Protects:", "!Equals [!Ref Protect, \"true\"]", "!Condition IsProd")],
    },
    Check {
        rule: "tables have the keys and indexes that the engine uses",
        faults: table_keys,
        with: &[],
        mistakes: &[
            edit("  SeatsTable:", "sk, AttributeType: N", "sk, AttributeType: S"),
            edit("  OrdersTable:", "by_user, KeyType: RANGE", "sk, KeyType: RANGE"),
            edit("  OrdersTable:", "NonKeyAttributes: [order]", "NonKeyAttributes: [sale]"),
            edit("  SalesTable:", "-onsale-sales", "-onsale-sale"),
            edit("  SalesTable:", "expires_s, Enabled: true", "expires_s, Enabled: false"),
            edit("  RoomsTable:", "sk, AttributeType: S", "sk, AttributeType: N"),
        ],
    },
    Check {
        rule: "tables are warmed when that is asked for, with their index",
        faults: warmth,
        with: WARM,
        mistakes: &[
            edit("IndexName: due", "          WarmThroughput:", "          Warm:"),
            edit("  SeatsTable:", "!Ref WarmWrites", "4000"),
        ],
    },
];

fn table_safety(stack: &Stack) -> Vec<String> {
    let is_prod = stack.parameters["Stage"] == "prod";
    let of = |(table, properties): (&str, &Value)| {
        let recovery = &properties["PointInTimeRecoverySpecification"];
        let is_protected = is_true(&properties["DeletionProtectionEnabled"]);
        let policy = stack.resources[table].deletion_policy.as_deref();
        unless(
            table,
            [
                (is_true(&recovery["PointInTimeRecoveryEnabled"]), "cannot be recovered"),
                (is_true(&properties["SSESpecification"]["SSEEnabled"]), "is not encrypted"),
                (properties["BillingMode"] == "PAY_PER_REQUEST", "has a capacity"),
                (
                    is_protected == (is_prod && !is_first(stack)),
                    "is protected where it should not be, or is not",
                ),
                (
                    policy == Some("RetainExceptOnCreate"),
                    "goes with the stack, or outlives its rollback",
                ),
            ],
        )
    };
    stack.all("AWS::DynamoDB::Table").flat_map(of).collect()
}

/// True for the parameters of a first deployment.
fn is_first(stack: &Stack) -> bool {
    stack.parameters["Protect"] == "false"
}

/// A table that is protected cannot be deleted by the rollback of a stack that was never made, and its name stays taken.
fn first_deployment(stack: &Stack) -> Vec<String> {
    let of = |(table, properties): (&str, &Value)| {
        let is_protected = is_true(&properties["DeletionProtectionEnabled"]);
        unless(table, [(!(is_first(stack) && is_protected), "is protected before it is there")])
    };
    stack.all("AWS::DynamoDB::Table").flat_map(of).collect()
}

/// A table as the template should describe it.
fn described(table: &TableDefinition) -> Value {
    let schema = |partition: Key, sort: Key| {
        json!([
            { "AttributeName": partition.name, "KeyType": "HASH" },
            { "AttributeName": sort.name, "KeyType": "RANGE" },
        ])
    };
    let index = |index: &Index| {
        let projection = match index.carries {
            [] => json!({ "ProjectionType": "KEYS_ONLY" }),
            carries => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": carries }),
        };
        json!({
            "IndexName": index.name, "KeySchema": schema(index.partition, index.sort),
            "Projection": projection,
        })
    };
    let mut keys = BTreeMap::new();
    let indexes = table.local.iter().chain(table.global);
    let of_indexes = indexes.flat_map(|index| [index.partition, index.sort]);
    for key in [table.partition, table.sort].into_iter().chain(of_indexes) {
        let kind = match key.kind {
            KeyKind::Text => "S",
            KeyKind::Number => "N",
        };
        keys.insert(key.name, kind);
    }
    json!({
        "keys": keys, "schema": schema(table.partition, table.sort),
        "local": table.local.iter().map(index).collect::<Vec<_>>(),
        "global": table.global.iter().map(index).collect::<Vec<_>>(),
        "expires": table.expires,
    })
}

fn table_keys(stack: &Stack) -> Vec<String> {
    let tables = Tables::with_prefix(&format!("{}-onsale-", stack.parameters["Stage"]));
    let of = |(name, definition): (&str, &TableDefinition)| {
        let found = stack.all("AWS::DynamoDB::Table").find(|(_, table)| table["TableName"] == name);
        let Some((_, table)) = found else { return vec![format!("{name} is not there")] };
        let attributes = table["AttributeDefinitions"].as_array().unwrap();
        let keys: BTreeMap<&str, &str> = attributes
            .iter()
            .map(|key| (text(&key["AttributeName"]), text(&key["AttributeType"])))
            .collect();
        let indexes = |kind: &str| -> Vec<Value> {
            let indexes = table[kind].as_array().into_iter().flatten();
            let without_warmth = |index: &Value| {
                let fields = ["IndexName", "KeySchema", "Projection"];
                Value::from_iter(fields.map(|field| (field, index[field].clone())))
            };
            indexes.map(without_warmth).collect()
        };
        let expiry = &table["TimeToLiveSpecification"];
        let expires = is_true(&expiry["Enabled"]).then(|| expiry["AttributeName"].clone());
        let says = json!({
            "keys": keys, "schema": table["KeySchema"],
            "local": indexes("LocalSecondaryIndexes"), "global": indexes("GlobalSecondaryIndexes"),
            "expires": expires,
        });
        unless(name, [(says == described(definition), "is not the table that the engine uses")])
    };
    tables.definitions().into_iter().flat_map(of).collect()
}

fn warmth(stack: &Stack) -> Vec<String> {
    let writes = &stack.parameters["WarmWrites"];
    let requested = (writes != "4000")
        .then(|| json!({ "ReadUnitsPerSecond": stack.parameters["WarmReads"], "WriteUnitsPerSecond": writes }));
    let is = |of: &Value| of.get("WarmThroughput") == requested.as_ref();
    let mut faults = Vec::new();
    for name in ["OrdersTable", "SeatsTable"] {
        let table = &stack.resources[name].properties;
        let indexes = table["GlobalSecondaryIndexes"].as_array();
        // What no order, payment or expiry writes to stays as it is.
        let busy = |index: &&Value| index["IndexName"] != DISPUTES;
        let are = indexes.into_iter().flatten().filter(busy).all(is);
        faults.extend(unless(name, [(is(table) && are, "is not as warm as was asked for")]));
    }
    faults
}
