//! WeChat Pay v3: payments by QR code (`native`) of a merchant in China.

mod api;
mod event;
mod refund;
pub(crate) mod resource;
pub(in crate::providers) mod signature;
mod transaction;

use futures_util::future::BoxFuture;
use http::HeaderMap;

use self::api::Api;
use self::transaction::{Payee, Transaction};
use super::beijing::yuan;
use super::bill::RawBill;
use super::{EventDefect, PaymentProvider, SignatureDefect, VerifiedCallback};
use crate::http::checks::MAX_BODY_BYTES;
use crate::providers::limit::Limits;
use crate::runtime::connections::Https;
use crate::runtime::merchants::WechatMerchant;
use engine::domain::basics::counting::Counting;
use engine::domain::basics::ids::{DeploymentId, PageMark, PaymentId, ProviderId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{Attempt, PaymentMethod};
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Order, PaymentRecord};
use engine::domain::payment::bill::{BillDay, Billed, BilledRefund};
use engine::domain::payment::ours::Reported;
use engine::domain::payment::start::{CloseReply, Offer, StartReply, Turn};
use engine::ports::Stored;

/// The shortest life of a payment that is begun here, in seconds: two of the least that the provider knows.
const MIN_LIFE_SECONDS: u32 = 120;

/// One account at WeChat Pay.
#[derive(Debug)]
pub(super) struct Wechat(Api);

impl Wechat {
    pub(super) fn new(
        name: ProviderId,
        merchant: WechatMerchant,
        own: Option<DeploymentId>,
        tolerance_seconds: u32,
        https: Https,
        limits: &Limits,
    ) -> Self {
        Self(Api::new(name, merchant, own, tolerance_seconds, https, limits))
    }
}

/// The capture that a transaction reports, as the answer to a query has it: a merchant's own, or nobody's. The
/// answer's signature is checked before.
///
/// # Errors
/// Returns an [`EventDefect`] if it is no transaction, another merchant's or app's, or a capture that does not say
/// enough.
pub fn queried(
    json: &[u8],
    provider: &ProviderId,
    merchant_id: &str,
    app_id: &str,
) -> Result<Option<Reported>, EventDefect> {
    let transaction: Transaction =
        serde_json::from_slice(json).map_err(|error| EventDefect(error.to_string()))?;
    transaction.capture(Payee { provider, merchant_id, app_id, own: None })
}

/// The refund of ours that the number names which a bill has of it; `None` if it was not asked for here.
pub(crate) fn refund_of(number: &str, payment: &PaymentId) -> Option<BilledRefund> {
    if refund::is_of_whole(number, payment) {
        return Some(BilledRefund::Whole);
    }
    number.parse().ok().map(BilledRefund::Part)
}

impl PaymentProvider for Wechat {
    fn verify<'a>(
        &'a self,
        headers: &HeaderMap,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<VerifiedCallback<'a>, SignatureDefect> {
        if body.len() > MAX_BODY_BYTES {
            return Err(SignatureDefect::Malformed);
        }
        self.0.verify(headers, body, now)?;
        Ok(VerifiedCallback::new(self.0.provider(), body))
    }

    fn capture(&self, callback: &VerifiedCallback<'_>) -> Result<Option<Reported>, EventDefect> {
        self.0.notified(callback.body())
    }

    fn offer(&self) -> Option<Offer> {
        let methods = vec![(PaymentMethod::Code, MIN_LIFE_SECONDS)];
        let (provider, deployment) = (self.0.provider().clone(), self.0.own().cloned());
        let (currencies, counting) = (Some(yuan()), Counting::Iso);
        Some(Offer { provider, methods, currencies, counting, deployment })
    }

    fn has_search(&self) -> bool {
        false
    }

    fn captures<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Stored<Vec<Reported>>> {
        Box::pin(self.0.captures(order))
    }

    fn refund<'a>(&'a self, payment: &'a PaymentRecord) -> BoxFuture<'a, Stored<RefundReply>> {
        Box::pin(self.0.refund(payment))
    }

    fn refund_part<'a>(
        &'a self,
        payment: &'a PaymentRecord,
        refund: &'a OrderRefund,
        _known_outside: MinorUnits,
    ) -> BoxFuture<'a, Stored<RefundReply>> {
        Box::pin(self.0.refund_part(payment, refund))
    }

    fn turn(&self, _method: PaymentMethod) -> BoxFuture<'_, Stored<Turn>> {
        Box::pin(self.0.turn())
    }

    fn start<'a>(
        &'a self,
        order: &'a Order,
        attempt: &'a Attempt,
    ) -> BoxFuture<'a, Stored<StartReply>> {
        Box::pin(self.0.start(order, attempt))
    }

    fn close<'a>(
        &'a self,
        order: &'a Order,
        attempt: &'a Attempt,
    ) -> BoxFuture<'a, Stored<CloseReply>> {
        Box::pin(self.0.close(order, attempt))
    }

    fn billed(&self) -> Option<Billed> {
        Some(self.0.billed())
    }

    fn bill<'a>(
        &'a self,
        day: BillDay,
        _after: Option<&'a PageMark>,
    ) -> BoxFuture<'a, Stored<RawBill>> {
        Box::pin(self.0.bill(day))
    }
}

#[cfg(test)]
mod tests;
