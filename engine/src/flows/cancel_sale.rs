//! Cancel a sale: it does not take place, so every order of it ends and all its money goes back.
//!
//! First the sale is published as cancelled: from then on Redis refuses holds, and a capture for an expired order is
//! refunded instead of rescuing it. Then the walk goes over the claims, block by block: a pending order ends, and a
//! paid order is refunded whole. The transaction that decides an order also gives its claims up, so the remaining
//! claims are the remaining work. A run that is cut off needs no record of its progress, and two concurrent runs do
//! nothing twice. A request that was under way at the stop may still make an order: the cancellation is over when a
//! walk that began [`IN_FLIGHT_SECONDS`] after the stop has found nothing.
//!
//! The consumer of the refund queue requests the money from the provider, under the provider's limit on calls. The walk
//! has its own pace, so that the queue never holds much more than that consumer can request.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};

use crate::domain::basics::ids::{Epoch, SaleId, TierId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::order::fact::Cause;
use crate::domain::order::order_refund::{AskedBy, RefundNumber};
use crate::domain::order::{Order, OrderState};
use crate::domain::payment::refund::{RefundRefusal, RefundRequest, RefundedTickets};
use crate::domain::sale::{FileMap, MapName, Sale, SaleFile, SaleState};
use crate::flows::cancel::{self, end};
use crate::flows::give_back::{self, give_back};
use crate::flows::load::{ORDERS_A_REQUEST, blocks_of};
use crate::flows::publish;
use crate::ports::{Catalogue as _, Freshness, Orders as _, Ports, Published, StoreError, Stored};

/// Seconds after which no request that began before the stop is still running: no function that reserves or decides a
/// payment runs longer (`template.yaml`).
pub const IN_FLIGHT_SECONDS: i64 = 60;
/// Orders decided concurrently: the walk spends most of its time waiting for stores.
const AT_ONCE: usize = 8;
/// The reason written on each refund.
const REASON: &str = "The sale was cancelled.";

/// Why a sale was not cancelled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such sale.
    #[error("there is no such sale")]
    NoSuchSale,
    /// It could not be published as cancelled.
    #[error(transparent)]
    Publish(#[from] publish::Refusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Progress of the cancellation of a sale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The walk: 1 for the first over all claims.
    pub walk: u32,
    /// Blocks of seats that this walk has seen.
    pub blocks: usize,
    /// Blocks of seats of the sale.
    pub of_blocks: usize,
    /// Paid orders that this run has refunded.
    pub refunded: u64,
    pub tickets: u64,
    /// Pending orders that this run has ended.
    pub ended: u64,
    /// Orders of this walk that keep their claims, and why: the payment is too old, say.
    pub left: BTreeMap<OrderNumber, String>,
    /// Orders that this run has refunded and whose money waits for a dispute.
    pub disputed: BTreeSet<OrderNumber>,
}

/// What became of an order.
enum Done {
    Refunded {
        tickets: u64,
        is_disputed: bool,
    },
    Ended,
    /// Somebody else has decided it, or changed it: the next walk sees what it still claims.
    Changed,
    Left(String),
}

/// Publishes a sale as cancelled, unless it is already. `epoch` is a name that no load has.
///
/// # Errors
/// Returns a [`Refusal`]; running it again finishes it.
pub async fn stop(
    ports: &impl Ports,
    id: &SaleId,
    epoch: &Epoch,
    now: Timestamp,
) -> Result<Published, Refusal> {
    let published = ports.catalogue().sale(id, Freshness::Fresh).await?;
    let published = published.ok_or(Refusal::NoSuchSale)?;
    let map = published.map.map(|hash| FileMap::Kept(MapName { hash }));
    let file = SaleFile { state: SaleState::Cancelled, map, ..published.sale.file().clone() };
    // A sale that fills wallets cannot be cancelled.
    let sale = Sale::from_published(file).map_err(publish::Refusal::Invalid)?;
    // Publish even if the sale is cancelled already: the process that cancelled it may have died before Redis had the
    // new state.
    Ok(publish::publish(ports, &sale, epoch, now).await?)
}

/// Ends or refunds every order of a sale that was [stopped](stop). From `quiet_at` on, no request that began before the
/// stop is still running: that is [`IN_FLIGHT_SECONDS`] after the stop, or at once if the caller knows that nobody
/// buys. The walk awaits `pace` before each refund, awaits `pause` between two walks, and calls `told` after each
/// block.
///
/// # Errors
/// Fails if a store does and nothing else can be done meanwhile; running it again goes on from there.
pub async fn walk(
    ports: &impl Ports,
    sale: &Sale,
    quiet_at: Timestamp,
    clock: impl Clock,
    pace: impl AsyncFn(),
    pause: impl AsyncFn(),
    mut told: impl FnMut(&Progress),
) -> Stored<Progress> {
    let mut progress = Progress::default();
    loop {
        let began_at = clock.time();
        let found = walk_once(ports, sale, &clock, &pace, &mut progress, &mut told).await?;
        if !found && began_at >= quiet_at {
            return Ok(progress);
        }
        pause().await;
    }
}

/// Walks once over the claims of a sale; true if any order gave claims up. An order that a store fails for is left to
/// the next walk.
///
/// # Errors
/// Fails if a store has failed and nothing else was done.
pub async fn walk_once(
    ports: &impl Ports,
    sale: &Sale,
    clock: &impl Clock,
    pace: &impl AsyncFn(),
    progress: &mut Progress,
    mut told: impl FnMut(&Progress),
) -> Stored<bool> {
    let blocks: Vec<(&TierId, u32)> = sale.tiers().iter().flat_map(blocks_of).collect();
    (progress.blocks, progress.of_blocks) = (0, blocks.len());
    progress.walk += 1;
    progress.left.clear();
    let (mut found, mut failed) = (false, None);
    for (tier, block) in blocks {
        let decided = decide_block(ports, sale, (tier, block), clock, pace, progress).await;
        progress.blocks += 1;
        told(progress);
        match decided {
            Ok(Decided { found: any, failed: error }) => {
                found |= any;
                failed = error.or(failed);
            }
            Err(error) if error.retryable() => failed = Some(error),
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) if !found => Err(error),
        Some(error) => {
            tracing::warn!(%error, sale = %sale.id(), "some orders are left to the next walk");
            Ok(true)
        }
        None => Ok(found),
    }
}

/// What became of the orders of a block.
#[derive(Default)]
struct Decided {
    /// True if any has given its claims up.
    found: bool,
    /// Why another could not be decided now.
    failed: Option<StoreError>,
}

/// Decides the orders that own claims in a block.
async fn decide_block(
    ports: &impl Ports,
    sale: &Sale,
    (tier, block): (&TierId, u32),
    clock: &impl Clock,
    pace: &impl AsyncFn(),
    progress: &mut Progress,
) -> Stored<Decided> {
    let claims = ports.orders().block_claims(sale.id(), tier, block).await?.claims;
    let numbers: BTreeSet<OrderNumber> = claims.iter().map(|claim| claim.order).collect();
    // An order can have seats in several blocks: an order that cannot be refunded is tried once a walk.
    let numbers: Vec<OrderNumber> =
        numbers.into_iter().filter(|number| !progress.left.contains_key(number)).collect();
    let mut decided = Decided::default();
    for some in numbers.chunks(ORDERS_A_REQUEST) {
        let orders = ports.orders().get_many(some).await?;
        let work = orders.into_iter().map(|order| async move {
            let number = order.number;
            (number, decide(ports, order, clock, pace).await)
        });
        let mut done = std::pin::pin!(stream::iter(work).buffer_unordered(AT_ONCE));
        while let Some((number, outcome)) = done.next().await {
            let outcome = match outcome {
                Err(error) if error.retryable() => {
                    decided.failed = Some(error);
                    continue;
                }
                outcome => outcome?,
            };
            decided.found |= !matches!(outcome, Done::Left(_));
            match outcome {
                Done::Refunded { tickets, is_disputed } => {
                    progress.refunded += 1;
                    progress.tickets += tickets;
                    progress.disputed.extend(is_disputed.then_some(number));
                }
                Done::Ended => progress.ended += 1,
                Done::Changed => {}
                Done::Left(why) => drop(progress.left.insert(number, why)),
            }
        }
    }
    Ok(decided)
}

/// Ends a pending order, or refunds a paid one whole.
async fn decide(
    ports: &impl Ports,
    order: Order,
    clock: &impl Clock,
    pace: &impl AsyncFn(),
) -> Stored<Done> {
    match order.state {
        OrderState::Pending => ended(ports, &order, clock.time()).await,
        OrderState::Paid => {
            pace().await;
            refunded(ports, &order, clock.time()).await
        }
        OrderState::Expired
        | OrderState::Cancelled
        | OrderState::RefundDue
        | OrderState::Refunded => Ok(Done::Changed),
    }
}

/// Ends a pending order.
async fn ended(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<Done> {
    match end(ports, None, order.number, Cause::OPERATOR, now).await {
        Ok(_) => Ok(Done::Ended),
        Err(cancel::Refusal::Resolved(_) | cancel::Refusal::NotFound) => Ok(Done::Changed),
        Err(cancel::Refusal::Store(error)) => Err(error),
    }
}

/// Refunds a paid order whole.
async fn refunded(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<Done> {
    let left = |why: RefundRefusal| Ok(Done::Left(why.to_string()));
    let Ok(number) = RefundNumber::try_from(order.refunds.made.saturating_add(1)) else {
        return left(RefundRefusal::TooMany);
    };
    let request = RefundRequest {
        number,
        tickets: RefundedTickets::All,
        amount: None,
        asked_by: AskedBy::SaleCancelled,
        reason: Some(REASON.to_owned()),
    };
    match give_back(ports, None, order.number, &request, now).await {
        Ok(made) => {
            let tickets = u64::try_from(made.refund.tickets.len()).unwrap_or(u64::MAX);
            Ok(Done::Refunded { tickets, is_disputed: made.is_disputed })
        }
        Err(
            give_back::Refusal::NotFound
            | give_back::Refusal::Refused(
                RefundRefusal::NotPaid(_) | RefundRefusal::OtherNumber { .. },
            ),
        ) => Ok(Done::Changed),
        Err(give_back::Refusal::Refused(why)) => left(why),
        Err(give_back::Refusal::Store(error)) => Err(error),
    }
}
