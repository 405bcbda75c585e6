//! Fake payment providers: the parts of Stripe, WeChat Pay and Alipay that the engine and its buyers use, with
//! fault injection for tests. [`MerchantProvider`] is WeChat Pay or Alipay; the rest of this page is Stripe.
//!
//! | request | as at Stripe |
//! |---|---|
//! | `POST /v1/payment_intents` | captures at once; `id` is our own addition, to choose it. With `metadata[attempt]` it waits for its buyer |
//! | `GET /v1/payment_intents/{id}`, `POST …/cancel`, `POST …/confirm` | one that waits; confirming captures |
//! | `POST /v1/checkout/sessions`, `GET …/{id}`, `POST …/{id}/expire` | with `Idempotency-Key`; `expires_at` half an hour to a day ahead |
//! | `GET /pay/{id}`, `POST /pay/{id}` | the session's page, where a person pays, refuses or leaves |
//! | `GET /v1/payment_intents/search` | only `metadata['onsale_order']:'<number>' OR metadata['order']:'<number>'` |
//! | `GET /v1/events` | only `payment_intent.succeeded` and those of disputes, by `types[]`, `created[gte]`, `limit`, `starting_after` |
//! | `GET /v1/disputes/{id}` | with `expand[]=payment_intent` |
//! | `GET /v1/balance_transactions` | by `created[gte]`, `created[lt]`, `limit`, `starting_after`, with `expand[]=data.source` and `data.source.payment_intent`; newest first |
//! | `POST /v1/refunds`, `GET /v1/refunds` | with `Idempotency-Key`; of one payment |
//!
//! Every request to `/v1` must say by which version of the API it is meant (`Stripe-Version`): the real one answers
//! by the account's own where none is said, so that the shapes of its answers change with a setting of the dashboard.
//! A restricted key may not read disputes (403).
//!
//! Stripe's own Python library talks to it in a test. `GET /ledger` (for the audit), `GET /settlement` (what its report
//! would say of everything so far), `GET /calls` (how often each route was asked: Stripe rations reads) and `POST /faults` (a list of [`Fault`]s to inject; also at `/mischief`) are not Stripe's. What is kept in a
//! file survives `kill -9`. Unlike Stripe it never forgets an idempotency key. Its search and its list of
//! events have everything at once unless it is started to lag, as Stripe's do.

mod account;
mod alipay;
mod attempts;
mod behaviour;
mod bills;
mod cashier;
mod clock;
mod disputes;
mod edge;
mod faults;
mod journal;
mod keys;
mod ledger;
mod merchant;
mod metadata;
mod notices;
mod page;
mod server;
mod settlement;
mod trades;
mod webhook;
mod wechat;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::Capture;
use fake_limits::Enforced;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::account::Accounts;
pub use crate::account::{Lags, stated};
pub use crate::behaviour::Behaviour;
pub use crate::bills::BillFault;
pub use crate::faults::Fault;
pub use crate::ledger::{LedgerEntry, LedgerRefund};
pub use crate::merchant::{Form, MerchantFault, MerchantOptions, MerchantProvider, page_of_code};
pub use crate::metadata::Metadata;
pub use crate::notices::Notified;

/// The provider's id: a segment of the callback's path, and of a payment's key.
pub const PROVIDER: &str = "stripe";
/// The API key that it accepts.
pub const API_KEY: &str = "sk_test_onsale";
/// A restricted key that it accepts, too: all but the disputes may be read with it.
pub const RESTRICTED_KEY: &str = "rk_test_onsale";
/// The header that says by which version of the API a request is meant.
const VERSION_HEADER: &str = "stripe-version";

/// Why the provider could not be started, or could not store a change.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its file cannot be read or written.
    #[error("payment provider: {0}")]
    Provider(String),
    /// A line of its file cannot be read.
    #[error(
        "{}, line {line}: the payment provider cannot read it: {why}; put back a copy of the file, \
         delete that line (what it said is then forgotten), or move the file away to begin without payments",
        path.display()
    )]
    Line {
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        why: String,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        source: std::io::Error,
    },
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// A running provider on a port of 127.0.0.1; stopped when dropped.
#[derive(Debug)]
pub struct PaymentProvider {
    address: SocketAddr,
    accounts: Arc<Accounts>,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<std::io::Result<()>>,
    lags: Lags,
}

impl PaymentProvider {
    /// Starts a provider on this runtime: one that keeps what it knows in `file`, or in memory. Its
    /// search and its list have everything at once.
    ///
    /// # Errors
    /// [`Error::Io`] when no port is free, [`Error::Line`] when the file is not one of its own.
    pub fn start(file: Option<&Path>) -> Result<Self, Error> {
        Self::start_lagging(file, Lags::default())
    }

    /// [`PaymentProvider::start`], whose search and list have a capture only after their lag, by
    /// the clock.
    ///
    /// # Errors
    /// As [`PaymentProvider::start`].
    pub fn start_lagging(file: Option<&Path>, lags: Lags) -> Result<Self, Error> {
        Self::start_within(file, lags, None)
    }

    /// [`PaymentProvider::start_lagging`], with the rates of Stripe if limits are given.
    ///
    /// # Errors
    /// As [`PaymentProvider::start`].
    pub fn start_within(
        file: Option<&Path>,
        lags: Lags,
        limits: Option<Enforced>,
    ) -> Result<Self, Error> {
        let listening = || Error::io("listening for the payment provider");
        let accounts = Arc::new(Accounts::open(file, lags)?);
        let listener = listener(file).map_err(listening())?;
        listener.set_nonblocking(true).map_err(listening())?;
        let address = listener.local_addr().map_err(listening())?;
        let listener = TcpListener::from_std(listener).map_err(listening())?;
        let (stop, stopped) = oneshot::channel::<()>();
        // Resolves when the handle sends or, as it always does, drops its end.
        let end = async {
            let _dropped = stopped.await;
        };
        let server = tokio::spawn(edge::serve(Arc::clone(&accounts), limits, listener, end));
        Ok(Self { address, accounts, stop: Some(stop), server, lags })
    }

    /// Its address: `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How long its search lags, in seconds.
    #[must_use]
    pub fn search_lag_seconds(&self) -> u32 {
        self.lags.search_seconds
    }

    /// How long its list of events lags, in seconds.
    #[must_use]
    pub fn list_lag_seconds(&self) -> u32 {
        self.lags.list_seconds
    }

    /// How often each route was asked: `search_captures`, `list_events`, `list_refunds`, `create_refund`.
    #[must_use]
    pub fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.accounts.calls()
    }

    /// Captures a buyer's payment without sending a callback. The same payment id again returns the same
    /// payment.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn capture(
        &self,
        payment: &str,
        order: OrderNumber,
        amount: Money,
        now: Timestamp,
    ) -> Result<Capture, Error> {
        self.accounts.capture(Some(payment), Metadata::of_order(order), amount, now)?.capture()
    }

    /// Forgets the answers that were kept under idempotency keys, as after a day.
    pub fn forget_keys(&self) {
        self.accounts.forget_keys();
    }

    /// Somebody sends a part of a payment back by hand, as on the provider's own pages.
    ///
    /// # Errors
    /// [`Error::Provider`] if the provider refuses, or it cannot be kept.
    pub fn refund_by_hand(
        &self,
        payment: &str,
        amount_minor: MinorUnits,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.accounts.refund_by_hand(payment, amount_minor, now)
    }

    /// Captures a payment that another system has started, or another deployment, with what it carries.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn capture_of_others(
        &self,
        payment: &str,
        metadata: Metadata,
        amount: Money,
        now: Timestamp,
    ) -> Result<(), Error> {
        self.accounts.capture(Some(payment), metadata, amount, now).map(|_| ())
    }

    /// The bank takes money of a payment back, or asks first (`is_inquiry`): the dispute's name.
    ///
    /// # Errors
    /// [`Error::Provider`] if there is no such payment, less was captured, or it cannot be kept.
    pub fn open_dispute(
        &self,
        payment: &str,
        amount_minor: MinorUnits,
        is_inquiry: bool,
        now: Timestamp,
    ) -> Result<String, Error> {
        self.accounts.open_dispute(payment, amount_minor, is_inquiry, now)
    }

    /// A dispute is decided: won, or lost. An inquiry ends (`is_won`), and has moved no money.
    ///
    /// # Errors
    /// [`Error::Provider`] if none of this name is open, an inquiry shall be lost, or it cannot be kept.
    pub fn close_dispute(&self, id: &str, is_won: bool, now: Timestamp) -> Result<(), Error> {
        self.accounts.close_dispute(id, is_won, now)
    }

    /// A dispute that was decided is decided otherwise: lost after it was won, or won after it was lost.
    ///
    /// # Errors
    /// [`Error::Provider`] if none of this name is decided, or it cannot be kept.
    pub fn reverse_dispute(&self, id: &str, now: Timestamp) -> Result<(), Error> {
        self.accounts.reverse_dispute(id, now)
    }

    /// A buyer pays an open Checkout Session, or confirms a PaymentIntent, without a callback being sent:
    /// what was captured; `None` if it is not open.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn pay(&self, id: &str, now: Timestamp) -> Result<Option<Capture>, Error> {
        self.accounts.pay(id, now)?.map(|intent| intent.capture()).transpose()
    }

    /// Has it tell an address of each payment that a buyer makes on its page or by a form, with the signature of
    /// this secret. A payment that was captured at once it tells nobody: whoever captured it calls back. It can be
    /// told once.
    ///
    /// # Errors
    /// [`Error::Provider`] if the system has no client of HTTP.
    pub fn notify(&self, url: &str, secret: &str) -> Result<(), Error> {
        self.accounts.notify(webhook::Webhook::new(url, secret)?);
        Ok(())
    }

    /// What became of its webhooks.
    #[must_use]
    pub fn notified(&self) -> Notified {
        self.accounts.webhook().map(webhook::Webhook::notified).unwrap_or_default()
    }

    /// True if it serves no more though nobody has stopped it.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.server.is_finished()
    }

    /// Plans a fault for the next request of its kind; faults planned before it come first.
    pub fn next(&self, fault: Fault) {
        self.accounts.next(fault);
    }

    /// Ends the pending refunds of a payment: they succeed, or fail.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn settle_refunds(&self, payment: &str, succeed: bool) -> Result<(), Error> {
        self.accounts.settle(payment, "pending", succeed, Timestamp::now())
    }

    /// The refunds of a payment that have succeeded come to nothing after all, as where the payer's card is closed.
    ///
    /// # Errors
    /// [`Error::Provider`] if it cannot be kept.
    pub fn fail_refunds_later(&self, payment: &str, now: Timestamp) -> Result<(), Error> {
        self.accounts.settle(payment, "succeeded", false, now)
    }

    /// Every payment with its refunds.
    #[must_use]
    pub fn ledger(&self) -> Vec<LedgerEntry> {
        self.accounts.ledger()
    }

    /// Answers what is under way, then stops.
    pub async fn stop(mut self) {
        if let Some(webhook) = self.accounts.webhook() {
            webhook.stop();
        }
        drop(self.stop.take());
        if let Ok(Err(error)) = (&mut self.server).await {
            tracing::warn!(%error, "the payment provider had failed");
        }
    }
}

/// Listens on the port of the run before, if it is free: the provider keeps its address when the engine
/// was killed.
fn listener(file: Option<&Path>) -> std::io::Result<StdListener> {
    let Some(remembered) = file.map(|file| file.with_extension("port")) else {
        return StdListener::bind(("127.0.0.1", 0));
    };
    let port = std::fs::read_to_string(&remembered).ok().and_then(|text| text.trim().parse().ok());
    let before = port.and_then(|port: u16| StdListener::bind(("127.0.0.1", port)).ok());
    let listener = match before {
        Some(listener) => listener,
        None => StdListener::bind(("127.0.0.1", 0))?,
    };
    std::fs::write(remembered, listener.local_addr()?.port().to_string())?;
    Ok(listener)
}

impl Drop for PaymentProvider {
    fn drop(&mut self) {
        self.server.abort();
    }
}
