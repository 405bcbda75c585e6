//! `onsale pay` and `onsale sign`: the payment provider's part.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use engine::domain::money::{Currency, Money};
use engine::domain::number::OrderNumber;
use engine::domain::time::Timestamp;
use engine::ports::Orders as _;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use shared::dynamodb::DynamoOrders;

use super::{DECLINED, Failure, out};
use fake_payments::API_KEY;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::payment;
use local::stores;

/// How long the engine may take to answer.
const DEADLINE: Duration = Duration::from_secs(30);
/// The largest body that is signed; the engine takes smaller ones only.
const MAX_BODY_BYTES: u64 = 1024 * 1024;

/// Pay an order: capture the money at the payment provider, and send the engine the signed callback
/// that the provider would send.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale pay --order 4611686018427387905                   what it costs
  onsale pay --order 4611686018427387905 --amount 1        too little: it is refunded
  onsale pay --order 4611686018427387905 --payment pi_2    another payment of the same order
  onsale pay --order 4611686018427387905 --lost-callback   the engine finds it when it asks")]
pub struct PayCommand {
    /// The order's number.
    #[arg(long, value_name = "NUMBER")]
    order: OrderNumber,
    /// How much, in minor units [default: what the order costs]
    #[arg(long, value_name = "MINOR", requires = "currency")]
    amount: Option<i64>,
    /// In which currency [default: the order's]
    #[arg(long, value_name = "CODE", value_parser = Currency::new)]
    currency: Option<Currency>,
    /// The payment's id; the same one twice is the same payment [default: made from the order]
    #[arg(long, value_name = "ID")]
    payment: Option<String>,
    /// Only capture the money: the callback is lost on its way.
    #[arg(long)]
    lost_callback: bool,
}

impl PayCommand {
    /// Sends the callback and prints the reply.
    ///
    /// # Errors
    /// The engine cannot be reached, or has no such order.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let endpoints = Endpoints::read(data_dir)?;
        let secrets = Secrets::read(data_dir)?;
        let amount = match (self.amount, self.currency) {
            (Some(amount_minor), Some(currency)) => Money { amount_minor, currency },
            (amount, currency) => {
                let costs = price(&endpoints, self.order).await?;
                Money {
                    amount_minor: amount.unwrap_or(costs.amount_minor),
                    currency: currency.unwrap_or(costs.currency),
                }
            }
        };
        let payment = self.payment.unwrap_or_else(|| format!("pi_{}", self.order));
        let client = reqwest::Client::builder().timeout(DEADLINE).build()?;
        capture(&client, &endpoints, &payment, self.order, amount).await?;
        if self.lost_callback {
            let report = json!({
                "order": self.order.to_string(), "payment": payment,
                "amount_minor": amount.amount_minor, "currency": amount.currency.to_string(),
            });
            let text = format!("{amount} for order {}: captured, and nobody told", self.order);
            return if json { out(&report) } else { out(&text) };
        }
        let now = Timestamp::now();
        let body = payment::captured(&payment, self.order, amount, now).to_string();
        let url = format!("{}{}", endpoints.gateway, payment::callback_path());
        let callback = client
            .post(url)
            .header(CONTENT_TYPE, "application/json")
            .header(payment::SIGNATURE_HEADER, payment::sign(&secrets, body.as_bytes(), now))
            .body(body);
        let reply = callback.send().await?;
        let status = reply.status();
        let text = reply.text().await?;
        let said: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let report = json!({
            "order": self.order.to_string(), "payment": payment,
            "amount_minor": amount.amount_minor, "currency": amount.currency.to_string(),
            "status": status.as_u16(), "reply": said,
        });
        if json {
            out(&report)?;
        } else {
            out(&format!("{amount} for order {}: {status} {said}", self.order))?;
        }
        Ok(if status.is_success() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }
}

/// The buyer's part: the provider takes the money.
async fn capture(
    client: &reqwest::Client,
    endpoints: &Endpoints,
    payment: &str,
    order: OrderNumber,
    amount: Money,
) -> Result<(), Failure> {
    let reply = client
        .post(format!("{}{}", endpoints.provider, payment::CAPTURE_PATH))
        .bearer_auth(API_KEY)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(payment::capture_form(payment, order, amount))
        .send()
        .await?;
    if reply.status().is_success() {
        return Ok(());
    }
    Err(format!("the payment provider says {}: {}", reply.status(), reply.text().await?).into())
}

/// What an order costs.
async fn price(endpoints: &Endpoints, order: OrderNumber) -> Result<Money, Failure> {
    let orders = DynamoOrders::new(stores::dynamo(endpoints));
    match orders.get(order).await? {
        Some(order) => Ok(order.total),
        None => Err(format!("there is no order {order}").into()),
    }
}

/// Print the Stripe-Signature header for the body on standard input.
///
/// For curl: the body must be sent as it was signed, byte for byte.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  printf %s \"$body\" | onsale sign")]
pub struct SignCommand {}

impl SignCommand {
    /// Prints the header's value.
    ///
    /// # Errors
    /// There is no secret to sign with, or no body.
    pub fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let secrets = Secrets::read(data_dir)?;
        let mut body = Vec::new();
        std::io::stdin().take(MAX_BODY_BYTES).read_to_end(&mut body)?;
        let signature = payment::sign(&secrets, &body, Timestamp::now());
        if json {
            out(&json!({ "header": payment::SIGNATURE_HEADER, "value": signature }))
        } else {
            out(&signature)
        }
    }
}
