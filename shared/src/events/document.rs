//! What is told of a fact.
//!
//! Its form is that of Standard Webhooks: a type, a time, and data.
//! Source: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use engine::domain::basics::ids::Seat;
use engine::domain::inventory::HeldLine;
use engine::domain::ledger::subscriber::Event;
use engine::domain::sale::Sale;
use serde_json::{Value, json};

/// What is told of a fact. With its sale seats have their names; without, as of a sale that is no longer there, their
/// numbers. Nobody's name is in it: who bought is known to who asks for the order.
pub(super) fn event_document(event: &Event, sale: Option<&Sale>) -> Value {
    let Event { sale: id, order, total, lines, number, fact } = event;
    let lines: Vec<Value> = lines.iter().map(|line| line_json(line, sale)).collect();
    let mut data = json!({
        "sale": id,
        "order": order,
        "fact": number,
        "kind": fact.kind,
        "by": fact.cause.by,
        "total_minor": total.amount_minor,
        "currency": total.currency,
        "lines": lines,
    });
    if let Some(moved) = &fact.cause.moved {
        data["payment"] = json!(moved.payment);
        data["amount_minor"] = json!(moved.amount.amount_minor);
        data["amount_currency"] = json!(moved.amount.currency);
        data["reason"] = json!(moved.reason);
        data["refund"] = json!(moved.refund);
    }
    let kind = format!("order.{}", fact.kind.as_str());
    json!({ "type": kind, "timestamp": fact.at, "data": data })
}

fn line_json(line: &HeldLine, sale: Option<&Sale>) -> Value {
    let layout = sale.and_then(|sale| sale.tier(&line.tier)).map(|tier| &tier.layout);
    let name = |seat: &Seat| match layout.and_then(|layout| layout.name(*seat)) {
        Some(name) => json!(name),
        None => json!(seat.0.to_string()),
    };
    let seats: Vec<Value> = line.seats.iter().map(name).collect();
    let mut of_line = json!({ "tier": line.tier, "seats": seats });
    let stops = sale.and_then(|sale| sale.stop(line.legs.from()).zip(sale.stop(line.legs.to())));
    if let Some((from, to)) = stops {
        of_line["from"] = json!(from);
        of_line["to"] = json!(to);
    }
    of_line
}
