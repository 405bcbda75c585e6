//! What a run of reconcile did and found.

use serde::Serialize;

use crate::domain::basics::ids::SaleId;
use crate::domain::basics::time::Timestamp;
use crate::flows::discrepancy::Discrepancy;
use crate::flows::tokens::Bought;

/// Counts of what one run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Orders and holds whose time was up, ended now.
    pub expired: u32,
    /// Paid orders whose seats were sold and counted late.
    pub synced: u32,
    /// Refunds that nothing was heard of in time, requested (again).
    pub refunds: u32,
    /// Resolved orders with a payment that was open, asked to be closed again.
    pub closing: u32,
    /// Sales that were loaded again.
    pub loaded: u32,
    /// Sales whose terms were written to Redis again.
    pub terms: u32,
    /// Holds brought to where their orders are.
    pub aligned: u32,
    /// Forgotten holds of pending orders, written again.
    pub restored: u32,
    /// Paid orders whose seats Redis did not have as sold.
    pub sold: u32,
    /// Seat-legs that were taken though nobody held or claimed them.
    pub freed: u32,
    /// Archived sales of which the rest was removed from Redis and from the list.
    pub unloaded: u32,
    /// Pieces of work that failed and wait for the next run.
    pub failed: u32,
    /// Shards of what is due, and sales, that there was no time for; they wait for a next run.
    pub left: u32,
}

impl Report {
    /// True if there was nothing to do.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        *self == Self::default()
    }

    /// Number of discrepancies between Redis and DynamoDB that were repaired.
    #[must_use]
    pub fn repairs(&self) -> u32 {
        self.aligned + self.restored + self.sold + self.freed
    }

    /// Where repairs of such a discrepancy are counted.
    pub(super) fn field(&mut self, discrepancy: &Discrepancy) -> &mut u32 {
        match discrepancy {
            Discrepancy::NotLoaded { .. } => &mut self.loaded,
            Discrepancy::Terms { .. } => &mut self.terms,
            Discrepancy::Overdue(..) | Discrepancy::HoldOverdue(..) => &mut self.expired,
            Discrepancy::Uncounted(..) => &mut self.synced,
            Discrepancy::Refund(..) | Discrepancy::OrderRefund(_) => &mut self.refunds,
            Discrepancy::Unclosed(_) => &mut self.closing,
            Discrepancy::HoldDiffers(..) | Discrepancy::Overcounted(..) => &mut self.aligned,
            Discrepancy::Forgotten(..) | Discrepancy::HeldAndFree(..) => &mut self.restored,
            Discrepancy::NotSold(_) => &mut self.sold,
            Discrepancy::Leaked(_) => &mut self.freed,
        }
    }
}

/// Outcome of a discrepancy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was only found.
    Found,
    Repaired,
    /// It was no longer there, or has changed: the next run reads it again.
    Changed,
    /// It could not be repaired; the next run tries again.
    Failed(String),
}

/// What a run found, in order, and what became of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// Counts of what it did.
    pub report: Report,
    pub found: Vec<(Discrepancy, Outcome)>,
    /// Names of what could not be read, each with the reason.
    pub unread: Vec<String>,
    /// Number of discrepancies in which Redis does not agree with DynamoDB although it has had time to.
    pub drift: u64,
    /// Number of orders that were pending past their bound,
    /// [`Grace::bound_seconds`](crate::domain::payment::grace::Grace::bound_seconds).
    pub past_bound: u64,
    /// The number of free seat-legs of each sale that was compared.
    pub available: Vec<(SaleId, u64)>,
    /// Each sale that was compared and whose tokens may change, with what was bought of it.
    pub bought: Vec<Bought>,
    /// Each sale that was compared and is over, with when it closed: those may be archived.
    pub over: Vec<(SaleId, Timestamp)>,
}
