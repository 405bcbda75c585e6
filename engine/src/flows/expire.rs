//! Expire: end an order that was not paid in time, and a hold that never became an order.
//!
//! If an order has an open attempt, expiry first sends it, by a queue, to the flow that calls providers
//! ([`crate::flows::close`]); the order comes back paid, or without an open attempt. If it does not come back by the
//! end of the [grace](crate::domain::payment::grace) and a little longer, it ends unclosed. An order without an open
//! attempt ends at its deadline, and no provider is asked.
//!
//! If payments are also started elsewhere, that is not enough: a callback may be lost or late. If a reader goes over
//! the provider's list ([`crate::flows::captures`]), the order ends as soon as the list was read past the order's
//! deadline: each capture that could have paid the order is then decided. Otherwise expiry sends the order to
//! [`crate::flows::close`] as well, which asks the provider for its captures. The answer may lack the latest captures,
//! so the provider is asked twice: at the deadline, which finds older captures, and when the grace is over, which finds
//! every capture made by the deadline. With a list, the provider is asked only at the end of the grace, and only if the
//! reader has not come that far. If no answer comes by [`FOR_THE_PROVIDER_SECONDS`] after the end, the order ends
//! unasked. No money is lost by that: a capture that is found later is rescued or refunded ([`crate::flows::pay`]).

use std::collections::BTreeMap;

use futures_util::future::join_all;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::InventoryId;
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::HoldRecord;
use crate::domain::order::attempt::Attempts;
use crate::domain::order::fact::{Cause, Facts};
use crate::domain::order::order_refund::RefundCounts;
use crate::domain::order::{Order, OrderEvent, OrderState};
use crate::domain::payment::captures::{Coverage, Listing};
use crate::domain::payment::grace::{FOR_THE_PROVIDER_SECONDS, Grace};
use crate::domain::sale::MerchantTerms;
use crate::flows::exchange;
use crate::flows::hold::{align, release, sale_of, sell};
use crate::flows::pay::pay_at_once;
use crate::flows::sync::settle_soon;
use crate::ports::{
    ChangeReply, Cursors, Freshness, Orders, Ports, Queue, Seats, StoreError, Stored, messages,
};

/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 4;
/// Parts of the grace after each of which an order whose providers' lists are being read is checked
/// again, and the most seconds of one part.
const RECHECKS_IN_GRACE: u32 = 8;
const MAX_RECHECK_SECONDS: u32 = 15;
/// Orders ended concurrently.
const TOGETHER: usize = 16;

/// An order number to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiry {
    /// The inventory in which it may have a hold.
    pub at: InventoryId,
    pub number: OrderNumber,
    /// The time by which what the order's providers list is decided, if they were asked.
    pub heard_at: Option<Timestamp>,
}

impl From<&messages::Expiry> for Expiry {
    fn from(message: &messages::Expiry) -> Self {
        Self { at: message.inventory(), number: message.order, heard_at: message.heard_at }
    }
}

/// Result of an expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expired {
    /// The order, or the hold without an order, has ended now.
    Ended,
    /// It still has time, or its grace, until then.
    NotDue(Timestamp),
    /// The order's providers are being asked; [`crate::flows::close`] gives the order back.
    HandedOver,
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
    let expiry = Expiry { at: at.clone(), number, heard_at: None };
    expire_one(ports, &expiry, now).await
}

async fn expire_one(ports: &impl Ports, expiry: &Expiry, now: Timestamp) -> Stored<Expired> {
    let order = ports.orders().get(expiry.number).await?;
    end(ports, expiry, order, now).await
}

/// [`expire`] for many at once, which are read together: most of them are paid, and need no more than
/// that. One outcome for each, in their order.
pub async fn expire_all(
    ports: &impl Ports,
    due: &[Expiry],
    now: Timestamp,
) -> Vec<Stored<Expired>> {
    let mut outcomes = Vec::with_capacity(due.len());
    for some in due.chunks(TOGETHER) {
        outcomes.extend(expire_some(ports, some, now).await);
    }
    outcomes
}

async fn expire_some(ports: &impl Ports, due: &[Expiry], now: Timestamp) -> Vec<Stored<Expired>> {
    let numbers: Vec<OrderNumber> = due.iter().map(|expiry| expiry.number).collect();
    let orders = match ports.orders().get_many(&numbers).await {
        Ok(orders) => orders,
        // An order that cannot be read must not hold the others up: each is read by itself.
        Err(_) => {
            let each = due.iter().map(|expiry| expire_one(ports, expiry, now));
            return join_all(each).await;
        }
    };
    let orders: BTreeMap<OrderNumber, Order> =
        orders.into_iter().map(|order| (order.number, order)).collect();
    let ends = due.iter().map(|expiry| async {
        let at = &expiry.at;
        match orders.get(&expiry.number) {
            // A settled order was sold in Redis before it was counted. If Redis has forgotten that, reconcile finds it.
            Some(order)
                if order.state == OrderState::Paid
                    && order.facts.are_settled()
                    && own(at, order) == *at =>
            {
                Ok(Expired::Resolved)
            }
            order => end(ports, expiry, order.cloned(), now).await,
        }
    });
    join_all(ends).await
}

/// Runs [`expire_all`], and puts a message back with a delay for each order that still has time. Returns the outcomes
/// in the order of the numbers. The function of the expiry queue does this with its messages.
pub async fn expire_or_requeue(
    ports: &impl Ports,
    due: &[Expiry],
    now: Timestamp,
) -> Vec<Stored<()>> {
    let outcomes = expire_all(ports, due, now).await;
    let requeued = due.iter().zip(outcomes).map(|(expiry, outcome)| async move {
        let Expiry { at, number, .. } = expiry;
        match outcome? {
            Expired::NotDue(due) => ports.queue().expire_later(at, *number, now, due).await,
            Expired::Ended | Expired::HandedOver | Expired::Resolved | Expired::Nothing => Ok(()),
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
    expiry: &Expiry,
    mut order: Option<Order>,
    now: Timestamp,
) -> Stored<Expired> {
    let Expiry { at, number, heard_at } = expiry;
    let (number, heard_at) = (*number, *heard_at);
    for attempt in 1..=ATTEMPTS {
        if let Some(pending) = order.as_ref().filter(|order| order.state == OrderState::Pending) {
            if pending.needs_no_payment() {
                // Boxed, as are the calls below: few orders are paid at their end.
                let paid = Box::pin(pay_at_once(ports, pending.clone(), now)).await?;
                settle(ports, &paid, at, now).await?;
                return Ok(Expired::Resolved);
            }
            if stands(Guard::Deadline) && now < pending.payable_until() {
                return Ok(Expired::NotDue(pending.payable_until()));
            }
            match inspect(ports, pending, heard_at, now).await {
                Finding::MayEnd => {}
                Finding::Wait(again) => return Ok(Expired::NotDue(again)),
                Finding::HandOver => {
                    ports.queue().close(at, number, None).await?;
                    return Ok(Expired::HandedOver);
                }
            }
        }
        let owner = order.as_ref().map_or_else(|| at.clone(), |order| own(at, order));
        let tells = order.is_some();
        let ended = match order {
            Some(order) => match order.after(OrderEvent::Expire, Cause::DEADLINE, now) {
                Some(end) => ports.orders().end(&end).await?,
                None => {
                    settle(ports, &order, at, now).await?;
                    return Ok(Expired::Resolved);
                }
            },
            None => match ports.seats().record(at, number).await? {
                None => return Ok(Expired::Nothing),
                Some(record) if stands(Guard::Deadline) && record.deadline > now => {
                    return Ok(Expired::NotDue(record.deadline));
                }
                // A reservation that is late by the whole payment window must fail: the tombstone takes its number
                // before its seats are given back.
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
                if tells {
                    settle_soon(ports, number).await;
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

/// Brings Redis to the state of an order that is not pending, and requests that its facts are settled. A paid order
/// with unsettled facts is handed over now: Redis may not have answered when it was paid, or its callback died.
async fn settle(ports: &impl Ports, order: &Order, at: &InventoryId, now: Timestamp) -> Stored<()> {
    if order.state == OrderState::Paid && !order.facts.are_settled() {
        sell(ports, order).await?;
        if order.exchange.is_some() {
            Box::pin(exchange::follow_up(ports, order, now)).await;
        }
    } else {
        align(ports, order, at).await?;
    }
    if order.facts.are_settled() { Ok(()) } else { ports.queue().sync(order.number).await }
}

/// What to do with a pending order past its deadline.
#[derive(Debug, Clone, Copy)]
enum Finding {
    MayEnd,
    /// It is checked again at this time.
    Wait(Timestamp),
    /// Its providers are to be asked first.
    HandOver,
}

/// Finds out if an order may end, from its attempts and from what was read of its providers' lists.
/// `heard_at` is the time by which what its providers list is decided, if they were asked.
async fn inspect(
    ports: &impl Ports,
    order: &Order,
    heard_at: Option<Timestamp>,
    now: Timestamp,
) -> Finding {
    let number = order.number;
    if stands(Guard::CloseBeforeEnd) && order.attempts.any_open() {
        let end =
            ports.grace().end_from(order.payable_until()).plus_seconds(FOR_THE_PROVIDER_SECONDS);
        if now <= end {
            return Finding::HandOver;
        }
        tracing::error!(order = %number, "it ends with a payment that was not closed");
    }
    if !ports.started_elsewhere() {
        return Finding::MayEnd;
    }
    let (coverage, read_from) = coverage_of(ports, order, now).await;
    let end = ports.grace().end_of(order, coverage);
    let was_heard = |since: Timestamp| heard_at.is_some_and(|heard| since <= heard);
    match coverage {
        Coverage::Read => Finding::MayEnd,
        Coverage::BeingRead if now < end => {
            let recheck_at = now.max(read_from).plus_seconds(recheck_seconds(ports.grace()));
            Finding::Wait(recheck_at.min(end))
        }
        Coverage::BeingRead | Coverage::Unread if !stands(Guard::AskProvider) => {
            if now < end {
                Finding::Wait(end)
            } else {
                Finding::MayEnd
            }
        }
        Coverage::Unread if now < end && was_heard(order.payable_until()) => Finding::Wait(end),
        Coverage::BeingRead | Coverage::Unread if was_heard(end) => Finding::MayEnd,
        Coverage::BeingRead | Coverage::Unread => {
            if end.plus_seconds(FOR_THE_PROVIDER_SECONDS) < now {
                tracing::warn!(order = %number, "it ends though the provider was not heard");
                return Finding::MayEnd;
            }
            Finding::HandOver
        }
    }
}

/// Seconds until an order is checked again while its providers' lists are being read.
pub(crate) fn recheck_seconds(grace: Grace) -> i64 {
    (grace.seconds() / RECHECKS_IN_GRACE).clamp(1, MAX_RECHECK_SECONDS).into()
}

/// What was read of the lists of all providers that can be asked, and the time before which nobody can
/// have read past the order's deadline.
pub(crate) async fn coverage_of(
    ports: &impl Ports,
    order: &Order,
    now: Timestamp,
) -> (Coverage, Timestamp) {
    let mut read = Vec::new();
    let mut longest = 0;
    for Listing { provider, lag } in ports.listings() {
        let Some(lag) = lag else { return (Coverage::Unread, order.payable_until()) };
        match ports.cursors().cursor(&provider).await {
            Ok(cursor) => read.push((lag, cursor)),
            Err(error) => {
                tracing::warn!(%provider, %error, "nobody knows how far its captures were read");
                return (Coverage::Unread, order.payable_until());
            }
        }
        longest = longest.max(lag.seconds());
    }
    (Coverage::of_order(order, &read, now), order.payable_until().plus_seconds(longest.into()))
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
        attempts: Attempts::default(),
        facts: Facts::default(),
        refunds: RefundCounts::default(),
        merchant: MerchantTerms::house(),
        exchange: None,
    })
}
