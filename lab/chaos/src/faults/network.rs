//! A network, or the service behind it, behaves badly.

use std::sync::Arc;
use std::time::Instant;

use super::redis::pair;
use super::{Fault, FaultContext, Step, Struck};
use crate::Error;
use crate::proxy::faults::ProxyFaults;

/// The way to which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    DynamoDb,
    Sqs,
    Redis,
}

impl To {
    pub const ALL: [Self; 3] = [Self::DynamoDb, Self::Sqs, Self::Redis];

    /// Requests of a thousand that meet a fault. Few of those to Redis: a connection that is cut
    /// fails every request that is under way on it.
    fn per_mille(self) -> u32 {
        match self {
            Self::DynamoDb => 100,
            Self::Sqs => 300,
            Self::Redis => 50,
        }
    }

    fn server(self) -> &'static str {
        match self {
            Self::DynamoDb => "DynamoDB",
            Self::Sqs => "SQS",
            Self::Redis => "Redis",
        }
    }
}

/// A way that is bad for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    to: To,
    /// Requests of a thousand that meet a fault.
    per_mille: u32,
    /// Number of requests that meet a fault before it ends.
    met: u64,
}

impl Network {
    /// The only thing that is bad.
    #[must_use]
    pub fn alone(to: To) -> Self {
        Self { to, per_mille: to.per_mille(), met: 40 }
    }

    /// One of several things that are bad: an engine must be able to start on it.
    #[must_use]
    pub fn among_others(to: To) -> Self {
        Self { to, per_mille: to.per_mille() / 3, met: 15 }
    }

    /// Returns when each of several has been met as often as it must be from now on.
    pub(super) async fn last(all: &[Self], context: &mut FaultContext) -> Result<(), Error> {
        let mut until = Vec::new();
        for network in all {
            let faults = network.faults(context)?;
            until.push((faults.met() + network.met, faults));
        }
        for (met, faults) in until {
            faults.until_met(met).await;
        }
        Ok(())
    }

    fn faults(self, context: &mut FaultContext) -> Result<Arc<ProxyFaults>, Error> {
        Ok(match self.to {
            To::DynamoDb => Arc::clone(&context.rig.dynamodb_faults),
            To::Sqs => Arc::clone(&context.rig.sqs_faults),
            To::Redis => Arc::clone(&pair(&mut context.rig.cache)?.faults),
        })
    }
}

impl Fault for Network {
    fn name(&self) -> &'static str {
        match self.to {
            To::DynamoDb => "dynamodb-network",
            To::Sqs => "sqs-network",
            To::Redis => "redis-network",
        }
    }

    fn inject<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, Struck> {
        Box::pin(async {
            self.faults(context)?.begin(self.per_mille);
            Ok(Struck::now())
        })
    }

    fn lasts<'a>(&'a mut self, context: &'a mut FaultContext) -> Step<'a, ()> {
        Box::pin(async { Self::last(&[*self], context).await })
    }

    fn end<'a>(
        &'a mut self,
        context: &'a mut FaultContext,
        struck: &'a mut Struck,
    ) -> Step<'a, Instant> {
        Box::pin(async {
            let met = self.faults(context)?.end();
            let mended = Instant::now();
            for (kind, count) in met {
                struck.record(format!("{} {}", self.to.server(), kind.name()), count);
            }
            Ok(mended)
        })
    }
}
