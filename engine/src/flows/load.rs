//! Load: fill Redis with a sale, from DynamoDB alone. The first load and the repair after a total
//! loss are the same.
//!
//! One process loads a sale at a time, under a lease in the catalogue whose token is the name of
//! the load, its epoch. A loader that lives prolongs its lease; one that died is succeeded when its
//! lease has run out. The lease only saves work. What keeps a loader that was frozen, and resumes
//! after others have loaded the sale and sold seats, from putting its old snapshot in place is this:
//! - the script writes only over the epoch that the loader has seen, so not over a later load;
//! - a loader that finds its lease taken or ended stops before it writes;
//! - if Redis has lost the later load too, just after that check, the old snapshot gets in, but under an epoch that the catalogue
//!   does not name: every script refuses it, and the next load writes over it;
//! - the catalogue names an epoch only while its lease is the last that was taken (`loaded`).
//!
//! Traffic goes on while the claims are read: an order may be made, paid or ended after its row was
//! read, if its hold was there before the loss. Its seats then seem free, held or taken in Redis
//! though they are not. Its claim still decides: a hold of such a seat fails at DynamoDB and is
//! marked, and the reconciler restores, sells or releases what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::domain::ids::{Epoch, SaleId, TierId, UserId};
use crate::domain::inventory::{HoldRecord, Load, LoadReply, Terms, TierGrid};
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::{Sale, Tier};
use crate::domain::tickets::Tickets;
use crate::domain::time::{Clock, Timestamp};
use crate::ports::{
    Catalogue, ChangeReply, Claim, Freshness, Orders, Ports, Queue, SEATS_PER_BLOCK, Seats,
    StoreError, Stored,
};

/// Time for which a loader may be silent before another may begin, in milliseconds. It is the pause that
/// a loader which dies adds; a read or write of a store, with all its attempts, takes less.
pub const LEASE_MS: i64 = 8_000;
/// Blocks of claims that are read at a time, each a page: 20 KB if every seat is owned on one leg,
/// 250 KB if on 64.
const BLOCKS_AT_ONCE: usize = 32;
/// Orders that one request reads, and requests at a time.
const ORDERS_A_REQUEST: usize = 100;
const ORDER_REQUESTS_AT_ONCE: usize = 16;
/// Bytes of a block in a bitmap.
const BLOCK_BYTES: usize = 16;
const _: () = assert!(SEATS_PER_BLOCK == 16 * u8::BITS);
/// Most runs of the script, which is repeated if Redis has another epoch than a moment before.
const ATTEMPTS: usize = 3;

/// Result of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// Redis had the sale already, in the catalogue's epoch.
    Already,
    /// The sale sells from now on.
    Now {
        /// Number of orders that own seats.
        orders: usize,
    },
    /// Somebody else is loading it.
    Busy,
}

/// The terms of a sale that scripts check.
#[must_use]
pub fn terms(sale: &Sale) -> Terms {
    let file = sale.file();
    Terms {
        state: file.state,
        opens_at: file.opens_at,
        closes_at: file.closes_at,
        limit: sale.limit(),
        leg_count: sale.leg_count(),
    }
}

/// Asks for a sale to be loaded, because a script has not found its epoch. If the request is lost,
/// the next buyer makes another, and the reconciler checks every sale.
pub async fn ask(ports: &impl Ports, sale: &SaleId) {
    if let Err(error) = ports.queue().load_again(sale).await {
        tracing::warn!(%sale, %error, "no request to load the sale: left to others");
    }
}

/// Loads a sale unless Redis has it. `epoch` is the name of the new load and must be new.
///
/// # Errors
/// Fails if a store does; the lease is then given back, or runs out, and the next caller begins
/// again.
pub async fn load(
    ports: &impl Ports,
    id: &SaleId,
    epoch: &Epoch,
    clock: impl Clock,
) -> Stored<Loaded> {
    if let Found::Current = find(ports, id).await? {
        return Ok(Loaded::Already);
    }
    let Some(mut lease) = Lease::take(ports, id, epoch, &clock).await? else {
        return Ok(Loaded::Busy);
    };
    let loaded = load_under(ports, &mut lease).await;
    if !matches!(loaded, Ok(Loaded::Now { .. })) {
        lease.give_back().await;
    }
    loaded
}

/// State of a sale in Redis.
enum Found {
    /// The epoch that the catalogue names.
    Current,
    /// Nothing, or a load that the catalogue does not name: nobody sells from it.
    Other { sale: Arc<Sale>, epoch: Option<Epoch> },
}

async fn find(ports: &impl Ports, id: &SaleId) -> Stored<Found> {
    let published = ports.catalogue().sale(id, Freshness::Fresh).await?;
    let missing = || StoreError::Contract(format!("sale {id} is not in the catalogue"));
    let published = published.ok_or_else(missing)?;
    let epoch = ports.seats().epoch(id).await?;
    Ok(if epoch.is_some() && epoch == published.epoch {
        Found::Current
    } else {
        Found::Other { sale: published.sale, epoch }
    })
}

async fn load_under<P: Ports>(ports: &P, lease: &mut Lease<'_, P>) -> Stored<Loaded> {
    // Read again: another loader may have finished just before the lease was taken. From here
    // on the catalogue names no other epoch than ours, unless the lease is lost.
    let Found::Other { sale, epoch: mut expected } = find(ports, lease.id).await? else {
        return Ok(Loaded::Already);
    };
    let every_owner = |_: &TierId, _: &Claim| true;
    let owned = owned_seats(ports, &sale, every_owner, BTreeSet::new(), Some(lease)).await?;
    let orders = owned.orders.len();
    let mut command = owned.into_load(&sale, None, lease.epoch.clone());
    for _ in 0..ATTEMPTS {
        // Before each attempt, not only the first: a loader that was frozen finds here that another
        // has succeeded to its lease, and must not write over what that one has loaded. Whatever
        // Redis has while the lease is ours, the catalogue does not name it.
        lease.prolong().await?;
        command.expected = expected;
        match ports.seats().load(&command).await? {
            // A loader that has lost its lease was late, or Redis has lost even that, or has the
            // load that succeeded to ours: the next prolongation tells.
            LoadReply::Stale(found) => expected = found,
            LoadReply::Loaded | LoadReply::Updated => {
                let loaded = ports.catalogue().loaded(lease.id, lease.epoch).await?;
                return Ok(match loaded {
                    ChangeReply::Done => Loaded::Now { orders },
                    ChangeReply::Conflict => Loaded::Busy,
                });
            }
        }
    }
    Ok(Loaded::Busy)
}

/// The right to load a sale, for as long as it is prolonged.
pub(crate) struct Lease<'a, P> {
    ports: &'a P,
    id: &'a SaleId,
    epoch: &'a Epoch,
    clock: &'a dyn Clock,
    until: Timestamp,
}

impl<'a, P: Ports> Lease<'a, P> {
    /// Takes the lease; `None` if somebody else has it.
    async fn take(
        ports: &'a P,
        id: &'a SaleId,
        epoch: &'a Epoch,
        clock: &'a dyn Clock,
    ) -> Stored<Option<Self>> {
        let now = clock.time();
        let until = now.plus_ms(LEASE_MS);
        let taken = ports.catalogue().lease(id, epoch, now, until).await?;
        let lease = Self { ports, id, epoch, clock, until };
        Ok((taken == ChangeReply::Done).then_some(lease))
    }

    /// Prolongs the lease if half of it is over.
    async fn keep(&mut self) -> Stored<()> {
        match self.until.ms_since(self.clock.time()) > LEASE_MS / 2 {
            true => Ok(()),
            false => self.prolong().await,
        }
    }

    /// # Errors
    /// `Unavailable` if another loader has taken the lease: whoever goes on works for nothing.
    async fn prolong(&mut self) -> Stored<()> {
        let until = self.clock.time().plus_ms(LEASE_MS);
        match self.ports.catalogue().prolong(self.id, self.epoch, until).await? {
            ChangeReply::Done => self.until = until,
            ChangeReply::Conflict => {
                let text = format!("another loader has succeeded to the lease of {}", self.id);
                return Err(StoreError::Unavailable(text));
            }
        }
        Ok(())
    }

    /// Lets the next loader begin at once.
    async fn give_back(self) {
        let now = self.clock.time();
        if let Err(error) = self.ports.catalogue().prolong(self.id, self.epoch, now).await {
            tracing::warn!(sale = %self.id, %error, "the lease runs out by itself");
        }
    }
}

/// Every claim of a sale, and orders that own them.
pub(crate) struct Owned {
    /// Claims, tier by tier.
    pub claims: BTreeMap<TierId, Vec<Claim>>,
    /// The owners that were asked for, and the orders asked for besides.
    pub orders: BTreeMap<OrderNumber, Order>,
}

/// Reads the claims of every block of a sale, many blocks at a time, and then the orders that own a
/// claim of which `is_asked` says so, and those `besides`. A loader keeps its `lease` meanwhile.
pub(crate) async fn owned_seats<P: Ports>(
    ports: &P,
    sale: &Sale,
    is_asked: impl Fn(&TierId, &Claim) -> bool,
    besides: BTreeSet<OrderNumber>,
    mut lease: Option<&mut Lease<'_, P>>,
) -> Stored<Owned> {
    let mut numbers = besides;
    let mut claims: BTreeMap<TierId, Vec<Claim>> = BTreeMap::new();
    // Futures first and a stream of them then: the compiler cannot follow a closure in a stream.
    let block_reads: Vec<_> = sale
        .tiers()
        .iter()
        .flat_map(blocks_of)
        .map(|(tier, block)| async move {
            let claims = ports.orders().claims(sale.id(), tier, block).await?;
            Stored::Ok((tier, claims))
        })
        .collect();
    let mut blocks = stream::iter(block_reads).buffered(BLOCKS_AT_ONCE);
    while let Some((tier, of_block)) = blocks.try_next().await? {
        let asked = of_block.iter().filter(|claim| is_asked(tier, claim));
        numbers.extend(asked.map(|claim| claim.order));
        claims.entry(tier.clone()).or_default().extend(of_block);
        if let Some(lease) = &mut lease {
            lease.keep().await?;
        }
    }
    let numbers: Vec<OrderNumber> = numbers.into_iter().collect();
    let mut orders = BTreeMap::new();
    let requests = numbers.chunks(ORDERS_A_REQUEST);
    let order_reads: Vec<_> = requests.map(|some| ports.orders().get_many(some)).collect();
    let mut found = stream::iter(order_reads).buffered(ORDER_REQUESTS_AT_ONCE);
    while let Some(found) = found.try_next().await? {
        orders.extend(found.into_iter().map(|order| (order.number, order)));
        if let Some(lease) = &mut lease {
            lease.keep().await?;
        }
    }
    Ok(Owned { claims, orders })
}

/// The blocks of a tier in which anything is for sale.
fn blocks_of(tier: &Tier) -> impl Iterator<Item = (&TierId, u32)> {
    let blocks = (0..).zip(tier.layout.initial().chunks(BLOCK_BYTES));
    let with_seats = blocks.filter(|(_, places)| places.iter().any(|byte| *byte != 0xff));
    with_seats.map(move |(block, _)| (&tier.tier, block))
}

impl Owned {
    fn into_load(self, sale: &Sale, expected: Option<Epoch>, epoch: Epoch) -> Load {
        let mut holds: BTreeMap<OrderNumber, HoldRecord> = BTreeMap::new();
        let mut bought: BTreeMap<UserId, Tickets> = BTreeMap::new();
        for order in self.orders.values().filter(|order| order.state.is_live()) {
            *bought.entry(order.user.clone()).or_default() += order.tickets();
            if order.state == OrderState::Pending {
                holds.insert(order.number, order.hold_record());
            }
        }
        let grid = |tier: &Tier| {
            let legs = usize::from(sale.leg_count());
            let initial = tier.layout.initial();
            let mut grid = TierGrid {
                tier: tier.tier.clone(),
                row_bytes: tier.layout.row_bytes(),
                taken: vec![initial.to_vec(); legs],
                sold: vec![vec![0; initial.len()]; legs],
                freed: 0,
            };
            for claim in self.claims.get(&tier.tier).into_iter().flatten() {
                let owner = self.orders.get(&claim.order);
                let is_paid = owner.is_some_and(|order| order.state == OrderState::Paid);
                grid.claim(claim.leg, claim.seat, is_paid);
            }
            grid
        };
        Load {
            sale: sale.id().clone(),
            terms: terms(sale),
            expected,
            epoch,
            tiers: sale.tiers().iter().map(grid).collect(),
            holds,
            bought,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::ids::Seat;
    use crate::ports::block_of;

    #[test]
    fn every_seat_lies_in_a_block_that_is_read_and_no_block_without_one_is() {
        let rows = |first: u32, count: u16| {
            json!([{ "row": first.to_string(), "to": (first + 9).to_string(),
                "seats": { "first": 1, "count": count } }])
        };
        let file = json!({
            "sale": "s", "title": "Blocks", "currency": "EUR",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z",
            "limit_per_buyer": 4, "pay_window_seconds": 900,
            "tiers": [
                { "tier": "wide", "name": "W", "price_minor": 1,
                    "sections": [{ "section": "a", "rows": rows(1, 50) }] },
                // One seat of each row: seven of eight blocks have none.
                { "tier": "aisle", "name": "A", "price_minor": 1, "sections": [
                    { "section": "b", "rows": rows(1, 1) },
                    { "section": "c", "rows": [{ "row": "1", "seats": { "first": 1, "count": 1000 } }] }
                ] },
                { "tier": "standing", "name": "S", "price_minor": 1, "general_admission": 129 },
            ]
        });
        let sale = Sale::new(serde_json::from_value(file).unwrap()).unwrap();
        for tier in sale.tiers() {
            let read: Vec<u32> = blocks_of(tier).map(|(_, block)| block).collect();
            let sold = (0..tier.layout.places()).map(Seat).filter(|seat| tier.layout.sells(*seat));
            let mut with_seats: Vec<u32> = sold.map(block_of).collect();
            with_seats.dedup();
            assert_eq!(read, with_seats, "{}", tier.tier);
        }
        let read = |tier: usize| blocks_of(&sale.tiers()[tier]).count();
        assert_eq!([read(0), read(1), read(2)], [5, 18, 2]);
    }
}
