//! Form of the documents: links lead somewhere, prose can be read as a diff, and pages that everybody reads are short.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "most events of a document and parts of a path are of no interest"
)]

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use text::{read, root};

/// Longest line of prose, in characters. Rows of tables, code and links by themselves may be longer.
const MAX_LINE: usize = 160;
/// The most lines of pages that everybody reads.
const MAX_LINES: [(&str, usize); 3] =
    [("README.md", 130), ("CONTRIBUTING.md", 250), ("docs/performance.md", 250)];

/// The most words of all documents together: what a page says that another has said goes before anything is added.
const MAX_WORDS: usize = 115_000;

/// The Markdown files of the repository, from its folder.
fn documents() -> Vec<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "*.md"])
        .current_dir(root())
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let paths: Vec<PathBuf> = listed.lines().map(PathBuf::from).collect();
    // A file that was removed stays in the index until the next commit.
    paths.into_iter().filter(|path| root().join(path).exists()).collect()
}

/// What a document links to, and the anchors of its headings.
#[derive(Debug, Default)]
struct Links {
    targets: Vec<String>,
    anchors: Vec<String>,
}

/// The anchor of a heading as the hosting platforms make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn links(document: &str) -> Links {
    let (mut links, mut heading) = (Links::default(), None);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for event in Parser::new_ext(document, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let name = anchor(&heading.take().unwrap());
                let count = counts.entry(name.clone()).or_default();
                links.anchors.push(if *count == 0 { name } else { format!("{name}-{count}") });
                *count += 1;
            }
            Event::Html(tag) | Event::InlineHtml(tag) => {
                let named = tag.strip_prefix("<a id=\"").and_then(|rest| rest.split_once('"'));
                links.anchors.extend(named.map(|(name, _)| name.to_owned()));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.targets.push(dest_url.into_string());
            }
            _ => {}
        }
    }
    links
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
        plain
    })
}

/// The links of a document that lead nowhere.
fn broken(document: &Path, links: &BTreeMap<PathBuf, Links>) -> Vec<String> {
    let leads = |target: &str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let path = match path {
            "" => document.to_owned(),
            path => plain(&document.parent().unwrap().join(path)),
        };
        let has_anchor =
            |links: &Links| anchor.is_empty() || links.anchors.iter().any(|a| a == anchor);
        links.get(&path).map_or_else(|| root().join(&path).exists(), has_anchor)
    };
    let of = links[document].targets.iter();
    let ours = of.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    let broken = ours.filter(|target| !leads(target));
    broken.map(|target| format!("{}: {target}", document.display())).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut all: BTreeMap<PathBuf, Links> = documents()
        .into_iter()
        .map(|path| (path.clone(), links(&read(path.to_str().unwrap()))))
        .collect();
    assert!(all.len() > 100, "the documents are not read");
    let wrong: Vec<String> = all.keys().flat_map(|path| broken(path, &all)).collect();
    assert_eq!(wrong, [""; 0]);

    let planted = "# A `Title` of it\n[a](other.md) [b](#a-title-of-it) [c](#a-title) ![d](README.md#no-such)";
    let path = PathBuf::from("planted.md");
    all.insert(path.clone(), links(planted));
    let expected = ["other.md", "#a-title", "README.md#no-such"];
    assert_eq!(broken(&path, &all), expected.map(|target| format!("planted.md: {target}")));
}

/// The lines of prose that are too long, by number.
fn long_lines(document: &str) -> Vec<usize> {
    let mut is_code = false;
    let mut long = Vec::new();
    for (index, line) in document.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let is_prose = !is_code && !line.trim_start().starts_with('|') && line.trim().contains(' ');
        if is_prose && line.chars().count() > MAX_LINE {
            long.push(index + 1);
        }
    }
    long
}

#[test]
fn lines_of_prose_can_be_read_as_a_diff() {
    let long_in = |path: &PathBuf| {
        let lines = long_lines(&read(path.to_str().unwrap()));
        lines.into_iter().map(move |line| format!("{}:{line}", path.display())).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = documents().iter().flat_map(long_in).collect();
    assert_eq!(wrong, [""; 0], "longer than {MAX_LINE} characters");

    let words = "word ".repeat(40);
    let planted = format!("{words}\n```\n{words}\n```\n| {words} |\n- {words}");
    assert_eq!(long_lines(&planted), [1, 6]);
}

#[test]
fn pages_that_everybody_reads_are_short() {
    for (page, most) in MAX_LINES {
        let lines = read(page).lines().count();
        assert!(lines <= most, "{page} has {lines} lines, of {most} at most");
    }
}

#[test]
fn all_documents_together_are_short() {
    let words = |path: &PathBuf| read(&path.to_string_lossy()).split_whitespace().count();
    let words: usize = documents().iter().map(words).sum();
    println!("{words} words");
    assert!(words <= MAX_WORDS, "{words} words, of at most {MAX_WORDS}");
}
