//! What each kind of work uses, from a measured run of `onsale cost`.

use bench::cost::{Action, Measured, Usage};

use crate::Failure;
use crate::deployment::Deployment;

/// A kind of work: a request of a visitor or of the provider, or a message that a consumer takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Somebody joins a waiting room.
    Join,
    /// Somebody is let in.
    Admission,
    /// Somebody is let in whose place is due.
    Entrance,
    /// The gate refuses somebody.
    NotAdmitted,
    /// Somebody looks at what is left.
    Look,
    /// A room document makes a turn.
    Turn,
    /// A room document is answered.
    Document,
    /// An order is made.
    Reservation,
    /// An order is refused: its seats are somebody's.
    Refusal,
    /// A payment is started.
    Start,
    /// A callback of the provider is decided.
    Payment,
    /// The facts of a paid order are settled, and it is counted.
    Counting,
    /// The time of an order that was paid is up.
    ExpiryOfPaid,
    /// The time of an order that was not paid is up.
    Expiry,
    /// An order is cancelled.
    Cancellation,
    /// A buyer looks at an order.
    Order,
    /// A paid order is given back.
    Refund,
}

impl Work {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 17] = [
        Self::Join,
        Self::Admission,
        Self::Entrance,
        Self::NotAdmitted,
        Self::Look,
        Self::Turn,
        Self::Document,
        Self::Reservation,
        Self::Refusal,
        Self::Start,
        Self::Payment,
        Self::Counting,
        Self::ExpiryOfPaid,
        Self::Expiry,
        Self::Cancellation,
        Self::Order,
        Self::Refund,
    ];

    /// What was measured of it.
    fn action(self) -> Action {
        match self {
            Self::Join => Action::Join,
            Self::Admission => Action::Admission,
            Self::Entrance => Action::Entrance,
            Self::NotAdmitted => Action::NotAdmitted,
            Self::Look => Action::Look,
            Self::Turn => Action::Turn,
            Self::Document => Action::Document,
            Self::Reservation => Action::Reservation,
            Self::Refusal => Action::Refusal,
            Self::Start => Action::Start,
            Self::Cancellation => Action::Cancellation,
            Self::Payment => Action::Payment,
            Self::Counting => Action::Counting,
            Self::ExpiryOfPaid => Action::ExpiryOfPaid,
            Self::Expiry => Action::Expiry,
            Self::Order => Action::Order,
            Self::Refund => Action::Refund,
        }
    }
}

/// What one piece of work takes of a deployment.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// What is paid for.
    pub usage: Usage,
    /// Time of a function without the waits for others' queues, in microseconds.
    pub function_micros: u64,
    /// Time of the slot's server, in microseconds.
    pub slot_micros: f64,
}

/// The costs of every kind of work.
#[derive(Debug, Clone)]
pub struct Costs {
    each: Vec<Cost>,
}

impl Costs {
    /// The costs by a measurement, where round trips and processors are those of a deployment.
    #[must_use]
    pub fn new(measured: &Measured, deployment: &Deployment) -> Self {
        let of = |work: Work| {
            let usage = measured.of(work.action());
            // Consumers receive and delete: that is not in the way of an invocation.
            let sends = if usage.http_requests > 0.0 { usage.sqs_requests } else { 0.0 };
            let ms = usage.cpu_ms / deployment.processor_share
                + usage.redis_trips * deployment.redis_ms
                + usage.dynamodb_calls * deployment.dynamodb_ms
                + sends * deployment.sqs_ms;
            let slot_micros = usage.cache_units * measured.cache_unit_micros;
            Cost { usage, function_micros: (ms * 1_000.0) as u64, slot_micros }
        };
        Self { each: Work::ALL.into_iter().map(of).collect() }
    }

    /// The same by the measurement that is kept.
    ///
    /// # Errors
    /// Never, as a test shows: it is compiled in.
    pub fn kept(deployment: &Deployment) -> Result<Self, Failure> {
        Ok(Self::new(&Measured::kept()?, deployment))
    }

    /// The cost of one piece of work.
    #[must_use]
    pub fn of(&self, work: Work) -> &Cost {
        // As many as there are kinds of work, in their order.
        &self.each[work as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_work_was_measured() {
        let costs = Costs::kept(&Deployment::default()).unwrap();
        for (at, work) in Work::ALL.into_iter().enumerate() {
            assert_eq!(work as usize, at);
            assert!(costs.of(work).function_micros > 0, "{work:?}");
        }
        assert!(costs.of(Work::Reservation).slot_micros > 1.0);
        assert!(costs.of(Work::Payment).usage.write_units > 0.0);
    }
}
