//! What must have become of a captured payment when all is at rest.

use engine::domain::order::refund::RefundState;
use engine::domain::order::{PaymentOutcome, PaymentRecord};
use model_stores::ProviderModel;

/// What is wrong or not finished about a decided payment.
pub(crate) fn unfinished(record: &PaymentRecord, provider: &ProviderModel) -> Option<String> {
    let key = &record.capture.key;
    let went_back = provider.refunded.contains_key(key);
    let state = record.refund.as_ref().map(|refund| refund.state);
    match record.outcome {
        PaymentOutcome::Accepted if went_back => Some(format!("{key:?} paid and went back")),
        PaymentOutcome::Accepted => None,
        PaymentOutcome::Refund(_) if went_back && state == Some(RefundState::Refunded) => None,
        // An operator has said what it was.
        PaymentOutcome::Refund(_) if !went_back && state == Some(RefundState::Explained) => None,
        PaymentOutcome::Refund(_) => {
            Some(format!("{key:?} is {state:?}, and it went back: {went_back}"))
        }
    }
}
