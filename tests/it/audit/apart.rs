//! The audit of a sale that keeps its tiers apart.

use engine::domain::sale::Sale;
use engine::flows::publish::publish;

use super::fixture::Fixture;
use super::sales::{best, requested, show};
use super::{LATER, NOW, epoch};

fn apart() -> Sale {
    let mut file = show().file().clone();
    let mut balcony = file.tiers[0].clone();
    balcony.tier = super::id("balcony");
    file.tiers.push(balcony);
    file.tiers_apart = true;
    Sale::new(file).unwrap()
}

#[tokio::test]
async fn each_tier_that_is_kept_apart_is_read_and_what_is_wrong_with_one_is_named() {
    let fixture = Fixture::start().await;
    let published = publish(&fixture.engine, &apart(), &epoch(), NOW).await.unwrap();
    let buy = async |user, tier| {
        let line = requested(tier, (0, 1), best(1), 70);
        fixture.reserve(&published, user, line, LATER).await
    };
    let (first, second) = (buy("alice", "floor").await, buy("alice", "balcony").await);
    assert_eq!(fixture.violations().await, [""; 0], "alice's tickets of both tiers add up");

    let deadline = LATER.plus_seconds(600).ms();
    let hold = |tier: &str| format!("{deadline}|0123456789abcdef|1|{tier},0,1,0|alice");
    let (first, second) = (first.to_string(), second.to_string());
    let mut redis = fixture.redis.clone();
    let mut run = async |words: &[&str]| {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        let _: redis::Value = command.query_async(&mut redis).await.unwrap();
    };
    // What is planted, how it is undone, and what is named.
    let cases: [(&[&str], &[&str], &[&str]); 5] = [
        (
            &["HSET", "{show/floor}:sale", "loaded", "e9"],
            &["HSET", "{show/floor}:sale", "loaded", "e1"],
            &["I4 show: tier floor has epoch e9 in Redis but e1 in the catalogue"],
        ),
        (
            &["HSET", "{show/balcony}:sale", "limit", "9"],
            &["HSET", "{show/balcony}:sale", "limit", "3"],
            &["I4 show: tier balcony has limit 9 in Redis but 3 in the catalogue"],
        ),
        (
            &["HSET", "{show/floor}:sale", "@alice", "2"],
            &["HSET", "{show/floor}:sale", "@alice", "1"],
            &["I4 show: buyer alice has bought 3 in Redis but has a count of 2"],
        ),
        (
            &["HSET", "{show/balcony}:sale", &first, &hold("floor")],
            &["HDEL", "{show/balcony}:sale", &first],
            &["is a hold of another tier's seats"],
        ),
        (
            &["HSET", "{show}:sale", "loaded", "e1"],
            &["DEL", "{show}:sale"],
            &["is of tiers that the sale does not keep so"],
        ),
    ];
    for (plant, undo, named) in cases {
        run(plant).await;
        let found = fixture.violations().await;
        assert_eq!(found.len(), named.len(), "{plant:?}: {found:?}");
        assert!(found[0].contains(named[0]), "{plant:?}: {found:?}");
        run(undo).await;
        assert_eq!(fixture.violations().await, [""; 0], "{undo:?}");
    }
    // A number that holds in both tiers: whichever is not the order's is named.
    run(&["HSET", "{show/floor}:sale", &second, &hold("floor")]).await;
    let found = fixture.violations().await;
    assert!(found.iter().any(|what| what.contains("is held in another tier too")), "{found:?}");
    run(&["HDEL", "{show/floor}:sale", &second]).await;
    assert_eq!(fixture.violations().await, [""; 0]);
    // The load of one tier of a sale that the catalogue does not have.
    run(&["HSET", "{gone/floor}:sale", "loaded", "e1"]).await;
    let found = fixture.violations().await;
    assert!(found[0].contains("is of a sale that the catalogue does not have"), "{found:?}");
}
