//! `onsale sale cancel`: a sale does not take place.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::flows::cancel_sale::{IN_FLIGHT_SECONDS, Progress, Refusal, stop, walk};
use engine::flows::publish;
use ops::refund_pace::{RefundPace, default_per_second};
use serde_json::{Value, json};
use shared::runtime::app::new_epoch;
use tokio::time::sleep;

use super::{DECLINED, Error, FAILED, out, pretty};
use crate::engine::{EngineArgs, Reached};

/// Time between two walks over the claims.
const PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(super) struct CancelSale {
    /// The sale's id.
    sale: SaleId,
    /// Confirms that the sale shall be cancelled.
    #[arg(long, required = true)]
    yes: bool,
    /// Refunds that are made in a second: as many as the provider may be asked for.
    #[arg(long, value_name = "N", default_value_t = default_per_second(), value_parser = clap::value_parser!(u32).range(1..=10_000))]
    per_second: u32,
    #[command(flatten)]
    engine: EngineArgs,
}

impl CancelSale {
    /// Stops the sale and decides every order of it; says on standard error how far it is.
    pub(super) async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Error> {
        let Reached { app, .. } = self.engine.reach(data_dir).await.map_err(Error::Engine)?;
        let now = Timestamp::now();
        let stopped = match new_epoch(now) {
            Ok(epoch) => stop(&app.ports, &self.sale, &epoch, now).await,
            Err(error) => Err(error.into()),
        };
        let published = match stopped {
            Ok(published) => published,
            Err(refusal) => return self.refused(&refusal, json),
        };
        eprintln!(
            "{}: stopped; its orders are decided, for {IN_FLIGHT_SECONDS} s at least",
            self.sale
        );
        let turns = RefundPace::per_second(self.per_second);
        let pace = async || turns.turn().await;
        let pause = async || sleep(PAUSE).await;
        let mut said = Progress::default();
        let told = |progress: &Progress| {
            if is_news(&said, progress) {
                eprintln!("{}: {}", self.sale, line(progress));
                said = progress.clone();
            }
        };
        let quiet_at = Timestamp::now().plus_seconds(IN_FLIGHT_SECONDS);
        let done =
            walk(&app.ports, &published.sale, quiet_at, Timestamp::now, pace, pause, told).await;
        match done {
            Ok(progress) => self.report(&progress, json),
            Err(error) => self.refused(&error.into(), json),
        }
    }

    fn report(&self, progress: &Progress, json: bool) -> Result<ExitCode, Error> {
        let facts = json!({
            "sale": self.sale, "cancelled": true, "refunded": progress.refunded,
            "tickets": progress.tickets, "ended": progress.ended, "walks": progress.walk,
            "left": progress.left.iter().map(|(order, why)| json!({ "order": order, "why": why }))
                .collect::<Vec<Value>>(),
            "disputed": progress.disputed,
        });
        let left =
            progress.left.iter().map(|(order, why)| format!("order {order} is left: {why}\n"));
        let disputed = progress.disputed.iter();
        let disputed =
            disputed.map(|order| format!("order {order}: its money waits for a dispute\n"));
        let said = format!("{}: cancelled; {}\n", self.sale, line(progress));
        let lines = || left.chain(disputed).chain([said]).collect::<String>();
        out(&if json { pretty(&facts) } else { lines() })?;
        Ok(if progress.left.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }

    fn refused(&self, refusal: &Refusal, json: bool) -> Result<ExitCode, Error> {
        let said = format!("not cancelled, or not to its end: {refusal}");
        let facts = json!({ "sale": self.sale, "cancelled": false, "what": said });
        out(&if json { pretty(&facts) } else { format!("{}: {said}\n", self.sale) })?;
        let is_failure =
            matches!(refusal, Refusal::Store(_) | Refusal::Publish(publish::Refusal::Store(_)));
        Ok(ExitCode::from(if is_failure { FAILED } else { DECLINED }))
    }
}

/// True if an operator wants to hear of this: a hundred orders more, or another walk.
fn is_news(said: &Progress, now: &Progress) -> bool {
    let decided = |progress: &Progress| progress.refunded + progress.ended;
    now.walk != said.walk || decided(now) >= decided(said) + 100
}

fn line(progress: &Progress) -> String {
    let Progress { walk, blocks, of_blocks, refunded, tickets, ended, left, .. } = progress;
    let left = left.len();
    format!(
        "walk {walk}, {blocks} of {of_blocks} blocks, {refunded} orders with {tickets} tickets refunded, \
         {ended} pending ones ended, {left} left"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_told_by_the_hundred_and_by_the_walk() {
        let at = |walk, refunded| Progress { walk, refunded, ..Progress::default() };
        assert!(is_news(&Progress::default(), &at(1, 0)));
        assert!(!is_news(&at(1, 0), &at(1, 99)));
        assert!(is_news(&at(1, 0), &at(1, 100)));
        assert!(is_news(&at(1, 100), &at(2, 100)));
    }
}
