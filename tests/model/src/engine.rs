//! What can happen in a state, and the state after it.

use std::sync::Arc;

use engine::domain::basics::guard::without;
use engine::domain::basics::ids::Epoch;
use engine::domain::order::attempt::AttemptKey;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::{OrderState, PaymentKey, PaymentOutcome};
use engine::ports::due_shard;
use engine::ports::{SettleReply, Settlement, StoreError, Stored};
use model_stores::{AtProvider, Call, InList, Message, Reply, SeatsModel, Sent};
use stateright::{Model, Property};

use crate::check;
use crate::explore::PROPERTY;
use crate::flow::{Flow, Outcome};
use crate::rest::Rest;
use crate::scenario::{Buyer, LAG_SECONDS, LIST_LAG_SECONDS, Scenario, dispute, epoch, reader};
use crate::state::State;
use crate::task::{Answer, Task};

/// The number of deliveries after which a queue gives a message up.
const MAX_DELIVERIES: u8 = 2;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    /// It happens and is answered.
    Happens,
    /// It happens; its answer is lost.
    AnswerLost,
    /// It is lost in transit; nobody knows.
    RequestLost,
    /// It is turned away.
    Refused,
}

impl CallOutcome {
    /// What may become of a call: with faults left, whatever makes a difference to it.
    pub(crate) fn of(call: &Call, has_faults: bool) -> &'static [Self] {
        match (has_faults, call.effect()) {
            (false, _) => &[Self::Happens],
            (true, None) => &[Self::Happens, Self::Refused],
            (true, Some(_)) => &[Self::Happens, Self::Refused, Self::AnswerLost, Self::RequestLost],
        }
    }

    /// The reply that the caller gets, of a call that `happen` carries out.
    pub(crate) fn reply(self, happen: impl FnOnce() -> Stored<Reply>) -> Stored<Reply> {
        let lost = || StoreError::Unknown("lost".to_owned());
        match self {
            Self::Happens => happen(),
            Self::AnswerLost => happen().and_then(|_| Err(lost())),
            Self::RequestLost => Err(lost()),
            Self::Refused => Err(StoreError::Unavailable("turned away".to_owned())),
        }
    }
}

/// One step of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A buyer sends the request, again if it was sent before.
    Request(usize),
    /// A buyer gives the order up.
    Cancel(usize),
    /// A buyer's refund is asked for, by its place.
    GiveBack(usize, usize),
    /// A buyer pays; the provider has the money. True: and lists it late.
    Pay(usize, bool),
    /// A buyer begins to pay.
    Start(usize),
    /// A buyer asks to pay from the wallet.
    FromWallet(usize),
    /// A buyer pays what was begun: a page that is still open.
    PayAttempt(AttemptKey),
    /// The provider calls back.
    Callback(PaymentKey),
    /// A message is delivered; true: besides, and not instead.
    Deliver(Sent, bool),
    Sweep,
    /// Somebody begins to load the sale.
    Load,
    /// The reader of the provider's list begins.
    Read,
    /// Somebody begins to record what the provider says of the dispute.
    Dispute,
    /// The provider says whose the disputed money is: true, the merchant's.
    Decide(bool),
    /// A call of a task, by its place.
    Call(usize, usize, CallOutcome),
    /// The process of a task dies.
    Crash(usize),
    Tick,
    Lose,
    /// A replica of Redis falls behind: it stays as it is now.
    FallBehind,
    /// The replica takes over.
    FailOver,
}

/// A scenario with its checks: what the checker explores.
#[derive(Debug)]
pub struct Engine {
    pub scenario: Scenario,
    rest: Rest,
}

impl Engine {
    /// The model of a scenario.
    #[must_use]
    pub fn new(scenario: Scenario) -> Self {
        Self { scenario, rest: Rest::default() }
    }

    /// True if nothing that can still happen changes the answer, so that the call may as well happen
    /// at once: it commutes with everything.
    fn is_settled(&self, call: &Call) -> bool {
        let is_ours =
            |shard: u8| self.scenario.buyers.iter().any(|buyer| due_shard(buyer.number) == shard);
        let no_losses = self.scenario.budget.losses == 0;
        if let Call::Due { shard, .. } = call {
            return !is_ours(*shard);
        }
        let delivers = self.scenario.delivers;
        if let Call::Send { message, .. } = call
            && !delivers.reaches(&Message::from_engine(message))
        {
            return true;
        }
        // Only a load changes what the catalogue says, and nobody loads what is not lost.
        let is_of_the_sale =
            matches!(call, Call::Sale { .. } | Call::Epoch { .. } | Call::Head { .. });
        matches!(call, Call::Sales {}) || (no_losses && is_of_the_sale)
    }

    /// Answers what may as well be answered at once, and puts the task among the others, or ends it.
    fn put(&self, state: &mut State, task: Task) {
        let now = state.now(&self.scenario);
        let task = task.settled(&self.scenario, |call| {
            // A message waits by itself: who sends it need not.
            let is_sent = matches!(call, Call::Send { .. }) && state.left.faults == 0;
            (is_sent || self.is_settled(call))
                .then(|| Arc::make_mut(&mut state.stores).apply(now, call))
        });
        match task.outcome.clone() {
            None => state.add(task),
            Some(outcome) => self.end(state, &task.flow, &outcome),
        }
    }

    fn begin(&self, state: &mut State, flow: Flow) {
        self.put(state, Task::begin(&self.scenario, flow));
    }

    /// Tells whoever waited for a flow what it came to.
    fn end(&self, state: &mut State, flow: &Flow, outcome: &Outcome) {
        if let Some(what) = outcome.broken_contract() {
            state.broken = Some(format!("a broken contract: {what}"));
        }
        if let (Flow::Reserve { buyer, .. }, Outcome::Ordered(order)) = (flow, outcome) {
            let seen = &mut state.buyer_states[*buyer];
            let lines = order.all_lines();
            if seen.ordered.as_ref().is_some_and(|before| *before != lines) {
                let what = format!("buyer {} was given two orders", buyer + 1);
                state.broken = Some(what);
            }
            seen.ordered = Some(lines);
        }
        if let (Flow::Cancel { buyer, .. }, Outcome::Cancelled) = (flow, outcome) {
            state.buyer_states[*buyer].is_cancelled = true;
        }
        if let (Flow::Pay { capture, .. }, Outcome::Decided(PaymentOutcome::Accepted)) =
            (flow, outcome)
        {
            let is_of = |buyer: &Buyer| buyer.number == capture.order;
            if let Some(buyer) = self.scenario.buyers.iter().position(is_of) {
                state.buyer_states[buyer].paid = Some(capture.key.clone());
            }
        }
        if let Outcome::Started(key) = outcome {
            state.handed.insert(*key);
        }
        if let (Flow::Pay { capture, .. }, Outcome::Kept) = (flow, outcome) {
            state.kept.insert(capture.key.clone());
        }
        if let (Flow::Consume { sent, is_copy: false, .. }, Outcome::Done) = (flow, outcome) {
            Arc::make_mut(&mut state.stores).queues.take(sent);
        }
    }

    fn in_flight(state: &State, message: &Sent) -> usize {
        let is_of = |flow: &Flow| match flow {
            Flow::Consume { sent, is_copy, .. } => sent == message && !is_copy,
            Flow::Reserve { .. }
            | Flow::Cancel { .. }
            | Flow::GiveBack { .. }
            | Flow::Start { .. }
            | Flow::FromWallet { .. }
            | Flow::Pay { .. }
            | Flow::Load { .. }
            | Flow::Read { .. }
            | Flow::Dispute { .. }
            | Flow::Sweep { .. } => false,
        };
        state.tasks.iter().filter(|task| is_of(&task.flow)).count()
    }

    fn deliveries(&self, state: &State, actions: &mut Vec<Action>) {
        let queues = &state.stores.queues;
        let delivers = self.scenario.delivers;
        let visible = queues.visible(state.now(&self.scenario));
        for sent in visible.filter(|sent| delivers.reaches(&sent.message)) {
            let copies = queues.waiting.get(sent).copied().unwrap_or(0) as usize;
            let times = state.deliveries.get(sent).copied().unwrap_or(0);
            if times < MAX_DELIVERIES && copies > Self::in_flight(state, sent) {
                actions.push(Action::Deliver(sent.clone(), false));
            }
            if state.left.copies > 0 {
                actions.push(Action::Deliver(sent.clone(), true));
            }
        }
    }

    fn people(&self, state: &State, actions: &mut Vec<Action>) {
        for (index, (buyer, seen)) in
            self.scenario.buyers.iter().zip(&state.buyer_states).enumerate()
        {
            if seen.requests < buyer.requests && seen.ordered.is_none() {
                actions.push(Action::Request(index));
            }
            if seen.starts < buyer.starts && seen.ordered.is_some() {
                actions.push(Action::Start(index));
            }
            if seen.from_wallet < buyer.from_wallet && seen.ordered.is_some() {
                actions.push(Action::FromWallet(index));
            }
            if seen.cancels < buyer.cancels && seen.ordered.is_some() {
                actions.push(Action::Cancel(index));
            }
            let order = || state.stores.orders.get(buyer.number);
            let is_paid = seen.refunds.len() < buyer.refunds.len()
                && order().is_some_and(|order| order.state == OrderState::Paid);
            let asks = (0..buyer.refunds.len()).filter(|place| !seen.refunds.contains(place));
            actions.extend(asks.filter(|_| is_paid).map(|place| Action::GiveBack(index, place)));
            if seen.payments < buyer.payments.len() && seen.ordered.is_some() {
                actions.push(Action::Pay(index, false));
                if self.scenario.lags {
                    actions.push(Action::Pay(index, true));
                }
            }
        }
        let at_provider = &state.stores.provider.attempts;
        let is_open =
            |key: &&AttemptKey| matches!(at_provider.get(*key), Some(AtProvider::Open { .. }));
        actions.extend(state.handed.iter().filter(is_open).map(|key| Action::PayAttempt(*key)));
        let callbacks = state.callbacks.iter().filter(|(_, left)| **left > 0);
        actions.extend(callbacks.map(|(key, _)| Action::Callback(key.clone())));
    }

    fn faults(&self, state: &State, actions: &mut Vec<Action>) {
        if state.left.losses == 0 {
            return;
        }
        let is_empty = state.stores.seats == SeatsModel::default();
        if !is_empty {
            actions.push(Action::Lose);
        }
        match &state.replica {
            None => actions.push(Action::FallBehind),
            Some(replica) if **replica != state.stores.seats => actions.push(Action::FailOver),
            Some(_) => {}
        }
    }

    fn calls(state: &State, actions: &mut Vec<Action>) {
        for (index, task) in state.tasks.iter().enumerate() {
            // Tasks that are alike have alike futures: one of them goes first.
            if index > 0 && state.tasks[index - 1] == *task {
                continue;
            }
            for (place, call) in &task.outstanding {
                let fates = CallOutcome::of(call, state.left.faults > 0);
                actions.extend(fates.iter().map(|fate| Action::Call(index, *place, *fate)));
            }
            if state.left.faults > 0 {
                actions.push(Action::Crash(index));
            }
        }
    }

    fn call(&self, state: &mut State, index: usize, place: usize, fate: CallOutcome) -> Option<()> {
        let task = state.tasks.remove(index);
        let call = task.call(place)?;
        if fate != CallOutcome::Happens {
            state.left.faults -= 1;
        }
        let reply = fate.reply(|| {
            let now = state.now(&self.scenario);
            let reply = Arc::make_mut(&mut state.stores).apply(now, call);
            if let (Call::Settle { settlement, .. }, Ok(Reply::Settle(settled))) = (call, &reply)
                && let (Settlement::Rescue(order), SettleReply::Settled) = (settlement, settled)
            {
                state.rescued.insert(order.number);
            }
            reply
        });
        self.put(
            state,
            task.answered(&self.scenario, vec![Answer { call: place, reply, resumes: true }]),
        );
        Some(())
    }

    /// A buyer pays now; a provider that lags lists it later.
    fn pay(&self, state: &mut State, buyer: usize, is_listed_late: bool) {
        let now = state.now(&self.scenario);
        let capture = self.scenario.capture(buyer, state.buyer_states[buyer].payments);
        let order = state.stores.orders.get(capture.order);
        let seen = &mut state.buyer_states[buyer];
        seen.payments += 1;
        seen.is_paid_in_time |= order.is_some_and(|order| now < order.payable_until());
        state.callbacks.insert(capture.key.clone(), state.left.callbacks);
        let provider = &mut Arc::make_mut(&mut state.stores).provider;
        if self.scenario.lists.is_some() {
            let lag_seconds = if is_listed_late { LIST_LAG_SECONDS } else { 0 };
            let in_list = InList { made_at: now, from: now.plus_seconds(lag_seconds) };
            provider.in_list.insert(capture.key.clone(), in_list);
        }
        if is_listed_late {
            provider.capture_listed_at(capture, now.plus_seconds(LAG_SECONDS));
        } else {
            provider.capture(capture);
        }
    }

    /// A refund of a buyer's order is asked for.
    fn give_back(&self, state: &mut State, buyer: usize, place: usize) {
        state.buyer_states[buyer].refunds.insert(place);
        let (refund, now) = (self.scenario.buyers[buyer].refunds[place], state.now(&self.scenario));
        self.begin(state, Flow::GiveBack { buyer, refund, now });
    }

    /// A message reaches its consumer.
    fn deliver(&self, state: &mut State, sent: &Sent, is_copy: bool) {
        if is_copy {
            state.left.copies -= 1;
        } else {
            *state.deliveries.entry(sent.clone()).or_default() += 1;
        }
        let (epoch, now) = (epoch_of(&sent.message, state), state.now(&self.scenario));
        self.begin(state, Flow::Consume { sent: sent.clone(), is_copy, epoch, now });
    }

    /// A buyer begins to pay, the second time by another choice.
    fn start(&self, state: &mut State, buyer: usize) {
        let starts = &mut state.buyer_states[buyer].starts;
        *starts += 1;
        let (is_other, now) = (*starts > 1, state.now(&self.scenario));
        self.begin(state, Flow::Start { buyer, is_other, now });
    }

    /// The state after an action, unchecked.
    fn step(&self, before: &State, action: &Action) -> Option<State> {
        let mut state = before.clone();
        let now = state.now(&self.scenario);
        let published = || state.stores.catalogue.sale(self.scenario.id());
        match action {
            Action::Request(buyer) => {
                let epoch = published()?.epoch;
                state.buyer_states[*buyer].requests += 1;
                self.begin(&mut state, Flow::Reserve { buyer: *buyer, epoch, now });
            }
            Action::Cancel(buyer) => {
                state.buyer_states[*buyer].cancels += 1;
                self.begin(&mut state, Flow::Cancel { buyer: *buyer, now });
            }
            Action::GiveBack(buyer, place) => self.give_back(&mut state, *buyer, *place),
            Action::Pay(buyer, is_listed_late) => self.pay(&mut state, *buyer, *is_listed_late),
            Action::Start(buyer) => self.start(&mut state, *buyer),
            Action::FromWallet(buyer) => {
                state.buyer_states[*buyer].from_wallet += 1;
                self.begin(&mut state, Flow::FromWallet { buyer: *buyer, now });
            }
            Action::PayAttempt(key) => {
                let capture = Arc::make_mut(&mut state.stores).provider.pay(*key, now)?;
                state.callbacks.insert(capture.key, state.left.callbacks);
            }
            Action::Callback(key) => {
                *state.callbacks.get_mut(key)? -= 1;
                let capture = state.stores.provider.captured.get(key)?.clone();
                self.begin(&mut state, Flow::Pay { capture, now });
            }
            Action::Deliver(sent, is_copy) => self.deliver(&mut state, sent, *is_copy),
            Action::Sweep => {
                state.left.sweeps -= 1;
                let epoch = next_epoch(&mut state);
                self.begin(&mut state, Flow::Sweep { epoch, now });
            }
            Action::Load => {
                state.left.loads -= 1;
                let epoch = next_epoch(&mut state);
                self.begin(&mut state, Flow::Load { epoch, now });
            }
            Action::Read => {
                state.left.reads -= 1;
                let reader = reader(state.left.reads);
                self.begin(&mut state, Flow::Read { reader, now });
            }
            Action::Dispute => {
                state.left.reads -= 1;
                self.begin(&mut state, Flow::Dispute { now });
            }
            Action::Decide(is_won) => decide(&mut state, *is_won)?,
            Action::Call(task, place, fate) => self.call(&mut state, *task, *place, *fate)?,
            Action::Crash(task) => {
                state.left.faults -= 1;
                state.tasks.remove(*task);
            }
            Action::Tick => state.moment += 1,
            Action::Lose => {
                state.left.losses -= 1;
                Arc::make_mut(&mut state.stores).lose_redis();
                state.replica = None;
            }
            Action::FallBehind => state.replica = Some(Arc::new(state.stores.seats.clone())),
            Action::FailOver => {
                state.left.losses -= 1;
                let replica = state.replica.take()?;
                Arc::make_mut(&mut state.stores).seats = SeatsModel::clone(&replica);
            }
        }
        Some(state)
    }

    /// The invariant that a state breaks, if it breaks one.
    fn check(&self, state: &State) -> check::Checked {
        check::stores(&state.stores)?;
        check::acknowledged(&self.scenario, state)?;
        check::unforgotten(&self.scenario, state)?;
        check::closed(&self.scenario, state)?;
        self.rest.check(&self.scenario, state)
    }

    /// Does something with the scenario's guard away.
    pub(crate) fn guarded<T>(&self, act: impl FnOnce() -> T) -> T {
        match self.scenario.without {
            Some(guard) => without(guard, act),
            None => act(),
        }
    }
}

/// The provider says whose the disputed money is.
fn decide(state: &mut State, is_won: bool) -> Option<()> {
    let disputes = &mut Arc::make_mut(&mut state.stores).provider.disputes;
    let said = if is_won { DisputeState::Won } else { DisputeState::Lost };
    disputes.get_mut(&dispute())?.state = said;
    Some(())
}

/// The name that a load would get that a message asks for.
fn epoch_of(message: &Message, state: &mut State) -> Epoch {
    match message {
        Message::Load(_) => next_epoch(state),
        Message::Expiry { .. }
        | Message::Sync(_)
        | Message::Refund(_)
        | Message::Callback(_)
        | Message::Close(_)
        | Message::Points(_)
        | Message::Draw(_) => epoch(0),
    }
}

/// The name of the next load.
fn next_epoch(state: &mut State) -> Epoch {
    state.epochs += 1;
    epoch(state.epochs)
}

impl Model for Engine {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::start(&self.scenario)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        self.people(state, actions);
        self.deliveries(state, actions);
        if state.left.sweeps > 0 {
            actions.push(Action::Sweep);
        }
        let mut inventories = state.stores.seats.of_sale(&self.scenario.sale);
        let is_lost = inventories.any(|(_, inventory)| inventory.loaded.is_none());
        if state.left.loads > 0 && is_lost {
            actions.push(Action::Load);
        }
        // One reader at a time: a second one would find the lease taken.
        let reads = |flow: &Flow| matches!(flow, Flow::Read { .. });
        if self.scenario.is_disputed {
            if state.left.reads > 0 {
                actions.push(Action::Dispute);
            }
            let report = state.stores.provider.dispute(&dispute());
            if report.is_some_and(|report| report.state == DisputeState::Open) {
                actions.extend([true, false].map(Action::Decide));
            }
        } else if state.left.reads > 0 && !state.tasks.iter().any(|task| reads(&task.flow)) {
            actions.push(Action::Read);
        }
        Self::calls(state, actions);
        if state.moment + 1 < self.scenario.times.len() {
            actions.push(Action::Tick);
        }
        self.faults(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        self.guarded(|| {
            let mut next = self.step(state, &action)?;
            if next.broken.is_none() {
                next.broken = self.check(&next).err();
            }
            Some(next)
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always(PROPERTY, |_, state: &State| state.broken.is_none())]
    }
}
