//! Counts the commands to the hash slot of a sale, where they are sent.
//!
//! A server counts its commands, but not by slot. A load test that runs the engine in its own process reads this
//! meter; a deployed function has no meter and counts nothing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use redis::{Arg, Cmd};

/// Counts the commands to some hash slots, each named by the hash tag of its keys. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<RwLock<BTreeMap<String, AtomicU64>>>);

impl Meter {
    /// Counts the commands whose keys have this hash tag, from now on.
    pub fn watch(&self, tag: &str) {
        let mut counts = self.0.write().unwrap_or_else(PoisonError::into_inner);
        counts.entry(tag.to_owned()).or_default();
    }

    /// Number of commands so far whose keys have this hash tag: each script is one, each command of a pipeline
    /// is one, and so is each that was sent again. `None` if they are not counted.
    #[must_use]
    pub fn count(&self, tag: &str) -> Option<u64> {
        let counts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        counts.get(tag).map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts commands that are sent.
    pub(super) fn record<'c>(&self, commands: impl Iterator<Item = &'c Cmd>) {
        let counts = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if counts.is_empty() {
            return;
        }
        for command in commands {
            if let Some(count) = tag(command).and_then(|tag| counts.get(tag)) {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The hash tag of a command's first key: no key of ours is without one, and nothing before a key begins with a
/// brace.
fn tag(command: &Cmd) -> Option<&str> {
    command.args_iter().find_map(|arg| {
        let Arg::Simple(bytes) = arg else { return None };
        let (tag, _) = std::str::from_utf8(bytes.strip_prefix(b"{")?).ok()?.split_once('}')?;
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_counted_by_the_tag_of_their_first_key() {
        let meter = Meter::default();
        let send = |words: &[&str]| {
            let mut command = redis::cmd(words[0]);
            command.arg(&words[1..]);
            meter.record(std::iter::once(&command));
        };
        send(&["HGET", "{hall}:sale", "epoch"]);
        assert_eq!(meter.count("hall"), None, "nothing is counted that nobody asked for");
        meter.watch("hall");
        send(&["HGET", "{hall}:sale", "epoch"]);
        send(&["EVALSHA", "0123", "2", "{hall}:sale", "{hall}:due", "7"]);
        for other in
            [&["HGET", "{hall/a}:sale", "x"][..], &["HGET", "{room:hall}:b", "{hall}"], &["TIME"]]
        {
            send(other);
        }
        assert_eq!((meter.count("hall"), meter.count("hall/a")), (Some(2), None));
        meter.watch("hall");
        assert_eq!(meter.count("hall"), Some(2), "watching again forgets nothing");
        assert_eq!(meter.clone().count("hall"), Some(2));
    }
}
