//! All queues together: a pure state machine that answers requests and whose clock is an
//! argument.
//!
//! Beside the reply to a request it leaves three things for the server to collect: the changes
//! for the file, the queues whose waiting receivers should look again, and the time at which
//! something happens next without a request.

mod handle;
mod messages;
mod queues;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fake_limits::Throttles;

use crate::attributes::QueueAttributes;
use crate::change::{Change, QueueRecord, Snapshot};
use crate::error::SqsError;
use crate::faults::{FaultInjector, Faults};
use crate::fifo::Original;
use crate::message::Seq;
use crate::moves::MoveTask;
use crate::queue::{Queue, QueueId};
use crate::wire::{Delivery, Entry, Receive, Reply, Request};

/// Numbers that are reserved in the file at a time.
const RESERVED_NUMBERS: u64 = 1_000;

/// The address, region and account of the queues.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// The address clients connect to, without a trailing slash.
    pub endpoint: String,
    /// The region in ARNs.
    pub region: String,
    /// The account in ARNs and URLs.
    pub account: String,
    /// True if purges and deletions block the next one for sixty seconds, as at Amazon.
    pub cooldowns: bool,
    /// Where refusals for a limit are counted.
    pub throttles: Throttles,
}

/// The result of a receive, and what the server needs to wait for more.
#[derive(Debug)]
pub(crate) struct Received {
    pub queue: QueueId,
    /// Seconds to wait for the first message.
    pub wait_seconds: u64,
    pub deliveries: Vec<Delivery>,
}

/// Waiting receivers of a queue that should look again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// This number of them: one for each message that became available.
    Some(QueueId, usize),
    /// All of them: the queue is gone.
    All(QueueId),
}

#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) home: Home,
    pub(crate) queues: HashMap<QueueId, Queue>,
    names: BTreeMap<String, QueueId>,
    pub(crate) moves: Vec<MoveTask>,
    injector: FaultInjector,
    nonce: u64,
    next_seq: Seq,
    reserved_to: Seq,
    deleted_ms: HashMap<String, u64>,
    /// The time at which each queue is due, in order of time, and by queue.
    due: BTreeSet<(u64, QueueId)>,
    armed: HashMap<QueueId, u64>,
    /// Queues whose state may have changed since they were last settled.
    pub(crate) touched: Vec<QueueId>,
    wakes: Vec<Wake>,
    journal: Option<Vec<Change>>,
}

impl Broker {
    /// A broker with what the file has kept. `nonce` makes its message ids differ from those
    /// of any other; `durable` says whether changes are collected for a file.
    pub fn new(
        home: Home,
        faults: Faults,
        nonce: u64,
        durable: bool,
        kept: Snapshot,
        now_ms: u64,
    ) -> Self {
        let mut broker = Broker {
            home,
            queues: HashMap::new(),
            names: BTreeMap::new(),
            moves: Vec::new(),
            injector: FaultInjector::new(faults),
            nonce,
            next_seq: kept.next_seq.max(1),
            reserved_to: kept.next_seq,
            deleted_ms: HashMap::new(),
            due: BTreeSet::new(),
            armed: HashMap::new(),
            touched: Vec::new(),
            wakes: Vec::new(),
            journal: durable.then(Vec::new),
        };
        for record in kept.queues {
            let mut attributes = QueueAttributes::default();
            for (name, value) in &record.attributes {
                // What the file holds was accepted when it was set.
                let _ = attributes.set(name, value);
            }
            let mut queue = Queue::new(record.name.clone(), attributes, record.created_ms);
            queue.modified_ms = record.modified_ms;
            queue.tags = record.tags;
            broker.names.insert(record.name, record.id);
            broker.queues.insert(record.id, queue);
            broker.touched.push(record.id);
        }
        for (queue, message) in kept.messages {
            if let Some(queue) = broker.queues.get_mut(&queue) {
                queue.insert(message, now_ms);
            }
        }
        for record in kept.deduplication {
            if let Some(queue) = broker.queues.get_mut(&record.queue) {
                let id = record.message_id.into();
                let original = Original { sent_ms: record.sent_ms, id, seq: record.seq };
                queue.deduplication.remember(record.key, original);
            }
        }
        broker.settle();
        broker
    }

    /// Answers a request.
    ///
    /// # Errors
    /// A request that SQS refuses.
    pub fn call(&mut self, request: Request, now_ms: u64) -> Result<Reply, SqsError> {
        let reply = self.answer(request, now_ms);
        self.settle();
        reply
    }

    /// Answers a receive with what is there now.
    ///
    /// # Errors
    /// A request that SQS refuses.
    pub fn receive(&mut self, receive: &Receive, now_ms: u64) -> Result<Received, SqsError> {
        let received = self.take(receive, now_ms);
        self.settle();
        received
    }

    /// Does what has come due; returns when this is to be called next, Unix milliseconds.
    pub fn tick(&mut self, now_ms: u64) -> Option<u64> {
        while let Some(&(at_ms, queue)) = self.due.first() {
            if at_ms > now_ms {
                break;
            }
            self.due.pop_first();
            self.armed.remove(&queue);
            self.tidy(queue, now_ms);
        }
        self.step_moves(now_ms);
        self.settle();
        self.next_due_ms()
    }

    /// Time at which `tick` is to be called next, Unix milliseconds.
    pub fn next_due_ms(&self) -> Option<u64> {
        let queue = self.due.first().map(|&(at_ms, _)| at_ms);
        [queue, self.next_move_ms()].into_iter().flatten().min()
    }

    /// Takes the receivers to wake since the last call.
    pub fn take_wakes(&mut self) -> Vec<Wake> {
        std::mem::take(&mut self.wakes)
    }

    /// Takes the changes for the file since the last call.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Replaces the faults to inject; the draws start at the new seed.
    pub fn set_faults(&mut self, faults: Faults) {
        self.injector = FaultInjector::new(faults);
    }

    fn answer(&mut self, request: Request, now_ms: u64) -> Result<Reply, SqsError> {
        match request {
            Request::CancelMove { handle } => self.cancel_move(&handle),
            Request::ChangeVisibility { queue, handle, seconds } => {
                let id = self.enter(&queue, now_ms)?;
                self.change_visibility(id, &handle, seconds, now_ms)?;
                Ok(Reply::Done)
            }
            Request::ChangeVisibilityBatch { queue, entries } => {
                let id = self.enter(&queue, now_ms)?;
                Ok(Reply::Batch(each(entries, |(handle, seconds)| {
                    self.change_visibility(id, &handle, seconds, now_ms)
                })))
            }
            Request::CreateQueue { name, attributes, tags } => {
                self.create_queue(name, &attributes, tags, now_ms)
            }
            Request::Delete { queue, handle } => {
                let id = self.enter(&queue, now_ms)?;
                self.delete(id, &handle)?;
                Ok(Reply::Done)
            }
            Request::DeleteBatch { queue, entries } => {
                let id = self.enter(&queue, now_ms)?;
                Ok(Reply::Batch(each(entries, |handle| self.delete(id, &handle))))
            }
            Request::DeleteQueue { queue } => self.delete_queue(&queue, now_ms),
            Request::GetAttributes { queue, names } => {
                let id = self.enter(&queue, now_ms)?;
                self.attributes(id, &names).map(Reply::Attributes)
            }
            Request::GetUrl { name } => {
                self.id(&name)?;
                Ok(Reply::Url(self.url(&name)))
            }
            Request::ListMoves { source_arn, count } => self.list_moves(&source_arn, count),
            Request::ListQueues { prefix, page } => Ok(self.list_queues(&prefix, &page)),
            Request::ListSources { queue, page } => self.list_sources(&queue, &page),
            Request::ListTags { queue } => {
                Ok(Reply::Tags(self.queue(self.id(&queue)?)?.tags.clone()))
            }
            Request::Purge { queue } => self.purge(&queue, now_ms),
            Request::Receive(receive) => {
                Ok(Reply::Received(self.take(&receive, now_ms)?.deliveries))
            }
            Request::Send { queue, send } => {
                let id = self.enter(&queue, now_ms)?;
                self.send(id, send, now_ms).map(Reply::Sent)
            }
            Request::SendBatch { queue, entries } => {
                let id = self.enter(&queue, now_ms)?;
                Ok(Reply::SentBatch(each(entries, |send| self.send(id, send, now_ms))))
            }
            Request::SetAttributes { queue, attributes } => {
                self.set_attributes(&queue, &attributes, now_ms)
            }
            Request::StartMove { source_arn, destination_arn, per_second } => {
                self.start_move(source_arn, destination_arn, per_second, now_ms)
            }
            Request::Tag { queue, tags } => self.tag(&queue, tags, now_ms),
            Request::Untag { queue, keys } => self.untag(&queue, &keys, now_ms),
        }
    }

    /// The queue of this name, with everything done in it that has come due.
    pub(crate) fn enter(&mut self, name: &str, now_ms: u64) -> Result<QueueId, SqsError> {
        let id = self.id(name)?;
        self.tidy(id, now_ms);
        Ok(id)
    }

    /// Wakes and expires the messages of a queue that are due.
    pub(crate) fn tidy(&mut self, id: QueueId, now_ms: u64) {
        let Some(queue) = self.queues.get_mut(&id) else {
            return;
        };
        queue.wake(now_ms);
        let expired = queue.expire(now_ms);
        let forgotten = queue.deduplication.forget(now_ms);
        self.touched.push(id);
        for seq in expired {
            self.record(|| Change::DropMessage(seq));
        }
        for key in forgotten {
            self.record(|| Change::Forget(id, key));
        }
    }

    /// After a request: which receivers to wake, and when each touched queue is due.
    fn settle(&mut self) {
        while let Some(id) = self.touched.pop() {
            let Some(queue) = self.queues.get_mut(&id) else {
                continue;
            };
            let receivers = queue.take_fresh();
            if receivers > 0 {
                self.wakes.push(Wake::Some(id, receivers));
            }
            let due_ms = queue.due_ms();
            if self.armed.get(&id).copied() == due_ms {
                continue;
            }
            if let Some(at_ms) = self.armed.remove(&id) {
                self.due.remove(&(at_ms, id));
            }
            if let Some(at_ms) = due_ms {
                self.armed.insert(id, at_ms);
                self.due.insert((at_ms, id));
            }
        }
    }

    pub(crate) fn id(&self, name: &str) -> Result<QueueId, SqsError> {
        self.names.get(name).copied().ok_or_else(SqsError::no_queue)
    }

    pub(crate) fn by_arn(&self, arn: &str) -> Option<QueueId> {
        let (_, name) = arn.rsplit_once(':')?;
        let id = self.names.get(name).copied()?;
        (self.arn(name) == arn).then_some(id)
    }

    pub(crate) fn redrives_to(&self, id: QueueId, arn: &str) -> bool {
        let redrive = self.queues.get(&id).and_then(|queue| queue.attributes.redrive.as_ref());
        redrive.is_some_and(|redrive| redrive.target_arn == arn)
    }

    pub(crate) fn queue(&self, id: QueueId) -> Result<&Queue, SqsError> {
        self.queues.get(&id).ok_or_else(SqsError::no_queue)
    }

    fn queue_mut(&mut self, id: QueueId) -> Result<&mut Queue, SqsError> {
        self.queues.get_mut(&id).ok_or_else(SqsError::no_queue)
    }

    fn arn(&self, name: &str) -> String {
        format!("arn:aws:sqs:{}:{}:{name}", self.home.region, self.home.account)
    }

    fn url(&self, name: &str) -> String {
        format!("{}/{}/{name}", self.home.endpoint, self.home.account)
    }

    /// The next number of a message, a queue or a task.
    pub(crate) fn next_number(&mut self) -> Seq {
        let seq = self.next_seq;
        self.next_seq += 1;
        if self.next_seq > self.reserved_to {
            let reserved_to = self.next_seq + RESERVED_NUMBERS;
            self.reserved_to = reserved_to;
            self.record(|| Change::Reserve(reserved_to));
        }
        seq
    }

    pub(crate) fn record(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }

    fn record_queue(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get(&id) else {
            return;
        };
        self.touched.push(id);
        if let Some(journal) = &mut self.journal {
            journal.push(Change::PutQueue(QueueRecord {
                id,
                name: queue.name.clone(),
                created_ms: queue.created_ms,
                modified_ms: queue.modified_ms,
                attributes: queue.attributes.values(),
                tags: queue.tags.clone(),
            }));
        }
    }
}

fn each<T, R>(
    entries: Vec<Entry<T>>,
    mut act: impl FnMut(T) -> Result<R, SqsError>,
) -> Vec<(String, Result<R, SqsError>)> {
    entries.into_iter().map(|Entry { id, request }| (id, request.and_then(&mut act))).collect()
}
