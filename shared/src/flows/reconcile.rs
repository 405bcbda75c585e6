//! Reconcile: the sweeper and the repair. Queues are a hint; this is the truth.
//!
//! It finishes what is due in DynamoDB and in Redis, loads sales that Redis has lost, and compares
//! the two tier by tier: hold by hold, with a compare-and-set, while the sale goes on.

use std::collections::{BTreeMap, HashSet};

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;

use crate::domain::ids::{Epoch, SaleId, Seat, TierId};
use crate::domain::inventory::{HeldLine, HoldRecord, Repair, RepairReply, Restore, RestoreReply};
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::{Sale, Tier};
use crate::domain::time::Timestamp;
use crate::flows::expire::{Expired, expire, expire_all};
use crate::flows::hold::{align, sale_of, sell};
use crate::flows::load::{Loaded, Owned, load, owned_seats};
use crate::flows::publish::replace_terms;
use crate::flows::{refund, sync};
use crate::ports::{
    Catalogue, DUE_SHARDS, Due, Freshness, Orders, Ports, Published, Seats, Snapshot, StoreError,
    Stored,
};

/// Most work taken from one shard of the index, or from one sale's deadlines, in one run.
const MOST_DUE: u16 = 500;
/// How many pieces of due work are done at once.
const TOGETHER: usize = 16;

/// What one run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Orders and holds whose time was up, ended now.
    pub expired: u32,
    /// Paid orders whose seats were sold and counted late.
    pub synced: u32,
    /// Refunds that nothing was heard of in time, requested (again).
    pub refunds: u32,
    /// Sales that were loaded again.
    pub loaded: u32,
    /// Holds brought to where their orders are.
    pub aligned: u32,
    /// Forgotten holds of pending orders, written again.
    pub restored: u32,
    /// Paid orders whose seats Redis did not have as sold.
    pub sold: u32,
    /// Seat-legs that were taken though nobody held or claimed them.
    pub freed: u32,
    /// Pieces of work that failed and wait for the next run.
    pub failed: u32,
}

impl Report {
    /// True if there was nothing to do.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        *self == Self::default()
    }

    /// How many differences between Redis and DynamoDB were repaired.
    #[must_use]
    pub fn repairs(&self) -> u32 {
        self.aligned + self.restored + self.sold + self.freed
    }

    /// Logs why a sale was not finished; the next run tries it again.
    fn fail(&mut self, sale: &SaleId, error: &StoreError) {
        tracing::warn!(%sale, %error, "left to the next run");
        self.failed += 1;
    }

    /// Counts one piece of work, or logs why it failed; the next run tries it again.
    fn count(&mut self, done: Stored<u32>, field: Field) {
        match done {
            Ok(number) => *field(self) += number,
            Err(error) => {
                tracing::warn!(%error, "left to the next run");
                self.failed += 1;
            }
        }
    }
}

/// Does everything that is due, then compares Redis with DynamoDB. `epoch` is the name that a load
/// gets if one is needed.
///
/// # Errors
/// Fails only if the sales cannot be listed; a piece of work that fails is counted.
pub async fn reconcile(ports: &impl Ports, epoch: &Epoch, now: Timestamp) -> Stored<Report> {
    let mut report = Report::default();
    sweep_orders_until_done(ports, now, &mut report).await;
    let mut selling = Vec::new();
    // Every sale sells again, and its deadlines are kept, before the first one is compared, which
    // may take long.
    for sale in ports.catalogue().sales().await? {
        match prepare(ports, &sale, epoch, now, &mut report).await {
            Ok(true) => selling.push(sale),
            Ok(false) => {}
            Err(error) => report.fail(&sale, &error),
        }
    }
    for sale in selling {
        if let Err(error) = compare(ports, &sale, &mut report).await {
            report.fail(&sale, &error);
        }
    }
    Ok(report)
}

/// Loads a sale that Redis has lost, brings its terms to what the catalogue says, and finishes the
/// holds that are due. False if somebody else is loading it: the sale is left to the next run,
/// because there is nothing yet to compare.
async fn prepare(
    ports: &impl Ports,
    sale: &SaleId,
    epoch: &Epoch,
    now: Timestamp,
    report: &mut Report,
) -> Stored<bool> {
    match load(ports, sale, epoch, now).await? {
        Loaded::Already => replace_terms(ports, sale).await?,
        Loaded::Now { orders } => {
            tracing::warn!(%sale, orders, "Redis had lost the sale: loaded again");
            report.loaded += 1;
        }
        Loaded::Busy => return Ok(false),
    }
    sweep_holds(ports, sale, now, report).await?;
    Ok(true)
}

/// Finishes what is due, in a second round also what failed in the first: an order that is past its
/// deadline must not wait for another minute because of one call that a store refused.
async fn sweep_orders_until_done(ports: &impl Ports, now: Timestamp, report: &mut Report) {
    let failed = report.failed;
    sweep_orders(ports, now, report).await;
    if report.failed > failed {
        report.failed = failed;
        sweep_orders(ports, now, report).await;
    }
}

/// Which count of the report a piece of work adds to.
type Field = fn(&mut Report) -> &mut u32;

/// Finishes what the index in DynamoDB says is due, some of it at a time: an order that ends may
/// have to wait for the payment provider. A shard that cannot be listed holds the others up as
/// little as an order that cannot be finished.
async fn sweep_orders(ports: &impl Ports, now: Timestamp, report: &mut Report) {
    for shard in 0..DUE_SHARDS {
        let listed = match ports.orders().due(shard, now, MOST_DUE).await {
            Ok(listed) => listed,
            Err(error) => {
                report.count(Err(error), |report| &mut report.failed);
                continue;
            }
        };
        let mut done =
            stream::iter(listed).map(|due| finish(ports, due, now)).buffer_unordered(TOGETHER);
        while let Some((done, field)) = done.next().await {
            report.count(done, field);
        }
    }
}

async fn finish(ports: &impl Ports, due: Due, now: Timestamp) -> (Stored<u32>, Field) {
    match due {
        Due::Order(number) => finish_order(ports, number, now).await,
        Due::Refund(order, payment) => {
            let done = async {
                match ports.orders().payment(order, &payment).await? {
                    Some(record) => refund::request(ports, &record, now).await.map(|()| 1),
                    None => Ok(0),
                }
            };
            (done.await, |report| &mut report.refunds)
        }
    }
}

async fn finish_order(
    ports: &impl Ports,
    number: OrderNumber,
    now: Timestamp,
) -> (Stored<u32>, Field) {
    match ports.orders().get(number).await {
        Ok(Some(order)) if order.state == OrderState::Pending => {
            (ended(ports, &order.sale, number, now).await, |report| &mut report.expired)
        }
        Ok(Some(order)) if order.state == OrderState::Paid && !order.synced => {
            let done = async {
                sell(ports, &order).await?;
                sync::sync(ports, &[number]).await.map(|counted| counted as u32)
            };
            (done.await, |report| &mut report.synced)
        }
        // The index is behind: the order was finished meanwhile.
        Ok(_) => (Ok(0), |report| &mut report.expired),
        Err(error) => (Err(error), |report| &mut report.expired),
    }
}

async fn ended(
    ports: &impl Ports,
    sale: &SaleId,
    number: OrderNumber,
    now: Timestamp,
) -> Stored<u32> {
    expire(ports, sale, number, now).await.map(is_ended)
}

/// 1 for what has ended now.
fn is_ended(expired: Expired) -> u32 {
    match expired {
        Expired::Ended => 1,
        Expired::NotDue(_) | Expired::Resolved | Expired::Nothing => 0,
    }
}

/// Finishes the holds whose deadline has passed in Redis: they may have no order at all.
async fn sweep_holds(
    ports: &impl Ports,
    sale: &SaleId,
    now: Timestamp,
    report: &mut Report,
) -> Stored<()> {
    let due = ports.seats().due(sale, now, usize::from(MOST_DUE)).await?;
    let due: Vec<_> = due.into_iter().map(|number| (sale.clone(), number)).collect();
    for ended in expire_all(ports, &due, now).await {
        report.count(ended.map(is_ended), |report| &mut report.expired);
    }
    Ok(())
}

/// One sale in both stores.
struct Picture {
    /// Tier by tier, what Redis has.
    snapshots: BTreeMap<TierId, Snapshot>,
    /// Everything that DynamoDB claims, and every order that claims or holds.
    owned: Owned,
}

impl Picture {
    /// Reads both. The order matters: first what Redis has of every tier (its `freed` counter before
    /// its bitmaps, the holds after them), then what DynamoDB claims, then the orders. A seat-leg
    /// that was taken then, that no hold covers and that nobody claims now, cannot have been given
    /// to anyone since, unless seats of its tier were freed meanwhile: `repair` checks that. An order
    /// that was pending last and had no hold first is forgotten, unless it ended meanwhile:
    /// `restore` checks that.
    async fn read(ports: &impl Ports, sale: &Sale) -> Stored<Self> {
        let mut snapshots = BTreeMap::new();
        for tier in sale.tiers() {
            let snapshot = ports.seats().snapshot(sale.id(), &tier.tier, sale.legs()).await?;
            snapshots.insert(tier.tier.clone(), snapshot);
        }
        let held = snapshots.values().flat_map(Snapshot::orders).collect();
        let owned = owned_seats(ports, sale, held, None).await?;
        Ok(Self { snapshots, owned })
    }

    /// Every hold that was seen. Those of later tiers are the newer ones.
    fn holds(&self) -> BTreeMap<OrderNumber, &HoldRecord> {
        let holds = self.snapshots.values().flat_map(|snapshot| &snapshot.holds);
        holds.map(|(number, record)| (*number, record)).collect()
    }

    /// For each line, the `freed` counter of its tier; `None` if a tier is not of the sale.
    fn freed(&self, lines: &[HeldLine]) -> Option<Vec<u64>> {
        let freed = |line: &HeldLine| Some(self.snapshots.get(&line.tier)?.grid.freed);
        lines.iter().map(freed).collect()
    }

    /// True if Redis has every seat-leg of the lines as taken.
    fn has_taken(&self, lines: &[HeldLine]) -> bool {
        lines.iter().flat_map(HeldLine::seat_legs).all(|at| {
            let grid = self.snapshots.get(&at.tier).map(|snapshot| &snapshot.grid);
            grid.is_some_and(|grid| grid.is_taken(at.leg, at.seat))
        })
    }

    /// True if Redis has every seat-leg of the lines as sold.
    fn has_sold(&self, lines: &[HeldLine]) -> bool {
        lines.iter().flat_map(HeldLine::seat_legs).all(|at| {
            let grid = self.snapshots.get(&at.tier).map(|snapshot| &snapshot.grid);
            grid.is_some_and(|grid| grid.is_sold(at.leg, at.seat) && grid.is_taken(at.leg, at.seat))
        })
    }

    /// The seat-legs of a tier that are taken though no hold covers them and nobody claims them.
    fn leaks(&self, sale: &Sale, tier: &Tier) -> Vec<(u16, Seat)> {
        let Some(Snapshot { grid, holds }) = self.snapshots.get(&tier.tier) else {
            return Vec::new();
        };
        let claims = self.owned.claims.get(&tier.tier).into_iter().flatten();
        let mut owned: HashSet<(u16, Seat)> = claims.map(|claim| (claim.leg, claim.seat)).collect();
        let held_lines = holds.iter().flat_map(|(_, record)| &record.lines);
        for line in held_lines.filter(|line| line.tier == tier.tier) {
            owned.extend(line.seat_legs().map(|at| (at.leg, at.seat)));
        }
        let places = tier.layout.initial().len() as u32 * 8;
        let seats = (0..places).map(Seat).filter(|seat| tier.layout.sells(*seat));
        let legs = sale.whole();
        seats
            .flat_map(|seat| legs.iter().map(move |leg| (leg, seat)))
            .filter(|(leg, seat)| grid.is_taken(*leg, *seat) || grid.is_sold(*leg, *seat))
            .filter(|at| !owned.contains(at))
            .collect()
    }
}

/// Compares Redis with DynamoDB and repairs Redis, hold by hold.
async fn compare(ports: &impl Ports, sale: &SaleId, report: &mut Report) -> Stored<()> {
    let published = &sale_of(ports, sale, Freshness::Fresh).await?;
    let picture = Picture::read(ports, &published.sale).await?;
    align_holds(ports, &picture, report).await;
    make_up_for_forgotten(ports, published, &picture, report).await;
    for tier in published.sale.tiers() {
        let freed = free_leaks(ports, published, tier, &picture).await;
        report.count(freed, |report| &mut report.freed);
    }
    Ok(())
}

/// Holds whose order is not, or no longer, what the hold says.
async fn align_holds(ports: &impl Ports, picture: &Picture, report: &mut Report) {
    for (number, record) in picture.holds() {
        // A hold without an order is a reservation on its way, or waits for its deadline.
        let Some(order) = picture.owned.orders.get(&number) else { continue };
        let agrees = order.state == OrderState::Pending && record.lines == order.held_lines();
        if !agrees {
            let done = align(ports, order).await.map(|()| 1);
            report.count(done, |report| &mut report.aligned);
        }
    }
}

/// Orders that own seats and that Redis does not know of, or whose seats it has as free: another
/// hold of the same seats, taken while theirs was forgotten, may have given them back.
async fn make_up_for_forgotten(
    ports: &impl Ports,
    published: &Published,
    picture: &Picture,
    report: &mut Report,
) {
    let holds = picture.holds();
    for order in picture.owned.orders.values() {
        let is_held = holds.contains_key(&order.number);
        match order.state {
            // Seats that were held between reading bitmaps and holds look free too: no harm.
            OrderState::Pending if !is_held || !picture.has_taken(&order.held_lines()) => {
                let done = restore(ports, published, picture, order).await;
                report.count(done, |report| &mut report.restored);
            }
            OrderState::Paid if !is_held && !picture.has_sold(&order.held_lines()) => {
                let done = sell(ports, order).await.map(|()| 1);
                report.count(done, |report| &mut report.sold);
            }
            OrderState::Pending
            | OrderState::Paid
            | OrderState::Cancelled
            | OrderState::Expired
            | OrderState::RefundDue
            | OrderState::Refunded => {}
        }
    }
}

/// Writes the hold of a pending order that Redis has forgotten.
async fn restore(
    ports: &impl Ports,
    published: &Published,
    picture: &Picture,
    order: &Order,
) -> Stored<u32> {
    let record = order.hold_record();
    let Some((epoch, freed)) = published.epoch.clone().zip(picture.freed(&record.lines)) else {
        return Ok(0);
    };
    let sale = order.sale.clone();
    let command = Restore { sale, epoch, order: order.number, record, freed };
    Ok(match ports.seats().restore(&command).await? {
        RestoreReply::Restored => 1,
        // The order may have ended, or the sale was lost: the next run looks again.
        RestoreReply::Changed | RestoreReply::NotLoaded => 0,
    })
}

/// Frees what is taken for nobody.
async fn free_leaks(
    ports: &impl Ports,
    published: &Published,
    tier: &Tier,
    picture: &Picture,
) -> Stored<u32> {
    let leaked = picture.leaks(&published.sale, tier);
    let snapshot = picture.snapshots.get(&tier.tier);
    let Some((epoch, snapshot)) = published.epoch.clone().zip(snapshot) else { return Ok(0) };
    if leaked.is_empty() {
        return Ok(0);
    }
    let count = leaked.len() as u32;
    let command = Repair {
        sale: published.sale.id().clone(),
        epoch,
        tier: tier.tier.clone(),
        freed: snapshot.grid.freed,
        leaked,
    };
    Ok(match ports.seats().repair(&command).await? {
        RepairReply::Repaired => count,
        // Seats were freed meanwhile, or the sale was lost: the next run looks again.
        RepairReply::Changed | RepairReply::NotLoaded => 0,
    })
}
