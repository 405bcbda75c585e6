//! Payments that wait for a buyer: Checkout Sessions, and PaymentIntents that are to be confirmed.
//!
//! Source: <https://docs.stripe.com/api/checkout/sessions/object>,
//! <https://docs.stripe.com/api/payment_intents/object>

use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::Money;
use engine::domain::basics::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::account::{
    Accounts, Answer, Change, INVALID, Intent, Kept, broken, error, lower, stated,
};
use crate::faults::RequestKind;
use crate::metadata::{Earlier, Metadata};

/// The shortest and the longest life of a session, in seconds.
/// Source: <https://docs.stripe.com/api/checkout/sessions/create#create_checkout_session-expires_at>
const SESSION_SECONDS: std::ops::RangeInclusive<i64> = 30 * 60..=24 * 60 * 60;

/// Where a buyer pays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// On the provider's page.
    Session,
    /// In a form of the seller's.
    Intent,
}

/// State of a payment that waits, or waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Waits {
    /// It can be paid.
    Open,
    Paid,
    Closed,
}

/// A payment that waits for a buyer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) id: PaymentId,
    kind: Kind,
    #[serde(default)]
    pub(crate) metadata: Metadata,
    #[serde(flatten, skip_serializing)]
    pub(crate) earlier: Earlier,
    #[serde(default)]
    client_reference_id: Option<String>,
    pub(crate) amount: Money,
    created_ms: i64,
    expires_ms: Option<i64>,
    pub(crate) success_url: Option<String>,
    pub(crate) cancel_url: Option<String>,
    pub(crate) state: Waits,
}

/// A request to make one.
pub(crate) struct WaitingRequest {
    pub(crate) kind: Kind,
    pub(crate) metadata: Metadata,
    pub(crate) client_reference_id: Option<String>,
    pub(crate) amount: Money,
    pub(crate) expires_seconds: Option<i64>,
    pub(crate) success_url: Option<String>,
    pub(crate) cancel_url: Option<String>,
    /// The parameters as they were sent, to tell whether a key is used for another request.
    pub(crate) parameters: String,
    pub(crate) key: Option<String>,
}

impl Waiting {
    /// The payment by which it is, or would be, captured.
    fn payment(&self) -> Result<PaymentId, Error> {
        match self.kind {
            Kind::Intent => Ok(self.id.clone()),
            Kind::Session => PaymentId::new(format!("pi_{}", self.id)).map_err(broken),
        }
    }

    /// The state at a time: a session that nobody has paid ends by itself.
    pub(crate) fn state_at(&self, now: Timestamp) -> Waits {
        match self.state {
            Waits::Open if self.expires_ms.is_some_and(|at| at <= now.ms()) => Waits::Closed,
            Waits::Open | Waits::Paid | Waits::Closed => self.state,
        }
    }

    fn shown(&self, base: &str, now: Timestamp) -> Value {
        let (amount, state) = (stated(self.amount), self.state_at(now));
        let currency = lower(&self.amount);
        let metadata = &self.metadata;
        match self.kind {
            Kind::Session => json!({
                "id": self.id, "object": "checkout.session", "mode": "payment",
                "status": match state {
                    Waits::Open => "open",
                    Waits::Paid => "complete",
                    Waits::Closed => "expired",
                },
                "payment_status": if state == Waits::Paid { "paid" } else { "unpaid" },
                "payment_intent": (state == Waits::Paid).then(|| format!("pi_{}", self.id)),
                "url": (state == Waits::Open).then(|| format!("{base}/pay/{}", self.id)),
                "amount_total": amount, "currency": currency,
                "expires_at": self.expires_ms.map(|ms| ms.div_euclid(1000)),
                "created": self.created_ms.div_euclid(1000), "livemode": false,
                "client_reference_id": self.client_reference_id, "metadata": metadata,
            }),
            Kind::Intent => json!({
                "id": self.id, "object": "payment_intent",
                "status": match state {
                    Waits::Open => "requires_payment_method",
                    Waits::Paid => "succeeded",
                    Waits::Closed => "canceled",
                },
                "client_secret": format!("{}_secret_onsale", self.id),
                "amount": amount,
                "amount_received": if state == Waits::Paid { amount } else { 0 },
                "currency": currency, "created": self.created_ms.div_euclid(1000),
                "metadata": metadata, "livemode": false,
            }),
        }
    }
}

fn missing(kind: Kind, id: &str) -> Answer {
    let object = match kind {
        Kind::Session => "checkout.session",
        Kind::Intent => "payment_intent",
    };
    error(404, INVALID, Some("resource_missing"), &format!("No such {object}: '{id}'"))
}

impl Accounts {
    /// Makes a payment that waits, once for each idempotency key. `base` is where its page is.
    pub(crate) fn wait(
        &self,
        request: WaitingRequest,
        base: &str,
        now: Timestamp,
    ) -> Result<Answer, Error> {
        let mut book = self.book();
        if let Some(answer) = book.kept(request.key.as_deref(), &request.parameters) {
            return Ok(answer);
        }
        let expires_ms = match (request.kind, request.expires_seconds) {
            (Kind::Intent, _) => None,
            (Kind::Session, None) => Some(now.plus_seconds(*SESSION_SECONDS.end()).ms()),
            (Kind::Session, Some(at)) => {
                let life = at - now.ms().div_euclid(1000);
                if !SESSION_SECONDS.contains(&life) {
                    let text = "The `expires_at` timestamp must be at least 30 minutes and at \
                                most 24 hours from Checkout Session creation.";
                    return Ok(error(400, INVALID, None, text));
                }
                Some(at * 1000)
            }
        };
        let number = book.state.waiting.len() + 1;
        let name = match request.kind {
            Kind::Session => format!("cs_onsale_{number}"),
            Kind::Intent => format!("pi_form_{number}"),
        };
        let waiting = Waiting {
            id: PaymentId::new(name).map_err(broken)?,
            kind: request.kind,
            metadata: request.metadata,
            earlier: Earlier::default(),
            client_reference_id: request.client_reference_id,
            amount: request.amount,
            created_ms: now.ms(),
            expires_ms,
            success_url: request.success_url,
            cancel_url: request.cancel_url,
            state: Waits::Open,
        };
        let (status, body) = match book.plan.take(RequestKind::Start) {
            Some(_) => error(500, "api_error", None, "Something went wrong on the provider's end."),
            None => (200, waiting.shown(base, now)),
        };
        let kept = Kept { parameters: request.parameters, status, body: body.clone() };
        let answered = request.key.map(|key| Change::Answered(key, kept));
        book.change([Change::Waiting(waiting)].into_iter().chain(answered))?;
        Ok((status, body))
    }

    /// A payment that waits, or waited.
    pub(crate) fn waiting(&self, id: &str) -> Option<Waiting> {
        self.book().state.waiting.get(&PaymentId::new(id).ok()?).cloned()
    }

    /// Shows one of a kind.
    pub(crate) fn show(&self, kind: Kind, id: &str, base: &str, now: Timestamp) -> Answer {
        match self.waiting(id).filter(|waiting| waiting.kind == kind) {
            Some(waiting) => (200, waiting.shown(base, now)),
            None => match (kind, self.book().state.intent(id)) {
                (Kind::Intent, Some(intent)) => (200, intent.shown()),
                (Kind::Intent | Kind::Session, _) => missing(kind, id),
            },
        }
    }

    /// Closes one that is open, for ever.
    pub(crate) fn close(
        &self,
        kind: Kind,
        id: &str,
        base: &str,
        now: Timestamp,
    ) -> Result<Answer, Error> {
        let mut book = self.book();
        let known = PaymentId::new(id).ok().and_then(|id| book.state.waiting.get(&id).cloned());
        let Some(waiting) = known.filter(|waiting| waiting.kind == kind) else {
            return Ok(missing(kind, id));
        };
        let is_open = waiting.state_at(now) == Waits::Open;
        if !is_open {
            let text = "It cannot be closed because of its status.";
            let code = matches!(kind, Kind::Intent).then_some("payment_intent_unexpected_state");
            return Ok(error(400, INVALID, code, text));
        }
        let closed = Waiting { state: Waits::Closed, ..waiting };
        let body = closed.shown(base, now);
        book.change([Change::Waiting(closed)])?;
        Ok((200, body))
    }

    /// A buyer pays one that is open: what was captured; `None` if it is not open. Paid again, it is the same
    /// payment.
    pub(crate) fn pay(&self, id: &str, now: Timestamp) -> Result<Option<Intent>, Error> {
        let mut book = self.book();
        let known = PaymentId::new(id).ok().and_then(|id| book.state.waiting.get(&id).cloned());
        let Some(waiting) = known else { return Ok(None) };
        let payment = waiting.payment()?;
        match waiting.state_at(now) {
            Waits::Closed => return Ok(None),
            Waits::Paid => return Ok(book.state.intent(payment.as_str()).cloned()),
            Waits::Open => {}
        }
        let intent = Intent {
            id: payment,
            metadata: waiting.metadata.clone(),
            earlier: Earlier::default(),
            amount: waiting.amount,
            created_ms: now.ms(),
        };
        let paid = Waiting { state: Waits::Paid, ..waiting };
        book.change([Change::Captured(intent.clone()), Change::Waiting(paid)])?;
        Ok(Some(intent))
    }
}
