//! The template of the newest release, as it was translated then (`released.json`): what a deployed stack has, and
//! so what an upgrade to this revision may add to and never take away.

use serde_json::Value;

use super::stack::{Variant, translate};
use text::read;

/// Resources whose loss loses nothing: CloudFormation makes permissions anew from the others, and retains a version
/// of a function, whose name has the hash of its settings, so that every change of them publishes another.
const REPLACEABLE: [&str; 2] = ["AWS::Lambda::Permission", "AWS::Lambda::Version"];

fn released() -> Value {
    serde_json::from_str(include_str!("released.json")).unwrap()
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
    let [now] = translate(&[Variant::from_stage("prod")]).try_into().unwrap();
    let mut now = now.unwrap();
    assert_eq!(lost(&released["template"], &now["template"]), [""; 0]);
    // The control: a table that was renamed would be a new and empty one.
    let resources = now["template"]["Resources"].as_object_mut().unwrap();
    let orders = resources.remove("OrdersTable").unwrap();
    resources.insert("AllOrdersTable".to_owned(), orders);
    assert_eq!(lost(&released["template"], &now["template"]), ["Resources.OrdersTable"]);
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
