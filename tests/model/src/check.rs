//! What must hold in every state, and what must hold once everything is at rest.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::ids::{InventoryId, Leg, SaleId, Seat, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::tickets::Tickets;
use engine::domain::inventory::{Inventory, SeatLeg};
use engine::domain::ledger::statistics::totals;
use engine::domain::order::dispute::DisputeState;
use engine::domain::order::fact::FactKind;
use engine::domain::order::order_refund::{AskedBy, OrderRefund};
use engine::domain::order::refund::RefundState;
use engine::domain::order::{Order, OrderState, PaymentOutcome, PaymentRecord, RefundReason};
use model_stores::{Place, Stores, accounts_as_told, accounts_at_rest};

use crate::scenario::{PRICE_MINOR, Scenario};
use crate::state::State;

/// What a check came to: what is broken, in words.
pub type Checked = Result<(), String>;

fn must(holds: bool, what: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(what()) }
}

fn places(order: &Order) -> Vec<Place> {
    let of_sale = |at: SeatLeg| Place { sale: order.sale.clone(), at };
    order.held_lines().iter().flat_map(|line| line.seat_legs().map(of_sale)).collect()
}

/// I1, I2, I3, I5, I6, I10 and I11, in what DynamoDB and the provider know, and that Redis has nothing as sold
/// that is not, and no sale in part.
///
/// # Errors
/// Says which of them is broken.
pub fn stores(stores: &Stores) -> Checked {
    claims(stores)?;
    counts(stores)?;
    payments(stores)?;
    refunds(stores)?;
    disputes(stores, false)?;
    exchanges(stores)?;
    wallets(stores)?;
    sold(stores)?;
    loaded(stores)?;
    let orders = &stores.orders;
    let counted = totals(orders.orders.values());
    must(counted == orders.counters, || format!("I6: {counted:?}, counted {:?}", orders.counters))?;
    for (number, order) in &orders.orders {
        let told = orders.told(*number);
        let is_told = told == order.facts.settled();
        must(is_told, || format!("I10: the log says {told:?} of {order:?}"))?;
    }
    accounts_as_told(stores).map_or(Ok(()), |what| Err(format!("I8: {what}")))
}

fn live(stores: &Stores) -> impl Iterator<Item = &Order> {
    stores.orders.orders.values().filter(|order| order.state.is_live())
}

fn claims(stores: &Stores) -> Checked {
    let mut owned = BTreeMap::new();
    for order in live(stores) {
        for place in places(order) {
            let at = format!("{:?}", place.at);
            let other = owned.insert(place, order.number);
            must(other.is_none(), || format!("I1: two live orders have {at}"))?;
        }
    }
    let claimed = &stores.orders.claims;
    must(owned == *claimed, || format!("I2: live orders own {owned:?}, claims are {claimed:?}"))
}

/// Whatever Redis has forgotten: a seat-leg that it has as sold is a paid order's. A comparison reads
/// no owner of such, unless a ticket of it was refunded: then it is nobody's until Redis was told, and one that
/// Redis has forgotten to be free may be anybody's.
fn sold(stores: &Stores) -> Checked {
    let orders = &stores.orders;
    for (id, inventory) in stores.seats.loaded() {
        inventory.check().map_err(|broken| format!("Redis: {broken}"))?;
        for grid in inventory.tiers.values() {
            let legs = (0..).map(Leg).zip(&grid.sold);
            let places = legs.flat_map(|(leg, bits)| {
                (0..bits.len() as u32 * 8).map(move |seat| (leg, Seat(seat)))
            });
            for (leg, seat) in places.filter(|(leg, seat)| grid.is_sold(*leg, *seat)) {
                let at = SeatLeg { tier: grid.tier.clone(), leg, seat };
                let place = Place { sale: id.sale().clone(), at };
                let owner = orders.claims.get(&place).and_then(|owner| orders.orders.get(owner));
                let is_paid = owner.is_some_and(|order| order.state == OrderState::Paid);
                must(is_paid || orders.returned.contains_key(&place), || {
                    format!("Redis has {:?} as sold, its owner is {owner:?}", place.at)
                })?;
            }
        }
    }
    Ok(())
}

/// An inventory that has an epoch in Redis has every tier that is in it, and no other.
fn loaded(stores: &Stores) -> Checked {
    for (id, inventory) in stores.seats.loaded() {
        let Some(listed) = stores.catalogue.sales.get(id.sale()) else { continue };
        let expected: BTreeSet<&TierId> = listed.sale.tiers_in(id).map(|tier| &tier.tier).collect();
        let there: BTreeSet<&TierId> = inventory.tiers.keys().collect();
        must(there == expected, || format!("Redis has {id} with tiers {there:?}"))?;
    }
    Ok(())
}

fn counts(stores: &Stores) -> Checked {
    let mut counts: BTreeMap<(SaleId, UserId), Tickets> = BTreeMap::new();
    let mut attendees = BTreeSet::new();
    for order in live(stores) {
        *counts.entry((order.sale.clone(), order.user.clone())).or_default() += order.tickets();
        for hash in order.attendee_claims() {
            let is_first = attendees.insert((&order.sale, hash));
            must(is_first, || format!("two tickets name {hash}"))?;
        }
    }
    let counted = &stores.orders.counts;
    must(counts == *counted, || format!("I3: tickets {counts:?}, counted {counted:?}"))?;
    for ((sale, user), tickets) in &counts {
        let of_buyer = live(stores).filter(|order| order.sale == *sale && order.user == *user);
        let pending = of_buyer.filter(|order| order.state == OrderState::Pending);
        let replaced: Tickets = pending.map(Order::replaced).sum();
        let limit = stores.catalogue.sales.get(sale).map(|sale| sale.sale.limit());
        let limit = limit.map(|limit| limit.saturating_add(replaced));
        must(limit.is_none_or(|limit| *tickets <= limit), || {
            format!("I3: buyer {user} has {tickets} tickets, over the limit {limit:?}")
        })?;
    }
    Ok(())
}

fn payments(stores: &Stores) -> Checked {
    let orders = &stores.orders;
    for capture in stores.provider.captured.values() {
        let order = orders.orders.get(&capture.order);
        must(order.is_none_or(|order| !order.is_paid_unhanded(capture)), || {
            format!("I14: {:?} was paid by an attempt that nobody has", capture.key)
        })?;
    }
    for record in orders.payments.values() {
        let key = &record.capture.key;
        let order = orders.orders.get(&record.capture.order);
        let is_by_it = |order: &Order| is_or_was_paid(order) && order.payment.as_ref() == Some(key);
        let is_accepted = record.outcome == PaymentOutcome::Accepted;
        must(order.is_some_and(is_by_it) == is_accepted, || {
            format!("I5: the payment says {:?}, the order is {order:?}", record.outcome)
        })?;
        let is_price = order.is_some_and(|order| order.total == record.capture.amount);
        must(!is_accepted || is_price, || {
            format!("another amount has paid: {}", record.capture.amount)
        })?;
        let provider = &stores.provider;
        must(!is_accepted || !provider.refunded.contains_key(key), || {
            "I5: it was accepted and went back".to_owned()
        })?;
        must(!provider.refunded_again.contains(key), || "I5: it went back twice".to_owned())?;
    }
    let is_paid = |order: &&Order| order.state == OrderState::Paid;
    for order in orders.orders.values().filter(is_paid) {
        let key = order.payment.clone().map(|key| (order.number, key));
        let is_known = key.is_some_and(|key| orders.payments.contains_key(&key));
        must(is_known, || format!("I5: paid by nothing: {order:?}"))?;
    }
    Ok(())
}

/// True if an order is paid, or was and its tickets are refunded.
fn is_or_was_paid(order: &Order) -> bool {
    order.state == OrderState::Paid || order.refunds.made > 0
}

/// I11: the refunds of an order are those that its tickets and it speak of, and no more goes back of a payment
/// than was captured.
fn refunds(stores: &Stores) -> Checked {
    let orders = &stores.orders;
    for order in orders.orders.values() {
        let of_order: Vec<&OrderRefund> =
            orders.refunds.values().filter(|refund| refund.key.order == order.number).collect();
        let numbers: Vec<u8> = of_order.iter().map(|refund| refund.key.number.get()).collect();
        must(numbers.iter().copied().eq(1..=order.refunds.made), || {
            format!("I11: refunds {numbers:?} of {order:?}")
        })?;
        for refund in &of_order {
            let of_refund = order.lines_of(refund.key.number);
            let marked: usize = of_refund.iter().map(|line| line.tickets.len()).sum();
            must(marked == refund.tickets.len(), || {
                format!("I11: {marked} tickets bear the number of {refund:?}")
            })?;
        }
        let is_ended = order.live_tickets().next().is_none() && !order.is_tombstone();
        must(order.state != OrderState::Paid || !is_ended, || {
            format!("I11: paid without a ticket: {order:?}")
        })?;
    }
    for ((number, key), record) in &orders.payments {
        let of_payment = orders.refunds.values();
        let of_payment =
            of_payment.filter(|refund| refund.payment == *key && refund.key.order == *number);
        let made: MinorUnits = of_payment.map(|refund| refund.worth().amount_minor).sum();
        let captured = record.capture.amount.amount_minor;
        must(made == record.back && made <= captured, || {
            format!("I11: refunds come to {made} of {record:?}")
        })?;
        let parts = stores.provider.parts.iter().filter(|(refund, _)| refund.key.order == *number);
        let of_payment = parts.filter(|(_, (payment, _))| payment == key);
        let back: MinorUnits = of_payment.map(|(_, (_, amount))| amount.amount_minor).sum();
        must(back <= made, || format!("I11: {back} went back, refunds come to {made}"))?;
    }
    Ok(())
}

/// I11: an order that replaces tickets is paid exactly if they went for it, once.
fn exchanges(stores: &Stores) -> Checked {
    let orders = &stores.orders;
    for order in orders.orders.values().filter(|order| order.exchange.is_some()) {
        let given = orders.refunds.values();
        let given = given.filter(|refund| refund.exchanged_for() == Some(order.number)).count();
        let is_paid = order.state == OrderState::Paid || order.refunds.made > 0;
        must(given == usize::from(is_paid), || {
            format!("I11: tickets went {given} times for {order:?}")
        })?;
    }
    Ok(())
}

/// I8 and I9: a wallet has what it had, with what the facts of its buyer's orders come to, and no less than nothing but for what lost
/// disputes have taken.
fn wallets(stores: &Stores) -> Checked {
    let orders = &stores.orders;
    for ((user, currency), wallet) in &orders.wallets {
        let theirs = orders.orders.values().filter(|order| order.user == *user);
        let moved: i128 =
            theirs.flat_map(Order::wallet_entries).map(|entry| entry.change.entry().left()).sum();
        let had = wallet.balance.left() - moved;
        must(had == i128::from(PRICE_MINOR) || had == 0, || {
            format!("I8: the wallet of {user} in {currency} had {had} at the start: {wallet:?}")
        })?;
        let gone = wallet.entries.iter().filter(|entry| entry.change.is_gone);
        let gone: i128 = gone.map(|entry| entry.change.entry().left()).sum();
        must(wallet.balance.left() >= gone, || format!("I9: the wallet of {user}: {wallet:?}"))?;
    }
    Ok(())
}

/// I15: a wallet that a lost dispute has left with a debt has paid no ticket that is still valid.
fn debts(stores: &Stores) -> Checked {
    let orders = &stores.orders;
    for ((user, _), wallet) in orders.wallets.iter().filter(|(_, it)| it.balance.left() < 0) {
        let theirs = live(stores).filter(|order| order.user == *user);
        let mut bought = theirs.filter(|order| order.is_paid_from_wallet());
        must(bought.next().is_none(), || {
            format!(
                "I15: the wallet of {user} owes, and a ticket that it has paid is valid: {wallet:?}"
            )
        })?;
    }
    Ok(())
}

/// I11: the disputes of a payment are told by its order, one step once, and nothing is refunded while one is open but by
/// it. At rest they are as the provider says (`is_at_rest`).
fn disputes(stores: &Stores, is_at_rest: bool) -> Checked {
    for ((number, key), record) in &stores.orders.payments {
        let Some(order) = stores.orders.orders.get(number) else { continue };
        let told = |kind: FactKind| order.facts.all.iter().filter(|fact| fact.kind == kind).count();
        let times = |state| record.disputes.iter().map(|one| one.times(state)).sum::<usize>();
        let is_told = |state: &DisputeState| times(*state) == told(state.fact_kind());
        must(DisputeState::ALL.iter().all(is_told), || {
            format!("I11: told otherwise: {record:?} {order:?}")
        })?;
        let mut is_open = false;
        for fact in &order.facts.all {
            match fact.kind {
                FactKind::DisputeOpened => is_open = true,
                FactKind::DisputeWon | FactKind::DisputeLost => is_open = false,
                FactKind::RefundMade => {
                    let reason = fact.cause.moved.as_ref().and_then(|moved| moved.reason);
                    let is_by_it = reason == Some(RefundReason::Disputed);
                    must(!is_open || is_by_it, || {
                        format!("I11: refunded while a dispute is open: {order:?}")
                    })?;
                }
                FactKind::Made
                | FactKind::Paid
                | FactKind::Rescued
                | FactKind::Cancelled
                | FactKind::Expired
                | FactKind::RefundDue
                | FactKind::CaptureRefused
                | FactKind::Refunded
                | FactKind::RefundUndone => {}
            }
        }
        let by_disputes: BTreeSet<&str> = stores
            .orders
            .refunds
            .values()
            .filter(|refund| refund.key.order == *number && refund.asked_by == AskedBy::Dispute)
            .filter_map(|refund| refund.reason.as_deref())
            .collect();
        // What a wallet has paid goes back because of a dispute of what has filled it.
        let fills = |of: &Order| key.provider.is_wallet() && of.user == order.user && of.tops_up();
        let filled = stores
            .orders
            .payments
            .iter()
            .filter(|((number, _), _)| stores.orders.orders.get(number).is_some_and(fills));
        let disputes = filled.flat_map(|(_, of)| &of.disputes).chain(&record.disputes);
        let lost = disputes.filter(|dispute| dispute.state != DisputeState::Won);
        let lost: BTreeSet<&str> = lost.map(|dispute| dispute.id.as_str()).collect();
        must(by_disputes.is_subset(&lost), || format!("I11: {by_disputes:?} of {record:?}"))?;
        for report in stores.provider.disputes.values().filter(|report| report.payment == *key) {
            // After an exchange it is of the order that has the money.
            let has_money = |of: &&PaymentRecord| {
                let captured = of.captured.as_ref().map(|captured| &captured.capture.key);
                captured == Some(key) || of.capture.key == *key
            };
            let holders = stores.orders.payments.values().filter(has_money);
            let known: Vec<_> = holders
                .flat_map(|holder| &holder.disputes)
                .filter(|dispute| dispute.id == report.id)
                .collect();
            let is_known = !known.is_empty() && known.iter().all(|one| one.state == report.state);
            must(is_known || !is_at_rest, || format!("{report:?} is known as {known:?}"))?;
        }
    }
    Ok(())
}

/// What was acknowledged stays true.
///
/// # Errors
/// Says what is broken.
pub fn acknowledged(scenario: &Scenario, state: &State) -> Checked {
    let now = state.now(scenario);
    for (index, (buyer, seen)) in scenario.buyers.iter().zip(&state.buyer_states).enumerate() {
        let who = index + 1;
        let Some(lines) = &seen.ordered else { continue };
        let order = state.stores.orders.orders.get(&buyer.number);
        let order = order.ok_or_else(|| format!("buyer {who} was given an order: none is"))?;
        must(order.all_lines() == *lines, || {
            format!("buyer {who} was given {lines:?}, the order is {order:?}")
        })?;
        // An exchange ends if its tickets are gone, and a paid order if they went for others.
        let is_given = scenario.buyers.iter().any(|other| {
            let old = other.exchange.map(|(old, _)| old);
            old == Some(index)
        });
        let is_exchange = is_given || buyer.exchange.is_some();
        let goes_back = !seen.refunds.is_empty() || scenario.is_disputed || is_exchange;
        let may_end = seen.cancels > 0 || order.payable_until() <= now || goes_back;
        must(order.state.is_live() || may_end, || {
            format!("buyer {who}'s order ended before its time: it is {}", order.state.as_str())
        })?;
        let is_unasked = order.state == OrderState::Expired && seen.is_paid_in_time;
        must(!is_unasked || !state.is_fault_free(scenario), || {
            format!("buyer {who} paid in time, nothing failed, and the order expired")
        })?;
        let is_paid = is_or_was_paid(order) && order.payment == seen.paid;
        must(seen.paid.is_none() || is_paid, || {
            format!("buyer {who}'s payment was accepted, the order is {}", order.state.as_str())
        })?;
        must(!seen.is_cancelled || order.state != OrderState::Pending, || {
            format!("buyer {who} had it cancelled, and it is pending")
        })?;
    }
    Ok(())
}

/// Redis has taken whatever is claimed, as long as it has forgotten nothing and no request came twice:
/// of two at once, one that is refused gives up the hold that the other goes on to claim. (The claim
/// keeps the seat, and the sweeper restores the hold.) A rescue claims first and sells then.
///
/// # Errors
/// Says what is free and should not be.
pub fn unforgotten(scenario: &Scenario, state: &State) -> Checked {
    let came_twice = state.buyer_states.iter().any(|seen| seen.requests > 1);
    if came_twice || state.left.losses != scenario.budget.losses {
        return Ok(());
    }
    let of_the_sale =
        state.stores.orders.claims.iter().filter(|(place, _)| place.sale == *scenario.id());
    for (Place { at, .. }, order) in of_the_sale {
        let inventory = state.stores.seats.get(&scenario.sale.inventory_of(&at.tier));
        let grid = inventory.and_then(|inventory| inventory.tiers.get(&at.tier));
        let is_taken = grid.is_some_and(|grid| grid.is_taken(at.leg, at.seat));
        must(is_taken || state.rescued.contains(order), || {
            format!("Redis has forgotten nothing and would give {at:?} of order {order} away")
        })?;
    }
    Ok(())
}

/// Where every payment is started here and nothing goes wrong, money pays its order in time or does not come:
/// none is rescued, and none goes back but what a buyer paid who cancelled.
///
/// # Errors
/// Says which money came after all.
pub fn closed(scenario: &Scenario, state: &State) -> Checked {
    if !scenario.has_starts() || !state.is_fault_free(scenario) {
        return Ok(());
    }
    must(state.rescued.is_empty(), || format!("paid after it had ended: {:?}", state.rescued))?;
    for record in state.stores.orders.payments.values() {
        // Beside a page that was not opened another payment may be started: who pays both gets the later one back.
        let is_second = record.outcome == PaymentOutcome::Refund(RefundReason::SecondPayment);
        let is_right = matches!(
            record.outcome,
            PaymentOutcome::Accepted | PaymentOutcome::Refund(RefundReason::Cancelled)
        ) || is_second && state.stores.provider.is_lazy;
        must(is_right, || format!("money came that was closed: {record:?}"))?;
    }
    Ok(())
}

/// I4: Redis equals DynamoDB: taken is claimed, sold is paid, held is pending, bought is counted.
///
/// # Errors
/// Says in what they differ.
pub fn equal(scenario: &Scenario, stores: &Stores) -> Checked {
    let mut bought: BTreeMap<UserId, Tickets> = BTreeMap::new();
    for (id, inventory) in stores.seats.of_sale(&scenario.sale) {
        equal_in(scenario, stores, &id, &inventory)?;
        for (user, tickets) in &inventory.bought {
            *bought.entry(user.clone()).or_default() += *tickets;
        }
    }
    let counted = stores.orders.counts.iter().filter(|((sale, _), _)| sale == scenario.id());
    let counted: BTreeMap<UserId, Tickets> =
        counted.map(|((_, user), count)| (user.clone(), *count)).collect();
    must(counted == bought, || format!("I4: counted {counted:?}, in Redis {bought:?}"))
}

/// [`equal`] of one inventory, but for what buyers have bought.
fn equal_in(
    scenario: &Scenario,
    stores: &Stores,
    id: &InventoryId,
    inventory: &Inventory,
) -> Checked {
    let epoch = stores.catalogue.sales.get(scenario.id()).and_then(|sale| sale.epoch.clone());
    let loaded = inventory.loaded.as_ref().map(|(epoch, _)| epoch.clone());
    must(loaded == epoch, || format!("I4: Redis has {id} as {loaded:?}, not {epoch:?}"))?;
    let orders = &stores.orders;
    for tier in scenario.sale.tiers_in(id) {
        let Some(grid) = inventory.tiers.get(&tier.tier) else {
            return Err(format!("I4: Redis has no tier {}", tier.tier));
        };
        let seats = (0..tier.layout.initial().len() as u32 * 8).map(Seat);
        for seat in seats.filter(|seat| tier.layout.sells(*seat)) {
            for leg in scenario.sale.whole().iter() {
                let at = SeatLeg { tier: tier.tier.clone(), leg, seat };
                let place = Place { sale: scenario.id().clone(), at };
                let owner = orders.claims.get(&place).and_then(|owner| orders.orders.get(owner));
                let state = owner.map(|order| order.state);
                let (taken, sold) = (grid.is_taken(leg, seat), grid.is_sold(leg, seat));
                must(
                    taken == state.is_some() && sold == (state == Some(OrderState::Paid)),
                    || format!("I4: {:?} is taken {taken}, sold {sold}, owner {state:?}", place.at),
                )?;
            }
        }
    }
    let is_here = |order: &&Order| {
        let tiers = order.lines.iter().map(|line| &line.tier);
        scenario.sale.inventory_of_all(tiers).as_ref() == Some(id)
    };
    let pending = orders.orders.values().filter(|order| order.state == OrderState::Pending);
    let pending: BTreeMap<_, _> =
        pending.filter(is_here).map(|order| (order.number, order.hold_record())).collect();
    must(pending == inventory.holds, || {
        format!("I4: pending are {pending:?}, held are {:?}", inventory.holds)
    })
}

/// At rest nothing is undecided: no order is pending (I7), every capture has its decision (I5), every
/// fact is settled (I6, I10), and Redis equals DynamoDB (I4).
///
/// # Errors
/// Says what is broken.
pub fn rest(scenario: &Scenario, stores: &Stores) -> Checked {
    self::stores(stores)?;
    disputes(stores, true)?;
    debts(stores)?;
    for order in stores.orders.orders.values() {
        must(order.state != OrderState::Pending, || format!("I7: still pending: {order:?}"))?;
        // A page that was not opened is open until its expiry, which comes after the bound.
        let is_closed = order.attempts.open().all(|attempt| attempt.is_absent);
        must(is_closed, || format!("a payment stays open: {order:?}"))?;
        // What was refunded while the bank had the money already is asked for again a day later.
        let is_back = order.state != OrderState::RefundDue || scenario.is_disputed;
        must(is_back, || format!("I5: its money is back and it does not say so: {order:?}"))?;
        let is_settled = order.facts.are_settled();
        must(is_settled, || format!("I10: never settled: {order:?}"))?;
    }
    accounts_at_rest(stores).map_or(Ok(()), |what| Err(format!("I8: {what}")))?;
    for refund in stores.orders.refunds.values() {
        let is_by_dispute = refund.is_taken_by_dispute() || refund.refund.refusal.is_some();
        // What goes back into a wallet is there with what says so.
        let is_sent = refund.payment.provider.is_wallet()
            || stores.provider.parts.contains_key(&refund.name());
        let is_back = is_sent || is_by_dispute;
        let is_said = refund.refund.state == RefundState::Refunded;
        let waits = refund.refund.state == RefundState::Failed || refund.refund.waits_for_dispute();
        let is_left = scenario.is_disputed && waits;
        let is_nothing = refund.amount.amount_minor == MinorUnits::ZERO;
        must((is_back || is_nothing) && is_said || is_left, || {
            format!("I11: its money is not back: {refund:?}")
        })?;
    }
    for capture in stores.provider.captured.values() {
        let key = (capture.order, capture.key.clone());
        let record = stores.orders.payments.get(&key);
        let record = record.ok_or_else(|| format!("I5: never decided: {capture:?}"))?;
        let is_back = stores.provider.refunded.contains_key(&capture.key);
        let stays = record.outcome == PaymentOutcome::Accepted;
        must(stays != is_back, || format!("I5: {:?}, went back {is_back}", record.outcome))?;
    }
    equal(scenario, stores)
}
