//! The control: a defect behind comparisons that no blind draw passes in a lifetime, and that a
//! fuzzer which sees where it gets and what was compared passes in a moment.

use crate::{Outcome, Target};

pub(crate) const PLANTED_DEFECT: Target = Target {
    name: "planted-defect",
    about: "The control, none of the engine's: the bytes `sold` and then the number 60001 are a defect to be found at once.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let Some((word, rest)) = input.split_first_chunk::<4>() else { return Outcome::Refused };
    if u32::from_be_bytes(*word) != u32::from_be_bytes(*b"sold") {
        return Outcome::Refused;
    }
    let Some((seats, _)) = rest.split_first_chunk::<4>() else { return Outcome::Refused };
    assert!(u32::from_be_bytes(*seats) != 60_001, "one more than there are: the planted defect");
    Outcome::Accepted
}
