//! A closed loop: a number of connections, each sending its next request as soon as it has its answer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use super::connection::{Answer, Connection};

/// The longest latency that is resolved: a minute, in microseconds.
const LONGEST_US: u64 = 60_000_000;

/// A batch that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    /// Each answer, in the order of the requests.
    pub(super) answers: Vec<Answer>,
    /// Time of each request, in microseconds.
    pub(super) latencies: Histogram<u64>,
    /// Time of all requests together.
    pub(super) elapsed: Duration,
}

/// Sends every request once, over `connections` at a time.
pub(super) async fn send(
    address: SocketAddr,
    connections: usize,
    requests: Vec<Vec<u8>>,
) -> io::Result<Sent> {
    let count = requests.len();
    let mut opened = Vec::with_capacity(connections);
    for _ in 0..connections.min(count) {
        opened.push(Connection::open(address).await?);
    }
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let began = Instant::now();
    let mut senders = JoinSet::new();
    for mut connection in opened {
        let (requests, next) = (Arc::clone(&requests), Arc::clone(&next));
        senders.spawn(async move {
            let mut answers = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = requests.get(index) else { return Ok(answers) };
                let asked = Instant::now();
                let answer = connection.send(request).await?;
                answers.push((index, answer, asked.elapsed()));
            }
        });
    }
    let of_all: Vec<io::Result<Vec<(usize, Answer, Duration)>>> = senders.join_all().await;
    let elapsed = began.elapsed();
    let mut answers = Vec::with_capacity(count);
    for of_one in of_all {
        answers.extend(of_one?);
    }
    answers.sort_unstable_by_key(|(index, ..)| *index);
    let mut latencies = histogram();
    for (_, _, took) in &answers {
        latencies.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
    let answers = answers.into_iter().map(|(_, answer, _)| answer).collect();
    Ok(Sent { answers, latencies, elapsed })
}

pub(super) fn histogram() -> Histogram<u64> {
    // A microsecond to a minute at three digits is always a valid histogram.
    Histogram::new_with_bounds(1, LONGEST_US, 3)
        .unwrap_or_else(|error| unreachable!("histogram bounds: {error}"))
}
