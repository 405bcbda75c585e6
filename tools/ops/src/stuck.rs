//! Everything that is past its bound, with what the stores and the dead-letter queues know of why.

use engine::domain::basics::ids::ProviderId;
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::bill::Difference;
use engine::flows::stuck::{Found, Kind, Stuck, stuck};
use engine::ports::{Ports, StoreError};

use shared::dynamodb::{DynamoBills, MAX_READ};
use shared::runtime::functions::QueueName;

use crate::dead_letters::{self, DeadLetterQueues, Letter};

/// Most dead letters of a queue that are looked at.
const MAX_LETTERS: usize = 1000;

/// Why it is not known what is stuck.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis or DynamoDB is out of reach.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A queue cannot be looked at.
    #[error(transparent)]
    Queue(#[from] dead_letters::Error),
}

/// Finds what is late by `older_than_seconds` or more. Of each order it says whether the message that
/// should have finished it has failed for good.
///
/// # Errors
/// A store or a queue is out of reach.
pub async fn find<P: Ports>(
    ports: &P,
    queues: &DeadLetterQueues<'_, P>,
    older_than_seconds: u32,
    now: Timestamp,
) -> Result<Found, Error> {
    let mut found = stuck(ports, older_than_seconds, now).await?;
    for which in [QueueName::Expiry, QueueName::Sync, QueueName::Refund] {
        let mut late: Vec<&mut Stuck> =
            found.stuck.iter_mut().filter(|stuck| queue_of(stuck.kind) == Some(which)).collect();
        if late.is_empty() {
            continue;
        }
        let letters = queues.list(which, MAX_LETTERS).await?.letters;
        for stuck in &mut late {
            let letter = letters.iter().find(|letter| letter.order == Some(stuck.order));
            stuck.why.push(why(which, letter));
        }
    }
    Ok(found)
}

/// Adds what of the providers' bills differs and waits for an operator: what names an order is stuck, the rest was not
/// understood.
///
/// # Errors
/// DynamoDB is out of reach.
pub async fn add_bills(
    found: &mut Found,
    bills: &DynamoBills,
    accounts: &[ProviderId],
) -> Result<(), StoreError> {
    for account in accounts {
        let differences = bills.differences(account).await?;
        found.more |= differences.len() >= MAX_READ;
        for difference in differences.into_iter().filter(|it| it.done.is_none()) {
            let name = difference.key();
            let Difference { order, what, found_at, .. } = difference;
            let why = format!("the bill of {account}: {what} ({name})");
            match order {
                Some(order) => {
                    let (kind, since) = (Kind::Bill, Some(found_at));
                    found.stuck.push(Stuck { kind, sale: None, order, since, why: vec![why] });
                }
                None => found.unread.push(why),
            }
        }
    }
    Ok(())
}

/// The queue of the messages that finish what is late; `None` for what an operator finishes.
fn queue_of(kind: Kind) -> Option<QueueName> {
    match kind {
        Kind::Pending | Kind::Hold => Some(QueueName::Expiry),
        Kind::Uncounted => Some(QueueName::Sync),
        Kind::Unclosed => Some(QueueName::Close),
        Kind::Refund => Some(QueueName::Refund),
        Kind::Unmatched | Kind::Outside | Kind::Bill => None,
    }
}

/// What became of the message that should have finished an order.
fn why(which: QueueName, letter: Option<&Letter>) -> String {
    let queue = which.as_str();
    match letter {
        Some(Letter { message, .. }) => {
            format!("its message is in the dead-letter queue of {queue}: {message}")
        }
        None => format!(
            "its message is in the queue {queue}, was lost, or was handled in vain; reconcile \
             does the same work each minute: is it running?"
        ),
    }
}
