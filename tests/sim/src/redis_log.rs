//! What Redis was asked to write, so that it can be made to forget the last of it.

use std::collections::{BTreeMap, VecDeque};

use engine::domain::gate::GateShard;
use engine::domain::ids::SaleId;
use engine::domain::time::Timestamp;
use model_stores::{Call, SeatsModel, Stores};

/// The most writes that can be forgotten.
const MAX: usize = 32;

/// A replica that is [`MAX`] writes behind, and those writes.
#[derive(Debug, Default)]
pub(crate) struct RedisLog {
    replica: Stores,
    writes: VecDeque<(Timestamp, Call)>,
}

impl RedisLog {
    /// Records a write.
    pub(crate) fn record(&mut self, now: Timestamp, call: &Call) {
        self.writes.push_back((now, call.clone()));
        while self.writes.len() > MAX {
            self.replicate();
        }
    }

    /// The replica makes the oldest write that it has missed.
    fn replicate(&mut self) {
        if let Some((at, call)) = self.writes.pop_front() {
            // What it answers was answered when the write was made first.
            let _answered = self.replica.apply(at, &call);
        }
    }

    /// The state of Redis without its last writes.
    pub(crate) fn forget(
        &mut self,
        writes: usize,
    ) -> (SeatsModel, BTreeMap<(SaleId, u16), GateShard>) {
        let kept = self.writes.len().saturating_sub(writes);
        self.writes.truncate(kept);
        while !self.writes.is_empty() {
            self.replicate();
        }
        (self.replica.seats.clone(), self.replica.gate.clone())
    }
}
