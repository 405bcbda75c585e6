//! The audit against real stores: a fixture that the engine made is clean; each way in which a store
//! can be wrong is named, and only that; once it is put right, the fixture is clean again.

mod apart;
mod attempts;
mod claims;
mod corruption;
mod counts;
mod fixture;
mod ledger;
mod money;
mod orders;
mod ports;
mod records;
mod redis_keys;
mod refunds;
mod rooms;
mod sales;
mod statistics;
mod tickets;
mod tokens;
mod trains;

use std::fmt::Debug;
use std::io::Write as _;
use std::str::FromStr;

use engine::domain::basics::ids::{Epoch, SaleId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::flows::reconcile::reconcile;
use local::servers::{Flavour, RedisCluster};
use ops::audit::facts::LedgerFacts;
use ops::audit::{self, AuditError, Options, RedisTarget, Rule, Target};
use serde_json::json;
use shared::dynamodb::Tables;
use shared::redis::Topology;

use attempts::{wrong_attempts, wrong_steps};
use claims::wrong_claims;
use corruption::{Change, redis};
use counts::wrong_counts;
use fixture::{Fixture, Numbers};
use ledger::wrong_ledger;
use money::wrong_money;
use orders::wrong_orders;
use records::wrong_records;
use redis_keys::wrong_redis;
use refunds::wrong_refunds;
use rooms::wrong_rooms;
use statistics::wrong_statistics;
use tickets::wrong_tickets;
use tokens::wrong_tokens;
use trains::wrong_trains;

const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

const LATER: Timestamp = NOW.plus_seconds(1000);

fn id<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

fn epoch() -> Epoch {
    id("e1")
}

#[tokio::test]
async fn what_the_engine_makes_is_clean_and_each_corruption_is_named() {
    let fixture = Fixture::start().await;
    let orders = fixture.live().await;
    let report = fixture.audit().await;
    assert!(report.clean, "{report}");
    for finding in &report.findings {
        assert!(finding.checked > 0, "nothing was held against {}", finding.rule.name());
    }

    let snapshot = fixture.snapshot().await;
    let corruptions: Vec<(Change, Vec<String>)> = [
        wrong_claims(&snapshot, &orders),
        wrong_counts(&snapshot, &orders),
        wrong_redis(&orders),
        wrong_money(&snapshot, &orders),
        wrong_refunds(&snapshot, &orders),
        wrong_tickets(&snapshot, &orders),
        wrong_attempts(&snapshot, &orders),
        wrong_steps(&snapshot, &orders),
        wrong_statistics(&snapshot, &orders),
        wrong_orders(&snapshot, &orders),
        wrong_records(&snapshot, &orders),
        wrong_tokens(&snapshot),
        wrong_rooms(&snapshot),
        wrong_trains(&snapshot),
        wrong_ledger(&snapshot),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (change, expected) in &corruptions {
        fixture.apply(change).await;
        let mut found = fixture.violations().await;
        // Violations of one rule are in the order of their subjects.
        let mut expected = expected.clone();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        fixture.restore(&snapshot).await;
        assert_eq!(fixture.violations().await, [""; 0], "after {expected:?}");
    }
    assert!(corruptions.len() >= 40, "{}", corruptions.len());
}

#[tokio::test]
async fn a_cluster_is_audited_from_any_of_its_nodes() {
    let cluster = RedisCluster::start(Flavour::Auto).await.unwrap();
    let topology = Topology::Cluster(cluster.urls());
    let fixture = Fixture::on(&cluster.urls()[1], &topology).await;
    fixture.live().await;
    for redis in cluster.urls() {
        let target = Target { redis: RedisTarget::Address(redis), ..fixture.target.clone() };
        let report = audit::run(&target, &Options::at(LATER)).await.unwrap();
        assert!(report.clean, "{report}");
    }
}

#[tokio::test]
async fn one_sale_is_audited_without_the_others() {
    let fixture = Fixture::start().await;
    fixture.live().await;
    let audit = async |sale: &str| {
        let options = Options { sale: Some(id(sale)), ..Options::at(LATER) };
        audit::run(&fixture.target, &options).await
    };
    fixture.apply(&redis(["SETBIT", "{show}:taken:floor", "2", "1"])).await;
    assert!(audit("g1").await.unwrap().clean);
    let report = audit("show").await.unwrap();
    assert_eq!(report.broken(), [Rule::I4].into());
    assert_eq!(report.sales, [id::<SaleId>("show")]);
    assert!(matches!(audit("none").await, Err(AuditError::NoSuchSale(_))));

    // What the reconciler repairs is what the audit had found.
    reconcile(&fixture.engine, &epoch(), LATER).await.unwrap();
    assert!(audit("show").await.unwrap().clean);
}

#[tokio::test]
async fn a_ledger_is_held_against_the_stores() {
    let fixture = Fixture::start().await;
    let Numbers { paid, late, rescued, other, unknown, .. } = fixture.live().await;
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let line = |order: OrderNumber, payment: &str, amount_minor: i64| {
        json!({"event": "captured", "order": order, "provider": "stripe", "payment": payment,
               "amount_minor": amount_minor, "currency": "EUR"})
    };
    for order in [paid, late, rescued, other] {
        writeln!(file, "{}", json!({"event": "acknowledged", "order": order})).unwrap();
    }
    for line in [line(paid, "pi_1", 100), line(paid, "pi_again", 100), line(other, "pi_other", 70)]
    {
        writeln!(file, "{line}").unwrap();
    }
    let audit = async |sale: Option<&str>, file: &tempfile::NamedTempFile| {
        let ledger = Some(LedgerFacts::read(file.path()).unwrap());
        let options = Options { ledger, sale: sale.map(id), ..Options::at(LATER) };
        let report = audit::run(&fixture.target, &options).await.unwrap();
        report.violations().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(audit(None, &file).await, [""; 0]);
    assert_eq!(audit(Some("show"), &file).await, [""; 0]);

    writeln!(file, "{}", json!({"event": "acknowledged", "order": unknown})).unwrap();
    writeln!(file, "{}", line(paid, "pi_lost", 100)).unwrap();
    writeln!(file, "{}", line(rescued, "pi_rescue", 51)).unwrap();
    assert_eq!(
        audit(None, &file).await,
        [
            format!(
                "I5 g1: payment stripe pi_lost for order {paid} of 100 EUR was captured but is not known"
            ),
            format!(
                "I5 g1: payment stripe pi_rescue for order {rescued} of 51 EUR was captured but 50 EUR is recorded"
            ),
            format!("ledger order {unknown} was acknowledged but does not exist"),
        ]
    );
}

#[tokio::test]
async fn stores_that_cannot_be_read_are_an_error() {
    let fixture = Fixture::start().await;
    fixture.live().await;
    let nowhere = Target {
        redis: RedisTarget::Address("redis://127.0.0.1:1".to_owned()),
        ..fixture.target.clone()
    };
    let options = Options::at(LATER);
    assert!(matches!(audit::run(&nowhere, &options).await, Err(AuditError::Redis(_))));
    let empty = Target { tables: Tables::with_prefix("none-"), ..fixture.target.clone() };
    assert!(matches!(audit::run(&empty, &options).await, Err(AuditError::DynamoDb(_))));
    fixture.apply(&redis(["SET", "{g1}:sale", "a string"])).await;
    assert!(matches!(audit::run(&fixture.target, &options).await, Err(AuditError::Redis(_))));
}
