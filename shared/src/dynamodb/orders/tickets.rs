//! Issued tickets: new issues, check-ins, and the list of a sale's revoked tickets.
//!
//! The order's own item decides each. What is to be listed by sale is written in the same transaction: an item
//! for each order of which something was revoked, and one for each check-in after the first.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use super::{Committed, DynamoOrders, Part, Plan, must};
use crate::dynamodb::expressions::{Value, keyed, put_new, update};
use crate::dynamodb::items::{
    Fields, Item, TICKET_DOOR, TICKET_ISSUE, TICKET_REFUND, TICKET_SCANNED, item, number,
    order_key, text,
};
use crate::dynamodb::tables::{
    CHECK_IN_COUNT_PREFIX, COUNTER_SHARDS, DOUBLE_PREFIX, check_in_count_key, check_ins_key,
    revoked_key, revoked_order_key,
};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::{CheckIn, Issue, Order, OrderState};
use engine::domain::ticket::{
    CheckInCounts, CheckInPlan, DoubleCheckIn, DoublesPage, MAX_TICKET, ReissuePlan, Revocations,
    RevokedOrder, RevokedPage, TicketNumber,
};
use engine::ports::{ChangeReply, StoreError, Stored};

/// What expressions call the issues that tickets had, and those that they get, by the tickets' numbers from 1.
const BEFORE: [&str; MAX_TICKET as usize] =
    ["b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10"];
const AFTER: [&str; MAX_TICKET as usize] =
    ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10"];

/// The path of a ticket in the item of its order.
fn path(order: &Order, ticket: TicketNumber) -> Stored<String> {
    let each = order.lines.iter().enumerate();
    let each = each.flat_map(|(line, of)| (0..of.tickets.len()).map(move |ticket| (line, ticket)));
    let found = (1..).zip(each).find(|(number, _)| *number == ticket.get());
    let missing = || StoreError::Contract(format!("order {}: no ticket {ticket}", order.number));
    let (_, (line, ticket)) = found.ok_or_else(missing)?;
    Ok(format!("#lines[{line}].#tickets[{ticket}]"))
}

/// The name that a list has for a ticket.
fn name_in(names: &[&'static str; MAX_TICKET as usize], ticket: TicketNumber) -> &'static str {
    names.get(usize::from(ticket.get() - 1)).copied().unwrap_or_default()
}

/// The condition that a ticket is live and has an issue, and what it compares with. The first issue is not
/// written.
fn is_live(path: &str, issue: Issue, name: &'static str) -> (String, Option<Value>) {
    let live = format!("attribute_not_exists({path}.#{TICKET_REFUND})");
    if issue == Issue::FIRST {
        return (format!("{live} AND attribute_not_exists({path}.#{TICKET_ISSUE})"), None);
    }
    let value = (name, number(issue.get()));
    (format!("{live} AND {path}.#{TICKET_ISSUE} = :{name}"), Some(value))
}

/// The condition that none of some tickets has let anybody in; begins with `AND`, or is empty without any.
pub(super) fn are_unused(order: &Order, tickets: &Revocations) -> Stored<String> {
    let unused = |ticket: &TicketNumber| {
        let path = path(order, *ticket)?;
        Ok(format!(" AND attribute_not_exists({path}.#{TICKET_SCANNED})"))
    };
    tickets.keys().map(unused).collect()
}

impl DynamoOrders {
    /// Writes what is revoked of an order into the list of its sale; `None` without any.
    pub(super) fn revoked_of(
        &self,
        order: &Order,
        tickets: &Revocations,
    ) -> Stored<Option<TransactWriteItem>> {
        if tickets.is_empty() {
            return Ok(None);
        }
        let key = item([
            ("pk", text(revoked_key(&order.sale))),
            ("sk", text(revoked_order_key(order.number))),
        ]);
        let (mut set, mut with) = (Vec::new(), Vec::new());
        for (ticket, lowest) in tickets {
            let name = name_in(&AFTER, *ticket);
            set.push(format!("#t{ticket} = :{name}"));
            with.push((name, number(lowest.map_or(0, Issue::get))));
        }
        let set = format!("SET {}", set.join(", "));
        update(&self.db.tables().sales, key, &set, "", with).map(Some)
    }

    pub(super) async fn reissue(&self, plan: &ReissuePlan) -> Stored<ChangeReply> {
        let order = &plan.order;
        must(order, !plan.before.is_empty(), "issues no ticket anew")?;
        let (mut set, mut condition) = (Vec::new(), "#state = :paid".to_owned());
        let mut with: Vec<Value> = vec![("paid", text(OrderState::Paid.as_str()))];
        for (ticket, before) in &plan.before {
            let (path, name) = (path(order, *ticket)?, name_in(&AFTER, *ticket));
            set.push(format!("{path}.#{TICKET_ISSUE} = :{name}"));
            with.push((name, number(before.next().get())));
            let (seen, value) = is_live(&path, *before, name_in(&BEFORE, *ticket));
            condition.push_str(&format!(" AND {seen}"));
            with.extend(value);
        }
        let set = format!("SET {}", set.join(", "));
        let change = update(self.orders(), order_key(order.number), &set, &condition, with)?;
        let mut items: Plan<'_> = vec![(Part::Order, change)];
        let revoked = self.revoked_of(order, &plan.revokes())?;
        items.extend(revoked.map(|revoked| (Part::Revoked, revoked)));
        self.done_or_conflict(items).await
    }

    pub(super) async fn check_in(&self, plan: &CheckInPlan) -> Stored<ChangeReply> {
        let CheckInPlan { order, serial, check_in: CheckIn { at, door } } = plan;
        let path = path(order, serial.ticket)?;
        let set = format!("SET {path}.#{TICKET_SCANNED} = :at, {path}.#{TICKET_DOOR} = :door");
        let (live, issue) = is_live(&path, serial.issue, "issue");
        let condition =
            format!("#state = :paid AND {live} AND attribute_not_exists({path}.#{TICKET_SCANNED})");
        let mut with: Vec<Value> = vec![
            ("paid", text(OrderState::Paid.as_str())),
            ("at", number(at.ms())),
            ("door", text(door)),
        ];
        with.extend(issue);
        let change = update(self.orders(), order_key(order.number), &set, &condition, with)?;
        let count = self.counted(&order.sale, order.number, "ADD #admitted :one")?;
        self.done_or_conflict(vec![(Part::Order, change), (Part::Statistics, count)]).await
    }

    pub(super) async fn check_in_again(&self, double: &DoubleCheckIn) -> Stored<ChangeReply> {
        let put = put_new(&self.db.tables().sales, double_item(double))?;
        let count = self.counted(&double.sale, double.order, "ADD #doubles :one")?;
        self.done_or_conflict(vec![(Part::Double, put), (Part::Statistics, count)]).await
    }

    /// Counts one check-in of an order in its sale.
    fn counted(&self, sale: &SaleId, order: OrderNumber, add: &str) -> Stored<TransactWriteItem> {
        let key =
            item([("pk", text(check_ins_key(sale))), ("sk", text(check_in_count_key(order)))]);
        update(&self.db.tables().sales, key, add, "", [("one", number(1))])
    }

    async fn done_or_conflict(&self, items: Plan<'_>) -> Stored<ChangeReply> {
        Ok(match self.commit(1, items).await? {
            Committed::Done => ChangeReply::Done,
            Committed::Cancelled(_) => ChangeReply::Conflict,
        })
    }

    pub(super) async fn revoked(
        &self,
        sale: &SaleId,
        from: Option<OrderNumber>,
        most: u16,
    ) -> Stored<RevokedPage> {
        let from = from.map(revoked_order_key).unwrap_or_default();
        // An empty sort key is none: every digit comes after a blank.
        let from = if from.is_empty() { " ".to_owned() } else { from };
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().sales),
            "#pk = :pk AND #sk >= :from",
            [("pk", text(revoked_key(sale))), ("from", text(from))],
        );
        let found = self.db.query(query.consistent_read(true), usize::from(most) + 1).await?;
        let mut orders = found.iter().map(read_revoked).collect::<Stored<Vec<RevokedOrder>>>()?;
        let next = orders.get(usize::from(most)).map(|revoked| revoked.order);
        orders.truncate(usize::from(most));
        Ok(RevokedPage { orders, next })
    }

    pub(super) async fn check_ins(&self, sale: &SaleId) -> Stored<CheckInCounts> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().sales),
            "#pk = :pk AND begins_with(#sk, :count)",
            [("pk", text(check_ins_key(sale))), ("count", text(CHECK_IN_COUNT_PREFIX))],
        );
        let shards = usize::try_from(COUNTER_SHARDS).unwrap_or(usize::MAX);
        let found = self.db.query(query.consistent_read(true), shards).await?;
        let mut counts = CheckInCounts::default();
        for shard in &found {
            let fields = Fields::from_item(shard);
            counts.admitted += fields.maybe_number::<u64>("admitted")?.unwrap_or_default();
            counts.doubles += fields.maybe_number::<u64>("doubles")?.unwrap_or_default();
        }
        Ok(counts)
    }

    pub(super) async fn doubles(
        &self,
        sale: &SaleId,
        after: Option<&String>,
        most: u16,
    ) -> Stored<DoublesPage> {
        let after = format!("{DOUBLE_PREFIX}{}", after.map(String::as_str).unwrap_or_default());
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().sales),
            "#pk = :pk AND #sk > :after",
            [("pk", text(check_ins_key(sale))), ("after", text(after))],
        );
        let found = self.db.query(query.consistent_read(true), usize::from(most) + 1).await?;
        let read = |item: &Item| read_double(sale, item);
        let mut doubles = found.iter().map(read).collect::<Stored<Vec<DoubleCheckIn>>>()?;
        let is_all = doubles.len() <= usize::from(most);
        doubles.truncate(usize::from(most));
        let next = doubles.last().filter(|_| !is_all).map(DoubleCheckIn::key);
        Ok(DoublesPage { doubles, next })
    }
}

fn double_item(double: &DoubleCheckIn) -> Item {
    let DoubleCheckIn { sale, order, ticket, first, again } = double;
    item([
        ("pk", text(check_ins_key(sale))),
        ("sk", text(format!("{DOUBLE_PREFIX}{}", double.key()))),
        ("order", text(order)),
        ("ticket", number(ticket.get())),
        ("first_at_ms", number(first.at.ms())),
        ("first_door", text(&first.door)),
        ("at_ms", number(again.at.ms())),
        ("door", text(&again.door)),
    ])
}

fn read_double(sale: &SaleId, item: &Item) -> Stored<DoubleCheckIn> {
    let fields = Fields::from_item(item);
    let ticket: u8 = fields.number("ticket")?;
    let ticket = TicketNumber::try_from(ticket);
    Ok(DoubleCheckIn {
        sale: sale.clone(),
        order: fields.text("order")?,
        ticket: ticket.map_err(|_| fields.broken("ticket", "is no ticket's number"))?,
        first: CheckIn { at: fields.time("first_at_ms")?, door: fields.text("first_door")? },
        again: CheckIn { at: fields.time("at_ms")?, door: fields.text("door")? },
    })
}

fn read_revoked(item: &Item) -> Stored<RevokedOrder> {
    let fields = Fields::from_item(item);
    let order: String = fields.text("sk")?;
    let order = order.trim_start_matches('0').parse();
    let order = order.map_err(|_| fields.broken("sk", "is no order's"))?;
    let mut tickets = BTreeMap::new();
    for (name, value) in item {
        let Some(ticket) = name.strip_prefix('t').and_then(|digits| digits.parse::<u8>().ok())
        else {
            continue;
        };
        let ticket =
            TicketNumber::try_from(ticket).map_err(|_| fields.broken(name, "is no ticket"))?;
        let lowest = value.as_n().ok().and_then(|digits| digits.parse::<u32>().ok());
        let lowest = lowest.ok_or_else(|| fields.broken(name, "is no issue"))?;
        tickets.insert(ticket, Issue::try_from(lowest).ok());
    }
    Ok(RevokedOrder { order, tickets })
}

/// The attributes of a ticket that say its issue and its check-in, while they are not those of a new one.
pub(in crate::dynamodb) fn attributes(
    issue: Issue,
    checked_in: Option<&CheckIn>,
) -> impl Iterator<Item = (&'static str, AttributeValue)> {
    let issue = (issue > Issue::FIRST).then(|| (TICKET_ISSUE, number(issue.get())));
    let scanned = checked_in.map(|check_in| {
        [(TICKET_SCANNED, number(check_in.at.ms())), (TICKET_DOOR, text(&check_in.door))]
    });
    issue.into_iter().chain(scanned.into_iter().flatten())
}
