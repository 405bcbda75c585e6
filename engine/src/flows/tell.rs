//! Tell: send the facts in the log to a subscriber, each at least once, and those of an order in their order.
//!
//! One teller at a time has a subscription, under a lease, from the position that the last teller reached. The position
//! passes a fact only once the fact was told or is [kept as waiting](crate::ports::Waiting): after a run that dies, the
//! next one starts from there, and the subscriber gets some facts again, under the same names.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;

use serde::Serialize;

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::ReaderId;
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::{Clock, Timestamp};
use crate::domain::ledger::log::{LogPosition, PlacedRecord};
use crate::domain::ledger::subscriber::{
    ENOUGH_FAILED, Event, Failing, Progress, Subscription, WaitingOrder, Wishes,
};
use crate::ports::{
    ChangeReply, Log, MAX_WAITING_CHANGES, Orders, Receiver, StoreError, Stored, Subscriptions,
    TakeReply, Waiting,
};

/// Seconds for which a teller has a subscription to itself, again with each page: a round of calls that all run into
/// their time limit takes ten.
pub const LEASE_SECONDS: i64 = 60;
/// Seconds after which it is prolonged between two rounds.
const PROLONGED_SECONDS: i64 = 15;

/// What a run of a teller did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Telling {
    /// Facts that were told.
    pub told: u64,
    pub failed: u64,
    /// Orders of which facts wait.
    pub waiting: u64,
    /// Orders that were given up, and subscriptions to which nothing could be told for so long.
    pub given_up: u64,
    /// Subscriptions to which nothing can be told at the moment.
    pub stopped: u64,
    /// Subscriptions that have more to hear at once: the run was over.
    pub unfinished: u64,
    /// Seconds since the oldest fact was settled that was not told and does not wait.
    pub behind_seconds: i64,
}

impl Telling {
    /// What two runs did on different subscriptions.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            told: self.told + other.told,
            failed: self.failed + other.failed,
            waiting: self.waiting + other.waiting,
            given_up: self.given_up + other.given_up,
            stopped: self.stopped + other.stopped,
            unfinished: self.unfinished + other.unfinished,
            behind_seconds: self.behind_seconds.max(other.behind_seconds),
        }
    }
}

/// Who tells whom what.
#[derive(Debug, Clone, Copy)]
pub struct Teller<'a, O, L, S, R> {
    /// The orders, of which those that wait are read again.
    pub orders: &'a O,
    pub log: &'a L,
    /// How far each subscriber was told.
    pub subscriptions: &'a S,
    pub receiver: &'a R,
    /// What it wants to hear.
    pub wishes: &'a Wishes,
    /// The time from which on it is told what was settled.
    pub since: Timestamp,
    /// The name of this run, which must be new.
    pub reader: &'a ReaderId,
}

impl<O: Orders, L: Log, S: Subscriptions, R: Receiver> Teller<'_, O, L, S, R> {
    /// Tells the waiting facts that are due, and then the log until its end or `stop_at`; no call begins after
    /// `stop_at`.
    ///
    /// # Errors
    /// Fails if a store does; the next run goes on where this one stopped.
    pub async fn tell(
        &self,
        of: &Subscription,
        clock: impl Clock,
        stop_at: Timestamp,
    ) -> Stored<Telling> {
        let now = clock.time();
        let until = now.plus_seconds(LEASE_SECONDS);
        let taken = self.subscriptions.take(of, self.reader, now, until).await?;
        let TakeReply::Taken(progress) = taken else {
            return Ok(Telling::default());
        };
        let progress = match progress {
            Some(progress) => progress,
            None => {
                let position = self.log.before(of.shard, self.since).await?;
                Progress { position, failing: None }
            }
        };
        let waiting = self.subscriptions.waiting(of).await?;
        let waiting = waiting.into_iter().map(|order| (order.order, order)).collect();
        let (clock, did) = (&clock, Telling::default());
        let mut run =
            Run { teller: self, of, clock, stop_at, kept_at: now, progress, waiting, did };
        run.tell_waiting().await?;
        run.tell_log().await?;
        // Giving the lease back lets the next teller begin at once.
        run.keep(Vec::new(), clock.time()).await?;
        let given_up = run.waiting.values().filter(|order| order.failing.next.is_none()).count();
        let all = run.waiting.len();
        let is_given_up = run.progress.failing.is_some_and(|failing| failing.next.is_none());
        Ok(Telling {
            given_up: u64::try_from(given_up).unwrap_or(u64::MAX) + u64::from(is_given_up),
            waiting: u64::try_from(all - given_up).unwrap_or(u64::MAX),
            ..run.did
        })
    }
}

/// What was not tried yet, and may be at once.
fn due_at(now: Timestamp) -> Failing {
    Failing { since: now, tries: 0, next: Some(now) }
}

/// A run on one subscription, as its only reader.
struct Run<'a, O, L, S, R, C> {
    teller: &'a Teller<'a, O, L, S, R>,
    of: &'a Subscription,
    clock: &'a C,
    stop_at: Timestamp,
    /// When the lease was last prolonged.
    kept_at: Timestamp,
    progress: Progress,
    waiting: BTreeMap<OrderNumber, WaitingOrder>,
    did: Telling,
}

/// Facts of an order that were not told.
struct Untold {
    order: OrderNumber,
    from: NonZeroU32,
    to: NonZeroU32,
}

impl Untold {
    fn waiting(&self, failing: Failing) -> Waiting {
        let Self { order, from, to } = *self;
        Waiting::Keep(WaitingOrder { order, from, to, failing })
    }
}

/// What became of some events.
#[derive(Default)]
struct Outcome {
    /// The orders of which all was told.
    told: Vec<OrderNumber>,
    /// Those of which something was not: the first such fact, and the last one of them all.
    failed: Vec<Untold>,
    /// Those that were not tried to the end, because the time was over.
    left: Vec<Untold>,
    /// True if nothing of enough was told.
    is_stopped: bool,
}

impl<O: Orders, L: Log, S: Subscriptions, R: Receiver, C: Clock> Run<'_, O, L, S, R, C> {
    /// Tries what waits and is due.
    async fn tell_waiting(&mut self) -> Stored<()> {
        let now = self.clock.time();
        let due = self.waiting.values().filter(|order| order.failing.is_due(now));
        let mut due: Vec<WaitingOrder> = due.copied().collect();
        due.sort_by_key(|order| order.failing.next);
        for some in due.chunks(MAX_WAITING_CHANGES) {
            if self.clock.time() >= self.stop_at {
                break;
            }
            let numbers: Vec<OrderNumber> = some.iter().map(|waiting| waiting.order).collect();
            let orders = self.teller.orders.get_many(&numbers).await?;
            let (mut events, mut changes) = (Vec::new(), Vec::new());
            for waiting in some {
                let order = orders.iter().find(|order| order.number == waiting.order);
                let order = order.ok_or_else(|| {
                    let what = format!("order {} waits to be told of, and is none", waiting.order);
                    StoreError::Contract(what)
                })?;
                let mut of_order = Event::of_order(order, waiting.from, waiting.to);
                of_order.retain(|event| self.is_wished(event));
                if of_order.is_empty() {
                    // The subscriber's wishes have changed meanwhile.
                    changes.push(Waiting::Told(waiting.order));
                }
                events.extend(of_order);
            }
            let outcome = self.deliver(events).await?;
            changes.extend(outcome.told.into_iter().map(Waiting::Told));
            let now = self.clock.time();
            let before = |untold: &Untold| self.waiting.get(&untold.order).map(|of| of.failing);
            let failed = outcome.failed.iter();
            changes.extend(failed.map(|one| one.waiting(Failing::of_order(before(one), now))));
            let left = outcome.left.iter();
            changes.extend(left.map(|one| one.waiting(before(one).unwrap_or(due_at(now)))));
            self.keep(changes, now.plus_seconds(LEASE_SECONDS)).await?;
            // A subscriber that takes nothing is not called for each order in turn.
            if outcome.is_stopped {
                break;
            }
        }
        Ok(())
    }

    /// Goes on through the log.
    async fn tell_log(&mut self) -> Stored<()> {
        if self.progress.failing.is_some_and(|failing| !failing.is_due(self.clock.time())) {
            self.did.stopped += 1;
            return self.see_how_far_behind().await;
        }
        loop {
            let records = self.next_records().await?;
            if records.is_empty() {
                return Ok(());
            }
            for record in records {
                if self.clock.time() >= self.stop_at {
                    self.did.unfinished += 1;
                    return self.see_how_far_behind().await;
                }
                if !self.tell_record(&record).await? {
                    self.did.stopped += 1;
                    return self.see_how_far_behind().await;
                }
            }
        }
    }

    async fn next_records(&self) -> Stored<Vec<PlacedRecord>> {
        let place = LogPosition { shard: self.of.shard, number: self.progress.position };
        self.teller.log.after(place).await
    }

    async fn see_how_far_behind(&mut self) -> Stored<()> {
        if let Some(first) = self.next_records().await?.first() {
            let behind = self.clock.time().ms() - first.record.at.ms();
            self.did.behind_seconds = self.did.behind_seconds.max(behind / 1000);
        }
        Ok(())
    }

    /// Tells one record and moves behind it; false if nothing can be told.
    async fn tell_record(&mut self, placed: &PlacedRecord) -> Stored<bool> {
        let mut extended: BTreeMap<OrderNumber, WaitingOrder> = BTreeMap::new();
        let mut events = Vec::new();
        for event in Event::of_record(&placed.record).filter(|event| self.is_wished(event)) {
            match self.waiting.get(&event.order) {
                Some(waiting) if stands(Guard::OrderWaits) => {
                    let extended = extended.entry(event.order).or_insert(*waiting);
                    extended.from = extended.from.min(event.number);
                    extended.to = extended.to.max(event.number);
                }
                Some(_) | None => events.push(event),
            }
        }
        let outcome = self.deliver(events).await?;
        let now = self.clock.time();
        let until = now.plus_seconds(LEASE_SECONDS);
        if outcome.is_stopped {
            let failing = Failing::of_all(self.progress.failing, now);
            self.progress.failing = Some(failing);
            self.keep(Vec::new(), until).await?;
            return Ok(false);
        }
        let mut changes: Vec<Waiting> = extended.into_values().map(Waiting::Keep).collect();
        let failed = outcome.failed.iter();
        changes.extend(failed.map(|one| one.waiting(Failing::of_order(None, now))));
        // There was no time for them: a record that takes longer than a run is told in parts.
        changes.extend(outcome.left.iter().map(|one| one.waiting(due_at(now))));
        // What waits is written before the position is behind it.
        let mut parts = changes.chunks(MAX_WAITING_CHANGES);
        let last = parts.next_back().unwrap_or_default().to_vec();
        for part in parts {
            self.keep(part.to_vec(), until).await?;
        }
        self.progress = Progress { position: placed.place.number, failing: None };
        self.keep(last, until).await?;
        Ok(true)
    }

    fn is_wished(&self, event: &Event) -> bool {
        self.teller.wishes.have(&event.sale, event.fact.kind)
    }

    /// Tells events: those of one order one after the other, those of different orders concurrently. If the subscriber
    /// does not take an event, the later events of its order are not tried.
    async fn deliver(&mut self, events: Vec<Event>) -> Stored<Outcome> {
        let mut outcome = Outcome::default();
        let mut by_order: BTreeMap<OrderNumber, VecDeque<Event>> = BTreeMap::new();
        for event in events {
            by_order.entry(event.order).or_default().push_back(event);
        }
        let mut queue: VecDeque<VecDeque<Event>> = by_order.into_values().collect();
        let mut is_taken = false;
        let at_once = self.teller.receiver.at_once().max(1);
        while !queue.is_empty() {
            let now = self.clock.time();
            if now >= self.stop_at {
                break;
            }
            if now >= self.kept_at.plus_seconds(PROLONGED_SECONDS) {
                // A round may take as long as a time limit, and a record many rounds.
                self.keep(Vec::new(), now.plus_seconds(LEASE_SECONDS)).await?;
            }
            let mut rest: Vec<VecDeque<Event>> = queue.drain(..queue.len().min(at_once)).collect();
            let first: Vec<Event> = rest.iter_mut().filter_map(VecDeque::pop_front).collect();
            let taken = self.teller.receiver.tell(&first).await;
            let each = first.into_iter().zip(rest);
            // A missing answer counts as a failed call.
            for ((event, rest), taken) in
                each.zip(taken.into_iter().chain(std::iter::repeat(false)))
            {
                if taken {
                    is_taken = true;
                    self.did.told += 1;
                    if rest.is_empty() {
                        outcome.told.push(event.order);
                    } else {
                        // To the end: no order is told to its end before another begins.
                        queue.push_back(rest);
                    }
                } else {
                    self.did.failed += 1;
                    let to = rest.back().unwrap_or(&event).number;
                    let (order, from) = (event.order, event.number);
                    outcome.failed.push(Untold { order, from, to });
                }
            }
            if !is_taken && outcome.failed.len() >= ENOUGH_FAILED {
                outcome.is_stopped = true;
                break;
            }
        }
        let untold = |rest: VecDeque<Event>| {
            let (first, last) = (rest.front()?, rest.back()?);
            Some(Untold { order: first.order, from: first.number, to: last.number })
        };
        outcome.left = queue.into_iter().filter_map(untold).collect();
        Ok(outcome)
    }

    /// Writes how far it is, under the lease.
    async fn keep(&mut self, changes: Vec<Waiting>, until: Timestamp) -> Stored<()> {
        let Teller { subscriptions, reader, .. } = self.teller;
        let kept = subscriptions.keep(self.of, reader, &self.progress, &changes, until).await?;
        if kept == ChangeReply::Conflict {
            // This process froze for longer than its lease: another one tells.
            return Err(StoreError::Unavailable("another teller has it now".to_owned()));
        }
        self.kept_at = self.clock.time();
        for change in changes {
            match change {
                Waiting::Keep(waiting) => {
                    self.waiting.insert(waiting.order, waiting);
                }
                Waiting::Told(order) => {
                    self.waiting.remove(&order);
                }
            }
        }
        Ok(())
    }
}
