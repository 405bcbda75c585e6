//! What must hold of everything that reads untrusted input, whatever it is.
//!
//! A [`Target`] is a function of bytes: it gives them to the engine's own code and panics where a
//! property does not hold, which is more than that nothing panics: what is accepted survives being
//! written and read again, what is refused has a documented problem, what is signed was signed by
//! us. libFuzzer calls it with ever new bytes (`scripts/fuzz`), and an ordinary test with those that
//! lie in `corpus/`. `README.md` says how to run and replay.

mod merchants;
mod request;
mod sample;
mod scripted;
mod signed;
mod tables;
mod targets;

/// What became of an input. A corpus must hold both kinds, else its target proves little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// At least one reader took it, or a part of it, for what it reads.
    Accepted,
    Refused,
}

impl Outcome {
    /// Accepted if anything was.
    fn from_accepted(accepted: bool) -> Self {
        if accepted { Self::Accepted } else { Self::Refused }
    }
}

#[derive(Debug)]
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// The input that is read, and the property that must hold, in words.
    pub about: &'static str,
    /// Tries one input.
    ///
    /// # Panics
    /// If a property does not hold: the engine has a defect.
    pub run: fn(&[u8]) -> Outcome,
}

pub static TARGETS: [Target; 19] = [
    targets::REQUEST,
    targets::ADMISSION_TOKEN,
    targets::CHALLENGE_ANSWER,
    targets::IDENTITY_TOKEN,
    targets::TICKET_CODE,
    targets::PAYMENT_CALLBACK,
    targets::WECHAT_MESSAGE,
    targets::ALIPAY_MESSAGE,
    targets::SETTLEMENT_REPORT,
    targets::BILL,
    targets::NAMES,
    targets::SALE_FILE,
    targets::SEATING_PLAN,
    targets::GTFS_FEED,
    targets::TRAIN_TABLES,
    targets::LAMBDA_EVENT,
    targets::QUEUE_MESSAGE,
    targets::HOLD_RECORD,
    targets::SCRIPT_REPLY,
];

/// The control: a target with a defect that only a fuzzer which sees where it gets can find.
pub static CONTROL: Target = targets::PLANTED_DEFECT;

/// The target with a name, the control included.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().chain([&CONTROL]).find(|target| target.name == name)
}

/// The value, which there must be: otherwise the engine contradicts itself.
fn must<T, E: std::fmt::Debug>(result: Result<T, E>, what: &str) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error:?}"))
}
