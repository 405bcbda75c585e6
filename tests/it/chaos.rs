//! `onsale chaos` in short: every fault once on real servers while a crowd buys; and what it says when
//! something is broken for good.

use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use chaos::faults::{Fault, FaultContext, Kind, Struck};
use chaos::rig::{Profile, Setup};
use chaos::rooms::PEOPLE;
use chaos::{self, Error, Options, Plan};
use engine::domain::order::OrderState;
use fake_limits::Limits;
use futures_util::future::BoxFuture;
use local::stores::sdk_config;
use ops::audit::{self, DynamoDbTarget, Target};

use crate::backends;
use crate::program::onsale;
use model_stores::size::first_of;

/// Time that anything may take: machines are busy with other tests.
const DEADLINE: Duration = Duration::from_secs(600);
/// Seed of a rig whose sale keeps its tiers together.
const TOGETHER: u64 = 13;
/// Seed of a rig whose sale keeps its tiers apart.
const APART: u64 = 11;

/// Short times, so that a run takes a minute.
fn options(seed: u64, settle: Duration) -> Options {
    let setup = Setup {
        program: onsale(),
        reconcile_seconds: 1,
        redelivery_seconds: 2,
        pay_window_seconds: 5,
        seats: 0,
        seed,
        limits: Limits::None,
    };
    Options { setup, buyers: 8, deadline: DEADLINE, settle }
}

/// How many of each of these `make test` has time for: a crowd keeps a processor busy. The first are those that no other test
/// meets, and `all`, which has most others in it; `make test-all` has each.
const FEW: usize = 2;
/// Something dies, or forgets.
const DEATHS: [Kind; 4] = [Kind::All, Kind::Flush, Kind::KillEngine, Kind::KillRedis];
/// Something stands still, or is hard to reach.
const DELAYS: [Kind; 6] = [
    Kind::FreezeStores,
    Kind::FreezeRedis,
    Kind::FreezeEngine,
    Kind::DynamodbNetwork,
    Kind::SqsNetwork,
    Kind::RedisNetwork,
];
/// A cluster moves the sale, or loses a part of it: while each of two masters has a tier.
const MOVES: [Kind; 4] =
    [Kind::LoseNode, Kind::SlotMigration, Kind::KillMaster, Kind::ClusterFailover];

/// Three tests, which wait side by side: a round is mostly waiting.
#[test]
fn every_fault_is_in_one_of_the_tests() {
    let mut tested = [DEATHS.as_slice(), &DELAYS, &MOVES].concat();
    tested.sort();
    let mut all = Kind::ALL.to_vec();
    all.sort();
    assert_eq!(tested, all);
}

/// Some of these faults, once each.
async fn each_of(faults: &[Kind], seed: u64) {
    let faults = first_of(faults, FEW);
    if backends::is_foreign("chaos breaks servers of its own") {
        return;
    }
    let plan = Plan::from_faults(faults, 1);
    let options = options(seed, DEADLINE);
    let report = chaos::run(&options, &plan, |_| {}).await.unwrap();
    println!("{report}");
    assert_eq!(report.violations, Vec::<String>::new());
    assert_eq!(report.rounds, faults.len());
    assert!(report.seasons.iter().all(|season| season.tiers_apart == (seed == APART)));
    for season in &report.seasons {
        assert!(season.refunded >= 2 * faults.len(), "{} orders refunded", season.refunded);
        assert!(season.exchanged >= faults.len(), "{} tickets exchanged", season.exchanged);
        let rooms = &season.rooms;
        assert_eq!((rooms.rooms, rooms.ordered), (faults.len(), faults.len() * PEOPLE));
        // Each fault meets the rooms of its round and of those before.
        let met: u64 = rooms.struck.values().sum();
        let rounds = faults.len();
        assert_eq!(usize::try_from(met), Ok(PEOPLE * rounds * (rounds + 1) / 2), "{rooms}");
    }
    for row in &report.faults {
        let kind = faults.iter().find(|kind| kind.name() == row.fault).unwrap();
        let note = |what: &str| row.notes.get(what).copied().unwrap_or_default();
        let met: u64 = row.notes.values().sum();
        // Each did what it is for.
        match kind {
            Kind::KillEngine | Kind::KillMaster => assert!(!row.errors.is_empty(), "{row:?}"),
            Kind::KillRedis => {
                assert!(note("holds that the replica had missed") >= 3, "{row:?}");
                // Whichever comes first, the comparison of the stores or the payment, mends a hold.
                assert!(row.restored + row.rescued > 0, "{row:?}");
            }
            Kind::Flush => assert!(row.restored > 0, "{row:?}"),
            Kind::FreezeRedis | Kind::FreezeEngine | Kind::FreezeStores => {
                assert!(row.pause_ms.most >= 1000, "{row:?}");
            }
            Kind::DynamodbNetwork | Kind::SqsNetwork | Kind::RedisNetwork => {
                assert!(met >= 40 && row.notes.len() >= 5, "{row:?}");
            }
            Kind::All => assert!(met >= 45, "{row:?}"),
            Kind::ClusterFailover => {}
            Kind::SlotMigration => assert!(note("keys moved") >= 5, "{row:?}"),
            Kind::LoseNode => {
                assert!(row.restored > 0, "{row:?}");
                // One of two tiers: the other one is still there, and is loaded with it.
                assert_eq!(note("inventories that are lost"), 1, "{row:?}");
                assert_eq!(note("inventories that are left"), 1, "{row:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_dies_or_forgets_leaves_nothing_broken() {
    each_of(&DEATHS, TOGETHER).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_or_hard_to_reach_leaves_nothing_broken() {
    each_of(&DELAYS, APART).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_moves_the_sale_leaves_nothing_broken() {
    each_of(&MOVES, APART).await;
}

/// A client of the rig's DynamoDB.
fn dynamodb(target: &Target) -> Client {
    let DynamoDbTarget::Fake(endpoint) = &target.dynamodb else { panic!("the rig runs a fake") };
    let config = aws_sdk_dynamodb::config::Builder::from(&sdk_config());
    Client::from_conf(config.endpoint_url(endpoint).build())
}

/// A database that loses an order that was paid: nothing may mend that, and nothing may hide it.
struct LoseAnOrder;

impl Fault for LoseAnOrder {
    fn name(&self) -> &'static str {
        "lose-an-order"
    }

    fn inject<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
    ) -> BoxFuture<'a, Result<Struck, Error>> {
        Box::pin(async {
            let target = context.rig.target();
            let facts = audit::read(&target, Some(context.rig.sale())).await?;
            let mut orders = facts.sales[context.rig.sale()].orders.values();
            let paid = orders.find(|order| order.state == OrderState::Paid).unwrap();
            let client = dynamodb(&target);
            let gene = AttributeValue::N(paid.number.gene().get().to_string());
            client
                .delete_item()
                .table_name(target.tables.orders)
                .key("gene", gene)
                .key("sk", AttributeValue::S(format!("order#{}", paid.number)))
                .send()
                .await
                .unwrap();
            Ok(Struck::now())
        })
    }

    fn end<'a>(
        &'a mut self,
        _context: &'a mut FaultContext,
        struck: &'a mut Struck,
    ) -> BoxFuture<'a, Result<Instant, Error>> {
        Box::pin(async { Ok(struck.at) })
    }
}

/// The control: without it, runs in which nothing is found could be runs in which nobody looks.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_is_lost_is_found_and_ends_the_run() {
    if backends::is_foreign("chaos breaks servers of its own") {
        return;
    }
    let faults: Vec<(Box<dyn Fault>, u32)> =
        vec![(Box::new(LoseAnOrder), 120), (Kind::Flush.fault(), 120)];
    // What is lost is missing from the first look on. In a slow run something else may be as well by then.
    let options = options(TOGETHER, Duration::from_secs(5));
    let season = chaos::season(&options, Profile::Single, faults, |_| {}).await.unwrap();
    assert_eq!(season.rounds.len(), 1, "the run went on");
    let violations = &season.rounds[0].violations;
    let is_named = |rule: &str| violations.iter().any(|violation| violation.starts_with(rule));
    assert!(is_named("ledger") && is_named("I2") && is_named("I5"), "{violations:?}");
}

/// A database that loses somebody's place in a waiting room.
struct LoseAPlace;

impl Fault for LoseAPlace {
    fn name(&self) -> &'static str {
        "lose-a-place"
    }

    fn inject<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
    ) -> BoxFuture<'a, Result<Struck, Error>> {
        Box::pin(async {
            let target = context.rig.target();
            let client = dynamodb(&target);
            // Whoever stands in the tree has been told, and cannot come to the own place without it.
            let (pk, sk) = loop {
                let drawn = client.scan().table_name(&target.tables.rooms);
                let mut drawn = drawn.into_paginator().items().send();
                let (mut member, mut is_fixed) = (None, false);
                while let Some(item) = drawn.try_next().await.unwrap() {
                    let key = |name: &str| item[name].as_s().unwrap().clone();
                    let is_first =
                        item.get("window").is_some_and(|of| of.as_s().unwrap() == "first");
                    is_fixed |= key("pk") == "tree#room-0";
                    if key("pk").starts_with("members#room-0#") && is_first {
                        member = Some((key("pk"), key("sk")));
                    }
                }
                if let Some(member) = member.filter(|_| is_fixed) {
                    break member;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            let delete = client.delete_item().table_name(&target.tables.rooms);
            let delete = delete.key("pk", AttributeValue::S(pk)).key("sk", AttributeValue::S(sk));
            delete.send().await.unwrap();
            Ok(Struck::now())
        })
    }

    fn end<'a>(
        &'a mut self,
        _context: &'a mut FaultContext,
        struck: &'a mut Struck,
    ) -> BoxFuture<'a, Result<Instant, Error>> {
        Box::pin(async { Ok(struck.at) })
    }
}

/// The control of the rooms.
#[tokio::test(flavor = "multi_thread")]
async fn a_place_that_is_lost_is_found() {
    if backends::is_foreign("chaos breaks servers of its own") {
        return;
    }
    let faults: Vec<(Box<dyn Fault>, u32)> = vec![(Box::new(LoseAPlace), 120)];
    // If nobody comes for the place, the audit alone finds that it is missing, each time that it looks.
    let options = options(TOGETHER, Duration::from_secs(20));
    let season = chaos::season(&options, Profile::Single, faults, |_| {}).await.unwrap();
    let violations: Vec<&String> = season.violations().collect();
    let is_named = |rule: &str| violations.iter().any(|violation| violation.contains(rule));
    assert!(is_named("rooms") || is_named("was told"), "{violations:?}");
}
