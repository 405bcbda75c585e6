//! A seeded crowd that fills a hall as buyers do: parties of several sizes, some of whom never pay.

use std::collections::BTreeMap;

use engine::domain::basics::bitmap;
use engine::domain::basics::ids::{Legs, RequestFingerprint, Seat, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::tickets::Tickets;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::inventory::{Hold, HoldRecord, HoldReply, Line, Release, Sell};
use engine::ports::Seats as _;
use futures_util::future::try_join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::Error;
use super::halls::{Hall, NOW, Tier, epoch};
use super::rig::Rig;

/// The sizes of twenty parties.
const PARTIES: [u16; 20] = [1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6];
/// The sizes of parties that come when nearly all is taken.
const LATE_PARTIES: [u16; 2] = [1, 2];
/// Holds of a hundred that are given back.
const GIVEN_BACK: u32 = 12;
/// Holds of a hundred that are paid for.
const PAID: u32 = 50;
/// Number of buyers at once.
const AT_ONCE: usize = 64;
/// The parties in a row that get nothing after which the hall is as full as it will be.
const MAX_REFUSED: usize = 2000;
/// Time that a hold lasts, in seconds.
const PAY_WINDOW_SECONDS: i64 = 900;

/// The crowd of one hall.
pub struct Crowd {
    hall: Hall,
    rng: StdRng,
    orders: u64,
    /// What is held and not paid for.
    pub holds: Vec<(OrderNumber, HoldRecord)>,
    /// What each buyer has held or bought.
    pub bought: BTreeMap<UserId, Tickets>,
    /// Number of seat-legs of each tier that are taken.
    taken: [u64; 2],
}

fn well_formed<T, E: std::fmt::Display>(made: Result<T, E>) -> Result<T, Error> {
    made.map_err(|error| Error::Unexpected(error.to_string()))
}

impl Crowd {
    /// The crowd before the doors open.
    pub fn new(hall: &Hall, seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        let (holds, bought) = (Vec::new(), BTreeMap::new());
        Self { hall: hall.clone(), rng, orders: 0, holds, bought, taken: [0; 2] }
    }

    /// Somebody new who wants these lines.
    pub fn wants(&mut self, lines: Vec<Line>) -> Result<Hold, Error> {
        self.orders += 1;
        // As long as a real number, and a real subject of a JWT.
        let order = (198_000_000_000_000_000 + self.orders).to_string();
        let user = format!("auth0|{:024x}", self.orders.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Ok(Hold {
            inventory: self.hall.inventory.clone(),
            epoch: epoch()?,
            order: well_formed(order.parse())?,
            user: well_formed(UserId::new(user))?,
            fingerprint: well_formed(RequestFingerprint::new(format!("{:016x}", self.orders)))?,
            now: NOW,
            deadline: NOW
                .plus_seconds(PAY_WINDOW_SECONDS)
                .plus_ms(well_formed(self.orders.try_into())?),
            replaced: Tickets::NONE,
            lines,
        })
    }

    /// A line of one tier.
    pub fn line(tier: &Tier, legs: Legs, choice: Choice) -> Line {
        Line { tier: tier.id.clone(), legs, choice }
    }

    /// A journey between any two stops, short ones as soon as most is taken.
    pub fn journey(&mut self, longest: u16) -> Legs {
        let from = self.rng.random_range(0..self.hall.legs);
        let longest = longest.min(self.hall.legs - from);
        Legs::new(from, from + self.rng.random_range(1..=longest)).unwrap_or(Legs::ONE)
    }

    /// One of some things.
    pub fn pick(&mut self, count: usize) -> usize {
        self.rng.random_range(0..count.max(1))
    }

    /// `count` different ones of some things, in random order.
    pub fn draw<T: Copy>(&mut self, from: &[T], count: usize) -> Vec<T> {
        let mut left = from.to_vec();
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count && !left.is_empty() {
            let index = self.pick(left.len());
            drawn.push(left.swap_remove(index));
        }
        drawn
    }

    /// Share of a tier that is taken, from 0 to 1.
    fn share(&self, tier: usize) -> f64 {
        let all = u64::from(self.hall.tiers()[tier].seats) * u64::from(self.hall.legs);
        self.taken[tier] as f64 / all.max(1) as f64
    }

    /// The next party of one tier.
    fn party(&mut self, tier: usize) -> Result<Hold, Error> {
        let is_late = self.share(tier) > 0.9;
        let parties = if is_late { &LATE_PARTIES[..] } else { &PARTIES[..] };
        let size = parties[self.pick(parties.len())];
        let legs = self.journey(if is_late { 2 } else { self.hall.legs });
        let choice = Choice::Best { count: size, together: Together::Preferred };
        let line = Self::line(self.hall.tiers()[tier], legs, choice);
        self.wants(vec![line])
    }

    /// Lets buyers in until this share of both tiers is taken (0 to 1), or nobody gets a seat any more.
    pub async fn fill(&mut self, rig: &Rig, share: f64) -> Result<(), Error> {
        for tier in 0..2 {
            let mut refused = 0;
            while self.share(tier) < share && refused < MAX_REFUSED {
                let left = (share - self.share(tier)) * f64::from(self.hall.tiers()[tier].seats);
                let parties = ((left / 4.0) as usize).clamp(1, AT_ONCE);
                let mut wishes = Vec::with_capacity(parties);
                for _ in 0..parties {
                    wishes.push(self.party(tier)?);
                }
                let replies = try_join_all(wishes.iter().map(|wish| rig.seats.hold(wish))).await?;
                for (wish, reply) in wishes.iter().zip(replies) {
                    refused += 1;
                    if let HoldReply::Held { record, .. } = reply {
                        refused = 0;
                        self.settle(rig, tier, wish, record).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What becomes of a hold: some are given back, some are paid for, the others wait.
    async fn settle(
        &mut self,
        rig: &Rig,
        tier: usize,
        wish: &Hold,
        record: HoldRecord,
    ) -> Result<(), Error> {
        let (inventory, order) = (wish.inventory.clone(), wish.order);
        let fate = self.rng.random_range(0..100_u32);
        // Seldom enough at the end for the hall to fill up.
        if fate < GIVEN_BACK {
            rig.seats.release(&Release { inventory, order, record }).await?;
            return Ok(());
        }
        let seat_legs = record.lines.iter().flat_map(|line| line.seat_legs()).count();
        self.taken[tier] += reporting::count(seat_legs);
        self.bought.insert(record.user.clone(), record.tickets());
        if fate < GIVEN_BACK + PAID {
            let epoch = wish.epoch.clone();
            let (user, lines) = (record.user, record.lines);
            let freed = None;
            rig.seats.sell(&Sell { inventory, epoch, order, user, lines, freed }).await?;
        } else {
            self.holds.push((order, record));
        }
        Ok(())
    }
}

/// Pairs of neighbours in one row that are free on a whole journey, none of them overlapping.
pub fn free_pairs(bits: &[u8], row_bytes: u32) -> Vec<(Seat, Seat)> {
    let is_free = |seat: u32| bitmap::get(bits, Seat(seat)) == Some(false);
    let row_bits = row_bytes * 8;
    let mut pairs = Vec::new();
    let mut seat = 0;
    while seat + 1 < bitmap::places(bits) {
        let same_row = seat / row_bits == (seat + 1) / row_bits;
        if same_row && is_free(seat) && is_free(seat + 1) {
            pairs.push((Seat(seat), Seat(seat + 1)));
            seat += 1;
        }
        seat += 1;
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_lie_in_one_row_and_do_not_overlap() {
        let pairs = free_pairs(&[0b1110_0010, 0b0111_1000], 1);
        let seats: Vec<(u32, u32)> = pairs.iter().map(|(one, other)| (one.0, other.0)).collect();
        assert_eq!(seats, [(3, 4), (13, 14)]);
    }
}
