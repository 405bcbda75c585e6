//! Close: speak to the providers of an order that is about to end, or has ended.
//!
//! A function that reaches Redis cannot reach a provider: expiry sends an order to this flow by a queue, and the flow
//! sends the order back once its attempts can bring no money any more. An attempt that was paid pays the order; a
//! closed attempt brings no money. If a provider cannot close an attempt, or does not answer, this flow asks again
//! until the [grace](crate::domain::payment::grace) is over, and [`ASKED_FOR_SECONDS`] longer; then it gives the
//! attempt up, and a capture that comes by the attempt is decided like any other late capture ([`crate::flows::pay`]).
//! [`crate::flows::reconcile`] sends the order here again when an attempt that was given up is to be asked about
//! ([`Attempt::asked_at`](crate::domain::order::attempt::Attempt::asked_at)): no callback, list or other call may tell that
//! it was paid.
//! An attempt that no buyer can have ([`Attempt::may_be_handed`]) is closed without a call.
//!
//! The remaining attempts of a paid or cancelled order are closed in the same way. If payments are also started
//! elsewhere, this flow also asks the providers for their captures.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::InventoryId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::{Attempt, AttemptState, Attempts};
use crate::domain::order::{Order, OrderState};
use crate::domain::payment::captures::Coverage;
use crate::domain::payment::grace::ASKED_FOR_SECONDS;
use crate::domain::payment::start::CloseReply;
use crate::flows::expire::{coverage_of, recheck_seconds};
use crate::flows::pay::pay_from_afar;
use crate::ports::{
    ChangeReply, Orders, Ports, Provider, Queue, StoreError, Stored, delay_seconds, messages,
};

/// Most tries; an order that changed meanwhile is read again.
const TRIES: usize = 4;
/// Seconds after which a provider that did not close, or did not answer, is asked again.
const ASK_AGAIN_SECONDS: i64 = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// Nothing is left to ask for; a pending order is given back.
    Done,
    /// Its providers are to be asked again at this time.
    Again(Timestamp),
}

/// Result of closing an order's open attempts.
enum Asked {
    Final,
    /// The order changed: it was paid, or somebody else has changed it.
    Changed,
    /// Some are open, and to be asked about again at this time.
    Open(Timestamp),
}

/// Closes what is open of an order at its providers, and asks them for its captures where that is needed;
/// `at` is the inventory in which the number may have a hold. Running it twice changes nothing twice.
///
/// # Errors
/// Fails if a store does; running it again goes on. A provider that fails is asked again later.
pub async fn close(
    ports: &impl Ports,
    at: &InventoryId,
    number: OrderNumber,
    now: Timestamp,
) -> Stored<Closing> {
    for _ in 0..TRIES {
        let Some(order) = ports.orders().get(number).await? else { return Ok(Closing::Done) };
        let is_pending = order.state == OrderState::Pending;
        if is_pending && stands(Guard::Deadline) && now < order.payable_until() {
            return Ok(Closing::Done);
        }
        match close_open(ports, &order, now).await? {
            Asked::Changed => continue,
            Asked::Open(again) => return Ok(Closing::Again(again)),
            Asked::Final => {}
        }
        if !is_pending {
            return Ok(Closing::Done);
        }
        let heard_at = match ports.started_elsewhere() {
            false => now,
            true => match ask_for_captures(ports, &order, now).await? {
                Heard::To(heard_at) => heard_at,
                Heard::Not(again) => return Ok(Closing::Again(again)),
            },
        };
        ports.queue().heard(at, number, heard_at, now).await?;
        return Ok(Closing::Done);
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")))
}

/// Handles a message that asks for [`close`]; if the providers are to be asked again, the message is put back with a
/// delay.
///
/// # Errors
/// As [`close`].
pub async fn close_or_requeue(
    ports: &impl Ports,
    message: &messages::ClosePayments,
    now: Timestamp,
) -> Stored<()> {
    let at = message.inventory();
    match close(ports, &at, message.order, now).await? {
        Closing::Done => Ok(()),
        Closing::Again(again) => {
            ports.queue().close(&at, message.order, Some(delay_seconds(now, again))).await
        }
    }
}

/// Asks about each open attempt, and writes what became of them.
async fn close_open(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<Asked> {
    let mut attempts = order.attempts.clone();
    let mut again = None;
    let is_pending = order.state == OrderState::Pending;
    for attempt in order.attempts_to_ask(now) {
        if !attempt.may_be_handed() {
            attempts = attempts.with_state(attempt.number, AttemptState::Closed);
            continue;
        }
        let (reply, seconds, is_heard) = match ports.provider().close(order, attempt).await {
            Ok(CloseReply::Paid(capture)) => {
                let record = pay_from_afar(ports, &capture, now).await?;
                tracing::info!(?record, "found paid as it was closed");
                // The provider reported a capture, and the decision on it is recorded. If that did not pay the order,
                // the attempt is over.
                attempts = attempts.with_state(attempt.number, AttemptState::Closed);
                continue;
            }
            Ok(reply) => (reply, ASK_AGAIN_SECONDS, true),
            Err(StoreError::Limited(seconds)) => (CloseReply::NotYet, i64::from(seconds), false),
            Err(error) => {
                tracing::warn!(order = %order.number, %error, "a payment was not closed");
                (CloseReply::NotYet, ASK_AGAIN_SECONDS, false)
            }
        };
        let gives_up_at = given_up_at(ports, order, attempt, is_heard);
        let is_over = gives_up_at <= now;
        // A page that was not opened is asked about once more, at its expiry; the seats of a pending order wait no longer
        // than for any other attempt.
        let is_awaited = reply == CloseReply::Absent && !(is_pending && is_over);
        if reply.is_final(attempt, now) {
            attempts = attempts.with_state(attempt.number, AttemptState::Closed);
        } else if attempt.state == AttemptState::GivenUp {
            attempts = attempts.with_ask(attempt.number);
        } else if is_awaited {
            if !is_pending && !attempt.is_absent {
                attempts = attempts.with_absent(attempt.number, true);
            }
            let until =
                if is_pending { attempt.expires_at.min(gives_up_at) } else { attempt.expires_at };
            again = again.into_iter().chain([until]).min();
        } else if is_over {
            tracing::error!(order = %order.number, attempt = %attempt.number, "it stays unclosed");
            attempts = attempts.with_state(attempt.number, AttemptState::GivenUp);
        } else {
            let soon = now.plus_seconds(seconds.max(ASK_AGAIN_SECONDS));
            again = again.into_iter().chain([soon]).min();
        }
    }
    if attempts.version != order.attempts.version {
        let attempts = Attempts { version: order.attempts.version.saturating_add(1), ..attempts };
        let closed = Order { attempts, ..order.clone() };
        return Ok(match ports.orders().keep_attempts(&closed).await? {
            ChangeReply::Done => again.map_or(Asked::Changed, Asked::Open),
            ChangeReply::Conflict => Asked::Changed,
        });
    }
    Ok(again.map_or(Asked::Final, Asked::Open))
}

/// The time from which an attempt that cannot be closed is given up. Unless seats wait for it, that is counted from its
/// expiry for a page that was not opened and for an attempt of which nothing was heard: one call that fails, long after the
/// order was paid, must not hide that this attempt was paid, too.
fn given_up_at(ports: &impl Ports, order: &Order, attempt: &Attempt, is_heard: bool) -> Timestamp {
    let since = if order.state == OrderState::Pending {
        order.payable_until()
    } else if attempt.is_absent || !is_heard {
        order.changed_at.max(attempt.expires_at)
    } else {
        order.changed_at
    };
    ports.grace().end_from(since).plus_seconds(ASKED_FOR_SECONDS)
}

/// How much is known of the captures of an order.
enum Heard {
    /// Those that providers list by this time are decided.
    To(Timestamp),
    /// They are to be asked at this time.
    Not(Timestamp),
}

/// Asks every provider for its captures of a pending order, and decides each capture as its callback would. If a reader
/// goes over the providers' lists, waits for the reader first.
async fn ask_for_captures(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<Heard> {
    let (coverage, read_from) = coverage_of(ports, order, now).await;
    let end = ports.grace().end_of(order, coverage);
    match coverage {
        Coverage::Read => {
            return Ok(Heard::To(now.max(ports.grace().end_from(order.payable_until()))));
        }
        Coverage::BeingRead if now < end => {
            let recheck_at = now.max(read_from).plus_seconds(recheck_seconds(ports.grace()));
            return Ok(Heard::Not(recheck_at.min(end)));
        }
        Coverage::BeingRead | Coverage::Unread => {}
    }
    let last = end.plus_seconds(ASKED_FOR_SECONDS);
    let wait = |seconds: i64| {
        if now < last { Heard::Not(now.plus_seconds(seconds).min(last)) } else { Heard::To(now) }
    };
    let captures = match ports.provider().captures(order).await {
        Ok(captures) => captures.unwrap_or_default(),
        Err(StoreError::Limited(seconds)) => {
            return Ok(wait(ASK_AGAIN_SECONDS.max(seconds.into())));
        }
        Err(error) => {
            tracing::warn!(order = %order.number, %error, "the provider does not answer");
            return Ok(wait(ASK_AGAIN_SECONDS));
        }
    };
    for capture in &captures {
        let record = pay_from_afar(ports, capture, now).await?;
        tracing::warn!(?record, "found at the provider; its callback did not come in time");
    }
    Ok(Heard::To(now))
}
