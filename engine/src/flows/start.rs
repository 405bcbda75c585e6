//! Start: begin a payment of a pending order at a provider.
//!
//! The flow takes the turn of a call first, so that who has none leaves nothing behind. If the account's next free start is
//! later, the order keeps it as its [place](crate::domain::order::place): the same request is answered with the place until
//! then, and starts the payment in it. With a turn, or in its place, the flow writes the attempt on
//! the order with every parameter of the request, asks the provider, and writes the provider's reference and the step
//! of the buyer before the buyer gets the step (I14). A repeated request is answered with that step, without a call. If
//! an answer is lost, the repeated request asks the provider again under the same name. A buyer who chooses otherwise
//! gets another attempt once the former one is closed, or is a page that was not opened; one without a reference is
//! closed by a write alone.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{PaymentId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::{
    Attempt, AttemptKey, AttemptNumber, AttemptState, Attempts, PaymentChoice, PaymentStep,
};
use crate::domain::order::place::Place;
use crate::domain::order::{Order, OrderState};
use crate::domain::payment::start::{CloseReply, StartReply, Turn};
use crate::flows::hold::sale_of;
use crate::flows::own::order_of;
use crate::flows::pay::pay_from_afar;
use crate::ports::{ChangeReply, Freshness, Orders, Ports, Provider, StoreError, Stored};

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

impl Started {
    /// Its name among all orders.
    #[must_use]
    pub const fn key(&self) -> AttemptKey {
        AttemptKey { order: self.order.number, number: self.number }
    }
}

/// A payment that waits for its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits {
    pub place: Place,
    /// The order's deadline, which the place may have extended.
    pub payable_until: Timestamp,
    /// Milliseconds until the place.
    pub wait_ms: i64,
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
    /// The provider has no free start now: the order has one later, in which the same request starts the payment.
    #[error("the provider has many payments to start; this one has its place at {}", .0.place.at)]
    Waits(Waits),
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
        let open = order.attempts.current().cloned();
        if let Some(open) = open {
            if !open.answers(choice, now) {
                close_former(ports, &order, &open, now).await?;
                continue;
            }
            let number = open.number;
            if let Some(step) = open.step_at(now) {
                let step = step.clone();
                return Ok(Started { order, number, step });
            }
            if !take_turn(ports, &order, choice, now).await? {
                continue;
            }
            let Some(order) = use_place(ports, order, choice).await? else { continue };
            match ask_provider(ports, order, number, now).await? {
                Some(started) => return Ok(started),
                None => continue,
            }
        }
        let is_it = |absent: &&Attempt| absent.answers(choice, now) && absent.step.is_some();
        if let Some(before) = order.attempts.open().find(is_it) {
            // The buyer comes back to a page that was not opened: it is the open one again.
            let back = order.attempts.with_absent(before.number, false);
            let _ = write_attempts(ports, &order, back).await?;
            continue;
        }
        let another =
            |attempts: &Attempts| attempts.with_another(choice, deployment, expires_at, now);
        if another(&order.attempts).is_none() {
            return Err(Refusal::TooMany);
        }
        if !take_turn(ports, &order, choice, now).await? {
            continue;
        }
        // A place that is used goes with this write.
        let left = order.attempts.clone().without_place(&choice.provider);
        let (attempts, attempt) = another(&left).ok_or(Refusal::TooMany)?;
        let order = Order { attempts, ..order };
        if !stands(Guard::WriteBeforeStart)
            && let Some(unwritten) = order.attempts.get(attempt)
            && let StartReply::Started { step, .. } =
                ports.provider().start(&order, unwritten).await?
        {
            let _ = ports.orders().keep_attempts(&order).await?;
            return Ok(Started { order, number: attempt, step });
        }
        if ports.orders().keep_attempts(&order).await? == ChangeReply::Conflict {
            continue;
        }
        if let Some(started) = ask_provider(ports, order, attempt, now).await? {
            return Ok(started);
        }
    }
    Err(keeps_changing(number))
}

fn keeps_changing(number: OrderNumber) -> Refusal {
    StoreError::Unavailable(format!("order {number} keeps changing")).into()
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
        return Err(Refusal::TooLate(order.payable_until()));
    }
    Ok(order)
}

/// Takes the turn of a start, or the order's place once it has come, which the next write is to leave out. False if the
/// order changed meanwhile.
async fn take_turn(
    ports: &impl Ports,
    order: &Order,
    choice: &PaymentChoice,
    now: Timestamp,
) -> Result<bool, Refusal> {
    match order.attempts.place_at(&choice.provider) {
        Some(place) if place.is_early(now) && stands(Guard::InPlace) => {
            return Err(waits(order, place.clone(), now));
        }
        Some(place) if !place.is_late(now) => return Ok(true),
        Some(_) | None => {}
    }
    let at = match ports.provider().turn(choice).await? {
        Turn::Now => return Ok(true),
        Turn::At(at) => at,
    };
    let place = Place { provider: choice.provider.clone(), at };
    let latest = departure_of(ports, order).await?;
    let placed = order.with_place(place.clone(), latest);
    match ports.orders().keep_attempts(&placed).await? {
        ChangeReply::Done => Err(waits(&placed, place, now)),
        ChangeReply::Conflict => Ok(false),
    }
}

/// The answer to who waits for a place. One at which the order will have ended is of no use: the caller may come back then,
/// or pay elsewhere.
fn waits(order: &Order, place: Place, now: Timestamp) -> Refusal {
    let payable_until = order.payable_until();
    if place.at < payable_until {
        let wait_ms = place.at.ms_since(now);
        return Refusal::Waits(Waits { place, payable_until, wait_ms });
    }
    let seconds = place.at.ms_since(now).div_euclid(1000) + 1;
    StoreError::Limited(u32::try_from(seconds).unwrap_or(u32::MAX)).into()
}

/// When the first of the journeys of an order departs: nobody has longer to pay.
async fn departure_of(ports: &impl Ports, order: &Order) -> Stored<Option<Timestamp>> {
    if !stands(Guard::Departure) {
        return Ok(None);
    }
    let published = sale_of(ports, &order.sale, Freshness::Cached).await?;
    Ok(published.sale.first_departure(order.lines.iter().map(|line| line.legs)))
}

/// Writes that the order's place is used, where nothing else is written before the provider is asked; `None` if the order
/// changed meanwhile.
async fn use_place(
    ports: &impl Ports,
    order: Order,
    choice: &PaymentChoice,
) -> Stored<Option<Order>> {
    if order.attempts.place_at(&choice.provider).is_none() {
        return Ok(Some(order));
    }
    let without = order.attempts.with_place_used(&choice.provider);
    write_attempts(ports, &order, without).await
}

/// Asks the provider to start an attempt that is on the order; the turn is taken. `None` if that attempt is over: the
/// caller then reads the order again.
async fn ask_provider(
    ports: &impl Ports,
    order: Order,
    number: AttemptNumber,
    now: Timestamp,
) -> Result<Option<Started>, Refusal> {
    let missing = || StoreError::Contract(format!("order {}: an attempt is lost", order.number));
    let attempt = order.attempts.get(number).ok_or_else(missing)?;
    let (why, refusal) = match ports.provider().start(&order, attempt).await? {
        StartReply::Started { reference, step } => {
            return hand_out(ports, order, number, (reference, step), now).await.map(Some);
        }
        StartReply::Refused(why) => (why, Refusal::Refused),
        StartReply::Failed(why) => (why.clone(), StoreError::Unavailable(why).into()),
    };
    let provider = &attempt.choice.provider;
    tracing::warn!(order = %order.number, %provider, why, "a payment was not started");
    if attempt.may_be_handed() {
        // It says nothing of what an earlier request has started.
        close_former(ports, &order, attempt, now).await?;
        return Ok(None);
    }
    let closed = order.attempts.with_state(number, AttemptState::Closed);
    let _ = write_attempts(ports, &order, closed).await?;
    Err(refusal)
}

/// Writes the provider's answer on the order, then gives the step to the buyer. If the order changed meanwhile, it is
/// read again: its attempt may have the same answer already, or may be over, so that nothing is given out.
async fn hand_out(
    ports: &impl Ports,
    mut order: Order,
    number: AttemptNumber,
    (reference, step): (PaymentId, PaymentStep),
    now: Timestamp,
) -> Result<Started, Refusal> {
    for _ in 0..TRIES {
        let answered = order.attempts.with_answer(number, &reference, &step);
        match write_attempts(ports, &order, answered).await {
            Ok(Some(order)) => return Ok(Started { order, number, step }),
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(order = %order.number, %error, "whether a payment's name was written is read")
            }
        }
        if !stands(Guard::NamedFirst) {
            return Ok(Started { order, number, step });
        }
        order = ports.orders().get(order.number).await?.ok_or(Refusal::NotFound)?;
        let attempt = order.attempts.get(number).ok_or(Refusal::BeingClosed)?;
        if order.state != OrderState::Pending || attempt.state != AttemptState::Open {
            let unwanted = Attempt { reference: Some(reference), ..attempt.clone() };
            close_unwanted(ports, &order, &unwanted, now).await?;
            let is_pending = order.state == OrderState::Pending;
            let refusal = || Refusal::Resolved(order.state);
            return Err(if is_pending { Refusal::BeingClosed } else { refusal() });
        }
        if let Some(step) = attempt.step.clone() {
            return Ok(Started { order, number, step });
        }
    }
    Err(keeps_changing(order.number))
}

/// Closes at the provider what was started and is given to nobody. If that fails, it ends by itself.
async fn close_unwanted(
    ports: &impl Ports,
    order: &Order,
    attempt: &Attempt,
    now: Timestamp,
) -> Stored<()> {
    match ports.provider().close(order, attempt).await {
        Ok(CloseReply::Paid(capture)) => pay_from_afar(ports, &capture, now).await.map(drop),
        Ok(CloseReply::Closed | CloseReply::NotYet | CloseReply::Absent) => Ok(()),
        Err(error) => {
            tracing::info!(order = %order.number, %error, "a payment that nobody has stays open");
            Ok(())
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

/// Closes the open attempt, or notes that its provider has none of its name, so that another one may be started; the
/// caller then reads the order again. A buyer who pays both gets the money of the later one back.
async fn close_former(
    ports: &impl Ports,
    order: &Order,
    open: &Attempt,
    now: Timestamp,
) -> Result<(), Refusal> {
    let closed = || order.attempts.with_state(open.number, AttemptState::Closed);
    if !open.may_be_handed() {
        let _ = write_attempts(ports, order, closed()).await?;
        return Ok(());
    }
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
    let changed = if reply.is_final(open, now) {
        closed()
    } else if reply == CloseReply::Absent {
        order.attempts.with_absent(open.number, true)
    } else {
        return Err(Refusal::BeingClosed);
    };
    let _ = write_attempts(ports, order, changed).await?;
    Ok(())
}
