//! A Redis that refuses for a while what a pipeline asks: its memory is full, its replicas are gone, a
//! script keeps it busy. Buyers are asked to try again, and are admitted once it is over.

use engine::ports::StoreError;
use redis::Cmd;
use redis::aio::MultiplexedConnection;
use serde_json::json;
use shared::redis::{Bounds, Connection, Topology};

use super::{Fixture, Got, Sender, hall};
use crate::backends;

async fn tell(redis: &mut MultiplexedConnection, command: &[&str]) {
    let mut told = redis::cmd(command[0]);
    told.arg(&command[1..]);
    let () = told.query_async(redis).await.unwrap();
}

/// The code of what the server answers to a command; empty if it is no error.
async fn code_of(redis: &mut MultiplexedConnection, command: &Cmd) -> String {
    match command.query_async::<redis::Value>(redis).await {
        Ok(_) => String::new(),
        Err(error) => error.code().unwrap_or("?").to_owned(),
    }
}

async fn ask(fixture: &Fixture, buyer: &str) -> Got {
    let body = json!({ "tickets": 1 });
    fixture.json(Sender::Buyer(buyer), "POST", "/sales/hall/admissions", &body).await
}

/// An admission counts its buyer's requests in a pipeline: as long as Redis refuses, each is told when to
/// come again.
async fn is_told_to_try_again(fixture: &Fixture, during: &str) {
    for buyer in ["alice", "bob"] {
        let got = ask(fixture, buyer).await;
        assert_ne!(got.body["type"], "/problems/internal", "{during}: {:#}", got.body);
        let refused = got.problem(503, "unavailable");
        assert!(refused["retry_after_seconds"].as_u64() > Some(0), "{during}: {refused:#}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_memory_and_lost_replicas_refuse_an_admission_for_as_long_as_they_last() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let mut redis = backends::redis(&fixture._stack.endpoints().redis_url).await;
    ask(&fixture, "first").await.ok(201);
    for (setting, broken, whole) in [("maxmemory", "1", "0"), ("min-replicas-to-write", "1", "0")] {
        tell(&mut redis, &["CONFIG", "SET", setting, broken]).await;
        is_told_to_try_again(&fixture, setting).await;
        tell(&mut redis, &["CONFIG", "SET", setting, whole]).await;
        ask(&fixture, &format!("after-{setting}")).await.ok(201);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_script_refuses_an_admission_until_it_ends() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let url = fixture._stack.endpoints().redis_url.clone();
    let mut redis = backends::redis(&url).await;
    ask(&fixture, "first").await.ok(201);
    tell(&mut redis, &["CONFIG", "SET", "busy-reply-threshold", "20"]).await;
    let mut runs_it = backends::redis(&url).await;
    let endless = tokio::spawn(async move {
        let script = redis::cmd("EVAL").arg("while true do end").arg(0).clone();
        script.query_async::<redis::Value>(&mut runs_it).await
    });
    let get = redis::cmd("GET").arg("any").clone();
    while code_of(&mut redis, &get).await != "BUSY" {
        tokio::task::yield_now().await;
    }
    is_told_to_try_again(&fixture, "a busy script").await;
    tell(&mut redis, &["SCRIPT", "KILL"]).await;
    // Killed: it ends with an error of its own.
    endless.await.unwrap().unwrap_err();
    ask(&fixture, "after").await.ok(201);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_in_a_transaction_is_a_refusal_and_a_mistake_beside_it_stays_one() {
    let fixture = Fixture::start().await;
    let url = fixture._stack.endpoints().redis_url.clone();
    let mut redis = backends::redis(&url).await;
    let connection = Connection::new(&Topology::Single(url), Bounds::default()).unwrap();
    tell(&mut redis, &["SET", "text", "of no number"]).await;
    tell(&mut redis, &["CONFIG", "SET", "maxmemory", "1"]).await;
    let sent = |is_atomic: bool, keys: &[&str]| {
        let mut pipeline = redis::pipe();
        if is_atomic {
            pipeline.atomic();
        }
        for key in keys {
            pipeline.cmd("INCR").arg(key);
        }
        pipeline
    };
    for is_atomic in [false, true] {
        let refused = connection.pipeline::<Vec<u64>>(&sent(is_atomic, &["a", "b"])).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{is_atomic}: {refused:?}");
    }
    // Not refused, and never right.
    let mut mixed = sent(false, &["a"]);
    mixed.cmd("HGETALL").arg("text");
    let broken = connection.pipeline::<Vec<redis::Value>>(&mixed).await;
    assert!(matches!(broken, Err(StoreError::Contract(_))), "{broken:?}");
    tell(&mut redis, &["CONFIG", "SET", "maxmemory", "0"]).await;
    for is_atomic in [false, true] {
        let counted = connection.pipeline::<Vec<u64>>(&sent(is_atomic, &["a", "b"])).await;
        let times = if is_atomic { 2 } else { 1 };
        assert_eq!(counted, Ok(vec![times, times]), "nothing was counted before");
    }
}
