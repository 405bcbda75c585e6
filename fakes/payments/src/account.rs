//! The provider's accounts: payments, refunds, and the answers stored under idempotency keys.
//!
//! Memory is the working state. With a file, each change is a line of it, written before the request is
//! answered ([`Journal`]); a process that is killed loses nothing that was answered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use engine::domain::basics::counting::{Counting, TakesOnly};
use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::{Capture, PaymentKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::PROVIDER;
use crate::attempts::Waiting;
use crate::disputes::{Dispute, Status};
use crate::faults::{Fault, Plan, RequestKind};
use crate::journal::Journal;
use crate::ledger::{LedgerEntry, LedgerRefund};
use crate::metadata::{Earlier, Metadata};
use crate::settlement::Movement;
use crate::webhook::Webhook;

/// Payments, refunds and idempotency keys, and the file that keeps them.
#[derive(Debug)]
pub(crate) struct Accounts {
    book: Mutex<Book>,
    lags: Lags,
    webhook: OnceLock<Webhook>,
    /// Requests that were answered, by the route's name. Stripe rations those that read.
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) state: State,
    journal: Option<Journal>,
    pub(crate) plan: Plan,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    intents: BTreeMap<PaymentId, Intent>,
    /// The disputes, by name.
    pub(crate) disputes: BTreeMap<String, Dispute>,
    /// What is told of disputes, by the name of its event: the type, and the dispute.
    dispute_events: BTreeMap<PaymentId, (&'static str, String)>,
    /// What is told of refunds, by the name of its event.
    refund_events: BTreeMap<PaymentId, RefundEvent>,
    /// The names of events in the order in which they happened: of a capture its payment.
    by_time: BTreeSet<(i64, PaymentId)>,
    /// The payments of each order: an on-sale has a hundred thousand, and twenty searches a second.
    by_order: BTreeMap<OrderNumber, BTreeSet<PaymentId>>,
    refunds: Vec<Refund>,
    keys: BTreeMap<String, Kept>,
    /// The payments that wait for a buyer, or waited.
    pub(crate) waiting: BTreeMap<PaymentId, Waiting>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Intent {
    pub(crate) id: PaymentId,
    #[serde(default)]
    pub(crate) metadata: Metadata,
    #[serde(flatten, skip_serializing)]
    pub(crate) earlier: Earlier,
    pub(crate) amount: Money,
    pub(crate) created_ms: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refund {
    id: String,
    payment: PaymentId,
    amount_minor: MinorUnits,
    status: String,
    created_ms: i64,
    /// When it ended, if it did not end at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_ms: Option<i64>,
    /// The name that the seller gave to a part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refund: Option<String>,
}

/// What is told of a refund: when, by which type of event, and the refund as it was then.
#[derive(Debug)]
struct RefundEvent {
    at_ms: i64,
    kind: &'static str,
    refund: Refund,
}

impl Refund {
    /// The event that tells of it as it is: the name of the event, and the event.
    fn told(&self) -> Option<(PaymentId, RefundEvent)> {
        let (at_ms, kind) = match self.ended_ms {
            None => (self.created_ms, "refund.created"),
            Some(at_ms) if self.status == "failed" => (at_ms, "refund.failed"),
            Some(at_ms) => (at_ms, "refund.updated"),
        };
        let name = PaymentId::new(format!("{}-{kind}", self.id)).ok()?;
        Some((name, RefundEvent { at_ms, kind, refund: self.clone() }))
    }
}

/// The request and the answer of an idempotency key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The parameters as they were sent.
    #[serde(rename = "asked")]
    pub(crate) parameters: String,
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// A payment that waits for a buyer, as it is now; one of the same name is replaced.
    Waiting(Waiting),
    Captured(Intent),
    /// A refund as it is now; one of the same name is replaced.
    Refunded(Refund),
    /// A dispute as it is now; one of the same name is replaced.
    Disputed(Dispute),
    Answered(String, Kept),
}

/// An answer: a status and a body.
pub(crate) type Answer = (u16, Value);

/// A request for a refund.
pub(crate) struct RefundRequest {
    pub(crate) payment: String,
    /// In Stripe's units; `None` for all that is left.
    pub(crate) amount_minor: Option<MinorUnits>,
    /// The name that the seller gives to a part, in the metadata.
    pub(crate) refund: Option<String>,
    /// The parameters as they were sent, to tell whether a key is used for another request.
    pub(crate) parameters: String,
    pub(crate) key: Option<String>,
}

impl Intent {
    /// The payment as the engine's type.
    ///
    /// # Errors
    /// [`Error`] if it names no order.
    pub(crate) fn capture(&self) -> Result<Capture, Error> {
        let provider = ProviderId::new(PROVIDER).map_err(broken)?;
        let key = PaymentKey { provider, payment: self.id.clone() };
        let order = self.metadata.order().ok_or_else(|| broken("it names no order"))?;
        Ok(Capture { key, order, amount: self.amount, attempt: self.metadata.attempt() })
    }

    pub(crate) fn event(&self) -> Value {
        json!({
            "id": format!("{EVENT_PREFIX}{}", self.id), "object": "event",
            "type": CAPTURED, "created": self.created_ms.div_euclid(1000),
            "data": { "object": self.shown() }, "livemode": false, "pending_webhooks": 0,
        })
    }

    pub(crate) fn shown(&self) -> Value {
        json!({
            "id": self.id, "object": "payment_intent", "status": "succeeded",
            "amount": stated(self.amount), "amount_received": stated(self.amount),
            "currency": lower(&self.amount), "created": self.created_ms.div_euclid(1000),
            "metadata": self.metadata, "livemode": false,
        })
    }
}

/// The name of an event begins so, and ends with that of its payment.
const EVENT_PREFIX: &str = "evt_";

/// How late the provider shows a capture, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lags {
    pub search_seconds: u32,
    /// In its list of events.
    pub list_seconds: u32,
}

impl Lags {
    /// A search that lags by `search_seconds`, and a list that lags half as much.
    #[must_use]
    pub const fn from_search_seconds(search_seconds: u32) -> Self {
        Self { search_seconds, list_seconds: search_seconds.div_ceil(2) }
    }
}

/// What comes whole with a balance transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expands {
    Nothing,
    /// What it is of.
    Source,
    /// That, and the payment of that.
    SourceAndPayment,
}

/// An amount as Stripe states it, in its own units. One that no request can bring stands as it is.
#[must_use]
pub fn stated(amount: Money) -> i64 {
    Counting::Stripe.written(amount).unwrap_or(amount.amount_minor.0)
}

/// An amount that a request states, in Stripe's units; or why it is refused.
/// Source: <https://docs.stripe.com/currencies>
pub(crate) fn whole(stated: MinorUnits, currency: Currency) -> Result<Money, Answer> {
    let amount = Counting::Stripe.read(stated, currency);
    if Counting::Stripe.written(amount) == Some(stated.0) {
        return Ok(amount);
    }
    let text = format!("Invalid amount: {stated} of {currency} cannot be processed.");
    Err(error(400, INVALID, Some("parameter_invalid_integer"), &text))
}

/// An amount to be paid, in Stripe's units; or why it is refused.
pub(crate) fn charged(stated: MinorUnits, currency: Currency) -> Result<Money, Answer> {
    let amount = whole(stated, currency)?;
    let bounds = Counting::Stripe.bounds(currency);
    let code = match Counting::Stripe.refusal(amount, &bounds) {
        None => return Ok(amount),
        Some(TakesOnly::AtMost(_)) => "amount_too_large",
        Some(TakesOnly::AtLeast(_) | TakesOnly::Multiples(_)) => "amount_too_small",
    };
    let text = format!("{amount} is not between the least and the most that can be charged.");
    Err(error(400, INVALID, Some(code), &text))
}

pub(crate) fn lower(amount: &Money) -> String {
    amount.currency.to_string().to_ascii_lowercase()
}

/// An error in Stripe's format.
/// Source: <https://docs.stripe.com/api/errors>
pub(crate) fn error(status: u16, kind: &str, code: Option<&str>, message: &str) -> Answer {
    (status, json!({ "error": { "type": kind, "code": code, "message": message } }))
}

pub(crate) const INVALID: &str = "invalid_request_error";
/// The type of the event of a capture. The others that are listed here are those of disputes.
pub(crate) const CAPTURED: &str = "payment_intent.succeeded";

impl State {
    pub(crate) fn intent(&self, id: &str) -> Option<&Intent> {
        self.intents.get(&PaymentId::new(id).ok()?)
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Captured(mut intent) => {
                intent.metadata.or_earlier(&intent.earlier);
                self.by_time.insert((intent.created_ms, intent.id.clone()));
                if let Some(order) = intent.metadata.order() {
                    self.by_order.entry(order).or_default().insert(intent.id.clone());
                }
                self.intents.insert(intent.id.clone(), intent);
            }
            Change::Waiting(mut waiting) => {
                waiting.metadata.or_earlier(&waiting.earlier);
                self.waiting.insert(waiting.id.clone(), waiting);
            }
            Change::Refunded(refund) => {
                if let Some((name, event)) = refund.told() {
                    self.by_time.insert((event.at_ms, name.clone()));
                    self.refund_events.insert(name, event);
                }
                match self.refunds.iter_mut().find(|known| known.id == refund.id) {
                    Some(known) => *known = refund,
                    None => self.refunds.push(refund),
                }
            }
            Change::Disputed(dispute) => {
                for (at_ms, name, kind) in dispute.told() {
                    self.by_time.insert((at_ms, name.clone()));
                    self.dispute_events.insert(name, (kind, dispute.id.clone()));
                }
                self.disputes.insert(dispute.id.clone(), dispute);
            }
            Change::Answered(key, kept) => {
                self.keys.insert(key, kept);
            }
        }
    }

    /// Newest first, as Stripe lists them.
    fn refunds_of<'a>(&'a self, payment: &'a str) -> impl Iterator<Item = &'a Refund> {
        self.refunds.iter().rev().filter(move |refund| refund.payment.as_str() == payment)
    }

    /// The amount not yet refunded.
    fn left(&self, intent: &Intent) -> MinorUnits {
        let of_it = self.refunds_of(intent.id.as_str()).filter(|refund| refund.status != "failed");
        let disputed = self.disputes_of(intent).map(Dispute::taken).sum::<MinorUnits>();
        let refunded = of_it.map(|refund| refund.amount_minor).sum::<MinorUnits>();
        intent.amount.amount_minor - refunded - disputed
    }

    fn disputes_of<'a>(&'a self, intent: &'a Intent) -> impl Iterator<Item = &'a Dispute> {
        self.disputes.values().filter(|dispute| dispute.payment == intent.id)
    }

    /// The event of a name: its type, and what is told.
    fn event(&self, name: &PaymentId) -> Option<(&'static str, Value)> {
        if let Some(intent) = self.intents.get(name) {
            return Some((CAPTURED, intent.event()));
        }
        let event = |kind: &'static str, at_ms: i64, object: Value| {
            let event = json!({
                "id": format!("{EVENT_PREFIX}{name}"), "object": "event", "type": kind,
                "created": at_ms.div_euclid(1000), "data": { "object": object },
                "livemode": false, "pending_webhooks": 0,
            });
            Some((kind, event))
        };
        if let Some(RefundEvent { at_ms, kind, refund }) = self.refund_events.get(name) {
            return event(kind, *at_ms, self.shown(refund, false));
        }
        let (kind, dispute) = self.dispute_events.get(name)?;
        let dispute = self.disputes.get(dispute)?;
        let at_ms = dispute.told().find(|(_, told, _)| told == name).map(|(at_ms, ..)| at_ms)?;
        event(kind, at_ms, dispute.shown(self, false))
    }

    /// When the event of a name happened.
    fn event_ms(&self, name: &PaymentId) -> Option<i64> {
        if let Some(intent) = self.intents.get(name) {
            return Some(intent.created_ms);
        }
        if let Some(told) = self.refund_events.get(name) {
            return Some(told.at_ms);
        }
        let (_, dispute) = self.dispute_events.get(name)?;
        let mut told = self.disputes.get(dispute)?.told();
        told.find(|(_, told, _)| told == name).map(|(at_ms, ..)| at_ms)
    }

    /// What a movement of the balance is of.
    fn source(&self, moved: &Movement, expands: Expands) -> Value {
        if expands == Expands::Nothing {
            return json!(moved.source);
        }
        let is_whole = expands == Expands::SourceAndPayment;
        if let Some(refund) = self.refunds.iter().find(|refund| refund.id == moved.source) {
            return self.shown(refund, is_whole);
        }
        if let Some(dispute) = self.disputes.get(moved.source.trim_end_matches("-back")) {
            return dispute.shown(self, is_whole);
        }
        let intent = self.intents.get(&moved.payment);
        json!({
            "id": moved.source, "object": "charge", "amount": stated(moved.amount),
            "currency": lower(&moved.amount), "metadata": moved.metadata,
            "payment_intent": match intent.filter(|_| is_whole) {
                Some(intent) => intent.shown(),
                None => json!(moved.payment),
            },
        })
    }

    /// A refund as Stripe shows it, with its payment whole if that is asked for.
    fn shown(&self, refund: &Refund, is_expanded: bool) -> Value {
        let intent = self.intents.get(&refund.payment);
        let currency = intent.map(|intent| lower(&intent.amount));
        let amount = intent.map_or(refund.amount_minor.0, |intent| {
            stated(Money { amount_minor: refund.amount_minor, ..intent.amount })
        });
        let metadata = match &refund.refund {
            None => json!({}),
            Some(refund) => json!({ "refund": refund }),
        };
        let payment = match intent.filter(|_| is_expanded) {
            Some(intent) => intent.shown(),
            None => json!(refund.payment),
        };
        json!({
            "id": refund.id, "object": "refund", "amount": amount,
            "payment_intent": payment, "status": refund.status, "currency": currency,
            "created": refund.created_ms.div_euclid(1000), "metadata": metadata,
            "failure_reason": (refund.status == "failed").then_some("expired_or_canceled_card"),
        })
    }
}

impl Book {
    /// The answer that was kept under a key: the same request gets it again, another one is refused.
    pub(crate) fn kept(&self, key: Option<&str>, parameters: &str) -> Option<Answer> {
        let kept = self.state.keys.get(key?)?;
        if kept.parameters != parameters {
            let text = "Keys for idempotent requests can only be used with the same parameters \
                        they were first used with.";
            return Some(error(400, "idempotency_error", None, text));
        }
        Some((kept.status, kept.body.clone()))
    }

    /// Writes changes to the file, all of them or none, then applies them.
    pub(crate) fn change(
        &mut self,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<(), Error> {
        let changes: Vec<Change> = changes.into_iter().collect();
        if let Some(journal) = &mut self.journal {
            let mut lines = Vec::new();
            for change in &changes {
                serde_json::to_writer(&mut lines, change).map_err(broken)?;
                lines.push(b'\n');
            }
            journal.append(&lines).map_err(Error::io("keeping what the payment provider knows"))?;
        }
        changes.into_iter().for_each(|change| self.state.apply(change));
        Ok(())
    }

    /// The answer to a request for a refund, and the refund if one is made, which is not written yet.
    fn refund(
        &self,
        request: &RefundRequest,
        pending: bool,
        now: Timestamp,
    ) -> (Answer, Option<Refund>) {
        let payment = &request.payment;
        let id = PaymentId::new(payment.clone()).ok();
        let Some(intent) = id.and_then(|id| self.state.intents.get(&id)) else {
            let text = format!("No such payment_intent: '{payment}'");
            return (error(404, INVALID, Some("resource_missing"), &text), None);
        };
        if self.state.disputes_of(intent).any(|dispute| dispute.status == Status::NeedsResponse) {
            let text = format!("The charge of {payment} has been disputed.");
            return (error(400, INVALID, Some("charge_disputed"), &text), None);
        }
        let left = self.state.left(intent);
        if left <= MinorUnits::ZERO {
            let text = format!("The charge of {payment} has already been refunded.");
            return (error(400, INVALID, Some("charge_already_refunded"), &text), None);
        }
        let asked = request.amount_minor.map(|stated| whole(stated, intent.amount.currency));
        let amount_minor = match asked.transpose() {
            Ok(asked) => asked.map_or(left, |asked| asked.amount_minor),
            Err(refusal) => return (refusal, None),
        };
        if !(MinorUnits(1)..=left).contains(&amount_minor) {
            let text = format!("Refund amount is not between 1 and the unrefunded {left}");
            return (error(400, INVALID, Some("amount_too_large"), &text), None);
        }
        let refund = Refund {
            id: format!("re_{}", self.state.refunds.len() + 1),
            payment: intent.id.clone(),
            amount_minor,
            status: if pending { "pending" } else { "succeeded" }.to_owned(),
            created_ms: now.ms(),
            ended_ms: None,
            refund: request.refund.clone(),
        };
        ((200, self.state.shown(&refund, false)), Some(refund))
    }
}

pub(crate) fn broken(error: impl std::fmt::Display) -> Error {
    Error::Provider(error.to_string())
}

impl Accounts {
    /// Reads the changes in `file`, creating it if it is absent.
    ///
    /// # Errors
    /// The file cannot be opened, or a line of it not be read.
    pub(crate) fn open(file: Option<&Path>, lags: Lags) -> Result<Self, Error> {
        let mut state = State::default();
        let journal = match file {
            None => None,
            Some(path) => Some(Journal::open(path, |line| {
                serde_json::from_slice(line).map(|change| state.apply(change))
            })?),
        };
        Ok(Self::new(state, journal, lags))
    }

    fn new(state: State, journal: Option<Journal>, lags: Lags) -> Self {
        let book = Mutex::new(Book { state, journal, plan: Plan::default() });
        Self { book, lags, webhook: OnceLock::new(), calls: Mutex::default() }
    }

    /// Where payments are told from now on; the first one stays.
    pub(crate) fn notify(&self, webhook: Webhook) {
        let _first = self.webhook.set(webhook);
    }

    /// Tells of a payment, if anybody wants to know.
    pub(crate) fn tell(&self, intent: &Intent) {
        if let Some(webhook) = self.webhook() {
            webhook.tell(intent);
        }
    }

    /// Where payments are told.
    pub(crate) fn webhook(&self) -> Option<&Webhook> {
        self.webhook.get()
    }

    /// Counts a request to a route.
    pub(crate) fn count(&self, route: &'static str) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry(route).or_default() += 1;
    }

    /// The number of requests to each route.
    pub(crate) fn calls(&self) -> BTreeMap<&'static str, u64> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Captures a payment; without an `id` the provider chooses one. A known `id` returns its payment.
    pub(crate) fn capture(
        &self,
        id: Option<&str>,
        metadata: Metadata,
        amount: Money,
        now: Timestamp,
    ) -> Result<Intent, Error> {
        let mut book = self.book();
        let id = match id {
            Some(id) => id.to_owned(),
            None => format!("pi_onsale_{}", book.state.intents.len() + 1),
        };
        let id = PaymentId::new(id).map_err(broken)?;
        if let Some(known) = book.state.intents.get(&id) {
            return Ok(known.clone());
        }
        let intent =
            Intent { id, metadata, earlier: Earlier::default(), amount, created_ms: now.ms() };
        book.change([Change::Captured(intent.clone())])?;
        Ok(intent)
    }

    /// The payments of an order that the search finds by now, newest first.
    pub(crate) fn found(&self, order: OrderNumber, now: Timestamp) -> Vec<Value> {
        let book = self.book();
        let lag_seconds = i64::from(self.lags.search_seconds);
        let is_found = |intent: &&Intent| {
            let found_from = Timestamp::from_ms(intent.created_ms).plus_seconds(lag_seconds);
            lag_seconds == 0 || found_from <= now
        };
        let of_order = book.state.by_order.get(&order).into_iter().flatten();
        let of_order = of_order.filter_map(|payment| book.state.intents.get(payment));
        let mut of_order: Vec<&Intent> = of_order.filter(is_found).collect();
        of_order.sort_by_key(|intent| std::cmp::Reverse(intent.created_ms));
        of_order.into_iter().map(Intent::shown).collect()
    }

    /// A page of the events of these types since a time, newest first, and whether more follow. One
    /// that is not listed by now is left out. `None` if there is no event of the name `after`.
    pub(crate) fn events(
        &self,
        kinds: &[&str],
        since_seconds: i64,
        after: Option<&str>,
        limit: usize,
        now: Timestamp,
    ) -> Option<(Vec<Value>, bool)> {
        let book = self.book();
        let state = &book.state;
        let lag_seconds = i64::from(self.lags.list_seconds);
        let listed_to_ms = match lag_seconds {
            0 => i64::MAX,
            lag_seconds => now.plus_seconds(-lag_seconds).ms(),
        };
        let older = match after {
            None => state.by_time.range::<(i64, PaymentId), _>(..),
            Some(after) => {
                let name = PaymentId::new(after.strip_prefix(EVENT_PREFIX)?).ok()?;
                state.by_time.range(..(state.event_ms(&name)?, name))
            }
        };
        let mut listed = older
            .rev()
            .filter(|(created_ms, _)| *created_ms <= listed_to_ms)
            .take_while(|(created_ms, _)| created_ms.div_euclid(1000) >= since_seconds)
            .filter_map(|(_, name)| state.event(name))
            .filter(|(kind, _)| kinds.contains(kind));
        let page = listed.by_ref().take(limit).map(|(_, event)| event).collect();
        Some((page, listed.next().is_some()))
    }

    /// A page of the refunds of a payment, newest first, and whether more follow; `None` if there is no refund of the name
    /// `after`. `is_expanded` shows each with its payment whole.
    pub(crate) fn refunds(
        &self,
        payment: &str,
        after: Option<&str>,
        limit: usize,
        is_expanded: bool,
    ) -> Option<(Vec<Value>, bool)> {
        let state = &self.book().state;
        let mut listed = state.refunds_of(payment);
        if let Some(after) = after {
            listed.find(|refund| refund.id == after)?;
        }
        let shown = |refund: &Refund| state.shown(refund, is_expanded);
        let page = listed.by_ref().take(limit).map(shown).collect();
        Some((page, listed.next().is_some()))
    }

    /// Refunds a payment, once for each idempotency key.
    pub(crate) fn refund(&self, request: RefundRequest, now: Timestamp) -> Result<Answer, Error> {
        let mut book = self.book();
        if let Some(answer) = book.kept(request.key.as_deref(), &request.parameters) {
            return Ok(answer);
        }
        let fault = book.plan.take(RequestKind::Refund);
        let ((status, body), refund) = match fault {
            // Turned away at the door: nothing is kept under the key.
            Some(Fault::FailRefund) => {
                return Ok(error(503, "api_error", None, "The provider is not available."));
            }
            Some(Fault::RefuseRefund) => {
                let text = "Insufficient funds in your account.";
                (error(400, INVALID, Some("balance_insufficient"), text), None)
            }
            Some(Fault::LeaveRefundPending) => book.refund(&request, true, now),
            Some(
                Fault::LoseRefundAnswer
                | Fault::FailSearch
                | Fault::FindNothing
                | Fault::FailList
                | Fault::FailStart,
            )
            | None => book.refund(&request, false, now),
        };
        // Together: a refund without its key would be refused when it is asked for again.
        let kept = Kept { parameters: request.parameters, status, body: body.clone() };
        let answered = request.key.map(|key| Change::Answered(key, kept));
        book.change(refund.map(Change::Refunded).into_iter().chain(answered))?;
        let lost = fault == Some(Fault::LoseRefundAnswer);
        Ok(if lost { (LOST, Value::Null) } else { (status, body) })
    }

    /// Forgets the answers that were kept under idempotency keys, as Stripe does after a day.
    /// Source: <https://docs.stripe.com/api/idempotent_requests>
    pub(crate) fn forget_keys(&self) {
        self.book().state.keys.clear();
    }

    /// Refunds a part without a name, as on the provider's own pages: no fault hits it.
    pub(crate) fn refund_by_hand(
        &self,
        payment: &str,
        amount_minor: MinorUnits,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut book = self.book();
        let request = RefundRequest {
            payment: payment.to_owned(),
            amount_minor: Some(amount_minor),
            refund: None,
            parameters: String::new(),
            key: None,
        };
        let ((status, body), refund) = book.refund(&request, false, now);
        if status != 200 {
            return Err(Error::Provider(body.to_string()));
        }
        book.change(refund.map(Change::Refunded))
    }

    /// Takes the fault planned for a search, if there is one.
    pub(crate) fn search_fault(&self) -> Option<Fault> {
        self.book().plan.take(RequestKind::Search)
    }

    /// True if a fault was planned for a page of the list of events; it is taken.
    pub(crate) fn list_fails(&self) -> bool {
        self.book().plan.take(RequestKind::List).is_some()
    }

    pub(crate) fn next(&self, fault: Fault) {
        self.book().plan.add(fault);
    }

    /// Ends a payment's refunds that are `pending`, or `succeeded`: they succeed, or fail.
    pub(crate) fn settle(
        &self,
        payment: &str,
        before: &str,
        succeed: bool,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut book = self.book();
        let is_it = |refund: &&Refund| refund.status == before;
        let found: Vec<Refund> = book.state.refunds_of(payment).filter(is_it).cloned().collect();
        let status = if succeed { "succeeded" } else { "failed" };
        let ended_ms = Some(now.ms());
        let ended =
            |refund| Change::Refunded(Refund { status: status.to_owned(), ended_ms, ..refund });
        book.change(found.into_iter().map(ended))
    }

    /// Everything that moved the balance.
    pub(crate) fn movements(&self) -> Vec<Movement> {
        let state = &self.book().state;
        let captured = |intent: &Intent| Movement {
            source: format!("ch_{}", intent.id),
            payment: intent.id.clone(),
            metadata: intent.metadata.clone(),
            amount: intent.amount,
            at_ms: intent.created_ms,
            category: "charge",
        };
        let sent_back = |refund: &Refund| {
            let intent = state.intents.get(&refund.payment)?;
            let amount_minor = MinorUnits::ZERO - refund.amount_minor;
            Some(Movement {
                source: refund.id.clone(),
                amount: Money { amount_minor, ..intent.amount },
                at_ms: refund.created_ms,
                category: "refund",
                ..captured(intent)
            })
        };
        let refunds = state.refunds.iter().filter(|refund| refund.status == "succeeded");
        let disputes = state
            .disputes
            .values()
            .filter_map(|dispute| Some(dispute.movements(state.intents.get(&dispute.payment)?)));
        let moved = state.intents.values().map(captured).chain(refunds.filter_map(sent_back));
        moved.chain(disputes.flatten()).collect()
    }

    /// A page of the balance transactions of a period in seconds, newest first, and if there are more; `None` if `after` names
    /// none of them.
    /// Source: <https://docs.stripe.com/api/balance_transactions/object>
    pub(crate) fn balance(
        &self,
        period: std::ops::Range<i64>,
        after: Option<&str>,
        limit: usize,
        expands: Expands,
    ) -> Option<(Vec<Value>, bool)> {
        let mut moved = self.movements();
        moved.retain(|moved| period.contains(&moved.at_ms.div_euclid(1000)));
        moved.sort_by_key(|moved| std::cmp::Reverse((moved.at_ms, moved.source.clone())));
        let state = &self.book().state;
        let id = |moved: &Movement| format!("txn_{}", moved.source);
        let mut listed = moved.iter();
        if let Some(after) = after {
            listed.find(|moved| id(moved) == after)?;
        }
        let page = listed.by_ref().take(limit).map(|moved| {
            let (gross, fee) = (stated(moved.amount), moved.fee());
            json!({
                "id": id(moved), "object": "balance_transaction", "amount": gross, "fee": fee,
                "net": gross - fee, "currency": lower(&moved.amount),
                "created": moved.at_ms.div_euclid(1000), "type": moved.category,
                "reporting_category": moved.category, "source": state.source(moved, expands),
            })
        });
        let page = page.collect();
        Some((page, listed.next().is_some()))
    }

    /// Every payment that names an order, with its refunds.
    pub(crate) fn ledger(&self) -> Vec<LedgerEntry> {
        let state = &self.book().state;
        let refund = |refund: &Refund| LedgerRefund {
            amount_minor: refund.amount_minor,
            status: refund.status.clone(),
        };
        let entry = |intent: &Intent| {
            Some(LedgerEntry {
                provider: PROVIDER.to_owned(),
                payment: intent.id.to_string(),
                order: intent.metadata.order()?,
                deployment: intent.metadata.deployment().map(str::to_owned),
                amount_minor: intent.amount.amount_minor,
                currency: intent.amount.currency,
                refunds: state.refunds_of(intent.id.as_str()).map(refund).collect(),
            })
        };
        state.intents.values().filter_map(entry).collect()
    }
}

/// In place of a status: the answer is lost on its way.
pub(crate) const LOST: u16 = 0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::tests::SmallDisk;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn amount() -> Money {
        Money { amount_minor: MinorUnits(500), currency: Currency::new("EUR").unwrap() }
    }

    fn of_order() -> Metadata {
        Metadata::of_order("7".parse().unwrap())
    }

    fn capture(accounts: &Accounts, payment: &str) -> Result<Intent, Error> {
        accounts.capture(Some(payment), of_order(), amount(), NOW)
    }

    fn refund(accounts: &Accounts) -> Result<Answer, Error> {
        let request = RefundRequest {
            payment: "pi_1".to_owned(),
            amount_minor: None,
            refund: None,
            parameters: "pi_1".to_owned(),
            key: Some("key".to_owned()),
        };
        accounts.refund(request, NOW)
    }

    #[test]
    fn a_charge_is_whole_in_stripes_units_and_neither_too_small_nor_too_large() {
        let asked = |stated: i64, code: &str| {
            let charged = charged(MinorUnits(stated), Currency::new(code).unwrap());
            charged.map(|amount| amount.amount_minor.0).map_err(|(status, body)| {
                assert_eq!(status, 400);
                body["error"]["code"].as_str().unwrap().to_owned()
            })
        };
        let refused = |code: &str| Err(code.to_owned());
        assert_eq!(asked(500_000, "ISK"), Ok(5000));
        assert_eq!(asked(5000, "MGA"), Ok(500_000));
        assert_eq!(asked(1230, "KWD"), Ok(1230));
        assert_eq!(asked(50, "ISK"), refused("parameter_invalid_integer"));
        assert_eq!(asked(1234, "KWD"), refused("parameter_invalid_integer"));
        assert_eq!(asked(49, "EUR"), refused("amount_too_small"));
        assert_eq!(asked(1_000_000_000_000, "EUR"), refused("amount_too_large"));
        // What was taken is stated as it came.
        for (stated, code) in [(500_000, "ISK"), (5000, "MGA"), (1230, "KWD"), (50, "EUR")] {
            let amount = charged(MinorUnits(stated), Currency::new(code).unwrap()).unwrap();
            assert_eq!(super::stated(amount), stated, "{code}");
        }
    }

    #[test]
    fn a_full_disk_tears_no_record_and_heals_when_there_is_space() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("provider.jsonl");
        // At every length at which the disk can be full, between no byte and all of the records.
        for space in 0..900 {
            let _absent = std::fs::remove_file(&path);
            let disk = SmallDisk::new(&path, space);
            let journal = Journal::on(disk.medium(), 0);
            let accounts = Accounts::new(State::default(), Some(journal), Lags::default());
            let captured = capture(&accounts, "pi_1").is_ok();
            let refunded = captured && refund(&accounts).is_ok();
            let ledger = |accounts: &Accounts| serde_json::to_string(&accounts.ledger()).unwrap();
            assert!(refunded || space < 899, "the disk has space for all of it in the end");
            let known = Accounts::open(Some(&path), Lags::default()).unwrap();
            assert_eq!(ledger(&known), ledger(&accounts), "{space} bytes: what was said is kept");

            disk.grow();
            capture(&accounts, "pi_1").unwrap();
            capture(&accounts, "pi_2").unwrap();
            assert_eq!(refund(&accounts).unwrap().0, 200, "{space} bytes");
            let known = Accounts::open(Some(&path), Lags::default()).unwrap();
            assert_eq!(ledger(&known), ledger(&accounts), "{space} bytes: a start reads it");
            assert_eq!(known.ledger()[0].refunds.len(), 1, "{space} bytes");
        }
    }

    #[test]
    fn a_start_names_the_line_that_it_cannot_read_and_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("provider.jsonl");
        capture(&Accounts::open(Some(&path), Lags::default()).unwrap(), "pi_1").unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{good}{}\n{good}", &good[..20])).unwrap();
        let why = Accounts::open(Some(&path), Lags::default()).map(drop).unwrap_err().to_string();
        let place = format!("{}, line 2", path.display());
        assert!(why.contains(&place) && why.contains("move the file away"), "{why}");
        let left = std::fs::read_to_string(&path).unwrap();
        assert!(left.len() > 2 * good.len(), "the file is left as it is");

        // Half a line at the end was never answered: it is dropped.
        std::fs::write(&path, format!("{good}{}", &good[..20])).unwrap();
        assert_eq!(Accounts::open(Some(&path), Lags::default()).unwrap().ledger().len(), 1);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), good);
    }

    #[test]
    fn events_are_listed_newest_first_in_pages_and_late() {
        let accounts = Accounts::new(State::default(), None, Lags::from_search_seconds(3));
        for second in 0..5 {
            let (id, at) = (format!("pi_{second}"), NOW.plus_seconds(second));
            accounts.capture(Some(&id), of_order(), amount(), at).unwrap();
        }
        let since = NOW.ms() / 1000;
        let page = |since: i64, after: Option<&str>, now: i64| {
            let page = accounts.events(&[CAPTURED], since, after, 2, NOW.plus_seconds(now))?;
            let names = page.0.iter().map(|event| event["id"].as_str().unwrap().to_owned());
            Some((names.collect::<Vec<_>>(), page.1))
        };
        let names = |names: &[&str], more: bool| {
            Some((names.iter().map(|name| format!("evt_pi_{name}")).collect::<Vec<_>>(), more))
        };
        assert_eq!(page(since, None, 6), names(&["4", "3"], true));
        assert_eq!(page(since, Some("evt_pi_3"), 6), names(&["2", "1"], true));
        assert_eq!(page(since, Some("evt_pi_1"), 6), names(&["0"], false));
        assert_eq!(page(since + 2, Some("evt_pi_3"), 6), names(&["2"], false));
        assert_eq!(page(since, None, 4), names(&["2", "1"], true), "two seconds late");
        assert_eq!(page(since + 5, None, 9), names(&[], false));
        assert_eq!(page(since, Some("evt_pi_9"), 6), None);
    }
}
