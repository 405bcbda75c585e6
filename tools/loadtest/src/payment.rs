//! One payment at the payment provider of a running engine: money captured, and the signed callback
//! that the provider would send.

use std::time::Duration;

use engine::domain::money::Money;
use engine::domain::number::OrderNumber;
use engine::domain::time::Timestamp;
use engine::ports::{Orders as _, StoreError};
use fake_payments::API_KEY;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::{payment, stores};
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use shared::dynamodb::DynamoOrders;

/// The longest that the engine or the provider may take to answer.
const DEADLINE: Duration = Duration::from_secs(30);

/// A payment.
#[derive(Debug, Clone)]
pub struct Payment {
    /// The provider's id for it; the same one twice is the same payment.
    pub id: String,
    /// The order that it is for.
    pub order: OrderNumber,
    /// The captured amount.
    pub amount: Money,
}

/// Why a payment was not made, or not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// DynamoDB cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such order.
    #[error("there is no order {0}")]
    NoSuchOrder(OrderNumber),
    /// The provider or the engine does not answer.
    #[error(transparent)]
    Client(#[from] reqwest::Error),
    /// The provider has refused.
    #[error("the payment provider says {status}: {text}")]
    Provider {
        /// The status of its reply.
        status: StatusCode,
        /// Its reply.
        text: String,
    },
}

/// What an order costs.
///
/// # Errors
/// There is no such order, or DynamoDB cannot be read.
pub async fn price(endpoints: &Endpoints, order: OrderNumber) -> Result<Money, Error> {
    let orders = DynamoOrders::new(stores::dynamo(endpoints));
    let found = orders.get(order).await?;
    found.map(|order| order.total).ok_or(Error::NoSuchOrder(order))
}

/// Captures the money at the provider.
///
/// # Errors
/// The provider does not answer, or refuses.
pub async fn capture(endpoints: &Endpoints, payment: &Payment) -> Result<(), Error> {
    let Payment { id, order, amount } = payment;
    let reply = client()?
        .post(format!("{}{}", endpoints.provider, payment::CAPTURE_PATH))
        .bearer_auth(API_KEY)
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(payment::capture_form(id, *order, *amount))
        .send()
        .await?;
    let status = reply.status();
    if status.is_success() {
        return Ok(());
    }
    Err(Error::Provider { status, text: reply.text().await? })
}

/// Sends the engine the callback of a captured payment; the status and the body of its reply.
///
/// # Errors
/// The engine does not answer.
pub async fn call_back(
    endpoints: &Endpoints,
    secrets: &Secrets,
    payment: &Payment,
) -> Result<(StatusCode, Value), Error> {
    let Payment { id, order, amount } = payment;
    let now = Timestamp::now();
    let body = payment::captured(id, *order, *amount, now).to_string();
    let reply = client()?
        .post(format!("{}{}", endpoints.gateway, payment::callback_path()))
        .header(CONTENT_TYPE, "application/json")
        .header(payment::SIGNATURE_HEADER, payment::sign(secrets, body.as_bytes(), now))
        .body(body)
        .send()
        .await?;
    let status = reply.status();
    let text = reply.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}

fn client() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder().timeout(DEADLINE).build()
}
