//! The requests that are counted, one kind a row of the table.

use std::convert::Infallible;
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use lambda_http::request::LambdaRequest;
use lambda_http::{
    Adapter, Body, Context, LambdaEvent, Request, Response, Service as _, service_fn,
};
use local::handlers::{
    award_points, cancel, draw, expire_orders, orders, pay_callback, reserve, sales, start_payment,
    sync_db, token_gate, waiting_room,
};
use local::payment;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::environment::{AMPLE_SECONDS, DEPLOYMENT, Environment, Failure};
use crate::event::{self, Sender};
use crate::room::{self, Before};

/// The sale that is bought from.
const SALE: &str = "costs";
/// A sale whose orders must be paid soon.
const SHORT: &str = "costs-short";
/// A sale that gives points.
const GIVES: &str = "costs-points";
/// A sale that has nothing left.
const SOLD_OUT: &str = "costs-sold-out";
/// Number of seats of an order.
const SEATS: u16 = 2;
/// Number of messages of the batch of the sync queue.
const BATCH: usize = 10;

/// Beginning of the answers that are expected.
pub(crate) const OK: &str = r#"{"statusCode":200"#;
pub(crate) const CREATED: &str = r#"{"statusCode":201"#;
const CONFLICT: &str = r#"{"statusCode":409"#;
const INVALID: &str = r#"{"statusCode":422"#;
pub(crate) const ALL_DONE: &str = r#"{"batchItemFailures":[]"#;

/// Function that gets an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    TokenGate,
    Reserve,
    Orders,
    Cancel,
    StartPayment,
    PayCallback,
    Sales,
    ExpireOrders,
    SyncDb,
    AwardPoints,
    WaitingRoom,
    Draw,
}

/// One request, ready to be handled.
#[derive(Debug, Clone)]
pub struct Work {
    function: Function,
    event: String,
    /// Beginning of the answer: its status, or the messages that failed.
    expect: &'static str,
    before: Before,
}

/// Requests of one kind.
#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    /// Each does the same work, for a buyer or an order of its own.
    pub works: Vec<Work>,
}

impl Work {
    pub(crate) fn new(function: Function, event: String, expect: &'static str) -> Self {
        Self { function, event, expect, before: Before::Anything }
    }

    /// The same, counted when this is so.
    pub(crate) fn when(self, before: Before) -> Self {
        Self { before, ..self }
    }

    /// Waits until the request does the work of its kind. To be awaited before it is counted.
    ///
    /// # Errors
    /// A server refuses.
    pub async fn wait(&self, environment: &Environment) -> Result<(), Failure> {
        self.before.wait(environment).await
    }

    /// Reads the event, handles it, and writes the answer.
    ///
    /// # Panics
    /// Panics if the answer is not the one expected: then something else would be counted.
    pub async fn perform(&self, environment: &Environment) -> Vec<u8> {
        let (app, event) = (&environment.app, self.event.as_str());
        let answer = match self.function {
            Function::TokenGate => http(event, |request| token_gate::handle(app, request)).await,
            Function::Reserve => http(event, |request| reserve::handle(app, request)).await,
            Function::Orders => http(event, |request| orders::handle(app, request)).await,
            Function::Cancel => http(event, |request| cancel::handle(app, request)).await,
            Function::StartPayment => {
                let app = &environment.paid_app;
                http(event, |request| start_payment::handle(app, request)).await
            }
            Function::PayCallback => {
                http(event, |request| pay_callback::handle(app, request)).await
            }
            Function::Sales => http(event, |request| sales::handle(app, request)).await,
            Function::ExpireOrders => json(&expire_orders::handle(app, messages(event)).await),
            Function::SyncDb => json(&sync_db::handle(app, messages(event)).await),
            Function::AwardPoints => json(&award_points::handle(app, messages(event)).await),
            Function::WaitingRoom => {
                http(event, |request| waiting_room::handle(app, request)).await
            }
            Function::Draw => json(&draw::handle(app, messages(event)).await),
        };
        let text = std::str::from_utf8(&answer).unwrap_or("no text");
        let is_expected = text.starts_with(self.expect);
        assert!(is_expected, "{:?} instead of {}: {text}", self.function, self.expect);
        answer
    }
}

/// Does what the Lambda runtime does with an HTTP function.
async fn http<F, R>(event: &str, handle: F) -> Vec<u8>
where
    F: Fn(Request) -> R,
    R: Future<Output = Response<Body>> + Send,
{
    let service = service_fn(|request: Request| {
        let answer = handle(request);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let request: LambdaRequest = read(event);
    let event = LambdaEvent::new(request, Context::default());
    match Adapter::from(service).call(event).await {
        Ok(response) => json(&response),
        Err(never) => match never {},
    }
}

fn messages(event: &str) -> SqsEvent {
    read(event)
}

fn read<T: DeserializeOwned>(event: &str) -> T {
    serde_json::from_str(event).unwrap_or_else(|error| panic!("our own event: {error}: {event}"))
}

fn json(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_else(|error| panic!("an answer is JSON: {error}"))
}

/// Makes `count` requests of every kind, on a environment that is new.
///
/// # Errors
/// Something that they need could not be made.
pub async fn prepare(environment: &Environment, count: usize) -> Result<Vec<Case>, Failure> {
    let preparation = Preparation { environment };
    let sales = [
        (SALE, AMPLE_SECONDS, 60),
        (GIVES, AMPLE_SECONDS, 2),
        (SHORT, 5, 4),
        (SOLD_OUT, AMPLE_SECONDS, 1),
    ];
    for (sale, pay_window_seconds, rows) in sales {
        preparation.publish(sale, pay_window_seconds, rows).await?;
    }
    let last = preparation.order(SOLD_OUT, "last").await?;
    preparation.paid(&last).await;

    let users = |name: &'static str| (0..count).map(move |index| format!("{name}-{index}"));
    let mut admitted = Vec::new();
    for user in users("reserves") {
        admitted.push((preparation.admission(SALE, &user).await?, user));
    }
    let looked_at = preparation.order(SALE, "looks").await?;
    let repeated = preparation.order(SALE, "repeats").await?;
    let cancelled = preparation.orders(SALE, "cancels", count).await?;
    let starting = preparation.orders(SALE, "starts", count).await?;
    let paying = preparation.orders(SALE, "pays", count).await?;
    let counted = preparation.orders(SALE, "counted", count).await?;
    let batches = preparation.orders(SALE, "batch", count * BATCH).await?;
    let gives = preparation.orders(GIVES, "gives", count).await?;
    for made in counted.iter().chain(&batches).chain(&gives) {
        preparation.paid(made).await;
    }

    let get = |path: &str| vec![public(path); count];
    let own = |path: &str| {
        let event = event::http(Sender::Buyer("looks"), "GET", path, None, None);
        vec![Work::new(Function::Orders, event, OK); count]
    };
    let case = |name, works| Case { name, works };
    let mut cases = vec![
        case("token-gate", users("asks").map(|user| admission(SALE, &user, CREATED)).collect()),
        case(
            "token-gate: sold out",
            users("late").map(|user| admission(SOLD_OUT, &user, CONFLICT)).collect(),
        ),
        case("reserve", admitted.iter().map(|(token, user)| reserve(SALE, user, token)).collect()),
        case("reserve: repeated", vec![reserve(SALE, &repeated.user, &repeated.admission); count]),
        case("reserve: invalid body", vec![invalid(); count]),
        case("order", own(&format!("/orders/{}", looked_at.number))),
        case("orders", own("/orders")),
        case("cancel", cancelled.iter().map(cancel).collect()),
        case("start-payment", starting.iter().map(start).collect()),
        case("pay-callback", paying.iter().map(|made| preparation.payment(made)).collect()),
        case("sales", get("/sales")),
        case("sale", get(&format!("/sales/{SALE}"))),
        case("availability", get(&format!("/sales/{SALE}/availability"))),
        case("sync-db", counted.chunks(1).map(syncs).collect()),
        case("sync-db: batch of 10", batches.chunks(BATCH).map(syncs).collect()),
        case("award-points", gives.iter().map(awards).collect()),
    ];
    cases.extend(room::cases(&preparation, count).await?);
    // Made last and counted first: an order that has been due for long is given up by other means than one that
    // is due now, and on a busy machine all the others take long.
    let due = preparation.orders(SHORT, "due", count).await?;
    cases.insert(0, case("expire-orders", due.iter().map(expiry).collect()));
    preparation.wait_until_due(&due).await;
    Ok(cases)
}

/// An order that was made.
#[derive(Debug)]
struct Made {
    sale: SaleId,
    user: String,
    admission: String,
    number: OrderNumber,
    amount: Money,
    pay_by: Timestamp,
}

fn admission(sale: &str, user: &str, expect: &'static str) -> Work {
    let body = json!({ "tickets": SEATS });
    let path = format!("/sales/{sale}/admissions");
    let event = event::http(Sender::Buyer(user), "POST", &path, None, Some(&body));
    Work::new(Function::TokenGate, event, expect)
}

fn reserve(sale: &str, user: &str, admission: &str) -> Work {
    let body = json!({
        "admission": admission,
        "lines": [{ "tier": "hall", "best": { "count": SEATS, "together": "required" } }],
    });
    let path = format!("/sales/{sale}/orders");
    let event = event::http(Sender::Buyer(user), "POST", &path, None, Some(&body));
    Work::new(Function::Reserve, event, CREATED)
}

fn invalid() -> Work {
    let body = json!({ "lines": "two" });
    let path = format!("/sales/{SALE}/orders");
    let event = event::http(Sender::Buyer("wrong"), "POST", &path, None, Some(&body));
    Work::new(Function::Reserve, event, INVALID)
}

fn cancel(made: &Made) -> Work {
    let path = format!("/orders/{}/cancel", made.number);
    let event = event::http(Sender::Buyer(&made.user), "POST", &path, None, None);
    Work::new(Function::Cancel, event, OK)
}

fn start(made: &Made) -> Work {
    let path = format!("/orders/{}/payments", made.number);
    let body = json!({ "provider": payment::PROVIDER, "method": "form" });
    let event = event::http(Sender::Buyer(&made.user), "POST", &path, None, Some(&body));
    Work::new(Function::StartPayment, event, OK)
}

fn public(path: &str) -> Work {
    let event = event::http(Sender::Nobody, "GET", path, None, None);
    Work::new(Function::Sales, event, OK)
}

fn expiry(made: &Made) -> Work {
    let Made { sale, number, pay_by, .. } = made;
    let body = json!({ "sale": sale, "order": number, "due_at": pay_by });
    let event = event::sqs(&[body.to_string()]);
    Work::new(Function::ExpireOrders, event, ALL_DONE)
}

fn syncs(orders: &[Made]) -> Work {
    let body = |made: &Made| json!({ "order": made.number }).to_string();
    let event = event::sqs(&orders.iter().map(body).collect::<Vec<_>>());
    Work::new(Function::SyncDb, event, ALL_DONE)
}

fn awards(made: &Made) -> Work {
    let event = event::sqs(&[json!({ "order": made.number, "facts": 2 }).to_string()]);
    Work::new(Function::AwardPoints, event, ALL_DONE)
}

/// Makes what requests need, by other requests.
pub(crate) struct Preparation<'a> {
    pub(crate) environment: &'a Environment,
}

impl Preparation<'_> {
    async fn publish(&self, sale: &str, pay_window: u32, rows: u32) -> Result<(), Failure> {
        let row = |row: u32| {
            let seats = if sale == SOLD_OUT { u32::from(SEATS) } else { 50 };
            json!({ "row": row.to_string(), "seats": { "prefix": format!("{row}-"), "first": 1, "count": seats } })
        };
        let rows: Vec<Value> = (1..=rows).map(row).collect();
        let mut file = json!({
            "sale": sale, "title": "A hall", "currency": "EUR", "limit_per_buyer": 4,
            "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-12-31T23:59:59Z",
            "pay_window_seconds": pay_window,
            "gate": { "shards": 1, "budget_percent": 100, "rate_per_second": 1_000_000, "user_lock_ms": 1,
                "token_seconds": AMPLE_SECONDS },
            "tiers": [{ "tier": "hall", "name": "Hall", "price_minor": 2500,
                "sections": [{ "section": "A", "rows": rows }] }],
        });
        if sale == GIVES {
            file["points"] = json!({ "per_minor": 100, "points": 2, "growth": 1 });
        }
        let path = format!("/sales/{sale}");
        let event = event::http(Sender::Operator, "PUT", &path, None, Some(&file));
        Work::new(Function::Sales, event, OK).perform(self.environment).await;
        Ok(())
    }

    async fn admission(&self, sale: &str, user: &str) -> Result<String, Failure> {
        let answer = admission(sale, user, CREATED).perform(self.environment).await;
        Ok(body(&answer)?["token"].as_str().ok_or("no token")?.to_owned())
    }

    async fn order(&self, sale: &str, user: &str) -> Result<Made, Failure> {
        let admission = self.admission(sale, user).await?;
        let order = body(&reserve(sale, user, &admission).perform(self.environment).await)?;
        let text = |name: &str| order[name].as_str().ok_or("an order lacks a field");
        let amount_minor =
            MinorUnits(order["amount_minor"].as_i64().ok_or("an order lacks its amount")?);
        let amount = Money { amount_minor, currency: Currency::new(text("currency")?)? };
        let (number, pay_by) = (text("order")?.parse()?, text("pay_by")?.parse()?);
        let (sale, user) = (SaleId::new(sale)?, user.to_owned());
        Ok(Made { sale, user, admission, number, amount, pay_by })
    }

    async fn orders(&self, sale: &str, name: &str, count: usize) -> Result<Vec<Made>, Failure> {
        let mut made = Vec::with_capacity(count);
        for index in 0..count {
            made.push(self.order(sale, &format!("{name}-{index}")).await?);
        }
        Ok(made)
    }

    /// The provider's callback for an order.
    fn payment(&self, made: &Made) -> Work {
        let Made { number, amount, .. } = *made;
        let now = Timestamp::now();
        let mut body = payment::captured(&format!("pi_{number}"), number, amount, now);
        body["data"]["object"]["metadata"] =
            json!({ "onsale_deployment": DEPLOYMENT, "onsale_order": number });
        let signature = self.environment.sign(body.to_string().as_bytes());
        let header = Some(("stripe-signature", signature.as_str()));
        let path = payment::callback_path();
        let event = event::http(Sender::Nobody, "POST", &path, header, Some(&body));
        Work::new(Function::PayCallback, event, OK)
    }

    async fn paid(&self, made: &Made) {
        self.payment(made).perform(self.environment).await;
    }

    /// Until the payment window of every order is over.
    async fn wait_until_due(&self, orders: &[Made]) {
        for order in orders {
            while Timestamp::now() < order.pay_by {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

/// The body of an answer.
pub(crate) fn body(answer: &[u8]) -> Result<Value, Failure> {
    let answer: Value = serde_json::from_slice(answer)?;
    Ok(serde_json::from_str(answer["body"].as_str().ok_or("an answer without a body")?)?)
}
