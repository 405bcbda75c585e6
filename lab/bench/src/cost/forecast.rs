//! What a rehearsal of a deployment will cost: a measurement of `onsale cost` that is kept, multiplied by prices.
//!
//! Nothing is started for it, so that it can be had wherever a rehearsal is begun.

use serde::Serialize;

use super::Failure;
use super::actions::{Action, Measured};
use super::bill::{Bill, used};
use super::prices::Prices;
use super::scenario::Scenario;
use super::usage::Usage;

/// A measurement of `onsale cost --json`, by an optimised build: its field `measured`.
const MEASURED: &str = include_str!("measured.json");

/// What a rehearsal does at most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Plan {
    /// Number of people, each of whom asks to be let in, orders and cancels.
    pub visitors: u64,
    /// Seconds within which what is left is read, once a second and sale.
    pub seconds: f64,
    pub sales: u64,
    /// Most requests that can be sent: the ceiling of the rate × the longest time.
    pub max_requests: f64,
}

/// What a rehearsal will cost, beyond what the deployment costs anyway.
#[derive(Debug, Clone, Serialize)]
pub struct Forecast {
    pub plan: Plan,
    /// The bill if everybody is let in and orders, or if as many are as the ceiling lets through.
    pub expected: Bill,
    /// The most that it can cost: every request that can be sent is the dearest one.
    pub at_most: f64,
    /// The currency of both.
    pub currency: String,
    /// The day on which the prices were looked up, and their region.
    pub prices_of: String,
}

impl Scenario {
    /// Everybody looks, is let in, one of three after coming back once, orders and cancels.
    fn of_a_rehearsal(plan: &Plan) -> Self {
        let visitors = plan.visitors as f64;
        let whole = Self {
            visitors,
            looks: plan.seconds * plan.sales as f64,
            admissions: visitors,
            not_admitted: visitors / 3.0,
            orders: visitors,
            cancelled: visitors,
            ..Self::default()
        };
        let requests = whole.looks + whole.admissions + whole.not_admitted + whole.orders * 2.0;
        whole.times((plan.max_requests / requests.max(1.0)).min(1.0))
    }
}

/// Usage of the dearest request of a buyer, with what follows from it in queues.
fn dearest(measured: &Measured, prices: &Prices) -> f64 {
    let reservation = measured.of(Action::Reservation) + measured.of(Action::Expiry);
    let others = [
        Action::Look,
        Action::Admission,
        Action::NotAdmitted,
        Action::Refusal,
        Action::Cancellation,
        Action::Order,
    ];
    let all = others.iter().map(|action| measured.of(*action)).chain([reservation]);
    all.map(|usage: Usage| usage.cost(prices)).fold(0.0, f64::max)
}

impl Measured {
    /// The measurement that is kept.
    ///
    /// # Errors
    /// Never, as a test shows: it is compiled in.
    pub fn kept() -> Result<Self, Failure> {
        Ok(serde_json::from_str(MEASURED)?)
    }
}

/// Forecasts the bill of a rehearsal.
///
/// # Errors
/// Never, as a test shows: the measurement is compiled in.
pub fn forecast(plan: Plan, prices: &Prices) -> Result<Forecast, Failure> {
    let measured = Measured::kept()?;
    let lines = used(&measured, &Scenario::of_a_rehearsal(&plan)).bill(prices);
    let of = format!(
        "a rehearsal of {} people, at most {:.0} requests",
        plan.visitors, plan.max_requests
    );
    Ok(Forecast {
        plan,
        expected: Bill::new(of, lines),
        at_most: plan.max_requests * dearest(&measured, prices),
        currency: prices.currency.clone(),
        prices_of: format!("{} in {}", prices.as_of, prices.region),
    })
}

impl Forecast {
    /// The forecast as a table for people.
    #[must_use]
    pub fn tables(&self) -> String {
        let Self { expected, at_most, currency, prices_of, .. } = self;
        format!(
            "{}\nat most {at_most:.2} {currency}, if every request that can be sent is the dearest; prices of \
             {prices_of}. What the deployment costs while nobody buys is not included, nor what \
             docs/cost.md leaves out.",
            expected.table(currency)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(visitors: u64, max_requests: f64) -> Plan {
        Plan { visitors, seconds: 60.0, sales: 1, max_requests }
    }

    #[test]
    fn every_kind_of_work_of_a_rehearsal_was_measured() {
        let measured = Measured::kept().unwrap();
        for action in [
            Action::Look,
            Action::Admission,
            Action::NotAdmitted,
            Action::Reservation,
            Action::Refusal,
            Action::Cancellation,
            Action::Order,
        ] {
            assert_eq!(measured.of(action).http_requests, 1.0, "{}", action.name());
        }
        assert!(measured.of(Action::Expiry).write_units > 0.0);
    }

    #[test]
    fn a_bill_grows_with_its_people_up_to_what_the_ceiling_lets_through() {
        let prices = Prices::published().unwrap();
        let of = |visitors, max_requests| forecast(plan(visitors, max_requests), &prices).unwrap();
        let (small, large) = (of(1_000, 1e9), of(100_000, 1e9));
        assert!(small.expected.total > 0.0 && small.expected.total < large.expected.total);
        // A ceiling that lets less through costs less, and nothing costs more than its most.
        let held = of(100_000, 10_000.0);
        assert!(held.expected.total < large.expected.total);
        for forecast in [&small, &large, &held, &of(0, 1.0)] {
            assert!(forecast.expected.total <= forecast.at_most, "{}", forecast.tables());
        }
        assert!((held.at_most - of(1, 10_000.0).at_most).abs() < 1e-9);
        assert!(held.tables().contains("USD"));
    }
}
