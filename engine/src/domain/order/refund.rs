//! Money being refunded: the states of a refund, and the one table of what may follow what.

use serde::{Deserialize, Serialize};

use super::fact::{Actor, Cause, FactKind};
use super::{Order, OrderEvent, PaymentRecord, RefundReason};
use crate::domain::basics::time::Timestamp;

/// Seconds for which the turn of a refund that a capture decides is good, from its time on. A queue may be so late; if it is
/// later, refunds that waited for long would all be sent at once.
pub const TURN_GOOD_SECONDS: i64 = 60;
/// Most characters that are kept of a provider's refusal, and of an operator's reason for a refund.
pub const MAX_REFUSAL_CHARACTERS: usize = 200;

/// What a refund says in place of a refusal while a dispute of its payment is open.
const IN_DISPUTE: &str = "waits for a dispute of its payment";
/// Seconds after which such a refund is looked at again: a dispute lasts for weeks.
const DISPUTE_SECONDS: i64 = 60 * 60;

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
                Self::Due
                    | Self::Requested
                    | Self::Pending
                    | Self::Failed
                    | Self::Refunded
                    | Self::Outside
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
    /// The turn of a refund that a capture decides, which has not come yet, or was not used; `None` if it has none.
    pub turn_at: Option<Timestamp>,
}

impl Refund {
    /// A refund that was decided now.
    #[must_use]
    pub fn due(now: Timestamp) -> Self {
        Self { state: RefundState::Due, changed_at: now, refusal: None, turn_at: None }
    }

    /// The refund while a dispute of its payment is open, whose provider sends nothing: it is due, and says why it waits.
    /// `None` if its provider has said something of it.
    #[must_use]
    pub fn waiting_for_dispute(&self, now: Timestamp) -> Option<Self> {
        let state = RefundState::Due;
        let waits = matches!(self.state, RefundState::Due | RefundState::Requested);
        waits.then(|| Self {
            state,
            changed_at: now,
            refusal: Some(IN_DISPUTE.to_owned()),
            turn_at: None,
        })
    }

    /// True if it waits for a dispute of its payment.
    #[must_use]
    pub fn waits_for_dispute(&self) -> bool {
        let waits = matches!(self.state, RefundState::Due | RefundState::Requested);
        waits && self.refusal.as_deref() == Some(IN_DISPUTE)
    }

    /// What becomes of a capture of no order: an operator decides.
    #[must_use]
    pub fn unmatched(now: Timestamp) -> Self {
        Self { state: RefundState::Unmatched, changed_at: now, refusal: None, turn_at: None }
    }

    /// When it is requested again if nothing is heard of it; `None` once nothing more follows. While it waits for its turn,
    /// its message is in the queue.
    #[must_use]
    pub fn again_at(&self) -> Option<Timestamp> {
        let seconds = if self.waits_for_dispute() {
            Some(DISPUTE_SECONDS)
        } else {
            self.state.again_after_seconds()
        };
        let again = self.changed_at.plus_seconds(seconds?);
        let after_turn = self.turn_at.zip(RefundState::Requested.again_after_seconds());
        let after_turn = after_turn.map(|(at, seconds)| at.plus_seconds(seconds));
        Some(after_turn.map_or(again, |at| at.max(again)))
    }

    /// The refund with this turn.
    #[must_use]
    pub fn with_turn(&self, turn_at: Timestamp, now: Timestamp) -> Option<Self> {
        self.requested(now).map(|requested| Self { turn_at: Some(turn_at), ..requested })
    }

    /// True if it is requested, and says nothing of a turn: whoever asks for it has not seen that it was given one.
    #[must_use]
    pub fn has_seen_no_turn(&self) -> bool {
        self.state == RefundState::Requested && self.turn_at.is_none()
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
        let Self { refusal, turn_at, .. } = self.clone();
        Some(Self { state, changed_at: now, refusal, turn_at })
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
        self.next(state, refusal, now)
    }

    fn next(&self, state: RefundState, refusal: Option<String>, now: Timestamp) -> Option<Self> {
        let next = Self { state, changed_at: now, refusal, turn_at: None };
        self.state.may_become(state).then_some(next)
    }

    /// The refund after its provider says that money which was back is not: it failed after all. `None` if it was not
    /// back by the provider.
    #[must_use]
    pub fn undone(&self, why: &str, now: Timestamp) -> Option<Self> {
        self.next(RefundState::FailedLater, Some(one_line(why)), now)
    }

    /// The refund after an operator has paid it otherwise, as `how` tells; `None` if it has not failed.
    #[must_use]
    pub fn settled(&self, how: &str, now: Timestamp) -> Option<Self> {
        self.next(RefundState::Settled, Some(one_line(how)), now)
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
        let refund = self.refund.as_ref()?.after_reply(reply, now)?;
        let ended = self.ended.saturating_add(u8::from(matches!(reply, RefundReply::Ended(_))));
        Some(Self { ended, ..self.with_refund(refund) })
    }

    /// The record after its provider says that the money, which was back, is not; `None` if it was not.
    #[must_use]
    pub fn undone(&self, why: &str, now: Timestamp) -> Option<Self> {
        let refund = self.refund.as_ref()?.undone(why, now)?;
        let (ended, undone) = (self.ended.saturating_add(1), self.undone.saturating_add(1));
        Some(Self { ended, undone, ..self.with_refund(refund) })
    }

    /// The record with its refund to be asked for again, by an operator's word; `None` if it has not failed.
    #[must_use]
    pub fn again(&self, now: Timestamp) -> Option<Self> {
        let has_failed = self.refund.as_ref()?.state.has_failed();
        has_failed.then(|| self.with_refund(Refund::due(now)))
    }

    /// The record after an operator has paid its refund otherwise, as `how` tells; `None` if it has not failed.
    #[must_use]
    pub fn settled(&self, how: &str, now: Timestamp) -> Option<Self> {
        self.refund.as_ref()?.settled(how, now).map(|refund| self.with_refund(refund))
    }

    /// True if a capture has decided the refund, and nobody else: not an operator, who says what becomes of one of no order,
    /// and not an order, whose refunds are parts.
    #[must_use]
    pub fn needs_turn(&self) -> bool {
        let reason = self.outcome.reason();
        reason.is_some_and(|reason| reason != RefundReason::UnknownOrder)
    }

    /// The record with the turn of its refund; `None` if nothing is to be refunded, or it is refunded.
    #[must_use]
    pub fn with_turn(&self, turn_at: Timestamp, now: Timestamp) -> Option<Self> {
        self.refund.as_ref()?.with_turn(turn_at, now).map(|refund| self.with_refund(refund))
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
        self.after_whole(payment, OrderEvent::RefundConfirmed, Actor::Provider, now)
    }

    /// As [`Self::after_refund`], where an operator has paid the money otherwise.
    #[must_use]
    pub fn after_refund_settled(&self, payment: &PaymentRecord, now: Timestamp) -> Option<Self> {
        self.after_whole(payment, OrderEvent::RefundConfirmed, Actor::Operator, now)
    }

    /// As [`Self::after_refund`], where the money was back and is not after all: the order is owed it again, if it is its own
    /// payment's.
    #[must_use]
    pub fn after_refund_undone(&self, payment: &PaymentRecord, now: Timestamp) -> Option<Self> {
        self.after_whole(payment, OrderEvent::RefundUndone, Actor::Provider, now)
    }

    fn after_whole(
        &self,
        payment: &PaymentRecord,
        event: OrderEvent,
        by: Actor,
        now: Timestamp,
    ) -> Option<Self> {
        let is_own = self.payment.as_ref() == Some(&payment.capture.key);
        let was_of_none = payment.outcome.reason() == Some(RefundReason::UnknownOrder);
        if self.is_tombstone() || was_of_none {
            return None;
        }
        let cause = Cause { by, ..Cause::capture(&payment.capture, payment.outcome.reason()) };
        let own = is_own.then(|| self.after(event, cause.clone(), now)).flatten();
        Some(own.unwrap_or_else(|| self.append_fact(FactKind::of(event), cause, now)))
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
            due          : x x x x x - - x - -
            requested    : x x x x x - - x - -
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
    fn a_refund_waits_for_a_dispute_and_says_so() {
        let now = Timestamp::from_ms(1_800_000_000_000);
        for state in RefundState::ALL {
            let refund = Refund { state, changed_at: now, refusal: None, turn_at: None };
            let waits = refund.waiting_for_dispute(now);
            let is_unheard = matches!(state, RefundState::Due | RefundState::Requested);
            assert_eq!(waits.is_some(), is_unheard, "{state:?}");
            let Some(waits) = waits else { continue };
            assert!(waits.waits_for_dispute() && !refund.waits_for_dispute());
            assert_eq!(waits.again_at(), Some(now.plus_seconds(DISPUTE_SECONDS)));
            // Its request says so too, until the provider says something else.
            let requested = waits.requested(now).unwrap();
            assert!(requested.waits_for_dispute());
            let back = requested.after_reply(&RefundReply::Refunded, now).unwrap();
            assert_eq!(back.refusal, None);
        }
    }

    #[test]
    fn a_refusal_is_kept_on_one_line_of_bounded_length() {
        assert_eq!(one_line("no\nmoney\u{7}"), "no money ");
        let kept = one_line(&"余".repeat(1000));
        assert_eq!(kept.chars().count(), MAX_REFUSAL_CHARACTERS);
    }
}
