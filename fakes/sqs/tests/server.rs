//! The running server, through the AWS SDK: waiting, restarts, kills.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, MessageAttributeValue, MessageSystemAttributeName,
    QueueAttributeName, SendMessageBatchRequestEntry,
};
use fake_sqs::{FakeSqs, Faults, Options, StartError};
use shared::runtime::connections::{Https, Trust};
use tokio::sync::Notify;

fn client(endpoint: &str) -> Client {
    let config = aws_sdk_sqs::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .http_client(Https::new(&Trust::public()))
        // A retry would hide what the server did.
        .retry_config(RetryConfig::disabled())
        .endpoint_url(endpoint)
        .build();
    Client::from_conf(config)
}

fn start(file: Option<&Path>) -> (FakeSqs, Client) {
    let file = file.map(Path::to_owned);
    let sqs = FakeSqs::start(Options { file, ..Options::default() }).unwrap();
    let client = client(sqs.endpoint());
    (sqs, client)
}

async fn create(client: &Client, name: &str, attributes: &[(QueueAttributeName, &str)]) -> String {
    let mut request = client.create_queue().queue_name(name);
    for (name, value) in attributes {
        request = request.attributes(name.clone(), *value);
    }
    request.send().await.unwrap().queue_url.unwrap()
}

async fn count(client: &Client, url: &str, name: QueueAttributeName) -> usize {
    let reply = client.get_queue_attributes().queue_url(url).attribute_names(name.clone()).send();
    reply.await.unwrap().attributes.unwrap()[&name].parse().unwrap()
}

#[tokio::test]
async fn the_sdk_sends_receives_and_deletes() {
    let (_sqs, client) = start(None);
    let url = create(&client, "q", &[(QueueAttributeName::VisibilityTimeout, "60")]).await;
    let attribute =
        MessageAttributeValue::builder().data_type("String").string_value("v").build().unwrap();
    let sent = client
        .send_message()
        .queue_url(&url)
        .message_body("héllo")
        .message_attributes("k", attribute)
        .send()
        .await
        .unwrap();
    let receive = || {
        client
            .receive_message()
            .queue_url(&url)
            .max_number_of_messages(10)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All)
    };
    let message = receive().send().await.unwrap().messages.unwrap().remove(0);
    assert_eq!(message.message_id, sent.message_id);
    assert_eq!(message.body.as_deref(), Some("héllo"));
    assert_eq!(message.md5_of_message_attributes, sent.md5_of_message_attributes);
    assert_eq!(message.message_attributes.unwrap()["k"].string_value(), Some("v"));
    let received =
        &message.attributes.unwrap()[&MessageSystemAttributeName::ApproximateReceiveCount];
    assert_eq!(received, "1");

    let handle = message.receipt_handle.unwrap();
    let change = client.change_message_visibility().queue_url(&url).receipt_handle(&handle);
    change.visibility_timeout(0).send().await.unwrap();
    let again = receive().send().await.unwrap().messages.unwrap().remove(0);
    let entry = DeleteMessageBatchRequestEntry::builder()
        .id("a")
        .receipt_handle(again.receipt_handle.unwrap())
        .build()
        .unwrap();
    let deleted =
        client.delete_message_batch().queue_url(&url).entries(entry).send().await.unwrap();
    assert_eq!((deleted.successful.len(), deleted.failed.len()), (1, 0));
    assert!(receive().send().await.unwrap().messages.is_none());
}

#[tokio::test]
async fn the_sdk_understands_the_refusals() {
    let (sqs, client) = start(None);
    let missing = format!("{}/000000000000/none", sqs.endpoint());
    let error =
        client.send_message().queue_url(missing).message_body("x").send().await.unwrap_err();
    assert!(error.as_service_error().unwrap().is_queue_does_not_exist(), "{error:?}");
    let url = create(&client, "q", &[]).await;
    let error =
        client.delete_message().queue_url(&url).receipt_handle("x").send().await.unwrap_err();
    assert!(error.as_service_error().unwrap().is_receipt_handle_is_invalid(), "{error:?}");
    let error = client.send_message_batch().queue_url(&url).send().await.unwrap_err();
    assert!(error.as_service_error().unwrap().is_empty_batch_request(), "{error:?}");
    let error = client.send_message().queue_url(&url).message_body("x").delay_seconds(901).send();
    let error = error.await.unwrap_err();
    assert_eq!(error.into_service_error().meta().code(), Some("InvalidParameterValue"));
    let huge = "x".repeat(5 * 1_024 * 1_024);
    let error = client.send_message().queue_url(&url).message_body(huge).send().await.unwrap_err();
    assert_eq!(error.raw_response().unwrap().status().as_u16(), 413);
}

/// Time that anything here may take before it counts as hanging; none of it takes a tenth.
const HANGS: Duration = Duration::from_secs(15);

#[tokio::test]
async fn a_poll_wakes_when_something_becomes_visible() {
    let (_sqs, client) = start(None);
    let url = create(&client, "q", &[(QueueAttributeName::VisibilityTimeout, "1")]).await;
    let poll = || client.receive_message().queue_url(&url).wait_time_seconds(20).send();
    let send =
        |delay| client.send_message().queue_url(&url).message_body("x").delay_seconds(delay).send();
    let started = Instant::now();
    let (polled, sent) = tokio::join!(poll(), send(0));
    sent.unwrap();
    let polled = polled.unwrap().messages.unwrap();
    let again = poll().await.unwrap().messages.unwrap();
    assert_eq!(again[0].message_id, polled[0].message_id, "its visibility ran out");
    let handle = again[0].receipt_handle.as_deref().unwrap();
    client.delete_message().queue_url(&url).receipt_handle(handle).send().await.unwrap();
    let (polled, sent) = tokio::join!(poll(), send(1));
    sent.unwrap();
    assert_eq!(polled.unwrap().messages.unwrap().len(), 1, "its delay ran out");
    assert!(started.elapsed() < HANGS, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_poll_of_nothing_takes_its_time_and_one_of_a_deleted_queue_ends() {
    let (_sqs, client) = start(None);
    let url =
        create(&client, "q", &[(QueueAttributeName::ReceiveMessageWaitTimeSeconds, "1")]).await;
    let started = Instant::now();
    let received = client.receive_message().queue_url(&url).send().await.unwrap();
    assert!(received.messages.is_none());
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());
    let (polled, deleted) = tokio::join!(
        client.receive_message().queue_url(&url).wait_time_seconds(20).send(),
        client.delete_queue().queue_url(&url).send(),
    );
    deleted.unwrap();
    assert!(polled.unwrap_err().as_service_error().unwrap().is_queue_does_not_exist());
    assert!(started.elapsed() < HANGS, "{:?}", started.elapsed());
}

#[tokio::test]
async fn every_waiting_poll_gets_its_message() {
    let (_sqs, client) = start(None);
    let url = create(&client, "q", &[]).await;
    let polls: Vec<_> = (0..20)
        .map(|_| {
            tokio::spawn(client.receive_message().queue_url(&url).wait_time_seconds(20).send())
        })
        .collect();
    let started = Instant::now();
    for batch in 0..2 {
        let entries = (0..10).map(|n| {
            let entry = SendMessageBatchRequestEntry::builder().id(n.to_string());
            entry.message_body(format!("{batch}{n}")).build().unwrap()
        });
        let send = client.send_message_batch().queue_url(&url).set_entries(Some(entries.collect()));
        send.send().await.unwrap();
    }
    let mut bodies = HashSet::new();
    for poll in polls {
        let messages = poll.await.unwrap().unwrap().messages.unwrap();
        bodies.insert(messages[0].body.clone().unwrap());
    }
    assert_eq!(bodies.len(), 20);
    assert!(started.elapsed() < HANGS, "{:?}", started.elapsed());
}

#[tokio::test]
async fn faults_can_be_turned_on_and_off() {
    let (sqs, client) = start(None);
    let url = create(&client, "q", &[]).await;
    let receive = || client.receive_message().queue_url(&url).max_number_of_messages(10).send();
    let send = || client.send_message().queue_url(&url).message_body("x").send();
    sqs.set_faults(Faults { duplicate: 1.0, ..Faults::default() });
    send().await.unwrap();
    assert!(receive().await.unwrap().messages.is_some());
    assert!(receive().await.unwrap().messages.is_some(), "delivered twice");
    assert!(receive().await.unwrap().messages.is_none());
    sqs.set_faults(Faults::default());
    send().await.unwrap();
    assert!(receive().await.unwrap().messages.is_some());
    assert!(receive().await.unwrap().messages.is_none());
}

#[tokio::test]
async fn a_file_brings_everything_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    let (sqs, one) = start(Some(&file));
    let error = FakeSqs::start(Options { file: Some(file.clone()), ..Options::default() });
    assert!(matches!(error, Err(StartError::File { .. })), "one server a file");
    let url = create(&one, "q", &[(QueueAttributeName::VisibilityTimeout, "900")]).await;
    let fifo = create(
        &one,
        "q.fifo",
        &[
            (QueueAttributeName::FifoQueue, "true"),
            (QueueAttributeName::ContentBasedDeduplication, "true"),
        ],
    )
    .await;
    one.tag_queue().queue_url(&url).tags("a", "b").send().await.unwrap();
    for (body, delay) in [("received", 0), ("ready", 0), ("delayed", 900)] {
        let send = one.send_message().queue_url(&url).message_body(body).delay_seconds(delay);
        send.send().await.unwrap();
    }
    let send_fifo = |client: &Client| {
        client.send_message().queue_url(&fifo).message_body("once").message_group_id("g").send()
    };
    let first = send_fifo(&one).await.unwrap();
    let received = one.receive_message().queue_url(&url).send().await.unwrap().messages.unwrap();
    assert_eq!(received[0].body.as_deref(), Some("received"));
    sqs.shutdown().await;
    assert!(one.list_queues().send().await.is_err(), "it has stopped");

    let (sqs, two) = start(Some(&file));
    let url = two.get_queue_url().queue_name("q").send().await.unwrap().queue_url.unwrap();
    assert!(url.starts_with(sqs.endpoint()));
    assert_eq!(two.list_queue_tags().queue_url(&url).send().await.unwrap().tags.unwrap()["a"], "b");
    assert_eq!(count(&two, &url, QueueAttributeName::VisibilityTimeout).await, 900);
    for name in [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ] {
        assert_eq!(count(&two, &url, name.clone()).await, 1, "{name:?}");
    }
    let handle = received[0].receipt_handle.as_deref().unwrap();
    two.delete_message().queue_url(&url).receipt_handle(handle).send().await.unwrap();
    assert_eq!(
        count(&two, &url, QueueAttributeName::ApproximateNumberOfMessagesNotVisible).await,
        0
    );
    let repeated = send_fifo(&two).await.unwrap();
    assert_eq!(repeated.message_id, first.message_id, "a repeated send is still recognised");
    two.purge_queue().queue_url(&url).send().await.unwrap();
    two.delete_queue().queue_url(&fifo).send().await.unwrap();
    drop(sqs);

    let (_sqs, three) = start(Some(&file));
    assert_eq!(three.list_queues().send().await.unwrap().queue_urls.unwrap().len(), 1);
    assert_eq!(count(&three, &url, QueueAttributeName::ApproximateNumberOfMessages).await, 0);
    let fresh = three.send_message().queue_url(&url).message_body("x").send().await.unwrap();
    assert_ne!(fresh.message_id, first.message_id);
}

#[test]
fn a_file_of_another_program_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "this is no database, and it is long enough to be looked at").unwrap();
    let error = FakeSqs::start(Options { file: Some(file.clone()), ..Options::default() });
    assert!(matches!(error, Err(StartError::File { .. })), "{error:?}");
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.starts_with("this is no database"), "and left alone");
}

/// The program in a process of its own, killed (as by `kill -9`) when dropped.
struct Process {
    child: Child,
    endpoint: String,
}

impl Process {
    fn start(file: &Path) -> Self {
        Self::run(Command::new(env!("CARGO_BIN_EXE_sqs-standin")), file)
    }

    fn run(mut command: Command, file: &Path) -> Self {
        let command = command.arg("--file").arg(file).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut endpoint = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut endpoint).unwrap();
        Process { child, endpoint: endpoint.trim().to_owned() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Writes garbage over the middle of a file, from the second page on, the first being the one that
/// says what the file is.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    assert!(middle > 8192, "the file has several pages");
    bytes[middle..middle + 4096].fill(0xa5);
    std::fs::write(file, bytes).unwrap();
}

/// Why a server does not start on a file.
fn refused(file: &Path) -> String {
    let options = Options { file: Some(file.to_owned()), ..Options::default() };
    FakeSqs::start(options).map(drop).unwrap_err().to_string()
}

#[tokio::test]
async fn a_start_names_the_file_that_is_damaged_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    let (sqs, one) = start(Some(&file));
    let url = create(&one, "q", &[]).await;
    for _ in 0..40 {
        let send = one.send_message().queue_url(&url).message_body("x".repeat(2000));
        send.send().await.unwrap();
    }
    sqs.shutdown().await;
    damage(&file);
    let why = refused(&file);
    assert!(why.contains(file.to_str().unwrap()) && why.contains("move it away"), "{why}");
}

#[tokio::test]
async fn a_start_names_the_row_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    let (sqs, one) = start(Some(&file));
    let url = create(&one, "q", &[]).await;
    for _ in 0..3 {
        one.send_message().queue_url(&url).message_body("x").send().await.unwrap();
    }
    sqs.shutdown().await;
    let connection = rusqlite::Connection::open(&file).unwrap();
    let torn = "UPDATE message SET content = '{' WHERE seq = (SELECT MAX(seq) FROM message)";
    assert_eq!(connection.execute(torn, []).unwrap(), 1);
    drop(connection);
    let why = refused(&file);
    assert!(why.contains("row 3 of table message"), "{why}");
    assert!(why.contains(file.to_str().unwrap()) && why.contains("move it away"), "{why}");
}

/// Half a megabyte: the file may get no larger until the limit is lifted.
const LIMIT_BLOCKS: &str = "1024";

#[tokio::test]
async fn a_full_disk_is_waited_out_and_nothing_is_acknowledged_that_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    // A write beyond the limit fails as on a full disk, and the signal that goes with it is ignored.
    let limited = "trap '' XFSZ; ulimit -S -f \"$0\"; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limited, LIMIT_BLOCKS, env!("CARGO_BIN_EXE_sqs-standin")]);
    let mut process = Process::run(command, &file);
    let client = client(&process.endpoint);
    let url = create(&client, "q", &[]).await;
    let send = || client.send_message().queue_url(&url).message_body("x".repeat(20_000)).send();
    let mut acknowledged = HashSet::new();
    while let Ok(sent) = send().await {
        acknowledged.insert(sent.message_id.unwrap());
        assert!(acknowledged.len() < 1000, "the limit is never met");
    }
    assert!(acknowledged.len() > 3, "there was space at first");
    let refused = tokio::time::timeout(HANGS, send()).await.unwrap().unwrap_err();
    assert!(refused.raw_response().unwrap().status().as_u16() == 500, "{refused:?}");

    let pid = process.child.id().to_string();
    let lifted = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(lifted.unwrap().success());
    let lifted = Instant::now();
    let healed = loop {
        match send().await {
            Ok(sent) => break sent.message_id.unwrap(),
            Err(error) => assert!(lifted.elapsed() < HANGS, "it never heals: {error:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    println!("written again {} ms after there was space", lifted.elapsed().as_millis());
    acknowledged.insert(healed);
    process.child.kill().unwrap();
    process.child.wait().unwrap();

    let process = Process::start(&file);
    let client = self::client(&process.endpoint);
    let url = create(&client, "q", &[]).await;
    while !acknowledged.is_empty() {
        let receive = client.receive_message().queue_url(&url).max_number_of_messages(10);
        let received = receive.send().await.unwrap().messages.unwrap_or_default();
        assert!(!received.is_empty(), "{} messages are lost", acknowledged.len());
        for message in received {
            acknowledged.remove(&message.message_id.unwrap());
        }
    }
}

/// Answers that the clients got.
#[derive(Default)]
struct Told {
    sent: HashSet<String>,
    delete_asked: HashSet<String>,
    deleted: HashSet<String>,
}

/// What the clients were told, and a notification for whoever waits for a message to be sent.
#[derive(Default)]
struct Traffic {
    told: Mutex<Told>,
    sent_one: Notify,
}

/// Sends, and now and then receives and deletes, until the server is gone.
async fn send_and_delete(client: Client, url: String, traffic: Arc<Traffic>) {
    let told = &traffic.told;
    loop {
        let Ok(sent) = client.send_message().queue_url(&url).message_body("x").send().await else {
            return;
        };
        let sent_so_far = {
            let mut told = told.lock().unwrap();
            told.sent.insert(sent.message_id.unwrap());
            told.sent.len()
        };
        traffic.sent_one.notify_one();
        if sent_so_far % 3 != 0 {
            continue;
        }
        let Ok(received) = client.receive_message().queue_url(&url).send().await else { return };
        for message in received.messages.unwrap_or_default() {
            let id = message.message_id.unwrap();
            told.lock().unwrap().delete_asked.insert(id.clone());
            let delete = client.delete_message().queue_url(&url);
            if delete.receipt_handle(message.receipt_handle.unwrap()).send().await.is_err() {
                return;
            }
            told.lock().unwrap().deleted.insert(id);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queues.db");
    let traffic = Arc::new(Traffic::default());
    for round in 1..=3 {
        let mut process = Process::start(&file);
        let client = client(&process.endpoint);
        let url = create(&client, "q", &[(QueueAttributeName::VisibilityTimeout, "1")]).await;
        let clients: Vec<_> = (0..8)
            .map(|_| tokio::spawn(send_and_delete(client.clone(), url.clone(), traffic.clone())))
            .collect();
        while traffic.told.lock().unwrap().sent.len() < round * 300 {
            traffic.sent_one.notified().await;
        }
        // In the middle of everything.
        process.child.kill().unwrap();
        for client in clients {
            client.await.unwrap();
        }
    }

    let process = Process::start(&file);
    let client = client(&process.endpoint);
    let url = create(&client, "q", &[]).await;
    let told = std::mem::take(&mut *traffic.told.lock().unwrap());
    let mut missing: HashSet<&String> = told.sent.difference(&told.delete_asked).collect();
    assert!(missing.len() > 300 && told.deleted.len() > 50, "there was traffic of both kinds");
    let started = Instant::now();
    while !missing.is_empty() {
        let receive = client.receive_message().queue_url(&url).max_number_of_messages(10);
        let received = receive.visibility_timeout(900).wait_time_seconds(2).send().await.unwrap();
        for message in received.messages.unwrap_or_default() {
            let id = message.message_id.unwrap();
            assert!(!told.deleted.contains(&id), "{id} was deleted and is back");
            missing.remove(&id);
        }
        assert!(started.elapsed() < 4 * HANGS, "{} messages are lost", missing.len());
    }
}
