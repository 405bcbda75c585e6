//! What is shown while the crowd runs.

use std::io::{self, Write as _};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::series::Sample;
use super::session::LoadTest;

/// A bar of something that is counted.
const COUNTED: &str = "{msg:>14} {bar:40} {pos}/{len}";

/// The bars, and a line about the last second.
#[derive(Debug)]
pub struct Progress {
    people: ProgressBar,
    tickets: ProgressBar,
    second: ProgressBar,
    // Draws the bars; they stay where they are when it is dropped.
    all: MultiProgress,
}

impl Progress {
    /// Bars for the numbers of people and tickets, drawn on standard error if `shown`.
    #[must_use]
    pub fn new(shown: bool, people: u64, tickets: u64) -> Self {
        let target =
            if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let all = MultiProgress::with_draw_target(target);
        let bar = |what: &'static str, length| {
            let style = ProgressStyle::with_template(COUNTED);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            all.add(ProgressBar::new(length).with_style(style).with_message(what))
        };
        let (people, tickets) = (bar("people", people), bar("tickets sold", tickets));
        let style = ProgressStyle::with_template("{msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let second = all.add(ProgressBar::new_spinner().with_style(style));
        Self { people, tickets, second, all }
    }

    /// Shows the progress so far.
    pub fn move_on(&self, test: &LoadTest) {
        self.people.set_position(test.tally.buyers.get());
        self.tickets.set_position(test.tally.tickets.get());
    }

    /// Prints the counts of the last second.
    pub fn say(&self, sample: &Sample) {
        let refused: u64 = sample.refused.values().sum();
        self.second.set_message(format!(
            "{:>14} {} answers/s, {} orders/s, {} refused/s; {} under way, {} waiting; p50 {:.0} ms, p99 {:.0} ms \
             from due; generator lag p99 {:.0} ms",
            format!("{:.0} s", sample.at_seconds),
            sample.answered,
            sample.orders,
            refused,
            sample.under_way,
            sample.waiting,
            sample.response_p50_ms,
            sample.response_p99_ms,
            sample.lag_p99_ms,
        ));
    }

    /// Prints a line that stays, whether bars are drawn or not.
    pub fn note(&self, line: &str) {
        let is_drawn = !self.people.is_hidden();
        let said = if is_drawn { self.all.println(line) } else { writeln!(io::stderr(), "{line}") };
        // Whoever started us may not listen.
        let _unheard = said;
    }

    /// Nothing more is shown.
    pub fn finish(&self) {
        self.people.abandon();
        self.tickets.abandon();
        self.second.finish_and_clear();
    }
}
