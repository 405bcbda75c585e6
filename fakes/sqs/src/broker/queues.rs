//! Queues as a whole: made, set, listed, tagged, purged and deleted.

use std::collections::BTreeMap;

use super::{Broker, Wake};
use crate::attributes::{QueueAttributes, is_attribute};
use crate::change::Change;
use crate::error::{ErrorKind, SqsError};
use crate::queue::{Queue, QueueId};
use crate::wire::{Page, Reply};

/// Milliseconds for which a purge blocks the next one, and a deletion its name, at Amazon.
const COOLDOWN_MS: u64 = 60_000;

/// Tags a queue may have.
const TAGS_MAX: usize = 50;

impl Broker {
    pub(super) fn create_queue(
        &mut self,
        name: String,
        attributes: &BTreeMap<String, String>,
        tags: BTreeMap<String, String>,
        now_ms: u64,
    ) -> Result<Reply, SqsError> {
        let requested = self.checked(QueueAttributes::default(), attributes)?;
        let stem =
            if requested.fifo { name.strip_suffix(".fifo").unwrap_or_default() } else { &name };
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
            let (held, requested) = (existing.attributes.values(), requested.values());
            if let Some(other) = attributes.keys().find(|key| held.get(*key) != requested.get(*key))
            {
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
        let mut queue = Queue::new(name.clone(), requested, now_ms);
        queue.tags = tags;
        self.queues.insert(id, queue);
        let url = self.url(&name);
        self.names.insert(name, id);
        self.record_queue(id);
        Ok(Reply::Url(url))
    }

    pub(super) fn set_attributes(
        &mut self,
        queue: &str,
        attributes: &BTreeMap<String, String>,
        now_ms: u64,
    ) -> Result<Reply, SqsError> {
        let id = self.enter(queue, now_ms)?;
        let held = self.queue(id)?.attributes.clone();
        let fifo = held.fifo;
        let requested = self.checked(held, attributes)?;
        if requested.fifo != fifo {
            return Err(SqsError::new(
                ErrorKind::InvalidAttributeValue,
                "The FifoQueue attribute cannot be changed after the queue was created.",
            ));
        }
        let queue = self.queue_mut(id)?;
        queue.attributes = requested;
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

    pub(super) fn attributes(
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

    pub(super) fn delete_queue(&mut self, name: &str, now_ms: u64) -> Result<Reply, SqsError> {
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

    pub(super) fn purge(&mut self, name: &str, now_ms: u64) -> Result<Reply, SqsError> {
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

    /// The queues whose name begins with `prefix`, in the order of their names.
    pub(super) fn list_queues(&self, prefix: &str, page: &Page) -> Reply {
        let names = self
            .names
            .range(prefix.to_owned()..)
            .map(|(name, _)| name)
            .take_while(|name| name.starts_with(prefix));
        let (urls, next) = self.page(names, page);
        Reply::Urls { urls, next }
    }

    /// The queues whose dead-letter queue is `queue`.
    pub(super) fn list_sources(&self, queue: &str, page: &Page) -> Result<Reply, SqsError> {
        let arn = self.arn(&self.queue(self.id(queue)?)?.name);
        let names = self.names.iter().filter(|(_, id)| self.redrives_to(**id, &arn));
        let (urls, next) = self.page(names.map(|(name, _)| name), page);
        Ok(Reply::SourceUrls { urls, next })
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

    /// Adds tags; a tag of the same key is replaced.
    pub(super) fn tag(
        &mut self,
        queue: &str,
        tags: BTreeMap<String, String>,
        now_ms: u64,
    ) -> Result<Reply, SqsError> {
        let id = self.enter(queue, now_ms)?;
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

    /// Removes the tags of these keys.
    pub(super) fn untag(
        &mut self,
        queue: &str,
        keys: &[String],
        now_ms: u64,
    ) -> Result<Reply, SqsError> {
        let id = self.enter(queue, now_ms)?;
        self.queue_mut(id)?.tags.retain(|key, _| !keys.contains(key));
        self.record_queue(id);
        Ok(Reply::Done)
    }
}
