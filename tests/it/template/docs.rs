//! `docs/deploy.md` and `samconfig.toml` against the template's parameters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::stack::{Edit, STAGES, Stack, Variant, translate};
use text::read;

/// Whether a value is one that CloudFormation takes for this parameter. Its patterns are read by
/// AWS itself; what is checked here is what a person mistypes.
fn is_allowed(parameter: &Value, value: &str) -> bool {
    let listed = parameter["AllowedValues"].as_array();
    let is_listed = listed
        .is_none_or(|values| values.iter().any(|one| one.to_string().trim_matches('"') == value));
    let number = value.parse::<f64>();
    let bound = |name: &str| parameter[name].as_f64();
    let is_number = parameter["Type"] != "Number"
        || number.is_ok_and(|number| {
            bound("MinValue").is_none_or(|least| number >= least)
                && bound("MaxValue").is_none_or(|most| number <= most)
        });
    is_listed && is_number
}

#[test]
fn every_stage_has_settings_that_the_template_takes() {
    for (stage, name) in STAGES.into_iter().zip(["dev", "staging", "prod"]) {
        let translation = translate(&[Variant::from_stage(stage)]).remove(0).unwrap();
        let known = translation["template"]["Parameters"].as_object().unwrap();
        let given = Stack::from_translation(&translation).parameters;
        assert_eq!(given["Stage"], name);
        for (parameter, value) in &given {
            let known = known.get(parameter).unwrap_or_else(|| panic!("{stage}: no {parameter}"));
            assert!(is_allowed(known, value), "{stage}: {parameter}={value}");
        }
        // The control.
        assert!(!is_allowed(&known["WayOut"], "nat") && !is_allowed(&known["CacheShards"], "0"));
    }
}

#[test]
fn the_docs_explain_every_parameter_as_it_is() {
    let translation = translate(&[Variant::from_stage("default")]).remove(0).unwrap();
    let docs = read("docs/deploy.md");
    let rows = docs.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let name = cells.next()?.trim_end_matches('`');
        let default = cells.next()?.trim().trim_matches('`').to_owned();
        name.chars().next()?.is_uppercase().then(|| (name.to_owned(), default))
    });
    let explained: BTreeMap<String, String> = rows.collect();
    let parameters = translation["template"]["Parameters"].as_object().unwrap();
    let default = |parameter: &Value| {
        let value = parameter.get("Default").map(Value::to_string);
        match value.as_deref().map(|text| text.trim_matches('"')) {
            None => "needed".to_owned(),
            Some("") => "none".to_owned(),
            Some(text) => text.to_owned(),
        }
    };
    let known: BTreeMap<String, String> =
        parameters.iter().map(|(name, says)| (name.clone(), default(says))).collect();
    assert_eq!(explained, known, "docs/deploy.md and template.yaml differ");
    // The first line of each column is no parameter, and every section has some.
    assert!(explained.len() > 25);
    let outputs: BTreeSet<&String> =
        translation["template"]["Outputs"].as_object().unwrap().keys().collect();
    for output in outputs {
        assert!(docs.contains(&format!("`{output}`")), "docs/deploy.md says nothing of {output}");
    }
}

/// What docs/deploy.md says of the functions behind an alias: their versions follow the code and the
/// text of the template, not its parameters. If this fails, SAM has learnt it, and the loop over
/// `publish-version` can go.
#[test]
fn a_changed_parameter_alone_publishes_no_version() {
    let changed = Edit {
        after: "  ReserveFunction:",
        from: "      VpcConfig:",
        to: "      MemorySize: 512\n      VpcConfig:",
    };
    let variants = [
        Variant::from_stage("prod"),
        Variant::from_stage("prod").with("SecretsRevision", "2"),
        Variant::from_stage("prod").edited(changed),
    ];
    let versions: Vec<BTreeSet<String>> = translate(&variants)
        .into_iter()
        .map(|translation| {
            let stack = Stack::from_translation(&translation.unwrap());
            stack.all("AWS::Lambda::Version").map(|(name, _)| name.to_owned()).collect()
        })
        .collect();
    assert_eq!(versions[0], versions[1]);
    assert_ne!(versions[0], versions[2], "the control: another text does");
    let docs = read("docs/deploy.md");
    let (_, procedure) = docs.split_once("**The three functions behind an alias**").unwrap();
    for name in ["token-gate", "reserve", "pay-callback"] {
        assert!(versions[0].iter().any(|version| version.starts_with(&logical(name))));
        assert!(procedure.contains(name));
    }
    assert_eq!(versions[0].len(), 3);
}

/// `pay-callback` as the template calls its function.
fn logical(binary: &str) -> String {
    let capitalised = |word: &str| word[..1].to_uppercase() + &word[1..];
    binary.split('-').map(capitalised).collect::<String>() + "Function"
}
