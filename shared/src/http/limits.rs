//! The limits and rules of the gate, asked about a request.

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

/// The header in which a client may say something of its device, the same each time.
pub const DEVICE_HINT: &str = "x-device-hint";

/// Why a request does not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A rule or a limit refused it.
    #[error("{}", .0.text)]
    ByRule(Refusal),
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Who sent a request. A hint that is none is left out: nobody is refused for it.
fn client(app: &App, request: &Request, buyer: &Buyer) -> Client {
    let hint = request.headers().get(DEVICE_HINT).and_then(|value| value.to_str().ok());
    Client {
        buyer: buyer.user().clone(),
        address: edge::viewer(&app.edge, request),
        device: hint.and_then(|hint| DeviceHint::new(hint).ok()),
    }
}

/// Asks the rules and limits of a sale about a request, and counts it: by how many doublings a challenge is
/// harder than otherwise, 0 for most.
///
/// # Errors
/// [`Refused::ByRule`] if it does not pass.
pub async fn check(
    app: &App,
    request: &Request,
    sale: &Sale,
    buyer: &Buyer,
    now: Timestamp,
) -> Result<u8, Refused> {
    let client = client(app, request, buyer);
    let counters = app.ports.counters();
    let book = app.ports.rules().book(sale.id()).await?;
    let verdict = match book.plan(&sale.file().limits, &client, now) {
        Ok(plan) => {
            let counts = counters.count(sale.id(), &client.buyer, &plan.checks, now).await?;
            plan.judge(&counts, now)
        }
        Err(refusal) => Verdict::Refused(refusal),
    };
    match verdict {
        Verdict::Pass => Ok(0),
        Verdict::Harder(level) => {
            count(None, Metric::Suspected, 1);
            Ok(level)
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

/// Rules are the operator's to name, and so many that a metric each would cost more than it tells.
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
