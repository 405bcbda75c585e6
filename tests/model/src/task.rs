//! A task: a flow under way, as a value.
//!
//! A future can be neither copied nor compared, but a flow is a function of its arguments and of the
//! answers it has received. So a task is just that: a flow and its answers, in the order they came.
//! The production `async fn` is run again from its beginning, is given those answers, and stops at
//! the calls that have none yet: those are what can happen next. Nothing of a flow is restated here.

use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use engine::domain::inventory::PartLimit;
use engine::domain::payment::captures::Listing;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::Offer;
use engine::ports::Stored;
use model_stores::{Call, Caller, Driver, Reply};

use crate::flow::{Flow, Outcome};

/// What a deployment decides about the use of its ports.
#[derive(Debug, Clone)]
pub struct Deployment {
    /// How long an unpaid order waits past its deadline.
    pub grace: Grace,
    /// How much one part of a load carries.
    pub part_limit: PartLimit,
    /// The providers that can be asked.
    pub listings: Vec<Listing>,
    /// The providers by which payments can be started.
    pub offers: Vec<Offer>,
    /// True if orders are also paid by payments that were not started here.
    pub started_elsewhere: bool,
    /// The number of buckets of a room.
    pub buckets: u16,
}

/// What flows run in: a scenario.
pub trait Setting {
    /// A flow with its arguments.
    type Flow: Debug + Clone + Hash;
    /// The outcome of a flow.
    type Outcome: Debug + Clone;

    /// What the deployment decides.
    fn deployment(&self) -> Deployment;
    /// Runs the production code of a flow.
    fn run<D: Driver>(
        &self,
        flow: &Self::Flow,
        ports: &Caller<D>,
    ) -> impl Future<Output = Self::Outcome>;
}

/// Number of calls for which there is room besides those that are answered.
const ROOM_FOR_CALLS: usize = 20;

/// The answer of a call.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The call's place among the calls of its flow.
    pub call: usize,
    /// The reply that its flow got.
    pub reply: Stored<Reply>,
    /// True if the flow goes on before it gets the next one, as it does unless they come together.
    pub resumes: bool,
}

/// A flow and how far it is.
#[derive(Debug, Clone)]
pub struct Task<F = Flow, O = Outcome> {
    pub flow: F,
    answers: Vec<Arc<Answer>>,
    /// The calls it waits for, with their places.
    pub outstanding: Vec<(usize, Call)>,
    /// The outcome, once the flow is over.
    pub outcome: Option<O>,
    fingerprint: u64,
}

impl<F, O> PartialEq for Task<F, O> {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl<F, O> Hash for Task<F, O> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.fingerprint.hash(state);
    }
}

impl<F: Debug + Clone + Hash, O: Debug + Clone> Task<F, O> {
    /// A flow at its beginning.
    #[must_use]
    pub fn begin(setting: &impl Setting<Flow = F, Outcome = O>, flow: F) -> Self {
        Self::after(setting, flow, Vec::new(), 0)
    }

    /// The task once some of its calls are answered, in this order.
    #[must_use]
    pub fn answered(
        &self,
        setting: &impl Setting<Flow = F, Outcome = O>,
        with: Vec<Answer>,
    ) -> Self {
        let mut print = self.fingerprint;
        for answer in &with {
            let mut hasher = DefaultHasher::new();
            print.hash(&mut hasher);
            (answer.call, text(&answer.reply)).hash(&mut hasher);
            print = hasher.finish();
        }
        let answers = self.answers.iter().cloned().chain(with.into_iter().map(Arc::new)).collect();
        Self::after(setting, self.flow.clone(), answers, print)
    }

    /// The task once every call is answered to which `answer` gives a reply: what may as well be answered
    /// at once. All together, because each time that a task is answered its flow runs again.
    #[must_use]
    pub fn settled(
        mut self,
        setting: &impl Setting<Flow = F, Outcome = O>,
        mut answer: impl FnMut(&Call) -> Option<Stored<Reply>>,
    ) -> Self {
        while self.outcome.is_none() {
            let answers = self.outstanding.iter().filter_map(|(call, made)| {
                Some(Answer { call: *call, reply: answer(made)?, resumes: false })
            });
            let mut answers: Vec<Answer> = answers.collect();
            match answers.last_mut() {
                None => break,
                Some(last) => last.resumes = true,
            }
            self = self.answered(setting, answers);
        }
        self
    }

    fn after(
        setting: &impl Setting<Flow = F, Outcome = O>,
        flow: F,
        answers: Vec<Arc<Answer>>,
        print: u64,
    ) -> Self {
        let slots = Arc::new(Mutex::new(Vec::with_capacity(answers.len() + ROOM_FOR_CALLS)));
        let script = Script { slots, deployment: setting.deployment() };
        let ports = Caller(script.clone());
        let outcome = {
            let mut future = pin!(setting.run(&flow, &ports));
            let mut context = Context::from_waker(Waker::noop());
            let mut polled = future.as_mut().poll(&mut context);
            for answer in &answers {
                script.answer(answer);
                if answer.resumes {
                    polled = future.as_mut().poll(&mut context);
                }
            }
            match polled {
                Poll::Ready(outcome) => Some(outcome),
                Poll::Pending => None,
            }
        };
        let mut hasher = DefaultHasher::new();
        (print, &flow).hash(&mut hasher);
        let fingerprint = if answers.is_empty() { hasher.finish() } else { print };
        let outstanding = script.outstanding();
        Self { flow, answers, outstanding, outcome, fingerprint }
    }

    /// A number that two tasks share only if they are the same flow with the same answers.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The call at a place, if it is still without an answer.
    #[must_use]
    pub fn call(&self, place: usize) -> Option<&Call> {
        self.outstanding.iter().find(|(at, _)| *at == place).map(|(_, call)| call)
    }
}

/// A reply as text, for comparing. Of a sale only what can change.
pub(crate) fn text(reply: &Stored<Reply>) -> String {
    match reply {
        Ok(Reply::Sale(sale)) => {
            let seen = sale.as_ref().map(|sale| (&sale.epoch, sale.version));
            format!("Sale({seen:?})")
        }
        reply => format!("{reply:?}"),
    }
}

/// Answers calls from what was recorded; a call without an answer waits.
#[derive(Debug, Clone)]
struct Script {
    slots: Arc<Mutex<Vec<Slot>>>,
    deployment: Deployment,
}

/// A call that was made.
#[derive(Debug)]
struct Slot {
    call: Call,
    answer: State,
    waker: Option<Waker>,
}

/// The state of an answer.
#[derive(Debug)]
enum State {
    Awaited,
    Here(Box<Stored<Reply>>),
    Taken,
}

impl Script {
    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, answer: &Answer) {
        let mut slots = self.slots();
        let Some(slot) = slots.get_mut(answer.call) else {
            panic!("the flow no longer makes call {}: it depends on more than answers", answer.call)
        };
        slot.answer = State::Here(Box::new(answer.reply.clone()));
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }

    fn outstanding(&self) -> Vec<(usize, Call)> {
        let slots = self.slots();
        let awaited = slots.iter().enumerate();
        awaited
            .filter(|(_, slot)| matches!(slot.answer, State::Awaited))
            .map(|(place, slot)| (place, slot.call.clone()))
            .collect()
    }
}

impl Driver for Script {
    async fn call(&self, call: Call) -> Stored<Reply> {
        let place = {
            let mut slots = self.slots();
            slots.push(Slot { call, answer: State::Awaited, waker: None });
            slots.len() - 1
        };
        poll_fn(|context| {
            let mut slots = self.slots();
            let slot = &mut slots[place];
            match std::mem::replace(&mut slot.answer, State::Taken) {
                State::Here(reply) => Poll::Ready(*reply),
                State::Awaited | State::Taken => {
                    slot.answer = State::Awaited;
                    slot.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
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
