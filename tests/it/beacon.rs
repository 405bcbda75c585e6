//! The beacon: what our adapter believes of the answers of drand's HTTP API, as our fake gives them.

use std::time::Duration;

use engine::domain::basics::bytes::{Hash, PublicKey};
use engine::ports::{Beacon, StoreError};
use fake_beacon::Fault;
use local::servers::{FakeBeacon, Pace};
use local::up::beacon_config;
use serde_json::Value;
use shared::beacon::DrandBeacon;
use shared::beacon::signature::QUICKNET;
use shared::runtime::config::BeaconConfig;
use shared::runtime::connections::{Https, Trust};

use crate::backends::FIRST_ROUND;
use text::root;

fn fake() -> FakeBeacon {
    FakeBeacon::start(Pace::ByHand(FIRST_ROUND)).unwrap()
}

/// An adapter that asks these servers, and waits as long for each as a slow machine needs.
fn asking(servers: &[&FakeBeacon]) -> DrandBeacon {
    let config = BeaconConfig {
        urls: servers.iter().map(|server| server.url()).collect(),
        ..beacon_config("")
    };
    DrandBeacon::new(&config, Https::new(&Trust::public())).within(Duration::from_secs(120))
}

#[tokio::test]
async fn a_round_is_believed_when_it_is_out() {
    let fake = fake();
    let beacon = asking(&[&fake]);
    let chain = fake_beacon::hash();
    for round in [1, FIRST_ROUND] {
        assert_eq!(beacon.round(chain, round).await, Ok(Some(fake.signature(round))));
    }
    assert_eq!(beacon.round(chain, FIRST_ROUND + 1).await, Ok(None), "it is to come");
    fake.advance(1);
    let next = FIRST_ROUND + 1;
    assert_eq!(beacon.round(chain, next).await, Ok(Some(fake.signature(next))));
    // By the clock it goes on by itself.
    let clock = FakeBeacon::start(Pace::Every(Duration::from_millis(1))).unwrap();
    let beacon = asking(&[&clock]);
    let next = clock.latest() + 5;
    while beacon.round(chain, next).await.unwrap().is_none() {}
}

fn is_unavailable<T>(found: &Result<T, StoreError>) -> bool {
    match found {
        Err(StoreError::Unavailable(_)) => true,
        Ok(_) | Err(StoreError::Unknown(_) | StoreError::Limited(_) | StoreError::Contract(_)) => {
            false
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_not_what_was_asked_for_is_refused() {
    let chain = fake_beacon::hash();
    let faulty = fake();
    let alone = asking(&[&faulty]);
    let good = fake();
    let beside_another = asking(&[&faulty, &good]);
    // Whether the round is said to be to come.
    let cases = [
        (Fault::NoRound, true),
        (Fault::Late(8), true),
        (Fault::FalseSignature, false),
        (Fault::OtherRound, false),
        (Fault::OtherSignature, false),
        (Fault::Endless, false),
        (Fault::Fail, false),
    ];
    for (fault, is_to_come) in cases {
        faulty.set_fault(Some(fault));
        let found = alone.round(chain, FIRST_ROUND).await;
        match is_to_come {
            true => assert_eq!(found, Ok(None), "{fault:?}"),
            false => assert!(is_unavailable(&found), "{fault:?}: {found:?}"),
        }
        // Another server says what is so.
        let signature = good.signature(FIRST_ROUND);
        assert_eq!(beside_another.round(chain, FIRST_ROUND).await, Ok(Some(signature)));
        // Whether one that is to come is known from one server suffices.
        assert_eq!(beside_another.round(chain, FIRST_ROUND + 1).await, Ok(None), "{fault:?}");
    }
    faulty.set_fault(None);
    let signature = good.signature(FIRST_ROUND);
    assert_eq!(alone.round(chain, FIRST_ROUND).await, Ok(Some(signature)), "the control");
}

#[tokio::test]
async fn a_server_that_is_silent_or_away_is_given_up() {
    let silent = fake();
    silent.set_fault(Some(Fault::Silent));
    let chain = fake_beacon::hash();
    let beacon = asking(&[&silent]).within(Duration::from_millis(50));
    assert!(is_unavailable(&beacon.round(chain, FIRST_ROUND).await));
    let away = asking(&[&fake()]);
    assert!(is_unavailable(&away.round(chain, FIRST_ROUND).await));
    let nobody = asking(&[]);
    assert!(is_unavailable(&nobody.round(chain, FIRST_ROUND).await));
}

#[tokio::test]
async fn the_rounds_of_a_chain_without_a_known_key_are_not_asked_for() {
    let fake = fake();
    let beacon = asking(&[&fake]);
    let is_broken = |found: StoreError| matches!(found, StoreError::Contract(_));
    assert!(is_broken(beacon.round(Hash([7; 32]), 1).await.unwrap_err()));
    assert_eq!(fake.calls(), 0);
    // Quicknet's key is known, and the fake has no such chain.
    assert_eq!(beacon.round(QUICKNET, 1).await, Ok(None));
}

/// So that drand's own clients, which check it, could use the fake.
#[tokio::test]
async fn the_fakes_chain_is_named_by_what_it_says_of_itself() {
    let fake = fake();
    let url = format!("{}/{}/info", fake.url(), fake_beacon::hash());
    let info: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let key: PublicKey = text(&info["public_key"]).parse().unwrap();
    let seed: Hash = text(&info["genesis_seed"]).parse().unwrap();
    let period = u32::try_from(info["period"].as_u64().unwrap()).unwrap();
    let name = text(&info["metadata"]["beaconID"]);
    let hash = Hash::of_parts(&[
        &period.to_be_bytes(),
        &info["genesis_time"].as_i64().unwrap().to_be_bytes(),
        &key.0,
        &seed.0,
        name.as_bytes(),
    ]);
    assert_eq!((text(&info["hash"]), hash), (hash.to_string(), fake_beacon::hash()));
}

#[test]
fn the_page_names_the_local_chain() {
    let page = std::fs::read_to_string(root().join("docs/draw.md")).unwrap();
    let (hash, key) = (fake_beacon::hash(), fake_beacon::key());
    for value in [hash.to_string(), key.to_string()] {
        assert!(page.contains(&format!("| `{value}` |")), "{value}");
    }
    let (genesis, period) = (fake_beacon::GENESIS_SECONDS, fake_beacon::PERIOD_SECONDS);
    assert!(page.contains(&format!(
        "| genesis, s | 1692803367 | {genesis} |\n| period, s | 3 | {period} |\n"
    )));
    let chain = beacon_config("").chains.others()[0].to_string();
    assert!(page.contains(&format!("--chain {chain}\n")), "{chain}");
}
