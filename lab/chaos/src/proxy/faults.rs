//! Faults that a proxy injects into a share of the requests, drawn from a seed.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::sync::watch;

use local::servers::redis_proxy::Act;

use super::http;

/// The longest that a message may be late, in milliseconds: longer than a request to Redis may take.
const MAX_LATE_MS: u64 = 1500;

/// Fault that can happen to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It is carried out, and its reply lost.
    LostReply,
    LostRequest,
    /// The connection is cut in the middle of the reply.
    CutReply,
    Late,
    /// It is carried out twice.
    Twice,
    /// It conflicts with another one, or the server is not ready for it.
    Refused,
    Throttled,
    /// Part of a batch is not done.
    Unprocessed,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::LostReply,
        Self::LostRequest,
        Self::CutReply,
        Self::Late,
        Self::Twice,
        Self::Refused,
        Self::Throttled,
        Self::Unprocessed,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::LostReply => "reply lost",
            Self::LostRequest => "request lost",
            Self::CutReply => "cut in the reply",
            Self::Late => "late",
            Self::Twice => "carried out twice",
            Self::Refused => "conflict",
            Self::Throttled => "throttled",
            Self::Unprocessed => "left unprocessed",
        }
    }
}

#[derive(Debug)]
struct Draws {
    random: StdRng,
    /// Of a thousand requests.
    share: u32,
    met: BTreeMap<Kind, u64>,
}

/// Injects faults into a share of the requests, while it is on. It may be off to begin with, and
/// somebody may wait until a number of requests met one.
#[derive(Debug)]
pub struct ProxyFaults {
    draws: Mutex<Draws>,
    met: watch::Sender<u64>,
}

impl ProxyFaults {
    /// Injects nothing yet; its draws come from a seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        let random = StdRng::seed_from_u64(seed);
        let draws = Draws { random, share: 0, met: BTreeMap::new() };
        Self { draws: Mutex::new(draws), met: watch::Sender::new(0) }
    }

    fn draws(&self) -> MutexGuard<'_, Draws> {
        self.draws.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `per_mille` of a thousand requests meet a fault.
    pub fn begin(&self, per_mille: u32) {
        self.draws().share = per_mille;
    }

    /// Ends the faults; the number of requests that met one since they began, by kind.
    pub fn end(&self) -> BTreeMap<Kind, u64> {
        let mut draws = self.draws();
        draws.share = 0;
        std::mem::take(&mut draws.met)
    }

    /// Number of requests that met it so far.
    #[must_use]
    pub fn met(&self) -> u64 {
        *self.met.borrow()
    }

    /// Waits until `count` requests met it.
    pub async fn until_met(&self, count: u64) {
        // It fails only if the sender is gone, which is in our hands.
        let mut met = self.met.subscribe();
        let _met = met.wait_for(|met| *met >= count).await;
    }

    /// What happens to a request that each of these kinds could happen to, and how late it is if it
    /// is late.
    fn draw(&self, possible: impl Fn(Kind) -> bool) -> Option<(Kind, Duration)> {
        let mut draws = self.draws();
        let share = draws.share;
        if share == 0 || draws.random.random_range(0..1000) >= share {
            return None;
        }
        let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| possible(*kind)).collect();
        let kind = kinds[draws.random.random_range(0..kinds.len())];
        let late = Duration::from_millis(draws.random.random_range(1..=MAX_LATE_MS));
        *draws.met.entry(kind).or_default() += 1;
        drop(draws);
        self.met.send_modify(|met| *met += 1);
        Some((kind, late))
    }

    /// Action on a request to DynamoDB.
    pub fn of_dynamodb(&self, request: &http::Request) -> http::Act {
        let operation = request.operation.as_str();
        let drawn = self.draw(|kind| match kind {
            Kind::LostReply
            | Kind::LostRequest
            | Kind::CutReply
            | Kind::Late
            | Kind::Twice
            | Kind::Throttled => true,
            Kind::Refused => operation == "TransactWriteItems",
            Kind::Unprocessed => operation == "BatchGetItem",
        });
        let error = |name: &str| format!("com.amazonaws.dynamodb.v20120810#{name}");
        over_http(drawn, |kind| match kind {
            Kind::Unprocessed => {
                let unprocessed = &request.body["RequestItems"];
                http::Act::Answer(200, json!({ "Responses": {}, "UnprocessedKeys": unprocessed }))
            }
            Kind::Refused => {
                let items = request.body["TransactItems"].as_array().map_or(0, Vec::len);
                let mut reasons = vec![json!({ "Code": "None" }); items];
                if let Some(last) = reasons.last_mut() {
                    *last = json!({ "Code": "TransactionConflict", "Message": "in conflict" });
                }
                let kind = error("TransactionCanceledException");
                http::Act::Answer(400, json!({ "__type": kind, "CancellationReasons": reasons }))
            }
            Kind::Throttled
            | Kind::LostReply
            | Kind::LostRequest
            | Kind::CutReply
            | Kind::Late
            | Kind::Twice => {
                let kind = error("ThrottlingException");
                http::Act::Answer(400, json!({ "__type": kind, "message": "slow down" }))
            }
        })
    }

    /// Action on a request to SQS.
    pub fn of_sqs(&self, _request: &http::Request) -> http::Act {
        let drawn = self.draw(|kind| match kind {
            Kind::LostReply
            | Kind::LostRequest
            | Kind::CutReply
            | Kind::Late
            | Kind::Twice
            | Kind::Throttled => true,
            Kind::Refused | Kind::Unprocessed => false,
        });
        over_http(drawn, |_throttled| {
            let kind = "com.amazonaws.sqs#RequestThrottled";
            http::Act::Answer(400, json!({ "__type": kind, "message": "slow down" }))
        })
    }

    /// Action on a request to Redis. Those by which a connection begins are let be.
    pub fn of_redis(&self, command: &str) -> Act {
        if matches!(command, "CLIENT" | "HELLO" | "AUTH" | "SELECT") {
            return Act::Forward;
        }
        let drawn = self.draw(|kind| match kind {
            Kind::LostReply
            | Kind::LostRequest
            | Kind::CutReply
            | Kind::Late
            | Kind::Twice
            | Kind::Refused => true,
            Kind::Throttled | Kind::Unprocessed => false,
        });
        match drawn {
            None => Act::Forward,
            Some((Kind::LostReply, _)) => Act::LoseReply,
            Some((Kind::LostRequest, _)) => Act::LoseRequest,
            Some((Kind::CutReply, _)) => Act::CutReply,
            Some((Kind::Late, late)) => Act::ReplyLate(late),
            Some((Kind::Twice, _)) => Act::ForwardTwice,
            Some((Kind::Refused | Kind::Throttled | Kind::Unprocessed, _)) => {
                Act::Refuse("LOADING the dataset is being loaded")
            }
        }
    }
}

/// What HTTP has in common; `otherwise` says what the server would answer.
fn over_http(
    drawn: Option<(Kind, Duration)>,
    otherwise: impl FnOnce(Kind) -> http::Act,
) -> http::Act {
    match drawn {
        None => http::Act::Forward,
        Some((Kind::LostReply, _)) => http::Act::LoseAnswer,
        Some((Kind::LostRequest, _)) => http::Act::LoseRequest,
        Some((Kind::CutReply, _)) => http::Act::CutAnswer,
        Some((Kind::Late, late)) => http::Act::ForwardLate(late),
        Some((Kind::Twice, _)) => http::Act::ForwardTwice,
        Some((kind @ (Kind::Refused | Kind::Throttled | Kind::Unprocessed), _)) => otherwise(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: &str) -> http::Request {
        http::Request { operation: operation.to_owned(), body: json!({ "TransactItems": [1, 2] }) }
    }

    #[test]
    fn faults_are_met_by_their_share_of_the_requests_and_the_same_with_the_same_seed() {
        let acts = |seed| {
            let faults = ProxyFaults::seeded(seed);
            faults.begin(100);
            let acts = (0..2000).map(|_| faults.of_dynamodb(&request("TransactWriteItems")));
            let acts: Vec<String> = acts.map(|act| format!("{act:?}")).collect();
            (acts, faults.end())
        };
        let (first, met) = acts(1);
        assert_eq!((&first, &met), (&acts(1).0, &acts(1).1));
        assert_ne!(first, acts(2).0);
        let all: u64 = met.values().sum();
        assert!((150..250).contains(&all), "{all} of 2,000");
        assert_eq!(met.len(), 7, "{met:?}");
    }

    #[test]
    fn there_are_no_faults_before_they_begin_and_after_they_end() {
        let faults = ProxyFaults::seeded(1);
        let is_quiet = || (0..1000).all(|_| faults.of_redis("EVALSHA") == Act::Forward);
        assert!(is_quiet());
        faults.begin(1000);
        assert_ne!(faults.of_redis("EVALSHA"), Act::Forward);
        assert_eq!(faults.of_redis("CLIENT"), Act::Forward);
        assert_eq!(faults.end().values().sum::<u64>(), 1);
        assert!(is_quiet());
    }
}
