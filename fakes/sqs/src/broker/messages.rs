//! Messages: sent, received, hidden and deleted.

use std::sync::Arc;

use fake_limits::table::Service;

use super::handle::{format_handle, parse_handle};
use super::{Broker, Received};
use crate::attributes::QueueAttributes;
use crate::change::{Change, DeduplicationRecord};
use crate::error::{ErrorKind, SqsError};
use crate::faults::mix;
use crate::fifo::Original;
use crate::message::{Content, Message, Place, Seq};
use crate::queue::{QueueId, Take};
use crate::wire::{Delivery, Receive, Send, Sent, sequence_number};

impl Broker {
    pub(super) fn send(&mut self, id: QueueId, send: Send, now_ms: u64) -> Result<Sent, SqsError> {
        let Send { mut content, delay_seconds } = send;
        let queue = self.queue(id)?;
        let attributes = &queue.attributes;
        if content.size_bytes() > attributes.message_bytes_max {
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
        let late_ms = if fifo { 0 } else { self.injector.lateness_ms() };
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

    pub(super) fn take(&mut self, receive: &Receive, now_ms: u64) -> Result<Received, SqsError> {
        let id = self.enter(&receive.queue, now_ms)?;
        let queue = self.queue(id)?;
        let wait_seconds = receive.wait_seconds.unwrap_or(queue.attributes.wait_seconds);
        if queue.is_full_in_flight() {
            let how = if wait_seconds > 0 { "a long poll finds nothing" } else { "OverLimit" };
            let reason = format!("messages in flight of {} ({how})", queue.name);
            self.home.throttles.one(Service::Sqs.name(), &reason);
            // A long poll gets an empty answer, not an error.
            if wait_seconds > 0 || queue.attributes.fifo {
                return Ok(Received { queue: id, wait_seconds, deliveries: Vec::new() });
            }
            return Err(SqsError::new(
                ErrorKind::OverLimit,
                format!("Too many messages of {} are in flight.", receive.queue),
            ));
        }
        let attributes = &queue.attributes;
        let fifo = attributes.fifo;
        let source: Arc<str> = self.arn(&queue.name).into();
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
        let (Some(queue), injector) = (self.queues.get_mut(&id), &mut self.injector) else {
            return Err(SqsError::no_queue());
        };
        let taken = queue.take(take, now_ms, |ready| if fifo { 0 } else { injector.pick(ready) });
        let mut deliveries = Vec::with_capacity(taken.delivered.len());
        for seq in taken.delivered {
            let Some(message) = self.queue(id)?.message(seq).cloned() else {
                continue;
            };
            self.record_delivery(&message);
            if !fifo && !message.copy && self.injector.duplicates() {
                let copy = Message {
                    seq: self.next_number(),
                    copy: true,
                    // The copy is this delivery once more: it does not bring the message
                    // nearer to the dead-letter queue.
                    receive_count: message.receive_count.saturating_sub(1),
                    visible_ms: now_ms.saturating_add(self.injector.lateness_ms()),
                    ..message.clone()
                };
                self.put(id, copy, now_ms);
            }
            deliveries.push(Delivery {
                handle: format_handle(id, seq, message.receipt),
                message,
                fifo,
            });
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

    pub(super) fn delete(&mut self, id: QueueId, text: &str) -> Result<(), SqsError> {
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

    pub(super) fn change_visibility(
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

    fn record_delivery(&mut self, message: &Message) {
        self.record(|| Change::Delivery {
            seq: message.seq,
            visible_ms: message.visible_ms,
            receive_count: message.receive_count,
            receipt: message.receipt,
            first_receive_ms: message.first_receive_ms,
        });
    }
}

/// The key by which a FIFO queue recognises a repeated send; sets the deduplication id of a
/// content that has none.
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
