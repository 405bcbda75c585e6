//! Whose a capture is: an account at a provider may be shared with other systems, and with other deployments.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::DeploymentId;
use crate::domain::order::{Capture, Order};

/// A capture as its provider reports it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reported {
    pub capture: Capture,
    /// What the payment says of who started it.
    pub mark: Mark,
}

/// What a payment says of the deployment that started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mark {
    /// It carries this deployment's id.
    Ours,
    /// It carries no deployment's id: it was started before payments carried one, or elsewhere.
    None,
    /// It carries another deployment's id, and is none of ours whatever else it names.
    Another,
}

impl Mark {
    /// The mark of a payment that carries `carried`, for the deployment `own`.
    #[must_use]
    pub fn of(carried: Option<&str>, own: Option<&DeploymentId>) -> Self {
        match (carried, own) {
            (None, _) => Self::None,
            (Some(carried), Some(own)) if carried == own.as_str() => Self::Ours,
            (Some(_), _) => Self::Another,
        }
    }
}

impl Reported {
    /// A capture of a payment that carries this deployment's id.
    #[must_use]
    pub const fn ours(capture: Capture) -> Self {
        Self { capture, mark: Mark::Ours }
    }

    /// True if this deployment may act on the capture (I13): its payment carries the deployment's id; or it carries
    /// none, and names an attempt that stands on an order of ours (`order`) at this provider, or, where payments are also
    /// started elsewhere, just such an order. A tombstone is an order of ours.
    ///
    /// Other shops number their orders too, but only a number that was minted here is that of an order here.
    #[must_use]
    pub fn is_ours(&self, order: Option<&Order>, started_elsewhere: bool) -> bool {
        if !stands(Guard::Ours) {
            return true;
        }
        match self.mark {
            Mark::Ours => true,
            Mark::Another => false,
            Mark::None => order.is_some_and(|order| {
                started_elsewhere || order.is_tombstone() || self.names_attempt_of(order)
            }),
        }
    }

    fn names_attempt_of(&self, order: &Order) -> bool {
        let attempt = self.capture.attempt.and_then(|number| order.attempts.get(number));
        // A payment of an attempt that was started under an id carries it.
        attempt.is_some_and(|attempt| {
            attempt.deployment.is_none() && attempt.choice.provider == self.capture.key.provider
        })
    }
}
