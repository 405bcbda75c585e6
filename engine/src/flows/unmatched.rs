//! Unmatched: an operator says what becomes of a capture of ours whose order is not there, and of one that goes back whole
//! and whose refund has failed.

use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::refund::RefundState;
use crate::domain::order::{PaymentKey, PaymentOutcome, PaymentRecord, RefundReason};
use crate::flows::refund::{ask_whole_again, request, settle_whole};
use crate::ports::{ChangeReply, Orders, Ports, StoreError, Stored};

/// Most attempts; a payment that changed meanwhile is read again.
const ATTEMPTS: usize = 4;

/// What an operator says of a capture: the first two of an unmatched one, the others of one whose refund has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Its money goes back.
    SendBack,
    /// It is known what it was; its money stays.
    Explain,
    /// Its refund is asked for again.
    Again,
    /// Its refund was paid otherwise, as the reason tells.
    Settled,
}

impl Word {
    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SendBack => "send_back",
            Self::Explain => "explain",
            Self::Again => "again",
            Self::Settled => "settled",
        }
    }
}

/// Why an operator's word is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such capture is recorded, or it is of an order.
    #[error("there is no such unmatched payment")]
    NotFound,
    /// The other was said before.
    #[error("it was said otherwise before")]
    SaidOtherwise,
    /// Its refund has not failed.
    #[error("its refund is {}", .0.as_str())]
    NotFailed(RefundState),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Records what an operator says of a capture, with the reason, and requests its refund if that is the word. Saying the
/// same again changes nothing.
///
/// # Errors
/// Returns a [`Refusal`]; after a failed store saying it again finishes it.
pub async fn tell(
    ports: &impl Ports,
    order: OrderNumber,
    key: &PaymentKey,
    (word, reason): (Word, &str),
    now: Timestamp,
) -> Result<PaymentRecord, Refusal> {
    let state = match word {
        Word::SendBack => RefundState::Due,
        Word::Explain => RefundState::Explained,
        Word::Again => return failed(ask_whole_again(ports, order, key, now).await?, |_| false),
        Word::Settled => {
            let settled = settle_whole(ports, order, key, reason, now).await?;
            return failed(settled, |state| state != RefundState::Settled);
        }
    };
    for _ in 0..ATTEMPTS {
        let record = ports.orders().payment(order, key).await?;
        let is_of_none = |record: &PaymentRecord| {
            record.outcome == PaymentOutcome::Refund(RefundReason::UnknownOrder)
        };
        let record = record.filter(is_of_none).ok_or(Refusal::NotFound)?;
        let Some(told) = record.matched_as(state, now) else {
            let is_explained =
                record.refund.as_ref().map(|refund| refund.state) == Some(RefundState::Explained);
            let is_same = is_explained == (word == Word::Explain);
            return if is_same { Ok(record) } else { Err(Refusal::SaidOtherwise) };
        };
        match ports.orders().record_refund(&told, None).await? {
            ChangeReply::Done => {
                if word == Word::SendBack {
                    left_to_the_sweeper(request(ports, &told, now).await);
                }
                return Ok(told);
            }
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("payment {} keeps changing", key.payment)).into())
}

/// The record after a word on a refund that has failed, unless its state `is_other` than that makes it.
fn failed(
    record: Option<PaymentRecord>,
    is_other: impl Fn(RefundState) -> bool,
) -> Result<PaymentRecord, Refusal> {
    let record = record.ok_or(Refusal::NotFound)?;
    let other = record.refund.as_ref().map(|refund| refund.state).filter(|state| is_other(*state));
    other.map_or(Ok(record), |state| Err(Refusal::NotFailed(state)))
}

/// The word is recorded: a request that cannot be sent now is sent by the sweeper.
fn left_to_the_sweeper(sent: Stored<()>) {
    if let Err(error) = sent {
        tracing::warn!(%error, "a refund is left to the sweeper");
    }
}
