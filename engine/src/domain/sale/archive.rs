//! Archiving: whether a sale that is over may leave Redis for good.
//!
//! An archived sale sells nothing and is never loaded again. Its orders stay, and a late payment of one of them is
//! decided from DynamoDB alone. So a sale may be archived only once no hold, pending order or refund needs Redis.

use crate::domain::basics::guard::{Guard, stands};
use crate::domain::basics::time::Timestamp;

/// The stages of a sale's life, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lifecycle {
    /// The sale is listed, and Redis has it or will load it.
    #[default]
    Listed,
    /// The sale is archived for good, and its keys are being removed from Redis. It is still listed, so
    /// that the next run finishes the removal if this one is interrupted.
    Unloading,
    /// The sale is archived: not listed, and not in Redis.
    Archived,
}

impl Lifecycle {
    /// True if the sale sells nothing any more and is not to be loaded.
    #[must_use]
    pub const fn is_over(self) -> bool {
        match self {
            Self::Listed => false,
            Self::Unloading | Self::Archived => true,
        }
    }
}

/// The undecided work of a sale, which keeps it from being archived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Undecided {
    /// Number of orders that hold seats in Redis.
    pub holds: u64,
    /// Number of pending orders.
    pub pending: usize,
    /// Number of paid orders that are not counted yet.
    pub uncounted: usize,
    /// Number of refunds that are not finished.
    pub refunds: usize,
}

impl std::fmt::Display for Undecided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { holds, pending, uncounted, refunds } = self;
        write!(
            f,
            "{holds} holds, {pending} pending orders, {uncounted} paid orders that are not counted, \
             {refunds} refunds that are not finished"
        )
    }
}

/// Why a sale may not be archived yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotYet {
    /// The sale sells until this time, or will sell.
    #[error("it sells until {0}")]
    Sells(Timestamp),
    /// Something of it is undecided.
    #[error("not everything of it is decided: {0}")]
    Undecided(Undecided),
}

/// Whether a sale that stops selling at `closes_at` may be archived at `now`.
///
/// # Errors
/// Returns why not.
pub fn may_archive(closes_at: Timestamp, now: Timestamp, found: Undecided) -> Result<(), NotYet> {
    if now < closes_at {
        return Err(NotYet::Sells(closes_at));
    }
    if stands(Guard::ArchiveDecided) && found != Undecided::default() {
        return Err(NotYet::Undecided(found));
    }
    Ok(())
}

/// Whether a sale that stopped selling at `closes_at` is old enough to be archived by itself.
#[must_use]
pub fn is_of_age(closes_at: Timestamp, after_days: u16, now: Timestamp) -> bool {
    closes_at.plus_seconds(i64::from(after_days) * 86_400) <= now
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSES: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    #[test]
    fn a_sale_that_is_over_and_decided_may_go_and_no_other() {
        let none = Undecided::default();
        assert_eq!(may_archive(CLOSES, CLOSES, none), Ok(()));
        let early = CLOSES.plus_ms(-1);
        assert_eq!(may_archive(CLOSES, early, none), Err(NotYet::Sells(CLOSES)));
        let each = [
            Undecided { holds: 1, ..none },
            Undecided { pending: 1, ..none },
            Undecided { uncounted: 1, ..none },
            Undecided { refunds: 1, ..none },
        ];
        for found in each {
            let refused = may_archive(CLOSES, CLOSES.plus_seconds(86_400), found);
            assert_eq!(refused, Err(NotYet::Undecided(found)));
        }
    }

    #[cfg(debug_assertions)]
    #[test]
    fn without_the_guard_an_undecided_sale_may_go() {
        use crate::domain::basics::guard::without;
        let pending = Undecided { pending: 1, ..Undecided::default() };
        let allowed = without(Guard::ArchiveDecided, || may_archive(CLOSES, CLOSES, pending));
        assert_eq!(allowed, Ok(()));
    }

    #[test]
    fn age_is_counted_in_whole_days_from_the_closing() {
        let after = |days: i64| CLOSES.plus_seconds(days * 86_400);
        assert!(!is_of_age(CLOSES, 30, after(30).plus_ms(-1)));
        assert!(is_of_age(CLOSES, 30, after(30)));
        assert!(is_of_age(CLOSES, 0, CLOSES));
    }
}
