//! What chaos came to: a row a fault, as a table for people and as JSON for programs.

use std::collections::BTreeMap;
use std::fmt;

use comfy_table::{CellAlignment, Table};
use fake_limits::Throttled;
use serde::Serialize;

use super::rig::{Profile, Setup};
use super::rooms::{RoomsReport, Step};
use super::round::Round;
use reporting::{self, count, grouped};

/// The rounds on one rig.
#[derive(Debug, Clone, Serialize)]
pub struct Season {
    pub profile: Profile,
    /// True if its sale kept its tiers apart.
    pub tiers_apart: bool,
    pub rounds: Vec<Round>,
    /// Orders that were acknowledged, all in all.
    pub acknowledged: u64,
    /// Orders that an operator refunded.
    pub refunded: usize,
    /// Tickets that a buyer paid from a wallet and exchanged.
    pub exchanged: usize,
    /// Facts that its webhook heard.
    pub told: usize,
    pub rooms: RoomsReport,
    /// What is not as it must be, besides the rounds' own: of the crowd, of the engine, and of the
    /// stores once everybody had left.
    pub violations: Vec<String>,
    /// What was refused for the limits of the services.
    pub throttled: Throttled,
}

impl Season {
    /// Everything that is not as it must be.
    pub fn violations(&self) -> impl Iterator<Item = &String> {
        self.rounds.iter().flat_map(|round| &round.violations).chain(&self.violations)
    }
}

/// One fault, over all its rounds: sums of what is counted, and the median and the most of times.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The name of the fault.
    pub fault: &'static str,
    /// The kind of Redis.
    pub profile: Profile,
    /// True if the sale kept its tiers apart.
    pub tiers_apart: bool,
    /// The number of rounds.
    pub times: usize,
    /// Duration of the fault, in milliseconds.
    pub lasted_ms: Spread,
    /// What buyers were answered that was neither yes nor no, by the problem's type.
    pub errors: BTreeMap<String, u64>,
    /// The pause in sales.
    pub pause_ms: Spread,
    /// From the end of the fault to the next order.
    pub selling_ms: Spread,
    /// From the rest of the crowd to the clean audit.
    pub settled_ms: Spread,
    /// Orders that Redis had forgotten and has again.
    pub restored: u64,
    /// Orders that were paid after their deadline and have their seats.
    pub rescued: u64,
    pub expired: u64,
    /// The longest that an order was pending after its deadline.
    pub overrun_ms: u64,
    /// Other effects of the fault, each with its count.
    pub notes: BTreeMap<String, u64>,
}

/// The median and the most of some times, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    pub median: u64,
    pub most: u64,
}

impl Spread {
    fn from_times(times: impl Iterator<Item = u64>) -> Self {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        Self { median, most: times.last().copied().unwrap_or_default() }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: u64| ms as f64 / 1000.0;
        write!(f, "{:.1} / {:.1}", seconds(self.median), seconds(self.most))
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The seed that repeats the moments, the draws and the crowd.
    pub seed: u64,
    /// Number of buyers at once.
    pub buyers: usize,
    /// Time between two runs of reconcile, in seconds.
    pub reconcile_seconds: u32,
    /// Seconds after which unfinished messages were given out again.
    pub redelivery_seconds: u64,
    /// Time that the buyers had to pay, in seconds.
    pub pay_window_seconds: u32,
    /// True if nothing is violated.
    pub clean: bool,
    pub rounds: usize,
    /// Number of orders that were acknowledged.
    pub acknowledged: u64,
    pub faults: Vec<Row>,
    /// Everything that is not as it must be.
    pub violations: Vec<String>,
    /// What was refused for the limits of the services, on all rigs.
    pub throttled: Throttled,
    /// Rig by rig, round by round.
    pub seasons: Vec<Season>,
}

impl Report {
    pub(super) fn new(setup: &Setup, buyers: usize, seasons: Vec<Season>) -> Self {
        let none = Throttled { limits: setup.limits, ..Throttled::default() };
        let throttled = seasons.iter().fold(none, |sum, season| sum.and(&season.throttled));
        let violations: Vec<String> =
            seasons.iter().flat_map(Season::violations).cloned().collect();
        let mut by_fault: BTreeMap<(Profile, bool, &'static str), Vec<&Round>> = BTreeMap::new();
        for season in &seasons {
            for round in &season.rounds {
                let key = (season.profile, season.tiers_apart, round.fault);
                by_fault.entry(key).or_default().push(round);
            }
        }
        let faults = by_fault.into_iter().map(|((profile, tiers_apart, fault), rounds)| {
            Row::from_rounds(profile, tiers_apart, fault, &rounds)
        });
        Self {
            seed: setup.seed,
            buyers,
            reconcile_seconds: setup.reconcile_seconds,
            redelivery_seconds: setup.redelivery_seconds,
            pay_window_seconds: setup.pay_window_seconds,
            clean: violations.is_empty(),
            rounds: seasons.iter().map(|season| season.rounds.len()).sum(),
            acknowledged: seasons.iter().map(|season| season.acknowledged).sum(),
            faults: faults.collect(),
            violations,
            throttled,
            seasons,
        }
    }

    fn table(&self) -> Table {
        let mut table = reporting::table([
            "fault",
            "redis",
            "tiers",
            "times",
            "lasted s",
            "errors seen",
            "pause in sales s",
            "selling again s",
            "stores agree s",
            "restored",
            "rescued",
            "expired",
            "overrun s",
        ]);
        for row in &self.faults {
            let errors = counts(&row.errors);
            table.add_row([
                row.fault.to_owned(),
                match row.profile {
                    Profile::Single => "single".to_owned(),
                    Profile::Cluster => "cluster".to_owned(),
                },
                if row.tiers_apart { "apart" } else { "together" }.to_owned(),
                row.times.to_string(),
                row.lasted_ms.to_string(),
                if errors.is_empty() { "none".to_owned() } else { errors },
                row.pause_ms.to_string(),
                row.selling_ms.to_string(),
                row.settled_ms.to_string(),
                grouped(row.restored),
                grouped(row.rescued),
                grouped(row.expired),
                format!("{:.1}", row.overrun_ms as f64 / 1000.0),
            ]);
        }
        for index in [3, 4, 6, 7, 8, 9, 10, 11, 12] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

impl Row {
    fn from_rounds(
        profile: Profile,
        tiers_apart: bool,
        fault: &'static str,
        rounds: &[&Round],
    ) -> Self {
        let spread =
            |of: fn(&Round) -> u64| Spread::from_times(rounds.iter().map(|round| of(round)));
        let sum = |of: fn(&Round) -> u64| rounds.iter().map(|round| of(round)).sum();
        let add = |of: fn(&Round) -> &BTreeMap<String, u64>| {
            let mut all = BTreeMap::new();
            for (what, count) in rounds.iter().flat_map(|round| of(round)) {
                *all.entry(what.clone()).or_default() += count;
            }
            all
        };
        Self {
            fault,
            profile,
            tiers_apart,
            times: rounds.len(),
            lasted_ms: spread(|round| round.lasted_ms),
            errors: add(|round| &round.errors),
            pause_ms: spread(|round| round.pause_ms),
            selling_ms: spread(|round| round.selling_ms),
            settled_ms: spread(|round| round.settled_ms),
            restored: sum(|round| round.restored),
            rescued: sum(|round| round.rescued),
            expired: sum(|round| round.expired),
            overrun_ms: rounds.iter().map(|round| round.overrun_ms).max().unwrap_or_default(),
            notes: add(|round| &round.notes),
        }
    }
}

/// What was counted, in words.
fn counts(of: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> =
        of.iter().map(|(what, count)| format!("{} {what}", grouped(*count))).collect();
    words.join(", ")
}

impl fmt::Display for RoomsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |(step, people): (&Step, &u64)| {
            let what = match step {
                Step::Join => "joining",
                Step::Draw => "waiting for the draw",
                Step::Turn => "waiting for the turn",
                Step::Visit => "in a visit",
                Step::Done => "done",
            };
            format!("{} {what}", grouped(*people))
        };
        let struck: Vec<String> = self.struck.iter().map(words).collect();
        let (rooms, ordered) = (grouped(count(self.rooms)), grouped(count(self.ordered)));
        write!(f, "{rooms} waiting rooms: {ordered} people ordered; when something broke: ")?;
        write!(f, "{}", struck.join(", "))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Chaos with seed {}: {} buyers at once, {} s to pay, reconcile every {} s, messages \
             again after {} s",
            self.seed,
            self.buyers,
            self.pay_window_seconds,
            self.reconcile_seconds,
            self.redelivery_seconds
        )?;
        writeln!(f, "{}", self.table())?;
        for row in self.faults.iter().filter(|row| !row.notes.is_empty()) {
            writeln!(f, "{}: {}", row.fault, counts(&row.notes))?;
        }
        for Season { rooms, refunded, exchanged, told, .. } in &self.seasons {
            writeln!(f, "{rooms}")?;
            let (refunded, told) = (grouped(count(*refunded)), grouped(count(*told)));
            writeln!(
                f,
                "{refunded} orders refunded by an operator; {exchanged} tickets paid from a wallet and exchanged; {told} facts told to a webhook"
            )?;
        }
        writeln!(f, "{}", self.throttled)?;
        for violation in &self.violations {
            writeln!(f, "VIOLATION: {violation}")?;
        }
        write!(
            f,
            "{} faults, {} orders acknowledged, {}",
            grouped(count(self.rounds)),
            grouped(self.acknowledged),
            match self.violations.len() {
                0 => "clean after each.".to_owned(),
                1 => "1 violation.".to_owned(),
                many => format!("{} violations.", grouped(count(many))),
            }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_most_are_those_of_the_times() {
        assert_eq!(
            Spread::from_times([900, 100, 300].into_iter()),
            Spread { median: 300, most: 900 }
        );
        assert_eq!(Spread::from_times(std::iter::empty()), Spread::default());
        assert_eq!(Spread { median: 340, most: 12_050 }.to_string(), "0.3 / 12.1");
    }
}
