//! Bills: for a large sale, and for a quiet month.

use serde::Serialize;
use shared::http::problem::Kind;
use shared::runtime::metrics::{self, Metric};

use super::actions::{Action, Measured, TICKETS};
use super::prices::Prices;
use super::scenario::{Assumptions, Scenario};
use super::usage::{Line, Usage};

/// The template that is deployed.
const TEMPLATE: &str = include_str!("../../../../template.yaml");
/// Hours of a month, as AWS counts.
const MONTH_HOURS: f64 = 730.0;
/// The seconds that a long poll waits.
const POLL_SECONDS: f64 = 20.0;
/// Bytes in Redis for a hold and its buyer, at most; a seat itself is two bits.
const HOLD_BYTES: f64 = 300.0;
/// Time for which a waiting room serves, in seconds.
const ROOM_SECONDS: f64 = 3_600.0;
/// Caches before the room document, each of which asks once a second however many people ask it.
const CACHES: f64 = 10.0;
/// Zones of an endpoint.
const ZONES: f64 = 2.0;

#[derive(Debug, Clone, Serialize)]
pub struct Bill {
    /// For what, in words.
    pub of: String,
    /// Its lines; what costs nothing is left out.
    pub lines: Vec<Line>,
    pub total: f64,
}

impl Bill {
    /// A bill of these lines.
    #[must_use]
    pub fn new(of: String, lines: Vec<Line>) -> Self {
        let total = lines.iter().map(|line| line.cost).sum();
        let lines = lines.into_iter().filter(|line| line.cost > 0.0).collect();
        Self { of, lines, total }
    }
}

/// What is there whether anybody buys or not, counted in `template.yaml`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fixed {
    /// Queues that Lambda polls.
    pub polled_queues: f64,
    pub alarms: f64,
    pub dashboards: f64,
    pub endpoints: f64,
    pub nat_gateways: f64,
    /// Secrets, the given ones included.
    pub secrets: f64,
    /// Metrics of our own: one for each value of their dimensions, one sale among them.
    pub metrics: f64,
}

impl Fixed {
    /// The fixed items of the template.
    #[must_use]
    pub fn deployed() -> Self {
        Self::from_template(TEMPLATE)
    }

    fn from_template(template: &str) -> Self {
        let count = |line: &str| {
            template.lines().filter(|text| text.trim().trim_matches('"') == line).count() as f64
        };
        let given = template.lines().filter(|text| text.trim_end().ends_with("SecretArn:")).count();
        Self {
            polled_queues: count("Type: SQS"),
            alarms: count("Type: AWS::CloudWatch::Alarm"),
            dashboards: count("Type: AWS::CloudWatch::Dashboard"),
            endpoints: count("VpcEndpointType: Interface"),
            nat_gateways: count("Type: AWS::EC2::NatGateway"),
            metrics: metrics_kept(),
            secrets: count("Type: AWS::SecretsManager::Secret") + given as f64,
        }
    }
}

/// Number of metrics that CloudWatch keeps with one sale open, if every refusal occurs.
fn metrics_kept() -> f64 {
    let of_set = |set: &&[&str]| match set.last() {
        Some(&"Function") => metrics::Function::ALL.len(),
        Some(&"Reason") => Kind::ALL.len(),
        _ => 1,
    };
    let sets = Metric::ALL.iter().flat_map(|metric| metric.row().dimensions.sets());
    sets.map(of_set).sum::<usize>() as f64
}

/// Usage of everything that happened.
pub(super) fn used(measured: &Measured, scenario: &Scenario) -> Usage {
    let each = [
        (Action::Look, scenario.looks),
        (Action::Admission, scenario.admissions),
        (Action::NotAdmitted, scenario.not_admitted),
        (Action::Reservation, scenario.orders),
        (Action::Refusal, scenario.refusals),
        (Action::Start, scenario.paid),
        (Action::Payment, scenario.paid + scenario.other_payments),
        (Action::Counting, scenario.paid),
        (Action::ExpiryOfPaid, scenario.paid),
        (Action::Cancellation, scenario.cancelled),
        (Action::Expiry, scenario.cancelled + scenario.expired),
    ];
    each.into_iter()
        .fold(Usage::default(), |sum, (action, times)| sum + measured.of(action) * times)
}

/// What looking after a sale uses, once a minute, while its tickets go from none to all.
fn looked_after(measured: &Measured, tickets: f64, hours: f64) -> Usage {
    let one = measured.of(Action::Reconciliation)
        + measured.of(Action::ReconciliationOfTickets) * (tickets / 1000.0);
    one * (hours * 60.0)
}

/// The sale: everything that people make happen, and what looks after it while it is open.
pub(super) fn of_the_sale(
    measured: &Measured,
    scenario: &Scenario,
    hours: f64,
    prices: &Prices,
) -> Bill {
    let usage = used(measured, scenario) + looked_after(measured, scenario.tickets, hours);
    let mut lines = usage.bill(prices);
    let gigabytes = (scenario.orders * HOLD_BYTES / 1e9).max(prices.cache_least_gb);
    lines.push(Line::new("Cache", gigabytes * hours, "GB-hours", prices.cache_gb_hour));
    let of = format!(
        "a sale of {:.0} tickets with {:.0} visitors, open for {hours} hours",
        scenario.tickets, scenario.visitors
    );
    Bill::new(of, lines)
}

/// What a waiting room adds to a sale in which everybody joins: a turn a second, and as often one document for
/// each cache before the function. Everybody asks too early once, and each order was made by somebody who came.
pub(super) fn of_the_room(measured: &Measured, scenario: &Scenario, prices: &Prices) -> Bill {
    let each = [
        (Action::Join, scenario.visitors),
        (Action::NotDue, scenario.visitors),
        (Action::Turn, ROOM_SECONDS),
        (Action::Document, ROOM_SECONDS * (CACHES - 1.0)),
        (Action::Entrance, scenario.orders),
    ];
    let usage = each
        .into_iter()
        .fold(Usage::default(), |sum, (action, times)| sum + measured.of(action) * times);
    let of = format!(
        "a waiting room of {:.0} people, served for {ROOM_SECONDS:.0} seconds, behind {CACHES:.0} caches",
        scenario.visitors
    );
    Bill::new(of, usage.bill(prices))
}

/// A month in which next to nothing happens.
pub(super) fn of_a_quiet_month(
    measured: &Measured,
    orders: u64,
    assumptions: &Assumptions,
    prices: &Prices,
    fixed: &Fixed,
) -> Bill {
    let orders = orders as f64;
    let scenario = Scenario {
        visitors: orders * 3.0,
        looks: orders * 3.0,
        admissions: orders,
        orders,
        paid: orders,
        tickets: orders * f64::from(TICKETS),
        ..Scenario::default()
    };
    let usage = used(measured, &scenario) + looked_after(measured, scenario.tickets, MONTH_HOURS);
    let mut lines = usage.bill(prices);
    let polls = fixed.polled_queues * assumptions.pollers * MONTH_HOURS * 3600.0 / POLL_SECONDS;
    lines.extend([
        Line::new("SQS: Lambda's empty polls", polls, "requests", prices.sqs_million / 1e6),
        Line::new("Cache", prices.cache_least_gb * MONTH_HOURS, "GB-hours", prices.cache_gb_hour),
        Line::new(
            "VPC endpoints",
            fixed.endpoints * ZONES * MONTH_HOURS,
            "hours",
            prices.endpoint_hour,
        ),
        Line::new(
            "NAT gateways",
            fixed.nat_gateways * MONTH_HOURS,
            "hours",
            prices.nat_gateway_hour,
        ),
        Line::new("Secrets", fixed.secrets, "", prices.secret_month),
        Line::new("Alarms", fixed.alarms, "", prices.alarm_month),
        Line::new("Metrics", fixed.metrics, "", prices.metric_month),
        Line::new("Dashboards", fixed.dashboards, "", prices.dashboard_month),
    ]);
    Bill::new(format!("a quiet month with one sale open and {orders} orders"), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deployed_is_counted_in_the_template() {
        let fixed = Fixed::from_template(
            "Parameters:\n  KeySecretArn:\n    Type: String\n\
             A: { Type: SQS }\n      Type: SQS\n    Type: AWS::CloudWatch::Alarm\n\
             \x20   Type: AWS::CloudWatch::Alarm\n  VpcEndpointType: Interface\n",
        );
        assert_eq!(fixed.alarms, 2.0);
        assert_eq!(fixed.polled_queues, 1.0);
        assert_eq!((fixed.endpoints, fixed.secrets, fixed.nat_gateways), (1.0, 1.0, 0.0));
        assert!(Fixed::deployed().polled_queues >= 5.0, "the five queues have consumers");
    }

    #[test]
    fn twice_the_sale_costs_twice_as_much() {
        let prices = Prices::published().unwrap();
        let usage = Usage { http_requests: 1.0, write_units: 10.0, ..Usage::default() };
        let actions = vec![(Action::Reservation, usage), (Action::Payment, usage)];
        let measured = Measured { actions, cache_unit_micros: 1.0 };
        let scenario = Scenario { orders: 1e6, paid: 1e6, tickets: 2e6, ..Scenario::default() };
        let (one, two) = (used(&measured, &scenario), used(&measured, &scenario.times(2.0)));
        assert_eq!(two, one * 2.0);
        assert!((one.cost(&prices) - 2.0 * (1.00 + 10.0 * 0.625)).abs() < 1e-9);
    }
}
