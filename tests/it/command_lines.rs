//! Every command line of `onsale` in every document is one that the program takes.
//!
//! A line of a code block that begins with `onsale` (or `scripts/onsale`, also behind variables or
//! within `$(…)`) must parse as it stands. Inline code may name a command without its arguments, but
//! nothing that the command does not know. Placeholders (`FILE`), `[optional]` parts, `one | another`
//! and `…` are understood as everywhere: each way of reading such a line must parse.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use cli::Cli;

/// What may stand for a placeholder; one of them must fit. Any other word in capitals stands for
/// itself, as a file or a text.
const PLACEHOLDERS: &[(&str, &[&str])] = &[
    ("CATEGORY=MINOR", &["A=5"]),
    ("NAME=MINOR", &["Hall=5"]),
    ("CLASS", &["A=1"]),
    ("CODE", &["EUR"]),
    ("COMMAND", &["up"]),
    ("DAY", &["2026-05-04"]),
    ("GROUP", &["fans"]),
    ("ID", &["demo-train"]),
    ("MINOR", &["5"]),
    ("N", &["5"]),
    ("NAME", &["tixcraft-2024"]),
    ("NUMBER", &["5"]),
    ("ORDER", &["169218430493097984"]),
    ("QUEUE", &["sync"]),
    ("RULE", &["farm-7"]),
    ("SECONDS", &["5"]),
    ("TIER:SEAT", &["vip:A-1"]),
    ("TIME", &["2026-05-04T10:00:00Z"]),
    ("URL", &["http://127.0.0.1:1", "redis://127.0.0.1:1"]),
    ("X,Y", &["1,2"]),
    ("YYYY-MM-DD", &["2026-05-04"]),
];

/// A command line as a document has it, from `onsale` on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// Its number in the document, from 1.
    number: usize,
    text: String,
    /// In a code block, where it must be whole.
    is_whole: bool,
}

/// The start of the command within a text, if one begins it: behind variables that are set for it.
fn command(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    loop {
        let word = rest.split_whitespace().next()?;
        if word == "onsale" || word == "scripts/onsale" {
            return Some(rest);
        }
        let (name, _) = word.split_once('=')?;
        let is_name = |char: char| char.is_ascii_uppercase() || char == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        rest = rest[word.len()..].trim_start();
    }
}

/// Cuts off what is the shell's, or a comment: a redirection, a pipe, `# …`, or words behind a gap.
fn without_rest(text: &str) -> &str {
    let mut end = text.len();
    for (index, char) in text.char_indices() {
        let (before, behind) = (&text[..index], &text[index + char.len_utf8()..]);
        let is_apart = before.ends_with(' ');
        let is_end = match char {
            '#' | '<' | '>' | ';' | '&' => is_apart,
            // Another way of saying it is an option; what a pipe leads to is a program.
            '|' => is_apart && behind.trim_start().starts_with(|first: char| first.is_lowercase()),
            ' ' => {
                let next = behind.trim_start();
                before.ends_with(' ') && !next.starts_with(['-', '[', '|', '<', '>', '#', ' '])
            }
            _ => false,
        };
        if is_end {
            end = index;
            break;
        }
    }
    text[..end].trim_end()
}

/// The command lines of a document.
fn lines(document: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut is_code = false;
    // A line of code goes on behind a stroke at its end.
    let mut begun: Option<(usize, String)> = None;
    for (index, text) in document.lines().enumerate() {
        let number = index + 1;
        if text.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            let (number, text) = match begun.take() {
                Some((number, begun)) => (number, format!("{begun} {}", text.trim())),
                None => (number, text.to_owned()),
            };
            match text.strip_suffix('\\') {
                Some(more) => begun = Some((number, more.trim_end().to_owned())),
                None => found.extend(code_lines(number, &text)),
            }
        } else {
            let spans = text.split('`').skip(1).step_by(2);
            found.extend(spans.filter_map(command).map(|command| Line {
                number,
                text: without_rest(command).to_owned(),
                is_whole: false,
            }));
        }
    }
    found
}

/// The command lines of one line of code.
fn code_lines(number: usize, text: &str) -> Vec<Line> {
    let whole = |text: &str| Line { number, text: without_rest(text).to_owned(), is_whole: true };
    let nested = text.split("$(").skip(1).filter_map(|nested| {
        let (nested, _) = nested.split_once(')')?;
        command(nested)
    });
    command(text).into_iter().chain(nested).map(whole).collect()
}

/// The rows of the table of `docs/command-line.md`: its first column names each command without
/// `onsale`.
fn table_rows(document: &str) -> Vec<Line> {
    let mut found = Vec::new();
    for (index, text) in document.lines().enumerate() {
        let Some(first) = text.strip_prefix("| `").and_then(|row| row.split(" | ").next()) else {
            continue;
        };
        for span in first.split('`').step_by(2) {
            let text = format!("onsale {span}");
            found.push(Line { number: index + 1, text, is_whole: false });
        }
    }
    found
}

/// Every way to read a line with `[optional]` parts and `one | another`.
fn readings(text: &str) -> Vec<Vec<String>> {
    let spaced = text.replace('[', " [ ").replace(']', " ] ").replace('|', " | ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    sequence(&mut rest)
}

/// Readings of the tokens up to the end or to a `]`, which is taken.
fn sequence<'a>(rest: &mut &'a [&'a str]) -> Vec<Vec<String>> {
    // Those of the finished part, and those of the part since the last option began.
    let mut done: Vec<Vec<String>> = vec![Vec::new()];
    let mut last: Vec<Vec<String>> = vec![Vec::new()];
    let mut others: Vec<Vec<String>> = Vec::new();
    loop {
        let tokens: &'a [&'a str] = rest;
        let Some((token, more)) = tokens.split_first() else { break };
        *rest = more;
        match *token {
            "]" => break,
            "[" => {
                let inner = optional(rest);
                join(&mut done, &mut last, &mut others);
                done = product(&done, &inner);
            }
            "|" => others.append(&mut std::mem::replace(&mut last, vec![Vec::new()])),
            "…" | "..." => {}
            word => {
                // Behind a `|` the first option is the other way to say the one before it.
                let is_other = !others.is_empty() && last == [Vec::<String>::new()];
                if word.starts_with('-') && !is_other {
                    join(&mut done, &mut last, &mut others);
                }
                last.iter_mut().for_each(|reading| reading.push(word.to_owned()));
            }
        }
    }
    join(&mut done, &mut last, &mut others);
    done
}

/// Puts the ways to say the last part behind what is finished.
fn join(done: &mut Vec<Vec<String>>, last: &mut Vec<Vec<String>>, others: &mut Vec<Vec<String>>) {
    let mut ways = std::mem::take(others);
    ways.append(&mut std::mem::replace(last, vec![Vec::new()]));
    *done = product(done, &ways);
}

/// What a bracket may be: nothing, or each of what it holds. One that names options as a group
/// (`[terms]`) is nothing.
fn optional<'a>(rest: &mut &'a [&'a str]) -> Vec<Vec<String>> {
    let tokens: &'a [&'a str] = rest;
    let mut depth = 0;
    let inner = tokens.iter().position(|token| {
        match *token {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        depth < 0
    });
    let inner = inner.unwrap_or_else(|| panic!("a bracket is not closed: {tokens:?}"));
    let (within, behind) = (&tokens[..inner], &tokens[inner + 1..]);
    *rest = behind;
    let mut ways = vec![Vec::new()];
    if matches!(within, ["terms" | "options"]) {
        return ways;
    }
    let mut depth = 0;
    let alternatives = within.split(|token| {
        match *token {
            "[" => depth += 1,
            "]" => depth -= 1,
            _ => {}
        }
        depth == 0 && *token == "|"
    });
    for mut alternative in alternatives {
        ways.append(&mut sequence(&mut alternative));
    }
    ways
}

fn product(left: &[Vec<String>], right: &[Vec<String>]) -> Vec<Vec<String>> {
    let behind = |left: &Vec<String>| {
        right.iter().map(|right| [left.clone(), right.clone()].concat()).collect::<Vec<_>>()
    };
    left.iter().flat_map(behind).collect()
}

/// The words with every placeholder filled in, each way.
fn filled(words: &[String]) -> Vec<Vec<String>> {
    let mut ways = vec![Vec::new()];
    for word in words {
        let known = PLACEHOLDERS.iter().find(|(name, _)| name == word);
        let values = known.map_or_else(|| vec![word.as_str()], |(_, values)| values.to_vec());
        let values: Vec<Vec<String>> =
            values.iter().map(|value| vec![(*value).to_owned()]).collect();
        ways = product(&ways, &values);
    }
    ways
}

/// Why the program does not take these words; `None` if it does.
fn refusal(words: &[String], is_whole: bool) -> Option<String> {
    let error = Cli::try_parse_from(words).err()?;
    let is_help = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion].contains(&error.kind());
    let is_partial = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ]
    .contains(&error.kind());
    // Inline code may name an option without its value.
    let is_valueless = error.kind() == ErrorKind::InvalidValue
        && words.last().is_some_and(|last| last.starts_with("--"));
    if is_help || (!is_whole && (is_partial || is_valueless)) {
        return None;
    }
    Some(error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// What the program does not take of these lines.
fn refusals(lines: &[Line]) -> Vec<String> {
    let mut all = Vec::new();
    for Line { number, text, is_whole } in lines {
        for words in readings(text) {
            // There is a list only if every way to fill the placeholders in is refused.
            let refused = filled(&words).into_iter().map(|words| refusal(&words, *is_whole));
            let refused: Option<Vec<String>> = refused.collect();
            if let Some(reason) = refused.and_then(|reasons| reasons.into_iter().next_back()) {
                all.push(format!("{number}: {}: {reason}", words.join(" ")));
            }
        }
    }
    all.dedup();
    all
}

fn markdown(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .flat_map(|path| if path.is_dir() { markdown(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_command_line_of_every_document_is_one() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    documents.extend([root.join("CONTRIBUTING.md")].into_iter().filter(|path| path.exists()));
    for place in ["docs", "sales", "tests"] {
        documents.extend(markdown(&root.join(place)));
    }
    let (mut count, mut wrong) = (0, Vec::new());
    for document in documents {
        let text = fs::read_to_string(&document).unwrap();
        let mut found = lines(&text);
        if document.ends_with("docs/command-line.md") {
            let rows = table_rows(&text);
            assert!(rows.len() > 25, "the table of commands is gone");
            found.extend(rows);
        }
        count += found.len();
        let name = document.strip_prefix(&root).unwrap().display();
        wrong.extend(refusals(&found).into_iter().map(|refusal| format!("{name}:{refusal}")));
    }
    assert!(count > 130, "only {count} command lines were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The examples that a command and its subcommands show in their help.
fn examples(command: &clap::Command) -> Vec<Line> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let own = lines(&format!("```\n{help}\n```"));
    own.into_iter().chain(command.get_subcommands().flat_map(examples)).collect()
}

#[test]
fn every_example_in_the_help_is_a_command_line() {
    let examples = examples(&Cli::command());
    assert!(examples.len() > 40, "only {} examples were found", examples.len());
    assert_eq!(refusals(&examples), [""; 0]);
}

#[test]
fn a_wrong_command_line_is_found_wherever_it_stands() {
    let document = "\
Say `onsale audit`, `onsale rush --html` or `onsale dead-letters [redrive|drop]`.
Not `onsale audti` and not `onsale audit --from-enviroment`, nor `onsale up --fast [--slow]`.
```sh
onsale audit --from-environment --wait-seconds 60   # right
URL=http://x scripts/onsale rush --sale ID --arrivals 5 > report.txt
TOKEN=$(onsale token --user alice); echo
onsale sale import pretix PLAN.json  --price CATEGORY=MINOR … | --price-minor MINOR  [terms]
onsale environment --json | sed s/a/b/
onsale chaos                  every fault
onsale rush
onsale audit --from-env
TOKEN=$(onsale token --usr alice)
onsale sale import pretix PLAN.json --price CATEGORY=MINOR … | --prices-minor MINOR
onsale sale status ID [--from ID]
onsale dead-letters drop sync \\
  --mesage 7
```
";
    let wrong = refusals(&lines(document));
    let places: Vec<&str> =
        wrong.iter().filter_map(|refusal| refusal.split_once(':')).map(|(at, _)| at).collect();
    assert_eq!(places, ["2", "2", "2", "2", "10", "11", "12", "13", "14", "15"], "{wrong:#?}");
    let row = "| `audit --from-environment`, `adit` | checks | json |\n| command | what |";
    assert_eq!(refusals(&table_rows(row)).len(), 1);
}

#[test]
fn a_line_is_read_in_each_way_that_it_can_be() {
    let readings = |text: &str| -> Vec<String> {
        readings(text).into_iter().map(|words| words.join(" ")).collect()
    };
    assert_eq!(
        readings("a [--b | --c C [--d]] e"),
        ["a e", "a --b e", "a --c C e", "a --c C --d e"]
    );
    assert_eq!(readings("a --b B … | --c C --d"), ["a --b B --d", "a --c C --d"]);
    assert_eq!(readings("a [terms] [--b]"), ["a", "a --b"]);
    assert_eq!(without_rest("onsale x > file"), "onsale x");
    assert_eq!(without_rest("onsale x    some words"), "onsale x");
    assert_eq!(without_rest("onsale x   --y [--z]  # why"), "onsale x   --y [--z]");
}
