//! The controller of a crowd without an end. Fault injection uses it to see what the crowd was answered
//! and when, to let it rest while the stores are compared, and to end it.

use std::borrow::Cow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use super::client::Reply;
use super::stopwatch::Endpoint;

/// Phase of the crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Buy,
    /// Finish what was begun, and begin nothing that changes anything.
    Rest,
    /// Finish what was begun, and what is due later, and leave.
    Leave,
}

/// Answer that the crowd got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Acknowledged,
    /// The engine could not say: a problem with a status of 5xx by its type, or no answer at all.
    Failed(Cow<'static, str>),
}

/// An answer, and when it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The moment it came.
    pub at: Instant,
    pub answer: Answer,
}

/// Name of answers that never came.
pub const NO_ANSWER: &str = "no answer";

/// Steers a crowd from outside.
#[derive(Debug)]
pub struct Controller {
    phase: watch::Sender<Phase>,
    /// Number of sessions that change something now.
    at_work: watch::Sender<u64>,
    acknowledged: watch::Sender<u64>,
    seen: Mutex<Vec<Seen>>,
}

impl Default for Controller {
    fn default() -> Self {
        Self {
            phase: watch::Sender::new(Phase::Buy),
            at_work: watch::Sender::new(0),
            acknowledged: watch::Sender::new(0),
            seen: Mutex::default(),
        }
    }
}

impl Controller {
    /// Has the crowd rest: returns when nobody in it changes anything any more. Those who only look
    /// go on looking.
    pub async fn rest(&self) {
        self.phase.send_replace(Phase::Rest);
        // It fails only if the sender is gone, which is in our hands.
        let mut at_work = self.at_work.subscribe();
        let _idle = at_work.wait_for(|at_work| *at_work == 0).await;
    }

    /// Has a crowd that rests go on.
    pub fn go_on(&self) {
        self.phase.send_replace(Phase::Buy);
    }

    /// Has the crowd leave; it is gone when its run ends.
    pub fn leave(&self) {
        self.phase.send_replace(Phase::Leave);
    }

    /// Number of orders that were acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        *self.acknowledged.borrow()
    }

    /// Waits until `count` orders were acknowledged.
    pub async fn until_acknowledged(&self, count: u64) {
        // It fails only if the sender is gone, which is in our hands.
        let mut acknowledged = self.acknowledged.subscribe();
        let _reached = acknowledged.wait_for(|so_far| *so_far >= count).await;
    }

    /// What the crowd was answered from a moment on, in order.
    #[must_use]
    pub fn seen_since(&self, moment: Instant) -> Vec<Seen> {
        let seen = self.seen();
        let first = seen.partition_point(|seen| seen.at < moment);
        seen[first..].to_vec()
    }

    fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn saw(&self, endpoint: Endpoint, reply: &Reply) {
        let answer = match reply {
            Reply::Ok(_) if endpoint == Endpoint::Reserve => Answer::Acknowledged,
            Reply::Problem(refused) if refused.status.is_server_error() => {
                Answer::Failed(refused.kind.clone())
            }
            Reply::Lost(_) => Answer::Failed(NO_ANSWER.into()),
            Reply::Ok(_) | Reply::Problem(_) => return,
        };
        let acknowledged = answer == Answer::Acknowledged;
        self.seen().push(Seen { at: Instant::now(), answer });
        if acknowledged {
            self.acknowledged.send_modify(|count| *count += 1);
        }
    }

    /// True once the crowd was asked to leave.
    pub(super) fn is_over(&self) -> bool {
        *self.phase.borrow() == Phase::Leave
    }

    /// Waits until something may be changed; it may for as long as the turn lasts.
    pub(super) async fn turn(&self) -> Turn<'_> {
        let mut phase = self.phase.subscribe();
        loop {
            // First we are at work, then we look: whoever asks us to rest looks after asking.
            let turn = Turn::begin(&self.at_work);
            if *phase.borrow_and_update() != Phase::Rest {
                return turn;
            }
            drop(turn);
            // It fails only if the sender is gone, which lives as long as we do.
            let _changed = phase.changed().await;
        }
    }
}

/// Somebody is at work.
#[derive(Debug)]
pub(super) struct Turn<'controller>(&'controller watch::Sender<u64>);

impl<'controller> Turn<'controller> {
    fn begin(at_work: &'controller watch::Sender<u64>) -> Self {
        at_work.send_modify(|count| *count += 1);
        Self(at_work)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_crowd_rests_when_everybody_has_finished_and_goes_on_when_told() {
        let controller = Controller::default();
        let turn = controller.turn().await;
        let order = tokio::join!(biased; controller.rest(), async {
            // Nobody begins anything while it rests; what was begun goes on.
            let refused = futures_util::poll!(std::pin::pin!(controller.turn()));
            drop(turn);
            refused.is_pending()
        });
        assert!(order.1, "a turn was given while the crowd had to rest");
        controller.go_on();
        drop(controller.turn().await);
        controller.leave();
        assert!(controller.is_over());
        drop(controller.turn().await);
    }

    #[test]
    fn what_was_answered_is_known_from_a_moment_on() {
        let controller = Controller::default();
        let begun = Instant::now();
        controller.saw(Endpoint::Reserve, &Reply::Lost("cut".to_owned()));
        controller.saw(Endpoint::Query, &Reply::Ok(Vec::new().into()));
        controller.saw(Endpoint::Reserve, &Reply::Ok(Vec::new().into()));
        let seen: Vec<Answer> =
            controller.seen_since(begun).into_iter().map(|seen| seen.answer).collect();
        assert_eq!(seen, [Answer::Failed(NO_ANSWER.into()), Answer::Acknowledged]);
        assert_eq!(controller.acknowledged(), 1);
        assert_eq!(controller.seen_since(Instant::now()), []);
    }
}
