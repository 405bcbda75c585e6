//! Reconcile: the sweeper and the repair. Queues are a hint; this is the truth.
//!
//! It finishes what is due in DynamoDB and in Redis, loads sales that Redis has lost, and compares
//! the two tier by tier: hold by hold, with a compare-and-set, while the sale goes on.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;

use crate::domain::ids::{Epoch, SaleId, Seat};
use crate::domain::inventory::{Repair, RepairReply};
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::Tier;
use crate::domain::time::Timestamp;
use crate::flows::expire::{Expired, expire};
use crate::flows::hold::{align, restore, sell};
use crate::flows::load::{Loaded, claims_of, load};
use crate::flows::{pay, sync};
use crate::ports::{
    Catalogue, DUE_SHARDS, Due, Freshness, Orders, Ports, Published, Seats, Snapshot, Stored,
};

/// Most work taken from one shard of the index, or from one sale's deadlines, in one run.
const MOST_DUE: u16 = 500;

/// What one run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Orders and holds whose time was up, ended now.
    pub expired: u32,
    /// Paid orders whose seats were sold and counted late.
    pub synced: u32,
    /// Refund requests that had not reached the queue.
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

    /// Counts one piece of work, or logs why it failed; the next run tries it again.
    fn count(&mut self, done: Stored<u32>, field: fn(&mut Self) -> &mut u32) {
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
/// Fails only if what is due cannot be listed; a piece of work that fails is counted.
pub async fn reconcile(ports: &impl Ports, epoch: &Epoch, now: Timestamp) -> Stored<Report> {
    let mut report = Report::default();
    sweep_orders(ports, now, &mut report).await?;
    for sale in ports.catalogue().sales().await? {
        match load(ports, &sale, epoch, now).await {
            Ok(Loaded::Already) => {}
            Ok(Loaded::Now { orders }) => {
                tracing::warn!(%sale, orders, "Redis had lost the sale: loaded again");
                report.loaded += 1;
            }
            // Its loader compares nothing with nothing: leave the sale to the next run.
            Ok(Loaded::Busy) => continue,
            Err(error) => {
                tracing::warn!(%sale, %error, "left to the next run");
                report.failed += 1;
                continue;
            }
        }
        sweep_holds(ports, &sale, now, &mut report).await?;
        if let Some(published) = ports.catalogue().sale(&sale, Freshness::Fresh).await? {
            for tier in published.sale.tiers() {
                if let Err(error) = compare(ports, &published, tier, &mut report).await {
                    tracing::warn!(%sale, tier = %tier.tier, %error, "left to the next run");
                    report.failed += 1;
                }
            }
        }
    }
    Ok(report)
}

/// Finishes what the index in DynamoDB says is due.
async fn sweep_orders(ports: &impl Ports, now: Timestamp, report: &mut Report) -> Stored<()> {
    for shard in 0..DUE_SHARDS {
        for due in ports.orders().due(shard, now, MOST_DUE).await? {
            match due {
                Due::Order(number) => finish_order(ports, number, now, report).await,
                Due::Refund(order, payment) => {
                    let done = async {
                        match ports.orders().payment(order, &payment).await? {
                            Some(record) => pay::carry_out(ports, &record).await.map(|()| 1),
                            None => Ok(0),
                        }
                    };
                    report.count(done.await, |report| &mut report.refunds);
                }
            }
        }
    }
    Ok(())
}

async fn finish_order(
    ports: &impl Ports,
    number: OrderNumber,
    now: Timestamp,
    report: &mut Report,
) {
    match ports.orders().get(number).await {
        Ok(Some(order)) if order.state == OrderState::Pending => {
            report
                .count(ended(ports, &order.sale, number, now).await, |report| &mut report.expired);
        }
        Ok(Some(order)) if order.state == OrderState::Paid && !order.synced => {
            let done = async {
                sell(ports, &order).await?;
                sync::sync(ports, &[number]).await.map(|counted| counted as u32)
            };
            report.count(done.await, |report| &mut report.synced);
        }
        // The index is behind: the order was finished meanwhile.
        Ok(_) => {}
        Err(error) => report.count(Err(error), |report| &mut report.failed),
    }
}

async fn ended(
    ports: &impl Ports,
    sale: &SaleId,
    number: OrderNumber,
    now: Timestamp,
) -> Stored<u32> {
    Ok(match expire(ports, sale, number, now).await? {
        Expired::Ended => 1,
        Expired::NotDue(_) | Expired::Resolved | Expired::Nothing => 0,
    })
}

/// Finishes the holds whose deadline has passed in Redis: they may have no order at all.
async fn sweep_holds(
    ports: &impl Ports,
    sale: &SaleId,
    now: Timestamp,
    report: &mut Report,
) -> Stored<()> {
    for number in ports.seats().due(sale, now, usize::from(MOST_DUE)).await? {
        report.count(ended(ports, sale, number, now).await, |report| &mut report.expired);
    }
    Ok(())
}

/// Compares one tier. The order of reading matters: first what Redis has (its `freed` counter
/// before its bitmaps, its holds after them), then what DynamoDB claims. A seat-leg that was taken
/// then, that no hold covers and that nobody claims now, cannot have been given to anyone since,
/// unless seats of the tier were freed meanwhile; and that is what `repair` checks.
async fn compare(
    ports: &impl Ports,
    published: &Published,
    tier: &Tier,
    report: &mut Report,
) -> Stored<()> {
    let sale = published.sale.id();
    let snapshot = ports.seats().snapshot(sale, &tier.tier, published.sale.legs()).await?;
    let claims = claims_of(ports, sale, tier).await?;
    let held = snapshot.holds.iter().map(|(number, _)| *number);
    let numbers: BTreeSet<OrderNumber> =
        claims.iter().map(|claim| claim.order).chain(held).collect();
    let numbers: Vec<OrderNumber> = numbers.into_iter().collect();
    let orders = ports.orders().get_many(&numbers).await?;
    let orders: BTreeMap<OrderNumber, Order> =
        orders.into_iter().map(|order| (order.number, order)).collect();

    align_holds(ports, &snapshot, &orders, report).await;
    make_up_for_forgotten(ports, &snapshot, tier, &orders, report).await;

    let mut owned: HashSet<(u16, Seat)> =
        claims.iter().map(|claim| (claim.leg, claim.seat)).collect();
    let held_lines = snapshot.holds.iter().flat_map(|(_, record)| &record.lines);
    for line in held_lines.filter(|line| line.tier == tier.tier) {
        owned.extend(line.seat_legs().map(|seat_leg| (seat_leg.leg, seat_leg.seat)));
    }
    let leaked = leaks(published, tier, &snapshot, &owned);
    if !leaked.is_empty() && published.epoch.is_some() {
        let freed = free_leaks(ports, published, tier, &snapshot, leaked).await;
        report.count(freed, |report| &mut report.freed);
    }
    Ok(())
}

/// Holds whose order is not, or no longer, what the hold says.
async fn align_holds(
    ports: &impl Ports,
    snapshot: &Snapshot,
    orders: &BTreeMap<OrderNumber, Order>,
    report: &mut Report,
) {
    for (number, record) in &snapshot.holds {
        // A hold without an order is a reservation on its way, or waits for its deadline.
        let Some(order) = orders.get(number) else { continue };
        let agrees = order.state == OrderState::Pending && record.lines == order.held_lines();
        if !agrees {
            let done = align(ports, order).await.map(|()| 1);
            report.count(done, |report| &mut report.aligned);
        }
    }
}

/// Orders that own seats of the tier and that Redis does not know of.
async fn make_up_for_forgotten(
    ports: &impl Ports,
    snapshot: &Snapshot,
    tier: &Tier,
    orders: &BTreeMap<OrderNumber, Order>,
    report: &mut Report,
) {
    let held: HashSet<OrderNumber> = snapshot.holds.iter().map(|(number, _)| *number).collect();
    for order in orders.values() {
        match order.state {
            OrderState::Pending if !held.contains(&order.number) => {
                let done = restore(ports, order).await.map(|()| 1);
                report.count(done, |report| &mut report.restored);
            }
            OrderState::Paid if !held.contains(&order.number) => {
                let lines = order.held_lines();
                let of_tier = lines.iter().filter(|line| line.tier == tier.tier);
                let grid = &snapshot.grid;
                let is_sold = of_tier
                    .flat_map(|line| line.seat_legs())
                    .all(|at| grid.is_sold(at.leg, at.seat) && grid.is_taken(at.leg, at.seat));
                if !is_sold {
                    let done = sell(ports, order).await.map(|()| 1);
                    report.count(done, |report| &mut report.sold);
                }
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

fn leaks(
    published: &Published,
    tier: &Tier,
    snapshot: &Snapshot,
    owned: &HashSet<(u16, Seat)>,
) -> Vec<(u16, Seat)> {
    let places = tier.layout.initial().len() as u32 * 8;
    let seats = (0..places).map(Seat).filter(|seat| tier.layout.sells(*seat));
    let legs = published.sale.whole();
    let of_seat = |seat: Seat| legs.iter().map(move |leg| (leg, seat));
    let grid = &snapshot.grid;
    seats
        .flat_map(of_seat)
        .filter(|(leg, seat)| grid.is_taken(*leg, *seat) || grid.is_sold(*leg, *seat))
        .filter(|at| !owned.contains(at))
        .collect()
}

async fn free_leaks(
    ports: &impl Ports,
    published: &Published,
    tier: &Tier,
    snapshot: &Snapshot,
    leaked: Vec<(u16, Seat)>,
) -> Stored<u32> {
    let Some(epoch) = published.epoch.clone() else { return Ok(0) };
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
