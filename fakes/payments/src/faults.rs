//! What a payment provider can do wrong, once for each time it is asked to.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Which requests something goes wrong with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Asked {
    /// For the captures of an order.
    Captures,
    /// For a refund to be made.
    Refund,
}

/// What goes wrong with one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A search is answered with 500.
    FailSearch,
    /// A search finds nothing, as if the payments were too new.
    FindNothing,
    /// A refund is answered with 503, and not made.
    FailRefund,
    /// A refund is made, and its answer lost.
    LoseRefundAnswer,
    /// A refund is not made: there is no money.
    RefuseRefund,
    /// A refund is begun, and stays pending.
    LeaveRefundPending,
}

impl Fault {
    fn asked(self) -> Asked {
        match self {
            Self::FailSearch | Self::FindNothing => Asked::Captures,
            Self::FailRefund
            | Self::LoseRefundAnswer
            | Self::RefuseRefund
            | Self::LeaveRefundPending => Asked::Refund,
        }
    }
}

/// What shall go wrong, in order.
#[derive(Debug, Default)]
pub(super) struct Plan(VecDeque<Fault>);

impl Plan {
    pub(super) fn add(&mut self, mischief: Fault) {
        self.0.push_back(mischief);
    }

    /// What goes wrong with a request that comes now.
    pub(super) fn take(&mut self, asked: Asked) -> Option<Fault> {
        let at = self.0.iter().position(|mischief| mischief.asked() == asked)?;
        self.0.remove(at)
    }
}
