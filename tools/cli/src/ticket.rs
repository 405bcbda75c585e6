//! `onsale ticket`: arguments and printed results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::basics::time::Timestamp;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::up::{PREFIX, ticket_secrets};
use serde_json::{Value, json};
use shared::dynamodb::Tables;
use shared::runtime::config::DynamoDbConfig;
use shared::tickets::{
    CodeDefect, MAX_CODE_BYTES, PublicKeys, RevokedList, Standing, TicketCode, TicketKeys,
};

use super::{DECLINED, Failure, out};

/// Check the codes of tickets.
#[derive(Debug, Args)]
pub struct TicketCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Verify(VerifyCommand),
}

/// Check a ticket's code as a door does, from public keys and nothing else.
///
/// Exit code 0: it lets its holder in, 1: it does not, and the reason is named. Whether it has let somebody in
/// already is known where check-ins are recorded.
#[derive(Debug, Args)]
#[command(after_help = "\
Without --keys, with the keys of the engine of the data directory. With files, no network is needed.

Examples:
  onsale ticket verify eyJ0eXAi...
  onsale ticket verify eyJ0eXAi... --keys https://tickets.example/api/ticket-keys
  onsale ticket verify eyJ0eXAi... --keys keys.json --revoked revoked.jsonl")]
struct VerifyCommand {
    /// The code, as it is in the picture.
    code: String,
    /// What GET /ticket-keys has answered: a file, or the address to ask.
    #[arg(long, value_name = "FILE|URL")]
    keys: Option<String>,
    /// What GET /sales/SALE/revoked has answered, a page a line.
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
}

/// What a code is worth.
enum Verdict {
    /// It is no code of the deployment.
    Refused(CodeDefect),
    /// It is one; what the list says of it, if there was a list, and the time of that.
    Read(TicketCode, Option<(Standing, Option<i64>)>),
}

impl TicketCommand {
    /// Checks, and prints what it found.
    ///
    /// # Errors
    /// The keys or the list cannot be read, or are not what they must be.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Action::Verify(command) = self.action;
        let verdict = command.verdict(data_dir).await?;
        if json {
            out(&verdict.json())?
        } else {
            out(&verdict.text())?
        };
        Ok(if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}

impl VerifyCommand {
    async fn verdict(self, data_dir: &Path) -> Result<Verdict, Failure> {
        let Self { code, keys, revoked } = self;
        let keys = match keys {
            Some(from) => PublicKeys::read(&text_of(&from).await?)?,
            None => own_keys(data_dir)?,
        };
        let pages = match revoked {
            Some(file) => Some(pages(&keys, &std::fs::read_to_string(file)?)?),
            None => None,
        };
        let longest = code.len() <= MAX_CODE_BYTES;
        let checked =
            if longest { keys.check_code(code.trim()) } else { Err(CodeDefect::Malformed) };
        Ok(match checked {
            Err(defect) => Verdict::Refused(defect),
            Ok(code) => {
                let standing = pages
                    .map(|pages| (code.standing(&pages), pages.iter().map(|page| page.at).min()));
                Verdict::Read(code, standing)
            }
        })
    }
}

/// What an address answers, or a file has.
async fn text_of(from: &str) -> Result<String, Failure> {
    if from.starts_with("http://") || from.starts_with("https://") {
        return Ok(reqwest::get(from).await?.error_for_status()?.text().await?);
    }
    Ok(std::fs::read_to_string(from)?)
}

/// The keys of the engine of a data directory.
fn own_keys(data_dir: &Path) -> Result<PublicKeys, Failure> {
    let secrets = Secrets::read(data_dir)?;
    // One that does not run has the prefix that it would have.
    let running = Endpoints::read(data_dir).ok();
    let prefix = running.map_or_else(|| PREFIX.to_owned(), |running| running.table_prefix);
    let tables = DynamoDbConfig { tables: Tables::with_prefix(&prefix), endpoint: None };
    let keys = TicketKeys::new(tables.deployment(), &ticket_secrets(&secrets));
    Ok(keys.public().clone())
}

/// The pages of a list: each line is an answer as it was given, or the page itself.
fn pages(keys: &PublicKeys, text: &str) -> Result<Vec<RevokedList>, Failure> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let page = |line: &str| {
        let answer: Option<Value> = serde_json::from_str(line).ok();
        let list = answer.as_ref().and_then(|answer| answer["list"].as_str()).unwrap_or(line);
        Ok(keys.check_list(list)?)
    };
    lines.map(page).collect()
}

impl Verdict {
    fn is_good(&self) -> bool {
        self.reason() == "valid"
    }

    /// What it comes to, in a word.
    fn reason(&self) -> &'static str {
        match self {
            Self::Refused(CodeDefect::Malformed) => "malformed",
            Self::Refused(CodeDefect::BadSignature) => "bad-signature",
            Self::Refused(CodeDefect::OtherKey(_) | CodeDefect::OtherDeployment(_)) => {
                "other-deployment"
            }
            Self::Read(_, None | Some((Standing::Good, _))) => "valid",
            Self::Read(_, Some((Standing::Revoked, _))) => "revoked",
            Self::Read(_, Some((Standing::OldIssue, _))) => "old-issue",
            Self::Read(_, Some((Standing::NotListed, _))) => "not-listed",
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Refused(defect) => {
                json!({ "verdict": self.reason(), "detail": defect.to_string() })
            }
            Self::Read(code, standing) => {
                let mut said = json!({
                    "verdict": self.reason(), "sale": code.sale, "tier": code.tier,
                    "order": code.order, "ticket": code.ticket, "issue": code.issue,
                });
                if let Some(seat) = &code.seat {
                    said["seat"] = json!(seat);
                }
                if let Some((from, to)) = &code.journey {
                    (said["from"], said["to"]) = (json!(from), json!(to));
                }
                if let Some(at) = standing.and_then(|(_, at)| at) {
                    said["list_at"] = json!(Timestamp::from_ms(at.saturating_mul(1000)));
                }
                said
            }
        }
    }

    fn text(&self) -> String {
        let (code, standing) = match self {
            Self::Refused(defect) => return format!("{}: {defect}", self.reason()),
            Self::Read(code, standing) => (code, standing),
        };
        let seat = code.seat.as_ref().map(|seat| format!(", seat {seat}")).unwrap_or_default();
        let journey = code.journey.as_ref();
        let journey = journey.map(|(from, to)| format!(", {from} to {to}")).unwrap_or_default();
        let TicketCode { sale, tier, order, ticket, issue, .. } = code;
        let ticket = format!(
            "{sale}, tier {tier}{seat}{journey}: order {order}, ticket {ticket}, issue {issue}"
        );
        let list = match standing {
            None => "\nno list of revoked tickets was given (--revoked)".to_owned(),
            Some((Standing::NotListed, _)) => {
                "\nthe list is of another sale, or a page of it is missing".to_owned()
            }
            Some((Standing::Good | Standing::Revoked | Standing::OldIssue, at)) => {
                let at = at.map(|at| Timestamp::from_ms(at.saturating_mul(1000)).to_string());
                format!("\nby the list of {}", at.unwrap_or_default())
            }
        };
        format!("{}: {ticket}{list}", self.reason())
    }
}
