//! The control: a defect behind comparisons that no blind draw passes in a lifetime, and that a
//! fuzzer which sees where it gets and what was compared passes in a moment.

use crate::{Outcome, Target};

pub(crate) const PLANTED_DEFECT: Target = Target {
    name: "planted-defect",
    about: "The control, none of the engine's: `oversell=60001 seats` is a defect to be found at once.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let text = std::str::from_utf8(input).unwrap_or_default();
    let Some(("oversell", seats)) = text.split_once('=') else { return Outcome::Refused };
    assert!(seats != "60001 seats", "one more than there are: the planted defect");
    Outcome::Accepted
}
