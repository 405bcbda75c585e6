//! `onsale room`: what is published of a waiting room, and what is erased of it.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::basics::ids::{GroupId, SaleId};
use engine::domain::basics::time::Timestamp;
use engine::flows::room::published;
use engine::ports::{Catalogue as _, Freshness, Ports as _, RoomPorts as _};
use ops::draw::export::{Error, Exported, export};
use ops::draw::watch::Watch;
use reporting::grouped;
use serde_json::json;
use shared::dynamodb::ErasedPlaces;

use super::engine::{EngineArgs, Reached};
use super::{DECLINED, Failure, out};

/// Publish what a waiting room is checked by, and erase who was in it.
#[derive(Debug, Args)]
pub struct RoomCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Export(Export),
    Erase(Erase),
    Watch(Watching),
}

/// Write log, leaves, admissions and orders of a sale's waiting room as files, for everybody to check with
/// `onsale verify-draw`. Nothing in them says who anybody is.
///
/// Exit code 1: the sale has no waiting room.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale room export demo-club published
  onsale room export demo-club published --from-environment")]
struct Export {
    /// The sale's id.
    sale: SaleId,
    /// The folder for the files; those of an earlier export are replaced.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Erase who had joined the waiting room of an archived sale: the memberships, with buyers, nonces and visits, and the
/// codes. Log and leaves stay, and say nothing of whose they are. Export the room before: the admissions are gone then.
///
/// It may be repeated: a run that was cut off is finished by another. Exit code 1: the sale is not archived, or has
/// no waiting room.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale room export demo-club published
  onsale room erase demo-club")]
struct Erase {
    /// The sale's id.
    sale: SaleId,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Watch a waiting room as anybody may, and sign what it shows, for others who trust you to check with
/// `onsale verify-draw --seen FILE --watcher KEY`: that the root came before the beacon's round, and that everybody was shown
/// the same log.
///
/// It makes a key, prints its public half, which you give to others before the draw, and appends a line to FILE for each
/// record that it is shown. It ends when places are drawn.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale room watch https://tickets.example/api/sales/demo-club/room watched.jsonl")]
struct Watching {
    /// The address of the room document, which ends with /sales/SALE/room.
    url: String,
    /// The file of the signed lines.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Goes on until the room is closed or sold out: who saw its last records knows whether a log was cut.
    #[arg(long)]
    stay: bool,
}

impl Watching {
    async fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { url, file, stay } = self;
        let watch = Watch::new()?;
        let key = watch.key();
        let said = format!("watching {url} with the key {key}");
        out(&if json { json!({ "watcher": key }).to_string() } else { said })?;
        let mut lines = OpenOptions::new().create(true).append(true).open(file)?;
        watch.run(&url, &mut lines, stay).await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl RoomCommand {
    /// Exports or erases, and prints how much.
    ///
    /// # Errors
    /// The engine cannot be reached, DynamoDB fails, or a file cannot be written.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        match self.verb {
            Verb::Export(export) => export.run(data_dir, json).await,
            Verb::Erase(erase) => erase.run(data_dir, json).await,
            Verb::Watch(watching) => watching.run(json).await,
        }
    }
}

impl Export {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { sale, folder, engine } = self;
        let Reached { app, .. } = engine.reach(data_dir).await?;
        let (facts, said, code) = match export(&app.ports, &sale, &folder, Timestamp::now()).await {
            Ok(exported) => {
                let Exported { records, chunks, admissions, orders } = exported;
                let said = format!(
                    "{sale}: {} records, {} chunks of leaves, {} admissions and {} orders written to {}",
                    grouped(records),
                    grouped(chunks),
                    grouped(admissions),
                    grouped(orders),
                    folder.display()
                );
                (json!({ "sale": sale, "exported": exported }), said, ExitCode::SUCCESS)
            }
            Err(error @ Error::NoRoom) => {
                let facts = json!({ "sale": sale, "exported": null, "what": error.to_string() });
                (facts, format!("{sale}: {error}"), ExitCode::from(DECLINED))
            }
            Err(error @ (Error::Store(_) | Error::File(_))) => return Err(error.into()),
        };
        out(&if json { reporting::json(&facts) } else { said })?;
        Ok(code)
    }
}

impl Erase {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { sale, engine } = self;
        let Reached { app, .. } = engine.reach(data_dir).await?;
        let listed = app.ports.catalogue().sale(&sale, Freshness::Fresh).await?;
        let is_archived = listed.is_some_and(|listed| listed.lifecycle.is_over());
        let room = published(&app.ports, &sale).await?.filter(|_| is_archived);
        let Some(room) = room else {
            let what = "the sale is not archived, or has no waiting room";
            let facts = json!({ "sale": sale, "what": what });
            out(&if json { reporting::json(&facts) } else { format!("{sale}: {what}") })?;
            return Ok(ExitCode::from(DECLINED));
        };
        let groups: Vec<GroupId> = room.settings.groups.into_iter().map(|of| of.group).collect();
        let ErasedPlaces { places, codes } =
            app.ports.rooms().0.erase_places(&sale, &groups).await?;
        out(&if json {
            reporting::json(&json!({ "sale": sale, "places": places, "codes": codes }))
        } else {
            let (places, codes) = (grouped(places), grouped(codes));
            format!("{sale}: {places} places and {codes} items of codes erased")
        })
    }
}
