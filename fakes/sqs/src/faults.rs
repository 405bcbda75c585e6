//! What a standard queue is allowed to do and seldom does: deliver twice, out of order, late.
//! Asked for by tests, drawn from a seed so that a run can be repeated.

/// How far back in the line a reordered pick may reach, in messages.
pub(crate) const REORDER_WINDOW: usize = 64;

/// How much the queues misbehave. The default is not at all.
///
/// It concerns standard queues only: a FIFO queue keeps its promises. The draws come from
/// `seed` in the order of the requests, so a run with one client can be repeated exactly.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// Probability, 0 to 1, that a delivered message is delivered once more. The copy has the
    /// same message id and content, and deleting the first delivery does not remove it.
    pub duplicate: f64,
    /// Probability, 0 to 1, that a delivery is not the oldest message but one of the next 64.
    pub reorder: f64,
    /// A sent message, and the copy of a duplicated one, becomes visible up to this many
    /// milliseconds late, drawn evenly.
    pub delay_ms_max: u64,
    /// Where the draws start.
    pub seed: u64,
}

/// The draws of one configuration.
#[derive(Debug)]
pub(crate) struct Trickster {
    mischief: Faults,
    state: u64,
}

impl Trickster {
    /// Draws from the seed of this configuration.
    pub fn new(mischief: Faults) -> Self {
        Trickster { mischief, state: mischief.seed }
    }

    /// Whether this delivery happens twice.
    pub fn duplicates(&mut self) -> bool {
        self.chance(self.mischief.duplicate)
    }

    /// Which of `ready` messages in line is delivered: 0 is the oldest.
    pub fn pick(&mut self, ready: usize) -> usize {
        let window = ready.min(REORDER_WINDOW);
        if window < 2 || !self.chance(self.mischief.reorder) {
            return 0;
        }
        1 + self.below(window as u64 - 1) as usize
    }

    /// How late a message becomes visible, in milliseconds.
    pub fn lateness_ms(&mut self) -> u64 {
        match self.mischief.delay_ms_max {
            0 => 0,
            most => self.below(most.saturating_add(1)),
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        // No draw for what is switched off: turning one kind of mischief on does not shift
        // the draws of another.
        probability > 0.0 && (self.next() >> 11) as f64 / (1u64 << 53) as f64 <= probability
    }

    fn below(&mut self, bound: u64) -> u64 {
        // The bias of the remainder is far below anything a test could notice.
        self.next() % bound.max(1)
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }
}

/// The finaliser of SplitMix64: a bijection of 64 bits that scatters neighbours.
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_without_mischief() {
        let mut trickster = Trickster::new(Faults::default());
        for _ in 0..100 {
            assert!(!trickster.duplicates());
            assert_eq!(trickster.pick(100), 0);
            assert_eq!(trickster.lateness_ms(), 0);
        }
    }

    #[test]
    fn a_seed_repeats_its_draws_and_the_rate_is_kept() {
        let mischief = Faults { duplicate: 0.25, reorder: 0.5, delay_ms_max: 9, seed: 7 };
        let (mut one, mut other) = (Trickster::new(mischief), Trickster::new(mischief));
        let mut doubled = 0;
        for _ in 0..4_000 {
            let double = one.duplicates();
            doubled += usize::from(double);
            assert_eq!(double, other.duplicates());
            let pick = one.pick(10);
            assert!(pick < 10);
            assert_eq!(pick, other.pick(10));
            let late = one.lateness_ms();
            assert!(late <= 9);
            assert_eq!(late, other.lateness_ms());
        }
        assert!((800..1_200).contains(&doubled), "{doubled} of 4000");
    }
}
