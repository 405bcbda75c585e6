//! The broker as a client sees it, without a server, a file or a clock: requests in the JSON of
//! the wire, one after another, at times of the test's choosing.

#![allow(clippy::too_many_lines, reason = "a table of refusals is one test")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::handle::format_handle;
use super::*;
use crate::error::ErrorKind;

fn home(cooldowns: bool) -> Home {
    Home {
        endpoint: "http://here".into(),
        region: "us-east-1".into(),
        account: "000000000000".into(),
        cooldowns,
        throttles: Throttles::default(),
    }
}

/// A broker and its clock.
struct Fixture {
    broker: Broker,
    now_ms: u64,
}

impl Fixture {
    fn new() -> Self {
        Fixture::with(Faults::default(), true)
    }

    fn with(faults: Faults, cooldowns: bool) -> Self {
        let kept = Snapshot::default();
        Fixture {
            broker: Broker::new(home(cooldowns), faults, 1, true, kept, 0),
            now_ms: 1_000_000,
        }
    }

    fn call(&mut self, operation: &str, body: Value) -> Result<Value, SqsError> {
        let request = Request::parse(operation, body.to_string().as_bytes())?;
        if let Request::Receive(receive) = &request {
            let received = self.broker.receive(receive, self.now_ms)?;
            return Ok(Reply::Received(received.deliveries).into_json(Some(receive)));
        }
        Ok(self.broker.call(request, self.now_ms)?.into_json(None))
    }

    fn done(&mut self, operation: &str, body: Value) -> Value {
        self.call(operation, body).unwrap()
    }

    fn refused(&mut self, operation: &str, body: Value) -> ErrorKind {
        let refusal = self.call(operation, body.clone());
        refusal.map(|reply| panic!("{operation} {body} was answered: {reply}")).unwrap_err().kind
    }

    fn queue(&mut self, name: &str, attributes: Value) -> String {
        let reply =
            self.done("CreateQueue", json!({ "QueueName": name, "Attributes": attributes }));
        reply["QueueUrl"].as_str().unwrap().to_owned()
    }

    fn send(&mut self, url: &str, body: &str) -> Value {
        self.done("SendMessage", json!({ "QueueUrl": url, "MessageBody": body }))
    }

    fn receive(&mut self, url: &str) -> Vec<Value> {
        let request = json!({
            "QueueUrl": url, "MaxNumberOfMessages": 10, "AttributeNames": ["All"],
            "MessageAttributeNames": ["All"],
        });
        let reply = self.done("ReceiveMessage", request);
        reply["Messages"].as_array().cloned().unwrap_or_default()
    }

    fn bodies(&mut self, url: &str) -> Vec<String> {
        let messages = self.receive(url);
        messages.iter().map(|message| message["Body"].as_str().unwrap().to_owned()).collect()
    }

    fn delete(&mut self, url: &str, message: &Value) {
        self.done(
            "DeleteMessage",
            json!({ "QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"] }),
        );
    }

    fn attribute(&mut self, url: &str, name: &str) -> String {
        let reply =
            self.done("GetQueueAttributes", json!({ "QueueUrl": url, "AttributeNames": [name] }));
        reply["Attributes"][name].as_str().unwrap().to_owned()
    }
}

fn redrive(target: &str, count: u32) -> Value {
    let arn = format!("arn:aws:sqs:us-east-1:000000000000:{target}");
    json!({ "RedrivePolicy": json!({ "deadLetterTargetArn": arn, "maxReceiveCount": count }).to_string() })
}

#[test]
fn every_refusal_has_its_error() {
    let mut fixture = Fixture::new();
    let url = fixture.queue("q", json!({}));
    let fifo = fixture.queue("f.fifo", json!({ "FifoQueue": "true" }));
    let small = fixture.queue("small", json!({ "MaximumMessageSize": "1024" }));
    fixture.queue("dead", json!({}));
    fixture.queue("source", redrive("dead", 1));
    let dead_arn = "arn:aws:sqs:us-east-1:000000000000:dead";
    let no_arn = "arn:aws:sqs:us-east-1:000000000000:none";
    let entry = |id: &str| json!({ "Id": id, "MessageBody": "x" });
    let entries = |count: usize| (0..count).map(|n| entry(&n.to_string())).collect::<Vec<_>>();
    let long = "x".repeat(600_000);

    use ErrorKind::*;
    let cases = [
        ("SendMessage", json!({}), MissingParameter),
        ("SendMessage", json!({ "QueueUrl": url }), MissingParameter),
        ("SendMessage", json!({ "QueueUrl": url, "MessageBody": "" }), MissingParameter),
        ("SendMessage", json!({ "QueueUrl": "q", "MessageBody": "x" }), InvalidAddress),
        (
            "SendMessage",
            json!({ "QueueUrl": "http://here/0/none", "MessageBody": "x" }),
            QueueDoesNotExist,
        ),
        ("SendMessage", json!({ "QueueUrl": url, "MessageBody": 7 }), Serialization),
        (
            "SendMessage",
            json!({ "QueueUrl": url, "MessageBody": "x", "DelaySeconds": 901 }),
            InvalidParameterValue,
        ),
        (
            "SendMessage",
            json!({ "QueueUrl": url, "MessageBody": "x", "DelaySeconds": -1 }),
            InvalidParameterValue,
        ),
        ("SendMessage", json!({ "QueueUrl": url, "MessageBody": "\u{0}" }), InvalidMessageContents),
        (
            "SendMessage",
            json!({ "QueueUrl": url, "MessageBody": "x", "MessageDeduplicationId": "d" }),
            InvalidParameterValue,
        ),
        (
            "SendMessage",
            json!({ "QueueUrl": small, "MessageBody": "x".repeat(1_025) }),
            InvalidParameterValue,
        ),
        (
            "SendMessage",
            json!({ "QueueUrl": url, "MessageBody": "x".repeat(1_048_577) }),
            InvalidParameterValue,
        ),
        ("SendMessage", json!({ "QueueUrl": fifo, "MessageBody": "x" }), MissingParameter),
        (
            "SendMessage",
            json!({ "QueueUrl": fifo, "MessageBody": "x", "MessageGroupId": "g" }),
            InvalidParameterValue,
        ),
        (
            "SendMessage",
            json!({ "QueueUrl": fifo, "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 1 }),
            InvalidParameterValue,
        ),
        ("SendMessageBatch", json!({ "QueueUrl": url, "Entries": [] }), EmptyBatchRequest),
        ("SendMessageBatch", json!({ "QueueUrl": url }), EmptyBatchRequest),
        (
            "SendMessageBatch",
            json!({ "QueueUrl": url, "Entries": entries(11) }),
            TooManyEntriesInBatchRequest,
        ),
        (
            "SendMessageBatch",
            json!({ "QueueUrl": url, "Entries": [entry("a"), entry("a")] }),
            BatchEntryIdsNotDistinct,
        ),
        (
            "SendMessageBatch",
            json!({ "QueueUrl": url, "Entries": [entry("a b")] }),
            InvalidBatchEntryId,
        ),
        (
            "SendMessageBatch",
            json!({ "QueueUrl": url, "Entries": [entry(&"a".repeat(81))] }),
            InvalidBatchEntryId,
        ),
        (
            "SendMessageBatch",
            json!({ "QueueUrl": url, "Entries": [{ "Id": "a", "MessageBody": long }, { "Id": "b", "MessageBody": long }] }),
            BatchRequestTooLong,
        ),
        (
            "ReceiveMessage",
            json!({ "QueueUrl": url, "MaxNumberOfMessages": 0 }),
            InvalidParameterValue,
        ),
        (
            "ReceiveMessage",
            json!({ "QueueUrl": url, "MaxNumberOfMessages": 11 }),
            InvalidParameterValue,
        ),
        (
            "ReceiveMessage",
            json!({ "QueueUrl": url, "WaitTimeSeconds": 21 }),
            InvalidParameterValue,
        ),
        (
            "ReceiveMessage",
            json!({ "QueueUrl": url, "VisibilityTimeout": 43_201 }),
            InvalidParameterValue,
        ),
        ("DeleteMessage", json!({ "QueueUrl": url }), MissingParameter),
        (
            "DeleteMessage",
            json!({ "QueueUrl": url, "ReceiptHandle": "garbage" }),
            ReceiptHandleIsInvalid,
        ),
        (
            "DeleteMessage",
            json!({ "QueueUrl": url, "ReceiptHandle": format_handle(99, 1, 1) }),
            ReceiptHandleIsInvalid,
        ),
        (
            "ChangeMessageVisibility",
            json!({ "QueueUrl": url, "ReceiptHandle": "garbage", "VisibilityTimeout": 1 }),
            ReceiptHandleIsInvalid,
        ),
        (
            "ChangeMessageVisibility",
            json!({ "QueueUrl": url, "ReceiptHandle": format_handle(1, 99, 1) }),
            MissingParameter,
        ),
        (
            "ChangeMessageVisibility",
            json!({ "QueueUrl": url, "ReceiptHandle": format_handle(1, 99, 1), "VisibilityTimeout": 43_201 }),
            InvalidParameterValue,
        ),
        (
            "ChangeMessageVisibility",
            json!({ "QueueUrl": url, "ReceiptHandle": format_handle(1, 99, 1), "VisibilityTimeout": 1 }),
            InvalidParameterValue,
        ),
        ("CreateQueue", json!({}), MissingParameter),
        ("CreateQueue", json!({ "QueueName": "a b" }), InvalidParameterValue),
        ("CreateQueue", json!({ "QueueName": "" }), InvalidParameterValue),
        ("CreateQueue", json!({ "QueueName": "x".repeat(81) }), InvalidParameterValue),
        ("CreateQueue", json!({ "QueueName": "a.fifo" }), InvalidParameterValue),
        (
            "CreateQueue",
            json!({ "QueueName": "a", "Attributes": { "FifoQueue": "true" } }),
            InvalidParameterValue,
        ),
        (
            "CreateQueue",
            json!({ "QueueName": "q", "Attributes": { "VisibilityTimeout": "31" } }),
            QueueNameExists,
        ),
        (
            "CreateQueue",
            json!({ "QueueName": "new", "Attributes": { "DelaySeconds": "901" } }),
            InvalidAttributeValue,
        ),
        (
            "CreateQueue",
            json!({ "QueueName": "new", "Attributes": { "Colour": "red" } }),
            InvalidAttributeName,
        ),
        (
            "CreateQueue",
            json!({ "QueueName": "new", "Attributes": { "ContentBasedDeduplication": "true" } }),
            InvalidAttributeName,
        ),
        (
            "CreateQueue",
            json!({ "QueueName": "new", "Attributes": redrive("none", 1) }),
            InvalidParameterValue,
        ),
        (
            "CreateQueue",
            json!({ "QueueName": "new", "Attributes": redrive("f.fifo", 1) }),
            InvalidParameterValue,
        ),
        ("SetQueueAttributes", json!({ "QueueUrl": url }), MissingParameter),
        (
            "SetQueueAttributes",
            json!({ "QueueUrl": fifo, "Attributes": { "FifoQueue": "false" } }),
            InvalidAttributeValue,
        ),
        (
            "SetQueueAttributes",
            json!({ "QueueUrl": url, "Attributes": { "RedrivePolicy": "{" } }),
            InvalidParameterValue,
        ),
        (
            "GetQueueAttributes",
            json!({ "QueueUrl": url, "AttributeNames": ["Colour"] }),
            InvalidAttributeName,
        ),
        ("GetQueueUrl", json!({ "QueueName": "none" }), QueueDoesNotExist),
        ("DeleteQueue", json!({ "QueueUrl": "http://here/0/none" }), QueueDoesNotExist),
        ("ListQueues", json!({ "MaxResults": 1_001 }), InvalidParameterValue),
        ("TagQueue", json!({ "QueueUrl": url }), MissingParameter),
        ("UntagQueue", json!({ "QueueUrl": url }), MissingParameter),
        (
            "TagQueue",
            json!({ "QueueUrl": url, "Tags": (0..51).map(|n| (n.to_string(), json!(""))).collect::<serde_json::Map<_, _>>() }),
            InvalidParameterValue,
        ),
        ("StartMessageMoveTask", json!({}), MissingParameter),
        ("StartMessageMoveTask", json!({ "SourceArn": no_arn }), ResourceNotFound),
        (
            "StartMessageMoveTask",
            json!({ "SourceArn": dead_arn, "DestinationArn": no_arn }),
            ResourceNotFound,
        ),
        (
            "StartMessageMoveTask",
            json!({ "SourceArn": dead_arn, "DestinationArn": dead_arn }),
            InvalidParameterValue,
        ),
        (
            "StartMessageMoveTask",
            json!({ "SourceArn": "arn:aws:sqs:us-east-1:000000000000:q" }),
            InvalidParameterValue,
        ),
        (
            "StartMessageMoveTask",
            json!({ "SourceArn": dead_arn, "MaxNumberOfMessagesPerSecond": 501 }),
            InvalidParameterValue,
        ),
        ("ListMessageMoveTasks", json!({ "SourceArn": no_arn }), ResourceNotFound),
        ("CancelMessageMoveTask", json!({ "TaskHandle": "none" }), ResourceNotFound),
        ("AddPermission", json!({ "QueueUrl": url }), UnsupportedOperation),
        ("Dance", json!({}), UnknownOperation),
    ];
    for (operation, body, kind) in cases {
        let text = body.to_string();
        assert_eq!(fixture.refused(operation, body), kind, "{operation} {:.200}", text);
    }
}

#[test]
fn refusals_that_need_a_past() {
    let mut fixture = Fixture::new();
    let url = fixture.queue("q", json!({}));
    fixture.send(&url, "x");
    let message = fixture.receive(&url).remove(0);
    let visible = |seconds: u64| json!({ "QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": seconds });
    fixture.done("ChangeMessageVisibility", visible(0));
    assert_eq!(
        fixture.refused("ChangeMessageVisibility", visible(5)),
        ErrorKind::MessageNotInflight
    );

    fixture.done("PurgeQueue", json!({ "QueueUrl": url }));
    fixture.now_ms += 59_999;
    assert_eq!(
        fixture.refused("PurgeQueue", json!({ "QueueUrl": url })),
        ErrorKind::PurgeQueueInProgress
    );
    fixture.now_ms += 1;
    fixture.done("PurgeQueue", json!({ "QueueUrl": url }));

    fixture.done("DeleteQueue", json!({ "QueueUrl": url }));
    fixture.now_ms += 59_999;
    assert_eq!(
        fixture.refused("CreateQueue", json!({ "QueueName": "q" })),
        ErrorKind::QueueDeletedRecently
    );
    fixture.now_ms += 1;
    fixture.queue("q", json!({}));
    assert_eq!(
        fixture.refused(
            "DeleteMessage",
            json!({ "QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"] })
        ),
        ErrorKind::ReceiptHandleIsInvalid,
        "a handle of the deleted queue is none of the new one's"
    );
}

#[test]
fn too_many_in_flight_is_over_the_limit() {
    let mut fixture = Fixture::new();
    let url = fixture.queue("q", json!({}));
    for _ in 0..12_000 {
        for _ in 0..10 {
            fixture.send(&url, "x");
        }
        assert_eq!(fixture.receive(&url).len(), 10);
    }
    fixture.send(&url, "x");
    assert_eq!(fixture.refused("ReceiveMessage", json!({ "QueueUrl": url })), ErrorKind::OverLimit);
    let long = json!({ "QueueUrl": url, "WaitTimeSeconds": 20 });
    let silent = fixture.done("ReceiveMessage", long);
    assert!(silent.get("Messages").is_none(), "a long poll gets an empty answer: {silent}");
}

#[test]
fn the_entries_of_a_batch_fail_one_by_one() {
    let mut fixture = Fixture::new();
    let url = fixture.queue("q", json!({}));
    let reply = fixture.done(
        "SendMessageBatch",
        json!({ "QueueUrl": url, "Entries": [
            { "Id": "good", "MessageBody": "x" },
            { "Id": "late", "MessageBody": "x", "DelaySeconds": 901 },
            { "Id": "bare" },
        ] }),
    );
    assert_eq!(reply["Successful"][0]["Id"], "good");
    assert_eq!(reply["Failed"][0]["Code"], "InvalidParameterValue");
    assert_eq!(reply["Failed"][1]["Code"], "MissingParameter");
    assert_eq!(reply["Failed"][1]["SenderFault"], true);
    let message = fixture.receive(&url).remove(0);
    for (operation, extra) in [("ChangeMessageVisibilityBatch", 9), ("DeleteMessageBatch", 0)] {
        let reply = fixture.done(
            operation,
            json!({ "QueueUrl": url, "Entries": [
                { "Id": "good", "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": extra },
                { "Id": "bad", "ReceiptHandle": "garbage", "VisibilityTimeout": extra },
            ] }),
        );
        assert_eq!(reply["Successful"], json!([{ "Id": "good" }]), "{operation}");
        assert_eq!(reply["Failed"][0]["Code"], "ReceiptHandleIsInvalid", "{operation}");
    }
    assert_eq!(fixture.attribute(&url, "ApproximateNumberOfMessagesNotVisible"), "0");
}

#[test]
fn only_the_latest_receipt_handle_deletes() {
    let mut fixture = Fixture::new();
    let url = fixture.queue("q", json!({ "VisibilityTimeout": "1" }));
    fixture.send(&url, "x");
    let first = fixture.receive(&url).remove(0);
    fixture.now_ms += 1_000;
    let second = fixture.receive(&url).remove(0);
    assert_ne!(first["ReceiptHandle"], second["ReceiptHandle"]);
    assert_eq!(second["Attributes"]["ApproximateReceiveCount"], "2");
    assert_eq!(
        first["Attributes"]["ApproximateFirstReceiveTimestamp"],
        second["Attributes"]["ApproximateFirstReceiveTimestamp"]
    );
    fixture.delete(&url, &first);
    assert_eq!(fixture.attribute(&url, "ApproximateNumberOfMessagesNotVisible"), "1");
    fixture.delete(&url, &second);
    fixture.delete(&url, &second);
    assert_eq!(fixture.attribute(&url, "ApproximateNumberOfMessagesNotVisible"), "0");
}

#[test]
fn a_late_delete_works_unless_the_queue_is_fifo() {
    for (name, attributes, refused) in [
        ("q", json!({ "VisibilityTimeout": "1" }), false),
        (
            "q.fifo",
            json!({ "VisibilityTimeout": "1", "FifoQueue": "true", "ContentBasedDeduplication": "true" }),
            true,
        ),
    ] {
        let mut fixture = Fixture::new();
        let url = fixture.queue(name, attributes);
        fixture.done(
            "SendMessage",
            json!({ "QueueUrl": url, "MessageBody": "x", "MessageGroupId": "g" }),
        );
        let message = fixture.receive(&url).remove(0);
        fixture.now_ms += 1_000;
        let reply = fixture.call(
            "DeleteMessage",
            json!({ "QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"] }),
        );
        assert_eq!(reply.is_err(), refused, "{name}");
        assert_eq!(fixture.bodies(&url).len(), usize::from(refused), "{name}");
    }
}

#[test]
fn dead_letters_go_and_come_back() {
    let mut fixture = Fixture::new();
    let dead = fixture.queue("dead", json!({}));
    let mut attributes = redrive("dead", 2);
    attributes["VisibilityTimeout"] = json!("1");
    let url = fixture.queue("q", attributes);
    let arn = fixture.attribute(&dead, "QueueArn");
    let sources = fixture.done("ListDeadLetterSourceQueues", json!({ "QueueUrl": dead }));
    assert_eq!(sources["queueUrls"], json!([url]));

    for body in ["a", "b"] {
        fixture.send(&url, body);
    }
    for _ in 0..2 {
        assert_eq!(fixture.bodies(&url), ["a", "b"]);
        fixture.now_ms += 1_000;
    }
    assert!(fixture.bodies(&url).is_empty());
    fixture.broker.take_wakes();
    let letters = fixture.receive(&dead);
    assert_eq!(letters.len(), 2);
    assert_eq!(
        letters[0]["Attributes"]["DeadLetterQueueSourceArn"],
        "arn:aws:sqs:us-east-1:000000000000:q"
    );

    fixture.now_ms += 30_000;
    let task = fixture.done(
        "StartMessageMoveTask",
        json!({ "SourceArn": arn, "MaxNumberOfMessagesPerSecond": 1 }),
    );
    assert_eq!(fixture.bodies(&url), ["a"], "one a second");
    let again = json!({ "SourceArn": arn });
    assert_eq!(
        fixture.refused("StartMessageMoveTask", again.clone()),
        ErrorKind::InvalidParameterValue
    );
    let status = fixture.done("ListMessageMoveTasks", json!({ "SourceArn": arn }));
    assert_eq!(status["Results"][0]["Status"], "RUNNING");
    assert_eq!(status["Results"][0]["ApproximateNumberOfMessagesMoved"], 1);
    assert_eq!(fixture.broker.next_due_ms(), Some(fixture.now_ms + 1_000));
    fixture.done("CancelMessageMoveTask", task.clone());
    assert_eq!(fixture.refused("CancelMessageMoveTask", task), ErrorKind::UnsupportedOperation);

    fixture.done("StartMessageMoveTask", again);
    let status =
        fixture.done("ListMessageMoveTasks", json!({ "SourceArn": arn, "MaxResults": 10 }));
    assert_eq!(status["Results"][0]["Status"], "COMPLETED");
    assert_eq!(status["Results"][1]["Status"], "CANCELLED");
    assert_eq!(fixture.bodies(&url), ["b"], "its receives are counted anew");
}

#[test]
fn a_move_task_of_many_messages_goes_in_steps() {
    let mut fixture = Fixture::new();
    let dead = fixture.queue("dead", json!({}));
    let url = fixture.queue("q", redrive("dead", 1));
    for _ in 0..1_200 {
        fixture.send(&dead, "x");
    }
    let (from, to) = (fixture.attribute(&dead, "QueueArn"), fixture.attribute(&url, "QueueArn"));
    fixture.done("StartMessageMoveTask", json!({ "SourceArn": from, "DestinationArn": to }));
    assert_eq!(fixture.attribute(&url, "ApproximateNumberOfMessages"), "500");
    for expected in ["1000", "1200"] {
        assert_eq!(fixture.broker.next_due_ms(), Some(fixture.now_ms));
        fixture.broker.tick(fixture.now_ms);
        assert_eq!(fixture.attribute(&url, "ApproximateNumberOfMessages"), expected);
    }
    assert_ne!(fixture.broker.next_due_ms(), Some(fixture.now_ms), "the task is over");

    fixture.send(&dead, "not dead-lettered");
    fixture.done("StartMessageMoveTask", json!({ "SourceArn": from }));
    let status = fixture.done("ListMessageMoveTasks", json!({ "SourceArn": from }));
    assert_eq!(status["Results"][0]["Status"], "FAILED");
    assert_eq!(fixture.attribute(&dead, "ApproximateNumberOfMessages"), "1");
}

#[test]
fn a_repeated_fifo_send_is_answered_as_the_first() {
    for (scope, other_group) in [("queue", 1), ("messageGroup", 2)] {
        let mut fixture = Fixture::new();
        let url =
            fixture.queue("q.fifo", json!({ "FifoQueue": "true", "DeduplicationScope": scope }));
        let send = |group: &str| json!({ "QueueUrl": url, "MessageBody": "x", "MessageGroupId": group, "MessageDeduplicationId": "d" });
        let first = fixture.done("SendMessage", send("a"));
        fixture.send_other(&url);
        assert_eq!(fixture.done("SendMessage", send("a")), first);
        fixture.done("SendMessage", send("b"));
        assert_eq!(
            fixture.attribute(&url, "ApproximateNumberOfMessages"),
            (other_group + 1).to_string(),
            "{scope}"
        );
        for message in fixture.receive(&url) {
            fixture.delete(&url, &message);
        }
        fixture.now_ms += 299_999;
        assert_eq!(fixture.done("SendMessage", send("a")), first, "deleted, and still known");
        fixture.now_ms += 1;
        assert_ne!(fixture.done("SendMessage", send("a")), first);
    }
}

impl Fixture {
    fn send_other(&mut self, url: &str) {
        let other = json!({ "QueueUrl": url, "MessageBody": "y", "MessageGroupId": "z", "MessageDeduplicationId": "other" });
        self.done("SendMessage", other);
    }
}

#[test]
fn what_becomes_available_wakes_one_receiver_a_message() {
    let mut fixture = Fixture::new();
    let url = fixture.queue("q", json!({}));
    let id = fixture.broker.id("q").unwrap();
    fixture.broker.take_wakes();
    fixture.done(
        "SendMessageBatch",
        json!({ "QueueUrl": url, "Entries": [
        { "Id": "now", "MessageBody": "x" }, { "Id": "too", "MessageBody": "x" },
        { "Id": "later", "MessageBody": "x", "DelaySeconds": 2 },
    ] }),
    );
    assert_eq!(fixture.broker.take_wakes(), [Wake::Some(id, 2)]);
    assert_eq!(fixture.broker.next_due_ms(), Some(fixture.now_ms + 2_000));
    fixture.now_ms += 1_999;
    assert_eq!(fixture.broker.tick(fixture.now_ms), Some(fixture.now_ms + 1));
    assert_eq!(fixture.broker.take_wakes(), []);
    fixture.now_ms += 1;
    fixture.broker.tick(fixture.now_ms);
    assert_eq!(fixture.broker.take_wakes(), [Wake::Some(id, 1)]);
    assert_eq!(fixture.receive(&url).len(), 3);
    assert_eq!(
        fixture.broker.next_due_ms(),
        Some(fixture.now_ms + 30_000),
        "the visibility runs out"
    );
    fixture.done("DeleteQueue", json!({ "QueueUrl": url }));
    assert_eq!(fixture.broker.take_wakes(), [Wake::All(id)]);
    assert_eq!(fixture.broker.next_due_ms(), None);
}

#[test]
fn the_members_of_a_reply() {
    let mut fixture = Fixture::new();
    let url = fixture.queue("q", json!({}));
    let attribute = json!({ "DataType": "String", "StringValue": "v" });
    let sent = fixture.done("SendMessage", json!({
        "QueueUrl": url, "MessageBody": "hello",
        "MessageAttributes": { "one": attribute, "two": attribute },
        "MessageSystemAttributes": { "AWSTraceHeader": { "DataType": "String", "StringValue": "Root=1" } },
    }));
    assert_eq!(sent["MD5OfMessageBody"], "5d41402abc4b2a76b9719d911017c592");
    assert!(sent["MD5OfMessageSystemAttributes"].is_string() && sent["SequenceNumber"].is_null());
    let reply = fixture.done(
        "ReceiveMessage",
        json!({
            "QueueUrl": url, "VisibilityTimeout": 0, "MessageAttributeNames": ["on.*", "one"],
            "MessageSystemAttributeNames": ["AWSTraceHeader", "SentTimestamp"],
        }),
    );
    let message = &reply["Messages"][0];
    assert_eq!(message["MessageId"], sent["MessageId"]);
    assert_eq!(
        message["Attributes"],
        json!({ "AWSTraceHeader": "Root=1", "SentTimestamp": "1000000" })
    );
    assert_eq!(message["MessageAttributes"], json!({ "one": attribute }));
    assert_ne!(
        message["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"],
        "of what is returned"
    );
    let all = fixture.receive(&url).remove(0);
    assert_eq!(all["MD5OfMessageAttributes"], sent["MD5OfMessageAttributes"]);
    assert_eq!(all["MD5OfBody"], sent["MD5OfMessageBody"]);
    let bare = fixture.done("ReceiveMessage", json!({ "QueueUrl": url }));
    assert_eq!(bare, json!({}));
}

#[test]
fn lists_come_in_pages() {
    let mut fixture = Fixture::new();
    for name in ["b1", "a", "b3", "b2"] {
        fixture.queue(name, json!({}));
    }
    let all = fixture.done("ListQueues", json!({ "QueueNamePrefix": "b" }));
    assert_eq!(all["QueueUrls"].as_array().unwrap().len(), 3);
    assert!(all["NextToken"].is_null());
    let first = fixture.done("ListQueues", json!({ "QueueNamePrefix": "b", "MaxResults": 2 }));
    let second = fixture.done(
        "ListQueues",
        json!({ "QueueNamePrefix": "b", "MaxResults": 2, "NextToken": first["NextToken"] }),
    );
    assert_eq!(second["QueueUrls"], json!(["http://here/000000000000/b3"]));
    assert!(second["NextToken"].is_null());
}

fn received_with(faults: Faults) -> (Vec<String>, Vec<String>) {
    let mut fixture = Fixture::with(faults, false);
    let url = fixture.queue("q", json!({}));
    let sent: Vec<String> = (0..200).map(|n| format!("{n:03}")).collect();
    for body in &sent {
        fixture.send(&url, body);
    }
    let mut received = Vec::new();
    for _ in 0..200 {
        for message in fixture.receive(&url) {
            received.push(message["Body"].as_str().unwrap().to_owned());
            fixture.delete(&url, &message);
        }
        fixture.now_ms += 10;
    }
    assert_eq!(fixture.broker.queue(fixture.broker.id("q").unwrap()).unwrap().counts(), (0, 0, 0));
    (sent, received)
}

#[test]
fn faults_duplicate_reorder_delay_and_lose_nothing() {
    let (sent, received) = received_with(Faults::default());
    assert_eq!(received, sent, "the control: without faults once each and in order");

    let duplicate = Faults { duplicate: 0.3, seed: 1, ..Faults::default() };
    let (sent, mut received) = received_with(duplicate);
    assert!((230..=270).contains(&received.len()), "{} deliveries", received.len());
    received.sort();
    let deliveries = received.len();
    received.dedup();
    assert_eq!(received, sent);
    assert!(deliveries <= 2 * sent.len(), "a copy is not copied");

    let (sent, mut received) = received_with(Faults { reorder: 0.5, seed: 1, ..Faults::default() });
    assert_ne!(received, sent);
    received.sort();
    assert_eq!(received, sent);

    let late = Faults { delay_ms_max: 500, seed: 1, ..Faults::default() };
    let (sent, mut received) = received_with(late);
    assert_ne!(received, sent);
    received.sort();
    assert_eq!(received, sent);

    let all = Faults { duplicate: 0.2, reorder: 0.2, delay_ms_max: 50, seed: 9 };
    assert_eq!(received_with(all), received_with(all), "a seed repeats its run");
    assert_ne!(received_with(all).1, received_with(Faults { seed: 10, ..all }).1);
}

#[test]
fn a_duplicate_survives_the_delete_of_the_first_delivery_and_never_dies() {
    let mut fixture = Fixture::with(Faults { duplicate: 1.0, ..Faults::default() }, false);
    let dead = fixture.queue("dead", json!({}));
    let url = fixture.queue("q", redrive("dead", 1));
    let sent = fixture.send(&url, "x");
    let first = fixture.receive(&url).remove(0);
    fixture.delete(&url, &first);
    let second = fixture.receive(&url).remove(0);
    assert_eq!(
        (&first["MessageId"], &second["MessageId"]),
        (&sent["MessageId"], &sent["MessageId"])
    );
    assert_ne!(first["ReceiptHandle"], second["ReceiptHandle"]);
    fixture.delete(&url, &second);
    assert!(fixture.bodies(&url).is_empty() && fixture.bodies(&dead).is_empty());
}

#[test]
fn fifo_queues_keep_their_guarantees_under_faults() {
    let faults = Faults { duplicate: 1.0, reorder: 1.0, delay_ms_max: 1_000, seed: 3 };
    let mut fixture = Fixture::with(faults, false);
    let url = fixture
        .queue("q.fifo", json!({ "FifoQueue": "true", "ContentBasedDeduplication": "true" }));
    for body in ["a", "b", "c"] {
        fixture.done(
            "SendMessage",
            json!({ "QueueUrl": url, "MessageBody": body, "MessageGroupId": "g" }),
        );
    }
    assert_eq!(fixture.bodies(&url), ["a", "b", "c"]);
}

/// Receive and delete side by side in a queue of 100 and one of 100,000 messages, in turns, so
/// that a busy machine slows both; the quickest turn of each, the least disturbed, is compared.
#[test]
fn a_deep_queue_is_no_slower() {
    const TURNS: usize = 31;
    let mut fixtures = [100, 100_000].map(|depth| {
        let mut fixture = Fixture::new();
        let url = fixture.queue("q", json!({}));
        for _ in 0..depth {
            fixture.send(&url, "x");
        }
        (fixture, url)
    });
    let mut times: [Vec<Duration>; 2] = Default::default();
    for _ in 0..TURNS {
        for ((fixture, url), times) in fixtures.iter_mut().zip(&mut times) {
            let started = Instant::now();
            for _ in 0..10 {
                for message in fixture.receive(url) {
                    fixture.delete(url, &message);
                    fixture.send(url, "x");
                }
            }
            times.push(started.elapsed());
            fixture.broker.take_changes();
        }
    }
    let [shallow, deep] = times.map(|times| times.into_iter().min().unwrap());
    // One scan a receive makes the deep queue thirty times as slow and more; what a machine
    // busy with other things does to its caches is not a factor of ten.
    assert!(deep < shallow * 10, "100 deep: {shallow:?}, 100,000 deep: {deep:?}");
}
