//! Events as AWS makes them, written as JSON by hand: what our own gateway makes of a request is not
//! what these tests are to rest on.

use serde_json::{Value, json};

/// The sender of a request, as the authorizers say.
#[derive(Debug, Clone, Copy)]
pub enum Sender<'a> {
    Nobody,
    /// The bearer of a token that the JWT authorizer has verified.
    Buyer(&'a str),
    /// Whoever signed with IAM.
    Operator,
}

#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub sender: Sender<'a>,
    pub method: &'a str,
    pub target: String,
    pub headers: Vec<(&'a str, String)>,
    pub body: String,
}

impl<'a> Request<'a> {
    /// A request without a body.
    pub fn get(sender: Sender<'a>, target: impl Into<String>) -> Self {
        Self {
            sender,
            method: "GET",
            target: target.into(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// A request with JSON.
    pub fn json(
        sender: Sender<'a>,
        method: &'a str,
        target: impl Into<String>,
        body: &Value,
    ) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { sender, method, target: target.into(), headers, body: body.to_string() }
    }

    /// The event of API Gateway's HTTP API, payload format 2.0:
    /// <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html>
    pub fn event(&self, route: &str) -> Value {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let mut headers = json!({
            "accept": "*/*", "host": "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com",
            "user-agent": "curl/8.14.1", "x-amzn-trace-id": "Root=1-6740c3d1-2f5c0d6b0d5d3f3e6e5f4a3b",
            "x-forwarded-for": "203.0.113.7", "x-forwarded-port": "443", "x-forwarded-proto": "https",
            "content-length": self.body.len().to_string(),
        });
        for (name, value) in &self.headers {
            headers[name] = json!(value);
        }
        let mut event = json!({
            "version": "2.0", "routeKey": route, "rawPath": path, "rawQueryString": query,
            "headers": headers, "isBase64Encoded": false,
            "requestContext": {
                "accountId": "123456789012", "apiId": "a1b2c3d4e5", "authentication": null,
                "domainName": "a1b2c3d4e5.execute-api.eu-central-1.amazonaws.com", "domainPrefix": "a1b2c3d4e5",
                "http": { "method": self.method, "path": path, "protocol": "HTTP/1.1",
                    "sourceIp": "203.0.113.7", "userAgent": "curl/8.14.1" },
                "requestId": "JKJaXmPLvHcESHA=", "routeKey": route, "stage": "$default",
                "time": "21/Nov/2026:10:00:00 +0000", "timeEpoch": 1_795_255_200_000_i64,
            },
        });
        if !self.body.is_empty() {
            event["body"] = json!(self.body);
        }
        if !query.is_empty() {
            let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            event["queryStringParameters"] =
                pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect();
        }
        if let Some(parameters) = path_parameters(route, path) {
            event["pathParameters"] = parameters;
        }
        match self.sender {
            Sender::Nobody => {}
            Sender::Buyer(sub) => {
                event["requestContext"]["authorizer"] = json!({ "jwt": {
                    "claims": { "aud": "onsale", "auth_time": "1795255100", "exp": "1795258700",
                        "iat": "1795255100", "iss": "https://id.example.com", "sub": sub,
                        "token_use": "id" },
                    "scopes": null,
                } });
            }
            Sender::Operator => {
                event["requestContext"]["authorizer"] = json!({ "iam": {
                    "accessKey": "ASIAIOSFODNN7EXAMPLE", "accountId": "123456789012",
                    "callerId": "AROAIOSFODNN7EXAMPLE:operator", "cognitoIdentity": null,
                    "principalOrgId": "o-a1b2c3d4e5",
                    "userArn": "arn:aws:sts::123456789012:assumed-role/operator/operator",
                    "userId": "AROAIOSFODNN7EXAMPLE:operator",
                } });
            }
        }
        event
    }
}

fn path_parameters(route: &str, path: &str) -> Option<Value> {
    let (_, pattern) = route.split_once(' ')?;
    let pairs = pattern.split('/').zip(path.split('/'));
    let named = pairs.filter_map(|(name, value)| {
        let name = name.strip_prefix('{')?.strip_suffix('}')?;
        Some((name.to_owned(), json!(value)))
    });
    let named: serde_json::Map<String, Value> = named.collect();
    (!named.is_empty()).then_some(Value::Object(named))
}

/// The event of a queue, one message for each body:
/// <https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html>
pub fn batch(queue: &str, bodies: &[String]) -> Value {
    let record = |(index, body): (usize, &String)| {
        json!({
            "messageId": format!("059f36b4-87a3-44ab-83d2-66197595{index:04}"),
            "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
            "body": body,
            "attributes": { "ApproximateReceiveCount": "1", "SentTimestamp": "1795255200000",
                "SenderId": "AIDAIENQZJOLO23YVJ4VO", "ApproximateFirstReceiveTimestamp": "1795255200100" },
            "messageAttributes": {},
            "md5OfBody": format!("{:x}", md5::compute(body)),
            "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:eu-central-1:123456789012:dev-onsale-{queue}"),
            "awsRegion": "eu-central-1",
        })
    };
    let records: Vec<Value> = bodies.iter().enumerate().map(record).collect();
    json!({ "Records": records })
}

/// The id of a message of [`batch`].
pub fn message_id(index: usize) -> String {
    format!("059f36b4-87a3-44ab-83d2-66197595{index:04}")
}

/// The event of EventBridge Scheduler:
/// <https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-targets-templated.html>
pub fn schedule() -> Value {
    json!({
        "version": "0", "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa", "detail-type": "Scheduled Event",
        "source": "aws.scheduler", "account": "123456789012", "time": "2026-11-21T10:00:00Z",
        "region": "eu-central-1",
        "resources": ["arn:aws:scheduler:eu-central-1:123456789012:schedule/default/dev-onsale-reconcile"],
        "detail": "{}",
    })
}
