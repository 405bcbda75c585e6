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
}

impl PaymentRecord {
    /// The dispute of it that is open.
    #[must_use]
    pub fn open_dispute(&self) -> Option<&Dispute> {
        self.disputes.iter().find(|dispute| dispute.state == DisputeState::Open)
    }
}
