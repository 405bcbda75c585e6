//! The orders in DynamoDB: every change of an order is one transaction with the claims it makes or
//! frees, so that claims and live orders correspond whatever crashes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem};

use super::dynamo::{Dynamo, Transacted, Value, Verdict, delete, keyed, put_new, update};
use super::items::{
    Fields, Item, attendee_item, attendee_key, buyer_key, due, item, number, order_item, order_key,
    payment_item, payment_key, read_order, read_payment, refund_attributes, seat_key, text,
};
use super::tables::{self, BY_USER, DUE, leg_attribute};
use engine::domain::ids::{AttendeeId, SaleId, Seat, TierId, UserId};
use engine::domain::inventory::SeatLeg;
use engine::domain::number::{Gene, OrderNumber};
use engine::domain::order::{
    Order, OrderLine, OrderState, PaymentKey, PaymentRecord, TierTotals, totals,
};
use engine::domain::refund::RefundState;
use engine::domain::time::Timestamp;
use engine::ports::{
    ChangeReply, Claim, CreateReply, Due, FOLLOW_UP_SECONDS, MAX_TRANSACTION_ITEMS, Orders, Page,
    SettleReply, Settlement, StoreError, Stored, block_of,
};

/// The orders of every sale, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoOrders {
    db: Dynamo,
}

/// What one item of a transaction is about, to read its refusal by.
#[derive(Debug, Clone, Copy)]
enum Part<'a> {
    Order,
    Payment,
    Seat(&'a OrderLine, Seat),
    Buyer,
    Attendee(&'a AttendeeId),
    Statistics,
}

/// A transaction and what each of its items is about.
type Plan<'a> = Vec<(Part<'a>, TransactWriteItem)>;

/// What stands against an order's claims.
#[derive(Debug, Default)]
struct Obstacles {
    seats: Vec<SeatLeg>,
    tickets: Option<u16>,
    attendee: Option<AttendeeId>,
}

impl Obstacles {
    /// The refusal that outranks the others.
    fn reply(self) -> Option<CreateReply> {
        if !self.seats.is_empty() {
            return Some(CreateReply::SeatsTaken(self.seats));
        }
        let limit = self.tickets.map(|held| CreateReply::LimitReached { held });
        limit.or_else(|| self.attendee.map(CreateReply::AttendeeTaken))
    }
}

impl DynamoOrders {
    /// The orders behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    fn orders(&self) -> &str {
        &self.db.tables().orders
    }

    /// Everything an order takes when it comes to life: its seat-legs, its share of the buyer's
    /// limit, its attendees.
    fn claims_of<'a>(&self, order: &'a Order, limit: u16) -> Stored<Plan<'a>> {
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

    fn count_up(&self, order: &Order, limit: u16) -> Stored<TransactWriteItem> {
        let tickets = order.tickets();
        let (condition, bound) = match limit.checked_sub(tickets) {
            Some(most) => ("attribute_not_exists(#tickets) OR #tickets <= :bound", most),
            // More than the limit at once: false whatever the buyer has, as no count is negative.
            None => ("#tickets < :bound", 0),
        };
        let with = [("more", number(tickets)), ("bound", number(bound))];
        let key = buyer_key(&order.sale, &order.user);
        update(self.orders(), key, "ADD #tickets :more", condition, with)
    }

    /// Everything an order gives back when it ends unpaid.
    fn frees_of<'a>(&self, order: &'a Order) -> Stored<Plan<'a>> {
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

    async fn carry_out<'a>(
        &self,
        leading: usize,
        plan: Plan<'a>,
    ) -> Stored<Result<(), Vec<(Part<'a>, Verdict)>>> {
        let (parts, items): (Vec<Part<'a>>, Vec<TransactWriteItem>) = plan.into_iter().unzip();
        match self.db.transact(leading, items).await? {
            Transacted::Done => Ok(Ok(())),
            Transacted::Refused(verdicts) => Ok(Err(parts.into_iter().zip(verdicts).collect())),
        }
    }

    async fn item(&self, key: Item) -> Stored<Option<Item>> {
        self.db.get(self.orders(), key).await
    }

    /// Adds a batch to the statistics; those of its orders whose turn is over are returned.
    async fn sync_batch(&self, batch: &[&Order]) -> Stored<Result<(), BTreeSet<OrderNumber>>> {
        let Some(first) = batch.first() else { return Ok(Ok(())) };
        let mut plan: Plan<'_> = Vec::new();
        for order in batch {
            let with =
                [("paid", text(OrderState::Paid.as_str())), ("yes", AttributeValue::Bool(true))];
            let mark = update(
                self.orders(),
                order_key(order.number),
                "SET #synced = :yes REMOVE #due_shard, #due_ms",
                "#state = :paid AND attribute_not_exists(#synced)",
                with,
            )?;
            plan.push((Part::Order, mark));
        }
        for (block, seat, legs) in sold_seats(batch) {
            let key = item([("pk", text(block)), ("sk", number(seat))]);
            let legs = legs.iter().map(u16::to_string).collect();
            let with = [("legs", AttributeValue::Ns(legs))];
            let seats = &self.db.tables().seats;
            plan.push((Part::Statistics, update(seats, key, "ADD #sold :legs", "", with)?));
        }
        for ((sale, tier), sum) in totals(batch.iter().copied()) {
            let key =
                item([("pk", text(sale)), ("sk", text(tables::counter_key(&tier, first.number)))]);
            let with = [("tickets", number(sum.tickets)), ("revenue", number(sum.revenue_minor))];
            let add = "ADD #tickets :tickets, #revenue_minor :revenue";
            plan.push((Part::Statistics, update(&self.db.tables().sales, key, add, "", with)?));
        }
        let Err(verdicts) = self.carry_out(batch.len(), plan).await? else { return Ok(Ok(())) };
        let over = |(order, (_, verdict)): (&&Order, &(Part<'_>, Verdict))| {
            matches!(verdict, Verdict::Failed(_)).then_some(order.number)
        };
        Ok(Err(batch.iter().zip(&verdicts).filter_map(over).collect()))
    }
}

/// The seats of some orders with the legs sold. Orders that share a seat on different legs share
/// its entry, because a transaction may name an item only once.
fn sold_seats(orders: &[&Order]) -> Vec<(String, u32, BTreeSet<u16>)> {
    let mut seats: BTreeMap<(String, u32), BTreeSet<u16>> = BTreeMap::new();
    for order in orders {
        for line in &order.lines {
            for ticket in &line.tickets {
                let block = block_of(ticket.seat);
                let block = tables::block_key(&order.sale, &line.tier, block);
                seats.entry((block, ticket.seat.0)).or_default().extend(line.legs.iter());
            }
        }
    }
    seats.into_iter().map(|((block, seat), legs)| (block, seat, legs)).collect()
}

/// Most items that an order and its counters can add to a batch.
fn weight(order: &Order) -> usize {
    1 + usize::from(order.tickets()) + order.lines.len()
}

/// Cuts orders into batches that each fit one transaction.
fn batches<'a>(orders: &[&'a Order]) -> Vec<Vec<&'a Order>> {
    let mut batches: Vec<Vec<&Order>> = Vec::new();
    let mut room = 0;
    for order in orders {
        match batches.last_mut() {
            Some(batch) if weight(order) <= room => batch.push(order),
            _ => {
                room = MAX_TRANSACTION_ITEMS;
                batches.push(vec![order]);
            }
        }
        room = room.saturating_sub(weight(order));
    }
    batches
}

/// What stands against the claims of `order`. Claims of this very order do not.
fn obstacles(order: &Order, verdicts: &[(Part<'_>, Verdict)]) -> Stored<Obstacles> {
    let mut obstacles = Obstacles::default();
    for (part, verdict) in verdicts {
        let Verdict::Failed(item) = verdict else { continue };
        let fields = Fields::of(item);
        match part {
            Part::Seat(line, seat) => {
                for leg in line.legs.iter() {
                    let owner: Option<OrderNumber> = fields.maybe_text(&leg_attribute(leg))?;
                    if owner.is_some_and(|owner| owner != order.number) {
                        let tier = line.tier.clone();
                        obstacles.seats.push(SeatLeg { tier, leg, seat: *seat });
                    }
                }
            }
            Part::Buyer => {
                obstacles.tickets = Some(fields.maybe_number("tickets")?.unwrap_or(0));
            }
            Part::Attendee(attendee) => {
                let owner: OrderNumber = fields.text("order")?;
                if owner != order.number && obstacles.attendee.is_none() {
                    obstacles.attendee = Some((*attendee).clone());
                }
            }
            Part::Order | Part::Payment | Part::Statistics => {}
        }
    }
    Ok(obstacles)
}

/// The item on which the condition of a leading part failed.
fn failed_leader<'v>(
    verdicts: &'v [(Part<'_>, Verdict)],
    is_it: impl Fn(&Part<'_>) -> bool,
) -> Option<&'v Item> {
    verdicts.iter().find_map(|(part, verdict)| match verdict {
        Verdict::Failed(item) if is_it(part) => Some(item),
        Verdict::Failed(_) | Verdict::Fine | Verdict::Busy => None,
    })
}

/// The attendee that an order names twice: it could not claim both in one transaction.
fn named_twice(order: &Order) -> Option<&AttendeeId> {
    let mut seen = BTreeSet::new();
    order.attendees().find(|attendee| !seen.insert(*attendee))
}

fn must(order: &Order, is_so: bool, what: &str) -> Stored<()> {
    let broken = || StoreError::Contract(format!("order {}: {what}", order.number));
    is_so.then_some(()).ok_or_else(broken)
}

impl Orders for DynamoOrders {
    async fn create(&self, order: &Order, limit: u16) -> Stored<CreateReply> {
        must(order, order.state == OrderState::Pending, "is created in another state")?;
        must(order, !order.is_tombstone(), "is created without lines")?;
        if let Some(attendee) = named_twice(order) {
            let reply = || CreateReply::AttendeeTaken(attendee.clone());
            let existing = self.get(order.number).await?;
            return Ok(existing.map_or_else(reply, |order| CreateReply::Exists(Box::new(order))));
        }
        let mut plan = vec![(Part::Order, put_new(self.orders(), order_item(order))?)];
        plan.extend(self.claims_of(order, limit)?);
        let Err(verdicts) = self.carry_out(1, plan).await? else {
            return Ok(CreateReply::Created);
        };
        if let Some(existing) = failed_leader(&verdicts, |part| matches!(part, Part::Order)) {
            return Ok(CreateReply::Exists(Box::new(read_order(existing)?)));
        }
        if let Some(reply) = obstacles(order, &verdicts)?.reply() {
            return Ok(reply);
        }
        // Only its own claims stood against it, so it should exist.
        match self.get(order.number).await? {
            Some(order) => Ok(CreateReply::Exists(Box::new(order))),
            None => Err(StoreError::Contract(format!(
                "order {}: claims without their order: {verdicts:?}",
                order.number
            ))),
        }
    }

    async fn end(&self, end: &Order) -> Stored<ChangeReply> {
        let ends = matches!(end.state, OrderState::Cancelled | OrderState::Expired);
        must(end, ends, "is ended in another state")?;
        let change = update(
            self.orders(),
            order_key(end.number),
            "SET #state = :state, #changed_ms = :changed REMOVE #due_shard, #due_ms",
            "#state = :pending",
            [
                ("state", text(end.state.as_str())),
                ("changed", number(end.changed_at.ms())),
                ("pending", text(OrderState::Pending.as_str())),
            ],
        )?;
        let mut plan = vec![(Part::Order, change)];
        plan.extend(self.frees_of(end)?);
        let Err(verdicts) = self.carry_out(1, plan).await? else { return Ok(ChangeReply::Done) };
        if failed_leader(&verdicts, |part| matches!(part, Part::Order)).is_some() {
            return Ok(ChangeReply::Conflict);
        }
        // Its claims are gone. Either another transaction was ending it meanwhile, or they were
        // never its own.
        match self.get(end.number).await? {
            Some(order) if order.state == OrderState::Pending => Err(StoreError::Contract(
                format!("order {}: pending without its claims: {verdicts:?}", end.number),
            )),
            _ => Ok(ChangeReply::Conflict),
        }
    }

    async fn write_tombstone(&self, tombstone: &Order) -> Stored<ChangeReply> {
        must(tombstone, tombstone.is_tombstone(), "is buried with lines")?;
        must(tombstone, tombstone.state == OrderState::Expired, "is buried alive")?;
        let plan = vec![(Part::Order, put_new(self.orders(), order_item(tombstone))?)];
        Ok(match self.carry_out(1, plan).await? {
            Ok(()) => ChangeReply::Done,
            Err(_) => ChangeReply::Conflict,
        })
    }

    async fn settle(
        &self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: u16,
    ) -> Stored<SettleReply> {
        let mut plan = vec![(Part::Payment, put_new(self.orders(), payment_item(payment))?)];
        let ended = [OrderState::Cancelled, OrderState::Expired];
        match settlement {
            Settlement::Pay(order) => {
                must(order, order.state == OrderState::Paid, "is paid in another state")?;
                let from = [OrderState::Pending; 2];
                plan.push((Part::Order, self.settled(order, payment, from)?));
            }
            Settlement::Rescue(order) => {
                must(order, order.state == OrderState::Paid, "is rescued in another state")?;
                plan.push((Part::Order, self.settled(order, payment, ended)?));
                plan.extend(self.claims_of(order, limit)?);
            }
            Settlement::PayTooLate(order) => {
                must(order, order.state == OrderState::RefundDue, "is refunded in another state")?;
                plan.push((Part::Order, self.settled(order, payment, ended)?));
            }
            Settlement::RefundOnly => {}
        }
        let leading = plan.len().min(2);
        let Err(verdicts) = self.carry_out(leading, plan).await? else {
            return Ok(SettleReply::Settled);
        };
        if let Some(known) = failed_leader(&verdicts, |part| matches!(part, Part::Payment)) {
            return Ok(SettleReply::Known(read_payment(known)?));
        }
        if failed_leader(&verdicts, |part| matches!(part, Part::Order)).is_some() {
            return Ok(SettleReply::Conflict);
        }
        Ok(SettleReply::Gone)
    }

    async fn record_refund(
        &self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let mut plan = vec![(Part::Payment, self.refunding(payment)?)];
        if let Some(order) = order {
            plan.push((Part::Order, self.refunded(order, payment)?));
        }
        let leading = plan.len();
        Ok(match self.carry_out(leading, plan).await? {
            Ok(()) => ChangeReply::Done,
            Err(_) => ChangeReply::Conflict,
        })
    }

    async fn sync(&self, orders: &[Order]) -> Stored<Vec<OrderNumber>> {
        let mut seen = BTreeSet::new();
        let due = |order: &&Order| order.state == OrderState::Paid && !order.synced;
        let orders: Vec<&Order> =
            orders.iter().filter(due).filter(|order| seen.insert(order.number)).collect();
        let mut counted = Vec::new();
        for mut batch in batches(&orders) {
            // Every round leaves out at least one order, so this ends.
            while let Err(over) = self.sync_batch(&batch).await? {
                must(batch[0], !over.is_empty(), "stood in the way of its batch without a reason")?;
                batch.retain(|order| !over.contains(&order.number));
            }
            counted.extend(batch.iter().map(|order| order.number));
        }
        Ok(counted)
    }

    async fn get(&self, number: OrderNumber) -> Stored<Option<Order>> {
        self.item(order_key(number)).await?.as_ref().map(read_order).transpose()
    }

    async fn get_many(&self, numbers: &[OrderNumber]) -> Stored<Vec<Order>> {
        let distinct: BTreeSet<OrderNumber> = numbers.iter().copied().collect();
        let keys = distinct.into_iter().map(order_key).collect();
        let items = self.db.get_many(self.orders(), keys).await?;
        let orders = items.iter().map(read_order).collect::<Stored<Vec<Order>>>()?;
        let mut by_number: HashMap<OrderNumber, Order> =
            orders.into_iter().map(|order| (order.number, order)).collect();
        Ok(numbers.iter().filter_map(|number| by_number.remove(number)).collect())
    }

    async fn payment(
        &self,
        order: OrderNumber,
        payment: &PaymentKey,
    ) -> Stored<Option<PaymentRecord>> {
        self.item(payment_key(order, payment)).await?.as_ref().map(read_payment).transpose()
    }

    async fn payments(&self, order: OrderNumber) -> Stored<Vec<PaymentRecord>> {
        let query = keyed(
            self.db.client().query().table_name(self.orders()).index_name(BY_USER),
            "#gene = :gene AND begins_with(#by_user, :ledger)",
            [("gene", number(order.gene().get())), ("ledger", text(tables::ledger_prefix(order)))],
        );
        let keys = self.db.query(query.consistent_read(true), usize::MAX).await?;
        let keys = keys.into_iter().map(|key| primary_key(key, order)).collect();
        // The index carries keys only; payments are never deleted.
        let items = self.db.get_many(self.orders(), keys).await?;
        let mut payments = items.iter().map(read_payment).collect::<Stored<Vec<_>>>()?;
        payments.sort_by(|one, other| {
            let key = |record: &PaymentRecord| (record.decided_at, record.capture.key.clone());
            key(one).cmp(&key(other))
        });
        Ok(payments)
    }

    async fn of_user(&self, user: &UserId, before: Option<OrderNumber>, most: u16) -> Stored<Page> {
        let last = match before.map(|before| tables::by_user_key(user, before)) {
            Some(last) => last,
            // `~` comes after every digit.
            None => format!("{user}#~"),
        };
        let query = keyed(
            self.db.client().query().table_name(self.orders()).index_name(BY_USER),
            "#gene = :gene AND #by_user BETWEEN :first AND :last",
            [
                ("gene", number(Gene::from_text(user.as_str()).get())),
                ("first", text(format!("{user}#"))),
                ("last", text(last)),
            ],
        );
        let query = query.consistent_read(true).scan_index_forward(false);
        // One more than the page, to know if another follows, and one for `before` itself, which
        // BETWEEN includes.
        let found = self.db.query(query, usize::from(most) + 2).await?;
        let numbers = found.iter().map(number_of).collect::<Stored<Vec<OrderNumber>>>()?;
        let numbers: Vec<OrderNumber> =
            numbers.into_iter().filter(|number| Some(*number) != before).collect();
        let page = &numbers[..numbers.len().min(usize::from(most))];
        let next = (numbers.len() > page.len()).then(|| page.last().copied()).flatten();
        // The index carries keys only; orders are never deleted.
        Ok(Page { orders: self.get_many(page).await?, next })
    }

    async fn due(&self, shard: u8, now: Timestamp, most: u16) -> Stored<Vec<Due>> {
        let query = keyed(
            self.db.client().query().table_name(self.orders()).index_name(DUE),
            "#due_shard = :shard AND #due_ms <= :now",
            [("shard", number(shard)), ("now", number(now.ms()))],
        );
        let found = self.db.query(query, usize::from(most)).await?;
        found.iter().map(read_due).collect()
    }

    async fn claims(&self, sale: &SaleId, tier: &TierId, block: u32) -> Stored<Vec<Claim>> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().seats),
            "#pk = :block",
            [("block", text(tables::block_key(sale, tier, block)))],
        );
        let items = self.db.query(query.consistent_read(true), usize::MAX).await?;
        let mut claims = Vec::new();
        for item in &items {
            read_claims(item, &mut claims)?;
        }
        Ok(claims)
    }

    async fn statistics(&self, sale: &SaleId) -> Stored<Vec<(TierId, TierTotals)>> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().sales),
            "#pk = :sale AND begins_with(#sk, :counters)",
            [("sale", text(sale)), ("counters", text("counter#"))],
        );
        let shards = self.db.query(query.consistent_read(true), usize::MAX).await?;
        let mut sums: BTreeMap<TierId, TierTotals> = BTreeMap::new();
        for shard in &shards {
            let fields = Fields::of(shard);
            let sk: String = fields.text("sk")?;
            let tier = tables::tier_of_counter(&sk)
                .ok_or_else(|| StoreError::Contract(format!("sale {sale}: counter {sk}")))?;
            let sum = sums.entry(tier).or_default();
            sum.tickets += fields.number::<u64>("tickets")?;
            sum.revenue_minor += fields.number::<i64>("revenue_minor")?;
        }
        Ok(sums.into_iter().collect())
    }
}

impl DynamoOrders {
    /// Writes into an order what became of its payment.
    fn settled(
        &self,
        order: &Order,
        payment: &PaymentRecord,
        from: [OrderState; 2],
    ) -> Stored<TransactWriteItem> {
        must(order, order.payment.is_some(), "is settled without a payment")?;
        let key = &payment.capture.key;
        let [one, other] = from.map(|state| text(state.as_str()));
        let mut expression = "SET #state = :state, #changed_ms = :changed, \
             #payment_provider = :provider, #payment_id = :payment"
            .to_owned();
        let mut with: Vec<Value> = vec![
            ("state", text(order.state.as_str())),
            ("changed", number(order.changed_at.ms())),
            ("provider", text(&key.provider)),
            ("payment", text(&key.payment)),
            ("one", one),
            ("other", other),
        ];
        if order.state == OrderState::Paid {
            expression.push_str(", #due_shard = :due_shard, #due_ms = :due_ms");
            with.extend(due(order.number, payment.decided_at.plus_seconds(FOLLOW_UP_SECONDS)));
        }
        let condition = "#state IN (:one, :other) AND attribute_not_exists(#payment_id)";
        update(self.orders(), order_key(order.number), &expression, condition, with)
    }

    /// Writes into a payment where its refund stands, over a state that it may follow.
    fn refunding(&self, payment: &PaymentRecord) -> Stored<TransactWriteItem> {
        let PaymentRecord { capture, refund, .. } = payment;
        let Some(refund) = refund else {
            let PaymentKey { provider, payment } = &capture.key;
            let broken = format!("payment {provider} {payment}: is refunded and was accepted");
            return Err(StoreError::Contract(broken));
        };
        let mut with: Vec<Value> = refund_attributes(capture.order, refund).collect();
        let set: Vec<String> = with.iter().map(|(name, _)| format!("#{name} = :{name}")).collect();
        let is_written = |name: &&&str| with.iter().any(|(written, _)| *written == **name);
        let all = ["refusal", "due_shard", "due_ms"];
        let gone: Vec<String> =
            all.iter().filter(|name| !is_written(name)).map(|name| format!("#{name}")).collect();
        let remove =
            if gone.is_empty() { String::new() } else { format!(" REMOVE {}", gone.join(", ")) };
        const FROM: [&str; RefundState::ALL.len()] = ["from0", "from1", "from2", "from3", "from4"];
        let before = RefundState::ALL.into_iter().filter(|state| state.may_become(refund.state));
        let from: Vec<Value> =
            FROM.into_iter().zip(before.map(|state| text(state.as_str()))).collect();
        let names: Vec<String> = from.iter().map(|(name, _)| format!(":{name}")).collect();
        let condition = format!("#refund_state IN ({})", names.join(", "));
        with.extend(from);
        let expression = format!("SET {}{remove}", set.join(", "));
        let key = payment_key(capture.order, &capture.key);
        update(self.orders(), key, &expression, &condition, with)
    }

    /// Writes into an order that the money of its own payment is back.
    fn refunded(&self, order: &Order, payment: &PaymentRecord) -> Stored<TransactWriteItem> {
        must(order, order.state == OrderState::Refunded, "is refunded in another state")?;
        let key = &payment.capture.key;
        must(order, order.payment.as_ref() == Some(key), "is refunded by another payment")?;
        let condition =
            "#state = :refund_due AND #payment_provider = :provider AND #payment_id = :payment";
        let with = [
            ("state", text(order.state.as_str())),
            ("changed", number(order.changed_at.ms())),
            ("refund_due", text(OrderState::RefundDue.as_str())),
            ("provider", text(&key.provider)),
            ("payment", text(&key.payment)),
        ];
        let set = "SET #state = :state, #changed_ms = :changed";
        update(self.orders(), order_key(order.number), set, condition, with)
    }
}

/// The primary key of an item that an index names, in the partition of `order`.
fn primary_key(mut key: Item, order: OrderNumber) -> Item {
    let sk = key.remove("sk").into_iter().map(|sk| ("sk".to_owned(), sk));
    sk.chain([("gene".to_owned(), number(order.gene().get()))]).collect()
}

fn number_of(key: &Item) -> Stored<OrderNumber> {
    let sk: String = Fields::of(key).text("sk")?;
    tables::order_of_key(&sk).ok_or_else(|| StoreError::Contract(format!("{sk} among orders")))
}

fn read_due(key: &Item) -> Stored<Due> {
    let fields = Fields::of(key);
    let sk: String = fields.text("sk")?;
    match tables::payment_of_key(&sk) {
        Some(payment) => Ok(Due::Refund(fields.text("order")?, payment)),
        None => number_of(key).map(Due::Order),
    }
}

fn read_claims(item: &Item, claims: &mut Vec<Claim>) -> Stored<()> {
    let fields = Fields::of(item);
    let seat = Seat(fields.number("sk")?);
    let mut legs: Vec<u16> =
        item.keys().filter_map(|name| tables::leg_of_attribute(name)).collect();
    legs.sort_unstable();
    for leg in legs {
        claims.push(Claim { seat, leg, order: fields.text(&leg_attribute(leg))? });
    }
    Ok(())
}
