//! Stuck: all work that is past its bound, with the known reasons. Reads only.
//!
//! The search reads the index of due work and the deadlines in Redis, never all orders: work that is not due is not
//! stuck.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::domain::basics::ids::{InventoryId, SaleId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::order_refund::OrderRefund;
use crate::domain::order::refund::{Refund, RefundState};
use crate::domain::order::{Order, OrderState, PaymentRecord};
use crate::flows::hold::{inventory_of, sale_of};
use crate::flows::outside::waits_for_word;
use crate::ports::{
    Catalogue, DUE_SHARDS, Due, Freshness, Orders, Ports, Provider, Seats, StoreError, Stored,
};

/// Most work that is read from one shard of the index, or from one sale's deadlines.
const MAX_DUE: u16 = 1000;
/// Seconds by which the query for refunds looks ahead: a refund that the provider has refused is due again after a day
/// and an hour, and waits for a person all that time.
const REFUNDS_AHEAD_SECONDS: i64 = 26 * 60 * 60;
/// Seconds that a provider may take to finish a refund that it has accepted.
const PROVIDER_FINISHES_SECONDS: i64 = 24 * 60 * 60;

/// Kind of stuck work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An order that is neither paid nor ended.
    Pending,
    /// A paid order that is not counted.
    Uncounted,
    /// An order that is not pending, with a payment that is open at its provider.
    Unclosed,
    /// Money that has not gone back.
    Refund,
    /// A capture of no order, about which an operator decides.
    Unmatched,
    /// Money that went back outside, while the tickets are still good: an operator gives them up, or keeps them.
    Outside,
    /// Something that a provider's bill says of an order, and that differs from what is known: an operator says what it was.
    Bill,
    /// A hold without an order.
    Hold,
}

impl Kind {
    /// The kind as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Uncounted => "uncounted",
            Self::Unclosed => "unclosed",
            Self::Refund => "refund",
            Self::Unmatched => "unmatched",
            Self::Outside => "outside",
            Self::Bill => "bill",
            Self::Hold => "hold",
        }
    }
}

/// One thing that is past its bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// The kind of work.
    pub kind: Kind,
    /// The sale, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sale: Option<SaleId>,
    /// The order, or the number that a hold has.
    pub order: OrderNumber,
    /// The time by which it should have been finished; absent for a hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Known reasons, in words.
    pub why: Vec<String>,
}

/// Result of a search for stuck work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Each, longest first within its kind.
    pub stuck: Vec<Stuck>,
    /// Names of what could not be read, each with the reason.
    pub unread: Vec<String>,
    /// True if there may be more than was read.
    pub more: bool,
}

/// Everything that should have been finished `bound_seconds` ago.
///
/// # Errors
/// Fails if the index or the catalogue cannot be read.
pub async fn stuck(ports: &impl Ports, bound_seconds: u32, now: Timestamp) -> Stored<Found> {
    let bound = now.plus_seconds(-i64::from(bound_seconds));
    let mut found = Found::default();
    let mut known = BTreeSet::new();
    for shard in 0..DUE_SHARDS {
        let due = ports.orders().due(shard, bound, MAX_DUE).await?;
        found.more |= due.len() >= usize::from(MAX_DUE);
        for due in due {
            match due {
                Due::Order(number) => match ports.orders().get(number).await {
                    Ok(order) => {
                        known.insert(number);
                        if let Some(order) = order {
                            found.stuck.extend(of_order(ports, &order).await);
                        }
                    }
                    Err(error) => found.unread.push(format!("order {number}: {error}")),
                },
                Due::Refund(..) | Due::OrderRefund(_) => {}
            }
        }
        let ahead = now.plus_seconds(REFUNDS_AHEAD_SECONDS);
        for due in ports.orders().due(shard, ahead, u16::MAX).await? {
            match due {
                Due::Refund(order, payment) => {
                    match ports.orders().payment(order, &payment).await {
                        Ok(record) => {
                            found.stuck.extend(record.and_then(|record| of_refund(&record, bound)));
                        }
                        Err(error) => found.unread.push(format!("payment of {order}: {error}")),
                    }
                }
                Due::OrderRefund(key) => match ports.orders().order_refund(key).await {
                    Ok(refund) => {
                        let late = refund.and_then(|it| of_order_refund(&it, bound));
                        // One that was made outside is over with the order's last ticket.
                        let waits = match &late {
                            Some(stuck) if stuck.kind == Kind::Outside => {
                                waits_for_word(ports, stuck.order).await?
                            }
                            Some(_) | None => true,
                        };
                        found.stuck.extend(late.filter(|_| waits));
                    }
                    Err(error) => found.unread.push(format!("refund {key}: {error}")),
                },
                Due::Order(_) => {}
            }
        }
    }
    for sale in ports.catalogue().sales().await? {
        if let Err(error) = holds_of(ports, &sale, bound, &known, &mut found).await {
            found.unread.push(format!("the holds of {sale}: {error}"));
        }
    }
    found.stuck.sort_by_key(|stuck| (stuck.kind, stuck.since, stuck.order));
    Ok(found)
}

/// Finds the holds of a sale past their deadline, but for those of orders that are `known`.
async fn holds_of(
    ports: &impl Ports,
    sale: &SaleId,
    bound: Timestamp,
    known: &BTreeSet<OrderNumber>,
    found: &mut Found,
) -> Stored<()> {
    let published = sale_of(ports, sale, Freshness::Cached).await?;
    for inventory in published.sale.inventories() {
        let due = ports.seats().due(&inventory, bound, usize::from(MAX_DUE)).await?;
        found.more |= due.len() >= usize::from(MAX_DUE);
        for number in due.into_iter().filter(|number| !known.contains(number)) {
            found.stuck.push(of_hold(ports, &inventory, number).await);
        }
    }
    Ok(())
}

/// An order that the index names, unless it was finished meanwhile.
async fn of_order(ports: &impl Ports, order: &Order) -> Option<Stuck> {
    let (kind, since) = match order.state {
        OrderState::Pending => (Kind::Pending, order.payable_until()),
        OrderState::Paid
        | OrderState::Cancelled
        | OrderState::Expired
        | OrderState::RefundDue
        | OrderState::Refunded => {
            let unsettled = order.unsettled_since().map(|since| (Kind::Uncounted, since));
            let is_open = order.attempts.any_open();
            let unclosed = is_open.then_some((Kind::Unclosed, order.changed_at));
            unsettled.into_iter().chain(unclosed).min_by_key(|(_, since)| *since)?
        }
    };
    let held = match inventory_of(ports, order).await {
        Ok(inventory) => describe_hold(ports, &inventory, order.number).await,
        Err(error) => format!("nobody can say where Redis has its hold: {error}"),
    };
    let mut why = vec![held];
    if kind == Kind::Pending {
        why.push(describe_captures(ports, order).await);
    }
    why.extend(order.attempts.open().map(|attempt| {
        let provider = &attempt.choice.provider;
        format!("payment {} at {provider} was not closed", attempt.number)
    }));
    let sale = Some(order.sale.clone());
    Some(Stuck { kind, sale, order: order.number, since: Some(since), why })
}

async fn describe_hold(ports: &impl Ports, at: &InventoryId, number: OrderNumber) -> String {
    match ports.seats().record(at, number).await {
        Ok(Some(record)) => format!("Redis holds its seats until {}", record.deadline),
        Ok(None) => "Redis has no hold of it".to_owned(),
        Err(error) => format!("Redis cannot be asked for its hold: {error}"),
    }
}

async fn describe_captures(ports: &impl Ports, order: &Order) -> String {
    match ports.provider().captures(order).await {
        Ok(Some(captures)) if captures.is_empty() => {
            "the provider has captured nothing for it".to_owned()
        }
        Ok(Some(captures)) => {
            let name = |payment: &crate::domain::order::PaymentKey| {
                format!("{} {}", payment.provider, payment.payment)
            };
            let names: Vec<String> = captures.iter().map(|capture| name(&capture.key)).collect();
            format!("the provider has captured {}: its callback is missing", names.join(", "))
        }
        Ok(None) => "no provider can be asked for payments".to_owned(),
        Err(error) => format!("the provider cannot be asked for payments: {error}"),
    }
}

/// A refund, if it was refused, was decided before the bound and is not with the provider, or is with
/// the provider for longer than it takes.
fn of_refund(record: &PaymentRecord, bound: Timestamp) -> Option<Stuck> {
    let payment = format!("payment {} {}", record.capture.key.provider, record.capture.key.payment);
    let order = record.capture.order;
    stuck_refund(record.refund.as_ref()?, &payment, order, record.decided_at, bound)
}

/// The same of a refund of an order.
fn of_order_refund(refund: &OrderRefund, bound: Timestamp) -> Option<Stuck> {
    let name = format!("refund {}", refund.key);
    stuck_refund(&refund.refund, &name, refund.key.order, refund.made_at, bound)
}

fn stuck_refund(
    refund: &Refund,
    payment: &str,
    order: OrderNumber,
    decided_at: Timestamp,
    bound: Timestamp,
) -> Option<Stuck> {
    let says = match refund.state {
        RefundState::Due | RefundState::Requested if refund.waits_for_dispute() => {
            format!(
                "{payment}: it waits for a dispute of its payment, and is sent once that is won"
            )
        }
        RefundState::Refunded | RefundState::Explained | RefundState::Settled => return None,
        RefundState::Outside => {
            format!(
                "{payment}: it was made outside, and the order's tickets are still good; an operator \
                 takes them back or keeps them"
            )
        }
        RefundState::FailedLater => {
            let why = refund.refusal.as_deref().unwrap_or("nothing more");
            format!("{payment}: its money was back and came to us again; the provider says: {why}")
        }
        RefundState::Unmatched => {
            format!(
                "{payment}: there is no such order; an operator sends it back or says what it was"
            )
        }
        RefundState::Failed => {
            let refusal = refund.refusal.as_deref().unwrap_or("nothing more");
            format!("{payment}: the provider has refused, and says: {refusal}")
        }
        RefundState::Due | RefundState::Requested if decided_at > bound => return None,
        RefundState::Pending if decided_at > bound.plus_seconds(-PROVIDER_FINISHES_SECONDS) => {
            return None;
        }
        RefundState::Due => format!("{payment}: its request is not in the queue"),
        RefundState::Requested => {
            format!("{payment}: requested at {}, and not answered", refund.changed_at)
        }
        RefundState::Pending => {
            format!("{payment}: the provider has not finished it since {}", refund.changed_at)
        }
    };
    let kind = if refund.state == RefundState::Unmatched {
        Kind::Unmatched
    } else if refund.state == RefundState::Outside {
        Kind::Outside
    } else {
        Kind::Refund
    };
    Some(Stuck { kind, sale: None, order, since: Some(decided_at), why: vec![says] })
}

/// A hold past its deadline whose order, if it has one, is not in the index.
async fn of_hold(ports: &impl Ports, at: &InventoryId, number: OrderNumber) -> Stuck {
    let order: Result<Option<Order>, StoreError> = ports.orders().get(number).await;
    let says = match order {
        Ok(None) => "its reservation was cut off before there was an order".to_owned(),
        Ok(Some(order)) => format!("its order is {}", order.state.as_str()),
        Err(error) => format!("its order cannot be read: {error}"),
    };
    let why = vec![describe_hold(ports, at, number).await, says];
    Stuck { kind: Kind::Hold, sale: Some(at.sale().clone()), order: number, since: None, why }
}
