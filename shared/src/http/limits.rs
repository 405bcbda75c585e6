//! Checks a request against the limits and the operator's rules of the gate.

use lambda_http::Request;

use crate::http::edge;
use crate::http::identity::Buyer;
use crate::runtime::app::App;
use crate::runtime::metrics::{Metric, count};
use engine::domain::admission::rules::{BuiltIn, Client, Refusal, RefusedBy, Verdict};
use engine::domain::basics::ids::DeviceHint;
use engine::domain::basics::time::Timestamp;
use engine::domain::sale::Sale;
use engine::ports::StoreError;

/// The header in which a client may name its device: a text that is the same in each request.
pub const DEVICE_HINT: &str = "x-device-hint";

/// Why a request does not pass the limits and rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A rule or a limit refused it.
    #[error("{}", .0.text)]
    ByRule(Refusal),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A request that passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The number of doublings by which a challenge is harder than usual: 0 for most requests.
    pub harder: u8,
    /// True if an order of the buyer in this sale ended unpaid.
    pub gave_up: bool,
}

/// The sender of a request. An invalid device hint is left out: no request is refused for it.
fn client(app: &App, request: &Request, buyer: &Buyer) -> Client {
    let hint = request.headers().get(DEVICE_HINT).and_then(|value| value.to_str().ok());
    Client {
        buyer: buyer.user().clone(),
        address: edge::viewer(&app.edge, request),
        device: hint.and_then(|hint| DeviceHint::new(hint).ok()),
    }
}

/// Counts a request, and checks it against the limits of its sale and the operator's rules.
///
/// # Errors
/// Returns [`Refused::ByRule`] if the request does not pass, [`Refused::Store`] if a store fails.
pub async fn check(
    app: &App,
    request: &Request,
    sale: &Sale,
    buyer: &Buyer,
    now: Timestamp,
) -> Result<Passed, Refused> {
    let client = client(app, request, buyer);
    let counters = app.ports.counters();
    let book = app.ports.rules().book(sale.id()).await?;
    let (verdict, gave_up) = match book.plan(&sale.file().limits, &client, now) {
        Ok(plan) => {
            let counts = counters.count(sale.id(), &client.buyer, &plan.checks, now).await?;
            (plan.judge(&counts, now), plan.given_up(&counts) > 0)
        }
        Err(refusal) => (Verdict::Refused(refusal), false),
    };
    match verdict {
        Verdict::Pass => Ok(Passed { harder: 0, gave_up }),
        Verdict::Harder(harder) => {
            count(None, Metric::Suspected, 1);
            Ok(Passed { harder, gave_up })
        }
        Verdict::Refused(refusal) => {
            count(None, metric(&refusal.by), 1);
            // The refusal stands whether or not its rule's count is kept.
            if let Err(error) = counters.refused(sale.id(), refusal.by.as_str()).await {
                tracing::warn!(%error, "a refusal is not counted");
            }
            Err(Refused::ByRule(refusal))
        }
    }
}

/// The metric of a refusal. All rules of one kind share a metric: operators may have many rules, and a metric for each
/// would cost more than it tells.
fn metric(by: &RefusedBy) -> Metric {
    match by {
        RefusedBy::Denied(_) => Metric::DeniedByRule,
        RefusedBy::Limited(_) => Metric::LimitedByRule,
        RefusedBy::BuiltIn(BuiltIn::Buyer) => Metric::LimitedByBuyer,
        RefusedBy::BuiltIn(BuiltIn::Asks | BuiltIn::GivenUp) => Metric::LimitedByAttempts,
        RefusedBy::BuiltIn(BuiltIn::Device) => Metric::LimitedByDevice,
        RefusedBy::BuiltIn(BuiltIn::Address) => Metric::LimitedByAddress,
    }
}
