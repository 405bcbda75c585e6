//! The gate in Redis: one script over the two keys of a shard and a buyer.

use std::sync::Arc;

use super::{Connection, Scripts, admit};
use engine::domain::gate::{Admit, AdmitReply};
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
}
