//! A way through a scenario, in words: who did what, and what was answered.

use engine::domain::basics::number::OrderNumber;
use engine::domain::inventory::{HeldLine, HoldReply};
use engine::ports::{CreateReply, Settlement, Stored};
use model_stores::{Call, Message, Reply, Stores};

use crate::engine::{Action, CallOutcome, Engine};
use crate::flow::Flow;
use crate::scenario::{LAG_SECONDS, Scenario};
use crate::state::State;
use crate::task;

/// Longest text of an answer that has no words of its own.
const MAX_CHARACTERS: usize = 160;

/// Each step in words, and at the end what is broken.
#[must_use]
pub fn words(engine: &Engine, path: Vec<(State, Option<Action>)>) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, (state, action)) in path.iter().enumerate() {
        match action {
            Some(action) => {
                lines.push(format!("{:2}. {}", number + 1, step(engine, state, action)))
            }
            None => lines.extend(state.broken.as_ref().map(|what| format!("→ {what}"))),
        }
    }
    lines
}

fn step(engine: &Engine, state: &State, action: &Action) -> String {
    let scenario = &engine.scenario;
    match action {
        Action::Request(buyer) => format!("buyer {} asks for seats", buyer + 1),
        Action::Cancel(buyer) => format!("buyer {} gives the order up", buyer + 1),
        Action::GiveBack(buyer, place) => {
            let number = scenario.buyers[*buyer].refunds[*place].number;
            format!("refund {number} of buyer {}'s order is asked for", buyer + 1)
        }
        Action::Pay(buyer, false) => format!("buyer {} pays at the provider", buyer + 1),
        Action::Pay(buyer, true) => {
            format!("buyer {} pays at the provider, which lists it {LAG_SECONDS} s late", buyer + 1)
        }
        Action::Start(buyer) => format!("buyer {} begins to pay", buyer + 1),
        Action::FromWallet(buyer) => format!("buyer {} pays from the wallet", buyer + 1),
        Action::PayAttempt(key) => format!("payment {} is paid", key.number),
        Action::Callback(key) => format!("the provider calls back about {}", key.payment),
        Action::Deliver(sent, false) => {
            format!("{} is delivered", message(scenario, &sent.message))
        }
        Action::Deliver(sent, true) => {
            format!("{} is delivered besides", message(scenario, &sent.message))
        }
        Action::Sweep => "the sweeper begins".to_owned(),
        Action::Load => "a loader begins".to_owned(),
        Action::Dispute => "somebody asks about the dispute".to_owned(),
        Action::Decide(true) => "the provider says that the dispute is won".to_owned(),
        Action::Decide(false) => "the provider says that the dispute is lost".to_owned(),
        Action::Read => "the reader of the provider's list begins".to_owned(),
        Action::Crash(task) => {
            format!("the process of {} dies", who(scenario, &state.tasks[*task].flow))
        }
        Action::Tick => {
            let seconds = |moment: usize| scenario.times[moment].ms_since(scenario.times[0]) / 1000;
            format!("time goes on to second {}", seconds(state.moment + 1))
        }
        Action::Lose => "Redis loses everything".to_owned(),
        Action::FallBehind => "a replica of Redis falls behind".to_owned(),
        Action::FailOver => "Redis fails over to the replica: what came since is gone".to_owned(),
        Action::Call(task, place, fate) => {
            let task = &state.tasks[*task];
            let who = who(scenario, &task.flow);
            let Some(call) = task.call(*place) else { return who };
            let what = request_line(scenario, call);
            let mut stores = Stores::clone(&state.stores);
            let reply = engine.guarded(|| stores.apply(state.now(scenario), call));
            let reply = answer(&reply);
            match fate {
                CallOutcome::Happens => format!("{who}: {what} → {reply}"),
                CallOutcome::AnswerLost => {
                    format!("{who}: {what} → {reply}, but the answer is lost")
                }
                CallOutcome::RequestLost => format!("{who}: {what} is lost in transit"),
                CallOutcome::Refused => format!("{who}: {what} is turned away"),
            }
        }
    }
}

fn order(scenario: &Scenario, number: OrderNumber) -> String {
    match scenario.buyers.iter().position(|buyer| buyer.number == number) {
        Some(buyer) => format!("order {}", buyer + 1),
        None => format!("order {number}"),
    }
}

fn message(scenario: &Scenario, message: &Message) -> String {
    match message {
        Message::Expiry { order: number, .. } => {
            format!("the expiry message of {}", order(scenario, *number))
        }
        Message::Sync(number) => format!("the sync message of {}", order(scenario, *number)),
        Message::Load(_) => "the message to load the sale".to_owned(),
        Message::Refund(refund) => format!("the message to send {} back", refund.payment),
        Message::Callback(callback) => format!("the message to decide {}", callback.payment),
        Message::Points(number) => {
            format!("the message to give what {} gives", order(scenario, *number))
        }
        Message::Draw(_) => "the message to draw the waiting room".to_owned(),
        Message::Close(close) => {
            format!("the message to close the payments of {}", order(scenario, close.order))
        }
    }
}

fn who(scenario: &Scenario, flow: &Flow) -> String {
    match flow {
        Flow::Reserve { buyer, .. } => format!("request of buyer {}", buyer + 1),
        Flow::Cancel { buyer, .. } => format!("cancellation of buyer {}", buyer + 1),
        Flow::GiveBack { buyer, refund, .. } => {
            format!("refund {} of buyer {}", refund.number, buyer + 1)
        }
        Flow::Start { buyer, .. } => format!("start of a payment by buyer {}", buyer + 1),
        Flow::FromWallet { buyer, .. } => format!("payment from the wallet of buyer {}", buyer + 1),
        Flow::Pay { capture, .. } => format!("callback of {}", capture.key.payment),
        Flow::Consume { sent, .. } => format!("consumer of {}", message(scenario, &sent.message)),
        Flow::Load { epoch, .. } => format!("loader of {epoch}"),
        Flow::Read { reader, .. } => format!("reader {reader}"),
        Flow::Dispute { .. } => "who records the dispute".to_owned(),
        Flow::Sweep { .. } => "sweeper".to_owned(),
    }
}

fn seats(lines: &[HeldLine]) -> String {
    let line = |line: &HeldLine| {
        let seats: Vec<String> = line.seats.iter().map(|seat| seat.0.to_string()).collect();
        format!("seat {} on legs {}..{}", seats.join(" and "), line.legs.from(), line.legs.to())
    };
    lines.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// What a call asks for, in a few words; its name, if the name says enough.
#[expect(clippy::wildcard_enum_match_arm, reason = "most calls are said by their names")]
fn request_line(scenario: &Scenario, call: &Call) -> String {
    let of = |number: &OrderNumber| order(scenario, *number);
    let detail = match call {
        Call::Create { order, .. } => {
            format!("{} with {}", of(&order.number), seats(&order.held_lines()))
        }
        Call::End { end } => format!("{} as {}", of(&end.number), end.state.as_str()),
        Call::WriteTombstone { tombstone } => of(&tombstone.number),
        Call::Settle { payment, settlement, .. } => {
            let what = match settlement {
                Settlement::Pay(_) => "pay",
                Settlement::Exchange(..) => "exchange",
                Settlement::Rescue(_) => "rescue",
                Settlement::PayTooLate(_) => "too late",
                Settlement::RefundOnly(_) => "refund only",
            };
            format!("{} of {}: {what}", payment.capture.key.payment, of(&payment.capture.order))
        }
        Call::Hold { command } => of(&command.order),
        Call::GiveBack { plan } => of(&plan.order.number),
        Call::Dispute { plan } => of(&plan.order.number),
        Call::Unsell { command } => seats(&command.lines),
        Call::Sell { command } => format!("{}: {}", of(&command.order), seats(&command.lines)),
        Call::Release { command } => {
            format!("{}: {}", of(&command.order), seats(&command.record.lines))
        }
        Call::Mark { command } => of(&command.order),
        Call::Restore { command } => of(&command.order),
        Call::Repair { command } => format!("{} seat-legs", command.leaked.len()),
        Call::Record { order: number, .. } | Call::Order { number } => of(number),
        Call::Count { orders, .. } => {
            orders.iter().map(|order| of(&order.number)).collect::<Vec<_>>().join(", ")
        }
        Call::Load { part } => format!("part {} as {}", part.place, part.load.epoch),
        Call::Loaded { epoch, .. } | Call::Lease { epoch, .. } | Call::Prolong { epoch, .. } => {
            format!("as {epoch}")
        }
        Call::Send { message: sent, .. } => message(scenario, &Message::from_engine(sent)),
        _ => String::new(),
    };
    format!("{} {detail}", call.name()).trim_end().to_owned()
}

/// An answer in a few words.
fn answer(reply: &Stored<Reply>) -> String {
    if let Ok(Reply::Hold(HoldReply::Held { record, .. })) = reply {
        return format!("held {}", seats(&record.lines));
    }
    if let Ok(Reply::Order(Some(order))) = reply {
        return order.state.as_str().to_owned();
    }
    if let Ok(Reply::Create(CreateReply::Exists(order))) = reply {
        return format!("exists, {}", order.state.as_str());
    }
    if let Ok(Reply::Record(Some(record))) = reply {
        return seats(&record.lines);
    }
    let text = match reply {
        Ok(_) => task::text(reply),
        Err(error) => error.to_string(),
    };
    let inner = text.strip_prefix("Ok(").and_then(|text| text.strip_suffix(')')).unwrap_or(&text);
    match inner.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &inner[..end]),
        None => inner.to_owned(),
    }
}
