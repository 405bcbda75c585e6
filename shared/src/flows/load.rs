//! Load: fill Redis with a sale, from DynamoDB alone. The first load and the repair after a total
//! loss are the same.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::domain::ids::{Epoch, SaleId, TierId, UserId};
use crate::domain::inventory::{HoldRecord, Load, LoadReply, Terms, TierGrid};
use crate::domain::number::OrderNumber;
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::{Sale, Tier};
use crate::domain::time::Timestamp;
use crate::ports::{
    Catalogue, ChangeReply, Claim, Freshness, Orders, Ports, Seats, StoreError, Stored,
};

/// How long one loader may take before another may begin, in milliseconds.
const LEASE_MS: i64 = 60_000;
/// How many rows are read at a time.
const ROWS_AT_ONCE: usize = 32;

/// What a load came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loaded {
    /// Redis had the sale already, in the catalogue's epoch.
    Already,
    /// The sale sells from now on; so many orders were brought back.
    Now {
        /// Orders that own seats.
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
        limit: file.limit_per_buyer,
        legs: sale.legs(),
    }
}

/// Loads a sale unless Redis has it. `epoch` is the name of the new load and must be new.
///
/// # Errors
/// Fails if a store does. The lease then runs out and the next caller begins again.
pub async fn load(
    ports: &impl Ports,
    id: &SaleId,
    epoch: &Epoch,
    now: Timestamp,
) -> Stored<Loaded> {
    let published = ports.catalogue().sale(id, Freshness::Fresh).await?;
    let missing = || StoreError::Contract(format!("sale {id} is not in the catalogue"));
    let published = published.ok_or_else(missing)?;
    let current = ports.seats().epoch(id).await?;
    if current.is_some() && current == published.epoch {
        return Ok(Loaded::Already);
    }
    let until = now.plus_ms(LEASE_MS);
    if ports.catalogue().lease(id, now, until).await? == ChangeReply::Changed {
        return Ok(Loaded::Busy);
    }
    let owned = owned_seats(ports, &published.sale, BTreeSet::new()).await?;
    let orders = owned.orders.len();
    let command = owned.into_load(&published.sale, current, epoch.clone());
    match ports.seats().load(&command).await? {
        LoadReply::Stale(_) => Ok(Loaded::Busy),
        LoadReply::Loaded | LoadReply::Updated => {
            match ports.catalogue().loaded(id, epoch, until).await? {
                ChangeReply::Done => Ok(Loaded::Now { orders }),
                ChangeReply::Changed => Ok(Loaded::Busy),
            }
        }
    }
}

/// Every claim of a sale, and the orders that own them.
pub(crate) struct Owned {
    /// Claims, tier by tier.
    pub claims: BTreeMap<TierId, Vec<Claim>>,
    /// The owners, and the orders asked for besides.
    pub orders: BTreeMap<OrderNumber, Order>,
}

/// Reads the claims of every row of a sale, many rows at a time, and then their orders and those
/// `besides`.
pub(crate) async fn owned_seats(
    ports: &impl Ports,
    sale: &Sale,
    besides: BTreeSet<OrderNumber>,
) -> Stored<Owned> {
    let mut claims = BTreeMap::new();
    for tier in sale.tiers() {
        claims.insert(tier.tier.clone(), claims_of(ports, sale.id(), tier).await?);
    }
    let mut numbers = besides;
    numbers.extend(claims.values().flatten().map(|claim| claim.order));
    let numbers: Vec<OrderNumber> = numbers.into_iter().collect();
    let orders = ports.orders().get_many(&numbers).await?;
    let orders = orders.into_iter().map(|order| (order.number, order)).collect();
    Ok(Owned { claims, orders })
}

/// Every claim in one tier.
async fn claims_of(ports: &impl Ports, sale: &SaleId, tier: &Tier) -> Stored<Vec<Claim>> {
    let rows = tier.layout.rows().iter().enumerate();
    let with_seats = rows.filter(|(_, row)| row.seats.iter().any(Option::is_some));
    let indexes: Vec<u32> = with_seats.map(|(index, _)| index as u32).collect();
    let row_bytes = tier.layout.row_bytes();
    let claims: Vec<Vec<Claim>> = stream::iter(indexes)
        .map(|row| ports.orders().claims(sale, &tier.tier, row, row_bytes))
        .buffered(ROWS_AT_ONCE)
        .try_collect()
        .await?;
    Ok(claims.into_iter().flatten().collect())
}

impl Owned {
    fn into_load(self, sale: &Sale, expected: Option<Epoch>, epoch: Epoch) -> Load {
        let mut holds: BTreeMap<OrderNumber, HoldRecord> = BTreeMap::new();
        let mut bought: BTreeMap<UserId, u16> = BTreeMap::new();
        for order in self.orders.values().filter(|order| order.state.is_live()) {
            *bought.entry(order.user.clone()).or_default() += order.tickets();
            if order.state == OrderState::Pending {
                holds.insert(order.number, order.hold_record());
            }
        }
        let grid = |tier: &Tier| {
            let legs = usize::from(sale.legs());
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
