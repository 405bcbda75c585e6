//! The template before those who know AWS: aws-sam-cli, its linter, and cfn-lint on the translation.
//! None of them finds what the others find, so each has a mistake of its own, at the full size: a linter takes ten seconds of
//! a processor.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use model_stores::size::{first_of, is_full};

use super::stack::{Edit, Translation, Variant, tool, translate};
use text::{read, root};

/// The findings of a linter, if it has any.
fn complaint(command: &mut Command) -> Option<String> {
    let output = command.output().expect("aws-sam-cli is missing: run `make setup`");
    let said = [output.stdout, output.stderr].concat();
    (!output.status.success()).then(|| String::from_utf8_lossy(&said).into_owned())
}

fn sam_validate(template: &Path, lint: bool) -> Option<String> {
    let home = tempfile::tempdir().unwrap();
    let mut command = tool("sam");
    // Without a home it would keep notes in somebody's.
    command.env("__SAM_CLI_APP_DIR", home.path()).args(["validate", "--template"]).arg(template);
    complaint(if lint { command.arg("--lint") } else { &mut command })
}

fn cfn_lint(translation: &Translation) -> Option<String> {
    let translation = translation.as_ref().unwrap();
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    file.write_all(translation["template"].to_string().as_bytes()).unwrap();
    complaint(tool("cfn-lint").arg("--template").arg(file.path()))
}

/// The template with one change, as a file.
fn with(from: &str, to: &str) -> tempfile::NamedTempFile {
    let text = read("template.yaml");
    assert!(text.contains(from), "{from}");
    let mut file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    file.write_all(text.replacen(from, to, 1).as_bytes()).unwrap();
    file
}

#[test]
fn sam_finds_the_template_valid() {
    assert_eq!(sam_validate(&root().join("template.yaml"), false), None);
    if !is_full() {
        return;
    }
    let wrong = with("Type: HttpApi,", "Type: HttpAPI,");
    assert!(sam_validate(wrong.path(), false).is_some(), "the control");
}

#[test]
fn the_linter_of_sam_finds_nothing() {
    assert_eq!(sam_validate(&root().join("template.yaml"), true), None);
    if !is_full() {
        return;
    }
    let wrong = with("!GetAtt SalesTable.Arn", "!GetAtt SalesTable.Name");
    assert_eq!(sam_validate(wrong.path(), false), None, "validation alone does not see it");
    assert!(sam_validate(wrong.path(), true).is_some(), "the control");
}

/// Without parameters, so that cfn-lint takes every condition for true and for false.
#[test]
fn cfn_lint_finds_nothing_in_the_translation() {
    let right = Variant::from_stage("prod");
    let wrong = Edit {
        after: "  SyncDbFunction:",
        from: "ReportBatchItemFailures",
        to: "ReportBatchFailures",
    };
    let both = [right.clone(), right.edited(wrong)];
    let translations = translate(first_of(&both, 1));
    assert_eq!(cfn_lint(&translations[0]), None);
    if !is_full() {
        return;
    }
    let said = cfn_lint(&translations[1]).unwrap_or_default();
    assert!(said.contains("ReportBatchFailures"), "the control: {said}");
}
