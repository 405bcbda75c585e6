//! A scenario in which every call happens at once and is answered: for what comes before the first state,
//! and for bringing a state to rest.

use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::PartLimit;
use engine::domain::payment::captures::Listing;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::Offer;
use engine::ports::Stored;
use model_stores::{Call, Caller, Driver, Reply, Stores};

use crate::task::{Deployment, Setting};

/// More polls than any flow needs whose calls are all answered at once.
const MAX_POLLS: usize = 1000;

/// Stores that answer at once.
#[derive(Debug)]
struct Direct<'a> {
    stores: &'a Mutex<Stores>,
    now: Timestamp,
    deployment: Deployment,
}

impl Direct<'_> {
    fn stores(&self) -> MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for Direct<'_> {
    async fn call(&self, call: Call) -> Stored<Reply> {
        self.stores().apply(self.now, &call)
    }

    fn grace(&self) -> Grace {
        self.deployment.grace
    }

    fn part_limit(&self) -> PartLimit {
        self.deployment.part_limit
    }

    fn listings(&self) -> Vec<Listing> {
        self.deployment.listings.clone()
    }

    fn offers(&self) -> Vec<Offer> {
        self.deployment.offers.clone()
    }

    fn started_elsewhere(&self) -> bool {
        self.deployment.started_elsewhere
    }

    fn buckets(&self) -> u16 {
        self.deployment.buckets
    }
}

/// Runs a flow to its end.
pub(crate) fn run<S: Setting>(
    setting: &S,
    stores: &mut Stores,
    now: Timestamp,
    flow: &S::Flow,
) -> S::Outcome {
    let shared = Mutex::new(std::mem::take(stores));
    let outcome = {
        let ports = Caller(Direct { stores: &shared, now, deployment: setting.deployment() });
        let mut future = pin!(setting.run(flow, &ports));
        let mut context = Context::from_waker(Waker::noop());
        let mut polls = (0..MAX_POLLS).map(|_| future.as_mut().poll(&mut context));
        polls.find_map(|polled| match polled {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        })
    };
    *stores = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome.unwrap_or_else(|| panic!("{flow:?} waits for nothing"))
}
