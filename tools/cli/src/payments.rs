//! `onsale payments`: captures of no order, and refunds of whole payments that failed, about which an operator decides.

use std::path::Path;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::PaymentKey;
use engine::flows::unmatched::{Refusal, Word, tell};
use serde_json::json;
use shared::dynamodb::{DynamoOperators, KeptAction};
use shared::http::operators::ActionKind;
use shared::http::unmatched::{UnmatchedPageReply, UnmatchedReply, detail};

use super::engine::EngineArgs;
use super::{DECLINED, Failure, out};

/// Payments that are read at a time.
const PAGE: u16 = 100;

/// Payments that this deployment has started and whose order is not there, and payments that go back whole and did not.
#[derive(Debug, Args)]
pub struct PaymentsCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Unmatched(Unmatched),
    /// Send the money of one back.
    SendBack(Say),
    /// Say what one was: its money stays, on the account `explained`.
    Explain(Say),
    /// Send the refund of a whole payment again that has failed, or whose money came to us again: under another name, if the
    /// one before came to nothing. Look first, in the provider's list or bill, whether somebody has sent it by hand.
    Again(Say),
    /// Say how such a refund was paid otherwise: nothing is sent any more. The reason says how.
    Settled(Say),
}

/// Print the payments of no order about which an operator is to decide, latest number first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale payments unmatched
  onsale payments unmatched --from-environment --json")]
struct Unmatched {
    #[command(flatten)]
    engine: EngineArgs,
}

/// What is said of one payment. Saying the same again changes nothing.
///
/// Exit code 1: it is refused; what is printed says why.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale payments send-back 169218430493097984 stripe pi_1 --by ann --reason restored
  onsale payments explain 169218430493097984 stripe pi_1 --by ann --reason season-card
  onsale payments settled 169218430493097984 stripe pi_1 --by ann --reason bank-transfer")]
struct Say {
    /// The number of the order that the payment names.
    #[arg(value_name = "ORDER")]
    order: OrderNumber,
    /// The provider.
    #[arg(value_name = "PROVIDER")]
    provider: ProviderId,
    /// The payment, as the provider names it.
    #[arg(value_name = "PAYMENT")]
    payment: PaymentId,
    /// Who says so; kept with the actions of operators.
    #[arg(long, value_name = "NAME")]
    by: String,
    /// Why; kept with it.
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    engine: EngineArgs,
}

impl PaymentsCommand {
    /// Prints them, or records what is said of one.
    ///
    /// # Errors
    /// The engine cannot be reached, or a store fails.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        match self.action {
            Action::Unmatched(listed) => listed.run(data_dir, json).await,
            Action::SendBack(said) => said.run(Word::SendBack, data_dir, json).await,
            Action::Explain(said) => said.run(Word::Explain, data_dir, json).await,
            Action::Again(said) => said.run(Word::Again, data_dir, json).await,
            Action::Settled(said) => said.run(Word::Settled, data_dir, json).await,
        }
    }
}

impl Unmatched {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let reached = self.engine.reach(data_dir).await?;
        let ports = &reached.app.ports;
        let (mut found, mut before): (Vec<UnmatchedReply>, Option<String>) = (Vec::new(), None);
        loop {
            let now = Timestamp::now();
            let page = UnmatchedPageReply::read(ports, before.as_deref(), PAGE, now).await?;
            found.extend(page.unmatched);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        if json {
            return out(&json!({ "unmatched": found }));
        }
        for it in &found {
            let never = if it.minted { "" } else { ", which was never minted here" };
            let (amount, currency) = (it.amount_minor, it.currency);
            out(&format!(
                "{} {amount:>12} {currency}  {} {} for order {}{never}",
                it.decided_at, it.provider, it.payment, it.order
            ))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Say {
    async fn run(self, word: Word, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { order, provider, payment, by, reason, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let (ports, now) = (&reached.app.ports, Timestamp::now());
        let key = PaymentKey { provider, payment };
        let action = KeptAction {
            at: now,
            who: by,
            way: "command".to_owned(),
            action: ActionKind::Unmatched.as_str().to_owned(),
            sale: None,
            order: Some(order),
            detail: Some(detail(word, &key, &reason)),
            outcome: None,
        };
        // As a request of the operators' routes: what cannot be recorded is not done.
        let place = DynamoOperators::new_key(now)?;
        ports.operators().keep(&place, &action).await?;
        let told = tell(ports, order, &key, (word, &reason), now).await;
        let outcome = match &told {
            Ok(_) => "done".to_owned(),
            Err(refusal) => refusal.to_string(),
        };
        let ended = KeptAction { outcome: Some(outcome), ..action };
        ports.operators().keep(&place, &ended).await?;
        match told {
            Ok(record) => {
                let reply = UnmatchedReply::new(&record, now);
                let state = reply.as_ref().map_or("unknown", |reply| reply.state.as_str());
                out(&if json {
                    json!(reply).to_string()
                } else {
                    format!("payment {} for order {order}: {state}", key.payment)
                })
            }
            Err(Refusal::Store(error)) => Err(error.into()),
            Err(refusal @ (Refusal::NotFound | Refusal::SaidOtherwise | Refusal::NotFailed(_))) => {
                let what = refusal.to_string();
                out(&if json {
                    json!({ "order": order, "refused": what }).to_string()
                } else {
                    format!("payment {} for order {order}: {what}", key.payment)
                })?;
                Ok(ExitCode::from(DECLINED))
            }
        }
    }
}
