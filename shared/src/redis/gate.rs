//! The gate in Redis: one script over the two keys of a shard and a buyer.

use std::sync::Arc;

use super::keys::GateKeys;
use super::{Connection, Scripts, admit};
use engine::domain::gate::{Admit, AdmitReply};
use engine::domain::ids::SaleId;
use engine::ports::{Gate, Stored};

/// The gate in Redis; the rules are in [`engine::domain::gate`].
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
}

impl Gate for RedisGate {
    async fn admit(&self, command: &Admit) -> Stored<AdmitReply> {
        let call = admit::encode(&self.scripts.admit, command);
        admit::decode(&call.send(&self.connection).await?)
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
