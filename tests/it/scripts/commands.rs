//! Random commands on a small sale, drawn so that refusals, replays and conflicts are frequent.

use std::collections::{BTreeMap, VecDeque};

use engine::domain::admission::gate::tokens::AddTokens;
use engine::domain::admission::gate::{Admit, GateShard, Share, TopUp};
use engine::domain::basics::ids::{
    Epoch, InventoryId, Leg, Legs, RequestFingerprint, SaleId, Seat, TierId, UserId,
};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::choice::{Choice, Offset, Together};
use engine::domain::inventory::{
    Freed, HeldLine, Hold, HoldRecord, Inventory, Line, Load, LoadPart, Mark, PartLimit, Recount,
    Release, Repair, Restore, SeatLeg, SeatsSold, Sell, Terms, TierGrid, Unsell, tickets,
};
use engine::domain::sale::SaleState;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// One command, of the inventory or of the gate.
#[derive(Debug, Clone)]
pub enum Command {
    Load(Load),
    LoadPart(LoadPart),
    Hold(Hold),
    Sell(Sell),
    Release(Release),
    Mark(Mark),
    Unsell(Unsell),
    Restore(Restore),
    Repair(Repair),
    Recount(Recount),
    Admit(Admit),
    AddTokens(AddTokens),
    /// Empties the script cache, as a failover does.
    Forget,
}

/// The values that a sequence draws from.
#[derive(Debug)]
pub struct SeededRng {
    rng: StdRng,
    /// The sale, or in every third sequence one tier of it that is kept apart.
    inventory: InventoryId,
    users: Vec<UserId>,
    orders: Vec<OrderNumber>,
    legs: u16,
    tiers: Vec<TierId>,
    large: bool,
    /// Nothing is refused for other reasons than seats, so that a sale fills up and empties again.
    calm: bool,
    /// Nearly all commands are admissions and time passes quickly, so that shards are topped up often.
    is_at_the_gate: bool,
    /// What this sequence asks for again and again: a search that left off must go on rightly.
    favourite: Option<Choice>,
    now: Timestamp,
    epochs: u32,
    holds: Vec<Hold>,
    records: Vec<(OrderNumber, HoldRecord)>,
    last: Option<Command>,
    /// The parts of a load that are still to be sent.
    parts: VecDeque<LoadPart>,
}

/// The counters of the blocks of some seats; zeros if the tier is not there.
fn freed_of(model: &Inventory, tier: &TierId, seats: impl Iterator<Item = Seat>) -> Vec<u32> {
    model.tiers.get(tier).map_or_else(Freed::default, |grid| grid.freed.clone()).of(seats)
}

fn tier(name: &str) -> TierId {
    TierId::new(name).unwrap()
}

impl SeededRng {
    pub fn new(seed: u64, prefix: &str) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let calm = rng.random_bool(0.5);
        let legs = match rng.random_range(0..10) {
            _ if calm => rng.random_range(1..=2),
            0..5 => 1,
            5..9 => rng.random_range(2..=5),
            _ => 15,
        };
        let tier_count = if calm { 1 } else { rng.random_range(1..=3) };
        let sale = SaleId::new(format!("{prefix}-{seed}")).unwrap();
        let (inventory, tier_count) = match seed % 3 {
            0 => (InventoryId::of_tier(sale, tier("a")), 1),
            _ => (InventoryId::whole(sale), tier_count),
        };
        let tiers = ["a", "b", "c"][..tier_count].iter().map(|name| tier(name));
        // Numbers of 18 digits and more, which a Lua number would not carry.
        let orders = (1..=12).map(|index| 123_456_789_012_345_670 + index);
        Self {
            inventory,
            users: ["7", "auth0|张三", "9007199254740993"]
                .map(|user| UserId::new(user).unwrap())
                .into(),
            orders: orders.map(|number: u64| number.to_string().parse().unwrap()).collect(),
            legs,
            tiers: tiers.collect(),
            large: !calm && rng.random_bool(0.2),
            calm,
            is_at_the_gate: rng.random_bool(0.1),
            favourite: None,
            now: Timestamp::from_ms(1_795_000_000_000),
            epochs: 0,
            holds: Vec::new(),
            records: Vec::new(),
            last: None,
            parts: VecDeque::new(),
            rng,
        }
    }

    pub fn sale(&self) -> &SaleId {
        self.inventory.sale()
    }

    pub fn inventory(&self) -> &InventoryId {
        &self.inventory
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    pub fn users(&self) -> &[UserId] {
        &self.users
    }

    /// The number of commands of the sequence.
    pub fn length(&mut self) -> usize {
        self.rng.random_range(30..=60)
    }

    /// The next command, given the state that the ones before have led to.
    pub fn command(&mut self, model: &Inventory, shards: &[GateShard]) -> Command {
        for (order, record) in &model.holds {
            if !self.records.iter().any(|(other, seen)| other == order && seen == record) {
                self.records.push((*order, record.clone()));
            }
        }
        if self.is_at_the_gate && self.rng.random_bool(0.5) {
            self.now = self.now.plus_ms(self.rng.random_range(0..1500));
        } else if self.rng.random_bool(0.1) {
            self.now = self.now.plus_ms(self.rng.random_range(0..40_000));
        }
        if let Some(last) = self.last.clone()
            && self.rng.random_bool(0.07)
        {
            return last;
        }
        let command = match self.rng.random_range(0..1000) {
            _ if !self.parts.is_empty() && self.rng.random_bool(0.7) => self.load_part(),
            _ if model.loaded.is_none() && self.rng.random_bool(0.8) => self.load(model),
            _ if self.is_at_the_gate && self.rng.random_bool(0.1) => self.add_tokens(),
            _ if self.is_at_the_gate && self.rng.random_bool(0.9) => self.admit(shards),
            0..480 => self.hold(model),
            480..620 => self.release(model),
            620..680 => self.sell(model),
            680..700 => self.unsell(model),
            700..770 => self.mark(model),
            770..810 => self.restore(model),
            810..850 => self.repair(model),
            850..860 => self.recount(model),
            860..890 if !self.calm => self.load(model),
            890..980 => self.admit(shards),
            980..998 => self.add_tokens(),
            _ => Command::Forget,
        };
        self.last = Some(command.clone());
        command
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        (!from.is_empty()).then(|| from[self.rng.random_range(0..from.len())].clone())
    }

    /// A number that holds nothing yet, if the sequence is a calm one.
    fn order_to_hold(&mut self, model: &Inventory) -> OrderNumber {
        let mut free = self.orders.clone();
        free.retain(|order| !model.holds.contains_key(order));
        let free = self.pick(&free).filter(|_| self.calm);
        free.unwrap_or_else(|| self.order())
    }

    fn order(&mut self) -> OrderNumber {
        self.orders[self.rng.random_range(0..self.orders.len())]
    }

    fn user(&mut self) -> UserId {
        self.users[self.rng.random_range(0..self.users.len())].clone()
    }

    fn fingerprint(&mut self) -> RequestFingerprint {
        let content: u64 = self.rng.random_range(0..3);
        RequestFingerprint::new(format!("{content:016x}")).unwrap()
    }

    fn epoch(&mut self, model: &Inventory) -> Epoch {
        match &model.loaded {
            Some((epoch, _)) if self.rng.random_bool(0.97) => epoch.clone(),
            _ => Epoch::new("another").unwrap(),
        }
    }

    fn journey(&mut self) -> Legs {
        let from = self.rng.random_range(0..self.legs);
        Legs::new(from, self.rng.random_range(from + 1..=self.legs)).unwrap()
    }

    fn some_tiers(&mut self) -> Vec<TierId> {
        let mut tiers: Vec<TierId> = self.tiers.clone();
        if self.rng.random_bool(0.03) {
            tiers.push(tier("nowhere"));
        }
        let count = self.rng.random_range(1..=tiers.len());
        while tiers.len() > count {
            tiers.remove(self.rng.random_range(0..tiers.len()));
        }
        tiers
    }

    /// A seat of a tier, rarely one that it has not.
    fn seat(&mut self, model: &Inventory, tier: &TierId) -> Seat {
        let bytes = model.tiers.get(tier).and_then(|grid| grid.taken.first()).map_or(2, Vec::len);
        let beyond = if self.rng.random_bool(0.02) { 9 } else { 0 };
        Seat(self.rng.random_range(0..(bytes as u32 * 8).max(1)) + beyond)
    }

    fn seats(&mut self, model: &Inventory, tier: &TierId, most: usize) -> Vec<Seat> {
        let count = self.rng.random_range(1..=most);
        let mut seats: Vec<Seat> = (0..count).map(|_| self.seat(model, tier)).collect();
        seats.sort_unstable();
        seats.dedup();
        seats
    }

    fn choice(&mut self, model: &Inventory, tier: &TierId) -> Choice {
        match self.rng.random_range(0..10) {
            0..3 => Choice::Seats(self.seats(model, tier, 3)),
            3..8 => Choice::Best {
                count: match self.rng.random_range(0..10) {
                    0..9 => self.rng.random_range(1..=4),
                    _ => self.rng.random_range(5..=10),
                },
                together: self.pick(&[Together::Required, Together::Preferred]).unwrap(),
            },
            _ => {
                let bytes = model.tiers.get(tier).map_or(1, |grid| grid.row_bytes);
                let mut offsets: Vec<Offset> = (0..self.rng.random_range(0..4))
                    .map(|_| Offset {
                        row: self.pick(&[0, 0, 0, 1, 1, 2]).unwrap(),
                        column: self.rng.random_range(-2..=2),
                    })
                    .filter(|offset| (offset.row, offset.column) != (0, 0))
                    .collect();
                offsets.sort_unstable();
                offsets.dedup();
                if self.rng.random_bool(0.5) {
                    offsets.reverse();
                }
                Choice::Pattern { column: self.rng.random_range(0..bytes as u16 * 8), offsets }
            }
        }
    }

    /// A journey and a choice, more often than not the choice made first.
    fn wish(&mut self, model: &Inventory, tier: &TierId) -> (Legs, Choice) {
        let legs = self.journey();
        if let Some(favourite) = self.favourite.clone()
            && self.rng.random_bool(0.6)
        {
            return (legs, favourite);
        }
        let mut choice = self.choice(model, tier);
        if self.calm && self.favourite.is_none() && self.rng.random_bool(0.3) {
            let below = vec![Offset { row: 1, column: 0 }];
            choice = Choice::Pattern { column: self.rng.random_range(0..8), offsets: below };
        }
        if !matches!(choice, Choice::Seats(_)) {
            self.favourite.get_or_insert_with(|| choice.clone());
        }
        (legs, choice)
    }

    fn hold(&mut self, model: &Inventory) -> Command {
        let holds = self.holds.clone();
        if let Some(earlier) = self.pick(&holds)
            && self.rng.random_bool(0.15)
        {
            return Command::Hold(Hold { now: self.now, ..earlier });
        }
        let mut lines = Vec::new();
        for tier in self.some_tiers() {
            let (legs, choice) = self.wish(model, &tier);
            lines.push(Line { tier, legs, choice });
        }
        let hold = Hold {
            inventory: self.inventory.clone(),
            epoch: self.epoch(model),
            order: self.order_to_hold(model),
            user: self.user(),
            fingerprint: self.fingerprint(),
            now: self.now,
            deadline: self.now.plus_ms(self.rng.random_range(1..60_000)),
            replaced: Tickets::new(self.rng.random_range(0..4_u16).saturating_sub(2)),
            lines,
        };
        self.holds.push(hold.clone());
        Command::Hold(hold)
    }

    fn held_lines(&mut self, model: &Inventory) -> Vec<HeldLine> {
        self.some_tiers()
            .into_iter()
            .map(|tier| HeldLine { legs: self.journey(), seats: self.seats(model, &tier, 3), tier })
            .collect()
    }

    fn new_record(&mut self, model: &Inventory) -> HoldRecord {
        HoldRecord {
            user: self.user(),
            fingerprint: self.fingerprint(),
            deadline: self.now.plus_ms(self.rng.random_range(-10_000..60_000)),
            lines: self.held_lines(model),
        }
    }

    /// A hold that is there, rarely one that was or never was.
    fn a_hold(&mut self, model: &Inventory) -> (OrderNumber, HoldRecord) {
        let there: Vec<_> =
            model.holds.iter().map(|(order, hold)| (*order, hold.clone())).collect();
        let were = self.records.clone();
        match self.rng.random_range(0..10) {
            0..8 => self.pick(&there),
            8 => self.pick(&were),
            _ => None,
        }
        .unwrap_or_else(|| (self.order(), self.new_record(model)))
    }

    fn release(&mut self, model: &Inventory) -> Command {
        let (order, record) = self.a_hold(model);
        Command::Release(Release { inventory: self.inventory.clone(), order, record })
    }

    fn mark(&mut self, model: &Inventory) -> Command {
        let (order, record) = self.a_hold(model);
        let share = if self.calm { 0.3 } else { self.rng.random_range(0.0..=1.0) };
        let all: Vec<SeatLeg> = record.lines.iter().flat_map(HeldLine::seat_legs).collect();
        let taken = all.into_iter().filter(|_| self.rng.random_bool(share)).collect();
        Command::Mark(Mark { inventory: self.inventory.clone(), order, record, taken })
    }

    fn sell(&mut self, model: &Inventory) -> Command {
        let (order, record) = self.a_hold(model);
        let forgotten = self.rng.random_bool(0.3);
        let lines = if forgotten { self.held_lines(model) } else { record.lines };
        let epoch = self.epoch(model);
        Command::Sell(Sell {
            inventory: self.inventory.clone(),
            epoch,
            order,
            user: record.user,
            freed: self.rng.random_bool(0.7).then(|| self.freed(model, &lines)),
            lines,
        })
    }

    /// What was bought by somebody who has bought that much: nobody's holds lose their count.
    fn unsell(&mut self, model: &Inventory) -> Command {
        let lines = self.sold_lines(model);
        let tickets = tickets(&lines);
        let has_bought = |(user, bought): (&UserId, &Tickets)| {
            let of_user = model.holds.values().filter(|record| record.user == *user);
            let mut needed: Tickets = of_user.map(HoldRecord::tickets).sum();
            needed += tickets;
            (*bought >= needed).then(|| user.clone())
        };
        let users: Vec<UserId> = model.bought.iter().filter_map(has_bought).collect();
        let Some(user) = self.pick(&users) else { return self.sell(model) };
        Command::Unsell(Unsell {
            inventory: self.inventory.clone(),
            epoch: self.epoch(model),
            user,
            freed: self.freed(model, &lines),
            lines,
        })
    }

    /// A buyer's number of tickets, seldom seen wrongly, as it shall be: nobody's holds lose their count.
    fn recount(&mut self, model: &Inventory) -> Command {
        let users = self.users.clone();
        let user = self.pick(&users).unwrap();
        let of_user = model.holds.values().filter(|record| record.user == user);
        let held: Tickets = of_user.map(HoldRecord::tickets).sum();
        let has = model.bought_by(&user);
        let wrongly = Tickets::new(u16::from(self.rng.random_bool(0.2)));
        let lines: Vec<HeldLine> = match self.rng.random_bool(0.5) {
            true => self.sold_lines(model),
            false => Vec::new(),
        };
        Command::Recount(Recount {
            inventory: self.inventory.clone(),
            epoch: self.epoch(model),
            user,
            seen: has.saturating_add(wrongly),
            tickets: held.max(has.saturating_sub(Tickets::new(1))),
            freed: self.freed(model, &lines),
            lines,
        })
    }

    /// Seats of one tier that are sold on a journey, rarely others.
    fn sold_lines(&mut self, model: &Inventory) -> Vec<HeldLine> {
        let tiers = self.some_tiers();
        let tier = self.pick(&tiers).unwrap();
        let legs = self.journey();
        let mut seats = self.seats(model, &tier, 2);
        if let Some(grid) = model.tiers.get(&tier).filter(|_| self.rng.random_bool(0.9)) {
            let places = grid.taken.first().map_or(0, |bits| bits.len() as u32 * 8);
            let is_sold = |seat: &Seat| legs.iter().all(|leg| grid.is_sold(leg, *seat));
            let sold: Vec<Seat> = (0..places).map(Seat).filter(is_sold).collect();
            let from = self.rng.random_range(0..=sold.len());
            seats = sold[from..].iter().copied().take(2).collect();
        }
        if seats.is_empty() {
            seats = self.seats(model, &tier, 2);
        }
        vec![HeldLine { tier, legs, seats }]
    }

    /// What was seen of the counters of some lines, seldom wrongly.
    fn freed(&mut self, model: &Inventory, lines: &[HeldLine]) -> Vec<Vec<u32>> {
        let seen = |line: &HeldLine| freed_of(model, &line.tier, line.seats.iter().copied());
        let mut freed: Vec<Vec<u32>> = lines.iter().map(seen).collect();
        let one = freed.iter_mut().flatten().next_back();
        if let Some(one) = one.filter(|_| self.rng.random_bool(0.1)) {
            *one += 1;
        }
        freed
    }

    fn restore(&mut self, model: &Inventory) -> Command {
        let (order, record) = self.a_hold(model);
        let known = self.rng.random_bool(0.5);
        let record = if known { record } else { self.new_record(model) };
        let epoch = self.epoch(model);
        let freed = self.freed(model, &record.lines);
        let seat_legs = record.lines.iter().flat_map(HeldLine::seat_legs);
        let sold =
            SeatsSold::of(seat_legs.map(|at| {
                model.tiers.get(&at.tier).is_some_and(|grid| grid.is_sold(at.leg, at.seat))
            }));
        let sold = if self.rng.random_bool(0.8) { sold } else { SeatsSold::None };
        let inventory = self.inventory.clone();
        Command::Restore(Restore { inventory, epoch, order, record, freed, sold })
    }

    fn repair(&mut self, model: &Inventory) -> Command {
        let tiers = self.some_tiers();
        let tier = self.pick(&tiers).unwrap();
        let count = self.rng.random_range(0..12);
        let leaked: Vec<(Leg, Seat)> = (0..count)
            .map(|_| (Leg(self.rng.random_range(0..=self.legs)), self.seat(model, &tier)))
            .collect();
        let mut freed = freed_of(model, &tier, leaked.iter().map(|(_, seat)| *seat));
        if let Some(one) = freed.last_mut().filter(|_| self.rng.random_bool(0.2)) {
            *one += 1;
        }
        Command::Repair(Repair {
            inventory: self.inventory.clone(),
            epoch: self.epoch(model),
            tier,
            freed,
            leaked,
        })
    }

    fn bitmap(&mut self, bytes: usize, density: f64) -> Vec<u8> {
        let mut byte =
            || (0..8).fold(0, |sum, _| sum << 1 | u8::from(self.rng.random_bool(density)));
        (0..bytes).map(|_| byte()).collect()
    }

    fn grid(&mut self, tier: TierId) -> TierGrid {
        let (rows, row_bytes, density) = match self.large {
            false if self.calm => (4, 1, self.rng.random_range(0.0..0.4)),
            false => (
                self.pick(&[0, 1, 2, 3, 4, 5, 6, 6, 6]).unwrap(),
                self.rng.random_range(1..=3),
                self.rng.random_range(0.0..0.7),
            ),
            // Searches must go on from one piece to the next.
            true => (
                self.rng.random_range(20..=120),
                self.rng.random_range(1..=17),
                self.rng.random_range(0.8..1.0),
            ),
        };
        let bytes = rows * row_bytes as usize;
        let not_for_sale = self.bitmap(bytes, density);
        let sold_share = self.pick(&[0.0, 0.0, 0.2]).unwrap();
        let (mut taken, mut sold) = (Vec::new(), Vec::new());
        for _ in 0..self.legs {
            let of_leg = self.bitmap(bytes, sold_share);
            let union = not_for_sale.iter().zip(&of_leg).map(|(one, other)| one | other);
            taken.push(union.collect());
            sold.push(of_leg);
        }
        if self.rng.random_bool(0.05) && bytes > 0 {
            // Nobody writes this, but both sides must read it alike.
            sold[0] = self.bitmap(bytes, 0.5);
        }
        // None, one for all rows, or each its own, also such as no row has.
        let columns = u16::try_from(row_bytes).unwrap() * 8;
        let middle = self.rng.random_range(0..=2 * columns);
        let middles = match self.rng.random_range(0..4) {
            0 => Vec::new(),
            1 => vec![middle; rows],
            _ => (0..rows).map(|_| self.rng.random_range(0..=2 * columns)).collect(),
        };
        TierGrid { tier, row_bytes, middles, taken, sold, freed: Freed::default() }
    }

    /// The next part of the load under way; seldom one that is missing its predecessor.
    fn load_part(&mut self) -> Command {
        let skipped = usize::from(self.parts.len() > 1 && self.rng.random_bool(0.05));
        let next = self.parts.drain(..=skipped).next_back();
        next.map_or(Command::Forget, Command::LoadPart)
    }

    fn load(&mut self, model: &Inventory) -> Command {
        let current = model.loaded.as_ref().map(|(epoch, _)| epoch.clone());
        let opens_at = self.now.plus_ms(self.pick(&[-1000, -1, 0, 1, 5000]).unwrap());
        let terms = Terms {
            state: if self.rng.random_bool(0.95) { SaleState::Open } else { SaleState::Paused },
            opens_at: if self.rng.random_bool(0.95) { self.now } else { opens_at },
            closes_at: opens_at.plus_ms(self.rng.random_range(100_000..2_000_000)),
            limit: Tickets::new(match self.rng.random_bool(0.3) {
                _ if self.calm => 1000,
                true => self.rng.random_range(2..=6),
                false => self.rng.random_range(10..=60),
            }),
            leg_count: self.legs,
        };
        let updates = self.rng.random_bool(0.4);
        let epoch = current.clone().filter(|_| updates).unwrap_or_else(|| {
            self.epochs += 1;
            Epoch::new(format!("e{}", self.epochs)).unwrap()
        });
        let wrong = Some(Epoch::new("another").unwrap());
        let expected = match self.rng.random_range(0..10) {
            0 => None,
            1 => wrong,
            _ => current,
        };
        let mut tiers = Vec::new();
        for tier in self.tiers.clone() {
            if self.rng.random_bool(0.95) {
                let grid = self.grid(tier);
                tiers.push(grid);
            }
        }
        let mut holds: BTreeMap<OrderNumber, HoldRecord> = BTreeMap::new();
        for order in self.orders.clone() {
            if self.rng.random_bool(0.1) {
                let record = self.new_record(model);
                holds.insert(order, record);
            }
        }
        let mut bought = BTreeMap::new();
        for user in self.users.clone() {
            if self.rng.random_bool(0.2) {
                bought.insert(user, Tickets::new(self.rng.random_range(1..=4)));
            }
        }
        // Rarely what nobody writes, but both sides must read alike: holds that are not counted.
        if self.rng.random_bool(0.9) {
            for record in holds.values() {
                *bought.entry(record.user.clone()).or_default() += record.tickets();
            }
        }
        let inventory = self.inventory.clone();
        let load = Load { inventory, terms, expected, epoch, tiers, holds, bought };
        if self.rng.random_bool(0.5) {
            return Command::Load(load);
        }
        // Whatever was left of another load in parts is never sent.
        let limits = [PartLimit::SMALLEST, PartLimit { arguments: 20, bytes: 4096 }];
        let limit = self.pick(&limits).unwrap_or(PartLimit::STANDARD);
        self.parts = load.into_parts(limit).into();
        self.load_part()
    }

    fn share(&mut self) -> Share {
        Share { budget: self.rng.random_range(0..10), left: self.rng.random_range(0..10) }
    }

    fn add_tokens(&mut self) -> Command {
        let tokens = self.rng.random_range(0..4);
        let more = self.rng.random_range(1..3);
        Command::AddTokens(AddTokens {
            sale: self.sale().clone(),
            shard: self.rng.random_range(0..2),
            id: self.pick(&["a", "b", "c"]).unwrap().parse().unwrap(),
            tokens,
            total: tokens + more,
            max_additions: self.rng.random_range(1..=3),
            first: self.share(),
            now: self.now,
        })
    }

    fn admit(&mut self, shards: &[GateShard]) -> Command {
        let shard: u16 = self.rng.random_range(0..2);
        let generation = if self.rng.random_bool(0.7) {
            shards[usize::from(shard)].generation
        } else {
            self.rng.random_range(0..3)
        };
        let top_up = TopUp {
            generation,
            share: self.share(),
            exhausted_ms: self.rng.random_range(0..if self.is_at_the_gate { 2000 } else { 30_000 }),
            holds: self.rng.random_bool(0.5),
        };
        let user_lock_ms = self.pick(&[0, 3_600_000]).unwrap();
        Command::Admit(Admit {
            sale: self.sale().clone(),
            shard,
            user: self.user(),
            tickets: self.rng.random_range(1..=3),
            now: self.now,
            // Far longer than the test runs: a lock must not end by the server's clock.
            user_lock_ms: if self.is_at_the_gate { 0 } else { user_lock_ms },
            rate_per_second: self.rng.random_range(1..=3),
            first: self.share(),
            top_up: self.rng.random_bool(0.3).then_some(top_up),
        })
    }
}
