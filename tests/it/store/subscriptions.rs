//! How far subscribers were told: the model answers as DynamoDB, and without its condition does not.

use std::num::NonZeroU32;

use engine::domain::basics::guard::{Guard, without};
use engine::domain::basics::ids::{ReaderId, SubscriberId, UserId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::ledger::log::LogShard;
use engine::domain::ledger::subscriber::{Failing, Progress, Subscription, WaitingOrder};
use engine::ports::{ChangeReply, MAX_WAITING_CHANGES, Subscriptions as _, TakeReply, Waiting};
use model_stores::{SubscriptionsModel, seed_of_commit};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use shared::dynamodb::DynamoSubscriptions;

use super::{Fixture, NOW};

const SEQUENCES: u64 = 12;
const STEPS: u32 = 40;

fn subscription(id: &str) -> Subscription {
    let shard = LogShard::all().last().unwrap();
    Subscription { subscriber: SubscriberId::new(id).unwrap(), shard }
}

fn reader(number: u32) -> ReaderId {
    ReaderId::new(format!("reader-{number}")).unwrap()
}

fn failing(random: &mut StdRng) -> Failing {
    let since = NOW.plus_seconds(random.random_range(0..9));
    let next = random.random_bool(0.7).then(|| since.plus_seconds(5));
    Failing { since, tries: random.random_range(1..9), next }
}

/// Takes, keeps and reads at random, and tells the first answer in which the model, perhaps without a guard, and
/// DynamoDB differ.
async fn compare(seed: u64, removed: Option<Guard>) -> Result<(), String> {
    let fixture = Fixture::new().await;
    let store = DynamoSubscriptions::new(fixture.db.clone());
    let mut model = SubscriptionsModel::default();
    let mut random = StdRng::seed_from_u64(seed);
    let user = UserId::new("7").unwrap();
    let orders: Vec<OrderNumber> = (0..4).map(|_| fixture.mint.mint(NOW, &user)).collect();
    let fact = |number| NonZeroU32::new(number).unwrap();
    for step in 0..STEPS {
        let of = subscription(["erp", "crm"][random.random_range(0..2)]);
        let reader = reader(random.random_range(0..3));
        let now: Timestamp = NOW.plus_seconds(random.random_range(0..90));
        let until = now.plus_seconds(random.random_range(0..60));
        if random.random_bool(0.5) {
            let (found, expected) = (
                store.take(&of, &reader, now, until).await.unwrap(),
                model.take(&of, &reader, now, until),
            );
            if found != expected {
                return Err(format!("step {step}: take: {found:?}, the model {expected:?}"));
            }
        } else {
            let is_failing = random.random_bool(0.3);
            let failing_now = failing(&mut random);
            let progress = Progress {
                position: random.random_range(0..99),
                failing: is_failing.then_some(failing_now),
            };
            let mut changes = Vec::new();
            for order in &orders {
                match random.random_range(0..4) {
                    0 => changes.push(Waiting::Told(*order)),
                    1 => {
                        let (from, to) =
                            (fact(random.random_range(1..4)), fact(random.random_range(4..7)));
                        let failing = failing(&mut random);
                        changes.push(Waiting::Keep(WaitingOrder {
                            order: *order,
                            from,
                            to,
                            failing,
                        }));
                    }
                    _ => {}
                }
            }
            let found = store.keep(&of, &reader, &progress, &changes, until).await.unwrap();
            let mut keep = || model.keep(&of, &reader, &progress, &changes, until);
            let expected = match removed {
                Some(guard) => without(guard, keep),
                None => keep(),
            };
            if found != expected {
                return Err(format!("step {step}: keep: {found:?}, the model {expected:?}"));
            }
        }
        let (found, expected) = (store.waiting(&of).await.unwrap(), model.waiting(&of));
        if found != expected {
            return Err(format!("step {step}: {found:?} wait, by the model {expected:?}"));
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_of_subscriptions_answers_as_dynamodb() {
    let base = seed_of_commit();
    for seed in base..base + SEQUENCES {
        compare(seed, None).await.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_of_subscriptions_without_its_condition_is_found_out() {
    let mut found = None;
    for seed in 0..SEQUENCES {
        found = found.or(compare(seed, Some(Guard::TellerLease)).await.err());
    }
    println!("without {}: {}", Guard::TellerLease, found.expect("it differs from DynamoDB"));
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_orders_as_may_wait_are_kept_at_once_and_forgotten_with_all() {
    let fixture = Fixture::new().await;
    let store = DynamoSubscriptions::new(fixture.db.clone());
    let (of, reader) = (subscription("erp"), reader(1));
    let until = NOW.plus_seconds(60);
    assert_eq!(store.take(&of, &reader, NOW, until).await, Ok(TakeReply::Taken(None)));
    let user = UserId::new("7").unwrap();
    let failing = Failing { since: NOW, tries: 1, next: None };
    let one = NonZeroU32::MIN;
    let waiting: Vec<Waiting> = (0..MAX_WAITING_CHANGES)
        .map(|_| fixture.mint.mint(NOW, &user))
        .map(|order| Waiting::Keep(WaitingOrder { order, from: one, to: one, failing }))
        .collect();
    let progress = Progress { position: 3, failing: None };
    let kept = store.keep(&of, &reader, &progress, &waiting, NOW).await;
    assert_eq!(kept, Ok(ChangeReply::Done));
    let state = store.state(&of.subscriber).await.unwrap();
    assert_eq!((state.len(), state[0].waiting.len()), (1, MAX_WAITING_CHANGES));
    // An operator has all of it tried again, also what was given up.
    assert_eq!(store.retry(&of.subscriber, &reader, NOW).await, Ok(Vec::new()));
    let waiting = store.waiting(&of).await.unwrap();
    assert!(
        waiting.len() == MAX_WAITING_CHANGES
            && waiting.iter().all(|order| order.failing.is_due(NOW))
    );
    assert_eq!(store.rewind(&of.subscriber, &reader, NOW, |_| 1).await, Ok(Vec::new()));
    assert_eq!(store.state(&of.subscriber).await.unwrap()[0].progress.position, 1);
    store.forget(&of.subscriber).await.unwrap();
    assert_eq!(store.state(&of.subscriber).await, Ok(Vec::new()));
    assert_eq!(store.waiting(&of).await, Ok(Vec::new()));
}
