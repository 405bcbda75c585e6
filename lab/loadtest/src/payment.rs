//! One payment at the payment provider of a running engine: money captured, and the signed callback
//! that the provider would send.

use std::time::{Duration, Instant};

use engine::domain::basics::money::Money;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::ports::{Orders as _, StoreError};
use fake_identity::{Identity, Role};
use fake_payments::API_KEY;
use local::data_dir::Secrets;
use local::endpoints::Endpoints;
use local::{payment, stores};
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;
use shared::dynamodb::DynamoOrders;
use shared::providers::stripe::{API_VERSION, VERSION_HEADER};

use super::pages::{Pages, Paid, Shares, Till};

/// The longest that the engine or the provider may take to answer.
const DEADLINE: Duration = Duration::from_secs(30);
/// Pause between two looks at an order.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Lifetime of the buyer's token, in seconds.
const TOKEN_SECONDS: u32 = 300;

#[derive(Debug, Clone)]
pub struct Payment {
    /// The provider's id for it; the same one twice is the same payment.
    pub id: String,
    /// The order that it is for.
    pub order: OrderNumber,
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
    /// A development token could not be signed.
    #[error(transparent)]
    Token(#[from] fake_identity::Refused),
    /// The engine has refused to start a payment.
    #[error("no payment was started: {status}: {text}")]
    NotStarted {
        /// The status of its reply.
        status: StatusCode,
        text: String,
    },
    /// The provider's page could not be used.
    #[error("the provider's page: {0}")]
    Page(String),
    /// The engine has not heard of it.
    #[error("payment {0} is captured, and its order does not show it yet")]
    Untold(String),
    /// The provider has refused.
    #[error("the payment provider says {status}: {text}")]
    Provider {
        /// The status of its reply.
        status: StatusCode,
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

/// What became of a payment that was made on a page.
#[derive(Debug, Clone)]
pub struct OnPage {
    /// The provider's name of the payment.
    pub payment: String,
    /// The amount of the order.
    pub amount: Money,
    /// The outcome, as the order shows it.
    pub outcome: Value,
}

/// Pays an order as its buyer would: starts a payment at the engine, pays on the provider's page, and waits until
/// the order shows what the provider has told.
///
/// # Errors
/// There is no such order, or one of them refuses or does not answer.
pub async fn pay_on_page(
    endpoints: &Endpoints,
    secrets: &Secrets,
    number: OrderNumber,
    till: Till,
) -> Result<OnPage, Error> {
    let orders = DynamoOrders::new(stores::dynamo(endpoints));
    let order = orders.get(number).await?.ok_or(Error::NoSuchOrder(number))?;
    let token = buyer_token(secrets, order.user.as_str())?;
    let (client, url) = (client()?, format!("{}/orders/{number}", endpoints.gateway));
    let start = client.post(format!("{url}/payments")).bearer_auth(&token);
    let start = start.header(CONTENT_TYPE, "application/json").body(till.request(number));
    let reply = start.send().await?;
    let status = reply.status();
    if !status.is_success() {
        return Err(Error::NotStarted { status, text: reply.text().await? });
    }
    let started = reply.json().await?;
    let pages = Pages::new(endpoints, Shares::default())?;
    let payment = match pages.pay(till, &started).await.map_err(Error::Page)? {
        Paid::Taken(payment) => payment,
        Paid::Over => return Err(Error::Page("it takes no payment any more".to_owned())),
    };
    let until = Instant::now() + DEADLINE;
    while Instant::now() < until {
        let shown: Value = client.get(&url).bearer_auth(&token).send().await?.json().await?;
        let payments = shown["payments"].as_array().into_iter().flatten();
        let found = payments.into_iter().find(|shown| shown["payment"] == payment.as_str());
        if let Some(found) = found {
            let outcome = found["outcome"].clone();
            return Ok(OnPage { payment, amount: order.total, outcome });
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Err(Error::Untold(payment))
}

/// A development token of a buyer.
///
/// # Errors
/// Fails if the user is none that a token can have.
pub fn buyer_token(secrets: &Secrets, user: &str) -> Result<String, fake_identity::Refused> {
    let identity = Identity::new(secrets.identity.as_bytes());
    identity.token(user, Role::Buyer, Timestamp::now(), TOKEN_SECONDS)
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
        .header(VERSION_HEADER, API_VERSION)
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
