//! Stripe: the signature and the events of its callbacks, and its API.

mod api;
mod attempts;
mod dispute;
pub mod event;
mod forms;
mod metadata;
mod sent_back;
pub mod signature;

use futures_util::future::BoxFuture;
use http::HeaderMap;

use self::api::Api;
use self::signature::PaymentSecrets;
use super::bill::RawBill;
use super::{EventDefect, PaymentProvider, Settings, SignatureDefect, VerifiedCallback, no_key};
use engine::domain::basics::counting::Counting;
use engine::domain::basics::ids::{DeploymentId, DisputeId, PageMark, PaymentId, ProviderId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{Attempt, PaymentMethod};
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Order, PaymentRecord};
use engine::domain::payment::bill::{BillDay, Billed};
use engine::domain::payment::captures::CapturePage;
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::Reported;
use engine::domain::payment::outside::SentReport;
use engine::domain::payment::start::{CloseReply, Offer, StartReply, Turn};
use engine::ports::Stored;

/// How Stripe counts money.
pub(crate) const COUNTING: Counting = Counting::Stripe;
/// The version of the API that every request names: that of Stripe's Python package 16.1.0, which a test holds beside
/// ours. Without it Stripe answers by the account's own version, which a click in its dashboard changes.
/// Source: <https://docs.stripe.com/api/versioning>
pub const API_VERSION: &str = "2026-10-28.endive";
/// The header that names it.
pub const VERSION_HEADER: &str = "stripe-version";

/// The types of events that are read: those of captures, disputes and refunds. An endpoint that sends fewer leaves the rest to
/// the reader of the provider's list.
pub fn events() -> impl Iterator<Item = &'static str> {
    [event::CAPTURED].into_iter().chain(dispute::EVENTS).chain(sent_back::EVENTS)
}

/// One account at Stripe.
#[derive(Debug)]
pub(super) struct Stripe {
    name: ProviderId,
    secrets: PaymentSecrets,
    deployment: Option<DeploymentId>,
    /// `None` without an API key.
    api: Option<Api>,
}

impl Stripe {
    /// # Errors
    /// [`Contract`](engine::ports::StoreError::Contract) if the API key cannot be a header.
    pub(super) fn new(settings: &Settings<'_>) -> Stored<Self> {
        let Settings { name, deployment, secrets, tolerance_seconds, api, https, limits } =
            settings;
        let deployment = deployment.cloned();
        let secrets = secrets.iter().copied();
        let api = api
            .map(|api| Api::new(api, deployment.clone(), (*https).clone(), limits))
            .transpose()?;
        Ok(Self {
            name: (*name).clone(),
            secrets: PaymentSecrets::new((*name).clone(), secrets, *tolerance_seconds),
            deployment,
            api,
        })
    }

    fn api(&self) -> Stored<&Api> {
        self.api.as_ref().ok_or_else(|| no_key(&self.name))
    }
}

impl PaymentProvider for Stripe {
    fn verify<'a>(
        &'a self,
        headers: &HeaderMap,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<VerifiedCallback<'a>, SignatureDefect> {
        self.secrets.verify(signature::header(headers), body, now)
    }

    fn capture(&self, callback: &VerifiedCallback<'_>) -> Result<Option<Reported>, EventDefect> {
        event::capture(callback, self.deployment.as_ref())
    }

    fn offer(&self) -> Option<Offer> {
        self.api.as_ref().map(|_| attempts::offer(&self.name, self.deployment.as_ref()))
    }

    fn turn(&self, _method: PaymentMethod) -> BoxFuture<'_, Stored<Turn>> {
        Box::pin(async move { self.api()?.turn().await })
    }

    fn start<'a>(
        &'a self,
        order: &'a Order,
        attempt: &'a Attempt,
    ) -> BoxFuture<'a, Stored<StartReply>> {
        Box::pin(async move { self.api()?.start(order, attempt).await })
    }

    fn close<'a>(
        &'a self,
        order: &'a Order,
        attempt: &'a Attempt,
    ) -> BoxFuture<'a, Stored<CloseReply>> {
        Box::pin(async move { self.api()?.close(order, attempt).await })
    }

    fn captures<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Stored<Vec<Reported>>> {
        Box::pin(async move { self.api()?.captures(order.number).await })
    }

    fn has_list(&self) -> bool {
        true
    }

    fn list_captures<'a>(
        &'a self,
        from: Timestamp,
        after: Option<&'a PageMark>,
    ) -> BoxFuture<'a, Stored<CapturePage>> {
        Box::pin(async move { self.api()?.list_captures(from, after).await })
    }

    fn refund<'a>(&'a self, payment: &'a PaymentRecord) -> BoxFuture<'a, Stored<RefundReply>> {
        Box::pin(async move { self.api()?.refund(payment).await })
    }

    fn refund_part<'a>(
        &'a self,
        payment: &'a PaymentRecord,
        refund: &'a OrderRefund,
        known_outside: MinorUnits,
    ) -> BoxFuture<'a, Stored<RefundReply>> {
        Box::pin(async move { self.api()?.refund_part(payment, refund, known_outside).await })
    }

    fn sent_back<'a>(
        &'a self,
        payment: &'a PaymentId,
    ) -> BoxFuture<'a, Stored<Option<SentReport>>> {
        Box::pin(async move { self.api()?.sent_back(payment).await })
    }

    fn tells_of_more(&self, callback: &VerifiedCallback<'_>) -> bool {
        event::kind(callback).is_some_and(|kind| sent_back::is_hint(&kind))
    }

    fn billed(&self) -> Option<Billed> {
        self.api.as_ref().map(Api::billed)
    }

    fn bill<'a>(
        &'a self,
        day: BillDay,
        after: Option<&'a PageMark>,
    ) -> BoxFuture<'a, Stored<RawBill>> {
        Box::pin(async move { self.api()?.bill(day, after).await })
    }

    fn dispute<'a>(
        &'a self,
        dispute: &'a DisputeId,
    ) -> BoxFuture<'a, Stored<Option<DisputeReport>>> {
        Box::pin(async move { self.api()?.dispute(dispute).await })
    }
}
