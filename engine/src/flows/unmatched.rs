//! Unmatched: an operator says what becomes of a capture of ours whose order is not there.

use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::refund::RefundState;
use crate::domain::order::{PaymentKey, PaymentOutcome, PaymentRecord, RefundReason};
use crate::flows::refund::request;
use crate::ports::{ChangeReply, Orders, Ports, StoreError, Stored};

/// Most attempts; a payment that changed meanwhile is read again.
const ATTEMPTS: usize = 4;

/// What an operator says of an unmatched capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// Its money goes back.
    SendBack,
    /// It is known what it was; its money stays.
    Explain,
}

impl Word {
    /// The word as it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SendBack => "send_back",
            Self::Explain => "explain",
        }
    }

    const fn state(self) -> RefundState {
        match self {
            Self::SendBack => RefundState::Due,
            Self::Explain => RefundState::Explained,
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
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Records what an operator says of an unmatched capture, and requests its refund if that is the word. Saying the same
/// again changes nothing.
///
/// # Errors
/// Returns a [`Refusal`]; after a failed store saying it again finishes it.
pub async fn tell(
    ports: &impl Ports,
    order: OrderNumber,
    key: &PaymentKey,
    word: Word,
    now: Timestamp,
) -> Result<PaymentRecord, Refusal> {
    for _ in 0..ATTEMPTS {
        let record = ports.orders().payment(order, key).await?;
        let is_of_none = |record: &PaymentRecord| {
            record.outcome == PaymentOutcome::Refund(RefundReason::UnknownOrder)
        };
        let record = record.filter(is_of_none).ok_or(Refusal::NotFound)?;
        let Some(told) = record.matched_as(word.state(), now) else {
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

/// The word is recorded: a request that cannot be sent now is sent by the sweeper.
fn left_to_the_sweeper(sent: Stored<()>) {
    if let Err(error) = sent {
        tracing::warn!(%error, "a refund is left to the sweeper");
    }
}
