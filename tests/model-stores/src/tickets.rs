//! Issued tickets as DynamoDB keeps them: new issues, check-ins, and what of a sale is revoked.

use engine::domain::basics::guard::{Guard, stands};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::{Issue, Order, OrderState, Ticket};
use engine::domain::ticket::{
    CheckInCounts, CheckInPlan, DoubleCheckIn, DoublesPage, ReissuePlan, Revocations, RevokedOrder,
    RevokedPage, TicketNumber,
};
use engine::ports::{ChangeReply, StoreError, Stored};

use crate::orders::OrdersModel;

fn ticket(order: &mut Order, number: TicketNumber) -> Option<&mut Ticket> {
    let mut all = order.lines.iter_mut().flat_map(|line| &mut line.tickets);
    all.nth(usize::from(number.get()) - 1)
}

fn missing(order: OrderNumber, ticket: TicketNumber) -> StoreError {
    StoreError::Contract(format!("order {order}: no ticket {ticket}"))
}

impl OrdersModel {
    /// A ticket of a paid order, if there is one.
    fn of_paid(&mut self, order: OrderNumber, number: TicketNumber) -> Option<&mut Ticket> {
        let stored = self.orders.get_mut(&order).filter(|stored| stored.state == OrderState::Paid);
        ticket(stored?, number)
    }

    /// True if any of these tickets of an order has let somebody in.
    pub(crate) fn any_checked_in(
        &self,
        order: OrderNumber,
        tickets: impl Iterator<Item = TicketNumber>,
    ) -> bool {
        let Some(stored) = self.orders.get(&order) else { return false };
        let tickets: Vec<TicketNumber> = tickets.collect();
        stored.numbered().any(|of| tickets.contains(&of.number) && of.ticket.checked_in.is_some())
    }

    /// Writes what is revoked of an order into the list of its sale.
    pub(crate) fn revoke(&mut self, order: &Order, tickets: Revocations) {
        if !tickets.is_empty() {
            let key = (order.sale.clone(), order.number);
            self.revoked.entry(key).or_default().extend(tickets);
        }
    }

    /// Issues tickets of a paid order anew.
    ///
    /// # Errors
    /// `Contract` for what the flows never ask for.
    pub fn reissue(&mut self, plan: &ReissuePlan) -> Stored<ChangeReply> {
        let order = &plan.order;
        if plan.before.is_empty() {
            return Err(StoreError::Contract(format!("order {}: nothing anew", order.number)));
        }
        for number in plan.before.keys() {
            let is_there = order.numbered().any(|of| of.number == *number);
            is_there.then_some(()).ok_or_else(|| missing(order.number, *number))?;
        }
        for (number, before) in &plan.before {
            let is_as_seen = |ticket: &&mut Ticket| {
                !stands(Guard::IssueSeen) || (ticket.is_live() && ticket.issue == *before)
            };
            if self.of_paid(order.number, *number).filter(is_as_seen).is_none() {
                return Ok(ChangeReply::Conflict);
            }
        }
        for (number, before) in &plan.before {
            if let Some(ticket) = self.of_paid(order.number, *number) {
                ticket.issue = before.next();
            }
        }
        self.revoke(order, plan.revokes());
        Ok(ChangeReply::Done)
    }

    /// Records the first check-in of a ticket.
    ///
    /// # Errors
    /// `Contract` for a ticket that the order has not.
    pub fn check_in(&mut self, plan: &CheckInPlan) -> Stored<ChangeReply> {
        let CheckInPlan { order, serial, check_in } = plan;
        let is_there = order.numbered().any(|of| of.number == serial.ticket);
        is_there.then_some(()).ok_or_else(|| missing(order.number, serial.ticket))?;
        let is_as_seen = |ticket: &&mut Ticket| {
            let is_good = ticket.is_live() && ticket.issue == serial.issue;
            !stands(Guard::CheckInOnce) || (is_good && ticket.checked_in.is_none())
        };
        let Some(ticket) = self.of_paid(order.number, serial.ticket).filter(is_as_seen) else {
            return Ok(ChangeReply::Conflict);
        };
        ticket.checked_in = Some(check_in.clone());
        self.check_ins.entry(order.sale.clone()).or_default().admitted += 1;
        Ok(ChangeReply::Done)
    }

    /// Records a check-in after the first.
    pub fn check_in_again(&mut self, double: &DoubleCheckIn) -> ChangeReply {
        let key = (double.sale.clone(), double.key());
        if self.doubles.contains_key(&key) {
            return ChangeReply::Conflict;
        }
        self.doubles.insert(key, double.clone());
        self.check_ins.entry(double.sale.clone()).or_default().doubles += 1;
        ChangeReply::Done
    }

    /// What of a sale was revoked, order by order.
    #[must_use]
    pub fn revoked(&self, sale: &SaleId, from: Option<OrderNumber>, most: u16) -> RevokedPage {
        let is_asked_for = |(of, order): &(SaleId, OrderNumber)| {
            of == sale && from.is_none_or(|from| *order >= from)
        };
        let found = self.revoked.iter().filter(|(key, _)| is_asked_for(key));
        let mut orders: Vec<RevokedOrder> = found
            .map(|((_, order), tickets)| RevokedOrder { order: *order, tickets: tickets.clone() })
            .collect();
        let next = orders.get(usize::from(most)).map(|revoked| revoked.order);
        orders.truncate(usize::from(most));
        RevokedPage { orders, next }
    }

    /// The check-ins of a sale, counted.
    #[must_use]
    pub fn check_ins(&self, sale: &SaleId) -> CheckInCounts {
        self.check_ins.get(sale).copied().unwrap_or_default()
    }

    /// The check-ins of a sale after the first of their ticket.
    #[must_use]
    pub fn doubles(&self, sale: &SaleId, after: Option<&String>, most: u16) -> DoublesPage {
        let is_asked_for =
            |(of, key): &(SaleId, String)| of == sale && after.is_none_or(|after| key > after);
        let found = self.doubles.iter().filter(|(key, _)| is_asked_for(key));
        let mut doubles: Vec<DoubleCheckIn> = found.map(|(_, double)| double.clone()).collect();
        let is_all = doubles.len() <= usize::from(most);
        doubles.truncate(usize::from(most));
        let next = doubles.last().filter(|_| !is_all).map(DoubleCheckIn::key);
        DoublesPage { doubles, next }
    }

    /// The lowest issue of a ticket that the list of its sale lets in; `None` if none is.
    #[must_use]
    pub fn lowest_good(&self, order: &Order, ticket: TicketNumber) -> Option<Issue> {
        let listed = self.revoked.get(&(order.sale.clone(), order.number));
        listed.and_then(|tickets| tickets.get(&ticket).copied()).unwrap_or(Some(Issue::FIRST))
    }
}
