//! The orders as DynamoDB keeps them: every change is one transaction, which happens whole under its
//! conditions or not at all.
//!
//! The conditions are those that `shared/src/dynamodb/orders/` writes into its transactions, and a
//! broken contract is one here too. Those that are a [`Guard`] can be taken away.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::guard::{Guard, stands};
use engine::domain::basics::ids::{Leg, SaleId, Seat, TierId, UserId};
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::SeatLeg;
use engine::domain::ledger::points::{Award, PointsStatement};
use engine::domain::ledger::statistics::{TierTotals, changes};
use engine::domain::ledger::wallet::{Wallet, WalletStatement};
use engine::domain::ledger::{
    Account, Balance, Transfer, booked, entries, of_no_order, of_no_order_decided,
    of_no_order_ended, transfers,
};
use engine::domain::order::attempt::Attempts;
use engine::domain::order::attendee::{AttendeeHash, may_name};
use engine::domain::order::fact::Fact;
use engine::domain::order::order_refund::{
    AskedBy, OrderRefund, RefundCounts, RefundKey, RefundNumber,
};
use engine::domain::order::refund::{Refund, RefundState};
use engine::domain::order::{Order, OrderState, PaymentKey, PaymentOutcome, PaymentRecord};
use engine::domain::payment::dispute::DisputePlan;
use engine::domain::payment::refund::RefundPlan;
use engine::domain::ticket::{CheckInCounts, DoubleCheckIn, Revocations};
use engine::ports::MAX_TRANSACTION_ITEMS;
use engine::ports::{
    BlockClaims, ChangeReply, Claim, CreateReply, Due, Page, SettleReply, Settlement, StoreError,
    Stored,
};
use engine::ports::{SEATS_PER_BLOCK, due_shard};

/// A seat-leg of a sale: what can be claimed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub sale: SaleId,
    pub at: SeatLeg,
}

/// Everything that DynamoDB knows of orders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct OrdersModel {
    /// The orders and tombstones.
    pub orders: BTreeMap<OrderNumber, Order>,
    pub payments: BTreeMap<(OrderNumber, PaymentKey), PaymentRecord>,
    /// The refunds of orders.
    pub refunds: BTreeMap<RefundKey, OrderRefund>,
    /// The order that owns each claimed seat-leg.
    pub claims: BTreeMap<Place, OrderNumber>,
    /// The orders of which a ticket of each seat-leg was refunded.
    pub returned: BTreeMap<Place, BTreeSet<OrderNumber>>,
    /// The tickets of each buyer's live orders; never zero.
    pub counts: BTreeMap<(SaleId, UserId), Tickets>,
    /// The order whose ticket names an attendee.
    pub attendees: BTreeMap<(SaleId, AttendeeHash), OrderNumber>,
    /// The attendees whom each buyer has named; never empty.
    pub named: BTreeMap<(SaleId, UserId), BTreeSet<AttendeeHash>>,
    pub counters: BTreeMap<(SaleId, TierId), TierTotals>,
    /// The facts of each order that were settled, in the order in which they were.
    pub log: BTreeMap<OrderNumber, Vec<Fact>>,
    /// What each account has, by currency.
    pub accounts: BTreeMap<(Account, Currency), Balance>,
    /// What each buyer's wallet has, by currency.
    pub wallets: BTreeMap<(UserId, Currency), Wallet>,
    /// What buyers have of points and growth, and what each order has given.
    pub points: BTreeMap<UserId, PointsStatement>,
    /// What of each sale was revoked, ticket by ticket.
    pub revoked: BTreeMap<(SaleId, OrderNumber), Revocations>,
    /// The check-ins of each sale, counted.
    pub check_ins: BTreeMap<SaleId, CheckInCounts>,
    /// The check-ins after the first of their ticket, by key.
    pub doubles: BTreeMap<(SaleId, String), DoubleCheckIn>,
    /// The index of what is due.
    pub due: BTreeSet<(Timestamp, Due)>,
}

/// Each seat-leg of an order.
fn places(order: &Order) -> impl Iterator<Item = Place> {
    let seat_legs: Vec<SeatLeg> =
        order.held_lines().iter().flat_map(|line| line.seat_legs().collect::<Vec<_>>()).collect();
    seat_legs.into_iter().map(|at| Place { sale: order.sale.clone(), at })
}

/// What is kept of the seat-legs in one block of a tier. Looks up each leg, and reads nothing else of a map that
/// has a hall of sixty thousand seats.
fn in_block<'m, T>(
    map: &'m BTreeMap<Place, T>,
    sale: &SaleId,
    tier: &TierId,
    block: u32,
) -> impl Iterator<Item = (&'m Place, &'m T)> {
    let at = |leg: u16, seat: u32| Place {
        sale: sale.clone(),
        at: SeatLeg { tier: tier.clone(), leg: Leg(leg), seat: Seat(seat) },
    };
    let (first, next) = (block * SEATS_PER_BLOCK, (block + 1) * SEATS_PER_BLOCK);
    let last_leg = map.range(..=at(u16::MAX, u32::MAX)).next_back().map_or(0, |(place, _)| {
        if place.sale == *sale && place.at.tier == *tier { place.at.leg.0 } else { 0 }
    });
    (0..=last_leg).flat_map(move |leg| map.range(at(leg, first)..at(leg, next)))
}

/// What became of tickets that an order gives up.
#[derive(PartialEq, Eq)]
enum GivenUp {
    Done,
    /// The order or its payment is not what it was.
    Conflict,
    /// The order is what it was, but does not own its claims.
    Unclaimed,
}

fn must(order: &Order, is_so: bool, what: &str) -> Stored<()> {
    let broken = || StoreError::Contract(format!("order {}: {what}", order.number));
    is_so.then_some(()).ok_or_else(broken)
}

/// The attendee that an order names twice.
fn named_twice(order: &Order) -> Option<AttendeeHash> {
    let mut seen = BTreeSet::new();
    order.attendee_claims().find(|hash| !seen.insert(*hash))
}

/// The number of items of a transaction is limited, and it names each once: the order, its payment, its seats,
/// its buyer's count, its attendees.
fn must_fit(order: &Order, besides: usize) -> Stored<()> {
    let mut seats: BTreeSet<(&TierId, Seat)> = BTreeSet::new();
    let mut tickets = order
        .lines
        .iter()
        .flat_map(|line| line.tickets.iter().map(|ticket| (&line.tier, ticket.seat)));
    must(order, tickets.all(|seat| seats.insert(seat)), "names a seat twice")?;
    must(order, named_twice(order).is_none(), "names an attendee twice")?;
    let items = besides + seats.len() + 1 + order.attendee_claims().count();
    must(order, items <= MAX_TRANSACTION_ITEMS, "is too long for a transaction")
}

/// A conflict with an order's claims, by the condition that fails.
enum Conflict {
    /// These seat-legs are another order's.
    Seats(Vec<SeatLeg>),
    /// The buyer has this number of tickets.
    Tickets(Tickets),
    /// The buyer would have named too many people.
    Named,
    /// Another order's ticket names this attendee.
    Attendee(AttendeeHash),
    /// Only the order's own claims do.
    Itself,
}

impl OrdersModel {
    fn count(&self, order: &Order) -> Tickets {
        self.tickets_of(&order.sale, &order.user)
    }

    fn set_count(&mut self, order: &Order, tickets: Tickets) {
        let key = (order.sale.clone(), order.user.clone());
        if tickets == Tickets::NONE {
            self.counts.remove(&key);
        } else {
            self.counts.insert(key, tickets);
        }
    }

    /// The people whom a buyer has named.
    fn named_by(&self, order: &Order) -> BTreeSet<AttendeeHash> {
        let key = (order.sale.clone(), order.user.clone());
        self.named.get(&key).cloned().unwrap_or_default()
    }

    /// Counts the people of an order among those whom its buyer has named.
    fn name(&mut self, order: &Order) {
        let key = (order.sale.clone(), order.user.clone());
        let people = order.named();
        if !people.is_empty() {
            self.named.entry(key).or_default().extend(people);
        }
    }

    /// The first thing that stands against everything an order takes when it comes to life, for the
    /// first time (`is_new`) or again.
    fn conflict(&self, order: &Order, limit: Tickets, is_new: bool) -> Option<Conflict> {
        let owner = |place: &Place| self.claims.get(place).copied();
        let mut is_own = false;
        let mut lost = Vec::new();
        for place in places(order) {
            match owner(&place) {
                Some(number) if number == order.number => is_own = true,
                Some(_) => lost.push(place.at),
                None => {}
            }
        }
        if stands(Guard::ClaimCondition) && !lost.is_empty() {
            return Some(Conflict::Seats(lost));
        }
        let count = self.count(order);
        let is_over = limit.checked_sub(order.tickets()).is_none_or(|most| count > most);
        if stands(Guard::BuyerLimit) && is_over {
            return Some(Conflict::Tickets(count));
        }
        if is_new && !may_name(&self.named_by(order), &order.named(), limit) {
            return Some(Conflict::Named);
        }
        for hash in order.attendee_claims() {
            match self.attendees.get(&(order.sale.clone(), hash)) {
                Some(number) if *number == order.number => is_own = true,
                Some(_) if stands(Guard::AttendeeOnce) => return Some(Conflict::Attendee(hash)),
                Some(_) | None => {}
            }
        }
        is_own.then_some(Conflict::Itself)
    }

    fn claim(&mut self, order: &Order) {
        for place in places(order) {
            self.claims.insert(place, order.number);
        }
        self.set_count(order, self.count(order).saturating_add(order.tickets()));
        for hash in order.attendee_claims() {
            self.attendees.insert((order.sale.clone(), hash), order.number);
        }
    }

    /// True if an order owns everything it is about to give back.
    fn owns_its_claims(&self, order: &Order) -> bool {
        let mine = |owner: Option<&OrderNumber>| owner == Some(&order.number);
        places(order).all(|place| mine(self.claims.get(&place)))
            && self.count(order) >= order.tickets()
            && order
                .attendee_claims()
                .all(|hash| mine(self.attendees.get(&(order.sale.clone(), hash))))
    }

    fn free(&mut self, order: &Order) {
        for place in places(order) {
            self.claims.remove(&place);
        }
        self.set_count(order, self.count(order).saturating_sub(order.tickets()));
        for hash in order.attendee_claims() {
            self.attendees.remove(&(order.sale.clone(), hash));
        }
    }

    fn no_longer_due(&mut self, work: &Due) {
        self.due.retain(|(_, due)| due != work);
    }

    /// Makes a pending order, with its claims, under the buyer's limit. The people of one that is
    /// refused for an attendee are counted: its buyer learns of one of them.
    ///
    /// # Errors
    /// `Contract` for what the flows never ask for.
    pub fn create(&mut self, order: &Order, limit: Tickets) -> Stored<CreateReply> {
        must(order, order.state == OrderState::Pending, "is created in another state")?;
        must(order, !order.is_tombstone(), "is created without lines")?;
        let exists = self.orders.get(&order.number).cloned();
        if let Some(attendee) = named_twice(order) {
            let reply = || CreateReply::AttendeeTaken(attendee);
            return Ok(exists.map_or_else(reply, |order| CreateReply::Exists(Box::new(order))));
        }
        must_fit(order, 1)?;
        if let Some(existing) = exists.filter(|_| stands(Guard::NumberOnce)) {
            return Ok(CreateReply::Exists(Box::new(existing)));
        }
        match self.conflict(order, limit, true) {
            Some(Conflict::Seats(lost)) => Ok(CreateReply::SeatsTaken(lost)),
            Some(Conflict::Tickets(count)) => Ok(CreateReply::LimitReached { held: count }),
            Some(Conflict::Named) => Ok(CreateReply::AttendeeLimit),
            Some(Conflict::Attendee(hash)) => {
                self.name(order);
                Ok(CreateReply::AttendeeTaken(hash))
            }
            Some(Conflict::Itself) => {
                must(order, false, "has claims and does not exist").map(|()| CreateReply::Created)
            }
            None => {
                self.claim(order);
                self.name(order);
                self.orders.insert(order.number, order.clone());
                self.due.insert((order.pay_by, Due::Order(order.number)));
                Ok(CreateReply::Created)
            }
        }
    }

    /// Pending to cancelled or expired, freeing the order's own claims.
    ///
    /// # Errors
    /// `Contract` for what the flows never ask for.
    pub fn end(&mut self, end: &Order) -> Stored<ChangeReply> {
        let ends = matches!(end.state, OrderState::Cancelled | OrderState::Expired);
        must(end, ends, "is ended in another state")?;
        must_fit(end, 1)?;
        let Some(order) = self.orders.get(&end.number) else { return Ok(ChangeReply::Conflict) };
        let is_pending = order.state == OrderState::Pending;
        let is_seen = order.attempts.version == end.attempts.version;
        if stands(Guard::StateCondition) && !is_pending || stands(Guard::AttemptsSeen) && !is_seen {
            return Ok(ChangeReply::Conflict);
        }
        if !self.owns_its_claims(end) {
            must(end, !is_pending, "is pending without its claims")?;
            return Ok(ChangeReply::Conflict);
        }
        self.free(end);
        if let Some(order) = self.orders.get_mut(&end.number) {
            order.state = end.state;
            order.changed_at = end.changed_at;
            order.attempts = order.attempts.clone().without_steps();
        }
        self.tell(end)?;
        self.due_again(end);
        Ok(ChangeReply::Done)
    }

    /// Writes an order's attempts, if nobody has changed them, its state or that it is counted.
    ///
    /// # Errors
    /// `Contract` for what the flows never ask for.
    pub fn keep_attempts(&mut self, order: &Order) -> Stored<ChangeReply> {
        must(order, order.attempts.version > 0, "keeps attempts that follow none")?;
        let seen = |order: &Order| (order.facts.count(), order.facts.settled);
        let follows = |stored: &&mut Order| {
            stored.state == order.state
                && (!stands(Guard::FactsSeen) || seen(stored) == seen(order))
                && stored.attempts.version + 1 == order.attempts.version
        };
        let Some(stored) = self.orders.get_mut(&order.number).filter(follows) else {
            return Ok(ChangeReply::Conflict);
        };
        let paid = stored.attempts.paid;
        stored.attempts = Attempts { paid, ..order.attempts.clone() };
        self.due_again(order);
        Ok(ChangeReply::Done)
    }

    /// [`Self::due_again`] after a fact; that of a pending order changes nothing.
    fn due_as_told(&mut self, order: &Order) {
        if order.state != OrderState::Pending {
            self.due_again(order);
        }
    }

    /// Puts an order into the index of what is due where it says, or takes it out.
    fn due_again(&mut self, order: &Order) {
        let work = Due::Order(order.number);
        self.no_longer_due(&work);
        self.due.extend(order.due_at().map(|at| (at, work)));
    }

    /// Writes a tombstone if its number is unused.
    ///
    /// # Errors
    /// `Contract` for what the flows never ask for.
    pub fn write_tombstone(&mut self, tombstone: &Order) -> Stored<ChangeReply> {
        must(tombstone, tombstone.is_tombstone(), "is a tombstone with lines")?;
        must(
            tombstone,
            tombstone.state == OrderState::Expired,
            "is a tombstone in the wrong state",
        )?;
        if stands(Guard::NumberOnce) && self.orders.contains_key(&tombstone.number) {
            return Ok(ChangeReply::Conflict);
        }
        self.orders.insert(tombstone.number, tombstone.clone());
        self.due_again(tombstone);
        Ok(ChangeReply::Done)
    }

    /// Records what became of a payment, and does to its order what that means.
    ///
    /// # Errors
    /// `Contract` for what the flows never ask for.
    pub fn settle(
        &mut self,
        payment: &PaymentRecord,
        settlement: &Settlement,
        limit: Tickets,
    ) -> Stored<SettleReply> {
        let ended = [OrderState::Cancelled, OrderState::Expired];
        let (order, to, from) = match settlement {
            Settlement::Pay(order) | Settlement::Exchange(order, _) => {
                (order, OrderState::Paid, [OrderState::Pending; 2])
            }
            Settlement::Rescue(order) => (order, OrderState::Paid, ended),
            Settlement::PayTooLate(order) => (order, OrderState::RefundDue, ended),
            Settlement::RefundOnly(order) => {
                if let Some(known) = self.known(payment) {
                    return Ok(SettleReply::Known(known));
                }
                if let Some(order) = order {
                    let is_as_read = |stored: &Order| stored.state == order.state;
                    if !self.orders.get(&order.number).is_some_and(is_as_read) {
                        return Ok(SettleReply::Conflict);
                    }
                    self.tell(order)?;
                    self.due_as_told(order);
                }
                self.record(payment);
                return Ok(SettleReply::Settled);
            }
        };
        must(order, order.state == to, "is settled in another state")?;
        must(order, order.payment.is_some(), "is settled without a payment")?;
        let is_rescue = matches!(settlement, Settlement::Rescue(_));
        if is_rescue {
            must_fit(order, 2)?;
        }
        if let Some(known) = self.known(payment) {
            return Ok(SettleReply::Known(known));
        }
        let attempts_version = order.attempts.version;
        let fits = |order: &&mut Order| {
            let is_as_read = from.contains(&order.state) && order.payment.is_none();
            let is_seen = to == OrderState::Paid || order.attempts.version == attempts_version;
            (!stands(Guard::StateCondition) || is_as_read) && is_seen
        };
        if !self.wallet_has(order) {
            return Ok(SettleReply::Conflict);
        }
        if is_rescue && self.conflict(order, limit, false).is_some() {
            let is_there = self.orders.get_mut(&order.number).filter(fits).is_some();
            return Ok(if is_there { SettleReply::Gone } else { SettleReply::Conflict });
        }
        if self.orders.get_mut(&order.number).filter(fits).is_none() {
            return Ok(SettleReply::Conflict);
        }
        if let Settlement::Exchange(_, plan) = settlement
            && !self.replaces(order, plan)?
        {
            return Ok(SettleReply::Conflict);
        }
        let Some(stored) = self.orders.get_mut(&order.number) else {
            return Ok(SettleReply::Conflict);
        };
        stored.state = order.state;
        stored.changed_at = order.changed_at;
        stored.payment = Some(payment.capture.key.clone());
        let paid = order.attempts.paid.or(stored.attempts.paid);
        stored.attempts = Attempts { paid, ..stored.attempts.clone() }.without_steps();
        self.tell(order)?;
        self.due_again(order);
        if is_rescue {
            self.claim(order);
        }
        self.record(payment);
        Ok(SettleReply::Settled)
    }

    fn known(&self, payment: &PaymentRecord) -> Option<PaymentRecord> {
        self.payment(payment.capture.order, &payment.capture.key)
            .filter(|_| stands(Guard::CallbackDedupe))
    }

    /// Where a payment is recorded. Its item lies in the partition of its order's gene, so that no
    /// two orders of one gene have a payment of one name.
    fn place_of(
        &self,
        order: OrderNumber,
        payment: &PaymentKey,
    ) -> Option<(OrderNumber, PaymentKey)> {
        let is_it =
            |(of, key): &&(OrderNumber, PaymentKey)| of.gene() == order.gene() && key == payment;
        // As a rule it is this order's.
        let own = (order, payment.clone());
        if self.payments.contains_key(&own) {
            return Some(own);
        }
        self.payments.keys().find(is_it).cloned()
    }

    fn record(&mut self, payment: &PaymentRecord) {
        let key = (payment.capture.order, payment.capture.key.clone());
        self.payments.insert(key, payment.clone());
        self.refund_due(payment);
        self.book(of_no_order_decided(payment).as_slice());
    }

    /// Counts transfers on their accounts.
    fn book(&mut self, transfers: &[Transfer]) {
        for (key, entry) in entries(transfers) {
            let balance = self.accounts.entry(key).or_default();
            *balance = balance.with(entry);
        }
    }

    /// Puts a payment into the index of what is due, where its refund now has it.
    fn refund_due(&mut self, payment: &PaymentRecord) {
        let work = Due::Refund(payment.capture.order, payment.capture.key.clone());
        self.no_longer_due(&work);
        if let Some(at) = payment.refund.as_ref().and_then(Refund::again_at) {
            self.due.insert((at, work));
        }
    }

    /// Records where a payment's refund stands, and with it that its order is refunded.
    ///
    /// # Errors
    /// `Contract` if the payment was accepted, if its refund only begins, or if the order is not
    /// refunded by it.
    pub fn record_refund(
        &mut self,
        payment: &PaymentRecord,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let key = &payment.capture.key;
        let Some(refund) = &payment.refund else {
            return Err(StoreError::Contract(format!("payment {key:?} was accepted")));
        };
        let is_own = |order: &Order| order.payment.as_ref() == Some(key);
        let is_undone = refund.state == RefundState::FailedLater;
        let (before, after) = if is_undone {
            (OrderState::Refunded, OrderState::RefundDue)
        } else {
            (OrderState::RefundDue, OrderState::Refunded)
        };
        if let Some(order) = order.filter(|order| is_own(order)) {
            must(order, order.state == after, "is refunded in another state")?;
        }
        let moved = of_no_order_ended(payment);
        // What nothing may become with an order that tells of it is no condition, and no question of what is stored.
        let is_told = order.is_some() || moved.is_some();
        if !RefundState::ALL.iter().any(|before| before.may_be_recorded(refund.state, is_told)) {
            return Err(StoreError::Contract(format!("{:?} follows nothing", refund.state)));
        }
        let place = self.place_of(payment.capture.order, key);
        let known = place.as_ref().and_then(|place| self.payments.get(place));
        // What waits for an operator is told again each day: nothing moves by that.
        let is_again = is_undone && order.is_none() && moved.is_some();
        let is_again = is_again
            && known.is_some_and(|known| {
                known.undone == payment.undone
                    && known.refund.as_ref().is_some_and(|it| it.state == refund.state)
            });
        let moved = moved.filter(|_| !is_again);
        let tells = order.is_some() || moved.is_some();
        let follows = known.is_some_and(|known| {
            let may_be = known.refund.as_ref().is_some_and(|before| {
                let is_unseen = refund.has_seen_no_turn() && before.turn_at.is_some();
                before.state.may_be_recorded(refund.state, tells) && !is_unseen
            });
            may_be && known.ended <= payment.ended
        });
        let waits = |order: &Order| {
            let stored = self.orders.get(&order.number);
            let before = if is_own(order) { before } else { order.state };
            stored.is_some_and(|stored| stored.state == before)
        };
        if !follows || !order.is_none_or(waits) {
            return Ok(ChangeReply::Conflict);
        }
        if let Some(order) = order
            && let Some(stored) = self.orders.get_mut(&order.number)
        {
            stored.state = order.state;
            stored.changed_at = order.changed_at;
            self.tell(order)?;
            self.due_as_told(order);
        }
        // Only the refund is written; what was decided stays as it was.
        if let Some(stored) = place.and_then(|place| self.payments.get_mut(&place)) {
            stored.refund = Some(refund.clone());
            stored.ended = payment.ended;
            stored.undone = if payment.undone > 0 { payment.undone } else { stored.undone };
        }
        self.refund_due(payment);
        self.book(moved.as_slice());
        Ok(ChangeReply::Done)
    }

    /// Makes a refund of a paid order: its tickets are marked, and what they claim is freed.
    ///
    /// # Errors
    /// `Contract` for what the flows never ask for.
    pub fn give_back(&mut self, plan: &RefundPlan) -> Stored<ChangeReply> {
        match self.give_up(plan)? {
            GivenUp::Done => Ok(ChangeReply::Done),
            GivenUp::Conflict => Ok(ChangeReply::Conflict),
            GivenUp::Unclaimed => {
                must(&plan.order, !stands(Guard::RefundsSeen), "is paid without its claims")?;
                Ok(ChangeReply::Conflict)
            }
        }
    }

    /// Gives up the tickets that an order replaces, as it is paid. Within a sale it takes the claims of the people
    /// over. False if they are not there any more, whatever has changed: then nothing is changed.
    fn replaces(&mut self, new: &Order, plan: &RefundPlan) -> Stored<bool> {
        let taken = plan.taken_back();
        if new.sale != taken.sale {
            return Ok(self.give_up(plan)? == GivenUp::Done);
        }
        let claim = |hash| (new.sale.clone(), hash);
        // Those of the tickets that go are theirs still, others nobody's.
        let before: Vec<AttendeeHash> = taken.attendee_claims().collect();
        let is_free = |hash| {
            let owner = before.contains(&hash).then_some(taken.number);
            self.attendees.get(&claim(hash)).copied() == owner
        };
        if !new.attendee_claims().all(is_free) || self.give_up(plan)? != GivenUp::Done {
            return Ok(false);
        }
        for hash in new.attendee_claims() {
            self.attendees.insert(claim(hash), new.number);
        }
        Ok(true)
    }

    /// [`Self::give_back`], alone or as a part of an exchange.
    fn give_up(&mut self, plan: &RefundPlan) -> Stored<GivenUp> {
        let RefundPlan { order, refund, .. } = plan;
        let number = refund.key.number.get();
        must(order, order.refunds.made == number, "makes a refund of another number")?;
        let taken = plan.taken_back();
        if !taken.is_tombstone() {
            must_fit(&taken, 3 + taken.lines.len())?;
        }
        let before = plan.before();
        let fits = |stored: &&Order| {
            stored.state == OrderState::Paid
                && (stored.refunds == before || !stands(Guard::RefundsSeen))
                && stored.attempts.version == order.attempts.version
        };
        let counted = if stands(Guard::KeptCounted) { refund.worth() } else { refund.amount };
        let amount = counted.amount_minor;
        let place = self.place_of(order.number, &refund.payment);
        let payment = place.as_ref().and_then(|place| self.payments.get(place));
        let has_room = payment.is_some_and(|payment| {
            let all = payment.back + amount;
            let is_free = match refund.asked_by {
                AskedBy::Dispute => {
                    let is_seen = payment.disputes == plan.payment.disputes;
                    refund.payment.provider.is_wallet() || is_seen && !payment.disputes.is_empty()
                }
                AskedBy::Outside | AskedBy::SaleCancelled => true,
                AskedBy::Buyer | AskedBy::Operator | AskedBy::Exchange => {
                    !stands(Guard::DisputeOpen) || payment.open_dispute().is_none()
                }
            };
            payment.outcome == PaymentOutcome::Accepted
                && is_free
                && (all <= payment.capture.amount.amount_minor || !stands(Guard::RefundBound))
        });
        let is_there = self.orders.get(&order.number).filter(fits).is_some();
        let is_used = plan.must_be_unused()
            && stands(Guard::CheckedInStays)
            && self.any_checked_in(order.number, plan.revokes().into_keys());
        if !is_there || !has_room || is_used || !self.wallet_has(order) {
            return Ok(GivenUp::Conflict);
        }
        if !taken.is_tombstone() && !self.owns_its_claims(&taken) {
            return Ok(GivenUp::Unclaimed);
        }
        self.revoke(order, plan.revokes());
        self.free(&taken);
        for place in places(&taken) {
            self.returned.entry(place).or_default().insert(order.number);
        }
        if let Some(payment) = place.and_then(|place| self.payments.get_mut(&place)) {
            payment.back += amount;
        }
        if let Some(stored) = self.orders.get_mut(&order.number) {
            stored.state = order.state;
            stored.changed_at = order.changed_at;
            stored.refunds = order.refunds;
            for (line, of_plan) in stored.lines.iter_mut().zip(&order.lines) {
                for (ticket, planned) in line.tickets.iter_mut().zip(&of_plan.tickets) {
                    ticket.refund = planned.refund;
                }
            }
            self.tell(order)?;
        }
        self.due_again(order);
        self.refunds.insert(refund.key, refund.clone());
        self.order_refund_due(refund);
        Ok(GivenUp::Done)
    }

    /// Records a dispute of an order's payment, which the order tells.
    ///
    /// # Errors
    /// `Contract` if the order tells nothing.
    pub fn dispute(&mut self, plan: &DisputePlan) -> Stored<ChangeReply> {
        let DisputePlan { order, payment, before, refund } = plan;
        let place = self.place_of(order.number, &payment.capture.key);
        let known = place.as_ref().and_then(|place| self.payments.get(place));
        let is_as_seen = known.is_some_and(|known| {
            known.outcome == PaymentOutcome::Accepted
                && known.back == payment.back
                && (!stands(Guard::DisputesSeen) || known.disputes == *before)
        });
        if let Some(refund) = refund {
            if !is_as_seen {
                return Ok(ChangeReply::Conflict);
            }
            let written = self.record_order_refund(refund, Some(order))?;
            if written == ChangeReply::Done
                && let Some(known) = place.and_then(|place| self.payments.get_mut(&place))
            {
                known.disputes.clone_from(&payment.disputes);
            }
            return Ok(written);
        }
        let stored = self.orders.get(&order.number);
        if !is_as_seen || stored.is_none_or(|stored| stored.state != order.state) {
            return Ok(ChangeReply::Conflict);
        }
        if let Some(known) = place.and_then(|place| self.payments.get_mut(&place)) {
            known.disputes.clone_from(&payment.disputes);
        }
        self.tell(order)?;
        self.due_again(order);
        Ok(ChangeReply::Done)
    }

    /// Puts a refund of an order into the index of what is due, where it now has its place.
    fn order_refund_due(&mut self, refund: &OrderRefund) {
        let work = Due::OrderRefund(refund.key);
        self.no_longer_due(&work);
        self.due.extend(refund.refund.again_at().map(|at| (at, work)));
    }

    /// Records where a refund of an order stands, and with it that its money is back.
    ///
    /// # Errors
    /// `Contract` if an order has more money back than it has refunds.
    pub fn record_order_refund(
        &mut self,
        refund: &OrderRefund,
        order: Option<&Order>,
    ) -> Stored<ChangeReply> {
        let is_undone = refund.refund.state == RefundState::FailedLater;
        let before =
            |order: &Order| order.refunds.back + u8::from(is_undone) - u8::from(!is_undone);
        if let Some(order) = order {
            let RefundCounts { made, back } = order.refunds;
            let fits = if is_undone { back < made } else { (1..=made).contains(&back) };
            must(order, fits, "has the money of a refund back that it has not")?;
        }
        let known = self.refunds.get(&refund.key);
        let follows = known.is_some_and(|known| {
            known.refund.state.may_be_recorded(refund.refund.state, order.is_some())
                && known.ended <= refund.ended
        });
        let is_seen = |order: &Order| {
            self.orders.get(&order.number).is_some_and(|stored| {
                stored.refunds.made == order.refunds.made
                    && stored.refunds.back == before(order)
                    && stored.attempts.version == order.attempts.version
            })
        };
        if !follows || !order.is_none_or(is_seen) {
            return Ok(ChangeReply::Conflict);
        }
        if let Some(order) = order
            && let Some(stored) = self.orders.get_mut(&order.number)
        {
            stored.state = order.state;
            stored.changed_at = order.changed_at;
            stored.refunds = order.refunds;
            self.tell(order)?;
            self.due_again(order);
        }
        if let Some(known) = self.refunds.get_mut(&refund.key) {
            known.refund = refund.refund.clone();
            known.ended = refund.ended;
        }
        self.order_refund_due(refund);
        Ok(ChangeReply::Done)
    }

    /// A refund of an order.
    #[must_use]
    pub fn order_refund(&self, key: RefundKey) -> Option<OrderRefund> {
        self.refunds.get(&key).cloned()
    }

    /// Every refund of an order, by number.
    #[must_use]
    pub fn order_refunds(&self, order: OrderNumber) -> Vec<OrderRefund> {
        let first = RefundKey { order, number: RefundNumber::FIRST };
        let from_first = self.refunds.range(first..);
        from_first.take_while(|(key, _)| key.order == order).map(|(_, one)| one.clone()).collect()
    }

    /// Every payment that was decided for an order, in order of decision.
    #[must_use]
    pub fn payments(&self, order: OrderNumber) -> Vec<PaymentRecord> {
        let of_order = self.payments.iter().filter(|((of, _), _)| *of == order);
        let mut payments: Vec<PaymentRecord> = of_order.map(|(_, record)| record.clone()).collect();
        payments.sort_by_key(|record| (record.decided_at, record.capture.key.clone()));
        payments
    }

    /// What a buyer's wallet has.
    #[must_use]
    pub fn wallet(&self, user: &UserId, currency: Currency) -> Balance {
        self.wallets.get(&(user.clone(), currency)).map_or_else(Balance::default, |it| it.balance)
    }

    #[must_use]
    pub fn statement(&self, user: &UserId) -> WalletStatement {
        let theirs = self.wallets.iter().filter(|((of, _), _)| of == user);
        let wallets = theirs.map(|((_, currency), wallet)| (*currency, wallet.clone())).collect();
        WalletStatement { wallets }.sorted()
    }

    /// What an order has given.
    #[must_use]
    pub fn awarded(&self, user: &UserId, order: OrderNumber) -> Option<Award> {
        self.points.get(user)?.awards.get(&order).copied()
    }

    /// Writes what an order gives in place of `before`, and adds the difference.
    pub fn award(
        &mut self,
        user: &UserId,
        order: OrderNumber,
        award: &Award,
        before: Option<Award>,
    ) -> ChangeReply {
        if stands(Guard::AwardSeen) && self.awarded(user, order) != before {
            return ChangeReply::Conflict;
        }
        let points = self.points.entry(user.clone()).or_default();
        points.awards.insert(order, *award);
        points.has =
            points.has.replacing(before.map(|it| it.given).unwrap_or_default(), award.given);
        ChangeReply::Done
    }

    /// What a buyer has.
    #[must_use]
    pub fn points(&self, user: &UserId) -> PointsStatement {
        self.points.get(user).cloned().unwrap_or_default()
    }

    /// True if the wallet of an order's buyer has what its last fact takes.
    fn wallet_has(&self, order: &Order) -> bool {
        let needs = order.wallet_change_now().and_then(|change| change.needs());
        let has = || self.wallet(&order.user, order.total.currency).left();
        !stands(Guard::WalletLimit) || needs.is_none_or(|needs| needs <= has())
    }

    /// Appends the last fact of an order, as it shall be, to those that are there, and moves its buyer's wallet.
    fn tell(&mut self, order: &Order) -> Stored<()> {
        let untold = || StoreError::Contract(format!("order {}: changes untold", order.number));
        let last = order.facts.all.last().ok_or_else(untold)?;
        if let Some(entry) = order.wallet_entry_now() {
            let key = (order.user.clone(), order.total.currency);
            let wallet = self.wallets.entry(key).or_default();
            wallet.balance = wallet.balance.with(entry.change.entry());
            wallet.entries.push(entry);
        }
        if let Some(stored) = self.orders.get_mut(&order.number) {
            stored.facts.all.push(last.clone());
        }
        Ok(())
    }

    /// Settles what is not settled of the facts of orders, each exactly once; those settled now.
    pub fn sync(&mut self, orders: &[Order]) -> Vec<OrderNumber> {
        let (mut settled, mut seen) = (Vec::new(), BTreeSet::new());
        let unsettled = orders.iter().filter(|order| !order.facts.are_settled());
        for order in unsettled.filter(|order| seen.insert(order.number)) {
            let is_as_read = |stored: &&mut Order| {
                let is_new =
                    !stands(Guard::SyncOnce) || stored.facts.settled == order.facts.settled;
                let is_seen =
                    !stands(Guard::FactsSeen) || stored.facts.all.len() == order.facts.all.len();
                is_new && is_seen && stored.attempts.version == order.attempts.version
            };
            let Some(stored) = self.orders.get_mut(&order.number).filter(is_as_read) else {
                continue;
            };
            stored.facts.settled = order.facts.count();
            self.due_again(&Order { facts: order.facts.all_settled(), ..order.clone() });
            let told = order.facts.unsettled().map(|(_, fact)| fact.clone());
            self.log.entry(order.number).or_default().extend(told);
            self.book(&transfers([order]));
            for (key, change) in changes([order]) {
                let total = self.counters.entry(key).or_default();
                total.tickets = total.tickets.saturating_add_signed(change.tickets);
                total.revenue_minor += change.revenue_minor;
            }
            settled.push(order.number);
        }
        settled
    }

    /// What the accounts should have, by the settled facts of all orders and the captures of none.
    #[must_use]
    pub fn booked(&self) -> BTreeMap<(Account, Currency), Balance> {
        let mut moved = booked(self.orders.values());
        moved.extend(self.payments.values().flat_map(of_no_order));
        entries(&moved)
    }

    /// What the log says of an order.
    #[must_use]
    pub fn told(&self, order: OrderNumber) -> &[Fact] {
        self.log.get(&order).map_or(&[], Vec::as_slice)
    }

    #[must_use]
    pub fn get(&self, number: OrderNumber) -> Option<Order> {
        self.orders.get(&number).cloned()
    }

    /// Many orders, each once, in the order asked for.
    #[must_use]
    pub fn get_many(&self, numbers: &[OrderNumber]) -> Vec<Order> {
        let mut seen = BTreeSet::new();
        let distinct = numbers.iter().filter(|number| seen.insert(**number));
        distinct.filter_map(|number| self.orders.get(number).cloned()).collect()
    }

    #[must_use]
    pub fn payment(&self, order: OrderNumber, payment: &PaymentKey) -> Option<PaymentRecord> {
        self.payments.get(&self.place_of(order, payment)?).cloned()
    }

    /// A page of a buyer's orders, newest first, `before` a number. Tombstones are nobody's.
    #[must_use]
    pub fn of_user(&self, user: &UserId, before: Option<OrderNumber>, most: u16) -> Page {
        let is_theirs = |order: &&Order| order.user == *user && !order.is_tombstone();
        let is_older = |order: &&Order| before.is_none_or(|before| order.number < before);
        let found = self.orders.values().rev().filter(is_theirs).filter(is_older);
        let mut orders: Vec<Order> = found.cloned().collect();
        let is_all = orders.len() <= usize::from(most);
        orders.truncate(usize::from(most));
        let next = orders.last().map(|order| order.number).filter(|_| !is_all);
        Page { orders, next }
    }

    /// Tickets of a sale that the buyer's live orders have.
    #[must_use]
    pub fn tickets_of(&self, sale: &SaleId, user: &UserId) -> Tickets {
        self.counts.get(&(sale.clone(), user.clone())).copied().unwrap_or_default()
    }

    /// Work of one shard that was due at `now`, earliest first.
    #[must_use]
    pub fn due(&self, shard: u8, now: Timestamp, most: u16) -> Vec<Due> {
        let shard_of = |due: &Due| match due {
            Due::Order(order) | Due::Refund(order, _) => due_shard(*order),
            Due::OrderRefund(key) => due_shard(key.order),
        };
        let found = self.due.iter().filter(|(at, due)| *at <= now && shard_of(due) == shard);
        found.map(|(_, due)| due.clone()).take(usize::from(most)).collect()
    }

    /// Every claim in one block of a tier, seat by seat and leg by leg.
    #[must_use]
    pub fn block_claims(&self, sale: &SaleId, tier: &TierId, block: u32) -> BlockClaims {
        let mut claims: Vec<Claim> = in_block(&self.claims, sale, tier, block)
            .map(|(place, order)| Claim { seat: place.at.seat, leg: place.at.leg, order: *order })
            .collect();
        claims.sort_by_key(|claim| (claim.seat, claim.leg));
        // A seat of several legs is one item.
        let here = in_block(&self.returned, sale, tier, block);
        let returned: BTreeSet<(Seat, OrderNumber)> = here
            .flat_map(|(place, orders)| orders.iter().map(|order| (place.at.seat, *order)))
            .collect();
        BlockClaims { claims, returned: returned.into_iter().collect() }
    }

    /// The statistics of a sale, tier by tier.
    #[must_use]
    pub fn statistics(&self, sale: &SaleId) -> Vec<(TierId, TierTotals)> {
        let of_sale = self.counters.iter().filter(|((of, _), _)| of == sale);
        of_sale.map(|((_, tier), sum)| (tier.clone(), *sum)).collect()
    }
}
