//! Issued tickets in the model of DynamoDB: whatever is decided on an order that has changed since, the issue of
//! a ticket never goes down, what was revoked is never good again, the first check-in stays, and no buyer gives
//! back what has let somebody in. Without each of the guards one of these breaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;

#[cfg(debug_assertions)]
use engine::domain::basics::guard::Guard;
use engine::domain::basics::ids::DoorName;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::order_refund::{AskedBy, RefundNumber};
use engine::domain::order::{CheckIn, Order};
use engine::domain::payment::refund::{RefundPlan, RefundRequest, RefundedTickets, decide_refund};
use engine::domain::sale::RefundTerms;
use engine::domain::ticket::{
    CheckInDecision, CheckInPlan, ReissuePlan, Serial, TicketNumber, decide_check_in,
    decide_reissue,
};
use engine::ports::ChangeReply;
use model_stores::OrdersModel;
#[cfg(debug_assertions)]
use sim::each_absence;
use sim::one_order::{self, key};
use sim::{SeededRng, each_seed};

const NOW: Timestamp = one_order::START;
const RUNS: u64 = 2_000;
const STEPS: u64 = 40;
const SEATS: u32 = 3;

/// The store with one paid order, whose tickets may be given back.
fn paid() -> (OrdersModel, Order) {
    let terms = RefundTerms { until: NOW.plus_seconds(3600), fee_minor: MinorUnits::ZERO };
    let (stores, number) = one_order::paid(SEATS, Some(terms));
    let order = stores.orders.get(number).unwrap();
    (stores.orders, order)
}

/// Something that was decided, and is carried out later.
enum Plan {
    Reissue(Box<ReissuePlan>),
    Refund(Box<RefundPlan>),
    CheckIn(Box<CheckInPlan>),
}

/// Decides something on an order as it was read.
fn decided(rng: &mut SeededRng, store: &OrdersModel, order: &Order, step: u64) -> Option<Plan> {
    let ticket =
        TicketNumber::try_from(u8::try_from(1 + rng.below(SEATS.into())).unwrap()).unwrap();
    let numbered = order.numbered().find(|of| of.number == ticket)?;
    Some(match rng.below(4) {
        0 => Plan::Reissue(Box::new(decide_reissue(order, &[ticket]).ok()?)),
        1 => {
            let door = DoorName::new(format!("d{}", rng.below(3))).unwrap();
            let check_in = CheckIn { at: NOW.plus_seconds(i64::try_from(step).unwrap()), door };
            let issue = numbered.ticket.issue;
            let serial = Serial { order: order.number, ticket, issue };
            match decide_check_in(Some(order), &order.sale, &serial, &check_in) {
                CheckInDecision::Admit(plan) => Plan::CheckIn(plan),
                CheckInDecision::Repeated(_)
                | CheckInDecision::Double(_)
                | CheckInDecision::Revoked
                | CheckInDecision::Unknown => return None,
            }
        }
        who => {
            let asked_by = if who == 2 { AskedBy::Buyer } else { AskedBy::Operator };
            let named = vec![numbered.ticket.named(numbered.line)];
            let request = RefundRequest {
                number: RefundNumber::try_from(order.refunds.made + 1).ok()?,
                tickets: RefundedTickets::Named(named),
                amount: None,
                asked_by,
                reason: None,
            };
            let payment = store.payment(order.number, &key());
            Plan::Refund(Box::new(decide_refund(order, payment.as_ref(), &request, NOW).ok()?))
        }
    })
}

/// What a step may not change.
fn check(before: &Order, now: &Order, store: &OrdersModel, plan: &Plan) -> Result<(), String> {
    for (was, is) in before.numbered().zip(now.numbered()) {
        let number = is.number;
        if is.ticket.issue < was.ticket.issue {
            return Err(format!("the issue of ticket {number} went down"));
        }
        if !was.ticket.is_live() && (is.ticket.is_live() || is.ticket.issue > was.ticket.issue) {
            return Err(format!("ticket {number} was refunded and is issued anew"));
        }
        if was.ticket.checked_in.is_some() && is.ticket.checked_in != was.ticket.checked_in {
            return Err(format!("ticket {number} has let two in"));
        }
        if !was.ticket.is_live() && is.ticket.checked_in != was.ticket.checked_in {
            return Err(format!("ticket {number} was refunded and let somebody in"));
        }
        let by_buyer = matches!(plan, Plan::Refund(plan) if plan.refund.asked_by == AskedBy::Buyer);
        let goes_back = was.ticket.is_live() && !is.ticket.is_live();
        if by_buyer && goes_back && was.ticket.checked_in.is_some() {
            return Err(format!("the buyer gave ticket {number} back, which was used"));
        }
        let good = is.ticket.is_live().then_some(is.ticket.issue);
        if store.lowest_good(now, number) != good {
            return Err(format!("the list says something else of ticket {number}"));
        }
    }
    let admitted = now.numbered().filter(|of| of.ticket.checked_in.is_some()).count();
    let counted = store.check_ins(&now.sale).admitted;
    (u64::try_from(admitted) == Ok(counted))
        .then_some(())
        .ok_or_else(|| format!("{admitted} tickets let somebody in, and {counted} are counted"))
}

/// One run: what is decided on an order that was read some steps ago is carried out. The outcomes, counted.
fn run(seed: u64, outcomes: &mut BTreeMap<String, u64>) -> Result<(), String> {
    let mut rng = SeededRng::new(seed);
    let (mut store, mut seen) = paid();
    for step in 0..STEPS {
        if rng.below(3) == 0 {
            seen = store.get(seen.number).unwrap();
        }
        let Some(plan) = decided(&mut rng, &store, &seen, step) else { continue };
        let before = store.get(seen.number).unwrap();
        let (name, reply) = match &plan {
            Plan::Reissue(plan) => ("reissue", store.reissue(plan)),
            Plan::Refund(plan) => ("refund", store.give_back(plan)),
            Plan::CheckIn(plan) => ("check-in", store.check_in(plan)),
        };
        // Without a guard of the refund, what is left may be a broken contract: that is no violation of these.
        let reply = reply.unwrap_or(ChangeReply::Conflict);
        *outcomes.entry(format!("{name} {reply:?}")).or_default() += 1;
        let now = store.get(seen.number).unwrap();
        check(&before, &now, &store, &plan).map_err(|what| format!("step {step}: {what}"))?;
    }
    Ok(())
}

#[test]
fn what_is_void_stays_void_and_each_ticket_lets_one_in() {
    let outcomes = each_seed(RUNS, run);
    for kind in ["reissue", "refund", "check-in"] {
        for reply in ["Done", "Conflict"] {
            assert!(outcomes.contains_key(&format!("{kind} {reply}")), "{kind} {reply} never came");
        }
    }
}

#[cfg(debug_assertions)]
#[test]
fn the_absence_of_every_guard_of_a_ticket_is_found() {
    each_absence("tickets", Guard::OF_TICKETS, RUNS, run);
}
