//! Fault injection: a standard queue may deliver twice, out of order and late, and seldom does.
//! Tests switch it on; the draws come from a seed, so a run can be repeated.

/// Ready messages among which a reordered delivery chooses, the oldest ones.
pub(crate) const REORDER_WINDOW: usize = 64;

/// The faults to inject. The default is none.
///
/// They concern standard queues only: a FIFO queue keeps its guarantees. The draws come from
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
    /// Seed of the draws.
    pub seed: u64,
}

/// Draws the faults of one configuration.
#[derive(Debug)]
pub(crate) struct FaultInjector {
    faults: Faults,
    state: u64,
}

impl FaultInjector {
    /// Draws from the seed of this configuration.
    pub fn new(faults: Faults) -> Self {
        FaultInjector { faults, state: faults.seed }
    }

    /// True if this delivery is duplicated.
    pub fn duplicates(&mut self) -> bool {
        self.chance(self.faults.duplicate)
    }

    /// Index of the message to deliver among `ready` ones: 0 is the oldest.
    pub fn pick(&mut self, ready: usize) -> usize {
        let window = ready.min(REORDER_WINDOW);
        if window < 2 || !self.chance(self.faults.reorder) {
            return 0;
        }
        let index = self.below(u64::try_from(window - 1).unwrap_or(u64::MAX));
        1 + usize::try_from(index).unwrap_or_default()
    }

    /// Delay of a message's visibility in milliseconds.
    pub fn lateness_ms(&mut self) -> u64 {
        match self.faults.delay_ms_max {
            0 => 0,
            most => self.below(most.saturating_add(1)),
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        // No draw for what is switched off: turning one kind of fault on does not shift
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
    fn nothing_is_drawn_without_faults() {
        let mut injector = FaultInjector::new(Faults::default());
        for _ in 0..100 {
            assert!(!injector.duplicates());
            assert_eq!(injector.pick(100), 0);
            assert_eq!(injector.lateness_ms(), 0);
        }
    }

    #[test]
    fn a_seed_repeats_its_draws_and_the_rate_is_kept() {
        let faults = Faults { duplicate: 0.25, reorder: 0.5, delay_ms_max: 9, seed: 7 };
        let (mut one, mut other) = (FaultInjector::new(faults), FaultInjector::new(faults));
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
