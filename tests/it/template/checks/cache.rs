//! The cache, of nodes or serverless.

use serde_json::Value;

use super::{Check, edit, is_true, number, text, unless};
use crate::template::permissions::list;
use crate::template::stack::Stack;

const SERVERLESS: &[(&str, &str)] = &[("CacheKind", "serverless")];

pub(super) const CHECKS: &[Check] = &[
    Check {
        rule: "the cache is encrypted, wants a password, fails over and forgets nothing by itself",
        faults: cache,
        with: &[],
        mistakes: &[
            edit(
                "  NodeCache:",
                "TransitEncryptionEnabled: true",
                "TransitEncryptionEnabled: false",
            ),
            edit("  NodeCache:", "AtRestEncryptionEnabled: true", "AtRestEncryptionEnabled: false"),
            edit("  NodeCache:", "      UserGroupIds: [!Ref CacheUsers]\n", ""),
            edit(
                "  NodeCache:",
                "AutomaticFailoverEnabled: true",
                "AutomaticFailoverEnabled: false",
            ),
            edit("  NodeCache:", "!If [HasReplicas, true, false]", "false"),
            edit("  NodeCache:", "ClusterMode: enabled", "ClusterMode: disabled"),
            edit("  NodeParameters:", "noeviction", "allkeys-lru"),
            edit(
                "  CacheUser:",
                "Type: password, Passwords:",
                "Type: no-password-required, Passwords:",
            ),
            edit("  CacheUser:", "-@all", "+@all"),
            edit(
                "  CacheUser:",
                "{{resolve:secretsmanager:${CachePassword}}}",
                "hunter2hunter2hunter2",
            ),
        ],
    },
    Check {
        rule: "so does the serverless one",
        faults: cache,
        with: SERVERLESS,
        mistakes: &[
            edit("  ServerlessCache:", "      UserGroupId: !Ref CacheUsers\n", ""),
            edit("  ServerlessCache:", "Engine: valkey", "Engine: memcached"),
        ],
    },
];

pub(super) fn cache(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut caches = 0;
    for (name, cache) in stack.all("AWS::ElastiCache::ServerlessCache") {
        caches += 1;
        let has_users = stack.behind(&cache["UserGroupId"]).is_some();
        faults.extend(unless(
            name,
            [(cache["Engine"] == "valkey", "another engine"), (has_users, "wants no password")],
        ));
    }
    for (name, nodes) in stack.all("AWS::ElastiCache::ReplicationGroup") {
        caches += 1;
        let has_users = nodes["UserGroupIds"].as_array().is_some_and(|groups| !groups.is_empty());
        let parameters = stack.behind(&nodes["CacheParameterGroupName"]).map(|(_, group)| group);
        let parameters = parameters.map_or(Value::Null, |group| group["Properties"].clone());
        let has_replicas = number(&nodes["ReplicasPerNodeGroup"]) > Some(0);
        faults.extend(unless(
            name,
            [
                (nodes["Engine"] == "valkey", "another engine"),
                (is_true(&nodes["TransitEncryptionEnabled"]), "accepts plaintext"),
                (is_true(&nodes["AtRestEncryptionEnabled"]), "is not encrypted at rest"),
                (is_true(&nodes["AutomaticFailoverEnabled"]), "does not fail over"),
                (is_true(&nodes["MultiAZEnabled"]) == has_replicas, "is in one zone"),
                (nodes["ClusterMode"] == "enabled", "is no cluster"),
                (parameters["cluster-enabled"] == "yes", "is no cluster by its parameters"),
                (parameters["maxmemory-policy"] == "noeviction", "forgets to make room"),
                (has_users, "wants no password"),
            ],
        ));
    }
    faults.extend(unless("cache", [(caches == 1, "there is not exactly one")]));
    for (name, user) in stack.all("AWS::ElastiCache::User") {
        let access = text(&user["AccessString"]);
        let mode = &user["AuthenticationMode"];
        let passwords = list(&mode["Passwords"]);
        let secret = "{{resolve:secretsmanager:${CachePassword}}}";
        faults.extend(unless(
            name,
            [
                (mode["Type"] == "password" && passwords == [secret], "its password is no secret"),
                (access.contains(" -@all ") && !access.contains("+@"), "may do too much"),
            ],
        ));
    }
    faults
}
