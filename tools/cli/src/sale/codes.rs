//! `onsale sale codes`: codes for the groups of a waiting room, made, brought and counted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use comfy_table::{Table, presets};
use engine::domain::admission::room::code::{Code, MAX_CODE_USES};
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::flows::room::published;
use engine::ports::{RoomPorts as _, StoreError};
use futures_util::future::join_all;
use importers::read_bounded;
use serde_json::{Value, json};
use shared::dynamodb::CodeCounts;
use shared::runtime::app::{App, new_code};

use super::{DECLINED, Error, out, pretty};
use crate::engine::{EngineArgs, Reached};

/// Most codes of one command.
const MAX_CODES: u32 = 100_000;
/// Codes that are written together.
const TOGETHER: usize = 16;

/// What is done with the codes of a group.
#[derive(Debug, Subcommand)]
pub(super) enum CodesVerb {
    /// Add codes by which a group of the waiting room is joined. Those that are made are printed, a line each,
    /// this once: what is kept is their hashes.
    Add(Add),
    /// Show how many codes each group has, and how many of their uses are used.
    Show {
        /// The sale's id.
        sale: SaleId,
        #[command(flatten)]
        engine: EngineArgs,
    },
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// The sale's id.
    sale: SaleId,
    /// The group.
    group: GroupId,
    /// A file with a code a line, of 8 to 64 letters and digits each. Case, blanks and hyphens mean nothing.
    #[arg(required_unless_present = "count", conflicts_with = "count")]
    file: Option<PathBuf>,
    /// Make so many codes, of 80 random bits each.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CODES)))]
    count: Option<u32>,
    /// How often each code may be used.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CODE_USES)))]
    uses: u32,
    #[command(flatten)]
    engine: EngineArgs,
}

/// What became of the codes of a command.
#[derive(Debug, Default)]
struct Added {
    /// The codes that were made, as they are handed out.
    made: Vec<String>,
    /// Codes that are new.
    added: usize,
    /// Codes that the group had before.
    known: usize,
}

impl CodesVerb {
    /// Carries the command out.
    pub(super) async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Error> {
        match self {
            Self::Add(add) => add.run(data_dir, json).await,
            Self::Show { sale, engine } => {
                let Reached { app, .. } = engine.reach(data_dir).await.map_err(Error::Engine)?;
                let counted = count(&app, &sale).await.map_err(stored)?;
                if counted.is_empty() {
                    let what =
                        "the sale has no waiting room with a group that is joined with a code";
                    return declined(&sale, what, json);
                }
                out(&if json { pretty(&facts(&sale, &counted)) } else { text(&counted) })
            }
        }
    }
}

impl Add {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Error> {
        let Self { sale, group, file, count, uses, engine } = self;
        // All of the file before any of it is written.
        let brought = match &file {
            None => Vec::new(),
            Some(file) => match read_codes(file)? {
                Ok(codes) => codes,
                Err(what) => return declined(&sale, &what, json),
            },
        };
        let Reached { app, .. } = engine.reach(data_dir).await.map_err(Error::Engine)?;
        if !takes_codes(&app, &sale, &group).await.map_err(stored)? {
            let what = format!("the sale has no group {group} that is joined with a code");
            return declined(&sale, &what, json);
        }
        let mut added = Added::default();
        let done = async {
            add_all(&app, &sale, &group, &brought, uses, &mut added).await?;
            let mut left = usize::try_from(count.unwrap_or(0)).unwrap_or(usize::MAX);
            while left > 0 {
                let some = make(left.min(TOGETHER))?;
                left -= some.len();
                let codes: Vec<Code> = some.iter().map(|(_, code)| code.clone()).collect();
                add_all(&app, &sale, &group, &codes, uses, &mut added).await?;
                // Only those that are kept are handed out.
                added.made.extend(some.into_iter().map(|(text, _)| text));
            }
            Ok::<(), StoreError>(())
        };
        let done = done.await;
        out(&said(&sale, &group, uses, &added, json))?;
        if let Err(error) = done {
            return Err(stored(error));
        }
        if !json {
            let Added { added, known, .. } = added;
            eprintln!("{sale}: {added} codes added to {group}, {known} were there already");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn stored(error: StoreError) -> Error {
    Error::Engine(error.into())
}

fn declined(sale: &SaleId, what: &str, json: bool) -> Result<ExitCode, Error> {
    let facts = || pretty(&json!({ "sale": sale, "what": what }));
    out(&if json { facts() } else { format!("{sale}: {what}\n") })?;
    Ok(ExitCode::from(DECLINED))
}

/// The codes of a file, or what is wrong with it.
fn read_codes(file: &Path) -> Result<Result<Vec<Code>, String>, Error> {
    // What is no text has no code in it either.
    let text = String::from_utf8_lossy(&read_bounded(file)?).into_owned();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(index, line): (usize, &str)| {
        Code::new(line.trim()).map_err(|error| format!("line {}: {error}", index + 1))
    };
    let codes: Result<Vec<Code>, String> = lines.map(read).collect();
    let most = usize::try_from(MAX_CODES).unwrap_or(usize::MAX);
    Ok(codes.and_then(|codes| {
        let fits = (1..=most).contains(&codes.len());
        if fits { Ok(codes) } else { Err(format!("a file must have 1 to {MAX_CODES} codes")) }
    }))
}

/// New codes, as they are handed out and as they are hashed.
fn make(count: usize) -> Result<Vec<(String, Code)>, StoreError> {
    let one = |_| {
        let text = new_code()?;
        let code = Code::new(&text).map_err(|error| StoreError::Contract(error.to_string()))?;
        Ok((text, code))
    };
    (0..count).map(one).collect()
}

/// True if a sale has a room with a group that is joined with a code.
async fn takes_codes(app: &App, sale: &SaleId, group: &GroupId) -> Result<bool, StoreError> {
    let room = published(&app.ports, sale).await?;
    let groups = room.into_iter().flat_map(|room| room.settings.groups);
    Ok(groups.filter(|of| of.codes).any(|of| of.group == *group))
}

async fn add_all(
    app: &App,
    sale: &SaleId,
    group: &GroupId,
    codes: &[Code],
    uses: u32,
    added: &mut Added,
) -> Result<(), StoreError> {
    for some in codes.chunks(TOGETHER) {
        let add = some.iter().map(|code| {
            let hash = code.hash(sale, group);
            app.ports.rooms().0.add_code(sale, group, hash, uses)
        });
        for is_new in join_all(add).await {
            if is_new? { added.added += 1 } else { added.known += 1 }
        }
    }
    Ok(())
}

fn said(sale: &SaleId, group: &GroupId, uses: u32, added: &Added, json: bool) -> String {
    let Added { made, added, known } = added;
    if json {
        return pretty(&json!({
            "sale": sale, "group": group, "uses": uses,
            "added": added, "known": known, "codes": made,
        }));
    }
    made.iter().flat_map(|code| [code.as_str(), "\n"]).collect()
}

/// The codes of each group that is joined with one.
async fn count(app: &App, sale: &SaleId) -> Result<Vec<(GroupId, CodeCounts)>, StoreError> {
    let room = published(&app.ports, sale).await?;
    let groups = room.into_iter().flat_map(|room| room.settings.groups);
    let mut counted = Vec::new();
    for group in groups.filter(|group| group.codes).map(|group| group.group) {
        let counts = app.ports.rooms().0.count_codes(sale, &group).await?;
        counted.push((group, counts));
    }
    Ok(counted)
}

fn facts(sale: &SaleId, counted: &[(GroupId, CodeCounts)]) -> Value {
    let group = |(group, CodeCounts { codes, uses, used }): &(GroupId, CodeCounts)| json!({ "group": group, "codes": codes, "uses": uses, "used": used });
    json!({ "sale": sale, "groups": counted.iter().map(group).collect::<Vec<Value>>() })
}

fn text(counted: &[(GroupId, CodeCounts)]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["group", "codes", "uses", "used"]);
    for (group, CodeCounts { codes, uses, used }) in counted {
        table.add_row([group.to_string(), codes.to_string(), uses.to_string(), used.to_string()]);
    }
    format!("{table}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Code>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("codes.txt");
        std::fs::write(&file, text).unwrap();
        read_codes(&file).unwrap()
    }

    #[test]
    fn a_file_has_a_code_a_line() {
        let codes = read("FANS-2026-1\n\n  fans 2026 2 \r\n").unwrap();
        let new = |text: &str| Code::new(text).unwrap();
        assert_eq!(codes, [new("fans20261"), new("FANS20262")]);
        assert!(read("FANS-2026-1\nshort\n").unwrap_err().starts_with("line 2: a code must be"));
        assert!(read("\n").unwrap_err().contains("1 to 100000"));
    }

    #[test]
    fn made_codes_are_read_back_and_are_said_once() {
        let made = make(3).unwrap();
        assert!(made.iter().all(|(text, code)| Code::new(text).as_ref() == Ok(code)));
        let texts: Vec<String> = made.into_iter().map(|(text, _)| text).collect();
        let (sale, group) = (SaleId::new("s").unwrap(), GroupId::new("club").unwrap());
        let added = Added { made: texts.clone(), added: 3, known: 0 };
        assert_eq!(said(&sale, &group, 1, &added, false).lines().collect::<Vec<_>>(), texts);
        assert!(said(&sale, &group, 1, &added, true).contains(&texts[2]));
        let counts = CodeCounts { codes: 3, uses: 30, used: 7 };
        let shown = text(&[(group.clone(), counts)]);
        let row: Vec<&str> = shown.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row, ["club", "3", "30", "7"]);
        assert_eq!(facts(&sale, &[(group, counts)])["groups"][0]["used"], 7);
    }
}
