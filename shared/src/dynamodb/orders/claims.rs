//! What an order claims while it is live: its seat-legs, its share of the buyer's limit, its
//! attendees; and what stands against claiming it.

use aws_sdk_dynamodb::types::TransactWriteItem;

use super::{DynamoOrders, Part, Plan};
use crate::dynamodb::expressions::{delete, put_new, update};
use crate::dynamodb::items::{
    Fields, attendee_item, attendee_key, buyer_key, number, seat_key, text,
};
use crate::dynamodb::tables::leg_attribute;
use crate::dynamodb::transaction::Reason;
use engine::domain::ids::AttendeeId;
use engine::domain::inventory::SeatLeg;
use engine::domain::number::OrderNumber;
use engine::domain::order::Order;
use engine::domain::requested::MAX_SEATS_PER_ORDER;
use engine::domain::tickets::Tickets;
use engine::ports::{CreateReply, MAX_TRANSACTION_ITEMS, Stored};

// The largest order is created or rescued in one transaction: itself, its payment, a claim and an
// attendee for each seat, and its buyer's count.
const _: () = assert!(3 + 2 * MAX_SEATS_PER_ORDER <= MAX_TRANSACTION_ITEMS);

impl DynamoOrders {
    /// Everything an order takes when it comes to life: its seat-legs, its share of the buyer's
    /// limit, its attendees.
    pub(super) fn claims_of<'a>(&self, order: &'a Order, limit: Tickets) -> Stored<Plan<'a>> {
        let mut plan = Vec::new();
        let owner = || [("order", text(order.number))];
        for line in &order.lines {
            let legs = || line.legs.iter().map(leg_attribute);
            let set: Vec<String> = legs().map(|leg| format!("#{leg} = :order")).collect();
            let free: Vec<String> =
                legs().map(|leg| format!("attribute_not_exists(#{leg})")).collect();
            let (set, free) = (format!("SET {}", set.join(", ")), free.join(" AND "));
            for ticket in &line.tickets {
                let key = seat_key(order, line, ticket.seat);
                let claim = update(&self.db.tables().seats, key, &set, &free, owner())?;
                plan.push((Part::Seat(line, ticket.seat), claim));
            }
        }
        plan.push((Part::Buyer, self.count_up(order, limit)?));
        for attendee in order.attendees() {
            let claim = put_new(self.orders(), attendee_item(order, attendee))?;
            plan.push((Part::Attendee(attendee), claim));
        }
        Ok(plan)
    }

    fn count_up(&self, order: &Order, limit: Tickets) -> Stored<TransactWriteItem> {
        let tickets = order.tickets();
        let (condition, bound) = match limit.checked_sub(tickets) {
            Some(most) => ("attribute_not_exists(#tickets) OR #tickets <= :bound", most),
            // More than the limit at once: false whatever the buyer has, as no count is negative.
            None => ("#tickets < :bound", Tickets::NONE),
        };
        let with = [("more", number(tickets)), ("bound", number(bound))];
        let key = buyer_key(&order.sale, &order.user);
        update(self.orders(), key, "ADD #tickets :more", condition, with)
    }

    /// Everything an order gives back when it ends unpaid.
    pub(super) fn frees_of<'a>(&self, order: &'a Order) -> Stored<Plan<'a>> {
        let mut plan = Vec::new();
        let owner = || [("order", text(order.number))];
        for line in &order.lines {
            let legs = || line.legs.iter().map(leg_attribute);
            let remove: Vec<String> = legs().map(|leg| format!("#{leg}")).collect();
            let owned: Vec<String> = legs().map(|leg| format!("#{leg} = :order")).collect();
            let (remove, owned) = (format!("REMOVE {}", remove.join(", ")), owned.join(" AND "));
            for ticket in &line.tickets {
                let key = seat_key(order, line, ticket.seat);
                let free = update(&self.db.tables().seats, key, &remove, &owned, owner())?;
                plan.push((Part::Seat(line, ticket.seat), free));
            }
        }
        let tickets = i32::from(order.tickets());
        let with = [("more", number(-tickets)), ("bound", number(tickets))];
        let key = buyer_key(&order.sale, &order.user);
        let down = update(self.orders(), key, "ADD #tickets :more", "#tickets >= :bound", with)?;
        plan.push((Part::Buyer, down));
        for attendee in order.attendees() {
            let key = attendee_key(&order.sale, attendee);
            let free = delete(self.orders(), key, "#order = :order", owner())?;
            plan.push((Part::Attendee(attendee), free));
        }
        Ok(plan)
    }
}

/// The conflicts that an order's claims met, by kind of claim.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// Seat-legs that other orders own.
    seats: Vec<SeatLeg>,
    /// Tickets that the buyer has, if these and the order's would be more than the limit.
    tickets: Option<Tickets>,
    /// The first attendee who has a ticket in another order.
    attendee: Option<AttendeeId>,
}

impl Conflicts {
    /// The refusal that outranks the others.
    pub(super) fn reply(self) -> Option<CreateReply> {
        if !self.seats.is_empty() {
            return Some(CreateReply::SeatsTaken(self.seats));
        }
        let limit = self.tickets.map(|held| CreateReply::LimitReached { held });
        limit.or_else(|| self.attendee.map(CreateReply::AttendeeTaken))
    }
}

/// The conflicts that the claims of `order` met. Its own claims are none.
pub(super) fn conflicts(order: &Order, reasons: &[(Part<'_>, Reason)]) -> Stored<Conflicts> {
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
                conflicts.tickets = Some(fields.maybe_number("tickets")?.unwrap_or_default());
            }
            Part::Attendee(attendee) => {
                let owner: OrderNumber = fields.text("order")?;
                if owner != order.number && conflicts.attendee.is_none() {
                    conflicts.attendee = Some((*attendee).clone());
                }
            }
            Part::Order | Part::Payment | Part::Statistics => {}
        }
    }
    Ok(conflicts)
}
