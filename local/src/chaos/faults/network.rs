//! A network, or the service behind it, behaves badly.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::redis::pair;
use super::{Fault, Scene, Struck};
use crate::chaos::Error;
use crate::chaos::proxy::trouble::Trouble;

/// How many requests meet trouble before it ends.
const MET: u64 = 40;

/// The way to which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// To DynamoDB.
    DynamoDb,
    /// To SQS.
    Sqs,
    /// To Redis.
    Redis,
}

impl Network {
    /// How many of a thousand requests meet trouble. Few of those to Redis: a connection that is cut
    /// takes every request along that is under way on it.
    fn per_mille(self) -> u32 {
        match self {
            Self::DynamoDb => 100,
            Self::Sqs => 300,
            Self::Redis => 40,
        }
    }

    fn trouble(self, scene: &mut Scene) -> Result<Arc<Trouble>, Error> {
        Ok(match self {
            Self::DynamoDb => Arc::clone(&scene.rig.dynamodb_trouble),
            Self::Sqs => Arc::clone(&scene.rig.sqs_trouble),
            Self::Redis => Arc::clone(&pair(&mut scene.rig.cache)?.trouble),
        })
    }

    fn server(self) -> &'static str {
        match self {
            Self::DynamoDb => "DynamoDB",
            Self::Sqs => "SQS",
            Self::Redis => "Redis",
        }
    }
}

impl Fault for Network {
    fn name(&self) -> &'static str {
        match self {
            Self::DynamoDb => "dynamodb-network",
            Self::Sqs => "sqs-network",
            Self::Redis => "redis-network",
        }
    }

    fn inject<'a>(&'a mut self, scene: &'a mut Scene) -> BoxFuture<'a, Result<Struck, Error>> {
        Box::pin(async {
            self.trouble(scene)?.begin(self.per_mille());
            Ok(Struck::now())
        })
    }

    fn lasts<'a>(&'a mut self, scene: &'a mut Scene) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async {
            let trouble = self.trouble(scene)?;
            trouble.until_met(trouble.met() + MET).await;
            Ok(())
        })
    }

    fn end<'a>(
        &'a mut self,
        scene: &'a mut Scene,
        struck: &'a mut Struck,
    ) -> BoxFuture<'a, Result<Instant, Error>> {
        Box::pin(async {
            let met = self.trouble(scene)?.end();
            let mended = Instant::now();
            for (kind, count) in met {
                struck.note(format!("{} {}", self.server(), kind.name()), count);
            }
            Ok(mended)
        })
    }
}
