//! How often each kind of work comes: a load test of the sale's own proportions, on this machine.

use std::time::Duration;

use engine::domain::sale::GateSettings;
use serde::Serialize;

use super::{Failure, Options};
use crate::selling::{hall, publish};
use loadtest::arrivals::Shape;
use loadtest::credentials::Credentials;
use loadtest::profile::LoadProfile;
use loadtest::{CONNECTIONS, CallbackRepeats, Load};
use local::up::{self, Engine};

/// The sale that is rushed for.
const SALE: &str = "cost-rush";
/// The longest that the load test may take.
const MAX: Duration = Duration::from_secs(600);
/// Time that its buyers have to pay, in seconds.
const PAY_WINDOW_SECONDS: u32 = 20;

/// Admissions a second of the gate: fewer than this machine can sell.
const GATE_RATE: u32 = 100;

/// Assumptions that no run on one machine can replace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Assumptions {
    /// Round trip to the cache, in milliseconds.
    pub redis_ms: f64,
    /// Round trip to DynamoDB, in milliseconds.
    pub dynamodb_ms: f64,
    /// Round trip to SQS, in milliseconds.
    pub sqs_ms: f64,
    /// A provider's answer, in milliseconds.
    pub provider_ms: f64,
    /// What Lambda and the function log of one invocation, in bytes.
    pub log_bytes: f64,
    /// Number of long polls that Lambda keeps at each queue at rest.
    pub pollers: f64,
    /// Reads of the availability by a visitor before asking to be let in; the people of the load
    /// test read it only with an admission in hand.
    pub looks: f64,
}

impl Default for Assumptions {
    /// Usual figures within a region; the log has Lambda's three records and one of metrics; Lambda
    /// begins with five pollers a queue.
    /// Source: <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>
    fn default() -> Self {
        Self {
            redis_ms: 1.0,
            dynamodb_ms: 8.0,
            sqs_ms: 10.0,
            provider_ms: 300.0,
            log_bytes: 1_500.0,
            pollers: 5.0,
            looks: 2.0,
        }
    }
}

/// Pieces of each kind of work in the load test.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Scenario {
    pub visitors: f64,
    /// Requests for what is left, and for orders.
    pub looks: f64,
    /// Admissions that were given.
    pub admissions: f64,
    /// Admissions that were refused, for any reason.
    pub not_admitted: f64,
    /// Orders that were made.
    pub orders: f64,
    /// Orders that were refused, or asked for again.
    pub refusals: f64,
    /// Payments that paid an order.
    pub paid: f64,
    /// Calls of the provider besides, such as the same once more.
    pub other_payments: f64,
    /// Orders that were cancelled.
    pub cancelled: f64,
    /// Orders whose time ran out.
    pub expired: f64,
    /// Tickets that were paid.
    pub tickets: f64,
}

impl Scenario {
    /// The same in a sale that is `times` times as large.
    #[must_use]
    pub fn times(&self, times: f64) -> Self {
        Self {
            visitors: self.visitors * times,
            looks: self.looks * times,
            admissions: self.admissions * times,
            not_admitted: self.not_admitted * times,
            orders: self.orders * times,
            refusals: self.refusals * times,
            paid: self.paid * times,
            other_payments: self.other_payments * times,
            cancelled: self.cancelled * times,
            expired: self.expired * times,
            tickets: self.tickets * times,
        }
    }
}

/// Runs the load test.
pub(super) async fn run(options: &Options) -> Result<Scenario, Failure> {
    let engine = Engine::start(up::Options::ephemeral()).await?;
    let scenario = load_test(&engine, options).await;
    engine.stop().await?;
    scenario
}

async fn load_test(engine: &Engine, options: &Options) -> Result<Scenario, Failure> {
    let seats = (options.seats / options.scale).max(1);
    let mut file = hall(SALE, seats, 1)?;
    file.pay_window_seconds = PAY_WINDOW_SECONDS;
    file.gate = GateSettings { rate_per_second: GATE_RATE, ..GateSettings::default() };
    publish(engine, &file).await?;
    let load = Load::Open {
        arrivals: (options.visitors / u64::from(options.scale)).max(1),
        within_seconds: options.within.as_secs_f64(),
        shape: Shape::Opening,
        connections: CONNECTIONS,
    };
    let crowd = loadtest::Options {
        url: engine.url().to_owned(),
        sales: vec![SALE.to_owned()],
        load,
        profile: LoadProfile::default(),
        seed: options.seed,
        most: MAX,
        may_take_longer: false,
        ledger: None,
        progress: false,
        callback_repeats: CallbackRepeats::default(),
        pages: None,
        grace: engine.endpoints().grace(),
        endpoints: Some(engine.endpoints().clone()),
        rehearsal: None,
        crowd: loadtest::people::plan::Crowd::default(),
    };
    let report = loadtest::run(&crowd, Credentials::new(engine.secrets())).await?;
    if !report.is_good() {
        return Err(format!("the load test was not as it should be:\n{}", report.tables()).into());
    }
    let sent = |name: &str| report.latency.get(name).map_or(0.0, |of| of.response.count as f64);
    let (admissions, orders, paid) =
        (report.admissions as f64, report.orders as f64, report.paid as f64);
    let cancelled = report.cancelled as f64;
    Ok(Scenario {
        visitors: report.buyers as f64,
        looks: sent("queries") + report.buyers as f64 * options.assumptions.looks,
        admissions,
        not_admitted: (sent("token-gate") - admissions).max(0.0),
        orders,
        refusals: (sent("reserve") - orders).max(0.0),
        paid,
        other_payments: (sent("take-callback") + sent("pay-callback") - paid).max(0.0),
        cancelled,
        expired: (orders - paid - cancelled).max(0.0),
        tickets: report.tickets as f64,
    })
}
