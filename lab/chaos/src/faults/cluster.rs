//! A cluster moves the sale, or a tier that it keeps apart, from one server to another: because one died,
//! because one was asked to take over, or because its slot is moved. Or a master loses what it has.

use std::collections::BTreeSet;
use std::time::Instant;

use engine::domain::basics::ids::InventoryId;
use engine::domain::basics::number::OrderNumber;
use rand::seq::IndexedRandom as _;
use redis::aio::ConnectionLike;

use super::redis::forget;
use super::{Fault, FaultContext, Lost, Step, Struck};
use crate::Error;
use crate::rig::{Cache, holds};
use local::servers::{Deadline, RedisCluster, RedisServer};

/// Time that the nodes may take to agree on who has the sale.
const AGREE_SECONDS: u64 = 60;
/// Time that one key may take to move, in milliseconds.
const MOVE_MS: u32 = 5000;
/// Number of orders that are acknowledged while a replica is cut off.
const LAG_ORDERS: u64 = 6;
/// Most times that it is cut off again because it was back too soon.
const LAG_ATTEMPTS: usize = 20;

fn cluster(cache: &Cache) -> Result<&RedisCluster, Error> {
    match cache {
        Cache::Cluster(cluster) => Ok(cluster),
        Cache::Single(_) => Err(Error::WrongProfile),
    }
}

/// What a node says of one node.
#[derive(Debug, Clone)]
struct Node {
    id: String,
    port: u16,
    /// The id of its master, if it is a replica.
    master: Option<String>,
    is_well: bool,
    slots: Vec<(u16, u16)>,
}

impl Node {
    /// Reads a line of `CLUSTER NODES`.
    /// Source: <https://redis.io/docs/latest/commands/cluster-nodes/>
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let (id, address, flags, master) =
            (words.next()?, words.next()?, words.next()?, words.next()?);
        let port = address.split(['@', ',']).next()?.rsplit(':').next()?.parse().ok()?;
        let range = |word: &str| {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        Some(Self {
            id: id.to_owned(),
            port,
            master: (master != "-").then(|| master.to_owned()),
            is_well: !flags.contains("fail") && !flags.contains("noaddr"),
            slots: words.skip(4).filter_map(range).collect(),
        })
    }

    fn has(&self, slot: u16) -> bool {
        self.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot))
    }
}

/// What one node says of all.
async fn nodes(of: &RedisServer) -> Result<Vec<Node>, Error> {
    let mut connection = of.connect().await?;
    let text: String = redis::cmd("CLUSTER").arg("NODES").query_async(&mut connection).await?;
    Ok(text.lines().filter_map(Node::read).collect())
}

/// The nodes of a cluster, by the part that they play for a slot.
#[derive(Debug)]
struct Parts {
    /// What the slot has of the sale.
    inventory: InventoryId,
    slot: u16,
    owner: Node,
    /// The replica of its master.
    follower: Node,
    other: Node,
}

/// The slot of an inventory.
async fn slot_of(
    connection: &mut impl ConnectionLike,
    inventory: &InventoryId,
) -> Result<u16, Error> {
    let mut ask = redis::cmd("CLUSTER");
    ask.arg("KEYSLOT").arg(format!("{{{inventory}}}:sale"));
    Ok(ask.query_async(connection).await?)
}

impl Parts {
    /// Those of the sale's slot; of one of its slots if it keeps its tiers apart.
    async fn draw(context: &mut FaultContext) -> Result<Self, Error> {
        let inventories = context.rig.inventories();
        let drawn = inventories.choose(&mut context.random);
        let inventory = drawn.ok_or(Error::WrongProfile)?.clone();
        let among = cluster(&context.rig.cache)?;
        let first = among.nodes().first().ok_or(Error::WrongProfile)?;
        let slot = slot_of(&mut first.connect().await?, &inventory).await?;
        let nodes = nodes(first).await?;
        let well = || nodes.iter().filter(|node| node.is_well);
        let missing = |what: &str| Error::Cluster(format!("nobody is {what} of slot {slot}"));
        let owner = well().find(|node| node.has(slot)).ok_or_else(|| missing("the owner"))?;
        let follower = well().find(|node| node.master.as_ref() == Some(&owner.id));
        let other = well().find(|node| !node.slots.is_empty() && !node.has(slot));
        Ok(Self {
            inventory,
            slot,
            owner: owner.clone(),
            follower: follower.cloned().ok_or_else(|| missing("the replica"))?,
            other: other.cloned().ok_or_else(|| missing("another master"))?,
        })
    }
}

fn server(cluster: &RedisCluster, port: u16) -> Result<&RedisServer, Error> {
    let found = cluster.nodes().iter().find(|node| node.port() == port);
    found.ok_or_else(|| Error::Cluster(format!("no node of ours has port {port}")))
}

/// The node with a port, to kill and start it.
fn node(cache: &mut Cache, port: u16) -> Result<&mut RedisServer, Error> {
    let Cache::Cluster(cluster) = cache else { return Err(Error::WrongProfile) };
    let found = cluster.nodes_mut().iter_mut().find(|node| node.port() == port);
    found.ok_or_else(|| Error::Cluster(format!("no node of ours has port {port}")))
}

/// Waits until every node but those on `besides` says that `port` has the slot.
async fn until_owned_by(
    cluster: &RedisCluster,
    slot: u16,
    besides: Option<u16>,
    is_owner: impl Fn(u16) -> bool,
) -> Result<(), Error> {
    let deadline = Deadline::with("the cluster to agree on an owner", AGREE_SECONDS);
    for node in cluster.nodes().iter().filter(|node| Some(node.port()) != besides) {
        loop {
            let nodes = nodes(node).await?;
            let owner = nodes.iter().find(|node| node.is_well && node.has(slot));
            if owner.is_some_and(|owner| is_owner(owner.port)) {
                break;
            }
            deadline.pause().await?;
        }
    }
    Ok(())
}

/// What a server holds, also one that is a replica.
async fn holds_here(
    of: &RedisServer,
    inventory: &InventoryId,
) -> Result<BTreeSet<OrderNumber>, Error> {
    let mut connection = of.connect().await?;
    redis::cmd("READONLY").query_async::<()>(&mut connection).await?;
    holds(&mut connection, inventory).await
}

/// Cuts the replica off its master until holds were acknowledged that it does not have. It comes back
/// by itself within a second, and would catch up: whoever wants it to lag must be quick.
async fn lag(context: &FaultContext, parts: &Parts) -> Result<BTreeSet<OrderNumber>, Error> {
    let among = cluster(&context.rig.cache)?;
    let inventory = &parts.inventory;
    let owner = server(among, parts.owner.port)?;
    let follower = server(among, parts.follower.port)?;
    let mut master = owner.connect().await?;
    for _ in 0..LAG_ATTEMPTS {
        let mut cut = redis::cmd("CLIENT");
        cut.arg("KILL").arg("TYPE").arg("REPLICA").query_async::<()>(&mut master).await?;
        context.controller.until_acknowledged(context.controller.acknowledged() + LAG_ORDERS).await;
        let held = holds_here(owner, inventory).await?;
        if held.difference(&holds_here(follower, inventory).await?).count() > 0 {
            return Ok(held);
        }
    }
    holds_here(owner, inventory).await
}

/// Records what was held and is not held by the new master.
async fn record_missed(
    context: &FaultContext,
    parts: &Parts,
    held: &BTreeSet<OrderNumber>,
    struck: &mut Struck,
) -> Result<(), Error> {
    let follower = server(cluster(&context.rig.cache)?, parts.follower.port)?;
    let has = holds_here(follower, &parts.inventory).await?;
    let missed: BTreeSet<OrderNumber> = held.difference(&has).copied().collect();
    struck.record("holds that the new master had missed", reporting::count(missed.len()));
    struck.lost = Lost::Holds(missed);
    Ok(())
}

/// The master that has the sale is killed as `kill -9` does; its replica is voted into its place, and
/// it comes back as a replica.
#[derive(Debug, Default)]
pub struct KillMaster {
    killed: Option<Parts>,
}

impl Fault for KillMaster {
    fn name(&self) -> &'static str {
        "kill-master"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let parts = Parts::draw(context).await?;
            let held = lag(context, &parts).await?;
            let mut struck = Struck::now();
            node(&mut context.rig.cache, parts.owner.port)?.kill()?;
            record_missed(context, &parts, &held, &mut struck).await?;
            self.killed = Some(parts);
            Ok(struck)
        })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            let Some(parts) = self.killed.take() else { return Ok(struck.at) };
            let (port, slot) = (parts.owner.port, parts.slot);
            let among = cluster(&context.rig.cache)?;
            until_owned_by(among, slot, Some(port), |owner| owner != port).await?;
            let mended = Instant::now();
            node(&mut context.rig.cache, port)?.restart().await?;
            let among = cluster(&context.rig.cache)?;
            among.agree().await?;
            server(among, port)?.followed().await?;
            Ok(mended)
        })
    }
}

/// The replica takes the place of a master that lives, without asking anybody: for a moment there
/// are two, and what the old one acknowledges then is lost.
#[derive(Debug)]
pub struct TakeOver;

impl Fault for TakeOver {
    fn name(&self) -> &'static str {
        "cluster-failover"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let parts = Parts::draw(context).await?;
            let held = lag(context, &parts).await?;
            let mut struck = Struck::now();
            let among = cluster(&context.rig.cache)?;
            let mut replica = server(among, parts.follower.port)?.connect().await?;
            let mut take = redis::cmd("CLUSTER");
            take.arg("FAILOVER").arg("TAKEOVER").query_async::<()>(&mut replica).await?;
            record_missed(context, &parts, &held, &mut struck).await?;
            let new = parts.follower.port;
            until_owned_by(among, parts.slot, None, |owner| owner == new).await?;
            Ok(struck)
        })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        _struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            let mended = Instant::now();
            let among = cluster(&context.rig.cache)?;
            among.agree().await?;
            for node in among.nodes() {
                let me = node.port();
                let nodes = nodes(node).await?;
                if nodes.iter().any(|node| node.port == me && node.master.is_some()) {
                    node.followed().await?;
                }
            }
            Ok(mended)
        })
    }
}

/// The master that has the sale, or some of its tiers, loses everything, and its replica with it: both live
/// on, empty. A tier that is kept apart, on another master, is still there.
#[derive(Debug)]
pub struct LoseNode;

impl Fault for LoseNode {
    fn name(&self) -> &'static str {
        "lose-node"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let Parts { owner, .. } = Parts::draw(context).await?;
            let master = server(cluster(&context.rig.cache)?, owner.port)?;
            let mut connection = master.connect().await?;
            let (mut lost, mut left) = (Vec::new(), 0);
            for inventory in context.rig.inventories() {
                if owner.has(slot_of(&mut connection, &inventory).await?) {
                    lost.push(inventory);
                } else {
                    left += 1;
                }
            }
            forget(&mut connection).await?;
            let mut struck = Struck::now();
            struck.record("inventories that are lost", reporting::count(lost.len()));
            struck.record("inventories that are left", left);
            struck.lost = Lost::Inventories(lost);
            Ok(struck)
        })
    }

    fn end<'a>(
        &'a mut self,
        _context: &'a mut FaultContext,
        struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async { Ok(struck.at) })
    }
}

/// The slot of the sale, or of one of its tiers, moves to another master, key by key, while the crowd buys: for a while half
/// of it is here and half there, and nothing of it can be sold.
#[derive(Debug)]
pub struct MoveSlot;

impl Fault for MoveSlot {
    fn name(&self) -> &'static str {
        "slot-migration"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let Parts { slot, owner, other, .. } = Parts::draw(context).await?;
            let mut struck = Struck::now();
            let among = cluster(&context.rig.cache)?;
            let mut from = server(among, owner.port)?.connect().await?;
            let mut to = server(among, other.port)?.connect().await?;
            let set = |state: &str, node: &str| {
                let mut set = redis::cmd("CLUSTER");
                set.arg("SETSLOT").arg(slot).arg(state).arg(node);
                set
            };
            set("IMPORTING", &owner.id).query_async::<()>(&mut to).await?;
            set("MIGRATING", &other.id).query_async::<()>(&mut from).await?;
            loop {
                let mut ask = redis::cmd("CLUSTER");
                ask.arg("GETKEYSINSLOT").arg(slot).arg(1);
                let keys: Vec<String> = ask.query_async(&mut from).await?;
                let Some(key) = keys.first() else { break };
                let mut carry = redis::cmd("MIGRATE");
                carry.arg("127.0.0.1").arg(other.port).arg(key).arg(0).arg(MOVE_MS);
                carry.query_async::<()>(&mut from).await?;
                struck.record("keys moved", 1);
            }
            set("NODE", &other.id).query_async::<()>(&mut to).await?;
            set("NODE", &other.id).query_async::<()>(&mut from).await?;
            let new = other.port;
            until_owned_by(among, slot, None, |owner| owner == new).await?;
            Ok(struck)
        })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        _struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            let mended = Instant::now();
            cluster(&context.rig.cache)?.agree().await?;
            Ok(mended)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_who_a_node_is() {
        let master = "07c37 127.0.0.1:30004@31004,host myself,master - 0 1 4 connected 0-5460 9 \
                      [93-<-292f8]";
        let node = Node::read(master).unwrap();
        assert_eq!((node.port, node.master, node.is_well), (30004, None, true));
        assert_eq!(node.slots, [(0, 5460), (9, 9)]);
        let failed = "e7d1 127.0.0.1:30002@31002 slave,fail 07c37 0 1 4 connected";
        let node = Node::read(failed).unwrap();
        assert_eq!((node.master.as_deref(), node.is_well), (Some("07c37"), false));
        assert!(!node.has(1));
    }
}
