//! The queues as SQS keeps them: messages that become visible at a time.
//!
//! What is delivered when, twice or never is for whoever drives the model to say.

use std::collections::BTreeMap;

use engine::domain::ids::SaleId;
use engine::domain::number::OrderNumber;
use engine::domain::order::PaymentRecord;
use engine::domain::time::Timestamp;
use engine::ports::{StoreError, Stored};
use engine::ports::{delay_seconds, messages::Refund};

/// A message of any queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// Look at an order when it is due.
    Expiry {
        /// The order's sale.
        sale: SaleId,
        /// The order.
        order: OrderNumber,
        /// Until when it may be paid.
        due_at: Timestamp,
    },
    /// Count a paid order.
    Sync(OrderNumber),
    /// Load a sale that Redis has lost.
    Load(SaleId),
    /// Send a payment back.
    Refund(Refund),
}

/// A message and when it becomes visible.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent {
    /// The time from which it may be delivered.
    pub visible_at: Timestamp,
    /// The message.
    pub message: Message,
}

/// The messages that wait, each with how often it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct QueuesModel {
    /// Earliest first.
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

    /// Looks at an order again when its deadline has passed, or after the longest delay that SQS
    /// has.
    pub fn expire_later(
        &mut self,
        sale: &SaleId,
        order: OrderNumber,
        now: Timestamp,
        deadline: Timestamp,
    ) {
        let visible_at = now.plus_seconds(delay_seconds(now, deadline).into());
        let message = Message::Expiry { sale: sale.clone(), order, due_at: deadline };
        self.send(visible_at, message);
    }

    /// Counts a paid order.
    pub fn sync(&mut self, now: Timestamp, order: OrderNumber) {
        self.send(now, Message::Sync(order));
    }

    /// Loads a sale that Redis has lost. How often a process may ask is its own business.
    pub fn load_again(&mut self, now: Timestamp, sale: &SaleId) {
        self.send(now, Message::Load(sale.clone()));
    }

    /// Sends a payment back.
    ///
    /// # Errors
    /// `Contract` for an accepted payment.
    pub fn refund(&mut self, now: Timestamp, payment: &PaymentRecord) -> Stored<()> {
        let accepted = || StoreError::Contract("an accepted payment is not refunded".to_owned());
        let message = Refund::from_record(payment).ok_or_else(accepted)?;
        self.send(now, Message::Refund(message));
        Ok(())
    }
}
