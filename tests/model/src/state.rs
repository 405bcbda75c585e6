//! Where a scenario is: the stores, the flows under way, what may still happen, and what was
//! acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::HeldLine;
use engine::domain::order::attempt::AttemptKey;
use engine::domain::order::{OrderState, PaymentKey};
use model_stores::{SeatsModel, Sent, Stores};

use crate::scenario::{Budget, Scenario};
use crate::task::Task;

/// The actions of a buyer, and what was acknowledged to the buyer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct BuyerState {
    /// The number of times that the request was sent.
    pub requests: u8,
    /// The number of cancellations.
    pub cancels: u8,
    /// The number of times that the buyer began to pay.
    pub starts: u8,
    /// The number of times that the buyer has asked to pay from the wallet.
    pub from_wallet: u8,
    /// The refunds that were asked for, by their place among the buyer's.
    pub refunds: BTreeSet<usize>,
    /// The number of payments made.
    pub payments: usize,
    /// True once a payment was made before the deadline.
    pub is_paid_in_time: bool,
    /// The seats of the order that was acknowledged to the buyer.
    pub ordered: Option<Vec<HeldLine>>,
    /// True once the cancellation was acknowledged.
    pub is_cancelled: bool,
    /// The payment that was acknowledged to the provider as the one that paid.
    pub paid: Option<PaymentKey>,
}

/// One state of a scenario.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct State {
    /// Everything that outlives a process.
    pub stores: Arc<Stores>,
    /// The Redis that a late replica still has.
    pub replica: Option<Arc<SeatsModel>>,
    /// The flows under way, in an order that does not depend on who began first.
    pub tasks: Vec<Arc<Task>>,
    /// The index of the current time among the scenario's.
    pub moment: usize,
    /// The budget that is left.
    pub left: Budget,
    /// The attempts whose steps buyers were given: nobody can pay another one.
    pub handed: BTreeSet<AttemptKey>,
    /// The callbacks that may still come.
    pub callbacks: BTreeMap<PaymentKey, u8>,
    /// The captures about which the provider need not call again, though nothing was decided.
    pub kept: BTreeSet<PaymentKey>,
    /// The number of deliveries of each message.
    pub deliveries: BTreeMap<Sent, u8>,
    /// The state of each buyer, in the order of the scenario.
    pub buyer_states: Vec<BuyerState>,
    /// The orders whose money came after their end and bought their seats once more.
    pub rescued: BTreeSet<OrderNumber>,
    /// The number of loads that have a name.
    pub epochs: usize,
    /// The invariant that is broken, if one is, in words.
    pub broken: Option<String>,
}

impl State {
    /// The first state of a scenario.
    #[must_use]
    pub fn start(scenario: &Scenario) -> Self {
        let first = |buyer: usize| {
            let order = || scenario.stores.orders.get(scenario.buyers[buyer].number);
            let is_told = scenario.ordered.contains(&buyer);
            let ordered = is_told.then(order).flatten().map(|order| order.all_lines());
            // What was paid before the start needs no callback.
            let payments =
                usize::from(order().is_some_and(|order| order.state == OrderState::Paid));
            BuyerState { requests: u8::from(is_told), ordered, payments, ..BuyerState::default() }
        };
        Self {
            stores: Arc::new(scenario.stores.clone()),
            replica: None,
            tasks: Vec::new(),
            moment: 0,
            left: Budget {
                losses: scenario.budget.losses - u8::from(scenario.is_lost),
                ..scenario.budget
            },
            handed: BTreeSet::new(),
            callbacks: BTreeMap::new(),
            kept: BTreeSet::new(),
            deliveries: BTreeMap::new(),
            buyer_states: (0..scenario.buyers.len()).map(first).collect(),
            rescued: BTreeSet::new(),
            epochs: 0,
            broken: None,
        }
    }

    #[must_use]
    pub fn now(&self, scenario: &Scenario) -> Timestamp {
        scenario.times[self.moment]
    }

    /// True if nothing has gone wrong so far, in any process, on any way, or in Redis.
    #[must_use]
    pub fn is_fault_free(&self, scenario: &Scenario) -> bool {
        let Budget { faults, losses, .. } = scenario.budget;
        (self.left.faults, self.left.losses) == (faults, losses)
    }

    /// Puts a task among the others.
    pub fn add(&mut self, task: Task) {
        let at = self.tasks.partition_point(|other| other.fingerprint() < task.fingerprint());
        self.tasks.insert(at, Arc::new(task));
    }
}
