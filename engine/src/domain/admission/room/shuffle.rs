//! The shuffle: swap-or-not, as Ethereum's consensus has it.
//!
//! It permutes the numbers below any N, and the place of one number follows from seed, N and number alone:
//! nobody has to compute or keep the rest, and a browser finds its own. That it comes close to a random
//! permutation with enough rounds is proved in: Hoang, Morris and Rogaway, An Enciphering Scheme Based on a
//! Card Shuffle, CRYPTO 2012 <https://eprint.iacr.org/2012/254>. 90 rounds are Ethereum's choice.
//!
//! Source: `compute_shuffled_index` with `SHUFFLE_ROUND_COUNT` 90 in
//! <https://github.com/ethereum/consensus-specs/blob/master/specs/phase0/beacon-chain.md>. In each round r:
//! the pivot is the first eight bytes of SHA-256(seed ‖ r), little-endian, modulo N; an index i and its
//! partner, pivot − i modulo N, are swapped or not by bit p modulo 256 of SHA-256(seed ‖ r ‖ p div 256),
//! where p is the larger of the two, r is one byte and p div 256 four, little-endian.

use crate::domain::basics::bytes::Hash;

pub const ROUNDS: u8 = 90;

/// Places by one source of bits.
const BITS: u64 = 256;

/// A permutation of the numbers below N.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shuffle {
    seed: Hash,
    count: u32,
    /// The pivot of each round, below N.
    pivots: Vec<u64>,
}

impl Shuffle {
    /// The permutation of the numbers below `count` that a seed makes.
    #[must_use]
    pub fn new(seed: Hash, count: u32) -> Self {
        let pivot = |round: u8| {
            let hash = Hash::of_parts(&[&seed.0, &[round]]);
            let first =
                hash.0.iter().take(8).rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
            first.checked_rem(u64::from(count)).unwrap_or(0)
        };
        Self { seed, count, pivots: (0..ROUNDS).map(pivot).collect() }
    }

    /// The place of an index; `None` if the index is not below N.
    #[must_use]
    pub fn place(&self, index: u32) -> Option<u32> {
        self.through((0..ROUNDS).zip(&self.pivots), index)
    }

    /// The index that has a place; `None` if the place is not below N. Each round is its own inverse, so it
    /// is the rounds from the last to the first.
    #[must_use]
    pub fn index(&self, place: u32) -> Option<u32> {
        self.through((0..ROUNDS).zip(&self.pivots).rev(), place)
    }

    fn through<'a>(&self, rounds: impl Iterator<Item = (u8, &'a u64)>, number: u32) -> Option<u32> {
        if number >= self.count {
            return None;
        }
        let count = u64::from(self.count);
        let last = rounds.fold(u64::from(number), |number, (round, pivot)| {
            let partner = (pivot + count - number) % count;
            let position = number.max(partner);
            if self.is_swapped(round, position) { partner } else { number }
        });
        // It is below the count, which is no larger.
        u32::try_from(last).ok()
    }

    /// The bit of a position in a round.
    fn is_swapped(&self, round: u8, position: u64) -> bool {
        let [a, b, c, d, ..] = (position / BITS).to_le_bytes();
        let source = Hash::of_parts(&[&self.seed.0, &[round], &[a, b, c, d]]);
        let bit = position % BITS;
        let byte = usize::try_from(bit / 8).ok().and_then(|byte| source.0.get(byte));
        byte.is_some_and(|byte| byte >> (bit % 8) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethereum's published vectors, as (seed, N, SHA-256 of the file): `mapping.yaml` of
    /// `tests/mainnet/phase0/shuffling/core/shuffle/shuffle_0x<seed>_<N>/` in
    /// <https://github.com/ethereum/consensus-spec-tests> at commit 4d5317b35c5a5aee0d574ae530e126278e6b2489.
    /// The repository keeps such files by Git LFS, whose pointers have the SHA-256 of the contents.
    const VECTORS: [(&str, u32, &str); 7] = [
        (
            "075de2b906dbd7066da008cab735bee896370154603579a50122f9b88545bd45",
            0,
            "72885d12c5b5d78dfab5721044c43913523570af0a37e0e51ee88961bebd3275",
        ),
        (
            "0623ccb9b1619bd388284a438034d8cb6431964ba727d8b1c450303105735488",
            5,
            "155bd957aacd98cf39ee7f85ec3f50048bcb121b3d07cf352bfee4306bf6033d",
        ),
        (
            "01b4f6bd5d6a06a7b74a8565ceb4f845afe0ae96a0ac05cf5e86066bf7b538ec",
            10,
            "030e863e01b804aa084bdf69a7da2ca6cad7bc51ffc5dbd50cd74e3a8910a50e",
        ),
        (
            "01b4f6bd5d6a06a7b74a8565ceb4f845afe0ae96a0ac05cf5e86066bf7b538ec",
            33,
            "a014701e692faf6390f43a5b32470689ffdec35891f58bcd7572eb8226b19488",
        ),
        (
            "0623ccb9b1619bd388284a438034d8cb6431964ba727d8b1c450303105735488",
            100,
            "5b6ee6048c54dc7934d1067d81d09441a33178cc96bbea059f56ced1e69ac42f",
        ),
        (
            "01b4f6bd5d6a06a7b74a8565ceb4f845afe0ae96a0ac05cf5e86066bf7b538ec",
            1000,
            "1fe4a03c481ce317d63640d1caf23d3466c0583a194998a66d8a3be818a5932a",
        ),
        (
            "01b4f6bd5d6a06a7b74a8565ceb4f845afe0ae96a0ac05cf5e86066bf7b538ec",
            9999,
            "c3577795cf7bbe42bcca0c97e2d97b8caf8bf3defa8d1b3cffd6ce7813a06575",
        ),
    ];

    fn whole(shuffle: &Shuffle) -> Vec<u32> {
        (0..shuffle.count).map(|index| shuffle.place(index).unwrap()).collect()
    }

    /// The file of a vector: YAML whose list is broken behind the first comma beyond column 80.
    fn file(seed: &str, mapping: &[u32]) -> String {
        let mut list = String::from("mapping: [");
        let mut column = list.len();
        for (index, place) in mapping.iter().enumerate() {
            let text = place.to_string();
            let before = match index {
                0 => "",
                _ if column + 1 > 80 => ",\n  ",
                _ => ", ",
            };
            column = if before.contains('\n') { 2 } else { column + before.len() } + text.len();
            list += before;
            list += &text;
        }
        format!("seed: '0x{seed}'\ncount: {}\n{list}]\n", mapping.len())
    }

    #[test]
    fn places_are_those_of_ethereums_vectors() {
        for (seed, count, expected) in VECTORS {
            let mapping = whole(&Shuffle::new(seed.parse().unwrap(), count));
            let found = Hash::of_parts(&[file(seed, &mapping).as_bytes()]);
            assert_eq!(found.to_string(), expected, "{seed} {count}");
        }
        // One of them, written out.
        let (seed, count, _) = VECTORS[3];
        let expected = [
            10, 17, 5, 14, 27, 31, 3, 23, 2, 26, 28, 11, 32, 20, 9, 16, 24, 4, 1, 21, 7, 22, 18,
            15, 29, 6, 19, 13, 0, 30, 12, 8, 25,
        ];
        assert_eq!(whole(&Shuffle::new(seed.parse().unwrap(), count)), expected);
    }

    fn seed(number: u32) -> Hash {
        Hash::of_parts(&[&number.to_be_bytes()])
    }

    #[test]
    fn every_place_is_given_once_and_leads_back() {
        for count in [0, 1, 2, 3, 7, 255, 256, 257, 1025] {
            let shuffle = Shuffle::new(seed(count), count);
            let places = whole(&shuffle);
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..count), "{count}");
            for (index, place) in (0..count).zip(places) {
                assert_eq!(shuffle.index(place), Some(index), "{count}");
            }
            assert_eq!((shuffle.place(count), shuffle.index(count)), (None, None));
        }
        let last = u32::MAX - 1;
        let shuffle = Shuffle::new(seed(1), u32::MAX);
        assert_eq!(shuffle.place(last).and_then(|place| shuffle.index(place)), Some(last));
    }

    /// Pearson's statistic of counts that should all be the same.
    fn chi_squared(counts: &[u32]) -> f64 {
        let expected =
            counts.iter().map(|count| f64::from(*count)).sum::<f64>() / counts.len() as f64;
        counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
    }

    /// Of an N that is no power of two, over 100,000 seeds: the place of one index has 10 degrees of freedom,
    /// the places of a pair 109. The bounds are what chance exceeds once in a million (chi-squared
    /// distribution: 47.0 and 192.1); seeds are fixed, so that the test cannot fail by chance.
    #[test]
    fn an_index_and_a_pair_come_to_every_place_alike() {
        const COUNT: usize = 11;
        let mut ones = [0; COUNT];
        let mut pairs = vec![0; COUNT * COUNT];
        for number in 0..100_000 {
            let shuffle = Shuffle::new(seed(number), 11);
            let place = |index| usize::try_from(shuffle.place(index).unwrap()).unwrap();
            let (first, second) = (place(3), place(8));
            ones[first] += 1;
            pairs[first * COUNT + second] += 1;
        }
        let apart: Vec<u32> = pairs.into_iter().filter(|count| *count > 0).collect();
        assert_eq!(apart.len(), COUNT * (COUNT - 1), "two never share a place");
        let found = (chi_squared(&ones), chi_squared(&apart));
        assert!(found.0 < 47.0 && found.1 < 192.1, "{found:?}");
        // The statistic finds a place that is preferred by one in a hundred.
        ones[0] += 1_000;
        assert!(chi_squared(&ones) > 47.0);
    }
}
