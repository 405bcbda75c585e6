//! The same replay with each way of letting people in, as a table: what reaches the sale, who gets what, and
//! whether what was promised was kept.

use comfy_table::Table;
use serde::Serialize;

use super::admission::Admission;
use super::{Error, Options, Outcome};
use crate::people::promises::PromiseFigures;

/// Goals of the figures that have one.
mod goals {
    /// Most commands at the slot of the sale, for each ticket.
    pub const SLOT_PER_TICKET: f64 = 2.0;
    /// Most of the ratio of a window.
    pub const WINDOW_RATIO: f64 = 1.02;
    /// Most of the median error of a promised wait.
    pub const MEDIAN_ERROR: f64 = 0.2;
    /// Least share of promised waits that are as promised.
    pub const WITHIN: f64 = 0.9;
    /// Widest range of a promised wait.
    pub const RANGE: f64 = 2.0;
    /// Most who are admitted to nothing, of those who are admitted.
    pub const TO_NOTHING: f64 = 0.01;
}

/// One way of letting people in, and what came of it.
#[derive(Debug, Serialize)]
pub struct Run {
    pub admission: Admission,
    pub replay: Outcome,
}

/// A replay with each way of letting people in.
#[derive(Debug, Serialize)]
pub struct Comparison {
    pub runs: Vec<Run>,
}

/// Replays an on-sale with each way of letting people in, one after the other, each on an engine of its own.
///
/// # Errors
/// As [`super::run`].
pub async fn compare(options: &Options) -> Result<Comparison, Error> {
    let mut runs = Vec::new();
    for admission in Admission::ALL {
        let mut options = options.clone();
        options.admission.admission = admission;
        // Boxed, as it is large: whoever waits for this has room for it once.
        runs.push(Run { admission, replay: Box::pin(super::run(&options)).await? });
    }
    Ok(Comparison { runs })
}

/// A row of the table: the figure of a run in words, whether it meets its goal if it has one, and the goal.
struct Row {
    name: &'static str,
    goal: String,
    figure: fn(&Outcome) -> Option<Figure>,
}

/// A figure, and whether it meets its goal.
struct Figure {
    shown: String,
    meets: bool,
}

fn plain(shown: String) -> Option<Figure> {
    Some(Figure { shown, meets: true })
}

fn count(count: u64) -> Option<Figure> {
    plain(reporting::grouped(count))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn is(holds: bool) -> Option<Figure> {
    Some(Figure { shown: if holds { "yes" } else { "no" }.to_owned(), meets: holds })
}

/// The waits of a run, if any was promised.
fn waits(outcome: &Outcome) -> Option<PromiseFigures> {
    outcome.load_test.fairness.as_ref()?.waits
}

impl Outcome {
    /// Who were admitted to nothing, of those who were admitted.
    #[must_use]
    pub fn share_to_nothing(&self) -> Option<f64> {
        let fairness = self.load_test.fairness.as_ref()?;
        Some(fairness.admitted_to_nothing as f64 / fairness.admitted.max(1) as f64)
    }

    /// The window whose bots were served most in parts of their share of its places, by that and its standard
    /// error; `None` if no window of bots was served.
    #[must_use]
    pub fn worst_window(&self) -> Option<(f64, f64)> {
        let windows = &self.load_test.fairness.as_ref()?.windows;
        let of_bots = windows.iter().filter(|window| window.bots > 0);
        let ratios = of_bots.map(|window| (window.ratio, window.standard_error));
        ratios.max_by(|one, other| one.0.total_cmp(&other.0))
    }
}

/// The figures of runs, in order.
fn rows() -> Vec<Row> {
    sold().into_iter().chain(served()).chain(promised()).collect()
}

fn row(name: &'static str, goal: String, figure: fn(&Outcome) -> Option<Figure>) -> Row {
    Row { name, goal, figure }
}

/// A figure without a goal.
fn free(name: &'static str, figure: fn(&Outcome) -> Option<Figure>) -> Row {
    row(name, String::new(), figure)
}

/// What was sold, and what reached the sale.
fn sold() -> Vec<Row> {
    vec![
        row("sold out", "yes".to_owned(), |run| is(run.load_test.sold_out)),
        row("audit clean", "yes".to_owned(), |run| is(run.audit.clean)),
        row("answers that must not be given", "0".to_owned(), |run| {
            let anomalies = run.load_test.anomaly_count;
            Some(Figure { shown: reporting::grouped(anomalies), meets: anomalies == 0 })
        }),
        free("people and bots", |run| count(run.load_test.buyers)),
        free("tickets", |run| count(run.load_test.tickets)),
        free("seconds until sold", |run| plain(format!("{:.0}", run.load_test.sold_out_seconds?))),
        free("requests", |run| count(run.load_test.requests)),
        free("commands at the sale's slot", |run| count(run.slot_commands)),
        row("… for each ticket", format!("≤ {}", goals::SLOT_PER_TICKET), |run| {
            let each = run.slot_commands as f64 / f64::from(run.tickets.max(1));
            let meets = each <= goals::SLOT_PER_TICKET;
            Some(Figure { shown: format!("{each:.2}"), meets })
        }),
    ]
}

fn served() -> Vec<Row> {
    vec![
        free("bots of accounts", |run| {
            plain(percent(run.load_test.fairness.as_ref()?.bots_of_accounts))
        }),
        free("bots of joined", |run| {
            plain(percent(run.load_test.fairness.as_ref()?.bots_of_joined?))
        }),
        row(
            "bots of places served, of their share",
            format!("≤ {}", goals::WINDOW_RATIO),
            |run| {
                let (ratio, error) = run.worst_window()?;
                let meets = ratio <= goals::WINDOW_RATIO;
                Some(Figure { shown: format!("{ratio:.3} ± {error:.3}"), meets })
            },
        ),
        free("bots of admitted", |run| {
            plain(percent(run.load_test.fairness.as_ref()?.bots_of_admitted))
        }),
        free("bots of tickets", |run| {
            plain(percent(run.load_test.fairness.as_ref()?.bots_of_tickets))
        }),
        free("farms of accounts, of tickets", |run| {
            let fairness = run.load_test.fairness.as_ref()?;
            let shares = [fairness.farms_of_accounts, fairness.farms_of_tickets];
            plain(shares.map(percent).join(", "))
        }),
        free("places served", |run| count(run.load_test.fairness.as_ref()?.places_served?)),
    ]
}

/// What was promised, and whether whoever was let in found anything.
fn promised() -> Vec<Row> {
    vec![
        free("promised waits", |run| count(waits(run)?.count)),
        free("waits, of looks", |run| plain(percent(waits(run)?.of_looks))),
        row("median error", format!("≤ {}", percent(goals::MEDIAN_ERROR)), |run| {
            let error = waits(run)?.median_error;
            Some(Figure { shown: percent(error), meets: error <= goals::MEDIAN_ERROR })
        }),
        row("as promised", format!("≥ {}", percent(goals::WITHIN)), |run| {
            let within = waits(run)?.within;
            Some(Figure { shown: percent(within), meets: within >= goals::WITHIN })
        }),
        row("widest range", format!("≤ {} ×", goals::RANGE), |run| {
            let widest = waits(run)?.widest_range;
            Some(Figure { shown: format!("{widest:.2} ×"), meets: widest <= goals::RANGE })
        }),
        row(
            "admitted to nothing, of admitted",
            format!("≤ {}", percent(goals::TO_NOTHING)),
            |run| {
                let share = run.share_to_nothing()?;
                let times = run.load_test.fairness.as_ref()?.admitted_to_nothing;
                let meets = share <= goals::TO_NOTHING;
                Some(Figure { shown: format!("{times}, {}", percent(share)), meets })
            },
        ),
    ]
}

/// The table of some replays: a column for each, a figure that misses its goal marked by an exclamation mark.
#[must_use]
pub fn table(runs: &[(Admission, &Outcome)]) -> Table {
    let names = runs.iter().map(|(admission, _)| admission.name());
    let header: Vec<&str> = ["", "goal"].into_iter().chain(names).collect();
    let mut table = reporting::table(header);
    for Row { name, goal, figure } in rows() {
        let shown = runs.iter().map(|(_, outcome)| match figure(outcome) {
            None => "–".to_owned(),
            Some(Figure { shown, meets: true }) => shown,
            Some(Figure { shown, meets: false }) => format!("{shown} !"),
        });
        table.add_row([name.to_owned(), goal].into_iter().chain(shown));
    }
    table
}

impl Comparison {
    /// True if each was sold out, nothing impossible was met and no invariant is broken.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.runs.iter().all(|run| run.replay.is_good())
    }

    /// The table of all.
    #[must_use]
    pub fn table(&self) -> Table {
        let runs: Vec<(Admission, &Outcome)> =
            self.runs.iter().map(|run| (run.admission, &run.replay)).collect();
        table(&runs)
    }
}
