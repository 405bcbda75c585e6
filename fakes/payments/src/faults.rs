//! Fault injection: each planned fault hits one request, in the order of planning.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Kinds of requests that a fault can hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A search for the captures of an order.
    Search,
    /// A page of the list of events.
    List,
    /// The creation of a payment that waits to be paid.
    Start,
    /// The creation of a refund.
    Refund,
}

/// A fault of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A search is answered with 500.
    FailSearch,
    /// A search finds nothing, as if the payments were too new.
    FindNothing,
    /// A page of the list of events is answered with 500.
    FailList,
    /// A payment that waits is made, and the answer is 500, also to every request under the same key.
    FailStart,
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
    fn request_kind(self) -> RequestKind {
        match self {
            Self::FailSearch | Self::FindNothing => RequestKind::Search,
            Self::FailList => RequestKind::List,
            Self::FailStart => RequestKind::Start,
            Self::FailRefund
            | Self::LoseRefundAnswer
            | Self::RefuseRefund
            | Self::LeaveRefundPending => RequestKind::Refund,
        }
    }
}

/// The planned faults, oldest first.
#[derive(Debug, Default)]
pub(super) struct Plan(VecDeque<Fault>);

impl Plan {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push_back(fault);
    }

    /// Takes the oldest fault planned for a request of this kind.
    pub(super) fn take(&mut self, kind: RequestKind) -> Option<Fault> {
        let at = self.0.iter().position(|fault| fault.request_kind() == kind)?;
        self.0.remove(at)
    }
}
