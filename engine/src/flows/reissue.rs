//! Reissue: give tickets of a paid order new codes, which makes the codes before them void.
//!
//! Repeated, it issues them anew once more: whoever lost the answer asks for the tickets again instead.

use crate::domain::basics::number::OrderNumber;
use crate::domain::order::Order;
use crate::domain::ticket::{ReissueRefusal, TicketNumber, decide_reissue};
use crate::ports::{ChangeReply, Orders, Ports, StoreError};

/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 6;

/// Why nothing was issued anew.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such order.
    #[error("there is no such order")]
    NotFound,
    /// The order stands against it.
    #[error(transparent)]
    Refused(#[from] ReissueRefusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Issues tickets of an order anew, all that live if none is named. Returns the order as it is with them.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn reissue(
    ports: &impl Ports,
    number: OrderNumber,
    tickets: &[TicketNumber],
) -> Result<Order, Refusal> {
    for _ in 0..ATTEMPTS {
        let order = ports.orders().get(number).await?;
        let order = order.filter(|order| !order.is_tombstone()).ok_or(Refusal::NotFound)?;
        let plan = decide_reissue(&order, tickets)?;
        match ports.orders().reissue(&plan).await? {
            ChangeReply::Done => return Ok(plan.order),
            ChangeReply::Conflict => {}
        }
    }
    Err(StoreError::Unavailable(format!("order {number} keeps changing")).into())
}
