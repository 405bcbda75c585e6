//! Repairing discrepancies.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _};

use crate::domain::basics::ids::{Epoch, InventoryId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::{RecountReply, RepairReply, RestoreReply};
use crate::domain::order::{Order, OrderState};
use crate::flows::discrepancy::Discrepancy;
use crate::flows::expire::{Expired, expire};
use crate::flows::hold::{align, inventory_of, sell};
use crate::flows::load::{Loaded, load};
use crate::flows::publish::replace_terms;
use crate::flows::refund;
use crate::flows::sync::settle;
use crate::ports::{Orders, Ports, Queue, Seats, StoreError, Stored};

/// Pieces of due work done concurrently.
const TOGETHER: usize = 16;

/// Repairs discrepancies that have nothing to do with each other, some at a time: an order that ends
/// may have to wait for the payment provider. Paid orders are sold one by one and then counted
/// together. Returns the number of things repaired, by position, as [`repair_discrepancy`].
pub(super) async fn repair_discrepancies(
    ports: &impl Ports,
    discrepancies: &[Discrepancy],
    epoch: &Epoch,
    now: Timestamp,
) -> BTreeMap<usize, Stored<u32>> {
    let numbered = discrepancies.iter().enumerate();
    let work: Vec<_> = numbered
        .map(|(index, discrepancy)| async move {
            if let Discrepancy::Uncounted(order, _) = discrepancy {
                return (index, sell_if_paid(ports, order).await.map(|()| 0));
            }
            (index, repair_discrepancy(ports, discrepancy, epoch, now).await)
        })
        .collect();
    let mut done: BTreeMap<usize, Stored<u32>> =
        stream::iter(work).buffer_unordered(TOGETHER).collect().await;
    let mut sold = Vec::new();
    for (index, discrepancy) in discrepancies.iter().enumerate() {
        if let Discrepancy::Uncounted(order, _) = discrepancy
            && matches!(done.get(&index), Some(Ok(_)))
        {
            sold.push((index, Order::clone(order)));
        }
    }
    done.extend(count(ports, &sold, now).await);
    done
}

/// A paid order that is not settled may not be sold in Redis yet.
async fn sell_if_paid(ports: &impl Ports, order: &Order) -> Stored<()> {
    if order.state == OrderState::Paid { sell(ports, order).await } else { Ok(()) }
}

/// Settles the facts of orders, each with its position, in as few transactions as they fit. Returns for each 1
/// if it had some, 0 if they were settled already.
async fn count(
    ports: &impl Ports,
    sold: &[(usize, Order)],
    now: Timestamp,
) -> Vec<(usize, Stored<u32>)> {
    let orders: Vec<Order> = sold.iter().map(|(_, order)| order.clone()).collect();
    if orders.is_empty() {
        return Vec::new();
    }
    let failed = match settle(ports, &orders, now).await {
        Ok(counted) => {
            let counted: BTreeSet<OrderNumber> = counted.into_iter().collect();
            let is_new = |order: &Order| u32::from(counted.contains(&order.number));
            return sold.iter().map(|(index, order)| (*index, Ok(is_new(order)))).collect();
        }
        Err(error) => error,
    };
    let mut done = Vec::new();
    for (index, order) in sold {
        let alone = match &failed {
            // One of the orders is at fault, and must not hold up the others.
            StoreError::Contract(_) => count_one(ports, order, now).await,
            StoreError::Unavailable(_) | StoreError::Unknown(_) | StoreError::Limited(_) => {
                Err(failed.clone())
            }
        };
        done.push((*index, alone));
    }
    done
}

async fn count_one(ports: &impl Ports, order: &Order, now: Timestamp) -> Stored<u32> {
    let counted = settle(ports, std::slice::from_ref(order), now).await?;
    Ok(u32::from(!counted.is_empty()))
}

/// Repairs one discrepancy. Returns the number of things repaired, 0 if it was no longer there.
pub(super) async fn repair_discrepancy(
    ports: &impl Ports,
    discrepancy: &Discrepancy,
    epoch: &Epoch,
    now: Timestamp,
) -> Stored<u32> {
    match discrepancy {
        Discrepancy::NotLoaded { sale, .. } => match load(ports, sale, epoch, now).await? {
            Loaded::Now { orders } => {
                tracing::warn!(%sale, orders, "Redis had lost the sale: loaded again");
                Ok(1)
            }
            Loaded::Already | Loaded::Busy | Loaded::Archived => Ok(0),
        },
        Discrepancy::Terms { sale, .. } => replace_terms(ports, sale).await.map(|()| 1),
        Discrepancy::Overdue(order, _) => {
            ended(ports, &inventory_of(ports, order).await?, order.number, now).await
        }
        Discrepancy::HoldOverdue(at, number, _) => ended(ports, at, *number, now).await,
        Discrepancy::Uncounted(order, _) => {
            sell_if_paid(ports, order).await?;
            count_one(ports, order, now).await
        }
        Discrepancy::Refund(order, payment) => {
            match ports.orders().payment(*order, payment).await? {
                Some(record) => refund::request(ports, &record, now).await.map(|()| 1),
                None => Ok(0),
            }
        }
        Discrepancy::OrderRefund(key) => match ports.orders().order_refund(*key).await? {
            Some(found) => refund::request_part(ports, &found, now).await.map(|()| 1),
            None => Ok(0),
        },
        Discrepancy::Unclosed(order) => {
            let at = inventory_of(ports, order).await?;
            ports.queue().close(&at, order.number, None).await.map(|()| 1)
        }
        Discrepancy::HoldDiffers(order, at, _) => align(ports, order, at).await.map(|()| 1),
        Discrepancy::NotSold(order) => sell(ports, order).await.map(|()| 1),
        Discrepancy::Forgotten(_, restore) | Discrepancy::HeldAndFree(_, restore) => {
            Ok(match ports.seats().restore(restore).await? {
                RestoreReply::Restored => 1,
                // The order may have ended, or the sale was lost: the next run reads it again.
                RestoreReply::Conflict | RestoreReply::NotLoaded => 0,
            })
        }
        Discrepancy::Overcounted(_, recount) => Ok(match ports.seats().recount(recount).await? {
            RecountReply::Counted => 1,
            // The buyer has bought or given back meanwhile: the next run reads it again.
            RecountReply::Conflict | RecountReply::NotLoaded => 0,
        }),
        Discrepancy::Leaked(repair) => Ok(match ports.seats().repair(repair).await? {
            RepairReply::Repaired => u32::try_from(repair.leaked.len()).unwrap_or(u32::MAX),
            // Seats of the block were freed meanwhile, or the sale was lost: the next run reads it again.
            RepairReply::Conflict | RepairReply::NotLoaded => 0,
        }),
    }
}

async fn ended(
    ports: &impl Ports,
    at: &InventoryId,
    number: OrderNumber,
    now: Timestamp,
) -> Stored<u32> {
    Ok(match expire(ports, at, number, now).await? {
        Expired::Ended => 1,
        Expired::NotDue(_) | Expired::HandedOver | Expired::Resolved | Expired::Nothing => 0,
    })
}
