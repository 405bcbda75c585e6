//! The merchant's own key at a provider, and the one that replaces it: which of them the provider accepts shows
//! when it refuses the other.

use std::sync::atomic::{AtomicBool, Ordering};

/// One key, or two while one replaces the other.
#[derive(Debug)]
pub(super) struct Rotation<T> {
    first: T,
    next: Option<T>,
    uses_next: AtomicBool,
}

/// Which of the two a request is signed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn(bool);

impl<T> Rotation<T> {
    pub(super) fn new(first: T, next: Option<T>) -> Self {
        Self { first, next, uses_next: AtomicBool::new(false) }
    }

    /// The key that was accepted last, the first one to begin with.
    pub(super) fn turn(&self) -> Turn {
        Turn(self.uses_next.load(Ordering::Relaxed))
    }

    /// The key of a turn.
    pub(super) fn key(&self, Turn(is_next): Turn) -> &T {
        self.next.as_ref().filter(|_| is_next).unwrap_or(&self.first)
    }

    /// The provider has refused the key of a turn: the turn to try in its place, if there is another key. It is
    /// used from now on.
    pub(super) fn after(&self, Turn(refused): Turn) -> Option<Turn> {
        self.next.as_ref()?;
        // Of requests that are refused at once, one changes over.
        let _changed = self.uses_next.compare_exchange(
            refused,
            !refused,
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        Some(Turn(!refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_refused_takes_the_other_key_and_both_stay_with_it() {
        let keys = Rotation::new("old", Some("new"));
        let (one, other) = (keys.turn(), keys.turn());
        assert_eq!(keys.key(one), &"old");
        for refused in [one, other] {
            assert_eq!(keys.after(refused).map(|turn| *keys.key(turn)), Some("new"));
        }
        assert_eq!(keys.key(keys.turn()), &"new");
        assert_eq!(keys.after(keys.turn()).map(|turn| *keys.key(turn)), Some("old"), "and back");
    }

    #[test]
    fn one_key_has_no_other() {
        let keys = Rotation::new("only", None);
        assert_eq!(keys.after(keys.turn()), None);
        assert_eq!(keys.key(keys.turn()), &"only");
    }
}
