//! The dead-letter queues: what is in them and why, back to where it came from, or away.
//!
//! Looking at a message takes it out of sight for everybody for a while; it is given back when all
//! were looked at. Nothing is deleted but the one message that was named.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::DisplayErrorContext;
use aws_sdk_sqs::types::{
    ChangeMessageVisibilityBatchRequestEntry, Message as Received, MessageSystemAttributeName,
    QueueAttributeName,
};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{OrderState, PaymentKey, PaymentOutcome};
use engine::ports::messages::{
    AwardPoints, Callback, ClosePayments, Draw, Expiry, LoadSale, Malformed, QueueMessage, Refund,
    Sync,
};
use engine::ports::{Catalogue, Freshness, Orders, Ports, StoreError, Stored};
use futures_util::future::try_join_all;
use serde::Serialize;
use shared::runtime::functions::QueueName;
use shared::sqs::QueueUrls;

/// The most messages that one call may receive or give back (a quota of SQS).
const MAX_BATCH: u8 = 10;
/// Time for which a message that is being looked at is invisible, in seconds.
const LOOK_SECONDS: i32 = 60;
/// Time that a receive waits for a message, in seconds.
const WAIT_SECONDS: i32 = 1;
/// The pause between two questions whether a move has ended, and the longest that one may take.
const MOVE_LOOK: Duration = Duration::from_millis(200);
const MAX_MOVE: Duration = Duration::from_secs(600);

/// Why a queue could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQS has refused, or has not answered.
    #[error("queue {queue}: {why}")]
    Sqs {
        /// The queue.
        queue: &'static str,
        /// Error of SQS, in words.
        why: String,
    },
    /// A move did not end well.
    #[error("queue {queue}: the move of its dead letters {what}")]
    Move {
        /// The queue.
        queue: &'static str,
        /// Outcome of the move, in words.
        what: String,
    },
    /// There is no such message among the dead letters.
    #[error("{queue} has no dead letter {message}")]
    NoSuchMessage {
        /// The queue.
        queue: &'static str,
        /// The message.
        message: String,
    },
    /// A message that could be handled is not thrown away by mistake.
    #[error("message {0} could still be handled: redrive the queue, or say --anyway")]
    CanBeHandled(String),
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Letter {
    /// The message's id.
    pub message: String,
    /// Time at which it was first sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
    /// Its body, as it was sent.
    pub body: String,
    /// The sale it speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sale: Option<SaleId>,
    /// The order it speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<OrderNumber>,
    /// True if its consumer could handle it if it came again.
    pub can_be_handled: bool,
    /// Possible reason, and effect of moving it back, in words.
    pub why: String,
}

/// One dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeadLetters {
    /// The queue that its messages come from.
    pub queue: QueueName,
    /// Its own name.
    pub name: String,
    /// Number of its messages, by its own count.
    pub count: u64,
    /// Time at which the first of those that were looked at was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_sent_at: Option<Timestamp>,
    /// Those that were looked at.
    pub letters: Vec<Letter>,
}

/// Result of a redrive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The queue that has its messages back.
    pub queue: QueueName,
    /// The number of messages that were moved.
    pub moved: i64,
}

/// The dead-letter queues of an engine.
#[derive(Debug)]
pub struct DeadLetterQueues<'a, P> {
    ports: &'a P,
    sqs: &'a Client,
    urls: &'a QueueUrls,
}

/// Address of a dead-letter queue.
struct Place {
    url: String,
    arn: String,
    name: String,
}

impl<'a, P: Ports> DeadLetterQueues<'a, P> {
    /// Those of the engine with these queues.
    #[must_use]
    pub fn new(ports: &'a P, sqs: &'a Client, urls: &'a QueueUrls) -> Self {
        Self { ports, sqs, urls }
    }

    /// What is in a dead-letter queue; at most `most` messages are looked at.
    ///
    /// # Errors
    /// SQS does not answer. What the stores cannot say stands in the letter.
    pub async fn list(&self, which: QueueName, most: usize) -> Result<DeadLetters, Error> {
        let place = self.place(which).await?;
        let count = self.count(which, &place).await?;
        let received = self.look(which, &place, most, |_| false).await?;
        let mut letters = Vec::with_capacity(received.len());
        for message in &received {
            letters.push(self.letter(which, message).await);
        }
        self.give_back(which, &place, &received).await?;
        letters.sort_by_key(|letter| letter.sent_at);
        let oldest_sent_at = letters.iter().filter_map(|letter| letter.sent_at).min();
        Ok(DeadLetters { queue: which, name: place.name, count, oldest_sent_at, letters })
    }

    /// What is in each dead-letter queue, in the order of [`QueueName::ALL`], each as [`Self::list`] says. They
    /// are read at once: each look ends with a wait for a message that does not come.
    ///
    /// # Errors
    /// As [`Self::list`].
    pub async fn list_all(&self, most: usize) -> Result<Vec<DeadLetters>, Error> {
        try_join_all(QueueName::ALL.map(|which| self.list(which, most))).await
    }

    /// Moves everything back to the queue where it came from, and waits until that is done.
    ///
    /// # Errors
    /// SQS refuses, or the move fails or takes too long.
    pub async fn redrive(&self, which: QueueName) -> Result<Moved, Error> {
        let place = self.place(which).await?;
        let queue = which.as_str();
        if self.count(which, &place).await? == 0 {
            return Ok(Moved { queue: which, moved: 0 });
        }
        let start = self.sqs.start_message_move_task().source_arn(&place.arn);
        start.send().await.map_err(|error| sqs_error(which, error))?;
        let started = Instant::now();
        while started.elapsed() < MAX_MOVE {
            let asked = self.sqs.list_message_move_tasks().source_arn(&place.arn).max_results(1);
            let tasks = asked.send().await.map_err(|error| sqs_error(which, error))?;
            let task = tasks.results.unwrap_or_default().into_iter().next();
            let status = task.as_ref().and_then(|task| task.status()).unwrap_or_default();
            match status {
                "RUNNING" => tokio::time::sleep(MOVE_LOOK).await,
                "COMPLETED" => {
                    let moved = task.map_or(0, |task| task.approximate_number_of_messages_moved);
                    return Ok(Moved { queue: which, moved });
                }
                other => {
                    let reason = task.as_ref().and_then(|task| task.failure_reason());
                    let what = format!("ended as {other:?}: {}", reason.unwrap_or("no reason"));
                    return Err(Error::Move { queue, what });
                }
            }
        }
        let what = format!("has not ended after {} s; it goes on", MAX_MOVE.as_secs());
        Err(Error::Move { queue, what })
    }

    /// Throws one message away and returns it. One that could be handled stays, unless `anyway`.
    ///
    /// # Errors
    /// There is no such message, it could be handled, or SQS does not answer.
    pub async fn drop_one(
        &self,
        which: QueueName,
        message: &str,
        anyway: bool,
    ) -> Result<Letter, Error> {
        let place = self.place(which).await?;
        let is_it = |received: &Received| received.message_id() == Some(message);
        let mut received = self.look(which, &place, usize::MAX, is_it).await?;
        let found = received.iter().position(is_it).map(|index| received.swap_remove(index));
        let outcome = match &found {
            None => {
                let (queue, message) = (which.as_str(), message.to_owned());
                Err(Error::NoSuchMessage { queue, message })
            }
            Some(found) => {
                let letter = self.letter(which, found).await;
                if letter.can_be_handled && !anyway {
                    Err(Error::CanBeHandled(letter.message))
                } else {
                    self.delete(which, &place, found).await.map(|()| letter)
                }
            }
        };
        received.extend(found.filter(|_| outcome.is_err()));
        self.give_back(which, &place, &received).await?;
        outcome
    }

    async fn place(&self, which: QueueName) -> Result<Place, Error> {
        use QueueAttributeName::RedrivePolicy;
        let error = |why: String| Error::Sqs { queue: which.as_str(), why };
        let asked = self.sqs.get_queue_attributes().queue_url(self.urls.get(which));
        let asked = asked.attribute_names(RedrivePolicy).send().await;
        let attributes =
            asked.map_err(|failed| sqs_error(which, failed))?.attributes.unwrap_or_default();
        let policy = attributes.get(&RedrivePolicy).map(String::as_str).unwrap_or("{}");
        let policy: serde_json::Value =
            serde_json::from_str(policy).map_err(|unreadable| error(unreadable.to_string()))?;
        let arn = policy["deadLetterTargetArn"].as_str();
        let arn = arn.ok_or_else(|| error("it has no dead-letter queue".to_owned()))?.to_owned();
        let name = arn.rsplit(':').next().unwrap_or(&arn).to_owned();
        let found = self.sqs.get_queue_url().queue_name(&name).send().await;
        let url = found.map_err(|failed| sqs_error(which, failed))?.queue_url;
        let url = url.ok_or_else(|| error(format!("{name} has no URL")))?;
        Ok(Place { url, arn, name })
    }

    async fn count(&self, which: QueueName, place: &Place) -> Result<u64, Error> {
        use QueueAttributeName as Name;
        let names = [
            Name::ApproximateNumberOfMessages,
            Name::ApproximateNumberOfMessagesNotVisible,
            Name::ApproximateNumberOfMessagesDelayed,
        ];
        let asked = self.sqs.get_queue_attributes().queue_url(&place.url);
        let asked = asked.set_attribute_names(Some(names.to_vec())).send().await;
        let attributes =
            asked.map_err(|failed| sqs_error(which, failed))?.attributes.unwrap_or_default();
        Ok(names.iter().filter_map(|name| attributes.get(name)?.parse::<u64>().ok()).sum())
    }

    /// Receives messages, each once, until there are none, there are `most`, or one that `is_enough`.
    async fn look(
        &self,
        which: QueueName,
        place: &Place,
        most: usize,
        is_enough: impl Fn(&Received) -> bool,
    ) -> Result<Vec<Received>, Error> {
        let mut seen: BTreeMap<String, Received> = BTreeMap::new();
        while seen.len() < most && !seen.values().any(&is_enough) {
            let receive = self.sqs.receive_message().queue_url(&place.url);
            let receive = receive
                .max_number_of_messages(MAX_BATCH.into())
                .visibility_timeout(LOOK_SECONDS)
                .wait_time_seconds(WAIT_SECONDS)
                .message_system_attribute_names(MessageSystemAttributeName::SentTimestamp);
            let received = receive.send().await.map_err(|failed| sqs_error(which, failed))?;
            let messages = received.messages.unwrap_or_default();
            if messages.is_empty() {
                break;
            }
            // One that comes twice has a new receipt, and only that one counts.
            let named = messages.into_iter();
            seen.extend(named.map(|one| (one.message_id().unwrap_or_default().to_owned(), one)));
        }
        Ok(seen.into_values().collect())
    }

    /// Lets others see the messages again.
    async fn give_back(
        &self,
        which: QueueName,
        place: &Place,
        received: &[Received],
    ) -> Result<(), Error> {
        for batch in received.chunks(MAX_BATCH.into()) {
            let entry = |(index, message): (usize, &Received)| {
                ChangeMessageVisibilityBatchRequestEntry::builder()
                    .id(index.to_string())
                    .set_receipt_handle(message.receipt_handle.clone())
                    .visibility_timeout(0)
                    .build()
            };
            let entries = batch.iter().enumerate().map(entry).collect::<Result<Vec<_>, _>>();
            let entries = entries
                .map_err(|error| Error::Sqs { queue: which.as_str(), why: error.to_string() })?;
            let change = self.sqs.change_message_visibility_batch().queue_url(&place.url);
            let changed = change.set_entries(Some(entries)).send().await;
            changed.map_err(|failed| sqs_error(which, failed))?;
        }
        Ok(())
    }

    async fn delete(&self, which: QueueName, place: &Place, found: &Received) -> Result<(), Error> {
        let delete = self.sqs.delete_message().queue_url(&place.url);
        let deleted = delete.set_receipt_handle(found.receipt_handle.clone()).send().await;
        deleted.map(|_| ()).map_err(|failed| sqs_error(which, failed))
    }

    async fn letter(&self, which: QueueName, message: &Received) -> Letter {
        let body = message.body().unwrap_or_default();
        let sent = message.attributes().and_then(|attributes| {
            attributes.get(&MessageSystemAttributeName::SentTimestamp)?.parse::<i64>().ok()
        });
        let Judged { sale, order, can_be_handled, why } = self.judge(which, body).await;
        Letter {
            message: message.message_id().unwrap_or_default().to_owned(),
            sent_at: sent.map(Timestamp::from_ms),
            body: body.to_owned(),
            sale,
            order,
            can_be_handled,
            why,
        }
    }

    /// What a message speaks of, and what the stores say of that now.
    async fn judge(&self, which: QueueName, body: &str) -> Judged {
        let judged = match which.read(body) {
            Ok(QueueMessage::Expiry(message)) => self.expiry(message).await,
            Ok(QueueMessage::Sync(message)) => self.sync(message).await,
            Ok(QueueMessage::Load(message)) => self.load(message).await,
            Ok(QueueMessage::Refund(message)) => self.refund(message).await,
            Ok(QueueMessage::Callback(message)) => self.callback(message).await,
            Ok(QueueMessage::Draw(message)) => self.draw(message).await,
            Ok(QueueMessage::Close(message)) => self.close(message).await,
            Ok(QueueMessage::Points(message)) => self.points(message).await,
            Err(malformed) => Ok(Judged::malformed(&malformed)),
        };
        judged.unwrap_or_else(|error: StoreError| Judged {
            sale: None,
            order: None,
            can_be_handled: true,
            why: format!("what it speaks of cannot be read: {error}"),
        })
    }

    async fn expiry(&self, message: Expiry) -> Stored<Judged> {
        let Expiry { sale, order: number, .. } = message;
        let order = self.ports.orders().get(number).await?;
        let why = match order.map(|order| order.state) {
            None => "there is no order: its hold ends when this is moved back, or by reconcile",
            Some(OrderState::Pending) => {
                "its order is pending: a store was out of reach, or a bug stops its end; moved \
                 back it is tried again, as reconcile does each minute"
            }
            Some(
                OrderState::Paid
                | OrderState::Cancelled
                | OrderState::Expired
                | OrderState::RefundDue
                | OrderState::Refunded,
            ) => "its order was finished without it; moved back it does nothing",
        };
        Ok(Judged::about(Some(sale), Some(number), why))
    }

    async fn close(&self, message: ClosePayments) -> Stored<Judged> {
        let ClosePayments { sale, order: number, .. } = message;
        let order = self.ports.orders().get(number).await?;
        let why = match order {
            None => "there is no such order; moved back it does nothing",
            Some(order) if order.attempts.any_open() => {
                "a payment of its order is open: DynamoDB was out of reach, or a bug stops its end; \
                 moved back it is closed, as reconcile asks for each minute"
            }
            Some(_) => "nothing of its order is open any more; moved back it does nothing",
        };
        Ok(Judged::about(Some(sale), Some(number), why))
    }

    async fn sync(&self, Sync { order: number }: Sync) -> Stored<Judged> {
        let order = self.ports.orders().get(number).await?;
        let sale = order.as_ref().map(|order| order.sale.clone());
        let why = match order {
            None => "there is no such order; moved back it does nothing",
            Some(order) if !order.facts.are_settled() => {
                "a fact of its order is not settled: DynamoDB was out of reach or throttled; moved \
                 back it is settled, as reconcile does a minute after it is due"
            }
            Some(_) => "its order was settled without it; moved back it does nothing",
        };
        Ok(Judged::about(sale, Some(number), why))
    }

    async fn points(&self, AwardPoints { order: number, .. }: AwardPoints) -> Stored<Judged> {
        let order = self.ports.orders().get(number).await?;
        let sale = order.as_ref().map(|order| order.sale.clone());
        let award = order.as_ref().and_then(|order| order.award().map(|award| (order, award)));
        let Some((order, award)) = award else {
            let why = "there is no such order, or it gives nothing; moved back it does nothing";
            return Ok(Judged::about(sale, Some(number), why));
        };
        let given = self.ports.orders().awarded(&order.user, number).await?;
        let why = if given.is_some_and(|given| given.facts >= award.facts) {
            "what its order gives was written without it; moved back it does nothing"
        } else {
            "its buyer has not what its order gives: DynamoDB was out of reach or throttled; moved back it is written, \
             and by nothing else"
        };
        Ok(Judged::about(sale, Some(number), why))
    }

    async fn load(&self, LoadSale { sale }: LoadSale) -> Stored<Judged> {
        if self.ports.catalogue().sale(&sale, Freshness::Fresh).await?.is_none() {
            let why = "there is no such sale: it fails each time";
            return Ok(Judged { can_be_handled: false, ..Judged::about(Some(sale), None, why) });
        }
        let why = "DynamoDB or Redis was out of reach; reconcile loads what is lost each minute, \
                   and moved back it does nothing for a sale that is loaded";
        Ok(Judged::about(Some(sale), None, why))
    }

    async fn draw(&self, Draw { sale }: Draw) -> Stored<Judged> {
        if self.ports.catalogue().sale(&sale, Freshness::Fresh).await?.is_none() {
            let why = "there is no such sale; moved back it does nothing";
            return Ok(Judged::about(Some(sale), None, why));
        }
        let why = "DynamoDB or the beacon was out of reach; reconcile requests the draw each minute \
                   until the room is drawn, and moved back it does nothing for one that is";
        Ok(Judged::about(Some(sale), None, why))
    }

    async fn callback(&self, message: Callback) -> Stored<Judged> {
        let Callback { provider, payment, order, .. } = message;
        let record = self.ports.orders().payment(order, &PaymentKey { provider, payment }).await?;
        let why = match record.map(|record| record.outcome) {
            None => {
                "this payment is captured and not decided: a store was out of reach; move it back, \
                 and its order is paid or the money goes back. Nothing else may know of it"
            }
            Some(PaymentOutcome::Accepted) => {
                "this payment was accepted without it; moved back it does nothing"
            }
            Some(PaymentOutcome::Refund(_)) => {
                "this payment was decided without it, and goes back; moved back it does nothing"
            }
        };
        Ok(Judged::about(None, Some(order), why))
    }

    async fn refund(&self, message: Refund) -> Stored<Judged> {
        let Refund { provider, payment, order, .. } = message;
        let record = self.ports.orders().payment(order, &PaymentKey { provider, payment }).await?;
        let Some(record) = record else {
            let why = "this payment was never recorded: no money moves on the word of a message";
            return Ok(Judged { can_be_handled: false, ..Judged::about(None, Some(order), why) });
        };
        let why = match record.refund.map(|refund| refund.state) {
            None => "the payment was accepted and does not go back",
            Some(RefundState::Refunded | RefundState::Outside | RefundState::Settled) => {
                "the money went back; moved back it does nothing"
            }
            Some(RefundState::FailedLater) => {
                "the money went back and came to us again: an operator decides, and no message refunds it"
            }
            Some(RefundState::Failed) => "the provider has refused; moved back it is asked again",
            Some(RefundState::Unmatched | RefundState::Explained) => {
                "no order is known for the payment: an operator decides, and no message refunds it"
            }
            Some(RefundState::Due | RefundState::Requested | RefundState::Pending) => {
                "the money has not gone back: the provider or DynamoDB was out of reach; moved \
                 back it is asked for again, once"
            }
        };
        Ok(Judged::about(None, Some(order), why))
    }
}

/// Facts about a message.
struct Judged {
    sale: Option<SaleId>,
    order: Option<OrderNumber>,
    can_be_handled: bool,
    why: String,
}

impl Judged {
    fn about(sale: Option<SaleId>, order: Option<OrderNumber>, why: &str) -> Self {
        Self { sale, order, can_be_handled: true, why: why.to_owned() }
    }

    fn malformed(malformed: &Malformed) -> Self {
        let why = format!("{malformed}: it fails each time; correct its sender, then drop it");
        Self { sale: None, order: None, can_be_handled: false, why }
    }
}

fn sqs_error(which: QueueName, error: impl std::error::Error) -> Error {
    Error::Sqs { queue: which.as_str(), why: DisplayErrorContext(error).to_string() }
}
