//! Redis forgets: the last writes, by a failover to a replica that lagged, or everything.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;

use super::{Fault, FaultContext, Lost, Step, Struck};
use crate::Error;
use crate::rig::{Cache, Pair, holds_of};

/// Number of orders that are acknowledged, at least, while the replica gets nothing.
const MIN_ACKNOWLEDGED: u64 = 12;
/// Number of holds that the replica must have missed, at least.
const MIN_MISSED: usize = 3;
/// Time between two checks of the number that it has missed.
const LOOK: Duration = Duration::from_millis(20);

/// The pair that a fault of one server needs.
pub(super) fn pair(cache: &mut Cache) -> Result<&mut Pair, Error> {
    match cache {
        Cache::Single(pair) => Ok(pair),
        Cache::Cluster(_) => Err(Error::WrongProfile),
    }
}

/// Makes a server lose all keys and all scripts, and its replica with it.
pub(super) async fn forget(server: &mut MultiplexedConnection) -> Result<(), Error> {
    let mut commands = redis::pipe();
    commands.cmd("FLUSHALL").arg("SYNC").ignore().cmd("SCRIPT").arg("FLUSH").ignore();
    Ok(commands.query_async::<()>(server).await?)
}

/// Valkey is killed, and a replica promoted that has missed writes which were acknowledged: the link
/// between the two is held back first, while the primary goes on.
#[derive(Debug)]
pub struct KillRedis;

impl Fault for KillRedis {
    fn name(&self) -> &'static str {
        "kill-redis"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let inventories = context.rig.inventories();
            let pair = pair(&mut context.rig.cache)?;
            pair.link.hold_back();
            let acknowledged = context.controller.acknowledged() + MIN_ACKNOWLEDGED;
            context.controller.until_acknowledged(acknowledged).await;
            let old = holds_of(&pair.replica, &inventories).await?;
            let held = loop {
                let held = holds_of(&pair.primary, &inventories).await?;
                if held.difference(&old).count() >= MIN_MISSED {
                    break held;
                }
                tokio::time::sleep(LOOK).await;
            };
            let mut struck = Struck::now();
            pair.primary.kill()?;
            let missed: std::collections::BTreeSet<_> = held.difference(&old).copied().collect();
            struck.record("holds that the replica had missed", reporting::count(missed.len()));
            let ended = old.difference(&held).count();
            struck.record("ends of holds that the replica had missed", reporting::count(ended));
            struck.lost = Lost::Holds(missed);
            Ok(struck)
        })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        _struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            let pair = pair(&mut context.rig.cache)?;
            let mut promoted = pair.replica.connect().await?;
            let mut promote = redis::cmd("REPLICAOF");
            promote.arg("NO").arg("ONE").query_async::<()>(&mut promoted).await?;
            pair.proxy.follow(pair.replica.port());
            let mended = Instant::now();
            let (link, replica) = Pair::replicate(&pair.replica).await?;
            pair.link = link;
            pair.primary = std::mem::replace(&mut pair.replica, replica);
            Ok(mended)
        })
    }
}

/// Redis forgets everything, scripts and all.
#[derive(Debug)]
pub struct Flush;

impl Fault for Flush {
    fn name(&self) -> &'static str {
        "flush"
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            let pair = pair(&mut context.rig.cache)?;
            forget(&mut pair.primary.connect().await?).await?;
            Ok(Struck { lost: Lost::Everything, ..Struck::now() })
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
