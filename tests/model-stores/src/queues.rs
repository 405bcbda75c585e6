//! The queues as SQS keeps them: messages that become visible at a time.
//!
//! What is delivered when, twice or never is for whoever drives the model to say.

use std::collections::BTreeMap;

use engine::domain::basics::ids::{InventoryId, SaleId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::ports::messages::{
    AwardPoints, Callback, ClosePayments, Draw, Expiry, LoadSale, QueueMessage, Refund, Sync,
};

/// A message of any queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Look at an order when it is due.
    Expiry {
        /// The inventory in which the number may have a hold.
        inventory: InventoryId,
        order: OrderNumber,
        /// Until when it may be paid.
        due_at: Timestamp,
        /// When its providers were last asked.
        heard_at: Option<Timestamp>,
    },
    /// Close an order's payments at their providers.
    Close(ClosePayments),
    /// Count a paid order.
    Sync(OrderNumber),
    /// Load a sale that Redis has lost.
    Load(SaleId),
    /// Send a payment back.
    Refund(Refund),
    /// Decide a capture that was reported while a store did not answer.
    Callback(Callback),
    /// Draw the waiting room of a sale.
    Draw(SaleId),
    /// Write what an order gives its buyer.
    Points(OrderNumber),
}

impl Message {
    /// A message that an engine sends.
    #[must_use]
    pub fn from_engine(message: &QueueMessage) -> Self {
        match message.clone() {
            QueueMessage::Expiry(expiry) => {
                let inventory = expiry.inventory();
                let Expiry { order, due_at, heard_at, .. } = expiry;
                Self::Expiry { inventory, order, due_at, heard_at }
            }
            QueueMessage::Sync(Sync { order }) => Self::Sync(order),
            QueueMessage::Load(LoadSale { sale }) => Self::Load(sale),
            QueueMessage::Refund(refund) => Self::Refund(refund),
            QueueMessage::Callback(callback) => Self::Callback(callback),
            QueueMessage::Draw(Draw { sale }) => Self::Draw(sale),
            QueueMessage::Close(close) => Self::Close(close),
            QueueMessage::Points(AwardPoints { order, .. }) => Self::Points(order),
        }
    }
}

/// A message and when it becomes visible.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent {
    /// The time from which it may be delivered.
    pub visible_at: Timestamp,
    pub message: Message,
}

/// The messages that wait, each with how often it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct QueuesModel {
    pub waiting: BTreeMap<Sent, u32>,
}

impl QueuesModel {
    /// Puts a message into its queue.
    pub fn send(&mut self, visible_at: Timestamp, message: Message) {
        *self.waiting.entry(Sent { visible_at, message }).or_default() += 1;
    }

    /// Takes one copy of a message out; false if there is none.
    pub fn take(&mut self, sent: &Sent) -> bool {
        let Some(copies) = self.waiting.get_mut(sent) else { return false };
        *copies -= 1;
        if *copies == 0 {
            self.waiting.remove(sent);
        }
        true
    }

    /// The messages that may be delivered at `now`, earliest first.
    pub fn visible(&self, now: Timestamp) -> impl Iterator<Item = &Sent> {
        self.waiting.keys().take_while(move |sent| sent.visible_at <= now)
    }

    /// Puts a message that an engine sends into its queue. How often a process may send one is its own
    /// business.
    pub fn accept(&mut self, visible_at: Timestamp, message: &QueueMessage) {
        self.send(visible_at, Message::from_engine(message));
    }
}
