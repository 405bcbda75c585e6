//! The largest loads: how many arguments a request has, how long a script takes, and what is left when
//! one is cut off.

use engine::domain::basics::ids::{
    Epoch, InventoryId, Leg, Legs, RequestFingerprint, SaleId, Seat, TierId, UserId,
};
use engine::domain::basics::tickets::Tickets;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::{
    Freed, HeldLine, HoldRecord, Inventory, Load, LoadReply, PartLimit, Terms, TierGrid,
};
use engine::domain::sale::SaleState;
use engine::ports::{MAX_REQUEST_ARGUMENTS, Seats as _, StoreError};
use local::servers::Flavour;
use redis::Value;
use redis::aio::MultiplexedConnection;
use shared::redis::RedisSeats;

use super::{connect, server};

/// Tiers of the largest sale, and seats of each: 60,032 seats.
const TIERS: usize = 64;
const SEATS_A_TIER: u32 = 938;
/// Orders that hold seats, and buyers.
const HOLDS: u32 = 20_000;
const BUYERS: u32 = 30_000;
/// Number of times that each sale is loaded in place of one that is as large.
const ROUNDS: usize = 4;
/// Number of times that the control is run.
const CONTROLS: usize = 30;
/// A script that does the least that can be done with as many arguments as a part of a load has: it writes
/// each pair into a hash, command by command.
const CONTROL: &str =
    "for i = 1, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end";
/// The longest that a script may take, as a multiple of the control's time on the same server.
const MAX_TIMES_CONTROL: i64 = 60;

fn tier(index: usize) -> TierId {
    TierId::new(format!("tier-{index}")).unwrap()
}

/// Sixty thousand seats, of which every third is held or sold.
fn large(legs: u16) -> Load {
    let now = Timestamp::from_ms(1_795_000_000_000);
    let terms = Terms {
        state: SaleState::Open,
        opens_at: now,
        closes_at: now.plus_seconds(3600),
        limit: Tickets::new(4),
        leg_count: legs,
    };
    let bytes = SEATS_A_TIER.div_ceil(8) as usize;
    let grid = |index: usize| TierGrid {
        tier: tier(index),
        row_bytes: bytes as u32,
        middles: Vec::new(),
        taken: vec![vec![0x92; bytes]; usize::from(legs)],
        sold: vec![vec![0x80; bytes]; usize::from(legs)],
        freed: Freed::default(),
    };
    let user = |index: u32| UserId::new(format!("auth0|{index:024}")).unwrap();
    let hold = |index: u32| {
        let place = Seat(3 + index / TIERS as u32 * 3 % (SEATS_A_TIER - 3));
        let record = HoldRecord {
            user: user(index),
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            deadline: now.plus_seconds(i64::from(index % 900)),
            lines: vec![HeldLine {
                tier: tier(index as usize % TIERS),
                legs: Legs::new(0, legs).unwrap(),
                seats: vec![place],
            }],
        };
        ((123_456_789_012_345_670 + u64::from(index)).to_string().parse().unwrap(), record)
    };
    Load {
        inventory: InventoryId::whole(SaleId::new("large").unwrap()),
        terms,
        expected: None,
        epoch: Epoch::new("e1").unwrap(),
        tiers: (0..TIERS).map(grid).collect(),
        holds: (0..HOLDS).map(hold).collect(),
        bought: (0..BUYERS).map(|index| (user(index), Tickets::new(2))).collect(),
    }
}

/// Has the server remember every command from here on, and forget those before.
async fn watch(connection: &mut MultiplexedConnection) {
    for (name, value) in [("slowlog-log-slower-than", "0"), ("slowlog-max-len", "100")] {
        let mut set = redis::cmd("CONFIG");
        let () = set.arg("SET").arg(name).arg(value).query_async(connection).await.unwrap();
    }
    let () = redis::cmd("SLOWLOG").arg("RESET").query_async(connection).await.unwrap();
}

/// The longest script since then, in microseconds by the clock of the server, and how it was called.
async fn longest(connection: &mut MultiplexedConnection) -> (i64, String) {
    let entries: Vec<Vec<Value>> =
        redis::cmd("SLOWLOG").arg("GET").arg(-1).query_async(connection).await.unwrap();
    let read = |mut entry: Vec<Value>| {
        entry.truncate(4);
        // Arguments are bitmaps, too.
        let (_, _, us, words): (i64, i64, i64, Vec<Vec<u8>>) =
            redis::from_redis_value(Value::Array(entry)).unwrap();
        let word = words.first().map(|word| String::from_utf8_lossy(word).into_owned());
        (us, word.unwrap_or_default())
    };
    let scripts = entries.into_iter().map(read).filter(|(_, word)| word.starts_with("EVAL"));
    scripts.max().expect("a script ran")
}

/// The time of the control, in microseconds: that of its quickest run, the least disturbed.
async fn control_us(connection: &mut MultiplexedConnection) -> i64 {
    let mut control = redis::cmd("EVAL");
    control.arg(CONTROL).arg(1).arg("control");
    for argument in 0..PartLimit::STANDARD.arguments {
        control.arg(format!("{argument:032}"));
    }
    let mut quickest = i64::MAX;
    for _ in 0..CONTROLS {
        watch(connection).await;
        let () = control.query_async(connection).await.unwrap();
        quickest = quickest.min(longest(connection).await.0);
    }
    let () = redis::cmd("DEL").arg("control").query_async(connection).await.unwrap();
    quickest
}

#[tokio::test]
async fn the_largest_load_keeps_the_limits_of_the_cache() {
    let server = server(Flavour::Valkey).await;
    let seats = RedisSeats::new(connect(&server));
    let mut watching = server.connect().await.unwrap();
    let control_us = control_us(&mut watching).await;
    for legs in [1, 15, 64] {
        let mut load = large(legs);
        // As one part, which is how a load once was: it is refused, and nothing is written.
        let at_once = seats.load_part(&load.clone().whole()).await;
        let Err(StoreError::Contract(says)) = at_once else { panic!("{at_once:?}") };
        println!("{legs} legs, at once: {says}");
        assert!(says.contains(&format!("the cache takes {MAX_REQUEST_ARGUMENTS}")), "{says}");
        // The clock of the server counts what other processes take of its processor: of each part the
        // quickest of some rounds. The first load is no round: the others remove a sale that is as large.
        let mut quickest: Vec<(i64, String)> = Vec::new();
        for round in 0..=ROUNDS {
            load.expected = seats.epoch(&load.inventory).await.unwrap();
            load.epoch = Epoch::new(format!("legs-{legs}-{round}")).unwrap();
            let parts = load.clone().into_parts(PartLimit::STANDARD);
            quickest.resize(parts.len(), (i64::MAX, String::new()));
            for (part, quickest) in parts.iter().zip(&mut quickest) {
                watch(&mut watching).await;
                let reply = seats.load_part(part).await.unwrap();
                let expected = if part.is_last { LoadReply::Loaded } else { LoadReply::Staged };
                assert_eq!(reply, expected, "part {} of {}", part.place, parts.len());
                if round > 0 {
                    *quickest = longest(&mut watching).await.min(std::mem::take(quickest));
                }
            }
        }
        let (us, word) = quickest.iter().max().unwrap();
        println!(
            "{legs} legs: {} parts, the longest script {us} µs ({word}), the control {control_us} µs",
            quickest.len()
        );
        assert!(*us <= MAX_TIMES_CONTROL * control_us, "{us} µs, the control {control_us} µs");
        assert_eq!(seats.holds(&load.inventory).await.unwrap().len(), load.holds.len());
    }
}

/// What a load and its holds are in Redis, read back.
async fn is_whole(seats: &RedisSeats, load: &Load) -> bool {
    let mut holds = seats.holds(&load.inventory).await.unwrap();
    holds.sort_by_key(|(order, _)| *order);
    let mut is_whole = holds.into_iter().eq(load.holds.clone());
    for grid in &load.tiers {
        let read = seats.grid(&load.inventory, &grid.tier, grid.taken.len() as u16).await;
        is_whole &= read.as_ref() == Ok(grid);
    }
    is_whole
}

#[tokio::test]
async fn a_load_that_is_cut_off_is_gone_on_with_or_begun_again() {
    let server = server(Flavour::Valkey).await;
    let seats = RedisSeats::new(connect(&server));
    let load = large(2);
    let parts = load.clone().into_parts(PartLimit::STANDARD);
    let half = parts.len() / 2;
    for part in &parts[..half] {
        assert_eq!(seats.load_part(part).await, Ok(LoadReply::Staged));
    }
    assert_eq!(seats.epoch(&load.inventory).await, Ok(None), "it has no name yet");
    assert_eq!(seats.count_holds(&load.inventory).await, Ok(0));
    // The same loader begins again, and finds the first half there.
    for part in &parts {
        let expected = if part.is_last { LoadReply::Loaded } else { LoadReply::Staged };
        assert_eq!(seats.load_part(part).await, Ok(expected), "part {}", part.place);
    }
    assert!(is_whole(&seats, &load).await);
    // Another loader takes over a load that was cut off, of tiers that the sale no longer has.
    let next = Load {
        expected: Some(load.epoch.clone()),
        epoch: Epoch::new("e2").unwrap(),
        tiers: large(64).tiers,
        ..load.clone()
    };
    for part in &next.clone().into_parts(PartLimit::STANDARD)[..half] {
        assert_eq!(seats.load_part(part).await, Ok(LoadReply::Staged));
    }
    let mut last = Load { expected: None, epoch: Epoch::new("e3").unwrap(), ..load.clone() };
    last.tiers.truncate(1);
    assert_eq!(seats.load(&last).await, Ok(LoadReply::Loaded));
    assert!(is_whole(&seats, &last).await);
    let mut connection = server.connect().await.unwrap();
    let left: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    // The sale, what is due, and of its one tier the hash and two bitmaps.
    assert_eq!(left.len(), 2 + 1 + 2, "{left:?}");
    let mut model = Inventory::default();
    model.load(&last);
    assert!(model.tiers[&tier(0)].is_taken(Leg(1), Seat(0)));
}
