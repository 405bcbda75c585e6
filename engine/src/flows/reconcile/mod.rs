//! Reconcile: the sweeper and the repair. Queues are a hint; this is the truth.
//!
//! The sweeper finishes the due work in DynamoDB and in Redis, loads sales that Redis has lost, and compares the two
//! stores tier by tier: hold by hold, with a compare-and-set, while the sale continues. Every difference is a
//! [`Discrepancy`]; a dry run only lists them.

use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, pending};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use futures_util::future::join_all;

mod bought;
mod due;
mod limit;
mod repair;
mod report;

pub use report::{Outcome, Report, Run};

use crate::domain::basics::ids::{Epoch, InventoryId, SaleId};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::inventory::Repair;
use crate::domain::order::{Order, OrderState};
use crate::domain::sale::Sale;
use crate::flows::archive;
use crate::flows::discrepancy::{Discrepancy, Explanation, SaleSnapshot};
use crate::flows::hold::sale_of;
use crate::flows::load::{heads, not_current, terms};
use crate::flows::tokens::{self, Bought};
use crate::ports::{Catalogue, Freshness, Orders, Ports, Published, Seats, StoreError, Stored};

use limit::Limit;
use repair::{repair_discrepancies, repair_discrepancy};

/// Most work taken from one shard of the index, or from one sale's deadlines, in one run.
const MAX_DUE: u16 = 500;
/// Time after the last possible payment of its orders from which a sale counts as at rest: nobody
/// changes it, so it is compared once an hour instead of every minute. Its deadlines are still
/// kept.
const AT_REST_AFTER_SECONDS: i64 = 24 * 60 * 60;
/// Time for which a discrepancy must have stayed the same to count as drift: a younger one may be a
/// change that one of the stores is about to get.
const SETTLED_SECONDS: i64 = 60;
/// Minutes between two comparisons of a sale at rest.
const MINUTES_AT_REST: i64 = 60;
/// Most blocks that are read again in one comparison, because seats of them were freed while the sale
/// was read, and how often each is.
const MAX_READ_AGAIN: usize = 64;
const READINGS: usize = 8;
/// Most names of unfinished work that are logged.
const LEFT_NAMED: usize = 8;

/// Does everything that is due, then compares Redis with DynamoDB. `epoch` is the name that a load
/// gets if one is needed.
///
/// # Errors
/// Fails only if the sales cannot be listed; a piece of work that fails is counted.
pub async fn reconcile(ports: &impl Ports, epoch: &Epoch, now: Timestamp) -> Stored<Report> {
    run(ports, epoch, now).await.map(|run| run.report)
}

/// Does as [`reconcile`], and returns each discrepancy with its outcome.
///
/// # Errors
/// As [`reconcile`].
pub async fn run(ports: &impl Ports, epoch: &Epoch, now: Timestamp) -> Stored<Run> {
    run_until(ports, epoch, now, [pending(), pending(), pending()]).await
}

/// Does as [`run`], with a time limit for each of three parts: finishing the due work in DynamoDB; loading sales and
/// finishing the due work in Redis; comparing. At its limit a part stops where it is, as if the process had died there,
/// which is allowed at every step. Work that got no time is counted, and has another place in the next minute's order,
/// so that no work waits for ever behind slow work.
///
/// # Errors
/// As [`reconcile`].
pub async fn run_until(
    ports: &impl Ports,
    epoch: &Epoch,
    now: Timestamp,
    ends: [impl Future<Output = ()> + Send; 3],
) -> Stored<Run> {
    Pass::new(ports, Some(epoch), now, true).go(ends).await
}

/// Does as [`reconcile`] for every sale, also those at rest, and returns each discrepancy with its outcome.
///
/// # Errors
/// As [`reconcile`].
pub async fn reconcile_all(ports: &impl Ports, epoch: &Epoch, now: Timestamp) -> Stored<Run> {
    Pass::new(ports, Some(epoch), now, false).go([pending(), pending(), pending()]).await
}

/// Finds everything that [`reconcile_all`] would find now. Changes nothing. A sale that is not loaded is not compared:
/// a load writes all of it.
///
/// # Errors
/// As [`reconcile`].
pub async fn dry_run(ports: &impl Ports, now: Timestamp) -> Stored<Run> {
    Pass::new(ports, None, now, false).go([pending(), pending(), pending()]).await
}

/// One run over everything.
struct Pass<'a, P> {
    ports: &'a P,
    /// The name of a load; `None` for a dry run, which repairs nothing.
    epoch: Option<&'a Epoch>,
    now: Timestamp,
    /// True for the run of each minute: it compares sales at rest more seldom, and changes the
    /// order of its work.
    is_scheduled: bool,
    run: Run,
    /// Names of the work for which no time was left.
    left: Vec<String>,
    /// Orders that were pending past their bound: what fails is read twice.
    past_bound: BTreeSet<OrderNumber>,
}

impl<'a, P: Ports> Pass<'a, P> {
    fn new(ports: &'a P, epoch: Option<&'a Epoch>, now: Timestamp, is_scheduled: bool) -> Self {
        let (run, past_bound) = (Run::default(), BTreeSet::new());
        Self { ports, epoch, now, is_scheduled, run, left: Vec::new(), past_bound }
    }

    async fn go<E: Future<Output = ()> + Send>(mut self, ends: [E; 3]) -> Stored<Run> {
        let [mut finishing, mut preparing, mut comparing] = ends.map(Limit::until);
        let finished = self.finish_orders_until_done(&mut finishing).await;
        let mut selling = Vec::new();
        // Every sale is loaded and its deadlines are kept before the first sale is compared, which may take long.
        for sale in self.in_turn(self.ports.catalogue().sales().await?) {
            match preparing.within(self.prepare(&sale, &finished)).await {
                Some(Ok(Some(published))) => selling.push(published),
                Some(Ok(None)) => {}
                Some(Err(error)) => self.unread(&sale, &error),
                None => self.left.push(sale.to_string()),
            }
        }
        for published in selling {
            if self.is_scheduled && is_at_rest(&published.sale, self.now) {
                continue;
            }
            match comparing.within(self.compare(&published)).await {
                Some(Ok(())) => self.record_if_over(&published.sale),
                Some(Err(error)) => self.unread(published.sale.id(), &error),
                None => self.left.push(published.sale.id().to_string()),
            }
        }
        if !self.left.is_empty() {
            let (count, first) = (self.left.len(), &self.left[..self.left.len().min(LEFT_NAMED)]);
            tracing::warn!(count, ?first, "there was no time: left to the next run");
        }
        self.run.report.left = u32::try_from(self.left.len()).unwrap_or(u32::MAX);
        self.run.past_bound = u64::try_from(self.past_bound.len()).unwrap_or(u64::MAX);
        Ok(self.run)
    }

    /// Removes the keys and the list entry that are left of an archived sale, if the archiving was cut off.
    async fn finish_archiving(&mut self, published: &Published) -> Stored<()> {
        if self.epoch.is_some() {
            archive::finish(self.ports, &published.sale).await?;
            self.run.report.unloaded += 1;
        }
        Ok(())
    }

    fn record_if_over(&mut self, sale: &Sale) {
        let sold_until = sale.sells_until();
        if sold_until <= self.now {
            self.run.over.push((sale.id().clone(), sold_until));
        }
    }

    /// Puts work into the order in which it is done: each minute another random one. A rotation by a counter would
    /// begin at the same places again and again when a run takes several minutes.
    fn in_turn<T: Hash>(&self, mut work: Vec<T>) -> Vec<T> {
        if self.is_scheduled {
            let minute = self.now.ms().div_euclid(60_000);
            work.sort_by_cached_key(|one| {
                let mut hasher = DefaultHasher::new();
                (minute, one).hash(&mut hasher);
                hasher.finish()
            });
        }
        work
    }

    /// Loads a sale that Redis has lost, brings its terms to what the catalogue says, and finishes
    /// the holds that are due, apart from those of orders that were finished just now. `None` if there
    /// is nothing to compare: the sale is not loaded yet, somebody else is loading it, or it is archived.
    async fn prepare(
        &mut self,
        sale: &SaleId,
        finished: &BTreeSet<OrderNumber>,
    ) -> Stored<Option<Published>> {
        let mut published = sale_of(self.ports, sale, Freshness::Fresh).await?;
        if published.lifecycle.is_over() {
            return self.finish_archiving(&published).await.map(|()| None);
        }
        let heads = heads(self.ports, &published.sale).await?;
        match not_current(&heads, published.epoch.as_ref()) {
            None => {
                let catalogue = terms(&published.sale);
                let known = heads.into_iter().filter_map(|(_, head)| Some(head?.1));
                if let Some(redis) = known.into_iter().find(|known| *known != catalogue) {
                    let sale = sale.clone();
                    self.repair(Discrepancy::Terms { sale, redis, catalogue }).await;
                }
            }
            Some((_, head)) => {
                let (sale, redis) = (sale.clone(), head.as_ref().map(|(epoch, _)| epoch.clone()));
                let catalogue = published.epoch.clone();
                let outcome = self
                    .repair(Discrepancy::NotLoaded { sale: sale.clone(), redis, catalogue })
                    .await;
                if outcome != Outcome::Repaired {
                    return Ok(None);
                }
                published = sale_of(self.ports, &sale, Freshness::Fresh).await?;
            }
        }
        for inventory in published.sale.inventories() {
            self.finish_holds(&inventory, finished).await?;
        }
        Ok(Some(published))
    }

    /// Finishes the holds of an inventory that are due, apart from those of orders that were finished
    /// just now.
    async fn finish_holds(
        &mut self,
        inventory: &InventoryId,
        finished: &BTreeSet<OrderNumber>,
    ) -> Stored<()> {
        let due = self.ports.seats().due(inventory, self.now, usize::from(MAX_DUE)).await?;
        let due: Vec<OrderNumber> =
            due.into_iter().filter(|number| !finished.contains(number)).collect();
        let mut orders = read_each(self.ports, due.clone()).await;
        let mut discrepancies = Vec::new();
        for number in due {
            match orders.remove(&number).transpose() {
                Ok(Some(order)) if self.is_in_grace(&order) => {}
                Ok(order) => {
                    let order = order.map(Box::new);
                    discrepancies.push(Discrepancy::HoldOverdue(inventory.clone(), number, order));
                }
                Err(error) => self.unread(&number, &error),
            }
        }
        self.repair_all(discrepancies).await;
        Ok(())
    }

    /// True for an unpaid order whose grace is not over: the sweeper leaves it to its message.
    fn is_in_grace(&self, order: &Order) -> bool {
        let end = self.ports.grace().end_from(order.payable_until());
        order.state == OrderState::Pending && self.now < end
    }

    /// Compares Redis with DynamoDB and repairs Redis, hold by hold.
    async fn compare(&mut self, published: &Published) -> Stored<()> {
        let snapshot = SaleSnapshot::read(self.ports, &published.sale).await?;
        let sale = &published.sale;
        self.run.available.push((sale.id().clone(), snapshot.available()));
        if tokens::is_counting(sale, self.now) {
            let (shards, tickets) = (sale.file().gate.shards, snapshot.tickets());
            self.run.bought.push(Bought { sale: sale.id().clone(), shards, tickets });
        }
        let mut disturbed = Vec::new();
        for discrepancy in snapshot.discrepancies(published) {
            let leaked = match &discrepancy {
                Discrepancy::Leaked(repair) => Some(repair.clone()),
                Discrepancy::NotLoaded { .. }
                | Discrepancy::Terms { .. }
                | Discrepancy::Overdue(..)
                | Discrepancy::Uncounted(..)
                | Discrepancy::Refund(..)
                | Discrepancy::OrderRefund(_)
                | Discrepancy::Unclosed(_)
                | Discrepancy::HoldOverdue(..)
                | Discrepancy::HoldDiffers(..)
                | Discrepancy::Forgotten(..)
                | Discrepancy::HeldAndFree(..)
                | Discrepancy::NotSold(_)
                | Discrepancy::Overcounted(..) => None,
            };
            if self.repair(discrepancy).await == Outcome::Changed {
                disturbed.extend(leaked);
            }
        }
        for repair in disturbed.into_iter().take(MAX_READ_AGAIN) {
            self.repair_disturbed(published, repair).await?;
        }
        for discrepancy in bought::overcounted(self.ports, published, &snapshot).await? {
            self.repair(discrepancy).await;
        }
        Ok(())
    }

    /// Repairs a block of which seats were freed while the sale was read, from reading it alone.
    async fn repair_disturbed(&mut self, published: &Published, repair: Repair) -> Stored<()> {
        let Some(epoch) = self.epoch else { return Ok(()) };
        for attempt in 1..=READINGS {
            let leaked = SaleSnapshot::read_leaked(self.ports, published, &repair).await?;
            // The first discrepancy has all leaked seat-legs: a disturbed repair is of one block.
            let Some(discrepancy) = leaked.into_iter().next() else { return Ok(()) };
            let done = repair_discrepancy(self.ports, &discrepancy, epoch, self.now).await;
            if done != Ok(0) || attempt == READINGS {
                self.record(discrepancy, Some(done));
                return Ok(());
            }
        }
        Ok(())
    }

    /// Repairs a discrepancy, unless the run is a dry one, and records it.
    async fn repair(&mut self, discrepancy: Discrepancy) -> Outcome {
        let done = match self.epoch {
            None => None,
            Some(epoch) => {
                Some(repair_discrepancy(self.ports, &discrepancy, epoch, self.now).await)
            }
        };
        self.record(discrepancy, done)
    }

    /// [`Pass::repair`] for many that have nothing to do with each other.
    async fn repair_all(&mut self, discrepancies: Vec<Discrepancy>) -> Vec<Outcome> {
        let (ports, now) = (self.ports, self.now);
        let mut done: BTreeMap<usize, Stored<u32>> = match self.epoch {
            None => BTreeMap::new(),
            Some(epoch) => repair_discrepancies(ports, &discrepancies, epoch, now).await,
        };
        let numbered = discrepancies.into_iter().enumerate();
        numbered.map(|(index, discrepancy)| self.record(discrepancy, done.remove(&index))).collect()
    }

    /// Records a discrepancy and what its repair came to; `None` if it was only found.
    fn record(&mut self, discrepancy: Discrepancy, done: Option<Stored<u32>>) -> Outcome {
        let outcome = match done {
            None => Outcome::Found,
            Some(Ok(0)) => Outcome::Changed,
            Some(Ok(number)) => {
                *self.run.report.field(&discrepancy) += number;
                Outcome::Repaired
            }
            Some(Err(error)) => {
                let Explanation { kind, sale, order, .. } = discrepancy.explain();
                tracing::warn!(kind, ?sale, ?order, %error, "left to the next run");
                self.run.report.failed += 1;
                Outcome::Failed(error.to_string())
            }
        };
        if let Discrepancy::Overdue(order, _) = &discrepancy
            && order.payable_until().plus_seconds(self.ports.grace().bound_seconds().into())
                <= self.now
        {
            self.past_bound.insert(order.number);
        }
        if outcome != Outcome::Changed && is_drift(&discrepancy, self.now) {
            self.run.drift += 1;
        }
        self.run.found.push((discrepancy, outcome.clone()));
        outcome
    }

    /// Records what could not be read; the next run tries it again.
    fn unread(&mut self, what: &impl std::fmt::Display, error: &StoreError) {
        tracing::warn!(%what, %error, "left to the next run");
        self.run.report.failed += 1;
        self.run.unread.push(format!("{what}: {error}"));
    }
}

/// True if Redis does not agree with DynamoDB though it has had time to. Work that is late is no drift.
fn is_drift(discrepancy: &Discrepancy, now: Timestamp) -> bool {
    match discrepancy {
        Discrepancy::NotLoaded { .. } | Discrepancy::Terms { .. } | Discrepancy::Leaked(_) => true,
        Discrepancy::HoldDiffers(order, ..)
        | Discrepancy::Forgotten(order, _)
        | Discrepancy::HeldAndFree(order, _)
        | Discrepancy::NotSold(order)
        | Discrepancy::Overcounted(order, _) => {
            order.changed_at.plus_seconds(SETTLED_SECONDS) <= now
        }
        Discrepancy::Overdue(..)
        | Discrepancy::Uncounted(..)
        | Discrepancy::Refund(..)
        | Discrepancy::OrderRefund(_)
        | Discrepancy::Unclosed(_)
        | Discrepancy::HoldOverdue(..) => false,
    }
}

/// True if the sale was over long ago and this is not its minute of the hour. Sales have different
/// minutes, so that a thousand old ones are not all compared in the same.
fn is_at_rest(sale: &Sale, now: Timestamp) -> bool {
    let file = sale.file();
    let last = i64::from(file.pay_window_seconds).saturating_add(AT_REST_AFTER_SECONDS);
    if now < sale.sells_until().plus_seconds(last) {
        return false;
    }
    let name = sale.id().as_str().bytes();
    let its_minute = name.fold(0_i64, |sum, byte| (sum * 31 + i64::from(byte)) % MINUTES_AT_REST);
    now.ms().div_euclid(60_000).rem_euclid(MINUTES_AT_REST) != its_minute
}

/// Reads orders by number; an order that cannot be read comes with the error, and one that does not exist is left out.
/// One error does not hold the others up.
async fn read_each(
    ports: &impl Ports,
    numbers: Vec<OrderNumber>,
) -> BTreeMap<OrderNumber, Stored<Order>> {
    if numbers.is_empty() {
        return BTreeMap::new();
    }
    if let Ok(orders) = ports.orders().get_many(&numbers).await {
        return orders.into_iter().map(|order| (order.number, Ok(order))).collect();
    }
    let reads: Vec<_> = numbers.iter().map(|number| ports.orders().get(*number)).collect();
    let read = join_all(reads).await;
    let found = numbers.into_iter().zip(read);
    found.filter_map(|(number, order)| Some((number, order.transpose()?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sale_that_is_long_over_is_compared_once_an_hour() {
        let sale = |id: &str| {
            let file = json!({
                "sale": id, "title": "Over", "currency": "EUR",
                "opens_at": "2026-01-01T00:00:00Z", "closes_at": "2026-01-02T00:00:00Z",
                "limit_per_buyer": 4, "pay_window_seconds": 900,
                "tiers": [{ "tier": "t", "name": "T", "price_minor": 1, "general_admission": 9 }]
            });
            Sale::new(serde_json::from_value(file).unwrap()).unwrap()
        };
        let closes = sale("s").file().closes_at;
        let minutes = |from: Timestamp| (0..60).map(move |minute| from.plus_seconds(60 * minute));
        assert!(!minutes(closes).any(|now| is_at_rest(&sale("s"), now)), "it is just over");
        let late = closes.plus_seconds(AT_REST_AFTER_SECONDS + 900);
        for hour in 0..3 {
            let late = late.plus_seconds(3600 * hour);
            let compared = minutes(late).filter(|now| !is_at_rest(&sale("s"), *now)).count();
            assert_eq!(compared, 1);
        }
        let busiest = minutes(late).map(|now| {
            (0..200).filter(|index| !is_at_rest(&sale(&format!("s{index}")), now)).count()
        });
        assert!(busiest.max().unwrap() < 20, "they are spread over the hour");
    }
}
