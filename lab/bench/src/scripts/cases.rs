//! Every script and every way of choosing, on one hall at one fill after another.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::admission::gate::tokens::AddTokens;
use engine::domain::admission::gate::{Admit, Share};
use engine::domain::basics::bitmap;
use engine::domain::basics::ids::{AdditionId, Epoch, Legs, Seat};
use engine::domain::basics::tickets::Tickets;
use engine::domain::inventory::choice::{Choice, Offset, Together};
use engine::domain::inventory::{
    Freed, HeldLine, Hold, HoldRecord, HoldReply, Line, Load, Mark, Recount, Release, Repair,
    Restore, SeatLeg, SeatsSold, Sell, TierGrid, Unsell, freed_block_of,
};
use engine::ports::Seats as _;

use super::crowd::{Crowd, free_pairs};
use super::halls::{Hall, NOW, Tier};
use super::report::{Figure, Row};
use super::rig::{Act, Burst, Kept, Rig};
use super::{Baseline, Error, Options, baselines};

/// Number of seats that every measured hold asks for, but for patterns.
const SEATS: u16 = 2;
/// What part of the free seats a burst of calls may take.
const PART_TAKEN: usize = 8;
/// Fewest calls of a burst.
const MIN_CALLS: usize = 4;
/// Most bursts of a round.
const MAX_BURSTS: usize = 10;
/// Calls before each burst that are not measured: the server has just been set back, and its caches
/// are cold.
const WARMING_CALLS: usize = 20;
/// Number of seats that all baseline calls of one round go through.
const BASELINE_SEATS: u32 = 40_000;

/// What is measured: a script, and for `hold` the way of choosing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Chosen,
    /// Two neighbours, or nothing.
    BestRequired,
    /// Two seats, neighbours if possible.
    BestPreferred,
    /// A seat, its neighbour, and the one behind.
    Pattern,
    /// Two spots without a place.
    Standing,
    /// Two neighbours between two stops.
    Journey,
    /// Two tiers in one order.
    TwoLines,
    /// The same request again.
    Repeated,
    /// Two neighbours that somebody else has taken.
    Taken,
    Sell,
    Unsell,
    Release,
    Mark,
    Restore,
    Repair,
    Recount,
    Admit,
    AddTokens,
    /// The whole sale with all holds, after a loss.
    Load,
    Baseline(Baseline),
}

impl Case {
    const OURS: &[Self] = &[
        Self::Chosen,
        Self::BestRequired,
        Self::BestPreferred,
        Self::Pattern,
        Self::Standing,
        Self::Journey,
        Self::TwoLines,
        Self::Repeated,
        Self::Taken,
        Self::Sell,
        Self::Unsell,
        Self::Release,
        Self::Mark,
        Self::Restore,
        Self::Repair,
        Self::Recount,
        Self::Admit,
        Self::AddTokens,
        Self::Load,
    ];

    /// What is measured on a hall. The baselines know nothing of legs.
    fn of(hall: &Hall) -> Vec<Self> {
        let mut cases: Vec<Self> = Self::OURS.to_vec();
        match hall.legs {
            1 => cases.retain(|case| *case != Self::Journey),
            _ => return cases,
        }
        cases.extend(Baseline::ALL.map(Self::Baseline));
        cases
    }

    /// The script, and what it is asked for.
    fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Chosen => ("hold", "2 chosen seats"),
            Self::BestRequired => ("hold", super::report::BEST_OF_TWO),
            Self::BestPreferred => ("hold", "best 2, together preferred"),
            Self::Pattern => ("hold", "a pattern of 3 in 2 rows"),
            Self::Standing => ("hold", "2 of general admission"),
            Self::Journey => ("hold", "best 2, between any stops"),
            Self::TwoLines => ("hold", "best 2 in each of 2 tiers"),
            Self::Repeated => ("hold", "the same request again"),
            Self::Taken => ("hold", "2 chosen seats that are taken"),
            Self::Sell => ("sell", "2 seats"),
            Self::Unsell => ("unsell", "2 seats"),
            Self::Release => ("release", "2 seats"),
            Self::Mark => ("mark", "2 seats, one of them lost"),
            Self::Restore => ("restore", "2 seats"),
            Self::Repair => ("repair", "2 seats"),
            Self::Recount => ("recount", "a buyer of 2 seats"),
            Self::Admit => ("admit", "2 tickets"),
            Self::AddTokens => ("add_tokens", "8 tokens"),
            Self::Load => ("load", "the whole sale and its holds"),
            Self::Baseline(baseline) => ("baseline", baseline.name()),
        }
    }
}

/// A hall at one fill: what can be asked of it.
struct State {
    hall: Hall,
    kept: Kept,
    /// Free neighbours of the seated tier on the whole journey.
    pairs: Vec<(Seat, Seat)>,
    /// Taken seats of it.
    taken: Vec<Seat>,
    freed: Freed,
    grids: Vec<TierGrid>,
    /// Free seats of the tier with fewer.
    free: usize,
    /// A request that was held, to be repeated.
    held: Option<Hold>,
    filled_percent: f64,
}

impl State {
    async fn look(rig: &mut Rig, hall: &Hall, held: Option<Hold>) -> Result<Self, Error> {
        let mut grids = Vec::new();
        for tier in hall.tiers() {
            grids.push(rig.seats.grid(&hall.inventory, &tier.id, hall.legs).await?);
        }
        let bits: Vec<Vec<u8>> = grids.iter().map(|grid| grid.taken_over(hall.whole())).collect();
        let zeros = |bits: &Vec<u8>| bits.iter().map(|byte| byte.count_zeros()).sum();
        let free = bitmap::index(bits.iter().map(zeros).min().unwrap_or(0));
        let is_seat = |seat: &Seat| bitmap::get(&hall.seated.initial, *seat) == Some(false);
        let is_taken = |seat: &Seat| bitmap::get(&bits[0], *seat) == Some(true);
        let taken = (0..bitmap::places(&bits[0])).map(Seat).filter(is_seat).filter(is_taken);
        let ones =
            |bitmap: &Vec<u8>| bitmap.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        let places: u64 = ones(&hall.seated.initial) * u64::from(hall.legs);
        let seat_legs = f64::from(hall.seated.seats) * f64::from(hall.legs);
        let taken_legs = grids[0].taken.iter().map(ones).sum::<u64>() - places;
        if hall.legs == 1 {
            baselines::write(&mut rig.control, &hall.seated, &bits[0]).await?;
        }
        Ok(Self {
            pairs: free_pairs(&bits[0], hall.seated.row_bytes),
            taken: taken.collect(),
            freed: grids[0].freed.clone(),
            hall: hall.clone(),
            kept: rig.keep().await?,
            grids,
            free,
            held,
            filled_percent: taken_legs as f64 * 100.0 / seat_legs,
        })
    }
}

/// Measures one hall at each fill.
pub async fn measure(rig: &mut Rig, hall: &Hall, options: &Options) -> Result<Vec<Row>, Error> {
    rig.clear().await?;
    rig.seats.load(&hall.load()?).await?;
    let mut crowd = Crowd::new(hall, options.seed);
    let held = first_hold(rig, &mut crowd, hall).await?;
    let mut rows = Vec::new();
    for fill in &options.fills {
        crowd.fill(rig, f64::from(*fill) / 100.0).await?;
        let state = State::look(rig, hall, held.clone()).await?;
        let cases = Case::of(hall);
        let mut bursts: Vec<Vec<Burst>> = vec![Vec::new(); cases.len()];
        for _ in 0..options.rounds.max(1) {
            for (case, bursts) in cases.iter().zip(&mut bursts) {
                bursts.push(round(rig, &mut crowd, &state, *case, options.calls).await?);
            }
        }
        for (case, bursts) in cases.iter().zip(&bursts) {
            let (script, asks) = case.name();
            let figure = Figure::from_rounds(bursts);
            if figure.calls == 0 {
                // Nothing is left that could be asked for.
                continue;
            }
            rows.push(Row {
                hall: hall.name.clone(),
                seats: hall.seated.seats,
                tiers: 2,
                legs: hall.legs,
                filled_percent: state.filled_percent,
                script,
                asks,
                figure,
                times_noop: None,
                times_hold: None,
            });
        }
        rig.set_back(&state.kept).await?;
    }
    Ok(rows)
}

/// The order that will be repeated: one seat that stays held.
async fn first_hold(rig: &Rig, crowd: &mut Crowd, hall: &Hall) -> Result<Option<Hold>, Error> {
    let choice = Choice::Best { count: 1, together: Together::Required };
    let wish = crowd.wants(vec![Crowd::line(&hall.seated, hall.whole(), choice)])?;
    let reply = rig.seats.hold(&wish).await?;
    Ok(matches!(reply, HoldReply::Held { .. }).then_some(wish))
}

/// One round of one case: bursts of calls, each on the state that was kept.
async fn round(
    rig: &mut Rig,
    crowd: &mut Crowd,
    state: &State,
    case: Case,
    calls: usize,
) -> Result<Burst, Error> {
    let (in_burst, most_bursts) = if let Case::Baseline(_) = case {
        (bitmap::index((BASELINE_SEATS / state.hall.seated.seats.max(1)).clamp(2, 20)), 1)
    } else if case == Case::Load {
        (MIN_CALLS, 1)
    } else {
        ((state.free / PART_TAKEN).max(MIN_CALLS), MAX_BURSTS)
    };
    let in_burst = in_burst.clamp(1, calls.max(1));
    let bursts = calls.div_ceil(in_burst).min(most_bursts);
    let mut sum = Burst::default();
    for _ in 0..bursts {
        rig.set_back(&state.kept).await?;
        let acts = plan(rig, crowd, state, case, in_burst).await?;
        if let Some(held) = &state.held {
            rig.burst(&vec![Act::Hold(Box::new(held.clone())); WARMING_CALLS]).await?;
        }
        let burst = rig.burst(&acts).await?;
        sum.counted.add(&burst.counted);
        sum.done += burst.done;
    }
    if let Case::Baseline(_) = case {
        rig.renew_lua().await?;
    }
    Ok(sum)
}

fn best(together: Together) -> Choice {
    Choice::Best { count: SEATS, together }
}

/// The calls of one burst. What they need to be there already is done on the way.
async fn plan(
    rig: &Rig,
    crowd: &mut Crowd,
    state: &State,
    case: Case,
    calls: usize,
) -> Result<Vec<Act>, Error> {
    let hall = &state.hall;
    let (seated, standing, whole) = (&hall.seated, &hall.standing, hall.whole());
    let mut acts = Vec::with_capacity(calls);
    let one = |tier: &Tier, legs: Legs, choice: Choice| vec![Crowd::line(tier, legs, choice)];
    match case {
        Case::Chosen => {
            for (first, second) in crowd.draw(&state.pairs, calls) {
                let choice = Choice::Seats(vec![first, second]);
                acts.push(hold(crowd, one(seated, whole, choice))?);
            }
        }
        Case::Taken => {
            for first in crowd.draw(&state.taken, calls) {
                let choice = Choice::Seats(vec![first, Seat(first.0 + 1)]);
                acts.push(hold(crowd, one(seated, whole, choice))?);
            }
        }
        Case::Repeated => {
            let held = state.held.iter().cycle().take(calls);
            acts.extend(held.map(|held| Act::Hold(Box::new(held.clone()))));
        }
        Case::BestRequired => {
            for _ in 0..calls {
                acts.push(hold(crowd, one(seated, whole, best(Together::Required)))?);
            }
        }
        Case::BestPreferred => {
            for _ in 0..calls {
                acts.push(hold(crowd, one(seated, whole, best(Together::Preferred)))?);
            }
        }
        Case::Pattern => acts.extend(patterns(crowd, state, calls)?),
        Case::Standing => {
            for _ in 0..calls {
                acts.push(hold(crowd, one(standing, whole, best(Together::Preferred)))?);
            }
        }
        Case::Journey => {
            for _ in 0..calls {
                let legs = crowd.journey(hall.legs);
                acts.push(hold(crowd, one(seated, legs, best(Together::Required)))?);
            }
        }
        Case::TwoLines => acts.extend(two_lines(crowd, state, calls)?),
        Case::Sell => acts.extend(sells(rig, crowd, state, calls).await?),
        Case::Unsell => acts.extend(unsells(rig, crowd, state, calls).await?),
        Case::Release => acts.extend(releases(rig, crowd, state, calls).await?),
        Case::Mark => acts.extend(marks(rig, crowd, state, calls).await?),
        Case::Restore => acts.extend(restores(crowd, state, calls)?),
        Case::Repair => acts.extend(repairs(crowd, state, calls)?),
        Case::Recount => acts.extend(recounts(rig, crowd, state, calls).await?),
        Case::Admit => acts.extend(admissions(crowd, calls)?),
        Case::AddTokens => acts.extend(additions(crowd, calls)?),
        Case::Load => acts.extend(loads(crowd, state, calls)?),
        Case::Baseline(baseline) => {
            let orders = (0..calls).map(|call| format!("198000000000{call:06}"));
            acts.extend(orders.map(|order| Act::Baseline(baseline, order)));
        }
    }
    Ok(acts)
}

/// Holds of two seats, one behind the other and one column apart, at a random column.
fn patterns(crowd: &mut Crowd, state: &State, calls: usize) -> Result<Vec<Act>, Error> {
    let (seated, whole) = (&state.hall.seated, state.hall.whole());
    let columns = usize::try_from(seated.row_bytes).unwrap_or(usize::MAX).saturating_mul(8) - 1;
    let act = |_| {
        let column = u16::try_from(crowd.pick(columns)).unwrap_or(u16::MAX);
        let offsets = vec![Offset { row: 0, column: 1 }, Offset { row: 1, column: 0 }];
        let choice = Choice::Pattern { column, offsets };
        hold(crowd, vec![Crowd::line(seated, whole, choice)])
    };
    (0..calls).map(act).collect()
}

/// Holds of two seats and two places of general admission.
fn two_lines(crowd: &mut Crowd, state: &State, calls: usize) -> Result<Vec<Act>, Error> {
    let (hall, whole) = (&state.hall, state.hall.whole());
    let line = |tier| Crowd::line(tier, whole, best(Together::Preferred));
    (0..calls).map(|_| hold(crowd, vec![line(&hall.seated), line(&hall.standing)])).collect()
}

/// Sales of what was held a moment before.
async fn sells(
    rig: &Rig,
    crowd: &mut Crowd,
    state: &State,
    calls: usize,
) -> Result<Vec<Act>, Error> {
    let mut acts = Vec::with_capacity(calls);
    for (wish, record) in held(rig, crowd, state, calls).await? {
        let Hold { inventory, epoch, order, user, .. } = wish;
        let lines = record.lines;
        acts.push(Act::Sell(Box::new(Sell { inventory, epoch, order, user, lines, freed: None })));
    }
    Ok(acts)
}

/// Refunds of what was sold a moment before.
async fn unsells(
    rig: &Rig,
    crowd: &mut Crowd,
    state: &State,
    calls: usize,
) -> Result<Vec<Act>, Error> {
    let mut acts = Vec::with_capacity(calls);
    let mut earlier = Earlier::default();
    for (wish, record) in held(rig, crowd, state, calls).await? {
        let Hold { inventory, epoch, order, user, .. } = wish;
        let lines = record.lines;
        let sell = Sell { inventory, epoch, order, user, lines, freed: None };
        rig.seats.sell(&sell).await?;
        let seats = sell.lines.iter().flat_map(|line| line.seats.iter().copied());
        let freed = vec![earlier.freed_of(state, &seats.collect::<Vec<Seat>>())];
        let Sell { inventory, epoch, user, lines, .. } = sell;
        acts.push(Act::Unsell(Box::new(Unsell { inventory, epoch, user, lines, freed })));
    }
    Ok(acts)
}

/// Corrections of the number of buyers who have two seats each.
async fn recounts(
    rig: &Rig,
    crowd: &mut Crowd,
    state: &State,
    calls: usize,
) -> Result<Vec<Act>, Error> {
    let mut acts = Vec::with_capacity(calls);
    let mut earlier = Earlier::default();
    for (Hold { inventory, epoch, user, .. }, record) in held(rig, crowd, state, calls).await? {
        let (seen, lines) = (record.tickets(), record.lines);
        let freed = lines.iter().map(|line| earlier.freed_of(state, &line.seats)).collect();
        let tickets = seen.saturating_sub(Tickets::new(1));
        let recount = Recount { inventory, epoch, user, seen, tickets, lines, freed };
        acts.push(Act::Recount(Box::new(recount)));
    }
    Ok(acts)
}

/// How often the calls before have freed seats of each block.
#[derive(Default)]
struct Earlier(BTreeMap<u32, u32>);

impl Earlier {
    /// The counters of the blocks of some seats, which are freed now.
    fn freed_of(&mut self, state: &State, seats: &[Seat]) -> Vec<u32> {
        let mut freed = state.freed.of(seats.iter().copied());
        let blocks: BTreeSet<u32> = seats.iter().copied().map(freed_block_of).collect();
        for (block, counter) in blocks.into_iter().zip(&mut freed) {
            let before = self.0.entry(block).or_default();
            *counter += *before;
            *before += 1;
        }
        freed
    }
}

/// Releases of what was held a moment before.
async fn releases(
    rig: &Rig,
    crowd: &mut Crowd,
    state: &State,
    calls: usize,
) -> Result<Vec<Act>, Error> {
    let mut acts = Vec::with_capacity(calls);
    for (Hold { inventory, order, .. }, record) in held(rig, crowd, state, calls).await? {
        acts.push(Act::Release(Box::new(Release { inventory, order, record })));
    }
    Ok(acts)
}

/// Marks of one seat-leg of what was held a moment before.
async fn marks(
    rig: &Rig,
    crowd: &mut Crowd,
    state: &State,
    calls: usize,
) -> Result<Vec<Act>, Error> {
    let mut acts = Vec::with_capacity(calls);
    for (Hold { inventory, order, .. }, record) in held(rig, crowd, state, calls).await? {
        let lost = record.lines.first().and_then(|line| line.seat_legs().next());
        let taken: Vec<SeatLeg> = lost.into_iter().collect();
        acts.push(Act::Mark(Box::new(Mark { inventory, order, record, taken })));
    }
    Ok(acts)
}

/// Restored holds of two free neighbours each.
fn restores(crowd: &mut Crowd, state: &State, calls: usize) -> Result<Vec<Act>, Error> {
    let (seated, whole) = (&state.hall.seated, state.hall.whole());
    let mut acts = Vec::with_capacity(calls);
    for (first, second) in crowd.draw(&state.pairs, calls) {
        let wish = crowd.wants(Vec::new())?;
        let line = HeldLine { tier: seated.id.clone(), legs: whole, seats: vec![first, second] };
        let Hold { inventory, epoch, order, user, fingerprint, deadline, .. } = wish;
        let record = HoldRecord { user, fingerprint, deadline, lines: vec![line] };
        let freed = vec![state.freed.of([first, second])];
        acts.push(Act::Restore(Box::new(Restore {
            inventory,
            epoch,
            order,
            record,
            freed,
            sold: SeatsSold::None,
        })));
    }
    Ok(acts)
}

/// Repairs of two free neighbours each, as if they had leaked.
fn repairs(crowd: &mut Crowd, state: &State, calls: usize) -> Result<Vec<Act>, Error> {
    let (seated, whole) = (&state.hall.seated, state.hall.whole());
    let mut acts = Vec::with_capacity(calls);
    // A repair counts as freeing: the next one of the same block sees it.
    let mut earlier = Earlier::default();
    for (first, second) in crowd.draw(&state.pairs, calls) {
        let freed = earlier.freed_of(state, &[first, second]);
        let Hold { inventory, epoch, .. } = crowd.wants(Vec::new())?;
        let leaked = whole.iter().flat_map(|leg| [(leg, first), (leg, second)]).collect();
        let tier = seated.id.clone();
        acts.push(Act::Repair(Box::new(Repair { inventory, epoch, tier, freed, leaked })));
    }
    Ok(acts)
}

/// Admissions by a gate that lets everybody in.
fn admissions(crowd: &mut Crowd, calls: usize) -> Result<Vec<Act>, Error> {
    let mut acts = Vec::with_capacity(calls);
    for _ in 0..calls {
        let Hold { inventory, user, .. } = crowd.wants(Vec::new())?;
        let sale = inventory.sale().clone();
        acts.push(Act::Admit(Box::new(Admit {
            sale,
            shard: 0,
            user,
            tickets: SEATS,
            now: NOW,
            user_lock_ms: 5000,
            rate_per_second: u32::MAX >> 1,
            first: Share { budget: i64::from(u32::MAX), left: i64::from(u32::MAX) },
            top_up: None,
        })));
    }
    Ok(acts)
}

/// Additions of tokens by hand, each of an id of its own.
fn additions(crowd: &mut Crowd, calls: usize) -> Result<Vec<Act>, Error> {
    let mut acts = Vec::with_capacity(calls);
    for call in 0..calls {
        let Hold { inventory, .. } = crowd.wants(Vec::new())?;
        acts.push(Act::AddTokens(Box::new(AddTokens {
            sale: inventory.sale().clone(),
            shard: 0,
            id: AdditionId::new(format!("a{call}"))
                .map_err(|error| Error::Unexpected(error.to_string()))?,
            tokens: 2,
            total: 8,
            max_additions: u16::MAX,
            first: Share { budget: 100, left: 100 },
            now: NOW,
        })));
    }
    Ok(acts)
}

fn hold(crowd: &mut Crowd, lines: Vec<Line>) -> Result<Act, Error> {
    Ok(Act::Hold(Box::new(crowd.wants(lines)?)))
}

/// Holds two free neighbours each, for what comes after a hold.
async fn held(
    rig: &Rig,
    crowd: &mut Crowd,
    state: &State,
    calls: usize,
) -> Result<Vec<(Hold, HoldRecord)>, Error> {
    let mut held = Vec::with_capacity(calls);
    for (first, second) in crowd.draw(&state.pairs, calls) {
        let choice = Choice::Seats(vec![first, second]);
        let wish =
            crowd.wants(vec![Crowd::line(&state.hall.seated, state.hall.whole(), choice)])?;
        if let HoldReply::Held { record, .. } = rig.seats.hold(&wish).await? {
            held.push((wish, record));
        }
    }
    Ok(held)
}

/// Loads over one another, each with everything that the sale is now.
fn loads(crowd: &Crowd, state: &State, calls: usize) -> Result<Vec<Act>, Error> {
    let mut load: Load = state.hall.load()?;
    load.tiers.clone_from(&state.grids);
    load.holds = crowd.holds.iter().cloned().collect();
    load.bought.clone_from(&crowd.bought);
    let mut acts = Vec::with_capacity(calls);
    for number in 0..calls {
        let next = Epoch::new(format!("measured-{number}"))
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        let expected = Some(std::mem::replace(&mut load.epoch, next));
        acts.push(Act::Load(Box::new(Load { expected, ..load.clone() })));
    }
    Ok(acts)
}
