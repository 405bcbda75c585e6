//! What each kind of work uses, from a measured run of `onsale cost`.

use bench::cost::{Action, Measured, Usage};

use crate::Failure;
use crate::deployment::Deployment;

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
        let of = |action: Action| {
            let usage = measured.of(action);
            // Consumers receive and delete: that is not in the way of an invocation.
            let sends = if usage.http_requests > 0.0 { usage.sqs_requests } else { 0.0 };
            let provider_calls = action.provider_calls();
            let ms = usage.cpu_ms / deployment.processor_share
                + usage.redis_trips * deployment.redis_ms
                + provider_calls * deployment.provider_ms
                + usage.dynamodb_calls * deployment.dynamodb_ms
                + sends * deployment.sqs_ms;
            let slot_micros = usage.cache_units * measured.cache_unit_micros;
            Cost { usage, function_micros: (ms * 1_000.0) as u64, slot_micros }
        };
        Self { each: Action::ALL.into_iter().map(of).collect() }
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
    pub fn of(&self, action: Action) -> &Cost {
        // As many as there are kinds of work, in their order.
        &self.each[action as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_work_was_measured() {
        let costs = Costs::kept(&Deployment::default()).unwrap();
        for (at, action) in Action::ALL.into_iter().enumerate() {
            assert_eq!(action as usize, at);
            assert!(costs.of(action).function_micros > 0, "{action:?}");
        }
        assert!(costs.of(Action::Reservation).slot_micros > 1.0);
        assert!(costs.of(Action::Payment).usage.write_units > 0.0);
    }
}
