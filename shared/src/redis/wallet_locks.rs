//! The courtesy lock of a buyer's wallet: the process that has it works on the wallet alone, as long as every process
//! asks for the lock first.
//!
//! No promise rests on the lock. DynamoDB's conditions keep a wallet right whoever writes it. Transactions that meet on
//! a wallet are tried again, and the lock only spares them that. So a process waits for the lock only a while, and goes
//! on without it if Redis does not answer. The lock has an owner and a time to live: a process releases only its own.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::keys::wallet_lock;
use super::{Connection, Scripts, unlock};
use crate::challenges::random;
use crate::hex::to_hex;
use crate::runtime::connections::pause;
use engine::domain::basics::ids::UserId;
use engine::ports::Stored;

/// Time after which a lock is free whose owner has died, in milliseconds.
const HELD_MS: u64 = 5000;
/// Longest wait for a lock; whoever has waited as long goes on without.
const PATIENCE: Duration = Duration::from_millis(1000);
/// Longest pause between two attempts at a lock.
const PAUSE: Duration = Duration::from_millis(4);

/// The locks of wallets, in Redis.
#[derive(Debug, Clone)]
pub struct RedisWalletLocks {
    connection: Connection,
    scripts: Arc<Scripts>,
}

impl RedisWalletLocks {
    /// The locks behind a connection.
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self { connection, scripts: Scripts::standard() }
    }

    /// Does something with the lock of a buyer's wallet, or without it if it is not to be had.
    ///
    /// # Errors
    /// As `work`: what the lock meets is logged.
    pub async fn with<T>(&self, user: &UserId, work: impl Future<Output = T>) -> T {
        let owner = match self.take(user).await {
            Ok(owner) => owner,
            Err(error) => {
                tracing::warn!(%error, "a wallet is written without its lock");
                None
            }
        };
        let done = work.await;
        if let Some(owner) = owner
            && let Err(error) = self.give_back(user, &owner).await
        {
            tracing::warn!(%error, "the lock of a wallet is left to its time");
        }
        done
    }

    /// Takes the lock of a buyer's wallet; the name of its owner, `None` if others had it all the time.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub async fn take(&self, user: &UserId) -> Stored<Option<String>> {
        let owner = to_hex(&random::<8>()?);
        let until = Instant::now() + PATIENCE;
        loop {
            if self.try_take(user, &owner).await? {
                return Ok(Some(owner));
            }
            let pause = pause::between(Duration::ZERO, PAUSE);
            if Instant::now() + pause > until {
                return Ok(None);
            }
            sleep(pause).await;
        }
    }

    /// Takes the lock if it is free, or has it already; a command whose reply was lost may be sent again.
    async fn try_take(&self, user: &UserId, owner: &str) -> Stored<bool> {
        let mut command = redis::cmd("SET");
        command.arg(wallet_lock(user)).arg(owner).arg("NX").arg("GET").arg("PX").arg(HELD_MS);
        let found: Option<String> = self.connection.query(&command).await?;
        Ok(found.is_none_or(|found| found == owner))
    }

    /// Gives a lock back; false if it is not this owner's any more.
    ///
    /// # Errors
    /// As [`Connection::query`].
    pub async fn give_back(&self, user: &UserId, owner: &str) -> Stored<bool> {
        let call = unlock::encode(&self.scripts.unlock, wallet_lock(user), owner);
        unlock::decode(&call.send(&self.connection).await?)
    }
}
