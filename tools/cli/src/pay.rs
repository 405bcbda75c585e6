//! `onsale pay` and `onsale sign`: the payment provider's part.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use serde_json::json;

use super::{DECLINED, Failure, out};
use loadtest::pages::Till;
use loadtest::payment::{self, OnPage, Payment};
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::payment::{SIGNATURE_HEADER, sign};

/// The largest body that is signed; the engine takes smaller ones only.
const MAX_BODY_BYTES: u64 = 1024 * 1024;

/// Pay an order as its buyer would: start a payment, pay on the provider's page, and wait until the engine has
/// heard of it from the provider. With any option but --at, capture the money at the provider instead, and send
/// the engine the signed callback that Stripe would send.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  onsale pay --order 4611686018427387905                   what it costs, on a page of Stripe's
  onsale pay --order 4611686018427387905 --at wechat       by a code of WeChat Pay's, if it costs CNY
  onsale pay --order 4611686018427387905 --amount 1 --currency EUR   too little: it is refunded
  onsale pay --order 4611686018427387905 --payment pi_2    another payment of the same order
  onsale pay --order 4611686018427387905 --lost-callback   the engine finds it when it asks")]
pub struct PayCommand {
    /// The order's number.
    #[arg(long, value_name = "NUMBER")]
    order: OrderNumber,
    /// How much, in minor units [default: what the order costs]
    #[arg(long, value_name = "MINOR", requires = "currency")]
    amount: Option<MinorUnits>,
    /// In which currency [default: the order's]
    #[arg(long, value_name = "CODE", value_parser = Currency::new)]
    currency: Option<Currency>,
    /// The payment's id; the same one twice is the same payment [default: made from the order]
    #[arg(long, value_name = "ID")]
    payment: Option<String>,
    /// Only capture the money: the callback is lost on its way.
    #[arg(long)]
    lost_callback: bool,
    /// Start nothing: capture the money, and call back.
    #[arg(long)]
    call_back: bool,
    /// The provider on whose page it is paid: stripe, wechat or alipay.
    #[arg(long, value_name = "PROVIDER", default_value = "stripe", value_parser = till,
          conflicts_with_all = ["amount", "payment", "lost_callback", "call_back"])]
    at: Till,
}

fn till(name: &str) -> Result<Till, &'static str> {
    Till::of(name).ok_or("must be stripe, wechat or alipay")
}

impl PayCommand {
    /// Sends the callback and prints the reply.
    ///
    /// # Errors
    /// The engine cannot be reached, or has no such order.
    pub async fn run(self, data_dir: &Path, json: bool) -> Result<ExitCode, Failure> {
        let endpoints = Endpoints::read(data_dir)?;
        let secrets = Secrets::read(data_dir)?;
        let is_direct = self.lost_callback || self.call_back || self.payment.is_some();
        if !is_direct && self.amount.is_none() && self.currency.is_none() {
            return self.on_page(&endpoints, &secrets, json).await;
        }
        let amount = match (self.amount, self.currency) {
            (Some(amount_minor), Some(currency)) => Money { amount_minor, currency },
            (amount, currency) => {
                let costs = payment::price(&endpoints, self.order).await?;
                Money {
                    amount_minor: amount.unwrap_or(costs.amount_minor),
                    currency: currency.unwrap_or(costs.currency),
                }
            }
        };
        let id = self.payment.unwrap_or_else(|| format!("pi_{}", self.order));
        let payment = Payment { id, order: self.order, amount };
        payment::capture(&endpoints, &payment).await?;
        let mut report = json!({
            "order": payment.order.to_string(), "payment": payment.id,
            "amount_minor": amount.amount_minor, "currency": amount.currency.to_string(),
        });
        if self.lost_callback {
            let text = format!("{amount} for order {}: captured, and nobody told", payment.order);
            return if json { out(&report) } else { out(&text) };
        }
        let (status, said) = payment::call_back(&endpoints, &secrets, &payment).await?;
        if json {
            report["status"] = json!(status.as_u16());
            report["reply"] = said;
            out(&report)?;
        } else {
            out(&format!("{amount} for order {}: {status} {said}", payment.order))?;
        }
        Ok(if status.is_success() { ExitCode::SUCCESS } else { ExitCode::from(DECLINED) })
    }

    async fn on_page(
        &self,
        endpoints: &Endpoints,
        secrets: &Secrets,
        json: bool,
    ) -> Result<ExitCode, Failure> {
        let (order, provider) = (self.order, self.at.provider());
        let paid = match payment::pay_on_page(endpoints, secrets, order, self.at).await {
            Ok(paid) => paid,
            Err(refused @ payment::Error::NotStarted { .. }) => {
                out(&refused.to_string())?;
                return Ok(ExitCode::from(DECLINED));
            }
            Err(error) => return Err(error.into()),
        };
        let OnPage { payment, amount, outcome } = paid;
        if json {
            out(&json!({
                "order": order.to_string(), "provider": provider, "payment": payment,
                "amount_minor": amount.amount_minor, "currency": amount.currency.to_string(),
                "status": 200, "reply": { "outcome": outcome },
            }))
        } else {
            out(&format!("{amount} for order {order} at {provider}: {outcome}"))
        }
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
        let signature = sign(&secrets, &body, Timestamp::now());
        if json {
            out(&json!({ "header": SIGNATURE_HEADER, "value": signature }))
        } else {
            out(&signature)
        }
    }
}
