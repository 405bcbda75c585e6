//! Alipay's gateway in China (`alipay.trade.*`): payments on a page of its own and by QR code.

mod amount;
mod api;
mod notification;
mod request;
mod response;
mod trade;

use futures_util::future::BoxFuture;
use http::HeaderMap;

use self::api::Api;
use self::response::Failure;
use self::trade::Trade;
use super::beijing::yuan;
use super::bill::RawBill;
use super::{EventDefect, PaymentProvider, SignatureDefect, VerifiedCallback};
use crate::http::checks::MAX_BODY_BYTES;
use crate::providers::limit::Limits;
use crate::providers::rsa::VerifyingKey;
use crate::runtime::connections::Https;
use crate::runtime::merchants::AlipayMerchant;
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

/// What a notification must be answered with, exactly; anything else is sent again.
/// Source: <https://opendocs.alipay.com/open/270/105902>
const TAKEN: &str = "success";

/// The shortest life of a payment that is begun here, in seconds: two of the least that the provider knows.
const MIN_LIFE_SECONDS: u32 = 120;

/// One account at Alipay.
#[derive(Debug)]
pub(super) struct Alipay(Api);

impl Alipay {
    pub(super) fn new(
        name: ProviderId,
        merchant: AlipayMerchant,
        own: Option<DeploymentId>,
        https: Https,
        limits: &Limits,
    ) -> Self {
        Self(Api::new(name, merchant, own, https, limits))
    }
}

/// The capture that an answer to a query reports, which one of these keys must have signed.
///
/// # Errors
/// Returns an [`EventDefect`] if it is no answer that was signed, a failure, or a capture that does not say enough.
pub fn queried(
    body: &[u8],
    keys: &[VerifyingKey],
    provider: &ProviderId,
) -> Result<Option<Reported>, EventDefect> {
    let value = response::verified(body, "alipay.trade.query", keys)
        .map_err(|unbelieved| EventDefect(unbelieved.to_string()))?;
    let read: Result<Trade, Failure> =
        response::read(value).map_err(|error| EventDefect(error.to_string()))?;
    read.map_err(|failure| EventDefect(failure.text()))?.capture(provider, None)
}

/// The refund of ours that the number names which a bill has of it; `None` if it was not asked for here.
pub(crate) fn refund_of(number: &str, payment: &PaymentId) -> Option<BilledRefund> {
    if trade::is_refund_of_whole(number, payment) {
        return Some(BilledRefund::Whole);
    }
    number.replace('_', "-").parse().ok().map(BilledRefund::Part)
}

impl PaymentProvider for Alipay {
    /// A notification is repeated for 25 hours as it was signed first, so its age says nothing.
    fn verify<'a>(
        &'a self,
        headers: &HeaderMap,
        body: &'a [u8],
        _now: Timestamp,
    ) -> Result<VerifiedCallback<'a>, SignatureDefect> {
        if body.len() > MAX_BODY_BYTES {
            return Err(SignatureDefect::Malformed);
        }
        self.0.verify(headers, body)?;
        Ok(VerifiedCallback::new(self.0.provider(), body))
    }

    fn capture(&self, callback: &VerifiedCallback<'_>) -> Result<Option<Reported>, EventDefect> {
        self.0.notified(callback.body())
    }

    fn offer(&self) -> Option<Offer> {
        let methods = [PaymentMethod::Page, PaymentMethod::Code]
            .map(|method| (method, MIN_LIFE_SECONDS))
            .to_vec();
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

    fn turn(&self, method: PaymentMethod) -> BoxFuture<'_, Stored<Turn>> {
        Box::pin(self.0.turn(method))
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

    fn acknowledgement(&self) -> Option<&'static str> {
        Some(TAKEN)
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
