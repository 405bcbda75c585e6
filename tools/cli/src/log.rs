//! The log on standard error, in which lines that repeat are summed.
//!
//! An engine whose disk is full or whose Redis is gone has the same to say of every request. The first
//! lines of each kind are printed, and the rest of them counted: every ten seconds one line says how many
//! there were. Kinds are told by the place in the source, whatever order or sale a line is about.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Filter, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer as _, filter::FilterExt as _};

/// Lines of one kind that are printed in one period.
const MAX_PRINTED: u64 = 10;
/// How long is counted before the sum is printed.
const PERIOD: Duration = Duration::from_secs(10);
/// The target of the sums themselves.
const TARGET: &str = "onsale::repeated";

/// Starts the log; `usual` is the filter unless the environment has another.
pub fn start(usual: &str) {
    let filter = EnvFilter::try_from_env("ONSALE_LOG").unwrap_or_else(|_unset| usual.into());
    let sums = Arc::new(Sums::default());
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = lines.with_filter(filter.and(Summed(Arc::clone(&sums))));
    // A second engine in one process, as in tests, finds the log started.
    if tracing_subscriber::registry().with(lines).try_init().is_err() {
        return;
    }
    let thread = std::thread::Builder::new().name("log".to_owned());
    let summing = thread.spawn(move || {
        loop {
            std::thread::sleep(PERIOD);
            sums.print(Instant::now());
        }
    });
    if let Err(error) = summing {
        tracing::warn!(%error, "repeated lines are dropped, not summed");
    }
}

/// The lines of one kind in the period that runs.
#[derive(Debug)]
struct Kind {
    level: Level,
    message: String,
    began: Instant,
    lines: u64,
}

/// A sum that is due.
#[derive(Debug, PartialEq, Eq)]
struct Sum {
    level: Level,
    message: String,
    more: u64,
}

/// What is counted, by the place in the source.
#[derive(Debug, Default)]
struct Sums(Mutex<HashMap<Identifier, Kind>>);

impl Sums {
    fn kinds(&self) -> MutexGuard<'_, HashMap<Identifier, Kind>> {
        // A panic under the lock loses a count.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a line; true if it is printed.
    fn count(
        &self,
        place: Identifier,
        level: Level,
        message: impl FnOnce() -> String,
        now: Instant,
    ) -> bool {
        let mut kinds = self.kinds();
        let fresh = || Kind { level, message: message(), began: now, lines: 0 };
        let kind = kinds.entry(place).or_insert_with(fresh);
        kind.lines += 1;
        kind.lines <= MAX_PRINTED
    }

    /// The sums of the periods that are over, which are then forgotten.
    fn due(&self, now: Instant) -> Vec<Sum> {
        let mut due = Vec::new();
        self.kinds().retain(|_, kind| {
            let runs = now.duration_since(kind.began) < PERIOD;
            let more = kind.lines.saturating_sub(MAX_PRINTED);
            if !runs && more > 0 {
                let message = std::mem::take(&mut kind.message);
                due.push(Sum { level: kind.level, message, more });
            }
            runs
        });
        due
    }

    fn print(&self, now: Instant) {
        // Not under the lock: what is printed is counted as well.
        for Sum { level, message, more } in self.due(now) {
            let seconds = PERIOD.as_secs();
            if level == Level::ERROR {
                tracing::error!(target: TARGET, more, "in {seconds} s, as: {message}");
            } else {
                tracing::warn!(target: TARGET, more, "in {seconds} s, as: {message}");
            }
        }
    }
}

/// Lets the first lines of each kind through. Only warnings and errors repeat with every request.
#[derive(Debug)]
struct Summed(Arc<Sums>);

impl<S: Subscriber> Filter<S> for Summed {
    fn enabled(&self, _metadata: &Metadata<'_>, _context: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _context: &Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::WARN || metadata.target() == TARGET {
            return true;
        }
        let message = || {
            let mut message = Message(String::new());
            event.record(&mut message);
            message.0
        };
        self.0.count(metadata.callsite(), *metadata.level(), message, Instant::now())
    }
}

/// The message of an event.
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_repeat_are_summed_and_others_are_not() {
        let written = Written::default();
        let sums = Arc::new(Sums::default());
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer().with_ansi(false);
        let lines = lines.with_writer(move || writer.clone());
        let filter = EnvFilter::new("info").and(Summed(Arc::clone(&sums)));
        let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter));
        tracing::subscriber::with_default(subscriber, || {
            for order in 0..37_000 {
                tracing::warn!(order, "a store did not answer");
            }
            for sale in 0..100 {
                tracing::info!(sale, "loaded");
            }
            tracing::warn!("something else");
            sums.print(Instant::now());
            sums.print(Instant::now() + PERIOD);
            tracing::warn!("something else");
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        assert_eq!(count("a store did not answer"), 11, "{text}");
        assert_eq!(count("more=36990"), 1, "{text}");
        assert_eq!((count("loaded"), count("something else")), (100, 2), "{text}");
    }
}
