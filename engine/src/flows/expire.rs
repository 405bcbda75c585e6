//! Expire: end an order that was not paid in time, and a hold that never became an order.
//!
//! Before a pending order ends, the payment provider is asked what it has captured for it: the
//! callback may be lost or late. Money that is found is decided as if its callback had come.
//! The answer may lack the last captures, so the order is asked about at its deadline, to find what is
//! older, and again when the [grace](crate::domain::grace) is over: what was captured by the deadline
//! is listed then. If the provider does not answer by the end of the grace, the order ends unasked.
//! No money is lost by that: a capture that comes to light later is rescued or refunded
//! ([`crate::flows::pay`]), as it is for a cancelled order, for which nobody is asked.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use crate::domain::grace::Grace;
use crate::domain::guard::{Guard, stands};
use crate::domain::ids::SaleId;
use crate::domain::inventory::HoldRecord;
use crate::domain::money::MinorUnits;
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderEvent, OrderState};
use crate::domain::time::Timestamp;
use crate::flows::hold::{align, release, sale_of, sell};
use crate::flows::pay::pay;
use crate::ports::{
    ChangeReply, Freshness, Orders, Ports, Provider, Queue, Seats, StoreError, Stored,
};

/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 4;
/// Seconds after which a provider that did not answer is asked again.
const ASK_AGAIN_SECONDS: i64 = 15;
/// Orders that are ended at once, each with a request to the provider.
const TOGETHER: usize = 16;

/// Result of an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// The order, or the hold without an order, has ended now.
    Ended,
    /// It still has time, or its grace, or waits for the provider's answer, until then.
    NotDue(Timestamp),
    /// It had ended, or was paid; nothing is left to do.
    Resolved,
    /// There is neither an order nor a hold.
    Nothing,
}

/// Ends what is under this number if its time is up. Running it twice ends nothing twice.
///
/// # Errors
/// Fails if a store does; `Unavailable` if the order keeps changing.
pub async fn expire(
    ports: &impl Ports,
    sale: &SaleId,
    number: OrderNumber,
    now: Timestamp,
) -> Stored<Expired> {
    let order = ports.orders().get(number).await?;
    end(ports, sale, number, order, now).await
}

/// [`expire`] for many at once, which are read together: most of them are paid, and need no more than
/// that. One outcome for each, in their order.
pub async fn expire_all(
    ports: &impl Ports,
    due: &[(SaleId, OrderNumber)],
    now: Timestamp,
) -> Vec<Stored<Expired>> {
    let mut outcomes = Vec::with_capacity(due.len());
    for some in due.chunks(TOGETHER) {
        outcomes.extend(expire_some(ports, some, now).await);
    }
    outcomes
}

async fn expire_some(
    ports: &impl Ports,
    due: &[(SaleId, OrderNumber)],
    now: Timestamp,
) -> Vec<Stored<Expired>> {
    let numbers: Vec<OrderNumber> = due.iter().map(|(_, number)| *number).collect();
    let orders = match ports.orders().get_many(&numbers).await {
        Ok(orders) => orders,
        // One that cannot be read must not hold the others up: each by itself.
        Err(_) => {
            let each = due.iter().map(|(sale, number)| expire(ports, sale, *number, now));
            return join_all(each).await;
        }
    };
    let orders: BTreeMap<OrderNumber, Order> =
        orders.into_iter().map(|order| (order.number, order)).collect();
    let ends = due.iter().map(|(sale, number)| async {
        match orders.get(number) {
            // It was sold in Redis before it was counted. If Redis forgot, reconcile will find it.
            Some(order) if order.state == OrderState::Paid && order.synced => Ok(Expired::Resolved),
            order => end(ports, sale, *number, order.cloned(), now).await,
        }
    });
    join_all(ends).await
}

/// [`expire_all`], and those that still have time are put into the queue again with a delay: what
/// becomes of each, in their order. This is what the expiry queue's function does with its messages.
pub async fn expire_or_requeue(
    ports: &impl Ports,
    due: &[(SaleId, OrderNumber)],
    now: Timestamp,
) -> Vec<Stored<()>> {
    let outcomes = expire_all(ports, due, now).await;
    let requeued = due.iter().zip(outcomes).map(|((sale, number), outcome)| async move {
        match outcome? {
            Expired::NotDue(due) => ports.queue().expire_later(sale, *number, now, due).await,
            Expired::Ended | Expired::Resolved | Expired::Nothing => Ok(()),
        }
    });
    join_all(requeued).await
}

/// Ends what is under this number, beginning with the order as it was read.
async fn end(
    ports: &impl Ports,
    sale: &SaleId,
    number: OrderNumber,
    mut order: Option<Order>,
    now: Timestamp,
) -> Stored<Expired> {
    let mut is_asked = !stands(Guard::AskProvider);
    let mut again = None;
    for attempt in 1..=ATTEMPTS {
        if let Some(pending) = order.as_ref().filter(|order| is_overdue(order, now))
            && !is_asked
        {
            is_asked = true;
            // Boxed: what deciding a payment needs would be room in every expiry.
            match Box::pin(decide_captures(ports, pending, now)).await? {
                Money::None => {}
                Money::Decided => order = ports.orders().get(number).await?,
                Money::Unknown => again = Some(now.plus_seconds(ASK_AGAIN_SECONDS)),
            }
        }
        let ended = match order {
            Some(order)
                if stands(Guard::Deadline)
                    && order.state == OrderState::Pending
                    && ports.grace().end_from(order.pay_by) > now =>
            {
                return Ok(Expired::NotDue(look_again(ports.grace(), order.pay_by, again, now)));
            }
            Some(order) => match order.after(OrderEvent::Expire, now) {
                Some(end) => ports.orders().end(&end).await?,
                None => {
                    settle(ports, &order).await?;
                    return Ok(Expired::Resolved);
                }
            },
            None => match ports.seats().record(sale, number).await? {
                None => return Ok(Expired::Nothing),
                Some(record) if stands(Guard::Deadline) && record.deadline > now => {
                    return Ok(Expired::NotDue(record.deadline));
                }
                // A writer that is late by the whole payment window must fail: the tombstone
                // takes its number before its seats are given back.
                Some(_) if !stands(Guard::Tombstone) => ChangeReply::Done,
                Some(record) => {
                    let tombstone = tombstone(ports, sale, number, record, now).await?;
                    ports.orders().write_tombstone(&tombstone).await?
                }
            },
        };
        match ended {
            ChangeReply::Done => {
                release(ports, sale, number).await?;
                return Ok(Expired::Ended);
            }
            ChangeReply::Conflict if attempt < ATTEMPTS => {
                order = ports.orders().get(number).await?
            }
            ChangeReply::Conflict => break,
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")))
}

/// Brings Redis to an order that is not pending. One that is paid and not counted may have been paid
/// while Redis did not answer, or its callback died: it is handed over now.
async fn settle(ports: &impl Ports, order: &Order) -> Stored<()> {
    if order.state == OrderState::Paid && !order.synced {
        sell(ports, order).await?;
        return ports.queue().sync(order.number).await;
    }
    align(ports, order).await
}

fn is_overdue(order: &Order, now: Timestamp) -> bool {
    order.state == OrderState::Pending && order.pay_by <= now
}

/// When an order is looked at again that may not end yet: at its deadline, `again` if the provider did
/// not answer, at the end of its grace.
fn look_again(
    grace: Grace,
    pay_by: Timestamp,
    again: Option<Timestamp>,
    now: Timestamp,
) -> Timestamp {
    if now < pay_by {
        return pay_by;
    }
    let end = grace.end_from(pay_by);
    again.map_or(end, |again| again.min(end))
}

/// What the provider says of an order that should end.
enum Money {
    /// It lists no capture, or cannot be asked.
    None,
    /// It has captured something, of which it is now decided what it does.
    Decided,
    /// It does not answer.
    Unknown,
}

/// Asks the provider for captures of an order, and decides each as its callback would.
async fn decide_captures(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<Money> {
    let captures = match ports.provider().captures(order).await {
        Ok(captures) => captures.unwrap_or_default(),
        Err(error) => {
            let waits = now < ports.grace().end_from(order.pay_by);
            let order = order.number;
            if waits {
                tracing::warn!(%order, %error, "it waits for the provider");
            } else {
                tracing::warn!(%order, %error, "it ends though the provider was not heard");
            }
            return Ok(Money::Unknown);
        }
    };
    for capture in &captures {
        let record = pay(ports, capture, now).await?;
        tracing::warn!(?record, "found at the provider; its callback did not come in time");
    }
    Ok(if captures.is_empty() { Money::None } else { Money::Decided })
}

async fn tombstone(
    ports: &impl Ports,
    sale: &SaleId,
    number: OrderNumber,
    record: HoldRecord,
    now: Timestamp,
) -> Stored<Order> {
    let published = sale_of(ports, sale, Freshness::Cached).await?;
    Ok(Order {
        number,
        sale: sale.clone(),
        user: record.user,
        state: OrderState::Expired,
        lines: Vec::new(),
        total: published.sale.money(MinorUnits::ZERO),
        fingerprint: record.fingerprint,
        created_at: now,
        pay_by: record.deadline,
        changed_at: now,
        payment: None,
        synced: false,
    })
}
