//! The inventory of one sale: who holds which seat-legs, what is taken, what is sold.
//!
//! These are the rules. [`Inventory`] is the pure model of what Redis keeps for a sale, and each of
//! its methods is one script in `lua/`; a property test runs the same random commands through both
//! and compares every reply and the final state. The same model stands in for Redis in a simulator.
//! Every method checks everything first and then writes everything.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::choice::{Choice, NoChoice, Taken};
use super::guard::{Guard, stands};
use super::ids::{Epoch, Legs, RequestFingerprint, SaleId, Seat, TierId, UserId};
use super::number::OrderNumber;
use super::sale::SaleState;
use super::time::Timestamp;

/// The terms of a sale that the scripts check.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Terms {
    /// Whether the sale takes reservations.
    pub state: SaleState,
    /// When it begins to.
    pub opens_at: Timestamp,
    /// When it ends.
    pub closes_at: Timestamp,
    /// Most tickets of one buyer.
    pub limit: u16,
    /// How many legs a whole journey has.
    pub legs: u16,
}

/// One line of an order before its seats are known. An order has at most one line a tier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Line {
    /// Which tier.
    pub tier: TierId,
    /// Which journey.
    pub legs: Legs,
    /// Which seats, or how to pick them.
    pub choice: Choice,
}

/// Seats of one tier on one journey.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeldLine {
    /// Which tier.
    pub tier: TierId,
    /// Which journey.
    pub legs: Legs,
    /// Which seats, each once.
    pub seats: Vec<Seat>,
}

impl HeldLine {
    /// Each seat on each leg of the line.
    pub fn seat_legs(&self) -> impl Iterator<Item = SeatLeg> + '_ {
        let of = move |seat: Seat| {
            self.legs.iter().map(move |leg| SeatLeg { tier: self.tier.clone(), leg, seat })
        };
        self.seats.iter().copied().flat_map(of)
    }
}

/// One seat on one leg: the smallest thing that can be sold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SeatLeg {
    /// Which tier.
    pub tier: TierId,
    /// Which leg.
    pub leg: u16,
    /// Which seat.
    pub seat: Seat,
}

/// How many tickets some lines are.
#[must_use]
pub fn tickets(lines: &[HeldLine]) -> u16 {
    lines.iter().map(|line| line.seats.len() as u16).sum()
}

/// What Redis remembers of a hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HoldRecord {
    /// Who holds.
    pub user: UserId,
    /// What was asked for.
    pub fingerprint: RequestFingerprint,
    /// Until when it may be paid.
    pub deadline: Timestamp,
    /// What is held.
    pub lines: Vec<HeldLine>,
}

impl HoldRecord {
    /// How many tickets it holds.
    #[must_use]
    pub fn tickets(&self) -> u16 {
        tickets(&self.lines)
    }
}

/// The bitmaps of one tier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TierGrid {
    /// Which tier.
    pub tier: TierId,
    /// Bytes of one row.
    pub row_bytes: u32,
    /// For each leg, 1 where a seat is held, sold or not for sale.
    pub taken: Vec<Vec<u8>>,
    /// For each leg, 1 where a seat is sold.
    pub sold: Vec<Vec<u8>>,
    /// Counts every time that seats were freed: the guard of [`Repair`].
    pub freed: u64,
}

fn bit(bitmap: &[u8], seat: Seat) -> bool {
    bitmap.get((seat.0 / 8) as usize).is_some_and(|byte| byte & (0x80 >> (seat.0 % 8)) != 0)
}

fn set_bit(bitmap: &mut [u8], seat: Seat, value: bool) {
    if let Some(byte) = bitmap.get_mut((seat.0 / 8) as usize) {
        let mask = 0x80 >> (seat.0 % 8);
        *byte = if value { *byte | mask } else { *byte & !mask };
    }
}

impl TierGrid {
    /// What is taken on any leg of a journey.
    #[must_use]
    pub fn taken_over(&self, legs: Legs) -> Vec<u8> {
        let mut bits = vec![0; self.taken.first().map_or(0, Vec::len)];
        for leg in legs.iter() {
            let bitmap = self.taken.get(usize::from(leg)).map_or(&[][..], Vec::as_slice);
            bits.iter_mut().zip(bitmap).for_each(|(sum, byte)| *sum |= byte);
        }
        bits
    }

    /// True if there is such a place. What an order names beyond the grid is passed over.
    fn has(&self, leg: u16, seat: Seat) -> bool {
        let places = |bitmap: &Vec<u8>| bitmap.len() as u64 * 8;
        self.taken.get(usize::from(leg)).is_some_and(|bitmap| u64::from(seat.0) < places(bitmap))
    }

    /// True if the seat is taken on the leg.
    #[must_use]
    pub fn is_taken(&self, leg: u16, seat: Seat) -> bool {
        self.taken.get(usize::from(leg)).is_some_and(|bitmap| bit(bitmap, seat))
    }

    /// True if the seat is sold on the leg.
    #[must_use]
    pub fn is_sold(&self, leg: u16, seat: Seat) -> bool {
        self.sold.get(usize::from(leg)).is_some_and(|bitmap| bit(bitmap, seat))
    }

    fn set_taken(&mut self, leg: u16, seat: Seat, value: bool) {
        if let Some(bitmap) = self.taken.get_mut(usize::from(leg)) {
            set_bit(bitmap, seat, value);
        }
    }

    fn set_sold(&mut self, leg: u16, seat: Seat, value: bool) {
        if let Some(bitmap) = self.sold.get_mut(usize::from(leg)) {
            set_bit(bitmap, seat, value);
        }
    }

    /// Notes the owner of a seat on one leg, while a grid is put together for a [`Load`].
    pub fn claim(&mut self, leg: u16, seat: Seat, is_paid: bool) {
        self.set_taken(leg, seat, true);
        self.set_sold(leg, seat, is_paid);
    }

    /// Gives a seat back on one leg, unless it is sold there.
    fn free(&mut self, leg: u16, seat: Seat) {
        if !stands(Guard::ReleaseKeepsSold) || !self.is_sold(leg, seat) {
            self.set_taken(leg, seat, false);
        }
    }
}

/// Everything a sale starts from, or starts again from after Redis lost it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Load {
    /// Which sale.
    pub sale: SaleId,
    /// Its terms.
    pub terms: Terms,
    /// The epoch that Redis is expected to have now; `None` if it should have forgotten the sale.
    pub expected: Option<Epoch>,
    /// The epoch from now on.
    pub epoch: Epoch,
    /// The bitmaps of every tier.
    pub tiers: Vec<TierGrid>,
    /// The holds of pending orders.
    pub holds: BTreeMap<OrderNumber, HoldRecord>,
    /// What each buyer has held or bought.
    pub bought: BTreeMap<UserId, u16>,
}

/// What `load` answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LoadReply {
    /// The sale starts from what was given.
    Loaded,
    /// The sale has this epoch already: only its terms were replaced.
    Updated,
    /// Redis has another epoch than expected (`None`: none at all); nothing was written.
    Stale(Option<Epoch>),
}

/// Hold every line of an order, or none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hold {
    /// Which sale.
    pub sale: SaleId,
    /// The epoch the caller knows.
    pub epoch: Epoch,
    /// Under which number.
    pub order: OrderNumber,
    /// For whom.
    pub user: UserId,
    /// The fingerprint of what is asked for.
    pub fingerprint: RequestFingerprint,
    /// What time it is.
    pub now: Timestamp,
    /// Until when it may be paid.
    pub deadline: Timestamp,
    /// What to hold: 1 to 4 lines, each of another tier.
    pub lines: Vec<Line>,
}

/// What `hold` answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HoldReply {
    /// The seats are held, now or since an earlier attempt under the same number.
    Held {
        /// The hold as it is remembered.
        record: HoldRecord,
        /// How many more tickets the buyer may have.
        allowance: u16,
    },
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
    /// The number holds something else already.
    ContentDiffers,
    /// The number's hold is past its deadline and waits for its end.
    HoldExpired,
    /// The sale takes no reservations now.
    SaleClosed,
    /// The buyer would have more tickets than the limit; so many more are allowed.
    LimitReached {
        /// Tickets that the buyer may still have.
        remaining: u16,
    },
    /// These chosen seats are not free.
    SeatTaken(TierId, Vec<Seat>),
    /// Fewer seats are free than asked for, or the pattern fits nowhere.
    SoldOut(TierId),
    /// Enough seats are free, but nowhere enough side by side.
    NoAdjacent(TierId),
}

/// Mark an order's seats sold, also if its hold was forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sell {
    /// Which sale.
    pub sale: SaleId,
    /// The epoch the caller knows.
    pub epoch: Epoch,
    /// Which order.
    pub order: OrderNumber,
    /// Whose.
    pub user: UserId,
    /// What it bought.
    pub lines: Vec<HeldLine>,
}

/// What `sell` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SellReply {
    /// The seats are sold, now or already.
    Sold,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

/// Give a hold back, if it still is what the caller saw.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Release {
    /// Which sale.
    pub sale: SaleId,
    /// Which order.
    pub order: OrderNumber,
    /// The hold that the caller saw.
    pub record: HoldRecord,
}

/// What `release` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReleaseReply {
    /// The seats are free again, but for those that are sold.
    Released,
    /// The order holds nothing.
    NotHeld,
    /// The order holds something else than the caller saw; nothing was written.
    Conflict,
}

/// After a claim conflict: give a hold back, but leave taken what truly belongs to other orders.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Which sale.
    pub sale: SaleId,
    /// Which order lost its seats.
    pub order: OrderNumber,
    /// The hold that the caller saw.
    pub record: HoldRecord,
    /// The seat-legs that others own, all of them part of the hold.
    pub taken: Vec<SeatLeg>,
}

/// What `mark` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MarkReply {
    /// The hold has ended; what others own stays taken.
    Marked,
    /// The order holds nothing.
    NotHeld,
    /// The order holds something else than the caller saw; nothing was written.
    Conflict,
}

/// Write the hold of a pending order that Redis has forgotten.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Restore {
    /// Which sale.
    pub sale: SaleId,
    /// The epoch the caller knows.
    pub epoch: Epoch,
    /// Which order.
    pub order: OrderNumber,
    /// Its hold.
    pub record: HoldRecord,
    /// For each line, the `freed` counter of its tier before the caller looked: if seats were freed
    /// since, the order may have ended and its seats be held by others, and nothing is done.
    pub freed: Vec<u64>,
}

/// What `restore` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RestoreReply {
    /// The order has a hold, now or already.
    Restored,
    /// Seats were freed since the caller looked, or one of these is sold: look again.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

/// Free seat-legs of one tier that are taken though nobody holds or claims them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Repair {
    /// Which sale.
    pub sale: SaleId,
    /// The epoch the caller knows.
    pub epoch: Epoch,
    /// Which tier.
    pub tier: TierId,
    /// The tier's `freed` counter before the caller looked: if seats were freed since, a seat that
    /// looked leaked may be held again, and nothing is done.
    pub freed: u64,
    /// The seat-legs.
    pub leaked: Vec<(u16, Seat)>,
}

/// What `repair` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RepairReply {
    /// The seat-legs are free again.
    Repaired,
    /// Seats were freed since the caller looked: look again.
    Conflict,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

/// The state of one sale in Redis.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Inventory {
    /// The epoch and terms of the sale; `None` until it is loaded.
    pub loaded: Option<(Epoch, Terms)>,
    /// The bitmaps of its tiers.
    pub tiers: BTreeMap<TierId, TierGrid>,
    /// Its holds.
    pub holds: BTreeMap<OrderNumber, HoldRecord>,
    /// What each buyer has held or bought; never zero.
    pub bought: BTreeMap<UserId, u16>,
}

impl Inventory {
    fn knows(&self, epoch: &Epoch) -> bool {
        let is_its_epoch = |(current, _): &(Epoch, Terms)| current == epoch;
        !stands(Guard::EpochFence) || self.loaded.as_ref().is_some_and(is_its_epoch)
    }

    fn add_bought(&mut self, user: &UserId, tickets: i32) {
        let now = i32::from(self.bought.get(user).copied().unwrap_or(0)) + tickets;
        if now > 0 {
            self.bought.insert(user.clone(), now as u16);
        } else {
            self.bought.remove(user);
        }
    }

    fn for_each_seat_leg(
        &mut self,
        lines: &[HeldLine],
        mut act: impl FnMut(&mut TierGrid, u16, Seat),
    ) {
        for line in lines {
            let Some(grid) = self.tiers.get_mut(&line.tier) else { continue };
            for leg in line.legs.iter() {
                line.seats.iter().for_each(|seat| act(grid, leg, *seat));
            }
        }
    }

    fn count_freed(&mut self, lines: &[HeldLine]) {
        for line in lines {
            if let Some(grid) = self.tiers.get_mut(&line.tier) {
                grid.freed += 1;
            }
        }
    }

    /// Starts a sale, starts it again, or replaces its terms.
    pub fn load(&mut self, command: &Load) -> LoadReply {
        let current = self.loaded.as_ref().map(|(epoch, _)| epoch.clone());
        if current.as_ref() == Some(&command.epoch) {
            self.loaded = Some((command.epoch.clone(), command.terms.clone()));
            return LoadReply::Updated;
        }
        if stands(Guard::LoadExpected) && current != command.expected {
            return LoadReply::Stale(current);
        }
        *self = Self {
            loaded: Some((command.epoch.clone(), command.terms.clone())),
            tiers: command.tiers.iter().map(|grid| (grid.tier.clone(), grid.clone())).collect(),
            holds: command.holds.clone(),
            bought: command.bought.clone(),
        };
        LoadReply::Loaded
    }

    /// Holds every line of an order, or none. The same number with the same fingerprint is answered
    /// with the same seats.
    pub fn hold(&mut self, command: &Hold) -> HoldReply {
        let Some((_, terms)) = self.loaded.as_ref().filter(|_| self.knows(&command.epoch)) else {
            return HoldReply::NotLoaded;
        };
        let bought = self.bought.get(&command.user).copied().unwrap_or(0);
        let replayed = self.holds.get(&command.order).filter(|_| stands(Guard::HoldReplay));
        if let Some(record) = replayed {
            let is_same = record.fingerprint == command.fingerprint && record.user == command.user;
            if stands(Guard::FingerprintCheck) && !is_same {
                return HoldReply::ContentDiffers;
            }
            if record.deadline <= command.now {
                return HoldReply::HoldExpired;
            }
            let allowance = terms.limit.saturating_sub(bought);
            return HoldReply::Held { record: record.clone(), allowance };
        }
        let in_window = terms.opens_at <= command.now && command.now < terms.closes_at;
        let is_open = terms.state == SaleState::Open && in_window;
        if stands(Guard::SaleWindow) && !is_open {
            return HoldReply::SaleClosed;
        }
        let requested: usize = command.lines.iter().map(|line| line.choice.count()).sum();
        let remaining = terms.limit.saturating_sub(bought);
        if requested > usize::from(remaining) {
            return HoldReply::LimitReached { remaining };
        }
        let mut lines = Vec::with_capacity(command.lines.len());
        for Line { tier, legs, choice } in &command.lines {
            let Some(grid) = self.tiers.get(tier) else {
                return HoldReply::SoldOut(tier.clone());
            };
            let bits = grid.taken_over(*legs);
            match (Taken { bits: &bits, row_bytes: grid.row_bytes }).choose(choice) {
                Ok(seats) => lines.push(HeldLine { tier: tier.clone(), legs: *legs, seats }),
                Err(NoChoice::SeatTaken(seats)) => {
                    return HoldReply::SeatTaken(tier.clone(), seats);
                }
                Err(NoChoice::SoldOut) => return HoldReply::SoldOut(tier.clone()),
                Err(NoChoice::NoAdjacent) => return HoldReply::NoAdjacent(tier.clone()),
            }
        }
        let record = HoldRecord {
            user: command.user.clone(),
            fingerprint: command.fingerprint.clone(),
            deadline: command.deadline,
            lines,
        };
        self.put_hold(command.order, &record);
        let allowance = remaining - record.tickets();
        HoldReply::Held { record, allowance }
    }

    fn put_hold(&mut self, order: OrderNumber, record: &HoldRecord) {
        self.for_each_seat_leg(&record.lines, |grid, leg, seat| grid.set_taken(leg, seat, true));
        self.add_bought(&record.user, i32::from(record.tickets()));
        self.holds.insert(order, record.clone());
    }

    /// Marks seats sold. The hold ends if it is of these very seats; a forgotten one is made up for.
    pub fn sell(&mut self, command: &Sell) -> SellReply {
        if !self.knows(&command.epoch) {
            return SellReply::NotLoaded;
        }
        let held = self.holds.get(&command.order);
        if held.is_some_and(|record| record.lines == command.lines) {
            self.holds.remove(&command.order);
        } else {
            let mut all_sold = true;
            self.for_each_seat_leg(&command.lines, |grid, leg, seat| {
                all_sold &= grid.is_sold(leg, seat) || !grid.has(leg, seat);
            });
            if !all_sold {
                self.add_bought(&command.user, i32::from(tickets(&command.lines)));
            }
        }
        self.for_each_seat_leg(&command.lines, |grid, leg, seat| {
            grid.set_taken(leg, seat, true);
            grid.set_sold(leg, seat, true);
        });
        SellReply::Sold
    }

    /// Gives a hold back: by order number, only from held, never a seat that is sold.
    pub fn release(&mut self, command: &Release) -> ReleaseReply {
        match self.holds.get(&command.order) {
            None if stands(Guard::ReleaseOnlyHeld) => return ReleaseReply::NotHeld,
            Some(record) if stands(Guard::ReleaseSeen) && *record != command.record => {
                return ReleaseReply::Conflict;
            }
            None | Some(_) => {}
        }
        self.holds.remove(&command.order);
        self.for_each_seat_leg(&command.record.lines, TierGrid::free);
        self.count_freed(&command.record.lines);
        self.add_bought(&command.record.user, -i32::from(command.record.tickets()));
        ReleaseReply::Released
    }

    /// Gives a hold back, as [`Inventory::release`], but leaves taken what others own. All at once:
    /// part of a hold must never be found by a repeated attempt, which would order only that.
    pub fn mark(&mut self, command: &Mark) -> MarkReply {
        match self.holds.get(&command.order) {
            None => return MarkReply::NotHeld,
            Some(record) if stands(Guard::ReleaseSeen) && *record != command.record => {
                return MarkReply::Conflict;
            }
            Some(_) => {}
        }
        self.holds.remove(&command.order);
        self.for_each_seat_leg(&command.record.lines, |grid, leg, seat| {
            let seat_leg = SeatLeg { tier: grid.tier.clone(), leg, seat };
            if !stands(Guard::MarkTaken) || !command.taken.contains(&seat_leg) {
                grid.free(leg, seat);
            }
        });
        self.count_freed(&command.record.lines);
        self.add_bought(&command.record.user, -i32::from(command.record.tickets()));
        MarkReply::Marked
    }

    /// Writes a pending order's hold if there is none under its number, unless the order may have
    /// ended since the caller read it: paid, then its seats are sold; else, then they were freed. If
    /// it has this very hold, its seats are taken again: another hold that had them too, because
    /// this one was forgotten when it took them, may have given them back.
    pub fn restore(&mut self, command: &Restore) -> RestoreReply {
        if !self.knows(&command.epoch) {
            return RestoreReply::NotLoaded;
        }
        let lines = &command.record.lines;
        if let Some(held) = self.holds.get(&command.order) {
            if *held == command.record {
                self.for_each_seat_leg(lines, |grid, leg, seat| grid.set_taken(leg, seat, true));
            }
            return RestoreReply::Restored;
        }
        let freed = |line: &HeldLine| self.tiers.get(&line.tier).map(|grid| grid.freed);
        let is_unfreed = lines.iter().map(freed).eq(command.freed.iter().copied().map(Some));
        if stands(Guard::RestoreCounter) && !is_unfreed {
            return RestoreReply::Conflict;
        }
        let mut is_sold = false;
        self.for_each_seat_leg(lines, |grid, leg, seat| is_sold |= grid.is_sold(leg, seat));
        if stands(Guard::RestoreUnsold) && is_sold {
            return RestoreReply::Conflict;
        }
        self.put_hold(command.order, &command.record);
        RestoreReply::Restored
    }

    /// Frees leaked seat-legs of one tier, unless any seat of it was freed since the caller looked.
    pub fn repair(&mut self, command: &Repair) -> RepairReply {
        if !self.knows(&command.epoch) {
            return RepairReply::NotLoaded;
        }
        let Some(grid) = self.tiers.get_mut(&command.tier) else {
            return RepairReply::NotLoaded;
        };
        if stands(Guard::RepairCounter) && grid.freed != command.freed {
            return RepairReply::Conflict;
        }
        for (leg, seat) in &command.leaked {
            grid.set_taken(*leg, *seat, false);
            grid.set_sold(*leg, *seat, false);
        }
        grid.freed += 1;
        RepairReply::Repaired
    }

    /// The orders whose deadline has passed, earliest first, at most `most` of them.
    #[must_use]
    pub fn due(&self, now: Timestamp, most: usize) -> Vec<OrderNumber> {
        let mut due: Vec<(Timestamp, OrderNumber)> =
            self.holds.iter().map(|(order, record)| (record.deadline, *order)).collect();
        due.retain(|(deadline, _)| *deadline <= now);
        due.sort();
        due.into_iter().map(|(_, order)| order).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::Together;
    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000_000);

    fn tier(name: &str) -> TierId {
        TierId::new(name).unwrap()
    }

    fn epoch() -> Epoch {
        Epoch::new("e1").unwrap()
    }

    fn number(order: u64) -> OrderNumber {
        order.to_string().parse().unwrap()
    }

    fn sale() -> SaleId {
        SaleId::new("s").unwrap()
    }

    fn terms() -> Terms {
        Terms {
            state: SaleState::Open,
            opens_at: NOW,
            closes_at: NOW.plus_seconds(3600),
            limit: 4,
            legs: 2,
        }
    }

    /// Tiers `a` and `b`, two rows of eight seats each, over two legs.
    fn load() -> Load {
        let empty = || vec![vec![0; 2]; 2];
        let grid = |name| TierGrid {
            tier: tier(name),
            row_bytes: 1,
            taken: empty(),
            sold: empty(),
            freed: 0,
        };
        Load {
            sale: sale(),
            terms: terms(),
            expected: None,
            epoch: epoch(),
            tiers: vec![grid("a"), grid("b")],
            holds: BTreeMap::new(),
            bought: BTreeMap::new(),
        }
    }

    fn loaded() -> Inventory {
        let mut inventory = Inventory::default();
        assert_eq!(inventory.load(&load()), LoadReply::Loaded);
        inventory
    }

    fn line(name: &str, (from, to): (u16, u16), choice: Choice) -> Line {
        Line { tier: tier(name), legs: Legs::new(from, to).unwrap(), choice }
    }

    fn best(count: u16) -> Choice {
        Choice::Best { count, together: Together::Required }
    }

    fn these(seats: &[u32]) -> Choice {
        Choice::Seats(seats.iter().copied().map(Seat).collect())
    }

    fn seats(name: &str, (from, to): (u16, u16), seats: &[u32]) -> HeldLine {
        let seats = seats.iter().copied().map(Seat).collect();
        HeldLine { tier: tier(name), legs: Legs::new(from, to).unwrap(), seats }
    }

    fn ask(order: u64, user: &str, lines: Vec<Line>) -> Hold {
        Hold {
            sale: sale(),
            epoch: epoch(),
            order: number(order),
            user: UserId::new(user).unwrap(),
            fingerprint: RequestFingerprint::new("00000000000000aa").unwrap(),
            now: NOW,
            deadline: NOW.plus_seconds(600),
            lines,
        }
    }

    /// Holds, and says what is remembered of it.
    fn held(inventory: &mut Inventory, hold: &Hold) -> HoldRecord {
        let reply = inventory.hold(hold);
        let HoldReply::Held { record, .. } = reply else { panic!("not held: {reply:?}") };
        record
    }

    fn release(order: u64, record: &HoldRecord) -> Release {
        Release { sale: sale(), order: number(order), record: record.clone() }
    }

    fn sell(order: u64, record: &HoldRecord) -> Sell {
        let (user, lines) = (record.user.clone(), record.lines.clone());
        Sell { sale: sale(), epoch: epoch(), order: number(order), user, lines }
    }

    fn bought(inventory: &Inventory, user: &str) -> Option<u16> {
        inventory.bought.get(&UserId::new(user).unwrap()).copied()
    }

    #[test]
    fn a_load_starts_updates_or_is_stale() {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), best(1))]));
        let update = Load { terms: Terms { limit: 9, ..terms() }, ..load() };
        assert_eq!(inventory.load(&update), LoadReply::Updated);
        assert_eq!(inventory.loaded.as_ref().unwrap().1.limit, 9);
        assert_eq!(inventory.holds.len(), 1, "an update leaves the seats alone");
        let before = inventory.clone();
        let other = Load { epoch: Epoch::new("e2").unwrap(), ..load() };
        assert_eq!(inventory.load(&other), LoadReply::Stale(Some(epoch())));
        let unexpected = Load { expected: Some(epoch()), ..other.clone() };
        assert_eq!(Inventory::default().load(&unexpected), LoadReply::Stale(None));
        assert_eq!(inventory, before);
        assert_eq!(inventory.load(&unexpected), LoadReply::Loaded);
        assert!(inventory.holds.is_empty() && inventory.bought.is_empty());
    }

    #[test]
    fn a_hold_is_answered_again_with_the_same_seats() {
        let mut inventory = loaded();
        let hold = ask(1, "u", vec![line("a", (0, 2), best(2)), line("b", (1, 2), these(&[3]))]);
        let first = inventory.hold(&hold);
        let HoldReply::Held { record, allowance } = &first else { panic!("{first:?}") };
        assert_eq!((record.tickets(), *allowance), (3, 1));
        assert_eq!(record.lines, [seats("a", (0, 2), &[0, 1]), seats("b", (1, 2), &[3])]);
        let after = inventory.clone();
        let later = Hold { now: NOW.plus_seconds(599), ..hold.clone() };
        assert_eq!(inventory.hold(&later), first);
        let fingerprint = RequestFingerprint::new("00000000000000bb").unwrap();
        let other_fingerprint = Hold { fingerprint, ..hold.clone() };
        assert_eq!(inventory.hold(&other_fingerprint), HoldReply::ContentDiffers);
        let other_user = Hold { user: UserId::new("v").unwrap(), ..hold.clone() };
        assert_eq!(inventory.hold(&other_user), HoldReply::ContentDiffers);
        let late = Hold { now: NOW.plus_seconds(600), ..hold };
        assert_eq!(inventory.hold(&late), HoldReply::HoldExpired);
        assert_eq!(inventory, after);
    }

    #[test]
    fn every_refusal_of_a_hold_writes_nothing() {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "x", vec![line("b", (0, 1), these(&[0, 1, 2]))]));
        held(&mut inventory, &ask(2, "y", vec![line("b", (0, 1), these(&[4, 6]))]));
        held(&mut inventory, &ask(3, "y", vec![line("b", (0, 1), these(&[9, 11]))]));
        let one = |choice| vec![line("a", (0, 1), best(1)), line("b", (0, 1), choice)];
        let refusals = [
            (ask(9, "u", one(these(&[0, 2, 3]))), {
                HoldReply::SeatTaken(tier("b"), vec![Seat(0), Seat(2)])
            }),
            (ask(9, "u", one(these(&[99]))), HoldReply::SeatTaken(tier("b"), vec![Seat(99)])),
            (ask(9, "u", vec![line("c", (0, 1), best(1))]), HoldReply::SoldOut(tier("c"))),
            (ask(9, "u", one(best(4))), HoldReply::LimitReached { remaining: 4 }),
            (ask(9, "y", one(best(1))), HoldReply::LimitReached { remaining: 0 }),
            (
                Hold { epoch: Epoch::new("e2").unwrap(), ..ask(9, "u", one(best(1))) },
                HoldReply::NotLoaded,
            ),
            (Hold { now: NOW.plus_ms(-1), ..ask(9, "u", one(best(1))) }, HoldReply::SaleClosed),
            (
                Hold { now: NOW.plus_seconds(3600), ..ask(9, "u", one(best(1))) },
                HoldReply::SaleClosed,
            ),
        ];
        let before = inventory.clone();
        for (hold, refusal) in refusals {
            assert_eq!(inventory.hold(&hold), refusal);
            assert_eq!(inventory, before);
        }
        let unloaded = Inventory::default().hold(&ask(9, "u", one(best(1))));
        assert_eq!(unloaded, HoldReply::NotLoaded);
        let paused = Load { terms: Terms { state: SaleState::Paused, ..terms() }, ..load() };
        inventory.load(&paused);
        assert_eq!(inventory.hold(&ask(9, "u", one(best(1)))), HoldReply::SaleClosed);
    }

    #[test]
    fn scattered_seats_are_not_side_by_side() {
        let mut inventory = loaded();
        let taken = vec![0b1010_1010, 0b1111_1111];
        inventory.tiers.get_mut(&tier("a")).unwrap().taken[0] = taken;
        let hold = ask(1, "u", vec![line("a", (0, 1), best(2))]);
        assert_eq!(inventory.hold(&hold), HoldReply::NoAdjacent(tier("a")));
        let split = Choice::Best { count: 2, together: Together::Preferred };
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), split)]));
        assert_eq!(record.lines, [seats("a", (0, 1), &[1, 3])]);
        inventory.bought.clear();
        let three = ask(2, "u", vec![line("a", (0, 1), best(3))]);
        assert_eq!(inventory.hold(&three), HoldReply::SoldOut(tier("a")));
    }

    #[test]
    fn journeys_meet_only_where_they_share_a_leg() {
        let mut inventory = loaded();
        held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), these(&[0]))]));
        held(&mut inventory, &ask(2, "v", vec![line("a", (1, 2), these(&[0]))]));
        let whole = ask(3, "w", vec![line("a", (0, 2), these(&[0]))]);
        assert_eq!(inventory.hold(&whole), HoldReply::SeatTaken(tier("a"), vec![Seat(0)]));
    }

    #[test]
    fn a_release_gives_back_once_and_only_what_the_caller_saw() {
        let mut inventory = loaded();
        let fresh = inventory.clone();
        let hold = ask(1, "u", vec![line("a", (0, 2), best(2))]);
        let record = held(&mut inventory, &hold);
        let other = HoldRecord { deadline: NOW, ..record.clone() };
        assert_eq!(inventory.release(&release(1, &other)), ReleaseReply::Conflict);
        assert_eq!(inventory.release(&release(2, &record)), ReleaseReply::NotHeld);
        assert_eq!(inventory.release(&release(1, &record)), ReleaseReply::Released);
        assert_eq!(inventory.tiers[&tier("a")].taken, fresh.tiers[&tier("a")].taken);
        assert_eq!((inventory.tiers[&tier("a")].freed, bought(&inventory, "u")), (1, None));
        // Another order takes the seats; a second release must not give those back.
        held(&mut inventory, &ask(2, "v", vec![line("a", (0, 2), best(2))]));
        let before = inventory.clone();
        assert_eq!(inventory.release(&release(1, &record)), ReleaseReply::NotHeld);
        assert_eq!(inventory, before);
    }

    #[test]
    fn a_release_never_frees_what_is_sold() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let first_seat = vec![HeldLine { seats: vec![Seat(0)], ..record.lines[0].clone() }];
        let part = Sell { lines: first_seat, ..sell(1, &record) };
        assert_eq!(inventory.sell(&part), SellReply::Sold);
        assert_eq!(inventory.holds.len(), 1, "other seats were sold than the hold's");
        assert_eq!(inventory.release(&release(1, &record)), ReleaseReply::Released);
        let grid = &inventory.tiers[&tier("a")];
        assert!(grid.is_taken(0, Seat(0)) && grid.is_sold(1, Seat(0)));
        assert!(!grid.is_taken(0, Seat(1)));
    }

    #[test]
    fn a_sale_ends_its_hold_and_counts_once() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let wrong = Sell { epoch: Epoch::new("e2").unwrap(), ..sell(1, &record) };
        assert_eq!(inventory.sell(&wrong), SellReply::NotLoaded);
        for _ in 0..2 {
            assert_eq!(inventory.sell(&sell(1, &record)), SellReply::Sold);
            assert!(inventory.holds.is_empty());
            assert_eq!(bought(&inventory, "u"), Some(2));
        }
        let mut forgotten = loaded();
        for _ in 0..2 {
            assert_eq!(forgotten.sell(&sell(1, &record)), SellReply::Sold);
            assert_eq!(bought(&forgotten, "u"), Some(2));
        }
        assert_eq!(forgotten.tiers, inventory.tiers);
        let mut beyond = sell(2, &record);
        beyond.lines[0].seats = vec![Seat(99)];
        for _ in 0..2 {
            assert_eq!(forgotten.sell(&beyond), SellReply::Sold);
            assert_eq!(bought(&forgotten, "u"), Some(2), "there is no such place");
        }
    }

    #[test]
    fn a_mark_gives_a_hold_back_but_for_what_others_own() {
        let mut inventory = loaded();
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let mark = |record: &HoldRecord| Mark {
            sale: sale(),
            order: number(1),
            record: record.clone(),
            taken: vec![SeatLeg { tier: tier("a"), leg: 0, seat: Seat(0) }],
        };
        let other = HoldRecord { deadline: NOW, ..record.clone() };
        assert_eq!(inventory.mark(&mark(&other)), MarkReply::Conflict);
        assert_eq!(inventory.mark(&mark(&record)), MarkReply::Marked);
        let grid = &inventory.tiers[&tier("a")];
        assert!(grid.is_taken(0, Seat(0)) && !grid.is_taken(1, Seat(0)));
        assert!(!grid.is_taken(0, Seat(1)) && !grid.is_taken(1, Seat(1)));
        assert_eq!((grid.freed, inventory.holds.len(), bought(&inventory, "u")), (1, 0, None));
        assert_eq!(inventory.mark(&mark(&record)), MarkReply::NotHeld);
    }

    #[test]
    fn a_forgotten_hold_is_restored_once_and_its_seats_again() {
        let mut inventory = loaded();
        let record = held(&mut loaded(), &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        let freed = vec![0];
        let restore = Restore { sale: sale(), epoch: epoch(), order: number(1), record, freed };
        let wrong = Restore { epoch: Epoch::new("e2").unwrap(), ..restore.clone() };
        assert_eq!(inventory.restore(&wrong), RestoreReply::NotLoaded);
        for _ in 0..2 {
            assert_eq!(inventory.restore(&restore), RestoreReply::Restored);
            assert_eq!(inventory.holds[&number(1)], restore.record);
            assert_eq!(bought(&inventory, "u"), Some(2));
            let grid = inventory.tiers.get_mut(&tier("a")).unwrap();
            assert!(grid.is_taken(1, Seat(1)));
            // As another hold of the seat does that is given back.
            grid.set_taken(1, Seat(1), false);
            grid.freed += 1;
        }
    }

    #[test]
    fn an_order_that_ended_since_the_look_is_not_restored() {
        let restore = |record: HoldRecord| Restore {
            sale: sale(),
            epoch: epoch(),
            order: number(1),
            record,
            freed: vec![0],
        };
        let mut paid = loaded();
        let record = held(&mut paid, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        paid.sell(&sell(1, &record));
        assert_eq!(paid.restore(&restore(record.clone())), RestoreReply::Conflict);
        assert_eq!(bought(&paid, "u"), Some(2), "no ticket is counted twice");
        let mut ended = loaded();
        held(&mut ended, &ask(1, "u", vec![line("a", (0, 2), best(2))]));
        ended.release(&Release { sale: sale(), order: number(1), record: record.clone() });
        assert_eq!(ended.restore(&restore(record)), RestoreReply::Conflict);
        assert!(ended.holds.is_empty() && bought(&ended, "u").is_none());
    }

    #[test]
    fn a_repair_is_refused_once_anything_was_freed_since_the_look() {
        let mut inventory = loaded();
        // A leak: taken, but nobody's.
        let grid = inventory.tiers.get_mut(&tier("a")).unwrap();
        grid.set_taken(0, Seat(5), true);
        let repair = Repair {
            sale: sale(),
            epoch: epoch(),
            tier: tier("a"),
            freed: 0,
            leaked: vec![(0, Seat(5))],
        };
        let wrong = Repair { epoch: Epoch::new("e2").unwrap(), ..repair.clone() };
        assert_eq!(inventory.repair(&wrong), RepairReply::NotLoaded);
        let nowhere = Repair { tier: tier("c"), ..repair.clone() };
        assert_eq!(inventory.repair(&nowhere), RepairReply::NotLoaded);
        let record = held(&mut inventory, &ask(1, "u", vec![line("a", (0, 1), best(1))]));
        inventory.release(&release(1, &record));
        let before = inventory.clone();
        assert_eq!(inventory.repair(&repair), RepairReply::Conflict);
        assert_eq!(inventory, before);
        let again = Repair { freed: 1, ..repair };
        assert_eq!(inventory.repair(&again), RepairReply::Repaired);
        assert!(!inventory.tiers[&tier("a")].is_taken(0, Seat(5)));
        assert_eq!(inventory.repair(&again), RepairReply::Conflict, "a repair counts as freeing");
    }

    #[test]
    fn due_is_by_deadline_and_bounded() {
        let mut inventory = loaded();
        for (order, seconds) in [(3, 10), (1, 30), (2, 20)] {
            let hold = ask(order, "u", vec![line("a", (0, 1), best(1))]);
            held(&mut inventory, &Hold { deadline: NOW.plus_seconds(seconds), ..hold });
        }
        assert_eq!(inventory.due(NOW.plus_seconds(20), 9), [number(3), number(2)]);
        assert_eq!(inventory.due(NOW.plus_seconds(60), 1), [number(3)]);
        assert!(inventory.due(NOW, 9).is_empty());
    }
}
