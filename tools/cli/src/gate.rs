//! `onsale gate`: the operator's rules of a sale's gate.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::admission::rules::{Action, BuiltIn, MAX_RULES, Rule, Subject};
use engine::domain::basics::ids::{DeviceHint, RuleId, SaleId, UserId};
use engine::domain::basics::network::Network;
use engine::domain::basics::time::Timestamp;
use engine::ports::{Catalogue as _, Freshness, Ports as _};
use serde_json::{Value, json};
use shared::dynamodb::{AddReply, RemoveReply};

use super::engine::{EngineArgs, Reached};
use super::{DECLINED, Failure, out};

/// Say who is refused, slowed down or challenged harder at the gate of a sale.
#[derive(Debug, Args)]
pub struct GateCommand {
    #[command(subcommand)]
    subject: About,
}

#[derive(Debug, Subcommand)]
enum About {
    Rules(RulesCommand),
}

/// The rules of a sale: list, add and remove them. A change is in force at every gate within two seconds.
///
/// Rules that deny come first. An operator's limit takes the place of the built-in one for whom it names, and
/// counts all of them together. The built-in limits are settings of the sale (docs/sale-file.md).
///
/// Exit code 1: the sale has such a rule already, or has none such, or has as many as it may have.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale gate rules list club-undertow
  onsale gate rules add club-undertow farm-7 --address 198.51.100.0/24 --deny --text not-from-here
  onsale gate rules add club-undertow stadium --address 203.0.113.8 --limit 500000/60 --text wait
  onsale gate rules add club-undertow headless --device hl-1 --harder 4 --text try-again
  onsale gate rules remove club-undertow farm-7 --from-environment")]
struct RulesCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the rules, and how many requests each of them and each built-in limit has refused.
    List {
        /// The sale's id.
        sale: SaleId,
        #[command(flatten)]
        engine: EngineArgs,
    },
    /// Add a rule.
    Add(Box<Add>),
    /// Remove a rule.
    Remove {
        /// The sale's id.
        sale: SaleId,
        /// The rule's id.
        rule: RuleId,
        #[command(flatten)]
        engine: EngineArgs,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// The sale's id.
    sale: SaleId,
    /// An id for the rule, which whoever it refuses is told.
    rule: RuleId,
    #[command(flatten)]
    whom: Whom,
    #[command(flatten)]
    what: What,
    /// What is said to whom it refuses: at most 200 bytes. It need not say why.
    #[arg(long, value_name = "TEXT")]
    text: String,
    /// Until when it is valid (RFC 3339) [default: until it is removed]
    #[arg(long, value_name = "TIME")]
    until: Option<Timestamp>,
    #[command(flatten)]
    engine: EngineArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Whom {
    /// About one buyer.
    #[arg(long, value_name = "ID")]
    buyer: Option<UserId>,
    /// About an address, or all of a network, of IPv4 or IPv6.
    #[arg(long, value_name = "CIDR")]
    address: Option<Network>,
    /// About whoever sends this device hint.
    #[arg(long, value_name = "HINT")]
    device: Option<DeviceHint>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Refuse.
    #[arg(long)]
    deny: bool,
    /// Let so many requests pass in a window of so many seconds.
    #[arg(long, value_name = "COUNT/SECONDS", value_parser = limit)]
    limit: Option<Action>,
    /// Make challenges harder by so many doublings, 1 to 8.
    #[arg(long, value_name = "DOUBLINGS")]
    harder: Option<u8>,
}

fn limit(text: &str) -> Result<Action, String> {
    let (count, seconds) = text.split_once('/').ok_or("must be COUNT/SECONDS")?;
    let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
    Ok(Action::Limit { count: number(count)?, seconds: number(seconds)? })
}

impl Whom {
    fn subject(self) -> Option<Subject> {
        let Self { buyer, address, device } = self;
        buyer.map(Subject::Buyer).or(address.map(Subject::Address)).or(device.map(Subject::Device))
    }
}

impl What {
    fn action(self) -> Option<Action> {
        let Self { deny, limit, harder } = self;
        limit.or(harder.map(Action::Harder)).or(deny.then_some(Action::Deny))
    }
}

impl GateCommand {
    /// Lists, adds or removes.
    ///
    /// # Errors
    /// The engine cannot be reached, there is no such sale, or the rule means nothing.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let About::Rules(RulesCommand { verb }) = self.subject;
        match verb {
            Verb::List { sale, engine } => {
                let reached = reach(&engine, data_dir, &sale).await?;
                list(&reached, &sale, json).await
            }
            Verb::Add(add) => {
                let Add { sale, rule, whom, what, text, until, engine } = *add;
                let (Some(subject), Some(action)) = (whom.subject(), what.action()) else {
                    return Err("a rule is about somebody, and does something".into());
                };
                let rule = Rule { rule, subject, action, text, until };
                rule.check()?;
                let reached = reach(&engine, data_dir, &sale).await?;
                let reply = reached.app.ports.rules().add(&sale, &rule).await?;
                let full = format!("the sale has {MAX_RULES} rules, as many as it may have");
                let (is_done, what) = match reply {
                    AddReply::Added => (true, "added: in force within two seconds"),
                    AddReply::Exists => (false, "the sale has a rule of this id already"),
                    AddReply::Full => (false, full.as_str()),
                };
                done(&sale, &rule.rule, is_done, what, json)
            }
            Verb::Remove { sale, rule, engine } => {
                let reached = reach(&engine, data_dir, &sale).await?;
                let (is_done, what) = match reached.app.ports.rules().remove(&sale, &rule).await? {
                    RemoveReply::Removed => (true, "removed: of no effect within two seconds"),
                    RemoveReply::Unknown => (false, "the sale has no such rule"),
                };
                done(&sale, &rule, is_done, what, json)
            }
        }
    }
}

/// The engine, if it has the sale.
async fn reach(engine: &EngineArgs, data_dir: &Path, sale: &SaleId) -> Result<Reached, Failure> {
    let reached = engine.reach(data_dir).await?;
    let found = reached.app.ports.catalogue().sale(sale, Freshness::Fresh).await?;
    if found.is_some() { Ok(reached) } else { Err(format!("there is no sale {sale}").into()) }
}

fn done(
    sale: &SaleId,
    rule: &RuleId,
    is_done: bool,
    what: &str,
    json: bool,
) -> Result<ExitCode, Failure> {
    out(&if json {
        reporting::json(&json!({ "sale": sale, "rule": rule, "done": is_done, "what": what }))
    } else {
        format!("{rule} of {sale}: {what}")
    })?;
    Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
}

async fn list(reached: &Reached, sale: &SaleId, json: bool) -> Result<ExitCode, Failure> {
    let ports = &reached.app.ports;
    let rules = ports.rules().read(sale).await?;
    let mut refused = ports.counters().refusals(sale).await?;
    let mut refused_by = |name: &str| refused.remove(name).unwrap_or(0);
    let rules: Vec<(Rule, u64)> = rules
        .into_iter()
        .map(|rule| {
            let count = refused_by(rule.rule.as_str());
            (rule, count)
        })
        .collect();
    let limits = BuiltIn::ALL.map(|limit| (limit.as_str(), refused_by(limit.as_str())));
    // What is left was refused by rules that were removed since.
    if json {
        let of_rules = rules.iter().map(|(rule, count)| {
            let mut shown = json!(rule);
            shown["refused"] = json!(count);
            shown
        });
        let of_limits =
            limits.iter().map(|(limit, count)| json!({ "limit": limit, "refused": count }));
        return out(&reporting::json(&json!({
            "sale": sale,
            "rules": of_rules.collect::<Vec<Value>>(),
            "limits": of_limits.collect::<Vec<Value>>(),
            "removed": refused,
        })));
    }
    let mut text = String::new();
    for (Rule { rule, subject, action, text: says, until }, count) in &rules {
        let (subject, action) = (shown_subject(subject), shown_action(*action));
        let _ = write!(text, "{rule}: {subject}: {action}; refused {count}; says “{says}”");
        if let Some(until) = until {
            let _ = write!(text, "; until {until}");
        }
        text.push('\n');
    }
    for (limit, count) in &limits {
        let _ = writeln!(text, "{limit} (built in): refused {count}");
    }
    for (rule, count) in &refused {
        let _ = writeln!(text, "{rule} (removed): refused {count}");
    }
    out(&text.trim_end())
}

fn shown_subject(subject: &Subject) -> String {
    match subject {
        Subject::Buyer(user) => format!("buyer {user}"),
        Subject::Address(network) => format!("address {network}"),
        Subject::Device(hint) => format!("device {hint}"),
    }
}

fn shown_action(action: Action) -> String {
    match action {
        Action::Deny => "deny".to_owned(),
        Action::Limit { count, seconds } => format!("limit {count} in {seconds} s"),
        Action::Harder(level) => format!("challenges harder by {level} doublings"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_count_and_a_window() {
        assert_eq!(limit("500/60"), Ok(Action::Limit { count: 500, seconds: 60 }));
        for wrong in ["500", "/60", "500/", "-1/60", "5/6/7"] {
            assert!(limit(wrong).is_err(), "{wrong}");
        }
    }
}
