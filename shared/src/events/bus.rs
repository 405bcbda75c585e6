//! An event bus: told of every fact, as webhooks are. It is a subscriber of the log like them, under a name of its own.

use std::fmt;

use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};

use super::document::event_document;
use engine::domain::basics::ids::{InvalidId, SubscriberId};
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::subscriber::Event;
use engine::ports::{Catalogue, Freshness, Receiver};

/// The subscriber that the bus is. No webhook may have its name.
pub const BUS_SUBSCRIBER: &str = "event-bus";
/// Who the events of a bus are from.
pub const SOURCE: &str = "onsale";
/// Most entries of one call.
/// Source: <https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEvents.html>
pub const MAX_ENTRIES: usize = 10;
/// Calls that one shard of the log makes at once.
const CALLS_AT_ONCE: usize = 4;

/// An entry of a bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusEntry {
    /// The type of the event, such as `order.paid`.
    pub kind: String,
    pub at: Timestamp,
    /// What happened, in JSON.
    pub detail: String,
}

/// Where entries can be put.
pub trait EventBus: fmt::Debug + Send + Sync {
    /// Puts [`MAX_ENTRIES`] at most; for each whether it is taken.
    fn put<'a>(&'a self, entries: &'a [BusEntry]) -> BoxFuture<'a, Vec<bool>>;
}

/// The subscriber that the bus is.
///
/// # Errors
/// The name would have to be none of a subscriber.
pub fn bus_subscriber() -> Result<SubscriberId, InvalidId> {
    SubscriberId::new(BUS_SUBSCRIBER)
}

/// The bus, as somebody who can be told something.
#[derive(Debug)]
pub struct BusSender<'a, C> {
    pub bus: &'a dyn EventBus,
    /// The catalogue, for the names of seats.
    pub catalogue: &'a C,
}

impl<C: Catalogue> Receiver for BusSender<'_, C> {
    fn at_once(&self) -> usize {
        CALLS_AT_ONCE * MAX_ENTRIES
    }

    async fn tell(&self, events: &[Event]) -> Vec<bool> {
        let mut entries = Vec::with_capacity(events.len());
        for event in events {
            match self.catalogue.sale(&event.sale, Freshness::Cached).await {
                Ok(published) => {
                    let sale = published.map(|published| published.sale);
                    entries.push(entry(event, event_document(event, sale.as_deref())));
                }
                Err(error) => {
                    tracing::warn!(%error, "no names of seats");
                    return vec![false; events.len()];
                }
            }
        }
        let calls = entries.chunks(MAX_ENTRIES).map(|some| self.bus.put(some));
        join_all(calls).await.concat()
    }
}

/// What a webhook is told, as an entry: its data with the event's name beside, so that whoever hears it twice can tell.
fn entry(event: &Event, mut document: Value) -> BusEntry {
    let mut detail = document.get_mut("data").map(Value::take).unwrap_or_default();
    if let Some(detail) = detail.as_object_mut() {
        detail.insert("id".to_owned(), json!(event.id()));
    }
    let kind = document.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    BusEntry { kind, at: event.fact.at, detail: detail.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::domain::basics::ids::{
        Legs, PaymentId, ProviderId, SaleId, Seat, SeatName, StopId, TierId,
    };
    use engine::domain::basics::limits::{MAX_LINES_PER_ORDER, MAX_SEATS_PER_ORDER};
    use engine::domain::basics::money::{Currency, MinorUnits, Money};
    use engine::domain::inventory::HeldLine;
    use engine::domain::order::fact::{Actor, Cause, Fact, FactKind, Moved};
    use engine::domain::order::order_refund::RefundNumber;
    use engine::domain::order::{PaymentKey, RefundReason};
    use std::num::NonZeroU32;

    /// Most bytes of the entries of a call together.
    /// Source: <https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html>
    const MAX_CALL_BYTES: usize = 256 * 1024;

    #[test]
    fn the_largest_entries_of_a_call_fit_into_it() {
        assert!(bus_subscriber().is_ok());
        let amount =
            Money { amount_minor: MinorUnits(i64::MAX), currency: Currency::new("EUR").unwrap() };
        let payment = PaymentKey {
            provider: ProviderId::new("p".repeat(ProviderId::MAX_BYTES)).unwrap(),
            payment: PaymentId::new("\"".repeat(PaymentId::MAX_BYTES)).unwrap(),
        };
        let (reason, refund) = (Some(RefundReason::SecondPayment), Some(RefundNumber::FIRST));
        let moved = Some(Moved { payment, amount, reason, refund });
        let at = Timestamp::from_ms(1_800_000_000_000);
        let line = |number: usize| HeldLine {
            tier: TierId::new(format!("{number:x<width$}", width = TierId::MAX_BYTES)).unwrap(),
            legs: Legs::new(0, 1).unwrap(),
            seats: vec![Seat(u32::MAX); MAX_SEATS_PER_ORDER],
        };
        let event = Event {
            sale: SaleId::new("s".repeat(SaleId::MAX_BYTES)).unwrap(),
            order: i64::MAX.to_string().parse().unwrap(),
            total: amount,
            lines: (0..MAX_LINES_PER_ORDER).map(line).collect(),
            number: NonZeroU32::MAX,
            fact: Fact {
                kind: FactKind::CaptureRefused,
                at,
                cause: Cause { by: Actor::Provider, moved },
            },
        };
        let entry = entry(&event, event_document(&event, None));
        assert_eq!((entry.kind.as_str(), entry.at), ("order.capture_refused", at));
        let detail: Value = serde_json::from_str(&entry.detail).unwrap();
        assert_eq!(detail["id"], format!("{}-{}", event.order, event.number));
        // In place of numbers seats have names, and a line has two stops; JSON writes a byte of theirs in two at most.
        let names = MAX_SEATS_PER_ORDER * SeatName::MAX_BYTES * 2;
        let stops = MAX_LINES_PER_ORDER * 2 * StopId::MAX_BYTES * 2;
        let bytes = entry.detail.len() + names + stops;
        assert!(bytes * MAX_ENTRIES <= MAX_CALL_BYTES, "{bytes}");
    }
}
