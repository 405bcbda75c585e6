//! The switch that ends a rehearsal, and what throws it: somebody, a file, or too many errors.

use std::collections::VecDeque;

use tokio::sync::watch;

/// Number of the target's last answers among which errors are counted.
const WINDOW: usize = 100;
/// Fewer answers than this are not judged.
const MIN_ANSWERS: usize = 20;

/// Ends a rehearsal: nothing more is sent once it is thrown. Its first reason stays.
#[derive(Debug)]
pub struct AbortSwitch(watch::Sender<Option<String>>);

impl Default for AbortSwitch {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl AbortSwitch {
    /// Throws it, for a reason in words.
    pub fn abort(&self, reason: impl Into<String>) {
        self.0.send_if_modified(|so_far| {
            let first = so_far.is_none();
            if first {
                *so_far = Some(reason.into());
            }
            first
        });
    }

    /// Why it was thrown, if it was.
    #[must_use]
    pub fn reason(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// True once it was thrown.
    #[must_use]
    pub fn is_thrown(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until it is thrown.
    pub async fn thrown(&self) {
        // It fails only if the sender is gone, which lives as long as we do.
        let mut reason = self.0.subscribe();
        let _thrown = reason.wait_for(Option::is_some).await;
    }
}

/// Watches the share of errors among the last answers.
#[derive(Debug)]
pub struct ErrorGuard {
    max_percent: u32,
    last: VecDeque<bool>,
}

impl ErrorGuard {
    /// Bears `max_percent` errors among a hundred answers; 100 bears all.
    #[must_use]
    pub fn new(max_percent: u32) -> Self {
        Self { max_percent, last: VecDeque::with_capacity(WINDOW) }
    }

    /// Takes an answer; says what is wrong once there were too many errors among the last hundred.
    pub fn answered(&mut self, is_error: bool) -> Option<String> {
        if self.last.len() == WINDOW {
            self.last.pop_front();
        }
        self.last.push_back(is_error);
        let (answers, max) = (self.last.len(), self.max_percent);
        let errors = self.last.iter().filter(|is_error| **is_error).count();
        let too_many = reporting::count(errors) * 100 > u64::from(max) * reporting::count(answers);
        (answers >= MIN_ANSWERS && too_many).then(|| {
            format!("{errors} of the last {answers} answers were errors: more than {max} %")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_switch_keeps_its_first_reason() {
        let switch = AbortSwitch::default();
        assert!(!switch.is_thrown());
        let (_, ()) = tokio::join!(switch.thrown(), async {
            switch.abort("first");
            switch.abort("second");
        });
        assert_eq!(switch.reason().as_deref(), Some("first"));
        switch.thrown().await;
    }

    #[test]
    fn a_target_that_errs_too_much_is_spared() {
        let mut guard = ErrorGuard::new(10);
        // Two of twenty are ten percent; the third of twenty-one is too many.
        let said: Vec<_> = (0..20).map(|index| guard.answered(index < 2)).collect();
        assert!(said.iter().all(Option::is_none), "{said:?}");
        assert!(guard.answered(true).unwrap().starts_with("3 of the last 21"));
        // Errors of long ago do not count.
        for _ in 0..WINDOW {
            guard.answered(false);
        }
        assert!((0..10).all(|_| guard.answered(true).is_none()));
        assert!(guard.answered(true).is_some());
        // Nineteen errors are too few answers to judge; with 100 percent nothing is too much.
        let mut new = ErrorGuard::new(0);
        assert!((0..19).all(|_| new.answered(true).is_none()));
        assert!(new.answered(true).is_some());
        let mut all = ErrorGuard::new(100);
        assert!((0..200).all(|_| all.answered(true).is_none()));
    }
}
