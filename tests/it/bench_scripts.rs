//! `onsale bench scripts`: that it measures every script, and that what it compares with sells.

use std::collections::BTreeSet;

use bench::scripts::baselines::{self, Baseline};
use bench::scripts::halls::Tier;
use bench::scripts::{self, FROM_THE_FRONT, Options, Row, Subject};
use local::servers::{Flavour, RedisOptions, RedisServer};
use shared::redis::Scripts;

fn options() -> Options {
    Options {
        server: Flavour::Valkey,
        seats: vec![400],
        train: true,
        fills: vec![0, 60],
        rounds: 2,
        calls: 6,
        seed: 7,
        throughput: vec![scripts::Load { connections: 3, depth: 2 }],
        subject: Subject::Scripts,
    }
}

#[tokio::test]
async fn every_script_is_measured_in_every_state() {
    for server in [Flavour::Valkey, Flavour::Redis] {
        let report = scripts::run(&Options { server, ..options() }).await.unwrap();
        for (legs, filled) in [(1, 0.0), (1, 60.0), (15, 0.0), (15, 60.0)] {
            let rows = report.rows.iter().filter(|row| {
                // One order is there from the start, and the last party may be a large one.
                row.legs == legs && (filled - 1.0..filled + 3.0).contains(&row.filled_percent)
            });
            let measured: BTreeSet<&str> = rows.map(|row| row.script).collect();
            let mut scripts: BTreeSet<&str> =
                Scripts::standard().all().map(|script| script.contract().script).into();
            // It knows nothing of a sale: a get and a delete.
            scripts.remove("unlock");
            if legs == 1 {
                scripts.insert("baseline");
            }
            assert_eq!(measured, scripts, "{legs} legs, filled {filled}");
        }
        for row in &report.rows {
            assert!(row.figure.calls > 0 && row.figure.commands >= 1.0, "{row:?}");
            // What is asked for at the start is there; only what is taken is refused.
            let is_refused = row.asks.ends_with("taken");
            let is_empty = row.filled_percent < 1.0 && !row.asks.starts_with("a pattern");
            if is_empty && !is_refused {
                assert_eq!(row.figure.done as u64, row.figure.calls, "{row:?}");
            } else if is_refused {
                assert_eq!(row.figure.done, 0, "{row:?}");
            }
            assert_eq!(row.times_hold.is_some(), row.script == "baseline", "{row:?}");
        }
        assert!(report.noop.calls > 0 && report.noop.commands == 0.0, "{:?}", report.noop);
        let throughput = report.throughput.first().unwrap();
        assert!(throughput.ratio > 0.0, "{throughput:?}");
        assert!(report.tables().contains("JSON seats, best"), "{}", report.tables());
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert!(json["rows"][0]["best_us"].is_number(), "{json}");
    }
}

#[tokio::test]
async fn a_hold_is_cut_off_after_each_of_its_parts() {
    let report = scripts::run(&Options { subject: Subject::Parts, ..options() }).await.unwrap();
    for (legs, hall) in [(1, "theatre of 50000"), (15, "train of 1200, 15 legs")] {
        let parts: Vec<_> = report.parts.iter().filter(|part| part.hall == hall).collect();
        let commands: Vec<f64> = parts.iter().map(|part| part.figure.commands).collect();
        assert_eq!(commands[..7], [0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 3.0], "{legs} legs");
        // Where seats are taken, a search goes on to the next row, and remembers it.
        let written: Vec<f64> = commands[7..].iter().map(|commands| commands.floor()).collect();
        assert_eq!(written, [4.0, 5.0, 6.0], "{legs} legs");
        assert!(parts.iter().all(|part| part.of_noop.is_some() == (legs == 1)), "{parts:?}");
    }
    assert!(report.tables().contains("BITFIELD: what is taken"), "{}", report.tables());
}

#[tokio::test]
async fn what_a_hold_does_does_not_grow_with_the_seats() {
    let options =
        Options { subject: Subject::Growth, seats: vec![50_000], fills: vec![0, 90], ..options() };
    let report = scripts::run(&options).await.unwrap();
    // A walk over all that is taken is longer in a larger hall.
    let is_walk = |row: &&Row| row.asks == FROM_THE_FRONT;
    assert_eq!(report.rows.iter().filter(is_walk).count() * 2, report.rows.len());
    let rows = || report.rows.iter().filter(|row| !is_walk(row));
    let concerts = rows().filter(|row| row.legs == 1);
    let commands: Vec<f64> = concerts.map(|row| row.figure.commands).collect();
    assert!(commands.len() > 10, "{commands:?}");
    assert!(commands.iter().all(|commands| *commands < 12.0), "{commands:?}");
    // Nor with the legs.
    for row in rows() {
        assert!(row.figure.commands < 14.0, "{row:?}");
        assert_eq!(row.figure.done as u64, row.figure.calls, "{row:?}");
    }
}

#[tokio::test]
async fn the_baselines_sell_every_seat_once() {
    for baseline in Baseline::ALL {
        let server = RedisServer::start(RedisOptions::default()).await.unwrap();
        let mut connection = server.connect().await.unwrap();
        let mut teach = redis::cmd("SCRIPT");
        teach.arg("LOAD").arg(baseline.source());
        let _: String = teach.query_async(&mut connection).await.unwrap();
        // Three rows of eight; a single seat of the second is left over, the third is sold.
        let tier = Tier::seated("a", 24, &[0]).unwrap();
        baselines::write(&mut connection, &tier, &[0, 0b0111_1111, 0xff]).await.unwrap();
        let mut sold = BTreeSet::new();
        loop {
            let call = baseline.call("1980000000001");
            let seats: Vec<String> = call.query_async(&mut connection).await.unwrap();
            let mut places = seats.iter().map(|name| {
                let (row, place) = name.split_once('-').unwrap();
                (row.parse::<u32>().unwrap(), place.parse::<u32>().unwrap())
            });
            let (Some(first), Some(second)) = (places.next(), places.next()) else { break };
            if baseline == Baseline::Best {
                assert_eq!((first.0, first.1 + 1), second, "they are no neighbours");
            }
            assert!(sold.insert(first) && sold.insert(second), "sold twice: {seats:?}");
        }
        // Nine were free: the last one has no companion.
        assert_eq!(sold.len(), 8, "{baseline:?}: {sold:?}");
        let was_free = |(row, place): &(u32, u32)| *row == 0 || (*row, *place) == (1, 0);
        assert!(sold.iter().all(was_free), "{sold:?}");
    }
}
