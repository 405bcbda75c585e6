//! Payments of no order: what operators see of them, and say.

use futures_util::future::try_join_all;
use lambda_http::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::http::checks::{MAX_BODY_BYTES, Refusal, json_body};
use crate::http::order_refund::MAX_REASON_CHARACTERS;
use crate::runtime::app::LivePorts;
use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits};
use engine::domain::basics::number::{NUMBER_EPOCH_MS, OrderNumber};
use engine::domain::basics::time::Timestamp;
use engine::domain::order::refund::RefundState;
use engine::domain::order::{PaymentKey, PaymentRecord};
use engine::flows::unmatched::Word;
use engine::ports::{Orders as _, Ports as _, Stored};

/// What an operator says of a payment of no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "UnmatchedWord")]
pub enum WordBody {
    /// Its money goes back.
    SendBack,
    /// It is known what it was; its money stays.
    Explain,
}

impl From<WordBody> for Word {
    fn from(word: WordBody) -> Self {
        match word {
            WordBody::SendBack => Self::SendBack,
            WordBody::Explain => Self::Explain,
        }
    }
}

/// An operator's word on a payment of no order.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with order, provider, payment, word and reason"
)]
pub struct UnmatchedBody {
    /// The number of the order that the payment names.
    pub order: OrderNumber,
    /// The provider.
    pub provider: ProviderId,
    /// The payment's name there.
    pub payment: PaymentId,
    /// What becomes of it.
    pub word: WordBody,
    /// Why: kept with the action, for operators alone.
    #[schemars(length(min = 1, max = MAX_REASON_CHARACTERS))]
    pub reason: String,
}

impl UnmatchedBody {
    /// Reads a request's body.
    ///
    /// # Errors
    /// Returns the first check that it does not pass.
    pub fn read(request: &Request) -> Result<Self, Refusal> {
        let read: Self = json_body(request, MAX_BODY_BYTES)?;
        let characters = read.reason.trim().chars().count();
        if !(1..=MAX_REASON_CHARACTERS).contains(&characters) {
            return Err(Refusal::invalid("reason", "must be 1 to 200 characters"));
        }
        Ok(read)
    }

    /// The payment.
    #[must_use]
    pub fn key(&self) -> PaymentKey {
        PaymentKey { provider: self.provider.clone(), payment: self.payment.clone() }
    }
}

/// A payment that this deployment started, or that names it, and whose order is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Unmatched")]
pub struct UnmatchedReply {
    /// The number of the order that it names.
    #[schemars(with = "String")]
    pub order: OrderNumber,
    /// False if no order here can ever have had this number: it names a time before there were any, or one that has not
    /// come.
    pub minted: bool,
    /// The provider.
    #[schemars(with = "String")]
    pub provider: ProviderId,
    /// The payment's name there.
    #[schemars(with = "String")]
    pub payment: PaymentId,
    /// Amount captured, in minor units.
    pub amount_minor: MinorUnits,
    /// The currency they are units of.
    pub currency: Currency,
    /// Time at which it was heard of.
    pub decided_at: Timestamp,
    /// What became of it: `unmatched` until an operator says so, then `explained`, or the state of its refund.
    pub state: RefundState,
}

/// Numbers that were minted on the first day are none of ours: numbers of other systems are small.
const FIRST_DAY_MS: i64 = 86_400_000;

impl UnmatchedReply {
    /// Shows a payment of no order at a time; `None` if it was accepted.
    #[must_use]
    pub fn new(record: &PaymentRecord, now: Timestamp) -> Option<Self> {
        let state = record.refund.as_ref()?.state;
        let capture = &record.capture;
        let minted_at = capture.order.minted_at().ms();
        Some(Self {
            order: capture.order,
            minted: minted_at >= NUMBER_EPOCH_MS + FIRST_DAY_MS && minted_at <= now.ms(),
            provider: capture.key.provider.clone(),
            payment: capture.key.payment.clone(),
            amount_minor: capture.amount.amount_minor,
            currency: capture.amount.currency,
            decided_at: record.decided_at,
            state,
        })
    }
}

/// A page of payments of no order about which an operator is to decide, latest number first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "UnmatchedPage")]
pub struct UnmatchedPageReply {
    /// The payments.
    pub unmatched: Vec<UnmatchedReply>,
    /// Value of `before` for the next page; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl UnmatchedPageReply {
    /// Reads the page before a mark, `most` payments at most.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn read(
        ports: &LivePorts,
        before: Option<&str>,
        most: u16,
        now: Timestamp,
    ) -> Stored<Self> {
        let page = ports.operators().unmatched_page(before, most).await?;
        let each = page.payments.iter().map(|(order, key)| ports.orders().payment(*order, key));
        // The index may be behind its table.
        let records = try_join_all(each).await?.into_iter().flatten();
        let waiting = records.filter(PaymentRecord::is_unmatched);
        let unmatched = waiting.filter_map(|record| UnmatchedReply::new(&record, now)).collect();
        Ok(Self { unmatched, next: page.next })
    }
}

/// What the record of an operator's action says of a word on a payment.
#[must_use]
pub fn detail(word: Word, key: &PaymentKey, reason: &str) -> String {
    let PaymentKey { provider, payment } = key;
    format!("{} {provider} {payment}: {reason}", word.as_str())
}
