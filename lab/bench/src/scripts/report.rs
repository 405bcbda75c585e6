//! The report: one row a script and what it was asked for.

use comfy_table::CellAlignment;
use serde::Serialize;

use super::rig::{Burst, Rig};
use super::{Error, Load, Options, Part, Throughput};

/// What everything else is compared with.
pub const BEST_OF_TWO: &str = "best 2, together required";
/// A hold of two neighbours that walks over all that is taken, as after a return at the front.
pub const FROM_THE_FRONT: &str = "best 2, searched from the front";

/// What the calls of some rounds have cost the server.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Figure {
    /// Number of calls in all rounds.
    pub calls: u64,
    /// Those of them that did what was asked; the others were refused.
    pub done: usize,
    /// Microseconds a call, in the best round.
    pub best_us: f64,
    /// Microseconds a call, the median of the rounds.
    pub median_us: f64,
    /// Commands that a call runs.
    pub commands: f64,
    /// Microseconds a call spends in them, in the best round; the others are Lua's.
    pub commands_us: f64,
}

impl Figure {
    /// The figure of some rounds.
    pub(super) fn from_rounds(rounds: &[Burst]) -> Self {
        let mut scripts_us = Vec::new();
        let mut inside_us = Vec::new();
        let mut figure = Self::default();
        let mut commands = 0;
        for round in rounds {
            let (scripts, inside) = (round.counted.scripts(), round.counted.inside());
            if scripts.calls == 0 {
                continue;
            }
            scripts_us.push(scripts.micros as f64 / scripts.calls as f64);
            inside_us.push(inside.micros as f64 / scripts.calls as f64);
            figure.calls += scripts.calls;
            figure.done += round.done;
            commands += inside.calls;
        }
        if figure.calls > 0 {
            figure.commands = commands as f64 / figure.calls as f64;
            scripts_us.sort_by(f64::total_cmp);
            inside_us.sort_by(f64::total_cmp);
            figure.best_us = scripts_us[0];
            figure.median_us = scripts_us[scripts_us.len() / 2];
            figure.commands_us = inside_us[0];
        }
        figure
    }
}

/// One script in one state.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Name of the hall.
    pub hall: String,
    /// Seats of the tier.
    pub seats: u32,
    /// Tiers of the sale.
    pub tiers: u32,
    pub legs: u16,
    /// Share of the tier's seat-legs that is taken, in per cent.
    pub filled_percent: f64,
    /// The script, or `baseline`.
    pub script: &'static str,
    /// What is asked of it.
    pub asks: &'static str,
    #[serde(flatten)]
    pub figure: Figure,
    /// Multiple of the cost of the script that does nothing.
    pub times_noop: Option<f64>,
    /// Of a baseline: how many times the hold of the best two in the same state.
    pub times_hold: Option<f64>,
}

/// Everything that was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The server and its version.
    pub server: String,
    /// Number of processors of the machine.
    pub processors: usize,
    /// The seed of the crowd.
    pub seed: u64,
    pub rounds: usize,
    /// The script that does nothing.
    pub noop: Figure,
    /// Each script in each state.
    pub rows: Vec<Row>,
    /// Hold and nothing, as fast as they go, under each load.
    pub throughput: Vec<Throughput>,
    /// A hold up to each of its parts.
    pub parts: Vec<Part>,
}

impl Report {
    pub(super) async fn new(rig: &mut Rig, options: &Options) -> Result<Self, Error> {
        Ok(Self {
            server: rig.version().await?,
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            seed: options.seed,
            rounds: options.rounds,
            noop: Figure::default(),
            rows: Vec::new(),
            throughput: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// Fills in the ratios.
    pub(super) fn compare(&mut self) {
        let holds: Vec<Row> =
            self.rows.iter().filter(|row| row.asks == BEST_OF_TWO).cloned().collect();
        for row in &mut self.rows {
            let of = |us: f64| (us > 0.0).then(|| row.figure.best_us / us);
            row.times_noop = of(self.noop.best_us);
            let is_beside =
                |hold: &&Row| hold.hall == row.hall && hold.filled_percent == row.filled_percent;
            if row.script == "baseline" {
                let hold = holds.iter().find(is_beside);
                row.times_hold = hold.and_then(|hold| of(hold.figure.best_us));
            }
        }
    }

    /// The report as one JSON document.
    #[must_use]
    pub fn json(&self) -> String {
        reporting::json(self)
    }

    /// The report as tables.
    #[must_use]
    pub fn tables(&self) -> String {
        let mut table = reporting::table([
            "where",
            "filled %",
            "script",
            "asked for",
            "done %",
            "µs best",
            "µs median",
            "× no-op",
            "× hold",
            "commands",
            "µs in them",
        ]);
        for row in &self.rows {
            let ratio =
                |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.1}"));
            let figure = &row.figure;
            table.add_row([
                row.hall.clone(),
                format!("{:.0}", row.filled_percent),
                row.script.to_owned(),
                row.asks.to_owned(),
                format!("{:.0}", figure.done as f64 * 100.0 / figure.calls.max(1) as f64),
                format!("{:.1}", figure.best_us),
                format!("{:.1}", figure.median_us),
                ratio(row.times_noop),
                ratio(row.times_hold),
                format!("{:.1}", figure.commands),
                format!("{:.1}", figure.commands_us),
            ]);
        }
        for index in [1, 4, 5, 6, 7, 8, 9, 10] {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let Self { server, processors, seed, rounds, noop, .. } = self;
        let throughput: String =
            self.throughput.iter().map(|measured| format!("\n{measured}")).collect();
        let tables = if self.parts.is_empty() { table.to_string() } else { self.table_of_parts() };
        format!(
            "{server} on {processors} processors, seed {seed}, {rounds} rounds. A script that does \
             nothing: {:.2} µs best, {:.2} µs median.\n{tables}{throughput}",
            noop.best_us, noop.median_us,
        )
    }

    fn table_of_parts(&self) -> String {
        let mut table = reporting::table([
            "where",
            "up to this part",
            "µs best",
            "more than before",
            "µs median",
            "commands",
            "of a no-op's calls a second",
        ]);
        let mut before: Option<&Part> = None;
        for part in &self.parts {
            let earlier = before.filter(|before| before.hall == part.hall);
            let earlier_us = earlier.map_or(0.0, |before| before.figure.best_us);
            table.add_row([
                part.hall.clone(),
                part.up_to.to_owned(),
                format!("{:.1}", part.figure.best_us),
                format!("{:.1}", part.figure.best_us - earlier_us),
                format!("{:.1}", part.figure.median_us),
                format!("{:.1}", part.figure.commands),
                part.of_noop.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            ]);
            before = Some(part);
        }
        for index in 2..=6 {
            if let Some(column) = table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.to_string()
    }
}

impl std::fmt::Display for Throughput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Load { connections, depth } = self.load;
        write!(
            f,
            "Round trips a second over {connections} connections, {depth} requests under way on \
             each: no-op {:.0}, hold {:.0}, ratio {:.2} (median of {} rounds in turn; the server's \
             processor time a call: no-op {:.1} µs, hold {:.1} µs).",
            self.noop_per_second,
            self.hold_per_second,
            self.ratio,
            self.rounds,
            self.noop_cpu_us,
            self.hold_cpu_us,
        )
    }
}
