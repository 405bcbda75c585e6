//! The environment of one run: the stores, the clock, the processes, and the calls that are under way.
//!
//! Everything that happens is an event at a time of the virtual clock. A call of a flow is two: it
//! takes effect at the stores, and its answer comes back. Between any two events others may happen,
//! and at each the plan decides what goes wrong.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::future::{Future, poll_fn};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use engine::domain::admission::call_rate::{PLACES_AHEAD_SECONDS, TURNS_AHEAD_SECONDS};
use engine::domain::basics::counting::Counting;
use engine::domain::basics::ids::{InventoryId, TierId};
use engine::domain::basics::time::{Clock, Timestamp};
use engine::domain::inventory::{LoadReply, PartLimit, SeatLeg};
use engine::domain::order::attempt::{AttemptKey, PaymentMethod};
use engine::domain::order::refund::RefundReply;
use engine::domain::payment::captures::Listing;
use engine::domain::payment::grace::Grace;
use engine::domain::payment::start::{Offer, Turn};
use engine::domain::sale::archive::Lifecycle;
use engine::ports::messages::QueueMessage;
use engine::ports::{Freshness, Published, StoreError, Stored};
use model_stores::{Call, Driver, Effect, Reply, Stores};

use crate::fault::{Fault, LONGEST_FREEZE_MS};
use crate::oracle::Oracle;
use crate::plan::{GRACE, LIST_LAG, PAGE_SECONDS, Plan, START, provider_id, sale_id};
use crate::random::{SeededRng, mix};
use crate::redis_log::RedisLog;
use crate::room::{BUCKETS, Kept, latest_round};
use crate::tally::Tally;
use crate::trace::{self, Trace};

/// The number of function sandboxes.
const PROCESSES: usize = 5;
/// The number of those that run the functions of a room, if the sale has one. Their clocks may be wrong by an
/// hour: they decide nothing but when something happens.
const ROOM_PROCESSES: usize = 4;
/// The most by which the clock of one of those is wrong, in milliseconds.
const MAX_ROOM_SKEW_MS: i64 = 3_600_000;
/// Sandboxes that a function may run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    /// Those of orders, payments and the schedule.
    Orders,
    /// Those of a room: who joins, who looks, who is let in, the draw.
    Room,
}

impl Pool {
    fn processes(self) -> Range<usize> {
        match self {
            Self::Orders => 0..PROCESSES,
            Self::Room => PROCESSES..PROCESSES + ROOM_PROCESSES,
        }
    }
}

/// Time that a process remembers a sale of the catalogue, in milliseconds.
const CACHED_MS: i64 = 5_000;
/// How much more often a process sleeps at a write of a room than elsewhere.
const SLEEPS: u32 = 6;
/// More steps than any run needs: one that takes more does not quiesce.
const MAX_STEPS: u64 = 60_000;

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule: an invariant (`I1` to `I7`) or a name of the simulator.
    pub rule: &'static str,
    /// Description of what was found.
    pub what: String,
    /// The time, in milliseconds since the run began.
    pub at_ms: i64,
}

/// An event at a time of the virtual clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A call takes effect.
    Arrive(usize),
    /// A call is answered.
    Answer(usize),
    /// A process is gone.
    Die {
        process: usize,
        generation: u32,
    },
    Timer(usize),
}

/// A call under way.
#[derive(Debug)]
struct Op {
    call: Arc<Call>,
    invocation: usize,
    fault: Option<Fault>,
    /// The answer that the caller will get.
    reply: Option<Stored<Reply>>,
    /// True once the caller may have it.
    is_answered: bool,
    waker: Option<Waker>,
}

/// A wait for a time.
#[derive(Debug, Default)]
struct Timer {
    has_fired: bool,
    waker: Option<Waker>,
}

/// One run of a function.
#[derive(Debug)]
pub(crate) struct Invocation {
    /// The name of the function, for the trace.
    pub name: String,
    /// The name of its draws.
    key: u64,
    /// The number of calls it has made.
    calls: u64,
    /// The number of messages it has sent: calls that are made at once have one number.
    messages: u64,
    /// The starts of payments that it may still make: turns that it took, and places that it used.
    pub turns: u32,
    process: usize,
    generation: u32,
    /// The lead of its process's clock, in milliseconds.
    skew_ms: i64,
    /// What its process remembers of rooms.
    kept: Arc<Kept>,
    /// The seat-legs that its claims lost.
    pub lost: Vec<SeatLeg>,
    /// [`Oracle::given_back`] when they were lost.
    pub lost_at: u64,
    /// [`Oracle::forgotten`] when it read what Redis has of each tier, the last time.
    pub read_at: BTreeMap<TierId, u64>,
}

#[derive(Debug, Default)]
struct Process {
    /// The number of times it was replaced by a new one.
    generation: u32,
    /// The lead of its clock, in milliseconds.
    skew_ms: i64,
    frozen_until: Option<Timestamp>,
    /// Its copy of the catalogue, and the time of that copy.
    cached: Option<(Timestamp, Option<Published>)>,
    /// What it remembers of rooms.
    kept: Arc<Kept>,
}

/// The whole environment of a run.
#[derive(Debug)]
pub(crate) struct Environment {
    /// The plan of the run.
    pub plan: Plan,
    pub now: Timestamp,
    pub stores: Stores,
    /// The attempts whose steps buyers were given: nobody can pay another one.
    pub handed: BTreeSet<AttemptKey>,
    /// What was acknowledged to anyone, and what must never change.
    pub oracle: Oracle,
    /// The outcomes that were reached.
    pub tally: Tally,
    /// The record of what happened, if one was requested.
    pub trace: Option<Trace>,
    /// The first promise that was broken.
    pub violation: Option<Violation>,
    /// The faults that struck, by the name of their place.
    pub struck: Vec<(u64, Fault)>,
    /// Messages that were sent and are not yet with a consumer.
    pub sent: VecDeque<(u64, model_stores::Sent)>,
    /// The number of changes to any store.
    pub changes: u64,
    /// The number of loads that have a name.
    pub loads: u64,
    /// Every run of a function.
    pub invocations: Vec<Invocation>,
    /// Processes that are gone, with their generation.
    pub gone: Vec<(usize, u32)>,
    redis: RedisLog,
    /// The slot of the room's board.
    board: RedisLog,
    processes: Vec<Process>,
    ops: Vec<Op>,
    timers: Vec<Timer>,
    events: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
}

/// The environment, as those who act in it share it. One thread runs it all: the lock is never waited for.
#[derive(Debug, Clone)]
pub(crate) struct Shared(Arc<Mutex<Environment>>);

impl Shared {
    pub(crate) fn new(environment: Environment) -> Self {
        Self(Arc::new(Mutex::new(environment)))
    }

    /// The environment, until the guard is dropped. Never hold it while anything is awaited.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Environment> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a number of milliseconds.
    pub(crate) async fn sleep(&self, ms: i64) {
        let timer = self.lock().set_timer(ms);
        poll_fn(|context| {
            let timer = &mut self.lock().timers[timer];
            timer.waker = Some(context.waker().clone());
            if timer.has_fired { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }
}

/// The ports of one run of a function.
#[derive(Debug, Clone)]
pub(crate) struct PortHandle {
    pub environment: Shared,
    pub invocation: usize,
}

impl PortHandle {
    /// What the process remembers of rooms.
    pub(crate) fn kept(&self) -> Arc<Kept> {
        Arc::clone(&self.environment.lock().invocations[self.invocation].kept)
    }
}

impl Clock for PortHandle {
    /// The time of the process's clock.
    fn time(&self) -> Timestamp {
        let environment = self.environment.lock();
        environment.now.plus_ms(environment.invocations[self.invocation].skew_ms)
    }
}

impl Driver for PortHandle {
    fn call(&self, call: Call) -> impl Future<Output = Stored<Reply>> + Send {
        let mut begun = None;
        let mut call = Some(call);
        poll_fn(move |context| {
            let mut environment = self.environment.lock();
            let op = match begun {
                Some(op) => op,
                None => match call.take() {
                    Some(call) => *begun.insert(environment.begin(self.invocation, call)),
                    None => return Poll::Pending,
                },
            };
            let op = &mut environment.ops[op];
            op.waker = Some(context.waker().clone());
            if !op.is_answered {
                return Poll::Pending;
            }
            let silence = || Err(StoreError::Contract("an answer was heard twice".to_owned()));
            Poll::Ready(op.reply.take().unwrap_or_else(silence))
        })
    }

    fn grace(&self) -> Grace {
        GRACE
    }

    fn part_limit(&self) -> PartLimit {
        self.environment.lock().plan.part_limit
    }

    fn buckets(&self) -> u16 {
        BUCKETS
    }

    fn listings(&self) -> Vec<Listing> {
        let lists = self.environment.lock().plan.lists;
        vec![Listing { provider: provider_id(), lag: lists.then_some(LIST_LAG) }]
    }

    fn offers(&self) -> Vec<Offer> {
        let methods = PaymentMethod::ALL.map(|method| (method, PAGE_SECONDS)).to_vec();
        let (currencies, counting, deployment) = (None, Counting::Iso, None);
        vec![Offer { provider: provider_id(), methods, currencies, counting, deployment }]
    }

    fn started_elsewhere(&self) -> bool {
        !self.environment.lock().plan.only_here
    }
}

/// True for a script of Redis that writes a sale's inventory.
pub(crate) fn writes_redis(call: &Call) -> bool {
    call.effect() == Some(Effect::Inventory)
}

/// The inventory that a script writes; `None` for any other call.
pub(crate) fn inventory_of(call: &Call) -> Option<&InventoryId> {
    match call {
        Call::Load { part } => Some(&part.load.inventory),
        Call::Hold { command } => Some(&command.inventory),
        Call::Sell { command } => Some(&command.inventory),
        Call::Release { command } => Some(&command.inventory),
        Call::Mark { command } => Some(&command.inventory),
        Call::Restore { command } => Some(&command.inventory),
        Call::Repair { command } => Some(&command.inventory),
        Call::Unload { inventory, .. } => Some(inventory),
        _ => None,
    }
}

/// True for a write to DynamoDB that changes orders or payments.
pub(crate) fn writes_orders(call: &Call) -> bool {
    call.effect() == Some(Effect::Orders)
}

/// True for a call that changes a room or its board.
fn writes_room(call: &Call) -> bool {
    matches!(call.effect(), Some(Effect::Room | Effect::Board))
}

/// True for every other call that changes something that a flow may rely on.
fn writes_elsewhere(call: &Call) -> bool {
    matches!(call.effect(), Some(Effect::Catalogue | Effect::Money)) || sends(call)
}

/// True for every call that changes anything that outlives its process.
fn writes(call: &Call) -> bool {
    writes_redis(call)
        || writes_orders(call)
        || writes_elsewhere(call)
        || writes_cursor(call)
        || writes_room(call)
}

/// True for a call that moves a cursor: nothing of what is at rest.
fn writes_cursor(call: &Call) -> bool {
    call.effect() == Some(Effect::Cursor)
}

/// True for a call that sends a message, but for the one that asks for a load: it may be lost.
fn sends(call: &Call) -> bool {
    let asks_for_a_load = matches!(call, Call::Send { message: QueueMessage::Load(_), .. });
    call.effect() == Some(Effect::Message) && !asks_for_a_load
}

impl Environment {
    pub(crate) fn new(plan: Plan, trace: Option<Trace>) -> Self {
        let pool = if plan.room.is_some() { Pool::Room } else { Pool::Orders };
        let processes = pool.processes().end;
        let mut stores = Stores::default();
        stores.provider.is_lazy = plan.is_lazy;
        stores.provider.refund_interval_ms = plan.refund_interval_ms;
        let mut environment = Self {
            now: START,
            stores,
            handed: BTreeSet::new(),
            oracle: Oracle::default(),
            tally: Tally::default(),
            trace,
            violation: None,
            struck: Vec::new(),
            sent: VecDeque::new(),
            changes: 0,
            loads: 0,
            invocations: Vec::new(),
            gone: Vec::new(),
            redis: RedisLog::default(),
            board: RedisLog::default(),
            processes: (0..processes).map(|_| Process::default()).collect(),
            ops: Vec::new(),
            timers: Vec::new(),
            events: BinaryHeap::new(),
            plan,
        };
        for process in 0..processes {
            environment.set_clock(process);
        }
        environment
    }

    /// Where the sale is in its life, if it is archived.
    pub(crate) fn over(&self) -> Option<Lifecycle> {
        let listed = self.stores.catalogue.sales.get(&sale_id())?;
        listed.lifecycle.is_over().then_some(listed.lifecycle)
    }

    /// Milliseconds since the run began.
    pub(crate) fn elapsed_ms(&self) -> i64 {
        self.now.ms_since(START)
    }

    /// Records that a promise is broken; only the first counts.
    pub(crate) fn broken(&mut self, rule: &'static str, what: String) {
        if self.violation.is_none() {
            self.record(|| format!("VIOLATION {rule}: {what}"));
            self.violation = Some(Violation { rule, what, at_ms: self.elapsed_ms() });
        }
    }

    /// Writes a line into the trace, if there is one.
    pub(crate) fn record(&mut self, line: impl FnOnce() -> String) {
        let at = self.elapsed_ms();
        if let Some(trace) = &mut self.trace {
            trace.add(at, line());
        }
    }

    /// True if a fault of this kind strikes here; then it is remembered.
    pub(crate) fn strikes(&mut self, fault: Fault, place: u64, rng: &mut SeededRng) -> bool {
        let strikes = self.plan.strikes(fault, place, rng, self.now);
        if strikes {
            self.strike(fault, place);
        }
        strikes
    }

    fn strike(&mut self, fault: Fault, place: u64) {
        self.struck.push((place, fault));
        self.tally.fault(fault);
    }

    fn at(&mut self, at: Timestamp, tie: u64, event: Event) {
        self.events.push(Reverse((at, tie, event)));
    }

    fn set_timer(&mut self, ms: i64) -> usize {
        let timer = self.timers.len();
        self.timers.push(Timer::default());
        let tie = mix(self.plan.seed, timer as u64);
        self.at(self.now.plus_ms(ms.max(0)), tie, Event::Timer(timer));
        timer
    }

    fn set_clock(&mut self, process: usize) {
        let generation = self.processes[process].generation;
        let key = mix(0xc10c_0000 + process as u64, generation.into());
        let mut rng = SeededRng::from_label(self.plan.seed, key);
        let is_wrong = Pool::Room.processes().contains(&process) && rng.chance(500);
        let most_ms = if is_wrong { rng.pick(&[60_000, MAX_ROOM_SKEW_MS]) } else { 4_000 };
        let skew_ms = rng.between(-most_ms, most_ms);
        let is_skewed = rng.chance(self.plan.rates.of_fault(Fault::Skew))
            && !self.plan.without.faults.contains(&key);
        if is_skewed {
            self.strike(Fault::Skew, key);
        }
        self.processes[process].skew_ms = if is_skewed { skew_ms } else { 0 };
    }

    /// Begins a run of a function in one of the processes that are not frozen; what its clock says.
    pub(crate) fn invoke(&mut self, pool: Pool, name: String, key: u64) -> (usize, Timestamp) {
        let mut rng = SeededRng::from_label(key, 1);
        let now = self.now;
        let is_awake = |process: &usize| {
            self.processes[*process].frozen_until.is_none_or(|until| until <= now)
        };
        let awake: Vec<usize> = pool.processes().filter(is_awake).collect();
        let process = if awake.is_empty() {
            // A new sandbox takes the place of one that does not answer, which goes on by itself.
            let first = pool.processes().start;
            self.retire(first);
            first
        } else {
            rng.pick(&awake)
        };
        let Process { generation, skew_ms, .. } = self.processes[process];
        let kept = Arc::clone(&self.processes[process].kept);
        let (lost, lost_at) = (Vec::new(), 0);
        self.invocations.push(Invocation {
            name,
            key,
            calls: 0,
            messages: 0,
            turns: 0,
            process,
            generation,
            skew_ms,
            kept,
            lost,
            lost_at,
            read_at: BTreeMap::new(),
        });
        (self.invocations.len() - 1, now.plus_ms(skew_ms))
    }

    /// A process takes no more work. What it does goes on.
    fn retire(&mut self, process: usize) {
        self.processes[process] =
            Process { generation: self.processes[process].generation + 1, ..Process::default() };
        self.set_clock(process);
    }

    /// The number of clocks that the processes of a pool have had.
    pub(crate) fn clocks(&self, pool: Pool) -> u64 {
        let processes = pool.processes().map(|process| self.processes[process].generation);
        processes.map(|generation| 1 + u64::from(generation)).sum()
    }

    /// Whether every clock that the processes of a pool have had was right.
    pub(crate) fn clocks_are_right(&self, pool: Pool) -> bool {
        let mut processes = pool.processes().map(|process| &self.processes[process]);
        processes.all(|process| process.generation == 0 && process.skew_ms == 0)
    }

    /// The process and generation of an invocation.
    pub(crate) fn home(&self, invocation: usize) -> (usize, u32) {
        let invocation = &self.invocations[invocation];
        (invocation.process, invocation.generation)
    }

    /// The fault that strikes at a call, if one does.
    fn fault_at(&mut self, call: &Call, place: u64, rng: &mut SeededRng) -> Option<Fault> {
        let writes = writes(call);
        let may = |fault: Fault| match fault {
            Fault::Late => writes,
            Fault::Twice => writes_redis(call) || sends(call) || writes_room(call),
            Fault::IndexBehind => matches!(call, Call::Due { .. }),
            Fault::RefundFault => matches!(call, Call::Refund { .. }),
            Fault::Silence => matches!(
                call,
                Call::Captures { .. }
                    | Call::ListCaptures { .. }
                    | Call::StartPayment { .. }
                    | Call::ClosePayment { .. }
            ),
            Fault::Limited => {
                let limited =
                    |call: &Call| matches!(call, Call::Captures { .. } | Call::ListCaptures { .. });
                limited(call)
                    || matches!(
                        call,
                        Call::Refund { .. } | Call::StartTurn { .. } | Call::ClosePayment { .. }
                    )
            }
            Fault::SavedFailure => matches!(call, Call::StartPayment { .. }),
            _ => true,
        };
        let kinds = [
            Fault::Die,
            Fault::LoseRequest,
            Fault::LoseReply,
            Fault::Refuse,
            Fault::Late,
            Fault::Twice,
            Fault::Slow,
            Fault::Freeze,
            Fault::IndexBehind,
            Fault::RefundFault,
            Fault::Silence,
            Fault::Limited,
            Fault::SavedFailure,
        ];
        let struck = kinds
            .into_iter()
            .filter(|fault| may(*fault))
            .find(|fault| self.strikes(*fault, place, rng));
        // Where a process that sleeps does most harm: between an index and its membership, and between the
        // steps of a draw.
        let is_dangerous = call.effect() == Some(Effect::Room) && struck.is_none();
        let sleeps = is_dangerous && (0..SLEEPS).any(|_| self.strikes(Fault::Freeze, place, rng));
        if sleeps { Some(Fault::Freeze) } else { struck }
    }

    /// A call leaves its process.
    fn begin(&mut self, invocation: usize, call: Call) -> usize {
        let Invocation { key, process, generation, .. } = self.invocations[invocation];
        self.invocations[invocation].calls += 1;
        let place = mix(key, 16 + self.invocations[invocation].calls);
        let mut rng = SeededRng::new(place);
        let fault = self.fault_at(&call, place, &mut rng);
        let tie = rng.draw();
        let writes = writes(&call);
        // In a storm the sweeper is slow, so that much happens between what it reads and its repairs.
        let is_slow = self.plan.is_storm && self.invocations[invocation].name == "sweep";
        let there = self.now.plus_ms(rng.between(1, if is_slow { 80 } else { 12 }));
        let back = there.plus_ms(rng.between(1, 12));
        let gave_up = self.now.plus_ms(rng.between(1_500, 5_000));
        let unknown = || {
            let text = "no answer in time".to_owned();
            // Of a read that was not answered nothing is unknown.
            Some(Err(if writes {
                StoreError::Unknown(text)
            } else {
                StoreError::Unavailable(text)
            }))
        };
        let op = self.ops.len();
        let (mut arrives, mut answered, mut reply) = (Some(there), Some(back), None);
        match fault {
            None | Some(Fault::Twice | Fault::IndexBehind) => {}
            Some(Fault::Die) => {
                let takes_effect = rng.chance(500);
                arrives = takes_effect.then_some(there);
                answered = None;
                let died = if takes_effect { there } else { self.now };
                self.at(died, u64::MAX, Event::Die { process, generation });
            }
            Some(Fault::LoseRequest) => {
                (arrives, answered, reply) = (None, Some(gave_up), unknown());
            }
            Some(Fault::LoseReply) => (answered, reply) = (Some(gave_up), unknown()),
            Some(Fault::RefundFault) => {
                arrives = None;
                reply = Some(Ok(Reply::Refund(if rng.chance(500) {
                    RefundReply::Pending
                } else {
                    RefundReply::Refused("not now".to_owned())
                })));
            }
            Some(Fault::SavedFailure) => {
                if let Call::StartPayment { order, attempt } = &call {
                    self.stores.provider.failing.insert(attempt.key(order.number));
                }
            }
            Some(Fault::Refuse | Fault::Silence) => {
                arrives = None;
                reply = Some(Err(StoreError::Unavailable("throttled, or in conflict".to_owned())));
            }
            Some(Fault::Limited) => {
                arrives = None;
                let seconds = u32::try_from(rng.between(1, 30)).unwrap_or(1);
                // Of the starts most have a place, and few come after all places.
                let is_start = matches!(call, Call::StartTurn { .. });
                let ahead_ms =
                    rng.between(TURNS_AHEAD_SECONDS * 1000 + 1, PLACES_AHEAD_SECONDS * 1000);
                reply = Some(if is_start && rng.chance(800) {
                    Ok(Reply::StartTurn(Turn::At(self.now.plus_ms(ahead_ms))))
                } else {
                    Err(StoreError::Limited(seconds))
                });
            }
            Some(Fault::Late) => {
                let late_ms = if rng.chance(800) { 20_000 } else { 300_000 };
                arrives = Some(gave_up.plus_ms(rng.between(1, late_ms)));
                (answered, reply) = (Some(gave_up), unknown());
            }
            Some(Fault::Slow) => {
                let (out, home) = (rng.between(1, 1_400), rng.between(100, 1_400));
                arrives = Some(self.now.plus_ms(out));
                answered = Some(self.now.plus_ms(out + home));
            }
            Some(Fault::Freeze) => {
                let ms = if rng.chance(700) { 60_000 } else { LONGEST_FREEZE_MS };
                let until = self.now.plus_ms(rng.between(2_000, ms));
                if self.processes[process].generation == generation {
                    self.processes[process].frozen_until = Some(until);
                }
            }
            Some(_) => {}
        }
        if let Some(at) = arrives {
            self.at(at, tie, Event::Arrive(op));
        }
        if let Some(at) = answered {
            self.at(at, tie, Event::Answer(op));
        }
        let is_answered = false;
        let call = Arc::new(call);
        self.ops.push(Op { call, invocation, fault, reply, is_answered, waker: None });
        if fault.is_some() && arrives.is_none() {
            self.trace_call(op, None);
        }
        op
    }

    fn trace_call(&mut self, op: usize, said: Option<&Stored<Reply>>) {
        let Some(trace) = &mut self.trace else { return };
        let Op { call, invocation, fault, .. } = &self.ops[op];
        let Invocation { name, process, .. } = &self.invocations[*invocation];
        let line = trace::call_line(name, *process, call, said, *fault);
        if let Some(line) = line {
            let at = self.now.ms_since(START);
            trace.add(at, line);
        }
    }

    /// Does the next event; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(Reverse((at, _, event))) = self.events.pop() else { return false };
        self.now = self.now.max(at);
        self.check_deadlines();
        match event {
            Event::Arrive(op) => self.arrive(op),
            Event::Answer(op) => self.answer(op),
            Event::Die { process, generation } => {
                self.record(|| format!("process {process} DIES"));
                self.gone.push((process, generation));
                if self.processes[process].generation == generation {
                    self.retire(process);
                }
            }
            Event::Timer(timer) => {
                let timer = &mut self.timers[timer];
                timer.has_fired = true;
                if let Some(waker) = timer.waker.take() {
                    waker.wake();
                }
            }
        }
        true
    }

    fn arrive(&mut self, op: usize) {
        self.tally.steps += 1;
        if self.tally.steps > MAX_STEPS {
            self.broken("rest", format!("more than {MAX_STEPS} steps"));
        }
        let Op { call, invocation, fault, .. } = &self.ops[op];
        let (call, invocation, fault) = (Arc::clone(call), *invocation, *fault);
        if let Some(remembered) = self.remembered(&call, invocation) {
            self.hear(op, Ok(Reply::Sale(remembered)));
            return;
        }
        let mut reply = self.apply(invocation, &call);
        if fault == Some(Fault::Twice) && self.violation.is_none() {
            reply = self.apply(invocation, &call);
        }
        if let (Some(Fault::IndexBehind), Ok(Reply::Due(due))) = (fault, &mut reply) {
            due.clear();
        }
        if let Err(StoreError::Contract(what)) = &reply {
            let what = format!("{}: {what}", call.name());
            self.broken("contract", what);
        }
        self.trace_call(op, Some(&reply));
        if matches!(reply, Ok(Reply::Load(LoadReply::Staged))) {
            self.fail_over_between_parts(invocation);
        }
        self.hear(op, reply);
    }

    /// The answer that the caller gets, unless it gave up.
    fn hear(&mut self, op: usize, reply: Stored<Reply>) {
        let op = &mut self.ops[op];
        if op.reply.is_none() {
            op.reply = Some(reply);
        }
    }

    /// The process's own copy of a sale of the catalogue, while it may use it.
    fn remembered(&self, call: &Call, invocation: usize) -> Option<Option<Published>> {
        let is_cached = matches!(call, Call::Sale { freshness: Freshness::Cached, .. });
        let (process, generation) = self.home(invocation);
        let process = &self.processes[process];
        let (since, published) = process.cached.as_ref().filter(|_| is_cached)?;
        let is_young = self.now.ms_since(*since) < CACHED_MS && process.generation == generation;
        is_young.then(|| published.clone())
    }

    /// A call takes effect, and what follows from it is checked.
    fn apply(&mut self, invocation: usize, call: &Arc<Call>) -> Stored<Reply> {
        let held = self.before(call);
        self.hear_the_beacon(call);
        let reply = match self.read_log(call) {
            Some(reply) => Ok(reply),
            None => self.stores.apply(self.now, call),
        };
        if call.effect() == Some(Effect::Board) {
            self.board.record(self.now, call);
        }
        if writes_redis(call) || matches!(**call, Call::Admit { .. }) {
            self.redis.record(self.now, call);
        }
        // Every sweep tells Redis the terms again: that alone is no change.
        let is_update = matches!(reply, Ok(Reply::Load(LoadReply::Updated)));
        if (writes_redis(call) || writes_orders(call) || writes_elsewhere(call)) && !is_update {
            self.changes += 1;
        }
        if let (Call::Sale { .. }, Ok(Reply::Sale(published))) = (&**call, &reply) {
            let (process, _) = self.home(invocation);
            self.processes[process].cached = Some((self.now, published.clone()));
        }
        let key = mix(self.invocations[invocation].key, self.invocations[invocation].calls);
        let waiting: Vec<model_stores::Sent> = self.stores.queues.waiting.keys().cloned().collect();
        for sent in waiting {
            while self.stores.queues.take(&sent) {
                let index = self.invocations[invocation].messages;
                self.invocations[invocation].messages += 1;
                self.sent.push_back((mix(key, index), sent.clone()));
            }
        }
        self.after(invocation, call, held, &reply);
        if let (true, Ok(reply)) = (writes_room(call), &reply) {
            self.after_room(call, reply);
        }
        reply
    }

    /// The beacon goes on by itself; its rounds may be out of reach.
    fn hear_the_beacon(&mut self, call: &Call) {
        let Some(room) = &self.plan.room else { return };
        let hears = match call {
            Call::Round { .. } => self.oracle.room.hears(room.beacon, self.now),
            _ => return,
        };
        self.stores.beacon.latest = hears.then(|| latest_round(room.beacon, self.now));
    }

    fn answer(&mut self, op: usize) {
        let (process, generation) = self.home(self.ops[op].invocation);
        let frozen = self.processes[process].frozen_until.filter(|until| *until > self.now);
        if let Some(until) = frozen.filter(|_| self.processes[process].generation == generation) {
            let tie = mix(op as u64, 2);
            return self.at(until, tie, Event::Answer(op));
        }
        let op = &mut self.ops[op];
        op.is_answered = true;
        if let Some(waker) = op.waker.take() {
            waker.wake();
        }
    }

    /// Redis forgets its last writes: all of it, or the slot of one tier of a sale that keeps its tiers
    /// apart.
    pub(crate) fn fail_over(&mut self, place: u64, writes: usize) {
        let inventories = self.plan.sale.inventories();
        let mut rng = SeededRng::from_label(place, 5);
        let alone = self.plan.sale.keeps_tiers_apart() && rng.chance(500);
        let one = rng.below(inventories.len() as u64) as usize;
        let of = alone.then(|| &inventories[one]);
        self.strike(Fault::Failover, place);
        self.record(|| {
            let of = of.map_or_else(String::new, |id| format!(" of {id}"));
            format!("Redis FAILS OVER and forgets its last {writes} writes{of}")
        });
        let replica = self.redis.forget(writes, of);
        self.stores.seats.clone_from(&replica.seats);
        self.stores.gate.clone_from(&replica.gate);
        if of.is_none() {
            let replica = self.board.forget(writes, None);
            self.stores.boards.clone_from(&replica.boards);
        }
        self.oracle.redis_has_forgotten();
        self.changes += 1;
    }

    /// Redis may forget the parts of a load that came last, before the next one: seldom enough that
    /// loads come through.
    fn fail_over_between_parts(&mut self, invocation: usize) {
        let Invocation { key, calls, .. } = self.invocations[invocation];
        let place = mix(key, 0xfa11_0000 + calls);
        let mut rng = SeededRng::new(place);
        let writes = rng.between(1, 4) as usize;
        if rng.chance(200) && self.plan.strikes(Fault::Failover, place, &mut rng, self.now) {
            self.fail_over(place, writes);
        }
    }

    /// Redis loses one tier of a sale that keeps its tiers apart: the slot's node is gone, and its
    /// replicas with it.
    pub(crate) fn lose_tier(&mut self, place: u64, tier: usize) {
        let inventories = self.plan.sale.inventories();
        let inventory = &inventories[tier % inventories.len()];
        self.strike(Fault::LoseTier, place);
        self.record(|| format!("Redis LOSES {inventory}"));
        self.stores.seats.unload(inventory);
        self.redis.lose(inventory);
        self.oracle.redis_has_forgotten();
        self.changes += 1;
    }

    pub(crate) fn flush(&mut self, place: u64) {
        self.strike(Fault::Flush, place);
        self.record(|| "Redis LOSES EVERYTHING".to_owned());
        self.stores.lose_redis();
        self.oracle.redis_has_forgotten();
        self.redis = RedisLog::default();
        self.board = RedisLog::default();
        self.changes += 1;
    }

    /// The orders that were dropped with their processes.
    pub(crate) fn take_gone(&mut self) -> BTreeSet<(usize, u32)> {
        std::mem::take(&mut self.gone).into_iter().collect()
    }
}
