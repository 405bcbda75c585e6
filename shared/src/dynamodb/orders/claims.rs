//! The claims of a live order: its seat-legs, its share of the buyer's limit and its attendees; and the reasons for
//! which a claim fails.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use super::{DynamoOrders, Part, Plan};
use crate::dynamodb::expressions::{Value, delete, put_new, update};
use crate::dynamodb::items::{
    Fields, attendee_item, attendee_key, buyer_key, number, seat_key, text,
};
use crate::dynamodb::tables::leg_attribute;
use crate::dynamodb::transaction::Reason;
use engine::domain::basics::limits::MAX_SEATS_PER_ORDER;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::inventory::SeatLeg;
use engine::domain::order::Order;
use engine::domain::order::attendee::{AttendeeHash, MAX_ATTENDEE_KEYS, max_named};
use engine::ports::{CreateReply, MAX_TRANSACTION_ITEMS, StoreError, Stored};

// The largest order is created or rescued in one transaction: itself, its payment, for each seat a
// claim and an attendee by each key, and its buyer's count.
const _: () = assert!(3 + (1 + MAX_ATTENDEE_KEYS) * MAX_SEATS_PER_ORDER <= MAX_TRANSACTION_ITEMS);

/// The values that expressions call the people of an order by, one for each seat at most.
const PEOPLE: [&str; MAX_SEATS_PER_ORDER] =
    ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9"];

/// Why an order gives back what it has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freed {
    Ended,
    /// Its tickets are refunded: each seat says so from now on, for the comparison, which passes over seats
    /// that were sold and never returned.
    Returned,
}

/// Whether an order names people for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// It is new: its people are counted for its buyer, within the bound.
    New,
    /// It was made before, and they were counted then.
    Known,
}

impl DynamoOrders {
    /// Everything an order takes when it comes to life: its seat-legs, its share of the buyer's
    /// limit, its attendees.
    pub(super) fn claims_of<'a>(
        &self,
        order: &'a Order,
        limit: Tickets,
        naming: Naming,
    ) -> Stored<Plan<'a>> {
        let mut plan = Vec::new();
        let owner = || [("order", text(order.number))];
        for line in &order.lines {
            let legs = || line.legs.iter().map(leg_attribute);
            let set: Vec<String> = legs().map(|leg| format!("#{leg} = :order")).collect();
            let free: Vec<String> =
                legs().map(|leg| format!("attribute_not_exists(#{leg})")).collect();
            let (set, free) = (format!("SET {}", set.join(", ")), free.join(" AND "));
            for ticket in line.live() {
                let key = seat_key(order, line, ticket.seat);
                let claim = update(&self.db.tables().seats, key, &set, &free, owner())?;
                plan.push((Part::Seat(line, ticket.seat), claim));
            }
        }
        plan.push((Part::Buyer, self.count_up(order, limit, naming)?));
        for hash in order.attendee_claims() {
            let claim = put_new(self.orders(), attendee_item(order, hash))?;
            plan.push((Part::Attendee(hash), claim));
        }
        Ok(plan)
    }

    fn count_up(&self, order: &Order, limit: Tickets, naming: Naming) -> Stored<TransactWriteItem> {
        let tickets = order.tickets();
        let (condition, bound) = match limit.checked_sub(tickets) {
            Some(most) => ("attribute_not_exists(#tickets) OR #tickets <= :bound", most),
            // More than the limit at once: false whatever the buyer has, as no count is negative.
            None => ("#tickets < :bound", Tickets::NONE),
        };
        let mut with = vec![("more", number(tickets)), ("bound", number(bound))];
        let key = buyer_key(&order.sale, &order.user);
        let Some(people) = People::of(order, limit).filter(|_| naming == Naming::New) else {
            return update(self.orders(), key, "ADD #tickets :more", condition, with);
        };
        let condition = format!("({condition}) AND ({})", people.condition);
        with.extend(people.with);
        update(self.orders(), key, "ADD #tickets :more, #named :named", &condition, with)
    }

    /// Counts the people of an order among those whom its buyer has named, within the bound, and no
    /// ticket.
    pub(super) fn name(&self, order: &Order, limit: Tickets) -> Stored<TransactWriteItem> {
        let (condition, mut with) = match People::of(order, limit) {
            Some(People { condition, with }) => (condition, with),
            None => return Err(StoreError::Contract(format!("{} names nobody", order.number))),
        };
        // A buyer's count always has its tickets.
        with.push(("more", number(Tickets::NONE)));
        let key = buyer_key(&order.sale, &order.user);
        update(self.orders(), key, "ADD #tickets :more, #named :named", &condition, with)
    }

    /// Everything an order gives back when it ends unpaid, or with the tickets of a refund.
    pub(super) fn frees_of<'a>(&self, order: &'a Order, freed: Freed) -> Stored<Plan<'a>> {
        let mut plan = Vec::new();
        let owner = || [("order", text(order.number))];
        let this = || AttributeValue::Ss(vec![order.number.to_string()]);
        for line in &order.lines {
            let legs = || line.legs.iter().map(leg_attribute);
            let remove: Vec<String> = legs().map(|leg| format!("#{leg}")).collect();
            let owned: Vec<String> = legs().map(|leg| format!("#{leg} = :order")).collect();
            let (mut remove, owned) =
                (format!("REMOVE {}", remove.join(", ")), owned.join(" AND "));
            let mut with: Vec<Value> = owner().to_vec();
            if freed == Freed::Returned {
                remove.push_str(" ADD #returned :this");
                with.push(("this", this()));
            }
            for ticket in line.live() {
                let key = seat_key(order, line, ticket.seat);
                let free = update(&self.db.tables().seats, key, &remove, &owned, with.clone())?;
                plan.push((Part::Seat(line, ticket.seat), free));
            }
        }
        let tickets = i32::from(order.tickets());
        let with = [("more", number(-tickets)), ("bound", number(tickets))];
        let key = buyer_key(&order.sale, &order.user);
        let down = update(self.orders(), key, "ADD #tickets :more", "#tickets >= :bound", with)?;
        plan.push((Part::Buyer, down));
        for hash in order.attendee_claims() {
            let key = attendee_key(&order.sale, hash);
            let free = delete(self.orders(), key, "#order = :order", owner())?;
            plan.push((Part::Attendee(hash), free));
        }
        Ok(plan)
    }
}

/// The people of an order in an expression on its buyer's count: the set `:named`, and the condition
/// under which the buyer may name them, as [`may_name`](engine::domain::order::attendee::may_name) has it.
struct People {
    condition: String,
    with: Vec<Value>,
}

impl People {
    /// Those of an order; `None` if it names nobody.
    fn of(order: &Order, limit: Tickets) -> Option<Self> {
        let people: Vec<String> = order.named().iter().map(ToString::to_string).collect();
        if people.is_empty() {
            return None;
        }
        let each = || PEOPLE.into_iter().zip(&people);
        let known: Vec<String> =
            each().map(|(name, _)| format!("contains(#named, :{name})")).collect();
        let mut condition = known.join(" AND ");
        let mut with: Vec<Value> = each().map(|(name, hash)| (name, text(hash))).collect();
        if let Some(room) = max_named(limit).checked_sub(people.len()) {
            condition =
                format!("attribute_not_exists(#named) OR size(#named) <= :room OR ({condition})");
            with.push(("room", number(u32::try_from(room).unwrap_or(u32::MAX))));
        }
        with.push(("named", AttributeValue::Ss(people)));
        Some(Self { condition, with })
    }
}

/// The conflicts that an order's claims met, by kind of claim.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// Seat-legs that other orders own.
    seats: Vec<SeatLeg>,
    /// Tickets that the buyer has, if these and the order's would be more than the limit.
    tickets: Option<Tickets>,
    /// True if the buyer would have named too many people.
    is_naming_too_many: bool,
    /// The first attendee who has a ticket in another order.
    attendee: Option<AttendeeHash>,
}

impl Conflicts {
    /// The refusal that outranks the others.
    pub(super) fn reply(self) -> Option<CreateReply> {
        if !self.seats.is_empty() {
            return Some(CreateReply::SeatsTaken(self.seats));
        }
        let limit = self.tickets.map(|held| CreateReply::LimitReached { held });
        let too_many = self.is_naming_too_many.then_some(CreateReply::AttendeeLimit);
        limit.or(too_many).or_else(|| self.attendee.map(CreateReply::AttendeeTaken))
    }
}

/// The conflicts that the claims of `order` met. Its own claims are none.
pub(super) fn conflicts(
    order: &Order,
    limit: Tickets,
    reasons: &[(Part<'_>, Reason)],
) -> Stored<Conflicts> {
    let mut conflicts = Conflicts::default();
    for (part, reason) in reasons {
        let Reason::ConditionalCheckFailed(item) = reason else { continue };
        let fields = Fields::from_item(item);
        match part {
            Part::Seat(line, seat) => {
                for leg in line.legs.iter() {
                    let owner: Option<OrderNumber> = fields.maybe_text(&leg_attribute(leg))?;
                    if owner.is_some_and(|owner| owner != order.number) {
                        let tier = line.tier.clone();
                        conflicts.seats.push(SeatLeg { tier, leg, seat: *seat });
                    }
                }
            }
            Part::Buyer => {
                let held: Tickets = fields.maybe_number("tickets")?.unwrap_or_default();
                // Its condition has two parts; what is left is the other.
                let is_over = limit.checked_sub(order.tickets()).is_none_or(|most| held > most);
                conflicts.tickets = is_over.then_some(held);
                conflicts.is_naming_too_many = !is_over;
            }
            Part::Attendee(hash) => {
                let owner: OrderNumber = fields.text("order")?;
                if owner != order.number && conflicts.attendee.is_none() {
                    conflicts.attendee = Some(*hash);
                }
            }
            Part::Order
            | Part::Payment
            | Part::Refund
            | Part::Statistics
            | Part::Log
            | Part::Account
            | Part::Wallet
            | Part::Award
            | Part::Revoked
            | Part::Double => {}
        }
    }
    Ok(conflicts)
}
