//! The pollers against a real queue: what a function did is deleted, what it did not comes back,
//! and what always fails ends in the dead-letter queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use aws_sdk_sqs::types::QueueAttributeName;
use local::concurrency::Concurrency;
use local::event_sources::{Mapping, Source, poll, schedule};
use local::queues::{QueuePair, Queues, Redelivery};
use local::servers::FakeSqs;
use local::stores;
use shared::runtime::functions::Function;

use crate::backends::{self, Server};

/// Number of receives after which a message is a dead letter.
const MAX_RECEIVES: u32 = 3;
/// Time that a received message is hidden: longer than any machine takes to handle it, so that none comes
/// back before it is deleted. What is to come back is shown again at once ([`show_again`]).
const VISIBILITY: Duration = Duration::from_secs(600);
/// Size of a batch that no test fills.
const MAX_BATCH: usize = 100;
/// Time for which a batch is gathered: longer than any machine takes to receive one.
const LONG_WINDOW: Duration = Duration::from_secs(300);

/// Asks until it is so; fails the test after two minutes.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asked_since = Instant::now();
    while !is_so().await {
        assert!(asked_since.elapsed() < Duration::from_secs(120), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The bodies that each invocation got, in order.
type Seen = Arc<Mutex<Vec<Vec<String>>>>;

struct Fixture {
    sqs: aws_sdk_sqs::Client,
    queues: Queues,
    _server: Server<FakeSqs>,
}

impl Fixture {
    async fn start() -> Self {
        let server = backends::sqs();
        let sqs = stores::sqs(&server.url);
        let redelivery = Redelivery { visibility: VISIBILITY, max_receives: MAX_RECEIVES };
        let queues = Queues::create(&sqs, &backends::prefix(), Some(redelivery)).await.unwrap();
        Self { sqs, queues, _server: server }
    }

    async fn send(&self, bodies: &[&str]) {
        for body in bodies {
            let send = self.sqs.send_message().queue_url(&self.queues.sync.url);
            send.message_body(*body).send().await.unwrap();
        }
    }

    /// Number of messages of a queue, hidden ones included.
    async fn count(&self, url: &str) -> u32 {
        let reply = self.sqs.get_queue_attributes().queue_url(url);
        let reply = reply.attribute_names(QueueAttributeName::All).send().await.unwrap();
        let attributes = reply.attributes.unwrap();
        [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ]
        .iter()
        .map(|name| attributes[name].parse::<u32>().unwrap())
        .sum()
    }

    fn poll<F, Fut>(&self, max_batch: usize, window: Duration, function: F) -> Source
    where
        F: Fn(SqsEvent) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = SqsBatchResponse> + Send + 'static,
    {
        let QueuePair { name, url, arn, .. } = self.queues.sync.clone();
        let mapping = Mapping {
            name,
            url,
            arn,
            max_batch,
            window,
            concurrency: 1,
            timeout: Duration::from_secs(60),
            function: Function::SyncDb,
            account: Concurrency::default(),
            grows: false,
        };
        poll(self.sqs.clone(), mapping, function)
    }
}

fn body(record: &SqsMessage) -> String {
    record.body.clone().unwrap()
}

fn is_bad(record: &&SqsMessage) -> bool {
    body(record).starts_with("bad")
}

/// Has messages that were received come again at once, as if the time were over for which they are hidden.
async fn show_again(
    sqs: &aws_sdk_sqs::Client,
    url: &str,
    records: impl Iterator<Item = &SqsMessage>,
) {
    for record in records {
        let change = sqs.change_message_visibility().queue_url(url).visibility_timeout(0);
        change.set_receipt_handle(record.receipt_handle.clone()).send().await.unwrap();
    }
}

/// Notes what came, then reports those as failed whose body begins with `bad`.
fn note(seen: &Seen, event: &SqsEvent) -> SqsBatchResponse {
    seen.lock().unwrap().push(event.records.iter().map(body).collect());
    let mut response = SqsBatchResponse::default();
    for record in &event.records {
        if is_bad(&record) {
            response.add_failure(record.message_id.clone().unwrap());
        }
    }
    response
}

/// The number of deliveries of each body.
fn deliveries(seen: &Seen) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for body in seen.lock().unwrap().iter().flatten() {
        *counts.entry(body.clone()).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn only_what_failed_comes_back_until_it_is_dead() {
    let fixture = Fixture::start().await;
    fixture.send(&["good-1", "bad", "good-2"]).await;
    let seen = Seen::default();
    let source = fixture.poll(MAX_BATCH, Duration::ZERO, {
        let (seen, sqs) = (Arc::clone(&seen), fixture.sqs.clone());
        let url = fixture.queues.sync.url.clone();
        move |event| {
            let response = note(&seen, &event);
            let (sqs, url) = (sqs.clone(), url.clone());
            async move {
                show_again(&sqs, &url, event.records.iter().filter(is_bad)).await;
                response
            }
        }
    });
    let QueuePair { url, dead_url, .. } = &fixture.queues.sync;
    until("the bad message is dead", async || fixture.count(dead_url).await == 1).await;
    until("nothing is left", async || fixture.count(url).await == 0).await;
    let counts = deliveries(&seen);
    assert_eq!((counts["good-1"], counts["good-2"]), (1, 1));
    assert_eq!(counts["bad"], MAX_RECEIVES as usize);
    source.stop().await;
}

#[tokio::test]
async fn a_panic_fails_the_batch_and_not_the_poller() {
    let fixture = Fixture::start().await;
    fixture.send(&["one"]).await;
    let seen = Seen::default();
    let source = fixture.poll(MAX_BATCH, Duration::ZERO, {
        let (seen, sqs) = (Arc::clone(&seen), fixture.sqs.clone());
        let url = fixture.queues.sync.url.clone();
        move |event: SqsEvent| {
            let (seen, sqs, url) = (Arc::clone(&seen), sqs.clone(), url.clone());
            async move {
                let response = note(&seen, &event);
                if seen.lock().unwrap().len() == 1 {
                    show_again(&sqs, &url, event.records.iter()).await;
                    panic!("broken at first");
                }
                response
            }
        }
    });
    let url = &fixture.queues.sync.url;
    until("the message is done", async || fixture.count(url).await == 0).await;
    assert_eq!(deliveries(&seen)["one"], 2);
    source.stop().await;
}

/// The sizes of the batches in which so many messages are handled that are there from the start.
async fn batches(messages: usize, max_batch: usize, window: Duration) -> Vec<usize> {
    let fixture = Fixture::start().await;
    let bodies: Vec<String> = (0..messages).map(|number| format!("good-{number}")).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    fixture.send(&bodies).await;
    let seen = Seen::default();
    let source = fixture.poll(max_batch, window, {
        let seen = Arc::clone(&seen);
        move |event| {
            let response = note(&seen, &event);
            async move { response }
        }
    });
    let url = &fixture.queues.sync.url;
    until("all are done", async || fixture.count(url).await == 0).await;
    source.stop().await;
    seen.lock().unwrap().iter().map(Vec::len).collect()
}

#[tokio::test]
async fn a_window_gathers_a_batch_larger_than_a_receive() {
    // Three receives of ten at most: the window is closed by the batch that is full.
    assert_eq!(batches(25, 25, LONG_WINDOW).await, [25]);
    // One that is not full is closed by its time, however many receives that was enough for.
    let sizes = batches(3, MAX_BATCH, Duration::from_millis(500)).await;
    assert_eq!(sizes.iter().sum::<usize>(), 3, "{sizes:?}");
}

#[tokio::test]
async fn a_schedule_goes_on_after_a_failure() {
    let runs = Arc::new(Mutex::new(0));
    let source = schedule("test", Duration::from_millis(5), Duration::from_secs(1), {
        let runs = Arc::clone(&runs);
        move || {
            let runs = Arc::clone(&runs);
            async move {
                let run = {
                    let mut runs = runs.lock().unwrap();
                    *runs += 1;
                    *runs
                };
                assert!(run != 2, "the second run breaks");
            }
        }
    });
    until("it runs on", async || *runs.lock().unwrap() > 3).await;
    source.stop().await;
}
