//! What happened, line by line, for people to read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{HeldLine, HoldRecord, HoldReply};
use engine::domain::order::Order;
use engine::ports::{Claim, CreateReply, SettleReply, Stored};
use model_stores::{Call, Message, Reply};

use crate::fault::Fault;
use crate::plan::START;

/// The longest line, in characters.
const LONGEST: usize = 200;

/// The lines so far. Orders get letters in order of appearance, because their numbers are long.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    lines: Vec<String>,
    orders: BTreeMap<OrderNumber, String>,
}

impl Trace {
    /// Adds what happened at a time, in milliseconds from the start.
    pub(crate) fn add(&mut self, at_ms: i64, text: String) {
        let text = self.with_letters(&text);
        let text: String = text.chars().take(LONGEST).collect();
        let (seconds, ms) = (at_ms / 1000, at_ms % 1000);
        self.lines.push(format!("{seconds:>6}.{ms:03}  {text}"));
    }

    pub(crate) fn text(&self) -> String {
        self.lines.join("\n")
    }

    fn letter(&mut self, order: OrderNumber) -> String {
        let next = self.orders.len();
        let letter = || {
            let round = if next < 26 { String::new() } else { (next / 26).to_string() };
            format!("{}{round}", char::from(b'A' + (next % 26) as u8))
        };
        self.orders.entry(order).or_insert_with(letter).clone()
    }

    /// Replaces order numbers by their letters.
    fn with_letters(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, digits) = rest.split_at(start);
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let (digits, after) = digits.split_at(end);
            out.push_str(before);
            match digits.parse().ok().filter(|_| digits.len() >= 17) {
                Some(order) => out.push_str(&self.letter(order)),
                None => out.push_str(digits),
            }
            rest = after;
        }
        out.push_str(rest);
        out.replace("OrderNumber(", "(")
    }
}

/// A call, its answer and what went wrong, on one line; `None` for what nobody wants to read.
pub(crate) fn call_line(
    who: &str,
    process: usize,
    call: &Call,
    said: Option<&Stored<Reply>>,
    fault: Option<Fault>,
) -> Option<String> {
    let is_dull = match said {
        Some(Ok(Reply::Due(due))) => due.is_empty(),
        Some(Ok(Reply::HoldsDue(due))) => due.is_empty(),
        Some(Ok(Reply::Claims(claims))) => claims.claims.is_empty(),
        Some(Ok(Reply::ManyOrders(orders))) => orders.is_empty(),
        Some(Ok(Reply::Sale(_) | Reply::Sales(_) | Reply::Epoch(_))) => true,
        Some(Ok(
            Reply::LastRecord(_)
            | Reply::RoomRecord(_)
            | Reply::ShownRoom(_)
            | Reply::ShowRoom(())
            | Reply::CountTaken(_)
            | Reply::CountHolds(_)
            | Reply::Joined(_)
            | Reply::Tally(_),
        )) => true,
        Some(_) | None => false,
    };
    if is_dull && fault.is_none() {
        return None;
    }
    let mut line = format!("{who} (process {process}): {}", request_line(call));
    let said = match said {
        None => String::new(),
        Some(Ok(reply)) => format!(" → {}", answered(reply)),
        Some(Err(error)) => format!(" → {error}"),
    };
    line.push_str(&said);
    if let Some(fault) = fault {
        // Writing to a String cannot fail.
        let _ = write!(line, "   ⚡ {fault}");
    }
    Some(line)
}

fn order(order: &Order) -> String {
    format!("{} {} [{}]", order.number, order.state.as_str(), lines(&order.held_lines()))
}

/// Lines as `tier,from,to,seat.seat` joined by `;`.
fn lines(lines: &[HeldLine]) -> String {
    let line = |HeldLine { tier, legs, seats }: &HeldLine| {
        let seats: Vec<String> = seats.iter().map(|seat| seat.0.to_string()).collect();
        format!("{tier},{},{},{}", legs.from(), legs.to(), seats.join("."))
    };
    let lines: Vec<String> = lines.iter().map(line).collect();
    lines.join(";")
}

fn numbers_of(numbers: &[OrderNumber]) -> String {
    let numbers: Vec<String> = numbers.iter().map(OrderNumber::to_string).collect();
    numbers.join(", ")
}

fn request_line(call: &Call) -> String {
    match call {
        Call::Load { part } => {
            let (place, last) = (part.place, if part.is_last { ", the last," } else { "" });
            let (epoch, expected) = (&part.load.epoch, &part.load.expected);
            let at = &part.load.inventory;
            format!("load part {place}{last} of {at} as {epoch} instead of {expected:?}")
        }
        Call::Hold { command } => {
            let requested: Vec<String> = command
                .lines
                .iter()
                .map(|line| format!("{} {:?} {:?}", line.tier, line.legs, line.choice))
                .collect();
            format!("hold {} for {}: {}", command.order, command.user, requested.join("; "))
        }
        Call::Sell { command } => format!("sell {} [{}]", command.order, lines(&command.lines)),
        Call::Release { command } => {
            format!("release {} [{}]", command.order, lines(&command.record.lines))
        }
        Call::Mark { command } => {
            let taken: Vec<String> =
                command.taken.iter().map(|at| format!("{}/{}", at.leg, at.seat.0)).collect();
            let held = lines(&command.record.lines);
            format!("mark {} [{held}] taken {}", command.order, taken.join(" "))
        }
        Call::Restore { command } => {
            format!("restore {} [{}]", command.order, lines(&command.record.lines))
        }
        Call::Repair { command } => {
            let leaked = command.leaked.iter().map(|(leg, seat)| (leg.0, *seat));
            format!("repair {} {:?}", command.tier, leaked.collect::<Vec<_>>())
        }
        Call::Record { order, .. } => format!("record of {order}"),
        Call::Grid { tier, .. } => format!("bitmaps of {tier}"),
        Call::Holds { .. } => "every hold".to_owned(),
        Call::Create { order: new, limit } => format!("create {} under {limit}", order(new)),
        Call::End { end } => format!("end {}", order(end)),
        Call::WriteTombstone { tombstone } => format!("tombstone {}", tombstone.number),
        Call::Settle { payment, settlement, .. } => {
            let (key, outcome) = (&payment.capture.key, payment.outcome);
            let head: String = format!("{settlement:?}").chars().take(10).collect();
            let (of, amount) = (payment.capture.order, payment.capture.amount);
            format!("settle {} of {of} ({amount}): {outcome:?} by {head}…", key.payment)
        }
        Call::Order { number } => format!("order {number}"),
        Call::ManyOrders { numbers } => format!("orders {}", numbers_of(numbers)),
        Call::Admit { command } => format!("admit {}", command.user),
        Call::CountTaken { .. } => "count what is taken".to_owned(),
        Call::Count { orders, .. } => {
            let numbers: Vec<OrderNumber> = orders.iter().map(|order| order.number).collect();
            format!("count {}", numbers_of(&numbers))
        }
        Call::Payment { payment, .. } => format!("payment {}", payment.payment),
        Call::Claims { tier, block, .. } => format!("claims in block {block} of {tier}"),
        Call::Send { message, .. } => format!("message: {}", sent(&Message::from_engine(message))),
        Call::Append { record, .. } => {
            let groups = record.state.groups.iter();
            let at: Vec<String> = groups
                .map(|group| {
                    format!("S {} E {} of {}", group.serving, group.passed, group.window_end)
                })
                .collect();
            let seconds = Timestamp::from_ms(record.at_ms).ms_since(START) / 1000;
            format!("record {} at {seconds} s: {}", record.number, at.join(", "))
        }
        Call::Join { membership, replaces, .. } => {
            let (index, window) = (membership.index.number, membership.index.window);
            format!("join {} as {index} ({window:?}) instead of {replaces:?}", membership.buyer)
        }
        Call::Enter { enter } => {
            let (place, turn) = (enter.visit.place, enter.visit.turn);
            format!("enter {} as {} at place {place} by record {turn}", enter.buyer, enter.index)
        }
        Call::ShowRoom { shown, .. } => format!("show record {}", shown.view.number),
        Call::KeepChunk { chunk, leaves, .. } => {
            format!("chunk {chunk} of {} leaves", leaves.len())
        }
        Call::Publish { file, replaces } => {
            let (limit, state) = (file.limit_per_buyer, file.state);
            format!("publish {state:?} with limit {limit} instead of {replaces:?}")
        }
        Call::Lease { epoch, .. } => format!("lease for {epoch}"),
        Call::Prolong { epoch, .. } => format!("prolong the lease for {epoch}"),
        Call::Loaded { epoch, .. } => format!("name {epoch} in the catalogue"),
        Call::Retire { epoch, version, .. } => format!("archive version {version} by {epoch}"),
        Call::Delist { .. } => "take the sale off the list".to_owned(),
        Call::Unload { .. } => "remove the sale from Redis".to_owned(),
        Call::Due { shard, .. } => format!("what is due in shard {shard}"),
        Call::HoldsDue { .. } => "holds that are due".to_owned(),
        _ => format!("{call:?}").replace('\n', " "),
    }
}

fn answered(reply: &Reply) -> String {
    match reply {
        Reply::Order(Some(found)) => order(found),
        Reply::Order(None) | Reply::Record(None) => "none".to_owned(),
        Reply::ManyOrders(found) => found.iter().map(order).collect::<Vec<_>>().join(", "),
        Reply::Hold(HoldReply::Held { record, .. }) => format!("held [{}]", lines(&record.lines)),
        Reply::Hold(reply) => format!("{reply:?}"),
        Reply::Create(CreateReply::Exists(found)) => format!("exists: {}", order(found)),
        Reply::Create(reply) => format!("{reply:?}"),
        Reply::End(reply) => format!("{reply:?}"),
        Reply::WriteTombstone(reply) => format!("{reply:?}"),
        Reply::Settle(SettleReply::Known(record)) => format!("known: {:?}", record.outcome),
        Reply::Settle(reply) => format!("{reply:?}"),
        Reply::Load(reply) => format!("{reply:?}"),
        Reply::Sell(reply) => format!("{reply:?}"),
        Reply::Release(reply) => format!("{reply:?}"),
        Reply::Mark(reply) => format!("{reply:?}"),
        Reply::Restore(reply) => format!("{reply:?}"),
        Reply::Repair(reply) => format!("{reply:?}"),
        Reply::Admit(reply) => format!("{reply:?}"),
        Reply::Lease(reply) | Reply::Prolong(reply) | Reply::Loaded(reply) => format!("{reply:?}"),
        Reply::Send(()) => "sent".to_owned(),
        Reply::Join(kept) => {
            format!(
                "index {} ({:?}), {} times before",
                kept.index.number, kept.index.window, kept.rejoined
            )
        }
        Reply::KeepChunk(leaves) => format!("{} leaves", leaves.len()),
        Reply::Payment(Some(record)) => format!("{:?}", record.outcome),
        Reply::Claims(claims) => {
            let claim = |claim: &Claim| format!("{}/{}: {}", claim.leg, claim.seat.0, claim.order);
            claims.claims.iter().map(claim).collect::<Vec<_>>().join(", ")
        }
        Reply::Record(Some(record)) => {
            let left = record.deadline.ms_since(START) / 1000;
            format!("[{}] until {left} s", lines(&record.lines))
        }
        Reply::Grid(grid) => format!("taken {:02x?}, {:?}", grid.taken, grid.freed),
        Reply::Holds(holds) => {
            let held = |(order, record): &(OrderNumber, HoldRecord)| {
                format!("{order} [{}]", lines(&record.lines))
            };
            holds.iter().map(held).collect::<Vec<_>>().join(" ")
        }
        _ => format!("{reply:?}"),
    }
}

/// A message in a few words.
fn sent(message: &Message) -> String {
    match message {
        Message::Expiry { order, due_at, .. } => {
            format!("expire {order} at {} s", due_at.ms_since(START) / 1000)
        }
        Message::Sync(order) => format!("count {order}"),
        Message::Refund(refund) => format!("refund {}", refund.payment),
        Message::Load(_) => "load the sale".to_owned(),
        Message::Callback(callback) => format!("decide {}", callback.payment),
        Message::Draw(_) => "draw the room".to_owned(),
        Message::Points(order) => format!("give what {order} gives"),
        Message::Close(close) => format!("close the payments of {}", close.order),
    }
}
