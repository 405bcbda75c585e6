//! What no linter knows of the template, each with mistakes that it finds.

use std::collections::{BTreeMap, BTreeSet};

use local::queues::Redelivery;
use serde_json::{Value, json};
use shared::dynamodb::Tables;
use shared::dynamodb::tables::{Index, Key, KeyKind, TableDefinition};
use shared::http::routes::{Access, ROUTES};
use shared::redis::{Bounds, Connection};
use shared::runtime::config::Config;
use shared::runtime::functions::QueueName;

use super::deployed::FUNCTIONS;
use super::permissions::list;
use super::stack::{Edit, Stack, Variant, name_in, read, translate, variants};

/// A rule, and mistakes against it.
struct Check {
    rule: &'static str,
    /// What breaks the rule, in words.
    faults: fn(&Stack) -> Vec<String>,
    /// Parameters with which the mistakes are mistakes, besides those of production.
    with: &'static [(&'static str, &'static str)],
    /// Each is one change of the template.
    mistakes: &'static [Edit],
}

/// A mistake: behind the first `after`, the first `from` becomes `to`.
const fn edit(after: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { after, from, to }
}

const SERVERLESS: &[(&str, &str)] = &[("CacheKind", "serverless")];
const WARM: &[(&str, &str)] = &[("WarmWrites", "20000")];
/// The requests a second that API Gateway takes for an account unless its quota is raised, and its
/// burst. Source: the quotas of API Gateway.
const ACCOUNT_RATE: u64 = 10_000;
const ACCOUNT_BURST: u64 = 5_000;
/// How long an HTTP API waits for its function, in seconds. Source: the quotas of API Gateway.
const GATEWAY_TIMEOUT_SECONDS: u64 = 30;
/// What an account may run at once unless its quota is raised, and what of it cannot be reserved.
/// Source: the quotas of Lambda.
const ACCOUNT_CONCURRENCY: u64 = 1_000;
const UNRESERVABLE: u64 = 100;
/// The functions that keep what buyers do from getting lost or stuck.
const NEVER_STARVED: [&str; 4] = ["expire-orders", "load-sale", "pay-callback", "reconcile"];
/// The functions that speak to no Redis, and so are in no network and have no password.
const WITHOUT_REDIS: [&str; 3] = ["orders", "refund", "sync-db"];
/// What asks the payment provider from within the network.
const ASK_PROVIDER: [&str; 2] = ["expire-orders", "reconcile"];
/// How long a message may wait for somebody to look at it, in seconds: the longest SQS allows.
const LONGEST_RETENTION: u64 = 1_209_600;

const CHECKS: &[Check] = &[
    Check {
        rule: "a message stays hidden for six times its function's time, and the batching window",
        faults: visibility,
        with: &[],
        mistakes: &[
            edit("  SyncQueue:", "VisibilityTimeout: 200", "VisibilityTimeout: 181"),
            edit("  ExpireOrdersFunction:", "Timeout: 30", "Timeout: 60"),
            edit("  SyncDbFunction:", "InSeconds: 2", "InSeconds: 30"),
        ],
    },
    Check {
        rule: "messages are given out again as on one machine, where that is tested",
        faults: redelivery,
        with: &[],
        mistakes: &[
            edit("  LoadQueue:", "maxReceiveCount: 10", "maxReceiveCount: 3"),
            edit("  LoadQueue:", "VisibilityTimeout: 200", "VisibilityTimeout: 300"),
        ],
    },
    Check {
        rule: "each queue has dead letters of its own, which come from nowhere else and stay long",
        faults: dead_letters,
        with: &[],
        mistakes: &[
            edit("  SyncQueue:", "      RedrivePolicy: {", "      Tags: [] # {"),
            edit("  SyncQueue:", "!GetAtt SyncDeadLetterQueue", "!GetAtt LoadDeadLetterQueue"),
            edit("  SyncDeadLetterQueue:", "byQueue", "allowAll"),
            edit("  SyncDeadLetterQueue:", "-onsale-sync\"]", "-onsale-load\"]"),
            edit("  SyncDeadLetterQueue:", "Period: 1209600", "Period: 3600"),
        ],
    },
    Check {
        rule: "only what failed of a batch comes again",
        faults: partial_batches,
        with: &[],
        mistakes: &[edit("  RefundFunction:", "[ReportBatchItemFailures]", "[]")],
    },
    Check {
        rule: "each consumer has a bound, within what is reserved for it",
        faults: consumers,
        with: &[],
        mistakes: &[
            edit("  RefundFunction:", "ScalingConfig: { MaximumConcurrency: 2 }", "Enabled: true"),
            edit("  LoadSaleFunction:", "MaximumConcurrency: 2", "MaximumConcurrency: 20"),
            edit("  SyncDbFunction:", "MaximumBatchingWindowInSeconds: 2", "Enabled: true"),
        ],
    },
    Check {
        rule: "queues are encrypted, at rest and on the way",
        faults: queue_encryption,
        with: &[],
        mistakes: &[
            edit("  RefundQueue:", "SqsManagedSseEnabled: true", "SqsManagedSseEnabled: false"),
            edit("  LoadQueuePolicy:", "[!Ref LoadQueue, !Ref", "[!Ref"),
            edit("  LoadQueuePolicy:", "Effect: Deny", "Effect: Allow"),
            edit(
                "  LoadQueuePolicy:",
                "\"aws:SecureTransport\": \"false\"",
                "\"aws:SecureTransport\": \"true\"",
            ),
        ],
    },
    Check {
        rule: "tables are encrypted, can be recovered, and survive the stack; in prod, a slip too",
        faults: table_safety,
        with: &[],
        mistakes: &[
            edit("  OrdersTable:", "InTimeRecoveryEnabled: true", "InTimeRecoveryEnabled: false"),
            edit("  SeatsTable:", "SSEEnabled: true", "SSEEnabled: false"),
            edit("  SalesTable:", "DeletionPolicy: Retain", "DeletionPolicy: Delete"),
            edit("  OrdersTable:", "!If [IsProd, true, false]", "false"),
            edit("  IsProd:", "!Ref Stage, prod", "!Ref Stage, production"),
            edit("  SeatsTable:", "BillingMode: PAY_PER_REQUEST", "BillingMode: PROVISIONED"),
        ],
    },
    Check {
        rule: "tables have the keys and indexes that the engine uses",
        faults: table_keys,
        with: &[],
        mistakes: &[
            edit("  SeatsTable:", "sk, AttributeType: N", "sk, AttributeType: S"),
            edit("  OrdersTable:", "by_user, KeyType: RANGE", "sk, KeyType: RANGE"),
            edit("  OrdersTable:", "NonKeyAttributes: [order]", "NonKeyAttributes: [sale]"),
            edit("  SalesTable:", "-onsale-sales", "-onsale-sale"),
        ],
    },
    Check {
        rule: "tables are warmed when that is asked for, with their index",
        faults: warmth,
        with: WARM,
        mistakes: &[
            edit("IndexName: due", "          WarmThroughput:", "          Warm:"),
            edit("  SeatsTable:", "!Ref WarmWrites", "4000"),
        ],
    },
    Check {
        rule: "the cache is encrypted, wants a password, fails over and forgets nothing by itself",
        faults: cache,
        with: &[],
        mistakes: &[
            edit(
                "  NodeCache:",
                "TransitEncryptionEnabled: true",
                "TransitEncryptionEnabled: false",
            ),
            edit("  NodeCache:", "AtRestEncryptionEnabled: true", "AtRestEncryptionEnabled: false"),
            edit("  NodeCache:", "      UserGroupIds: [!Ref CacheUsers]\n", ""),
            edit(
                "  NodeCache:",
                "AutomaticFailoverEnabled: true",
                "AutomaticFailoverEnabled: false",
            ),
            edit("  NodeCache:", "!If [HasReplicas, true, false]", "false"),
            edit("  NodeCache:", "ClusterMode: enabled", "ClusterMode: disabled"),
            edit("  NodeParameters:", "noeviction", "allkeys-lru"),
            edit(
                "  CacheUser:",
                "Type: password, Passwords:",
                "Type: no-password-required, Passwords:",
            ),
            edit("  CacheUser:", "-@all", "+@all"),
            edit(
                "  CacheUser:",
                "{{resolve:secretsmanager:${CachePassword}}}",
                "hunter2hunter2hunter2",
            ),
        ],
    },
    Check {
        rule: "so does the serverless one",
        faults: cache,
        with: SERVERLESS,
        mistakes: &[
            edit("  ServerlessCache:", "      UserGroupId: !Ref CacheUsers\n", ""),
            edit("  ServerlessCache:", "Engine: valkey", "Engine: memcached"),
        ],
    },
    Check {
        rule: "nothing is let in from an address, and nothing made is public",
        faults: exposure,
        with: &[],
        mistakes: &[
            edit(
                "  CacheFromFunctions:",
                "SourceSecurityGroupId: !Ref FunctionSecurityGroup",
                "CidrIp: 0.0.0.0/0",
            ),
            edit("  EndpointFromFunctions:", "FromPort: 443", "FromPort: 0"),
            edit(
                "  FunctionSecurityGroup:",
                "      SecurityGroupEgress:",
                "      SecurityGroupIngress: [{ IpProtocol: tcp, FromPort: 22, ToPort: 22, CidrIp: 10.0.0.0/8 }]\n      SecurityGroupEgress:",
            ),
            edit(
                "  PrivateSubnetA:",
                "      VpcId: !Ref Vpc\n",
                "      VpcId: !Ref Vpc\n      MapPublicIpOnLaunch: true\n",
            ),
            edit("  WayOutA:", "NatGatewayId: !Ref NatA", "GatewayId: !Ref InternetGateway"),
            edit(
                "  RefundFunction:",
                "      Timeout: 30\n",
                "      Timeout: 30\n      FunctionUrlConfig: { AuthType: NONE }\n",
            ),
        ],
    },
    Check {
        rule: "functions reach their stores and nothing else; two of them the payment provider",
        faults: ways_out,
        with: &[],
        mistakes: &[
            edit(
                "  FunctionSecurityGroup:",
                "DestinationPrefixListId: !Ref DynamoDbPrefixListId",
                "CidrIp: 0.0.0.0/0",
            ),
            edit(
                "  FunctionSecurityGroup:",
                "FromPort: 6379, ToPort: 6380",
                "FromPort: 0, ToPort: 65535",
            ),
            edit(
                "  CacheSecurityGroup:",
                "      SecurityGroupEgress: [{ Description: Nothing, IpProtocol: \"-1\", CidrIp: 127.0.0.1/32 }]\n",
                "",
            ),
            edit(
                "  ReserveFunction:",
                "[!Ref FunctionSecurityGroup]",
                "[!Ref FunctionSecurityGroup, !Ref ProviderSecurityGroup]",
            ),
            edit(
                "  ReconcileFunction:",
                ", !If [HasWayOut, !Ref ProviderSecurityGroup, !Ref AWS::NoValue]",
                "",
            ),
            edit("  SqsEndpoint:", "Action: sqs:SendMessage", "Action: \"sqs:*\""),
            edit("  DynamoDbEndpoint:", "${Stage}-onsale-*", "*"),
            edit("  SqsEndpoint:", "PrivateDnsEnabled: true", "PrivateDnsEnabled: false"),
            edit("  SqsEndpoint:", "            Condition: {", "            Sid: a # {"),
        ],
    },
    Check {
        rule: "the routes are the gateway's, and who may use them",
        faults: routes,
        with: &[],
        mistakes: &[
            edit("  ReserveFunction:", ", Auth: { Authorizer: Buyer }", ""),
            edit("  SalesFunction:", ", Auth: { Authorizer: AWS_IAM }", ""),
            edit("  SalesFunction:", "Authorizer: AWS_IAM", "Authorizer: Buyer"),
            edit("  CancelFunction:", "{order}/cancel", "{order}/abort"),
            edit("  OrdersFunction:", "Path: /orders,", "Path: /mine,"),
            edit(
                "  PayCallbackFunction:",
                "callback\" }",
                "callback\", Auth: { Authorizer: Buyer } }",
            ),
            edit("        Authorizers:", "audience: !Ref JwtAudience", "audience: [anybody]"),
        ],
    },
    Check {
        rule: "functions are called by their own triggers alone",
        faults: callers,
        with: &[],
        mistakes: &[
            edit(
                "Resources:\n",
                "  # ---",
                "  Anybody:\n    Type: AWS::Lambda::Permission\n    Properties: { FunctionName: !Ref RefundFunction, Action: lambda:InvokeFunction, Principal: \"*\" }\n  # ---",
            ),
            edit(
                "Resources:\n",
                "  # ---",
                "  Api2:\n    Type: AWS::Lambda::Permission\n    Properties: { FunctionName: !Ref RefundFunction, Action: lambda:InvokeFunction, Principal: apigateway.amazonaws.com }\n  # ---",
            ),
        ],
    },
    Check {
        rule: "each route has a share, and all together leave the provider's calls theirs",
        faults: throttling,
        with: &[],
        mistakes: &[
            edit("  AdmissionRate:", "Default: 2500", "Default: 25000"),
            edit("  OtherRate:", "Default: 250", "Default: 2500"),
            edit(
                "RouteSettings:\n        \"POST",
                "ThrottlingBurstLimit: 1250",
                "ThrottlingBurstLimit: 5000",
            ),
            edit(
                "      RouteSettings:\n",
                "POST /payments/{provider}/callback",
                "POST /payments/{provider}/callbacks",
            ),
            edit(
                "      DefaultRouteSettings:",
                "        ThrottlingRateLimit: !Ref OtherRate\n",
                "",
            ),
        ],
    },
    Check {
        rule: "every log is JSON, in a group of its own that ends some day, and names no buyer",
        faults: logs,
        with: &[],
        mistakes: &[
            edit(
                "  OrdersFunction:",
                "LogFormat: JSON, ApplicationLogLevel: !Ref LogLevel",
                "LogFormat: Text",
            ),
            edit("  OrdersFunction:", "LogGroup: !Ref OrdersLogs", "LogGroup: !Ref SalesLogs"),
            edit("  CancelLogs:", ", RetentionInDays: !Ref LogRetentionDays", ""),
            edit(
                "  Api:",
                "\"status\":\"$context.status\"",
                "\"who\":\"$context.authorizer.claims.sub\"",
            ),
        ],
    },
    Check {
        rule: "buyers cannot starve payments, expiry, loading or repair",
        faults: reserved,
        with: &[],
        mistakes: &[
            edit("  PayCallbackFunction:", "ReservedConcurrentExecutions:", "Tags: # "),
            edit(
                "  ExpireOrdersFunction:",
                "!If [ReservesConcurrency, !Ref ExpireOrdersConcurrency, !Ref AWS::NoValue]",
                "1",
            ),
            edit("  ReconcileFunction:", "[ReservesConcurrency, 1,", "[ReservesConcurrency, 5,"),
            edit(
                "  ReserveFunction:",
                "      VpcConfig:",
                "      ReservedConcurrentExecutions: 100\n      VpcConfig:",
            ),
            edit("  PayCallbackConcurrency:", "Default: 50", "Default: 950"),
        ],
    },
    Check {
        rule: "each function has a role of its own, for Lambda",
        faults: roles,
        with: &[],
        mistakes: &[
            edit(
                "  OrdersFunction:",
                "Role: !GetAtt OrdersRole.Arn",
                "Role: !GetAtt SalesRole.Arn",
            ),
            edit("  OrdersRole:", "Service: lambda.amazonaws.com", "AWS: \"*\""),
            edit("  OrdersFunction:", "      Role: !GetAtt OrdersRole.Arn\n", ""),
        ],
    },
    Check {
        rule: "no right is for everything",
        faults: wildcards,
        with: &[],
        mistakes: &[
            edit("  ReserveRole:", "dynamodb:PutItem", "\"dynamodb:*\""),
            edit("  ReserveRole:", "Resource: !GetAtt SeatsTable.Arn", "Resource: \"*\""),
            edit(
                "  ReserveRole:",
                "Resource: !GetAtt SeatsTable.Arn",
                "Resource: !Sub \"${SeatsTable.Arn}/*\"",
            ),
            edit(
                "  ReserveRole:",
                "[!Ref NetworkPolicy]",
                "[!Ref NetworkPolicy, arn:aws:iam::aws:policy/AmazonSQSFullAccess]",
            ),
            edit("  NetworkPolicy:", "          - Effect: Deny", "          - Effect: Allow"),
            edit(
                "  NetworkPolicy:",
                "ec2:DescribeSubnets]",
                "ec2:DescribeSubnets, ec2:RunInstances]",
            ),
            edit("  OperatorPolicy:", "/*/PUT/sales/*", "/*"),
        ],
    },
    Check {
        rule: "every function starts with the variables that it is given",
        faults: environment,
        with: &[],
        mistakes: &[
            edit("Globals:", "        ONSALE_LOAD_QUEUE_URL: !Ref LoadQueue\n", ""),
            edit("Globals:", "ONSALE_REDIS_CLUSTER: \"true\"", "ONSALE_REDIS_CLUSTER: \"yes\""),
            edit("Globals:", "\"rediss://:{{", "\"redis://:{{"),
            edit("Globals:", "\"${Stage}-onsale-\"", "\"${Stage}-\""),
            edit(
                "Globals:",
                "ONSALE_EXPIRY_QUEUE_URL: !Ref ExpiryQueue",
                "ONSALE_EXPIRY_QUEUE_URL: !Ref SyncQueue",
            ),
            edit("  ReserveFunction:", "ONSALE_ADMISSION_KEYS", "ONSALE_ADMISSION_KEY"),
            edit("  PayCallbackFunction:", "\"stripe:{{", "\"{{"),
            edit("  AdmissionKey:", "PasswordLength: 64", "PasswordLength: 32"),
            edit("  AdmissionKey:", "PasswordLength: 64", "PasswordLength: 63"),
            edit("  CachePassword:", "ExcludePunctuation: true", "ExcludePunctuation: false"),
        ],
    },
    Check {
        rule: "secrets come from Secrets Manager, and only to who needs them",
        faults: secrets,
        with: &[(
            "ProviderKeysSecretArn",
            "arn:aws:secretsmanager:eu-central-1:000000000000:secret:mine",
        )],
        mistakes: &[
            edit(
                "  ReserveFunction:",
                "made:{{resolve:secretsmanager:${AdmissionKey}}}",
                "made:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            ),
            edit("  OrdersFunction:", "          ONSALE_REDIS_URL", "          OTHER"),
            edit(
                "Globals:",
                "        ONSALE_METRICS",
                "        ONSALE_PROVIDER_KEYS: !Sub \"{{resolve:secretsmanager:${ProviderKeysSecretArn}}}\"\n        ONSALE_METRICS",
            ),
            edit(
                "  RefundFunction:",
                "ONSALE_PROVIDER_KEYS: !If [HasProviderKeys,",
                "ONSALE_PROVIDER_KEYS: !If [IsServerless,",
            ),
            edit("  ReserveFunction:", " (secrets ${SecretsRevision})", ""),
        ],
    },
    Check {
        rule: "the sweeper comes every minute, once, by a role that may call it alone",
        faults: schedule,
        with: &[],
        mistakes: &[
            edit("  ReconcileFunction:", "rate(1 minute)", "rate(5 minutes)"),
            edit(
                "  ReconcileFunction:",
                "RetryPolicy: { MaximumRetryAttempts: 0 }",
                "RetryPolicy: { MaximumRetryAttempts: 5 }",
            ),
            edit(
                "  ReconcileFunction:",
                "EventInvokeConfig: { MaximumRetryAttempts: 0",
                "EventInvokeConfig: { MaximumRetryAttempts: 2",
            ),
        ],
    },
    Check {
        rule: "stages share an account: every name says whose it is",
        faults: names,
        with: &[],
        mistakes: &[
            edit(
                "  ReconcileFunction:",
                "            Name: !Sub \"${Stage}-onsale-reconcile\"\n",
                "",
            ),
            edit("  RefundQueue:", "\"${Stage}-onsale-refund\"", "onsale-refund"),
        ],
    },
    Check {
        rule: "functions are small arm64 machines that end before their caller gives up",
        faults: machines,
        with: &[],
        mistakes: &[
            edit("  Architecture:", "Default: arm64", "Default: x86_64"),
            edit("  SalesFunction:", "Timeout: 29", "Timeout: 60"),
            edit("Globals:", "provided.al2023", "provided.al2"),
        ],
    },
];

/// A queue and the function that empties it.
struct Consumed<'s> {
    queue: &'s str,
    says: &'s Value,
    binary: &'s str,
    function: &'s Value,
    mapping: &'s Value,
}

fn consumed(stack: &Stack) -> Vec<Consumed<'_>> {
    let mut found = Vec::new();
    for (_, mapping) in stack.all("AWS::Lambda::EventSourceMapping") {
        let (queue, says) = stack.behind(&mapping["EventSourceArn"]).unwrap();
        let called = name_in(text(&mapping["FunctionName"])).unwrap();
        let (binary, _, function) =
            stack.functions().find(|(_, logical, _)| *logical == called).unwrap();
        found.push(Consumed { queue, says, binary, function, mapping });
    }
    found
}

/// A number, which a parameter gives as text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn is_true(value: &Value) -> bool {
    *value == json!(true)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The faults of which the condition is false.
fn unless<const N: usize>(name: &str, conditions: [(bool, &str); N]) -> Vec<String> {
    let broken = conditions.into_iter().filter(|(holds, _)| !holds);
    broken.map(|(_, what)| format!("{name}: {what}")).collect()
}

fn visibility(stack: &Stack) -> Vec<String> {
    let of = |Consumed { queue, says, function, mapping, .. }: Consumed<'_>| {
        let timeout = number(&function["Timeout"]).unwrap();
        let window = number(&mapping["MaximumBatchingWindowInSeconds"]).unwrap_or(0);
        let visibility = number(&says["VisibilityTimeout"]).unwrap_or(0);
        unless(queue, [(visibility >= 6 * timeout + window, "shows a message too early")])
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn redelivery(stack: &Stack) -> Vec<String> {
    let Redelivery { visibility, receives_most } = Redelivery::default();
    let of = |Consumed { queue, says, .. }: Consumed<'_>| {
        let receives = number(&says["RedrivePolicy"]["maxReceiveCount"]);
        let hidden = number(&says["VisibilityTimeout"]);
        unless(
            queue,
            [
                (receives == Some(receives_most.into()), "another number of receives"),
                (hidden == Some(visibility.as_secs()), "another visibility"),
            ],
        )
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn dead_letters(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut taken = BTreeSet::new();
    for Consumed { queue, says: properties, .. } in consumed(stack) {
        let dead = stack.behind(&properties["RedrivePolicy"]["deadLetterTargetArn"]);
        let Some((dead, letters)) = dead else {
            faults.push(format!("{queue}: forgets what fails"));
            continue;
        };
        let allow = &letters["RedriveAllowPolicy"];
        let arn =
            format!("arn:aws:sqs:eu-central-1:000000000000:{}", text(&properties["QueueName"]));
        let stays = [properties, letters]
            .map(|queue| number(&queue["MessageRetentionPeriod"]) == Some(LONGEST_RETENTION));
        faults.extend(unless(
            queue,
            [
                (taken.insert(dead), "shares its dead letters"),
                (allow["redrivePermission"] == "byQueue", "its dead letters come from anywhere"),
                (allow["sourceQueueArns"] == json!([arn]), "its dead letters come from another"),
                (stays == [true, true], "its letters do not stay long"),
            ],
        ));
    }
    let queues = stack.all("AWS::SQS::Queue").count();
    faults.extend(unless("queues", [(taken.len() * 2 == queues, "some have no consumer")]));
    faults
}

fn partial_batches(stack: &Stack) -> Vec<String> {
    let of = |Consumed { queue, mapping, .. }: Consumed<'_>| {
        let answers = mapping["FunctionResponseTypes"] == json!(["ReportBatchItemFailures"]);
        unless(queue, [(answers, "a whole batch comes again for one message")])
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn consumers(stack: &Stack) -> Vec<String> {
    let of = |Consumed { binary, function, mapping, .. }: Consumed<'_>| {
        let most = number(&mapping["ScalingConfig"]["MaximumConcurrency"]);
        let reserved = number(&function["ReservedConcurrentExecutions"]);
        let batch = number(&mapping["BatchSize"]).unwrap_or(10);
        let window = number(&mapping["MaximumBatchingWindowInSeconds"]).unwrap_or(0);
        unless(
            binary,
            [
                (most.is_some_and(|most| most >= 2), "has no bound"),
                (reserved.is_none_or(|own| most.is_some_and(|most| most <= own)), "is throttled"),
                (batch <= 10 || window > 0, "a batch of so many needs a window"),
            ],
        )
    };
    consumed(stack).into_iter().flat_map(of).collect()
}

fn queue_encryption(stack: &Stack) -> Vec<String> {
    let mut guarded = BTreeSet::new();
    for (_, policy) in stack.all("AWS::SQS::QueuePolicy") {
        let queues: BTreeSet<&str> = policy["Queues"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|queue| name_in(text(queue)))
            .collect();
        for statement in policy["PolicyDocument"]["Statement"].as_array().unwrap() {
            let refuses = statement["Effect"] == "Deny"
                && statement["Principal"] == "*"
                && statement["Condition"] == json!({ "Bool": { "aws:SecureTransport": "false" } });
            if refuses {
                let of = list(&statement["Resource"]);
                let of: BTreeSet<&str> = of.iter().filter_map(|arn| name_in(arn)).collect();
                guarded.extend(queues.intersection(&of).map(|name| (*name).to_owned()));
            }
        }
    }
    let of = |(queue, properties): (&str, &Value)| {
        unless(
            queue,
            [
                (is_true(&properties["SqsManagedSseEnabled"]), "is not encrypted"),
                (guarded.contains(queue), "takes letters in the open"),
            ],
        )
    };
    stack.all("AWS::SQS::Queue").flat_map(of).collect()
}

fn table_safety(stack: &Stack) -> Vec<String> {
    let is_prod = stack.parameters["Stage"] == "prod";
    let of = |(table, properties): (&str, &Value)| {
        let recovery = &properties["PointInTimeRecoverySpecification"];
        let is_protected = is_true(&properties["DeletionProtectionEnabled"]);
        let policy = stack.resources[table].deletion_policy.as_deref();
        unless(
            table,
            [
                (is_true(&recovery["PointInTimeRecoveryEnabled"]), "cannot be recovered"),
                (is_true(&properties["SSESpecification"]["SSEEnabled"]), "is not encrypted"),
                (properties["BillingMode"] == "PAY_PER_REQUEST", "has a capacity"),
                (is_protected == is_prod, "is protected where it should not be, or is not"),
                (policy == Some("Retain"), "goes with the stack"),
            ],
        )
    };
    stack.all("AWS::DynamoDB::Table").flat_map(of).collect()
}

/// What the template should say of a table.
fn described(table: &TableDefinition) -> Value {
    let schema = |partition: Key, sort: Key| {
        json!([
            { "AttributeName": partition.name, "KeyType": "HASH" },
            { "AttributeName": sort.name, "KeyType": "RANGE" },
        ])
    };
    let index = |index: &Index| {
        let projection = match index.carries {
            [] => json!({ "ProjectionType": "KEYS_ONLY" }),
            carries => json!({ "ProjectionType": "INCLUDE", "NonKeyAttributes": carries }),
        };
        json!({
            "IndexName": index.name, "KeySchema": schema(index.partition, index.sort),
            "Projection": projection,
        })
    };
    let mut keys = BTreeMap::new();
    let indexes = table.local.iter().chain(table.global);
    let of_indexes = indexes.flat_map(|index| [index.partition, index.sort]);
    for key in [table.partition, table.sort].into_iter().chain(of_indexes) {
        let kind = match key.kind {
            KeyKind::Text => "S",
            KeyKind::Number => "N",
        };
        keys.insert(key.name, kind);
    }
    json!({
        "keys": keys, "schema": schema(table.partition, table.sort),
        "local": table.local.iter().map(index).collect::<Vec<_>>(),
        "global": table.global.iter().map(index).collect::<Vec<_>>(),
    })
}

fn table_keys(stack: &Stack) -> Vec<String> {
    let tables = Tables::with_prefix(&format!("{}-onsale-", stack.parameters["Stage"]));
    let of = |(name, definition): (&str, &TableDefinition)| {
        let found = stack.all("AWS::DynamoDB::Table").find(|(_, table)| table["TableName"] == name);
        let Some((_, table)) = found else { return vec![format!("{name} is not there")] };
        let attributes = table["AttributeDefinitions"].as_array().unwrap();
        let keys: BTreeMap<&str, &str> = attributes
            .iter()
            .map(|key| (text(&key["AttributeName"]), text(&key["AttributeType"])))
            .collect();
        let indexes = |kind: &str| -> Vec<Value> {
            let indexes = table[kind].as_array().into_iter().flatten();
            let without_warmth = |index: &Value| {
                let fields = ["IndexName", "KeySchema", "Projection"];
                Value::from_iter(fields.map(|field| (field, index[field].clone())))
            };
            indexes.map(without_warmth).collect()
        };
        let says = json!({
            "keys": keys, "schema": table["KeySchema"],
            "local": indexes("LocalSecondaryIndexes"), "global": indexes("GlobalSecondaryIndexes"),
        });
        unless(name, [(says == described(definition), "is not the table that the engine uses")])
    };
    tables.definitions().into_iter().flat_map(of).collect()
}

fn warmth(stack: &Stack) -> Vec<String> {
    let writes = &stack.parameters["WarmWrites"];
    let requested = (writes != "4000")
        .then(|| json!({ "ReadUnitsPerSecond": stack.parameters["WarmReads"], "WriteUnitsPerSecond": writes }));
    let is = |of: &Value| of.get("WarmThroughput") == requested.as_ref();
    let mut faults = Vec::new();
    for name in ["OrdersTable", "SeatsTable"] {
        let table = &stack.resources[name].properties;
        let indexes = table["GlobalSecondaryIndexes"].as_array();
        let are = indexes.into_iter().flatten().all(is);
        faults.extend(unless(name, [(is(table) && are, "is not as warm as was asked for")]));
    }
    faults
}

fn cache(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut caches = 0;
    for (name, cache) in stack.all("AWS::ElastiCache::ServerlessCache") {
        caches += 1;
        let has_users = stack.behind(&cache["UserGroupId"]).is_some();
        faults.extend(unless(
            name,
            [(cache["Engine"] == "valkey", "another engine"), (has_users, "wants no password")],
        ));
    }
    for (name, nodes) in stack.all("AWS::ElastiCache::ReplicationGroup") {
        caches += 1;
        let has_users = nodes["UserGroupIds"].as_array().is_some_and(|groups| !groups.is_empty());
        let parameters = stack.behind(&nodes["CacheParameterGroupName"]).map(|(_, group)| group);
        let parameters = parameters.map_or(Value::Null, |group| group["Properties"].clone());
        let has_replicas = number(&nodes["ReplicasPerNodeGroup"]) > Some(0);
        faults.extend(unless(
            name,
            [
                (nodes["Engine"] == "valkey", "another engine"),
                (is_true(&nodes["TransitEncryptionEnabled"]), "speaks in the open"),
                (is_true(&nodes["AtRestEncryptionEnabled"]), "is not encrypted at rest"),
                (is_true(&nodes["AutomaticFailoverEnabled"]), "does not fail over"),
                (is_true(&nodes["MultiAZEnabled"]) == has_replicas, "is in one zone"),
                (nodes["ClusterMode"] == "enabled", "is no cluster"),
                (parameters["cluster-enabled"] == "yes", "is no cluster by its parameters"),
                (parameters["maxmemory-policy"] == "noeviction", "forgets to make room"),
                (has_users, "wants no password"),
            ],
        ));
    }
    faults.extend(unless("cache", [(caches == 1, "there is not exactly one")]));
    for (name, user) in stack.all("AWS::ElastiCache::User") {
        let access = text(&user["AccessString"]);
        let mode = &user["AuthenticationMode"];
        let passwords = list(&mode["Passwords"]);
        let secret = "{{resolve:secretsmanager:${CachePassword}}}";
        faults.extend(unless(
            name,
            [
                (mode["Type"] == "password" && passwords == [secret], "its password is no secret"),
                (access.contains(" -@all ") && !access.contains("+@"), "may do too much"),
            ],
        ));
    }
    faults
}

fn exposure(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut check = |name: &str, rule: &Value| {
        let ports = (number(&rule["FromPort"]), number(&rule["ToPort"]));
        let expected = [(Some(443), Some(443)), (Some(6379), Some(6380))];
        let from = stack.behind(&rule["SourceSecurityGroupId"]).map(|(name, _)| name);
        faults.extend(unless(
            name,
            [
                (from == Some("FunctionSecurityGroup"), "lets in what is no function of ours"),
                (rule["IpProtocol"] == "tcp" && expected.contains(&ports), "opens other ports"),
            ],
        ));
    };
    for (name, rule) in stack.all("AWS::EC2::SecurityGroupIngress") {
        check(name, rule);
    }
    for (name, group) in stack.all("AWS::EC2::SecurityGroup") {
        group["SecurityGroupIngress"]
            .as_array()
            .into_iter()
            .flatten()
            .for_each(|rule| check(name, rule));
    }
    for (name, subnet) in stack.all("AWS::EC2::Subnet") {
        let is_public = is_true(&subnet["MapPublicIpOnLaunch"]);
        faults.extend(unless(name, [(!is_public, "gives out public addresses")]));
    }
    for (name, route) in stack.all("AWS::EC2::Route") {
        let to_internet = route["GatewayId"].is_string();
        let is_public = text(&route["RouteTableId"]) == "${PublicRoutes}";
        faults.extend(unless(name, [(to_internet == is_public, "leads to the internet")]));
    }
    let urls = stack.all("AWS::Lambda::Url").count();
    faults.extend(unless("functions", [(urls == 0, "one has an address of its own")]));
    faults
}

fn ways_out(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, group) in stack.all("AWS::EC2::SecurityGroup") {
        let rules = group["SecurityGroupEgress"].as_array().cloned().unwrap_or_default();
        faults.extend(unless(name, [(!rules.is_empty(), "lets everything out")]));
        for rule in &rules {
            let ports = (number(&rule["FromPort"]), number(&rule["ToPort"]));
            let is_narrow =
                match (text(&rule["CidrIp"]), stack.behind(&rule["DestinationSecurityGroupId"])) {
                    ("127.0.0.1/32", _) => true,
                    ("0.0.0.0/0", _) => {
                        name == "ProviderSecurityGroup" && ports == (Some(443), Some(443))
                    }
                    (_, Some(("CacheSecurityGroup", _))) => ports == (Some(6379), Some(6380)),
                    (_, Some(("EndpointSecurityGroup", _))) => ports == (Some(443), Some(443)),
                    _ => {
                        rule["DestinationPrefixListId"] == "pl-0123abcd"
                            && ports == (Some(443), Some(443))
                    }
                };
            faults.extend(unless(name, [(is_narrow, "lets too much out")]));
        }
    }
    let has_way_out = stack.parameters["WayOut"] != "none";
    for (binary, _, function) in stack.functions() {
        let groups = function["VpcConfig"]["SecurityGroupIds"].as_array();
        let has = |group: &str| {
            groups.is_some_and(|groups| groups.contains(&json!(format!("${{{group}}}"))))
        };
        let asks = ASK_PROVIDER.contains(&binary) && has_way_out;
        faults.extend(unless(
            binary,
            [
                (has("ProviderSecurityGroup") == asks, "reaches the provider, or does not"),
                (
                    has("FunctionSecurityGroup") != WITHOUT_REDIS.contains(&binary),
                    "is in the network for nothing, or is not",
                ),
            ],
        ));
    }
    for (name, endpoint) in stack.all("AWS::EC2::VPCEndpoint") {
        let is_interface = endpoint["VpcEndpointType"] == "Interface";
        faults.extend(unless(
            name,
            [(is_true(&endpoint["PrivateDnsEnabled"]) == is_interface, "is not found")],
        ));
        for statement in endpoint["PolicyDocument"]["Statement"].as_array().into_iter().flatten() {
            let actions = list(&statement["Action"]);
            let stage = format!("{}-onsale-*", stack.parameters["Stage"]);
            let is_ours = list(&statement["Resource"]).iter().all(|arn| arn.ends_with(&stage));
            let account = json!({ "StringEquals": { "aws:PrincipalAccount": "000000000000" } });
            faults.extend(unless(
                name,
                [
                    (actions.iter().all(|action| !action.contains('*')), "allows every action"),
                    (is_ours, "leads to what is not ours"),
                    (statement["Condition"] == account, "lets strangers through"),
                ],
            ));
        }
    }
    let made = if stack.parameters["VpcId"].is_empty() { 2 } else { 0 };
    let endpoints = stack.all("AWS::EC2::VPCEndpoint").count();
    faults.extend(unless("endpoints", [(endpoints == made, "there are others")]));
    faults
}

/// The methods of the API, with what they say.
fn methods(stack: &Stack) -> Vec<(String, &Value)> {
    let (_, api) = stack.all("AWS::ApiGatewayV2::Api").next().unwrap();
    let paths = api["Body"]["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, says)| (format!("{} {path}", method.to_uppercase()), says))
        })
        .collect()
}

fn routes(stack: &Stack) -> Vec<String> {
    let (_, api) = stack.all("AWS::ApiGatewayV2::Api").next().unwrap();
    let mut deployed = BTreeSet::new();
    for (key, says) in methods(stack) {
        let security = says["security"].as_array().into_iter().flatten();
        let authorizer = security.flat_map(|one| one.as_object().unwrap().keys().cloned()).next();
        let uri = text(&says["x-amazon-apigateway-integration"]["uri"]).to_owned();
        let calls =
            uri.split("${").nth(1).and_then(|rest| rest.split(['}', '.']).next()).unwrap_or("");
        let logical = calls.trim_end_matches("Aliaslive");
        let binary =
            stack.functions().find(|(_, name, _)| *name == logical).map(|(binary, ..)| binary);
        deployed.insert((key, authorizer, binary.unwrap_or("nobody").to_owned()));
    }
    let requested: BTreeSet<_> = ROUTES
        .iter()
        .map(|route| {
            let authorizer = match route.access {
                Access::Anyone | Access::Provider => None,
                Access::Buyer => Some("Buyer".to_owned()),
                Access::Operator => Some("AWS_IAM".to_owned()),
            };
            (route.key.to_owned(), authorizer, route.function.as_str().to_owned())
        })
        .collect();
    let buyer =
        &api["Body"]["components"]["securitySchemes"]["Buyer"]["x-amazon-apigateway-authorizer"];
    let jwt = json!({ "issuer": stack.parameters["JwtIssuer"], "audience": [stack.parameters["JwtAudience"]] });
    let is_jwt = buyer["type"] == "jwt"
        && buyer["jwtConfiguration"] == jwt
        && buyer["identitySource"] == "$request.header.Authorization";
    let differing = deployed.symmetric_difference(&requested).map(|route| format!("{route:?}"));
    let mut faults: Vec<String> = differing.collect();
    faults.extend(unless("Buyer", [(is_jwt, "is no authorizer of the issuer's tokens")]));
    faults
}

fn callers(stack: &Stack) -> Vec<String> {
    let of = |(name, permission): (&str, &Value)| {
        let is_api = permission["Principal"] == "apigateway.amazonaws.com";
        let is_ours = text(&permission["SourceArn"]).contains("${Api}");
        unless(name, [(is_api && is_ours, "lets another call")])
    };
    stack.all("AWS::Lambda::Permission").flat_map(of).collect()
}

fn throttling(stack: &Stack) -> Vec<String> {
    let (_, stage) = stack.all("AWS::ApiGatewayV2::Stage").next().unwrap();
    let routes = stage["RouteSettings"].as_object().cloned().unwrap_or_default();
    let default = &stage["DefaultRouteSettings"];
    let keys: Vec<String> = methods(stack).into_iter().map(|(key, _)| key).collect();
    let mut faults = Vec::new();
    let mut sums = (0, 0);
    for key in &keys {
        let settings = routes.get(key).unwrap_or(default);
        let limits =
            (number(&settings["ThrottlingRateLimit"]), number(&settings["ThrottlingBurstLimit"]));
        let (Some(rate), Some(burst)) = limits else {
            faults.push(format!("{key}: has no limit"));
            continue;
        };
        sums = (sums.0 + rate, sums.1 + burst);
    }
    let strangers: Vec<&String> = routes.keys().filter(|key| !keys.contains(key)).collect();
    let callback = "POST /payments/{provider}/callback";
    faults.extend(unless(
        "routes",
        [
            (sums.0 <= ACCOUNT_RATE, "take more than the account's requests a second"),
            (sums.1 <= ACCOUNT_BURST, "take more than the account's burst"),
            (strangers.is_empty(), "one that is not there has a limit"),
            (routes.contains_key(callback), "the provider's calls have no share of their own"),
        ],
    ));
    faults
}

fn logs(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut groups = BTreeSet::new();
    for (binary, _, function) in stack.functions() {
        let logging = &function["LoggingConfig"];
        let group = stack.behind(&logging["LogGroup"]);
        let name = group.map(|(_, group)| text(&group["LogGroupName"]).to_owned());
        let expected = format!("/aws/lambda/{}", text(&function["FunctionName"]));
        faults.extend(unless(
            binary,
            [
                (logging["LogFormat"] == "JSON", "writes no JSON"),
                (name.as_ref() == Some(&expected), "has no log of its own"),
                (groups.insert(name), "shares its log"),
            ],
        ));
    }
    for (name, group) in stack.all("AWS::Logs::LogGroup") {
        faults.extend(unless(
            name,
            [(number(&group["RetentionInDays"]) > Some(0), "is kept for ever")],
        ));
    }
    let (_, stage) = stack.all("AWS::ApiGatewayV2::Stage").next().unwrap();
    let format = text(&stage["AccessLogSettings"]["Format"]);
    let fields: Result<BTreeMap<String, String>, _> = serde_json::from_str(format);
    let names_nobody = ["authorizer", "identity", "header", "path", "sourceIp"]
        .iter()
        .all(|word| !format.contains(word));
    faults.extend(unless(
        "the API's log",
        [
            (stack.behind(&stage["AccessLogSettings"]["DestinationArn"]).is_some(), "is nowhere"),
            (fields.is_ok_and(|fields| fields.contains_key("status")), "is no JSON with a status"),
            (names_nobody, "says who asked"),
        ],
    ));
    faults
}

fn reserved(stack: &Stack) -> Vec<String> {
    let reserves = stack.parameters["ReserveConcurrency"] == "true";
    let mut faults = Vec::new();
    let mut sum = 0;
    for (binary, _, function) in stack.functions() {
        let own = number(&function["ReservedConcurrentExecutions"]);
        sum += own.unwrap_or(0);
        let is_guarded = NEVER_STARVED.contains(&binary);
        let least = if binary == "reconcile" { 1 } else { 2 };
        faults.extend(unless(
            binary,
            [
                (own.is_some() == (is_guarded && reserves), "is starved, or starves"),
                (own.is_none_or(|own| own >= least), "has too little to itself"),
                (binary != "reconcile" || own.is_none_or(|own| own == 1), "runs beside itself"),
            ],
        ));
    }
    let left = sum + UNRESERVABLE <= ACCOUNT_CONCURRENCY / 2;
    faults.extend(unless("all", [(left, "reserve what buyers need")]));
    faults
}

fn roles(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let mut taken = BTreeSet::new();
    let binaries: BTreeSet<&str> = stack.functions().map(|(binary, ..)| binary).collect();
    faults.extend(unless("functions", [(binaries == FUNCTIONS.into(), "are others")]));
    for (binary, logical, function) in stack.functions() {
        let Some((role, properties)) = stack.behind(&function["Role"]) else {
            faults.push(format!("{binary}: has no role"));
            continue;
        };
        let trust = json!([{
            "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" },
            "Action": "sts:AssumeRole",
        }]);
        // One that SAM makes is called after the function, and has policies of AWS's own.
        let is_made_here = role != format!("{logical}Role");
        faults.extend(unless(
            binary,
            [
                (taken.insert(role), "shares a role"),
                (is_made_here, "has the role that SAM makes"),
                (
                    properties["AssumeRolePolicyDocument"]["Statement"] == trust,
                    "its role is taken by others",
                ),
            ],
        ));
    }
    faults
}

fn wildcards(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let interfaces = "arn:aws:ec2:eu-central-1:000000000000:*/*";
    let operator = "arn:aws:execute-api:eu-central-1:000000000000:${Api}/*/PUT/sales/*";
    let mut documents: Vec<(String, &Value)> = Vec::new();
    for (name, policy) in stack.all("AWS::IAM::ManagedPolicy") {
        documents.push((name.to_owned(), &policy["PolicyDocument"]));
    }
    for (name, role) in stack.all("AWS::IAM::Role") {
        for policy in role["Policies"].as_array().into_iter().flatten() {
            documents.push((name.to_owned(), &policy["PolicyDocument"]));
        }
        for arn in role["ManagedPolicyArns"].as_array().into_iter().flatten() {
            faults.extend(unless(
                name,
                [(text(arn) == "${NetworkPolicy}", "has a policy of others")],
            ));
        }
    }
    for (name, document) in documents {
        let mut denies = BTreeSet::new();
        let mut allows = BTreeSet::new();
        for statement in document["Statement"].as_array().unwrap() {
            let actions = list(&statement["Action"]);
            if statement["Effect"] == "Deny" {
                denies.extend(actions);
                continue;
            }
            for resource in list(&statement["Resource"]) {
                // What AWS knows no narrower: the template says why.
                let is_known = match name.as_str() {
                    "NetworkPolicy" => {
                        resource == interfaces
                            || actions.iter().all(|action| action.starts_with("ec2:Describe"))
                    }
                    "OperatorPolicy" => resource == operator,
                    _ => !resource.contains('*'),
                };
                faults.extend(unless(&name, [(is_known, "is for every resource")]));
            }
            let is_wide = actions.iter().any(|action| action.contains('*'));
            faults.extend(unless(&name, [(!is_wide, "allows every action")]));
            allows.extend(actions);
        }
        let is_network = name == "NetworkPolicy";
        let network: BTreeSet<String> = [
            "AssignPrivateIpAddresses",
            "CreateNetworkInterface",
            "DeleteNetworkInterface",
            "DescribeNetworkInterfaces",
            "DescribeSubnets",
            "UnassignPrivateIpAddresses",
        ]
        .map(|action| format!("ec2:{action}"))
        .into();
        faults.extend(unless(
            &name,
            [
                (!is_network || allows == network, "allows more than Lambda asks for"),
                (!is_network || denies == allows, "lets the functions' own code do it too"),
            ],
        ));
    }
    faults
}

/// What a variable says once CloudFormation has put the secrets and addresses in.
fn resolved(stack: &Stack, variable: &str, value: &str) -> String {
    let mut text = value.to_owned();
    while let Some(start) = text.find("{{resolve:secretsmanager:") {
        let end = start + text[start..].find("}}").unwrap() + 2;
        // A reference within it ends with a brace of its own.
        let end = end + usize::from(text[end..].starts_with('}'));
        let secret = match name_in(&text[start + "{{resolve:secretsmanager:".len()..end]) {
            Some(name) => generated(&stack.resources[name].properties),
            None => match variable {
                "ONSALE_ADMISSION_KEYS" => format!("mine:{}", "A".repeat(64)),
                _ => "stripe:secret".to_owned(),
            },
        };
        text.replace_range(start..end, &secret);
    }
    while let (Some(start), Some(end)) = (text.find("${"), text.find('}')) {
        let is_port = text[start..end].ends_with("Port");
        text.replace_range(start..=end, if is_port { "6379" } else { "there" });
    }
    text
}

/// A secret as Secrets Manager makes it: of letters and digits, or of anything.
fn generated(secret: &Value) -> String {
    let how = &secret["GenerateSecretString"];
    let letters = if is_true(&how["ExcludePunctuation"]) { "Ab3" } else { "A/#@" };
    let length = number(&how["PasswordLength"]).unwrap_or(32);
    letters.chars().cycle().take(usize::try_from(length).unwrap()).collect()
}

/// The variables that `docs/configuration.md` says a function needs: for all, and for some.
fn needed(binary: &str) -> Vec<String> {
    let handbook = read("docs/configuration.md");
    let rows = handbook.lines().filter(|line| line.starts_with("| `ONSALE_"));
    let of = |row: &str| {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (variable, who) = (cells.next()?.trim_matches('`').to_owned(), cells.next()?);
        let is_secret_of_provider = variable == "ONSALE_PROVIDER_KEYS";
        let needs = who == "yes" || who.split(", ").any(|one| one == format!("`{binary}`"));
        (needs && !is_secret_of_provider).then_some(variable)
    };
    rows.filter_map(of).collect()
}

fn environment(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    for (binary, _, function) in stack.functions() {
        let variables = function["Environment"]["Variables"].as_object().unwrap();
        let value = |name: &str| {
            let value = variables.get(name)?;
            Some(resolved(stack, name, text(value)))
        };
        for variable in needed(binary) {
            faults.extend(unless(
                binary,
                [(value(&variable).is_some(), &format!("lacks {variable}"))],
            ));
        }
        let stage = &stack.parameters["Stage"];
        let queue = |queue: QueueName| (queue.url_variable(), format!("${{{queue:?}Queue}}"));
        let others = [
            ("ONSALE_TABLE_PREFIX", format!("{stage}-onsale-")),
            ("ONSALE_STAGE", stage.clone()),
            ("ONSALE_METRICS", "emf".to_owned()),
            ("ONSALE_REDIS_CLUSTER", "true".to_owned()),
        ];
        for (variable, says) in QueueName::ALL.map(queue).into_iter().chain(others) {
            let is = variables.get(variable) == Some(&json!(says));
            faults.extend(unless(binary, [(is, &format!("is told another {variable}"))]));
        }
        match Config::read(value) {
            Err(defect) => faults.push(format!("{binary}: {defect}")),
            Ok(config) => {
                let connection = Connection::new(&config.redis.topology, Bounds::default());
                let speaks_tls =
                    value("ONSALE_REDIS_URL").is_some_and(|url| url.starts_with("rediss://"));
                let has = |variable: &str, is_there: bool| {
                    is_there || !needed(binary).contains(&variable.to_owned())
                };
                faults.extend(unless(
                    binary,
                    [
                        (connection.is_ok() && speaks_tls, "cannot read the address of the cache"),
                        (
                            has("ONSALE_ADMISSION_KEYS", !config.admission.keys.is_empty()),
                            "has no admission key",
                        ),
                        (
                            has("ONSALE_PAYMENT_SECRETS", !config.payments.secrets.is_empty()),
                            "has no payment secret",
                        ),
                    ],
                ));
            }
        }
    }
    faults
}

fn secrets(stack: &Stack) -> Vec<String> {
    let has_keys = !stack.parameters["ProviderKeysSecretArn"].is_empty();
    let has_way_out = stack.parameters["WayOut"] != "none";
    let mut faults = Vec::new();
    for (binary, _, function) in stack.functions() {
        let variables = function["Environment"]["Variables"].as_object().unwrap();
        let holds = |name: &str| {
            variables
                .get(name)
                .is_some_and(|value| text(value).contains("{{resolve:secretsmanager:"))
        };
        let asks = binary == "refund" || (ASK_PROVIDER.contains(&binary) && has_way_out);
        let is_revised = text(&function["Description"]).contains("(secrets 1)");
        faults.extend(unless(
            binary,
            [
                (
                    holds("ONSALE_ADMISSION_KEYS") == ["reserve", "token-gate"].contains(&binary),
                    "has admission keys for nothing, or none, or in the open",
                ),
                (
                    holds("ONSALE_PAYMENT_SECRETS") == (binary == "pay-callback"),
                    "has payment secrets for nothing, or none, or in the open",
                ),
                (
                    holds("ONSALE_PROVIDER_KEYS") == (asks && has_keys),
                    "has provider keys for nothing, or none, or in the open",
                ),
                (
                    holds("ONSALE_REDIS_URL") != WITHOUT_REDIS.contains(&binary),
                    "has the cache's password for nothing, or none, or in the open",
                ),
                (is_revised, "does not notice that a secret has changed"),
            ],
        ));
    }
    faults
}

fn schedule(stack: &Stack) -> Vec<String> {
    let schedules: Vec<_> = stack.all("AWS::Scheduler::Schedule").collect();
    let [(name, schedule)] = schedules.as_slice() else {
        return vec!["not one schedule".to_owned()];
    };
    let target = &schedule["Target"];
    let (role_name, role) = stack.behind(&target["RoleArn"]).unwrap();
    let policies = role["Policies"].as_array().unwrap();
    let statement = &policies[0]["PolicyDocument"]["Statement"][0];
    let once = stack.all("AWS::Lambda::EventInvokeConfig").any(|(_, config)| {
        number(&config["MaximumRetryAttempts"]) == Some(0)
            && number(&config["MaximumEventAgeInSeconds"]) <= Some(60)
    });
    let may =
        statement["Action"] == "lambda:InvokeFunction" && statement["Resource"] == target["Arn"];
    unless(
        name,
        [
            (schedule["ScheduleExpression"] == "rate(1 minute)", "comes at another pace"),
            (number(&target["RetryPolicy"]["MaximumRetryAttempts"]) == Some(0), "is sent again"),
            (once, "waits its turn and runs late"),
            (role_name != "ReconcileRole" && policies.len() == 1 && may, "its role may do more"),
            (
                stack.behind(&target["Arn"]).is_some_and(|(name, _)| name == "ReconcileFunction"),
                "calls another",
            ),
        ],
    )
}

fn names(stack: &Stack) -> Vec<String> {
    // The field that a kind of thing is known by in its account and region.
    let fields = [
        ("AWS::DynamoDB::Table", "TableName"),
        ("AWS::ElastiCache::ReplicationGroup", "ReplicationGroupId"),
        ("AWS::ElastiCache::ServerlessCache", "ServerlessCacheName"),
        ("AWS::ElastiCache::User", "UserId"),
        ("AWS::ElastiCache::UserGroup", "UserGroupId"),
        ("AWS::Lambda::Function", "FunctionName"),
        ("AWS::Logs::LogGroup", "LogGroupName"),
        ("AWS::SQS::Queue", "QueueName"),
        ("AWS::Scheduler::Schedule", "Name"),
    ];
    let stage = &stack.parameters["Stage"];
    let mut taken = BTreeSet::new();
    let mut faults = Vec::new();
    for (kind, field) in fields {
        for (logical, properties) in stack.all(kind) {
            let name = text(&properties[field]);
            let is_ours = name.split(['/', '-']).any(|part| part == stage);
            let is_only = taken.insert((kind, name.to_owned()));
            faults.extend(unless(
                logical,
                [(is_ours, "has a name of every stage"), (is_only, "has another's name")],
            ));
        }
    }
    faults
}

fn machines(stack: &Stack) -> Vec<String> {
    let mut faults = Vec::new();
    let called: BTreeSet<&str> = ROUTES.iter().map(|route| route.function.as_str()).collect();
    for (binary, _, function) in stack.functions() {
        let timeout = number(&function["Timeout"]).unwrap_or(u64::MAX);
        let is_fitting = !called.contains(binary) || timeout < GATEWAY_TIMEOUT_SECONDS;
        faults.extend(unless(
            binary,
            [
                (function["Architectures"] == json!(["arm64"]), "is no arm64"),
                (function["Runtime"] == "provided.al2023", "has another runtime"),
                (is_fitting, "may take longer than its caller waits"),
            ],
        ));
    }
    faults
}

#[test]
fn the_template_keeps_every_rule_in_every_stage() {
    let variants = variants();
    let mut faults = Vec::new();
    for (variant, translation) in variants.iter().zip(translate(&variants)) {
        let stack = Stack::of(&translation.unwrap());
        for check in CHECKS {
            let found = (check.faults)(&stack).into_iter();
            faults.extend(found.map(|fault| {
                format!("{} {:?}: {}: {fault}", variant.stage, variant.with, check.rule)
            }));
        }
    }
    assert_eq!(faults, [""; 0]);
}

#[test]
fn every_planted_mistake_is_found_by_its_rule() {
    let production = |check: &Check| {
        let with = check.with.iter();
        with.fold(Variant::of("prod"), |variant, (name, value)| variant.with(name, value))
    };
    let mut planted = Vec::new();
    for check in CHECKS {
        assert!(!check.mistakes.is_empty(), "{}", check.rule);
        planted.push((check, None, production(check)));
        let mistakes = check.mistakes.iter();
        planted.extend(
            mistakes.map(|mistake| (check, Some(mistake), production(check).edited(*mistake))),
        );
    }
    let variants: Vec<Variant> = planted.iter().map(|(.., variant)| variant.clone()).collect();
    let mut wrong = Vec::new();
    for ((check, mistake, _), translation) in planted.into_iter().zip(translate(&variants)) {
        let is_found =
            translation.map(|template| !(check.faults)(&Stack::of(&template)).is_empty());
        // And without a mistake none.
        if is_found != Ok(mistake.is_some()) {
            wrong.push(format!("{}: {mistake:?}: {is_found:?}", check.rule));
        }
    }
    assert_eq!(wrong, [""; 0]);
}
