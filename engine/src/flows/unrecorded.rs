//! Why what a provider says of money is not recorded: of a dispute, or of the refunds of a payment.

use crate::domain::payment::dispute::DisputeRefusal;
use crate::domain::payment::outside::OutsideRefusal;
use crate::domain::payment::refund::RefundRefusal;
use crate::ports::StoreError;

/// Why what a provider says is not recorded; `R` is what the decision refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unrecorded<R> {
    /// No order here can record it: a person must look at it.
    #[error("{0}")]
    Refused(R),
    /// The refund that records it cannot be made: a person must look at it.
    #[error("its refund: {0}")]
    Refund(#[from] RefundRefusal),
    /// A store or the provider failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DisputeRefusal> for Unrecorded<DisputeRefusal> {
    fn from(refusal: DisputeRefusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<OutsideRefusal> for Unrecorded<OutsideRefusal> {
    fn from(refusal: OutsideRefusal) -> Self {
        Self::Refused(refusal)
    }
}
