//! Crowds at a gate: buyers reserve a while after they were admitted, or never.
//!
//! Each test counts the refused reservations, and what is promised beyond what is left. The control
//! is a gate that forgets at each top-up whom it has admitted, and is topped up as often as its
//! budget is used up.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use super::{Admit, AdmitReply, GateShard, Share, TopUp, shard_of};
use crate::domain::admission::small_rng::SmallRng;
use crate::domain::basics::ids::{SaleId, UserId};
use crate::domain::basics::time::Timestamp;
use crate::domain::sale::GateSettings;

/// Most tickets that one buyer wants.
const MAX_TICKETS: u64 = 4;
/// Seats that a buyer asks for with one admission before leaving, as the load test does.
const ATTEMPTS: u32 = 4;
/// Time after which a crowd has sold everything, or never will, in milliseconds.
const END_MS: i64 = 600_000;

/// The seats of a sale: the legs of each that are free, one bit a leg.
struct Seats {
    free: Vec<u64>,
    leg_count: u16,
    /// Number of free seat-legs.
    left: u64,
}

impl Seats {
    fn new(seats: usize, leg_count: u16) -> Self {
        let left = seats as u64 * u64::from(leg_count);
        Self { free: vec![(1 << leg_count) - 1; seats], leg_count, left }
    }

    /// Takes the first seats that are free on all of these legs; false if there are too few.
    fn take(&mut self, legs: u64, tickets: u64) -> bool {
        let is_free = |seat: &usize| self.free[*seat] & legs == legs;
        let found: Vec<usize> =
            (0..self.free.len()).filter(is_free).take(tickets as usize).collect();
        let enough = found.len() as u64 == tickets;
        if enough {
            found.into_iter().for_each(|seat| self.free[seat] &= !legs);
            self.left -= tickets * u64::from(legs.count_ones());
        }
        enough
    }
}

/// A gate, and how its callers use it: as [`crate::flows::admit`] does.
struct Gate {
    settings: GateSettings,
    leg_count: u16,
    command: Admit,
    shards: Vec<GateShard>,
    is_control: bool,
}

impl Gate {
    /// `stops` of a train that begins with its seats times its stops; 0 for any other sale.
    fn new(percent: u16, shards: u16, seats: &Seats, stops: u64, is_control: bool) -> Self {
        let settings = GateSettings { shards, budget_percent: percent, ..GateSettings::default() };
        let mut first = Share::new(&settings, seats.leg_count, seats.left);
        if stops > 0 {
            first.budget = Share::of_train(&settings, seats.free.len() as u64, stops);
        }
        let command = Admit {
            sale: SaleId::new("s").unwrap(),
            shard: 0,
            user: UserId::new("anybody").unwrap(),
            tickets: 1,
            now: Timestamp::from_ms(0),
            user_lock_ms: 0,
            rate_per_second: u32::MAX,
            first,
            top_up: None,
        };
        let all = vec![GateShard::default(); shards.into()];
        Self { settings, leg_count: seats.leg_count, command, shards: all, is_control }
    }

    /// Asks a shard while `left` seat-legs are free.
    fn ask(&mut self, shard: usize, tickets: u64, left: u64, now_ms: i64) -> AdmitReply {
        let shard = &mut self.shards[shard];
        let command = &mut self.command;
        (command.tickets, command.now) = (tickets as u16, Timestamp::from_ms(now_ms));
        command.top_up = None;
        loop {
            if self.is_control {
                (shard.outstanding, shard.topped_up_at) = (0, None);
                shard.filled = shard.budget.unwrap_or(0);
            }
            let reply = shard.admit(command);
            let AdmitReply::BudgetUsedUp { generation } = reply else { return reply };
            let share = Share::new(&self.settings, self.leg_count, left);
            command.top_up = Some(TopUp { generation, share, exhausted_ms: 1000, holds: false });
        }
    }
}

/// What a crowd is like.
#[derive(Debug, Clone)]
struct Crowd {
    seats: usize,
    leg_count: u16,
    /// Stops of a train that begins with its seats times its stops; 0 for any other sale.
    stops: u64,
    percent: u16,
    shards: u16,
    asks_per_second: i64,
    /// Buyers in all: each asks once, and leaves if told to wait.
    buyers: i64,
    /// Time between an admission and its reservation, and between two of its attempts.
    choosing_ms: RangeInclusive<u64>,
    /// Buyers in a thousand who never reserve.
    never_per_mille: u64,
}

/// What came of a crowd.
#[derive(Debug, Default)]
struct Outcome {
    orders: u64,
    refused: u64,
    /// Most tickets promised to buyers beyond what was left.
    most_beyond: i64,
    left: u64,
}

impl Outcome {
    fn refused_per_order(&self) -> f64 {
        self.refused as f64 / self.orders as f64
    }
}

/// A buyer who was admitted, and will try to reserve.
type Visit = Reverse<(i64, u64, u64, u64, u32)>;

fn journey(rng: &mut SmallRng, leg_count: u16) -> u64 {
    let from = rng.between(0..=u64::from(leg_count) - 1);
    let to = rng.between(from + 1..=leg_count.into());
    (1 << to) - (1 << from)
}

impl Crowd {
    fn run(&self, is_control: bool) -> Outcome {
        let mut rng = SmallRng(7);
        let mut seats = Seats::new(self.seats, self.leg_count);
        let mut gate = Gate::new(self.percent, self.shards, &seats, self.stops, is_control);
        let mut visits: BinaryHeap<Visit> = BinaryHeap::new();
        let (mut outcome, mut promised, mut number) = (Outcome::default(), 0, 0);
        let came_until = |ms: i64| (ms * self.asks_per_second / 1000).min(self.buyers);
        for now_ms in 0..END_MS {
            while let Some(Reverse((_, _, legs, tickets, attempt))) = due(&mut visits, now_ms) {
                promised -= tickets as i64;
                if seats.take(legs, tickets) {
                    outcome.orders += 1;
                    continue;
                }
                outcome.refused += 1;
                if attempt < ATTEMPTS {
                    promised += tickets as i64;
                    number += 1;
                    let at = now_ms + rng.between(self.choosing_ms.clone()) as i64;
                    visits.push(Reverse((at, number, legs, tickets, attempt + 1)));
                }
            }
            let all_came = came_until(now_ms) == self.buyers;
            if visits.is_empty() && (seats.left == 0 || all_came) {
                break;
            }
            for _ in came_until(now_ms)..came_until(now_ms + 1) {
                let tickets = rng.between(1..=MAX_TICKETS);
                let legs = journey(&mut rng, self.leg_count);
                let shard = rng.next() as usize % usize::from(self.shards);
                let reply = gate.ask(shard, tickets, seats.left, now_ms);
                if reply == AdmitReply::Admitted && rng.between(0..=999) >= self.never_per_mille {
                    number += 1;
                    let at = now_ms + rng.between(self.choosing_ms.clone()) as i64;
                    visits.push(Reverse((at, number, legs, tickets, 1)));
                    promised += tickets as i64;
                    outcome.most_beyond = outcome.most_beyond.max(promised - seats.left as i64);
                }
            }
        }
        outcome.left = seats.left;
        outcome
    }
}

/// The next visit, if it is due.
fn due(visits: &mut BinaryHeap<Visit>, now_ms: i64) -> Option<Visit> {
    let Reverse((at, ..)) = visits.peek()?;
    (*at <= now_ms).then(|| visits.pop()).flatten()
}

/// A flood that outnumbers the seats of a hall by far.
fn flood(percent: u16, shards: u16, choosing_ms: RangeInclusive<u64>) -> Crowd {
    Crowd {
        seats: 2000,
        leg_count: 1,
        stops: 0,
        percent,
        shards,
        asks_per_second: 10_000,
        buyers: i64::MAX / 1_000_000,
        choosing_ms,
        never_per_mille: 0,
    }
}

#[test]
fn the_shards_together_promise_what_is_left_and_one_order_each() {
    for shards in [1, 4, 16] {
        for percent in [75, 100] {
            let crowd = flood(percent, shards, 100..=900);
            let [bound, control] = [false, true].map(|is_control| crowd.run(is_control));
            let (now, before) = (bound.refused_per_order(), control.refused_per_order());
            println!(
                "{percent} % in {shards} shards: {now:.2} refused an order ({before:.2}), {} tickets beyond ({})",
                bound.most_beyond, control.most_beyond
            );
            let most = i64::from(shards) * MAX_TICKETS as i64;
            assert!(bound.most_beyond <= most, "{crowd:?}: {bound:?}");
            assert!(now <= 0.1 && bound.left == 0, "{crowd:?}: {bound:?}");
            assert!(control.most_beyond > 10 * most && before > 1.0, "{crowd:?}: {control:?}");
        }
    }
}

#[test]
fn a_reservation_at_most_is_refused_for_each_order_however_long_buyers_choose() {
    for (percent, never_per_mille) in [(75, 0), (75, 300), (100, 300)] {
        let crowd = Crowd { never_per_mille, ..flood(percent, 4, 300..=3000) };
        let [bound, control] = [false, true].map(|is_control| crowd.run(is_control));
        let (now, before) = (bound.refused_per_order(), control.refused_per_order());
        println!(
            "{percent} %, {never_per_mille} ‰ never reserve: {now:.2} refused an order ({before:.2})"
        );
        assert!(now <= 1.0 && bound.left == 0, "{crowd:?}: {bound:?}");
        assert!(before > 1.0, "{crowd:?}: {control:?}");
    }
}

/// The sizes and crowds of the demo, each of whose buyers comes once.
fn of_the_demo() -> [Crowd; 2] {
    let stadium =
        Crowd { seats: 6640, asks_per_second: 440, buyers: 11_000, ..flood(75, 4, 30..=60) };
    let train = Crowd { seats: 1061, leg_count: 5, stops: 6, buyers: 9000, ..stadium.clone() };
    [stadium, train]
}

/// Most buyers of a train that is nearly sold find nothing on their journey, though seats are free on other
/// legs.
#[test]
fn a_stadium_refuses_nearly_nobody_and_a_train_less_than_four_reservations_for_each_order() {
    let per_order = |is_control| {
        let outcomes = of_the_demo().map(|crowd| crowd.run(is_control));
        println!("{outcomes:?}");
        outcomes.map(|outcome| outcome.refused_per_order())
    };
    let [[stadium, train], [_, train_before]] = [false, true].map(per_order);
    println!("{stadium:.2} and {train:.2} refused an order ({train_before:.2})");
    assert!(stadium <= 0.1 && train <= 4.0 && train_before > 12.0);
}

/// What the opening budget of a train is for: who finds nothing on one journey leaves room for others, so
/// that more admissions sell more tickets of a train, and are refused more often.
#[test]
fn a_train_that_opens_with_its_seats_times_its_stops_sells_more_than_from_what_is_left_alone() {
    for leg_count in [2, 5, 9, 20] {
        let stops = u64::from(leg_count) + 1;
        let [_, train] = of_the_demo();
        let with = Crowd { leg_count, stops, buyers: 40_000, asks_per_second: 2000, ..train };
        let without = Crowd { stops: 0, ..with.clone() };
        let [with, without] = [with, without].map(|crowd| crowd.run(false));
        println!(
            "{stops} stops: {} orders, {} seat-legs left, {:.2} refused an order; from what is left {}, {}, {:.2}",
            with.orders,
            with.left,
            with.refused_per_order(),
            without.orders,
            without.left,
            without.refused_per_order()
        );
        assert!(with.orders > without.orders && with.left < without.left, "{with:?} {without:?}");
        let opening = Share::of_train(&GateSettings::default(), 1061, stops) * 4;
        assert!(with.most_beyond <= opening, "{with:?}");
    }
}

#[test]
fn the_last_ticket_is_admitted_within_seconds_though_nobody_before_has_reserved() {
    let (mut longest_ms, mut most_waits) = (0, 0);
    for seed in 0..200 {
        let mut rng = SmallRng(seed);
        let leg_count = rng.between(1..=5) as u16;
        let mut seats = Seats::new(rng.between(1..=2000) as usize, leg_count);
        let shards = rng.between(1..=8) as u16;
        let mut gate = Gate::new(rng.between(10..=300) as u16, shards, &seats, 0, false);
        let (flood_ms, asks) = (rng.between(0..=10_000) as i64, rng.between(1..=20));
        let reserving_per_mille = [0, 10, 500][rng.between(0..=2) as usize];
        for now_ms in (0..flood_ms).step_by(10) {
            for _ in 0..asks {
                let shard = rng.next() as usize % usize::from(shards);
                let tickets = rng.between(1..=MAX_TICKETS);
                let reply = gate.ask(shard, tickets, seats.left, now_ms);
                let reserves = rng.between(0..=999) < reserving_per_mille;
                if reply == AdmitReply::Admitted && reserves && seats.left > tickets {
                    seats.take(1, tickets);
                }
            }
        }
        // Somebody comes who would take the last ticket, and does as the gate says.
        let shard = shard_of(&UserId::new(seed.to_string()).unwrap(), shards).into();
        let (mut now_ms, mut waits) = (flood_ms, 0);
        loop {
            match gate.ask(shard, 1, seats.left, now_ms) {
                AdmitReply::Admitted => break,
                AdmitReply::Exhausted { retry_ms, holds } => {
                    assert!(holds, "seed {seed}: something is left");
                    (now_ms, waits) = (now_ms + retry_ms, waits + 1);
                }
                other @ (AdmitReply::Locked { .. }
                | AdmitReply::TooFast { .. }
                | AdmitReply::BudgetUsedUp { .. }) => panic!("seed {seed}: {other:?}"),
            }
            assert!(now_ms - flood_ms <= 12_000, "seed {seed}: {:?}", gate.shards);
        }
        longest_ms = longest_ms.max(now_ms - flood_ms);
        most_waits = most_waits.max(waits);
    }
    println!("the longest wait was {longest_ms} ms, in {most_waits} refusals");
    assert!(most_waits > 1, "nobody had to wait: nothing was tested");
}

#[test]
fn a_shard_goes_on_admitting_while_nobody_reserves() {
    let seats = Seats::new(4, 1);
    let mut gate = Gate::new(75, 1, &seats, 0, false);
    let admitted: Vec<i64> = (0..60_000)
        .filter(|now_ms| gate.ask(0, MAX_TICKETS, seats.left, *now_ms) == AdmitReply::Admitted)
        .collect();
    println!("admitted at {admitted:?}");
    let gaps = admitted.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.max().is_some_and(|gap| gap <= 4000), "{admitted:?}");
    assert!(admitted.len() >= 15, "{admitted:?}");
}
