//! Disputes, as the payment has them.

use serde::{Deserialize, Serialize};

use super::PaymentRecord;
use super::fact::FactKind;
use crate::domain::basics::ids::DisputeId;
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::time::Timestamp;

/// The state of a dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisputeState {
    /// The money was taken back, and it is not decided whose it is.
    Open,
    /// The money is here again.
    Won,
    /// The money stays with whoever paid.
    Lost,
}

impl DisputeState {
    /// Every state, for tables and tests.
    pub const ALL: [Self; 3] = [Self::Open, Self::Won, Self::Lost];

    /// The state as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Won => "won",
            Self::Lost => "lost",
        }
    }

    /// The kind of the fact that records a dispute's change into this state.
    #[must_use]
    pub const fn fact_kind(self) -> FactKind {
        match self {
            Self::Open => FactKind::DisputeOpened,
            Self::Won => FactKind::DisputeWon,
            Self::Lost => FactKind::DisputeLost,
        }
    }
}

/// A dispute, kept with the payment that it is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Dispute {
    /// Its name at the provider.
    pub id: DisputeId,
    pub state: DisputeState,
    /// What was taken back, in the payment's currency; no more than was captured.
    pub amount_minor: MinorUnits,
    /// Time at which it was heard of.
    pub opened_at: Timestamp,
    /// Time of its last change.
    pub changed_at: Timestamp,
    /// How often it was open again after it was won.
    #[serde(default, skip_serializing_if = "is_never")]
    pub reopened: u8,
    /// How often it was won after it was lost.
    #[serde(default, skip_serializing_if = "is_never")]
    pub reinstated: u8,
    /// How often it has paid a refund that its provider had not sent: whoever has seen fewer does not know of that.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub paid: u16,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_never(times: &u8) -> bool {
    *times == 0
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_nothing(times: &u16) -> bool {
    *times == 0
}

impl Dispute {
    /// One that is heard of now.
    #[must_use]
    pub const fn opened(id: DisputeId, amount_minor: MinorUnits, now: Timestamp) -> Self {
        let state = DisputeState::Open;
        Self {
            id,
            state,
            amount_minor,
            opened_at: now,
            changed_at: now,
            reopened: 0,
            reinstated: 0,
            paid: 0,
        }
    }

    /// How often a fact of its order tells that it came into a state: as often as that happened.
    #[must_use]
    pub fn times(&self, state: DisputeState) -> usize {
        let is_now = u8::from(self.state == state);
        usize::from(match state {
            DisputeState::Open => self.reopened.saturating_add(1),
            DisputeState::Won => self.reopened.saturating_add(is_now),
            DisputeState::Lost => self.reinstated.saturating_add(is_now),
        })
    }
}

impl PaymentRecord {
    /// The record after one of its disputes has paid a refund.
    #[must_use]
    pub fn with_refund_paid_by(&self, dispute: &DisputeId) -> Self {
        let mut disputes = self.disputes.clone();
        for one in disputes.iter_mut().filter(|one| one.id == *dispute) {
            one.paid = one.paid.saturating_add(1);
        }
        Self { disputes, ..self.clone() }
    }

    /// The first dispute of it that is open.
    #[must_use]
    pub fn open_dispute(&self) -> Option<&Dispute> {
        self.disputes.iter().find(|dispute| dispute.state == DisputeState::Open)
    }
}
