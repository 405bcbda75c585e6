//! The template of the newest release, as it was translated then (`released.json`): what a deployed stack has, and
//! so what an upgrade to this revision may add to and never take away.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde_json::Value;

use super::stack::{Variant, translate};
use text::read;

/// Resources whose loss loses nothing: CloudFormation makes permissions anew from the others, and retains a version
/// of a function, whose name has the hash of its settings, so that every change of them publishes another.
const REPLACEABLE: [&str; 2] = ["AWS::Lambda::Permission", "AWS::Lambda::Version"];

fn released() -> Value {
    serde_json::from_str(include_str!("released.json")).unwrap()
}

/// The template of this revision.
fn now() -> Value {
    static NOW: LazyLock<Value> = LazyLock::new(|| {
        let [now] = translate(&[Variant::from_stage("prod")]).try_into().unwrap();
        now.unwrap()["template"].take()
    });
    NOW.clone()
}

/// The parameters, resources and outputs of one template that another lacks, or has as another type.
fn lost(then: &Value, now: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    for section in ["Parameters", "Resources", "Outputs"] {
        for (name, was) in then[section].as_object().unwrap() {
            let is = &now[section][name];
            let kind = was["Type"].as_str().unwrap_or_default();
            if !REPLACEABLE.contains(&kind) && (is.is_null() || is["Type"] != was["Type"]) {
                lost.push(format!("{section}.{name}"));
            }
        }
    }
    lost
}

#[test]
fn an_upgrade_from_the_release_loses_no_parameter_resource_or_output() {
    let released = released();
    let mut now = now();
    assert_eq!(lost(&released["template"], &now), [""; 0]);
    // The control: a table that was renamed would be a new and empty one.
    let resources = now["Resources"].as_object_mut().unwrap();
    let orders = resources.remove("OrdersTable").unwrap();
    resources.insert("AllOrdersTable".to_owned(), orders);
    assert_eq!(lost(&released["template"], &now), ["Resources.OrdersTable"]);
}

/// The routes of which the stage has settings, and all routes, of the APIs of a template.
fn routes(template: &Value) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut set, mut all) = (BTreeSet::new(), BTreeSet::new());
    for resource in template["Resources"].as_object().unwrap().values() {
        let properties = &resource["Properties"];
        match resource["Type"].as_str() {
            Some("AWS::ApiGatewayV2::Stage") => {
                let settings = properties["RouteSettings"].as_object().into_iter().flatten();
                set.extend(settings.map(|(route, _)| route.clone()));
            }
            Some("AWS::ApiGatewayV2::Api") => {
                for (path, methods) in properties["Body"]["paths"].as_object().into_iter().flatten()
                {
                    let methods = methods.as_object().unwrap().keys();
                    all.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
                }
            }
            _ => {}
        }
    }
    (set, all)
}

/// API Gateway refuses to remove a route together with its settings, in an update and in its rollback. So a route goes in
/// two releases: the first removes its settings, the second the route.
#[test]
fn no_route_goes_that_still_had_settings() {
    let gone = |then: &Value, now: &Value| -> Vec<String> {
        let (set, _) = routes(then);
        let (_, all) = routes(now);
        set.difference(&all).cloned().collect()
    };
    let released = released();
    let mut now = now();
    assert!(routes(&now).0.len() > 40, "{:?}", routes(&now));
    assert_eq!(gone(&released["template"], &now), [""; 0]);
    // The control.
    let paths = &mut now["Resources"]["Api"]["Properties"]["Body"]["paths"];
    paths.as_object_mut().unwrap().remove("/wallets").unwrap();
    assert_eq!(gone(&released["template"], &now), ["GET /wallets"]);
}

/// What can only be given when a resource is made, of the types of which the template names resources itself: a change makes
/// a new one beside the old, which has the name. Source: `createOnlyProperties` of CloudFormation's resource schemas.
const CREATE_ONLY: [(&str, &[&str]); 12] = [
    ("AWS::DynamoDB::Table", &["TableName", "KeySchema", "LocalSecondaryIndexes"]),
    ("AWS::SQS::Queue", &["QueueName", "FifoQueue"]),
    ("AWS::Lambda::Function", &["FunctionName", "PackageType", "TenancyConfig"]),
    ("AWS::Logs::LogGroup", &["LogGroupName", "LogGroupClass"]),
    ("AWS::IAM::Role", &["RoleName", "Path"]),
    ("AWS::SecretsManager::Secret", &["Name"]),
    ("AWS::CloudWatch::Alarm", &["AlarmName"]),
    ("AWS::CloudWatch::Dashboard", &["DashboardName"]),
    ("AWS::ElastiCache::User", &["UserId", "Engine"]),
    ("AWS::ElastiCache::UserGroup", &["UserGroupId"]),
    ("AWS::ElastiCache::ServerlessCache", &["ServerlessCacheName", "SubnetIds", "KmsKeyId"]),
    (
        "AWS::ElastiCache::ReplicationGroup",
        &[
            "ReplicationGroupId",
            "CacheSubnetGroupName",
            "AtRestEncryptionEnabled",
            "KmsKeyId",
            "Port",
        ],
    ),
];

/// The resources with a fixed name of which an upgrade changes what cannot be changed.
fn made_anew(then: &Value, now: &Value) -> Vec<String> {
    let mut anew = Vec::new();
    for (name, was) in then["Resources"].as_object().unwrap() {
        let kind = was["Type"].as_str().unwrap_or_default();
        let Some((_, fixed)) = CREATE_ONLY.iter().find(|(of, _)| *of == kind) else { continue };
        let is_named = |property: &&str| !was["Properties"][*property].is_null();
        if !fixed.first().is_some_and(is_named) {
            continue;
        }
        let is = &now["Resources"][name]["Properties"];
        let changed =
            fixed.iter().filter(|property| is[**property] != was["Properties"][**property]);
        anew.extend(changed.map(|property| format!("{name}.{property}")));
    }
    anew
}

#[test]
fn no_upgrade_makes_a_named_resource_anew() {
    let released = released();
    let mut now = now();
    assert_eq!(made_anew(&released["template"], &now), [""; 0]);
    // The control: another key, and another name.
    let table = &mut now["Resources"]["SeatsTable"]["Properties"];
    table["KeySchema"][0]["AttributeName"] = "seat".into();
    now["Resources"]["SyncQueue"]["Properties"]["QueueName"] = "sync".into();
    let expected = ["SeatsTable.KeySchema", "SyncQueue.QueueName"];
    assert_eq!(made_anew(&released["template"], &now), expected);
}

#[test]
fn the_changelog_names_the_revision_of_the_release() {
    let (released, changelog) = (released(), read("CHANGELOG.md"));
    let mut sections = changelog.split("\n## [").skip(1);
    let newest = sections.find(|section| !section.starts_with("Unreleased]")).unwrap();
    assert!(newest.starts_with(&format!("{}] - ", released["version"].as_str().unwrap())));
    let revision = format!("\nRevision {}.\n", released["revision"].as_str().unwrap());
    assert!(newest.contains(&revision), "{revision}");
}
