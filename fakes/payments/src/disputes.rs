//! Disputes of captured payments, as Stripe has them: opened and decided by a person at the bank, or here by a test.
//! Sources: <https://docs.stripe.com/api/disputes/object>, <https://docs.stripe.com/disputes/how-disputes-work>.

use engine::domain::basics::ids::PaymentId;
use engine::domain::basics::money::{MinorUnits, Money};
use engine::domain::basics::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;
use crate::account::{
    Accounts, Answer, Change, INVALID, Intent, State, broken, error, lower, stated,
};
use crate::settlement::Movement;

/// A dispute of a payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dispute {
    pub(crate) id: String,
    pub(crate) payment: PaymentId,
    pub(crate) amount_minor: MinorUnits,
    pub(crate) status: Status,
    pub(crate) opened_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed_ms: Option<i64>,
    /// When it was decided otherwise than before, each time: by arbitration, or by the bank.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reversed_ms: Vec<i64>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    /// The bank asks first: no money was taken.
    WarningNeedsResponse,
    /// The bank has asked, and takes nothing.
    WarningClosed,
    NeedsResponse,
    Won,
    Lost,
}

impl Status {
    const fn as_str(self) -> &'static str {
        match self {
            Self::WarningNeedsResponse => "warning_needs_response",
            Self::WarningClosed => "warning_closed",
            Self::NeedsResponse => "needs_response",
            Self::Won => "won",
            Self::Lost => "lost",
        }
    }

    /// True if the bank only asks, or has only asked.
    const fn is_inquiry(self) -> bool {
        match self {
            Self::WarningNeedsResponse | Self::WarningClosed => true,
            Self::NeedsResponse | Self::Won | Self::Lost => false,
        }
    }
}

/// The types of the events of disputes that are listed here.
/// Source: <https://docs.stripe.com/api/events/types>
const EVENTS: [&str; 4] = [
    "charge.dispute.created",
    "charge.dispute.funds_withdrawn",
    "charge.dispute.closed",
    "charge.dispute.funds_reinstated",
];

impl Dispute {
    /// When it was decided, and whether it was won then: each time that the money moved, in order.
    fn decisions(&self) -> impl Iterator<Item = (i64, bool)> {
        let is_won_now = self.status == Status::Won;
        let is_decided = matches!(self.status, Status::Won | Status::Lost);
        let last = self.reversed_ms.len();
        let all = self.closed_ms.filter(|_| is_decided).into_iter().chain(self.reversed_ms.clone());
        // Each is the opposite of the one before.
        all.enumerate().map(move |(at, ms)| (ms, is_won_now == ((last - at).is_multiple_of(2))))
    }

    /// The events that tell of it: when each happened, what it is called in its name, and its type.
    pub(crate) fn told(&self) -> impl Iterator<Item = (i64, PaymentId, &'static str)> {
        let [created, withdrawn, closed, reinstated] = EVENTS;
        let withdrawn_ms = (!self.status.is_inquiry()).then_some(self.opened_ms);
        let mut events = vec![
            (Some(self.opened_ms), "created".to_owned(), created),
            (withdrawn_ms, "withdrawn".to_owned(), withdrawn),
            (self.closed_ms, "closed".to_owned(), closed),
        ];
        for (number, (ms, is_won)) in self.decisions().enumerate() {
            let (what, kind) =
                if is_won { ("reinstated", reinstated) } else { ("withdrawn", withdrawn) };
            match number {
                0 if is_won => events.push((Some(ms), what.to_owned(), kind)),
                0 => {}
                again => events.push((Some(ms), format!("{what}-{again}"), kind)),
            }
        }
        events.into_iter().filter_map(|(at_ms, what, kind)| {
            Some((at_ms?, PaymentId::new(format!("{}-{what}", self.id)).ok()?, kind))
        })
    }

    /// What was taken, or is taken still.
    pub(crate) fn taken(&self) -> MinorUnits {
        match self.status {
            Status::NeedsResponse | Status::Lost => self.amount_minor,
            Status::WarningNeedsResponse | Status::WarningClosed | Status::Won => MinorUnits::ZERO,
        }
    }

    /// What it moved on the balance.
    pub(crate) fn movements(&self, intent: &Intent) -> Vec<Movement> {
        let moved = |source: String, amount_minor: MinorUnits, at_ms: i64, category| Movement {
            source,
            payment: intent.id.clone(),
            metadata: intent.metadata.clone(),
            amount: Money { amount_minor, ..intent.amount },
            at_ms,
            category,
        };
        if self.status.is_inquiry() {
            return Vec::new();
        }
        let taken = MinorUnits::ZERO - self.amount_minor;
        let mut all = vec![moved(self.id.clone(), taken, self.opened_ms, "dispute")];
        let mut is_taken = true;
        for (number, (at_ms, is_won)) in self.decisions().enumerate() {
            let again = if number == 0 { String::new() } else { format!("-{number}") };
            if is_won && is_taken {
                let source = format!("{}-back{again}", self.id);
                all.push(moved(source, self.amount_minor, at_ms, "dispute_reversal"));
            } else if !is_won && !is_taken {
                all.push(moved(format!("{}{again}", self.id), taken, at_ms, "dispute"));
            }
            is_taken = !is_won;
        }
        all
    }

    /// As Stripe shows it, with its payment whole if that is asked for.
    pub(crate) fn shown(&self, state: &State, is_expanded: bool) -> Value {
        let intent = state.intent(self.payment.as_str());
        let amount = intent.map_or(self.amount_minor.0, |intent| {
            stated(Money { amount_minor: self.amount_minor, ..intent.amount })
        });
        let payment = match intent.filter(|_| is_expanded) {
            Some(intent) => intent.shown(),
            None => json!(self.payment),
        };
        json!({
            "id": self.id, "object": "dispute", "amount": amount,
            "currency": intent.map(|intent| lower(&intent.amount)), "charge": format!("ch_{}", self.payment),
            "payment_intent": payment, "reason": "fraudulent", "status": self.status.as_str(),
            "created": self.opened_ms.div_euclid(1000),
            "is_charge_refundable": self.status.is_inquiry(), "metadata": {}, "livemode": false,
        })
    }
}

impl Accounts {
    /// The bank takes money of a payment back, or asks first: the dispute's name.
    pub(crate) fn open_dispute(
        &self,
        payment: &str,
        amount_minor: MinorUnits,
        is_inquiry: bool,
        now: Timestamp,
    ) -> Result<String, Error> {
        let mut book = self.book();
        let intent = book.state.intent(payment).cloned();
        let intent = intent.ok_or_else(|| broken(format!("there is no payment {payment}")))?;
        if !(MinorUnits(1)..=intent.amount.amount_minor).contains(&amount_minor) {
            return Err(broken(format!("{amount_minor} of {} cannot be disputed", intent.amount)));
        }
        let id = format!("dp_{}", book.state.disputes.len() + 1);
        let status = if is_inquiry { Status::WarningNeedsResponse } else { Status::NeedsResponse };
        let (payment, opened_ms) = (intent.id, now.ms());
        let (closed_ms, reversed_ms) = (None, Vec::new());
        let dispute = Dispute {
            id: id.clone(),
            payment,
            amount_minor,
            status,
            opened_ms,
            closed_ms,
            reversed_ms,
        };
        book.change([Change::Disputed(dispute)])?;
        Ok(id)
    }

    /// A dispute is decided, once. An inquiry ends, and cannot be lost: it has taken no money.
    pub(crate) fn close_dispute(
        &self,
        id: &str,
        is_won: bool,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut book = self.book();
        let known = book.state.disputes.get(id).cloned();
        let known = known.ok_or_else(|| broken(format!("there is no dispute {id}")))?;
        let status = match (known.status, is_won) {
            (Status::NeedsResponse, true) => Status::Won,
            (Status::NeedsResponse, false) => Status::Lost,
            (Status::WarningNeedsResponse, true) => Status::WarningClosed,
            (Status::WarningNeedsResponse, false) => {
                return Err(broken(format!("{id} is an inquiry, and cannot be lost")));
            }
            (Status::WarningClosed | Status::Won | Status::Lost, _) => {
                return Err(broken(format!("{id} is {}", known.status.as_str())));
            }
        };
        book.change([Change::Disputed(Dispute { status, closed_ms: Some(now.ms()), ..known })])
    }

    /// A dispute that was decided is decided otherwise: lost after it was won, or won after it was lost.
    pub(crate) fn reverse_dispute(&self, id: &str, now: Timestamp) -> Result<(), Error> {
        let mut book = self.book();
        let known = book.state.disputes.get(id).cloned();
        let known = known.ok_or_else(|| broken(format!("there is no dispute {id}")))?;
        let status = match known.status {
            Status::Won => Status::Lost,
            Status::Lost => Status::Won,
            Status::NeedsResponse | Status::WarningNeedsResponse | Status::WarningClosed => {
                return Err(broken(format!("{id} is {}", known.status.as_str())));
            }
        };
        let reversed_ms = known.reversed_ms.iter().copied().chain([now.ms()]).collect();
        book.change([Change::Disputed(Dispute { status, reversed_ms, ..known })])
    }

    /// A dispute as it is.
    pub(crate) fn dispute(&self, id: &str, is_expanded: bool) -> Answer {
        let state = &self.book().state;
        match state.disputes.get(id) {
            Some(dispute) => (200, dispute.shown(state, is_expanded)),
            None => {
                let text = format!("No such dispute: '{id}'");
                error(404, INVALID, Some("resource_missing"), &text)
            }
        }
    }
}
