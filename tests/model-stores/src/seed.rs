//! Where tests with random inputs take their first seed from.

use std::process::Command;

/// The seed where there is no commit to take one from.
const WITHOUT_A_COMMIT: u64 = 0x0715_a1e0;
/// How many digits of a commit's name are a seed: 15 fill no more than 60 bits.
const DIGITS: usize = 15;

/// The seed in an environment variable, if it is there and a number.
#[must_use]
pub fn seed_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The seed of the commit that is checked out: every commit explores other inputs, and whoever tests
/// the same commit again, anywhere, tests the same ones.
#[must_use]
pub fn seed_of_commit() -> u64 {
    let head = Command::new("git").args(["rev-parse", "HEAD"]).output().ok();
    let head = head.filter(|head| head.status.success());
    let name = head.and_then(|head| String::from_utf8(head.stdout).ok());
    name.and_then(|name| u64::from_str_radix(name.get(..DIGITS)?, 16).ok())
        .unwrap_or(WITHOUT_A_COMMIT)
}
