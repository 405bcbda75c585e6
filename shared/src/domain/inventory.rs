//! The inventory of one sale: who holds which seat-legs, what is taken, what is sold.
//!
//! These are the rules. [`Inventory`] is the pure model of what Redis keeps for a sale, and each of
//! its methods is one script in `lua/`; a property test runs the same random commands through both
//! and compares every reply and the final state. The same model stands in for Redis in a simulator.
//! Every method checks everything first and then writes everything.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::choice::{Choice, NoChoice, Taken};
use super::ids::{Content, Epoch, Legs, SaleId, Seat, TierId, UserId};
use super::number::OrderNumber;
use super::sale::SaleState;
use super::time::Timestamp;

/// The terms of a sale that the scripts check.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Which tier.
    pub tier: TierId,
    /// Which journey.
    pub legs: Legs,
    /// Which seats, or how to pick them.
    pub choice: Choice,
}

/// Seats of one tier on one journey.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// What Redis remembers of a hold, as text: `deadline|content|tickets|lines|user`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldRecord {
    /// Who holds.
    pub user: UserId,
    /// What was asked for.
    pub content: Content,
    /// Until when it may be paid.
    pub deadline: Timestamp,
    /// What is held.
    pub lines: Vec<HeldLine>,
}

/// The text in Redis is not a hold record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a hold record: {0:?}")]
pub struct MalformedRecord(pub String);

/// Lines as text: `tier,from,to,seat.seat` joined by `;`.
#[must_use]
pub fn pack_lines(lines: &[HeldLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let separator = if text.is_empty() { "" } else { ";" };
        let seats: Vec<String> = line.seats.iter().map(|seat| seat.0.to_string()).collect();
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "{separator}{},{},{},{}",
            line.tier,
            line.legs.from(),
            line.legs.to(),
            seats.join(".")
        );
    }
    text
}

/// Reads what [`pack_lines`] wrote.
///
/// # Errors
/// Returns the text if it is anything else.
pub fn unpack_lines(text: &str) -> Result<Vec<HeldLine>, MalformedRecord> {
    let line = |text: &str| {
        let mut parts = text.split(',');
        let tier = TierId::new(parts.next()?).ok()?;
        let legs = Legs::new(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)?;
        let seats = parts.next()?;
        let seats: Option<Vec<Seat>> =
            seats.split('.').map(|seat| seat.parse().ok().map(Seat)).collect();
        parts.next().is_none().then_some(HeldLine { tier, legs, seats: seats? })
    };
    let malformed = || MalformedRecord(text.to_owned());
    text.split(';').map(line).collect::<Option<_>>().ok_or_else(malformed)
}

impl HoldRecord {
    /// How many tickets it holds.
    #[must_use]
    pub fn tickets(&self) -> u16 {
        tickets(&self.lines)
    }

    /// The record as text. The user comes last because it is free text.
    #[must_use]
    pub fn pack(&self) -> String {
        let Self { user, content, deadline, lines } = self;
        let (deadline, tickets) = (deadline.ms(), self.tickets());
        format!("{deadline}|{}|{tickets}|{}|{user}", content.as_str(), pack_lines(lines))
    }

    /// Reads what [`HoldRecord::pack`] wrote.
    ///
    /// # Errors
    /// Returns the text if it is anything else.
    pub fn unpack(text: &str) -> Result<Self, MalformedRecord> {
        let read = || {
            let mut parts = text.splitn(5, '|');
            let deadline = Timestamp::from_ms(parts.next()?.parse().ok()?);
            let content = Content::new(parts.next()?).ok()?;
            let tickets: u16 = parts.next()?.parse().ok()?;
            let lines = unpack_lines(parts.next()?).ok()?;
            let user = UserId::new(parts.next()?).ok()?;
            let record = Self { user, content, deadline, lines };
            (record.tickets() == tickets).then_some(record)
        };
        read().ok_or_else(|| MalformedRecord(text.to_owned()))
    }
}

/// The bitmaps of one tier.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        if !self.is_sold(leg, seat) {
            self.set_taken(leg, seat, false);
        }
    }
}

/// Everything a sale starts from, or starts again from after Redis lost it.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadReply {
    /// The sale starts from what was given.
    Loaded,
    /// The sale has this epoch already: only its terms were replaced.
    Updated,
    /// Redis has another epoch than expected (`None`: none at all); nothing was written.
    Stale(Option<Epoch>),
}

/// Hold every line of an order, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub content: Content,
    /// What time it is.
    pub now: Timestamp,
    /// Until when it may be paid.
    pub deadline: Timestamp,
    /// What to hold: 1 to 4 lines, each of another tier.
    pub lines: Vec<Line>,
}

/// What `hold` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    LimitReached(u16),
    /// These chosen seats are not free.
    SeatTaken(TierId, Vec<Seat>),
    /// Fewer seats are free than asked for, or the pattern fits nowhere.
    SoldOut(TierId),
    /// Enough seats are free, but nowhere enough side by side.
    NoAdjacent(TierId),
}

/// Mark an order's seats sold, also if its hold was forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SellReply {
    /// The seats are sold, now or already.
    Sold,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

/// Give a hold back, if it still is what the caller saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Which sale.
    pub sale: SaleId,
    /// Which order.
    pub order: OrderNumber,
    /// The hold that the caller saw.
    pub record: HoldRecord,
}

/// What `release` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReleaseReply {
    /// The seats are free again, but for those that are sold.
    Released,
    /// The order holds nothing.
    NotHeld,
    /// The order holds something else than the caller saw; nothing was written.
    Changed,
}

/// After a claim conflict: take seats that truly belong to other orders out of a hold, and leave
/// them taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Which sale.
    pub sale: SaleId,
    /// Which order lost them.
    pub order: OrderNumber,
    /// The hold that the caller saw.
    pub record: HoldRecord,
    /// The seat-legs that others own, all of them part of the hold.
    pub taken: Vec<SeatLeg>,
}

/// What `mark` answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkReply {
    /// What is left of the hold; `None` if nothing is.
    Marked(Option<HoldRecord>),
    /// The order holds nothing.
    NotHeld,
    /// The order holds something else than the caller saw; nothing was written.
    Changed,
}

/// Write the hold of a pending order that Redis has forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restore {
    /// Which sale.
    pub sale: SaleId,
    /// The epoch the caller knows.
    pub epoch: Epoch,
    /// Which order.
    pub order: OrderNumber,
    /// Its hold.
    pub record: HoldRecord,
}

/// What `restore` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreReply {
    /// The order has a hold, now or already.
    Restored,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

/// Free seat-legs of one tier that are taken though nobody holds or claims them.
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairReply {
    /// The seat-legs are free again.
    Repaired,
    /// Seats were freed since the caller looked: look again.
    Changed,
    /// Redis does not know the sale, or knows it under another epoch.
    NotLoaded,
}

/// The state of one sale in Redis.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
        self.loaded.as_ref().is_some_and(|(current, _)| current == epoch)
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
        if current != command.expected {
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

    /// Holds every line of an order, or none. The same number with the same content is answered
    /// with the same seats.
    pub fn hold(&mut self, command: &Hold) -> HoldReply {
        let Some((_, terms)) = self.loaded.as_ref().filter(|(epoch, _)| *epoch == command.epoch)
        else {
            return HoldReply::NotLoaded;
        };
        let bought = self.bought.get(&command.user).copied().unwrap_or(0);
        if let Some(record) = self.holds.get(&command.order) {
            if record.content != command.content || record.user != command.user {
                return HoldReply::ContentDiffers;
            }
            if record.deadline <= command.now {
                return HoldReply::HoldExpired;
            }
            let allowance = terms.limit.saturating_sub(bought);
            return HoldReply::Held { record: record.clone(), allowance };
        }
        let in_window = terms.opens_at <= command.now && command.now < terms.closes_at;
        if terms.state != SaleState::Open || !in_window {
            return HoldReply::SaleClosed;
        }
        let wanted: usize = command.lines.iter().map(|line| line.choice.count()).sum();
        let left = terms.limit.saturating_sub(bought);
        if wanted > usize::from(left) {
            return HoldReply::LimitReached(left);
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
            content: command.content.clone(),
            deadline: command.deadline,
            lines,
        };
        self.put_hold(command.order, &record);
        let allowance = left - record.tickets();
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
                all_sold &= grid.is_sold(leg, seat);
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
            None => return ReleaseReply::NotHeld,
            Some(record) if *record != command.record => return ReleaseReply::Changed,
            Some(_) => {}
        }
        self.holds.remove(&command.order);
        self.for_each_seat_leg(&command.record.lines, TierGrid::free);
        self.count_freed(&command.record.lines);
        self.add_bought(&command.record.user, -i32::from(command.record.tickets()));
        ReleaseReply::Released
    }

    /// Takes seats that others own out of a hold. A seat goes whole: the legs of it that nobody
    /// else owns are free again.
    pub fn mark(&mut self, command: &Mark) -> MarkReply {
        match self.holds.get(&command.order) {
            None => return MarkReply::NotHeld,
            Some(record) if *record != command.record => return MarkReply::Changed,
            Some(_) => {}
        }
        let is_lost = |tier: &TierId, seat: Seat| {
            command.taken.iter().any(|lost| lost.tier == *tier && lost.seat == seat)
        };
        let mut kept = command.record.clone();
        let mut gone = command.record.lines.clone();
        for line in &mut kept.lines {
            line.seats.retain(|seat| !is_lost(&line.tier, *seat));
        }
        for line in &mut gone {
            line.seats.retain(|seat| is_lost(&line.tier, *seat));
        }
        kept.lines.retain(|line| !line.seats.is_empty());
        gone.retain(|line| !line.seats.is_empty());
        self.for_each_seat_leg(&gone, |grid, leg, seat| {
            let seat_leg = SeatLeg { tier: grid.tier.clone(), leg, seat };
            if !command.taken.contains(&seat_leg) {
                grid.free(leg, seat);
            }
        });
        self.count_freed(&gone);
        self.add_bought(&command.record.user, -i32::from(tickets(&gone)));
        if kept.lines.is_empty() {
            self.holds.remove(&command.order);
            return MarkReply::Marked(None);
        }
        self.holds.insert(command.order, kept.clone());
        MarkReply::Marked(Some(kept))
    }

    /// Writes a pending order's hold if there is none under its number.
    pub fn restore(&mut self, command: &Restore) -> RestoreReply {
        if !self.knows(&command.epoch) {
            return RestoreReply::NotLoaded;
        }
        if !self.holds.contains_key(&command.order) {
            self.put_hold(command.order, &command.record);
        }
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
        if grid.freed != command.freed {
            return RepairReply::Changed;
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
