//! The gate in Redis: scripts over the keys of a shard and a buyer.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::keys::GateKeys;
use super::{Connection, Scripts, add_tokens, admit, broken};
use engine::domain::admission::gate::tokens::{AddTokens, AddTokensReply, TokenCounts};
use engine::domain::admission::gate::{Admit, AdmitReply};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::time::Timestamp;
use engine::ports::{Gate, Stored};

/// The gate in Redis; the rules are in [`engine::domain::admission::gate`].
#[derive(Debug, Clone)]
pub struct RedisGate {
    connection: Connection,
    scripts: Arc<Scripts>,
}

impl RedisGate {
    /// The gate behind a connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self::with_scripts(connection, Scripts::standard())
    }

    /// The gate with scripts of one's own, for tests.
    #[must_use]
    pub fn with_scripts(connection: Connection, scripts: Arc<Scripts>) -> Self {
        Self { connection, scripts }
    }

    /// What one shard has counted; `None` if it has not begun to.
    async fn counts(&self, keys: GateKeys<'_>) -> Stored<Option<TokenCounts>> {
        let mut command = redis::cmd("HMGET");
        command.arg(keys.gate()).arg(&["issued", "budget", "by_hand", "since_ms"]);
        type Counts = (Option<i64>, Option<i64>, Option<i64>, Option<i64>);
        let (issued, budget, by_hand, since_ms): Counts = self.connection.query(&command).await?;
        let (Some(issued), Some(since_ms)) = (issued, since_ms) else { return Ok(None) };
        let absent = || broken(format!("{} has no budget", keys.gate()));
        Ok(Some(TokenCounts {
            issued,
            by_hand: by_hand.unwrap_or(0),
            remaining: budget.ok_or_else(absent)?,
            since: Timestamp::from_ms(since_ms),
        }))
    }
}

impl Gate for RedisGate {
    async fn admit(&self, command: &Admit) -> Stored<AdmitReply> {
        let call = admit::encode(&self.scripts.admit, command);
        admit::decode(&call.send(&self.connection).await?)
    }

    async fn add_tokens(&self, command: &AddTokens) -> Stored<AddTokensReply> {
        let call = add_tokens::encode(&self.scripts.add_tokens, command);
        add_tokens::decode(&call.send(&self.connection).await?)
    }

    async fn tokens(&self, sale: &SaleId, shards: u16) -> Stored<Vec<TokenCounts>> {
        let counts: Vec<_> =
            (0..shards).map(|shard| self.counts(GateKeys { sale, shard })).collect();
        Ok(try_join_all(counts).await?.into_iter().flatten().collect())
    }

    async fn close(&self, sale: &SaleId, shards: u16) -> Stored<()> {
        // Each shard is on a slot of its own.
        for shard in 0..shards {
            let mut command = redis::cmd("UNLINK");
            command.arg(GateKeys { sale, shard }.gate());
            let _removed: u64 = self.connection.query(&command).await?;
        }
        Ok(())
    }
}
