//! The deployed stack on ministack, an emulator of AWS that shares no code with ours: an HTTP API with a
//! JWT authorizer (Cognito's tokens) and IAM, the functions from their zips, SQS event source mappings,
//! tables and queues, and a real Valkey.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use engine::domain::basics::time::Timestamp;
use local::data_dir::{DataDir, Secrets};
use local::endpoints::Endpoints;
use local::environment::variables;
use local::payment;
use local::queues::{QueuePair, Queues, Redelivery};
use local::servers::{FakeBeacon, Pace, PaymentProvider, Stack, free_port};
use local::stores;
use local::up;
use ops::audit;
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use shared::dynamodb::create_tables;
use shared::http::routes::{Access, ROUTES};
use shared::runtime::functions::Function;
use tempfile::TempDir;

use super::event::schedule;
use super::hall;
use super::rie::{FUNCTIONS, bootstrap};
use crate::backends;
use text::root;

/// Time that anything may take: two processors have several other tests to run.
const DEADLINE: Duration = Duration::from_secs(300);
/// The account and region of everything on ministack.
const ACCOUNT: &str = "000000000000";
const REGION: &str = "us-east-1";

/// Asks until it is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asked_since = Instant::now();
    while !is_so().await {
        assert!(asked_since.elapsed() < DEADLINE, "{what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A ministack on a free port; killed when dropped, if it was not stopped.
struct Ministack {
    child: Child,
    url: String,
    port: u16,
    http: reqwest::Client,
    directory: TempDir,
}

impl Ministack {
    async fn start() -> Self {
        let program = root().join(".onsale/tools/ministack/bin/ministack");
        assert!(program.exists(), "no {}: make setup", program.display());
        let asked_since = Instant::now();
        loop {
            if let Some(started) = Self::attempt(&program).await {
                return started;
            }
            assert!(asked_since.elapsed() < DEADLINE, "ministack does not start");
        }
    }

    /// Starts it; `None` if somebody else was quicker to take the port.
    async fn attempt(program: &Path) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new(program)
            // Unless told otherwise it listens on every interface.
            .env("BIND_HOST", "127.0.0.1")
            // Addresses of APIs end with it, and what ends with a number is an address of IP to the
            // runtime, and a bad one.
            .env("MINISTACK_HOST", "localhost")
            .env("GATEWAY_PORT", port.to_string())
            .env("LOG_LEVEL", "INFO")
            .env("TMPDIR", directory.path())
            .env("S3_DATA_DIR", directory.path().join("s3"))
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let http = reqwest::Client::builder().timeout(DEADLINE).build().unwrap();
        let mut started = Self { child, url, port, http, directory };
        let since = Instant::now();
        while since.elapsed() < DEADLINE {
            if started.child.try_wait().unwrap().is_some() {
                return None;
            }
            let health =
                started.http.get(format!("{}/_ministack/health", started.url)).send().await;
            if health.is_ok_and(|health| health.status() == StatusCode::OK) {
                return Some(started);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("ministack does not answer: {}", started.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// A call of one of AWS's REST APIs.
    async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let sent = self.http.request(method, format!("{}{path}", self.url)).body(body.to_string());
        answered(sent.send().await.unwrap(), path).await
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        self.call(Method::POST, path, body).await
    }

    /// A call of Cognito.
    async fn cognito(&self, operation: &str, body: &Value) -> Value {
        let target = format!("AWSCognitoIdentityProviderService.{operation}");
        let sent = self.http.post(&self.url).header("x-amz-target", target);
        let sent = sent.header("content-type", "application/x-amz-json-1.1");
        let sent = sent.header("authorization", signed("cognito-idp"));
        answered(sent.body(body.to_string()).send().await.unwrap(), operation).await
    }

    /// The programs that run from its directory: the environments of functions.
    fn workers(&self) -> Vec<PathBuf> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let programs =
            processes.filter_map(|process| fs::read_link(process.path().join("exe")).ok());
        programs.filter(|program| program.starts_with(self.directory.path())).collect()
    }

    /// Stops it by its own handle, and sees that nothing is left of it.
    async fn stop(mut self) {
        assert!(!self.workers().is_empty(), "no function was found running: {}", self.log());
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        until("ministack ends", async || self.child.try_wait().unwrap().is_some()).await;
        until("its functions end", async || self.workers().is_empty()).await;
    }
}

impl Drop for Ministack {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
            return;
        }
        let group = format!("-{}", self.child.id());
        let _gone = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ended = self.child.wait();
    }
}

/// A signature that names its signer. ministack looks at the name only.
fn signed(service: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential=test/20261121/{REGION}/{service}/aws4_request, SignedHeaders=host, Signature=0"
    )
}

async fn answered(reply: Response, what: &str) -> Value {
    let status = reply.status();
    let text = reply.text().await.unwrap();
    assert!(status.is_success(), "{what}: {status} {text}");
    if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap() }
}

struct Deployed {
    ministack: Ministack,
    stack: Stack,
    endpoints: Endpoints,
    queues: Queues,
    sqs: aws_sdk_sqs::Client,
    secrets: Secrets,
    /// Where each consumer's mapping is changed.
    mappings: BTreeMap<&'static str, String>,
    api: String,
    pool: String,
    client: String,
    _provider: PaymentProvider,
    _beacon: FakeBeacon,
    _data_dir: DataDir,
}

impl Deployed {
    async fn new() -> Self {
        let ministack = Ministack::start().await;
        let stack = backends::stack_beside(&ministack.url, &ministack.url).await;
        let provider = PaymentProvider::start(None).unwrap();
        let data_dir = DataDir::temporary().unwrap();
        let secrets = data_dir.secrets().unwrap();
        let sqs = stores::sqs(&ministack.url);
        // A failed message comes again soon, and is given up soon: the template's ten times 200 s are
        // no time for a test. A slow machine has the others of its batch deleted by then.
        let soon = Redelivery { visibility: Duration::from_secs(6), max_receives: 2 };
        let prefix = "dev-onsale-".to_owned();
        let queues = Queues::create(&sqs, &prefix, Some(soon)).await.unwrap();
        let beacon = FakeBeacon::start(Pace::OF_CHAIN).unwrap();
        let endpoints = Endpoints::from_servers(stack.endpoints(), &provider, &beacon, prefix);
        let dynamo = stores::dynamo(&endpoints);
        create_tables(dynamo.client(), &dynamo.config().tables).await.unwrap();
        let (pool, client) = identity_provider(&ministack).await;
        let config = up::config(stack.topology(), &endpoints, &queues, &secrets).unwrap();
        let environment = json!(variables(&config));
        for function in FUNCTIONS {
            deploy(&ministack, function, &environment).await;
        }
        let mappings = consumers(&ministack, &queues).await;
        let api = http_api(&ministack, &pool, &client).await;
        let (_provider, _beacon, _data_dir) = (provider, beacon, data_dir);
        Self {
            ministack,
            stack,
            endpoints,
            queues,
            sqs,
            secrets,
            mappings,
            api,
            pool,
            client,
            _provider,
            _beacon,
            _data_dir,
        }
    }

    /// A request to the HTTP API.
    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let Ministack { http, url, port, .. } = &self.ministack;
        let host = format!("{}.execute-api.localhost:{port}", self.api);
        http.request(method, format!("{url}{path}")).header("host", host)
    }

    async fn get(&self, path: &str) -> Value {
        answered(self.request(Method::GET, path).send().await.unwrap(), path).await
    }

    /// A user of the identity provider, and the token it gives them.
    async fn sign_in(&self, name: &str) -> String {
        let user =
            json!({ "UserPoolId": self.pool, "Username": name, "MessageAction": "SUPPRESS" });
        self.ministack.cognito("AdminCreateUser", &user).await;
        let password = "Correct-Horse-7";
        let set = json!({ "UserPoolId": self.pool, "Username": name, "Password": password, "Permanent": true });
        self.ministack.cognito("AdminSetUserPassword", &set).await;
        let parameters = json!({ "USERNAME": name, "PASSWORD": password });
        let auth = json!({ "UserPoolId": self.pool, "ClientId": self.client,
            "AuthFlow": "ADMIN_USER_PASSWORD_AUTH", "AuthParameters": parameters });
        let given = self.ministack.cognito("AdminInitiateAuth", &auth).await;
        given["AuthenticationResult"]["IdToken"].as_str().unwrap().to_owned()
    }

    async fn publish(&self, sale: &Value) {
        let path = format!("/sales/{}", sale["sale"].as_str().unwrap());
        let put = self.request(Method::PUT, &path).header("authorization", signed("execute-api"));
        let put = put.header("content-type", "application/json").body(sale.to_string());
        answered(put.send().await.unwrap(), &path).await;
    }

    async fn buyer(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Response {
        let mut sent = self.request(method, path).bearer_auth(token);
        if let Some(body) = body {
            sent = sent.header("content-type", "application/json").body(body.to_string());
        }
        sent.send().await.unwrap()
    }

    /// Admission, and the order of the best two seats.
    async fn order(&self, token: &str, sale: &str) -> Value {
        let path = format!("/sales/{sale}/admissions");
        let admission =
            self.buyer(token, Method::POST, &path, Some(&json!({ "tickets": 2 }))).await;
        let admission = answered(admission, &path).await;
        let path = format!("/sales/{sale}/orders");
        let lines = json!([{ "tier": "floor", "best": { "count": 2, "together": "required" } }]);
        let body = json!({ "admission": admission["token"], "lines": lines });
        let order =
            answered(self.buyer(token, Method::POST, &path, Some(&body)).await, &path).await;
        assert_eq!(order["order"], admission["order"]);
        order
    }

    async fn state(&self, token: &str, order: &Value) -> Value {
        let path = format!("/orders/{}", order["order"].as_str().unwrap());
        answered(self.buyer(token, Method::GET, &path, None).await, &path).await["state"].clone()
    }

    /// The provider's callback for a whole order.
    async fn pay(&self, order: &Value, secrets: &Secrets) -> Response {
        let number = order["order"].as_str().unwrap();
        let event = json!({
            "id": format!("evt_{number}"), "object": "event", "type": "payment_intent.succeeded",
            "data": { "object": {
                "id": format!("pi_{number}"), "object": "payment_intent",
                "amount_received": order["amount_minor"], "currency": "eur",
                "metadata": { "order": number },
            } },
        });
        let body = event.to_string();
        let signature = payment::sign(secrets, body.as_bytes(), Timestamp::now());
        let sent = self.request(Method::POST, &payment::callback_path());
        let sent = sent.header(payment::SIGNATURE_HEADER, signature);
        sent.header("content-type", "application/json").body(body).send().await.unwrap()
    }

    async fn available(&self, sale: &str) -> u64 {
        let path = format!("/sales/{sale}/availability");
        self.get(&path).await["tiers"][0]["available"].as_u64().unwrap()
    }

    /// Whether the audit finds every promise kept; says what not.
    async fn audit(&self) -> audit::Report {
        let options = audit::Options::at(Timestamp::now());
        audit::run(&backends::audited(&self.endpoints), &options).await.unwrap()
    }

    /// The bodies in a dead-letter queue.
    async fn dead(&self, queue: &QueuePair) -> Vec<String> {
        let receive = self.sqs.receive_message().queue_url(&queue.dead_url);
        let received =
            receive.max_number_of_messages(10).visibility_timeout(0).send().await.unwrap();
        received
            .messages
            .unwrap_or_default()
            .into_iter()
            .filter_map(|message| message.body)
            .collect()
    }
}

/// A user pool with a client that signs users in by password.
async fn identity_provider(ministack: &Ministack) -> (String, String) {
    let pool = ministack.cognito("CreateUserPool", &json!({ "PoolName": "buyers" })).await;
    let pool = pool["UserPool"]["Id"].as_str().unwrap().to_owned();
    let flows = ["ALLOW_ADMIN_USER_PASSWORD_AUTH", "ALLOW_REFRESH_TOKEN_AUTH"];
    let client = json!({ "UserPoolId": pool, "ClientName": "shop", "ExplicitAuthFlows": flows });
    let client = ministack.cognito("CreateUserPoolClient", &client).await;
    (pool, client["UserPoolClient"]["ClientId"].as_str().unwrap().to_owned())
}

fn function_arn(function: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT}:function:dev-onsale-{function}")
}

/// A function's program as Lambda takes it: `bootstrap` in a zip.
fn zip(function: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    fs::copy(bootstrap(function), directory.path().join("bootstrap")).unwrap();
    let zipped = Command::new("python3")
        .args(["-m", "zipfile", "-c", "function.zip", "bootstrap"])
        .current_dir(directory.path())
        .status();
    assert!(zipped.unwrap().success(), "{function} is not zipped");
    fs::read(directory.path().join("function.zip")).unwrap()
}

/// A function from its zip.
async fn deploy(ministack: &Ministack, function: &str, environment: &Value) {
    let zip = zip(function);
    let request = json!({
        "FunctionName": format!("dev-onsale-{function}"), "Runtime": "provided.al2023",
        "Handler": "bootstrap", "Role": format!("arn:aws:iam::{ACCOUNT}:role/{function}"),
        "Timeout": 30, "MemorySize": 256, "Code": { "ZipFile": BASE64_STANDARD.encode(zip) },
        "Environment": { "Variables": environment },
    });
    ministack.post("/2015-03-31/functions", &request).await;
}

/// The event source mappings, with the batches of template.yaml; answers the path of each.
async fn consumers(ministack: &Ministack, queues: &Queues) -> BTreeMap<&'static str, String> {
    let mut paths = BTreeMap::new();
    for function in Function::ALL {
        let Some(consumer) = function.consumer() else { continue };
        let (function, queue) = (function.as_str(), queues.get(consumer.queue));
        let mapping = json!({
            "EventSourceArn": queue.arn, "FunctionName": function_arn(function),
            "BatchSize": consumer.max_batch,
            "MaximumBatchingWindowInSeconds": consumer.window_seconds,
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        });
        let made = ministack.post("/2015-03-31/event-source-mappings", &mapping).await;
        let path = format!("/2015-03-31/event-source-mappings/{}", made["UUID"].as_str().unwrap());
        paths.insert(function, path);
    }
    paths
}

/// An HTTP API with the routes of our gateway, which are those of template.yaml, and its authorizers.
async fn http_api(ministack: &Ministack, pool: &str, client: &str) -> String {
    let api =
        ministack.post("/v2/apis", &json!({ "name": "onsale", "protocolType": "HTTP" })).await;
    let api = api["apiId"].as_str().unwrap().to_owned();
    let issuer = format!("https://cognito-idp.{REGION}.amazonaws.com/{pool}");
    let authorizer = json!({
        "name": "Buyer", "authorizerType": "JWT", "identitySource": ["$request.header.Authorization"],
        "jwtConfiguration": { "issuer": issuer, "audience": [client] },
    });
    let authorizer = ministack.post(&format!("/v2/apis/{api}/authorizers"), &authorizer).await;
    for route in ROUTES.iter().filter(|route| route.access != Access::ProviderWithKey) {
        let integration = json!({
            "integrationType": "AWS_PROXY", "integrationUri": function_arn(route.function.as_str()),
            "payloadFormatVersion": "2.0",
        });
        let made = ministack.post(&format!("/v2/apis/{api}/integrations"), &integration).await;
        let target = format!("integrations/{}", made["integrationId"].as_str().unwrap());
        let mut request = json!({ "routeKey": route.key, "target": target });
        match route.access {
            Access::Anyone | Access::Provider | Access::ProviderWithKey => {
                request["authorizationType"] = json!("NONE");
            }
            Access::Operator => request["authorizationType"] = json!("AWS_IAM"),
            // There is no second pool: a buyer's token is let in, and the functions refuse it.
            Access::Buyer | Access::Watch | Access::Operate | Access::Refund | Access::Scan => {
                request["authorizationType"] = json!("JWT");
                request["authorizerId"] = authorizer["authorizerId"].clone();
            }
        }
        ministack.post(&format!("/v2/apis/{api}/routes"), &request).await;
    }
    let stage = json!({ "stageName": "$default", "autoDeploy": true });
    ministack.post(&format!("/v2/apis/{api}/stages"), &stage).await;
    api
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs ministack and a minute and a half: `make test-all` runs it"]
async fn a_sale_runs_on_the_deployed_stack() {
    let deployed = Deployed::new().await;
    let operator = deployed.request(Method::PUT, "/sales/hall").body("{}").send().await.unwrap();
    assert_eq!(operator.status(), StatusCode::FORBIDDEN, "nobody has signed");
    deployed.publish(&hall("hall", 4, 900)).await;
    deployed.publish(&hall("quick", 4, 5)).await;
    assert_eq!(deployed.available("hall").await, 40);

    // Without a token, and with one that somebody has written over, the authorizer lets nobody through.
    let alice = deployed.sign_in("alice").await;
    let bob = deployed.sign_in("bob").await;
    let path = "/sales/hall/admissions";
    let anonymous = deployed.request(Method::POST, path).body("{}").send().await.unwrap();
    assert_eq!(anonymous.status(), StatusCode::UNAUTHORIZED);
    let [head, claims, signature] = alice.split('.').collect::<Vec<_>>()[..] else { panic!() };
    let [_, of_bob, _] = bob.split('.').collect::<Vec<_>>()[..] else { panic!() };
    assert_ne!(claims, of_bob);
    let forged = format!("{head}.{of_bob}.{signature}");
    let refused = deployed.buyer(&forged, Method::POST, path, Some(&json!({ "tickets": 2 }))).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);

    // Bob's order is never paid: its message waits in the queue for as long as he may pay.
    let unpaid = deployed.order(&bob, "quick").await;
    assert_eq!(unpaid["state"], "pending");

    // Alice's is, and the sync queue's consumer counts it.
    let paid = deployed.order(&alice, "hall").await;
    let other = DataDir::temporary().unwrap().secrets().unwrap();
    assert_eq!(deployed.pay(&paid, &other).await.status(), StatusCode::UNAUTHORIZED);
    for _again in 0..2 {
        assert_eq!(deployed.pay(&paid, &deployed.secrets).await.status(), StatusCode::OK);
    }
    assert_eq!(deployed.state(&alice, &paid).await, "paid");

    until("the unpaid order expires", async || deployed.state(&bob, &unpaid).await == "expired")
        .await;
    until("its seats are free again", async || deployed.available("quick").await == 40).await;

    // A batch with one message that nobody can read: the others are done, and it ends as a dead letter.
    let order = deployed.order(&bob, "hall").await;
    assert_eq!(deployed.pay(&order, &deployed.secrets).await.status(), StatusCode::OK);
    let count = |order: &Value| json!({ "order": order["order"] }).to_string();
    let poison = "no message at all";
    let mut bodies = vec![count(&paid), count(&order), count(&paid), count(&order)];
    bodies.insert(2, poison.to_owned());
    let mut batch = deployed.sqs.send_message_batch().queue_url(&deployed.queues.sync.url);
    for (index, body) in bodies.iter().enumerate() {
        let entry = aws_sdk_sqs::types::SendMessageBatchRequestEntry::builder();
        let entry = entry.id(index.to_string()).message_body(body);
        batch = batch.entries(entry.build().unwrap());
    }
    // Handed over together: the consumer looks at the queue when all are there.
    let mapping = &deployed.mappings["sync-db"];
    let polls = async |enabled: bool| {
        deployed.ministack.call(Method::PUT, mapping, &json!({ "Enabled": enabled })).await
    };
    polls(false).await;
    assert!(batch.send().await.unwrap().failed.is_empty());
    polls(true).await;
    let sync = &deployed.queues.sync;
    until("the poison is a dead letter", async || !deployed.dead(sync).await.is_empty()).await;
    assert_eq!(deployed.dead(sync).await, [poison], "and nothing else is");
    let log = deployed.ministack.log();
    let in_part = |line: &&str| line.contains("dev-onsale-sync (1 partial failures)");
    let alone = |line: &&str| line.contains("processed 0 SQS messages");
    let batches: Vec<&str> = log.lines().filter(in_part).filter(|line| !alone(line)).collect();
    assert!(!batches.is_empty(), "no batch failed in part: {log}");
    for queue in [&deployed.queues.expiry, &deployed.queues.load, &deployed.queues.refund] {
        assert!(deployed.dead(queue).await.is_empty(), "{}", queue.name);
    }

    // The schedule's function finds nothing to do, and the audit every promise kept: each paid order is
    // counted, once.
    let path = "/2015-03-31/functions/dev-onsale-reconcile/invocations";
    let report = deployed.ministack.post(path, &schedule()).await;
    assert_eq!(report["failed"], json!(0), "{report}");
    until("the audit is clean", async || deployed.audit().await.clean).await;
    let audit = deployed.audit().await;
    assert!(audit.clean, "{audit}");

    deployed.ministack.stop().await;
    deployed.stack.stop().await.unwrap();
}
