//! What a sale has left: numbers of places by tier and leg. Which seats they are decides whether some lie together, and
//! nothing that a capacity rests on; on a train a journey is taken to find one seat for all of its legs where each leg
//! has one free.

use std::ops::Range;

use engine::domain::sale::Sale;

/// The stock of one sale.
#[derive(Debug, Clone)]
pub struct Stock {
    /// Free places by tier, and in a tier by leg.
    free: Vec<Vec<u32>>,
    places: u64,
    held: u64,
    sold: u64,
}

/// What an order takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// Index of the tier.
    pub tier: u16,
    pub from: u16,
    /// The leg after the last.
    pub to: u16,
    pub tickets: u32,
}

impl Taken {
    fn legs(&self) -> Range<usize> {
        usize::from(self.from)..usize::from(self.to)
    }

    #[must_use]
    pub fn seat_legs(&self) -> u64 {
        u64::from(self.tickets) * self.legs().len() as u64
    }
}

impl Stock {
    /// The stock of a sale that has sold nothing.
    #[must_use]
    pub fn new(sale: &Sale) -> Self {
        let legs = usize::from(sale.leg_count().max(1));
        let free: Vec<Vec<u32>> =
            sale.tiers().iter().map(|tier| vec![tier.layout.sellable(); legs]).collect();
        let places = free.iter().map(|legs| u64::from(legs[0])).sum();
        Self { free, places, held: 0, sold: 0 }
    }

    /// Tickets that lie on a journey in a tier.
    #[must_use]
    pub fn left(&self, tier: u16, from: u16, to: u16) -> u32 {
        let legs = &self.free[usize::from(tier)][usize::from(from)..usize::from(to)];
        legs.iter().copied().min().unwrap_or(0)
    }

    #[must_use]
    pub fn free(&self) -> u64 {
        self.free.iter().flatten().map(|free| u64::from(*free)).sum()
    }

    /// Tickets that are held, and those that are sold.
    #[must_use]
    pub fn held_and_sold(&self) -> (u64, u64) {
        (self.held, self.sold)
    }

    /// Places of the sale.
    #[must_use]
    pub fn places(&self) -> u64 {
        self.places
    }

    /// Holds what an order takes; false if it is not there.
    pub fn hold(&mut self, taken: Taken) -> bool {
        if self.left(taken.tier, taken.from, taken.to) < taken.tickets {
            return false;
        }
        for free in &mut self.free[usize::from(taken.tier)][taken.legs()] {
            *free -= taken.tickets;
        }
        self.held += u64::from(taken.tickets);
        true
    }

    /// What was held is free again.
    pub fn release(&mut self, taken: Taken) {
        for free in &mut self.free[usize::from(taken.tier)][taken.legs()] {
            *free += taken.tickets;
        }
        self.held -= u64::from(taken.tickets);
    }

    /// What was held is sold.
    pub fn sell(&mut self, taken: Taken) {
        self.held -= u64::from(taken.tickets);
        self.sold += u64::from(taken.tickets);
    }

    /// What was sold is given back, and free again.
    pub fn take_back(&mut self, taken: Taken) {
        for free in &mut self.free[usize::from(taken.tier)][taken.legs()] {
            *free += taken.tickets;
        }
        self.sold -= u64::from(taken.tickets);
    }
}
