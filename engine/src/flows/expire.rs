//! Expire: end an order that was not paid in time, and a hold that never became an order.
//!
//! A callback may be lost or late, so the provider's word is needed before a pending order ends. Where a
//! reader goes over what the provider lists ([`crate::flows::captures`]), an order ends as soon as that was
//! read past its deadline: what could have paid it is decided then, and nobody is asked.
//!
//! Otherwise the provider is asked what it has captured for the order. Money that is found is decided as
//! if its callback had come. The answer may lack the last captures, so the order is asked about at its
//! deadline, to find what is older, and again when the [grace](crate::domain::grace) is over: what was
//! captured by the deadline is found then. Where lists are read, it is asked about at the end of the grace
//! alone, if the reader has not come that far. While the limit on searches is used up, the order waits a
//! little longer, `FOR_THE_LIMIT_SECONDS` at most; and if the provider does not answer by the end, the
//! order ends unasked.
//! No money is lost by that: a capture that comes to light later is rescued or refunded
//! ([`crate::flows::pay`]), as it is for a cancelled order, for which nobody is asked.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use crate::domain::captures::{Coverage, Listing};
use crate::domain::grace::Grace;
use crate::domain::guard::{Guard, stands};
use crate::domain::ids::InventoryId;
use crate::domain::inventory::HoldRecord;
use crate::domain::money::MinorUnits;
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderEvent, OrderState};
use crate::domain::time::Timestamp;
use crate::flows::hold::{align, release, sale_of, sell};
use crate::flows::pay::pay;
use crate::ports::{
    ChangeReply, Cursors, Freshness, Orders, Ports, Provider, Queue, Seats, StoreError, Stored,
};

/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 4;
/// Seconds after which a provider that did not answer is asked again.
const ASK_AGAIN_SECONDS: i64 = 15;
/// Parts of the grace after each of which an order whose providers' lists are being read is checked
/// again, and the most seconds of one part.
const RECHECKS_IN_GRACE: u32 = 8;
const MAX_RECHECK_SECONDS: u32 = 15;
/// Seconds past its grace that an order waits for the limit on searches. Within the two minutes beyond
/// the grace of I7, with a minute for the sweeper.
const FOR_THE_LIMIT_SECONDS: i64 = 30;
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

/// Ends what is under this number if its time is up: the order, and what the number holds in the
/// inventory `at`. Running it twice ends nothing twice.
///
/// # Errors
/// Fails if a store does; `Unavailable` if the order keeps changing.
pub async fn expire(
    ports: &impl Ports,
    at: &InventoryId,
    number: OrderNumber,
    now: Timestamp,
) -> Stored<Expired> {
    let order = ports.orders().get(number).await?;
    end(ports, at, number, order, now).await
}

/// [`expire`] for many at once, which are read together: most of them are paid, and need no more than
/// that. One outcome for each, in their order.
pub async fn expire_all(
    ports: &impl Ports,
    due: &[(InventoryId, OrderNumber)],
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
    due: &[(InventoryId, OrderNumber)],
    now: Timestamp,
) -> Vec<Stored<Expired>> {
    let numbers: Vec<OrderNumber> = due.iter().map(|(_, number)| *number).collect();
    let orders = match ports.orders().get_many(&numbers).await {
        Ok(orders) => orders,
        // One that cannot be read must not hold the others up: each by itself.
        Err(_) => {
            let each = due.iter().map(|(at, number)| expire(ports, at, *number, now));
            return join_all(each).await;
        }
    };
    let orders: BTreeMap<OrderNumber, Order> =
        orders.into_iter().map(|order| (order.number, order)).collect();
    let ends = due.iter().map(|(at, number)| async {
        match orders.get(number) {
            // It was sold in Redis before it was counted. If Redis forgot, reconcile will find it.
            Some(order)
                if order.state == OrderState::Paid && order.synced && own(at, order) == *at =>
            {
                Ok(Expired::Resolved)
            }
            order => end(ports, at, *number, order.cloned(), now).await,
        }
    });
    join_all(ends).await
}

/// [`expire_all`], and those that still have time are put into the queue again with a delay: what
/// becomes of each, in their order. This is what the expiry queue's function does with its messages.
pub async fn expire_or_requeue(
    ports: &impl Ports,
    due: &[(InventoryId, OrderNumber)],
    now: Timestamp,
) -> Vec<Stored<()>> {
    let outcomes = expire_all(ports, due, now).await;
    let requeued = due.iter().zip(outcomes).map(|((at, number), outcome)| async move {
        match outcome? {
            Expired::NotDue(due) => ports.queue().expire_later(at, *number, now, due).await,
            Expired::Ended | Expired::Resolved | Expired::Nothing => Ok(()),
        }
    });
    join_all(requeued).await
}

/// The inventory that an order's seats are in, seen from one of the same sale: another one only if a
/// request was repeated with another tier, of a sale that keeps its tiers apart.
fn own(at: &InventoryId, order: &Order) -> InventoryId {
    order.lines.first().map_or_else(|| at.clone(), |line| at.with_tier(&line.tier))
}

/// Ends what is under this number, beginning with the order as it was read.
async fn end(
    ports: &impl Ports,
    at: &InventoryId,
    number: OrderNumber,
    mut order: Option<Order>,
    now: Timestamp,
) -> Stored<Expired> {
    let mut finding = None;
    for attempt in 1..=ATTEMPTS {
        if let Some(pending) = order.as_ref().filter(|order| is_overdue(order, now))
            && finding.is_none()
        {
            // Boxed: what deciding a payment needs would be room in every expiry.
            let found = Box::pin(inspect(ports, pending, now)).await?;
            if found.is_decided {
                order = ports.orders().get(number).await?;
            }
            finding = Some(found);
        }
        let again = order.as_ref().and_then(|order| not_yet(order, finding.as_ref(), now));
        if let Some(again) = again {
            return Ok(Expired::NotDue(again));
        }
        let owner = order.as_ref().map_or_else(|| at.clone(), |order| own(at, order));
        let ended = match order {
            Some(order) => match order.after(OrderEvent::Expire, now) {
                Some(end) => ports.orders().end(&end).await?,
                None => {
                    settle(ports, &order, at).await?;
                    return Ok(Expired::Resolved);
                }
            },
            None => match ports.seats().record(at, number).await? {
                None => return Ok(Expired::Nothing),
                Some(record) if stands(Guard::Deadline) && record.deadline > now => {
                    return Ok(Expired::NotDue(record.deadline));
                }
                // A writer that is late by the whole payment window must fail: the tombstone
                // takes its number before its seats are given back.
                Some(_) if !stands(Guard::Tombstone) => ChangeReply::Done,
                Some(record) => {
                    let tombstone = tombstone(ports, at, number, record, now).await?;
                    ports.orders().write_tombstone(&tombstone).await?
                }
            },
        };
        match ended {
            ChangeReply::Done => {
                release(ports, at, number).await?;
                if owner != *at {
                    release(ports, &owner, number).await?;
                }
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
async fn settle(ports: &impl Ports, order: &Order, at: &InventoryId) -> Stored<()> {
    if order.state == OrderState::Paid && !order.synced {
        sell(ports, order).await?;
        return ports.queue().sync(order.number).await;
    }
    align(ports, order, at).await
}

fn is_overdue(order: &Order, now: Timestamp) -> bool {
    order.state == OrderState::Pending && order.pay_by <= now
}

/// The time at which an order that may not end yet is checked again; `None` if it may end.
fn not_yet(order: &Order, finding: Option<&Finding>, now: Timestamp) -> Option<Timestamp> {
    if !stands(Guard::Deadline) || order.state != OrderState::Pending {
        return None;
    }
    let end = finding.map_or(order.pay_by, |finding| finding.end);
    let again = finding.and_then(|finding| finding.recheck_at).unwrap_or(end);
    (now < end).then(|| again.min(end))
}

/// What is known of a pending order past its deadline.
#[derive(Debug)]
struct Finding {
    /// The time from which it may end.
    end: Timestamp,
    /// The time to check again before that, if it is worth it.
    recheck_at: Option<Timestamp>,
    /// True if money was found, of which it is now decided what it does.
    is_decided: bool,
}

/// Finds out if an order may end: from what was read of its providers' lists, else by asking them.
async fn inspect(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<Finding> {
    let (coverage, read_from) = coverage_of(ports, order, now).await;
    let end = ports.grace().end_of(order, coverage);
    let mut finding = Finding { end, recheck_at: None, is_decided: false };
    match coverage {
        Coverage::Read => return Ok(finding),
        Coverage::BeingRead if now < end => {
            finding.recheck_at =
                Some(now.max(read_from).plus_seconds(recheck_seconds(ports.grace())));
            return Ok(finding);
        }
        Coverage::BeingRead | Coverage::Unread if !stands(Guard::AskProvider) => {
            return Ok(finding);
        }
        Coverage::BeingRead | Coverage::Unread => {}
    }
    let again = now.plus_seconds(ASK_AGAIN_SECONDS);
    match decide_captures(ports, order, now).await? {
        Money::None => {}
        Money::Decided => finding.is_decided = true,
        Money::Unknown => finding.recheck_at = Some(again),
        Money::Limited(seconds) => {
            finding.recheck_at = Some(again.max(now.plus_seconds(seconds.into())));
            if end <= now {
                finding.end = end.plus_seconds(FOR_THE_LIMIT_SECONDS);
            }
        }
    }
    warn_of_silence(order, &finding, now);
    Ok(finding)
}

/// Says that an order waits for its provider, or ends though the provider was not heard.
fn warn_of_silence(order: &Order, finding: &Finding, now: Timestamp) {
    let order = order.number;
    match finding.recheck_at {
        None => {}
        Some(_) if now < finding.end => tracing::warn!(%order, "it waits for the provider"),
        Some(_) => tracing::warn!(%order, "it ends though the provider was not heard"),
    }
}

/// Seconds until an order is checked again while its providers' lists are being read.
fn recheck_seconds(grace: Grace) -> i64 {
    (grace.seconds() / RECHECKS_IN_GRACE).clamp(1, MAX_RECHECK_SECONDS).into()
}

/// What was read of the lists of all providers that can be asked, and the time before which nobody can
/// have read past the order's deadline.
async fn coverage_of(ports: &impl Ports, order: &Order, now: Timestamp) -> (Coverage, Timestamp) {
    let mut read = Vec::new();
    let mut longest = 0;
    for Listing { provider, lag } in ports.listings() {
        let Some(lag) = lag else { return (Coverage::Unread, order.pay_by) };
        match ports.cursors().cursor(&provider).await {
            Ok(cursor) => read.push((lag, cursor)),
            Err(error) => {
                tracing::warn!(%provider, %error, "nobody knows how far its captures were read");
                return (Coverage::Unread, order.pay_by);
            }
        }
        longest = longest.max(lag.seconds());
    }
    (Coverage::of_order(order, &read, now), order.pay_by.plus_seconds(longest.into()))
}

/// What the provider says of an order that should end.
enum Money {
    /// It lists no capture, or cannot be asked.
    None,
    /// It has captured something, of which it is now decided what it does.
    Decided,
    /// It does not answer.
    Unknown,
    /// It is not asked for these seconds: the limit on searches is used up.
    Limited(u32),
}

/// Asks the provider for captures of an order, and decides each as its callback would.
async fn decide_captures(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<Money> {
    let captures = match ports.provider().captures(order).await {
        Ok(captures) => captures.unwrap_or_default(),
        Err(StoreError::Limited(seconds)) => return Ok(Money::Limited(seconds)),
        Err(error) => {
            tracing::warn!(order = %order.number, %error, "the provider does not answer");
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
    at: &InventoryId,
    number: OrderNumber,
    record: HoldRecord,
    now: Timestamp,
) -> Stored<Order> {
    let published = sale_of(ports, at.sale(), Freshness::Cached).await?;
    Ok(Order {
        number,
        sale: at.sale().clone(),
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
