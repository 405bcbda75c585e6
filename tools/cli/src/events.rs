//! `onsale events`: what the log says.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use engine::domain::basics::ids::{SaleId, Seat, SeatName, TierId};
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::HeldLine;
use engine::domain::ledger::log::{LogPosition, LogShard, PlacedRecord, Told};
use engine::domain::order::fact::{Fact, Moved};
use engine::domain::sale::Sale;
use engine::ports::{Catalogue as _, Freshness, Log as _, Ports as _};
use serde_json::{Value, json};
use shared::dynamodb::{ALL_TIME, DynamoLog};
use tokio::time::sleep;

use super::engine::{EngineArgs, Reached};
use super::{Failure, out};

/// The pause between two reads of the log's end.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Print what happened to orders, from the log.
#[derive(Debug, Args)]
pub struct EventsCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Tail(Tail),
    Seat(OfSeat),
}

/// Print the facts of all sales as they are settled, from now on until it is interrupted.
///
/// Each shard of the log is read in its order, and nothing is left out: the facts of an order come in
/// theirs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale events tail
  onsale events tail --all --once --json")]
struct Tail {
    /// From the beginning of the log.
    #[arg(long)]
    all: bool,
    /// End where the log ends.
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Print the movements of one seat: every fact of every order that had it, in order of time.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale events seat --sale club-undertow --tier seated B4")]
struct OfSeat {
    /// The sale.
    #[arg(long, value_name = "SALE")]
    sale: SaleId,
    /// The tier.
    #[arg(long, value_name = "TIER")]
    tier: TierId,
    /// The seat's name, as printed.
    #[arg(value_name = "SEAT")]
    seat: SeatName,
    #[command(flatten)]
    engine: EngineArgs,
}

impl EventsCommand {
    /// Prints facts, one a line.
    ///
    /// # Errors
    /// The engine cannot be reached, DynamoDB fails, or there is no such seat.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        match self.action {
            Action::Tail(tail) => tail.run(data_dir, json).await,
            Action::Seat(seat) => seat.run(data_dir, json).await,
        }
    }
}

impl Tail {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let reached = self.engine.reach(data_dir).await?;
        let log = reached.app.ports.orders().orders.0.log();
        let mut cursors = BTreeMap::new();
        for shard in LogShard::all() {
            let number = if self.all { 0 } else { log.last(shard).await? };
            cursors.insert(shard, LogPosition { shard, number });
        }
        loop {
            let mut is_end = true;
            for cursor in cursors.values_mut() {
                let records = log.after(*cursor).await?;
                is_end &= records.is_empty();
                for PlacedRecord { place, record } in records {
                    for told in &record.told {
                        for line in lines(&record.sale, told, None, json) {
                            out(&line)?;
                        }
                    }
                    *cursor = place;
                }
            }
            if is_end && self.once {
                return Ok(ExitCode::SUCCESS);
            }
            if is_end {
                sleep(AGAIN_AFTER).await;
            }
        }
    }
}

impl OfSeat {
    async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let Self { sale: id, tier, seat: name, engine } = self;
        let reached = engine.reach(data_dir).await?;
        let published = reached.app.ports.catalogue().sale(&id, Freshness::Fresh).await?;
        let published = published.ok_or_else(|| format!("there is no sale {id}"))?;
        let sale = &published.sale;
        let seat = sale.tier(&tier).and_then(|tier| tier.layout.seat(&name));
        let seat = seat.ok_or_else(|| format!("sale {id} has no seat {name} in tier {tier}"))?;
        let movements = movements(&reached, sale, &tier, seat).await?;
        for (_, told) in movements {
            for line in lines(&id, &told, Some(sale), json) {
                out(&line)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What is told of the orders that had a seat, by the time of its first fact.
async fn movements(
    reached: &Reached,
    sale: &Sale,
    tier: &TierId,
    seat: Seat,
) -> Result<Vec<(Timestamp, Told)>, Failure> {
    let log: DynamoLog = reached.app.ports.orders().orders.0.log();
    let mut found = Vec::new();
    let is_it = |line: &HeldLine| line.tier == *tier && line.seats.contains(&seat);
    log.of_sale(sale.id(), ALL_TIME, |records| {
        for mut told in records.into_iter().flat_map(|placed| placed.record.told) {
            // A refund of other tickets of the order moves them alone.
            let mut facts = std::mem::take(&mut told.facts);
            facts.retain(|(_, fact)| told.lines_of(fact).iter().any(is_it));
            told.facts = facts;
            if let Some(at) = told.facts.first().map(|(_, first)| first.at) {
                found.push((at, told));
            }
        }
    })
    .await?;
    found.sort_by_key(|(at, told)| (*at, told.order));
    Ok(found)
}

/// The facts of an order, one a line; with a sale, seats by name.
fn lines<'a>(
    id: &'a SaleId,
    told: &'a Told,
    sale: Option<&'a Sale>,
    json: bool,
) -> impl Iterator<Item = String> + 'a {
    told.facts.iter().map(move |(number, fact)| {
        if json {
            let lines = told.lines_of(fact).iter();
            let seats: Vec<Value> = lines.map(|line| of_line(line, sale)).collect();
            return as_json(id, told, number.get(), fact, &seats).to_string();
        }
        let moved = fact.cause.moved.as_ref().map(|Moved { payment, amount, reason, refund }| {
            let why = reason.map_or_else(String::new, |reason| format!(" {}", reason.as_str()));
            let (minor, currency) = (amount.amount_minor, amount.currency);
            let part = refund.map_or_else(String::new, |refund| format!(" refund {refund}"));
            format!("  {minor} {currency} by {} {}{why}{part}", payment.provider, payment.payment)
        });
        format!(
            "{}  {id}  order {} fact {number}  {} by {}{}",
            fact.at,
            told.order,
            fact.kind.as_str(),
            fact.cause.by.as_str(),
            moved.unwrap_or_default()
        )
    })
}

fn as_json(id: &SaleId, told: &Told, number: u32, fact: &Fact, lines: &[Value]) -> Value {
    let moved = fact.cause.moved.as_ref();
    json!({
        "sale": id, "order": told.order, "fact": number,
        "kind": fact.kind, "at": fact.at, "by": fact.cause.by,
        "payment": moved.map(|moved| &moved.payment),
        "amount": moved.map(|moved| moved.amount),
        "reason": moved.and_then(|moved| moved.reason),
        "refund": moved.and_then(|moved| moved.refund),
        "total": told.total, "lines": lines,
    })
}

fn of_line(line: &HeldLine, sale: Option<&Sale>) -> Value {
    let layout = sale.and_then(|sale| sale.tier(&line.tier)).map(|tier| &tier.layout);
    let name = |seat: &Seat| match layout.and_then(|layout| layout.name(*seat)) {
        Some(name) => json!(name),
        None => json!(seat.0),
    };
    let seats: Vec<Value> = line.seats.iter().map(name).collect();
    json!({ "tier": line.tier, "from": line.legs.from(), "to": line.legs.to(), "seats": seats })
}
