//! Check in: record that a door let somebody in by a ticket.
//!
//! One transaction decides: it writes the first check-in of a ticket on the order, on condition that the ticket has
//! none. So of two doors one is first, whatever their clocks say; the other check-in is recorded as a duplicate. A scan
//! that is sent again is answered, and recorded once.

use std::collections::{BTreeMap, HashMap};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use crate::domain::basics::ids::SaleId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::order::{CheckIn, Order};
use crate::domain::ticket::{CheckInDecision, DoubleCheckIn, Serial, decide_check_in};
use crate::ports::{ChangeReply, Orders, Ports, StoreError, Stored};

/// Most attempts; an order that changed meanwhile is read again.
const ATTEMPTS: usize = 6;
/// Orders whose scans are recorded concurrently.
const AT_ONCE: usize = 8;

/// A code that a door has scanned, its signature verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scan {
    /// What the code stands for.
    pub serial: Serial,
    /// When and where it was scanned.
    pub check_in: CheckIn,
}

/// What became of a scan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is the ticket's check-in.
    Admitted,
    /// It was recorded before; the ticket's first check-in.
    Repeated(CheckIn),
    /// It is recorded; the ticket had let somebody in before, by this check-in.
    AlreadyAdmitted(CheckIn),
    /// The ticket was refunded, or the issue is an old one. Nothing is recorded.
    Revoked,
    /// There is no such ticket in the sale. Nothing is recorded.
    Unknown,
}

/// Records scans of a sale; the outcome of each, in the order in which they were given. Scans of one order are
/// recorded in that order too.
///
/// # Errors
/// Fails if a store does; sending all of them again records none twice.
pub async fn check_in(ports: &impl Ports, sale: &SaleId, scans: &[Scan]) -> Stored<Vec<Outcome>> {
    let mut by_order: BTreeMap<OrderNumber, Vec<(usize, &Scan)>> = BTreeMap::new();
    for (place, scan) in scans.iter().enumerate() {
        by_order.entry(scan.serial.order).or_default().push((place, scan));
    }
    let numbers: Vec<OrderNumber> = by_order.keys().copied().collect();
    let orders = ports.orders().get_many(&numbers).await?;
    let mut orders: HashMap<OrderNumber, Order> =
        orders.into_iter().map(|order| (order.number, order)).collect();
    let work = by_order
        .into_iter()
        .map(|(number, scans)| of_order(ports, sale, orders.remove(&number), scans));
    let work: Vec<_> = work.collect();
    let outcomes: Vec<Vec<(usize, Outcome)>> =
        stream::iter(work).buffer_unordered(AT_ONCE).try_collect().await?;
    let mut outcomes: Vec<(usize, Outcome)> = outcomes.into_iter().flatten().collect();
    outcomes.sort_by_key(|(place, _)| *place);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Records the scans of one order, one after the other.
async fn of_order(
    ports: &impl Ports,
    sale: &SaleId,
    mut order: Option<Order>,
    scans: Vec<(usize, &Scan)>,
) -> Stored<Vec<(usize, Outcome)>> {
    let mut outcomes = Vec::with_capacity(scans.len());
    for (place, scan) in scans {
        outcomes.push((place, one(ports, sale, &mut order, scan).await?));
    }
    Ok(outcomes)
}

/// Records one scan. `order` is its order as it was read, and is left as it is then.
async fn one(
    ports: &impl Ports,
    sale: &SaleId,
    order: &mut Option<Order>,
    scan: &Scan,
) -> Stored<Outcome> {
    for _ in 0..ATTEMPTS {
        let plan = match decide_check_in(order.as_ref(), sale, &scan.serial, &scan.check_in) {
            CheckInDecision::Admit(plan) => plan,
            CheckInDecision::Repeated(first) => return Ok(Outcome::Repeated(first)),
            CheckInDecision::Double(double) => return again(ports, double).await,
            CheckInDecision::Revoked => return Ok(Outcome::Revoked),
            CheckInDecision::Unknown => return Ok(Outcome::Unknown),
        };
        match ports.orders().check_in(&plan).await? {
            ChangeReply::Done => {
                *order = Some(plan.order);
                return Ok(Outcome::Admitted);
            }
            ChangeReply::Conflict => *order = ports.orders().get(scan.serial.order).await?,
        }
    }
    Err(StoreError::Unavailable(format!("order {} keeps changing", scan.serial.order)))
}

/// Records a check-in after the first.
async fn again(ports: &impl Ports, double: DoubleCheckIn) -> Stored<Outcome> {
    Ok(match ports.orders().check_in_again(&double).await? {
        ChangeReply::Done => Outcome::AlreadyAdmitted(double.first),
        ChangeReply::Conflict => Outcome::Repeated(double.first),
    })
}
