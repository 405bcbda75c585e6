//! Tokens: counts of the gate in Redis, and the snapshots of them in DynamoDB.

use super::NOW;
use super::corruption::{Change, Corruptions, Snapshot, named, redis, text, with};

/// Every way in which the tokens of a gate can be wrong, while seven tickets of `g1` are ordered, five of them
/// within a minute.
pub(super) fn wrong_tokens(snapshot: &Snapshot) -> Corruptions {
    let admitted = |used: [i64; 4]| {
        let shard = |(shard, used): (usize, i64)| {
            let key = format!("{{g1/gate/{shard}}}:gate");
            redis(["HSET", &key, "issued", "50", "budget", &(50 - used).to_string()])
        };
        Change::All((0..4).zip(used).map(shard).collect())
    };
    let since = NOW.plus_seconds(-10);
    vec![
        (
            admitted([0; 4]),
            vec![format!(
                "tokens g1: the sale has admitted 0 tickets since {since}, and 7 are ordered: 2 more than Redis may have lost (5)"
            )],
        ),
        (admitted([0, 1, 1, 0]), vec![]),
        (
            redis(["HSET", "{g1/gate/3}:gate", "issued", "4", "budget", "5"]),
            named(["tokens g1: the sale has 5 tokens left in shard 3 of its gate, of 4"]),
        ),
        (
            redis(["HSET", "{g1/gate/0}:gate", "since_ms", "soon"]),
            named(["records g1: Redis key {g1/gate/0}:gate has tokens that cannot be read"]),
        ),
        (
            Change::Put(
                "sales",
                with(
                    snapshot.item("sales", Some("g1#tokens"), "0030000000"),
                    [("sk", text("0030000001"))],
                ),
            ),
            named(["records g1: item g1#tokens/0030000001 of table sales is not under its minute"]),
        ),
    ]
}
