//! Counters of freed seats, one for each block of seats. A repair and a restore compare them with the values that they
//! read before, and so notice a seat that was freed in between.
//!
//! A block is small, so that seats freed elsewhere seldom disturb its repair, and large enough that its counter takes
//! no more than a bit for each seat.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::basics::ids::Seat;

/// Neighbouring seats of a tier that share a counter. Counters have as many bits as this, so that the
/// counter of a block lies in Redis where the block's first seat lies in a bitmap.
pub const SEATS_PER_FREED_BLOCK: u32 = 32;
const _: () = assert!(SEATS_PER_FREED_BLOCK == u32::BITS);

/// The block whose counter a seat shares.
#[must_use]
pub fn freed_block_of(seat: Seat) -> u32 {
    seat.0 / SEATS_PER_FREED_BLOCK
}

/// The counters of a tier: how often seats of each block were given back since it was loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Freed(BTreeMap<u32, u32>);

impl Freed {
    /// Counters by block, from the first block on.
    #[must_use]
    pub fn from_counters(counters: impl IntoIterator<Item = u32>) -> Self {
        Self((0..).zip(counters).filter(|(_, counter)| *counter > 0).collect())
    }

    /// The counter of each block that some seats lie in, in the order of the blocks.
    #[must_use]
    pub fn of(&self, seats: impl IntoIterator<Item = Seat>) -> Vec<u32> {
        let blocks: BTreeSet<u32> = seats.into_iter().map(freed_block_of).collect();
        blocks.iter().map(|block| self.0.get(block).copied().unwrap_or(0)).collect()
    }

    /// Counts that some seats were given back, once for each block that they lie in.
    pub(super) fn count(&mut self, seats: impl IntoIterator<Item = Seat>) {
        let blocks: BTreeSet<u32> = seats.into_iter().map(freed_block_of).collect();
        for block in blocks {
            let counter = self.0.entry(block).or_default();
            *counter = counter.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_counted_once_for_each_block() {
        let seats = |seats: &[u32]| seats.iter().copied().map(Seat).collect::<Vec<_>>();
        let mut freed = Freed::default();
        freed.count(seats(&[70, 31, 30, 64]));
        freed.count(seats(&[95, 96]));
        freed.count(seats(&[]));
        assert_eq!(freed, Freed::from_counters([1, 0, 2, 1, 0]));
        assert_eq!(freed.of(seats(&[96, 40, 65, 5, 66])), [1, 0, 2, 1]);
        assert_eq!(freed.of(seats(&[32, 63])), [0]);
        assert_eq!(freed.of(seats(&[])), Vec::<u32>::new());
    }
}
