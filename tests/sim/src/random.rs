//! Randomness that is a function of names: every decision of a run is drawn from the seed and from
//! what the decision is about, so that leaving out one buyer or one fault changes no other decision.

/// A stream of draws.
#[derive(Debug, Clone, Copy)]
pub struct SeededRng {
    key: u64,
    drawn: u64,
}

/// Mixes two numbers into one that looks like chance (the finaliser of SplitMix64, by Steele, Lea
/// and Flood: "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn mix(one: u64, other: u64) -> u64 {
    let mut z = one.wrapping_add(other.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ 0x5851_f42d_4c95_7f2d;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl SeededRng {
    /// The stream of a key.
    pub fn new(key: u64) -> Self {
        Self { key, drawn: 0 }
    }

    /// The stream of something that belongs to this one's.
    pub fn from_label(key: u64, label: u64) -> Self {
        Self::new(mix(key, label))
    }

    pub fn draw(&mut self) -> u64 {
        self.drawn += 1;
        mix(self.key, self.drawn)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// A number from `first` to `last`.
    pub fn between(&mut self, first: i64, last: i64) -> i64 {
        first + self.below((last - first + 1) as u64) as i64
    }

    /// True with this probability, in thousandths.
    pub fn chance(&mut self, per_mille: u16) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// One of several; there is at least one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_a_function_of_their_names_and_spread_evenly() {
        let (mut one, mut same) = (SeededRng::from_label(7, 1), SeededRng::from_label(7, 1));
        let mut tally = [0; 10];
        for _ in 0..10_000 {
            let drawn = one.below(10);
            assert_eq!(drawn, same.below(10));
            tally[drawn as usize] += 1;
        }
        assert!(tally.iter().all(|count| (900..1100).contains(count)), "{tally:?}");
        assert_ne!(SeededRng::from_label(7, 2).draw(), SeededRng::from_label(7, 1).draw());
    }
}
