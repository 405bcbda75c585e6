//! All queues together: a pure state machine that answers requests and whose clock is an
//! argument.
//!
//! Beside the reply to a request it leaves three things for the server to collect: the changes
//! for the file, the queues whose waiting receivers should look again, and the time at which
//! something happens next without a request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::attributes::{QueueAttributes, is_attribute};
use crate::change::{Change, DeduplicationRecord, QueueRecord, Snapshot};
use crate::error::{ErrorKind, SqsError};
use crate::faults::{Faults, Trickster, mix};
use crate::fifo::Original;
use crate::message::{Content, Message, Place, Seq};
use crate::moves::MoveTask;
use crate::queue::{Queue, QueueId, Take};
use crate::wire::{Delivery, Entry, Page, Receive, Reply, Request, Send, Sent, sequence_number};

/// How long a purge blocks the next one, and a deletion its name, at Amazon.
const COOLDOWN_MS: u64 = 60_000;

/// Numbers are reserved in the file in steps of this many.
const RESERVED_NUMBERS: u64 = 1_000;

/// Every receipt handle begins like this.
const HANDLE_PREFIX: &str = "AQEB";

/// Tags a queue may have.
const TAGS_MAX: usize = 50;

/// Where the queues pretend to be.
#[derive(Debug, Clone)]
pub(crate) struct Home {
    /// The address clients connect to, without a trailing slash.
    pub endpoint: String,
    /// The region in ARNs.
    pub region: String,
    /// The account in ARNs and URLs.
    pub account: String,
    /// Whether purges and deletions block the next one for sixty seconds, as at Amazon.
    pub cooldowns: bool,
}

/// What a receive got, and what the server needs to wait for more.
#[derive(Debug)]
pub(crate) struct Received {
    /// The queue.
    pub queue: QueueId,
    /// How long the receiver wants to wait for the first message, in seconds.
    pub wait_seconds: u64,
    /// The messages.
    pub deliveries: Vec<Delivery>,
}

/// Waiting receivers of a queue that should look again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// So many of them: one for each message that became available.
    Some(QueueId, usize),
    /// All of them: the queue is gone.
    All(QueueId),
}

/// All queues.
#[derive(Debug)]
pub(crate) struct Broker {
    pub(crate) home: Home,
    pub(crate) queues: HashMap<QueueId, Queue>,
    names: BTreeMap<String, QueueId>,
    pub(crate) moves: Vec<MoveTask>,
    trickster: Trickster,
    nonce: u64,
    next_seq: Seq,
    reserved_to: Seq,
    deleted_ms: HashMap<String, u64>,
    /// When each queue is due, and the same by queue.
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
        mischief: Faults,
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
            trickster: Trickster::new(mischief),
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
    /// What SQS refuses.
    pub fn call(&mut self, request: Request, now_ms: u64) -> Result<Reply, SqsError> {
        let reply = self.answer(request, now_ms);
        self.settle();
        reply
    }

    /// Answers a receive with what is there now.
    ///
    /// # Errors
    /// What SQS refuses.
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

    /// When `tick` is to be called next, Unix milliseconds.
    pub fn next_due_ms(&self) -> Option<u64> {
        let queue = self.due.first().map(|&(at_ms, _)| at_ms);
        [queue, self.next_move_ms()].into_iter().flatten().min()
    }

    /// The receivers to wake since this was last asked.
    pub fn take_wakes(&mut self) -> Vec<Wake> {
        std::mem::take(&mut self.wakes)
    }

    /// The changes for the file since this was last asked.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on misbehave like this.
    pub fn set_faults(&mut self, mischief: Faults) {
        self.trickster = Trickster::new(mischief);
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
            Request::ListQueues { prefix, page } => {
                let names = self
                    .names
                    .range(prefix.clone()..)
                    .map(|(name, _)| name)
                    .take_while(|name| name.starts_with(&prefix));
                let (urls, next) = self.page(names, &page);
                Ok(Reply::Urls { urls, next })
            }
            Request::ListSources { queue, page } => {
                let arn = self.arn(&self.queue(self.id(&queue)?)?.name);
                let names = self.names.iter().filter(|(_, id)| self.redrives_to(**id, &arn));
                let (urls, next) = self.page(names.map(|(name, _)| name), &page);
                Ok(Reply::SourceUrls { urls, next })
            }
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
            Request::Tag { queue, tags } => {
                let id = self.enter(&queue, now_ms)?;
                let held = &mut self.queue_mut(id)?.tags;
                let added = tags.keys().filter(|key| !held.contains_key(*key)).count();
                if held.len() + added > TAGS_MAX {
                    return Err(SqsError::new(
                        ErrorKind::InvalidParameterValue,
                        format!("Too many tags added for queue {queue}."),
                    ));
                }
                held.extend(tags);
                self.record_queue(id);
                Ok(Reply::Done)
            }
            Request::Untag { queue, keys } => {
                let id = self.enter(&queue, now_ms)?;
                self.queue_mut(id)?.tags.retain(|key, _| !keys.contains(key));
                self.record_queue(id);
                Ok(Reply::Done)
            }
        }
    }

    fn create_queue(
        &mut self,
        name: String,
        attributes: &BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
        now_ms: u64,
    ) -> Result<Reply, SqsError> {
        let wanted = self.checked(QueueAttributes::default(), attributes)?;
        let stem = if wanted.fifo { name.strip_suffix(".fifo").unwrap_or_default() } else { &name };
        let well_formed = !stem.is_empty()
            && name.len() <= 80
            && stem.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !well_formed {
            return Err(SqsError::invalid_value(
                &name,
                "QueueName",
                "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length; the name of a FIFO queue ends in .fifo.",
            ));
        }
        if let Some(existing) = self.names.get(&name).and_then(|id| self.queues.get(id)) {
            let (held, wanted) = (existing.attributes.values(), wanted.values());
            if let Some(other) = attributes.keys().find(|key| held.get(*key) != wanted.get(*key)) {
                return Err(SqsError::new(
                    ErrorKind::QueueNameExists,
                    format!(
                        "A queue already exists with the same name and a different value for attribute {other}"
                    ),
                ));
            }
            return Ok(Reply::Url(self.url(&name)));
        }
        let deleted_ms = self.deleted_ms.remove(&name);
        if let Some(at_ms) = deleted_ms.filter(|at_ms| self.cools_down(*at_ms, now_ms)) {
            self.deleted_ms.insert(name, at_ms);
            return Err(SqsError::new(
                ErrorKind::QueueDeletedRecently,
                "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
            ));
        }
        let id = self.next_number();
        let mut queue = Queue::new(name.clone(), wanted, now_ms);
        queue.tags = tags;
        self.queues.insert(id, queue);
        let url = self.url(&name);
        self.names.insert(name, id);
        self.record_queue(id);
        Ok(Reply::Url(url))
    }

    fn set_attributes(
        &mut self,
        queue: &str,
        attributes: &BTreeMap<String, String>,
        now_ms: u64,
    ) -> Result<Reply, SqsError> {
        let id = self.enter(queue, now_ms)?;
        let held = self.queue(id)?.attributes.clone();
        let fifo = held.fifo;
        let wanted = self.checked(held, attributes)?;
        if wanted.fifo != fifo {
            return Err(SqsError::new(
                ErrorKind::InvalidAttributeValue,
                "The FifoQueue attribute cannot be changed after the queue was created.",
            ));
        }
        let queue = self.queue_mut(id)?;
        queue.attributes = wanted;
        queue.modified_ms = now_ms;
        self.record_queue(id);
        Ok(Reply::Done)
    }

    /// The attributes after these settings, checked against each other and the other queues.
    fn checked(
        &self,
        mut attributes: QueueAttributes,
        settings: &BTreeMap<String, String>,
    ) -> Result<QueueAttributes, SqsError> {
        for (name, value) in settings {
            attributes.set(name, value)?;
        }
        let only_fifo = ["ContentBasedDeduplication", "DeduplicationScope", "FifoThroughputLimit"];
        if let Some(name) = only_fifo.iter().find(|name| settings.contains_key(**name))
            && !attributes.fifo
        {
            return Err(SqsError::new(
                ErrorKind::InvalidAttributeName,
                format!("Unknown Attribute {name}."),
            ));
        }
        if let (Some(redrive), Some(text)) = (&attributes.redrive, settings.get("RedrivePolicy")) {
            let refused = |reason| Err(SqsError::invalid_value(text, "RedrivePolicy", reason));
            match self.by_arn(&redrive.target_arn).and_then(|id| self.queues.get(&id)) {
                None => return refused("Dead letter target does not exist."),
                Some(target) if target.attributes.fifo != attributes.fifo => {
                    return refused("Dead-letter queue must be same type of queue as the source.");
                }
                Some(_) => {}
            }
        }
        Ok(attributes)
    }

    fn attributes(
        &self,
        id: QueueId,
        names: &[String],
    ) -> Result<BTreeMap<String, String>, SqsError> {
        let all = names.iter().any(|name| name == "All");
        if let Some(name) = names.iter().find(|name| *name != "All" && !is_attribute(name)) {
            return Err(SqsError::new(
                ErrorKind::InvalidAttributeName,
                format!("Unknown Attribute {name}."),
            ));
        }
        let queue = self.queue(id)?;
        let mut values = queue.attributes.values();
        let (visible, delayed, in_flight) = queue.counts();
        let mut put = |name: &str, value: String| values.insert(name.to_owned(), value);
        put("ApproximateNumberOfMessages", visible.to_string());
        put("ApproximateNumberOfMessagesDelayed", delayed.to_string());
        put("ApproximateNumberOfMessagesNotVisible", in_flight.to_string());
        put("CreatedTimestamp", (queue.created_ms / 1_000).to_string());
        put("LastModifiedTimestamp", (queue.modified_ms / 1_000).to_string());
        put("QueueArn", self.arn(&queue.name));
        values.retain(|name, _| all || names.contains(name));
        Ok(values)
    }

    fn delete_queue(&mut self, name: &str, now_ms: u64) -> Result<Reply, SqsError> {
        let id = self.id(name)?;
        self.names.remove(name);
        self.queues.remove(&id);
        if let Some(at_ms) = self.armed.remove(&id) {
            self.due.remove(&(at_ms, id));
        }
        if self.home.cooldowns {
            self.deleted_ms.retain(|_, at_ms| at_ms.saturating_add(COOLDOWN_MS) > now_ms);
            self.deleted_ms.insert(name.to_owned(), now_ms);
        }
        // Whoever waits on it finds that it is gone.
        self.wakes.push(Wake::All(id));
        self.record(|| Change::DropQueue(id));
        Ok(Reply::Done)
    }

    fn purge(&mut self, name: &str, now_ms: u64) -> Result<Reply, SqsError> {
        let id = self.enter(name, now_ms)?;
        if self.queue(id)?.purged_ms.is_some_and(|at_ms| self.cools_down(at_ms, now_ms)) {
            return Err(SqsError::new(
                ErrorKind::PurgeQueueInProgress,
                format!("Only one PurgeQueue operation on {name} is allowed every 60 seconds."),
            ));
        }
        let queue = self.queue_mut(id)?;
        queue.purged_ms = Some(now_ms);
        queue.purge();
        self.record(|| Change::Purge(id));
        Ok(Reply::Done)
    }

    fn cools_down(&self, at_ms: u64, now_ms: u64) -> bool {
        self.home.cooldowns && at_ms.saturating_add(COOLDOWN_MS) > now_ms
    }

    fn send(&mut self, id: QueueId, send: Send, now_ms: u64) -> Result<Sent, SqsError> {
        let Send { mut content, delay_seconds } = send;
        let queue = self.queue(id)?;
        let attributes = &queue.attributes;
        if content.size_bytes() as u64 > attributes.message_bytes_max {
            return Err(SqsError::new(
                ErrorKind::InvalidParameterValue,
                format!(
                    "One or more parameters are invalid. Reason: Message must be shorter than {} bytes.",
                    attributes.message_bytes_max
                ),
            ));
        }
        let fifo = attributes.fifo;
        let key = if fifo {
            Some(deduplication_key(attributes, &mut content, delay_seconds)?)
        } else if content.deduplication.is_some() {
            return Err(wrong_type("MessageDeduplicationId", content.deduplication));
        } else {
            None
        };
        let repeated =
            key.as_ref().and_then(|key| queue.deduplication.original(key, now_ms)).cloned();
        let delay_ms = delay_seconds.unwrap_or(attributes.delay_seconds) * 1_000;
        let (message_id, seq, is_new) = match repeated {
            // A repeated send is answered as the first was, and nothing is sent.
            Some(original) => (original.id, original.seq, false),
            None => {
                let seq = self.next_number();
                (self.message_id(seq), seq, true)
            }
        };
        let sent = Sent {
            message_id: message_id.to_string(),
            body_md5: content.body_md5.clone(),
            attributes_md5: content.attributes_md5.clone(),
            system_attributes_md5: content.system_attributes_md5.clone(),
            sequence_number: fifo.then(|| sequence_number(seq)),
        };
        if !is_new {
            return Ok(sent);
        }
        let late_ms = if fifo { 0 } else { self.trickster.lateness_ms() };
        let visible_ms = now_ms.saturating_add(delay_ms).saturating_add(late_ms);
        let message = Message::sent(seq, message_id.clone(), Arc::new(content), now_ms, visible_ms);
        self.record(|| Change::PutMessage(id, Box::new(message.clone())));
        let queue = self.queue_mut(id)?;
        queue.insert(message, now_ms);
        if let Some(key) = key {
            let original = Original { sent_ms: now_ms, id: message_id.clone(), seq };
            queue.deduplication.remember(key.clone(), original);
            self.record(|| {
                let message_id = message_id.to_string();
                Change::Remember(DeduplicationRecord {
                    queue: id,
                    key,
                    sent_ms: now_ms,
                    message_id,
                    seq,
                })
            });
        }
        Ok(sent)
    }

    fn take(&mut self, receive: &Receive, now_ms: u64) -> Result<Received, SqsError> {
        let id = self.enter(&receive.queue, now_ms)?;
        let queue = self.queue(id)?;
        if queue.is_full_in_flight() {
            return Err(SqsError::new(
                ErrorKind::OverLimit,
                format!("Too many messages of {} are in flight.", receive.queue),
            ));
        }
        let attributes = &queue.attributes;
        let fifo = attributes.fifo;
        let source: Arc<str> = self.arn(&queue.name).into();
        let wait_seconds = receive.wait_seconds.unwrap_or(attributes.wait_seconds);
        let visibility_seconds =
            receive.visibility_seconds.unwrap_or(attributes.visibility_seconds);
        // A policy whose dead-letter queue has been deleted since has no effect.
        let redrive = attributes
            .redrive
            .as_ref()
            .and_then(|policy| Some((self.by_arn(&policy.target_arn)?, policy.max_receive_count)));
        let take = Take {
            count: receive.count,
            visibility_ms: visibility_seconds * 1_000,
            max_receive_count: redrive.map(|(_, count)| count),
        };
        let (Some(queue), trickster) = (self.queues.get_mut(&id), &mut self.trickster) else {
            return Err(SqsError::no_queue());
        };
        let taken = queue.take(take, now_ms, |ready| if fifo { 0 } else { trickster.pick(ready) });
        let mut deliveries = Vec::with_capacity(taken.delivered.len());
        for seq in taken.delivered {
            let Some(message) = self.queue(id)?.message(seq).cloned() else {
                continue;
            };
            self.record_delivery(&message);
            if !fifo && !message.copy && self.trickster.duplicates() {
                let copy = Message {
                    seq: self.next_number(),
                    copy: true,
                    // The copy is this delivery once more: it does not bring the message
                    // nearer to the dead-letter queue.
                    receive_count: message.receive_count.saturating_sub(1),
                    visible_ms: now_ms.saturating_add(self.trickster.lateness_ms()),
                    ..message.clone()
                };
                self.put(id, copy, now_ms);
            }
            deliveries.push(Delivery { handle: handle(id, seq, message.receipt), message, fifo });
        }
        if let Some((target, _)) = redrive {
            for message in taken.dead {
                let message =
                    Message { source: Some(source.clone()), visible_ms: now_ms, ..message };
                self.put(target, message, now_ms);
            }
        }
        Ok(Received { queue: id, wait_seconds, deliveries })
    }

    /// Puts a message that another queue or delivery gave up into a queue.
    pub(crate) fn put(&mut self, id: QueueId, message: Message, now_ms: u64) {
        self.record(|| Change::PutMessage(id, Box::new(message.clone())));
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.insert(message, now_ms);
            self.touched.push(id);
        }
    }

    fn delete(&mut self, id: QueueId, text: &str) -> Result<(), SqsError> {
        let (seq, receipt) = parse_handle(id, text)?;
        let queue = self.queue_mut(id)?;
        let Some(message) = queue.message(seq) else {
            return Ok(());
        };
        if queue.attributes.fifo && message.place != Place::InFlight {
            return Err(SqsError::invalid_value(
                text,
                "ReceiptHandle",
                "The receipt handle has expired.",
            ));
        }
        // DeleteMessage: with an older handle "the request succeeds, but the message will not
        // be deleted".
        if message.receipt == receipt {
            queue.remove(seq);
            self.record(|| Change::DropMessage(seq));
        }
        Ok(())
    }

    fn change_visibility(
        &mut self,
        id: QueueId,
        text: &str,
        seconds: u64,
        now_ms: u64,
    ) -> Result<(), SqsError> {
        let (seq, receipt) = parse_handle(id, text)?;
        let queue = self.queue_mut(id)?;
        if queue.message(seq).is_none_or(|message| message.receipt != receipt) {
            return Err(SqsError::invalid_value(
                text,
                "ReceiptHandle",
                "Message does not exist or is not available for visibility timeout change.",
            ));
        }
        if !queue.hide(seq, now_ms, seconds * 1_000) {
            return Err(SqsError::new(
                ErrorKind::MessageNotInflight,
                "The specified message isn't in flight.",
            ));
        }
        if let Some(message) = self.queue(id)?.message(seq).cloned() {
            self.record_delivery(&message);
        }
        Ok(())
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

    fn page<'a>(
        &self,
        names: impl Iterator<Item = &'a String>,
        page: &Page,
    ) -> (Vec<String>, Option<String>) {
        let mut names = names.filter(|name| page.after.as_ref().is_none_or(|after| *name > after));
        let names_here: Vec<&String> = names.by_ref().take(page.count).collect();
        let more = page.paged && names.next().is_some();
        let next = if more { names_here.last().map(|name| (*name).clone()) } else { None };
        (names_here.into_iter().map(|name| self.url(name)).collect(), next)
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

    /// A random-looking UUID: a different one for each number and nonce.
    fn message_id(&self, seq: Seq) -> Arc<str> {
        let high = mix(self.nonce ^ mix(seq));
        let low = mix(high.wrapping_add(seq).rotate_left(32) ^ self.nonce);
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | (low >> 50),
            low & 0xffff_ffff_ffff,
        )
        .into()
    }

    pub(crate) fn record(&mut self, change: impl FnOnce() -> Change) {
        if let Some(journal) = &mut self.journal {
            journal.push(change());
        }
    }

    fn record_delivery(&mut self, message: &Message) {
        self.record(|| Change::Delivery {
            seq: message.seq,
            visible_ms: message.visible_ms,
            receive_count: message.receive_count,
            receipt: message.receipt,
            first_receive_ms: message.first_receive_ms,
        });
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

/// What a FIFO queue recognises a send by, once it has a group and a deduplication id.
fn deduplication_key(
    attributes: &QueueAttributes,
    content: &mut Content,
    delay_seconds: Option<u64>,
) -> Result<String, SqsError> {
    if let Some(seconds) = delay_seconds.filter(|seconds| *seconds > 0) {
        return Err(wrong_type("DelaySeconds", Some(seconds.to_string())));
    }
    let Some(group) = content.group.clone() else {
        return Err(SqsError::missing("MessageGroupId"));
    };
    let id = match &content.deduplication {
        Some(id) => id.clone(),
        None if attributes.content_deduplication => content.content_deduplication(),
        None => {
            return Err(SqsError::new(
                ErrorKind::InvalidParameterValue,
                "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly",
            ));
        }
    };
    content.deduplication = Some(id.clone());
    // Neither part can contain a blank, so no two pairs make the same key.
    Ok(if attributes.deduplicates_by_group { format!("{group} {id}") } else { id })
}

fn wrong_type(parameter: &str, value: Option<String>) -> SqsError {
    SqsError::invalid_value(
        value.unwrap_or_default(),
        parameter,
        "The request include parameter that is not valid for this queue type.",
    )
}

fn handle(queue: QueueId, seq: Seq, receipt: u32) -> String {
    format!("{HANDLE_PREFIX}{queue:016x}{seq:016x}{receipt:08x}")
}

/// The message and the receipt a handle was given out for.
fn parse_handle(queue: QueueId, text: &str) -> Result<(Seq, u32), SqsError> {
    let parse = || {
        let digits = text.strip_prefix(HANDLE_PREFIX).filter(|digits| digits.len() == 40)?;
        let number = |range| u64::from_str_radix(digits.get(range)?, 16).ok();
        let receipt = u32::try_from(number(32..40)?).ok()?;
        Some((number(0..16)?, number(16..32)?, receipt))
    };
    match parse() {
        Some((of, seq, receipt)) if of == queue => Ok((seq, receipt)),
        Some(_) | None => Err(SqsError::new(
            ErrorKind::ReceiptHandleIsInvalid,
            format!("The input receipt handle \"{text}\" is not a valid receipt handle."),
        )),
    }
}

#[cfg(test)]
mod tests;
