//! The part of the demo in which buyers exchange tickets of a play: at every provider one for a dearer seat, which is
//! paid whole, and one for a cheaper seat, which the old money pays.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::domain::ids::{ProviderId, SaleId};
use engine::domain::number::OrderNumber;
use engine::domain::sale::SaleFile;
use local::up::Engine;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::demo::{Error, publish};
use crate::pages::Till;
use crate::payment::{buyer_token, pay_on_page};

/// The play.
const PLAY: &str = include_str!("../../../sales/demo-play.json");
/// Tries of an admission: the gate's budget follows what is left a moment later.
const TRIES: u32 = 20;

/// What was exchanged.
#[derive(Debug, Clone, Default)]
pub struct Exchanged {
    /// Exchanges by the provider of the old order's payment.
    pub tickets: BTreeMap<ProviderId, u64>,
    /// The orders that gave their tickets.
    pub orders: Vec<OrderNumber>,
}

/// The play and its operator.
struct Play<'a> {
    engine: &'a Engine,
    client: reqwest::Client,
    sale: SaleId,
}

/// Puts the play on sale, and has tickets of it bought and exchanged at every provider.
///
/// # Errors
/// Fails if the engine does not do what it is asked for.
pub async fn exchange(engine: &Engine, providers: &[ProviderId]) -> Result<Exchanged, Error> {
    let file: SaleFile = serde_json::from_str(PLAY)?;
    publish(engine, std::slice::from_ref(&file)).await?;
    let play = Play { engine, client: reqwest::Client::new(), sale: file.sale };
    let mut exchanged = Exchanged::default();
    for provider in providers {
        let refused = || Error::Refused(play.sale.clone(), format!("no till of {provider}"));
        let till = Till::of(provider.as_str()).ok_or_else(refused)?;
        for (from, to) in [("gallery", "stalls"), ("stalls", "gallery")] {
            let user = format!("demo-{provider}-{from}");
            let old = play.order(&user, from, None).await?;
            let number = play.paid(&old, till).await?;
            let new = play.order(&user, to, Some(&old)).await?;
            // What is cheaper is paid with the old money as it is made.
            if new["state"] != "paid" {
                play.paid(&new, till).await?;
            }
            *exchanged.tickets.entry(provider.clone()).or_default() += 1;
            exchanged.orders.push(number);
        }
    }
    Ok(exchanged)
}

impl Play<'_> {
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
        let url = format!("{}/sales/{}/{path}", self.engine.url(), self.sale);
        let reply = self.client.post(url).bearer_auth(token).json(body).send().await?;
        Ok((reply.status(), reply.json().await?))
    }

    /// An order of a ticket of a tier, for the ticket of another order perhaps.
    async fn order(&self, user: &str, tier: &str, old: Option<&Value>) -> Result<Value, Error> {
        let mut admission = Value::Null;
        for _ in 0..TRIES {
            let (status, said) = self.post(user, "admissions", &json!({ "tickets": 1 })).await?;
            admission = said;
            if status == StatusCode::CREATED {
                break;
            }
            sleep(Duration::from_millis(500)).await;
        }
        let lines = json!([{ "tier": tier, "best": { "count": 1 } }]);
        let mut body = json!({ "admission": admission["token"], "lines": lines });
        if let Some(old) = old {
            let line = &old["lines"][0];
            let ticket = json!({ "tier": line["tier"], "seat": line["tickets"][0]["seat"] });
            body["exchange"] = json!({ "order": old["order"], "tickets": [ticket] });
        }
        match self.post(user, "orders", &body).await? {
            (StatusCode::CREATED, made) => Ok(made),
            (_, said) => Err(self.refused(format!("{said} after {admission}"))),
        }
    }

    /// Pays an order on a provider's page; its number.
    async fn paid(&self, order: &Value, till: Till) -> Result<OrderNumber, Error> {
        let number = order["order"].as_str().and_then(|number| number.parse().ok());
        let number: OrderNumber = number.ok_or_else(|| self.refused("an order has no number"))?;
        let (endpoints, secrets) = (self.engine.endpoints(), self.engine.secrets());
        let paid = pay_on_page(endpoints, secrets, number, till).await;
        let paid = paid.map_err(|error| self.refused(error))?;
        match paid.outcome.as_str() {
            Some("accepted") => Ok(number),
            _ => Err(self.refused(format!("order {number}: {}", paid.outcome))),
        }
    }
}
