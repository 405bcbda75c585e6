//! The gate in Redis: one script over the two keys of a shard and a buyer.

use std::sync::Arc;

use super::keys::GateKeys;
use super::{Call, Connection, Scripts};
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

fn holds(held: bool) -> &'static str {
    if held { "held" } else { "none" }
}

impl Gate for RedisGate {
    async fn admit(&self, command: &Admit) -> Stored<AdmitReply> {
        let keys = GateKeys { sale: &command.sale, shard: command.shard };
        let top_up = command.top_up;
        let call = Call::new(&self.scripts.admit)
            .key("gate", keys.gate())
            .key("lock", keys.lock(&command.user))
            .arg("tickets", command.tickets)
            .arg("now_ms", command.now.ms())
            .arg("user_lock_ms", command.user_lock_ms)
            .arg("rate_per_second", command.rate_per_second)
            .arg("first_budget", command.first_budget)
            .arg("generation", top_up.map_or(String::new(), |new| new.generation.to_string()))
            .arg("budget", top_up.map_or(0, |new| new.budget))
            .arg("dry_ms", top_up.map_or(0, |new| new.exhausted_ms))
            .arg("holds", holds(top_up.is_some_and(|new| new.holds)));
        let reply = call.send(&self.connection).await?;
        match reply.tag.as_str() {
            "admitted" => Ok(AdmitReply::Admitted),
            "dry" => {
                let held = reply.values.get(1).is_some_and(|value| value == holds(true));
                Ok(AdmitReply::Exhausted { retry_ms: reply.value(0)?, holds: held })
            }
            "locked" => Ok(AdmitReply::Locked { retry_ms: reply.value(0)? }),
            "too_fast" => Ok(AdmitReply::TooFast { retry_ms: reply.value(0)? }),
            "exhausted" => Ok(AdmitReply::BudgetUsedUp { generation: reply.value(0)? }),
            _ => Err(reply.unexpected()),
        }
    }
}
