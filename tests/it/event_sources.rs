//! The pollers against a real queue: what a function did is deleted, what it did not comes back,
//! and what always fails ends in the dead-letter queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
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
/// Time that a received message is hidden, in seconds; the shortest that brings it back.
const VISIBILITY: Duration = Duration::from_secs(1);

/// Asks until it is so; fails the test after half a minute.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let asked_since = Instant::now();
    while !is_so().await {
        assert!(asked_since.elapsed() < Duration::from_secs(30), "{what}");
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
    async fn start(visibility: Duration) -> Self {
        let server = backends::sqs();
        let sqs = stores::sqs(&server.url);
        let redelivery = Redelivery { visibility, max_receives: MAX_RECEIVES };
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

    fn poll<F, Fut>(&self, window: Duration, function: F) -> Source
    where
        F: Fn(SqsEvent) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = SqsBatchResponse> + Send + 'static,
    {
        let QueuePair { name, url, arn, .. } = self.queues.sync.clone();
        let mapping = Mapping {
            name,
            url,
            arn,
            max_batch: 100,
            window,
            concurrency: 1,
            timeout: Duration::from_secs(5),
            function: Function::SyncDb,
            account: Concurrency::default(),
            grows: false,
        };
        poll(self.sqs.clone(), mapping, function)
    }
}

/// Notes what came, then reports those as failed whose body begins with `bad`.
fn note(seen: &Seen, event: &SqsEvent) -> SqsBatchResponse {
    let body = |record: &aws_lambda_events::sqs::SqsMessage| record.body.clone().unwrap();
    seen.lock().unwrap().push(event.records.iter().map(body).collect());
    let mut response = SqsBatchResponse::default();
    for record in &event.records {
        if body(record).starts_with("bad") {
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
    let fixture = Fixture::start(VISIBILITY).await;
    fixture.send(&["good-1", "bad", "good-2"]).await;
    let seen = Seen::default();
    let source = fixture.poll(Duration::ZERO, {
        let seen = Arc::clone(&seen);
        move |event| {
            let response = note(&seen, &event);
            async move { response }
        }
    });
    let QueuePair { url, dead_url, .. } = &fixture.queues.sync;
    until("the bad message is dead", async || fixture.count(dead_url).await == 1).await;
    assert_eq!(fixture.count(url).await, 0, "nothing is left");
    let counts = deliveries(&seen);
    assert_eq!((counts["good-1"], counts["good-2"]), (1, 1));
    assert_eq!(counts["bad"], MAX_RECEIVES as usize);
    source.stop().await;
}

#[tokio::test]
async fn a_panic_fails_the_batch_and_not_the_poller() {
    let fixture = Fixture::start(VISIBILITY).await;
    fixture.send(&["one"]).await;
    let seen = Seen::default();
    let source = fixture.poll(Duration::ZERO, {
        let seen = Arc::clone(&seen);
        move |event: SqsEvent| {
            let seen = Arc::clone(&seen);
            async move {
                let response = note(&seen, &event);
                assert!(seen.lock().unwrap().len() > 1, "broken at first");
                response
            }
        }
    });
    let url = &fixture.queues.sync.url;
    until("the message is done", async || fixture.count(url).await == 0).await;
    assert_eq!(deliveries(&seen)["one"], 2);
    source.stop().await;
}

#[tokio::test]
async fn a_window_gathers_a_batch_larger_than_a_receive() {
    let fixture = Fixture::start(30 * VISIBILITY).await;
    let bodies: Vec<String> = (0..25).map(|number| format!("good-{number}")).collect();
    let bodies: Vec<&str> = bodies.iter().map(String::as_str).collect();
    fixture.send(&bodies).await;
    let seen = Seen::default();
    let source = fixture.poll(Duration::from_millis(500), {
        let seen = Arc::clone(&seen);
        move |event| {
            let response = note(&seen, &event);
            async move { response }
        }
    });
    let url = &fixture.queues.sync.url;
    until("all are done", async || fixture.count(url).await == 0).await;
    source.stop().await;
    let sizes: Vec<usize> = seen.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [25]);
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
