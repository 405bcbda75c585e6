//! What is broken: each fault knows how to begin, until when it lasts, and how it is mended.

mod all;
mod cluster;
mod freeze;
mod kill_engine;
mod network;
mod redis;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use engine::domain::basics::ids::InventoryId;
use engine::domain::basics::number::OrderNumber;
use futures_util::future::BoxFuture;
use rand::rngs::StdRng;
use serde::Serialize;

use loadtest::controller::Controller;
use local::payment::{SEARCH_LAG_SECONDS, grace};

use self::network::{Network, To};
use super::Error;
use super::rig::{Profile, Rig};

/// What a fault acts on.
#[derive(Debug)]
pub struct FaultContext {
    pub rig: Rig,
    /// The crowd that buys meanwhile.
    pub controller: Arc<Controller>,
    /// Seeded generator of every choice.
    pub random: StdRng,
}

/// Data that Redis forgot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    Nothing,
    /// The holds of these orders.
    Holds(BTreeSet<OrderNumber>),
    /// All of these inventories.
    Inventories(Vec<InventoryId>),
    Everything,
}

/// A fault that has begun.
#[derive(Debug)]
pub struct Struck {
    /// Time of its first effect.
    pub at: Instant,
    /// Data that Redis forgot by it.
    pub lost: Lost,
    /// Other effects, each with its count.
    pub notes: BTreeMap<String, u64>,
}

impl Struck {
    /// One that is felt from now on.
    #[must_use]
    pub fn now() -> Self {
        Self { at: Instant::now(), lost: Lost::Nothing, notes: BTreeMap::new() }
    }

    fn record(&mut self, what: impl Into<String>, count: u64) {
        *self.notes.entry(what.into()).or_default() += count;
    }
}

/// One step of a fault, which may fail.
pub type Step<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// Something that is broken for a while.
pub trait Fault: Send {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck>;

    /// Returns when it has lasted long enough.
    fn lasts<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, ()> {
        let _ = context;
        Box::pin(async { Ok(()) })
    }

    /// Mends what does not mend itself; when that was.
    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        struck: &'a mut Struck,
    ) -> Step<'a, Instant>;
}

/// The faults by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The engine is killed with -9 and started again.
    KillEngine,
    /// Valkey is killed with -9, and a replica promoted that has missed what was acknowledged.
    KillRedis,
    /// Redis forgets everything (FLUSHALL).
    Flush,
    /// Valkey stands still for some seconds (SIGSTOP).
    FreezeRedis,
    /// The engine stands still for some seconds.
    FreezeEngine,
    /// DynamoDB and SQS stand still for some seconds.
    FreezeStores,
    /// Requests to DynamoDB and their answers are lost, cut, late, repeated, conflict, are throttled
    /// and done in part.
    DynamodbNetwork,
    /// Requests to SQS and their answers are lost, cut, late, repeated and throttled.
    SqsNetwork,
    /// Requests to Redis and their replies are lost, cut, late, repeated and refused.
    RedisNetwork,
    /// The networks, Valkey and the engine at once.
    All,
    /// In a cluster, the master that has the sale is killed with -9; its replica takes its place.
    KillMaster,
    /// In a cluster, the replica takes the place of a master that lives (FAILOVER TAKEOVER).
    ClusterFailover,
    /// In a cluster, a master that has the sale or some of its tiers loses everything, and its replica too.
    LoseNode,
    /// In a cluster, the sale's slot, or a tier's, moves to another master while it is sold.
    SlotMigration,
}

impl Kind {
    pub const ALL: [Self; 14] = [
        Self::KillEngine,
        Self::KillRedis,
        Self::Flush,
        Self::FreezeRedis,
        Self::FreezeEngine,
        Self::FreezeStores,
        Self::DynamodbNetwork,
        Self::SqsNetwork,
        Self::RedisNetwork,
        Self::All,
        Self::KillMaster,
        Self::ClusterFailover,
        Self::LoseNode,
        Self::SlotMigration,
    ];

    /// Its name in reports, the same as on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.fault().name()
    }

    /// The Redis that it needs.
    #[must_use]
    pub fn profile(self) -> Profile {
        match self {
            Self::KillMaster | Self::ClusterFailover | Self::SlotMigration | Self::LoseNode => {
                Profile::Cluster
            }
            Self::KillEngine
            | Self::KillRedis
            | Self::Flush
            | Self::FreezeRedis
            | Self::FreezeEngine
            | Self::FreezeStores
            | Self::DynamodbNetwork
            | Self::SqsNetwork
            | Self::RedisNetwork
            | Self::All => Profile::Single,
        }
    }

    /// Time after its deadline for which an order may still be pending, in seconds: I7's bound under
    /// one fault, of an engine with the usual lag, and under all of them.
    #[must_use]
    pub fn bound_seconds(self) -> u32 {
        if self == Self::All {
            BOUND_SECONDS_ALL
        } else {
            grace(SEARCH_LAG_SECONDS).bound_seconds()
        }
    }

    #[must_use]
    pub fn fault(self) -> Box<dyn Fault> {
        match self {
            Self::KillEngine => Box::new(kill_engine::KillEngine),
            Self::KillRedis => Box::new(redis::KillRedis),
            Self::Flush => Box::new(redis::Flush),
            Self::FreezeRedis => Box::new(freeze::Freeze::Redis),
            Self::FreezeEngine => Box::new(freeze::Freeze::Engine),
            Self::FreezeStores => Box::new(freeze::Freeze::Stores),
            Self::DynamodbNetwork => Box::new(Network::alone(To::DynamoDb)),
            Self::SqsNetwork => Box::new(Network::alone(To::Sqs)),
            Self::RedisNetwork => Box::new(Network::alone(To::Redis)),
            Self::All => Box::new(all::All),
            Self::KillMaster => Box::new(cluster::KillMaster::default()),
            Self::ClusterFailover => Box::new(cluster::TakeOver),
            Self::SlotMigration => Box::new(cluster::MoveSlot),
            Self::LoseNode => Box::new(cluster::LoseNode),
        }
    }
}

/// Time after its deadline for which an order may still be pending while everything fails at once,
/// in seconds.
const BOUND_SECONDS_ALL: u32 = 600;
