//! Events as Lambda hands them to functions, as JSON.

use serde_json::{Value, json};

/// Sender of a request.
#[derive(Debug, Clone, Copy)]
pub enum Sender<'a> {
    Nobody,
    /// A buyer whose token the gateway has verified.
    Buyer(&'a str),
    /// Whoever runs the sales.
    Operator,
}

/// The event of API Gateway's HTTP API, payload format 2.0, with the headers that a browser and the
/// gateway send.
#[must_use]
pub fn http(
    sender: Sender<'_>,
    method: &str,
    path: &str,
    header: Option<(&str, &str)>,
    body: Option<&Value>,
) -> String {
    let mut headers = json!({
        "accept": "application/json",
        "accept-encoding": "gzip, deflate, br",
        "accept-language": "en-GB,en;q=0.9",
        "host": "api.example.com",
        "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "x-amzn-trace-id": "Root=1-67890abc-0123456789abcdef01234567",
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    });
    if body.is_some() {
        headers["content-type"] = json!("application/json");
    }
    if let Some((name, value)) = header {
        headers[name] = json!(value);
    }
    let authorizer = match sender {
        Sender::Nobody => Value::Null,
        Sender::Buyer(sub) => json!({ "jwt": {
            "claims": { "aud": "onsale", "exp": "1900000000", "iat": "1800000000",
                "iss": "https://id.example.com", "sub": sub },
            "scopes": null,
        } }),
        Sender::Operator => json!({ "iam": {
            "accessKey": "AKIAIOSFODNN7EXAMPLE", "accountId": "000000000000", "callerId": "operator",
            "userArn": "arn:aws:iam::000000000000:role/operator", "userId": "operator",
        } }),
    };
    let event = json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": headers, "body": body.map(Value::to_string), "isBase64Encoded": false,
        "requestContext": {
            "accountId": "000000000000", "apiId": "a1b2c3d4e5", "authorizer": authorizer,
            "domainName": "api.example.com", "domainPrefix": "api",
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7", "userAgent": "Mozilla/5.0" },
            "requestId": "JKJaXmPLvHcESHA=", "routeKey": "$default", "stage": "$default",
            "time": "21/Nov/2026:10:00:00 +0000", "timeEpoch": 1_795_255_200_000_i64,
        },
    });
    event.to_string()
}

/// The event of a queue, one message for each body.
#[must_use]
pub fn sqs(bodies: &[String]) -> String {
    let record = |(index, body): (usize, &String)| {
        json!({
            "messageId": format!("059f36b4-87a3-44ab-83d2-66197595{index:04}"),
            "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
            "body": body,
            "attributes": { "ApproximateReceiveCount": "1", "SentTimestamp": "1795255200000",
                "SenderId": "AIDAIENQZJOLO23YVJ4VO", "ApproximateFirstReceiveTimestamp": "1795255200000" },
            "messageAttributes": {},
            "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:costs",
            "awsRegion": "us-east-1",
        })
    };
    let records: Vec<Value> = bodies.iter().enumerate().map(record).collect();
    json!({ "Records": records }).to_string()
}
