//! The server that is measured, and everything that can be asked of it.

use std::sync::Arc;
use std::time::Duration;

use engine::domain::admission::gate::tokens::{AddTokens, AddTokensReply};
use engine::domain::admission::gate::{Admit, AdmitReply};
use engine::domain::inventory::{
    Hold, HoldReply, Load, LoadReply, Mark, MarkReply, Recount, RecountReply, Release,
    ReleaseReply, Repair, RepairReply, Restore, RestoreReply, Sell, SellReply, Unsell, UnsellReply,
};
use engine::ports::{Gate as _, Seats as _};
use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use shared::redis::{Bounds, Connection, RedisGate, RedisSeats, Scripts, Topology};

use super::counters::Counters;
use super::report::Figure;
use super::{Baseline, Error};
use local::servers::{Flavour, RedisOptions, RedisServer};

/// A script that does nothing: what a call costs before it does anything.
pub const NOOP: &str = "return 0";
/// Time that a server may take to answer; the slowest baseline takes its time.
const DEADLINE: Duration = Duration::from_secs(60);

/// Requests under way while calls are measured. Served one at a time, each would find the server
/// asleep and its caches cold, as no request of an on-sale does.
const UNDER_WAY: usize = 16;

/// A server with nothing in it, and the production adapters over it.
pub struct Rig {
    server: RedisServer,
    /// For everything but scripts.
    pub control: MultiplexedConnection,
    pub seats: RedisSeats,
    gate: RedisGate,
    connection: Connection,
}

/// One call of a script.
#[derive(Debug, Clone)]
pub enum Act {
    /// `load.lua`
    Load(Box<Load>),
    /// `hold.lua`
    Hold(Box<Hold>),
    /// `sell.lua`
    Sell(Box<Sell>),
    /// `unsell.lua`
    Unsell(Box<Unsell>),
    /// `release.lua`
    Release(Box<Release>),
    /// `mark.lua`
    Mark(Box<Mark>),
    /// `restore.lua`
    Restore(Box<Restore>),
    /// `repair.lua`
    Repair(Box<Repair>),
    /// `recount.lua`
    Recount(Box<Recount>),
    /// `admit.lua`
    Admit(Box<Admit>),
    /// `add_tokens.lua`
    AddTokens(Box<AddTokens>),
    /// A script to compare with: two seats of a tier.
    Baseline(Baseline, String),
    Noop,
}

/// Every key of the server and what it holds.
#[derive(Debug)]
pub struct Kept(Vec<(Vec<u8>, Vec<u8>)>);

/// What a burst of calls has cost.
#[derive(Debug, Clone, Default)]
pub struct Burst {
    /// What the server has counted meanwhile.
    pub counted: Counters,
    /// Number of calls that were not refused.
    pub done: usize,
}

/// Teaches a server every script.
async fn teach(control: &mut MultiplexedConnection) -> Result<(), Error> {
    let scripts = Scripts::standard();
    let ours = scripts.all().map(|script| script.source().to_owned());
    let others = Baseline::ALL.map(|baseline| baseline.source().to_owned());
    for source in ours.into_iter().chain(others).chain([NOOP.to_owned()]) {
        let mut teach = redis::cmd("SCRIPT");
        teach.arg("LOAD").arg(source).query_async::<String>(control).await?;
    }
    Ok(())
}

impl Rig {
    /// Starts the server and teaches it every script.
    pub async fn start(flavour: Flavour) -> Result<Self, Error> {
        let server = RedisServer::start(RedisOptions::default().flavour(flavour)).await?;
        let mut control = server.connect().await?;
        teach(&mut control).await?;
        let bounds =
            Bounds { connect: DEADLINE, response: DEADLINE, attempts: 1, ..Bounds::default() };
        let connection = Connection::new(&Topology::Single(server.url()), bounds)?;
        let (seats, gate) =
            (RedisSeats::new(connection.clone()), RedisGate::new(connection.clone()));
        Ok(Self { server, control, seats, gate, connection })
    }

    /// The inventory with another `hold`, which the server is taught.
    pub async fn with_scripts(&mut self, scripts: Arc<Scripts>) -> Result<RedisSeats, Error> {
        let mut teach = redis::cmd("SCRIPT");
        teach.arg("LOAD").arg(scripts.hold.source());
        teach.query_async::<String>(&mut self.control).await?;
        Ok(RedisSeats::with_scripts(self.connection.clone(), scripts))
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// The name and version of the server.
    pub async fn version(&mut self) -> Result<String, Error> {
        let info: String = redis::cmd("INFO").arg("server").query_async(&mut self.control).await?;
        let field = |name: &str| {
            let of = |line: &str| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned);
            info.lines().find_map(of)
        };
        let name = |field: &str| format!("{:?} {field}", self.server.flavour());
        let version = field("valkey_version").or_else(|| field("redis_version"));
        Ok(name(&version.unwrap_or_default()))
    }

    /// Forgets everything but the scripts.
    pub async fn clear(&mut self) -> Result<(), Error> {
        Ok(redis::cmd("FLUSHALL").query_async(&mut self.control).await?)
    }

    /// Gives the server another Lua with the same scripts. What a baseline leaves behind, tens of
    /// thousands of tables a call, would otherwise be collected in the calls that come after it.
    pub async fn renew_lua(&mut self) -> Result<(), Error> {
        let mut forget = redis::cmd("SCRIPT");
        forget.arg("FLUSH").arg("SYNC").query_async::<()>(&mut self.control).await?;
        teach(&mut self.control).await
    }

    /// Keeps everything that the server holds now.
    pub async fn keep(&mut self) -> Result<Kept, Error> {
        let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query_async(&mut self.control).await?;
        let mut kept = Vec::with_capacity(keys.len());
        for key in keys {
            let dump = redis::cmd("DUMP").arg(&key).query_async(&mut self.control).await?;
            kept.push((key, dump));
        }
        Ok(Kept(kept))
    }

    /// Sets the server back to what was kept.
    pub async fn set_back(&mut self, kept: &Kept) -> Result<(), Error> {
        self.clear().await?;
        for (key, dump) in &kept.0 {
            let mut restore = redis::cmd("RESTORE");
            restore.arg(key).arg(0).arg(dump);
            restore.query_async::<()>(&mut self.control).await?;
        }
        Ok(())
    }

    /// Makes one call; false if it was refused.
    pub async fn act(&self, act: &Act) -> Result<bool, Error> {
        Ok(match act {
            Act::Load(load) => self.seats.load(load).await? == LoadReply::Loaded,
            Act::Hold(hold) => matches!(self.seats.hold(hold).await?, HoldReply::Held { .. }),
            Act::Sell(sell) => self.seats.sell(sell).await? == SellReply::Sold,
            Act::Unsell(unsell) => self.seats.unsell(unsell).await? == UnsellReply::Unsold,
            Act::Recount(recount) => self.seats.recount(recount).await? == RecountReply::Counted,
            Act::Release(release) => self.seats.release(release).await? == ReleaseReply::Released,
            Act::Mark(mark) => self.seats.mark(mark).await? == MarkReply::Marked,
            Act::Restore(restore) => self.seats.restore(restore).await? == RestoreReply::Restored,
            Act::Repair(repair) => self.seats.repair(repair).await? == RepairReply::Repaired,
            Act::Admit(admit) => self.gate.admit(admit).await? == AdmitReply::Admitted,
            Act::AddTokens(add) => self.gate.add_tokens(add).await? == AddTokensReply::Added,
            Act::Baseline(baseline, order) => {
                let call = baseline.call(order);
                let seats: Vec<String> = call.query_async(&mut self.control.clone()).await?;
                !seats.is_empty()
            }
            Act::Noop => {
                let mut call = redis::cmd("EVALSHA");
                call.arg(redis::Script::new(NOOP).get_hash()).arg(0);
                call.query_async::<i64>(&mut self.control.clone()).await? == 0
            }
        })
    }

    /// Makes some calls, in order, and says what the server counted meanwhile.
    pub async fn burst(&mut self, acts: &[Act]) -> Result<Burst, Error> {
        let before = Counters::read(&mut self.control).await?;
        let mut done = 0;
        for some in acts.chunks(UNDER_WAY) {
            // All on one connection: the server runs them in this order.
            let replies = try_join_all(some.iter().map(|act| self.act(act))).await?;
            done += replies.into_iter().filter(|is_done| *is_done).count();
        }
        let after = Counters::read(&mut self.control).await?;
        Ok(Burst { counted: after.since(&before), done })
    }

    /// Measures the script that does nothing.
    pub async fn noop(&mut self, rounds: usize, calls: usize) -> Result<Figure, Error> {
        let acts = vec![Act::Noop; calls];
        let mut bursts = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            bursts.push(self.burst(&acts).await?);
        }
        Ok(Figure::from_rounds(&bursts))
    }
}
