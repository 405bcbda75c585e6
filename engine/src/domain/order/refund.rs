//! Money being refunded: the states of a refund, and the one table of what may follow what.

use serde::{Deserialize, Serialize};

use super::fact::{Cause, FactKind};
use super::{Order, OrderEvent, OrderState, PaymentRecord, RefundReason};
use crate::domain::basics::time::Timestamp;

/// Most characters that are kept of a provider's refusal, and of an operator's reason for a refund.
pub const MAX_REFUSAL_CHARACTERS: usize = 200;

/// The state of a refund.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RefundState {
    /// It is decided; its request is not in the queue yet.
    Due,
    /// Its request is in the queue.
    Requested,
    /// The provider has it, and has not finished it.
    Pending,
    /// The provider says no. It is asked again once a day: somebody may have cleared the way.
    Failed,
    /// The money was refunded.
    Refunded,
    /// The capture is of this deployment and of no order: nothing is sent before an operator says so.
    Unmatched,
    /// An operator has said what an unmatched capture was: nothing is sent.
    Explained,
    /// The money went back by no request of ours, and the tickets are still good: an operator looks at them.
    Outside,
    /// The provider had sent the money back, and it came back to us: it is owed again.
    FailedLater,
    /// The provider did not send it, and an operator has paid it otherwise.
    Settled,
}

impl RefundState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 10] = [
        Self::Due,
        Self::Requested,
        Self::Pending,
        Self::Failed,
        Self::Refunded,
        Self::Unmatched,
        Self::Explained,
        Self::Outside,
        Self::FailedLater,
        Self::Settled,
    ];

    /// The state as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Requested => "requested",
            Self::Pending => "pending",
            Self::Failed => "failed",
            Self::Refunded => "refunded",
            Self::Unmatched => "unmatched",
            Self::Explained => "explained",
            Self::Outside => "outside",
            Self::FailedLater => "failed_later",
            Self::Settled => "settled",
        }
    }

    /// True once the money is with whoever paid.
    #[must_use]
    pub const fn is_back(self) -> bool {
        matches!(self, Self::Refunded | Self::Outside | Self::Settled)
    }

    /// True if the provider does not send the money: it has refused it, or it came back.
    #[must_use]
    pub const fn has_failed(self) -> bool {
        matches!(self, Self::Failed | Self::FailedLater)
    }

    /// True if `next` may be recorded over this state. Whoever comes late with older news writes nothing: what the
    /// provider said outranks a request, and money that is back is owed again only by [`Self::FailedLater`]. Only an
    /// operator ends `Unmatched`, settles a refund, and makes one `Due` again that has failed.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Due | Self::Requested => matches!(
                next,
                Self::Requested | Self::Pending | Self::Failed | Self::Refunded | Self::Outside
            ),
            Self::Pending => matches!(next, Self::Pending | Self::Failed | Self::Refunded),
            Self::Failed => matches!(
                next,
                Self::Due | Self::Pending | Self::Failed | Self::Refunded | Self::Settled
            ),
            Self::Refunded => matches!(next, Self::FailedLater),
            Self::Unmatched => matches!(next, Self::Unmatched | Self::Due | Self::Explained),
            Self::Outside => matches!(next, Self::Outside | Self::Refunded | Self::FailedLater),
            Self::FailedLater => {
                matches!(next, Self::FailedLater | Self::Due | Self::Refunded | Self::Settled)
            }
            Self::Explained | Self::Settled => false,
        }
    }

    /// As [`Self::may_become`]; where the order `tells` along with it that money is back, or is not, the state changes: what two
    /// have heard at once is told once.
    #[must_use]
    pub fn may_be_recorded(self, next: Self, tells: bool) -> bool {
        self.may_become(next) && !(tells && self == next)
    }

    /// Seconds without news after which it is requested again; `None` once nothing more follows. What waits for an
    /// operator is told again every day.
    /// `Requested` leaves the queue the time for one redelivery. A day and an hour after a refusal
    /// the provider has forgotten the idempotency key (Stripe keeps one for a day), so that the
    /// request is made anew and not answered with the old refusal.
    #[must_use]
    pub const fn again_after_seconds(self) -> Option<i64> {
        match self {
            Self::Due => Some(60),
            Self::Requested => Some(5 * 60),
            Self::Pending => Some(60 * 60),
            Self::Failed => Some(25 * 60 * 60),
            Self::Unmatched | Self::Outside | Self::FailedLater => Some(24 * 60 * 60),
            Self::Refunded | Self::Explained | Self::Settled => None,
        }
    }
}

/// A refund: its state, since when, and why it failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refund {
    pub state: RefundState,
    /// Time of the last record of its state.
    pub changed_at: Timestamp,
    /// What the provider said, if it refused: one line, of bounded length.
    pub refusal: Option<String>,
}

impl Refund {
    /// A refund that was decided now.
    #[must_use]
    pub fn due(now: Timestamp) -> Self {
        Self { state: RefundState::Due, changed_at: now, refusal: None }
    }

    /// What becomes of a capture of no order: an operator decides.
    #[must_use]
    pub fn unmatched(now: Timestamp) -> Self {
        Self { state: RefundState::Unmatched, changed_at: now, refusal: None }
    }

    /// When it is requested again if nothing is heard of it; `None` once nothing more follows.
    #[must_use]
    pub fn again_at(&self) -> Option<Timestamp> {
        self.state.again_after_seconds().map(|seconds| self.changed_at.plus_seconds(seconds))
    }
}

/// The provider's reply to a refund.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RefundReply {
    /// The money was refunded.
    Refunded,
    /// It has the request, and has not finished it.
    Pending,
    /// It will not do it, and says why.
    Refused(String),
    /// It had the request, which came to nothing, and says why: another one needs another name.
    Ended(String),
    /// More went back by hand than is known here, perhaps this very refund: it was not sent. Says how much.
    Conflict(String),
    /// The money went back without our request: nobody is asked.
    Outside,
}

impl Refund {
    /// The refund with its request put into the queue (again) now; what the provider has said of it
    /// stays. An unmatched one is told again now. `None` if nothing more follows.
    #[must_use]
    pub fn requested(&self, now: Timestamp) -> Option<Self> {
        let state = match self.state {
            RefundState::Due | RefundState::Requested => RefundState::Requested,
            RefundState::Pending => RefundState::Pending,
            RefundState::Failed => RefundState::Failed,
            told @ (RefundState::Unmatched | RefundState::Outside | RefundState::FailedLater) => {
                told
            }
            RefundState::Refunded | RefundState::Explained | RefundState::Settled => return None,
        };
        Some(Self { state, changed_at: now, refusal: self.refusal.clone() })
    }

    /// The refund after what the provider said of it; `None` if the money was refunded.
    #[must_use]
    pub fn after_reply(&self, reply: &RefundReply, now: Timestamp) -> Option<Self> {
        let (state, refusal) = match reply {
            RefundReply::Refunded => (RefundState::Refunded, None),
            RefundReply::Pending => (RefundState::Pending, None),
            RefundReply::Refused(why) | RefundReply::Ended(why) | RefundReply::Conflict(why) => {
                (RefundState::Failed, Some(one_line(why)))
            }
            RefundReply::Outside => (RefundState::Outside, None),
        };
        self.state.may_become(state).then_some(Self { state, changed_at: now, refusal })
    }

    /// The refund after its provider says that money which was back is not: it failed after all. `None` if it was not
    /// back by the provider.
    #[must_use]
    pub fn undone(&self, why: &str, now: Timestamp) -> Option<Self> {
        let state = RefundState::FailedLater;
        let refusal = Some(one_line(why));
        self.state.may_become(state).then_some(Self { state, changed_at: now, refusal })
    }
}

impl PaymentRecord {
    /// The record with its refund requested (again) now; what the provider has said of it stays.
    /// `None` if nothing is to be refunded, or it is refunded.
    #[must_use]
    pub fn requested(&self, now: Timestamp) -> Option<Self> {
        self.refund.as_ref()?.requested(now).map(|refund| self.with_refund(refund))
    }

    /// The record after what the provider said of its refund; `None` if nothing is to be refunded,
    /// or it is refunded.
    #[must_use]
    pub fn after_reply(&self, reply: &RefundReply, now: Timestamp) -> Option<Self> {
        self.refund.as_ref()?.after_reply(reply, now).map(|refund| self.with_refund(refund))
    }

    /// The record after an operator's word on an unmatched capture: `state` is `Due` if the money is to go
    /// back, `Explained` if it is not. `None` if the capture is not, or no longer, unmatched.
    #[must_use]
    pub fn matched_as(&self, state: RefundState, now: Timestamp) -> Option<Self> {
        let refund = self.refund.as_ref().filter(|it| it.state == RefundState::Unmatched)?;
        let is_word = matches!(state, RefundState::Due | RefundState::Explained);
        is_word.then(|| self.with_refund(Refund { state, changed_at: now, ..refund.clone() }))
    }

    fn with_refund(&self, refund: Refund) -> Self {
        Self { refund: Some(refund), ..self.clone() }
    }
}

impl Order {
    /// The order as it is when this payment's money is back, which it tells: refunded, if it waits for the
    /// refund of this very payment. `None` for a tombstone, and for a payment that was of no order when it was
    /// decided: the order tells nothing of it.
    #[must_use]
    pub fn after_refund(&self, payment: &PaymentRecord, now: Timestamp) -> Option<Self> {
        let is_own = self.payment.as_ref() == Some(&payment.capture.key);
        let waits = self.state == OrderState::RefundDue;
        let was_of_none = payment.outcome.reason() == Some(RefundReason::UnknownOrder);
        if self.is_tombstone() || was_of_none {
            return None;
        }
        let cause = Cause::capture(&payment.capture, payment.outcome.reason());
        if is_own && waits {
            return self.after(OrderEvent::RefundConfirmed, cause, now);
        }
        Some(self.append_fact(FactKind::Refunded, cause, now))
    }
}

/// Text of others, fit to be stored and shown: printable, on one line, of bounded length.
pub(crate) fn one_line(text: &str) -> String {
    let printable = |character: char| if character.is_control() { ' ' } else { character };
    text.chars().map(printable).take(MAX_REFUSAL_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every state × every next state: `x` where it may follow.
    #[test]
    fn the_table_of_states() {
        const TABLE: &str = "
            due          : - x x x x - - x - -
            requested    : - x x x x - - x - -
            pending      : - - x x x - - - - -
            failed       : x - x x x - - - - x
            refunded     : - - - - - - - - x -
            unmatched    : x - - - - x x - - -
            explained    : - - - - - - - - - -
            outside      : - - - - x - - x x -
            failed_later : x - - - x - - - x x
            settled      : - - - - - - - - - -";
        for (row, state) in TABLE.trim().lines().zip(RefundState::ALL) {
            let (name, cells) = row.split_once(':').unwrap();
            assert_eq!(name.trim(), state.as_str());
            let cells: Vec<&str> = cells.split_whitespace().collect();
            assert_eq!(cells.len(), RefundState::ALL.len());
            for (cell, next) in cells.into_iter().zip(RefundState::ALL) {
                assert_eq!(state.may_become(next), cell == "x", "{state:?} → {next:?}");
            }
            use RefundState::{Explained, Refunded, Settled};
            let is_open = !matches!(state, Refunded | Explained | Settled);
            assert_eq!(state.again_after_seconds().is_some(), is_open, "{state:?}");
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }

    #[test]
    fn a_refusal_is_kept_on_one_line_of_bounded_length() {
        assert_eq!(one_line("no\nmoney\u{7}"), "no money ");
        let kept = one_line(&"余".repeat(1000));
        assert_eq!(kept.chars().count(), MAX_REFUSAL_CHARACTERS);
    }
}
