//! The tally: the counts of one handler's work.
//!
//! The tally belongs to the task: a port that counts needs no argument for it, a process that serves many
//! handlers at once keeps their tallies apart, and outside a handler nothing is counted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use metrique_writer_core::Observation;

use super::record::Record;
use super::{Function, Metric};
use crate::http::problem::Kind;
use engine::domain::basics::ids::SaleId;

tokio::task_local! {
    static TALLY: RefCell<Tally>;
}

/// The counts of one handler's work.
#[derive(Debug)]
pub struct Tally {
    function: Function,
    counts: BTreeMap<Option<SaleId>, BTreeMap<Metric, u64>>,
    reason: Option<Kind>,
}

/// Does some work with a tally of its own, which comes back with its output.
pub(super) async fn during<F: Future>(function: Function, work: Pin<Box<F>>) -> (F::Output, Tally) {
    let empty = || Tally { function, counts: BTreeMap::new(), reason: None };
    let counted = async {
        let output = work.await;
        (output, TALLY.with(|tally| tally.replace(empty())))
    };
    TALLY.scope(RefCell::new(empty()), counted).await
}

/// Counts `number` more, of a sale that exists or of none. Nothing is counted outside a handler that is
/// measured.
pub(crate) fn count(sale: Option<&SaleId>, metric: Metric, number: u64) {
    // Outside a handler there is no tally.
    let _ = TALLY.try_with(|tally| tally.borrow_mut().add(sale, metric, number));
}

/// Counts a request that is answered with a problem.
pub(crate) fn refused(kind: Kind) {
    let _ = TALLY.try_with(|tally| tally.borrow_mut().refused(kind));
}

impl Tally {
    /// The function that worked.
    #[must_use]
    pub const fn function(&self) -> Function {
        self.function
    }

    /// The type of the problem that the request was answered with.
    #[must_use]
    pub const fn reason(&self) -> Option<Kind> {
        self.reason
    }

    /// What was counted of each sale; what belongs to no sale is not among it.
    pub fn of_sales(&self) -> impl Iterator<Item = (&SaleId, Metric, u64)> {
        let of_sale = |(sale, counts)| Some((Option::as_ref(sale)?, counts));
        let each = self.counts.iter().filter_map(of_sale);
        each.flat_map(|(sale, counts): (_, &BTreeMap<Metric, u64>)| {
            counts.iter().map(move |(metric, number)| (sale, *metric, *number))
        })
    }

    pub(super) fn add(&mut self, sale: Option<&SaleId>, metric: Metric, number: u64) {
        let of_sale = self.counts.entry(sale.cloned()).or_default();
        *of_sale.entry(metric).or_default() += number;
    }

    fn refused(&mut self, kind: Kind) {
        self.reason = Some(kind);
        if kind.status().is_server_error() {
            return self.add(None, Metric::ServerErrors, 1);
        }
        self.add(None, Metric::Refused, 1);
        if matches!(self.function, Function::PayCallback | Function::TakeCallback) {
            self.add(None, Metric::PaymentsRefused, 1);
        }
    }

    /// One record; several if it was about several sales. What is of no sale is in the first.
    pub(super) fn records(mut self, stage: &str, took: Duration) -> Vec<Record<'_>> {
        let mut values: Vec<(Metric, Observation)> =
            vec![(Metric::Latency, Observation::Floating(took.as_secs_f64() * 1000.0))];
        let observed = |counts: BTreeMap<Metric, u64>| {
            counts.into_iter().map(|(metric, number)| (metric, Observation::Unsigned(number)))
        };
        values.extend(observed(self.counts.remove(&None).unwrap_or_default()));
        let mut record = Record {
            stage,
            function: self.function.as_str(),
            sale: None,
            reason: self.reason.map(Kind::slug),
            values,
        };
        let mut records = Vec::with_capacity(self.counts.len().max(1));
        for (sale, counts) in self.counts {
            record.sale = sale;
            record.values.extend(observed(counts));
            let next = Record { sale: None, reason: None, values: Vec::new(), ..record };
            records.push(std::mem::replace(&mut record, next));
        }
        if records.is_empty() {
            records.push(record);
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_problem_is_counted_as_an_error_of_the_server_or_a_refusal() {
        for kind in Kind::ALL {
            for function in [Function::Reserve, Function::PayCallback, Function::TakeCallback] {
                let work = Box::pin(async move { refused(kind) });
                let ((), tally) = during(function, work).await;
                let is_ours = kind.status().is_server_error();
                let mut expected =
                    vec![if is_ours { Metric::ServerErrors } else { Metric::Refused }];
                expected.extend(
                    (function != Function::Reserve && !is_ours).then_some(Metric::PaymentsRefused),
                );
                expected.sort();
                let counted: Vec<Metric> = tally.counts[&None].keys().copied().collect();
                assert_eq!(counted, expected, "{kind:?}");
                let records = tally.records("s", Duration::ZERO);
                assert_eq!(records.len(), 1);
                assert_eq!(records[0].reason, Some(kind.slug()));
            }
        }
    }

    #[tokio::test]
    async fn tasks_side_by_side_are_counted_apart() {
        let both = || {
            Box::pin(async {
                count(None, Metric::Transactions, 1);
                tokio::task::yield_now().await;
                count(None, Metric::Transactions, 1);
            })
        };
        let ((_, one), (_, other)) =
            tokio::join!(during(Function::Reserve, both()), during(Function::Cancel, both()));
        for tally in [one, other] {
            assert_eq!(tally.counts[&None][&Metric::Transactions], 2);
        }
        count(None, Metric::Transactions, 1);
    }
}
