//! The table of problems and its pages. Each refusal stands with its problem beside its conversion.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Kind, Problem};
use crate::http::routes::RouteName;
use engine::domain::basics::tickets::Tickets;
use engine::flows::reserve;

fn pages() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/problems")
}

#[test]
fn every_type_has_its_page_and_every_page_its_type() {
    let page = |entry: std::io::Result<std::fs::DirEntry>| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".md").expect("a page of another format").to_owned()
    };
    let pages_found: BTreeSet<String> = std::fs::read_dir(pages()).unwrap().map(page).collect();
    let types: BTreeSet<String> = Kind::ALL.iter().map(|kind| kind.slug().to_owned()).collect();
    assert_eq!(types.len(), Kind::ALL.len(), "two types share a slug");
    assert_eq!(pages_found, types);
}

#[test]
fn every_page_shows_the_document_as_it_is() {
    for kind in Kind::ALL {
        let path = pages().join(kind.slug()).with_extension("md");
        let page = std::fs::read_to_string(&path).unwrap();
        let slug = kind.slug();
        assert!(page.starts_with(&format!("# {}\n", kind.title())), "{slug}: title");
        let (_, example) = page.split_once("```json\n").expect(slug);
        let (example, _) = example.split_once("\n```").expect(slug);
        let example: Value = serde_json::from_str(example).expect(slug);
        assert_eq!(example["type"], json!(format!("/problems/{slug}")), "{slug}");
        assert_eq!(example["status"], json!(kind.status().as_u16()), "{slug}");
        assert_eq!(example["title"], json!(kind.title()), "{slug}");
        let status = kind.status().as_u16();
        let second = page.lines().nth(2);
        assert_eq!(second, Some(format!("`/problems/{slug}`, status {status}.").as_str()));
        let has_retry = kind.has_retry_after();
        assert_eq!(page.contains("Retry-After"), has_retry, "{slug}: when to come back");
        assert_eq!(example.get("retry_after_seconds").is_some(), has_retry, "{slug}");
        for heading in ["## When", "## What to do", "## Example"] {
            assert!(page.contains(heading), "{slug}: {heading}");
        }
    }
}

#[test]
fn the_fate_of_an_admission_is_said_of_what_answers_a_reservation() {
    for kind in Kind::ALL {
        let answers = kind.routes().contains(&RouteName::Reserve);
        assert_eq!(kind.admission().is_some(), answers, "{}", kind.slug());
    }
}

/// What of a problem a table can show: status, slug, seconds to wait, extension members.
pub(super) fn shown(problem: impl Into<Problem>) -> (u16, &'static str, Option<u32>, Value) {
    let problem = problem.into();
    let members = Value::Object(problem.extensions.clone());
    let kind = problem.kind;
    assert_eq!(problem.retry_after_seconds.is_some(), kind.has_retry_after(), "{kind:?}");
    (problem.kind.status().as_u16(), problem.kind.slug(), problem.retry_after_seconds, members)
}

#[test]
fn a_problem_is_a_flat_document() {
    let problem = Problem::from(reserve::Refusal::LimitReached { remaining: Tickets::NONE });
    assert_eq!(
        serde_json::to_value(&problem).unwrap(),
        json!({
            "type": "/problems/limit-reached", "title": "The limit of tickets is reached",
            "status": 403, "detail": "the limit allows 0 more tickets",
            "remaining_allowance": 0
        })
    );
}
