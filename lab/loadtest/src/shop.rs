//! A sale of a local engine as its buyers use it by the API: one order after the other, paid on a provider's page or from a
//! wallet. What the demo does beside its crowd.

use std::time::Duration;

use engine::domain::basics::ids::SaleId;
use engine::domain::basics::number::OrderNumber;
use local::up::Engine;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::demo::Error;
use crate::pages::Till;
use crate::payment::{buyer_token, pay_on_page};

/// Tries of an admission: the gate's budget follows what is left a moment later.
const TRIES: u32 = 20;
/// Pause between two tries.
const TRY_AGAIN: Duration = Duration::from_millis(500);

/// A sale of an engine.
pub(crate) struct Shop<'a> {
    engine: &'a Engine,
    client: reqwest::Client,
    sale: SaleId,
}

impl<'a> Shop<'a> {
    pub(crate) fn new(engine: &'a Engine, sale: SaleId) -> Self {
        Self { engine, client: reqwest::Client::new(), sale }
    }

    fn refused(&self, what: impl ToString) -> Error {
        Error::Refused(self.sale.clone(), what.to_string())
    }

    async fn post(
        &self,
        user: &str,
        path: &str,
        body: &Value,
    ) -> Result<(StatusCode, Value), Error> {
        let token = buyer_token(self.engine.secrets(), user)?;
        let url = format!("{}/{path}", self.engine.url());
        let reply = self.client.post(url).bearer_auth(token).json(body).send().await?;
        Ok((reply.status(), reply.json().await?))
    }

    /// An order of the best tickets of a tier, for the first ticket of another order perhaps.
    ///
    /// # Errors
    /// [`Error::Refused`] if the engine makes none.
    pub(crate) async fn order(
        &self,
        user: &str,
        tier: &str,
        count: u16,
        old: Option<&Value>,
    ) -> Result<Value, Error> {
        let sale = &self.sale;
        let (gate, orders) = (format!("sales/{sale}/admissions"), format!("sales/{sale}/orders"));
        let mut admission = Value::Null;
        for _ in 0..TRIES {
            let (status, said) = self.post(user, &gate, &json!({ "tickets": count })).await?;
            admission = said;
            if status == StatusCode::CREATED {
                break;
            }
            sleep(TRY_AGAIN).await;
        }
        let lines = json!([{ "tier": tier, "best": { "count": count } }]);
        let mut body = json!({ "admission": admission["token"], "lines": lines });
        if let Some(old) = old {
            let line = &old["lines"][0];
            let ticket = json!({ "tier": line["tier"], "seat": line["tickets"][0]["seat"] });
            body["exchange"] = json!({ "order": old["order"], "tickets": [ticket] });
        }
        match self.post(user, &orders, &body).await? {
            (StatusCode::CREATED, made) => Ok(made),
            (_, said) => Err(self.refused(format!("{said} after {admission}"))),
        }
    }

    fn number(&self, order: &Value) -> Result<OrderNumber, Error> {
        let number = order["order"].as_str().and_then(|number| number.parse().ok());
        number.ok_or_else(|| self.refused("an order has no number"))
    }

    /// Pays an order from its buyer's wallet; its number.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is not paid.
    pub(crate) async fn paid_from_wallet(
        &self,
        user: &str,
        order: &Value,
    ) -> Result<OrderNumber, Error> {
        let number = self.number(order)?;
        let path = format!("orders/{number}/payments/wallet");
        match self.post(user, &path, &json!({})).await? {
            (StatusCode::OK, paid) if paid["state"] == "paid" => Ok(number),
            (_, said) => Err(self.refused(said)),
        }
    }

    /// Pays an order on a provider's page; its number.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is not paid.
    pub(crate) async fn paid(&self, order: &Value, till: Till) -> Result<OrderNumber, Error> {
        let number = self.number(order)?;
        let (endpoints, secrets) = (self.engine.endpoints(), self.engine.secrets());
        let paid = pay_on_page(endpoints, secrets, number, till).await;
        let paid = paid.map_err(|error| self.refused(error))?;
        match paid.outcome.as_str() {
            Some("accepted") => Ok(number),
            _ => Err(self.refused(format!("order {number}: {}", paid.outcome))),
        }
    }
}
