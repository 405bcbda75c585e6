//! Pay: one recorded decision for every capture, then everything that follows from it.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::Attempts;
use crate::domain::order::fact::{Cause, FactKind};
use crate::domain::order::refund::RefundState;
use crate::domain::order::{
    Capture, Order, OrderEvent, OrderLine, OrderState, PaymentOutcome, PaymentRecord, RefundReason,
};
use crate::domain::payment::ours::{Mark, Reported};
use crate::domain::payment::pay::{PaymentDecision, decide_payment};
use crate::domain::sale::SaleState;
use crate::flows::exchange;
use crate::flows::hold::{inventory_of, sale_of, sell};
use crate::flows::refund::request;
use crate::flows::sync::settle_soon;
use crate::ports::{Freshness, Orders, Ports, Queue, SettleReply, Settlement, StoreError, Stored};

/// Seconds after which a paid order that could not be sold in Redis is read again.
const AGAIN_SECONDS: i64 = 5;
/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 6;
/// What is recorded of a capture of no order: its refund waits for an operator.
const UNMATCHED: PaymentOutcome = PaymentOutcome::Refund(RefundReason::UnknownOrder);

/// Records what becomes of a capture, and does what follows from it. Every step may be repeated: the
/// provider calls again until it gets a success.
///
/// # Errors
/// Fails if a store does; the decision, once recorded, stays.
pub async fn pay(ports: &impl Ports, capture: &Capture, now: Timestamp) -> Stored<PaymentRecord> {
    let Decided { record, order } = decide(ports, capture, now).await?;
    match (order, record.outcome) {
        (Some(order), PaymentOutcome::Accepted) => {
            hand_over(ports, &order, now).await?;
            close_the_rest(ports, &order).await;
            if order.exchange.is_some() {
                Box::pin(exchange::follow_up(ports, &order, now)).await;
            }
        }
        (order, PaymentOutcome::Refund(_)) => {
            follow_up(ports, &record, now).await?;
            if let Some(order) = order {
                settle_soon(ports, order.number).await;
            }
        }
        (None, PaymentOutcome::Accepted) => follow_up(ports, &record, now).await?,
    }
    Ok(record)
}

/// Does as [`pay`] with a capture that a provider has reported; `None` if it is not this deployment's (I13): nothing is
/// recorded and nobody is asked.
///
/// # Errors
/// As [`pay`].
pub async fn pay_reported(
    ports: &impl Ports,
    reported: &Reported,
    now: Timestamp,
) -> Stored<Option<PaymentRecord>> {
    if !is_ours(ports, reported).await? {
        return Ok(None);
    }
    pay(ports, &reported.capture, now).await.map(Some)
}

/// True if a reported capture is this deployment's (I13). An order is read for a payment that carries no deployment's
/// id.
///
/// # Errors
/// Fails if the order cannot be read.
pub async fn is_ours(ports: &impl Ports, reported: &Reported) -> Stored<bool> {
    let order = match reported.mark {
        Mark::Ours | Mark::Another => None,
        Mark::None => ports.orders().get(reported.capture.order).await?,
    };
    Ok(reported.is_ours(order.as_ref(), ports.started_elsewhere()))
}

/// What is answered to a provider that has reported a capture; it need not report it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It is not this deployment's: another system's on the same account.
    Ignored,
    /// It is decided, and all that follows from it is done.
    Decided(PaymentRecord),
    /// It is in a queue, whose consumer decides it with [`pay`].
    Kept,
}

/// Decides the answer to a provider that has reported a capture, from the result of deciding it (`decision`). If a
/// store cannot take the capture now, a queue keeps it.
///
/// # Errors
/// Fails if the queue does not take it either, or as `decision` if that would fail again.
pub async fn answer(
    ports: &impl Ports,
    reported: &Reported,
    decision: Stored<Option<PaymentRecord>>,
) -> Stored<Answered> {
    match decision {
        Ok(Some(record)) => Ok(Answered::Decided(record)),
        Ok(None) => Ok(Answered::Ignored),
        Err(error) if error.retryable() => {
            let order = reported.capture.order;
            tracing::warn!(%error, %order, "a capture cannot be decided now");
            if stands(Guard::KeepBeforeAnswer) {
                ports.queue().keep(reported).await?;
            }
            Ok(Answered::Kept)
        }
        Err(error) => Err(error),
    }
}

/// Does as [`pay`], in a process that cannot reach Redis: a message brings a paid order into the expiry queue at once,
/// and that queue's consumer sells the seats in Redis and settles the facts.
///
/// # Errors
/// As [`pay`].
pub async fn pay_from_afar(
    ports: &impl Ports,
    capture: &Capture,
    now: Timestamp,
) -> Stored<PaymentRecord> {
    let Decided { record, order } = decide(ports, capture, now).await?;
    match (order, record.outcome) {
        (Some(order), PaymentOutcome::Accepted) => {
            bring_up(ports, &order, now, now).await;
            close_the_rest(ports, &order).await;
        }
        (None, PaymentOutcome::Accepted) => {
            let order = ports.orders().get(record.capture.order).await?;
            let is_left =
                |order: &Order| order.state == OrderState::Paid && !order.facts.are_settled();
            if let Some(order) = order.filter(is_left) {
                bring_up(ports, &order, now, now).await;
            }
        }
        (order, PaymentOutcome::Refund(_)) => {
            follow_up(ports, &record, now).await?;
            // A pending order is settled when its own payment is decided.
            if let Some(order) = order.filter(|order| order.state != OrderState::Pending) {
                bring_up(ports, &order, now, now).await;
            }
        }
    }
    Ok(record)
}

/// Pays an order that needs no payment from its buyer, as soon as it is made: an order of 0, whose payment of nothing
/// is recorded, or an exchange that the money of the replaced tickets pays. Returns the order as it is then: cancelled
/// if those tickets cannot be given up any more, unchanged if it is not pending.
///
/// # Errors
/// Fails if a store does; running it again finishes it.
pub async fn pay_at_once(ports: &impl Ports, order: Order, now: Timestamp) -> Stored<Order> {
    let (number, mut order) = (order.number, order);
    for _ in 0..ATTEMPTS {
        if order.state != OrderState::Pending {
            return Ok(order);
        }
        let record = match &order.exchange {
            Some(exchange) => exchange::prepare_payment(ports, &order, exchange, now).await?,
            None => {
                let accepted = PaymentOutcome::Accepted;
                let capture = Capture::of_nothing(&order).map_err(StoreError::contract)?;
                PaymentRecord::decided(&capture, accepted, now)
            }
        };
        let Some(settlement) = plan_payment(ports, order.clone(), &record.capture, now).await?
        else {
            if let Some(end) = exchange::cancel_exchange(ports, &order, now).await? {
                return Ok(end);
            }
            order = read_again(ports, number).await?;
            continue;
        };
        match ports.orders().settle(&record, &settlement, Tickets::NONE).await? {
            SettleReply::Settled => {
                let missing = || StoreError::Contract(format!("order {number}: paid and not"));
                let paid = settlement.into_order().ok_or_else(missing)?;
                hand_over(ports, &paid, now).await?;
                if paid.exchange.is_some() {
                    exchange::follow_up(ports, &paid, now).await;
                }
                return Ok(paid);
            }
            SettleReply::Known(_) | SettleReply::Conflict | SettleReply::Gone => {}
        }
        order = read_again(ports, number).await?;
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")))
}

/// Reads an order that exists once more.
async fn read_again(ports: &impl Ports, number: OrderNumber) -> Stored<Order> {
    let missing = || StoreError::Contract(format!("order {number} is lost"));
    ports.orders().get(number).await?.ok_or_else(missing)
}

/// Plans the settlement that pays a pending order by a capture; `None` if the order is an exchange whose old tickets
/// cannot be given up any more.
pub(crate) async fn plan_payment(
    ports: &impl Ports,
    order: Order,
    capture: &Capture,
    now: Timestamp,
) -> Stored<Option<Settlement>> {
    let plan = match &order.exchange {
        None => None,
        Some(exchange) => {
            let key = &capture.key;
            let Some(plan) = exchange::plan(ports, &order, exchange, key, now).await? else {
                return Ok(None);
            };
            Some(Box::new(plan))
        }
    };
    let settlement =
        apply_event(Some(order), OrderEvent::Pay, capture, PaymentOutcome::Accepted, now)?;
    Ok(Some(match (settlement, plan) {
        (Settlement::Pay(order), Some(plan)) => Settlement::Exchange(order, plan),
        (settlement, _) => settlement,
    }))
}

/// Decision on a payment.
struct Decided {
    record: PaymentRecord,
    /// The order as this decision wrote it; the caller need not read it again.
    order: Option<Order>,
}

impl From<PaymentRecord> for Decided {
    fn from(record: PaymentRecord) -> Self {
        Self { record, order: None }
    }
}

async fn decide(ports: &impl Ports, capture: &Capture, now: Timestamp) -> Stored<Decided> {
    let mut rescue = true;
    for _ in 0..ATTEMPTS {
        let order = ports.orders().get(capture.order).await?;
        let none = Tickets::NONE;
        let decision = decide_payment(order.as_ref(), capture);
        let is_unmatched = decision == PaymentDecision::Unmatched;
        let (outcome, settlement, limit) = match decision {
            PaymentDecision::Unmatched => {
                // Its provider lists it as long as anything waits to be read.
                if let Some(known) = ports.orders().payment(capture.order, &capture.key).await? {
                    return Ok(known.into());
                }
                (UNMATCHED, Settlement::RefundOnly(None), none)
            }
            PaymentDecision::AlreadyPaid => {
                let known = ports.orders().payment(capture.order, &capture.key).await?;
                let missing =
                    || StoreError::Contract("a paid order without its payment".to_owned());
                return known.map(Decided::from).ok_or_else(missing);
            }
            PaymentDecision::Refund(reason) => {
                let order = order.filter(|order| !order.is_tombstone());
                let cause = Cause::capture(capture, Some(reason));
                let refused = FactKind::CaptureRefused;
                let told = order.map(|order| order.append_fact(refused, cause, now));
                (PaymentOutcome::Refund(reason), Settlement::RefundOnly(told), none)
            }
            PaymentDecision::Pay => {
                let missing = || StoreError::Contract("paid without an order".to_owned());
                let order = order.ok_or_else(missing)?;
                let Some(settlement) = plan_acceptance(ports, order, capture, now).await? else {
                    continue;
                };
                (PaymentOutcome::Accepted, settlement, none)
            }
            // The buyer still has the tickets that the order was to replace: there is nothing to rescue.
            PaymentDecision::Rescue if rescue && replaces_none(order.as_ref()) => {
                let Some(rescued) = plan_rescue(ports, order, capture, now).await? else {
                    rescue = false;
                    continue;
                };
                rescued
            }
            PaymentDecision::RefundCancelled => {
                let outcome = PaymentOutcome::Refund(RefundReason::Cancelled);
                (outcome, apply_event(order, OrderEvent::PayTooLate, capture, outcome, now)?, none)
            }
            PaymentDecision::Rescue => {
                let outcome = PaymentOutcome::Refund(RefundReason::TooLate);
                (outcome, apply_event(order, OrderEvent::PayTooLate, capture, outcome, now)?, none)
            }
        };
        let record = if is_unmatched {
            unmatched(capture, now)
        } else {
            PaymentRecord::decided(capture, outcome, now)
        };
        match ports.orders().settle(&record, &settlement, limit).await? {
            SettleReply::Settled => return Ok(Decided { record, order: settlement.into_order() }),
            SettleReply::Known(record) => {
                // A capture is decided once, whatever the provider reports of it later.
                if record.capture != *capture {
                    tracing::error!(?record, ?capture, "a payment was decided as another capture");
                }
                return Ok(record.into());
            }
            SettleReply::Conflict => {}
            SettleReply::Gone => rescue = false,
        }
    }
    Err(StoreError::Unavailable(format!("order {} keeps changing", capture.order)))
}

/// Plans that a capture pays its pending order; `None` if the order was an exchange whose old tickets cannot be given up
/// any more, and is cancelled.
async fn plan_acceptance(
    ports: &impl Ports,
    order: Order,
    capture: &Capture,
    now: Timestamp,
) -> Stored<Option<Settlement>> {
    if order.exchange.is_none() {
        let accepted = PaymentOutcome::Accepted;
        return apply_event(Some(order), OrderEvent::Pay, capture, accepted, now).map(Some);
    }
    let plan = Box::pin(plan_payment(ports, order.clone(), capture, now)).await?;
    if plan.is_none()
        && let Some(end) = exchange::record_cancellation(ports, &order, now).await?
    {
        close_the_rest(ports, &end).await;
    }
    Ok(plan)
}

/// What is recorded of a capture of no order, which is told at once.
fn unmatched(capture: &Capture, now: Timestamp) -> PaymentRecord {
    tracing::error!(?capture, "a capture of no order waits for an operator");
    PaymentRecord::unmatched(capture, now)
}

fn replaces_none(order: Option<&Order>) -> bool {
    order.is_none_or(|order| order.exchange.is_none())
}

/// Plans the outcome of a capture for an expired order, whose seats may still be free; `None` if its sale is archived, or
/// the train has left.
async fn plan_rescue(
    ports: &impl Ports,
    order: Option<Order>,
    capture: &Capture,
    now: Timestamp,
) -> Stored<Option<(PaymentOutcome, Settlement, Tickets)>> {
    let missing = || StoreError::Contract("an order without a sale".to_owned());
    let sale = order.as_ref().map(|order| &order.sale).ok_or_else(missing)?;
    let published = sale_of(ports, sale, Freshness::Fresh).await?;
    // The sold tickets of an archived sale are final: nobody gets a ticket of it any more.
    if published.lifecycle.is_over() {
        return Ok(None);
    }
    let has_left = |line: &OrderLine| published.sale.has_left(line.legs, now);
    let lines = order.iter().flat_map(|order| &order.lines);
    if stands(Guard::Departure) && lines.into_iter().any(has_left) {
        return Ok(None);
    }
    // A cancelled sale refunds every capture.
    let (outcome, event, limit) = match published.sale.file().state {
        SaleState::Cancelled => {
            let outcome = PaymentOutcome::Refund(RefundReason::Cancelled);
            (outcome, OrderEvent::PayTooLate, Tickets::NONE)
        }
        SaleState::Open | SaleState::Paused => {
            (PaymentOutcome::Accepted, OrderEvent::Rescue, published.sale.limit())
        }
    };
    let settlement = apply_event(order, event, capture, outcome, now)?;
    Ok(Some((outcome, settlement, limit)))
}

/// Applies an event that [`decide_payment`] found possible to the order, and returns the settlement to write.
fn apply_event(
    order: Option<Order>,
    event: OrderEvent,
    capture: &Capture,
    outcome: PaymentOutcome,
    now: Timestamp,
) -> Stored<Settlement> {
    let impossible = || StoreError::Contract(format!("{event:?} cannot happen to the order"));
    let cause = Cause::capture(capture, outcome.reason());
    let order = order.and_then(|order| order.after(event, cause, now)).ok_or_else(impossible)?;
    let attempt = capture.attempt.filter(|number| order.attempts.get(*number).is_some());
    let attempts = Attempts { paid: attempt, ..order.attempts.clone() };
    let order = Order { payment: Some(capture.key.clone()), attempts, ..order };
    match event {
        OrderEvent::Pay => Ok(Settlement::Pay(order)),
        OrderEvent::Rescue => Ok(Settlement::Rescue(order)),
        OrderEvent::PayTooLate => Ok(Settlement::PayTooLate(order)),
        OrderEvent::Cancel
        | OrderEvent::Expire
        | OrderEvent::RefundPart
        | OrderEvent::Refund
        | OrderEvent::RefundUndone
        | OrderEvent::RefundConfirmed => Err(impossible()),
    }
}

/// Carries out a recorded decision: sells the seats and requests that the order is counted, or requests the refund. The
/// payment's record has the refund's request; the message delivers it.
///
/// # Errors
/// Fails if a store does; running it again finishes it.
pub async fn follow_up(ports: &impl Ports, record: &PaymentRecord, now: Timestamp) -> Stored<()> {
    match record.outcome {
        PaymentOutcome::Accepted => {
            let order = ports.orders().get(record.capture.order).await?;
            match order.filter(|order| order.state == OrderState::Paid) {
                Some(order) => hand_over(ports, &order, now).await,
                None => Ok(()),
            }
        }
        PaymentOutcome::Refund(_) => match record.refund.as_ref().map(|refund| refund.state) {
            Some(RefundState::Due) => request(ports, record, now).await,
            Some(
                RefundState::Requested
                | RefundState::Pending
                | RefundState::Failed
                | RefundState::Refunded
                | RefundState::Unmatched
                | RefundState::Explained
                | RefundState::Outside
                | RefundState::FailedLater
                | RefundState::Settled,
            )
            | None => Ok(()),
        },
    }
}

/// Sells a paid order's seats in Redis, and requests that the order is counted. If Redis does not answer or is being
/// loaded again, the decision stands and the provider need not call again: the claims keep the seats, and the expiry
/// message brings the order back a moment later. If that message is too early or lost, the sweeper finds the uncounted
/// order, sells it and counts it.
pub(crate) async fn hand_over(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<()> {
    match sell(ports, order).await {
        Err(error) if error.retryable() => {
            tracing::warn!(order = %order.number, %error, "paid; not sold in Redis yet");
            bring_up(ports, order, now, now.plus_seconds(AGAIN_SECONDS)).await;
            return Ok(());
        }
        sold => sold?,
    }
    if order.facts.are_settled() { Ok(()) } else { ports.queue().sync(order.number).await }
}

/// Requests that the open attempts of a resolved order are closed at their providers. If the message is lost, the
/// sweeper finds the order: an order is due while it has an open attempt.
pub(crate) async fn close_the_rest(ports: &impl Ports, order: &Order) {
    if !order.attempts.any_open() {
        return;
    }
    let sent = async {
        let inventory = inventory_of(ports, order).await?;
        ports.queue().close(&inventory, order.number, None).await
    };
    if let Err(error) = sent.await {
        tracing::warn!(order = %order.number, %error, "its payments are left to the sweeper");
    }
}

/// Sends the expiry message of a paid order; the consumer sells the order in Redis and requests that it is counted.
async fn bring_up(ports: &impl Ports, order: &Order, now: Timestamp, at: Timestamp) {
    let sent = async {
        let inventory = inventory_of(ports, order).await?;
        ports.queue().expire_later(&inventory, order.number, now, at).await
    };
    if let Err(error) = sent.await {
        tracing::warn!(order = %order.number, %error, "left to the sweeper");
    }
}
