//! Reads orders, payments, claims and statistics.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::DynamoOrders;
use crate::dynamodb::expressions::keyed;
use crate::dynamodb::items::{
    Fields, Item, buyer_key, number, order_key, order_refund_key, payment_key, read_order,
    read_order_refund, read_payment, text,
};
use crate::dynamodb::tables::{self, BY_USER, DUE, leg_attribute};
use engine::domain::basics::ids::{Leg, SaleId, Seat, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::{Gene, OrderNumber};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::statistics::TierTotals;
use engine::domain::order::order_refund::{OrderRefund, RefundKey};
use engine::domain::order::{Order, PaymentKey, PaymentRecord};
use engine::ports::{BlockClaims, Claim, Due, Page, StoreError, Stored};

impl DynamoOrders {
    pub(super) async fn get(&self, number: OrderNumber) -> Stored<Option<Order>> {
        self.item(order_key(number)).await?.as_ref().map(read_order).transpose()
    }

    pub(super) async fn get_many(&self, numbers: &[OrderNumber]) -> Stored<Vec<Order>> {
        let distinct: BTreeSet<OrderNumber> = numbers.iter().copied().collect();
        let keys = distinct.into_iter().map(order_key).collect();
        let items = self.db.get_many(self.orders(), keys).await?;
        let orders = items.iter().map(read_order).collect::<Stored<Vec<Order>>>()?;
        let mut by_number: HashMap<OrderNumber, Order> =
            orders.into_iter().map(|order| (order.number, order)).collect();
        Ok(numbers.iter().filter_map(|number| by_number.remove(number)).collect())
    }

    pub(super) async fn payment(
        &self,
        order: OrderNumber,
        payment: &PaymentKey,
    ) -> Stored<Option<PaymentRecord>> {
        self.item(payment_key(order, payment)).await?.as_ref().map(read_payment).transpose()
    }

    pub(super) async fn payments(&self, order: OrderNumber) -> Stored<Vec<PaymentRecord>> {
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

    pub(super) async fn order_refund(&self, key: RefundKey) -> Stored<Option<OrderRefund>> {
        self.item(order_refund_key(key)).await?.as_ref().map(read_order_refund).transpose()
    }

    pub(super) async fn order_refunds(&self, order: OrderNumber) -> Stored<Vec<OrderRefund>> {
        let query = keyed(
            self.db.client().query().table_name(self.orders()),
            "#gene = :gene AND begins_with(#sk, :refunds)",
            [("gene", number(order.gene().get())), ("refunds", text(tables::refund_prefix(order)))],
        );
        let items = self.db.query(query.consistent_read(true), usize::MAX).await?;
        items.iter().map(read_order_refund).collect()
    }

    pub(super) async fn of_user(
        &self,
        user: &UserId,
        before: Option<OrderNumber>,
        most: u16,
    ) -> Stored<Page> {
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

    pub(super) async fn tickets_of(&self, sale: &SaleId, user: &UserId) -> Stored<Tickets> {
        match self.item(buyer_key(sale, user)).await? {
            Some(count) => Fields::from_item(&count).number("tickets"),
            None => Ok(Tickets::NONE),
        }
    }

    pub(super) async fn due(&self, shard: u8, now: Timestamp, most: u16) -> Stored<Vec<Due>> {
        let query = keyed(
            self.db.client().query().table_name(self.orders()).index_name(DUE),
            "#due_shard = :shard AND #due_ms <= :now",
            [("shard", number(shard)), ("now", number(now.ms()))],
        );
        let found = self.db.query(query, usize::from(most)).await?;
        found.iter().map(read_due).collect()
    }

    pub(super) async fn block_claims(
        &self,
        sale: &SaleId,
        tier: &TierId,
        block: u32,
    ) -> Stored<BlockClaims> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().seats),
            "#pk = :block",
            [("block", text(tables::block_key(sale, tier, block)))],
        );
        let items = self.db.query(query.consistent_read(true), usize::MAX).await?;
        let mut found = BlockClaims::default();
        for item in &items {
            read_claims(item, &mut found)?;
        }
        Ok(found)
    }

    pub(super) async fn statistics(&self, sale: &SaleId) -> Stored<Vec<(TierId, TierTotals)>> {
        let query = keyed(
            self.db.client().query().table_name(&self.db.tables().sales),
            "#pk = :sale AND begins_with(#sk, :counters)",
            [("sale", text(sale)), ("counters", text("counter#"))],
        );
        let shards = self.db.query(query.consistent_read(true), usize::MAX).await?;
        // A refund is taken off in the shard of the batch that it is settled in: one shard by itself may be
        // below zero.
        let mut sums: BTreeMap<TierId, (i64, MinorUnits)> = BTreeMap::new();
        for shard in &shards {
            let fields = Fields::from_item(shard);
            let sk: String = fields.text("sk")?;
            let tier = tables::tier_of_counter(&sk)
                .ok_or_else(|| StoreError::Contract(format!("sale {sale}: counter {sk}")))?;
            let sum = sums.entry(tier).or_default();
            sum.0 = sum.0.saturating_add(fields.number::<i64>("tickets")?);
            sum.1 += fields.number::<MinorUnits>("revenue_minor")?;
        }
        let totals = |(tier, (tickets, revenue_minor)): (TierId, (i64, MinorUnits))| {
            let below = |_| StoreError::Contract(format!("sale {sale}: {tier} counts {tickets}"));
            let tickets = u64::try_from(tickets).map_err(below)?;
            Ok((tier, TierTotals { tickets, revenue_minor }))
        };
        sums.into_iter().map(totals).collect()
    }

    async fn item(&self, key: Item) -> Stored<Option<Item>> {
        self.db.get(self.orders(), key).await
    }
}

/// The primary key of an item that an index names, in the partition of `order`.
fn primary_key(mut key: Item, order: OrderNumber) -> Item {
    let sk = key.remove("sk").into_iter().map(|sk| ("sk".to_owned(), sk));
    sk.chain([("gene".to_owned(), number(order.gene().get()))]).collect()
}

fn number_of(key: &Item) -> Stored<OrderNumber> {
    let sk: String = Fields::from_item(key).text("sk")?;
    tables::order_of_key(&sk).ok_or_else(|| StoreError::Contract(format!("{sk} among orders")))
}

fn read_due(key: &Item) -> Stored<Due> {
    let fields = Fields::from_item(key);
    let sk: String = fields.text("sk")?;
    if let Some(refund) = tables::refund_of_key(&sk) {
        return Ok(Due::OrderRefund(refund));
    }
    match tables::payment_of_key(&sk) {
        Some(payment) => Ok(Due::Refund(fields.text("order")?, payment)),
        None => number_of(key).map(Due::Order),
    }
}

fn read_claims(item: &Item, found: &mut BlockClaims) -> Stored<()> {
    let fields = Fields::from_item(item);
    let seat = Seat(fields.number("sk")?);
    let mut legs: Vec<Leg> =
        item.keys().filter_map(|name| tables::leg_of_attribute(name)).collect();
    legs.sort_unstable();
    for leg in legs {
        found.claims.push(Claim { seat, leg, order: fields.text(&leg_attribute(leg))? });
    }
    if item.contains_key("returned") {
        let orders: BTreeSet<OrderNumber> = fields.text_set("returned")?;
        found.returned.extend(orders.into_iter().map(|order| (seat, order)));
    }
    Ok(())
}
