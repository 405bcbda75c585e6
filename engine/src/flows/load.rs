//! Load: fill Redis with a sale, from DynamoDB alone. The first load and the repair after a total
//! loss are the same.
//!
//! One process loads a sale at a time, under a lease in the catalogue whose token is the name of the load, its epoch. A
//! living loader prolongs its lease; when the lease of a dead loader has run out, another process loads the sale. The
//! lease only saves work. A loader may freeze, and resume after others have loaded the sale and sold seats. These rules
//! keep it from writing its old snapshot over theirs:
//! - the script writes only over the epoch that the loader has seen, so not over a later load;
//! - a large sale is written in parts, and has no epoch until the last part is written: a loader that is cut off in
//!   between leaves nothing that is sold from; of two concurrent loaders the one that began last continues, and the
//!   other finds its parts gone;
//! - a loader that finds its lease taken or ended stops before it writes;
//! - if Redis has lost the later load too, just after that check, the old snapshot gets in, but under an epoch that
//!   the catalogue does not name: every script refuses it, and the next load writes over it;
//! - the catalogue names an epoch only while its lease is the last that was taken (`loaded`).
//!
//! A sale that keeps its tiers apart has an inventory for each tier, all under one lease and one epoch: if Redis has
//! lost one inventory, all are loaded. Before the claims are read, the loader writes an empty first part, a fence, to
//! each inventory, so that nobody buys from those that Redis still has.
//!
//! Traffic continues while the claims are read: an order may be made, paid or ended after its row was read, if it was
//! held before the loss. Redis then has its seats in the wrong state: free, held or taken. The claim still decides:
//! DynamoDB refuses a hold of such a seat, the flow marks the seat, and the reconciler restores, sells or releases the
//! seats that differ.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Epoch, InventoryId, SaleId, Seat, TierId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::inventory::{Freed, HoldRecord, Load, LoadPart, LoadReply, Terms, TierGrid};
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::{Sale, Tier};
use crate::ports::{
    BlockClaims, Catalogue, ChangeReply, Claim, Freshness, Orders, Ports, Queue, SEATS_PER_BLOCK,
    Seats, StoreError, Stored,
};

/// Time for which a loader may be silent before another may begin, in milliseconds: the longest delay that a dead
/// loader causes. A living loader prolongs its lease once half of this time is over, whenever a store has answered.
pub const LEASE_MS: i64 = 30_000;
/// Time that one read or write of a store may take, with all its attempts, in milliseconds: so long no
/// loader is silent. The adapters assert that theirs take less.
pub const MAX_REQUEST_MS: i64 = LEASE_MS / 2;
/// Most reads that a load or a comparison repeats because a store has refused them. A sale of 500,000 orders takes
/// thousands of reads, and must not begin again because one of them failed.
const MAX_REPEATED_READS: usize = 32;
/// Blocks of claims that are read at a time, each a page: 20 KB if every seat is owned on one leg,
/// 250 KB if on 64.
const BLOCKS_AT_ONCE: usize = 32;
/// Orders that one batch read returns.
pub(crate) const ORDERS_A_REQUEST: usize = 100;
/// Batch reads at a time.
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
    /// It is archived: it is never loaded again.
    Archived,
}

/// The terms of a sale that scripts check.
#[must_use]
pub fn terms(sale: &Sale) -> Terms {
    let file = sale.file();
    Terms {
        state: file.state,
        opens_at: file.opens_at,
        closes_at: sale.sells_until(),
        limit: sale.limit(),
        leg_count: sale.leg_count(),
    }
}

/// Requests that a sale is loaded, because a script has not found its epoch. If the message is lost, the next buyer's
/// request sends another, and the reconciler checks every sale.
pub async fn request_load(ports: &impl Ports, sale: &SaleId) {
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
    match find(ports, id).await? {
        Found::Current => return Ok(Loaded::Already),
        Found::Archived => return Ok(Loaded::Archived),
        Found::Other { .. } => {}
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
    /// An inventory is not loaded, or has a load that the catalogue does not name: nobody sells from it.
    Other { sale: Arc<Sale>, heads: Vec<Head> },
    /// The sale is archived: nobody sells from it.
    Archived,
}

async fn find(ports: &impl Ports, id: &SaleId) -> Stored<Found> {
    let published = ports.catalogue().sale(id, Freshness::Fresh).await?;
    let missing = || StoreError::Contract(format!("sale {id} is not in the catalogue"));
    let published = published.ok_or_else(missing)?;
    if published.lifecycle.is_over() {
        return Ok(Found::Archived);
    }
    let heads = heads(ports, &published.sale).await?;
    Ok(match not_current(&heads, published.epoch.as_ref()) {
        None => Found::Current,
        Some(_) => Found::Other { sale: published.sale, heads },
    })
}

/// An inventory, with its epoch and terms in Redis if it is loaded.
pub(crate) type Head = (InventoryId, Option<(Epoch, Terms)>);

/// Reads the head of each inventory of a sale.
pub(crate) async fn heads(ports: &impl Ports, sale: &Sale) -> Stored<Vec<Head>> {
    let mut heads = Vec::new();
    for inventory in sale.inventories() {
        let head = ports.seats().head(&inventory).await?;
        heads.push((inventory, head));
    }
    Ok(heads)
}

/// The first inventory that does not have the epoch that the catalogue names; `None` if all have it.
pub(crate) fn not_current<'a>(heads: &'a [Head], named: Option<&Epoch>) -> Option<&'a Head> {
    let checked = if stands(Guard::EveryInventory) { heads.len() } else { 1 };
    heads.iter().take(checked).find(|(_, head)| {
        let epoch = head.as_ref().map(|(epoch, _)| epoch);
        epoch.is_none() || epoch != named
    })
}

/// The load of one inventory, in parts.
struct InventoryLoad {
    parts: Vec<LoadPart>,
    /// The epoch that Redis is expected to have.
    expected: Option<Epoch>,
}

async fn load_under<P: Ports>(ports: &P, lease: &mut Lease<'_, P>) -> Stored<Loaded> {
    // The catalogue is read again: another loader may have finished just before this one took the lease. From here on
    // the catalogue names no epoch but ours, unless the lease is lost.
    let (sale, heads) = match find(ports, lease.id).await? {
        Found::Current => return Ok(Loaded::Already),
        Found::Archived => return Ok(Loaded::Archived),
        Found::Other { sale, heads } => (sale, heads),
    };
    let is_fenced = stands(Guard::LoadFence) && heads.len() > 1;
    let mut expected = Vec::new();
    for (inventory, head) in heads {
        let epoch = head.map(|(epoch, _)| epoch);
        let empty = Load::empty(inventory, terms(&sale), None, lease.epoch.clone());
        let mut fence = InventoryLoad { parts: vec![empty.fence()], expected: epoch };
        if is_fenced && !fence.put(ports, lease).await? {
            return Ok(Loaded::Busy);
        }
        expected.push(fence.expected);
    }
    let owners = Owners::read(ports, &sale, lease).await?;
    let orders = owners.orders;
    let limit = ports.part_limit();
    for (load, expected) in owners.into_loads(&sale, lease.epoch).into_iter().zip(expected) {
        let parts = if is_fenced { load.into_fenced_parts(limit) } else { load.into_parts(limit) };
        if !(InventoryLoad { parts, expected }).put(ports, lease).await? {
            return Ok(Loaded::Busy);
        }
    }
    Ok(match ports.catalogue().loaded(lease.id, lease.epoch).await? {
        ChangeReply::Done => Loaded::Now { orders },
        ChangeReply::Conflict => Loaded::Busy,
    })
}

impl InventoryLoad {
    /// Writes the parts, again from the first if Redis has another load than expected; false if it
    /// has one each time.
    async fn put<P: Ports>(&mut self, ports: &P, lease: &mut Lease<'_, P>) -> Stored<bool> {
        for _ in 0..ATTEMPTS {
            match put_parts(ports, lease, &mut self.parts, self.expected.clone()).await? {
                LoadReply::Loaded | LoadReply::Updated | LoadReply::Staged => return Ok(true),
                // Either a loader that has lost its lease was late and has begun to write, or Redis has lost even that
                // part, or Redis has the load of our successor: the next prolongation shows which.
                LoadReply::Stale(found) => self.expected = found,
            }
        }
        Ok(false)
    }
}

/// Writes the parts of a load, one after the other. Those that are there since an earlier attempt are
/// not written again. Returns the reply of the last, or the first that says `Stale`.
async fn put_parts<P: Ports>(
    ports: &P,
    lease: &mut Lease<'_, P>,
    parts: &mut [LoadPart],
    expected: Option<Epoch>,
) -> Stored<LoadReply> {
    let mut reply = LoadReply::Stale(None);
    for part in parts {
        // Before the first and the last of each attempt: a loader that was frozen finds here that
        // another has succeeded to its lease, and must neither write over what that one has loaded nor
        // publish. Whatever Redis has while the lease is ours, the catalogue does not name it.
        match part.place == 0 || part.is_last {
            true => lease.prolong().await?,
            false => lease.keep().await?,
        }
        part.load.expected.clone_from(&expected);
        reply = ports.seats().load_part(part).await?;
        if let LoadReply::Stale(_) = reply {
            break;
        }
    }
    Ok(reply)
}

/// The right to load a sale or to archive it, for as long as it is prolonged.
pub(crate) struct Lease<'a, P> {
    ports: &'a P,
    id: &'a SaleId,
    epoch: &'a Epoch,
    clock: &'a dyn Clock,
    until: Timestamp,
}

impl<'a, P: Ports> Lease<'a, P> {
    /// Takes the lease; `None` if somebody else has it.
    pub(crate) async fn take(
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
    pub(crate) async fn give_back(self) {
        let now = self.clock.time();
        if let Err(error) = self.ports.catalogue().prolong(self.id, self.epoch, now).await {
            tracing::warn!(sale = %self.id, %error, "the lease runs out by itself");
        }
    }
}

/// Every claim of a sale, and orders that own them.
#[derive(Default)]
pub(crate) struct Owned {
    /// Claims, tier by tier.
    pub claims: BTreeMap<TierId, Vec<Claim>>,
    /// The owners that the caller asked for, and the orders in `besides`.
    pub orders: BTreeMap<OrderNumber, Order>,
    /// The orders of which tickets were refunded, as the seats tell; they are among `orders`.
    pub returned: BTreeSet<OrderNumber>,
}

impl Owned {
    /// Reads the claims of a sale, and then the orders that own a claim of which `is_asked` says so or
    /// whose seat was returned once, the orders that returned one, and those `besides`.
    pub(crate) async fn read<P: Ports>(
        ports: &P,
        sale: &Sale,
        is_asked: impl Fn(&TierId, &Claim) -> bool + Send + Sync,
        besides: BTreeSet<OrderNumber>,
    ) -> Stored<Self> {
        let mut numbers = besides;
        let mut claims: BTreeMap<TierId, Vec<Claim>> = BTreeMap::new();
        let mut returned = BTreeSet::new();
        let take = |tier: &TierId, of_block: BlockClaims| {
            let seats: BTreeSet<Seat> = of_block.returned.iter().map(|(seat, _)| *seat).collect();
            let is_asked = |claim: &&Claim| seats.contains(&claim.seat) || is_asked(tier, claim);
            let asked = of_block.claims.iter().filter(is_asked);
            numbers.extend(asked.map(|claim| claim.order));
            returned.extend(of_block.returned.iter().map(|(_, order)| *order));
            claims.entry(tier.clone()).or_default().extend(of_block.claims);
        };
        read_claims(ports, sale, None, take).await?;
        numbers.extend(&returned);
        let mut orders = BTreeMap::new();
        let take = |order: Order| {
            orders.insert(order.number, order);
        };
        read_orders(ports, numbers, None, take).await?;
        Ok(Self { claims, orders, returned })
    }
}

/// What a load keeps of a sale's claims and of the orders that own them: of an order that is read only
/// its buyer's count and, while it is pending, its hold.
#[derive(Default)]
struct Owners {
    claims: BTreeMap<TierId, Vec<Claim>>,
    orders: usize,
    paid: BTreeSet<OrderNumber>,
    in_inventory: BTreeMap<InventoryId, InInventory>,
}

/// What a load keeps of the orders of one inventory.
#[derive(Default)]
struct InInventory {
    holds: BTreeMap<OrderNumber, HoldRecord>,
    bought: BTreeMap<UserId, Tickets>,
}

impl Owners {
    /// Reads the claims, and then every order that owns one, and keeps the lease meanwhile.
    async fn read<P: Ports>(ports: &P, sale: &Sale, lease: &mut Lease<'_, P>) -> Stored<Self> {
        let mut owners = Self::default();
        let mut numbers = BTreeSet::new();
        let take = |tier: &TierId, BlockClaims { claims, .. }: BlockClaims| {
            numbers.extend(claims.iter().map(|claim| claim.order));
            owners.claims.entry(tier.clone()).or_default().extend(claims);
        };
        read_claims(ports, sale, Some(&mut *lease), take).await?;
        read_orders(ports, numbers, Some(lease), |order| owners.add(sale, &order)).await?;
        Ok(owners)
    }

    fn add(&mut self, sale: &Sale, order: &Order) {
        self.orders += 1;
        if order.state == OrderState::Paid {
            self.paid.insert(order.number);
        }
        let Some(at) = sale.inventory_of_all(order.lines.iter().map(|line| &line.tier)) else {
            return tracing::error!(order = %order.number, "its seats are in several inventories");
        };
        let kept = self.in_inventory.entry(at).or_default();
        if order.state.is_live() {
            *kept.bought.entry(order.user.clone()).or_default() += order.tickets();
        }
        if order.state == OrderState::Pending {
            kept.holds.insert(order.number, order.hold_record());
        }
    }
}

/// Reads every order that owns a seat of a sale, and keeps the lease meanwhile.
pub(crate) async fn each_owner<P: Ports>(
    ports: &P,
    sale: &Sale,
    lease: &mut Lease<'_, P>,
    take: impl FnMut(Order) + Send,
) -> Stored<()> {
    let mut numbers = BTreeSet::new();
    let owners = |_: &TierId, of_block: BlockClaims| {
        numbers.extend(of_block.claims.iter().map(|claim| claim.order));
    };
    read_claims(ports, sale, Some(&mut *lease), owners).await?;
    read_orders(ports, numbers, Some(lease), take).await
}

/// Reads the claims of every block of a sale, many blocks at a time. A loader keeps its `lease`
/// meanwhile.
async fn read_claims<P: Ports>(
    ports: &P,
    sale: &Sale,
    lease: Option<&mut Lease<'_, P>>,
    mut take: impl FnMut(&TierId, BlockClaims) + Send,
) -> Stored<()> {
    let blocks: Vec<(&TierId, u32)> = sale.tiers().iter().flat_map(blocks_of).collect();
    let mut pages = Pages { left: blocks, repeated: 0, at_once: BLOCKS_AT_ONCE };
    let read = |(tier, block)| async move {
        let claims = ports.orders().block_claims(sale.id(), tier, block).await;
        ((tier, block), claims)
    };
    pages.read(read, lease, |(tier, _), claims| take(tier, claims)).await
}

/// Reads orders, many at a time. A loader keeps its `lease` meanwhile.
async fn read_orders<P: Ports>(
    ports: &P,
    numbers: BTreeSet<OrderNumber>,
    lease: Option<&mut Lease<'_, P>>,
    mut take: impl FnMut(Order) + Send,
) -> Stored<()> {
    let numbers: Vec<OrderNumber> = numbers.into_iter().collect();
    let requests: Vec<&[OrderNumber]> = numbers.chunks(ORDERS_A_REQUEST).collect();
    let read = |some| async move { (some, ports.orders().get_many(some).await) };
    let mut pages = Pages { left: requests, repeated: 0, at_once: ORDER_REQUESTS_AT_ONCE };
    pages.read(read, lease, |_, found| found.into_iter().for_each(&mut take)).await
}

/// Pages that are still to be read.
struct Pages<T> {
    left: Vec<T>,
    /// Reads that a store has refused so far.
    repeated: usize,
    at_once: usize,
}

impl<T: Copy + Send> Pages<T> {
    /// Reads every page. What a store refuses is asked for again after the others, up to
    /// [`MAX_REPEATED_READS`] times in all. Between any two pages the lease is kept.
    async fn read<P: Ports, R: Send, F: Future<Output = (T, Stored<R>)> + Send>(
        &mut self,
        read: impl Fn(T) -> F + Send,
        mut lease: Option<&mut Lease<'_, P>>,
        mut take: impl FnMut(T, R) + Send,
    ) -> Stored<()> {
        while !self.left.is_empty() {
            // Futures first and a stream of them then: the compiler cannot follow a closure in a stream.
            let reads: Vec<F> = self.left.drain(..).map(&read).collect();
            let mut pages = stream::iter(reads).buffered(self.at_once);
            while let Some((page, outcome)) = pages.next().await {
                match outcome {
                    Ok(found) => take(page, found),
                    Err(error) if error.retryable() && self.repeated < MAX_REPEATED_READS => {
                        self.repeated += 1;
                        self.left.push(page);
                    }
                    Err(error) => return Err(error),
                }
                if let Some(lease) = &mut lease {
                    lease.keep().await?;
                }
            }
        }
        Ok(())
    }
}

/// The blocks of a tier in which anything is for sale.
pub fn blocks_of(tier: &Tier) -> impl Iterator<Item = (&TierId, u32)> {
    let blocks = (0..).zip(tier.layout.initial().chunks(BLOCK_BYTES));
    let with_seats = blocks.filter(|(_, places)| places.iter().any(|byte| *byte != 0xff));
    with_seats.map(move |(block, _)| (&tier.tier, block))
}

impl Owners {
    /// The load of each inventory of the sale, in the order of [`Sale::inventories`].
    fn into_loads(self, sale: &Sale, epoch: &Epoch) -> Vec<Load> {
        let Self { claims, orders: _, paid, mut in_inventory } = self;
        let grid = |tier: &Tier| {
            let legs = usize::from(sale.leg_count());
            let initial = tier.layout.initial();
            let mut grid = TierGrid {
                tier: tier.tier.clone(),
                row_bytes: tier.layout.row_bytes(),
                middles: tier.layout.middles(),
                taken: vec![initial.to_vec(); legs],
                sold: vec![vec![0; initial.len()]; legs],
                freed: Freed::default(),
            };
            for claim in claims.get(&tier.tier).into_iter().flatten() {
                grid.claim(claim.leg, claim.seat, paid.contains(&claim.order));
            }
            grid
        };
        let load = |inventory: InventoryId| {
            let InInventory { holds, bought } = in_inventory.remove(&inventory).unwrap_or_default();
            let tiers = sale.tiers_in(&inventory).map(grid).collect();
            let epoch = epoch.clone();
            Load { inventory, terms: terms(sale), expected: None, epoch, tiers, holds, bought }
        };
        sale.inventories().into_iter().map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::basics::ids::{RequestFingerprint, Seat};
    use crate::domain::inventory::choice::{Choice, Together};
    use crate::domain::inventory::{Hold, HoldReply, Inventory, Line};
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

    /// Names of the seats that parties of some sizes get, one after the other.
    fn best_of(tier: serde_json::Value, parties: &[u16]) -> Vec<String> {
        let file = json!({
            "sale": "s", "title": "Best", "currency": "EUR",
            "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z",
            "limit_per_buyer": 10, "pay_window_seconds": 900, "tiers": [tier]
        });
        let sale = Sale::new(serde_json::from_value(file).unwrap()).unwrap();
        let epoch = Epoch::new("e1").unwrap();
        let mut inventory = Inventory::default();
        for load in Owners::default().into_loads(&sale, &epoch) {
            assert_eq!(inventory.load(&load), LoadReply::Loaded);
        }
        let tier = &sale.tiers()[0];
        let party = |(order, count): (u64, &u16)| {
            let choice = Choice::Best { count: *count, together: Together::Required };
            let reply = inventory.hold(&Hold {
                inventory: sale.inventory_of(&tier.tier),
                epoch: epoch.clone(),
                order: order.to_string().parse().unwrap(),
                user: UserId::new(format!("u{order}")).unwrap(),
                fingerprint: RequestFingerprint::new("00000000000000aa").unwrap(),
                now: sale.file().opens_at,
                deadline: sale.file().closes_at,
                replaced: Tickets::NONE,
                lines: vec![Line { tier: tier.tier.clone(), legs: sale.whole(), choice }],
            });
            let HoldReply::Held { record, .. } = reply else { panic!("{reply:?}") };
            let seats = record.lines[0].seats.iter();
            let names: Vec<_> =
                seats.map(|seat| tier.layout.name(*seat).unwrap().to_string()).collect();
            names.join("+")
        };
        (1..).zip(parties).map(party).collect()
    }

    #[test]
    fn the_first_buyers_of_an_empty_house_get_the_middle_of_its_first_row() {
        let rows = json!([{ "row": "C", "to": "E", "seats": { "prefix": null, "first": 1, "count": 10 } }]);
        let tier = json!({ "tier": "a", "name": "A", "price_minor": 1,
            "sections": [{ "section": "S", "rows": rows }] });
        let seats = best_of(tier, &[2, 2, 2, 2, 2, 2]);
        assert_eq!(
            seats,
            [
                "S-C-5+S-C-6",
                "S-C-3+S-C-4",
                "S-C-7+S-C-8",
                "S-C-1+S-C-2",
                "S-C-9+S-C-10",
                "S-D-5+S-D-6"
            ]
        );
    }
}
