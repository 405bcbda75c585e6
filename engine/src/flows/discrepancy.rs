//! Discrepancies: every difference that reconcile finds, each with the state in both stores, the reason why it can
//! occur, and its repair.
//!
//! Finding only reads. A dry run prints the same list that a real run repairs, so the explanation matches the repair.
//! Each repair checks, where it matters with a compare-and-set, that its discrepancy is still there: the stores change
//! while they are read.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;

use crate::domain::basics::ids::{Epoch, InventoryId, Leg, SaleId, Seat, TierId, UserId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::inventory::{
    HeldLine, HoldRecord, Recount, Repair, Restore, SeatLeg, SeatsSold, Terms, TierGrid,
    freed_block_of,
};
use crate::domain::order::order_refund::RefundKey;
use crate::domain::order::{Order, OrderLine, OrderState, PaymentKey};
use crate::domain::sale::{Sale, Tier};
use crate::flows::load::Owned;
use crate::ports::{Claim, Orders, Ports, Published, Seats, Stored, block_of};

/// Most seats that an explanation names; of more it gives the number.
const SEATS_NAMED: usize = 8;

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Discrepancy {
    /// Redis has no load of the sale that the catalogue names.
    NotLoaded {
        sale: SaleId,
        /// The epoch in Redis, if it has a load.
        redis: Option<Epoch>,
        /// The epoch that the catalogue names, if it names one.
        catalogue: Option<Epoch>,
    },
    /// Redis has other terms than the catalogue.
    Terms {
        sale: SaleId,
        /// The terms in Redis.
        redis: Terms,
        /// The terms in the catalogue.
        catalogue: Terms,
    },
    /// A pending order past its deadline.
    Overdue(Box<Order>, HoldLookup),
    /// A paid order that is not counted in its sale's statistics.
    Uncounted(Box<Order>, HoldLookup),
    /// An order that is not pending, with a payment that is open at its provider, or was given up and is to be asked about
    /// again.
    Unclosed(Box<Order>),
    /// A refund of a whole payment of which nothing was heard in time.
    Refund(OrderNumber, PaymentKey),
    /// A refund of an order of which nothing was heard in time.
    OrderRefund(RefundKey),
    /// A hold past its deadline, with what DynamoDB has under its number.
    HoldOverdue(InventoryId, OrderNumber, Option<Box<Order>>),
    /// A hold in an inventory that is not what its order says.
    HoldDiffers(Box<Order>, InventoryId, HoldRecord),
    /// A pending order whose hold Redis has forgotten.
    Forgotten(Box<Order>, Restore),
    /// A pending order whose hold is there and of whose seats some are free.
    HeldAndFree(Box<Order>, Restore),
    /// A paid order of whose seats Redis does not have all as sold.
    NotSold(Box<Order>),
    /// Seat-legs that are taken though no hold names them and nobody claims them.
    Leaked(Repair),
    /// A buyer of an order with refunded tickets of whom Redis has more tickets than are theirs.
    Overcounted(Box<Order>, Recount),
}

/// What Redis holds under an order's number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HoldLookup {
    /// Redis was not asked: the repair reads the hold itself.
    LeftToTheRepair,
    /// This hold, or none.
    Hold(Option<HoldRecord>),
    /// Redis did not answer, for this reason.
    Failed(String),
}

impl HoldLookup {
    fn text(&self) -> String {
        match self {
            Self::LeftToTheRepair => "asked by the repair".to_owned(),
            Self::Hold(None) => "no hold".to_owned(),
            Self::Hold(Some(record)) => {
                format!("holds {} until {}", lines(&record.lines), record.deadline)
            }
            Self::Failed(why) => format!("does not answer: {why}"),
        }
    }
}

/// A discrepancy in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Its kind, in kebab case.
    pub kind: &'static str,
    /// The sale, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sale: Option<SaleId>,
    /// The order, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderNumber>,
    /// State in Redis, in words.
    pub redis: String,
    /// State in DynamoDB, in words.
    pub dynamodb: String,
    /// Explanation of how it can occur.
    pub why: &'static str,
    /// The repair, in words.
    pub repair: &'static str,
}

impl Discrepancy {
    /// The order that it is about, if it is about one.
    #[must_use]
    pub fn order(&self) -> Option<OrderNumber> {
        match self {
            Self::NotLoaded { .. } | Self::Terms { .. } | Self::Leaked(_) => None,
            Self::Overdue(order, _)
            | Self::Uncounted(order, _)
            | Self::Unclosed(order)
            | Self::HoldDiffers(order, ..)
            | Self::Forgotten(order, _)
            | Self::HeldAndFree(order, _)
            | Self::NotSold(order)
            | Self::Overcounted(order, _) => Some(order.number),
            Self::Refund(order, _) | Self::HoldOverdue(_, order, _) => Some(*order),
            Self::OrderRefund(key) => Some(key.order),
        }
    }

    /// The sale that it is about; a refund names only its order.
    fn sale(&self) -> Option<&SaleId> {
        match self {
            Self::NotLoaded { sale, .. } | Self::Terms { sale, .. } => Some(sale),
            Self::HoldOverdue(at, _, _) => Some(at.sale()),
            Self::Overdue(order, _)
            | Self::Uncounted(order, _)
            | Self::Unclosed(order)
            | Self::HoldDiffers(order, ..)
            | Self::Forgotten(order, _)
            | Self::HeldAndFree(order, _)
            | Self::NotSold(order)
            | Self::Overcounted(order, _) => Some(&order.sale),
            Self::Leaked(repair) => Some(repair.inventory.sale()),
            Self::Refund(..) | Self::OrderRefund(_) => None,
        }
    }

    /// The discrepancy in words.
    #[must_use]
    pub fn explain(&self) -> Explanation {
        let (kind, why, repair) = self.cause();
        Explanation {
            kind,
            sale: self.sale().cloned(),
            order: self.order(),
            redis: self.redis(),
            dynamodb: self.dynamodb(),
            why,
            repair,
        }
    }

    /// Its kind, why it can be, and what is done about it.
    fn cause(&self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::NotLoaded { .. } => (
                "not-loaded",
                "Redis has lost the sale, or a load was cut off before it was named",
                "the sale is loaded from the claims; until then it does not sell",
            ),
            Self::Terms { .. } => (
                "terms",
                "a publication was cut off, or Redis has forgotten it",
                "Redis is told the terms of the catalogue",
            ),
            Self::Overdue(..) => (
                "overdue",
                "its expiry message was lost, is late, or failed",
                "the order expires, unless it was paid, and its seats come back",
            ),
            Self::Uncounted(..) => (
                "uncounted",
                "its sync message was lost, is late, or failed, or Redis could not be told",
                "its facts are settled, once; the seats of a paid one are sold in Redis",
            ),
            Self::Unclosed(_) => (
                "unclosed",
                "its close message was lost, is late, or failed; or its provider closed none in time",
                "what is open is closed at its provider, or given up and asked about for a week",
            ),
            Self::Refund(..) | Self::OrderRefund(_) => (
                "refund",
                "the request was lost, or its consumer failed, or the provider takes long",
                "the refund is requested again; its name is its idempotency key",
            ),
            Self::HoldOverdue(..) => (
                "hold-overdue",
                "the process died between hold and order, or its expiry message was lost",
                "the order ends; without one, a tombstone bars its late writer; then the seats \
                 come back",
            ),
            Self::HoldDiffers(..) => (
                "hold-differs",
                "the process died between DynamoDB and Redis, or Redis has forgotten the last step",
                "the hold is sold if the order is paid, and given back if it has ended or is of \
                 other seats",
            ),
            Self::Forgotten(..) => (
                "forgotten",
                "a failover has lost the hold, or the order was made while the sale was loaded",
                "the hold is written again, unless the order has ended meanwhile",
            ),
            Self::HeldAndFree(..) => (
                "held-and-free",
                "another hold of these seats, from when this one was forgotten, was given back",
                "what the hold names is taken again",
            ),
            Self::NotSold(_) => (
                "not-sold",
                "the process died after the payment was recorded, or Redis has forgotten it",
                "its seats are marked sold",
            ),
            Self::Leaked(_) => (
                "leaked",
                "a release was forgotten by a failover, or a hold's mark was",
                "they are freed, unless a seat of their block was freed meanwhile",
            ),
            Self::Overcounted(..) => (
                "overcounted",
                "the process died after a refund was made, or Redis has forgotten what followed it",
                "the buyer has as many tickets as are theirs, unless that changed meanwhile",
            ),
        }
    }

    /// State in Redis, in words.
    fn redis(&self) -> String {
        match self {
            Self::NotLoaded { redis, .. } => named("no epoch", redis.as_ref()),
            Self::Terms { redis, .. } => terms(redis),
            Self::Overdue(_, hold) | Self::Uncounted(_, hold) => hold.text(),
            Self::Refund(..) | Self::OrderRefund(_) | Self::Unclosed(_) => {
                "knows of no payments".to_owned()
            }
            Self::HoldOverdue(..) => "a hold past its deadline".to_owned(),
            Self::HoldDiffers(_, _, record) => format!("holds {}", lines(&record.lines)),
            Self::Forgotten(..) => "no hold".to_owned(),
            Self::HeldAndFree(..) => "its hold, but some of the seats are free".to_owned(),
            Self::NotSold(_) => "not all of its seats are sold".to_owned(),
            Self::Leaked(repair) => {
                let leaked = repair.leaked.iter().map(|(_, seat)| *seat);
                format!("tier {} has {} taken", repair.tier, seats(leaked))
            }
            Self::Overcounted(_, recount) => format!("its buyer has {} tickets", recount.seen),
        }
    }

    /// State in DynamoDB, in words.
    fn dynamodb(&self) -> String {
        match self {
            Self::NotLoaded { catalogue, .. } => named("no epoch yet", catalogue.as_ref()),
            Self::Terms { catalogue, .. } => terms(catalogue),
            Self::Overdue(order, _)
            | Self::Uncounted(order, _)
            | Self::Unclosed(order)
            | Self::HoldDiffers(order, ..)
            | Self::Forgotten(order, _)
            | Self::HeldAndFree(order, _)
            | Self::NotSold(order) => state(order),
            Self::Refund(_, payment) => format!(
                "payment {} {} goes back, and nothing was heard of it in time",
                payment.provider, payment.payment
            ),
            Self::OrderRefund(key) => {
                format!("refund {key} goes back, and nothing was heard of it in time")
            }
            Self::HoldOverdue(_, _, order) => {
                order.as_ref().map_or_else(|| "no order".to_owned(), |order| state(order))
            }
            Self::Leaked(_) => "nobody claims them".to_owned(),
            Self::Overcounted(_, recount) => {
                format!("{} are the buyer's, or held for orders under way", recount.tickets)
            }
        }
    }
}

fn named(none: &str, epoch: Option<&Epoch>) -> String {
    epoch.map_or_else(|| none.to_owned(), |epoch| format!("epoch {epoch}"))
}

fn terms(terms: &Terms) -> String {
    let Terms { state, opens_at, closes_at, limit, leg_count: _ } = terms;
    format!("{state:?}, {opens_at} to {closes_at}, {limit} a buyer").to_lowercase()
}

fn state(order: &Order) -> String {
    let owns = match order.lines.is_empty() {
        true => "nothing".to_owned(),
        false => lines(&order.held_lines()),
    };
    format!("{}, to be paid by {}, of {owns}", order.state.as_str(), order.payable_until())
}

fn lines(lines: &[HeldLine]) -> String {
    let line =
        |line: &HeldLine| format!("{} of tier {}", seats(line.seats.iter().copied()), line.tier);
    lines.iter().map(line).collect::<Vec<_>>().join(" and ")
}

/// Some seats by number, many by count.
fn seats(seats: impl Iterator<Item = Seat>) -> String {
    let distinct: BTreeSet<u32> = seats.map(|seat| seat.0).collect();
    if distinct.len() > SEATS_NAMED {
        return format!("{} seats", distinct.len());
    }
    let names: Vec<String> = distinct.iter().map(u32::to_string).collect();
    format!("seats {}", names.join(", "))
}

/// True if Redis has a seat-leg as it is of a paid order.
fn is_settled(grid: &TierGrid, leg: Leg, seat: Seat) -> bool {
    grid.is_sold(leg, seat) && grid.is_taken(leg, seat)
}

/// One sale in both stores.
pub(crate) struct SaleSnapshot {
    /// The bitmaps of each tier in Redis.
    grids: BTreeMap<TierId, TierGrid>,
    /// Every hold of the sale in Redis, by its inventory and number.
    holds: BTreeMap<(InventoryId, OrderNumber), HoldRecord>,
    /// Every claim in DynamoDB, and every order that can differ: an order with a hold, or with a claim that Redis does
    /// not have as sold.
    owned: Owned,
}

impl SaleSnapshot {
    /// Reads both stores. The order of reading matters: first the tiers in Redis (each tier's `freed` counters before
    /// its bitmaps), then the holds, once for all tiers, then the claims in DynamoDB, then the orders. If a bit was
    /// read as held, its hold is among the holds that were read, unless the hold was given back, which raises a
    /// counter, or sold, which the order shows. A seat-leg that was read as taken, that no hold covers and that no
    /// order claims now, cannot belong to anyone since, unless seats of its block were freed meanwhile: `repair` checks
    /// that. An order that was read as pending and had no hold before is forgotten, unless it ended meanwhile:
    /// `restore` checks that.
    ///
    /// An order is not read if it has no hold, if Redis has every seat-leg that it claims as sold and taken, and if
    /// none of its seats was returned once: it can have no discrepancy. Proof: take a claim of such an order on a
    /// seat-leg that Redis has as sold. Redis marks a seat-leg sold only for the paid order that claims it (`sell` is
    /// given an order that was read as paid, `load` marks the seat-legs that a paid order claims). A paid order gives a
    /// claim up only by a refund, whose transaction writes into the seat's item that the seat was returned. This seat
    /// was not returned, so the claim is that order's for good. A Redis that has forgotten writes is an older Redis,
    /// and what that one has as sold was sold then, and is now. So the order was paid before the bitmap was read, and
    /// before the first claim: all of its seat-legs were read as claims, and `is_settled` was asked of each. A paid
    /// order without a hold can only have the discrepancy [`Discrepancy::NotSold`], which needs a seat-leg that is not
    /// settled. Discrepancies of holds and of leaked seats need no owner: an order with a hold is read whatever it
    /// claims, and a claim counts whoever owns it.
    pub(crate) async fn read(ports: &impl Ports, sale: &Sale) -> Stored<Self> {
        let mut grids = BTreeMap::new();
        for tier in sale.tiers() {
            let inventory = sale.inventory_of(&tier.tier);
            let grid = ports.seats().grid(&inventory, &tier.tier, sale.leg_count()).await?;
            grids.insert(tier.tier.clone(), grid);
        }
        let mut holds = BTreeMap::new();
        for inventory in sale.inventories() {
            let found = ports.seats().holds(&inventory).await?;
            let keyed = |(order, record)| ((inventory.clone(), order), record);
            holds.extend(found.into_iter().map(keyed));
        }
        let held = holds.keys().map(|(_, order)| *order).collect();
        let differs = |tier: &TierId, claim: &Claim| {
            let grid: Option<&TierGrid> = grids.get(tier);
            !grid.is_some_and(|grid| is_settled(grid, claim.leg, claim.seat))
        };
        let owned = Owned::read(ports, sale, differs, held).await?;
        Ok(Self { grids, holds, owned })
    }

    /// Every difference of Redis from DynamoDB: first the holds to release, then the forgotten orders, then the
    /// seat-legs that are taken for nobody.
    pub(crate) fn discrepancies(&self, published: &Published) -> Vec<Discrepancy> {
        let mut found: Vec<Discrepancy> = self.holds_that_differ().collect();
        found.extend(self.forgotten(published));
        let tiers = published.sale.tiers().iter();
        found.extend(tiers.flat_map(|tier| {
            let seats = (0..tier.layout.places()).map(Seat);
            self.leaked(published, tier, seats.filter(|seat| tier.layout.sells(*seat)))
        }));
        found
    }

    /// Number of free seat-legs.
    pub(crate) fn available(&self) -> u64 {
        let bitmaps = self.grids.values().flat_map(|grid| &grid.taken).flatten();
        bitmaps.map(|byte| u64::from(byte.count_zeros())).sum()
    }

    /// Number of tickets that orders own: each seat that an order claims is one, on whatever legs.
    pub(crate) fn tickets(&self) -> u64 {
        let of_tier = |claims: &Vec<Claim>| {
            let tickets: HashSet<(Seat, OrderNumber)> =
                claims.iter().map(|claim| (claim.seat, claim.order)).collect();
            u64::try_from(tickets.len()).unwrap_or(u64::MAX)
        };
        self.owned.claims.values().map(of_tier).sum()
    }

    /// The order that claimed a seat-leg.
    pub(crate) fn owner(&self, at: &SeatLeg) -> Option<OrderNumber> {
        let mut claims = self.owned.claims.get(&at.tier).into_iter().flatten();
        claims.find(|claim| (claim.leg, claim.seat) == (at.leg, at.seat)).map(|claim| claim.order)
    }

    /// Holds that do not match their order. A hold without an order is a reservation under way, or waits for its
    /// deadline.
    fn holds_that_differ(&self) -> impl Iterator<Item = Discrepancy> {
        self.holds.iter().filter_map(|((at, number), record)| {
            let order = self.owned.orders.get(number)?;
            let agrees = order.state == OrderState::Pending && record.lines == order.held_lines();
            let order = || Box::new(order.clone());
            (!agrees).then(|| Discrepancy::HoldDiffers(order(), at.clone(), record.clone()))
        })
    }

    /// Orders with seats that Redis has forgotten, or has as free: another hold of the same seats, made while theirs
    /// was forgotten, may have freed them.
    fn forgotten(&self, published: &Published) -> impl Iterator<Item = Discrepancy> {
        self.owned.orders.values().filter_map(move |order| {
            let lines = order.lines.iter().map(|line| &line.tier);
            let at = published.sale.inventory_of_all(lines);
            let is_held = at.is_some_and(|at| self.holds.contains_key(&(at, order.number)));
            let restore = || self.restore(published, order);
            let boxed = || Box::new(order.clone());
            match (order.state, is_held) {
                (OrderState::Pending, false) => Some(Discrepancy::Forgotten(boxed(), restore()?)),
                // Seats that were held between reading bitmaps and holds seem free too: no harm.
                (OrderState::Pending, true) if !self.has_taken(&order.held_lines()) => {
                    Some(Discrepancy::HeldAndFree(boxed(), restore()?))
                }
                (OrderState::Paid, false) if !self.has_sold(&order.held_lines()) => {
                    Some(Discrepancy::NotSold(boxed()))
                }
                (OrderState::Pending | OrderState::Paid, _)
                | (
                    OrderState::Cancelled
                    | OrderState::Expired
                    | OrderState::RefundDue
                    | OrderState::Refunded,
                    _,
                ) => None,
            }
        })
    }

    /// The repair that writes an order's hold; `None` before the first load, or if the sale lacks one of its tiers.
    fn restore(&self, published: &Published, order: &Order) -> Option<Restore> {
        let record = order.hold_record();
        let freed = |line: &HeldLine| {
            let grid = self.grids.get(&line.tier)?;
            Some(grid.freed.of(line.seats.iter().copied()))
        };
        let freed = record.lines.iter().map(freed).collect::<Option<Vec<Vec<u32>>>>()?;
        let lines = record.lines.iter().map(|line| &line.tier);
        let inventory = published.sale.inventory_of_all(lines)?;
        let epoch = published.epoch.clone()?;
        let seat_legs = record.lines.iter().flat_map(HeldLine::seat_legs);
        let sold =
            SeatsSold::of(seat_legs.map(|at| {
                self.grids.get(&at.tier).is_some_and(|grid| grid.is_sold(at.leg, at.seat))
            }));
        Some(Restore { inventory, epoch, order: order.number, record, freed, sold })
    }

    /// True if Redis has every seat-leg of the lines as taken.
    fn has_taken(&self, lines: &[HeldLine]) -> bool {
        lines.iter().flat_map(HeldLine::seat_legs).all(|at| {
            let grid = self.grids.get(&at.tier);
            grid.is_some_and(|grid| grid.is_taken(at.leg, at.seat))
        })
    }

    /// True if Redis has every seat-leg of the lines as sold.
    fn has_sold(&self, lines: &[HeldLine]) -> bool {
        lines.iter().flat_map(HeldLine::seat_legs).all(|at| {
            let grid = self.grids.get(&at.tier);
            grid.is_some_and(|grid| is_settled(grid, at.leg, at.seat))
        })
    }

    /// Buyers of orders with refunded tickets for whom Redis may count too many, by inventory, each with the order.
    /// `bought` has the counts in Redis.
    pub(crate) fn returners(&self, published: &Published) -> BTreeMap<InventoryId, Vec<&Order>> {
        let mut found: BTreeMap<InventoryId, Vec<&Order>> = BTreeMap::new();
        let mut seen: HashSet<(InventoryId, &UserId)> = HashSet::new();
        for order in self.owned.returned.iter().filter_map(|number| self.owned.orders.get(number)) {
            let tiers = order.lines.iter().map(|line| &line.tier);
            if let Some(at) = published.sale.inventory_of_all(tiers)
                && seen.insert((at.clone(), &order.user))
            {
                found.entry(at).or_default().push(order);
            }
        }
        found
    }

    /// The tickets of each buyer in the orders that were read, held tickets included: if Redis counts no more, the
    /// count is not too high.
    pub(crate) fn known_tickets(&self, at: &InventoryId) -> HashMap<&UserId, Tickets> {
        let orders = self.owned.orders.values().filter(|order| {
            let is_here = |line: &OrderLine| at.tier().is_none_or(|tier| line.tier == *tier);
            order.state.is_live()
                && order.lines.iter().all(is_here)
                && !self.holds.contains_key(&(at.clone(), order.number))
        });
        let holds = self.holds.iter().filter(|((inventory, _), _)| inventory == at);
        let held = holds.map(|(_, record)| (&record.user, record.tickets()));
        let mut known: HashMap<&UserId, Tickets> = HashMap::new();
        for (user, tickets) in orders.map(|order| (&order.user, order.tickets())).chain(held) {
            *known.entry(user).or_default() += tickets;
        }
        known
    }

    /// Reads the disturbed seat-legs that seemed leaked once more, and nothing else: that takes a moment, in which
    /// seats of the same blocks are seldom freed. The order of reading is that of [`SaleSnapshot::read`], for the same
    /// reasons. Returns the seat-legs that are still leaked.
    pub(crate) async fn read_leaked(
        ports: &impl Ports,
        published: &Published,
        disturbed: &Repair,
    ) -> Stored<Vec<Discrepancy>> {
        let (sale, id) = (&published.sale, &disturbed.tier);
        let Some(tier) = sale.tier(id) else { return Ok(Vec::new()) };
        let inventory = &disturbed.inventory;
        let grid = ports.seats().grid(inventory, id, sale.leg_count()).await?;
        let holds = ports.seats().holds(inventory).await?;
        let holds = holds.into_iter().map(|(order, hold)| ((inventory.clone(), order), hold));
        let holds = holds.collect();
        let seats: BTreeSet<Seat> = disturbed.leaked.iter().map(|(_, seat)| *seat).collect();
        let blocks: BTreeSet<u32> = seats.iter().map(|seat| block_of(*seat)).collect();
        let mut claims = Vec::new();
        for block in blocks {
            claims.extend(ports.orders().claims(sale.id(), id, block).await?);
        }
        let grids = BTreeMap::from([(id.clone(), grid)]);
        let claims = BTreeMap::from([(id.clone(), claims)]);
        let owned = Owned { claims, ..Owned::default() };
        Ok(Self { grids, holds, owned }.leaked(published, tier, seats.into_iter()))
    }

    /// The seat-legs among some seats of a tier that are taken though no hold covers them and no order claims them.
    /// Each block is a discrepancy of its own: a disturbed block does not hold up the others.
    fn leaked(
        &self,
        published: &Published,
        tier: &Tier,
        seats: impl Iterator<Item = Seat>,
    ) -> Vec<Discrepancy> {
        let (Some(grid), Some(epoch)) = (self.grids.get(&tier.tier), &published.epoch) else {
            return Vec::new();
        };
        let claims = self.owned.claims.get(&tier.tier).into_iter().flatten();
        let mut owned: HashSet<(Leg, Seat)> = claims.map(|claim| (claim.leg, claim.seat)).collect();
        let held_lines = self.holds.values().flat_map(|record| &record.lines);
        for line in held_lines.filter(|line| line.tier == tier.tier) {
            owned.extend(line.seat_legs().map(|at| (at.leg, at.seat)));
        }
        let legs = published.sale.whole();
        let mut by_block: BTreeMap<u32, Vec<(Leg, Seat)>> = BTreeMap::new();
        for at in seats
            .flat_map(|seat| legs.iter().map(move |leg| (leg, seat)))
            .filter(|(leg, seat)| grid.is_taken(*leg, *seat) || grid.is_sold(*leg, *seat))
            .filter(|at| !owned.contains(at))
        {
            by_block.entry(freed_block_of(at.1)).or_default().push(at);
        }
        let repair = |leaked: Vec<(Leg, Seat)>| {
            let freed = grid.freed.of(leaked.iter().map(|(_, seat)| *seat));
            let inventory = published.sale.inventory_of(&tier.tier);
            let (epoch, tier) = (epoch.clone(), tier.tier.clone());
            Discrepancy::Leaked(Repair { inventory, epoch, tier, freed, leaked })
        };
        by_block.into_values().map(repair).collect()
    }
}
