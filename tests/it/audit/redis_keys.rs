//! I4: each key of a sale in Redis.

use super::LATER;
use super::corruption::{Change, Corruptions, named, redis};
use super::fixture::Numbers;

/// I4: each key of a sale in each way.
pub(super) fn wrong_redis(orders: &Numbers) -> Corruptions {
    let Numbers { pending, cancelled, .. } = orders;
    let bit = |key: &str, bit: u32, value: u32| {
        let (bit, value) = (bit.to_string(), value.to_string());
        redis(["SETBIT", key, &bit, &value])
    };
    let pending_text = pending.to_string();
    let deadline = LATER.plus_seconds(600).ms().to_string();
    let hold = |order: &str, deadline: &str, spot: &str, user: &str| {
        let record = format!("{deadline}|0123456789abcdef|1|ga,1,2,{spot}|{user}");
        redis(["HSET", "{g1}:sale", order, &record])
    };
    vec![
        (
            bit("{g1}:taken:a", 0, 0),
            named(["I4 g1: seat A1 of tier a on leg 0 is not taken in Redis but is claimed"]),
        ),
        (
            bit("{g1}:taken:ga", 4, 1),
            named(["I4 g1: seat ga-5 of tier ga on leg 0 is taken in Redis but nobody claims it"]),
        ),
        (
            bit("{g1}:taken:a", 8 + 3, 0),
            named(["I4 g1: seat A4 of tier a on leg 1 is not taken in Redis but is not for sale"]),
        ),
        (
            bit("{g1}:sold:a", 8 + 1, 0),
            named(["I4 g1: seat A2 of tier a on leg 1 is not sold in Redis but is paid"]),
        ),
        (
            bit("{g1}:sold:ga", 8, 1),
            named(["I4 g1: seat ga-1 of tier ga on leg 1 is sold in Redis but no paid order has it"]),
        ),
        (
            redis(["DEL", "{show}:taken:floor"]),
            [
                (3..8)
                    .map(|bit| {
                        format!("I4 show: bit {bit} (no seat) of tier floor on leg 0 is not taken in Redis but is not for sale")
                    })
                    .collect(),
                named([
                    "I4 show: seat floor-1 of tier floor on leg 0 is not taken in Redis but is claimed",
                    "I4 show: seat floor-2 of tier floor on leg 0 is not taken in Redis but is claimed",
                ]),
            ]
            .concat(),
        ),
        (
            redis(["HDEL", "{g1}:sale", &pending_text]),
            vec![
                format!("I4 g1: order {pending} has a deadline in Redis but no hold"),
                format!("I4 g1: order {pending} is pending but has no hold in Redis"),
            ],
        ),
        (
            Change::All(vec![
                hold(&cancelled.to_string(), &deadline, "0", "bob"),
                hold("7", &deadline, "0", "bob"),
                redis(["ZADD", "{g1}:due", &deadline, "7", &deadline, &cancelled.to_string()]),
            ]),
            vec![
                "I4 g1: order 7 has a hold in Redis but does not exist".to_owned(),
                format!("I4 g1: order {cancelled} has a hold in Redis but is cancelled"),
            ],
        ),
        (
            hold(&pending_text, &deadline, "1", "bob"),
            vec![format!("I4 g1: order {pending} holds other seats in Redis than it claims")],
        ),
        (
            hold(&pending_text, &deadline, "0", "eve"),
            vec![format!("I4 g1: order {pending} is held for buyer eve in Redis but is bob's")],
        ),
        (
            hold(&pending_text, "5", "0", "bob"),
            vec![
                format!("I4 g1: order {pending} has a deadline of {deadline} ms in Redis, not its hold's"),
                format!("I4 g1: order {pending} is held until 1970-01-01T00:00:00.005Z in Redis but may be paid until {}", LATER.plus_seconds(600)),
            ],
        ),
        (
            redis(["ZREM", "{g1}:due", &pending_text]),
            vec![format!("I4 g1: order {pending} has a hold in Redis but no deadline there")],
        ),
        (
            redis(["ZADD", "{g1}:due", "5", "7"]),
            named(["I4 g1: order 7 has a deadline in Redis but no hold"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "@alice", "1"]),
            named(["I4 g1: buyer alice has bought 1 in Redis but has a count of 2"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "@zoe", "1"]),
            named(["I4 g1: buyer zoe has bought 1 in Redis but has a count of 0"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "loaded", "e9"]),
            named(["I4 g1: the sale has epoch e9 in Redis but e1 in the catalogue"]),
        ),
        (
            redis(["HSET", "{g1}:sale", "limit", "9", "state", "paused"]),
            named([
                "I4 g1: the sale has limit 9 in Redis but 3 in the catalogue",
                "I4 g1: the sale has state paused in Redis but open in the catalogue",
            ]),
        ),
        (
            redis(["HSET", "{g1}:tier:a", "row_bytes", "2"]),
            named(["I4 g1: tier a has row_bytes 2 in Redis but 1 in the catalogue"]),
        ),
    ]
}
