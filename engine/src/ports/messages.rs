//! The messages of the queues, in JSON.
//!
//! A consumer ignores unknown fields: a message waits in its queue across a deployment, so its consumer may be
//! older or newer than its sender.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::domain::basics::ids::{InventoryId, PaymentId, ProviderId, SaleId, TierId};
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::basics::number::OrderNumber;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::AttemptNumber;
use crate::domain::order::order_refund::{OrderRefund, RefundNumber};
use crate::domain::order::{Capture, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason};
use crate::domain::payment::ours::{Mark, Reported};

/// The most bytes of a message, and of a batch of them (a quota of SQS: 256 KiB until August 2025, which
/// older clients and fakes keep; 1 MiB since).
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;
/// The most messages of one batch (a quota of SQS).
pub const MAX_MESSAGES_PER_BATCH: usize = 10;

/// The most bytes of the longest messages, a [`Refund`] and a [`Callback`], in JSON. Only a payment id can have characters
/// that JSON escapes, each then in two bytes; 256 bytes are more than the names of the fields, the
/// two numbers, the currency, the reason and the punctuation need.
const MAX_REFUND_BYTES: usize = ProviderId::MAX_BYTES + 2 * PaymentId::MAX_BYTES + 256;
/// The most bytes of an [`Expiry`], a [`LoadSale`] or a [`Draw`]: a sale, a tier, a number, a time and their names.
const MAX_SALE_MESSAGE_BYTES: usize = SaleId::MAX_BYTES + TierId::MAX_BYTES + 256;
const _: () = assert!(MAX_REFUND_BYTES * MAX_MESSAGES_PER_BATCH <= MAX_MESSAGE_BYTES);
const _: () = assert!(MAX_SALE_MESSAGE_BYTES * MAX_MESSAGES_PER_BATCH <= MAX_MESSAGE_BYTES);

/// A body that is not a message of its queue. Reading it again does not help: SQS moves it to the dead-letter
/// queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a message of kind {kind}: {why}")]
pub struct Malformed {
    /// The kind of message that the queue carries, such as `expiry`.
    pub kind: &'static str,
    /// The parser's reason, in words.
    pub why: String,
}

/// A message of one queue, written as a JSON object.
pub trait Message: Serialize + DeserializeOwned {
    /// The name of the kind of message, which is also its queue's: such as `expiry`.
    const KIND: &'static str;

    /// Reads the body of a message.
    ///
    /// # Errors
    /// [`Malformed`] if a field is absent or is not what it should be.
    fn read(body: &str) -> Result<Self, Malformed> {
        let malformed =
            |error: serde_json::Error| Malformed { kind: Self::KIND, why: error.to_string() };
        serde_json::from_str(body).map_err(malformed)
    }

    /// Writes the body of the message.
    ///
    /// # Errors
    /// [`Malformed`] if the message cannot be written as JSON.
    fn body(&self) -> Result<String, Malformed> {
        let malformed =
            |error: serde_json::Error| Malformed { kind: Self::KIND, why: error.to_string() };
        serde_json::to_string(self).map_err(malformed)
    }
}

/// Writes [`QueueMessage`] from the list of its queues: what a queue is called, the message that it
/// carries, and what that message is called.
macro_rules! queue_messages {
    ($($queue:ident($message:ident), $kind:literal;)*) => {
        /// A message of any queue. Its variant is the queue that it goes to.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum QueueMessage {
            $(#[doc = concat!("A message of the queue `", $kind, "`.")] $queue($message),)*
        }

        impl QueueMessage {
            /// Writes the body of the message.
            ///
            /// # Errors
            /// [`Malformed`] if the message cannot be written as JSON.
            pub fn body(&self) -> Result<String, Malformed> {
                match self {
                    $(Self::$queue(message) => message.body(),)*
                }
            }
        }

        $(
            impl Message for $message {
                const KIND: &'static str = $kind;
            }

            impl From<$message> for QueueMessage {
                fn from(message: $message) -> Self {
                    Self::$queue(message)
                }
            }
        )*
    };
}

queue_messages! {
    Expiry(Expiry), "expiry";
    Sync(Sync), "sync";
    Load(LoadSale), "load";
    Refund(Refund), "refund";
    Callback(Callback), "callback";
    Draw(Draw), "draw";
    Close(ClosePayments), "close";
    Points(AwardPoints), "points";
}

/// A message of the expiry queue: check at its deadline whether a pending order expires.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Expiry {
    /// The order's sale.
    pub sale: SaleId,
    /// The tier in which the number may have a hold, if the sale keeps its tiers apart. A hold that never became an
    /// order can be found in no other way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierId>,
    /// The number of the order, or of a hold that never became one.
    pub order: OrderNumber,
    /// The end of the order's payment window. A consumer that is early puts the message back with a delay.
    pub due_at: Timestamp,
    /// The time up to which the captures that the order's providers list are decided; absent if the providers were
    /// not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard_at: Option<Timestamp>,
}

impl Expiry {
    /// The message about a number that may have a hold in an inventory.
    #[must_use]
    pub fn new(inventory: &InventoryId, order: OrderNumber, due_at: Timestamp) -> Self {
        let (sale, tier) = (inventory.sale().clone(), inventory.tier().cloned());
        Self { sale, tier, order, due_at, heard_at: None }
    }

    /// The inventory in which the order may have a hold: the sale, or one tier of it.
    #[must_use]
    pub fn inventory(&self) -> InventoryId {
        InventoryId::from_parts(self.sale.clone(), self.tier.clone())
    }
}

/// A message of the sync queue: settle the facts of an order, in the statistics of its sale and in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Sync {
    /// The order.
    pub order: OrderNumber,
}

/// A message of the points queue: write the points and the growth that an order gives its buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AwardPoints {
    /// The order.
    pub order: OrderNumber,
    /// The number of the order's facts when the message was sent. Two messages with the same number ask for the same.
    pub facts: u32,
}

impl AwardPoints {
    /// The message group of SQS: the gene of the order's buyer. The queue hands out the messages of one group one
    /// after the other, so those of one buyer stay in order.
    #[must_use]
    pub fn group(&self) -> String {
        self.order.gene().get().to_string()
    }

    /// The deduplication id of SQS, unique within the group: `<order>-<facts>`.
    #[must_use]
    pub fn deduplication(&self) -> String {
        format!("{}-{}", self.order, self.facts)
    }
}

/// A message of the load queue: load a sale that Redis has lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LoadSale {
    /// The id of the sale that Redis has lost.
    pub sale: SaleId,
}

/// A message of the draw queue: draw the first window of a sale's waiting room, as far as that is possible now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Draw {
    /// The id of the sale with the waiting room.
    pub sale: SaleId,
}

/// A message of the close queue: close the open attempts of an order at their providers, ask the providers for its
/// captures where that is due, and then give a pending order back to the expiry queue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClosePayments {
    /// The order's sale.
    pub sale: SaleId,
    /// The tier in which the order may have a hold, as in [`Expiry`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<TierId>,
    /// The number of the order.
    pub order: OrderNumber,
}

impl ClosePayments {
    /// The message about an order that may have a hold in an inventory.
    #[must_use]
    pub fn new(inventory: &InventoryId, order: OrderNumber) -> Self {
        let (sale, tier) = (inventory.sale().clone(), inventory.tier().cloned());
        Self { sale, tier, order }
    }

    /// The inventory in which the order may have a hold: the sale, or one tier of it.
    #[must_use]
    pub fn inventory(&self) -> InventoryId {
        InventoryId::from_parts(self.sale.clone(), self.tier.clone())
    }
}

/// A message of the refund queue: refund a payment, or a part of it. The message may come several times; provider,
/// payment and the refund's number together name the refund, which the consumer makes once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Refund {
    /// The provider that captured the money.
    pub provider: ProviderId,
    /// The provider's id of the payment.
    pub payment: PaymentId,
    /// The number of the order that the payment was for. There may be no such order.
    pub order: OrderNumber,
    /// The amount to refund, in minor units: all that was captured, or a part with `refund`.
    pub amount_minor: MinorUnits,
    /// The currency of the captured payment.
    pub currency: Currency,
    /// The reason of the refund.
    pub reason: RefundReason,
    /// The number of the refund within its order, if tickets or money of a paid order are refunded. Absent: the
    /// payment did not pay the order, and all of it is refunded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<RefundNumber>,
}

impl Refund {
    /// The message for the refund of a whole payment; `None` if the payment was accepted.
    #[must_use]
    pub fn from_record(record: &PaymentRecord) -> Option<Self> {
        let PaymentKey { provider, payment } = record.capture.key.clone();
        let Money { amount_minor, currency } = record.capture.amount;
        match record.outcome {
            PaymentOutcome::Accepted => None,
            PaymentOutcome::Refund(reason) => Some(Self {
                provider,
                payment,
                order: record.capture.order,
                amount_minor,
                currency,
                reason,
                refund: None,
            }),
        }
    }
}

impl From<&OrderRefund> for Refund {
    fn from(refund: &OrderRefund) -> Self {
        let PaymentKey { provider, payment } = refund.payment.clone();
        let Money { amount_minor, currency } = refund.amount;
        let (order, reason) = (refund.key.order, refund.why());
        let refund = Some(refund.key.number);
        Self { provider, payment, order, amount_minor, currency, reason, refund }
    }
}

/// A message of the callback queue: decide a capture that a provider's callback reported. The sender has verified
/// the callback's signature; the message keeps nothing else of the callback.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Callback {
    /// The provider that captured the money.
    pub provider: ProviderId,
    /// The provider's id of the payment.
    pub payment: PaymentId,
    /// The number of the order that the payment is for. There may be no such order.
    pub order: OrderNumber,
    /// The captured amount, in minor units.
    pub amount_minor: MinorUnits,
    /// The currency of the captured amount.
    pub currency: Currency,
    /// The order's attempt that was paid; absent if the payment was not started by this engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptNumber>,
    /// True if the payment carries this deployment's id; absent if it carries none. One that carries another's is never
    /// kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

impl From<Reported> for Callback {
    fn from(reported: Reported) -> Self {
        let Reported { capture, mark } = reported;
        let Capture { key: PaymentKey { provider, payment }, order, amount, attempt } = capture;
        let Money { amount_minor, currency } = amount;
        let ours = mark == Mark::Ours;
        Self { provider, payment, order, amount_minor, currency, attempt, ours }
    }
}

impl From<Callback> for Reported {
    fn from(message: Callback) -> Self {
        let Callback { provider, payment, order, amount_minor, currency, attempt, ours } = message;
        let amount = Money { amount_minor, currency };
        let capture = Capture { key: PaymentKey { provider, payment }, order, amount, attempt };
        Self { capture, mark: if ours { Mark::Ours } else { Mark::None } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPIRY: &str = r#"{"sale":"g1-2026-11-21","order":"4611686018427387905","due_at":"2026-11-21T10:15:00.000Z"}"#;
    const OF_A_TIER: &str = r#"{"sale":"g1-2026-11-21","tier":"floor","order":"4611686018427387905","due_at":"2026-11-21T10:15:00.000Z"}"#;
    const SYNC: &str = r#"{"order":"4611686018427387905"}"#;
    const POINTS: &str = r#"{"order":"4611686018427387905","facts":2}"#;
    const LOAD: &str = r#"{"sale":"g1-2026-11-21"}"#;
    const HEARD: &str = r#"{"sale":"g1-2026-11-21","order":"4611686018427387905","due_at":"2026-11-21T10:15:00.000Z","heard_at":"2026-11-21T10:15:01.000Z"}"#;
    const CLOSE: &str = r#"{"sale":"g1-2026-11-21","tier":"floor","order":"4611686018427387905"}"#;
    const BY_AN_ATTEMPT: &str = r#"{"provider":"stripe","payment":"pi_1","order":"4611686018427387905","amount_minor":110600,"currency":"CNY","attempt":2}"#;
    const CARRIES_OUR_ID: &str = r#"{"provider":"stripe","payment":"pi_1","order":"4611686018427387905","amount_minor":110600,"currency":"CNY","attempt":2,"ours":true}"#;
    const DRAW: &str = r#"{"sale":"g1-2026-11-21"}"#;
    const REFUND: &str = r#"{"provider":"stripe","payment":"pi_1","order":"4611686018427387905","amount_minor":110600,"currency":"CNY","reason":"too_late"}"#;
    const OF_AN_ORDER: &str = r#"{"provider":"stripe","payment":"pi_1","order":"4611686018427387905","amount_minor":110600,"currency":"CNY","reason":"returned","refund":2}"#;
    const CALLBACK: &str = r#"{"provider":"stripe","payment":"pi_1","order":"4611686018427387905","amount_minor":110600,"currency":"CNY"}"#;

    fn survives<M: Message>(body: &str) {
        assert_eq!(M::read(body).unwrap().body().unwrap(), body);
    }

    #[test]
    fn every_message_is_read_as_it_was_written() {
        survives::<Expiry>(EXPIRY);
        survives::<Expiry>(OF_A_TIER);
        let [whole, of_a_tier] = [EXPIRY, OF_A_TIER].map(|body| Expiry::read(body).unwrap());
        assert_eq!(whole.inventory().to_string(), "g1-2026-11-21");
        assert_eq!(of_a_tier.inventory().to_string(), "g1-2026-11-21/floor");
        assert_eq!(
            Expiry::new(&of_a_tier.inventory(), of_a_tier.order, of_a_tier.due_at),
            of_a_tier
        );
        survives::<Sync>(SYNC);
        survives::<AwardPoints>(POINTS);
        survives::<LoadSale>(LOAD);
        survives::<Draw>(DRAW);
        survives::<ClosePayments>(CLOSE);
        survives::<Expiry>(HEARD);
        survives::<Callback>(BY_AN_ATTEMPT);
        survives::<Callback>(CARRIES_OUR_ID);
        survives::<Refund>(REFUND);
        survives::<Refund>(OF_AN_ORDER);
        survives::<Callback>(CALLBACK);
    }

    #[test]
    fn a_kept_capture_is_the_one_that_was_reported() {
        for kept in [CALLBACK, BY_AN_ATTEMPT, CARRIES_OUR_ID] {
            let message = Callback::read(kept).unwrap();
            assert_eq!(Callback::from(Reported::from(message.clone())), message);
        }
    }

    #[test]
    fn the_longest_messages_are_as_short_as_their_bounds_say() {
        let order: OrderNumber = i64::MAX.to_string().parse().unwrap();
        let sale = SaleId::new("s".repeat(SaleId::MAX_BYTES)).unwrap();
        let due_at = Timestamp::from_ms(1_800_000_000_000);
        let tier = Some(TierId::new("t".repeat(TierId::MAX_BYTES)).unwrap());
        let expiry = Expiry { sale: sale.clone(), tier, order, due_at, heard_at: Some(due_at) }
            .body()
            .unwrap();
        let load = LoadSale { sale: sale.clone() }.body().unwrap();
        let draw = Draw { sale }.body().unwrap();
        assert!(expiry.len().max(load.len()).max(draw.len()) <= MAX_SALE_MESSAGE_BYTES);
        for reason in RefundReason::ALL {
            let refund = Refund {
                provider: ProviderId::new("p".repeat(ProviderId::MAX_BYTES)).unwrap(),
                payment: PaymentId::new("\"".repeat(PaymentId::MAX_BYTES)).unwrap(),
                order,
                amount_minor: MinorUnits(i64::MIN),
                currency: Currency::new("EUR").unwrap(),
                reason,
                refund: RefundNumber::try_from(50).ok(),
            };
            assert!(refund.body().unwrap().len() <= MAX_REFUND_BYTES);
            let Refund { provider, payment, order, amount_minor, currency, .. } = refund;
            let (attempt, ours) = (Some(AttemptNumber::FIRST), true);
            let callback =
                Callback { provider, payment, order, amount_minor, currency, attempt, ours };
            assert!(callback.body().unwrap().len() <= MAX_REFUND_BYTES);
        }
    }

    #[test]
    fn a_message_of_a_newer_sender_is_read() {
        let newer = SYNC.replace('}', r#","sale":"s"}"#);
        assert_eq!(Sync::read(&newer), Sync::read(SYNC));
    }

    #[test]
    fn a_malformed_message_says_why() {
        let cases = [
            ("", "EOF"),
            ("{}", "missing field `order`"),
            (r#"{"order":4611686018427387905}"#, "invalid type: integer"),
            (r#"{"order":"007"}"#, "a decimal number below 2^63"),
        ];
        for (body, expected) in cases {
            let error = Sync::read(body).unwrap_err();
            assert_eq!(error.kind, "sync");
            assert!(error.why.contains(expected), "{}", error.why);
        }
        let unknown = REFUND.replace("too_late", "whim");
        assert!(Refund::read(&unknown).unwrap_err().why.contains("unknown variant `whim`"));
    }
}
