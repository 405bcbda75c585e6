//! Settling: the facts of many orders are counted and appended to the log in one transaction.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::{join_all, try_join_all};

use super::attempts::{attempts_seen, due_of};
use super::facts::{FACTS_SEEN, facts_seen};
use super::{Committed, DynamoOrders, Part, Plan, must};
use crate::dynamodb::expressions::{Value, update};
use crate::dynamodb::items::{item, number, order_key, text};
use crate::dynamodb::tables;
use crate::dynamodb::transaction::Reason;
use engine::domain::basics::ids::{SaleId, TierId};
use engine::domain::basics::limits::MAX_LINES_PER_ORDER;
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::{LOG_SHARDS, LogRecord, LogShard, records};
use engine::domain::ledger::statistics::changes;
use engine::domain::ledger::{Account, entries, transfers};
use engine::domain::order::Order;
use engine::ports::{MAX_TRANSACTION_ITEMS, StoreError, Stored};

/// Accounts that what one order tells at once may touch: its merchant's, the fees, and for each currency the
/// provider's and what is owed. More than one currency takes captures that are refused.
const MAX_ACCOUNTS: usize = 32;
// The largest order fits a batch: itself, a counter for each line, a record of the log, and its accounts.
const _: () = assert!(2 + MAX_LINES_PER_ORDER + MAX_ACCOUNTS <= MAX_TRANSACTION_ITEMS);

/// Most transactions that one batch is tried in while others append to its shards of the log. Each that
/// fails has seen another one succeed.
const MAX_APPENDS: usize = 32;

// The counters of a tier lie in a multiple of as many shards, chosen by the same bits of an order's number: what
// is settled for one shard of the log touches none of another's.
const _: () = assert!(tables::COUNTER_SHARDS.is_multiple_of(LOG_SHARDS as u64));

/// The outcome of a batch.
enum Synced {
    /// Its orders are settled.
    All,
    /// None is settled: these are settled already, or have changed since they were read.
    Over(Vec<OrderNumber>),
    /// None is settled: another batch was appended to the log first.
    Behind,
}

impl DynamoOrders {
    pub(super) async fn sync(&self, orders: &[Order], now: Timestamp) -> Stored<Vec<OrderNumber>> {
        // Of an order that is given twice, as it was at two times, the first that has something to settle.
        let mut given = BTreeSet::new();
        let mut unsettled: Vec<&Order> =
            orders.iter().filter(|order| !order.facts.are_settled()).collect();
        unsettled.retain(|order| given.insert(order.number));
        let as_given: Vec<OrderNumber> = unsettled.iter().map(|order| order.number).collect();
        unsettled.sort_by_key(|order| order.number);
        // Each shard has items of its own, so that none stands in another's way. All end before a failure is told.
        let shards = batches(unsettled).into_iter();
        let shards = shards.map(|batches| self.settle_batches(batches, now));
        let mut settled = BTreeSet::new();
        for of_shard in join_all(shards).await {
            settled.extend(of_shard?);
        }
        Ok(as_given.into_iter().filter(|number| settled.contains(number)).collect())
    }

    /// Settles batches of one shard, one after another.
    async fn settle_batches(
        &self,
        batches: Vec<Vec<&Order>>,
        now: Timestamp,
    ) -> Stored<Vec<OrderNumber>> {
        let mut settled = Vec::new();
        for batch in batches {
            settled.extend(self.settle_batch(batch, now).await?);
        }
        Ok(settled)
    }

    /// Settles a batch, without those that are settled already; which these were not.
    async fn settle_batch(
        &self,
        mut batch: Vec<&Order>,
        now: Timestamp,
    ) -> Stored<Vec<OrderNumber>> {
        for _ in 0..MAX_APPENDS {
            let Some(first) = batch.first().copied() else { return Ok(Vec::new()) };
            match self.sync_batch(&batch, now).await? {
                Synced::All => return Ok(batch.iter().map(|order| order.number).collect()),
                Synced::Over(over) => {
                    let why = "stood in the way of its batch without a reason";
                    must(first, !over.is_empty(), why)?;
                    batch.retain(|order| !over.contains(&order.number));
                }
                Synced::Behind => {}
            }
        }
        Err(StoreError::Unavailable("the log is busy".to_owned()))
    }

    /// Settles a batch, all of its orders or none. It touches no seat: those are claimed and freed by the
    /// transactions of other orders at the same time, on other legs, and would stand in their way.
    async fn sync_batch(&self, batch: &[&Order], now: Timestamp) -> Stored<Synced> {
        let Some(first) = batch.first() else { return Ok(Synced::All) };
        let mut plan: Plan<'_> = Vec::new();
        for order in batch {
            // One with an open attempt stays due until that is closed, and a pending one until its deadline.
            let settled = Order { facts: order.facts.all_settled(), ..Order::clone(order) };
            let (due, at) = due_of(&settled);
            let (seen, version) = attempts_seen(&order.attempts);
            let mut with: Vec<Value> = vec![("all", number(order.facts.count()))];
            with.extend(facts_seen(&order.facts));
            with.extend(version);
            with.extend(at);
            let mark = update(
                self.orders(),
                order_key(order.number),
                &format!("SET #settled = :all{due}"),
                &format!("{FACTS_SEEN} AND {seen}"),
                with,
            )?;
            plan.push((Part::Order, mark));
        }
        for ((sale, tier), sum) in changes(batch.iter().copied()) {
            let key =
                item([("pk", text(sale)), ("sk", text(tables::counter_key(&tier, first.number)))]);
            let with = [("tickets", number(sum.tickets)), ("revenue", number(sum.revenue_minor))];
            let add = "ADD #tickets :tickets, #revenue_minor :revenue";
            plan.push((Part::Statistics, update(&self.db.tables().sales, key, add, "", with)?));
        }
        let (log, ledger) = (self.log(), self.ledger());
        let of_shards: Vec<(LogShard, Vec<LogRecord>)> = by_shard(batch)
            .into_iter()
            .map(|(shard, orders)| (shard, records(orders, now)))
            .collect();
        let appends =
            of_shards.iter().map(async |(shard, records)| log.append(*shard, records).await);
        for appended in try_join_all(appends).await? {
            plan.extend(appended.into_iter().map(|record| (Part::Log, record)));
        }
        for (shard, records) in &of_shards {
            let counted = ledger.count(*shard, records)?;
            plan.extend(counted.into_iter().map(|account| (Part::Account, account)));
        }
        let Committed::Cancelled(reasons) = self.commit(batch.len(), plan).await? else {
            return Ok(Synced::All);
        };
        let is_failed =
            |(_, reason): &&(Part<'_>, Reason)| matches!(reason, Reason::ConditionalCheckFailed(_));
        let over = |(order, failed): (&&Order, &(Part<'_>, Reason))| {
            is_failed(&failed).then_some(order.number)
        };
        let over: Vec<OrderNumber> = batch.iter().zip(&reasons).filter_map(over).collect();
        let is_behind = reasons.iter().filter(is_failed).any(|(part, _)| matches!(part, Part::Log));
        Ok(if over.is_empty() && is_behind { Synced::Behind } else { Synced::Over(over) })
    }
}

/// Orders by their shard of the log.
fn by_shard<'a>(orders: &[&'a Order]) -> BTreeMap<LogShard, Vec<&'a Order>> {
    let mut by_shard: BTreeMap<LogShard, Vec<&Order>> = BTreeMap::new();
    for order in orders {
        by_shard.entry(LogShard::of(order.number)).or_default().push(order);
    }
    by_shard
}

/// What a batch writes.
#[derive(Default)]
struct Size<'a> {
    orders: usize,
    counters: BTreeSet<(&'a SaleId, &'a TierId)>,
    records: BTreeSet<(LogShard, &'a SaleId)>,
    accounts: BTreeSet<(LogShard, Account, Currency)>,
}

impl<'a> Size<'a> {
    /// The number of items.
    fn items(&self) -> usize {
        self.orders + self.counters.len() + self.records.len() + self.accounts.len()
    }

    /// The batch with one more order, if that still fits into a transaction; else it stays as it is.
    fn takes(&mut self, order: &'a Order) -> bool {
        let shard = LogShard::of(order.number);
        let new = |is_known: bool| usize::from(!is_known);
        let counters: Vec<_> = order.lines.iter().map(|line| (&order.sale, &line.tier)).collect();
        let accounts: Vec<_> = entries(&transfers([order]))
            .into_keys()
            .map(|(account, currency)| (shard, account, currency))
            .collect();
        let more = 1
            + counters.iter().map(|key| new(self.counters.contains(key))).sum::<usize>()
            + new(self.records.contains(&(shard, &order.sale)))
            + accounts.iter().map(|key| new(self.accounts.contains(key))).sum::<usize>();
        if self.items() + more > MAX_TRANSACTION_ITEMS {
            return false;
        }
        self.orders += 1;
        self.counters.extend(counters);
        self.records.insert((shard, &order.sale));
        self.accounts.extend(accounts);
        true
    }
}

/// Most orders of all shards that one transaction settles: more are worth one for each shard, side by side.
const MAX_TOGETHER: usize = 32;

/// Cuts orders into batches that each fit one transaction: one batch of a few, or else some for each shard of the
/// log, so that they can be settled at the same time.
fn batches(orders: Vec<&Order>) -> Vec<Vec<Vec<&Order>>> {
    let mut size = Size::default();
    if orders.len() <= MAX_TOGETHER && orders.iter().all(|order| size.takes(order)) {
        return vec![vec![orders]];
    }
    by_shard(&orders).into_values().map(cut).collect()
}

/// Cuts orders into batches that each fit one transaction, in their order. Each order fits one.
fn cut(orders: Vec<&Order>) -> Vec<Vec<&Order>> {
    let mut batches: Vec<Vec<&Order>> = Vec::new();
    let mut size = Size::default();
    for order in orders {
        match batches.last_mut() {
            Some(batch) if size.takes(order) => batch.push(order),
            _ => {
                size = Size::default();
                size.takes(order);
                batches.push(vec![order]);
            }
        }
    }
    batches
}
