//! Starting a payment: what providers offer, and their replies when an attempt is started or closed.

use crate::domain::basics::counting::Counting;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{DeploymentId, PaymentId, ProviderId};
use crate::domain::basics::money::Currency;
use crate::domain::basics::time::Timestamp;
use crate::domain::order::attempt::{Attempt, PaymentMethod, PaymentStep};
use crate::domain::order::place::{EXTENSION_SECONDS, MAX_EXTENSION_SECONDS, Place};
use crate::domain::order::{Capture, Order, OrderState};

/// A provider by which payments can be started here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub provider: ProviderId,
    /// What can be paid with there, each with the shortest life of an attempt that the provider allows, in
    /// seconds.
    pub methods: Vec<(PaymentMethod, u32)>,
    /// The only currencies that it takes; `None` if it takes every one.
    pub currencies: Option<Vec<Currency>>,
    /// The deployment's id, which its payments carry.
    pub deployment: Option<DeploymentId>,
    /// How it counts money.
    pub counting: Counting,
}

impl Offer {
    /// True if it takes this currency.
    #[must_use]
    pub fn takes(&self, currency: Currency) -> bool {
        self.currencies.as_ref().is_none_or(|currencies| currencies.contains(&currency))
    }

    /// The time at which an attempt that starts now is to end at the provider: at its order's deadline, or
    /// later if the provider allows no such short life. `None` if it does not offer this.
    #[must_use]
    pub fn expiry(
        &self,
        method: PaymentMethod,
        order: &Order,
        now: Timestamp,
    ) -> Option<Timestamp> {
        if !self.takes(order.total.currency) {
            return None;
        }
        let (_, seconds) = self.methods.iter().find(|(offered, _)| *offered == method)?;
        Some(order.payable_until().max(now.plus_seconds((*seconds).into())))
    }
}

/// When a call may be made that starts a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turn {
    /// Now: its turn has come.
    Now,
    /// At this time, in the place that its order is given.
    At(Timestamp),
}

/// A provider's reply to a request to start an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StartReply {
    /// It can be paid.
    Started {
        /// The provider's name of the attempt.
        reference: PaymentId,
        /// What the buyer's client does next.
        step: PaymentStep,
    },
    /// The provider will not start it, and says why. That is a word about this request: what the same request started
    /// before is still there.
    Refused(String),
    /// The provider failed, and says so to every repetition of the request. What it may have started is nobody's.
    Failed(String),
}

/// A provider's reply to a request to close an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CloseReply {
    /// It is closed: no money comes by it.
    Closed,
    Paid(Capture),
    /// It cannot be closed for now.
    NotYet,
    /// The provider has none of this name, yet: it may come to be until its expiry.
    Absent,
}

impl CloseReply {
    /// True if an attempt with this reply can bring no money any more.
    #[must_use]
    pub fn is_final(&self, attempt: &Attempt, now: Timestamp) -> bool {
        match self {
            Self::Closed => true,
            Self::Absent => attempt.expires_at <= now,
            Self::Paid(_) | Self::NotYet => false,
        }
    }
}

impl Order {
    /// True if a payment of the order may be started: the order is pending, and its deadline has not passed.
    #[must_use]
    pub fn may_start(&self, now: Timestamp) -> bool {
        let is_in_time = now < self.payable_until();
        self.state == OrderState::Pending && (!stands(Guard::StartInTime) || is_in_time)
    }

    /// The order with a place to start its payment in. The first place that leaves its buyer less than
    /// [`EXTENSION_SECONDS`] extends the order to that time, `latest` and [`MAX_EXTENSION_SECONDS`] after its payment window
    /// at the latest (I7). `latest` is when what it is for begins, such as a train's departure.
    #[must_use]
    pub fn with_place(&self, place: Place, latest: Option<Timestamp>) -> Self {
        let until = place.at.plus_seconds(EXTENSION_SECONDS);
        let until = latest.map_or(until, |latest| latest.min(until));
        let bound = self.pay_by.plus_seconds(MAX_EXTENSION_SECONDS);
        let (until, may_be) = match stands(Guard::ExtendedOnce) {
            true => (until.min(bound), self.attempts.extended_to.is_none()),
            false => (until, true),
        };
        let extends_to = (may_be && self.payable_until() < until).then_some(until);
        Self { attempts: self.attempts.with_place(place, extends_to), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::order::attempt::{Attempts, PaymentChoice};

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn choice(provider: &str) -> PaymentChoice {
        PaymentChoice {
            provider: ProviderId::new(provider).unwrap(),
            method: PaymentMethod::Page,
            return_url: None,
        }
    }

    #[test]
    fn an_absent_attempt_counts_as_closed_once_it_has_expired() {
        let (attempts, number) = Attempts::default()
            .with_another(&choice("a"), None, NOW.plus_seconds(60), NOW)
            .unwrap();
        let attempt = attempts.get(number).unwrap();
        let is_final = |reply: CloseReply, after| reply.is_final(attempt, NOW.plus_seconds(after));
        assert!(is_final(CloseReply::Closed, 0));
        assert!(!is_final(CloseReply::Absent, 59) && is_final(CloseReply::Absent, 60));
        assert!(!is_final(CloseReply::NotYet, 9999));
    }
}
