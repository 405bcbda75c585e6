//! The tokens of a gate on real stores: added by hand once, counted, and kept a snapshot a minute.

use std::future::pending;

use aws_sdk_dynamodb::types::AttributeValue;
use engine::domain::admission::gate::tokens::{MAX_TOKENS_PER_ADDITION, TokenCounts};
use engine::domain::basics::ids::{AdditionId, SaleId, UserId};
use engine::domain::basics::time::Timestamp;
use engine::flows::admit::admit;
use engine::flows::cancel::cancel;
use engine::flows::reconcile::run;
use engine::flows::reserve::reserve;
use engine::flows::tokens::{Added, Bought, Refusal, add, keep, show};
use engine::ports::{Catalogue, Freshness, Ports};

use super::environment::{Fixture, NOW, epoch, sale_id};

/// Three quarters of a token for each of 640 places and three stops.
const OPENING: i64 = 1440;

async fn let_in(fixture: &Fixture, user: &str, tickets: u16, now: Timestamp) {
    let sale = fixture.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await;
    let user = UserId::new(user).unwrap();
    admit(&fixture.ports, &sale.unwrap().unwrap(), &user, tickets, now).await.unwrap();
}

async fn add_by_hand(fixture: &Fixture, id: &str, tokens: u32) -> Result<Added, Refusal> {
    add(&fixture.ports, &sale_id(), &AdditionId::new(id).unwrap(), tokens, NOW).await
}

/// What the gate counts: issued, by hand, used, since.
async fn counted(fixture: &Fixture) -> Option<(i64, i64, i64, Timestamp)> {
    let (counts, _) = show(&fixture.ports, &sale_id(), NOW).await.unwrap();
    let of = |counts: TokenCounts| (counts.issued, counts.by_hand, counts.used(), counts.since);
    counts.map(of)
}

#[tokio::test]
async fn tokens_are_added_once_for_each_id_whoever_has_come() {
    let fixture = Fixture::start().await;
    assert_eq!(counted(&fixture).await, None, "nobody has come");
    let_in(&fixture, "ann", 3, NOW.plus_seconds(-5)).await;
    assert_eq!(add_by_hand(&fixture, "more", 10).await, Ok(Added::Now));
    let expected = Some((OPENING + 10, 10, 3, NOW));
    assert_eq!(counted(&fixture).await, expected, "the other shards have begun now");
    // A lost answer: nothing is added again, and no other number of tokens under the id.
    assert_eq!(add_by_hand(&fixture, "more", 10).await, Ok(Added::Already));
    assert_eq!(add_by_hand(&fixture, "more", 11).await, Err(Refusal::Differs(10)));
    assert_eq!(add_by_hand(&fixture, "none", 0).await, Err(Refusal::OutOfRange));
    let too_many = add_by_hand(&fixture, "much", MAX_TOKENS_PER_ADDITION + 1).await;
    assert_eq!(too_many, Err(Refusal::OutOfRange));
    assert_eq!(counted(&fixture).await, expected);
    let (other, id) = (SaleId::new("other").unwrap(), AdditionId::new("more").unwrap());
    let unknown = add(&fixture.ports, &other, &id, 1, NOW).await;
    assert_eq!(unknown, Err(Refusal::NoSuchSale));

    // An attempt that was cut off after two of four shards: the other two get theirs.
    let mut redis = fixture.redis().await;
    for shard in [2, 3] {
        let key = format!("{{crash/gate/{shard}}}:gate");
        let () = redis::cmd("HDEL").arg(key).arg("+more").query_async(&mut redis).await.unwrap();
    }
    assert_eq!(add_by_hand(&fixture, "more", 10).await, Ok(Added::Now));
    assert_eq!(counted(&fixture).await, Some((OPENING + 14, 14, 3, NOW)));
}

#[tokio::test]
async fn a_gate_with_nothing_left_admits_what_was_added_and_no_more() {
    let fixture = Fixture::start().await;
    let_in(&fixture, "ann", 1, NOW).await;
    let mut redis = fixture.redis().await;
    for shard in 0..4 {
        let key = format!("{{crash/gate/{shard}}}:gate");
        let () = redis::cmd("HSET")
            .arg(key)
            .arg(&["budget", "0", "filled", "0"])
            .query_async(&mut redis)
            .await
            .unwrap();
    }
    // Everything is taken.
    let mut set = redis::cmd("SET");
    set.arg("{crash}:taken:hall").arg(vec![0xff_u8; 2 * 80]);
    let () = set.query_async(&mut redis).await.unwrap();
    let sale = fixture.ports.catalogue().sale(&sale_id(), Freshness::Fresh).await.unwrap().unwrap();
    let mut admitted = 0;
    for buyer in 0..400 {
        if buyer == 100 {
            assert_eq!(add_by_hand(&fixture, "more", 40).await, Ok(Added::Now));
        }
        let user = UserId::new(buyer.to_string()).unwrap();
        let now = NOW.plus_ms(10_000 + 100 * buyer);
        admitted += i64::from(admit(&fixture.ports, &sale, &user, 1, now).await.is_ok());
        assert!(buyer >= 100 || admitted == 0, "buyer {buyer}");
    }
    assert_eq!(admitted, 40);
}

#[tokio::test]
async fn a_snapshot_a_minute_says_what_is_used_and_what_is_bought() {
    let fixture = Fixture::start().await;
    for (buyer, tickets) in [("ann", 2), ("bob", 2), ("cat", 3)] {
        let_in(&fixture, buyer, tickets, NOW).await;
    }
    let ann = fixture.reservation("ann").await;
    let bob = fixture.reservation("bob").await;
    for order in [&ann, &bob] {
        reserve(&fixture.ports, order, NOW).await.unwrap();
    }
    cancel(&fixture.ports, &bob.user, bob.number, NOW).await.unwrap();

    let begun = NOW.plus_seconds(1);
    let bought = run(&fixture.ports, &epoch("e2"), begun).await.unwrap().bought;
    assert_eq!(bought, [Bought { sale: sale_id(), shards: 4, tickets: 2 }]);
    for (at, more) in [(begun, 0), (begun.plus_seconds(2), 1), (begun.plus_seconds(60), 5)] {
        if more > 0 {
            let_in(&fixture, "dan", more, at).await;
        }
        assert_eq!(keep(&fixture.ports, &bought, at, pending()).await, 1);
    }
    // One that comes late does not replace a later one of its minute.
    assert_eq!(keep(&fixture.ports, &bought, begun, pending()).await, 1);

    let (_, kept) = show(&fixture.ports, &sale_id(), NOW).await.unwrap();
    let rows: Vec<_> = kept.iter().map(|kept| (kept.at, kept.counts.used(), kept.bought)).collect();
    let expected = [(begun.plus_seconds(2), 8, 2), (begun.plus_seconds(60), 13, 2)];
    assert_eq!(rows, expected);
    assert_eq!(kept[1].used_per_minute(&kept[0]), Some(5 * 60 / 58));
    let (_, later) = show(&fixture.ports, &sale_id(), NOW.plus_seconds(60)).await.unwrap();
    assert_eq!(later, kept[1..]);

    let items = fixture.items().await;
    let snapshots = AttributeValue::S("crash#tokens".to_owned());
    let expires: Vec<&str> = items
        .values()
        .filter(|item| item.get("pk") == Some(&snapshots))
        .map(|item| item["expires_s"].as_n().unwrap().as_str())
        .collect();
    let days = |at: Timestamp| (at.ms() / 1000 + 7 * 86_400).to_string();
    assert_eq!(expires, expected.map(|(at, ..)| days(at)));

    // A gate that Redis has lost counts nothing: nothing is kept, and nothing is made up.
    fixture.lose_everything().await;
    assert_eq!(keep(&fixture.ports, &bought, NOW.plus_seconds(121), pending()).await, 0);
    assert_eq!(counted(&fixture).await, None);
    assert_eq!(show(&fixture.ports, &sale_id(), NOW).await.unwrap().1, kept);
    let_in(&fixture, "eve", 1, NOW.plus_seconds(130)).await;
    assert_eq!(counted(&fixture).await, Some((OPENING / 4, 0, 1, NOW.plus_seconds(130))));
}

/// A shard that an earlier release has filled counts nothing until it is given tokens again.
#[tokio::test]
async fn the_shard_of_an_earlier_release_begins_to_count_with_its_next_tokens() {
    let fixture = Fixture::start().await;
    let_in(&fixture, "ann", 4, NOW).await;
    let before = async |budget: &str, filled: &str| {
        let mut redis = fixture.redis().await;
        for shard in 0..4 {
            let key = format!("{{crash/gate/{shard}}}:gate");
            let () = redis::pipe()
                .cmd("DEL")
                .arg(&key)
                .ignore()
                .cmd("HSET")
                .arg(&key)
                .arg(&["budget", budget, "filled", filled, "left", "213"])
                .ignore()
                .query_async(&mut redis)
                .await
                .unwrap();
        }
    };
    before("300", "360").await;
    assert_eq!(counted(&fixture).await, None);
    let_in(&fixture, "bob", 4, NOW).await;
    assert_eq!(counted(&fixture).await, None);
    assert_eq!(add_by_hand(&fixture, "more", 8).await, Ok(Added::Now));
    let budgets: i64 = 4 * 300 - 4 + 8;
    assert_eq!(counted(&fixture).await, Some((budgets, 8, 0, NOW)));

    before("-2", "-2").await;
    let_in(&fixture, "cat", 1, NOW.plus_seconds(9)).await;
    let used = counted(&fixture).await.unwrap();
    assert_eq!((used.2, used.3), (1, NOW.plus_seconds(9)), "one shard was topped up");
}
