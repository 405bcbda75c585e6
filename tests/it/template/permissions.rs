//! Least privilege, held by evidence in both directions: each function does everything it can do,
//! and its role allows that and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use engine::domain::basics::ids::{Epoch, InventoryId, SaleId};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{Load, LoadReply, Terms};
use engine::domain::sale::SaleState;
use engine::ports::Seats as _;
use local::servers::{Flavour, RedisCluster};
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use shared::dynamodb::tables::ACTIONS;
use shared::redis::{Bounds, Connection, RedisSeats, Topology};
use shared::runtime::app::Need;
use shared::runtime::connections::Trust;
use shared::runtime::functions::Function;

use super::deployed::{BUS, Deployed, FUNCTIONS, user};
use super::recorder::{Right, SUBSCRIBERS};
use super::stack::{Edit, Stack, Variant, name_in, translate};

/// What the mapping of a queue to its function needs; Lambda calls it, the function never does.
const MAPPING: [&str; 3] = ["sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"];

/// The list in which a policy keeps one thing or several.
pub fn list(value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    value.as_array().map_or_else(|| vec![text(value)], |values| values.iter().map(text).collect())
}

/// What an ARN of the template is called by who records the calls.
fn name(stack: &Stack, arn: &str) -> String {
    if let Some((_, bus)) = arn.split_once(":event-bus/") {
        return format!("event-bus {bus}");
    }
    let found = name_in(arn).and_then(|name| Some((stack.resources.get(name)?, arn)));
    let Some((resource, arn)) = found else { return arn.to_owned() };
    let text = |field: &str| resource.properties[field].as_str().unwrap().to_owned();
    let plain = |text: String| text.replace(&format!("{}-onsale-", stack.parameters["Stage"]), "");
    let rest = arn.split_once('}').unwrap().1.replace('/', " ");
    match resource.kind.as_str() {
        "AWS::DynamoDB::Table" => format!("table {}{rest}", plain(text("TableName"))),
        "AWS::SQS::Queue" => format!("queue {}{rest}", plain(text("QueueName"))),
        "AWS::Logs::LogGroup" => format!("log {}{rest}", plain(text("LogGroupName"))),
        _ => arn.to_owned(),
    }
}

/// The keys that a statement is for, by what they begin with, each behind a blank; nothing if for all.
fn leading_keys(statement: &Value) -> Vec<String> {
    let Some(condition) = statement.get("Condition") else { return vec![String::new()] };
    let [(operator, of)] = condition.as_object().unwrap().iter().collect::<Vec<_>>()[..] else {
        panic!("a condition of several parts: {condition}")
    };
    assert_eq!(operator, "ForAllValues:StringLike");
    let [(key, patterns)] = of.as_object().unwrap().iter().collect::<Vec<_>>()[..] else {
        panic!("a condition on several keys: {condition}")
    };
    assert_eq!(key, "dynamodb:LeadingKeys");
    list(patterns).iter().map(|pattern| format!(" {pattern}")).collect()
}

/// Everything that the role of a function itself allows.
pub fn granted(stack: &Stack, function: &str) -> BTreeSet<Right> {
    let (_, _, properties) = stack.functions().find(|(name, ..)| *name == function).unwrap();
    let (_, role) = stack.behind(&properties["Role"]).expect("a role of its own");
    let mut rights = BTreeSet::new();
    for policy in role["Policies"].as_array().into_iter().flatten() {
        for statement in policy["PolicyDocument"]["Statement"].as_array().unwrap() {
            assert_eq!(statement["Effect"], "Allow");
            let keys = leading_keys(statement);
            for action in list(&statement["Action"]) {
                let resources = list(&statement["Resource"]).into_iter();
                let each = resources.flat_map(|arn| {
                    let name = name(stack, &arn);
                    keys.iter().map(move |keys| format!("{name}{keys}")).collect::<Vec<_>>()
                });
                rights.extend(each.map(|on| Right {
                    function: function.to_owned(),
                    action: action.clone(),
                    on,
                }));
            }
        }
    }
    rights
}

/// The rights that Lambda itself uses in a function's name: to write its log, and to empty its queue.
fn of_lambda(stack: &Stack, function: &str) -> BTreeSet<Right> {
    let right = |action: &str, on: String| Right {
        function: function.to_owned(),
        action: action.to_owned(),
        on,
    };
    let log = format!("log /aws/lambda/{function}");
    let mut rights = BTreeSet::from([
        right("logs:CreateLogStream", log.clone()),
        right("logs:PutLogEvents", log),
    ]);
    let (_, logical, _) = stack.functions().find(|(name, ..)| *name == function).unwrap();
    for (_, mapping) in stack.all("AWS::Lambda::EventSourceMapping") {
        let maps = name_in(mapping["FunctionName"].as_str().unwrap()).unwrap();
        if maps.trim_end_matches("Aliaslive") == logical {
            let queue = name(stack, mapping["EventSourceArn"].as_str().unwrap());
            rights.extend(MAPPING.map(|action| right(action, queue.clone())));
        }
    }
    rights
}

/// A right to what operators did or what webhooks were told, as that to the whole table if a function has it.
fn of_whole_table(right: Right, granted: &BTreeSet<Right>) -> Right {
    let mut table = [ACTIONS, SUBSCRIBERS].iter().filter_map(|keys| right.on.strip_suffix(keys));
    let table = table.next().map(|table| table.trim_end().to_owned());
    let whole = table.map(|on| Right { on, ..right.clone() });
    whole.filter(|whole| granted.contains(whole)).unwrap_or(right)
}

/// What is needed and not granted, and what is granted and not needed.
fn differences(stack: &Stack, seen: &BTreeSet<Right>) -> (Vec<Right>, Vec<Right>) {
    let (mut lacking, mut idle) = (Vec::new(), Vec::new());
    for function in FUNCTIONS {
        let granted = granted(stack, function);
        let mut needed: BTreeSet<Right> =
            seen.iter().filter(|right| right.function == function).cloned().collect();
        needed.extend(of_lambda(stack, function));
        // Who may write every item of a table may write those.
        let needed: BTreeSet<Right> =
            needed.into_iter().map(|right| of_whole_table(right, &granted)).collect();
        lacking.extend(needed.difference(&granted).cloned());
        idle.extend(granted.difference(&needed).cloned());
    }
    (lacking, idle)
}

/// Changes of a role: what lacks then (true), or is idle (false).
const MISTAKES: [(bool, Edit); 15] = [
    (true, edit("  SendEventsRole:", "event-bus/${EventBusName}", "event-bus/default")),
    (true, edit("  SendEventsRole:", "[\"#subscriber#*\"]", "[\"#webhooks\"]")),
    (true, edit("  CancelRole:", "[\"#actions\"]", "[\"#sales\"]")),
    (true, edit("  OperatorRole:", "!GetAtt CloseDeadLetterQueue.Arn", "!GetAtt CloseQueue.Arn")),
    (true, edit("  ReserveRole:", "dynamodb:PutItem, ", "")),
    (true, edit("  SyncDbRole:", "sqs:DeleteMessage, ", "")),
    (true, edit("  OrdersRole:", "/index/by-user", "/index/due")),
    (true, edit("  PayCallbackRole:", "!GetAtt SyncQueue.Arn, ", "")),
    (true, edit("  LoadSaleRole:", "logs:CreateLogStream, ", "")),
    (true, edit("  SalesRole:", "\"secret#*\", ", "")),
    (false, edit("  SalesRole:", "\"secret#*\"", "\"secret#*\", \"members#*\"")),
    (false, edit("  TokenGateRole:", "dynamodb:Query]", "dynamodb:Query, dynamodb:Scan]")),
    (
        false,
        edit(
            "  RefundRole:",
            "!GetAtt OrdersTable.Arn",
            "[!GetAtt OrdersTable.Arn, !GetAtt SeatsTable.Arn]",
        ),
    ),
    (
        false,
        edit(
            "  SalesRole:",
            "!GetAtt LoadQueue.Arn",
            "[!GetAtt LoadQueue.Arn, !GetAtt RefundQueue.Arn]",
        ),
    ),
    (
        false,
        edit(
            "  CancelRole:",
            "!GetAtt CancelLogs.Arn",
            "[!GetAtt CancelLogs.Arn, !GetAtt OrdersLogs.Arn]",
        ),
    ),
];

const fn edit(after: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { after, from, to }
}

/// What the cache's user may do, of those that the template names.
fn allowed_commands(access: &str) -> BTreeSet<String> {
    access.split(' ').filter_map(|rule| rule.strip_prefix('+')).map(str::to_owned).collect()
}

/// The commands that a server was given.
async fn seen_commands(redis: &mut MultiplexedConnection) -> BTreeSet<String> {
    let stats: String = redis::cmd("INFO").arg("commandstats").query_async(redis).await.unwrap();
    let names = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split(':').next());
    names.map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_allows_what_its_function_does_and_nothing_else() {
    let with_bus = || Variant::from_stage("prod").with("EventBusName", BUS);
    let mut variants = vec![with_bus()];
    variants.extend(MISTAKES.map(|(_, mistake)| with_bus().edited(mistake)));
    let translations = translate(&variants);
    let stacks: Vec<Stack> = translations
        .iter()
        .map(|translation| Stack::from_translation(translation.as_ref().unwrap()))
        .collect();
    let (stack, mistaken) = stacks.split_first().unwrap();
    let access = access(stack);
    let mut deployed = Deployed::start(&access).await;
    deployed.everything().await;

    let seen = deployed.recorder.seen();
    assert_eq!(differences(stack, &seen), (Vec::new(), Vec::new()), "lacking, idle");
    for (mistaken, (lacks, mistake)) in mistaken.iter().zip(MISTAKES) {
        let (lacking, idle) = differences(mistaken, &seen);
        let found = if lacks { lacking } else { idle };
        assert!(!found.is_empty(), "nobody notices {mistake:?}");
    }
    // What the cache's user may not do has failed what tried it. That it may do no more:
    let commands = seen_commands(&mut deployed.redis).await;
    let idle: Vec<String> = allowed_commands(&access).difference(&commands).cloned().collect();
    assert_eq!(idle, CLUSTER_COMMANDS, "no function of one server needs these");
}

/// What only a cluster is asked.
const CLUSTER_COMMANDS: [&str; 2] = ["cluster|slots", "readonly"];

fn access(stack: &Stack) -> String {
    let (_, user) = stack.all("AWS::ElastiCache::User").next().unwrap();
    user["AccessString"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caches_user_may_use_a_cluster() {
    let stack =
        Stack::from_translation(translate(&[Variant::from_stage("prod")])[0].as_ref().unwrap());
    let access = access(&stack);
    let cluster = RedisCluster::start(Flavour::Valkey).await.unwrap();
    let mut nodes = Vec::new();
    for node in cluster.nodes() {
        nodes.push(node.connect().await.unwrap());
        let (other, lacking) = (nodes.last_mut().unwrap(), access.replace("+hset ", ""));
        user(other, "engine", &access).await;
        user(other, "lacking", &lacking).await;
    }
    let as_user = |name: &str| {
        let urls = cluster.urls().into_iter();
        let urls = urls.map(|url| url.replace("://", &format!("://{name}:secret@"))).collect();
        RedisSeats::new(Connection::new(&Topology::Cluster(urls), Bounds::default()).unwrap())
    };
    let ids = ["a", "b", "c", "d"].map(|sale| SaleId::new(sale).unwrap());
    for id in &ids {
        assert_eq!(as_user("engine").load(&empty(id)).await.unwrap(), LoadReply::Loaded);
        assert!(as_user("lacking").load(&empty(id)).await.is_err(), "the control");
    }
    // What is left is read from replicas, where there are some.
    let urls = cluster.urls().into_iter();
    let urls = urls.map(|url| url.replace("://", "://engine:secret@")).collect();
    let (topology, bounds) = (Topology::Cluster(urls), Bounds::default());
    let replicas = Connection::to_replicas(&topology, bounds, &Trust::public()).unwrap();
    for id in &ids {
        let inventory = InventoryId::whole(id.clone());
        assert!(RedisSeats::new(replicas.clone()).epoch(&inventory).await.unwrap().is_some());
    }
    let mut commands = BTreeSet::new();
    for node in &mut nodes {
        commands.extend(seen_commands(node).await);
    }
    assert!(CLUSTER_COMMANDS.iter().all(|command| commands.contains(*command)), "{commands:?}");
}

/// A sale without seats.
fn empty(sale: &SaleId) -> Load {
    let terms = Terms {
        state: SaleState::Open,
        opens_at: Timestamp::from_ms(0),
        closes_at: Timestamp::from_ms(1),
        limit: Tickets::new(1),
        leg_count: 1,
    };
    Load {
        inventory: InventoryId::whole(sale.clone()),
        terms,
        expected: None,
        epoch: Epoch::new("e").unwrap(),
        tiers: Vec::new(),
        holds: BTreeMap::new(),
        bought: BTreeMap::new(),
    }
}

/// What of its needs a function has no right to, and the network if it has no need of that.
fn unmet(stack: &Stack, called: Function) -> Vec<String> {
    let binary = called.as_str();
    let (_, _, function) = stack.functions().find(|(name, ..)| *name == binary).unwrap();
    let rights = granted(stack, binary);
    let may = |action: &str, on: &str| {
        rights.iter().any(|right| right.action == action && right.on.starts_with(on))
    };
    let has = |name: &str| function["Environment"]["Variables"].get(name).is_some();
    let is_in_network = function.get("VpcConfig").is_some();
    let needs = called.needs();
    let is_met = |need: &Need| match need {
        Need::Redis => is_in_network,
        Need::Sales => may("dynamodb:GetItem", "table sales"),
        Need::Order => may("dynamodb:GetItem", "table orders"),
        Need::Orders => may("dynamodb:BatchGetItem", "table orders"),
        Need::Queues => may("sqs:SendMessage", "queue "),
        Need::AdmissionKeys => has("ONSALE_ADMISSION_KEYS"),
        Need::AttendeeKeys => has("ONSALE_ATTENDEE_KEYS"),
        Need::ChallengeKeys => has("ONSALE_CHALLENGE_KEYS"),
        Need::PaymentSecrets => has("ONSALE_PAYMENT_SECRETS"),
        Need::CallbackKey => has("ONSALE_CALLBACK_KEYS"),
        Need::TicketKeys => has("ONSALE_TICKET_KEYS"),
        Need::WebhookKeys => has("ONSALE_WEBHOOK_KEYS"),
    };
    let unmet = needs.iter().filter(|need| !is_met(need));
    let mut unmet: Vec<String> = unmet.map(|need| format!("{need:?}")).collect();
    if is_in_network && !needs.contains(&Need::Redis) {
        unmet.push("to be in the network".to_owned());
    }
    unmet
}

#[test]
fn a_cold_start_may_connect_to_what_its_function_needs() {
    let reads_no_batches = edit("  SyncDbRole:", "dynamodb:BatchGetItem, ", "");
    let variants =
        [Variant::from_stage("prod"), Variant::from_stage("prod").edited(reads_no_batches)];
    let translations = translate(&variants);
    let stacks: Vec<Stack> = translations
        .iter()
        .map(|translation| Stack::from_translation(translation.as_ref().unwrap()))
        .collect();
    for function in Function::ALL {
        assert_eq!(unmet(&stacks[0], function), [""; 0], "{function:?}");
    }
    assert_eq!(unmet(&stacks[1], Function::SyncDb), ["Orders"], "the control");
}
