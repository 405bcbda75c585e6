//! The kinds of work that a sale is made of, each done by its handler and counted.
//!
//! The engine is on a thread of its own, so that its processor time is separate from that of the servers.

use std::time::Duration;

use aws_lambda_events::apigw::{
    ApiGatewayRequestAuthorizer, ApiGatewayRequestAuthorizerJwtDescription,
};
use aws_lambda_events::eventbridge::EventBridgeEvent;
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use axum::body::Bytes;
use chrono::Utc;
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::ports::messages::{Expiry, Message, Sync};
use http::{Method, StatusCode};
use local::handlers::{expire_orders, reconcile, refund, sync_db};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::runtime::app::App;
use shared::runtime::functions::Function;

use super::environment::{Environment, Look, base_micros};
use super::usage::Usage;
use super::{Assumptions, Failure, Options};
use crate::selling::{TIER, hall};
use local::gateway::{self, event};
use local::handlers;
use local::payment;

/// The sale that is bought from.
const SALE: &str = "cost";
/// A sale whose orders must be paid soon.
const SHORT: &str = "cost-short";
/// The payment window of that one, in seconds: the shortest that a sale may have.
const SHORT_SECONDS: u32 = 5;
/// A sale that has nothing left.
const SOLD_OUT: &str = "cost-sold-out";
/// Number of tickets of an order.
pub(super) const TICKETS: u16 = 2;
/// Number of messages that an invocation gets during an on-sale, at least.
const BATCH: usize = 10;
/// Work that opens connections and fills caches before the counting.
const WARM: usize = 3;
/// The megabytes at which a Lambda function has a whole processor.
/// Source: <https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html>
const PROCESSOR_MB: f64 = 1769.0;

/// A little more than the time between two turns of a room.
const TURN: Duration = Duration::from_millis(1_050);

/// A little more than the time between two calls of a provider, by the rate that the engine keeps to unless told.
const START: Duration = Duration::from_millis(60);
/// The same between two refunds, each of which reads those of its payment first.
const GIVING_BACK: Duration = Duration::from_millis(70);

/// The stack of the engine's thread: that of a function's main thread, as every Linux gives it.
const STACK_BYTES: usize = 8 << 20;

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Somebody looks at what is left.
    Look,
    /// Somebody is let in.
    Admission,
    /// Somebody is refused because nothing is left, before the engine is asked for seats.
    NotAdmitted,
    /// An order is made.
    Reservation,
    /// An order is refused: its seats are somebody's.
    Refusal,
    /// A payment is started at its provider.
    Start,
    /// A payment is taken.
    Payment,
    /// A paid order is counted.
    Counting,
    /// The time of an order that was paid is up.
    ExpiryOfPaid,
    /// The time of an order that was not paid is up.
    Expiry,
    /// An order is cancelled.
    Cancellation,
    /// A buyer looks at an order.
    Order,
    /// A paid order is asked to be given back.
    Refund,
    /// The money of a refund is sent back by its provider.
    GivingBack,
    /// The engine looks after one sale of which nothing is sold.
    Reconciliation,
    /// What that takes more for each thousand tickets that are sold.
    ReconciliationOfTickets,
    /// Somebody joins a waiting room.
    Join,
    /// A room document is answered from the cache.
    Document,
    /// A room document makes a turn.
    Turn,
    /// Somebody is refused whose place is not due.
    NotDue,
    /// Somebody is let in whose place is due, for the first time.
    Entrance,
}

impl Action {
    /// Every kind, in the order of reports.
    pub const ALL: [Self; 21] = [
        Self::Look,
        Self::Admission,
        Self::NotAdmitted,
        Self::Reservation,
        Self::Refusal,
        Self::Start,
        Self::Payment,
        Self::Counting,
        Self::ExpiryOfPaid,
        Self::Expiry,
        Self::Cancellation,
        Self::Order,
        Self::Refund,
        Self::GivingBack,
        Self::Reconciliation,
        Self::ReconciliationOfTickets,
        Self::Join,
        Self::Document,
        Self::Turn,
        Self::NotDue,
        Self::Entrance,
    ];

    /// Calls of a provider that its function waits for. A refund asks first for those of the payment.
    #[must_use]
    pub fn provider_calls(self) -> f64 {
        if self == Self::Start {
            1.0
        } else if self == Self::GivingBack {
            2.0
        } else {
            0.0
        }
    }

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "availability",
            Self::Admission => "admission",
            Self::NotAdmitted => "admission refused",
            Self::Reservation => "reservation",
            Self::Refusal => "reservation refused",
            Self::Start => "start of a payment",
            Self::Payment => "payment",
            Self::Counting => "counting of a paid order",
            Self::ExpiryOfPaid => "expiry message of a paid order",
            Self::Expiry => "expiry of an order",
            Self::Cancellation => "cancellation",
            Self::Order => "look at an order",
            Self::Refund => "request for a refund",
            Self::GivingBack => "refund at its provider",
            Self::Reconciliation => "reconcile, a sale",
            Self::ReconciliationOfTickets => "… for each 1,000 tickets",
            Self::Join => "join of a room",
            Self::Document => "room document",
            Self::Turn => "room document that makes a turn",
            Self::NotDue => "admission refused, place not due",
            Self::Entrance => "admission with a place",
        }
    }
}

/// Usage of one piece of each kind of work.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The mean of each, in the order of reports.
    pub actions: Vec<(Action, Usage)>,
    /// What the cheapest write to the cache took, in microseconds: its unit.
    pub cache_unit_micros: f64,
}

impl Measured {
    /// Usage of one piece of work.
    #[must_use]
    pub fn of(&self, action: Action) -> Usage {
        let found = self.actions.iter().find(|(one, _)| *one == action);
        found.map(|(_, usage)| *usage).unwrap_or_default()
    }
}

/// Does everything and counts.
pub(super) async fn measure(
    environment: &Environment,
    options: &Options,
) -> Result<Measured, Failure> {
    std::thread::scope(|scope| {
        let engine = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = engine.spawn_scoped(scope, || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let cache_unit_micros = base_micros(&mut environment.redis().await?).await?;
                let app = environment.app().await?;
                let worker = Worker { environment, app, options, cache_unit_micros };
                Ok(Measured { actions: Box::pin(worker.work()).await?, cache_unit_micros })
            })
        })?;
        // The servers' tasks must go on meanwhile.
        let joined = tokio::task::block_in_place(|| thread.join());
        joined.unwrap_or_else(|_panic| Err("the engine's thread failed".into()))
    })
}

/// The processor time of this thread so far, in nanoseconds.
/// Source: <https://man7.org/linux/man-pages/man3/clock_gettime.3.html>
fn thread_nanos() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as f64 * 1e9 + used.tv_nsec as f64
}

/// An order that was made.
#[derive(Debug, Clone)]
pub(super) struct Made {
    sale: SaleId,
    pub(super) user: String,
    pub(super) number: OrderNumber,
    pub(super) amount: Money,
    pay_by: Timestamp,
}

impl Made {
    /// Its payment, as the provider names it.
    pub(super) fn payment(&self) -> String {
        format!("pi_{}", self.number)
    }
}

/// One piece of work.
pub(super) enum Work {
    /// A request, as JSON, and the status of its answer.
    Http(Function, String, StatusCode),
    /// A request as JSON for a room document that is to make a turn.
    Turn(String),
    /// Orders whose time is up, in one batch.
    Expire(SqsEvent),
    /// Orders to count, in one batch.
    Count(SqsEvent),
    /// Refunds for their provider, in one batch.
    GiveBack(SqsEvent),
    /// One run of the schedule.
    Reconcile,
}

impl Work {
    /// Waits until it can be done: a turn a second, and the calls of a provider at their rate.
    async fn wait(&self) {
        match self {
            Self::Turn(_) => tokio::time::sleep(TURN).await,
            Self::Http(Function::StartPayment, ..) => tokio::time::sleep(START).await,
            Self::GiveBack(_) => tokio::time::sleep(GIVING_BACK).await,
            Self::Http(..) | Self::Expire(_) | Self::Count(_) | Self::Reconcile => {}
        }
    }

    /// Calls of a provider that a function waits for.
    fn provider_calls(&self) -> f64 {
        match self {
            Self::Http(Function::StartPayment, ..) => Action::Start.provider_calls(),
            Self::GiveBack(_) => Action::GivingBack.provider_calls(),
            Self::Http(..) | Self::Turn(_) | Self::Expire(_) | Self::Count(_) | Self::Reconcile => {
                0.0
            }
        }
    }

    /// True for a batch of messages.
    fn is_batch(&self) -> bool {
        matches!(self, Self::Expire(_) | Self::Count(_) | Self::GiveBack(_))
    }
}

/// Context of the work.
pub(super) struct Worker<'a> {
    pub(super) environment: &'a Environment,
    pub(super) app: App,
    options: &'a Options,
    cache_unit_micros: f64,
}

/// The sender of a request.
#[derive(Clone, Copy)]
pub(crate) enum Who<'a> {
    Anybody,
    Buyer(&'a str),
    Operator,
}

/// A request as the runtime hands it over.
pub(crate) fn request(
    who: Who<'_>,
    (method, path): (Method, &str),
    header: Option<(&str, &str)>,
    body: Option<&Value>,
) -> Result<String, Failure> {
    let mut builder =
        http::Request::builder().method(method).uri(path).header("host", "api.example.com");
    builder = builder.header("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0");
    if body.is_some() {
        builder = builder.header("content-type", "application/json");
    }
    if let Some((name, value)) = header {
        builder = builder.header(name, value);
    }
    let (parts, ()) = builder.body(())?.into_parts();
    let mut authorizer = ApiGatewayRequestAuthorizer::default();
    let authorizer = match who {
        Who::Anybody => None,
        Who::Buyer(user) => {
            let mut jwt = ApiGatewayRequestAuthorizerJwtDescription::default();
            jwt.claims.insert("sub".to_owned(), user.to_owned());
            authorizer.jwt = Some(jwt);
            Some(authorizer)
        }
        Who::Operator => {
            authorizer.iam = Some(gateway::operator("operator"));
            Some(authorizer)
        }
    };
    let facts = event::Facts {
        id: "cost".to_owned(),
        route: "$default",
        path_parameters: Default::default(),
        authorizer,
        peer: ([127, 0, 0, 1], 443).into(),
        at: Utc::now(),
    };
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    Ok(serde_json::to_string(&event::event(&parts, &body, facts))?)
}

/// A batch of messages.
pub(super) fn batch<M: Message>(messages: &[M]) -> Result<SqsEvent, Failure> {
    let mut records = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        records.push(json!({
            "messageId": index.to_string(), "receiptHandle": "r", "body": message.body()?,
            "eventSource": "aws:sqs", "attributes": { "ApproximateReceiveCount": "1" },
        }));
    }
    Ok(serde_json::from_value(json!({ "Records": records }))?)
}

impl Worker<'_> {
    /// All the work, in the order of reports.
    async fn work(&self) -> Result<Vec<(Action, Usage)>, Failure> {
        let times = self.options.times + WARM;
        let reconcile = || (0..times).map(|_| Work::Reconcile).collect();
        self.publish(SALE, self.options.seats, 900).await?;
        let of_one_sale = self.measured(reconcile(), 1).await?;
        let short = u32::try_from((times * BATCH * usize::from(TICKETS)).next_multiple_of(50))?;
        self.publish(SHORT, short, SHORT_SECONDS).await?;
        self.publish(SOLD_OUT, TICKETS.into(), 900).await?;
        let of_three = self.measured(reconcile(), 1).await?;

        let last = self.order(SOLD_OUT, "last").await?;
        self.http(&self.payment(&last)?).await?;
        let due = self.orders(SHORT, "due", times * BATCH).await?;
        let paying = self.orders(SALE, "pays", times * BATCH).await?;
        let cancelling = self.orders(SALE, "cancels", times).await?;
        let taken = self.order(SALE, "first").await?;
        let orders = self.measured(self.looks_at(&taken, times)?, 1).await?;
        let looks = self.measured(self.looks(times)?, 1).await?;
        let admissions =
            self.measured(self.admissions(SALE, times, StatusCode::CREATED)?, 1).await?;
        let late =
            self.measured(self.admissions(SOLD_OUT, times, StatusCode::CONFLICT)?, 1).await?;
        let refusals = self.measured(self.refusals(&taken, times).await?, 1).await?;
        let payments = paying.iter().map(|made| self.payment(made)).collect::<Result<_, _>>()?;
        let payments = self.measured(payments, 1).await?;
        let counting = paying.chunks(BATCH).map(counting).collect::<Result<_, _>>()?;
        let counting = self.measured(counting, BATCH).await?;
        let paid = paying.chunks(BATCH).map(expiry).collect::<Result<_, _>>()?;
        let expiries_of_paid = self.measured(paid, BATCH).await?;
        let cancellations = cancelling.iter().map(cancellation).collect::<Result<_, _>>()?;
        let cancellations = self.measured(cancellations, 1).await?;
        wait_until_due(&due).await;
        let expiries = due.chunks(BATCH).map(expiry).collect::<Result<_, _>>()?;
        let expiries = self.measured(expiries, BATCH).await?;

        // Sold, all of them: one that is only held is read in each comparison until it is paid.
        self.http(&self.payment(&taken)?).await?;
        let with_orders = self.measured(reconcile(), 1).await?;
        let live = paying.len() + 2;
        let reservations = self.measured(self.reservations(times).await?, 1).await?;
        let starts = self.starts(SALE, times).await?;
        let refunds = self.refunds(&paying[..times]).await?;
        let givings_back = self.givings_back(&paying[..times]).await?;
        // What is written more is the snapshot of a sale that has let somebody in: one a run, however much is sold.
        let more = Usage { write_units: 0.0, ..with_orders.beyond(of_three) };
        let of_tickets = 1000.0 / (live as f64 * f64::from(TICKETS));
        let mut all = vec![
            (Action::Look, looks),
            (Action::Admission, admissions),
            (Action::NotAdmitted, late),
            (Action::Reservation, reservations),
            (Action::Refusal, refusals),
            (Action::Start, starts),
            (Action::Payment, payments),
            (Action::Counting, counting),
            (Action::ExpiryOfPaid, expiries_of_paid),
            (Action::Expiry, expiries),
            (Action::Cancellation, cancellations),
            (Action::Order, orders),
            (Action::Refund, refunds),
            (Action::GivingBack, givings_back),
            (Action::Reconciliation, of_one_sale),
            (Action::ReconciliationOfTickets, more * of_tickets),
        ];
        all.extend(self.room(times).await?);
        Ok(all)
    }

    /// The mean of what pieces of work used, each of several messages; the first are not counted.
    pub(super) async fn measured(
        &self,
        work: Vec<Work>,
        messages: usize,
    ) -> Result<Usage, Failure> {
        let counted = (work.len() - WARM) as f64;
        let is_schedule = matches!(work.first(), Some(Work::Reconcile));
        // All functions but the schedule's that are measured here have the same memory.
        let function = if is_schedule { Function::Reconcile } else { Function::Reserve };
        let memory_mb = f64::from(function.row().memory_mib);
        let mut work = work.into_iter();
        for one in work.by_ref().take(WARM) {
            one.wait().await;
            self.perform(&one).await?;
        }
        let begun = self.environment.begin().await?;
        let mut usage = Usage::default();
        for one in work {
            one.wait().await;
            let before = thread_nanos();
            let egress_bytes = self.perform(&one).await?;
            let cpu_ms = (thread_nanos() - before) / 1e6;
            let asked = f64::from(u8::from(matches!(one, Work::Http(..) | Work::Turn(_))));
            let provider_ms = one.provider_calls() * self.options.assumptions.provider_ms;
            let batches = f64::from(u8::from(one.is_batch()));
            usage += Usage {
                http_requests: asked,
                invocations: 1.0,
                cpu_ms,
                // Half the memory is half a processor and takes twice as long: it costs the same.
                gb_seconds: cpu_ms / 1000.0 * PROCESSOR_MB / 1024.0
                    + provider_ms / 1000.0 * memory_mb / 1024.0,
                // Lambda receives a batch and deletes it.
                sqs_requests: 2.0 * batches,
                egress_bytes,
                log_bytes: self.options.assumptions.log_bytes,
                ..Usage::default()
            };
        }
        let look = self.environment.end(begun).await?;
        let Look { dynamodb, sqs, redis_calls, redis_trips, redis_scripts, .. } = look;
        let Assumptions { redis_ms, dynamodb_ms, sqs_ms, .. } = self.options.assumptions;
        let waits_ms = redis_trips * redis_ms + dynamodb.calls * dynamodb_ms + sqs.calls * sqs_ms;
        // A script counts by the processor's time, what is no script as one; or all by the bytes moved.
        let by_time = look.redis_micros / self.cache_unit_micros + (redis_calls - redis_scripts);
        let cache_units = by_time.max(look.redis_bytes / 1024.0);
        usage += Usage {
            gb_seconds: waits_ms / 1000.0 * memory_mb / 1024.0,
            dynamodb_calls: dynamodb.calls,
            read_units: dynamodb.reads,
            write_units: dynamodb.writes,
            sqs_requests: sqs.chunks,
            redis_trips,
            cache_units,
            ..Usage::default()
        };
        Ok(usage * (1.0 / (counted * messages as f64)))
    }

    /// Does one piece of work; how many bytes go out.
    async fn perform(&self, work: &Work) -> Result<f64, Failure> {
        match work {
            Work::Http(..) | Work::Turn(_) => Ok(self.http(work).await?.1),
            Work::Count(event) => done(sync_db::handle(&self.app, event.clone()).await),
            Work::GiveBack(event) => done(refund::handle(&self.app, event.clone()).await),
            Work::Expire(event) => done(expire_orders::handle(&self.app, event.clone()).await),
            Work::Reconcile => {
                let event = EventBridgeEvent::<Value>::default();
                let report = reconcile::handle(&self.app, event).await?;
                if report.failed == 0 { Ok(0.0) } else { Err(format!("{report:?}").into()) }
            }
        }
    }

    /// Answers a request; the answer's JSON, and how many bytes it has.
    pub(super) async fn http(&self, work: &Work) -> Result<(Value, f64), Failure> {
        let (function, event, status) = match work {
            Work::Http(function, event, status) => (function, event, status),
            Work::Turn(event) => (&Function::WaitingRoom, event, &StatusCode::OK),
            Work::Count(_) | Work::GiveBack(_) | Work::Expire(_) | Work::Reconcile => {
                return Err("no request".into());
            }
        };
        let request = lambda_http::request::from_str(event)?;
        let answer = handlers::answer(&self.app, *function, request).await;
        let headers =
            answer.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
        let head: usize = headers.sum();
        let body = answer.body().as_ref();
        if answer.status() != *status {
            let said = String::from_utf8_lossy(body);
            return Err(
                format!("{function:?}: {} instead of {status}: {said}", answer.status()).into()
            );
        }
        Ok((serde_json::from_slice(body)?, (head + body.len()) as f64))
    }

    async fn publish(
        &self,
        sale: &str,
        seats: u32,
        pay_window_seconds: u32,
    ) -> Result<(), Failure> {
        let mut file = serde_json::to_value(hall(sale, seats, 1)?)?;
        file["pay_window_seconds"] = json!(pay_window_seconds);
        if sale == SOLD_OUT {
            // Nobody is let in who could find nothing.
            file["gate"]["budget_percent"] = json!(100);
            file["gate"]["shards"] = json!(1);
        }
        let path = format!("/sales/{sale}");
        let event = request(Who::Operator, (Method::PUT, &path), None, Some(&file))?;
        self.http(&Work::Http(Function::Sales, event, StatusCode::OK)).await.map(drop)
    }

    fn admission(&self, sale: &str, user: &str, expected: StatusCode) -> Result<Work, Failure> {
        let path = format!("/sales/{sale}/admissions");
        let body = json!({ "tickets": TICKETS });
        let event = request(Who::Buyer(user), (Method::POST, &path), None, Some(&body))?;
        Ok(Work::Http(Function::TokenGate, event, expected))
    }

    fn admissions(
        &self,
        sale: &str,
        times: usize,
        expected: StatusCode,
    ) -> Result<Vec<Work>, Failure> {
        (0..times).map(|index| self.admission(sale, &format!("asks-{index}"), expected)).collect()
    }

    /// An order for seats, by somebody who has been let in.
    async fn reservation(
        &self,
        sale: &str,
        user: &str,
        seats: &Value,
        expected: StatusCode,
    ) -> Result<Work, Failure> {
        let admission = self.admission(sale, user, StatusCode::CREATED)?;
        let (admitted, _) = self.http(&admission).await?;
        let mut line = seats.clone();
        line["tier"] = json!(TIER);
        let body = json!({ "admission": admitted["token"], "lines": [line] });
        let path = format!("/sales/{sale}/orders");
        let event = request(Who::Buyer(user), (Method::POST, &path), None, Some(&body))?;
        Ok(Work::Http(Function::Reserve, event, expected))
    }

    async fn reservations(&self, times: usize) -> Result<Vec<Work>, Failure> {
        let mut all = Vec::new();
        for index in 0..times {
            let user = format!("reserves-{index}");
            all.push(self.reservation(SALE, &user, &best(), StatusCode::CREATED).await?);
        }
        Ok(all)
    }

    /// Orders for seats that somebody has.
    async fn refusals(&self, taken: &Made, times: usize) -> Result<Vec<Work>, Failure> {
        let path = format!("/orders/{}", taken.number);
        let event = request(Who::Buyer(&taken.user), (Method::GET, &path), None, None)?;
        let (order, _) = self.http(&Work::Http(Function::Orders, event, StatusCode::OK)).await?;
        let tickets = order["lines"][0]["tickets"].as_array().ok_or("an order has tickets")?;
        let seats: Vec<&Value> = tickets.iter().map(|ticket| &ticket["seat"]).collect();
        let mut all = Vec::new();
        for index in 0..times {
            let (user, seats) = (format!("refused-{index}"), json!({ "seats": seats }));
            all.push(self.reservation(SALE, &user, &seats, StatusCode::CONFLICT).await?);
        }
        Ok(all)
    }

    fn looks(&self, times: usize) -> Result<Vec<Work>, Failure> {
        let path = format!("/sales/{SALE}/availability");
        let event = request(Who::Anybody, (Method::GET, &path), None, None)?;
        let look = || Work::Http(Function::Sales, event.clone(), StatusCode::OK);
        Ok((0..times).map(|_| look()).collect())
    }

    fn looks_at(&self, made: &Made, times: usize) -> Result<Vec<Work>, Failure> {
        let path = format!("/orders/{}", made.number);
        let event = request(Who::Buyer(&made.user), (Method::GET, &path), None, None)?;
        let look = || Work::Http(Function::Orders, event.clone(), StatusCode::OK);
        Ok((0..times).map(|_| look()).collect())
    }

    /// Somebody makes an order for the best seats.
    async fn order(&self, sale: &str, user: &str) -> Result<Made, Failure> {
        let reservation = self.reservation(sale, user, &best(), StatusCode::CREATED).await?;
        let (order, _) = self.http(&reservation).await?;
        let text = |name: &str| order[name].as_str().ok_or("an order lacks a field");
        let amount_minor =
            MinorUnits(order["amount_minor"].as_i64().ok_or("an order lacks its amount")?);
        Ok(Made {
            sale: SaleId::new(sale)?,
            user: user.to_owned(),
            number: text("order")?.parse()?,
            amount: Money { amount_minor, currency: Currency::new(text("currency")?)? },
            pay_by: text("pay_by")?.parse()?,
        })
    }

    pub(super) async fn orders(
        &self,
        sale: &str,
        name: &str,
        count: usize,
    ) -> Result<Vec<Made>, Failure> {
        let mut made = Vec::new();
        for index in 0..count {
            made.push(self.order(sale, &format!("{name}-{index}")).await?);
        }
        Ok(made)
    }

    /// The provider's callback for an order.
    fn payment(&self, made: &Made) -> Result<Work, Failure> {
        let now = Timestamp::now();
        let mut body = payment::captured(&made.payment(), made.number, made.amount, now);
        // Payments are started here only, so that one counts that carries the deployment's id.
        body["data"]["object"]["metadata"] = json!({
            "onsale_deployment": self.environment.secrets().deployment()?,
            "onsale_order": made.number,
        });
        let signature = payment::sign(self.environment.secrets(), body.to_string().as_bytes(), now);
        let header = Some((payment::SIGNATURE_HEADER, signature.as_str()));
        let path = payment::callback_path();
        let event = request(Who::Anybody, (Method::POST, &path), header, Some(&body))?;
        Ok(Work::Http(Function::PayCallback, event, StatusCode::OK))
    }
}

fn best() -> Value {
    json!({ "best": { "count": TICKETS, "together": "required" } })
}

fn cancellation(made: &Made) -> Result<Work, Failure> {
    let path = format!("/orders/{}/cancel", made.number);
    let event = request(Who::Buyer(&made.user), (Method::POST, &path), None, None)?;
    Ok(Work::Http(Function::Cancel, event, StatusCode::OK))
}

fn counting(made: &[Made]) -> Result<Work, Failure> {
    let messages: Vec<Sync> = made.iter().map(|made| Sync { order: made.number }).collect();
    Ok(Work::Count(batch(&messages)?))
}

/// The messages of orders as the queue gives them out when it is time.
fn expiry(made: &[Made]) -> Result<Work, Failure> {
    let due_at = Timestamp::now();
    let message = |made: &Made| Expiry {
        sale: made.sale.clone(),
        tier: None,
        order: made.number,
        due_at: made.pay_by.min(due_at),
        heard_at: None,
    };
    Ok(Work::Expire(batch(&made.iter().map(message).collect::<Vec<_>>())?))
}

/// A batch of which nothing failed.
fn done(response: SqsBatchResponse) -> Result<f64, Failure> {
    let failed = response.batch_item_failures.len();
    if failed == 0 { Ok(0.0) } else { Err(format!("{failed} messages failed").into()) }
}

/// Until the payment window of every order is over.
async fn wait_until_due(orders: &[Made]) {
    let last = orders.iter().map(|made| made.pay_by).max();
    while last.is_some_and(|last| Timestamp::now() <= last) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
