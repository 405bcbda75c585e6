//! Post: one transfer between two accounts, once.

use std::time::Duration;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::ledger::posting::{PAUSES_MS, Posting};
use crate::domain::ledger::{Transfer, TransferCode};
use crate::ports::{Accounts, PostReply, StoreError};

/// What became of a posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Posted {
    /// It is made now.
    Made,
    /// It was made before.
    Before,
}

/// Why nothing was posted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A posting of this key moves something else.
    #[error("a posting of this key has been made, and moves something else")]
    Differs,
    /// The account would have less than nothing.
    #[error("the account has only {0}")]
    Short(i128),
    /// The merchant owes of its other sales.
    #[error("the account has {has}, and its merchant owes {owes} of other sales")]
    Owes { has: i128, owes: i128 },
    /// More would come back than was settled.
    #[error("only {0} was settled")]
    Unsettled(i128),
    /// Others posted on the same accounts each time: try again.
    #[error("the accounts are busy")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a posting, or finds that it was made. If another posting on the same accounts was first, calls `pause` with
/// the longest time to wait, and tries again.
///
/// # Errors
/// [`Refusal`]; after [`StoreError::Unknown`] it is safe to repeat.
pub async fn post<A: Accounts>(
    accounts: &A,
    posting: &Posting,
    pause: impl AsyncFn(Duration),
) -> Result<Posted, Refusal> {
    post_withholding(accounts, posting, 0, pause).await
}

/// As [`post`], where a settlement leaves this much on the account, in minor units: what its merchant owes otherwise
/// ([`withheld`](crate::domain::ledger::debts::withheld)).
///
/// # Errors
/// As [`post`].
pub async fn post_withholding<A: Accounts>(
    accounts: &A,
    posting: &Posting,
    withheld: i128,
    pause: impl AsyncFn(Duration),
) -> Result<Posted, Refusal> {
    let Transfer { from, to, code, amount } = &posting.transfer;
    let mut pauses = PAUSES_MS.into_iter();
    loop {
        let seen = [
            accounts.account(from, amount.currency).await?,
            accounts.account(to, amount.currency).await?,
        ];
        let (has, settled) = (seen[0].has, -seen[1].posted.left());
        let moved = i128::from(amount.amount_minor);
        let owes = if *code == TransferCode::Settlement { withheld } else { 0 };
        let refusal = if owes > 0 && has < moved + owes {
            Some(Refusal::Owes { has, owes })
        } else if !from.may_be_below_nothing() && has < moved {
            Some(Refusal::Short(has))
        } else if *code == TransferCode::SettlementBack && settled < moved {
            Some(Refusal::Unsettled(settled))
        } else {
            None
        };
        if let Some(refusal) = refusal
            && stands(Guard::SettledWithin)
        {
            // This very posting may have been made before, and have taken the amount.
            let made = accounts.posting(&posting.key).await?;
            return made.map_or(Err(refusal), |made| compare_postings(&made, posting));
        }
        match accounts.post(posting, seen).await? {
            PostReply::Made => return Ok(Posted::Made),
            PostReply::Known(made) => return compare_postings(&made, posting),
            PostReply::Conflict => {}
        }
        let Some(longest) = pauses.next() else { return Err(Refusal::Busy) };
        pause(Duration::from_millis(longest)).await;
    }
}

/// Compares two postings of the same key: they are the same if they make the same transfer, at whatever time.
fn compare_postings(made: &Posting, posting: &Posting) -> Result<Posted, Refusal> {
    match made.transfer == posting.transfer {
        true => Ok(Posted::Before),
        false => Err(Refusal::Differs),
    }
}
