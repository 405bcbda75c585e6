//! Availability: how often it reads the sale's slot.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::redis::availability::COPIES;

use shared::runtime::app::App;

use super::{Fixture, Sender, best, hall, request, send};

/// Processes that show a sale.
const PROCESSES: u32 = 40;
/// Time for which they show it as often as they can, at the least.
const SHOWN: Duration = Duration::from_secs(3);
/// Times that each of them has shown it before it stops, however slow the machine is.
const MIN_SHOWN: u64 = 10;

/// Time within which a process shows the sale, on a machine that is busy with other things too.
const DEADLINE: Duration = Duration::from_secs(60);

/// Asks until it is shown: not every process connects within a second on a busy machine.
async fn availability(process: &App) -> Value {
    let begin = Instant::now();
    loop {
        let request = request(Sender::Nobody, "GET", "/sales/hall/availability", json!({}), "");
        let answer = send(process, request).await;
        if answer.status != 503 || begin.elapsed() > DEADLINE {
            return answer.ok(200);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_many_processes_show_a_sale_its_slot_is_read_some_times_a_second() {
    let fixture = Fixture::start().await;
    let hall = hall();
    fixture.publish(&hall).await.ok(200);
    let processes = join_all((0..PROCESSES).map(|_| fixture.another_process())).await;
    let before = fixture.redis_calls("mget").await;
    let begin = Instant::now();
    let shown = join_all(processes.iter().map(|process| async {
        let mut shown: u64 = 0;
        while shown < MIN_SHOWN || begin.elapsed() < SHOWN {
            availability(process).await;
            shown += 1;
        }
        shown
    }));
    let shown: u64 = shown.await.into_iter().sum();
    // A reading is a command for each tier.
    let tiers = hall["tiers"].as_array().unwrap().len() as u64;
    let read = (fixture.redis_calls("mget").await - before) / tiers;
    let seconds = begin.elapsed().as_secs() + 1;
    println!(
        "{PROCESSES} processes showed it {shown} times in {seconds} s, and read it {read} times"
    );
    assert!(read >= 1 && read <= u64::from(COPIES) * (seconds + 1), "{read} readings");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_left_is_seen_by_every_process_soon_after() {
    let fixture = Fixture::start().await;
    fixture.publish(&hall()).await.ok(200);
    let processes = join_all((0..8).map(|_| fixture.another_process())).await;
    for process in &processes {
        assert_eq!(availability(process).await["tiers"][0]["available"], json!(16));
    }
    fixture.buy("alice", "hall", best("vip", 2)).await.ok(201);
    let bought = Instant::now();
    for process in &processes {
        let mut left: Value = availability(process).await;
        while left["tiers"][0]["available"] != json!(14) {
            assert!(bought.elapsed() < DEADLINE, "{left}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            left = availability(process).await;
        }
    }
    println!("eight processes saw it within {} ms", bought.elapsed().as_millis());
}
