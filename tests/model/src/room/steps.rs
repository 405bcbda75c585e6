//! What can happen in a room, and the state after it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use engine::domain::admission::room::join::Membership;
use engine::domain::basics::guard::without;
use engine::domain::basics::time::Timestamp;
use engine::flows::room::enter;
use engine::flows::room::join::{Joined, Standing};
use model_stores::{Call, Stores};
use stateright::{Model, Property};

use super::{Flow, Outcome, ROUNDS, Scenario, check, group, sale};
use crate::check::Checked;
use crate::engine::CallOutcome;
use crate::explore::{Explored, PROPERTY, explored};
use crate::task::{self, Answer};

/// A flow of a room under way.
pub type Task = task::Task<Flow, Outcome>;

/// One state of a scenario.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct State {
    /// Everything that outlives a process.
    pub stores: Arc<Stores>,
    /// The flows under way, in an order that does not depend on who began first.
    pub tasks: Vec<Arc<Task>>,
    /// The index of the current time among the scenario's.
    pub moment: usize,
    /// How often each joiner has asked.
    pub requests: Vec<u8>,
    /// The membership that each joiner was told for certain.
    pub told: Vec<Option<Membership>>,
    /// How often each joiner has asked to be let in.
    pub enters: Vec<u8>,
    /// How often each joiner has begun to look.
    pub looks: Vec<u8>,
    /// The joiners who were answered that the visit of an index has begun.
    pub looked: BTreeSet<(usize, u32)>,
    /// How often each joiner was let in with each index.
    pub entered: BTreeMap<(usize, u32), u16>,
    /// What can still happen.
    pub left: Left,
    /// The invariant that is broken, if one is, in words.
    pub broken: Option<String>,
}

/// What can still happen in a scenario, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Left {
    /// Runs of the draw.
    pub draws: u8,
    /// Requests for the room document.
    pub turns: u8,
    pub faults: u8,
    /// Steps of the beacon.
    pub rounds: u8,
    /// Rounds that somebody brings.
    pub brings: u8,
    pub losses: u8,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A joiner asks, perhaps again.
    Join(usize),
    /// A run of the draw begins.
    Draw,
    /// Somebody asks for the room document.
    Turn,
    /// Somebody brings the round that is awaited, with its signature or a false one.
    Bring(bool),
    /// A joiner asks to be let in.
    Enter(usize),
    Look(usize),
    LoseRedis,
    /// A call of a task, by its place.
    Call(usize, usize, CallOutcome),
    /// The process of a task dies.
    Crash(usize),
    /// The beacon goes on by [`ROUNDS`].
    Rounds,
    Tick,
}

/// What happened in a walk.
#[derive(Debug, Clone, Copy, Default)]
pub struct Walk {
    pub steps: u32,
    /// The number of times that somebody was let in.
    pub entered: u32,
    /// People who joined again.
    pub rejoined: usize,
    /// The number of times that somebody joined again whose place had run out unused.
    pub ran_out: usize,
}

/// Mixes two numbers into one that looks like chance (the finaliser of SplitMix64, by Steele, Lea and Flood:
/// "Fast splittable pseudorandom number generators", 2014).
fn mix(one: u64, other: u64) -> u64 {
    let mut z = one.wrapping_add(other.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ 0x5851_f42d_4c95_7f2d;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One of the actions: mostly a call, for each flow has several, and seldom the next moment.
fn drawn_of(actions: &[Action], random: u64) -> &Action {
    let is_call = |action: &&Action| matches!(action, Action::Call(..));
    let is_tick = |action: &&Action| matches!(action, Action::Tick);
    let (calls, others): (Vec<&Action>, Vec<&Action>) = actions.iter().partition(is_call);
    let (ticks, others): (Vec<&Action>, Vec<&Action>) = others.into_iter().partition(is_tick);
    let preferred = match random % 100 {
        0..70 => calls,
        70..75 => ticks,
        _ => others,
    };
    let of = if preferred.is_empty() { actions.iter().collect() } else { preferred };
    of[usize::try_from(random / 100 % of.len() as u64).unwrap()]
}

/// A scenario with its checks: what the checker explores.
#[derive(Debug)]
pub struct Rooms {
    scenario: Scenario,
    first: Stores,
    /// The stores that were brought to their end before, and held.
    rested: Mutex<HashSet<u64>>,
}

impl Rooms {
    /// The model of a scenario.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        let first = scenario.stores();
        Self { scenario, first, rested: Mutex::default() }
    }

    /// The index that a joiner was told.
    fn told(&self, state: &State, joiner: usize) -> Option<u32> {
        let told = state.told[joiner].as_ref().map(|member| member.index.number);
        let joined = || {
            let member = self.scenario.member(&state.stores.rooms, joiner);
            member.filter(|_| self.scenario.is_drawn).map(|member| member.index.number)
        };
        told.or_else(joined)
    }

    /// Walks through a scenario at random, one of the actions that can happen at a time, and brings it to its
    /// end: the draw is run again, and turns are made until everybody was served.
    ///
    /// # Errors
    /// Says what is broken.
    pub fn walk(&self, seed: u64) -> Result<Walk, String> {
        let mut state = self.init_states().remove(0);
        let mut walk = Walk::default();
        let mut drawn = 0;
        loop {
            let mut actions = Vec::new();
            self.actions(&state, &mut actions);
            if actions.is_empty() {
                break;
            }
            drawn = mix(seed, drawn);
            let action = drawn_of(&actions, drawn);
            let Some(next) = self.step(&state, action) else { continue };
            walk.steps += 1;
            if let Some(what) = next.broken {
                return Err(what);
            }
            check::permanent(&state.stores.rooms, &next.stores.rooms)?;
            check::visits_stay(&state.stores.rooms, &next.stores.rooms)?;
            check::state(&self.scenario, &next)?;
            walk.ran_out += self.ran_out(&state, &next);
            state = next;
        }
        walk.entered = state.entered.values().map(|times| u32::from(*times)).sum();
        let rejoined = state.told.iter().flatten().filter(|member| member.rejoined > 0);
        walk.rejoined = rejoined.count();
        check::rest(&self.scenario, &state, self.now(&state))?;
        check::served(&self.scenario, &state, self.now(&state))?;
        Ok(walk)
    }

    /// The number of joiners who have joined again in a step, and had not come to the place before.
    fn ran_out(&self, before: &State, after: &State) -> usize {
        let member = |state: &State, joiner| self.scenario.member(&state.stores.rooms, joiner);
        let has = |joiner: &usize| {
            let both = member(before, *joiner).zip(member(after, *joiner));
            both.is_some_and(|(old, new)| new.rejoined > old.rejoined && old.visit.is_none())
        };
        (0..self.scenario.joiners.len()).filter(has).count()
    }

    fn now(&self, state: &State) -> Timestamp {
        self.scenario.times[state.moment]
    }

    /// True if nothing that can still happen changes the answer, and the call changes nothing: what is kept
    /// stays as it is.
    fn is_settled(&self, state: &State, call: &Call) -> bool {
        if matches!(call, Call::RoomRecord { number: 0, .. } | Call::Secret { .. }) {
            return true;
        }
        // Without a guard what is kept may change.
        if self.scenario.without.is_some() {
            return false;
        }
        let rooms = &state.stores.rooms;
        let key = || (sale(), group());
        let kept = |chunk: u32| rooms.chunks.contains_key(&(sale(), group(), chunk));
        #[expect(clippy::wildcard_enum_match_arm, reason = "of the others nothing is known")]
        match call {
            Call::CloseWindow { .. } => {
                rooms.counters.get(&key()).is_some_and(|counter| counter.closed.is_some())
            }
            Call::MarkBucket { bucket, .. } | Call::IsMarked { bucket, .. } => {
                rooms.marked.contains(&(sale(), *bucket))
            }
            Call::Chunk { chunk, .. } | Call::KeepChunk { chunk, .. } => kept(*chunk),
            Call::Tree { .. } | Call::KeepTree { .. } => rooms.trees.contains_key(&key()),
            Call::VerifyRound { .. } => true,
            Call::Round { round, .. } => {
                state.left.rounds == 0 || state.stores.beacon.latest >= Some(*round)
            }
            _ => false,
        }
    }

    /// Answers what may as well be answered at once, and puts the task among the others, or ends it.
    fn put(&self, state: &mut State, task: Task) {
        let now = self.now(state);
        let task = task.settled(&self.scenario, |call| {
            let is_settled = self.is_settled(state, call);
            is_settled.then(|| Arc::make_mut(&mut state.stores).apply(now, call))
        });
        match task.outcome.clone() {
            Some(outcome) => end(state, &task.flow, &outcome),
            None => {
                let before = |other: &Arc<Task>| other.fingerprint() < task.fingerprint();
                let at = state.tasks.partition_point(before);
                state.tasks.insert(at, Arc::new(task));
            }
        }
    }

    fn call(&self, state: &mut State, index: usize, place: usize, fate: CallOutcome) -> Option<()> {
        let task = state.tasks.remove(index);
        let call = task.call(place)?;
        if fate != CallOutcome::Happens {
            state.left.faults -= 1;
        }
        let now = self.now(state);
        let reply = fate.reply(|| Arc::make_mut(&mut state.stores).apply(now, call));
        self.put(
            state,
            task.answered(&self.scenario, vec![Answer { call: place, reply, resumes: true }]),
        );
        Some(())
    }

    /// The state after an action, unchecked.
    fn step(&self, before: &State, action: &Action) -> Option<State> {
        let mut state = before.clone();
        let now = self.now(&state);
        match action {
            Action::Join(joiner) => {
                let attempt = state.requests[*joiner];
                state.requests[*joiner] += 1;
                let flow = Flow::Join { joiner: *joiner, attempt, now };
                self.put(&mut state, Task::begin(&self.scenario, flow));
            }
            Action::Turn => {
                state.left.turns -= 1;
                self.put(&mut state, Task::begin(&self.scenario, Flow::Turn { now }));
            }
            Action::Look(joiner) => {
                state.looks[*joiner] += 1;
                let told = self.told(&state, *joiner)?;
                let claim = (told, Scenario::place(&state.stores.rooms, told).unwrap_or(0));
                let flow = Flow::Look { joiner: *joiner, claim, now };
                self.put(&mut state, Task::begin(&self.scenario, flow));
            }
            Action::Enter(joiner) => {
                let attempt = state.enters[*joiner];
                state.enters[*joiner] += 1;
                let rooms = &state.stores.rooms;
                let told = self.told(&state, *joiner)?;
                // The first claim is that of the first place, whoever asks.
                let drawn = Scenario::place(rooms, told).filter(|_| attempt > 0);
                let flow = Flow::Enter {
                    joiner: *joiner,
                    attempt,
                    has_looked: state.looked.contains(&(*joiner, told)),
                    claim: (told, drawn.unwrap_or(0)),
                    now,
                };
                self.put(&mut state, Task::begin(&self.scenario, flow));
            }
            Action::Bring(is_true) => {
                state.left.brings -= 1;
                let number = Scenario::awaited(&state.stores)?;
                let flow = Flow::Bring { number, is_true: *is_true, now };
                self.put(&mut state, Task::begin(&self.scenario, flow));
            }
            Action::LoseRedis => {
                state.left.losses -= 1;
                Arc::make_mut(&mut state.stores).lose_redis();
            }
            Action::Draw => {
                state.left.draws -= 1;
                self.put(&mut state, Task::begin(&self.scenario, Flow::Draw { now }));
            }
            Action::Call(task, place, fate) => self.call(&mut state, *task, *place, *fate)?,
            Action::Crash(task) => {
                state.left.faults -= 1;
                state.tasks.remove(*task);
            }
            Action::Rounds => {
                state.left.rounds -= 1;
                *Arc::make_mut(&mut state.stores).beacon.latest.as_mut()? += ROUNDS;
            }
            Action::Tick => state.moment += 1,
        }
        Some(state)
    }

    fn check(&self, before: &State, state: &State) -> Checked {
        check::permanent(&before.stores.rooms, &state.stores.rooms)?;
        check::visits_stay(&before.stores.rooms, &state.stores.rooms)?;
        check::state(&self.scenario, state)?;
        let mut hasher = DefaultHasher::new();
        (&state.stores, state.moment, &state.told).hash(&mut hasher);
        let print = hasher.finish();
        let rested = || self.rested.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.scenario.is_drawn && !rested().contains(&print) {
            check::rest(&self.scenario, state, self.now(state)).map_err(|what| {
                format!("if every process dies here and the draw is run again: {what}")
            })?;
            rested().insert(print);
        }
        Ok(())
    }

    /// Does something with the scenario's guard away.
    fn guarded<T>(&self, act: impl FnOnce() -> T) -> T {
        match self.scenario.without {
            Some(guard) => without(guard, act),
            None => act(),
        }
    }
}

/// Tells whoever waited for a flow what it came to.
fn end(state: &mut State, flow: &Flow, outcome: &Outcome) {
    if let Some(what) = outcome.broken_contract() {
        state.broken = Some(format!("a broken contract: {what}"));
    }
    if let (Flow::Enter { joiner, claim: (index, _), .. }, Outcome::Entered(_)) = (flow, outcome) {
        *state.entered.entry((*joiner, *index)).or_default() += 1;
    }
    match (flow, outcome) {
        (Flow::Look { joiner, claim: (index, _), .. }, Outcome::Looked(1..)) => {
            state.looked.insert((*joiner, *index));
        }
        (
            Flow::Enter { joiner, has_looked: true, .. },
            Outcome::NotLetIn(enter::Refusal::RunOut),
        ) => {
            state.broken =
                Some(format!("R13: joiner {} looked, and the place ran out", joiner + 1));
        }
        (_, _) => {}
    }
    let (Flow::Join { joiner, .. }, Outcome::Joined(joined)) = (flow, outcome) else { return };
    let Joined { membership, standing: Standing::Certain } = joined else { return };
    let told = &mut state.told[*joiner];
    if told.as_ref().is_some_and(|told| !check::is_same(told, membership)) {
        state.broken = Some(format!("R2: joiner {} was told two memberships", joiner + 1));
    }
    if told.as_ref().is_none_or(|told| told.rejoined <= membership.rejoined) {
        *told = Some(membership.clone());
    }
}

impl Model for Rooms {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let Scenario { joiners, draws, turns, faults, rounds, brings, losses, .. } =
            self.scenario.clone();
        vec![State {
            stores: Arc::new(self.first.clone()),
            tasks: Vec::new(),
            moment: 0,
            requests: vec![0; joiners.len()],
            told: vec![None; joiners.len()],
            enters: vec![0; joiners.len()],
            looks: vec![0; joiners.len()],
            looked: BTreeSet::new(),
            entered: BTreeMap::new(),
            left: Left { draws, turns, faults, rounds, brings, losses },
            broken: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let Left { draws, turns, faults, rounds, brings, losses } = state.left;
        let may_ask = |requests: &u8| *requests < self.scenario.requests;
        let asking = state.requests.iter().enumerate().filter(|(_, requests)| may_ask(requests));
        actions.extend(asking.map(|(joiner, _)| Action::Join(joiner)));
        if draws > 0 {
            actions.push(Action::Draw);
        }
        if turns > 0 {
            actions.push(Action::Turn);
        }
        let entering = state.enters.iter().enumerate();
        let entering = entering.filter(|(joiner, enters)| {
            **enters < self.scenario.enters && self.told(state, *joiner).is_some()
        });
        actions.extend(entering.map(|(joiner, _)| Action::Enter(joiner)));
        let looking = state.looks.iter().enumerate();
        let looking = looking.filter(|(joiner, looks)| {
            **looks < self.scenario.looks && self.told(state, *joiner).is_some()
        });
        actions.extend(looking.map(|(joiner, _)| Action::Look(joiner)));
        if losses > 0 {
            actions.push(Action::LoseRedis);
        }
        if brings > 0 {
            actions.push(Action::Bring(false));
            // Nobody has the signature of a round that is not out.
            if Scenario::awaited(&state.stores) <= state.stores.beacon.latest {
                actions.push(Action::Bring(true));
            }
        }
        for (index, task) in state.tasks.iter().enumerate() {
            // Tasks that are alike have alike futures: one of them goes first.
            if index > 0 && state.tasks[index - 1] == *task {
                continue;
            }
            for (place, call) in &task.outstanding {
                let fates = CallOutcome::of(call, faults > 0);
                actions.extend(fates.iter().map(|fate| Action::Call(index, *place, *fate)));
            }
            if faults > 0 {
                actions.push(Action::Crash(index));
            }
        }
        if rounds > 0 {
            actions.push(Action::Rounds);
        }
        if state.moment + 1 < self.scenario.times.len() {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.guarded(|| {
            let mut next = self.step(state, &action)?;
            if next.broken.is_none() {
                next.broken = self.check(state, &next).err();
            }
            Some(next)
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(PROPERTY, |_, state: &State| state.broken.is_none())]
    }
}

/// Explores every state of a scenario, or until something is broken. One thread finds the shortest way to it.
#[must_use]
pub fn explore(scenario: Scenario, threads: usize) -> Explored {
    explored(scenario.name, Rooms::new(scenario), (threads, None), |_, path| words(path))
}

fn who(flow: &Flow) -> String {
    match flow {
        Flow::Publish => "publication".to_owned(),
        Flow::Join { joiner, .. } => format!("joiner {}", joiner + 1),
        Flow::Draw { .. } => "draw".to_owned(),
        Flow::Turn { .. } => "turn".to_owned(),
        Flow::Bring { is_true: true, .. } => "round".to_owned(),
        Flow::Bring { is_true: false, .. } => "false round".to_owned(),
        Flow::Enter { joiner, .. } => format!("joiner {} at the gate", joiner + 1),
        Flow::Look { joiner, .. } => format!("joiner {} at the map", joiner + 1),
    }
}

/// Each step in words, and at the end what is broken.
fn words(path: Vec<(State, Option<Action>)>) -> Vec<String> {
    let step = |state: &State, action: &Action| match action {
        Action::Join(joiner) => format!("joiner {} asks", joiner + 1),
        Action::Draw => "a draw begins".to_owned(),
        Action::Turn => "somebody asks for the room document".to_owned(),
        Action::Enter(joiner) => format!("joiner {} asks to be let in", joiner + 1),
        Action::Look(joiner) => format!("joiner {} begins to look", joiner + 1),
        Action::Bring(true) => "somebody brings the beacon's round".to_owned(),
        Action::Bring(false) => "somebody brings a false round".to_owned(),
        Action::LoseRedis => "Redis loses everything".to_owned(),
        Action::Crash(task) => format!("the process of {} dies", who(&state.tasks[*task].flow)),
        Action::Rounds => format!("the beacon goes on by {ROUNDS} rounds"),
        Action::Tick => "time goes on".to_owned(),
        Action::Call(task, place, fate) => {
            let task = &state.tasks[*task];
            let call = task.call(*place).map_or("", |call| call.name());
            format!("{} {:08x}: {call}: {fate:?}", who(&task.flow), task.fingerprint() >> 32)
        }
    };
    let lines = path.iter().enumerate().flat_map(|(number, (state, action))| match action {
        Some(action) => Some(format!("{:2}. {}", number + 1, step(state, action))),
        None => state.broken.as_ref().map(|what| format!("→ {what}")),
    });
    lines.collect()
}
