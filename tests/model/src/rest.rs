//! Rest: what is left when every process dies where it stands, and only the provider, the sweeper and the
//! queues that lose nothing go on.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::{Capture, Order, OrderState};
use model_stores::{Message, Sent, Stores};

use crate::check::{self, Checked};
use crate::direct;
use crate::flow::{Flow, Outcome};
use crate::scenario::{PRICE_MINOR, Scenario, epoch};
use crate::state::State;

/// When the sweeper runs after the last deadline and its grace, in seconds: once within a minute, once
/// more within two, and later, when what it leaves to messages at first is due.
const SWEEPS_SECONDS: [i64; 4] = [60, 120, 600, 1200];
/// Number of times that it has run by the time that no order may be pending any more (I7).
const SWEEPS_TO_THE_BOUND: usize = 2;

/// The stores that were brought to rest before, and held.
#[derive(Debug, Default)]
pub struct Rest {
    known: Mutex<HashSet<u64>>,
}

impl Rest {
    /// Checks what a state comes to if every process dies and every message is lost but those that
    /// send money back, have a capture decided or payments closed; and, if nothing is under way, nothing has gone wrong and no request came
    /// twice, that Redis needs no repair at all.
    ///
    /// # Errors
    /// Says what is broken.
    pub fn check(&self, scenario: &Scenario, state: &State) -> Checked {
        let is_idle = state.tasks.is_empty();
        let came_twice = state.buyer_states.iter().any(|seen| seen.requests > 1);
        // What the reader decides is sold by the consumer of a message.
        let is_read = scenario.budget.reads > 0;
        // What is paid by who speaks to providers is sold by that consumer, too.
        let brings_up =
            |sent: &Sent| matches!(sent.message, Message::Expiry { .. } | Message::Close(_));
        let is_under_way = state.stores.queues.visible(state.now(scenario)).any(brings_up);
        // A sale that comes after the refund marks a seat sold that is nobody's: the comparison finds it.
        let pays = scenario.budget.callbacks > 0
            || scenario.buyers.iter().any(|buyer| buyer.from_wallet > 0);
        let sells_late =
            pays && state.stores.orders.orders.values().any(|order| order.refunds.made > 0);
        // The comparison finds the seats of a lost dispute.
        let is_left = came_twice || is_read || sells_late || scenario.is_disputed;
        if is_idle && !is_left && !is_under_way && state.is_fault_free(scenario) {
            let said = "though nothing went wrong and nothing was repaired";
            check::equal(scenario, &state.stores).map_err(|what| format!("{what}, {said}"))?;
        }
        let mut hasher = DefaultHasher::new();
        (&state.stores, &state.kept, state.moment).hash(&mut hasher);
        let print = hasher.finish();
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known().contains(&print) {
            settle(scenario, state).map_err(|what| {
                format!("if every process dies here and the sweeper runs: {what}")
            })?;
            known().insert(print);
        }
        Ok(())
    }
}

/// Brings the stores to rest and checks them.
fn settle(scenario: &Scenario, state: &State) -> Checked {
    let now = state.now(scenario);
    let mut stores = Stores::clone(&state.stores);
    let promised = promised(&stores);
    let ends = |order: &Order| scenario.grace.end_from(order.payable_until());
    let pending = stores.orders.orders.values().map(ends);
    let inventories = stores.seats.loaded().map(|(_, inventory)| inventory);
    let holds = inventories.flat_map(|inventory| inventory.holds.values());
    let last = pending.chain(holds.map(|record| record.deadline)).fold(now, Timestamp::max);
    for (run, seconds) in SWEEPS_SECONDS.into_iter().enumerate() {
        let now = last.plus_seconds(seconds);
        if scenario.is_disputed {
            run_flow(scenario, &mut stores, now, &Flow::Dispute { now })?;
        }
        let sweep = Flow::Sweep { epoch: epoch(1000 + run), now };
        run_flow(scenario, &mut stores, now, &sweep)?;
        // The queues that money goes back through, that captures are kept in, and that have payments
        // closed, lose nothing for long.
        let lasts = |sent: &&Sent| {
            matches!(sent.message, Message::Refund(_) | Message::Callback(_) | Message::Close(_))
        };
        let lasting: Vec<Sent> = stores.queues.visible(now).filter(lasts).cloned().collect();
        for sent in lasting {
            let consume =
                Flow::Consume { sent: sent.clone(), is_copy: false, epoch: epoch(0), now };
            run_flow(scenario, &mut stores, now, &consume)?;
            stores.queues.take(&sent);
        }
        if run + 1 == SWEEPS_TO_THE_BOUND {
            // A provider calls until it is told that all is done, also late.
            let calls = |capture: &&Capture| !state.kept.contains(&capture.key);
            let captured = stores.provider.captured.values().filter(calls);
            for capture in captured.cloned().collect::<Vec<Capture>>() {
                run_flow(scenario, &mut stores, now, &Flow::Pay { capture, now })?;
            }
        }
    }
    check::rest(scenario, &stores)?;
    let is_paid = |number: &&OrderNumber| {
        stores.orders.get(**number).is_some_and(|order| order.state == OrderState::Paid)
    };
    match promised.iter().find(|number| !is_paid(number)) {
        None => Ok(()),
        Some(number) => Err(format!("the provider has the money for {number}, and it is not paid")),
    }
}

/// The pending orders for which the provider has captured what they cost: the sweeper must find that
/// before it ends them.
fn promised(stores: &Stores) -> Vec<OrderNumber> {
    let captured = stores.provider.captured.values();
    let right = captured.filter(|capture| capture.amount.amount_minor == PRICE_MINOR);
    let orders = right.filter_map(|capture| stores.orders.get(capture.order));
    let pending = orders.filter(|order| order.state == OrderState::Pending);
    pending.map(|order| order.number).collect()
}

fn run_flow(scenario: &Scenario, stores: &mut Stores, now: Timestamp, flow: &Flow) -> Checked {
    let outcome = direct::run(scenario, stores, now, flow);
    match outcome.broken_contract() {
        Some(what) => Err(format!("a broken contract: {what}")),
        None => match outcome {
            Outcome::Failed(error) => Err(format!("{flow:?}: {error}")),
            Outcome::Ordered(_)
            | Outcome::Refused(_)
            | Outcome::Decided(_)
            | Outcome::Kept
            | Outcome::Cancelled
            | Outcome::NotCancelled(_)
            | Outcome::GivenBack
            | Outcome::NotGivenBack(_)
            | Outcome::Started(_)
            | Outcome::NotStarted(_)
            | Outcome::NotFromWallet(_)
            | Outcome::Done => Ok(()),
            Outcome::NotRecorded(refusal) => Err(format!("{flow:?}: {refusal}")),
        },
    }
}
