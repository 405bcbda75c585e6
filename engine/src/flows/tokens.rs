//! Tokens: what an operator sees of a gate's budget and adds to it, and the snapshots that are kept of it.

use std::future::Future;

use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream;

use crate::domain::admission::gate::Share;
use crate::domain::admission::gate::tokens::{
    AddTokens, AddTokensReply, MAX_ADDITIONS, MAX_TOKENS_PER_ADDITION, TokenCounts, TokenSnapshot,
    part_of,
};
use crate::domain::basics::ids::{AdditionId, SaleId};
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::sale::Sale;
use crate::ports::{Catalogue, Freshness, Gate, Ports, StoreError, Stored};

/// Sales whose tokens are read and kept concurrently.
const SALES_AT_ONCE: usize = 16;
/// Time after the last possible payment of a sale for which snapshots of its tokens are kept, in seconds.
const KEPT_AFTER_SECONDS: i64 = 3600;

/// Result of an addition by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// The tokens are added, at each shard that did not have them yet.
    Now,
    /// They had been added at every shard.
    Already,
}

/// Why tokens were not added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such sale.
    #[error("there is no such sale")]
    NoSuchSale,
    /// The sale is archived: its gate admits nobody.
    #[error("the sale is archived")]
    Archived,
    /// The sale has a waiting room.
    #[error("the sale has a waiting room: it admits by turns, and its gate has no budget")]
    ByTurns,
    /// None, or too many.
    #[error("give 1 to {MAX_TOKENS_PER_ADDITION} tokens")]
    OutOfRange,
    /// The addition of this id was of another number of tokens: another id is another addition.
    #[error("the addition of this id was of {0} tokens")]
    Differs(u32),
    /// The gate remembers as many additions as it may.
    #[error("the sale has had {MAX_ADDITIONS} additions, and remembers no more")]
    TooMany,
    /// A store failed. Some shards may have their part: repeat it with the same id.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Adds tokens to a sale's gate, spread over its shards. Repeated with the same id, it adds what is
/// missing, unless Redis has lost the gate since.
///
/// # Errors
/// Returns a [`Refusal`].
pub async fn add(
    ports: &impl Ports,
    id: &SaleId,
    addition: &AdditionId,
    tokens: u32,
    now: Timestamp,
) -> Result<Added, Refusal> {
    if tokens == 0 || tokens > MAX_TOKENS_PER_ADDITION {
        return Err(Refusal::OutOfRange);
    }
    let sale = sale(ports, id).await?;
    if sale.room().is_some() {
        return Err(Refusal::ByTurns);
    }
    let shards = sale.file().gate.shards;
    let mut added = Added::Already;
    for shard in 0..shards {
        let command = AddTokens {
            sale: id.clone(),
            shard,
            id: addition.clone(),
            tokens: part_of(tokens, shard, shards),
            total: tokens,
            max_additions: MAX_ADDITIONS,
            first: Share::opening(&sale),
            now,
        };
        match ports.gate().add_tokens(&command).await? {
            AddTokensReply::Added => added = Added::Now,
            AddTokensReply::Known => {}
            AddTokensReply::Differs { total } => return Err(Refusal::Differs(total)),
            AddTokensReply::TooMany => return Err(Refusal::TooMany),
        }
    }
    Ok(added)
}

/// The present counts of a sale's gate, and the snapshots from `since` on, oldest first. The counts are `None` before
/// anybody came, and if Redis has lost the gate.
///
/// # Errors
/// Returns [`Refusal::NoSuchSale`], or that a store failed.
pub async fn show(
    ports: &impl Ports,
    id: &SaleId,
    since: Timestamp,
) -> Result<(Option<TokenCounts>, Vec<TokenSnapshot>), Refusal> {
    let counts = match sale(ports, id).await {
        Ok(sale) => counts(ports, id, sale.file().gate.shards).await?,
        // What was kept of it is still there for some days.
        Err(Refusal::Archived) => None,
        Err(refusal) => return Err(refusal),
    };
    Ok((counts, ports.catalogue().kept_tokens(id, since).await?))
}

async fn sale(ports: &impl Ports, id: &SaleId) -> Result<std::sync::Arc<Sale>, Refusal> {
    let published = ports.catalogue().sale(id, Freshness::Fresh).await?;
    let published = published.ok_or(Refusal::NoSuchSale)?;
    if published.lifecycle.is_over() { Err(Refusal::Archived) } else { Ok(published.sale) }
}

async fn counts(ports: &impl Ports, id: &SaleId, shards: u16) -> Stored<Option<TokenCounts>> {
    Ok(TokenCounts::sum(ports.gate().tokens(id, shards).await?))
}

/// A sale whose tokens may change, and what was bought of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bought {
    pub sale: SaleId,
    /// The number of shards of its gate.
    pub shards: u16,
    /// Tickets of its orders that are to be paid or are paid.
    pub tickets: u64,
}

/// True while the counts of a sale may change: from its opening until an hour after its last payment. No snapshots are
/// made of a sale that is over.
#[must_use]
pub fn is_counting(sale: &Sale, now: Timestamp) -> bool {
    let file = sale.file();
    let last = i64::from(file.pay_window_seconds).saturating_add(KEPT_AFTER_SECONDS);
    file.opens_at <= now && now < sale.sells_until().plus_seconds(last)
}

/// Keeps a snapshot of the tokens of each sale, until `end`; returns the number kept. A sale without any request at its
/// gate has none. A failure is logged, and the next run tries again in a minute.
pub async fn keep(
    ports: &impl Ports,
    sales: &[Bought],
    clock: impl Clock,
    end: impl Future<Output = ()> + Send,
) -> u32 {
    let one = async |bought: &Bought| match keep_one(ports, bought, &clock).await {
        Ok(is_kept) => u32::from(is_kept),
        Err(error) => {
            tracing::warn!(sale = %bought.sale, %error, "no snapshot of its tokens is kept");
            0
        }
    };
    let mut kept = 0;
    let mut end = std::pin::pin!(end);
    let mut all = std::pin::pin!(stream::iter(sales).map(one).buffer_unordered(SALES_AT_ONCE));
    loop {
        match select(all.next(), &mut end).await {
            Either::Left((Some(one), _)) => kept += one,
            Either::Left((None, _)) | Either::Right(_) => return kept,
        }
    }
}

async fn keep_one(ports: &impl Ports, bought: &Bought, clock: &impl Clock) -> Stored<bool> {
    let Bought { sale, shards, tickets } = bought;
    let Some(counts) = counts(ports, sale, *shards).await? else { return Ok(false) };
    let snapshot = TokenSnapshot { at: clock.time(), counts, bought: *tickets };
    ports.catalogue().keep_tokens(sale, &snapshot).await.map(|()| true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn snapshots_are_kept_while_counts_may_change() {
        let sale = json!({
            "sale": "s", "title": "S", "currency": "EUR", "limit_per_buyer": 1,
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z",
            "pay_window_seconds": 600,
            "tiers": [{ "tier": "a", "name": "A", "price_minor": 1, "general_admission": 1 }]
        });
        let sale = Sale::new(serde_json::from_value(sale).unwrap()).unwrap();
        for (now, expected) in [
            ("2025-12-31T23:59:59Z", false),
            ("2026-01-01T00:00:00Z", true),
            ("2026-01-02T01:09:59Z", true),
            ("2026-01-02T01:10:00Z", false),
        ] {
            assert_eq!(is_counting(&sale, now.parse().unwrap()), expected, "{now}");
        }
    }
}
