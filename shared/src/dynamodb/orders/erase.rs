//! Erasing: the ids of attendees go out of their orders. Their hashes stay, in the orders and in the
//! claims, so that nobody gets a second ticket and every order still frees what it claimed.

use super::{Committed, DynamoOrders, Part};
use crate::dynamodb::expressions::{filtered, update};
use crate::dynamodb::items::{ATTENDEE, Item, order_key, read_order, text};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::Order;
use engine::domain::order::attendee::Attendee;
use engine::ports::Stored;

/// The orders whose attendees are erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// Orders of this sale.
    pub sale: SaleId,
    /// Only those that were made before this time.
    pub before: Option<Timestamp>,
    pub order: Option<OrderNumber>,
}

impl Selection {
    fn has(&self, order: &Order) -> bool {
        order.sale == self.sale
            && self.before.is_none_or(|before| order.created_at < before)
            && self.order.is_none_or(|number| order.number == number)
    }
}

/// Number of what was erased and looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Orders of the selection, whether they named anybody or not.
    pub looked_at: u64,
    /// Orders from which ids were erased.
    pub orders: u64,
    /// Tickets from which an id was erased.
    pub tickets: u64,
}

impl DynamoOrders {
    /// Erases the ids of the attendees of some orders, whatever their state. What was erased before is
    /// passed over: a run that was cut off is finished by another.
    ///
    /// # Errors
    /// As any read and write; what was erased by then stays so.
    pub async fn erase_attendees(&self, selection: &Selection) -> Stored<Erased> {
        let mut erased = Erased::default();
        if let Some(number) = selection.order {
            let found = self.get(number).await?;
            self.erase_from(found.as_slice(), selection, &mut erased).await?;
            return Ok(erased);
        }
        let scan = filtered(
            self.db.client().scan().table_name(self.orders()).consistent_read(true),
            "#sale = :sale AND begins_with(#sk, :orders)",
            [("sale", text(&selection.sale)), ("orders", text("order#"))],
        );
        let mut after: Option<Item> = None;
        loop {
            let page = scan.clone().set_exclusive_start_key(after);
            let mut page = self.db.read(|| page.clone().send()).await?;
            let items = page.items.take().unwrap_or_default();
            let orders: Vec<Order> = items.iter().map(read_order).collect::<Stored<_>>()?;
            self.erase_from(&orders, selection, &mut erased).await?;
            after = page.last_evaluated_key.take();
            if after.is_none() {
                return Ok(erased);
            }
        }
    }

    async fn erase_from(
        &self,
        orders: &[Order],
        selection: &Selection,
        erased: &mut Erased,
    ) -> Stored<()> {
        for order in orders.iter().filter(|order| selection.has(order)) {
            erased.looked_at += 1;
            let paths = named_paths(order);
            if paths.is_empty() {
                continue;
            }
            let remove = format!("REMOVE {}", paths.join(", "));
            let key = order_key(order.number);
            let update = update(self.orders(), key, &remove, "attribute_exists(#sk)", [])?;
            match self.commit(1, vec![(Part::Order, update)]).await? {
                Committed::Done => {
                    erased.orders += 1;
                    erased.tickets += u64::try_from(paths.len()).unwrap_or(u64::MAX);
                }
                // Orders are never deleted by us; if somebody did, nothing is left of it.
                Committed::Cancelled(_) => {}
            }
        }
        Ok(())
    }
}

/// The paths of the ids that an order has, as an expression names them.
fn named_paths(order: &Order) -> Vec<String> {
    let mut paths = Vec::new();
    for (line, of_line) in order.lines.iter().enumerate() {
        for (ticket, of_ticket) in of_line.tickets.iter().enumerate() {
            if let Some(Attendee { id: Some(_), .. }) = &of_ticket.attendee {
                paths.push(format!("#lines[{line}].#tickets[{ticket}].#{ATTENDEE}"));
            }
        }
    }
    paths
}
