//! Award: what an order gives its buyer, points and growth, is written as its facts say by now.

use crate::domain::basics::number::OrderNumber;
use crate::ports::{ChangeReply, Orders as _, Ports, StoreError, Stored};

/// Most tries; an award that somebody else has written meanwhile is read again.
const TRIES: usize = 6;

/// Result of computing what an order gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awarded {
    /// It is written as the facts say.
    Written,
    /// There was nothing to write.
    Nothing,
}

/// Writes the points and growth that the order's facts give its buyer, and updates the buyer's sum. An award written
/// from fewer facts is replaced. Running it twice writes nothing twice.
///
/// # Errors
/// Fails if a store does; the same call finds out what happened.
pub async fn award(ports: &impl Ports, number: OrderNumber) -> Stored<Awarded> {
    for _ in 0..TRIES {
        let order = ports.orders().get(number).await?;
        let Some((order, award)) = order.and_then(|order| order.award().map(|it| (order, it)))
        else {
            return Ok(Awarded::Nothing);
        };
        let before = ports.orders().awarded(&order.user, number).await?;
        // An award of nothing is written as well: a process that read the order before its refund then finds a newer
        // award and does not overwrite it.
        if before.is_some_and(|before| before.facts >= award.facts) {
            return Ok(Awarded::Nothing);
        }
        match ports.orders().award(&order.user, number, &award, before).await? {
            ChangeReply::Done => return Ok(Awarded::Written),
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("what order {number} gives keeps changing")))
}
