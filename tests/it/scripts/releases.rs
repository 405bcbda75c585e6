//! Two releases at once, as during a deployment: their scripts on one server, and a state that an
//! earlier one wrote.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use engine::domain::basics::ids::{Legs, Seat};
use engine::domain::inventory::choice::Choice;
use engine::domain::inventory::{
    Hold, HoldRecord, HoldReply, LoadReply, Release, ReleaseReply, Sell, SellReply,
};
use engine::ports::Seats as _;
use local::servers::{Flavour, RedisServer};
use serde_json::{Value, json};
use shared::redis::keys::InventoryKeys;
use shared::redis::{RedisSeats, Scripts, hold_record};

use super::calls::{best, epoch, hold, inventory, load, record_of, seats_of, tier};
use super::{connect, server};

/// What this release writes, with what it has answered.
const STATE: &str = include_str!("state.json");
/// What a release wrote that knew of no middles of rows.
const STATE_WITHOUT_MIDDLES: &str = include_str!("state_without_middles.json");
/// What a release wrote that had a key for each leg of a tier.
const STATE_WITH_A_KEY_A_LEG: &str = include_str!("state_with_a_key_a_leg.json");
/// The orders whose hold stays, is sold and is given back.
const HELD: u64 = 1;
const SOLD: u64 = 2;
const ENDED: u64 = 3;

fn both() -> Legs {
    Legs::new(0, 2).unwrap()
}

/// Scripts of other texts, and so of other hashes, that do the same.
fn another_release() -> Arc<Scripts> {
    let mut scripts = Scripts::clone(&Scripts::standard());
    let named = [
        (&mut scripts.load, "load"),
        (&mut scripts.hold, "hold"),
        (&mut scripts.sell, "sell"),
        (&mut scripts.release, "release"),
    ];
    for (script, name) in named {
        let other =
            script.replaced(&format!("--- {name}.lua:"), &format!("--- {name}.lua, changed:"));
        *script = other.expect("a script begins with its name");
    }
    Arc::new(scripts)
}

fn sell(order: &Hold, record: HoldRecord) -> Sell {
    let (order, user) = (order.order, order.user.clone());
    Sell { inventory: inventory(), epoch: epoch(), order, user, lines: record.lines, freed: None }
}

#[tokio::test]
async fn two_releases_work_side_by_side() {
    let server = server(Flavour::Valkey).await;
    let one = RedisSeats::new(connect(&server));
    let other = RedisSeats::with_scripts(connect(&server), another_release());
    one.load(&load(2)).await.unwrap();
    for round in 0..4 {
        let (first, second) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let order = hold(round + 1, both(), best(2));
        let held = first.hold(&order).await.unwrap();
        assert_eq!(second.hold(&order).await.unwrap(), held, "each repeats the other's hold");
        let record = record_of(held);
        let sold = sell(&order, record.clone());
        assert_eq!(second.sell(&sold).await, Ok(SellReply::Sold));
        assert_eq!(first.sell(&sold).await, Ok(SellReply::Sold));
        let release = Release { inventory: inventory(), order: order.order, record };
        assert_eq!(first.release(&release).await, Ok(ReleaseReply::NotHeld));
    }
    let mut redis = server.connect().await.unwrap();
    let stats: String = redis::cmd("INFO").arg("memory").query_async(&mut redis).await.unwrap();
    // Both texts are known there: load of one, and hold, sell and release of either.
    assert!(stats.contains("number_of_cached_scripts:7"), "{stats}");
}

/// `hold.lua` of a release that knew of no middles: its best seats are those at the left.
const HOLD_WITHOUT_MIDDLES: &str = include_str!("hold_without_middles.lua");

/// Holds the best two seats by that script; `None` if no two neighbours are left.
async fn held_without_middles(server: &RedisServer, order: u64) -> Option<Vec<u32>> {
    let sale = inventory();
    let keys = InventoryKeys(&sale);
    let mut call = redis::cmd("EVAL");
    call.arg(HOLD_WITHOUT_MIDDLES).arg(4).arg(keys.sale()).arg(keys.due());
    call.arg(keys.tier(&tier())).arg(keys.taken(&tier()));
    let Hold { epoch, user, fingerprint, now, deadline, .. } = hold(order, Legs::ONE, best(2));
    call.arg(epoch.as_str()).arg(order).arg(user.as_str()).arg(fingerprint.as_str());
    call.arg(now.ms()).arg(deadline.ms()).arg(0);
    call.arg("a").arg(0).arg(1).arg("best").arg(2).arg("2:0:1").arg("required");
    let mut redis = server.connect().await.unwrap();
    let reply: Vec<String> = call.query_async(&mut redis).await.unwrap();
    match reply.as_slice() {
        [tag, record, _] if tag == "held" => {
            let record = hold_record::from_text(record).unwrap();
            Some(record.lines[0].seats.iter().map(|seat| seat.0).collect())
        }
        [tag, _] if ["no_adjacent", "sold_out"].contains(&tag.as_str()) => None,
        other => panic!("{other:?}"),
    }
}

fn is_refused(reply: &HoldReply) -> bool {
    *reply == HoldReply::NoAdjacent(tier()) || *reply == HoldReply::SoldOut(tier())
}

/// Of a sale that either release has loaded, both sell every seat once, and what one gives back the other sells.
#[tokio::test]
async fn a_release_without_middles_sells_beside_this_one() {
    let rows_differ = vec![7, 5, 0, 14];
    for middles in [Vec::new(), vec![7; 4], rows_differ] {
        let server = server(Flavour::Valkey).await;
        let seats = RedisSeats::new(connect(&server));
        let mut sale = load(1);
        sale.tiers[0].middles = middles.clone();
        assert_eq!(seats.load(&sale).await, Ok(LoadReply::Loaded));
        let mut held: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        let mut order = 0;
        loop {
            order += 1;
            let got = if order % 2 == 0 {
                held_without_middles(&server, order).await
            } else {
                let reply = seats.hold(&hold(order, Legs::ONE, best(2))).await.unwrap();
                Some(reply).filter(|reply| !is_refused(reply)).map(|reply| seats_of(&reply))
            };
            let Some(got) = got else { break };
            held.insert(order, got);
            if order % 5 == 0 {
                // Of the first row, so that the searches of both go back to it.
                let ended = *held.iter().min_by_key(|(_, seats)| seats[0]).unwrap().0;
                let order = ended.to_string().parse().unwrap();
                let record = seats.record(&inventory(), order).await.unwrap().unwrap();
                let release = Release { inventory: inventory(), order, record };
                assert_eq!(seats.release(&release).await, Ok(ReleaseReply::Released));
                held.remove(&ended);
            }
        }
        // Neither finds two more; what is left sells one by one.
        let two = seats.hold(&hold(order + 1, Legs::ONE, best(2))).await.unwrap();
        assert!(is_refused(&two), "{two:?}");
        assert_eq!(held_without_middles(&server, order + 1).await, None);
        let mut all: Vec<u32> = held.into_values().flatten().collect();
        while all.len() < 32 {
            order += 1;
            let one = seats.hold(&hold(order, Legs::ONE, best(1))).await.unwrap();
            all.extend(seats_of(&one));
        }
        all.sort_unstable();
        assert_eq!(all, (0..32).collect::<Vec<_>>(), "{middles:?}");
        let next = hold(order + 1, Legs::ONE, best(1));
        assert_eq!(seats.hold(&next).await, Ok(HoldReply::SoldOut(tier())));
    }
}

/// Every key, by name: its type, and what it holds as text or in hexadecimal digits.
async fn state(server: &RedisServer) -> BTreeMap<String, Value> {
    let mut redis = server.connect().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut redis).await.unwrap();
    let mut state = BTreeMap::new();
    for key in keys {
        let kind: String = redis::cmd("TYPE").arg(&key).query_async(&mut redis).await.unwrap();
        let held = match kind.as_str() {
            "hash" => {
                let fields: BTreeMap<String, String> =
                    redis::cmd("HGETALL").arg(&key).query_async(&mut redis).await.unwrap();
                json!(fields)
            }
            "zset" => {
                let mut range = redis::cmd("ZRANGE");
                range.arg(&key).arg(0).arg(-1).arg("WITHSCORES");
                let members: Vec<(String, i64)> = range.query_async(&mut redis).await.unwrap();
                json!(members)
            }
            _ => {
                let bytes: Vec<u8> =
                    redis::cmd("GET").arg(&key).query_async(&mut redis).await.unwrap();
                json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }
        };
        state.insert(key, json!({ kind: held }));
    }
    state
}

/// Writes such a state.
async fn restore(server: &RedisServer, state: &Value) {
    let mut redis = server.connect().await.unwrap();
    for (key, held) in state.as_object().unwrap() {
        let (kind, held) = held.as_object().unwrap().iter().next().unwrap();
        let mut write = redis::cmd(match kind.as_str() {
            "hash" => "HSET",
            "zset" => "ZADD",
            _ => "SET",
        });
        write.arg(key);
        for (field, value) in held.as_object().into_iter().flatten() {
            write.arg(field).arg(value.as_str().unwrap());
        }
        for member in held.as_array().into_iter().flatten() {
            write.arg(member[1].as_i64().unwrap()).arg(member[0].as_str().unwrap());
        }
        if let Some(digits) = held.as_str() {
            let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
            write.arg((0..digits.len()).step_by(2).map(byte).collect::<Vec<u8>>());
        }
        let () = write.query_async(&mut redis).await.unwrap();
    }
}

/// A sale with a hold, a sold order, one that was given back, and a search that has left off.
async fn written_now(server: &RedisServer) -> Value {
    let seats = RedisSeats::new(connect(server));
    seats.load(&load(2)).await.unwrap();
    let mut records = BTreeMap::new();
    for order in [HELD, SOLD, ENDED] {
        let reply = seats.hold(&hold(order, both(), best(3))).await.unwrap();
        records.insert(order, record_of(reply));
    }
    let sold = sell(&hold(SOLD, both(), best(3)), records[&SOLD].clone());
    seats.sell(&sold).await.unwrap();
    let order = ENDED.to_string().parse().unwrap();
    let release = Release { inventory: inventory(), order, record: records[&ENDED].clone() };
    seats.release(&release).await.unwrap();
    let held: Vec<u32> = records[&HELD].lines[0].seats.iter().map(|seat| seat.0).collect();
    json!({ "held": held, "state": state(server).await })
}

/// Replays, refuses, sells and gives back what a state holds.
async fn goes_on(server: &RedisServer, written: &Value) {
    restore(server, &written["state"]).await;
    let seats = RedisSeats::new(connect(server));
    let again = hold(HELD, both(), best(3));
    let replayed = seats.hold(&again).await.unwrap();
    assert_eq!(json!(seats_of(&replayed)), written["held"], "the same hold again");
    let first = Choice::Seats(vec![Seat(seats_of(&replayed)[0])]);
    let taken = seats.hold(&hold(9, Legs::new(1, 2).unwrap(), first)).await.unwrap();
    assert!(matches!(taken, HoldReply::SeatTaken(..)), "{taken:?}");
    let record = record_of(replayed);
    assert_eq!(seats.sell(&sell(&again, record.clone())).await, Ok(SellReply::Sold));
    let order = again.order;
    let release = Release { inventory: inventory(), order, record };
    assert_eq!(seats.release(&release).await, Ok(ReleaseReply::NotHeld), "what is sold stays sold");
    // Two orders of three seats on two legs each are sold; the third's are free again.
    assert_eq!(seats.count_taken(&inventory(), &[tier()]).await, Ok(12));
    let next = hold(10, both(), best(3));
    let held = seats.hold(&next).await.unwrap();
    assert!(matches!(held, HoldReply::Held { .. }), "{held:?}");
    // Whatever was counted before: what is given back is counted from here on.
    let counted =
        || async { seats.grid(&inventory(), &tier(), 2).await.unwrap().freed.of([Seat(0)])[0] };
    let before = counted().await;
    let release = Release { inventory: inventory(), order: next.order, record: record_of(held) };
    assert_eq!(seats.release(&release).await, Ok(ReleaseReply::Released));
    assert_eq!(counted().await, before + 1);
}

/// The file is what this version writes. Whoever changes what is written keeps the old file under another name, and
/// has it go on here too, or be loaded again, as one that has a key for each leg.
#[tokio::test]
async fn a_state_that_an_earlier_release_wrote_goes_on() {
    let written: Value = serde_json::from_str(STATE).unwrap();
    let fresh = server(Flavour::Valkey).await;
    let now = written_now(&fresh).await;
    if now != written {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("state.json");
        std::fs::write(&place, serde_json::to_string_pretty(&now).unwrap()).unwrap();
        panic!("what is written has changed: {}", place.display());
    }
    goes_on(&server(Flavour::Valkey).await, &written).await;
    let earlier: Value = serde_json::from_str(STATE_WITHOUT_MIDDLES).unwrap();
    goes_on(&server(Flavour::Valkey).await, &earlier).await;
}

#[tokio::test]
async fn a_state_with_a_key_for_each_leg_is_loaded_again() {
    let server = server(Flavour::Valkey).await;
    let earlier: Value = serde_json::from_str(STATE_WITH_A_KEY_A_LEG).unwrap();
    restore(&server, &earlier["state"]).await;
    let seats = RedisSeats::new(connect(&server));
    assert_eq!(seats.epoch(&inventory()).await, Ok(None));
    assert_eq!(seats.hold(&hold(HELD, both(), best(3))).await, Ok(HoldReply::NotLoaded));
    // It is loaded again, as after a loss of Redis: what DynamoDB has of it, and nothing of what was here.
    assert_eq!(seats.load(&load(2)).await, Ok(LoadReply::Loaded));
    assert_eq!(seats.holds(&inventory()).await, Ok(Vec::new()));
    let keys: Vec<String> = state(&server).await.into_keys().collect();
    let of_a_leg = |key: &&String| key.ends_with(":0") || key.ends_with(":1");
    assert_eq!(keys.iter().filter(of_a_leg).count(), 4, "{keys:?}");
    assert_eq!(keys.len(), 4 + 4, "the sale, its tier, what is taken and sold: {keys:?}");
}

/// The control: with a hold in another form, it does not.
#[tokio::test]
#[should_panic(expected = "hold record is malformed")]
async fn a_state_of_another_form_is_noticed() {
    let mut written: Value = serde_json::from_str(STATE).unwrap();
    let record = &mut written["state"]["{show}:sale"]["hash"][HELD.to_string()];
    *record = json!(record.as_str().unwrap().replace('|', "/"));
    goes_on(&server(Flavour::Valkey).await, &written).await;
}
