//! Who comes and what they want: the same seed makes the same crowd.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// How a buyer picks seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// These seats, seen free in the seat map a moment ago.
    Seats,
    /// The best that are left.
    Best,
    /// The best that are left in two tiers at once.
    BestOfTwoTiers,
    /// Neighbours over two rows, where the tier has column letters; else as `Best`.
    Pattern,
}

/// What a buyer does once the order is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conduct {
    /// Pays.
    Pay,
    /// Sends the request twice at once, and pays.
    DoubleSubmit,
    /// Pays, and the provider calls twice.
    PayTwice,
    /// Cancels.
    Cancel,
    /// Never pays.
    Forget,
}

/// One member of the crowd.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// The `sub` of the buyer's token.
    pub user: String,
    /// Which sale, as an index.
    pub sale: usize,
    /// How many tickets.
    pub tickets: u16,
    /// How seats are picked.
    pub way: Way,
    /// What happens afterwards.
    pub conduct: Conduct,
    /// Seeds every further decision of this buyer.
    pub seed: u64,
}

/// The mix, in percent: part of the report, so that a run can be judged.
pub const MIX: &str = "ways: 25 % chosen seats, 50 % best, 10 % best of two tiers, 15 % pattern; \
    then: 76 % pay, 5 % submit twice, 4 % pay twice, 8 % cancel, 7 % never pay";

/// Makes buyer number `index` of a crowd. `weights` are the sizes of the sales: a larger one draws
/// more buyers.
#[must_use]
pub fn buyer(seed: u64, index: u64, weights: &[u64]) -> Buyer {
    // An odd multiplier keeps neighbouring indexes apart in the generator's seed.
    let seed = seed ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = StdRng::seed_from_u64(seed);
    let mut ticket = random.random_range(0..weights.iter().sum::<u64>().max(1));
    let sale = weights.iter().position(|weight| {
        let is_here = ticket < *weight;
        ticket = ticket.saturating_sub(*weight);
        is_here
    });
    let way = match random.random_range(0..100) {
        0..25 => Way::Seats,
        25..75 => Way::Best,
        75..85 => Way::BestOfTwoTiers,
        _ => Way::Pattern,
    };
    let conduct = match random.random_range(0..100) {
        0..76 => Conduct::Pay,
        76..81 => Conduct::DoubleSubmit,
        81..85 => Conduct::PayTwice,
        85..93 => Conduct::Cancel,
        _ => Conduct::Forget,
    };
    let tickets = match random.random_range(0..100) {
        0..20 => 1,
        20..70 => 2,
        70..85 => 3,
        _ => 4,
    };
    Buyer {
        user: format!("rush-{index}"),
        sale: sale.unwrap_or(0),
        tickets,
        way,
        conduct,
        seed: random.random(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_crowd() {
        let crowd = |seed| -> Vec<String> {
            (0..50).map(|index| format!("{:?}", buyer(seed, index, &[7, 3]))).collect()
        };
        assert_eq!(crowd(7), crowd(7));
        assert_ne!(crowd(7), crowd(8));
    }

    #[test]
    fn larger_sales_draw_more_buyers() {
        let to_first = (0..1000).filter(|index| buyer(1, *index, &[90, 10]).sale == 0).count();
        assert!((850..950).contains(&to_first), "{to_first} of 1,000 went to the larger sale");
    }
}
