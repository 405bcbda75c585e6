//! Repairing one discrepancy.

use crate::domain::ids::{Epoch, SaleId};
use crate::domain::inventory::{RepairReply, RestoreReply};
use crate::domain::number::OrderNumber;
use crate::domain::time::Timestamp;
use crate::flows::discrepancy::Discrepancy;
use crate::flows::expire::{Expired, expire};
use crate::flows::hold::{align, sell};
use crate::flows::load::{Loaded, load};
use crate::flows::publish::replace_terms;
use crate::flows::{refund, sync};
use crate::ports::{Orders, Ports, Seats, Stored};

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
        Discrepancy::Overdue(order, _) => ended(ports, &order.sale, order.number, now).await,
        Discrepancy::HoldOverdue(sale, number, _) => ended(ports, sale, *number, now).await,
        Discrepancy::Uncounted(order, _) => {
            sell(ports, order).await?;
            Ok(u32::from(sync::sync(ports, &[order.number]).await? > 0))
        }
        Discrepancy::Refund(order, payment) => {
            match ports.orders().payment(*order, payment).await? {
                Some(record) => refund::request(ports, &record, now).await.map(|()| 1),
                None => Ok(0),
            }
        }
        Discrepancy::HoldDiffers(order, _) => align(ports, order).await.map(|()| 1),
        Discrepancy::NotSold(order) => sell(ports, order).await.map(|()| 1),
        Discrepancy::Forgotten(_, restore) | Discrepancy::HeldAndFree(_, restore) => {
            Ok(match ports.seats().restore(restore).await? {
                RestoreReply::Restored => 1,
                // The order may have ended, or the sale was lost: the next run reads it again.
                RestoreReply::Conflict | RestoreReply::NotLoaded => 0,
            })
        }
        Discrepancy::Leaked(repair) => Ok(match ports.seats().repair(repair).await? {
            RepairReply::Repaired => u32::try_from(repair.leaked.len()).unwrap_or(u32::MAX),
            // Seats were freed meanwhile, or the sale was lost: the next run reads it again.
            RepairReply::Conflict | RepairReply::NotLoaded => 0,
        }),
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
