//! Archive: a sale that is over leaves Redis, the list of sales, the sweep and the repair for good.
//!
//! The orders stay in DynamoDB, and the API shows them from there. The state of an order alone decides a capture that
//! arrives late ([`crate::flows::pay`]): nothing is sold in Redis, and nothing loads the sale.
//!
//! The archiver takes the lease under which a sale is loaded, so that no loader runs meanwhile. It then looks for
//! undecided work ([`crate::domain::sale::archive`]): first the holds, then the claims with their orders, then the
//! refunds. A hold precedes its order, and no hold is made after the closing, so an order that this reading does not
//! find does not come later. One write then ends the sale for good, on condition that the sale's version is the one
//! that was read and that no process took the lease since. The steps that follow may be cut off anywhere, and the
//! sweeper finishes them: the keys are removed from Redis, and the sale from the list.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::pin;

use futures_util::future::{Either, select};

use crate::domain::basics::ids::{Epoch, SaleId, TierId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::Sale;
use crate::domain::sale::archive::{Lifecycle, NotYet, Undecided, is_of_age, may_archive};
use crate::flows::hold::count_holds;
use crate::flows::load::{Lease, ORDERS_A_REQUEST, each_owner};
use crate::ports::{
    Catalogue, ChangeReply, DUE_SHARDS, Due, Freshness, Gate, Orders, Ports, Published, Seats,
    StoreError, Stored,
};

/// Seconds by which the query of the index looks ahead: all unfinished work is due by then. The latest is a refund that
/// the provider has refused, due after a day and an hour.
const AHEAD_SECONDS: i64 = 400 * 86_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archived {
    /// It is archived now.
    Now,
    /// The sale was archived already; keys that a late loader may have left in Redis are removed again.
    Already,
}

/// Why a sale was not archived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such sale.
    #[error("there is no such sale")]
    NoSuchSale,
    /// It still sells, or something of it is undecided.
    #[error(transparent)]
    NotYet(#[from] NotYet),
    /// It is being loaded, published or archived by someone else.
    #[error("somebody else is loading, publishing or archiving it")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The refunds that are not finished, by sale.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenRefunds(BTreeMap<SaleId, usize>);

impl OpenRefunds {
    /// Reads every unfinished refund from the index of due work; a finished refund is not in the index.
    ///
    /// # Errors
    /// Fails if the index or an order cannot be read.
    pub async fn read(ports: &impl Ports, now: Timestamp) -> Stored<Self> {
        let mut numbers: Vec<OrderNumber> = Vec::new();
        for shard in 0..DUE_SHARDS {
            let due = ports.orders().due(shard, now.plus_seconds(AHEAD_SECONDS), u16::MAX).await?;
            numbers.extend(due.into_iter().filter_map(|due| match due {
                Due::Refund(order, _) => Some(order),
                Due::OrderRefund(key) => Some(key.order),
                Due::Order(_) => None,
            }));
        }
        let mut of_sale: BTreeMap<SaleId, usize> = BTreeMap::new();
        for some in numbers.chunks(ORDERS_A_REQUEST) {
            let distinct: BTreeSet<OrderNumber> = some.iter().copied().collect();
            let distinct: Vec<OrderNumber> = distinct.into_iter().collect();
            let found = ports.orders().get_many(&distinct).await?;
            let sales: BTreeMap<OrderNumber, SaleId> =
                found.into_iter().map(|order| (order.number, order.sale)).collect();
            // A capture for an order that does not exist belongs to no sale.
            for sale in some.iter().filter_map(|number| sales.get(number)) {
                *of_sale.entry(sale.clone()).or_default() += 1;
            }
        }
        Ok(Self(of_sale))
    }

    fn of(&self, sale: &SaleId) -> usize {
        self.0.get(sale).copied().unwrap_or(0)
    }
}

/// Archives a sale, or finishes what was cut off. `token` is a name that no load and no other archiving
/// has.
///
/// # Errors
/// Returns a [`Refusal`]; the sale is then as before.
pub async fn archive(
    ports: &impl Ports,
    id: &SaleId,
    token: &Epoch,
    clock: impl Clock,
) -> Result<Archived, Refusal> {
    archive_knowing(ports, id, token, &clock, None).await
}

async fn archive_knowing(
    ports: &impl Ports,
    id: &SaleId,
    token: &Epoch,
    clock: &impl Clock,
    refunds: Option<&OpenRefunds>,
) -> Result<Archived, Refusal> {
    let published = ports.catalogue().sale(id, Freshness::Fresh).await?;
    let published = published.ok_or(Refusal::NoSuchSale)?;
    let reached = match published.lifecycle {
        Lifecycle::Listed => {
            retire(ports, &published, token, clock, refunds).await?;
            Archived::Now
        }
        Lifecycle::Unloading => Archived::Now,
        Lifecycle::Archived => Archived::Already,
    };
    finish(ports, &published.sale).await?;
    Ok(reached)
}

/// Ends a sale for good, if nothing of it is undecided.
async fn retire(
    ports: &impl Ports,
    published: &Published,
    token: &Epoch,
    clock: &impl Clock,
    refunds: Option<&OpenRefunds>,
) -> Result<(), Refusal> {
    let Published { sale, version, .. } = published;
    // The checks that read no order.
    let closes_at = sale.sells_until();
    if clock.time() < closes_at {
        return Err(NotYet::Sells(closes_at).into());
    }
    let Some(mut lease) = Lease::take(ports, sale.id(), token, clock).await? else {
        return Err(Refusal::Busy);
    };
    let retired = async {
        let found = undecided(ports, sale, refunds, &mut lease, clock.time()).await?;
        may_archive(closes_at, clock.time(), found)?;
        match ports.catalogue().retire(sale.id(), token, *version).await? {
            ChangeReply::Done => Ok(()),
            ChangeReply::Conflict => Err(Refusal::Busy),
        }
    };
    let retired = retired.await;
    if retired.is_err() {
        lease.give_back().await;
    }
    retired
}

/// What of a sale is undecided: its holds, read first; the orders that own seats; its refunds.
async fn undecided<P: Ports>(
    ports: &P,
    sale: &Sale,
    refunds: Option<&OpenRefunds>,
    lease: &mut Lease<'_, P>,
    now: Timestamp,
) -> Stored<Undecided> {
    let holds = count_holds(ports, sale).await?;
    let (mut pending, mut uncounted) = (0, 0);
    let count = |order: Order| {
        pending += usize::from(order.state == OrderState::Pending);
        uncounted += usize::from(order.state == OrderState::Paid && !order.facts.are_counted());
    };
    each_owner(ports, sale, lease, count).await?;
    let refunds = match refunds {
        Some(known) => known.of(sale.id()),
        None => OpenRefunds::read(ports, now).await?.of(sale.id()),
    };
    Ok(Undecided { holds, pending, uncounted, refunds })
}

/// Removes an archived sale from Redis and from the list. Repeating it finishes what was cut off.
///
/// # Errors
/// Fails if a store does.
pub async fn finish(ports: &impl Ports, sale: &Sale) -> Stored<()> {
    for inventory in sale.inventories() {
        let tiers: Vec<TierId> = sale.tiers_in(&inventory).map(|tier| tier.tier.clone()).collect();
        ports.seats().unload(&inventory, &tiers).await?;
    }
    ports.gate().close(sale.id(), sale.file().gate.shards).await?;
    // A conflict means that the sale is off the list already.
    ports.catalogue().delist(sale.id()).await.map(|_| ())
}

/// Archives each sale in `over` that is old enough, until `end`, and returns the ids of the sales archived now. `over`
/// lists sales that were found over, each with the time at which it closed. A sale that is undecided, fails, or gets no
/// time is left to a later run.
///
/// # Errors
/// Fails only if the refunds cannot be read.
pub async fn by_age(
    ports: &impl Ports,
    over: &[(SaleId, Timestamp)],
    after_days: u16,
    mut new_token: impl FnMut() -> Stored<Epoch>,
    clock: impl Clock,
    end: impl Future<Output = ()>,
) -> Stored<Vec<SaleId>> {
    let now = clock.time();
    let old = over.iter().filter(|(_, closes_at)| is_of_age(*closes_at, after_days, now));
    let old: Vec<&SaleId> = old.map(|(id, _)| id).collect();
    let mut archived = Vec::new();
    if old.is_empty() {
        return Ok(archived);
    }
    let refunds = OpenRefunds::read(ports, now).await?;
    let mut end = pin!(end);
    for id in old {
        let token = new_token()?;
        let work = pin!(archive_knowing(ports, id, &token, &clock, Some(&refunds)));
        match select(work, &mut end).await {
            Either::Left((Ok(Archived::Now | Archived::Already), _)) => {
                tracing::info!(sale = %id, "archived");
                archived.push(id.clone());
            }
            Either::Left((Err(refusal), _)) => {
                tracing::warn!(sale = %id, %refusal, "too old, and not archived yet");
            }
            Either::Right(((), _)) => {
                tracing::warn!("there was no time to archive more sales: left to a later run");
                break;
            }
        }
    }
    Ok(archived)
}
