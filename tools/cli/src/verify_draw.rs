//! `onsale verify-draw`: arguments and printed results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::bytes::Nonce;
use engine::domain::basics::ids::{GroupId, UserId};

use super::{DECLINED, Failure, out};
use ops::draw::publication::Publication;
use ops::draw::report::Verdict;
use ops::draw::witness::{Sighting, Watcher};
use ops::draw::{Own, Seen, verify};
use shared::beacon::{Chain, Chains};

/// Check a waiting room's draw, its log and its admissions, from what was published and nothing else.
///
/// Exit code 0: witnessed: the rules were kept, and a watcher saw the root before the round. 3: not witnessed: the rules were
/// kept. 1: wrong: a rule was broken, and each defect is named. 2: a file cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR has log.jsonl, leaves.jsonl, admissions.jsonl and orders.jsonl. No network is needed.

Examples:
  onsale verify-draw published
  onsale verify-draw published --seen watched.jsonl --watcher 5c0e7f1d2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5
  onsale verify-draw published --seen b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482
  onsale verify-draw published --index 4711 --buyer alice --nonce 00112233445566778899aabbccddeeff")]
pub struct VerifyDrawCommand {
    /// The folder of the published files.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A chain of a beacon beside drand's quicknet, by its hash, its public key, genesis and period in seconds.
    #[arg(long, value_name = "HASH:KEY:GENESIS:PERIOD")]
    chain: Vec<Chain>,
    /// A hash that you saw during the sale (of a record, of a root, or the commitment), or the file of a watcher; more than
    /// once if you like.
    #[arg(long, value_name = "HASH|FILE")]
    seen: Vec<String>,
    /// The public key of a watcher whom you trust; more than once if you like: then each must have seen the same.
    #[arg(long, value_name = "KEY", requires = "seen")]
    watcher: Vec<Watcher>,
    #[arg(long, value_name = "GROUP", default_value = "all")]
    group: GroupId,
    /// Your index: where your place was, when it was due, and whether you stand in the tree.
    #[arg(long, value_name = "N", requires_all = ["buyer", "nonce"])]
    index: Option<u32>,
    /// Who you are to the issuer of your tokens.
    #[arg(long, value_name = "ID", requires = "index")]
    buyer: Option<UserId>,
    /// The nonce that you got on joining.
    #[arg(long, value_name = "NONCE", requires = "index")]
    nonce: Option<Nonce>,
}

impl VerifyDrawCommand {
    /// Checks, and prints the report.
    ///
    /// # Errors
    /// The files cannot be read.
    pub fn run(self, json: bool) -> Result<ExitCode, Failure> {
        let Self { folder, chain, seen, watcher, group, index, buyer, nonce } = self;
        let seen = read_seen(&seen, watcher)?;
        let publication = Publication::read(&folder)?;
        let own = match (index, buyer, nonce) {
            (Some(index), Some(buyer), Some(nonce)) => Some(Own { group, index, buyer, nonce }),
            (Some(_) | None, Some(_) | None, Some(_) | None) => None,
        };
        let report = verify(&publication, &Chains::with(chain), &seen, own.as_ref());
        if json {
            out(&report.json())?
        } else {
            out(&report)?
        };
        Ok(match report.verdict {
            Verdict::Witnessed => ExitCode::SUCCESS,
            Verdict::NotWitnessed => ExitCode::from(NOT_WITNESSED),
            Verdict::Wrong => ExitCode::from(DECLINED),
        })
    }
}

/// The exit code when the rules were kept and nobody witnesses it.
const NOT_WITNESSED: u8 = 3;

/// What was seen: hashes, and the lines of watchers' files.
fn read_seen(seen: &[String], watchers: Vec<Watcher>) -> Result<Seen, Failure> {
    let mut read = Seen { watchers, ..Seen::default() };
    for seen in seen {
        match seen.parse() {
            Ok(hash) => read.hashes.push(hash),
            Err(_) => read.sightings.extend(Sighting::read(Path::new(seen), &read.watchers)?),
        }
    }
    Ok(read)
}
