//! Metrics: what a deployment counts of itself, in CloudWatch's embedded metric format.
//!
//! [`Metric`] is the table of them: name, unit, dimensions, meaning. `docs/metrics.md` shows the same
//! table, and alarms, dashboard and runbook are tested against it.
//!
//! A handler's work is wrapped once ([`Metrics::of`]). While it runs, what happens is counted where it
//! is known: at the ports ([`Counted`]), in the client of DynamoDB, where a problem becomes HTTP.
//! Afterwards a sink takes what was counted: in a deployment one record is written, or one for each sale of
//! a batch. Without a sink nothing is counted, and counting costs no allocation.
//!
//! No record holds what a caller may choose: a reason is one of the problems' types, a sale is one that
//! the catalogue has, and neither buyer nor order is ever named.

mod counted;
mod record;
mod tally;

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::Either;
use metrique_writer_core::Unit;
use metrique_writer_core::unit::NegativeScale;

use crate::runtime::config::MetricsConfig;
use engine::domain::basics::ids::SaleId;
use engine::flows::bills::BillReading;
use engine::flows::captures::Reading;
use engine::flows::reconcile::Run;
use engine::flows::room::request::Requested;
use engine::flows::tell::Telling;

pub use crate::runtime::functions::Function;
pub use counted::Counted;
pub use tally::Tally;
pub(crate) use tally::{count, refused};

/// The namespace of every metric.
pub const NAMESPACE: &str = "Onsale";

/// Declares every metric once: its name, its dimensions, its meaning.
macro_rules! metrics {
    ($($metric:ident, $dimensions:ident, $means:literal;)+) => {
        /// Something that is counted or measured.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Metric {
            $(#[doc = $means] $metric,)+
        }

        impl Metric {
            /// Every metric, in the order of the table.
            pub const ALL: [Self; [$(stringify!($metric)),+].len()] = [$(Self::$metric),+];

            /// Its row of the table.
            #[must_use]
            pub const fn row(self) -> Row {
                let (name, dimensions, means) = match self {
                    $(Self::$metric => (stringify!($metric), Dimensions::$dimensions, $means),)+
                };
                Row { name, unit: self.unit().name(), dimensions, means }
            }
        }
    };
}

metrics! {
    Admitted, Sale, "Buyers let through the gate.";
    Waiting, Sale, "Buyers told to wait at the gate: nothing is left now, but held or promised seats may come back.";
    Held, Sale, "Orders made. A repeated request makes none.";
    HeldTickets, Sale, "Tickets of the orders made.";
    Paid, Sale, "Orders that became paid, rescued ones included.";
    PaidTickets, Sale, "Tickets of the orders that became paid: sold.";
    Expired, Sale, "Orders that ended because nobody paid in time.";
    Cancelled, Sale, "Orders that their buyers gave up.";
    Available, EachSale, "Seats free times legs, when reconcile looked at the sale, once a minute.";
    Refused, Reason, "Requests answered with a problem below 500, by the problem's type.";
    ServerErrors, Reason, "Requests answered with a problem of 500 or more, by the problem's type.";
    PaymentsRefused, Reason, "Calls of payment providers answered with a problem below 500, by its type.";
    DeniedByRule, Stage, "Requests for an admission that an operator's rule denied.";
    LimitedByRule, Stage, "Requests for an admission over an operator's limit.";
    LimitedByBuyer, Stage, "Requests for an admission over the limit of a buyer.";
    LimitedByAttempts, Stage, "Requests for an admission over a buyer's attempts in the sale, or after too many orders that were given up.";
    LimitedByDevice, Stage, "Requests for an admission over the limit of a device hint.";
    LimitedByAddress, Stage, "Requests for an admission over the limit of an address.";
    Suspected, Stage, "Requests for an admission whose address, device hint or rule makes challenges harder.";
    PaymentsStarted, Stage, "Payments that were begun at a provider. A repeated request begins none.";
    PaymentsGivenUp, Stage, "Started payments that their provider did not close within the grace of their order.";
    RefundsRequested, Stage, "Requests put into the refund queue.";
    RefundsFailed, Stage, "Refunds that a provider has refused.";
    RefundsBehind, Stage, "Refunds that captures decide and that were given a turn over ten minutes away, each time that one was.";
    RefundsOutside, Stage, "Refunds made by hand at a provider while tickets of their order are valid, when one is heard of and every day until an operator decides.";
    CapturesFound, Stage, "Captures that no callback had reported, found in what providers list.";
    CapturesOfOthers, Stage, "Captures of other systems and deployments on the same account, each time that one is told or listed.";
    CapturesUnmatched, Stage, "Captures of this deployment whose order is not there, when one is heard of and every day until an operator decides.";
    CapturesNotHandedOut, Stage, "Captures by a started payment whose step was given to nobody (I14), once each.";
    CapturesKept, Stage, "Captures put into the callback queue, because a store did not answer the callback.";
    CapturesUnreadable, Stage, "Listed captures that could not be read or decided, each time that they are read; 0 where there are none.";
    BillsDiffer, Stage, "Lines of providers' bills, and bills, that differ from what is known, each time that they are read; 0 where there are none.";
    BillsBehind, Stage, "Days since the oldest bill that was not read could first be there, when read-bills ended; 0 where all are read.";
    EventsTold, Stage, "Facts that webhooks took, each time that one did.";
    EventsNotTaken, Stage, "Facts that a webhook did not take, each time that it was tried.";
    EventsWaiting, Stage, "Orders of which facts wait for a webhook to take them.";
    EventsGivenUp, Stage, "Orders of which facts were given up after three days, and shards of the log of which a webhook took nothing for so long; 0 where there are none.";
    EventsBehind, Stage, "Age of the oldest settled fact that a webhook was not told and that does not wait; 0 where there is none.";
    Transactions, Stage, "Transactions asked of DynamoDB.";
    TransactionFailures, Stage, "Transactions that, after all attempts, were neither carried out nor refused by a condition.";
    ClaimConflicts, Stage, "Orders not made because another order owns a seat that Redis took for free.";
    VersionConflicts, Stage, "Transactions that met another at work on the same item, or found that the order had moved on.";
    DriftFound, Stage, "Differences between Redis and DynamoDB that reconcile found, of what has not changed for a minute; 0 where there are none.";
    PendingPastBound, Stage, "Orders that were pending two minutes after the end of their grace when reconcile looked; 0 where there are none.";
    SalesReloaded, Stage, "Sales that Redis had lost, loaded again.";
    DrawsLate, Stage, "Waiting rooms whose sale has opened and that were not drawn when reconcile looked; 0 where there are none.";
    DrawsWithoutSecret, Stage, "Attempts to draw a waiting room whose secret has to decide, and is missing or another.";
    TurnAge, Stage, "Age of the oldest last turn of an open room in which somebody waits and seats are free, when reconcile looked; 0 where there are none.";
    Turns, Stage, "Turns of waiting rooms that were written.";
    TurnsLost, Stage, "Turns, draws and commands of waiting rooms that another writer was quicker to write.";
    TurnsFailed, Stage, "Turns, draws and commands of waiting rooms that could not be written, or whose number of joins could not be read.";
    TurnsBlind, Stage, "Turns that served nobody because what is left, or the counters, could not be read.";
    TurnsTripped, Stage, "Turns that served nobody because more than half of the reservations of five seconds failed or were late.";
    TurnsHalted, Stage, "Turns of rooms that have served nobody for two minutes, though they are open, places wait, seats are free and everything is known.";
    Joined, Sale, "Memberships of waiting rooms made. Who joins again while it stands makes none.";
    Served, Sale, "Places of waiting rooms that became due.";
    Came, Sale, "Visits begun: those whose place was due and who came.";
    AdmittedToNothing, Sale, "Reservations of visitors of a waiting room that were answered `sold-out`.";
    RoomWaiting, EachSale, "Indices given and not due, by the last turn.";
    RoomServing, EachSale, "The serving numbers of the groups together, by the last turn.";
    RoomPassed, EachSale, "Places that were due and have run out, used or not, by the last turn.";
    RoomNoShows, EachSale, "Those of them whose holder did not come, by the last turn. After a loss of Redis also those who came before it.";
    RoomDue, EachSale, "Places that are due and whose holder has not come, by the last turn.";
    RoomLooking, EachSale, "Visitors who have not asked for an admission yet, by the last turn.";
    RoomInside, EachSale, "Visitors who have asked for one and have no order, by the last turn.";
    RoomRate, EachSale, "Places a second that the room's capacity and the operator allow, by the last turn.";
    ColdStarts, Function, "Processes that did their first piece of work.";
    Latency, EachFunction, "How long a handler took, without the runtime.";
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The name in CloudWatch.
    pub name: &'static str,
    /// The unit, as CloudWatch calls it.
    pub unit: &'static str,
    /// The dimensions of its values.
    pub dimensions: Dimensions,
    /// What it counts, as a sentence.
    pub means: &'static str,
}

/// The dimensions by which CloudWatch keeps a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimensions {
    /// Nothing but the stage.
    Stage,
    /// Together, and each sale for itself.
    Sale,
    /// Each sale for itself: a sum of all says nothing.
    EachSale,
    /// Together, and each type of problem for itself.
    Reason,
    /// Together, and each function for itself.
    Function,
    /// Each function for itself: a mixture of all says nothing.
    EachFunction,
}

impl Dimensions {
    /// Every way.
    pub const ALL: [Self; 6] =
        [Self::Stage, Self::Sale, Self::EachSale, Self::Reason, Self::Function, Self::EachFunction];

    /// The dimension sets: CloudWatch keeps a metric for each.
    #[must_use]
    pub const fn sets(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Stage => &[&["Stage"]],
            Self::Sale => &[&["Stage"], &["Stage", "Sale"]],
            Self::EachSale => &[&["Stage", "Sale"]],
            Self::Reason => &[&["Stage"], &["Stage", "Reason"]],
            Self::Function => &[&["Stage"], &["Stage", "Function"]],
            Self::EachFunction => &[&["Stage", "Function"]],
        }
    }
}

impl Metric {
    const fn unit(self) -> Unit {
        if matches!(self, Self::Latency) {
            Unit::Second(NegativeScale::Milli)
        } else if matches!(self, Self::TurnAge | Self::EventsBehind) {
            Unit::Second(NegativeScale::One)
        } else {
            Unit::Count
        }
    }
}

/// Where the counts of each piece of work go.
pub trait Sink: fmt::Debug + Send + Sync {
    /// Takes what one piece of work counted, and how long it took.
    fn take(&self, tally: Tally, took: Duration);
}

/// The metrics of a process and their sink.
#[derive(Debug, Default)]
pub struct Metrics {
    sink: Option<Arc<dyn Sink>>,
    worked: AtomicBool,
}

/// Records as lines.
struct Lines {
    stage: String,
    sink: Mutex<Box<dyn Write + Send>>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lines({})", self.stage)
    }
}

impl Metrics {
    /// The metrics that a configuration asks for.
    #[must_use]
    pub fn new(config: &MetricsConfig) -> Self {
        match config {
            MetricsConfig::Off => Self::default(),
            MetricsConfig::Emf { stage, .. } => Self::to(stage, io::stdout()),
        }
    }

    /// Counts that `sink` takes.
    #[must_use]
    pub fn with_sink(sink: Arc<dyn Sink>) -> Self {
        Self { sink: Some(sink), worked: AtomicBool::new(false) }
    }

    /// Records of a stage, written to `sink`, each a line in one write.
    pub fn to(stage: &str, sink: impl Write + Send + 'static) -> Self {
        let lines = Lines { stage: stage.to_owned(), sink: Mutex::new(Box::new(sink)) };
        Self::with_sink(Arc::new(lines))
    }

    /// Does a piece of a function's work, counts meanwhile, and writes what was counted.
    pub fn of<F: Future>(&self, function: Function, work: F) -> impl Future<Output = F::Output> {
        match self.sink.as_deref() {
            None => Either::Left(work),
            Some(sink) => Either::Right(self.measured(sink, function, work)),
        }
    }

    async fn measured<F: Future>(&self, sink: &dyn Sink, function: Function, work: F) -> F::Output {
        let since = Instant::now();
        let is_first = !self.worked.swap(true, Ordering::Relaxed);
        // Boxed, so that whoever waits for this has room for it once.
        let (output, mut tally) = tally::during(function, Box::pin(work)).await;
        if is_first {
            tally.add(None, Metric::ColdStarts, 1);
        }
        sink.take(tally, since.elapsed());
        output
    }
}

impl Sink for Lines {
    /// Writes records. A sink that fails costs the metrics, never the work.
    fn take(&self, tally: Tally, took: Duration) {
        let records = tally.records(&self.stage, took);
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            let written = record.line().and_then(|line| sink.write_all(&line));
            if let Err(error) = written.and_then(|()| sink.flush()) {
                tracing::warn!(%error, "metrics are lost");
            }
        }
    }
}

/// Counts what a run of reconcile found.
pub fn reconciled(run: &Run) {
    count(None, Metric::DriftFound, run.drift);
    count(None, Metric::PendingPastBound, run.past_bound);
    for (sale, free) in &run.available {
        count(Some(sale), Metric::Available, *free);
    }
    if run.report.loaded > 0 {
        reloaded(u64::from(run.report.loaded));
    }
}

/// Counts what a look at every waiting room found.
pub fn rooms_seen(found: &Requested) {
    count(None, Metric::DrawsLate, found.late.into());
    count(None, Metric::TurnAge, found.oldest_turn_ms / 1_000);
}

/// Counts a reservation of somebody who was let in with a place, and for whom nothing was left.
pub fn admitted_to_nothing(sale: &SaleId) {
    count(Some(sale), Metric::AdmittedToNothing, 1);
}

/// Counts an attempt to draw a waiting room without its secret.
pub fn draw_without_secret() {
    count(None, Metric::DrawsWithoutSecret, 1);
}

/// Counts a capture of another system on the same account, of which a provider has told.
pub fn capture_of_others() {
    count(None, Metric::CapturesOfOthers, 1);
}

/// Counts what a reading of captures found.
pub fn captures_read(reading: &Reading) {
    count(None, Metric::CapturesFound, reading.decided.into());
    count(None, Metric::CapturesUnreadable, reading.unreadable.into());
    count(None, Metric::CapturesOfOthers, reading.others.into());
}

/// Counts what reading bills came to.
pub fn bills_read(reading: &BillReading) {
    count(None, Metric::BillsDiffer, reading.differences.into());
    count(None, Metric::BillsBehind, reading.behind_days.into());
    count(None, Metric::CapturesFound, reading.decided.into());
}

/// Counts what telling webhooks came to.
pub fn webhooks_told(did: &Telling) {
    count(None, Metric::EventsTold, did.told);
    count(None, Metric::EventsNotTaken, did.failed);
    count(None, Metric::EventsWaiting, did.waiting);
    count(None, Metric::EventsGivenUp, did.given_up);
    count(None, Metric::EventsBehind, did.behind_seconds.max(0).unsigned_abs());
}

/// Counts sales that Redis had lost and that were loaded again.
pub fn reloaded(sales: u64) {
    count(None, Metric::SalesReloaded, sales);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_metric_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = Metric::ALL.iter().map(|metric| metric.row().name).collect();
        assert_eq!(names.len(), Metric::ALL.len());
        for metric in Metric::ALL {
            assert_eq!(metric.row().name, format!("{metric:?}"));
        }
    }

    /// The quotas of the format's specification, whatever a record holds.
    #[test]
    fn a_record_fits_the_format() {
        assert!(Metric::ALL.len() <= 100, "metrics of a directive");
        for by in Dimensions::ALL {
            assert!(by.sets().iter().all(|set| set.len() <= 30), "dimensions of a set");
        }
    }
}
