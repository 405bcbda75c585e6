//! The servers under every other test: they start, answer, keep what they must, and go.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
    ScalarAttributeType,
};
use local::servers::{DynamoDb, Error, Flavour, RedisCluster, RedisOptions, RedisServer, Stack};
use redis::AsyncCommands as _;
use shared::runtime::connections::{Https, Trust};

use crate::backends;

const FLAVOURS: [Flavour; 2] = [Flavour::Valkey, Flavour::Redis];

/// Names the directory in which [`leave_a_server_behind`] is to start a server.
const LEAVE_IN: &str = "ONSALE_TEST_LEAVE_A_SERVER_IN";

/// Asks until it is so; fails the test after two minutes.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asked_since = Instant::now();
    while !is_so().await {
        assert!(asked_since.elapsed() < Duration::from_secs(120), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn set(server: &RedisServer, key: &str, value: &str) {
    let mut connection = server.connect().await.unwrap();
    connection.set::<_, _, ()>(key, value).await.unwrap();
}

async fn get(server: &RedisServer, key: &str) -> Option<String> {
    let mut connection = server.connect().await.unwrap();
    connection.get(key).await.unwrap()
}

fn dynamodb(url: &str) -> aws_sdk_dynamodb::Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(Https::new(&Trust::public()))
        .endpoint_url(url);
    aws_sdk_dynamodb::Client::from_conf(config.build())
}

async fn create_notes(client: &aws_sdk_dynamodb::Client) {
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash);
    let id =
        AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::S);
    let table = client
        .create_table()
        .table_name("notes")
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(key.build().unwrap())
        .attribute_definitions(id.build().unwrap());
    table.send().await.unwrap();
}

async fn put_note(client: &aws_sdk_dynamodb::Client, id: &str) {
    let note = client.put_item().table_name("notes");
    let note = note.item("id", AttributeValue::S(id.to_owned()));
    note.send().await.unwrap();
}

async fn has_note(client: &aws_sdk_dynamodb::Client, id: &str) -> bool {
    let note = client.get_item().table_name("notes").consistent_read(true);
    let note = note.key("id", AttributeValue::S(id.to_owned()));
    note.send().await.unwrap().item.is_some()
}

fn sqs(url: &str) -> aws_sdk_sqs::Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(Https::new(&Trust::public()))
        .endpoint_url(url);
    aws_sdk_sqs::Client::from_conf(config.build())
}

/// The names of the queues, which end their addresses.
async fn queues(client: &aws_sdk_sqs::Client) -> Vec<String> {
    let urls = client.list_queues().send().await.unwrap().queue_urls;
    let name = |url: String| url.rsplit('/').next().unwrap().to_owned();
    urls.unwrap_or_default().into_iter().map(name).collect()
}

#[tokio::test]
async fn each_flavour_starts_answers_and_forgets() {
    for flavour in FLAVOURS {
        let options = RedisOptions::default().flavour(flavour);
        let mut server = RedisServer::start(options).await.unwrap();
        assert_eq!(server.flavour(), flavour);
        let dir = server.dir().to_owned();
        set(&server, "seat", "taken").await;
        let port = server.port();

        server.restart().await.unwrap();
        assert_eq!(server.port(), port, "{flavour:?} comes back where it was");
        assert_eq!(get(&server, "seat").await, None, "{flavour:?} keeps nothing");

        drop(server);
        assert!(!dir.exists(), "{flavour:?} leaves nothing behind");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9() {
    for flavour in FLAVOURS {
        let dir = tempfile::tempdir().unwrap();
        let options = RedisOptions::persistent(dir.path()).flavour(flavour);
        let mut server = RedisServer::start(options.clone()).await.unwrap();
        for number in 0..100 {
            set(&server, &format!("seat-{number}"), "taken").await;
        }
        server.kill().unwrap();
        assert!(server.connect().await.is_err(), "{flavour:?} is gone");
        server.restart().await.unwrap();
        assert_eq!(get(&server, "seat-99").await.as_deref(), Some("taken"));

        // And the same through a new handle, after a stop in good order.
        set(&server, "last", "one").await;
        server.stop().await.unwrap();
        let server = RedisServer::start(options).await.unwrap();
        assert_eq!(get(&server, "seat-0").await.as_deref(), Some("taken"));
        assert_eq!(get(&server, "last").await.as_deref(), Some("one"));
    }
}

#[tokio::test]
async fn a_directory_has_one_owner() {
    let dir = tempfile::tempdir().unwrap();
    let options = RedisOptions::persistent(dir.path());
    let owner = RedisServer::start(options.clone()).await.unwrap();
    set(&owner, "mine", "yes").await;
    let second = RedisServer::start(options).await;
    assert!(matches!(second, Err(Error::InUse(_))));
    assert_eq!(get(&owner, "mine").await.as_deref(), Some("yes"));
}

#[tokio::test]
async fn an_orphan_in_the_directory_is_stopped_and_its_state_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap();
    let options = RedisOptions::persistent(&path);
    let server = RedisServer::start(options.clone()).await.unwrap();
    let program = server.program().to_owned();
    set(&server, "before", "1").await;
    server.stop().await.unwrap();

    let mut orphan = run_without_keeper(&program, &path, "server.pid");
    let id = orphan.id().to_string();
    let written = || std::fs::read_to_string(path.join("server.pid")).unwrap_or_default();
    // The file is there before what it says is.
    until("the orphan writes its process id", async || written().trim() == id).await;
    let server = RedisServer::start(options).await.unwrap();
    assert!(orphan.try_wait().unwrap().is_some(), "the orphan is gone");
    assert_eq!(get(&server, "before").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_process_that_only_has_the_number_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let program = RedisServer::start(RedisOptions::default()).await.unwrap();
    let program = program.program().to_owned();
    let mut bystander = run_without_keeper(&program, elsewhere.path(), "server.pid");
    std::fs::write(dir.path().join("server.pid"), bystander.id().to_string()).unwrap();

    let options = RedisOptions::persistent(dir.path());
    let _server = RedisServer::start(options).await.unwrap();
    assert!(bystander.try_wait().unwrap().is_none(), "it still runs");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// A server that nobody watches over, as an older or foreign program would have left it. It listens
/// on no port, so it needs none.
fn run_without_keeper(program: &Path, dir: &Path, pid_file: &str) -> Child {
    Command::new(program)
        .args(["--port", "0", "--set-proc-title", "no", "--save", ""])
        .args(["--unixsocket", "server.sock", "--appendonly", "yes"])
        .arg("--dir")
        .arg(dir)
        .arg("--pidfile")
        .arg(dir.join(pid_file))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn no_server_outlives_a_killed_owner() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "servers::leave_a_server_behind", "--nocapture"])
        .env(LEAVE_IN, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let url = lines
        .find_map(|line| {
            let line = line.unwrap();
            let (_, url) = line.split_once("listening at ")?;
            Some(url.to_owned())
        })
        .unwrap();
    let client = redis::Client::open(url).unwrap();
    let answers = async || client.get_multiplexed_async_connection().await.is_ok();
    until("the server answers", async || answers().await).await;
    owner.kill().unwrap();
    owner.wait().unwrap();
    until("the server is gone", async || !answers().await).await;
}

/// Not a test by itself: the part of the owner in [`no_server_outlives_a_killed_owner`].
#[tokio::test]
async fn leave_a_server_behind() {
    let Some(dir) = std::env::var_os(LEAVE_IN) else {
        return;
    };
    let options = RedisOptions::persistent(dir);
    let server = RedisServer::start(options).await.unwrap();
    println!("listening at {}", server.url());
    // Until killed, or until the test that started us is gone and the pipe closes.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[tokio::test]
async fn a_cluster_of_either_flavour_covers_every_slot() {
    for flavour in FLAVOURS {
        let cluster = RedisCluster::start(flavour).await.unwrap();
        for node in cluster.nodes() {
            assert_eq!(node.flavour(), flavour);
            let mut connection = node.connect().await.unwrap();
            let mut slots = redis::cmd("CLUSTER");
            let ranges: Vec<(u32, u32, redis::Value)> =
                slots.arg("SLOTS").query_async(&mut connection).await.unwrap();
            let mut ranges: Vec<_> = ranges.iter().map(|range| (range.0, range.1)).collect();
            ranges.sort_unstable();
            assert_eq!(ranges, [(0, 5460), (5461, 10921), (10922, 16383)]);
        }
        let client = redis::cluster::ClusterClient::new(cluster.urls()).unwrap();
        let mut connection = client.get_async_connection().await.unwrap();
        for number in 0..50 {
            let key = format!("{{sale-{number}}}:sale");
            connection.set::<_, _, ()>(&key, number).await.unwrap();
            assert_eq!(connection.get::<_, u32>(&key).await.unwrap(), number);
        }
    }
}

#[tokio::test]
async fn a_master_comes_back_into_its_cluster() {
    let mut cluster = RedisCluster::start(Flavour::Auto).await.unwrap();
    cluster.nodes_mut()[1].restart().await.unwrap();
    cluster.agree().await.unwrap();
}

#[tokio::test]
async fn a_database_file_survives_its_server() {
    if backends::is_foreign("it is about the file of our fake") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("new/dynamodb.sqlite");
    let server = DynamoDb::file(&file).unwrap();
    let client = dynamodb(&server.url());
    create_notes(&client).await;
    put_note(&client, "kept").await;
    drop(server);
    let gone = client.list_tables().send().await;
    assert!(gone.is_err(), "nobody listens any more");

    let server = DynamoDb::file(&file).unwrap();
    let client = dynamodb(&server.url());
    assert!(has_note(&client, "kept").await);
    put_note(&client, "kept as well").await;
    server.stop().await.unwrap();

    let server = DynamoDb::file(&file).unwrap();
    assert!(has_note(&dynamodb(&server.url()), "kept as well").await);
}

#[tokio::test]
async fn a_transaction_that_is_repeated_under_its_token_is_carried_out_once() {
    if backends::is_foreign("it is about the edge of our fake") {
        return;
    }
    let server = DynamoDb::memory().unwrap();
    let client = dynamodb(&server.url());
    create_notes(&client).await;
    let add = |token: &str, more: i32| {
        let update = aws_sdk_dynamodb::types::Update::builder()
            .table_name("notes")
            .key("id", AttributeValue::S("sum".to_owned()))
            .update_expression("ADD #n :more")
            .expression_attribute_names("#n", "n")
            .expression_attribute_values(":more", AttributeValue::N(more.to_string()));
        let item = aws_sdk_dynamodb::types::TransactWriteItem::builder();
        let item = item.update(update.build().unwrap()).build();
        client.transact_write_items().client_request_token(token).transact_items(item).send()
    };
    // However many come at once.
    let repeated = futures_util::future::join_all((0..8).map(|_| add("one", 1))).await;
    assert!(repeated.iter().all(Result::is_ok));
    add("two", 10).await.unwrap();
    let refused = add("one", 2).await.unwrap_err().into_service_error();
    assert!(refused.is_idempotent_parameter_mismatch_exception(), "{refused:?}");
    let sum = client.get_item().table_name("notes").key("id", AttributeValue::S("sum".to_owned()));
    let sum = sum.consistent_read(true).send().await.unwrap().item.unwrap();
    assert_eq!(sum["n"], AttributeValue::N("11".to_owned()));
}

#[tokio::test]
async fn two_stacks_side_by_side_do_not_meet() {
    if backends::is_foreign("it is about two of our fakes") {
        return;
    }
    // Each started in a task of its own, as anyone may.
    let (one, other) =
        tokio::join!(tokio::spawn(Stack::ephemeral()), tokio::spawn(Stack::ephemeral()));
    let (one, other) = (one.unwrap().unwrap(), other.unwrap().unwrap());
    set(one.redis().unwrap(), "seat", "taken").await;
    assert_eq!(get(other.redis().unwrap(), "seat").await, None);

    let client = dynamodb(&one.endpoints().dynamodb_url);
    create_notes(&client).await;
    put_note(&client, "mine").await;
    let tables = dynamodb(&other.endpoints().dynamodb_url).list_tables();
    assert!(tables.send().await.unwrap().table_names().is_empty());

    let client = sqs(&one.endpoints().sqs_url);
    let queue = client.create_queue().queue_name("mine");
    queue.send().await.unwrap();
    assert_eq!(queues(&client).await, ["mine"]);
    let other_queues = queues(&sqs(&other.endpoints().sqs_url)).await;
    assert!(other_queues.is_empty());
}

#[tokio::test]
async fn a_persistent_stack_is_there_again() {
    if backends::is_foreign("it is about the files of our fakes") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let stack = Stack::persistent(dir.path()).await.unwrap();
    set(stack.redis().unwrap(), "seat", "taken").await;
    let client = dynamodb(&stack.endpoints().dynamodb_url);
    create_notes(&client).await;
    put_note(&client, "kept").await;
    let client = sqs(&stack.endpoints().sqs_url);
    let queue = client.create_queue().queue_name("kept");
    queue.send().await.unwrap();
    // Dropped as it is: nothing is stopped in good order.
    drop(stack);

    let stack = Stack::persistent(dir.path()).await.unwrap();
    assert_eq!(get(stack.redis().unwrap(), "seat").await.as_deref(), Some("taken"));
    let client = dynamodb(&stack.endpoints().dynamodb_url);
    assert!(has_note(&client, "kept").await);
    assert_eq!(queues(&sqs(&stack.endpoints().sqs_url)).await, ["kept"]);
    stack.stop().await.unwrap();
}
