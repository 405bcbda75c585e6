//! The open loop: people come when their shape says so, whatever becomes of those before them.
//!
//! Whoever is due is taken up at once and noted. Who finds every connection in use waits for
//! one, in the order of being due, and that waiting is part of the response time. Somebody who waits, or who
//! will come back later, is a few bytes; only a request under way is a task.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::rngs::StdRng;

use super::client::Place;
use super::people::Class;
use super::profile::Buyer;
use super::session::{GateReply, LoadTest, TaskCounter};
use super::stopwatch::micros;

/// Most delay with which people come back later than asked, in microseconds: not all at once.
const JITTER_MICROS: u64 = 500_000;
/// Times as long as it was asked to, somebody who sleeps stays away.
const SLEEP: u32 = 20;

/// Somebody asks for an admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ask {
    /// Due time, in microseconds from the beginning.
    due_micros: u64,
    /// Index of the buyer.
    index: u64,
    /// Number of attempts before this one.
    attempt: u8,
}

/// State that the loop and its sessions share.
#[derive(Debug)]
struct LoopState {
    started: Instant,
    /// The opening, from the beginning.
    opening: Duration,
    /// The end of the time in which anything is begun.
    until: Instant,
    /// Those who were asked to come back.
    returns: RefCell<BinaryHeap<Reverse<Ask>>>,
    /// Those who were let in, or are asking.
    sessions: Rc<TaskCounter>,
}

impl LoopState {
    fn at(&self, micros: u64) -> Instant {
        self.started + Duration::from_micros(micros)
    }
}

impl LoadTest {
    /// Lets everybody of the plan come, whose moments are from `started`, as is the `opening`; those who are
    /// asked to come back return, each as often as the profile says. Ends when all have left, or takes nobody
    /// up any more after `until`.
    pub async fn open_loop(self: &Rc<Self>, opening: Duration, started: Instant, until: Instant) {
        let sessions = Rc::new(TaskCounter::default());
        let state =
            Rc::new(LoopState { started, opening, until, returns: RefCell::default(), sessions });
        let moments = self.arrivals.iter().map(|arrival| arrival.micros);
        let mut to_come = (0..).zip(moments).peekable();
        let mut waiting: VecDeque<Ask> = VecDeque::new();
        // Our turn for a connection; kept over the rounds, so that it is not lost.
        let mut turn: Option<Pin<Box<dyn Future<Output = Option<Place>>>>> = None;
        loop {
            let now = Instant::now();
            if now >= until {
                break;
            }
            let next = self.take_up(&mut to_come, &state, &mut waiting, now);
            while let Some(ask) = waiting.front().copied() {
                let place = match &mut turn {
                    Some(_) => None,
                    None => self.client.place_now(),
                };
                let Some(place) = place else { break };
                waiting.pop_front();
                self.let_in(ask, place, &state);
            }
            self.waiting.set(reporting::count(waiting.len()));
            if waiting.is_empty() && next.is_none() && state.sessions.count() == 0 {
                return;
            }
            if !waiting.is_empty() && turn.is_none() {
                turn = Some(Box::pin(self.client.place()));
            }
            let wake = next.map_or(until, |next| state.at(next)).min(until);
            tokio::select! {
                place = async { match &mut turn { Some(turn) => turn.await, None => std::future::pending().await } } => {
                    turn = None;
                    if let Some((place, ask)) = place.zip(waiting.pop_front()) {
                        self.let_in(ask, place, &state);
                    }
                }
                () = tokio::time::sleep_until(wake.into()) => {}
                () = state.sessions.changed() => {}
            }
        }
        self.waiting.set(0);
        while state.sessions.count() > 0 {
            state.sessions.changed().await;
        }
    }

    /// Takes up who is due, and says when the next one is.
    fn take_up(
        &self,
        to_come: &mut std::iter::Peekable<impl Iterator<Item = (u64, u64)>>,
        state: &LoopState,
        waiting: &mut VecDeque<Ask>,
        now: Instant,
    ) -> Option<u64> {
        let now_micros = micros(now.duration_since(state.started));
        let mut returns = state.returns.borrow_mut();
        loop {
            let first = to_come.peek().map(|(index, due_micros)| Ask {
                due_micros: *due_micros,
                index: *index,
                attempt: 0,
            });
            let back = returns.peek().map(|Reverse(ask)| *ask);
            let comes = match (first, back) {
                (Some(first), Some(back)) => first.min(back),
                (first, back) => first.or(back)?,
            };
            if comes.due_micros > now_micros {
                return Some(comes.due_micros);
            }
            if Some(comes) == first {
                to_come.next();
                self.tally.arrived(self.buyer(comes.index).class());
            } else {
                returns.pop();
                self.tally.returned(self.buyer(comes.index).class());
            }
            self.client.stopwatch().took_up(state.at(comes.due_micros), now);
            waiting.push_back(comes);
        }
    }

    fn let_in(self: &Rc<Self>, ask: Ask, place: Place, state: &Rc<LoopState>) {
        let due = state.at(ask.due_micros);
        self.client.stopwatch().waited(due, Instant::now());
        let (test, state) = (Rc::clone(self), Rc::clone(state));
        let task = state.sessions.begin();
        tokio::task::spawn_local(async move {
            test.come(ask, due, place, &state).await;
            drop(task);
        });
    }

    async fn come(self: &Rc<Self>, ask: Ask, due: Instant, place: Place, state: &LoopState) {
        let buyer = self.buyer(ask.index);
        let first = ask.attempt == 0;
        if first {
            self.tally.came(buyer.behaviour);
        }
        if self.venues[buyer.sale].has_room() {
            // Whoever waits in a room takes up no connection.
            drop(place);
            return Box::pin(self.through_the_room(buyer, due, state.until)).await;
        }
        let due_from_start = Duration::from_micros(ask.due_micros);
        if buyer.class() == Class::Early && due_from_start < state.opening {
            drop(place);
            return self.look_around(ask, &buyer, state).await;
        }
        match self.ask(&buyer, None, first, due, Some(place)).await {
            // A session is large and few are let in: it has its own place in memory.
            GateReply::Admitted(admission) => Box::pin(self.order_with(buyer, admission)).await,
            GateReply::Later(wait) | GateReply::Waiting(wait) if ask.attempt < buyer.returns => {
                let jitter = buyer_jitter(buyer.seed, ask.attempt);
                let wait = if buyer.class() == Class::Sleeper { wait * SLEEP } else { wait };
                let due = state.started.elapsed() + wait + jitter;
                let attempt = ask.attempt + 1;
                let ask = Ask { due_micros: micros(due), attempt, ..ask };
                state.returns.borrow_mut().push(Reverse(ask));
                state.sessions.change();
            }
            GateReply::Later(_) | GateReply::Waiting(_) => self.tally.gave_up.one(),
            GateReply::Refused => {}
        }
    }
}

impl LoadTest {
    /// Somebody who came before the opening looks at the sale, and asks when it opens.
    async fn look_around(&self, ask: Ask, buyer: &Buyer, state: &LoopState) {
        let venue = &self.venues[buyer.sale];
        self.left(venue, venue.sale.whole(), false).await;
        let due = state.opening + buyer_jitter(buyer.seed, ask.attempt);
        let ask = Ask { due_micros: micros(due), attempt: ask.attempt + 1, ..ask };
        state.returns.borrow_mut().push(Reverse(ask));
        state.sessions.change();
    }
}

fn buyer_jitter(seed: u64, attempt: u8) -> Duration {
    let mut random: StdRng = rand::SeedableRng::seed_from_u64(seed ^ u64::from(attempt));
    Duration::from_micros(random.random_range(0..JITTER_MICROS))
}
