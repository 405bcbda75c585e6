//! A published sale behind TLS, and events of each function that do real work in it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};

use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use lambda_http::{Body, Request, Response};
use local::data_dir::Secrets;
use local::handlers::{pay_callback, reserve, sales, token_gate};
use local::payment;
use local::up::{Engine, Options, ticket_secrets, webhook_keys};
use serde_json::{Value, json};
use shared::runtime::functions::QueueName;

use crate::Failure;
use crate::certificates::Authority;
use crate::proxy::Proxy;

const SALE: &str = "cold";
/// A sale of the same seats with a waiting room.
const ROOM_SALE: &str = "cold-room";
const PRICE_MINOR: i64 = 4500;
const ROW_SEATS: u32 = 50;

/// The function that every other one is compared with.
pub const HELLO: &str = "hello";
/// The same with a TLS connection to each service, and nothing said over them.
pub const CONNECTED: &str = "connected";

/// The servers, each behind TLS, and a sale on them.
pub struct Environment {
    engine: Engine,
    proxies: [Proxy; 4],
    authority: Authority,
    ca_file: tempfile::NamedTempFile,
    buyers: AtomicU32,
}

/// An order that somebody made.
struct Made {
    user: String,
    number: OrderNumber,
    amount: Money,
}

fn port_of(url: &str) -> Result<u16, Failure> {
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap_or_default();
    Ok(port.parse()?)
}

fn sale(seats: u32, are_listed: bool) -> Value {
    let names =
        |row: u32| (1..=ROW_SEATS).map(|seat| format!("{row}-{seat}")).collect::<Vec<String>>();
    let row = |row: u32| {
        let places = match are_listed {
            true => json!(names(row)),
            false => json!({ "prefix": format!("{row}-"), "first": 1, "count": ROW_SEATS }),
        };
        json!({ "row": row.to_string(), "seats": places })
    };
    let rows: Vec<Value> = (1..=seats.div_ceil(ROW_SEATS)).map(row).collect();
    json!({
        "sale": SALE, "title": "Cold", "currency": "EUR", "limit_per_buyer": 4,
        "pay_window_seconds": 900,
        "opens_at": "2024-01-01T00:00:00Z", "closes_at": "2099-12-31T23:59:59Z",
        "gate": { "shards": 4, "budget_percent": 150, "rate_per_second": 1_000_000,
            "user_lock_ms": 1, "token_seconds": 900 },
        "tiers": [{ "tier": "t0", "name": "Tier", "price_minor": PRICE_MINOR,
            "sections": [{ "section": "A", "rows": rows }] }],
    })
}

/// The same with a waiting room, which lets people join.
fn sale_with_room(seats: u32, are_listed: bool) -> Value {
    let mut file = sale(seats, are_listed);
    file["sale"] = json!(ROOM_SALE);
    file["opens_at"] = json!("2099-01-01T00:00:00Z");
    file["room"] = json!({});
    file
}

/// What API Gateway makes of a request: by a buyer, by the operator (`"operator"`), by anybody.
fn http_event(who: Option<&str>, method: &str, path: &str, headers: Value, body: &str) -> Value {
    let authorizer = match who {
        None => Value::Null,
        Some("operator") => {
            json!({ "iam": { "userArn": "arn:aws:iam::000000000000:user/operator" } })
        }
        Some(user) => json!({ "jwt": { "claims": { "sub": user }, "scopes": null } }),
    };
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": headers, "body": body, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "000000000000", "apiId": "api", "stage": "$default", "timeEpoch": 0,
            "requestId": "r", "authorizer": authorizer,
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1" }
        }
    })
}

fn json_event(who: Option<&str>, method: &str, path: &str, body: &Value) -> Value {
    let headers = json!({ "content-type": "application/json", "host": "tickets.example" });
    http_event(who, method, path, headers, &body.to_string())
}

fn sqs_event(body: &Value) -> Value {
    json!({ "Records": [{
        "messageId": "00000000-0000-4000-8000-000000000001", "receiptHandle": "receipt",
        "body": body.to_string(), "attributes": { "ApproximateReceiveCount": "1" },
        "messageAttributes": {}, "eventSource": "aws:sqs", "awsRegion": "us-east-1",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:queue"
    }]})
}

fn read(response: &Response<Body>) -> Result<Value, Failure> {
    if !response.status().is_success() {
        return Err(format!("{}: {:?}", response.status(), response.body()).into());
    }
    Ok(serde_json::from_slice(response.body())?)
}

fn request(event: &Value) -> Result<Request, Failure> {
    Ok(lambda_http::request::from_str(&event.to_string())?)
}

impl Environment {
    /// Starts everything and publishes a sale of `seats` seats, in rows of fifty. Its file lists the
    /// name of each, as those that importers write, or says what they begin with.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(seats: u32, are_listed: bool) -> Result<Self, Failure> {
        let engine = Engine::start(Options::ephemeral()).await?;
        let authority = Authority::new()?;
        let tls = authority.server(&["127.0.0.1"])?;
        let endpoints = engine.endpoints();
        let proxy = async |url: &str| {
            Proxy::start(port_of(url)?, Some(tls.clone())).await.map_err(Failure::from)
        };
        let proxies = [
            proxy(&endpoints.redis).await?,
            proxy(&endpoints.dynamodb).await?,
            proxy(&endpoints.sqs).await?,
            proxy(&endpoints.provider).await?,
        ];
        let ca_file = tempfile::NamedTempFile::new()?;
        std::fs::write(&ca_file, authority.pem())?;
        let environment = Self { engine, proxies, authority, ca_file, buyers: AtomicU32::new(0) };
        let put = json_event(
            Some("operator"),
            "PUT",
            &format!("/sales/{SALE}"),
            &sale(seats, are_listed),
        );
        let app = environment.engine.app();
        read(&Box::pin(sales::handle(app, request(&put)?)).await)?;
        let path = format!("/sales/{ROOM_SALE}");
        let put = json_event(Some("operator"), "PUT", &path, &sale_with_room(seats, are_listed));
        read(&Box::pin(sales::handle(app, request(&put)?)).await)?;
        Ok(environment)
    }

    /// What the functions find in their environment, as `template.yaml` sets it: AWS is found by the
    /// SDK's own variables, and every service is behind TLS.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let [redis, dynamodb, sqs, provider] = &self.proxies;
        let queues = self.engine.queues();
        // The address that a queue has on AWS begins with that of the service.
        let queue = |url: &str| {
            let path = url.split_once("://").map_or(url, |(_, rest)| rest);
            let path = path.split_once('/').map_or("", |(_, path)| path);
            format!("{}/{path}", sqs.http_url())
        };
        let secrets: &Secrets = self.engine.secrets();
        let urls = QueueName::ALL.map(|name| (name.url_variable(), queue(&queues.get(name).url)));
        let others = [
            ("ONSALE_REDIS_URL", redis.redis_url()),
            ("ONSALE_TABLE_PREFIX", self.engine.endpoints().table_prefix.clone()),
            ("ONSALE_ADMISSION_KEYS", format!("local:{}", base64(secrets.admission.as_bytes()))),
            (
                "ONSALE_ATTENDEE_KEYS",
                format!("local:{}", base64(format!("attendees:{}", secrets.admission).as_bytes())),
            ),
            (
                "ONSALE_CHALLENGE_KEYS",
                format!("local:{}", base64(format!("challenges:{}", secrets.admission).as_bytes())),
            ),
            ("ONSALE_TICKET_KEYS", ticket_secrets(secrets).text()),
            ("ONSALE_WEBHOOK_KEYS", webhook_keys(secrets).0.text()),
            ("ONSALE_CALLBACK_KEYS", payment::entry_key(secrets)),
            ("ONSALE_PAYMENT_SECRETS", format!("{}:{}", payment::PROVIDER, secrets.stripe)),
            ("ONSALE_PROVIDER_KEYS", format!("{}:{}", payment::PROVIDER, fake_payments::API_KEY)),
            ("ONSALE_PROVIDER_URLS", format!("{}:{}", payment::PROVIDER, provider.http_url())),
            ("ONSALE_CA_FILE", self.ca_file.path().display().to_string()),
            ("AWS_ENDPOINT_URL_DYNAMODB", dynamodb.http_url()),
            ("AWS_ENDPOINT_URL_SQS", sqs.http_url()),
            ("AWS_REGION", shared::runtime::app::LOCAL_REGION.to_owned()),
            ("AWS_ACCESS_KEY_ID", "local".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "local".to_owned()),
            ("AWS_SESSION_TOKEN", "local".to_owned()),
        ];
        others.into_iter().chain(urls).map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Number of connections made so far to Redis, DynamoDB, SQS and the payment provider.
    #[must_use]
    pub fn accepted(&self) -> [usize; 4] {
        self.proxies.each_ref().map(Proxy::accepted)
    }

    /// Authority that certifies the servers.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// An event that this function has not had yet, with real work in it.
    ///
    /// # Errors
    /// What it is about could not be made.
    pub fn event<'w>(
        &'w self,
        function: &'w str,
    ) -> Pin<Box<dyn Future<Output = Result<String, Failure>> + 'w>> {
        // Boxed: it contains handlers of the engine, which are large and deeply nested futures.
        Box::pin(self.made_event(function))
    }

    async fn made_event(&self, function: &str) -> Result<String, Failure> {
        let event = match function {
            HELLO | CONNECTED => json!({}),
            "sales" => json_event(None, "GET", &format!("/sales/{SALE}/availability"), &json!({})),
            "waiting-room" => {
                let path = format!("/sales/{ROOM_SALE}/places");
                json_event(Some(&self.user()), "POST", &path, &json!({}))
            }
            "token-gate" => self.admission(&self.user()),
            "reserve" => self.reservation(&self.user()).await?,
            "orders" => {
                let made = self.order().await?;
                json_event(Some(&made.user), "GET", &format!("/orders/{}", made.number), &json!({}))
            }
            "cancel" => {
                let made = self.order().await?;
                let path = format!("/orders/{}/cancel", made.number);
                json_event(Some(&made.user), "POST", &path, &json!({}))
            }
            "pay-callback" => self.callback(&self.order().await?, &payment::callback_path()),
            "take-callback" => {
                let path = payment::entry_path(self.engine.secrets());
                self.callback(&self.order().await?, &path)
            }
            "decide-payment" => {
                let made = self.order().await?;
                sqs_event(&json!({ "provider": payment::PROVIDER,
                    "payment": format!("pi_{}", made.number), "order": made.number,
                    "amount_minor": made.amount.amount_minor, "currency": made.amount.currency }))
            }
            "expire-orders" => {
                let made = self.order().await?;
                let due_at = Timestamp::now();
                sqs_event(&json!({ "sale": SALE, "order": made.number, "due_at": due_at }))
            }
            "sync-db" => sqs_event(&json!({ "order": self.order().await?.number })),
            "load-sale" => sqs_event(&json!({ "sale": SALE })),
            "refund" => {
                let made = self.underpaid().await?;
                let payment = format!("pi_{}", made.number);
                sqs_event(&json!({ "provider": payment::PROVIDER, "payment": payment,
                    "order": made.number, "amount_minor": made.amount.amount_minor,
                    "currency": made.amount.currency, "reason": "wrong_amount" }))
            }
            "reconcile" | "read-captures" | "read-bills" | "send-events" => json!({
                "version": "0", "id": "00000000-0000-4000-8000-000000000002",
                "detail-type": "Scheduled Event", "source": "aws.events", "account": "000000000000",
                "time": "2026-01-01T00:00:00Z", "region": "us-east-1", "resources": [], "detail": {}
            }),
            other => sample_event(other)?,
        };
        Ok(event.to_string())
    }

    fn user(&self) -> String {
        format!("buyer-{}", self.buyers.fetch_add(1, Ordering::Relaxed))
    }

    fn admission(&self, user: &str) -> Value {
        let path = format!("/sales/{SALE}/admissions");
        json_event(Some(user), "POST", &path, &json!({ "tickets": 2 }))
    }

    /// A reservation by a buyer whom the gate has let in.
    async fn reservation(&self, user: &str) -> Result<Value, Failure> {
        let asked = request(&self.admission(user))?;
        let admission = read(&Box::pin(token_gate::handle(self.engine.app(), asked)).await)?;
        let lines = json!([{ "tier": "t0", "best": { "count": 2, "together": "required" } }]);
        let body = json!({ "admission": admission["token"], "lines": lines });
        Ok(json_event(Some(user), "POST", &format!("/sales/{SALE}/orders"), &body))
    }

    async fn order(&self) -> Result<Made, Failure> {
        let user = self.user();
        let asked = request(&self.reservation(&user).await?)?;
        let order = read(&Box::pin(reserve::handle(self.engine.app(), asked)).await)?;
        let number = order["order"].as_str().unwrap_or_default().parse()?;
        let amount_minor = MinorUnits(order["amount_minor"].as_i64().unwrap_or_default());
        Ok(Made { user, number, amount: Money { amount_minor, currency: Currency::new("EUR")? } })
    }

    /// An order for which too little was paid. The engine's own consumer may be the first to send the
    /// money back.
    async fn underpaid(&self) -> Result<Made, Failure> {
        let mut made = self.order().await?;
        made.amount.amount_minor = made.amount.amount_minor - MinorUnits(1);
        let paid = request(&self.callback(&made, &payment::callback_path()))?;
        read(&Box::pin(pay_callback::handle(self.engine.app(), paid)).await)?;
        Ok(made)
    }

    fn callback(&self, made: &Made, path: &str) -> Value {
        let now = Timestamp::now();
        let paid = payment::captured(&format!("pi_{}", made.number), made.number, made.amount, now);
        let body = paid.to_string();
        let signature = payment::sign(self.engine.secrets(), body.as_bytes(), now);
        let headers = json!({ "content-type": "application/json",
            payment::SIGNATURE_HEADER.to_lowercase(): signature });
        http_event(None, "POST", path, headers, &body)
    }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The event of a function in `tests/events/`, for one that is not measured with an order of its own.
fn sample_event(function: &str) -> Result<Value, Failure> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/events");
    let event = std::fs::read_to_string(format!("{directory}/{function}.json"))
        .map_err(|error| format!("no event for {function}: {error}"))?;
    Ok(serde_json::from_str(&event)?)
}
