//! The part of the demo in which buyers exchange tickets of a play: at every provider one for a dearer seat, which is
//! paid whole, and one for a cheaper seat, which the old money pays. Others fill a wallet at every provider, pay a
//! ticket from it and exchange that.

use std::collections::BTreeMap;
use std::time::Duration;

use engine::domain::basics::ids::{ProviderId, SaleId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::sale::SaleFile;
use local::up::Engine;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::demo::{Error, publish};
use crate::pages::Till;
use crate::payment::{buyer_token, pay_on_page};

const PLAY: &str = include_str!("../../../sales/demo-play.json");
const TOP_UPS: &str = include_str!("../../../sales/demo-top-ups.json");
/// Tries of an admission: the gate's budget follows what is left a moment later.
const TRIES: u32 = 20;

#[derive(Debug, Clone, Default)]
pub struct Exchanged {
    /// Exchanges by the provider of the old order's payment.
    pub tickets: BTreeMap<ProviderId, u64>,
    /// Orders that were paid from wallets, by the provider at which those were filled.
    pub from_wallets: BTreeMap<ProviderId, u64>,
    /// The orders that gave their tickets.
    pub orders: Vec<OrderNumber>,
    /// Who bought all of this. The play gives points.
    pub buyers: Vec<UserId>,
}

/// The play and its operator.
struct Play<'a> {
    engine: &'a Engine,
    client: reqwest::Client,
    sale: SaleId,
    top_ups: SaleId,
}

/// Puts the play on sale, and has tickets of it bought and exchanged at every provider.
///
/// # Errors
/// Fails if the engine does not do what it is asked for.
pub async fn exchange(engine: &Engine, providers: &[ProviderId]) -> Result<Exchanged, Error> {
    let file: SaleFile = serde_json::from_str(PLAY)?;
    let top_ups: SaleFile = serde_json::from_str(TOP_UPS)?;
    publish(engine, &[file.clone(), top_ups.clone()]).await?;
    let (sale, top_ups) = (file.sale, top_ups.sale);
    let play = Play { engine, client: reqwest::Client::new(), sale, top_ups };
    let mut exchanged = Exchanged::default();
    for provider in providers {
        let refused = || Error::Refused(play.sale.clone(), format!("no till of {provider}"));
        let till = Till::of(provider.as_str()).ok_or_else(refused)?;
        for (from, to) in [("gallery", "stalls"), ("stalls", "gallery")] {
            let user = format!("demo-{provider}-{from}");
            let old = play.order(&user, &play.sale, from, None).await?;
            let number = play.paid(&old, till).await?;
            let new = play.order(&user, &play.sale, to, Some(&old)).await?;
            // What is cheaper is paid with the old money as it is made.
            if new["state"] != "paid" {
                play.paid(&new, till).await?;
            }
            *exchanged.tickets.entry(provider.clone()).or_default() += 1;
            exchanged.orders.push(number);
            exchanged.buyers.extend(user.parse());
        }
        let user = format!("demo-{provider}-purse");
        let filled = play.order(&user, &play.top_ups, "five-hundred", None).await?;
        play.paid(&filled, till).await?;
        let old = play.order(&user, &play.sale, "gallery", None).await?;
        let number = play.paid_from_wallet(&user, &old).await?;
        let new = play.order(&user, &play.sale, "stalls", Some(&old)).await?;
        play.paid_from_wallet(&user, &new).await?;
        exchanged.from_wallets.insert(provider.clone(), 2);
        exchanged.orders.push(number);
        exchanged.buyers.extend(user.parse());
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
        let url = format!("{}/{path}", self.engine.url());
        let reply = self.client.post(url).bearer_auth(token).json(body).send().await?;
        Ok((reply.status(), reply.json().await?))
    }

    /// An order of a ticket of a tier, for the ticket of another order perhaps.
    async fn order(
        &self,
        user: &str,
        sale: &SaleId,
        tier: &str,
        old: Option<&Value>,
    ) -> Result<Value, Error> {
        let (gate, orders) = (format!("sales/{sale}/admissions"), format!("sales/{sale}/orders"));
        let mut admission = Value::Null;
        for _ in 0..TRIES {
            let (status, said) = self.post(user, &gate, &json!({ "tickets": 1 })).await?;
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
    async fn paid_from_wallet(&self, user: &str, order: &Value) -> Result<OrderNumber, Error> {
        let number = self.number(order)?;
        let path = format!("orders/{number}/payments/wallet");
        match self.post(user, &path, &json!({})).await? {
            (StatusCode::OK, paid) if paid["state"] == "paid" => Ok(number),
            (_, said) => Err(self.refused(said)),
        }
    }

    /// Pays an order on a provider's page; its number.
    async fn paid(&self, order: &Value, till: Till) -> Result<OrderNumber, Error> {
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
