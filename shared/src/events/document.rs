//! What is told of a fact.
//!
//! Its form is that of Standard Webhooks: a type, a time, and data.
//! Source: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::domain::fact::FactKind;
use engine::domain::ids::{SaleId, Seat};
use engine::domain::inventory::HeldLine;
use engine::domain::sale::Sale;
use engine::domain::subscriber::Event;
use engine::ports::{Catalogue, Freshness, Stored};
use serde_json::{Value, json};

/// Most sales that are remembered: a large one takes some megabytes.
const MAX_SALES: usize = 16;

/// The type of a fact's events, such as `order.paid`.
#[must_use]
pub fn event_type(kind: FactKind) -> String {
    format!("order.{}", kind.as_str())
}

/// What is told of a fact. With its sale seats have their names; without, as of a sale that is no longer there, their
/// numbers. Nobody's name is in it: who bought is known to who asks for the order.
#[must_use]
pub fn event_document(event: &Event, sale: Option<&Sale>) -> Value {
    let Event { sale: id, told, number } = event;
    let Some(fact) = event.fact() else { return Value::Null };
    let moved = fact.cause.moved.as_ref();
    let lines: Vec<Value> = told.lines_of(fact).iter().map(|line| line_json(line, sale)).collect();
    let mut data = json!({
        "sale": id,
        "order": told.order,
        "fact": number,
        "kind": fact.kind,
        "by": fact.cause.by,
        "total_minor": told.total.amount_minor,
        "currency": told.total.currency,
        "lines": lines,
    });
    if let Some(moved) = moved {
        data["payment"] = json!(moved.payment);
        data["amount_minor"] = json!(moved.amount.amount_minor);
        data["amount_currency"] = json!(moved.amount.currency);
        data["reason"] = json!(moved.reason);
        data["refund"] = json!(moved.refund);
    }
    json!({ "type": event_type(fact.kind), "timestamp": fact.at, "data": data })
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

/// The documents of events, with the sales that they name read once.
#[derive(Debug, Default)]
pub struct Documents {
    sales: BTreeMap<SaleId, Option<Arc<Sale>>>,
}

impl Documents {
    /// The documents of some events.
    ///
    /// # Errors
    /// Fails if the catalogue does.
    pub async fn of(&mut self, events: &[Event], catalogue: &impl Catalogue) -> Stored<Vec<Value>> {
        let mut documents = Vec::with_capacity(events.len());
        for event in events {
            if !self.sales.contains_key(&event.sale) {
                if self.sales.len() >= MAX_SALES {
                    self.sales.clear();
                }
                let published = catalogue.sale(&event.sale, Freshness::Cached).await?;
                let sale = published.map(|published| published.sale);
                self.sales.insert(event.sale.clone(), sale);
            }
            let sale = self.sales.get(&event.sale).and_then(Option::as_deref);
            documents.push(event_document(event, sale));
        }
        Ok(documents)
    }
}
