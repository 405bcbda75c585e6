//! What can go wrong, and how likely each is in a run.

use std::fmt;

use crate::plan::GRACE;
use crate::random::SeededRng;

/// The longest that a process sleeps: much longer than any function may run.
pub(crate) const LONGEST_FREEZE_MS: i64 = 900_000;

/// One kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// A process dies at a call: before the request goes out, or after it took effect.
    Die,
    /// A request is lost: it never happens, and the caller cannot know that.
    LoseRequest,
    /// A reply is lost: it happened, and the caller cannot know that.
    LoseReply,
    /// A store refuses: throttled, in conflict, not available.
    Refuse,
    /// The caller gives up on a request that takes effect seconds or minutes later.
    Late,
    /// A request arrives twice, and the second answer is the one that is heard.
    Twice,
    /// A call takes seconds.
    Slow,
    /// A process stops between two calls for up to a quarter of an hour, and goes on.
    Freeze,
    /// The clocks of processes are seconds ahead or behind.
    Skew,
    /// The index of due work is behind: it leaves out some of it.
    IndexBehind,
    /// The answer to a buyer or to the provider is lost.
    LoseAnswer,
    /// A message is lost.
    LoseMessage,
    /// A message is delivered twice.
    DoubleMessage,
    /// A message comes minutes or hours late.
    DelayMessage,
    /// Redis fails over to a replica that has missed its last writes.
    Failover,
    Flush,
    /// Redis loses one tier of a sale that keeps its tiers apart, and has the others.
    LoseTier,
    /// Two sweepers run at once.
    TwoSweepers,
    /// The provider calls back more than once, also at once.
    CallTwice,
    /// The provider calls back hours late.
    CallLate,
    /// The provider never calls back of itself.
    CallNever,
    /// A payment has a wrong amount or currency.
    WrongAmount,
    /// A buyer pays an order twice.
    PayTwice,
    /// The provider does not do a refund at once, or refuses it.
    RefundFault,
    /// The provider does not answer what it has captured.
    Silence,
    /// The limit on calls to the provider is used up.
    Limited,
    /// The provider fails at the start of a payment, and answers that to every repetition.
    SavedFailure,
}

impl Fault {
    pub const ALL: [Self; 27] = [
        Self::Die,
        Self::LoseRequest,
        Self::LoseReply,
        Self::Refuse,
        Self::Late,
        Self::Twice,
        Self::Slow,
        Self::Freeze,
        Self::Skew,
        Self::IndexBehind,
        Self::LoseAnswer,
        Self::LoseMessage,
        Self::DoubleMessage,
        Self::DelayMessage,
        Self::Failover,
        Self::Flush,
        Self::LoseTier,
        Self::TwoSweepers,
        Self::CallTwice,
        Self::CallLate,
        Self::CallNever,
        Self::WrongAmount,
        Self::PayTwice,
        Self::RefundFault,
        Self::Silence,
        Self::Limited,
        Self::SavedFailure,
    ];

    /// The highest rate of such a fault in a run where it is alone, in thousandths. What
    /// happens at every call is rarer than what happens once for a buyer, a message or a payment.
    const fn most_per_mille(self) -> u16 {
        match self {
            // A sweep makes thirty calls: of a hundred that die one each, every fourth sweep dies.
            Self::Die => 10,
            Self::Freeze => 15,
            Self::LoseRequest | Self::LoseReply | Self::Late | Self::Refuse => 30,
            Self::Twice | Self::Slow => 60,
            Self::IndexBehind | Self::LoseAnswer => 200,
            Self::LoseMessage
            | Self::DoubleMessage
            | Self::DelayMessage
            | Self::TwoSweepers
            | Self::CallTwice
            | Self::CallLate
            | Self::CallNever
            | Self::WrongAmount
            | Self::PayTwice
            | Self::RefundFault
            | Self::Silence
            | Self::Limited
            | Self::SavedFailure => 500,
            Self::Skew | Self::Failover | Self::Flush | Self::LoseTier => 1000,
        }
    }

    /// True if Redis forgets something it had answered, or does later what its caller has given up:
    /// only without both does Redis have to be right after every step.
    pub(crate) const fn upsets_redis(self) -> bool {
        matches!(self, Self::Failover | Self::Flush | Self::LoseTier | Self::Late)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// What may go wrong in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultProfile {
    NoFaults,
    /// One kind of fault.
    Single(Fault),
    /// Some kinds, so that rare combinations meet.
    Swarm,
    All,
}

impl FaultProfile {
    /// The profile of a run. Single faults take turns with the seed, so that each has its share.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut rng = SeededRng::from_label(seed, 0x77);
        match rng.below(100) {
            0..3 => Self::NoFaults,
            3..35 => Self::Single(rng.pick(&Fault::ALL)),
            35..85 => Self::Swarm,
            _ => Self::All,
        }
    }

    /// True if more than one kind of fault may strike.
    pub(crate) const fn is_mixed(self) -> bool {
        matches!(self, Self::Swarm | Self::All)
    }

    /// The longest time that an order may be pending beyond its payment window, in milliseconds (I7):
    /// the bound of the audit; two sweeps more under one kind of fault, and eight minutes more under several.
    #[must_use]
    pub fn bound_ms(self) -> i64 {
        let bound_ms = i64::from(GRACE.bound_seconds()) * 1000;
        match self {
            Self::Swarm | Self::All => bound_ms + 480_000,
            // A fault that strikes twice or three times in a row costs as many sweeps.
            Self::Single(_) => bound_ms + 120_000,
            Self::NoFaults => bound_ms,
        }
    }
}

impl fmt::Display for FaultProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFaults => f.write_str("no faults"),
            Self::Single(fault) => write!(f, "{fault} alone"),
            Self::Swarm => f.write_str("some faults"),
            Self::All => f.write_str("all faults"),
        }
    }
}

/// The rate of each kind of fault, in thousandths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rates([u16; Fault::ALL.len()]);

impl Rates {
    /// The rates of a run.
    pub(crate) fn from_seed(seed: u64, profile: FaultProfile) -> Self {
        let mut rng = SeededRng::from_label(seed, 0x78);
        let mut rates = [0; Fault::ALL.len()];
        for (rate, fault) in rates.iter_mut().zip(Fault::ALL) {
            let most = i64::from(fault.most_per_mille());
            let drawn = rng.between(most / 4 + 1, most) as u16;
            let is_on = rng.chance(300);
            *rate = match profile {
                FaultProfile::NoFaults => 0,
                FaultProfile::Single(single) if single == fault => drawn,
                FaultProfile::Single(_) => 0,
                FaultProfile::Swarm if is_on => drawn / 2 + 1,
                FaultProfile::Swarm => 0,
                FaultProfile::All => drawn / 4 + 1,
            };
        }
        Self(rates)
    }

    /// The rate of a kind, in thousandths.
    pub(crate) fn of_fault(&self, fault: Fault) -> u16 {
        self.0[fault as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_alone_in_some_run_and_its_place_in_the_list_is_its_number() {
        for (index, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, index);
            let alone = |seed: &u64| FaultProfile::from_seed(*seed) == FaultProfile::Single(fault);
            let seed = (0..10_000).find(alone).expect("it has its turn");
            let rates = Rates::from_seed(seed, FaultProfile::from_seed(seed));
            assert!(rates.of_fault(fault) > 0);
            let others = Fault::ALL.into_iter().filter(|other| *other != fault);
            assert!(others.into_iter().all(|other| rates.of_fault(other) == 0));
        }
    }
}
