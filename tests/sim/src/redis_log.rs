//! What Redis was asked to write, so that it can be made to forget the last of it.

use std::collections::VecDeque;
use std::sync::Arc;

use engine::domain::basics::ids::InventoryId;
use engine::domain::basics::time::Timestamp;
use model_stores::{Call, Stores};

use crate::environment::inventory_of;

/// The most writes that can be forgotten.
const MAX: usize = 32;

/// A replica that is [`MAX`] writes behind, and those writes.
#[derive(Debug, Default)]
pub(crate) struct RedisLog {
    replica: Stores,
    writes: VecDeque<(Timestamp, Arc<Call>)>,
}

impl RedisLog {
    pub(crate) fn record(&mut self, now: Timestamp, call: &Arc<Call>) {
        self.writes.push_back((now, Arc::clone(call)));
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

    /// An inventory is lost with every copy of it: what was written to it comes back from no replica.
    pub(crate) fn lose(&mut self, inventory: &InventoryId) {
        self.replica.seats.unload(inventory);
        self.writes.retain(|(_, call)| inventory_of(call) != Some(inventory));
    }

    /// The state of Redis without its last writes, or without the last writes of one inventory, whose
    /// slot's node fails over alone.
    pub(crate) fn forget(&mut self, writes: usize, of: Option<&InventoryId>) -> &Stores {
        let is_of_it = |call: &Call| of.is_none_or(|id| inventory_of(call) == Some(id));
        let places = self.writes.iter().enumerate().rev();
        let last = places.filter(|(_, (_, call))| is_of_it(call)).map(|(place, _)| place);
        for place in last.take(writes).collect::<Vec<usize>>() {
            self.writes.remove(place);
        }
        while !self.writes.is_empty() {
            self.replicate();
        }
        &self.replica
    }
}
