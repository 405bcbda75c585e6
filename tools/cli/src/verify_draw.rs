//! `onsale verify-draw`: arguments and printed results.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::bytes::{Hash, Nonce};
use engine::domain::basics::ids::{GroupId, UserId};

use super::{DECLINED, Failure, out};
use ops::draw::publication::Publication;
use ops::draw::{Own, verify};
use shared::beacon::{Chain, Chains};

/// Check a waiting room's draw, its log and its admissions, from what was published and nothing else.
///
/// Exit code 0: everything is as the rules make it, 1: something is wrong, and each defect is named.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR has log.jsonl, leaves.jsonl and admissions.jsonl. No network is needed.

Examples:
  onsale verify-draw published
  onsale verify-draw published --seen b75c69d0b72a5d906e854e808ba7e2accb1542ac355ae486d591aa9d43765482
  onsale verify-draw published --index 4711 --buyer alice --nonce 00112233445566778899aabbccddeeff")]
pub struct VerifyDrawCommand {
    /// The folder of the published files.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A chain of a beacon beside drand's quicknet, by its hash and its public key.
    #[arg(long, value_name = "HASH:KEY")]
    chain: Vec<Chain>,
    /// A hash that you saw during the sale: of a record, of a root, or the commitment; more than once if you like.
    #[arg(long, value_name = "HASH")]
    seen: Vec<Hash>,
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
        let Self { folder, chain, seen, group, index, buyer, nonce } = self;
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
        Ok(if report.clean { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}
