//! What the crowd counts.

use std::borrow::Cow;
use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::time::Instant;

use engine::domain::basics::time::Timestamp;
use serde::Serialize;

use super::people::{Class, Deeds};
use super::profile::Behaviour;

/// Number of anomalies that are kept in words; all are counted.
const ANOMALIES_KEPT: usize = 100;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(Cell<u64>);

impl Counter {
    pub fn one(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        self.0.set(self.0.get() + count);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// Counts of one behaviour: how often it was shown to the engine, and the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// Number of people of this behaviour who came.
    pub people: u64,
    /// Those of them that got as far as showing it: the others were refused before.
    pub shown: u64,
    /// Those of them that were answered as they must be.
    pub as_expected: u64,
}

/// Counts of the crowd, in one thread.
#[derive(Debug, Default)]
pub struct Tally {
    refusals: RefCell<BTreeMap<Cow<'static, str>, u64>>,
    repeats: RefCell<BTreeMap<Cow<'static, str>, u64>>,
    anomalies: RefCell<Vec<String>>,
    behaviours: RefCell<BTreeMap<Behaviour, Shown>>,
    paid_at: RefCell<BTreeMap<&'static str, u64>>,
    people: RefCell<BTreeMap<Class, Deeds>>,
    last_deadline: Cell<Option<Timestamp>>,
    last_sale: Cell<Option<Instant>>,
    /// Everything that must never happen, and did.
    pub anomaly_count: Counter,
    pub buyers: Counter,
    /// Those who came late, to take what was left.
    pub late_buyers: Counter,
    /// Number of times that somebody came back because the gate had said so.
    pub returns: Counter,
    /// Number of times that somebody gave up who was asked to come back.
    pub gave_up: Counter,
    /// Admissions that were given.
    pub admissions: Counter,
    /// Reservations that were refused because there were no such seats.
    pub refused_reservations: Counter,
    /// Number of times that somebody was admitted and found nothing to buy.
    pub admitted_to_nothing: Counter,
    /// Orders that were made.
    pub orders: Counter,
    /// Orders that were paid.
    pub paid: Counter,
    /// Tickets that were paid.
    pub tickets: Counter,
    /// Of the paid orders, those that had expired and were rescued.
    pub rescued: Counter,
    /// Captured payments that the engine gives back.
    pub refunds: Counter,
    /// Orders that were cancelled.
    pub cancelled: Counter,
    /// Orders that were left unpaid.
    pub never_paid: Counter,
    /// Callbacks that failed, those included that were repeated and failed again.
    pub failed_callbacks: Counter,
    /// Captures that were decided before a callback of theirs got through.
    pub decided_unreported: Counter,
}

impl Tally {
    /// Records a refusal by the problem's type.
    pub fn refuse(&self, why: impl Into<Cow<'static, str>>) {
        *self.refusals.borrow_mut().entry(why.into()).or_default() += 1;
    }

    /// Counts a payment on the page of a provider.
    pub fn pay_at(&self, provider: &'static str) {
        *self.paid_at.borrow_mut().entry(provider).or_default() += 1;
    }

    /// Payments on the pages of providers, by provider.
    #[must_use]
    pub fn paid_at(&self) -> BTreeMap<&'static str, u64> {
        self.paid_at.borrow().clone()
    }

    /// Records that a request is repeated, by what it was answered: to come back, or nothing.
    pub fn repeat(&self, why: impl Into<Cow<'static, str>>) {
        *self.repeats.borrow_mut().entry(why.into()).or_default() += 1;
    }

    /// Records something that must never happen.
    pub fn anomaly(&self, what: String) {
        self.anomaly_count.one();
        let mut anomalies = self.anomalies.borrow_mut();
        if anomalies.len() < ANOMALIES_KEPT {
            anomalies.push(what);
        }
    }

    /// Somebody of a behaviour came.
    pub fn came(&self, behaviour: Behaviour) {
        self.behaviours.borrow_mut().entry(behaviour).or_default().people += 1;
    }

    /// A behaviour was shown, and answered as it must be or, which is an anomaly, with something else.
    pub fn shown(&self, behaviour: Behaviour, answer: Result<(), String>) {
        {
            let mut behaviours = self.behaviours.borrow_mut();
            let shown = behaviours.entry(behaviour).or_default();
            shown.shown += 1;
            shown.as_expected += u64::from(answer.is_ok());
        }
        if let Err(other) = answer {
            let (name, expected) = (behaviour.name(), behaviour.expected());
            self.anomaly(format!("{name}: expected {expected}, was answered {other}"));
        }
    }

    /// An order was made that will not be paid in time.
    pub fn unpaid_until(&self, deadline: Timestamp) {
        self.last_deadline.set(self.last_deadline.get().max(Some(deadline)));
    }

    /// Somebody of a class came for the first time.
    pub fn arrived(&self, class: Class) {
        match class {
            Class::Late => self.late_buyers.one(),
            Class::Nobody
            | Class::Person
            | Class::Early
            | Class::Leaver
            | Class::Sleeper
            | Class::Sharer
            | Class::Collector
            | Class::Solver
            | Class::Farm
            | Class::Script
            | Class::Hammer
            | Class::Looker
            | Class::Gazer => self.buyers.one(),
        }
        self.by_class(class).arrived += 1;
    }

    /// Somebody of a class came back because the gate had said so.
    pub fn returned(&self, class: Class) {
        self.returns.one();
        self.by_class(class).returned += 1;
    }

    /// Somebody of a class was admitted.
    pub fn admitted(&self, class: Class) {
        self.admissions.one();
        self.by_class(class).admitted += 1;
    }

    /// Somebody of a class made an order.
    pub fn ordered(&self, class: Class) {
        self.orders.one();
        self.by_class(class).orders += 1;
    }

    fn by_class(&self, class: Class) -> RefMut<'_, Deeds> {
        RefMut::map(self.people.borrow_mut(), |people| people.entry(class).or_default())
    }

    /// What the people of each class have done, of those classes that occurred.
    #[must_use]
    pub fn people(&self) -> BTreeMap<Class, Deeds> {
        self.people.borrow().clone()
    }

    /// Somebody of a class paid an order of `tickets` tickets.
    pub fn sold(&self, class: Class, tickets: u16) {
        self.paid.one();
        self.tickets.add(tickets.into());
        {
            let mut deeds = self.by_class(class);
            deeds.paid += 1;
            deeds.tickets += u64::from(tickets);
        }
        self.last_sale.set(Some(Instant::now()));
    }

    /// Time at which the last order was paid.
    #[must_use]
    pub fn last_sale(&self) -> Option<Instant> {
        self.last_sale.get()
    }

    /// Refusals by the problem's type.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<Cow<'static, str>, u64> {
        self.refusals.borrow().clone()
    }

    /// Requests that were repeated, by what they were answered.
    #[must_use]
    pub fn repeats(&self) -> BTreeMap<Cow<'static, str>, u64> {
        self.repeats.borrow().clone()
    }

    /// The first hundred things that should not have happened.
    #[must_use]
    pub fn anomalies(&self) -> Vec<String> {
        self.anomalies.borrow().clone()
    }

    /// Outcome of each behaviour.
    #[must_use]
    pub fn behaviour(&self, behaviour: Behaviour) -> Shown {
        self.behaviours.borrow().get(&behaviour).copied().unwrap_or_default()
    }

    /// Time at which the last of the unpaid orders runs out.
    #[must_use]
    pub fn last_deadline(&self) -> Option<Timestamp> {
        self.last_deadline.get()
    }
}
