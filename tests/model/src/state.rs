//! Where a world is: the stores, the flows under way, what may still happen, and what people were
//! told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use engine::domain::inventory::HeldLine;
use engine::domain::number::OrderNumber;
use engine::domain::order::PaymentKey;
use engine::domain::time::Timestamp;
use model_stores::{SeatsModel, Sent, Stores};

use crate::scenario::{Budget, Scenario};
use crate::task::Task;

/// What a buyer has done and was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Told {
    /// How often the request was sent.
    pub requests: u8,
    /// How often the order was given up.
    pub cancels: u8,
    /// How many payments were made.
    pub payments: usize,
    /// True once a payment was made before the deadline.
    pub is_paid_in_time: bool,
    /// The seats of the order that the buyer was told of.
    pub ordered: Option<Vec<HeldLine>>,
    /// True once the buyer was told that the order is cancelled.
    pub is_cancelled: bool,
    /// The payment that the provider was told has paid.
    pub paid: Option<PaymentKey>,
}

/// One state of a world.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct State {
    /// Everything that outlives a process.
    pub stores: Arc<Stores>,
    /// The Redis that a late replica still has.
    pub replica: Option<Arc<SeatsModel>>,
    /// The flows under way, in an order that does not depend on who began first.
    pub tasks: Vec<Arc<Task>>,
    /// Which of the scenario's moments it is.
    pub moment: usize,
    /// What may still happen.
    pub left: Budget,
    /// The callbacks that may still come.
    pub callbacks: BTreeMap<PaymentKey, u8>,
    /// How often each message was delivered.
    pub deliveries: BTreeMap<Sent, u8>,
    /// Buyer by buyer.
    pub told: Vec<Told>,
    /// The orders whose money came after their end and bought their seats once more.
    pub rescued: BTreeSet<OrderNumber>,
    /// How many loads were given a name.
    pub epochs: usize,
    /// What is broken, if anything is.
    pub broken: Option<String>,
}

impl State {
    /// Where a scenario begins.
    #[must_use]
    pub fn start(scenario: &Scenario) -> Self {
        let told = |buyer: usize| {
            let order = || scenario.stores.orders.get(scenario.buyers[buyer].number);
            let is_told = scenario.ordered.contains(&buyer);
            let ordered = is_told.then(order).flatten().map(|order| order.held_lines());
            Told { requests: u8::from(is_told), ordered, ..Told::default() }
        };
        Self {
            stores: Arc::new(scenario.stores.clone()),
            replica: None,
            tasks: Vec::new(),
            moment: 0,
            left: scenario.budget,
            callbacks: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            told: (0..scenario.buyers.len()).map(told).collect(),
            rescued: BTreeSet::new(),
            epochs: 0,
            broken: None,
        }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self, scenario: &Scenario) -> Timestamp {
        scenario.times[self.moment]
    }

    /// True if nothing has gone wrong so far, in any process, on any way, or in Redis.
    #[must_use]
    pub fn is_untroubled(&self, scenario: &Scenario) -> bool {
        let Budget { faults, losses, .. } = scenario.budget;
        (self.left.faults, self.left.losses) == (faults, losses)
    }

    /// Puts a task among the others.
    pub fn add(&mut self, task: Task) {
        let at = self.tasks.partition_point(|other| other.fingerprint() < task.fingerprint());
        self.tasks.insert(at, Arc::new(task));
    }
}
