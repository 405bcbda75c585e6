//! Pay: one recorded decision for every capture, then everything that follows from it.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::Attempts;
use crate::domain::order::fact::{Cause, FactKind};
use crate::domain::order::refund::RefundState;
use crate::domain::order::{
    Capture, Order, OrderEvent, OrderState, PaymentOutcome, PaymentRecord, RefundReason,
};
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

/// What is answered to a provider that has reported a capture; it need not report it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// It is decided, and all that follows from it is done.
    Decided(PaymentRecord),
    /// It is in a queue, whose consumer decides it with [`pay`].
    Kept,
}

/// The answer to a provider that has reported a capture, of which `decision` became: what a store cannot
/// take now is kept in a queue first.
///
/// # Errors
/// Fails if the queue does not take it either, or as `decision` if that would fail again.
pub async fn answer(
    ports: &impl Ports,
    capture: &Capture,
    decision: Stored<PaymentRecord>,
) -> Stored<Answered> {
    match decision {
        Ok(record) => Ok(Answered::Decided(record)),
        Err(error) if error.retryable() => {
            tracing::warn!(%error, order = %capture.order, "a capture cannot be decided now");
            if stands(Guard::KeepBeforeAnswer) {
                ports.queue().keep(capture).await?;
            }
            Ok(Answered::Kept)
        }
        Err(error) => Err(error),
    }
}

/// [`pay`] where Redis is out of reach: the seats of an order that is paid are sold, and its facts are
/// settled, by the consumer of the expiry queue, which it is brought up in at once.
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
            // A pending one is settled when it is decided.
            if let Some(order) = order.filter(|order| order.state != OrderState::Pending) {
                bring_up(ports, &order, now, now).await;
            }
        }
    }
    Ok(record)
}

/// Pays an order that needs no payment of its buyer as it is made: one of 0, of which nobody captures anything and
/// whose payment is recorded all the same, and one that the money of the tickets pays which it replaces. The order
/// as it is then: cancelled if those tickets cannot be given up any more; one that is not pending stays as it is.
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
            Some(exchange) => exchange::moved(ports, &order, exchange, now).await?,
            None => {
                let accepted = PaymentOutcome::Accepted;
                let capture = Capture::of_nothing(&order).map_err(StoreError::contract)?;
                PaymentRecord::decided(&capture, accepted, now)
            }
        };
        let Some(settlement) = paid(ports, order.clone(), &record.capture, now).await? else {
            if let Some(end) = exchange::off(ports, &order, now).await? {
                return Ok(end);
            }
            order = again(ports, number).await?;
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
        order = again(ports, number).await?;
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")))
}

/// An order that is there, as it is by now.
async fn again(ports: &impl Ports, number: OrderNumber) -> Stored<Order> {
    let missing = || StoreError::Contract(format!("order {number} is lost"));
    ports.orders().get(number).await?.ok_or_else(missing)
}

/// The settlement that pays a pending order by a capture; `None` if the tickets that it replaces cannot be given up
/// any more.
pub(crate) async fn paid(
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
    let settlement = moved(Some(order), OrderEvent::Pay, capture, PaymentOutcome::Accepted, now)?;
    Ok(Some(match (settlement, plan) {
        (Settlement::Pay(order), Some(plan)) => Settlement::Exchange(order, plan),
        (settlement, _) => settlement,
    }))
}

/// Decision on a payment.
struct Decided {
    record: PaymentRecord,
    /// The order as this very decision wrote it; it need not be read again.
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
        let accepted = PaymentOutcome::Accepted;
        let (outcome, settlement, limit) = match decide_payment(order.as_ref(), capture) {
            PaymentDecision::AlreadyPaid => {
                let known = ports.orders().payment(capture.order, &capture.key).await?;
                let missing =
                    || StoreError::Contract("a paid order without its payment".to_owned());
                return known.map(Decided::from).ok_or_else(missing);
            }
            PaymentDecision::Refund(reason) => {
                let order = order.filter(|order| !order.is_tombstone());
                let cause = Cause::capture(capture, Some(reason));
                let told = order.map(|order| order.told(FactKind::CaptureRefused, cause, now));
                (PaymentOutcome::Refund(reason), Settlement::RefundOnly(told), none)
            }
            PaymentDecision::Pay => {
                let missing = || StoreError::Contract("paid without an order".to_owned());
                let order = order.ok_or_else(missing)?;
                if order.exchange.is_none() {
                    (accepted, moved(Some(order), OrderEvent::Pay, capture, accepted, now)?, none)
                } else if let Some(settlement) =
                    Box::pin(paid(ports, order.clone(), capture, now)).await?
                {
                    (accepted, settlement, none)
                } else {
                    if let Some(end) = exchange::call_off(ports, &order, now).await? {
                        close_the_rest(ports, &end).await;
                    }
                    continue;
                }
            }
            // The tickets that it replaces are still its buyer's: there is nothing to rescue.
            PaymentDecision::Rescue if rescue && replaces_none(order.as_ref()) => {
                let Some(rescued) = rescued(ports, order, capture, now).await? else {
                    rescue = false;
                    continue;
                };
                rescued
            }
            PaymentDecision::RefundCancelled => {
                let outcome = PaymentOutcome::Refund(RefundReason::Cancelled);
                (outcome, moved(order, OrderEvent::PayTooLate, capture, outcome, now)?, none)
            }
            PaymentDecision::Rescue => {
                let outcome = PaymentOutcome::Refund(RefundReason::TooLate);
                (outcome, moved(order, OrderEvent::PayTooLate, capture, outcome, now)?, none)
            }
        };
        let record = PaymentRecord::decided(capture, outcome, now);
        match ports.orders().settle(&record, &settlement, limit).await? {
            SettleReply::Settled => return Ok(Decided { record, order: settlement.into_order() }),
            SettleReply::Known(record) => {
                // Money is captured once and decided once, whatever the provider says of it later.
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

fn replaces_none(order: Option<&Order>) -> bool {
    order.is_none_or(|order| order.exchange.is_none())
}

/// What becomes of a capture for an order that has expired, whose seats are free perhaps; `None` if its sale is
/// archived.
async fn rescued(
    ports: &impl Ports,
    order: Option<Order>,
    capture: &Capture,
    now: Timestamp,
) -> Stored<Option<(PaymentOutcome, Settlement, Tickets)>> {
    let missing = || StoreError::Contract("an order without a sale".to_owned());
    let sale = order.as_ref().map(|order| &order.sale).ok_or_else(missing)?;
    let published = sale_of(ports, sale, Freshness::Fresh).await?;
    // What an archived sale has sold is settled: nobody gets a ticket of it any more.
    if published.lifecycle.is_over() {
        return Ok(None);
    }
    // A sale that does not take place gives all its money back.
    let (outcome, event, limit) = match published.sale.file().state {
        SaleState::Cancelled => {
            let outcome = PaymentOutcome::Refund(RefundReason::Cancelled);
            (outcome, OrderEvent::PayTooLate, Tickets::NONE)
        }
        SaleState::Open | SaleState::Paused => {
            (PaymentOutcome::Accepted, OrderEvent::Rescue, published.sale.limit())
        }
    };
    let settlement = moved(order, event, capture, outcome, now)?;
    Ok(Some((outcome, settlement, limit)))
}

/// The settlement that moves the order by an event that [`decide_payment`] found possible.
fn moved(
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
        | OrderEvent::RefundConfirmed => Err(impossible()),
    }
}

/// Does what a recorded decision means: sells the seats and asks for the order to be counted, or
/// asks for the refund. The refund request is in the payment's record; the message delivers it.
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
                | RefundState::Refunded,
            )
            | None => Ok(()),
        },
    }
}

/// Hands a paid order's seats over: they are sold in Redis, and the order is counted. While Redis
/// does not answer, or is being loaded again, the decision stands all the same and the provider need
/// not call again: the claims keep the seats, and a message brings the order up again a moment later. If
/// that is too early or lost, the sweeper finds an order that is not counted, sells it and counts it.
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

/// Has what is still open of a resolved order closed at its providers. If the message is lost, the sweeper
/// finds the order: it is due while it has an open attempt.
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

/// Brings a paid order up in the expiry queue, whose consumer sells it and has it counted.
async fn bring_up(ports: &impl Ports, order: &Order, now: Timestamp, at: Timestamp) {
    let sent = async {
        let inventory = inventory_of(ports, order).await?;
        ports.queue().expire_later(&inventory, order.number, now, at).await
    };
    if let Err(error) = sent.await {
        tracing::warn!(order = %order.number, %error, "left to the sweeper");
    }
}
