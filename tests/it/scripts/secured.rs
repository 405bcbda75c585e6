//! Redis behind TLS, behind a password, and in a cluster whose slots move.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cold::certificates::Authority;
use cold::proxy::Proxy;
use engine::domain::basics::ids::{InventoryId, Legs, SaleId, TierId};
use engine::domain::inventory::{Hold, Line, Load, LoadReply, TierGrid};
use engine::ports::{Seats, StoreError, Stored};
use local::servers::{Flavour, RedisServer};
use shared::redis::keys::InventoryKeys;
use shared::redis::{Bounds, Connection, RedisSeats, Topology};
use shared::runtime::connections::Trust;

use super::calls::{best, hold, inventory, load, record_of};
use super::log::Log;
use super::{long_deadlines, server};

const PASSWORD: &str = "hunter2";

/// Several names: they lie in slots of different masters.
fn inventories() -> Vec<InventoryId> {
    let sale = |number| SaleId::new(format!("show-{number}")).unwrap();
    (0..12).map(|number| InventoryId::whole(sale(number))).collect()
}

async fn ask<T: redis::FromRedisValue>(server: &RedisServer, words: &[&str]) -> T {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    command.query_async(&mut server.connect().await.unwrap()).await.unwrap()
}

/// Loads every sale and reads each back.
async fn use_it(connection: Connection) -> Stored<()> {
    let seats = RedisSeats::new(connection);
    for inventory in inventories() {
        seats.load(&Load { inventory: inventory.clone(), ..load(1) }).await?;
        assert!(seats.epoch(&inventory).await?.is_some());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_behind_tls_is_followed_node_by_node() {
    let cluster = super::cluster().await;
    let authority = Authority::new().unwrap();
    let tls = authority.server(&["127.0.0.1"]).unwrap();
    let mut proxies = Vec::new();
    for node in cluster.nodes() {
        let proxy = Proxy::start(node.port(), Some(tls.clone())).await.unwrap();
        let port = proxy.port().to_string();
        // What a node says of itself leads through its proxy.
        let () = ask(node, &["CONFIG", "SET", "cluster-announce-port", &port]).await;
        proxies.push(proxy);
    }
    let mut told: Vec<u16> = proxies.iter().map(Proxy::port).collect();
    told.sort_unstable();
    let since = Instant::now();
    for node in cluster.nodes() {
        loop {
            let slots: Vec<(u32, u32, (String, u16))> = {
                let raw: Vec<Vec<redis::Value>> = ask(node, &["CLUSTER", "SLOTS"]).await;
                let read = |range: Vec<redis::Value>| {
                    let node: Vec<redis::Value> =
                        redis::from_redis_value(range[2].clone()).unwrap();
                    let host = redis::from_redis_value(node[0].clone()).unwrap();
                    let port = redis::from_redis_value(node[1].clone()).unwrap();
                    (0, 0, (host, port))
                };
                raw.into_iter().map(read).collect()
            };
            let mut ports: Vec<u16> = slots.iter().map(|(_, _, (_, port))| *port).collect();
            ports.sort_unstable();
            if ports == told {
                break;
            }
            assert!(since.elapsed() < Duration::from_secs(60), "{ports:?} are not {told:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let topology = Topology::Cluster(vec![proxies[0].redis_url()]);
    let trust = Trust::only(authority.pem().into()).unwrap();
    use_it(Connection::trusting(&topology, long_deadlines(), &trust).unwrap()).await.unwrap();
    assert!(proxies.iter().all(|proxy| proxy.accepted() > 0), "each node was spoken to");

    let foreign = Trust::only(Authority::new().unwrap().pem().into()).unwrap();
    for trust in [foreign, Trust::public()] {
        let bounds = Bounds { connect: Duration::from_secs(3), ..long_deadlines() };
        let refused = use_it(Connection::trusting(&topology, bounds, &trust).unwrap()).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_password_opens_and_a_wrong_one_is_told_to_nobody() {
    let (log, _kept) = Log::keep();
    tracing::info!("the log is kept");

    for flavour in [Flavour::Valkey, Flavour::Redis] {
        let server = server(flavour).await;
        let () = ask(&server, &["ACL", "SETUSER", "engine", "on", ">hunter2", "~*", "+@all"]).await;
        let () = ask(&server, &["CONFIG", "SET", "requirepass", PASSWORD]).await;
        let address = format!("127.0.0.1:{}", server.port());
        for user in ["", "engine"] {
            let topology = Topology::Single(format!("redis://{user}:{PASSWORD}@{address}"));
            use_it(Connection::new(&topology, long_deadlines()).unwrap()).await.unwrap();
        }
        let wrong =
            ["redis://:hunter3@", "redis://engine:hunter3@", "redis://nobody:hunter3@", "redis://"];
        for wrong in wrong {
            let url = format!("{wrong}{address}");
            let connection =
                Connection::new(&Topology::Single(url.clone()), long_deadlines()).unwrap();
            let refused = use_it(connection.clone()).await.unwrap_err();
            assert!(refused.retryable(), "{wrong}: {refused}");
            let told = format!("{refused} {refused:?}");
            assert!(!told.contains("hunter"), "{told}");
        }
    }

    let cluster = super::cluster().await;
    for node in cluster.nodes() {
        let () = ask(node, &["CONFIG", "SET", "requirepass", PASSWORD]).await;
    }
    let urls = |password: &str| {
        let url = |node: &RedisServer| format!("redis://:{password}@127.0.0.1:{}", node.port());
        Topology::Cluster(cluster.nodes().iter().map(url).collect())
    };
    use_it(Connection::new(&urls(PASSWORD), long_deadlines()).unwrap()).await.unwrap();
    let refused =
        use_it(Connection::new(&urls("hunter3"), long_deadlines()).unwrap()).await.unwrap_err();
    assert!(
        refused.retryable() && !format!("{refused} {refused:?}").contains("hunter"),
        "{refused}"
    );

    let logged = log.text();
    assert!(logged.contains("the log is kept"));
    assert!(!logged.contains("hunter"), "a password was logged");
}

/// A slot that moves from one master to another while its sale is sold from.
#[tokio::test]
async fn a_slot_that_moves_takes_its_sale_along() {
    let cluster = super::cluster().await;
    let bounds = Bounds { attempts: 2, ..long_deadlines() };
    let seats =
        RedisSeats::new(Connection::new(&Topology::Cluster(cluster.urls()), bounds).unwrap());
    seats.load(&load(1)).await.unwrap();
    let first = seats.hold(&hold(1, Legs::ONE, best(2))).await.unwrap();

    let nodes = cluster.nodes();
    let slot: u16 =
        ask(&nodes[0], &["CLUSTER", "KEYSLOT", &InventoryKeys(&inventory()).sale()]).await;
    let from = usize::from((slot > 5460) as u8 + (slot > 10922) as u8);
    let (from, to) = (&nodes[from], &nodes[(from + 1) % 3]);
    let (from_id, to_id): (String, String) =
        (ask(from, &["CLUSTER", "MYID"]).await, ask(to, &["CLUSTER", "MYID"]).await);
    let slot = slot.to_string();
    let () = ask(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).await;
    let () = ask(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).await;
    let move_key = async |key: &str| {
        let port = to.port().to_string();
        let _: redis::Value = ask(from, &["MIGRATE", "127.0.0.1", &port, key, "0", "60000"]).await;
    };
    // One key has moved, so that the first master says where to ask for it.
    move_key(&InventoryKeys(&inventory()).sale()).await;
    assert!(seats.epoch(&inventory()).await.unwrap().is_some(), "the new place was asked");
    // What needs keys from both sides cannot run, is told to come again, and has not run.
    let torn = seats.hold(&hold(2, Legs::ONE, best(2))).await.unwrap_err();
    assert!(torn.retryable(), "{torn}");

    let left: Vec<String> = ask(from, &["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]).await;
    for key in &left {
        move_key(key).await;
    }
    for node in [to, from] {
        let () = ask(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).await;
    }
    // The client still asks the first master, which says where the slot is now.
    let second = seats.hold(&hold(2, Legs::ONE, best(2))).await.unwrap();
    let again = seats.hold(&hold(1, Legs::ONE, best(2))).await.unwrap();
    assert_eq!(record_of(again), record_of(first), "the hold came along");
    assert_eq!(seats.count_holds(&inventory()).await, Ok(2));
    record_of(second);
}

/// The tiers of a sale that keeps them apart lie in slots of their own, on several masters, and each sells by
/// itself. The same tiers together are one slot.
#[tokio::test]
async fn tiers_apart_lie_in_slots_of_their_own() {
    let cluster = super::cluster().await;
    let connection = Connection::new(&Topology::Cluster(cluster.urls()), long_deadlines()).unwrap();
    let seats = RedisSeats::new(connection);
    let sale = SaleId::new("festival").unwrap();
    let tiers = ["floor", "stalls", "balcony"].map(|tier| TierId::new(tier).unwrap());
    let apart = tiers.map(|tier| InventoryId::of_tier(sale.clone(), tier));
    let nodes = cluster.nodes();
    let mut slots = Vec::new();
    for (order, inventory) in (1..).zip(&apart) {
        let tier = inventory.tier().unwrap().clone();
        let grid = TierGrid { tier: tier.clone(), ..load(1).tiers.remove(0) };
        let load = Load { inventory: inventory.clone(), tiers: vec![grid], ..load(1) };
        assert_eq!(seats.load(&load).await, Ok(LoadReply::Loaded));
        let line = Line { tier: tier.clone(), legs: Legs::ONE, choice: best(2) };
        let hold = Hold {
            inventory: inventory.clone(),
            lines: vec![line],
            ..hold(order, Legs::ONE, best(2))
        };
        record_of(seats.hold(&hold).await.unwrap());
        let keys = InventoryKeys(inventory);
        let of_tier = [
            keys.sale(),
            keys.due(),
            keys.loading(),
            keys.loading_due(),
            keys.tier(&tier),
            keys.taken(&tier),
            keys.sold(&tier),
            keys.freed(&tier),
        ];
        let mut slot_of = Vec::new();
        for key in &of_tier {
            slot_of.push(ask::<u16>(&nodes[0], &["CLUSTER", "KEYSLOT", key]).await);
        }
        slot_of.dedup();
        assert_eq!(slot_of.len(), 1, "a script on {inventory} has one slot");
        slots.extend(slot_of);
    }
    println!("floor, stalls and balcony lie in slots {slots:?}");
    let distinct: BTreeSet<u16> = slots.iter().copied().collect();
    assert_eq!(distinct.len(), 3);
    let masters: BTreeSet<u16> = slots.iter().map(|slot| slot / 5461).collect();
    assert!(masters.len() > 1, "they are spread over the cluster: {slots:?}");
    for inventory in &apart {
        assert_eq!(seats.count_holds(inventory).await, Ok(1));
    }
}
