//! Admit: who may order now.

use crate::domain::admission::call_rate::held_back_ms;
use crate::domain::admission::gate::{Admit, AdmitReply, Share, TopUp, shard_of};
use crate::domain::basics::ids::{TierId, UserId};
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::{Sale, SaleState};
use crate::flows::hold::count_holds;
use crate::ports::{Gate, Ports, Provider, Published, Seats, StoreError, Stored};

/// Time for which a gate that found nothing left refuses without another top-up, in milliseconds.
pub const EXHAUSTED_MS: u32 = 1000;

/// Longest time after which a buyer asks again whom the gate holds back for the provider, in milliseconds: the starts that
/// are kept for buyers who never come make it shorter than it seems.
const MAX_HELD_BACK_MS: i64 = 10_000;

/// Why a buyer was not admitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sale opens at this time.
    #[error("the sale opens at {0}")]
    NotOpen(Timestamp),
    /// The sale is over, or paused.
    #[error("the sale takes no reservations now")]
    SaleClosed,
    /// The sale is archived: it sells nothing any more.
    #[error("the sale is archived: it sells nothing any more")]
    SaleArchived,
    /// Nothing is left, and nothing is held that could come back.
    #[error("the sale is sold out")]
    SoldOut,
    /// Nothing is left now, but seats may come back: they are held, or promised to buyers admitted.
    #[error("nothing is left now; held seats may come back")]
    Waiting {
        /// Milliseconds to wait before asking again.
        retry_ms: i64,
    },
    /// The buyer, or everyone together, asked too often.
    #[error("too many requests")]
    TooFast {
        /// Milliseconds to wait before asking again.
        retry_ms: i64,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Lets a buyer through the gate for at most `tickets` tickets.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn admit(
    ports: &impl Ports,
    published: &Published,
    user: &UserId,
    tickets: u16,
    now: Timestamp,
) -> Result<(), Refusal> {
    check_open(published, now)?;
    let sale = &published.sale;
    let gate = sale.file().gate;
    let mut command = Admit {
        sale: sale.id().clone(),
        shard: shard_of(user, gate.shards),
        user: user.clone(),
        tickets,
        now,
        user_lock_ms: gate.user_lock_ms,
        rate_per_second: gate.rate_per_second.div_ceil(u32::from(gate.shards)),
        first: Share::opening(sale),
        top_up: None,
    };
    // Twice at most: the second asks with a budget that was read a moment ago.
    for _ in 0..2 {
        match ports.gate().admit(&command).await? {
            AdmitReply::Admitted => return Ok(()),
            AdmitReply::Exhausted { retry_ms, holds: true } => {
                return Err(Refusal::Waiting { retry_ms });
            }
            AdmitReply::Exhausted { holds: false, .. } => return Err(Refusal::SoldOut),
            AdmitReply::Locked { retry_ms } | AdmitReply::TooFast { retry_ms } => {
                return Err(Refusal::TooFast { retry_ms });
            }
            AdmitReply::BudgetUsedUp { generation } => {
                command.top_up = Some(top_up(ports, sale, generation).await?);
            }
        }
    }
    Err(Refusal::TooFast { retry_ms: i64::from(EXHAUSTED_MS) })
}

/// Refuses a request without asking a limit if the sale is archived, not open yet, closed, paused or said to be sold
/// out.
///
/// # Errors
/// Returns a [`Refusal`].
pub fn check_open(published: &Published, now: Timestamp) -> Result<(), Refusal> {
    if published.lifecycle.is_over() {
        return Err(Refusal::SaleArchived);
    }
    let file = published.sale.file();
    if now < file.opens_at {
        return Err(Refusal::NotOpen(file.opens_at));
    }
    match file.state {
        SaleState::Open if now < published.sale.sells_until() && file.sold_out => {
            Err(Refusal::SoldOut)
        }
        SaleState::Open if now < published.sale.sells_until() => Ok(()),
        SaleState::Open | SaleState::Paused | SaleState::Cancelled => Err(Refusal::SaleClosed),
    }
}

/// Refuses while the payments of those who were let in have no free start for half a minute: more buyers would only wait
/// longer, with seats held for them. If the time cannot be read, nobody is refused for it.
///
/// # Errors
/// Returns [`Refusal::TooFast`].
pub async fn check_starts(ports: &impl Ports) -> Result<(), Refusal> {
    match held_back(ports).await {
        Some(retry_ms) => Err(Refusal::TooFast { retry_ms: retry_ms.min(MAX_HELD_BACK_MS) }),
        None => Ok(()),
    }
}

/// Milliseconds for which nobody is to be let in, because the next free start of a payment is too far away.
pub async fn held_back(ports: &impl Ports) -> Option<i64> {
    match ports.provider().starts_in().await {
        Ok(starts_in_ms) => held_back_ms(starts_in_ms),
        Err(error) => {
            tracing::warn!(%error, "when the next payment may start is unknown");
            None
        }
    }
}

async fn top_up(ports: &impl Ports, sale: &Sale, generation: u64) -> Stored<TopUp> {
    let places: u64 = sale.tiers().iter().map(|tier| u64::from(tier.layout.places())).sum();
    let mut taken = 0;
    for inventory in sale.inventories() {
        let tiers: Vec<TierId> = sale.tiers_in(&inventory).map(|tier| tier.tier.clone()).collect();
        taken += ports.seats().count_taken(&inventory, &tiers).await?;
    }
    let free = (places * u64::from(sale.leg_count())).saturating_sub(taken);
    let holds = free == 0 && count_holds(ports, sale).await? > 0;
    let share = Share::new(&sale.file().gate, sale.leg_count(), free);
    Ok(TopUp { generation, share, exhausted_ms: EXHAUSTED_MS, holds })
}
