//! Transactions whose outcome is known.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, TransactWriteItem};
use futures_util::FutureExt as _;

use super::dynamo::{Dynamo, random_hex};
use super::errors::{Failure, failure};
use super::items::Item;
use crate::runtime::metrics::{Metric, count};
use engine::ports::{MAX_TRANSACTION_ITEMS, StoreError, Stored};

// Most items of one transaction (a quota of DynamoDB).
// Source: <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html>
const _: () = assert!(MAX_TRANSACTION_ITEMS <= 100);

/// The outcome of a transaction.
#[derive(Debug)]
pub(super) enum Transacted {
    /// All of it happened.
    Done,
    /// None of it happened: one reason for each item, in order.
    Cancelled(Vec<Reason>),
}

/// What a conflict with another transaction means.
#[derive(Debug, Clone, Copy)]
enum Conflicts {
    /// The transaction is tried again, unless the conditions of the others can be told all the same: those of the
    /// leading items.
    Retried { leading: usize },
    /// It is a reason.
    Told,
}

/// The cancellation reason of one item of a transaction.
#[derive(Debug, PartialEq)]
pub(super) enum Reason {
    /// The item was not in the way.
    None,
    /// Another transaction was at work on the item, or its partition was throttled.
    TransactionConflict,
    /// Its condition failed; the item as it is, empty if there is none.
    ConditionalCheckFailed(Item),
}

impl Dynamo {
    /// Writes all items or none.
    ///
    /// The reasons of the first `leading` items outrank all others: as long as one of those has a
    /// conflict and none of their conditions has failed, the others' are ignored, and the
    /// transaction is tried again.
    ///
    /// The client request token makes an attempt whose answer was lost safe to repeat: the server
    /// answers "done" without doing it twice. Each call, and within it each attempt that surely
    /// did nothing, has a fresh one. A token derived from the order would live for ten minutes,
    /// and would answer "done" for an order that was made, cancelled and is tried again meanwhile.
    pub(super) async fn transact(
        &self,
        leading: usize,
        items: Vec<TransactWriteItem>,
    ) -> Stored<Transacted> {
        self.counted(Conflicts::Retried { leading }, items).await
    }

    /// Writes all items or none, for who has read them first and must read them again after a conflict: that is told
    /// at once, as a reason like any other.
    pub(super) async fn transact_as_read(
        &self,
        items: Vec<TransactWriteItem>,
    ) -> Stored<Transacted> {
        self.counted(Conflicts::Told, items).await
    }

    async fn counted(
        &self,
        conflicts: Conflicts,
        items: Vec<TransactWriteItem>,
    ) -> Stored<Transacted> {
        count(None, Metric::Transactions, 1);
        let outcome = self.execute(conflicts, items).await;
        if outcome.is_err() {
            count(None, Metric::TransactionFailures, 1);
        }
        outcome
    }

    async fn execute(
        &self,
        conflicts: Conflicts,
        items: Vec<TransactWriteItem>,
    ) -> Stored<Transacted> {
        if items.len() > MAX_TRANSACTION_ITEMS {
            return Err(StoreError::Contract(format!("a transaction of {} items", items.len())));
        }
        let mut budget = self.retry_budget();
        let mut token = random_hex(16)?;
        let mut lost = None;
        let mut is_conflict_counted = false;
        loop {
            let attempt = self
                .client()
                .transact_write_items()
                .client_request_token(&token)
                .set_transact_items(Some(items.clone()));
            // On the heap, as in every other request.
            let failed = match attempt.send().boxed().await {
                Ok(_) => return Ok(Transacted::Done),
                Err(error) => {
                    if !is_conflict_counted && has_conflict(&error) {
                        is_conflict_counted = true;
                        count(None, Metric::VersionConflicts, 1);
                    }
                    match cancelled(&error, conflicts) {
                        Some(Ok(reasons)) => return Ok(Transacted::Cancelled(reasons)),
                        Some(Err(failed)) => failed,
                        None => failure(&error),
                    }
                }
            };
            let text = match failed {
                Failure::Lost(text) => {
                    lost = Some(text.clone());
                    text
                }
                Failure::Busy(text) => text,
                Failure::Broken(text) => {
                    return Err(lost.map_or(StoreError::Contract(text), StoreError::Unknown));
                }
            };
            if !budget.pause().await {
                return Err(lost.map_or(StoreError::Unavailable(text), StoreError::Unknown));
            }
            if lost.is_none() {
                token = random_hex(16)?;
            }
        }
    }
}

/// True if another transaction was at work on one of the items.
fn has_conflict(error: &SdkError<TransactWriteItemsError>) -> bool {
    let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) =
        error.as_service_error()
    else {
        return false;
    };
    let mut reasons = cancelled.cancellation_reasons().iter();
    reasons.any(|reason| reason.code() == Some("TransactionConflict"))
}

/// Reads why a transaction was cancelled; `None` if it was not, `Some(Err)` if that decides
/// nothing.
fn cancelled(
    error: &SdkError<TransactWriteItemsError>,
    conflicts: Conflicts,
) -> Option<Result<Vec<Reason>, Failure>> {
    let TransactWriteItemsError::TransactionCanceledException(cancelled) =
        error.as_service_error()?
    else {
        return None;
    };
    Some(reasons_of(cancelled.cancellation_reasons(), conflicts))
}

fn reasons_of(
    cancelled: &[CancellationReason],
    conflicts: Conflicts,
) -> Result<Vec<Reason>, Failure> {
    let read = |reason: &CancellationReason| match reason.code() {
        None | Some("None") => Ok(Reason::None),
        Some("ConditionalCheckFailed") => {
            Ok(Reason::ConditionalCheckFailed(reason.item().cloned().unwrap_or_default()))
        }
        Some("TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded") => {
            Ok(Reason::TransactionConflict)
        }
        Some(code) => {
            let message = reason.message().unwrap_or_default();
            Err(Failure::Broken(format!("cancelled: {code}: {message}")))
        }
    };
    let reasons: Vec<Reason> = cancelled.iter().map(read).collect::<Result<_, _>>()?;
    let failed = |reason: &Reason| matches!(reason, Reason::ConditionalCheckFailed(_));
    let Conflicts::Retried { leading } = conflicts else {
        let throttles = ["ThrottlingError", "ProvisionedThroughputExceeded"];
        let is_throttled = |reason: &CancellationReason| {
            reason.code().is_some_and(|code| throttles.contains(&code))
        };
        if cancelled.iter().any(is_throttled) && !reasons.iter().any(failed) {
            return Err(Failure::Busy("cancelled: throttled".to_owned()));
        }
        return Ok(reasons);
    };
    let (first, rest) = reasons.split_at(leading.min(reasons.len()));
    if first.iter().any(failed)
        || (rest.iter().any(failed) && !first.contains(&Reason::TransactionConflict))
    {
        Ok(reasons)
    } else {
        Err(Failure::Busy("cancelled: another transaction was at work".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(code: &str) -> CancellationReason {
        CancellationReason::builder().code(code).build()
    }

    fn read(codes: &[&str], leading: usize) -> Result<Vec<Reason>, Failure> {
        let reasons: Vec<CancellationReason> = codes.iter().map(|code| reason(code)).collect();
        reasons_of(&reasons, Conflicts::Retried { leading })
    }

    #[test]
    fn a_conflict_of_a_leading_item_makes_the_other_reasons_doubtful() {
        let failed = || Reason::ConditionalCheckFailed(Item::new());
        let conflict = "TransactionConflict";
        let condition = "ConditionalCheckFailed";
        assert_eq!(read(&["None", condition], 1), Ok(vec![Reason::None, failed()]));
        assert_eq!(
            read(&[condition, conflict], 1),
            Ok(vec![failed(), Reason::TransactionConflict])
        );
        assert_eq!(read(&["None", conflict, condition], 1).map(|all| all.len()), Ok(3));
        for busy in [&[conflict, condition][..], &["None", conflict], &["ThrottlingError", "None"]]
        {
            assert!(matches!(read(busy, 1), Err(Failure::Busy(_))), "{busy:?}");
        }
        assert!(matches!(read(&["ValidationError"], 1), Err(Failure::Broken(_))));
        let told = reasons_of(&[reason("None"), reason(conflict)], Conflicts::Told);
        assert_eq!(told, Ok(vec![Reason::None, Reason::TransactionConflict]));
        let throttled = reasons_of(&[reason("ThrottlingError")], Conflicts::Told);
        assert!(matches!(throttled, Err(Failure::Busy(_))), "it is tried again");
    }
}
