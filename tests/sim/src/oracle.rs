//! What was acknowledged, what must never change, and the rules that hold after every step.
//!
//! The rules are the invariants of `docs/architecture.md`, I1 to I7, and what follows from them for
//! those who ask: an order that was acknowledged to its buyer exists, a paid order stays paid, a decision about
//! money is made once. Of Redis little is promised, because DynamoDB decides; but as long as nothing
//! made it forget, it too must be right after every step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use engine::domain::basics::ids::{Epoch, InventoryId, Leg, SaleId, Seat, TierId, UserId};
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{
    HeldLine, HoldRecord, HoldReply, Inventory, LoadPart, LoadReply, MarkReply, ReleaseReply,
    RepairReply, Restore, RestoreReply, SeatLeg, SellReply, TierGrid, UnsellReply,
};
use engine::domain::ledger::statistics::totals;
use engine::domain::order::attendee::{AttendeeHash, max_named};
use engine::domain::order::order_refund::{OrderRefund, RefundKey};
use engine::domain::order::place::{MAX_EXTENSION_SECONDS, Place as StartPlace};
use engine::domain::order::refund::RefundState;
use engine::domain::order::{
    Order, OrderState, PaymentKey, PaymentOutcome, PaymentRecord, RefundReason, TicketName,
};
use engine::domain::payment::grace::FOR_THE_PROVIDER_SECONDS;
use engine::domain::payment::start::Turn;
use engine::domain::sale::SaleState;
use engine::domain::sale::archive::Lifecycle;
use engine::ports::{ChangeReply, CreateReply, SettleReply, Settlement, Stored};
use model_stores::{
    Call, Listed, Place, Reply, accounts_as_told, accounts_at_rest, points_as_given, points_at_rest,
};

use crate::environment::{Environment, inventory_of, writes_orders, writes_redis};
use crate::fault::Fault;
use crate::plan::{GRACE, LIST_LAG, provider_id, sale_id};
use crate::room::rules::RoomOracle;

/// The error of a clock at most, in milliseconds: an order may expire that much early.
const CLOCKS_MS: i64 = 4_000;

/// History that the rules compare with.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// The seats of each order that was acknowledged to its buyer.
    pub acknowledged: BTreeMap<OrderNumber, Vec<HeldLine>>,
    /// Orders that were paid at some time.
    paid: BTreeSet<OrderNumber>,
    /// Orders for which the right amount was captured by their deadline.
    pub paid_in_time: BTreeSet<OrderNumber>,
    /// Captures of no order of which an operator has said what becomes of them.
    pub told: BTreeSet<PaymentKey>,
    /// Orders that had ended at some time, and tombstones.
    ended: BTreeSet<OrderNumber>,
    /// What was decided of each payment first.
    decided: BTreeMap<PaymentKey, PaymentOutcome>,
    /// Holds that refused requests gave back.
    given_up: BTreeMap<OrderNumber, Vec<HoldRecord>>,
    /// Orders whose hold was written again after Redis had forgotten it.
    restored: BTreeSet<OrderNumber>,
    /// Seat-legs that were left taken in Redis for an order whose hold was no longer there.
    left_taken: BTreeSet<Place>,
    /// Seat-legs of refunded tickets that were freed under another's hold, with its order.
    freed_under: BTreeSet<(Place, OrderNumber)>,
    /// Where each refund stood after the last write.
    refunds: BTreeMap<PaymentKey, RefundState>,
    /// Orders that were pending after the last write, and from when on they should not be.
    pending: BTreeMap<OrderNumber, Timestamp>,
    /// The first of those times.
    first_deadline: Option<Timestamp>,
    /// The people of whom each buyer learned, or could find out, whether they have a ticket.
    learned: BTreeMap<UserId, BTreeSet<AttendeeHash>>,
    /// What was undecided when an archiving began to look, by invocation.
    undecided: BTreeMap<usize, Undecided>,
    /// The highest limit that the sale ever had.
    pub highest_limit: u16,
    /// The epoch that was loaded last of each inventory.
    last_loads: BTreeMap<InventoryId, Epoch>,
    /// The parts of each load that have reached Redis, whatever it said.
    parts: BTreeMap<(Epoch, InventoryId), BTreeMap<u32, LoadPart>>,
    /// The number of times that seats were given back in Redis, or forgotten to be taken.
    pub given_back: u64,
    /// The number of times that Redis forgot something.
    pub forgotten: u64,
    /// Seat-legs of refunded tickets that Redis was not told of yet.
    untold: BTreeSet<Place>,
    /// What was decided, told and shown in the room.
    pub room: RoomOracle,
}

/// What was undecided at one moment.
#[derive(Debug)]
struct Undecided {
    /// Pending orders, and paid ones that were not counted.
    orders: BTreeSet<OrderNumber>,
    /// Payments of orders that were to go back and had not.
    refunds: BTreeSet<(OrderNumber, PaymentKey)>,
    /// The same of refunds of orders.
    parts: BTreeSet<RefundKey>,
}

/// What there was before a call took effect, of what the rules compare.
#[derive(Debug)]
pub(crate) enum Before {
    Nothing,
    /// The epoch of the inventory that a script met.
    Epoch(Option<Epoch>),
    /// For a hold also whether its number had one.
    Hold(Option<Epoch>, bool),
    /// For a restore also what must not be there if it succeeds.
    Restore(Option<Epoch>, Option<String>),
    /// For a repair also a hold that covers something it is to free.
    Repair(Option<Epoch>, Option<(OrderNumber, Leg, Seat)>),
    /// What a load met.
    Load(Met),
    /// The places of the order whose attempts are written.
    Places(Vec<StartPlace>),
}

/// What a load meets.
#[derive(Debug)]
pub(crate) struct Met {
    /// True if Redis has every inventory of the sale in the catalogue's own epoch.
    in_order: bool,
    /// True if it has this one so, and the load brings what is to be sold.
    selling: bool,
}

/// Each seat-leg of an order.
fn places(order: &Order) -> Vec<Place> {
    let of_line = |line: &HeldLine| -> Vec<SeatLeg> { line.seat_legs().collect() };
    let seat_legs = order.held_lines().iter().flat_map(of_line).collect::<Vec<_>>();
    seat_legs.into_iter().map(|at| Place { sale: order.sale.clone(), at }).collect()
}

/// The orders whose holds cover a seat-leg.
fn holders(inventory: &Inventory, at: &SeatLeg) -> impl Iterator<Item = OrderNumber> {
    let covering = inventory.holds.iter().filter(|(_, record)| {
        record.lines.iter().flat_map(HeldLine::seat_legs).any(|held| held == *at)
    });
    covering.map(|(order, _)| *order)
}

impl Oracle {
    /// Redis has forgotten some of its last writes, or all: seats may be free again.
    pub(crate) fn redis_has_forgotten(&mut self) {
        self.given_back += 1;
        self.forgotten += 1;
    }

    /// A seat-leg was freed in Redis.
    fn is_free_again(&mut self, at: SeatLeg) {
        let place = Place { sale: sale_id(), at };
        self.untold.remove(&place);
        self.left_taken.remove(&place);
    }
}

impl Environment {
    /// Looks at what a call is about to meet.
    pub(crate) fn before(&self, call: &Call) -> Before {
        let inventory = inventory_of(call).and_then(|id| self.stores.seats.get(id));
        let epoch = || inventory?.loaded.as_ref().map(|(epoch, _)| epoch.clone());
        if let Call::Repair { command } = call {
            // One sweep may write a hold again while another looks, and its order may end before that one reads the
            // claims: the hold is about to go.
            let orders = &self.stores.orders.orders;
            let is_live =
                |order: &OrderNumber| orders.get(order).is_none_or(|it| it.state.is_live());
            let is_left_over =
                |order: &OrderNumber| self.oracle.restored.contains(order) && !is_live(order);
            let is_covered = |(leg, seat): &(Leg, Seat)| {
                let mut holds = inventory?.holds.iter().filter(|(order, _)| !is_left_over(order));
                let covering =
                    holds.find(|(_, record)| covers(&record.lines, *leg, *seat, command));
                covering.map(|(order, _)| (*order, *leg, *seat))
            };
            return Before::Repair(epoch(), command.leaked.iter().find_map(is_covered));
        }
        if let Call::Hold { command } = call {
            let is_there = inventory.is_some_and(|at| at.holds.contains_key(&command.order));
            return Before::Hold(epoch(), is_there);
        }
        if let Call::Restore { command } = call {
            return Before::Restore(epoch(), inventory.and_then(|at| self.in_the_way(at, command)));
        }
        if matches!(call, Call::Sell { .. }) {
            return Before::Epoch(epoch());
        }
        if let Call::Load { part } = call {
            let command = &part.load;
            let named = self.stores.catalogue.sales.get(command.inventory.sale());
            let named = named.and_then(|listed| listed.epoch.clone());
            let is_named =
                |id: &InventoryId| named.is_some() && self.stores.seats.epoch(id) == named;
            let is_other = named.as_ref() != Some(&command.epoch);
            let in_order = is_other && self.plan.sale.inventories().iter().all(is_named);
            let is_content = !command.tiers.is_empty() || part.is_last;
            let selling = is_other && is_content && is_named(&command.inventory);
            return Before::Load(Met { in_order, selling });
        }
        if let Call::KeepAttempts { order } = call {
            let stored = self.stores.orders.orders.get(&order.number);
            let places = stored.map(|order| order.attempts.places.clone());
            return Before::Places(places.unwrap_or_default());
        }
        Before::Nothing
    }

    /// A place that an order has no more was used, in time; one that is late makes room for another.
    fn check_places(&mut self, invocation: usize, order: &Order, before: &[StartPlace]) {
        let gone = before.iter().filter(|place| !order.attempts.places.contains(place));
        for place in gone {
            let early = place.at.ms_since(self.now);
            if early > CLOCKS_MS {
                let what = format!("{} uses its place {early} ms before its time", order.number);
                self.broken("place", what);
            }
            self.invocations[invocation].turns += 1;
            self.tally.reach("a place is used or late");
        }
    }

    /// A payment is started by a turn, or in its order's place: each is good for one call.
    fn check_turn(&mut self, invocation: usize, order: &Order) {
        let turns = &mut self.invocations[invocation].turns;
        match turns.checked_sub(1) {
            Some(left) => *turns = left,
            None => {
                let what = format!("{} is started without a turn or a place", order.number);
                self.broken("turn", what);
            }
        }
    }

    /// What must not be there if a forgotten hold is written again: its seats sold, or held by others
    /// though nothing made Redis forget.
    fn in_the_way(&self, inventory: &Inventory, command: &Restore) -> Option<String> {
        if inventory.holds.contains_key(&command.order) {
            return None;
        }
        let seat_legs: BTreeSet<SeatLeg> =
            command.record.lines.iter().flat_map(HeldLine::seat_legs).collect();
        let is_sold = |at: &&SeatLeg| {
            let place = Place { sale: sale_id(), at: (*at).clone() };
            let was_returned = self.stores.orders.returned.contains_key(&place);
            let grid = inventory.tiers.get(&at.tier);
            !was_returned && grid.is_some_and(|grid| grid.is_sold(at.leg, at.seat))
        };
        if let Some(sold) = seat_legs.iter().find(is_sold) {
            return Some(format!("{sold:?} is sold"));
        }
        if !self.plan.redis_remembers() {
            return None;
        }
        let order = self.stores.orders.orders.get(&command.order);
        if let Some(order) = order.filter(|order| order.state != OrderState::Pending) {
            return Some(format!("it is {}", order.state.as_str()));
        }
        let mut others = inventory.holds.iter();
        let other = others.find(|(_, record)| {
            let mut theirs = record.lines.iter().flat_map(HeldLine::seat_legs);
            theirs.any(|at| seat_legs.contains(&at))
        });
        other.map(|(number, _)| format!("{number} holds a seat of it"))
    }

    /// Checks what a call did.
    pub(crate) fn after(
        &mut self,
        invocation: usize,
        call: &Call,
        before: Before,
        reply: &Stored<Reply>,
    ) {
        // What expects its own epoch is to replace terms.
        if let Call::Load { part } = call
            && part.load.expected.as_ref() != Some(&part.load.epoch)
        {
            let key = (part.load.epoch.clone(), part.load.inventory.clone());
            let parts = self.oracle.parts.entry(key).or_default();
            parts.insert(part.place, part.clone());
        }
        let Ok(reply) = reply else { return };
        self.count(call, reply);
        self.check_epoch(call, &before, reply);
        match (call, reply, before) {
            (Call::Grid { tier, .. }, _, _) => {
                let forgotten = self.oracle.forgotten;
                self.invocations[invocation].read_at.insert(tier.clone(), forgotten);
            }
            (
                Call::Repair { command },
                Reply::Repair(RepairReply::Repaired),
                Before::Repair(_, held),
            ) => {
                self.oracle.given_back += 1;
                for (leg, seat) in &command.leaked {
                    let (tier, leg, seat) = (command.tier.clone(), *leg, *seat);
                    self.oracle.is_free_again(SeatLeg { tier, leg, seat });
                }
                // A Redis that forgets between a sweep's look and its repair has the counters again that the
                // sweep saw, and holds that came or went in between: docs/correctness.md, I4.
                let read_at = self.invocations[invocation].read_at.get(&command.tier);
                if let Some((order, leg, seat)) = held
                    && read_at.is_none_or(|at| *at == self.oracle.forgotten)
                {
                    let what =
                        format!("seat {} on leg {leg} is freed, and {order} holds it", seat.0);
                    self.broken("repair", what);
                }
            }
            (
                Call::Load { part },
                Reply::Load(reply @ (LoadReply::Loaded | LoadReply::Staged)),
                Before::Load(met),
            ) => {
                self.oracle.given_back += 1;
                let id = &part.load.inventory;
                if met.in_order {
                    let what = format!("{id} is replaced, and nothing was wrong with its sale");
                    self.broken("reload", what);
                } else if met.selling {
                    let what = format!("{id} was selling while the claims of its load were read");
                    self.broken("fence", what);
                }
                if *reply == LoadReply::Loaded {
                    self.oracle.last_loads.insert(id.clone(), part.load.epoch.clone());
                    self.check_whole(part);
                }
            }
            (Call::Loaded { epoch, .. }, Reply::Loaded(ChangeReply::Done), _) => {
                let inventories = self.plan.sale.inventories();
                let last = |id: &InventoryId| self.oracle.last_loads.get(id);
                let other = inventories.iter().find(|id| last(id) != Some(epoch));
                if let Some(id) = other {
                    let last = last(id).map(Epoch::as_str);
                    let what = format!("{epoch} is named, and {last:?} was loaded last of {id}");
                    self.broken("lease", what);
                }
            }
            (
                Call::Restore { command },
                Reply::Restore(RestoreReply::Restored),
                Before::Restore(_, in_the_way),
            ) => {
                self.oracle.restored.insert(command.order);
                if let Some(in_the_way) = in_the_way {
                    let what = format!("{} is restored, but {in_the_way}", command.order);
                    self.broken("restore", what);
                }
            }
            (
                Call::Hold { command },
                Reply::Hold(HoldReply::Held { record, .. }),
                Before::Hold(_, had_one),
            ) => {
                self.check_not_lost_again(invocation, &record.lines);
                let sale = &self.plan.sale;
                let opens_at = sale.file().opens_at;
                let departs =
                    record.lines.iter().filter_map(|line| sale.departure(line.legs)).min();
                let in_time = opens_at <= command.now && command.now < sale.sells_until();
                if !had_one && !in_time {
                    let what = format!("{} is held outside the sale's hours", command.order);
                    self.broken("window", what);
                }
                let is_late = |departs| departs <= command.now || departs < record.deadline;
                if !had_one && departs.is_some_and(is_late) {
                    let what = format!("{} is held beyond the train's departure", command.order);
                    self.broken("departed", what);
                }
            }
            (
                Call::Settle { settlement: Settlement::Rescue(order), .. },
                Reply::Settle(SettleReply::Settled),
                _,
            ) => {
                let sale = &self.plan.sale;
                if order.lines.iter().any(|line| sale.has_left(line.legs, order.changed_at)) {
                    let what = format!("{} is rescued, and the train has left", order.number);
                    self.broken("departed", what);
                }
            }
            (Call::GiveBack { plan }, Reply::GiveBack(ChangeReply::Done), _) => {
                self.oracle.untold.extend(places(&plan.taken_back()));
            }
            (Call::Unsell { command }, Reply::Unsell(UnsellReply::Unsold), _) => {
                self.oracle.given_back += 1;
                for at in command.lines.iter().flat_map(HeldLine::seat_legs) {
                    // Of a rescued order: it was sold what another held by then, and that one's claim decides.
                    let inventory = self.stores.seats.of(&command.inventory);
                    let under: Vec<OrderNumber> = holders(inventory, &at).collect();
                    let place = Place { sale: sale_id(), at };
                    let under = under.into_iter().map(|order| (place.clone(), order));
                    self.oracle.freed_under.extend(under);
                    let was_untold = self.oracle.untold.remove(&place);
                    if !was_untold && self.plan.redis_forgets_nothing() {
                        let what = format!("{:?} is freed, and nobody has returned it", place.at);
                        self.broken("unsell", what);
                    }
                }
            }
            (Call::Create { .. }, Reply::Create(CreateReply::SeatsTaken(lost)), _) => {
                let given_back = self.oracle.given_back;
                let invocation = &mut self.invocations[invocation];
                // The loser's own release of the rest is no giving back of these.
                (invocation.lost, invocation.lost_at) = (lost.clone(), given_back);
            }
            (
                Call::Create { order, .. },
                Reply::Create(CreateReply::Created | CreateReply::AttendeeTaken(_)),
                _,
            ) => self.check_learned(order),
            // Redis has forgotten the hold: there was nothing left of it that could stay taken.
            (Call::Mark { .. }, Reply::Mark(MarkReply::NotHeld | MarkReply::Conflict), _) => {
                self.oracle.given_back += 1;
            }
            // Only such an order has seats that another could hold, and one that is paid, whose record the sweeper
            // took back before it could sell the rest of it. If it ends, or gives a ticket back, before the sweeper
            // has come again, nothing frees them but the sweeper.
            (Call::Mark { command }, Reply::Mark(MarkReply::Marked), _) => {
                let given_up = self.oracle.given_up.values().flatten();
                let given_up: BTreeSet<SeatLeg> = given_up
                    .flat_map(|record| &record.lines)
                    .flat_map(HeldLine::seat_legs)
                    .collect();
                let orders = &self.stores.orders;
                let inventory = self.stores.seats.of(&command.inventory);
                let is_paid = |place: &Place| {
                    let order = orders.claims.get(place).and_then(|order| orders.orders.get(order));
                    order.is_some_and(|order| {
                        order.state == OrderState::Paid
                            && !inventory.holds.contains_key(&order.number)
                    })
                };
                let taken = command.taken.iter().cloned();
                let taken = taken.map(|at| Place { sale: sale_id(), at });
                let left = taken.filter(|place| given_up.contains(&place.at) || is_paid(place));
                self.oracle.left_taken.extend(left);
            }
            (Call::Release { command }, reply, _) => {
                self.oracle.given_back += 1;
                let released = matches!(reply, Reply::Release(ReleaseReply::Released));
                if released {
                    // What is sold stays so.
                    let lines = &command.record.lines;
                    let inventory = self.stores.seats.of(&command.inventory);
                    let is_sold = |at: &SeatLeg| {
                        let grid = inventory.tiers.get(&at.tier);
                        grid.is_some_and(|grid| grid.is_sold(at.leg, at.seat))
                    };
                    for at in lines.iter().flat_map(HeldLine::seat_legs).filter(|at| !is_sold(at)) {
                        self.oracle.is_free_again(at);
                    }
                }
                // A refused request gives its hold back. Its duplicate, which was answered with the same
                // hold, may yet get its order; the sweeper then writes the hold again.
                if released && self.invocations[invocation].name.contains("reserve") {
                    let given_up = self.oracle.given_up.entry(command.order).or_default();
                    given_up.push(command.record.clone());
                }
            }
            (Call::StartTurn { .. }, Reply::StartTurn(Turn::Now), _) => {
                self.invocations[invocation].turns += 1;
            }
            (
                Call::KeepAttempts { order },
                Reply::KeepAttempts(ChangeReply::Done),
                Before::Places(before),
            ) => self.check_places(invocation, order, &before),
            (Call::StartPayment { order, .. }, _, _) => self.check_turn(invocation, order),
            (Call::WriteTombstone { tombstone }, Reply::WriteTombstone(ChangeReply::Done), _) => {
                self.check_not_early(tombstone);
            }
            (Call::CountHolds { .. }, Reply::CountHolds(_), _)
                if self.invocations[invocation].name.starts_with("archive") =>
            {
                let undecided = self.undecided();
                self.oracle.undecided.insert(invocation, undecided);
            }
            (Call::Retire { .. }, Reply::Retire(ChangeReply::Done), _) => {
                self.check_decided(invocation);
            }
            (Call::Publish { file, .. }, Reply::Publish(ChangeReply::Done), _) => {
                if self.over().is_some() {
                    self.broken("archive", "an archived sale is published".to_owned());
                }
                let limit = self.oracle.highest_limit.max(file.limit_per_buyer);
                self.oracle.highest_limit = limit;
            }
            _ => {}
        }
        if writes_orders(call) || matches!(call, Call::Refund { .. }) {
            self.check_orders();
        }
        if writes_orders(call) || writes_redis(call) {
            self.check_redis();
        }
    }

    /// A sale that is published has everything that the parts of its load carried, and nothing else.
    fn check_whole(&mut self, last: &LoadPart) {
        let id = &last.load.inventory;
        let parts = self.oracle.parts.get(&(last.load.epoch.clone(), id.clone()));
        let given: Vec<&LoadPart> = parts.into_iter().flat_map(BTreeMap::values).collect();
        let Some(inventory) = self.stores.seats.get(id) else { return };
        let mut tiers = given.iter().flat_map(|part| &part.load.tiers);
        let holds = given.iter().flat_map(|part| &part.load.holds);
        let bought = given.iter().flat_map(|part| &part.load.bought);
        let is_whole = given.len() == last.place as usize + 1
            && inventory.tiers.len() == self.plan.sale.tiers_in(id).count()
            && tiers.all(|grid| inventory.tiers.get(&grid.tier) == Some(grid))
            && holds.eq(&inventory.holds)
            && bought.eq(&inventory.bought);
        if !is_whole {
            let what = format!("{} is published, and is not what was loaded", last.load.epoch);
            self.broken("whole", what);
        }
    }

    /// Counts outcomes, so that a run that reaches nothing is seen.
    fn count(&mut self, call: &Call, reply: &Reply) {
        let said = match reply {
            Reply::Hold(reply) => debug_head(reply),
            Reply::Create(reply) => debug_head(reply),
            Reply::End(reply) => debug_head(reply),
            Reply::WriteTombstone(reply) => debug_head(reply),
            Reply::Settle(reply) => debug_head(reply),
            Reply::Load(reply) => debug_head(reply),
            Reply::Sell(reply) => debug_head(reply),
            Reply::Release(reply) => debug_head(reply),
            Reply::Mark(reply) => debug_head(reply),
            Reply::Restore(reply) => debug_head(reply),
            Reply::Repair(reply) => debug_head(reply),
            Reply::Lease(reply) => debug_head(reply),
            Reply::Loaded(reply) => debug_head(reply),
            Reply::Retire(reply) => debug_head(reply),
            Reply::Delist(reply) => debug_head(reply),
            Reply::Admit(reply) => debug_head(reply),
            _ => return,
        };
        self.tally.reach(&format!("{} {said}", call.name()));
    }

    /// A script acts only on the load that its caller knows of.
    fn check_epoch(&mut self, call: &Call, before: &Before, reply: &Reply) {
        let acted = matches!(
            reply,
            Reply::Hold(HoldReply::Held { .. })
                | Reply::Sell(SellReply::Sold)
                | Reply::Restore(RestoreReply::Restored)
                | Reply::Repair(RepairReply::Repaired)
        );
        let known = match call {
            Call::Hold { command } => &command.epoch,
            Call::Sell { command } => &command.epoch,
            Call::Restore { command } => &command.epoch,
            Call::Repair { command } => &command.epoch,
            _ => return,
        };
        let (Before::Epoch(met)
        | Before::Repair(met, _)
        | Before::Hold(met, _)
        | Before::Restore(met, _)) = before
        else {
            return;
        };
        if acted && met.as_ref() != Some(known) {
            let met = met.as_ref().map(Epoch::as_str);
            let what = format!("{} acts on load {met:?} and knows {known}", call.name());
            self.broken("epoch", what);
        }
    }

    fn undecided(&self) -> Undecided {
        let db = &self.stores.orders;
        let is_open = |order: &&Order| {
            order.state == OrderState::Pending
                || order.state == OrderState::Paid && !order.facts.are_counted()
        };
        let orders = db.orders.values().filter(is_open).map(|order| order.number).collect();
        let is_due = |record: &PaymentRecord| {
            let state = record.refund.as_ref().map(|refund| refund.state);
            state.is_some_and(|state| state != RefundState::Refunded)
        };
        // Money for an order that does not exist is of no sale.
        let of_orders =
            db.payments.iter().filter(|((number, _), _)| db.orders.contains_key(number));
        let refunds = of_orders.filter(|(_, record)| is_due(record)).map(|(key, _)| key.clone());
        let parts = db.refunds.values();
        let parts = parts.filter(|refund| !refund.refund.state.is_back());
        let parts = parts.map(|refund| refund.key).collect();
        Undecided { orders, refunds: refunds.collect(), parts }
    }

    /// Nothing that was undecided when an archiving began to look is undecided when the sale is
    /// archived, and the sale has closed. What comes up meanwhile is decided without the sale.
    fn check_decided(&mut self, invocation: usize) {
        let now = self.undecided();
        let Some(then) = self.oracle.undecided.remove(&invocation) else {
            return self.broken("archive", "it is archived unchecked".to_owned());
        };
        let early = self.plan.sale.sells_until().ms_since(self.now);
        if early > CLOCKS_MS {
            self.broken("archive", format!("it is archived {early} ms before it closes"));
        }
        if let Some(order) = then.orders.intersection(&now.orders).next() {
            self.broken("archive", format!("it is archived, and {order} is undecided"));
        }
        // The index of due work may be behind its table.
        let is_behind = self.plan.rates.of_fault(Fault::IndexBehind) > 0;
        if let Some(refund) = then.refunds.intersection(&now.refunds).next()
            && !is_behind
        {
            self.broken("archive", format!("it is archived, and {refund:?} has not gone back"));
        }
        if let Some(part) = then.parts.intersection(&now.parts).next()
            && !is_behind
        {
            self.broken("archive", format!("it is archived, and {part} has not gone back"));
        }
    }

    /// Nobody is offered a seat twice in one attempt that turned out to be another's.
    fn check_not_lost_again(&mut self, invocation: usize, lines: &[HeldLine]) {
        let Some(of) = self.invocations.get(invocation) else { return };
        // A hold that is late may have been asked for before.
        let is_late = self.plan.rates.of_fault(Fault::Late) > 0;
        if is_late || of.lost_at != self.oracle.given_back {
            return;
        }
        let offered: BTreeSet<SeatLeg> = lines.iter().flat_map(HeldLine::seat_legs).collect();
        let again = of.lost.iter().find(|lost| {
            let place = Place { sale: sale_id(), at: (*lost).clone() };
            offered.contains(*lost) && self.stores.orders.claims.contains_key(&place)
        });
        if let Some(again) = again {
            let what = format!("{again:?} is offered again to the attempt that has just lost it");
            self.broken("mark", what);
        }
    }

    /// A buyer learns of a bounded number of people whether they have a ticket: whoever is named by an order
    /// that is made has none elsewhere, and of one that is refused somebody has.
    fn check_learned(&mut self, order: &Order) {
        let most = max_named(Tickets::new(self.oracle.highest_limit));
        let learned = self.oracle.learned.entry(order.user.clone()).or_default();
        learned.extend(order.named());
        let count = learned.len();
        if count > most {
            let what = format!("{} learned of {count} people, the bound is {most}", order.user);
            self.broken("named", what);
        }
    }

    fn check_not_early(&mut self, end: &Order) {
        let early = end.payable_until().ms_since(self.now);
        if early > CLOCKS_MS {
            let what = format!("order {} ends {early} ms before its time", end.number);
            self.broken("deadline", what);
        }
    }

    /// An order with an open attempt does not end before its grace and what follows are over.
    fn check_closed(&mut self, end: &Order) {
        let bound = GRACE.end_from(end.payable_until()).plus_seconds(FOR_THE_PROVIDER_SECONDS);
        if end.attempts.any_open() && end.changed_at <= bound {
            let what = format!("order {} ends while a payment of it is open", end.number);
            self.broken("closed", what);
        }
    }

    /// What a provider has started stands on its order, and was written before the order's deadline.
    fn attempts_disagree(&self) -> Option<(&'static str, String)> {
        for key in self.stores.provider.attempts.keys() {
            let order = self.stores.orders.orders.get(&key.order);
            if order.is_none_or(|order| order.attempts.get(key.number).is_none()) {
                return Some(("written", format!("{key} is started, and no order has it")));
            }
        }
        for capture in self.stores.provider.captured.values() {
            let order = self.stores.orders.orders.get(&capture.order);
            if order.is_some_and(|order| order.is_paid_unhanded(capture)) {
                let what = format!("{:?} was paid by an attempt that nobody has", capture.key);
                return Some(("I14", what));
            }
        }
        for order in self.stores.orders.orders.values() {
            if let Some(what) = self.extended_too_far(order) {
                return Some(("I7", what));
            }
            let until = order.payable_until();
            let late = order.attempts.all.iter().find(|one| until <= one.started_at);
            if let Some(late) = late {
                let what = format!("{} of {} is started late", late.number, order.number);
                return Some(("start in time", what));
            }
        }
        None
    }

    /// A place extends an order by no more than its bound, and not past the departure of its train.
    fn extended_too_far(&self, order: &Order) -> Option<String> {
        let extended_to = order.attempts.extended_to?;
        let by = extended_to.ms_since(order.pay_by);
        if by > MAX_EXTENSION_SECONDS * 1000 {
            return Some(format!("{} is extended {by} ms past its payment window", order.number));
        }
        let departs = order.lines.iter().filter_map(|line| self.plan.sale.departure(line.legs));
        let is_past = departs.min().is_some_and(|departs| departs < extended_to);
        is_past.then(|| format!("{} may be paid after its train has left", order.number))
    }

    /// An order that was paid in time does not end as unpaid, however late the provider lists and
    /// calls, if it answers at all; and whatever goes wrong, not if its list was read past the deadline.
    fn check_not_paid_in_time(&mut self, end: &Order) {
        let cursor = self.stores.cursors.cursor(&provider_id());
        let is_read = cursor.is_some_and(|cursor| cursor.covers(end, LIST_LAG));
        if is_read {
            self.tally.reach("order expired, and its provider's list was read");
        }
        let is_found = is_read || self.plan.provider_answers();
        if self.oracle.paid_in_time.contains(&end.number) && is_found {
            let what = format!("order {} was paid in time, and expires", end.number);
            self.broken("in time", what);
        }
    }

    /// No order is pending for longer than is promised.
    pub(crate) fn check_deadlines(&mut self) {
        let Some(first) = self.oracle.first_deadline else { return };
        let overrun = self.now.ms_since(first);
        if overrun > self.plan.profile.bound_ms() {
            self.broken("I7", format!("an order is pending {overrun} ms after its payment window"));
        }
    }

    /// DynamoDB agrees with itself, and with what was acknowledged.
    fn check_orders(&mut self) {
        let disagree = self.orders_disagree().or_else(|| self.attempts_disagree());
        let (rule, what) = match disagree {
            Some(violation) => violation,
            None => return self.remember_orders(),
        };
        self.broken(rule, what);
    }

    fn orders_disagree(&self) -> Option<(&'static str, String)> {
        let db = &self.stores.orders;
        let mut claims = 0;
        let mut counts: BTreeMap<(&SaleId, &UserId), Tickets> = BTreeMap::new();
        let mut attendees: BTreeMap<AttendeeHash, OrderNumber> = BTreeMap::new();
        for order in db.orders.values().filter(|order| order.state.is_live()) {
            for place in places(order) {
                claims += 1;
                match db.claims.get(&place) {
                    Some(owner) if *owner == order.number => {}
                    Some(owner) if db.orders.get(owner).is_some_and(|o| o.state.is_live()) => {
                        let both = format!("{} and {owner} both have {place:?}", order.number);
                        return Some(("I1", both));
                    }
                    owner => {
                        let number = order.number;
                        return Some(("I2", format!("{number} lives, {place:?} is of {owner:?}")));
                    }
                }
            }
            *counts.entry((&order.sale, &order.user)).or_default() += order.tickets();
            for hash in order.attendee_claims() {
                if let Some(other) = attendees.insert(hash, order.number) {
                    let number = order.number;
                    return Some(("attendee", format!("{number} and {other} name {hash}")));
                }
            }
        }
        if claims != db.claims.len() {
            return Some(("I2", format!("{} claims, live orders own {claims}", db.claims.len())));
        }
        let recorded = db.counts.iter().map(|((sale, user), count)| ((sale, user), *count));
        if !counts.iter().map(|(key, count)| (*key, *count)).eq(recorded) {
            return Some(("I3", format!("counted {:?}, live orders have {counts:?}", db.counts)));
        }
        if let Some((of, count)) = counts.iter().find(|(_, n)| n.get() > self.oracle.highest_limit)
        {
            return Some(("I3", format!("{of:?} has {count} tickets, beyond any limit")));
        }
        if totals(db.orders.values()) != db.counters {
            return Some(("I6", format!("counters are {:?}", db.counters)));
        }
        for (number, order) in &db.orders {
            if db.told(*number) != order.facts.settled() {
                return Some(("I10", format!("the log says {:?} of {number}", db.told(*number))));
            }
        }
        let as_told = accounts_as_told(&self.stores).or_else(|| points_as_given(&self.stores));
        if let Some(what) = as_told {
            return Some(("I8", what));
        }
        for (number, lines) in &self.oracle.acknowledged {
            if db.orders.get(number).map(Order::all_lines).as_ref() != Some(lines) {
                return Some((
                    "acknowledged",
                    format!("{number} is not what its buyer was answered"),
                ));
            }
        }
        self.payments_disagree()
    }

    /// Every decision about money is made once, and is what it must be.
    fn payments_disagree(&self) -> Option<(&'static str, String)> {
        let db = &self.stores.orders;
        for number in &self.oracle.paid {
            // Only its refunds end it: I11 says how.
            let is_kept = |order: &Order| order.state == OrderState::Paid || order.refunds.made > 0;
            if !db.orders.get(number).is_some_and(is_kept) {
                return Some(("paid", format!("{number} was paid, and is not any more")));
            }
        }
        if let Some(key) = self.stores.provider.refunded_again.first() {
            return Some(("I5", format!("{key:?} went back twice")));
        }
        if let Some(key) = self.stores.provider.unturned.first() {
            return Some(("turns", format!("{key:?} went back without its turn")));
        }
        if let Some(what) = self.others_are_touched() {
            return Some(("I13", what));
        }
        for (number, order) in &db.orders {
            let has_ended = self.oracle.ended.contains(number);
            if has_ended && order.state == OrderState::Pending {
                return Some(("ended", format!("{number} had ended, and is pending again")));
            }
        }
        for ((number, key), record) in &db.payments {
            let before = self.oracle.refunds.get(key);
            let after = record.refund.as_ref().map(|refund| refund.state);
            let follows = |(before, after): (&RefundState, RefundState)| {
                *before == after || before.may_become(after)
            };
            if !before.zip(after).is_none_or(follows) {
                return Some(("I5", format!("the refund of {key:?} was {before:?}, is {after:?}")));
            }
            if self.oracle.decided.get(key).is_some_and(|first| *first != record.outcome) {
                return Some(("I5", format!("{key:?} of {number} is decided twice")));
            }
            let order = db.orders.get(number);
            let is_its_own = order.is_some_and(|order| order.payment.as_ref() == Some(key));
            let is_right = match record.outcome {
                PaymentOutcome::Accepted => {
                    let has_its_price = order.is_some_and(|o| o.total == record.capture.amount);
                    is_its_own && has_its_price
                }
                PaymentOutcome::Refund(RefundReason::TooLate | RefundReason::Cancelled) => {
                    order.is_none_or(|order| order.state != OrderState::Paid || !is_its_own)
                }
                PaymentOutcome::Refund(
                    RefundReason::UnknownOrder
                    | RefundReason::WrongCurrency
                    | RefundReason::WrongAmount
                    | RefundReason::SecondPayment,
                ) => !is_its_own,
                // No decision on a capture.
                PaymentOutcome::Refund(RefundReason::Returned | RefundReason::Disputed) => false,
            };
            if !is_right {
                let state = order.map(|order| order.state);
                let what = format!("{key:?} is {:?}, its order {number} {state:?}", record.outcome);
                return Some(("I5", what));
            }
        }
        self.refunds_disagree().map(|what| ("I11", what))
    }

    /// What is another system's on the account is recorded nowhere and not sent back, and nothing is sent about a capture
    /// of no order before an operator says so.
    fn others_are_touched(&self) -> Option<String> {
        let (db, provider) = (&self.stores.orders, &self.stores.provider);
        for (key, others) in &provider.others {
            let place = (others.capture.order, key.clone());
            if db.payments.contains_key(&place) || provider.refunded.contains_key(key) {
                return Some(format!("{key:?} is another system's, and was acted on"));
            }
        }
        let of_none = |record: &&PaymentRecord| {
            record.outcome == PaymentOutcome::Refund(RefundReason::UnknownOrder)
                && !db.orders.contains_key(&record.capture.order)
        };
        let is_told = |record: &PaymentRecord| self.oracle.told.contains(&record.capture.key);
        let decided = |record: &&PaymentRecord| !record.is_unmatched() && !is_told(record);
        let sent = db.payments.values().filter(of_none).find(decided);
        sent.map(|record| format!("{:?} is of no order, and goes back", record.capture.key))
    }

    /// What refunds are is on their orders and in their payments, and no more goes back than came.
    fn refunds_disagree(&self) -> Option<String> {
        let db = &self.stores.orders;
        for order in db.orders.values().filter(|order| order.refunds.made > 0) {
            let refunds = db.order_refunds(order.number);
            let numbers = refunds.iter().map(|refund| refund.key.number.get());
            if !numbers.eq(1..=order.refunds.made) {
                return Some(format!("{} has refunds {refunds:?}", order.number));
            }
            for refund in &refunds {
                let marked = order.lines_of(refund.key.number);
                let marked: BTreeSet<TicketName> = marked
                    .iter()
                    .flat_map(|line| line.tickets.iter().map(|ticket| ticket.named(line)))
                    .collect();
                let named: BTreeSet<TicketName> = refund.tickets.iter().cloned().collect();
                if marked != named || named.len() != refund.tickets.len() {
                    return Some(format!("{}: {named:?}, marked are {marked:?}", refund.key));
                }
            }
            let is_back = |refund: &&OrderRefund| refund.refund.state.is_back();
            let back = refunds.iter().filter(is_back).count();
            let lives = order.live_tickets().next().is_some();
            let state = match (lives, back == refunds.len()) {
                (true, _) => OrderState::Paid,
                (false, false) => OrderState::RefundDue,
                (false, true) => OrderState::Refunded,
            };
            if back != usize::from(order.refunds.back) || state != order.state {
                let number = order.number;
                return Some(format!("{number} is {:?}, {back} are back", order.state));
            }
        }
        for ((number, key), record) in &db.payments {
            let of_payment = db
                .refunds
                .values()
                .filter(|refund| refund.key.order == *number && refund.payment == *key);
            let back: MinorUnits = of_payment.map(|refund| refund.worth().amount_minor).sum();
            if back != record.back || record.capture.amount.amount_minor < back {
                return Some(format!("{back} goes back of {record:?}"));
            }
        }
        let provider = &self.stores.provider;
        for (key, capture) in &provider.captured {
            let parts = provider.parts.values().filter(|(payment, _)| payment == key);
            let parts: MinorUnits = parts.map(|(_, amount)| amount.amount_minor).sum();
            let whole = provider.refunded.get(key).map_or(MinorUnits::ZERO, |all| all.amount_minor);
            if parts + whole > capture.amount.amount_minor {
                return Some(format!("{parts} and {whole} went back of {capture:?}"));
            }
        }
        None
    }

    fn remember_orders(&mut self) {
        let mut ended: Vec<(Timestamp, Order)> = Vec::new();
        for (number, order) in &self.stores.orders.orders {
            let pending = order.state == OrderState::Pending;
            if !order.state.is_live() {
                self.oracle.ended.insert(*number);
            }
            let was_pending = self.oracle.pending.contains_key(number);
            if order.state == OrderState::Paid && self.oracle.paid.insert(*number) {
                self.tally.reach("order paid");
            }
            if pending && !was_pending {
                // An order that comes to life late, because its process was frozen, is pending from
                // then on.
                self.oracle.pending.insert(*number, order.payable_until().max(self.now));
            } else if pending && let Some(extended_to) = order.attempts.extended_to {
                let deadline = self.oracle.pending.entry(*number).or_insert(extended_to);
                if *deadline < extended_to {
                    *deadline = extended_to;
                    self.tally.reach("a place extends an order");
                }
            } else if !pending && was_pending {
                let since = self.oracle.pending.remove(number);
                ended.extend(since.map(|since| (since, order.clone())));
            }
        }
        for ((_, key), record) in &self.stores.orders.payments {
            if let Some(refund) = &record.refund {
                self.oracle.refunds.insert(key.clone(), refund.state);
            }
            if self.oracle.decided.insert(key.clone(), record.outcome).is_none() {
                let outcome = format!("payment {:?}", record.outcome);
                self.tally.reach(&outcome);
            }
        }
        self.oracle.first_deadline = self.oracle.pending.values().min().copied();
        let is_many = usize::from(self.plan.profile.is_mixed());
        for (since, order) in ended {
            let overrun = self.now.ms_since(since);
            self.tally.overrun_ms[is_many] = self.tally.overrun_ms[is_many].max(overrun);
            if order.state != OrderState::Paid {
                self.tally.reach(&format!("order {}", order.state.as_str()));
            }
            if order.state == OrderState::Expired {
                self.check_not_early(&order);
                self.check_not_paid_in_time(&order);
                self.check_closed(&order);
            }
        }
    }

    /// Redis is right: always in that what is sold is taken and a paid order's, and in everything while
    /// nothing has made it forget.
    fn check_redis(&mut self) {
        let disagrees = self.stores.seats.of_sale(&self.plan.sale).find_map(|(id, inventory)| {
            let (rule, what) = self.redis_disagrees(&id, &inventory)?;
            Some((rule, format!("{id}: {what}")))
        });
        if let Some((rule, what)) = disagrees {
            self.broken(rule, what);
        }
    }

    fn redis_disagrees(
        &self,
        id: &InventoryId,
        inventory: &Inventory,
    ) -> Option<(&'static str, String)> {
        let is_elsewhere = |tier: &TierId| self.plan.sale.inventory_of(tier) != *id;
        if let Some(tier) = inventory.tiers.keys().find(|tier| is_elsewhere(tier)) {
            return Some(("apart", format!("it has tier {tier}")));
        }
        let held = inventory.holds.values().flat_map(|record| &record.lines);
        if let Some(line) = held.into_iter().find(|line| is_elsewhere(&line.tier)) {
            return Some(("apart", format!("it has a hold of tier {}", line.tier)));
        }
        if let Err(broken) = inventory.check() {
            return Some(("redis", broken.to_string()));
        }
        for grid in inventory.tiers.values() {
            if let Some(at) = self.sold_for_nobody(grid) {
                return Some(("redis", format!("{at:?} is sold, and no paid order's")));
            }
        }
        if !self.plan.redis_remembers() || inventory.loaded.is_none() || self.over().is_some() {
            return None;
        }
        // A hold that was given back and is written again may meet another of the same seats.
        if self.oracle.given_up.is_empty()
            && let Err(broken) = inventory.check_holds()
        {
            return Some(("hold", broken.to_string()));
        }
        let mut bought: BTreeMap<&UserId, Tickets> = BTreeMap::new();
        for record in inventory.holds.values() {
            *bought.entry(&record.user).or_default() += record.tickets();
        }
        let is_here = |order: &&Order| {
            let tiers = order.lines.iter().map(|line| &line.tier);
            order.is_tombstone() || self.plan.sale.inventory_of_all(tiers).as_ref() == Some(id)
        };
        for order in self.stores.orders.orders.values().filter(is_here) {
            let hold = inventory.holds.get(&order.number);
            let record = order.hold_record();
            let given_up = self.oracle.given_up.get(&order.number);
            let is_given_up = given_up.is_some_and(|records| records.contains(&record));
            if order.state == OrderState::Pending && hold != Some(&record) && !is_given_up {
                return Some(("hold", format!("pending {} holds {hold:?}", order.number)));
            }
            let mut seat_legs = places(order).into_iter().map(|place| place.at);
            let is_sold = |at: SeatLeg| {
                inventory.tiers.get(&at.tier).is_some_and(|grid| grid.is_sold(at.leg, at.seat))
            };
            let is_paid = order.state == OrderState::Paid;
            if is_paid && order.tickets() > Tickets::NONE && seat_legs.all(is_sold) {
                *bought.entry(&order.user).or_default() += order.tickets();
            }
        }
        // A refund takes its tickets off afterwards: until then a buyer has more.
        let returns = |user: &UserId| {
            let mut orders = self.stores.orders.orders.values();
            orders.any(|order| order.user == *user && order.refunds.made > 0)
        };
        bought.retain(|user, _| !returns(user));
        if !bought.iter().map(|(user, n)| (*user, *n)).eq(inventory
            .bought
            .iter()
            .map(|(user, n)| (user, *n))
            .filter(|(user, _)| !returns(user)))
        {
            let what = format!("Redis counts {:?}, they have {bought:?}", inventory.bought);
            return Some(("bought", what));
        }
        let covered = self.covered(inventory);
        for (grid, expected) in inventory.tiers.values().zip(covered) {
            let place = |at: &(usize, usize)| {
                let (leg, seat) = (Leg(at.0 as u16), Seat(at.1 as u32));
                let at = SeatLeg { tier: grid.tier.clone(), leg, seat };
                Place { sale: sale_id(), at }
            };
            // What is taken besides belongs to an order that Redis has yet to hear of.
            let is_free = |at: &(usize, usize)| {
                let place = place(at);
                let is_claimed = self.stores.orders.claims.contains_key(&place);
                !is_claimed && !self.oracle.left_taken.contains(&place)
            };
            let is_freed_under = |at: &(usize, usize)| {
                let place = place(at);
                let freed_under = &self.oracle.freed_under;
                let mut holders = holders(inventory, &place.at).peekable();
                holders.peek().is_some()
                    && holders.all(|order| freed_under.contains(&(place.clone(), order)))
            };
            let bit = |bits: &[Vec<u8>], (leg, seat): (usize, usize)| {
                bits[leg][seat / 8] & (0x80 >> (seat % 8)) != 0
            };
            let places = (0..expected.len())
                .flat_map(|leg| (0..expected[leg].len() * 8).map(move |seat| (leg, seat)));
            let wrong = places.into_iter().find(|at| {
                let (taken, covered) = (bit(&grid.taken, *at), bit(&expected, *at));
                covered && !taken && !is_freed_under(at) || taken && !covered && is_free(at)
            });
            if let Some((leg, seat)) = wrong {
                let (taken, tier) = (bit(&grid.taken, (leg, seat)), &grid.tier);
                let what = format!("{tier} seat {seat} leg {leg}: taken {taken}, must not be so");
                return Some(("taken", what));
            }
        }
        None
    }

    /// A seat-leg that Redis has as sold and that no paid order claims. A comparison reads no owner of
    /// what is sold.
    fn sold_for_nobody(&self, grid: &TierGrid) -> Option<SeatLeg> {
        let orders = &self.stores.orders;
        let legs = (0..).map(Leg).zip(&grid.sold);
        let places = legs
            .flat_map(|(leg, bits)| (0..bits.len() as u32 * 8).map(move |seat| (leg, Seat(seat))));
        let sold = places.filter(|(leg, seat)| grid.is_sold(*leg, *seat));
        let mut sold = sold.map(|(leg, seat)| SeatLeg { tier: grid.tier.clone(), leg, seat });
        sold.find(|at| {
            let place = Place { sale: sale_id(), at: at.clone() };
            // A refund is told to Redis after it is made, and may be forgotten.
            let is_untold = match self.plan.redis_remembers() {
                true => self.oracle.untold.contains(&place),
                false => orders.returned.contains_key(&place),
            };
            if is_untold {
                return false;
            }
            let owner = orders.claims.get(&place);
            let order = owner.and_then(|owner| orders.orders.get(owner));
            order.is_none_or(|order| order.state != OrderState::Paid)
        })
    }

    /// What must be taken, tier by tier and leg by leg: what is not for sale, held or sold.
    fn covered(&self, inventory: &Inventory) -> Vec<Vec<Vec<u8>>> {
        let of_tier = |grid: &TierGrid| {
            let initial = self.plan.sale.tier(&grid.tier).map(|tier| tier.layout.initial());
            let mut legs: Vec<Vec<u8>> = grid
                .sold
                .iter()
                .map(|sold| {
                    let initial = initial.unwrap_or_default();
                    initial.iter().zip(sold).map(|(initial, sold)| initial | sold).collect()
                })
                .collect();
            let lines = inventory.holds.values().flat_map(|record| &record.lines);
            for line in lines.filter(|line| line.tier == grid.tier) {
                for at in line.seat_legs() {
                    let byte = &mut legs[at.leg.index()][(at.seat.0 / 8) as usize];
                    *byte |= 0x80 >> (at.seat.0 % 8);
                }
            }
            legs
        };
        inventory.tiers.values().map(of_tier).collect()
    }

    /// When nothing is under way any more, every promise is kept, and the two stores agree.
    pub(crate) fn check_rest(&mut self) {
        if let Some((rule, what)) = self.unrest() {
            self.broken(rule, what);
        }
    }

    fn unrest(&self) -> Option<(&'static str, String)> {
        let db = &self.stores.orders;
        for order in db.orders.values() {
            if order.state == OrderState::Pending {
                return Some(("I7", format!("{} is pending at rest", order.number)));
            }
            if order.attempts.any_open() {
                return Some(("closed", format!("{} has an open payment at rest", order.number)));
            }
            if !order.facts.are_settled() {
                return Some(("I10", format!("{} is not settled at rest", order.number)));
            }
        }
        for capture in self.stores.provider.captured.values() {
            let record = db.payments.get(&(capture.order, capture.key.clone()));
            let Some(record) = record else {
                return Some(("I5", format!("{:?} is captured and never decided", capture.key)));
            };
            if let Some(what) = crate::money::unfinished(record, &self.stores.provider) {
                return Some(("I5", what));
            }
        }
        if let Some(what) = accounts_at_rest(&self.stores) {
            return Some(("I8", what));
        }
        if let Some(what) = points_at_rest(&self.stores) {
            return Some(("I10", what));
        }
        for refund in db.refunds.values() {
            let sent = self.stores.provider.parts.get(&refund.name()).map(|(_, amount)| *amount);
            let is_sent = sent.is_none_or(|sent| sent == refund.amount)
                && sent.is_some() == (refund.amount.amount_minor > MinorUnits::ZERO);
            if refund.refund.state != RefundState::Refunded || !is_sent {
                return Some(("I11", format!("at rest {refund:?}, sent {sent:?}")));
            }
        }
        match self.over() {
            Some(Lifecycle::Archived) => return None,
            Some(lifecycle) => return Some(("archive", format!("it is {lifecycle:?} at rest"))),
            None => {}
        }
        let is_cancelled = |listed: &Listed| listed.sale.file().state == SaleState::Cancelled;
        let is_cancelled = self.stores.catalogue.sales.get(&sale_id()).is_some_and(is_cancelled);
        if is_cancelled && let Some((place, owner)) = db.claims.first_key_value() {
            return Some(("cancelled", format!("{owner} has {place:?} of a cancelled sale")));
        }
        // A sale that could not be published is not in the catalogue.
        let named = self.stores.catalogue.sales.get(&sale_id())?.epoch.clone();
        let mut inventories = self.stores.seats.of_sale(&self.plan.sale);
        inventories.find_map(|(id, inventory)| self.unrest_in(&id, &inventory, named.as_ref()))
    }

    fn unrest_in(
        &self,
        id: &InventoryId,
        inventory: &Inventory,
        named: Option<&Epoch>,
    ) -> Option<(&'static str, String)> {
        let db = &self.stores.orders;
        if inventory.loaded.as_ref().map(|(epoch, _)| epoch) != named {
            let what = format!("the catalogue names {named:?}, Redis has another load of {id}");
            return Some(("I4", what));
        }
        if let Some(hold) = inventory.holds.keys().next() {
            return Some(("I4", format!("{hold} still holds seats at rest")));
        }
        for (user, bought) in &inventory.bought {
            let mut theirs = db.orders.values().filter(|order| order.user == *user);
            let is_here = |order: &&Order| {
                let tiers = order.lines.iter().map(|line| &line.tier);
                self.plan.sale.inventory_of_all(tiers).as_ref() == Some(id)
            };
            let returns = theirs.clone().filter(is_here).any(|order| order.refunds.made > 0);
            let live: Tickets = theirs
                .by_ref()
                .filter(|order| order.state.is_live())
                .filter(is_here)
                .map(Order::tickets)
                .sum();
            if returns && *bought > live {
                return Some(("bought", format!("{user} has {live}, Redis says {bought}")));
            }
        }
        for (tier, grid) in &inventory.tiers {
            let initial = self.plan.sale.tier(tier)?.layout.initial();
            for seat in (0..initial.len() as u32 * 8).map(Seat) {
                let is_place = initial[(seat.0 / 8) as usize] & (0x80 >> (seat.0 % 8)) == 0;
                for leg in Leg::first(self.plan.sale.leg_count()).filter(|_| is_place) {
                    let at = SeatLeg { tier: tier.clone(), leg, seat };
                    let claimed = db.claims.contains_key(&Place { sale: sale_id(), at });
                    let (taken, sold) = (grid.is_taken(leg, seat), grid.is_sold(leg, seat));
                    if taken != claimed || sold != claimed {
                        let at = format!("{tier} seat {} leg {leg}", seat.0);
                        let what = format!("{at}: claimed {claimed}, taken {taken}, sold {sold}");
                        return Some(("I4", what));
                    }
                }
            }
        }
        None
    }
}

/// True if some held lines cover what a repair is to free.
fn covers(
    lines: &[HeldLine],
    leg: Leg,
    seat: Seat,
    command: &engine::domain::inventory::Repair,
) -> bool {
    let of_tier = lines.iter().filter(|line| line.tier == command.tier);
    of_tier.into_iter().any(|line| line.legs.iter().any(|l| l == leg) && line.seats.contains(&seat))
}

/// Text up to its first character that belongs to no name; whatever writes more is stopped.
struct Head(String);

impl fmt::Write for Head {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|c: char| !c.is_alphanumeric());
        self.0.push_str(&text[..end.unwrap_or(text.len())]);
        if end.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// The name of a reply's variant. What the reply carries, which may be an order, is not written out.
pub(crate) fn debug_head(reply: &impl fmt::Debug) -> String {
    let mut head = Head(String::new());
    // The error is the end of the name.
    let _ended = write!(head, "{reply:?}");
    head.0
}
