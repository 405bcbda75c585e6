//! FIFO queues: groups that are delivered in order and one at a time, and sends
//! that are recognised when they are repeated.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::message::Seq;

/// Milliseconds for which a repeated send is recognised: five minutes, as the developer
/// guide's "Exactly-once processing" says.
pub(crate) const DEDUPLICATION_MS: u64 = 5 * 60 * 1_000;

/// The messages of one group.
#[derive(Debug, Default)]
struct Group {
    /// Not in flight, in the order of sending.
    waiting: BTreeSet<Seq>,
    /// Messages in flight; while there is any, the group is locked.
    in_flight: u32,
    /// The message that stands for the group in the queue's ready index.
    candidate: Option<Seq>,
}

/// The change of a group's message in the ready index.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CandidateChange {
    /// Take this one out.
    pub withdrawn: Option<Seq>,
    /// Put this one in.
    pub offered: Option<Seq>,
}

/// The groups of one queue.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: HashMap<String, Group>,
}

impl Groups {
    /// A message waits in its group.
    pub fn join(&mut self, group: &str, seq: Seq) {
        if !self.groups.contains_key(group) {
            self.groups.insert(group.to_owned(), Group::default());
        }
        if let Some(group) = self.groups.get_mut(group) {
            group.waiting.insert(seq);
        }
    }

    /// A waiting message leaves its group: deleted or dead-lettered.
    pub fn leave(&mut self, group: &str, seq: Seq) {
        if let Some(group) = self.groups.get_mut(group) {
            group.waiting.remove(&seq);
        }
    }

    /// A waiting message is delivered: the group is locked.
    pub fn lock(&mut self, group: &str, seq: Seq) {
        if let Some(group) = self.groups.get_mut(group) {
            group.waiting.remove(&seq);
            group.in_flight += 1;
        }
    }

    /// A message in flight is deleted or returns; in the second case `join` follows.
    pub fn unlock(&mut self, group: &str) {
        if let Some(group) = self.groups.get_mut(group) {
            group.in_flight = group.in_flight.saturating_sub(1);
        }
    }

    /// The first waiting message of a group.
    pub fn head(&self, group: &str) -> Option<Seq> {
        self.groups.get(group)?.waiting.first().copied()
    }

    /// Settles which message may stand in the ready index after the group has changed: its
    /// head, if the group is free and `head_is_ready`. A group without messages is forgotten.
    pub fn settle(&mut self, name: &str, head_is_ready: bool) -> CandidateChange {
        let Some(group) = self.groups.get_mut(name) else {
            return CandidateChange::default();
        };
        let head = group.waiting.first().copied();
        let candidate = if group.in_flight == 0 && head_is_ready { head } else { None };
        let before = std::mem::replace(&mut group.candidate, candidate);
        if head.is_none() && group.in_flight == 0 {
            self.groups.remove(name);
        }
        if before == candidate {
            return CandidateChange::default();
        }
        CandidateChange { withdrawn: before, offered: candidate }
    }

    pub fn clear(&mut self) {
        self.groups.clear();
    }
}

/// The first send of a deduplication key, with which a repeated one is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Original {
    /// Time at which it was sent, Unix milliseconds.
    pub sent_ms: u64,
    /// Its `MessageId`.
    pub id: Arc<str>,
    pub seq: Seq,
}

/// The sends of the last five minutes.
#[derive(Debug, Default)]
pub(crate) struct Deduplication {
    originals: HashMap<String, Original>,
    by_age: BTreeMap<(u64, Seq), String>,
}

impl Deduplication {
    /// The send that `key` repeats.
    pub fn original(&self, key: &str, now_ms: u64) -> Option<&Original> {
        self.originals
            .get(key)
            .filter(|original| original.sent_ms.saturating_add(DEDUPLICATION_MS) > now_ms)
    }

    pub fn remember(&mut self, key: String, original: Original) {
        self.by_age.insert((original.sent_ms, original.seq), key.clone());
        if let Some(older) = self.originals.insert(key, original) {
            self.by_age.remove(&(older.sent_ms, older.seq));
        }
    }

    /// Forgets what is older than five minutes; returns the keys.
    pub fn forget(&mut self, now_ms: u64) -> Vec<String> {
        let mut forgotten = Vec::new();
        while let Some(entry) = self.by_age.first_entry() {
            if entry.key().0.saturating_add(DEDUPLICATION_MS) > now_ms {
                break;
            }
            let key = entry.remove();
            self.originals.remove(&key);
            forgotten.push(key);
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_locked_while_any_message_is_in_flight() {
        let mut groups = Groups::default();
        for seq in 1..=3 {
            groups.join("g", seq);
        }
        assert_eq!(groups.settle("g", true).offered, Some(1));
        groups.lock("g", 1);
        groups.lock("g", 2);
        assert_eq!(groups.settle("g", true), CandidateChange { withdrawn: Some(1), offered: None });
        groups.unlock("g");
        assert_eq!(groups.settle("g", true), CandidateChange::default(), "2 is still in flight");
        groups.unlock("g");
        groups.join("g", 2);
        assert_eq!(groups.settle("g", true).offered, Some(2), "what returned goes first");
        assert_eq!(groups.settle("g", false).withdrawn, Some(2));
    }

    #[test]
    fn a_repeated_send_is_known_for_five_minutes() {
        let mut deduplication = Deduplication::default();
        let original = Original { sent_ms: 1_000, id: "m".into(), seq: 1 };
        deduplication.remember("k".into(), original.clone());
        assert_eq!(deduplication.original("k", 1_000 + DEDUPLICATION_MS - 1), Some(&original));
        assert_eq!(deduplication.original("k", 1_000 + DEDUPLICATION_MS), None);
        assert!(deduplication.forget(1_000 + DEDUPLICATION_MS - 1).is_empty());
        let again = Original { sent_ms: 2_000 + DEDUPLICATION_MS, id: "n".into(), seq: 2 };
        deduplication.remember("k".into(), again.clone());
        assert!(deduplication.forget(1_000 + DEDUPLICATION_MS).is_empty(), "the newer send stays");
        assert_eq!(deduplication.original("k", again.sent_ms), Some(&again));
        assert_eq!(deduplication.forget(again.sent_ms + DEDUPLICATION_MS), ["k"]);
    }
}
