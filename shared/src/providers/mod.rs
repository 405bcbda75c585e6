//! The payment providers: one folder for each form of callbacks and API, behind one trait.
//!
//! [`PaymentProvider`] is everything that differs from one form to another. [`Providers`] has each
//! provider that is configured: callbacks of those with a secret are trusted, those with an
//! API key are asked what they have captured ([`captures`](engine::ports::Provider::captures)) and
//! told to refund payments ([`refund`](engine::ports::Provider::refund)). A provider without an API key is never
//! asked: its orders expire without a question, and its refunds wait.

pub(crate) mod account;
pub mod alipay;
mod beijing;
pub mod bill;
pub(crate) mod callback;
#[cfg(test)]
mod fake;
mod limit;
mod rotation;
pub mod rsa;
pub mod stripe;
mod trade_number;
#[cfg(test)]
pub(crate) mod vectors;
pub mod wechat;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use futures_util::future::{BoxFuture, try_join_all};
use http::HeaderMap;

use self::alipay::Alipay;
use self::bill::RawBill;
use self::stripe::Stripe;
use self::wechat::Wechat;
use crate::runtime::config::{PaymentConfig, ProviderApi, ProvidersConfig};
use crate::runtime::connections::Https;
use crate::runtime::merchants::{Merchant, Merchants};
use engine::domain::basics::ids::{DeploymentId, DisputeId, PageMark, PaymentId, ProviderId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::attempt::{Attempt, PaymentChoice, PaymentMethod};
use engine::domain::order::order_refund::OrderRefund;
use engine::domain::order::refund::RefundReply;
use engine::domain::order::{Capture, Order, PaymentRecord};
use engine::domain::payment::bill::{BillDay, Billed};
use engine::domain::payment::captures::{CapturePage, ListLag, Listing};
use engine::domain::payment::dispute::DisputeReport;
use engine::domain::payment::ours::Reported;
use engine::domain::payment::outside::SentReport;
use engine::domain::payment::start::{CloseReply, Offer, StartReply, Turn};
use engine::ports::{Provider, StoreError, Stored};

pub use self::callback::{EventDefect, SignatureDefect, VerifiedCallback};
pub use self::limit::{CaptureRefunds, Limits, Operation, TurnRequest, Turns};
use self::limit::{Limit, NextStarts};
/// The body of a callback, for its description in OpenAPI.
pub use self::stripe::event::{CaptureEvent, PaymentEvent};

/// One payment provider: its callbacks and its API.
pub trait PaymentProvider: fmt::Debug + Send + Sync {
    /// Checks the signature of a callback.
    ///
    /// # Errors
    /// Returns the first [`SignatureDefect`].
    fn verify<'a>(
        &'a self,
        headers: &HeaderMap,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<VerifiedCallback<'a>, SignatureDefect>;

    /// The capture that a callback reports; `None` if it reports something else, or a payment that names no
    /// order.
    ///
    /// # Errors
    /// Returns an [`EventDefect`] if a capture lacks what it must say.
    fn capture(&self, callback: &VerifiedCallback<'_>) -> Result<Option<Reported>, EventDefect>;

    /// What can be paid with here; `None` if no payment is started here.
    fn offer(&self) -> Option<Offer> {
        None
    }

    /// Takes the turn of a call that starts a payment by this method; see [`Provider::turn`].
    ///
    /// # Errors
    /// As [`Provider::turn`].
    fn turn(&self, method: PaymentMethod) -> BoxFuture<'_, Stored<Turn>>;

    /// Starts an attempt at paying an order; see [`Provider::start`].
    ///
    /// # Errors
    /// As [`Provider::start`].
    fn start<'a>(
        &'a self,
        order: &'a Order,
        attempt: &'a Attempt,
    ) -> BoxFuture<'a, Stored<StartReply>>;

    /// Closes an attempt; see [`Provider::close`].
    ///
    /// # Errors
    /// As [`Provider::close`].
    fn close<'a>(
        &'a self,
        order: &'a Order,
        attempt: &'a Attempt,
    ) -> BoxFuture<'a, Stored<CloseReply>>;

    /// Every capture of an order that the provider's search finds.
    ///
    /// # Errors
    /// As [`Provider::captures`].
    fn captures<'a>(&'a self, order: &'a Order) -> BoxFuture<'a, Stored<Vec<Reported>>>;

    /// True if it finds captures by the order alone, however the payment was started. One that does not is
    /// asked by attempt ([`PaymentProvider::close`]): no order waits for a search of it.
    fn has_search(&self) -> bool {
        true
    }

    /// True if it lists its captures by time; else its orders are searched one by one.
    fn has_list(&self) -> bool {
        false
    }

    /// A page of that list; see [`Provider::list_captures`].
    ///
    /// # Errors
    /// As [`Provider::list_captures`].
    fn list_captures<'a>(
        &'a self,
        _from: Timestamp,
        _after: Option<&'a PageMark>,
    ) -> BoxFuture<'a, Stored<CapturePage>> {
        let none = || StoreError::Contract("the provider has no list of captures".to_owned());
        Box::pin(async move { Err(none()) })
    }

    /// Sends a payment back, or says how far that is; see [`Provider::refund`].
    ///
    /// # Errors
    /// As [`Provider::refund`].
    fn refund<'a>(&'a self, payment: &'a PaymentRecord) -> BoxFuture<'a, Stored<RefundReply>>;

    /// Sends a part of a payment back, or says how far that is; see [`Provider::refund_part`].
    ///
    /// # Errors
    /// As [`Provider::refund_part`].
    fn refund_part<'a>(
        &'a self,
        payment: &'a PaymentRecord,
        refund: &'a OrderRefund,
        known_outside: MinorUnits,
    ) -> BoxFuture<'a, Stored<RefundReply>>;

    /// The refunds of a payment that the provider lists; see [`Provider::sent_back`].
    ///
    /// # Errors
    /// As [`Provider::sent_back`].
    fn sent_back<'a>(
        &'a self,
        _payment: &'a PaymentId,
    ) -> BoxFuture<'a, Stored<Option<SentReport>>> {
        let none = || StoreError::Contract("the provider lists no refunds of a payment".to_owned());
        Box::pin(async move { Err(none()) })
    }

    /// True if a callback tells of something other than a capture that is to be read in the provider's list.
    fn tells_of_more(&self, _callback: &VerifiedCallback<'_>) -> bool {
        false
    }

    /// A dispute as it is now; see [`Provider::dispute`].
    ///
    /// # Errors
    /// As [`Provider::dispute`].
    fn dispute<'a>(
        &'a self,
        _dispute: &'a DisputeId,
    ) -> BoxFuture<'a, Stored<Option<DisputeReport>>> {
        let none = || StoreError::Contract("the provider knows no disputes".to_owned());
        Box::pin(async move { Err(none()) })
    }

    /// The account whose bills can be read here; `None` if none can.
    fn billed(&self) -> Option<Billed> {
        None
    }

    /// The bill of a day, or a page of it: the first, or the page behind the mark `after`.
    ///
    /// # Errors
    /// As [`Bills::bill`](engine::ports::Bills::bill).
    fn bill<'a>(
        &'a self,
        _day: BillDay,
        _after: Option<&'a PageMark>,
    ) -> BoxFuture<'a, Stored<RawBill>> {
        let none = || StoreError::Contract("the provider has no bills".to_owned());
        Box::pin(async move { Err(none()) })
    }

    /// The text with which a callback must be answered that is taken; `None` if any success will do.
    fn acknowledgement(&self) -> Option<&'static str> {
        None
    }
}

/// The configuration of one provider.
struct Settings<'c> {
    name: &'c ProviderId,
    /// The deployment's id, which payments carry.
    deployment: Option<&'c DeploymentId>,
    /// The secrets of its callbacks, any of which may have signed; none if its callbacks are refused.
    secrets: Vec<&'c [u8]>,
    /// Most seconds by which a signature's time may differ from ours, in either direction.
    tolerance_seconds: u32,
    /// Its API; `None` if it is not asked.
    api: Option<&'c ProviderApi>,
    https: &'c Https,
    limits: &'c Limits,
}

/// The provider of a name: the one place that knows all forms.
#[expect(clippy::match_single_binding, reason = "a provider of another form gets an arm here")]
fn provider(settings: &Settings<'_>) -> Stored<Box<dyn PaymentProvider>> {
    match settings.name.as_str() {
        // Any name: each account at Stripe has one of its own.
        _ => Ok(Box::new(Stripe::new(settings)?)),
    }
}

/// A provider, and for what it may be used.
#[derive(Debug)]
struct Configured {
    has_secret: bool,
    has_key: bool,
    /// Of refunds that captures decide.
    limit: Limit,
    provider: Box<dyn PaymentProvider>,
}

impl Configured {
    /// True if it can be asked about any order.
    fn is_searched(&self) -> bool {
        self.has_key && self.provider.has_search()
    }
}

/// The payment providers that are configured.
#[derive(Debug, Default)]
pub struct Providers {
    by_name: BTreeMap<ProviderId, Configured>,
    /// True if payments of orders are also started elsewhere.
    started_elsewhere: bool,
    /// The deployment's id, which payments carry.
    deployment: Option<DeploymentId>,
    /// When the next payment may be started. Functions without keys know it, too.
    next_starts: NextStarts,
}

/// The names under which accounts are usually configured. A function that has no keys, such as a gate, looks at the starts of
/// these; an account under another name holds nobody back there.
const STARTED_AT: [&str; 3] = ["stripe", "wechat", "alipay"];

impl Providers {
    /// The providers that a configuration names: `callbacks` those that are trusted, `apis` those
    /// that can be asked. None connects before its first use.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if a key cannot be a header.
    pub fn new(callbacks: &PaymentConfig, apis: &ProvidersConfig, https: &Https) -> Stored<Self> {
        Self::limited(callbacks, apis, https, &Limits::none())
    }

    /// [`Providers::new`], with limits on the calls to their APIs.
    ///
    /// # Errors
    /// As [`Providers::new`].
    pub fn limited(
        callbacks: &PaymentConfig,
        apis: &ProvidersConfig,
        https: &Https,
        limits: &Limits,
    ) -> Stored<Self> {
        let PaymentConfig { secrets, tolerance_seconds } = callbacks;
        let names =
            secrets.iter().map(|(name, _)| name).chain(apis.apis.iter().map(|a| &a.provider));
        let mut by_name = BTreeMap::new();
        for name in names {
            if by_name.contains_key(name) {
                continue;
            }
            let of_name = secrets.iter().filter(|(other, _)| other == name);
            let settings = Settings {
                name,
                deployment: apis.deployment.as_ref(),
                secrets: of_name.map(|(_, secret)| secret.0.as_slice()).collect(),
                tolerance_seconds: *tolerance_seconds,
                api: apis.apis.iter().find(|api| api.provider == *name),
                https,
                limits,
            };
            let (has_secret, has_key) = (!settings.secrets.is_empty(), settings.api.is_some());
            let provider = provider(&settings)?;
            let limit = limits.of(name);
            by_name.insert(name.clone(), Configured { has_secret, has_key, limit, provider });
        }
        let (started_elsewhere, deployment) = (!apis.only_started_here, apis.deployment.clone());
        let known = STARTED_AT.iter().filter_map(|name| ProviderId::new(*name).ok());
        let names: BTreeSet<ProviderId> = known.chain(by_name.keys().cloned()).collect();
        let next_starts = limits.next_starts(names.into_iter().collect());
        Ok(Self { by_name, started_elsewhere, deployment, next_starts })
    }

    /// These and the accounts of merchants, whose callbacks are trusted and whose APIs can be asked.
    ///
    /// # Errors
    /// [`StoreError::Contract`] if a provider has an account and a secret or key as well.
    pub fn with_merchants(
        mut self,
        merchants: Merchants,
        tolerance_seconds: u32,
        https: &Https,
        limits: &Limits,
    ) -> Stored<Self> {
        for (name, merchant) in merchants.by_name {
            if self.by_name.contains_key(&name) {
                let text = format!("provider {name} is configured twice");
                return Err(StoreError::Contract(text));
            }
            let (https, own) = (https.clone(), self.deployment.clone());
            let provider: Box<dyn PaymentProvider> = match merchant {
                Merchant::Wechat(merchant) => Box::new(Wechat::new(
                    name.clone(),
                    merchant,
                    own,
                    tolerance_seconds,
                    https,
                    limits,
                )),
                Merchant::Alipay(merchant) => {
                    Box::new(Alipay::new(name.clone(), merchant, own, https, limits))
                }
            };
            let limit = limits.of(&name);
            let configured = Configured { has_secret: true, has_key: true, limit, provider };
            self.by_name.insert(name, configured);
        }
        Ok(self)
    }

    /// The deployment's id, which payments carry; `None` if they carry none.
    #[must_use]
    pub fn deployment(&self) -> Option<&DeploymentId> {
        self.deployment.as_ref()
    }

    /// The text with which a callback of a provider must be answered that is taken; see
    /// [`PaymentProvider::acknowledgement`].
    #[must_use]
    pub fn acknowledgement(&self, provider: &ProviderId) -> Option<&'static str> {
        self.by_name.get(provider).and_then(|configured| configured.provider.acknowledgement())
    }

    /// True if callbacks of any provider are trusted.
    #[must_use]
    pub fn take_callbacks(&self) -> bool {
        self.by_name.values().any(|configured| configured.has_secret)
    }

    /// The providers that can be asked about any order; those that list their captures with the lag of their
    /// lists.
    #[must_use]
    pub fn listings(&self, lag: ListLag) -> Vec<Listing> {
        let asked = self.by_name.iter().filter(|(_, configured)| configured.is_searched());
        let listing = |(name, configured): (&ProviderId, &Configured)| Listing {
            provider: name.clone(),
            lag: configured.provider.has_list().then_some(lag),
        };
        asked.map(listing).collect()
    }

    /// The providers by which payments can be started, each with what can be paid with there.
    #[must_use]
    pub fn offers(&self) -> Vec<Offer> {
        let asked = self.by_name.values().filter(|configured| configured.has_key);
        asked.filter_map(|configured| configured.provider.offer()).collect()
    }

    /// The accounts that are configured, and those under the usual names: where something may be kept of one.
    #[must_use]
    pub fn accounts(&self) -> Vec<ProviderId> {
        let usual = STARTED_AT.iter().filter_map(|name| ProviderId::new(*name).ok());
        let names: BTreeSet<ProviderId> = usual.chain(self.by_name.keys().cloned()).collect();
        names.into_iter().collect()
    }

    /// The accounts whose bills can be read.
    #[must_use]
    pub fn billed(&self) -> Vec<Billed> {
        let asked = self.by_name.values().filter(|configured| configured.has_key);
        asked.filter_map(|configured| configured.provider.billed()).collect()
    }

    /// The bill of a day, or a page of it; see [`PaymentProvider::bill`].
    ///
    /// # Errors
    /// As [`PaymentProvider::bill`].
    pub async fn bill(
        &self,
        provider: &ProviderId,
        day: BillDay,
        after: Option<&PageMark>,
    ) -> Stored<RawBill> {
        self.asked(provider)?.bill(day, after).await
    }

    /// A provider that can be asked.
    fn asked(&self, name: &ProviderId) -> Stored<&dyn PaymentProvider> {
        let configured = self.by_name.get(name).filter(|configured| configured.has_key);
        configured.map(|configured| &*configured.provider).ok_or_else(|| no_key(name))
    }

    /// Checks the signature of a callback of a provider.
    ///
    /// # Errors
    /// Returns the first [`SignatureDefect`]; `UnknownProvider` if the provider has no secret.
    pub fn verify<'a>(
        &'a self,
        provider: &ProviderId,
        headers: &HeaderMap,
        body: &'a [u8],
        now: Timestamp,
    ) -> Result<VerifiedCallback<'a>, SignatureDefect> {
        let configured = self.by_name.get(provider).filter(|configured| configured.has_secret);
        let configured = configured.ok_or(SignatureDefect::UnknownProvider)?;
        configured.provider.verify(headers, body, now)
    }

    /// The capture that a callback reports; see [`PaymentProvider::capture`].
    ///
    /// # Errors
    /// Returns an [`EventDefect`] if a capture lacks what it must say.
    pub fn capture(
        &self,
        callback: &VerifiedCallback<'_>,
    ) -> Result<Option<Reported>, EventDefect> {
        match self.by_name.get(callback.provider()) {
            Some(configured) => configured.provider.capture(callback),
            None => Err(EventDefect("its provider is not configured here".to_owned())),
        }
    }

    /// True if a callback tells of something that is to be read in its provider's list; see
    /// [`PaymentProvider::tells_of_more`].
    #[must_use]
    pub fn tells_of_more(&self, callback: &VerifiedCallback<'_>) -> bool {
        let configured = self.by_name.get(callback.provider());
        configured.is_some_and(|configured| configured.provider.tells_of_more(callback))
    }
}

impl Provider for Providers {
    async fn turn(&self, choice: &PaymentChoice) -> Stored<Turn> {
        self.asked(&choice.provider)?.turn(choice.method).await
    }

    async fn starts_in(&self) -> Stored<Option<u32>> {
        self.next_starts.in_ms().await
    }

    async fn start(&self, order: &Order, attempt: &Attempt) -> Stored<StartReply> {
        self.asked(&attempt.choice.provider)?.start(order, attempt).await
    }

    async fn close(&self, order: &Order, attempt: &Attempt) -> Stored<CloseReply> {
        self.asked(&attempt.choice.provider)?.close(order, attempt).await
    }

    async fn captures(&self, order: &Order) -> Stored<Option<Vec<Capture>>> {
        let mut each = Vec::new();
        for configured in self.by_name.values().filter(|configured| configured.is_searched()) {
            each.push(configured.provider.captures(order));
        }
        if each.is_empty() {
            return Ok(None);
        }
        let found = try_join_all(each).await?.concat().into_iter();
        let ours = found.filter(|found| found.is_ours(Some(order), self.started_elsewhere));
        Ok(Some(ours.map(|reported| reported.capture).collect()))
    }

    async fn list_captures(
        &self,
        provider: &ProviderId,
        from: Timestamp,
        after: Option<&PageMark>,
    ) -> Stored<CapturePage> {
        self.asked(provider)?.list_captures(from, after).await
    }

    async fn refund_turn(&self, payment: &PaymentRecord) -> Stored<Turn> {
        let provider = &payment.capture.key.provider;
        match self.by_name.get(provider) {
            Some(configured) => configured.limit.refund_turn().await,
            None => Err(no_key(provider)),
        }
    }

    async fn refund(&self, payment: &PaymentRecord) -> Stored<RefundReply> {
        self.asked(&payment.capture.key.provider)?.refund(payment).await
    }

    async fn refund_part(
        &self,
        payment: &PaymentRecord,
        refund: &OrderRefund,
        known_outside: MinorUnits,
    ) -> Stored<RefundReply> {
        let provider = self.asked(&payment.capture.key.provider)?;
        provider.refund_part(payment, refund, known_outside).await
    }

    async fn sent_back(
        &self,
        provider: &ProviderId,
        payment: &PaymentId,
    ) -> Stored<Option<SentReport>> {
        self.asked(provider)?.sent_back(payment).await
    }

    async fn dispute(
        &self,
        provider: &ProviderId,
        dispute: &DisputeId,
    ) -> Stored<Option<DisputeReport>> {
        self.asked(provider)?.dispute(dispute).await
    }
}

/// The error of asking a provider that has no API key.
fn no_key(provider: &ProviderId) -> StoreError {
    StoreError::Unavailable(format!("no API key of provider {provider} is set"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::config::Secret;
    use crate::runtime::connections::Trust;
    use engine::domain::basics::money::{Currency, Money};
    use engine::domain::order::{PaymentKey, PaymentOutcome, RefundReason};

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn name(name: &str) -> ProviderId {
        ProviderId::new(name).unwrap()
    }

    #[tokio::test]
    async fn accounts_of_merchants_are_trusted_and_asked_by_attempt_only() {
        use super::vectors::{alipay_settings, wechat_settings};
        let none = PaymentConfig { secrets: Vec::new(), tolerance_seconds: 300 };
        let https = Https::new(&Trust::public());
        let document = serde_json::json!({ "alipay": alipay_settings(), "wx": wechat_settings() });
        let merchants = || Merchants::read(document.to_string().as_bytes()).unwrap();
        let with = |callbacks: &PaymentConfig| {
            let others = Providers::new(callbacks, &ProvidersConfig::default(), &https).unwrap();
            others.with_merchants(merchants(), 300, &https, &Limits::none())
        };
        let providers = with(&none).unwrap();
        assert!(providers.take_callbacks());
        let texts = ["alipay", "wx", "nobody"].map(|one| providers.acknowledgement(&name(one)));
        assert_eq!(texts, [Some("success"), None, None]);
        for (provider, form) in [("wx", "wechat"), ("alipay", "alipay")] {
            let notification = &vectors::vectors()[form]["notifications"][0];
            let headers = match notification.get("headers") {
                Some(headers) => vectors::headers(headers),
                None => HeaderMap::new(),
            };
            let body = vectors::text(&notification["body"]).into_bytes();
            let verified = providers.verify(&name(provider), &headers, &body, NOW).unwrap();
            let capture = providers.capture(&verified).unwrap().unwrap();
            assert_eq!(capture.capture.key.provider.as_str(), provider);
        }
        // No order waits for a search that there is not, and nobody is asked.
        assert_eq!(providers.listings(ListLag::DEFAULT), []);
        assert_eq!(providers.captures(&fake::order(fake::yuan(1))).await, Ok(None));
        let secrets = vec![(name("wx"), Secret(b"whsec".to_vec()))];
        let twice = with(&PaymentConfig { secrets, tolerance_seconds: 300 });
        assert!(matches!(twice, Err(StoreError::Contract(_))), "{twice:?}");
    }

    #[tokio::test]
    async fn a_provider_is_trusted_with_a_secret_and_asked_with_a_key() {
        let callbacks = PaymentConfig {
            secrets: vec![(name("stripe"), Secret(b"whsec".to_vec()))],
            tolerance_seconds: 300,
        };
        let key = Secret(b"sk_1".to_vec());
        let api = ProviderApi { provider: name("eu"), url: None, key };
        let apis = ProvidersConfig { apis: vec![api], ..ProvidersConfig::default() };
        let https = Https::new(&Trust::public());
        let providers = Providers::new(&callbacks, &apis, &https).unwrap();
        assert!(providers.take_callbacks());
        assert!(!Providers::default().take_callbacks());

        let mut headers = HeaderMap::new();
        let header = stripe::signature::sign(b"whsec", b"{}", NOW);
        headers.insert("stripe-signature", header.parse().unwrap());
        let verify = |provider: &str| providers.verify(&name(provider), &headers, b"{}", NOW).err();
        assert_eq!(verify("stripe"), None);
        assert_eq!(verify("eu"), Some(SignatureDefect::UnknownProvider));
        assert_eq!(verify("nobody"), Some(SignatureDefect::UnknownProvider));

        let capture = |provider: &str| Capture {
            key: PaymentKey { provider: name(provider), payment: PaymentId::new("pi_1").unwrap() },
            order: "7".parse().unwrap(),
            amount: Money { amount_minor: MinorUnits(5), currency: Currency::new("EUR").unwrap() },
            attempt: None,
        };
        for provider in ["stripe", "nobody"] {
            let outcome = PaymentOutcome::Refund(RefundReason::TooLate);
            let record = PaymentRecord::decided(&capture(provider), outcome, NOW);
            let refused = providers.refund(&record).await;
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        }
    }
}
