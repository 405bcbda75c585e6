//! Reserve: hold in Redis, then claim in DynamoDB; the admission's number names the attempt.

use futures_util::future::join;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{
    AttendeeId, InventoryId, RequestFingerprint, Seat, SeatName, TierId, UserId,
};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::tickets::Tickets;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::{
    Hold, HoldRecord, HoldReply, Mark, MarkReply, Release, ReleaseReply, SeatLeg,
};
use crate::domain::order::attempt::Attempts;
use crate::domain::order::attendee::{AttendeeHash, max_named};
use crate::domain::order::exchange::{Exchange, ExchangeRequest};
use crate::domain::order::fact::Facts;
use crate::domain::order::order_refund::RefundCounts;
use crate::domain::order::requested::{RequestedLine, fingerprint, order_lines, total_minor};
use crate::domain::order::{Order, OrderState};
use crate::domain::payment::exchange::ExchangeRefusal;
use crate::domain::sale::Sale;
use crate::flows::exchange;
use crate::flows::hold::align_record;
use crate::flows::load;
use crate::flows::pay::pay_at_once;
use crate::ports::{
    Catalogue, CreateReply, Freshness, Orders, Ports, Published, Queue, Seats, StoreError, Stored,
};

/// Most attempts; after a claim conflict other seats are chosen.
const ATTEMPTS: usize = 3;

/// A checked request, with the number that its admission carries.
#[derive(Debug, Clone)]
pub struct Reservation {
    pub published: Published,
    /// The number of the order to be.
    pub number: OrderNumber,
    /// The buyer, to whom the admission was given.
    pub user: UserId,
    pub lines: Vec<RequestedLine>,
    /// The tickets that they shall replace.
    pub exchange: Option<ExchangeRequest>,
}

impl Reservation {
    fn fingerprint(&self) -> RequestFingerprint {
        fingerprint(&self.lines, self.exchange.as_ref())
    }
}

/// A reservation that succeeded, now or at an earlier attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reserved {
    pub order: Order,
    /// Tickets that the buyer may still have, where that is known.
    pub allowance: Option<Tickets>,
}

/// Why there is no order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The sale is being loaded again after Redis lost it.
    #[error("the sale is being prepared; try again")]
    NotLoaded,
    /// The sale takes no reservations now.
    #[error("the sale takes no reservations now")]
    SaleClosed,
    /// The train has left where one of the journeys begins.
    #[error("the train left at {0}")]
    Departed(Timestamp),
    /// The sale is archived: it sells nothing any more.
    #[error("the sale is archived: it sells nothing any more")]
    SaleArchived,
    /// The order has seats of several tiers, and the sale keeps its tiers apart.
    #[error("an order of this sale has seats of one tier only")]
    OneTierOnly,
    /// The order has more tickets than the buyer's limit allows.
    #[error("the limit allows {remaining} more tickets")]
    LimitReached {
        /// Tickets that the buyer may still have.
        remaining: Tickets,
    },
    /// These chosen seats belong to others.
    #[error("seats are taken in tier {0}")]
    SeatTaken(TierId, Vec<SeatName>),
    /// Too few seats are left in this tier, or the pattern fits nowhere in it.
    #[error("tier {0} has nothing left that fits")]
    SoldOut(TierId),
    /// Seats are left in this tier, but not enough side by side.
    #[error("tier {0} has no such number of seats side by side")]
    NoAdjacent(TierId),
    /// The admission was used for something else: for this order of the same buyer, if it is known.
    /// It may have been made by a copy of an earlier request that was given up by its sender and still
    /// under way.
    #[error("the admission was used for another request{}", describe_made_order(.0.as_ref()))]
    TokenReused(Option<(OrderNumber, OrderState)>),
    /// The admission's order was not paid in time.
    #[error("the order of this admission has expired")]
    HoldExpired,
    /// The admission's order has ended in another way.
    #[error("the order of this admission is {}", .0.as_str())]
    Resolved(OrderState),
    /// Another ticket of the sale names this attendee.
    #[error("an attendee has a ticket of this sale already")]
    AttendeeTaken(AttendeeId),
    /// The buyer has named too many people in requests for this sale.
    #[error("the limit allows a buyer to name {max_named} people in this sale")]
    AttendeeLimit {
        /// Most people whom the buyer may name in the sale, in all requests together.
        max_named: usize,
    },
    /// The number belongs to another buyer's order: one chance in 500,000 a second and gene.
    #[error("the admission's number is in use")]
    NumberClash,
    /// Other buyers were quicker each time.
    #[error("other buyers were quicker; try again")]
    Contended,
    /// The tickets that it was to replace cannot be given for these.
    #[error(transparent)]
    Exchange(ExchangeRefusal),
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn describe_made_order(order: Option<&(OrderNumber, OrderState)>) -> String {
    let text = |(number, state): &(OrderNumber, OrderState)| {
        format!(": it has made your order {number}, which is {}", state.as_str())
    };
    order.map_or_else(String::new, text)
}

/// Makes the order, or finds the order that an earlier attempt with this admission made.
///
/// # Errors
/// Returns a [`Refusal`]. After one of `Store(Unknown)` the same request finds out what happened.
pub async fn reserve(
    ports: &impl Ports,
    reservation: &Reservation,
    now: Timestamp,
) -> Result<Reserved, Refusal> {
    let fingerprint = reservation.fingerprint();
    let sale = &reservation.published.sale;
    let tiers = reservation.lines.iter().map(|requested| &requested.line.tier);
    let Some(at) = sale.inventory_of_all(tiers) else {
        return existing_or(ports, reservation, &fingerprint, Refusal::OneTierOnly).await;
    };
    let departs = departure(sale, &reservation.lines);
    if let Some(departed) = departs.filter(|departs| *departs <= now)
        && stands(Guard::Departure)
    {
        return existing_or(ports, reservation, &fingerprint, Refusal::Departed(departed)).await;
    }
    let exchange = match &reservation.exchange {
        None => None,
        // Boxed: few orders replace others.
        Some(request) => match Box::pin(begin_exchange(ports, reservation, request, now)).await? {
            Ok(exchange) => Some(exchange),
            Err(refusal) => return existing_or(ports, reservation, &fingerprint, refusal).await,
        },
    };
    let exchange = exchange.as_ref();
    for _ in 0..ATTEMPTS {
        let reply = hold_seats(ports, reservation, &at, &fingerprint, exchange, now).await?;
        let reply = reply.map_err(|Over| Refusal::SaleArchived);
        let (record, allowance) = match reply.and_then(|reply| held_or_refusal(sale, reply)) {
            Ok(held) => held,
            Err(refusal) => {
                let refusal = correct_remaining(ports, reservation, refusal).await?;
                return existing_or(ports, reservation, &fingerprint, refusal).await;
            }
        };
        match claim(ports, reservation, &at, &record, exchange, now).await? {
            Claimed::Created(order) => {
                return finish_reservation(ports, *order, allowance, now).await;
            }
            Claimed::Exists(existing) => {
                align_record(ports, &existing, &at, &record).await?;
                let Reserved { order, allowance } =
                    answer_from_order(*existing, reservation, &fingerprint, allowance)?;
                return finish_reservation(ports, order, allowance, now).await;
            }
            Claimed::SeatsTaken(lost) => {
                give_up_lost(ports, reservation, &at, record, &lost).await?;
                if let Some(refusal) = refuse_lost_choice(reservation, &lost) {
                    return Err(refusal);
                }
            }
            Claimed::Refused(refusal) => {
                // A concurrent duplicate of this request may have made the order meanwhile, from this very hold. A
                // duplicate that makes the order just after this read loses its hold; the sweeper writes the hold
                // again.
                if let Some(order) = ports.orders().get(reservation.number).await? {
                    align_record(ports, &order, &at, &record).await?;
                    return answer_from_order(order, reservation, &fingerprint, allowance);
                }
                give_back(ports, reservation, &at, record).await?;
                return Err(refusal);
            }
        }
    }
    Err(Refusal::Contended)
}

/// When the first of the journeys of some lines departs; `None` where that is not known.
fn departure(sale: &Sale, lines: &[RequestedLine]) -> Option<Timestamp> {
    sale.first_departure(lines.iter().map(|requested| requested.line.legs))
}

/// The end of the payment window of a reservation that is made at `now`: it ends when the train leaves, at the latest.
fn deadline(sale: &Sale, lines: &[RequestedLine], now: Timestamp) -> Timestamp {
    let deadline = now.plus_seconds(i64::from(sale.file().pay_window_seconds));
    match departure(sale, lines) {
        Some(departs) if stands(Guard::Departure) => deadline.min(departs),
        Some(_) | None => deadline,
    }
}

/// Returns the reservation of an order that exists, after paying it if it needs no payment from its buyer. If that
/// payment is cut off, the same request or the order's expiry makes it.
async fn finish_reservation(
    ports: &impl Ports,
    order: Order,
    allowance: Option<Tickets>,
    now: Timestamp,
) -> Result<Reserved, Refusal> {
    let is_to_be_paid = order.state == OrderState::Pending && order.needs_no_payment();
    // Boxed: few orders take this path, and the others need no room for its future.
    let order = if is_to_be_paid { Box::pin(pay_at_once(ports, order, now)).await? } else { order };
    // The tickets that the order was to replace are gone.
    if is_to_be_paid && order.state == OrderState::Cancelled {
        return Err(Refusal::Resolved(order.state));
    }
    Ok(Reserved { order, allowance })
}

/// Begins the exchange of a reservation that replaces tickets, or refuses it.
async fn begin_exchange(
    ports: &impl Ports,
    reservation: &Reservation,
    request: &ExchangeRequest,
    now: Timestamp,
) -> Stored<Result<Exchange, Refusal>> {
    let Reservation { published, number, user, lines, .. } = reservation;
    let new = (&*published.sale, lines.as_slice());
    let begun = exchange::begin(ports, *number, user, new, request, now).await?;
    Ok(begun.map_err(Refusal::Exchange))
}

/// Finds the order that an earlier attempt with this admission made. Holds no seats: for an admission that has expired.
///
/// # Errors
/// Returns a [`Refusal`], as [`reserve`] for an order that exists.
pub async fn repeat(
    ports: &impl Ports,
    reservation: &Reservation,
) -> Result<Option<Reserved>, Refusal> {
    let fingerprint = reservation.fingerprint();
    match ports.orders().get(reservation.number).await? {
        Some(order) => answer_from_order(order, reservation, &fingerprint, None).map(Some),
        None => Ok(None),
    }
}

/// The sale is archived: Redis has no keys of it, and no process loads it.
struct Over;

/// Holds the seats in Redis. If Redis has another epoch than the reservation, reads the sale from the catalogue and
/// tries once more.
async fn hold_seats(
    ports: &impl Ports,
    reservation: &Reservation,
    at: &InventoryId,
    fingerprint: &RequestFingerprint,
    exchange: Option<&Exchange>,
    now: Timestamp,
) -> Stored<Result<HoldReply, Over>> {
    let sale = &reservation.published.sale;
    if reservation.published.lifecycle.is_over() {
        return Ok(Err(Over));
    }
    let mut epoch = reservation.published.epoch.clone();
    for last in [false, true] {
        if let Some(epoch) = epoch {
            let command = Hold {
                inventory: at.clone(),
                epoch,
                order: reservation.number,
                user: reservation.user.clone(),
                fingerprint: fingerprint.clone(),
                now,
                deadline: deadline(sale, &reservation.lines, now),
                replaced: count_replaced_in(sale, at, exchange),
                lines: reservation.lines.iter().map(|requested| requested.line.clone()).collect(),
            };
            // If the reply is lost, the call is repeated: `hold` answers an order's number with the same hold.
            let reply = match ports.seats().hold(&command).await {
                Err(StoreError::Unknown(_)) => ports.seats().hold(&command).await?,
                reply => reply?,
            };
            if reply != HoldReply::NotLoaded {
                return Ok(Ok(reply));
            }
        }
        if last {
            break;
        }
        let published = ports.catalogue().sale(sale.id(), Freshness::Fresh).await?;
        if published.as_ref().is_some_and(|published| published.lifecycle.is_over()) {
            return Ok(Err(Over));
        }
        epoch = published.and_then(|published| published.epoch);
    }
    load::request_load(ports, sale.id()).await;
    Ok(Ok(HoldReply::NotLoaded))
}

/// Counts the tickets of an inventory that an exchange replaces.
fn count_replaced_in(sale: &Sale, at: &InventoryId, exchange: Option<&Exchange>) -> Tickets {
    let own = exchange.filter(|exchange| exchange.sale == *sale.id());
    let tickets = own.into_iter().flat_map(|exchange| &exchange.tickets);
    Tickets::of_seats(tickets.filter(|ticket| sale.inventory_of(&ticket.tier) == *at).count())
}

/// Returns the hold with the tickets that the buyer may still have, or the refusal. Where tiers are kept apart, Redis
/// counts a buyer's tickets of one tier, so what is left of the limit is unknown.
fn held_or_refusal(
    sale: &Sale,
    reply: HoldReply,
) -> Result<(HoldRecord, Option<Tickets>), Refusal> {
    Err(match reply {
        HoldReply::Held { record, allowance } => {
            return Ok((record, (!sale.keeps_tiers_apart()).then_some(allowance)));
        }
        HoldReply::NotLoaded => Refusal::NotLoaded,
        HoldReply::ContentDiffers => Refusal::TokenReused(None),
        HoldReply::HoldExpired => Refusal::HoldExpired,
        HoldReply::SaleClosed => Refusal::SaleClosed,
        HoldReply::LimitReached { remaining } => Refusal::LimitReached { remaining },
        HoldReply::SeatTaken(tier, seats) => seat_taken(sale, tier, &seats),
        HoldReply::SoldOut(tier) => Refusal::SoldOut(tier),
        HoldReply::NoAdjacent(tier) => Refusal::NoAdjacent(tier),
    })
}

/// Corrects the remaining tickets in a refusal to those of the whole sale: where tiers are kept apart, Redis counts the
/// buyer's tickets of one tier only.
async fn correct_remaining(
    ports: &impl Ports,
    reservation: &Reservation,
    refusal: Refusal,
) -> Stored<Refusal> {
    let Reservation { published, user, .. } = reservation;
    let sale = &published.sale;
    if let Refusal::LimitReached { remaining } = refusal
        && sale.keeps_tiers_apart()
    {
        let held = ports.orders().tickets_of(sale.id(), user).await?;
        let remaining = remaining.min(sale.limit().saturating_sub(held));
        return Ok(Refusal::LimitReached { remaining });
    }
    Ok(refusal)
}

fn seat_taken(sale: &Sale, tier: TierId, seats: &[Seat]) -> Refusal {
    let layout = sale.tier(&tier).map(|tier| &tier.layout);
    let names = seats.iter().filter_map(|seat| layout?.name(*seat)).collect();
    Refusal::SeatTaken(tier, names)
}

/// Result of the claim, with the order that was written.
enum Claimed {
    Created(Box<Order>),
    Exists(Box<Order>),
    SeatsTaken(Vec<SeatLeg>),
    Refused(Refusal),
}

/// Writes the order with its claims, and at the same time sends the order's expiry message for its deadline. If the
/// message is lost, the sweeper finds the order by its deadline.
async fn claim(
    ports: &impl Ports,
    reservation: &Reservation,
    at: &InventoryId,
    record: &HoldRecord,
    exchange: Option<&Exchange>,
    now: Timestamp,
) -> Result<Claimed, Refusal> {
    let sale = &reservation.published.sale;
    let lines = order_lines(sale, &reservation.lines, record)
        .ok_or_else(|| StoreError::Contract("the hold is not of the lines asked for".to_owned()))?;
    let order = Order {
        number: reservation.number,
        sale: sale.id().clone(),
        user: reservation.user.clone(),
        state: OrderState::Pending,
        total: sale.money(total_minor(&lines)),
        lines,
        fingerprint: record.fingerprint.clone(),
        created_at: now,
        pay_by: record.deadline,
        changed_at: now,
        payment: None,
        attempts: Attempts::default(),
        facts: Facts::made(now),
        refunds: RefundCounts::default(),
        merchant: sale.merchant(),
        exchange: exchange.cloned(),
    };
    let limit = sale.limit().saturating_add(order.replaced());
    let (created, queued) = join(
        ports.orders().create(&order, limit),
        ports.queue().expire_later(at, order.number, now, order.pay_by),
    )
    .await;
    if let Err(error) = queued {
        tracing::warn!(order = %order.number, %error, "no expiry message: left to the sweeper");
    }
    Ok(match created? {
        CreateReply::Created => Claimed::Created(Box::new(order)),
        CreateReply::Exists(existing) => Claimed::Exists(existing),
        CreateReply::SeatsTaken(lost) => Claimed::SeatsTaken(lost),
        CreateReply::LimitReached { held } => {
            Claimed::Refused(Refusal::LimitReached { remaining: limit.saturating_sub(held) })
        }
        CreateReply::AttendeeTaken(hash) => Claimed::Refused(attendee_taken(reservation, hash)?),
        CreateReply::AttendeeLimit => {
            Claimed::Refused(Refusal::AttendeeLimit { max_named: max_named(limit) })
        }
    })
}

/// Makes the refusal that names the attendee of this hash by the id in the request.
fn attendee_taken(reservation: &Reservation, hash: AttendeeHash) -> Result<Refusal, StoreError> {
    let mut attendees = reservation.lines.iter().flat_map(|requested| &requested.attendees);
    let taken = attendees.find(|attendee| attendee.hashes.contains(&hash));
    let id = taken.and_then(|attendee| attendee.id.clone());
    let unknown = || StoreError::Contract("nobody was asked for who is taken".to_owned());
    id.map(Refusal::AttendeeTaken).ok_or_else(unknown)
}

/// Gives back the hold of a refused attempt, and no other: the number may have another hold by now, of the same buyer's
/// next request, which has its own order.
async fn give_back(
    ports: &impl Ports,
    reservation: &Reservation,
    at: &InventoryId,
    record: HoldRecord,
) -> Result<(), StoreError> {
    let release = Release { inventory: at.clone(), order: reservation.number, record };
    match ports.seats().release(&release).await? {
        ReleaseReply::Released | ReleaseReply::NotHeld | ReleaseReply::Conflict => Ok(()),
    }
}

/// Marks the lost seats as taken in Redis, which had them free, and gives the rest of the hold back. One script does
/// both, so that no repeated attempt finds half of a hold.
async fn give_up_lost(
    ports: &impl Ports,
    reservation: &Reservation,
    at: &InventoryId,
    record: HoldRecord,
    lost: &[SeatLeg],
) -> Result<(), StoreError> {
    let inventory = at.clone();
    let mark = Mark { inventory, order: reservation.number, record, taken: lost.to_vec() };
    match ports.seats().mark(&mark).await? {
        // If the hold is gone or replaced, a duplicate of the request or the expiry was quicker; the reconciler repairs
        // what is left wrong.
        MarkReply::Marked | MarkReply::NotHeld | MarkReply::Conflict => Ok(()),
    }
}

/// Refuses the reservation if seats that the buyer chose are lost; `None` if no chosen seat is lost.
fn refuse_lost_choice(reservation: &Reservation, lost: &[SeatLeg]) -> Option<Refusal> {
    reservation.lines.iter().find_map(|RequestedLine { line, .. }| {
        let is_chosen = matches!(line.choice, crate::domain::inventory::choice::Choice::Seats(_));
        let of_line = lost.iter().filter(|seat_leg| seat_leg.tier == line.tier);
        let mut seats: Vec<Seat> = of_line.map(|seat_leg| seat_leg.seat).collect();
        seats.sort();
        seats.dedup();
        (is_chosen && !seats.is_empty())
            .then(|| seat_taken(&reservation.published.sale, line.tier.clone(), &seats))
    })
}

/// Answers with the order that exists under the number, or else with the refusal. Redis may have forgotten that this
/// very request has its order, so DynamoDB is asked before a buyer is refused.
async fn existing_or(
    ports: &impl Ports,
    reservation: &Reservation,
    fingerprint: &RequestFingerprint,
    refusal: Refusal,
) -> Result<Reserved, Refusal> {
    if !stands(Guard::AskBeforeRefusing) {
        return Err(refusal);
    }
    match ports.orders().get(reservation.number).await? {
        Some(order) => answer_from_order(order, reservation, fingerprint, None),
        None => Err(refusal),
    }
}

/// Answers a repeated request from the order that its number already has.
fn answer_from_order(
    order: Order,
    reservation: &Reservation,
    fingerprint: &RequestFingerprint,
    allowance: Option<Tickets>,
) -> Result<Reserved, Refusal> {
    if order.user != reservation.user {
        return Err(Refusal::NumberClash);
    }
    if stands(Guard::FingerprintCheck) && order.fingerprint != *fingerprint {
        // A buyer cannot look at a tombstone.
        let made = (!order.is_tombstone()).then_some((order.number, order.state));
        return Err(Refusal::TokenReused(made));
    }
    match order.state {
        OrderState::Pending | OrderState::Paid => Ok(Reserved { order, allowance }),
        OrderState::Expired => Err(Refusal::HoldExpired),
        OrderState::Cancelled | OrderState::RefundDue | OrderState::Refunded => {
            Err(Refusal::Resolved(order.state))
        }
    }
}
