//! The one table of limits. Everything else reads its values here; `docs/limits.md` is written from it.
//!
//! The values were read in autumn 2026 from the vendors' pages; each row names its page, and how sure
//! the reading is.

use std::fmt;

/// The service that a limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Amazon ElastiCache Serverless, for Valkey and Redis OSS.
    ElastiCache,
    /// Amazon DynamoDB, tables on demand.
    DynamoDb,
    /// Amazon SQS, and the event source mappings that empty its queues.
    Sqs,
    Lambda,
    /// Amazon API Gateway, HTTP APIs.
    ApiGateway,
    CloudFront,
    CloudWatch,
    EventBridge,
    Stripe,
    /// WeChat Pay, merchants in China.
    WechatPay,
    /// Alipay, merchants in China.
    Alipay,
}

impl Service {
    /// Every service, in the order of the document.
    pub const ALL: [Self; 11] = [
        Self::ElastiCache,
        Self::DynamoDb,
        Self::Sqs,
        Self::Lambda,
        Self::ApiGateway,
        Self::CloudFront,
        Self::CloudWatch,
        Self::EventBridge,
        Self::Stripe,
        Self::WechatPay,
        Self::Alipay,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ElastiCache => "ElastiCache Serverless",
            Self::DynamoDb => "DynamoDB",
            Self::Sqs => "SQS",
            Self::Lambda => "Lambda",
            Self::ApiGateway => "API Gateway",
            Self::CloudFront => "CloudFront",
            Self::CloudWatch => "CloudWatch",
            Self::EventBridge => "EventBridge",
            Self::Stripe => "Stripe",
            Self::WechatPay => "WeChat Pay",
            Self::Alipay => "Alipay",
        }
    }
}

/// How sure the reading of a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sure {
    /// Two or more independent copies of the vendor's page agree.
    Agreed,
    /// One copy of the vendor's page.
    OneCopy,
    /// Copies differ: the stricter value is the table's, unless the source says otherwise.
    Differ,
    /// Commonly known, not read again.
    Known,
    /// Not published: an inference or a choice.
    Chosen,
}

impl Sure {
    /// Its letter in the document.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Agreed => "S",
            Self::OneCopy => "1",
            Self::Differ => "D",
            Self::Known => "K",
            Self::Chosen => "N",
        }
    }
}

/// The value of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A number, in the unit of the row.
    Count(u64),
    /// Text as it is on the wire, or a name.
    Text(&'static str),
    /// Names, such as those of commands.
    List(&'static [&'static str]),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => {
                let digits = count.to_string();
                digits.chars().enumerate().try_for_each(|(index, digit)| {
                    let left = digits.len() - index;
                    let separator = if index > 0 && left.is_multiple_of(3) { "," } else { "" };
                    write!(f, "{separator}{digit}")
                })
            }
            Self::Text(text) => write!(f, "`{text}`"),
            Self::List(names) => write!(f, "`{}`", names.join("`, `")),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub service: Service,
    pub name: &'static str,
    pub value: Value,
    /// The unit of the value; empty for text.
    pub unit: &'static str,
    /// True if the owner of the account can have it raised.
    pub adjustable: bool,
    pub source: &'static str,
    /// The age of the page that was read.
    pub date: &'static str,
    /// How sure the reading is.
    pub sure: Sure,
}

impl Limit {
    /// The value of a row that is a number; 0 for others.
    #[must_use]
    pub const fn count(&self) -> u64 {
        match self.value {
            Value::Count(count) => count,
            Value::Text(_) | Value::List(_) => 0,
        }
    }

    /// The same, to calculate with; infinite beyond 32 bits, which no row needs.
    #[must_use]
    pub fn rate(&self) -> f64 {
        u32::try_from(self.count()).map_or(f64::INFINITY, f64::from)
    }

    /// The same as a number of seconds.
    #[must_use]
    pub const fn seconds(&self) -> std::time::Duration {
        std::time::Duration::from_secs(self.count())
    }

    /// The same as a number of things in memory.
    #[must_use]
    pub fn size(&self) -> usize {
        usize::try_from(self.count()).unwrap_or(usize::MAX)
    }

    /// The text of a row that is text; empty for others.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        match self.value {
            Value::Text(text) => text,
            Value::Count(_) | Value::List(_) => "",
        }
    }

    /// The names of a row that lists some.
    #[must_use]
    pub const fn list(&self) -> &'static [&'static str] {
        match self.value {
            Value::List(names) => names,
            Value::Count(_) | Value::Text(_) => &[],
        }
    }
}

/// Declares each limit as a constant, and all of them as [`TABLE`].
macro_rules! limits {
    ($($name:ident: $service:ident, $what:literal, $value:expr, $unit:literal, $adjustable:literal,
       $source:literal, $date:literal, $sure:ident;)+) => {
        $(
            #[doc = concat!(stringify!($service), ": ", $what, ".")]
            pub const $name: Limit = Limit {
                service: Service::$service,
                name: $what,
                value: $value,
                unit: $unit,
                adjustable: $adjustable,
                source: $source,
                date: $date,
                sure: Sure::$sure,
            };
        )+

        /// Every limit, by service.
        pub const TABLE: &[Limit] = &[$($name),+];
    };
}

use Value::{Count, List, Text};

/// Commands that the serverless cache does not have, with subcommands after a `|`.
const BLOCKED: &[&str] = &[
    "acl|setuser",
    "bgrewriteaof",
    "bgsave",
    "client|id",
    "client|info",
    "client|kill",
    "client|list",
    "client|no-evict",
    "client|pause",
    "client|tracking",
    "client|unblock",
    "cluster|addslots",
    "cluster|addslotsrange",
    "cluster|delslots",
    "cluster|failover",
    "cluster|forget",
    "cluster|meet",
    "cluster|replicate",
    "cluster|reset",
    "cluster|setslot",
    "commandlog",
    "config",
    "debug",
    "fcall",
    "function",
    "keys",
    "lastsave",
    "latency",
    "memory",
    "migrate",
    "monitor",
    "move",
    "object",
    "psubscribe",
    "replicaof",
    "save",
    "script|kill",
    "shutdown",
    "slowlog",
    "swapdb",
    "wait",
    "watch",
];

limits! {
    SLOT_ECPU: ElastiCache, "processing units of one hash slot", Count(30_000), "ECPU/s", false,
        "Configuration and limits; Scaling serverless", "2025, 2026", Agreed;
    ECPU_BYTES: ElastiCache, "bytes that one processing unit moves", Count(1024), "bytes", false,
        "Pricing; Scaling serverless", "2026", Agreed;
    ECPU_MICROS: ElastiCache, "engine time that one processing unit of a script is", Count(3), "µs", false,
        "assumption of AWS's estimator tool", "2026", Chosen;
    NEW_CACHE_ECPU: ElastiCache, "processing units of an empty new cache", Count(30_000), "ECPU/s", true,
        "Scaling serverless", "2026", Agreed;
    MAX_ARGUMENTS: ElastiCache, "arguments of a request", Count(3999), "arguments", false,
        "Configuration and limits; copies of 2026 say 39,999, those of 2024 and 2025 3,999", "2024-2026", Differ;
    MAX_SCRIPT_MS: ElastiCache, "time of a script until others are answered BUSY", Count(5000), "ms", false,
        "Configuration and limits; Lua scripts", "2026", Agreed;
    MAX_SLOT_DELAY_MS: ElastiCache, "delay of a request whose slot has no units left; beyond it, it is refused", Count(1000), "ms", false,
        "Scaling serverless: throttling, latency; how long and with what words is not published", "2026", Chosen;
    SLOT_THROTTLED: ElastiCache, "text of that refusal", Text("ERR request rate of the slot exceeded"), "", false,
        "not published; a choice", "2026", Chosen;
    EVICTION: ElastiCache, "eviction policy", Text("volatile-lru"), "", false,
        "Configuration and limits", "2026", Agreed;
    BLOCKED_COMMANDS: ElastiCache, "commands that it does not have", List(BLOCKED), "", false,
        "Supported and restricted commands", "2026", OneCopy;
    CACHE_CONNECTIONS: ElastiCache, "connections", Count(65_000), "connections", false,
        "Configuration and limits; Large number of connections", "2026", Agreed;

    PARTITION_WRITES: DynamoDb, "write units of a partition", Count(1000), "units/s", false,
        "Partition key design; Key range throughput exceeded", "2026", Agreed;
    PARTITION_READS: DynamoDb, "read units of a partition", Count(3000), "units/s", false,
        "Partition key design; Key range throughput exceeded", "2026", Agreed;
    TABLE_WRITES: DynamoDb, "write units of a new table or index", Count(4000), "units/s", true,
        "On-demand mode; Warm throughput scenarios", "2024, 2026", Agreed;
    TABLE_READS: DynamoDb, "read units of a new table or index", Count(12_000), "units/s", true,
        "On-demand mode; Warm throughput scenarios", "2024, 2026", Agreed;
    TABLE_GROWTH: DynamoDb, "growth over the former peak", Count(2), "times", false,
        "On-demand mode", "2026", Agreed;
    TABLE_GROWTH_SECONDS: DynamoDb, "time that it takes to grow further", Count(1800), "s", false,
        "On-demand mode", "2026", Agreed;
    TABLE_QUOTA: DynamoDb, "read, and write, units of a table or index", Count(40_000), "units/s", true,
        "Quotas; Account limits exceeded: one of them counts a table with all its indexes", "2026", Differ;
    BURST_SECONDS: DynamoDb, "unused capacity that may be kept", Count(300), "s", false,
        "Burst and adaptive capacity: not guaranteed", "2026", OneCopy;
    TRANSACTION_COST: DynamoDb, "cost of a transaction, also of one that is cancelled", Count(2), "times", false,
        "Transactions, capacity", "2026", OneCopy;
    WRITE_UNIT_BYTES: DynamoDb, "bytes of an item that one write unit pays", Count(1024), "bytes", false,
        "Read and write operations", "2026", Agreed;
    READ_UNIT_BYTES: DynamoDb, "bytes of an item that one read unit pays", Count(4096), "bytes", false,
        "Read and write operations", "2026", Agreed;
    TRANSACTION_ITEMS: DynamoDb, "items of a transaction", Count(100), "items", false,
        "Constraints; Transactions", "2026", Agreed;
    TRANSACTION_MS: DynamoDb, "time that a transaction is at work on its items", Count(5), "ms", false,
        "a choice, of the order of what clients measure", "2026", Chosen;
    TRANSACTION_CONFLICT: DynamoDb, "text of a write to an item that a transaction is at work on",
        Text("Transaction is ongoing for the item"), "", false, "API; transactions", "2026", Agreed;
    ACCOUNT_LIMIT: DynamoDb, "text of a request beyond the quota", Text("Throughput exceeds the current throughput limit for your account."),
        "", false, "API; the beginning of the text", "2026", OneCopy;
    INDEX_LAG_MS: DynamoDb, "time after which a global index has a write", Count(500), "ms", false,
        "Global secondary indexes: eventually consistent, a fraction of a second as a rule; the value is a choice", "2026", Chosen;
    COLLECTION_TOO_LARGE: DynamoDb, "text of a write to a collection that is full", Text("Collection size exceeded."), "", false,
        "errors as users report them", "2026", Known;
    COLLECTION_GB: DynamoDb, "items of one partition key in a table with a local index", Count(10), "GB", false,
        "LSI; Constraints", "2026", Agreed;
    DYNAMODB_THROTTLED: DynamoDb, "text of a throttled request",
        Text("Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly. If exceptions persist, check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html"),
        "", false, "API; errors as users report them", "2021-2026", Agreed;

    QUEUE_IN_FLIGHT: Sqs, "messages in flight of a standard queue", Count(120_000), "messages", true,
        "Queue quotas: a long poll is answered with nothing, a short one with OverLimit", "2026", Agreed;
    QUEUE_DELAY: Sqs, "delay of a message", Count(900), "s", false,
        "Quotas; SendMessage", "2026", Agreed;
    MESSAGE_BYTES: Sqs, "a message, and the sum of a batch", Count(1_048_576), "bytes", false,
        "Message quotas; 262,144 before August 2025", "since 2025-08-04", Agreed;
    QUEUE_VISIBILITY: Sqs, "visibility timeout", Count(43_200), "s", false, "Quotas", "2026", Agreed;
    QUEUE_POLL: Sqs, "wait of a long poll", Count(20), "s", false, "Quotas", "2026", Agreed;
    MAPPING_START: Sqs, "invocations at once with which a mapping begins", Count(5), "invocations", false,
        "SQS scaling", "2025, 2026", Agreed;
    MAPPING_GROWTH: Sqs, "growth of a mapping", Count(300), "invocations/min", false,
        "SQS scaling; 60 before late 2023", "2025, 2026", Agreed;
    MAPPING_MAX: Sqs, "invocations at once of a mapping", Count(1250), "invocations", false,
        "SQS scaling", "2025, 2026", Agreed;

    CONCURRENCY: Lambda, "invocations at once, account and Region", Count(1000), "invocations", true,
        "Quotas; new accounts have less", "2026", Agreed;
    CONCURRENCY_GROWTH: Lambda, "new environments of a function", Count(1000), "environments per 10 s", false,
        "Scaling behaviour", "2026", Agreed;
    ENVIRONMENT_RATE: Lambda, "requests of one environment", Count(10), "requests/s", false,
        "Quotas", "2026", Agreed;
    INVOCATION_BYTES: Lambda, "payload of an invocation, and of its answer", Count(6_291_456), "bytes", false,
        "Quotas", "2026", Agreed;

    GATEWAY_RATE: ApiGateway, "requests, account and Region, all APIs together", Count(10_000), "requests/s", true,
        "Quotas; Throttle HTTP APIs; 2,500 in the newer Regions", "2026", Agreed;
    GATEWAY_BURST: ApiGateway, "bucket of that rate", Count(5000), "requests", false,
        "Quotas; Throttle HTTP APIs", "2026", Agreed;
    GATEWAY_SECONDS: ApiGateway, "time of an integration; the function runs on", Count(30), "s", false,
        "HTTP API quotas", "2026", Agreed;
    GATEWAY_HEAD_BYTES: ApiGateway, "request line and headers together", Count(10_240), "bytes", false,
        "HTTP API quotas; the status of the refusal is not published, the fake answers 431", "2026", OneCopy;
    GATEWAY_BODY_BYTES: ApiGateway, "payload; Lambda stops at its own", Count(10_485_760), "bytes", false,
        "HTTP API quotas", "2026", OneCopy;
    GATEWAY_THROTTLED: ApiGateway, "body of 429", Text(r#"{"message":"Too Many Requests"}"#), "", false,
        "Throttle HTTP APIs", "2026", Agreed;
    GATEWAY_UNAVAILABLE: ApiGateway, "body of 503, when the time is over", Text(r#"{"message":"Service Unavailable"}"#),
        "", false, "HTTP API quotas; issue reports", "2026", Agreed;
    GATEWAY_FAILED: ApiGateway, "body of 500, when a function fails or is throttled",
        Text(r#"{"message":"Internal Server Error"}"#), "", false,
        "Lambda with API Gateway; for HTTP APIs not confirmed", "2026", OneCopy;
    GATEWAY_TOO_LARGE: ApiGateway, "body of 413", Text(r#"{"message":"Request Entity Too Large"}"#), "", false,
        "not read again", "2026", Known;

    EDGE_RATE: CloudFront, "requests of a distribution", Count(250_000), "requests/s", true,
        "Quotas; older copies 100,000", "2026", Agreed;
    EDGE_ERROR_SECONDS: CloudFront, "time for which 404, 414 and 500 to 504 are kept, unless a distribution says another", Count(10), "s", true,
        "HTTP status codes; 429 is never kept", "2026", OneCopy;
    EDGE_HEAD_BYTES: CloudFront, "headers of a request, then 494", Count(32_768), "bytes", false,
        "Custom origins", "2026", OneCopy;
    EDGE_URL_BYTES: CloudFront, "URL, then 414", Count(8192), "bytes", false,
        "Custom origins", "2026", OneCopy;
    EDGE_KEY_QUERIES: CloudFront, "parameters of the query in a key", Count(10), "parameters", true,
        "Quotas", "2026", OneCopy;
    EDGE_BEHAVIOURS: CloudFront, "behaviours of a distribution", Count(75), "behaviours", true,
        "Quotas", "2026", OneCopy;
    EDGE_CACHE_POLICIES: CloudFront, "cache policies of an account", Count(20), "policies", true,
        "Quotas", "2026", Known;
    EDGE_FUNCTION_BYTES: CloudFront, "code of a function", Count(10_240), "bytes", false,
        "Function restrictions", "2026", OneCopy;

    METRIC_QUERIES: CloudWatch, "metrics of a request for their data", Count(500), "metrics", false,
        "API GetMetricData; re:Post", "2026", Agreed;
    METRIC_VALUES: CloudWatch, "values of a page of the answer", Count(100_800), "values", false,
        "API GetMetricData; re:Post", "2026", Agreed;
    METRIC_REQUESTS: CloudWatch, "such requests, account and Region", Count(50), "requests/s", true,
        "re:Post; the quota of values, 180,000 a second, is not enforced", "2026", OneCopy;

    EVENT_ENTRIES: EventBridge, "entries of a call", Count(10), "entries", false, "API PutEvents", "2026", OneCopy;
    EVENT_BYTES: EventBridge, "bytes of the entries of a call together", Count(262_144), "bytes", false,
        "PutEvents, calculating the size of entries", "2026", OneCopy;
    PUT_EVENTS: EventBridge, "calls, account and Region; 10,000 in the largest Regions", Count(600), "calls/s", true,
        "Quotas; re:Post", "2026", OneCopy;

    STRIPE_ALL: Stripe, "requests of an account", Count(100), "requests/s", true,
        "Rate limits: copies since April 2026; older ones 100 reads and 100 writes", "since 2026-04", Differ;
    STRIPE_ENDPOINT: Stripe, "requests of one endpoint", Count(25), "requests/s", true,
        "Rate limits: copies since April 2026", "since 2026-04", Differ;
    STRIPE_SEARCH: Stripe, "searches", Count(20), "requests/s", true, "Rate limits", "2024, 2026", Agreed;
    STRIPE_SEARCH_LAG: Stripe, "time after which the search finds a payment, normally", Count(60), "s", false,
        "API reference: under a minute, in outages up to an hour", "2026", Agreed;
    STRIPE_THROTTLED: Stripe, "text of a throttled request",
        Text("Request rate limit exceeded. You can learn more about rate limits here https://stripe.com/docs/rate-limits."),
        "", false, "errors as clients' tests have them", "2026", Agreed;
    STRIPE_REASON: Stripe, "header that names the reason of 429", Text("stripe-rate-limited-reason"), "", false,
        "Rate limits", "2026", Agreed;
    STRIPE_CALLBACK_SECONDS: Stripe, "time for which a callback that fails is repeated", Count(259_200), "s", false,
        "Webhooks; the intervals are not published", "2026", Agreed;
    STRIPE_CALLBACK_GAP: Stripe, "longest interval between two callbacks", Count(14_400), "s", false,
        "a choice: intervals double from a minute", "2026", Chosen;
    STRIPE_PAGE: Stripe, "entries of a page of a list", Count(100), "entries", false, "API reference, pagination", "2026", Known;

    WECHAT_REFUNDS: WechatPay, "refunds of a merchant", Count(150), "requests/s", false,
        "refunds of API v3; no rate of any other operation is published", "2026", OneCopy;
    WECHAT_FAULTY_REFUNDS: WechatPay, "refunds of a merchant that are answered with an error", Count(6), "requests/s", false,
        "refunds of API v3; another copy has 60", "2026", Differ;
    WECHAT_REFUND_SECONDS: WechatPay, "time between two refunds of an order", Count(60), "s", false,
        "refunds of API v3", "2026", OneCopy;
    WECHAT_REFUND_PARTS: WechatPay, "refunds of an order", Count(50), "parts", false, "refunds of API v3", "2026", Agreed;
    WECHAT_THROTTLED: WechatPay, "code of 429", Text("FREQUENCY_LIMITED"), "", false,
        "errors of API v3; another copy has RATELIMIT_EXCEEDED", "2026", Differ;
    WECHAT_CLOSE_SECONDS: WechatPay, "time after its making in which an order may not be closed", Count(300), "s", false,
        "advised for API v3, a rule of v2", "2026", Differ;
    WECHAT_NOTIFIED_SECONDS: WechatPay, "time for which a notification that fails is repeated", Count(86_640), "s", false,
        "notifications of API v3: 24 h 4 min", "2026", Agreed;
    WECHAT_BILL_SECONDS: WechatPay, "time after the end of a day in Beijing until its bill can be fetched", Count(36_000), "s", false,
        "bills of API v3: made from nine o'clock, to be fetched after ten", "2019-2025", Agreed;
    WECHAT_BILL_ADDRESS_SECONDS: WechatPay, "time for which the address of a bill is good", Count(30), "s", false,
        "bills of API v3; copies since 2024 have 300 s as well", "2019-2025", Differ;
    WECHAT_BILL_MONTHS: WechatPay, "time for which bills are kept", Count(3), "months", false, "bills of API v3", "2019-2025", Agreed;
    ALIPAY_NOTIFIED_SECONDS: Alipay, "time for which a notification that fails is repeated", Count(88_440), "s", false,
        "asynchronous notifications; no rate of any operation is published", "2026", Agreed;
    ALIPAY_BILL_SECONDS: Alipay, "time after the end of a day in Beijing until its bill can be fetched", Count(32_400), "s", false,
        "bills: about nine o'clock, now and then later", "2026", OneCopy;
    ALIPAY_BILL_ADDRESS_SECONDS: Alipay, "time for which the address of a bill is good", Count(30), "s", false,
        "bills", "2016-2026", Agreed;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_says_what_where_from_and_how_sure() {
        for limit in TABLE {
            assert!(!limit.source.is_empty() && !limit.date.is_empty(), "{limit:?}");
            let is_number = matches!(limit.value, Value::Count(_));
            assert_eq!(is_number, !limit.unit.is_empty(), "a number has a unit: {limit:?}");
            assert!(!is_number || limit.count() > 0, "{limit:?}");
            let of_service = TABLE.iter().filter(|other| other.service == limit.service);
            assert_eq!(of_service.filter(|other| other.name == limit.name).count(), 1, "{limit:?}");
        }
        let services: Vec<Service> = TABLE.iter().map(|limit| limit.service).collect();
        assert!(services.is_sorted(), "by service");
        assert!(Service::ALL.iter().all(|service| services.contains(service)));
    }

    #[test]
    fn numbers_are_shown_in_groups_of_three() {
        let shown = |count| Value::Count(count).to_string();
        assert_eq!([shown(7), shown(999), shown(30_000)], ["7", "999", "30,000"]);
        assert_eq!(shown(1_048_576), "1,048,576");
        assert_eq!(Value::List(&["a", "b"]).to_string(), "`a`, `b`");
    }
}
