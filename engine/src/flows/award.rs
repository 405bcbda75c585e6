//! Award: what an order gives its buyer, points and growth, is written as its facts say by now.

use crate::domain::basics::number::OrderNumber;
use crate::ports::{ChangeReply, Orders as _, Ports, StoreError, Stored};

/// Most tries; an award that somebody else has written meanwhile is read again.
const TRIES: usize = 6;

/// What came of a look at what an order gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awarded {
    /// It is written as the facts say.
    Written,
    /// There was nothing to write.
    Nothing,
}

/// Writes what an order gives its buyer by its facts as they are, with the buyer's sum; what was given by fewer facts
/// is replaced. Does nothing twice.
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
        // Nothing is written too: who has read the order before it was refunded finds that somebody came later.
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
