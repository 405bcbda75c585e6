//! Three masters that share the 16,384 hash slots, with a replica each or without.

use std::collections::HashMap;

use super::{Deadline, Error, Flavour, RedisOptions, RedisServer};

/// Hash slots of a cluster.
/// Source: <https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/>
const SLOTS: u16 = 16_384;
/// Masters of a cluster; the fewest that can agree by majority.
const MASTERS: u16 = 3;
/// Seconds the masters may take to agree.
const AGREE_SECONDS: u64 = 60;

/// Milliseconds after which the nodes of a cluster with replicas take one of them for dead.
const NODE_TIMEOUT_MS: u32 = 2000;

/// A cluster of three masters, in memory, on ports of 127.0.0.1.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the masters, shares the slots out, and waits until all three see a whole cluster.
    ///
    /// # Errors
    ///
    /// As [`RedisServer::start`], and [`Error::TimedOut`] when the masters do not agree.
    pub async fn start(flavour: Flavour) -> Result<Self, Error> {
        Self::start_masters(RedisOptions { cluster: true, ..RedisOptions::default() }, flavour)
            .await
    }

    /// The same with a replica for each master, which takes its place some seconds after it died.
    /// The masters are the first three nodes to begin with.
    ///
    /// # Errors
    ///
    /// As [`RedisCluster::start`].
    pub async fn start_with_replicas(flavour: Flavour) -> Result<Self, Error> {
        let node_timeout_ms = Some(NODE_TIMEOUT_MS);
        let options = RedisOptions { cluster: true, node_timeout_ms, ..RedisOptions::default() };
        let mut cluster = Self::start_masters(options.clone(), flavour).await?;
        for _ in 0..MASTERS {
            cluster.nodes.push(RedisServer::start(options.clone().flavour(flavour)).await?);
        }
        cluster.meet().await?;
        cluster.agree().await?;
        let (masters, replicas) = cluster.nodes.split_at(usize::from(MASTERS));
        for (master, replica) in masters.iter().zip(replicas) {
            follow(master, replica).await?;
        }
        Ok(cluster)
    }

    async fn start_masters(options: RedisOptions, flavour: Flavour) -> Result<Self, Error> {
        let mut nodes = Vec::new();
        for index in 0..MASTERS {
            let node = RedisServer::start(options.clone().flavour(flavour)).await?;
            own_slots(&node, index).await?;
            nodes.push(node);
        }
        let cluster = Self { nodes };
        cluster.meet().await?;
        cluster.agree().await?;
        Ok(cluster)
    }

    /// Its nodes: the three masters, and then their replicas if it has any.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The same, to kill and restart them.
    pub fn nodes_mut(&mut self) -> &mut [RedisServer] {
        &mut self.nodes
    }

    /// The addresses of the nodes; a cluster client needs any one of them.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// Waits until every node sees all slots served by three nodes, and knows all others.
    ///
    /// # Errors
    ///
    /// [`Error::TimedOut`] when they do not agree in time.
    pub async fn agree(&self) -> Result<(), Error> {
        for node in &self.nodes {
            let deadline = Deadline::with("the cluster to agree", AGREE_SECONDS);
            while !sees_whole_cluster(node, self.nodes.len()).await? {
                deadline.pause().await?;
            }
        }
        Ok(())
    }

    /// Introduces the first master to the others; they learn of each other through it.
    async fn meet(&self) -> Result<(), Error> {
        let Some((first, others)) = self.nodes.split_first() else {
            return Ok(());
        };
        let mut connection = first.connect().await?;
        for other in others {
            redis::cmd("CLUSTER")
                .arg("MEET")
                .arg("127.0.0.1")
                .arg(other.port())
                .arg(other.bus_port())
                .query_async::<()>(&mut connection)
                .await?;
        }
        Ok(())
    }
}

/// Gives master `index` its share of the slots, and an epoch of its own so that the masters have
/// no collision to settle when they meet.
async fn own_slots(node: &RedisServer, index: u16) -> Result<(), Error> {
    let bound = |part: u16| u32::from(SLOTS) * u32::from(part) / u32::from(MASTERS);
    let mut connection = node.connect().await?;
    redis::cmd("CLUSTER")
        .arg("SET-CONFIG-EPOCH")
        .arg(index + 1)
        .query_async::<()>(&mut connection)
        .await?;
    redis::cmd("CLUSTER")
        .arg("ADDSLOTSRANGE")
        .arg(bound(index))
        .arg(bound(index + 1) - 1)
        .query_async::<()>(&mut connection)
        .await?;
    Ok(())
}

/// Makes a node the replica of a master, and waits until it has everything.
async fn follow(master: &RedisServer, replica: &RedisServer) -> Result<(), Error> {
    let mut connection = master.connect().await?;
    let id: String = redis::cmd("CLUSTER").arg("MYID").query_async(&mut connection).await?;
    let mut connection = replica.connect().await?;
    redis::cmd("CLUSTER").arg("REPLICATE").arg(id).query_async::<()>(&mut connection).await?;
    replica.followed().await
}

/// True if this node sees every slot served and knows all nodes.
async fn sees_whole_cluster(node: &RedisServer, nodes: usize) -> Result<bool, Error> {
    let mut connection = node.connect().await?;
    let info: String = redis::cmd("CLUSTER").arg("INFO").query_async(&mut connection).await?;
    let facts: HashMap<&str, &str> =
        info.lines().filter_map(|line| line.trim().split_once(':')).collect();
    let expected = [
        ("cluster_state", "ok".to_owned()),
        ("cluster_slots_ok", SLOTS.to_string()),
        ("cluster_size", MASTERS.to_string()),
        ("cluster_known_nodes", nodes.to_string()),
    ];
    let is_so = |(name, value): &(&str, String)| facts.get(name) == Some(&value.as_str());
    Ok(expected.iter().all(is_so))
}
