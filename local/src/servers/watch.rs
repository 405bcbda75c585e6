//! What becomes of a server that ends though nobody has stopped it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::{Error, RedisServer, RedisSide, Server, Stack};

/// How often is looked whether all of them run.
const LOOK: Duration = Duration::from_millis(200);
/// How often Redis is started again within [`RESTARTS_WITHIN`] before it is given up.
const RESTARTS_MAX: usize = 5;
/// The time in which restarts are counted.
const RESTARTS_WITHIN: Duration = Duration::from_secs(60);

impl Stack {
    /// Watches the servers of ours until one is lost for good: resolves to why that is.
    ///
    /// A Redis that ends is started again on the same port and directory, and `revived` is called.
    /// DynamoDB and SQS are part of this process: they end only by a defect, and nothing is known of
    /// their state then.
    pub async fn watch(&self, revived: impl AsyncFn()) -> Error {
        let mut restarts = Restarts::default();
        loop {
            tokio::time::sleep(LOOK).await;
            if let Server::Own(dynamodb) = &self.dynamodb
                && dynamodb.has_ended()
            {
                return Error::Ended { what: "the DynamoDB emulator", why: None };
            }
            if let Server::Own(sqs) = &self.sqs
                && sqs.has_ended()
            {
                return Error::Ended { what: "the SQS emulator", why: None };
            }
            let RedisSide::Own(redis) = &self.redis else { continue };
            let lost = |why| Error::Ended { what: "Redis", why: Some(Box::new(why)) };
            match redis.exited() {
                Ok(None) => {}
                Ok(Some(exited)) => {
                    if let Err(why) = restart(redis, exited, &mut restarts).await {
                        return lost(why);
                    }
                    revived().await;
                }
                Err(why) => return lost(why),
            }
        }
    }
}

/// Starts Redis again, unless that was done too often.
async fn restart(redis: &RedisServer, exited: Error, restarts: &mut Restarts) -> Result<(), Error> {
    if !restarts.may_begin(Instant::now()) {
        let seconds = RESTARTS_WITHIN.as_secs();
        return Err(Error::KeepsEnding { times: RESTARTS_MAX, seconds, last: Box::new(exited) });
    }
    tracing::error!(%exited, "Redis has ended by itself; it is started again");
    redis.revive().await?;
    tracing::info!(url = redis.url(), "Redis runs again");
    Ok(())
}

/// When Redis was started again.
#[derive(Debug, Default)]
struct Restarts(VecDeque<Instant>);

impl Restarts {
    /// True if it may be started once more at this time, which is then counted.
    fn may_begin(&mut self, now: Instant) -> bool {
        while self.0.front().is_some_and(|at| now.duration_since(*at) >= RESTARTS_WITHIN) {
            self.0.pop_front();
        }
        let may = self.0.len() < RESTARTS_MAX;
        if may {
            self.0.push_back(now);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use shared::redis::Topology;

    use super::super::{External, RedisOptions, Signal, signal};
    use super::*;

    const HANGS: Duration = Duration::from_secs(30);

    fn elsewhere() -> External {
        External {
            redis: Some(Topology::Single("redis://127.0.0.1:1".to_owned())),
            dynamodb_url: Some("http://127.0.0.1:1".to_owned()),
            sqs_url: Some("http://127.0.0.1:1".to_owned()),
        }
    }

    fn kill(redis: &RedisServer) {
        let pid = std::fs::read_to_string(redis.dir().join("server.pid")).unwrap();
        signal(pid.trim(), Signal::Kill).unwrap();
    }

    #[test]
    fn what_ends_again_and_again_is_given_up() {
        let mut restarts = Restarts::default();
        let start = Instant::now();
        for _ in 0..RESTARTS_MAX {
            assert!(restarts.may_begin(start));
        }
        assert!(!restarts.may_begin(start + RESTARTS_WITHIN / 2));
        assert!(restarts.may_begin(start + RESTARTS_WITHIN));
    }

    #[tokio::test]
    async fn a_redis_that_dies_is_started_again_where_it_was_with_what_it_knew() {
        let dir = tempfile::tempdir().unwrap();
        let external = External { redis: None, ..elsewhere() };
        let stack = Stack::start(Some(dir.path()), &external).await.unwrap();
        let redis = stack.redis().unwrap();
        let mut before = redis.connect().await.unwrap();
        redis::cmd("SET").arg("seat").arg("taken").query_async::<()>(&mut before).await.unwrap();
        let revived = Cell::new(0);
        let noticed = async {
            for times in 1..=2 {
                kill(redis);
                while revived.get() < times {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let mut after = redis.connect().await.unwrap();
                let kept: String =
                    redis::cmd("GET").arg("seat").query_async(&mut after).await.unwrap();
                assert_eq!(kept, "taken");
            }
        };
        let watched = async {
            tokio::select! {
                lost = stack.watch(async || revived.set(revived.get() + 1)) => panic!("{lost}"),
                () = noticed => {}
            }
        };
        tokio::time::timeout(HANGS, watched).await.unwrap();
        stack.stop().await.unwrap();
    }

    #[tokio::test]
    async fn an_emulator_that_dies_is_the_end_and_is_named() {
        let external = External { dynamodb_url: None, ..elsewhere() };
        let stack = Stack::start(None, &external).await.unwrap();
        let Server::Own(dynamodb) = &stack.dynamodb else { panic!("it is ours: {stack:?}") };
        dynamodb.fail();
        let lost = tokio::time::timeout(HANGS, stack.watch(async || {})).await.unwrap();
        assert_eq!(lost.to_string(), "the DynamoDB emulator has ended by itself");
    }

    #[tokio::test]
    async fn a_redis_that_was_stopped_on_purpose_stays_stopped() {
        let mut redis = RedisServer::start(RedisOptions::default()).await.unwrap();
        assert!(redis.exited().unwrap().is_none());
        redis.kill().unwrap();
        assert!(redis.exited().unwrap().is_none());
    }
}
