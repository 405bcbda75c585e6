//! Start: begin a payment of a pending order at a provider.
//!
//! The attempt is written on the order before the provider is asked, with every parameter of the request, so that the
//! process that ends the order finds the attempt and closes it first. A lost answer is found by sending the same
//! request again: the buyer's client repeats it, and gets the same page or secret. A buyer who chooses otherwise gets
//! another attempt once the former one is closed.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{PaymentId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::{
    Attempt, AttemptNumber, AttemptState, Attempts, PaymentChoice,
};
use crate::domain::order::{Order, OrderState};
use crate::domain::payment::start::{CloseReply, PaymentStep, StartReply};
use crate::flows::own::order_of;
use crate::flows::pay::pay_from_afar;
use crate::ports::{ChangeReply, Orders, Ports, Provider, StoreError, Stored};

/// Most tries; an order that changed meanwhile is read again.
const TRIES: usize = 6;
/// Seconds after which a buyer may repeat a request whose former attempt cannot be closed for now.
pub const CLOSE_AGAIN_SECONDS: u32 = 5;

/// A payment that was started, now or by an earlier request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The order, with the attempt.
    pub order: Order,
    pub number: AttemptNumber,
    /// What the buyer's client does next.
    pub step: PaymentStep,
}

/// Why no payment was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The buyer has no such order.
    #[error("there is no such order")]
    NotFound,
    /// It is paid, or has ended.
    #[error("the order is {}", .0.as_str())]
    Resolved(OrderState),
    /// Its deadline has passed; it is about to end.
    #[error("the order was to be paid by {0}")]
    TooLate(Timestamp),
    /// Nothing can be paid with this here, or not in the order's currency.
    #[error("the order cannot be paid with this")]
    NotOffered,
    /// As many attempts as an order may have were made, and none is open.
    #[error("too many payments were started for the order")]
    TooMany,
    /// Another payment of the order is open, and its provider does not close it for now.
    #[error("another payment of the order is being closed; try again")]
    BeingClosed,
    /// The provider will not start it. What it said is in the log alone.
    #[error("the provider does not start a payment of this order")]
    Refused,
    /// A store or the provider failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Starts a payment of the buyer's own pending order, or finds the one that an earlier request of the same
/// choice started.
///
/// # Errors
/// Returns a [`Refusal`]; another buyer's order is not found. After one of `Store` the same request finds
/// out what happened.
pub async fn start(
    ports: &impl Ports,
    user: &UserId,
    number: OrderNumber,
    choice: &PaymentChoice,
    now: Timestamp,
) -> Result<Started, Refusal> {
    let offers = ports.offers();
    let offer = offers.iter().find(|offer| offer.provider == choice.provider);
    for _ in 0..TRIES {
        let order = read_payable(ports, user, number, now).await?;
        // The money of the replaced tickets pays a covered order, so no provider is offered.
        let offer = offer.filter(|_| !order.is_covered());
        let deployment = offer.and_then(|offer| offer.deployment.as_ref());
        let expires_at = offer.and_then(|offer| offer.expiry(choice.method, &order, now));
        let expires_at = expires_at.ok_or(Refusal::NotOffered)?;
        if let Some(open) = order.attempts.open().next() {
            if open.answers(choice, now) {
                return ask_provider(ports, &order, open).await;
            }
            close_former(ports, &order, open, now).await?;
            continue;
        }
        let (attempts, attempt) = order
            .attempts
            .with_another(choice, deployment, expires_at, now)
            .ok_or(Refusal::TooMany)?;
        let order = Order { attempts, ..order };
        if !stands(Guard::WriteBeforeStart) {
            let asked = start_attempt(ports, &order, attempt).await?;
            let _ = ports.orders().keep_attempts(&order).await?;
            return Ok(asked);
        }
        match ports.orders().keep_attempts(&order).await? {
            ChangeReply::Done => return start_attempt(ports, &order, attempt).await,
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")).into())
}

/// Reads the buyer's own order, and refuses one that cannot be paid any more.
async fn read_payable(
    ports: &impl Ports,
    user: &UserId,
    number: OrderNumber,
    now: Timestamp,
) -> Result<Order, Refusal> {
    let order = order_of(ports, Some(user), number).await?.ok_or(Refusal::NotFound)?;
    if order.state != OrderState::Pending {
        return Err(Refusal::Resolved(order.state));
    }
    if !order.may_start(now) {
        return Err(Refusal::TooLate(order.pay_by));
    }
    Ok(order)
}

async fn start_attempt(
    ports: &impl Ports,
    order: &Order,
    number: AttemptNumber,
) -> Result<Started, Refusal> {
    let missing = || StoreError::Contract(format!("order {}: an attempt is lost", order.number));
    let attempt = order.attempts.get(number).ok_or_else(missing)?;
    ask_provider(ports, order, attempt).await
}

/// Asks the provider to start an attempt that is on the order, and writes the provider's reference of it.
async fn ask_provider(
    ports: &impl Ports,
    order: &Order,
    attempt: &Attempt,
) -> Result<Started, Refusal> {
    match ports.provider().start(order, attempt).await? {
        StartReply::Started { reference, step } => {
            let order = match &attempt.reference {
                Some(_) => order.clone(),
                None => write_reference(ports, order, attempt.number, &reference).await?,
            };
            Ok(Started { order, number: attempt.number, step })
        }
        StartReply::Refused(why) => {
            let provider = &attempt.choice.provider;
            tracing::warn!(order = %order.number, %provider, why, "a payment was not started");
            let closed = order.attempts.with_state(attempt.number, AttemptState::Closed);
            // If another process has changed the order meanwhile, that process finds the attempt closed at the
            // provider.
            let _ = write_attempts(ports, order, closed).await?;
            Err(Refusal::Refused)
        }
    }
}

/// Writes the provider's reference of an attempt. If the order changed meanwhile, its attempt has no reference: the
/// process that closes the attempt sends the provider the same request once more.
async fn write_reference(
    ports: &impl Ports,
    order: &Order,
    number: AttemptNumber,
    reference: &PaymentId,
) -> Stored<Order> {
    let named = order.attempts.with_reference(number, reference);
    let written = write_attempts(ports, order, named).await;
    match written {
        Ok(Some(order)) => Ok(order),
        Ok(None) => Ok(order.clone()),
        Err(error) => {
            tracing::warn!(order = %order.number, %error, "a payment's name was not written");
            Ok(order.clone())
        }
    }
}

/// Writes the attempts on the order; `None` if the order changed meanwhile.
async fn write_attempts(
    ports: &impl Ports,
    order: &Order,
    attempts: Attempts,
) -> Stored<Option<Order>> {
    let order = Order { attempts, ..order.clone() };
    Ok(match ports.orders().keep_attempts(&order).await? {
        ChangeReply::Done => Some(order),
        ChangeReply::Conflict => None,
    })
}

/// Closes the open attempt, so that another one may be started; the caller then reads the order again.
async fn close_former(
    ports: &impl Ports,
    order: &Order,
    open: &Attempt,
    now: Timestamp,
) -> Result<(), Refusal> {
    let reply = match ports.provider().close(order, open).await {
        Ok(reply) => reply,
        Err(error) if error.retryable() => {
            tracing::warn!(order = %order.number, %error, "a former payment was not closed");
            return Err(Refusal::BeingClosed);
        }
        Err(error) => return Err(error.into()),
    };
    if let CloseReply::Paid(capture) = &reply {
        pay_from_afar(ports, capture, now).await?;
        return Ok(());
    }
    if !reply.is_final(open, now) {
        return Err(Refusal::BeingClosed);
    }
    let closed = order.attempts.with_state(open.number, AttemptState::Closed);
    let _ = write_attempts(ports, order, closed).await?;
    Ok(())
}
