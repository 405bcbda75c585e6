//! Paid orders are counted once, each counter once a batch.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;
use chaos::proxy::http::Act;
use engine::domain::basics::money::MinorUnits;
use engine::domain::basics::number::OrderNumber;
use engine::domain::ledger::log::LogShard;
use engine::domain::ledger::statistics::TierTotals;
use engine::domain::order::{Order, OrderEvent};
use engine::ports::{ChangeReply, Log as _, Orders};
use shared::dynamodb::tables;

use super::{Fixture, NOW, after, line, sale, seats, tier};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_counted_once_however_often_it_is_synced() {
    let fixture = Fixture::new().await;
    let mut orders = Vec::new();
    for seat in 0..20_u32 {
        // Two journeys share each seat.
        for legs in [(0, 2), (2, 4)] {
            let lines = vec![line("a", legs, &[seat]), line("b", legs, &[seat * 7])];
            let order = fixture.order(&format!("{seat}"), lines);
            fixture.create(&order).await;
            orders.push(fixture.pay(&order).await.0);
        }
    }
    // One that was never paid, whatever its record says: all that is settled is that it was made. And one that
    // is no order at all.
    let pending = fixture.order("x", seats(&[100]));
    fixture.create(&pending).await;
    let unpaid = after(&pending, OrderEvent::Pay, Some("pi"));
    let unknown = after(&fixture.order("y", seats(&[101])), OrderEvent::Pay, Some("pi"));
    let mut numbers: BTreeSet<OrderNumber> = orders.iter().map(|order| order.number).collect();
    numbers.insert(pending.number);
    orders.insert(3, unpaid);
    orders.insert(30, unknown);
    orders.push(pending);
    orders.push(orders[0].clone());

    let mut syncing = tokio::task::JoinSet::new();
    for start in 0..4 {
        let (db, mut orders) = (fixture.orders.clone(), orders.clone());
        orders.rotate_left(start * 11);
        syncing.spawn(async move { db.sync(&orders, NOW).await.unwrap() });
    }
    let counted: Vec<OrderNumber> = syncing.join_all().await.concat();
    assert_eq!(counted.len(), 41, "each exactly once");
    assert_eq!(counted.into_iter().collect::<BTreeSet<_>>(), numbers);
    let statistics = || async { fixture.orders.statistics(&sale()).await.unwrap() };
    let total = TierTotals { tickets: 40, revenue_minor: MinorUnits(20_000) };
    assert_eq!(statistics().await, [(tier("a"), total), (tier("b"), total)]);
    assert_eq!(fixture.orders.sync(&orders, NOW).await, Ok(vec![]));
    assert_eq!(statistics().await, [(tier("a"), total), (tier("b"), total)]);

    assert_eq!(fixture.claims().await.len(), 20 * 4 + 1);
}

#[tokio::test]
async fn the_log_is_found_by_time() {
    let fixture = Fixture::new().await;
    let at = |tens: i64| NOW.plus_seconds(tens * 10);
    for tens in 0..12 {
        let order = fixture.order(&format!("{tens}"), seats(&[u32::try_from(tens).unwrap()]));
        fixture.create(&order).await;
        assert_eq!(
            fixture.orders.sync(std::slice::from_ref(&order), at(tens)).await,
            Ok(vec![order.number])
        );
    }
    let log = fixture.orders.log();
    for tens in 0..=12 {
        let mut before = 0;
        for shard in LogShard::all() {
            before += log.before(shard, at(tens)).await.unwrap();
        }
        assert_eq!(i64::try_from(before).unwrap(), tens, "records before {tens}");
    }
}

#[tokio::test]
async fn a_seat_on_which_an_earlier_release_has_noted_what_is_sold_is_read_and_freed_as_any_other()
{
    let fixture = Fixture::new().await;
    let order = fixture.order("u", vec![line("a", (0, 2), &[3])]);
    fixture.create(&order).await;
    let update = fixture.db.client().update_item().table_name(&fixture.db.config().tables.seats);
    let update = update
        .key("pk", AttributeValue::S(tables::block_key(&sale(), &tier("a"), 0)))
        .key("sk", AttributeValue::N("3".to_owned()))
        .update_expression("ADD sold :legs")
        .expression_attribute_values(":legs", AttributeValue::Ns(vec!["0".into(), "1".into()]));
    update.send().await.unwrap();
    assert_eq!(fixture.claims().await.len(), 2, "one a leg");
    let ended = after(&order, OrderEvent::Cancel, None);
    assert_eq!(fixture.orders.end(&ended).await, Ok(ChangeReply::Done));
    assert_eq!(fixture.claims().await, []);
    fixture.create(&fixture.order("v", vec![line("a", (1, 3), &[3])])).await;
}

#[tokio::test]
async fn one_batch_writes_each_counter_once() {
    let fixture = Fixture::new().await;
    let mut paid = Vec::new();
    for seat in 0..48 {
        let order = fixture.order(&format!("{seat}"), seats(&[seat]));
        fixture.create(&order).await;
        paid.push(fixture.pay(&order).await.0);
    }
    let (few, many) = paid.split_at(8);
    let of_each_shard = |orders: &[Order]| -> Vec<usize> {
        // An order's number says in which shard of the log it is told.
        let of = |shard| orders.iter().filter(|order| LogShard::of(order.number) == shard).count();
        LogShard::all().map(of).filter(|count| *count > 0).collect()
    };
    let (proxy, orders) = fixture.behind(|_, _| Act::Forward).await;
    let written = |from: usize| -> Vec<usize> {
        let writes = proxy.seen("TransactWriteItems").into_iter().skip(from);
        writes.map(|write| write.body["TransactItems"].as_array().unwrap().len()).collect()
    };
    assert_eq!(orders.sync(few, NOW).await.map(|counted| counted.len()), Ok(8));
    let records = of_each_shard(few).len();
    let what = "the orders, one counter, for each shard a record, the provider and the merchant";
    assert_eq!(written(0), [8 + 1 + 3 * records], "{what}");
    assert_eq!(orders.sync(many, NOW).await.map(|counted| counted.len()), Ok(40));
    let mut of_shards: Vec<usize> =
        of_each_shard(many).into_iter().map(|orders| orders + 1 + 3).collect();
    let mut written = written(1);
    of_shards.sort_unstable();
    written.sort_unstable();
    assert_eq!(written, of_shards, "too many for one: each shard by itself");
}
