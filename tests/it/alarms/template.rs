//! The template as the checks read it: parsed by SAM, its values as they are after deployment.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use text::{read, root};

/// Reads templates with SAM's own parser, in its environment of `make setup`.
const PARSER: &str = "
import json, sys
from samcli.yamlhelper import yaml_parse
json.dump([yaml_parse(text) for text in json.load(sys.stdin)], sys.stdout)";

/// The templates with these texts, parsed.
pub(super) fn parsed(templates: &[String]) -> Vec<Value> {
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
pub(super) fn text(value: &Value) -> String {
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

/// The logical ids of the resources of this type.
pub(super) fn ids(resources: &Value, kind: &str) -> Vec<String> {
    let resources = resources.as_object().unwrap().iter();
    let of_kind = resources.filter(|(_, resource)| resource["Type"] == kind);
    of_kind.map(|(id, _)| id.clone()).collect()
}

/// The template of the repository, parsed once.
pub(super) fn template() -> &'static Value {
    static TEMPLATE: OnceLock<Value> = OnceLock::new();
    TEMPLATE.get_or_init(|| parsed(&[read("template.yaml")]).remove(0))
}
