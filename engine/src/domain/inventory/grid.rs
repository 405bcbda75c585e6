//! The bitmaps of a tier: which seats are taken and which are sold, leg by leg.

use super::Freed;
use crate::domain::basics::bitmap;
use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::ids::{Leg, Legs, Seat, TierId};

/// The bitmaps of one tier.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TierGrid {
    /// Id of the tier.
    pub tier: TierId,
    /// Bytes of one row.
    pub row_bytes: u32,
    /// Twice the column of the middle of each row, which the best seats are nearest to; empty if seats are best at the
    /// left.
    pub middles: Vec<u16>,
    /// For each leg, 1 where a seat is held, sold or not for sale.
    pub taken: Vec<Vec<u8>>,
    /// For each leg, 1 where a seat is sold.
    pub sold: Vec<Vec<u8>>,
    /// Counters of the times that seats were freed: the guard of [`super::Repair`] and
    /// [`super::Restore`].
    pub freed: Freed,
}

impl TierGrid {
    /// The seats that are taken on any leg of a journey.
    #[must_use]
    pub fn taken_over(&self, legs: Legs) -> Vec<u8> {
        let mut bits = vec![0; self.taken.first().map_or(0, Vec::len)];
        for leg in legs.iter() {
            let bitmap = self.taken.get(leg.index()).map_or(&[][..], Vec::as_slice);
            bits.iter_mut().zip(bitmap).for_each(|(sum, byte)| *sum |= byte);
        }
        bits
    }

    /// True if there is such a place. What an order names beyond the grid is passed over.
    pub(super) fn has(&self, leg: Leg, seat: Seat) -> bool {
        self.taken.get(leg.index()).is_some_and(|bits| bitmap::get(bits, seat).is_some())
    }

    /// True if the seat is taken on the leg.
    #[must_use]
    pub fn is_taken(&self, leg: Leg, seat: Seat) -> bool {
        self.taken.get(leg.index()).is_some_and(|bits| bitmap::get(bits, seat) == Some(true))
    }

    /// True if the seat is sold on the leg.
    #[must_use]
    pub fn is_sold(&self, leg: Leg, seat: Seat) -> bool {
        self.sold.get(leg.index()).is_some_and(|bits| bitmap::get(bits, seat) == Some(true))
    }

    pub(super) fn set_taken(&mut self, leg: Leg, seat: Seat, value: bool) {
        if let Some(bits) = self.taken.get_mut(leg.index()) {
            bitmap::set(bits, seat, value);
        }
    }

    pub(super) fn set_sold(&mut self, leg: Leg, seat: Seat, value: bool) {
        if let Some(bits) = self.sold.get_mut(leg.index()) {
            bitmap::set(bits, seat, value);
        }
    }

    /// Marks a seat taken on one leg, and sold if it is paid, while a grid is put together for a [`super::Load`].
    pub fn claim(&mut self, leg: Leg, seat: Seat, is_paid: bool) {
        self.set_taken(leg, seat, true);
        self.set_sold(leg, seat, is_paid);
    }

    /// Counts that seats were freed. What an order names beyond the grid is passed over.
    pub(super) fn count_freed(&mut self, seats: impl Iterator<Item = Seat>) {
        let places = self.taken.first().map_or(0, |bits| bitmap::places(bits));
        self.freed.count(seats.filter(|seat| seat.0 < places));
    }

    /// Gives a seat back on one leg, unless it is sold there.
    pub(super) fn free(&mut self, leg: Leg, seat: Seat) {
        if !stands(Guard::ReleaseKeepsSold) || !self.is_sold(leg, seat) {
            self.set_taken(leg, seat, false);
        }
    }
}
