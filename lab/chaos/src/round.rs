//! One round: the crowd buys, something breaks, is mended, the crowd buys on, rests, and the stores
//! are compared.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::OrderState;
use fake_limits::Throttled;
use rand::RngExt as _;
use serde::Serialize;

use super::faults::{Fault, FaultContext, Lost};
use super::hearer::Hearer;
use super::refunder::Refunder;
use super::rooms::{Rooms, RoomsReport};
use super::trader::Trader;
use super::{Error, Options};
use loadtest::controller::{Answer, Seen};
use ops::audit;
use ops::audit::facts::{LedgerFacts, OrderFact, SaleFacts};

/// Orders that are acknowledged before something breaks; the seed chooses a number of this range.
const BEFORE: std::ops::Range<u64> = 15..45;
/// Orders that are acknowledged after it was mended: selling goes on, not one lucky order.
const AFTER: u64 = 25;
/// Least pause between two looks at stores that are not quiescent.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// The pause after a look, in times of what the look took: a look reads all that was ever sold, and the engine needs the
/// processors to come to rest.
const PAUSE_OF_LOOK: u32 = 2;

/// What the crowd was promised, in a file.
#[derive(Debug)]
pub struct Ledger(PathBuf);

impl Ledger {
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self(path)
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Result of a round.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Name of the fault.
    pub fault: &'static str,
    /// Duration of the fault, in milliseconds.
    pub lasted_ms: u64,
    /// What buyers were answered from then on that was neither yes nor no, by the problem's type.
    pub errors: BTreeMap<String, u64>,
    /// The longest time between two acknowledged orders from the last one before the fault on, in
    /// milliseconds.
    pub pause_ms: u64,
    /// From the end of the fault to the next acknowledged order, in milliseconds.
    pub selling_ms: u64,
    /// From the moment the crowd rested to the first clean audit, in milliseconds.
    pub settled_ms: u64,
    /// Orders that Redis had forgotten by the fault and that stand in it again.
    pub restored: u64,
    /// Orders that were paid after their deadline and have their seats.
    pub rescued: u64,
    pub expired: u64,
    /// The longest that an order was pending after its deadline, in milliseconds.
    pub overrun_ms: u64,
    /// Other effects of the fault, each with its count.
    pub notes: BTreeMap<String, u64>,
    /// Orders that were acknowledged.
    pub acknowledged: u64,
    pub violations: Vec<String>,
}

/// Quiescent stores, or why they do not become quiescent.
#[derive(Debug)]
struct Settled {
    facts: Option<SaleFacts>,
    after: Duration,
    violations: Vec<String>,
}

/// Rounds on one rig.
#[derive(Debug)]
pub(super) struct Rounds {
    context: FaultContext,
    ledger: Ledger,
    rooms: Rooms,
    refunder: Refunder,
    trader: Trader,
    hearer: Hearer,
    pay_window_seconds: u32,
    deadline: Duration,
    settle: Duration,
}

impl Rounds {
    pub(super) fn new(
        context: FaultContext,
        ledger: Ledger,
        (rooms, refunder, trader, hearer): (Rooms, Refunder, Trader, Hearer),
        options: &Options,
    ) -> Self {
        let Options { setup, buyers: _, deadline, settle } = options;
        let (deadline, settle) = (*deadline, *settle);
        let pay_window_seconds = setup.pay_window_seconds;
        Self {
            context,
            ledger,
            rooms,
            refunder,
            trader,
            hearer,
            pay_window_seconds,
            deadline,
            settle,
        }
    }

    /// What was refused for the limits of the services so far.
    pub(super) fn throttled(&self) -> Throttled {
        self.context.rig.throttled()
    }

    /// Defects of the engine: that it ended, or that something in it panicked.
    pub(super) fn defects(&mut self) -> Result<Vec<String>, Error> {
        self.context.rig.engine.defects()
    }

    /// Number of orders that an operator refunded.
    pub(super) fn refunded(&self) -> usize {
        self.refunder.made()
    }

    /// Number of tickets that were exchanged.
    pub(super) fn exchanged(&self) -> usize {
        self.trader.exchanged()
    }

    /// Number of facts that the webhook has heard.
    pub(super) fn told(&self) -> usize {
        self.hearer.heard()
    }

    /// What the waiting rooms came to.
    pub(super) fn rooms(&self) -> RoomsReport {
        self.rooms.report()
    }

    /// Opens a waiting room, begins to refund orders and to trade, breaks something, mends it, and compares the stores.
    /// The crowd buys when this begins, and rests when it ends.
    pub(super) async fn round(
        &mut self,
        mut fault: Box<dyn Fault>,
        bound_seconds: u32,
    ) -> Result<Round, Error> {
        let (began, began_at) = (Instant::now(), Timestamp::now());
        let mut round = Round::new(fault.name());
        let first = self.context.controller.acknowledged();
        self.rooms.open(&self.context.rig).await?;
        self.context.controller.go_on();
        let before = self.context.random.random_range(BEFORE);
        if !self.within(self.context.controller.until_acknowledged(first + before)).await {
            round.violations.push(format!("{before} orders were not made before the fault"));
            return Ok(round);
        }
        self.refunder.begin(self.ledger.path())?;
        self.trader.begin();
        // While it lasts the crowd must buy, or there is nothing that could go wrong.
        let struck = within(self.deadline, fault.inject(&mut self.context)).await;
        let Some(mut struck) = struck.transpose()? else {
            round.violations.push("the fault did not come about: nobody bought".to_owned());
            return Ok(round);
        };
        self.rooms.struck();
        self.hearer.set_away(true);
        let lasted = within(self.deadline, fault.lasts(&mut self.context)).await.transpose()?;
        let mended = fault.end(&mut self.context, &mut struck).await?;
        self.hearer.set_away(false);
        if lasted.is_none() {
            round.violations.push("the fault met nobody: nobody bought".to_owned());
        }
        round.lasted_ms = ms(mended.saturating_duration_since(struck.at));
        let after = self.context.controller.acknowledged() + AFTER;
        if !self.within(self.context.controller.until_acknowledged(after)).await {
            round.violations.push("selling did not go on after the fault".to_owned());
        } else if !self.within(self.context.controller.rest()).await {
            round
                .violations
                .push("the crowd did not come to rest: someone got no answer".to_owned());
        }
        round.violations.extend(self.answered().await);
        round.see(&self.context.controller.seen_since(began), struck.at, mended);
        round.acknowledged = self.context.controller.acknowledged() - first;
        round.notes = struck.notes;
        let settled = self.settle(&self.context.rig.sale().clone(), bound_seconds).await?;
        round.settled_ms = ms(settled.after);
        round.violations.extend(settled.violations);
        round.violations.extend(self.rooms.violations());
        round.violations.extend(self.hearer.violations());
        round.violations.extend(self.defects()?);
        if let Some(facts) = &settled.facts {
            round.violations.extend(self.refunder.not_once(facts));
            round.overrun_ms = overrun_ms(facts, began_at);
            round.violations.extend(too_late(round.overrun_ms, bound_seconds));
            let made_by = began_at
                .plus_ms(i64::try_from((struck.at - began).as_millis()).unwrap_or(i64::MAX));
            let was_made = |order: &OrderFact| {
                order.pay_by.plus_seconds(-i64::from(self.pay_window_seconds)) <= made_by
            };
            round.count(facts, began_at, |order| match &struck.lost {
                Lost::Nothing => false,
                Lost::Holds(orders) => orders.contains(&order.number),
                Lost::Inventories(lost) => {
                    let tiers = order.lines.iter().map(|line| &line.tier);
                    let inventory = facts.sale.inventory_of_all(tiers);
                    was_made(order) && inventory.is_some_and(|one| lost.contains(&one))
                }
                Lost::Everything => was_made(order),
            });
        }
        Ok(round)
    }

    /// Waits until the operator and the buyer with a wallet are answered: what was answered that must not be, and who
    /// got no answer.
    async fn answered(&mut self) -> Vec<String> {
        let unanswered = |who: &str| vec![format!("{who} was not answered")];
        let refunds = within(self.deadline, self.refunder.end()).await;
        let mut violations = refunds.unwrap_or_else(|| unanswered("the operator who refunds"));
        let trades = within(self.deadline, self.trader.end()).await;
        violations.extend(trades.unwrap_or_else(|| unanswered("the buyer with a wallet")));
        violations
    }

    /// The last look, when everybody has left: what is not as it must be, in the stores as they are and
    /// of all that expired ever; and every refund's money is back.
    pub(super) async fn last(&mut self, bound_seconds: u32) -> Result<Vec<String>, Error> {
        let began = Instant::now();
        let mut settled = self.settle(&self.context.rig.sale().clone(), bound_seconds).await?;
        let not_back = |settled: &Settled| {
            settled.facts.as_ref().map(|facts| self.refunder.not_back(facts)).unwrap_or_default()
        };
        // A provider that did not answer is asked again by and by.
        while !not_back(&settled).is_empty() && began.elapsed() < self.deadline {
            tokio::time::sleep(LOOK_AGAIN).await;
            settled = self.settle(&self.context.rig.sale().clone(), bound_seconds).await?;
        }
        let mut violations = not_back(&settled);
        violations.extend(settled.violations);
        if let Some(facts) = &settled.facts {
            violations.extend(self.refunder.not_once(facts));
            let overrun_ms = overrun_ms(facts, Timestamp::from_ms(0));
            violations.extend(too_late(overrun_ms, bound_seconds));
        }
        Ok(violations)
    }

    /// The final check of what was paid from a wallet and exchanged: it is as it was answered, the wallet has what it
    /// must, and the audit finds nothing wrong.
    pub(super) async fn last_of_trades(
        &mut self,
        bound_seconds: u32,
    ) -> Result<Vec<String>, Error> {
        let found = within(self.deadline, self.trader.settled()).await;
        let mut violations = self.trader.wallet_differs(found);
        let settled = self.settle(&Trader::play()?, bound_seconds).await?;
        violations.extend(settled.violations);
        match &settled.facts {
            Some(facts) => violations.extend(self.trader.differs(facts)),
            None => violations.push("the play is not there".to_owned()),
        }
        Ok(violations)
    }

    /// The last look at what the webhook has heard: it is what the stores have settled, of every sale.
    pub(super) async fn last_of_events(
        &mut self,
        program: &Path,
        bound_seconds: u32,
    ) -> Result<Vec<String>, Error> {
        let mut sales = vec![self.context.rig.sale().clone()];
        sales.extend(Trader::sales()?);
        sales.extend(self.rooms.orders().into_iter().map(|(sale, _)| sale));
        let began = Instant::now();
        loop {
            self.hearer.calm(&self.context.rig, program).await?;
            let mut violations = self.hearer.violations();
            for sale in &sales {
                let settled = self.settle(sale, bound_seconds).await?;
                let differs = settled.facts.as_ref().map(|facts| self.hearer.differs(facts));
                violations.extend(differs.unwrap_or_default());
            }
            if violations.is_empty() || began.elapsed() > self.deadline {
                return Ok(violations);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// The last look at the waiting rooms: everybody was let in and has the order that was answered, the audit finds
    /// nothing wrong, and what is published of each room is verified.
    pub(super) async fn last_of_rooms(
        &mut self,
        program: &Path,
        bound_seconds: u32,
    ) -> Result<Vec<String>, Error> {
        // Who is not done by then is named.
        let _is_late = within(self.deadline, self.rooms.until_done()).await;
        let mut violations = self.rooms.unserved();
        if !violations.is_empty() {
            return Ok(violations);
        }
        for (sale, orders) in self.rooms.orders() {
            let settled = self.settle(&sale, bound_seconds).await?;
            violations.extend(settled.violations);
            let Some(facts) = settled.facts else { continue };
            if facts.room.is_none() {
                violations.push(format!("room {sale}: it was not audited"));
            }
            let missing = orders.iter().filter(|order| !facts.orders.contains_key(order));
            violations
                .extend(missing.map(|order| format!("room {sale}: order {order} is missing")));
        }
        violations.extend(self.rooms.verify(program, self.context.rig.dir()).await?);
        Ok(violations)
    }

    /// Compares the stores until they agree on a sale and every rule holds. The ledger is that of the rig's own sale.
    async fn settle(&self, sale: &SaleId, bound_seconds: u32) -> Result<Settled, Error> {
        let began = Instant::now();
        loop {
            let looked = Instant::now();
            let target = self.context.rig.target();
            let mut facts = audit::read(&target, Some(sale)).await?;
            if sale == self.context.rig.sale() {
                facts.add_ledger(LedgerFacts::read(self.ledger.path())?);
            }
            let report = audit::judge(&facts, Timestamp::now(), bound_seconds);
            let (after, facts) = (began.elapsed(), facts.sales.remove(sale));
            if report.clean {
                return Ok(Settled { facts, after, violations: Vec::new() });
            }
            if after > self.settle {
                let violations = report.violations().map(ToString::to_string).collect();
                return Ok(Settled { facts, after, violations });
            }
            tokio::time::sleep(LOOK_AGAIN.max(looked.elapsed() * PAUSE_OF_LOOK)).await;
        }
    }

    async fn within(&self, what: impl Future<Output = ()>) -> bool {
        within(self.deadline, what).await.is_some()
    }
}

/// The longest time that an order was pending after its deadline, in milliseconds: of those that
/// are, and of those that have expired since a moment.
fn overrun_ms(facts: &SaleFacts, since: Timestamp) -> u64 {
    let now = Timestamp::now();
    let overruns = facts.orders.values().map(|order| match order.state {
        OrderState::Pending => late_ms(order, now),
        OrderState::Expired if order.changed_at >= since => late_ms(order, order.changed_at),
        OrderState::Paid
        | OrderState::Expired
        | OrderState::Cancelled
        | OrderState::RefundDue
        | OrderState::Refunded => 0,
    });
    overruns.max().unwrap_or_default()
}

/// Milliseconds from an order's deadline to a moment; 0 before the deadline.
fn late_ms(order: &OrderFact, at: Timestamp) -> u64 {
    u64::try_from(at.ms_since(order.pay_by)).unwrap_or(0)
}

/// The violation that an overrun is. The audit sees only what is still pending.
fn too_late(overrun_ms: u64, bound_seconds: u32) -> Option<String> {
    let is_late = overrun_ms > u64::from(bound_seconds) * 1000;
    is_late.then(|| format!("I7: an order was pending {overrun_ms} ms after its deadline"))
}

/// Result of something that may take until a deadline; `None` if it takes longer.
async fn within<T>(deadline: Duration, what: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(deadline, what).await.ok()
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Round {
    fn new(fault: &'static str) -> Self {
        Self {
            fault,
            lasted_ms: 0,
            errors: BTreeMap::new(),
            pause_ms: 0,
            selling_ms: 0,
            settled_ms: 0,
            restored: 0,
            rescued: 0,
            expired: 0,
            overrun_ms: 0,
            notes: BTreeMap::new(),
            acknowledged: 0,
            violations: Vec::new(),
        }
    }

    /// Reads what the crowd saw: of the errors those from the fault on.
    fn see(&mut self, seen: &[Seen], struck: Instant, mended: Instant) {
        let mut last = None;
        for Seen { at, answer } in seen {
            match answer {
                Answer::Failed(kind) if *at >= struck => {
                    *self.errors.entry(kind.to_string()).or_default() += 1;
                }
                Answer::Failed(_) => {}
                Answer::Acknowledged => {
                    if *at >= struck {
                        let pause = *at - last.unwrap_or(struck);
                        self.pause_ms = self.pause_ms.max(ms(pause));
                    }
                    last = Some(*at);
                    if *at >= mended && self.selling_ms == 0 {
                        self.selling_ms = ms(*at - mended).max(1);
                    }
                }
            }
        }
    }

    /// Counts what became of the orders since the round began.
    fn count(
        &mut self,
        facts: &SaleFacts,
        began: Timestamp,
        was_lost: impl Fn(&OrderFact) -> bool,
    ) {
        for order in facts.orders.values() {
            self.restored += u64::from(order.is_live() && was_lost(order));
            let is_new = order.changed_at >= began;
            match order.state {
                OrderState::Expired => self.expired += u64::from(is_new),
                OrderState::Paid => {
                    let is_late = late_ms(order, order.changed_at) > 0;
                    self.rescued += u64::from(is_new && is_late);
                }
                OrderState::Pending
                | OrderState::Cancelled
                | OrderState::RefundDue
                | OrderState::Refunded => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_the_longest_time_without_an_order_from_the_last_one_before_the_fault_on() {
        let zero = Instant::now();
        let at = |ms: u64| zero + Duration::from_millis(ms);
        let order = |ms| Seen { at: at(ms), answer: Answer::Acknowledged };
        let error = |ms| Seen { at: at(ms), answer: Answer::Failed("unavailable".into()) };
        let seen = [order(0), error(5), order(900), error(1200), order(2500), order(2600)];
        let mut round = Round::new("flush");
        round.see(&seen, at(1000), at(2000));
        assert_eq!((round.pause_ms, round.selling_ms), (1600, 500));
        assert_eq!(round.errors, BTreeMap::from([("unavailable".to_owned(), 1)]));
    }

    #[test]
    fn an_order_that_expired_too_late_is_a_violation_also_when_it_is_over() {
        assert_eq!(too_late(120_000, 120), None);
        assert!(too_late(120_001, 120).unwrap().starts_with("I7"));
    }
}
