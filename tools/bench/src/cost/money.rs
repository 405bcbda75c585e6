//! What money uses beside callbacks: payments that are started, and refunds that are asked for.

use http::{Method, StatusCode};
use serde_json::json;
use shared::runtime::functions::Function;

use super::Failure;
use super::actions::{Made, Who, Work, Worker, request};
use super::usage::Usage;

/// Where the provider's page sends the buyer afterwards: an origin that a local engine lists.
const RETURN_URL: &str = "https://shop.example/paid";

impl Worker<'_> {
    /// Payments of orders that nobody has begun to pay, each started once.
    pub(super) async fn starts(&self, sale: &str, times: usize) -> Result<Usage, Failure> {
        let made = self.orders(sale, "starts", times).await?;
        let starts = made.iter().map(start).collect::<Result<_, _>>()?;
        self.measured(starts, 1).await
    }

    /// Refunds of whole orders that were paid.
    pub(super) async fn refunds(&self, paid: &[Made]) -> Result<Usage, Failure> {
        let refunds = paid.iter().map(refund).collect::<Result<_, _>>()?;
        self.measured(refunds, 1).await
    }
}

fn start(made: &Made) -> Result<Work, Failure> {
    let path = format!("/orders/{}/payments", made.number);
    let body = json!({ "provider": "stripe", "return_url": RETURN_URL });
    let event = request(Who::Buyer(&made.user), (Method::POST, &path), None, Some(&body))?;
    Ok(Work::Http(Function::StartPayment, event, StatusCode::OK))
}

fn refund(made: &Made) -> Result<Work, Failure> {
    let path = format!("/orders/{}/refunds/operator", made.number);
    let body = json!({ "number": 1, "tickets": "all" });
    let event = request(Who::Operator, (Method::POST, &path), None, Some(&body))?;
    Ok(Work::Http(Function::RefundOrder, event, StatusCode::OK))
}
