//! What money uses beside callbacks: payments that are started, and refunds that are asked for and made.

use engine::domain::order::refund::RefundState;
use engine::ports::messages::Refund;
use engine::ports::{Orders as _, Ports as _};
use http::{Method, StatusCode};
use loadtest::payment::{Payment, capture};
use serde_json::json;
use shared::runtime::functions::Function;

use super::Failure;
use super::actions::{Made, Who, Work, Worker, batch, request};
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

    /// The refunds of these orders at the provider, which has their payments; all of the money is back afterwards.
    pub(super) async fn givings_back(&self, paid: &[Made]) -> Result<Usage, Failure> {
        let mut messages = Vec::new();
        for made in paid {
            let (id, order, amount) = (made.payment(), made.number, made.amount);
            capture(self.environment.endpoints(), &Payment { id, order, amount }).await?;
            let refunds = self.app.ports.orders().order_refunds(order).await?;
            let refunds = refunds.iter().map(Refund::from).collect::<Vec<_>>();
            if refunds.is_empty() {
                return Err(format!("order {order} has no refund").into());
            }
            messages.push(Work::GiveBack(batch(&refunds)?));
        }
        let usage = self.measured(messages, 1).await?;
        for made in paid {
            let refunds = self.app.ports.orders().order_refunds(made.number).await?;
            if !refunds.iter().all(|made| made.refund.state == RefundState::Refunded) {
                return Err(format!("not refunded: {refunds:?}").into());
            }
        }
        Ok(usage)
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
